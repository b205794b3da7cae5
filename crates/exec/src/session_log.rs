//! Statement logging of a session: general log and slow log ([`StatementLog`]), audit log, SHOW PROFILES.

use std::borrow::Cow;
use std::fmt::Write;

use cohort_base::EngineWork;
use cohort_config::{Counter, VarId};
use cohort_protocol::ResultSink;
use cohort_run::PlanProfile;
use cohort_session::{
    ConnectionEvent, LOG_NOWHERE, LOG_TO_FILE, LOG_TO_TABLE, StatementLog, append_statement, shown,
};
use cohort_sql::message_without_secrets;
use cohort_trx::Counted;
use cohort_types::{Time, Value};

use crate::cached_plan::Planned;
use crate::frame::Ended;
use crate::log_settings::LogSettings;
use crate::session::Session;
use crate::slow_plan::{PlanNumbers, Verbosity, plan_lines, reads_ns};
use crate::work::{SlowEntry, SlowNotes, seconds};

/// Measurements of a running statement, for the slow log.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    began_us: u64,
    /// True if SHOW PROFILES will list the statement.
    profiled: bool,
    /// True if the audit log will contain the statement.
    audited: bool,
    /// Bytes of the replies to the statements before it, of the same command.
    pub replied: u64,
}

impl Session {
    /// Returns the settings that every statement needs, for the logs.
    #[inline]
    pub(crate) fn log_settings(&mut self) -> &LogSettings {
        if self.log_settings.version != self.state.settings.vars.version() {
            self.read_log_settings();
        }
        &self.log_settings
    }

    #[cold]
    fn read_log_settings(&mut self) {
        let vars = &self.state.settings.vars;
        self.log_settings = LogSettings {
            version: vars.version(),
            traces: vars.flag(VarId::CohortTrace),
            profiles: vars.flag(VarId::Profiling),
            measures: self.verbosity().measures(),
            slow_us: (vars.double(VarId::LongQueryTime) * 1e6) as u64,
        };
    }

    /// Begins the measurements of a statement at the last clock reading, and writes it to the general log.
    pub(crate) fn watch(&mut self, command: &str, text: &[u8]) -> Watch {
        self.begin_frame();
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general(command, text);
        }
        let LogSettings { profiles: profiled, measures, .. } = *self.log_settings();
        if measures && self.has_slow_log() {
            self.begin_slow_notes();
        }
        let audited = self.state.audit_begins();
        Watch { began_us: self.clock_us, profiled, audited, replied: 0 }
    }

    /// Begins to measure what `log_slow_verbosity` asks for.
    #[cold]
    fn begin_slow_notes(&mut self) {
        self.state.statement.times_plans.set(true);
        let is_about_engines = self.verbosity().is_about_engines();
        let engine = is_about_engines.then(|| {
            self.begin_stages();
            EngineWork::here()
        });
        let notes = SlowNotes { began_us: self.clock_us, engine, ..SlowNotes::default() };
        self.slow_notes = Some(Box::new(notes));
    }

    fn verbosity(&self) -> Verbosity {
        Verbosity(self.state.settings.vars.uint(VarId::LogSlowVerbosity))
    }

    fn has_slow_log(&self) -> bool {
        self.state.db.globals.flag(VarId::SlowQueryLog) && self.state.settings.vars.flag(VarId::SlowQueryLog)
    }

    /// Returns true if a statement with this duration belongs in the slow log.
    fn is_slow(&mut self, took_us: u64) -> bool {
        took_us > self.log_settings().slow_us || self.reads_unindexed()
    }

    /// Returns true if the running statement belongs in the slow log because it reads a whole table.
    fn reads_unindexed(&self) -> bool {
        let vars = &self.state.settings.vars;
        self.state.statement.reads_whole_table.get() && vars.flag(VarId::LogQueriesNotUsingIndexes)
    }

    /// Formats the slow-log lines about a plan that has run within the statement, if it was slow.
    pub(crate) fn note_plan(&mut self, plan: &Planned, profile: &PlanProfile) {
        let Some(notes) = &self.slow_notes else { return };
        let took_us = self.state.db.clock.wall_us().saturating_sub(notes.began_us);
        // A held statement may become slow.
        if !self.is_slow(took_us) && self.trx.hold_until() <= self.state.db.commit.acknowledged() {
            return;
        }
        let mut numbers = PlanNumbers::default();
        let mut now = self.plan_counts;
        if let Some(before) = now.update(self.process.counts()) {
            for (counter, n) in now.since(&before) {
                match counter {
                    Counted::CreatedTmpTables => numbers.tmp_tables = n,
                    Counted::CreatedTmpDiskTables => numbers.tmp_disk_tables = n,
                    Counted::SortMergePasses => numbers.merge_passes = n,
                    _ => {}
                }
            }
        }
        let (lines, reads_ns) =
            (plan_lines(plan, profile, &numbers, &self.verbosity()), reads_ns(plan, profile));
        if let Some(notes) = &mut self.slow_notes {
            (notes.plan, notes.reads_ns) = (lines, reads_ns);
        }
    }

    /// Ends the measurements of a statement, reads the clock and writes the slow log and the audit log.
    /// `params` are the values of a prepared statement and their positions in its text.
    pub(crate) fn watched(
        &mut self,
        watch: Watch,
        text: &[u8],
        params: (&[u32], &[Value]),
        sink: &dyn ResultSink,
    ) {
        // A statement that enables the audit log is logged, too.
        if watch.audited || self.state.audit_begins() {
            self.audit_statement(text, params);
        }
        let ended = self.end_frame(text);
        let notes = self.slow_notes.take();
        if notes.is_some() {
            self.state.statement.times_plans.set(false);
            self.state.statement.measure(None);
        }
        if !ended.is_held && !self.is_slow(ended.took_us) {
            return;
        }
        let mut entry = self.has_slow_log().then(|| {
            let text = self.expanded(text, params);
            let bytes = sink.bytes().saturating_sub(watch.replied);
            self.slow_entry(&Slow { watch, ended: &ended, text: &text, bytes, notes: notes.as_deref() })
        });
        if ended.is_held {
            let is_slow = self.reads_unindexed();
            self.hold_slow(is_slow, entry);
            return;
        }
        self.state.db.status.count(Counter::SlowQueries);
        if let Some(entry) = &mut entry
            && entry.has_steps
        {
            entry.add_steps(&self.trx.client().trace.steps());
        }
        if let Some(entry) = entry {
            self.write_slow(entry, ended.took_us);
        }
    }

    /// Writes the entries of the slow log for statements whose replies were held.
    #[inline]
    pub fn write_held_entries(&mut self) {
        if !self.slow_entries.is_empty() {
            self.write_entries();
        }
    }

    fn write_entries(&mut self) {
        for (entry, took_us) in std::mem::take(&mut self.slow_entries) {
            self.write_slow(entry, took_us);
        }
    }

    /// Writes the statement to the audit log. As in MariaDB, values of a prepared statement are in its text
    /// only if another log contains them, too.
    fn audit_statement(&mut self, text: &[u8], params: (&[u32], &[Value])) {
        let executed = self.executed_text.take();
        let text = executed.as_deref().unwrap_or(text);
        let is_logged = self.state.db.globals.flag(VarId::GeneralLog)
            || (self.trx.settings.binlog.on
                && cohort_sql::changes_rows(text, self.state.settings.parse.mode));
        let text = if is_logged { self.expanded(text, params) } else { Cow::Borrowed(text) };
        self.state.audit_ended(&text, self.work.error);
    }

    /// Stores the statement for SHOW PROFILES, with `text` as the client sent it, including statements that
    /// follow.
    pub(crate) fn profiled(&self, watch: Watch, text: &[u8]) {
        if watch.profiled && self.state.settings.vars.flag(VarId::Profiling) && !is_about_profiles(text) {
            let took_us = self.state.db.clock.wall_us().saturating_sub(watch.began_us);
            let most = self.state.settings.vars.uint(VarId::ProfilingHistorySize) as usize;
            self.state.log.profiles.borrow_mut().note(text.trim_ascii(), took_us, most);
        }
    }

    /// Writes a command to the general log, unless `sql_log_off` is set.
    pub(crate) fn log_general(&self, command: &str, text: &[u8]) {
        if !self.state.settings.vars.flag(VarId::SqlLogOff) && !self.state.identity.is_setup {
            self.state.db.log_general(
                (self.state.info.id, &self.user_host()),
                command,
                &shown(text, self.state.settings.parse.mode),
            );
        }
    }

    /// Logs a new connection, or a change of its user.
    pub(crate) fn log_connect(&self, command: &str) {
        let info = &self.state.info;
        let schema = info.schema.as_deref().unwrap_or("");
        let over = match &info.encryption {
            Some(_) => "SSL/TLS",
            None if info.is_local => "Socket",
            None => "TCP/IP",
        };
        let text = format!("{}@{} on {schema} using {over}", info.user, info.host);
        self.log_general(command, text.as_bytes());
    }

    /// Writes an entry of the slow log.
    fn write_slow(&self, entry: SlowEntry, took_us: u64) {
        let db = &self.state.db;
        let output = db.globals.uint(VarId::LogOutput);
        if output & LOG_NOWHERE != 0 {
            return;
        }
        if output & LOG_TO_FILE != 0
            && let Some(files) = db.log_files.read().as_ref()
        {
            files.append(StatementLog::Slow, entry.lines(took_us).as_bytes());
        }
        if output & LOG_TO_TABLE != 0 {
            let mut row = entry.row;
            row[QUERY_TIME] = Value::Time(Time { micros: took_us.min(Time::MAX.micros as u64) as i64 });
            db.log_rows.push(StatementLog::Slow, row, entry.text_bytes);
        }
    }

    /// Returns the entry of the statement that has ended, without its duration.
    fn slow_entry(&self, slow: &Slow<'_>) -> SlowEntry {
        let (db, work) = (&self.state.db, &self.work);
        let text = shown(slow.text, self.state.settings.parse.mode);
        let schema = self.state.current_schema.as_deref().unwrap_or("");
        let head = format!(
            "# User@Host: {}\n# Thread_id: {}  Schema: {schema}  QC_hit: No\n",
            self.user_host(),
            self.state.info.id.0
        );
        let mut tail = String::new();
        let _ = writeln!(
            tail,
            "  Lock_time: {}  Rows_sent: {}  Rows_examined: {}\n# Rows_affected: {}  Bytes_sent: {}",
            seconds(slow.ended.lock_wait_us),
            work.rows_sent,
            slow.ended.rows_read,
            work.rows_affected,
            slow.bytes
        );
        let steps_at = tail.len();
        if let Some(notes) = slow.notes {
            tail.push_str(&notes.lines());
        }
        if self.verbosity().logs_warnings() {
            self.append_warnings(slow.text, &mut tail);
        }
        if !schema.is_empty() {
            let _ = writeln!(tail, "use {};", cohort_sql::print::quoted_name(schema));
        }
        let _ = writeln!(tail, "SET timestamp={};\n{text};", slow.watch.began_us / 1_000_000);
        let env = &self.state.settings.env;
        let row = vec![
            Value::Timestamp(slow.watch.began_us as i64),
            Value::text(self.user_host()),
            Value::Time(Time { micros: 0 }),
            Value::Time(Time { micros: slow.ended.lock_wait_us.min(Time::MAX.micros as u64) as i64 }),
            Value::UInt(work.rows_sent),
            Value::UInt(slow.ended.rows_read),
            Value::text(schema),
            Value::Int(env.last_insert_id.min(i32::MAX as u64) as i64),
            Value::Int(0),
            Value::UInt(db.globals.uint(VarId::ServerId)),
            Value::text(&*text),
            Value::UInt(self.state.info.id.0),
            Value::UInt(work.rows_affected),
        ];
        let has_steps = slow.notes.is_some_and(|notes| notes.engine.is_some());
        let began_us = slow.watch.began_us;
        SlowEntry { began_us, head, tail, steps_at, row, text_bytes: text.len(), has_steps }
    }

    fn append_warnings(&self, text: &[u8], entry: &mut String) {
        let most = self.state.settings.vars.uint(VarId::LogSlowMaxWarnings) as usize;
        for (n, warning) in self.diagnostics.list().iter().take(most).enumerate() {
            let head = if n == 0 { "# Warnings\n" } else { "" };
            let error = &warning.error;
            let message = message_without_secrets(&error.message, text, Some(self.state.settings.parse.mode));
            let _ = writeln!(entry, "{head}# {} {} {message}", warning.level.name(), error.number());
        }
    }

    /// Returns `user[account] @ host []`.
    fn user_host(&self) -> String {
        let info = &self.state.info;
        format!("{}[{}] @ {} []", info.user, info.account.0, info.host)
    }

    fn expanded<'t>(&self, text: &'t [u8], (param_at, params): (&[u32], &[Value])) -> Cow<'t, [u8]> {
        if param_at.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::new();
        append_statement(&mut out, text, param_at, params, self.state.settings.env.sql_mode);
        Cow::Owned(out)
    }

    /// Writes a statement that another statement runs to the general log.
    pub(crate) fn log_inner(&self, command: &str, text: &[u8], params: (&[u32], &[Value])) {
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general(command, &self.expanded(text, params));
        }
    }

    /// Begins the measurements of a prepared statement and writes it with its values to the general log.
    pub(crate) fn watch_execute(&mut self, text: &[u8], params: (&[u32], &[Value])) -> Watch {
        match self.state.db.globals.flag(VarId::GeneralLog) {
            true => {
                let text = self.expanded(text, params);
                self.watch("Execute", &text)
            }
            false => self.watch("Execute", text),
        }
    }
}

/// Returns true for SHOW PROFILES and SHOW PROFILE, which do not list themselves.
fn is_about_profiles(text: &[u8]) -> bool {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut next = || words.next().unwrap_or_default().trim_ascii_end();
    next().eq_ignore_ascii_case(b"SHOW") && next().to_ascii_uppercase().starts_with(b"PROFILE")
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end_frames();
        self.write_held_entries();
        if self.state.identity.is_applier {
            return;
        }
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general("Quit", b"");
        }
        self.state.audit_connection(ConnectionEvent::Disconnect, 0);
    }
}

/// Column of the duration in `mysql.slow_log`.
const QUERY_TIME: usize = 2;

/// Contents of a slow-log entry.
struct Slow<'t> {
    watch: Watch,
    ended: &'t Ended,
    text: &'t [u8],
    /// Bytes of its reply.
    bytes: u64,
    notes: Option<&'t SlowNotes>,
}
