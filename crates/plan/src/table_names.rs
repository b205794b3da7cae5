//! [`TableNames`]: names for a table's own expressions. The value of a generated column, or the result of a
//! CHECK, must not depend on the session that writes the row.

use std::sync::Arc;

use cohort_catalog::{AccountName, Table, View};
use cohort_expr::{ExprType, SessionEnv, SessionHooks};
use cohort_sql::ast::{DataType, SequenceOperation};
use cohort_types::{Collation, ColumnType, ErrorCode, Privilege, Privileges, SqlError, SqlResult};

use crate::names::{Names, VirtualDefinition};

/// A session's names, with default values for the settings that determine the types of expressions. Texts
/// have the table's collation.
pub struct TableNames<'n> {
    session: &'n dyn Names,
    env: SessionEnv,
}

impl<'n> TableNames<'n> {
    /// Wraps the names of a session, for a table of this collation.
    pub fn new(session: &'n dyn Names, collation_connection: Collation) -> TableNames<'n> {
        let defaults = SessionEnv::new(0);
        let env = SessionEnv {
            div_precision_increment: defaults.div_precision_increment,
            default_week_format: defaults.default_week_format,
            collation_connection,
            ..session.env().clone()
        };
        TableNames { session, env }
    }
}

impl Names for TableNames<'_> {
    fn env(&self) -> &SessionEnv {
        &self.env
    }

    fn hooks(&self) -> &dyn SessionHooks {
        self.session.hooks()
    }

    fn current_schema(&self) -> Option<&str> {
        self.session.current_schema()
    }

    fn user_variable_type(&self, name: &str) -> Option<ExprType> {
        self.session.user_variable_type(name)
    }

    fn check_interrupt(&self) -> SqlResult<()> {
        self.session.check_interrupt()
    }

    fn warn(&self, code: ErrorCode, text: String) {
        self.session.warn(code, text);
    }

    fn virtual_table(&self, schema: &str, name: &str) -> SqlResult<Option<Arc<dyn VirtualDefinition>>> {
        self.session.virtual_table(schema, name)
    }

    fn base_table(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<Arc<Table>> {
        self.session.base_table(schema, name, wanted)
    }

    fn declared_type(&self, declared: &DataType, column: &str) -> SqlResult<ColumnType> {
        self.session.declared_type(declared, column)
    }

    fn sequence(&self, schema: &str, name: &str, operation: SequenceOperation) -> SqlResult<bool> {
        self.session.sequence(schema, name, operation)
    }

    fn use_virtual_column(
        &self,
        table: &dyn VirtualDefinition,
        column: &str,
        how: Privilege,
    ) -> SqlResult<()> {
        self.session.use_virtual_column(table, column, how)
    }

    fn definer(&self) -> Option<AccountName> {
        self.session.definer()
    }

    fn view(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<Option<Arc<View>>> {
        self.session.view(schema, name, wanted)
    }

    fn enter_view(&self, view: &Arc<View>) -> SqlResult<()> {
        self.session.enter_view(view)
    }

    fn leave_view(&self) {
        self.session.leave_view();
    }

    fn use_view_column(&self, view: &Arc<View>, column: &str, how: Privilege) -> SqlResult<()> {
        self.session.use_view_column(view, column, how)
    }

    fn use_column(&self, table: &Arc<Table>, column: &str, how: Privilege) -> SqlResult<()> {
        self.session.use_column(table, column, how)
    }

    fn table_access_denied(&self, command: &str, schema: &str, table: &str) -> SqlError {
        self.session.table_access_denied(command, schema, table)
    }
}
