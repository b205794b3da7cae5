//! [`RowTree`]: the index tree that stores a table's rows, its clustered index.
//!
//! Other files reach it through [`Table::rows`] (the tree), [`Table::row_index`] (its description) and
//! [`ROWS`] (its position among the table's indexes, which accesses and cursors use as the number of an
//! index). `cargo xtask tidy` rejects `indexes[0]` elsewhere. So a table with several row trees, one for each
//! partition, starts in this file.

use cohort_base::{CommitSeq, IndexId};

use crate::model::{Index, IndexColumn, Table};

/// Position of the clustered index in [`Table::indexes`].
pub const ROWS: usize = 0;

/// The source of the keys of a row tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// The columns of the primary key.
    Primary,
    /// A counter: the table has no primary key.
    HiddenRowId,
}

/// An index tree whose values are rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTree {
    pub id: IndexId,
    pub key: RowKey,
    /// Read views older than this find nothing in the tree.
    pub since: CommitSeq,
}

impl Table {
    /// Returns the tree that stores the rows.
    #[inline]
    pub fn rows(&self) -> RowTree {
        let index = self.row_index();
        debug_assert!(index.kind.holds_rows());
        let key = if index.kind.is_primary() { RowKey::Primary } else { RowKey::HiddenRowId };
        RowTree { id: index.id, key, since: index.since }
    }

    /// Returns the description of the clustered index.
    #[inline]
    pub fn row_index(&self) -> &Index {
        &self.indexes[ROWS]
    }

    /// Returns the columns of the rows' keys, none for a hidden row id.
    #[inline]
    pub fn row_key(&self) -> &[IndexColumn] {
        &self.row_index().columns
    }

    /// Returns true if a primary key is declared.
    pub fn has_primary_key(&self) -> bool {
        self.rows().key == RowKey::Primary
    }

    /// Returns the ids of all index trees of the table.
    pub fn trees(&self) -> impl Iterator<Item = IndexId> {
        self.indexes.iter().map(|index| index.id)
    }

    /// Describes a table whose rows stay in the tree of `before`.
    pub fn keep_rows_of(&mut self, before: &Table) {
        self.indexes[ROWS].id = before.rows().id;
    }
}
