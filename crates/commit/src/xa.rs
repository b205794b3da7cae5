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
//! # The file `xa-prepared`, written as `xa-prepared.new` and renamed at checkpoints
//! ```text
//! 0   8  magic "COHXA001"
//! 8   8  LSN of the checkpoint
//! 16  n  for each prepared branch: lenenc redo of its PREPARE
//! ..  4  CRC-32C of all before
//! ```
//! So a forgotten branch holds back neither the log nor purge. It costs its memory, its locks, and its
//! bytes in this file, which is written anew by each checkpoint that finds other branches than the one
//! before.
//!
//! # On failure
//! A file that fails its checksum is refused with its name. A checkpoint that cannot be written leaves the
//! old file; the log keeps the branches.
//!
//! # Missing
//! Ranges (gap locks) of a branch are not in its redo: they end with the server. Large branches have no
//! files of their own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId, Reader, Reservation, Write};
use cohort_binlog::event::XaXid;
use cohort_engine::{CheckpointTask, EngineError, Participant, Redo};
use cohort_locks::LockOwner;
use cohort_vfs::{OpenMode, SharedFs};
use parking_lot::Mutex;

use crate::xa_body::{XaBody, XaChange};

/// As commit records name it; final, it is on disk.
pub const XA: ParticipantId = ParticipantId(4);

const MAGIC: &[u8; 8] = b"COHXA001";
const FILE: &str = "xa-prepared";
const FILE_NEW: &str = "xa-prepared.new";

/// A prepared branch that nobody ends is told about at this age, and again each time it has doubled.
const FORGOTTEN_US: u64 = 60_000_000;

/// What a branch holds while it is prepared.
pub struct XaHeld {
    pub locks: LockOwner,
    /// What it takes in memory.
    pub memory: Reservation,
}

/// A branch that is about to end, in the hands of who ends it.
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
    Done(XaHeld),
    /// Its session had gone, and it with that.
    WasRolledBack,
}

/// What tells branches apart: gtrid and bqual.
type Name = (Vec<u8>, Vec<u8>);

fn name(xid: &XaXid) -> Name {
    (xid.gtrid.clone(), xid.bqual.clone())
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
    branches: HashMap<Name, Branch>,
    /// Grows with every branch that is prepared or ends.
    version: u64,
}

impl State {
    fn prepared(&mut self, xid: &XaXid) -> Option<&mut Prepared> {
        match self.branches.get_mut(&name(xid)) {
            Some(Branch::Prepared(prepared)) => Some(prepared),
            _ => None,
        }
    }

    fn apply(&mut self, change: XaChange, seq: CommitSeq, place: Place) {
        self.version += 1;
        match change {
            XaChange::Prepared(body) => {
                let name = name(&body.head().xid);
                let prepared =
                    Prepared { body, seq, place, held: None, warn_at_us: FORGOTTEN_US, is_reader: false };
                self.branches.insert(name, Branch::Prepared(Box::new(prepared)));
            }
            XaChange::Ended(xid) => drop(self.branches.remove(&name(&xid))),
        }
    }
}

#[derive(Clone, Copy)]
struct Durable {
    lsn: Lsn,
    version: u64,
}

/// All branches of a server.
pub struct XaBranches {
    fs: SharedFs,
    dir: PathBuf,
    state: Mutex<State>,
    durable: Arc<Mutex<Durable>>,
}

impl XaBranches {
    /// Reads the file; without one nothing is prepared.
    pub fn open(fs: SharedFs, dir: &Path) -> Result<XaBranches, EngineError> {
        let path = dir.join(FILE);
        let (bodies, lsn) = match fs.exists(&path) {
            true => read_file(&fs, &path)?,
            false => (Vec::new(), Lsn(0)),
        };
        let mut state = State::default();
        for body in bodies {
            state.apply(XaChange::Prepared(body), CommitSeq(0), Place::Nobody);
        }
        state.version = 1;
        let durable = Durable { lsn, version: u64::from(lsn > Lsn(0)) };
        Ok(XaBranches {
            fs,
            dir: dir.to_path_buf(),
            state: Mutex::new(state),
            durable: Arc::new(Mutex::new(durable)),
        })
    }

    /// A session begins a branch; false if the name is in use.
    pub fn begin(&self, xid: &XaXid) -> bool {
        let mut state = self.state.lock();
        let name = name(xid);
        if state.branches.contains_key(&name) {
            return false;
        }
        state.branches.insert(name, Branch::Begun);
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
        let name = name(&body.head().xid);
        let prepared = Prepared {
            body,
            seq: CommitSeq(0),
            place: Place::Session,
            held: Some(held),
            warn_at_us: FORGOTTEN_US,
            is_reader: true,
        };
        self.state.lock().branches.insert(name, Branch::Prepared(Box::new(prepared)));
    }

    /// Ends a reader. None: there is none of this name, or it is not the taker's.
    pub fn end_reader(&self, xid: &XaXid, taker: XaTaker) -> Option<ReaderEnd> {
        let mut state = self.state.lock();
        let reader = state.prepared(xid).filter(|it| it.is_reader && it.place == taker.place())?;
        let held = reader.held.take();
        state.branches.remove(&name(xid));
        Some(held.map_or(ReaderEnd::WasRolledBack, ReaderEnd::Done))
    }

    /// The session that prepared the branch is gone: others may end it.
    pub fn detach(&self, xid: &XaXid) {
        let mut state = self.state.lock();
        let Some(prepared) = state.prepared(xid).filter(|it| it.place == Place::Session) else { return };
        prepared.place = Place::Nobody;
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
        Some(XaTaken { body: prepared.body.clone(), held })
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
        let mut largest: Option<Vec<u8>> = None;
        for branch in self.list() {
            let walked: Result<(), std::convert::Infallible> =
                branch.body.walk(&mut |_, _| Ok(()), &mut |_, _, _| Ok(()), &mut |write| {
                    let is_put = write.index == index && write.value.is_some();
                    if is_put && largest.as_deref().is_none_or(|key| key < write.key) {
                        largest = Some(write.key.to_vec());
                    }
                    Ok(())
                });
            let Ok(()) = walked;
        }
        largest
    }

    /// Sentences about branches that nobody has ended for long, for the error log.
    pub fn forgotten(&self, now_us: u64) -> Vec<String> {
        let mut state = self.state.lock();
        let mut sentences = Vec::new();
        for branch in state.branches.values_mut() {
            let Branch::Prepared(prepared) = branch else { continue };
            let age_us = now_us.saturating_sub(prepared.body.head().since_us);
            if age_us < prepared.warn_at_us {
                continue;
            }
            while prepared.warn_at_us <= age_us {
                prepared.warn_at_us *= 2;
            }
            let locked = prepared.held.as_ref().map_or(0, |held| held.locks.row_locks());
            sentences.push(format!(
                "XA transaction {} has been prepared for {} s and nobody has ended it: it keeps {} row locks, the definitions of \
                 its tables and {} bytes; XA COMMIT or XA ROLLBACK ends it",
                prepared.body.head().xid.to_sql(),
                age_us / 1_000_000,
                locked,
                prepared.body.bytes().len()
            ));
        }
        sentences
    }
}

fn corrupt(what: String) -> EngineError {
    EngineError::Corrupt(what)
}

fn read_file(fs: &SharedFs, path: &Path) -> Result<(Vec<XaBody>, Lsn), EngineError> {
    let file = fs.open(path, OpenMode::Read).map_err(EngineError::Io)?;
    let mut bytes = vec![0; file.len().map_err(EngineError::Io)? as usize];
    file.read_at(&mut bytes, 0).map_err(EngineError::Io)?;
    decode_file(&bytes).ok_or_else(|| {
        corrupt(format!(
            "{}: the bytes from offset 0 to {} fail their checksum; restore the file from a backup",
            path.display(),
            bytes.len()
        ))
    })
}

fn decode_file(bytes: &[u8]) -> Option<(Vec<XaBody>, Lsn)> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return None;
    }
    let mut r = Reader::new(body);
    if r.bytes(MAGIC.len()).ok()? != MAGIC {
        return None;
    }
    let lsn = Lsn(r.u64().ok()?);
    let mut bodies = Vec::new();
    while !r.is_empty() {
        match XaChange::decode(r.lenenc_bytes().ok()?).ok()? {
            XaChange::Prepared(body) => bodies.push(body),
            XaChange::Ended(_) => return None,
        }
    }
    Some((bodies, lsn))
}

impl Participant for XaBranches {
    fn id(&self) -> ParticipantId {
        XA
    }

    fn place(&self) -> String {
        format!("the file of prepared XA transactions '{}'", self.dir.join(FILE).display())
    }

    fn commit_ordered(&self, seq: CommitSeq, redo: &[&Redo]) {
        let mut state = self.state.lock();
        for redo in redo {
            let change = XaChange::decode(&redo.bytes).expect("encoded by this crate");
            state.apply(change, seq, Place::Session);
        }
    }

    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError> {
        let state = self.state.lock();
        let bodies = state.branches.values().filter_map(|branch| match branch {
            Branch::Prepared(prepared) if !prepared.is_reader => Some(prepared.body.clone()),
            _ => None,
        });
        Ok(Box::new(WriteFile {
            fs: self.fs.clone(),
            dir: self.dir.clone(),
            lsn,
            version: state.version,
            bodies: bodies.collect(),
            durable: Arc::clone(&self.durable),
        }))
    }

    fn durable_lsn(&self) -> Lsn {
        self.durable.lock().lsn
    }

    /// Never a reason for a checkpoint: what is prepared is to end soon.
    fn unflushed_bytes(&self) -> u64 {
        0
    }

    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        for redo in redo {
            let change = XaChange::decode(&redo.bytes)
                .map_err(|_| corrupt("the redo of an XA transaction does not decode".to_owned()))?;
            state.apply(change, CommitSeq(0), Place::Nobody);
        }
        Ok(())
    }
}

struct WriteFile {
    fs: SharedFs,
    dir: PathBuf,
    lsn: Lsn,
    version: u64,
    bodies: Vec<XaBody>,
    durable: Arc<Mutex<Durable>>,
}

impl CheckpointTask for WriteFile {
    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        // Replay from an older LSN finds no branch that is not in the file. A server without XA has none.
        let is_new = self.durable.lock().lsn == Lsn(0) && self.bodies.is_empty();
        if is_new || self.durable.lock().version == self.version {
            return Ok(());
        }
        let mut bytes = MAGIC.to_vec();
        bytes.put_u64(self.lsn.0);
        self.bodies.iter().for_each(|body| bytes.put_lenenc_bytes(body.bytes()));
        let crc = crc32c::crc32c(&bytes);
        bytes.put_u32(crc);
        let new = self.dir.join(FILE_NEW);
        self.fs.replace(&self.dir.join(FILE), &new, &bytes).map_err(EngineError::Io)?;
        *self.durable.lock() = Durable { lsn: self.lsn, version: self.version };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
