//! The source side of replication: sends the binary log to replicas.
//!
//! | module | concept |
//! |---|---|
//! | `source` | [`Source`]: dump threads, the replicas they serve, semi-synchronous commits |

pub mod source;

pub use source::Source;
