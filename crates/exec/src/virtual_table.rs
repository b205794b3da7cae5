//! Tables that the server computes: information_schema.

use cohort_types::{ColumnType, SqlResult, Value};

use crate::statement::StatementContext;

/// A column of a virtual table.
#[derive(Clone, Debug)]
pub struct VirtualColumn {
    pub name: &'static str,
    pub ty: ColumnType,
    pub nullable: bool,
}

/// A table whose rows are made when it is read.
pub trait VirtualTable: Send + Sync {
    /// `information_schema`.
    fn schema(&self) -> &'static str;

    /// As MariaDB spells it (upper case in information_schema); found in any case.
    fn name(&self) -> &'static str;

    /// The columns in order.
    fn columns(&self) -> &[VirtualColumn];

    /// All rows, a value per column; what the session may not see is left out.
    fn rows(&self, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>>;
}
