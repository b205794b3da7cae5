//! One connection to a source: the state shared by its two threads and by status readers.
//!
//! # Lock order
//! `control` > `io` or `sql`. `io` and `sql` are never held together. The relay log's lock comes last.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_base::whole_chars;
use cohort_base::{CommitSeq, ConnectionId, DomainId, Gtid};
use cohort_binlog::GtidState;
use cohort_exec::{Process, ReplicaUntil, SourceTemporaryTables};
use cohort_locks::KillLevel;
use parking_lot::{Condvar, Mutex};

use crate::place::{RelayPlace, SourcePlace};
use crate::progress::Reached;
use crate::relay::RelayLog;
use crate::shown::Shown;

/// State of the receiver, as shown by Slave_IO_Running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoRunning {
    #[default]
    No,
    Preparing,
    Connecting,
    Yes,
}

impl IoRunning {
    /// Returns the name that SHOW SLAVE STATUS prints.
    pub fn name(self) -> &'static str {
        match self {
            IoRunning::No => "No",
            IoRunning::Preparing => "Preparing",
            IoRunning::Connecting => "Connecting",
            IoRunning::Yes => "Yes",
        }
    }
}

/// The error that stopped a thread; number 0 means none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadError {
    pub number: u32,
    pub text: String,
}

/// Maximum bytes kept of an error text, as in MariaDB: statements and a source's messages may be long.
pub const ERROR_BYTES_MAX: usize = 1024;

impl ThreadError {
    /// Creates an error, with its text truncated.
    pub fn new(number: u32, text: impl Into<String>) -> ThreadError {
        let mut text: String = text.into();
        text.truncate(whole_chars(&text, ERROR_BYTES_MAX - 1).len());
        text.shrink_to_fit();
        ThreadError { number, text }
    }
}

/// Applier state while the relay log contains unapplied events.
pub const READING: &str = "Reading event from the relay log";
/// Applier state while everything received is applied and published.
pub const ALL_READ: &str = "Slave has read all relay log; waiting for more updates";

/// Progress and state of the receiver.
#[derive(Default)]
pub struct Io {
    pub running: IoRunning,
    pub state: &'static str,
    pub error: ThreadError,
    /// Source position up to which events were received.
    pub read: SourcePlace,
    /// Source position after the last completely received group.
    pub whole: SourcePlace,
    /// GTID state after the last completely received group.
    pub gtids: GtidState,
    pub master_server_id: u32,
    pub heartbeats: u64,
    pub socket: Option<TcpStream>,
    pub process: Option<Arc<Process>>,
}

/// Progress and state of the applier.
#[derive(Default)]
pub struct Sql {
    pub is_running: bool,
    pub state: &'static str,
    pub error: ThreadError,
    /// Time of the error in microseconds; 0 if there is none.
    pub error_at_us: u64,
    /// Id of the running applier in the process list.
    pub applier_id: Option<ConnectionId>,
    /// The last group that the applier began to apply itself.
    pub seen: Option<Gtid>,
    /// Workers of the running applier, or of the last applier that had any.
    pub workers: Vec<Arc<WorkerProgress>>,
    /// Relay log position of the first event that is not applied.
    pub relay: RelayPlace,
    /// Source log position of the first event that is not applied.
    pub executed: SourcePlace,
    /// Both positions, as far as everything before them is published.
    pub shown: Shown,
    /// Source time of the event being applied, or applied last. `None` while everything received is applied.
    pub timestamp: Option<u32>,
    /// Time at which MASTER_DELAY allows the next transaction.
    pub delayed_until: Option<u64>,
    pub until: ReplicaUntil,
    /// Groups before this relay log position may already be applied; the GTID position decides.
    pub known_until: RelayPlace,
    /// For these domains a relay log position decides, whatever the sequence numbers: groups before it are
    /// applied, later ones are not, except those in `ahead`.
    pub applied_until: BTreeMap<DomainId, RelayPlace>,
    /// Groups of a domain before this position are applied, although other groups after `relay` are not.
    pub ahead: BTreeMap<DomainId, RelayPlace>,
    /// The applier has nothing to do until more events arrive.
    pub waits_for_more: bool,
    pub skip_counter: u64,
    /// The newest ordered group.
    pub newest: CommitSeq,
    /// Files before this number can be removed once that commit is safe from crashes.
    purge: Option<(u32, CommitSeq)>,
    /// Process list entries: the applier first, then its workers.
    pub processes: Vec<Arc<Process>>,
}

impl Sql {
    /// Records the error that ended the applier. An error with number 0 means it was asked to stop.
    pub fn failed(&mut self, error: ThreadError, now_us: u64) {
        self.error_at_us = if error.number == 0 { 0 } else { now_us };
        self.error = error;
    }

    /// Sets the position: everything before it is applied and published.
    pub fn begin_at(&mut self, relay: RelayPlace, executed: SourcePlace) {
        self.shown.begin(Reached { relay, source: executed.clone() });
        (self.relay, self.executed) = (relay, executed);
    }

    /// Advances the position: everything before it is ordered, with `newest` as its newest commit.
    pub fn came_to(&mut self, relay: RelayPlace, executed: &SourcePlace, newest: CommitSeq) {
        self.newest = self.newest.max(newest);
        self.relay = relay;
        self.executed.clone_from(executed);
        self.shown.came_to(self.newest, Reached { relay, source: executed.clone() });
    }

    /// Shows the applier's current state, also in the process list.
    pub fn show(&mut self, state: &'static str) {
        if self.state != state {
            self.state = state;
            if let Some(process) = self.processes.first() {
                process.set_state(state);
            }
        }
    }

    /// Clears the error.
    pub fn cured(&mut self) {
        (self.error, self.error_at_us) = (ThreadError::default(), 0);
    }
}

/// Progress of one worker, for status readers.
#[derive(Default)]
pub struct WorkerProgress {
    pub now: Mutex<WorkerNow>,
}

/// The state of a worker.
#[derive(Clone, Default)]
pub struct WorkerNow {
    /// `None` if the worker has ended.
    pub id: Option<ConnectionId>,
    /// The last group that it began.
    pub seen: Option<Gtid>,
    /// Number of retries of that group.
    pub retries: u64,
    /// Total time that it waited for work.
    pub idle: Duration,
    pub error: ThreadError,
    pub error_at_us: u64,
}

/// Counters of a connection.
#[derive(Default)]
pub struct Counts {
    pub ddl: AtomicU64,
    pub non_transactional: AtomicU64,
    pub transactional: AtomicU64,
    pub retried: AtomicU64,
    /// Errors skipped by `slave_skip_errors`.
    pub skipped_errors: Arc<AtomicU64>,
    pub events: AtomicU64,
    pub received_bytes: AtomicU64,
    /// Acknowledgements sent to a semi-synchronous source.
    pub replies: AtomicU64,
    /// Number of groups that the worker pool has not ordered yet.
    pub queued: AtomicU64,
    /// Bytes of those groups.
    pub queued_bytes: AtomicU64,
    /// Number of workers that are applying a group.
    pub busy_workers: AtomicU64,
}

impl Counts {
    /// Counts an applied group: whether it is DDL, and whether it could be rolled back.
    pub fn applied(&self, (is_ddl, is_transactional): (bool, bool)) {
        let count = match (is_ddl, is_transactional) {
            (true, _) => &self.ddl,
            (false, true) => &self.transactional,
            (false, false) => &self.non_transactional,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A source and the threads that follow it.
pub struct Connection {
    pub name: String,
    pub relay: Arc<RelayLog>,
    pub io: Mutex<Io>,
    pub sql: Mutex<Sql>,
    pub counts: Counts,
    /// Serializes START, STOP, CHANGE and RESET.
    pub control: Mutex<()>,
    /// Signalled when a thread ends or the applier advances.
    pub changed: Condvar,
    changed_lock: Mutex<u64>,
    io_stops: AtomicBool,
    sql_stops: AtomicBool,
    wake: Condvar,
    wake_lock: Mutex<()>,
    /// Set by FLUSH RELAY LOGS: the receiver begins a new file.
    pub rotates_relay: AtomicBool,
    /// Semi-synchronous: durable events are acknowledged to the source.
    pub is_semi_sync: AtomicBool,
    /// Temporary tables of the source's connections.
    pub temporary: Arc<SourceTemporaryTables>,
    /// Seconds by which this server's clock is ahead of the source's, as measured last by the receiver.
    clock_ahead_s: AtomicI64,
}

impl Connection {
    /// Creates a connection without threads.
    pub fn new(name: String, relay: Arc<RelayLog>) -> Arc<Connection> {
        Arc::new(Connection {
            name,
            relay,
            io: Mutex::default(),
            sql: Mutex::default(),
            counts: Counts::default(),
            control: Mutex::default(),
            changed: Condvar::new(),
            changed_lock: Mutex::default(),
            io_stops: AtomicBool::new(false),
            sql_stops: AtomicBool::new(false),
            wake: Condvar::new(),
            wake_lock: Mutex::default(),
            rotates_relay: AtomicBool::new(false),
            is_semi_sync: AtomicBool::new(false),
            temporary: Arc::default(),
            clock_ahead_s: AtomicI64::new(0),
        })
    }

    /// Records the clock difference: the source's clock shows `there_s` when the local one shows `here_s`.
    pub fn compare_clocks(&self, here_s: u64, there_s: u64) {
        self.clock_ahead_s.store(here_s as i64 - there_s as i64, Ordering::Relaxed);
    }

    /// Converts a time of the source's clock to the local clock.
    pub fn here(&self, timestamp: u32) -> u64 {
        u64::from(timestamp).saturating_add_signed(self.clock_ahead_s.load(Ordering::Relaxed))
    }

    /// Returns whether the receiver must end.
    pub fn io_stops(&self) -> bool {
        self.io_stops.load(Ordering::Acquire)
    }

    /// Returns whether the applier must end.
    pub fn sql_stops(&self) -> bool {
        self.sql_stops.load(Ordering::Acquire)
    }

    /// Clears the stop requests of threads that are about to start.
    pub fn arm(&self, io: bool, sql: bool) {
        if io {
            self.io_stops.store(false, Ordering::Release);
        }
        if sql {
            self.sql_stops.store(false, Ordering::Release);
        }
    }

    /// Asks threads to end. Interrupts their waits; the open group is rolled back.
    pub fn ask_to_stop(&self, io: bool, sql: bool) {
        if io {
            self.io_stops.store(true, Ordering::Release);
            if let Some(socket) = &self.io.lock().socket {
                // The socket may already be closed.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        if sql {
            self.sql_stops.store(true, Ordering::Release);
            for process in &self.sql.lock().processes {
                process.kill(KillLevel::Connection);
            }
        }
        self.relay.wake();
        let _lock = self.wake_lock.lock();
        self.wake.notify_all();
    }

    /// Pauses a thread for at most `most`. A stop request ends the pause.
    pub fn pause(&self, most: Duration, stops: impl Fn(&Connection) -> bool) {
        let end = Instant::now() + most;
        let mut lock = self.wake_lock.lock();
        while !stops(self) && !self.wake.wait_until(&mut lock, end).timed_out() {}
    }

    /// Notifies the threads that wait for a change.
    pub fn notify(&self) {
        *self.changed_lock.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits at most `most` for the next change.
    pub fn await_change(&self, most: Duration) {
        let mut lock = self.changed_lock.lock();
        self.changed.wait_for(&mut lock, most);
    }

    /// Waits until the threads have ended. Returns false on timeout.
    pub fn await_end(&self, io: bool, sql: bool, most: Duration) -> bool {
        let end = Instant::now() + most;
        loop {
            let runs = io && self.io.lock().running != IoRunning::No || sql && self.sql.lock().is_running;
            if !runs {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            self.await_change(Duration::from_millis(5));
        }
    }

    /// Advances the position: everything before `end` in the relay log is applied. `seq` is the commit, if
    /// there was one.
    pub fn came_to(&self, end: RelayPlace, executed: &SourcePlace, seq: Option<CommitSeq>) {
        let mut sql = self.sql.lock();
        sql.newest = sql.newest.max(seq.unwrap_or_default());
        // Two threads may report their progress in either order.
        if end < sql.relay {
            return;
        }
        if sql.relay.file != end.file {
            sql.purge = Some((end.file, sql.newest));
        }
        let newest = sql.newest;
        sql.came_to(end, executed, newest);
    }

    /// Shows that everything received is applied, if that is the case: the relay log ends at `place`, up to
    /// which the applier has applied everything, and its commits, the last of which is `newest`, are
    /// published. Returns whether this is the case.
    pub fn show_all_read(&self, place: RelayPlace, newest: CommitSeq, published: CommitSeq) -> bool {
        let mut sql = self.sql.lock();
        let is_all = self.relay.end() <= place && sql.newest.max(newest) <= published;
        if is_all {
            sql.timestamp = None;
            sql.show(ALL_READ);
        }
        is_all
    }

    /// Shows that the relay log contains unapplied events. The caller has written them, and must report them
    /// as received only after this call.
    pub fn has_received(&self) {
        let mut sql = self.sql.lock();
        if sql.state == ALL_READ {
            sql.show(READING);
        }
    }

    /// Records that a group of a domain, ending at `end`, is applied while earlier groups of other domains
    /// are not.
    pub fn came_ahead(&self, domain: DomainId, end: RelayPlace, seq: Option<CommitSeq>) {
        let mut sql = self.sql.lock();
        sql.newest = sql.newest.max(seq.unwrap_or_default());
        sql.ahead.insert(domain, end);
    }

    /// Returns whether the source is disconnected and nothing follows `place` in the relay log. A group that
    /// is open there will be sent again from its beginning.
    pub fn is_cut_off(&self, place: RelayPlace) -> bool {
        // Checked in this order: the receiver writes the last events before it reports the loss of the
        // source.
        let is_away = self.io.lock().running != IoRunning::Yes;
        is_away && self.relay.end() <= place
    }

    /// Removes applied files whose commits no crash can undo; until then a semi-synchronous source may rely
    /// on them. `acknowledged` is the newest commit that is durable and acknowledged.
    pub fn purge_applied(&self, acknowledged: CommitSeq) {
        let file = {
            let mut sql = self.sql.lock();
            match sql.purge {
                Some((file, seq)) if seq <= acknowledged => {
                    sql.purge = None;
                    file
                }
                _ => return,
            }
        };
        // A file that cannot be removed now is removed when the next file is applied.
        let _ = self.relay.purge_before(file);
    }

    /// Shows the receiver's current state.
    pub fn io_state(&self, state: &'static str) {
        let mut io = self.io.lock();
        io.state = state;
        if let Some(process) = &io.process {
            process.set_state(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cohort_base::ServerId;
    use cohort_binlog::BinlogName;
    use cohort_vfs::{MemFs, SharedFs};

    use super::*;
    use crate::relay::RelayWriter;

    #[test]
    fn all_is_read_only_while_nothing_more_is_received_and_all_of_it_is_published() {
        let fs: SharedFs = Arc::new(MemFs::new());
        fs.create_dir_all(Path::new("/d")).expect("made");
        let relay = RelayLog::open(fs, BinlogName::new(Path::new("/d"), "relay"));
        let connection = Connection::new(String::new(), Arc::clone(&relay));
        let state = || connection.sql.lock().state;
        let mut writer = RelayWriter::begin(&relay, ServerId(1), 0, &SourcePlace::default()).expect("a file");
        let applied = relay.end();
        connection.came_to(applied, &SourcePlace::default(), Some(CommitSeq(5)));
        assert!(!connection.show_all_read(applied, CommitSeq(0), CommitSeq(4)), "it is not published");
        assert_ne!(state(), ALL_READ);
        assert!(!connection.show_all_read(applied, CommitSeq(6), CommitSeq(5)), "nor is this");
        assert!(connection.show_all_read(applied, CommitSeq(5), CommitSeq(5)));
        assert_eq!(state(), ALL_READ);
        writer.append(&[0; 40]);
        writer.flush().expect("written");
        // An applier that checked earlier does not repeat the state.
        assert!(!connection.show_all_read(applied, CommitSeq(5), CommitSeq(5)));
        connection.has_received();
        assert_eq!(state(), READING);
        assert!(connection.show_all_read(relay.end(), CommitSeq(5), CommitSeq(5)));
        assert_eq!(state(), ALL_READ);
    }

    #[test]
    fn of_an_error_a_thousand_bytes_are_kept() {
        let error = ThreadError::new(1064, format!("x{}", "é".repeat(50_000)));
        assert_eq!(error.text.len(), 1023);
        assert!(error.text.capacity() < 2 * ERROR_BYTES_MAX);
        assert_eq!(ThreadError::new(1064, "short").text, "short");
    }
}
