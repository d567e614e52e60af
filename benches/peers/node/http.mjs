// node:http alone, one process.
import { createServer } from 'node:http'

const [hostname, port] = (process.argv[2] ?? '127.0.0.1:8080').split(':')
const RESOURCE = '/api/v1/resource/'

function send(response, status, type, body) {
	response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
	response.end(body)
}
const text = (response, body) => send(response, 200, 'text/plain; charset=utf-8', body)
const json = (response, status, value) =>
	send(response, status, 'application/json', JSON.stringify(value))

function create(request, response) {
	const token = request.headers.authorization
	if (!token || !/^bearer ./i.test(token)) return json(response, 401, { error: 'Unauthorized' })
	// A number, so exact up to 2^53 - 1; greater ids are refused.
	const text = request.url.slice(RESOURCE.length)
	const id = /^\d+$/.test(text) ? Number(text) : NaN
	if (!Number.isSafeInteger(id)) return json(response, 400, { error: 'Invalid id' })
	const parts = []
	request.on('data', (part) => parts.push(part))
	request.on('end', () => {
		let data
		try {
			data = JSON.parse(parts.length === 1 ? parts[0] : Buffer.concat(parts))
		} catch {
			return json(response, 400, { error: 'Invalid body' })
		}
		if (typeof data?.name !== 'string' || typeof data.active !== 'boolean')
			return json(response, 422, { error: 'Invalid body' })
		const { name, active } = data
		json(response, 200, { status: 'success', id, data: { name, active } })
	})
}

const server = createServer((request, response) => {
	const { method, url } = request
	if (method === 'GET' && url === '/') text(response, 'Hello, World!')
	else if (method === 'POST' && url.startsWith(RESOURCE)) create(request, response)
	else if (method === 'GET' && url === '/health') text(response, 'ok')
	else if (method === 'GET' && url === '/version') json(response, 200, { server: 'node:http' })
	else json(response, 404, { error: 'Not Found' })
})
server.keepAliveTimeout = 75_000 // the default of 5 s would close an idle herd
server.listen({ host: hostname, port: Number(port), backlog: 4096 }, () =>
	console.log(`listening on ${hostname}:${port}`)
)
