//! Stored programs: routines, triggers, events. Bodies are texts, which are parsed again when used.
//!
//! ```text
//! routine   string schema | string name | u8 kind | u8 flags (1 aggregate, 2 deterministic, 4 by invoker)
//!           | u8 data access | string parameters | string returns | string body | string comment
//!           | definer | settings | u64 created | u64 modified
//! trigger   string name | u8 timing | u8 event | string text | u32 from, u32 to: the table in the text
//!           | u32 start of the body in the text | definer | settings | u64 created
//! event     string schema | string name | schedule | u8 flags (1 preserve) | u8 status | u32 originator
//!           | string time zone | string body | string comment | definer | settings
//!           | u64 created | u64 modified
//! schedule  u8 0, i64 at | u8 1, u64 count, string unit, time starts, time ends
//! time      u8 0 | u8 1, i64 seconds
//! definer   string user | string host
//! settings  u64 sql_mode | u16 client | u16 connection | u16 database
//! ```
//!
//! Kinds, timings, events, statuses and data accesses are numbered as in their `ALL`.

use std::ops::Range;
use std::sync::Arc;

use cohort_base::{Reader, Truncated, Write};
use cohort_types::{
    Collation, DataAccess, EventStatus, IntervalUnit, RoutineKind, SqlMode, TriggerEvent, TriggerTiming,
};

use crate::account::AccountName;
use crate::codec::{put_string, read_string};
use crate::model::{Catalog, Schema, Table, TableName};

/// The settings of the session that created a program. The program runs with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramSettings {
    pub sql_mode: SqlMode,
    /// Default collation of `character_set_client`.
    pub client: Collation,
    pub connection: Collation,
    /// Default collation of the program's database.
    pub database: Collation,
}

/// A procedure or a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    pub schema: String,
    pub name: String,
    pub kind: RoutineKind,
    pub aggregate: bool,
    /// Text between the parentheses of the parameters.
    pub parameters: String,
    /// Text of the type after RETURNS; empty for procedures.
    pub returns: String,
    pub body: String,
    pub deterministic: bool,
    pub access: DataAccess,
    /// SQL SECURITY INVOKER.
    pub by_invoker: bool,
    pub comment: String,
    pub definer: AccountName,
    pub settings: ProgramSettings,
    /// Seconds since 1970 UTC.
    pub created_at: u64,
    pub modified_at: u64,
}

/// A trigger. It belongs to its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Unique within the schema, in exact spelling.
    pub name: String,
    pub timing: TriggerTiming,
    pub event: TriggerEvent,
    /// The statement as written, from the word TRIGGER on, without FOLLOWS or PRECEDES.
    pub text: String,
    /// The range of `ON table` in the text.
    pub on: Range<usize>,
    /// The start of the body in the text.
    pub body: usize,
    pub definer: AccountName,
    pub settings: ProgramSettings,
    /// Hundredths of a second since 1970 UTC.
    pub created_at: u64,
}

/// An event. Its last execution is not part of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub schema: String,
    pub name: String,
    pub schedule: EventSchedule,
    /// ON COMPLETION PRESERVE.
    pub preserve: bool,
    pub status: EventStatus,
    /// `server_id` of the server where it was created or last changed.
    pub originator: u32,
    /// Name of the time zone in which its times are shown and calendar units are added.
    pub time_zone: String,
    pub body: String,
    pub comment: String,
    pub definer: AccountName,
    pub settings: ProgramSettings,
    /// Seconds since 1970 UTC.
    pub created_at: u64,
    pub modified_at: u64,
}

/// Times at which an event runs, in seconds since 1970 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSchedule {
    At(i64),
    Every {
        /// Number of the smallest units of a compound unit: '1:30' HOUR_MINUTE counts 90.
        count: u64,
        unit: IntervalUnit,
        starts: Option<i64>,
        ends: Option<i64>,
    },
}

/// The name of a routine or event as a key. Names are compared by `utf8mb3_general_ci`, as in MariaDB.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramKey(Vec<u8>);

impl ProgramKey {
    /// Creates the key of a name.
    pub fn new(name: &str) -> ProgramKey {
        let mut key = Vec::new();
        Collation::UTF8MB4_GENERAL_CI.sort_key(name.as_bytes(), &mut key);
        ProgramKey(key)
    }

    /// Returns a key that was stored.
    pub fn from_bytes(key: &[u8]) -> ProgramKey {
        ProgramKey(key.to_vec())
    }

    /// Returns the key for storage.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Routine {
    /// Returns whether both are the same routine, in the same or in different definitions.
    pub fn is_same(&self, other: &Routine) -> bool {
        self.kind == other.kind
            && self.schema == other.schema
            && (self.name == other.name || self.key() == other.key())
    }

    /// Returns the key of its name.
    pub fn key(&self) -> ProgramKey {
        ProgramKey::new(&self.name)
    }
}

impl Event {
    /// Returns the key of its name.
    pub fn key(&self) -> ProgramKey {
        ProgramKey::new(&self.name)
    }
}

impl Trigger {
    /// Returns the text of the body.
    pub fn body_text(&self) -> &str {
        &self.text[self.body..]
    }

    /// Writes another name of its table into the text, with one space after it.
    pub fn rename_table(&mut self, table: &str) {
        let rest = &self.text[self.on.end..];
        let end = (self.on.end + rest.len() - rest.trim_ascii_start().len()).min(self.body);
        let on = format!("ON `{}`", table.replace('`', "``"));
        self.body = self.body - (end - self.on.start) + on.len() + 1;
        self.text.replace_range(self.on.start..end, &format!("{on} "));
        self.on.end = self.on.start + on.len();
    }
}

impl Schema {
    /// Returns a routine by its name.
    pub fn routine(&self, kind: RoutineKind, name: &str) -> Option<&Arc<Routine>> {
        match kind {
            RoutineKind::Procedure => self.procedures.get(&ProgramKey::new(name)),
            RoutineKind::Function => self.functions.get(&ProgramKey::new(name)),
        }
    }

    /// Returns an event by its name.
    pub fn event(&self, name: &str) -> Option<&Arc<Event>> {
        self.events.get(&ProgramKey::new(name))
    }

    /// Returns a trigger by its name, with its table. Searches all tables.
    pub fn trigger(&self, name: &str) -> Option<(&Arc<Table>, &Arc<Trigger>)> {
        self.tables.values().find_map(|table| {
            let trigger = table.triggers.iter().find(|trigger| trigger.name == name)?;
            Some((table, trigger))
        })
    }
}

impl Table {
    /// Returns the triggers of a change, in the order in which they run.
    pub fn triggers_of(
        &self,
        timing: TriggerTiming,
        event: TriggerEvent,
    ) -> impl Iterator<Item = &Arc<Trigger>> {
        self.triggers.iter().filter(move |trigger| trigger.timing == timing && trigger.event == event)
    }

    /// Renames the table, also in the texts of its triggers.
    pub fn rename(&mut self, to: TableName) {
        if self.name.table != to.table {
            for trigger in &mut self.triggers {
                Arc::make_mut(trigger).rename_table(&to.table);
            }
        }
        self.name = to;
    }
}

impl Catalog {
    /// Returns a routine by its name.
    pub fn routine(&self, kind: RoutineKind, schema: &str, name: &str) -> Option<&Arc<Routine>> {
        self.schemas.get(schema)?.routine(kind, name)
    }

    /// Returns an event by its name.
    pub fn event(&self, schema: &str, name: &str) -> Option<&Arc<Event>> {
        self.schemas.get(schema)?.event(name)
    }
}

fn put_number<T: PartialEq>(out: &mut Vec<u8>, all: &[T], item: &T) {
    out.put_u8(all.iter().position(|known| known == item).expect("ALL lists every value") as u8);
}

pub(crate) fn read_number<T: Copy>(r: &mut Reader<'_>, all: &[T]) -> Result<T, Truncated> {
    all.get(usize::from(r.u8()?)).copied().ok_or(Truncated)
}

/// Appends the kind of a routine.
pub(crate) fn put_kind(out: &mut Vec<u8>, kind: RoutineKind) {
    put_number(out, RoutineKind::ALL, &kind);
}

fn put_definer(out: &mut Vec<u8>, (user, host): &AccountName) {
    put_string(out, user);
    put_string(out, host);
}

fn put_settings(out: &mut Vec<u8>, settings: &ProgramSettings) {
    out.put_u64(settings.sql_mode.0);
    for collation in [settings.client, settings.connection, settings.database] {
        out.put_u16(collation.0);
    }
}

fn read_settings(r: &mut Reader<'_>) -> Result<ProgramSettings, Truncated> {
    Ok(ProgramSettings {
        sql_mode: SqlMode(r.u64()?),
        client: Collation(r.u16()?),
        connection: Collation(r.u16()?),
        database: Collation(r.u16()?),
    })
}

pub(crate) fn put_routine(out: &mut Vec<u8>, routine: &Routine) {
    put_string(out, &routine.schema);
    put_string(out, &routine.name);
    put_kind(out, routine.kind);
    let flags = [routine.aggregate, routine.deterministic, routine.by_invoker];
    out.put_u8(flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag)));
    put_number(out, DataAccess::ALL, &routine.access);
    for text in [&routine.parameters, &routine.returns, &routine.body, &routine.comment] {
        put_string(out, text);
    }
    put_definer(out, &routine.definer);
    put_settings(out, &routine.settings);
    out.put_u64(routine.created_at);
    out.put_u64(routine.modified_at);
}

pub(crate) fn read_routine(r: &mut Reader<'_>) -> Result<Routine, Truncated> {
    let (schema, name) = (read_string(r)?, read_string(r)?);
    let (kind, flags) = (read_number(r, RoutineKind::ALL)?, r.u8()?);
    Ok(Routine {
        schema,
        name,
        kind,
        aggregate: flags & 1 != 0,
        deterministic: flags & 2 != 0,
        by_invoker: flags & 4 != 0,
        access: read_number(r, DataAccess::ALL)?,
        parameters: read_string(r)?,
        returns: read_string(r)?,
        body: read_string(r)?,
        comment: read_string(r)?,
        definer: (read_string(r)?, read_string(r)?),
        settings: read_settings(r)?,
        created_at: r.u64()?,
        modified_at: r.u64()?,
    })
}

pub(crate) fn put_trigger(out: &mut Vec<u8>, trigger: &Trigger) {
    put_string(out, &trigger.name);
    put_number(out, TriggerTiming::ALL, &trigger.timing);
    put_number(out, TriggerEvent::ALL, &trigger.event);
    put_string(out, &trigger.text);
    for place in [trigger.on.start, trigger.on.end, trigger.body] {
        out.put_u32(place as u32);
    }
    put_definer(out, &trigger.definer);
    put_settings(out, &trigger.settings);
    out.put_u64(trigger.created_at);
}

pub(crate) fn read_trigger(r: &mut Reader<'_>) -> Result<Trigger, Truncated> {
    let (name, timing) = (read_string(r)?, read_number(r, TriggerTiming::ALL)?);
    let (event, text) = (read_number(r, TriggerEvent::ALL)?, read_string(r)?);
    let (from, to, body) = (r.u32()? as usize, r.u32()? as usize, r.u32()? as usize);
    let is_in_order = from <= to && to <= body;
    if !is_in_order || ![from, to, body].iter().all(|place| text.is_char_boundary(*place)) {
        return Err(Truncated);
    }
    Ok(Trigger {
        name,
        timing,
        event,
        text,
        on: from..to,
        body,
        definer: (read_string(r)?, read_string(r)?),
        settings: read_settings(r)?,
        created_at: r.u64()?,
    })
}

fn put_time(out: &mut Vec<u8>, time: Option<i64>) {
    out.put_u8(u8::from(time.is_some()));
    if let Some(time) = time {
        out.put_u64(time.cast_unsigned());
    }
}

fn read_time(r: &mut Reader<'_>) -> Result<Option<i64>, Truncated> {
    match r.u8()? {
        0 => Ok(None),
        1 => Ok(Some(r.u64()?.cast_signed())),
        _ => Err(Truncated),
    }
}

fn put_schedule(out: &mut Vec<u8>, schedule: &EventSchedule) {
    match *schedule {
        EventSchedule::At(at) => {
            out.put_u8(0);
            out.put_u64(at.cast_unsigned());
        }
        EventSchedule::Every { count, unit, starts, ends } => {
            out.put_u8(1);
            out.put_u64(count);
            put_string(out, unit.name());
            put_time(out, starts);
            put_time(out, ends);
        }
    }
}

fn read_schedule(r: &mut Reader<'_>) -> Result<EventSchedule, Truncated> {
    match r.u8()? {
        0 => Ok(EventSchedule::At(r.u64()?.cast_signed())),
        1 => {
            let count = r.u64()?;
            let unit = IntervalUnit::by_name(&read_string(r)?).ok_or(Truncated)?;
            Ok(EventSchedule::Every { count, unit, starts: read_time(r)?, ends: read_time(r)? })
        }
        _ => Err(Truncated),
    }
}

pub(crate) fn put_event(out: &mut Vec<u8>, event: &Event) {
    put_string(out, &event.schema);
    put_string(out, &event.name);
    put_schedule(out, &event.schedule);
    out.put_u8(u8::from(event.preserve));
    put_number(out, EventStatus::ALL, &event.status);
    out.put_u32(event.originator);
    for text in [&event.time_zone, &event.body, &event.comment] {
        put_string(out, text);
    }
    put_definer(out, &event.definer);
    put_settings(out, &event.settings);
    out.put_u64(event.created_at);
    out.put_u64(event.modified_at);
}

pub(crate) fn read_event(r: &mut Reader<'_>) -> Result<Event, Truncated> {
    Ok(Event {
        schema: read_string(r)?,
        name: read_string(r)?,
        schedule: read_schedule(r)?,
        preserve: r.u8()? & 1 != 0,
        status: read_number(r, EventStatus::ALL)?,
        originator: r.u32()?,
        time_zone: read_string(r)?,
        body: read_string(r)?,
        comment: read_string(r)?,
        definer: (read_string(r)?, read_string(r)?),
        settings: read_settings(r)?,
        created_at: r.u64()?,
        modified_at: r.u64()?,
    })
}
