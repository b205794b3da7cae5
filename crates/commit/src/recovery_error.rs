//! Reasons why recovery refuses to start the server, and the rows of the recovery table (`recovery`).

use std::fmt;
use std::path::PathBuf;

use cohort_base::Lsn;
use cohort_binlog::BinlogError;
use cohort_engine::EngineError;
use cohort_log::LogError;

/// The rows of the recovery table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Row {
    Replay,
    Skip,
    Complete,
    Present,
    Restarted,
    Cut,
    CutUnreleased,
    Undecided,
    Unknown,
    OtherLayout,
    LogLost,
    PartLost,
    BinlogBehind,
    EngineBehind,
    EngineAhead,
    BinlogAhead,
    BinlogOff,
    BinlogFileLost,
    IndexLost,
    SpillLost,
}

impl Row {
    /// All rows.
    pub const ALL: &[Row] = &[
        Row::Replay,
        Row::Skip,
        Row::Complete,
        Row::Present,
        Row::Restarted,
        Row::Cut,
        Row::CutUnreleased,
        Row::Undecided,
        Row::Unknown,
        Row::OtherLayout,
        Row::LogLost,
        Row::PartLost,
        Row::BinlogBehind,
        Row::EngineBehind,
        Row::EngineAhead,
        Row::BinlogAhead,
        Row::BinlogOff,
        Row::BinlogFileLost,
        Row::IndexLost,
        Row::SpillLost,
    ];

    /// Returns the remedy for a refusal, or `None` for a row that is not a refusal.
    pub fn cure(self) -> Option<&'static str> {
        Some(match self {
            Row::Unknown => "start the version of the server that wrote this data directory",
            Row::EngineBehind => {
                "files were removed, cut or replaced: put them back, or restore the data directory from a backup or a replica"
            }
            Row::BinlogFileLost => {
                "put the file back, or, if its events are not needed any more, remove its line and those of all older files \
                 from the index"
            }
            Row::IndexLost => {
                "put the file back, or write one with a line './NAME' for each binary log file, oldest first"
            }
            Row::EngineAhead | Row::BinlogAhead => {
                "log files were removed or replaced: put them back, or restore the data directory from a backup"
            }
            Row::BinlogOff => {
                "start once with the log-bin setting that the server ran with before, and stop it cleanly"
            }
            Row::SpillLost => "put the file back, or restore the data directory from a backup",
            Row::OtherLayout => {
                "start with the log_layout that it was made with, or convert it: stop the server, then run cohortd \
                 --convert-log-layout with the same options and the other log_layout"
            }
            Row::LogLost | Row::PartLost => {
                "logs were removed, replaced, or restored at different times: put back those that belong together, or restore \
                 the data directory from a backup or a replica"
            }
            Row::BinlogBehind => {
                "binary log files were cut, replaced or removed: put them back, or restore the data directory from a backup or \
                 a replica"
            }
            Row::CutUnreleased => {
                "start with init_rpl_role=MASTER, or restore the data directory from the new source"
            }
            Row::Replay
            | Row::Skip
            | Row::Complete
            | Row::Present
            | Row::Restarted
            | Row::Cut
            | Row::Undecided => return None,
        })
    }
}

/// Reason why the server does not start.
#[derive(Debug)]
pub enum RecoveryError {
    /// A row of the table that must not occur: the files contradict each other.
    Refused { row: Row, what: String, cure: &'static str },
    /// The log is damaged or unreadable.
    Log(LogError),
    /// A binlog file is damaged or unreadable.
    Binlog(BinlogError),
    /// An engine could not replay.
    Engine(EngineError),
    /// A file could not be read or written.
    Io(PathBuf, std::io::Error),
    /// A setting that the layout of the logs does not allow.
    Setting(&'static str),
    /// The recovered state could not be made durable.
    Checkpoint(crate::error::CheckpointError),
}

impl fmt::Display for RecoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoveryError::Refused { row, what, cure } => {
                write!(f, "recovery refuses ({row:?}): {what}; {cure}")
            }
            RecoveryError::Log(e) => write!(f, "{e}"),
            RecoveryError::Binlog(e) => write!(f, "{e}"),
            RecoveryError::Engine(e) => write!(f, "{e}"),
            RecoveryError::Checkpoint(e) => write!(f, "{e}"),
            RecoveryError::Io(path, e) => write!(f, "{}: {e}", path.display()),
            RecoveryError::Setting(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RecoveryError {}

impl From<LogError> for RecoveryError {
    fn from(e: LogError) -> RecoveryError {
        RecoveryError::Log(e)
    }
}

impl From<BinlogError> for RecoveryError {
    fn from(e: BinlogError) -> RecoveryError {
        RecoveryError::Binlog(e)
    }
}

impl From<EngineError> for RecoveryError {
    fn from(e: EngineError) -> RecoveryError {
        RecoveryError::Engine(e)
    }
}

pub(crate) fn unreadable(lsn: Lsn) -> RecoveryError {
    refused(Row::Unknown, format!("the log record at LSN {lsn} does not decode"))
}

pub(crate) fn refused(row: Row, what: String) -> RecoveryError {
    let cure = row.cure().expect("the row is a refusal");
    RecoveryError::Refused { row, what, cure }
}
