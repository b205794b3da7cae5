//! HTTP/1.1 server over `poll`: one thread, TLS and plain text on one port, everything bounded.
//!
//! | file | concept |
//! |---|---|
//! | `request` | parses requests with `httparse` |
//! | `response` | status, headers and body of a response |
//! | `connection` | states of a connection; its records, if it is encrypted |
//! | `server` | the loop, the table of connections, answers of the worker thread |
//!
//! # Limits
//! | what | limit | when exceeded |
//! |---|---|---|
//! | connections served at the same time | [`Server::connections_max`] | the oldest that has sent no request for a second is closed, else status 503 |
//! | connections that are rejected at the same time | the same number | closed |
//! | a request's line and headers | [`HEAD_BYTES_MAX`] | status 431 |
//! | headers | [`HEADERS_MAX`] | status 431 |
//! | a body | [`BODY_BYTES_MAX`] | status 413 |
//! | from accept, or from the end of a response, to the end of a request | [`READ_MAX`], [`IDLE_MAX`] | closed |
//! | until a response is taken | [`WRITE_MAX`] | closed |
//!
//! A connection is kept open only if the client sends `Connection: keep-alive`, as browsers do.

mod connection;
mod request;
mod response;
mod server;

use std::time::Duration;

pub use connection::Peer;
pub use request::{Method, Request};
pub use response::{Body, Response};
pub use server::{Answers, Outcome, Server};

/// Maximum size of request line and headers.
pub const HEAD_BYTES_MAX: usize = 8 << 10;
/// Maximum number of headers.
pub const HEADERS_MAX: usize = 64;
/// Maximum size of a body.
pub const BODY_BYTES_MAX: usize = 4 << 10;
/// Time for a first request, TLS handshake included.
pub const READ_MAX: Duration = Duration::from_secs(5);
/// Time that a connection may stay open without a request.
pub const IDLE_MAX: Duration = Duration::from_secs(30);
/// Time for the worker thread to answer.
pub const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Time for the client to take a response.
pub const WRITE_MAX: Duration = Duration::from_secs(10);
/// Time for the client to close its side.
pub const DRAIN_MAX: Duration = Duration::from_secs(2);

/// Returns the request of a text, for tests of the routes.
#[cfg(test)]
pub(crate) fn parsed(bytes: &[u8]) -> Option<Request> {
    match request::parse(bytes) {
        request::Parsed::Whole(request, _) => Some(*request),
        _ => None,
    }
}
