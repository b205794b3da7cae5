//! The connections of the server: what SHOW PROCESSLIST prints and where KILL finds its target.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::{Budget, CommitSeq, ConnectionId, Hold};
use cohort_locks::{KillFlag, KillLevel};
use cohort_sql::{ParseMode, without_secrets};
use cohort_trx::{SessionCounts, TrxGauge};
use parking_lot::{Mutex, RwLock};

/// What a connection does; the names are those of SHOW PROCESSLIST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    Connect,
    Sleep,
    Query,
    Prepare,
    Execute,
    Fetch,
    InitDb,
    FieldList,
    ChangeUser,
    ResetConnection,
    BinlogDump,
    SlaveIo,
    SlaveSql,
    SlaveWorker,
    Quit,
}

impl Command {
    const ALL: [Command; 15] = [
        Command::Connect,
        Command::Sleep,
        Command::Query,
        Command::Prepare,
        Command::Execute,
        Command::Fetch,
        Command::InitDb,
        Command::FieldList,
        Command::ChangeUser,
        Command::ResetConnection,
        Command::BinlogDump,
        Command::SlaveIo,
        Command::SlaveSql,
        Command::SlaveWorker,
        Command::Quit,
    ];

    /// As the list prints it.
    pub fn name(self) -> &'static str {
        match self {
            Command::Connect => "Connect",
            Command::Sleep => "Sleep",
            Command::Query => "Query",
            Command::Prepare => "Prepare",
            Command::Execute => "Execute",
            Command::Fetch => "Fetch",
            Command::InitDb => "Init DB",
            Command::FieldList => "Field List",
            Command::ChangeUser => "Change user",
            Command::ResetConnection => "Reset connection",
            Command::BinlogDump => "Binlog Dump",
            Command::SlaveIo => "Slave_IO",
            Command::SlaveSql => "Slave_SQL",
            Command::SlaveWorker => "Slave_worker",
            Command::Quit => "Quit",
        }
    }
}

/// The account of a connection; changes with COM_CHANGE_USER.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The name that the client gave.
    pub user: String,
    /// The user of the account that let it in: empty for an anonymous one, whatever name was given. None: a
    /// thread of the server's own.
    pub account: Option<String>,
    /// `host:port`, or `localhost`.
    pub host: String,
    pub schema: Option<String>,
}

/// One connection. Its session writes, SHOW PROCESSLIST reads, KILL sets the flag.
pub struct Process {
    id: ConnectionId,
    kill: KillFlag,
    counts: Arc<SessionCounts>,
    gauge: Arc<TrxGauge>,
    /// What its statements and its transaction keep in memory.
    memory: Arc<Budget>,
    command: AtomicU8,
    /// `Clock::wall_us` when the command began.
    since_us: AtomicU64,
    identity: Mutex<ProcessIdentity>,
    /// Text of the running statement (cut at 64 KiB) and what it does at the moment.
    info: Mutex<ProcessInfo>,
    /// Ends the connection when it is idle; set by the server.
    closer: Mutex<Option<Closer>>,
    /// The last statement's answer leaves when this transaction is acknowledged.
    held: AtomicU64,
    /// Since when the statement does nothing but wait for a time or a user lock; [`NEVER_US`]: it does not.
    idling_since_us: AtomicU64,
    /// The statement only reads.
    only_reads: AtomicBool,
    /// Until when the session's replies are held back. KILL has what waits for replicas told.
    hold: Arc<Hold>,
}

/// Called after a kill, on any thread.
pub type Closer = Box<dyn Fn(KillLevel) + Send>;

#[derive(Default)]
struct ProcessInfo {
    /// Of the statement that runs or ran last.
    query_id: u64,
    running: bool,
    text: Vec<u8>,
    /// How its session reads it; None: that is not known.
    mode: Option<ParseMode>,
    state: &'static str,
    progress: u32,
}

/// A row of SHOW PROCESSLIST.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSnapshot {
    pub id: ConnectionId,
    pub identity: ProcessIdentity,
    pub command: Command,
    /// The number of its statement.
    pub query_id: u64,
    /// Since when it does that.
    pub since_us: u64,
    pub state: &'static str,
    /// How much of the state's work is done, in thousandths of a percent.
    pub progress: u32,
    /// Bytes that its statements and its transaction keep, and the most there were.
    pub memory_bytes: u64,
    pub memory_bytes_max: u64,
    pub info: Option<String>,
}

const INFO_BYTES_MAX: usize = 64 << 10;
/// A time that does not come.
const NEVER_US: u64 = u64::MAX;
/// State of a statement that is done but for a replica's answer.
const WAITING_FOR_REPLICAS: &str = "Waiting for semi-sync ACK from slave";

impl Process {
    /// The connection's number.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// What its statements asked of tables.
    #[inline]
    pub fn counts(&self) -> &Arc<SessionCounts> {
        &self.counts
    }

    /// Its transaction.
    #[inline]
    pub fn gauge(&self) -> &Arc<TrxGauge> {
        &self.gauge
    }

    /// What its statements, its transaction and its variables keep in memory.
    pub fn memory(&self) -> &Arc<Budget> {
        &self.memory
    }

    /// What KILL sets.
    pub fn kill_flag(&self) -> &KillFlag {
        &self.kill
    }

    /// KILL: ends the statement or the connection.
    pub fn kill(&self, level: KillLevel) {
        self.kill.kill(level);
        if let Some(closer) = &*self.closer.lock() {
            closer(level);
        }
    }

    /// KILL QUERY ID: ends the statement of this number.
    /// Says whether it was the newest one.
    pub fn kill_query(&self, query_id: u64) -> bool {
        // With the lock, so that no other statement begins meanwhile.
        let info = self.info.lock();
        let is_newest = info.query_id == query_id;
        if is_newest {
            self.kill.kill(KillLevel::Query);
        }
        is_newest
    }

    /// What to call after a kill.
    pub fn set_closer(&self, closer: Option<Closer>) {
        *self.closer.lock() = closer;
    }

    /// What the connection does.
    pub fn command(&self) -> Command {
        let command = self.command.load(Ordering::Relaxed);
        *Command::ALL.iter().find(|c| **c as u8 == command).expect("only commands are stored")
    }

    /// The connection does something else now.
    pub fn set_command(&self, command: Command, now_us: u64) {
        self.command.store(command as u8, Ordering::Relaxed);
        self.since_us.store(now_us, Ordering::Relaxed);
    }

    /// A statement runs. A KILL QUERY from before was not meant for it; one that comes from now on is,
    /// whatever the statement is busy with.
    pub fn begin_statement(
        &self,
        command: Command,
        (text, mode): (&[u8], ParseMode),
        now_us: u64,
        query_id: u64,
    ) {
        self.set_command(command, now_us);
        self.gauge.command(now_us);
        let mut info = self.info.lock();
        self.kill.clear_query();
        info.query_id = query_id;
        info.running = true;
        info.state = "";
        info.progress = 0;
        info.text.clear();
        info.text.extend_from_slice(&text[..text.len().min(INFO_BYTES_MAX)]);
        info.mode = Some(mode);
    }

    /// A replica's thread does something on behalf of its source; it is never idle.
    pub fn show_text(&self, text: &[u8]) {
        let mut info = self.info.lock();
        info.running = !text.is_empty();
        info.mode = None;
        info.text.clear();
        info.text.extend_from_slice(&text[..text.len().min(INFO_BYTES_MAX)]);
    }

    /// The statement has ended; the connection is idle.
    #[inline]
    pub fn end_statement(&self, now_us: u64, hold_until: CommitSeq) {
        self.hold_until(hold_until);
        self.set_command(Command::Sleep, now_us);
        let mut info = self.info.lock();
        info.running = false;
        info.state = "";
        info.progress = 0;
        if info.text.capacity() > INFO_BYTES_MAX / 8 {
            info.text = Vec::new();
        }
    }

    /// The statement's answer leaves when this transaction is acknowledged.
    #[inline]
    pub fn hold_until(&self, seq: CommitSeq) {
        self.held.store(seq.0, Ordering::Relaxed);
    }

    /// What the answer of the last statement waits, or has waited, for.
    pub fn held_until(&self) -> CommitSeq {
        CommitSeq(self.held.load(Ordering::Relaxed))
    }

    /// Until when the session's replies are held back.
    pub fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    /// What the statement does at the moment.
    pub fn set_state(&self, state: &'static str) {
        let mut info = self.info.lock();
        info.state = state;
        info.progress = 0;
    }

    /// Waits within a statement that does nothing else meanwhile: nobody misses it when its client has gone.
    pub fn while_idling<T>(&self, state: &'static str, now_us: u64, wait: impl FnOnce() -> T) -> T {
        self.set_state(state);
        self.idling_since_us.store(now_us, Ordering::Relaxed);
        let waited = wait();
        self.idling_since_us.store(NEVER_US, Ordering::Relaxed);
        self.set_state("");
        waited
    }

    /// Runs a statement that changes nothing beyond its session: nobody misses it when its client has gone.
    pub fn while_reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.only_reads.store(true, Ordering::Relaxed);
        let outcome = read();
        self.only_reads.store(false, Ordering::Relaxed);
        outcome
    }

    /// Whether nobody misses the statement when its client has gone. It has run for `patience`, and only
    /// reads; or it has done nothing for so long but wait: for a time, a user lock, a row or a definition.
    /// What writes, and is at work, goes on to its end.
    pub fn is_dispensable(&self, now_us: u64, patience: Duration) -> bool {
        let is_over = |since_us| Duration::from_micros(now_us.saturating_sub(since_us)) >= patience;
        let idling_since_us = self.idling_since_us.load(Ordering::Relaxed);
        let reads = self.only_reads.load(Ordering::Relaxed);
        reads && is_over(self.since_us.load(Ordering::Relaxed))
            || idling_since_us != NEVER_US && is_over(idling_since_us)
            || self.kill.waited_for_lock().is_some_and(|waited| waited >= patience)
    }

    /// How much of it is done, in thousandths of a percent.
    pub fn set_progress(&self, progress: u32) {
        self.info.lock().progress = progress;
    }

    /// Changes the account.
    pub fn set_identity(&self, identity: ProcessIdentity) {
        *self.identity.lock() = identity;
    }

    /// The account.
    pub fn identity(&self) -> ProcessIdentity {
        self.identity.lock().clone()
    }

    /// Changes the current database.
    pub fn set_schema(&self, schema: Option<&str>) {
        self.identity.lock().schema = schema.map(str::to_owned);
    }

    /// The row of SHOW PROCESSLIST. `waits` says whether a transaction's client waits for replicas.
    pub fn snapshot(&self, waits: &dyn Fn(CommitSeq) -> bool) -> ProcessSnapshot {
        let waits = waits(self.held_until());
        let info = self.info.lock();
        let (command, state) = match self.command() {
            Command::Sleep if waits => (Command::Query, WAITING_FOR_REPLICAS),
            command @ (Command::SlaveSql | Command::SlaveWorker) if waits => (command, WAITING_FOR_REPLICAS),
            command if waits && info.state.is_empty() => (command, WAITING_FOR_REPLICAS),
            command => (command, info.state),
        };
        ProcessSnapshot {
            id: self.id,
            identity: self.identity.lock().clone(),
            command,
            query_id: info.query_id,
            since_us: self.since_us.load(Ordering::Relaxed),
            state,
            progress: info.progress,
            memory_bytes: self.memory.used(),
            memory_bytes_max: self.memory.peak(),
            info: (info.running || waits)
                .then(|| String::from_utf8_lossy(&without_secrets(&info.text, info.mode)).into_owned()),
        }
    }
}

/// All connections, by number.
#[derive(Default)]
pub struct ProcessList {
    processes: RwLock<BTreeMap<ConnectionId, Arc<Process>>>,
    /// Of connections that have ended, and what FLUSH STATUS took from others. Changed with `processes`
    /// locked, so that nothing is counted twice.
    counts_ended: SessionCounts,
    /// The number of the newest statement.
    query_id: AtomicU64,
    /// What all sessions together keep in memory.
    memory: Arc<Budget>,
}

impl ProcessList {
    /// A new connection. The server removes it when the connection ends.
    pub fn register(&self, id: ConnectionId, identity: ProcessIdentity, now_us: u64) -> Arc<Process> {
        let process = Arc::new(Process {
            id,
            kill: KillFlag::default(),
            counts: Arc::default(),
            gauge: Arc::default(),
            memory: Budget::of_session(&self.memory),
            command: AtomicU8::new(Command::Connect as u8),
            since_us: AtomicU64::new(now_us),
            identity: Mutex::new(identity),
            info: Mutex::default(),
            closer: Mutex::new(None),
            held: AtomicU64::new(0),
            idling_since_us: AtomicU64::new(NEVER_US),
            only_reads: AtomicBool::new(false),
            hold: Arc::default(),
        });
        self.processes.write().insert(id, process.clone());
        process
    }

    /// The connection has ended.
    pub fn remove(&self, id: ConnectionId) {
        let mut processes = self.processes.write();
        if let Some(process) = processes.remove(&id) {
            self.counts_ended.add(&process.counts);
        }
    }

    /// FLUSH STATUS: the connection's counters begin again, and the sum over all keeps what they had.
    pub fn flush_counts(&self, process: &Process) {
        let _all = self.processes.write();
        self.counts_ended.add(&process.counts);
        process.counts.clear();
    }

    /// What the statements of all connections, ended ones too, asked of tables.
    pub fn counts(&self) -> SessionCounts {
        let sum = SessionCounts::default();
        let processes = self.processes.read();
        sum.add(&self.counts_ended);
        processes.values().for_each(|process| sum.add(&process.counts));
        sum
    }

    /// What all sessions together keep in memory, and how much that may be.
    pub fn memory(&self) -> &Arc<Budget> {
        &self.memory
    }

    /// A number for a statement that begins.
    #[inline]
    pub fn next_query_id(&self) -> u64 {
        self.query_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The connection whose statement has this number, or whose last one had it.
    pub fn of_query(&self, query_id: u64) -> Option<Arc<Process>> {
        let processes = self.processes.read();
        processes.values().find(|process| process.info.lock().query_id == query_id).cloned()
    }

    /// A connection by its number.
    pub fn get(&self, id: ConnectionId) -> Option<Arc<Process>> {
        self.processes.read().get(&id).cloned()
    }

    /// All connections in order of their numbers.
    pub fn all(&self) -> Vec<Arc<Process>> {
        self.processes.read().values().cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.processes.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
