//! ALTER TABLE, CREATE INDEX, DROP INDEX.

use cohort_base::CommitSeq;
use cohort_catalog::{Catalog, CatalogChange, Column, DefaultValue, ForeignKey, Table, TableName};
use cohort_plan::{charset, same_name};
use cohort_session::{StatementContext, TableUse};
use cohort_sql::ast::{
    AlterAction, AlterOptions, AlterTable, ColumnDef, ColumnPosition, CreateIndex, CreateMode, DropIndex,
    ObjectName, TableOption,
};
use cohort_types::{Collation, ErrorCode, SqlError, SqlResult, Value};

use super::column::ColumnHome;
use super::convert::convert;
use super::draft::{Described, DraftColumn, TableDraft};
use super::drop_table::{lock_target, qualified_one, renamed};
use super::rebuild::{Asked, rebuild};
use super::work::{
    Changes, LogText, check_identifier, check_key_name, commit, free, lock_table, report_table, schema_of,
};
use super::{DdlOutcome, column, foreign, foreign_rows, key, options, page_format, rules, temporary};

pub(super) fn create_index(ctx: &mut StatementContext<'_>, create: &CreateIndex) -> SqlResult<DdlOutcome> {
    let schema = create.table.db.as_deref().or(ctx.session.current_schema.as_deref()).unwrap_or_default();
    let catalog = ctx.db.catalog();
    let addition = index_addition(create, catalog.table(schema, &create.table.name).map(|table| &**table));
    self::alter(ctx, &addition)
}

/// Converts CREATE INDEX to ALTER TABLE. `table` is the existing table, if there is one.
pub(super) fn index_addition(create: &CreateIndex, table: Option<&Table>) -> AlterTable {
    let mut actions = Vec::new();
    let name = create.key.name.clone().unwrap_or_default();
    let has_it = table.is_some_and(|table| table.indexes.iter().any(|index| same_name(&index.name, &name)));
    if create.mode == CreateMode::OrReplace && has_it {
        actions.push(AlterAction::DropKey { if_exists: true, name });
    }
    let mut key = create.key.clone();
    key.if_not_exists = create.mode == CreateMode::IfNotExists;
    actions.push(AlterAction::AddKey(key));
    AlterTable {
        ignore: false,
        if_exists: false,
        table: create.table.clone(),
        actions,
        alter: create.alter.clone(),
    }
}

pub(super) fn drop_index(ctx: &mut StatementContext<'_>, drop: &DropIndex) -> SqlResult<DdlOutcome> {
    self::alter(ctx, &index_removal(drop))
}

/// Converts DROP INDEX to ALTER TABLE.
pub(super) fn index_removal(drop: &DropIndex) -> AlterTable {
    let action = match drop.name.eq_ignore_ascii_case("PRIMARY") {
        true => AlterAction::DropPrimaryKey { if_exists: drop.if_exists },
        false => AlterAction::DropKey { if_exists: drop.if_exists, name: drop.name.clone() },
    };
    AlterTable {
        ignore: false,
        if_exists: false,
        table: drop.table.clone(),
        actions: vec![action],
        alter: drop.alter.clone(),
    }
}

/// The requests of an ALTER TABLE besides a new description.
#[derive(Default)]
pub(super) struct Extras {
    /// ENGINE= or FORCE: the rows are copied even if nothing changes.
    pub(super) rebuild: bool,
    pub(super) rename: Option<TableName>,
    /// Columns that the statement has changed, in lower case: each can be changed once.
    changed: Vec<String>,
    /// CONVERT TO CHARACTER SET, which applies to all columns of the resulting table.
    convert: Option<Collation>,
}

pub(super) fn alter(ctx: &mut StatementContext<'_>, alter: &AlterTable) -> SqlResult<DdlOutcome> {
    let schema = schema_of(ctx, &alter.table)?;
    if let Some(found) =
        ctx.session.virtual_table(&schema, &alter.table.name).filter(|it| it.schema() == "mysql")
    {
        // Upgrade programs of MariaDB change these tables to the form that they have here.
        let note = SqlError::virtual_not_altered(found.name(), "ALTER TABLE");
        ctx.eval.note(note.code, note.message);
        return Ok(DdlOutcome::default());
    }
    let before = match lock_table(ctx, &alter.table) {
        Err(error) if alter.if_exists && error.code == ErrorCode::NoSuchTable => {
            ctx.eval.note(error.code, error.message);
            return Ok(DdlOutcome::default());
        }
        other => other?,
    };
    report_table(ctx, TableUse::Alter, &before);
    let only_renames = alter.actions.iter().all(|action| matches!(action, AlterAction::RenameTable(_)));
    if only_renames
        && !alter.actions.is_empty()
        && matches!(alter.alter.lock.as_deref(), Some("NONE" | "SHARED"))
    {
        return Err(SqlError::alter_not_supported("LOCK=NONE/SHARED", "LOCK=EXCLUSIVE"));
    }
    let (mut after, extras) = described(ctx, alter, &before)?;
    let keeps_columns = |a: &AlterAction| matches!(a, AlterAction::RenameTable(_) | AlterAction::Option(_));
    if before.is_sequence() && !alter.actions.iter().all(keeps_columns) {
        return Err(SqlError::sequence_invalid_structure(&before.name.schema, &before.name.table));
    }
    // Everything that can be refused is refused before the rows are copied.
    let renamed_to = match &extras.rename {
        Some(to) => {
            lock_target(ctx, to)?;
            foreign::lock_children(ctx, &[&before.name])?;
            Some(renamed(&ctx.db.catalog(), &before, to)?.name)
        }
        None => None,
    };
    let is_new = |after: &Described, key: &ForeignKey| after.new_foreign_keys.contains(&key.name);
    foreign::admit(ctx, &after.table, &|key| is_new(&after, key), foreign::Verb::Alter)?;
    let mut changes = Changes::default();
    changes.catalog = foreign::follow(ctx, &before, &mut after)?;
    if alter.alter.algorithm.as_deref() == Some("COPY")
        && foreign::renames_keys(&before, &after, &changes.catalog)
    {
        let reason = "Columns participating in a foreign key are renamed";
        return Err(SqlError::alter_not_supported_because("ALGORITHM=COPY", reason, "ALGORITHM=INPLACE"));
    }
    if let Some(name) = &renamed_to {
        let shown = Table { name: name.clone(), ..after.table.clone() };
        foreign::admit_names(ctx, &foreign::renamed(&ctx.db.catalog(), &before, shown))?;
    }
    foreign_rows::check(ctx, &before, &after)?;
    let asked = Asked { forced: extras.rebuild, options: &alter.alter };
    let (table, copied) = rebuild(ctx, &before, after, asked, &mut changes)?;
    let same_rows = table.rows().id == before.rows().id;
    if same_rows && table.auto_increment_start != before.auto_increment_start {
        let restarted = ctx.trx.restart_auto_increment(&before, table.auto_increment_start);
        restarted.inspect_err(|_| free(ctx, &changes.loaded))?;
    }
    match renamed_to {
        None => changes.catalog.push(CatalogChange::PutTable(table)),
        Some(name) => {
            let mut table = table;
            table.rename(name);
            let mut now = Catalog::clone(&ctx.db.catalog());
            now.apply(CommitSeq(0), changes.catalog.clone());
            changes.catalog.extend(foreign::renamed(&now, &before, table));
        }
    }
    let warnings = ctx.eval.warning_count();
    commit(ctx, changes.with_xid(), LogText::AsWritten)?;
    if only_renames {
        return Ok(DdlOutcome::default());
    }
    Ok(copied.outcome(warnings))
}

/// Returns the description of the altered table.
pub(super) fn described(
    ctx: &mut StatementContext<'_>,
    alter: &AlterTable,
    before: &Table,
) -> SqlResult<(Described, Extras)> {
    let mut draft = TableDraft::of(before);
    let mut extras = Extras::default();
    let (drops, others): (Vec<_>, Vec<_>) = alter.actions.iter().partition(|action| is_drop(action));
    for action in drops {
        apply(ctx, before, &mut draft, &mut extras, action)?;
    }
    let lost_check = drop_checks(before, &mut draft)?;
    settle_charset(&mut draft, &mut extras, &alter.actions)?;
    let others = rename_together(ctx, &mut draft, &mut extras, others)?;
    for action in rename_keys_together(ctx, before, &mut draft, others)? {
        apply(ctx, before, &mut draft, &mut extras, action)?;
    }
    if let Some(to) = extras.convert {
        convert(ctx, &mut draft, to)?;
    }
    let is_about_pages =
        |action: &AlterAction| matches!(action, AlterAction::Option(o) if page_format::is_about_pages(o));
    if alter.actions.iter().any(is_about_pages) {
        page_format::check(ctx, &draft, page_format::Verb::Alter)?;
    }
    if draft.columns.is_empty() {
        return Err(SqlError::cannot_drop_all_columns());
    }
    // As in MariaDB, renaming the table and enabling or disabling keys do not count as describing columns
    // again.
    let describes = |action: &AlterAction| {
        !matches!(action, AlterAction::RenameTable(_) | AlterAction::EnableKeys | AlterAction::DisableKeys)
    };
    if extras.rebuild || alter.actions.iter().any(describes) {
        column::check_zero_dates(ctx, draft.columns.iter().map(|drafted| &drafted.column))?;
    }
    settle_keys(&mut draft)?;
    lost_check.map_or(Ok(()), Err)?;
    foreign::check_kept(ctx, before, &draft)?;
    refuse_other_columns(&draft)?;
    let mut after = draft.finish(ctx, before.id, Some(before))?;
    after.ignores = alter.ignore;
    Ok((after, extras))
}

/// Runs OPTIMIZE TABLE: copies all rows and keys into new indexes. The old ones are freed together with the
/// space that deleted rows occupied.
pub fn recreate(ctx: &mut StatementContext<'_>, name: &ObjectName) -> SqlResult<()> {
    if let Some(own) = temporary::named(ctx, name) {
        return temporary::recreate(ctx, &own);
    }
    let before = lock_table(ctx, name)?;
    let after = TableDraft::of(&before).finish(ctx, before.id, Some(&before))?;
    let mut changes = Changes::default();
    let asked = Asked { forced: true, options: &AlterOptions::default() };
    let (table, _) = rebuild(ctx, &before, after, asked, &mut changes)?;
    changes.catalog.push(CatalogChange::PutTable(table));
    commit(ctx, changes.into_part(), LogText::ByCaller)
}

/// Returns whether the action drops something. As in MariaDB, drops run before additions and renames in
/// whatever order they are written, so their names refer to the table as it was.
fn is_drop(action: &AlterAction) -> bool {
    use AlterAction as A;
    matches!(
        action,
        A::DropColumn { .. }
            | A::DropKey { .. }
            | A::DropPrimaryKey { .. }
            | A::DropForeignKey { .. }
            | A::DropConstraint { .. }
    )
}

/// Renames all columns at once, so that two may exchange their names. Each column may be changed once.
/// Returns the remaining actions; CHANGE finds its column by the new name.
fn rename_together<'a>(
    ctx: &StatementContext<'_>,
    draft: &mut TableDraft,
    extras: &mut Extras,
    actions: Vec<&'a AlterAction>,
) -> SqlResult<Vec<&'a AlterAction>> {
    let (mut renames, mut left): (Vec<(usize, &str)>, _) = (Vec::new(), Vec::new());
    for action in actions {
        let (old_name, if_exists, new_name) = match action {
            AlterAction::RenameColumn { if_exists, old_name, new_name } => (old_name, *if_exists, new_name),
            AlterAction::ChangeColumn { if_exists, old_name, column, .. } => {
                (old_name, *if_exists, &column.name)
            }
            // A column that this statement adds may be modified, too.
            AlterAction::ModifyColumn { if_exists, column, .. } if draft.column(&column.name).is_some() => {
                (&column.name, *if_exists, &column.name)
            }
            other => {
                left.push(other);
                continue;
            }
        };
        let Some(n) = find_column(ctx, draft, old_name, if_exists)? else { continue };
        if renames.iter().any(|(renamed, _)| *renamed == n) {
            return Err(SqlError::unknown_column(old_name, &draft.name.table));
        }
        renames.push((n, new_name));
        // As in MariaDB, a moved column may also get another default.
        let is_moved = matches!(
            action,
            AlterAction::ChangeColumn { position: ColumnPosition::First | ColumnPosition::After(_), .. }
                | AlterAction::ModifyColumn {
                    position: ColumnPosition::First | ColumnPosition::After(_),
                    ..
                }
        );
        if !is_moved {
            extras.changed.push(new_name.to_lowercase());
        }
        match action {
            AlterAction::RenameColumn { .. } => check_identifier(new_name, SqlError::wrong_column_name)?,
            _ => left.push(action),
        }
    }
    let is_taken = |(n, name): &(usize, &str)| draft.column(name).is_some_and(|taken| taken != *n);
    if renames.iter().any(is_taken) {
        // Use temporary names first, so that no old name collides with a new one.
        for (n, _) in &renames {
            let mut names = (0..).map(|number| format!("column {number}"));
            let name = names.find(|name| draft.column(name).is_none()).expect("names without end");
            rename_column(draft, *n, &name)?;
        }
    }
    for (n, name) in renames {
        rename_column(draft, n, name)?;
    }
    Ok(left)
}

/// Renames all keys at once, found by their old names, so that two may exchange their names. Returns the
/// remaining actions.
fn rename_keys_together<'a>(
    ctx: &StatementContext<'_>,
    before: &Table,
    draft: &mut TableDraft,
    actions: Vec<&'a AlterAction>,
) -> SqlResult<Vec<&'a AlterAction>> {
    let (mut renames, mut left): (Vec<(usize, &str)>, _) = (Vec::new(), Vec::new());
    for action in actions {
        let AlterAction::RenameKey { if_exists, old_name, new_name } = action else {
            left.push(action);
            continue;
        };
        for name in [old_name, new_name] {
            check_key_name(name)?;
            if name.eq_ignore_ascii_case("PRIMARY") {
                return Err(SqlError::wrong_index_name(name));
            }
        }
        match draft.key(old_name).filter(|n| renames.iter().all(|(renamed, _)| renamed != n)) {
            Some(n) => renames.push((n, new_name)),
            // IF EXISTS refers to the table as it was.
            None => {
                let if_exists = *if_exists && !has_key(before, old_name);
                missing(ctx, SqlError::unknown_key(old_name, &draft.name.table), if_exists)?;
            }
        }
    }
    for (n, name) in renames {
        draft.keys[n].name = Some(name.to_owned());
    }
    Ok(left)
}

fn has_key(table: &Table, name: &str) -> bool {
    table.indexes.iter().any(|index| same_name(&index.name, name))
}

fn apply(
    ctx: &mut StatementContext<'_>,
    before: &Table,
    draft: &mut TableDraft,
    extras: &mut Extras,
    action: &AlterAction,
) -> SqlResult<()> {
    match action {
        AlterAction::AddColumn { if_not_exists, column, position } => {
            if *if_not_exists && draft.column(&column.name).is_some() {
                note(ctx, &SqlError::duplicate_column(&column.name));
                return Ok(());
            }
            let made = column::draft(ctx, column, home(&draft.clone()))?;
            place(draft, made, position, None)
        }
        AlterAction::DropColumn { if_exists, name } => drop_column(ctx, draft, name, *if_exists),
        AlterAction::ModifyColumn { if_exists, column, position } => {
            change_column(ctx, draft, (&column.name, *if_exists), column, position)
        }
        // The column already has its new name.
        AlterAction::ChangeColumn { if_exists, column, position, .. } => {
            change_column(ctx, draft, (&column.name, *if_exists), column, position)
        }
        AlterAction::SetDefault { if_exists, column, default } => {
            let name = column.to_lowercase();
            if extras.changed.contains(&name) {
                return Err(SqlError::unknown_column(column, &draft.name.table));
            }
            extras.changed.push(name);
            set_default(ctx, draft, (column, *if_exists), default.as_ref())
        }
        AlterAction::AddKey(_)
        | AlterAction::DropKey { .. }
        | AlterAction::DropPrimaryKey { .. }
        | AlterAction::SetKeyIgnored { .. }
        | AlterAction::DropConstraint { .. } => apply_key(ctx, before, draft, action),
        AlterAction::RenameTable(to) => {
            extras.rename = Some(qualified_one(ctx, to)?);
            Ok(())
        }
        AlterAction::Option(option) => apply_option(ctx, draft, extras, option),
        // MariaDB adds no note if all keys are primary keys.
        AlterAction::EnableKeys | AlterAction::DisableKeys
            if draft.keys.iter().all(|key| key.kind.is_primary()) =>
        {
            Ok(())
        }
        AlterAction::EnableKeys | AlterAction::DisableKeys => {
            let (engine, name) = (&draft.engine, &draft.name);
            note(ctx, &SqlError::no_handler(engine, &name.schema, &name.table));
            Ok(())
        }
        AlterAction::Force => {
            extras.rebuild = true;
            Ok(())
        }
        // Handled before (`rename_together`, `rename_keys_together`, `settle_charset`).
        AlterAction::OrderBy(_)
        | AlterAction::RenameColumn { .. }
        | AlterAction::RenameKey { .. }
        | AlterAction::ConvertCharset { .. } => Ok(()),
        AlterAction::AddForeignKey(key) => {
            let known = key.name.as_deref().filter(|name| {
                key.if_not_exists && before.foreign_keys.iter().any(|known| same_name(&known.name, name))
            });
            match known {
                Some(name) => note(ctx, &SqlError::duplicate_key_name(name)),
                None => {
                    refuse_old_name(ctx, before, key.name.as_deref().unwrap_or_default())?;
                    draft.foreign_keys.push(foreign::draft(ctx, &draft.name, key)?);
                }
            }
            Ok(())
        }
        AlterAction::DropForeignKey { if_exists, name } => {
            let at = draft.foreign_keys.iter().position(|key| !key.is_new && same_name(&key.name, name));
            match at {
                Some(at) => drop(draft.foreign_keys.remove(at)),
                None => missing(ctx, SqlError::cannot_drop("FOREIGN KEY", name), *if_exists)?,
            }
            Ok(())
        }
        AlterAction::AddCheck(check) => {
            let is_known = |name: &&str| before.checks.iter().any(|known| same_name(&known.name, name));
            match check.name.as_deref().filter(|_| check.if_not_exists).filter(is_known) {
                Some(name) => note(ctx, &SqlError::duplicate_check(name)),
                None => draft.add_check(ctx, check)?,
            }
            Ok(())
        }
    }
}

/// Sets the table's character set from any of the actions, because columns described by the statement inherit
/// it.
fn settle_charset(draft: &mut TableDraft, extras: &mut Extras, actions: &[AlterAction]) -> SqlResult<()> {
    let before = draft.collation;
    let mut options = Vec::new();
    for action in actions {
        match action {
            AlterAction::ConvertCharset { charset, collation } => {
                let to = charset::resolve(charset.as_deref(), collation.as_deref(), before)?;
                (draft.collation, extras.convert) = (to, Some(to));
            }
            AlterAction::Option(option @ (TableOption::Charset(_) | TableOption::Collate(_))) => {
                options.push(option.clone());
            }
            _ => {}
        }
    }
    if !options.is_empty() {
        draft.collation = options::collation(&options, before)?;
    }
    Ok(())
}

/// Rejects the name of a foreign key that the same statement drops.
fn refuse_old_name(ctx: &StatementContext<'_>, before: &Table, name: &str) -> SqlResult<()> {
    let schema = &before.name.schema;
    match before.foreign_keys.iter().any(|key| same_name(&key.name, name)) {
        false => Ok(()),
        true if foreign::are_checked(ctx) => {
            Err(SqlError::foreign_key_name_exists(schema, &before.name.table))
        }
        true => Err(SqlError::duplicate_foreign_key(schema, name)),
    }
}

fn apply_option(
    ctx: &StatementContext<'_>,
    draft: &mut TableDraft,
    extras: &mut Extras,
    option: &TableOption,
) -> SqlResult<()> {
    match option {
        TableOption::Engine(engine) => {
            draft.engine = options::engine(ctx, Some(engine), &draft.name.table)?;
            extras.rebuild = true;
            Ok(())
        }
        // Handled by `settle_charset`.
        TableOption::Charset(_) | TableOption::Collate(_) => Ok(()),
        other => options::apply(ctx, draft, other),
    }
}

fn apply_key(
    ctx: &StatementContext<'_>,
    before: &Table,
    draft: &mut TableDraft,
    action: &AlterAction,
) -> SqlResult<()> {
    match action {
        AlterAction::AddKey(def) => {
            let made = key::draft(ctx, def)?;
            let exists = made.name.as_deref().is_some_and(|name| draft.key(name).is_some());
            if exists && def.generated && def.if_not_exists {
                return Ok(());
            }
            // IF NOT EXISTS refers to the table as it was, and to keys that this statement adds.
            let is_known = |name: &&str| {
                has_key(before, name) || draft.key(name).is_some_and(|n| draft.keys[n].origin.is_none())
            };
            match made.name.as_deref().filter(|_| def.if_not_exists).filter(is_known) {
                Some(name) => note(ctx, &SqlError::duplicate_key_name(name)),
                None => draft.keys.push(made),
            }
        }
        AlterAction::DropKey { if_exists, name } => match draft.key(name) {
            Some(n) => drop(draft.keys.remove(n)),
            None => missing(ctx, SqlError::cannot_drop("INDEX", name), *if_exists)?,
        },
        AlterAction::DropConstraint { if_exists, name } => {
            let is_constraint = |n: &usize| draft.keys[*n].kind.is_unique();
            if let Some(n) = draft.checks.iter().position(|check| same_name(&check.name, name)) {
                draft.checks.remove(n);
            } else if let Some(n) = draft.key(name).filter(is_constraint) {
                draft.keys.remove(n);
            } else if let Some(n) = draft.foreign_keys.iter().position(|key| same_name(&key.name, name)) {
                draft.foreign_keys.remove(n);
            } else {
                missing(ctx, SqlError::cannot_drop("CONSTRAINT", name), *if_exists)?;
            }
        }
        AlterAction::DropPrimaryKey { if_exists } => {
            match draft.keys.iter().position(|k| k.kind.is_primary()) {
                Some(n) => drop(draft.keys.remove(n)),
                None => missing(ctx, SqlError::cannot_drop("INDEX", "PRIMARY"), *if_exists)?,
            }
        }
        // The name must have existed before the statement; the key keeps it, or another key gets it.
        AlterAction::SetKeyIgnored { if_exists, name, ignored } => {
            let is_old = has_key(before, name);
            match draft.key(name).filter(|n| is_old && draft.keys[*n].origin.is_some()) {
                Some(n) if draft.keys[n].kind.is_primary() => {
                    return Err(SqlError::primary_key_ignored());
                }
                Some(n) => draft.keys[n].ignored = *ignored,
                None => {
                    missing(ctx, SqlError::unknown_key(name, &draft.name.table), *if_exists && !is_old)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn note(ctx: &StatementContext<'_>, error: &SqlError) {
    ctx.eval.note(error.code, error.message.clone());
}

/// Reports a missing object: an error, or a note with IF EXISTS.
fn missing(ctx: &StatementContext<'_>, error: SqlError, if_exists: bool) -> SqlResult<()> {
    if !if_exists {
        return Err(error);
    }
    note(ctx, &error);
    Ok(())
}

fn home(draft: &TableDraft) -> ColumnHome<'_> {
    ColumnHome { schema: &draft.name.schema, table: &draft.name.table, collation: draft.collation }
}

/// Inserts a column at its position. Without a position clause it goes to `unmoved`, or to the end.
fn place(
    draft: &mut TableDraft,
    column: DraftColumn,
    position: &ColumnPosition,
    unmoved: Option<usize>,
) -> SqlResult<()> {
    let at = match position {
        ColumnPosition::Unspecified => unmoved.unwrap_or(draft.columns.len()),
        ColumnPosition::First => 0,
        ColumnPosition::After(name) => {
            let found = draft.column(name);
            1 + found.ok_or_else(|| SqlError::unknown_column(name, &draft.name.table))?
        }
    };
    draft.columns.insert(at, column);
    Ok(())
}

fn find_column(
    ctx: &StatementContext<'_>,
    draft: &TableDraft,
    name: &str,
    if_exists: bool,
) -> SqlResult<Option<usize>> {
    let found = draft.column(name);
    if found.is_none() {
        missing(ctx, SqlError::unknown_column(name, &draft.name.table), if_exists)?;
    }
    Ok(found)
}

fn drop_column(
    ctx: &StatementContext<'_>,
    draft: &mut TableDraft,
    name: &str,
    if_exists: bool,
) -> SqlResult<()> {
    let Some(n) = draft.column(name) else {
        return missing(ctx, SqlError::cannot_drop("COLUMN", name), if_exists);
    };
    let column = draft.columns.remove(n).column;
    for key in &mut draft.keys {
        let words = key.kind.has_words();
        for part in key.parts.iter_mut().filter(|part| same_name(&part.column, &column.name)) {
            part.is_dropped = true;
            part.prefix = part.prefix.or_else(|| key::whole_length(&column.ty)).filter(|_| !words);
        }
    }
    Ok(())
}

/// Resolves keys whose columns were dropped. If a new column has the same name, it takes the place in the
/// key, with the old length. Otherwise the part is removed. A key without columns is dropped. A
/// primary or unique key that would lose only some is an error, because it would be stricter than before.
fn settle_keys(draft: &mut TableDraft) -> SqlResult<()> {
    let TableDraft { columns, keys, .. } = draft;
    let added = |name: &str| {
        columns.iter().find(|column| column.origin.is_none() && same_name(&column.column.name, name))
    };
    for key in keys.iter_mut() {
        for part in key.parts.iter_mut().filter(|part| part.is_dropped) {
            let Some(column) = added(&part.column) else {
                key.lost.get_or_insert_with(|| part.column.clone());
                continue;
            };
            let ty = &column.column.ty;
            let is_string = ty.kind.is_text() || ty.kind.is_binary_string();
            if !is_string && part.prefix == key::whole_length(ty) {
                part.prefix = None;
            }
            part.column.clone_from(&column.column.name);
            part.is_dropped = false;
        }
        key.parts.retain(|part| !part.is_dropped);
    }
    keys.retain(|key| !key.parts.is_empty());
    let lossy = keys.iter().filter(|key| key.kind.is_unique());
    match lossy.filter_map(|key| key.lost.as_ref()).next() {
        Some(column) => Err(SqlError::key_column_missing(column)),
        None => Ok(()),
    }
}

/// Rejects a foreign key whose column was dropped and replaced by another column of the same name.
fn refuse_other_columns(draft: &TableDraft) -> SqlResult<()> {
    for key in draft.foreign_keys.iter().filter(|key| !key.is_new) {
        let is_other = |name: &&String| draft.column(name).is_some_and(|n| draft.columns[n].origin.is_none());
        if let Some(column) = key.columns.iter().find(is_other) {
            return Err(SqlError::column_needed_by_own_key(column, &draft.name.schema, &key.name));
        }
    }
    Ok(())
}

/// Drops CHECK constraints of the table if all columns that they read are dropped. As in MariaDB, this
/// includes a CHECK that reads no column, if any column is dropped. Returns error 1054 for a CHECK that loses
/// only some columns.
fn drop_checks(before: &Table, draft: &mut TableDraft) -> SqlResult<Option<SqlError>> {
    let is_dropped = |name: &str| draft.column(name).is_none() && before.column(name).is_some();
    let dropped = || before.columns.iter().filter(|column| is_dropped(&column.name));
    if dropped().next().is_none() {
        return Ok(None);
    }
    let mut kept = Vec::new();
    for check in &draft.checks {
        let columns = rules::columns_of(&check.text)?;
        if columns.iter().all(|name| is_dropped(name)) {
            continue;
        }
        let is_read = |column: &&Column| columns.iter().any(|name| same_name(name, &column.name));
        if let Some(column) = dropped().find(is_read) {
            return Ok(Some(SqlError::unknown_column(&column.name, "CHECK")));
        }
        kept.push(check.clone());
    }
    draft.checks = kept;
    Ok(None)
}

fn rename_column(draft: &mut TableDraft, n: usize, to: &str) -> SqlResult<()> {
    let from = std::mem::replace(&mut draft.columns[n].column.name, to.to_owned());
    for part in draft.keys.iter_mut().flat_map(|key| &mut key.parts) {
        if !part.is_dropped && same_name(&part.column, &from) {
            part.column = to.to_owned();
        }
    }
    if from == to {
        return Ok(());
    }
    for name in draft.foreign_keys.iter_mut().filter(|key| !key.is_new).flat_map(|key| &mut key.columns) {
        if same_name(name, &from) {
            *name = to.to_owned();
        }
    }
    for column in &mut draft.columns {
        let column = &mut column.column;
        let generated = column.generated.as_mut().map(|generated| &mut generated.text);
        let default = match &mut column.default {
            DefaultValue::Expression(text) => Some(text),
            _ => None,
        };
        for text in generated.into_iter().chain(&mut column.check) {
            *text = rules::renamed(text, &from, to)?;
        }
        if let Some(text) = default {
            *text = match text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
                Some(inner) => format!("({})", rules::renamed(inner, &from, to)?),
                None => rules::renamed(text, &from, to)?,
            };
        }
    }
    for check in &mut draft.checks {
        check.text = rules::renamed(&check.text, &from, to)?;
    }
    Ok(())
}

fn change_column(
    ctx: &StatementContext<'_>,
    draft: &mut TableDraft,
    (name, if_exists): (&str, bool),
    def: &ColumnDef,
    position: &ColumnPosition,
) -> SqlResult<()> {
    let Some(n) = find_column(ctx, draft, name, if_exists)? else { return Ok(()) };
    let mut made = column::draft(ctx, def, home(&draft.clone()))?;
    let old = &draft.columns[n];
    if old.column.is_virtual() != made.column.is_virtual() {
        return Err(SqlError::unsupported_on_generated());
    }
    made.origin = old.origin;
    // Rows that do not store the column keep the value that they had.
    made.column.value_in_old_rows = old.column.value_in_old_rows.clone();
    rename_column(draft, n, &def.name)?;
    let ty = &made.column.ty;
    let may_have_prefix = ty.kind.is_text() || ty.kind.is_binary_string();
    for part in draft.keys.iter_mut().flat_map(|key| &mut key.parts) {
        let is_whole = |length| !may_have_prefix || (!ty.kind.is_blob() && length >= ty.length);
        if same_name(&part.column, &def.name) && part.prefix.is_some_and(is_whole) {
            part.prefix = None;
        }
    }
    draft.columns.remove(n);
    place(draft, made, position, Some(n))
}

fn set_default(
    ctx: &StatementContext<'_>,
    draft: &mut TableDraft,
    (name, if_exists): (&str, bool),
    default: Option<&cohort_sql::ast::ColumnDefault>,
) -> SqlResult<()> {
    let Some(n) = find_column(ctx, draft, name, if_exists)? else { return Ok(()) };
    let column = draft.columns[n].column.clone();
    draft.columns[n].column.default = match default {
        None if column.nullable => DefaultValue::Value(Value::Null),
        None if column.invisible => return Err(SqlError::invisible_without_default(&column.name)),
        None => DefaultValue::None,
        Some(default) => {
            let home = ColumnHome {
                schema: &draft.name.schema,
                table: &draft.name.table,
                collation: draft.collation,
            };
            column::default_of(ctx, &column.name, default, &column.ty, column.nullable, home)?
        }
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_what_goes_are_looked_up_first() {
        assert!(is_drop(&AlterAction::DropKey { if_exists: false, name: "k".to_owned() }));
        assert!(is_drop(&AlterAction::DropColumn { if_exists: false, name: "a".to_owned() }));
        assert!(is_drop(&AlterAction::DropConstraint { if_exists: false, name: "c".to_owned() }));
        assert!(!is_drop(&AlterAction::Force));
    }
}
