//! Tables that the server computes: information_schema.

use std::sync::Arc;

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

/// All virtual tables of a server.
#[derive(Default)]
pub struct VirtualTables {
    tables: Vec<Arc<dyn VirtualTable>>,
}

impl VirtualTables {
    /// These tables.
    pub fn new(tables: Vec<Arc<dyn VirtualTable>>) -> VirtualTables {
        VirtualTables { tables }
    }

    /// A table by name, in any case.
    pub fn find(&self, schema: &str, name: &str) -> Option<&Arc<dyn VirtualTable>> {
        self.tables
            .iter()
            .find(|t| t.schema().eq_ignore_ascii_case(schema) && t.name().eq_ignore_ascii_case(name))
    }

    /// Whether a schema consists of virtual tables.
    pub fn has_schema(&self, schema: &str) -> bool {
        schema.eq_ignore_ascii_case("information_schema")
            || self.tables.iter().any(|t| t.schema().eq_ignore_ascii_case(schema))
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<dyn VirtualTable>] {
        &self.tables
    }
}
