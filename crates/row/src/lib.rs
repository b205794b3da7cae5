//! Rows of a table: access by index, writes with index maintenance.
//!
//! Everything happens in a session's transaction ([`cohort_trx::SessionTrx`]) on tables that are ready for
//! use ([`cohort_table::OpenTable`]); statements and sessions are not known here.
//!
//! | module | concept |
//! |---|---|
//! | `access` | [`KeySpans`]: which part of which index is read, as bytes |
//! | `resolve` | [`ResolveAccess`]: from the planner's choice to them: keys computed and converted to the columns' types |
//! | `cursor` | [`TableCursor`]: rows one after the other, from a snapshot or under locks |
//! | `point` | the row of one key, without a cursor |
//! | `lane_scan` | [`LaneScan`]: the rows of a snapshot scan, a batch at a time |
//! | `match_scan` | [`MatchScan`]: the rows that match many rows of a join's other side |
//! | `word_scan` | rows that have words, by a FULLTEXT index |
//! | `covering` | rows out of index entries alone |
//! | `write` | [`TableWriter`]: insert, update, delete with locks, unique checks and all indexes |
//! | `foreign` | what the foreign keys of a table ask of each change of its rows |
//! | `foreign_check` | whether a row has its parent |
//! | `foreign_action` | what a parent's change does to its children |
//! | `build`, `catch_up` | filling a new index or a copied table; what writers touch meanwhile |
//! | `check` | whether secondary indexes hold what the rows say |
//! | `trail` | [`Trail`]: where searches ended, so that the next one goes on there |
//! | `steps` | how long loops over rows look for KILL |

mod access;
mod build;
mod catch_up;
mod check;
mod covering;
mod cursor;
mod foreign;
mod foreign_action;
mod foreign_check;
mod lane_scan;
mod match_scan;
mod point;
mod resolve;
mod steps;
#[cfg(test)]
mod test_world;
#[cfg(test)]
mod tests;
mod trail;
mod word_scan;
mod write;

pub use access::{KeySpan, KeySpans};
pub use build::{Convert, Duplicates, build_index, copy_rows};
pub use catch_up::{Built, CatchUp};
pub use check::check_entries;
pub use cursor::{CursorOptions, RowChanges, RowFilter, Stored, StoredBatch, TableCursor, every_row};
pub use foreign_action::chain_too_long;
pub use lane_scan::LaneScan;
pub use match_scan::MatchScan;
pub use point::read_point;
pub use resolve::ResolveAccess;
pub use steps::row_done;
pub use trail::Trail;
pub use write::{Duplicate, DuplicateLock, TableWriter};
