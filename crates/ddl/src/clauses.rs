//! The ALGORITHM and LOCK clauses that an ALTER TABLE may have: errors 1845 and 1846.
//!
//! The rules are MariaDB's, even where this server needs less work. The binlog contains the statement as
//! written, and a MariaDB replica stops at a clause that it refuses. A statement without a clause uses the
//! cheapest method.

use cohort_catalog::{DefaultValue, IndexColumn, ROWS, Table};
use cohort_engine::PageFormat;
use cohort_sql::ast::AlterOptions;
use cohort_types::{SqlError, SqlResult};

use super::describe::{is_same_clustering, is_same_index};
use super::draft::Described;
use super::engine_format;
use super::extent::{Allowed, Extent, checks_more, moves, recounts};

const COPY_LOCKS: &str = "COPY algorithm requires a lock";
const WORDS_LOCK: &str = "Fulltext index creation requires a lock";
const VIRTUAL_KEYS: &str = "online rebuild with indexed virtual columns";

/// Rejects an ALGORITHM or LOCK that MariaDB cannot use for this change.
pub(super) fn check(
    before: &Table,
    after: &Described,
    (extent, allowed): (Extent, Allowed),
    options: &AlterOptions,
) -> SqlResult<()> {
    let algorithm = options.algorithm.as_deref().unwrap_or("DEFAULT");
    let lock = options.lock.as_deref().unwrap_or("DEFAULT");
    let what = format!("ALGORITHM={algorithm}");
    let because = |what: &str, reason: &str, instead| match reason {
        "" => Err(SqlError::alter_not_supported(what, instead)),
        reason => Err(SqlError::alter_not_supported_because(what, reason, instead)),
    };
    let is_quick = matches!(algorithm, "INSTANT" | "NOCOPY");
    if algorithm == "COPY" && lock == "NONE" {
        return because("LOCK=NONE", COPY_LOCKS, "LOCK=SHARED");
    }
    if let Some(reason) = only_copied(before, after, extent).filter(|_| algorithm != "COPY") {
        return match (algorithm, lock) {
            ("INSTANT" | "NOCOPY" | "INPLACE", _) => because(&what, reason, "ALGORITHM=COPY"),
            (_, "NONE") => because("LOCK=NONE", reason, "LOCK=SHARED"),
            _ => Ok(()),
        };
    }
    let moves = moves(before, after);
    if moves.is_some() && has_words(before) && algorithm != "COPY" {
        let reason = if has_words(&after.table) && lock == "NONE" { WORDS_LOCK } else { "" };
        return match (is_quick, reason) {
            (true, reason) => because(&what, reason, "ALGORITHM=INPLACE"),
            (false, "") => Ok(()),
            (false, reason) => because("LOCK=NONE", reason, "LOCK=SHARED"),
        };
    }
    let rebuilds = moves.is_some() || extent == Extent::Rows;
    if rebuilds && lock == "NONE" && algorithm != "COPY" && has_virtual_keys(&after.table) {
        let reason = if keys_rows_again(before, after) { "" } else { VIRTUAL_KEYS };
        return because("LOCK=NONE", reason, "LOCK=SHARED");
    }
    let is_compressed = before.page_format() == PageFormat::CompressedRows;
    if moves.is_some() && is_quick && (is_compressed || has_virtual_keys(&after.table)) {
        return because(&what, "", "ALGORITHM=INPLACE");
    }
    match extent {
        Extent::Rows if is_quick && engine_format::needs_copy(before, &after.table) => {
            let reason = "Changing table options requires the table to be rebuilt";
            because(&what, reason, "ALGORITHM=INPLACE")
        }
        Extent::Rows if is_quick && moves.is_some_and(|needed| needed > allowed) => {
            let reason = format!("innodb_instant_alter_column_allowed={}", allowed.word());
            because(&what, &reason, "ALGORITHM=INPLACE")
        }
        Extent::Rows if is_quick => because(&what, "", "ALGORITHM=INPLACE"),
        Extent::Rows if lock == "NONE" && !is_copied_online(before, after, options) => {
            because("LOCK=NONE", COPY_LOCKS, "LOCK=SHARED")
        }
        Extent::Keys if lock == "NONE" && makes_words(before, after) => {
            because("LOCK=NONE", WORDS_LOCK, "LOCK=SHARED")
        }
        Extent::Keys if is_quick && moves.is_some() => because(&what, "", "ALGORITHM=INPLACE"),
        Extent::Keys if algorithm == "INSTANT" => because(&what, "ADD INDEX", "ALGORITHM=NOCOPY"),
        Extent::Description if algorithm == "INSTANT" && drops_index(before, after) => {
            because(&what, "DROP INDEX", "ALGORITHM=NOCOPY")
        }
        _ => Ok(()),
    }
}

/// Returns whether writers may continue while the rows are copied. This requires that a new row, and the key
/// of a row changed meanwhile, depend only on the old row.
pub(super) fn is_copied_online(before: &Table, after: &Described, options: &AlterOptions) -> bool {
    let table = &after.table;
    options.algorithm.as_deref() != Some("COPY")
        && before.engine == table.engine
        && after.new_foreign_keys.is_empty()
        && only_copied(before, after, Extent::Rows).is_none()
        && !has_words(before)
        && !has_words(table)
        && !recounts(before, after)
}

/// Returns whether MariaDB rebuilds the rows in place.
pub(super) fn is_rebuilt_in_place(before: &Table, after: &Described, options: &AlterOptions) -> bool {
    options.algorithm.as_deref() != Some("COPY")
        && before.engine == after.table.engine
        && !before.is_temporary()
        && only_copied(before, after, Extent::Rows).is_none()
}

fn has_words(table: &Table) -> bool {
    table.indexes.iter().any(|index| index.kind.has_words())
}

/// Returns whether a key contains a virtual column. MariaDB moves no columns of such a table, and during a
/// copy it admits only readers.
fn has_virtual_keys(table: &Table) -> bool {
    let is_virtual = |part: &IndexColumn| table.columns[part.column].is_virtual();
    table.indexes.iter().any(|index| index.columns.iter().any(is_virtual))
}

/// Returns whether rows get another clustered key, or a nullable column becomes NOT NULL.
fn keys_rows_again(before: &Table, after: &Described) -> bool {
    let mut columns = after.table.columns.iter().zip(&after.column_origins);
    let loses_null = columns.any(|(column, origin)| {
        !column.nullable && origin.is_some_and(|origin| before.columns[origin].nullable)
    });
    loses_null || !is_same_clustering(before, after)
}

/// Returns MariaDB's reason for copying the rows into another table. Empty if it gives none.
fn only_copied(before: &Table, after: &Described, extent: Extent) -> Option<&'static str> {
    let table = &after.table;
    if after.drops_duplicates(before) {
        return Some("Creating unique indexes with IGNORE requires COPY algorithm to remove duplicate rows");
    }
    let mut columns = table.columns.iter().zip(&after.column_origins);
    if columns.any(|(column, origin)| origin.is_some_and(|origin| before.columns[origin].ty != column.ty)) {
        return Some("Cannot change column type");
    }
    if before.has_primary_key() && !table.has_primary_key() {
        return Some("Dropping a primary key is not allowed without also adding a new primary key");
    }
    let is_computed = |n: &usize| {
        let column = &table.columns[*n];
        let is_new = after.column_origins[*n].is_none();
        column.generated.as_ref().is_some_and(|generated| generated.stored)
            || is_new && matches!(column.default, DefaultValue::Expression(_))
    };
    if after.described.iter().any(is_computed) || checks_more(before, after) {
        return Some("");
    }
    moves_virtual(before, after, extent)
        .then_some("INPLACE ADD or DROP of virtual columns cannot be combined with other ALTER TABLE actions")
}

/// Returns whether virtual columns change their positions and other columns are added, reordered or, unless
/// only the description changes, dropped.
fn moves_virtual(before: &Table, after: &Described, extent: Extent) -> bool {
    let is_virtual = |table: &Table, n: usize| table.columns[n].is_virtual();
    let origins = &after.column_origins;
    let mut old = (0..before.columns.len()).filter(|n| is_virtual(before, *n));
    if old.all(|n| origins.get(n) == Some(&Some(n))) {
        return false;
    }
    let adds = (0..origins.len()).any(|n| origins[n].is_none() && !is_virtual(&after.table, n));
    let turns = !origins.iter().flatten().is_sorted();
    let drops = (0..before.columns.len()).any(|n| !is_virtual(before, n) && !origins.contains(&Some(n)));
    adds || turns || drops && extent != Extent::Description
}

/// Returns whether an index is dropped.
fn drops_index(before: &Table, after: &Described) -> bool {
    (0..before.indexes.len()).any(|old| old != ROWS && !after.index_origins.contains(&Some(old)))
}

/// Returns whether a FULLTEXT index is built. Concurrent writes are not tracked for it, so writers must wait.
pub(super) fn makes_words(before: &Table, after: &Described) -> bool {
    let mut indexes = after.table.indexes.iter().enumerate();
    indexes.any(|(n, index)| index.kind.has_words() && !is_same_index(before, after, n))
}
