//! Statements one by one: the last ones of each session, and of the server.
//!
//! Nothing is kept unless a consumer is on ([`Events::set`]), as in MariaDB by default. A statement then pays
//! one load. Only statements of clients are kept, not those of their programs.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::measured::Measured;
use crate::sync::{AtomicU32, Mutex, Ordering};

/// Statements that a session keeps, and that the server keeps.
const OF_A_SESSION: usize = 10;
const OF_THE_SERVER: usize = 1000;

/// A list of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Consumer {
    /// The running or last statement of each session.
    Current = 1,
    History = 2,
    HistoryLong = 4,
}

/// A statement that has ended.
#[derive(Clone, Debug, Default)]
pub struct StatementEvent {
    pub thread: u64,
    /// Number among the statements of its session.
    pub number: u64,
    pub kind: usize,
    /// By the monotonic clock.
    pub began_ns: u64,
    pub text: String,
    /// Hash and text of its digest.
    pub digest: Option<(u128, Arc<str>)>,
    pub schema: Option<Arc<str>>,
    /// Number, SQLSTATE and message.
    pub error: Option<(u16, String, String)>,
    pub measured: Measured,
}

/// The statement that a session runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running {
    pub number: u64,
    pub began_ns: u64,
    /// Counters of the session at its begin.
    pub rows_read: u64,
    pub lock_wait_ns: u64,
}

/// The statements that a session keeps.
#[derive(Debug, Default)]
pub struct SessionEvents(Mutex<Session>);

#[derive(Debug, Default)]
struct Session {
    last_number: u64,
    running: Option<Running>,
    ended: VecDeque<Arc<StatementEvent>>,
}

impl SessionEvents {
    /// Begins a statement, whose number is set.
    pub fn begin(&self, running: Running) {
        let mut session = self.0.lock();
        session.last_number += 1;
        session.running = Some(Running { number: session.last_number, ..running });
    }

    /// Returns the running statement, and the last ones, oldest first.
    pub fn list(&self) -> (Option<Running>, Vec<Arc<StatementEvent>>) {
        let session = self.0.lock();
        (session.running, session.ended.iter().cloned().collect())
    }

    /// Forgets the statements that have ended.
    pub fn clear(&self) {
        self.0.lock().ended.clear();
    }
}

/// Statements of the server.
#[derive(Debug, Default)]
pub struct Events {
    consumers: AtomicU32,
    long: Mutex<VecDeque<Arc<StatementEvent>>>,
}

impl Events {
    /// Returns whether statements are kept.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.consumers.load(Ordering::Relaxed) != 0
    }

    /// Returns whether a consumer is on.
    pub fn has(&self, consumer: Consumer) -> bool {
        self.consumers.load(Ordering::Relaxed) & consumer as u32 != 0
    }

    /// Turns a consumer on or off.
    pub fn set(&self, consumer: Consumer, is_on: bool) {
        match is_on {
            true => self.consumers.fetch_or(consumer as u32, Ordering::Relaxed),
            false => self.consumers.fetch_and(!(consumer as u32), Ordering::Relaxed),
        };
    }

    /// Keeps a statement that has ended. Its number is that of the statement that its session has begun.
    pub fn end(&self, session: &SessionEvents, mut event: StatementEvent) {
        let event = {
            let mut session = session.0.lock();
            let Some(running) = session.running.take() else { return };
            event.number = running.number;
            let event = Arc::new(event);
            let most = if self.has(Consumer::History) { OF_A_SESSION } else { 1 };
            session.ended.push_back(Arc::clone(&event));
            while session.ended.len() > most {
                session.ended.pop_front();
            }
            event
        };
        if self.has(Consumer::HistoryLong) {
            let mut long = self.long.lock();
            if long.len() == OF_THE_SERVER {
                long.pop_front();
            }
            long.push_back(event);
        }
    }

    /// Returns the last statements of the server, oldest first.
    pub fn long(&self) -> Vec<Arc<StatementEvent>> {
        self.long.lock().iter().cloned().collect()
    }

    /// Forgets the last statements of the server.
    pub fn clear_long(&self) {
        self.long.lock().clear();
    }
}
