//! The process list: the server's connections, for SHOW PROCESSLIST and as targets of KILL.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cohort_base::{Budget, CommitSeq, ConnectionId, Pace, ReplyBarrier};
use cohort_locks::{KillFlag, KillLevel, Party, SessionName};
use cohort_observe::{Events, Measured, Published, SessionEvents, SessionSums, StatementEvent, Totals};
use cohort_sql::{ParseMode, without_secrets};
use cohort_trx::{SessionCounts, TrxStats};
use parking_lot::{Mutex, RwLock};

/// The command that a connection executes; the names are those of SHOW PROCESSLIST.
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
    /// A thread of the server: the event scheduler.
    Daemon,
    Quit,
}

impl Command {
    const ALL: [Command; 16] = [
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
        Command::Daemon,
        Command::Quit,
    ];

    /// Returns the name that the list shows.
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
            Command::Daemon => "Daemon",
            Command::Quit => "Quit",
        }
    }
}

/// The account of a connection; COM_CHANGE_USER changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The user name that the client gave.
    pub user: String,
    /// The user of the account that the client logged in as: empty for an anonymous account, whatever name
    /// the client gave. `None` for a thread of the server.
    pub account: Option<String>,
    /// `host:port`, or `localhost`.
    pub host: String,
    pub schema: Option<String>,
}

impl ProcessIdentity {
    /// Returns the host without the port.
    pub fn host_name(&self) -> &str {
        self.host.rsplit_once(':').map_or(&self.host, |(host, _)| host)
    }
}

/// Maximum bytes of a connection's attributes, as in MariaDB by default.
const ATTRIBUTE_BYTES_MAX: usize = 512;
/// Maximum number of accounts whose logins are counted.
const LOGINS_MAX: usize = 10_000;

/// The plan of a running statement, as its session shows it to SHOW EXPLAIN and SHOW ANALYZE.
pub trait RunningPlan: Sync {
    /// Returns a reference to the plan that outlives the statement.
    fn keep(&self) -> Box<dyn Any>;
}

/// A plan that sessions share, and that they show without anything else.
pub trait SharedPlan: Send + Sync + Sized {
    /// Returns what [`RunningPlan::keep`] returns.
    fn keep(plan: &Arc<Self>) -> Box<dyn Any>;
}

impl<T: SharedPlan> RunningPlan for Arc<T> {
    fn keep(&self) -> Box<dyn Any> {
        T::keep(self)
    }
}

/// The logins of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logins {
    /// Since the server's start.
    pub total: u64,
    /// Those before [`ProcessList::reset_sums`].
    before_reset: u64,
}

impl Logins {
    /// Returns the number of logins since the statistics of accounts were reset.
    pub fn since_reset(&self) -> u64 {
        self.total - self.before_reset
    }
}

/// One connection. Its session writes the fields, SHOW PROCESSLIST reads them, KILL sets the flag.
pub struct Process {
    id: ConnectionId,
    kill: KillFlag,
    counts: Arc<SessionCounts>,
    trx_stats: Arc<TrxStats>,
    /// Its lock owners; set by its session.
    party: OnceLock<Arc<Party>>,
    /// Its statements by kind, while they are counted by account.
    sums: SessionSums,
    /// `Clock::wall_us` when the connection was accepted.
    connected_us: u64,
    /// Memory used by its statements and its transaction.
    memory: Arc<Budget>,
    command: AtomicU8,
    /// `Clock::wall_us` when the command began.
    since_us: AtomicU64,
    identity: Mutex<ProcessIdentity>,
    /// Connection attributes of the client: `_client_name`, `program_name`, ...
    attributes: Mutex<Arc<[(String, String)]>>,
    /// The text of the running statement (cut at 64 KiB) and its state.
    info: Mutex<ProcessInfo>,
    /// Closes the connection when it is idle; set by the server.
    closer: Mutex<Option<Closer>>,
    /// Its statements one by one, if they are kept.
    events: SessionEvents,
    /// The plan of the running statement.
    plan: Published<dyn RunningPlan>,
    /// The reply to the last statement is sent once this transaction is acknowledged.
    held: AtomicU64,
    /// When the statement began to wait, with nothing else to do, for a time or a user lock; [`NEVER_US`] if
    /// it does not.
    idling_since_us: AtomicU64,
    /// The statement only reads.
    only_reads: AtomicBool,
    /// The reply barrier of the session. KILL releases replies that wait for replicas.
    hold: Arc<ReplyBarrier>,
}

/// Called after a KILL, on any thread.
pub type Closer = Box<dyn Fn(KillLevel) + Send>;

#[derive(Default)]
struct ProcessInfo {
    /// Number of the current or last statement.
    query_id: u64,
    running: bool,
    text: Vec<u8>,
    /// The parse mode of its session; `None` if unknown.
    mode: Option<ParseMode>,
    state: &'static str,
    progress: u32,
    /// Since the state reports progress.
    pace: Option<Pace>,
}

impl ProcessInfo {
    fn set_state(&mut self, state: &'static str) {
        self.state = state;
        self.progress = 0;
        self.pace = None;
    }
}

/// A row of SHOW PROCESSLIST.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSnapshot {
    pub id: ConnectionId,
    pub identity: ProcessIdentity,
    pub command: Command,
    /// The number of its statement.
    pub query_id: u64,
    /// When the command began.
    pub since_us: u64,
    pub state: &'static str,
    /// Progress of the current state, in thousandths of a percent.
    pub progress: u32,
    /// Current and peak memory of its statements and its transaction.
    pub memory_bytes: u64,
    pub memory_bytes_max: u64,
    pub info: Option<String>,
}

const INFO_BYTES_MAX: usize = 64 << 10;
/// A time in the infinite future.
const NEVER_US: u64 = u64::MAX;
/// The acknowledgement that the commit of an ended statement needs before its client gets the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcknowledgedBy {
    Replica,
    Archive,
}

impl AcknowledgedBy {
    fn state(self) -> &'static str {
        match self {
            AcknowledgedBy::Replica => "Waiting for semi-sync ACK from slave",
            AcknowledgedBy::Archive => "Waiting for the archive",
        }
    }
}

impl Process {
    /// Returns the connection id.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Returns the counters of its statements' table accesses.
    #[inline]
    pub fn counts(&self) -> &Arc<SessionCounts> {
        &self.counts
    }

    /// Keeps its statement that has ended.
    pub fn end_event(&self, events: &Events, mut event: Box<StatementEvent>, measured: Measured) {
        event.measured = measured;
        events.end(&self.events, *event);
    }

    /// Returns its statements one by one.
    pub fn events(&self) -> &SessionEvents {
        &self.events
    }

    /// Returns where the session shows the plan of its running statement.
    #[inline]
    pub fn plan(&self) -> &Published<dyn RunningPlan> {
        &self.plan
    }

    /// Sets the lock owners of the session, once.
    pub fn set_party(&self, party: Arc<Party>) {
        let _ = self.party.set(party);
    }

    /// Returns the metadata locks that the session holds or waits for.
    pub fn locked_names(&self) -> Vec<SessionName> {
        self.party.get().map_or_else(Vec::new, |party| party.names())
    }

    /// Counts a statement of a kind for the connection and its account.
    pub fn count_statement(&self, kind: usize, measured: &Measured, now_us: u64) {
        self.sums.record(kind, measured, now_us);
    }

    /// Returns the statements that were counted, by kind.
    pub fn statement_sums(&self) -> Vec<(usize, Totals)> {
        self.sums.list()
    }

    /// Returns `Clock::wall_us` when the connection was accepted.
    pub fn connected_us(&self) -> u64 {
        self.connected_us
    }

    /// Returns the published statistics of its transaction.
    #[inline]
    pub fn trx_stats(&self) -> &Arc<TrxStats> {
        &self.trx_stats
    }

    /// Returns the memory budget of its statements, its transaction and its variables.
    pub fn memory(&self) -> &Arc<Budget> {
        &self.memory
    }

    /// Returns the flag that KILL sets.
    pub fn kill_flag(&self) -> &KillFlag {
        &self.kill
    }

    /// Ends the statement or the connection, for KILL.
    pub fn kill(&self, level: KillLevel) {
        self.kill.kill(level);
        if let Some(closer) = &*self.closer.lock() {
            closer(level);
        }
    }

    /// Ends the statement with this number, for KILL QUERY ID. Returns whether it was the newest one of the
    /// connection.
    pub fn kill_query(&self, query_id: u64) -> bool {
        // Keep the lock, so that no other statement can begin meanwhile.
        let info = self.info.lock();
        let is_newest = info.query_id == query_id;
        if is_newest {
            self.kill.kill(KillLevel::Query);
        }
        is_newest
    }

    /// Sets the function to call after a KILL.
    pub fn set_closer(&self, closer: Option<Closer>) {
        *self.closer.lock() = closer;
    }

    /// Returns the current command.
    pub fn command(&self) -> Command {
        let command = self.command.load(Ordering::Relaxed);
        *Command::ALL.iter().find(|c| **c as u8 == command).expect("only commands are stored")
    }

    /// Sets the current command.
    pub fn set_command(&self, command: Command, now_us: u64) {
        self.command.store(command as u8, Ordering::Relaxed);
        self.since_us.store(now_us, Ordering::Relaxed);
    }

    /// Marks the start of a statement. An earlier KILL QUERY does not apply to it. A later one does, whatever
    /// the statement is doing.
    pub fn begin_statement(
        &self,
        command: Command,
        (text, mode): (&[u8], ParseMode),
        now_us: u64,
        query_id: u64,
    ) {
        self.set_command(command, now_us);
        self.trx_stats.command(now_us);
        let mut info = self.info.lock();
        self.kill.clear_query();
        info.query_id = query_id;
        info.running = true;
        info.set_state("");
        info.text.clear();
        info.text.extend_from_slice(&text[..text.len().min(INFO_BYTES_MAX)]);
        info.mode = Some(mode);
    }

    /// Shows a statement of a program instead of the statement that runs the program.
    pub fn show_inner(&self, text: &[u8]) {
        let mut info = self.info.lock();
        info.text.clear();
        info.text.extend_from_slice(&text[..text.len().min(INFO_BYTES_MAX)]);
    }

    /// Shows what a replica thread does on behalf of its source. Such a thread is never idle.
    pub fn show_text(&self, text: &[u8]) {
        let mut info = self.info.lock();
        info.running = !text.is_empty();
        info.mode = None;
        info.text.clear();
        info.text.extend_from_slice(&text[..text.len().min(INFO_BYTES_MAX)]);
    }

    /// Marks the end of the statement; the connection is idle.
    #[inline]
    pub fn end_statement(&self, now_us: u64, hold_until: CommitSeq) {
        self.hold_until(hold_until);
        self.set_command(Command::Sleep, now_us);
        let mut info = self.info.lock();
        info.running = false;
        info.set_state("");
        if info.text.capacity() > INFO_BYTES_MAX / 8 {
            info.text = Vec::new();
        }
    }

    /// Records that the reply to the statement must wait until this transaction is acknowledged.
    #[inline]
    pub fn hold_until(&self, seq: CommitSeq) {
        self.held.store(seq.0, Ordering::Relaxed);
    }

    /// Returns the transaction that the reply to the last statement waits for, or has waited for.
    pub fn held_until(&self) -> CommitSeq {
        CommitSeq(self.held.load(Ordering::Relaxed))
    }

    /// Returns the session's reply barrier.
    pub fn hold(&self) -> &Arc<ReplyBarrier> {
        &self.hold
    }

    /// Sets the state text of the statement.
    pub fn set_state(&self, state: &'static str) {
        self.info.lock().set_state(state);
    }

    /// Runs a wait of a statement that does nothing else meanwhile. If the client disconnects, the statement
    /// may be ended.
    pub fn while_idling<T>(&self, state: &'static str, now_us: u64, wait: impl FnOnce() -> T) -> T {
        self.set_state(state);
        self.idling_since_us.store(now_us, Ordering::Relaxed);
        let waited = wait();
        self.idling_since_us.store(NEVER_US, Ordering::Relaxed);
        self.set_state("");
        waited
    }

    /// Runs a statement that changes nothing outside of its session. If the client disconnects, the statement
    /// may be ended.
    pub fn while_reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.only_reads.store(true, Ordering::Relaxed);
        let outcome = read();
        self.only_reads.store(false, Ordering::Relaxed);
        outcome
    }

    /// Returns whether the statement may be ended because its client has disconnected. Either it only reads,
    /// and has run for `patience`; or it has done nothing for `patience` but wait for a time, a user lock, a
    /// row lock or a metadata lock. A statement that writes and is at work runs to its end.
    pub fn is_dispensable(&self, now_us: u64, patience: Duration) -> bool {
        let is_over = |since_us| Duration::from_micros(now_us.saturating_sub(since_us)) >= patience;
        let idling_since_us = self.idling_since_us.load(Ordering::Relaxed);
        let reads = self.only_reads.load(Ordering::Relaxed);
        reads && is_over(self.since_us.load(Ordering::Relaxed))
            || idling_since_us != NEVER_US && is_over(idling_since_us)
            || self.kill.waited_for_lock().is_some_and(|waited| waited >= patience)
    }

    /// Sets the progress of the statement's state, and logs it if the state lasts long. `now_ns` is
    /// `Clock::monotonic_ns`.
    pub fn set_progress(&self, (done, total): (u64, u64), now_ns: u64) {
        let mut info = self.info.lock();
        info.progress = done.saturating_mul(100_000).checked_div(total).map_or(0, |p| p.min(100_000) as u32);
        let state = info.state;
        let pace = info.pace.get_or_insert_with(|| Pace::begin(now_ns));
        if let Some(progress) = pace.due(now_ns, done, total) {
            log::info!("Connection {}, {state}: {progress}", self.id);
        }
    }

    /// Sets the account.
    pub fn set_identity(&self, identity: ProcessIdentity) {
        *self.identity.lock() = identity;
    }

    /// Sets the connection attributes. Those beyond [`ATTRIBUTE_BYTES_MAX`] are dropped.
    pub fn set_attributes(&self, attributes: &[(String, String)]) {
        let mut bytes = 0;
        let kept = attributes.iter().take_while(|(name, value)| {
            bytes += name.len() + value.len();
            bytes <= ATTRIBUTE_BYTES_MAX
        });
        *self.attributes.lock() = kept.cloned().collect();
    }

    /// Returns the connection attributes.
    pub fn attributes(&self) -> Arc<[(String, String)]> {
        Arc::clone(&self.attributes.lock())
    }

    /// Returns the account.
    pub fn identity(&self) -> ProcessIdentity {
        self.identity.lock().clone()
    }

    /// Sets the current database.
    pub fn set_schema(&self, schema: Option<&str>) {
        self.identity.lock().schema = schema.map(str::to_owned);
    }

    /// Returns the row of SHOW PROCESSLIST. `waits_for` returns what a transaction's reply waits for.
    pub fn snapshot(&self, waits_for: &dyn Fn(CommitSeq) -> Option<AcknowledgedBy>) -> ProcessSnapshot {
        let waits_for = waits_for(self.held_until());
        let info = self.info.lock();
        let (command, state) = match (self.command(), waits_for.map(AcknowledgedBy::state)) {
            (Command::Sleep, Some(state)) => (Command::Query, state),
            (command @ (Command::SlaveSql | Command::SlaveWorker), Some(state)) => (command, state),
            (command, Some(state)) if info.state.is_empty() => (command, state),
            (command, _) => (command, info.state),
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
            info: (info.running || waits_for.is_some())
                .then(|| String::from_utf8_lossy(&without_secrets(&info.text, info.mode)).into_owned()),
        }
    }
}

/// All connections, by id.
#[derive(Default)]
pub struct ProcessList {
    processes: RwLock<BTreeMap<ConnectionId, Arc<Process>>>,
    /// Counters of ended connections, and those that FLUSH STATUS took from others. Changed under the lock of
    /// `processes`, so that nothing is counted twice.
    counts_ended: SessionCounts,
    /// The number of the newest statement.
    query_id: AtomicU64,
    /// Logins by user and host.
    logins: Mutex<BTreeMap<(String, String), Logins>>,
    /// Statements of ended connections by user and host. Bounded as `logins`.
    sums_ended: Mutex<BTreeMap<(String, String), SessionSums>>,
    /// The memory of all sessions together.
    memory: Arc<Budget>,
}

impl ProcessList {
    /// Adds a connection. The server removes it when the connection ends.
    pub fn register(&self, id: ConnectionId, identity: ProcessIdentity, now_us: u64) -> Arc<Process> {
        self.count_login(&identity);
        let process = Arc::new(Process {
            id,
            kill: KillFlag::default(),
            counts: Arc::default(),
            trx_stats: Arc::default(),
            party: OnceLock::new(),
            sums: SessionSums::default(),
            connected_us: now_us,
            memory: Budget::of_session(&self.memory),
            command: AtomicU8::new(Command::Connect as u8),
            since_us: AtomicU64::new(now_us),
            identity: Mutex::new(identity),
            attributes: Mutex::default(),
            info: Mutex::default(),
            events: SessionEvents::default(),
            plan: Published::default(),
            closer: Mutex::new(None),
            held: AtomicU64::new(0),
            idling_since_us: AtomicU64::new(NEVER_US),
            only_reads: AtomicBool::new(false),
            hold: Arc::default(),
        });
        self.processes.write().insert(id, process.clone());
        process
    }

    /// Counts a login: a connection, or a change of user.
    pub fn count_login(&self, identity: &ProcessIdentity) {
        if identity.account.is_none() {
            return;
        }
        let account = (identity.user.clone(), identity.host_name().to_owned());
        let mut logins = self.logins.lock();
        if logins.len() < LOGINS_MAX || logins.contains_key(&account) {
            logins.entry(account).or_default().total += 1;
        }
    }

    /// Moves the statements that the connection has counted to its account, when the connection ends or
    /// changes its user.
    pub fn settle_sums(&self, process: &Process) {
        let sums = process.sums.take();
        let identity = process.identity();
        if sums.is_empty() || identity.account.is_none() {
            return;
        }
        let account = (identity.user.clone(), identity.host_name().to_owned());
        let mut ended = self.sums_ended.lock();
        if ended.len() < LOGINS_MAX || ended.contains_key(&account) {
            ended.entry(account).or_default().add(&sums);
        }
    }

    /// Returns the statements that were counted by user and host, of connections that have ended and of
    /// others.
    pub fn account_sums(&self) -> BTreeMap<(String, String), SessionSums> {
        let mut all: BTreeMap<(String, String), SessionSums> = BTreeMap::new();
        // Connections do not end meanwhile, so that none is missing or counted twice.
        let processes = self.processes.read();
        for (account, sums) in &*self.sums_ended.lock() {
            all.entry(account.clone()).or_default().add(&sums.list());
        }
        for process in processes.values() {
            let identity = process.identity();
            if identity.account.is_some() {
                let account = (identity.user.clone(), identity.host_name().to_owned());
                all.entry(account).or_default().add(&process.sums.list());
            }
        }
        all
    }

    /// Removes the statements and logins that were counted by account.
    pub fn reset_sums(&self) {
        let processes = self.processes.read();
        self.sums_ended.lock().clear();
        let mut logins = self.logins.lock();
        logins.values_mut().for_each(|logins| logins.before_reset = logins.total);
        for process in processes.values() {
            // As in MariaDB, the connections that exist are counted again.
            let identity = process.identity();
            if let Some(logins) = logins.get_mut(&(identity.user.clone(), identity.host_name().to_owned())) {
                logins.before_reset = logins.before_reset.saturating_sub(1);
            }
        }
        drop(logins);
        processes.values().for_each(|process| drop(process.sums.take()));
    }

    /// Removes the numbers of logins, as far as no connection is left of them.
    pub fn forget_logins(&self) {
        let processes = self.processes.read();
        let mut open: BTreeMap<(String, String), u64> = BTreeMap::new();
        for process in processes.values() {
            let identity = process.identity();
            *open.entry((identity.user.clone(), identity.host_name().to_owned())).or_default() += 1;
        }
        let mut logins = self.logins.lock();
        logins.retain(|name, logins| {
            let since_reset = logins.since_reset();
            logins.total = open.get(name).copied().unwrap_or(0);
            logins.before_reset = logins.total.saturating_sub(since_reset);
            logins.total > 0
        });
    }

    /// Returns the logins by user and host.
    pub fn logins(&self) -> BTreeMap<(String, String), Logins> {
        self.logins.lock().clone()
    }

    /// Removes a connection that has ended.
    pub fn remove(&self, id: ConnectionId) {
        let mut processes = self.processes.write();
        if let Some(process) = processes.remove(&id) {
            self.counts_ended.add(&process.counts);
            self.settle_sums(&process);
        }
    }

    /// Resets the connection's counters, for FLUSH STATUS. The sum over all connections keeps their values.
    pub fn flush_counts(&self, process: &Process) {
        let _all = self.processes.write();
        self.counts_ended.add(&process.counts);
        process.counts.clear();
    }

    /// Returns the sum of all connections' counters, including ended connections.
    pub fn counts(&self) -> SessionCounts {
        let sum = SessionCounts::default();
        let processes = self.processes.read();
        sum.add(&self.counts_ended);
        processes.values().for_each(|process| sum.add(&process.counts));
        sum
    }

    /// Returns the memory of all sessions together, and its limit.
    pub fn memory(&self) -> &Arc<Budget> {
        &self.memory
    }

    /// Returns the number for a new statement.
    #[inline]
    pub fn next_query_id(&self) -> u64 {
        self.query_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the connection whose current or last statement has this number.
    pub fn of_query(&self, query_id: u64) -> Option<Arc<Process>> {
        let processes = self.processes.read();
        processes.values().find(|process| process.info.lock().query_id == query_id).cloned()
    }

    /// Returns the connection with this id.
    pub fn get(&self, id: ConnectionId) -> Option<Arc<Process>> {
        self.processes.read().get(&id).cloned()
    }

    /// Returns all connections, ordered by id.
    pub fn all(&self) -> Vec<Arc<Process>> {
        self.processes.read().values().cloned().collect()
    }

    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.processes.read().len()
    }

    /// Returns whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_sums_counts_the_connections_that_are_left() {
        let list = ProcessList::default();
        let identity = |user: &str| ProcessIdentity {
            user: user.to_owned(),
            account: Some(user.to_owned()),
            host: "localhost".to_owned(),
            schema: None,
        };
        for (id, user) in [(1, "u"), (2, "u"), (3, "u"), (4, "v")] {
            list.register(ConnectionId(id), identity(user), 0);
        }
        list.remove(ConnectionId(1));
        list.remove(ConnectionId(4));
        let logins = |user: &str| {
            let logins = list.logins()[&(user.to_owned(), "localhost".to_owned())];
            (logins.total, logins.since_reset())
        };
        assert_eq!([logins("u"), logins("v")], [(3, 3), (1, 1)]);
        list.reset_sums();
        assert_eq!([logins("u"), logins("v")], [(3, 2), (1, 0)]);
        list.register(ConnectionId(5), identity("v"), 0);
        assert_eq!([logins("u"), logins("v")], [(3, 2), (2, 1)]);
        list.remove(ConnectionId(5));
        list.forget_logins();
        assert_eq!(logins("u"), (2, 2));
        assert!(!list.logins().keys().any(|(user, _)| user == "v"));
    }
}
