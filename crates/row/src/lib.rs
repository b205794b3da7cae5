//! Rows of a table: access through an index, and writes that maintain all indexes.
//!
//! All work happens in a session's transaction ([`cohort_trx::SessionTrx`]) on open tables
//! ([`cohort_table::OpenTable`]). This crate knows neither statements nor sessions.
//!
//! | module | concept |
//! |---|---|
//! | `access` | [`KeySpans`]: the part of an index to read, as encoded keys |
//! | `resolve` | [`resolve()`]: computes the spans of a planned access from its key expressions |
//! | `cursor` | [`TableCursor`]: returns rows one by one, from a snapshot or under locks |
//! | `point` | reads the row of one key without a cursor |
//! | `vector_scan` | [`VectorScan`]: a vectorized snapshot scan, one batch at a time |
//! | `match_scan` | [`MatchScan`]: batched index lookups for many rows of a join's outer side |
//! | `row_keys` | searches that return keys of rows |
//! | `posting_scan` | full-text lookup: rows that contain given words, from a FULLTEXT index |
//! | `covering` | rows decoded from index entries alone (covering index) |
//! | `write` | [`TableWriter`]: insert, update and delete, with locks, unique checks and all indexes |
//! | `foreign` | foreign keys: the checks and actions that a row change requires |
//! | `foreign_check` | checks that a row's parent exists |
//! | `foreign_action` | applies a parent's change to its child rows |
//! | `build`, `catch_up` | fills a new index or a copied table, and applies concurrent changes to it |
//! | `check` | compares secondary indexes with the rows |
//! | `search_positions` | [`SearchPositions`]: search-position cache: the next search resumes where the last one ended |
//! | `steps` | how often loops over rows check for KILL |

mod access;
mod build;
mod catch_up;
mod check;
mod covering;
mod cursor;
mod foreign;
mod foreign_action;
mod foreign_check;
#[cfg(test)]
mod inner_tests;
mod match_scan;
mod point;
mod posting_scan;
mod resolve;
mod row_keys;
mod search_positions;
mod steps;
#[cfg(test)]
mod test_world;
#[cfg(test)]
mod tests;
mod vector_scan;
mod write;

pub use access::{KeySpan, KeySpans};
pub use build::{Convert, Duplicates, build_index, copy_rows};
pub use catch_up::{Built, CatchUp};
pub use check::check_entries;
pub use cursor::{CursorOptions, RowChanges, RowFilter, Stored, StoredBatch, TableCursor, every_row};
pub use foreign_action::chain_too_long;
pub use match_scan::MatchScan;
pub use point::read_point;
pub use resolve::{resolve, resolve_exactly};
pub use search_positions::SearchPositions;
pub use steps::row_done;
pub use vector_scan::VectorScan;
pub use write::{Duplicate, DuplicateLock, TableWriter};
