//! A table as statements use it: the catalog's description with its codecs made once, shared by all sessions.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cohort_base::{IndexId, TableId};
use cohort_binlog::event::TableMap;
use cohort_catalog::{Column, IndexKind, OnUpdate, Table};
use cohort_engine::Engine;
use cohort_locks::NameKey;
use cohort_types::{ErrorCode, KeyPart, RowLayout, SqlError, SqlResult, TypeKind};
use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::table::AutoIncrement;
use crate::table::image::table_map;
use crate::table::map_metadata::MapMetadata;
use crate::trx::{EngineNo, all_columns};

/// An index with its key codec.
#[derive(Debug)]
pub(crate) struct OpenIndex {
    pub(crate) id: IndexId,
    pub(crate) kind: IndexKind,
    /// Column ordinal and codec of each key part.
    pub(crate) parts: Vec<(usize, KeyPart)>,
}

/// A version of a table, ready for use.
pub struct OpenTable {
    pub(crate) table: Arc<Table>,
    pub(crate) engine: EngineNo,
    pub(crate) layout: RowLayout,
    /// In the order of [`Table::indexes`]: the clustered one first.
    pub(crate) indexes: Vec<OpenIndex>,
    /// The AUTO_INCREMENT column and the index that begins with it.
    pub(crate) auto_column: Option<(usize, usize)>,
    pub(crate) auto_increment: Arc<AutoIncrement>,
    /// Columns with ON UPDATE CURRENT_TIMESTAMP.
    pub(crate) on_update: Vec<usize>,
    /// For metadata locks.
    pub(crate) schema_key: NameKey,
    pub(crate) table_key: NameKey,
    /// Its table id is one per version of the table, so that a reader never mixes two.
    pub(crate) map: Arc<TableMap>,
    /// The same with more metadata, MINIMAL and FULL; made when it is first wanted.
    pub(crate) rich_maps: [OnceLock<Arc<TableMap>>; 2],
    /// The bitmap of all columns in row events.
    pub(crate) all_columns: Vec<u8>,
    /// Average bytes of an entry that scans have met; steers how many they ask for.
    entry_bytes: AtomicU32,
}

/// All open tables of a server.
#[derive(Default)]
pub struct TableRegistry {
    open: RwLock<HashMap<TableId, Arc<OpenTable>>>,
    map_ids: AtomicU64,
}

impl TableRegistry {
    /// The table, opened now if this version is new. The auto-increment counter passes from version to
    /// version as long as the clustered index is the same.
    pub fn open(&self, engines: &[Arc<dyn Engine>], table: &Arc<Table>) -> SqlResult<Arc<OpenTable>> {
        if let Some(open) = self.open.read().get(&table.id)
            && Arc::ptr_eq(&open.table, table)
        {
            return Ok(open.clone());
        }
        let mut all = self.open.write();
        let before = all.get(&table.id);
        if let Some(open) = before.filter(|open| Arc::ptr_eq(&open.table, table)) {
            return Ok(open.clone());
        }
        let counter = before
            .filter(|open| open.indexes[0].id == table.indexes[0].id)
            .filter(|open| open.table.auto_increment_start == table.auto_increment_start)
            .map_or_else(Arc::default, |open| open.auto_increment.clone());
        let map_id = self.map_ids.fetch_add(1, Ordering::Relaxed) + 18;
        let open = Arc::new(OpenTable::new(engines, table, counter, map_id)?);
        all.insert(table.id, open.clone());
        Ok(open)
    }

    /// Forgets a dropped table.
    pub fn forget(&self, table: TableId) {
        self.open.write().remove(&table);
    }
}

impl OpenTable {
    fn new(
        engines: &[Arc<dyn Engine>],
        table: &Arc<Table>,
        auto_increment: Arc<AutoIncrement>,
        map_id: u64,
    ) -> SqlResult<OpenTable> {
        let engine =
            engines.iter().position(|e| e.name().eq_ignore_ascii_case(&table.engine)).ok_or_else(|| {
                SqlError::new(
                    ErrorCode::UnknownStorageEngine,
                    format!("Unknown storage engine '{}'", table.engine),
                )
            })?;
        let schema: Arc<str> = table.name.schema.as_str().into();
        let name: Arc<str> = table.name.table.as_str().into();
        let indexes: Vec<OpenIndex> =
            table.indexes.iter().map(|index| OpenIndex::new(table, index)).collect();
        let columns = table.columns.iter();
        Ok(OpenTable {
            engine: EngineNo(engine),
            layout: RowLayout::new(columns.map(|c| (c.ty.clone(), c.value_in_old_rows.clone()))),
            auto_column: auto_column(table, &indexes),
            auto_increment,
            on_update: (0..table.columns.len())
                .filter(|&c| table.columns[c].on_update == OnUpdate::CurrentTimestamp)
                .collect(),
            schema_key: NameKey::Schema(schema.clone()),
            table_key: NameKey::Table(schema, name),
            map: table_map(table, map_id, MapMetadata::NoLog),
            rich_maps: Default::default(),
            all_columns: all_columns(table.columns.len()),
            entry_bytes: AtomicU32::new(first_guess_bytes(&table.columns)),
            indexes,
            table: table.clone(),
        })
    }

    /// The catalog's description.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.table.columns
    }

    /// Bytes of an entry, as the last scan met them.
    pub(crate) fn entry_bytes(&self) -> usize {
        self.entry_bytes.load(Ordering::Relaxed) as usize
    }

    /// How many entries a scan should ask for at first, so that its batch stays near `bytes`.
    pub(crate) fn entries_in(&self, bytes: usize) -> usize {
        bytes / self.entry_bytes().max(1)
    }

    /// A scan met entries of this size.
    pub(crate) fn note_entries(&self, bytes: usize, entries: usize) {
        if let Some(average) = bytes.checked_div(entries) {
            self.entry_bytes.store(average.clamp(1, 1 << 30) as u32, Ordering::Relaxed);
        }
    }
}

impl OpenIndex {
    fn new(table: &Table, index: &cohort_catalog::Index) -> OpenIndex {
        let part = |part: &cohort_catalog::IndexColumn| {
            let column = &table.columns[part.column];
            (part.column, KeyPart { ty: column.ty.clone(), prefix: part.prefix, nullable: column.nullable })
        };
        OpenIndex { id: index.id, kind: index.kind, parts: index.columns.iter().map(part).collect() }
    }
}

fn auto_column(table: &Table, indexes: &[OpenIndex]) -> Option<(usize, usize)> {
    let column = table.columns.iter().position(|c| c.auto_increment)?;
    let index = indexes.iter().position(|i| i.parts.first().is_some_and(|(first, _)| *first == column))?;
    Some((column, index))
}

/// Before any scan: rows of plain columns are small, rows with BLOB columns may be anything.
fn first_guess_bytes(columns: &[Column]) -> u32 {
    let is_large = |kind| {
        matches!(
            kind,
            TypeKind::Text
                | TypeKind::MediumText
                | TypeKind::LongText
                | TypeKind::Blob
                | TypeKind::MediumBlob
                | TypeKind::LongBlob
                | TypeKind::Json
        )
    };
    if columns.iter().any(|c| is_large(c.ty.kind)) { 16 << 10 } else { 256 }
}
