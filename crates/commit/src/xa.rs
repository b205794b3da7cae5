//! XA branches: the names in use, and the prepared branches, which survive sessions and crashes.
//! [`XaBranches`] is a participant of commits.
//!
//! # Why a participant
//! A prepared branch is redo that is not applied yet: its writes, and the names and row keys that it has
//! locked. XA PREPARE is a commit with only this redo. XA COMMIT is a commit with the engines' redo and an
//! END record of the branch; XA ROLLBACK is a commit with only the END record. So both phases are ordered,
//! made durable, gated, spilled, replayed and cut like every other transaction. Both are in one order with
//! the transactions that they depend on (I1), and a COMMIT is never half done (I2). The engines see only
//! ordinary transactions.
//!
//! # States
//! ```text
//! (free) --begin--> begun --commit_ordered(PREPARE), keep--> prepared, session-owned
//!                     |                                        |  detach: the session has ended
//!                   forget                                     v
//!                     v                              prepared, detached --take--> ending
//!                   (free) <--commit_ordered(END)-- prepared, session-owned --take--^ |
//!                                                              ^------give_back-------+  the end was refused
//! ```
//! A branch that has only read, a *reader*, has nothing to make durable. Its PREPARE is not a commit, and it
//! is rolled back when its session ends. Its name then stays in use until the rollback was reported to a
//! client.
//!
//! A branch found by recovery is *detached*; its locks are taken again ([`XaBranches::adopt`]) before any
//! session begins.
//!
//! # Invariants
//! - A prepared branch holds its locks from `keep` or `adopt` until its end is ordered. While it is *ending*,
//!   the session that ends it holds them. They are not released early at PREPARE, because nothing of the
//!   branch is visible.
//! - A name is used by one branch at a time, begun or prepared. As in MariaDB, two names that differ only in
//!   their format are the same.
//! - I2: only `commit_ordered` and `replay` decide which branches are prepared. The other states are only in
//!   memory.
//! - The order stage does the same small work for every branch: the redo comes with its decoded form
//!   ([`XaBody`]), and the locks and memory of an ended branch are freed by the session that ends it.
//! - A branch's keys count ([`XaBranches::largest_key`]) until its writes are in the engines, not only until
//!   its end is ordered: large writes are ingested later.
//!
//! A forgotten branch blocks neither the release of the log nor purge. It costs its memory, its locks, and
//! its bytes in the files of the checkpoints (`xa_file.rs`).
//!
//! # Missing
//! Ranges (gap locks) of a branch are not in its redo: they are lost when the server ends, as in InnoDB.

use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId, Reservation};
use cohort_binlog::event::XaXid;
use cohort_engine::{CheckpointTask, EngineError, Participant, PinnedFiles, Redo};
use cohort_locks::{LockOwner, MetadataKey};
use cohort_vfs::SharedFs;
use hashbrown::{Equivalent, HashMap};
use parking_lot::Mutex;

use crate::xa_body::{WeakBody, XaBody, XaChange};
use crate::xa_file::XaFile;

/// Number of this participant in commit records. It is stored on disk and must not change.
pub const XA: ParticipantId = ParticipantId(4);

/// Age at which the first warning about a prepared branch is logged; a further one each time the age has
/// doubled.
const FORGOTTEN_US: u64 = 60_000_000;
/// Minimum time between two searches for such branches.
const LOOK_US: u64 = 1_000_000;
/// Maximum number of branches, the oldest, that one search reports individually; the others are summed up.
const REPORTED_EACH: usize = 4;

/// Resources of a prepared branch.
pub struct XaHeld {
    pub locks: LockOwner,
    /// The memory of the branch.
    pub memory: Reservation,
}

/// A branch that a session is about to end. The body is kept until the branch's writes are in the engines,
/// because its keys count until then.
pub struct XaTaken {
    pub body: XaBody,
    pub held: XaHeld,
}

/// Origin of a request for a prepared branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaTaker {
    /// The session that prepared it.
    Owner,
    /// Another session: the one that prepared it must have ended.
    Other,
}

/// A prepared branch, for XA RECOVER and other lists.
#[derive(Clone, Debug)]
pub struct XaListed {
    pub body: XaBody,
    /// CommitSeq of its PREPARE; 0 if recovery found it.
    pub seq: CommitSeq,
    /// Transaction and number of locked rows, from the lock table; `None` while a session is ending it.
    pub locks: Option<(cohort_base::TrxId, u64)>,
    /// The session that prepared it has ended.
    pub is_detached: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Session,
    Detached,
    /// A session is ending it.
    Ending,
}

impl XaTaker {
    /// Returns the state in which the branch has to be.
    fn place(self) -> Place {
        match self {
            XaTaker::Owner => Place::Session,
            XaTaker::Other => Place::Detached,
        }
    }
}

struct Prepared {
    body: XaBody,
    seq: CommitSeq,
    place: Place,
    held: Option<XaHeld>,
    /// Age at which the next warning is logged.
    warn_at_us: u64,
    /// It has only read.
    is_reader: bool,
}

/// Outcome of the end of a reader.
pub enum ReaderEnd {
    /// It has ended; dropping this releases its locks.
    Done(Box<XaHeld>),
    /// It was rolled back when its session ended.
    WasRolledBack,
}

/// Identity of a branch: gtrid and bqual.
#[derive(PartialEq, Eq, Hash)]
struct Name {
    gtrid: Vec<u8>,
    bqual: Vec<u8>,
}

/// A borrowed [`Name`], for lookups.
#[derive(Hash)]
struct NameRef<'x> {
    gtrid: &'x [u8],
    bqual: &'x [u8],
}

impl Equivalent<Name> for NameRef<'_> {
    fn equivalent(&self, name: &Name) -> bool {
        (self.gtrid, self.bqual) == (&*name.gtrid, &*name.bqual)
    }
}

impl NameRef<'_> {
    fn to_name(&self) -> Name {
        Name { gtrid: self.gtrid.to_vec(), bqual: self.bqual.to_vec() }
    }
}

fn name(xid: &XaXid) -> NameRef<'_> {
    NameRef { gtrid: &xid.gtrid, bqual: &xid.bqual }
}

/// Returns whether both names belong to the same branch.
pub fn is_same_branch(a: &XaXid, b: &XaXid) -> bool {
    (&a.gtrid, &a.bqual) == (&b.gtrid, &b.bqual)
}

enum Branch {
    Begun,
    Prepared(Box<Prepared>),
}

#[derive(Default)]
struct State {
    branches: HashMap<Name, Branch, ahash::RandomState>,
    /// Branches that are being ended, or were ended recently.
    leaving: Vec<WeakBody>,
    /// Incremented for every branch that is prepared or ends.
    version: u64,
    /// Time of the next search for forgotten branches.
    look_at_us: u64,
}

impl State {
    fn prepared(&mut self, xid: &XaXid) -> Option<&mut Prepared> {
        match self.branches.get_mut(&name(xid)) {
            Some(Branch::Prepared(prepared)) => Some(prepared),
            _ => None,
        }
    }

    fn insert(&mut self, body: XaBody, seq: CommitSeq, place: Place) {
        let (warn_at_us, is_reader) = (FORGOTTEN_US, false);
        self.put(Prepared { body, seq, place, held: None, warn_at_us, is_reader });
    }

    /// Stores a prepared branch; normally its name is in the map since it began.
    fn put(&mut self, prepared: Prepared) {
        let body = prepared.body.clone();
        let branch = Branch::Prepared(Box::new(prepared));
        let name = name(&body.head().xid);
        match self.branches.get_mut(&name) {
            Some(begun) => *begun = branch,
            None => drop(self.branches.insert(name.to_name(), branch)),
        }
    }

    fn remove(&mut self, xid: &XaXid) {
        self.branches.remove(&name(xid));
    }
}

/// All branches of a server.
pub struct XaBranches {
    state: Mutex<State>,
    file: Arc<XaFile>,
}

impl XaBranches {
    /// Reads the file of the last checkpoint; without a file there are no prepared branches.
    pub fn open(fs: SharedFs, dir: &Path) -> Result<XaBranches, EngineError> {
        // The branches read now are the contents of the file.
        let mut state = State { version: 1, ..State::default() };
        let (file, bodies) = XaFile::open(fs, dir, state.version)?;
        for body in bodies {
            state.insert(body, CommitSeq(0), Place::Detached);
        }
        Ok(XaBranches { state: Mutex::new(state), file: Arc::new(file) })
    }

    /// Begins a branch of a session. Returns false if the name is in use.
    pub fn begin(&self, xid: &XaXid) -> bool {
        let mut state = self.state.lock();
        let name = name(xid);
        if state.branches.contains_key(&name) {
            return false;
        }
        state.branches.insert(name.to_name(), Branch::Begun);
        true
    }

    /// Removes a branch that was not prepared.
    pub fn forget(&self, xid: &XaXid) {
        let mut state = self.state.lock();
        let name = name(xid);
        if matches!(state.branches.get(&name), Some(Branch::Begun)) {
            state.branches.remove(&name);
        }
    }

    /// Stores the locks of a branch whose PREPARE is ordered.
    pub fn keep(&self, xid: &XaXid, held: XaHeld) {
        let mut state = self.state.lock();
        let prepared = state.prepared(xid).expect("its PREPARE is ordered");
        prepared.held = Some(held);
    }

    /// Stores a branch that has only read: it is prepared without a commit.
    pub fn keep_reader(&self, body: XaBody, held: XaHeld) {
        self.state.lock().put(Prepared {
            body,
            seq: CommitSeq(0),
            place: Place::Session,
            held: Some(held),
            warn_at_us: FORGOTTEN_US,
            is_reader: true,
        });
    }

    /// Returns whether a prepared branch has changed anything.
    pub fn has_written(&self, xid: &XaXid) -> bool {
        self.state.lock().prepared(xid).is_some_and(|prepared| !prepared.is_reader)
    }

    /// Ends a reader. Returns `None` if there is no reader of this name in the state that `taker` requires.
    pub fn end_reader(&self, xid: &XaXid, taker: XaTaker) -> Option<ReaderEnd> {
        let mut state = self.state.lock();
        let reader = state.prepared(xid).filter(|it| it.is_reader && it.place == taker.place())?;
        let held = reader.held.take();
        state.branches.remove(&name(xid));
        Some(held.map_or(ReaderEnd::WasRolledBack, |held| ReaderEnd::Done(Box::new(held))))
    }

    /// Makes a prepared branch available to other sessions, because its session has ended.
    pub fn detach(&self, xid: &XaXid) {
        let mut state = self.state.lock();
        let Some(prepared) = state.prepared(xid).filter(|it| it.place == Place::Session) else { return };
        prepared.place = Place::Detached;
        if let Some(held) = &mut prepared.held {
            // The locks leave the session's node of the wait-for graph, which later waits of that node must
            // not include.
            held.locks.leave();
        }
        let held = if prepared.is_reader { prepared.held.take() } else { None };
        drop(state);
        // Locks are released, and waiters woken, without holding the mutex.
        drop(held);
    }

    /// Passes a prepared branch to the session that is going to end it. Returns `None` if there is no branch
    /// of this name in the state that `taker` requires.
    pub fn take(&self, xid: &XaXid, taker: XaTaker) -> Option<XaTaken> {
        let mut state = self.state.lock();
        let prepared = state.prepared(xid)?;
        if prepared.place != taker.place() {
            return None;
        }
        let held = prepared.held.take()?;
        prepared.place = Place::Ending;
        let body = prepared.body.clone();
        state.leaving.retain(|leaving| leaving.upgrade().is_some());
        state.leaving.push(body.downgrade());
        Some(XaTaken { body, held })
    }

    /// Makes a branch prepared again, because its end was refused.
    pub fn give_back(&self, xid: &XaXid, held: XaHeld, taker: XaTaker) {
        let mut state = self.state.lock();
        let prepared = state.prepared(xid).expect("its end is not ordered");
        prepared.held = Some(held);
        prepared.place = taker.place();
    }

    /// Takes the locks of branches that recovery found, before any session begins. Returns their number.
    pub fn adopt<E>(&self, mut lock: impl FnMut(&XaBody) -> Result<XaHeld, E>) -> Result<usize, E> {
        let mut state = self.state.lock();
        let mut adopted = 0;
        for branch in state.branches.values_mut() {
            if let Branch::Prepared(prepared) = branch
                && prepared.held.is_none()
            {
                prepared.held = Some(lock(&prepared.body)?);
                adopted += 1;
            }
        }
        Ok(adopted)
    }

    /// Returns the prepared branches, oldest first. They are ordered, but may not be durable: a caller that
    /// shows one to a client must wait until it is durable (I5).
    pub fn list(&self) -> Vec<XaListed> {
        let state = self.state.lock();
        let mut listed: Vec<XaListed> = state
            .branches
            .values()
            .filter_map(|branch| match branch {
                Branch::Begun => None,
                Branch::Prepared(prepared) => Some(XaListed {
                    body: prepared.body.clone(),
                    seq: prepared.seq,
                    locks: prepared.held.as_ref().map(|it| (it.locks.trx(), it.locks.row_locks() as u64)),
                    is_detached: prepared.place != Place::Session,
                }),
            })
            .collect();
        listed.sort_by_cached_key(|it| {
            let head = it.body.head();
            (head.since_us, head.xid.gtrid.clone(), head.xid.bqual.clone(), head.xid.format_id)
        });
        listed
    }

    /// Returns the largest key of an index that prepared branches are going to write.
    pub fn largest_key(&self, index: IndexId) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let prepared = state.branches.values().filter_map(|branch| match branch {
            Branch::Begun => None,
            Branch::Prepared(prepared) => Some(prepared.body.clone()),
        });
        let bodies: Vec<XaBody> =
            prepared.chain(state.leaving.iter().filter_map(WeakBody::upgrade)).collect();
        drop(state);
        bodies.iter().filter_map(|body| body.largest_key(index)).max().map(<[u8]>::to_vec)
    }

    /// Returns whether a prepared branch has locked this name, in any mode.
    pub fn holds_name(&self, name: &MetadataKey) -> bool {
        let state = self.state.lock();
        let holds = |branch: &Branch| match branch {
            Branch::Begun => false,
            Branch::Prepared(prepared) => {
                prepared.held.iter().any(|held| held.locks.held_names().iter().any(|(held, _)| held == name))
            }
        };
        state.branches.values().any(holds)
    }

    /// Returns warnings about forgotten branches, for the error log. Their number is limited, however many
    /// branches there are.
    pub fn forgotten(&self, now_us: u64) -> Vec<String> {
        let mut state = self.state.lock();
        if now_us < state.look_at_us {
            return Vec::new();
        }
        state.look_at_us = now_us + LOOK_US;
        let mut found: Vec<Forgotten> =
            state.branches.values_mut().filter_map(|branch| Forgotten::of(branch, now_us)).collect();
        drop(state);
        found.sort_by_key(|it| std::cmp::Reverse(it.age_us));
        let others = found.split_off(found.len().min(REPORTED_EACH));
        let mut sentences: Vec<String> = found.iter().map(Forgotten::sentence).collect();
        if !others.is_empty() {
            let (locks, bytes) =
                others.iter().fold((0, 0), |(locks, bytes), it| (locks + it.locks, bytes + it.bytes));
            sentences.push(format!(
                "{} more XA transactions have been prepared for {} s and longer and no session has ended them: they keep {locks} \
                 row locks, the definitions of their tables and {bytes} bytes; XA RECOVER lists them",
                others.len(),
                others.last().map_or(0, |it| it.age_us / 1_000_000),
            ));
        }
        sentences
    }
}

/// A branch that has been prepared for long.
struct Forgotten {
    xid: XaXid,
    age_us: u64,
    locks: usize,
    bytes: usize,
}

impl Forgotten {
    /// Returns the branch if a warning about it is due.
    fn of(branch: &mut Branch, now_us: u64) -> Option<Forgotten> {
        let Branch::Prepared(prepared) = branch else { return None };
        let head = prepared.body.head();
        let age_us = now_us.saturating_sub(head.since_us);
        if age_us < prepared.warn_at_us {
            return None;
        }
        while prepared.warn_at_us <= age_us {
            prepared.warn_at_us *= 2;
        }
        let locks = prepared.held.as_ref().map_or(0, |held| held.locks.row_locks());
        Some(Forgotten { xid: head.xid.clone(), age_us, locks, bytes: prepared.body.bytes().len() })
    }

    fn sentence(&self) -> String {
        format!(
            "XA transaction {} has been prepared for {} s and no session has ended it: it keeps {} row locks, the definitions of \
             its tables and {} bytes; XA COMMIT or XA ROLLBACK ends it",
            self.xid.to_sql(),
            self.age_us / 1_000_000,
            self.locks,
            self.bytes
        )
    }
}

impl Participant for XaBranches {
    fn id(&self) -> ParticipantId {
        XA
    }

    fn place(&self) -> String {
        format!("the file of prepared XA transactions '{}'", self.file.path().display())
    }

    fn commit_ordered(&self, seq: CommitSeq, redo: &[&Redo]) {
        let mut state = self.state.lock();
        for redo in redo {
            state.version += 1;
            match XaBody::of(redo) {
                Some(body) => state.insert(body.clone(), seq, Place::Session),
                None => match XaChange::decode(&redo.bytes) {
                    Ok(XaChange::Ended(xid)) => state.remove(&xid),
                    _ => unreachable!("encoded by this crate; a PREPARE brings its token"),
                },
            }
        }
    }

    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError> {
        let state = self.state.lock();
        let is_written = self.file.has_version(state.version);
        let bodies = state.branches.values().filter_map(|branch| match branch {
            Branch::Prepared(prepared) if !prepared.is_reader && !is_written => Some(prepared.body.clone()),
            _ => None,
        });
        Ok(self.file.checkpoint(lsn, state.version, bodies.collect()))
    }

    fn durable_lsn(&self) -> Lsn {
        self.file.durable_lsn()
    }

    /// Returns 0: a prepared branch usually ends soon, so it must never trigger a checkpoint.
    fn unflushed_bytes(&self) -> u64 {
        0
    }

    fn pin(&self, _since: Option<u64>) -> Result<Box<dyn PinnedFiles>, EngineError> {
        Ok(self.file.pin())
    }

    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        for redo in redo {
            let change = XaChange::decode(&redo.bytes).map_err(|_| {
                EngineError::Corrupt("the redo of an XA transaction does not decode".to_owned())
            })?;
            state.version += 1;
            match change {
                XaChange::Prepared(body) => state.insert(body, CommitSeq(0), Place::Detached),
                XaChange::Ended(xid) => state.remove(&xid),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
