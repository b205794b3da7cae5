//! Declared types of columns and casts.

use cohort_types::TypeKind;

/// A type as written, without defaults and with unresolved character set names.
#[derive(Clone, Debug, PartialEq)]
pub struct DataType {
    pub kind: DeclaredKind,
    /// `(n)` or the first number of `(m,d)`; the fraction digits of temporal types.
    pub length: Option<u64>,
    /// The second number of `(m,d)`.
    pub decimals: Option<u64>,
    pub unsigned: bool,
    /// Implies unsigned.
    pub zerofill: bool,
    /// Name after CHARACTER SET. ASCII, UNICODE, BYTE, NCHAR and NVARCHAR are converted to it.
    pub charset: Option<String>,
    /// Name after COLLATE.
    pub collation: Option<String>,
    /// `CHAR(n) BINARY`: the binary collation of the character set.
    pub binary: bool,
    /// Labels of ENUM and SET.
    pub members: Vec<String>,
}

/// The type's keyword, with synonyms resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredKind {
    /// A column type. BOOL is TinyInt with length 1. TEXT(n) and BLOB(n) keep n, from which the caller
    /// chooses the size of the type.
    Column(TypeKind),
    /// CAST(x AS SIGNED [INTEGER]).
    Signed,
    /// CAST(x AS UNSIGNED [INTEGER]).
    Unsigned,
}

impl DataType {
    /// Returns a column type without attributes.
    pub fn plain(kind: TypeKind) -> DataType {
        DataType::of(DeclaredKind::Column(kind))
    }

    /// Returns a type without attributes.
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
