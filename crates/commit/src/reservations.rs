//! Log space that a transaction has reserved.

use cohort_log::LogReservation;

/// Log reservations of a transaction, made at prepare (I6).
pub enum TrxReservations {
    /// For its one record; taken when the record is written.
    Shared(Option<LogReservation>),
    Separate {
        /// For each of its PREPARE records, with the log's index in `SeparateLogs`.
        parts: Vec<(usize, LogReservation)>,
        /// For the DECIDED record; `None` if the binlog decides.
        decision: Option<LogReservation>,
        /// For the copy of the transaction in the coordinator's log; `None` without an archive.
        archive: Option<LogReservation>,
    },
}

impl Default for TrxReservations {
    /// Returns the state after use: nothing reserved.
    fn default() -> TrxReservations {
        TrxReservations::Shared(None)
    }
}
