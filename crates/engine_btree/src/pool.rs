//! The buffer pool: pages in memory, each protected by a latch.
//!
//! # Concepts
//! - **Frame**: a page in memory and its state in the pool, protected by a readers-writer latch.
//! - **Resident**: a frame in the pool's table. A thread that holds the frame's `Arc` pins it: only unpinned
//!   frames are evicted.
//!
//! # Invariants
//! - A page id has at most one resident frame, so latching the frame is latching the page.
//! - A frame whose page changed since its newest image was written is evicted only after another image is
//!   written.
//!
//! # Replacement
//! CLOCK: each shard has its residents in a ring. For each miss of a full pool the hand passes some of them
//! and selects a frame that is unpinned and was not used since the hand last passed it. The pages of long
//! scans ([`Touch::Once`]) enter as unused and also in a probationary queue. Once this queue has its share of
//! the pool, its pages replace each other, so that a scan of a large table does not evict everything else.
//!
//! # Misses
//! If a fiber needs a page that is not in memory, [`Pool::try_shared`] and [`Pool::try_exclusive`] return a
//! [`Wait`]. The fiber releases its latches and waits while a reader thread reads the page (`reads.rs`).
//! Threads that are not fibers, and operations that change a tree's structure, read the page themselves.
//!
//! # Lock order
//! A frame's latch may be held while another page is fetched, but only from a page to its child in the same
//! tree. A shard's lock is never held during I/O or while waiting for a latch.
//!
//! # On failure
//! If a page cannot be read, no frame remains: the caller gets the error, and the next access tries again. If
//! a page cannot be written, it stays in memory.
//!
//! # Missing
//! A page with few long entries is larger than [`PAGE_BYTES`] but counts as one page.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use cohort_base::{AbortOnUnwind, EngineWork, IndexId};
use cohort_engine::{EngineError, PageContents, PageInMemory, WaitSlotOf};

use crate::frame::{Exclusive, Frame, Latch, Shared};
use crate::page::{PAGE_BYTES, Page, PageId};
use crate::reads::{Loading, ReadQueue, Request, Wait};
use crate::sound::Unsound;
use crate::store::Store;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, downgrade, latch_of, spawn};

const SHARDS: usize = 64;
/// Number of residents that the hand passes in one step.
const STEP: usize = 16;
/// Maximum number of residents that one miss examines for a victim.
const LOOKED_AT_MAX: usize = 256;
/// Number of residents of a shard that a listing copies at a time.
const LISTED_AT_ONCE: usize = 256;
/// Fraction of the pool (one in this number) that the probationary queue may use.
const ONCE_SHARE: usize = 16;
/// Number of residents of a shard that are checked after a change.
const CHECKED_RESIDENTS_MAX: usize = 32;
/// Minimum length of the probationary queue.
const ONCE_MIN: usize = 4;

/// Access pattern of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Normal: the page may be used again soon.
    Usual,
    /// A long scan, which does not use the page again.
    Once,
}

/// Result of a non-blocking page request.
pub enum Fetch<G> {
    Here(G),
    /// The page is being read. The caller releases its latches, waits, and starts again.
    Later(Wait),
}

struct Resident {
    id: PageId,
    latch: Latch,
    /// Used since the hand last passed.
    is_used: AtomicBool,
}

#[derive(Default)]
struct Shard {
    places: HashMap<PageId, usize, ahash::RandomState>,
    ring: Vec<Resident>,
    hand: usize,
    /// Pages that reader threads are reading.
    loading: HashMap<PageId, Arc<Loading>>,
}

impl Shard {
    fn get(&self, id: PageId) -> Option<&Resident> {
        self.places.get(&id).map(|place| &self.ring[*place])
    }

    /// Checks the invariants in builds with debug assertions, as far as there are few residents.
    fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        debug_assert_eq!(
            self.places.len(),
            self.ring.len(),
            "a resident is not found, or two frames are one page"
        );
        debug_assert!(
            self.loading.keys().all(|id| self.places.contains_key(id)),
            "a page is read into no frame: its waiters sleep on"
        );
        let some = self.ring.iter().enumerate().take(CHECKED_RESIDENTS_MAX);
        for (place, resident) in some {
            debug_assert_eq!(
                self.places.get(&resident.id),
                Some(&place),
                "a resident is listed at another place"
            );
        }
    }

    fn insert(&mut self, resident: Resident) {
        let other = self.places.insert(resident.id, self.ring.len());
        debug_assert!(other.is_none(), "a page has two frames: changes of one of them are lost");
        self.ring.push(resident);
        self.check_invariants();
    }

    fn remove(&mut self, id: PageId) -> bool {
        let Some(place) = self.places.remove(&id) else { return false };
        let gone = self.ring.swap_remove(place);
        debug_assert_eq!(gone.id, id, "another page than the requested one leaves the pool");
        if let Some(moved) = self.ring.get(place) {
            self.places.insert(moved.id, place);
        }
        self.check_invariants();
        true
    }

    /// Returns the page, latched, if it may be evicted.
    fn victim_by_id(&self, id: PageId) -> Option<Exclusive> {
        let resident = self.get(id)?;
        let is_unused = !resident.is_used.load(Ordering::Relaxed) && Arc::strong_count(&resident.latch) == 1;
        if is_unused { resident.latch.try_write_arc() } else { None }
    }

    /// Moves the clock hand over up to [`STEP`] residents until it finds one that may be evicted.
    fn victim(&mut self) -> Option<Exclusive> {
        for _ in 0..STEP.min(self.ring.len()) {
            self.hand = (self.hand + 1) % self.ring.len();
            let resident = &self.ring[self.hand];
            if !resident.is_used.swap(false, Ordering::Relaxed) && Arc::strong_count(&resident.latch) == 1 {
                // While the shard is locked, no other thread can reach the latch.
                return resident.latch.try_write_arc();
            }
        }
        None
    }
}

/// Result of a lookup in the pool.
enum Found {
    /// The page is resident.
    Latch(Latch),
    /// This call has just read the page.
    Read(Exclusive),
    /// A reader thread is reading the page.
    Later(Wait),
    /// Another thread was faster. The caller repeats the lookup.
    Nothing,
}

/// The buffer pool.
pub struct Pool {
    store: Arc<Store>,
    shards: Box<[Mutex<Shard>]>,
    /// `innodb_buffer_pool_size`
    bytes_max: AtomicUsize,
    pages: AtomicUsize,
    hand: AtomicUsize,
    /// The probationary queue: pages that long scans read, oldest first.
    once: Mutex<VecDeque<PageId>>,
    queue: Arc<ReadQueue>,
    /// Returns the caller's wait slot for page reads, or `None` if the caller reads the page itself.
    wait_slot_of: WaitSlotOf,
    /// Number of pages read from the file.
    pub reads: AtomicU64,
    /// Number of pages found in memory.
    pub hits: AtomicU64,
    /// Number of evicted pages.
    pub evictions: AtomicU64,
    /// Number of evicted pages that had to be written first.
    pub evictions_dirty: AtomicU64,
    /// Number of reads that a fiber waited for.
    pub sleeps: AtomicU64,
    /// Number of prefetched pages.
    pub ahead: AtomicU64,
    /// Number of new pages.
    pub created: AtomicU64,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Pool {
    /// Creates an empty pool of `bytes_max` bytes.
    pub fn new(store: Arc<Store>, bytes_max: usize, wait_slot_of: WaitSlotOf) -> Pool {
        Pool {
            store,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            bytes_max: AtomicUsize::new(bytes_max),
            pages: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            once: Mutex::default(),
            queue: Arc::default(),
            wait_slot_of,
            sleeps: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
            created: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            evictions_dirty: AtomicU64::new(0),
        }
    }

    /// Returns the error for a page that does not match its parent's entry.
    pub fn misplaced(&self, index: IndexId, id: PageId, what: Unsound) -> EngineError {
        self.store.misplaced(index, id, what)
    }

    /// Returns the maximum size in bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Applies `innodb_buffer_pool_size`. A smaller pool evicts unpinned pages now and the others at later
    /// misses.
    pub fn resize(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        // The hand passes each page twice: the first pass clears its mark of use.
        for _ in 0..2 * self.pages().div_ceil(STEP) {
            if !self.is_over() {
                return;
            }
            self.evict_some();
        }
    }

    /// Passes the residents to `look` until it breaks. No shard is locked during a call, and no latch is
    /// waited for.
    pub fn each_resident(&self, look: &mut dyn FnMut(PageInMemory) -> ControlFlow<()>) {
        let mut some = Vec::with_capacity(LISTED_AT_ONCE);
        for shard in &self.shards {
            let mut from = 0;
            loop {
                let ring = &shard.lock().ring;
                some.extend(ring.iter().skip(from).take(LISTED_AT_ONCE).map(|resident| {
                    let is_held = Arc::strong_count(&resident.latch) > 1;
                    (resident.id, resident.latch.clone(), resident.is_used.load(Ordering::Relaxed), is_held)
                }));
                if some.is_empty() {
                    break;
                }
                from += some.len();
                for (id, latch, is_used, is_held) in some.drain(..) {
                    let frame = latch.try_read_arc().filter(|frame| frame.has_page());
                    let contents = frame.as_ref().map(|frame| frame.page()).map(|page| PageContents {
                        index: page.index(),
                        entries: page.len() as u64,
                        bytes: page.used_bytes() as u64,
                    });
                    let is_changed = frame.as_ref().is_some_and(|frame| frame.is_changed);
                    let page = PageInMemory { number: id.0, is_changed, is_used, is_held, contents };
                    if look(page).is_break() {
                        return;
                    }
                }
            }
        }
    }

    fn shard(&self, id: PageId) -> &Mutex<Shard> {
        &self.shards[(id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize]
    }

    /// Latches a page in shared mode. Reads it first if it is not in memory.
    pub fn shared(&self, index: IndexId, id: PageId) -> Result<Shared, EngineError> {
        loop {
            if let Some(latch) = self.resident(id) {
                let frame = latch.read_arc();
                if frame.page.is_some() {
                    frame.check_is(index, id);
                    return Ok(frame);
                }
            } else if let Some(frame) = self.load(index, id)? {
                return Ok(downgrade(frame));
            }
        }
    }

    /// Latches a page exclusively. Reads it first if it is not in memory.
    pub fn exclusive(&self, index: IndexId, id: PageId) -> Result<Exclusive, EngineError> {
        loop {
            if let Some(latch) = self.resident(id) {
                let frame = latch.write_arc();
                if frame.page.is_some() {
                    frame.check_is(index, id);
                    return Ok(frame);
                }
            } else if let Some(frame) = self.load(index, id)? {
                return Ok(frame);
            }
        }
    }

    /// Latches a page in shared mode. Returns [`Fetch::Later`] if a reader thread has to read it first.
    pub fn try_shared(
        self: &Arc<Self>,
        index: IndexId,
        id: PageId,
        touch: Touch,
    ) -> Result<Fetch<Shared>, EngineError> {
        loop {
            match self.find(index, id, touch)? {
                Found::Latch(latch) => {
                    let frame = latch.read_arc();
                    if frame.page.is_some() {
                        frame.check_is(index, id);
                        return Ok(Fetch::Here(frame));
                    }
                }
                Found::Read(frame) => return Ok(Fetch::Here(downgrade(frame))),
                Found::Later(wait) => return Ok(Fetch::Later(wait)),
                Found::Nothing => {}
            }
        }
    }

    /// Latches a page exclusively. Returns [`Fetch::Later`] if a reader thread has to read it first.
    pub fn try_exclusive(
        self: &Arc<Self>,
        index: IndexId,
        id: PageId,
    ) -> Result<Fetch<Exclusive>, EngineError> {
        loop {
            match self.find(index, id, Touch::Usual)? {
                Found::Latch(latch) => {
                    let frame = latch.write_arc();
                    if frame.page.is_some() {
                        frame.check_is(index, id);
                        return Ok(Fetch::Here(frame));
                    }
                }
                Found::Read(frame) => return Ok(Fetch::Here(frame)),
                Found::Later(wait) => return Ok(Fetch::Later(wait)),
                Found::Nothing => {}
            }
        }
    }

    fn find(self: &Arc<Self>, index: IndexId, id: PageId, touch: Touch) -> Result<Found, EngineError> {
        {
            let shard = self.shard(id).lock();
            if let Some(resident) = shard.get(id) {
                if touch == Touch::Usual {
                    resident.is_used.store(true, Ordering::Relaxed);
                }
                let latch = resident.latch.clone();
                if !shard.loading.is_empty()
                    && let Some(loading) = shard.loading.get(&id).cloned()
                {
                    drop(shard);
                    return Ok(match (self.wait_slot_of)() {
                        Some(wait_slot) => Found::Later(Wait { loading, latch, wait_slot }),
                        None => Found::Latch(latch),
                    });
                }
                self.hits.fetch_add(1, Ordering::Relaxed);
                EngineWork::page_accessed();
                return Ok(Found::Latch(latch));
            }
        }
        let Some(wait_slot) = (self.wait_slot_of)() else {
            return Ok(self.load_as(index, id, touch)?.map_or(Found::Nothing, Found::Read));
        };
        let Some((mut frame, loading)) = self.enter_loading(id, touch) else { return Ok(Found::Nothing) };
        self.count_read();
        let start = Instant::now();
        match self.store.read_page_cached(index, id) {
            Ok(Some(page)) => {
                EngineWork::page_accessed();
                EngineWork::read_since(start);
                frame.page = Some(page);
                self.loaded(id, &loading, true);
                self.evict_some();
                return Ok(Found::Read(frame));
            }
            Err(error) => {
                self.loaded(id, &loading, false);
                return Err(error);
            }
            Ok(None) => {}
        }
        let latch = latch_of(&frame).clone();
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        self.ask(Request { index, id, frame, loading: loading.clone() });
        Ok(Found::Later(Wait { loading, latch, wait_slot }))
    }

    fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        EngineWork::page_read();
    }

    /// Makes a frame resident whose page is about to be read.
    fn enter_loading(&self, id: PageId, touch: Touch) -> Option<(Exclusive, Arc<Loading>)> {
        let latch = Arc::new(crate::sync::Latch::new(Frame::new(None)));
        let loading = Arc::new(Loading::default());
        let mut shard = self.shard(id).lock();
        if shard.get(id).is_some() {
            return None;
        }
        let frame = latch.write_arc();
        shard.insert(Resident { id, latch, is_used: AtomicBool::new(touch == Touch::Usual) });
        shard.loading.insert(id, loading.clone());
        drop(shard);
        self.pages.fetch_add(1, Ordering::Relaxed);
        if touch == Touch::Once {
            self.note_once(id);
        }
        Some((frame, loading))
    }

    fn note_once(&self, id: PageId) {
        let mut once = self.once.lock();
        once.push_back(id);
        if once.len() * PAGE_BYTES > self.bytes_max() + ONCE_MIN * PAGE_BYTES {
            once.pop_front();
        }
    }

    /// Completes the read of a page. If it failed, the frame is removed from the table.
    fn loaded(&self, id: PageId, loading: &Arc<Loading>, is_there: bool) {
        self.settle(id, loading, is_there);
        loading.finish(is_there);
    }

    /// Notes in the table that the read of a page has ended. The caller holds the frame: otherwise eviction
    /// could select it before.
    fn settle(&self, id: PageId, loading: &Arc<Loading>, is_there: bool) {
        let mut shard = self.shard(id).lock();
        // Otherwise the page was discarded meanwhile.
        if shard.loading.get(&id).is_some_and(|of| Arc::ptr_eq(of, loading)) {
            shard.loading.remove(&id);
            if !is_there && shard.remove(id) {
                self.count_gone();
            }
        }
        shard.check_invariants();
    }

    /// Passes a request to the reader threads.
    fn ask(self: &Arc<Self>, request: Request) {
        if !self.queue.push(request) {
            return;
        }
        let (queue, pool) = (self.queue.clone(), Arc::downgrade(self));
        let run = move || {
            // If this thread died silently, fibers would wait forever.
            let guard = AbortOnUnwind::during("a read of a page");
            while let Some(request) = queue.pop() {
                match pool.upgrade() {
                    Some(pool) => pool.read(request),
                    None => request.loading.finish(false),
                }
            }
            guard.disarm();
        };
        let started = spawn("page-reader", run);
        if started.is_err() && self.queue.start_failed() {
            // No reader thread could be started: the caller reads.
            while let Some(request) = self.queue.try_pop() {
                self.read(request);
            }
        }
    }

    fn read(&self, request: Request) {
        let Request { index, id, mut frame, loading } = request;
        debug_assert!(frame.page.is_none(), "a page in memory is read again: its changes would be lost");
        let page = self.store.read_page(index, id).ok();
        let is_there = page.is_some();
        frame.page = page;
        self.settle(id, &loading, is_there);
        // Waiters need the latch.
        drop(frame);
        loading.finish(is_there);
        self.evict_some();
    }

    /// Prefetches the pages that a scan needs next.
    pub fn read_ahead(self: &Arc<Self>, index: IndexId, ids: impl IntoIterator<Item = PageId>) {
        for id in ids {
            if !self.queue.takes_more() {
                return;
            }
            if let Some((frame, loading)) = self.enter_loading(id, Touch::Once) {
                self.reads.fetch_add(1, Ordering::Relaxed);
                self.ahead.fetch_add(1, Ordering::Relaxed);
                EngineWork::page_prefetched();
                self.ask(Request { index, id, frame, loading });
            }
        }
    }

    /// Returns the hottest `percent` percent of the resident pages: first those that were used since the
    /// clock hand last passed.
    pub fn hottest(&self, percent: usize) -> Vec<(IndexId, PageId)> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let residents: Vec<(bool, Latch)> = {
                let shard = shard.lock();
                let read = shard.ring.iter().filter(|resident| !shard.loading.contains_key(&resident.id));
                read.map(|resident| (resident.is_used.load(Ordering::Relaxed), resident.latch.clone()))
                    .collect()
            };
            for (is_used, latch) in residents {
                if let Some(page) = &latch.read_arc().page {
                    found.push((!is_used, page.index(), page.id()));
                }
            }
        }
        found.sort_by_key(|(is_unused, ..)| *is_unused);
        found.truncate((found.len() * percent).div_ceil(100));
        found.into_iter().map(|(_, index, id)| (index, id)).collect()
    }

    /// Reads a page on this thread for later use, unless it is in memory. Returns false if the pool is full.
    pub fn prefetch_sync(&self, index: IndexId, id: PageId) -> bool {
        if (self.pages() + 1) * PAGE_BYTES > self.bytes_max() {
            return false;
        }
        if let Some((frame, loading)) = self.enter_loading(id, Touch::Usual) {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.read(Request { index, id, frame, loading });
        }
        true
    }

    /// Returns the number of pages that are being read, or are about to be.
    pub fn pending_reads(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().loading.len() as u64).sum()
    }

    /// Returns whether a caller waits for a page that no thread has started to read.
    pub fn is_behind(&self) -> bool {
        self.queue.is_behind()
    }

    /// Returns whether reader threads read pages for this caller.
    pub fn has_readers(&self) -> bool {
        (self.wait_slot_of)().is_some()
    }

    fn resident(&self, id: PageId) -> Option<Latch> {
        let shard = self.shard(id).lock();
        let resident = shard.get(id)?;
        resident.is_used.store(true, Ordering::Relaxed);
        self.hits.fetch_add(1, Ordering::Relaxed);
        EngineWork::page_accessed();
        Some(resident.latch.clone())
    }

    /// Reads a page. Returns `None` if another thread is already reading it.
    fn load(&self, index: IndexId, id: PageId) -> Result<Option<Exclusive>, EngineError> {
        self.load_as(index, id, Touch::Usual)
    }

    fn load_as(&self, index: IndexId, id: PageId, touch: Touch) -> Result<Option<Exclusive>, EngineError> {
        let Some(mut frame) = self.enter_as(id, Frame::new(None), touch) else {
            return Ok(None);
        };
        self.count_read();
        EngineWork::page_accessed();
        let start = Instant::now();
        let page = self.store.read_page(index, id);
        EngineWork::read_since(start);
        match page {
            Ok(page) => frame.page = Some(page),
            Err(error) => {
                self.leave(id);
                return Err(error);
            }
        }
        self.evict_some();
        Ok(Some(frame))
    }

    /// Makes a frame resident. It is latched before other threads can reach it.
    fn enter(&self, id: PageId, frame: Frame) -> Option<Exclusive> {
        self.enter_as(id, frame, Touch::Usual)
    }

    fn enter_as(&self, id: PageId, frame: Frame, touch: Touch) -> Option<Exclusive> {
        let latch = Arc::new(crate::sync::Latch::new(frame));
        let mut shard = self.shard(id).lock();
        if shard.get(id).is_some() {
            return None;
        }
        let frame = latch.write_arc();
        shard.insert(Resident { id, latch, is_used: AtomicBool::new(touch == Touch::Usual) });
        drop(shard);
        self.pages.fetch_add(1, Ordering::Relaxed);
        if touch == Touch::Once {
            self.note_once(id);
        }
        Some(frame)
    }

    fn leave(&self, id: PageId) {
        let mut shard = self.shard(id).lock();
        // A thread that is reading the page discards its result.
        shard.loading.remove(&id);
        if shard.remove(id) {
            self.count_gone();
        }
    }

    fn count_gone(&self) {
        let before = self.pages.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "more pages leave the pool than entered it: it would never evict again");
    }

    /// Adds a new page, which has no image yet. Does no I/O: the next miss evicts if necessary.
    pub fn create(&self, page: Page) -> Exclusive {
        let id = page.id();
        debug_assert!(id.0 > 0, "a page without a number");
        self.created.fetch_add(1, Ordering::Relaxed);
        self.enter(id, Frame::new(Some(page))).expect("a new page's number is not in use")
    }

    /// Removes a page that is no longer reachable. A thread that found its tree earlier may still request the
    /// page. It must not read an eviction image that is older than the frame: that image may name
    /// transactions whose records were dropped since. So the image is removed while the frame is resident,
    /// and removed again in case it was written meanwhile.
    pub fn discard(&self, id: PageId) {
        self.store.forget_evicted(id);
        self.leave(id);
        self.store.forget_evicted(id);
    }

    /// Returns the number of resident pages.
    pub fn pages(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.pages() * PAGE_BYTES > self.bytes_max()
    }

    /// Notes that a checkpoint has written the page. If `is_unchanged`, called with the page latched, returns
    /// true, the page equals the image in the page map. Then the page can be evicted without a write, and its
    /// eviction image is removed.
    pub fn mark_clean(&self, id: PageId, is_unchanged: impl FnOnce() -> bool) {
        loop {
            let latch = self.shard(id).lock().get(id).map(|resident| resident.latch.clone());
            if let Some(latch) = latch {
                let mut frame = latch.write_arc();
                if frame.page.is_none() {
                    continue;
                }
                if is_unchanged() {
                    frame.is_changed = false;
                    self.store.forget_evicted(id);
                }
                return;
            }
            // No thread reads the eviction image while this frame is resident.
            if let Some(_frame) = self.enter(id, Frame::new(None)) {
                if is_unchanged() {
                    self.store.forget_evicted(id);
                }
                self.leave(id);
                return;
            }
        }
    }

    /// Evicts pages while the pool is over its size. The number of examined residents is bounded.
    pub fn evict_some(&self) {
        let mut looked_at = 0;
        while self.is_over() && looked_at < LOOKED_AT_MAX {
            looked_at += STEP;
            if let Some(victim) = self.victim_of_scans() {
                self.evict(victim);
                continue;
            }
            let at = self.hand.fetch_add(1, Ordering::Relaxed) % SHARDS;
            let victim = self.shards[at].lock().victim();
            if let Some(victim) = victim {
                self.evict(victim);
            }
        }
    }

    /// Returns the oldest page of the probationary queue if the queue exceeds its share and the page was not
    /// used since.
    fn victim_of_scans(&self) -> Option<Exclusive> {
        let share = (self.bytes_max() / PAGE_BYTES / ONCE_SHARE).max(ONCE_MIN);
        let oldest = {
            let mut once = self.once.lock();
            if once.len() <= share {
                return None;
            }
            once.pop_front()?
        };
        self.shard(oldest).lock().victim_by_id(oldest)
    }

    fn evict(&self, mut frame: Exclusive) {
        let id = frame.page().id();
        if frame.is_changed {
            if self.store.evict(frame.page()).is_err() {
                // The page stays. The next checkpoint reports why pages cannot be written.
                return;
            }
            frame.is_changed = false;
            self.evictions_dirty.fetch_add(1, Ordering::Relaxed);
        }
        let mut shard = self.shard(id).lock();
        let is_resident = |resident: &Resident| Arc::ptr_eq(&resident.latch, latch_of(&frame));
        if !shard.get(id).is_some_and(is_resident) {
            // The page was discarded meanwhile.
            self.store.forget_evicted(id);
        } else if Arc::strong_count(latch_of(&frame)) == 2 {
            debug_assert!(!frame.is_changed, "a change is evicted without an image");
            debug_assert!(!shard.loading.contains_key(&id), "a page is evicted while it is read");
            shard.remove(id);
            self.count_gone();
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }
}
