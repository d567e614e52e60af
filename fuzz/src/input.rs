//! Takes an input apart into choices. What is missing is zero, so that every prefix of an input is an input.

/// What is left of an input.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(data: &'a [u8]) -> Input<'a> {
        Input(data)
    }

    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn number(&mut self) -> u64 {
        self.take(8).iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A length in one byte, and so many bytes.
    pub fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.take(len)
    }

    /// The same, as text, with whatever is no UTF-8 replaced.
    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// What of these bytes a field value may hold; the others are refused with the head.
pub fn sendable(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|&b| b == b'\t' || (b >= b' ' && b != 0x7f)).collect()
}

/// Three bytes that say where to cut.
#[derive(Clone, Copy)]
pub struct Cuts([u8; 3]);

impl Cuts {
    pub fn read(input: &mut Input<'_>) -> Cuts {
        Cuts([input.byte(), input.byte(), input.byte()])
    }

    /// Up to four pieces, possibly empty.
    pub fn pieces<'b>(&self, bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let step = bytes.len() / 256 + 1;
        let mut ends = self.0.map(|place| usize::from(place) * step % (bytes.len() + 1));
        ends.sort_unstable();
        let starts = [0].into_iter().chain(ends);
        starts.zip(ends.into_iter().chain([bytes.len()])).map(|(start, end)| &bytes[start..end]).collect()
    }
}
