//! Weights of the unicode collations: Unicode Collation Algorithm 4.0.0 and 5.2.0, first level, one to eight
//! weights a character, none for what is ignored.
//!
//! `uca400.bin` was recorded from a MariaDB 10.11.19: for every code point `c` of the Basic Multilingual
//! Plane but the surrogates `HEX(WEIGHT_STRING(c COLLATE utf8mb4_unicode_ci))`, and `uca520.bin` of all code
//! points under `utf8mb4_unicode_520_ci`. Code points whose answer is the algorithm's implicit weight are
//! left out but where a gap would be too wide. An entry:
//!
//! ```text
//! gap     code points skipped since the entry before: 1 byte below 0x80, else 2 bytes big-endian + 0x8000
//! count   1 byte
//! weights count x u16, little-endian
//! ```

use std::sync::LazyLock;

use super::fold::decode;
use super::tailorings::{TAILORINGS, Tailoring};

static RECORDED_400: &[u8] = include_bytes!("uca400.bin");
static RECORDED_520: &[u8] = include_bytes!("uca520.bin");

/// What all characters beyond the Basic Multilingual Plane weigh in 4.0.0.
const BEYOND: u16 = 0xfffd;

/// Most weights of a character.
const COUNT_MAX: usize = 8;

/// Which weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uca {
    /// unicode_ci.
    V400,
    /// unicode_520_ci.
    V520,
    /// unicode_ci as a language changes it.
    Language(u8),
}

/// Where the weights of a code point stand in a recording: offset of its count, 0 when it is not there (an
/// entry starts with its gap, so no count is at 0). Pages of 256 code points, those without entries empty.
struct Offsets {
    recorded: &'static [u8],
    pages: Vec<Box<[u32]>>,
}

static V400: LazyLock<Offsets> = LazyLock::new(|| Offsets::of(RECORDED_400));
static V520: LazyLock<Offsets> = LazyLock::new(|| Offsets::of(RECORDED_520));

impl Offsets {
    fn of(recorded: &'static [u8]) -> Offsets {
        let mut pages: Vec<Box<[u32]>> = Vec::new();
        let (mut at, mut next) = (0, 0);
        while at < recorded.len() {
            let first = usize::from(recorded[at]);
            let (gap, len) = match first {
                ..0x80 => (first, 1),
                _ => ((first & 0x7f) << 8 | usize::from(recorded[at + 1]), 2),
            };
            at += len;
            next += gap;
            let page = next >> 8;
            if pages.len() <= page {
                pages.resize(page + 1, Box::default());
            }
            if pages[page].is_empty() {
                pages[page] = vec![0; 256].into();
            }
            pages[page][next & 0xff] = at as u32;
            next += 1;
            at += 1 + 2 * usize::from(recorded[at]);
        }
        Offsets { recorded, pages }
    }

    fn get(&self, c: u32) -> Option<Weights> {
        let page = self.pages.get(c as usize >> 8)?;
        let at = *page.get(c as usize & 0xff)? as usize;
        if at == 0 {
            return None;
        }
        let (count, recorded) = (self.recorded[at], &self.recorded[at + 1..]);
        let mut weights = [0; COUNT_MAX];
        for (weight, bytes) in weights.iter_mut().zip(recorded.chunks_exact(2)).take(count.into()) {
            *weight = u16::from_le_bytes([bytes[0], bytes[1]]);
        }
        Some(Weights { weights, count })
    }
}

/// The weights of one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weights {
    weights: [u16; COUNT_MAX],
    count: u8,
}

impl Uca {
    /// The weight of a space, with which shorter strings are padded.
    pub(super) fn space(self) -> u32 {
        match self {
            Uca::V400 | Uca::Language(_) => 0x0209,
            Uca::V520 => 0x020a,
        }
    }

    fn tailoring(self) -> Option<&'static Tailoring> {
        match self {
            Uca::V400 | Uca::V520 => None,
            Uca::Language(n) => TAILORINGS.get(usize::from(n)),
        }
    }

    /// Whether two characters may weigh as one.
    pub(super) fn has_pairs(self) -> bool {
        self.tailoring().is_some_and(|tailoring| !tailoring.pairs.is_empty())
    }

    /// The weights of a character by itself.
    pub(super) fn of(self, c: u32) -> Weights {
        if let Some(tailoring) = self.tailoring()
            && let Ok(n) = tailoring.letters.binary_search_by_key(&c, |letter| letter.0.into())
        {
            return Weights::listed(tailoring.letters[n].1);
        }
        let offsets = match self {
            Uca::V520 => &V520,
            _ if c > 0xffff => return Weights::listed(&[BEYOND]),
            _ => &V400,
        };
        offsets.get(c).unwrap_or_else(|| Weights::implicit(c))
    }

    /// The weights of a text, one after another.
    pub(super) fn weights(self, text: &[u8]) -> impl Iterator<Item = u32> {
        let pairs = self.tailoring().map_or(&[][..], |tailoring| tailoring.pairs);
        let mut rest = text;
        let characters = std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (c, len) = decode(rest);
            rest = &rest[len..];
            if !pairs.is_empty() && !rest.is_empty() {
                let (next, len) = decode(rest);
                let pair = pairs.iter().find(|(a, b, _)| (u32::from(*a), u32::from(*b)) == (c, next));
                if let Some((_, _, weights)) = pair {
                    rest = &rest[len..];
                    return Some(Weights::listed(weights));
                }
            }
            Some(self.of(c))
        });
        characters.flat_map(Weights::iter)
    }
}

impl Weights {
    fn listed(list: &[u16]) -> Weights {
        let mut weights = [0; COUNT_MAX];
        weights[..list.len()].copy_from_slice(list);
        Weights { weights, count: list.len() as u8 }
    }

    fn implicit(c: u32) -> Weights {
        let base = match c {
            0x4e00..=0x9fa5 | 0xf900..=0xfa2d => 0xfb40,
            0x3400..=0x4db5 => 0xfb80,
            _ => 0xfbc0,
        };
        Weights::listed(&[base + (c >> 15) as u16, (c & 0x7fff) as u16 | 0x8000])
    }

    fn iter(self) -> impl Iterator<Item = u32> {
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
        let weights = |c: char| Uca::V400.of(c.into()).iter().collect::<Vec<_>>();
        assert_eq!(weights(' '), [Uca::V400.space()]);
        assert_eq!(weights('a'), [0x0e33]);
        assert_eq!(weights('A'), [0x0e33]);
        assert_eq!(weights('\0'), []);
        assert_eq!(weights('\u{2167}'), [0x1044, 0x0efb, 0x0efb, 0x0efb]);
        assert_eq!(weights('\u{4e00}'), [0xfb40, 0xce00]);
        assert_eq!(weights('\u{f900}'), [0xfb41, 0x8c48]);
        assert_eq!(weights('😀'), [0xfffd]);
        for uca in [Uca::V400, Uca::V520, Uca::Language(0)] {
            assert_eq!(uca.of(' '.into()).iter().collect::<Vec<_>>(), [uca.space()]);
        }
        assert_eq!(Uca::V520.of(0x1f600).iter().count(), 2);
    }
}
