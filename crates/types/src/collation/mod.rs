//! Character sets and collations. The numbers are MariaDB's: they are on the wire and in the binlog.
//!
//! Text in memory is UTF-8 whatever its character set ([`crate::Value`]), so collations of latin1 and ascii
//! weigh characters, and only binary weighs bytes. All collations but binary ignore trailing spaces (PAD
//! SPACE).
//!
//! | file | what |
//! |---|---|
//! | `fold` | weights, upper and lower case of characters; `folds` are the recorded tables |
//! | `order` | compare, hash, sort keys |
//! | `like` | LIKE |
//! | `uca` | weights of unicode_ci, recorded |
//! | `convert` | character sets from and to UTF-8 |

mod convert;
mod fold;
mod folds;
mod like;
mod order;
mod uca;

pub use like::like_prefix;

/// A character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Charset {
    /// Up to four bytes a character.
    Utf8mb4,
    /// MariaDB's `utf8` (utf8mb3): up to three bytes.
    Utf8mb3,
    /// cp1252.
    Latin1,
    /// Seven bits.
    Ascii,
    /// Any bytes.
    Binary,
}

/// An order of strings, with its character set; the number is MariaDB's collation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collation(pub u16);

/// How a collation weighs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weighing {
    /// Bytes, spaces count.
    Binary,
    /// UTF-8 bytes, which is the order of code points.
    Bytes,
    /// Bytes of latin1.
    Latin1Bytes,
    /// ASCII upper case.
    AsciiUpper,
    /// latin1_swedish_ci.
    Swedish,
    /// general_ci.
    General,
    /// unicode_ci.
    Unicode,
}

struct Entry {
    id: u16,
    name: &'static str,
    charset: Charset,
    weighing: Weighing,
    is_default: bool,
}

const fn entry(id: u16, name: &'static str, charset: Charset, weighing: Weighing) -> Entry {
    Entry { id, name, charset, weighing, is_default: false }
}

const fn default(id: u16, name: &'static str, charset: Charset, weighing: Weighing) -> Entry {
    Entry { id, name, charset, weighing, is_default: true }
}

/// All collations, by id.
static COLLATIONS: [Entry; 11] = [
    default(8, "latin1_swedish_ci", Charset::Latin1, Weighing::Swedish),
    default(11, "ascii_general_ci", Charset::Ascii, Weighing::AsciiUpper),
    default(33, "utf8mb3_general_ci", Charset::Utf8mb3, Weighing::General),
    default(45, "utf8mb4_general_ci", Charset::Utf8mb4, Weighing::General),
    entry(46, "utf8mb4_bin", Charset::Utf8mb4, Weighing::Bytes),
    entry(47, "latin1_bin", Charset::Latin1, Weighing::Latin1Bytes),
    default(63, "binary", Charset::Binary, Weighing::Binary),
    entry(65, "ascii_bin", Charset::Ascii, Weighing::Bytes),
    entry(83, "utf8mb3_bin", Charset::Utf8mb3, Weighing::Bytes),
    entry(192, "utf8mb3_unicode_ci", Charset::Utf8mb3, Weighing::Unicode),
    entry(224, "utf8mb4_unicode_ci", Charset::Utf8mb4, Weighing::Unicode),
];

impl Charset {
    /// All of them.
    pub const ALL: [Charset; 5] =
        [Charset::Utf8mb4, Charset::Utf8mb3, Charset::Latin1, Charset::Ascii, Charset::Binary];

    /// By name, any case; `utf8` is utf8mb3, as in MariaDB's default old_mode.
    pub fn by_name(name: &str) -> Option<Charset> {
        if name.eq_ignore_ascii_case("utf8") {
            return Some(Charset::Utf8mb3);
        }
        Charset::ALL.into_iter().find(|c| c.name().eq_ignore_ascii_case(name))
    }

    /// `utf8mb4`, ...
    pub fn name(self) -> &'static str {
        match self {
            Charset::Utf8mb4 => "utf8mb4",
            Charset::Utf8mb3 => "utf8mb3",
            Charset::Latin1 => "latin1",
            Charset::Ascii => "ascii",
            Charset::Binary => "binary",
        }
    }

    /// As SHOW CHARACTER SET describes it.
    pub fn description(self) -> &'static str {
        match self {
            Charset::Utf8mb4 | Charset::Utf8mb3 => "UTF-8 Unicode",
            Charset::Latin1 => "cp1252 West European",
            Charset::Ascii => "US ASCII",
            Charset::Binary => "Binary pseudo charset",
        }
    }

    /// The collation of a column that names only this character set.
    pub fn default_collation(self) -> Collation {
        match self {
            Charset::Utf8mb4 => Collation::UTF8MB4_GENERAL_CI,
            Charset::Utf8mb3 => Collation::UTF8MB3_GENERAL_CI,
            Charset::Latin1 => Collation::LATIN1_SWEDISH_CI,
            Charset::Ascii => Collation::ASCII_GENERAL_CI,
            Charset::Binary => Collation::BINARY,
        }
    }

    /// The `_bin` collation.
    pub fn bin_collation(self) -> Collation {
        match self {
            Charset::Utf8mb4 => Collation::UTF8MB4_BIN,
            Charset::Utf8mb3 => Collation::UTF8MB3_BIN,
            Charset::Latin1 => Collation::LATIN1_BIN,
            Charset::Ascii => Collation::ASCII_BIN,
            Charset::Binary => Collation::BINARY,
        }
    }

    /// Bytes of the longest character.
    pub fn mbmaxlen(self) -> u32 {
        match self {
            Charset::Utf8mb4 => 4,
            Charset::Utf8mb3 => 3,
            Charset::Latin1 | Charset::Ascii | Charset::Binary => 1,
        }
    }
}

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

    /// All collations this server knows, in order of their ids.
    pub fn all() -> impl Iterator<Item = Collation> {
        COLLATIONS.iter().map(|e| Collation(e.id))
    }

    /// The collation of an id, when it is known.
    pub fn from_id(id: u16) -> Option<Collation> {
        COLLATIONS.iter().find(|e| e.id == id).map(|e| Collation(e.id))
    }

    /// By name, any case; `utf8_` names are utf8mb3's.
    pub fn by_name(name: &str) -> Option<Collation> {
        let lower = name.to_ascii_lowercase();
        let full = lower.strip_prefix("utf8_").map(|rest| format!("utf8mb3_{rest}"));
        let wanted = full.as_deref().unwrap_or(&lower);
        COLLATIONS.iter().find(|e| e.name == wanted).map(|e| Collation(e.id))
    }

    /// An id that is not known, which only a foreign event can bring, counts as binary.
    fn entry(self) -> &'static Entry {
        // The two most frequent first.
        match self.0 {
            45 => &COLLATIONS[3],
            63 => &COLLATIONS[6],
            id => COLLATIONS.iter().find(|e| e.id == id).unwrap_or(&COLLATIONS[6]),
        }
    }

    /// `utf8mb4_general_ci`, ...
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Its character set.
    pub fn charset(self) -> Charset {
        self.entry().charset
    }

    /// Whether it is its character set's default.
    pub fn is_default(self) -> bool {
        self.entry().is_default
    }

    /// Whether it is one of the `_bin` collations, or binary.
    pub fn is_bin(self) -> bool {
        matches!(self.weighing(), Weighing::Binary | Weighing::Bytes | Weighing::Latin1Bytes)
    }

    fn weighing(self) -> Weighing {
        self.entry().weighing
    }

    /// Number of characters (binary: bytes).
    pub fn char_len(self, text: &[u8]) -> usize {
        if self == Collation::BINARY {
            return text.len();
        }
        text.iter().filter(|&&b| b & 0xc0 != 0x80).count()
    }

    /// Byte length of the first `chars` characters, or of all when there are fewer.
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
        assert_eq!(Collation::by_name("utf8mb4_nopad_bin"), None);
        assert_eq!(Collation(45).entry().id, 45);
        assert_eq!(Collation(63).entry().id, 63);
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
