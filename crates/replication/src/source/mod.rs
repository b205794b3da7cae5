//! A source: sends its binary log to replicas, and to tools that read like replicas.
//!
//! | module | concept |
//! |---|---|
//! | `request` | [`DumpRequest`]: the options of a dump, from COM_BINLOG_DUMP and variables set before it |
//! | `start` | start of a dump: by file and offset, or the file with the first GTID that the replica lacks |
//! | `feed` | [`Feed`]: the durable binlog stream from a position on, read from memory or from files |
//! | `filter` | filter of events: groups that the replica has, groups beyond UNTIL |
//! | `made_up` | artificial events, which are in no file: fake ROTATE, heartbeat, dummies for old replicas |
//! | `outbox` | send buffer for packets to one replica |
//! | `dump` | one dump from start to end |
//! | `registry` | [`Source`]: registered replicas and running dumps |
//! | `semi_sync` | [`SemiSync`]: commits that wait for a replica |
//! | `errors` | error 1236, with the texts that tools look for |

mod dump;
mod errors;
mod feed;
mod filter;
mod made_up;
mod outbox;
mod registry;
mod request;
mod semi_sync;
mod start;

pub use dump::{DumpEnd, DumpObserver, DumpState, run_dump};
pub use feed::{Feed, FeedStep};
pub use outbox::{LinkGone, ReplicaLink};
pub use registry::{DumpHandle, ReplicaHost, Source, WhyEnd};
pub use request::{
    Annotations, AtEnd, Capability, ChecksumWish, DumpRequest, GtidRequest, MarkedEvents, SemiSyncWish,
    StartAt,
};
pub use semi_sync::{SemiSync, SemiSyncCounters, SemiSyncLog, SemiSyncNews, SemiSyncOptions};
