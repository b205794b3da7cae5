//! Session settings that affect parsing.

use cohort_types::{Charset, Collation, SqlMode};

/// Flags of `sql_mode` that affect the parser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ParseMode {
    /// ANSI_QUOTES: `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// PIPES_AS_CONCAT: `||` concatenates; otherwise it is OR.
    pub pipes_as_concat: bool,
    /// NO_BACKSLASH_ESCAPES: the backslash is an ordinary character in strings.
    pub no_backslash_escapes: bool,
    /// EMPTY_STRING_IS_NULL: '' is NULL.
    pub empty_string_is_null: bool,
    /// HIGH_NOT_PRECEDENCE: NOT has the precedence of `!`.
    pub high_not_precedence: bool,
    /// REAL_AS_FLOAT: REAL is FLOAT, not DOUBLE.
    pub real_as_float: bool,
    /// IGNORE_SPACE: spaces are allowed between a function's name and its parenthesis.
    pub ignore_space: bool,
    /// ORACLE: all set operators have the same precedence, and MINUS is EXCEPT.
    pub oracle: bool,
}

impl From<SqlMode> for ParseMode {
    fn from(mode: SqlMode) -> ParseMode {
        ParseMode {
            ansi_quotes: mode.has(SqlMode::ANSI_QUOTES),
            pipes_as_concat: mode.has(SqlMode::PIPES_AS_CONCAT),
            no_backslash_escapes: mode.has(SqlMode::NO_BACKSLASH_ESCAPES),
            empty_string_is_null: mode.has(SqlMode::EMPTY_STRING_IS_NULL),
            high_not_precedence: mode.has(SqlMode::HIGH_NOT_PRECEDENCE),
            real_as_float: mode.has(SqlMode::REAL_AS_FLOAT),
            ignore_space: mode.has(SqlMode::IGNORE_SPACE),
            oracle: mode.has(SqlMode::ORACLE),
        }
    }
}

/// Options for parsing a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParseOptions {
    pub mode: ParseMode,
    /// Collation of string literals: the session's `collation_connection`.
    pub collation: Collation,
    /// Character set of the text before its conversion to UTF-8. A string after an introducer has these
    /// original bytes.
    pub client: Charset,
}

impl Default for ParseOptions {
    fn default() -> ParseOptions {
        ParseOptions {
            mode: ParseMode::default(),
            collation: Collation::UTF8MB4_GENERAL_CI,
            client: Charset::Utf8mb4,
        }
    }
}
