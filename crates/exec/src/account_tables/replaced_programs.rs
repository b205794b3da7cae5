//! Routines and events of a dump that has replaced `mysql.proc` and `mysql.event`. A dump with `--routines`
//! and `--events` has defined them by statements already; FLUSH PRIVILEGES creates those that are missing in
//! schemas that exist.

use cohort_catalog::{AccountName, CatalogChange, Event, EventSchedule, ProgramSettings, Routine};
use cohort_session::StatementContext;
use cohort_types::{
    Charset, Collation, DataAccess, EventStatus, IntervalUnit, RoutineKind, SqlMode, SqlResult, Value,
};

use super::tables::{Row, SCHEMA};
use crate::inner_query::rows_in;

/// Names and expressions of the columns that both tables have.
const COMMON: [(&str, &str); 10] = [
    ("db", "db"),
    ("name", "name"),
    ("body", "CONVERT(IFNULL(body_utf8, body) USING utf8mb4)"),
    ("definer", "definer"),
    ("created", "UNIX_TIMESTAMP(created)"),
    ("modified", "UNIX_TIMESTAMP(modified)"),
    ("sql_mode", "sql_mode + 0"),
    ("client", "character_set_client"),
    ("connection", "collation_connection"),
    ("database", "db_collation"),
];
const OF_ROUTINES: [(&str, &str); 8] = [
    ("type", "type"),
    ("access", "sql_data_access"),
    ("deterministic", "is_deterministic"),
    ("security", "security_type"),
    ("parameters", "CONVERT(param_list USING utf8mb4)"),
    ("returns", "CONVERT(returns USING utf8mb4)"),
    ("comment", "comment"),
    ("aggregate", "aggregate"),
];
const OF_EVENTS: [(&str, &str); 10] = [
    ("at", "TIMESTAMPDIFF(SECOND, '1970-01-01', execute_at)"),
    ("count", "interval_value"),
    ("unit", "interval_field"),
    ("starts", "TIMESTAMPDIFF(SECOND, '1970-01-01', starts)"),
    ("ends", "TIMESTAMPDIFF(SECOND, '1970-01-01', ends)"),
    ("status", "status"),
    ("completion", "on_completion"),
    ("comment", "comment"),
    ("originator", "originator"),
    ("zone", "time_zone"),
];

/// Returns the definitions to create.
pub(super) fn missing_programs(ctx: &mut StatementContext<'_>) -> SqlResult<Vec<CatalogChange>> {
    let catalog = ctx.db.catalog();
    let mut missing = Vec::new();
    if catalog.table(SCHEMA, "proc").is_some() {
        for row in rows_of(ctx, "proc", &OF_ROUTINES)? {
            let Some(routine) = routine(&row) else { continue };
            let schema = catalog.schemas.get(&routine.schema);
            if schema.is_some_and(|schema| schema.routine(routine.kind, &routine.name).is_none()) {
                missing.push(CatalogChange::PutRoutine(routine));
            }
        }
    }
    if catalog.table(SCHEMA, "event").is_some() {
        for row in rows_of(ctx, "event", &OF_EVENTS)? {
            let Some(event) = event(&row) else { continue };
            let schema = catalog.schemas.get(&event.schema);
            if schema.is_some_and(|schema| schema.event(&event.name).is_none()) {
                missing.push(CatalogChange::PutEvent(event));
            }
        }
    }
    Ok(missing)
}

fn rows_of(
    ctx: &mut StatementContext<'_>,
    table: &str,
    more: &[(&'static str, &'static str)],
) -> SqlResult<Vec<Row>> {
    let columns: Vec<(&'static str, &'static str)> = COMMON.iter().chain(more).copied().collect();
    let expressions: Vec<&str> = columns.iter().map(|(_, expression)| *expression).collect();
    let rows = rows_in(ctx, &format!("SELECT {} FROM mysql.{table}", expressions.join(", ")))?;
    let names: Vec<&'static str> = columns.iter().map(|(name, _)| *name).collect();
    Ok(rows.into_iter().map(|values: Vec<Value>| Row { names: names.clone(), values }).collect())
}

fn number<T: std::str::FromStr>(row: &Row, name: &str) -> Option<T> {
    row.text(name).parse().ok()
}

fn definer(row: &Row) -> AccountName {
    let text = row.text("definer");
    let (user, host) = text.rsplit_once('@').unwrap_or((&text, ""));
    (user.to_owned(), host.to_owned())
}

/// Returns the settings of a program, `None` if this server does not know one of them.
fn settings(row: &Row) -> Option<ProgramSettings> {
    Some(ProgramSettings {
        sql_mode: SqlMode(number(row, "sql_mode")?),
        client: Charset::by_name(&row.text("client"))?.default_collation(),
        connection: Collation::by_name(&row.text("connection"))?,
        database: Collation::by_name(&row.text("database"))?,
    })
}

fn routine(row: &Row) -> Option<Routine> {
    let access = row.text("access").replace('_', " ");
    Some(Routine {
        schema: row.text("db"),
        name: row.text("name"),
        kind: RoutineKind::ALL.iter().copied().find(|kind| kind.name() == row.text("type"))?,
        aggregate: row.text("aggregate") == "GROUP",
        parameters: row.text("parameters"),
        returns: row.text("returns"),
        body: row.text("body"),
        deterministic: row.text("deterministic") == "YES",
        access: DataAccess::ALL.iter().copied().find(|known| known.name() == access)?,
        by_invoker: row.text("security") == "INVOKER",
        comment: row.text("comment"),
        definer: definer(row),
        settings: settings(row)?,
        created_at: number(row, "created")?,
        modified_at: number(row, "modified")?,
    })
}

fn event(row: &Row) -> Option<Event> {
    let schedule = match number(row, "at") {
        Some(at) => EventSchedule::At(at),
        None => {
            let unit = IntervalUnit::by_name(&row.text("unit"))?;
            // MariaDB counts weeks in days and quarters in months.
            let of_unit = match unit {
                IntervalUnit::Week => 7,
                IntervalUnit::Quarter => 3,
                _ => 1,
            };
            let count = Some(number::<u64>(row, "count")? / of_unit).filter(|count| *count > 0)?;
            EventSchedule::Every { count, unit, starts: number(row, "starts"), ends: number(row, "ends") }
        }
    };
    Some(Event {
        schema: row.text("db"),
        name: row.text("name"),
        schedule,
        preserve: row.text("completion") == "PRESERVE",
        status: EventStatus::ALL.iter().copied().find(|known| known.name() == row.text("status"))?,
        originator: number(row, "originator")?,
        time_zone: row.text("zone"),
        body: row.text("body"),
        comment: row.text("comment"),
        definer: definer(row),
        settings: settings(row)?,
        created_at: number(row, "created")?,
        modified_at: number(row, "modified")?,
    })
}
