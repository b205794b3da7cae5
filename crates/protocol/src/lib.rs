//! The MySQL client/server protocol: bytes to commands, results to bytes. No sockets, no threads.
//!
//! | module | concept |
//! |---|---|
//! | `sink` | [`ResultSink`]: where a statement's results go; the seam between executor and connection |
//! | `column_meta` | [`ColumnMeta`]: what a client is told about a result column |
//! | `process` | [`Process`], [`Processes`]: who is connected and what they do; KILL |

mod column_meta;
mod process;
mod sink;

pub use column_meta::{ColumnFlags, ColumnMeta, TypeCode};
pub use process::{Kill, Killed, Phase, Process, ProcessRow, Processes};
pub use sink::{OkInfo, ResultSink, StatusFlags};
