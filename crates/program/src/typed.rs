//! Typed expressions: numbers and conditions that are evaluated over the places of a frame alone.
//!
//! # Exactness
//! An evaluation yields a value only if nothing unusual happens. A number that overflows, a division by zero,
//! and a value of another type than the declared one yield [`Got::Miss`]. The expression is then evaluated
//! by `cohort_expr`, which raises the error or the warning. Typed expressions have no side effects, so the
//! second evaluation starts from the same state.
//!
//! # Representation
//! Integers and decimals are 64-bit numbers with a scale that is known when the expression is compiled: a
//! decimal of up to 18 digits is its mantissa. UNSIGNED is a property of the type: a result below 0 misses.

use cohort_expr::CompareOp;
use cohort_types::{Decimal, Value};

/// Maximum number of digits of a decimal that is kept as a 64-bit mantissa.
pub(crate) const DIGITS_MAX: u8 = 18;

/// The result of a typed evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Got<T> {
    Is(T),
    Null,
    /// The expression must be evaluated by the general way.
    Miss,
}

/// The type of an exact number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExactKind {
    Int,
    UInt,
    /// A decimal with this scale.
    Decimal(u8),
}

impl ExactKind {
    pub fn scale(self) -> u8 {
        match self {
            ExactKind::Decimal(scale) => scale,
            ExactKind::Int | ExactKind::UInt => 0,
        }
    }

    /// Returns a number of this kind as a value.
    #[inline]
    pub fn value(self, number: i64) -> Value {
        match self {
            ExactKind::Int => Value::Int(number),
            ExactKind::UInt => Value::UInt(number as u64),
            ExactKind::Decimal(scale) => Value::Decimal(Decimal::from_i128(number.into(), scale)),
        }
    }
}

/// An operator on exact numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExactOp {
    Add,
    Sub,
    Mul,
    /// DIV.
    Quotient,
    /// MOD.
    Rest,
}

/// An exact number: an integer, or the mantissa of a decimal.
#[derive(Debug)]
pub(crate) enum Exact {
    Const(i64),
    /// A place of a type with a sign.
    Int(u32),
    UInt(u32),
    Decimal(u32, u8),
    /// A number brought to a larger scale.
    Scaled(Box<Exact>, i64),
    Binary(Box<Binary>),
    Negative(Box<Exact>),
    /// A condition as a number.
    Truth(Box<Test>),
    /// CASE without an operand, IF.
    Choice(Box<Choice>),
}

#[derive(Debug)]
pub(crate) struct Binary {
    pub op: ExactOp,
    pub left: Exact,
    pub right: Exact,
    /// A result below 0 is out of range.
    pub unsigned: bool,
}

#[derive(Debug)]
pub(crate) struct Choice {
    pub branches: Vec<(Test, Exact)>,
    pub otherwise: Option<Exact>,
}

/// Evaluates to the number, or returns NULL or a miss from the calling function.
macro_rules! number {
    ($got:expr, $none:expr, $miss:expr) => {
        match $got {
            Got::Is(number) => number,
            Got::Null => return $none,
            Got::Miss => return $miss,
        }
    };
}

impl Exact {
    /// Evaluates over the places of a frame.
    #[inline]
    pub fn eval(&self, places: &[Value]) -> Got<i64> {
        match self {
            Exact::Int(place) => match &places[*place as usize] {
                Value::Int(number) => Got::Is(*number),
                Value::Null => Got::Null,
                _ => Got::Miss,
            },
            Exact::Const(number) => Got::Is(*number),
            node => node.eval_node(places),
        }
    }

    fn eval_node(&self, places: &[Value]) -> Got<i64> {
        match self {
            Exact::Binary(node) => node.eval(places),
            Exact::UInt(place) => match &places[*place as usize] {
                Value::UInt(number) => i64::try_from(*number).map_or(Got::Miss, Got::Is),
                Value::Null => Got::Null,
                _ => Got::Miss,
            },
            Exact::Decimal(place, scale) => match &places[*place as usize] {
                Value::Decimal(number) if number.scale() == *scale => {
                    number.mantissa_at(*scale).map_or(Got::Miss, Got::Is)
                }
                Value::Null => Got::Null,
                _ => Got::Miss,
            },
            Exact::Scaled(operand, factor) => {
                let number = number!(operand.eval(places), Got::Null, Got::Miss);
                number.checked_mul(*factor).map_or(Got::Miss, Got::Is)
            }
            Exact::Negative(operand) => {
                let number = number!(operand.eval(places), Got::Null, Got::Miss);
                number.checked_neg().map_or(Got::Miss, Got::Is)
            }
            Exact::Truth(test) => match test.eval(places) {
                Got::Is(holds) => Got::Is(holds.into()),
                Got::Null => Got::Null,
                Got::Miss => Got::Miss,
            },
            Exact::Choice(choice) => {
                for (when, then) in &choice.branches {
                    match when.eval(places) {
                        Got::Is(true) => return then.eval(places),
                        Got::Is(false) | Got::Null => {}
                        Got::Miss => return Got::Miss,
                    }
                }
                choice.otherwise.as_ref().map_or(Got::Null, |otherwise| otherwise.eval(places))
            }
            Exact::Int(_) | Exact::Const(_) => self.eval(places),
        }
    }
}

impl Binary {
    #[inline]
    fn eval(&self, places: &[Value]) -> Got<i64> {
        let left = number!(self.left.eval(places), self.right.null_or_miss(places), Got::Miss);
        let right = number!(self.right.eval(places), Got::Null, Got::Miss);
        let exact = match self.op {
            ExactOp::Add => left.checked_add(right),
            ExactOp::Sub => left.checked_sub(right),
            ExactOp::Mul => left.checked_mul(right),
            // Division by zero is a miss, too.
            ExactOp::Quotient => left.checked_div(right),
            ExactOp::Rest => left.checked_rem(right),
        };
        match exact {
            Some(number) if number >= 0 || !self.unsigned => Got::Is(number),
            _ => Got::Miss,
        }
    }
}

impl Exact {
    /// Returns NULL unless the evaluation of the other operand misses.
    #[cold]
    fn null_or_miss(&self, places: &[Value]) -> Got<i64> {
        match self.eval(places) {
            Got::Miss => Got::Miss,
            _ => Got::Null,
        }
    }
}

/// An operator on doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RealOp {
    Add,
    Sub,
    Mul,
    Div,
}

/// A double.
#[derive(Debug)]
pub(crate) enum Real {
    Const(f64),
    Place(u32),
    /// An integer as a double.
    Exact(Exact),
    Binary(Box<(RealOp, Real, Real)>),
    Negative(Box<Real>),
}

impl Real {
    pub fn eval(&self, places: &[Value]) -> Got<f64> {
        match self {
            Real::Const(number) => Got::Is(*number),
            Real::Place(place) => match &places[*place as usize] {
                Value::Double(number) => Got::Is(*number),
                Value::Null => Got::Null,
                _ => Got::Miss,
            },
            Real::Exact(operand) => Got::Is(number!(operand.eval(places), Got::Null, Got::Miss) as f64),
            Real::Negative(operand) => Got::Is(-number!(operand.eval(places), Got::Null, Got::Miss)),
            Real::Binary(node) => {
                let (op, left, right) = &**node;
                let left = match left.eval(places) {
                    Got::Is(number) => number,
                    Got::Null if right.eval(places) == Got::Miss => return Got::Miss,
                    other => return other,
                };
                let right = number!(right.eval(places), Got::Null, Got::Miss);
                let number = match op {
                    RealOp::Add => left + right,
                    RealOp::Sub => left - right,
                    RealOp::Mul => left * right,
                    RealOp::Div if right == 0.0 => return Got::Miss,
                    RealOp::Div => left / right,
                };
                if number.is_finite() { Got::Is(number) } else { Got::Miss }
            }
        }
    }
}

/// A condition.
#[derive(Debug)]
pub(crate) enum Test {
    /// Numbers of one scale.
    Exact(CompareOp, Exact, Exact),
    Real(CompareOp, Real, Real),
    NonZero(Exact),
    RealNonZero(Real),
    IsNull {
        place: u32,
        negated: bool,
    },
    Between {
        operand: Exact,
        low: Exact,
        high: Exact,
        negated: bool,
    },
    /// A list without NULL.
    In {
        operand: Exact,
        list: Vec<i64>,
        negated: bool,
    },
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
}

impl Test {
    /// Evaluates a condition. NULL is UNKNOWN.
    #[inline]
    pub fn eval(&self, places: &[Value]) -> Got<bool> {
        match self {
            Test::Exact(op, left, right) if *op != CompareOp::NullSafeEq => {
                let left = number!(left.eval(places), right.null_or_miss(places).unknown(), Got::Miss);
                let right = number!(right.eval(places), Got::Null, Got::Miss);
                Got::Is(op.accepts(left.cmp(&right)))
            }
            test => test.eval_node(places),
        }
    }

    fn eval_node(&self, places: &[Value]) -> Got<bool> {
        match self {
            Test::Exact(_, left, right) => match (left.eval(places), right.eval(places)) {
                (Got::Miss, _) | (_, Got::Miss) => Got::Miss,
                (left, right) => Got::Is(left == right),
            },
            Test::Real(op, left, right) => match (left.eval(places), right.eval(places)) {
                (Got::Miss, _) | (_, Got::Miss) => Got::Miss,
                (left, right) if *op == CompareOp::NullSafeEq => Got::Is(left == right),
                (Got::Is(left), Got::Is(right)) => {
                    left.partial_cmp(&right).map_or(Got::Miss, |order| Got::Is(op.accepts(order)))
                }
                _ => Got::Null,
            },
            Test::NonZero(operand) => Got::Is(number!(operand.eval(places), Got::Null, Got::Miss) != 0),
            Test::RealNonZero(operand) => Got::Is(number!(operand.eval(places), Got::Null, Got::Miss) != 0.0),
            Test::IsNull { place, negated } => Got::Is(places[*place as usize].is_null() != *negated),
            Test::Between { operand, low, high, negated } => {
                let number = number!(operand.eval(places), Got::Null, Got::Miss);
                let above = match low.eval(places) {
                    Got::Is(low) => Some(number >= low),
                    Got::Null => None,
                    Got::Miss => return Got::Miss,
                };
                let below = match high.eval(places) {
                    Got::Is(high) => Some(number <= high),
                    Got::Null => None,
                    Got::Miss => return Got::Miss,
                };
                match (above, below) {
                    (Some(true), Some(true)) => Got::Is(!negated),
                    (Some(false), _) | (_, Some(false)) => Got::Is(*negated),
                    _ => Got::Null,
                }
            }
            Test::In { operand, list, negated } => {
                let number = number!(operand.eval(places), Got::Null, Got::Miss);
                Got::Is(list.contains(&number) != *negated)
            }
            Test::And(items) => all(items, places, false),
            Test::Or(items) => all(items, places, true),
            Test::Not(operand) => Got::Is(!number!(operand.eval(places), Got::Null, Got::Miss)),
        }
    }
}

/// Evaluates AND, which ends with the first false condition, or OR, which ends with the first true one.
fn all(items: &[Test], places: &[Value], end: bool) -> Got<bool> {
    let mut outcome = Got::Is(!end);
    for item in items {
        match item.eval(places) {
            Got::Is(holds) if holds == end => return Got::Is(end),
            Got::Is(_) => {}
            Got::Null => outcome = Got::Null,
            Got::Miss => return Got::Miss,
        }
    }
    outcome
}

impl Got<i64> {
    fn unknown(self) -> Got<bool> {
        match self {
            Got::Miss => Got::Miss,
            _ => Got::Null,
        }
    }
}

/// A number, or NULL.
#[derive(Debug)]
pub(crate) enum Number {
    Exact(ExactKind, Exact),
    Real(Real),
    Null,
}
