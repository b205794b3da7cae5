//! INSERT, REPLACE, UPDATE, DELETE, BINLOG.
//!
//! | module | concept |
//! |---|---|
//! | `outcome` | [`DmlOutcome`]: what the client is told |
//! | `assign` | a value on its way into a column: conversion, NULL, DEFAULT |
//! | `rules` | generated columns and CHECK constraints of a row |
//! | `insert_plan` | [`InsertPlan`]: INSERT and REPLACE, bound |
//! | `insert` | runs it, row by row |
//! | `target` | the rows that UPDATE and DELETE change, found under locks |
//! | `update` | [`UpdatePlan`] |
//! | `delete` | [`DeletePlan`] |
//! | `apply` | row events applied to tables |
//! | `binlog_statement` | BINLOG '...' |
//!
//! Plans are immutable and shared by sessions; what one execution needs is made at its start.

mod apply;
mod assign;
mod binlog_statement;
mod delete;
mod insert;
mod insert_plan;
mod outcome;
mod returning;
mod rules;
mod target;
#[cfg(test)]
mod tests;
mod update;

pub(crate) use binlog_statement::BinlogApplier;
pub use binlog_statement::run_binlog_statement;
pub use delete::DeletePlan;
pub use insert_plan::InsertPlan;
pub use outcome::DmlOutcome;
pub(crate) use rules::RowRules;
pub use update::UpdatePlan;
