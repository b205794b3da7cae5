//! Passes the page formats of tables to their engines.

use cohort_base::IndexId;
use cohort_catalog::Table;
use cohort_engine::PageFormat;
use cohort_session::Database;

/// Returns whether a change of options requires that the pages be rewritten. A new compression level applies
/// to pages written later.
pub(super) fn needs_copy(before: &Table, after: &Table) -> bool {
    let kind = |table: &Table| match table.page_format() {
        PageFormat::CompressedPages { .. } => PageFormat::CompressedPages { level: None },
        form => form,
    };
    kind(before) != kind(after)
}

/// Passes the page format of these indexes to the table's engine.
pub(super) fn pass_to_engine(db: &Database, table: &Table, indexes: &[IndexId]) {
    let engine = db.engine_named(&table.engine);
    if let Some(engine) = engine.filter(|_| !table.is_temporary()) {
        engine.set_page_format(indexes, table.page_format());
    }
}

/// Passes the page format of all indexes of the table to its engine.
pub(super) fn pass_all_to_engine(db: &Database, table: &Table) {
    let indexes: Vec<IndexId> = table.trees().collect();
    pass_to_engine(db, table, &indexes);
}

/// Passes the page formats of all tables to the engines. Called once when the server starts, before the first
/// session.
pub fn set_page_formats(db: &Database) {
    for table in db.catalog().schemas.values().flat_map(|schema| schema.tables.values()) {
        if table.page_format() != PageFormat::Plain {
            pass_all_to_engine(db, table);
        }
    }
}
