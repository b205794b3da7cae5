//! [`OpenTable`]: the catalog's description of a table with prepared codecs, shared by all sessions.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cohort_base::{CommitSeq, IndexId, TableId};
use cohort_binlog::event::TableMap;
use cohort_catalog::{Catalog, CatalogVersions, Column, IndexKind, OnUpdate, ROWS, RowTree, Table};
use cohort_engine::Engine;
use cohort_locks::MetadataKey;
use cohort_types::{
    ColumnType, Columns, ErrorCode, KeyPart, RowLayout, SqlError, SqlResult, TypeKind, Value, full_text,
};
use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::auto_increment::{AutoIncrement, largest_counted, positive};
use crate::map_metadata::{MapMetadata, table_map};
use crate::presence::all_columns;
use crate::touched::{TouchedCell, TouchedRows};
use crate::usage::{OpenUsage, RowChange, TableUsage};

/// Position of an engine among those of the server. The next position is the session's store of temporary
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
    /// Read views older than this find nothing in the index.
    pub since: CommitSeq,
    /// The columns of an index of words, which has no `parts`.
    pub(crate) words: Option<WordColumns>,
}

/// The columns whose words a FULLTEXT index contains.
#[derive(Debug)]
pub(crate) struct WordColumns {
    pub columns: Vec<usize>,
    /// Encoding of a word.
    pub part: KeyPart,
}

/// An open version of a table.
pub struct OpenTable {
    pub table: Arc<Table>,
    pub engine: EngineNo,
    pub layout: RowLayout,
    /// The tree that stores the rows.
    pub rows: RowTree,
    /// In the order of [`Table::indexes`]: the clustered one first.
    pub indexes: Vec<OpenIndex>,
    /// Number of indexes with one entry per row. Those with any number of entries follow them.
    single: usize,
    /// The AUTO_INCREMENT column and the index that begins with it.
    pub auto_column: Option<(usize, usize)>,
    pub auto_increment: Arc<AutoIncrement>,
    /// Columns with ON UPDATE CURRENT_TIMESTAMP.
    pub on_update: Vec<usize>,
    /// Names for metadata locks.
    pub schema_key: MetadataKey,
    pub table_key: MetadataKey,
    /// Table map of the binary log. Each version has its own table id, so that a reader never mixes two.
    pub map: Arc<TableMap>,
    /// Table maps with MINIMAL and FULL metadata, created on first use.
    pub rich_maps: [OnceLock<Arc<TableMap>>; 2],
    /// The bitmap of all columns in row events.
    pub all_columns: Vec<u8>,
    /// Average bytes of an entry in recent scans; determines the size of their requests.
    entry_bytes: AtomicU32,
    /// Receives the rows that writers touch during an online index build.
    touched: Arc<TouchedCell>,
    usage: OpenUsage,
}

/// State shared by all versions of a table that write into the same index.
#[derive(Clone, Default)]
struct OfSpace {
    counters: Arc<AutoIncrement>,
    touched: Arc<TouchedCell>,
    usage: Arc<TableUsage>,
}

/// The tables in use, each in the version that the catalog holds, and their counters.
///
/// A statement may present an older version (it was planned before a DDL statement, and notices that when it
/// locks the table's name), or one that a DDL statement is still creating. Such a version is opened for this
/// statement only and never replaces the catalog's.
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
    /// By clustered index. The catalog also creates a new version of a table when a foreign key of another
    /// table is added or dropped.
    spaces: HashMap<IndexId, OfSpace>,
}

impl TableRegistry {
    /// Returns the open table, and opens this version if it is new. `published` is the position to read the
    /// catalog at.
    #[inline]
    pub fn open(
        &self,
        table: &Arc<Table>,
        engines: &[Arc<dyn Engine>],
        catalog: &CatalogVersions,
        published: impl Fn() -> CommitSeq,
    ) -> SqlResult<Arc<OpenTable>> {
        // The read lock must be released before the write lock is taken.
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
        // The catalog is held during this block, so the current version cannot be replaced meanwhile.
        catalog.read(published, |catalog| {
            let space = table.rows().id;
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

    /// Removes a dropped table.
    pub fn forget(&self, table: TableId) {
        self.open.write().tables.remove(&table);
    }

    /// Returns the number of open tables.
    pub fn len(&self) -> u64 {
        self.open.read().tables.len() as u64
    }

    /// Returns whether no table is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many tables, or versions of tables, were opened.
    pub fn opened(&self) -> u64 {
        self.map_ids.load(Ordering::Relaxed)
    }

    /// Returns the open tables with their counters, ordered by schema and name.
    pub fn usages(&self) -> Vec<(Arc<Table>, Arc<TableUsage>)> {
        let open = self.open.read();
        let of = |open: &Arc<OpenTable>| (Arc::clone(&open.table), open.usage.table());
        let mut all: Vec<_> = open.tables.values().map(of).collect();
        drop(open);
        all.sort_by(|(a, _), (b, _)| (&a.name.schema, &a.name.table).cmp(&(&b.name.schema, &b.name.table)));
        all
    }

    /// Removes the counters of dropped indexes.
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

/// Returns the engine of a catalog table.
fn engine_of(engines: &[Arc<dyn Engine>], table: &Table) -> SqlResult<EngineNo> {
    let place = engines.iter().position(|e| e.name().eq_ignore_ascii_case(&table.engine));
    place.map(EngineNo).ok_or_else(|| SqlError::unknown_engine(&table.engine))
}

/// Returns error 1412: the table is no longer as it was when the statement was planned.
pub fn definition_changed() -> SqlError {
    SqlError::table_definition_changed()
}

/// Returns true if the catalog still holds exactly this description. A session's temporary tables cannot
/// change between planning and execution.
#[inline]
pub fn is_current(catalog: &Catalog, table: &Arc<Table>) -> bool {
    if table.is_temporary() {
        return true;
    }
    catalog.table(&table.name.schema, &table.name.table).is_some_and(|now| Arc::ptr_eq(now, table))
}

impl OpenTable {
    /// Opens a temporary table of a session, whose rows are never logged.
    pub(crate) fn temporary(store: EngineNo, table: &Arc<Table>, counters: Arc<AutoIncrement>) -> OpenTable {
        OpenTable::new(store, table, OfSpace { counters, ..OfSpace::default() }, 0)
    }

    fn new(engine: EngineNo, table: &Arc<Table>, shared: OfSpace, map_id: u64) -> OpenTable {
        let schema: Arc<str> = table.name.schema.as_str().into();
        let name: Arc<str> = table.name.table.as_str().into();
        let indexes: Vec<OpenIndex> =
            table.indexes.iter().map(|index| OpenIndex::new(table, index)).collect();
        let single = indexes.iter().take_while(|index| !index.kind.has_words()).count();
        debug_assert!(indexes[single..].iter().all(|index| index.kind.has_words()), "they come last");
        OpenTable {
            engine,
            single,
            layout: table.row_layout(),
            rows: table.rows(),
            auto_column: auto_column(table, &indexes),
            auto_increment: shared.counters,
            on_update: (0..table.columns.len())
                .filter(|&c| table.columns[c].on_update == OnUpdate::CurrentTimestamp)
                .collect(),
            schema_key: MetadataKey::Schema(schema.clone()),
            table_key: MetadataKey::Table(schema, name),
            map: table_map(table, map_id, MapMetadata::NoLog),
            rich_maps: Default::default(),
            all_columns: all_columns(table.columns.len()),
            entry_bytes: AtomicU32::new(first_guess_bytes(&table.columns)),
            usage: OpenUsage::new(shared.usage, table),
            touched: shared.touched,
            indexes,
            table: table.clone(),
        }
    }

    /// Returns true if it is a temporary table: no other session reads it, and it is neither locked nor
    /// logged.
    #[inline]
    pub fn is_temporary(&self) -> bool {
        self.table.is_temporary()
    }

    /// Returns the indexes with one entry per row, except the clustered one, with their positions.
    #[inline]
    pub fn single_entry_indexes(&self) -> impl Iterator<Item = (usize, &OpenIndex)> {
        self.indexes[..self.single].iter().enumerate().skip(ROWS + 1)
    }

    /// Returns the positions of the indexes with any number of entries per row.
    #[inline]
    pub fn multiple_entry_indexes(&self) -> Range<usize> {
        self.single..self.indexes.len()
    }

    /// Returns the catalog's description.
    #[inline]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    #[inline]
    pub fn columns(&self) -> &[Column] {
        &self.table.columns
    }

    /// Decodes row bytes into one value per column. Discards the contents of `row`, except that with
    /// [`Columns::Some`] the other columns keep their NULLs from the previous row.
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

    /// Counts rows read by an index, or by a scan of the whole table.
    #[cold]
    pub fn count_read(&self, index: Option<usize>, rows: u64) {
        self.usage.count_read(index, rows);
    }

    /// Counts a changed row.
    #[cold]
    pub fn count_change(&self, change: RowChange) {
        self.usage.count_change(change);
    }

    /// Returns the list to which a writer adds touched rows, if an index is being built. The metadata lock
    /// keeps the result valid until the writer's transaction ends.
    #[inline]
    pub fn touched(&self) -> Option<Arc<TouchedRows>> {
        self.touched.get()
    }

    /// Starts or ends the recording of touched rows. The caller holds the name exclusively, or is abandoning
    /// the build.
    pub fn set_touched(&self, touched: Option<Arc<TouchedRows>>) {
        self.touched.set(touched);
    }

    /// Returns the average bytes of an entry in the last scan.
    #[inline]
    pub fn entry_bytes(&self) -> usize {
        self.entry_bytes.load(Ordering::Relaxed) as usize
    }

    /// Returns the number of entries that a scan should request at first to read about `bytes`.
    #[inline]
    pub fn entries_in(&self, bytes: usize) -> usize {
        bytes / self.entry_bytes().max(1)
    }

    /// Records the size of entries seen by a scan.
    #[inline]
    pub fn note_entries(&self, bytes: usize, entries: usize) {
        if let Some(average) = bytes.checked_div(entries) {
            self.entry_bytes.store(average.clamp(1, 1 << 30) as u32, Ordering::Relaxed);
        }
    }

    /// Returns the value of the AUTO_INCREMENT column as its counter sees it. Fractional numbers beyond the
    /// type's range do not count.
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
        let (parts, words) = match index.kind.has_words() {
            true => (Vec::new(), Some(WordColumns::new(table, index))),
            false => (index.columns.iter().map(part).collect(), None),
        };
        OpenIndex { id: index.id, kind: index.kind, parts, since: index.since, words }
    }
}

impl WordColumns {
    fn new(table: &Table, index: &cohort_catalog::Index) -> WordColumns {
        let columns: Vec<usize> = index.columns.iter().map(|part| part.column).collect();
        // All columns have one collation.
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

/// Returns the initial estimate of the row size: rows without BLOB columns are small, others may have any
/// size.
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
