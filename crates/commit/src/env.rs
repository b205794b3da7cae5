//! The pipeline's environment in a server: engines, locks, GTIDs, the log, the binlog stream.
//!
//! # Access to the fields
//! | field | accessed by, under which lock |
//! |---|---|
//! | `gtids`, `next_xid` | the holder of the order stage |
//! | `logs` | appended to by the leader, synced by the thread that makes a group durable |
//! | `stream` | appended to by the leader, and by work that holds the order stage ([`crate::Pipeline::hold`]) |
//! | `rotation_reserve` | filled by preparing sessions and the checkpointer, taken by the leader |
//! | `view` | written by the publishing thread, read by every statement |
//!
//! # Commit ids (I8)
//! The leader divides a group into runs. A transaction starts a new run if it took a row lock that a member
//! of the current run released; so does DDL. A run of two or more gets a commit id: the CommitSeq of its
//! first member.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cohort_base::{BinlogPos, CommitSeq, Gtid, Xid};
use cohort_binlog::{Batch, GtidHead, GtidState, SEQ_NO_MAX, Sealed, Stream, StreamOut, event};
use cohort_engine::{Engine, Participant, ReadView, Redo};
use cohort_locks::{LockTable, Wakeups};
use cohort_vfs::World;
use parking_lot::{Mutex, RwLock};

use crate::archive::gate::ArchiveGate;
use crate::archive::times::GroupTimes;
use crate::binlog::{Binlog, add_to_batch};
use crate::commit_env::CommitEnv;
use crate::error::{CommitError, FlushError};
use crate::group_commit::ClientCommits;
use crate::logs::{BinlogBytes, Logs, Member, Written};
use crate::metrics::{Metrics, Step};
use crate::options::{FailpointHook, StopHook};
use crate::request::{BinlogPart, GroupKind, Trx};
use crate::stage::{Durable, Gate, Ordered, Point};

/// Semi-synchronous replication: holds durable groups until a replica has them. `end` is the position after a
/// group's last event.
pub trait ReplicaGate: Send + Sync {
    /// Registers a durable group that ends with `last` and has this number of logged transactions. Called in
    /// commit order, by the leader, before `holds` is called for the group; must be quick.
    fn made_durable(&self, end: BinlogPos, last: CommitSeq, transactions: u64);

    /// Returns whether groups wait for replicas at all. Changes from true to false only inside of
    /// [`crate::Coordinator::release_from_replicas`], so that the log records it.
    fn is_on(&self) -> bool;

    /// Handles a reset of the binary log: earlier positions are invalid from now on, and no earlier group is
    /// held.
    fn restarted(&self);

    /// Returns whether the group that ends at `end` has to wait at this gate. Once false for a group, it
    /// stays false.
    fn holds(&self, gate: Gate, end: BinlogPos) -> bool;
}

/// The view that plain reads use, and the binlog's end in that state: a dump of the data needs both, as a
/// replica's starting point.
#[derive(Clone)]
pub struct PublishedView {
    pub view: ReadView,
    pub binlog_end: BinlogPos,
}

/// A mark of the engines' newest applied state. If one taken before a `Latest` read equals one taken under a
/// row's lock, no transaction has changed that row in between: the mark moves after a transaction's writes
/// have become visible and before its row locks are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedMark(u64);

/// Maximum number of row locks that are released early. A transaction with more keeps them until it is
/// acknowledged. Releasing takes time in the order stage, and memory for each lock until the transaction is
/// durable; a transaction of this size takes far longer than one flush anyway.
const EARLY_RELEASE_ROWS_MAX: usize = 10_000;

/// The server's implementation of [`CommitEnv`].
pub struct ServerEnv {
    pub world: World,
    pub logs: Box<dyn Logs>,
    pub participants: Vec<Arc<dyn Participant>>,
    pub engines: Vec<Arc<dyn Engine>>,
    pub locks: Arc<LockTable>,
    pub binlog: Option<Binlog>,
    pub gtids: Mutex<GtidState>,
    /// A domain has reached its last sequence number, so transactions are checked before they are ordered.
    pub is_out_of_numbers: AtomicBool,
    pub next_xid: AtomicU64,
    /// `early_lock_release`, read at the order stage. Without it a transaction keeps its row locks until it
    /// is acknowledged and dropped.
    pub is_early_release: AtomicBool,
    pub view: RwLock<PublishedView>,
    /// Only with an archive.
    pub times: Option<GroupTimes>,
    /// Only with an archive.
    pub archive_gate: Option<ArchiveGate>,
    /// Newest transaction that has passed [`Gate::Publish`]: it, and all before it, are not cut off any more.
    pub replicated: AtomicU64,
    /// Number of times that writes have become visible to `Latest` reads; see [`AppliedMark`].
    pub applied: AtomicU64,
    pub metrics: Metrics,
    /// Set once, when replicas can be waited for.
    pub gate: OnceLock<Arc<dyn ReplicaGate>>,
    /// Files of spilled redo, each with its transaction; the checkpointer removes them.
    pub spilled: Mutex<Vec<(CommitSeq, String)>>,
    pub on_stop: StopHook,
    pub failpoint: Option<FailpointHook>,
}

impl ServerEnv {
    /// Makes a read view of the engines' present state. The order stage is held, or no other thread runs yet.
    pub fn make_view(engines: &[Arc<dyn Engine>], seq: CommitSeq) -> ReadView {
        ReadView::new(seq, engines.iter().map(|engine| (engine.id(), engine.snapshot())).collect())
    }

    fn apply(&self, batch: &[Ordered<Trx>]) {
        let last = batch.last().expect("a batch is not empty").seq();
        for participant in &self.participants {
            let id = participant.id();
            let redo: Vec<&Redo> = batch
                .iter()
                .map(Ordered::get)
                .filter(|trx| !trx.staged.iter().any(|(of, _)| *of == id))
                .flat_map(|trx| &trx.request.redo)
                .filter(|(of, _)| *of == id)
                .map(|(_, redo)| redo)
                .collect();
            if !redo.is_empty() {
                participant.commit_ordered(last, &redo);
            }
        }
        self.applied.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of the engines' newest applied state.
    pub fn applied_mark(&self) -> AppliedMark {
        AppliedMark(self.applied.load(Ordering::Acquire))
    }

    /// Checks that the domain still has a sequence number for the transaction (I6: it is assigned at the
    /// order stage, where nothing may fail).
    pub fn check_numbers(&self, part: &BinlogPart) -> Result<(), CommitError> {
        let needs_look = part.seq_no.is_some() || self.is_out_of_numbers.load(Ordering::Relaxed);
        match needs_look && !self.gtids.lock().has_number(part.domain, part.seq_no) {
            true => Err(CommitError::NoSequenceNumber(part.domain)),
            false => Ok(()),
        }
    }

    fn assign_gtid(&self, trx: &mut Trx) {
        trx.xid = Xid(self.next_xid.fetch_add(1, Ordering::Relaxed));
        if let Some(part) = &trx.request.binlog {
            let mut gtids = self.gtids.lock();
            let gtid = match part.seq_no {
                Some(seq_no) => Gtid { domain: part.domain, server: part.server, seq_no },
                None => gtids.next(part.domain, part.server),
            };
            gtids.update(gtid);
            if gtid.seq_no >= SEQ_NO_MAX {
                self.is_out_of_numbers.store(true, Ordering::Relaxed);
            }
            trx.gtid = Some(gtid);
            if let Some(client) = &trx.request.client {
                client.note_gtid(gtid);
            }
        }
    }

    /// Returns whether durable groups may have to wait for replicas. Until they pass, they may be cut off.
    pub fn is_gated(&self) -> bool {
        self.gate.get().is_some_and(|gate| gate.is_on())
    }

    /// Returns the newest transaction that is not cut off any more.
    pub fn replicated(&self) -> CommitSeq {
        CommitSeq(self.replicated.load(Ordering::Acquire))
    }

    /// Registers a transaction's spilled redo, which lives until the log is freed beyond the record that
    /// refers to it (I7). Spilled events belong to the binlog writer, which removes them when their copy is
    /// synced, unless the archive needs them, too.
    fn keep_spilled(&self, seq: CommitSeq, trx: &Trx) {
        if trx.spilled.iter().any(Option::is_some) {
            self.spilled.lock().extend(trx.spilled.iter().flatten().map(|file| (seq, file.name.clone())));
        }
        if self.times.is_some()
            && let Some(BinlogPart { events: Sealed::File { name, .. }, .. }) = &trx.request.binlog
        {
            self.spilled.lock().push((seq, name.clone()));
        }
    }

    /// Returns the seconds since 1970 UTC.
    pub fn now_s(&self) -> u32 {
        (self.world.clock.wall_us() / 1_000_000) as u32
    }

    /// Records the times of a batch that was just ordered; the caller holds the order stage.
    fn time_order(&self, batch: &mut [Ordered<Trx>], began_ns: u64) {
        let now_ns = self.now_ns();
        let work_ns = now_ns.saturating_sub(began_ns);
        for ordered in batch.iter_mut() {
            let trx = ordered.get_mut();
            let since_ns = std::mem::replace(&mut trx.since_ns, now_ns);
            let wait_ns = began_ns.saturating_sub(since_ns);
            self.metrics.record_alone(Step::OrderWait, wait_ns, 1);
            if let Some(trace) = trx.request.trace() {
                trace.note(Step::OrderWait, wait_ns);
                trace.note(Step::OrderWork, work_ns);
            }
        }
        self.metrics.record_each_alone(Step::OrderWork, work_ns, batch.len() as u64);
    }

    /// Records the times of a group that was just made durable; the caller holds the decision stage.
    fn time_flush(&self, group: &[Durable<Trx>], began_ns: u64, snapshot: &mut GroupSnapshot) {
        let ended_ns = self.now_ns();
        self.metrics.flush_ended(began_ns, ended_ns);
        let taken_ns = std::mem::replace(&mut snapshot.since_ns, ended_ns);
        let (write_ns, flush_ns) = (began_ns.saturating_sub(taken_ns), ended_ns.saturating_sub(began_ns));
        for trx in group {
            let queue_ns = taken_ns.saturating_sub(trx.get().since_ns);
            self.metrics.record_alone(Step::Queue, queue_ns, 1);
            if let Some(trace) = trx.get().request.trace() {
                snapshot.is_traced = true;
                trace.note(Step::Queue, queue_ns);
                trace.note(Step::Write, write_ns);
                trace.note(Step::Flush, flush_ns);
            }
        }
        let size = group.len() as u64;
        self.metrics.record_alone(Step::Write, write_ns, size);
        self.metrics.flushed(flush_ns, size);
    }

    /// Records the time that the group was held at a gate.
    fn time_gate(&self, step: Step, snapshot: &mut GroupSnapshot, group: &[Durable<Trx>]) {
        if snapshot.was_held.take() {
            let now_ns = self.now_ns();
            let held_ns = now_ns.saturating_sub(snapshot.since_ns);
            self.metrics.record_alone(step, held_ns, group.len() as u64);
            trace_all(group, snapshot, step, held_ns);
            snapshot.since_ns = now_ns;
        }
    }

    /// Returns a group's binlog bytes and the stream's position after them.
    fn binlog_bytes(&self, stream: &Stream, batch: Batch) -> BinlogBytes {
        self.metrics.binlog_bytes.fetch_add(batch.bytes.len() as u64, Ordering::Relaxed);
        BinlogBytes { batch, end: stream.position() }
    }
}

/// A group's state for publishing and acknowledging.
pub struct GroupSnapshot {
    /// The group's last transaction.
    last: CommitSeq,
    /// `None` once published.
    view: Option<ReadView>,
    /// The position after the group's last event; `None` if nothing of the group was logged.
    binlog_end: Option<BinlogPos>,
    /// When the leader took the group; later, when it became durable; later, when it was published.
    since_ns: u64,
    /// A gate has held the group since then.
    was_held: Cell<bool>,
    /// A session of the group traces its commit.
    is_traced: bool,
}

impl CommitEnv for ServerEnv {
    type Trx = Trx;
    type GroupSnapshot = GroupSnapshot;
    type Written = Written;
    type Error = FlushError;

    type Wakeups = Wakeups;

    fn order(&self, batch: &mut [Ordered<Trx>]) -> Wakeups {
        let began_ns = self.now_ns();
        self.apply(batch);
        let mut wakeups = Wakeups::default();
        let is_early = self.is_early_release.load(Ordering::Relaxed);
        for ordered in batch.iter_mut() {
            let seq = ordered.seq();
            let trx = ordered.get_mut();
            self.assign_gtid(trx);
            trx.depends_on = trx.request.locks.depends_on();
            // Staged writes are not applied yet: no other transaction may get these row locks before.
            let is_large = trx.request.locks.release_steps() > EARLY_RELEASE_ROWS_MAX;
            if is_early && !is_large && trx.staged.is_empty() {
                wakeups.append(self.locks.release_early(&mut trx.request.locks, seq));
            }
        }
        self.time_order(batch, began_ns);
        wakeups
    }

    fn apply_staged(&self, trx: &mut Ordered<Trx>) -> Wakeups {
        let seq = trx.seq();
        let trx = trx.get_mut();
        for (_, staged) in trx.staged.drain(..) {
            staged.apply();
        }
        self.applied.fetch_add(1, Ordering::Release);
        match self.is_early_release.load(Ordering::Relaxed) {
            true => self.locks.release_early(&mut trx.request.locks, seq),
            false => Wakeups::default(),
        }
    }

    fn snapshot(&self, last: CommitSeq) -> GroupSnapshot {
        GroupSnapshot {
            last,
            view: Some(ServerEnv::make_view(&self.engines, last)),
            binlog_end: None,
            since_ns: self.now_ns(),
            was_held: Cell::new(false),
            is_traced: false,
        }
    }

    fn write(&self, group: &mut [Ordered<Trx>]) -> Written {
        let ids = commit_ids(group);
        let is_gated = self.is_gated();
        let replicated = self.replicated();
        let mut stream = self.binlog.as_ref().map(|binlog| binlog.stream.lock());
        let (mut out, mut buffer, mut batch) = (StreamOut::default(), Vec::new(), Batch::default());
        let mut decision = None;
        let mut time_us = self.times.as_ref().and_then(|times| times.due(self.world.clock.wall_us()));
        for (ordered, commit_id) in group.iter_mut().zip(ids) {
            out.clear();
            let seq = ordered.seq();
            if let Some(stream) = &mut stream {
                stream_trx(stream, ordered.get(), commit_id, &mut out);
            }
            let end = stream.as_ref().filter(|_| !out.chunks.is_empty()).map(|stream| stream.position());
            // Staged writes cannot be cut off again once an engine has ingested them.
            let is_cuttable = is_gated && ordered.get().staged.is_empty();
            let released = if is_cuttable { replicated } else { seq };
            let member = Member { seq, released, out: &out, end, time_us: time_us.take() };
            decision = self.logs.append(&member, ordered.get_mut(), &mut buffer);
            self.keep_spilled(seq, ordered.get());
            add_to_batch(&mut batch, &out);
        }
        if let (Some(binlog), Some(stream)) = (&self.binlog, &mut stream)
            && let Some(out) = self.logs.rotate(stream, &binlog.rotation_reserve, &|| self.now_s())
        {
            add_to_batch(&mut batch, &out);
        }
        Written { binlog: stream.map(|stream| self.binlog_bytes(&stream, batch)), decision, began_ns: 0 }
    }

    fn sync(&self, written: &mut Written) -> Result<(), FlushError> {
        written.began_ns = self.now_ns();
        self.metrics.flush_began_ns.store(written.began_ns, Ordering::Relaxed);
        self.logs.sync().map_err(FlushError::Log)
    }

    fn overlaps(&self, written: &Written) -> bool {
        self.logs.overlaps(written)
    }

    fn decide(&self, written: &mut Written) -> Result<(), FlushError> {
        self.logs.decide(written, self.binlog.as_ref().map(|binlog| &*binlog.files))
    }

    fn made_durable(&self, group: &[Durable<Trx>], written: Written, snapshot: &mut GroupSnapshot) {
        self.time_flush(group, written.began_ns, snapshot);
        let (Some(binlog), Some(BinlogBytes { batch, end })) = (&self.binlog, written.binlog) else { return };
        // I3: files and replicas get these bytes only now.
        binlog.submit(end, batch, |gtids| {
            group.iter().filter_map(|trx| trx.get().gtid).for_each(|gtid| gtids.update(gtid));
        });
        let logged = logged(group);
        if logged > 0 {
            snapshot.binlog_end = Some(end);
            if let Some(gate) = self.gate.get() {
                let last = group.last().expect("a group is not empty").seq();
                gate.made_durable(end, last, logged);
            }
        }
    }

    fn has_gate(&self) -> bool {
        self.is_gated() || self.archive_gate.as_ref().is_some_and(ArchiveGate::is_shut)
    }

    fn holds(&self, gate: Gate, snapshot: &GroupSnapshot) -> bool {
        let is_held = match (gate, &self.archive_gate, self.gate.get(), snapshot.binlog_end) {
            (Gate::Archive, Some(archive), ..) => archive.holds(snapshot.last),
            (Gate::Publish | Gate::Acknowledge, _, Some(replicas), Some(end)) => replicas.holds(gate, end),
            _ => false,
        };
        if is_held {
            snapshot.was_held.set(true);
        }
        is_held
    }

    fn passed(&self, gate: Gate, group: &[Durable<Trx>], snapshot: &mut GroupSnapshot) {
        let step = if gate == Gate::Archive { Step::ArchiveWait } else { Step::ReplicaWait };
        self.time_gate(step, snapshot, group);
        if gate == Gate::Publish {
            if let Some(archive) = &self.archive_gate {
                archive.arrive(snapshot.last, group.len() as u64, snapshot.since_ns);
            }
            // Only now the archive may read it.
            self.replicated.store(snapshot.last.0, Ordering::Release);
        }
    }

    fn publish(&self, group: &mut [Durable<Trx>], snapshot: &mut GroupSnapshot) {
        let began_ns = snapshot.since_ns;
        let view = snapshot.view.take().expect("a group is published once");
        let last = view.seq();
        let mut published = self.view.write();
        published.view = view;
        if let Some(end) = snapshot.binlog_end {
            published.binlog_end = end;
        }
        drop(published);
        self.locks.set_durable(last);
        let size = group.len() as u64;
        self.metrics.published(size, logged(group));
        snapshot.since_ns = self.now_ns();
        let publish_ns = snapshot.since_ns.saturating_sub(began_ns);
        self.metrics.record_alone(Step::Publish, publish_ns, size);
        trace_all(group, snapshot, Step::Publish, publish_ns);
    }

    fn notified(&self, transactions: usize, ns: u64) {
        self.metrics.record(Step::Acknowledge, ns, transactions as u64);
    }

    fn stop(&self, error: &FlushError) {
        (self.on_stop)(error);
    }

    fn now_ns(&self) -> u64 {
        self.world.clock.monotonic_ns()
    }

    fn is_waited_for(&self, queue: &[Ordered<Trx>]) -> bool {
        !self.is_early_release.load(Ordering::Relaxed)
            && queue.iter().any(|trx| self.locks.waits_for(&trx.get().request.locks))
    }

    fn client<'a>(&self, trx: &'a Trx) -> Option<&'a ClientCommits> {
        trx.request.client.as_deref()
    }

    fn reached(&self, point: Point) {
        if let Some(hook) = &self.failpoint {
            hook(point);
        }
    }
}

/// Returns the number of transactions that have events in the binlog.
fn logged(group: &[Durable<Trx>]) -> u64 {
    group.iter().filter(|trx| trx.get().gtid.is_some()).count() as u64
}

/// Returns the commit id of each transaction of the group (I8): the first CommitSeq of its run, or `None`
/// if it is alone in its run.
fn commit_ids(group: &[Ordered<Trx>]) -> Vec<Option<u64>> {
    let mut ids = vec![None; group.len()];
    let mut start = 0;
    let mut close = |start: usize, end: usize| {
        if end - start > 1 {
            ids[start..end].fill(Some(group[start].seq().0));
        }
    };
    for (n, ordered) in group.iter().enumerate() {
        let trx = ordered.get();
        let Some(part) = &trx.request.binlog else { continue };
        let is_alone = part.kind != GroupKind::Transaction;
        let follows = n > start && trx.depends_on >= group[start].seq();
        if is_alone || follows {
            close(start, n);
            start = n;
        }
        if is_alone {
            start = n + 1;
        }
    }
    close(start.min(group.len()), group.len());
    ids
}

/// Appends the transaction's binlog bytes to `out`, in their final form.
fn stream_trx(stream: &mut Stream, trx: &Trx, commit_id: Option<u64>, out: &mut StreamOut) {
    let (Some(part), Some(gtid)) = (&trx.request.binlog, trx.gtid) else { return };
    let mut flags2 = match part.kind {
        GroupKind::Transaction => event::gtid_flags2::TRANSACTIONAL,
        GroupKind::Ddl => event::gtid_flags2::STANDALONE | event::gtid_flags2::DDL,
        GroupKind::Statement => event::gtid_flags2::STANDALONE,
        GroupKind::XaPrepare => event::gtid_flags2::TRANSACTIONAL | event::gtid_flags2::PREPARED_XA,
        GroupKind::XaEnd => {
            let ends = event::gtid_flags2::STANDALONE | event::gtid_flags2::COMPLETED_XA;
            event::gtid_flags2::TRANSACTIONAL | ends
        }
    };
    if !part.hints.is_alone {
        flags2 |= event::gtid_flags2::ALLOW_PARALLEL;
    }
    if part.hints.has_waited {
        flags2 |= event::gtid_flags2::WAITED;
    }
    let flags = part.hints.event_flags;
    let xid = part.xa.as_deref().cloned();
    let head = GtidHead { gtid, commit_id, flags2, xid, flags, timestamp: part.timestamp };
    let has_xid = part.kind == GroupKind::Transaction;
    stream.append_trx(out, &head, &part.events, has_xid.then_some(trx.xid));
}

/// Traces a step of a group, if one of its sessions traces.
fn trace_all(group: &[Durable<Trx>], snapshot: &GroupSnapshot, step: Step, ns: u64) {
    if snapshot.is_traced {
        group.iter().filter_map(|trx| trx.get().request.trace()).for_each(|trace| trace.note(step, ns));
    }
}
