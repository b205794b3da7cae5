//! The heart: the stages of a commit, recovery, checkpoints.
//!
//! | module | concept |
//! |---|---|
//! | `pipeline` | [`Pipeline`]: the whole protocol |
//! | `seam` | [`CommitEnv`]: what its stages do |
//! | `stage` | [`Stage`] and the types of a transaction's way through them |
//! | `pace` | how long a group is left open for more |
//! | `returns` | when clients come back, and what waiting for them gains |
//! | `timekeeper` | the thread that closes groups whose time is up |
//! | `env` | what the stages do in a server |
//! | `sync` | the locks and atomics of `pipeline` and `pace`, replaced in model checks |
//! | `request` | [`CommitRequest`]: what a transaction brings to its commit |
//! | `coordinator` | [`Coordinator`]: the server's commit path, as its sessions see it |
//! | `options` | [`CoordinatorOptions`]: what it is opened with |
//! | `open` | the start: recovery, and what it hands to the pipeline |
//! | `open_logs` | which logs a data directory has, and whether they belong together |
//! | `prepare` | all that can fail in a commit: spill, stage, room in the log |
//! | `binlog` | the stream of events, its files, and what is done to them outside of transactions |
//! | `error` | [`CommitError`], [`CheckpointError`] |
//! | `logs` | [`LogLayout`]: one log for all, or one for each engine |
//! | `separate` | the classical layout: logs of the engines, decided by the binlog |
//! | `separate_recovery` | its recovery table and the passes over its logs |
//! | `syncer` | the thread that syncs a log beside the leader |
//! | `convert` | from one layout to the other |
//! | `fault` | what an I/O error means: refuse or stop |
//! | `record` | payloads of log records |
//! | `recovery` | the recovery table and the pass over the log |
//! | `purge` | [`PurgeRule`]: removal of old binlog files |
//! | `reset` | RESET MASTER: the binlog begins anew |
//! | `redo_files` | redo that engines write into files themselves |
//! | `replay` | redo given to the participants beside that pass |
//! | `completion` | the binary log's files, opened and completed beside it |
//! | `worker` | the threads of these two |
//! | `checkpoint` | checkpoints, and the watch over space |
//! | `metrics` | [`Metrics`]: counters, and the times of each [`Step`] |
//! | `status` | their lines in SHOW STATUS |
//! | `xa` | [`XaBranches`]: XA transactions between their two phases |
//! | `xa_body` | [`XaBody`]: what the first phase makes durable |
//! | `xa_file` | where checkpoints keep that |

mod binlog;
mod checkpoint;
mod completion;
mod convert;
mod coordinator;
mod env;
mod error;
mod fault;
mod logs;
mod metrics;
mod open;
mod open_logs;
mod options;
mod pace;
mod pipeline;
mod prepare;
mod purge;
mod record;
mod recovery;
mod redo_files;
mod replay;
mod request;
mod reset;
mod returns;
mod rotation_room;
mod seam;
mod separate;
mod separate_recovery;
mod stage;
mod status;
mod sync;
mod syncer;
mod timekeeper;
mod worker;
mod xa;
mod xa_body;
mod xa_file;

pub use convert::{Converted, convert, layout_on_disk, make_logs};
pub use coordinator::{Coordinator, LogPositions};
pub use env::{AppliedMark, FailpointHook, ReplicaGate, StopHook};
pub use error::{CheckpointError, CommitError, HardenError};
pub use logs::LogLayout;
pub use metrics::{Metrics, Step, StepSnapshot};
pub use options::{BinlogSettings, CoordinatorOptions, Unreleased};
pub use pace::{ClientPace, Pace, PaceOptions, Triggers};
pub use pipeline::Pipeline;
pub use purge::{HeldBack, PurgeError, PurgeRule, Purged};
pub use recovery::{Recovered, RecoveryError, Row};
pub use request::{BinlogPart, CommitRequest, GroupKind, GtidHints, Prepared};
pub use reset::ResetError;
pub use seam::{CommitEnv, Stopped, Wake};
pub use separate::Overlap;
pub use stage::{Gate, Hardened, Ordered, Point, Stage};
pub use xa::{ReaderEnd, XA, XaBranches, XaHeld, XaListed, XaTaken, XaTaker, is_same_branch};
pub use xa_body::{XaBody, XaBodyBuilder, XaHead, XaWrite, end_redo};
