//! Expressions and literals.

use cohort_types::Value;

pub use cohort_types::IntervalUnit;

use super::{DataType, OrderItem, Query};

/// A constant as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// Int, UInt, Decimal, Double, Str or Null; a temporal literal is a Str with `kind` telling its type.
    pub value: Value,
    /// What the notation says beyond the value.
    pub kind: LiteralKind,
    /// The n-th literal token of the statement, as [`crate::Digest`] numbers them: a plan for the digest
    /// takes the value from there. None: the value is part of the plan.
    pub ordinal: Option<u32>,
}

/// Notation of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// Number, string, NULL.
    Plain,
    /// A string with its character set before it, or N'..'.
    Introduced,
    /// TRUE or FALSE (value Int 1 or 0).
    Boolean,
    /// 0x..: a binary string, which counts as a big-endian unsigned integer in numeric context.
    Hex,
    /// x'..': a binary string in every context.
    HexText,
    /// b'..' or 0b..: the same in base two.
    Bit,
    /// DATE '..'.
    Date,
    /// TIME '..'.
    Time,
    /// TIMESTAMP '..'.
    Timestamp,
}

impl Literal {
    /// A literal that is no parameter of a cached plan.
    pub fn fixed(value: Value) -> Literal {
        Literal { value, kind: LiteralKind::Plain, ordinal: None }
    }
}

/// `[[db.]table.]column`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnRef {
    pub db: Option<String>,
    pub table: Option<String>,
    pub name: String,
}

/// Which copy of a system variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VariableScope {
    /// `@@x`. Read: session, else global. Set: session, but of isolation and access mode the next
    /// transaction's. `SET x` is the session's.
    Unspecified,
    /// SESSION or LOCAL.
    Session,
    Global,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`; the literal -9223372036854775808 is Negate of a UInt.
    Negate,
    /// `+x`; the parser does not produce it: as in MariaDB `+x` is x.
    Plus,
    /// NOT x and !x.
    Not,
    /// `~x`.
    BitNot,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Or,
    Xor,
    And,
    Equal,
    /// `<=>`.
    NullSafeEqual,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitOr,
    BitAnd,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    /// `/`.
    Divide,
    /// DIV.
    IntDivide,
    /// `%` and MOD.
    Modulo,
}

/// What IS asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IsTest {
    Null,
    True,
    False,
    Unknown,
}

/// ANY (SOME) or ALL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    Any,
    All,
}

/// Which ends TRIM cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

/// Aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    /// STD, STDDEV, STDDEV_POP.
    StdDevPop,
    StdDevSamp,
    /// VARIANCE, VAR_POP.
    VarPop,
    VarSamp,
    GroupConcat,
    JsonArrayAgg,
    JsonObjectAgg,
}

/// A call of an aggregate function.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub kind: AggregateKind,
    pub distinct: bool,
    /// Empty for COUNT(*).
    pub args: Vec<Expr>,
    /// GROUP_CONCAT and JSON_ARRAYAGG only.
    pub order_by: Vec<OrderItem>,
    /// GROUP_CONCAT only; None is ','.
    pub separator: Option<String>,
    /// GROUP_CONCAT and JSON_ARRAYAGG only: offset and number of the values taken.
    pub limit: Option<(Option<u64>, u64)>,
}

/// A window function with its window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// A [`Expr::Function`] or an [`Expr::Aggregate`].
    pub function: Expr,
    pub over: Over,
}

/// What stands behind OVER.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// A window of the clause WINDOW.
    Name(String),
    Spec(Box<WindowSpec>),
}

/// `([name] [PARTITION BY ..] [ORDER BY ..] [frame])`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSpec {
    /// The window that this one goes on from.
    pub base: Option<String>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderItem>,
    pub frame: Option<WindowFrame>,
}

/// ROWS or RANGE with its bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// RANGE, not ROWS.
    pub is_range: bool,
    pub start: WindowBound,
    pub end: WindowBound,
}

/// An end of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Literal(Literal),
    /// `?`, numbered from 0 in the order of the text.
    Param(u32),
    Column(ColumnRef),
    /// `@name`.
    UserVariable(String),
    /// `@name := value`.
    Assign {
        name: String,
        value: Box<Expr>,
    },
    /// `@@[scope.]name`, lower case.
    SystemVariable {
        scope: VariableScope,
        name: String,
    },

    Unary {
        op: UnaryOp,
        expr: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `expr IS [NOT] test`.
    Is {
        expr: Box<Expr>,
        negated: bool,
        test: IsTest,
    },
    Between {
        expr: Box<Expr>,
        negated: bool,
        low: Box<Expr>,
        high: Box<Expr>,
    },
    InList {
        expr: Box<Expr>,
        negated: bool,
        list: Vec<Expr>,
    },
    InQuery {
        expr: Box<Expr>,
        negated: bool,
        query: Box<Query>,
    },
    /// LIKE; `escape` None is the backslash, with NO_BACKSLASH_ESCAPES, too.
    Like {
        expr: Box<Expr>,
        negated: bool,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
    },
    /// REGEXP, RLIKE.
    Regexp {
        expr: Box<Expr>,
        negated: bool,
        pattern: Box<Expr>,
    },
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// CAST(x AS t), CONVERT(x, t), and BINARY x.
    Cast {
        expr: Box<Expr>,
        to: Box<DataType>,
    },
    /// CONVERT(x USING charset).
    ConvertUsing {
        expr: Box<Expr>,
        charset: String,
    },
    /// `x COLLATE name`.
    Collate {
        expr: Box<Expr>,
        collation: String,
    },
    /// `x + INTERVAL n unit`, `x - INTERVAL n unit`, DATE_ADD, DATE_SUB, ADDDATE, SUBDATE, TIMESTAMPADD.
    DateArith {
        expr: Box<Expr>,
        subtract: bool,
        amount: Box<Expr>,
        unit: IntervalUnit,
    },
    /// EXTRACT(unit FROM x).
    Extract {
        unit: IntervalUnit,
        expr: Box<Expr>,
    },
    /// TIMESTAMPDIFF(unit, from, to).
    TimestampDiff {
        unit: IntervalUnit,
        from: Box<Expr>,
        to: Box<Expr>,
    },
    /// TRIM([side] [what] FROM x); `what` None is a space.
    Trim {
        side: TrimSide,
        what: Option<Box<Expr>>,
        expr: Box<Expr>,
    },
    /// CHAR(n, ... USING charset); charset None is binary.
    Sequence(Box<super::SequenceCall>),
    CharFunction {
        args: Vec<Expr>,
        charset: Option<String>,
    },
    /// Any other call. Special syntax is lowered to plain arguments: SUBSTRING(a FROM b FOR c) is
    /// substring(a, b, c); POSITION(a IN b) is locate(a, b); CURRENT_TIMESTAMP, LOCALTIME and NOW are
    /// now([n]); CURRENT_DATE is curdate(); CURRENT_TIME is curtime([n]); CURRENT_USER is current_user(); `a
    /// || b` under PIPES_AS_CONCAT is concat(a, b); GET_FORMAT(DATE, x) has the word as a text literal. No
    /// check of name or number of arguments was made.
    Function {
        name: String,
        args: Vec<Expr>,
    },
    Aggregate(Box<Aggregate>),
    /// `function OVER window`.
    Window(Box<WindowCall>),

    /// `(a, b, ...)` or ROW(a, b, ...), at least two.
    Row(Vec<Expr>),
    /// A scalar (or row) subquery.
    Subquery(Box<Query>),
    Exists(Box<Query>),
    /// `expr op ANY|ALL (query)`.
    Quantified {
        expr: Box<Expr>,
        op: BinaryOp,
        quantifier: Quantifier,
        query: Box<Query>,
    },

    /// DEFAULT as a value of INSERT or UPDATE (None), or DEFAULT(column).
    Default(Option<ColumnRef>),
    /// MATCH (columns) AGAINST (text).
    Match {
        columns: Vec<Expr>,
        text: Box<Expr>,
        mode: MatchMode,
    },
    /// VALUES(column) or VALUE(column) in ON DUPLICATE KEY UPDATE.
    Values(ColumnRef),
}

/// How AGAINST reads its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchMode {
    /// IN NATURAL LANGUAGE MODE, which is the default.
    Natural,
    /// IN BOOLEAN MODE.
    Boolean,
    /// WITH QUERY EXPANSION.
    Expansion,
}
