//! Makes stored functions and triggers run ([`run_programs`]).

use std::sync::Arc;

use cohort_session::Database;

use super::functions::StoredFunctions;
use super::triggers::TriggersOfTables;
use crate::shared_caches::SharedCaches;

/// Lets expressions call the stored functions of the catalog, and changes of rows run its triggers.
pub fn run_programs(db: &Arc<Database>) {
    db.functions.get_or_init(|| Arc::new(StoredFunctions));
    db.row_hooks.get_or_init(|| Arc::new(TriggersOfTables(SharedCaches::of(db))));
}
