//! A table as statements use it: the catalog's description with its codecs made once, shared by all sessions.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cohort_base::{CommitSeq, IndexId, TableId};
use cohort_binlog::event::TableMap;
use cohort_catalog::{Catalog, CatalogVersions, Column, IndexKind, OnUpdate, Table};
use cohort_engine::Engine;
use cohort_locks::NameKey;
use cohort_types::{
    ColumnType, Columns, ErrorCode, KeyPart, RowLayout, SqlError, SqlResult, TypeKind, Value, full_text,
};
use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::auto_increment::{AutoIncrement, largest_counted, positive};
use crate::map_metadata::{MapMetadata, table_map};
use crate::presence::all_columns;
use crate::touched::{TouchedCell, TouchedRows};

/// An engine by its place among those of the server. Behind them all is the session's store of temporary
/// tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineNo(pub usize);

/// An index with its key codec.
#[derive(Debug)]
pub struct OpenIndex {
    pub id: IndexId,
    pub kind: IndexKind,
    /// Column ordinal and codec of each key part.
    pub parts: Vec<(usize, KeyPart)>,
    /// Read views that are older find nothing in the key space.
    pub since: CommitSeq,
    /// Of a FULLTEXT index, which has no `parts`.
    pub words: Option<WordColumns>,
}

/// Whose words a FULLTEXT index has.
#[derive(Debug)]
pub struct WordColumns {
    pub columns: Vec<usize>,
    /// How a word is encoded.
    pub part: KeyPart,
}

/// A version of a table, ready for use.
pub struct OpenTable {
    pub table: Arc<Table>,
    pub engine: EngineNo,
    pub layout: RowLayout,
    /// In the order of [`Table::indexes`]: the clustered one first.
    pub indexes: Vec<OpenIndex>,
    /// How many of them have one entry for a row: FULLTEXT indexes come behind.
    pub ordered: usize,
    /// The AUTO_INCREMENT column and the index that begins with it.
    pub auto_column: Option<(usize, usize)>,
    pub auto_increment: Arc<AutoIncrement>,
    /// Columns with ON UPDATE CURRENT_TIMESTAMP.
    pub on_update: Vec<usize>,
    /// For metadata locks.
    pub schema_key: NameKey,
    pub table_key: NameKey,
    /// Its table id is one per version of the table, so that a reader never mixes two.
    pub map: Arc<TableMap>,
    /// The same with more metadata, MINIMAL and FULL; made when it is first wanted.
    pub rich_maps: [OnceLock<Arc<TableMap>>; 2],
    /// The bitmap of all columns in row events.
    pub all_columns: Vec<u8>,
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
    /// The table, opened now if this version is new. `published` is what the catalog is read at.
    #[inline]
    pub fn open(
        &self,
        table: &Arc<Table>,
        engines: &[Arc<dyn Engine>],
        catalog: &CatalogVersions,
        published: impl Fn() -> CommitSeq,
    ) -> SqlResult<Arc<OpenTable>> {
        // The lock goes before it is asked for again.
        let known = self.open.read().known(table);
        match known {
            Some(open) => Ok(open),
            None => self.open_new(table, engines, catalog, published),
        }
    }

    #[cold]
    fn open_new(
        &self,
        table: &Arc<Table>,
        engines: &[Arc<dyn Engine>],
        catalog: &CatalogVersions,
        published: impl Fn() -> CommitSeq,
    ) -> SqlResult<Arc<OpenTable>> {
        let mut all = self.open.write();
        if let Some(open) = all.known(table) {
            return Ok(open);
        }
        // Looked at to the end: what is current now is not replaced meanwhile.
        catalog.read(published, |catalog| {
            let space = table.clustered().id;
            let shared = all.spaces.get(&space).cloned().unwrap_or_default();
            let map_id = self.map_ids.fetch_add(1, Ordering::Relaxed) + 18;
            let engine = engine_of(engines, table)?;
            let open = Arc::new(OpenTable::new(engine, table, shared.clone(), map_id));
            if is_current(catalog, table) {
                all.spaces.insert(space, shared);
                all.tables.insert(table.id, open.clone());
            }
            Ok(open)
        })
    }

    /// Forgets a dropped table.
    pub fn forget(&self, table: TableId) {
        self.open.write().tables.remove(&table);
    }

    /// Forgets the counters of key spaces that no table has any more.
    pub fn forget_counters(&self, spaces: impl Iterator<Item = IndexId>) {
        let mut all = self.open.write();
        spaces.for_each(|space| drop(all.spaces.remove(&space)));
    }
}

impl Open {
    #[inline]
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

/// Error 1412: a statement has met a table that is no longer as it was planned for.
pub fn definition_changed() -> SqlError {
    SqlError::new(ErrorCode::TableDefChanged, "Table definition has changed, please retry transaction")
}

/// Whether the catalog still holds this very description. Between planning and running nobody changes a
/// session's temporary tables.
#[inline]
pub fn is_current(catalog: &Catalog, table: &Arc<Table>) -> bool {
    if table.is_temporary() {
        return true;
    }
    catalog.table(&table.name.schema, &table.name.table).is_some_and(|now| Arc::ptr_eq(now, table))
}

impl OpenTable {
    /// A session's own table, whose rows are never logged.
    pub(crate) fn temporary(store: EngineNo, table: &Arc<Table>, counters: Arc<AutoIncrement>) -> OpenTable {
        OpenTable::new(store, table, OfSpace { counters, ..OfSpace::default() }, 0)
    }

    fn new(engine: EngineNo, table: &Arc<Table>, shared: OfSpace, map_id: u64) -> OpenTable {
        let schema: Arc<str> = table.name.schema.as_str().into();
        let name: Arc<str> = table.name.table.as_str().into();
        let indexes: Vec<OpenIndex> =
            table.indexes.iter().map(|index| OpenIndex::new(table, index)).collect();
        let ordered = indexes.iter().take_while(|index| index.words.is_none()).count();
        debug_assert!(indexes[ordered..].iter().all(|index| index.words.is_some()), "they come last");
        OpenTable {
            engine,
            ordered,
            layout: table.row_layout(),
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
    #[inline]
    pub fn is_temporary(&self) -> bool {
        self.table.is_temporary()
    }

    /// The catalog's description.
    #[inline]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    #[inline]
    pub fn columns(&self) -> &[Column] {
        &self.table.columns
    }

    /// Decodes row bytes into one value per column. Of `row` nothing is kept but, among [`Columns::Some`],
    /// the NULLs of the others, which it has from the row before.
    #[inline]
    pub fn decode(&self, bytes: &[u8], columns: &Columns, row: &mut Vec<Value>) -> SqlResult<()> {
        let decoded = match columns {
            Columns::All => {
                row.clear();
                self.layout.decode(bytes, row)
            }
            Columns::Some(wanted) => {
                if row.len() != self.table.columns.len() {
                    row.resize(self.table.columns.len(), Value::Null);
                }
                debug_assert!((0..row.len()).all(|n| wanted.contains(&n) || row[n].is_null()));
                self.layout.decode_some(bytes, wanted, row)
            }
        };
        decoded.map_err(|e| self.row_error(e))
    }

    pub fn row_error(&self, error: cohort_types::RowError) -> SqlError {
        let name = &self.table.name;
        SqlError::new(ErrorCode::UnknownError, format!("row of {}.{}: {error:?}", name.schema, name.table))
    }

    /// Where a writer tells what it touches. The name's lock keeps the answer as it is until the writer's
    /// transaction ends.
    #[inline]
    pub fn touched(&self) -> Option<Arc<TouchedRows>> {
        self.touched.get()
    }

    /// Has writers tell what they touch from now on, or no longer. The caller has the name exclusively, or
    /// gives up.
    pub fn set_touched(&self, touched: Option<Arc<TouchedRows>>) {
        self.touched.set(touched);
    }

    /// Bytes of an entry, as the last scan met them.
    #[inline]
    pub fn entry_bytes(&self) -> usize {
        self.entry_bytes.load(Ordering::Relaxed) as usize
    }

    /// How many entries a scan should ask for at first, so that its batch stays near `bytes`.
    #[inline]
    pub fn entries_in(&self, bytes: usize) -> usize {
        bytes / self.entry_bytes().max(1)
    }

    /// A scan met entries of this size.
    #[inline]
    pub fn note_entries(&self, bytes: usize, entries: usize) {
        if let Some(average) = bytes.checked_div(entries) {
            self.entry_bytes.store(average.clamp(1, 1 << 30) as u32, Ordering::Relaxed);
        }
    }

    /// The value of the AUTO_INCREMENT column as its counter sees it. Numbers with a fraction may be larger
    /// than any that is generated: they do not count.
    #[inline]
    pub fn counted(&self, value: &Value) -> Option<u64> {
        let (column, _) = self.auto_column?;
        positive(value).filter(|value| *value <= largest_counted(&self.columns()[column].ty))
    }
}

impl OpenIndex {
    fn new(table: &Table, index: &cohort_catalog::Index) -> OpenIndex {
        let part = |part: &cohort_catalog::IndexColumn| {
            let column = &table.columns[part.column];
            (part.column, KeyPart { ty: column.ty.clone(), prefix: part.prefix, nullable: column.nullable })
        };
        let (parts, words) = match index.kind {
            IndexKind::FullText => (Vec::new(), Some(WordColumns::new(table, index))),
            _ => (index.columns.iter().map(part).collect(), None),
        };
        OpenIndex { id: index.id, kind: index.kind, parts, since: index.since, words }
    }
}

impl WordColumns {
    fn new(table: &Table, index: &cohort_catalog::Index) -> WordColumns {
        let columns: Vec<usize> = index.columns.iter().map(|part| part.column).collect();
        // They have one collation.
        let collation = table.columns[columns[0]].ty.collation;
        let ty = ColumnType::string(TypeKind::VarChar, full_text::WORD_CHARS_MAX as u32, collation);
        WordColumns { columns, part: KeyPart { ty, prefix: None, nullable: false } }
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
