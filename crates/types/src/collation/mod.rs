//! Character sets and collations. The numbers are MariaDB's: they are on the wire and in the binlog.

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

impl Collation {
    /// `utf8mb4_general_ci`, the server's default.
    pub const UTF8MB4_GENERAL_CI: Collation = Collation(45);
    /// `utf8mb4_bin`.
    pub const UTF8MB4_BIN: Collation = Collation(46);
    /// `binary`.
    pub const BINARY: Collation = Collation(63);
}

impl Charset {
    /// By name, any case; `utf8` is utf8mb3, as in MariaDB's default old_mode.
    pub fn by_name(name: &str) -> Option<Charset> {
        todo!()
    }
    /// `utf8mb4`, ...
    pub fn name(self) -> &'static str {
        todo!()
    }
    /// The collation of a column that names only this character set.
    pub fn default_collation(self) -> Collation {
        todo!()
    }
    /// Bytes of the longest character.
    pub fn mbmaxlen(self) -> u32 {
        todo!()
    }
    /// Appends UTF-8 text in this character set; characters that it lacks become `?`. Their number is returned.
    pub fn encode(self, text: &[u8], out: &mut Vec<u8>) -> usize {
        todo!()
    }
    /// Appends bytes of this character set as UTF-8 (binary: as they are). `Err(n)`: byte n starts no character.
    pub fn decode(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
        todo!()
    }
}

impl Collation {
    /// `latin1_swedish_ci`.
    pub const LATIN1_SWEDISH_CI: Collation = Collation(8);
    /// `ascii_general_ci`.
    pub const ASCII_GENERAL_CI: Collation = Collation(11);
    /// `utf8mb3_general_ci`, the collation of metadata.
    pub const UTF8MB3_GENERAL_CI: Collation = Collation(33);
    /// `latin1_bin`.
    pub const LATIN1_BIN: Collation = Collation(47);
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
        std::iter::empty()
    }
    /// The collation of an id, when it is known.
    pub fn from_id(id: u16) -> Option<Collation> {
        todo!()
    }
    /// By name, any case.
    pub fn by_name(name: &str) -> Option<Collation> {
        todo!()
    }
    /// `utf8mb4_general_ci`, ...
    pub fn name(self) -> &'static str {
        todo!()
    }
    /// Its character set.
    pub fn charset(self) -> Charset {
        todo!()
    }
    /// Whether it is its character set's default.
    pub fn is_default(self) -> bool {
        todo!()
    }
    /// Whether it is one of the `_bin` collations, or binary.
    pub fn is_bin(self) -> bool {
        todo!()
    }
    /// Compares, trailing spaces ignored (binary: not).
    pub fn compare(self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        todo!()
    }
    /// Appends bytes whose order is this collation's order; they end themselves (no key is a prefix of another).
    pub fn sort_key(self, text: &[u8], out: &mut Vec<u8>) {
        todo!()
    }
    /// Hashes so that equal strings have equal hashes.
    pub fn hash<H: std::hash::Hasher>(self, text: &[u8], state: &mut H) {
        todo!()
    }
    /// `text LIKE pattern ESCAPE escape`; no escape character when `None`.
    pub fn like(self, text: &[u8], pattern: &[u8], escape: Option<char>) -> bool {
        todo!()
    }
    /// Appends in upper case (binary: as it is).
    pub fn upper(self, text: &[u8], out: &mut Vec<u8>) {
        todo!()
    }
    /// Appends in lower case (binary: as it is).
    pub fn lower(self, text: &[u8], out: &mut Vec<u8>) {
        todo!()
    }
    /// Number of characters (binary: bytes).
    pub fn char_len(self, text: &[u8]) -> usize {
        todo!()
    }
    /// Byte length of the first `chars` characters, or of all when there are fewer.
    pub fn prefix_len(self, text: &[u8], chars: usize) -> usize {
        todo!()
    }
}
