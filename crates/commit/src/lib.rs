//! The heart: the stages of a commit, recovery, checkpoints.
//!
//! | module | concept |
//! |---|---|
//! | `request` | [`CommitRequest`]: what a transaction brings to its commit |
//! | `coordinator` | [`Coordinator`]: the server's commit path over the real log, binlog and participants |

mod coordinator;
mod pace;
mod pipeline;
mod stage;
mod request;

pub use coordinator::{CommitError, Coordinator};
pub use pace::{ClientPace, PaceOptions};
pub use pipeline::{CommitEnv, Pipeline, Stopped, Wake};
pub use stage::{Point, Stage};
pub use request::{BinlogPart, CommitRequest, GroupKind, Prepared};
