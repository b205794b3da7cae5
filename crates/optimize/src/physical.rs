//! The plan of a query as operators run it: immutable, shared by sessions, run with other parameters each
//! time.
//!
//! # Rows
//! Each node yields rows of a fixed width. The expressions of a node read the row of its input by position
//! ([`cohort_expr::Expr::Column`]); those of a join read the row of its left input followed by that of its
//! right one.
//!
//! # What lies outside
//! A column of a query around is an [`cohort_expr::Expr::Outer`]: a slot of the *frame*, which whoever
//! evaluates the subquery fills before. A subquery in an expression is an [`cohort_expr::Expr::Subquery`],
//! whose number is its place in [`Plan::subqueries`].
//!
//! # Where subqueries may stand
//! In every expression but [`Scan::filter`]: a scan holds the engines while it asks its filter. The spans of
//! a scan may name subqueries that read no column of the scan's input; they are evaluated before it opens.

use std::ops::Bound;
use std::sync::Arc;

use cohort_catalog::{IndexKind, Table};
use cohort_expr::{Aggregate, Expr, ExprType, JsonTable, SortKey};
use cohort_locks::WaitPolicy;
use cohort_plan::WindowCall;
use cohort_sql::ast::SetOperator;
use cohort_types::{Collation, Columns};

/// A query.
#[derive(Debug)]
pub struct Plan {
    pub root: Node,
    /// Values that one row of the result has; the root may yield more, which come behind.
    pub width: usize,
    pub subqueries: Vec<SubqueryPlan>,
    pub common: Vec<CommonPlan>,
    /// Slots of the frame.
    pub frame: usize,
    /// Columns of the row of a data change that the query reads, and their slots.
    pub given: Vec<(usize, usize)>,
}

/// A subquery of an expression.
#[derive(Debug)]
pub struct SubqueryPlan {
    pub root: Node,
    /// Values of a row.
    pub width: usize,
    /// Slots of the frame that it reads, its own subqueries included: it yields the same rows as long as
    /// these are the same.
    pub reads: Vec<usize>,
    /// RAND() and its like: it is run each time.
    pub is_volatile: bool,
    /// Values have digits that their types do not show.
    pub keeps_digits: bool,
}

/// A common table that is kept: named more than once, or recursive. It reads no slots of the frame: it is
/// bound without the query around it.
#[derive(Debug)]
pub struct CommonPlan {
    /// The rows; of a recursive one those it starts from.
    pub seed: Node,
    /// Of a recursive table: yields new rows from those found last, which it reads by [`Node::Common`].
    pub step: Option<RecursiveStep>,
}

/// The part of a recursive common table that is run again and again, until it yields nothing new.
#[derive(Debug)]
pub struct RecursiveStep {
    pub node: Node,
    /// UNION, not UNION ALL: a row that was there before is not new.
    pub distinct: bool,
    /// The columns that make rows distinct, and how they compare.
    pub distinct_by: Vec<(usize, Collation)>,
}

/// An operator with its inputs.
#[derive(Debug)]
pub enum Node {
    /// One row without columns.
    Unit,
    /// No row.
    Empty,
    /// These rows.
    Values(Vec<Vec<Expr>>),
    Scan(Box<Scan>),
    /// A table that the server computes.
    Virtual(Box<VirtualScan>),
    /// The rows of a common table; inside of a recursive one, those found last.
    Common {
        number: usize,
    },
    Filter {
        input: Box<Node>,
        condition: Expr,
    },
    /// The rows of the input if a condition holds that reads none of them; asked once, before the first.
    Gate {
        input: Box<Node>,
        condition: Expr,
    },
    /// Values of one type each as those of another ([`cohort_expr::to_joined`]).
    Convert {
        input: Box<Node>,
        from: Vec<ExprType>,
        to: Vec<ExprType>,
    },
    /// A row of these for each row. Values leave with the digits of their type
    /// ([`Expr::eval_output`]), or with all.
    Project {
        input: Box<Node>,
        items: Vec<Expr>,
        /// The items that keep all digits; empty when none does.
        kept: Vec<bool>,
    },
    /// The row of the input with more values behind it, each of which reads those before it.
    Extend {
        input: Box<Node>,
        more: Vec<Extension>,
    },
    Join(Box<Join>),
    Aggregate(Box<AggregateNode>),
    Window(Box<WindowNode>),
    Sort(Box<Sort>),
    Limit(Box<LimitNode>),
    /// No row twice.
    Distinct {
        input: Box<Node>,
        /// How the first columns compare; columns behind them do not count, the first row has its own.
        collations: Vec<Collation>,
    },
    /// The rows of the inputs one after the other.
    Concat(Vec<Node>),
    SetOperation(Box<SetOperation>),
    /// Many set operations at once.
    SetChain(Box<SetChain>),
    /// The integers from `first` to `last`.
    Series {
        first: u64,
        last: u64,
        step: i64,
    },
}

/// A table read by one of its indexes.
#[derive(Clone, Debug)]
pub struct Scan {
    pub table: Arc<Table>,
    /// What the statement calls it: for EXPLAIN, and for LOCK TABLES.
    pub name: Arc<str>,
    /// Its SELECT, as EXPLAIN numbers them.
    pub block: u32,
    /// The span expressions read the row of the join's left input; of a scan that stands alone, none.
    pub access: Access,
    pub mode: ReadMode,
    /// Reads a row of the whole table, whatever columns are yielded. No subqueries.
    pub filter: Option<Expr>,
    /// Ordinals of the columns that filter or result read.
    pub read: Columns,
    /// Ordinals of the columns yielded, in this order.
    pub columns: Vec<usize>,
    /// Behind them comes the row's clustered key, as a binary string. Locking reads only.
    pub with_key: bool,
    /// Rows that the optimizer expects from one visit.
    pub rows: f64,
}

/// A table that the server computes.
#[derive(Clone, Debug)]
pub struct VirtualScan {
    pub schema: Arc<str>,
    pub table: Arc<str>,
    pub name: Arc<str>,
    pub block: u32,
    /// Reads a row of the whole table. No subqueries. Tells the table which of its rows are wanted.
    pub filter: Option<Expr>,
    /// Ordinals of the columns yielded.
    pub columns: Vec<usize>,
}

/// The planner's choice for one table.
#[derive(Clone, Debug)]
pub struct Access {
    /// Which index of [`Table::indexes`]; 0 is the clustered one.
    pub index: usize,
    pub spans: Spans,
    /// Rows come in descending order of the index.
    pub reverse: bool,
    /// The statement wants them in the order of the index.
    pub is_for_order: bool,
}

/// The part of the index that is read.
#[derive(Clone, Debug)]
pub enum Spans {
    /// All of it.
    Full,
    /// One after the other. They may overlap once their keys are computed; no row comes twice.
    List(Vec<Span>),
    /// Of a FULLTEXT index: the rows that have words of a MATCH.
    Words(Box<Expr>),
}

/// Keys that begin with `eq` and whose next part lies between the bounds, or begins as a pattern does. The
/// expressions read parameters, and in a join columns of the tables before.
#[derive(Clone, Debug)]
pub struct Span {
    /// Values of the first key parts; NULL matches nothing.
    pub eq: Vec<Expr>,
    /// Parts, as bits, whose NULL matches NULL: `IS NULL`, `<=>`.
    pub null_safe: u64,
    /// Bounds of the key part behind them. NULL matches nothing.
    pub lower: Bound<Expr>,
    pub upper: Bound<Expr>,
    /// Instead of bounds.
    pub like: Option<LikeStart>,
}

/// What a text begins with that a pattern of LIKE matches.
#[derive(Clone, Debug, PartialEq)]
pub struct LikeStart {
    pub pattern: Expr,
    pub escape: Option<char>,
}

impl Span {
    /// The keys that begin so.
    pub fn of_keys(eq: Vec<Expr>) -> Span {
        Span { eq, null_safe: 0, lower: Bound::Unbounded, upper: Bound::Unbounded, like: None }
    }

    /// Whether nothing is asked of the part behind the first ones.
    pub fn is_of_keys(&self) -> bool {
        matches!((&self.lower, &self.upper, &self.like), (Bound::Unbounded, Bound::Unbounded, None))
    }

    /// The expressions that are evaluated for it.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let of_bound = |bound| match bound {
            &Bound::Included(ref expr) | &Bound::Excluded(ref expr) => Some(expr),
            Bound::Unbounded => None,
        };
        let bounds = [&self.lower, &self.upper].into_iter().filter_map(of_bound);
        self.eq.iter().chain(bounds).chain(self.like.as_ref().map(|like| &like.pattern))
    }

    /// The same, to change them.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let of_bound = |bound| match bound {
            &mut Bound::Included(ref mut expr) | &mut Bound::Excluded(ref mut expr) => Some(expr),
            Bound::Unbounded => None,
        };
        let bounds = [&mut self.lower, &mut self.upper].into_iter().filter_map(of_bound);
        self.eq.iter_mut().chain(bounds).chain(self.like.as_mut().map(|like| &mut like.pattern))
    }
}

/// How rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// From the statement's or transaction's read view.
    Snapshot,
    /// The newest row, locked so that nobody changes it: LOCK IN SHARE MODE.
    LockShare(WaitPolicy),
    /// The newest row, locked for a change: FOR UPDATE, UPDATE, DELETE.
    LockExclusive(WaitPolicy),
}

impl ReadMode {
    /// What to do about rows that others have locked; None if this locks nothing.
    pub fn locks(self) -> Option<WaitPolicy> {
        match self {
            ReadMode::Snapshot => None,
            ReadMode::LockShare(wait) | ReadMode::LockExclusive(wait) => Some(wait),
        }
    }
}

/// Which rows a join yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Every pair that matches.
    Inner,
    /// The same, and each left row without a match, with NULLs.
    Left,
    /// Each left row that has a match, once; nothing of the right one.
    Semi,
    /// Each left row without a match; nothing of the right one.
    Anti,
}

/// A join.
#[derive(Debug)]
pub struct Join {
    pub kind: JoinKind,
    pub left: Node,
    pub method: JoinMethod,
    /// Conditions beyond the keys, over left and right row.
    pub on: Option<Expr>,
}

/// How the rows on the right are found.
#[derive(Debug)]
pub enum JoinMethod {
    /// The table is asked for each left row, by an index.
    Lookup(Box<Scan>),
    /// The right rows are kept in a hash table.
    Hash { right: Node, keys: Vec<HashKey>, right_width: usize },
    /// The right rows are kept, and gone through for each left row that passes the gate, a condition over it
    /// alone. One that does not has no match.
    Loop { right: Node, right_width: usize, gate: Option<Expr> },
    /// The right rows are made of the left one.
    Json(Box<JsonScan>),
}

/// A JSON_TABLE.
#[derive(Debug)]
pub struct JsonScan {
    /// What the statement calls it.
    pub name: Arc<str>,
    pub block: u32,
    /// Over the left row.
    pub document: Expr,
    pub table: Arc<JsonTable>,
}

/// An equality. NULL is equal to nothing.
#[derive(Debug)]
pub struct HashKey {
    /// Over the left row.
    pub left: Expr,
    /// Over the right row alone.
    pub right: Expr,
    pub collation: Collation,
}

/// GROUP BY, or aggregates without it. Yields the keys, then `first`, then the aggregates.
#[derive(Debug)]
pub struct AggregateNode {
    pub input: Node,
    /// None: one group, also of no rows.
    pub keys: Vec<(Expr, Collation)>,
    /// There was a GROUP BY, maybe of constants only: no rows, no groups.
    pub is_grouped: bool,
    /// Answered by the group's first row (sql_mode without ONLY_FULL_GROUP_BY); NULL for a group of no rows.
    pub first: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// WITH ROLLUP: behind the groups of each prefix of the keys comes a row for all of them, whose further
    /// keys are NULL.
    pub rollup: bool,
    /// Keys of a rollup that come in descending order; none if it is empty.
    pub descending: Vec<bool>,
    /// Groups come in the order of their keys. A rollup is always in order.
    pub ordered: bool,
}

/// Window functions over one partitioning and order. Yields the input's row, then the functions' values. Rows
/// come in the order of partition and sort keys.
#[derive(Debug)]
pub struct WindowNode {
    pub input: Node,
    pub partition: Vec<(Expr, Collation)>,
    pub order: Vec<(Expr, SortKey)>,
    pub calls: Vec<WindowCall>,
}

/// ORDER BY.
#[derive(Debug)]
pub struct Sort {
    pub input: Node,
    pub keys: Vec<(Expr, SortKey)>,
    /// Rows beyond these are not wanted: offset and count of the limit above.
    pub limit: Option<LimitCount>,
}

/// A value behind the row.
#[derive(Debug)]
pub enum Extension {
    Value(Expr),
    /// The value at a place, as a column of a table holds it.
    Held {
        place: usize,
        table: Arc<Table>,
        column: usize,
    },
}

/// LIMIT and OFFSET, unsigned constants of the execution.
#[derive(Clone, Debug, Default)]
pub struct LimitCount {
    pub count: Option<Expr>,
    pub offset: Option<Expr>,
}

/// LIMIT.
#[derive(Debug)]
pub struct LimitNode {
    pub input: Node,
    pub limit: LimitCount,
    /// WITH TIES: the order of the input; rows that are equal to the last one come, too.
    pub ties: Option<Vec<(Expr, SortKey)>>,
    /// SQL_CALC_FOUND_ROWS: goes on to the end and counts.
    pub count_all: bool,
    /// It is the statement's own: FOUND_ROWS() says how many rows came.
    pub tells_found: bool,
}

/// EXCEPT or INTERSECT. Without `all` no row comes twice.
#[derive(Debug)]
pub struct SetOperation {
    pub left: Node,
    pub right: Node,
    /// Rows of the left side that the right side has, or those that it has not.
    pub wants_common: bool,
    /// ALL: each row of the right side counts for one of the left.
    pub all: bool,
    pub collations: Vec<Collation>,
}

/// A chain of set operations, from left to right, as one operator: operators of two inputs each would nest
/// deeper than any stack.
#[derive(Debug)]
pub struct SetChain {
    /// At least one; the first is UNION ALL.
    pub inputs: Vec<ChainInput>,
    pub collations: Vec<Collation>,
}

/// What stands behind a set operator.
#[derive(Debug)]
pub struct ChainInput {
    pub op: SetOperator,
    pub all: bool,
    pub node: Node,
}

impl Scan {
    /// Whether it looks for all values of a unique key: one row at most is equal to them.
    pub fn is_of_unique_key(&self) -> bool {
        let index = &self.table.indexes[self.access.index];
        let Spans::List(spans) = &self.access.spans else { return false };
        let [span] = spans.as_slice() else { return false };
        matches!(index.kind, IndexKind::Primary | IndexKind::Unique)
            && span.eq.len() == index.columns.len()
            && span.null_safe == 0
    }
}

impl Plan {
    /// Calls `see` for every node.
    pub fn each_node<'p>(&'p self, see: &mut dyn FnMut(&'p Node)) {
        self.root.each(see);
        self.subqueries.iter().for_each(|subquery| subquery.root.each(see));
        for common in &self.common {
            common.seed.each(see);
            common.step.iter().for_each(|step| step.node.each(see));
        }
    }

    /// Calls `see` for every scan of a base table.
    pub fn each_scan<'p>(&'p self, see: &mut dyn FnMut(&'p Scan)) {
        self.each_node(&mut |node| match node {
            Node::Scan(scan) => see(scan),
            Node::Join(join) => {
                if let JoinMethod::Lookup(scan) = &join.method {
                    see(scan);
                }
            }
            _ => {}
        });
    }
}

impl Node {
    /// Calls `see` for this node and all below.
    pub fn each<'n>(&'n self, see: &mut dyn FnMut(&'n Node)) {
        see(self);
        self.inputs().into_iter().for_each(|input| input.each(see));
    }

    /// The nodes that it pulls from.
    pub fn inputs(&self) -> Vec<&Node> {
        match self {
            Node::Unit
            | Node::Empty
            | Node::Values(_)
            | Node::Scan(_)
            | Node::Virtual(_)
            | Node::Common { .. }
            | Node::Series { .. } => Vec::new(),
            Node::Filter { input, .. }
            | Node::Gate { input, .. }
            | Node::Convert { input, .. }
            | Node::Project { input, .. }
            | Node::Extend { input, .. }
            | Node::Distinct { input, .. } => vec![input],
            Node::Join(join) => match &join.method {
                JoinMethod::Lookup(_) | JoinMethod::Json(_) => vec![&join.left],
                JoinMethod::Hash { right, .. } | JoinMethod::Loop { right, .. } => vec![&join.left, right],
            },
            Node::Aggregate(node) => vec![&node.input],
            Node::Window(node) => vec![&node.input],
            Node::Sort(node) => vec![&node.input],
            Node::Limit(node) => vec![&node.input],
            Node::Concat(inputs) => inputs.iter().collect(),
            Node::SetOperation(node) => vec![&node.left, &node.right],
            Node::SetChain(chain) => chain.inputs.iter().map(|input| &input.node).collect(),
        }
    }
}
