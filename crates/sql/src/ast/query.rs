//! SELECT, UNION, VALUES, WITH; tables and joins.

use super::{Expr, JsonTable, ObjectName, Target, WindowSpec};

/// A query with all clauses around its SELECTs.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Option<With>,
    pub body: QueryBody,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    /// FOR UPDATE and similar.
    pub locking: Option<Locking>,
    /// INTO @a, @b; empty if absent. INTO OUTFILE is rejected. Local variables occur in bodies of programs
    /// only.
    pub into: Vec<Target>,
    /// INTO follows the tables, which is deprecated.
    pub into_is_late: bool,
}

impl Query {
    /// Makes a query that has only a body.
    pub fn of(body: QueryBody) -> Query {
        Query {
            with: None,
            body,
            order_by: Vec::new(),
            limit: None,
            locking: None,
            into: Vec::new(),
            into_is_late: false,
        }
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
    /// CYCLE .. RESTRICT: the columns whose values identify rows.
    pub cycle: Vec<String>,
}

/// Source of a query's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    /// `first op a op b ...`, evaluated from left to right. An operation of higher precedence on the right is
    /// a nested operand.
    SetOperation {
        first: Box<QueryBody>,
        /// At least one operand.
        rest: Vec<SetOperand>,
    },
    /// VALUES (..), (..).
    Values(Vec<Vec<Expr>>),
    /// A query in parentheses with its own ORDER BY and LIMIT.
    Nested(Box<Query>),
}

/// A set operator and its right operand.
#[derive(Clone, Debug, PartialEq)]
pub struct SetOperand {
    pub op: SetOperator,
    /// True for ALL.
    pub all: bool,
    pub body: QueryBody,
}

/// UNION, EXCEPT, INTERSECT. INTERSECT has higher precedence, except under ORACLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    Except,
    Intersect,
}

impl SetOperator {
    /// All operators.
    pub const ALL: [SetOperator; 3] = [SetOperator::Union, SetOperator::Except, SetOperator::Intersect];
}

/// One SELECT without ORDER BY and LIMIT.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub options: SelectOptions,
    pub items: Vec<SelectItem>,
    /// `None` without FROM and for FROM DUAL. A comma is a cross join.
    pub from: Option<TableRef>,
    pub filter: Option<Expr>,
    pub group_by: Vec<OrderItem>,
    pub with_rollup: bool,
    pub having: Option<Expr>,
    /// WINDOW name AS (...), ...
    pub windows: Vec<(String, WindowSpec)>,
    /// True if it is in redundant parentheses, which view definitions show.
    pub in_parens: bool,
}

impl Select {
    /// Makes a SELECT that has only these items.
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

/// Keywords after SELECT.
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
        /// Name of the column if it has no alias and is not a plain column: the source text (for a string
        /// literal, its contents).
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
    /// Names of indexes. Empty only for USE INDEX (), which uses none. The primary key is PRIMARY.
    pub names: Vec<String>,
}

/// Action of an index hint.
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

/// A join of two tables.
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

/// An item of ORDER BY or GROUP BY. An integer literal is a column number.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}

/// LIMIT in any notation. The expressions are unsigned literals or parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub count: Expr,
    pub offset: Option<Expr>,
    /// FETCH .. WITH TIES: rows that sort equal to the last one are included.
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

/// Behaviour of a locking read at a locked row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// Wait for the session's lock wait timeout.
    Default,
    NoWait,
    /// WAIT n, seconds.
    Seconds(u64),
    SkipLocked,
}
