//! Rows of information_schema tables about databases and tables.

use std::sync::Arc;

use cohort_catalog::{Column, DefaultValue, Index, OnUpdate, ROWS, Schema, Table};
use cohort_session::access::{Access, sees_schema, sees_table};
use cohort_session::{StatementContext, VirtualColumn, VirtualTable, WantedNames, cardinality};
use cohort_sql::print::{quoted_name, quoted_text};
use cohort_types::{Collation, ColumnType, Privilege, Privileges, SqlResult, TypeKind, Value};

use super::cells::{does_more_than_read, integer, number, text, visible_tables};
use super::schema_table::SchemaTable;
use super::{foreign, mysql_tables, view};
use cohort_ddl::create_text::{default_text, engine_options, in_zone, ordered_options};

type Rows = SqlResult<Vec<Vec<Value>>>;

fn yes_no(yes: bool) -> Value {
    text(if yes { "YES" } else { "NO" })
}

/// Returns the schemas that the session may see.
fn visible(ctx: &StatementContext<'_>) -> Vec<Arc<Schema>> {
    let (catalog, access) = (ctx.db.catalog(), ctx.session.access());
    catalog.schemas.values().filter(|s| sees_schema(&access, &s.name)).cloned().collect()
}

pub(super) fn schemata(table: &SchemaTable, _: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let row = |name: &str, collation: Collation, comment: &str| {
        table.row([
            ("CATALOG_NAME", text("def")),
            ("SCHEMA_NAME", text(name)),
            ("DEFAULT_CHARACTER_SET_NAME", text(collation.charset().name())),
            ("DEFAULT_COLLATION_NAME", text(collation.name())),
            ("SCHEMA_COMMENT", text(comment)),
        ])
    };
    let mut rows = vec![row("information_schema", Collation::UTF8MB3_GENERAL_CI, "")];
    rows.extend(visible(ctx).iter().map(|s| row(&s.name, s.collation, &s.comment)));
    if sees_schema(&ctx.session.access(), "performance_schema") {
        rows.push(row("performance_schema", Collation::UTF8MB3_GENERAL_CI, ""));
    }
    Ok(rows)
}

pub(super) fn tables(table: &SchemaTable, wanted: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let virtual_tables = ctx
        .db
        .virtual_tables
        .all()
        .iter()
        .filter(|t| t.is_listed() && wanted.has(t.schema(), t.name()) && !ctx.db.is_replaced(&***t))
        .cloned();
    let (views, others): (Vec<_>, Vec<_>) = virtual_tables.partition(|t| t.schema() == "information_schema");
    let (of_mysql, performance): (Vec<_>, Vec<_>) = others.into_iter().partition(|t| t.schema() == "mysql");
    let mut rows: Vec<_> = views
        .into_iter()
        .map(|view| {
            let name = view.name();
            table.row([
                ("TABLE_CATALOG", text("def")),
                ("TABLE_SCHEMA", text("information_schema")),
                ("TABLE_NAME", text(name)),
                ("TABLE_TYPE", text("SYSTEM VIEW")),
                ("ENGINE", text("MEMORY")),
                ("VERSION", number(11_u64)),
                ("ROW_FORMAT", text("Fixed")),
                ("TABLE_COLLATION", text("utf8mb3_general_ci")),
                ("CREATE_OPTIONS", text("")),
                ("TABLE_COMMENT", text("")),
                ("TEMPORARY", text("Y")),
            ])
        })
        .collect();
    let access = ctx.session.access();
    let seen = performance.iter().filter(|found| sees_table(&access, "performance_schema", found.name()));
    rows.extend(seen.map(|found| performance_row(table, found.name())));
    let first = rows.len();
    let seen = of_mysql.iter().filter(|found| sees_table(&access, "mysql", found.name()));
    rows.extend(seen.map(|found| mysql_row(table, &**found)));
    let is_sorted = rows.len() == first;
    for base in visible_tables(ctx, wanted) {
        ctx.check_interrupt()?;
        rows.push(table_row(table, ctx, &base)?);
    }
    let own = view::table_rows(table, wanted, ctx);
    if !own.is_empty() || !is_sorted {
        rows.extend(own);
        let [schema, name] = ["TABLE_SCHEMA", "TABLE_NAME"].map(|column| table.place(column));
        rows[first..].sort_by(|a, b| {
            let key = |row: &Vec<Value>| [schema, name].map(|at| row[at].as_bytes().map(<[u8]>::to_vec));
            key(a).cmp(&key(b))
        });
    }
    Ok(rows)
}

fn performance_row(out: &SchemaTable, name: &'static str) -> Vec<Value> {
    out.row([
        ("TABLE_CATALOG", text("def")),
        ("TABLE_SCHEMA", text("performance_schema")),
        ("TABLE_NAME", text(name)),
        ("TABLE_TYPE", text("BASE TABLE")),
        ("ENGINE", text("PERFORMANCE_SCHEMA")),
        ("VERSION", number(10_u64)),
        ("ROW_FORMAT", text("Dynamic")),
        ("TABLE_COLLATION", text("utf8mb3_general_ci")),
        ("CREATE_OPTIONS", text("")),
        ("TABLE_COMMENT", text("")),
        ("TEMPORARY", text("N")),
    ])
}

/// Returns the row of a virtual table of the schema `mysql`.
fn mysql_row(out: &SchemaTable, found: &dyn VirtualTable) -> Vec<Value> {
    if found.is_view() {
        return out.row([
            ("TABLE_CATALOG", text("def")),
            ("TABLE_SCHEMA", text(found.schema())),
            ("TABLE_NAME", text(found.name())),
            ("TABLE_TYPE", text("VIEW")),
            ("TABLE_COMMENT", text("VIEW")),
        ]);
    }
    let create = found.create_text();
    let (engine, comment) = mysql_tables::engine_and_comment(&create);
    out.row([
        ("TABLE_CATALOG", text("def")),
        ("TABLE_SCHEMA", text(found.schema())),
        ("TABLE_NAME", text(found.name())),
        ("TABLE_TYPE", text("BASE TABLE")),
        ("ENGINE", text(engine)),
        ("VERSION", number(10_u64)),
        ("ROW_FORMAT", text("Dynamic")),
        ("TABLE_ROWS", number(0_u64)),
        ("AVG_ROW_LENGTH", number(0_u64)),
        ("DATA_LENGTH", number(0_u64)),
        ("MAX_DATA_LENGTH", number(0_u64)),
        ("INDEX_LENGTH", number(0_u64)),
        ("DATA_FREE", number(0_u64)),
        ("TABLE_COLLATION", text("utf8mb3_general_ci")),
        ("CREATE_OPTIONS", text("")),
        ("TABLE_COMMENT", text(comment)),
        ("MAX_INDEX_LENGTH", number(0_u64)),
        ("TEMPORARY", text("N")),
    ])
}

fn table_row(out: &SchemaTable, ctx: &mut StatementContext<'_>, table: &Arc<Table>) -> SqlResult<Vec<Value>> {
    let engine = ctx.db.engine_named(&table.engine);
    let stats = |index: &Index| engine.map(|e| e.stats(index.id)).unwrap_or_default();
    let data = stats(table.row_index());
    let index_bytes: u64 = (table.indexes.iter().enumerate())
        .filter(|(n, _)| *n != ROWS)
        .map(|(_, index)| stats(index).bytes)
        .sum();
    let open = ctx.trx.open_table(table)?;
    let next = ctx.trx.auto_increment_next(&open)?;
    let mut options: Vec<String> =
        ordered_options(table).map(|(name, value)| format!("{}={}", name.to_lowercase(), value)).collect();
    let of_engine = engine_options(table);
    options.extend(of_engine.map(|(name, value)| format!("{}={}", quoted_name(name), quoted_text(value))));
    let created = created_at(ctx, table.created_at);
    Ok(out.row([
        ("TABLE_CATALOG", text("def")),
        ("TABLE_SCHEMA", text(&table.name.schema)),
        ("TABLE_NAME", text(&table.name.table)),
        ("TABLE_TYPE", text(if table.is_sequence() { "SEQUENCE" } else { "BASE TABLE" })),
        ("ENGINE", text(&table.engine)),
        ("VERSION", number(10_u64)),
        ("ROW_FORMAT", text(table.row_format())),
        ("TABLE_ROWS", number(data.entries)),
        ("AVG_ROW_LENGTH", number(data.bytes.checked_div(data.entries).unwrap_or(0))),
        ("DATA_LENGTH", number(data.bytes)),
        ("MAX_DATA_LENGTH", number(0_u64)),
        ("INDEX_LENGTH", number(index_bytes)),
        ("DATA_FREE", number(0_u64)),
        ("AUTO_INCREMENT", next.map_or(Value::Null, Value::UInt)),
        ("CREATE_TIME", created),
        ("TABLE_COLLATION", text(table.collation.name())),
        ("CREATE_OPTIONS", text(options.join(" "))),
        ("TABLE_COMMENT", text(&table.comment)),
        ("MAX_INDEX_LENGTH", number(0_u64)),
        ("TEMPORARY", text("N")),
    ]))
}

fn created_at(ctx: &StatementContext<'_>, seconds: u64) -> Value {
    let micros = i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000);
    Value::DateTime(cohort_types::TimeZone::to_local(&ctx.session.settings.env.time_zone, micros))
}

/// Returns the account's privileges on a column, of those that can be granted on columns.
fn columns_held(access: &Access, table: &Table, n: usize) -> Privileges {
    access.on_column(&table.name, &table.columns[n].name).within(Privileges::OF_COLUMN)
}

/// Returns the rows of COLUMNS for columns on which the account has a privilege.
pub(super) fn columns(out: &SchemaTable, wanted: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let access = ctx.session.access();
    let mut rows = Vec::new();
    let sees = |schema: &str, name: &str| schema == "information_schema" || sees_table(&access, schema, name);
    for table in ctx
        .db
        .virtual_tables
        .all()
        .iter()
        .filter(|t| t.is_listed() || wanted.is_shown())
        .filter(|t| wanted.has(t.schema(), t.name()) && sees(t.schema(), t.name()))
        .filter(|t| !ctx.db.is_replaced(&***t) && wanted.temporary(ctx.session).is_none())
    {
        for (n, column) in table.columns().iter().enumerate() {
            rows.push(virtual_column_row(out, table.as_ref(), n, column));
        }
    }
    let views = view::as_tables(ctx, wanted)?.into_iter().map(Arc::new);
    let mut tables = visible_tables(ctx, wanted);
    if views.len() > 0 {
        tables.extend(views);
        tables.sort_by(|a, b| a.name.cmp(&b.name));
    }
    for table in tables {
        ctx.check_interrupt()?;
        let held = |n: &usize| columns_held(&access, &table, *n);
        let seen = (0..table.columns.len()).filter(|n| !held(n).is_empty());
        rows.extend(seen.map(|n| column_row(out, ctx, (&table, n), held(&n))));
    }
    Ok(rows)
}

/// Returns the columns that describe a type.
pub(super) fn type_cells(ty: &ColumnType) -> [(&'static str, Value); 9] {
    let is_text = ty.kind.is_text() || matches!(ty.kind, TypeKind::Enum | TypeKind::Set);
    let has_length = is_text || ty.kind.is_binary_string();
    let per_char = u64::from(ty.collation.charset().mbmaxlen());
    let chars = u64::from(ty.display_length());
    let bytes = if ty.kind.is_blob() { chars } else { chars * per_char };
    let precision = numeric_precision(ty);
    let scale = match ty.kind {
        TypeKind::Decimal => number(ty.decimals),
        TypeKind::Float | TypeKind::Double if ty.length > 0 => number(ty.decimals),
        kind if is_integer(kind) => number(0_u64),
        _ => Value::Null,
    };
    let fraction = match ty.kind {
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => number(ty.decimals),
        _ => Value::Null,
    };
    // For TEXT: the number of characters that fit if each uses the minimum number of bytes.
    let chars = if ty.kind.is_blob() { chars / u64::from(ty.collation.charset().mbminlen()) } else { chars };
    let if_length = |n: u64| if has_length { number(n) } else { Value::Null };
    let if_text = |name: &str| if is_text { text(name) } else { Value::Null };
    [
        ("DATA_TYPE", text(ty.type_name())),
        ("CHARACTER_MAXIMUM_LENGTH", if_length(chars)),
        ("CHARACTER_OCTET_LENGTH", if_length(bytes)),
        ("NUMERIC_PRECISION", precision),
        ("NUMERIC_SCALE", scale),
        ("DATETIME_PRECISION", fraction),
        ("CHARACTER_SET_NAME", if_text(ty.collation.charset().name())),
        ("COLLATION_NAME", if_text(ty.collation.name())),
        ("COLUMN_TYPE", text(ty.sql_text())),
    ]
}

fn is_integer(kind: TypeKind) -> bool {
    use TypeKind as K;
    matches!(kind, K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt)
}

fn numeric_precision(ty: &ColumnType) -> Value {
    let digits: u32 = match ty.kind {
        TypeKind::TinyInt => 3,
        TypeKind::SmallInt => 5,
        TypeKind::MediumInt if ty.unsigned => 8,
        TypeKind::MediumInt => 7,
        TypeKind::Int => 10,
        TypeKind::BigInt if ty.unsigned => 20,
        TypeKind::BigInt => 19,
        TypeKind::Float if ty.length == 0 => 12,
        TypeKind::Double if ty.length == 0 => 22,
        TypeKind::Decimal | TypeKind::Bit | TypeKind::Float | TypeKind::Double => ty.length,
        _ => return Value::Null,
    };
    number(digits)
}

fn virtual_column_row(
    out: &SchemaTable,
    table: &dyn VirtualTable,
    n: usize,
    column: &VirtualColumn,
) -> Vec<Value> {
    let mut row = out.row(type_cells(&column.ty));
    let cells = out.row([
        ("TABLE_CATALOG", text("def")),
        ("TABLE_SCHEMA", text(table.schema())),
        ("TABLE_NAME", text(table.name())),
        ("COLUMN_NAME", text(column.name)),
        ("ORDINAL_POSITION", number(n + 1)),
        ("IS_NULLABLE", yes_no(column.nullable)),
        ("COLUMN_KEY", text("")),
        ("EXTRA", text("")),
        ("PRIVILEGES", text("select")),
        ("COLUMN_COMMENT", text("")),
        ("IS_GENERATED", text("NEVER")),
    ]);
    merge(&mut row, cells);
    row
}

fn merge(row: &mut [Value], cells: Vec<Value>) {
    for (cell, value) in row.iter_mut().zip(cells) {
        if !value.is_null() {
            *cell = value;
        }
    }
}

fn column_row(
    out: &SchemaTable,
    ctx: &StatementContext<'_>,
    (table, n): (&Table, usize),
    held: Privileges,
) -> Vec<Value> {
    let column = &table.columns[n];
    let mut row = out.row(type_cells(&column.ty));
    let default = match (&column.default, column.nullable) {
        (_, true) if column.generated.is_some() => text("NULL"),
        _ if column.generated.is_some() => Value::Null,
        (DefaultValue::None, true) => text("NULL"),
        _ => default_text(&in_zone(column, &ctx.session.settings.env.time_zone)).map_or(Value::Null, text),
    };
    let cells = out.row([
        ("TABLE_CATALOG", text("def")),
        ("TABLE_SCHEMA", text(&table.name.schema)),
        ("TABLE_NAME", text(&table.name.table)),
        ("COLUMN_NAME", text(&column.name)),
        ("ORDINAL_POSITION", number(n + 1)),
        ("COLUMN_DEFAULT", default),
        ("IS_NULLABLE", yes_no(column.nullable)),
        ("COLUMN_KEY", text(column_key(table, n))),
        ("EXTRA", text(extra(column))),
        ("PRIVILEGES", text(held.to_string().to_lowercase().replace(", ", ","))),
        ("COLUMN_COMMENT", text(&column.comment)),
        ("IS_GENERATED", text(if column.generated.is_some() { "ALWAYS" } else { "NEVER" })),
        ("GENERATION_EXPRESSION", column.generated.as_ref().map_or(Value::Null, |g| text(&g.text))),
    ]);
    merge(&mut row, cells);
    row
}

/// Returns `PRI`, `UNI`, `MUL` or an empty string.
fn column_key(table: &Table, n: usize) -> &'static str {
    let has_primary = table.has_primary_key();
    let is_not_null =
        |i: &Index| i.columns.iter().all(|p| !table.columns[p.column].nullable && p.prefix.is_none());
    // Without a primary key, the first NOT NULL unique key is shown as PRI.
    let stand_in =
        table.indexes.iter().position(|i| i.kind.is_unique() && i.kind.is_sorted() && is_not_null(i));
    let mut found = "";
    for (at, index) in table.indexes.iter().enumerate() {
        let Some(part) = index.columns.iter().position(|p| p.column == n) else { continue };
        let is_primary = index.kind.is_primary() || (!has_primary && stand_in == Some(at));
        if is_primary {
            return "PRI";
        }
        if part == 0 {
            let is_unique = index.kind.is_unique() && index.columns.len() == 1;
            if is_unique {
                found = "UNI";
            } else if found.is_empty() {
                found = "MUL";
            }
        }
    }
    found
}

fn extra(column: &Column) -> String {
    let mut parts = Vec::new();
    if column.auto_increment {
        parts.push("auto_increment".to_owned());
    }
    if column.on_update == OnUpdate::CurrentTimestamp {
        parts.push(format!("on update {}", cohort_ddl::create_text::now_text(column.ty.decimals)));
    }
    if let Some(generated) = &column.generated {
        parts.push(if generated.stored { "STORED GENERATED" } else { "VIRTUAL GENERATED" }.to_owned());
    }
    if column.invisible {
        parts.push("INVISIBLE".to_owned());
    }
    parts.join(", ")
}

pub(super) fn statistics(out: &SchemaTable, wanted: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let mut rows = Vec::new();
    let access = ctx.session.access();
    for table in visible_tables(ctx, wanted) {
        ctx.check_interrupt()?;
        let shown = table.indexes.iter().enumerate().filter(|(_, index)| index.kind.is_declared());
        for (at, index) in shown.filter(|(_, index)| sees_index(&access, &table, index)) {
            for (n, part) in index.columns.iter().enumerate() {
                let column = &table.columns[part.column];
                let has_words = index.kind.has_words();
                let of_order = |value: Value| if has_words { Value::Null } else { value };
                let distinct = || cardinality(ctx.session, &table, at, n + 1);
                rows.push(out.row([
                    ("TABLE_CATALOG", text("def")),
                    ("TABLE_SCHEMA", text(&table.name.schema)),
                    ("TABLE_NAME", text(&table.name.table)),
                    ("NON_UNIQUE", integer(i64::from(!index.kind.is_unique()))),
                    ("INDEX_SCHEMA", text(&table.name.schema)),
                    ("INDEX_NAME", text(&index.name)),
                    ("SEQ_IN_INDEX", integer(n as i64 + 1)),
                    ("COLUMN_NAME", text(&column.name)),
                    ("COLLATION", of_order(text(if part.descending { "D" } else { "A" }))),
                    ("CARDINALITY", if index.kind.is_sorted() { integer(distinct()) } else { Value::Null }),
                    ("SUB_PART", part.prefix.map_or(Value::Null, integer)),
                    ("NULLABLE", text(if column.nullable { "YES" } else { "" })),
                    ("INDEX_TYPE", text(index.kind.method().structure)),
                    ("COMMENT", text("")),
                    ("INDEX_COMMENT", text(&index.comment)),
                    ("IGNORED", text(if index.ignored { "YES" } else { "NO" })),
                ]));
            }
        }
    }
    Ok(rows)
}

/// Returns whether the account has a privilege on each column of the index.
fn sees_index(access: &Access, table: &Table, index: &Index) -> bool {
    let mut columns = index.columns.iter().map(|part| &table.columns[part.column].name);
    table.is_temporary() || columns.all(|column| !access.on_column(&table.name, column).is_empty())
}

/// Returns whether the account has a privilege on the table as a whole, not only on columns.
fn holds_on_whole(access: &Access, table: &Table) -> bool {
    let counts = Privileges::OF_TABLE.without(Privilege::GrantOption.into());
    table.is_temporary() || access.on_table(&table.name.schema, &table.name.table).meets(counts)
}

fn unique_keys(table: &Table) -> impl Iterator<Item = &Index> {
    table.indexes.iter().filter(|i| i.kind.is_unique())
}

pub(super) fn key_column_usage(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> Rows {
    let mut rows = Vec::new();
    let access = ctx.session.access();
    for table in visible_tables(ctx, wanted) {
        ctx.check_interrupt()?;
        for index in unique_keys(&table).filter(|index| sees_index(&access, &table, index)) {
            for (n, part) in index.columns.iter().enumerate() {
                rows.push(out.row([
                    ("CONSTRAINT_CATALOG", text("def")),
                    ("CONSTRAINT_SCHEMA", text(&table.name.schema)),
                    ("CONSTRAINT_NAME", text(&index.name)),
                    ("TABLE_CATALOG", text("def")),
                    ("TABLE_SCHEMA", text(&table.name.schema)),
                    ("TABLE_NAME", text(&table.name.table)),
                    ("COLUMN_NAME", text(&table.columns[part.column].name)),
                    ("ORDINAL_POSITION", integer(n as i64 + 1)),
                ]));
            }
        }
        // Foreign keys also reveal columns of another table.
        if holds_on_whole(&access, &table) {
            rows.extend(foreign::key_columns(out, &table));
        }
    }
    Ok(rows)
}

pub(super) fn table_constraints(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> Rows {
    let mut rows = Vec::new();
    let access = ctx.session.access();
    for table in visible_tables(ctx, wanted) {
        ctx.check_interrupt()?;
        // Accounts that may only read the table do not see its constraints.
        if !table.is_temporary() && !does_more_than_read(&access, &table.name) {
            continue;
        }
        for index in unique_keys(&table) {
            let kind = if index.kind.is_primary() { "PRIMARY KEY" } else { "UNIQUE" };
            rows.push(out.row([
                ("CONSTRAINT_CATALOG", text("def")),
                ("CONSTRAINT_SCHEMA", text(&table.name.schema)),
                ("CONSTRAINT_NAME", text(&index.name)),
                ("TABLE_SCHEMA", text(&table.name.schema)),
                ("TABLE_NAME", text(&table.name.table)),
                ("CONSTRAINT_TYPE", text(kind)),
            ]));
        }
        for (name, _, _) in checks(&table) {
            rows.push(out.row([
                ("CONSTRAINT_CATALOG", text("def")),
                ("CONSTRAINT_SCHEMA", text(&table.name.schema)),
                ("CONSTRAINT_NAME", text(name)),
                ("TABLE_SCHEMA", text(&table.name.schema)),
                ("TABLE_NAME", text(&table.name.table)),
                ("CONSTRAINT_TYPE", text("CHECK")),
            ]));
        }
        rows.extend(foreign::constraints(out, &table));
    }
    Ok(rows)
}

/// Returns name, level and clause of each CHECK of a table.
fn checks(table: &Table) -> impl Iterator<Item = (&str, &'static str, String)> {
    let of_column = |column: &Column| {
        let json = (column.ty.kind == TypeKind::Json).then(|| format!("json_valid(`{}`)", column.name));
        column.check.clone().or(json)
    };
    let columns = table
        .columns
        .iter()
        .filter_map(move |column| Some((column.name.as_str(), "Column", of_column(column)?)));
    columns.chain(table.checks.iter().map(|check| (check.name.as_str(), "Table", check.text.clone())))
}

pub(super) fn check_constraints(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> Rows {
    let mut rows = Vec::new();
    let access = ctx.session.access();
    // A CHECK may reveal any of the columns.
    for table in visible_tables(ctx, wanted).into_iter().filter(|table| holds_on_whole(&access, table)) {
        ctx.check_interrupt()?;
        for (name, level, clause) in checks(&table) {
            rows.push(out.row([
                ("CONSTRAINT_CATALOG", text("def")),
                ("CONSTRAINT_SCHEMA", text(&table.name.schema)),
                ("TABLE_NAME", text(&table.name.table)),
                ("CONSTRAINT_NAME", text(name)),
                ("LEVEL", text(level)),
                ("CHECK_CLAUSE", text(clause)),
            ]));
        }
    }
    Ok(rows)
}

/// Returns one row per table, as for tables without partitions.
pub(super) fn partitions(out: &SchemaTable, wanted: &WantedNames, ctx: &mut StatementContext<'_>) -> Rows {
    let row = |table: Arc<Table>| {
        out.row([
            ("TABLE_CATALOG", text("def")),
            ("TABLE_SCHEMA", text(&table.name.schema)),
            ("TABLE_NAME", text(&table.name.table)),
            ("TABLE_ROWS", number(0_u64)),
            ("AVG_ROW_LENGTH", number(0_u64)),
            ("DATA_LENGTH", number(0_u64)),
            ("INDEX_LENGTH", number(0_u64)),
            ("DATA_FREE", number(0_u64)),
            ("PARTITION_COMMENT", text("")),
            ("NODEGROUP", text("")),
        ])
    };
    Ok(visible_tables(ctx, wanted).into_iter().map(row).collect())
}
