//! Rows of a table: access by index, writes with index maintenance, row images.
//!
//! | module | concept |
//! |---|---|
//! | `access` | [`KeySpans`]: which part of which index is read, as bytes |
//! | `resolve` | from one to the other: keys computed and converted to the columns' types |
//! | `cursor` | [`TableCursor`]: rows one after the other, from a snapshot or under locks |
//! | `lane_scan` | the rows of a snapshot scan, a batch at a time |
//! | `covering` | rows out of index entries alone |
//! | `open_table` | [`OpenTable`]: a table's codecs and counters, made once and shared |
//! | `keys` | index entries of a row |
//! | `image` | row images and table maps of the binlog |
//! | `write` | [`TableWriter`]: insert, update, delete with locks, unique checks and all indexes |
//! | `foreign` | [`Foreign`]: what the foreign keys of a table ask of each change of its rows |
//! | `foreign_fit` | whether a foreign key fits its tables; its text |
//! | `foreign_check` | whether a row has its parent |
//! | `foreign_action` | what a parent's change does to its children |
//! | `auto_increment` | generated values and how they survive a restart |
//! | `build` | filling a new index or a copied table |
//! | `check` | whether secondary indexes hold what the rows say |

mod access;
mod auto_increment;
mod build;
mod catch_up;
mod check;
mod covering;
mod cursor;
mod foreign;
mod foreign_action;
mod foreign_check;
mod foreign_fit;
mod image;
mod keys;
mod lane_scan;
mod map_metadata;
mod open_table;
mod presence;
mod resolve;
#[cfg(test)]
pub(crate) mod test_world;
#[cfg(test)]
mod tests;
mod touched;
mod write;

pub use access::{KeySpan, KeySpans};
pub(crate) use auto_increment::{AutoIncrement, Reserved, UsedUp, positive};
pub use build::{build_index, copy_rows};
pub(crate) use catch_up::CatchUp;
pub(crate) use check::check_entries;
pub use cohort_optimize::{Columns, ReadMode};
pub use cursor::{CursorOptions, RowChanges, RowFilter, TableCursor, every_row};
pub(crate) use foreign_action::chain_too_long;
pub(crate) use foreign_fit::{
    Misfit, bare_constraint_text, constraint_text, fit, leading_index, named_constraint,
};
pub(crate) use lane_scan::LaneScan;
pub(crate) use open_table::OpenIndex;
pub(crate) use open_table::is_current;
pub use open_table::{OpenTable, TableRegistry};
pub(crate) use presence::computed_columns;
pub use resolve::ResolveAccess;
pub(crate) use touched::TouchedRows;
pub(crate) use write::{Duplicate, DuplicateLock, TableWriter};
