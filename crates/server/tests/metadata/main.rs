//! What clients are told of results, compared with a real MariaDB: number, names, tables, types, character
//! sets, lengths, decimals and flags of result columns, the status of the session, the count and the text of
//! warnings; by text and as prepared statements.
//!
//! Statements are made of the templates of [`templates`] and the columns of a table that has every type. A
//! difference belongs to a class: the template and the field. `known.txt` lists the classes that differ; any
//! other fails, and in the long run (`COHORT_LONG_TESTS=1`) a class that no longer differs fails, too.
//! `COHORT_FUZZ_SEED=N` repeats a run. `COHORT_METADATA_CLASSES=FILE` writes the classes that were
//! seen, with examples.

#[path = "../support/mod.rs"]
mod support;

mod compare;
mod fixed;
mod generated;
mod parameters;
mod templates;
