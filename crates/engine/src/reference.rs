//! The reference engine: all versions of all keys in one sorted map. It is the simplest implementation of the
//! contract. The crash explorer and the mirror compare other engines with it.
//!
//! # States
//! Each key has its versions, oldest first, with the CommitSeq that wrote them. A snapshot is a CommitSeq. A
//! write of a key drops the versions of the key that no live snapshot can see.
//!
//! # Durability
//! A checkpoint writes the newest versions of all keys to `reference.checkpoint`:
//!
//! ```text
//! 0   8  magic "COHREF02"
//! 8   8  LSN of the checkpoint
//! 16  8  number of the first bulk load that is not in it
//! 24  n  redo bytes (see below)
//! ..  4  CRC-32C of all before
//! ```
//!
//! A bulk load has no commit record. Until the next checkpoint it is stored in a file `load.NUMBER` (redo
//! bytes, CRC-32C), which is durable before the load is finished. A file with a wrong checksum was cut off by
//! a crash before its load was finished, so nothing refers to its entries.
//!
//! Redo has the same format here and in commit records. For each write:
//! `u32 length of full key | full key | u8 1 put, 0 delete | u32 length of value | value`.
//!
//! # Lock order
//! `store` before `live`. Neither is held across I/O.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId, Reader, Write};
use cohort_vfs::{OpenMode, SharedFs};
use parking_lot::{Mutex, RwLock};

use crate::checkpoint_file;
use crate::pinned::SmallFiles;
use crate::read_view::EngineSnapshot;
use crate::redo::Redo;
use crate::traits::{
    Batch, BulkLoad, CheckpointTask, Direction, EachWrite, Engine, EngineError, EngineTrx, IndexStats,
    KeyRange, Participant, PinnedFiles, ReadAt, Savepoint, ScanRequest,
};
use crate::write_set::{BaseScan, INDEX_ID_BYTES, WriteSet, full_key, full_range, with_full_key};

const MAGIC: &[u8; 8] = b"COHREF02";
const FILE: &str = "reference.checkpoint";

type Versions = Vec<(CommitSeq, Option<Arc<[u8]>>)>;

#[derive(Default)]
struct Store {
    keys: BTreeMap<Vec<u8>, Versions>,
    applied: CommitSeq,
    unflushed_bytes: u64,
    /// Number of the next bulk load.
    next_load: u64,
}

struct Shared {
    id: ParticipantId,
    fs: SharedFs,
    dir: PathBuf,
    store: RwLock<Store>,
    /// Number of live snapshots of each CommitSeq.
    live: Mutex<BTreeMap<CommitSeq, usize>>,
    durable: Mutex<Lsn>,
}

/// An engine that keeps all data in memory. A checkpoint writes all of it.
#[derive(Clone)]
pub struct ReferenceEngine {
    shared: Arc<Shared>,
}

impl ReferenceEngine {
    /// Opens the last checkpoint in `dir`, or starts empty.
    pub fn open(id: ParticipantId, fs: SharedFs, dir: PathBuf) -> Result<ReferenceEngine, EngineError> {
        fs.create_dir_all(&dir).map_err(EngineError::Io)?;
        let (mut store, mut durable) = (Store::default(), Lsn(0));
        let path = dir.join(FILE);
        fs.sync_dir(&dir).map_err(EngineError::Io)?;
        if fs.exists(&path) {
            let bytes = checkpoint_file::read_bytes(&fs, &path)?;
            let checkpoint = decode_checkpoint(&bytes)
                .ok_or_else(|| EngineError::Corrupt(format!("{} fails its checksum", path.display())))?;
            store.apply(CommitSeq(0), checkpoint.redo, CommitSeq(0))?;
            store.unflushed_bytes = 0;
            (durable, store.next_load) = (checkpoint.lsn, checkpoint.next_load);
        }
        read_loads(&fs, &dir, &mut store)?;
        let shared = Shared {
            id,
            fs,
            dir,
            store: RwLock::new(store),
            live: Mutex::new(BTreeMap::new()),
            durable: Mutex::new(durable),
        };
        Ok(ReferenceEngine { shared: Arc::new(shared) })
    }
}

/// Applies the bulk loads since the checkpoint.
fn read_loads(fs: &SharedFs, dir: &Path, store: &mut Store) -> Result<(), EngineError> {
    for number in load_numbers(fs, dir)? {
        let bytes = checkpoint_file::read_bytes(fs, &load_path(dir, number))?;
        let body = bytes.split_last_chunk::<4>().filter(|(b, crc)| crc32c::crc32c(b).to_le_bytes() == **crc);
        if let (Some((redo, _)), true) = (body, number >= store.next_load) {
            store.apply(CommitSeq(0), redo, CommitSeq(0))?;
        }
        store.next_load = store.next_load.max(number + 1);
    }
    Ok(())
}

fn load_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("load.{number:06}"))
}

fn load_numbers(fs: &SharedFs, dir: &Path) -> Result<Vec<u64>, EngineError> {
    let paths = fs.list(dir).map_err(EngineError::Io)?;
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("load.")?.parse().ok();
    let mut numbers: Vec<u64> = paths.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

struct Decoded<'b> {
    lsn: Lsn,
    next_load: u64,
    redo: &'b [u8],
}

fn decode_checkpoint(bytes: &[u8]) -> Option<Decoded<'_>> {
    let (lsn, mut r) = checkpoint_file::open(MAGIC, bytes)?;
    Some(Decoded { lsn, next_load: r.u64().ok()?, redo: r.rest() })
}

fn put_write(out: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    out.put_u32(key.len() as u32);
    out.extend_from_slice(key);
    out.put_u8(u8::from(value.is_some()));
    let value = value.unwrap_or(&[]);
    out.put_u32(value.len() as u32);
    out.extend_from_slice(value);
}

impl Store {
    fn apply(&mut self, seq: CommitSeq, redo: &[u8], oldest: CommitSeq) -> Result<(), EngineError> {
        let truncated = |_| EngineError::Corrupt("redo of the reference engine is truncated".to_owned());
        let mut r = Reader::new(redo);
        while !r.is_empty() {
            let len = r.u32().map_err(truncated)?;
            let key = r.bytes(len as usize).map_err(truncated)?;
            let is_put = r.u8().map_err(truncated)? == 1;
            let len = r.u32().map_err(truncated)?;
            let value = r.bytes(len as usize).map_err(truncated)?;
            let versions = self.keys.entry(key.to_vec()).or_default();
            // Keeps the newest version that the oldest reader sees, and drops all older ones.
            let keep = versions.partition_point(|(s, _)| *s <= oldest).saturating_sub(1);
            versions.drain(..keep);
            versions.push((seq, is_put.then(|| value.into())));
            self.unflushed_bytes += (key.len() + value.len()) as u64;
        }
        self.applied = self.applied.max(seq);
        Ok(())
    }
}

fn visible(versions: &Versions, upto: CommitSeq) -> Option<&Arc<[u8]>> {
    let n = versions.partition_point(|(seq, _)| *seq <= upto);
    versions[..n].last()?.1.as_ref()
}

impl Shared {
    fn oldest_live(&self, applied: CommitSeq) -> CommitSeq {
        self.live.lock().keys().next().copied().unwrap_or(applied)
    }

    fn upto(&self, at: ReadAt<'_>) -> CommitSeq {
        match at {
            ReadAt::Latest => CommitSeq(u64::MAX),
            ReadAt::View(view) => {
                let snapshot = view.of(self.id).as_any().downcast_ref::<Snapshot>();
                snapshot.expect("the view's part with this id was made by this engine").seq
            }
        }
    }
}

struct Snapshot {
    seq: CommitSeq,
    shared: Arc<Shared>,
}

impl EngineSnapshot for Snapshot {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut live = self.shared.live.lock();
        let count = live.get_mut(&self.seq).expect("counted when made");
        *count -= 1;
        if *count == 0 {
            live.remove(&self.seq);
        }
    }
}

impl Participant for ReferenceEngine {
    fn id(&self) -> ParticipantId {
        self.shared.id
    }

    fn place(&self) -> String {
        format!("the storage engine in '{}'", self.shared.dir.display())
    }

    fn commit_ordered(&self, seq: CommitSeq, redo: &[&Redo]) {
        let mut store = self.shared.store.write();
        let oldest = self.shared.oldest_live(store.applied);
        for redo in redo {
            store.apply(seq, &redo.bytes, oldest).expect("prepared by this engine");
        }
    }

    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError> {
        let mut store = self.shared.store.write();
        let mut bytes = checkpoint_file::begin(MAGIC, lsn);
        bytes.put_u64(store.next_load);
        for (key, versions) in &store.keys {
            if let Some(value) = visible(versions, CommitSeq(u64::MAX)) {
                put_write(&mut bytes, key, Some(value));
            }
        }
        checkpoint_file::seal(&mut bytes);
        store.unflushed_bytes = 0;
        let next_load = store.next_load;
        Ok(Box::new(Checkpoint { shared: self.shared.clone(), lsn, next_load, bytes }))
    }

    fn durable_lsn(&self) -> Lsn {
        *self.shared.durable.lock()
    }

    fn unflushed_bytes(&self) -> u64 {
        self.shared.store.read().unflushed_bytes
    }

    fn pin(&self, _since: Option<u64>) -> Result<Box<dyn PinnedFiles>, EngineError> {
        let shared = Arc::clone(&self.shared);
        let paths = move || {
            let loads = load_numbers(&shared.fs, &shared.dir).map_err(io::Error::other)?;
            let loads = loads.into_iter().map(|number| load_path(&shared.dir, number));
            Ok([shared.dir.join(FILE)].into_iter().chain(loads).collect())
        };
        Ok(Box::new(SmallFiles::new(self.shared.fs.clone(), paths)))
    }

    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError> {
        let mut store = self.shared.store.write();
        let seq = store.applied;
        redo.iter().try_for_each(|redo| store.apply(seq, &redo.bytes, seq))
    }
}

struct Checkpoint {
    shared: Arc<Shared>,
    lsn: Lsn,
    next_load: u64,
    bytes: Vec<u8>,
}

impl CheckpointTask for Checkpoint {
    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        let (fs, dir) = (&self.shared.fs, &self.shared.dir);
        let (tmp, path) = (dir.join("reference.tmp"), dir.join(FILE));
        fs.replace(&path, &tmp, &self.bytes).map_err(EngineError::Io)?;
        *self.shared.durable.lock() = self.lsn;
        for number in load_numbers(fs, dir)?.into_iter().filter(|number| *number < self.next_load) {
            // If the removal fails, the next start skips the file by its number.
            let _ = fs.remove(&load_path(dir, number));
        }
        Ok(())
    }
}

impl Engine for ReferenceEngine {
    fn name(&self) -> &'static str {
        "REFERENCE"
    }

    fn begin(&self) -> Box<dyn EngineTrx> {
        Box::new(Trx { shared: self.shared.clone(), writes: WriteSet::default(), key: Vec::new() })
    }

    fn snapshot(&self) -> Arc<dyn EngineSnapshot> {
        let seq = self.shared.store.read().applied;
        *self.shared.live.lock().entry(seq).or_default() += 1;
        Arc::new(Snapshot { seq, shared: self.shared.clone() })
    }

    fn bulk_load(&self, index: IndexId) -> Result<Box<dyn BulkLoad>, EngineError> {
        Ok(Box::new(Load { shared: self.shared.clone(), index, redo: Vec::new(), last: None }))
    }

    fn logs_loads(&self) -> bool {
        true
    }

    fn push_load(&self, index: IndexId, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        with_full_key(index, key, |full| put_write(out, full, Some(value)));
    }

    fn drop_indexes(&self, indexes: &[IndexId]) -> Result<(), EngineError> {
        self.shared.store.write().keys.retain(|key, _| !indexes.contains(&index_of(key)));
        Ok(())
    }

    fn indexes(&self) -> Result<Vec<IndexId>, EngineError> {
        let store = self.shared.store.read();
        let mut ids: Vec<IndexId> = store.keys.keys().map(|key| index_of(key)).collect();
        ids.dedup();
        Ok(ids)
    }

    fn stats(&self, index: IndexId) -> IndexStats {
        let (start, end) = full_range(index, &KeyRange::default());
        let mut stats = IndexStats::default();
        for (key, versions) in self.shared.store.read().keys.range(start..end) {
            if let Some(value) = visible(versions, CommitSeq(u64::MAX)) {
                stats.entries += 1;
                stats.bytes += (key.len() + value.len()) as u64;
            }
        }
        stats
    }

    fn sample(&self, index: IndexId, count: usize) -> Result<Vec<Vec<u8>>, EngineError> {
        let (start, end) = full_range(index, &KeyRange::default());
        let store = self.shared.store.read();
        let live = |versions: &_| visible(versions, CommitSeq(u64::MAX)).is_some();
        let keys: Vec<&Vec<u8>> =
            store.keys.range(start..end).filter(|(_, versions)| live(versions)).map(|(key, _)| key).collect();
        let step = keys.len().div_ceil(count.max(1)).max(1);
        Ok(keys.into_iter().step_by(step).map(|key| key[INDEX_ID_BYTES..].to_vec()).collect())
    }

    fn status(&self) -> Vec<(String, u64)> {
        vec![("Reference_keys".to_owned(), self.shared.store.read().keys.len() as u64)]
    }
}

fn index_of(full_key: &[u8]) -> IndexId {
    IndexId(u32::from_be_bytes(*full_key.first_chunk().expect("a full key starts with its index")))
}

struct Load {
    shared: Arc<Shared>,
    index: IndexId,
    redo: Vec<u8>,
    last: Option<Vec<u8>>,
}

impl BulkLoad for Load {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        assert!(self.last.as_deref().is_none_or(|last| last < key), "bulk load keys ascend strictly");
        let mut full = Vec::new();
        full_key(self.index, key, &mut full);
        put_write(&mut self.redo, &full, Some(value));
        self.last = Some(key.to_vec());
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        let number = {
            let mut store = self.shared.store.write();
            let seq = store.applied;
            store.apply(seq, &self.redo, seq)?;
            store.next_load += 1;
            store.next_load - 1
        };
        let (fs, dir) = (&self.shared.fs, &self.shared.dir);
        let crc = crc32c::crc32c(&self.redo);
        let mut bytes = self.redo;
        bytes.put_u32(crc);
        let write = || {
            let file = fs.open(&load_path(dir, number), OpenMode::CreateNew)?;
            file.write_at(&bytes, 0)?;
            file.sync_data()?;
            fs.sync_dir(dir)
        };
        write().map_err(EngineError::Io)
    }
}

struct Trx {
    shared: Arc<Shared>,
    writes: WriteSet,
    key: Vec<u8>,
}

/// Copies of the visible entries of a range.
struct Found {
    entries: std::vec::IntoIter<(Vec<u8>, Arc<[u8]>)>,
}

impl BaseScan<'_> for Found {
    fn current(&self) -> Result<Option<(&[u8], &[u8])>, EngineError> {
        Ok(self.entries.as_slice().first().map(|(key, value)| (key.as_slice(), &**value)))
    }

    fn advance(&mut self) {
        self.entries.next();
    }
}

impl EngineTrx for Trx {
    fn get(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        value.clear();
        let mut full = Vec::new();
        full_key(index, key, &mut full);
        if let Some(own) = self.writes.get(&full) {
            value.extend_from_slice(own.unwrap_or(&[]));
            return Ok(own.is_some());
        }
        let store = self.shared.store.read();
        let found = store.keys.get(&full).and_then(|versions| visible(versions, self.shared.upto(at)));
        value.extend_from_slice(found.map_or(&[], |v| v));
        Ok(found.is_some())
    }

    fn scan(&self, request: &ScanRequest<'_>, batch: &mut Batch) -> Result<bool, EngineError> {
        let &ScanRequest { at, index, range, direction, limit } = request;
        let (start, end) = full_range(index, range);
        let upto = self.shared.upto(at);
        let mut entries = Vec::new();
        if start < end {
            let store = self.shared.store.read();
            let bounds = (Bound::Included(start.as_slice()), Bound::Excluded(end.as_slice()));
            for (key, versions) in store.keys.range::<[u8], _>(bounds) {
                if let Some(value) = visible(versions, upto) {
                    entries.push((key.clone(), value.clone()));
                }
            }
        }
        if direction == Direction::Backward {
            entries.reverse();
        }
        let mut base = Found { entries: entries.into_iter() };
        self.writes.merge_scan((&start, &end), direction, limit, &mut base, batch)
    }

    fn put(&mut self, index: IndexId, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        full_key(index, key, &mut self.key);
        self.writes.write(&self.key, Some(value));
        Ok(())
    }

    fn delete(&mut self, index: IndexId, key: &[u8]) -> Result<(), EngineError> {
        full_key(index, key, &mut self.key);
        self.writes.write(&self.key, None);
        Ok(())
    }

    fn savepoint(&mut self) -> Savepoint {
        self.writes.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.writes.rollback_to(savepoint);
    }

    fn is_read_only(&self) -> bool {
        self.writes.is_empty()
    }

    fn memory_bytes(&self) -> usize {
        self.writes.memory_bytes()
    }

    fn each_write(&self, each: &mut EachWrite<'_>) -> ControlFlow<()> {
        self.writes.each(each)
    }

    fn prepare(&mut self) -> Result<Redo, EngineError> {
        let mut bytes = Vec::with_capacity(self.writes.size_bytes());
        for (key, value) in self.writes.iter() {
            put_write(&mut bytes, key, value);
        }
        Ok(Redo::new(bytes))
    }
}
