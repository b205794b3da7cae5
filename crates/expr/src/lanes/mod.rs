//! Expressions over many rows at once.
//!
//! # Purpose
//! Evaluating a tree of [`crate::Expr`] row by row decodes values, looks at their classes and follows
//! pointers for every node of every row. A scan of many rows asks the same few comparisons and sums of all of
//! them. A [`LaneProgram`] does one operation for some thousand rows, then the next.
//!
//! # Concepts
//! A program is a list of steps in the order of evaluation, each over *inputs* (lanes of columns,
//! [`cohort_types::Lane`]) and the results of steps before. Equal steps are made once, so a part that several
//! expressions share is computed once. A number is an integer of 64 bits with a scale known when the program
//! is made; a truth value is [`NO`], [`YES`] or [`UNKNOWN`].
//!
//! # What has a program
//! Exact numbers (`+`, `-`, `*`, CASE), LENGTH and CHAR_LENGTH of columns, comparisons of exact numbers, of
//! dates and of texts, BETWEEN, IN with constants, LIKE with a constant pattern, IS NULL, AND, OR, NOT. All
//! of these warn of nothing and depend on nothing but the row. Constants are evaluated when the program is
//! made; one that warns makes no program. A caller without a program for an expression evaluates it row by
//! row.
//!
//! # On failure
//! A result that does not fit 64 bits stops the program ([`Overflow`]). Nothing has been lost: the caller
//! evaluates these rows one by one, where decimals have more digits and integers have their error.

mod compile;
mod evaluate;

use cohort_types::{Collation, LaneType, LikePattern};

use crate::expr::CompareOp;

pub use compile::LaneCompiler;
pub use evaluate::Numbers;

/// FALSE.
pub const NO: u8 = 0;
/// TRUE.
pub const YES: u8 = 1;
/// NULL as a truth value.
pub const UNKNOWN: u8 = 2;

/// A number did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// What a program computes, apart from any rows.
#[derive(Debug)]
pub struct LaneProgram {
    /// Numbers of the columns that the inputs are, as the expressions name them.
    inputs: Vec<usize>,
    steps: Vec<Step>,
    registers: Vec<Register>,
}

/// The number of a step whose result is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberAt {
    step: usize,
    /// Digits behind the point.
    pub scale: u8,
    /// An integer, not a decimal.
    pub is_int: bool,
}

/// The number of a step that is a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruthAt(usize);

/// Tells the type of a column's lane; None if it has none.
pub type LaneTypes<'t> = dyn Fn(usize) -> Option<LaneType> + 't;

/// One operation; the numbers are those of steps before, but of `Input` and of texts that of an input.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Input(usize),
    Constant(Option<i64>),
    Add(usize, usize),
    Sub(usize, usize),
    Mul(usize, usize),
    /// The first where the condition holds, else the second.
    Choose(usize, usize, usize),
    Compare(CompareOp, usize, usize),
    CompareConstant(CompareOp, usize, i64),
    /// Sorted.
    IsIn(usize, Vec<i64>),
    CompareText(CompareOp, usize, Vec<u8>, Collation),
    CompareTexts(CompareOp, usize, usize, Collation),
    IsTextIn(usize, Vec<Vec<u8>>, Collation),
    Like(usize, Box<LikePattern>),
    IsNull(usize),
    IsTextNull(usize),
    /// Bytes of a text.
    Bytes(usize),
    /// Characters of a text.
    Characters(usize),
    And(usize, usize),
    Or(usize, usize),
    Not(usize),
}

/// The result of a step.
#[derive(Debug, Default)]
struct Register {
    numbers: Vec<i64>,
    /// Of numbers; empty when none is NULL.
    nulls: Vec<bool>,
    truths: Vec<u8>,
}
