//! Ranges: the entries that a horizon shows, leaf by leaf.
//!
//! A leaf is latched while its entries are copied, and no longer; the scan goes on from the leaf's fence.
//! When old versions have to be read from the undo file, it lets the leaf go between a few and the next ones,
//! and to expand a long value that is compressed.
//! So a scan at `Latest` may see different states of different leaves, and one at a view sees one state. A
//! scan ends early when its batch holds [`BATCH_BYTES_MAX`], and after [`IDLE_LEAVES_MAX`] leaves without an
//! entry to show, so that nobody is deaf to KILL on a run of deleted rows: the caller goes on from there.

use std::cell::RefCell;
use std::ops::Range;

use cohort_base::IndexId;
use cohort_engine::{BaseScan, Batch, Direction, EngineError, INDEX_ID_BYTES, KeyRange};

use crate::inner::Inner;
use crate::near::NearLeaf;
use crate::page::Page;
use crate::pool::Touch;
use crate::tree::{AHEAD_LEAVES, Side};
use crate::value::Stored;
use crate::version::{Horizon, Shown};

/// A batch gets no further entry beyond this many bytes.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Leaves without a visible entry that a scan passes at once.
const IDLE_LEAVES_MAX: usize = 64;
/// Reads of the undo file, after which the leaf is let go: writers wait for it.
const UNDO_READS_MAX: u64 = 16;
/// So far ahead of the entry that is copied others are asked for. Two entries are not near in memory, and a
/// page is seldom in the processor's caches.
const ENTRIES_AHEAD: usize = 4;
/// A call that has come over so many leaves is part of a long scan.
const LONG_LEAVES: usize = 4;

/// What a scan asks for; keys without the index.
#[derive(Clone, Copy)]
pub struct Asked<'k> {
    pub index: IndexId,
    pub horizon: Horizon,
    pub direction: Direction,
    pub start: &'k [u8],
    pub end: Option<&'k [u8]>,
}

/// Entries that a scan appends.
struct Sink<'b> {
    batch: &'b mut Batch,
    /// Put before each key.
    prefix: &'b [u8],
    full: usize,
    full_bytes: usize,
    /// The next entry, whose value is expanded when the leaf is let go.
    unexpanded: Option<(Vec<u8>, Stored)>,
}

/// What has become of an entry: added or passed.
enum Pushed {
    /// By what stands in the leaf.
    Present,
    /// By its undo.
    Old,
    /// The batch is full with it.
    Full,
    /// Not yet: its value is compressed.
    Unexpanded,
}

/// How far the scan of a leaf has come.
enum LeafScan {
    /// The range or the limit is reached.
    Over,
    /// To the end of the leaf.
    Through,
    /// To this key.
    UpTo(Vec<u8>),
}

impl Sink<'_> {
    #[inline]
    fn is_full(&self) -> bool {
        self.batch.len() >= self.full || self.batch.size_bytes() >= self.full_bytes
    }
}

impl Inner {
    /// Appends up to `limit` visible entries to `batch`, each key behind `prefix`. True: the range may hold
    /// more.
    pub fn scan(
        &self,
        asked: Asked<'_>,
        limit: usize,
        prefix: &[u8],
        batch: &mut Batch,
    ) -> Result<bool, EngineError> {
        self.scan_near(asked, limit, prefix, batch, None)
    }

    /// The same for a reader that keeps its place.
    pub fn scan_near(
        &self,
        asked: Asked<'_>,
        limit: usize,
        prefix: &[u8],
        batch: &mut Batch,
        mut near: Option<&mut NearLeaf>,
    ) -> Result<bool, EngineError> {
        batch.begin();
        let is_empty = asked.end.is_some_and(|end| end <= asked.start);
        let Some(tree) = self.tree(asked.index).filter(|_| !is_empty && limit > 0) else {
            return Ok(limit == 0 && !is_empty);
        };
        let before = batch.len();
        let (full, full_bytes) = (before + limit, batch.size_bytes() + BATCH_BYTES_MAX);
        let (mut idle_leaves, mut leaves) = (0, 0);
        let mut sink = Sink { batch, prefix, full, full_bytes, unexpanded: None };
        let mut fence: Option<Vec<u8>> = match asked.direction {
            Direction::Forward => Some(asked.start.to_vec()),
            Direction::Backward => asked.end.map(<[u8]>::to_vec),
        };
        loop {
            let side = match asked.direction {
                Direction::Forward => Side::Covering(fence.as_deref().expect("a forward scan has a place")),
                Direction::Backward => Side::Below(fence.as_deref()),
            };
            let is_long = leaves >= LONG_LEAVES;
            if is_long && leaves % AHEAD_LEAVES == LONG_LEAVES && self.ground.pool.has_readers() {
                tree.read_ahead(&self.ground, &side)?;
            }
            leaves += 1;
            let touch = if is_long { Touch::Once } else { Touch::Usual };
            let frame = match (&side, near.as_deref_mut()) {
                (Side::Covering(key), Some(near)) => near.leaf(&tree, &self.ground, key, touch)?,
                _ => tree.leaf_touched(&self.ground, &side, touch)?,
            };
            let page = frame.page();
            let found = sink.batch.len();
            match self.scan_leaf(page, asked, fence.as_deref(), &mut sink)? {
                LeafScan::Over => return Ok(sink.is_full()),
                LeafScan::Through => {}
                LeafScan::UpTo(key) => {
                    fence = Some(key);
                    drop(frame);
                    if let Some((key, stored)) = sink.unexpanded.take() {
                        let mut value = Vec::new();
                        stored.expand_into(&self.store, &mut value)?;
                        sink.batch.push(&key, &value);
                        if sink.is_full() {
                            return Ok(true);
                        }
                    }
                    continue;
                }
            }
            let next = match asked.direction {
                Direction::Forward => page.high().filter(|high| asked.end.is_none_or(|end| *high < end)),
                Direction::Backward => Some(page.low()).filter(|low| *low > asked.start),
            };
            let Some(next) = next else { return Ok(false) };
            idle_leaves = if sink.batch.len() == found { idle_leaves + 1 } else { 0 };
            if idle_leaves == IDLE_LEAVES_MAX {
                if found == before {
                    sink.batch.stop_at(next);
                }
                return Ok(true);
            }
            fence = Some(next.to_vec());
        }
    }

    fn scan_leaf(
        &self,
        page: &Page,
        asked: Asked<'_>,
        fence: Option<&[u8]>,
        sink: &mut Sink<'_>,
    ) -> Result<LeafScan, EngineError> {
        let place = |key: &[u8]| page.find(key).unwrap_or_else(|n| n);
        let len = page.len();
        let reads_max = self.versions.spilled_reads() + UNDO_READS_MAX;
        match asked.direction {
            Direction::Forward => {
                let from = fence.map_or(0, place);
                let is_last = asked.end.filter(|end| page.high().is_none_or(|high| *end <= high));
                let to = is_last.map_or(len, place);
                let mut n = from;
                while n < to {
                    n += self.push_run(page, n..to, asked.horizon, sink);
                    if sink.is_full() {
                        return Ok(LeafScan::Over);
                    }
                    if n == to {
                        break;
                    }
                    match self.push_shown(page, n, asked.horizon, sink)? {
                        Pushed::Full => return Ok(LeafScan::Over),
                        Pushed::Old if self.versions.spilled_reads() < reads_max => {}
                        Pushed::Old | Pushed::Unexpanded => {
                            let mut behind = page.key(n);
                            behind.push(0);
                            return Ok(LeafScan::UpTo(behind));
                        }
                        Pushed::Present => {}
                    }
                    n += 1;
                }
                Ok(if is_last.is_some() { LeafScan::Over } else { LeafScan::Through })
            }
            Direction::Backward => {
                let to = fence.map_or(len, place);
                let is_last = asked.start >= page.low();
                let from = if is_last { place(asked.start) } else { 0 };
                for n in (from..to).rev() {
                    page.prefetch(n.wrapping_sub(ENTRIES_AHEAD));
                    match self.push_visible(page, n, asked.horizon, sink)? {
                        Pushed::Full => return Ok(LeafScan::Over),
                        Pushed::Old if self.versions.spilled_reads() < reads_max => {}
                        Pushed::Old | Pushed::Unexpanded => return Ok(LeafScan::UpTo(page.key(n))),
                        Pushed::Present => {}
                    }
                }
                Ok(if is_last { LeafScan::Over } else { LeafScan::Through })
            }
        }
    }

    /// Adds an entry that is known to be seen as it stands, which most are; false: it may be another.
    #[inline]
    fn push_straight(&self, page: &Page, n: usize, horizon: Horizon, sink: &mut Sink<'_>) -> bool {
        let Some(straight) = page.straight(n).filter(|_| sink.prefix.is_empty()) else { return false };
        if straight.trx.is_some_and(|trx| !self.versions.is_seen(horizon, trx)) {
            return false;
        }
        sink.batch.push_joined(page.prefix(), straight.entry, straight.suffix_len);
        true
    }

    /// Adds entries up to one that is not straight, or that somebody may see otherwise, or until the batch is
    /// full. Yields how many.
    #[inline]
    fn push_run(&self, page: &Page, entries: Range<usize>, horizon: Horizon, sink: &mut Sink<'_>) -> usize {
        if !sink.prefix.is_empty() {
            return 0;
        }
        let from = sink.batch.len();
        let prefix = page.prefix();
        // Most neighbours were written by one transaction.
        let mut seen = None;
        for straight in page.straights(entries, ENTRIES_AHEAD) {
            let Some(straight) = straight else { break };
            if straight.trx != seen
                && let Some(trx) = straight.trx
            {
                if !self.versions.is_seen(horizon, trx) {
                    break;
                }
                seen = straight.trx;
            }
            sink.batch.push_joined(prefix, straight.entry, straight.suffix_len);
            if sink.is_full() {
                break;
            }
        }
        sink.batch.len() - from
    }

    #[inline]
    fn push_visible(
        &self,
        page: &Page,
        n: usize,
        horizon: Horizon,
        sink: &mut Sink<'_>,
    ) -> Result<Pushed, EngineError> {
        if self.push_straight(page, n, horizon, sink) {
            return Ok(if sink.is_full() { Pushed::Full } else { Pushed::Present });
        }
        self.push_shown(page, n, horizon, sink)
    }

    /// Adds what an entry shows at the horizon.
    #[inline(never)]
    fn push_shown(
        &self,
        page: &Page,
        n: usize,
        horizon: Horizon,
        sink: &mut Sink<'_>,
    ) -> Result<Pushed, EngineError> {
        let key = [sink.prefix, page.prefix(), page.suffix(n)];
        let entry = page.entry(n);
        let shown = self.versions.resolve(horizon, entry.version)?;
        let pushed = if matches!(shown, Shown::Older(_)) { Pushed::Old } else { Pushed::Present };
        match shown {
            Shown::Entry if entry.is_deleted => return Ok(pushed),
            Shown::Entry if !entry.is_overflow => sink.batch.push_parts(key, entry.value),
            Shown::Entry => return self.push_long(key, entry.value, pushed, sink),
            Shown::Older(undo) => match undo.value {
                None => return Ok(pushed),
                Some(value) if value.is_overflow => return self.push_long(key, &value.bytes, pushed, sink),
                Some(value) => sink.batch.push_parts(key, &value.bytes),
            },
        }
        Ok(if sink.is_full() { Pushed::Full } else { pushed })
    }

    fn push_long(
        &self,
        key: [&[u8]; 3],
        name: &[u8],
        pushed: Pushed,
        sink: &mut Sink<'_>,
    ) -> Result<Pushed, EngineError> {
        let stored = Stored::read(&self.store, name)?;
        let Some(value) = stored.plain() else {
            sink.unexpanded = Some((key.concat(), stored));
            return Ok(Pushed::Unexpanded);
        };
        sink.batch.push_parts(key, value);
        Ok(if sink.is_full() { Pushed::Full } else { pushed })
    }

    /// Reads one key at the horizon into `out`, for a reader that may keep its place; false: it is not there.
    pub fn get(
        &self,
        index: IndexId,
        horizon: Horizon,
        key: &[u8],
        out: &mut Vec<u8>,
        near: Option<&mut NearLeaf>,
    ) -> Result<bool, EngineError> {
        let Some(tree) = self.tree(index) else { return Ok(false) };
        let frame = match near {
            Some(near) => near.leaf(&tree, &self.ground, key, Touch::Usual)?,
            None => tree.leaf(&self.ground, &Side::Covering(key))?,
        };
        let Ok(n) = frame.page().find(key) else { return Ok(false) };
        let entry = frame.page().entry(n);
        let older;
        let (value, is_overflow) = match self.versions.resolve(horizon, entry.version)? {
            Shown::Entry if entry.is_deleted => return Ok(false),
            Shown::Entry => (entry.value, entry.is_overflow),
            Shown::Older(undo) => {
                older = undo.value;
                let Some(value) = &older else { return Ok(false) };
                (&*value.bytes, value.is_overflow)
            }
        };
        if !is_overflow {
            out.extend_from_slice(value);
            return Ok(true);
        }
        // Under the latch, so that at `Latest` the value is not freed meanwhile.
        let stored = Stored::read(&self.store, value)?;
        drop(frame);
        stored.expand_into(&self.store, out)?;
        Ok(true)
    }
}

/// Entries read ahead for a scan that is merged with a transaction's own writes.
const AHEAD: usize = 64;

/// The engine's side of a merged scan.
pub struct Merged<'e> {
    inner: &'e Inner,
    asked: Asked<'e>,
    prefix: [u8; INDEX_ID_BYTES],
    batch: Batch,
    at: usize,
    has_more: bool,
    /// Full key at which a look without an entry stopped.
    stop: Option<Vec<u8>>,
    /// Told by the next look.
    failed: RefCell<Option<EngineError>>,
}

impl<'e> Merged<'e> {
    /// Stands at the first entry.
    pub fn new(inner: &'e Inner, asked: Asked<'e>) -> Merged<'e> {
        let prefix = asked.index.0.to_be_bytes();
        let mut merged = Merged {
            inner,
            asked,
            prefix,
            batch: Batch::default(),
            at: 0,
            has_more: false,
            stop: None,
            failed: RefCell::new(None),
        };
        merged.fill(asked);
        merged
    }

    fn fill(&mut self, asked: Asked<'_>) {
        self.batch.clear();
        self.at = 0;
        match self.inner.scan(asked, AHEAD, &self.prefix, &mut self.batch) {
            Ok(more) => {
                self.has_more = more;
                if more && self.batch.is_empty() {
                    let mut rest = KeyRange::default();
                    self.batch.cut(&mut rest, asked.direction);
                    let stop = rest.start.or(rest.end).expect("cut at one end");
                    self.stop = Some([&self.prefix[..], &stop].concat());
                }
            }
            Err(error) => {
                self.has_more = false;
                *self.failed.borrow_mut() = Some(error);
            }
        }
    }
}

impl BaseScan<'_> for Merged<'_> {
    fn current(&self) -> Result<Option<(&[u8], &[u8])>, EngineError> {
        if let Some(error) = self.failed.borrow_mut().take() {
            return Err(error);
        }
        Ok((self.at < self.batch.len()).then(|| self.batch.get(self.at)))
    }

    fn stopped_at(&self) -> Option<&[u8]> {
        self.stop.as_deref()
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.at < self.batch.len() || !self.has_more {
            return;
        }
        let last = self.batch.get(self.batch.len() - 1).0[INDEX_ID_BYTES..].to_vec();
        match self.asked.direction {
            Direction::Forward => {
                let mut start = last;
                start.push(0);
                self.fill(Asked { start: &start, ..self.asked });
            }
            Direction::Backward => self.fill(Asked { end: Some(&last), ..self.asked }),
        }
    }
}
