//! SHOW CREATE EVENT; rows of information_schema.EVENTS and of mysql.event.

use std::sync::Arc;

use cohort_catalog::{Event, EventSchedule};
use cohort_ddl::create_text::ShowStyle;
use cohort_session::access::check_schema;
use cohort_session::{StatementContext, VirtualColumn, WantedNames};
use cohort_sql::ast::ObjectName;
use cohort_types::{FixedOffset, IntervalUnit, Privilege, SqlError, SqlResult, TimeZone, Value};

use super::cells::{as_sent, definition, text};
use super::listing::Listing;
use super::routines::{add_settings_columns, definer_cell, local_time, member, settings_cells, timestamp};
use super::schema_of;
use super::schema_table::SchemaTable;

/// Runs SHOW CREATE EVENT: errors 1044, 1539.
pub(super) fn show_create(ctx: &StatementContext<'_>, name: &ObjectName) -> SqlResult<Listing> {
    let schema = schema_of(ctx, name.db.as_deref())?;
    check_schema(ctx.session, Privilege::Event, &schema)?;
    let catalog = ctx.db.catalog();
    let event = catalog.event(&schema, &name.name).ok_or_else(|| SqlError::unknown_event(&name.name))?;
    let statement = cohort_ddl::event_text(event, ShowStyle::of(ctx).style);
    let mode = event.settings.sql_mode.text();
    let mut listing = Listing::new(&[
        ("Event", 64),
        ("sql_mode", mode.len() as u32),
        ("time_zone", event.time_zone.chars().count() as u32),
        ("Create Event", statement.len().max(1024) as u32),
    ]);
    add_settings_columns(&mut listing);
    let [client, connection, database] = settings_cells(&event.settings);
    listing.add([
        Value::text(&event.name),
        Value::text(mode),
        Value::text(&event.time_zone),
        definition(ctx, statement, event.settings.client),
        client,
        connection,
        database,
    ]);
    Ok(listing)
}

/// The parts of a schedule as columns show them.
struct Times {
    at: Option<i64>,
    every: Option<(u64, IntervalUnit)>,
    starts: Option<i64>,
    ends: Option<i64>,
}

impl Times {
    fn of(event: &Event) -> Times {
        match event.schedule {
            EventSchedule::At(at) => Times { at: Some(at), every: None, starts: None, ends: None },
            EventSchedule::Every { count, unit, starts, ends } => {
                Times { at: None, every: Some((count, unit)), starts, ends }
            }
        }
    }
}

/// Returns the rows of EVENTS: those of schemas on which the account has EVENT. Times are in the event's time
/// zone.
pub(super) fn rows(
    out: &SchemaTable,
    _: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let (catalog, access) = (ctx.db.catalog(), ctx.session.access());
    let mut rows = Vec::new();
    for event in catalog.schemas.values().flat_map(|schema| schema.events.values()) {
        if !access.on_schema(&event.schema).has(Privilege::Event) {
            continue;
        }
        ctx.check_interrupt()?;
        let times = Times::of(event);
        let time = |seconds: Option<i64>| match seconds {
            Some(seconds) => Value::DateTime(cohort_ddl::event_time(event, seconds)),
            None => Value::Null,
        };
        let every = times.every;
        let [client, connection, database] = settings_cells(&event.settings);
        rows.push(out.row([
            ("EVENT_CATALOG", text("def")),
            ("EVENT_SCHEMA", text(&*event.schema)),
            ("EVENT_NAME", text(&*event.name)),
            ("DEFINER", definer_cell(&event.definer)),
            ("TIME_ZONE", text(&*event.time_zone)),
            ("EVENT_BODY", text("SQL")),
            ("EVENT_DEFINITION", text(&*event.body)),
            ("EVENT_TYPE", text(if every.is_some() { "RECURRING" } else { "ONE TIME" })),
            ("EXECUTE_AT", time(times.at)),
            (
                "INTERVAL_VALUE",
                every.map_or(Value::Null, |(count, unit)| text(cohort_ddl::interval_text(count, unit))),
            ),
            ("INTERVAL_FIELD", every.map_or(Value::Null, |(_, unit)| text(unit.name()))),
            ("SQL_MODE", text(event.settings.sql_mode.text())),
            ("STARTS", time(times.starts)),
            ("ENDS", time(times.ends)),
            ("STATUS", text(event.status.name())),
            ("ON_COMPLETION", text(if event.preserve { "PRESERVE" } else { "NOT PRESERVE" })),
            ("CREATED", local_time(ctx, event.created_at)),
            ("LAST_ALTERED", local_time(ctx, event.modified_at)),
            ("LAST_EXECUTED", time(ctx.db.event_runs.last(event))),
            ("EVENT_COMMENT", text(&*event.comment)),
            ("ORIGINATOR", Value::Int(event.originator.into())),
            ("CHARACTER_SET_CLIENT", client),
            ("COLLATION_CONNECTION", connection),
            ("DATABASE_COLLATION", database),
        ]));
    }
    Ok(rows)
}

/// Returns the rows of `mysql.event`. Its times are in UTC.
pub(super) fn event_rows(columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let catalog = ctx.db.catalog();
    let events = catalog.schemas.values().flat_map(|schema| schema.events.values());
    let row = |event: &Arc<Event>| {
        let last = ctx.db.event_runs.last(event);
        columns.iter().map(|column| event_cell(event, last, column)).collect()
    };
    events.map(row).collect()
}

fn event_cell(event: &Event, last: Option<i64>, column: &VirtualColumn) -> Value {
    let times = Times::of(event);
    let utc = |seconds: Option<i64>| match seconds {
        Some(seconds) => Value::DateTime(FixedOffset::UTC.to_local(seconds.saturating_mul(1_000_000))),
        None => Value::Null,
    };
    let [client, connection, database] = settings_cells(&event.settings);
    match column.name {
        "db" => text(&*event.schema),
        "name" => text(&*event.name),
        "body" => as_sent(&event.body, event.settings.client),
        "body_utf8" => text(&*event.body),
        "definer" => definer_cell(&event.definer),
        "execute_at" => utc(times.at),
        "last_executed" => utc(last),
        // MariaDB counts weeks in days and quarters in months.
        "interval_value" => times.every.map_or(Value::Null, |(count, unit)| {
            let of_unit = match unit {
                IntervalUnit::Week => 7,
                IntervalUnit::Quarter => 3,
                _ => 1,
            };
            Value::Int((count * of_unit).cast_signed())
        }),
        "interval_field" => times.every.map_or(Value::Null, |(_, unit)| member(column, unit.name())),
        "created" => timestamp(event.created_at),
        "modified" => timestamp(event.modified_at),
        "starts" => utc(times.starts),
        "ends" => utc(times.ends),
        "status" => member(column, event.status.name()),
        "on_completion" => member(column, if event.preserve { "PRESERVE" } else { "DROP" }),
        "sql_mode" => column.ty.set_value(event.settings.sql_mode.0).unwrap_or(Value::Null),
        "comment" => text(&*event.comment),
        "originator" => Value::UInt(event.originator.into()),
        "time_zone" => text(&*event.time_zone),
        "character_set_client" => client,
        "collation_connection" => connection,
        "db_collation" => database,
        _ => Value::Null,
    }
}
