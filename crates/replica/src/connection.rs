//! One connection to a source: what its two threads and those who look at them share.
//!
//! # Lock order
//! `control` > `io` or `sql`, of which no two are held at once; the relay log's lock is inside of both.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, ConnectionId, DomainId, Gtid};
use cohort_binlog::GtidState;
use cohort_exec::{Process, ReplicaUntil, SourceTemporaryTables};
use cohort_locks::KillLevel;
use cohort_types::whole_chars;
use parking_lot::{Condvar, Mutex};

use crate::place::SourcePlace;
use crate::progress::Reached;
use crate::relay::{RelayLog, RelayPlace};
use crate::shown::Shown;

/// The receiver's progress, as Slave_IO_Running prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoRunning {
    #[default]
    No,
    Preparing,
    Connecting,
    Yes,
}

impl IoRunning {
    /// As SHOW SLAVE STATUS prints it.
    pub fn name(self) -> &'static str {
        match self {
            IoRunning::No => "No",
            IoRunning::Preparing => "Preparing",
            IoRunning::Connecting => "Connecting",
            IoRunning::Yes => "Yes",
        }
    }
}

/// What stopped a thread; number 0 is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadError {
    pub number: u32,
    pub text: String,
}

/// Bytes of an error that are kept, as in MariaDB: statements and a source's messages may be long.
pub const ERROR_BYTES_MAX: usize = 1024;

impl ThreadError {
    /// An error with its number.
    pub fn new(number: u32, text: impl Into<String>) -> ThreadError {
        let mut text: String = text.into();
        text.truncate(whole_chars(&text, ERROR_BYTES_MAX - 1).len());
        text.shrink_to_fit();
        ThreadError { number, text }
    }
}

/// The applier's state while the relay log has what is not applied.
pub const READING: &str = "Reading event from the relay log";
/// The applier's state while all that was received is applied and published.
pub const ALL_READ: &str = "Slave has read all relay log; waiting for more updates";

/// What the receiver shows.
#[derive(Default)]
pub struct Io {
    pub running: IoRunning,
    pub state: &'static str,
    pub error: ThreadError,
    /// Up to where events were received.
    pub read: SourcePlace,
    /// Behind the last group that was received whole.
    pub whole: SourcePlace,
    /// The same as GTIDs.
    pub gtids: GtidState,
    pub master_server_id: u32,
    pub heartbeats: u64,
    pub socket: Option<TcpStream>,
    pub process: Option<Arc<Process>>,
}

/// What the applier shows.
#[derive(Default)]
pub struct Sql {
    pub is_running: bool,
    pub state: &'static str,
    pub error: ThreadError,
    /// When that was, in microseconds; 0 is never.
    pub error_at_us: u64,
    /// The running applier in the list of processes.
    pub applier_id: Option<ConnectionId>,
    /// The group that the applier began last, if it applies them itself.
    pub seen: Option<Gtid>,
    /// The workers of the running applier, or of the last one that had any.
    pub workers: Vec<Arc<WorkerProgress>>,
    /// Where the first event that is not applied is in the relay log.
    pub relay: RelayPlace,
    /// The same in the source's log.
    pub executed: SourcePlace,
    /// Both places as far as all before them is published.
    pub shown: Shown,
    /// When the event that is applied now, or was applied last, happened on the source; None while all that
    /// is there is applied.
    pub timestamp: Option<u32>,
    /// When the next transaction may be applied that is held back.
    pub delayed_until: Option<u64>,
    pub until: ReplicaUntil,
    /// Groups before this place in the relay log may be applied already: the position tells.
    pub known_until: RelayPlace,
    /// Of these domains a place tells, whatever the numbers are: groups before it are applied, others are
    /// not, but for those in `ahead`.
    pub applied_until: BTreeMap<DomainId, RelayPlace>,
    /// Groups of a domain before its place here are applied, although others behind `relay` are not.
    pub ahead: BTreeMap<DomainId, RelayPlace>,
    /// The applier can do nothing before more comes.
    pub waits_for_more: bool,
    pub skip_counter: u64,
    /// The newest group that was ordered.
    pub newest: CommitSeq,
    /// Files before this one go when that commit can no more be lost.
    purge: Option<(u32, CommitSeq)>,
    /// The applier's, which comes first, and those of its workers.
    pub processes: Vec<Arc<Process>>,
}

impl Sql {
    /// The applier ends with an error; an empty one is that of somebody who stopped it.
    pub fn failed(&mut self, error: ThreadError, now_us: u64) {
        self.error_at_us = if error.number == 0 { 0 } else { now_us };
        self.error = error;
    }

    /// Begins at a place: all before it is applied and published.
    pub fn begin_at(&mut self, relay: RelayPlace, executed: SourcePlace) {
        self.shown.begin(Reached { relay, source: executed.clone() });
        (self.relay, self.executed) = (relay, executed);
    }

    /// All before a place is ordered, the newest of it as `newest`.
    pub fn came_to(&mut self, relay: RelayPlace, executed: &SourcePlace, newest: CommitSeq) {
        self.newest = self.newest.max(newest);
        self.relay = relay;
        self.executed.clone_from(executed);
        self.shown.came_to(self.newest, Reached { relay, source: executed.clone() });
    }

    /// Shows what the applier does at the moment, in the process list, too.
    pub fn show(&mut self, state: &'static str) {
        if self.state != state {
            self.state = state;
            if let Some(process) = self.processes.first() {
                process.set_state(state);
            }
        }
    }

    /// Nothing is wrong any more.
    pub fn cured(&mut self) {
        (self.error, self.error_at_us) = (ThreadError::default(), 0);
    }
}

/// What one worker did, for those who look.
#[derive(Default)]
pub struct WorkerProgress {
    pub now: Mutex<WorkerNow>,
}

/// What is known of a worker.
#[derive(Clone, Default)]
pub struct WorkerNow {
    /// None: it has ended.
    pub id: Option<ConnectionId>,
    /// The group that it began last.
    pub seen: Option<Gtid>,
    /// How often that was begun again.
    pub retries: u64,
    /// How long it waited for work.
    pub idle: Duration,
    pub error: ThreadError,
    pub error_at_us: u64,
}

/// Counters that only grow.
#[derive(Default)]
pub struct Counts {
    pub ddl: AtomicU64,
    pub non_transactional: AtomicU64,
    pub transactional: AtomicU64,
    pub retried: AtomicU64,
    /// Errors that `slave_skip_errors` passed over.
    pub skipped_errors: Arc<AtomicU64>,
    pub events: AtomicU64,
    pub received_bytes: AtomicU64,
    /// Answers to a semi-synchronous source.
    pub replies: AtomicU64,
    /// Groups that the crew has and has not ordered.
    pub queued: AtomicU64,
    /// What they weigh.
    pub queued_bytes: AtomicU64,
    /// Workers that apply something.
    pub busy_workers: AtomicU64,
}

impl Counts {
    /// A group was applied: whether it is DDL, and whether it could be rolled back.
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
    /// START, STOP, CHANGE and RESET, one at a time.
    pub control: Mutex<()>,
    /// A thread ended, or the applier came further.
    pub changed: Condvar,
    changed_lock: Mutex<u64>,
    io_stops: AtomicBool,
    sql_stops: AtomicBool,
    wake: Condvar,
    wake_lock: Mutex<()>,
    /// FLUSH RELAY LOGS: the receiver begins a new file.
    pub rotates_relay: AtomicBool,
    /// Semi-synchronous: the source is told what is durable here.
    pub is_semi_sync: AtomicBool,
    /// Of the source's connections.
    pub temporary: Arc<SourceTemporaryTables>,
    /// Seconds by which this server's clock is ahead of the source's, as the receiver found last.
    clock_ahead_s: AtomicI64,
}

impl Connection {
    /// A connection that does nothing yet.
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

    /// Clocks differ: the source's shows `there_s` where this one shows `here_s`.
    pub fn compare_clocks(&self, here_s: u64, there_s: u64) {
        self.clock_ahead_s.store(here_s as i64 - there_s as i64, Ordering::Relaxed);
    }

    /// A moment of the source's clock by this server's.
    pub fn here(&self, timestamp: u32) -> u64 {
        u64::from(timestamp).saturating_add_signed(self.clock_ahead_s.load(Ordering::Relaxed))
    }

    /// Whether the receiver is to end.
    pub fn io_stops(&self) -> bool {
        self.io_stops.load(Ordering::Acquire)
    }

    /// Whether the applier is to end.
    pub fn sql_stops(&self) -> bool {
        self.sql_stops.load(Ordering::Acquire)
    }

    /// A thread is about to start.
    pub fn arm(&self, io: bool, sql: bool) {
        if io {
            self.io_stops.store(false, Ordering::Release);
        }
        if sql {
            self.sql_stops.store(false, Ordering::Release);
        }
    }

    /// Asks threads to end. They do so within moments: their waits are cut short, what they apply is undone.
    pub fn ask_to_stop(&self, io: bool, sql: bool) {
        if io {
            self.io_stops.store(true, Ordering::Release);
            if let Some(socket) = &self.io.lock().socket {
                // It may be closed already.
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

    /// A pause of a thread that a stop ends.
    pub fn pause(&self, most: Duration, stops: impl Fn(&Connection) -> bool) {
        let end = Instant::now() + most;
        let mut lock = self.wake_lock.lock();
        while !stops(self) && !self.wake.wait_until(&mut lock, end).timed_out() {}
    }

    /// Something that others wait for has changed.
    pub fn tell(&self) {
        *self.changed_lock.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits for the next change, for this long at most.
    pub fn await_change(&self, most: Duration) {
        let mut lock = self.changed_lock.lock();
        self.changed.wait_for(&mut lock, most);
    }

    /// Waits until threads have ended; false if they have not in time.
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

    /// All before `end` in the relay log is applied; `seq` is what it was ordered as, if it was.
    pub fn came_to(&self, end: RelayPlace, executed: &SourcePlace, seq: Option<CommitSeq>) {
        let mut sql = self.sql.lock();
        sql.newest = sql.newest.max(seq.unwrap_or_default());
        // Two that tell at the same time may do so in either order.
        if end < sql.relay {
            return;
        }
        if sql.relay.file != end.file {
            sql.purge = Some((end.file, sql.newest));
        }
        let newest = sql.newest;
        sql.came_to(end, executed, newest);
    }

    /// Shows that all that was received is applied, if it is: the relay log ends at `place`, up to where the
    /// applier has applied all, and the commits of it, of which `newest` is the last one, are published.
    /// Answers whether it is.
    pub fn show_all_read(&self, place: RelayPlace, newest: CommitSeq, published: CommitSeq) -> bool {
        let mut sql = self.sql.lock();
        let is_all = self.relay.end() <= place && sql.newest.max(newest) <= published;
        if is_all {
            sql.timestamp = None;
            sql.show(ALL_READ);
        }
        is_all
    }

    /// Shows that the relay log has what is not applied. The caller has written it, and reports it as
    /// received after this call only.
    pub fn has_received(&self) {
        let mut sql = self.sql.lock();
        if sql.state == ALL_READ {
            sql.show(READING);
        }
    }

    /// A group of a domain is applied that ends here, while some of others before it are not.
    pub fn came_ahead(&self, domain: DomainId, end: RelayPlace, seq: Option<CommitSeq>) {
        let mut sql = self.sql.lock();
        sql.newest = sql.newest.max(seq.unwrap_or_default());
        sql.ahead.insert(domain, end);
    }

    /// Whether the source is away, and nothing came behind this place of the relay log: a group that is open
    /// there comes again from its beginning.
    pub fn is_cut_off(&self, place: RelayPlace) -> bool {
        // In this order: what came last is in the relay log before the receiver says that the source is gone.
        let is_away = self.io.lock().running != IoRunning::Yes;
        is_away && self.relay.end() <= place
    }

    /// Removes files that are applied, as far as no crash takes it back: until then a semi-synchronous source
    /// may rely on them. `acknowledged` is what is durable and told.
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
        // What cannot be removed now goes when the next file is applied.
        let _ = self.relay.purge_before(file);
    }

    /// What the receiver does at the moment.
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
        // An applier that looked before does not say so once more.
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
