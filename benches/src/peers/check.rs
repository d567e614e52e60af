//! Asks a server what the benchmark will ask, and what it must refuse. A figure of a server that answers wrongly is
//! worth nothing, so the ladder asks first.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{Kind, Peer, Running};
use crate::load::answer::{Found, Reader};

/// The content that `GET /` must have.
pub const HELLO: &str = "Hello, World!";
/// The resource's target, and the body and fields that are posted to it.
pub const RESOURCE: &str = "/api/v1/resource/42";
/// What is posted.
pub const RESOURCE_BODY: &str = r#"{"name":"alice","active":true}"#;
/// And with which fields.
pub const RESOURCE_FIELDS: [&str; 2] = ["Content-Type: application/json", "Authorization: Bearer secret-token"];
/// What must come back.
pub const RESOURCE_ANSWER: &str = r#"{"status":"success","id":42,"data":{"name":"alice","active":true}}"#;

type Result<T> = std::result::Result<T, String>;

/// How one server did.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Checks that were made.
    pub asked: usize,
    /// Checks that failed, with what was wrong; the known ones apart.
    pub wrong: Vec<String>,
    /// Failed as `peers.json` says it would.
    pub known: Vec<String>,
}

/// Starts the server and asks it everything that it claims to serve.
pub fn check(peer: &Peer) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    for kind in [Kind::Hello, Kind::Resource] {
        if !peer.serves(kind) {
            continue;
        }
        let server = Running::start(peer, kind, None, &[])?;
        for check in CHECKS.iter().filter(|check| check.kind == kind && (peer.parses || !check.refuses)) {
            verdict.asked += 1;
            if let Err(what) = (check.run)(server.address) {
                let known = peer.known.iter().any(|known| known == check.name);
                let list = if known { &mut verdict.known } else { &mut verdict.wrong };
                list.push(format!("{} ({what})", check.name));
            }
        }
    }
    Ok(verdict)
}

struct Check {
    name: &'static str,
    kind: Kind,
    /// It asks for something that only a server which reads its requests can do.
    refuses: bool,
    run: fn(SocketAddr) -> Result<()>,
}

const fn on_hello(name: &'static str, refuses: bool, run: fn(SocketAddr) -> Result<()>) -> Check {
    Check { name, kind: Kind::Hello, refuses, run }
}

const fn on_resource(name: &'static str, refuses: bool, run: fn(SocketAddr) -> Result<()>) -> Check {
    Check { name, kind: Kind::Resource, refuses, run }
}

const CHECKS: [Check; 13] = [
    on_hello("hello", false, |at| Client::connect(at)?.expect(&get("/", ""), 1, 200, HELLO)),
    on_hello("keep-alive", false, |at| {
        let mut client = Client::connect(at)?;
        (0..20).try_for_each(|_| client.expect(&get("/", ""), 1, 200, HELLO))
    }),
    on_hello("pipelined", false, |at| Client::connect(at)?.expect(&get("/", "").repeat(16), 16, 200, HELLO)),
    on_hello("byte-by-byte", false, |at| {
        let mut client = Client::connect(at)?;
        let request = get("/", "");
        for byte in request.as_bytes() {
            client.send(std::slice::from_ref(byte))?;
            std::thread::sleep(Duration::from_millis(1));
        }
        client.expect("", 1, 200, HELLO)
    }),
    on_hello("close", true, |at| {
        let mut client = Client::connect(at)?;
        client.expect(&get("/", "Connection: close\r\n"), 1, 200, HELLO)?;
        client.expect_end()
    }),
    on_hello("not-found", true, |at| refused(at, &get("/nowhere", ""), &[404]).map(drop)),
    on_resource("create", false, |at| {
        let mut client = Client::connect(at)?;
        (0..3).try_for_each(|_| client.expect(&post("42", RESOURCE_BODY, true), 1, 200, RESOURCE_ANSWER))
    }),
    on_resource("create-pipelined", false, |at| {
        Client::connect(at)?.expect(&post("42", RESOURCE_BODY, true).repeat(8), 8, 200, RESOURCE_ANSWER)
    }),
    on_resource("create-in-parts", false, |at| {
        let mut client = Client::connect(at)?;
        let request = post("42", RESOURCE_BODY, true);
        for part in request.as_bytes().chunks(request.len() / 5) {
            client.send(part)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        client.expect("", 1, 200, RESOURCE_ANSWER)
    }),
    on_resource("no-token", true, |at| {
        let body = refused(at, &post("42", RESOURCE_BODY, false), &[401])?;
        // How the refusal is worded is a server's own matter, but it is one.
        if body.is_empty() { Err("no content with the 401".into()) } else { Ok(()) }
    }),
    on_resource("wrong-body", true, |at| {
        let bodies = [
            r#"{"name":1,"active":true}"#,
            r#"{"name":"alice","active":"yes"}"#,
            r#"{"name":"alice"}"#,
            r#"{"active":true}"#,
            r#"{"name":"alice","#,
            "[]",
            "null",
        ];
        bodies.iter().try_for_each(|body| {
            refused(at, &post("42", body, true), &[400, 415, 422]).map(drop).map_err(|e| format!("{body}: {e}"))
        })
    }),
    on_resource("wrong-id", true, |at| {
        ["abc", "-4", "4.5", "42x", "99999999999999999999"].iter().try_for_each(|id| {
            let request = post(id, RESOURCE_BODY, true);
            refused(at, &request, &[400, 404, 422]).map(drop).map_err(|e| format!("{id}: {e}"))
        })
    }),
    on_resource("after-refusal", true, |at| {
        let mut client = Client::connect(at)?;
        client.send(post("42", RESOURCE_BODY, false).as_bytes())?;
        let (status, _) = client.answer()?;
        if status != 401 {
            return Err(format!("status {status}"));
        }
        // It leaves its connection in step, or closes it.
        match client.send(post("42", RESOURCE_BODY, true).as_bytes()).and_then(|()| client.answer()) {
            Ok((200, body)) if body == RESOURCE_ANSWER.as_bytes() => Ok(()),
            Ok((status, _)) => Err(format!("status {status} on the next request")),
            Err(_) => Ok(()),
        }
    }),
];

fn get(target: &str, field: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{field}\r\n")
}

fn post(id: &str, body: &str, token: bool) -> String {
    let token = if token { format!("{}\r\n", RESOURCE_FIELDS[1]) } else { String::new() };
    let (kind, len) = (RESOURCE_FIELDS[0], body.len());
    format!(
        "POST /api/v1/resource/{id} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n{token}Content-Length: {len}\r\n\r\n{body}"
    )
}

fn refused(at: SocketAddr, request: &str, statuses: &[u16]) -> Result<Vec<u8>> {
    let mut client = Client::connect(at)?;
    client.send(request.as_bytes())?;
    let (status, body) = client.answer()?;
    if !statuses.contains(&status) {
        return Err(format!("status {status}"));
    }
    client.expect_nothing()?;
    Ok(body)
}

/// One connection. Answers are read by their own length, so a wrong length shows.
struct Client {
    stream: TcpStream,
    reader: Reader,
    input: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Client> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).map_err(|e| e.to_string())?;
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(5))));
        set.map_err(|e| e.to_string())?;
        Ok(Client { stream, reader: Reader::default(), input: Vec::new() })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(|e| e.to_string())
    }

    /// Sends a request and expects so many answers like this, and nothing behind them.
    fn expect(&mut self, request: &str, count: usize, status: u16, body: &str) -> Result<()> {
        self.send(request.as_bytes())?;
        for _ in 0..count {
            let (got, content) = self.answer()?;
            if got != status {
                return Err(format!("status {got}"));
            }
            if content != body.as_bytes() {
                return Err(format!("body {}", content.escape_ascii()));
            }
        }
        self.expect_nothing()
    }

    fn answer(&mut self) -> Result<(u16, Vec<u8>)> {
        loop {
            match self.reader.read(&self.input, false, false) {
                Found::Whole(answer) => {
                    let body = self.reader.body(&answer, &self.input).to_vec();
                    self.input.drain(..answer.len);
                    return Ok((answer.status, body));
                }
                Found::Broken => return Err("no HTTP".into()),
                Found::Partial => {
                    if self.receive()? == 0 {
                        return Err("closed without an answer".into());
                    }
                }
            }
        }
    }

    fn receive(&mut self) -> Result<usize> {
        let mut buffer = [0; 16 << 10];
        let n = self.stream.read(&mut buffer).map_err(|e| e.to_string())?;
        self.input.extend_from_slice(&buffer[..n]);
        Ok(n)
    }

    fn expect_nothing(&mut self) -> Result<()> {
        let _ = self.stream.set_read_timeout(Some(Duration::from_millis(20)));
        let _ = self.receive();
        let _ = self.stream.set_read_timeout(Some(Duration::from_secs(5)));
        if self.input.is_empty() { Ok(()) } else { Err(format!("{} bytes too many", self.input.len())) }
    }

    fn expect_end(&mut self) -> Result<()> {
        let _ = self.stream.set_read_timeout(Some(Duration::from_secs(2)));
        match self.stream.read(&mut [0; 64]) {
            Ok(0) => Ok(()),
            Ok(_) => Err("more after the last answer".into()),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err("Connection: close ignored".into())
            }
            Err(e) => Err(e.to_string()),
        }
    }
}
