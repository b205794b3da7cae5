//! Error log: one line per event, in MariaDB's format.

use std::collections::VecDeque;
use std::fmt::Arguments;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::whole_chars;
use cohort_exec::ErrorLogRow;
use cohort_vfs::SharedClock;
use parking_lot::Mutex;

use crate::repeated::{Repeated, Verdict};

/// Lines that are kept in memory, for performance_schema.error_log, and the longest text of one.
const KEPT: usize = 500;
const KEPT_BYTES: usize = 2 << 10;

/// The server's error log. Clones share it.
#[derive(Clone)]
pub struct ErrorLog(Arc<Inner>);

struct Inner {
    clock: SharedClock,
    path: Option<PathBuf>,
    /// `None` is standard error.
    file: Mutex<Option<File>>,
    /// Rate limit of [`ErrorLog::warning_of_replica`] and [`ErrorLog::note_of_replica`].
    repeated: Mutex<Repeated>,
    /// The newest lines.
    kept: Mutex<VecDeque<ErrorLogRow>>,
}

impl ErrorLog {
    /// Opens a file, or uses standard error.
    pub fn open(path: Option<&Path>, clock: SharedClock) -> io::Result<ErrorLog> {
        let file = path.map(append_to).transpose()?;
        Ok(ErrorLog(Arc::new(Inner {
            clock,
            path: path.map(Path::to_owned),
            file: Mutex::new(file),
            repeated: Mutex::default(),
            kept: Mutex::default(),
        })))
    }

    /// Reopens the file after it was renamed.
    pub fn reopen(&self) -> io::Result<()> {
        if let Some(path) = &self.0.path {
            *self.0.file.lock() = Some(append_to(path)?);
        }
        Ok(())
    }

    /// Logs an informational message.
    pub fn note(&self, text: Arguments<'_>) {
        self.write("Note", text);
    }

    /// Logs a warning.
    pub fn warning(&self, text: Arguments<'_>) {
        self.write("Warning", text);
    }

    /// Logs a warning about a replica. Rate-limited, because a replica may reconnect at once, again and
    /// again.
    pub fn warning_of_replica(&self, server_id: u32, text: Arguments<'_>) {
        self.of_replica("Warning", server_id, text);
    }

    /// Logs an informational message about a replica. Rate-limited.
    pub fn note_of_replica(&self, server_id: u32, text: Arguments<'_>) {
        self.of_replica("Note", server_id, text);
    }

    fn of_replica(&self, level: &'static str, server_id: u32, text: Arguments<'_>) {
        let now_us = self.0.clock.monotonic_ns() / 1000;
        let verdict = self.0.repeated.lock().ask((level, server_id), now_us);
        match verdict {
            Verdict::Log { left_out: 0 } => self.write(level, text),
            Verdict::Log { left_out } => {
                self.write(level, format_args!("{text} ({left_out} such lines before were left out)"));
            }
            Verdict::LeaveOut => {}
        }
    }

    /// Logs an error that an operator must act on.
    pub fn error(&self, text: Arguments<'_>) {
        self.write("ERROR", text);
    }

    /// Returns the newest lines, oldest first.
    pub fn kept(&self) -> Vec<ErrorLogRow> {
        self.0.kept.lock().iter().cloned().collect()
    }

    fn write(&self, level: &'static str, text: Arguments<'_>) {
        let wall_us = self.0.clock.wall_us();
        let text = text.to_string();
        let line = format!("{} 0 [{level}] cohortd: {text}\n", timestamp(wall_us));
        {
            let level = if level == "ERROR" { "Error" } else { level };
            let text = whole_chars(&text, KEPT_BYTES).to_owned();
            let mut kept = self.0.kept.lock();
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(ErrorLogRow { wall_us, level, text });
        }
        // A failure to write cannot be reported anywhere else.
        let _ = match &mut *self.0.file.lock() {
            Some(file) => file.write_all(line.as_bytes()),
            None => io::stderr().write_all(line.as_bytes()),
        };
    }
}

/// Receives the lines that other crates log through the crate `log`.
impl log::Log for ErrorLog {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("cohort") && metadata.level() <= log::Level::Info
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        match record.level() {
            log::Level::Error => self.error(*record.args()),
            log::Level::Warn => self.warning(*record.args()),
            log::Level::Info | log::Level::Debug | log::Level::Trace => self.note(*record.args()),
        }
    }

    fn flush(&self) {}
}

impl ErrorLog {
    /// Installs this log as the logger of other crates, for the rest of the process.
    pub fn install(&self) {
        // Only the first log is installed. A second server in one process shares it.
        if log::set_boxed_logger(Box::new(self.clone())).is_ok() {
            log::set_max_level(log::LevelFilter::Info);
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Converts microseconds since 1970 to local time.
pub(crate) fn local_time(wall_us: u64) -> libc::tm {
    let seconds = (wall_us / 1_000_000) as libc::time_t;
    // SAFETY: a struct of integers and a pointer that may be null; localtime_r fills it.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables.
    unsafe { libc::localtime_r(&seconds, &mut parts) };
    parts
}

/// Returns a timestamp like `2026-01-02  3:04:05`: local time, hours padded with a space as in MariaDB.
fn timestamp(wall_us: u64) -> String {
    let parts = local_time(wall_us);
    format!(
        "{:04}-{:02}-{:02} {:2}:{:02}:{:02}",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec
    )
}
