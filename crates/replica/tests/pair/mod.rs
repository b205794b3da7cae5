//! A source's binary log, and a replica in memory whose receiver has put it into the relay log.

#![allow(dead_code)] // each test binary uses its part

#[path = "../../../exec/tests/world/mod.rs"]
mod world;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_base::{ConnectionId, DomainId};
use cohort_binlog::event::Event;
use cohort_binlog::{BinlogName, EventReader};
use cohort_config::{VarId, VarValue};
use cohort_exec::{BinlogCache, ReplicaControl, ReplicaThreads, ReplicaUntil, SourceName};
use cohort_replica::{ReplicaLog, ReplicaParts, Replicas, StateStore};
use cohort_types::Value;
use cohort_vfs::{MemFs, OpenMode, SharedFs};
pub use world::{Server, disk};

const DATADIR: &str = "/data";
const PATIENCE: Duration = Duration::from_secs(60);

/// Each statement is one group of the binary log.
pub const SCRIPT: [&str; 12] = [
    "CREATE TABLE test.t (id INT PRIMARY KEY, a INT)",
    "INSERT INTO test.t VALUES (1, 1), (2, 2)",
    "INSERT INTO test.t VALUES (3, 3)",
    "UPDATE test.t SET a = a + 1 WHERE id = 3",
    "INSERT INTO test.t VALUES (4, 4)",
    "UPDATE test.t SET a = a + 10",
    "ALTER TABLE test.t ADD COLUMN b INT NOT NULL DEFAULT 7",
    "INSERT INTO test.t VALUES (5, 5, 5)",
    "CREATE TABLE test.u LIKE test.t",
    "DELETE FROM test.t WHERE id = 1",
    "INSERT INTO test.u SELECT * FROM test.t",
    "UPDATE test.t SET b = b * 2 WHERE id > 3",
];

pub fn dump(server: &mut Server) -> String {
    let mut client = server.connect();
    let tables = ["SELECT * FROM test.t ORDER BY id", "SELECT * FROM test.u ORDER BY id"];
    tables.map(|sql| client.run(sql)).concat()
}

pub fn groups(server: &Server, disk: &SharedFs) -> usize {
    let mut groups = 0;
    for path in server.binlog() {
        let mut reader = EventReader::open(disk, Path::new(&path)).expect("opens");
        while let Some(raw) = reader.next_event().expect("sound") {
            groups += usize::from(matches!(reader.decode(&raw), Ok(Event::Gtid(_))));
        }
    }
    groups
}

/// What the source has after each statement, and its binary log.
pub fn source() -> (Vec<String>, Vec<u8>) {
    source_of(&SCRIPT)
}

/// The same of another script.
pub fn source_of(script: &[&str]) -> (Vec<String>, Vec<u8>) {
    let disk = disk();
    let mut server = Server::open(&disk).expect("opens");
    let mut states = vec![dump(&mut server)];
    let mut client = server.connect();
    for statement in script {
        client.ok(statement);
        states.push(dump(&mut server));
    }
    assert_eq!(groups(&server, &disk), script.len());
    let file = disk.open(Path::new(&server.binlog()[0]), OpenMode::Read).expect("there");
    let mut bytes = vec![0; file.len().expect("known") as usize];
    file.read_at(&mut bytes, 0).expect("read");
    (states, bytes)
}

pub struct Replica {
    pub server: Server,
    pub state: Arc<StateStore>,
    pub replicas: Arc<Replicas>,
}

impl Replica {
    pub fn open(disk: &SharedFs, threads: u64) -> Result<Replica, String> {
        disk.create_dir_all(Path::new(DATADIR)).map_err(|error| error.to_string())?;
        let state = StateStore::open(disk.clone(), Path::new(DATADIR)).map_err(|error| error.to_string())?;
        let state = Arc::new(state);
        let server = Server::open_beside(disk, BinlogCache::default(), vec![Arc::clone(&state) as _])?;
        let globals = &server.db.globals;
        globals.put(VarId::ServerId, &VarValue::UInt(7));
        globals.put(VarId::LogSlaveUpdates, &VarValue::Bool(true));
        globals.put(VarId::RelayLog, &VarValue::text("relay"));
        globals.put(VarId::SlaveParallelThreads, &VarValue::UInt(threads));
        // What is in the relay log stays there.
        globals.put(VarId::RplSemiSyncSlaveEnabled, &VarValue::Bool(true));
        let next = AtomicU64::new(1000);
        let replicas = Replicas::open(ReplicaParts {
            db: Arc::clone(&server.db),
            state: Arc::clone(&state),
            fs: disk.clone(),
            datadir: DATADIR.into(),
            log: ReplicaLog(Arc::new(|_, _| ())),
            next_id: Box::new(move || ConnectionId(next.fetch_add(1, Ordering::Relaxed))),
        })?;
        Ok(Replica { server, state, replicas })
    }

    /// How many of the source's groups are applied.
    pub fn applied(&self) -> usize {
        self.state.ordered(|state| state.gtids.get(&DomainId(0)).map_or(0, |gtid| gtid.seq_no as usize))
    }

    /// The same of what is published.
    pub fn published(&self) -> usize {
        self.replicas.applied().first().map_or(0, |gtid| gtid.seq_no as usize)
    }

    /// Applies until so many groups are published, or the disk fails; how many were published.
    pub fn run(&self, wanted: usize, has_failed: impl Fn() -> bool) -> usize {
        let threads = ReplicaThreads { io: false, sql: true };
        let started = self.replicas.start(&SourceName::One(String::new()), threads, &ReplicaUntil::Never);
        let end = Instant::now() + PATIENCE;
        while started.is_ok() && self.published() < wanted && !has_failed() {
            if Instant::now() > end {
                let status = self.replicas.status(&SourceName::All);
                panic!("it stands still behind group {}: {status:?}", self.applied());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let published = self.published();
        self.replicas.close();
        published
    }

    /// Applies all that is in the relay log; how many groups are published.
    pub fn run_all(&self) -> usize {
        let threads = ReplicaThreads { io: false, sql: true };
        let started = self.replicas.start(&SourceName::One(String::new()), threads, &ReplicaUntil::Never);
        started.expect("started");
        let end = Instant::now() + PATIENCE;
        let is_idle = || {
            let status = self.replicas.status(&SourceName::All).expect("there");
            status[0][1].to_text().starts_with("Slave has read all relay log")
        };
        while !is_idle() {
            assert!(Instant::now() < end, "{:?}", self.replicas.status(&SourceName::All));
            std::thread::sleep(Duration::from_millis(1));
        }
        // What is ordered is published when the threads have ended.
        self.replicas.close();
        self.published()
    }
}

/// A disk with a source that is configured, and all its groups in the relay log.
pub fn received(binlog: &[u8]) -> MemFs {
    let memory = MemFs::new();
    let disk: SharedFs = Arc::new(memory.clone());
    let replica = Replica::open(&disk, 0).expect("opens");
    let option = ("MASTER_HOST".to_owned(), Value::text("nowhere"));
    replica.replicas.change_master("", &[option]).expect("taken");
    replica.replicas.close();
    drop(replica);
    receive(&disk, binlog);
    memory
}

/// Makes this the relay log, as if it had just come.
pub fn receive(disk: &SharedFs, binlog: &[u8]) {
    let name = BinlogName::new(Path::new(DATADIR), "relay");
    let line = name.index_line(1) + "\n";
    for (path, bytes) in [(name.path(1), binlog), (name.index_path(), line.as_bytes())] {
        let file = disk.open(&path, OpenMode::CreateOrOpen).expect("made");
        file.set_len(0).expect("empty");
        file.write_at(bytes, 0).expect("written");
        file.sync_data().expect("durable");
    }
    disk.sync_dir(Path::new(DATADIR)).expect("durable");
}

/// Where each group of a binary log ends.
pub fn group_ends(binlog: &[u8]) -> Vec<usize> {
    let disk = disk();
    let path = Path::new("/binlog");
    let file = disk.open(path, OpenMode::CreateOrOpen).expect("made");
    file.write_at(binlog, 0).expect("written");
    let mut reader = EventReader::open(&disk, path).expect("opens");
    let (mut ends, mut is_open, mut end) = (Vec::new(), false, 0);
    while let Some(raw) = reader.next_event().expect("sound") {
        if matches!(reader.decode(&raw), Ok(Event::Gtid(_))) {
            if is_open {
                ends.push(end);
            }
            is_open = true;
        }
        end = raw.end() as usize;
    }
    ends.push(end);
    ends
}
