//! Declared types of columns and casts.

use cohort_types::TypeKind;

/// A type as written: nothing defaulted, charset names not resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct DataType {
    pub kind: DeclaredKind,
    /// `(n)` or the first of `(m,d)`; for temporal types the fraction digits.
    pub length: Option<u64>,
    /// The second of `(m,d)`.
    pub decimals: Option<u64>,
    pub unsigned: bool,
    /// Implies unsigned.
    pub zerofill: bool,
    /// CHARACTER SET name; ASCII, UNICODE, BYTE, NCHAR and NVARCHAR are lowered to it.
    pub charset: Option<String>,
    /// COLLATE name.
    pub collation: Option<String>,
    /// `CHAR(n) BINARY`: the binary collation of the character set.
    pub binary: bool,
    /// Labels of ENUM and SET.
    pub members: Vec<String>,
}

/// The word that names the type, synonyms resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredKind {
    /// A type of columns; BOOL is TinyInt with length 1; TEXT(n) and BLOB(n) keep n for the caller to choose
    /// the family member by.
    Column(TypeKind),
    /// CAST(x AS SIGNED [INTEGER]).
    Signed,
    /// CAST(x AS UNSIGNED [INTEGER]).
    Unsigned,
}

impl DataType {
    /// A type without any attribute.
    pub fn plain(kind: TypeKind) -> DataType {
        DataType::of(DeclaredKind::Column(kind))
    }

    /// A type without any attribute.
    pub fn of(kind: DeclaredKind) -> DataType {
        DataType {
            kind,
            length: None,
            decimals: None,
            unsigned: false,
            zerofill: false,
            charset: None,
            collation: None,
            binary: false,
            members: Vec::new(),
        }
    }
}
