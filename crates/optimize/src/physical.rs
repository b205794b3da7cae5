//! [`Plan`]: the executable plan of a query. Immutable, shared by sessions, and executed with different
//! parameters each time.
//!
//! # Rows
//! Each node returns rows of a fixed width. The expressions of a node read its input row by position
//! ([`cohort_expr::Expr::Column`]). Those of a join read the left row followed by the right row.
//!
//! # Outer values
//! A column of an outer query is an [`cohort_expr::Expr::Outer`]: a slot of the *frame*, which is filled
//! before the subquery is evaluated. A subquery in an expression is an [`cohort_expr::Expr::Subquery`]; its
//! number is the position in [`Plan::subqueries`].
//!
//! # Allowed positions of subqueries
//! Subqueries may occur in every expression except [`Scan::filter`], because a scan holds the engines while
//! it evaluates its filter. The spans of a scan may contain subqueries that read no column of the scan's
//! input; they are evaluated before the scan opens.

use std::ops::Bound;
use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{Aggregate, Expr, ExprType, JsonTable, SortKey};
use cohort_locks::WaitPolicy;
use cohort_plan::WindowCall;
use cohort_sql::ast::SetOperator;
use cohort_types::{Collation, Columns};

/// The number of a part of a plan: of an operator, or of the reads of one table. The work of the part is
/// measured under it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartId(pub u32);

/// The numbers of a plan's parts. Reads of tables have the lowest ones. They are followed by those of the
/// operators, from each root downwards ([`Node::each`]).
#[derive(Debug, Default)]
pub struct Parts {
    /// Number of parts.
    pub count: u32,
    /// First number of each root, in the order of [`Plan::roots`].
    first: Vec<PartId>,
}

/// An executable query.
#[derive(Debug)]
pub struct Plan {
    pub root: Node,
    /// Number of values per result row. The root may return more, which follow these.
    pub width: usize,
    pub subqueries: Vec<SubqueryPlan>,
    pub common: Vec<CommonPlan>,
    /// Number of frame slots.
    pub frame: usize,
    /// Columns of a data change's row that the query reads, and their slots.
    pub given: Vec<(usize, usize)>,
    pub parts: Parts,
}

/// A subquery of an expression.
#[derive(Debug)]
pub struct SubqueryPlan {
    pub root: Node,
    /// Number of values per row.
    pub width: usize,
    /// Frame slots that it reads, including those of its own subqueries. It returns the same rows as long as
    /// these slots are unchanged.
    pub reads: Vec<usize>,
    /// It calls RAND() or another volatile function, so it is run each time.
    pub is_volatile: bool,
    /// Values have more digits than their types show.
    pub keeps_digits: bool,
}

/// A stored common table expression: referenced more than once, or recursive. It reads no frame slots,
/// because it is bound without the outer query.
#[derive(Debug)]
pub struct CommonPlan {
    /// Its rows; for a recursive one, the initial rows.
    pub seed: Node,
    /// For a recursive one: computes new rows from those of the last round, which it reads by
    /// [`Node::Common`].
    pub step: Option<RecursiveStep>,
}

/// The recursive part of a common table expression, repeated until it returns no new row.
#[derive(Debug)]
pub struct RecursiveStep {
    pub node: Node,
    /// UNION instead of UNION ALL: a row that was returned before is not new.
    pub distinct: bool,
    /// Columns that identify a row, with their collations.
    pub distinct_by: Vec<(usize, Collation)>,
}

/// An operator with its inputs.
#[derive(Debug)]
pub enum Node {
    /// One row without columns.
    Unit,
    /// No rows.
    Empty,
    /// Constant rows.
    Values(Vec<Vec<Expr>>),
    Scan(Box<Scan>),
    /// A virtual table, computed by the server.
    Virtual(Box<VirtualScan>),
    /// Reads a common table expression; inside of a recursive one, the rows of the last round.
    Common {
        number: usize,
    },
    Filter {
        input: Box<Node>,
        condition: Expr,
    },
    /// Returns its input if a condition that reads none of its rows holds. Evaluated once, before the first
    /// row.
    OneTimeFilter {
        input: Box<Node>,
        condition: Expr,
    },
    /// Converts each column to another type ([`cohort_expr::to_joined`]).
    Convert {
        input: Box<Node>,
        from: Vec<ExprType>,
        to: Vec<ExprType>,
    },
    /// Computes a row of expressions for each input row. Values are rounded to the digits of their type
    /// ([`Expr::eval_output`]), or keep all digits.
    Project {
        input: Box<Node>,
        items: Vec<Expr>,
        /// Items that keep all digits; empty if none does.
        kept: Vec<bool>,
    },
    /// Appends values to each row, each of which may read those before it.
    Extend {
        input: Box<Node>,
        more: Vec<Extension>,
    },
    Join(Box<Join>),
    Aggregate(Box<AggregateNode>),
    Window(Box<WindowNode>),
    Sort(Box<Sort>),
    Limit(Box<LimitNode>),
    /// Removes duplicate rows.
    Distinct {
        input: Box<Node>,
        /// Collations of the leading columns. Further columns do not count; they are those of the first row.
        collations: Vec<Collation>,
    },
    /// Concatenates the rows of the inputs.
    Concat(Vec<Node>),
    SetOperation(Box<SetOperation>),
    /// A chain of set operations in one operator.
    SetChain(Box<SetChain>),
    /// Returns the integers from `first` to `last`.
    Series {
        first: u64,
        last: u64,
        step: i64,
    },
}

/// A table scan by one of the table's indexes.
#[derive(Clone, Debug)]
pub struct Scan {
    pub table: Arc<Table>,
    /// The table's name or alias in the statement, for EXPLAIN and LOCK TABLES.
    pub name: Arc<str>,
    /// Number of its SELECT in EXPLAIN.
    pub block: u32,
    /// Span expressions read the left row of the join; they read no row if the scan is not part of a join.
    pub access: Access,
    pub mode: ReadMode,
    /// Reads a row of the whole table, whatever columns are returned. Contains no subqueries.
    pub filter: Option<Expr>,
    /// Ordinals of the columns that the filter or the result reads.
    pub read: Columns,
    /// Ordinals of the returned columns, in this order.
    pub columns: Vec<usize>,
    /// The row's clustered key follows the columns, as a binary string. Locking reads only.
    pub with_key: bool,
    /// Estimated number of rows per scan.
    pub rows: f64,
    /// Its reads.
    pub part: PartId,
}

/// A scan of a virtual table, computed by the server.
#[derive(Clone, Debug)]
pub struct VirtualScan {
    pub schema: Arc<str>,
    pub table: Arc<str>,
    pub name: Arc<str>,
    pub block: u32,
    /// Reads a row of the whole table and limits the rows the table computes. Contains no subqueries.
    pub filter: Option<Expr>,
    /// Ordinals of the returned columns.
    pub columns: Vec<usize>,
    /// Its reads.
    pub part: PartId,
}

/// A possible access with its estimated cost.
#[derive(Clone, Debug)]
pub struct Choice {
    pub access: Access,
    pub rows: f64,
    pub cost: f64,
    /// The rows come in the wanted order.
    pub ordered: bool,
}

/// The access path chosen for one table.
#[derive(Clone, Debug)]
pub struct Access {
    /// Position in [`Table::indexes`]; 0 is the clustered index.
    pub index: usize,
    pub spans: Spans,
    /// Rows are read in descending index order.
    pub reverse: bool,
    /// The statement relies on the index order.
    pub is_for_order: bool,
}

/// The part of an index to read.
#[derive(Clone, Debug)]
pub enum Spans {
    /// The whole index.
    Full,
    /// Spans to read one after the other. They may overlap until their keys are computed; no row is returned
    /// twice.
    List(Vec<Span>),
    /// The rows of a FULLTEXT index that contain words of a MATCH.
    Words(Box<Expr>),
}

/// Keys that start with `eq` and whose next part lies within the bounds or matches the start of a pattern.
/// The expressions read parameters, and in a join columns of preceding tables.
#[derive(Clone, Debug)]
pub struct Span {
    /// Values of the leading key parts. NULL matches nothing.
    pub eq: Vec<Expr>,
    /// Parts, as bits, for which NULL matches NULL: `IS NULL`, `<=>`.
    pub null_safe: u64,
    /// Bounds of the next key part. NULL matches nothing.
    pub lower: Bound<Expr>,
    pub upper: Bound<Expr>,
    /// Replaces the bounds.
    pub like: Option<LikeStart>,
}

/// The fixed start of a LIKE pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct LikeStart {
    pub pattern: Expr,
    pub escape: Option<char>,
}

impl Span {
    /// Returns the span of keys with these leading values.
    pub fn of_keys(eq: Vec<Expr>) -> Span {
        Span { eq, null_safe: 0, lower: Bound::Unbounded, upper: Bound::Unbounded, like: None }
    }

    /// Returns true if the part after the leading values is unrestricted.
    pub fn is_of_keys(&self) -> bool {
        matches!((&self.lower, &self.upper, &self.like), (Bound::Unbounded, Bound::Unbounded, None))
    }

    /// Returns the expressions of the span.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let of_bound = |bound| match bound {
            &Bound::Included(ref expr) | &Bound::Excluded(ref expr) => Some(expr),
            Bound::Unbounded => None,
        };
        let bounds = [&self.lower, &self.upper].into_iter().filter_map(of_bound);
        self.eq.iter().chain(bounds).chain(self.like.as_ref().map(|like| &like.pattern))
    }

    /// Returns the expressions of the span, to change them.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let of_bound = |bound| match bound {
            &mut Bound::Included(ref mut expr) | &mut Bound::Excluded(ref mut expr) => Some(expr),
            Bound::Unbounded => None,
        };
        let bounds = [&mut self.lower, &mut self.upper].into_iter().filter_map(of_bound);
        self.eq.iter_mut().chain(bounds).chain(self.like.as_mut().map(|like| &mut like.pattern))
    }
}

/// Read mode of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// From the read view of the statement or transaction.
    Snapshot,
    /// The newest version, locked against changes: LOCK IN SHARE MODE.
    LockShare(WaitPolicy),
    /// The newest version, locked for a change: FOR UPDATE, UPDATE, DELETE.
    LockExclusive(WaitPolicy),
}

impl ReadMode {
    /// Returns the wait policy for locked rows, or `None` if this mode does not lock.
    pub fn locks(self) -> Option<WaitPolicy> {
        match self {
            ReadMode::Snapshot => None,
            ReadMode::LockShare(wait) | ReadMode::LockExclusive(wait) => Some(wait),
        }
    }
}

/// The rows that a join returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Every matching pair.
    Inner,
    /// Every matching pair, and each left row without a match, padded with NULLs.
    Left,
    /// Each left row with a match, once, without right columns.
    Semi,
    /// Each left row without a match, without right columns.
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

/// Method of finding the right rows.
#[derive(Debug)]
pub enum JoinMethod {
    /// Looks up each left row by an index.
    Lookup(Box<Scan>),
    /// Stores the right rows in a hash table.
    Hash { right: Node, keys: Vec<HashKey>, right_width: usize },
    /// Stores the right rows and reads them for each left row that passes `gate`, a condition on the left row
    /// alone. A left row that fails it has no match.
    Loop { right: Node, right_width: usize, gate: Option<Expr> },
    /// Computes the right rows from the left row.
    Json(Box<JsonScan>),
}

/// A JSON_TABLE.
#[derive(Debug)]
pub struct JsonScan {
    /// Its name or alias in the statement.
    pub name: Arc<str>,
    pub block: u32,
    /// Reads the left row.
    pub document: Expr,
    pub table: Arc<JsonTable>,
}

/// An equality of a hash join. NULL equals nothing.
#[derive(Debug)]
pub struct HashKey {
    /// Reads the left row.
    pub left: Expr,
    /// Reads the right row alone.
    pub right: Expr,
    pub collation: Collation,
}

/// GROUP BY, or aggregation without it. Returns the keys, then `first`, then the aggregates.
#[derive(Debug)]
pub struct AggregateNode {
    pub input: Node,
    /// Empty for a single group, which exists even without rows.
    pub keys: Vec<(Expr, Collation)>,
    /// There was a GROUP BY, maybe of constants only: no rows give no groups.
    pub is_grouped: bool,
    /// Evaluated on the group's first row (sql_mode without ONLY_FULL_GROUP_BY); NULL for a group without
    /// rows.
    pub first: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// WITH ROLLUP: the groups of each key prefix are followed by a row for all of them, in which the other
    /// keys are NULL.
    pub rollup: bool,
    /// Rollup keys in descending order; empty if none is.
    pub descending: Vec<bool>,
    /// Groups are returned in key order. A rollup is always in order.
    pub ordered: bool,
}

/// Window functions over one partitioning and order. Returns the input row, then the functions' values,
/// ordered by partition and sort keys.
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
    /// Rows after these are not needed: offset and count of the limit above.
    pub limit: Option<LimitCount>,
}

/// A value appended to the row.
#[derive(Debug)]
pub enum Extension {
    Value(Expr),
    /// The value at a position, converted as a table column stores it.
    Held {
        place: usize,
        table: Arc<Table>,
        column: usize,
    },
}

/// LIMIT and OFFSET: unsigned constants of one execution.
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
    /// WITH TIES: the sort order of the input; rows that tie with the last one are returned, too.
    pub ties: Option<Vec<(Expr, SortKey)>>,
    /// SQL_CALC_FOUND_ROWS: reads to the end and counts.
    pub count_all: bool,
    /// The statement's own LIMIT: FOUND_ROWS() returns its row count.
    pub reports_found: bool,
}

/// EXCEPT or INTERSECT. Without `all`, duplicates are removed.
#[derive(Debug)]
pub struct SetOperation {
    pub left: Node,
    pub right: Node,
    /// If true, returns left rows that the right side has (INTERSECT); otherwise those it does not have
    /// (EXCEPT).
    pub wants_common: bool,
    /// ALL: each right row counts against one left row.
    pub all: bool,
    pub collations: Vec<Collation>,
}

/// A chain of set operations, from left to right, in one operator. Binary operators would nest deeper than
/// the stack allows.
#[derive(Debug)]
pub struct SetChain {
    /// At least one; the first is UNION ALL.
    pub inputs: Vec<ChainInput>,
    pub collations: Vec<Collation>,
}

/// An operand with the set operator before it.
#[derive(Debug)]
pub struct ChainInput {
    pub op: SetOperator,
    pub all: bool,
    pub node: Node,
}

impl PartId {
    /// Returns the number, and goes on to the next one.
    pub fn advance(&mut self) -> PartId {
        let number = *self;
        self.0 += 1;
        number
    }
}

impl Scan {
    /// Returns true if the scan looks up all parts of a unique key, so it finds at most one row.
    pub fn is_of_unique_key(&self) -> bool {
        let index = &self.table.indexes[self.access.index];
        let Spans::List(spans) = &self.access.spans else { return false };
        let [span] = spans.as_slice() else { return false };
        index.kind.is_unique() && span.eq.len() == index.columns.len() && span.null_safe == 0
    }
}

impl Plan {
    /// Returns the topmost nodes: of the query, of its subqueries, and of its common table expressions.
    pub fn roots(&self) -> impl Iterator<Item = &Node> {
        let common = self.common.iter();
        let common = common.flat_map(|c| std::iter::once(&c.seed).chain(c.step.as_ref().map(|s| &s.node)));
        let subqueries = self.subqueries.iter().map(|subquery| &subquery.root);
        std::iter::once(&self.root).chain(subqueries).chain(common)
    }

    /// Calls `see` for every node.
    pub fn each_node<'p>(&'p self, see: &mut dyn FnMut(&'p Node)) {
        self.roots().for_each(|root| root.each(see));
    }

    /// Calls `see` for every node with its number.
    pub fn each_part<'p>(&'p self, see: &mut dyn FnMut(&'p Node, PartId)) {
        for (root, first) in self.roots().zip(&self.parts.first) {
            let mut next = *first;
            root.each(&mut |node| see(node, next.advance()));
        }
    }

    /// Returns the first number of a root.
    pub fn first_part(&self, root: &Node) -> PartId {
        let at = self.roots().position(|other| std::ptr::eq(other, root));
        at.and_then(|at| self.parts.first.get(at)).copied().unwrap_or_default()
    }

    /// Numbers the operators. `reads` are the numbers of its tables.
    pub(crate) fn number(&mut self, reads: u32) {
        let mut next = PartId(reads);
        let mut first = Vec::new();
        for root in self.roots() {
            first.push(next);
            root.each(&mut |_| _ = next.advance());
        }
        self.parts = Parts { count: next.0, first };
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

    /// Returns the input nodes.
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
            | Node::OneTimeFilter { input, .. }
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
