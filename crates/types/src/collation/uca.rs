//! Weights of the unicode_ci collations: Unicode Collation Algorithm 4.0.0, first level, one to eight weights
//! a character, none for what is ignored.
//!
//! `uca400.bin` was recorded from a MariaDB 10.11.19: for every code point `c` of the Basic Multilingual
//! Plane but the surrogates `HEX(WEIGHT_STRING(c COLLATE utf8mb4_unicode_ci))`. Code points whose answer is
//! the algorithm's implicit weight are left out. An entry:
//!
//! ```text
//! gap     code points skipped since the entry before: 1 byte below 0x80, else 2 bytes big-endian + 0x8000
//! count   1 byte
//! weights count x u16, little-endian
//! ```

use std::sync::LazyLock;

static RECORDED: &[u8] = include_bytes!("uca400.bin");

/// The weight of a space, with which shorter strings are padded.
pub(super) const SPACE: u32 = 0x0209;

/// What all characters beyond the Basic Multilingual Plane weigh.
const BEYOND: u16 = 0xfffd;

/// Most weights of a character.
const COUNT_MAX: usize = 8;

/// Where the weights of a code point stand in the recording: offset of its count, 0 when it is not there (an
/// entry starts with its gap, so no count is at 0).
static OFFSETS: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let mut offsets = vec![0; 0x1_0000];
    let (mut at, mut next) = (0, 0);
    while at < RECORDED.len() {
        let first = usize::from(RECORDED[at]);
        let (gap, len) =
            if first < 0x80 { (first, 1) } else { ((first & 0x7f) << 8 | usize::from(RECORDED[at + 1]), 2) };
        at += len;
        next += gap;
        offsets[next] = at as u16;
        next += 1;
        at += 1 + 2 * usize::from(RECORDED[at]);
    }
    offsets
});

/// The weights of one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weights {
    weights: [u16; COUNT_MAX],
    count: u8,
}

impl Weights {
    pub(super) fn of(c: u32) -> Weights {
        let mut weights = [0; COUNT_MAX];
        if c > 0xffff {
            weights[0] = BEYOND;
            return Weights { weights, count: 1 };
        }
        match usize::from(OFFSETS[c as usize]) {
            0 => {
                let base = match c {
                    0x4e00..=0x9fa5 | 0xf900..=0xfa2d => 0xfb40,
                    0x3400..=0x4db5 => 0xfb80,
                    _ => 0xfbc0,
                };
                weights[0] = base + (c >> 15) as u16;
                weights[1] = (c & 0x7fff) as u16 | 0x8000;
                Weights { weights, count: 2 }
            }
            at => {
                let count = RECORDED[at];
                for (n, weight) in weights.iter_mut().take(count.into()).enumerate() {
                    *weight = u16::from_le_bytes([RECORDED[at + 1 + 2 * n], RECORDED[at + 2 + 2 * n]]);
                }
                Weights { weights, count }
            }
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = u32> {
        self.weights.into_iter().take(self.count.into()).map(u32::from)
    }

    /// All of them as one number.
    pub(super) fn packed(self) -> u128 {
        self.weights.iter().fold(0, |v, &w| v << 16 | u128::from(w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_the_recorded_ones() {
        let weights = |c: char| Weights::of(c.into()).iter().collect::<Vec<_>>();
        assert_eq!(weights(' '), [SPACE]);
        assert_eq!(weights('a'), [0x0e33]);
        assert_eq!(weights('A'), [0x0e33]);
        assert_eq!(weights('\0'), []);
        assert_eq!(weights('\u{2167}'), [0x1044, 0x0efb, 0x0efb, 0x0efb]);
        assert_eq!(weights('\u{4e00}'), [0xfb40, 0xce00]);
        assert_eq!(weights('\u{f900}'), [0xfb41, 0x8c48]);
        assert_eq!(weights('😀'), [0xfffd]);
    }
}
