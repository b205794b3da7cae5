//! A table as statements use it: the catalog's description with its codecs made once, shared by all sessions.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cohort_base::{CommitSeq, IndexId, TableId};
use cohort_binlog::event::TableMap;
use cohort_catalog::{Catalog, Column, IndexKind, OnUpdate, Table};
use cohort_engine::Engine;
use cohort_locks::NameKey;
use cohort_types::{ErrorCode, KeyPart, RowLayout, SqlError, SqlResult, TypeKind};
use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::database::Database;
use crate::table::AutoIncrement;
use crate::table::image::table_map;
use crate::table::map_metadata::MapMetadata;
use crate::table::touched::{TouchedCell, TouchedRows};
use crate::trx::{EngineNo, all_columns};

/// An index with its key codec.
#[derive(Debug)]
pub(crate) struct OpenIndex {
    pub(crate) id: IndexId,
    pub(crate) kind: IndexKind,
    /// Column ordinal and codec of each key part.
    pub(crate) parts: Vec<(usize, KeyPart)>,
    /// Read views that are older find nothing in the key space.
    pub(crate) since: CommitSeq,
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
    /// Where writers tell what they touch, while an index is built beside them.
    touched: Arc<TouchedCell>,
}

/// What all versions of a table that write into one key space share.
#[derive(Clone, Default)]
struct OfSpace {
    counters: Arc<AutoIncrement>,
    touched: Arc<TouchedCell>,
}

/// The tables that statements have used, each in the version that the catalog holds, and their counters.
///
/// A statement may come with an older version (it planned before a DDL statement and finds out when it has
/// the table's name), or with one that a DDL statement is still making. Such a version is opened for this
/// statement alone and never replaces the catalog's.
///
/// Lock order: `open`, the catalog.
#[derive(Default)]
pub struct TableRegistry {
    open: RwLock<Open>,
    map_ids: AtomicU64,
}

#[derive(Default)]
struct Open {
    tables: HashMap<TableId, Arc<OpenTable>>,
    /// By clustered key space. The catalog makes a version anew also when another table's foreign key comes
    /// or goes.
    spaces: HashMap<IndexId, OfSpace>,
}

impl TableRegistry {
    /// The table, opened now if this version is new.
    pub(crate) fn open(&self, db: &Database, table: &Arc<Table>) -> SqlResult<Arc<OpenTable>> {
        if let Some(open) = self.open.read().known(table) {
            return Ok(open);
        }
        let mut all = self.open.write();
        if let Some(open) = all.known(table) {
            return Ok(open);
        }
        // Looked at to the end: what is current now is not replaced meanwhile.
        db.read_catalog(|catalog| {
            let space = table.clustered().id;
            let shared = all.spaces.get(&space).cloned().unwrap_or_default();
            let map_id = self.map_ids.fetch_add(1, Ordering::Relaxed) + 18;
            let engine = engine_of(&db.engines, table)?;
            let open = Arc::new(OpenTable::new(engine, table, shared.clone(), map_id));
            if is_current(catalog, table) {
                all.spaces.insert(space, shared);
                all.tables.insert(table.id, open.clone());
            }
            Ok(open)
        })
    }

    /// Forgets a dropped table.
    pub(crate) fn forget(&self, table: TableId) {
        self.open.write().tables.remove(&table);
    }

    /// Forgets the counters of key spaces that no table has any more.
    pub(crate) fn forget_counters(&self, spaces: impl Iterator<Item = IndexId>) {
        let mut all = self.open.write();
        spaces.for_each(|space| drop(all.spaces.remove(&space)));
    }
}

impl Open {
    fn known(&self, table: &Arc<Table>) -> Option<Arc<OpenTable>> {
        self.tables.get(&table.id).filter(|open| Arc::ptr_eq(&open.table, table)).cloned()
    }
}

/// The engine that keeps a table of the catalog.
fn engine_of(engines: &[Arc<dyn Engine>], table: &Table) -> SqlResult<EngineNo> {
    let place = engines.iter().position(|e| e.name().eq_ignore_ascii_case(&table.engine));
    place.map(EngineNo).ok_or_else(|| {
        let text = format!("Unknown storage engine '{}'", table.engine);
        SqlError::new(ErrorCode::UnknownStorageEngine, text)
    })
}

/// Whether the catalog still holds this very description. Between planning and running nobody changes a
/// session's temporary tables.
pub(crate) fn is_current(catalog: &Catalog, table: &Arc<Table>) -> bool {
    if table.is_temporary() {
        return true;
    }
    catalog.table(&table.name.schema, &table.name.table).is_some_and(|now| Arc::ptr_eq(now, table))
}

impl OpenTable {
    /// A session's own table, whose rows are never logged.
    pub(crate) fn temporary(db: &Database, table: &Arc<Table>, counters: Arc<AutoIncrement>) -> OpenTable {
        OpenTable::new(EngineNo::temporary(db), table, OfSpace { counters, ..OfSpace::default() }, 0)
    }

    fn new(engine: EngineNo, table: &Arc<Table>, shared: OfSpace, map_id: u64) -> OpenTable {
        let schema: Arc<str> = table.name.schema.as_str().into();
        let name: Arc<str> = table.name.table.as_str().into();
        let indexes: Vec<OpenIndex> =
            table.indexes.iter().map(|index| OpenIndex::new(table, index)).collect();
        let columns = table.columns.iter();
        OpenTable {
            engine,
            layout: RowLayout::new(columns.map(|c| (c.ty.clone(), c.value_in_old_rows.clone()))),
            auto_column: auto_column(table, &indexes),
            auto_increment: shared.counters,
            on_update: (0..table.columns.len())
                .filter(|&c| table.columns[c].on_update == OnUpdate::CurrentTimestamp)
                .collect(),
            schema_key: NameKey::Schema(schema.clone()),
            table_key: NameKey::Table(schema, name),
            map: table_map(table, map_id, MapMetadata::NoLog),
            rich_maps: Default::default(),
            all_columns: all_columns(table.columns.len()),
            entry_bytes: AtomicU32::new(first_guess_bytes(&table.columns)),
            touched: shared.touched,
            indexes,
            table: table.clone(),
        }
    }

    /// Whether it is a session's own: nobody else reads it, nothing of it is locked or logged.
    pub(crate) fn is_temporary(&self) -> bool {
        self.table.is_temporary()
    }

    /// The catalog's description.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.table.columns
    }

    /// Where a writer tells what it touches. The name's lock keeps the answer as it is until the writer's
    /// transaction ends.
    pub(crate) fn touched(&self) -> Option<Arc<TouchedRows>> {
        self.touched.get()
    }

    /// Has writers tell what they touch from now on, or no longer. The caller has the name exclusively, or
    /// gives up.
    pub(crate) fn set_touched(&self, touched: Option<Arc<TouchedRows>>) {
        self.touched.set(touched);
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
        let parts = index.columns.iter().map(part).collect();
        OpenIndex { id: index.id, kind: index.kind, parts, since: index.since }
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
