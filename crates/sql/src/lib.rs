//! The SQL language: text in, statement out.
//!
//! Texts are UTF-8 bytes (string literals may contain any bytes). [`next_statement`] splits a multi-statement
//! text, [`parse`] parses one statement, and [`Digest::of`] finds the cached plan of a repeated statement
//! without parsing it.
//!
//! | module | concept |
//! |---|---|
//! | `ast` | statements as plain data |
//! | `options` | [`ParseOptions`]: the settings of a session that affect parsing |
//! | `lexer`, `literal` | tokens, literals, comments |
//! | `client_text` | [`decode_literals`]: statements in character sets that are not supersets of ASCII |
//! | `parser` | the grammar |
//! | `digest` | [`Digest`]: a hash of a statement without its literals |
//! | `plan_cache` | [`PlanCache`]: plans by digest |
//! | `plannable` | [`Plannable`]: queries and row changes |
//! | `first_words` | [`first_words`]: the kind of a statement, even if it cannot be parsed |
//! | `secrets` | [`for_replicas`]: account statements in the form that is logged for replicas |
//! | `secret_text` | [`without_secrets`], [`secret_literals`]: password redaction for logs and lists |
//! | `statement_digest`, `keywords` | [`StatementDigest`]: the normalised text of a statement |
//! | `unsafe_words` | [`has_unsafe_words`]: constructs that are unsafe for statement-based replication |
//! | `print` | quoted identifiers and strings; expressions as text |
//! | `print_query`, `print_json_table`, `print_window`, `print_type` | queries and their parts as text |
//! | `print_text` | names, strings and constants as text |

pub mod ast;
mod client_text;
mod digest;
mod first_words;
mod keywords;
mod lexer;
mod literal;
mod options;
mod parser;
mod plan_cache;
mod plannable;
pub mod print;
mod print_json_table;
pub mod print_query;
mod print_text;
mod print_type;
mod print_window;
mod secret_text;
mod secrets;
mod statement_digest;
mod unsafe_words;

pub use client_text::decode_literals;
pub use digest::Digest;
pub use first_words::{changes_rows, defines_program, first_words};
pub use keywords::keywords;
pub use lexer::{comments_before, executed_text, only_here};
pub use options::{ParseMode, ParseOptions};
pub use parser::{
    Charge, IDENTIFIER_CHARS_MAX, Parsed, function_without_parens, has_statement, is_window_function,
    next_statement, parse, parse_charged, parse_own, syntax_bytes,
};
pub use plan_cache::{PlanCache, PlanKey};
pub use plannable::Plannable;
pub use secret_text::{message_without_secrets, secret_literals, without_secrets};
pub use secrets::{StoredForm, for_replicas};
pub use statement_digest::StatementDigest;
pub use unsafe_words::has_unsafe_words;
