//! Stored functions in expressions ([`StoredFunctions`]).

use std::sync::Arc;

use cohort_catalog::{AccountName, Catalog, Routine};
use cohort_expr::ExprType;
use cohort_program::{Bound, ProgramKind};
use cohort_session::{
    FoundFunction, ReachedNames, Returned, Roots, SessionState, StatementContext, StatementFunction,
    StatementFunctions,
};
use cohort_sql::ast::VariableType;
use cohort_types::{RoutineKind, SqlError, SqlResult, Value};

use super::cache::Compiled;
use super::context_host::{Arguments, run_routine};
use crate::shared_caches::SharedCaches;

/// The functions of the catalog.
pub(crate) struct StoredFunctions;

impl StatementFunctions for StoredFunctions {
    fn find(
        &self,
        (catalog, session): (&Catalog, &SessionState),
        (schema, name): (&str, &str),
        args: usize,
        definer: Option<AccountName>,
    ) -> SqlResult<Option<FoundFunction>> {
        let Some(routine) = catalog.routine(RoutineKind::Function, schema, name) else { return Ok(None) };
        let full_name = || format!("{}.{}", routine.schema, routine.name);
        let compiled = SharedCaches::of(&session.db).routines.compiled(routine, session)?;
        let program = &compiled.program;
        let wanted = program.parameters.len();
        if wanted != args {
            return Err(SqlError::wrong_argument_count("FUNCTION", &full_name(), wanted, args));
        }
        let ty = match &program.returns {
            Some(VariableType::Declared(declared)) => {
                cohort_plan::column_type(declared, "", routine.settings.database)?
            }
            _ => return Err(SqlError::not_supported("a function that returns this type")),
        };
        Ok(Some(FoundFunction {
            schema: routine.schema.as_str().into(),
            name: routine.name.as_str().into(),
            ty: ExprType::of_column(&ty, true).as_result_of_function(),
            parameters: program.declared_parameters(),
            is_out: match program.has_out() {
                true => program.parameters.iter().map(|(mode, _)| mode.is_out()).collect(),
                false => Vec::new(),
            },
            function: Box::new(StoredFunction { routine: Arc::clone(routine), compiled, definer }),
            routine: Some(Arc::clone(routine)),
        }))
    }

    fn reach(&self, (catalog, session): (&Catalog, &SessionState), roots: &Roots) -> ReachedNames {
        super::reach::reach(catalog, session, roots)
    }
}

/// A function that a plan calls.
struct StoredFunction {
    routine: Arc<Routine>,
    compiled: Arc<Compiled>,
    /// The definer of the view that calls the function: a function with SQL SECURITY INVOKER runs as it.
    definer: Option<AccountName>,
}

impl StatementFunction for StoredFunction {
    fn call_again(
        &self,
        args: &[Value],
        session: &SessionState,
        check: &mut dyn FnMut() -> SqlResult<()>,
    ) -> SqlResult<Option<Value>> {
        // With the definer of a view it is another call.
        let is_own = !self.routine.by_invoker || self.definer.is_none();
        match session.called.find::<Bound>(Arc::as_ptr(&self.routine).cast()) {
            Some(bound) if is_own && !self.compiled.program.has_out() => bound.call_typed(args, check),
            _ => Ok(None),
        }
    }

    fn call(&self, args: &[Value], ctx: &mut StatementContext<'_>) -> SqlResult<Returned> {
        let definer = match self.routine.by_invoker {
            true => self.definer.as_ref(),
            false => Some(&self.routine.definer),
        };
        let routine = (&self.routine, &*self.compiled);
        let args = match args {
            args if !self.routine.aggregate => Arguments::Values(args.to_vec()),
            [Value::Str(rows)] => Arguments::OfRows(&rows.bytes),
            // An empty group. As in MariaDB, the function does not run.
            _ => return Ok(Value::Null.into()),
        };
        let (finished, _) = run_routine(ctx, routine, definer, args, ProgramKind::Function)?;
        Ok(Returned { value: finished.returned.unwrap_or(Value::Null), out: finished.out })
    }
}
