//! What the catalog holds. Values are immutable and shared: a statement keeps the `Arc<Catalog>` it was
//! planned with, DDL makes a new one.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, TableId};
use cohort_types::{Collation, ColumnType, RowLayout, StoredPlace, TypeKind, Value};

use crate::account::{Account, AccountName};
use crate::foreign::ForeignKey;
use crate::view::View;

/// `schema.table`, exact spelling (lower_case_table_names = 0).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    pub schema: String,
    pub table: String,
}

/// Everything, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// Grows with every change; plans of an older version are stale.
    pub version: u64,
    pub schemas: BTreeMap<String, Arc<Schema>>,
    pub accounts: BTreeMap<AccountName, Arc<Account>>,
    /// The next unused ids; never handed out twice, also over a crash.
    pub next_table: TableId,
    pub next_index: IndexId,
}

/// A database.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub name: String,
    pub collation: Collation,
    pub comment: String,
    pub tables: BTreeMap<String, Arc<Table>>,
    /// No view has the name of a table.
    pub views: BTreeMap<String, Arc<View>>,
}

/// The option that a sequence's table has.
pub const SEQUENCE_OPTION: &str = "SEQUENCE";

/// A base table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub id: TableId,
    pub name: TableName,
    /// `ROCKSDB`.
    pub engine: String,
    pub columns: Vec<Column>,
    /// The clustered index first; then in the order of definition. Without a primary key the first is
    /// [`IndexKind::HiddenRowId`].
    pub indexes: Vec<Index>,
    /// Default of new character columns.
    pub collation: Collation,
    pub comment: String,
    /// AUTO_INCREMENT=n given by CREATE or ALTER; the running counter is the engine's matter.
    pub auto_increment_start: u64,
    /// Other table options, kept as written for SHOW CREATE TABLE.
    pub options: Vec<(String, String)>,
    /// Seconds since 1970 UTC.
    pub created_at: u64,
    /// CHECK constraints of the table; those of columns are with them.
    pub checks: Vec<Check>,
    /// In the order of their names.
    pub foreign_keys: Vec<ForeignKey>,
    /// Tables whose foreign keys refer to this one; derived, in the order of their names.
    pub referenced_by: Vec<TableName>,
    /// What rows hold, in that order. Empty where rows hold the columns as they are shown: so it is until one
    /// is dropped, moved or added before others.
    pub storage: Vec<StoredPlace>,
}

/// A CHECK constraint of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    /// SQL that is parsed again.
    pub text: String,
}

/// GENERATED ALWAYS AS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// SQL that is parsed again.
    pub text: String,
    /// STORED. Rows hold VIRTUAL columns too; the word decides what SHOW CREATE TABLE says.
    pub stored: bool,
}

/// A column. Its ordinal is its place in [`Table::columns`].
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub ty: ColumnType,
    pub nullable: bool,
    pub default: DefaultValue,
    pub on_update: OnUpdate,
    pub auto_increment: bool,
    pub invisible: bool,
    pub comment: String,
    /// What a row that was written before this column existed holds.
    pub value_in_old_rows: Value,
    /// What the column is computed with.
    pub generated: Option<Generated>,
    /// CHECK of the column, as SQL that is parsed again.
    pub check: Option<String>,
}

impl Column {
    /// Whether it is generated, and computed when it is read.
    pub fn is_virtual(&self) -> bool {
        self.generated.as_ref().is_some_and(|generated| !generated.stored)
    }

    /// A column of which nothing else is said.
    pub fn plain(name: String, ty: ColumnType, nullable: bool, default: DefaultValue) -> Column {
        Column {
            name,
            ty,
            nullable,
            default,
            on_update: OnUpdate::Keep,
            auto_increment: false,
            invisible: false,
            comment: String::new(),
            value_in_old_rows: Value::Null,
            generated: None,
            check: None,
        }
    }
}

/// DEFAULT of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// No DEFAULT clause and NOT NULL.
    None,
    /// A constant, NULL included, already converted to the column's type.
    Value(Value),
    /// CURRENT_TIMESTAMP with the column's fraction digits.
    CurrentTimestamp,
    /// Any other expression, as SQL text that is parsed again.
    Expression(String),
}

/// ON UPDATE of a temporal column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUpdate {
    Keep,
    CurrentTimestamp,
}

/// What an index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// PRIMARY KEY, clustered: key = columns, value = row.
    Primary,
    /// No primary key was declared: key = u64 row id, big-endian; value = row.
    HiddenRowId,
    /// UNIQUE: key = columns, value = clustered key; rows with a NULL among the columns append the clustered
    /// key to the key.
    Unique,
    /// KEY: key = columns + clustered key, value empty.
    Secondary,
    /// FULLTEXT: an entry for each word of the row's columns; key = word + clustered key, value empty. Those
    /// of a table come last.
    FullText,
}

/// An index.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    pub id: IndexId,
    /// `PRIMARY` for the primary key.
    pub name: String,
    pub kind: IndexKind,
    /// Empty for [`IndexKind::HiddenRowId`].
    pub columns: Vec<IndexColumn>,
    pub comment: String,
    /// IGNORED: kept up to date, and not read by queries.
    pub ignored: bool,
    /// USING, which is kept to be shown.
    pub using: Option<KeyMethod>,
    /// Made for a foreign key: it goes when another key can take its place.
    pub generated: bool,
    /// The transaction that filled the key space: a read view that is older finds nothing there. In memory
    /// only, because no view outlives the server; 0 for what the start of the server found.
    pub since: CommitSeq,
}

/// The structure that a key was asked to have. Each is a B+tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMethod {
    BTree,
    Hash,
}

impl KeyMethod {
    /// As statements name it.
    pub fn name(self) -> &'static str {
        match self {
            KeyMethod::BTree => "BTREE",
            KeyMethod::Hash => "HASH",
        }
    }
}

/// A key part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexColumn {
    /// Ordinal of the column in the table.
    pub column: usize,
    /// KEY(col(n)): characters of text, bytes of binary strings.
    pub prefix: Option<u32>,
    /// KEY(col DESC). The key space is in ascending order all the same: scans run both ways.
    pub descending: bool,
}

impl Catalog {
    /// A table by its name.
    pub fn table(&self, schema: &str, table: &str) -> Option<&Arc<Table>> {
        self.schemas.get(schema)?.tables.get(table)
    }

    /// A table by its id; all tables are looked at.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.schemas.values().flat_map(|schema| schema.tables.values()).find(|table| table.id == id)
    }

    /// A view by its name.
    pub fn view(&self, schema: &str, view: &str) -> Option<&Arc<View>> {
        self.schemas.get(schema)?.views.get(view)
    }
}

impl Table {
    /// The column that `_rowid` means: the only one of the primary key, or else of the first unique key whose
    /// columns are NOT NULL, if it is an integer.
    pub fn row_id_column(&self) -> Option<usize> {
        use TypeKind::{Bit, Year};
        let is_required = |part: &IndexColumn| !self.columns[part.column].nullable;
        let is_key = |index: &&Index| match index.kind {
            IndexKind::Primary => true,
            IndexKind::Unique => index.columns.iter().all(is_required),
            _ => false,
        };
        let [part] = self.indexes.iter().find(is_key)?.columns.as_slice() else { return None };
        let kind = self.columns[part.column].ty.kind;
        (kind.is_integer() || matches!(kind, Bit | Year)).then_some(part.column)
    }

    /// The index whose values are the rows.
    pub fn clustered(&self) -> &Index {
        &self.indexes[0]
    }

    /// Whether it gives numbers: its one row says which.
    pub fn is_sequence(&self) -> bool {
        self.options.iter().any(|(name, _)| name == SEQUENCE_OPTION)
    }

    /// Whether it is a session's own.
    pub fn is_temporary(&self) -> bool {
        self.id.is_temporary()
    }

    /// How rows hold the columns.
    pub fn row_layout(&self) -> RowLayout {
        let columns = self.columns.iter().map(|c| (c.ty.clone(), c.value_in_old_rows.clone()));
        match self.storage.is_empty() {
            true => RowLayout::new(columns),
            false => RowLayout::with_places(columns, &self.storage),
        }
    }

    /// Has rows hold the columns as they are shown. There is no row yet.
    pub fn clear_storage(&mut self) {
        self.storage.clear();
        for column in &mut self.columns {
            column.value_in_old_rows = Value::Null;
        }
    }

    /// Ordinal of a column; names compare case-insensitively.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
    }
}
