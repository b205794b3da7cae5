//! Chinese, Japanese and Korean character sets with one to three bytes per character, and their collations.
//!
//! A *code* is the bytes of a character as one number, most significant first. A code of three bytes, which
//! starts with 8f in every set that has such codes, is `0x10000` plus its last two bytes. `_bin` collations
//! use codes as weights.
//!
//! `wide.bin` was recorded from MariaDB 10.11.19: `CONVERT` between ucs2 and the set for all codes and all
//! code points, `WEIGHT_STRING`, `UPPER` and `LOWER` of all characters. For each set, in the order of
//! [`Set`]'s numbers, it has five lists: a count u16, then `count` entries. Numbers are little-endian unless
//! stated otherwise.
//!
//! ```text
//! codes      codes skipped (1 byte below 0x80, else 3 bytes big-endian + 0x800000), character u16
//! preferred  character u16, its code u16 if that is not the lowest with that character
//! weights    character u16, its weight u16 in the set's own collation if that is not the code
//! upper      character u16, its upper case u16
//! lower      character u16, its lower case u16
//! ```

use std::sync::LazyLock;

static RECORDED: &[u8] = include_bytes!("wide.bin");

const SETS: usize = 8;
/// The first byte of every code of three bytes.
const THREE: u8 = 0x8f;

/// Number of a set in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set(pub(super) u8);

/// A set's tables. In `codes`, 0 means that there is no code; in all sets code 0 is character 0.
struct Tables {
    /// Characters by code.
    characters: Vec<u16>,
    /// Codes by character.
    codes: Vec<u32>,
    /// Weights by character.
    weights: Vec<u32>,
    upper: Vec<(u16, u16)>,
    lower: Vec<(u16, u16)>,
}

/// Offset of each set.
static STARTS: LazyLock<[usize; SETS]> = LazyLock::new(|| {
    let mut at = 0;
    std::array::from_fn(|_| {
        let start = at;
        let mut source = Source { at };
        source.skip();
        at = source.at;
        start
    })
});

static TABLES: [LazyLock<Tables>; SETS] = [
    LazyLock::new(|| Tables::read(0)),
    LazyLock::new(|| Tables::read(1)),
    LazyLock::new(|| Tables::read(2)),
    LazyLock::new(|| Tables::read(3)),
    LazyLock::new(|| Tables::read(4)),
    LazyLock::new(|| Tables::read(5)),
    LazyLock::new(|| Tables::read(6)),
    LazyLock::new(|| Tables::read(7)),
];

struct Source {
    at: usize,
}

impl Source {
    fn byte(&mut self) -> u8 {
        self.at += 1;
        RECORDED[self.at - 1]
    }

    fn number(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn gap(&mut self) -> usize {
        match self.byte() {
            first @ ..0x80 => first.into(),
            first => {
                usize::from(first & 0x7f) << 16 | usize::from(self.byte()) << 8 | usize::from(self.byte())
            }
        }
    }

    fn pairs(&mut self) -> Vec<(u16, u16)> {
        let count = self.number();
        (0..count).map(|_| (self.number(), self.number())).collect()
    }

    /// Skips a set.
    fn skip(&mut self) {
        let count = self.number();
        for _ in 0..count {
            self.gap();
            self.number();
        }
        for _ in 0..4 {
            let count = usize::from(self.number());
            self.at += 4 * count;
        }
    }
}

impl Tables {
    fn read(set: usize) -> Tables {
        let mut source = Source { at: STARTS[set] };
        let (mut characters, mut codes) = (Vec::new(), vec![0; 0x1_0000]);
        let count = source.number();
        for _ in 0..count {
            let code = characters.len() + source.gap();
            let c = source.number();
            characters.resize(code, 0);
            characters.push(c);
            let known = &mut codes[usize::from(c)];
            if *known == 0 {
                *known = code as u32;
            }
        }
        for (c, code) in source.pairs() {
            codes[usize::from(c)] = code.into();
        }
        let mut weights = codes.clone();
        for (c, weight) in source.pairs() {
            weights[usize::from(c)] = weight.into();
        }
        Tables { characters, codes, weights, upper: source.pairs(), lower: source.pairs() }
    }
}

impl Set {
    fn tables(self) -> &'static Tables {
        &TABLES[usize::from(self.0)]
    }

    /// Returns the code of a character.
    pub(super) fn code(self, c: u32) -> Option<u32> {
        let code = *self.tables().codes.get(c as usize)?;
        (code != 0 || c == 0).then_some(code)
    }

    /// Returns the weight of a character in the set's own collation.
    pub(super) fn weight(self, c: u32) -> Option<u32> {
        self.code(c).map(|_| self.tables().weights[c as usize])
    }

    /// Appends the bytes of a character. Returns false if the set lacks it.
    pub(super) fn encode(self, c: u32, out: &mut Vec<u8>) -> bool {
        let Some(code) = self.code(c) else { return false };
        let bytes = code.to_be_bytes();
        match code {
            0..=0xff => out.push(bytes[3]),
            0x100..=0xffff => out.extend_from_slice(&bytes[2..]),
            _ => out.extend_from_slice(&[THREE, bytes[2], bytes[3]]),
        }
        true
    }

    /// Returns the first character of some bytes and its length.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<(u32, usize)> {
        let tables = self.tables();
        let character = |code: usize| match tables.characters.get(code) {
            Some(&c) if c != 0 || code == 0 => Some(u32::from(c)),
            _ => None,
        };
        let first = *bytes.first()?;
        if let Some(c) = character(first.into()) {
            return Some((c, 1));
        }
        let second = usize::from(*bytes.get(1)?);
        if let Some(c) = character(usize::from(first) << 8 | second) {
            return Some((c, 2));
        }
        if first != THREE {
            return None;
        }
        Some((character(0x1_0000 | second << 8 | usize::from(*bytes.get(2)?))?, 3))
    }

    /// Returns a character in upper case.
    pub(super) fn upper(self, c: u32) -> u32 {
        recased(&self.tables().upper, c)
    }

    /// Returns a character in lower case.
    pub(super) fn lower(self, c: u32) -> u32 {
        recased(&self.tables().lower, c)
    }
}

fn recased(pairs: &[(u16, u16)], c: u32) -> u32 {
    let found = pairs.binary_search_by_key(&c, |pair| pair.0.into());
    found.map_or(c, |n| pairs[n].1.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_is_read_to_its_end() {
        let mut source = Source { at: STARTS[SETS - 1] };
        source.skip();
        assert_eq!(source.at, RECORDED.len());
    }

    #[test]
    fn characters_and_bytes_go_both_ways() {
        for n in 0..SETS {
            let set = Set(n as u8);
            let mut seen = 0;
            for c in 0..=0xffff {
                let mut bytes = Vec::new();
                if !set.encode(c, &mut bytes) {
                    continue;
                }
                seen += 1;
                // In MariaDB, one character of cp932 has the code of another.
                let decoded = if (n, c) == (5, 0x6661) { 0x6659 } else { c };
                assert_eq!(set.decode(&bytes), Some((decoded, bytes.len())), "set {n} character {c:#x}");
            }
            assert!(seen > 7000, "set {n}");
        }
        let (gbk, ujis) = (Set(1), Set(6));
        assert_eq!(gbk.code('中'.into()), Some(0xd6d0));
        assert_eq!(ujis.decode(&[0x8f, 0xb0, 0xa1]), Some(('丂'.into(), 3)));
        assert_eq!(gbk.decode(&[0xd6]), None);
        assert_eq!(gbk.upper('ж'.into()), u32::from('Ж'));
    }
}
