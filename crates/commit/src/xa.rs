//! XA branches: who works on each name, and the prepared ones, which outlive sessions and crashes. A
//! participant of commits.
//!
//! # Why a participant
//! A prepared branch is redo that nobody applies yet: its writes, the names and the row keys that it has
//! locked. XA PREPARE is a commit with nothing but this redo; XA COMMIT is a commit with the engines' redo
//! and a word that the branch has ended; XA ROLLBACK one with that word alone. So both halves are ordered,
//! hardened, gated, spilled, replayed and cut as every other transaction, both appear in one order with those
//! that they depend on (I1), and a COMMIT is never half there (I2). The engines see only ordinary
//! transactions.
//!
//! # States
//! ```text
//! (free) --begin--> begun --commit_ordered(PREPARE), keep--> prepared, of a session
//!                     |                                        |  detach: the session is gone
//!                   forget                                     v
//!                     v                           prepared, of nobody --take--> ending
//!                   (free) <--commit_ordered(END)-- prepared, of a session --take--^ |
//!                                                              ^------give_back------+  the commit was refused
//! ```
//! A branch that has only read, a *reader*, leaves nothing to make durable: its PREPARE is no commit, and it
//! is rolled back when its session goes; its name then stays until somebody is told so.
//!
//! A branch that recovery found is *of nobody*; its locks are taken again ([`XaBranches::adopt`]) before any
//! session begins.
//!
//! # Invariants
//! - A prepared branch has its locks from `keep` or `adopt` on until its end is ordered (or, while it is
//!   *ending*, whoever ends it has them). They are not released early at PREPARE: nothing of it is visible.
//! - A name is used by one branch at a time, begun or prepared. As in MariaDB two names that differ in their
//!   format alone are the same.
//! - I2: `commit_ordered` and `replay` alone decide what is prepared. The other states live in memory.
//!
//! - The order stage does the same little work for every branch: its redo brings what was read of it
//!   ([`XaBody`]), and what the end of a branch frees is in the hands of who ends it.
//! - A branch's keys count ([`XaBranches::largest_key`]) until its writes are in the engines, not only until
//!   its end is ordered: large writes are taken in later.
//!
//! A forgotten branch holds back neither the log nor purge. It costs its memory, its locks, and its bytes in
//! the files of the checkpoints (`xa_file.rs`).
//!
//! # Missing
//! Ranges (gap locks) of a branch are not in its redo: they end with the server, as InnoDB's do.

use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId, Reservation};
use cohort_binlog::event::XaXid;
use cohort_engine::{CheckpointTask, EngineError, Participant, Redo};
use cohort_locks::{LockOwner, NameKey};
use cohort_vfs::SharedFs;
use hashbrown::{Equivalent, HashMap};
use parking_lot::Mutex;

use crate::xa_body::{WeakBody, XaBody, XaChange};
use crate::xa_file::XaFile;

/// As commit records name it; final, it is on disk.
pub const XA: ParticipantId = ParticipantId(4);

/// A prepared branch that nobody ends is told about at this age, and again each time it has doubled.
const FORGOTTEN_US: u64 = 60_000_000;
/// Between two looks for such branches.
const LOOK_US: u64 = 1_000_000;
/// Of one look so many branches are told about each, the oldest; the others as one number.
const TOLD_EACH: usize = 4;

/// What a branch holds while it is prepared.
pub struct XaHeld {
    pub locks: LockOwner,
    /// What it takes in memory.
    pub memory: Reservation,
}

/// A branch that is about to end, in the hands of who ends it. The body is kept until the branch's writes are
/// in the engines: so long its keys count.
pub struct XaTaken {
    pub body: XaBody,
    pub held: XaHeld,
}

/// Who asks for a prepared branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaTaker {
    /// The session that prepared it.
    Owner,
    /// Another one: the first must be gone.
    Other,
}

/// A line of XA RECOVER, and more.
#[derive(Clone, Debug)]
pub struct XaListed {
    pub body: XaBody,
    /// The place of its PREPARE in the order; 0 if recovery found it.
    pub seq: CommitSeq,
    /// Transaction and locked rows, as the lock table knows them; none while somebody ends it.
    pub locks: Option<(cohort_base::TrxId, u64)>,
    /// The session that prepared it is gone.
    pub is_detached: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Session,
    Nobody,
    /// Its end is on its way.
    Ending,
}

impl XaTaker {
    /// Where the branch has to be.
    fn place(self) -> Place {
        match self {
            XaTaker::Owner => Place::Session,
            XaTaker::Other => Place::Nobody,
        }
    }
}

struct Prepared {
    body: XaBody,
    seq: CommitSeq,
    place: Place,
    held: Option<XaHeld>,
    /// Age at which the next warning comes.
    warn_at_us: u64,
    /// It has only read.
    is_reader: bool,
}

/// How the end of a reader went.
pub enum ReaderEnd {
    /// It has ended; its locks go with this.
    Done(Box<XaHeld>),
    /// Its session had gone, and it with that.
    WasRolledBack,
}

/// What tells branches apart: gtrid and bqual.
#[derive(PartialEq, Eq, Hash)]
struct Name {
    gtrid: Vec<u8>,
    bqual: Vec<u8>,
}

/// The same without a copy, to look for it.
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

/// Whether both are the same branch's.
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
    /// Those in the hands of who ends them.
    leaving: Vec<WeakBody>,
    /// Grows with every branch that is prepared or ends.
    version: u64,
    /// When branches that nobody has ended are looked for again.
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

    /// A branch is prepared; as a rule its name is there since it began.
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
    /// Reads the file; without one nothing is prepared.
    pub fn open(fs: SharedFs, dir: &Path) -> Result<XaBranches, EngineError> {
        // What is read now is what the file holds.
        let mut state = State { version: 1, ..State::default() };
        let (file, bodies) = XaFile::open(fs, dir, state.version)?;
        for body in bodies {
            state.insert(body, CommitSeq(0), Place::Nobody);
        }
        Ok(XaBranches { state: Mutex::new(state), file: Arc::new(file) })
    }

    /// A session begins a branch; false if the name is in use.
    pub fn begin(&self, xid: &XaXid) -> bool {
        let mut state = self.state.lock();
        let name = name(xid);
        if state.branches.contains_key(&name) {
            return false;
        }
        state.branches.insert(name.to_name(), Branch::Begun);
        true
    }

    /// A branch that was not prepared is over.
    pub fn forget(&self, xid: &XaXid) {
        let mut state = self.state.lock();
        let name = name(xid);
        if matches!(state.branches.get(&name), Some(Branch::Begun)) {
            state.branches.remove(&name);
        }
    }

    /// The branch's PREPARE is ordered: from here on it has its locks.
    pub fn keep(&self, xid: &XaXid, held: XaHeld) {
        let mut state = self.state.lock();
        let prepared = state.prepared(xid).expect("its PREPARE is ordered");
        prepared.held = Some(held);
    }

    /// The branch has only read: it is prepared without a commit.
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

    /// Whether a prepared branch has changed anything.
    pub fn has_written(&self, xid: &XaXid) -> bool {
        self.state.lock().prepared(xid).is_some_and(|prepared| !prepared.is_reader)
    }

    /// Ends a reader. None: there is none of this name, or it is not the taker's.
    pub fn end_reader(&self, xid: &XaXid, taker: XaTaker) -> Option<ReaderEnd> {
        let mut state = self.state.lock();
        let reader = state.prepared(xid).filter(|it| it.is_reader && it.place == taker.place())?;
        let held = reader.held.take();
        state.branches.remove(&name(xid));
        Some(held.map_or(ReaderEnd::WasRolledBack, |held| ReaderEnd::Done(Box::new(held))))
    }

    /// The session that prepared the branch is gone: others may end it.
    pub fn detach(&self, xid: &XaXid) {
        let mut state = self.state.lock();
        let Some(prepared) = state.prepared(xid).filter(|it| it.place == Place::Session) else { return };
        prepared.place = Place::Nobody;
        if let Some(held) = &mut prepared.held {
            // Waits of the session that comes next have nothing to do with it.
            held.locks.leave();
        }
        let held = if prepared.is_reader { prepared.held.take() } else { None };
        drop(state);
        // Locks go, and wake others, with nothing held here.
        drop(held);
    }

    /// Gives a prepared branch to who is going to end it. None: there is none, or it is not the taker's.
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

    /// The end was refused: the branch is prepared as before.
    pub fn give_back(&self, xid: &XaXid, held: XaHeld, taker: XaTaker) {
        let mut state = self.state.lock();
        let prepared = state.prepared(xid).expect("its end is not ordered");
        prepared.held = Some(held);
        prepared.place = taker.place();
    }

    /// Gives branches that recovery found their locks, before any session begins.
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

    /// The prepared branches, oldest first. What is ordered counts: whoever shows it waits until it is
    /// hardened (I5).
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

    /// The largest key of a key space that prepared branches are going to put there.
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

    /// Answers: has a prepared branch locked this name, in any mode?
    pub fn holds_name(&self, name: &NameKey) -> bool {
        let state = self.state.lock();
        let holds = |branch: &Branch| match branch {
            Branch::Begun => false,
            Branch::Prepared(prepared) => {
                prepared.held.iter().any(|held| held.locks.held_names().iter().any(|(held, _)| held == name))
            }
        };
        state.branches.values().any(holds)
    }

    /// Sentences about branches that nobody has ended for long, for the error log. Few, however many there
    /// are.
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
        let others = found.split_off(found.len().min(TOLD_EACH));
        let mut sentences: Vec<String> = found.iter().map(Forgotten::sentence).collect();
        if !others.is_empty() {
            let (locks, bytes) =
                others.iter().fold((0, 0), |(locks, bytes), it| (locks + it.locks, bytes + it.bytes));
            sentences.push(format!(
                "{} more XA transactions have been prepared for {} s and longer and nobody has ended them: they keep {locks} \
                 row locks, the definitions of their tables and {bytes} bytes; XA RECOVER lists them",
                others.len(),
                others.last().map_or(0, |it| it.age_us / 1_000_000),
            ));
        }
        sentences
    }
}

/// A branch that nobody has ended for long.
struct Forgotten {
    xid: XaXid,
    age_us: u64,
    locks: usize,
    bytes: usize,
}

impl Forgotten {
    /// If it is time to tell of this one.
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
            "XA transaction {} has been prepared for {} s and nobody has ended it: it keeps {} row locks, the definitions of \
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

    /// Never a reason for a checkpoint: what is prepared is to end soon.
    fn unflushed_bytes(&self) -> u64 {
        0
    }

    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        for redo in redo {
            let change = XaChange::decode(&redo.bytes).map_err(|_| {
                EngineError::Corrupt("the redo of an XA transaction does not decode".to_owned())
            })?;
            state.version += 1;
            match change {
                XaChange::Prepared(body) => state.insert(body, CommitSeq(0), Place::Nobody),
                XaChange::Ended(xid) => state.remove(&xid),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
