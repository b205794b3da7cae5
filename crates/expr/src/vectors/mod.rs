//! Vectorized evaluation: expressions over batches of rows.
//!
//! # Purpose
//! Evaluating a tree of [`crate::Expr`] row by row decodes values, tests their classes and follows pointers
//! for every node and every row. A scan of many rows repeats the same few comparisons and sums. A
//! [`VectorProgram`] performs one operation for some thousand rows, then the next one.
//!
//! # Concepts
//! A program is a list of steps in the order of evaluation. Operands of a step are *inputs* (column vectors,
//! [`cohort_types::Vector`]) and results of earlier steps. Equal steps are stored once, so a subexpression
//! that several expressions share is computed once. A number is a 64-bit integer with a scale that is known
//! at compile time; a truth value is [`NO`], [`YES`] or [`UNKNOWN`].
//!
//! # Supported expressions
//! - Exact numbers: `+`, `-`, `*`, CASE, LENGTH and CHAR_LENGTH of columns.
//! - Comparisons of exact numbers, of dates and of texts; BETWEEN, IN with constants, LIKE with a constant
//!   pattern, IS NULL, AND, OR, NOT.
//! - Texts: columns, and SUBSTRING and LEFT of columns with constant positions.
//!
//! All of these raise no warnings and depend on nothing but the row. Constants are evaluated at compile time;
//! an expression with a constant that warns is not supported. The caller evaluates unsupported expressions
//! row by row.
//!
//! # On failure
//! A result that exceeds 64 bits stops the program ([`Overflow`]). No state is lost: the caller evaluates
//! these rows one by one, with more digits for decimals, and with an error for integers.

mod compile;
mod evaluate;

use cohort_types::{Collation, LikePattern, Vector, VectorType};

use crate::expr::CompareOp;

pub use compile::{VectorCompiler, year_of_column};
pub use evaluate::Numbers;

/// FALSE.
pub const NO: u8 = 0;
/// TRUE.
pub const YES: u8 = 1;
/// NULL as a truth value.
pub const UNKNOWN: u8 = 2;

/// A result exceeded 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// A compiled program, with registers for the results of a batch.
#[derive(Debug)]
pub struct VectorProgram {
    /// Ordinals of the input columns, as in the expressions.
    inputs: Vec<usize>,
    steps: Vec<Step>,
    registers: Vec<Register>,
}

/// A step with a numeric result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberAt {
    step: usize,
    /// Number of fraction digits.
    pub scale: u8,
    /// True for an integer, false for a decimal.
    pub is_int: bool,
}

/// A step with a truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruthAt(usize);

/// Returns the vector type of a column, `None` if it has none.
pub type VectorTypes<'t> = dyn Fn(usize) -> Option<VectorType> + 't;

/// The texts of an input, or a substring of each.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Text {
    input: usize,
    cut: Option<Cut>,
}

/// A substring: `take` characters after the first `skip`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    skip: usize,
    take: usize,
    /// Collation that defines the characters.
    collation: Collation,
}

impl Text {
    fn of(self, vector: &Vector, n: usize) -> &[u8] {
        let text = vector.text(n);
        let Some(Cut { skip, take, collation }) = self.cut else { return text };
        let rest = &text[collation.prefix_len(text, skip)..];
        &rest[..collation.prefix_len(rest, take)]
    }
}

/// An operation. Operands are earlier steps, except that `Input`, `Bytes` and `Characters` name an input.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Input(usize),
    Constant(Option<i64>),
    Add(usize, usize),
    Sub(usize, usize),
    Mul(usize, usize),
    /// The second operand where the first (a condition) is true, otherwise the third.
    Choose(usize, usize, usize),
    Compare(CompareOp, usize, usize),
    CompareConstant(CompareOp, usize, i64),
    /// Values are sorted.
    IsIn(usize, Vec<i64>),
    CompareText(CompareOp, Text, Vec<u8>, Collation),
    CompareTexts(CompareOp, Text, Text, Collation),
    /// Sort keys of the values, sorted.
    IsTextIn(Text, Vec<Vec<u8>>, Collation),
    Like(Text, Box<LikePattern>),
    IsNull(usize),
    IsTextNull(Text),
    /// Length of a text in bytes.
    Bytes(usize),
    /// Length of a text in characters.
    Characters(usize),
    And(usize, usize),
    Or(usize, usize),
    Not(usize),
}

/// Results of a step for a batch.
#[derive(Debug, Default)]
struct Register {
    numbers: Vec<i64>,
    /// NULLs of `numbers`; empty if there are none.
    nulls: Vec<bool>,
    truths: Vec<u8>,
}
