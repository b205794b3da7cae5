//! A source sends its binary log to replicas and to tools that read like replicas.
//!
//! | module | concept |
//! |---|---|
//! | `request` | [`DumpRequest`]: what a replica asked for before and with COM_BINLOG_DUMP |
//! | `start` | where a dump starts: by file and offset, or the file that holds the first GTID the replica lacks |
//! | `feed` | [`Feed`]: the hardened stream from a place on, from memory or from files |
//! | `filter` | what a replica must not get: groups it has, groups beyond UNTIL |
//! | `made_up` | events that are in no file: fake ROTATE, heartbeat, dummies for old replicas |
//! | `outbox` | packets to one replica |
//! | `dump` | one dump from start to end |
//! | `registry` | [`Source`]: who is connected |
//! | `semi_sync` | [`SemiSync`]: commits that wait for a replica |
//! | `errors` | error 1236 with the texts that tools look for |

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
