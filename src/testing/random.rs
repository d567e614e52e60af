//! The only source of chance in a simulation.

/// A small generator: the same seed gives the same numbers, everywhere and for ever (xorshift64*, Vigna 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        // Neighbouring seeds must not begin alike (the finisher of splitmix64).
        let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Random((mixed ^ (mixed >> 31)) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0 to `bound`, exclusive; 0 if there is nothing below it.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The high bits are the good ones.
        (self.next() >> 11) % bound.max(1)
    }

    /// From `least` to `most`, inclusive.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    /// As [`between`](Random::between), for lengths.
    pub(crate) fn len(&mut self, least: usize, most: usize) -> usize {
        self.between(least as u64, most as u64) as usize
    }

    /// From 0 to `most`, small numbers as often as large ones.
    pub(crate) fn any_size(&mut self, most: usize) -> usize {
        let bits = self.below(u64::from(usize::BITS - most.leading_zeros()) + 1);
        self.below(1 << bits).min(most as u64) as usize
    }

    /// True this often in a thousand.
    pub(crate) fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < u64::from(per_mille)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.len(0, from.len() - 1)]
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.len(0, last));
        }
    }
}
