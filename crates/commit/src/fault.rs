//! Severity of an error on the durable path: the one place that classifies such errors (I6).
//!
//! | error | severity |
//! |---|---|
//! | no space: a log segment, a binlog file, an engine's file | [`Severity::Refuse`]: writes get error 1021 until there is space, reads continue, nothing is lost |
//! | the log has reached its cap | [`Severity::Refuse`], until a checkpoint frees space |
//! | any other error of a file of the durable path: the log and its control file, a binlog file or the index, an engine, the catalog | [`Severity::Stop`]: the server ends with an ERROR line |
//! | a spill file or a staged file, before the transaction is ordered | neither: the transaction is refused, and nothing refers to the file |
//!
//! After a failed write or sync the contents of the disk are unknown, and a second sync could succeed without
//! having written anything. A server that continued could only refuse every later write. So it ends, and the
//! next start recovers from the log.

use std::io;

use cohort_binlog::BinlogError;
use cohort_engine::EngineError;
use cohort_log::LogError;

use crate::error::CheckpointError;

/// Severity of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Refuse or postpone the operation; it may succeed later.
    Refuse,
    /// End the server.
    Stop,
}

impl Severity {
    fn of_io(error: &io::Error) -> Severity {
        if cohort_vfs::is_no_space(error) { Severity::Refuse } else { Severity::Stop }
    }

    /// Classifies an error of the open log.
    pub fn of_log(error: &LogError) -> Severity {
        match error {
            LogError::Io { source, .. } => Severity::of_io(source),
            // The caller's error; the log is unchanged.
            LogError::Full(_) | LogError::RecordTooLarge { .. } | LogError::Released { .. } => {
                Severity::Refuse
            }
            LogError::Poisoned { .. }
            | LogError::Corrupt { .. }
            | LogError::Version { .. }
            | LogError::InUse { .. } => Severity::Stop,
        }
    }

    /// Classifies an error of the binlog's writer.
    pub fn of_binlog(error: &BinlogError) -> Severity {
        match error {
            BinlogError::Io { source, .. } => Severity::of_io(source),
            BinlogError::Failed(_)
            | BinlogError::Gap { .. }
            | BinlogError::SpillDamaged { .. }
            | BinlogError::Corrupt { .. } => Severity::Stop,
            _ => Severity::Refuse,
        }
    }

    fn of_engine(error: &EngineError) -> Severity {
        match error {
            EngineError::Io(error) => Severity::of_io(error),
            EngineError::Corrupt(_) | EngineError::TooLarge { .. } | EngineError::OverBudget(_) => {
                Severity::Stop
            }
        }
    }

    /// Classifies an error of a checkpoint.
    pub fn of_checkpoint(error: &CheckpointError) -> Severity {
        match error {
            CheckpointError::Engine(error) => Severity::of_engine(error),
            CheckpointError::Binlog(error) => Severity::of_binlog(error),
            CheckpointError::Log(error) => Severity::of_log(error),
            CheckpointError::Gated | CheckpointError::Stopped => Severity::Refuse,
        }
    }
}
