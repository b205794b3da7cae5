//! CREATE TABLE ... SELECT.
//!
//! The query is bound first. Its columns, merged with the column definitions of the statement, form the
//! table. Then the rows are written to indexes that nothing refers to yet, as INSERT ... SELECT would write
//! them, in the transaction that commits the table. So one commit record contains the description, the rows
//! and their events, and the statement is atomic.
//!
//! The binlog gets the same as from MariaDB: one transaction with a CREATE TABLE that lists all columns, and
//! row events.

use std::sync::Arc;

use cohort_catalog::{CatalogChange, Column, DefaultValue, Schema, Table, TableName};
use cohort_dml::InsertPlan;
use cohort_expr::{Coercibility, ExprType, NOT_FIXED_DECIMALS};
use cohort_plan::{ParamSource, PlanContext};
use cohort_protocol::ColumnMeta;
use cohort_query::{Freshness, QueryPlan, lock_tables, plan_query_within};
use cohort_session::{SessionNames, StatementContext, TableUse};
use cohort_sql::ast::{CreateMode, CreateSelect, CreateTable, QueryBody, TableOption};
use cohort_types::{Collation, ColumnType, SqlError, SqlResult, TypeKind, Value};

use super::create_table::describe;
use super::draft::DraftColumn;
use super::work::{Changes, LogText, check_identifier, commit_rows, log_ahead, report_table};
use super::{DdlOutcome, engine_format, foreign};
use crate::create_text::create_text;

/// Maximum attempts to plan: a concurrent DDL statement can run between planning and locking.
const PLAN_ATTEMPTS: usize = 20;

/// The longest computed string that becomes a VARCHAR.
const VARCHAR_CHARS_MAX: u32 = 512;

/// Creates and fills the table, whose name is locked exclusively. `changes` drops the table that it replaces.
pub(super) fn create(
    ctx: &mut StatementContext<'_>,
    create: &CreateTable,
    select: &CreateSelect,
    (name, schema): (&TableName, &Schema),
    mut changes: Changes,
) -> SqlResult<DdlOutcome> {
    let query = bind(ctx, select, name)?;
    let selected = columns(ctx, select, &query)?;
    let count = selected.len();
    let table = Arc::new(describe(ctx, create, name, schema, selected)?);
    foreign::admit(ctx, &table, &|_| true, foreign::Verb::Create)?;
    let plan = filling(ctx, &table, count, (query, select))?;
    log_ahead(ctx, LogText::Own(statement(ctx, create, &table)))?;
    // Overflow values are written before the table is committed, so the engine needs the page format now.
    engine_format::pass_all_to_engine(ctx.db, &table);
    let outcome = plan.run(ctx)?;
    changes.catalog.push(CatalogChange::PutTable(Table::clone(&table)));
    commit_rows(ctx, changes)?;
    report_table(ctx, TableUse::Write, &table);
    Ok(DdlOutcome { affected: outcome.affected, info: outcome.info, dropped_schema: None })
}

/// Plans the statement that fills the table. Its last columns are those of the query.
pub(super) fn filling(
    ctx: &StatementContext<'_>,
    table: &Arc<Table>,
    count: usize,
    (query, select): (QueryPlan, &CreateSelect),
) -> SqlResult<InsertPlan> {
    let filled = (table.columns.len() - count..table.columns.len()).collect();
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    InsertPlan::filling(&plan, table.clone(), filled, query, select.on_duplicate)
}

/// Plans the query and locks its tables.
pub(super) fn bind(
    ctx: &mut StatementContext<'_>,
    select: &CreateSelect,
    name: &TableName,
) -> SqlResult<QueryPlan> {
    let (params, source) = ctx.bound_params();
    for _ in 0..PLAN_ATTEMPTS {
        let catalog = ctx.db.catalog();
        let names = SessionNames::new(&catalog, ctx.session).with_out(source);
        let plan = PlanContext::new(&names, params, source);
        let query = plan_query_within(&plan, ctx.session, None, &select.query)?;
        names.take_needs().iter().try_for_each(|need| need.check(ctx.session))?;
        if query.tables().iter().any(|(table, _)| table.name == *name && !table.is_temporary()) {
            return Err(SqlError::target_is_source(&name.table, "CREATE"));
        }
        if !names.lock_programs(ctx, Vec::new())? {
            continue;
        }
        if lock_tables(&query, ctx)? == Freshness::Fresh {
            if let Some(tables) = ctx.session.audit_tables() {
                query.report_tables(&tables);
            }
            return Ok(query);
        }
    }
    Err(cohort_table::definition_changed())
}

/// Returns the columns of the query.
pub(super) fn columns(
    ctx: &StatementContext<'_>,
    select: &CreateSelect,
    query: &QueryPlan,
) -> SqlResult<Vec<DraftColumn>> {
    let catalog = ctx.db.catalog();
    let is_set = matches!(select.query.body, QueryBody::SetOperation { .. });
    let mut columns = Vec::with_capacity(query.columns.len());
    for (meta, ty) in query.columns.iter().zip(&query.types) {
        check_identifier(&meta.name, SqlError::wrong_column_name)?;
        let own = ctx.session.temporary.find(&meta.schema, &meta.org_table);
        let base = own.as_ref().or_else(|| catalog.table(&meta.schema, &meta.org_table));
        let origin = base.and_then(|table| table.columns.iter().find(|c| c.name == meta.org_name));
        let column = match origin {
            Some(origin) => copied(origin, meta, ty),
            // Columns of a materialized result (set operation, derived table) get an implicit default.
            None => computed(meta, ty, is_set || !meta.table.is_empty())?,
        };
        columns.push(DraftColumn { column, origin: None, is_described: true });
    }
    Ok(columns)
}

/// Copies a column's type, default and comment, but not AUTO_INCREMENT or invisibility.
fn copied(origin: &Column, meta: &ColumnMeta, ty: &ExprType) -> Column {
    let mut kept = origin.ty.clone();
    if kept.kind == TypeKind::Json {
        kept = ColumnType::string(TypeKind::LongText, u32::MAX, Collation::UTF8MB4_BIN);
    }
    let default = match &origin.default {
        _ if origin.auto_increment && !origin.nullable => DefaultValue::Value(kept.implicit_default()),
        DefaultValue::None if ty.nullable => DefaultValue::Value(Value::Null),
        default => default.clone(),
    };
    Column {
        name: meta.name.clone(),
        ty: kept,
        nullable: ty.nullable,
        default,
        auto_increment: false,
        invisible: false,
        value_in_old_rows: Value::Null,
        generated: None,
        check: None,
        ..origin.clone()
    }
}

fn computed(meta: &ColumnMeta, ty: &ExprType, is_kept: bool) -> SqlResult<Column> {
    let column_type = match ty.kind {
        _ if ty.null_literal => ColumnType::string(TypeKind::Binary, 0, Collation::BINARY),
        // A JSON value becomes a text type of the same length.
        TypeKind::Json => match ExprType::string(ty.length, ty.collation, Coercibility::Implicit) {
            text if text.kind == TypeKind::Json => {
                ColumnType::string(TypeKind::LongText, u32::MAX, ty.collation)
            }
            text => text.to_column_type(),
        },
        TypeKind::Float | TypeKind::Double if ty.decimals >= NOT_FIXED_DECIMALS => {
            ColumnType::real(ty.kind, None)
        }
        // A long computed string becomes a TEXT type.
        TypeKind::VarChar | TypeKind::VarBinary if !is_kept && ty.length > VARCHAR_CHARS_MAX => {
            ColumnType::text_of_length(ty.length, ty.collation)
        }
        // The type follows from the maximum size in bytes, not from the announced length.
        TypeKind::Text if u64::from(ty.length) * u64::from(ty.collation.charset().mbmaxlen()) > 65_535 => {
            ExprType::string(ty.length, ty.collation, Coercibility::Implicit).to_column_type()
        }
        _ => ty.to_column_type(),
    };
    column_type.check(&meta.name)?;
    let nullable = ty.nullable || ty.null_literal;
    let default = match (nullable, is_kept) {
        (true, _) => DefaultValue::Value(Value::Null),
        (false, true) => DefaultValue::Value(column_type.implicit_default()),
        (false, false) => DefaultValue::None,
    };
    Ok(Column::plain(meta.name.clone(), column_type, nullable, default))
}

/// Formats the statement that creates the table without its rows. Engine and character set appear only if
/// they were written.
pub(super) fn statement(ctx: &StatementContext<'_>, create: &CreateTable, table: &Table) -> String {
    let has = |wanted: fn(&TableOption) -> bool| create.options.iter().any(wanted);
    let engine = has(|option| matches!(option, TableOption::Engine(_)));
    let charset = has(|option| matches!(option, TableOption::Charset(_) | TableOption::Collate(_)));
    let schema =
        (ctx.session.current_schema.as_deref() != Some(&*table.name.schema)).then_some(&*table.name.schema);
    let verb = if create.mode == CreateMode::OrReplace { "CREATE OR REPLACE" } else { "CREATE" };
    create_text(verb, schema, (table, &ctx.session.settings.env.time_zone), (engine, charset))
}
