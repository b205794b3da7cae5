//! INSERT, REPLACE, UPDATE, DELETE, BINLOG.
//!
//! | module | concept |
//! |---|---|
//! | `outcome` | [`DmlOutcome`]: what the client is told |
//! | `assign` | a value on its way into a column: conversion, NULL, DEFAULT |
//! | `rules` | generated columns and CHECK constraints of a row |
//! | `asked` | values that ask subqueries about their row |
//! | `insert_plan` | [`InsertPlan`]: INSERT and REPLACE, bound |
//! | `insert` | runs it, row by row |
//! | `target_plan` | [`TargetPlan`]: how the rows are found that UPDATE and DELETE change |
//! | `target` | the rows that UPDATE and DELETE change, found under locks |
//! | `update` | [`UpdatePlan`] |
//! | `delete` | [`DeletePlan`] |
//! | `joined` | [`JoinedChange`]: both over joins, or with subqueries |
//! | `load`, `fields` | LOAD DATA; the fields of its text |
//! | `apply` | row events applied to tables |
//! | `apply_keys` | [`RowKeys`]: which keys row events change |
//! | `apply_locate` | rows that share a key, found by one pass |
//! | `apply_pass` | a search that goes on where the one before ended |
//! | `apply_scan` | the same for tables without a key |
//! | `binlog_statement` | BINLOG '...' |
//! | `unpack` | room for compressed events |
//!
//! Plans are immutable and shared by sessions; what one execution needs is made at its start.

mod apply;
mod apply_keys;
mod apply_locate;
mod apply_pass;
mod apply_scan;
mod asked;
mod assign;
mod binlog_statement;
mod delete;
mod fields;
mod insert;
mod insert_plan;
mod joined;
mod load;
mod outcome;
mod returning;
mod rules;
mod target;
mod target_plan;
mod unpack;
mod update;
mod view_check;

pub use apply::apply_rows;
pub use apply::{ApplyRules, Conversions};
pub use apply_keys::{KeySet, RowKeys};
pub use asked::PlanQuery;
pub use binlog_statement::run_binlog_statement;
pub use delete::DeletePlan;
pub use insert_plan::InsertPlan;
pub use joined::JoinedChange;
pub use load::load_data;
pub use outcome::DmlOutcome;
pub use returning::Returning;
pub use rules::RowRules;
pub use target_plan::TargetPlan;
pub use unpack::room_to_unpack;
pub use update::UpdatePlan;
