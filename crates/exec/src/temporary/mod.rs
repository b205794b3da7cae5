//! A session's temporary tables.
//!
//! They are known to their session alone: names that it uses are looked up here before the catalog, ids begin
//! where the catalog's never come, rows lie in a store of the session ([`store`]). Nothing of it is locked,
//! logged or redo: a temporary table ends with its session, which includes a crash.
//!
//! A plan that was made while there were such tables is good while they are the same: the *epoch* is a part
//! of what plans are kept by.
//!
//! | module | concept |
//! |---|---|
//! | `sources` | [`sources::SourceTemporaryTables`]: those of a source's connections, for appliers |
//! | `store` | [`store::TemporaryRows`]: key spaces with undo |
//! | `values` | values that lie in a file |

pub(crate) mod sources;
pub(crate) mod store;
mod values;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use cohort_base::{Budget, IndexId, Reservation, TableId};
use cohort_catalog::{Table, TableName};
use cohort_config::VarId;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::database::Database;
use crate::files::unnamed_file;
use crate::table::{AutoIncrement, OpenTable};
use store::{Limits, TemporaryRows};

/// The temporary tables of one session. Only the session uses it.
pub(crate) struct TemporaryTables {
    db: Weak<Database>,
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
    pub(crate) fn new(db: &Arc<Database>, memory: Arc<Budget>) -> Arc<TemporaryTables> {
        Arc::new(TemporaryTables {
            db: Arc::downgrade(db),
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
    pub(crate) fn charge_to(&self, memory: Arc<Budget>) {
        self.inner.lock().memory = memory;
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.epoch() == 0
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.inner.lock().tables.len()
    }

    /// Plans are good for one epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The table of this name.
    pub(crate) fn find(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        if self.is_empty() {
            return None;
        }
        let inner = self.inner.lock();
        inner.tables.get(&TableName { schema: schema.to_owned(), table: name.to_owned() }).cloned()
    }

    /// Adds a table, or another version of one, under its name.
    pub(crate) fn put(&self, table: Arc<Table>) {
        self.inner.lock().tables.insert(table.name.clone(), table);
        self.begin_epoch();
    }

    /// Removes a table; its key spaces stay.
    pub(crate) fn take(&self, name: &TableName) -> Option<Arc<Table>> {
        let removed = self.inner.lock().tables.remove(name);
        self.begin_epoch();
        removed
    }

    /// Removes a table with its rows.
    pub(crate) fn drop_table(&self, name: &TableName) {
        let Some(table) = self.take(name) else { return };
        self.inner.lock().open.remove(&table.id);
        self.free(table.indexes.iter().map(|index| index.id));
    }

    /// Gives up key spaces.
    pub(crate) fn free(&self, spaces: impl IntoIterator<Item = IndexId>) {
        let mut inner = self.inner.lock();
        let spaces: Vec<IndexId> = spaces.into_iter().collect();
        spaces.iter().for_each(|space| drop(inner.counters.remove(space)));
        if let Some(rows) = inner.rows.clone() {
            drop(inner);
            rows.drop_spaces(spaces);
        }
    }

    /// All of them go, with their rows.
    pub(crate) fn clear(&self) {
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
        let number = self.db.upgrade().filter(|_| !is_empty).map_or(0, |db| db.trx_ids.next().0);
        self.epoch.store(number, Ordering::Relaxed);
    }

    /// A number for a new table.
    pub(crate) fn table_id(&self) -> TableId {
        let mut inner = self.inner.lock();
        let id = inner.next_table;
        inner.next_table.0 += 1;
        id
    }

    /// A number for a new key space.
    pub(crate) fn index_id(&self) -> IndexId {
        let mut inner = self.inner.lock();
        let id = inner.next_index;
        // Two thousand million of them: a session that made one every millisecond would need weeks.
        inner.next_index.0 = inner.next_index.0.checked_add(1).unwrap_or(IndexId::FIRST_TEMPORARY.0);
        id
    }

    /// A version of a table, ready for use.
    pub(crate) fn open(&self, db: &Database, table: &Arc<Table>) -> Arc<OpenTable> {
        let inner = &mut *self.inner.lock();
        if let Some(open) = inner.open.get(&table.id).filter(|open| Arc::ptr_eq(&open.table, table)) {
            return Arc::clone(open);
        }
        let counters = Arc::clone(inner.counters.entry(table.clustered().id).or_default());
        let open = Arc::new(OpenTable::temporary(db, table, counters));
        inner.open.insert(table.id, Arc::clone(&open));
        open
    }

    /// Where the rows are.
    pub(crate) fn rows(&self, db: &Database) -> Arc<TemporaryRows> {
        let inner = &mut *self.inner.lock();
        let memory = &inner.memory;
        let make = || {
            let (fs, globals) = (Arc::clone(&db.fs), Arc::clone(&db.globals));
            let file = move || unnamed_file(&fs, Path::new(&globals.value(VarId::Tmpdir).to_string()));
            let limits = Limits {
                memory_bytes: db.globals.uint(VarId::TmpMemoryTableSize),
                file_bytes: db.globals.uint(VarId::TmpDiskTableSize),
            };
            TemporaryRows::new(Reservation::new(Arc::clone(memory)), limits, Box::new(file))
        };
        Arc::clone(inner.rows.get_or_insert_with(make))
    }

    /// Rows of a table.
    pub(crate) fn entries(&self, table: &Table) -> u64 {
        let inner = self.inner.lock();
        inner.rows.as_ref().map_or(0, |rows| rows.entries(table.clustered().id))
    }
}
