//! Where the audit log goes: a file that rotates, or the system's log; and the status variables about it.
//!
//! # States
//! ```text
//! off --SET server_audit_logging=ON, start--> file or syslog --OFF--> off
//! file --server_audit_file_path--> another file, or the same one when that cannot be opened (a warning)
//! file --a write fails--> file, inactive: each lost line is counted, the next one is tried again
//! ```
//! `Server_audit_active` is OFF while the last line was lost.
//!
//! # On failure
//! The first lost line in a row is an error in the error log. No client waits: a file is a regular one, so a
//! write is a copy into the page cache or an error at once, and a datagram that would wait is lost.
//!
//! # Lock order
//! The sink of [`Audit`], then `state`. A caller that sets the sink holds no `state`.

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

/// The audit log's end at the machine.
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
    /// As `Server_audit_current_log` shows it.
    current: String,
    /// `server_audit_file_path` when the file was opened.
    named: Arc<str>,
    /// The second of the last line, and how it is written.
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

/// Also in a directory that `server_audit_file_path` names.
const FILE_NAME: &str = "server_audit.log";
/// `server_audit_output_type`.
const SYSLOG: u64 = 0;

impl AuditLog {
    /// Off until [`AuditLog::start`].
    pub fn new(globals: &Arc<Globals>, audit: &Arc<Audit>, errors: &ErrorLog) -> Arc<AuditLog> {
        audit.set_rules(globals);
        Arc::new(AuditLog {
            globals: Arc::clone(globals),
            audit: Arc::clone(audit),
            errors: errors.clone(),
            state: Mutex::new(State::off()),
        })
    }

    /// As the settings want it; once, when the server starts.
    pub fn start(self: &Arc<Self>) {
        if let Some((_, _, warnings)) =
            cohort_exec::adjusted_audit_users(&self.globals, VarId::ServerAuditExclUsers)
        {
            warnings.iter().for_each(|warning| self.errors.warning(format_args!("{warning}")));
        }
        if self.globals.flag(VarId::ServerAuditLogging) {
            // What failed is in the error log.
            self.open();
        }
    }

    /// A setting was changed. Answers what the client is told.
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
                let mut told = Vec::new();
                if let Some((list, users, warnings)) = cohort_exec::adjusted_audit_users(&self.globals, id) {
                    self.globals.put(list, &VarValue::text(&users));
                    told = warnings;
                }
                self.audit.set_rules(&self.globals);
                return told;
            }
            ServerAuditEvents | ServerAuditQueryLogLimit => self.audit.set_rules(&self.globals),
            _ => {}
        }
        Vec::new()
    }

    fn is_on(&self) -> bool {
        self.state.lock().output.is_some()
    }

    /// No file of the server's own is written into.
    fn open_file(&self, path: PathBuf) -> io::Result<AuditFile> {
        check_log_path(&self.globals, &path)?;
        AuditFile::open(path, self.rotation())
    }

    /// Begins to log. When that fails the log is off: the client's warnings.
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

    /// Where the new file cannot be opened the old one stays, and so does the setting.
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

    /// The file, and how it is shown.
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

/// `20261123 07:44:21`, in the machine's zone.
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

/// The log's part of SHOW STATUS.
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
