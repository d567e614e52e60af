// Deno.serve, one process.
const [hostname, port] = (Deno.args[0] ?? "127.0.0.1:8080").split(":");
const RESOURCE = "/api/v1/resource/";

const refuse = (status: number, error: string) =>
  Response.json({ error }, { status });

async function create(request: Request, text: string): Promise<Response> {
  const token = request.headers.get("authorization");
  if (!token || !/^bearer ./i.test(token)) return refuse(401, "Unauthorized");
  // A number, so exact up to 2^53 - 1; greater ids are refused.
  const id = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(id)) return refuse(400, "Invalid id");
  let data;
  try {
    data = await request.json();
  } catch {
    return refuse(400, "Invalid body");
  }
  if (typeof data?.name !== "string" || typeof data.active !== "boolean") {
    return refuse(422, "Invalid body");
  }
  const { name, active } = data;
  return Response.json({ status: "success", id, data: { name, active } });
}

function route(request: Request): Response | Promise<Response> {
  const { method, url } = request;
  const path = url.slice(url.indexOf("/", 8)); // after http://host
  if (method === "GET" && path === "/") return new Response("Hello, World!");
  if (method === "POST" && path.startsWith(RESOURCE)) {
    return create(request, path.slice(RESOURCE.length));
  }
  if (method === "GET" && path === "/health") return new Response("ok");
  if (method === "GET" && path === "/version") {
    return Response.json({ server: "deno" });
  }
  return refuse(404, "Not Found");
}

Deno.serve({
  hostname,
  port: Number(port),
  onListen: ({ hostname, port }) => console.log(`listening on ${hostname}:${port}`),
}, route);
