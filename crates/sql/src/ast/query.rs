//! SELECT, UNION, VALUES, WITH; tables and joins.

use super::{Expr, JsonTable, ObjectName, WindowSpec};

/// A query with all that stands around its SELECTs.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Option<With>,
    pub body: QueryBody,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    /// FOR UPDATE and the like.
    pub locking: Option<Locking>,
    /// INTO @a, @b; empty without. INTO OUTFILE is refused.
    pub into: Vec<String>,
}

impl Query {
    /// A query with nothing around its body.
    pub fn of(body: QueryBody) -> Query {
        Query { with: None, body, order_by: Vec::new(), limit: None, locking: None, into: Vec::new() }
    }
}

/// WITH [RECURSIVE] ...
#[derive(Clone, Debug, PartialEq)]
pub struct With {
    pub recursive: bool,
    pub tables: Vec<CommonTable>,
}

/// `name [(columns)] AS (query)`.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTable {
    pub name: String,
    pub columns: Vec<String>,
    pub query: Box<Query>,
    /// CYCLE .. RESTRICT: the columns whose values make rows distinct.
    pub cycle: Vec<String>,
}

/// What yields the rows.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    /// `first op a op b ...`, from left to right whatever the operators: what binds tighter on the right is
    /// an operand of its own.
    SetOperation {
        first: Box<QueryBody>,
        /// At least one.
        rest: Vec<SetOperand>,
    },
    /// VALUES (..), (..).
    Values(Vec<Vec<Expr>>),
    /// A query in parentheses with its own ORDER BY and LIMIT.
    Nested(Box<Query>),
}

/// What stands behind a set operator.
#[derive(Clone, Debug, PartialEq)]
pub struct SetOperand {
    pub op: SetOperator,
    /// ALL stands before it.
    pub all: bool,
    pub body: QueryBody,
}

/// UNION, EXCEPT, INTERSECT (INTERSECT binds tighter, but under ORACLE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    Except,
    Intersect,
}

impl SetOperator {
    /// Every operator.
    pub const ALL: [SetOperator; 3] = [SetOperator::Union, SetOperator::Except, SetOperator::Intersect];
}

/// One SELECT without ORDER BY and LIMIT.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub options: SelectOptions,
    pub items: Vec<SelectItem>,
    /// None without FROM and for FROM DUAL. Comma is a Cross join.
    pub from: Option<TableRef>,
    pub filter: Option<Expr>,
    pub group_by: Vec<OrderItem>,
    pub with_rollup: bool,
    pub having: Option<Expr>,
    /// WINDOW name AS (...), ...
    pub windows: Vec<(String, WindowSpec)>,
    /// It stands in parentheses that mean nothing; views show them.
    pub in_parens: bool,
}

impl Select {
    /// A SELECT of these and nothing else.
    pub fn of(items: Vec<SelectItem>) -> Select {
        Select {
            options: SelectOptions::default(),
            items,
            from: None,
            filter: None,
            group_by: Vec::new(),
            with_rollup: false,
            having: None,
            windows: Vec::new(),
            in_parens: false,
        }
    }
}

/// Words after SELECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectOptions {
    pub distinct: bool,
    pub straight_join: bool,
    pub calc_found_rows: bool,
    pub high_priority: bool,
    pub sql_no_cache: bool,
    /// SQL_BIG_RESULT, SQL_SMALL_RESULT, SQL_BUFFER_RESULT, SQL_CACHE: accepted, without effect.
    pub hints: bool,
}

/// A column of the result.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`.
    Wildcard,
    /// `t.*` or `db.t.*`.
    TableWildcard(ObjectName),
    Expr {
        expr: Expr,
        alias: Option<String>,
        /// The column's name when there is no alias and the expression is no plain column: the source text as
        /// typed (of a string literal: its content).
        text: String,
    },
}

/// A table, derived table or join.
#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    Table(Box<TableFactor>),
    /// `(query) alias [(columns)]`.
    Derived {
        query: Box<Query>,
        alias: String,
        columns: Vec<String>,
    },
    Json(Box<JsonTable>),
    Join(Box<Join>),
}

/// A named table in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFactor {
    pub name: ObjectName,
    pub alias: Option<String>,
    pub index_hints: Vec<IndexHint>,
    /// PARTITION (p, ...).
    pub partitions: Vec<String>,
}

/// USE | FORCE | IGNORE {INDEX|KEY} [FOR ...] (names).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHint {
    pub kind: IndexHintKind,
    pub scope: IndexHintScope,
    /// Empty only for USE INDEX (): use none. The primary key is PRIMARY.
    pub names: Vec<String>,
}

/// What an index hint asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintKind {
    Use,
    Force,
    Ignore,
}

/// FOR JOIN, ORDER BY, GROUP BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintScope {
    All,
    Join,
    OrderBy,
    GroupBy,
}

/// Two tables joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    pub kind: JoinKind,
    pub left: TableRef,
    pub right: TableRef,
    pub condition: JoinCondition,
}

/// The kind of join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// JOIN, INNER JOIN.
    Inner,
    /// CROSS JOIN (which may have a condition) and comma.
    Cross,
    /// STRAIGHT_JOIN.
    Straight,
    Left,
    Right,
}

/// ON, USING, NATURAL or nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    None,
    On(Expr),
    Using(Vec<String>),
    Natural,
}

/// An item of ORDER BY or GROUP BY. A bare integer literal is a column number.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}

/// LIMIT in any notation; the expressions are unsigned literals or parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub count: Expr,
    pub offset: Option<Expr>,
    /// FETCH .. WITH TIES: rows that are equal to the last one in the order come, too.
    pub with_ties: bool,
}

/// A locking read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locking {
    pub strength: LockStrength,
    pub wait: LockWait,
}

/// FOR UPDATE, or LOCK IN SHARE MODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStrength {
    Share,
    Update,
}

/// What a locking read does on a locked row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// As the session's lock wait timeout says.
    Default,
    NoWait,
    /// WAIT n, seconds.
    Seconds(u64),
    SkipLocked,
}
