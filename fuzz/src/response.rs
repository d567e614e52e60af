//! Answers: whatever a handler passes to the writer.

use std::sync::Arc;

use sprat::testing::Client;
use sprat::{Method, Reject, Respond, Response, Sent, Static, Status, routes};

use super::input::Input;
use super::strict::is_token;

/// What the handler is to write.
struct Plan {
    status: Option<Status>,
    fields: Vec<(String, Vec<u8>)>,
    content: Vec<u8>,
    kind: u8,
    close: bool,
}

routes! {
    Api for Plan {
        GET "/" => write(response),
    }
}

static LARGE: [u8; 40_000] = [b'x'; 40_000];

fn write<'r>(plan: &mut Plan, mut response: Response<'r>) -> Sent<'r> {
    if let Some(status) = plan.status {
        response = response.status(status);
    }
    for (name, value) in &plan.fields {
        response = response.field(name, value);
    }
    if plan.close {
        response = response.close();
    }
    match plan.kind % 7 {
        0 => response.body(&plan.content),
        1 => response.text(std::str::from_utf8(&plan.content).unwrap_or_default()),
        2 => response.empty(),
        3 => response.body_static(&LARGE),
        4 => response.body_shared(Arc::from(&LARGE[..])),
        5 => plan.content.clone().respond(response),
        _ => Static(&LARGE[..17_000]).field("X-Kind", "static").respond(response),
    }
}

/// What the writer accepts is read back equal by httparse, as one answer and nothing beside it; what it does not accept
/// becomes a 500 that holds none of it.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.byte();
    let status = Status::new(input.number() as u16 % 700);
    let kind = input.byte();
    let fields: Vec<_> = (0..input.below(5)).map(|_| (input.text(), input.bytes().to_vec())).collect();
    let content = input.rest().to_vec();
    let (to_head, http10, close) = (flags & 1 == 1, flags & 2 == 2, flags & 4 == 4);
    let expected = expected(status, kind, &fields, &content);

    let mut link = Client::new(Api, Plan { status, fields, content, kind, close }).into_link();
    let method = if to_head { "HEAD" } else { "GET" };
    let version = if http10 { "1.0\r\nConnection: keep-alive" } else { "1.1\r\nHost: x" };
    link.send(format!("{method} / HTTP/{version}\r\n\r\n").as_bytes());
    let found = Written::read(link.received(), to_head);
    assert_eq!(
        found.connection,
        if close {
            "close"
        } else if http10 {
            "keep-alive"
        } else {
            ""
        }
    );
    assert_eq!(link.is_write_shut(), close);
    assert_eq!((found.status, &found.fields), (expected.status, &expected.fields));
    let has_content = !matches!(found.status, 204 | 205 | 304);
    let len = if has_content { expected.content.len() } else { 0 };
    assert_eq!(found.len, if matches!(found.status, 204 | 304) { None } else { Some(len) });
    assert_eq!(found.content, if to_head { b"" } else { &expected.content[..len] });
    assert_eq!(link.answers_to(&[if to_head { Method::Head } else { Method::Get }]).len(), 1);
}

/// Status, fields and content as they are on the wire.
#[derive(Debug)]
struct Written {
    status: u16,
    connection: String,
    fields: Vec<(String, Vec<u8>)>,
    len: Option<usize>,
    content: Vec<u8>,
}

impl Written {
    fn read(bytes: &[u8], to_head: bool) -> Written {
        let mut slots = [httparse::EMPTY_HEADER; 16];
        let mut response = httparse::Response::new(&mut slots);
        let Ok(httparse::Status::Complete(head_len)) = response.parse(bytes) else {
            panic!("no answer: {}", bytes.escape_ascii());
        };
        let head = &bytes[..head_len];
        assert!(head.split(|&b| b == b'\n').all(|line| line.is_empty() || line.ends_with(b"\r")), "a bare LF");
        let mut written = Written {
            status: response.code.unwrap(),
            connection: String::new(),
            fields: Vec::new(),
            len: None,
            content: bytes[head_len..].to_vec(),
        };
        let mut dates = 0;
        for field in response.headers.iter() {
            let text = || std::str::from_utf8(field.value).unwrap();
            match field.name {
                "Date" => dates += 1,
                "Connection" => written.connection = text().to_owned(),
                "Content-Length" => assert_eq!(written.len.replace(text().parse().unwrap()), None),
                name => written.fields.push((name.to_owned(), field.value.to_vec())),
            }
        }
        assert_eq!(dates, 1);
        assert_eq!(written.content.len(), if to_head { 0 } else { written.len.unwrap_or(0) }, "more, or less, came");
        written
    }
}

fn expected(status: Option<Status>, kind: u8, fields: &[(String, Vec<u8>)], content: &[u8]) -> Written {
    let (media_type, content) = match kind % 7 {
        0 | 5 => ("application/octet-stream", content),
        1 => ("text/plain; charset=utf-8", std::str::from_utf8(content).unwrap_or_default().as_bytes()),
        2 => ("", &b""[..]),
        3 | 4 => ("application/octet-stream", &LARGE[..]),
        _ => ("application/octet-stream", &LARGE[..17_000]),
    };
    let code = status.unwrap_or(Status::OK).code();
    let mut written =
        Written { status: code, connection: String::new(), fields: Vec::new(), len: None, content: content.to_vec() };
    let own = ["content-length", "transfer-encoding", "connection", "date", "keep-alive", "upgrade", "trailer"];
    let extra = (kind % 7 == 6).then(|| ("X-Kind".to_owned(), b"static".to_vec()));
    for (name, value) in fields.iter().chain(&extra) {
        let is_text = |b: &u8| *b == b'\t' || (*b >= b' ' && *b != 0x7f);
        if !is_token(name.as_bytes()) || !value.iter().all(is_text) || own.contains(&&*name.to_ascii_lowercase()) {
            let sentence = Reject::HandlerFailed.sentence();
            let fields = vec![("Content-Type".to_owned(), b"text/plain; charset=utf-8".to_vec())];
            return Written { status: 500, fields, content: sentence.as_bytes().to_vec(), ..written };
        }
        let is_type = |name: &str| name.eq_ignore_ascii_case("content-type");
        if !is_type(name) || !written.fields.iter().any(|(name, _)| is_type(name)) {
            let blank = |b: &u8| matches!(b, b' ' | b'\t');
            let start = value.iter().position(|b| !blank(b)).unwrap_or(value.len());
            let end = value.iter().rposition(|b| !blank(b)).map_or(start, |last| last + 1);
            written.fields.push((name.clone(), value[start..end].to_vec()));
        }
    }
    let is_typed = written.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if !is_typed && !media_type.is_empty() && !matches!(code, 204 | 205 | 304) {
        written.fields.push(("Content-Type".to_owned(), media_type.as_bytes().to_vec()));
    }
    written
}
