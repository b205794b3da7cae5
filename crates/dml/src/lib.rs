//! INSERT, REPLACE, UPDATE, DELETE, LOAD DATA, BINLOG, and the row events of replicas.
//!
//! | module | concept |
//! |---|---|
//! | `outcome` | [`DmlOutcome`]: the result for the client |
//! | `assign` | conversion of a value for its column, NULL, DEFAULT |
//! | `row_change` | [`RowPipeline`](row_change::RowPipeline): the steps of a row change, in their order |
//! | `rules` | generated columns and CHECK constraints of a row |
//! | `asked` | assigned values that contain subqueries or calls of stored functions |
//! | `insert_plan` | [`InsertPlan`]: INSERT and REPLACE, bound |
//! | `insert` | executes it, row by row |
//! | `target_plan` | [`TargetPlan`]: access to the rows that UPDATE and DELETE change |
//! | `target` | finds these rows under locks |
//! | `update` | [`UpdatePlan`] |
//! | `delete` | [`DeletePlan`] |
//! | `joined` | [`JoinedChange`]: UPDATE and DELETE with joins or subqueries |
//! | `returning` | RETURNING |
//! | `load`, `fields` | LOAD DATA; the fields of its text |
//! | `apply` | applies row events to tables |
//! | `row_applier` | applies the rows of one event to one table |
//! | `apply_keys` | [`RowKeys`]: the conflict keys of row events, for parallel apply |
//! | `apply_locate` | locates rows that share a key, in one pass |
//! | `apply_pass` | a search that continues where the previous one ended |
//! | `apply_scan` | applies row events to tables without a unique key |
//! | `binlog_statement` | BINLOG '...' |
//! | `unpack` | memory reservation before decompression; errors of damaged events |
//!
//! Plans are immutable and shared by sessions. The state of one execution is created when it starts. The
//! order of the steps of a row change, with triggers and foreign keys, is in `row_change.rs` only.

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
mod row_applier;
mod row_change;
mod rules;
mod target;
mod target_plan;
mod unpack;
mod update;

pub use apply::apply_rows;
pub use apply_keys::{KeySet, RowKeys};
pub use asked::PlanQuery;
pub use binlog_statement::run_binlog_statement;
pub use delete::DeletePlan;
pub use insert_plan::InsertPlan;
pub use joined::JoinedChange;
pub use load::load_data;
pub use outcome::DmlOutcome;
pub use returning::Returning;
pub use row_applier::{ApplyRules, Conversions};
pub use rules::{RowRules, readers_of};
pub use target_plan::TargetPlan;
pub use unpack::reserve_to_unpack;
pub use update::UpdatePlan;
