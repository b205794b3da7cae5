//! Benchmark of the commit pipeline alone, over the real log on a real disk, without engines, binlog and SQL.
//!
//! `cargo run --release -p cohort-commit --example pipeline_speed [FOLDER [SECONDS [THREADS...]]]` prints
//! durable transactions/s by number of threads that order transactions of 200 bytes; `./x bench pipeline`
//! runs it with flushes of a fixed duration. Threads do not wait for their transactions (deferred
//! acknowledgement); each has at most 1,000 in progress.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, ParticipantId, TrxId};
use cohort_commit::{
    CommitRequest, Coordinator, CoordinatorOptions, GroupCommitOptions, LogLayout, Step, Wake,
};
use cohort_engine::{CheckpointTask, EngineError, Lsn, Participant, Redo};
use cohort_locks::{LockTable, WritePermit};
use cohort_log::LogOptions;
use cohort_vfs::World;

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const TRX_BYTES: usize = 200;
const ON_THE_WAY_MAX: u64 = 1000;
const SECONDS: f64 = 3.0;
const THREADS: [usize; 7] = [1, 2, 4, 16, 64, 256, 512];

/// A participant that ignores its redo.
struct Sink;

impl Participant for Sink {
    fn id(&self) -> ParticipantId {
        ParticipantId(1)
    }

    fn commit_ordered(&self, _seq: CommitSeq, _redo: &[&Redo]) {}

    fn begin_checkpoint(&self, _lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError> {
        struct Done;
        impl CheckpointTask for Done {
            fn finish(self: Box<Self>) -> Result<(), EngineError> {
                Ok(())
            }
        }
        Ok(Box::new(Done))
    }

    fn durable_lsn(&self) -> Lsn {
        Lsn(0)
    }

    fn unflushed_bytes(&self) -> u64 {
        0
    }

    fn replay(&self, _redo: &[Redo]) -> Result<(), EngineError> {
        Ok(())
    }
}

#[derive(Default)]
struct Counter(AtomicU64);

impl Wake for Counter {
    fn acknowledged(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn run(folder: PathBuf, time: Duration, threads: usize) -> (f64, f64, f64) {
    let locks = LockTable::new(1, cohort_locks::this_thread);
    let options = CoordinatorOptions {
        datadir: folder,
        layout: LogLayout::Shared,
        log: LogOptions::default(),
        binlog: None,
        group_commit: GroupCommitOptions { is_adaptive: true, ..GroupCommitOptions::default() },
        is_early_release: true,
        unreleased: cohort_commit::Unreleased::Keep,
        checkpoint_bytes: u64::MAX,
        checkpoint_bytes_max: u64::MAX,
        free_bytes_min: 0,
        has_threads: true,
        archive: None,
        on_stop: Arc::new(|error| panic!("{error}")),
        failpoint: None,
    };
    let coordinator =
        Coordinator::open(World::real(), options, vec![Arc::new(Sink)], Vec::new(), locks.clone())
            .expect("opens");
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            let (coordinator, locks) = (&coordinator, &locks);
            scope.spawn(move || {
                let done = Arc::new(Counter::default());
                let mut sent = 0;
                while start.elapsed() < time {
                    let redo = vec![(ParticipantId(1), Redo::new(vec![7; TRX_BYTES]))];
                    let locks = locks.owner(TrxId(thread));
                    let permit = WritePermit::unlogged();
                    let request = CommitRequest { redo, binlog: None, locks, permit, client: None };
                    let prepared =
                        coordinator.prepare(request).map_err(|(e, _)| e).expect("there is reservation");
                    let seq = coordinator.order(prepared);
                    sent += u64::from(coordinator.when_acknowledged(seq, done.clone()));
                    coordinator.lead();
                    if sent - done.0.load(Ordering::Relaxed) >= ON_THE_WAY_MAX {
                        coordinator.wait_acknowledged(seq).expect("running");
                    }
                }
            });
        }
    });
    let metrics = coordinator.metrics();
    let seconds = start.elapsed().as_secs_f64();
    let commits = metrics.commits.load(Ordering::Relaxed) as f64;
    let groups = metrics.groups.load(Ordering::Relaxed) as f64;
    (commits / seconds, commits / groups, metrics.step(Step::Flush).times.sum() as f64 / 1000.0 / groups)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds = arguments.next().map_or(SECONDS, |text| text.parse().expect("seconds"));
    let given: Vec<usize> = arguments.map(|text| text.parse().expect("a number of threads")).collect();
    let all = if given.is_empty() { THREADS.to_vec() } else { given };
    println!("threads  transactions/s  group size  flush us");
    for threads in all {
        let dir = folder.join(format!("pipeline-{}-{threads}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        let (rate, group, flush_us) = run(dir.clone(), Duration::from_secs_f64(seconds), threads);
        println!("{threads:7}  {rate:14.0}  {group:10.1}  {flush_us:8.0}");
        std::fs::remove_dir_all(&dir).expect("removes");
    }
}
