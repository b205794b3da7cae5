//! The programs of a statement ([`Roots`]), and the names that these use ([`ReachedNames`]).

use std::sync::Arc;

use cohort_catalog::{Routine, Table};
use cohort_locks::{MetadataKey, ProgramKind};
use cohort_sql::ast::TriggerEvent;
use cohort_trx::TableId;
use cohort_types::RoutineKind;

/// The programs that a statement runs itself, and its tables.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    pub functions: Vec<Arc<Routine>>,
    pub tables: Vec<RootTable>,
}

/// A table that a statement uses.
#[derive(Clone, Debug)]
pub struct RootTable {
    pub table: Arc<Table>,
    pub is_written: bool,
    /// The events of the triggers that the statement fires.
    pub events: Vec<TriggerEvent>,
}

/// The names that programs use.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReachedNames {
    /// The routines by name.
    pub routines: Vec<(RoutineKind, String, String)>,
    /// The tables and views by name, those of the roots included. True if rows are changed.
    pub tables: Vec<(TableId, bool)>,
    /// Tables and views that programs use, with their aliases. True if rows are changed. Each entry needs a
    /// lock of LOCK TABLES.
    pub uses: Vec<(TableId, String, bool)>,
}

impl ReachedNames {
    /// Returns the names of the routines as they are locked.
    pub fn routine_keys(&self) -> impl Iterator<Item = MetadataKey> {
        self.routines.iter().map(|(kind, schema, name)| {
            let kind = match kind {
                RoutineKind::Function => ProgramKind::Function,
                RoutineKind::Procedure => ProgramKind::Procedure,
            };
            MetadataKey::Program(kind, schema.as_str().into(), name.as_str().into())
        })
    }
}
