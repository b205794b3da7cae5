//! Single-byte character sets except latin1 and ascii, and the collations that weigh their bytes.
//!
//! `bytes.bin` was recorded from MariaDB 10.11.19. It has one block for each set, in the order of [`Set`]'s
//! numbers: the code points of its 256 bytes (`CONVERT(.. USING ucs2)`, little-endian, 0xffff for none),
//! their upper case and their lower case (bytes). After all sets come the weights of each collation's 256
//! bytes (`WEIGHT_STRING`).

use std::sync::LazyLock;

use super::fold;

static RECORDED: &[u8; SETS * SET_BYTES + TABLES * 256] = include_bytes!("bytes.bin");

const SETS: usize = 22;
const SET_BYTES: usize = 1024;
const TABLES: usize = 37;
const NONE: u16 = 0xffff;

/// Number of a set in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set(pub(super) u8);

/// Number of a collation's weights in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table(pub(super) u8);

/// For each set, the characters whose byte differs from their code point, sorted by code point. A character
/// with two bytes has the lower one.
static BYTES: LazyLock<[Vec<(u16, u8)>; SETS]> = LazyLock::new(|| {
    std::array::from_fn(|n| {
        let set = Set(n as u8);
        let mut bytes: Vec<(u16, u8)> = (0..=255)
            .map(|b| (set.recorded(b), b))
            .filter(|(c, b)| *c != NONE && *c != u16::from(*b))
            .collect();
        bytes.sort_unstable();
        bytes.dedup_by_key(|(c, _)| *c);
        bytes
    })
});

impl Set {
    fn at(self) -> usize {
        usize::from(self.0) * SET_BYTES
    }

    fn recorded(self, byte: u8) -> u16 {
        let at = self.at() + 2 * usize::from(byte);
        u16::from_le_bytes([RECORDED[at], RECORDED[at + 1]])
    }

    /// Returns the character of a byte.
    pub(super) fn character(self, byte: u8) -> Option<u32> {
        Some(self.recorded(byte)).filter(|c| *c != NONE).map(u32::from)
    }

    /// Returns the byte of a character.
    pub(super) fn byte(self, c: u32) -> Option<u8> {
        let c = u16::try_from(c).ok()?;
        if let Ok(byte) = u8::try_from(c)
            && self.recorded(byte) == c
        {
            return Some(byte);
        }
        let bytes = &BYTES[usize::from(self.0)];
        bytes.binary_search_by_key(&c, |(c, _)| *c).ok().map(|n| bytes[n].1)
    }

    /// Returns a character in upper case.
    pub(super) fn upper(self, c: u32) -> u32 {
        self.recased(c, 512)
    }

    /// Returns a character in lower case.
    pub(super) fn lower(self, c: u32) -> u32 {
        self.recased(c, 768)
    }

    fn recased(self, c: u32, table: usize) -> u32 {
        let image = self.byte(c).and_then(|b| self.character(RECORDED[self.at() + table + usize::from(b)]));
        image.unwrap_or(c)
    }
}

impl Table {
    /// Returns the weight of a byte.
    pub(super) fn weight(self, byte: u8) -> u8 {
        RECORDED[SETS * SET_BYTES + usize::from(self.0) * 256 + usize::from(byte)]
    }
}

/// Returns the byte of a character, in latin1 if `set` is `None`.
pub(super) fn byte_of(set: Option<Set>, c: u32) -> Option<u8> {
    match set {
        Some(set) => set.byte(c),
        None => fold::latin1_of(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_characters_go_both_ways() {
        for n in 0..SETS {
            let set = Set(n as u8);
            for byte in 0..=255 {
                let Some(c) = set.character(byte) else { continue };
                let back = set.byte(c).expect("it has a byte");
                assert!(set.character(back) == Some(c) && back <= byte, "set {n} byte {byte:#x}");
            }
        }
        // cp1251 is number 18.
        assert_eq!(Set(18).byte('Ж'.into()), Some(0xc6));
        assert_eq!(Set(18).lower('Ж'.into()), u32::from('ж'));
        assert_eq!(Set(18).byte('é'.into()), None);
    }
}
