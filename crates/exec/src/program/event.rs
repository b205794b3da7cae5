//! The runs of events.
//!
//! An event runs in a session of its own, as its definer and with its settings, like a procedure without
//! parameters. Its last run disables it before the body begins, so that it does not run again after a crash,
//! and drops it afterwards unless it has ON COMPLETION PRESERVE. The drop is logged, the disabling is not.

use std::sync::Arc;

use cohort_base::ConnectionId;
use cohort_catalog::{Event, Routine};
use cohort_plan::ParamSource;
use cohort_protocol::NullSink;
use cohort_session::access;
use cohort_session::{
    Command, ConnectionInfo, Database, Job, Origin, Process, ProcessIdentity, event_run_key,
};
use cohort_sql::print::quoted_name;
use cohort_types::{Collation, DataAccess, Privilege, RoutineKind, SqlError, SqlResult, Warning};

use super::cache::Compiled;
use super::routines::compiled_routine;
use crate::session::Session;

/// What the server does with an event itself.
const JOB: Job<'static> =
    Job { text: b"", param_at: &[], params: &[], source: ParamSource::Placeholders, more: false };

/// Reads the times of the last runs of all events. `id` is that of a connection for this.
pub fn load_event_runs(db: &Arc<Database>, id: ConnectionId) -> SqlResult<()> {
    let catalog = db.catalog();
    let mut events = catalog.schemas.values().flat_map(|schema| schema.events.values()).peekable();
    let Some(first) = events.peek() else { return Ok(()) };
    let mut session = EventSession::open(db, first, id, Origin::Server)?;
    session.0.with_context(&JOB, |ctx| {
        for event in events {
            if let Some(last) = ctx.trx.event_run(&event_run_key(event))? {
                db.event_runs.note(event, last);
            }
        }
        Ok(())
    })
}

/// Runs an event, which is due `now`. Returns the conditions that its body has left, the error last. `is_last` says that it will
/// not run again.
pub fn run_event(
    db: &Arc<Database>,
    event: &Event,
    id: ConnectionId,
    (now, is_last): (i64, bool),
) -> Vec<Warning> {
    let mut conditions = Vec::new();
    let mut add = |outcome: SqlResult<Vec<Warning>>| match outcome {
        Ok(raised) => conditions.extend(raised),
        Err(error) => conditions.push(Warning { level: cohort_types::Level::Error, error }),
    };
    if is_last {
        let disabled = EventSession::open(db, event, id, Origin::Server)
            .and_then(|mut session| session.0.disable_event(event));
        if let Err(error) = disabled {
            add(Err(error));
            return conditions;
        }
    }
    db.event_runs.note(event, now);
    let noted = EventSession::open(db, event, id, Origin::Server)
        .and_then(|mut session| session.0.note_event_run(event, now));
    if let Err(error) = noted {
        add(Err(error));
    }
    add(EventSession::open(db, event, id, Origin::Client).and_then(|mut session| session.0.run_event(event)));
    if is_last && !event.preserve {
        let name = format!("{}.{}", quoted_name(&event.schema), quoted_name(&event.name));
        let text = format!("DROP EVENT IF EXISTS {name}");
        add(EventSession::open(db, event, id, Origin::Server).map(|mut session| {
            session.0.run_text(text.as_bytes(), false, &mut NullSink);
            Vec::new()
        }));
    }
    conditions
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
        let routine = routine_of(event);
        let outcome = compiled_routine(&routine).map(Compiled::new).and_then(|compiled| {
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

    /// Stores the time of a run.
    fn note_event_run(&mut self, event: &Event, now: i64) -> SqlResult<()> {
        self.with_context(&JOB, |ctx| ctx.trx.put_event_run(&event_run_key(event), now))
    }

    /// Disables an event that is unchanged.
    fn disable_event(&mut self, event: &Event) -> SqlResult<()> {
        self.with_context(&JOB, |ctx| cohort_ddl::disable_event(ctx, event))
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
