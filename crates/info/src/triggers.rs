//! SHOW CREATE TRIGGER, and rows of information_schema.TRIGGERS.

use cohort_catalog::Trigger;
use cohort_ddl::create_text::ShowStyle;
use cohort_session::{StatementContext, WantedNames};
use cohort_sql::ast::ObjectName;
use cohort_types::{
    ColumnType, Privilege, Privileges, SqlError, SqlMode, SqlResult, TimeZone, TriggerEvent, TriggerTiming,
    TypeKind, Value,
};

use super::cells::{definition, text};
use super::listing::Listing;
use super::routines::{add_settings_columns, definer_cell, settings_cells};
use super::schema_of;
use super::schema_table::SchemaTable;

/// Runs SHOW CREATE TRIGGER: errors 1360, 1227.
pub(super) fn show_create(ctx: &StatementContext<'_>, name: &ObjectName) -> SqlResult<Listing> {
    let schema_name = schema_of(ctx, name.db.as_deref())?;
    let catalog = ctx.db.catalog();
    let schema = catalog.schemas.get(&schema_name);
    let (table, trigger) =
        schema.and_then(|schema| schema.trigger(&name.name)).ok_or_else(SqlError::unknown_trigger)?;
    if !ctx.session.access().on_table(&schema_name, &table.name.table).has(Privilege::Trigger) {
        return Err(SqlError::privilege_needed(Privilege::Trigger.name()));
    }
    let quote = if trigger.settings.sql_mode.has(SqlMode::ANSI_QUOTES) { '"' } else { '`' };
    let style = cohort_sql::print::Style { quote, ..ShowStyle::of(ctx).style };
    let statement = cohort_ddl::trigger_text(trigger, style);
    let mode = trigger.settings.sql_mode.text();
    let mut listing = Listing::new(&[
        ("Trigger", 64),
        ("sql_mode", mode.len() as u32),
        ("SQL Original Statement", statement.len().max(1024) as u32),
    ]);
    add_settings_columns(&mut listing);
    listing.column("Created", ColumnType::temporal(TypeKind::Timestamp, 2), true);
    let [client, connection, database] = settings_cells(&trigger.settings);
    listing.add([
        Value::text(&trigger.name),
        Value::text(mode),
        definition(ctx, statement, trigger.settings.client),
        client,
        connection,
        database,
        Value::Timestamp(created_micros(trigger)),
    ]);
    Ok(listing)
}

fn created_micros(trigger: &Trigger) -> i64 {
    i64::try_from(trigger.created_at).unwrap_or(0).saturating_mul(10_000)
}

/// Returns the rows of TRIGGERS: those of tables on which the account has TRIGGER. Accounts that may change
/// the rows of a table know that its triggers exist.
pub(super) fn rows(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let (catalog, access) = (ctx.db.catalog(), ctx.session.access());
    let mut rows = Vec::new();
    let schemas = catalog.schemas.values().filter(|schema| wanted.has_schema(&schema.name));
    for table in schemas.flat_map(|schema| schema.tables.values()) {
        let (schema, name) = (&*table.name.schema, &*table.name.table);
        if table.triggers.is_empty() || !wanted.has_table(name) {
            continue;
        }
        let held = access.on_table(schema, name);
        let sees_body = held.has(Privilege::Trigger);
        let changes = [Privilege::Insert, Privilege::Update, Privilege::Delete];
        let columns = access.granted_on_table(schema, name).map_or(Privileges::NONE, |it| it.on_any_column());
        if !sees_body && !held.and(columns).meets(Privileges::of(&changes)) {
            continue;
        }
        let shown = |value: Value| if sees_body { value } else { Value::Null };
        ctx.check_interrupt()?;
        let kinds =
            TriggerEvent::ALL.iter().flat_map(|event| TriggerTiming::ALL.iter().map(move |t| (*event, *t)));
        for (event, timing) in kinds {
            for (n, trigger) in table.triggers_of(timing, event).enumerate() {
                let [client, connection, database] = settings_cells(&trigger.settings);
                let created = ctx.session.settings.env.time_zone.to_local(created_micros(trigger));
                rows.push(out.row([
                    ("TRIGGER_CATALOG", text("def")),
                    ("TRIGGER_SCHEMA", text(schema)),
                    ("TRIGGER_NAME", text(&*trigger.name)),
                    ("EVENT_MANIPULATION", text(event.name())),
                    ("EVENT_OBJECT_CATALOG", text("def")),
                    ("EVENT_OBJECT_SCHEMA", text(schema)),
                    ("EVENT_OBJECT_TABLE", text(name)),
                    ("ACTION_ORDER", Value::Int(n as i64 + 1)),
                    ("ACTION_STATEMENT", shown(text(trigger.body_text()))),
                    ("ACTION_ORIENTATION", text("ROW")),
                    ("ACTION_TIMING", text(timing.name())),
                    ("ACTION_REFERENCE_OLD_ROW", text("OLD")),
                    ("ACTION_REFERENCE_NEW_ROW", text("NEW")),
                    ("CREATED", Value::DateTime(created)),
                    ("SQL_MODE", text(trigger.settings.sql_mode.text())),
                    ("DEFINER", shown(definer_cell(&trigger.definer))),
                    ("CHARACTER_SET_CLIENT", client),
                    ("COLLATION_CONNECTION", connection),
                    ("DATABASE_COLLATION", database),
                ]));
            }
        }
    }
    Ok(rows)
}
