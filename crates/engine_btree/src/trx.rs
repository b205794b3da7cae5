//! A transaction: private writes until they are installed, and the token of the installation.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::{
    Batch, Direction, EachWrite, EngineError, EngineTrx, Installed, KeyRange, Looks, Near, ReadAt, Redo,
    RedoFiles, Savepoint, WriteSet, full_key, full_range, with_full_key,
};

use crate::engine::View;
use crate::inner::Inner;
use crate::install::Install;
use crate::near::NearLeaf;
use crate::redo;
use crate::scan::{Asked, Merged};
use crate::version::{Horizon, TrxRecord, TrxState};

/// Redo goes into a file in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;

/// Gets a full key and its value, and the installation, which holds a leaf until it pauses.
type EachInstalled<'e> = dyn FnMut(&[u8], Option<&[u8]>, &mut Install<'_>) -> Result<(), EngineError> + 'e;

/// Writes of one transaction that stand in the leaves. Dropped before it is ordered, it aborts: a store.
pub struct Installation {
    pub record: Arc<TrxRecord>,
}

impl Installed for Installation {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        if self.record.state() == TrxState::Installed {
            self.record.abort();
        }
    }
}

/// A transaction that is active.
pub struct BtreeTrx {
    inner: Arc<Inner>,
    writes: WriteSet,
    key: Vec<u8>,
}

impl BtreeTrx {
    /// Nothing is written yet.
    pub fn new(inner: Arc<Inner>) -> BtreeTrx {
        BtreeTrx { inner, writes: WriteSet::default(), key: Vec::new() }
    }

    fn horizon(&self, at: ReadAt<'_>) -> Horizon {
        match at {
            ReadAt::Latest => Horizon::Latest,
            ReadAt::View(view) => {
                let view = view.of(self.inner.id).as_any().downcast_ref::<View>();
                Horizon::At(view.expect("the view's part with this id was made by this engine").seq())
            }
        }
    }

    fn get_at(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
        near: Option<&mut NearLeaf>,
    ) -> Result<bool, EngineError> {
        value.clear();
        if !self.writes.is_empty() {
            let own = with_full_key(index, key, |full| self.writes.get(full));
            if let Some(own) = own {
                value.extend_from_slice(own.unwrap_or(&[]));
                return Ok(own.is_some());
            }
        }
        self.inner.get(index, self.horizon(at), key, value, near)
    }

    fn scan_at(
        &self,
        (at, index, range): (ReadAt<'_>, IndexId, &KeyRange),
        direction: Direction,
        limit: usize,
        batch: &mut Batch,
        near: Option<&mut NearLeaf>,
    ) -> Result<bool, EngineError> {
        let asked = Asked {
            index,
            horizon: self.horizon(at),
            direction,
            start: range.start.as_deref().unwrap_or(&[]),
            end: range.end.as_deref(),
        };
        if self.writes.is_empty() {
            return self.inner.scan_near(asked, limit, &[], batch, near);
        }
        let (start, end) = full_range(index, range);
        if start >= end {
            return Ok(false);
        }
        self.writes.merge_scan((&start, &end), direction, limit, &mut Merged::new(&self.inner, asked), batch)
    }

    fn write(&mut self, index: IndexId, key: &[u8], value: Option<&[u8]>) {
        full_key(index, key, &mut self.key);
        self.writes.write(&self.key, value);
    }

    /// Puts the writes in place and shows each to `each`. A write is freed once it is in place, so a large
    /// transaction is in memory once and not twice. An error drops the installation, which aborts what is in
    /// place.
    fn install(&mut self, each: &mut EachInstalled<'_>) -> Result<Installation, EngineError> {
        let installation = Installation { record: self.inner.versions.begin() };
        let mut install = self.inner.install(&installation.record);
        self.writes.drain(&mut |key, value| {
            each(key, value, &mut install)?;
            install.write(key, value)
        })?;
        drop(install);
        Ok(installation)
    }
}

impl EngineTrx for BtreeTrx {
    fn get(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        self.get_at(at, index, key, value, None)
    }

    fn get_near(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
        near: &mut Near,
    ) -> Result<bool, EngineError> {
        self.get_at(at, index, key, value, near.place())
    }

    fn get_many(&self, at: ReadAt<'_>, looks: &mut Looks<'_>, near: &mut Near) -> Result<usize, EngineError> {
        let index = looks.index;
        match (self.writes.is_empty(), near.place()) {
            (true, Some(near)) => self.inner.get_many(self.horizon(at), looks, near),
            _ => looks.one_by_one(&mut |key, value| self.get_near(at, index, key, value, near)),
        }
    }

    fn scan(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut Batch,
    ) -> Result<bool, EngineError> {
        self.scan_at((at, index, range), direction, limit, batch, None)
    }

    fn scan_near(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut Batch,
        near: &mut Near,
    ) -> Result<bool, EngineError> {
        self.scan_at((at, index, range), direction, limit, batch, near.place())
    }

    fn put(&mut self, index: IndexId, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.write(index, key, Some(value));
        Ok(())
    }

    fn delete(&mut self, index: IndexId, key: &[u8]) -> Result<(), EngineError> {
        self.write(index, key, None);
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
        let mut bytes = redo::with_room(self.writes.len(), self.writes.size_bytes());
        let installation = self.install(&mut |key, value, _| {
            redo::push(key, value, &mut bytes);
            Ok(())
        })?;
        Ok(Redo::installed(bytes, Arc::new(installation)))
    }

    fn prepares_in_parts(&self) -> bool {
        true
    }

    fn prepare_into(&mut self, files: &dyn RedoFiles) -> Result<Redo, EngineError> {
        if redo::bytes_of(self.writes.len(), self.writes.size_bytes()) <= files.inline_bytes_max() {
            return self.prepare();
        }
        let mut file = files.create().map_err(EngineError::Io)?;
        let mut piece = Vec::with_capacity(PIECE_BYTES * 2);
        let installation = self.install(&mut |key, value, install| {
            redo::push(key, value, &mut piece);
            if piece.len() < PIECE_BYTES {
                return Ok(());
            }
            // Nobody is held up by the write.
            install.pause();
            let written = file.write(&piece);
            piece.clear();
            written.map_err(EngineError::Io)
        })?;
        file.write(&piece).map_err(EngineError::Io)?;
        let file = file.finish().map_err(EngineError::Io)?;
        Ok(Redo::installed_in_file(file, Arc::new(installation)))
    }
}
