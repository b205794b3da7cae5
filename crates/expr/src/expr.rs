//! The expression tree. Predicates that the optimizer inspects have their own nodes; everything else is a
//! `Call`.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use cohort_types::{Collation, Decimal, FixedKind, Value};

use crate::compare::{CompareHow, InRows, InSet};
use crate::expr_type::{Coercibility, ExprType, Flavor};
use crate::function::{Extra, Function};

/// A bound expression. Every node knows its static type.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A literal, or the result of folding a constant expression.
    Const(Box<Constant>),
    /// The n-th parameter of the statement (a `?`, or a literal lifted out of a cached plan).
    Param(Box<Param>),
    /// A column of the operator's input row.
    Column(Box<Column>),
    /// `a < b` and the other comparisons.
    Compare(Box<Compare>),
    /// `a AND b AND ..`.
    And(Vec<Expr>),
    /// `a OR b OR ..`.
    Or(Vec<Expr>),
    /// `NOT a`.
    Not(Box<Expr>),
    /// `a IS [NOT] NULL`.
    IsNull(Box<IsNull>),
    /// `a [NOT] BETWEEN b AND c`.
    Between(Box<Between>),
    /// `a [NOT] IN (b, c, ..)`.
    In(Box<In>),
    /// `a [NOT] LIKE b ESCAPE c`.
    Like(Box<Like>),
    /// `CASE`.
    Case(Box<Case>),
    /// `CAST(a AS type)`.
    Cast(Box<Cast>),
    /// `(a, b, ..)`: only as an operand of comparisons and IN.
    Row(Vec<Expr>),
    /// A function or an arithmetic operator.
    Call(Box<Call>),
    /// A column of an outer query: a slot of the frame.
    Outer(Box<Outer>),
    /// A subquery.
    Subquery(Box<Subquery>),
    /// A call of a function that runs statements.
    CallBack(Box<CallBack>),
}

/// A column of an outer query. Its value is constant during one run of the inner query.
#[derive(Clone, Debug)]
pub struct Outer {
    /// Index into the frame ([`crate::Subqueries::outer`]).
    pub slot: usize,
    pub ty: ExprType,
    pub name: Arc<str>,
}

/// A subquery as an expression. It is evaluated only if its value is needed.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// Its number in the statement.
    pub id: usize,
    pub test: SubqueryTest,
    pub ty: ExprType,
    /// Slots of the frame to fill before it runs, with the expressions for their values.
    pub outer: Vec<(usize, Expr)>,
    /// Its rows may differ each time it runs.
    pub is_volatile: bool,
}

/// The test or value of a subquery.
#[derive(Clone, Debug)]
pub enum SubqueryTest {
    /// The n-th value of its only row; NULL if there is none. Error 1242 if there are several.
    Column(usize),
    /// EXISTS: whether there is a row.
    Exists,
    /// `operand op ANY|ALL (query)`; IN is `= ANY`, NOT IN `<> ALL`. A row operand is an [`Expr::Row`].
    Quantified { operand: Expr, op: CompareOp, all: bool, how: CompareHow },
}

/// A call of a function that runs statements ([`crate::Subqueries::call`]). Two calls with the same arguments
/// may have different results.
#[derive(Clone, Debug)]
pub struct CallBack {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    /// The function, of a type that [`crate::Subqueries::call`] knows.
    pub function: Arc<dyn Any + Send + Sync>,
    pub args: Vec<Expr>,
    pub ty: ExprType,
}

/// A value known when the tree was built.
#[derive(Clone, Debug)]
pub struct Constant {
    pub value: Value,
    pub ty: ExprType,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Index into `EvalContext::params`.
    pub index: usize,
    /// The type that the planner expects. The bound value may have another one.
    pub ty: ExprType,
}

/// A column reference.
#[derive(Clone, Debug)]
pub struct Column {
    /// Index into the row.
    pub ordinal: usize,
    pub ty: ExprType,
    /// The name in messages, for instance `` `db`.`t`.`a` ``.
    pub name: Arc<str>,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    Eq,
    /// `<=>`: NULL equals NULL.
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    /// Returns the operator for exchanged sides.
    pub fn swapped(self) -> CompareOp {
        match self {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
            same => same,
        }
    }

    /// Returns the operator in SQL.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "=",
            CompareOp::NullSafeEq => "<=>",
            CompareOp::Ne => "<>",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Compare {
    pub op: CompareOp,
    pub left: Expr,
    pub right: Expr,
    pub how: CompareHow,
}

#[derive(Clone, Debug)]
pub struct IsNull {
    pub operand: Expr,
    pub negated: bool,
}

#[derive(Clone, Debug)]
pub struct Between {
    pub operand: Expr,
    pub low: Expr,
    pub high: Expr,
    pub negated: bool,
    pub how: CompareHow,
}

#[derive(Clone, Debug)]
pub struct In {
    pub operand: Expr,
    pub list: Vec<Expr>,
    pub negated: bool,
    pub how: CompareHow,
    /// The list as a set, when it is constant and of one class with the operand.
    pub(crate) set: Option<Arc<InSet>>,
    /// The list of rows as a set, when it is constant.
    pub(crate) rows: Option<Arc<InRows>>,
}

#[derive(Clone, Debug)]
pub struct Like {
    pub operand: Expr,
    pub pattern: Expr,
    /// The escape character; `None` if `escape_by` determines it.
    pub escape: Option<char>,
    /// Yields the escape character at run time, if it is not a literal.
    pub escape_by: Option<Expr>,
    pub negated: bool,
    pub collation: Collation,
}

#[derive(Clone, Debug)]
pub struct Case {
    /// Present in `CASE x WHEN ..`.
    pub operand: Option<Expr>,
    /// WHEN, THEN.
    pub branches: Vec<(Expr, Expr)>,
    pub otherwise: Option<Expr>,
    pub ty: ExprType,
    /// How the operand is compared with each WHEN.
    pub hows: Vec<CompareHow>,
}

#[derive(Clone, Debug)]
pub struct Cast {
    pub operand: Expr,
    pub to: CastType,
    pub ty: ExprType,
}

/// The target of CAST and CONVERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CastType {
    Signed,
    Unsigned,
    /// `size` is (m,d), if given.
    Double {
        size: Option<(u8, u8)>,
    },
    Float,
    Decimal {
        precision: u8,
        decimals: u8,
    },
    /// `CHAR(n)`, `CHAR CHARACTER SET x`, `CONVERT(a USING x)`.
    Char {
        length: Option<u32>,
        collation: Collation,
    },
    /// `BINARY(n)`; values are padded with zero bytes to n.
    Binary {
        length: Option<u32>,
    },
    Date,
    Time {
        decimals: u8,
    },
    DateTime {
        decimals: u8,
    },
    Year,
    Json,
    /// UUID, INET6, INET4.
    Fixed(FixedKind),
}

/// A function applied to arguments.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) function: &'static Function,
    pub(crate) args: Vec<Expr>,
    pub(crate) extra: Extra,
    pub(crate) ty: ExprType,
}

impl Call {
    /// Returns the function's name in lower case.
    pub fn name(&self) -> &'static str {
        self.function.name
    }

    /// Returns the arguments.
    pub fn args(&self) -> &[Expr] {
        &self.args
    }

    /// Returns whether the call reads a system variable.
    pub(crate) fn is_system_variable(&self) -> bool {
        matches!(self.extra, Extra::Variable(..))
    }
}

/// Depth from which on conditions are taken to be nullable.
const CONDITION_DEPTH: u32 = 8;

impl Expr {
    /// Returns a literal with the type that MariaDB gives to literals of this value.
    pub fn constant(value: Value) -> Expr {
        let ty = crate::expr_type::literal_type(&value);
        Expr::Const(Box::new(Constant { value, ty }))
    }

    /// Returns a constant of a given type.
    pub fn typed_constant(value: Value, ty: ExprType) -> Expr {
        Expr::Const(Box::new(Constant { value, ty }))
    }

    /// Returns the literal `0x41` or `b'1000001'`: a binary string that is a big-endian number in arithmetic.
    pub fn hex_literal(bytes: Vec<u8>) -> Expr {
        let mut ty = ExprType::string(bytes.len() as u32, Collation::BINARY, Coercibility::Coercible);
        ty.flavor = Flavor::Hex;
        ty.unsigned = true;
        ty.nullable = false;
        ty.decimals = 0;
        Expr::typed_constant(Value::binary(bytes), ty)
    }

    /// Returns the literal `x'41'`: a binary string.
    pub fn hex_text(bytes: Vec<u8>) -> Expr {
        let Expr::Const(mut node) = Expr::hex_literal(bytes) else { return Expr::null() };
        node.ty.flavor = Flavor::Plain;
        Expr::Const(node)
    }

    /// Returns TRUE or FALSE.
    pub fn boolean(value: bool) -> Expr {
        Expr::typed_constant(Value::Int(i64::from(value)), ExprType::literal_boolean())
    }

    /// Returns NULL.
    pub fn null() -> Expr {
        Expr::constant(Value::Null)
    }

    /// Returns a column of the row.
    pub fn column(ordinal: usize, ty: ExprType, name: impl Into<Arc<str>>) -> Expr {
        Expr::Column(Box::new(Column { ordinal, ty, name: name.into() }))
    }

    /// Returns a parameter.
    pub fn param(index: usize, ty: ExprType) -> Expr {
        Expr::Param(Box::new(Param { index, ty }))
    }

    /// Returns the static type. A row has the type of its first element.
    pub fn ty(&self) -> ExprType {
        match self {
            Expr::Const(node) => node.ty.clone(),
            Expr::Param(node) => node.ty.clone(),
            Expr::Column(node) => node.ty.clone(),
            Expr::Case(node) => node.ty.clone(),
            Expr::Cast(node) => node.ty.clone(),
            Expr::Call(node) => node.ty.clone(),
            Expr::Outer(node) => node.ty.clone(),
            Expr::Subquery(node) => node.ty.clone(),
            Expr::CallBack(node) => node.ty.clone(),
            Expr::Row(items) => items.first().map_or_else(ExprType::null, Expr::ty),
            Expr::IsNull(_) => ExprType::boolean().with_nullable(false),
            condition => ExprType::boolean().with_nullable(condition.may_be_unknown(CONDITION_DEPTH)),
        }
    }

    /// Returns whether a condition may be neither true nor false; true if it is deeper than `depth`.
    fn may_be_unknown(&self, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return true };
        let nullable = |e: &Expr| match e {
            Expr::Row(items) => items.iter().any(|item| item.may_be_null(depth)),
            other => other.may_be_null(depth),
        };
        match self {
            Expr::Compare(node) => {
                node.op != CompareOp::NullSafeEq && (nullable(&node.left) || nullable(&node.right))
            }
            Expr::And(items) | Expr::Or(items) => items.iter().any(nullable),
            Expr::Not(operand) => nullable(operand),
            Expr::Between(node) => nullable(&node.operand) || nullable(&node.low) || nullable(&node.high),
            Expr::In(node) => nullable(&node.operand) || node.list.iter().any(nullable),
            Expr::Like(node) => nullable(&node.operand) || nullable(&node.pattern),
            _ => true,
        }
    }

    fn may_be_null(&self, depth: u32) -> bool {
        match self.type_ref() {
            Some(ty) => ty.nullable,
            None if matches!(self, Expr::IsNull(_)) => false,
            None if let Expr::Row(items) = self => {
                depth == 0 || items.iter().any(|item| item.may_be_null(depth - 1))
            }
            None => self.may_be_unknown(depth),
        }
    }

    /// Returns the static type, without a copy if the node has it.
    pub(crate) fn ty_cow(&self) -> Cow<'_, ExprType> {
        self.type_ref().map_or_else(|| Cow::Owned(self.ty()), Cow::Borrowed)
    }

    /// Returns a cast that rounds a decimal expression to the decimals of its type.
    pub fn rounded_to_type(self) -> Expr {
        let ty = self.ty();
        let to = CastType::Decimal { precision: Decimal::MAX_PRECISION, decimals: ty.decimals };
        Expr::Cast(Box::new(Cast { operand: self, to, ty }))
    }

    /// Returns the type that the node has, if it has one.
    pub(crate) fn type_ref(&self) -> Option<&ExprType> {
        match self {
            Expr::Const(node) => Some(&node.ty),
            Expr::Param(node) => Some(&node.ty),
            Expr::Column(node) => Some(&node.ty),
            Expr::Case(node) => Some(&node.ty),
            Expr::Cast(node) => Some(&node.ty),
            Expr::Call(node) => Some(&node.ty),
            Expr::Outer(node) => Some(&node.ty),
            Expr::Subquery(node) => Some(&node.ty),
            Expr::CallBack(node) => Some(&node.ty),
            _ => None,
        }
    }
}
