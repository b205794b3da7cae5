//! The commit path: the stages of a commit, recovery, checkpoints.
//!
//! | module | concept |
//! |---|---|
//! | `pipeline` | [`Pipeline`]: the whole protocol |
//! | `commit_env` | [`CommitEnv`]: the interface that implements its stages |
//! | `stage` | [`Stage`], and the types of a transaction in each of its states |
//! | `group_commit` | the group-commit policy: how long a group is left open for more transactions |
//! | `return_times` | return-time statistics of clients, and the gain of waiting for them |
//! | `group_commit_timer` | the group-commit timer thread |
//! | `env` | the implementation of the stages in a server |
//! | `sync` | the locks and atomics of `pipeline` and `group_commit`, replaced in model checks |
//! | `request` | [`CommitRequest`]: a transaction's redo, events and locks |
//! | `coordinator` | [`Coordinator`]: the server's commit path, used by its sessions |
//! | `options` | [`CoordinatorOptions`]: its settings |
//! | `open` | the start: recovery, and the making of the pipeline |
//! | `open_logs` | the logs of a data directory, and the check that they belong together |
//! | `prepare` | everything in a commit that can fail: spill, stage, reserve log space |
//! | `binlog` | the stream of events, its files, and operations on them outside of transactions |
//! | `error` | [`CommitError`], [`CheckpointError`] |
//! | `logs` | [`Logs`](logs::Logs): the logs as the commit path uses them; [`LogLayout`] |
//! | `shared` | one log for all |
//! | `separate` | the classical layout: logs of the engines, decided by the binlog |
//! | `reservations` | log space that a transaction has reserved |
//! | `separate_recovery` | the recovery table of that layout, and the passes over its logs |
//! | `syncer` | a thread that syncs a log while the leader syncs another |
//! | `convert` | conversion of one layout to the other |
//! | `fault` | severity of an I/O error: refuse or stop |
//! | `record` | payloads of log records |
//! | `recovery` | the recovery table and the pass over the log |
//! | `recovery_error` | the rows of the recovery table, and the reasons why a server does not start |
//! | `binlog_control` | rotation, checksums and GTID domains of the binlog |
//! | `purge` | [`PurgeRule`]: removal of old binlog files |
//! | `reset` | RESET MASTER: reset of the binlog |
//! | `archive` | [`Archiver`]: sends the log to a repository; [`apply_archive`]: restores to a point in time |
//! | `redo_files` | redo that engines write into files themselves |
//! | `replay` | replay of redo, concurrent with the recovery pass |
//! | `completion` | opening and completing the binlog files, concurrent with the recovery pass |
//! | `worker` | the thread that each of these two uses |
//! | `checkpoint`, `checkpoint_state` | checkpoints, and the check of free space |
//! | `rotation_reserve` | log space reserved for a change of the binlog file |
//! | `metrics` | [`Metrics`]: counters, and the times of each [`Step`] |
//! | `status` | their status variables |
//! | `xa` | [`XaBranches`]: XA transactions between their two phases |
//! | `xa_body` | [`XaBody`]: the data that the first phase makes durable |
//! | `xa_file` | the files of prepared branches, written by checkpoints |

mod archive;
mod backup;
mod binlog;
mod binlog_control;
mod checkpoint;
mod checkpoint_state;
mod commit_env;
mod completion;
mod convert;
mod coordinator;
mod env;
mod error;
mod fault;
mod group_commit;
mod group_commit_timer;
mod logs;
mod metrics;
mod open;
mod open_logs;
mod options;
mod pipeline;
mod prepare;
mod purge;
mod record;
mod recovery;
mod recovery_error;
mod redo_files;
mod replay;
mod request;
mod reservations;
mod reset;
mod return_times;
mod rotation_reserve;
mod separate;
mod separate_recovery;
mod shared;
mod stage;
mod status;
mod sync;
mod syncer;
mod utc;
mod worker;
mod xa;
mod xa_body;
mod xa_file;

pub use archive::{
    Applied, ApplyError, ApplyStop, ArchiveError, ArchiveLink, ArchiveSettings, ArchiveStats, Archiver,
    apply_archive,
};
pub use archive::{ArchiveSyncCounters, ArchiveSyncOptions};
pub use backup::{
    BackupControl, BackupError, BackupRequest, BackupSink, BackupStats, DirectorySink, KnownBackup,
    PIECE_BYTES, ParentBackup, ReplicaPositions, ServerIdentity,
};
pub use commit_env::{CommitEnv, Stopped, Wake};
pub use convert::{Converted, convert, layout_on_disk, make_logs};
pub use coordinator::{Coordinator, LogPositions};
pub use env::{AppliedMark, ReplicaGate};
pub use error::{CheckpointError, CommitError, FlushError, PurgeError};
pub use group_commit::{ClientCommits, GroupCommitOptions, GroupCommitPolicy, Triggers};
pub use logs::LogLayout;
pub use logs::Overlap;
pub use metrics::{Metrics, StageTrace, Step, StepSnapshot};
pub use options::{BinlogSettings, CoordinatorOptions, Unreleased};
pub use options::{FailpointHook, StopHook};
pub use pipeline::Pipeline;
pub use purge::{HeldBack, PurgeRule, Purged};
pub use recovery::Recovered;
pub use recovery_error::{RecoveryError, Row};
pub use request::{BinlogPart, CommitRequest, GroupKind, GtidHints, Prepared};
pub use reset::ResetError;
pub use stage::{Durable, Gate, Ordered, Point, Stage};
pub use utc::parse_time;
pub use xa::{ReaderEnd, XA, XaBranches, XaHeld, XaListed, XaTaken, XaTaker, is_same_branch};
pub use xa_body::{XaBody, XaBodyBuilder, XaHead, XaWrite, end_redo};
