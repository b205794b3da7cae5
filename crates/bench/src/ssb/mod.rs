//! Star Schema Benchmark: one fact table, four dimension tables and 13 queries.
//!
//! The generator follows the specification's sizes, keys and value ranges with its own random numbers. Its
//! rows are the same in each run. Figures are comparable between servers only.

mod queries;
mod rows;
mod schema;

pub use queries::QUERIES;
pub use rows::rows_of;
pub use schema::TABLES;
