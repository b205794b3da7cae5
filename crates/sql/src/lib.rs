//! The SQL language: text in, statement out.
//!
//! The text is bytes in UTF-8 (string literals may hold any bytes). [`next_statement`] cuts a multi-statement
//! text, [`parse`] reads one statement, [`Digest::of`] finds a repeated statement's cached plan without
//! parsing.
//!
//! | module | concept |
//! |---|---|
//! | `ast` | what a statement says, as plain data |
//! | `options` | [`ParseOptions`]: the parts of the session that change how a text is read |
//! | `lexer`, `literal` | tokens, literals, comments |
//! | `client_text` | [`decode_literals`]: statements in character sets that do not leave ASCII alone |
//! | `parser` | the grammar |
//! | `digest` | [`Digest`]: a statement without its literals, as a number |
//! | `plan_cache` | [`PlanCache`]: plans by digest |
//! | `kind` | [`statement_kind`], [`commits_implicitly`] |
//! | `first_words` | [`first_words`]: what a text is about, whether it can be read or not |
//! | `secrets` | [`with_hashed_passwords`]: statements about accounts as they are logged for replicas |
//! | `secret_text` | [`without_secrets`], [`secret_literals`]: texts as logs and lists show them |
//! | `unsafe_words` | [`has_unsafe_words`]: what statement-based replication might do otherwise |
//! | `print` | quoted identifiers and strings, expressions back to text |
//! | `print_query`, `print_json_table`, `print_window`, `print_type` | queries and their parts back to text |
//! | `print_text` | names, strings and constants back to text |

pub mod ast;
mod client_text;
mod digest;
mod first_words;
mod kind;
mod lexer;
mod literal;
mod options;
mod parser;
mod plan_cache;
pub mod print;
mod print_json_table;
pub mod print_query;
mod print_text;
mod print_type;
mod print_window;
mod secret_text;
mod secrets;
mod unsafe_words;

pub use client_text::decode_literals;
pub use digest::Digest;
pub use first_words::{changes_rows, defines_program, first_words};
pub use kind::{StatementKind, commits_implicitly, statement_kind};
pub use options::{ParseMode, ParseOptions};
pub use parser::{
    Charge, IDENTIFIER_CHARS_MAX, Parsed, next_statement, parse, parse_charged, parse_own, syntax_bytes,
};
pub use plan_cache::{PlanCache, PlanKey};
pub use secret_text::{message_without_secrets, secret_literals, without_secrets};
pub use secrets::{StoredForm, with_hashed_passwords};
pub use unsafe_words::has_unsafe_words;
