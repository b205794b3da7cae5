//! Output of the audit log: a file that rotates, or syslog. Also its status variables.
//!
//! # States
//! ```text
//! off --SET server_audit_logging=ON, start--> file or syslog --OFF--> off
//! file --server_audit_file_path--> another file, or the current one if that cannot be opened (a warning)
//! file --a write fails--> file, inactive: each lost line is counted, the next line is tried again
//! ```
//! `Server_audit_active` is OFF while the most recent line was lost.
//!
//! # On failure
//! The first lost line in a row is reported in the error log. No client waits: the file is a regular one, so
//! a write copies into the page cache or fails at once, and a datagram that would block is dropped.
//!
//! # Lock order
//! The sink of [`Audit`], then `state`. A caller that sets the sink must not hold `state`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_config::{Globals, StatusSource, VarId, VarValue};
use cohort_exec::{Audit, AuditSink};
use parking_lot::Mutex;

use crate::audit_file::{AuditFile, Rotation};
use crate::error_log::{ErrorLog, local_time};
use crate::server_files::check_log_path;
use crate::syslog::Syslog;

/// The audit log's output.
pub struct AuditLog {
    globals: Arc<Globals>,
    audit: Arc<Audit>,
    errors: ErrorLog,
    state: Mutex<State>,
}

struct State {
    output: Option<Output>,
    is_active: bool,
    lost_lines: u64,
    last_error: String,
    /// Text of `Server_audit_current_log`.
    current: String,
    /// `server_audit_file_path` at the time when the file was opened.
    named: Arc<str>,
    /// Timestamp of the last line in seconds, and its text.
    second: (u64, String),
}

impl State {
    fn off() -> State {
        State {
            output: None,
            is_active: false,
            lost_lines: 0,
            last_error: String::new(),
            current: String::new(),
            named: "".into(),
            second: (0, String::new()),
        }
    }

    fn of(output: Output, current: &str, named: Arc<str>) -> State {
        let (output, current) = (Some(output), current.to_owned());
        State { output, is_active: true, current, named, ..State::off() }
    }
}

enum Output {
    File(AuditFile),
    Syslog(Syslog),
}

/// Default file name, also used if `server_audit_file_path` is a directory.
const FILE_NAME: &str = "server_audit.log";
/// Value of `server_audit_output_type` for syslog.
const SYSLOG: u64 = 0;

impl AuditLog {
    /// Creates the log, which is off until [`AuditLog::start`].
    pub fn new(globals: &Arc<Globals>, audit: &Arc<Audit>, errors: &ErrorLog) -> Arc<AuditLog> {
        audit.set_rules(globals);
        Arc::new(AuditLog {
            globals: Arc::clone(globals),
            audit: Arc::clone(audit),
            errors: errors.clone(),
            state: Mutex::new(State::off()),
        })
    }

    /// Applies the settings; once, when the server starts.
    pub fn start(self: &Arc<Self>) {
        if let Some((_, _, warnings)) =
            cohort_exec::adjusted_audit_users(&self.globals, VarId::ServerAuditExclUsers)
        {
            warnings.iter().for_each(|warning| self.errors.warning(format_args!("{warning}")));
        }
        if self.globals.flag(VarId::ServerAuditLogging) {
            // A failure is reported in the error log.
            self.open();
        }
    }

    /// Applies a changed setting. Returns the warnings for the client.
    pub fn configure(self: &Arc<Self>, id: VarId) -> Vec<String> {
        use VarId::*;
        match id {
            ServerAuditLogging if self.globals.flag(id) => return self.open(),
            ServerAuditLogging => self.close(),
            ServerAuditOutputType if self.is_on() => {
                self.close();
                return self.open();
            }
            ServerAuditFilePath => return self.move_to_new_path(),
            ServerAuditFileRotateNow => {
                let is_wanted = self.globals.flag(id);
                self.globals.put(id, &VarValue::Bool(false));
                if is_wanted && let Some(Output::File(file)) = &mut self.state.lock().output {
                    file.rotate();
                }
            }
            ServerAuditFileRotateSize | ServerAuditFileRotations => {
                if let Some(Output::File(file)) = &mut self.state.lock().output {
                    file.set_rotation(self.rotation());
                }
            }
            ServerAuditSyslogFacility
            | ServerAuditSyslogPriority
            | ServerAuditSyslogIdent
            | ServerAuditSyslogInfo => {
                if let Some(Output::Syslog(syslog)) = &mut self.state.lock().output {
                    *syslog = self.syslog();
                }
            }
            ServerAuditInclUsers | ServerAuditExclUsers => {
                let mut reported = Vec::new();
                if let Some((list, users, warnings)) = cohort_exec::adjusted_audit_users(&self.globals, id) {
                    self.globals.put(list, &VarValue::text(&users));
                    reported = warnings;
                }
                self.audit.set_rules(&self.globals);
                return reported;
            }
            ServerAuditEvents | ServerAuditQueryLogLimit => self.audit.set_rules(&self.globals),
            _ => {}
        }
        Vec::new()
    }

    fn is_on(&self) -> bool {
        self.state.lock().output.is_some()
    }

    /// Opens the file. Refuses the server's own files.
    fn open_file(&self, path: PathBuf) -> io::Result<AuditFile> {
        check_log_path(&self.globals, &path)?;
        AuditFile::open(path, self.rotation())
    }

    /// Starts logging. If that fails, the log is off. Returns the warnings for the client.
    fn open(self: &Arc<Self>) -> Vec<String> {
        let (output, current) = if self.globals.uint(VarId::ServerAuditOutputType) == SYSLOG {
            (Ok(Output::Syslog(self.syslog())), "[SYSLOG]".to_owned())
        } else {
            let (path, shown) = self.path();
            (self.open_file(path).map(Output::File), shown)
        };
        let mut state = self.state.lock();
        match output {
            Ok(output) => {
                *state = State::of(output, &current, self.file_path());
                drop(state);
                self.audit.set_sink(Some(Arc::clone(self) as Arc<dyn AuditSink>));
                self.errors.note(format_args!("server_audit: logging started to {current}"));
                Vec::new()
            }
            Err(error) => {
                let text = format!("Could not create file '{current}'.");
                state.last_error.clone_from(&text);
                (state.output, state.is_active) = (None, false);
                drop(state);
                self.audit.set_sink(None);
                self.globals.put(VarId::ServerAuditLogging, &VarValue::Bool(false));
                self.errors.error(format_args!("server_audit: {text} {error}. Logging is off."));
                let plugin = format!("SERVER AUDIT plugin can't create file '{current}'.");
                vec![plugin, "Logging was disabled.".to_owned()]
            }
        }
    }

    fn close(&self) {
        self.audit.set_sink(None);
        let mut state = self.state.lock();
        if state.output.take().is_some() {
            self.errors.note(format_args!("server_audit: logging was stopped"));
        }
        state.is_active = false;
    }

    /// Switches to a new file. If it cannot be opened, the current file and setting stay. Returns the
    /// warnings for the client.
    fn move_to_new_path(&self) -> Vec<String> {
        if !matches!(self.state.lock().output, Some(Output::File(_))) {
            return Vec::new();
        }
        let (path, shown) = self.path();
        match self.open_file(path) {
            Ok(file) => {
                let mut state = self.state.lock();
                *state = State::of(Output::File(file), &shown, self.file_path());
                drop(state);
                self.errors.note(format_args!("server_audit: logging started to {shown}"));
                Vec::new()
            }
            Err(error) => {
                self.errors.error(format_args!(
                    "server_audit: Could not create file '{shown}': {error}. Logging goes on in the file before."
                ));
                let named = Arc::clone(&self.state.lock().named);
                self.globals.put(VarId::ServerAuditFilePath, &VarValue::text(&named));
                vec![format!("SERVER AUDIT plugin can't create file '{shown}'.")]
            }
        }
    }

    fn file_path(&self) -> Arc<str> {
        self.globals.text(VarId::ServerAuditFilePath).unwrap_or_else(|| "".into())
    }

    /// Returns the path of the file and its text in messages.
    fn path(&self) -> (PathBuf, String) {
        let datadir = self.globals.text(VarId::Datadir).unwrap_or_else(|| "".into());
        let name = self.file_path();
        let name = match name.trim_matches(' ') {
            "" => FILE_NAME,
            name => name,
        };
        let path = Path::new(&*datadir).join(name);
        if path.is_dir() {
            let shown = format!("{}/{FILE_NAME}", name.trim_end_matches('/'));
            return (path.join(FILE_NAME), shown);
        }
        (path, name.to_owned())
    }

    fn rotation(&self) -> Rotation {
        Rotation {
            bytes_max: self.globals.uint(VarId::ServerAuditFileRotateSize),
            files_max: self.globals.uint(VarId::ServerAuditFileRotations) as u32,
        }
    }

    fn syslog(&self) -> Syslog {
        let text = |id| self.globals.text(id).unwrap_or_default();
        let number = |id| self.globals.uint(id) as usize;
        Syslog::new(
            number(VarId::ServerAuditSyslogFacility),
            number(VarId::ServerAuditSyslogPriority),
            &text(VarId::ServerAuditSyslogIdent),
            &text(VarId::ServerAuditSyslogInfo),
        )
    }
}

impl AuditSink for AuditLog {
    fn write(&self, wall_us: u64, line: &[u8]) {
        let mut state = self.state.lock();
        let State { output, second, .. } = &mut *state;
        let written = match output {
            None => return,
            Some(Output::Syslog(syslog)) => syslog.send(wall_us, line),
            Some(Output::File(file)) => {
                if second.0 != wall_us / 1_000_000 || second.1.is_empty() {
                    *second = (wall_us / 1_000_000, second_text(wall_us));
                }
                file.append(&[second.1.as_bytes(), b",", line, b"\n"].concat())
            }
        };
        if let Err(error) = written {
            self.lost(&mut state, &error);
        } else {
            state.is_active = true;
        }
    }
}

impl AuditLog {
    fn lost(&self, state: &mut State, error: &io::Error) {
        state.lost_lines += 1;
        state.last_error = format!("Could not write to '{}': {error}.", state.current);
        if std::mem::replace(&mut state.is_active, false) {
            self.errors.error(format_args!(
                "server_audit: {} Events are lost until it can be written again.",
                state.last_error
            ));
        }
    }
}

/// Returns a text like `20261123 07:44:21`, in the machine's time zone.
fn second_text(wall_us: u64) -> String {
    let parts = local_time(wall_us);
    format!(
        "{:04}{:02}{:02} {:02}:{:02}:{:02}",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec
    )
}

/// Status variables of the audit log.
pub struct AuditStatus(pub Arc<AuditLog>);

impl StatusSource for AuditStatus {
    fn status(&self, out: &mut Vec<(String, String)>) {
        let state = self.0.state.lock();
        let mut put = |name: &str, value: String| out.push((format!("Server_audit_{name}"), value));
        put("active", if state.is_active { "ON" } else { "OFF" }.to_owned());
        put("current_log", state.current.clone());
        put("last_error", state.last_error.clone());
        put("writes_failed", state.lost_lines.to_string());
    }
}
