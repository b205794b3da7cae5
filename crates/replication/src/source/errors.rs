//! Errors that end a dump. Replicas stop at 1236 and retry after most others. The texts are MariaDB's,
//! because tools search for them.

use std::fmt::Display;

use cohort_base::Gtid;
use cohort_binlog::BinlogError;
use cohort_types::SqlError;

/// Error 1236.
pub(crate) fn fatal(text: impl Display) -> SqlError {
    SqlError::dump_failed(text)
}

/// Start and progress of a dump, in the format that MariaDB appends to its error texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coordinates {
    pub first_file: String,
    pub first_offset: u64,
    pub file: String,
    pub last_event: u64,
    pub last_byte: u64,
}

impl Coordinates {
    /// Appends the coordinates to an error text.
    pub fn detail(&self, what: &str) -> String {
        let Coordinates { first_file, first_offset, file, last_event, last_byte } = self;
        format!(
            "{what}; the first event '{first_file}' at {first_offset}, the last event read from '{file}' at {last_event}, \
             the last byte read from '{file}' at {last_byte}."
        )
    }
}

/// Error for a requested GTID that is not in the binary log.
pub(crate) fn unknown_gtid(gtid: Gtid, is_diverged: bool) -> SqlError {
    let text = format!(
        "Error: connecting slave requested to start from GTID {gtid}, which is not in the master's binlog{}",
        match is_diverged {
            true =>
                ". Since the master's binlog contains GTIDs with higher sequence numbers, it probably means that the \
                 slave has diverged due to executing extra erroneous transactions",
            false => "",
        }
    );
    fatal(text)
}

/// Error for a position between two consecutive GTIDs of the binary log (strict mode).
pub(crate) fn hole(gtid: Gtid) -> SqlError {
    fatal(format!(
        "The binlog on the master is missing the GTID {gtid} requested by the slave (even though both a prior and a \
         subsequent sequence number does exist), and GTID strict mode is enabled"
    ))
}

/// Error if no file reaches back to the replica's position.
pub(crate) fn purged() -> SqlError {
    fatal(
        "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and \
         required binlog files have been purged.",
    )
}

/// Error for an unreadable file.
pub(crate) fn unreadable(error: &BinlogError, at: &Coordinates) -> SqlError {
    match error {
        BinlogError::UnknownFile { .. } => {
            fatal("Could not find first log file name in binary log index file")
        }
        BinlogError::Corrupt { .. } => fatal(at.detail("bogus data in log event")),
        BinlogError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            fatal(at.detail("could not find next log"))
        }
        _ => fatal(at.detail("I/O error reading log event")),
    }
}
