//! A table of information_schema. Its rows are computed when they are read.

use std::collections::HashMap;

use cohort_session::access::check_global;
use cohort_session::{StatementContext, VirtualColumn, VirtualDefinition, VirtualTable, WantedNames};
use cohort_types::{Privilege, SqlResult, Value};

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

impl SchemaTable {
    /// Creates a table without columns.
    pub(super) fn new(name: &'static str, rows: RowsOf) -> SchemaTable {
        SchemaTable { name, columns: Vec::new(), places: HashMap::new(), rows }
    }

    /// Appends a column.
    pub(super) fn push(&mut self, column: VirtualColumn) {
        self.places.insert(column.name, self.columns.len());
        self.columns.push(column);
    }

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

/// The only table of InnoDB that needs no privilege.
const FOR_EVERYBODY: &str = "INNODB_FT_DEFAULT_STOPWORD";

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
        if self.name.starts_with("INNODB_") && self.name != FOR_EVERYBODY {
            check_global(ctx.session, Privilege::Process)?;
        }
        (self.rows)(self, wanted, ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::super::information_schema::{TABLES, table};

    #[test]
    fn recorded_columns_are_understood() {
        assert!(TABLES.len() > 20);
        let tables = table("TABLES");
        assert_eq!(tables.place("TABLE_NAME"), 2);
        assert_eq!(tables.column(2).ty.sql_text(), "varchar(64)");
        assert_eq!(table("PROCESSLIST").columns[8].ty.sql_text(), "decimal(22,3)");
    }
}
