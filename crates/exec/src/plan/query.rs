//! Plans of queries: immutable, shared by sessions, run with other parameters each time.
//!
//! # Rows
//! The tables of a SELECT share one wide row: table n of FROM has the slots from `Source::first_slot` on, one
//! per column. A join fills it table by table; columns that nobody reads stay NULL. Behind the last slot
//! come, for a grouped SELECT, the results of its aggregates.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{Aggregate, Expr, ExprType, SortKey};
use cohort_protocol::ColumnMeta;
use cohort_types::Collation;

use crate::table::{Access, Columns, ReadMode, Spans};
use crate::virtual_table::VirtualTable;

/// A query.
pub struct QueryPlan {
    pub body: PlanBody,
    /// ORDER BY of a set operation or of VALUES; a SELECT sorts itself. Expressions over the result's
    /// columns.
    pub sort: Vec<SortItem>,
    pub limit: LimitPlan,
    /// The result's columns.
    pub columns: Vec<ColumnMeta>,
    pub types: Vec<ExprType>,
    /// INTO @a, @b.
    pub into: Vec<String>,
}

/// What yields the rows.
pub enum PlanBody {
    Select(Box<SelectPlan>),
    Set(Box<SetPlan>),
    Values(Vec<Vec<Expr>>),
    /// A query in parentheses with its own order and limit.
    Nested(Box<QueryPlan>),
}

/// A chain of UNION, of EXCEPT or of INTERSECT.
pub struct SetPlan {
    pub op: cohort_sql::ast::SetOperator,
    /// From left to right, at least two.
    pub operands: Vec<QueryPlan>,
    /// The first so many yield no row twice: all up to the last DISTINCT.
    pub distinct: usize,
    /// By which columns compare.
    pub collations: Vec<Collation>,
}

/// LIMIT and OFFSET, unsigned constants of the execution.
#[derive(Default)]
pub struct LimitPlan {
    pub count: Option<Expr>,
    pub offset: Option<Expr>,
}

/// A sort key.
pub struct SortItem {
    pub value: SortValue,
    pub key: SortKey,
}

/// What a sort key is.
pub enum SortValue {
    /// A column of the result.
    Item(usize),
    /// An expression over the row before the projection.
    Expr(Expr),
}

/// One SELECT.
pub struct SelectPlan {
    /// In the order in which they are joined; none without FROM.
    pub steps: Vec<Step>,
    /// Slots of all tables.
    pub width: usize,
    /// Conditions that read no table: when one fails there are no rows.
    pub constant_filter: Option<Expr>,
    pub group: Option<GroupPlan>,
    pub having: Option<Expr>,
    pub items: Vec<Expr>,
    /// The items are different columns, none of which needs conversion: values can be moved out of the row.
    pub items_move: bool,
    pub distinct: bool,
    pub sort: Vec<SortItem>,
    pub read: ReadMode,
    /// SQL_CALC_FOUND_ROWS.
    pub count_all: bool,
}

impl SelectPlan {
    /// Whether any of its tables is read as a whole.
    pub(crate) fn reads_whole_table(&self) -> bool {
        self.steps.iter().any(|step| match &step.method {
            Method::Scan(access) | Method::Buffer { access: Some(access), .. } => {
                matches!(access.spans, Spans::Full)
            }
            Method::Buffer { access: None, .. } => true,
        })
    }
}

/// One table of a join.
pub struct Step {
    pub source: Source,
    /// What the statement calls it: for EXPLAIN, and for LOCK TABLES.
    pub name: Arc<str>,
    pub first_slot: usize,
    pub columns: usize,
    pub method: Method,
    /// A row of the tables before stays, with NULLs, when none of this table's passes `on`.
    pub outer: bool,
    /// ON of an outer join.
    pub on: Option<Expr>,
    /// Conditions that can be decided once this table's row is there.
    pub filter: Option<Expr>,
    /// What is left to do when the spans are exact; if that is less.
    pub exact: Option<ExactStep>,
    /// Rows that the planner expects from one visit.
    pub rows_estimate: u64,
}

/// A step over spans that hold just the rows that the conditions they were made from let pass.
pub struct ExactStep {
    /// The other conditions.
    pub filter: Option<Expr>,
    /// What they and the rest of the statement read.
    pub columns: Columns,
}

/// Where rows come from.
pub enum Source {
    Base {
        table: Arc<Table>,
        columns: Columns,
    },
    Virtual(Arc<dyn VirtualTable>),
    /// Shared by the references to a common table.
    Derived(Arc<QueryPlan>),
}

/// How the rows of one visit are found.
pub enum Method {
    /// A scan of an index of a base table, whose keys may come from the tables before.
    Scan(Access),
    /// All rows are read once (a base table by the access) and kept; with keys, in a hash table.
    Buffer { access: Option<Access>, keys: Vec<HashKey> },
}

/// An equality by which a buffered table is looked up.
pub struct HashKey {
    /// Over the slots of this table.
    pub inner: Expr,
    /// Over the tables before.
    pub outer: Expr,
    pub collation: Collation,
}

/// GROUP BY, or aggregates without it.
pub struct GroupPlan {
    /// None: one group, also of no rows.
    pub keys: Vec<(Expr, Collation)>,
    pub aggregates: Vec<Aggregate>,
    /// No ORDER BY was written: groups come in the order of their keys, as MariaDB's do.
    pub sort_by_key: bool,
    /// There was a GROUP BY.
    pub explicit: bool,
}
