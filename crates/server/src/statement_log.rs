//! Files of the slow query log and the general log. A file is opened at its first line. FLUSH SLOW LOGS,
//! FLUSH GENERAL LOGS and FLUSH LOGS close it, so that a new file is created if the old one was renamed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_config::{Globals, VarId};
use cohort_exec::{LogFiles, StatementLog};
use parking_lot::Mutex;

use crate::error_log::ErrorLog;
use crate::server_files::check_log_path;

/// Both log files.
pub struct StatementLogFiles {
    globals: Arc<Globals>,
    errors: ErrorLog,
    general: Mutex<State>,
    slow: Mutex<State>,
}

enum State {
    Closed,
    Open(File),
    /// The failure was reported in the error log. Logging resumes after FLUSH.
    Failed,
}

impl StatementLogFiles {
    /// Creates the logs without opening a file.
    pub fn new(globals: &Arc<Globals>, errors: &ErrorLog) -> StatementLogFiles {
        StatementLogFiles {
            globals: Arc::clone(globals),
            errors: errors.clone(),
            general: Mutex::new(State::Closed),
            slow: Mutex::new(State::Closed),
        }
    }

    fn state(&self, log: StatementLog) -> &Mutex<State> {
        match log {
            StatementLog::General => &self.general,
            StatementLog::Slow => &self.slow,
        }
    }

    fn path(&self, log: StatementLog) -> PathBuf {
        let (id, suffix) = match log {
            StatementLog::General => (VarId::GeneralLogFile, ".log"),
            StatementLog::Slow => (VarId::SlowQueryLogFile, "-slow.log"),
        };
        let text = |id| self.globals.text(id).unwrap_or_default();
        let name = match &*text(id) {
            "" => format!("{}{suffix}", text(VarId::Hostname)),
            name => name.to_owned(),
        };
        Path::new(&*text(VarId::Datadir)).join(name)
    }

    fn write(&self, state: &mut State, log: StatementLog, lines: &[u8]) -> io::Result<()> {
        if let State::Closed = state {
            check_log_path(&self.globals, &self.path(log))?;
            let mut file = OpenOptions::new().create(true).append(true).mode(0o660).open(self.path(log))?;
            file.write_all(self.header().as_bytes())?;
            *state = State::Open(file);
        }
        match state {
            State::Open(file) => file.write_all(lines),
            State::Closed | State::Failed => Ok(()),
        }
    }

    /// Returns the header that MariaDB writes each time it opens a log.
    fn header(&self) -> String {
        let text = |id| self.globals.text(id).unwrap_or_default();
        format!(
            "cohortd, Version: {} ({}). started with:\nTcp port: {}  Unix socket: {}\n\
             Time\t\t    Id Command\tArgument\n",
            text(VarId::Version),
            text(VarId::VersionComment),
            self.globals.uint(VarId::Port),
            text(VarId::Socket)
        )
    }
}

impl LogFiles for StatementLogFiles {
    fn append(&self, log: StatementLog, lines: &[u8]) {
        let mut state = self.state(log).lock();
        if let Err(error) = self.write(&mut state, log, lines) {
            *state = State::Failed;
            self.errors.error(format_args!(
                "Could not use {} for logging: {error}. Nothing more is logged there before FLUSH LOGS.",
                self.path(log).display()
            ));
        }
    }

    fn reopen(&self, log: StatementLog) {
        *self.state(log).lock() = State::Closed;
    }

    fn reopen_errors(&self) -> io::Result<()> {
        self.errors.reopen()
    }
}
