//! Bits in network order, most significant first.

/// Reads the bits of a payload. Nothing here panics: every read says how much there must be.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    /// Starts at the first bit.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Bits that are left.
    pub fn remaining(&self) -> usize {
        (self.bytes.len() * 8).saturating_sub(self.position)
    }

    /// The next `count` bits, at most 16; bits behind the end are zero.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> usize {
        let byte = |index: usize| u32::from(self.bytes.get(index).copied().unwrap_or(0));
        let first = self.position / 8;
        let window = byte(first) << 16 | byte(first + 1) << 8 | byte(first + 2);
        let value = (window >> (24 - self.position % 8 - count)) & ((1 << count) - 1);
        self.position += count;
        value as usize
    }

    /// Leaves out `count` bits; `None` when there are not so many.
    pub(crate) fn skip(&mut self, count: usize) -> Option<()> {
        (count <= self.remaining()).then(|| self.position += count)
    }
}

/// Writes bits into a zeroed or dirty buffer that the caller made large enough.
pub struct BitWriter<'a> {
    bytes: &'a mut [u8],
    used: usize,
    pending: u64,
    count: usize,
}

impl<'a> BitWriter<'a> {
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, used: 0, pending: 0, count: 0 }
    }

    /// Appends the low `count` bits of `value`, at most 16.
    #[inline]
    pub fn put(&mut self, value: usize, count: usize) {
        self.pending = self.pending << count | value as u64;
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            self.push((self.pending >> self.count) as u8);
        }
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.used) {
            *slot = byte;
            self.used += 1;
        }
    }

    /// Fills the last byte with the terminator, a zero and then ones; returns the bytes used.
    pub fn finish(mut self) -> usize {
        if self.count > 0 {
            let rest = 8 - self.count;
            self.put((1 << (rest - 1)) - 1, rest);
        }
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_as_they_were_put() {
        let fields = [(0, 1), (3, 4), (63, 6), (1, 7), (0x1234, 16), (1, 1), (5, 3)];
        let mut bytes = [0xaa; 8];
        let mut writer = BitWriter::new(&mut bytes);
        for (value, count) in fields {
            writer.put(value, count);
        }
        assert_eq!(writer.finish(), 5);
        let mut reader = BitReader::new(&bytes[..5]);
        for (value, count) in fields {
            assert_eq!(reader.take(count), value);
        }
        assert_eq!(reader.remaining(), 2);
        assert_eq!(reader.take(2), 0b01, "terminator: a zero, then ones");
        assert_eq!(reader.take(7), 0, "nothing behind the end");
        assert_eq!(reader.skip(1), None);
    }
}
