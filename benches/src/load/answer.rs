//! Finds where an answer ends, and what it says, in bytes as they came.
//!
//! A server under load sends the same head again and again, with a new Date once a second. So the last head is
//! remembered, and one that is equal byte for byte is not read again: checking every answer costs a `memcmp`.

use memchr::memmem;

/// Reads answers of one kind of server. Shared by all connections.
#[derive(Debug, Default)]
pub struct Reader {
    known: Vec<u8>,
    facts: Facts,
    /// A chunked body, decoded.
    decoded: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Facts {
    status: u16,
    length: Length,
    close: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Length {
    #[default]
    UntilClose,
    Fixed(usize),
    Chunked,
}

/// One final answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Bytes from the start of the head to the end of the body.
    pub len: usize,
    /// Where the body begins. It ends at `len`, unless it was chunked.
    body_start: usize,
    chunked: bool,
    /// The server says that it will close.
    pub close: bool,
}

/// What the bytes hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A whole answer.
    Whole(Answer),
    /// The beginning of one, or nothing.
    Partial,
    /// No HTTP.
    Broken,
}

impl Reader {
    /// Reads the answer that `bytes` begin with. `is_head`: it answers HEAD. `eof`: no more bytes will come.
    #[inline]
    pub fn read(&mut self, bytes: &[u8], is_head: bool, eof: bool) -> Found {
        let mut start = 0;
        loop {
            let rest = &bytes[start..];
            let head_len = if !self.known.is_empty() && rest.starts_with(&self.known) {
                self.known.len()
            } else {
                let Some(end) = memmem::find(rest, b"\r\n\r\n") else {
                    let plausible = rest.len() < HEAD_LEN_MAX && b"HTTP/1.".iter().zip(rest).all(|(a, b)| a == b);
                    return if plausible { Found::Partial } else { Found::Broken };
                };
                let Some(facts) = read_head(&rest[..end]) else { return Found::Broken };
                self.known.clear();
                self.known.extend_from_slice(&rest[..end + 4]);
                self.facts = facts;
                end + 4
            };
            let body_start = start + head_len;
            let Facts { status, length, close } = self.facts;
            if status < 200 {
                start = body_start;
                continue;
            }
            let len = match length {
                _ if is_head || status == 204 || status == 304 => body_start,
                Length::Fixed(len) => body_start + len,
                Length::Chunked => match decode_chunks(&bytes[body_start..], &mut self.decoded) {
                    Chunks::Whole(len) => body_start + len,
                    Chunks::Partial => return Found::Partial,
                    Chunks::Broken => return Found::Broken,
                },
                Length::UntilClose if eof => bytes.len(),
                Length::UntilClose => return Found::Partial,
            };
            if len > bytes.len() {
                return Found::Partial;
            }
            return Found::Whole(Answer { status, len, body_start, chunked: length == Length::Chunked, close });
        }
    }

    /// The body of an answer that was just read from these bytes.
    pub fn body<'a>(&'a self, answer: &Answer, bytes: &'a [u8]) -> &'a [u8] {
        if answer.chunked { &self.decoded } else { &bytes[answer.body_start..answer.len] }
    }
}

/// A head longer than this is taken for something else.
const HEAD_LEN_MAX: usize = 64 << 10;

fn read_head(head: &[u8]) -> Option<Facts> {
    let mut lines = head.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let status_line = lines.next()?;
    let version_1_1 = status_line.starts_with(b"HTTP/1.1 ");
    if !version_1_1 && !status_line.starts_with(b"HTTP/1.0 ") {
        return None;
    }
    let status: u16 = std::str::from_utf8(status_line.get(9..12)?).ok()?.parse().ok()?;
    let mut facts = Facts { status, length: Length::UntilClose, close: !version_1_1 };
    for line in lines {
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            facts.length = Length::Fixed(std::str::from_utf8(value).ok()?.parse().ok()?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            facts.length = Length::Chunked;
        } else if name.eq_ignore_ascii_case(b"connection") {
            facts.close =
                value.eq_ignore_ascii_case(b"close") || (facts.close && !value.eq_ignore_ascii_case(b"keep-alive"));
        }
    }
    Some(facts)
}

enum Chunks {
    Whole(usize),
    Partial,
    Broken,
}

fn decode_chunks(bytes: &[u8], decoded: &mut Vec<u8>) -> Chunks {
    decoded.clear();
    let mut at = 0;
    loop {
        let Some(line_len) = memmem::find(&bytes[at..], b"\r\n") else { return Chunks::Partial };
        let line = &bytes[at..at + line_len];
        let size = line.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
        let Some(size) = std::str::from_utf8(size).ok().and_then(|size| usize::from_str_radix(size, 16).ok()) else {
            return Chunks::Broken;
        };
        at += line_len + 2;
        if size == 0 {
            break;
        }
        match bytes.get(at..at.saturating_add(size)) {
            Some(data) => decoded.extend_from_slice(data),
            None => return Chunks::Partial,
        }
        at += size;
        match bytes.get(at..at + 2) {
            Some(b"\r\n") => at += 2,
            Some(_) => return Chunks::Broken,
            None => return Chunks::Partial,
        }
    }
    // The trailer section ends with an empty line.
    loop {
        match memmem::find(&bytes[at..], b"\r\n") {
            Some(0) => return Chunks::Whole(at + 2),
            Some(len) => at += len + 2,
            None => return Chunks::Partial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `wire` at every split: partial until it is whole, then this status, body and rest.
    #[track_caller]
    fn check(wire: &str, status: u16, body: &str, rest: usize) {
        let wire = wire.as_bytes();
        let whole = wire.len() - rest;
        let mut reader = Reader::default();
        for _ in 0..2 {
            for end in 0..whole {
                assert_eq!(reader.read(&wire[..end], false, false), Found::Partial, "{end} bytes");
            }
            let Found::Whole(answer) = reader.read(wire, false, false) else { panic!("not whole") };
            assert_eq!((answer.status, answer.len), (status, whole));
            assert_eq!(reader.body(&answer, wire), body.as_bytes());
        }
    }

    #[test]
    fn an_answer_ends_where_its_length_says() {
        check("HTTP/1.1 200 OK\r\nContent-length: 5\r\n\r\nhelloHTTP/1.1 200", 200, "hello", 12);
        check("HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n", 204, "", 0);
    }

    #[test]
    fn chunks_are_joined() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(&format!("{head}3\r\nabc\r\na;x=y\r\n0123456789\r\n0\r\n\r\nHTTP"), 200, "abc0123456789", 4);
        check(&format!("{head}0\r\nTrailer: x\r\n\r\n"), 200, "", 0);
    }

    #[test]
    fn an_interim_answer_is_passed_over() {
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 C\r\nContent-Length: 0\r\n\r\n", 201, "", 0);
    }

    #[test]
    fn an_answer_without_a_length_ends_with_the_connection() {
        let (mut reader, wire) = (Reader::default(), b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall");
        assert_eq!(reader.read(wire, false, false), Found::Partial);
        let Found::Whole(answer) = reader.read(wire, false, true) else { panic!("not whole") };
        assert!(answer.close);
        assert_eq!(reader.body(&answer, wire), b"all");
    }

    #[test]
    fn a_changed_head_is_read_again() {
        let mut reader = Reader::default();
        for (wire, status) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200),
            ("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", 500),
        ] {
            let Found::Whole(answer) = reader.read(wire.as_bytes(), false, false) else { panic!("not whole") };
            assert_eq!(answer.status, status);
        }
    }

    #[test]
    fn what_is_not_http_is_broken() {
        let mut reader = Reader::default();
        assert_eq!(reader.read(b"SSH-2.0", false, false), Found::Broken);
        assert_eq!(reader.read(b"HTTP/1.1 abc\r\n\r\n", false, false), Found::Broken);
    }
}
