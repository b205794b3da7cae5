//! Tables that the server computes: information_schema, the logs and accounts of the schema mysql.

use std::sync::Arc;

use cohort_sql::print::quoted_name;
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

    /// Whether lists of tables name it.
    fn is_listed(&self) -> bool {
        true
    }

    /// SHOW CREATE TABLE.
    fn create_text(&self) -> String {
        let column = |column: &VirtualColumn| {
            let null = if column.nullable { "" } else { " NOT NULL" };
            format!("  {} {}{null}", quoted_name(column.name), column.ty.sql_text())
        };
        let columns: Vec<String> = self.columns().iter().map(column).collect();
        let (engine, option) = match self.columns().iter().any(|column| column.ty.kind.is_blob()) {
            true => ("Aria", " PAGE_CHECKSUM=0"),
            false => ("MEMORY", ""),
        };
        format!(
            "CREATE TEMPORARY TABLE {} (\n{}\n) ENGINE={engine} DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci{option}",
            quoted_name(self.name()),
            columns.join(",\n")
        )
    }

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

    /// Whether a schema consists of virtual tables alone.
    pub fn has_schema(&self, schema: &str) -> bool {
        schema.eq_ignore_ascii_case("information_schema")
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<dyn VirtualTable>] {
        &self.tables
    }
}
