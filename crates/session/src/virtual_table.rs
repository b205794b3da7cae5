//! Tables that the server computes: information_schema, the logs and accounts of the schema mysql.

use std::cmp::Ordering;
use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{CompareHow, CompareOp, EvalContext, Expr};
pub use cohort_plan::{VirtualColumn, VirtualDefinition};
use cohort_sql::print::quoted_name;
use cohort_types::{Collation, SqlResult, Value};

use crate::session_state::SessionState;
use crate::statement::StatementContext;

/// A table whose rows are made when it is read.
pub trait VirtualTable: VirtualDefinition {
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

    /// All rows, a value per column; what the session may not see is left out, and what is not wanted may be.
    fn rows(&self, wanted: &WantedNames, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>>;

    /// Where the columns of schemas and tables stand by whose names rows are looked up.
    fn names_at(&self) -> [Option<usize>; 2] {
        let place = |name: &str| self.columns().iter().position(|column| column.name == name);
        [place("TABLE_SCHEMA").or_else(|| place("SCHEMA_NAME")), place("TABLE_NAME")]
    }
}

/// What the condition says of TABLE_SCHEMA and TABLE_NAME: with ten thousand tables it matters that rows of
/// the others are not made.
#[derive(Clone, Debug, Default)]
pub struct WantedNames {
    schema: Option<Vec<u8>>,
    table: Option<Vec<u8>>,
    /// A temporary table of this name stands for the one that it hides.
    with_temporary: bool,
}

impl WantedNames {
    /// Of one table that SHOW is about.
    pub fn shown(schema: &str, table: &str) -> WantedNames {
        WantedNames { with_temporary: true, ..WantedNames::of(schema, Some(table)) }
    }

    /// The temporary table that is wanted in place of others.
    pub fn temporary(&self, session: &SessionState) -> Option<Arc<Table>> {
        let (Some(schema), Some(table), true) = (&self.schema, &self.table, self.with_temporary) else {
            return None;
        };
        session.temporary.find(std::str::from_utf8(schema).ok()?, std::str::from_utf8(table).ok()?)
    }

    /// Of one schema, and maybe of one table.
    pub fn of(schema: &str, table: Option<&str>) -> WantedNames {
        WantedNames { schema: Some(schema.into()), table: table.map(Into::into), with_temporary: false }
    }

    /// What a condition asks of the columns at `names_at`.
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

    /// Whether a stored table has the name.
    pub fn has_table(&self, name: &str) -> bool {
        self.table.as_ref().is_none_or(|wanted| wanted == name.as_bytes())
    }

    /// Drops the rows of other schemas and tables. A name that is looked up is the name as it is spelled,
    /// whatever the column's collation says.
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

/// The collation of the columns.
const NAMES: Collation = Collation::UTF8MB3_GENERAL_CI;

/// Whether a name, or one within a schema, is the wanted one. Those of information_schema have no case.
fn is_wanted(wanted: &Option<Vec<u8>>, schema: &str, name: &str) -> bool {
    wanted.as_ref().is_none_or(|wanted| match schema.eq_ignore_ascii_case("information_schema") {
        true => NAMES.compare(wanted, name.as_bytes()) == Ordering::Equal,
        false => wanted == name.as_bytes(),
    })
}

/// `column = text` in the columns' own collation: the column's slot, and the text.
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
        is_own &= !matches!(node, Expr::Subquery(_) | Expr::Outer(_));
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
        self.virtual_schema(schema).is_some()
    }

    /// The name of a schema that consists of virtual tables alone, as it is spelled.
    pub fn virtual_schema(&self, schema: &str) -> Option<&'static str> {
        ["information_schema", "performance_schema"]
            .into_iter()
            .find(|name| schema.eq_ignore_ascii_case(name))
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<dyn VirtualTable>] {
        &self.tables
    }
}
