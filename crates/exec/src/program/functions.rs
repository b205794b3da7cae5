//! Stored functions in expressions ([`StoredFunctions`]).

use cohort_catalog::Catalog;
use cohort_expr::ExprType;
use cohort_program::ProgramKind;
use cohort_session::{FoundFunction, SessionState, StatementContext, StatementFunctions};
use cohort_sql::ast::VariableType;
use cohort_types::{ColumnType, RoutineKind, SqlError, SqlResult, Value};

use super::context_host::run_routine;
use crate::shared_caches::SharedCaches;

/// The functions of the catalog.
pub(crate) struct StoredFunctions;

impl StatementFunctions for StoredFunctions {
    fn find(
        &self,
        (catalog, session): (&Catalog, &SessionState),
        schema: &str,
        name: &str,
        args: usize,
    ) -> SqlResult<Option<FoundFunction>> {
        let Some(routine) = catalog.routine(RoutineKind::Function, schema, name) else { return Ok(None) };
        let full_name = || format!("{}.{}", routine.schema, routine.name);
        if routine.aggregate {
            return Err(SqlError::not_supported("calls of AGGREGATE functions"));
        }
        let program = SharedCaches::of(&session.db).routines.program_of(routine, session)?;
        let wanted = program.parameters.len();
        if wanted != args {
            return Err(SqlError::wrong_argument_count("FUNCTION", &full_name(), wanted, args));
        }
        let ty = match &program.returns {
            Some(VariableType::Declared(declared)) => {
                cohort_plan::column_type(declared, "", routine.settings.database)?
            }
            Some(VariableType::TypeOf(column)) => {
                let schema = column.db.as_deref().unwrap_or(schema);
                type_of(catalog, schema, column.table.as_deref().unwrap_or_default(), &column.name)?
            }
            _ => return Err(SqlError::not_supported("a function that returns a row")),
        };
        Ok(Some(FoundFunction {
            schema: routine.schema.as_str().into(),
            name: routine.name.as_str().into(),
            ty: ExprType::of_column(&ty, true),
            routine: Some(routine.clone()),
        }))
    }

    fn call(
        &self,
        schema: &str,
        name: &str,
        args: &[Value],
        ctx: &mut StatementContext<'_>,
    ) -> SqlResult<Value> {
        let routine =
            ctx.db.read_catalog(|catalog| catalog.routine(RoutineKind::Function, schema, name).cloned());
        let routine =
            routine.ok_or_else(|| SqlError::does_not_exist("FUNCTION", &format!("{schema}.{name}")))?;
        let (finished, _) = run_routine(ctx, &routine, args.to_vec(), ProgramKind::Function)?;
        Ok(finished.returned.unwrap_or(Value::Null))
    }
}

/// Returns the type of a column of a table.
fn type_of(catalog: &Catalog, schema: &str, table: &str, column: &str) -> SqlResult<ColumnType> {
    let found = catalog.table(schema, table).ok_or_else(|| SqlError::no_such_table(schema, table))?;
    let found = found.columns.iter().find(|known| known.name.eq_ignore_ascii_case(column));
    found.map(|column| column.ty.clone()).ok_or_else(|| SqlError::unknown_column(column, table))
}
