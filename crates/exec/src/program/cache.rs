//! Compiled programs, shared by all sessions.
//!
//! An entry belongs to one object of the catalog: when the routine is altered, dropped or created again, the
//! pointer differs. Plans hold the compiled functions and triggers that they run, so that the cache is asked
//! when a statement is planned, not for each row.
//!
//! # Bound forms
//! A program is bound for one set of settings. If the types of its variables refer to tables or queries, the
//! form also belongs to one version of the catalog and to one account with its role: another account may lack
//! the privileges on these tables. A session with temporary tables shares no such form, because its tables
//! hide others.

use std::sync::Arc;

use cohort_catalog::{AccountName, ProgramKey, Routine, Table, Trigger};
use cohort_config::VarId;
use cohort_program::{Bound, Host, Program, bind};
use cohort_session::SessionState;
use cohort_types::{RoutineKind, SqlResult};
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::routines::{columns_of_table, compiled_routine, compiled_trigger};

/// Maximum number of bound forms of a program: sessions may differ in settings.
const BOUND_MAX: usize = 4;

/// A compiled program with its bound forms, the latest first.
pub(crate) struct Compiled {
    pub program: Arc<Program>,
    depends_on_tables: bool,
    forms: Mutex<Vec<Form>>,
}

/// A bound form of a program.
struct Form {
    /// Hash of the session's settings.
    settings: u64,
    /// The tables that its types refer to, if any.
    tables: Option<SeenTables>,
    bound: Arc<Bound>,
}

/// The tables that a session sees.
#[derive(PartialEq, Eq)]
struct SeenTables {
    /// Version of the catalog.
    version: u64,
    account: AccountName,
    role: Option<String>,
}

impl SeenTables {
    fn of(session: &SessionState) -> SeenTables {
        SeenTables {
            version: session.db.catalog_version(),
            account: session.info.account.clone(),
            role: session.identity.role.clone(),
        }
    }
}

impl Compiled {
    pub fn new(program: Program) -> Arc<Compiled> {
        Arc::new(Compiled {
            depends_on_tables: program.depends_on_catalog(),
            program: Arc::new(program),
            forms: Mutex::default(),
        })
    }

    /// Returns the program bound for the host's current settings, which are those of the program. `table` is
    /// that of a trigger.
    pub fn bound(&self, table: Option<&Table>, host: &mut dyn Host) -> SqlResult<Arc<Bound>> {
        let session = host.session();
        let settings = session.settings.plan_key;
        let tables = self.depends_on_tables.then(|| SeenTables::of(session));
        let is_shared = tables.is_none() || session.temporary.is_empty();
        if is_shared {
            let forms = self.forms.lock();
            if let Some(found) = forms.iter().find(|it| it.settings == settings && it.tables == tables) {
                return Ok(Arc::clone(&found.bound));
            }
        }
        let columns = table.map(columns_of_table);
        let bound = Arc::new(bind(&self.program, columns.as_deref(), host)?);
        if is_shared {
            let mut forms = self.forms.lock();
            forms.truncate(BOUND_MAX - 1);
            forms.insert(0, Form { settings, tables, bound: Arc::clone(&bound) });
        }
        Ok(bound)
    }
}

/// The compiled routines of a server.
#[derive(Default)]
pub(crate) struct Routines {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// Time of the last use.
    now: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: RoutineKind,
    schema: String,
    name: ProgramKey,
}

struct Entry {
    routine: Arc<Routine>,
    compiled: Arc<Compiled>,
    used: u64,
}

impl Routines {
    /// Returns the compiled form of a routine.
    pub fn compiled(&self, routine: &Arc<Routine>, session: &SessionState) -> SqlResult<Arc<Compiled>> {
        let key = Key { kind: routine.kind, schema: routine.schema.clone(), name: routine.key() };
        {
            let mut state = self.state.lock();
            state.now += 1;
            let now = state.now;
            let entry = state.entries.get_mut(&key);
            if let Some(entry) = entry.filter(|entry| Arc::ptr_eq(&entry.routine, routine)) {
                entry.used = now;
                return Ok(Arc::clone(&entry.compiled));
            }
        }
        let compiled = Compiled::new(compiled_routine(routine)?);
        let entries_max = session.db.globals.uint(VarId::StoredProgramCache);
        self.add(key, routine, &compiled, usize::try_from(entries_max).unwrap_or(usize::MAX));
        Ok(compiled)
    }

    /// Adds a routine. With more than `entries_max` of them, the one used least recently is removed.
    fn add(&self, key: Key, routine: &Arc<Routine>, compiled: &Arc<Compiled>, entries_max: usize) {
        let mut state = self.state.lock();
        if entries_max == 0 {
            return;
        }
        if state.entries.len() >= entries_max {
            let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            oldest.and_then(|key| state.entries.remove(&key));
        }
        let (routine, compiled, used) = (Arc::clone(routine), Arc::clone(compiled), state.now);
        state.entries.insert(key, Entry { routine, compiled, used });
    }
}

/// Maximum number of compiled triggers.
const TRIGGERS_MAX: usize = 1024;

/// The compiled triggers of a server, by schema and name. An entry belongs to one definition of the table.
#[derive(Default)]
pub(crate) struct Triggers {
    entries: Mutex<HashMap<(String, String), TriggerEntry>>,
}

#[derive(Clone)]
struct TriggerEntry {
    table: Arc<Table>,
    compiled: Arc<Compiled>,
}

impl Triggers {
    /// Returns the compiled form of a trigger. If there are too many, all others are removed.
    pub fn compiled(&self, table: &Arc<Table>, trigger: &Trigger) -> SqlResult<Arc<Compiled>> {
        let key = (table.name.schema.clone(), trigger.name.clone());
        let found = self.entries.lock().get(&key).filter(|entry| Arc::ptr_eq(&entry.table, table)).cloned();
        if let Some(found) = found {
            return Ok(found.compiled);
        }
        let compiled = Compiled::new(compiled_trigger(table, trigger)?);
        let mut entries = self.entries.lock();
        if entries.len() >= TRIGGERS_MAX {
            entries.clear();
        }
        entries.insert(key, TriggerEntry { table: Arc::clone(table), compiled: Arc::clone(&compiled) });
        Ok(compiled)
    }
}
