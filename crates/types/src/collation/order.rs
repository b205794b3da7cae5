//! Comparison, hashes and sort keys.
//!
//! # Sort keys
//!
//! PAD SPACE compares as if infinitely many spaces followed each string. The end of a string therefore sorts
//! at the space: characters of lower weight sort before it, those of higher weight after it. A run of spaces
//! inside a string sorts by the weight that ends the run. So every weight becomes one symbol:
//!
//! ```text
//! w < space      w
//! a space        space      if the first weight after the run is below space
//! end of text    space + 1  (trailing spaces are omitted)
//! a space        space + 2  if the first weight after the run is above space
//! w > space      w + 2
//! ```
//!
//! Symbols are encoded as code points in UTF-8, which keeps their order: one byte for ASCII. In the utf8
//! `_bin` collations the symbols are the UTF-8 bytes themselves, one byte each. The end symbol terminates
//! every key, so no key is a prefix of another.
//!
//! Collations named `nopad` do not pad: the symbol is the weight plus one, and the end is symbol 0. The
//! binary collation does the same with bytes: byte 0 becomes `00 ff` and the end is `00 00`.
//!
//! The key of a collation with several levels is the concatenation of the keys of each level, each with its
//! end. LIKE searches ranges of the first level.
//!
//! Some languages have contractions: pairs of letters with the weights of one. The key of such a text does
//! not begin with the key of its prefix, so the range of a LIKE pattern uses only the part of its prefix
//! before the first letter after which a contraction may continue.

use std::cmp::Ordering;
use std::hash::Hasher;

use super::fold::{decode, weight};
use super::uca::{Level, Uca};
use super::{Collation, Weighing};

const SPACE: u32 = 0x20;

/// Weights of ASCII characters in a collation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ascii {
    /// The character's code.
    Itself,
    /// The code of its upper case.
    Upper,
    /// A table.
    Table,
}

/// The weights of a text, for collations with one weight per character.
struct Weights<'a> {
    weighing: Weighing,
    ascii: Ascii,
    rest: &'a [u8],
}

impl Iterator for Weights<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let first = *self.rest.first()?;
        if first < 0x80 && self.ascii != Ascii::Table {
            self.rest = &self.rest[1..];
            return Some(u32::from(if self.ascii == Ascii::Upper {
                first.to_ascii_uppercase()
            } else {
                first
            }));
        }
        if self.weighing == Weighing::Bytes {
            self.rest = &self.rest[1..];
            return Some(first.into());
        }
        let (c, len) = decode(self.rest);
        self.rest = &self.rest[len..];
        Some(weight(self.weighing, c))
    }
}

/// Computes the first bytes of sort keys for many texts ([`Collation::sort_key_front`]).
#[derive(Clone, Copy)]
pub struct Fronts {
    collation: Collation,
    /// Weights of the characters whose symbols are computed without building a key.
    ascii: Ascii,
}

impl Fronts {
    /// Prepares for texts of a collation.
    pub fn of(collation: Collation) -> Fronts {
        let ascii = if collation.pads() { collation.weighing().ascii() } else { Ascii::Table };
        Fronts { collation, ascii }
    }

    /// Returns the first eight bytes of the text's sort key ([`Collation::sort_key_front`]).
    #[inline]
    pub fn front(self, text: &[u8]) -> u64 {
        // Fast path: most texts begin with letters and digits.
        let plain =
            text.first_chunk().and_then(|front| plain_symbols(u64::from_be_bytes(*front), self.ascii));
        plain.unwrap_or_else(|| self.collation.front_of_key(text))
    }
}

/// Removes trailing spaces.
fn trimmed(text: &[u8]) -> &[u8] {
    let spaces = text.iter().rev().take_while(|&&b| b == b' ').count();
    &text[..text.len() - spaces]
}

impl Collation {
    fn weights(self, text: &[u8]) -> Weights<'_> {
        let weighing = self.weighing();
        Weights { weighing, ascii: weighing.ascii(), rest: text }
    }

    /// Compares two texts, ignoring trailing spaces (except binary and nopad).
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let weighing = self.weighing();
        if weighing == Weighing::Binary {
            return a.cmp(b);
        }
        // A common prefix has equal weights, so it is skipped. It must not end inside a character or a
        // contraction.
        let mut shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        if shared == a.len() && shared == b.len() {
            return Ordering::Equal;
        }
        let inside = |text: &[u8], at: usize| text.get(at).is_some_and(|b| b & 0xc0 == 0x80);
        let back = |shared: &mut usize| {
            while *shared > 0 && (inside(a, *shared) || inside(b, *shared)) {
                *shared -= 1;
            }
        };
        back(&mut shared);
        if let Weighing::Unicode(uca) = weighing {
            if uca.has_pairs() {
                // Three equal letters may be a contraction and a letter, so nothing can be skipped.
                shared = 0;
            }
            let (a, b) = (&a[shared..], &b[shared..]);
            for &level in uca.levels() {
                let (a, b) = (uca.weights(level, a), uca.weights(level, b));
                match compare_weights(a, b, self.padding_of(uca, level)) {
                    Ordering::Equal => {}
                    order => return order,
                }
            }
            return Ordering::Equal;
        }
        compare_weights(self.weights(&a[shared..]), self.weights(&b[shared..]), self.padding())
    }

    /// [`Collation::padding`] for a level.
    fn padding_of(self, uca: Uca, level: Level) -> Option<u32> {
        self.pads().then(|| uca.space(level))
    }

    /// Returns the weight that pads a text after its end, or `None` if the end sorts below every weight.
    fn padding(self) -> Option<u32> {
        self.pads().then(|| self.weighing().space())
    }

    /// Appends the sort key: bytes that sort as the texts do. The key is self-delimiting: no key is a prefix
    /// of another.
    pub fn sort_key(self, text: &[u8], out: &mut Vec<u8>) {
        self.put_key(text, usize::MAX, out);
        self.put_end(out);
    }

    fn put_end(self, out: &mut Vec<u8>) {
        let padding = match self.weighing() {
            Weighing::Unicode(uca) => {
                let last = uca.levels().last().expect("letters count everywhere");
                self.padding_of(uca, *last)
            }
            Weighing::Binary => return out.extend_from_slice(&[0, 0]),
            _ => self.padding(),
        };
        put_end_symbol(padding, out);
    }

    /// Returns the first eight bytes of the sort key, padded with zeros. Texts with different numbers sort as
    /// the numbers do. Reads only as much of the text as it needs.
    pub fn sort_key_front(self, text: &[u8]) -> u64 {
        Fronts::of(self).front(text)
    }

    fn front_of_key(self, text: &[u8]) -> u64 {
        let mut key = Vec::with_capacity(16);
        self.put_key(text, 8, &mut key);
        self.put_end(&mut key);
        key.resize(key.len().max(8), 0);
        u64::from_be_bytes(*key.first_chunk().expect("made so long"))
    }

    /// Appends the common prefix of the keys of all strings that start with `text` without its trailing
    /// spaces: the key without its end. Used for the range of a LIKE pattern.
    pub fn sort_key_open(self, text: &[u8], out: &mut Vec<u8>) {
        match self.weighing() {
            Weighing::Unicode(uca) => {
                let weights = uca.weights(Level::Letters, uca.sure(text));
                put_symbols(weights, self.padding_of(uca, Level::Letters), put_symbol, usize::MAX, out);
            }
            _ => self.put_key(text, usize::MAX, out),
        }
    }

    /// Appends the key without its end, or at least its first `enough` bytes.
    fn put_key(self, text: &[u8], enough: usize, out: &mut Vec<u8>) {
        let enough = out.len().saturating_add(enough);
        let ascii = self.weighing().ascii();
        let text = match self.weighing() {
            Weighing::Binary | Weighing::Unicode(_) => text,
            _ if !self.pads() || ascii == Ascii::Table => text,
            _ => put_plain(text, ascii == Ascii::Upper, enough - out.len(), out),
        };
        match self.weighing() {
            Weighing::Binary => {
                for &b in text {
                    if out.len() >= enough {
                        break;
                    }
                    out.push(b);
                    if b == 0 {
                        out.push(0xff);
                    }
                }
            }
            Weighing::Unicode(uca) => {
                for (n, &level) in uca.levels().iter().enumerate() {
                    if n > 0 {
                        put_end_symbol(self.padding_of(uca, uca.levels()[n - 1]), out);
                    }
                    let padding = self.padding_of(uca, level);
                    put_symbols(uca.weights(level, text), padding, put_symbol, enough, out);
                }
            }
            // UTF-8 has no bytes above 0xf4.
            Weighing::Bytes => {
                let put = |s: u32, out: &mut Vec<u8>| out.push(s.min(0xff) as u8);
                put_symbols(self.weights(self.compared(text)), self.padding(), put, enough, out);
            }
            _ => put_symbols(self.weights(self.compared(text)), self.padding(), put_symbol, enough, out),
        }
    }

    /// Returns the text without trailing spaces if the collation ignores them.
    fn compared(self, text: &[u8]) -> &[u8] {
        if self.pads() { trimmed(text) } else { text }
    }

    /// Returns the length of the sort key at the start of `key`. Not for binary.
    pub(crate) fn sort_key_len(self, key: &[u8]) -> Option<usize> {
        // No other symbol contains the bytes of the end symbol: it is one byte below 0x80, or a lead byte and
        // its successor.
        let end_of = |from: usize, padding: Option<u32>| {
            let mut end = Vec::with_capacity(2);
            put_end_symbol(padding, &mut end);
            let found = key.get(from..)?.windows(end.len()).position(|bytes| bytes == end);
            found.map(|n| from + n + end.len())
        };
        match self.weighing() {
            Weighing::Unicode(uca) => {
                uca.levels().iter().try_fold(0, |from, &level| end_of(from, self.padding_of(uca, level)))
            }
            _ => end_of(0, self.padding()),
        }
    }

    /// Hashes so that equal strings have equal hashes.
    pub fn hash<H: Hasher>(self, text: &[u8], state: &mut H) {
        match self.weighing() {
            Weighing::Binary => state.write(text),
            Weighing::Unicode(uca) => {
                for &level in uca.levels() {
                    let padding = self.padding_of(uca, level);
                    state.write_u64(hash_weights(uca.weights(level, text), padding));
                }
            }
            _ => state.write_u64(hash_weights(self.weights(self.compared(text)), self.padding())),
        }
    }
}

impl Weighing {
    fn ascii(self) -> Ascii {
        match self {
            Weighing::Binary | Weighing::Bytes | Weighing::Latin1Bytes => Ascii::Itself,
            Weighing::AsciiUpper | Weighing::Swedish | Weighing::General | Weighing::General500 => {
                Ascii::Upper
            }
            Weighing::Unicode(_)
            | Weighing::Code(_)
            | Weighing::Bytewise(..)
            | Weighing::WideCode(_)
            | Weighing::Wide(_) => Ascii::Table,
        }
    }

    /// Returns the weight of a space.
    fn space(self) -> u32 {
        match self {
            Weighing::Unicode(uca) => uca.space(Level::Letters),
            Weighing::Bytewise(_, table) => table.weight(b' ').into(),
            _ => SPACE,
        }
    }
}

/// Compares weights. The shorter sequence is padded with `padding`; `None` sorts below every weight.
fn compare_weights(
    mut a: impl Iterator<Item = u32>,
    mut b: impl Iterator<Item = u32>,
    padding: Option<u32>,
) -> Ordering {
    loop {
        let (x, y) = (a.next(), b.next());
        if x.is_none() && y.is_none() {
            return Ordering::Equal;
        }
        match x.or(padding).cmp(&y.or(padding)) {
            Ordering::Equal => {}
            order => return order,
        }
    }
}

/// Appends the symbols of the text's leading printable ASCII characters except space, at most `enough` of
/// them. This covers most texts completely. Returns the rest of the text.
fn put_plain<'a>(text: &'a [u8], folds: bool, enough: usize, out: &mut Vec<u8>) -> &'a [u8] {
    // The symbol of `~`, the last one, would take two bytes.
    let is_plain = |b: &&u8| (b'!'..b'~').contains(*b);
    let (plain, rest) = text.split_at(text.iter().take(enough).take_while(is_plain).count());
    match folds {
        true => out.extend(plain.iter().map(|b| b.to_ascii_uppercase() + 2)),
        false => out.extend(plain.iter().map(|b| b + 2)),
    }
    rest
}

/// Returns the symbols of eight characters as [`put_plain`] writes them, or `None` if one of them is not
/// plain or if the collation weighs by a table.
#[inline]
fn plain_symbols(text: u64, ascii: Ascii) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    // Sets the high bit of each byte that is not less than `least`, for ASCII text.
    let reaches = |least: u8| (text + u64::from(0x80 - least) * EACH) & HIGH;
    if text & HIGH != 0 || reaches(b'!') != HIGH || reaches(b'~') != 0 {
        return None;
    }
    let small = match ascii {
        Ascii::Table => return None,
        Ascii::Itself => 0,
        Ascii::Upper => reaches(b'a') & !reaches(b'z' + 1),
    };
    // A lower case letter is 0x20 above its upper case.
    Some(text - (small >> 2) + 2 * EACH)
}

/// Appends the symbols of weights until `out` has `enough` bytes. Trailing spaces are omitted if the
/// collation pads.
fn put_symbols(
    weights: impl Iterator<Item = u32>,
    padding: Option<u32>,
    put: impl Fn(u32, &mut Vec<u8>),
    enough: usize,
    out: &mut Vec<u8>,
) {
    let Some(space) = padding else {
        for w in weights {
            if out.len() >= enough {
                return;
            }
            put(w + 1, out);
        }
        return;
    };
    let mut spaces = 0;
    for w in weights {
        if out.len() >= enough {
            return;
        }
        if w == space {
            spaces += 1;
            continue;
        }
        let shift = if w < space { 0 } else { 2 };
        for _ in 0..std::mem::take(&mut spaces) {
            put(space + shift, out);
        }
        put(w + shift, out);
    }
}

fn hash_weights(weights: impl Iterator<Item = u32>, padding: Option<u32>) -> u64 {
    let mut hash = 1;
    let mut spaces = 0;
    for w in weights {
        if Some(w) == padding {
            spaces += 1;
            continue;
        }
        for _ in 0..std::mem::take(&mut spaces) {
            hash = mix(hash, padding.unwrap_or(SPACE));
        }
        hash = mix(hash, w);
    }
    hash
}

fn mix(hash: u64, weight: u32) -> u64 {
    (hash.rotate_left(5) ^ u64::from(weight)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Appends the end symbol of a text or of a level.
fn put_end_symbol(padding: Option<u32>, out: &mut Vec<u8>) {
    match padding {
        Some(space) => put_symbol(space + 1, out),
        None => out.push(0),
    }
}

/// Appends a symbol as UTF-8, surrogates included.
#[inline]
fn put_symbol(symbol: u32, out: &mut Vec<u8>) {
    let low = |shift: u32| 0x80 | (symbol >> shift & 0x3f) as u8;
    match symbol {
        0..0x80 => out.push(symbol as u8),
        0x80..0x800 => out.extend_from_slice(&[0xc0 | (symbol >> 6) as u8, low(0)]),
        0x800..0x1_0000 => out.extend_from_slice(&[0xe0 | (symbol >> 12) as u8, low(6), low(0)]),
        _ => out.extend_from_slice(&[0xf0 | (symbol >> 18) as u8, low(12), low(6), low(0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::DefaultHasher;

    fn key(collation: Collation, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        collation.sort_key(text.as_bytes(), &mut out);
        out
    }

    #[test]
    fn characters_that_a_set_lacks_differ_from_all_others() {
        for name in [
            "latin1_swedish_ci",
            "latin1_bin",
            "latin2_general_ci",
            "cp1251_bin",
            "gbk_bin",
            "sjis_japanese_ci",
        ] {
            let collation = Collation::by_name(name).expect(name);
            let lacking: Vec<&str> = ["ж", "ö", "中", "😀", "😁"]
                .into_iter()
                .filter(|text| collation.charset().check(text.as_bytes()).is_err())
                .collect();
            assert!(lacking.len() > 1, "{name}");
            for a in &lacking {
                for b in ["?", "~", "a", "z"].iter().chain(&lacking).filter(|b| *b != a) {
                    assert_ne!(
                        collation.compare(a.as_bytes(), b.as_bytes()),
                        Ordering::Equal,
                        "{name} {a} {b}"
                    );
                    assert_ne!(key(collation, a), key(collation, b), "{name} {a} {b}");
                }
                assert_eq!(collation.compare(a.as_bytes(), b"z"), Ordering::Greater, "{name} {a}");
            }
        }
    }

    #[test]
    fn keys_and_hashes_agree_with_compare() {
        let texts = [
            "", " ", "a", "A", "á", "a ", "a  ", "a\t", "a\t ", "a \t", "a  b", "a b", "a \tb", "ab", "aB",
            "z", "ß", "s", "ss", "ÿ", "€", "Ж", "😀", "😁", "\u{fffd}", "\u{ffff}", "\u{fffe}", "\0", "a\0",
            "a \0", "a!", "A\u{1f}", "~", "\u{7f}", "l·", "l", "l·a", "e\u{301}", "é",
        ];
        for collation in Collation::all() {
            for a in texts {
                for b in texts {
                    let order = collation.compare(a.as_bytes(), b.as_bytes());
                    assert_eq!(
                        key(collation, a).cmp(&key(collation, b)),
                        order,
                        "{} {a:?} {b:?}",
                        collation.name()
                    );
                    let (mut x, mut y) = (DefaultHasher::new(), DefaultHasher::new());
                    collation.hash(a.as_bytes(), &mut x);
                    collation.hash(b.as_bytes(), &mut y);
                    assert_eq!(
                        x.finish() == y.finish(),
                        order == Ordering::Equal,
                        "{} {a:?} {b:?}",
                        collation.name()
                    );
                }
            }
        }
    }

    #[test]
    fn keys_of_ascii_take_a_byte_a_character() {
        assert_eq!(key(Collation::UTF8MB4_GENERAL_CI, "aB 1  "), [0x43, 0x44, 0x22, 0x33, 0x21]);
        assert_eq!(key(Collation::BINARY, "a\0"), [0x61, 0, 0xff, 0, 0]);
        let mut open = Vec::new();
        Collation::UTF8MB4_GENERAL_CI.sort_key_open(b"ab", &mut open);
        assert!(key(Collation::UTF8MB4_GENERAL_CI, "ABc").starts_with(&open));
    }

    #[test]
    fn orders_are_mariadbs() {
        let less = |collation: Collation, a: &str, b: &str| {
            assert_eq!(collation.compare(a.as_bytes(), b.as_bytes()), Ordering::Less, "{a:?} {b:?}");
        };
        less(Collation::UTF8MB4_GENERAL_CI, "a\t", "a");
        less(Collation::UTF8MB4_BIN, "Z", "a");
        less(Collation::LATIN1_SWEDISH_CI, "Z", "å");
        less(Collation::LATIN1_BIN, "€", "é");
        less(Collation::BINARY, "a", "a ");
        assert_eq!(Collation::UTF8MB4_GENERAL_CI.compare("ß".as_bytes(), b"s"), Ordering::Equal);
    }
}
