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
