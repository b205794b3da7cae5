//! Weights and case mappings of single characters.

use super::bytes::byte_of;
use super::charset::Coding;
use super::folds::{self, Run};
use super::uca::Uca;
use super::{Collation, Weighing, cases};

/// A map of the Basic Multilingual Plane in which most characters map to themselves. Only the pages of 256
/// characters with other images are stored.
struct Fold<const PAGES: usize> {
    /// Page number by high byte, or [`ITSELF`] if all characters of the page map to themselves.
    index: [u8; 256],
    pages: [[u16; 256]; PAGES],
}

const ITSELF: u8 = 0xff;

impl<const PAGES: usize> Fold<PAGES> {
    const fn new(runs: &[Run]) -> Fold<PAGES> {
        let mut fold = Fold { index: [ITSELF; 256], pages: [[0; 256]; PAGES] };
        let mut used = 0;
        let mut r = 0;
        while r < runs.len() {
            let (first, image, count, step, image_step) = runs[r];
            let mut n = 0;
            while n < count {
                let c = first + n * step;
                let high = (c >> 8) as usize;
                if fold.index[high] == ITSELF {
                    fold.index[high] = used;
                    let mut low = 0;
                    while low < 256 {
                        fold.pages[used as usize][low] = (high << 8 | low) as u16;
                        low += 1;
                    }
                    used += 1;
                }
                fold.pages[fold.index[high] as usize][(c & 0xff) as usize] = image + n * image_step;
                n += 1;
            }
            r += 1;
        }
        fold
    }

    /// Returns the image of `c`, which is at most 0xffff.
    fn get(&self, c: u32) -> u16 {
        match self.index[(c >> 8) as usize & 0xff] {
            ITSELF => c as u16,
            page => self.pages[usize::from(page)][(c & 0xff) as usize],
        }
    }
}

static GENERAL_CI: Fold<{ folds::GENERAL_CI_PAGES }> = Fold::new(&folds::GENERAL_CI);
static UPPER: Fold<{ folds::UPPER_PAGES }> = Fold::new(&folds::UPPER);
static LOWER: Fold<{ folds::LOWER_PAGES }> = Fold::new(&folds::LOWER);

/// The weight in general_ci of all characters outside the Basic Multilingual Plane.
const BEYOND: u16 = 0xfffd;

/// Decodes the first character and returns its length. An invalid byte counts as the replacement character.
/// Text in memory is valid UTF-8; this only limits the effect of a violation.
pub(super) fn decode(text: &[u8]) -> (u32, usize) {
    const BAD: (u32, usize) = (0xfffd, 1);
    let next = |n: usize| text.get(n).map_or(0, |b| u32::from(b & 0x3f));
    let first = match text.first() {
        None => return BAD,
        Some(&b) if b < 0x80 => return (b.into(), 1),
        Some(&b) => u32::from(b),
    };
    match first {
        0xc2..=0xdf if text.len() >= 2 => ((first & 0x1f) << 6 | next(1), 2),
        0xe0..=0xef if text.len() >= 3 => ((first & 0x0f) << 12 | next(1) << 6 | next(2), 3),
        0xf0..=0xf4 if text.len() >= 4 => ((first & 0x07) << 18 | next(1) << 12 | next(2) << 6 | next(3), 4),
        _ => BAD,
    }
}

/// Appends a character as UTF-8, including unpaired surrogates, which MariaDB's sets can contain.
pub(super) fn encode(c: u32, out: &mut Vec<u8>) {
    if let 0xd800..0xe000 = c {
        out.extend_from_slice(&[0xed, 0x80 | (c >> 6 & 0x3f) as u8, 0x80 | (c & 0x3f) as u8]);
        return;
    }
    let c = char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Returns the latin1 byte of a character.
pub(super) fn latin1_of(c: u32) -> Option<u8> {
    match c {
        0..0x80 | 0xa0..0x100 => Some(c as u8),
        _ => folds::LATIN1_HIGH.iter().position(|&h| u32::from(h) == c).map(|n| 0x80 + n as u8),
    }
}

/// Returns the character of a latin1 byte.
pub(super) fn of_latin1(b: u8) -> u32 {
    match b {
        0x80..0xa0 => folds::LATIN1_HIGH[usize::from(b - 0x80)].into(),
        _ => b.into(),
    }
}

/// Added to a character that the collation's set lacks: it differs from all characters of the set, and sorts
/// after them.
const LACKING: u32 = 0x10_0000;

/// Returns the weight of a character.
pub(super) fn weight(weighing: Weighing, c: u32) -> u32 {
    weight_in_set(weighing, c).unwrap_or(LACKING + c)
}

/// Returns the weight of a character, or that of `?` if the collation's set lacks it.
pub(super) fn weight_of_replaced(weighing: Weighing, c: u32) -> u32 {
    weight_in_set(weighing, c).unwrap_or_else(|| weight(weighing, b'?'.into()))
}

fn weight_in_set(weighing: Weighing, c: u32) -> Option<u32> {
    match weighing {
        Weighing::General500 if c == 0xdf => Some(c),
        Weighing::General | Weighing::General500 if c > 0xffff => Some(BEYOND.into()),
        Weighing::General | Weighing::General500 => Some(GENERAL_CI.get(c).into()),
        Weighing::AsciiUpper if c < 0x80 => Some((c as u8).to_ascii_uppercase().into()),
        Weighing::Swedish => latin1_of(c).map(|byte| folds::LATIN1_SWEDISH_CI[usize::from(byte)].into()),
        Weighing::Latin1Bytes => latin1_of(c).map(u32::from),
        Weighing::Code(set) => set.byte(c).map(u32::from),
        Weighing::Bytewise(set, table) => byte_of(set, c).map(|byte| table.weight(byte).into()),
        Weighing::WideCode(set) => set.code(c),
        Weighing::Wide(set) => set.weight(c),
        // The weights of Unicode are in `uca`.
        Weighing::Binary | Weighing::Bytes | Weighing::AsciiUpper | Weighing::Unicode(_) => Some(c),
    }
}

/// Upper or lower case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper,
    Lower,
}

impl Collation {
    /// Appends the text in upper case (binary: unchanged).
    pub fn upper(self, text: &[u8], out: &mut Vec<u8>) {
        self.recase(text, out, Case::Upper);
    }

    /// Appends the text in lower case (binary: unchanged).
    pub fn lower(self, text: &[u8], out: &mut Vec<u8>) {
        self.recase(text, out, Case::Lower);
    }

    fn recase(self, text: &[u8], out: &mut Vec<u8>, case: Case) {
        if self == Collation::BINARY {
            out.extend_from_slice(text);
            return;
        }
        out.reserve(text.len());
        let coding = self.charset().coding();
        let casing = self.casing();
        // Turkish, and some recorded sets because of errors in MariaDB, map ASCII letters differently.
        let ascii_folds = !matches!(coding, Coding::Bytes(_)) && casing != Casing::Turkish;
        let mut rest = text;
        while let Some(&first) = rest.first() {
            if first < 0x80 && ascii_folds {
                out.push(if case == Case::Upper {
                    first.to_ascii_uppercase()
                } else {
                    first.to_ascii_lowercase()
                });
                rest = &rest[1..];
                continue;
            }
            let (c, len) = decode(rest);
            rest = &rest[len..];
            encode(recased(coding, casing, c, case), out);
        }
    }

    /// Returns the case mapping of this collation for Unicode.
    fn casing(self) -> Casing {
        match self.weighing() {
            Weighing::Unicode(Uca::V520) => Casing::V520,
            Weighing::Unicode(Uca::V1400(_)) => Casing::V1400,
            Weighing::Unicode(uca) if uca.is_turkish() => Casing::Turkish,
            _ => Casing::Usual,
        }
    }
}

/// Case mapping of Unicode letters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Casing {
    Usual,
    /// Turkish: `I` and `ı`, `İ` and `i` are pairs.
    Turkish,
    /// Mapping of Unicode 5.2.0.
    V520,
    /// Mapping of Unicode 14.0.0.
    V1400,
}

fn recased(coding: Coding, casing: Casing, c: u32, case: Case) -> u32 {
    let (latin1, unicode): (&[u8; 256], fn(u32) -> u16) = match case {
        Case::Upper => (&folds::LATIN1_UPPER, |c| UPPER.get(c)),
        Case::Lower => (&folds::LATIN1_LOWER, |c| LOWER.get(c)),
    };
    match (coding, case) {
        (Coding::Bytes(set), Case::Upper) => set.upper(c),
        (Coding::Bytes(set), Case::Lower) => set.lower(c),
        (Coding::Wide(set), Case::Upper) => set.upper(c),
        (Coding::Wide(set), Case::Lower) => set.lower(c),
        (Coding::Latin1, _) => latin1_of(c).map_or(c, |byte| of_latin1(latin1[usize::from(byte)])),
        _ if casing == Casing::V520 => cases::V520[case as usize].get(c),
        _ if casing == Casing::V1400 => cases::V1400[case as usize].get(c),
        (_, Case::Lower) if casing == Casing::Turkish && c == 0x49 => 0x131,
        (_, Case::Upper) if casing == Casing::Turkish && c == 0x69 => 0x130,
        _ if c > 0xffff => c,
        _ => unicode(c).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_follow_the_recorded_server() {
        let upper = |collation: Collation, text: &str| {
            let mut out = Vec::new();
            collation.upper(text.as_bytes(), &mut out);
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(upper(Collation::UTF8MB4_GENERAL_CI, "straße éÿжω😀𐐨"), "STRAßE ÉŸЖΩ😀𐐨");
        assert_eq!(
            upper(Collation::LATIN1_SWEDISH_CI, "éÿ"),
            "Éÿ",
            "latin1 has no capital ÿ in its case table"
        );
        assert_eq!(upper(Collation::BINARY, "abc"), "abc");
        let named = |name: &str| Collation::by_name(name).expect("known");
        assert_eq!(upper(named("utf8mb4_turkish_ci"), "iıa"), "İIA");
        assert_eq!(upper(named("utf8mb4_unicode_520_ci"), "a\u{10428}\u{2c5f}"), "A\u{10400}\u{2c5f}");
        let mut out = Vec::new();
        Collation::UTF8MB4_BIN.lower("ÀBCİ".as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).expect("UTF-8"), "àbci");
    }

    #[test]
    fn broken_text_does_no_harm() {
        for bytes in [&b"\xc3"[..], b"\xe2\x82", b"\xf0\x9f\x98", b"\xff", b"\x80abc"] {
            let mut out = Vec::new();
            Collation::UTF8MB4_GENERAL_CI.upper(bytes, &mut out);
            Collation::UTF8MB4_GENERAL_CI.sort_key(bytes, &mut out);
        }
    }
}
