//! Open tables: the catalog's description with prepared codecs, counters shared by all sessions, and a
//! session's temporary tables.
//!
//! This crate knows no transactions. The methods of [`OpenTable`] that convert rows to bytes and back are
//! pure; the crates `trx` and `row` read and write rows.
//!
//! | module | concept |
//! |---|---|
//! | `open_table` | [`OpenTable`]: a table's codecs and counters, shared by sessions; [`TableRegistry`] |
//! | `keys` | index entries of a row |
//! | `image` | [`Change`]: row images of the binary log |
//! | `presence` | [`Presence`]: the columns in row images |
//! | `map_metadata` | table maps of the binary log |
//! | `auto_increment` | [`AutoIncrement`]: generated values and their recovery after a restart |
//! | `touched` | [`TouchedRows`]: rows changed by writers during an online index build |
//! | `foreign_fit` | checks that a foreign key fits its tables; its text |
//! | `temporary` | [`TemporaryTables`]: a session's temporary tables |
//! | `source_tables` | [`SourceTemporaryTables`]: temporary tables of a source's connections, for appliers |
//! | `temporary_rows` | [`TemporaryRows`]: the indexes of temporary tables, with undo |
//! | `usage` | [`TableUsage`]: rows that statements read and change, for `userstat` |
//! | `spilled_values` | their values that are spilled to a file |

mod auto_increment;
mod foreign_fit;
mod image;
mod keys;
mod map_metadata;
mod open_table;
mod presence;
mod source_tables;
mod spilled_values;
mod temporary;
mod temporary_rows;
mod touched;
mod usage;

pub use auto_increment::{
    AUTO_INCREMENT_SPACE, AutoIncrement, Reserved, Series, UsedUp, largest_counted, positive,
};
pub use foreign_fit::{
    Misfit, bare_constraint_text, constraint_text, constraint_text_in, counterpart, fit, is_led,
    leading_index, named_constraint,
};
pub use image::Change;
pub use map_metadata::MapMetadata;
pub use open_table::{EngineNo, OpenIndex, OpenTable, TableRegistry, definition_changed, is_current};
pub use presence::{Presence, RowImage, computed_columns};
pub use source_tables::{SourceTemporaryTables, SourceThread};
pub use temporary::{TemporaryParts, TemporaryTables};
pub use temporary_rows::{Limits, TemporaryRows};
pub use touched::TouchedRows;
pub use usage::{RowChange, TableUsage, TableUse};
