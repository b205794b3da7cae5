//! Weights of the unicode collations: the first level of Unicode Collation Algorithm 4.0.0 and 5.2.0, and all
//! three levels of 14.0.0. A character has one to eight weights, or none if it is ignored.
//!
//! The files were recorded from MariaDB 10.11.19. `uca400.bin` has `HEX(WEIGHT_STRING(c COLLATE
//! utf8mb4_unicode_ci))` of every code point `c` of the Basic Multilingual Plane except the surrogates,
//! `uca520.bin` that under `utf8mb4_unicode_520_ci` for all code points. Code points with the algorithm's
//! implicit weight are omitted, except where a gap would be too wide. `uca1400_1.bin` to `uca1400_3.bin` are
//! the levels of `utf8mb4_uca1400_as_cs`, without the characters of weight 0020 on the second level and 0002
//! on the third. `uca1400_sequences.txt` has its contractions. Format of an entry:
//!
//! ```text
//! gap     code points skipped since the entry before: 1 byte below 0x80, else 2 bytes big-endian + 0x8000
//! count   1 byte
//! weights count x u16, little-endian
//! ```

use std::sync::LazyLock;

use super::fold::decode;
use super::sequences;
use super::tailorings::{TAILORINGS, Tailoring};

static RECORDED_1400: [&[u8]; 3] =
    [include_bytes!("uca1400_1.bin"), include_bytes!("uca1400_2.bin"), include_bytes!("uca1400_3.bin")];
static RECORDED_400: &[u8] = include_bytes!("uca400.bin");
static RECORDED_520: &[u8] = include_bytes!("uca520.bin");

/// Weight in 4.0.0 of all characters outside the Basic Multilingual Plane.
const BEYOND: u16 = 0xfffd;

/// Maximum number of weights of a character.
const COUNT_MAX: usize = 8;

/// Source of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uca {
    /// unicode_ci.
    V400,
    /// unicode_520_ci.
    V520,
    /// unicode_ci with the tailoring of a language.
    Language(u8),
    /// The uca1400 family, by its significant levels.
    V1400(Counted),
}

/// Significant levels of a collation with several levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// `ai_ci`
    Letters,
    /// `ai_cs`
    Cases,
    /// `as_ci`
    Accents,
    /// `as_cs`
    All,
}

/// A level of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Letters,
    Accents,
    Cases,
}

impl Level {
    /// Returns a number below all weights of the level.
    pub(super) fn least(self) -> u32 {
        match self {
            Level::Letters => 0x0200,
            Level::Accents => 0x20,
            Level::Cases => 0x02,
        }
    }
}

/// Index of a recording: for each code point the offset of its count, or 0 if it has no entry (an entry
/// starts with its gap, so no count has offset 0). Pages of 256 code points; those without entries are empty.
struct Offsets {
    recorded: &'static [u8],
    pages: Vec<Box<[u32]>>,
}

static V400: LazyLock<Offsets> = LazyLock::new(|| Offsets::of(RECORDED_400));
static V520: LazyLock<Offsets> = LazyLock::new(|| Offsets::of(RECORDED_520));
static V1400: LazyLock<[Offsets; 3]> = LazyLock::new(|| RECORDED_1400.map(Offsets::of));

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

/// Weights of one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weights {
    weights: [u16; COUNT_MAX],
    count: u8,
}

impl Uca {
    /// Returns the significant levels in order of precedence.
    pub(super) fn levels(self) -> &'static [Level] {
        match self {
            Uca::V400 | Uca::V520 | Uca::Language(_) | Uca::V1400(Counted::Letters) => &[Level::Letters],
            Uca::V1400(Counted::Cases) => &[Level::Letters, Level::Cases],
            Uca::V1400(Counted::Accents) => &[Level::Letters, Level::Accents],
            Uca::V1400(Counted::All) => &[Level::Letters, Level::Accents, Level::Cases],
        }
    }

    /// Returns the weight of a space, which pads shorter strings.
    pub(super) fn space(self, level: Level) -> u32 {
        match (self, level) {
            (_, Level::Accents) => 0x20,
            (_, Level::Cases) => 0x02,
            (Uca::V400 | Uca::Language(_) | Uca::V1400(_), Level::Letters) => 0x0209,
            (Uca::V520, Level::Letters) => 0x020a,
        }
    }

    fn tailoring(self) -> Option<&'static Tailoring> {
        match self {
            Uca::V400 | Uca::V520 | Uca::V1400(_) => None,
            Uca::Language(n) => TAILORINGS.get(usize::from(n)),
        }
    }

    /// Returns whether `i` with and without a dot are different letters.
    pub(super) fn is_turkish(self) -> bool {
        self == Uca::Language(8)
    }

    /// Returns whether the collation has contractions.
    pub(super) fn has_pairs(self) -> bool {
        matches!(self, Uca::V1400(_)) || self.tailoring().is_some_and(|tailoring| !tailoring.pairs.is_empty())
    }

    /// Returns the prefix of a text before the first character after which a contraction may continue. LIKE
    /// compares character by character, so every text that it considers equal to this prefix has the same
    /// weights.
    pub(super) fn sure(self, text: &[u8]) -> &[u8] {
        let mut at = 0;
        while self.has_pairs() && at < text.len() {
            let (c, len) = decode(&text[at..]);
            if self.may_go_on(c) {
                return &text[..at];
            }
            at += len;
        }
        text
    }

    /// Returns whether a contraction may continue after the character or after one of equal weight.
    fn may_go_on(self, c: u32) -> bool {
        if let Uca::V1400(_) = self {
            return sequences::goes_on(c);
        }
        let is_like = |first: u32| c == first || self.of(Level::Letters, c) == self.of(Level::Letters, first);
        self.tailoring().is_some_and(|tailoring| tailoring.pairs.iter().any(|pair| is_like(pair.0.into())))
    }

    /// Returns the weights of a character without contractions.
    pub(super) fn of(self, level: Level, c: u32) -> Weights {
        if let Uca::V1400(_) = self {
            return V1400[level as usize].get(c).unwrap_or_else(|| match level {
                Level::Letters => Weights::implicit_1400(c),
                Level::Accents => Weights::listed(&[0x20]),
                Level::Cases => Weights::listed(&[0x02]),
            });
        }
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

    /// Returns the weights of a text on a level.
    pub(super) fn weights(self, level: Level, text: &[u8]) -> impl Iterator<Item = u32> {
        let pairs = self.tailoring().map_or(&[][..], |tailoring| tailoring.pairs);
        let mut rest = text;
        let characters = std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (c, len) = decode(rest);
            rest = &rest[len..];
            if let Uca::V1400(_) = self
                && !rest.is_empty()
                && let Some((weights, len)) = sequences::at(level, c, rest)
            {
                rest = &rest[len..];
                return Some(Weights::listed(weights));
            }
            if !pairs.is_empty() && !rest.is_empty() {
                let (next, len) = decode(rest);
                let pair = pairs.iter().find(|(a, b, _)| (u32::from(*a), u32::from(*b)) == (c, next));
                if let Some((_, _, weights)) = pair {
                    rest = &rest[len..];
                    return Some(Weights::listed(weights));
                }
            }
            Some(self.of(level, c))
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

    /// Returns the implicit weights in UCA 14.0.0: ideographs by their block, Tangut, Khitan and Nushu, all
    /// others.
    fn implicit_1400(c: u32) -> Weights {
        let own = |base: u16, first: u32| Weights::listed(&[base, (c - first) as u16 | 0x8000]);
        let base = match c {
            0x17000..=0x18aff | 0x18d00..=0x18d7f => return own(0xfb00, 0x17000),
            0x18b00..=0x18cff => return own(0xfb02, 0x18b00),
            0x1b170..=0x1b2ff => return own(0xfb01, 0x1b170),
            0x4e00..=0x9fff
            | 0xfa0e..=0xfa0f
            | 0xfa11
            | 0xfa13..=0xfa14
            | 0xfa1f
            | 0xfa21
            | 0xfa23..=0xfa24
            | 0xfa27..=0xfa29 => 0xfb40,
            0x3400..=0x4dbf
            | 0x20000..=0x2a6df
            | 0x2a700..=0x2b738
            | 0x2b740..=0x2b81d
            | 0x2b820..=0x2cea1
            | 0x2ceb0..=0x2ebe0
            | 0x30000..=0x3134a => 0xfb80,
            _ => 0xfbc0,
        };
        Weights::listed(&[base + (c >> 15) as u16, (c & 0x7fff) as u16 | 0x8000])
    }

    fn iter(self) -> impl Iterator<Item = u32> {
        self.weights.into_iter().take(self.count.into()).map(u32::from)
    }

    /// Packs all weights into one number.
    pub(super) fn packed(self) -> u128 {
        self.weights.iter().fold(0, |v, &w| v << 16 | u128::from(w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_the_recorded_ones() {
        let weights = |c: char| Uca::V400.of(Level::Letters, c.into()).iter().collect::<Vec<_>>();
        assert_eq!(weights(' '), [Uca::V400.space(Level::Letters)]);
        assert_eq!(weights('a'), [0x0e33]);
        assert_eq!(weights('A'), [0x0e33]);
        assert_eq!(weights('\0'), []);
        assert_eq!(weights('\u{2167}'), [0x1044, 0x0efb, 0x0efb, 0x0efb]);
        assert_eq!(weights('\u{4e00}'), [0xfb40, 0xce00]);
        assert_eq!(weights('\u{f900}'), [0xfb41, 0x8c48]);
        assert_eq!(weights('😀'), [0xfffd]);
        for uca in [Uca::V400, Uca::V520, Uca::Language(0), Uca::V1400(Counted::All)] {
            for &level in uca.levels() {
                assert_eq!(uca.of(level, ' '.into()).iter().collect::<Vec<_>>(), [uca.space(level)]);
            }
        }
        assert_eq!(Uca::V520.of(Level::Letters, 0x1f600).iter().count(), 2);
        let all = Uca::V1400(Counted::All);
        let levels = |text: &str| {
            let of = |level| all.weights(level, text.as_bytes()).collect::<Vec<_>>();
            [Level::Letters, Level::Accents, Level::Cases].map(of)
        };
        assert_eq!(levels("aé"), [vec![0x2075, 0x20db], vec![0x20, 0x20, 0x24], vec![2, 2, 2]]);
        assert_eq!(levels("l·"), [vec![0x21b0], vec![0x20, 0x118], vec![2, 2]]);
        assert_eq!(levels("\u{17001}")[0], [0xfb00, 0x8001]);
        assert_eq!(all.sure("abl".as_bytes()), b"ab");
        assert_eq!(all.sure("abc".as_bytes()), b"abc");
    }
}
