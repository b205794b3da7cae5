//! Tests of the protocol alone, over an environment of counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::CommitSeq;
use cohort_commit::{
    CommitEnv, Durable, Gate, GroupCommitOptions, Ordered, Pipeline, Point, Stage, Stopped, Wake,
};
use parking_lot::Mutex;

/// An environment that counts and checks the order of calls, and fails on request.
#[derive(Default)]
struct Counters {
    /// Number of batches that have reached the order stage.
    batches: AtomicU64,
    applied: Mutex<Vec<u64>>,
    written: Mutex<Vec<u64>>,
    groups: Mutex<Vec<usize>>,
    published: AtomicU64,
    durable: AtomicU64,
    fail: AtomicBool,
    stops: AtomicU64,
    flush: Duration,
    /// Groups are decided after their sync, which takes as long as the sync, and overlap.
    overlaps: bool,
    /// CommitSeq from which on decisions fail.
    fail_decision: AtomicU64,
    /// Number of groups synced.
    synced: AtomicU64,
    deciding: AtomicBool,
    /// While this is locked, no group is decided.
    decision: Mutex<()>,
    /// While this is locked, the first batch stays at the order stage.
    first_batch: Mutex<()>,
    /// The point at which to panic.
    panics_at: Option<Point>,
    /// Last CommitSeq for which each of the two gates is open.
    held_unpublished: AtomicU64,
    held_unacknowledged: AtomicU64,
}

impl CommitEnv for Counters {
    type Trx = u64;
    type GroupSnapshot = CommitSeq;
    type Written = u64;
    type Error = &'static str;
    type Wakeups = ();

    fn order(&self, batch: &mut [Ordered<u64>]) {
        if self.batches.fetch_add(1, Ordering::SeqCst) == 0 {
            drop(self.first_batch.lock());
        }
        self.applied.lock().extend(batch.iter().map(|trx| trx.seq().0));
    }

    fn apply_staged(&self, _trx: &mut Ordered<u64>) {}

    fn snapshot(&self, last: CommitSeq) -> CommitSeq {
        assert_eq!(self.applied.lock().last(), Some(&last.0), "the snapshot is the newest applied state");
        last
    }

    fn write(&self, group: &mut [Ordered<u64>]) -> u64 {
        self.written.lock().extend(group.iter().map(|trx| trx.seq().0));
        self.groups.lock().push(group.len());
        group.last().expect("not empty").seq().0
    }

    fn sync(&self, last: &mut u64) -> Result<(), &'static str> {
        if self.fail.load(Ordering::SeqCst) {
            return Err("no disk");
        }
        std::thread::sleep(self.flush);
        match self.overlaps {
            false => self.durable.store(*last, Ordering::SeqCst),
            true => drop(self.synced.fetch_add(1, Ordering::SeqCst)),
        }
        Ok(())
    }

    fn overlaps(&self, _: &u64) -> bool {
        self.overlaps
    }

    fn decide(&self, last: &mut u64) -> Result<(), &'static str> {
        if self.overlaps {
            assert!(!self.deciding.swap(true, Ordering::SeqCst), "one is decided at a time");
            std::thread::sleep(self.flush);
            drop(self.decision.lock());
            self.deciding.store(false, Ordering::SeqCst);
            if *last >= self.fail_decision.load(Ordering::SeqCst) {
                return Err("no disk for decisions");
            }
            assert!(self.durable.swap(*last, Ordering::SeqCst) < *last, "I1: decided in order");
        }
        Ok(())
    }

    fn made_durable(&self, group: &[Durable<u64>], last: u64, snapshot: &mut CommitSeq) {
        assert_eq!(last, snapshot.0, "what was written of the same group");
        assert_eq!(group.last().expect("not empty").seq(), *snapshot);
        assert!(snapshot.0 <= self.durable.load(Ordering::SeqCst), "I3: shown when durable");
    }

    fn holds(&self, gate: Gate, snapshot: &CommitSeq) -> bool {
        match gate {
            Gate::Publish => snapshot.0 > self.held_unpublished.load(Ordering::SeqCst),
            Gate::Archive => false,
            Gate::Acknowledge => snapshot.0 > self.held_unacknowledged.load(Ordering::SeqCst),
        }
    }

    fn publish(&self, group: &mut [Durable<u64>], snapshot: &mut CommitSeq) {
        let last = group.last().expect("not empty").seq();
        assert_eq!(last, *snapshot, "I5: the view published is the group's own");
        assert!(last.0 <= self.durable.load(Ordering::SeqCst), "I4: durable before it is published");
        assert!(self.published.swap(last.0, Ordering::SeqCst) < last.0, "I1: published in order");
    }

    fn stop(&self, _error: &&'static str) {
        self.stops.fetch_add(1, Ordering::SeqCst);
    }

    fn reached(&self, point: Point) {
        assert_ne!(Some(point), self.panics_at, "the panic that was asked for");
    }

    fn now_ns(&self) -> u64 {
        std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos() as u64
    }
}

fn pipeline(flush: Duration, group_commit: GroupCommitOptions) -> Arc<Pipeline<Counters>> {
    let (held_unpublished, held_unacknowledged) = (AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX));
    let counters = Counters { flush, held_unpublished, held_unacknowledged, ..Counters::default() };
    Arc::new(Pipeline::new(counters, CommitSeq(0), group_commit))
}

fn overlapping(flush: Duration, fail_decision: u64) -> Arc<Pipeline<Counters>> {
    let open = || AtomicU64::new(u64::MAX);
    let counters = Counters {
        flush,
        overlaps: true,
        fail_decision: AtomicU64::new(fail_decision),
        held_unpublished: open(),
        held_unacknowledged: open(),
        ..Counters::default()
    };
    Arc::new(Pipeline::new(counters, CommitSeq(0), GroupCommitOptions::default()))
}

struct Notified(AtomicU64);

impl Wake for Notified {
    fn acknowledged(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_lone_transaction_is_flushed_by_its_own_worker() {
    let pipeline = pipeline(Duration::ZERO, GroupCommitOptions::default());
    let seq = pipeline.order(Pipeline::<Counters>::prepared(7));
    assert_eq!((seq, pipeline.acknowledged()), (CommitSeq(1), CommitSeq(0)), "ordering does not flush (I4)");
    let notified = Arc::new(Notified(AtomicU64::new(0)));
    assert!(pipeline.when_acknowledged(seq, notified.clone()));
    pipeline.lead();
    assert_eq!((pipeline.acknowledged(), notified.0.load(Ordering::SeqCst)), (seq, 1));
    assert!(!pipeline.when_acknowledged(seq, notified.clone()), "already published: no notification follows");
    assert_eq!(*pipeline.env().groups.lock(), [1]);
}

#[test]
fn order_goes_on_while_a_flush_runs_and_one_flush_takes_all() {
    let pipeline = pipeline(Duration::from_millis(50), GroupCommitOptions::default());
    pipeline.order(Pipeline::<Counters>::prepared(0));
    std::thread::scope(|scope| {
        scope.spawn(|| pipeline.lead());
        while pipeline.env().groups.lock().is_empty() {
            std::thread::yield_now();
        }
        for n in 0..100 {
            pipeline.order(Pipeline::<Counters>::prepared(n));
            pipeline.lead(); // another thread leads: returns at once
        }
        assert_eq!(pipeline.acknowledged(), CommitSeq(0), "all of it within one flush");
    });
    assert_eq!(*pipeline.env().groups.lock(), [1, 100]);
    assert_eq!(pipeline.acknowledged(), CommitSeq(101));
}

#[test]
fn a_caller_that_finds_the_order_stage_taken_is_ordered_by_its_holder() {
    let pipeline = pipeline(Duration::ZERO, GroupCommitOptions::default());
    let busy = pipeline.env().applied.lock();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pipeline.order(Pipeline::<Counters>::prepared(1));
            pipeline.lead();
        });
        while pipeline.env().batches.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let second = pipeline.order(Pipeline::<Counters>::prepared(2));
        pipeline.lead();
        assert_eq!((second, pipeline.placed()), (CommitSeq(2), CommitSeq(2)));
        assert_eq!(pipeline.ordered(), CommitSeq(0), "the stage is taken");
        drop(busy);
        pipeline.await_ordered(second);
        assert!(pipeline.ordered() >= second);
    });
    assert_eq!(pipeline.acknowledged(), CommitSeq(2), "no transaction was forgotten");
}

#[test]
fn many_threads_keep_one_order_and_lose_no_transaction() {
    let pipeline = pipeline(
        Duration::from_micros(50),
        GroupCommitOptions { is_adaptive: true, ..GroupCommitOptions::default() },
    );
    const THREADS: u64 = 16;
    const EACH: u64 = 300;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let pipeline = &pipeline;
            scope.spawn(move || {
                for n in 0..EACH {
                    let seq = pipeline.order(Pipeline::<Counters>::prepared(n));
                    if (n + thread) % 64 == 0 {
                        pipeline.hold(|last| assert!(last >= seq)).expect("running");
                    }
                    pipeline.wait_acknowledged(seq).expect("running");
                    assert!(pipeline.acknowledged() >= seq);
                }
            });
        }
    });
    let expected: Vec<u64> = (1..=THREADS * EACH).collect();
    assert_eq!(*pipeline.env().applied.lock(), expected, "I1: applied in CommitSeq order");
    assert_eq!(*pipeline.env().written.lock(), expected, "I1: written in CommitSeq order");
}

#[test]
fn a_waiting_group_sees_the_state_right_before_it() {
    let pipeline = pipeline(Duration::from_millis(1), GroupCommitOptions::default());
    let asked = |thread: u64, n: u64| {
        let mut seen = 0;
        let ask = |env: &Counters, _: &u64| {
            seen = env.applied.lock().last().copied().unwrap_or(0);
            if n.is_multiple_of(3) { Err("not now") } else { Ok(()) }
        };
        match pipeline.order_if(Pipeline::<Counters>::prepared(thread), ask) {
            Ok(seq) => assert_eq!(seq.0, seen + 1),
            Err((why, trx)) => assert_eq!((why, trx.into_inner()), ("not now", thread)),
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (pipeline, asked) = (&pipeline, &asked);
            scope.spawn(move || {
                for n in 0..300 {
                    if thread % 2 == 0 {
                        asked(thread, n);
                    } else {
                        pipeline.order(Pipeline::<Counters>::prepared(thread));
                    }
                    pipeline.lead();
                }
            });
        }
    });
    // Refused transactions left no gap (`take_group` asserts this, too).
    let done = 2 * 300 + 2 * 200;
    pipeline.wait_acknowledged(CommitSeq(done)).expect("flushed");
    assert_eq!(*pipeline.env().applied.lock(), (1..=done).collect::<Vec<_>>());
}

#[test]
fn parked_sessions_are_notified_exactly_once_under_load() {
    let pipeline = pipeline(Duration::from_micros(30), GroupCommitOptions::default());
    let notified = Arc::new(Notified(AtomicU64::new(0)));
    let parked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..2000 {
                    let seq = pipeline.order(Pipeline::<Counters>::prepared(n));
                    parked.fetch_add(
                        u64::from(pipeline.when_acknowledged(seq, notified.clone())),
                        Ordering::SeqCst,
                    );
                    pipeline.lead();
                }
            });
        }
    });
    assert_eq!(pipeline.acknowledged(), CommitSeq(8000), "no transaction was forgotten");
    assert_eq!(notified.0.load(Ordering::SeqCst), parked.load(Ordering::SeqCst));
}

#[test]
fn a_failed_flush_stops_the_server_and_acknowledges_nothing() {
    let pipeline = pipeline(Duration::ZERO, GroupCommitOptions::default());
    let first = pipeline.order(Pipeline::<Counters>::prepared(1));
    pipeline.wait_acknowledged(first).expect("running");
    pipeline.env().fail.store(true, Ordering::SeqCst);
    let notified = Arc::new(Notified(AtomicU64::new(0)));
    let seq = pipeline.order(Pipeline::<Counters>::prepared(2));
    assert!(pipeline.when_acknowledged(seq, notified.clone()));
    pipeline.lead();
    assert_eq!(pipeline.wait_acknowledged(seq), Err(Stopped));
    assert_eq!(pipeline.hold(|_| ()), Err(Stopped));
    assert_eq!(pipeline.acknowledged(), first);
    assert_eq!((notified.0.load(Ordering::SeqCst), pipeline.env().stops.load(Ordering::SeqCst)), (0, 1));
}

#[test]
fn a_group_is_synced_while_the_one_before_it_is_decided() {
    let pipeline = overlapping(Duration::from_micros(100), u64::MAX);
    let env = pipeline.env();
    std::thread::scope(|scope| {
        let held = env.decision.lock();
        for n in 1..=3 {
            let pipeline = &pipeline;
            let seq = pipeline.order(Pipeline::<Counters>::prepared(n));
            scope.spawn(move || pipeline.wait_acknowledged(seq).expect("running"));
            while env.synced.load(Ordering::SeqCst) < n.min(2) {
                std::thread::yield_now();
            }
        }
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(env.synced.load(Ordering::SeqCst), 2, "two groups are under way, not more");
        assert_eq!((env.durable.load(Ordering::SeqCst), pipeline.acknowledged()), (0, CommitSeq(0)));
        drop(held);
    });
    assert_eq!((pipeline.acknowledged(), env.durable.load(Ordering::SeqCst)), (CommitSeq(3), 3));
}

#[test]
fn overlapping_groups_keep_one_order_and_lose_no_transaction() {
    let pipeline = overlapping(Duration::from_micros(20), u64::MAX);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..200 {
                    let seq = pipeline.order(Pipeline::<Counters>::prepared(n));
                    if n % 64 == 0 {
                        pipeline.hold(|last| assert!(last >= seq)).expect("running");
                    }
                    pipeline.wait_acknowledged(seq).expect("running");
                }
            });
        }
    });
    assert_eq!(*pipeline.env().written.lock(), (1..=1600).collect::<Vec<_>>(), "I1");
}

#[test]
fn a_group_overlapping_a_failed_one_is_not_decided() {
    let pipeline = overlapping(Duration::from_millis(20), 1);
    let notified = Arc::new(Notified(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        let first = pipeline.order(Pipeline::<Counters>::prepared(1));
        assert!(pipeline.when_acknowledged(first, notified.clone()));
        scope.spawn(|| pipeline.lead());
        while !pipeline.env().deciding.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let second = pipeline.order(Pipeline::<Counters>::prepared(2));
        pipeline.when_acknowledged(second, notified.clone());
        pipeline.lead();
        assert_eq!(pipeline.wait_acknowledged(second), Err(Stopped));
    });
    let env = pipeline.env();
    assert_eq!((env.durable.load(Ordering::SeqCst), env.stops.load(Ordering::SeqCst)), (0, 1));
    assert_eq!((pipeline.acknowledged(), notified.0.load(Ordering::SeqCst)), (CommitSeq(0), 0));
}

#[test]
fn the_operators_wait_gathers_a_count() {
    let group_commit =
        GroupCommitOptions { wait_count: 4, wait_us: 2_000_000, ..GroupCommitOptions::default() };
    let pipeline = pipeline(Duration::ZERO, group_commit);
    std::thread::scope(|scope| {
        for n in 0..4 {
            let pipeline = &pipeline;
            scope.spawn(move || {
                let seq = pipeline.order(Pipeline::<Counters>::prepared(n));
                pipeline.wait_acknowledged(seq).expect("running");
            });
        }
    });
    assert_eq!(*pipeline.env().groups.lock(), [4]);
    assert_eq!(pipeline.group_commit().triggers().count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_shut_gate_holds_groups_in_order_while_others_flush() {
    for gate in [Gate::Publish, Gate::Acknowledge] {
        let pipeline = pipeline(Duration::ZERO, GroupCommitOptions::default());
        let env = pipeline.env();
        let mark = if gate == Gate::Publish { &env.held_unpublished } else { &env.held_unacknowledged };
        mark.store(0, Ordering::SeqCst);
        let notified = Arc::new(Notified(AtomicU64::new(0)));
        for n in 1..=3 {
            let seq = pipeline.order(Pipeline::<Counters>::prepared(n));
            assert!(pipeline.when_acknowledged(seq, notified.clone()));
            pipeline.lead();
        }
        assert_eq!(env.durable.load(Ordering::SeqCst), 3, "later groups are durable all the same");
        assert_eq!(env.published.load(Ordering::SeqCst), if gate == Gate::Publish { 0 } else { 3 });
        assert_eq!((pipeline.acknowledged(), notified.0.load(Ordering::SeqCst)), (CommitSeq(0), 0));
        mark.store(2, Ordering::SeqCst);
        pipeline.gate_opened();
        assert_eq!((pipeline.acknowledged(), notified.0.load(Ordering::SeqCst)), (CommitSeq(2), 2));
        pipeline
            .hold(|last| assert_eq!(last, CommitSeq(3)))
            .expect("a checkpoint does not wait for replicas");
        mark.store(3, Ordering::SeqCst);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| pipeline.wait_acknowledged(CommitSeq(3)));
            pipeline.gate_opened();
            assert_eq!(waiter.join().expect("no panic"), Ok(()));
        });
        assert_eq!((pipeline.acknowledged(), notified.0.load(Ordering::SeqCst)), (CommitSeq(3), 3));
    }
}

#[test]
fn a_caller_that_orders_another_transaction_leads() {
    let pipeline = pipeline(Duration::ZERO, GroupCommitOptions::default());
    let notified = Arc::new(Notified(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        let held = pipeline.env().first_batch.lock();
        // The caller does not lead: its own transaction was acknowledged meanwhile, so its reply is simply
        // sent.
        let first = scope.spawn(|| pipeline.order(Pipeline::<Counters>::prepared(1)));
        while pipeline.env().batches.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        // Finds the order stage taken, then an empty queue, and parks.
        let second = pipeline.order(Pipeline::<Counters>::prepared(2));
        assert!(pipeline.when_acknowledged(second, notified.clone()));
        pipeline.lead();
        assert_eq!(notified.0.load(Ordering::SeqCst), 0);
        drop(held);
        first.join().expect("no panic");
    });
    assert_eq!(notified.0.load(Ordering::SeqCst), 1, "the second client waits for no other client's commit");
}

/// The calls that take a transaction from its CommitSeq to its acknowledgement.
const WAYS: [&str; 4] = ["order", "order_if", "order_exclusive", "hold"];

/// Panics at `point` within the call `way`, as a bug would, and continues if the process survives. The exit
/// code says whether a client got an OK for a transaction that never became durable.
fn panic_on_the_way(way: &str, point: &str) -> ! {
    let open = AtomicU64::new(u64::MAX);
    let counters = Counters {
        panics_at: Point::parse(point),
        held_unpublished: AtomicU64::new(u64::MAX),
        held_unacknowledged: open,
        ..Counters::default()
    };
    let pipeline = Pipeline::new(counters, CommitSeq(0), GroupCommitOptions::default());
    let notified = Arc::new(Notified(AtomicU64::new(0)));
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let trx = Pipeline::<Counters>::prepared(1);
        let seq = match way {
            "order_exclusive" => pipeline.order_exclusive(trx).expect("not stopped"),
            "order_if" => pipeline.order_if(trx, |_, _| Ok::<(), ()>(())).expect("not refused"),
            _ => pipeline.order(trx),
        };
        pipeline.when_acknowledged(seq, notified.clone());
        if way == "hold" {
            pipeline
                .hold(|_| assert_ne!(point, "work", "the panic that was asked for"))
                .expect("not stopped");
        }
        pipeline.lead();
    }));
    let was_durable = pipeline.env().durable.load(Ordering::SeqCst) >= 1;
    pipeline.when_acknowledged(CommitSeq(1), notified.clone());
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pipeline.order(Pipeline::<Counters>::prepared(2));
        pipeline.lead();
    }));
    let is_notified = notified.0.load(Ordering::SeqCst) > 0 || pipeline.acknowledged() >= CommitSeq(1);
    std::process::exit(if is_notified && !was_durable { 3 } else { 4 });
}

#[test]
fn a_panic_after_the_point_of_no_return_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    const NAME: &str = "a_panic_after_the_point_of_no_return_ends_the_process";
    if let Ok(asked) = std::env::var("COHORT_PANIC_ON_THE_WAY") {
        let (way, point) = asked.split_once(' ').expect("a way and a point");
        panic_on_the_way(way, point);
    }
    let points =
        Stage::ALL.iter().skip(1).flat_map(|stage| [format!("before:{stage}"), format!("after:{stage}")]);
    let points: Vec<String> = points.filter(|point| point != "before:order").collect();
    assert_eq!(points.len(), 7);
    let work = ("hold", "work".to_owned());
    for (way, point) in WAYS.iter().flat_map(|way| points.iter().map(|p| (*way, p.clone()))).chain([work]) {
        let program = std::env::current_exe().expect("this test");
        let asked = format!("{way} {point}");
        let run = std::process::Command::new(program)
            .args(["--exact", NAME])
            .env("COHORT_PANIC_ON_THE_WAY", &asked)
            .env("RUST_BACKTRACE", "0")
            .output()
            .expect("starts");
        assert_eq!(run.status.signal(), Some(6), "{asked}: {:?}", run.status);
    }
}
