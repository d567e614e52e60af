//! Requests with a number in them, and the answers expected to them.
//!
//! A text may hold `{n}`, which becomes the number of the request. Rendering appends to a buffer of the caller's, so a
//! request costs no allocation.

/// A text that may hold `{n}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    Number,
    /// The length of the body that follows.
    BodyLen,
}

impl Text {
    /// Takes a text apart at each `{n}`. Braces around anything else mean nothing.
    pub fn parse(text: &str) -> Text {
        let mut parts = Vec::new();
        for (at, piece) in text.split("{n}").enumerate() {
            if at > 0 {
                parts.push(Part::Number);
            }
            if !piece.is_empty() {
                parts.push(Part::Bytes(piece.into()));
            }
        }
        Text { parts }
    }

    /// Appends the text for request `n`.
    pub fn write(&self, n: u64, to: &mut Vec<u8>) {
        self.write_with(n, 0, to);
    }

    fn write_with(&self, n: u64, body_len: usize, to: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Bytes(bytes) => to.extend_from_slice(bytes),
                Part::Number => write_number(n, to),
                Part::BodyLen => write_number(body_len as u64, to),
            }
        }
    }

    /// How long the text for request `n` is.
    pub fn len(&self, n: u64) -> usize {
        let part_len = |part: &Part| match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Number | Part::BodyLen => digits(n),
        };
        self.parts.iter().map(part_len).sum()
    }

    /// Whether `bytes` is the text for request `n`.
    pub fn matches(&self, n: u64, mut bytes: &[u8]) -> bool {
        let mut number = Vec::new();
        for part in &self.parts {
            let expected: &[u8] = match part {
                Part::Bytes(expected) => expected,
                Part::Number | Part::BodyLen => {
                    number.clear();
                    write_number(n, &mut number);
                    &number
                }
            };
            match bytes.strip_prefix(expected) {
                Some(rest) => bytes = rest,
                None => return false,
            }
        }
        bytes.is_empty()
    }

    /// Whether all requests get the same text.
    pub fn is_constant(&self) -> bool {
        !self.parts.contains(&Part::Number)
    }

    fn push(&mut self, text: &str) {
        self.parts.extend(Text::parse(text).parts);
    }
}

/// A request to be rendered again and again.
#[derive(Clone, Debug)]
pub struct Request {
    head: Text,
    body: Text,
    is_head: bool,
}

impl Request {
    /// A request with these field lines, `Host` and, where there is a body, `Content-Length` aside, which are added.
    pub fn new(method: &str, target: &str, host: &str, fields: &[(String, String)], body: Option<&str>) -> Request {
        let mut head = Text::default();
        head.push(&format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n"));
        for (name, value) in fields {
            head.push(&format!("{name}: {value}\r\n"));
        }
        if body.is_some() {
            head.push("Content-Length: ");
            head.parts.push(Part::BodyLen);
            head.push("\r\n");
        }
        head.push("\r\n");
        Request { head, body: Text::parse(body.unwrap_or_default()), is_head: method == "HEAD" }
    }

    /// Appends request `n`.
    pub fn write(&self, n: u64, to: &mut Vec<u8>) {
        self.head.write_with(n, self.body.len(n), to);
        self.body.write(n, to);
    }

    /// Whether all requests are the same bytes.
    pub fn is_constant(&self) -> bool {
        self.head.is_constant() && self.body.is_constant()
    }

    /// Whether the answer has no content whatever its fields say.
    pub fn is_head(&self) -> bool {
        self.is_head
    }
}

fn digits(n: u64) -> usize {
    n.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn write_number(mut n: u64, to: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    to.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_gets_its_number_and_the_length_of_its_body() {
        let request = Request::new("POST", "/item/{n}", "x", &[("A".into(), "b{n}".into())], Some(r#"{"id":{n}}"#));
        let mut bytes = Vec::new();
        request.write(1234, &mut bytes);
        let expected = "POST /item/1234 HTTP/1.1\r\nHost: x\r\nA: b1234\r\nContent-Length: 11\r\n\r\n{\"id\":1234}";
        assert_eq!(std::str::from_utf8(&bytes), Ok(expected));
        assert!(!request.is_constant());
    }

    #[test]
    fn a_text_knows_its_length_and_its_own_bytes() {
        let text = Text::parse("id {n} of {m}");
        for n in [0, 9, 10, 99, 100, u64::MAX] {
            let mut bytes = Vec::new();
            text.write(n, &mut bytes);
            assert_eq!(bytes.len(), text.len(n));
            assert!(text.matches(n, &bytes));
            assert!(!text.matches(n ^ 1, &bytes));
            assert!(!text.matches(n, &bytes[1..]));
        }
    }
}
