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
//! dates and of texts, BETWEEN, IN with constants, LIKE with a constant pattern, IS NULL, AND, OR, NOT. A
//! text is a column or a part of one: SUBSTRING and LEFT whose numbers are constants. All of these warn of
//! nothing and depend on nothing but the row. Constants are evaluated when the program is made; one that
//! warns makes no program. A caller without a program for an expression evaluates it row by row.
//!
//! # On failure
//! A result that does not fit 64 bits stops the program ([`Overflow`]). Nothing has been lost: the caller
//! evaluates these rows one by one, where decimals have more digits and integers have their error.

mod compile;
mod evaluate;

use cohort_types::{Collation, Lane, LaneType, LikePattern};

use crate::expr::CompareOp;

pub use compile::{LaneCompiler, year_of_column};
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

/// The texts of an input, or a part of each.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Text {
    input: usize,
    cut: Option<Cut>,
}

/// Which part of a text: so many characters behind the first ones.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    skip: usize,
    take: usize,
    /// What characters are.
    collation: Collation,
}

impl Text {
    fn of(self, lane: &Lane, n: usize) -> &[u8] {
        let text = lane.text(n);
        let Some(Cut { skip, take, collation }) = self.cut else { return text };
        let rest = &text[collation.prefix_len(text, skip)..];
        &rest[..collation.prefix_len(rest, take)]
    }
}

/// One operation; the numbers are those of steps before, but of `Input` and of lengths that of an input.
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
    CompareText(CompareOp, Text, Vec<u8>, Collation),
    CompareTexts(CompareOp, Text, Text, Collation),
    /// The sort keys, sorted.
    IsTextIn(Text, Vec<Vec<u8>>, Collation),
    Like(Text, Box<LikePattern>),
    IsNull(usize),
    IsTextNull(Text),
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
