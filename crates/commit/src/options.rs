//! Settings with which a server opens its commit path.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use cohort_base::ServerId;
use cohort_binlog::BinlogName;
use cohort_binlog::event::Checksum;
use cohort_log::LogOptions;

use crate::archive::settings::ArchiveSettings;
use crate::group_commit::GroupCommitOptions;
use crate::logs::LogLayout;
use crate::stage::Point;

/// Settings of the binlog.
#[derive(Clone, Debug)]
pub struct BinlogSettings {
    pub name: BinlogName,
    /// `max_binlog_size`
    pub file_bytes_max: u64,
    pub server_id: ServerId,
    /// Server version in the format description event.
    pub server_version: String,
    pub checksum: Checksum,
    /// Verify the checksums of all files at start, instead of only the last ones.
    pub is_verifying_all: bool,
}

/// Settings of the commit path.
#[derive(Clone)]
pub struct CoordinatorOptions {
    /// Directory of the log segments, the control file and the spill files.
    pub datadir: PathBuf,
    pub log: LogOptions,
    /// Layout of a new data directory; an existing one must have been created with it.
    pub layout: LogLayout,
    /// `None` with `skip-log-bin`.
    pub binlog: Option<BinlogSettings>,
    pub group_commit: GroupCommitOptions,
    pub is_early_release: bool,
    /// Handling, at a start after a crash, of transactions that no replica is known to have (semi-synchronous
    /// replication).
    pub unreleased: Unreleased,
    /// Bytes of redo not yet durable in a participant that trigger a checkpoint, for participants without a
    /// limit of their own.
    pub checkpoint_bytes: u64,
    /// Maximum of these bytes, whatever the participant's own limit is.
    pub checkpoint_bytes_max: u64,
    /// Writes are refused while the file system has less free space than this.
    pub free_bytes_min: u64,
    /// Start the background threads (binlog writer, checkpointer); simulations call `tick` themselves.
    pub has_threads: bool,
    /// The log is archived.
    pub archive: Option<ArchiveSettings>,
    pub on_stop: StopHook,
    pub failpoint: Option<FailpointHook>,
}

/// Handling of the transactions at the log's end that are durable, but of which the log does not show that
/// they passed the publish gate. A crash leaves two kinds:
/// - transactions that the gate held: no client got an OK for them, and no plain read saw them;
/// - transactions that passed the gate shortly before the crash, after the log's last record of that. Plain
///   reads may have seen them. Clients may have got an OK for them, and then a replica has them. With
///   AFTER_COMMIT all are of this kind, because transactions are published before a replica has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unreleased {
    /// Keep them as committed (I2): this server continues as the source.
    #[default]
    Keep,
    /// Cut them from log, binlog and engines: another server has become the source, without them
    /// (`init_rpl_role=SLAVE`).
    Cut,
}

/// Hook that is called when a file of the durable path has failed. It writes a message and ends the process.
/// In tests it records the call.
pub type StopHook = Arc<dyn Fn(&dyn fmt::Display) + Send + Sync>;

/// Hook that is called at every failpoint.
pub type FailpointHook = Arc<dyn Fn(Point) + Send + Sync>;
