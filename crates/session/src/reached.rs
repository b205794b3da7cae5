//! Prelocking: what a statement may use through the stored functions and triggers that it runs ([`Reached`]).
//!
//! All names are locked in one order before the statement runs: routines by name, then tables and views by
//! name, each in the strongest mode that a program or the statement itself needs. So two statements whose
//! programs name tables in opposite orders do not wait for each other, and the definitions that a running
//! program sees do not change. Programs name tables in their text: those of branches that never run are
//! locked too, and those that do not exist, so that they are not created meanwhile.
//!
//! Statements inside of programs find their names locked, and lock nothing by this way.
//!
//! Under LOCK TABLES no table is locked. Every table must be locked already under the alias that the program
//! uses: error 1100. A statement of a program that writes a table which is locked for reading fails when it
//! runs: error 1099.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_catalog::{Catalog, Routine};
use cohort_locks::{MetadataKey, MetadataMode};
use cohort_types::SqlResult;

use crate::roots::{ReachedNames, RootTable, Roots};
use crate::session_state::SessionState;
use crate::statement::StatementContext;

/// Estimated bytes of an entry without its texts.
const NAME_BYTES: usize = 96;

/// The names that a statement reaches through programs.
#[derive(Debug)]
pub struct Reached {
    roots: Roots,
    pub names: ReachedNames,
    /// The version of the catalog with these names.
    version: AtomicU64,
}

impl Reached {
    /// Returns what a statement reaches, or `None` if it runs no programs.
    pub fn by(catalog: &Catalog, session: &SessionState, roots: Roots) -> Option<Reached> {
        let fires =
            |root: &RootTable| root.table.triggers.iter().any(|trigger| root.events.contains(&trigger.event));
        if roots.functions.is_empty() && !roots.tables.iter().any(fires) {
            return None;
        }
        let names = session.db.functions.get()?.reach((catalog, session), &roots);
        Some(Reached { roots, names, version: AtomicU64::new(catalog.version) })
    }

    /// Returns the approximate memory of the names.
    pub fn memory_bytes(&self) -> usize {
        let routines = self.names.routines.iter().map(|(_, schema, name)| schema.len() + name.len());
        let tables = self.names.tables.iter().map(|((schema, name), _)| schema.len() + name.len());
        let uses =
            self.names.uses.iter().map(|((schema, name), alias, _)| schema.len() + name.len() + alias.len());
        routines.chain(tables).chain(uses).map(|bytes| bytes + NAME_BYTES).sum()
    }

    /// Locks all names. Returns false if they are others by now, so that the statement must be planned again.
    pub fn lock(&self, ctx: &mut StatementContext<'_>) -> SqlResult<bool> {
        if ctx.trx.is_inside() {
            return Ok(true);
        }
        for key in self.names.routine_keys() {
            ctx.trx.lock_metadata(&key, MetadataMode::SharedRead)?;
        }
        let mode = |is_written: bool| match is_written {
            true => MetadataMode::SharedWrite,
            false => MetadataMode::SharedRead,
        };
        if ctx.trx.has_locked_tables() {
            for ((schema, table), alias, _) in &self.names.uses {
                let key = MetadataKey::Table(schema.as_str().into(), table.as_str().into());
                ctx.trx.lock_under_alias(&key, alias, MetadataMode::SharedRead)?;
            }
        } else {
            if self.names.tables.iter().any(|(_, is_written)| *is_written) {
                ctx.trx.pass_global_lock_to_write()?;
            }
            for ((schema, table), is_written) in &self.names.tables {
                let key = MetadataKey::Table(schema.as_str().into(), table.as_str().into());
                ctx.trx.lock_metadata(&key, mode(*is_written))?;
            }
        }
        Ok(self.is_current(ctx))
    }

    fn is_current(&self, ctx: &StatementContext<'_>) -> bool {
        if ctx.db.catalog_version() == self.version.load(Ordering::Relaxed) {
            return true;
        }
        let catalog = ctx.db.catalog();
        let is_same = |routine: &Arc<Routine>| {
            let found = catalog.routine(routine.kind, &routine.schema, &routine.name);
            found.is_some_and(|found| Arc::ptr_eq(found, routine))
        };
        if !self.roots.functions.iter().all(is_same) {
            return false;
        }
        let functions = ctx.db.functions.get().expect("it has found the names");
        let is_current = functions.reach((&catalog, ctx.session), &self.roots) == self.names;
        if is_current {
            self.version.store(catalog.version, Ordering::Relaxed);
        }
        is_current
    }
}
