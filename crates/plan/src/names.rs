//! What binding asks of the session and the catalog.

use std::sync::Arc;

use cohort_catalog::{AccountName, Table, View};
use cohort_expr::{ExprType, SessionEnv, SessionHooks};
use cohort_sql::ast::{DataType, SequenceOperation};
use cohort_types::{ColumnType, ErrorCode, Privilege, Privileges, SqlError, SqlResult};

/// The session, the catalog and the account's privileges, as binding sees them.
pub trait Names {
    /// The session's settings.
    fn env(&self) -> &SessionEnv;

    /// Its variables.
    fn hooks(&self) -> &dyn SessionHooks;

    /// The current database.
    fn current_schema(&self) -> Option<&str>;

    /// The type of a user variable now.
    fn user_variable_type(&self, name: &str) -> Option<ExprType>;

    /// Fails when the statement was killed or its time is up.
    fn check_interrupt(&self) -> SqlResult<()>;

    /// A warning that each execution of the plan has.
    fn warn(&self, code: ErrorCode, text: String);

    /// A table that the server computes, for reading: error 1142 without the privilege.
    fn virtual_table(&self, schema: &str, name: &str) -> SqlResult<Option<Arc<dyn VirtualDefinition>>>;

    /// A base table on which the statement wants privileges: error 1142 without them, 1146 when there is
    /// none.
    fn base_table(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<Arc<Table>>;

    /// The type that a declaration means, of a column of this name, with the connection's collation where
    /// none was written.
    fn declared_type(&self, declared: &DataType, column: &str) -> SqlResult<ColumnType>;

    /// A sequence that an expression names; whether the session's temporary ones are not asked. Error 4089
    /// for what is none, 4091 when there is nothing.
    fn sequence(&self, schema: &str, name: &str, operation: SequenceOperation) -> SqlResult<bool>;

    /// A view on which the statement wants privileges: error 1142 without them.
    fn view(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<Option<Arc<View>>>;

    /// Until [`Names::leave_view`] the privileges that count are those that the view's query runs with; error
    /// 1462 for a view inside itself.
    fn enter_view(&self, view: &Arc<View>) -> SqlResult<()>;

    /// The account or role, whose host is empty, that a view's query runs with where an expression stands;
    /// None: the session's own.
    fn definer(&self) -> Option<AccountName>;

    /// The query of the view entered last is bound.
    fn leave_view(&self);

    /// The statement uses a column of a view: error 1143.
    fn use_view_column(&self, view: &Arc<View>, column: &str, how: Privilege) -> SqlResult<()>;

    /// Checks and notes the use of a column of a table that the server computes: error 1143.
    fn use_virtual_column(
        &self,
        table: &dyn VirtualDefinition,
        column: &str,
        how: Privilege,
    ) -> SqlResult<()>;

    /// The statement uses a column: error 1143.
    fn use_column(&self, table: &Arc<Table>, ordinal: usize, how: Privilege) -> SqlResult<()>;

    /// Error 1142.
    fn table_access_denied(&self, command: &str, schema: &str, table: &str) -> SqlError;
}

/// A column of a table that the server computes.
#[derive(Clone, Debug)]
pub struct VirtualColumn {
    pub name: &'static str,
    pub ty: ColumnType,
    pub nullable: bool,
}

/// Name and columns of a table that the server computes.
pub trait VirtualDefinition: Send + Sync {
    /// `information_schema`.
    fn schema(&self) -> &'static str;

    /// As MariaDB spells it (upper case in information_schema); found in any case.
    fn name(&self) -> &'static str;

    /// The columns in order.
    fn columns(&self) -> &[VirtualColumn];

    /// Whether MariaDB has a view there.
    fn is_view(&self) -> bool {
        false
    }
}
