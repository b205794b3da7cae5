//! SHOW CREATE VIEW, and rows of information_schema about views and their columns.

use cohort_catalog::{Column, DefaultValue, Index, OnUpdate, Table, View};
use cohort_ddl::create_text::ShowStyle;
use cohort_ddl::{shown_text, view_attributes};
use cohort_expr::ExprType;
use cohort_plan::{ParamSource, PlanContext, Query, bind_view, origin};
use cohort_session::access::{Access, sees_table};
use cohort_session::{SessionNames, StatementContext, VirtualTable, WantedNames};
use cohort_types::{SqlResult, TypeKind, Value};

use super::cells::{definition, text};
use super::listing::Listing;
use super::schema_table::SchemaTable;

fn listing() -> Listing {
    Listing::new(&[
        ("View", 64),
        ("Create View", 1024),
        ("character_set_client", 32),
        ("collation_connection", 64),
    ])
}

/// Returns the result of SHOW CREATE VIEW for a virtual table that is a view in MariaDB.
pub(super) fn create_virtual(view: &dyn VirtualTable) -> Listing {
    let mut listing = listing();
    listing.add([view.name(), &view.create_text(), "utf8mb4", "utf8mb4_general_ci"].map(Value::text));
    listing
}

/// Runs SHOW CREATE VIEW.
pub(super) fn create(ctx: &StatementContext<'_>, view: &std::sync::Arc<View>) -> SqlResult<Listing> {
    if let Err(error) = as_table(ctx, view) {
        ctx.eval.push_warning(cohort_types::Warning { level: cohort_types::Level::Warning, error });
    }
    let mut listing = listing();
    let current = ctx.session.current_schema.as_deref();
    let show = ShowStyle::of(ctx);
    let schema = match current == Some(&*view.name.schema) {
        true => String::new(),
        false => format!("{}.", show.style.name(&view.name.schema)),
    };
    let check = match view.check.as_str() {
        "NONE" => String::new(),
        kind => format!(" WITH {kind} CHECK OPTION"),
    };
    let statement = format!(
        "CREATE {}VIEW {schema}{} AS {}{check}",
        if show.is_foreign() { String::new() } else { view_attributes(view, show.style) },
        show.style.name(&view.name.table),
        shown_text(view, current, show.style)?
    );
    listing.add([
        Value::text(&view.name.table),
        definition(ctx, statement, view.client),
        Value::text(view.client.charset().name()),
        Value::text(view.connection.name()),
    ]);
    Ok(listing)
}

/// Returns the views that the account may see.
fn visible(ctx: &StatementContext<'_>, access: &Access, wanted: &WantedNames) -> Vec<std::sync::Arc<View>> {
    let catalog = ctx.db.catalog();
    let schemas = catalog.schemas.values().filter(|schema| wanted.has_schema(&schema.name));
    let views = schemas.flat_map(|schema| schema.views.values());
    let named = views.filter(|view| wanted.has_table(&view.name.table));
    named.filter(|view| sees_table(access, &view.name.schema, &view.name.table)).cloned().collect()
}

/// Returns the rows of VIEWS. The text of a view is shown to accounts with SHOW VIEW on it, and to its
/// definer.
pub fn rows(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let access = ctx.session.access();
    let row = |view: &std::sync::Arc<View>| {
        let held = access.on_table(&view.name.schema, &view.name.table);
        let is_open = held.has(cohort_types::Privilege::ShowView) || ctx.session.is_definer(&view.definer);
        out.row([
            ("TABLE_CATALOG", text("def")),
            ("TABLE_SCHEMA", text(&view.name.schema)),
            ("TABLE_NAME", text(&view.name.table)),
            ("VIEW_DEFINITION", text(if is_open { &view.text } else { "" })),
            ("CHECK_OPTION", text(&view.check)),
            ("IS_UPDATABLE", text(if view.updatable { "YES" } else { "NO" })),
            ("DEFINER", text(format!("{}@{}", view.definer.0, view.definer.1))),
            ("SECURITY_TYPE", text(if view.by_invoker { "INVOKER" } else { "DEFINER" })),
            ("CHARACTER_SET_CLIENT", text(view.client.charset().name())),
            ("COLLATION_CONNECTION", text(view.connection.name())),
            ("ALGORITHM", text(&view.algorithm)),
        ])
    };
    let mut rows: Vec<Vec<Value>> = visible(ctx, &access, wanted).iter().map(row).collect();
    let of_mysql = ctx.db.virtual_tables.all().iter().filter(|found| found.is_view());
    let seen = of_mysql.filter(|found| {
        wanted.has(found.schema(), found.name())
            && sees_table(&access, found.schema(), found.name())
            && !ctx.db.is_replaced(&***found)
    });
    rows.extend(seen.map(|found| virtual_row(out, &**found)));
    Ok(rows)
}

/// Returns the row of VIEWS for a virtual table that is a view in MariaDB.
fn virtual_row(out: &SchemaTable, view: &dyn VirtualTable) -> Vec<Value> {
    let create = view.create_text();
    let (_, definition) = create.split_once(" AS ").unwrap_or_default();
    out.row([
        ("TABLE_CATALOG", text("def")),
        ("TABLE_SCHEMA", text(view.schema())),
        ("TABLE_NAME", text(view.name())),
        ("VIEW_DEFINITION", text(definition)),
        ("CHECK_OPTION", text("NONE")),
        ("IS_UPDATABLE", text("YES")),
        ("DEFINER", text("root@localhost")),
        ("SECURITY_TYPE", text("INVOKER")),
        ("CHARACTER_SET_CLIENT", text("utf8mb4")),
        ("COLLATION_CONNECTION", text("utf8mb4_general_ci")),
        ("ALGORITHM", text("UNDEFINED")),
    ])
}

/// Returns the rows of TABLES for views.
pub(super) fn table_rows(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &StatementContext<'_>,
) -> Vec<Vec<Value>> {
    let row = |view: &std::sync::Arc<View>| {
        let comment = as_table(ctx, view).err().map_or("VIEW".to_owned(), |error| error.message);
        out.row([
            ("TABLE_CATALOG", text("def")),
            ("TABLE_SCHEMA", text(&view.name.schema)),
            ("TABLE_NAME", text(&view.name.table)),
            ("TABLE_TYPE", text("VIEW")),
            ("TABLE_COMMENT", text(comment)),
        ])
    };
    visible(ctx, &ctx.session.access(), wanted).iter().map(row).collect()
}

/// Returns the views as tables, for their columns. An invalid view has no columns, and a warning is added.
pub(super) fn as_tables(ctx: &StatementContext<'_>, wanted: &WantedNames) -> SqlResult<Vec<Table>> {
    let mut tables = Vec::new();
    for view in visible(ctx, &ctx.session.access(), wanted) {
        ctx.check_interrupt()?;
        match as_table(ctx, &view) {
            Ok(table) => tables.push(table),
            Err(error) => {
                ctx.eval.push_warning(cohort_types::Warning { level: cohort_types::Level::Warning, error })
            }
        }
    }
    Ok(tables)
}

/// Returns name and columns of a view; error 1356.
pub(super) fn as_table(ctx: &StatementContext<'_>, view: &std::sync::Arc<View>) -> SqlResult<Table> {
    let catalog = ctx.db.catalog();
    let names = SessionNames::of_server(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    let bound = bind_view(&plan, view);
    ctx.session.statement.planning_warnings.borrow_mut().clear();
    let bound = bound?;
    let columns = (0..bound.types.len()).map(|n| column(&bound, n)).collect();
    let no_key = Index::hidden_row_id(cohort_base::IndexId(0));
    Ok(Table {
        id: cohort_base::TableId(0),
        name: view.name.clone(),
        engine: String::new(),
        columns,
        indexes: vec![no_key],
        collation: view.connection,
        comment: String::new(),
        auto_increment_start: 0,
        options: Vec::new(),
        created_at: view.created_at,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        storage: Vec::new(),
        triggers: Vec::new(),
    })
}

fn column(bound: &Query, n: usize) -> Column {
    let (name, ty) = (bound.columns[n].name.clone(), &bound.types[n]);
    if let Some((table, at)) = origin(bound, n) {
        let base = table.columns[at].clone();
        return Column {
            name,
            nullable: ty.nullable,
            auto_increment: false,
            on_update: OnUpdate::Keep,
            generated: None,
            check: None,
            default: if base.auto_increment { zero(ty) } else { base.default.clone() },
            ..base
        };
    }
    let mut column_type = ty.to_column_type();
    if ty.null_literal {
        column_type.kind = TypeKind::Binary;
    }
    let default = if ty.nullable { DefaultValue::Value(Value::Null) } else { zero(ty) };
    Column::plain(name, column_type, ty.nullable, default)
}

/// Returns the default of a column that is not a base table's column and has no default of its own.
fn zero(ty: &ExprType) -> DefaultValue {
    let column = ty.to_column_type();
    let text = match column.kind {
        TypeKind::Date => "0000-00-00".to_owned(),
        TypeKind::DateTime | TypeKind::Timestamp => "0000-00-00 00:00:00".to_owned(),
        TypeKind::Time => "00:00:00".to_owned(),
        TypeKind::Decimal if column.decimals > 0 => {
            format!("0.{}", "0".repeat(usize::from(column.decimals)))
        }
        kind if kind.is_text() || kind.is_binary_string() => String::new(),
        _ => return DefaultValue::Value(Value::Int(0)),
    };
    DefaultValue::Value(Value::text(text))
}
