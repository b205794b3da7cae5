//! Range scans and point reads: the entries that a horizon sees.
//!
//! A scan latches a leaf only while it copies the leaf's entries, then continues at the leaf's fence. It also
//! releases the leaf after a few reads of the undo file, and to expand a compressed overflow value. A scan at
//! `Latest` may therefore see different states of different leaves, while a scan at a view sees one state.
//!
//! A scan ends early when its batch holds [`BATCH_BYTES_MAX`] bytes, and after [`IDLE_LEAVES_MAX`] leaves
//! without a visible entry, so that a session stays responsive to KILL in a long range of deleted rows. The
//! caller continues from there.

use std::cell::RefCell;
use std::ops::Range;

use cohort_base::IndexId;
use cohort_engine::{BaseScan, Batch, Direction, EngineError, INDEX_ID_BYTES, KeyRange};

use crate::inner::Inner;
use crate::leaf_hint::LeafHint;
use crate::page::Page;
use crate::pool::Touch;
use crate::tree::{AHEAD_LEAVES, Side};
use crate::value::Stored;
use crate::version::{Horizon, Shown};

/// Size at which a batch is full.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Maximum number of consecutive leaves without a visible entry.
const IDLE_LEAVES_MAX: usize = 64;
/// Reads of the undo file after which the leaf is released, because writers may wait for it.
const UNDO_READS_MAX: u64 = 16;
/// Prefetch distance in entries. Neighbouring entries are not adjacent in memory, and a page is rarely in the
/// processor's caches.
const ENTRIES_AHEAD: usize = 4;
/// Number of leaves after which a call counts as a long scan.
const LONG_LEAVES: usize = 4;

/// Parameters of a scan. The keys do not contain the index.
#[derive(Clone, Copy)]
pub struct Asked<'k> {
    pub index: IndexId,
    pub horizon: Horizon,
    pub direction: Direction,
    pub start: &'k [u8],
    pub end: Option<&'k [u8]>,
}

/// Destination of a scan's entries.
struct Sink<'b> {
    batch: &'b mut Batch,
    /// Bytes to prepend to each key.
    prefix: &'b [u8],
    full: usize,
    full_bytes: usize,
    /// The next entry. Its value is expanded after the leaf is released.
    unexpanded: Option<(Vec<u8>, Stored)>,
}

/// Result of processing an entry.
enum Pushed {
    /// The current version was added or skipped.
    Present,
    /// An older version from the undo was added or skipped.
    Old,
    /// The entry was added and filled the batch.
    Full,
    /// The entry was not added yet, because its value is compressed.
    Unexpanded,
}

/// Progress of the scan in a leaf.
enum LeafScan {
    /// The range or the limit is reached.
    Over,
    /// The end of the leaf is reached.
    Through,
    /// The scan stopped at this key.
    UpTo(Vec<u8>),
}

impl Sink<'_> {
    #[inline]
    fn is_full(&self) -> bool {
        self.batch.len() >= self.full || self.batch.size_bytes() >= self.full_bytes
    }
}

impl Inner {
    /// Appends up to `limit` visible entries to `batch`, with `prefix` prepended to each key. Returns true if
    /// the range may hold more.
    pub fn scan(
        &self,
        asked: Asked<'_>,
        limit: usize,
        prefix: &[u8],
        batch: &mut Batch,
    ) -> Result<bool, EngineError> {
        self.scan_with_hint(asked, limit, prefix, batch, None)
    }

    /// Like [`Inner::scan`], with a search hint.
    pub fn scan_with_hint(
        &self,
        asked: Asked<'_>,
        limit: usize,
        prefix: &[u8],
        batch: &mut Batch,
        mut hint: Option<&mut LeafHint>,
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
            if is_long && leaves % AHEAD_LEAVES == LONG_LEAVES && self.context.pool.has_readers() {
                tree.read_ahead(&self.context, &side)?;
            }
            leaves += 1;
            let touch = if is_long { Touch::Once } else { Touch::Usual };
            let frame = match (&side, hint.as_deref_mut()) {
                (Side::Covering(key), Some(hint)) => hint.leaf(&tree, &self.context, key, touch)?,
                _ => tree.leaf_touched(&self.context, &side, touch)?,
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
                            let mut up_to = page.key(n);
                            up_to.push(0);
                            return Ok(LeafScan::UpTo(up_to));
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

    /// Appends an entry whose stored value is known to be visible, as for most entries. Returns false if the
    /// entry needs a closer check.
    #[inline]
    fn push_straight(&self, page: &Page, n: usize, horizon: Horizon, sink: &mut Sink<'_>) -> bool {
        let Some(straight) = page.straight(n).filter(|_| sink.prefix.is_empty()) else { return false };
        if straight.trx.is_some_and(|trx| !self.versions.is_seen(horizon, trx)) {
            return false;
        }
        sink.batch.push_joined(page.prefix(), straight.entry, straight.suffix_len);
        true
    }

    /// Appends entries until one is not [`Straight`](crate::page::Straight) or may not be visible, or until
    /// the batch is full. Returns the number of appended entries.
    #[inline]
    fn push_run(&self, page: &Page, entries: Range<usize>, horizon: Horizon, sink: &mut Sink<'_>) -> usize {
        if !sink.prefix.is_empty() {
            return 0;
        }
        let from = sink.batch.len();
        let prefix = page.prefix();
        // Neighbouring entries were usually written by the same transaction.
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

    /// Appends the version of an entry that the horizon sees.
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

    /// Reads one key at the horizon into `out`, optionally with a search hint. Returns false if the key does
    /// not exist.
    pub fn get(
        &self,
        index: IndexId,
        horizon: Horizon,
        key: &[u8],
        out: &mut Vec<u8>,
        hint: Option<&mut LeafHint>,
    ) -> Result<bool, EngineError> {
        let Some(tree) = self.tree(index) else { return Ok(false) };
        let frame = match hint {
            Some(hint) => hint.leaf(&tree, &self.context, key, Touch::Usual)?,
            None => tree.leaf(&self.context, &Side::Covering(key))?,
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
        // The leaf stays latched, so that the value is not freed meanwhile at `Latest`.
        let stored = Stored::read(&self.store, value)?;
        drop(frame);
        stored.expand_into(&self.store, out)?;
        Ok(true)
    }
}

/// Number of entries that are read at a time for a scan that is merged with a transaction's own writes.
const AHEAD: usize = 64;

/// The engine's entries for a merged scan.
pub struct Merged<'e> {
    inner: &'e Inner,
    asked: Asked<'e>,
    prefix: [u8; INDEX_ID_BYTES],
    batch: Batch,
    at: usize,
    has_more: bool,
    /// Full key at which a scan without an entry stopped early.
    stop: Option<Vec<u8>>,
    /// Error of the last read. Returned by the next call of `current`.
    failed: RefCell<Option<EngineError>>,
}

impl<'e> Merged<'e> {
    /// Positions the cursor at the first entry.
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
