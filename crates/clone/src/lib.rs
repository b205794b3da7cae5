//! Copies of a running server over a connection: the stream of its backup becomes a directory.
//!
//! | module | concept |
//! |---|---|
//! | `wire` | the client's side of a connection: packets, TLS, login |
//! | `client` | a connection with statements, whose rows come one by one |
//! | `stream` | the stream of a backup, as pieces of files |
//! | `receiver` | the receiver of the pieces: checks them and writes them into a target |
//! | `replace` | a clone takes the place of a server's data, in one step |
//! | `target` | the directory that is filled, and the state that a failure leaves |
//! | `failure` | failures by the caller's next step |
//!
//! `cohort-backup` and the statement CLONE INSTANCE use it, and replicas use `wire`.

pub mod client;
pub mod failure;
mod receiver;
pub mod replace;
mod stream;
pub mod target;
pub mod wire;

pub use failure::Failure;
pub use receiver::{MANIFEST_BYTES_MAX, Receiver};
pub use stream::{Sink, stream};
pub use target::{Target, discard};
