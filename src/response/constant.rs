//! Answers made at compile time.

/// An answer made at compile time, but for Date and Connection. See `const` rows in [`routes!`](crate::routes).
#[derive(Debug)]
pub struct Constant {
    /// Status-line, Content-Type and Content-Length.
    pub(crate) head: &'static [u8],
    pub(crate) content: &'static [u8],
}

impl Constant {
    /// For [`routes!`](crate::routes): a head made by [`constant_head`] and the content that it measured.
    #[doc(hidden)]
    pub const fn new(head: &'static [u8], content: &'static [u8]) -> Constant {
        Constant { head, content }
    }
}

/// The head of a [`Constant`], in room enough for each of them.
#[doc(hidden)]
#[derive(Debug)]
pub struct ConstantHead {
    bytes: [u8; 128],
    len: usize,
}

impl ConstantHead {
    const fn new(media_type: &str, content_len: usize) -> ConstantHead {
        ConstantHead { bytes: [0; 128], len: 0 }
            .and("HTTP/1.1 200 OK\r\nContent-Type: ")
            .and(media_type)
            .and("\r\nContent-Length: ")
            .and_number(content_len)
            .and("\r\n")
    }

    const fn and(mut self, text: &str) -> ConstantHead {
        self.bytes.split_at_mut(self.len).1.split_at_mut(text.len()).0.copy_from_slice(text.as_bytes());
        self.len += text.len();
        self
    }

    const fn and_number(self, number: usize) -> ConstantHead {
        let mut head = if number >= 10 { self.and_number(number / 10) } else { self };
        head.bytes[head.len] = b'0' + (number % 10) as u8;
        head.len += 1;
        head
    }

    /// Status-line, Content-Type and Content-Length.
    pub const fn as_bytes(&self) -> &[u8] {
        self.bytes.split_at(self.len).0
    }
}

/// The kinds of `const` rows in [`routes!`](crate::routes), by the length of their content.
#[doc(hidden)]
#[allow(missing_docs)]
pub mod constant_head {
    use super::ConstantHead;

    pub const fn text(content_len: usize) -> ConstantHead {
        ConstantHead::new("text/plain; charset=utf-8", content_len)
    }

    pub const fn html(content_len: usize) -> ConstantHead {
        ConstantHead::new("text/html; charset=utf-8", content_len)
    }

    pub const fn json(content_len: usize) -> ConstantHead {
        ConstantHead::new("application/json", content_len)
    }
}
