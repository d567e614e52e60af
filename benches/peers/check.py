#!/usr/bin/env python3
"""Starts each peer and asks it what the benchmark will ask it: one line for each, ok, fails or skipped.

  check.py [--build] [NAME ...]

Reads peers.json beside it. --build runs each peer's build command first, at low priority. It needs
Python alone, ends only what it started, and exits with 1 if a peer fails a check that peers.json
does not list as known.
"""
import argparse, json, os, shutil, signal, socket, subprocess, sys, tempfile, time

PEERS = os.path.dirname(os.path.abspath(__file__))
BODY = b'{"name":"alice","active":true}'
ANSWER = b'{"status":"success","id":42,"data":{"name":"alice","active":true}}'
PATH = "/api/v1/resource/"
TOKEN = "Authorization: Bearer secret-token"


class Wrong(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Wrong(what)


class Client:
    """One connection; answers are read by their own length, so a wrong one shows."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def more(self):
        data = self.socket.recv(65536)
        expect(data, "connection closed")
        self.input += data

    def answer(self):
        """Status, fields and body of the next answer."""
        while b"\r\n\r\n" not in self.input:
            self.more()
        head, self.input = self.input.split(b"\r\n\r\n", 1)
        first, *rest = head.decode("latin-1").split("\r\n")
        expect(first.startswith("HTTP/1.1 "), f"status line {first!r}")
        fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in rest)}
        expect("content-length" in fields, "no Content-Length")
        length = int(fields["content-length"])
        while len(self.input) < length:
            self.more()
        body, self.input = self.input[:length], self.input[length:]
        return int(first.split()[1]), fields, body

    def ask(self, data):
        self.send(data)
        return self.answer()

    def quiet(self):
        """Nothing else has come."""
        self.socket.settimeout(0.05)
        try:
            self.input += self.socket.recv(65536)
        except TimeoutError:
            pass
        self.socket.settimeout(5)
        expect(not self.input, f"{len(self.input)} bytes too many")


def get(path="/", *fields):
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *fields, "", ""]).encode()


def post(id="42", body=BODY, token=TOKEN):
    fields = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    head = [f"POST {PATH}{id} HTTP/1.1", *fields, *([token] if token else []), "", ""]
    return "\r\n".join(head).encode() + body


def is_hello(answer):
    status, fields, body = answer
    expect(status == 200, f"status {status}")
    expect(body == b"Hello, World!", f"body {body[:60]!r}")
    expect(fields.get("content-type", "").startswith("text/plain"), f"type {fields.get('content-type')}")


def is_created(answer):
    status, fields, body = answer
    expect(status == 200, f"status {status}")
    expect(body == ANSWER, f"body {body[:90]!r}")
    expect(fields.get("content-type", "").startswith("application/json"), f"type {fields.get('content-type')}")


def refused(port, request, statuses):
    with Client(port) as c:
        status, _, body = c.ask(request)
        expect(status in statuses, f"status {status}")
        c.quiet()
        return body


# Each check: its name, the route it needs, whether it asks a server to refuse something, the check.
CHECKS = []


def check(route, parses=False):
    def add(function):
        CHECKS.append((function.__name__.replace("_", "-"), route, parses, function))
        return function
    return add


@check("hello")
def hello(port):
    with Client(port) as c:
        is_hello(c.ask(get()))
        c.quiet()


@check("hello")
def keep_alive(port):
    with Client(port) as c:
        for _ in range(20):
            is_hello(c.ask(get()))


@check("hello")
def pipelined(port):
    with Client(port) as c:
        c.send(get() * 16)
        for _ in range(16):
            is_hello(c.answer())
        c.quiet()


@check("hello")
def byte_by_byte(port):
    with Client(port) as c:
        for byte in get():
            c.send(bytes([byte]))
            time.sleep(0.001)
        is_hello(c.answer())
        c.quiet()


@check("hello", parses=True)
def close(port):
    with Client(port) as c:
        is_hello(c.ask(get("/", "Connection: close")))
        c.socket.settimeout(2)
        try:
            expect(not c.socket.recv(1), "more after the last answer")
        except TimeoutError:
            raise Wrong("Connection: close ignored") from None


@check("hello", parses=True)
def not_found(port):
    refused(port, get("/nowhere"), [404])


@check("health")
def health(port):
    with Client(port) as c:
        status, _, body = c.ask(get("/health"))
        expect((status, body) == (200, b"ok"), f"{status} {body[:60]!r}")


@check("version")
def version(port):
    with Client(port) as c:
        status, _, body = c.ask(get("/version"))
        expect(status == 200 and body, f"{status} {body[:60]!r}")


@check("resource")
def create(port):
    with Client(port) as c:
        for _ in range(3):
            is_created(c.ask(post()))
        c.quiet()


@check("resource")
def create_pipelined(port):
    with Client(port) as c:
        c.send(post() * 8)
        for _ in range(8):
            is_created(c.answer())
        c.quiet()


@check("resource")
def create_in_parts(port):
    with Client(port) as c:
        head, body = post().split(b"\r\n\r\n")
        for part in (head[:30], head[30:] + b"\r\n", b"\r\n", body[:9], body[9:]):
            c.send(part)
            time.sleep(0.02)
        is_created(c.answer())
        is_created(c.ask(post()))


@check("resource", parses=True)
def no_token(port):
    body = refused(port, post(token=None), [401])
    expect(body == b'{"error":"Unauthorized"}', f"body {body[:60]!r}")


@check("resource", parses=True)
def wrong_token(port):
    refused(port, post(token="Authorization: Basic YTpi"), [401])


@check("resource", parses=True)
def wrong_body(port):
    for body in (b'{"name":1,"active":true}', b'{"name":"alice","active":"yes"}', b'{"name":"alice"}',
                 b'{"active":true}', b'{"name":"alice",', b'[]', b'null', b'{"name":null,"active":true}'):
        try:
            refused(port, post(body=body), [400, 415, 422])
        except Wrong as e:
            raise Wrong(f"{body.decode()}: {e}") from None


@check("resource", parses=True)
def wrong_id(port):
    for id in ("abc", "-4", "4.5", "42x", "99999999999999999999"):
        try:
            refused(port, post(id=id), [400, 404, 422])
        except Wrong as e:
            raise Wrong(f"{id}: {e}") from None


@check("resource", parses=True)
def after_refusal(port):
    """A refused POST leaves its connection in step, or closes it."""
    with Client(port) as c:
        status, _, _ = c.ask(post(token=None))
        expect(status == 401, f"status {status}")
        try:
            c.send(post())
            answer = c.answer()
        except (OSError, Wrong):
            return
        is_created(answer)


class Server:
    def __init__(self, peer, directory):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        argv = [w.format(peers=PEERS, addr=f"127.0.0.1:{self.port}") for w in peer["start"]]
        self.log = open(os.path.join(directory, "log"), "w+b")
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
                                        env={**os.environ, **peer["env"]}, start_new_session=True)

    def __enter__(self):
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.__exit__()
                    raise Wrong("did not start") from None
                time.sleep(0.05)

    def __exit__(self, *_):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sig)
                self.process.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
        self.process.wait()

    def said(self):
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").splitlines()
        return lines[0] if lines else "nothing"


def which(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def first_line(peer):
    argv = [which(peer["version"][0]) or peer["version"][0], *peer["version"][1:]]
    try:
        run = subprocess.run(argv, cwd=os.path.join(PEERS, peer["folder"]), capture_output=True, text=True, timeout=60)
        lines = (run.stdout or run.stderr).splitlines()
        return lines[0] if lines else "?"
    except (OSError, subprocess.TimeoutExpired):
        return "?"


def judge(peer, programs, build):
    """The line to print, and whether it is bad news."""
    if not which(peer["needs"]):
        return f"skipped because {peer['needs']} is missing ({programs[peer['needs']]})", False
    command = " ".join(peer["build"])
    if build and peer["build"]:
        run = subprocess.run(["nice", "-n", "10", *peer["build"]], cwd=os.path.join(PEERS, peer["folder"]),
                             capture_output=True, text=True)
        if run.returncode:
            last = (run.stderr.strip().splitlines() or ["no output"])[-1]
            return f"fails to build ({command}: {last})", True
    if not os.path.exists(os.path.join(PEERS, peer["built"])):
        return f"skipped because it is not built ({command} in {peer['folder']}, or check.py --build)", False
    asked, wrong, new = 0, [], False
    with tempfile.TemporaryDirectory() as directory:
        try:
            with Server(peer, directory) as server:
                for name, route, parses, function in CHECKS:
                    if route not in peer["routes"] or (parses and not peer["parses"]):
                        continue
                    asked += 1
                    try:
                        function(server.port)
                    except (Wrong, OSError, ValueError) as e:
                        known = name in peer["known"]
                        new |= not known
                        wrong.append(f"{name} ({e or type(e).__name__}{', known' if known else ''})")
                if "listening on" not in server.said():
                    wrong.append(f"first-line ({server.said()})")
                    new = True
        except Wrong as e:
            return f"fails: {e}", True
    line = f"fails {', '.join(wrong)}" if wrong else "ok"
    extra = "" if peer["parses"] else ", parses nothing"
    extra += "" if "resource" in peer["routes"] else ", GET alone"
    return f"{line} [{asked - len(wrong)} of {asked} checks{extra}; {first_line(peer)}]", new


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--build", action="store_true")
    args = parser.parse_args()
    with open(os.path.join(PEERS, "peers.json")) as f:
        manifest = json.load(f)
    unknown = set(args.names) - {p["name"] for p in manifest["peers"]}
    if unknown:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    bad = False
    for peer in manifest["peers"]:
        if not args.names or peer["name"] in args.names:
            line, new = judge(peer, manifest["programs"], args.build)
            print(f"{peer['name']:13} {line}", flush=True)
            bad |= new
    return bad


if __name__ == "__main__":
    sys.exit(main())
