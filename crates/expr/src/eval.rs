//! Evaluation of expression nodes.

use std::borrow::Cow;
use std::cmp::Ordering;

use cohort_types::{CountBytes, Decimal, Interrupt, SqlError, SqlMode, SqlResult, TimeZone as _, Value};
use smallvec::SmallVec;

use crate::args::Args;
use crate::compare::{CompareHow, compare_operands, read_constant};
use crate::context::EvalContext;
use crate::convert::zero_filled;
use crate::expr::{Between, Call, CallBack, Case, Compare, CompareOp, Expr, In, Like};
use crate::expr_type::{ExprType, Flavor, NOT_FIXED_DECIMALS, TypeClass};
use crate::{SessionEnv, convert};

static NULL: Value = Value::Null;

fn truth<'a>(answer: Option<bool>) -> Cow<'a, Value> {
    Cow::Owned(match answer {
        Some(v) => Value::Int(i64::from(v)),
        None => Value::Null,
    })
}

impl Expr {
    /// Returns the expression's value for a row. Columns, constants and parameters are borrowed. A TIMESTAMP
    /// column becomes a DATETIME in the session's time zone. A quotient may have more digits than its type;
    /// they count if it is stored or used in a computation. [`Expr::eval_output`] rounds them.
    pub fn eval<'a>(&'a self, row: &'a [Value], ctx: &'a EvalContext<'_>) -> SqlResult<Cow<'a, Value>> {
        match self {
            Expr::Const(node) => Ok(Cow::Borrowed(&node.value)),
            Expr::Param(node) => Ok(Cow::Borrowed(ctx.params.get(node.index).unwrap_or(&NULL))),
            Expr::Column(node) => match &row[node.ordinal] {
                Value::Timestamp(t) => Ok(Cow::Owned(Value::DateTime(ctx.env.time_zone.to_local(*t)))),
                value => Ok(Cow::Borrowed(value)),
            },
            node => node.eval_node(row, ctx),
        }
    }

    /// Returns the value of a leaf that needs no conversion, which most operands are.
    #[inline]
    pub(crate) fn leaf<'a>(&'a self, row: &'a [Value], ctx: &'a EvalContext<'_>) -> Option<&'a Value> {
        match self {
            Expr::Column(node) => Some(&row[node.ordinal]).filter(|v| !matches!(v, Value::Timestamp(_))),
            Expr::Const(node) => (node.ty.flavor == Flavor::Plain).then_some(&node.value),
            Expr::Param(node) => ctx.params.get(node.index),
            _ => None,
        }
    }

    /// Variant of [`Expr::eval`] for nodes with operands.
    fn eval_node<'a>(&'a self, row: &'a [Value], ctx: &'a EvalContext<'_>) -> SqlResult<Cow<'a, Value>> {
        ctx.check_stack()?;
        match self {
            Expr::Call(call) => call.eval(row, ctx).map(Cow::Owned),
            Expr::Case(node) => eval_case(node, row, ctx),
            Expr::Cast(node) => crate::cast::eval(node, row, ctx),
            Expr::Outer(node) => ctx.subqueries()?.outer(node.slot).map(Cow::Owned),
            Expr::Subquery(node) => ctx.subqueries()?.value(node, row, ctx).map(Cow::Owned),
            Expr::CallBack(node) => call_back(node, row, ctx).map(Cow::Owned),
            Expr::Row(items) => items.first().map_or(Ok(Cow::Borrowed(&NULL)), |first| first.eval(row, ctx)),
            condition => condition.eval_bool(row, ctx).map(truth),
        }
    }

    /// Returns the value for a result set, a temporary table, a sort or a group: with the digits of its type.
    pub fn eval_output<'a>(
        &'a self,
        row: &'a [Value],
        ctx: &'a EvalContext<'_>,
    ) -> SqlResult<Cow<'a, Value>> {
        Ok(self.with_own_digits(self.eval(row, ctx)?))
    }

    /// Rounds a value of this expression to the digits of its type.
    fn with_own_digits<'v>(&self, value: Cow<'v, Value>) -> Cow<'v, Value> {
        match (value.as_ref(), self.type_ref()) {
            (Value::Decimal(d), Some(ty)) if ty.class() == TypeClass::Decimal && d.scale() != ty.decimals => {
                let decimals = ty.decimals.min(Decimal::MAX_SCALE);
                Cow::Owned(Value::Decimal(d.round(i32::from(decimals)).unwrap_or(*d)))
            }
            _ => value,
        }
    }

    /// Returns the value as an operand of a comparison: a decimal has the digits of its type if it is
    /// compared as an exact number, and all its digits if it is compared with a double or a text.
    fn eval_compared<'a>(
        &'a self,
        row: &'a [Value],
        other: &Expr,
        how: &CompareHow,
        ctx: &'a EvalContext<'_>,
    ) -> SqlResult<Cow<'a, Value>> {
        Ok(self.compared_value(self.eval(row, ctx)?, other, how))
    }

    /// Rounds a value of this expression for a comparison, as [`Expr::eval_compared`] does.
    #[inline]
    pub(crate) fn compared_value<'v>(
        &self,
        value: Cow<'v, Value>,
        other: &Expr,
        how: &CompareHow,
    ) -> Cow<'v, Value> {
        match (value.as_ref(), self.type_ref()) {
            (Value::Decimal(d), Some(ty)) if d.scale() != ty.decimals && compares_exactly(other, how) => {
                self.with_own_digits(value)
            }
            _ => value,
        }
    }

    /// Returns the value as text, `None` for NULL.
    pub fn eval_text<'a>(
        &'a self,
        row: &'a [Value],
        ctx: &'a EvalContext<'_>,
    ) -> SqlResult<Option<Cow<'a, [u8]>>> {
        let value = self.eval(row, ctx)?;
        ctx.count_value(&value)?;
        let decimals = self.type_ref().map_or(0, |ty| ty.decimals);
        let value = match (self, value) {
            // A variable declared as DOUBLE(m,d) has the digits of its type; any other bound value has its
            // own.
            (Expr::Param(param), v)
                if param.ty.class() == TypeClass::Real && param.ty.decimals < NOT_FIXED_DECIMALS =>
            {
                return Ok(convert::text_of_cow(v, param.ty.decimals));
            }
            (Expr::Param(_), v) => return Ok(convert::text_of_cow(v, NOT_FIXED_DECIMALS)),
            // As text, a boolean variable is ON or OFF.
            (Expr::Call(call), Cow::Owned(Value::Int(v))) if call.is_system_variable() => {
                let word: &[u8] = if v == 0 { b"OFF" } else { b"ON" };
                return Ok(Some(Cow::Borrowed(word)));
            }
            (_, v) => v,
        };
        let text = convert::text_of_cow(value, decimals);
        Ok(match self.type_ref().map(|ty| ty.flavor) {
            Some(Flavor::Zerofill(width)) => text.map(|text| zero_filled(text, width)),
            _ => text,
        })
    }

    /// Evaluates the expression as a condition; `None` is UNKNOWN.
    pub fn eval_bool(&self, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
        ctx.check_stack()?;
        match self {
            Expr::Compare(node) => eval_compare(node, row, ctx),
            Expr::And(items) => eval_and(items, row, ctx),
            Expr::Or(items) => eval_or(items, row, ctx),
            Expr::Not(operand) => Ok(operand.eval_nonzero(row, ctx)?.map(|v| !v)),
            Expr::IsNull(node) => Ok(Some(node.operand.eval(row, ctx)?.is_null() != node.negated)),
            Expr::Between(node) => eval_between(node, row, ctx),
            Expr::In(node) => eval_in(node, row, ctx),
            Expr::Like(node) => eval_like(node, row, ctx),
            other => {
                let value = other.as_number(other.eval(row, ctx)?)?;
                convert::to_bool(&value, ctx)
            }
        }
    }

    /// Evaluates an operand of NOT, AND or OR. A text that is neither a literal nor a parameter is compared
    /// with 0 as a DECIMAL.
    fn eval_nonzero(&self, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
        let is_text = |ty: &ExprType| ty.class() == TypeClass::String && !ty.null_literal;
        if matches!(self, Expr::Const(_) | Expr::Param(_)) || !self.type_ref().is_some_and(is_text) {
            return self.eval_bool(row, ctx);
        }
        let value = self.as_number(self.eval(row, ctx)?)?;
        Ok(convert::to_decimal(&value, ctx)?.map(|number| !number.is_zero()))
    }

    /// Returns true if a row passes the condition. UNKNOWN does not pass.
    pub fn passes(&self, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<bool> {
        Ok(self.eval_bool(row, ctx)? == Some(true))
    }
}

impl Call {
    fn eval(&self, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Value> {
        ctx.step()?;
        let value = (self.function.eval)(Args { call: self, row, ctx })?;
        ctx.count_value(&value)?;
        Ok(value)
    }
}

impl CompareOp {
    /// Returns true if the operator holds for this order of its operands.
    #[inline]
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            CompareOp::Eq | CompareOp::NullSafeEq => order.is_eq(),
            CompareOp::Ne => order.is_ne(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::Le => order.is_le(),
            CompareOp::Gt => order.is_gt(),
            CompareOp::Ge => order.is_ge(),
        }
    }
}

fn eval_compare(node: &Compare, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
    if let (Expr::Row(left), Expr::Row(right), CompareHow::Row(hows)) = (&node.left, &node.right, &node.how) {
        return compare_row_exprs(node.op, left, right, hows, row, ctx);
    }
    if let (Some(a), Some(b)) = (node.left.leaf(row, ctx), node.right.leaf(row, ctx))
        && let Some(order) = compare_plain(a, b, &node.how)
    {
        return Ok(Some(node.op.accepts(order)));
    }
    let left = node.left.eval_compared(row, &node.right, &node.how, ctx)?;
    if left.is_null() && node.op != CompareOp::NullSafeEq {
        return Ok(None);
    }
    let right = node.right.eval_compared(row, &node.left, &node.how, ctx)?;
    if node.op == CompareOp::NullSafeEq && (left.is_null() || right.is_null()) {
        // Both sides are converted, so an invalid number warns even if the other side is NULL.
        compare_operands(&left, &right, &node.how, [Some(&node.left), Some(&node.right)], ctx)?;
        compare_operands(&right, &left, &node.how, [Some(&node.right), Some(&node.left)], ctx)?;
        return Ok(Some(left.is_null() && right.is_null()));
    }
    match (left.as_ref(), right.as_ref(), &node.how) {
        (Value::Int(a), Value::Int(b), _) => return Ok(Some(node.op.accepts(a.cmp(b)))),
        (Value::Decimal(a), Value::Decimal(b), CompareHow::Scalar { class: None, .. }) => {
            return Ok(Some(node.op.accepts(a.cmp(b))));
        }
        _ => {}
    }
    let right = read_constant(right, &node.right, &left, &node.how, ctx)?;
    let left = read_constant(left, &node.left, &right, &node.how, ctx)?;
    Ok(compare_operands(&left, &right, &node.how, [Some(&node.left), Some(&node.right)], ctx)?
        .map(|order| node.op.accepts(order)))
}

/// Returns true if a decimal is compared with this operand as an exact number.
fn compares_exactly(other: &Expr, how: &CompareHow) -> bool {
    match how {
        CompareHow::Scalar { class: Some(class), .. } => *class == TypeClass::Decimal,
        _ => other.type_ref().is_none_or(|ty| matches!(ty.class(), TypeClass::Int | TypeClass::Decimal)),
    }
}

/// Texts from this length on are compared by code that checks for KILL.
const COUNTED_BYTES: usize = 4096;

/// Compares two values of one type that need no conversion; `None` for other values.
#[inline]
fn compare_plain(a: &Value, b: &Value, how: &CompareHow) -> Option<Ordering> {
    let CompareHow::Scalar { collation, class: None } = how else { return None };
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => Some(x.cmp(y)),
        (Value::Str(x), Value::Str(y)) if x.bytes.len().min(y.bytes.len()) < COUNTED_BYTES => {
            Some(collation.compare(&x.bytes, &y.bytes))
        }
        (Value::Date(x), Value::Date(y)) => Some(x.cmp(y)),
        (Value::DateTime(x), Value::DateTime(y)) => Some(x.cmp(y)),
        _ => None,
    }
}

/// Compares rows. `=` is the conjunction of its parts; `<` is decided by the first difference. A NULL before
/// that makes the result UNKNOWN.
fn compare_row_exprs(
    op: CompareOp,
    left: &[Expr],
    right: &[Expr],
    hows: &[CompareHow],
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<bool>> {
    Ok(row_order(op, left, right, hows, Digits::OfType, row, ctx)?.map(|order| op.accepts(order)))
}

/// Digits of a quotient that count in a comparison of exact numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Digits {
    /// Digits of its type, for comparison operators.
    OfType,
    /// All digits, for IN.
    All,
}

/// Returns the order of two rows for an operator; `None` is UNKNOWN.
fn row_order(
    op: CompareOp,
    left: &[Expr],
    right: &[Expr],
    hows: &[CompareHow],
    digits: Digits,
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<Ordering>> {
    let mut unknown = false;
    for ((l, r), how) in left.iter().zip(right).zip(hows) {
        let order = match (l, r, how) {
            (Expr::Row(l), Expr::Row(r), CompareHow::Row(hows)) => {
                row_order(op, l, r, hows, digits, row, ctx)?
            }
            _ => {
                let (a, b) = match digits {
                    Digits::OfType => {
                        (l.eval_compared(row, r, how, ctx)?, r.eval_compared(row, l, how, ctx)?)
                    }
                    Digits::All => (l.eval(row, ctx)?, r.eval(row, ctx)?),
                };
                match compare_operands(&a, &b, how, [Some(l), Some(r)], ctx)? {
                    None if op == CompareOp::NullSafeEq && a.is_null() == b.is_null() => {
                        Some(Ordering::Equal)
                    }
                    None if op == CompareOp::NullSafeEq => Some(Ordering::Less),
                    order => order,
                }
            }
        };
        match order {
            Some(Ordering::Equal) => {}
            None if matches!(op, CompareOp::Eq | CompareOp::Ne) => unknown = true,
            decided => return Ok(decided),
        }
    }
    Ok(if unknown { None } else { Some(Ordering::Equal) })
}

fn eval_and(items: &[Expr], row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
    let mut answer = Some(true);
    for item in items {
        match item.eval_nonzero(row, ctx)? {
            Some(true) => {}
            Some(false) => return Ok(Some(false)),
            None => answer = None,
        }
    }
    Ok(answer)
}

fn eval_or(items: &[Expr], row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
    let mut answer = Some(false);
    for item in items {
        match item.eval_nonzero(row, ctx)? {
            Some(false) => {}
            Some(true) => return Ok(Some(true)),
            None => answer = None,
        }
    }
    Ok(answer)
}

fn eval_between(node: &Between, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
    let value = node.operand.eval(row, ctx)?;
    if value.is_null() {
        return Ok(None);
    }
    let value = read_once(node, value, ctx)?;
    let low = node.low.eval(row, ctx)?;
    let high = node.high.eval(row, ctx)?;
    let operand = Some(&node.operand);
    let above =
        compare_operands(&value, &low, &node.how, [operand, Some(&node.low)], ctx)?.map(Ordering::is_ge);
    let below =
        compare_operands(&value, &high, &node.how, [operand, Some(&node.high)], ctx)?.map(Ordering::is_le);
    let inside = match (above, below) {
        (Some(true), Some(true)) => Some(true),
        (Some(false), _) | (_, Some(false)) => Some(false),
        _ => None,
    };
    Ok(inside.map(|v| v != node.negated))
}

/// Converts the operand of BETWEEN to the class of both comparisons, so that it warns once.
fn read_once<'v>(node: &Between, value: Cow<'v, Value>, ctx: &EvalContext<'_>) -> SqlResult<Cow<'v, Value>> {
    let CompareHow::Scalar { class: Some(class), .. } = &node.how else { return Ok(value) };
    let from = convert::Origin::compared(Some(&node.operand));
    Ok(match class {
        TypeClass::Date | TypeClass::DateTime => {
            Cow::Owned(Value::DateTime(convert::to_datetime(&value, from, ctx)?.unwrap_or_default()))
        }
        TypeClass::Time => Cow::Owned(Value::Time(convert::to_time(&value, from, ctx)?.unwrap_or_default())),
        TypeClass::Decimal | TypeClass::Real if matches!(*value, Value::Str(_)) => {
            let value = node.operand.as_number(value)?;
            let read = match class {
                TypeClass::Decimal => convert::to_decimal(&value, ctx)?.map(Value::Decimal),
                _ => convert::to_f64(&value, ctx)?.map(Value::Double),
            };
            Cow::Owned(read.unwrap_or(Value::Null))
        }
        _ => value,
    })
}

fn eval_in(node: &In, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
    if let Expr::Row(items) = &node.operand {
        return eval_row_in(node, items, row, ctx);
    }
    let value = node.operand.eval(row, ctx)?;
    if value.is_null() {
        return Ok(None);
    }
    ctx.count_value(&value)?;
    if let Some(found) = node.set.as_ref().and_then(|set| set.lookup(&value)) {
        return Ok(found.map(|v| v != node.negated));
    }
    let mut found = Some(false);
    for item in &node.list {
        let candidate = read_constant(item.eval(row, ctx)?, item, &value, &node.how, ctx)?;
        match compare_operands(&value, &candidate, &node.how, [Some(&node.operand), Some(item)], ctx)? {
            Some(Ordering::Equal) => return Ok(Some(!node.negated)),
            Some(_) => {}
            None => found = None,
        }
    }
    Ok(found.map(|v| v != node.negated))
}

fn eval_row_in(node: &In, items: &[Expr], row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
    let Some(rows) = &node.rows else { return search_rows(node, &node.list, items, row, ctx) };
    let values: Vec<Cow<'_, Value>> =
        items.iter().map(|item| item.eval(row, ctx)).collect::<SqlResult<_>>()?;
    values.iter().try_for_each(|value| ctx.count_value(value))?;
    match rows.lookup(values.iter().map(|value| &**value)) {
        Some(true) => Ok(Some(!node.negated)),
        Some(false) => search_rows(node, rows.others.iter().map(|n| &node.list[*n]), items, row, ctx),
        None => search_rows(node, &node.list, items, row, ctx),
    }
}

/// Compares a row with the rows of the list one by one.
fn search_rows<'e>(
    node: &In,
    candidates: impl IntoIterator<Item = &'e Expr>,
    items: &[Expr],
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<bool>> {
    let mut found = Some(false);
    for candidate in candidates {
        let (Expr::Row(parts), CompareHow::Row(hows)) = (candidate, &node.how) else { return Ok(None) };
        let order = row_order(CompareOp::Eq, items, parts, hows, Digits::All, row, ctx)?;
        match order.map(Ordering::is_eq) {
            Some(true) => return Ok(Some(!node.negated)),
            Some(false) => {}
            None => found = None,
        }
    }
    Ok(found.map(|v| v != node.negated))
}

fn eval_like(node: &Like, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<bool>> {
    let Some(text) = node.operand.eval_text(row, ctx)? else { return Ok(None) };
    let Some(pattern) = node.pattern.eval_text(row, ctx)? else { return Ok(None) };
    let escape = match &node.escape_by {
        None => node.escape,
        Some(by) => match by.eval_text(row, ctx)? {
            Some(text) => Some(escape_char(&String::from_utf8_lossy(&text), ctx.env)?),
            None => Some('\\'),
        },
    };
    let matches = node.collation.like_within(&text, &pattern, escape, ctx)?;
    Ok(Some(matches != node.negated))
}

fn eval_case<'a>(node: &'a Case, row: &'a [Value], ctx: &'a EvalContext<'_>) -> SqlResult<Cow<'a, Value>> {
    let chosen = match &node.operand {
        None => choose_by_condition(node, row, ctx)?,
        Some(operand) => {
            let value = operand.eval(row, ctx)?;
            if value.is_null() { None } else { choose_by_value(node, &value, row, ctx)? }
        }
    };
    let Some(branch) = chosen.or(node.otherwise.as_ref()) else { return Ok(Cow::Borrowed(&NULL)) };
    let value = branch.eval(row, ctx)?;
    let own = branch.ty_cow();
    convert::to_class(value, &own, &node.ty, ctx)
}

fn choose_by_condition<'a>(
    node: &'a Case,
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<&'a Expr>> {
    for (when, then) in &node.branches {
        if when.passes(row, ctx)? {
            return Ok(Some(then));
        }
    }
    Ok(None)
}

fn choose_by_value<'a>(
    node: &'a Case,
    value: &Value,
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<&'a Expr>> {
    for ((when, then), how) in node.branches.iter().zip(&node.hows) {
        let candidate = when.eval(row, ctx)?;
        if compare_operands(value, &candidate, how, [node.operand.as_ref(), Some(when)], ctx)?
            == Some(Ordering::Equal)
        {
            return Ok(Some(then));
        }
    }
    Ok(None)
}

/// Returns the escape character for the text of an ESCAPE clause.
pub(crate) fn escape_char(text: &str, env: &SessionEnv) -> SqlResult<char> {
    let mut chars = text.chars();
    let first = chars.next();
    let keeps_backslash = env.sql_mode.has(SqlMode::NO_BACKSLASH_ESCAPES);
    if chars.next().is_some() || (first.is_none() && keeps_backslash) {
        return Err(wrong_escape());
    }
    // An empty text means the default, as without ESCAPE.
    Ok(first.unwrap_or('\\'))
}

pub(crate) fn wrong_escape() -> SqlError {
    SqlError::wrong_arguments("ESCAPE")
}

/// Runs a function that runs statements.
fn call_back(node: &CallBack, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Value> {
    // Parameters are variables: in strict mode, a warning of an argument is an error.
    let abort = ctx.replace_abort_on_warning(ctx.env.sql_mode.is_strict());
    let args = node.args.iter().map(|arg| arg.eval(row, ctx).map(Cow::into_owned));
    let args = args.collect::<SqlResult<SmallVec<[Value; 4]>>>();
    ctx.replace_abort_on_warning(abort);
    ctx.subqueries()?.call(node, &args?, ctx)
}
