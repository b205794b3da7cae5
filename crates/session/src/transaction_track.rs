//! What a client is told of the session's transaction (`session_track_transaction_info`): its state in eight
//! letters, and the statements that begin one like it.
//!
//! # When
//! The state goes with the next OK packet whenever it is another one than was told last. Characteristics go
//! with it when a transaction begins or ends, or SET TRANSACTION says what the next one is.
//!
//! # Missing
//! Reads and writes of engines without transactions (`r`, `w`): there are none.

use std::cell::{Cell, RefCell};

use cohort_sql::ast;
use cohort_trx::AccessMode;

/// `session_track_transaction_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrackTransaction {
    #[default]
    Off,
    State,
    Characteristics,
}

/// Letters of the state.
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

    /// As clients get it.
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

/// What is to be told with the next OK packet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TransactionNews {
    pub state: Option<String>,
    pub characteristics: Option<String>,
}

/// Follows the session's transactions while somebody wants to know.
#[derive(Default)]
pub struct TransactionTracker {
    wanted: Cell<TrackTransaction>,
    now: Cell<TransactionState>,
    told: Cell<TransactionState>,
    /// The state is told although it is the same.
    tells_state: Cell<bool>,
    tells_characteristics: Cell<bool>,
    /// Of the transaction that runs, or of the next one.
    isolation: RefCell<Option<ast::IsolationLevel>>,
    access: Cell<Option<AccessMode>>,
}

impl TransactionTracker {
    /// Whether anything is followed.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.wanted.get() != TrackTransaction::Off
    }

    /// The setting was set.
    pub fn set(&self, wanted: TrackTransaction) {
        if wanted != TrackTransaction::Off {
            if !self.is_on() {
                // What went on before is not known.
                self.now.set(TransactionState::default());
                self.told.set(TransactionState::default());
                self.tells_state.set(true);
            }
            if wanted == TrackTransaction::Characteristics {
                self.tells_characteristics.set(true);
            }
        }
        self.wanted.set(wanted);
    }

    /// BEGIN and its like.
    pub fn begin(&self, access: Option<AccessMode>, has_snapshot: bool) {
        let snapshot = if has_snapshot { TransactionState::SNAPSHOT } else { TransactionState::default() };
        self.now.set(TransactionState::EXPLICIT.with(snapshot));
        self.access.set(access.or(self.access.get()));
        self.tells_characteristics.set(true);
    }

    /// AND CHAIN: another one like the one before.
    pub fn chain(&self) {
        self.end(true);
        self.begin(None, false);
    }

    /// SET TRANSACTION for the next one.
    pub fn next(&self, isolation: Option<ast::IsolationLevel>, access: Option<AccessMode>) {
        if isolation.is_some() {
            *self.isolation.borrow_mut() = isolation;
        }
        self.access.set(access.or(self.access.get()));
        self.tells_characteristics.set(true);
    }

    /// A statement did this. Outside of a transaction it counts for nothing, but without autocommit the use
    /// of a table begins one.
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

    /// What the statement's end shows: whether a transaction goes on, whether SET TRANSACTION still waits for
    /// one, whether LOCK TABLES is in force.
    pub fn settle(&self, in_transaction: bool, has_next: bool, has_locked_tables: bool) {
        if !in_transaction {
            self.end(has_next);
        }
        let now = TransactionState(self.now.get().0 & !TransactionState::LOCKED_TABLES.0);
        let locked =
            if has_locked_tables { TransactionState::LOCKED_TABLES } else { TransactionState::default() };
        self.now.set(now.with(locked));
    }

    /// The transaction has ended. `has_next`: what SET TRANSACTION said is still to come.
    pub fn end(&self, has_next: bool) {
        let now = self.now.get();
        if now.has_any(TransactionState::EXPLICIT) {
            self.tells_characteristics.set(true);
        }
        self.now.set(TransactionState(now.0 & TransactionState::LOCKED_TABLES.0));
        if !has_next {
            let (isolation, access) = (self.isolation.take(), self.access.take());
            if isolation.is_some() || access.is_some() {
                self.tells_characteristics.set(true);
            }
        }
    }

    /// What is new since it was asked last.
    pub(crate) fn take_news(&self) -> TransactionNews {
        let now = self.now.get();
        let is_new = self.tells_state.take() || self.told.replace(now) != now;
        let characteristics = self.tells_characteristics.take();
        let wants_both = self.wanted.get() == TrackTransaction::Characteristics;
        TransactionNews {
            state: is_new.then(|| now.text()),
            characteristics: (characteristics && wants_both).then(|| self.characteristics()),
        }
    }

    /// The statements that begin such a transaction.
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
