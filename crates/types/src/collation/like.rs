//! LIKE.

use super::fold::{decode, weight};
use super::{Collation, Weighing};
use crate::{Interrupt, SqlResult, Uninterrupted};

/// One element of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character, by its weight.
    Literal(u128),
}

impl Collation {
    /// [`Collation::like_within`] for names and other short texts.
    pub fn like(self, text: &[u8], pattern: &[u8], escape: Option<char>) -> bool {
        self.like_within(text, pattern, escape, &Uninterrupted).expect("Uninterrupted never fails")
    }

    /// `text LIKE pattern ESCAPE escape`; no escape character when `None`. Characters match when their
    /// weights are equal; nothing is padded. Takes up to as many steps as the lengths' product.
    pub fn like_within(
        self,
        text: &[u8],
        pattern: &[u8],
        escape: Option<char>,
        interrupt: &dyn Interrupt,
    ) -> SqlResult<bool> {
        let escape = escape.map(u32::from);
        let (mut t, mut p) = (0, 0);
        // Where the last `%` ends in the pattern, and where the text it swallows ends so far.
        let mut last_any: Option<(usize, usize)> = None;
        loop {
            let element = if p < pattern.len() { Some(self.element(&pattern[p..], escape)) } else { None };
            let next = if t < text.len() { Some(self.character(&text[t..])) } else { None };
            match (element, next) {
                (Some((Element::Any, len)), _) => {
                    p += len;
                    if p == pattern.len() {
                        return Ok(true);
                    }
                    last_any = Some((p, t));
                    continue;
                }
                (Some((Element::One, len)), Some((_, step))) => {
                    p += len;
                    t += step;
                    continue;
                }
                (Some((Element::Literal(w), len)), Some((c, step))) if w == self.like_weight(c) => {
                    p += len;
                    t += step;
                    continue;
                }
                (None, None) => return Ok(true),
                _ => {}
            }
            // Mismatch: let the last `%` swallow one more character.
            let Some((after, end)) = last_any else { return Ok(false) };
            if end >= text.len() {
                return Ok(false);
            }
            let end = end + self.character(&text[end..]).1;
            last_any = Some((after, end));
            let compared = p.saturating_sub(after) / 16 + 1;
            interrupt.steps(u32::try_from(compared).unwrap_or(u32::MAX))?;
            (p, t) = (after, end);
        }
    }

    fn element(self, pattern: &[u8], escape: Option<u32>) -> (Element, usize) {
        let (c, len) = self.character(pattern);
        if Some(c) == escape && pattern.len() > len {
            let (c, escaped_len) = self.character(&pattern[len..]);
            return (Element::Literal(self.like_weight(c)), len + escaped_len);
        }
        match c {
            0x25 => (Element::Any, len),
            0x5f => (Element::One, len),
            _ => (Element::Literal(self.like_weight(c)), len),
        }
    }

    fn character(self, text: &[u8]) -> (u32, usize) {
        if self.weighing() == Weighing::Binary { (text[0].into(), 1) } else { decode(text) }
    }

    fn like_weight(self, c: u32) -> u128 {
        match self.weighing() {
            Weighing::Unicode(uca) => match uca.levels() {
                [level] => uca.of(*level, c).packed(),
                levels => levels.iter().fold(0, |all, level| mixed(all, uca.of(*level, c).packed())),
            },
            weighing => weight(weighing, c).into(),
        }
    }
}

/// Levels of weights as one number; different ones meet in one only by a chance of 2 to the 128th.
fn mixed(all: u128, level: u128) -> u128 {
    (all ^ level).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b).rotate_left(29)
}

/// The part of a pattern before its first wildcard, escapes undone: what every match starts with. The flag:
/// there are no wildcards at all.
pub fn like_prefix(pattern: &[u8], escape: Option<char>, collation: Collation) -> (Vec<u8>, bool) {
    let escape = escape.map(u32::from);
    let mut prefix = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let (c, len) = collation.character(rest);
        let (mut literal, mut tail) = rest.split_at(len);
        if Some(c) == escape && !tail.is_empty() {
            (literal, tail) = tail.split_at(collation.character(tail).1);
        } else if c == 0x25 || c == 0x5f {
            return (prefix, false);
        }
        prefix.extend_from_slice(literal);
        rest = tail;
    }
    (prefix, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_and_escapes() {
        let like =
            |t: &str, p: &str| Collation::UTF8MB4_GENERAL_CI.like(t.as_bytes(), p.as_bytes(), Some('\\'));
        for (text, pattern) in [
            ("abc", "ABC"),
            ("abc", "a%"),
            ("abc", "%c"),
            ("abc", "%b%"),
            ("", "%"),
            ("", ""),
            ("aé😀", "a__"),
            ("100%", r"100\%"),
            ("a_c", r"a\_c"),
            ("aXbXc", "%X%X%"),
            ("mississippi", "m%iss%p_"),
            (r"a\", r"a\"),
            ("ß", "s"),
        ] {
            assert!(like(text, pattern), "{text:?} {pattern:?}");
        }
        for (text, pattern) in
            [("abc", "ab"), ("abc", "abc "), ("abc ", "abc"), ("abc", "____"), ("abc", r"a\%"), ("", "_")]
        {
            assert!(!like(text, pattern), "{text:?} {pattern:?}");
        }
        assert!(!Collation::UTF8MB4_BIN.like(b"abc", b"ABC", None));
        assert!(Collation::BINARY.like(b"a\xff\xfe", b"a__", None));
        assert!(Collation::UTF8MB4_BIN.like(b"a|b", b"a||b", Some('|')));
    }

    #[test]
    fn prefixes() {
        let prefix = |p: &str| like_prefix(p.as_bytes(), Some('\\'), Collation::UTF8MB4_BIN);
        assert_eq!(prefix(r"ab\%c%d"), (b"ab%c".to_vec(), false));
        assert_eq!(prefix("abc"), (b"abc".to_vec(), true));
        assert_eq!(prefix("_"), (vec![], false));
    }
}
