//! The audit log: who connected, who failed to, what ran and which tables it used, in the form of MariaDB's
//! plugin `server_audit`.
//!
//! # Concepts
//! - An *event* is one line: `host,user,from,connection,statement,operation,database,object,code`. The time
//!   in front of it is the sink's.
//! - [`Rules`] say which events are wanted: `server_audit_events`, `_incl_users`, `_excl_users`. They are
//!   made anew when one of these settings changes.
//! - The *sink* ([`AuditSink`]) is the server's: a file that rotates, or syslog.
//! - Passwords never reach a line: `text` masks them.
//!
//! # The way of an event
//! ```text
//! statement begins -> SessionState::audit_begins: a number       (one load when the log is off)
//! tables are locked -> AuditTables: READ, WRITE, CREATE, ..
//! statement has ended -> SessionState::audit_ended: QUERY
//! Rules -> line -> AuditSink::write
//! ```
//! The line is written before the client has its answer, so a server that is killed has told of all that it
//! answered. A write is a copy into the system's page cache.
//!
//! # On failure
//! A line that cannot be written is counted (`Server_audit_writes_failed`) and lost; the statement goes on.
//!
//! # Differences to the plugin
//! Statements are numbered by the log, from 1. TABLE events are about the clients' own tables, not about
//! those in which MariaDB keeps statistics and accounts. CHANGEUSER tells the new user and database.
//! Passwords are masked wherever they stand, in statements inside of texts, too. QUERY_DCL has ALTER USER and
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

/// Where lines go; the server around the database has it.
pub trait AuditSink: Send + Sync {
    /// Writes a line that happened at this time. It has no end of line yet.
    fn write(&self, wall_us: u64, line: &[u8]);
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    Connect,
    FailedConnect,
    ChangeUser,
    Disconnect,
}

/// Of whom an event tells.
#[derive(Clone, Copy, Debug)]
pub struct Client<'c> {
    pub id: ConnectionId,
    pub user: &'c str,
    pub host: &'c str,
}

/// The log as statements see it. Rules and sink are the server's to set.
#[derive(Default)]
pub struct Audit {
    /// Bits of [`EventKind`]; 0 while the log is off.
    wanted: AtomicU8,
    rules: RwLock<Arc<Rules>>,
    sink: RwLock<Option<Arc<dyn AuditSink>>>,
    last_statement: AtomicU64,
}

impl Audit {
    /// From now on lines go there; None: the log is off.
    pub fn set_sink(&self, sink: Option<Arc<dyn AuditSink>>) {
        let is_on = sink.is_some();
        *self.sink.write() = sink;
        let wanted = if is_on { self.rules.read().kinds() } else { 0 };
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// A setting of the rules has changed.
    pub fn set_rules(&self, globals: &Globals) {
        let rules = Arc::new(Rules::of(globals));
        let kinds = rules.kinds();
        *self.rules.write() = rules;
        let is_on = self.sink.read().is_some();
        self.wanted.store(if is_on { kinds } else { 0 }, Ordering::Relaxed);
    }

    /// Whether anything is told at all.
    pub fn is_on(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    fn wants(&self, kind: EventKind) -> bool {
        self.wanted.load(Ordering::Relaxed) & kind as u8 != 0
    }

    /// Tells of a connection, with the code of what became of it.
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

/// `host,user,from,connection,statement,OPERATION,`
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
