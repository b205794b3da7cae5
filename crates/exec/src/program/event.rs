//! The runs of events.
//!
//! An event runs in a session of its own, as its definer, in its time zone and with its settings, like a
//! procedure without parameters. Its last run disables it before the body begins, so that it does not run
//! again after a crash, and drops it afterwards unless it has ON COMPLETION PRESERVE. The drop is logged, the
//! disabling is not. As in MariaDB the drop commits a transaction that the body has left open.

use std::sync::Arc;

use cohort_base::ConnectionId;
use cohort_catalog::{Event, Routine};
use cohort_config::{Counter, VarId, VarValue};
use cohort_program::ProgramKind;
use cohort_protocol::NullSink;
use cohort_session::access;
use cohort_session::{
    Command, ConnectionInfo, Database, EventRuns, Job, Origin, Process, ProcessIdentity, StatementContext,
};
use cohort_sql::print::quoted_name;
use cohort_types::{Collation, DataAccess, Level, Privilege, RoutineKind, SqlError, SqlResult, Warning};

use super::cache::Compiled;
use super::routines::compiled_routine;
use crate::session::Session;

/// A run that is due.
pub struct EventRun {
    pub event: Arc<Event>,
    /// Id of its connection.
    pub id: ConnectionId,
    /// When it begins, in seconds since 1970 UTC.
    pub at: i64,
    /// The event will not run again.
    pub is_last: bool,
}

/// Outcome of a run.
pub struct EventOutcome {
    /// If not, the event could not be disabled before its last run, and the run is due as before.
    pub has_begun: bool,
    /// The conditions that the body has left, the error last.
    pub conditions: Vec<Warning>,
}

/// Runs an event.
pub fn run_event(db: &Arc<Database>, run: &EventRun) -> EventOutcome {
    let EventRun { event, id, at, is_last } = run;
    let (id, is_dropped) = (*id, *is_last && !event.preserve);
    let by_server = |work: &mut dyn FnMut(&mut Session) -> SqlResult<()>| {
        EventSession::open(db, event, id, Origin::Server).and_then(|mut session| work(&mut session.0))
    };
    let mut conditions = Vec::new();
    let mut add = |level, error| conditions.push(Warning { level, error });
    if *is_last && let Err(error) = by_server(&mut |session| session.disable_event(event)) {
        add(Level::Error, error);
        return EventOutcome { has_begun: false, conditions };
    }
    db.event_runs.note(event, *at);
    db.status.count(Counter::ExecutedEvents);
    if !is_dropped && let Err(error) = by_server(&mut |session| session.keep_event_run(event, *at)) {
        add(Level::Warning, error);
    }
    let ran = EventSession::open(db, event, id, Origin::Client).and_then(|mut session| {
        let ran = session.0.run_event(event);
        if is_dropped {
            session.0.run_text(b"COMMIT", false, &mut NullSink);
        }
        ran
    });
    match ran {
        Ok(raised) => conditions.extend(raised),
        Err(error) => add(Level::Error, error),
    }
    if is_dropped {
        let name = format!("{}.{}", quoted_name(&event.schema), quoted_name(&event.name));
        let text = format!("DROP EVENT IF EXISTS {name}");
        let dropped = by_server(&mut |session| {
            session.run_text(b"SET SESSION transaction_read_only = 0", false, &mut NullSink);
            session.run_text(text.as_bytes(), false, &mut NullSink);
            Ok(())
        });
        if let Err(error) = dropped {
            conditions.push(Warning { level: Level::Error, error });
        }
    }
    EventOutcome { has_begun: true, conditions }
}

/// A session for an event. Dropping it removes its row from the process list.
struct EventSession(Session);

impl EventSession {
    /// Opens a session of the definer, or of the server. Error 1449 if the definer does not exist.
    fn open(db: &Arc<Database>, event: &Event, id: ConnectionId, origin: Origin) -> SqlResult<EventSession> {
        let (user, host) = &event.definer;
        if origin == Origin::Client && !db.catalog().accounts.contains_key(&event.definer) {
            return Err(SqlError::unknown_definer(user, host));
        }
        let identity = ProcessIdentity {
            user: user.clone(),
            account: Some(user.clone()),
            host: "localhost".to_owned(),
            schema: Some(event.schema.clone()),
        };
        let process: Arc<Process> = db.processes.register(id, identity, db.clock.wall_us());
        let info = ConnectionInfo {
            id,
            user: user.clone(),
            host: host.clone(),
            account: event.definer.clone(),
            schema: Some(event.schema.clone()),
            collation: Collation::UTF8MB4_GENERAL_CI,
            multi_statements: false,
            found_rows: false,
            encryption: None,
            is_local: true,
        };
        let session = Session::with_origin(Arc::clone(db), info, process, origin);
        session.map(EventSession).inspect_err(|_| db.processes.remove(id))
    }
}

impl Drop for EventSession {
    fn drop(&mut self) {
        let (db, process) = (Arc::clone(self.0.database()), Arc::clone(self.0.process()));
        db.processes.remove(process.id());
    }
}

impl Session {
    /// Runs the body. Returns the conditions that it has left.
    fn run_event(&mut self, event: &Event) -> SqlResult<Vec<Warning>> {
        access::check_schema(&self.state, Privilege::Event, &event.schema)?;
        self.begin_process(Command::Connect, event.body.as_bytes());
        self.begin_command();
        self.diagnostics.clear();
        self.programs.is_event = true;
        self.state.settings.vars.put(VarId::TimeZone, &VarValue::text(&event.time_zone));
        self.state.refresh();
        let routine = routine_of(event);
        let compiled = compiled_routine(&routine).map(|mut program| {
            // Lines are those of the body.
            (program.kind, program.first_line) = (ProgramKind::Event, 1);
            Compiled::new(program)
        });
        let outcome = compiled.and_then(|compiled| {
            self.run_program(&mut NullSink, |session, sink| {
                session.run_as(&routine, &compiled, Vec::new(), sink)
            })
        });
        if let Err(error) = outcome {
            self.diagnostics.set_error(&error);
        }
        self.look_at_clock();
        self.end_process();
        Ok(self.diagnostics.list().to_vec())
    }

    /// Disables an event that is unchanged.
    fn disable_event(&mut self, event: &Event) -> SqlResult<()> {
        self.alone(|ctx| cohort_ddl::disable_event(ctx, event))
    }

    /// Stores when the event runs.
    fn keep_event_run(&mut self, event: &Event, at: i64) -> SqlResult<()> {
        self.alone(|ctx| ctx.trx.keep_event_run(&EventRuns::stored_name(event), at))
    }

    fn alone<T>(&mut self, work: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<T>) -> SqlResult<T> {
        let job = Job {
            text: b"",
            param_at: &[],
            params: &[],
            source: cohort_plan::ParamSource::Placeholders,
            more: false,
        };
        self.with_context(&job, work)
    }
}

/// Returns the event as a procedure of its definer.
fn routine_of(event: &Event) -> Routine {
    Routine {
        schema: event.schema.clone(),
        name: event.name.clone(),
        kind: RoutineKind::Procedure,
        aggregate: false,
        parameters: String::new(),
        returns: String::new(),
        body: event.body.clone(),
        deterministic: false,
        access: DataAccess::ContainsSql,
        by_invoker: true,
        comment: String::new(),
        definer: event.definer.clone(),
        settings: event.settings,
        created_at: event.created_at,
        modified_at: event.modified_at,
    }
}
