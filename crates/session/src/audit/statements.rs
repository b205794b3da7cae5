//! Audit events of a session's connection and statements.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_sql::ParseMode;

use super::rules::{EventKind, Rules};
use super::{Client, ConnectionEvent, head, text};
use crate::session_state::SessionState;

impl SessionState {
    fn client(&self) -> Client<'_> {
        let info = &self.info;
        Client { id: info.id, user: &info.user, host: &info.host }
    }

    /// Returns whether the audit log contains one of these kinds of events, and those of this session.
    #[inline]
    pub(super) fn wants_audit(&self, kinds: u8) -> bool {
        !self.identity.is_setup && self.db.audit.wanted.load(Ordering::Relaxed) & kinds != 0
    }

    /// Starts a statement. If statements or tables are logged, assigns a statement number and returns true.
    #[inline]
    pub fn audit_begins(&self) -> bool {
        if !self.wants_audit(EventKind::OF_STATEMENTS) {
            return false;
        }
        let number = self.db.audit.last_statement.fetch_add(1, Ordering::Relaxed) + 1;
        self.log.statement.set(number);
        self.log.schema.borrow_mut().clone_from(&self.current_schema);
        true
    }

    /// Logs the end of the statement, with its error code or 0.
    pub fn audit_ended(&self, text: &[u8], code: u16) {
        let db = &self.db;
        let rules = Arc::clone(&db.audit.rules.read());
        let client = self.client();
        let mode = self.settings.parse.mode;
        let is_wanted = self.log.always_audits.take() || rules.wants_user(client.user);
        if !self.wants_audit(EventKind::Statement as u8) || !is_wanted || !rules.wants_statement(text, mode) {
            return;
        }
        let mut line = head(&db.globals, client, self.log.statement.get(), "QUERY");
        self.put_statement(&mut line, text, (&rules, mode));
        line.extend_from_slice(format!(",{code}").as_bytes());
        db.audit.write(db.clock.wall_us(), &line);
    }

    fn put_statement(&self, line: &mut Vec<u8>, text: &[u8], (rules, mode): (&Rules, ParseMode)) {
        // A statement that drops the current database is logged under that database.
        let before = self.log.schema.borrow();
        let schema = self.current_schema.as_deref().or(before.as_deref());
        text::put_name(line, schema.unwrap_or_default());
        line.extend_from_slice(b",'");
        text::put_statement(line, text.trim_ascii(), rules.text_bytes_max, mode);
        line.push(b'\'');
    }

    /// Logs an event of the session's connection. The server's own sessions have none.
    pub fn audit_connection(&self, event: ConnectionEvent, code: u16) {
        if self.identity.acts_for_server {
            return;
        }
        let db = &self.db;
        let schema = match event {
            ConnectionEvent::Connect | ConnectionEvent::ChangeUser => self.info.schema.as_deref(),
            ConnectionEvent::FailedConnect | ConnectionEvent::Disconnect => self.current_schema.as_deref(),
        };
        let of = (event, db.clock.wall_us());
        db.audit.connection(&db.globals, of, self.client(), (schema.unwrap_or_default(), code));
    }
}
