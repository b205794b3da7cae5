//! LIKE: matching of patterns, and prefixes for index ranges.

use super::fold::{decode, weight};
use super::uca::Uca;
use super::{Collation, Weighing};
use crate::{Interrupt, SqlResult, Uninterrupted};

/// One element of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character, represented by its weight.
    Literal(u128),
}

impl Collation {
    /// [`Collation::like_within`] for names and other short texts.
    pub fn like(self, text: &[u8], pattern: &[u8], escape: Option<char>) -> bool {
        self.like_within(text, pattern, escape, &Uninterrupted).expect("Uninterrupted never fails")
    }

    /// Evaluates `text LIKE pattern ESCAPE escape`, without an escape character if `escape` is `None`.
    /// Characters match if their weights are equal; nothing is padded. The number of steps is at most the
    /// product of the lengths.
    pub fn like_within(
        self,
        text: &[u8],
        pattern: &[u8],
        escape: Option<char>,
        interrupt: &dyn Interrupt,
    ) -> SqlResult<bool> {
        let escape = escape.map(u32::from);
        let (mut t, mut p) = (0, 0);
        // End of the last `%` in the pattern, and end of the text that it matches so far.
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
            // Mismatch: the last `%` matches one more character.
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
            // These have no weights outside the Basic Multilingual Plane. There a character is LIKE only
            // itself, although it may be equal to others.
            Weighing::Unicode(Uca::V400 | Uca::Language(_)) if c > 0xffff => u128::MAX - u128::from(c),
            Weighing::Unicode(uca) => match uca.levels() {
                [level] => uca.of(*level, c).packed(),
                levels => levels.iter().fold(0, |all, level| mixed(all, uca.of(*level, c).packed())),
            },
            weighing => weight(weighing, c).into(),
        }
    }
}

/// Combines the weights of several levels into one number. Different weights collide with a probability of
/// 2^-128.
fn mixed(all: u128, level: u128) -> u128 {
    (all ^ level).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b).rotate_left(29)
}

/// Returns the literal prefix of a pattern, before its first wildcard and with escapes resolved. Every match
/// starts with it. The flag is whether the pattern has no wildcards.
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

/// A precompiled ASCII pattern without `_` and escapes, for matching many texts.
#[derive(Clone, Debug, PartialEq)]
pub struct LikePattern {
    collation: Collation,
    pattern: Vec<u8>,
    escape: Option<char>,
    /// For each ASCII character, the smallest one of equal weight.
    folded: [u8; 128],
    /// The pieces between the `%`, folded.
    pieces: Vec<Vec<u8>>,
}

impl LikePattern {
    /// Compiles a pattern. Returns `None` if it is of another kind.
    pub fn new(collation: Collation, pattern: &[u8], escape: Option<char>) -> Option<LikePattern> {
        let is_plain = |&c: &u8| c.is_ascii() && c != b'_' && escape.map(u32::from) != Some(c.into());
        if !pattern.iter().all(is_plain) {
            return None;
        }
        let weights: Vec<u128> = (0..128).map(|c| collation.like_weight(c)).collect();
        let mut folded = [0; 128];
        for (c, folded) in folded.iter_mut().enumerate() {
            *folded = weights.iter().position(|weight| *weight == weights[c]).unwrap_or(c) as u8;
        }
        let fold = |piece: &[u8]| piece.iter().map(|c| folded[usize::from(*c)]).collect();
        let pieces = pattern.split(|c| *c == b'%').map(fold).collect();
        Some(LikePattern { collation, pattern: pattern.to_vec(), escape, folded, pieces })
    }

    /// Returns whether a text matches.
    pub fn matches(&self, text: &[u8], interrupt: &dyn Interrupt) -> SqlResult<bool> {
        if !text.is_ascii() {
            return self.collation.like_within(text, &self.pattern, self.escape, interrupt);
        }
        let Some((last, before)) = self.pieces.split_last() else { return Ok(text.is_empty()) };
        let Some((first, between)) = before.split_first() else {
            return Ok(text.len() == last.len() && self.is_at(text, last));
        };
        if text.len() < first.len() + last.len()
            || !self.is_at(text, first)
            || !self.is_at(&text[text.len() - last.len()..], last)
        {
            return Ok(false);
        }
        let mut rest = &text[first.len()..text.len() - last.len()];
        for piece in between {
            let Some(at) = self.find(rest, piece) else { return Ok(false) };
            interrupt.steps((at / 64) as u32)?;
            rest = &rest[at + piece.len()..];
        }
        Ok(true)
    }

    /// Returns whether a text begins with a piece.
    #[inline]
    fn is_at(&self, text: &[u8], piece: &[u8]) -> bool {
        text.iter().zip(piece).all(|(c, wanted)| self.folded[usize::from(c & 127)] == *wanted)
    }

    /// Returns the offset of the first occurrence of a piece.
    #[inline]
    fn find(&self, text: &[u8], piece: &[u8]) -> Option<usize> {
        let Some((first, others)) = piece.split_first() else { return Some(0) };
        let last_start = text.len().checked_sub(piece.len())?;
        (0..=last_start).find(|&at| {
            self.folded[usize::from(text[at] & 127)] == *first && self.is_at(&text[at + 1..], others)
        })
    }
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
    fn patterns_taken_apart_match_the_same() {
        let texts = [
            "",
            "a",
            "AB",
            "abc",
            "aXbXc",
            "special requests",
            "xx SPECIAL deposits Requests",
            "größe",
            "b%",
        ];
        let patterns =
            ["", "%", "a", "ab%", "%b%", "%x%x%", "%special%requests%", "a%c", "%%c", "%e", "aa%a"];
        for collation in [
            Collation::UTF8MB4_GENERAL_CI,
            Collation::UTF8MB4_BIN,
            Collation::BINARY,
            Collation::LATIN1_SWEDISH_CI,
        ] {
            for pattern in patterns.map(str::as_bytes) {
                let apart = LikePattern::new(collation, pattern, Some('\\')).expect("a plain pattern");
                for text in texts.map(str::as_bytes) {
                    let matches = apart.matches(text, &Uninterrupted).expect("never fails");
                    assert_eq!(matches, collation.like(text, pattern, Some('\\')), "{text:?} {pattern:?}");
                }
            }
        }
        for other in ["a_", r"a\%", "ä%"] {
            assert!(LikePattern::new(Collation::UTF8MB4_BIN, other.as_bytes(), Some('\\')).is_none());
        }
    }

    #[test]
    fn prefixes() {
        let prefix = |p: &str| like_prefix(p.as_bytes(), Some('\\'), Collation::UTF8MB4_BIN);
        assert_eq!(prefix(r"ab\%c%d"), (b"ab%c".to_vec(), false));
        assert_eq!(prefix("abc"), (b"abc".to_vec(), true));
        assert_eq!(prefix("_"), (vec![], false));
    }
}
