//! Counters and times of the commit path, for SHOW STATUS, information_schema and the metrics endpoint.
//!
//! # Writers of the fields
//! | field | written by, under which lock |
//! |---|---|
//! | step `prepare` | every worker |
//! | steps `order_wait`, `order_work` | the holder of the order stage |
//! | steps `queue`, `write`, `flush`, the times of flushes | the holder of the decision stage (`decision`) |
//! | steps `replica_wait`, `archive_wait`, `publish`, the counters of groups and their size | the thread that publishes groups, under `publish_queue` |
//! | step `acknowledge` | the thread that published the groups; the next may already be at work |
//!
//! Where a lock excludes other writers, recording uses plain loads and stores. A transaction then costs two
//! readings of the clock (four, if it is alone in its batch) and some nanoseconds, a group six readings.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cohort_base::{Histogram, HistogramSnapshot, add_alone};

/// A step of a transaction between COMMIT and OK: the stages, with waiting and work separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Step {
    /// Everything that can fail: spilling, reserving log space. Recorded per transaction.
    Prepare,
    /// Waiting until the order stage takes the transaction. Recorded per transaction.
    OrderWait,
    /// Engines apply the batch, GTIDs are assigned, locks are released. Recorded per transaction, with the
    /// same time for all of a batch.
    OrderWork,
    /// Ordered, waiting until a leader takes it: for the flush in progress, and while the group is left open.
    /// Recorded per transaction.
    Queue,
    /// Writing the group's records into the log buffer. Recorded per group.
    Write,
    /// One flush. Recorded per group.
    Flush,
    /// Held at a gate, for a replica's acknowledgement. Recorded per group and gate that held it.
    ReplicaWait,
    /// Held at a gate, until the repository of the archive has it. Recorded per group that it held.
    ArchiveWait,
    /// Publishing the read view and the binlog bytes. Recorded per group.
    Publish,
    /// Sending the held replies. Recorded per group.
    Acknowledge,
}

impl Step {
    /// All steps in the order in which a transaction passes them.
    pub const ALL: [Step; 10] = [
        Step::Prepare,
        Step::OrderWait,
        Step::OrderWork,
        Step::Queue,
        Step::Write,
        Step::Flush,
        Step::ReplicaWait,
        Step::ArchiveWait,
        Step::Publish,
        Step::Acknowledge,
    ];

    /// Returns the name used by SHOW STATUS, information_schema and the endpoint.
    pub fn name(self) -> &'static str {
        match self {
            Step::Prepare => "prepare",
            Step::OrderWait => "order_wait",
            Step::OrderWork => "order_work",
            Step::Queue => "queue",
            Step::Write => "write",
            Step::Flush => "flush",
            Step::ReplicaWait => "replica_wait",
            Step::ArchiveWait => "archive_wait",
            Step::Publish => "publish",
            Step::Acknowledge => "acknowledge",
        }
    }
}

/// Durations of the steps of a session's commits, while it traces a statement. The threads that hold the
/// stages write them; the session reads them after its reply has left.
#[derive(Debug, Default)]
pub struct StageTrace {
    is_on: AtomicBool,
    ns: [AtomicU64; Step::ALL.len()],
}

impl StageTrace {
    /// Begins a statement.
    pub fn begin(&self) {
        self.ns.iter().for_each(|ns| ns.store(0, Ordering::Relaxed));
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Stops recording.
    pub fn end(&self) {
        self.is_on.store(false, Ordering::Relaxed);
    }

    /// Returns whether the session traces.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Adds the duration of a step.
    pub(crate) fn note(&self, step: Step, ns: u64) {
        self.ns[step as usize].fetch_add(ns, Ordering::Relaxed);
    }

    /// Returns the names and durations of all steps but `acknowledge`, which follows the reply.
    pub fn steps(&self) -> Vec<(&'static str, u64)> {
        let steps = Step::ALL.iter().zip(&self.ns).filter(|(step, _)| **step != Step::Acknowledge);
        steps.map(|(step, ns)| (step.name(), ns.load(Ordering::Relaxed))).collect()
    }
}

/// Times of one step.
#[derive(Debug, Default)]
struct StepTimes {
    /// Nanoseconds; one entry per transaction or group, as documented for the step.
    times: Histogram,
    /// Nanoseconds that transactions spent in this step: a group's time counts for each of its members.
    trx_ns: AtomicU64,
}

/// Times of one step at one moment.
#[derive(Clone, Debug)]
pub struct StepSnapshot {
    pub step: Step,
    /// Nanoseconds.
    pub times: HistogramSnapshot,
    /// Nanoseconds that transactions spent in this step, groups weighted by their members.
    pub trx_ns: u64,
}

/// Counters and times of the commit path since the server's start.
#[derive(Debug)]
pub struct Metrics {
    /// Transactions published.
    pub commits: AtomicU64,
    /// Transactions published that have events in the binlog.
    pub binlog_commits: AtomicU64,
    /// Flush groups.
    pub groups: AtomicU64,
    /// Number of transactions in a group.
    pub group_size: Histogram,
    /// Bytes written to the binlog.
    pub binlog_bytes: AtomicU64,
    /// Checkpoints completed.
    pub checkpoints: AtomicU64,
    /// Checkpoints that failed and will be tried again.
    pub checkpoint_failures: AtomicU64,
    /// When the last flush began, by the clock of the steps. Written by the leader.
    pub flush_began_ns: AtomicU64,
    /// When the last flush ended; if before `flush_began_ns`, a flush is in progress. Written by the decision
    /// stage.
    pub flush_ended_ns: AtomicU64,
    /// Minimum duration of a slow flush; `u64::MAX` if none is reported. Written by SET
    /// `slow_flush_warning_ms`.
    pub slow_flush_ns: AtomicU64,
    /// Number of slow flushes.
    pub slow_flushes: AtomicU64,
    /// The longest flush since this value was last taken. Written by the decision stage, set to 0 by the
    /// watchdog that takes it.
    pub flush_ns_recent_max: AtomicU64,
    steps: [StepTimes; Step::ALL.len()],
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            commits: AtomicU64::new(0),
            binlog_commits: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            group_size: Histogram::default(),
            binlog_bytes: AtomicU64::new(0),
            checkpoints: AtomicU64::new(0),
            checkpoint_failures: AtomicU64::new(0),
            flush_began_ns: AtomicU64::new(0),
            flush_ended_ns: AtomicU64::new(0),
            slow_flush_ns: AtomicU64::new(u64::MAX),
            slow_flushes: AtomicU64::new(0),
            flush_ns_recent_max: AtomicU64::new(0),
            steps: Default::default(),
        }
    }
}

impl Metrics {
    /// Records once that a step took `ns` for this number of transactions together.
    pub fn record(&self, step: Step, ns: u64, transactions: u64) {
        let of = &self.steps[step as usize];
        of.times.record(ns);
        of.trx_ns.fetch_add(ns * transactions, Ordering::Relaxed);
    }

    /// Records like [`Metrics::record`], for a step whose lock the caller holds.
    pub fn record_alone(&self, step: Step, ns: u64, transactions: u64) {
        let of = &self.steps[step as usize];
        of.times.record_alone(ns, 1);
        add_alone(&of.trx_ns, ns * transactions);
    }

    /// Records `ns` once for each of this number of transactions; the caller holds the step's lock.
    pub fn record_each_alone(&self, step: Step, ns: u64, transactions: u64) {
        let of = &self.steps[step as usize];
        of.times.record_alone(ns, transactions);
        add_alone(&of.trx_ns, ns * transactions);
    }

    /// Records that the flush begun at `began_ns` has ended, unless a later one is already in progress; the
    /// caller holds the decision stage.
    pub fn flush_ended(&self, began_ns: u64, now_ns: u64) {
        if self.flush_began_ns.load(Ordering::Relaxed) == began_ns {
            self.flush_ended_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Records the duration of a flush of this number of transactions; the caller holds the decision stage.
    pub fn flushed(&self, ns: u64, transactions: u64) {
        self.record_alone(Step::Flush, ns, transactions);
        if ns >= self.slow_flush_ns.load(Ordering::Relaxed) {
            add_alone(&self.slow_flushes, 1);
        }
        if ns > self.flush_ns_recent_max.load(Ordering::Relaxed) {
            self.flush_ns_recent_max.store(ns, Ordering::Relaxed);
        }
    }

    /// Counts a published group and its transactions, `logged` of them in the binlog; the caller holds the
    /// publish stage.
    pub fn published(&self, transactions: u64, logged: u64) {
        add_alone(&self.commits, transactions);
        add_alone(&self.binlog_commits, logged);
        add_alone(&self.groups, 1);
        self.group_size.record_alone(transactions, 1);
    }

    /// Returns the times of a step so far.
    pub fn step(&self, step: Step) -> StepSnapshot {
        let of = &self.steps[step as usize];
        StepSnapshot { step, times: of.times.snapshot(), trx_ns: of.trx_ns.load(Ordering::Relaxed) }
    }

    /// Returns the times of all steps so far, in their order.
    pub fn steps(&self) -> impl Iterator<Item = StepSnapshot> {
        Step::ALL.into_iter().map(|step| self.step(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_s_time_counts_for_each_member_and_a_batch_s_is_recorded_for_each() {
        let metrics = Metrics::default();
        metrics.flushed(1000, 64);
        metrics.record_each_alone(Step::OrderWork, 10, 3);
        metrics.record(Step::Acknowledge, 5, 2);
        let flush = metrics.step(Step::Flush);
        assert_eq!((flush.times.count(), flush.times.sum(), flush.trx_ns), (1, 1000, 64_000));
        let order = metrics.step(Step::OrderWork);
        assert_eq!((order.times.count(), order.times.sum(), order.trx_ns), (3, 30, 30));
        assert_eq!(metrics.step(Step::Acknowledge).trx_ns, 10);
    }

    #[test]
    fn slow_flushes_are_counted_from_the_threshold_on() {
        let metrics = Metrics::default();
        metrics.flushed(u64::MAX / 2, 1);
        assert_eq!(metrics.slow_flushes.load(Ordering::Relaxed), 0, "off");
        metrics.slow_flush_ns.store(100, Ordering::Relaxed);
        [99, 100, 101].iter().for_each(|ns| metrics.flushed(*ns, 1));
        assert_eq!(metrics.slow_flushes.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn steps_stand_at_their_place_and_have_names_of_their_own() {
        let mut names: Vec<&str> = Step::ALL.iter().map(|step| step.name()).collect();
        assert!(Step::ALL.iter().enumerate().all(|(place, step)| *step as usize == place));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Step::ALL.len());
    }
}
