//! DDL on a session's temporary tables. It takes no locks and logs nothing. The open transaction is committed
//! before only where MariaDB does so (`cohort_session::commits_implicitly`).
//!
//! Changes of the definition copy the rows, as in MariaDB.

use std::sync::Arc;

use cohort_catalog::{Schema, Table, TableName};
use cohort_config::VarId;
use cohort_session::StatementContext;
use cohort_session::access::drops_own;
use cohort_sql::ast::{
    AlterAction, AlterTable, CreateMode, CreateSelect, CreateTable, DropTable, ObjectName, RenameTable,
};
use cohort_table::Limits;
use cohort_types::{SqlError, SqlResult};

use super::alter_table::described;
use super::create_table::{describe, exists_already, like};
use super::rebuild::{Asked, rebuild};
use super::work::{Changes, check_table_name, refuse_virtual, schema_of, server_collation};
use super::{DdlOutcome, create_select, drop_table, sequence};

/// Returns the temporary table that a name refers to.
pub(super) fn named(ctx: &StatementContext<'_>, name: &ObjectName) -> Option<Arc<Table>> {
    let schema = name.db.as_deref().or(ctx.session.current_schema.as_deref())?;
    ctx.session.temporary.find(schema, &name.name)
}

/// Runs CREATE TEMPORARY TABLE and CREATE TEMPORARY SEQUENCE.
pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateTable) -> SqlResult<DdlOutcome> {
    if !create.foreign_keys.is_empty() {
        return Err(SqlError::foreign_key_of_temporary(&schema_of(ctx, &create.name)?, &create.name.name));
    }
    let name = TableName { schema: schema_of(ctx, &create.name)?, table: create.name.name.clone() };
    check_table_name(&name.table)?;
    refuse_virtual(ctx, &name.schema)?;
    let existing = ctx.session.temporary.find(&name.schema, &name.table);
    if existing.is_some() {
        match create.mode {
            CreateMode::Create => return Err(SqlError::table_exists(&name.table)),
            CreateMode::IfNotExists => return exists_already(ctx, &name),
            CreateMode::OrReplace => {}
        }
    }
    ctx.session.temporary.rows().set_limits(Limits {
        memory_bytes: ctx.session.settings.vars.uint(VarId::TmpTableSize),
        file_bytes: ctx.session.settings.vars.uint(VarId::TmpDiskTableSize),
    });
    let (table, outcome) = match (&create.query, &create.like) {
        (Some(select), _) => filled(ctx, create, select, &name)?,
        (None, Some(other)) => {
            if schema_of(ctx, other)? == name.schema && other.name == name.table {
                return Err(SqlError::non_unique_table(&name.table));
            }
            let table = like(ctx, &name, other)?;
            (own(ctx, table), DdlOutcome::default())
        }
        (None, None) if create.sequence.is_some() => {
            let table = sequence::describe(ctx, create, &name, &schema(ctx, &name))?;
            (own(ctx, table), DdlOutcome::default())
        }
        (None, None) => {
            let table = describe(ctx, create, &name, &schema(ctx, &name), Vec::new())?;
            (own(ctx, table), DdlOutcome::default())
        }
    };
    refuse_words(&table)?;
    if table.is_sequence() {
        sequence::write_first(ctx, create, &table)?;
        ctx.trx.keep_temporary_rows();
    }
    if existing.is_some() {
        ctx.session.temporary.drop_table(&name);
    }
    ctx.session.temporary.put(table);
    Ok(outcome)
}

/// Returns error 1796 for a table with FULLTEXT indexes.
fn refuse_words(table: &Table) -> SqlResult<()> {
    match table.indexes.iter().any(|index| index.kind.has_words()) {
        true => Err(SqlError::full_text_on_temporary()),
        false => Ok(()),
    }
}

/// Returns the schema in the table's name, which need not exist.
fn schema(ctx: &StatementContext<'_>, name: &TableName) -> Arc<Schema> {
    let known = ctx.db.catalog().schemas.get(&name.schema).cloned();
    known.unwrap_or_else(|| Arc::new(Schema::new(&name.schema, server_collation(ctx.session), "")))
}

/// Gives a table and its indexes ids from the session's range, which are not used in the catalog.
fn own(ctx: &StatementContext<'_>, mut table: Table) -> Arc<Table> {
    table.id = ctx.session.temporary.table_id();
    for index in &mut table.indexes {
        index.id = ctx.session.temporary.index_id();
    }
    Arc::new(table)
}

/// Runs CREATE TEMPORARY TABLE .. SELECT. A rollback of the transaction does not remove the rows.
fn filled(
    ctx: &mut StatementContext<'_>,
    create: &CreateTable,
    select: &CreateSelect,
    name: &TableName,
) -> SqlResult<(Arc<Table>, DdlOutcome)> {
    let query = create_select::bind(ctx, select, name)?;
    let selected = create_select::columns(ctx, select, &query)?;
    let count = selected.len();
    let table = describe(ctx, create, name, &schema(ctx, name), selected)?;
    let table = own(ctx, table);
    let plan = create_select::filling(ctx, &table, count, (query, select))?;
    match plan.run(ctx) {
        Ok(outcome) => {
            ctx.trx.keep_temporary_rows();
            let ddl_outcome =
                DdlOutcome { affected: outcome.affected, info: outcome.info, dropped_schema: None };
            Ok((table, ddl_outcome))
        }
        Err(error) => {
            ctx.session.temporary.free(table.trees());
            Err(error)
        }
    }
}

/// Runs DROP TEMPORARY TABLE.
pub(super) fn drop_named(ctx: &mut StatementContext<'_>, drop: &DropTable) -> SqlResult<DdlOutcome> {
    let names = drop_table::qualified(ctx, &drop.names)?;
    for (n, name) in names.iter().enumerate() {
        if names[..n].contains(name) {
            return Err(SqlError::non_unique_table(&name.table));
        }
    }
    let mut missing = Vec::new();
    for name in &names {
        let found = ctx.session.temporary.find(&name.schema, &name.table);
        match found.filter(|table| !drop.sequence || table.is_sequence()) {
            Some(_) => ctx.session.temporary.drop_table(name),
            None => missing.push(format!("{}.{}", name.schema, name.table)),
        }
    }
    if missing.is_empty() {
        return Ok(DdlOutcome::default());
    }
    let error = match drop.sequence {
        true => SqlError::unknown_sequence(&missing.join(",")),
        false => SqlError::unknown_table(&missing.join(",")),
    };
    if !drop.if_exists {
        return Err(error);
    }
    ctx.eval.note(error.code, error.message);
    Ok(DdlOutcome::default())
}

/// Runs DROP TABLE if a name means a temporary table, else returns `None`. If a temporary and a permanent
/// table have the same name, it drops the temporary one.
pub(super) fn drop_some(ctx: &mut StatementContext<'_>, drop: &DropTable) -> Option<SqlResult<DdlOutcome>> {
    let (own, others): (Vec<_>, Vec<_>) =
        drop.names.iter().cloned().partition(|name| drops_own(ctx.session, drop, name));
    if own.is_empty() {
        return None;
    }
    let own = DropTable { names: own, ..drop.clone() };
    let others = DropTable { names: others, ..drop.clone() };
    Some(drop_named(ctx, &own).and_then(|outcome| match others.names.is_empty() {
        true => Ok(outcome),
        false => drop_table::drop(ctx, &others),
    }))
}

/// Runs RENAME TABLE if a name means a temporary table, else returns `None`. Names of temporary and permanent
/// tables do not conflict.
pub(super) fn rename(ctx: &mut StatementContext<'_>, rename: &RenameTable) -> Option<SqlResult<DdlOutcome>> {
    let is_own = cohort_session::access::own_renames(ctx.session, &rename.renames);
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for (pair, is_own) in rename.renames.iter().zip(is_own) {
        match named(ctx, &pair.0).filter(|_| is_own) {
            Some(table) => own.push((table, &pair.1)),
            None => others.push(pair.clone()),
        }
    }
    if own.is_empty() {
        return None;
    }
    Some(rename_own(ctx, &own).and_then(|outcome| match others.is_empty() {
        true => Ok(outcome),
        false => drop_table::rename(ctx, &RenameTable { renames: others, ..rename.clone() }),
    }))
}

fn rename_own(ctx: &mut StatementContext<'_>, pairs: &[(Arc<Table>, &ObjectName)]) -> SqlResult<DdlOutcome> {
    let mut names = Vec::with_capacity(pairs.len());
    for (table, to) in pairs {
        let to = drop_table::qualified_one(ctx, to)?;
        check_free(ctx, table, &to)?;
        names.push(to);
    }
    for ((table, _), to) in pairs.iter().zip(names) {
        ctx.session.temporary.take(&table.name);
        ctx.session.temporary.put(Arc::new(Table { name: to, ..Table::clone(table) }));
    }
    Ok(DdlOutcome::default())
}

/// Returns error 1050 if the new name is taken.
fn check_free(ctx: &StatementContext<'_>, table: &Table, to: &TableName) -> SqlResult<()> {
    check_table_name(&to.table)?;
    match ctx.session.temporary.find(&to.schema, &to.table) {
        Some(other) if other.id != table.id => Err(SqlError::table_exists(&to.table)),
        _ => Ok(()),
    }
}

/// Runs TRUNCATE TABLE.
pub(super) fn truncate(ctx: &StatementContext<'_>, table: &Arc<Table>) -> SqlResult<DdlOutcome> {
    let mut empty = Table { auto_increment_start: 0, ..Table::clone(table) };
    for index in &mut empty.indexes {
        index.id = ctx.session.temporary.index_id();
    }
    ctx.session.temporary.put(Arc::new(empty));
    ctx.session.temporary.free(table.trees());
    Ok(DdlOutcome::default())
}

/// Runs ALTER TABLE, CREATE INDEX and DROP INDEX.
pub(super) fn alter(
    ctx: &mut StatementContext<'_>,
    alter: &AlterTable,
    before: &Arc<Table>,
) -> SqlResult<DdlOutcome> {
    let (after, extras) = described(ctx, alter, before)?;
    if !after.new_foreign_keys.is_empty() {
        return Err(SqlError::foreign_key_of_temporary(&before.name.schema, &before.name.table));
    }
    refuse_words(&after.table)?;
    if let Some(to) = &extras.rename {
        check_free(ctx, before, to)?;
    }
    let only_renames = alter.actions.iter().all(|action| matches!(action, AlterAction::RenameTable(_)));
    let mut changes = Changes::default();
    let asked = Asked { forced: !only_renames, options: &alter.alter };
    let (mut table, copied) = rebuild(ctx, before, after, asked, &mut changes)?;
    table.name = extras.rename.unwrap_or(table.name);
    ctx.session.temporary.take(&before.name);
    ctx.session.temporary.put(Arc::new(table));
    ctx.session.temporary.free(changes.freed.iter().map(|(_, space)| *space));
    if only_renames {
        return Ok(DdlOutcome::default());
    }
    Ok(copied.outcome(ctx.eval.warning_count()))
}

/// Runs OPTIMIZE TABLE.
pub fn recreate(ctx: &mut StatementContext<'_>, table: &Arc<Table>) -> SqlResult<()> {
    let force = AlterTable {
        ignore: false,
        if_exists: false,
        table: ObjectName { db: Some(table.name.schema.clone()), name: table.name.table.clone() },
        actions: vec![AlterAction::Force],
        alter: Default::default(),
    };
    alter(ctx, &force, table).map(drop)
}
