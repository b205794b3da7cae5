//! What binding asks of this session: catalog, privileges, variables.

use std::sync::Arc;

use cohort_catalog::{Catalog, Table};
use cohort_expr::{ExprType, SessionEnv, SessionHooks};
use cohort_optimize::Statistics;
use cohort_plan::{Names, VirtualDefinition};
use cohort_types::{ErrorCode, Privilege, Privileges, SqlError, SqlResult};

use crate::access::{Needs, TableNeed, check_table};
use crate::session_state::SessionState;

/// A session and a version of the catalog; notes what the statement needs of the tables that it names.
pub struct SessionNames<'n> {
    catalog: &'n Arc<Catalog>,
    session: &'n SessionState,
    needs: Needs,
}

impl<'n> SessionNames<'n> {
    /// Nothing is needed yet.
    pub fn new(catalog: &'n Arc<Catalog>, session: &'n SessionState) -> SessionNames<'n> {
        SessionNames { catalog, session, needs: Needs::default() }
    }

    /// What the statement needs.
    pub(crate) fn take_needs(&self) -> Vec<TableNeed> {
        self.needs.take()
    }
}

impl Names for SessionNames<'_> {
    fn env(&self) -> &SessionEnv {
        &self.session.env
    }

    fn hooks(&self) -> &dyn SessionHooks {
        self.session
    }

    fn current_schema(&self) -> Option<&str> {
        self.session.current_schema.as_deref()
    }

    fn user_variable_type(&self, name: &str) -> Option<ExprType> {
        self.session.user_variable_type(name)
    }

    fn check_interrupt(&self) -> SqlResult<()> {
        self.session.check_interrupt()
    }

    fn warn(&self, code: ErrorCode, text: String) {
        self.session.warn_planning(code, text);
    }

    fn virtual_table(&self, schema: &str, name: &str) -> SqlResult<Option<Arc<dyn VirtualDefinition>>> {
        let Some(found) = self.session.db.virtual_tables.find(schema, name) else { return Ok(None) };
        check_table(self.session, Privilege::Select, found.schema(), found.name())?;
        Ok(Some(found.clone()))
    }

    fn base_table(&self, schema: &str, name: &str, wanted: Privileges) -> SqlResult<Arc<Table>> {
        check_table(self.session, wanted, schema, name)?;
        let found = self.catalog.table(schema, name).cloned();
        let table = found.ok_or_else(|| SqlError::no_such_table(schema, name))?;
        self.needs.want(&table, wanted);
        Ok(table)
    }

    fn use_column(&self, table: &Arc<Table>, ordinal: usize, how: Privilege) -> SqlResult<()> {
        self.needs.use_column(self.session, table, ordinal, how)
    }

    fn table_access_denied(&self, command: &str, schema: &str, table: &str) -> SqlError {
        self.session.table_access_denied(command, schema, table)
    }
}

impl Statistics for SessionState {
    fn entries(&self, table: &Table) -> u64 {
        let engines = &self.db.engines;
        let engine =
            engines.iter().find(|e| e.name().eq_ignore_ascii_case(&table.engine)).or(engines.first());
        engine.map_or(1000, |e| e.stats(table.clustered().id).entries)
    }
}
