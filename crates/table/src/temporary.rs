//! A session's temporary tables.
//!
//! They are known to their session alone: names that it uses are looked up here before the catalog, ids begin
//! where the catalog's never come, rows lie in a store of the session ([`TemporaryRows`]). Nothing of it is
//! locked, logged or redo: a temporary table ends with its session, which includes a crash.
//!
//! A plan that was made while there were such tables is good while they are the same: the *epoch* is a part
//! of what plans are kept by.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_base::{Budget, IndexId, Reservation, TableId, TrxIds};
use cohort_catalog::{Table, TableName};
use cohort_config::{Globals, VarId};
use cohort_vfs::{SharedFs, unnamed_file};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::auto_increment::AutoIncrement;
use crate::open_table::{EngineNo, OpenTable};
use crate::temporary_rows::{Limits, TemporaryRows};

/// What the server lends to temporary tables.
#[derive(Clone)]
pub struct TemporaryParts {
    /// Where rows go that memory is not to hold.
    pub fs: SharedFs,
    pub globals: Arc<Globals>,
    /// Gives epochs their numbers.
    pub trx_ids: Arc<TrxIds>,
    /// The place of their store.
    pub store: EngineNo,
}

/// The temporary tables of one session. Only the session uses it.
pub struct TemporaryTables {
    parts: TemporaryParts,
    /// 0 without a table, another number after each change.
    epoch: AtomicU64,
    inner: Mutex<Inner>,
}

struct Inner {
    tables: BTreeMap<TableName, Arc<Table>>,
    /// Versions that statements have used.
    open: HashMap<TableId, Arc<OpenTable>>,
    /// By clustered key space.
    counters: HashMap<IndexId, Arc<AutoIncrement>>,
    rows: Option<Arc<TemporaryRows>>,
    next_table: TableId,
    next_index: IndexId,
    memory: Arc<Budget>,
}

impl TemporaryTables {
    /// None yet. What they take is charged to `memory`.
    pub fn new(parts: TemporaryParts, memory: Arc<Budget>) -> Arc<TemporaryTables> {
        Arc::new(TemporaryTables {
            parts,
            epoch: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                tables: BTreeMap::new(),
                open: HashMap::new(),
                counters: HashMap::new(),
                rows: None,
                next_table: TableId::FIRST_TEMPORARY,
                next_index: IndexId::FIRST_TEMPORARY,
                memory,
            }),
        })
    }

    /// Charges tables that are made from now on elsewhere.
    pub fn charge_to(&self, memory: Arc<Budget>) {
        self.inner.lock().memory = memory;
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.epoch() == 0
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.inner.lock().tables.len()
    }

    /// Plans are good for one epoch.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The table of this name.
    #[inline]
    pub fn find(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        if self.is_empty() {
            return None;
        }
        let inner = self.inner.lock();
        inner.tables.get(&TableName { schema: schema.to_owned(), table: name.to_owned() }).cloned()
    }

    /// Adds a table, or another version of one, under its name.
    pub fn put(&self, table: Arc<Table>) {
        self.inner.lock().tables.insert(table.name.clone(), table);
        self.begin_epoch();
    }

    /// Removes a table; its key spaces stay.
    pub fn take(&self, name: &TableName) -> Option<Arc<Table>> {
        let removed = self.inner.lock().tables.remove(name);
        self.begin_epoch();
        removed
    }

    /// Removes a table with its rows.
    pub fn drop_table(&self, name: &TableName) {
        let Some(table) = self.take(name) else { return };
        self.inner.lock().open.remove(&table.id);
        self.free(table.indexes.iter().map(|index| index.id));
    }

    /// Gives up key spaces.
    pub fn free(&self, spaces: impl IntoIterator<Item = IndexId>) {
        let mut inner = self.inner.lock();
        let spaces: Vec<IndexId> = spaces.into_iter().collect();
        spaces.iter().for_each(|space| drop(inner.counters.remove(space)));
        if let Some(rows) = inner.rows.clone() {
            drop(inner);
            rows.drop_spaces(spaces);
        }
    }

    /// All of them go, with their rows.
    pub fn clear(&self) {
        let mut inner = self.inner.lock();
        inner.tables.clear();
        inner.open.clear();
        inner.counters.clear();
        inner.rows = None;
        drop(inner);
        self.begin_epoch();
    }

    fn begin_epoch(&self) {
        let is_empty = self.inner.lock().tables.is_empty();
        let number = if is_empty { 0 } else { self.parts.trx_ids.next().0 };
        self.epoch.store(number, Ordering::Relaxed);
    }

    /// A number for a new table.
    pub fn table_id(&self) -> TableId {
        let mut inner = self.inner.lock();
        let id = inner.next_table;
        inner.next_table.0 += 1;
        id
    }

    /// A number for a new key space.
    pub fn index_id(&self) -> IndexId {
        let mut inner = self.inner.lock();
        let id = inner.next_index;
        // Two thousand million of them: a session that made one every millisecond would need weeks.
        inner.next_index.0 = inner.next_index.0.checked_add(1).unwrap_or(IndexId::FIRST_TEMPORARY.0);
        id
    }

    /// A version of a table, ready for use.
    pub fn open(&self, table: &Arc<Table>) -> Arc<OpenTable> {
        let inner = &mut *self.inner.lock();
        if let Some(open) = inner.open.get(&table.id).filter(|open| Arc::ptr_eq(&open.table, table)) {
            return Arc::clone(open);
        }
        let counters = Arc::clone(inner.counters.entry(table.clustered().id).or_default());
        let open = Arc::new(OpenTable::temporary(self.parts.store, table, counters));
        inner.open.insert(table.id, Arc::clone(&open));
        open
    }

    /// Where the rows are.
    pub fn rows(&self) -> Arc<TemporaryRows> {
        let inner = &mut *self.inner.lock();
        let memory = &inner.memory;
        let parts = &self.parts;
        let make = || {
            let (fs, globals) = (Arc::clone(&parts.fs), Arc::clone(&parts.globals));
            let file = move || unnamed_file(&fs, Path::new(&globals.value(VarId::Tmpdir).to_string()));
            let limits = Limits {
                memory_bytes: parts.globals.uint(VarId::TmpMemoryTableSize),
                file_bytes: parts.globals.uint(VarId::TmpDiskTableSize),
            };
            TemporaryRows::new(Reservation::new(Arc::clone(memory)), limits, Box::new(file))
        };
        Arc::clone(inner.rows.get_or_insert_with(make))
    }

    /// Rows of a table.
    pub fn entries(&self, table: &Table) -> u64 {
        let inner = self.inner.lock();
        inner.rows.as_ref().map_or(0, |rows| rows.entries(table.clustered().id))
    }
}
