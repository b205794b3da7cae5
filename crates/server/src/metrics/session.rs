//! SQL sessions of the console.
//!
//! A session counts as a connection of its account, is a row of the process list, and is in the audit log.
//! Its statements run on the console's thread. Before rows leave, the reply barrier is awaited (I5).

use std::sync::Arc;

use cohort_console::{Peer, Refused, Rows};
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_types::{SqlError, Value};
use serde_json::Value as Json;

use crate::backend::{Killed, Session};
use crate::connection;
use crate::listen::peer_over_tcp;
use crate::login::{Claim, holds};
use crate::shared::{Place, Shared};
use crate::tls::Encryption;

/// Maximum size of the texts of one result, and of one text.
const RESULT_BYTES_MAX: usize = 2 << 20;
const TEXT_BYTES_MAX: usize = 64 << 10;
const ROWS_MAX: usize = 2000;
/// Numbers that JavaScript holds exactly.
const EXACT_MAX: u64 = 1 << 53;

/// The user of a console, as login needs it.
pub(super) struct Owner {
    pub user: String,
    pub peer: connection::Peer,
    pub encryption: Option<Encryption>,
}

impl Owner {
    pub fn claim(&self, has_password: bool) -> Claim<'_> {
        Claim {
            user: &self.user,
            host: &self.peer.host,
            address: self.peer.address.as_deref(),
            encryption: self.encryption.as_ref(),
            // The console cannot change a password.
            knows_expired: false,
            has_password,
        }
    }
}

/// An error for the page.
pub(super) fn refused(error: &SqlError) -> Refused {
    Refused { number: error.number(), message: error.message.to_string() }
}

/// The session of an account.
pub(super) struct ConsoleSession {
    shared: Arc<Shared>,
    session: Box<dyn Session>,
    /// Its place among the connections. Freed after the session.
    _place: Place,
    owner: Owner,
    /// The account's name, and the stored password that was proven.
    account: (String, String),
    stored: Vec<u8>,
}

impl ConsoleSession {
    pub fn new(
        shared: Arc<Shared>,
        session: Box<dyn Session>,
        place: Place,
        owner: Owner,
        account: (String, String),
        stored: Vec<u8>,
    ) -> ConsoleSession {
        ConsoleSession { shared, session, _place: place, owner, account, stored }
    }

    /// Runs a statement, and waits until its result may leave.
    pub fn query(&mut self, sql: &str) -> Result<Rows, SqlError> {
        self.session.check_password()?;
        let mut sink = Collected::default();
        self.session.query(sql.as_bytes(), &mut sink);
        let backend = &self.shared.backend;
        let until = self.session.hold().until();
        if until > backend.acknowledged() {
            backend.lead();
            if !backend.wait_acknowledged(until) {
                return Err(SqlError::server_shutdown());
            }
        }
        if self.session.settle() {
            self.session.write_log();
        }
        match sink.error {
            Some(error) => Err(error),
            None => Ok(sink.rows),
        }
    }
}

impl cohort_console::Session for ConsoleSession {
    fn account(&self) -> (&str, &str) {
        (&self.account.0, &self.account.1)
    }

    fn is_killed(&self) -> bool {
        self.session.killed() != Killed::No
    }

    fn is_valid(&self, peer: &Peer) -> bool {
        let is_nameless = self.shared.globals.flag(cohort_config::VarId::SkipNameResolve);
        let known = peer_over_tcp(peer.address, is_nameless);
        let claim = Claim { host: &known.host, address: known.address.as_deref(), ..self.owner.claim(true) };
        !self.is_killed() && holds(&self.shared, &claim, (&self.account.0, &self.account.1), &self.stored)
    }

    fn run(&mut self, sql: &str) -> Result<Rows, Refused> {
        self.query(sql).map_err(|error| refused(&error))
    }
}

/// The rows of a result as JSON, within limits.
#[derive(Default)]
struct Collected {
    rows: Rows,
    bytes: usize,
    error: Option<SqlError>,
}

impl ResultSink for Collected {
    fn start(&mut self, columns: &[ColumnMeta], _: ResultHead) {
        self.rows = Rows::default();
        self.rows.columns = columns.iter().map(|column| column.name.to_string()).collect();
    }

    fn row(&mut self, values: &[Value]) {
        if self.bytes >= RESULT_BYTES_MAX || self.rows.rows.len() >= ROWS_MAX {
            self.rows.is_cut = true;
            return;
        }
        let row: Vec<Json> = values.iter().map(|value| cell(value, &mut self.rows.is_cut)).collect();
        self.bytes += row.iter().map(|cell| 16 + cell.as_str().map_or(0, str::len)).sum::<usize>();
        self.rows.rows.push(row);
    }

    fn finish(&mut self, _: StatusFlags, _: u16) {}

    fn ok(&mut self, _: &OkInfo<'_>) {}

    fn error(&mut self, error: &SqlError) {
        self.error = Some(error.clone());
    }

    fn is_dead(&self) -> bool {
        false
    }
}

/// Returns a value as JSON. Bytes that are no text are replaced, and long texts are cut.
fn cell(value: &Value, is_cut: &mut bool) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Int(n) if n.unsigned_abs() <= EXACT_MAX => (*n).into(),
        Value::UInt(n) if *n <= EXACT_MAX => (*n).into(),
        Value::Double(f) => (*f).into(),
        other => {
            let text = other.to_text();
            let kept = cohort_base::whole_chars(&text, TEXT_BYTES_MAX);
            *is_cut |= kept.len() < text.len();
            Json::String(kept.to_owned())
        }
    }
}
