//! Evaluation of aggregate functions: [`AggregateState`] accumulates one group.

use std::collections::HashSet;

use cohort_types::{
    Class, Collation, CountBytes, Decimal, IntValue, NoWarnings, SqlError, SqlResult, TypeKind, Value,
};

use crate::aggregate_call::{Aggregate, AggregateKind, AggregateOptions, Quantifier};
use crate::arith::real_decimals;
use crate::compare::{append_group_key, compare_same};
use crate::context::{EvalContext, SessionEnv};
use crate::convert;
use crate::expr::Expr;
use crate::expr_type::{Coercibility, Derived, ExprType, Flavor, NOT_FIXED_DECIMALS, TypeClass};
use crate::group_text::{self, TextState};
use crate::mixing::joined_texts;
use crate::typing::{byte_width, joined_collation, long_string_of, precision_of, scale_of};

/// Bytes of an entry of [`Seen`] in addition to its key.
const SEEN_BYTES: usize = 40;

/// The accumulator of one group.
#[derive(Clone, Debug)]
pub struct AggregateState {
    /// Keys of the arguments so far, for DISTINCT. Boxed because there are many states and few use it.
    seen: Option<Box<Seen>>,
    sum: Accumulated,
}

/// An aggregate that the caller, such as a vectorized operator, has accumulated for a group.
#[derive(Clone, Debug)]
pub enum Gathered {
    Count(u64),
    /// Sum of `count` integers or decimals, multiplied by 10^scale.
    Total {
        total: i128,
        scale: u8,
        is_int: bool,
        count: u64,
    },
    /// The least or greatest value; NULL if there is none.
    Extreme(Value),
}

/// Keys of arguments that must not be counted again.
#[derive(Clone, Debug, Default)]
struct Seen {
    keys: HashSet<Vec<u8>, ahash::RandomState>,
}

/// Intermediate result of a group.
#[derive(Clone, Debug)]
enum Accumulated {
    Count(u64),
    /// Sum and number of values, for SUM and AVG.
    Total {
        total: Total,
        count: u64,
    },
    /// The best value so far, and the bytes of its text that are charged to the statement.
    Extreme(Value, usize),
    Bits(u64),
    /// Running mean and sum of squared distances from it.
    Moments {
        mean: f64,
        squares: f64,
        count: u64,
    },
    Text(TextState),
}

#[derive(Clone, Copy, Debug)]
enum Total {
    /// Integers; 2^64 values of 64 bits cannot overflow it.
    Int(i128),
    Decimal(Decimal),
    Real(f64),
}

impl AggregateState {
    /// Returns true if equal arguments count once.
    pub fn is_distinct(&self) -> bool {
        self.seen.is_some()
    }

    /// Returns the bytes that the group has charged to the statement ([`EvalContext::keep`]). The caller must
    /// release them after its last use of the group.
    pub fn kept_bytes(&self) -> usize {
        let keys = self
            .seen
            .iter()
            .flat_map(|seen| &seen.keys)
            .map(|key| key.capacity() + SEEN_BYTES)
            .sum::<usize>();
        let gathered = match &self.sum {
            Accumulated::Text(text) => text.kept_bytes(),
            Accumulated::Extreme(_, kept) => *kept,
            _ => 0,
        };
        keys + gathered
    }
}

impl Aggregate {
    /// Checks the arguments and derives the type.
    pub fn new(
        kind: AggregateKind,
        args: Vec<Expr>,
        options: AggregateOptions,
        env: &SessionEnv,
    ) -> SqlResult<Aggregate> {
        let expected = match kind {
            AggregateKind::CountStar => 0..=0,
            AggregateKind::Rows => 0..=usize::MAX,
            AggregateKind::JsonObjectagg => 2..=2,
            AggregateKind::GroupConcat => 1..=usize::MAX,
            AggregateKind::Count if options.quantifier == Quantifier::Distinct => 1..=usize::MAX,
            _ => 1..=1,
        };
        if !expected.contains(&args.len()) {
            return Err(SqlError::wrong_param_count(kind.name()));
        }
        if args.iter().any(|a| matches!(a, Expr::Row(_))) {
            return Err(crate::control::wrong_columns(1));
        }
        let mut args = args;
        let ty = result_type(kind, &mut args, env)?;
        Ok(Aggregate { kind, args, options, ty })
    }

    /// Creates the state of an empty group.
    pub fn new_state(&self) -> AggregateState {
        let sum = match self.kind {
            AggregateKind::CountStar | AggregateKind::Count => Accumulated::Count(0),
            AggregateKind::Sum | AggregateKind::Avg => {
                let total = match self.ty.class() {
                    TypeClass::Real => Total::Real(0.0),
                    _ => Total::Int(0),
                };
                Accumulated::Total { total, count: 0 }
            }
            AggregateKind::Min | AggregateKind::Max => Accumulated::Extreme(Value::Null, 0),
            AggregateKind::BitAnd => Accumulated::Bits(u64::MAX),
            AggregateKind::BitOr | AggregateKind::BitXor => Accumulated::Bits(0),
            AggregateKind::StdPop
            | AggregateKind::StdSamp
            | AggregateKind::VarPop
            | AggregateKind::VarSamp => Accumulated::Moments { mean: 0.0, squares: 0.0, count: 0 },
            AggregateKind::GroupConcat
            | AggregateKind::JsonArrayagg
            | AggregateKind::JsonObjectagg
            | AggregateKind::Rows => Accumulated::Text(TextState::default()),
        };
        // MIN and MAX have the same result with DISTINCT.
        let idempotent = matches!(self.kind, AggregateKind::Min | AggregateKind::Max);
        let distinct = self.options.quantifier == Quantifier::Distinct && !idempotent;
        AggregateState { seen: distinct.then(Box::default), sum }
    }

    /// Creates the state of a group that the caller has accumulated.
    pub fn gathered(&self, gathered: Gathered) -> AggregateState {
        let sum = match gathered {
            Gathered::Count(count) => Accumulated::Count(count),
            Gathered::Total { total, count, is_int: true, .. } => {
                Accumulated::Total { total: Total::Int(total), count }
            }
            Gathered::Total { total, scale, count, .. } => {
                Accumulated::Total { total: Total::Decimal(Decimal::from_i128(total, scale)), count }
            }
            Gathered::Extreme(value) => Accumulated::Extreme(value, 0),
        };
        AggregateState { seen: None, sum }
    }

    /// Adds a row to the group.
    pub fn add(&self, state: &mut AggregateState, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<()> {
        let is_distinct = state.seen.is_some();
        if let Some(seen) = &mut state.seen {
            let Some(key) = self.distinct_key(row, ctx)? else { return Ok(()) };
            let bytes = key.capacity() + SEEN_BYTES;
            if !seen.keys.insert(key) {
                return Ok(());
            }
            ctx.keep(bytes)?;
        }
        match &mut state.sum {
            Accumulated::Count(count) => {
                for arg in &self.args {
                    if arg.eval(row, ctx)?.is_null() {
                        return Ok(());
                    }
                }
                *count += 1;
                Ok(())
            }
            Accumulated::Text(text) => group_text::add(self, text, row, ctx),
            sum => {
                if let Accumulated::Total { total: Total::Int(sum), count } = sum
                    && let Some(Value::Int(v)) = self.args[0].leaf(row, ctx)
                {
                    *sum += i128::from(*v);
                    *count += 1;
                    return Ok(());
                }
                if let Accumulated::Total { total: Total::Decimal(sum), count } = sum
                    && let Some(Value::Decimal(v)) = self.args[0].leaf(row, ctx)
                {
                    *sum = sum.add(v).map_err(sum_overflow)?;
                    *count += 1;
                    return Ok(());
                }
                let value = match self.kind {
                    AggregateKind::Min | AggregateKind::Max => self.args[0].eval(row, ctx)?,
                    _ => self.args[0].eval_number(row, ctx)?,
                };
                // Texts under DISTINCT become numbers without a warning.
                if is_distinct && let Value::Str(_) = *value {
                    let number = value.to_f64(&mut NoWarnings).map_or(Value::Null, Value::Double);
                    return self.add_value(sum, &number, ctx);
                }
                // DISTINCT adds decimals rounded to the scale of the argument's type.
                if is_distinct && let Value::Decimal(number) = &*value {
                    let decimals = i32::from(self.args[0].ty_cow().decimals);
                    let number = Value::Decimal(number.round(decimals).unwrap_or(*number));
                    return self.add_value(sum, &number, ctx);
                }
                if value.is_null() { Ok(()) } else { self.add_value(sum, &value, ctx) }
            }
        }
    }

    fn add_value(&self, sum: &mut Accumulated, value: &Value, ctx: &EvalContext<'_>) -> SqlResult<()> {
        match sum {
            Accumulated::Total { total, count } => {
                *total = total.plus(value, ctx)?;
                *count += 1;
            }
            Accumulated::Extreme(best, kept) => {
                ctx.count_value(value)?;
                let order = self.order(value, best);
                let better = match self.kind {
                    AggregateKind::Min => order.is_lt(),
                    _ => order.is_gt(),
                };
                if best.is_null() || better {
                    let bytes = if let Value::Str(text) = value { text.bytes.len() } else { 0 };
                    ctx.keep_instead(*kept, bytes)?;
                    *kept = bytes;
                    *best = match value {
                        Value::Bit { bits, .. } => Value::UInt(*bits),
                        other => other.clone(),
                    };
                }
            }
            Accumulated::Bits(bits) => {
                let next = match value {
                    // A decimal is converted as a signed number.
                    Value::Decimal(_) => crate::cast::to_signed(value, ctx)?.and_then(|v| integer(&v)),
                    value => convert::to_int(value, ctx)?.map(IntValue::wide),
                };
                let next = next.unwrap_or(0) as u64;
                match self.kind {
                    AggregateKind::BitAnd => *bits &= next,
                    AggregateKind::BitOr => *bits |= next,
                    _ => *bits ^= next,
                }
            }
            Accumulated::Moments { mean, squares, count } => {
                let next = convert::to_f64(value, ctx)?.unwrap_or(0.0);
                *count += 1;
                let before = *mean;
                *mean += (next - before) / *count as f64;
                *squares += (next - before) * (next - *mean);
            }
            Accumulated::Count(_) | Accumulated::Text(_) => {}
        }
        Ok(())
    }

    /// Merges another state of the same aggregate, as if its rows had been added here. Error 1235 for
    /// DISTINCT and for aggregates with a text result.
    pub fn merge(
        &self,
        state: &mut AggregateState,
        other: &AggregateState,
        ctx: &EvalContext<'_>,
    ) -> SqlResult<()> {
        if state.seen.is_some() {
            return Err(SqlError::not_supported("merging DISTINCT aggregates"));
        }
        match (&mut state.sum, &other.sum) {
            (Accumulated::Count(count), Accumulated::Count(more)) => *count += more,
            (Accumulated::Total { total, count }, Accumulated::Total { total: other, count: more }) => {
                if *more > 0 {
                    *total = match (*total, other) {
                        (Total::Int(sum), Total::Int(other)) => Total::Int(sum + other),
                        (sum, other) => sum.plus(&other.value(), ctx)?,
                    };
                    *count += more;
                }
            }
            (sum @ Accumulated::Extreme(..), Accumulated::Extreme(best, _)) => {
                if !best.is_null() {
                    self.add_value(sum, best, ctx)?;
                }
            }
            (Accumulated::Bits(bits), Accumulated::Bits(other)) => match self.kind {
                AggregateKind::BitAnd => *bits &= other,
                AggregateKind::BitOr => *bits |= other,
                _ => *bits ^= other,
            },
            (
                Accumulated::Moments { mean, squares, count },
                Accumulated::Moments { mean: other, squares: more, count: rows },
            ) => {
                let (a, b) = (*count as f64, *rows as f64);
                if b > 0.0 {
                    let distance = other - *mean;
                    *mean += distance * b / (a + b);
                    *squares += more + distance * distance * a * b / (a + b);
                    *count += rows;
                }
            }
            _ => return Err(SqlError::not_supported("merging aggregates of this kind")),
        }
        Ok(())
    }

    /// Compares two values for MIN and MAX, which order ENUM and SET by their text.
    fn order(&self, value: &Value, best: &Value) -> std::cmp::Ordering {
        let collation = self.ty.collation;
        match (value, best) {
            (
                Value::Enum { label: a, .. } | Value::Set { label: a, .. },
                Value::Enum { label: b, .. } | Value::Set { label: b, .. },
            ) => collation.compare(&a.bytes, &b.bytes),
            _ => compare_same(value, best, collation),
        }
    }

    /// Returns the arguments as one key. Returns `None` if an argument is NULL, because DISTINCT skips such
    /// rows, except in JSON_ARRAYAGG.
    fn distinct_key(&self, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Option<Vec<u8>>> {
        let mut key = Vec::new();
        for arg in &self.args {
            let value = arg.eval_output(row, ctx)?;
            if value.is_null() && self.kind != AggregateKind::JsonArrayagg {
                return Ok(None);
            }
            append_group_key(&value, arg.ty_cow().collation, &mut key, ctx)?;
        }
        Ok(Some(key))
    }

    /// Returns the result of the group.
    pub fn finish(&self, state: AggregateState, ctx: &EvalContext<'_>) -> SqlResult<Value> {
        Ok(match state.sum {
            Accumulated::Count(count) => Value::Int(i64::try_from(count).unwrap_or(i64::MAX)),
            Accumulated::Total { count: 0, .. } => Value::Null,
            Accumulated::Total { total, count } => {
                if self.kind == AggregateKind::Avg {
                    self.average(total, count, ctx)
                } else {
                    total.value()
                }
            }
            Accumulated::Extreme(best, _) => best,
            Accumulated::Bits(bits) => Value::UInt(bits),
            Accumulated::Moments { squares, count, .. } => self.spread(squares, count),
            Accumulated::Text(text) => return group_text::finish(self, text, ctx),
        })
    }

    fn average(&self, total: Total, count: u64, ctx: &EvalContext<'_>) -> Value {
        let exact = match total {
            Total::Real(sum) => return Value::Double(sum / count as f64),
            Total::Int(sum) => Decimal::from_i128(sum, 0),
            Total::Decimal(sum) => sum,
        };
        match exact.div(&Decimal::from_u64(count), ctx.env.div_precision_increment) {
            Some(Ok(quotient)) => Value::Decimal(quotient),
            _ => Value::Null,
        }
    }

    fn spread(&self, squares: f64, count: u64) -> Value {
        let sample = matches!(self.kind, AggregateKind::StdSamp | AggregateKind::VarSamp);
        let divisor = if sample { count.saturating_sub(1) } else { count };
        if divisor == 0 {
            return Value::Null;
        }
        let variance = squares / divisor as f64;
        let root = matches!(self.kind, AggregateKind::StdPop | AggregateKind::StdSamp);
        Value::Double(if root { variance.sqrt() } else { variance })
    }
}

impl Total {
    fn plus(self, value: &Value, ctx: &EvalContext<'_>) -> SqlResult<Total> {
        if let (Total::Int(sum), Value::Int(v)) = (self, value) {
            return Ok(Total::Int(sum + i128::from(*v)));
        }
        Ok(match self {
            Total::Real(sum) => Total::Real(sum + convert::to_f64(value, ctx)?.unwrap_or(0.0)),
            Total::Int(sum) => match integer(value) {
                Some(v) => Total::Int(sum + v),
                None if matches!(value.class(), Class::Real | Class::Str) => {
                    Total::Real(sum as f64 + convert::to_f64(value, ctx)?.unwrap_or(0.0))
                }
                None => {
                    let next = convert::to_decimal(value, ctx)?.unwrap_or(Decimal::ZERO);
                    Total::Decimal(Decimal::from_i128(sum, 0).add(&next).map_err(sum_overflow)?)
                }
            },
            Total::Decimal(sum) => {
                let next = match value {
                    Value::Decimal(next) => *next,
                    other => convert::to_decimal(other, ctx)?.unwrap_or(Decimal::ZERO),
                };
                Total::Decimal(sum.add(&next).map_err(sum_overflow)?)
            }
        })
    }

    fn value(self) -> Value {
        match self {
            Total::Int(sum) => Value::Decimal(Decimal::from_i128(sum, 0)),
            Total::Decimal(sum) => Value::Decimal(sum),
            Total::Real(sum) => Value::Double(sum),
        }
    }
}

fn sum_overflow(_: cohort_types::Overflow) -> SqlError {
    SqlError::result_out_of_range("DECIMAL", "sum")
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(v) => Some(IntValue::Signed(*v).wide()),
        Value::UInt(v) => Some(IntValue::Unsigned(*v).wide()),
        Value::Bit { bits, .. } => Some(i128::from(*bits)),
        _ => None,
    }
}

fn result_type(kind: AggregateKind, args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let increment = u32::from(env.div_precision_increment);
    if matches!(kind, AggregateKind::Sum | AggregateKind::Avg)
        && let Some(fixed) = args[0].ty_cow().fixed_kind()
    {
        let operation = if kind == AggregateKind::Sum { "sum(" } else { "avg(" };
        return Err(SqlError::illegal_type(fixed.name(), operation));
    }
    Ok(match kind {
        AggregateKind::CountStar | AggregateKind::Count => ExprType::bigint(21).with_nullable(false),
        AggregateKind::Sum => match exact_digits(&args[0]) {
            Some((precision, scale)) => ExprType::decimal((precision + 22).min(65), scale as u8, false),
            None => real_type(&args[0], 0),
        },
        AggregateKind::Avg => match exact_digits(&args[0]) {
            Some((precision, scale)) => {
                let scale = (scale + increment).min(38);
                ExprType::decimal((precision + increment).min(65).max(scale), scale as u8, false)
            }
            None => {
                let ty = real_type(&args[0], increment);
                // MariaDB computes the length with 32 bits.
                let bytes = byte_width(&args[0]) as u32;
                let length = bytes.wrapping_add(increment).min(ty.length);
                ExprType { length, ..ty }
            }
        },
        // BIT is a number here.
        AggregateKind::Min | AggregateKind::Max if args[0].ty_cow().kind == TypeKind::Bit => {
            ExprType::bigint(args[0].ty_cow().length).with_unsigned(true)
        }
        AggregateKind::Min | AggregateKind::Max => extreme_type(&args[0]),
        AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => {
            ExprType::number(TypeKind::BigInt, 21, 0).with_unsigned(true).with_nullable(false)
        }
        AggregateKind::StdPop | AggregateKind::StdSamp | AggregateKind::VarPop | AggregateKind::VarSamp => {
            match exact_digits(&args[0]) {
                Some((precision, scale)) => {
                    let decimals = (scale + increment).min(30);
                    ExprType::double_fixed(precision * 2 + increment + 2, decimals as u8)
                }
                None => {
                    let length = real_type(&args[0], 0).length;
                    ExprType { length, ..real_type(&args[0], increment) }
                }
            }
        }
        AggregateKind::Rows => ExprType::string(u32::MAX, Collation::BINARY, Coercibility::Implicit),
        AggregateKind::GroupConcat => {
            text_of_bytes(joined_texts(args, env, "group_concat")?, env.group_concat_max_len)
        }
        AggregateKind::JsonArrayagg | AggregateKind::JsonObjectagg => {
            let brackets = if kind == AggregateKind::JsonArrayagg { 2 } else { 0 };
            let derived = joined_collation(args, env, "json_arrayagg")?;
            ExprType { flavor: Flavor::Json, ..text_of_bytes(derived, env.group_concat_max_len + brackets) }
        }
    })
}

fn extreme_type(arg: &Expr) -> ExprType {
    let ty = arg.ty().taken().with_nullable(true);
    match ty.class() {
        TypeClass::Real => ExprType { length: real_type(arg, 0).length, ..ty },
        _ => ty,
    }
}

/// Returns the TEXT or BLOB type of a length in bytes.
fn text_of_bytes(derived: Derived, length: u64) -> ExprType {
    let mut ty = long_string_of(derived, length);
    ty.kind = if derived.collation == Collation::BINARY { TypeKind::Blob } else { TypeKind::Text };
    ty.decimals = 0;
    ty
}

/// Returns precision and scale of an argument with an exact sum.
fn exact_digits(arg: &Expr) -> Option<(u32, u32)> {
    let ty = arg.ty_cow();
    match ty.class() {
        // ENUM and SET are summed as their numbers.
        TypeClass::String if matches!(ty.kind, TypeKind::Enum | TypeKind::Set) => Some((ty.length, 0)),
        TypeClass::Real | TypeClass::String => None,
        _ => Some((precision_of(arg), scale_of(arg))),
    }
}

fn real_type(arg: &Expr, more: u32) -> ExprType {
    let decimals = real_decimals(arg) + more;
    if decimals < u32::from(NOT_FIXED_DECIMALS) {
        return ExprType::double_fixed(17 + decimals, decimals as u8);
    }
    ExprType::double()
}
