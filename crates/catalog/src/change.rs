//! One DDL statement's effect on the catalog, as the commit record carries it.

use cohort_base::{IndexId, TableId};

use crate::model::{Account, Schema, Table};

/// A list of these is a catalog redo; applying it twice is harmless.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogChange {
    /// Makes or replaces a schema's attributes; its tables stay.
    PutSchema(Schema),
    /// Removes a schema with its tables.
    DropSchema(String),
    /// Makes or replaces a table (the id tells which, so a rename is a put).
    PutTable(Table),
    DropTable(TableId),
    PutAccount(Account),
    DropAccount {
        user: String,
        host: String,
    },
    /// Ids below these have been handed out.
    NextIds {
        table: TableId,
        index: IndexId,
    },
}
