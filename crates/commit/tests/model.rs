//! Model checks: the commit protocol and the group-commit policy under a scheduler that explores
//! interleavings.
//!
//! The source files are compiled here a second time, with the locks and atomics of `cohort_interleave` in
//! place of the real ones. The models park their clients as connections do, without a timeout. So a
//! transaction that no thread leads is a deadlock, which the scheduler reports with the schedule that
//! reproduces it.
//!
//! # Mutations that were found
//! | mutation | check |
//! |---|---|
//! | a worker that ordered another thread's transaction does not lead | `no_waiter_is_forgotten` |
//! | a leader does not recheck the queue after it released `leader` | `no_waiter_is_forgotten` |
//! | a client is registered without rechecking `acknowledged` | `no_waiter_is_forgotten` |
//! | a group snapshot is taken without the order stage | `no_waiter_is_forgotten` |
//! | `hold` does not lead, or does not recheck the arrivals | `work_under_the_order_stage_strands_no_transaction` |
//! | a refused transaction's worker does not lead for those that it ordered | `work_under_the_order_stage_strands_no_transaction` |
//! | the leader releases `leader` before it has taken `decision` | `groups_that_overlap_keep_their_order` |
//! | a leader that has decided does not recheck the queue | `groups_that_overlap_keep_their_order` |
//! | `hold` does not wait for `decision` | `groups_that_overlap_keep_their_order` |
//! | the timer thread is not woken when a group is opened | `an_open_group_is_closed_in_time` |
//! | the timer thread is not woken when the queue is left, or does not recheck before it sleeps | `queues_left_by_workers_are_led_in_time` |
//! | the thread that opened a gate does not publish the held groups | `a_gate_lets_everybody_through` |
//! | the thread that has an acknowledgement of the repository, or sees the timeout, does not publish | `commits_wait_for_the_archive_or_its_timeout` |
//! | a group passes the gate of the archive without looking | `commits_wait_for_the_archive_or_its_timeout` |
//! | another waiter for a killed client's transaction is treated as that client | `a_waiter_that_gives_up_is_notified` |
//!
//! If the recheck of the arrivals is removed, no transaction is stranded, because a leader rechecks them too.
//! The recheck only spares a hot row the wait for that leader.

#![allow(dead_code)]

#[path = "../src/archive/gate.rs"]
mod archive_gate;
#[path = "../src/commit_env.rs"]
mod commit_env;
#[path = "../src/group_commit.rs"]
mod group_commit;
#[path = "../src/metrics.rs"]
mod metrics;
#[path = "../src/pipeline.rs"]
mod pipeline;
#[path = "../src/return_times.rs"]
mod return_times;
#[path = "../src/stage.rs"]
mod stage;

/// The module that the files import as `crate::sync`.
mod sync {
    pub use cohort_interleave::{
        AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, fence,
    };
}

use std::sync::Arc;
use std::time::Duration;

use cohort_base::{CommitSeq, ConnectionId};
use cohort_interleave::{check, choose, thread};

use crate::archive_gate::{ArchiveGate, ArchiveSyncOptions, Watch};
use crate::commit_env::{CommitEnv, Wake};
use crate::group_commit::GroupCommitOptions;
use crate::pipeline::Pipeline;
use crate::stage::{Durable, Gate, Ordered};
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering};

/// Nanoseconds that the clock advances at each reading.
const TICK_NS: u64 = 20_000;

/// An environment that checks the promises of the protocol at every call.
struct Env {
    applied: AtomicU64,
    written: AtomicU64,
    durable: Mutex<u64>,
    has_durable: Condvar,
    published: AtomicU64,
    /// Last CommitSeq for which the gates of the replicas are open.
    gate: AtomicU64,
    archive: ArchiveGate,
    /// Newest transaction that the archive may send.
    replicated: Mutex<u64>,
    has_replicated: Condvar,
    /// Newest transaction that the repository has.
    archived: AtomicU64,
    /// The gate of the archive may be off.
    may_be_off: AtomicBool,
    clock_ns: AtomicU64,
    /// A group is written and synced while the previous one is decided.
    overlaps: bool,
}

/// First and last CommitSeq of a group.
struct Written(u64, u64);

impl CommitEnv for Env {
    type Trx = ();
    type GroupSnapshot = CommitSeq;
    type Written = Written;
    type Error = ();
    type Wakeups = ();

    fn order(&self, batch: &mut [Ordered<()>]) {
        for trx in batch {
            assert_eq!(self.applied.swap(trx.seq().0, Ordering::SeqCst) + 1, trx.seq().0, "I1");
        }
    }

    fn apply_staged(&self, trx: &mut Ordered<()>) {
        assert!(*self.durable.lock() >= trx.seq().0, "I3: taken in when it is durable");
    }

    fn snapshot(&self, last: CommitSeq) -> CommitSeq {
        assert_eq!(self.applied.load(Ordering::SeqCst), last.0, "the snapshot is the newest applied state");
        last
    }

    fn write(&self, group: &mut [Ordered<()>]) -> Written {
        let written = Written(group[0].seq().0, group[group.len() - 1].seq().0);
        for trx in group {
            assert_eq!(self.written.swap(trx.seq().0, Ordering::SeqCst) + 1, trx.seq().0, "I1");
        }
        written
    }

    fn sync(&self, Written(_, last): &mut Written) -> Result<(), ()> {
        thread::yield_now();
        assert_eq!(self.written.load(Ordering::SeqCst), *last, "one group is written and synced at a time");
        Ok(())
    }

    fn overlaps(&self, _: &Written) -> bool {
        self.overlaps
    }

    fn decide(&self, Written(first, last): &mut Written) -> Result<(), ()> {
        thread::yield_now();
        let mut durable = self.durable.lock();
        assert_eq!(*durable + 1, *first, "I1: decided in the order of the groups");
        *durable = *last;
        drop(durable);
        self.has_durable.notify_all();
        Ok(())
    }

    fn holds(&self, gate: Gate, snapshot: &CommitSeq) -> bool {
        match gate {
            Gate::Archive => self.archive.holds(*snapshot),
            Gate::Publish | Gate::Acknowledge => snapshot.0 > self.gate.load(Ordering::SeqCst),
        }
    }

    fn passed(&self, gate: Gate, group: &[Durable<()>], snapshot: &mut CommitSeq) {
        if gate == Gate::Publish {
            self.archive.arrive(*snapshot, group.len() as u64, self.now_ns());
            *self.replicated.lock() = snapshot.0;
            self.has_replicated.notify_all();
        }
    }

    fn publish(&self, group: &mut [Durable<()>], snapshot: &mut CommitSeq) {
        assert_eq!(group.last().expect("not empty").seq(), *snapshot, "I5: the group's own view");
        assert!(snapshot.0 <= *self.durable.lock(), "I5: durable before it is published");
        let is_archived = snapshot.0 <= self.archived.load(Ordering::SeqCst);
        assert!(is_archived || self.may_be_off.load(Ordering::SeqCst), "the repository has it");
        assert!(self.published.swap(snapshot.0, Ordering::SeqCst) < snapshot.0, "I1: published in order");
    }

    fn stop(&self, (): &()) {
        unreachable!("nothing fails here");
    }

    fn now_ns(&self) -> u64 {
        self.clock_ns.fetch_add(TICK_NS, Ordering::SeqCst)
    }
}

/// A parked client. It waits without a timeout.
#[derive(Default)]
struct Client {
    is_acknowledged: Mutex<bool>,
    changed: Condvar,
    id: Option<ConnectionId>,
}

impl Wake for Client {
    fn acknowledged(self: Arc<Self>) {
        *self.is_acknowledged.lock() = true;
        self.changed.notify_all();
    }

    fn replies_to(&self) -> Option<ConnectionId> {
        self.id
    }
}

impl Client {
    fn wait(&self) {
        let mut is_acknowledged = self.is_acknowledged.lock();
        while !*is_acknowledged {
            self.changed.wait(&mut is_acknowledged);
        }
    }
}

type Checked = Arc<Pipeline<Env>>;

fn pipeline(group_commit: GroupCommitOptions, gate: u64) -> Checked {
    pipeline_of(group_commit, gate, choose(2) == 1)
}

fn pipeline_of(group_commit: GroupCommitOptions, gate: u64, overlaps: bool) -> Checked {
    let env = Env {
        applied: AtomicU64::new(0),
        written: AtomicU64::new(0),
        durable: Mutex::new(0),
        has_durable: Condvar::new(),
        published: AtomicU64::new(0),
        gate: AtomicU64::new(gate),
        archive: ArchiveGate::default(),
        replicated: Mutex::new(0),
        has_replicated: Condvar::new(),
        archived: AtomicU64::new(0),
        may_be_off: AtomicBool::new(true),
        clock_ns: AtomicU64::new(1_000_000),
        overlaps,
    };
    Arc::new(Pipeline::new(env, CommitSeq(0), group_commit))
}

fn check_acknowledged(pipeline: &Checked, seq: CommitSeq) {
    assert!(
        pipeline.env().published.load(Ordering::SeqCst) >= seq.0,
        "I4: published before it is acknowledged"
    );
    assert!(*pipeline.env().durable.lock() >= seq.0, "I4: durable before it is acknowledged");
}

/// Handles a reply as a connection does: parks it and leads, or sends it at once and does not lead.
fn answer(pipeline: &Checked, seq: CommitSeq) {
    let client = Arc::new(Client::default());
    if pipeline.when_acknowledged(seq, client.clone()) {
        pipeline.lead();
        client.wait();
    }
    check_acknowledged(pipeline, seq);
}

fn commit(pipeline: &Checked) {
    let seq = pipeline.order(Pipeline::<Env>::prepared(()));
    answer(pipeline, seq);
}

/// Runs each piece of work in its own thread, and returns when all are done.
fn in_threads(pipeline: &Checked, work: &[fn(&Checked)]) {
    let threads: Vec<_> = work
        .iter()
        .map(|&work| {
            let pipeline = pipeline.clone();
            thread::spawn(move || work(&pipeline))
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
}

/// Runs the work like [`in_threads`], with a timer thread running concurrently.
fn in_threads_with_timekeeper(pipeline: &Checked, work: &[fn(&Checked)]) {
    let keeper = {
        let pipeline = pipeline.clone();
        thread::spawn(move || {
            while pipeline.group_commit().wait_due(&|| pipeline.env().now_ns()) {
                pipeline.lead();
            }
        })
    };
    in_threads(pipeline, work);
    pipeline.group_commit().stop_timer();
    keeper.join().expect("no panic");
}

fn commit_and_go_on(pipeline: &Checked) {
    let seq = pipeline.order(Pipeline::<Env>::prepared(()));
    pipeline.await_ordered(seq);
    assert!(pipeline.env().applied.load(Ordering::SeqCst) >= seq.0);
    answer(pipeline, seq);
}

#[test]
fn no_waiter_is_forgotten() {
    check(4_000, || {
        let pipeline = pipeline(GroupCommitOptions::default(), u64::MAX);
        let ways = [commit, commit_and_go_on];
        let way = || ways[choose(2) as usize];
        match choose(2) {
            0 => in_threads(&pipeline, &[commit, way()]),
            _ => in_threads(&pipeline, &[commit, way(), commit]),
        }
        assert_eq!(pipeline.acknowledged(), pipeline.placed());
    });
}

#[test]
fn work_under_the_order_stage_strands_no_transaction() {
    check(2_000, || {
        let pipeline = pipeline(GroupCommitOptions::default(), u64::MAX);
        let hold = |pipeline: &Checked| {
            let last = pipeline.hold(|last| {
                assert_eq!(*pipeline.env().durable.lock(), last.0, "all that is ordered is durable (I3)");
                last
            });
            assert!(last.is_ok());
        };
        let alone = |pipeline: &Checked| {
            let seq = pipeline.order_exclusive(Pipeline::<Env>::prepared(())).expect("not stopped");
            answer(pipeline, seq);
        };
        let conditional = |pipeline: &Checked| {
            let mut before = 0;
            let look = |env: &Env, _: &()| {
                before = env.applied.load(Ordering::SeqCst);
                Ok::<(), ()>(())
            };
            let Ok(seq) = pipeline.order_if(Pipeline::<Env>::prepared(()), look) else {
                unreachable!("it is never refused");
            };
            assert_eq!(before + 1, seq.0, "nothing comes between the look and the place");
            answer(pipeline, seq);
        };
        let refused = |pipeline: &Checked| {
            assert!(pipeline.order_if(Pipeline::<Env>::prepared(()), |_, _| Err(())).is_err());
        };
        let others = [hold, alone, conditional, refused];
        let [one, two] = [choose(4), choose(4)].map(|n| others[n as usize]);
        in_threads(&pipeline, &[commit, one, two]);
    });
}

/// Two groups are in progress, with a timer thread that may be called to lead the second.
#[test]
fn groups_that_overlap_keep_their_order() {
    check(4_000, || {
        let pipeline = pipeline_of(GroupCommitOptions::default(), u64::MAX, true);
        let keeper = (choose(2) == 1).then(|| {
            // Slow enough that the timer thread is called.
            for _ in 0..8 {
                pipeline.group_commit().flushed(10_000_000);
            }
            let pipeline = pipeline.clone();
            thread::spawn(move || {
                while pipeline.group_commit().wait_due(&|| pipeline.env().now_ns()) {
                    pipeline.lead();
                }
            })
        });
        let hold = |pipeline: &Checked| {
            let held = pipeline.hold(|last| {
                assert_eq!(*pipeline.env().durable.lock(), last.0, "all that is ordered is durable (I3)");
            });
            assert!(held.is_ok());
        };
        let ways = [commit, commit_and_go_on, hold];
        let [one, two] = [choose(3), choose(3)].map(|n| ways[n as usize]);
        in_threads(&pipeline, &[commit, one, two]);
        assert_eq!(pipeline.acknowledged(), pipeline.placed());
        pipeline.group_commit().stop_timer();
        if let Some(keeper) = keeper {
            keeper.join().expect("no panic");
        }
    });
}

#[test]
fn an_open_group_is_closed_in_time() {
    check(2_000, || {
        let group_commit = GroupCommitOptions { is_adaptive: false, wait_count: 3, wait_us: 200 };
        in_threads_with_timekeeper(&pipeline(group_commit, u64::MAX), &[commit, commit]);
    });
}

/// Workers leave the queue to each other, and then run statements that never end.
#[test]
fn queues_left_by_workers_are_led_in_time() {
    let commit_and_stay_away = |pipeline: &Checked| {
        let client = Arc::new(Client::default());
        let seq = pipeline.order(Pipeline::<Env>::prepared(()));
        if pipeline.when_acknowledged(seq, client.clone()) {
            pipeline.lead_later();
            client.wait();
        }
        check_acknowledged(pipeline, seq);
    };
    let hold = |pipeline: &Checked| assert!(pipeline.hold(|_| ()).is_ok());
    check(4_000, move || {
        let pipeline =
            pipeline(GroupCommitOptions { is_adaptive: true, ..GroupCommitOptions::default() }, u64::MAX);
        let ways = [commit_and_stay_away, commit, hold];
        let [one, two] = [choose(3), choose(3)].map(|n| ways[n as usize]);
        in_threads_with_timekeeper(&pipeline, &[commit_and_stay_away, one, two]);
        assert_eq!(pipeline.acknowledged(), pipeline.placed());
    });
}

#[test]
fn a_gate_lets_everybody_through() {
    check(2_000, || {
        let pipeline = pipeline(GroupCommitOptions::default(), 0);
        let replica = {
            let pipeline = pipeline.clone();
            thread::spawn(move || {
                let mut has = 0;
                while has < 3 {
                    let env = pipeline.env();
                    {
                        let mut durable = env.durable.lock();
                        while *durable == has {
                            env.has_durable.wait(&mut durable);
                        }
                        has = *durable;
                    }
                    env.gate.store(has, Ordering::SeqCst);
                    pipeline.gate_opened();
                }
            })
        };
        in_threads(&pipeline, &[commit, commit, commit]);
        replica.join().expect("no panic");
    });
}

/// The archive sends what replicas have let pass, and ends early in some schedules. Then the timeout lets
/// the clients go on.
#[test]
fn commits_wait_for_the_archive_or_its_timeout() {
    check(3_000, || {
        let pipeline = pipeline(GroupCommitOptions::default(), u64::MAX);
        let env = pipeline.env();
        let ends_at = [1, 2, 3][choose(3) as usize];
        let has_watch = ends_at < 3 || choose(2) == 1;
        env.may_be_off.store(has_watch, Ordering::SeqCst);
        let timeout = Duration::from_nanos(TICK_NS * choose(8));
        env.archive.configure(ArchiveSyncOptions { is_enabled: true, timeout });
        let archive = {
            let pipeline = pipeline.clone();
            thread::spawn(move || {
                let (env, mut has) = (pipeline.env(), 0);
                while has < ends_at {
                    let mut replicated = env.replicated.lock();
                    while *replicated == has {
                        env.has_replicated.wait(&mut replicated);
                    }
                    has = *replicated;
                    drop(replicated);
                    env.archived.store(has, Ordering::SeqCst);
                    let now_ns = env.now_ns();
                    if env.archive.acknowledge(CommitSeq(has), Some(now_ns), now_ns).has_opened {
                        pipeline.gate_opened();
                    }
                }
            })
        };
        let watch = has_watch.then(|| {
            let pipeline = pipeline.clone();
            thread::spawn(move || {
                loop {
                    match pipeline.env().archive.watch(&|| pipeline.env().now_ns()) {
                        Watch::GoOn => {}
                        Watch::Expired => pipeline.gate_opened(),
                        Watch::End => return,
                    }
                }
            })
        });
        in_threads(&pipeline, &[commit, commit, commit]);
        assert_eq!(pipeline.acknowledged(), pipeline.placed());
        env.archive.end();
        archive.join().expect("no panic");
        if let Some(watch) = watch {
            watch.join().expect("no panic");
        }
        let counters = env.archive.counters();
        assert_eq!((counters.acknowledged + counters.unacknowledged, counters.waiting), (3, 0));
    });
}

/// A client is killed while it waits at the last gate, or is about to, and another session needs its
/// transaction published. The killed client continues, and the gate stays shut if the client was parked.
#[test]
fn a_waiter_that_gives_up_is_notified() {
    const KILLED: ConnectionId = ConnectionId(7);
    check(2_000, || {
        let pipeline = pipeline(GroupCommitOptions::default(), 0);
        let seq = pipeline.order(Pipeline::<Env>::prepared(()));
        pipeline.lead();
        let open = |pipeline: &Checked| {
            pipeline.env().gate.store(u64::MAX, Ordering::SeqCst);
            pipeline.gate_opened();
        };
        let killed = {
            let pipeline = pipeline.clone();
            thread::spawn(move || {
                let client = Arc::new(Client { id: Some(KILLED), ..Client::default() });
                if pipeline.when_acknowledged(seq, client.clone()) {
                    client.wait();
                }
            })
        };
        let other = {
            let pipeline = pipeline.clone();
            thread::spawn(move || {
                while pipeline.acknowledged() < seq {
                    let alarm = Arc::new(Client::default());
                    if pipeline.when_acknowledged(seq, alarm.clone()) {
                        alarm.wait();
                    }
                }
            })
        };
        if !pipeline.acknowledge_early(seq, KILLED) {
            open(&pipeline);
        }
        killed.join().expect("the killed client is notified");
        open(&pipeline);
        other.join().expect("no panic");
    });
}
