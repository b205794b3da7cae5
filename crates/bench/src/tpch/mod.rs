//! TPC-H: tables, rows and the 22 queries.
//!
//! The generator follows the specification's sizes, key patterns and value ranges with its own random numbers
//! and texts, so that the queries select the usual shares of rows. Its rows are the same in each run. Figures
//! are not those of the official tool and are comparable between servers only.

pub mod dates;
mod queries;
mod rows;
mod schema;
pub mod words;

pub use queries::QUERIES;
pub use rows::{Row, rows_of};
pub use schema::{TABLES, TableDefinition};
