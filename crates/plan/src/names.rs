//! [`Names`]: the binder's interface to session and catalog.

use std::any::Any;
use std::sync::Arc;

use cohort_catalog::{AccountName, Table, View};
use cohort_expr::{ExprType, SessionEnv, SessionHooks, takes_hex_as_number};
use cohort_sql::ast::{self, DataType, DeclaredKind, SequenceOperation};
use cohort_types::{Collation, ColumnType, ErrorCode, Privilege, Privileges, SqlError, SqlResult, TypeKind};

use crate::declared_type::column_type;

/// A function that runs statements.
pub struct CalledFunction {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    /// The function, as [`cohort_expr::CallBack`] has it.
    pub function: Arc<dyn Any + Send + Sync>,
    pub ty: ExprType,
    /// An aggregate: its argument is all rows of a group, as [`cohort_expr::AggregateKind::Rows`] has them.
    pub is_aggregate: bool,
    /// The parameters.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a stored function or procedure.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    /// The declared type. `None` for rows, and for types that refer to columns.
    pub declared: Option<DataType>,
}

impl Parameter {
    /// Returns whether the parameter receives a hexadecimal literal as a number, and its type.
    pub fn numeric_kind(&self) -> Option<TypeKind> {
        match self.declared.as_ref()?.kind {
            DeclaredKind::Column(kind) => Some(kind).filter(|kind| takes_hex_as_number(*kind)),
            DeclaredKind::Signed | DeclaredKind::Unsigned => None,
        }
    }

    /// Returns error 4078 for a row as the argument of a scalar parameter.
    pub fn refuse_row(&self) -> SqlResult<()> {
        let Some(declared) = &self.declared else { return Ok(()) };
        let ty = column_type(declared, "", Collation::UTF8MB4_GENERAL_CI)?;
        Err(SqlError::row_in_assignment(ty.type_name(), &self.name))
    }
}

/// The session, the catalog and the account's privileges, as binding sees them.
pub trait Names {
    /// Returns the session's settings.
    fn env(&self) -> &SessionEnv;

    /// Returns the session's variables.
    fn hooks(&self) -> &dyn SessionHooks;

    /// Returns a function that runs statements, of a schema or of the current one. Returns `None` if there is
    /// no such function, or if no expression may call one: in expressions of a table.
    fn function(
        &self,
        schema: Option<&str>,
        name: &str,
        args: &[ast::Expr],
    ) -> SqlResult<Option<CalledFunction>> {
        let _ = (schema, name, args);
        Ok(None)
    }

    /// Returns a function that reads the local variable of parameter `index`, if a call that was bound before
    /// may have assigned it: its parameter is OUT or INOUT.
    fn changed_variable(&self, index: usize) -> Option<Arc<dyn Any + Send + Sync>> {
        let _ = index;
        None
    }

    /// Returns the current database.
    fn current_schema(&self) -> Option<&str>;

    /// Returns the current type of a user variable.
    fn user_variable_type(&self, name: &str) -> Option<ExprType>;

    /// Fails if the statement was killed or timed out.
    fn check_interrupt(&self) -> SqlResult<()>;

    /// Adds a warning that is repeated at each execution of the plan.
    fn warn(&self, code: ErrorCode, text: String);

    /// Returns a virtual table for reading. Error 1142 without the privilege.
    fn virtual_table(&self, schema: &str, name: &str) -> SqlResult<Option<Arc<dyn VirtualDefinition>>>;

    /// Returns a base table, after checking the required privileges. Error 1142 without them, 1146 if it does
    /// not exist.
    fn base_table(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<Arc<Table>>;

    /// Returns the type of a column declaration, with the connection's collation if none was written.
    fn declared_type(&self, declared: &DataType, column: &str) -> SqlResult<ColumnType>;

    /// Checks a sequence that an expression names. Returns true if temporary ones of the session must be
    /// ignored. Error 4089 if it is not a sequence, 4091 if it does not exist.
    fn sequence(&self, schema: &str, name: &str, operation: SequenceOperation) -> SqlResult<bool>;

    /// Returns a view, after checking the required privileges. Error 1142 without them.
    fn view(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<Option<Arc<View>>>;

    /// Switches to the privileges with which the view's query runs, until [`Names::leave_view`]. Error 1462
    /// if a view contains itself.
    fn enter_view(&self, view: &Arc<View>) -> SqlResult<()>;

    /// Returns the account, or role with an empty host, with which the enclosing view runs. Returns `None`
    /// for the session's own account.
    fn definer(&self) -> Option<AccountName>;

    /// Switches back after the query of the view entered last is bound.
    fn leave_view(&self);

    /// Checks the privilege on a column of a view. Error 1143.
    fn use_view_column(&self, view: &Arc<View>, column: &str, how: Privilege) -> SqlResult<()>;

    /// Checks and records the use of a virtual table's column. Error 1143.
    fn use_virtual_column(
        &self,
        table: &dyn VirtualDefinition,
        column: &str,
        how: Privilege,
    ) -> SqlResult<()>;

    /// Checks the privilege on a column. Error 1143.
    fn use_column(&self, table: &Arc<Table>, column: &str, how: Privilege) -> SqlResult<()>;

    /// Returns error 1142.
    fn table_access_denied(&self, command: &str, schema: &str, table: &str) -> SqlError;
}

/// A column of a virtual table.
#[derive(Clone, Debug)]
pub struct VirtualColumn {
    pub name: &'static str,
    pub ty: ColumnType,
    pub nullable: bool,
}

/// Name and columns of a virtual table.
pub trait VirtualDefinition: Send + Sync {
    /// Returns the schema: `information_schema`.
    fn schema(&self) -> &'static str;

    /// Returns the name as MariaDB spells it (upper case in information_schema). Lookups ignore case.
    fn name(&self) -> &'static str;

    /// Returns the columns in order.
    fn columns(&self) -> &[VirtualColumn];

    /// Returns whether the table is a view in MariaDB.
    fn is_view(&self) -> bool {
        false
    }
}
