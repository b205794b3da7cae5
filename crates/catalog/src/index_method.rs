//! [`IndexMethod`]: the properties of each kind of index. Code that only needs to know how an index behaves
//! reads them here, through the methods of [`IndexKind`]; a new kind is a new row.
//!
//! | a new kind also changes | because |
//! |---|---|
//! | `KeyKind` in `crates/sql/src/ast/ddl.rs` | it has a word in CREATE TABLE |
//! | `crates/ddl/src/key.rs` | rules for its columns |
//! | `crates/table/src/keys.rs` | entries of a row, and the way back to the row |
//! | `crates/row/src/row_keys.rs`, `crates/optimize/src/access.rs` | searches other than ranges of values |

/// The kind of an index. The numbers are on disk, so existing ones must never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// PRIMARY KEY, clustered: key = columns, value = row.
    Primary = 0,
    /// No primary key was declared: key = u64 row id, big-endian; value = row.
    HiddenRowId = 1,
    /// UNIQUE: key = columns, value = clustered key. If a column is NULL, the clustered key is appended to
    /// the key.
    Unique = 2,
    /// KEY: key = columns + clustered key, value empty.
    Secondary = 3,
    /// FULLTEXT: one entry per word of the row's columns; key = word + clustered key, value empty. The
    /// fulltext indexes of a table come last.
    FullText = 4,
    /// UNIQUE over columns that are too long for a key: key = hash of the columns, value = clustered key. If
    /// a column is NULL, the clustered key is appended to the hash. The hash is cryptographic, so equal
    /// hashes mean equal columns.
    UniqueHash = 5,
}

/// Requested structure of an index. Each is a B+tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMethod {
    BTree,
    Hash,
}

impl KeyMethod {
    /// Returns its name in statements.
    pub fn name(self) -> &'static str {
        match self {
            KeyMethod::BTree => "BTREE",
            KeyMethod::Hash => "HASH",
        }
    }
}

/// The value of an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryValue {
    Row,
    /// The clustered key of the row.
    RowKey,
    /// Nothing: the key of the entry ends with the clustered key.
    Nothing,
}

/// The properties of a kind of index.
#[derive(Debug)]
pub struct IndexMethod {
    kind: IndexKind,
    /// The words before the index's name in SHOW CREATE TABLE, or `None` if the index is not shown.
    pub declaration: Option<&'static str>,
    /// USING in SHOW CREATE TABLE, in place of the requested structure.
    pub using: Option<KeyMethod>,
    /// INDEX_TYPE in `information_schema.STATISTICS`.
    pub structure: &'static str,
    /// TYPE in `information_schema.INNODB_SYS_INDEXES`, the sum of: 1 clustered, 2 unique, 32 FULLTEXT, 128
    /// virtual.
    pub innodb_type: u64,
    /// Two rows cannot have the same values in the columns, except NULL.
    is_unique: bool,
    /// The entries are sorted by the values of the columns.
    is_sorted: bool,
    value: EntryValue,
}

/// All kinds, by their numbers.
static METHODS: [IndexMethod; 6] = [
    IndexMethod {
        kind: IndexKind::Primary,
        declaration: Some("PRIMARY KEY"),
        using: None,
        structure: "BTREE",
        innodb_type: 3,
        is_unique: true,
        is_sorted: true,
        value: EntryValue::Row,
    },
    IndexMethod {
        kind: IndexKind::HiddenRowId,
        declaration: None,
        using: None,
        structure: "BTREE",
        innodb_type: 1,
        is_unique: false,
        is_sorted: false,
        value: EntryValue::Row,
    },
    IndexMethod {
        kind: IndexKind::Unique,
        declaration: Some("UNIQUE KEY"),
        using: None,
        structure: "BTREE",
        innodb_type: 2,
        is_unique: true,
        is_sorted: true,
        value: EntryValue::RowKey,
    },
    IndexMethod {
        kind: IndexKind::Secondary,
        declaration: Some("KEY"),
        using: None,
        structure: "BTREE",
        innodb_type: 0,
        is_unique: false,
        is_sorted: true,
        value: EntryValue::Nothing,
    },
    IndexMethod {
        kind: IndexKind::FullText,
        declaration: Some("FULLTEXT KEY"),
        using: None,
        structure: "FULLTEXT",
        innodb_type: 32,
        is_unique: false,
        is_sorted: false,
        value: EntryValue::Nothing,
    },
    IndexMethod {
        kind: IndexKind::UniqueHash,
        declaration: Some("UNIQUE KEY"),
        using: Some(KeyMethod::Hash),
        structure: "HASH",
        innodb_type: 128,
        is_unique: true,
        is_sorted: false,
        value: EntryValue::RowKey,
    },
];

impl IndexKind {
    /// Returns the kind with this number on disk.
    pub(crate) fn numbered(number: u8) -> Option<IndexKind> {
        METHODS.get(usize::from(number)).map(|method| method.kind)
    }

    /// Returns the number on disk.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// Returns the properties of the kind.
    #[inline]
    pub fn method(self) -> &'static IndexMethod {
        &METHODS[self as usize]
    }

    /// Returns whether it is the primary key.
    #[inline]
    pub fn is_primary(self) -> bool {
        self == IndexKind::Primary
    }

    /// Returns whether two rows cannot have the same values in the columns. Rows with a NULL in one of them
    /// never collide.
    #[inline]
    pub fn is_unique(self) -> bool {
        self.method().is_unique
    }

    /// Returns whether the entries are sorted by the values of the columns, so that searches and scans in
    /// order can use them.
    #[inline]
    pub fn is_sorted(self) -> bool {
        self.method().is_sorted
    }

    /// Returns whether the values of the entries are rows.
    #[inline]
    pub fn holds_rows(self) -> bool {
        self.method().value == EntryValue::Row
    }

    /// Returns the value of an entry.
    #[inline]
    pub fn value(self) -> EntryValue {
        self.method().value
    }

    /// Returns whether statements can name the index.
    pub fn is_declared(self) -> bool {
        self.method().declaration.is_some()
    }

    /// Returns whether a scan of the entries finds the rows by the values of their columns.
    pub fn is_scannable(self) -> bool {
        self.is_sorted() || self.holds_rows()
    }

    /// Returns whether the entries are sorted by the columns and then by the clustered key.
    pub fn ends_with_row_key(self) -> bool {
        self.is_sorted() && self.value() == EntryValue::Nothing
    }

    /// Returns whether a row has an entry for each word of its columns.
    pub fn has_words(self) -> bool {
        self == IndexKind::FullText
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_row() {
        for (number, method) in METHODS.iter().enumerate() {
            assert_eq!(usize::from(method.kind.number()), number);
            assert_eq!(IndexKind::numbered(number as u8), Some(method.kind));
            // The clustered index of a table is the only one that holds rows.
            let is_clustered = matches!(method.kind, IndexKind::Primary | IndexKind::HiddenRowId);
            assert_eq!(method.kind.holds_rows(), is_clustered);
            assert_eq!(method.innodb_type & 1 == 1, is_clustered);
            assert_eq!(method.innodb_type & 2 == 2, method.kind.is_unique() && method.kind.is_sorted());
        }
        assert_eq!(IndexKind::numbered(METHODS.len() as u8), None);
    }
}
