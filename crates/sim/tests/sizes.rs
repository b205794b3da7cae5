//! Transactions of every size around the limits of the commit path, with small segments and real threads:
//! each must be acknowledged, and all must survive a kill.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use cohort_base::{CommitSeq, IndexId, ParticipantId, ServerId, TrxId};
use cohort_binlog::event::{Checksum, QueryEvent, StatusVars};
use cohort_binlog::{BinlogName, CacheOptions, Stamp, TrxCache};
use cohort_commit::{
    BinlogSettings, CommitRequest, Coordinator, CoordinatorOptions, GroupCommitOptions, Unreleased,
};
use cohort_engine::{Engine, Participant, ReadAt, ReferenceEngine};
use cohort_locks::{KillFlag, LockTable, WaitLimit};
use cohort_log::{LogOptions, Preallocation};
use cohort_sim::part;
use cohort_vfs::{MemFs, SharedFs, World as Machine};

const SPACE: IndexId = IndexId(16);
const SEGMENT_BYTES: u64 = 16 << 10;
/// Capacity of a segment without its header.
const CAPACITY: usize = 12 << 10;
/// Cache size beyond which transactions spill.
const CACHE_BYTES: usize = 64 << 10;
/// Buffer size of the binlog files.
const BUFFER_BYTES: usize = 512 << 10;
/// Maximum redo size that is stored inline.
const INLINE_REDO_BYTES: usize = 16 << 20;
/// A wait of this length counts as endless.
const PATIENCE: Duration = Duration::from_secs(300);

struct Server {
    commit: Arc<Coordinator>,
    engine: Arc<ReferenceEngine>,
    locks: Arc<LockTable>,
}

fn open(disk: &SharedFs) -> Server {
    let datadir = PathBuf::from("/data");
    disk.create_dir_all(&datadir).expect("in memory");
    let engine =
        ReferenceEngine::open(ParticipantId(1), disk.clone(), datadir.join("engine")).expect("opens");
    let engine = Arc::new(engine);
    let locks = LockTable::new(1, cohort_locks::this_thread);
    let options = CoordinatorOptions {
        archive: None,
        datadir: datadir.clone(),
        log: LogOptions {
            segment_bytes: SEGMENT_BYTES,
            segments_spare_max: 4,
            preallocation: Preallocation::Thread,
            ..LogOptions::default()
        },
        binlog: Some(BinlogSettings {
            name: BinlogName::new(&datadir, "binlog"),
            file_bytes_max: 1 << 20,
            server_id: ServerId(1),
            server_version: "10.11.99-MariaDB-cohort-log".to_owned(),
            checksum: Checksum::Crc32,
            is_verifying_all: false,
        }),
        group_commit: GroupCommitOptions::default(),
        is_early_release: true,
        layout: cohort_commit::LogLayout::Shared,
        unreleased: Unreleased::Keep,
        checkpoint_bytes: u64::MAX,
        checkpoint_bytes_max: u64::MAX,
        free_bytes_min: 0,
        has_threads: true,
        on_stop: Arc::new(|error| panic!("{error}")),
        failpoint: None,
    };
    let participants = vec![engine.clone() as Arc<dyn Participant>];
    let engines = vec![engine.clone() as Arc<dyn Engine>];
    let machine = Machine::sim(disk.clone(), 1);
    let commit = Coordinator::open(machine, options, participants, engines, locks.clone()).expect("recovers");
    Server { commit, engine, locks }
}

impl Server {
    /// Orders a transaction with about `redo_bytes` of redo and `event_bytes` of events.
    fn order(&self, number: u64, redo_bytes: usize, event_bytes: usize) -> CommitSeq {
        self.order_parts(&[(number, redo_bytes)], event_bytes)
    }

    /// Orders a transaction with separate redo for each row, like a replica that applies a large transaction
    /// in chunks.
    fn order_parts(&self, rows: &[(u64, usize)], event_bytes: usize) -> CommitSeq {
        let number = rows[0].0;
        let part_of = |&(number, redo_bytes): &(u64, usize)| {
            let mut trx = self.engine.begin();
            trx.put(SPACE, &number.to_be_bytes(), &vec![number as u8; redo_bytes]).expect("in memory");
            (self.engine.id(), trx.prepare().expect("in memory"))
        };
        let redo = rows.iter().map(part_of).collect();
        let options = CacheOptions { memory_bytes_max: CACHE_BYTES, ..CacheOptions::default() };
        let mut cache = TrxCache::new(options, Some(self.commit.spill_dir().clone()));
        cache.begin_statement(Stamp { timestamp: 1, server_id: ServerId(1), flags: 0 }, None);
        let text = vec![b'x'; event_bytes];
        cache.query(0, &QueryEvent::new(1, &StatusVars::default(), b"d", &text)).expect("in memory");
        let binlog = part(cache.seal().expect("in memory"));
        let mut locks = self.locks.owner(TrxId(number));
        let permit = self.locks.permit_write(&mut locks, WaitLimit::NoWait, &KillFlag::default());
        let permit = permit.expect("nothing keeps commits out");
        let request = CommitRequest { redo, binlog: Some(binlog), locks, permit, client: None };
        let prepared = self.commit.prepare(request).map_err(|(error, _)| error).expect("there is room");
        self.commit.order(prepared)
    }
}

/// Returns sizes of redo and events: around each limit, in the redo, in the events, and in both.
fn sizes() -> Vec<(usize, usize)> {
    let around = |border: usize| [border - 600, border - 64, border - 8, border, border + 8, border + 600];
    let mut sizes = Vec::new();
    for border in [CAPACITY, 2 * CAPACITY, 5 * CAPACITY, CACHE_BYTES, BUFFER_BYTES] {
        for size in around(border) {
            sizes.extend([(size, 10), (10, size), (size, size)]);
        }
    }
    sizes.extend([INLINE_REDO_BYTES - 64, INLINE_REDO_BYTES, INLINE_REDO_BYTES + 1].map(|size| (size, 10)));
    sizes
}

fn run() {
    let memory = MemFs::new();
    let disk: SharedFs = Arc::new(memory.clone());
    let server = open(&disk);
    let mut written = Vec::new();
    for (redo_bytes, event_bytes) in sizes() {
        // In a group of its own, and in a group with others.
        for others in [0, 3] {
            let mut last = CommitSeq(0);
            for (redo, events) in
                std::iter::once((redo_bytes, event_bytes)).chain((0..others).map(|n| (n * 50, n * 50)))
            {
                let number = written.len() as u64;
                last = server.order(number, redo, events);
                written.push(redo);
            }
            server.commit.wait_acknowledged(last).expect("flushed");
        }
        if written.len() % 25 == 0 {
            server.commit.checkpoint().expect("in memory");
        }
    }
    drop(server);
    let left: SharedFs = Arc::new(memory.kill_clone());
    let server = open(&left);
    let trx = server.engine.begin();
    for (number, bytes) in written.iter().enumerate() {
        let mut value = Vec::new();
        assert!(
            trx.get(ReadAt::Latest, SPACE, &(number as u64).to_be_bytes(), &mut value).expect("in memory")
        );
        assert_eq!(value, vec![number as u8; *bytes], "transaction {number}");
    }
    assert_eq!(server.commit.binlog_status().expect("on").1.to_string(), format!("0-1-{}", written.len()));
    let files = server.commit.with_binlog_files(|files| files.numbers().len()).expect("on").expect("written");
    assert!(files > 3 && disk.exists(Path::new("/data/binlog.000002")));
}

#[test]
fn redo_of_many_parts_has_room_in_the_log() {
    let memory = MemFs::new();
    let disk: SharedFs = Arc::new(memory.clone());
    let server = open(&disk);
    let rows: Vec<(u64, usize)> = (0..2000).map(|number| (number, 1)).collect();
    let seq = server.order_parts(&rows, 10);
    server.commit.wait_acknowledged(seq).expect("flushed");
    drop(server);
    let left: SharedFs = Arc::new(memory.kill_clone());
    let trx = open(&left).engine.begin();
    for (number, _) in &rows {
        let key = number.to_be_bytes();
        assert!(trx.get(ReadAt::Latest, SPACE, &key, &mut Vec::new()).expect("in memory"), "part {number}");
    }
}

#[test]
fn transactions_of_every_size_are_acknowledged() {
    let (done, ended) = channel();
    let runner = std::thread::spawn(move || {
        run();
        // Fails only if the test has already timed out.
        let _ = done.send(());
    });
    match ended.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("a transaction is not acknowledged"),
        // A panic of the runner has its own message.
        _ => runner.join().expect("every transaction is there"),
    }
}
