//! Transactions: private writes until they are installed, and the token of the installation.
//!
//! A large transaction installs *parts* while it is active (`install_part`). Its reads see them because their
//! horizon includes its own record, and a later part writes over an earlier one (`install.rs`). All parts
//! share one record, so committing them is one store, and so is dropping them. Their redo is written to
//! files.

use std::any::Any;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::{
    Batch, EachWrite, EngineError, EngineTrx, Installed, MultiGet, ReadAt, Redo, RedoFiles, RedoSpool,
    Savepoint, ScanRequest, SearchHint, WriteSet, full_key, full_range, with_full_key,
};

use crate::inner::Inner;
use crate::install::Install;
use crate::leaf_hint::LeafHint;
use crate::redo;
use crate::scan::{Asked, Merged};
use crate::trx_record::{TrxRecord, TrxState};
use crate::version::Horizon;
use crate::views::View;

/// Redo is written to a file in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;
/// A savepoint has the number of the part above this bit, and the savepoint of the write set below.
const PART_SHIFT: u32 = 40;

/// Callback that receives a full key, its value, and the installation, which may hold a leaf until it is
/// paused.
type EachInstalled<'e> = dyn FnMut(&[u8], Option<&[u8]>, &mut Install<'_>) -> Result<(), EngineError> + 'e;

/// Installed writes of one transaction. Dropping it before it is ordered aborts the transaction, with one
/// store.
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

/// The parts that an active transaction has installed.
struct Parts {
    installation: Installation,
    redo: RedoSpool,
    /// Number of parts.
    count: usize,
    /// The last part is completely installed, and its redo is written.
    is_whole: bool,
}

/// An active transaction.
pub struct BtreeTrx {
    inner: Arc<Inner>,
    writes: WriteSet,
    parts: Option<Box<Parts>>,
    key: Vec<u8>,
}

impl BtreeTrx {
    /// Creates a transaction without writes.
    pub fn new(inner: Arc<Inner>) -> BtreeTrx {
        BtreeTrx { inner, writes: WriteSet::default(), parts: None, key: Vec::new() }
    }

    fn horizon(&self, at: ReadAt<'_>) -> Horizon {
        let horizon = match at {
            ReadAt::Latest => Horizon::LATEST,
            ReadAt::View(view) => {
                let view = view.of(self.inner.id).as_any().downcast_ref::<View>();
                Horizon::at(view.expect("the view's part with this id was made by this engine").seq())
            }
        };
        match &self.parts {
            Some(parts) => horizon.with_own(parts.installation.record.number()),
            None => horizon,
        }
    }

    fn get_at(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
        hint: Option<&mut LeafHint>,
    ) -> Result<bool, EngineError> {
        value.clear();
        if !self.writes.is_empty() {
            let own = with_full_key(index, key, |full| self.writes.get(full));
            if let Some(own) = own {
                value.extend_from_slice(own.unwrap_or(&[]));
                return Ok(own.is_some());
            }
        }
        self.inner.get(index, self.horizon(at), key, value, hint)
    }

    fn scan_at(
        &self,
        request: &ScanRequest<'_>,
        batch: &mut Batch,
        hint: Option<&mut LeafHint>,
    ) -> Result<bool, EngineError> {
        let &ScanRequest { at, index, range, direction, limit } = request;
        let asked = Asked {
            index,
            horizon: self.horizon(at),
            direction,
            start: range.start.as_deref().unwrap_or(&[]),
            end: range.end.as_deref(),
        };
        if self.writes.is_empty() {
            return self.inner.scan_with_hint(asked, limit, &[], batch, hint);
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

    fn parts_count(&self) -> usize {
        self.parts.as_ref().map_or(0, |parts| parts.count)
    }
}

/// Installs the writes and passes each to `each`. A write is freed once it is installed, so that a large
/// transaction uses its memory once and not twice.
fn install(
    inner: &Inner,
    writes: &mut WriteSet,
    record: &TrxRecord,
    each: &mut EachInstalled<'_>,
) -> Result<(), EngineError> {
    let mut install = inner.install(record);
    writes.drain(&mut |key, value| {
        each(key, value, &mut install)?;
        install.write(key, value)
    })
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

    fn get_with_hint(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
        hint: &mut SearchHint,
    ) -> Result<bool, EngineError> {
        self.get_at(at, index, key, value, hint.place())
    }

    fn get_many(
        &self,
        at: ReadAt<'_>,
        looks: &mut MultiGet<'_>,
        hint: &mut SearchHint,
    ) -> Result<usize, EngineError> {
        let index = looks.index;
        match (self.writes.is_empty(), hint.place()) {
            (true, Some(hint)) => self.inner.get_many(self.horizon(at), looks, hint),
            _ => looks.one_by_one(&mut |key, value| self.get_with_hint(at, index, key, value, hint)),
        }
    }

    fn scan(&self, request: &ScanRequest<'_>, batch: &mut Batch) -> Result<bool, EngineError> {
        self.scan_at(request, batch, None)
    }

    fn scan_with_hint(
        &self,
        request: &ScanRequest<'_>,
        batch: &mut Batch,
        hint: &mut SearchHint,
    ) -> Result<bool, EngineError> {
        self.scan_at(request, batch, hint.place())
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
        Savepoint((self.parts_count() << PART_SHIFT) | self.writes.savepoint().0)
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        assert_eq!(savepoint.0 >> PART_SHIFT, self.parts_count(), "a part makes savepoints void");
        self.writes.rollback_to(Savepoint(savepoint.0 & ((1 << PART_SHIFT) - 1)));
    }

    fn is_read_only(&self) -> bool {
        self.writes.is_empty() && self.parts.is_none()
    }

    fn memory_bytes(&self) -> usize {
        self.writes.memory_bytes()
    }

    fn each_write(&self, each: &mut EachWrite<'_>) -> ControlFlow<()> {
        assert!(self.parts.is_none(), "what is in place is not shown");
        self.writes.each(each)
    }

    fn installs_parts(&self) -> bool {
        true
    }

    fn install_part(&mut self, files: &dyn RedoFiles) -> Result<(), EngineError> {
        let is_whole = self.parts.as_ref().is_none_or(|parts| parts.is_whole);
        if self.writes.is_empty() && is_whole {
            return Ok(());
        }
        let inner = &self.inner;
        let parts = self.parts.get_or_insert_with(|| {
            let installation = Installation { record: inner.versions.begin() };
            Box::new(Parts { installation, redo: RedoSpool::default(), count: 0, is_whole: true })
        });
        if !parts.is_whole {
            return Err(EngineError::Io(io::Error::other(
                "an earlier part of the transaction was not written",
            )));
        }
        parts.count += 1;
        parts.is_whole = false;
        let Parts { installation, redo, is_whole, .. } = &mut **parts;
        redo.piece.reserve(PIECE_BYTES);
        install(inner, &mut self.writes, &installation.record, &mut |key, value, install| {
            redo::push(key, value, &mut redo.piece);
            if redo.piece.len() < PIECE_BYTES {
                return Ok(());
            }
            // Pause, so that the write to the file blocks no reader of the leaf.
            install.pause();
            redo.write(files).map_err(EngineError::Io)
        })?;
        if !redo.piece.is_empty() {
            redo.write(files).map_err(EngineError::Io)?;
        }
        redo.piece = Vec::new();
        *is_whole = true;
        self.inner.versions.spill_part(&installation.record)
    }

    fn prepare(&mut self) -> Result<Redo, EngineError> {
        assert!(self.parts.is_none(), "the redo of parts is in files");
        let mut bytes = redo::with_room(self.writes.len(), self.writes.size_bytes());
        let installation = Installation { record: self.inner.versions.begin() };
        install(&self.inner, &mut self.writes, &installation.record, &mut |key, value, _| {
            redo::push(key, value, &mut bytes);
            Ok(())
        })?;
        Ok(Redo::installed(bytes, Arc::new(installation)))
    }

    fn prepare_into(&mut self, files: &dyn RedoFiles, redo: &mut Vec<Redo>) -> Result<(), EngineError> {
        let bytes = redo::bytes_of(self.writes.len(), self.writes.size_bytes());
        if self.parts.is_none() && bytes <= files.inline_bytes_max() {
            redo.push(self.prepare()?);
            return Ok(());
        }
        self.install_part(files)?;
        let Parts { installation, redo: of_parts, .. } = *self.parts.take().expect("something was written");
        let mut files = of_parts.finish().map_err(EngineError::Io)?;
        let last = files.pop().expect("writes have redo");
        redo.extend(files.into_iter().map(|file| Redo::in_file(file, None)));
        redo.push(Redo::in_file(last, Some(Arc::new(installation))));
        Ok(())
    }
}
