//! Foreign keys of tables that are created, altered, renamed or dropped.
//!
//! # Ownership
//! The child's description contains the constraint. A parent's list of children is derived from it
//! (`cohort_catalog::ForeignKey`). So a statement commits only the descriptions of children: its own table's,
//! and, if it renames a parent or one of its columns, those of the tables that refer to it.
//!
//! # Locks
//! | statement | on the table | on its parents | on its children |
//! |---|---|---|---|
//! | adds a foreign key | `Exclusive` | `SharedNoWrite` | |
//! | renames the table or a column of it | `Exclusive` | | `Exclusive` |
//! | drops, truncates, changes it | `Exclusive` | | |
//!
//! While a key is added, the parent cannot be written: row changes that begin later know the child, and those
//! that began before have ended. Dropping a key needs no lock on the parent: a statement that still relies on
//! the key checks the child under the child's lock and finds the key dropped. The name of a constraint is
//! locked like a table name if it is new, or if it changes its name or schema together with its table. So no
//! two constraints get the same name.
//!
//! While a statement waits for a child, the child may be renamed or dropped. So the statement first locks all
//! children that exist at that time ([`lock_children`]), and only then reads their descriptions from the
//! current catalog. Descriptions that it read earlier may be outdated (`commit` refuses to write them back).
//!
//! # Crash safety
//! All descriptions of a statement are in one commit record, so the statement is atomic (I2).
//!
//! # Missing
//! DROP DATABASE fails as a whole if a table outside it refers to one of its tables. MariaDB drops the
//! others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohort_base::TableId;
use cohort_catalog::{Catalog, CatalogChange, ForeignAction, ForeignKey, Table, TableName};
use cohort_config::VarId;
use cohort_locks::{MetadataKey, MetadataMode};
use cohort_plan::same_name;
use cohort_session::StatementContext;
use cohort_sql::ast::{self, ReferenceAction};
use cohort_sql::print::quoted_name;
use cohort_table::{Misfit, bare_constraint_text, constraint_text, fit, leading_index};
use cohort_types::{ColumnType, ErrorCode, SqlError, SqlResult, Warning};

use super::draft::{Described, TableDraft};
use super::key;
use super::work::{check_key_name, schema_of};
use crate::draft::DraftForeign;

/// Converts a foreign key from the statement; error 1239.
pub(super) fn draft(
    ctx: &StatementContext<'_>,
    child: &TableName,
    key: &ast::ForeignKey,
) -> SqlResult<DraftForeign> {
    if let Some(name) = &key.name {
        check_key_name(name)?;
    }
    if !key.referenced_columns.is_empty() && key.referenced_columns.len() != key.columns.len() {
        let name = key.name.as_deref().unwrap_or("foreign key without name");
        return Err(SqlError::foreign_key_columns_differ(name));
    }
    let schema = match &key.references.db {
        None => child.schema.clone(),
        Some(_) => schema_of(ctx, &key.references)?,
    };
    let action = |action: ReferenceAction| match action {
        ReferenceAction::Cascade => ForeignAction::Cascade,
        ReferenceAction::SetNull => ForeignAction::SetNull,
        ReferenceAction::NoAction => ForeignAction::NoAction,
        // InnoDB accepts SET DEFAULT and treats it as RESTRICT.
        ReferenceAction::Unspecified | ReferenceAction::Restrict | ReferenceAction::SetDefault => {
            ForeignAction::Restrict
        }
    };
    Ok(DraftForeign {
        name: key.name.clone().unwrap_or_default(),
        columns: key.columns.clone(),
        parent: TableName { schema, table: key.references.name.clone() },
        // Without a column list, the parent's columns have the same names.
        parent_columns: match key.referenced_columns.is_empty() {
            true => key.columns.clone(),
            false => key.referenced_columns.clone(),
        },
        on_delete: action(key.on_delete),
        on_update: action(key.on_update),
        is_new: true,
    })
}

/// Returns the foreign keys of a table in draft form, for ALTER TABLE.
pub(super) fn drafts_of(table: &Table) -> Vec<DraftForeign> {
    let draft = |key: &ForeignKey| DraftForeign {
        name: key.name.clone(),
        columns: key.columns.iter().map(|c| table.columns[*c].name.clone()).collect(),
        parent: key.parent.clone(),
        parent_columns: key.parent_columns.clone(),
        on_delete: key.on_delete,
        on_update: key.on_update,
        is_new: false,
    };
    table.foreign_keys.iter().map(draft).collect()
}

/// Names the unnamed keys `t_ibfk_1`, `t_ibfk_2`, ...
pub(super) fn name_all(draft: &mut TableDraft) {
    let prefix = format!("{}_ibfk_", draft.name.table);
    let number = |key: &DraftForeign| key.name.strip_prefix(&prefix).and_then(|n| n.parse::<u32>().ok());
    let mut last = draft.foreign_keys.iter().filter_map(number).max().unwrap_or(0);
    for key in draft.foreign_keys.iter_mut().filter(|key| key.name.is_empty()) {
        last += 1;
        key.name = format!("{prefix}{last}");
    }
}

/// Returns the finished constraints, ordered by name. A missing column was refused before, so its key is not
/// in the draft.
pub(super) fn finished(draft: &TableDraft) -> Vec<ForeignKey> {
    let key = |key: &DraftForeign| ForeignKey {
        name: key.name.clone(),
        columns: key.columns.iter().filter_map(|name| draft.column(name)).collect(),
        parent: key.parent.clone(),
        parent_columns: key.parent_columns.clone(),
        on_delete: key.on_delete,
        on_update: key.on_update,
    };
    let mut keys: Vec<ForeignKey> = draft.foreign_keys.iter().map(key).collect();
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    keys
}

/// Returns whether the session checks foreign keys (`foreign_key_checks`).
pub(super) fn are_checked(ctx: &StatementContext<'_>) -> bool {
    ctx.session.settings.vars.flag(VarId::ForeignKeyChecks)
}

/// CREATE or ALTER, for the text of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Alter,
}

/// Locks the parents of new keys (those that `is_new` accepts) and checks these keys: error 1005.
pub(super) fn admit(
    ctx: &mut StatementContext<'_>,
    table: &Table,
    is_new: &dyn Fn(&ForeignKey) -> bool,
    verb: Verb,
) -> SqlResult<()> {
    refuse_generated(table)?;
    if verb == Verb::Create && are_checked(ctx) && !fits_children(&ctx.db.catalog(), table) {
        return Err(malformed(ctx, table, None));
    }
    if !table.foreign_keys.iter().any(is_new) {
        return Ok(());
    }
    lock_for(ctx, table, is_new)?;
    let catalog = ctx.db.catalog();
    for (n, key) in table.foreign_keys.iter().enumerate().filter(|(_, key)| is_new(key)) {
        let same = |other: &ForeignKey| same_name(&other.name, &key.name);
        if table.foreign_keys.iter().enumerate().any(|(other, key)| other != n && same(key)) {
            return Err(match verb == Verb::Alter && !are_checked(ctx) {
                true => SqlError::duplicate_foreign_key(&table.name.schema, &key.name),
                false => malformed(ctx, table, None),
            });
        }
        let is_taken = |other: &Arc<Table>| other.id != table.id && other.foreign_keys.iter().any(same);
        let schema = &table.name.schema;
        if catalog.schemas.get(schema).is_some_and(|schema| schema.tables.values().any(is_taken)) {
            return Err(duplicate(ctx, table, key));
        }
        check_one(ctx, &catalog, table, key, verb)?;
    }
    Ok(())
}

/// Returns whether a table can be the parent of the keys of other tables that refer to its name. Their parent
/// was dropped without checks, or has never existed.
fn fits_children(catalog: &Catalog, table: &Table) -> bool {
    let children = catalog.schemas.values().flat_map(|schema| schema.tables.values());
    let mut keys = children
        .filter(|child| child.id != table.id && child.name != table.name)
        .flat_map(|child| child.foreign_keys.iter().map(move |key| (child, key)))
        .filter(|(_, key)| key.parent == table.name);
    keys.all(|(child, key)| fit(child, key, table).is_ok())
}

/// Rejects a new table name if keys that refer to this name do not fit the table, regardless of
/// `foreign_key_checks`: error 1025.
pub(super) fn check_renamed(catalog: &Catalog, before: &TableName, after: &Table) -> SqlResult<()> {
    if fits_children(catalog, after) {
        return Ok(());
    }
    let to = &after.name;
    Err(SqlError::foreign_key_prevents_rename(&before.schema, &before.table, &to.schema, &to.table))
}

fn lock_for(
    ctx: &mut StatementContext<'_>,
    table: &Table,
    is_new: &dyn Fn(&ForeignKey) -> bool,
) -> SqlResult<()> {
    let new = || table.foreign_keys.iter().filter(|key| is_new(key));
    let parents: BTreeSet<&TableName> = new().map(|key| &key.parent).collect();
    for name in parents.into_iter().filter(|name| **name != table.name) {
        ctx.trx.lock_related(&MetadataKey::Schema(name.schema.as_str().into()), MetadataMode::SharedRead)?;
        let key = MetadataKey::Table(name.schema.as_str().into(), name.table.as_str().into());
        ctx.trx.lock_related(&key, MetadataMode::SharedNoWrite)?;
    }
    for key in new() {
        lock_constraint(ctx, &table.name.schema, &key.name)?;
    }
    Ok(())
}

fn check_one(
    ctx: &StatementContext<'_>,
    catalog: &Catalog,
    table: &Table,
    key: &ForeignKey,
    verb: Verb,
) -> SqlResult<()> {
    let columns: Vec<&str> = key.columns.iter().map(|c| &*table.columns[*c].name).collect();
    // An unnamed key is identified by its columns.
    let shown = match key.name.starts_with(&format!("{}_ibfk_", table.name.table)) {
        true => format!("({})", columns.join(",")),
        false => quoted_name(&key.name),
    };
    let sets_null = [key.on_delete, key.on_update].contains(&ForeignAction::SetNull);
    let fails = |with: &str, why: String| {
        let verb = if verb == Verb::Create { "Create" } else { "Alter" };
        let name = &table.name;
        let text = format!(
            "{verb}  table `{}`.`{}` {with}foreign key {shown} constraint failed. {why}",
            name.schema, name.table
        );
        Err(malformed(ctx, table, Some(text)))
    };
    if verb == Verb::Alter && !are_checked(ctx) {
        return check_in_place(catalog, table, key, sets_null);
    }
    if sets_null && let Some(c) = key.columns.iter().find(|c| !table.columns[**c].nullable) {
        let name = &table.columns[*c].name;
        let why =
            format!("You have defined a SET NULL condition but column '{name}' is defined as NOT NULL.");
        return fails("with ", why);
    }
    let is_self = key.parent == table.name;
    let found = catalog.table(&key.parent.schema, &key.parent.table);
    let parent = match found {
        _ if is_self => table,
        Some(parent) => parent,
        None if !are_checked(ctx) => return Ok(()),
        None => {
            let name = &key.parent;
            let why = format!(
                "Referenced table `{}`.`{}` not found in the data dictionary.",
                name.schema, name.table
            );
            return fails("with ", why);
        }
    };
    let misfit = match fit(table, key, parent) {
        Ok((theirs, _)) => {
            return match loses_null(table, key, parent, &theirs) {
                true => Err(malformed(ctx, table, None)),
                false => Ok(()),
            };
        }
        Err(misfit) => misfit,
    };
    match misfit {
        Misfit::NoColumn(name) => fails("", format!("Column {name} was not found.")),
        Misfit::Types(here, there) => fails(
            "with ",
            format!(
                "Field type or character set for column '{here}' does not match referenced column '{there}'."
            ),
        ),
        Misfit::NoIndex => fails(
            "with ",
            "There is no index in the referenced table where the referenced columns appear as the first \
             columns."
                .to_owned(),
        ),
        Misfit::PrefixOnly => fails(
            "with ",
            "There is only prefix index in the referenced table where the referenced columns appear as the \
             first columns."
                .to_owned(),
        ),
    }
}

/// Checks a key as MariaDB does when it alters in place: errors 1822, 1825. A missing parent is not an error.
fn check_in_place(catalog: &Catalog, table: &Table, key: &ForeignKey, sets_null: bool) -> SqlResult<()> {
    let found = match key.parent == table.name {
        true => Some(table),
        false => catalog.table(&key.parent.schema, &key.parent.table).map(|parent| &**parent),
    };
    let options = || Err(SqlError::foreign_key_options(&table.name.table, &table.name.schema, &key.name));
    match found.map(|parent| (parent, fit(table, key, parent))) {
        Some((_, Err(Misfit::NoColumn(_) | Misfit::NoIndex | Misfit::PrefixOnly))) => {
            Err(SqlError::parent_index_missing(&key.name, &key.parent.table))
        }
        Some((_, Err(Misfit::Types(..)))) => options(),
        _ if sets_null && key.columns.iter().any(|c| !table.columns[*c].nullable) => options(),
        Some((_, Ok(_))) | None => Ok(()),
    }
}

/// Returns whether a cascade could write NULL to a NOT NULL column of the child. As in MariaDB, this is
/// checked only for keys with ON DELETE RESTRICT and ON UPDATE CASCADE, and not when altering in place. For
/// other keys, the change of the parent row is refused.
fn loses_null(table: &Table, key: &ForeignKey, parent: &Table, theirs: &[usize]) -> bool {
    let loses =
        |(here, there): (&usize, &usize)| !table.columns[*here].nullable && parent.columns[*there].nullable;
    let is_looked_at = (key.on_delete, key.on_update) == (ForeignAction::Restrict, ForeignAction::Cascade);
    is_looked_at && key.columns.iter().zip(theirs).any(loses)
}

/// Rejects keys over generated columns, which a cascade cannot set, and generated columns and constraints
/// that read columns that a cascade sets: errors 1905, 1901.
fn refuse_generated(table: &Table) -> SqlResult<()> {
    for key in &table.foreign_keys {
        let clause = match (key.on_delete, key.on_update) {
            (ForeignAction::SetNull, _) => "ON DELETE SET NULL",
            (_, ForeignAction::Cascade) => "ON UPDATE CASCADE",
            (_, ForeignAction::SetNull) => "ON UPDATE SET NULL",
            _ => continue,
        };
        for column in &key.columns {
            if table.columns[*column].generated.is_some() {
                return Err(SqlError::foreign_key_on_generated(clause));
            }
            refuse_computed_from(table, &table.columns[*column].name)?;
        }
    }
    Ok(())
}

fn refuse_computed_from(table: &Table, base: &str) -> SqlResult<()> {
    // A cascade checks no constraint.
    let of_columns = table.columns.iter().filter_map(|column| Some((&column.name, column.check.as_ref()?)));
    let of_table = table.checks.iter().map(|check| (&check.name, &check.text));
    for (name, text) in of_columns.chain(of_table) {
        if super::rules::renamed(text, base, "?")? != *text {
            return Err(SqlError::not_allowed_in_clause(base, "CHECK", name));
        }
    }
    for column in &table.columns {
        let Some(generated) = &column.generated else { continue };
        if super::rules::renamed(&generated.text, base, "?")? == generated.text {
            continue;
        }
        if !generated.stored {
            return Err(SqlError::not_supported(
                "a foreign key that changes what a VIRTUAL column is computed from",
            ));
        }
        return Err(SqlError::not_allowed_in_clause(base, "GENERATED ALWAYS AS", &column.name));
    }
    Ok(())
}

fn warn(ctx: &StatementContext<'_>, code: ErrorCode, text: String) {
    ctx.eval.push_warning(Warning::new(SqlError::new(code, text)));
}

/// Creates error 1005 and adds the reason as a warning.
fn malformed(ctx: &StatementContext<'_>, table: &Table, why: Option<String>) -> SqlError {
    if let Some(why) = why {
        warn(ctx, ErrorCode::CannotAddForeign, why);
    }
    let name = &table.name.table;
    warn(ctx, ErrorCode::CannotAddForeignKey, format!("Cannot add foreign key constraint for `{name}`"));
    cannot_create(&table.name, "150 \"Foreign key constraint is incorrectly formed\"")
}

fn cannot_create(name: &TableName, errno: &str) -> SqlError {
    SqlError::cannot_create_table(&name.schema, &name.table, errno)
}

fn duplicate(ctx: &StatementContext<'_>, table: &Table, key: &ForeignKey) -> SqlError {
    let name = &table.name;
    let text = format!(
        "CREATE or ALTER TABLE `{}`.`{}` failed: duplicate name, {}",
        name.schema,
        name.table,
        constraint_text(table, key)
    );
    warn(ctx, ErrorCode::ForeignDuplicateName, text);
    warn(ctx, ErrorCode::DupKey, format!("Can't write; duplicate key in table '{}'", name.table));
    cannot_create(name, "121 \"Duplicate key on write or update\"")
}

/// Checks that ALTER TABLE keeps what the table's own remaining foreign keys need: errors 1553, 1830, 1832.
pub(super) fn check_kept(ctx: &StatementContext<'_>, before: &Table, draft: &TableDraft) -> SqlResult<()> {
    let is_checked = are_checked(ctx);
    for key in draft.foreign_keys.iter().filter(|key| !key.is_new) {
        let old: Vec<usize> = key_columns(before, &key.name);
        let now: Vec<_> = key.columns.iter().map(|name| draft.column(name)).collect();
        let is_led = draft.keys.iter().any(|index| {
            index.parts.len() >= key.columns.len()
                && !key::is_hashed(index, &draft.columns)
                && index
                    .parts
                    .iter()
                    .zip(&key.columns)
                    .all(|(part, name)| part.prefix.is_none() && same_name(&part.column, name))
        });
        let is_whole = now.iter().all(Option::is_some);
        if !is_whole || (is_checked && !is_led) {
            let index = leading_index(before, &old).map_or("", |n| &before.indexes[n].name);
            return Err(index_needed(index));
        }
        for (old, new) in old.iter().zip(now.into_iter().flatten()) {
            let (old, new) = (&before.columns[*old], &draft.columns[new].column);
            if changes_key(&old.ty, &new.ty) {
                let (column, name) = (&old.name, &key.name);
                return Err(SqlError::column_in_own_foreign_key(column, name));
            }
            let sets_null = [key.on_delete, key.on_update].contains(&ForeignAction::SetNull);
            if is_checked && sets_null && !new.nullable {
                return Err(SqlError::column_set_null_by_foreign_key(&new.name, &key.name));
            }
        }
    }
    Ok(())
}

/// Returns whether a column of a foreign key changes its type. The display width of an integer does not
/// count.
fn changes_key(old: &ColumnType, new: &ColumnType) -> bool {
    match old.kind == new.kind && old.kind.is_integer() {
        true => (old.unsigned, old.zerofill) != (new.unsigned, new.zerofill),
        false => old != new,
    }
}

fn key_columns(table: &Table, name: &str) -> Vec<usize> {
    let key = table.foreign_keys.iter().find(|key| key.name == name);
    key.map_or_else(Vec::new, |key| key.columns.clone())
}

fn index_needed(index: &str) -> SqlError {
    SqlError::index_needed_by_foreign_key(index)
}

/// Checks that ALTER TABLE keeps what referring tables need (errors 1025, 1553, 1829, 1833). Returns the
/// descriptions of these tables with the new column names.
pub(super) fn follow(
    ctx: &mut StatementContext<'_>,
    before: &Table,
    after: &mut Described,
) -> SqlResult<Vec<CatalogChange>> {
    let is_checked = are_checked(ctx);
    let mut renamed: Vec<Table> = Vec::new();
    if renames_columns(before, after) {
        lock_children(ctx, &[&before.name])?;
    }
    for (child, n) in before.references_from(&ctx.db.catalog()) {
        let key = &child.foreign_keys[n];
        let own = child.id == before.id;
        let kept = |name: &str| after.table.foreign_keys.iter().position(|key| key.name == name);
        let own_at = if own { kept(&key.name) } else { None };
        if own && own_at.is_none() {
            continue;
        }
        let mut names = Vec::new();
        let mut places = Vec::new();
        for name in &key.parent_columns {
            let Some(old) = before.column(name) else { continue };
            let Some(new) = after.column_origins.iter().position(|origin| *origin == Some(old)) else {
                // With `foreign_key_checks`, an index that loses the column is reported in place of the
                // column.
                let index = fit(&child, key, before).ok().map(|(_, index)| &before.indexes[index]);
                return Err(match index.filter(|index| is_checked && !index.kind.is_primary()) {
                    Some(index) => index_needed(&index.name),
                    None => column_needed(name, key, &child),
                });
            };
            let (old, new_column) = (&before.columns[old], &after.table.columns[new]);
            // This is checked regardless of `foreign_key_checks`.
            if changes_key(&old.ty, &new_column.ty) {
                let of = &child.name;
                return Err(SqlError::column_in_foreign_key_of(name, &key.name, &of.schema, &of.table));
            }
            let is_same = same_name(&old.name, &new_column.name);
            names.push(if is_same { name.clone() } else { new_column.name.clone() });
            places.push(new);
        }
        let fitted = fit(&child, key, before).ok().map(|(_, index)| &before.indexes[index]);
        if is_checked
            && leading_index(&after.table, &places).is_none()
            && let Some(index) = fitted
        {
            return Err(match index.kind.is_primary() {
                true => rename_failed(ctx, &before.name),
                false => index_needed(&index.name),
            });
        }
        if names == key.parent_columns {
            continue;
        }
        if let Some(at) = own_at {
            after.table.foreign_keys[at].parent_columns = names;
            continue;
        }
        let at = renamed.iter().position(|table| table.id == child.id).unwrap_or_else(|| {
            renamed.push(Table::clone(&child));
            renamed.len() - 1
        });
        renamed[at].foreign_keys[n].parent_columns = names;
    }
    Ok(renamed.into_iter().map(CatalogChange::PutTable).collect())
}

/// Returns error 1834 if rows of the table may be referenced: the copy must not leave out any.
pub(super) fn check_may_lose_rows(ctx: &StatementContext<'_>, before: &Table) -> SqlResult<()> {
    let references = before.references_from(&ctx.db.catalog());
    match references.first().filter(|_| are_checked(ctx)) {
        None => Ok(()),
        Some((child, n)) => {
            let (key, of) = (&child.foreign_keys[*n].name, &child.name.table);
            Err(SqlError::parent_needed_by_foreign_key(key, of))
        }
    }
}

/// Returns whether columns of foreign keys are renamed. `children` are the tables that refer to them.
pub(super) fn renames_keys(before: &Table, after: &Described, children: &[CatalogChange]) -> bool {
    let is_renamed = |old: &usize| {
        let new = after.column_origins.iter().position(|origin| *origin == Some(*old));
        new.is_some_and(|new| !same_name(&before.columns[*old].name, &after.table.columns[new].name))
    };
    !children.is_empty() || before.foreign_keys.iter().any(|key| key.columns.iter().any(is_renamed))
}

/// Returns whether a column is renamed.
fn renames_columns(before: &Table, after: &Described) -> bool {
    let mut columns = after.column_origins.iter().zip(&after.table.columns);
    columns
        .any(|(origin, column)| origin.is_some_and(|at| !same_name(&before.columns[at].name, &column.name)))
}

fn lock_child(ctx: &mut StatementContext<'_>, name: &TableName) -> SqlResult<()> {
    ctx.trx.lock_related(&MetadataKey::Schema(name.schema.as_str().into()), MetadataMode::SharedRead)?;
    let name = MetadataKey::Table(name.schema.as_str().into(), name.table.as_str().into());
    ctx.trx.lock_related(&name, MetadataMode::Exclusive)
}

fn column_needed(column: &str, key: &ForeignKey, child: &Table) -> SqlError {
    let (name, of) = (&key.name, &child.name);
    SqlError::column_needed_by_foreign_key_of(column, name, &of.schema, &of.table)
}

/// Creates MariaDB's error for a parent that would lose its primary key. MariaDB has copied the table by
/// then.
fn rename_failed(ctx: &StatementContext<'_>, name: &TableName) -> SqlError {
    let (schema, table, session) = (&name.schema, &name.table, ctx.session.info.id.0);
    SqlError::foreign_key_prevents_copy_rename(schema, std::process::id(), session, table)
}

/// Locks the tables that refer to `parents`, which are about to be renamed or to have columns renamed. On
/// return no other table refers to them, and none can start to, because the parents are locked themselves.
pub(super) fn lock_children(ctx: &mut StatementContext<'_>, parents: &[&TableName]) -> SqlResult<()> {
    let mut locked = BTreeSet::new();
    loop {
        let catalog = ctx.db.catalog();
        let tables = parents.iter().filter_map(|name| catalog.table(&name.schema, &name.table));
        let children = tables.flat_map(|table| &table.referenced_by);
        let missing: BTreeSet<TableName> =
            children.filter(|child| !parents.contains(child) && !locked.contains(*child)).cloned().collect();
        if missing.is_empty() {
            return Ok(());
        }
        for child in missing {
            lock_child(ctx, &child)?;
            // The child may have been renamed while this statement waited.
            locked.insert(child);
        }
    }
}

/// Returns the changes for a renamed table: its description with the new constraint names, and the tables
/// that refer to it. The caller holds their locks, and `catalog` was read after these were taken.
pub(super) fn renamed(catalog: &Catalog, before: &Table, mut after: Table) -> Vec<CatalogChange> {
    let generated = format!("{}_ibfk_", before.name.table);
    for key in &mut after.foreign_keys {
        if let Some(number) = key.name.strip_prefix(&generated) {
            key.name = format!("{}_ibfk_{number}", after.name.table);
        }
        if key.parent == before.name {
            key.parent = after.name.clone();
        }
    }
    after.foreign_keys.sort_by(|a, b| a.name.cmp(&b.name));
    let mut changes = Vec::new();
    for name in before.children(catalog).iter().filter(|name| **name != before.name) {
        let child = catalog.table(&name.schema, &name.table).expect("a table that refers to others is there");
        let mut child = Table::clone(child);
        for key in child.foreign_keys.iter_mut().filter(|key| key.parent == before.name) {
            key.parent = after.name.clone();
        }
        changes.push(CatalogChange::PutTable(child));
    }
    changes.insert(0, CatalogChange::PutTable(after));
    changes
}

/// Locks the new names that foreign keys get when their table changes its name or schema. If two keys of a
/// schema would have the same name, returns error 1050, as in MariaDB (followed by 1025).
pub(super) fn admit_names(ctx: &mut StatementContext<'_>, changes: &[CatalogChange]) -> SqlResult<()> {
    // Descriptions after all changes.
    let mut put: BTreeMap<TableId, &Table> = BTreeMap::new();
    for change in changes {
        if let CatalogChange::PutTable(table) = change {
            put.insert(table.id, table);
        }
    }
    let before = ctx.db.catalog();
    let has = |table: &Table, schema: &str, name: &str| {
        table.name.schema == schema && table.foreign_keys.iter().any(|key| same_name(&key.name, name))
    };
    let mut new: Vec<(&Table, &str)> = Vec::new();
    for table in put.values() {
        let old = before.table_by_id(table.id);
        let names = table.foreign_keys.iter().map(|key| &*key.name);
        let is_new = |name: &&str| !old.is_some_and(|old| has(old, &table.name.schema, name));
        new.extend(names.filter(is_new).map(|name| (*table, name)));
    }
    for (table, name) in &new {
        lock_constraint(ctx, &table.name.schema, name)?;
    }
    let catalog = ctx.db.catalog();
    for (table, name) in new {
        let schema = &table.name.schema;
        let others = catalog.schemas.get(schema).into_iter().flat_map(|schema| schema.tables.values());
        let is_taken =
            others.filter(|other| !put.contains_key(&other.id)).any(|other| has(other, schema, name))
                || put.values().any(|other| other.id != table.id && has(other, schema, name))
                || table.foreign_keys.iter().filter(|key| same_name(&key.name, name)).count() > 1;
        if is_taken {
            return Err(SqlError::table_exists(&format!("./{schema}/{}", table.name.table)));
        }
    }
    Ok(())
}

/// Locks a constraint name. Constraint names are unique within a schema.
fn lock_constraint(ctx: &mut StatementContext<'_>, schema: &str, name: &str) -> SqlResult<()> {
    let name = format!("#foreign key/{}", name.to_lowercase());
    ctx.trx.lock_related(&MetadataKey::Table(schema.into(), name.into()), MetadataMode::Exclusive)
}

/// Returns error 1451 if a table other than `going` refers to one that is about to be dropped.
pub(super) fn check_droppable(
    ctx: &StatementContext<'_>,
    table: &Table,
    going: &dyn Fn(&TableName) -> bool,
) -> SqlResult<()> {
    let stays = |child: &&TableName| **child != table.name && !going(child);
    if !are_checked(ctx) || !table.referenced_by.iter().any(|child| stays(&child)) {
        return Ok(());
    }
    Err(SqlError::parent_row_referenced())
}

/// Returns error 1701 if another table refers to one that is about to be truncated.
pub(super) fn check_truncatable(ctx: &StatementContext<'_>, table: &Table) -> SqlResult<()> {
    if !are_checked(ctx) {
        return Ok(());
    }
    let references = table.references_from(&ctx.db.catalog());
    let Some((child, n)) = references.iter().find(|(child, _)| child.id != table.id) else { return Ok(()) };
    let name = &child.name;
    Err(SqlError::table_referenced_by_foreign_key(
        &name.schema,
        &name.table,
        &bare_constraint_text(child, &child.foreign_keys[*n], true),
    ))
}
