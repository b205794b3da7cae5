//! Constructors of expressions. They check arity, derive the static type and pick how operands compare.
//!
//! All of them take the session's settings: some of them (collation, `div_precision_increment`, `sql_mode`)
//! become part of the tree. A cached plan is keyed by those.

use cohort_types::{Collation, SqlResult, Value};

use crate::context::{SessionEnv, VariableScope};
use crate::expr::{CastType, CompareOp, Expr, IntervalUnit};
use crate::expr_type::ExprType;

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Mod,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Compare(CompareOp),
    And,
    Or,
    Xor,
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Neg,
    Plus,
    BitNot,
    Not,
}

/// Which side TRIM cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

/// The right side of IS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    True,
    False,
    Unknown,
}

/// `date + INTERVAL` or `date - INTERVAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalOp {
    Add,
    Sub,
}

/// The type of a literal.
pub(crate) fn literal_type(value: &Value) -> ExprType {
    let _ = value;
    todo!()
}

/// A function by name (any case). Error 1305 when there is none, 1582 on a wrong number of arguments.
pub fn build_call(name: &str, args: Vec<Expr>, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (name, args, env);
    todo!()
}

/// `left op right`.
pub fn build_binary(op: BinaryOp, left: Expr, right: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (op, left, right, env);
    todo!()
}

/// `op operand`.
pub fn build_unary(op: UnaryOp, operand: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (op, operand, env);
    todo!()
}

/// A comparison; rows compare element by element (error 1241 when their sizes differ).
pub fn compare_exprs(op: CompareOp, left: Expr, right: Expr) -> SqlResult<Expr> {
    let _ = (op, left, right);
    todo!()
}

/// A conjunction; nested ones are flattened, none is TRUE.
pub fn and(conditions: Vec<Expr>) -> Expr {
    let _ = conditions;
    todo!()
}

/// A disjunction; nested ones are flattened, none is FALSE.
pub fn or(conditions: Vec<Expr>) -> Expr {
    let _ = conditions;
    todo!()
}

/// NOT; a negated comparison becomes the opposite one.
pub fn not(operand: Expr) -> Expr {
    let _ = operand;
    todo!()
}

/// `operand IS [NOT] NULL`.
pub fn is_null(operand: Expr, negated: bool) -> Expr {
    let _ = (operand, negated);
    todo!()
}

/// `operand IS [NOT] TRUE | FALSE | UNKNOWN`.
pub fn is_truth(operand: Expr, truth: Truth, negated: bool) -> Expr {
    let _ = (operand, truth, negated);
    todo!()
}

/// `operand [NOT] BETWEEN low AND high`.
pub fn between(operand: Expr, low: Expr, high: Expr, negated: bool) -> SqlResult<Expr> {
    let _ = (operand, low, high, negated);
    todo!()
}

/// `operand [NOT] IN (list)`.
pub fn in_list(operand: Expr, list: Vec<Expr>, negated: bool) -> SqlResult<Expr> {
    let _ = (operand, list, negated);
    todo!()
}

/// `operand [NOT] LIKE pattern [ESCAPE escape]`; `escape` as written, `None` when it was not.
pub fn like(
    operand: Expr,
    pattern: Expr,
    escape: Option<&str>,
    negated: bool,
    env: &SessionEnv,
) -> SqlResult<Expr> {
    let _ = (operand, pattern, escape, negated, env);
    todo!()
}

/// `operand [NOT] REGEXP pattern`.
pub fn regexp(operand: Expr, pattern: Expr, negated: bool, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (operand, pattern, negated, env);
    todo!()
}

/// `CASE [operand] WHEN .. THEN .. [ELSE ..] END`.
pub fn case(operand: Option<Expr>, branches: Vec<(Expr, Expr)>, otherwise: Option<Expr>) -> SqlResult<Expr> {
    let _ = (operand, branches, otherwise);
    todo!()
}

/// `CAST(operand AS to)`.
pub fn cast(operand: Expr, to: CastType, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (operand, to, env);
    todo!()
}

/// `operand COLLATE collation`.
pub fn collate(operand: Expr, collation: Collation, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (operand, collation, env);
    todo!()
}

/// `(a, b, ..)`; one element is that element.
pub fn row(items: Vec<Expr>) -> Expr {
    let _ = items;
    todo!()
}

/// `operand +/- INTERVAL amount unit`, DATE_ADD, DATE_SUB.
pub fn date_arith(
    operand: Expr,
    op: IntervalOp,
    amount: Expr,
    unit: IntervalUnit,
    env: &SessionEnv,
) -> SqlResult<Expr> {
    let _ = (operand, op, amount, unit, env);
    todo!()
}

/// `EXTRACT(unit FROM operand)`.
pub fn extract(unit: IntervalUnit, operand: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (unit, operand, env);
    todo!()
}

/// `TIMESTAMPADD(unit, amount, operand)`.
pub fn timestamp_add(unit: IntervalUnit, amount: Expr, operand: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    date_arith(operand, IntervalOp::Add, amount, unit, env)
}

/// `TIMESTAMPDIFF(unit, from, to)`.
pub fn timestamp_diff(unit: IntervalUnit, from: Expr, to: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (unit, from, to, env);
    todo!()
}

/// `TRIM([side] [remove] FROM operand)`.
pub fn trim(side: TrimSide, remove: Option<Expr>, operand: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (side, remove, operand, env);
    todo!()
}

/// `@name`; `ty` is what the variable holds now (long text when unknown).
pub fn user_variable(name: &str, ty: Option<ExprType>, env: &SessionEnv) -> Expr {
    let _ = (name, ty, env);
    todo!()
}

/// `@name := value`.
pub fn user_variable_assign(name: &str, value: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let _ = (name, value, env);
    todo!()
}

/// `@@name`; `current` is its value now, which gives the type.
pub fn system_variable(scope: VariableScope, name: &str, current: &Value, env: &SessionEnv) -> Expr {
    let _ = (scope, name, current, env);
    todo!()
}
