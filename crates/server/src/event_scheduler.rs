//! The event scheduler: a thread that starts the runs of events when they are due.
//!
//! # Outline
//! The scheduler keeps the time of the next run of each enabled event, and reads the catalog again when its
//! version has changed. Each run has a thread of its own, so that a slow event delays no other one, and
//! runs of a slow event overlap, as in MariaDB: at most [`RUNS_OF_EVENT_MAX`] of one event and [`RUNS_MAX`]
//! of all. Beyond that, events that are due wait for the next round, which the error log notes.
//!
//! # States
//! | event_scheduler | the scheduler |
//! |---|---|
//! | ON | runs; it is a row of the process list |
//! | OFF | waits to be switched on; runs that have begun go on |
//! | DISABLED, at the start | does not exist |
//!
//! # Failure
//! Errors and warnings of an event go to the error log. A run that does not start, because there is no
//! thread, is tried again in the next round; one whose event could not be disabled first, after
//! [`RETRY_AFTER`]. The server's stop kills the runs as it kills all connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::Duration;

use cohort_base::{CommitSeq, ConnectionId};
use cohort_catalog::{Event, EventSchedule, ProgramKey};
use cohort_config::{VarId, VarValue};
use cohort_exec::{Command, Database, EventRun, ProcessIdentity, TimeZone, next_run, run_event};
use cohort_types::{EventStatus, Level};

use crate::error_log::ErrorLog;

/// Maximum time between two looks at the clock, the catalog and the setting.
const ROUND_EVERY: Duration = Duration::from_millis(200);
/// Maximum number of runs at the same time.
const RUNS_MAX: usize = 256;
/// Maximum number of runs of one event at the same time.
const RUNS_OF_EVENT_MAX: usize = 32;
/// Seconds after which a run that has not begun is due again.
const RETRY_AFTER: i64 = 1;

/// The scheduler of a server.
pub struct EventScheduler {
    db: Weak<Database>,
    log: ErrorLog,
    next_id: Box<dyn Fn() -> ConnectionId + Send + Sync>,
    stack_bytes: usize,
    stopping: Arc<AtomicBool>,
    /// Number of runs that have begun and not ended.
    runs: Arc<AtomicUsize>,
    /// The events that will run.
    events: HashMap<EventName, Scheduled>,
    /// Runs that have not begun.
    postponed: (Sender<Postponed>, Receiver<Postponed>),
    /// Version of the catalog that they are from.
    version: Option<u64>,
    /// The scheduler was just switched on.
    begins: bool,
    /// The scheduler's id in the process list, while it is ON.
    process: Option<ConnectionId>,
}

/// Schema and name.
type EventName = (String, ProgramKey);
/// An event whose run has not begun.
type Postponed = (EventName, Arc<Event>);

struct Scheduled {
    event: Arc<Event>,
    /// `None` if it will not run again.
    next: Option<i64>,
    /// Number of its runs that have begun and not ended, also under earlier definitions.
    runs: Arc<AtomicUsize>,
    /// The error log has a warning that it waits for the end of others.
    is_noted: bool,
}

impl EventScheduler {
    /// Creates the scheduler.
    pub fn new(
        db: &Arc<Database>,
        log: ErrorLog,
        next_id: Box<dyn Fn() -> ConnectionId + Send + Sync>,
        stopping: Arc<AtomicBool>,
    ) -> EventScheduler {
        EventScheduler {
            db: Arc::downgrade(db),
            log,
            next_id,
            stack_bytes: db.globals.uint(VarId::ThreadStack) as usize,
            stopping,
            runs: Arc::default(),
            events: HashMap::new(),
            postponed: channel(),
            version: None,
            begins: true,
            process: None,
        }
    }

    /// Runs rounds until the server stops.
    pub fn run(mut self) {
        while !self.stopping.load(Ordering::Acquire) {
            let Some(db) = self.db.upgrade() else { return };
            self.round(&db);
            drop(db);
            std::thread::sleep(ROUND_EVERY);
        }
        if let Some(db) = self.db.upgrade() {
            self.leave(&db);
        }
    }

    fn round(&mut self, db: &Arc<Database>) {
        if db.globals.value(VarId::EventScheduler) != VarValue::text("ON") {
            return self.leave(db);
        }
        if self.process.is_none() {
            self.enter(db);
        }
        let now = (db.clock.wall_us() / 1_000_000) as i64;
        while let Ok((name, event)) = self.postponed.1.try_recv() {
            if let Some(scheduled) = self.events.get_mut(&name).filter(|it| Arc::ptr_eq(&it.event, &event)) {
                scheduled.next = Some(now + RETRY_AFTER);
            }
        }
        let version = db.catalog_version();
        if self.version != Some(version) {
            self.read_catalog(db, now);
            self.version = Some(version);
        }
        let due = self.events.iter().filter(|(_, it)| it.next.is_some_and(|next| next <= now));
        let mut due: Vec<_> = due.map(|(key, it)| (it.next, key.clone())).collect();
        due.sort();
        for (_, name) in due {
            self.start(db, &name, now);
        }
    }

    fn enter(&mut self, db: &Arc<Database>) {
        let id = (self.next_id)();
        let identity = ProcessIdentity {
            user: "event_scheduler".to_owned(),
            account: None,
            host: "localhost".to_owned(),
            schema: None,
        };
        let process = db.processes.register(id, identity, db.clock.wall_us());
        process.end_statement(db.clock.wall_us(), CommitSeq(0));
        process.set_command(Command::Daemon, db.clock.wall_us());
        process.set_state("Waiting for next activation");
        self.process = Some(id);
        // Runs that were missed while the scheduler was OFF are not made up for.
        (self.begins, self.version) = (true, None);
        self.log.note(format_args!("Event Scheduler: scheduler thread started with id {}", id.0));
    }

    fn leave(&mut self, db: &Arc<Database>) {
        if let Some(id) = self.process.take() {
            db.processes.remove(id);
            self.log.note(format_args!("Event Scheduler: stopped"));
        }
    }

    /// Reads the enabled events. Those that are unchanged keep the time of their next run; the others run
    /// after their last run.
    fn read_catalog(&mut self, db: &Arc<Database>, now: i64) {
        let catalog = db.catalog();
        db.event_runs.retain(|schema, key| {
            catalog.schemas.get(schema).is_some_and(|schema| schema.events.contains_key(key))
        });
        let mut before = std::mem::take(&mut self.events);
        for schema in catalog.schemas.values() {
            for (key, event) in schema.events.iter().filter(|(_, event)| event.status == EventStatus::Enabled)
            {
                let key = (schema.name.clone(), key.clone());
                let known = before.remove(&key);
                let scheduled = match known {
                    Some(known) if !self.begins && Arc::ptr_eq(&known.event, event) => known,
                    known => {
                        // One at one time that has run is disabled, unless it was enabled again.
                        let is_repeated = matches!(event.schedule, EventSchedule::Every { .. });
                        let last = db.event_runs.last(event).filter(|_| is_repeated);
                        let next = next_run(&event.schedule, &zone(event), last, now);
                        let runs = known.map_or_else(Arc::default, |known| known.runs);
                        Scheduled { event: Arc::clone(event), next, runs, is_noted: false }
                    }
                };
                self.events.insert(key, scheduled);
            }
        }
        self.begins = false;
    }

    /// Starts the run of an event that is due, unless too many runs have not ended.
    fn start(&mut self, db: &Arc<Database>, name: &EventName, now: i64) {
        let Some(scheduled) = self.events.get_mut(name) else { return };
        let event = &scheduled.event;
        let (of_event, of_all) = (scheduled.runs.load(Ordering::Acquire), self.runs.load(Ordering::Acquire));
        if of_event >= RUNS_OF_EVENT_MAX || of_all >= RUNS_MAX {
            if !std::mem::replace(&mut scheduled.is_noted, true) {
                self.log.warning(format_args!(
                    "Event Scheduler: [{}.{}] is due and waits: {of_event} runs of it and {of_all} of all events have not ended",
                    event.schema, event.name
                ));
            }
            return;
        }
        let next = next_run(&event.schedule, &zone(event), Some(now), now);
        let run =
            EventRun { event: Arc::clone(event), id: (self.next_id)(), at: now, is_last: next.is_none() };
        let (db, log, postponed) = (Arc::clone(db), self.log.clone(), self.postponed.0.clone());
        let counted = [&self.runs, &scheduled.runs].map(Running::count);
        let name = name.clone();
        let body = move || {
            let _counted = counted;
            let event = &run.event;
            let outcome = run_event(&db, &run);
            for condition in outcome.conditions {
                let (user, host) = &event.definer;
                let text = format!(
                    "Event Scheduler: [{user}@{host}][{}.{}] {}",
                    event.schema, event.name, condition.error.message
                );
                match condition.level {
                    Level::Error => log.error(format_args!("{text}")),
                    Level::Warning => log.warning(format_args!("{text}")),
                    Level::Note => log.note(format_args!("{text}")),
                }
            }
            if !outcome.has_begun {
                // The scheduler may have ended.
                let _ = postponed.send((name, Arc::clone(event)));
            }
        };
        match Builder::new().name("event".into()).stack_size(self.stack_bytes).spawn(body) {
            Ok(_) => {
                scheduled.next = next;
                scheduled.is_noted &= of_event >= RUNS_OF_EVENT_MAX / 2;
            }
            Err(error) => self.log.error(format_args!("Event Scheduler: no thread for an event: {error}")),
        }
    }
}

/// A run, counted until it is dropped.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn count(runs: &Arc<AtomicUsize>) -> Running {
        runs.fetch_add(1, Ordering::AcqRel);
        Running(Arc::clone(runs))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn zone(event: &Event) -> TimeZone {
    TimeZone::parse(&event.time_zone).unwrap_or(TimeZone::Offset(0))
}
