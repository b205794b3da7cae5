//! CREATE and ALTER SEQUENCE. A sequence is a table with eight columns and one row.

use std::sync::Arc;

use cohort_catalog::{Column, DefaultValue, Index, SEQUENCE_OPTION, Schema, Table, TableName};
use cohort_expr::SequenceName;
use cohort_session::StatementContext;
use cohort_session::sequence::{Definition, ROW_KEY, default_step, read};
use cohort_sql::ast::{AlterSequence, CreateTable, TableOption};
use cohort_trx::engine_error;
use cohort_types::{ColumnType, SqlError, SqlResult, TypeKind};

use super::create_table::created_at;
use super::work::{Changes, LogText, commit, lock_table};
use super::{DdlOutcome, options};

const START: &str = "start value when sequences is created or value if RESTART is used";
const CYCLE: &str =
    "0 if no cycles are allowed, 1 if the sequence should begin a new cycle when maximum_value is passed";

/// Returns the columns: name, type, comment.
fn columns() -> [(&'static str, ColumnType, &'static str); 8] {
    let number = || ColumnType::int(TypeKind::BigInt, Some(21), false);
    [
        ("next_not_cached_value", number(), ""),
        ("minimum_value", number(), ""),
        ("maximum_value", number(), ""),
        ("start_value", number(), START),
        ("increment", number(), "increment value"),
        ("cache_size", ColumnType::int(TypeKind::BigInt, Some(21), true), ""),
        ("cycle_option", ColumnType::int(TypeKind::TinyInt, Some(1), true), CYCLE),
        ("cycle_count", number(), "How many cycles have been done"),
    ]
}

/// Returns the table for a new sequence.
pub(super) fn describe(
    ctx: &StatementContext<'_>,
    create: &CreateTable,
    name: &TableName,
    schema: &Schema,
) -> SqlResult<Table> {
    let (mut engine, mut comment) = (None, String::new());
    for option in &create.options {
        match option {
            TableOption::Engine(name) => engine = Some(name.as_str()),
            TableOption::Comment(text) => comment.clone_from(text),
            _ => {}
        }
    }
    let catalog = ctx.db.catalog();
    let column = |(name, ty, comment): (&str, ColumnType, &str)| Column {
        comment: comment.to_owned(),
        ..Column::plain(name.to_owned(), ty, false, DefaultValue::None)
    };
    let rows = Index::hidden_row_id(ctx.db.ids.index(&catalog));
    Ok(Table {
        id: ctx.db.ids.table(&catalog),
        name: name.clone(),
        engine: options::engine(ctx, engine, &name.table)?,
        columns: columns().into_iter().map(column).collect(),
        indexes: vec![rows],
        collation: schema.collation,
        comment,
        auto_increment_start: 0,
        options: vec![(SEQUENCE_OPTION.to_owned(), "1".to_owned())],
        created_at: created_at(ctx),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        storage: Vec::new(),
        triggers: Vec::new(),
    })
}

/// Writes the row of a new sequence in the transaction that creates it; error 4085. A sequence created LIKE
/// another starts from its beginning.
pub(super) fn write_first(
    ctx: &mut StatementContext<'_>,
    create: &CreateTable,
    table: &Table,
) -> SqlResult<()> {
    let step = default_step(ctx.db);
    let definition = match (&create.sequence, &create.like) {
        (Some(options), _) => Definition::new(options, step),
        (None, Some(model)) => {
            let schema = super::work::schema_of(ctx, model)?;
            let model = SequenceName { schema: &schema, name: &model.name, base_only: false };
            let model = cohort_session::sequence::find(ctx.session, &ctx.db.catalog(), model)?;
            let model = read(ctx.session, &*ctx.trx.open_table(&model)?)?;
            Some(Definition { reserved_until: model.start, round: 0, ..model })
        }
        (None, None) => None,
    };
    let name = &table.name;
    let definition = definition.ok_or_else(|| SqlError::sequence_invalid_data(&name.schema, &name.table))?;
    write(ctx, &Arc::new(table.clone()), definition)
}

fn write(ctx: &mut StatementContext<'_>, table: &Arc<Table>, definition: Definition) -> SqlResult<()> {
    let open = ctx.trx.open_table(table)?;
    let mut bytes = Vec::new();
    open.layout.encode(&definition.to_row(), &mut bytes).map_err(|e| open.row_error(e))?;
    ctx.trx.engine(open.engine).put(table.rows().id, &ROW_KEY, &bytes).map_err(engine_error)
}

pub(super) fn alter(ctx: &mut StatementContext<'_>, alter: &AlterSequence) -> SqlResult<DdlOutcome> {
    let table = match lock_table(ctx, &alter.name) {
        Err(error) if error.code == cohort_types::ErrorCode::NoSuchTable => {
            let unknown = SqlError::unknown_sequence(&alter.name.name);
            if !alter.if_exists {
                return Err(unknown);
            }
            let schema = super::work::schema_of(ctx, &alter.name)?;
            let unknown = SqlError::unknown_sequence(&format!("{schema}.{}", alter.name.name));
            ctx.eval.note(unknown.code, unknown.message);
            return Ok(DdlOutcome::default());
        }
        other => other?,
    };
    write_altered(ctx, alter, &table)?;
    commit(ctx, Changes::default().with_xid(), LogText::AsWritten)?;
    ctx.db.sequences.forget(table.rows().id);
    Ok(DdlOutcome::default())
}

/// Runs ALTER SEQUENCE on a temporary sequence.
pub(super) fn alter_own(
    ctx: &mut StatementContext<'_>,
    alter: &AlterSequence,
    table: &Arc<Table>,
) -> SqlResult<DdlOutcome> {
    write_altered(ctx, alter, table)?;
    ctx.trx.keep_temporary_rows();
    ctx.db.sequences.forget(table.rows().id);
    Ok(DdlOutcome::default())
}

/// Writes the altered row. Reserved numbers that were not handed out are lost.
fn write_altered(ctx: &mut StatementContext<'_>, alter: &AlterSequence, table: &Arc<Table>) -> SqlResult<()> {
    let name = &table.name;
    if !table.is_sequence() {
        return Err(SqlError::not_a_sequence(&name.schema, &name.table));
    }
    let open = ctx.trx.open_table(table)?;
    let step = default_step(ctx.db);
    let altered = read(ctx.session, &open)?.altered(&alter.options, step);
    let altered = altered.ok_or_else(|| SqlError::sequence_invalid_data(&name.schema, &name.table))?;
    write(ctx, table, altered)
}
