//! Virtual tables: tables that the server computes, such as information_schema and the logs and accounts in
//! the schema mysql.

use std::cmp::Ordering;
use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{CompareHow, CompareOp, EvalContext, Expr};
pub use cohort_plan::{VirtualColumn, VirtualDefinition};
use cohort_sql::print::quoted_name;
use cohort_types::{Collation, SqlResult, Value};

use crate::session_state::SessionState;
use crate::statement::StatementContext;

/// How long a stored table replaces a virtual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaceable {
    Never,
    UntilFlushPrivileges,
    UntilDropped,
}

/// A table whose rows are computed when it is read.
pub trait VirtualTable: VirtualDefinition {
    /// Returns whether lists of tables include it.
    fn is_listed(&self) -> bool {
        true
    }

    /// Returns whether a stored table of this name may replace the table, as when a dump of MariaDB is
    /// loaded.
    fn replaceable(&self) -> Replaceable {
        Replaceable::Never
    }

    /// Returns the text of SHOW CREATE TABLE.
    fn create_text(&self) -> String {
        default_create_text(self)
    }

    /// Returns the rows, with a value for each column. Rows that the session may not see are left out. Rows
    /// that are not wanted may be left out.
    fn rows(&self, wanted: &WantedNames, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>>;

    /// Returns the positions of the columns with schema and table names, by which rows are looked up.
    fn names_at(&self) -> [Option<usize>; 2] {
        let place = |name: &&str| self.columns().iter().position(|column| column.name == *name);
        [SCHEMA_COLUMNS.iter().find_map(place), TABLE_COLUMNS.iter().find_map(place)]
    }
}

/// Returns the text of SHOW CREATE TABLE as MariaDB shows it for information_schema.
pub fn default_create_text(table: &(impl VirtualDefinition + ?Sized)) -> String {
    let column = |column: &VirtualColumn| {
        let null = if column.nullable { "" } else { " NOT NULL" };
        format!("  {} {}{null}", quoted_name(column.name), column.ty.sql_text())
    };
    let columns: Vec<String> = table.columns().iter().map(column).collect();
    let (engine, option) = match table.columns().iter().any(|column| column.ty.kind.is_blob()) {
        true => ("Aria", " PAGE_CHECKSUM=0"),
        false => ("MEMORY", ""),
    };
    format!(
        "CREATE TEMPORARY TABLE {} (\n{}\n) ENGINE={engine} DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci{option}",
        quoted_name(table.name()),
        columns.join(",\n")
    )
}

/// Columns whose names MariaDB compares exactly, because it looks up the objects by them.
const SCHEMA_COLUMNS: [&str; 5] =
    ["TABLE_SCHEMA", "SCHEMA_NAME", "EVENT_OBJECT_SCHEMA", "ROUTINE_SCHEMA", "SPECIFIC_SCHEMA"];
const TABLE_COLUMNS: [&str; 2] = ["TABLE_NAME", "EVENT_OBJECT_TABLE"];

/// The schema and table names to which a condition restricts TABLE_SCHEMA and TABLE_NAME. With ten thousand
/// tables it matters that the other rows are not computed.
#[derive(Clone, Debug, Default)]
pub struct WantedNames {
    schema: Option<Vec<u8>>,
    table: Option<Vec<u8>>,
    /// A temporary table of this name replaces the table that it hides.
    with_temporary: bool,
}

impl WantedNames {
    /// Selects the one table that a SHOW statement names.
    pub fn shown(schema: &str, table: &str) -> WantedNames {
        WantedNames { with_temporary: true, ..WantedNames::of(schema, Some(table)) }
    }

    /// Returns whether a SHOW statement names the table.
    pub fn is_shown(&self) -> bool {
        self.with_temporary
    }

    /// Returns the temporary table that is wanted in place of others.
    pub fn temporary(&self, session: &SessionState) -> Option<Arc<Table>> {
        let (Some(schema), Some(table), true) = (&self.schema, &self.table, self.with_temporary) else {
            return None;
        };
        session.temporary.find(std::str::from_utf8(schema).ok()?, std::str::from_utf8(table).ok()?)
    }

    /// Selects one schema, optionally one table in it.
    pub fn of(schema: &str, table: Option<&str>) -> WantedNames {
        WantedNames { schema: Some(schema.into()), table: table.map(Into::into), with_temporary: false }
    }

    /// Extracts the names that a condition requires of the columns at `names_at`.
    pub fn asked(
        names_at: [Option<usize>; 2],
        condition: &Option<Expr>,
        ctx: &EvalContext<'_>,
    ) -> SqlResult<WantedNames> {
        let [schema_at, table_at] = names_at;
        let mut wanted = WantedNames::default();
        if let Some(condition) = condition {
            let parts = match condition {
                Expr::And(parts) => parts.as_slice(),
                single => std::slice::from_ref(single),
            };
            for part in parts {
                let Some((at, name)) = equal_text(part, ctx)? else { continue };
                if Some(at) == schema_at {
                    wanted.schema = Some(name);
                } else if Some(at) == table_at {
                    wanted.table = Some(name);
                }
            }
        }
        Ok(wanted)
    }

    pub fn has(&self, schema: &str, table: &str) -> bool {
        self.has_schema(schema) && is_wanted(&self.table, schema, table)
    }

    pub fn has_schema(&self, name: &str) -> bool {
        is_wanted(&self.schema, name, name)
    }

    /// Returns whether the name matches, for stored tables.
    pub fn has_table(&self, name: &str) -> bool {
        self.table.as_ref().is_none_or(|wanted| wanted == name.as_bytes())
    }

    /// Removes the rows of other schemas and tables. Names are compared as they are spelled, regardless of
    /// the column's collation.
    pub fn retain(&self, names_at: [Option<usize>; 2], rows: &mut Vec<Vec<Value>>) {
        let name_in = |row: &[Value], at: usize| match &row[at] {
            Value::Str(name) => std::str::from_utf8(&name.bytes).ok().map(str::to_owned),
            _ => None,
        };
        for (at, wanted) in names_at.into_iter().zip([&self.schema, &self.table]) {
            if let (Some(at), Some(_)) = (at, wanted) {
                rows.retain(|row| {
                    let schema = names_at[0].and_then(|at| name_in(row, at)).unwrap_or_default();
                    name_in(row, at).is_none_or(|name| is_wanted(wanted, &schema, &name))
                });
            }
        }
    }
}

/// The collation of the name columns.
const NAMES: Collation = Collation::UTF8MB3_GENERAL_CI;

/// Returns whether a name, in the given schema, is the wanted one. Names in information_schema are
/// case-insensitive.
fn is_wanted(wanted: &Option<Vec<u8>>, schema: &str, name: &str) -> bool {
    wanted.as_ref().is_none_or(|wanted| match schema.eq_ignore_ascii_case("information_schema") {
        true => NAMES.compare(wanted, name.as_bytes()) == Ordering::Equal,
        false => wanted == name.as_bytes(),
    })
}

/// Returns the column's slot and the text of a condition `column = text` in the column's own collation.
fn equal_text(condition: &Expr, ctx: &EvalContext<'_>) -> SqlResult<Option<(usize, Vec<u8>)>> {
    let Expr::Compare(compare) = condition else { return Ok(None) };
    let own = matches!(&compare.how, CompareHow::Scalar { collation, class: None } if *collation == NAMES);
    if compare.op != CompareOp::Eq || !own {
        return Ok(None);
    }
    let (column, other) = match (&compare.left, &compare.right) {
        (Expr::Column(column), other) | (other, Expr::Column(column)) => (column, other),
        _ => return Ok(None),
    };
    let mut is_own = other.is_const_per_execution();
    other.walk(&mut |node| {
        is_own &= !matches!(node, Expr::Subquery(_) | Expr::CallBack(_) | Expr::Outer(_));
        is_own
    });
    if !is_own {
        return Ok(None);
    }
    Ok(match &*other.eval(&[], ctx)? {
        Value::Str(text) => Some((column.ordinal, text.bytes.clone())),
        _ => None,
    })
}

/// All virtual tables of a server.
#[derive(Default)]
pub struct VirtualTables {
    tables: Vec<Arc<dyn VirtualTable>>,
}

impl VirtualTables {
    /// Creates the list from these tables.
    pub fn new(tables: Vec<Arc<dyn VirtualTable>>) -> VirtualTables {
        VirtualTables { tables }
    }

    /// Finds a table by name, ignoring case.
    pub fn find(&self, schema: &str, name: &str) -> Option<&Arc<dyn VirtualTable>> {
        self.tables
            .iter()
            .find(|t| t.schema().eq_ignore_ascii_case(schema) && t.name().eq_ignore_ascii_case(name))
    }

    /// Returns whether a schema consists only of virtual tables.
    pub fn has_schema(&self, schema: &str) -> bool {
        self.virtual_schema(schema).is_some()
    }

    /// Returns the canonical spelling of a schema that consists only of virtual tables.
    pub fn virtual_schema(&self, schema: &str) -> Option<&'static str> {
        ["information_schema", "performance_schema"]
            .into_iter()
            .find(|name| schema.eq_ignore_ascii_case(name))
    }

    /// Returns all virtual tables.
    pub fn all(&self) -> &[Arc<dyn VirtualTable>] {
        &self.tables
    }
}
