//! The group-commit policy: how long a flush group is left open for more transactions.
//!
//! # Purpose
//! Without such a policy, N clients settle into two half groups that take turns at the disk: while one half
//! is flushed, the clients of the other are acknowledged and send their next commit just too late. A group
//! that stays open for a fraction of a flush, for the clients acknowledged last, gets all of them into every
//! flush. Waiting must never cost more than it gains, so the decision is based on measured times.
//!
//! # The decision
//! Inputs: `F` is the moving average of the flush time; `o` the number of clients of the last acknowledged
//! group that have not sent another commit yet; `q` the number of queued transactions; `e` the time since
//! that acknowledgement; and a histogram holds the time from a connection's acknowledgement to its next
//! commit. `H(w)` is the share of the clients still out at `e` that return before `e + w`:
//!
//! ```text
//! gain of waiting w:  J(w) = o * F * H(w)          flushes saved, one for each client that returns in time
//!                          - w * (q + o * H(F))    delay of clients queued, or returning anyway
//! ```
//!
//! The group stays open for the `w <= F` with the largest `J`, if that is positive. The worker that brings
//! the last awaited transaction closes it early. When the time is up the decision is repeated, until the
//! group has been open for a whole flush time.
//!
//! # Open groups do not block a worker
//! An open group has no leader. The worker that decided to wait returns to serving clients, because the
//! awaited clients need the processor. The worker that brings the last awaited transaction leads; if none
//! does in time, the [timer thread](crate::group_commit_timer) leads.
//!
//! ```text
//! none --opens()--> open until t --queued() reaches `want`--> due --closed()--> none
//!                      | ^-- opens() after t: decide again  --opens() after t: no--^
//! ```
//!
//! # Queue left to idle workers
//! While `F` is below 300 us nothing is measured and no group is left open for clients: a wake-up would cost
//! as much as it gains. But a flush also costs processor time, and a worker with other connections to serve
//! should serve them first: [`Pipeline::lead_later`](crate::pipeline::Pipeline::lead_later) leaves the queue
//! to the first worker that has none to serve, or that finds the time limit passed. Its group includes the
//! transactions queued meanwhile. If all workers are busy with long statements, the timer thread leads.
//!
//! ```text
//! none --leaves()--> left until t --closed(), called by the leader--> none
//!                         | t and a grace period have passed: wait_due(), the timer thread leads--> none
//! ```
//!
//! # Waits set by the operator
//! `binlog_commit_wait_count` and `binlog_commit_wait_usec` are MariaDB's. With a count above 0 a group stays
//! open until that many transactions are queued, that much time has passed, or a transaction waits for a lock
//! that a queued one still holds.
//!
//! # Locks
//! `state` and `alarm` are leaf locks. Only the holder of `leader` calls [`GroupCommitPolicy::opens`] and
//! [`GroupCommitPolicy::closed`]. It rechecks the queue after it has released `leader`. So a transaction that
//! is queued while `closed` clears `left_until` is still flushed by that leader.

use std::time::Duration;

use cohort_base::{DomainId, Gtid, ServerId};

use crate::metrics::StageTrace;
use crate::return_times::ReturnTimes;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering};

/// Minimum flush time for which groups are left open.
const FLUSH_NS_MIN: u64 = 300_000;
/// Interval at which lock waits are checked while an operator's wait runs.
const LOCK_CHECK_NS: u64 = 200_000;
/// Time for which busy workers leave the queue to others.
const LEFT_NS: u64 = 300_000;
/// Extra time before the timer thread leads a queue that was left: waking it costs more than a worker's check
/// of the clock.
const GRACE_NS: u64 = 1_700_000;
/// `open_until`: no group is open. `left_until`: the queue is not left to another worker.
const NONE: u64 = 0;
/// `open_until`: all awaited transactions are queued.
const DUE: u64 = 1;
/// Interval at which the timer thread rechecks a group that another thread is closing.
const SECOND_LOOK_NS: u64 = 100_000;

/// Settings of the operator.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupCommitOptions {
    /// Allows groups to be left open where that pays.
    pub is_adaptive: bool,
    /// `binlog_commit_wait_count`; 0 is off.
    pub wait_count: usize,
    /// `binlog_commit_wait_usec`.
    pub wait_us: u64,
}

/// Commit history of a connection, for the group-commit policy.
#[derive(Debug, Default)]
pub struct ClientCommits {
    /// When its last commit was acknowledged; 0 if there was none. Written by the acknowledging leader, read
    /// at the next commit.
    acked_ns: AtomicU64,
    /// Number of the group of that commit.
    group: AtomicU64,
    /// The GTID of the connection's last transaction: sequence number (0 if there was none), domain and
    /// server. Written at the order stage, read by the connection after its commit.
    last_seq_no: AtomicU64,
    last_origin: AtomicU64,
    /// The steps of its commits, if it traces them.
    pub trace: StageTrace,
}

impl ClientCommits {
    /// Stores the GTID that a transaction of this connection was assigned.
    pub(crate) fn note_gtid(&self, gtid: Gtid) {
        self.last_origin.store(u64::from(gtid.domain.0) << 32 | u64::from(gtid.server.0), Ordering::Relaxed);
        self.last_seq_no.store(gtid.seq_no, Ordering::Relaxed);
    }

    /// Returns the GTID of the connection's last transaction. To be called by the connection itself, after
    /// its commit.
    pub fn last_gtid(&self) -> Option<Gtid> {
        let origin = self.last_origin.load(Ordering::Relaxed);
        let (domain, server) = (DomainId((origin >> 32) as u32), ServerId(origin as u32));
        let seq_no = self.last_seq_no.load(Ordering::Relaxed);
        (seq_no > 0).then_some(Gtid { domain, server, seq_no })
    }
}

/// Counters of the reasons for which operator's waits ended, for SHOW STATUS.
#[derive(Debug, Default)]
pub struct Triggers {
    pub count: AtomicU64,
    pub timeout: AtomicU64,
    pub lock_wait: AtomicU64,
}

/// The group-commit policy and its measurements.
pub struct GroupCommitPolicy {
    is_adaptive: AtomicBool,
    wait_count: AtomicUsize,
    wait_us: AtomicU64,
    /// Flushes are slow enough for waiting to pay.
    is_slow: AtomicBool,
    /// Time until which the group is open, by the environment's clock; or [`NONE`], [`DUE`].
    open_until: AtomicU64,
    /// Queue length that makes the open group due.
    want: AtomicUsize,
    /// Time until which workers leave the queue to others; or [`NONE`].
    left_until: AtomicU64,
    state: Mutex<State>,
    alarm: Mutex<Alarm>,
    /// The timer thread waits on it.
    ring: Condvar,
    /// Time of the timer thread's next check; 0 if there is no timer thread.
    alarm_ns: AtomicU64,
    triggers: Triggers,
}

/// State of the timer thread.
#[derive(Default)]
struct Alarm {
    is_stopped: bool,
    /// A thread has asked it to lead.
    is_called: bool,
    /// The `open_until` for which it last returned from [`GroupCommitPolicy::wait_due`]; that group is not
    /// reported again immediately.
    reported: u64,
}

#[derive(Default)]
struct State {
    returns: ReturnTimes,
    /// When the open group was opened, and the queue length at the last decision.
    opened_ns: u64,
    looked_at: usize,
}

impl GroupCommitPolicy {
    /// Makes a policy without measurements.
    pub fn new(options: GroupCommitOptions) -> GroupCommitPolicy {
        let group_commit = GroupCommitPolicy {
            is_adaptive: AtomicBool::new(false),
            wait_count: AtomicUsize::new(0),
            wait_us: AtomicU64::new(0),
            is_slow: AtomicBool::new(false),
            open_until: AtomicU64::new(NONE),
            want: AtomicUsize::new(0),
            left_until: AtomicU64::new(NONE),
            state: Mutex::default(),
            alarm: Mutex::default(),
            ring: Condvar::new(),
            alarm_ns: AtomicU64::new(0),
            triggers: Triggers::default(),
        };
        group_commit.set_options(options);
        group_commit
    }

    /// Applies new settings from the next group on.
    pub fn set_options(&self, options: GroupCommitOptions) {
        self.is_adaptive.store(options.is_adaptive, Ordering::Relaxed);
        self.wait_count.store(options.wait_count, Ordering::Relaxed);
        self.wait_us.store(options.wait_us, Ordering::Relaxed);
    }

    /// Returns the counters of the operator's waits.
    pub fn triggers(&self) -> &Triggers {
        &self.triggers
    }

    /// Returns the moving average of the flush time in nanoseconds.
    pub fn flush_ns(&self) -> u64 {
        self.state.lock().returns.flush_ns
    }

    fn is_measuring(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed) && self.is_adaptive.load(Ordering::Relaxed)
    }

    /// Records that a connection's next transaction has arrived to be ordered.
    pub fn arrived(&self, client: &ClientCommits, now_ns: &dyn Fn() -> u64) {
        if !self.is_measuring() {
            return;
        }
        let acked_ns = client.acked_ns.load(Ordering::Relaxed);
        if acked_ns == 0 {
            return;
        }
        let mut state = self.state.lock();
        state.returns.record_return(now_ns().saturating_sub(acked_ns));
        if client.group.load(Ordering::Relaxed) == state.returns.group {
            state.returns.returned += 1;
        }
    }

    /// Marks the open group as due if the queue length reaches the number that it was left open for. The
    /// caller must lead next.
    pub fn queued(&self, len: usize) {
        let until = self.open_until.load(Ordering::SeqCst);
        if until > DUE && len >= self.want.load(Ordering::SeqCst) {
            let _ = self.open_until.compare_exchange(until, DUE, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Adds a flush duration to the moving average.
    pub fn flushed(&self, flush_ns: u64) {
        let mut state = self.state.lock();
        let capped =
            if state.returns.flush_ns == 0 { flush_ns } else { flush_ns.min(4 * state.returns.flush_ns) };
        state.returns.flush_ns = (state.returns.flush_ns * 7 + capped) / 8;
        self.is_slow.store(state.returns.flush_ns >= FLUSH_NS_MIN, Ordering::Relaxed);
    }

    /// Records that the members of a group are about to be acknowledged.
    pub fn acknowledging<'a>(
        &self,
        clients: impl Iterator<Item = &'a ClientCommits>,
        now_ns: &dyn Fn() -> u64,
    ) {
        if !self.is_measuring() {
            return;
        }
        let now_ns = now_ns();
        let mut state = self.state.lock();
        state.returns.group += 1;
        state.returns.acked = 0;
        state.returns.returned = 0;
        state.returns.acked_ns = now_ns;
        for client in clients {
            client.acked_ns.store(now_ns, Ordering::Relaxed);
            client.group.store(state.returns.group, Ordering::Relaxed);
            state.returns.acked += 1;
        }
    }

    /// Returns whether a group is open, and neither complete nor out of time.
    pub fn is_open(&self, now_ns: &dyn Fn() -> u64) -> bool {
        let until = self.open_until.load(Ordering::SeqCst);
        until > DUE && now_ns() < until
    }

    /// Returns whether to leave the group open instead of taking it now. The caller holds `leader`.
    pub fn opens(
        &self,
        now_ns: &dyn Fn() -> u64,
        queued: &dyn Fn() -> usize,
        is_waited_for: &dyn Fn() -> bool,
    ) -> bool {
        let count = self.wait_count.load(Ordering::Relaxed);
        if count > 0 {
            self.opens_for_count(count, now_ns(), queued(), is_waited_for)
        } else {
            self.is_measuring()
                && self.open_until.load(Ordering::SeqCst) != DUE
                && self.opens_where_it_pays(now_ns(), queued())
        }
    }

    /// Returns whether to leave the queue to the first idle worker, or to the timer thread. If it returns
    /// false, the caller leads.
    pub fn leaves(&self, now_ns: &dyn Fn() -> u64) -> bool {
        if !self.is_adaptive.load(Ordering::Relaxed)
            || self.is_slow.load(Ordering::Relaxed)
            || self.wait_count.load(Ordering::Relaxed) > 0
        {
            return false;
        }
        let now_ns = now_ns();
        match self.left_until.load(Ordering::SeqCst) {
            NONE => {
                let until_ns = (now_ns + LEFT_NS).max(NONE + 1);
                let swapped =
                    self.left_until.compare_exchange(NONE, until_ns, Ordering::SeqCst, Ordering::SeqCst);
                if swapped.is_ok() {
                    self.wake_timer_before(until_ns + GRACE_NS);
                }
                true
            }
            until_ns => now_ns < until_ns,
        }
    }

    /// Records that the group was taken.
    pub fn closed(&self) {
        self.open_until.store(NONE, Ordering::SeqCst);
        self.left_until.store(NONE, Ordering::SeqCst);
    }

    fn opens_for_count(
        &self,
        count: usize,
        now_ns: u64,
        queued: usize,
        is_waited_for: &dyn Fn() -> bool,
    ) -> bool {
        let opened_ns = self.look(now_ns, queued).0;
        let deadline_ns = opened_ns + 1000 * self.wait_us.load(Ordering::Relaxed);
        let trigger = if queued >= count {
            &self.triggers.count
        } else if is_waited_for() {
            &self.triggers.lock_wait
        } else if now_ns >= deadline_ns {
            &self.triggers.timeout
        } else {
            self.open(count, deadline_ns.min(now_ns + LOCK_CHECK_NS));
            return true;
        };
        trigger.fetch_add(1, Ordering::Relaxed);
        false
    }

    fn opens_where_it_pays(&self, now_ns: u64, queued: usize) -> bool {
        let (opened_ns, before) = self.look(now_ns, queued);
        let (wait_ns, hard_ns, out) = {
            let state = self.state.lock();
            let out = state.returns.acked.saturating_sub(state.returns.returned);
            (state.returns.wait_ns(now_ns, queued), opened_ns + state.returns.flush_ns, out)
        };
        // The time was up without a new arrival: more waiting would be in vain.
        let in_vain = before == Some(queued);
        match wait_ns {
            Some(wait_ns) if now_ns < hard_ns && !in_vain => {
                self.open(queued + out, hard_ns.min(now_ns + wait_ns));
                true
            }
            _ => false,
        }
    }

    /// Records a decision about the group. Returns when the group was opened (now, if it was not open), and
    /// the queue length at the previous decision.
    fn look(&self, now_ns: u64, queued: usize) -> (u64, Option<usize>) {
        let mut state = self.state.lock();
        let before = (self.open_until.load(Ordering::SeqCst) != NONE).then_some(state.looked_at);
        if before.is_none() {
            state.opened_ns = now_ns;
        }
        state.looked_at = queued;
        (state.opened_ns, before)
    }

    /// Leaves the group open until `want` transactions are queued or the time is up.
    fn open(&self, want: usize, until_ns: u64) {
        self.want.store(want, Ordering::SeqCst);
        self.open_until.store(until_ns.max(DUE + 1), Ordering::SeqCst);
        self.wake_timer_before(until_ns);
    }

    /// Wakes the timer thread if it would sleep beyond this time.
    fn wake_timer_before(&self, until_ns: u64) {
        if self.alarm_ns.load(Ordering::SeqCst) > until_ns {
            drop(self.alarm.lock());
            self.ring.notify_one();
        }
    }

    /// Asks the timer thread to lead the queue. Does nothing while flushes are fast: waking the thread would
    /// take as long as the flush that is awaited.
    pub(crate) fn call_timer(&self) {
        if self.is_slow.load(Ordering::Relaxed) {
            self.alarm.lock().is_called = true;
            self.ring.notify_one();
        }
    }

    /// Blocks the timer thread until it has to lead: a group is open for too long, or workers have left the
    /// queue for too long. Returns false when the pipeline ends.
    pub(crate) fn wait_due(&self, now_ns: &dyn Fn() -> u64) -> bool {
        let mut alarm = self.alarm.lock();
        loop {
            if alarm.is_stopped {
                self.alarm_ns.store(0, Ordering::SeqCst);
                return false;
            }
            if std::mem::take(&mut alarm.is_called) {
                return true;
            }
            let open_until = self.open_until.load(Ordering::SeqCst);
            let left_until = self.left_until.load(Ordering::SeqCst);
            let now_ns = now_ns();
            let left_too_long_ns = if left_until == NONE { u64::MAX } else { left_until + GRACE_NS };
            if left_too_long_ns <= now_ns {
                // A worker that leaves the queue from now on sets a new time.
                self.left_until.store(NONE, Ordering::SeqCst);
                return true;
            }
            let is_over = open_until > DUE && open_until <= now_ns;
            if is_over && alarm.reported != open_until {
                alarm.reported = open_until;
                return true;
            }
            let look_ns = match open_until {
                NONE | DUE => u64::MAX,
                _ if is_over => now_ns + SECOND_LOOK_NS,
                _ => open_until,
            };
            let look_ns = look_ns.min(left_too_long_ns);
            self.alarm_ns.store(look_ns, Ordering::SeqCst);
            let are_same = self.open_until.load(Ordering::SeqCst) == open_until
                && self.left_until.load(Ordering::SeqCst) == left_until;
            if !are_same {
                continue;
            }
            if look_ns == u64::MAX {
                self.ring.wait(&mut alarm);
            } else {
                self.ring.wait_for(&mut alarm, Duration::from_nanos(look_ns - now_ns));
                alarm.reported = NONE;
            }
        }
    }

    /// Ends the timer thread.
    pub(crate) fn stop_timer(&self) {
        self.alarm.lock().is_stopped = true;
        self.ring.notify_one();
    }
}
