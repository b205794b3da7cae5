//! Query blocks: the meaning of a query, before its execution is planned.
//!
//! A block keeps the clauses of its SELECT separate. Every column of the statement has its own number
//! ([`cohort_expr::Expr::Column`]), so a condition can be moved between blocks unchanged. Columns of
//! enclosing blocks are referenced by number, too: a number that belongs to no table of the block is *outer*.

use std::sync::Arc;

use cohort_catalog::{Table, View};
use cohort_expr::{Aggregate, Expr, ExprType, JsonTable, SortKey, TypeClass};
use cohort_protocol::ColumnMeta;
use cohort_sql::ast;
use cohort_types::Collation;

use crate::names::VirtualDefinition;
use crate::window::WindowUse;

/// Smaller column numbers are reserved for the row of a data change: its columns, followed by those of the
/// new row.
pub(crate) const FIRST_COLUMN: usize = 1 << 20;

/// Returns whether a column belongs to the row of a data change.
pub fn is_of_changed_row(column: usize) -> bool {
    column < FIRST_COLUMN
}

/// A query.
#[derive(Clone)]
pub struct Query {
    pub body: Body,
    /// ORDER BY. After a set operation or VALUES, only items.
    pub order: Vec<Order>,
    pub limit: Limit,
    /// Result column n has the number `first_column + n` in a query that reads this one as a table.
    pub first_column: usize,
    pub columns: Vec<ColumnMeta>,
    pub types: Vec<ExprType>,
    /// FOR UPDATE or LOCK IN SHARE MODE.
    pub locking: Option<ast::Locking>,
    /// INTO @a, @b.
    pub into: Vec<cohort_sql::ast::Target>,
    /// SQL_CALC_FOUND_ROWS.
    pub count_all: bool,
    /// A view with ALGORITHM=TEMPTABLE: it is materialized before its rows are read.
    pub apart: bool,
    /// Its values are stored or used in computations, so a quotient keeps digits beyond those of its type.
    pub keeps_digits: bool,
}

/// The source of the rows.
#[derive(Clone)]
pub enum Body {
    Select(Box<Select>),
    Set(Box<SetOperation>),
    Values(Vec<Vec<Expr>>),
    /// A query in parentheses with its own ORDER BY and LIMIT.
    Nested(Box<Query>),
}

/// A chain of UNION, EXCEPT and INTERSECT, from left to right.
#[derive(Clone)]
pub struct SetOperation {
    pub first: Query,
    /// At least one.
    pub rest: Vec<Operand>,
}

/// A set operator with the query that follows it.
#[derive(Clone)]
pub struct Operand {
    pub op: ast::SetOperator,
    pub all: bool,
    pub query: Query,
}

/// LIMIT and OFFSET: unsigned constants of one execution.
#[derive(Clone, Debug, Default)]
pub struct Limit {
    pub count: Option<Expr>,
    pub offset: Option<Expr>,
    /// Rows that tie with the last one are returned, too.
    pub with_ties: bool,
}

/// A sort key.
#[derive(Clone, Debug)]
pub struct Order {
    pub by: OrderBy,
    pub key: SortKey,
}

/// The value of a sort key.
#[derive(Clone, Debug)]
pub enum OrderBy {
    /// A column of the result.
    Item(usize),
    /// An expression over the rows before the projection.
    Expr(Expr),
}

/// One SELECT.
#[derive(Clone)]
pub struct Select {
    /// Number of the SELECT in EXPLAIN.
    pub block: u32,
    pub from: Option<From>,
    /// Conjuncts of WHERE.
    pub conditions: Vec<Expr>,
    pub group: Option<Group>,
    pub having: Option<Expr>,
    /// Window functions that items and ORDER BY read.
    pub windows: Vec<WindowUse>,
    /// Assignments of an UPDATE, evaluated in order for each row found, before the items.
    pub assigned: Vec<Assigned>,
    pub items: Vec<Expr>,
    pub distinct: bool,
    pub straight_join: bool,
}

/// An assignment of an UPDATE.
#[derive(Clone)]
pub struct Assigned {
    /// Column number of the value that the expression returns.
    pub column: usize,
    pub value: Expr,
    /// The assigned column, if later assignments read the new value.
    pub seen_as: Option<AssignedTo>,
}

/// A column of a base table in FROM.
#[derive(Clone)]
pub struct AssignedTo {
    /// Its column number.
    pub number: usize,
    pub table: Arc<Table>,
    pub column: usize,
}

/// GROUP BY, or aggregation without it.
#[derive(Clone)]
pub struct Group {
    pub keys: Vec<Expr>,
    /// Keys of WITH ROLLUP whose groups are in descending order.
    pub descending: Vec<bool>,
    /// There was a GROUP BY.
    pub explicit: bool,
    pub rollup: bool,
    /// Without ORDER BY, groups are returned in key order, as in MariaDB.
    pub in_key_order: bool,
    pub aggregates: Vec<Collected>,
    /// WITH ROLLUP: after grouping, key n has the number `first_key + n`, because it is NULL in summary rows.
    pub first_key: usize,
}

/// An aggregate with its column number.
#[derive(Clone)]
pub struct Collected {
    pub column: usize,
    pub aggregate: Aggregate,
}

/// FROM.
#[derive(Clone)]
pub enum From {
    Table(Box<FromTable>),
    Join(Box<FromJoin>),
}

/// A table of FROM.
#[derive(Clone)]
pub struct FromTable {
    /// Number of its first column.
    pub first: usize,
    pub width: usize,
    /// Its name or alias in the statement.
    pub name: Arc<str>,
    pub source: Source,
    /// The view, if it is one.
    pub view: Option<Arc<View>>,
    /// If set, its rows are locked for a change, and their keys become the column of this number.
    pub key: Option<usize>,
}

/// The source of a FROM table's rows.
#[derive(Clone)]
pub enum Source {
    Base {
        table: Arc<Table>,
        /// Indexes that hints allow. `forced`: one of them must be used.
        allowed: Vec<usize>,
        forced: bool,
    },
    Virtual(Arc<dyn VirtualDefinition>),
    Derived(Box<Query>),
    /// A common table expression, by its number in the statement.
    Common(usize),
    /// `seq_1_to_10_step_2`.
    Series {
        first: u64,
        last: u64,
        step: i64,
    },
    /// JSON_TABLE. The document may read columns of preceding tables.
    Json {
        document: Expr,
        table: Arc<JsonTable>,
    },
}

/// A join of two tables. RIGHT JOIN is represented as LEFT JOIN with the sides swapped.
#[derive(Clone)]
pub struct FromJoin {
    /// LEFT JOIN.
    pub outer: bool,
    /// STRAIGHT_JOIN: the left side comes first.
    pub keep_order: bool,
    pub left: From,
    pub right: From,
    pub on: Vec<Expr>,
}

/// A common table expression.
#[derive(Clone)]
pub struct CommonTable {
    /// Its rows; for a recursive one, the initial rows.
    pub seed: Query,
    /// The recursive part, repeated to find further rows.
    pub step: Option<Step>,
    /// Number of references from outside of it.
    pub references: usize,
}

/// The recursive part of a common table expression.
#[derive(Clone)]
pub struct Step {
    pub query: Query,
    /// UNION instead of UNION ALL.
    pub distinct: bool,
    /// CYCLE: the columns that identify a row; empty for all.
    pub cycle: Vec<usize>,
}

impl Query {
    /// Returns the SELECT, if the query is a single one.
    pub fn select(&self) -> Option<&Select> {
        match &self.body {
            Body::Select(select) => Some(select),
            _ => None,
        }
    }

    /// Returns the number of a result column.
    pub fn column(&self, n: usize) -> usize {
        self.first_column + n
    }

    /// Declares that the values are stored or used in computations, and not displayed.
    pub fn keep_digits(&mut self) {
        self.keeps_digits = true;
        if let Body::Nested(inner) = &mut self.body {
            inner.keep_digits();
        }
    }

    /// Returns true if MariaDB would merge the query into the outer one, because it needs no materialized
    /// rows.
    pub fn is_like_a_view(&self) -> bool {
        let is_plain = |select: &Select| {
            select.group.is_none() && select.having.is_none() && select.windows.is_empty() && !select.distinct
        };
        self.limit.count.is_none() && self.select().is_some_and(is_plain)
    }

    /// Returns the items of its SELECT that keep all digits of their computation; empty if none does. Rows
    /// that MariaDB holds in a temporary table (DISTINCT, windows, unaggregated columns of a grouped query)
    /// have the digits of their types.
    pub fn digits_kept(&self) -> Vec<bool> {
        let Some(select) = self.select().filter(|_| self.keeps_digits) else { return Vec::new() };
        let group = select.group.as_ref();
        if select.distinct || !select.windows.is_empty() || group.is_some_and(|group| group.rollup) {
            return Vec::new();
        }
        let is_aggregate = |column: &usize| {
            group.is_none_or(|group| group.aggregates.iter().any(|known| known.column == *column))
        };
        let is_kept = |item: &Expr| {
            item.ty().class() == TypeClass::Decimal
                && (group.is_none() || item.columns().iter().any(is_aggregate))
        };
        let kept: Vec<bool> = select.items.iter().map(is_kept).collect();
        if kept.contains(&true) { kept } else { Vec::new() }
    }

    /// Returns the collations of the result columns.
    pub fn collations(&self) -> Vec<Collation> {
        self.types.iter().map(|ty| ty.collation).collect()
    }
}

impl From {
    /// Returns its tables, from left to right.
    pub fn tables(&self) -> Vec<&FromTable> {
        match self {
            From::Table(table) => vec![table],
            From::Join(join) => join.left.tables().into_iter().chain(join.right.tables()).collect(),
        }
    }
}
