//! The slow query log and the general log.
//!
//! # Concepts
//! - The *general log* tells each statement before it runs, and who connects and leaves.
//! - The *slow log* tells a statement after it ran, when it took longer than `long_query_time` or read a
//!   whole table under `log_queries_not_using_indexes`.
//! - With `log_slow_verbosity` statements are measured ([`cohort_run::Measures`]), and the entry of a slow
//!   one tells its plan.
//! - `log_output` says where they go: files, in MariaDB's form, which the server around writes
//!   ([`LogFiles`]); and the tables `mysql.general_log` and `mysql.slow_log`, which hold the newest entries
//!   in memory.
//! - Texts that speak of passwords are logged without any of their string literals ([`without_secrets`]):
//!   rather too little is shown than a secret.
//!
//! # On failure
//! A file that cannot be written is told in the error log and left alone until FLUSH LOGS or a new file name;
//! statements go on.
//!
//! # Missing
//! Entries of the tables end with the server. Commands of the protocol that run no statement and open none
//! (COM_STATISTICS, COM_REFRESH) are not told.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_base::ConnectionId;
use cohort_config::{Counter, VarId};
use cohort_expr::TimeZone;
use cohort_run::Measures;
use cohort_types::{DateTime, SqlError, Time, Value};
use parking_lot::Mutex;

use crate::audit::ConnectionEvent;
use crate::database::Database;
use crate::dispatch::Planned;
use crate::select::{Verbosity, plan_lines};
use crate::session::Session;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementLog {
    General,
    Slow,
}

/// The files of both logs, and that of errors; the server around the database has them.
pub trait LogFiles: Send + Sync {
    /// Appends whole lines.
    fn append(&self, log: StatementLog, lines: &[u8]);

    /// The file was moved away, or has another name now.
    fn reopen(&self, log: StatementLog);

    /// The error log was moved away.
    fn reopen_errors(&self) -> io::Result<()>;
}

/// The tables of both logs.
#[derive(Default)]
pub struct LogRows {
    general: Mutex<Ring>,
    slow: Mutex<Ring>,
    /// The second that the general log's last line told.
    told_second: AtomicU64,
}

/// Of each table.
const RING_BYTES_MAX: usize = 4 << 20;
/// Of a statement's text.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The newest rows.
#[derive(Default)]
struct Ring {
    rows: VecDeque<(Vec<Value>, usize)>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, row: Vec<Value>, bytes: usize) {
        let bytes = bytes + row.len() * size_of::<Value>();
        self.bytes += bytes;
        self.rows.push_back((row, bytes));
        while self.bytes > RING_BYTES_MAX && self.rows.len() > 1 {
            let (_, gone) = self.rows.pop_front().expect("more than one");
            self.bytes -= gone;
        }
    }
}

impl LogRows {
    /// The rows of a table, oldest first.
    pub(crate) fn rows(&self, log: StatementLog) -> Vec<Vec<Value>> {
        self.ring(log).lock().rows.iter().map(|(row, _)| row.clone()).collect()
    }

    /// TRUNCATE of a table.
    pub(crate) fn clear(&self, log: StatementLog) {
        *self.ring(log).lock() = Ring::default();
    }

    fn ring(&self, log: StatementLog) -> &Mutex<Ring> {
        match log {
            StatementLog::General => &self.general,
            StatementLog::Slow => &self.slow,
        }
    }
}

/// A statement under way, as the slow log will judge it.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    began_us: u64,
    rows_read: u64,
    /// SHOW PROFILES will tell of it.
    profiled: bool,
    /// So will the audit log.
    audited: bool,
}

/// What a statement under way will have to say about its plan.
#[derive(Default)]
pub(crate) struct PlanNotes {
    began_us: u64,
    /// Lines of its entry, once the plan has run and was slow.
    lines: String,
}

/// What logs tell of a statement besides its text.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) rows_sent: u64,
    pub(crate) rows_affected: u64,
    /// The error that it ended with; 0: none.
    pub(crate) error: u16,
}

/// Bits of `log_output`.
const FILE: u64 = 2;
const TABLE: u64 = 4;
const NONE: u64 = 1;

impl Database {
    /// Tells the general log of somebody who was not let in.
    pub fn log_refused(&self, id: ConnectionId, (user, host): (&str, &str), error: &SqlError) {
        if self.globals.flag(VarId::GeneralLog) {
            let user_host = format!("{user}[{user}] @ {host} []");
            let text: String = error.message.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            self.log_general((id, &user_host), "Connect", &text);
        }
    }

    /// The text is as it is to be shown.
    fn log_general(&self, (id, user_host): (ConnectionId, &str), command: &str, text: &str) {
        let output = self.globals.uint(VarId::LogOutput);
        if output & NONE != 0 {
            return;
        }
        let now_us = self.clock.wall_us();
        if output & FILE != 0
            && let Some(files) = self.log_files.read().as_ref()
        {
            let second = now_us / 1_000_000;
            let is_new = self.log_rows.told_second.swap(second, Ordering::Relaxed) != second;
            let time = if is_new { short_time(now_us) } else { "\t".to_owned() };
            let line = format!("{time}\t{:6} {command}\t{text}\n", id.0);
            files.append(StatementLog::General, line.as_bytes());
        }
        if output & TABLE != 0 {
            let bytes = text.len();
            let row = vec![
                Value::Timestamp(now_us as i64),
                Value::text(user_host),
                Value::UInt(id.0),
                Value::UInt(self.globals.uint(VarId::ServerId)),
                Value::text(command),
                Value::text(text),
            ];
            self.log_rows.general.lock().push(row, bytes);
        }
    }
}

impl Session {
    /// A statement begins: tells the general log, and looks at the clock for the slow log.
    pub(crate) fn watch(&mut self, command: &str, text: &[u8]) -> Watch {
        self.work = Work::default();
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general(command, text);
        }
        let profiled = self.state.vars.flag(VarId::Profiling);
        if self.verbosity().is_about_plans() && self.has_slow_log() {
            self.state.measure(Some(Arc::default()));
            self.plan_notes = PlanNotes { began_us: self.state.db.clock.wall_us(), lines: String::new() };
        }
        let audited = self.audit_begins();
        Watch { began_us: self.state.db.clock.wall_us(), rows_read: self.rows_read(), profiled, audited }
    }

    fn verbosity(&self) -> Verbosity {
        Verbosity(self.state.vars.uint(VarId::LogSlowVerbosity))
    }

    fn has_slow_log(&self) -> bool {
        self.state.db.globals.flag(VarId::SlowQueryLog) && self.state.vars.flag(VarId::SlowQueryLog)
    }

    /// Whether a statement is told of in the slow log that took so long.
    fn is_slow(&self, took_us: u64) -> bool {
        let vars = &self.state.vars;
        took_us as f64 > vars.double(VarId::LongQueryTime) * 1e6
            || self.state.reads_whole_table.get() && vars.flag(VarId::LogQueriesNotUsingIndexes)
    }

    /// A plan has run within the statement: notes what the slow log will tell of it.
    pub(crate) fn note_plan(&mut self, plan: &Planned, measures: &Measures) {
        let took_us = self.state.db.clock.wall_us().saturating_sub(self.plan_notes.began_us);
        if self.is_slow(took_us) {
            self.plan_notes.lines = plan_lines(plan, measures, &self.verbosity());
        }
    }

    /// The statement has ended. `params` are those of a prepared statement, and where they stand in its text.
    pub(crate) fn watched(&mut self, watch: Watch, text: &[u8], params: (&[u32], &[Value])) {
        // Statements that switch the log on are in it, too.
        if watch.audited || self.audit_begins() {
            self.audit_statement(text, params);
        }
        let took_us = self.state.db.clock.wall_us().saturating_sub(watch.began_us);
        let notes = match self.state.measure(None) {
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

    /// Tells the audit log of the statement. The values of a prepared one are in its text where they are in
    /// MariaDB's: when another log has them, too.
    fn audit_statement(&mut self, text: &[u8], params: (&[u32], &[Value])) {
        let executed = self.executed_text.take();
        let text = executed.as_deref().unwrap_or(text);
        let is_logged = self.state.db.globals.flag(VarId::GeneralLog)
            || (self.trx.settings.binlog.on && cohort_sql::changes_rows(text, self.state.parse.mode));
        let text = if is_logged { self.expanded(text, params) } else { Cow::Borrowed(text) };
        self.audit_ended(&text, self.work.error);
    }

    /// Keeps the statement for SHOW PROFILES: its text, and what was sent with it.
    pub(crate) fn profiled(&self, watch: Watch, text: &[u8]) {
        if watch.profiled && self.state.vars.flag(VarId::Profiling) && !is_about_profiles(text) {
            let took_us = self.state.db.clock.wall_us().saturating_sub(watch.began_us);
            let most = self.state.vars.uint(VarId::ProfilingHistorySize) as usize;
            self.state.profiles.borrow_mut().note(text.trim_ascii(), took_us, most);
        }
    }

    /// Tells the general log of a command, unless the session is left out of it.
    pub(crate) fn log_general(&self, command: &str, text: &[u8]) {
        if !self.state.vars.flag(VarId::SqlLogOff) {
            self.state.db.log_general((self.state.info.id, &self.user_host()), command, &shown(text));
        }
    }

    /// A connection begins, or becomes another user's.
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
        if output & NONE != 0 {
            return;
        }
        let text = shown(slow.text);
        if output & FILE != 0
            && let Some(files) = db.log_files.read().as_ref()
        {
            files.append(StatementLog::Slow, self.slow_entry(slow, &text).as_bytes());
        }
        if output & TABLE != 0 {
            let bytes = text.len();
            let env = &self.state.env;
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
            db.log_rows.slow.lock().push(row, bytes);
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
        if self.verbosity().tells_warnings() {
            self.append_warnings(&mut entry);
        }
        if !schema.is_empty() {
            let _ = writeln!(entry, "use {};", cohort_sql::print::quoted_name(schema));
        }
        let _ = writeln!(entry, "SET timestamp={};", slow.watch.began_us / 1_000_000);
        let _ = writeln!(entry, "{text};");
        entry
    }

    fn append_warnings(&self, entry: &mut String) {
        let most = self.state.vars.uint(VarId::LogSlowMaxWarnings) as usize;
        for (n, warning) in self.diagnostics.list().iter().take(most).enumerate() {
            let head = if n == 0 { "# Warnings\n" } else { "" };
            let error = &warning.error;
            let _ =
                writeln!(entry, "{head}# {} {} {}", warning.level.name(), error.code.number(), error.message);
        }
    }

    /// `user[account] @ host []`
    fn user_host(&self) -> String {
        let info = &self.state.info;
        format!("{}[{}] @ {} []", info.user, info.account.0, info.host)
    }

    fn rows_read(&self) -> u64 {
        let counts = self.process.handlers();
        counts.list().filter(|(name, _)| name.starts_with("Handler_read")).map(|(_, n)| n).sum()
    }

    fn expanded<'t>(&self, text: &'t [u8], (param_at, params): (&[u32], &[Value])) -> Cow<'t, [u8]> {
        if param_at.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::new();
        crate::annotation::append_statement(&mut out, text, param_at, params, self.state.env.sql_mode);
        Cow::Owned(out)
    }

    /// Tells the general log of a statement that another one runs.
    pub(crate) fn log_inner(&self, command: &str, text: &[u8], params: (&[u32], &[Value])) {
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general(command, &self.expanded(text, params));
        }
    }

    /// Tells the general log of a prepared statement with its values.
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

/// SHOW PROFILES and SHOW PROFILE do not tell of themselves.
fn is_about_profiles(text: &[u8]) -> bool {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut next = || words.next().unwrap_or_default().trim_ascii_end();
    next().eq_ignore_ascii_case(b"SHOW") && next().to_ascii_uppercase().starts_with(b"PROFILE")
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.state.is_applier {
            return;
        }
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general("Quit", b"");
        }
        self.audit_connection(ConnectionEvent::Disconnect, 0);
    }
}

/// A statement on its way into the slow log.
struct Slow<'t> {
    watch: Watch,
    took_us: u64,
    rows_read: u64,
    text: &'t [u8],
    /// Lines about the plan.
    notes: &'t str,
}

/// `261122 13:09:31`, in the host's zone.
fn short_time(us: u64) -> String {
    let zone = TimeZone::parse("SYSTEM").unwrap_or(TimeZone::Offset(0));
    let DateTime { date, hour, minute, second, .. } = cohort_types::TimeZone::to_local(&zone, us as i64);
    format!("{:02}{:02}{:02} {hour:2}:{minute:02}:{second:02}", date.year % 100, date.month, date.day)
}

/// A text as logs show it: without secrets, and not without end.
fn shown(text: &[u8]) -> String {
    let text = without_secrets(text);
    let cut = &text[..text.len().min(TEXT_BYTES_MAX)];
    String::from_utf8_lossy(cut).into_owned()
}

/// The text, with `<secret>` for every string literal if it speaks of passwords: SET PASSWORD, CREATE USER,
/// ALTER USER, GRANT, CHANGE MASTER, and whatever holds such a statement as a string.
pub fn without_secrets(text: &[u8]) -> Cow<'_, [u8]> {
    let speaks_of = |word: &[u8]| text.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word));
    if !speaks_of(b"password") && !speaks_of(b"identified") {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\'' | b'"' => {
                out.push(byte);
                out.extend_from_slice(b"<secret>");
                out.push(byte);
                at = literal_end(text, at);
            }
            b'`' => {
                let end = text[at + 1..].iter().position(|b| *b == b'`').map_or(text.len(), |n| at + n + 2);
                out.extend_from_slice(&text[at..end]);
                at = end;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Cow::Owned(out)
}

/// Behind the quote that ends the literal that begins at `from`. A quote behind a backslash is taken as part
/// of it: where backslashes escape nothing, more is hidden than needed.
fn literal_end(text: &[u8], from: usize) -> usize {
    let quote = text[from];
    let mut at = from + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            _ if byte == quote && text.get(at + 1) == Some(&quote) => at += 2,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_literal_is_left_in_a_text_about_passwords() {
        let clean =
            |text: &str| String::from_utf8(without_secrets(text.as_bytes()).into_owned()).expect("text");
        assert_eq!(clean("SELECT 'it''s'"), "SELECT 'it''s'");
        assert_eq!(clean("SET PASSWORD = PASSWORD('a\\'b''c')"), "SET PASSWORD = PASSWORD('<secret>')");
        assert_eq!(
            clean("grant all on *.* to `u`@'h' identified by \"x\""),
            "grant all on *.* to `u`@'<secret>' identified by \"<secret>\""
        );
        assert_eq!(
            clean("CHANGE MASTER TO MASTER_PASSWORD='x', MASTER_PORT=1"),
            "CHANGE MASTER TO MASTER_PASSWORD='<secret>', MASTER_PORT=1"
        );
        assert_eq!(clean("PREPARE s FROM 'SET PASSWORD = ''x'''"), "PREPARE s FROM '<secret>'");
        assert_eq!(clean("SET PASSWORD = 'cut"), "SET PASSWORD = '<secret>'");
    }

    #[test]
    fn the_newest_rows_are_kept() {
        let rows = LogRows::default();
        for n in 0..20 {
            rows.general.lock().push(vec![Value::Int(n)], 1 << 20);
        }
        let kept = rows.rows(StatementLog::General);
        assert_eq!(kept.len(), 3);
        assert_eq!(kept[2], [Value::Int(19)]);
        rows.clear(StatementLog::General);
        assert!(rows.rows(StatementLog::General).is_empty());
    }
}
