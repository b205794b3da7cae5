//! The parts of the server that the console uses.

use std::sync::Arc;

use cohort_observe::History;
use cohort_tls::TlsStream;
use serde_json::Value;

use crate::http::Peer;

/// An error of the server, as a client of SQL would get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub number: u16,
    pub message: String,
}

/// The rows of a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// Rows or texts were left out.
    pub is_cut: bool,
}

/// The SQL session of an account that has logged in. Dropping it ends it.
pub trait Session: Send {
    /// Returns user and host of the account.
    fn account(&self) -> (&str, &str);

    /// Returns whether the account could still log in from here as it did: it exists, is not locked, has the
    /// same password, and its session was not killed.
    fn is_valid(&self, peer: &Peer) -> bool;

    /// Returns whether KILL has ended the session.
    fn is_killed(&self) -> bool;

    /// Runs a statement.
    fn run(&mut self, sql: &str) -> Result<Rows, Refused>;
}

/// The server.
pub trait Host: Send + Sync {
    /// Returns the metrics in Prometheus' text format.
    fn metrics(&self) -> String;

    /// Returns the names and states for the page's head, and the health. They reveal no data.
    fn facts(&self) -> Value;

    /// Returns the history, if it is recorded.
    fn history(&self) -> Option<&Arc<History>>;

    /// Begins TLS with the bytes of a client that have arrived. Returns `None` without a certificate.
    fn accept_tls(&self, early: Vec<u8>) -> Option<TlsStream>;

    /// Returns the token of scrapers, if there is one.
    fn token(&self) -> Option<Vec<u8>>;

    /// Checks the password of an account, without a session.
    fn check_password(&self, user: &str, password: &str, peer: &Peer) -> Result<(), Refused>;

    /// Opens the session of an account.
    fn log_in(&self, user: &str, password: &str, peer: &Peer) -> Result<Box<dyn Session>, Refused>;
}
