//! Semi-synchronous commits: a durable flush group is released once a replica has it.
//!
//! # Concepts
//!
//! - The commit path can wait at two gates ([`Gate`]): before publishing a group (AFTER_SYNC), or before
//!   acknowledging it to the clients (AFTER_COMMIT). `rpl_semi_sync_master_wait_point` selects one. A waiting
//!   group does not stop later ones from becoming durable.
//! - One acknowledgement suffices, and it covers everything before its position.
//! - KILL of a waiting client ends its wait ([`SemiSync::give_up`]). At the second gate only that client is
//!   released. At the first gate its group and all earlier ones must be published for that, so they are
//!   released as a whole.
//! - When a group has waited longer than the timeout, replication becomes asynchronous (*off*) and all
//!   waiting groups are released. It becomes semi-synchronous again (*on*) when a replica has everything, as
//!   shown by its acknowledgement or by its start position.
//!
//! # States and the function that makes each move
//!
//! ```text
//! disabled --configure--> on --watch--> off --has--> on        configure leads back to disabled from both
//! a group: made_durable() -> waits -> has() | watch() | configure() | remove_replica() | give_up() -> released
//! ```
//!
//! # Invariants
//!
//! - `waiting` is in binlog order. A group that left it never returns, so once [`ReplicaGate::holds`] is
//!   false it stays false (the commit path relies on it).
//! - A group is released for one of the five reasons above, each of which notifies the commit path. A sixth
//!   is RESET MASTER (`restarted`): positions get a new meaning, no replica is connected, and the checkpoint
//!   before it has made the waiting groups durable.
//! - The switch from waiting to not waiting happens inside [`Coordinator::release_from_replicas`]. It first
//!   logs that the groups released without an acknowledgement must not be truncated when this server comes
//!   back as a replica.
//!
//! # Lock order
//!
//! `changing`, then the locks of the commit path, then `state`, a leaf. The commit path is notified without
//! holding `state`.
//!
//! # On failure
//!
//! A replica that stops, hangs or reports wrong positions costs one timeout. Without replicas, groups wait
//! for the timeout only if `rpl_semi_sync_master_wait_no_slave` is on.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use cohort_base::{BinlogPos, CommitSeq, ConnectionId};
use cohort_commit::{CommitError, Coordinator, Gate, ReplicaGate};
use parking_lot::{Condvar, Mutex};

/// Pause before retrying an operation that the log refused.
const RETRY: Duration = Duration::from_millis(200);

/// `rpl_semi_sync_master_*`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemiSyncOptions {
    /// `_enabled`
    pub is_enabled: bool,
    /// `_timeout`
    pub timeout: Duration,
    /// `_wait_point`
    pub gate: Gate,
    /// `_wait_no_slave`
    pub waits_without_replica: bool,
}

/// Writes a state change to the error log.
pub type SemiSyncLog = Box<dyn Fn(SemiSyncEvent) + Send + Sync>;

/// A state change for the error log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SemiSyncEvent {
    /// A group ending at the first position timed out. The second position is the newest acknowledgement.
    TimedOut(BinlogPos, BinlogPos),
    /// A replica has everything up to this position.
    SwitchedOn(BinlogPos),
}

/// `Rpl_semi_sync_master_*`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SemiSyncCounters {
    /// Connected semi-synchronous replicas.
    pub clients: u64,
    pub is_on: bool,
    /// Acknowledgements received.
    pub get_ack: u64,
    /// Transactions for which an acknowledgement was needed.
    pub request_ack: u64,
    /// Packets that requested an acknowledgement.
    pub net_waits: u64,
    /// Transactions released by an acknowledgement.
    pub yes_tx: u64,
    /// Transactions released without an acknowledgement.
    pub no_tx: u64,
    /// Number of times it was switched off.
    pub no_times: u64,
    /// Transactions that waited, and their total waiting time.
    pub tx_waits: u64,
    pub tx_wait_us: u64,
    /// Transactions waiting now.
    pub wait_sessions: u64,
}

/// A waiting group.
#[derive(Debug)]
struct Wait {
    end: BinlogPos,
    /// Its last transaction.
    last: CommitSeq,
    transactions: u64,
    since: Instant,
}

/// The conditions that decide whether groups wait.
#[derive(Clone, Copy, Debug)]
struct Switches {
    options: SemiSyncOptions,
    is_on: bool,
    replicas: u64,
}

impl Switches {
    fn is_gated(&self) -> bool {
        let has_whom = self.replicas > 0 || self.options.waits_without_replica;
        self.options.is_enabled && self.is_on && has_whom
    }
}

#[derive(Debug)]
struct State {
    switches: Switches,
    /// Newest position that any replica has.
    acknowledged: BinlogPos,
    /// End of the newest durable group.
    newest: BinlogPos,
    waiting: VecDeque<Wait>,
    counters: SemiSyncCounters,
    has_timer: bool,
    is_ending: bool,
}

/// The semi-synchronous part of a source.
pub struct SemiSync {
    /// Copies of the conditions in `state.switches`, readable without its lock.
    is_enabled: AtomicBool,
    is_gated: AtomicBool,
    /// Held while the switches change.
    changing: Mutex<()>,
    state: Mutex<State>,
    /// Wakes the timer thread.
    changed: Condvar,
    commit: Weak<Coordinator>,
    log: SemiSyncLog,
}

impl SemiSync {
    /// Creates it disabled.
    pub fn new(commit: Weak<Coordinator>, log: SemiSyncLog) -> Arc<SemiSync> {
        let options = SemiSyncOptions {
            is_enabled: false,
            timeout: Duration::from_secs(10),
            gate: Gate::Acknowledge,
            waits_without_replica: true,
        };
        let state = State {
            switches: Switches { options, is_on: false, replicas: 0 },
            acknowledged: BinlogPos::default(),
            newest: BinlogPos::default(),
            waiting: VecDeque::new(),
            counters: SemiSyncCounters::default(),
            has_timer: false,
            is_ending: false,
        };
        Arc::new(SemiSync {
            is_enabled: AtomicBool::new(false),
            is_gated: AtomicBool::new(false),
            changing: Mutex::new(()),
            state: Mutex::new(state),
            changed: Condvar::new(),
            commit,
            log,
        })
    }

    /// Changes the options; allowed at any time. On error they stay as they were, because no group can be
    /// released while the log is not writable.
    pub fn configure(self: &Arc<Self>, options: SemiSyncOptions) -> Result<(), CommitError> {
        self.change(|switches| {
            if options.is_enabled != switches.options.is_enabled {
                switches.is_on = options.is_enabled;
            }
            switches.options = options;
        })?;
        let mut state = self.state.lock();
        if options.is_enabled && !state.has_timer {
            state.has_timer = self.start_timer();
        }
        drop(state);
        // The selected gate may have changed while groups wait, and so may the timeout.
        self.changed.notify_all();
        self.open();
        Ok(())
    }

    /// Registers a semi-synchronous replica.
    pub fn add_replica(&self) {
        // Cannot fail: only a switch to not waiting can.
        let _ = self.change(|switches| switches.replicas += 1);
    }

    /// Unregisters a semi-synchronous replica.
    pub fn remove_replica(&self) {
        // While the log is not writable, waiting groups keep waiting until there is space or the server
        // stops.
        while let Err(error) = self.change(|switches| switches.replicas -= 1) {
            if matches!(error, CommitError::Stopped) {
                return;
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Changes the switches. If groups need not wait after the change, all waiting groups are released.
    fn change(&self, apply: impl FnOnce(&mut Switches) + Copy) -> Result<(), CommitError> {
        let _changing = self.changing.lock();
        let (before, after) = {
            let switches = self.state.lock().switches;
            let mut after = switches;
            apply(&mut after);
            (switches.is_gated(), after.is_gated())
        };
        let take = || {
            let mut state = self.state.lock();
            apply(&mut state.switches);
            if !after {
                state.let_all_out();
            }
            self.is_enabled.store(state.switches.options.is_enabled, Ordering::SeqCst);
            self.is_gated.store(after, Ordering::SeqCst);
        };
        match self.commit.upgrade() {
            Some(commit) if before && !after => commit.release_from_replicas(take),
            _ => {
                take();
                Ok(())
            }
        }
    }

    /// Returns whether the replica must acknowledge a group that ends here.
    pub(crate) fn wants_acknowledgement(&self, end: BinlogPos) -> bool {
        if !self.is_enabled.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.state.lock();
        let wants = match state.switches.is_on {
            true => end > state.acknowledged,
            false => end >= state.newest,
        };
        state.counters.net_waits += u64::from(wants);
        wants
    }

    /// Processes an acknowledgement of a replica.
    pub(crate) fn acknowledge(&self, end: BinlogPos) {
        self.state.lock().counters.get_ack += 1;
        self.has(end);
    }

    /// Records that a replica has everything up to `end`.
    pub(crate) fn has(&self, end: BinlogPos) {
        if !self.is_enabled.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        state.acknowledged = state.acknowledged.max(end);
        let has_opened = state.let_out_up_to(end);
        let is_back = !state.switches.is_on && end >= state.newest;
        drop(state);
        if has_opened {
            self.open();
        }
        if is_back {
            // Cannot fail: only a switch to not waiting can.
            let _ = self.change(|switches| switches.is_on = switches.options.is_enabled);
            (self.log)(SemiSyncEvent::SwitchedOn(end));
        }
    }

    /// Releases a killed client whose reply is held until `seq`, if `seq` waits for replicas. `own` is the
    /// client's newest commit, if it was waiting when the client was killed; the reply may also wait for
    /// another client's commit, and that client keeps waiting. `before_reply` is called before the client
    /// gets its early reply.
    pub fn give_up(
        &self,
        seq: CommitSeq,
        own: Option<CommitSeq>,
        client: ConnectionId,
        before_reply: &dyn Fn(),
    ) {
        let Some(commit) = self.commit.upgrade() else { return };
        if !self.is_gated.load(Ordering::Relaxed) {
            return;
        }
        // If the group is ordered and not flushed, flush it so that it waits. While the log is not writable
        // the client keeps waiting.
        if !self.is_waiting(seq) && commit.flush_ordered().is_err() {
            return;
        }
        let _changing = self.changing.lock();
        let (end, gate) = {
            let mut state = self.state.lock();
            let gate = state.switches.options.gate;
            let Some(wait) = state.waiting_for(seq) else { return };
            (wait.end, gate)
        };
        if gate == Gate::Acknowledge && commit.release_from_replicas(|| ()).is_ok() {
            before_reply();
            if commit.acknowledge_early(seq, client) {
                let Some(own) = own.filter(|own| *own > commit.acknowledged()) else { return };
                let mut state = self.state.lock();
                // Unless an acknowledgement arrived meanwhile.
                if let Some(wait) = state.waiting_for(own) {
                    wait.transactions = wait.transactions.saturating_sub(1);
                    state.counters.no_tx += 1;
                }
                return;
            }
        }
        // No parked client waits but a thread. While the log is not writable it keeps waiting.
        let _ = commit.release_from_replicas(|| self.state.lock().let_out_unanswered(end));
    }

    /// Returns whether a transaction waits for replicas.
    pub fn is_waiting(&self, seq: CommitSeq) -> bool {
        self.is_gated.load(Ordering::Relaxed) && self.state.lock().waiting_for(seq).is_some()
    }

    /// Returns the current counters.
    pub fn counters(&self) -> SemiSyncCounters {
        let state = self.state.lock();
        SemiSyncCounters {
            clients: state.switches.replicas,
            is_on: state.switches.options.is_enabled && state.switches.is_on,
            wait_sessions: state.waiting.iter().map(|wait| wait.transactions).sum(),
            ..state.counters
        }
    }

    fn open(&self) {
        if let Some(commit) = self.commit.upgrade() {
            commit.gate_opened();
        }
    }

    /// Starts the timer thread. Returns whether that succeeded.
    fn start_timer(self: &Arc<Self>) -> bool {
        let semi_sync = Arc::clone(self);
        let run = move || {
            while semi_sync.watch() == Watch::GoOn {}
        };
        Builder::new().name("semi-sync".into()).stack_size(128 << 10).spawn(run).is_ok()
    }

    /// Sleeps until the oldest group times out, then switches to asynchronous.
    fn watch(&self) -> Watch {
        let mut state = self.state.lock();
        if state.is_ending {
            return Watch::End;
        }
        let Some(oldest) = state.waiting.front() else {
            self.changed.wait(&mut state);
            return Watch::GoOn;
        };
        // A deadline that overflows means no deadline.
        match oldest.since.checked_add(state.switches.options.timeout) {
            Some(deadline) if Instant::now() >= deadline => {
                let event = SemiSyncEvent::TimedOut(oldest.end, state.acknowledged);
                drop(state);
                match self.change(|switches| switches.is_on = false) {
                    Ok(()) => {
                        self.state.lock().counters.no_times += 1;
                        (self.log)(event);
                    }
                    // The log is not writable at the moment.
                    Err(_) => std::thread::sleep(RETRY),
                }
            }
            Some(deadline) => drop(self.changed.wait_until(&mut state, deadline)),
            None => self.changed.wait(&mut state),
        }
        Watch::GoOn
    }

    /// Stops the timer at shutdown. Waiting groups keep waiting, and their clients are not acknowledged.
    pub fn end(&self) {
        self.state.lock().is_ending = true;
        self.changed.notify_all();
    }
}

#[derive(PartialEq, Eq)]
enum Watch {
    GoOn,
    End,
}

impl State {
    /// Releases the groups up to `end`. Returns whether there were any.
    fn let_out_up_to(&mut self, end: BinlogPos) -> bool {
        let count = self.waiting.partition_point(|wait| wait.end <= end);
        for wait in self.waiting.drain(..count) {
            self.counters.yes_tx += wait.transactions;
            self.counters.tx_waits += wait.transactions;
            self.counters.tx_wait_us += wait.since.elapsed().as_micros() as u64 * wait.transactions;
        }
        count > 0
    }

    /// Returns the waiting group that contains a transaction.
    fn waiting_for(&mut self, seq: CommitSeq) -> Option<&mut Wait> {
        self.waiting.iter_mut().find(|wait| wait.last >= seq)
    }

    fn let_out_unanswered(&mut self, end: BinlogPos) {
        let count = self.waiting.partition_point(|wait| wait.end <= end);
        self.counters.no_tx += self.waiting.drain(..count).map(|wait| wait.transactions).sum::<u64>();
    }

    fn let_all_out(&mut self) {
        self.counters.no_tx += self.waiting.drain(..).map(|wait| wait.transactions).sum::<u64>();
    }
}

impl ReplicaGate for SemiSync {
    fn made_durable(&self, end: BinlogPos, last: CommitSeq, transactions: u64) {
        let mut state = self.state.lock();
        state.newest = end;
        if !state.switches.options.is_enabled {
            return;
        }
        if state.switches.is_on {
            state.counters.request_ack += transactions;
        }
        // The replica may be faster than this call: it received the bytes a moment ago.
        if end <= state.acknowledged {
            state.counters.yes_tx += transactions;
        } else if state.switches.is_gated() {
            state.waiting.push_back(Wait { end, last, transactions, since: Instant::now() });
            if state.waiting.len() == 1 {
                drop(state);
                self.changed.notify_all();
            }
        } else {
            state.counters.no_tx += transactions;
        }
    }

    fn is_on(&self) -> bool {
        self.is_gated.load(Ordering::SeqCst)
    }

    fn restarted(&self) {
        let mut state = self.state.lock();
        state.let_all_out();
        state.acknowledged = BinlogPos::default();
        state.newest = BinlogPos::default();
    }

    fn holds(&self, gate: Gate, end: BinlogPos) -> bool {
        if !self.is_gated.load(Ordering::SeqCst) {
            return false;
        }
        let state = self.state.lock();
        gate == state.switches.options.gate && state.waiting.front().is_some_and(|oldest| oldest.end <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pos(offset: u64) -> BinlogPos {
        BinlogPos { file: 1, offset }
    }

    fn options(timeout_ms: u64) -> SemiSyncOptions {
        SemiSyncOptions {
            is_enabled: true,
            timeout: Duration::from_millis(timeout_ms),
            gate: Gate::Publish,
            waits_without_replica: true,
        }
    }

    fn semi_sync(options: SemiSyncOptions) -> Arc<SemiSync> {
        let semi_sync = SemiSync::new(Weak::new(), Box::new(|_| {}));
        semi_sync.configure(options).expect("no log");
        semi_sync
    }

    #[test]
    fn an_acknowledgement_lets_out_everything_before_it_at_the_chosen_gate() {
        let semi = semi_sync(options(60_000));
        semi.add_replica();
        for end in [100, 200, 300] {
            semi.made_durable(pos(end), CommitSeq(end), 2);
        }
        assert!(semi.holds(Gate::Publish, pos(100)) && !semi.holds(Gate::Acknowledge, pos(100)));
        assert!(semi.wants_acknowledgement(pos(200)));
        semi.acknowledge(pos(200));
        assert!(!semi.wants_acknowledgement(pos(200)), "it is known already");
        assert!(!semi.holds(Gate::Publish, pos(200)) && semi.holds(Gate::Publish, pos(300)));
        let counters = semi.counters();
        assert_eq!((counters.yes_tx, counters.wait_sessions, counters.get_ack), (4, 2, 1));
        semi.configure(SemiSyncOptions { is_enabled: false, ..options(60_000) }).expect("no log");
        assert!(!semi.holds(Gate::Publish, pos(300)));
        assert_eq!(semi.counters().no_tx, 2);
        semi.end();
    }

    #[test]
    fn an_acknowledgement_that_comes_before_the_group_is_known_counts() {
        let semi = semi_sync(options(60_000));
        semi.add_replica();
        semi.acknowledge(pos(100));
        semi.made_durable(pos(100), CommitSeq(100), 1);
        assert!(!semi.holds(Gate::Publish, pos(100)));
        semi.end();
    }

    #[test]
    fn a_timeout_switches_off_and_a_replica_that_has_everything_on_again() {
        let semi = semi_sync(options(30));
        semi.add_replica();
        semi.made_durable(pos(100), CommitSeq(100), 1);
        semi.made_durable(pos(200), CommitSeq(200), 1);
        assert!(semi.holds(Gate::Publish, pos(100)));
        let end = Instant::now() + Duration::from_secs(10);
        while semi.holds(Gate::Publish, pos(100)) {
            assert!(Instant::now() < end, "it never times out");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!semi.holds(Gate::Publish, pos(200)) && !semi.counters().is_on);
        semi.made_durable(pos(300), CommitSeq(300), 1);
        assert!(!semi.holds(Gate::Publish, pos(300)));
        assert!(!semi.wants_acknowledgement(pos(200)) && semi.wants_acknowledgement(pos(300)));
        semi.acknowledge(pos(200));
        assert!(!semi.counters().is_on);
        semi.acknowledge(pos(300));
        assert!(semi.counters().is_on);
        semi.made_durable(pos(400), CommitSeq(400), 1);
        assert!(semi.holds(Gate::Publish, pos(400)));
        let counters = semi.counters();
        assert_eq!((counters.no_times, counters.no_tx, counters.yes_tx), (1, 3, 0));
        semi.end();
    }

    #[test]
    fn without_replicas_only_configured_sessions_wait() {
        let semi = semi_sync(SemiSyncOptions { waits_without_replica: false, ..options(60_000) });
        semi.made_durable(pos(100), CommitSeq(100), 1);
        assert!(!semi.holds(Gate::Publish, pos(100)));
        semi.add_replica();
        semi.made_durable(pos(200), CommitSeq(200), 1);
        assert!(semi.holds(Gate::Publish, pos(200)) && !semi.holds(Gate::Publish, pos(100)));
        semi.remove_replica();
        assert!(!semi.holds(Gate::Publish, pos(200)));
        semi.end();
    }
}
