//! Bound expressions over rows of values: MariaDB's operators, functions, coercions and aggregates.
//!
//! This crate does not know tables, names or SQL text. The planner resolves names and builds trees with the
//! functions of `build`. A tree is immutable and may be shared by sessions. It is evaluated against a row and
//! an [`EvalContext`].
//!
//! | module | concept |
//! |---|---|
//! | `expr` | [`Expr`]: the tree and its nodes |
//! | `expr_type` | [`ExprType`]: static type, collation and coercibility, result metadata |
//! | `context` | [`SessionEnv`], [`SessionHooks`], [`EvalContext`]: what an evaluation can read and change |
//! | `build` | constructors that check operands and derive types |
//! | `call` | calls of functions by name |
//! | `function` | [`Function`](function::Function): name, arity, typing, evaluation |
//! | `registry` | all functions by name |
//! | `eval` | evaluation of the nodes; three-valued logic |
//! | `walk` | tree visitors and rewrites, tests for constness, constant folding |
//! | `display` | the text of an expression in error messages |
//! | `number_of` | operands whose number differs from their text |
//! | `convert` | conversion of a value to a number, text or date, with warnings about what is lost |
//! | `operand` | preparation of the operands of comparisons |
//! | `compare` | [`compare`](fn@compare), sort keys, grouping keys |
//! | `common_class` | conversion of values to the type of their result column |
//! | `joined` | the common type of the branches of CASE, COALESCE and UNION |
//! | `full_text` | MATCH .. AGAINST |
//! | `search` | the parsed search of a MATCH, and the relevance of a row |
//! | `mode_dependence` | the modes of sql_mode on which an expression's value depends |
//! | `vectors` | [`VectorProgram`]: vectorized expressions |
//! | `aggregate_call` | [`Aggregate`]: kind, arguments, options |
//! | `aggregate`, `group_text` | evaluation of aggregates |
//! | the rest | one family of functions each |

mod aggregate;
mod aggregate_call;
mod args;
mod arith;
mod bits;
mod build;
mod call;
mod cast;
mod common_class;
mod compare;
mod context;
mod control;
mod convert;
mod date_calc;
mod date_format;
mod date_now;
mod date_parse;
mod date_part;
mod display;
mod dynamic_columns;
mod dynamic_format;
mod eval;
mod expr;
mod expr_type;
mod full_text;
mod function;
mod group_text;
mod hash;
mod info;
mod joined;
mod json;
mod json_path;
mod json_read;
mod json_search;
mod json_table;
mod json_typing;
mod json_write;
mod load_file;
pub mod locale;
mod math;
mod mixing;
mod mode_dependence;
mod net;
mod number_of;
mod number_style;
mod operand;
mod pcre;
mod regex;
mod registry;
mod replication;
mod search;
mod sformat;
mod sort;
mod text_build;
mod text_code;
mod text_cut;
mod text_oracle;
mod text_secret;
mod text_size;
mod text_weight;
mod text_zip;
mod to_char;
mod typing;
mod vectors;
mod walk;
mod xml;
mod xml_functions;
mod xpath;

pub use aggregate::{AggregateState, Gathered};
pub use aggregate_call::{Aggregate, AggregateKind, AggregateOptions, OrderKey, Quantifier};
pub use build::{
    BinaryOp, IntervalOp, LikeEscape, Truth, UnaryOp, and, between, build_binary, build_unary, case, cast,
    char_using, collate, compare_as, compare_exprs, convert_using, date_arith, extract, in_list, is_null,
    is_truth, like, not, or, regexp, row, system_variable, timestamp_add, timestamp_diff, trim,
    user_variable, user_variable_assign,
};
pub use call::{build_call, is_native};
pub use common_class::{to_class_of, to_common_class};
pub use compare::{CompareHow, SortKey, append_group_key, compare, compare_rows};
pub use context::{
    EvalContext, LoadedFile, SequenceName, SessionEnv, SessionHooks, Subqueries, TimeZone, VariableScope,
    Warnings,
};
pub use expr::{CallBack, CastType, CompareOp, Expr, In, Like, Outer, Subquery, SubqueryTest};
pub use expr_type::{Coercibility, ExprType, Flavor, NOT_FIXED_DECIMALS, TypeClass};
pub use full_text::match_against;
pub use function::{Replication, StoredIn, TrimSide};
pub use joined::{to_joined, union_type};
pub use json_table::{JsonColumn, JsonLevel, JsonMeaning, JsonPath, JsonResponse, JsonTable};
pub use mode_dependence::mode_dependence;
pub use operand::takes_hex_as_number;
pub use registry::{functions, replication_of, stored_in};
pub use search::{SearchMode, WordRange, WordSource};
pub use sort::sort_rows;
pub use vectors::{
    NumberAt, Numbers, Overflow, TruthAt, UNKNOWN, VectorCompiler, VectorProgram, VectorTypes, YES,
    year_of_column,
};
