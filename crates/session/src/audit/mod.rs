//! The audit log: logins, failed logins, statements and the tables they use, in the format of MariaDB's
//! plugin `server_audit`.
//!
//! # Concepts
//! - An *event* is one line: `host,user,from,connection,statement,operation,database,object,code`. The sink
//!   adds the time in front.
//! - The [`Rules`] select which events are logged: `server_audit_events`, `_incl_users`, `_excl_users`. They
//!   are rebuilt when one of these settings changes.
//! - The *sink* ([`AuditSink`]) belongs to the server: a rotated file, or syslog.
//! - Passwords never reach a line: `text` masks them.
//!
//! # The path of an event
//! ```text
//! statement begins -> SessionState::audit_begins: a number       (one load when the log is off)
//! tables are locked -> AuditTables: READ, WRITE, CREATE, ..
//! statement has ended -> SessionState::audit_ended: QUERY
//! Rules -> line -> AuditSink::write
//! ```
//! The line is written before the client gets its reply, so when the server is killed, every statement it has
//! replied to is in the log. A write is a copy into the kernel's page cache.
//!
//! # On failure
//! A line that cannot be written is counted (`Server_audit_writes_failed`) and lost; the statement continues.
//!
//! # Differences from the plugin
//! The log numbers statements itself, from 1. TABLE events cover the clients' own tables, not the tables in
//! which MariaDB keeps statistics and accounts. CHANGEUSER shows the new user and database. Passwords are
//! masked wherever they occur, including in statements inside of strings. QUERY_DCL includes ALTER USER and
//! SET PASSWORD.

mod rules;
mod statements;
mod tables;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use cohort_base::ConnectionId;
use cohort_config::{Globals, VarId};
use parking_lot::RwLock;
use rules::{EventKind, Rules};

pub use rules::adjusted_users;

pub use tables::{AuditTables, RowChange, TableUse, changed_tables};

/// The destination of lines. The server implements this.
pub trait AuditSink: Send + Sync {
    /// Writes the line of an event that happened at this time. The line has no line terminator yet.
    fn write(&self, wall_us: u64, line: &[u8]);
}

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    Connect,
    FailedConnect,
    ChangeUser,
    Disconnect,
}

/// The client that an event belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Client<'c> {
    pub id: ConnectionId,
    pub user: &'c str,
    pub host: &'c str,
}

/// The log as statements use it. The server sets the rules and the sink.
#[derive(Default)]
pub struct Audit {
    /// Bits of [`EventKind`]; 0 while the log is off.
    wanted: AtomicU8,
    rules: RwLock<Arc<Rules>>,
    sink: RwLock<Option<Arc<dyn AuditSink>>>,
    last_statement: AtomicU64,
}

impl Audit {
    /// Sends lines to this sink from now on. `None` switches the log off.
    pub fn set_sink(&self, sink: Option<Arc<dyn AuditSink>>) {
        let is_on = sink.is_some();
        *self.sink.write() = sink;
        let wanted = if is_on { self.rules.read().kinds() } else { 0 };
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// Rebuilds the rules after a setting has changed.
    pub fn set_rules(&self, globals: &Globals) {
        let rules = Arc::new(Rules::of(globals));
        let kinds = rules.kinds();
        *self.rules.write() = rules;
        let is_on = self.sink.read().is_some();
        self.wanted.store(if is_on { kinds } else { 0 }, Ordering::Relaxed);
    }

    /// Returns whether any events are logged.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn wants(&self, kind: EventKind) -> bool {
        self.wanted.load(Ordering::Relaxed) & kind as u8 != 0
    }

    /// Logs an event of a connection, with its error code.
    pub fn connection(
        &self,
        globals: &Globals,
        (event, wall_us): (ConnectionEvent, u64),
        client: Client<'_>,
        (schema, code): (&str, u16),
    ) {
        if !self.wants(EventKind::Connection) {
            return;
        }
        let operation = match event {
            ConnectionEvent::Connect => "CONNECT",
            ConnectionEvent::FailedConnect => "FAILED_CONNECT",
            ConnectionEvent::ChangeUser => "CHANGEUSER",
            ConnectionEvent::Disconnect => "DISCONNECT",
        };
        let mut line = head(globals, client, 0, operation);
        text::put_name(&mut line, schema);
        line.extend_from_slice(format!(",,{code}").as_bytes());
        self.write(wall_us, &line);
    }

    fn write(&self, wall_us: u64, line: &[u8]) {
        if let Some(sink) = self.sink.read().as_ref() {
            sink.write(wall_us, line);
        }
    }
}

/// Formats the fields that all events have: `host,user,from,connection,statement,OPERATION,`.
fn head(globals: &Globals, client: Client<'_>, statement: u64, operation: &str) -> Vec<u8> {
    let mut line = Vec::with_capacity(128);
    text::put_name(&mut line, globals.text(VarId::Hostname).as_deref().unwrap_or_default());
    for name in [client.user, client.host] {
        line.push(b',');
        text::put_name(&mut line, name);
    }
    line.extend_from_slice(format!(",{},{statement},{operation},", client.id.0).as_bytes());
    line
}
