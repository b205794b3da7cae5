//! Views: binds the stored query for a name in FROM.

use std::sync::Arc;

use cohort_catalog::View;
use cohort_sql::{ParseOptions, ast, parse};
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::bind::PlanContext;
use crate::block::Query;
use crate::common_tables::CommonTables;
use crate::query::bind_query;

/// Parses the stored query of a view. Texts without a collation get that of the view's creator.
pub fn view_query(view: &View) -> SqlResult<Box<ast::Query>> {
    let options = ParseOptions { collation: view.connection, ..ParseOptions::default() };
    match parse(view.text.as_bytes(), &options)?.statement {
        ast::Statement::Query(query) => Ok(query),
        _ => Err(invalid_view(view)),
    }
}

/// Binds a view's query with the privileges of its definer or its reader. Its literals are not parameters.
/// Missing objects are reported as error 1356 of the outermost view.
pub fn bind_view(ctx: &PlanContext<'_>, view: &Arc<View>) -> SqlResult<Query> {
    let query = view_query(view)?;
    ctx.names.enter_view(view)?;
    let lifts = ctx.lifts_literals.replace(false);
    let bound = bind_query(ctx, &CommonTables::default(), None, &query);
    ctx.lifts_literals.set(lifts);
    ctx.names.leave_view();
    let apart = view.algorithm == "TEMPTABLE";
    let bound = bound.map(|query| Query { apart, count_all: false, ..query });
    bound.map_err(|error| hidden_by_view(view, error))
}

/// Returns the error that the reader of a view receives for an error in it.
pub fn hidden_by_view(view: &View, error: SqlError) -> SqlError {
    if hides(error.code) { invalid_view(view) } else { error }
}

/// Returns true if an error would reveal details of a view to its reader.
fn hides(code: ErrorCode) -> bool {
    use ErrorCode as E;
    matches!(
        code,
        E::NoSuchTable
            | E::BadField
            | E::BadDb
            | E::TableaccessDenied
            | E::ColumnaccessDenied
            | E::DbAccessDenied
            | E::SpDoesNotExist
            | E::ProcaccessDenied
            | E::ViewInvalid
    )
}

/// Returns error 1356.
pub fn invalid_view(view: &View) -> SqlError {
    SqlError::view_invalid(&view.name.schema, &view.name.table)
}
