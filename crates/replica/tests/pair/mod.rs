//! A source's binary log, and a replica in memory with that log as its relay log.

#![allow(dead_code)] // each test binary uses a part of it

#[path = "../../../exec/tests/world/mod.rs"]
mod world;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_base::{ConnectionId, DomainId, ServerId};
use cohort_binlog::event::{Event, Rotate, begin_event, crc_of_event, finish_event, flags};
use cohort_binlog::{BinlogName, Checksum, EventReader, EventType};
use cohort_config::{VarId, VarValue};
use cohort_exec::{BinlogCache, ReplicaControl, ReplicaThreads, ReplicaUntil, SourceName};
use cohort_replica::{ReplicaLog, ReplicaParts, Replicas, StateStore};
use cohort_types::Value;
use cohort_vfs::{MemFs, OpenMode, SharedFs};
pub use world::{Server, disk};

const DATADIR: &str = "/data";
const PATIENCE: Duration = Duration::from_secs(60);
/// Columns of SHOW ALL SLAVES STATUS.
const SQL_RUNNING: usize = 13;
const LAST_ERRNO: usize = 20;

/// A script of statements, each of which is one group of the binary log.
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

/// Returns the source's tables after each statement, and its binary log.
pub fn source() -> (Vec<String>, Vec<u8>) {
    source_of(&SCRIPT)
}

/// Like [`source`], for another script.
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
        let server = Server::open_concurrently(disk, BinlogCache::default(), vec![Arc::clone(&state) as _])?;
        let globals = &server.db.globals;
        globals.put(VarId::ServerId, &VarValue::UInt(7));
        globals.put(VarId::LogSlaveUpdates, &VarValue::Bool(true));
        globals.put(VarId::RelayLog, &VarValue::text("relay"));
        globals.put(VarId::SlaveParallelThreads, &VarValue::UInt(threads));
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

    /// Returns the number of the source's groups that are applied.
    pub fn applied(&self) -> usize {
        self.state.ordered(|state| state.gtids.get(&DomainId(0)).map_or(0, |gtid| gtid.seq_no as usize))
    }

    /// Returns the number of the source's groups that are published.
    pub fn published(&self) -> usize {
        self.replicas.applied().first().map_or(0, |gtid| gtid.seq_no as usize)
    }

    /// Applies until `wanted` groups are published or the disk fails. Returns the number of published groups.
    pub fn run(&self, wanted: usize, has_failed: impl Fn() -> bool) -> usize {
        let threads = ReplicaThreads { io: false, sql: true };
        let started = self.replicas.start(&SourceName::One(String::new()), threads, &ReplicaUntil::Never);
        let end = Instant::now() + PATIENCE;
        while started.is_ok() && self.published() < wanted && !has_failed() {
            if Instant::now() > end {
                let status = self.replicas.status(&SourceName::All);
                panic!("it does not continue after group {}: {status:?}", self.applied());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let published = self.published();
        self.replicas.close();
        published
    }

    /// Returns the error of a refused start, after checking that SHOW SLAVE STATUS has it, too.
    pub fn refused(&self) -> (u16, String) {
        let threads = ReplicaThreads { io: false, sql: true };
        let started = self.replicas.start(&SourceName::One(String::new()), threads, &ReplicaUntil::Never);
        let error = started.expect_err("refused");
        let status = self.replicas.status(&SourceName::All).expect("there");
        let shown = &status[0];
        assert!(shown.contains(&Value::UInt(error.code.number().into())), "{shown:?}");
        assert!(shown.contains(&Value::text(&error.message)), "{shown:?}");
        self.replicas.close();
        (error.code.number(), error.message)
    }

    /// Applies the whole relay log. Returns the number of published groups.
    pub fn run_all(&self) -> usize {
        self.try_run_all().unwrap_or_else(|number| {
            panic!("error {number}: {:?}", self.replicas.status(&SourceName::All));
        })
    }

    /// Like [`Replica::run_all`], but returns the error number if the thread ends with an error.
    pub fn try_run_all(&self) -> Result<usize, u32> {
        let threads = ReplicaThreads { io: false, sql: true };
        let started = self.replicas.start(&SourceName::One(String::new()), threads, &ReplicaUntil::Never);
        if let Err(error) = started {
            self.replicas.close();
            return Err(error.code.number().into());
        }
        let end = Instant::now() + PATIENCE;
        let shown = |column: usize| {
            let status = self.replicas.status(&SourceName::All).expect("there");
            status[0][column].to_text()
        };
        while !shown(1).starts_with("Slave has read all relay log") {
            if shown(SQL_RUNNING) == "No" {
                let number = shown(LAST_ERRNO).parse().expect("a number");
                self.replicas.close();
                return Err(number);
            }
            assert!(Instant::now() < end, "{:?}", self.replicas.status(&SourceName::All));
            std::thread::sleep(Duration::from_millis(1));
        }
        // Once the threads have ended, everything ordered is published.
        self.replicas.close();
        Ok(self.published())
    }
}

/// Returns a disk with a configured source and all its groups in the relay log.
pub fn received(binlog: &[u8]) -> MemFs {
    let memory = configured(&[]);
    receive(&(Arc::new(memory.clone()) as SharedFs), binlog);
    memory
}

/// Returns a disk with a configured source.
pub fn configured(more: &[(String, Value)]) -> MemFs {
    let memory = MemFs::new();
    let disk: SharedFs = Arc::new(memory.clone());
    let replica = Replica::open(&disk, 0).expect("opens");
    let host = ("MASTER_HOST".to_owned(), Value::text("nowhere"));
    replica.replicas.change_master("", &[&[host], more].concat()).expect("taken");
    replica.replicas.close();
    memory
}

/// Writes a relay log as if it had just been received: its receiver was interrupted and may have acknowledged
/// everything complete.
pub fn receive(disk: &SharedFs, binlog: &[u8]) {
    put_relay_log(disk, &[binlog.to_vec()], (0, 0), true);
}

/// Writes the relay log files, with everything before `until` acknowledged, and perhaps more if `is_open`.
pub fn put_relay_log(disk: &SharedFs, files: &[Vec<u8>], until: (u32, u64), is_open: bool) {
    let name = relay_name();
    let numbers = 1..=files.len() as u32;
    let lines: String = numbers.clone().map(|number| name.index_line(number) + "\n").collect();
    let index = lines + "./relay.marks\n";
    for (number, bytes) in numbers.zip(files) {
        put(disk, &name.path(number), bytes);
    }
    put(disk, &name.index_path(), index.as_bytes());
    put(disk, &marks_path(), &mark(until, is_open));
    disk.sync_dir(Path::new(DATADIR)).expect("durable");
}

pub fn relay_name() -> BinlogName {
    BinlogName::new(Path::new(DATADIR), "relay")
}

pub fn marks_path() -> PathBuf {
    Path::new(DATADIR).join("relay.marks")
}

/// Writes a file.
pub fn put(disk: &SharedFs, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, OpenMode::CreateOrOpen).expect("made");
    file.set_len(0).expect("empty");
    file.write_at(bytes, 0).expect("written");
    file.sync_data().expect("durable");
}

pub fn content(disk: &SharedFs, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read).expect("there");
    let mut bytes = vec![0; file.len().expect("known") as usize];
    file.read_at(&mut bytes, 0).expect("read");
    bytes
}

/// Returns an encoded mark.
fn mark((file, offset): (u32, u64), is_open: bool) -> Vec<u8> {
    let mut bytes = b"COHMRK01".to_vec();
    bytes.extend_from_slice(&7u64.to_le_bytes());
    bytes.extend_from_slice(&file.to_le_bytes());
    bytes.extend_from_slice(&offset.to_le_bytes());
    bytes.push(is_open.into());
    bytes.extend_from_slice(&crc_of_event(&bytes).to_le_bytes());
    bytes
}

/// Splits a binary log into relay log files, a new one at each offset in `cuts`.
pub fn relay_files(binlog: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let head_end = {
        let disk = disk();
        let path = Path::new("/binlog");
        put(&disk, path, binlog);
        EventReader::open(&disk, path).expect("opens").next_event().expect("sound").expect("there").end()
    };
    let mut files = Vec::new();
    let ends = cuts.iter().copied().chain([binlog.len()]);
    let mut from = 0;
    for (n, end) in ends.enumerate() {
        let mut file = Vec::new();
        let head_end = head_end as usize;
        file.extend_from_slice(&binlog[..head_end]);
        own_rotate(&mut file, "binlog.000001", from.max(4) as u64, flags::ARTIFICIAL);
        file.extend_from_slice(&binlog[from.max(head_end)..end]);
        if n < cuts.len() {
            own_rotate(&mut file, &relay_name().file(n as u32 + 2), 4, 0);
        }
        files.push(file);
        from = end;
    }
    files
}

fn own_rotate(file: &mut Vec<u8>, name: &str, position: u64, more: u16) {
    let offset = file.len() as u64;
    let start = begin_event(file, EventType::ROTATE, 9, ServerId(7), flags::RELAY_LOG | more);
    Event::Rotate(Rotate { position, name: name.as_bytes().to_vec() }).encode(file);
    finish_event(file, start, offset, Checksum::Crc32);
}

/// Returns the offset of the first group of a binary log.
pub fn first_group(binlog: &[u8]) -> usize {
    let disk = disk();
    let path = Path::new("/binlog");
    put(&disk, path, binlog);
    let mut reader = EventReader::open(&disk, path).expect("opens");
    loop {
        let raw = reader.next_event().expect("sound").expect("a group");
        if matches!(reader.decode(&raw), Ok(Event::Gtid(_))) {
            return raw.offset as usize;
        }
    }
}

/// Returns the end offset of each group of a binary log.
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
