//! The gate of `archive_sync`: a durable group is published once the repository has it.
//!
//! # Concepts
//! - A group comes to this gate ([`Gate::Archive`](crate::Gate)) after replicas have let it pass, so it is
//!   never cut off any more, and may be sent. It waits here, and later groups become durable meanwhile.
//! - One acknowledgement of the repository covers everything before it.
//! - A group that has waited longer than `archive_sync_timeout` turns the gate *off*: it and all others pass,
//!   and later groups do not wait. An acknowledgement of everything that had come to the gate, no longer ago
//!   than the timeout, turns it *on* again.
//!
//! # States and the function that makes each move
//! ```text
//! disabled --configure()--> on --expire(), give_up()--> off --acknowledge()--> on
//! on, off --configure()--> disabled
//! a group: arrive() -> waits -> acknowledge(), expire(), give_up(), configure() -> passes
//! ```
//!
//! # Invariants
//! - `waiting` is in commit order. A group that left it never returns, so once [`ArchiveGate::holds`] is
//!   false for a group it stays false.
//! - While the gate is on, every group that passes has been acknowledged.
//! - The caller of a function that lets groups pass calls [`Pipeline::gate_opened`](crate::Pipeline) then.
//! - A checkpoint, a large transaction and a backup do not wait for this gate: what waits here is durable,
//!   and no start cuts it off. It is shown to no client only because the machine might be lost.
//!
//! # Lock order
//! `state` is a leaf. [`ArchiveGate::arrive`] and [`ArchiveGate::holds`] are called with the publish queue
//! locked, the other functions without a lock.

use std::collections::VecDeque;
use std::time::Duration;

use cohort_base::CommitSeq;

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering};

/// `archive_sync` and `archive_sync_timeout`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveSyncOptions {
    pub is_enabled: bool,
    pub timeout: Duration,
}

/// `Cohort_archive_sync_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveSyncCounters {
    pub is_on: bool,
    /// Transactions that wait now.
    pub waiting: u64,
    /// Transactions that passed because the repository had them.
    pub acknowledged: u64,
    /// Transactions that passed while it was enabled, and that the repository did not have.
    pub unacknowledged: u64,
    /// Number of times that it was turned off.
    pub timeouts: u64,
}

/// A group that waits.
#[derive(Debug)]
struct Wait {
    last: CommitSeq,
    transactions: u64,
    since_ns: u64,
}

#[derive(Debug, Default)]
struct State {
    options: ArchiveSyncOptions,
    is_on: bool,
    /// Newest transaction that came to the gate.
    newest: CommitSeq,
    /// Newest transaction that the repository has.
    acknowledged: CommitSeq,
    waiting: VecDeque<Wait>,
    counters: ArchiveSyncCounters,
    is_ending: bool,
}

/// Changes by an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Groups may pass.
    pub has_opened: bool,
    pub is_on_again: bool,
}

/// Result of [`ArchiveGate::watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    GoOn,
    /// The gate is off, because a group had waited for the timeout.
    Expired,
    /// The server stops.
    End,
}

/// The gate.
#[derive(Debug, Default)]
pub struct ArchiveGate {
    /// Groups wait; a copy that is read without the lock.
    is_shut: AtomicBool,
    state: Mutex<State>,
    /// A group has come, the settings have changed, or the server stops.
    changed: Condvar,
}

impl ArchiveGate {
    /// Changes the settings; allowed at any time. A gate that is turned off by hand lets everything pass.
    pub fn configure(&self, options: ArchiveSyncOptions) {
        let mut state = self.state.lock();
        if options.is_enabled != state.options.is_enabled {
            self.turn(&mut state, options.is_enabled);
        }
        state.options = options;
        drop(state);
        self.changed.notify_all();
    }

    fn turn(&self, state: &mut State, is_on: bool) {
        state.is_on = is_on;
        if !is_on {
            state.let_pass_unacknowledged();
        }
        self.is_shut.store(is_on, Ordering::SeqCst);
    }

    /// Returns whether groups have to wait.
    pub fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::SeqCst)
    }

    /// Returns whether what is durable should be sent at once.
    pub fn is_enabled(&self) -> bool {
        self.state.lock().options.is_enabled
    }

    /// Registers a group that ends with `last`. Called in commit order.
    pub fn arrive(&self, last: CommitSeq, transactions: u64, now_ns: u64) {
        let mut state = self.state.lock();
        state.newest = last;
        if !state.options.is_enabled {
            return;
        }
        // It may have been sent between its flush and this call.
        if last <= state.acknowledged {
            state.counters.acknowledged += transactions;
        } else if state.is_on {
            state.waiting.push_back(Wait { last, transactions, since_ns: now_ns });
        } else {
            state.counters.unacknowledged += transactions;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Returns whether the group that ends with `last` has to wait. Once false for a group, it stays false.
    pub fn holds(&self, last: CommitSeq) -> bool {
        self.is_shut() && self.state.lock().waiting.front().is_some_and(|oldest| oldest.last <= last)
    }

    /// Returns whether a transaction waits here.
    pub fn is_waiting(&self, seq: CommitSeq) -> bool {
        self.is_shut() && self.state.lock().waiting.back().is_some_and(|newest| newest.last >= seq)
    }

    /// Records that the repository has everything up to `last`. `complete_since_ns` is the moment at which
    /// nothing else had come to the gate, if the part that is acknowledged ended there.
    pub fn acknowledge(&self, last: CommitSeq, complete_since_ns: Option<u64>, now_ns: u64) -> Change {
        let mut state = self.state.lock();
        state.acknowledged = state.acknowledged.max(last);
        let count = state.waiting.partition_point(|wait| wait.last <= last);
        let passing: u64 = state.waiting.drain(..count).map(|wait| wait.transactions).sum();
        state.counters.acknowledged += passing;
        let timeout_ns = state.options.timeout.as_nanos();
        let is_quick = complete_since_ns
            .is_some_and(|since_ns| u128::from(now_ns.saturating_sub(since_ns)) < timeout_ns);
        let is_on_again = state.options.is_enabled && !state.is_on && is_quick;
        if is_on_again {
            self.turn(&mut state, true);
        }
        Change { has_opened: count > 0, is_on_again }
    }

    /// Turns the gate off because the archive was given up. Returns whether it was on.
    pub fn give_up(&self) -> bool {
        let mut state = self.state.lock();
        let was_on = state.is_on;
        if was_on {
            self.turn(&mut state, false);
            state.counters.timeouts += 1;
        }
        was_on
    }

    /// Turns the gate off if the oldest group has waited for the timeout. Returns whether it did.
    pub fn expire(&self, now_ns: u64) -> bool {
        let mut state = self.state.lock();
        let Some(left) = state.time_left(now_ns) else { return false };
        let is_over = left.is_zero();
        if is_over {
            self.turn(&mut state, false);
            state.counters.timeouts += 1;
        }
        is_over
    }

    /// Sleeps until the oldest group has waited for the timeout, and turns the gate off then. Returns earlier
    /// if something changes.
    pub fn watch(&self, now_ns: &dyn Fn() -> u64) -> Watch {
        let mut state = self.state.lock();
        if state.is_ending {
            return Watch::End;
        }
        match state.time_left(now_ns()) {
            None => self.changed.wait(&mut state),
            Some(left) => {
                self.changed.wait_for(&mut state, left);
            }
        }
        drop(state);
        if self.expire(now_ns()) { Watch::Expired } else { Watch::GoOn }
    }

    /// Waits until a group that ends after `seen` has come, up to this long. Returns the end of the newest.
    pub fn wait_for_group(&self, seen: CommitSeq, patience: Duration) -> CommitSeq {
        let mut state = self.state.lock();
        if state.newest <= seen {
            self.changed.wait_for(&mut state, patience);
        }
        state.newest
    }

    /// Ends [`ArchiveGate::watch`] at the stop of the server. Groups that wait continue to wait.
    pub fn end(&self) {
        self.state.lock().is_ending = true;
        self.changed.notify_all();
    }

    /// Returns the current counters.
    pub fn counters(&self) -> ArchiveSyncCounters {
        let state = self.state.lock();
        let waiting = state.waiting.iter().map(|wait| wait.transactions).sum();
        ArchiveSyncCounters { is_on: state.is_on, waiting, ..state.counters }
    }
}

impl State {
    fn let_pass_unacknowledged(&mut self) {
        self.counters.unacknowledged += self.waiting.drain(..).map(|wait| wait.transactions).sum::<u64>();
    }

    /// Returns how long the oldest group may still wait; `None` if none waits.
    fn time_left(&self, now_ns: u64) -> Option<Duration> {
        let oldest = self.waiting.front()?;
        let waited = Duration::from_nanos(now_ns.saturating_sub(oldest.since_ns));
        Some(self.options.timeout.saturating_sub(waited))
    }
}
