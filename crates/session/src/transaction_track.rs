//! Transaction tracking for clients (`session_track_transaction_info`): the transaction's state as eight
//! letters, and its characteristics as the statements that start such a transaction.
//!
//! # When
//! The state is sent with the next OK packet if it differs from the state sent last. The characteristics are
//! sent when a transaction begins or ends, and when SET TRANSACTION changes the next one.
//!
//! # Missing
//! Reads and writes of engines without transactions (`r`, `w`): there are no such engines.

use std::cell::{Cell, RefCell};

use cohort_sql::ast;
use cohort_trx::AccessMode;

/// The setting `session_track_transaction_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrackTransaction {
    #[default]
    Off,
    State,
    Characteristics,
}

/// The flags that the letters of the state stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionState(u8);

impl TransactionState {
    const EXPLICIT: TransactionState = TransactionState(1);
    const IMPLICIT: TransactionState = TransactionState(2);
    /// A table was read.
    pub const READ: TransactionState = TransactionState(4);
    /// A table was written, or read for a change.
    pub const WRITE: TransactionState = TransactionState(8);
    /// A statement was not safe for statement-based replication.
    pub const UNSAFE: TransactionState = TransactionState(16);
    /// Rows were sent.
    pub const ROWS: TransactionState = TransactionState(32);
    const LOCKED_TABLES: TransactionState = TransactionState(64);
    const SNAPSHOT: TransactionState = TransactionState(128);

    pub const fn with(self, other: TransactionState) -> TransactionState {
        TransactionState(self.0 | other.0)
    }

    const fn has_any(self, other: TransactionState) -> bool {
        self.0 & other.0 != 0
    }

    fn is_running(self) -> bool {
        self.has_any(TransactionState::EXPLICIT.with(TransactionState::IMPLICIT))
    }

    /// Returns the text that clients get.
    fn text(self) -> String {
        let letter = |states: TransactionState, letter| if self.has_any(states) { letter } else { '_' };
        let is_explicit = self.has_any(TransactionState::EXPLICIT);
        [
            if is_explicit { 'T' } else { letter(TransactionState::IMPLICIT, 'I') },
            '_',
            letter(TransactionState::READ.with(TransactionState::SNAPSHOT), 'R'),
            '_',
            letter(TransactionState::WRITE, 'W'),
            letter(TransactionState::UNSAFE, 's'),
            letter(TransactionState::ROWS, 'S'),
            letter(TransactionState::LOCKED_TABLES, 'L'),
        ]
        .iter()
        .collect()
    }
}

/// The changes to send with the next OK packet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TransactionNews {
    pub state: Option<String>,
    pub characteristics: Option<String>,
}

/// Tracks the session's transactions while the client has asked for it.
#[derive(Default)]
pub struct TransactionTracker {
    wanted: Cell<TrackTransaction>,
    now: Cell<TransactionState>,
    sent: Cell<TransactionState>,
    /// Send the state even if it has not changed.
    sends_state: Cell<bool>,
    sends_characteristics: Cell<bool>,
    /// Characteristics of the current or the next transaction.
    isolation: RefCell<Option<ast::IsolationLevel>>,
    access: Cell<Option<AccessMode>>,
}

impl TransactionTracker {
    /// Exchanges the state with that of another tracker.
    pub(crate) fn exchange(&self, other: &TransactionTracker) {
        let TransactionTracker { wanted, now, sent, sends_state, sends_characteristics, isolation, access } =
            self;
        wanted.swap(&other.wanted);
        now.swap(&other.now);
        sent.swap(&other.sent);
        sends_state.swap(&other.sends_state);
        sends_characteristics.swap(&other.sends_characteristics);
        isolation.swap(&other.isolation);
        access.swap(&other.access);
    }

    /// Returns whether tracking is on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.wanted.get() != TrackTransaction::Off
    }

    /// Applies a new value of the setting.
    pub fn set(&self, wanted: TrackTransaction) {
        if wanted != TrackTransaction::Off {
            if !self.is_on() {
                // What happened while tracking was off is unknown.
                self.now.set(TransactionState::default());
                self.sent.set(TransactionState::default());
                self.sends_state.set(true);
            }
            if wanted == TrackTransaction::Characteristics {
                self.sends_characteristics.set(true);
            }
        }
        self.wanted.set(wanted);
    }

    /// Starts a transaction explicitly, for BEGIN and similar statements.
    pub fn begin(&self, access: Option<AccessMode>, has_snapshot: bool) {
        let snapshot = if has_snapshot { TransactionState::SNAPSHOT } else { TransactionState::default() };
        self.now.set(TransactionState::EXPLICIT.with(snapshot));
        self.access.set(access.or(self.access.get()));
        self.sends_characteristics.set(true);
    }

    /// Starts a transaction with the same characteristics, for AND CHAIN.
    pub fn chain(&self) {
        self.end(true);
        self.begin(None, false);
    }

    /// Records SET TRANSACTION for the next transaction.
    pub fn next(&self, isolation: Option<ast::IsolationLevel>, access: Option<AccessMode>) {
        if isolation.is_some() {
            *self.isolation.borrow_mut() = isolation;
        }
        self.access.set(access.or(self.access.get()));
        self.sends_characteristics.set(true);
    }

    /// Records an action of a statement. Outside of a transaction it is ignored, unless autocommit is off:
    /// then using a table starts a transaction.
    pub fn add(&self, what: TransactionState, autocommit: bool) {
        let mut now = self.now.get();
        let uses = what.has_any(TransactionState::READ.with(TransactionState::WRITE));
        if !now.is_running() && !autocommit && uses {
            now = now.with(TransactionState::IMPLICIT);
        }
        if now.is_running() {
            self.now.set(now.with(what));
        }
    }

    /// Updates the state at the end of a statement: whether a transaction is active, whether SET TRANSACTION
    /// still applies to the next one, and whether LOCK TABLES is in force.
    pub fn update_at_end(&self, in_transaction: bool, has_next: bool, has_locked_tables: bool) {
        if !in_transaction {
            self.end(has_next);
        }
        let now = TransactionState(self.now.get().0 & !TransactionState::LOCKED_TABLES.0);
        let locked =
            if has_locked_tables { TransactionState::LOCKED_TABLES } else { TransactionState::default() };
        self.now.set(now.with(locked));
    }

    /// Records the end of the transaction. `has_next`: a SET TRANSACTION still applies to the next one.
    pub fn end(&self, has_next: bool) {
        let now = self.now.get();
        if now.has_any(TransactionState::EXPLICIT) {
            self.sends_characteristics.set(true);
        }
        self.now.set(TransactionState(now.0 & TransactionState::LOCKED_TABLES.0));
        if !has_next {
            let (isolation, access) = (self.isolation.take(), self.access.take());
            if isolation.is_some() || access.is_some() {
                self.sends_characteristics.set(true);
            }
        }
    }

    /// Takes the changes since the last call.
    pub(crate) fn take_news(&self) -> TransactionNews {
        let now = self.now.get();
        let is_new = self.sends_state.take() || self.sent.replace(now) != now;
        let characteristics = self.sends_characteristics.take();
        let wants_both = self.wanted.get() == TrackTransaction::Characteristics;
        TransactionNews {
            state: is_new.then(|| now.text()),
            characteristics: (characteristics && wants_both).then(|| self.characteristics()),
        }
    }

    /// Returns the statements that start such a transaction.
    fn characteristics(&self) -> String {
        let mut parts = Vec::new();
        if let Some(level) = *self.isolation.borrow() {
            let level = match level {
                ast::IsolationLevel::ReadUncommitted => "READ UNCOMMITTED",
                ast::IsolationLevel::ReadCommitted => "READ COMMITTED",
                ast::IsolationLevel::RepeatableRead => "REPEATABLE READ",
                ast::IsolationLevel::Serializable => "SERIALIZABLE",
            };
            parts.push(format!("SET TRANSACTION ISOLATION LEVEL {level};"));
        }
        let access = self.access.get().map(|access| match access {
            AccessMode::ReadOnly => "READ ONLY",
            AccessMode::ReadWrite => "READ WRITE",
        });
        let now = self.now.get();
        if now.has_any(TransactionState::EXPLICIT) {
            let snapshot = now.has_any(TransactionState::SNAPSHOT).then_some("WITH CONSISTENT SNAPSHOT");
            let options: Vec<&str> = snapshot.into_iter().chain(access).collect();
            let space = if options.is_empty() { "" } else { " " };
            parts.push(format!("START TRANSACTION{space}{};", options.join(", ")));
        } else if let Some(access) = access {
            parts.push(format!("SET TRANSACTION {access};"));
        }
        parts.join(" ")
    }
}
