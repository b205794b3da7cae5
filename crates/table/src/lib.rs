//! Tables as statements use them: the catalog's description with its codecs made once, the counters that all
//! sessions share, and what a session keeps of tables of its own.
//!
//! Nothing here knows of transactions: those of [`OpenTable`]'s methods that turn rows to bytes and back are
//! pure, and where rows are read and written is the business of the crates `trx` and `row`.
//!
//! | module | concept |
//! |---|---|
//! | `open_table` | [`OpenTable`]: a table's codecs and counters, made once and shared; [`TableRegistry`] |
//! | `keys` | index entries of a row |
//! | `image` | [`Change`]: row images of the binlog |
//! | `presence` | [`Presence`]: which columns those hold |
//! | `map_metadata` | table maps of the binlog |
//! | `auto_increment` | [`AutoIncrement`]: generated values and how they survive a restart |
//! | `touched` | [`TouchedRows`]: what writers touch while an index is built beside them |
//! | `foreign_fit` | whether a foreign key fits its tables; its text |
//! | `temporary` | [`TemporaryTables`]: those of a session |
//! | `source_tables` | [`SourceTemporaryTables`]: those of a source's connections, for appliers |
//! | `temporary_rows` | [`TemporaryRows`]: the key spaces of temporary tables, with undo |
//! | `spilled_values` | their values that lie in a file |

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

pub use auto_increment::{
    AUTO_INCREMENT_SPACE, AutoIncrement, Reserved, Series, UsedUp, largest_counted, positive,
};
pub use foreign_fit::{
    Misfit, bare_constraint_text, constraint_text, constraint_text_in, fit, is_led, leading_index,
    named_constraint,
};
pub use image::Change;
pub use map_metadata::MapMetadata;
pub use open_table::{EngineNo, OpenIndex, OpenTable, TableRegistry, definition_changed, is_current};
pub use presence::{Presence, RowImage, computed_columns};
pub use source_tables::{SourceTemporaryTables, SourceThread};
pub use temporary::{TemporaryParts, TemporaryTables};
pub use temporary_rows::{Limits, TemporaryRows};
pub use touched::TouchedRows;
