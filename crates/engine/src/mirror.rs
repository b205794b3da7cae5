//! Mirror: runs every operation on two engines, the reference engine and the engine under test, and compares
//! their results.
//!
//! Redo holds both halves (`u32 length of the first | first | second`). Different results of a read are a bug
//! in one of the engines: the mirror panics with both results.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId, Reader, Write};

use crate::caller::SearchHint;
use crate::read_view::{EngineSnapshot, ReadView};
use crate::redo::{Installed, Redo, RedoFiles};
use crate::redo_memory::MemoryRedo;
use crate::traits::{
    Batch, BulkLoad, CheckpointTask, EachWrite, Engine, EngineError, EngineTrx, IndexStats, MultiGet,
    PageFormat, Participant, PinnedFile, PinnedFiles, ReadAt, Savepoint, ScanRequest,
};

/// Runs `first` and `second` in parallel under the participant number of `first`.
pub struct Mirror {
    first: Arc<dyn Engine>,
    second: Arc<dyn Engine>,
}

impl Mirror {
    /// Creates a mirror of two engines with different participant numbers.
    pub fn new(first: Arc<dyn Engine>, second: Arc<dyn Engine>) -> Mirror {
        assert_ne!(first.id(), second.id(), "read views distinguish engines by number");
        Mirror { first, second }
    }
}

fn split(redo: &Redo) -> Result<(Redo, Redo), EngineError> {
    let mut r = Reader::new(&redo.bytes);
    let first = r.u32().and_then(|len| r.bytes(len as usize));
    let first = first.map_err(|_| EngineError::Corrupt("redo of a mirror is truncated".to_owned()))?;
    let half = |bytes: &[u8], of: fn(&BothInstalled) -> &Redo| {
        let both = redo.installation().and_then(|token| token.as_any().downcast_ref::<BothInstalled>());
        match both.and_then(|both| of(both).installation()) {
            Some(token) => Redo::installed(bytes.to_vec(), Arc::clone(token)),
            None => Redo::new(bytes.to_vec()),
        }
    };
    Ok((half(first, |both| &both.first), half(r.rest(), |both| &both.second)))
}

/// Tokens of both engines. The bytes are in the mirror's redo.
struct BothInstalled {
    first: Redo,
    second: Redo,
}

impl Installed for BothInstalled {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Snapshots of both engines, each as a separate view.
struct Both {
    first: ReadView,
    second: ReadView,
}

impl EngineSnapshot for Both {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Participant for Mirror {
    fn id(&self) -> ParticipantId {
        self.first.id()
    }

    fn place(&self) -> String {
        self.first.place()
    }

    fn commit_ordered(&self, seq: CommitSeq, redo: &[&Redo]) {
        let halves: Vec<(Redo, Redo)> =
            redo.iter().map(|redo| split(redo).expect("prepared by a mirror")).collect();
        self.first.commit_ordered(seq, &halves.iter().map(|(first, _)| first).collect::<Vec<_>>());
        self.second.commit_ordered(seq, &halves.iter().map(|(_, second)| second).collect::<Vec<_>>());
    }

    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError> {
        Ok(Box::new((self.first.begin_checkpoint(lsn)?, self.second.begin_checkpoint(lsn)?)))
    }

    fn durable_lsn(&self) -> Lsn {
        self.first.durable_lsn().min(self.second.durable_lsn())
    }

    fn unflushed_bytes(&self) -> u64 {
        self.first.unflushed_bytes().max(self.second.unflushed_bytes())
    }

    fn pin(&self, _since: Option<u64>) -> Result<Box<dyn PinnedFiles>, EngineError> {
        Ok(Box::new((self.first.pin(None)?, self.second.pin(None)?)))
    }

    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError> {
        let halves = redo.iter().map(split).collect::<Result<Vec<_>, _>>()?;
        let (first, second): (Vec<Redo>, Vec<Redo>) = halves.into_iter().unzip();
        self.first.replay(&first)?;
        self.second.replay(&second)
    }
}

impl CheckpointTask for (Box<dyn CheckpointTask>, Box<dyn CheckpointTask>) {
    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        self.0.finish()?;
        self.1.finish()
    }

    fn finish_throttled(self: Box<Self>, rest: &mut dyn FnMut(Duration)) -> Result<(), EngineError> {
        self.0.finish_throttled(rest)?;
        self.1.finish_throttled(rest)
    }
}

impl PinnedFiles for (Box<dyn PinnedFiles>, Box<dyn PinnedFiles>) {
    fn files(&mut self) -> Vec<PinnedFile> {
        self.0.files().into_iter().chain(self.1.files()).collect()
    }

    fn cut(&mut self) {
        self.0.cut();
        self.1.cut();
    }

    fn rest(&mut self) -> Result<Vec<PinnedFile>, EngineError> {
        Ok(self.0.rest()?.into_iter().chain(self.1.rest()?).collect())
    }
}

impl Engine for Mirror {
    fn name(&self) -> &'static str {
        "MIRROR"
    }

    fn begin(&self) -> Box<dyn EngineTrx> {
        Box::new(MirrorTrx {
            id: self.id(),
            first: self.first.begin(),
            second: self.second.begin(),
            savepoints: Vec::new(),
            parts: MemoryRedo::default(),
        })
    }

    fn snapshot(&self) -> Arc<dyn EngineSnapshot> {
        let view =
            |engine: &Arc<dyn Engine>| ReadView::new(CommitSeq(0), vec![(engine.id(), engine.snapshot())]);
        Arc::new(Both { first: view(&self.first), second: view(&self.second) })
    }

    fn bulk_load(&self, index: IndexId) -> Result<Box<dyn BulkLoad>, EngineError> {
        Ok(Box::new((self.first.bulk_load(index)?, self.second.bulk_load(index)?)))
    }

    fn drop_indexes(&self, indexes: &[IndexId]) -> Result<(), EngineError> {
        self.first.drop_indexes(indexes)?;
        self.second.drop_indexes(indexes)
    }

    fn set_page_format(&self, indexes: &[IndexId], form: PageFormat) {
        self.first.set_page_format(indexes, form);
        self.second.set_page_format(indexes, form);
    }

    fn indexes(&self) -> Result<Vec<IndexId>, EngineError> {
        let (first, second) = (self.first.indexes()?, self.second.indexes()?);
        assert_eq!(first, second, "the mirrored engines hold different index trees");
        Ok(first)
    }

    fn stats(&self, index: IndexId) -> IndexStats {
        self.second.stats(index)
    }

    fn sample(&self, index: IndexId, count: usize) -> Result<Vec<Vec<u8>>, EngineError> {
        self.second.sample(index, count)
    }

    fn status(&self) -> Vec<(String, u64)> {
        self.second.status()
    }

    fn verify(
        &self,
        index: IndexId,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Vec<String>, EngineError> {
        self.second.verify(index, goes_on)
    }
}

impl BulkLoad for (Box<dyn BulkLoad>, Box<dyn BulkLoad>) {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.0.add(key, value)?;
        self.1.add(key, value)
    }

    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        self.0.finish()?;
        self.1.finish()
    }
}

struct MirrorTrx {
    id: ParticipantId,
    first: Box<dyn EngineTrx>,
    second: Box<dyn EngineTrx>,
    savepoints: Vec<(Savepoint, Savepoint)>,
    /// Redo of the parts that the second engine has installed.
    parts: MemoryRedo,
}

impl MirrorTrx {
    fn views<'a>(&self, at: ReadAt<'a>) -> (ReadAt<'a>, ReadAt<'a>) {
        match at {
            ReadAt::Latest => (ReadAt::Latest, ReadAt::Latest),
            ReadAt::View(view) => {
                let both: &Both = view.of(self.id).as_any().downcast_ref().expect("made by a mirror");
                (ReadAt::View(&both.first), ReadAt::View(&both.second))
            }
        }
    }
}

/// Scans until an entry is found or the range ends.
fn scan_on(trx: &dyn EngineTrx, request: &ScanRequest<'_>, batch: &mut Batch) -> Result<bool, EngineError> {
    let mut range = request.range.clone();
    loop {
        let more = trx.scan(&ScanRequest { range: &range, ..*request }, batch)?;
        if !more || request.limit == 0 || !batch.is_empty() {
            return Ok(more);
        }
        batch.cut(&mut range, request.direction);
    }
}

/// Looks up the keys of entries that a scan found, and compares.
fn same_by_keys(
    trx: &dyn EngineTrx,
    at: ReadAt<'_>,
    index: IndexId,
    entries: &Batch,
) -> Result<(), EngineError> {
    let keys: Vec<&[u8]> = entries.iter().map(|entry| entry.0).collect();
    // From the second round on, the hint holds a position.
    let mut hint = SearchHint::default();
    for _ in 0..2 {
        let (mut batch, mut found) = (Batch::default(), Vec::new());
        let (keys, bytes_max) = (&keys[..], usize::MAX);
        let mut looks = MultiGet { index, keys, bytes_max, batch: &mut batch, found: &mut found };
        let looked = trx.get_many(at, &mut looks, &mut hint)?;
        assert!(looked == keys.len() && batch.iter().eq(entries.iter()), "keys of {index}");
    }
    Ok(())
}

impl EngineTrx for MirrorTrx {
    fn get(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        let (at_first, at_second) = self.views(at);
        let mut other = Vec::new();
        let found = self.first.get(at_first, index, key, &mut other)?;
        let also = self.second.get(at_second, index, key, value)?;
        assert_eq!((found, &other), (also, &*value), "get of {key:?} in {index}");
        Ok(also)
    }

    fn scan(&self, request: &ScanRequest<'_>, batch: &mut Batch) -> Result<bool, EngineError> {
        let (at_first, at_second) = self.views(request.at);
        let (mut other, mut own) = (Batch::default(), Batch::default());
        // Engines may stop at different keys. Both scans continue until they have found an entry.
        let first_has_more = scan_on(&*self.first, &ScanRequest { at: at_first, ..*request }, &mut other)?;
        let more = scan_on(&*self.second, &ScanRequest { at: at_second, ..*request }, &mut own)?;
        assert!(
            other.iter().zip(own.iter()).all(|(other, own)| other == own)
                && (other.len() >= own.len() || first_has_more)
                && (own.len() >= other.len() || more),
            "scan of {:?} {:?} in {}",
            request.range,
            request.direction,
            request.index
        );
        if matches!(request.at, ReadAt::View(_)) {
            same_by_keys(&*self.second, at_second, request.index, &own)?;
        }
        batch.begin();
        own.iter().for_each(|(key, value)| batch.push(key, value));
        Ok(more)
    }

    fn put(&mut self, index: IndexId, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.first.put(index, key, value)?;
        self.second.put(index, key, value)
    }

    fn delete(&mut self, index: IndexId, key: &[u8]) -> Result<(), EngineError> {
        self.first.delete(index, key)?;
        self.second.delete(index, key)
    }

    fn savepoint(&mut self) -> Savepoint {
        self.savepoints.push((self.first.savepoint(), self.second.savepoint()));
        Savepoint(self.savepoints.len() - 1)
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        let (first, second) = self.savepoints[savepoint.0];
        self.first.rollback_to(first);
        self.second.rollback_to(second);
        self.savepoints.truncate(savepoint.0 + 1);
    }

    fn is_read_only(&self) -> bool {
        assert_eq!(self.first.is_read_only(), self.second.is_read_only());
        self.second.is_read_only()
    }

    fn memory_bytes(&self) -> usize {
        self.first.memory_bytes() + self.second.memory_bytes()
    }

    fn each_write(&self, each: &mut EachWrite<'_>) -> ControlFlow<()> {
        self.first.each_write(each)
    }

    fn installs_parts(&self) -> bool {
        self.second.installs_parts()
    }

    fn install_part(&mut self, _: &dyn RedoFiles) -> Result<(), EngineError> {
        self.savepoints.clear();
        self.second.install_part(&self.parts)
    }

    fn prepare(&mut self) -> Result<Redo, EngineError> {
        let (first, second) = (self.first.prepare()?, self.parts.prepare(&mut *self.second)?);
        let mut bytes = Vec::with_capacity(4 + first.bytes.len() + second.bytes.len());
        bytes.put_u32(first.bytes.len() as u32);
        bytes.extend_from_slice(&first.bytes);
        bytes.extend_from_slice(&second.bytes);
        Ok(Redo::installed(bytes, Arc::new(BothInstalled { first, second })))
    }
}
