//! [`TemporaryTables`]: a session's temporary tables.
//!
//! Temporary tables are visible to their session only. The session looks names up here before it uses the
//! catalog. Their ids start where the catalog's never reach, and their rows are in a store of the session
//! ([`TemporaryRows`]). They are neither locked nor logged and have no redo: a temporary table ends with its
//! session, also in a crash.
//!
//! A plan made while such tables exist is valid as long as they do not change: the *epoch* is a part of the
//! plan cache key.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_base::{Budget, IndexId, Reservation, TableId, TrxIds};
use cohort_catalog::{Table, TableName};
use cohort_config::{Globals, VarId};
use cohort_vfs::{SharedFs, anonymous_temp_file};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::auto_increment::AutoIncrement;
use crate::open_table::{EngineNo, OpenTable};
use crate::temporary_rows::{Limits, TemporaryRows};

/// Server resources used by temporary tables.
#[derive(Clone)]
pub struct TemporaryParts {
    /// File system for rows that do not fit into memory.
    pub fs: SharedFs,
    pub globals: Arc<Globals>,
    /// Allocates epoch numbers.
    pub trx_ids: Arc<TrxIds>,
    /// Engine position of their store.
    pub store: EngineNo,
}

/// The temporary tables of one session. Only the session uses them.
pub struct TemporaryTables {
    parts: TemporaryParts,
    /// 0 if there are no tables; a new number after each change.
    epoch: AtomicU64,
    inner: Mutex<Inner>,
}

struct Inner {
    tables: BTreeMap<TableName, Arc<Table>>,
    /// Versions that statements have used.
    open: HashMap<TableId, Arc<OpenTable>>,
    /// By clustered index.
    counters: HashMap<IndexId, Arc<AutoIncrement>>,
    rows: Option<Arc<TemporaryRows>>,
    next_table: TableId,
    next_index: IndexId,
    memory: Arc<Budget>,
}

impl TemporaryTables {
    /// Creates an empty set. Its memory is charged to `memory`.
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

    /// Charges tables created from now on to another budget.
    pub fn charge_to(&self, memory: Arc<Budget>) {
        self.inner.lock().memory = memory;
    }

    /// Returns true if there are no tables.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.epoch() == 0
    }

    /// Returns the number of tables.
    pub fn count(&self) -> usize {
        self.inner.lock().tables.len()
    }

    /// Returns the epoch. Plans are valid for one epoch.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Returns the table with this name.
    #[inline]
    pub fn find(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        if self.is_empty() {
            return None;
        }
        let inner = self.inner.lock();
        inner.tables.get(&TableName { schema: schema.to_owned(), table: name.to_owned() }).cloned()
    }

    /// Adds a table or a new version of one.
    pub fn put(&self, table: Arc<Table>) {
        self.inner.lock().tables.insert(table.name.clone(), table);
        self.begin_epoch();
    }

    /// Removes a table but keeps its indexes.
    pub fn take(&self, name: &TableName) -> Option<Arc<Table>> {
        let removed = self.inner.lock().tables.remove(name);
        self.begin_epoch();
        removed
    }

    /// Removes a table with its rows.
    pub fn drop_table(&self, name: &TableName) {
        let Some(table) = self.take(name) else { return };
        self.inner.lock().open.remove(&table.id);
        self.free(table.trees());
    }

    /// Frees indexes.
    pub fn free(&self, spaces: impl IntoIterator<Item = IndexId>) {
        let mut inner = self.inner.lock();
        let spaces: Vec<IndexId> = spaces.into_iter().collect();
        spaces.iter().for_each(|space| drop(inner.counters.remove(space)));
        if let Some(rows) = inner.rows.clone() {
            drop(inner);
            rows.drop_spaces(spaces);
        }
    }

    /// Removes all tables with their rows.
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

    /// Allocates a table id.
    pub fn table_id(&self) -> TableId {
        let mut inner = self.inner.lock();
        let id = inner.next_table;
        inner.next_table.0 += 1;
        id
    }

    /// Allocates an index id.
    pub fn index_id(&self) -> IndexId {
        let mut inner = self.inner.lock();
        let id = inner.next_index;
        // There are two billion ids: at one per millisecond, a session needs weeks to exhaust them.
        inner.next_index.0 = inner.next_index.0.checked_add(1).unwrap_or(IndexId::FIRST_TEMPORARY.0);
        id
    }

    /// Opens a version of a table.
    pub fn open(&self, table: &Arc<Table>) -> Arc<OpenTable> {
        let inner = &mut *self.inner.lock();
        if let Some(open) = inner.open.get(&table.id).filter(|open| Arc::ptr_eq(&open.table, table)) {
            return Arc::clone(open);
        }
        let counters = Arc::clone(inner.counters.entry(table.rows().id).or_default());
        let open = Arc::new(OpenTable::temporary(self.parts.store, table, counters));
        inner.open.insert(table.id, Arc::clone(&open));
        open
    }

    /// Returns the row store.
    pub fn rows(&self) -> Arc<TemporaryRows> {
        let inner = &mut *self.inner.lock();
        let memory = &inner.memory;
        let parts = &self.parts;
        let make = || {
            let (fs, globals) = (Arc::clone(&parts.fs), Arc::clone(&parts.globals));
            let file = move || anonymous_temp_file(&fs, Path::new(&globals.value(VarId::Tmpdir).to_string()));
            let limits = Limits {
                memory_bytes: parts.globals.uint(VarId::TmpMemoryTableSize),
                file_bytes: parts.globals.uint(VarId::TmpDiskTableSize),
            };
            TemporaryRows::new(Reservation::new(Arc::clone(memory)), limits, Box::new(file))
        };
        Arc::clone(inner.rows.get_or_insert_with(make))
    }

    /// Returns the number of rows of a table.
    pub fn entries(&self, table: &Table) -> u64 {
        let inner = self.inner.lock();
        inner.rows.as_ref().map_or(0, |rows| rows.entries(table.rows().id))
    }
}
