//! CREATE TABLE.

use cohort_catalog::{CatalogChange, Schema, Table, TableName};
use cohort_locks::MetadataMode;
use cohort_session::{Replaceable, StatementContext};
use cohort_sql::ast::{CreateMode, CreateTable, ObjectName, TableOption};
use cohort_types::{SqlError, SqlResult};

use super::column::ColumnHome;
use super::draft::{DraftColumn, TableDraft};
use super::work::{Changes, LogText, check_table_name, commit, enter_schema, lock_table_name, schema_of};
use super::{DdlOutcome, column, create_select, foreign, key, options, page_format, sequence, temporary};

pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateTable) -> SqlResult<DdlOutcome> {
    let schema_name = schema_of(ctx, &create.name)?;
    let name = TableName { schema: schema_name, table: create.name.name.clone() };
    check_table_name(&name.table)?;
    let schema = enter_schema(ctx, &name.schema)?;
    refuse_own_model(ctx, create, &name)?;
    if let Some(found) = ctx.db.virtual_table(&name.schema, &name.table) {
        match create.mode {
            CreateMode::IfNotExists => return exists_already(ctx, &name),
            CreateMode::Create | CreateMode::OrReplace if found.replaceable() != Replaceable::Never => {}
            CreateMode::Create | CreateMode::OrReplace => return Err(SqlError::table_exists(&name.table)),
        }
    }
    if schema.views.contains_key(&name.table) {
        return match create.mode {
            CreateMode::IfNotExists => exists_already(ctx, &name),
            CreateMode::Create => Err(SqlError::table_exists(&name.table)),
            CreateMode::OrReplace => Err(SqlError::is_a_view(&name.schema, &name.table)),
        };
    }
    // First check without the lock: a statement that only finds that the table exists need not wait for its
    // users.
    let is_there = schema.tables.contains_key(&name.table);
    if is_there && create.mode == CreateMode::Create {
        return Err(SqlError::table_exists(&name.table));
    }
    let mode = match create.mode {
        // Under LOCK TABLES the table must be locked for writing, although nothing will be written.
        CreateMode::IfNotExists if is_there && !ctx.trx.has_locked_tables() => MetadataMode::SharedRead,
        _ => MetadataMode::Exclusive,
    };
    lock_table_name(ctx, &name.schema, &name.table, mode)?;
    let catalog = ctx.db.catalog();
    if catalog.view(&name.schema, &name.table).is_some() {
        return Err(SqlError::table_exists(&name.table));
    }
    let mut changes = Changes::default();
    if let Some(existing) = catalog.table(&name.schema, &name.table).cloned() {
        match create.mode {
            CreateMode::Create => return Err(SqlError::table_exists(&name.table)),
            CreateMode::IfNotExists => return exists_already(ctx, &name),
            CreateMode::OrReplace => {
                foreign::check_droppable(ctx, &existing, &|_| false)?;
                changes.drop_table(ctx, &existing)?;
            }
        }
    } else if mode != MetadataMode::Exclusive {
        // The table was dropped between the check and the lock. This is rare, so the client is asked to
        // retry.
        return Err(SqlError::deadlock());
    }
    if let Some(select) = &create.query {
        return create_select::create(ctx, create, select, (&name, &schema), changes);
    }
    let mut log = match create.mode {
        CreateMode::OrReplace => LogText::ReplacingTable,
        CreateMode::Create | CreateMode::IfNotExists => LogText::AsWritten,
    };
    let table = match &create.like {
        Some(other) => {
            let table = like(ctx, &name, other)?;
            if temporary::named(ctx, other).is_some() {
                // The table named in LIKE may not exist on replicas, so the full definition is logged.
                log = LogText::Own(create_select::statement(ctx, create, &table));
            }
            table
        }
        None if create.sequence.is_some() => sequence::describe(ctx, create, &name, &schema)?,
        None => describe(ctx, create, &name, &schema, Vec::new())?,
    };
    foreign::admit(ctx, &table, &|_| true, foreign::Verb::Create)?;
    if table.is_sequence() {
        sequence::write_first(ctx, create, &table)?;
    }
    changes.catalog.push(CatalogChange::PutTable(table));
    commit(ctx, changes.with_xid(), log)?;
    Ok(DdlOutcome::default())
}

/// Returns error 1066 if a table is created LIKE itself.
pub(super) fn refuse_own_model(
    ctx: &StatementContext<'_>,
    create: &CreateTable,
    name: &TableName,
) -> SqlResult<()> {
    let Some(model) = &create.like else { return Ok(()) };
    let is_own = model.name == name.table && schema_of(ctx, model)? == name.schema;
    if is_own { Err(SqlError::non_unique_table(&name.table)) } else { Ok(()) }
}

pub(super) fn exists_already(ctx: &StatementContext<'_>, name: &TableName) -> SqlResult<DdlOutcome> {
    let error = SqlError::table_exists(&name.table);
    ctx.eval.note(error.code, error.message);
    Ok(DdlOutcome::default())
}

/// Returns the table that the statement describes. Columns of the query (`selected`) come last; a column that
/// was also written keeps its definition as written.
pub(super) fn describe(
    ctx: &StatementContext<'_>,
    create: &CreateTable,
    name: &TableName,
    schema: &Schema,
    selected: Vec<DraftColumn>,
) -> SqlResult<Table> {
    let wanted = create.options.iter().rev().find_map(|option| match option {
        TableOption::Engine(engine) => Some(engine.as_str()),
        _ => None,
    });
    let engine = options::engine(ctx, wanted, &name.table)?;
    let collation = options::collation(&create.options, schema.collation)?;
    let mut draft = TableDraft::new(name.clone(), engine, collation, created_at(ctx));
    for option in &create.options {
        options::apply(ctx, &mut draft, option)?;
    }
    match wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(&draft.engine)) {
        true => page_format::complete_options(ctx, &mut draft, create.temporary)?,
        false => page_format::check_of_other_engine(&draft)?,
    }
    let home = ColumnHome { schema: &name.schema, table: &name.table, collation };
    for def in &create.columns {
        draft.columns.push(column::draft(ctx, def, home)?);
    }
    let mut from_query = Vec::with_capacity(selected.len());
    for column in selected {
        let written = draft.column(&column.column.name);
        from_query.push(written.map_or(column, |n| draft.columns.remove(n)));
    }
    draft.columns.extend(from_query);
    for def in &create.keys {
        draft.keys.push(key::draft(ctx, def)?);
    }
    for check in &create.checks {
        draft.add_check(ctx, check)?;
    }
    for key in &create.foreign_keys {
        draft.foreign_keys.push(foreign::draft(ctx, name, key)?);
    }
    let id = ctx.db.ids.table(&ctx.db.catalog());
    Ok(draft.finish(ctx, id, None)?.table)
}

/// Returns a copy of another table's description with new ids and without data.
pub(super) fn like(ctx: &mut StatementContext<'_>, name: &TableName, other: &ObjectName) -> SqlResult<Table> {
    let other_schema = schema_of(ctx, other)?;
    if ctx.session.virtual_table(&other_schema, &other.name).is_some() {
        return Err(SqlError::not_supported("CREATE TABLE ... LIKE information_schema"));
    }
    let own = ctx.session.temporary.find(&other_schema, &other.name);
    if own.is_none() {
        lock_table_name(ctx, &other_schema, &other.name, MetadataMode::SharedRead)?;
    }
    let catalog = ctx.db.catalog();
    let model = own.or_else(|| catalog.table(&other_schema, &other.name).cloned());
    let Some(model) = model else {
        return Err(match catalog.view(&other_schema, &other.name) {
            Some(_) => SqlError::not_a_base_table(&other_schema, &other.name),
            None => SqlError::no_such_table(&other_schema, &other.name),
        });
    };
    column::check_zero_dates(ctx, model.columns.iter())?;
    let mut table = Table::clone(&model);
    table.id = ctx.db.ids.table(&catalog);
    table.name = name.clone();
    table.auto_increment_start = 0;
    table.foreign_keys.clear();
    table.triggers.clear();
    table.referenced_by.clear();
    table.created_at = created_at(ctx);
    for index in &mut table.indexes {
        index.id = ctx.db.ids.index(&catalog);
    }
    table.clear_storage();
    if !table.is_sequence() {
        super::describe::check_has_key(ctx, &table)?;
    }
    Ok(table)
}

/// Returns the statement's time in seconds since 1970.
pub(super) fn created_at(ctx: &StatementContext<'_>) -> u64 {
    (ctx.session.settings.env.now_micros / 1_000_000).max(0) as u64
}
