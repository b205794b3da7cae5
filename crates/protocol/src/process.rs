//! Who is connected and what they do: SHOW PROCESSLIST and KILL.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use cohort_base::ConnectionId;
use parking_lot::{Mutex, RwLock};

/// What KILL ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// KILL QUERY: the running statement (error 1317).
    Query,
    /// KILL: the connection (error 1927).
    Connection,
}

/// What has been killed of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    No,
    Query,
    Connection,
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The handshake is not over.
    Connect,
    /// Between two commands.
    Sleep,
    /// COM_QUERY.
    Query,
    /// COM_STMT_PREPARE.
    Prepare,
    /// COM_STMT_EXECUTE.
    Execute,
    /// COM_BINLOG_DUMP.
    BinlogDump,
    /// Another command.
    Other,
}

impl Phase {
    const ALL: [Phase; 7] = [
        Phase::Connect,
        Phase::Sleep,
        Phase::Query,
        Phase::Prepare,
        Phase::Execute,
        Phase::BinlogDump,
        Phase::Other,
    ];

    /// As the Command column prints it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "Connect",
            Phase::Sleep => "Sleep",
            Phase::Query => "Query",
            Phase::Prepare => "Prepare",
            Phase::Execute => "Execute",
            Phase::BinlogDump => "Binlog Dump",
            Phase::Other => "Daemon",
        }
    }
}

/// One connection as others see it. The session's worker writes, anybody reads.
pub struct Process {
    id: ConnectionId,
    killed: AtomicU8,
    phase: AtomicU8,
    /// Milliseconds since `epoch` at which the phase began.
    since_ms: AtomicU64,
    epoch: Instant,
    text: Mutex<Text>,
    /// What to call after a kill: wakes a lock wait or closes the socket.
    on_kill: Mutex<Option<Box<dyn Fn(Kill) + Send>>>,
}

#[derive(Default)]
struct Text {
    user: String,
    host: String,
    db: Option<String>,
    state: &'static str,
    /// The statement, cut to its first KiB.
    info: Vec<u8>,
    /// Work done, in percent.
    progress: f64,
}

/// The longest statement text that a process shows.
const INFO_BYTES_MAX: usize = 1024;

impl Process {
    /// A connection that has just come. Registered by [`Processes::add`].
    pub fn new(id: ConnectionId) -> Process {
        Process {
            id,
            killed: AtomicU8::new(0),
            phase: AtomicU8::new(Phase::Connect as u8),
            since_ms: AtomicU64::new(0),
            epoch: Instant::now(),
            text: Mutex::default(),
            on_kill: Mutex::new(None),
        }
    }

    /// The connection's number.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Whether and how the connection was killed; checked between rows and in every wait.
    pub fn killed(&self) -> Killed {
        match self.killed.load(Ordering::Relaxed) {
            0 => Killed::No,
            1 => Killed::Query,
            _ => Killed::Connection,
        }
    }

    /// Kills, and wakes what waits.
    pub fn kill(&self, kill: Kill) {
        let level = match kill {
            Kill::Query => 1,
            Kill::Connection => 2,
        };
        self.killed.fetch_max(level, Ordering::Relaxed);
        if let Some(on_kill) = &*self.on_kill.lock() {
            on_kill(kill);
        }
    }

    /// Forgets KILL QUERY when the statement it was for is over.
    pub fn clear_query_kill(&self) {
        // A relaxed compare: a kill that comes at this moment is for either statement.
        let _ = self.killed.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// What to call after a kill.
    pub fn set_on_kill(&self, on_kill: Option<Box<dyn Fn(Kill) + Send>>) {
        *self.on_kill.lock() = on_kill;
    }

    /// A new phase begins; `info` is the statement's text, empty when there is none.
    pub fn enter(&self, phase: Phase, info: &[u8]) {
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.since_ms.store(self.epoch.elapsed().as_millis() as u64, Ordering::Relaxed);
        let mut text = self.text.lock();
        text.info.clear();
        text.info.extend_from_slice(&info[..info.len().min(INFO_BYTES_MAX)]);
        text.state = "";
        text.progress = 0.0;
    }

    /// The connection is idle.
    pub fn sleep(&self) {
        self.phase.store(Phase::Sleep as u8, Ordering::Relaxed);
        self.since_ms.store(self.epoch.elapsed().as_millis() as u64, Ordering::Relaxed);
        let mut text = self.text.lock();
        text.info.clear();
        text.state = "";
        text.progress = 0.0;
    }

    /// Who logged in, from where.
    pub fn set_user(&self, user: &str, host: &str) {
        let mut text = self.text.lock();
        text.user = user.to_owned();
        text.host = host.to_owned();
    }

    /// The current database.
    pub fn set_db(&self, db: Option<&str>) {
        self.text.lock().db = db.map(str::to_owned);
    }

    /// What the statement does now.
    pub fn set_state(&self, state: &'static str) {
        self.text.lock().state = state;
    }

    /// How far a long statement is, in percent.
    pub fn set_progress(&self, percent: f64) {
        self.text.lock().progress = percent;
    }

    /// Time in the present phase.
    pub fn phase_ms(&self) -> u64 {
        (self.epoch.elapsed().as_millis() as u64).saturating_sub(self.since_ms.load(Ordering::Relaxed))
    }

    /// What the connection does.
    pub fn phase(&self) -> Phase {
        let phase = usize::from(self.phase.load(Ordering::Relaxed));
        Phase::ALL[phase.min(Phase::ALL.len() - 1)]
    }

    /// A row of SHOW PROCESSLIST.
    pub fn row(&self) -> ProcessRow {
        let phase = self.phase();
        let text = self.text.lock();
        ProcessRow {
            id: self.id,
            user: text.user.clone(),
            host: text.host.clone(),
            db: text.db.clone(),
            command: if self.killed() == Killed::Connection { "Killed" } else { phase.name() },
            time_ms: self.phase_ms(),
            state: text.state,
            info: (!text.info.is_empty()).then(|| String::from_utf8_lossy(&text.info).into_owned()),
            progress: text.progress,
        }
    }
}

/// A row of SHOW PROCESSLIST.
#[derive(Clone, Debug)]
pub struct ProcessRow {
    pub id: ConnectionId,
    pub user: String,
    /// `localhost` or `address:port`.
    pub host: String,
    pub db: Option<String>,
    pub command: &'static str,
    /// Time in the present command.
    pub time_ms: u64,
    pub state: &'static str,
    pub info: Option<String>,
    /// Percent.
    pub progress: f64,
}

/// All connections of a server.
#[derive(Default)]
pub struct Processes {
    all: RwLock<BTreeMap<ConnectionId, Arc<Process>>>,
}

impl Processes {
    /// Registers a new connection. The server chooses the number and removes it when the connection ends.
    pub fn add(&self, id: ConnectionId) -> Arc<Process> {
        let process = Arc::new(Process::new(id));
        self.all.write().insert(id, Arc::clone(&process));
        process
    }

    /// Forgets a connection.
    pub fn remove(&self, id: ConnectionId) {
        self.all.write().remove(&id);
    }

    /// Finds a connection.
    pub fn get(&self, id: ConnectionId) -> Option<Arc<Process>> {
        self.all.read().get(&id).cloned()
    }

    /// All connections by number.
    pub fn list(&self) -> Vec<Arc<Process>> {
        self.all.read().values().cloned().collect()
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.all.read().len()
    }

    /// Whether nobody is connected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
