//! Copies of a running server over a connection: the stream of its backup becomes a directory.
//!
//! | module | concept |
//! |---|---|
//! | `client` | the connection: login, TLS, statements, rows one by one |
//! | `stream` | the stream of a backup, as pieces of files |
//! | `receiver` | the receiver of the pieces: checks them and writes them into a target |
//! | `replace` | a clone takes the place of a server's data, in one step |
//! | `target` | the directory that is filled, and the state that a failure leaves |
//! | `failure` | failures by the caller's next step |
//!
//! `cohort-backup` and the statement CLONE INSTANCE use it.

pub mod client;
pub mod failure;
mod receiver;
pub mod replace;
mod stream;
pub mod target;

pub use failure::Failure;
pub use receiver::{MANIFEST_BYTES_MAX, Receiver};
pub use stream::{Sink, stream};
pub use target::{Target, discard};
