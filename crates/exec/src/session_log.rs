//! Statement logging of a session: general log and slow log ([`StatementLog`]), audit log, SHOW PROFILES.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use cohort_config::{Counter, VarId};
use cohort_run::PlanProfile;
use cohort_session::{
    ConnectionEvent, LOG_NOWHERE, LOG_TO_FILE, LOG_TO_TABLE, StatementLog, append_statement, short_time,
    shown,
};
use cohort_sql::message_without_secrets;
use cohort_types::{Time, Value};

use crate::cached_plan::Planned;
use crate::session::Session;
use crate::slow_plan::{Verbosity, plan_lines};
use crate::work::{PlanNotes, Work};

/// Measurements of a running statement, for the slow log.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    began_us: u64,
    rows_read: u64,
    /// True if SHOW PROFILES will list the statement.
    profiled: bool,
    /// True if the audit log will contain the statement.
    audited: bool,
}

impl Session {
    /// Begins the measurements of a statement at the last clock reading, and writes it to the general log.
    pub(crate) fn watch(&mut self, command: &str, text: &[u8]) -> Watch {
        self.work = Work::default();
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general(command, text);
        }
        let profiled = self.state.settings.vars.flag(VarId::Profiling);
        if self.verbosity().is_about_plans() && self.has_slow_log() {
            self.state.statement.measure(Some(Arc::default()));
            self.plan_notes = PlanNotes { began_us: self.clock_us, lines: String::new() };
        }
        let audited = self.state.audit_begins();
        Watch { began_us: self.clock_us, rows_read: self.rows_read(), profiled, audited }
    }

    fn verbosity(&self) -> Verbosity {
        Verbosity(self.state.settings.vars.uint(VarId::LogSlowVerbosity))
    }

    fn has_slow_log(&self) -> bool {
        self.state.db.globals.flag(VarId::SlowQueryLog) && self.state.settings.vars.flag(VarId::SlowQueryLog)
    }

    /// Returns true if a statement with this duration belongs in the slow log.
    fn is_slow(&self, took_us: u64) -> bool {
        let vars = &self.state.settings.vars;
        took_us as f64 > vars.double(VarId::LongQueryTime) * 1e6
            || self.state.statement.reads_whole_table.get() && vars.flag(VarId::LogQueriesNotUsingIndexes)
    }

    /// Formats the slow-log lines about a plan that has run within the statement, if it was slow.
    pub(crate) fn note_plan(&mut self, plan: &Planned, profile: &PlanProfile) {
        let took_us = self.state.db.clock.wall_us().saturating_sub(self.plan_notes.began_us);
        if self.is_slow(took_us) {
            self.plan_notes.lines = plan_lines(plan, profile, &self.verbosity());
        }
    }

    /// Ends the measurements of a statement, reads the clock and writes the slow log and the audit log.
    /// `params` are the values of a prepared statement and their positions in its text.
    pub(crate) fn watched(&mut self, watch: Watch, text: &[u8], params: (&[u32], &[Value])) {
        // A statement that enables the audit log is logged, too.
        if watch.audited || self.state.audit_begins() {
            self.audit_statement(text, params);
        }
        self.look_at_clock();
        let took_us = self.clock_us.saturating_sub(watch.began_us);
        let notes = match self.state.statement.measure(None) {
            Some(_) => std::mem::take(&mut self.plan_notes).lines,
            None => String::new(),
        };
        if !self.is_slow(took_us) {
            return;
        }
        let db = &self.state.db;
        db.status.count(Counter::SlowQueries);
        if !self.has_slow_log() {
            return;
        }
        let rows_read = self.rows_read().saturating_sub(watch.rows_read);
        let text = self.expanded(text, params);
        self.log_slow(&Slow { watch, took_us, rows_read, text: &text, notes: &notes });
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
        if !self.state.settings.vars.flag(VarId::SqlLogOff) {
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

    fn log_slow(&self, slow: &Slow<'_>) {
        let db = &self.state.db;
        let output = db.globals.uint(VarId::LogOutput);
        if output & LOG_NOWHERE != 0 {
            return;
        }
        let text = shown(slow.text, self.state.settings.parse.mode);
        if output & LOG_TO_FILE != 0
            && let Some(files) = db.log_files.read().as_ref()
        {
            files.append(StatementLog::Slow, self.slow_entry(slow, &text).as_bytes());
        }
        if output & LOG_TO_TABLE != 0 {
            let bytes = text.len();
            let env = &self.state.settings.env;
            let row = vec![
                Value::Timestamp(slow.watch.began_us as i64),
                Value::text(self.user_host()),
                Value::Time(Time { micros: slow.took_us.min(Time::MAX.micros as u64) as i64 }),
                Value::Time(Time { micros: 0 }),
                Value::UInt(self.work.rows_sent),
                Value::UInt(slow.rows_read),
                Value::text(self.state.current_schema.as_deref().unwrap_or("")),
                Value::Int(env.last_insert_id.min(i32::MAX as u64) as i64),
                Value::Int(0),
                Value::UInt(db.globals.uint(VarId::ServerId)),
                Value::text(&*text),
                Value::UInt(self.state.info.id.0),
                Value::UInt(self.work.rows_affected),
            ];
            db.log_rows.push(StatementLog::Slow, row, bytes);
        }
    }

    fn slow_entry(&self, slow: &Slow<'_>, text: &str) -> String {
        let schema = self.state.current_schema.as_deref().unwrap_or("");
        let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let mut entry = String::new();
        let _ = writeln!(entry, "# Time: {}", short_time(slow.watch.began_us + slow.took_us));
        let _ = writeln!(entry, "# User@Host: {}", self.user_host());
        let _ = writeln!(entry, "# Thread_id: {}  Schema: {schema}  QC_hit: No", self.state.info.id.0);
        let _ = writeln!(
            entry,
            "# Query_time: {}  Lock_time: 0.000000  Rows_sent: {}  Rows_examined: {}",
            seconds(slow.took_us),
            self.work.rows_sent,
            slow.rows_read
        );
        let _ = writeln!(entry, "# Rows_affected: {}  Bytes_sent: 0", self.work.rows_affected);
        entry.push_str(slow.notes);
        if self.verbosity().logs_warnings() {
            self.append_warnings(slow.text, &mut entry);
        }
        if !schema.is_empty() {
            let _ = writeln!(entry, "use {};", cohort_sql::print::quoted_name(schema));
        }
        let _ = writeln!(entry, "SET timestamp={};", slow.watch.began_us / 1_000_000);
        let _ = writeln!(entry, "{text};");
        entry
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

    fn rows_read(&self) -> u64 {
        self.process.counts().reads()
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
        if self.state.identity.is_applier {
            return;
        }
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general("Quit", b"");
        }
        self.state.audit_connection(ConnectionEvent::Disconnect, 0);
    }
}

/// Contents of a slow-log entry.
struct Slow<'t> {
    watch: Watch,
    took_us: u64,
    rows_read: u64,
    text: &'t [u8],
    /// Lines about the plan.
    notes: &'t str,
}
