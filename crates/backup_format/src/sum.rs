//! Checksum of a file whose pieces come in any order, each byte at most once. Bytes that never come are
//! zeros.

use std::collections::BTreeMap;

use crate::manifest::Crc;

/// Two pieces have bytes in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Offset of the piece that came later.
    pub offset: u64,
}

/// Checksums of the pieces so far. Pieces that touch become one, so memory grows with the gaps.
#[derive(Clone, Debug, Default)]
pub struct FileSum {
    /// Pieces by offset: length and checksum.
    pieces: BTreeMap<u64, (u64, u32)>,
}

impl FileSum {
    /// Adds a piece.
    pub fn add(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Overlap> {
        if bytes.is_empty() {
            return Ok(());
        }
        let overlap = Overlap { offset };
        let mut piece = (offset, bytes.len() as u64, crc32c::crc32c(bytes));
        let end = offset.checked_add(piece.1).ok_or(overlap)?;
        let before = self.pieces.range(..=offset).next_back().map(|(at, piece)| (*at, *piece));
        let after = self.pieces.range(offset..).next().map(|(at, piece)| (*at, *piece));
        if before.is_some_and(|(at, (len, _))| at + len > offset) || after.is_some_and(|(at, _)| at < end) {
            return Err(overlap);
        }
        if let Some((at, (len, crc))) = before.filter(|(at, (len, _))| at + len == offset) {
            piece = (at, len + piece.1, combined(crc, piece.2, piece.1));
        }
        if let Some((at, (len, crc))) = after.filter(|(at, _)| *at == end) {
            self.pieces.remove(&at);
            piece = (piece.0, piece.1 + len, combined(piece.2, crc, len));
        }
        self.pieces.insert(piece.0, (piece.1, piece.2));
        Ok(())
    }

    /// Returns the end of the last piece.
    pub fn end(&self) -> u64 {
        self.pieces.last_key_value().map_or(0, |(at, (len, _))| at + len)
    }

    /// Returns the pieces: offset, length, checksum. No two of them touch.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, u64, Crc)> {
        self.pieces.iter().map(|(at, (len, crc))| (*at, *len, Crc(*crc)))
    }

    /// Returns the checksum of a file of this size.
    ///
    /// # Panics
    /// When a piece is beyond the size.
    pub fn of_file(&self, size: u64) -> Crc {
        assert!(self.end() <= size, "a piece beyond the end of its file");
        let (mut crc, mut end) = (0, 0);
        for (at, (len, piece)) in &self.pieces {
            crc = combined(combined(crc, of_zeros(at - end), at - end), *piece, *len);
            end = at + len;
        }
        Crc(combined(crc, of_zeros(size - end), size - end))
    }
}

/// Returns the checksum of two pieces, one after the other, of their checksums.
fn combined(first: u32, second: u32, second_len: u64) -> u32 {
    match second_len {
        0 => first,
        len => crc32c::crc32c_combine(first, second, len as usize),
    }
}

/// Returns the checksum of this number of zeros.
fn of_zeros(mut len: u64) -> u32 {
    let (mut crc, mut done) = (0, 0);
    // Powers of two, each made of two halves.
    let (mut power, mut power_len) = (crc32c::crc32c(&[0]), 1);
    while len > 0 {
        if len & 1 == 1 {
            crc = if done == 0 { power } else { combined(crc, power, power_len) };
            done += power_len;
        }
        len >>= 1;
        if len > 0 {
            power = combined(power, power, power_len);
            power_len *= 2;
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_give_the_checksum_of_the_file() {
        let file: Vec<u8> = (0..10_000_u32).map(|n| if n % 977 < 300 { 0 } else { (n * 31) as u8 }).collect();
        for seed in 0..200_usize {
            let mut cuts: Vec<usize> = (0..8).map(|n| (seed * 7919 + n * n * 1237) % file.len()).collect();
            cuts.extend([0, file.len()]);
            cuts.sort_unstable();
            let mut ranges: Vec<(usize, usize)> = cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
            ranges.rotate_left(seed % 9);
            if seed % 2 == 0 {
                ranges.reverse();
            }
            let mut expected = file.clone();
            let mut sum = FileSum::default();
            for (n, (from, to)) in ranges.into_iter().enumerate() {
                match (n + seed) % 5 {
                    // Left out: zeros.
                    0 => expected[from..to].fill(0),
                    _ => sum.add(from as u64, &file[from..to]).expect("no overlap"),
                }
            }
            assert_eq!(sum.of_file(file.len() as u64), Crc(crc32c::crc32c(&expected)), "seed {seed}");
        }
    }

    #[test]
    fn a_byte_comes_once() {
        let mut sum = FileSum::default();
        sum.add(10, b"0123456789").expect("first");
        for (offset, len) in [(10, 1), (5, 6), (19, 5), (0, 100), (12, 2)] {
            assert_eq!(sum.add(offset, &vec![1; len]), Err(Overlap { offset }));
        }
        sum.add(20, b"x").expect("touches");
        sum.add(9, b"y").expect("touches");
        assert_eq!(sum.pieces().map(|(at, len, _)| (at, len)).collect::<Vec<_>>(), [(9, 12)]);
        assert_eq!(FileSum::default().of_file(0), Crc(0));
        assert_eq!(FileSum::default().of_file(5000), Crc(crc32c::crc32c(&[0; 5000])));
    }
}
