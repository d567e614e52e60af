//! Receive buffers of connections whose message is partial, and the pool they come from.
//!
//! Every buffer ends in [`PADDING_LEN`] bytes that are never received into, so that a parser of content may read a few
//! bytes beyond its end without a copy.

use std::ops::Range;

/// How far beyond its end content may be read (not written, and without any effect on what is understood).
pub(crate) const PADDING_LEN: usize = 64;

/// A connection's own receive buffer. Empty, and without memory, most of the time.
///
/// INVARIANT: `start <= end <= buffer.len() - PADDING_LEN`, or all of them are zero.
#[derive(Debug, Default)]
pub(crate) struct Held {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Held {
    /// A buffer that begins with these bytes, and has room behind them.
    pub(crate) fn copy_of(bytes: &[u8], pool: &mut Pool) -> Held {
        let mut buffer = pool.take(bytes.len() + ROOM_LEN);
        buffer[..bytes.len()].copy_from_slice(bytes);
        Held { buffer, start: 0, end: bytes.len() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// The whole buffer, padding included.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    pub(crate) fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Forgets all bytes but these.
    pub(crate) fn keep(&mut self, kept: Range<usize>) {
        assert!(kept.start <= kept.end && kept.end <= self.end, "a range that was not held");
        (self.start, self.end) = (kept.start, kept.end);
    }

    /// `n` bytes came into [`recv_space`](Held::recv_space).
    pub(crate) fn received(&mut self, n: usize) {
        assert!(self.end + n + PADDING_LEN <= self.buffer.len(), "more bytes than there was room for");
        self.end += n;
    }

    /// Room for more bytes behind those that are held. Grows with what has come, never with what was announced.
    pub(crate) fn recv_space(&mut self, pool: &mut Pool) -> &mut [u8] {
        if self.room_len() < ROOM_LEN && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.room_len() < ROOM_LEN {
            pool.grow(&mut self.buffer, self.end);
        }
        let limit = self.buffer.len() - PADDING_LEN;
        &mut self.buffer[self.end..limit]
    }

    fn room_len(&self) -> usize {
        self.buffer.len().saturating_sub(PADDING_LEN + self.end)
    }

    /// Gives the memory back.
    pub(crate) fn recycle(self, pool: &mut Pool) {
        pool.give_back(self.buffer);
    }
}

/// Room that a buffer has at least before bytes are received into it.
const ROOM_LEN: usize = 512;

/// Buffers up to this size are kept for the next partial message; a few of them.
const POOLED_LEN_MAX: usize = 16 << 10;
const POOLED_COUNT_MAX: usize = 32;

/// Spare buffers of a loop, and the count of bytes that its connections hold.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    spare: Vec<Vec<u8>>,
    held_bytes: usize,
}

impl Pool {
    /// All bytes in buffers that connections hold.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// A buffer with room for `len` bytes and the padding.
    fn take(&mut self, len: usize) -> Vec<u8> {
        let needed = len + PADDING_LEN;
        let mut buffer = match self.spare.iter().rposition(|spare| spare.len() >= needed) {
            Some(at) => self.spare.swap_remove(at),
            None => Vec::new(),
        };
        if buffer.is_empty() {
            buffer = vec![0; needed.next_power_of_two().max(1024)];
        }
        self.held_bytes += buffer.len();
        buffer
    }

    /// Doubles a buffer of which `used` bytes are in use.
    fn grow(&mut self, buffer: &mut Vec<u8>, used: usize) {
        let needed = used + ROOM_LEN + PADDING_LEN;
        let len = needed.next_power_of_two().max(buffer.len() * 2);
        let mut larger = vec![0; len];
        larger[..used].copy_from_slice(&buffer[..used]);
        self.held_bytes += len;
        self.give_back(std::mem::replace(buffer, larger));
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.held_bytes -= buffer.len();
        if !buffer.is_empty() && buffer.len() <= POOLED_LEN_MAX && self.spare.len() < POOLED_COUNT_MAX {
            self.spare.push(buffer);
        }
    }
}
