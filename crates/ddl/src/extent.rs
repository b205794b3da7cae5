//! Determines the part of a table's data that ALTER TABLE must rebuild.
//!
//! | change | work |
//! |---|---|
//! | names, defaults, comments, options; no NOT NULL added | the description only |
//! | a new column with one value for all old rows | the description: old rows lack the column |
//! | a dropped column | the description: rows keep its place, and new rows have NULL there |
//! | the order of columns | the description: rows keep their order ([`storage`]) |
//! | secondary and unique keys | these keys are built from the rows |
//! | a new CHECK, a generated column | the rows are copied, and each is checked and computed |
//! | the page format on disk | the rows are copied, except for another compression level |
//! | anything else: types, NULL, the clustered key | the rows are copied, all keys are built |
//!
//! Copied rows contain the columns in the order of the description. Rows are also copied if the places of
//! dropped columns would become too many, and if `innodb_instant_alter_column_allowed` forbids a change that
//! needs no copy.

use cohort_catalog::{Column, DefaultValue, ROWS, Table};
use cohort_config::{Globals, VarId};
use cohort_types::StoredPlace;

use super::describe::{is_same_clustering, is_same_index};
use super::draft::{COLUMNS_MAX, Described};
use super::{engine_format, rules};

/// The part of a table's data that must be rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Description,
    Keys,
    Rows,
}

/// The column changes that may leave the rows as they are: `innodb_instant_alter_column_allowed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Allowed {
    Never,
    AddLast,
    AddDropReorder,
}

impl Allowed {
    pub(super) fn of(globals: &Globals) -> Allowed {
        match globals.uint(VarId::InnodbInstantAlterColumnAllowed) {
            0 => Allowed::Never,
            1 => Allowed::AddLast,
            _ => Allowed::AddDropReorder,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Allowed::Never => "never",
            Allowed::AddLast => "add_last",
            Allowed::AddDropReorder => "add_drop_reorder",
        }
    }
}

/// Returns the minimum setting that permits the statement's added, dropped and moved columns without a copy.
/// Returns `None` if all columns stay.
pub(super) fn moves(before: &Table, after: &Described) -> Option<Allowed> {
    let stay = after.column_origins.iter().zip(0..).take_while(|(origin, n)| **origin == Some(*n)).count();
    let adds_last = after.column_origins[stay..].iter().all(Option::is_none);
    match stay == before.columns.len() && adds_last {
        true if stay == after.column_origins.len() => None,
        true => Some(Allowed::AddLast),
        false => Some(Allowed::AddDropReorder),
    }
}

/// Returns the part to rebuild.
pub(super) fn extent(before: &Table, after: &Described, allowed: Allowed) -> Extent {
    let table = &after.table;
    if needs_rows(before, after)
        || moves(before, after).is_some_and(|needed| needed > allowed)
        || storage(before, after).len() > COLUMNS_MAX
    {
        return Extent::Rows;
    }
    let is_new = |n: usize| n != ROWS && !is_same_index(before, after, n);
    if (0..table.indexes.len()).any(is_new) { Extent::Keys } else { Extent::Description }
}

/// Returns whether the rows must be copied in any case.
fn needs_rows(before: &Table, after: &Described) -> bool {
    let table = &after.table;
    let old_column = |name: &str| before.column(name);
    let new_column = |name: &str| after.column_origins[table.column(name)?];
    let is_same = |old: &str, new: &str| rules::is_same(old, new, &old_column, &new_column);
    let same_generated = |old: &Column, new: &Column| match (&old.generated, &new.generated) {
        (None, None) => true,
        (Some(old), Some(new)) => old.stored == new.stored && is_same(&old.text, &new.text),
        _ => false,
    };
    let no_new_check = |old: &Column, new: &Column| match (&old.check, &new.check) {
        (_, None) => true,
        (Some(old), Some(new)) => is_same(old, new),
        (None, Some(_)) => false,
    };
    let same_columns = table.columns.iter().zip(&after.column_origins).all(|(new, origin)| {
        match origin.map(|origin| &before.columns[origin]) {
            Some(old) => {
                old.ty == new.ty
                    && old.nullable == new.nullable
                    && same_generated(old, new)
                    && no_new_check(old, new)
            }
            // An expression is computed for every row, and AUTO_INCREMENT numbers them. As in MariaDB, the
            // column's own CHECK is not applied to existing rows.
            None => {
                !matches!(new.default, DefaultValue::Expression(_))
                    && !new.auto_increment
                    && new.generated.is_none()
            }
        }
    }) && table
        .checks
        .iter()
        .all(|check| before.checks.iter().any(|old| is_same(&old.text, &check.text)));
    let same_engine = before.engine == table.engine && !engine_format::needs_copy(before, table);
    !same_columns || recounts(before, after) || !is_same_clustering(before, after) || !same_engine
}

/// Returns whether a column becomes AUTO_INCREMENT that did not number the rows before.
pub(super) fn recounts(before: &Table, after: &Described) -> bool {
    let counted = |table: &Table| table.columns.iter().position(|column| column.auto_increment);
    counted(&after.table).is_some_and(|n| after.column_origins[n] != counted(before))
}

/// Returns whether the table gets a CHECK that its rows have not passed.
pub(super) fn checks_more(before: &Table, after: &Described) -> bool {
    let old_column = |name: &str| before.column(name);
    let new_column = |name: &str| after.column_origins[after.table.column(name)?];
    let is_same = |old: &str, new: &str| rules::is_same(old, new, &old_column, &new_column);
    let is_old = |new: &str| before.checks.iter().any(|old| is_same(&old.text, new));
    !after.table.checks.iter().all(|check| is_old(&check.text))
}

/// Returns the layout of rows that are kept while the description changes ([`Table::storage`]): the columns
/// they already contain, followed by the added columns.
pub(super) fn storage(before: &Table, after: &Described) -> Vec<StoredPlace> {
    let mut now: Vec<Option<usize>> = vec![None; before.columns.len()];
    let mut places: Vec<StoredPlace> = match before.storage.is_empty() {
        true => (0..before.columns.len()).map(StoredPlace::Column).collect(),
        false => before.storage.clone(),
    };
    let mut added = Vec::new();
    for (n, origin) in after.column_origins.iter().enumerate() {
        match origin {
            Some(origin) => now[*origin] = Some(n),
            None => added.push(StoredPlace::Column(n)),
        }
    }
    for place in &mut places {
        if let StoredPlace::Column(column) = *place {
            let dropped = || StoredPlace::dropped(&before.columns[column].ty);
            *place = now[column].map_or_else(dropped, StoredPlace::Column);
        }
    }
    places.extend(added);
    let as_shown = places.iter().enumerate().all(|(n, place)| *place == StoredPlace::Column(n));
    if as_shown { Vec::new() } else { places }
}
