//! CREATE, ALTER, DROP DATABASE.

use cohort_catalog::{CatalogChange, Schema};
use cohort_locks::MetadataMode;
use cohort_plan::charset;
use cohort_session::StatementContext;
use cohort_sql::ast::{AlterDatabase, CreateDatabase, CreateMode, DropDatabase};
use cohort_types::{SqlError, SqlResult};

use super::work::{
    Changes, IDENTIFIER_CHARS_MAX, LogText, check_identifier, commit, lock_schema, lock_table_name,
    refuse_virtual, server_collation,
};
use super::{DdlOutcome, foreign, program, view};

pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateDatabase) -> SqlResult<DdlOutcome> {
    let name = &create.name;
    if is_computed(ctx, name, "CREATE DATABASE") {
        return Ok(DdlOutcome::default());
    }
    refuse_virtual(ctx, name)?;
    check_identifier(name, SqlError::wrong_database_name)?;
    let collation = charset::of_database(&create.options, server_collation(ctx.session))?;
    let existing = lock_schema(ctx, name, MetadataMode::Exclusive)?;
    let mut changes = Changes::default();
    let mut affected = 1;
    if let Some(schema) = existing {
        match create.mode {
            CreateMode::Create => return Err(SqlError::database_exists(name)),
            CreateMode::IfNotExists => {
                let error = SqlError::database_exists(name);
                ctx.eval.note(error.code, error.message);
                commit(ctx, changes, LogText::AboutSchema(name.clone()))?;
                return Ok(DdlOutcome::default());
            }
            CreateMode::OrReplace => {
                drop_all(ctx, &schema, &mut changes)?;
                affected = 2;
            }
        }
    }
    let comment = create.options.comment.as_deref().unwrap_or_default();
    changes.catalog.push(CatalogChange::PutSchema(Schema::new(name, collation, comment)));
    commit(ctx, changes, LogText::AboutSchema(name.clone()))?;
    Ok(DdlOutcome { affected, ..DdlOutcome::default() })
}

/// Adds a note and returns true for performance_schema. Upgrade programs of MariaDB drop and create it.
fn is_computed(ctx: &StatementContext<'_>, name: &str, statement: &str) -> bool {
    let is_it = ctx.db.virtual_tables.virtual_schema(name) == Some("performance_schema");
    if is_it {
        let note = SqlError::computed_database(name, statement);
        ctx.eval.note(note.code, note.message);
    }
    is_it
}

pub(super) fn alter(ctx: &mut StatementContext<'_>, alter: &AlterDatabase) -> SqlResult<DdlOutcome> {
    let current = ctx.session.current_schema.as_deref();
    let name = alter.name.as_deref().or(current).ok_or_else(SqlError::no_database_selected)?.to_owned();
    refuse_virtual(ctx, &name)?;
    let schema =
        lock_schema(ctx, &name, MetadataMode::Exclusive)?.ok_or_else(|| SqlError::unknown_database(&name))?;
    let comment = alter.options.comment.clone().unwrap_or_else(|| schema.comment.clone());
    let collation = charset::of_database(&alter.options, schema.collation)?;
    let change = CatalogChange::PutSchema(Schema::new(&schema.name, collation, &comment));
    commit(ctx, Changes::one(change), LogText::AboutSchema(name))?;
    Ok(DdlOutcome { affected: 1, ..DdlOutcome::default() })
}

pub(super) fn drop(ctx: &mut StatementContext<'_>, drop: &DropDatabase) -> SqlResult<DdlOutcome> {
    let name = &drop.name;
    check_length(name)?;
    if is_computed(ctx, name, "DROP DATABASE") {
        return Ok(DdlOutcome::default());
    }
    refuse_virtual(ctx, name)?;
    let schema = lock_schema(ctx, name, MetadataMode::Exclusive)?;
    let mut changes = Changes::default();
    let Some(schema) = schema else {
        let error = SqlError::database_missing(name);
        if !drop.if_exists {
            return Err(error);
        }
        ctx.eval.note(error.code, error.message);
        commit(ctx, changes.with_xid(), LogText::AboutSchema(name.clone()))?;
        return Ok(DdlOutcome::default());
    };
    let affected = (schema.tables.len() + schema.views.len()) as u64;
    drop_all(ctx, &schema, &mut changes)?;
    changes.catalog.push(CatalogChange::DropSchema(name.clone()));
    let log = match affected {
        0 => LogText::AboutSchema(name.clone()),
        _ => LogText::DropSchema(name.clone()),
    };
    commit(ctx, changes.with_xid(), log)?;
    Ok(DdlOutcome { affected, dropped_schema: Some(name.clone()), ..DdlOutcome::default() })
}

fn drop_all(ctx: &mut StatementContext<'_>, schema: &Schema, changes: &mut Changes) -> SqlResult<()> {
    for (name, table) in &schema.tables {
        lock_table_name(ctx, &schema.name, name, MetadataMode::Exclusive)?;
        foreign::check_droppable(ctx, table, &|child| child.schema == schema.name)?;
        changes.drop_table(ctx, table)?;
    }
    program::drop_all(ctx, schema, changes)?;
    view::drop_all(ctx, schema, changes)
}

/// Returns error 1102 for a name that is too long for a database.
pub(super) fn check_length(name: &str) -> SqlResult<()> {
    match name.chars().count() > IDENTIFIER_CHARS_MAX {
        true => Err(SqlError::wrong_database_name(name)),
        false => Ok(()),
    }
}
