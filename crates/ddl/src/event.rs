//! CREATE, ALTER and DROP EVENT.

use cohort_catalog::{CatalogChange, Event, EventSchedule};
use cohort_config::{VarId, VarValue};
use cohort_locks::{MetadataMode, ProgramKind};
use cohort_session::{SessionState, StatementContext};
use cohort_sql::ast::{AlterEvent, Body, CreateEvent, CreateMode, EventOptions, ObjectName};
use cohort_sql::print::{Style, quoted_text};
use cohort_types::{
    DateTime, ErrorCode, EventStatus, FixedOffset, Interval, IntervalUnit, LocalToUtc, NoWarnings, SqlError,
    SqlMode, SqlResult, TimeZone, Value, Warning,
};

use super::DdlOutcome;
use super::create_table::created_at;
use super::definer::{definer, program_settings};
use super::program::{body_range, create_words, lock_program, log_of, text_of};
use super::routine::finish_missing;
use super::work::{Changes, LogText, commit, enter_schema, lock_schema, refuse_virtual, schema_of};

/// The largest number of units of an interval.
const COUNT_MAX: u64 = 1_000_000_000;

/// The values of ON SCHEDULE.
pub enum ScheduleValues {
    At(TimeValue),
    Every { interval: Value, unit: IntervalUnit, starts: Option<TimeValue>, ends: Option<TimeValue> },
}

/// The value of an expression, and its conversion to DATETIME.
pub struct TimeValue {
    pub given: Value,
    pub time: Option<DateTime>,
}

impl TimeValue {
    /// Returns the time in seconds since 1970 UTC, or `None` if a TIMESTAMP cannot hold it.
    fn seconds(&self, zone: &dyn TimeZone) -> Option<i64> {
        match zone.to_utc(&self.time?).in_range() {
            LocalToUtc::Exact(micros) | LocalToUtc::Gap(micros) => Some(micros.div_euclid(1_000_000)),
            LocalToUtc::OutOfRange => None,
        }
    }

    fn wrong(&self, clause: &str) -> SqlError {
        wrong_value(clause, &self.given)
    }
}

fn wrong_value(clause: &str, given: &Value) -> SqlError {
    let text = if given.is_null() { "NULL".to_owned() } else { given.to_text() };
    SqlError::wrong_value(clause, text.as_bytes())
}

/// Returns the schedule that the values mean: errors 1235, 1525, 1542, 1543.
fn schedule(ctx: &StatementContext<'_>, values: &ScheduleValues) -> SqlResult<EventSchedule> {
    let zone = &ctx.session.settings.env.time_zone;
    ctx.uses_zone.set(true);
    match values {
        ScheduleValues::At(at) => at.seconds(zone).map(EventSchedule::At).ok_or_else(|| at.wrong("AT")),
        ScheduleValues::Every { interval, unit, starts, ends } => {
            if unit.has_micros() {
                return Err(SqlError::not_supported("MICROSECOND"));
            }
            if *interval == Value::Null {
                return Err(wrong_value("INTERVAL", interval));
            }
            let count = count_of(interval, *unit).ok_or_else(SqlError::event_interval)?;
            let starts = match starts {
                None => now(ctx),
                Some(starts) => starts.seconds(zone).ok_or_else(|| starts.wrong("STARTS"))?,
            };
            let ends = match ends {
                None => None,
                Some(ends) => {
                    let ends = ends.seconds(zone).filter(|ends| *ends > starts);
                    Some(ends.ok_or_else(SqlError::event_ends)?)
                }
            };
            Ok(EventSchedule::Every { count, unit: *unit, starts: Some(starts), ends })
        }
    }
}

/// Returns the number of units of an interval, or `None` if it is not positive or too large.
fn count_of(interval: &Value, unit: IntervalUnit) -> Option<u64> {
    use IntervalUnit as U;
    let is_compound = unit.name().contains('_');
    let count = if is_compound {
        let Interval { months, days, micros } = Interval::parse(interval.to_text().as_bytes(), unit)?;
        let seconds = days.checked_mul(86_400)?.checked_add(micros / 1_000_000)?;
        match unit {
            U::YearMonth => months,
            U::DayHour => seconds / 3600,
            U::DayMinute | U::HourMinute => seconds / 60,
            _ => seconds,
        }
    } else {
        i64::try_from(interval.to_int(&mut NoWarnings)?.wide()).ok()?
    };
    u64::try_from(count).ok().filter(|count| (1..=COUNT_MAX).contains(count))
}

/// Returns the statement's time in seconds since 1970.
fn now(ctx: &StatementContext<'_>) -> i64 {
    ctx.session.settings.env.now_micros.div_euclid(1_000_000)
}

/// Returns whether an event with this schedule will never run again.
fn is_over(schedule: &EventSchedule, now: i64) -> bool {
    match schedule {
        EventSchedule::At(at) => *at < now,
        EventSchedule::Every { ends, .. } => ends.is_some_and(|ends| ends < now),
    }
}

/// Returns the status of an event that a replica applies: its source runs it.
fn status_here(ctx: &StatementContext<'_>, asked: EventStatus) -> EventStatus {
    match asked {
        EventStatus::Enabled if ctx.session.identity.is_applier => EventStatus::SlavesideDisabled,
        other => other,
    }
}

/// Returns the server where an event was created: this one, even if the session has another `server_id`.
fn originator(ctx: &StatementContext<'_>) -> u32 {
    match ctx.session.identity.is_applier {
        true => ctx.trx.settings.binlog.server.0,
        false => ctx.session.settings.vars.globals().uint(VarId::ServerId) as u32,
    }
}

fn apply(ctx: &StatementContext<'_>, event: &mut Event, options: &EventOptions) {
    event.preserve = options.preserve.unwrap_or(event.preserve);
    event.status = status_here(ctx, options.status.unwrap_or(event.status));
    if let Some(comment) = &options.comment {
        event.comment.clone_from(comment);
    }
}

pub(super) fn create(
    ctx: &mut StatementContext<'_>,
    create: &CreateEvent,
    values: &ScheduleValues,
) -> SqlResult<DdlOutcome> {
    let schema_name = schema_of(ctx, &create.name)?;
    let name = &create.name.name;
    let schema = enter_schema(ctx, &schema_name)?;
    let definer = definer(ctx, create.definer.as_ref())?;
    lock_program(ctx, ProgramKind::Event, &schema_name, name, MetadataMode::Exclusive)?;
    let schedule = schedule(ctx, values)?;
    let body = body_range(ctx, &create.body);
    let log = create_words(create.mode, &definer, Style::default());
    let log = format!("{log}{}", text_of(ctx, create.start..body.end));
    let log = log_of(create.definer.as_ref(), Some(log));
    let mut event = Event {
        schema: schema_name.clone(),
        name: name.clone(),
        schedule,
        preserve: false,
        status: EventStatus::Enabled,
        originator: originator(ctx),
        time_zone: zone_name(ctx.session),
        body: body_text(ctx, &create.body),
        comment: String::new(),
        definer,
        settings: program_settings(ctx, &schema),
        created_at: created_at(ctx),
        modified_at: created_at(ctx),
    };
    apply(ctx, &mut event, &create.options);
    let before = ctx.db.catalog().event(&schema_name, name).cloned();
    match (&before, create.mode) {
        (Some(_), CreateMode::Create) => return Err(SqlError::event_exists(name)),
        (Some(_), CreateMode::IfNotExists) => {
            ctx.eval.push_warning(Warning::note(SqlError::event_exists(name)));
            commit(ctx, Changes::default(), log)?;
            warn_of_scheduler(ctx);
            return Ok(DdlOutcome::default());
        }
        _ => {}
    }
    if is_over(&event.schedule, now(ctx)) {
        if !event.preserve {
            ctx.eval.push_warning(Warning::note(SqlError::event_not_created()));
            return Ok(DdlOutcome::default());
        }
        event.status = EventStatus::Disabled;
        ctx.eval.push_warning(Warning::note(SqlError::event_in_the_past()));
    }
    let mut changes = Changes::default();
    if let Some(before) = before {
        changes.catalog.push(drop_change(&before));
    }
    changes.catalog.push(CatalogChange::PutEvent(event));
    commit(ctx, changes, log)?;
    warn_of_scheduler(ctx);
    Ok(DdlOutcome::default())
}

/// Returns the text of a body with the comments around it.
fn body_text(ctx: &StatementContext<'_>, body: &Body) -> String {
    let range = body_range(ctx, body);
    let start = cohort_sql::comments_before(ctx.text, range.start, ctx.session.settings.parse.mode);
    text_of(ctx, start..range.end).trim_ascii_start().to_owned()
}

/// Warns that no event runs.
fn warn_of_scheduler(ctx: &StatementContext<'_>) {
    let VarValue::Text(state) = ctx.session.settings.vars.globals().value(VarId::EventScheduler) else {
        return;
    };
    if &*state == "OFF" && !ctx.session.identity.is_applier {
        let text = "Event scheduler is switched off, use SET GLOBAL event_scheduler=ON to enable it.";
        ctx.eval.push_warning(Warning::new(SqlError::new(ErrorCode::UnknownError, text)));
    }
}

fn drop_change(event: &Event) -> CatalogChange {
    CatalogChange::DropEvent { schema: event.schema.clone(), name: event.name.clone() }
}

/// Disables an event before its last run, unless it was changed or dropped. It is not logged.
pub fn disable_event(ctx: &mut StatementContext<'_>, event: &Event) -> SqlResult<()> {
    lock_program(ctx, ProgramKind::Event, &event.schema, &event.name, MetadataMode::Exclusive)?;
    let found = ctx.db.catalog().event(&event.schema, &event.name).cloned();
    let Some(found) = found.filter(|found| **found == *event) else { return Ok(()) };
    let disabled = Event { status: EventStatus::Disabled, ..Event::clone(&found) };
    commit(ctx, Changes::one(CatalogChange::PutEvent(disabled)), LogText::ByCaller)
}

fn zone_name(session: &SessionState) -> String {
    session.settings.vars.text(VarId::TimeZone).unwrap_or_default().to_string()
}

pub(super) fn alter(
    ctx: &mut StatementContext<'_>,
    alter: &AlterEvent,
    values: Option<&ScheduleValues>,
) -> SqlResult<DdlOutcome> {
    let from = (schema_of(ctx, &alter.name)?, alter.name.name.clone());
    let schema = enter_schema(ctx, &from.0)?;
    let to = match &alter.rename_to {
        None => None,
        Some(to) => Some((schema_of(ctx, to)?, to.name.clone())),
    };
    if let Some(to) = &to {
        let is_same = from.0 == to.0 && from.1.to_lowercase() == to.1.to_lowercase();
        if is_same {
            return Err(SqlError::same_event_name());
        }
        enter_schema(ctx, &to.0)?;
    }
    // An altered event belongs to the account that has altered it last.
    let definer = definer(ctx, alter.definer.as_ref())?;
    for (schema, name) in [Some(&from), to.as_ref()].into_iter().flatten() {
        lock_program(ctx, ProgramKind::Event, schema, name, MetadataMode::Exclusive)?;
    }
    let catalog = ctx.db.catalog();
    if let Some((_, name)) = to.as_ref().filter(|(schema, name)| catalog.event(schema, name).is_some()) {
        return Err(SqlError::event_exists(name));
    }
    let before = catalog.event(&from.0, &from.1).ok_or_else(|| SqlError::unknown_event(&from.1))?;
    let mut event = Event::clone(before);
    event.definer = definer;
    event.settings = program_settings(ctx, &schema);
    event.originator = originator(ctx);
    event.modified_at = created_at(ctx);
    if let Some(body) = &alter.body {
        event.body = body_text(ctx, body);
    }
    if let Some(values) = values {
        event.schedule = schedule(ctx, values)?;
        event.time_zone = zone_name(ctx.session);
    }
    apply(ctx, &mut event, &alter.options);
    if values.is_some() && is_over(&event.schedule, now(ctx)) {
        if !event.preserve {
            return Err(SqlError::event_not_altered());
        }
        event.status = EventStatus::Disabled;
        ctx.eval.push_warning(Warning::note(SqlError::event_in_the_past()));
    }
    let mut changes = Changes::default();
    if let Some((schema, name)) = to {
        changes.catalog.push(drop_change(before));
        (event.schema, event.name) = (schema, name);
    }
    changes.catalog.push(CatalogChange::PutEvent(event));
    commit(ctx, changes, log_of(alter.definer.as_ref(), None))?;
    Ok(DdlOutcome::default())
}

pub(super) fn drop(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    name: &ObjectName,
) -> SqlResult<DdlOutcome> {
    let schema = schema_of(ctx, name)?;
    refuse_virtual(ctx, &schema)?;
    lock_schema(ctx, &schema, MetadataMode::SharedRead)?;
    lock_program(ctx, ProgramKind::Event, &schema, &name.name, MetadataMode::Exclusive)?;
    let Some(event) = ctx.db.catalog().event(&schema, &name.name).cloned() else {
        let error = match if_exists {
            true => SqlError::does_not_exist("Event", &name.name),
            false => SqlError::unknown_event(&name.name),
        };
        return finish_missing(ctx, if_exists, error);
    };
    commit(ctx, Changes::one(drop_change(&event)), LogText::AsWritten)?;
    Ok(DdlOutcome::default())
}

/// Returns the text of SHOW CREATE EVENT. Names are quoted as in the event's `sql_mode`, and times are shown
/// in its time zone.
pub fn create_text(event: &Event, style: Style) -> String {
    let quote = if event.settings.sql_mode.has(SqlMode::ANSI_QUOTES) { '"' } else { '`' };
    let style = Style { quote, ..style };
    let mut text = create_words(CreateMode::Create, &event.definer, style);
    text.push_str(&format!("EVENT {} ON SCHEDULE ", style.name(&event.name)));
    let time = |seconds| local_text(event, seconds);
    match event.schedule {
        EventSchedule::At(at) => text.push_str(&format!("AT '{}'", time(at))),
        EventSchedule::Every { count, unit, starts, ends } => {
            text.push_str(&format!("EVERY {} {}", interval_text(count, unit), unit.name()));
            if let Some(starts) = starts {
                text.push_str(&format!(" STARTS '{}'", time(starts)));
            }
            if let Some(ends) = ends {
                text.push_str(&format!(" ENDS '{}'", time(ends)));
            }
        }
    }
    text.push_str(if event.preserve { " ON COMPLETION PRESERVE" } else { " ON COMPLETION NOT PRESERVE" });
    text.push_str(match event.status {
        EventStatus::Enabled => " ENABLE",
        EventStatus::Disabled => " DISABLE",
        EventStatus::SlavesideDisabled => " DISABLE ON SLAVE",
    });
    if !event.comment.is_empty() {
        text.push_str(&format!(" COMMENT {}", quoted_text(&event.comment)));
    }
    text.push_str(&format!(" DO {}", event.body));
    text
}

/// Formats a time of an event in its time zone.
pub fn local_text(event: &Event, seconds: i64) -> String {
    Value::DateTime(local_time(event, seconds)).to_text()
}

/// Converts a time of an event to its time zone.
pub fn local_time(event: &Event, seconds: i64) -> DateTime {
    let micros = seconds.saturating_mul(1_000_000);
    match cohort_expr::TimeZone::parse(&event.time_zone) {
        Some(zone) => zone.to_local(micros),
        None => FixedOffset::UTC.to_local(micros),
    }
}

/// Formats the number of units, for compound units as a text of their parts.
pub fn interval_text(count: u64, unit: IntervalUnit) -> String {
    use IntervalUnit as U;
    let (minutes, hours) = (count / 60, count / 3600);
    match unit {
        U::YearMonth => format!("'{}-{}'", count / 12, count % 12),
        U::DayHour => format!("'{} {}'", count / 24, count % 24),
        U::DayMinute => format!("'{} {}:{}'", minutes / 24, minutes % 24, count % 60),
        U::DaySecond => format!("'{} {}:{}:{}'", hours / 24, hours % 24, minutes % 60, count % 60),
        U::HourMinute => format!("'{minutes}:{}'", count % 60),
        U::HourSecond => format!("'{hours}:{}:{}'", minutes % 60, count % 60),
        U::MinuteSecond => format!("'{minutes}:{}'", count % 60),
        _ => count.to_string(),
    }
}
