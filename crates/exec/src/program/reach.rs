//! The names that the programs of a statement use ([`reach`]), for prelocking ([`cohort_session::Reached`]).
//!
//! A search over programs: each function, procedure, trigger and view is visited once, triggers once for each
//! event. A program that cannot be compiled names nothing; its error is reported when it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohort_catalog::{Catalog, Routine, Table};
use cohort_program::{Named, NamedTable};
use cohort_session::{ReachedNames, Roots, SessionState};
use cohort_sql::ast::{ObjectName, Statement, TriggerEvent};
use cohort_trx::TableId;
use cohort_types::RoutineKind;

use crate::shared_caches::SharedCaches;

/// Returns what the programs of a statement may use.
pub(super) fn reach(catalog: &Catalog, session: &SessionState, roots: &Roots) -> ReachedNames {
    let mut search = Search::new(catalog, session);
    roots.functions.iter().for_each(|routine| search.call(routine));
    for root in &roots.tables {
        if !root.table.is_temporary() {
            let name = &root.table.name;
            search.use_table((name.schema.clone(), name.table.clone()), root.is_written);
        }
        search.fire(&root.table, &root.events);
    }
    search.finish()
}

/// Returns the names that the triggers of tables and the functions of views use: LOCK TABLES locks them with
/// these.
pub(crate) fn locked_with(
    catalog: &Catalog,
    session: &SessionState,
    (written, views): (&[Arc<Table>], &[TableId]),
) -> ReachedNames {
    const ALL: [TriggerEvent; 3] = [TriggerEvent::Insert, TriggerEvent::Update, TriggerEvent::Delete];
    let mut search = Search::new(catalog, session);
    written.iter().for_each(|table| search.fire(table, &ALL));
    views.iter().for_each(|view| search.use_view(view, &NamedTable::default()));
    search.finish()
}

struct Search<'s> {
    catalog: &'s Catalog,
    session: &'s SessionState,
    caches: Arc<SharedCaches>,
    routines: BTreeSet<(RoutineKind, String, String)>,
    fired: BTreeSet<(TableId, u8)>,
    views: BTreeSet<(TableId, bool)>,
    tables: BTreeMap<TableId, bool>,
    uses: Vec<(TableId, String, bool)>,
    /// The names of programs that are not looked at yet, each with the schema of its program.
    open: Vec<(String, Named)>,
}

impl<'s> Search<'s> {
    fn new(catalog: &'s Catalog, session: &'s SessionState) -> Search<'s> {
        Search {
            catalog,
            session,
            caches: SharedCaches::of(&session.db),
            routines: BTreeSet::new(),
            fired: BTreeSet::new(),
            views: BTreeSet::new(),
            tables: BTreeMap::new(),
            uses: Vec::new(),
            open: Vec::new(),
        }
    }

    fn finish(mut self) -> ReachedNames {
        while let Some((schema, named)) = self.open.pop() {
            for ((name, alias), how) in named.tables {
                self.name(&schema, name, alias, &how);
            }
            for (kind, names) in
                [(RoutineKind::Function, named.functions), (RoutineKind::Procedure, named.procedures)]
            {
                for name in names {
                    let schema = name.db.as_deref().unwrap_or(&schema);
                    if let Some(routine) = self.catalog.routine(kind, schema, &name.name) {
                        self.call(routine);
                    }
                }
            }
        }
        ReachedNames {
            routines: self.routines.into_iter().collect(),
            tables: self.tables.into_iter().collect(),
            uses: self.uses,
        }
    }

    fn call(&mut self, routine: &Arc<Routine>) {
        let name = (routine.kind, routine.schema.clone(), routine.name.to_lowercase());
        if self.routines.insert(name)
            && let Ok(compiled) = self.caches.routines.compiled(routine, self.session)
        {
            self.open.push((routine.schema.clone(), compiled.program.named().clone()));
        }
    }

    fn fire(&mut self, table: &Arc<Table>, events: &[TriggerEvent]) {
        for trigger in table.triggers.iter().filter(|trigger| events.contains(&trigger.event)) {
            let name = (table.name.schema.clone(), trigger.name.clone());
            if self.fired.insert((name, trigger.event as u8))
                && let Ok(compiled) = self.caches.triggers.compiled(table, trigger)
            {
                self.open.push((table.name.schema.clone(), compiled.program.named().clone()));
            }
        }
    }

    /// Adds a table or view that a program names.
    fn name(&mut self, schema: &str, name: ObjectName, alias: String, how: &NamedTable) {
        let id = (name.db.unwrap_or_else(|| schema.to_owned()), name.name);
        let db = &self.session.db;
        if self.session.temporary.find(&id.0, &id.1).is_some() || db.virtual_table(&id.0, &id.1).is_some() {
            return;
        }
        for _ in 0..how.uses {
            self.uses.push((id.clone(), alias.clone(), how.is_written));
        }
        self.use_table(id.clone(), how.is_written);
        match self.catalog.table(&id.0, &id.1) {
            Some(table) => self.fire(table, &how.events),
            None => self.use_view(&id, how),
        }
    }

    fn use_table(&mut self, id: TableId, is_written: bool) {
        *self.tables.entry(id).or_default() |= is_written;
    }

    /// Adds the tables and functions of a view. They are used as the view is.
    fn use_view(&mut self, id: &TableId, how: &NamedTable) {
        let Some(view) = self.catalog.view(&id.0, &id.1) else { return };
        if !self.views.insert((id.clone(), how.is_written)) {
            return;
        }
        let Ok(query) = cohort_plan::view_query(view) else { return };
        let mut named = Named::in_statement(&Statement::Query(query));
        // The text of a view has the schemas of all names.
        named.tables.retain(|(name, _), _| name.db.is_some());
        for table in named.tables.values_mut() {
            (table.is_written, table.events) = (how.is_written, how.events.clone());
        }
        self.open.push((id.0.clone(), named));
    }
}
