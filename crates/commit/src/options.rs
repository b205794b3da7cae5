//! Settings that a server opens its commit path with.

use std::path::PathBuf;

use cohort_base::ServerId;
use cohort_binlog::BinlogName;
use cohort_binlog::event::Checksum;
use cohort_log::LogOptions;

use crate::env::{FailpointHook, StopHook};
use crate::logs::LogLayout;
use crate::pace::PaceOptions;

/// Settings of the binlog.
#[derive(Clone, Debug)]
pub struct BinlogSettings {
    pub name: BinlogName,
    /// `max_binlog_size`
    pub file_bytes_max: u64,
    pub server_id: ServerId,
    /// In the format description.
    pub server_version: String,
    pub checksum: Checksum,
    /// Verify the checksums of all files at start, not of the last ones only.
    pub is_verifying_all: bool,
}

/// Settings of the commit path.
#[derive(Clone)]
pub struct CoordinatorOptions {
    /// Where log segments, the control file and spill files lie.
    pub datadir: PathBuf,
    pub log: LogOptions,
    /// Of a new data directory; another one must have been made with it.
    pub layout: LogLayout,
    /// None: `skip-log-bin`.
    pub binlog: Option<BinlogSettings>,
    pub pace: PaceOptions,
    pub is_early_release: bool,
    /// What a start after a crash does with transactions that no replica is known to have (semi-synchronous
    /// replication).
    pub unreleased: Unreleased,
    /// A checkpoint starts when a participant that does not say how many it wants has so many bytes of redo
    /// that are not durable.
    pub checkpoint_bytes: u64,
    /// No participant gathers more, whatever it says.
    pub checkpoint_bytes_max: u64,
    /// Writes are refused while the file system has less free space than this.
    pub free_bytes_min: u64,
    /// Whether threads run (the materialiser, the checkpointer); simulations call `tick` themselves.
    pub has_threads: bool,
    pub on_stop: StopHook,
    pub failpoint: Option<FailpointHook>,
}

/// Transactions at the log's end that were hardened, but held back by the gate: no client was told of them,
/// no plain read saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unreleased {
    /// They are committed (I2): this server goes on as the source.
    #[default]
    Keep,
    /// They are cut off log, binlog and engines alike: another server has become the source, without them
    /// (`init_rpl_role=SLAVE`).
    Cut,
}
