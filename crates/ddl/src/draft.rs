//! The description of a table that a statement builds: empty for CREATE TABLE, or copied from the existing
//! table for ALTER TABLE. Keys refer to columns by name, so that columns can be added, dropped and moved.

use std::collections::BTreeSet;
use std::sync::Arc;

use cohort_catalog::{Check, Column, ForeignAction, IndexKind, KeyMethod, Table, TableName, Trigger};
use cohort_types::Collation;

pub(super) const COLUMNS_MAX: usize = 1017;

/// A column, with its position in the previous table, if it existed.
#[derive(Clone, Debug)]
pub(super) struct DraftColumn {
    pub(super) column: Column,
    pub(super) origin: Option<usize>,
    /// Whether the statement describes it (ADD, MODIFY, CHANGE).
    pub(super) is_described: bool,
}

/// A key, with the index of the previous table that it was, if it existed.
#[derive(Clone, Debug)]
pub(super) struct DraftKey {
    /// `None` until the key is named.
    pub(super) name: Option<String>,
    pub(super) kind: IndexKind,
    pub(super) parts: Vec<DraftPart>,
    pub(super) comment: String,
    pub(super) ignored: bool,
    pub(super) using: Option<KeyMethod>,
    /// Whether the key exists only for a foreign key. Another key that begins with its columns replaces it.
    pub(super) generated: bool,
    pub(super) origin: Option<usize>,
    /// A dropped column that the key contained.
    pub(super) lost: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DraftPart {
    pub(super) column: String,
    pub(super) prefix: Option<u32>,
    pub(super) descending: bool,
    /// Whether the column was dropped. A new column with the same name takes its place. `prefix` is the
    /// length of the part, even if that was the whole column.
    pub(super) is_dropped: bool,
}

/// A table definition under construction.
#[derive(Clone, Debug)]
pub(super) struct TableDraft {
    pub(super) name: TableName,
    pub(super) engine: String,
    pub(super) columns: Vec<DraftColumn>,
    pub(super) keys: Vec<DraftKey>,
    pub(super) collation: Collation,
    pub(super) comment: String,
    pub(super) auto_increment_start: u64,
    pub(super) options: Vec<(String, String)>,
    pub(super) created_at: u64,
    /// Constraints with an empty name are named later.
    pub(super) checks: Vec<Check>,
    pub(super) foreign_keys: Vec<DraftForeign>,
    pub(super) triggers: Vec<Arc<Trigger>>,
}

/// A foreign key under construction. Columns are referred to by name, so that they can be renamed and moved.
#[derive(Clone, Debug)]
pub(super) struct DraftForeign {
    /// Empty until the key is named.
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) parent: TableName,
    pub(super) parent_columns: Vec<String>,
    pub(super) on_delete: ForeignAction,
    pub(super) on_update: ForeignAction,
    pub(super) is_new: bool,
}

/// The finished description, with the origins of its columns and indexes.
pub(super) struct Described {
    pub(super) table: Table,
    /// For each column, its position in the previous table.
    pub(super) column_origins: Vec<Option<usize>>,
    /// Columns that the statement describes.
    pub(super) described: Vec<usize>,
    /// For each index, its position in the previous table. A new hidden row id has none.
    pub(super) index_origins: Vec<Option<usize>>,
    /// Names of foreign keys that the previous table did not have.
    pub(super) new_foreign_keys: BTreeSet<String>,
    /// ALTER IGNORE: rows that the new table cannot hold are left out, and invalid values are adjusted.
    pub(super) ignores: bool,
}
