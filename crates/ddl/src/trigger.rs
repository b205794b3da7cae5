//! CREATE and DROP TRIGGER. Triggers are a part of their table's description.

use std::sync::Arc;

use cohort_catalog::{CatalogChange, Table, Trigger};
use cohort_locks::{MetadataMode, ProgramKind};
use cohort_session::StatementContext;
use cohort_sql::ast::{CreateMode, CreateTrigger, ObjectName, TriggerOrder};
use cohort_sql::print::Style;
use cohort_types::{SqlError, SqlResult, Warning};

use super::DdlOutcome;
use super::definer::{definer, program_settings};
use super::program::{body_range, check_trusted, create_words, lock_program, log_of, text_of};
use super::routine::finish_missing;
use super::work::{Changes, LogText, commit, lock_schema, lock_table, refuse_virtual, schema_of};

/// The schema of the account tables, which have no triggers.
const SYSTEM: &str = "mysql";

pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateTrigger) -> SqlResult<DdlOutcome> {
    let schema_name = schema_of(ctx, &create.name)?;
    // A table without a schema is looked up in that of the trigger.
    let table_schema = create.table.db.clone().unwrap_or_else(|| schema_name.clone());
    if table_schema == SYSTEM {
        return Err(SqlError::trigger_on_system_table());
    }
    refuse_virtual(ctx, &table_schema)?;
    if ctx.session.temporary.find(&table_schema, &create.table.name).is_some() {
        return Err(SqlError::trigger_on_view(&create.table.name));
    }
    check_trusted(ctx)?;
    let of = ObjectName { db: Some(table_schema.clone()), name: create.table.name.clone() };
    let table = lock_table(ctx, &of)?;
    if schema_name != table_schema {
        return Err(SqlError::trigger_in_wrong_schema());
    }
    if table.is_sequence() {
        return Err(SqlError::trigger_on_view(&create.table.name));
    }
    let definer = definer(ctx, create.definer.as_ref())?;
    let name = &create.name.name;
    lock_program(ctx, ProgramKind::Trigger, &schema_name, name, MetadataMode::Exclusive)?;
    let log = create_words(create.mode, &definer, Style::default());
    let whole = body_range(ctx, &create.body);
    let log = format!("{log}{}", text_of(ctx, create.start..whole.end));
    let log = log_of(create.definer.as_ref(), Some(log));
    // The time of creation has hundredths of a second.
    ctx.uses_micros.set(true);
    let catalog = ctx.db.catalog();
    let schema = catalog.schemas.get(&schema_name).ok_or_else(|| SqlError::unknown_database(&schema_name))?;
    let existing = schema.trigger(name).map(|(table, _)| table.id);
    match (existing, create.mode) {
        (Some(_), CreateMode::Create) => return Err(SqlError::trigger_exists(&schema_name, name)),
        (Some(_), CreateMode::IfNotExists) => {
            ctx.eval.push_warning(Warning::note(SqlError::trigger_exists(&schema_name, name)));
            commit(ctx, Changes::default(), log)?;
            return Ok(DdlOutcome::default());
        }
        (Some(of), CreateMode::OrReplace) if of != table.id => {
            return Err(SqlError::unknown_trigger());
        }
        _ => {}
    }
    check_order(&table, create)?;
    let mut table = Table::clone(&table);
    table.triggers.retain(|trigger| trigger.name != *name);
    let (text, on, body) = stored_text(ctx, create, whole.end);
    let trigger = Trigger {
        name: name.clone(),
        timing: create.timing,
        event: create.event,
        text,
        on,
        body,
        definer,
        settings: program_settings(ctx, schema),
        created_at: (ctx.session.settings.env.now_micros / 10_000).max(0).cast_unsigned(),
    };
    let at = position(&table, create);
    table.triggers.insert(at, Arc::new(trigger));
    commit(ctx, Changes::one(CatalogChange::PutTable(table)).with_xid(), log)?;
    Ok(DdlOutcome::default())
}

/// Requires the trigger of FOLLOWS or PRECEDES: error 4031.
fn check_order(table: &Table, create: &CreateTrigger) -> SqlResult<()> {
    let Some((_, other)) = &create.order else { return Ok(()) };
    match table.triggers_of(create.timing, create.event).any(|trigger| trigger.name == *other) {
        true => Ok(()),
        false => Err(SqlError::unknown_trigger_of_order(other)),
    }
}

/// Returns the place of a new trigger among those of its table. One that is replaced may name itself.
fn position(table: &Table, create: &CreateTrigger) -> usize {
    let Some((order, other)) = &create.order else { return table.triggers.len() };
    match (table.triggers.iter().position(|trigger| trigger.name == *other), order) {
        (None, _) => table.triggers.len(),
        (Some(at), TriggerOrder::Follows) => at + 1,
        (Some(at), TriggerOrder::Precedes) => at,
    }
}

/// Returns the text to store, without FOLLOWS and PRECEDES, the range of the table's name in it, and the
/// start of the body.
fn stored_text(
    ctx: &StatementContext<'_>,
    create: &CreateTrigger,
    end: usize,
) -> (String, std::ops::Range<usize>, usize) {
    let part = |range| text_of(ctx, range);
    let head = part(create.start..create.on.start);
    let on = part(create.on.clone());
    let middle = part(create.on.end..create.order_text.start);
    // A comment between the clause and the body stays.
    let gap = part(create.order_text.end..create.body.range.start);
    let gap = if create.order.is_some() { gap[gap.len().min(1)..].to_owned() } else { gap };
    let body = part(create.body.range.start..end);
    let on_range = head.len()..head.len() + on.len();
    let start = on_range.end + middle.len() + gap.len();
    (format!("{head}{on}{middle}{gap}{body}"), on_range, start)
}

pub(super) fn drop(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    name: &ObjectName,
) -> SqlResult<DdlOutcome> {
    let schema_name = schema_of(ctx, name)?;
    lock_schema(ctx, &schema_name, MetadataMode::SharedRead)?;
    let found = |ctx: &StatementContext<'_>| {
        let catalog = ctx.db.catalog();
        let (table, _) = catalog.schemas.get(&schema_name)?.trigger(&name.name)?;
        Some(Arc::clone(table))
    };
    loop {
        let Some(table) = found(ctx) else {
            return finish_missing(ctx, if_exists, SqlError::unknown_trigger());
        };
        check_trusted(ctx)?;
        let of = ObjectName { db: Some(schema_name.clone()), name: table.name.table.clone() };
        let table = lock_table(ctx, &of)?;
        lock_program(ctx, ProgramKind::Trigger, &schema_name, &name.name, MetadataMode::Exclusive)?;
        let mut table = Table::clone(&table);
        let before = table.triggers.len();
        table.triggers.retain(|trigger| trigger.name != name.name);
        if table.triggers.len() == before {
            // Another statement has moved it while this one waited.
            continue;
        }
        commit(ctx, Changes::one(CatalogChange::PutTable(table)).with_xid(), LogText::AsWritten)?;
        return Ok(DdlOutcome::default());
    }
}

/// Returns the text of SHOW CREATE TRIGGER.
pub fn create_text(trigger: &Trigger, style: Style) -> String {
    format!("{}{}", create_words(CreateMode::Create, &trigger.definer, style), trigger.text)
}
