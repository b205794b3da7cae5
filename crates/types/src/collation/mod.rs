//! Character sets and collations. Their ids are MariaDB's, because they appear in the protocol and in the
//! binlog.
//!
//! Text in memory is UTF-8 for every character set ([`crate::Value`]). Collations of other sets therefore
//! first map a character to its bytes in the set; only binary weighs the bytes in memory. All collations
//! except binary and those named `nopad` ignore trailing spaces (PAD SPACE).
//!
//! Missing: bytes that are not a character of their set cannot be stored, as MariaDB can.
//!
//! | file | contents |
//! |---|---|
//! | `charset` | character sets |
//! | `table` | all collations |
//! | `fold` | weights, upper and lower case of characters; `folds` and `cases` are the recorded tables |
//! | `order` | comparison, hashes, sort keys |
//! | `like` | LIKE |
//! | `weight_string` | WEIGHT_STRING |
//! | `uca` | recorded weights of the unicode collations |
//! | `tailorings`, `sequences` | tailorings of languages, and contractions |
//! | `bytes` | single-byte sets, recorded |
//! | `wide` | Chinese, Japanese and Korean sets, recorded |
//! | `convert` | conversion of character sets from and to UTF-8 |
//! | `statement_text` | statements in sets whose characters may end in a backslash |

mod bytes;
mod cases;
mod charset;
mod convert;
mod fold;
mod folds;
mod like;
mod order;
mod sequences;
mod statement_text;
mod table;
mod tailorings;
mod uca;
mod weight_string;
mod wide;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use charset::Charset;
pub use convert::is_text;
pub use like::{LikePattern, like_prefix};
pub use order::Fronts;
pub use statement_text::UnsafeText;
use table::{COLLATIONS, Entry, Weighing};

/// A collation: an order of strings and their character set. The number is MariaDB's collation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collation(pub u16);

/// One more than the largest id.
const IDS: usize = {
    let (mut n, mut max) = (0, 0);
    while n < COLLATIONS.len() {
        if COLLATIONS[n].id > max {
            max = COLLATIONS[n].id;
        }
        n += 1;
    }
    max as usize + 1
};

const NOWHERE: u16 = u16::MAX;

/// Index in the table by collation id.
static PLACES: [u16; IDS] = {
    let mut places = [NOWHERE; IDS];
    let mut n = 0;
    while n < COLLATIONS.len() {
        places[COLLATIONS[n].id as usize] = n as u16;
        n += 1;
    }
    places
};

static TABLE: [Entry; COLLATIONS.len()] = COLLATIONS;

/// Collations by name, for example for headers of the binary log.
static BY_NAME: LazyLock<HashMap<&str, Collation>> =
    LazyLock::new(|| TABLE.iter().map(|entry| (entry.name, Collation(entry.id))).collect());

impl Collation {
    /// `latin1_swedish_ci`.
    pub const LATIN1_SWEDISH_CI: Collation = Collation(8);
    /// `ascii_general_ci`.
    pub const ASCII_GENERAL_CI: Collation = Collation(11);
    /// `utf8mb3_general_ci`, the collation of metadata.
    pub const UTF8MB3_GENERAL_CI: Collation = Collation(33);
    /// `utf8mb4_general_ci`, the server's default.
    pub const UTF8MB4_GENERAL_CI: Collation = Collation(45);
    /// `utf8mb4_bin`.
    pub const UTF8MB4_BIN: Collation = Collation(46);
    /// `latin1_bin`.
    pub const LATIN1_BIN: Collation = Collation(47);
    /// `binary`.
    pub const BINARY: Collation = Collation(63);
    /// `ascii_bin`.
    pub const ASCII_BIN: Collation = Collation(65);
    /// `utf8mb3_bin`.
    pub const UTF8MB3_BIN: Collation = Collation(83);
    /// `utf8mb3_unicode_ci`.
    pub const UTF8MB3_UNICODE_CI: Collation = Collation(192);
    /// `utf8mb4_unicode_ci`.
    pub const UTF8MB4_UNICODE_CI: Collation = Collation(224);

    /// Names of all collations, in the order of [`Collation::all`].
    pub const NAMES: [&'static str; COLLATIONS.len()] = {
        let mut names = [""; COLLATIONS.len()];
        let mut n = 0;
        while n < names.len() {
            names[n] = COLLATIONS[n].name;
            n += 1;
        }
        names
    };

    /// Returns all collations of this server, in MariaDB's order: by character set, then by id.
    pub fn all() -> impl Iterator<Item = Collation> {
        TABLE.iter().map(|e| Collation(e.id))
    }

    /// Returns the collation with an id, if this server has it.
    pub fn from_id(id: u16) -> Option<Collation> {
        PLACES.get(usize::from(id)).filter(|place| **place != NOWHERE).map(|_| Collation(id))
    }

    /// Finds a collation by a name that several character sets share: `uca1400_ai_ci`.
    pub fn by_name_in(charset: Charset, name: &str) -> Option<Collation> {
        let is_short = name.get(..8).is_some_and(|front| front.eq_ignore_ascii_case("uca1400_"));
        match is_short {
            true => Collation::by_name(&format!("{}_{name}", charset.name())),
            false => Collation::by_name(name),
        }
    }

    /// Returns the name without the character set, if collations of several sets share it.
    pub fn common_name(self) -> Option<&'static str> {
        let rest = self.name().strip_prefix(self.charset().name())?.strip_prefix('_')?;
        rest.starts_with("uca1400_").then_some(rest)
    }

    /// Finds a collation by its name, in any case. `utf8_` names are those of utf8mb3.
    pub fn by_name(name: &str) -> Option<Collation> {
        let lower = name.to_ascii_lowercase();
        let full = lower.strip_prefix("utf8_").map(|rest| format!("utf8mb3_{rest}"));
        let wanted = full.as_deref().unwrap_or(&lower);
        BY_NAME.get(wanted).copied()
    }

    /// Returns the table entry. An unknown id, which only an event of another server can contain, counts as
    /// binary.
    fn entry(self) -> &'static Entry {
        let place = match PLACES.get(usize::from(self.0)) {
            Some(&place) if place != NOWHERE => place,
            _ => PLACES[usize::from(Collation::BINARY.0)],
        };
        &TABLE[usize::from(place)]
    }

    /// Returns the name, for example `utf8mb4_general_ci`.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the character set.
    pub fn charset(self) -> Charset {
        self.entry().charset
    }

    /// Returns whether it is the default of its character set.
    pub fn is_default(self) -> bool {
        self.charset().default_collation() == self
    }

    /// Returns the maximum number of weights of a character.
    pub fn sort_len(self) -> u8 {
        self.entry().sort_len
    }

    /// Returns whether it is a `_bin` collation or binary.
    pub fn is_bin(self) -> bool {
        use Weighing as W;
        matches!(self.weighing(), W::Binary | W::Bytes | W::Latin1Bytes | W::Code(_) | W::WideCode(_))
    }

    fn weighing(self) -> Weighing {
        self.entry().weighing
    }

    /// Returns whether comparisons pad the shorter string with spaces (PAD SPACE).
    pub(crate) fn pads(self) -> bool {
        self.entry().pads
    }

    /// Returns the number of characters (binary: bytes).
    pub fn char_len(self, text: &[u8]) -> usize {
        if self == Collation::BINARY {
            return text.len();
        }
        text.iter().filter(|&&b| b & 0xc0 != 0x80).count()
    }

    /// Returns the length in bytes of the first `chars` characters, or of the whole text if it has fewer.
    pub fn prefix_len(self, text: &[u8], chars: usize) -> usize {
        if text.len() <= chars {
            return text.len();
        }
        if self == Collation::BINARY {
            return chars;
        }
        let mut starts = text.iter().enumerate().filter(|(_, b)| **b & 0xc0 != 0x80);
        starts.nth(chars).map_or(text.len(), |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_go_both_ways() {
        for collation in Collation::all() {
            assert_eq!(Collation::by_name(&collation.name().to_uppercase()), Some(collation));
            assert_eq!(Collation::from_id(collation.0), Some(collation));
            assert_eq!(collation.is_default(), collation.charset().default_collation() == collation);
            assert_eq!(Charset::by_name(collation.charset().name()), Some(collation.charset()));
        }
        assert_eq!(Collation::by_name("utf8_general_ci"), Some(Collation::UTF8MB3_GENERAL_CI));
        assert_eq!(Collation::by_name("utf8mb4_sinhala_ci"), None);
        assert_eq!(Collation(9999).entry().id, 63);
        for charset in Charset::ALL {
            assert_eq!(charset.bin_collation().charset(), charset);
            assert!(charset.bin_collation().is_bin());
        }
    }

    #[test]
    fn lengths_are_of_characters() {
        let text = "aé€😀".as_bytes();
        assert_eq!(Collation::UTF8MB4_BIN.char_len(text), 4);
        assert_eq!(Collation::BINARY.char_len(text), 10);
        assert_eq!(Collation::UTF8MB4_BIN.prefix_len(text, 2), 3);
        assert_eq!(Collation::UTF8MB4_BIN.prefix_len(text, 9), 10);
        assert_eq!(Collation::BINARY.prefix_len(text, 2), 2);
    }
}
