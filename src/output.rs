//! The write buffer: answers are appended behind each other and leave in one `send`.
//!
//! Small content is copied behind its head. Large content that is not ours to copy stays where it is and is woven in
//! when the bytes go out (`writev`). Knows bytes, not HTTP; see `response` for what is written.

use std::any::Any;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use crate::date::DateLine;
use crate::limits::MERGED_BYTES_MAX;
use crate::status::Status;

/// Content up to this size is copied behind its head; one copy of 16 KiB costs less than a second segment.
pub(crate) const COPY_BYTES_MAX: usize = 16 << 10;

/// Bytes that go out from where they are.
#[derive(Clone, Debug)]
pub(crate) enum Borrowed {
    Static(&'static [u8]),
    Shared(Arc<[u8]>),
    Owned(Vec<u8>),
}

impl Borrowed {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Borrowed::Static(bytes) => bytes,
            Borrowed::Shared(bytes) => bytes,
            Borrowed::Owned(bytes) => bytes,
        }
    }
}

/// The loop's write buffer and what the answer being written needs beside it.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// Large content and the offset in `bytes` that it stands before, in rising order.
    pieces: Vec<(usize, Borrowed)>,
    pieces_len: usize,
    /// Field lines of the answer being written. They wait here because the status-line comes before them.
    pub(crate) field_lines: Vec<u8>,
    /// Field lines of whatever answers this request: `field_lines` begins with them, also after it is rolled back.
    common_lines: Vec<u8>,
    /// The value just written as an answer, kept so that a mapper can rewrite it. Its type is `response`'s business.
    pub(crate) source: Option<Box<dyn Any + Send>>,
    pub(crate) date: DateLine,
    /// Why an answer could not be written as its handler wanted it, until somebody is told.
    pub(crate) fault: Option<&'static str>,
}

/// A place to return to when an answer turns out to be impossible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes: usize,
    pieces: usize,
}

impl Output {
    pub(crate) fn new(unix_seconds: u64) -> Output {
        Output {
            bytes: Vec::with_capacity(4096),
            pieces: Vec::new(),
            pieces_len: 0,
            field_lines: Vec::new(),
            common_lines: Vec::new(),
            source: None,
            date: DateLine::new(unix_seconds),
            fault: None,
        }
    }

    /// All bytes that wait here, content by reference included.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.pieces_len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), pieces: self.pieces.len() }
    }

    /// The status of the answer that begins at the mark, and its length. `None` if nothing is written there.
    #[cold]
    pub(crate) fn written_since(&self, mark: Mark) -> Option<(Status, usize)> {
        let written = self.bytes.get(mark.bytes..)?;
        let code = written.strip_prefix(b"HTTP/1.1 ")?.first_chunk::<3>()?;
        let code = code.iter().fold(0, |code, digit| code * 10 + u16::from(digit.wrapping_sub(b'0')));
        let pieces: usize = self.pieces.iter().skip(mark.pieces).map(|(_, piece)| piece.as_slice().len()).sum();
        Some((Status::new(code)?, written.len() + pieces))
    }

    /// Forgets everything written since the mark.
    #[cold]
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        for (_, piece) in self.pieces.drain(mark.pieces..) {
            self.pieces_len -= piece.as_slice().len();
        }
        self.field_lines.clone_from(&self.common_lines);
    }

    /// What `write` appends are field lines of whatever answers this request, until [`Output::clear_common`].
    #[cold]
    pub(crate) fn set_common(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.common_lines.clear();
        write(&mut self.common_lines);
        self.field_lines.clone_from(&self.common_lines);
    }

    /// Such lines, to be kept for an answer that comes later.
    #[cold]
    pub(crate) fn common(&self) -> Box<[u8]> {
        self.common_lines.as_slice().into()
    }

    /// The request is answered.
    #[cold]
    pub(crate) fn clear_common(&mut self) {
        self.common_lines.clear();
        self.field_lines.clear();
    }

    /// Whether fields were given to the answer being written, beside those that every answer has.
    pub(crate) fn has_own_fields(&self) -> bool {
        self.field_lines.len() > self.common_lines.len()
    }

    /// Takes those fields away. `None` if they are no text; then they stay.
    #[cold]
    pub(crate) fn take_own_fields(&mut self) -> Option<Vec<(String, String)>> {
        let common_len = self.common_lines.len();
        let own = std::str::from_utf8(self.field_lines.get(common_len..)?).ok()?;
        let pairs = own.split("\r\n").filter_map(|line| line.split_once(": "));
        let fields = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        self.field_lines.truncate(common_len);
        Some(fields)
    }

    /// Puts other bytes in the place of those that the answer since the mark begins with, if it begins with these.
    #[cold]
    pub(crate) fn replace_start(&mut self, mark: Mark, old: &[u8], new: &[u8]) {
        if !self.bytes.get(mark.bytes..).is_some_and(|written| written.starts_with(old)) {
            return;
        }
        let rest = self.bytes.split_off(mark.bytes + old.len());
        self.bytes.truncate(mark.bytes);
        self.bytes.extend_from_slice(new);
        self.bytes.extend_from_slice(&rest);
        for (at, _) in &mut self.pieces[mark.pieces..] {
            *at = *at - old.len() + new.len();
        }
    }

    /// Appends content by reference, whatever its size.
    pub(crate) fn push_borrowed(&mut self, content: Borrowed) {
        self.pieces_len += content.as_slice().len();
        self.pieces.push((self.bytes.len(), content));
    }

    /// Whether everything is in `bytes`, so that one plain `send` will do.
    pub(crate) fn is_plain(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The waiting bytes in order, in up to `N` segments.
    pub(crate) fn slices<'a, const N: usize>(&'a self, slices: &mut [IoSlice<'a>; N]) -> usize {
        let mut filled = 0;
        let mut from = 0;
        let tail = (self.bytes.len(), None);
        for (at, piece) in self.pieces.iter().map(|(at, p)| (*at, Some(p))).chain([tail]) {
            for part in [&self.bytes[from..at], piece.map_or(&[][..], Borrowed::as_slice)] {
                if !part.is_empty() && filled < N {
                    slices[filled] = IoSlice::new(part);
                    filled += 1;
                }
            }
            from = at;
        }
        filled
    }

    /// Empties the buffer, keeping its room unless it grew out of proportion.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEEP_BYTES_MAX || !self.pieces.is_empty() {
            self.clear_unusual();
        }
    }

    #[cold]
    fn clear_unusual(&mut self) {
        self.bytes.shrink_to(KEEP_BYTES_MAX);
        self.pieces.clear();
        self.pieces_len = 0;
    }

    /// Moves what is left after `sent` bytes to the end of a connection's own queue.
    #[cold]
    pub(crate) fn move_rest(&mut self, sent: usize, to: &mut Unsent) {
        let mut skip = sent;
        let mut from = 0;
        let pieces = std::mem::take(&mut self.pieces);
        let tail = (self.bytes.len(), None);
        for (at, piece) in pieces.into_iter().map(|(at, p)| (at, Some(p))).chain([tail]) {
            let copied = &self.bytes[from..at];
            to.push(Borrowed::Owned(copied.get(skip..).unwrap_or_default().to_vec()), 0);
            skip = skip.saturating_sub(copied.len());
            if let Some(piece) = piece {
                let len = piece.as_slice().len();
                to.push(piece, skip.min(len));
                skip = skip.saturating_sub(len);
            }
            from = at;
        }
        self.pieces_len = 0;
        self.clear();
    }
}

const _: () = assert!(MERGED_BYTES_MAX >= 2 * COPY_BYTES_MAX, "two of the largest answers that are copied fit in one");

/// The loop's write buffer keeps this much room between turns.
const KEEP_BYTES_MAX: usize = 256 << 10;

/// Output that a peer has not taken yet, owned by its connection.
///
/// INVARIANT: `len` is the sum of the segments minus `first_sent`, and no segment is empty.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    segments: VecDeque<Borrowed>,
    first_sent: usize,
    len: usize,
}

impl Unsent {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory behind it, the parts included that were sent already.
    pub(crate) fn held_bytes(&self) -> usize {
        let memory = |segment: &Borrowed| match segment {
            Borrowed::Owned(bytes) => bytes.capacity(),
            Borrowed::Static(_) | Borrowed::Shared(_) => 0,
        };
        self.segments.iter().map(memory).sum()
    }

    /// Appends a segment of which the first `sent` bytes are gone already.
    fn push(&mut self, mut segment: Borrowed, sent: usize) {
        let len = segment.as_slice().len() - sent;
        if len == 0 {
            return;
        }
        if self.segments.is_empty() {
            self.first_sent = sent;
        } else if sent > 0 {
            segment = Borrowed::Owned(segment.as_slice()[sent..].to_vec());
        }
        self.len += len;
        // Many small answers to a slow reader would otherwise become many small segments. Not without end: the memory
        // of a segment comes back once all of it is sent, and a reader may always leave a little.
        if let (Some(Borrowed::Owned(last)), Borrowed::Owned(new)) = (self.segments.back_mut(), &segment)
            && last.len() + new.len() <= MERGED_BYTES_MAX
        {
            last.extend_from_slice(new);
            return;
        }
        self.segments.push_back(segment);
    }

    /// The waiting bytes in order, in up to `N` segments.
    pub(crate) fn slices<'a, const N: usize>(&'a self, slices: &mut [IoSlice<'a>; N]) -> usize {
        let mut filled = 0;
        let mut skip = self.first_sent;
        for (slot, segment) in slices.iter_mut().zip(&self.segments) {
            *slot = IoSlice::new(&segment.as_slice()[skip..]);
            skip = 0;
            filled += 1;
        }
        filled
    }

    /// Forgets bytes that were sent.
    pub(crate) fn advance(&mut self, sent: usize) {
        assert!(sent <= self.len, "more bytes sent than there were");
        self.len -= sent;
        self.first_sent += sent;
        while let Some(first) = self.segments.front() {
            let len = first.as_slice().len();
            if self.first_sent < len {
                break;
            }
            self.first_sent -= len;
            self.segments.pop_front();
        }
    }
}
