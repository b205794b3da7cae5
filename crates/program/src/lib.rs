//! Stored programs: procedures, functions, triggers, events and compound statements.
//!
//! # Path of a body
//! ```text
//! sql::ast::Body --compile--> Program --bind--> Bound --interpret--> result, OUT parameters
//!                (CREATE)            (first call)      (each call)
//! ```
//! [`compile`] turns the tree of a body into a flat list of [`Instruction`]s and finds all errors that CREATE
//! reports. It needs no catalog. [`bind`] resolves the types of variables and binds the expressions, with the
//! catalog and the settings of the program. [`run`] executes the instructions over a [`Frame`] of values.
//!
//! Statements of a body are ordinary statements with parameters: the caller's [`Host`] runs them, in the
//! session (CALL, events) or inside a running statement (functions and triggers).
//!
//! | module | concept |
//! |---|---|
//! | `program` | [`Program`]: instructions, expressions, statements, cursors, handlers |
//! | `compile` | a body to a [`Program`] |
//! | `scope` | names of labels, conditions and cursors during compilation |
//! | `bind` | a [`Program`] to a [`Bound`]: places of variables, types, bound expressions |
//! | `host` | [`Host`]: the interface to the session or statement that runs a program |
//! | `frame` | [`Frame`]: the values, cursors and handlers of one activation |
//! | `group` | [`Group`]: the rows of a group, for an aggregate function |
//! | `interpret` | the loop over instructions, and its one exit for errors |
//! | `typed` | numbers and conditions that are evaluated over the frame alone |
//! | `lower` | bound expressions and instructions to typed ones |
//! | `typed_code` | typed instructions |
//! | `alone` | functions and triggers that run without a host |
//! | `lines` | executions and time of lines, if they are counted |
//! | `parts` | the parts of a program that refer to the catalog, for CHECK |
//! | `named` | the tables and routines that a program names |
//! | `signal` | SIGNAL and RESIGNAL |

mod alone;
mod bind;
mod compile;
mod frame;
mod group;
mod host;
mod interpret;
mod lines;
mod lower;
mod named;
mod parts;
mod program;
mod scope;
mod signal;
mod typed;
mod typed_code;
#[cfg(test)]
mod typed_tests;

pub use bind::{Bound, bind};
pub use compile::compile;
pub use group::Group;
pub use host::{BodyStatement, Host, QueryRows, ResultColumn, RowsFor};
pub use interpret::{Finished, NewRow, run, run_aggregate, run_trigger};
pub use lines::counts_lines;
pub use named::{Named, NamedTable};
pub use parts::Part;
pub use program::{Program, ProgramKind};
