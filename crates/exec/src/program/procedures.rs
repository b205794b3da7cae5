//! Procedures by name, for an account that may execute them.

use std::sync::Arc;

use cohort_catalog::Routine;
use cohort_plan::Parameter;
use cohort_session::{SessionState, access};
use cohort_sql::ast::ObjectName;
use cohort_types::{Privilege, RoutineKind, SqlError, SqlResult};

use crate::shared_caches::SharedCaches;

/// Returns the procedure of a name, if the session may execute it. Errors 1370 and 1305.
pub(super) fn find_procedure(session: &SessionState, name: &ObjectName) -> SqlResult<Arc<Routine>> {
    let current = session.current_schema.as_deref();
    let schema = name.db.as_deref().or(current).ok_or_else(SqlError::no_database_selected)?;
    access::check_routine(session, Privilege::Execute, RoutineKind::Procedure, schema, &name.name)?;
    let found = session.db.catalog().routine(RoutineKind::Procedure, schema, &name.name).cloned();
    found.ok_or_else(|| SqlError::does_not_exist("PROCEDURE", &format!("{schema}.{}", name.name)))
}

/// Returns the parameters of a procedure.
pub(super) fn parameters_of(session: &SessionState, name: &ObjectName) -> SqlResult<Vec<Parameter>> {
    let routine = find_procedure(session, name)?;
    let compiled = SharedCaches::of(&session.db).routines.compiled(&routine, session)?;
    Ok(compiled.program.declared_parameters())
}
