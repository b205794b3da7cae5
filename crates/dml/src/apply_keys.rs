//! Collects the keys that row events change, before the events are applied ([`RowKeys`]).
//!
//! Two transactions can be applied in parallel if they have no changed key in common. The keys are those that
//! the lock table would use: the encodings of the primary key and all unique keys of the *local* table, for
//! the rows before and after the change. An entry with NULL conflicts with nothing. If the images are not
//! sufficient (the table has no unique key, or an image lacks one of its columns), the whole table counts as
//! changed. So do the tables related by foreign keys, because the images do not show which of their rows a
//! change reads or changes in turn.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use ahash::RandomState;
use cohort_base::Reader;
use cohort_binlog::event::{DecodeError, RowsEvent, RowsKind, TableMap, rows_flags};
use cohort_catalog::{Catalog, Table, TableName};
use cohort_session::Database;
use cohort_table::OpenTable;
use cohort_types::{BinlogColumn, SqlError, SqlResult, Value};

use crate::row_applier::bit;
use crate::unpack::bad_event;

/// The keys and tables that a transaction changes.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    /// Hashes of changed keys.
    pub keys: Vec<u64>,
    /// Hashes of the tables that contain the keys.
    pub tables: Vec<u64>,
    /// Hashes of tables in which any row may change.
    pub whole_tables: Vec<u64>,
}

impl KeySet {
    /// Empties the set but keeps its memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.tables.clear();
        self.whole_tables.clear();
    }

    fn add_table(&mut self, hash: u64, is_whole: bool) {
        let list = if is_whole { &mut self.whole_tables } else { &mut self.tables };
        if !list.contains(&hash) {
            list.push(hash);
        }
    }
}

/// Collects keys. Caches the tables it has met.
pub struct RowKeys {
    hasher: RandomState,
    tables: Vec<Known>,
    version: u64,
    scratch: Scratch,
}

/// Buffers reused from row to row.
#[derive(Default)]
struct Scratch {
    row: Vec<Value>,
    key: Vec<u8>,
}

struct Known {
    map: Arc<TableMap>,
    open: Arc<OpenTable>,
    columns: Vec<BinlogColumn>,
    /// Columns that are part of a key.
    is_needed: Vec<bool>,
    hash: u64,
    /// Tables related by foreign keys: a change may read or change any of their rows.
    related: Vec<u64>,
}

/// Maximum number of cached tables. Beyond it the cache is emptied.
const TABLES_MAX: usize = 256;

impl Default for RowKeys {
    fn default() -> RowKeys {
        RowKeys { hasher: RandomState::new(), tables: Vec::new(), version: 0, scratch: Scratch::default() }
    }
}

impl RowKeys {
    /// Adds the keys that an event changes. No table definition may change between this call and the event's
    /// execution.
    pub fn add(
        &mut self,
        db: &Database,
        map: &Arc<TableMap>,
        rows: &RowsEvent,
        found: &mut KeySet,
    ) -> SqlResult<()> {
        let version = db.catalog_version();
        if version != self.version || self.tables.len() > TABLES_MAX {
            self.tables.clear();
            self.version = version;
        }
        let is_known = |known: &Known| {
            Arc::ptr_eq(&known.map, map)
                || known.map.table_id == map.table_id && known.map.table == map.table && known.map == *map
        };
        let at = match self.tables.iter().position(is_known) {
            Some(at) => at,
            None => {
                self.tables.push(self.resolve(db, map)?);
                self.tables.len() - 1
            }
        };
        let hasher = self.hasher.build_hasher();
        self.tables[at].add(hasher, rows, &mut self.scratch, found)
    }

    fn resolve(&self, db: &Database, map: &Arc<TableMap>) -> SqlResult<Known> {
        let (schema, name) = (String::from_utf8_lossy(&map.db), String::from_utf8_lossy(&map.table));
        let table = db.catalog().table(&schema, &name).cloned();
        let table = table.ok_or_else(|| SqlError::no_such_table(&schema, &name))?;
        let open = db.open_table(&table)?;
        let mut columns = BinlogColumn::parse_all(&map.column_types, &map.metadata)
            .map_err(|_| bad_event(DecodeError::BadValue("the column types of a table map")))?;
        let mut is_needed = vec![false; columns.len().max(table.columns.len())];
        for (column, described) in columns.iter_mut().zip(&table.columns) {
            column.unsigned = described.ty.unsigned;
        }
        let unique = open.indexes.iter().filter(|index| index.kind.is_unique());
        unique.flat_map(|index| &index.parts).for_each(|(column, _)| is_needed[*column] = true);
        let hash = self.hasher.hash_one((&map.db, &map.table));
        let related = related_tables(&db.catalog(), &table);
        let related =
            related.iter().map(|name| self.hasher.hash_one((name.schema.as_bytes(), name.table.as_bytes())));
        let related = related.collect();
        Ok(Known { map: Arc::clone(map), open, columns, is_needed, hash, related })
    }
}

/// Returns the parents of a table and all tables that refer to it, directly or through other foreign keys.
fn related_tables(catalog: &Catalog, table: &Table) -> BTreeSet<TableName> {
    let mut found = BTreeSet::new();
    let mut next = vec![table.name.clone()];
    while let Some(name) = next.pop() {
        let Some(table) = catalog.table(&name.schema, &name.table) else { continue };
        found.extend(table.foreign_keys.iter().map(|key| key.parent.clone()));
        for child in &table.referenced_by {
            if found.insert(child.clone()) {
                next.push(child.clone());
            }
        }
    }
    found
}

impl Known {
    fn add<H: Hasher + Clone>(
        &self,
        hasher: H,
        event: &RowsEvent,
        Scratch { row, key }: &mut Scratch,
        found: &mut KeySet,
    ) -> SqlResult<()> {
        let has_key = self.open.indexes.iter().any(|index| index.kind.is_unique());
        let holds_all = |present: &[u8]| {
            (0..self.open.columns().len())
                .all(|n| !self.is_needed[n] || n < self.columns.len() && bit(present, n))
        };
        // An after image may leave out unchanged columns.
        let is_checked = event.flags & rows_flags::NO_FOREIGN_KEY_CHECKS == 0;
        let is_related = is_checked && !self.related.is_empty();
        if is_related {
            self.related.iter().for_each(|hash| found.add_table(*hash, true));
        }
        let is_whole = !has_key || !holds_all(&event.present) || is_related;
        found.add_table(self.hash, is_whole);
        if is_whole {
            return Ok(());
        }
        let rows = event.plain_rows().map_err(bad_event)?;
        let mut from = Reader::new(&rows);
        row.clear();
        row.resize(self.open.columns().len(), Value::Null);
        while !from.is_empty() {
            let left = from.remaining();
            self.read(&event.present, &mut from, row)?;
            self.hash_row(&hasher, row, key, &mut found.keys)?;
            if event.kind == RowsKind::Update {
                self.read(&event.present_after, &mut from, row)?;
                self.hash_row(&hasher, row, key, &mut found.keys)?;
            }
            if from.remaining() == left {
                return Err(crate::row_applier::without_columns());
            }
        }
        Ok(())
    }

    /// Reads the key columns of an image into `row`. Leaves other columns unchanged.
    fn read(&self, present: &[u8], from: &mut Reader<'_>, row: &mut [Value]) -> SqlResult<()> {
        let count = (0..self.columns.len()).filter(|&n| bit(present, n)).count();
        let nulls = from.bytes(count.div_ceil(8)).map_err(|e| bad_event(e.into()))?;
        let bad = |_| bad_event(DecodeError::BadValue("a row image"));
        let here = self.columns.iter().enumerate().filter(|(n, _)| bit(present, *n));
        for (place, (n, column)) in here.enumerate() {
            let described = self.open.columns().get(n).filter(|_| self.is_needed[n]);
            match described {
                Some(_) if bit(nulls, place) => row[n] = Value::Null,
                None if bit(nulls, place) => {}
                Some(described) => row[n] = column.read(&described.ty, from).map_err(bad)?,
                None => column.skip(from).map_err(bad)?,
            }
        }
        Ok(())
    }

    fn hash_row<H: Hasher + Clone>(
        &self,
        hasher: &H,
        row: &[Value],
        key: &mut Vec<u8>,
        out: &mut Vec<u64>,
    ) -> SqlResult<()> {
        for (n, index) in self.open.indexes.iter().enumerate().filter(|(_, index)| index.kind.is_unique()) {
            if index.has_null(row) {
                continue;
            }
            key.clear();
            index.encode_columns(row, key).map_err(|e| self.open.key_error(n, e))?;
            let mut hasher = hasher.clone();
            (index.id.0, &*key).hash(&mut hasher);
            out.push(hasher.finish());
        }
        Ok(())
    }
}
