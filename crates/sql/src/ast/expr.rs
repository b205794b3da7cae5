//! Expressions and literals.

use cohort_types::Value;

pub use cohort_types::IntervalUnit;

use super::{DataType, OrderItem, Query};

/// A constant in its original notation.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// Int, UInt, Decimal, Double, Str or Null. A temporal literal is a Str; `kind` has its type.
    pub value: Value,
    /// The notation.
    pub kind: LiteralKind,
    /// The number of the literal token in the statement, as in [`crate::Digest`]: a plan for the digest reads
    /// its value by this number. `None` if the value is part of the plan.
    pub ordinal: Option<u32>,
}

/// Notation of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// Number, string, NULL.
    Plain,
    /// A string after its character set, or N'..'.
    Introduced,
    /// TRUE or FALSE (value Int 1 or 0).
    Boolean,
    /// 0x..: a binary string, which is a big-endian unsigned integer in numeric context.
    Hex,
    /// x'..': a binary string in every context.
    HexText,
    /// b'..' or 0b..: like `Hex`, but in base two.
    Bit,
    /// DATE '..'.
    Date,
    /// TIME '..'.
    Time,
    /// TIMESTAMP '..'.
    Timestamp,
}

impl Literal {
    /// Returns a literal that is not a parameter of a cached plan.
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

/// Scope of a system variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VariableScope {
    /// `@@x`. Reading returns the session value, else the global one. Setting changes the session value; for
    /// the isolation level and access mode, that of the next transaction. `SET x` always means the session
    /// value.
    Unspecified,
    /// SESSION or LOCAL.
    Session,
    Global,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`; the literal -9223372036854775808 is the Negate of a UInt.
    Negate,
    /// `+x`. The parser does not produce it, because in MariaDB `+x` is x.
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

/// The right side of IS.
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

/// Sides that TRIM removes characters from.
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
    /// GROUP_CONCAT and JSON_ARRAYAGG only: offset and number of values.
    pub limit: Option<(Option<u64>, u64)>,
}

/// A window function with its window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// An [`Expr::Function`] or an [`Expr::Aggregate`].
    pub function: Expr,
    pub over: Over,
}

/// The window after OVER.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// A window named in the WINDOW clause.
    Name(String),
    Spec(Box<WindowSpec>),
}

/// `([name] [PARTITION BY ..] [ORDER BY ..] [frame])`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSpec {
    /// The named window that this one extends.
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
    /// LIKE; without `escape` the escape character is a backslash, even with NO_BACKSLASH_ESCAPES.
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
    /// TRIM([side] [what] FROM x); without `what` it removes spaces.
    Trim {
        side: TrimSide,
        what: Option<Box<Expr>>,
        expr: Box<Expr>,
    },
    /// A function of a sequence.
    Sequence(Box<super::SequenceCall>),
    /// CHAR(n, ... USING charset); without `charset` the result is binary.
    CharFunction {
        args: Vec<Expr>,
        charset: Option<String>,
    },
    /// Any other call. Special syntax is reduced to plain arguments: SUBSTRING(a FROM b FOR c) is
    /// substring(a, b, c); POSITION(a IN b) is locate(a, b); CURRENT_TIMESTAMP, LOCALTIME and NOW are
    /// now([n]); CURRENT_DATE is curdate(); CURRENT_TIME is curtime([n]); CURRENT_USER is current_user(); `a
    /// || b` under PIPES_AS_CONCAT is concat(a, b); GET_FORMAT(DATE, x) has the word as a text literal. Name
    /// and number of arguments are not checked yet.
    Function {
        name: String,
        args: Vec<Expr>,
    },
    /// `db.f(..)`: a stored function with its database. Without one it is a call whose name is printed
    /// quoted.
    StoredFunction {
        db: Option<String>,
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

    /// DEFAULT as a value of INSERT or UPDATE (`None`), or DEFAULT(column).
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

/// Search mode of AGAINST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchMode {
    /// IN NATURAL LANGUAGE MODE, which is the default.
    Natural,
    /// IN BOOLEAN MODE.
    Boolean,
    /// WITH QUERY EXPANSION.
    Expansion,
}
