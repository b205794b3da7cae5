//! Durable state of a replica: its sources and its applied positions. It takes part in commits like a storage
//! engine.
//!
//! # Why a participant
//! The position of an applied transaction is redo in the transaction's own commit record. After a crash
//! either both are present or neither, without a second flush. Checkpoints, replay and the cut of unreleased
//! transactions treat it like any other redo. CHANGE MASTER, RESET SLAVE, START SLAVE (the name of its relay
//! log) and SET GLOBAL gtid_slave_pos are commits that contain only such redo, in the encoding below.
//!
//! # States
//! The appliers continue from the *ordered* state. SHOW, `gtid_slave_pos` and MASTER_GTID_WAIT read the
//! *published* state (I5). A change moves to the published state when its CommitSeq is published. A
//! checkpoint writes the ordered state, which is durable by then.
//!
//! # The file `replication`, written as `replication.new` and renamed
//! ```text
//! 0   8  magic "COHREP01"
//! 8   8  LSN of the checkpoint
//! 16  n  changes that build the state from an empty one
//! ..  4  CRC-32C of all preceding bytes
//! ```
//! Integers are little-endian. A change is `kind u8` and
//! ```text
//! 1 applied    replaces the position of the domain: domain u32 | server u32 | seq_no u64
//! 2 executed   source file and position: lenenc name | lenenc file | position u64
//! 3 no gtids   clears all GTID positions
//! 4 source     lenenc name | lenenc settings
//! 5 forget     lenenc name
//! 6 relay log  lenenc name | lenenc base name of its files
//! ```
//!
//! # On failure
//! A missing file is an empty state. A file whose checksum is wrong is refused; the error names it. If a
//! checkpoint cannot be written, the old file stays and the log keeps the changes.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{CommitSeq, DomainId, Gtid, Lsn, ParticipantId, Reader, ServerId, Truncated, Write};
use cohort_engine::{
    CheckpointTask, EngineError, Participant, PinnedFiles, Redo, SmallFiles, checkpoint_file,
};
use cohort_vfs::SharedFs;
use parking_lot::Mutex;

use crate::settings::SourceSettings;

/// Id of this participant in commit records. Never changes, because it is on disk.
pub const REPLICATION: ParticipantId = ParticipantId(3);

const MAGIC: &[u8; 8] = b"COHREP01";
const FILE: &str = "replication";
const FILE_NEW: &str = "replication.new";

/// A change of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A transaction was applied or skipped.
    Applied(Gtid),
    /// All events of a source before this position were applied.
    Executed {
        name: String,
        file: String,
        position: u64,
    },
    /// Removes the positions of all domains.
    NoGtids,
    /// Sets a source's settings, as given by CHANGE MASTER.
    Source {
        name: String,
        settings: Box<SourceSettings>,
    },
    Forget {
        name: String,
    },
    /// Sets the base name of a source's relay log files. It stays valid if the server's host name changes.
    RelayLog {
        name: String,
        base: String,
    },
}

impl Change {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Change::Applied(gtid) => {
                out.put_u8(1);
                out.put_u32(gtid.domain.0);
                out.put_u32(gtid.server.0);
                out.put_u64(gtid.seq_no);
            }
            Change::Executed { name, file, position } => {
                out.put_u8(2);
                out.put_lenenc_bytes(name.as_bytes());
                out.put_lenenc_bytes(file.as_bytes());
                out.put_u64(*position);
            }
            Change::NoGtids => out.put_u8(3),
            Change::Source { name, settings } => {
                out.put_u8(4);
                out.put_lenenc_bytes(name.as_bytes());
                let mut bytes = Vec::new();
                settings.encode(&mut bytes);
                out.put_lenenc_bytes(&bytes);
            }
            Change::Forget { name } => {
                out.put_u8(5);
                out.put_lenenc_bytes(name.as_bytes());
            }
            Change::RelayLog { name, base } => {
                out.put_u8(6);
                out.put_lenenc_bytes(name.as_bytes());
                out.put_lenenc_bytes(base.as_bytes());
            }
        }
    }

    /// Encodes the changes as redo.
    pub fn redo(changes: &[Change]) -> Redo {
        let mut bytes = Vec::with_capacity(64);
        changes.iter().for_each(|change| change.encode(&mut bytes));
        Redo::new(bytes)
    }

    fn decode_all(bytes: &[u8]) -> Option<Vec<Change>> {
        fn text(r: &mut Reader<'_>) -> Result<String, Truncated> {
            Ok(String::from_utf8_lossy(r.lenenc_bytes()?).into_owned())
        }
        fn next(r: &mut Reader<'_>) -> Result<Option<Change>, Truncated> {
            Ok(Some(match r.u8()? {
                1 => Change::Applied(Gtid {
                    domain: DomainId(r.u32()?),
                    server: ServerId(r.u32()?),
                    seq_no: r.u64()?,
                }),
                2 => Change::Executed { name: text(r)?, file: text(r)?, position: r.u64()? },
                3 => Change::NoGtids,
                4 => {
                    let name = text(r)?;
                    match SourceSettings::decode(r.lenenc_bytes()?) {
                        Some(settings) => Change::Source { name, settings: Box::new(settings) },
                        None => return Ok(None),
                    }
                }
                5 => Change::Forget { name: text(r)? },
                6 => Change::RelayLog { name: text(r)?, base: text(r)? },
                _ => return Ok(None),
            }))
        }
        let mut r = Reader::new(bytes);
        let mut changes = Vec::new();
        while !r.is_empty() {
            changes.push(next(&mut r).ok()??);
        }
        Some(changes)
    }
}

/// Sources and applied positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaState {
    /// Newest applied transaction of each domain.
    pub gtids: BTreeMap<DomainId, Gtid>,
    /// Sources by name. The position in each is the start of its first event that is not applied.
    pub sources: BTreeMap<String, SourceSettings>,
    /// Base names of relay log files, by source name.
    pub relay_logs: BTreeMap<String, String>,
}

impl ReplicaState {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Applied(gtid) => drop(self.gtids.insert(gtid.domain, gtid)),
            Change::NoGtids => self.gtids.clear(),
            Change::Source { name, settings } => drop(self.sources.insert(name, *settings)),
            Change::Forget { name } => {
                self.sources.remove(&name);
                self.relay_logs.remove(&name);
            }
            Change::RelayLog { name, base } => drop(self.relay_logs.insert(name, base)),
            Change::Executed { name, file, position } => {
                if let Some(source) = self.sources.get_mut(&name) {
                    (source.file, source.position) = (file, position);
                }
            }
        }
    }

    fn changes(&self) -> Vec<Change> {
        let source = |(name, settings): (&String, &SourceSettings)| Change::Source {
            name: name.clone(),
            settings: Box::new(settings.clone()),
        };
        let applied = self.gtids.values().map(|gtid| Change::Applied(*gtid));
        let relay_log =
            |(name, base): (&String, &String)| Change::RelayLog { name: name.clone(), base: base.clone() };
        let relay_logs = self.relay_logs.iter().map(relay_log);
        self.sources.iter().map(source).chain(applied).chain(relay_logs).collect()
    }
}

/// Stores the replication state of a server.
pub struct StateStore {
    fs: SharedFs,
    dir: PathBuf,
    states: Mutex<States>,
    durable: Arc<Mutex<Durable>>,
}

#[derive(Default)]
struct States {
    ordered: ReplicaState,
    /// Incremented by every change.
    version: u64,
    published: ReplicaState,
    /// Changes that are ordered but not published, oldest first.
    waiting: VecDeque<(CommitSeq, Change)>,
}

#[derive(Clone, Copy)]
struct Durable {
    lsn: Lsn,
    version: u64,
}

impl StateStore {
    /// Reads the file. Without one, the state has no sources.
    pub fn open(fs: SharedFs, dir: &Path) -> Result<StateStore, EngineError> {
        let path = dir.join(FILE);
        let (state, lsn) = match fs.exists(&path) {
            true => read_file(&fs, &path)?,
            false => (ReplicaState::default(), Lsn(0)),
        };
        let states =
            States { ordered: state.clone(), version: 1, published: state, waiting: VecDeque::new() };
        let durable = Durable { lsn, version: u64::from(lsn > Lsn(0)) };
        Ok(StateStore {
            fs,
            dir: dir.to_path_buf(),
            states: Mutex::new(states),
            durable: Arc::new(Mutex::new(durable)),
        })
    }

    /// Calls `look` with the ordered state.
    pub fn ordered<R>(&self, look: impl FnOnce(&ReplicaState) -> R) -> R {
        look(&self.states.lock().ordered)
    }

    /// Calls `look` with the published state, which no crash can undo. `published` is the server's published
    /// position; the caller reads it before the call.
    pub fn published<R>(&self, published: CommitSeq, look: impl FnOnce(&ReplicaState) -> R) -> R {
        let mut states = self.states.lock();
        states.advance(published);
        look(&states.published)
    }

    /// Moves changes up to `published` into the published state, to free the memory of the waiting list.
    pub fn advance(&self, published: CommitSeq) {
        self.states.lock().advance(published);
    }
}

impl States {
    fn advance(&mut self, published: CommitSeq) {
        while self.waiting.front().is_some_and(|(seq, _)| *seq <= published) {
            if let Some((_, change)) = self.waiting.pop_front() {
                self.published.apply(change);
            }
        }
    }
}

fn corrupt(what: &str) -> EngineError {
    EngineError::Corrupt(what.to_owned())
}

fn read_file(fs: &SharedFs, path: &Path) -> Result<(ReplicaState, Lsn), EngineError> {
    checkpoint_file::read(fs, path, MAGIC, |lsn, rest| {
        let mut state = ReplicaState::default();
        Change::decode_all(rest.rest())?.into_iter().for_each(|change| state.apply(change));
        Some((state, lsn))
    })
}

impl Participant for StateStore {
    fn id(&self) -> ParticipantId {
        REPLICATION
    }

    fn place(&self) -> String {
        format!("the replica's state file '{}'", self.dir.join(FILE).display())
    }

    fn commit_ordered(&self, seq: CommitSeq, redo: &[&Redo]) {
        let mut states = self.states.lock();
        states.version += 1;
        for redo in redo {
            for change in Change::decode_all(&redo.bytes).expect("encoded by this crate") {
                states.ordered.apply(change.clone());
                states.waiting.push_back((seq, change));
            }
        }
    }

    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError> {
        let states = self.states.lock();
        Ok(Box::new(WriteFile {
            fs: self.fs.clone(),
            dir: self.dir.clone(),
            lsn,
            version: states.version,
            state: states.ordered.clone(),
            durable: Arc::clone(&self.durable),
        }))
    }

    fn durable_lsn(&self) -> Lsn {
        self.durable.lock().lsn
    }

    /// Returns 0: the file is small and rewritten as a whole, so it never makes a checkpoint due.
    fn unflushed_bytes(&self) -> u64 {
        0
    }

    fn pin(&self, _since: Option<u64>) -> Result<Box<dyn PinnedFiles>, EngineError> {
        let path = self.dir.join(FILE);
        Ok(Box::new(SmallFiles::new(self.fs.clone(), move || Ok(vec![path.clone()]))))
    }

    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError> {
        let mut states = self.states.lock();
        states.version += 1;
        for redo in redo {
            for change in Change::decode_all(&redo.bytes).ok_or_else(|| corrupt("the replica's redo"))? {
                states.ordered.apply(change.clone());
                states.published.apply(change);
            }
        }
        Ok(())
    }
}

struct WriteFile {
    fs: SharedFs,
    dir: PathBuf,
    lsn: Lsn,
    version: u64,
    state: ReplicaState,
    durable: Arc<Mutex<Durable>>,
}

impl CheckpointTask for WriteFile {
    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        // An unchanged state needs no new file: a replay from an older LSN finds no change of it. A server
        // that was never a replica needs no file at all.
        let is_new = self.durable.lock().lsn == Lsn(0) && self.state == ReplicaState::default();
        if is_new || self.durable.lock().version == self.version {
            return Ok(());
        }
        let mut bytes = checkpoint_file::begin(MAGIC, self.lsn);
        bytes.extend_from_slice(&Change::redo(&self.state.changes()).bytes);
        checkpoint_file::seal(&mut bytes);
        let new = self.dir.join(FILE_NEW);
        self.fs.replace(&self.dir.join(FILE), &new, &bytes).map_err(EngineError::Io)?;
        *self.durable.lock() = Durable { lsn: self.lsn, version: self.version };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cohort_vfs::{MemFs, OpenMode};

    use super::*;

    fn gtid(text: &str) -> Gtid {
        text.parse().expect("valid")
    }

    #[test]
    fn ordered_writes_are_visible_once_published_and_survive_a_checkpoint() {
        let fs: SharedFs = Arc::new(MemFs::new());
        let store = StateStore::open(fs.clone(), Path::new("/")).expect("empty");
        let source = Change::Source { name: "a".to_owned(), settings: Box::default() };
        let relay_log = Change::RelayLog { name: "a".to_owned(), base: "host-relay-bin".to_owned() };
        let at =
            |file: &str, position| Change::Executed { name: "a".to_owned(), file: file.to_owned(), position };
        let first = Change::redo(&[source, relay_log, Change::Applied(gtid("0-1-5")), at("b.1", 77)]);
        let second = Change::redo(&[Change::Applied(gtid("0-2-6")), Change::Applied(gtid("3-1-1"))]);
        store.commit_ordered(CommitSeq(1), &[&first]);
        store.commit_ordered(CommitSeq(2), &[&second]);
        let newest = |state: &ReplicaState| state.gtids.get(&DomainId(0)).copied();
        assert_eq!(store.published(CommitSeq(0), newest), None);
        assert_eq!(store.published(CommitSeq(1), newest), Some(gtid("0-1-5")));
        assert_eq!(store.ordered(newest), Some(gtid("0-2-6")));
        store.begin_checkpoint(Lsn(9)).and_then(CheckpointTask::finish).expect("written");
        let again = StateStore::open(fs, Path::new("/")).expect("whole");
        assert_eq!(again.durable_lsn(), Lsn(9));
        assert_eq!(again.published(CommitSeq(0), Clone::clone), store.ordered(Clone::clone));
        assert_eq!(again.ordered(|state| state.sources["a"].position), 77);
        assert_eq!(again.ordered(|state| state.relay_logs["a"].clone()), "host-relay-bin");
        again.replay(&[Change::redo(&[Change::NoGtids])]).expect("decodes");
        assert_eq!(again.ordered(newest), None);
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let fs: SharedFs = Arc::new(MemFs::new());
        let store = StateStore::open(fs.clone(), Path::new("/")).expect("empty");
        store.commit_ordered(CommitSeq(1), &[&Change::redo(&[Change::Applied(gtid("0-1-5"))])]);
        store.begin_checkpoint(Lsn(9)).and_then(CheckpointTask::finish).expect("written");
        let file = fs.open(Path::new("/replication"), OpenMode::Write).expect("there");
        file.write_at(b"x", 20).expect("written");
        assert!(StateStore::open(fs, Path::new("/")).is_err());
    }
}
