//! Compiled routines, shared by all sessions.
//!
//! An entry belongs to one object of the catalog: when the routine is altered, dropped or created again, the
//! pointer differs. Its bound forms belong to one set of settings each, and to one version of the catalog if
//! the types of its variables refer to tables.

use std::sync::Arc;

use cohort_catalog::{ProgramKey, Routine, Table, Trigger};
use cohort_program::{Bound, Program};
use cohort_types::RoutineKind;
use hashbrown::HashMap;
use parking_lot::Mutex;

/// Maximum number of bound forms of a program: sessions may differ in settings.
const BOUND_MAX: usize = 4;

/// A compiled program with its bound forms, the latest first.
pub(super) struct Compiled {
    pub program: Arc<Program>,
    forms: Vec<BoundFor>,
}

/// A bound form of a program.
struct BoundFor {
    /// Hash of the session's settings.
    settings: u64,
    /// Version of the catalog, if the types depend on it.
    version: Option<u64>,
    bound: Arc<Bound>,
}

impl Compiled {
    fn new(program: &Arc<Program>) -> Compiled {
        Compiled { program: Arc::clone(program), forms: Vec::new() }
    }

    /// Returns the form for these settings and this version of the catalog.
    pub fn bound(&self, settings: u64, version: u64) -> Option<Arc<Bound>> {
        let is_of = |it: &&BoundFor| it.settings == settings && it.version.is_none_or(|of| of == version);
        self.forms.iter().find(is_of).map(|found| Arc::clone(&found.bound))
    }

    /// Adds a form in place of that for the same settings.
    pub fn add(&mut self, settings: u64, version: u64, bound: &Arc<Bound>) {
        let version = self.program.depends_on_catalog().then_some(version);
        self.forms.retain(|it| it.settings != settings);
        self.forms.truncate(BOUND_MAX - 1);
        self.forms.insert(0, BoundFor { settings, version, bound: Arc::clone(bound) });
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
    compiled: Compiled,
    used: u64,
}

impl Routines {
    /// Looks at the entry of a routine, if there is one.
    pub(super) fn with_entry<T>(
        &self,
        routine: &Arc<Routine>,
        look: impl FnOnce(&mut Compiled) -> T,
    ) -> Option<T> {
        let mut state = self.state.lock();
        state.now += 1;
        let now = state.now;
        let entry = state.entries.get_mut(&key(routine)).filter(|it| Arc::ptr_eq(&it.routine, routine))?;
        entry.used = now;
        Some(look(&mut entry.compiled))
    }

    /// Adds a routine. With more than `entries_max` of them, the one used least recently is removed.
    pub(super) fn add(&self, routine: &Arc<Routine>, program: &Arc<Program>, entries_max: usize) {
        let mut state = self.state.lock();
        state.now += 1;
        if entries_max == 0 {
            return;
        }
        if state.entries.len() >= entries_max {
            let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            oldest.and_then(|key| state.entries.remove(&key));
        }
        let (routine, compiled, used) = (Arc::clone(routine), Compiled::new(program), state.now);
        state.entries.insert(key(&routine), Entry { routine, compiled, used });
    }
}

fn key(routine: &Routine) -> Key {
    Key { kind: routine.kind, schema: routine.schema.clone(), name: routine.key() }
}

/// Maximum number of compiled triggers.
const TRIGGERS_MAX: usize = 1024;

/// The compiled triggers of a server, by schema and name. An entry belongs to one definition of the table.
#[derive(Default)]
pub(crate) struct Triggers {
    entries: Mutex<HashMap<(String, String), TriggerEntry>>,
}

struct TriggerEntry {
    table: Arc<Table>,
    compiled: Compiled,
}

impl Triggers {
    pub(super) fn with_entry<T>(
        &self,
        table: &Arc<Table>,
        trigger: &Trigger,
        look: impl FnOnce(&mut Compiled) -> T,
    ) -> Option<T> {
        let mut entries = self.entries.lock();
        let entry = entries.get_mut(&trigger_key(table, trigger));
        entry.filter(|entry| Arc::ptr_eq(&entry.table, table)).map(|entry| look(&mut entry.compiled))
    }

    /// Adds a trigger. If there are too many, all others are removed.
    pub(super) fn add(&self, table: &Arc<Table>, trigger: &Trigger, program: &Arc<Program>) {
        let mut entries = self.entries.lock();
        if entries.len() >= TRIGGERS_MAX {
            entries.clear();
        }
        let entry = TriggerEntry { table: Arc::clone(table), compiled: Compiled::new(program) };
        entries.insert(trigger_key(table, trigger), entry);
    }
}

fn trigger_key(table: &Table, trigger: &Trigger) -> (String, String) {
    (table.name.schema.clone(), trigger.name.clone())
}
