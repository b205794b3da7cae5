//! The Star Schema Benchmark: one table of facts, four of dimensions and 13 queries.
//!
//! The generator follows the specification's sizes, keys and value ranges with random numbers of its own; its
//! rows are the same in every run. Figures are comparable between servers only.

mod queries;
mod rows;
mod schema;

pub use queries::QUERIES;
pub use rows::rows_of;
pub use schema::TABLES;
