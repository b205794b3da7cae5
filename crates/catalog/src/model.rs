//! The contents of the catalog. Values are immutable and shared: a statement keeps the `Arc<Catalog>` that it
//! was planned with, and DDL creates a new one.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, TableId};
use cohort_types::{Collation, ColumnType, RowLayout, StoredPlace, TypeKind, Value};

use crate::account::{Account, AccountName};
use crate::foreign::ForeignKey;
use crate::index_method::{IndexKind, KeyMethod};
use crate::program::{Event, ProgramKey, Routine, Trigger};
use crate::view::View;

/// `schema.table`, in exact spelling (lower_case_table_names = 0).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    pub schema: String,
    pub table: String,
}

/// A snapshot of the whole catalog.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// Incremented by every change; plans of an older version are stale.
    pub version: u64,
    pub schemas: BTreeMap<String, Arc<Schema>>,
    pub accounts: BTreeMap<AccountName, Arc<Account>>,
    /// The next unused ids. An id is never used twice, even across a crash.
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
    /// Views. Views and tables share one namespace.
    pub views: BTreeMap<String, Arc<View>>,
    pub procedures: BTreeMap<ProgramKey, Arc<Routine>>,
    pub functions: BTreeMap<ProgramKey, Arc<Routine>>,
    pub events: BTreeMap<ProgramKey, Arc<Event>>,
}

impl Schema {
    /// Creates a schema without contents.
    pub fn new(name: &str, collation: Collation, comment: &str) -> Schema {
        Schema {
            name: name.to_owned(),
            collation,
            comment: comment.to_owned(),
            tables: BTreeMap::new(),
            views: BTreeMap::new(),
            procedures: BTreeMap::new(),
            functions: BTreeMap::new(),
            events: BTreeMap::new(),
        }
    }

    /// Returns the schema with other attributes and the same contents.
    pub(crate) fn with_attributes(&self, of: &Schema) -> Schema {
        Schema {
            name: of.name.clone(),
            collation: of.collation,
            comment: of.comment.clone(),
            ..Schema::clone(self)
        }
    }
}

/// Name of the option that marks the table of a sequence.
pub const SEQUENCE_OPTION: &str = "SEQUENCE";

/// A base table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub id: TableId,
    pub name: TableName,
    /// Name of the storage engine, for example `InnoDB`.
    pub engine: String,
    pub columns: Vec<Column>,
    /// The clustered index first, the others in order of definition. Without a primary key the first is
    /// [`IndexKind::HiddenRowId`].
    pub indexes: Vec<Index>,
    /// Default collation of new character columns.
    pub collation: Collation,
    pub comment: String,
    /// AUTO_INCREMENT=n from CREATE or ALTER. The engine keeps the running counter.
    pub auto_increment_start: u64,
    /// Other table options, as written, for SHOW CREATE TABLE.
    pub options: Vec<(String, String)>,
    /// Seconds since 1970 UTC.
    pub created_at: u64,
    /// CHECK constraints of the table; columns have their own.
    pub checks: Vec<Check>,
    /// Foreign keys, sorted by name.
    pub foreign_keys: Vec<ForeignKey>,
    /// Tables whose foreign keys refer to this one, sorted by name; derived.
    pub referenced_by: Vec<TableName>,
    /// Order of the columns in stored rows. Empty if it is the declared order, as long as no column was
    /// dropped, moved or inserted before others.
    pub storage: Vec<StoredPlace>,
    /// Triggers; those of one timing and event run in this order.
    pub triggers: Vec<Arc<Trigger>>,
}

/// A CHECK constraint of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    /// SQL text, parsed again when used.
    pub text: String,
}

/// GENERATED ALWAYS AS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// SQL text, parsed again when used.
    pub text: String,
    /// STORED. Rows contain VIRTUAL columns, too; this only affects SHOW CREATE TABLE.
    pub stored: bool,
}

/// A column. Its ordinal is its index in [`Table::columns`].
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
    /// Value for rows written before this column existed.
    pub value_in_old_rows: Value,
    /// The expression of a generated column.
    pub generated: Option<Generated>,
    /// CHECK of the column, as SQL text, parsed again when used.
    pub check: Option<String>,
}

impl Column {
    /// Returns whether the column is generated and computed on reading.
    pub fn is_virtual(&self) -> bool {
        self.generated.as_ref().is_some_and(|generated| !generated.stored)
    }

    /// Returns whether the column's CHECK requires JSON documents.
    pub fn holds_documents(&self) -> bool {
        let wanted = || format!("json_valid(`{}`)", self.name.replace('`', "``"));
        self.check.as_ref().is_some_and(|check| *check == wanted())
    }

    /// Creates a column without further attributes.
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
    /// A constant, possibly NULL, converted to the column's type.
    Value(Value),
    /// CURRENT_TIMESTAMP with the column's fraction digits.
    CurrentTimestamp,
    /// Any other expression, as SQL text, parsed again when used.
    Expression(String),
}

/// ON UPDATE of a temporal column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUpdate {
    Keep,
    CurrentTimestamp,
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
    /// IGNORED: maintained, but not used by queries.
    pub ignored: bool,
    /// USING, which is kept to be shown.
    pub using: Option<KeyMethod>,
    /// Created for a foreign key; dropped when another index can replace it.
    pub generated: bool,
    /// The transaction that built the index tree; older read views find no entries in it. In memory only,
    /// because no read view outlives the server. 0 for indexes that existed at the start.
    pub since: CommitSeq,
}

impl Index {
    /// Describes the clustered index of a table without a primary key.
    pub fn hidden_row_id(id: IndexId) -> Index {
        Index {
            id,
            name: String::new(),
            kind: IndexKind::HiddenRowId,
            columns: Vec::new(),
            comment: String::new(),
            ignored: false,
            using: None,
            generated: false,
            since: CommitSeq(0),
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
    /// KEY(col DESC). The index is stored in ascending order nevertheless: scans run in both directions.
    pub descending: bool,
}

impl Catalog {
    /// Returns a table by its name.
    pub fn table(&self, schema: &str, table: &str) -> Option<&Arc<Table>> {
        self.schemas.get(schema)?.tables.get(table)
    }

    /// Returns a table by its id. Searches all tables.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.schemas.values().flat_map(|schema| schema.tables.values()).find(|table| table.id == id)
    }

    /// Returns a view by its name.
    pub fn view(&self, schema: &str, view: &str) -> Option<&Arc<View>> {
        self.schemas.get(schema)?.views.get(view)
    }
}

impl Table {
    /// Returns the column that `_rowid` means: the only one of the primary key, or else of the first unique
    /// key whose columns are NOT NULL, if it is an integer.
    pub fn row_id_column(&self) -> Option<usize> {
        use TypeKind::{Bit, Year};
        let [part] = self.identifying_key()?.columns.as_slice() else { return None };
        let kind = self.columns[part.column].ty.kind;
        (kind.is_integer() || matches!(kind, Bit | Year)).then_some(part.column)
    }

    /// Returns whether each row has its own values in the columns of an index: of the primary key, or of a
    /// unique key whose columns are NOT NULL.
    pub fn identifies_rows(&self, index: &Index) -> bool {
        let is_required = |part: &IndexColumn| !self.columns[part.column].nullable;
        index.kind.is_unique() && index.kind.is_sorted() && index.columns.iter().all(is_required)
    }

    /// Returns the first index that identifies rows.
    pub fn identifying_key(&self) -> Option<&Index> {
        self.indexes.iter().find(|index| self.identifies_rows(index))
    }

    /// Returns whether it is a sequence, whose state is its only row.
    pub fn is_sequence(&self) -> bool {
        self.options.iter().any(|(name, _)| name == SEQUENCE_OPTION)
    }

    /// Returns whether it is a temporary table of a session.
    pub fn is_temporary(&self) -> bool {
        self.id.is_temporary()
    }

    /// Returns the layout of stored rows.
    pub fn row_layout(&self) -> RowLayout {
        let columns = self.columns.iter().map(|c| (c.ty.clone(), c.value_in_old_rows.clone()));
        match self.storage.is_empty() {
            true => RowLayout::new(columns),
            false => RowLayout::with_places(columns, &self.storage),
        }
    }

    /// Resets the storage order to the declared order. The table must be empty.
    pub fn clear_storage(&mut self) {
        self.storage.clear();
        for column in &mut self.columns {
            column.value_in_old_rows = Value::Null;
        }
    }

    /// Returns the ordinal of a column. Names are case-insensitive.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
    }
}
