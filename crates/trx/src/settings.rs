//! Session variables that affect transactions.

use std::time::Duration;

use cohort_base::{DomainId, ServerId};
use cohort_expr::TimeZone;
use cohort_table::RowImage;

/// `tx_isolation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Accepted, but stronger here than its name: it reads like READ COMMITTED.
    ReadUncommitted,
    /// A view per statement; locks of rows that do not match are released.
    ReadCommitted,
    /// One view per transaction.
    RepeatableRead,
    /// Like REPEATABLE READ, but plain reads within a transaction lock in share mode.
    Serializable,
}

impl Isolation {
    /// Returns whether a read view lasts for the whole transaction.
    pub(crate) fn keeps_view(self) -> bool {
        matches!(self, Isolation::RepeatableRead | Isolation::Serializable)
    }
}

/// Access mode of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// Writes are allowed.
    ReadWrite,
    /// Writes are refused with error 1792.
    ReadOnly,
}

/// Binlog settings of the session.
#[derive(Clone, Debug)]
pub struct BinlogSettings {
    /// True if the server logs and `sql_log_bin` is on.
    pub on: bool,
    /// `binlog_format=STATEMENT`: statements that their text describes completely are logged as text.
    pub as_text: bool,
    /// `binlog_annotate_row_events`.
    pub annotate: bool,
    /// `binlog_row_image`.
    pub row_image: RowImage,
    /// Flags of row events: set for `foreign_key_checks` and `unique_checks` that are off.
    pub rows_flags: u16,
    /// Flags of all events: `skip_replication`.
    pub event_flags: u16,
    /// True if `skip_parallel_replication` is off.
    pub allow_parallel: bool,
    /// The transaction comes from a source, where it waited for a row lock.
    pub source_waited: bool,
    /// `gtid_domain_id`.
    pub domain: DomainId,
    /// `server_id`, which a session may set for BINLOG statements.
    pub server: ServerId,
    /// `gtid_seq_no` for the next transaction; consumed by its commit.
    pub seq_no: Option<u64>,
}

/// Values of session variables; written by SET, read by every statement.
#[derive(Clone, Debug)]
pub struct TrxSettings {
    /// `autocommit`; change it through [`crate::SessionTrx::set_autocommit`].
    pub autocommit: bool,
    /// `tx_isolation`.
    pub isolation: Isolation,
    /// `SET TRANSACTION ISOLATION LEVEL`, for the next transaction only.
    pub next_isolation: Option<Isolation>,
    /// `tx_read_only`.
    pub access_mode: AccessMode,
    /// `SET TRANSACTION READ ONLY`, for the next transaction only.
    pub next_access_mode: Option<AccessMode>,
    /// `innodb_lock_wait_timeout`.
    pub row_lock_wait: Duration,
    /// `lock_wait_timeout`.
    pub metadata_lock_wait: Duration,
    /// `innodb_rollback_on_timeout`.
    pub rollback_on_timeout: bool,
    /// `innodb_snapshot_isolation`: a row that was changed since the read view cannot be locked.
    pub snapshot_isolation: bool,
    /// `auto_increment_increment`.
    pub auto_increment_increment: u64,
    /// `auto_increment_offset`.
    pub auto_increment_offset: u64,
    /// `insert_id`: the next generated value, used once; 0 for none.
    pub insert_id: u64,
    /// Another thread flushes the commits of the session, and no client waits for them.
    pub is_flushed_elsewhere: bool,
    /// `time_zone`, for error texts.
    pub time_zone: TimeZone,
    /// Binlog settings.
    pub binlog: BinlogSettings,
}

impl Default for TrxSettings {
    fn default() -> TrxSettings {
        TrxSettings {
            autocommit: true,
            isolation: Isolation::RepeatableRead,
            next_isolation: None,
            access_mode: AccessMode::ReadWrite,
            next_access_mode: None,
            row_lock_wait: Duration::from_secs(50),
            metadata_lock_wait: Duration::from_secs(86_400),
            rollback_on_timeout: false,
            snapshot_isolation: false,
            auto_increment_increment: 1,
            auto_increment_offset: 1,
            insert_id: 0,
            is_flushed_elsewhere: false,
            time_zone: TimeZone::Offset(0),
            binlog: BinlogSettings {
                on: false,
                as_text: false,
                annotate: true,
                row_image: RowImage::Full,
                rows_flags: 0,
                event_flags: 0,
                allow_parallel: true,
                source_waited: false,
                domain: DomainId(0),
                server: ServerId(1),
                seq_no: None,
            },
        }
    }
}
