//! Tables of information_schema: columns as recorded from MariaDB 10.11, followed by those of COHORT tables.
//! Rows are computed when they are read.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cohort_session::{
    StatementContext, VirtualColumn, VirtualDefinition, VirtualTable, VirtualTables, WantedNames,
};
use cohort_types::{Collation, SqlResult, Value};

use super::recorded_type::column_type;

/// `[TABLE]`, followed by a line per column with tab-separated fields: name, type, and `null` if nullable.
const COLUMNS: &str = include_str!("information_schema.txt");

/// A function that computes a table's rows.
pub(super) type RowsOf =
    fn(&SchemaTable, &WantedNames, &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>>;

/// A table of information_schema.
pub(super) struct SchemaTable {
    name: &'static str,
    columns: Vec<VirtualColumn>,
    places: HashMap<&'static str, usize>,
    rows: RowsOf,
}

static TABLES: LazyLock<Vec<Arc<SchemaTable>>> = LazyLock::new(|| {
    let mut tables: Vec<SchemaTable> = Vec::new();
    for line in COLUMNS.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            let rows = super::rows::rows_of(name);
            tables.push(SchemaTable { name, columns: Vec::new(), places: HashMap::new(), rows });
            continue;
        }
        let table = tables.last_mut().expect("a table's name comes before its columns");
        let mut fields = line.split('\t');
        let name = fields.next().expect("split yields at least one");
        let ty = column_type(fields.next().unwrap_or_default(), Collation::UTF8MB3_GENERAL_CI);
        let nullable = fields.next() == Some("null");
        table.places.insert(name, table.columns.len());
        table.columns.push(VirtualColumn { name, ty, nullable });
    }
    tables.into_iter().map(Arc::new).collect()
});

/// Returns the tables of information_schema and the virtual tables of the other schemas.
pub fn information_schema() -> VirtualTables {
    let tables = TABLES.iter().map(|t| t.clone() as Arc<dyn VirtualTable>);
    let others = super::log_tables::log_tables()
        .into_iter()
        .chain([super::user_table::user_table(), super::global_priv::global_priv()])
        .chain([super::position_table::position_table()]);
    VirtualTables::new(tables.chain(others).chain(super::server_tables::server_tables()).collect())
}

/// Returns a table by its name.
pub(super) fn table(name: &str) -> &'static Arc<SchemaTable> {
    TABLES.iter().find(|t| t.name == name).expect("the callers name recorded tables")
}

impl SchemaTable {
    /// Returns a row with these cells. The other cells are NULL.
    pub(super) fn row<const N: usize>(&self, cells: [(&str, Value); N]) -> Vec<Value> {
        let mut row = vec![Value::Null; self.columns.len()];
        for (name, value) in cells {
            row[self.place(name)] = value;
        }
        row
    }

    /// Returns a row of default values: NULL, or the zero value of the type.
    pub(super) fn zeros(&self) -> Vec<Value> {
        let zero = |column: &VirtualColumn| match column.nullable {
            true => Value::Null,
            false => column.ty.implicit_default(),
        };
        self.columns.iter().map(zero).collect()
    }

    /// Returns the value of an ENUM column.
    pub(super) fn member(&self, column: &str, word: &str) -> Value {
        let ty = &self.columns[self.place(column)].ty;
        let place = ty.members.iter().position(|member| member == word).expect("the word was recorded");
        ty.enum_value(place as u16 + 1).unwrap_or(Value::Null)
    }

    /// Returns the table's name for SHOW COLUMNS.
    pub(super) fn shown_as(&self) -> &'static str {
        self.name
    }

    /// Returns the position of a column.
    pub(super) fn place(&self, name: &str) -> usize {
        *self.places.get(name).unwrap_or_else(|| panic!("{}.{name} was recorded", self.name))
    }

    pub(super) fn column(&self, place: usize) -> &VirtualColumn {
        &self.columns[place]
    }
}

impl VirtualDefinition for SchemaTable {
    fn schema(&self) -> &'static str {
        "information_schema"
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[VirtualColumn] {
        &self.columns
    }
}

impl VirtualTable for SchemaTable {
    fn rows(&self, wanted: &WantedNames, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        (self.rows)(self, wanted, ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_columns_are_understood() {
        assert!(TABLES.len() > 20);
        let tables = table("TABLES");
        assert_eq!(tables.place("TABLE_NAME"), 2);
        assert_eq!(tables.column(2).ty.sql_text(), "varchar(64)");
        assert_eq!(table("PROCESSLIST").columns[8].ty.sql_text(), "decimal(22,3)");
    }
}
