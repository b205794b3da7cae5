//! The tables that names may mean.

use std::cell::RefCell;
use std::sync::Arc;

use cohort_catalog::{Catalog, Table};
use cohort_expr::ExprType;
use cohort_sql::ast;
use cohort_types::{SqlResult, Value};

use crate::session::SessionState;
use crate::virtual_table::VirtualTable;

/// What planning reads.
pub struct PlanContext<'p> {
    pub catalog: &'p Arc<Catalog>,
    pub session: &'p SessionState,
    /// The literals lifted out of the text, or the values bound to `?`; their types decide how they compare.
    pub params: &'p [Value],
    /// Ordinals of literals whose value the plan depends on.
    pub pins: RefCell<Vec<u32>>,
}

/// Where a table's rows come from.
#[derive(Clone)]
pub enum Relation {
    Base(Arc<Table>),
    /// Computed by the server.
    Virtual(Arc<dyn VirtualTable>),
    /// A subquery in FROM; the number is the planner's.
    Derived(usize),
}

/// A table of the scope.
#[derive(Clone)]
pub struct ScopeTable {
    pub relation: Relation,
    /// Schema of the table; none for derived ones.
    pub schema: Option<String>,
    /// Alias, or else the name.
    pub name: String,
    /// Name and type of each column; the type is nullable on the inner side of an outer join.
    pub columns: Vec<(String, ExprType)>,
    /// Slot of the first column.
    pub first_slot: usize,
}

/// The tables in scope, in the order of FROM.
#[derive(Clone, Default)]
pub struct Scope {
    pub tables: Vec<ScopeTable>,
}

impl PlanContext<'_> {
    /// The base table of a name: errors 1046 without a current database, 1146 when there is none.
    pub fn base_table(&self, name: &ast::ObjectName) -> SqlResult<Arc<Table>> {
        let _ = name;
        todo!()
    }
}

impl Scope {
    /// A scope of one base table.
    pub fn of_table(table: Arc<Table>, alias: Option<&str>) -> Scope {
        let _ = (table, alias);
        todo!()
    }

    /// The slot and type of a column; 1054 or 1052 with the clause's name.
    pub fn column(&self, name: &ast::ColumnRef, clause: &str) -> SqlResult<(usize, ExprType)> {
        let _ = (name, clause);
        todo!()
    }
}
