//! SHOW CREATE PROCEDURE and FUNCTION; rows of information_schema.ROUTINES and PARAMETERS, and of mysql.proc.

use std::sync::Arc;

use cohort_catalog::{AccountName, ProgramSettings, Routine, Schema};
use cohort_ddl::create_text::ShowStyle;
use cohort_session::access::{sees_body, sees_routine};
use cohort_session::{StatementContext, VirtualColumn, WantedNames};
use cohort_sql::ast::{CreateRoutine, ObjectName, ParameterMode, Program, Statement, VariableType};
use cohort_sql::{ParseMode, ParseOptions};
use cohort_types::{Collation, ColumnType, RoutineKind, SqlError, SqlResult, TimeZone, TypeKind, Value};

use super::cells::{as_sent, definition, text};
use super::listing::Listing;
use super::rows_tables::type_cells;
use super::schema_of;
use super::schema_table::SchemaTable;

/// The largest number in the columns that are `int(21)`.
const LENGTH_MAX: u64 = i32::MAX as u64;

/// Runs SHOW CREATE PROCEDURE and FUNCTION. The text is NULL for accounts that may not see the body.
pub(super) fn show_create(
    ctx: &StatementContext<'_>,
    kind: RoutineKind,
    name: &ObjectName,
) -> SqlResult<Listing> {
    let schema = schema_of(ctx, name.db.as_deref())?;
    let catalog = ctx.db.catalog();
    let found = catalog.routine(kind, &schema, &name.name).filter(|found| sees_routine(ctx.session, found));
    let routine = found.ok_or_else(|| SqlError::does_not_exist(kind.name(), &name.name))?;
    let text =
        sees_body(ctx.session, routine).then(|| cohort_ddl::routine_text(routine, ShowStyle::of(ctx).style));
    let (title, create) = match kind {
        RoutineKind::Procedure => ("Procedure", "Create Procedure"),
        RoutineKind::Function => ("Function", "Create Function"),
    };
    let mode = routine.settings.sql_mode.text();
    let mut listing = Listing::new(&[(title, 64), ("sql_mode", mode.len() as u32)]);
    listing.nullable_text(create, text.as_ref().map_or(0, String::len).max(1024) as u32);
    add_settings_columns(&mut listing);
    let [client, connection, database] = settings_cells(&routine.settings);
    let text = text.map_or(Value::Null, |text| definition(ctx, text, routine.settings.client));
    listing.add([Value::text(&routine.name), Value::text(mode), text, client, connection, database]);
    Ok(listing)
}

/// Adds the columns of the settings stored with a program.
pub(super) fn add_settings_columns(listing: &mut Listing) {
    listing.text("character_set_client", 32).text("collation_connection", 64).text("Database Collation", 64);
}

/// Returns the character set of clients, and the collations of the connection and of the database.
pub(super) fn settings_cells(settings: &ProgramSettings) -> [Value; 3] {
    [text(settings.client.charset().name()), text(settings.connection.name()), text(settings.database.name())]
}

/// Formats the definer of a trigger or an event: `user@host`.
pub(super) fn definer_cell((user, host): &AccountName) -> Value {
    text(format!("{user}@{host}"))
}

/// Formats the definer of a routine, without `@` for a role.
fn routine_definer(definer: &AccountName) -> Value {
    match definer.1.is_empty() {
        true => text(&*definer.0),
        false => definer_cell(definer),
    }
}

/// Converts seconds since 1970 to the session's time zone.
pub(super) fn local_time(ctx: &StatementContext<'_>, seconds: u64) -> Value {
    let micros = i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000);
    Value::DateTime(ctx.session.settings.env.time_zone.to_local(micros))
}

/// Returns the routines of a schema in the order of their names, functions before procedures.
fn routines_of(schema: &Schema) -> Vec<Arc<Routine>> {
    let mut all: Vec<_> = schema.functions.iter().chain(&schema.procedures).collect();
    all.sort_by_key(|(key, _)| *key);
    all.into_iter().map(|(_, routine)| Arc::clone(routine)).collect()
}

/// Returns the routines that the session may know of.
fn visible(ctx: &StatementContext<'_>, wanted: &WantedNames) -> Vec<Arc<Routine>> {
    let catalog = ctx.db.catalog();
    let schemas = catalog.schemas.values().filter(|schema| wanted.has_schema(&schema.name));
    let all = schemas.flat_map(|schema| routines_of(schema));
    all.filter(|routine| sees_routine(ctx.session, routine)).collect()
}

/// Parses the header of a routine. A header that does not parse any more has no parameters to show.
fn header(routine: &Routine) -> Option<CreateRoutine> {
    let (returns, body) = match routine.kind {
        RoutineKind::Procedure => (String::new(), "DO 1"),
        RoutineKind::Function => (format!("RETURNS {}", routine.returns), "RETURN 1"),
    };
    let (kind, parameters) = (routine.kind.name(), &routine.parameters);
    let statement = format!("CREATE {kind} r({parameters}) {returns} {body}");
    let mode = ParseMode::from(routine.settings.sql_mode);
    let options = ParseOptions { mode, ..ParseOptions::default() };
    match cohort_sql::parse(statement.as_bytes(), &options).ok()?.statement {
        Statement::Program(program) => match *program {
            Program::CreateRoutine(create) => Some(create),
            _ => None,
        },
        _ => None,
    }
}

fn resolved(of: &VariableType, database: Collation) -> Option<ColumnType> {
    match of {
        VariableType::Declared(declared) => cohort_plan::column_type(declared, "", database).ok(),
        VariableType::TypeOf(_)
        | VariableType::TypeOfVariable(_)
        | VariableType::RowTypeOf(_)
        | VariableType::Row(_) => None,
    }
}

/// Writes the columns that describe a type.
fn put_type(out: &SchemaTable, row: &mut [Value], ty: &ColumnType) {
    for (name, value) in type_cells(ty) {
        let name = if name == "COLUMN_TYPE" { "DTD_IDENTIFIER" } else { name };
        let place = out.place(name);
        row[place] = match value {
            Value::UInt(n) if out.column(place).ty.kind == TypeKind::Int => {
                Value::Int(n.min(LENGTH_MAX).cast_signed())
            }
            other => other,
        };
    }
}

/// Returns the rows of ROUTINES.
pub(super) fn routines(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for routine in visible(ctx, wanted) {
        ctx.check_interrupt()?;
        let [client, connection, database] = settings_cells(&routine.settings);
        let body = match sees_body(ctx.session, &routine) {
            true => text(&*routine.body),
            false => Value::Null,
        };
        let mut row = out.row([
            ("SPECIFIC_NAME", text(&*routine.name)),
            ("ROUTINE_CATALOG", text("def")),
            ("ROUTINE_SCHEMA", text(&*routine.schema)),
            ("ROUTINE_NAME", text(&*routine.name)),
            ("ROUTINE_TYPE", text(routine.kind.name())),
            ("DATA_TYPE", text("")),
            ("ROUTINE_BODY", text("SQL")),
            ("ROUTINE_DEFINITION", body),
            ("PARAMETER_STYLE", text("SQL")),
            ("IS_DETERMINISTIC", text(if routine.deterministic { "YES" } else { "NO" })),
            ("SQL_DATA_ACCESS", text(routine.access.name())),
            ("SECURITY_TYPE", text(security(&routine))),
            ("CREATED", local_time(ctx, routine.created_at)),
            ("LAST_ALTERED", local_time(ctx, routine.modified_at)),
            ("SQL_MODE", text(routine.settings.sql_mode.text())),
            ("ROUTINE_COMMENT", text(&*routine.comment)),
            ("DEFINER", routine_definer(&routine.definer)),
            ("CHARACTER_SET_CLIENT", client),
            ("COLLATION_CONNECTION", connection),
            ("DATABASE_COLLATION", database),
        ]);
        if routine.kind == RoutineKind::Function
            && let Some(create) = header(&routine)
            && let Some((of, _)) = &create.returns
            && let Some(ty) = resolved(of, routine.settings.database)
        {
            put_type(out, &mut row, &ty);
        }
        rows.push(row);
    }
    Ok(rows)
}

fn security(routine: &Routine) -> &'static str {
    if routine.by_invoker { "INVOKER" } else { "DEFINER" }
}

/// Returns the rows of PARAMETERS. The result of a function is its parameter 0.
pub(super) fn parameters(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for routine in visible(ctx, wanted) {
        ctx.check_interrupt()?;
        let Some(create) = header(&routine) else { continue };
        let mut add = |ordinal: usize, mode: Value, name: Value, of: &VariableType| {
            let mut row = out.row([
                ("SPECIFIC_CATALOG", text("def")),
                ("SPECIFIC_SCHEMA", text(&*routine.schema)),
                ("SPECIFIC_NAME", text(&*routine.name)),
                ("ORDINAL_POSITION", Value::Int(ordinal as i64)),
                ("PARAMETER_MODE", mode),
                ("PARAMETER_NAME", name),
                ("DATA_TYPE", text("")),
                ("DTD_IDENTIFIER", text("")),
                ("ROUTINE_TYPE", text(routine.kind.name())),
            ]);
            if let Some(ty) = resolved(of, routine.settings.database) {
                put_type(out, &mut row, &ty);
            }
            rows.push(row);
        };
        if let Some((of, _)) = &create.returns {
            add(0, Value::Null, Value::Null, of);
        }
        for (n, parameter) in create.parameters.iter().enumerate() {
            let mode = match parameter.mode {
                ParameterMode::In => "IN",
                ParameterMode::Out => "OUT",
                ParameterMode::InOut => "INOUT",
            };
            add(n + 1, text(mode), text(&*parameter.name), &parameter.of);
        }
    }
    Ok(rows)
}

/// Returns the rows of `mysql.proc`.
pub(super) fn proc_rows(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let catalog = ctx.db.catalog();
    let routines = catalog.schemas.values().flat_map(|schema| routines_of(schema));
    let row = |routine: Arc<Routine>| {
        let cell = |column: &VirtualColumn| proc_cell(&routine, column);
        columns.iter().map(cell).collect()
    };
    routines.map(row).collect()
}

fn proc_cell(routine: &Routine, column: &VirtualColumn) -> Value {
    let [client, connection, database] = settings_cells(&routine.settings);
    match column.name {
        "db" => text(&*routine.schema),
        "name" | "specific_name" => text(&*routine.name),
        "type" => member(column, routine.kind.name()),
        "language" => member(column, "SQL"),
        "sql_data_access" => member(column, &routine.access.name().replace(' ', "_")),
        "is_deterministic" => member(column, if routine.deterministic { "YES" } else { "NO" }),
        "security_type" => member(column, security(routine)),
        "param_list" => as_sent(&routine.parameters, routine.settings.client),
        "returns" => text(&*routine.returns),
        "body" => as_sent(&routine.body, routine.settings.client),
        "body_utf8" => text(&*routine.body),
        "definer" => routine_definer(&routine.definer),
        "created" => timestamp(routine.created_at),
        "modified" => timestamp(routine.modified_at),
        "sql_mode" => column.ty.set_value(routine.settings.sql_mode.0).unwrap_or(Value::Null),
        "comment" => text(&*routine.comment),
        "character_set_client" => client,
        "collation_connection" => connection,
        "db_collation" => database,
        "aggregate" => member(column, if routine.aggregate { "GROUP" } else { "NONE" }),
        _ => Value::Null,
    }
}

/// Returns the value of an ENUM column.
pub(super) fn member(column: &VirtualColumn, word: &str) -> Value {
    let place = column.ty.members.iter().position(|member| member == word);
    place.and_then(|place| column.ty.enum_value(place as u16 + 1)).unwrap_or(Value::Null)
}

/// Converts seconds since 1970 to a TIMESTAMP.
pub(super) fn timestamp(seconds: u64) -> Value {
    Value::Timestamp(i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000))
}
