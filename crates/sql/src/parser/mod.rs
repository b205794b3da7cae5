//! The grammar.

use std::ops::Range;

use cohort_types::SqlResult;

use crate::ast::Statement;
use crate::{ParseMode, ParseOptions};

/// A statement with what its text tells besides.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub statement: Statement,
    /// Number of `?` in it.
    pub params: u32,
    /// Whether a plan made of it may serve every statement with the same digest: all literals are
    /// `Expr::Literal` with an ordinal and none decides more than a value. The planner clears it for itself when
    /// it looked at a literal's value.
    pub cacheable: bool,
}

/// Reads one statement (a `;` at the end is allowed). Errors: 1064 with the text near the fault, 1065 for an
/// empty text, 1235 for what is MariaDB's language but not there yet.
pub fn parse(_sql: &[u8], _options: &ParseOptions) -> SqlResult<Parsed> {
    todo!()
}

/// Finds the end of the first statement of `sql`: its range without the `;`, and where the next one starts. None
/// when only spaces, comments and `;` are left.
pub fn next_statement(_sql: &[u8], _mode: ParseMode) -> Option<(Range<usize>, usize)> {
    todo!()
}
