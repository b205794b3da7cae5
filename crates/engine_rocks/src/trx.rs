//! Transactions: a private write set over RocksDB's committed state.

use std::ops::ControlFlow;
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::{
    BaseScan, Batch, Direction, EachWrite, EngineError, EngineTrx, ParticipantId, ReadAt, Redo, Savepoint,
    ScanRequest, WriteSet, full_key, full_range, with_full_key,
};
use rocksdb::{DB, DBRawIterator, ReadOptions};

use crate::error::io_error;
use crate::redo;
use crate::snapshot::RocksSnapshot;

/// One transaction in RocksDB.
pub struct RocksTrx {
    db: Arc<DB>,
    id: ParticipantId,
    /// Options for point reads of the newest state.
    latest: Arc<ReadOptions>,
    writes: WriteSet,
    key: Vec<u8>,
}

impl RocksTrx {
    pub fn new(db: Arc<DB>, id: ParticipantId, latest: Arc<ReadOptions>) -> RocksTrx {
        RocksTrx { db, id, latest, writes: WriteSet::default(), key: Vec::new() }
    }

    fn snapshot<'a>(&self, at: ReadAt<'a>) -> Option<&'a RocksSnapshot> {
        match at {
            ReadAt::Latest => None,
            ReadAt::View(view) => {
                let snapshot = view.of(self.id).as_any().downcast_ref();
                Some(snapshot.expect("the view's part with this id was made by this engine"))
            }
        }
    }
}

/// Cursor over the committed entries of a range.
struct Committed<'a> {
    iterator: DBRawIterator<'a>,
    direction: Direction,
}

impl BaseScan<'_> for Committed<'_> {
    fn current(&self) -> Result<Option<(&[u8], &[u8])>, EngineError> {
        match self.iterator.item() {
            Some(entry) => Ok(Some(entry)),
            None => self.iterator.status().map(|()| None).map_err(io_error),
        }
    }

    fn advance(&mut self) {
        match self.direction {
            Direction::Forward => self.iterator.next(),
            Direction::Backward => self.iterator.prev(),
        }
    }
}

impl EngineTrx for RocksTrx {
    fn get(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        value.clear();
        with_full_key(index, key, |full| {
            if !self.writes.is_empty()
                && let Some(own) = self.writes.get(full)
            {
                value.extend_from_slice(own.unwrap_or(&[]));
                return Ok(own.is_some());
            }
            let options = self.snapshot(at).map_or(&*self.latest, RocksSnapshot::options);
            let found = self.db.get_pinned_opt(full, options).map_err(io_error)?;
            if let Some(bytes) = &found {
                value.extend_from_slice(bytes);
            }
            Ok(found.is_some())
        })
    }

    fn scan(&self, request: &ScanRequest<'_>, batch: &mut Batch) -> Result<bool, EngineError> {
        let &ScanRequest { at, index, range, direction, limit } = request;
        let (start, end) = full_range(index, range);
        if start >= end {
            return Ok(false);
        }
        let mut options = ReadOptions::default();
        if let Some(snapshot) = self.snapshot(at) {
            snapshot.apply(&mut options);
        }
        options.set_iterate_lower_bound(start.clone());
        options.set_iterate_upper_bound(end.clone());
        let mut iterator = self.db.raw_iterator_opt(options);
        match direction {
            Direction::Forward => iterator.seek(&start),
            Direction::Backward => iterator.seek_to_last(),
        }
        let mut base = Committed { iterator, direction };
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
        Ok(redo::build(self.writes.iter(), self.writes.size_bytes()))
    }
}
