//! Compares the metadata of results with a real MariaDB: number, names, tables, types, character sets,
//! lengths, decimals and flags of result columns, the session status, and the count and text of warnings.
//! Statements run in the text protocol and as prepared statements.
//!
//! Statements are generated from the templates of [`templates`] and the columns of a table with every type.
//! Each difference belongs to a class: the template and the field. `known_*.txt` list the classes that
//! differ. Any other difference fails, and in the long run (`COHORT_LONG_TESTS=1`) a listed class that no
//! longer differs fails, too. `COHORT_FUZZ_SEED=N` repeats a run. `COHORT_METADATA_CLASSES=FILE` writes the
//! classes that were seen, with examples.

#[path = "../support/mod.rs"]
mod support;

mod compare;
mod fixed;
mod generated;
mod parameters;
mod templates;
