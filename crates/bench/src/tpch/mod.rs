//! TPC-H: tables, rows and the 22 queries.
//!
//! The generator follows the specification's sizes, key patterns and value ranges with random numbers and
//! texts of its own, so that the queries find what they look for in the usual shares. Its rows are the same
//! in every run; figures are not those of the official tool and are comparable between servers only.

pub mod dates;
mod queries;
mod rows;
mod schema;
pub mod words;

pub use queries::QUERIES;
pub use rows::{Row, rows_of};
pub use schema::{TABLES, TableDefinition};
