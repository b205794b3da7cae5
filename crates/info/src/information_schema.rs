//! The tables of information_schema: columns as recorded from MariaDB 10.11, followed by those of COHORT
//! tables.

use super::recorded_type::column_type;
use cohort_session::{VirtualColumn, VirtualTable, VirtualTables};
use cohort_types::Collation;
use std::sync::{Arc, LazyLock};

use super::rows::rows_of;
use super::schema_table::SchemaTable;
use super::{global_priv, log_tables, position_table, server_tables, user_table};

/// `[TABLE]`, followed by a line per column with tab-separated fields: name, type, and `null` if nullable.
const COLUMNS: &str = include_str!("information_schema.txt");

pub(super) static TABLES: LazyLock<Vec<Arc<SchemaTable>>> = LazyLock::new(|| {
    let mut tables: Vec<SchemaTable> = Vec::new();
    for line in COLUMNS.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            let rows = rows_of(name);
            tables.push(SchemaTable::new(name, rows));
            continue;
        }
        let table = tables.last_mut().expect("a table's name comes before its columns");
        let mut fields = line.split('\t');
        let name = fields.next().expect("split yields at least one");
        let ty = column_type(fields.next().unwrap_or_default(), Collation::UTF8MB3_GENERAL_CI);
        let nullable = fields.next() == Some("null");
        table.push(VirtualColumn { name, ty, nullable });
    }
    tables.into_iter().map(Arc::new).collect()
});

/// Returns the tables of information_schema and the virtual tables of the other schemas.
pub fn information_schema() -> VirtualTables {
    let tables = TABLES.iter().map(|t| t.clone() as Arc<dyn VirtualTable>);
    let others = log_tables::log_tables()
        .into_iter()
        .chain([user_table::user_table(), global_priv::global_priv()])
        .chain([position_table::position_table()]);
    VirtualTables::new(tables.chain(others).chain(server_tables::server_tables()).collect())
}

/// Returns a table by its name.
pub(super) fn table(name: &str) -> &'static Arc<SchemaTable> {
    TABLES.iter().find(|t| t.shown_as() == name).expect("the callers name recorded tables")
}
