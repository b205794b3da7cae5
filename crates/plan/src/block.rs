//! Query blocks: what a query means, before anything is decided about how it is run.
//!
//! A block keeps the clauses of its SELECT apart; every column of the statement has a number of its own
//! ([`cohort_expr::Expr::Column`]), so that a condition can be moved between blocks as it stands. A column of
//! a block around is named by its number like any other: a number that no table of the block brings is
//! *outer*.

use std::sync::Arc;

use cohort_catalog::{Table, View};
use cohort_expr::{Aggregate, Expr, ExprType, JsonTable, SortKey, TypeClass};
use cohort_protocol::ColumnMeta;
use cohort_sql::ast;
use cohort_types::Collation;

use crate::names::VirtualDefinition;
use crate::window::WindowUse;

/// A query.
#[derive(Clone)]
pub struct Query {
    pub body: Body,
    /// ORDER BY. Behind a set operation or VALUES only items.
    pub order: Vec<Order>,
    pub limit: Limit,
    /// Result column n has the number `first_column + n` for a query that reads it as a table.
    pub first_column: usize,
    pub columns: Vec<ColumnMeta>,
    pub types: Vec<ExprType>,
    /// FOR UPDATE and the like.
    pub locking: Option<ast::Locking>,
    /// INTO @a, @b.
    pub into: Vec<String>,
    /// SQL_CALC_FOUND_ROWS.
    pub count_all: bool,
    /// A view with ALGORITHM=TEMPTABLE: its rows are made before anybody reads them.
    pub apart: bool,
    /// Its values are stored or computed with: a quotient keeps the digits that its type does not show.
    pub keeps_digits: bool,
}

/// What yields the rows.
#[derive(Clone)]
pub enum Body {
    Select(Box<Select>),
    Set(Box<SetOperation>),
    Values(Vec<Vec<Expr>>),
    /// A query in parentheses with its own order and limit.
    Nested(Box<Query>),
}

/// A chain of UNION, EXCEPT and INTERSECT, from left to right.
#[derive(Clone)]
pub struct SetOperation {
    pub first: Query,
    /// At least one.
    pub rest: Vec<Operand>,
}

/// What stands behind a set operator.
#[derive(Clone)]
pub struct Operand {
    pub op: ast::SetOperator,
    pub all: bool,
    pub query: Query,
}

/// LIMIT and OFFSET, unsigned constants of the execution.
#[derive(Clone, Debug, Default)]
pub struct Limit {
    pub count: Option<Expr>,
    pub offset: Option<Expr>,
    /// Rows that are equal to the last one in the order come, too.
    pub with_ties: bool,
}

/// A sort key.
#[derive(Clone, Debug)]
pub struct Order {
    pub by: OrderBy,
    pub key: SortKey,
}

/// What a sort key is.
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
    /// As EXPLAIN numbers them.
    pub block: u32,
    pub from: Option<From>,
    /// WHERE: all of them hold.
    pub conditions: Vec<Expr>,
    pub group: Option<Group>,
    pub having: Option<Expr>,
    /// Window functions that items and ORDER BY read.
    pub windows: Vec<WindowUse>,
    /// Of an UPDATE: computed for each row that is found, one after the other, before the items.
    pub assigned: Vec<Assigned>,
    pub items: Vec<Expr>,
    pub distinct: bool,
    pub straight_join: bool,
}

/// An assignment of an UPDATE.
#[derive(Clone)]
pub struct Assigned {
    /// The number of the value as the expression yields it.
    pub column: usize,
    pub value: Expr,
    /// The column that it is assigned to, when those behind it read the new value.
    pub seen_as: Option<AssignedTo>,
}

/// A column of a base table in FROM.
#[derive(Clone)]
pub struct AssignedTo {
    /// Its number.
    pub number: usize,
    pub table: Arc<Table>,
    pub column: usize,
}

/// GROUP BY, or aggregates without it.
#[derive(Clone)]
pub struct Group {
    pub keys: Vec<Expr>,
    /// Keys of WITH ROLLUP whose groups come in descending order.
    pub descending: Vec<bool>,
    /// There was a GROUP BY.
    pub explicit: bool,
    pub rollup: bool,
    /// No ORDER BY was written: groups come in the order of their keys, as MariaDB's do.
    pub in_key_order: bool,
    pub aggregates: Vec<Collected>,
    /// Of WITH ROLLUP: key n, which is NULL in the rows for several groups, has the number
    /// `first_key + n` behind the grouping.
    pub first_key: usize,
}

/// An aggregate with the number of the column that it becomes.
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
    /// Its columns have the numbers from here on.
    pub first: usize,
    pub width: usize,
    /// What the statement calls it.
    pub name: Arc<str>,
    pub source: Source,
    /// The view that it is.
    pub view: Option<Arc<View>>,
    /// Its rows are locked for a change, and their key becomes the column of this number.
    pub key: Option<usize>,
}

/// Where the rows of a table of FROM come from.
#[derive(Clone)]
pub enum Source {
    Base {
        table: Arc<Table>,
        /// Indexes that hints allow; whether they must be used.
        allowed: Vec<usize>,
        forced: bool,
    },
    Virtual(Arc<dyn VirtualDefinition>),
    Derived(Box<Query>),
    /// A common table, by its number in the statement.
    Common(usize),
    /// `seq_1_to_10_step_2`.
    Series {
        first: u64,
        last: u64,
        step: i64,
    },
    /// JSON_TABLE. The document may read columns of the tables before it.
    Json {
        document: Expr,
        table: Arc<JsonTable>,
    },
}

/// Two tables joined. RIGHT JOIN is LEFT JOIN from the other side.
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

/// A common table.
#[derive(Clone)]
pub struct CommonTable {
    /// Its rows; of a recursive one those it starts from.
    pub seed: Query,
    /// What finds more of them, again and again.
    pub step: Option<Step>,
    /// How often the statement names it from outside.
    pub references: usize,
}

/// The recursive part of a common table.
#[derive(Clone)]
pub struct Step {
    pub query: Query,
    /// UNION, not UNION ALL.
    pub distinct: bool,
    /// CYCLE: the columns whose values make rows distinct; empty for all.
    pub cycle: Vec<usize>,
}

impl Query {
    /// Whether it is a single SELECT.
    pub fn select(&self) -> Option<&Select> {
        match &self.body {
            Body::Select(select) => Some(select),
            _ => None,
        }
    }

    /// The number of a result column.
    pub fn column(&self, n: usize) -> usize {
        self.first_column + n
    }

    /// Declares that the values are stored or computed with, and not shown.
    pub fn keep_digits(&mut self) {
        self.keeps_digits = true;
        if let Body::Nested(inner) = &mut self.body {
            inner.keep_digits();
        }
    }

    /// Whether MariaDB would put it in the place of the table that it is: nothing of it needs rows that are
    /// made before.
    pub fn is_like_a_view(&self) -> bool {
        let is_plain = |select: &Select| {
            select.group.is_none() && select.having.is_none() && select.windows.is_empty() && !select.distinct
        };
        self.limit.count.is_none() && self.select().is_some_and(is_plain)
    }

    /// Which items of its SELECT keep all digits they are computed with; empty when none does. Rows that a
    /// temporary table holds in MariaDB (DISTINCT, windows, what a grouped query does not aggregate) have the
    /// digits of their types.
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

    /// How result columns compare.
    pub fn collations(&self) -> Vec<Collation> {
        self.types.iter().map(|ty| ty.collation).collect()
    }
}

impl From {
    /// Its tables, from left to right.
    pub fn tables(&self) -> Vec<&FromTable> {
        match self {
            From::Table(table) => vec![table],
            From::Join(join) => join.left.tables().into_iter().chain(join.right.tables()).collect(),
        }
    }
}
