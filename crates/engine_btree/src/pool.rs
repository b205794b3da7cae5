//! The buffer pool: pages in memory, each under a latch.
//!
//! # Concepts
//! - **Frame**: a page in memory with what the pool knows of it, behind a readers-writer latch.
//! - **Resident**: a frame that the pool's table names. A holder of a frame's `Arc` keeps it resident,
//!   because only frames that nobody holds are evicted.
//!
//! # Invariants
//! - A page id has at most one resident frame, so latching the frame is latching the page.
//! - A frame whose page changed since its newest image was written is evicted only after another image.
//!
//! # Replacement
//! Each shard has its residents in a ring. The hand passes over some of them for every miss of a full
//! pool: it takes what nobody holds and nobody used since it passed before. Pages that a long scan reads
//! ([`Touch::Once`]) count as unused and stand in a queue besides: when that has its share of the pool, they
//! make room for each other, so a scan of a large table does not push everything else out.
//!
//! # Misses
//! A fiber that must wait for a page sleeps while a reader thread reads it (`reads.rs`). It asks by
//! [`Pool::shared_soon`] and [`Pool::exclusive_soon`] and lets its latches go before. Other threads, and who
//! changes a tree's structure, read for themselves.
//!
//! # Lock order
//! A frame's latch may be held while another page is fetched, downwards in its tree only. A shard's lock is
//! held for no I/O and while no latch is waited for.
//!
//! # On failure
//! A page that cannot be read leaves no frame: the caller gets the error, the next one tries again. A page
//! that cannot be written stays in memory.
//!
//! # Missing
//! A page of few long entries is larger than [`PAGE_BYTES`] and counts as one.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use cohort_base::{IndexId, NoUnwind};
use cohort_engine::{BedOf, EngineError, PageContents, PageInMemory};

use crate::page::{PAGE_BYTES, Page, PageId};
use crate::reads::{Loading, ReadQueue, Request, Wait};
use crate::sound::Unsound;
use crate::store::Store;
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize, ExclusiveGuard, Mutex, Ordering, SharedGuard, downgrade, latch_of,
    spawn,
};

const SHARDS: usize = 64;
/// Residents of one shard that the hand passes at once.
const STEP: usize = 16;
/// Residents that one miss looks at for something to evict.
const LOOKED_AT_MAX: usize = 256;
/// Residents of a shard that a listing takes at once.
const LISTED_AT_ONCE: usize = 256;
/// Share of the pool that pages of long scans take before they make room for each other.
const ONCE_SHARE: usize = 16;
/// Such pages at least.
const ONCE_MIN: usize = 4;

/// A page in memory.
#[derive(Debug)]
pub struct Frame {
    /// None: it could not be read.
    page: Option<Page>,
    /// The newest image on disk does not say what the page says.
    pub is_changed: bool,
    /// The last checkpoint interval in which the page was put on the list of changed ones.
    pub listed_in: u64,
    /// The page went into a neighbour: no key belongs to it any more. Set with the page latched alone.
    pub is_gone: bool,
    /// A way down found it where its parent says, since it was read ([`crate::tree`]).
    is_placed: AtomicBool,
}

impl Frame {
    /// The page.
    pub fn page(&self) -> &Page {
        self.page.as_ref().expect("the pool gives out frames that were read")
    }

    /// Whether the page was read.
    pub fn has_page(&self) -> bool {
        self.page.is_some()
    }

    /// A page that has no image on disk yet; none: one that is about to be read.
    fn new(page: Option<Page>) -> Frame {
        let is_new = page.is_some();
        Frame { is_changed: is_new, page, listed_in: 0, is_gone: false, is_placed: AtomicBool::new(is_new) }
    }

    /// Whether the page's place in its tree is known to be right.
    #[inline]
    pub fn is_placed(&self) -> bool {
        self.is_placed.load(Ordering::Relaxed)
    }

    /// Notes that it is.
    pub fn note_placed(&self) {
        self.is_placed.store(true, Ordering::Relaxed);
    }

    /// The page, to be changed.
    pub fn page_mut(&mut self) -> &mut Page {
        self.page.as_mut().expect("the pool gives out frames that were read")
    }
}

/// A frame that may be latched.
pub type Latch = Arc<crate::sync::Latch<Frame>>;
/// A page latched with others.
pub type Shared = SharedGuard<Frame>;
/// A page latched alone.
pub type Exclusive = ExclusiveGuard<Frame>;

/// How a page is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It may be used again soon.
    Usual,
    /// By a long scan, which does not come back.
    Once,
}

/// A page that is here, or will be.
pub enum Soon<G> {
    Here(G),
    /// The caller lets its latches go, sleeps, and begins anew.
    Later(Wait),
}

struct Resident {
    id: PageId,
    latch: Latch,
    /// Since the hand passed.
    is_used: AtomicBool,
}

#[derive(Default)]
struct Shard {
    places: HashMap<PageId, usize, ahash::RandomState>,
    ring: Vec<Resident>,
    hand: usize,
    /// Pages that reader threads read.
    loading: HashMap<PageId, Arc<Loading>>,
}

impl Shard {
    fn get(&self, id: PageId) -> Option<&Resident> {
        self.places.get(&id).map(|place| &self.ring[*place])
    }

    fn insert(&mut self, resident: Resident) {
        self.places.insert(resident.id, self.ring.len());
        self.ring.push(resident);
    }

    fn remove(&mut self, id: PageId) -> bool {
        let Some(place) = self.places.remove(&id) else { return false };
        self.ring.swap_remove(place);
        if let Some(moved) = self.ring.get(place) {
            self.places.insert(moved.id, place);
        }
        true
    }

    /// The page, if it may be evicted.
    fn victim_by_id(&self, id: PageId) -> Option<Exclusive> {
        let resident = self.get(id)?;
        let is_unused = !resident.is_used.load(Ordering::Relaxed) && Arc::strong_count(&resident.latch) == 1;
        if is_unused { resident.latch.try_write_arc() } else { None }
    }

    /// Moves the hand over up to [`STEP`] residents, to one that may be evicted.
    fn victim(&mut self) -> Option<Exclusive> {
        for _ in 0..STEP.min(self.ring.len()) {
            self.hand = (self.hand + 1) % self.ring.len();
            let resident = &self.ring[self.hand];
            if !resident.is_used.swap(false, Ordering::Relaxed) && Arc::strong_count(&resident.latch) == 1 {
                // Nobody else can come to the latch while the shard is locked.
                return resident.latch.try_write_arc();
            }
        }
        None
    }
}

/// What a look into the pool finds.
enum Found {
    /// Resident.
    Latch(Latch),
    /// It has just been read.
    Read(Exclusive),
    /// It is being read.
    Later(Wait),
    /// Somebody else came first: the look is repeated.
    Nothing,
}

/// Pages in memory.
pub struct Pool {
    store: Arc<Store>,
    shards: Box<[Mutex<Shard>]>,
    /// `innodb_buffer_pool_size`
    bytes_max: AtomicUsize,
    pages: AtomicUsize,
    hand: AtomicUsize,
    /// Pages that were read for long scans, oldest first.
    once: Mutex<VecDeque<PageId>>,
    queue: Arc<ReadQueue>,
    /// Where a caller sleeps while a page is read for it; none: it reads for itself.
    bed_of: BedOf,
    /// Pages read from the file.
    pub reads: AtomicU64,
    /// Pages found in memory.
    pub hits: AtomicU64,
    /// Pages that left memory for others.
    pub evictions: AtomicU64,
    /// Those that were written for it.
    pub evictions_dirty: AtomicU64,
    /// Reads that somebody slept for.
    pub sleeps: AtomicU64,
    /// Pages that were asked for before somebody needed them.
    pub ahead: AtomicU64,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Pool {
    /// An empty pool of so many bytes.
    pub fn new(store: Arc<Store>, bytes_max: usize, bed_of: BedOf) -> Pool {
        Pool {
            store,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            bytes_max: AtomicUsize::new(bytes_max),
            pages: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            once: Mutex::default(),
            queue: Arc::default(),
            bed_of,
            sleeps: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            evictions_dirty: AtomicU64::new(0),
        }
    }

    /// The error for a page that does not belong where its tree says.
    pub fn misplaced(&self, index: IndexId, id: PageId, what: Unsound) -> EngineError {
        self.store.misplaced(index, id, what)
    }

    /// Bytes that it may hold.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// `innodb_buffer_pool_size`: a smaller pool lets pages go as far as nobody holds them, and the rest at
    /// later misses.
    pub fn resize(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        // The hand passes each page twice: once to see that nobody uses it.
        for _ in 0..2 * self.pages().div_ceil(STEP) {
            if !self.is_over() {
                return;
            }
            self.evict_some();
        }
    }

    /// Shows `look` the residents, until it breaks off. No shard is locked meanwhile, and no latch waited
    /// for.
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

    /// Latches a page with others; reads it first if it is not in memory.
    pub fn shared(&self, index: IndexId, id: PageId) -> Result<Shared, EngineError> {
        loop {
            if let Some(latch) = self.resident(id) {
                let frame = latch.read_arc();
                if frame.page.is_some() {
                    return Ok(frame);
                }
            } else if let Some(frame) = self.load(index, id)? {
                return Ok(downgrade(frame));
            }
        }
    }

    /// Latches a page alone; reads it first if it is not in memory.
    pub fn exclusive(&self, index: IndexId, id: PageId) -> Result<Exclusive, EngineError> {
        loop {
            if let Some(latch) = self.resident(id) {
                let frame = latch.write_arc();
                if frame.page.is_some() {
                    return Ok(frame);
                }
            } else if let Some(frame) = self.load(index, id)? {
                return Ok(frame);
            }
        }
    }

    /// Latches a page with others if that needs no sleep.
    pub fn shared_soon(
        self: &Arc<Self>,
        index: IndexId,
        id: PageId,
        touch: Touch,
    ) -> Result<Soon<Shared>, EngineError> {
        loop {
            match self.find(index, id, touch)? {
                Found::Latch(latch) => {
                    let frame = latch.read_arc();
                    if frame.page.is_some() {
                        return Ok(Soon::Here(frame));
                    }
                }
                Found::Read(frame) => return Ok(Soon::Here(downgrade(frame))),
                Found::Later(wait) => return Ok(Soon::Later(wait)),
                Found::Nothing => {}
            }
        }
    }

    /// Latches a page alone if that needs no sleep.
    pub fn exclusive_soon(
        self: &Arc<Self>,
        index: IndexId,
        id: PageId,
    ) -> Result<Soon<Exclusive>, EngineError> {
        loop {
            match self.find(index, id, Touch::Usual)? {
                Found::Latch(latch) => {
                    let frame = latch.write_arc();
                    if frame.page.is_some() {
                        return Ok(Soon::Here(frame));
                    }
                }
                Found::Read(frame) => return Ok(Soon::Here(frame)),
                Found::Later(wait) => return Ok(Soon::Later(wait)),
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
                    return Ok(match (self.bed_of)() {
                        Some(bed) => Found::Later(Wait { loading, latch, bed }),
                        None => Found::Latch(latch),
                    });
                }
                self.hits.fetch_add(1, Ordering::Relaxed);
                return Ok(Found::Latch(latch));
            }
        }
        let Some(bed) = (self.bed_of)() else {
            return Ok(self.load_as(index, id, touch)?.map_or(Found::Nothing, Found::Read));
        };
        let Some((mut frame, loading)) = self.enter_loading(id, touch) else { return Ok(Found::Nothing) };
        self.reads.fetch_add(1, Ordering::Relaxed);
        match self.store.read_page_cached(index, id) {
            Ok(Some(page)) => {
                frame.page = Some(page);
                self.loaded(id, &loading, true);
                self.evict_some();
                return Ok(Found::Read(frame));
            }
            Err(error) => {
                // While it is latched: nobody takes an empty frame for one to evict.
                self.loaded(id, &loading, false);
                return Err(error);
            }
            Ok(None) => {}
        }
        let latch = latch_of(&frame).clone();
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        self.ask(Request { index, id, frame, loading: loading.clone() });
        Ok(Found::Later(Wait { loading, latch, bed }))
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

    /// The read of a page is over; it is resident no more if that failed.
    fn loaded(&self, id: PageId, loading: &Arc<Loading>, is_there: bool) {
        let mut shard = self.shard(id).lock();
        // Otherwise the page was discarded meanwhile.
        if shard.loading.get(&id).is_some_and(|of| Arc::ptr_eq(of, loading)) {
            shard.loading.remove(&id);
            if !is_there && shard.remove(id) {
                self.pages.fetch_sub(1, Ordering::Relaxed);
            }
        }
        drop(shard);
        loading.finish(is_there);
    }

    /// Gives a request to the reader threads.
    fn ask(self: &Arc<Self>, request: Request) {
        if !self.queue.push(request) {
            return;
        }
        let (queue, pool) = (self.queue.clone(), Arc::downgrade(self));
        let run = move || {
            // Without it fibers would sleep for good.
            let guard = NoUnwind::during("a read of a page");
            while let Some(request) = queue.pop() {
                match pool.upgrade() {
                    Some(pool) => pool.read(request),
                    None => request.loading.finish(false),
                }
            }
            guard.passed();
        };
        let started = spawn("page-reader", run);
        if started.is_err() && self.queue.start_failed() {
            // No thread at all: the caller reads.
            while let Some(request) = self.queue.try_pop() {
                self.read(request);
            }
        }
    }

    fn read(&self, request: Request) {
        let Request { index, id, mut frame, loading } = request;
        let page = self.store.read_page(index, id).ok();
        let is_there = page.is_some();
        frame.page = page;
        match is_there {
            true => {
                drop(frame);
                self.loaded(id, &loading, true);
            }
            // While it is latched: nobody takes an empty frame for one to evict.
            false => self.loaded(id, &loading, false),
        }
        self.evict_some();
    }

    /// Has pages read that a scan needs next.
    pub fn read_ahead(self: &Arc<Self>, index: IndexId, ids: impl IntoIterator<Item = PageId>) {
        for id in ids {
            if !self.queue.takes_more() {
                return;
            }
            if let Some((frame, loading)) = self.enter_loading(id, Touch::Once) {
                self.reads.fetch_add(1, Ordering::Relaxed);
                self.ahead.fetch_add(1, Ordering::Relaxed);
                self.ask(Request { index, id, frame, loading });
            }
        }
    }

    /// Pages in memory, so many percent of them: those that the hand has not passed since they were used,
    /// then the others.
    pub fn warmest(&self, percent: usize) -> Vec<(IndexId, PageId)> {
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

    /// Reads a page on this thread, unless it is in memory, for a later reader. False: there is no room
    /// but by eviction.
    pub fn read_early(&self, index: IndexId, id: PageId) -> bool {
        if (self.pages() + 1) * PAGE_BYTES > self.bytes_max() {
            return false;
        }
        if let Some((frame, loading)) = self.enter_loading(id, Touch::Usual) {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.read(Request { index, id, frame, loading });
        }
        true
    }

    /// Whether somebody waits for a page that no thread reads yet.
    pub fn is_behind(&self) -> bool {
        self.queue.is_behind()
    }

    /// Whether pages are read by threads of their own.
    pub fn has_readers(&self) -> bool {
        (self.bed_of)().is_some()
    }

    fn resident(&self, id: PageId) -> Option<Latch> {
        let shard = self.shard(id).lock();
        let resident = shard.get(id)?;
        resident.is_used.store(true, Ordering::Relaxed);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(resident.latch.clone())
    }

    /// Reads a page. None: somebody else does already.
    fn load(&self, index: IndexId, id: PageId) -> Result<Option<Exclusive>, EngineError> {
        self.load_as(index, id, Touch::Usual)
    }

    fn load_as(&self, index: IndexId, id: PageId, touch: Touch) -> Result<Option<Exclusive>, EngineError> {
        let Some(mut frame) = self.enter_as(id, Frame::new(None), touch) else {
            return Ok(None);
        };
        self.reads.fetch_add(1, Ordering::Relaxed);
        match self.store.read_page(index, id) {
            Ok(page) => frame.page = Some(page),
            Err(error) => {
                self.leave(id);
                return Err(error);
            }
        }
        self.evict_some();
        Ok(Some(frame))
    }

    /// Makes a frame resident, latched before anybody else can come to it.
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
        // A thread that reads it meanwhile reads for nobody.
        shard.loading.remove(&id);
        if shard.remove(id) {
            self.pages.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes in a page that has no image yet. It does no I/O: the next miss makes room.
    pub fn create(&self, page: Page) -> Exclusive {
        let id = page.id();
        self.enter(id, Frame::new(Some(page))).expect("a new page's number is not in use")
    }

    /// Drops a page that nobody finds any more. Who found its tree before may still ask for it, and must not
    /// read an eviction image that is older than the frame: that may name transactions whose records were
    /// dropped since. So the image goes while the frame is resident, and then what was written meanwhile.
    pub fn discard(&self, id: PageId) {
        self.store.forget_evicted(id);
        self.leave(id);
        self.store.forget_evicted(id);
    }

    /// Pages in memory.
    pub fn pages(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.pages() * PAGE_BYTES > self.bytes_max()
    }

    /// A checkpoint has written the page. If `is_unchanged` says so, with the page latched, it says what the
    /// page map's image says: it can leave memory without a write, and an eviction image is of no use.
    pub fn settle(&self, id: PageId, is_unchanged: impl FnOnce() -> bool) {
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
            // Nobody reads the eviction image while this frame is resident.
            if let Some(_frame) = self.enter(id, Frame::new(None)) {
                if is_unchanged() {
                    self.store.forget_evicted(id);
                }
                self.leave(id);
                return;
            }
        }
    }

    /// Makes room while the pool is too large, as far as a bounded look finds what may go.
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

    /// The oldest page of long scans, when they have their share, unless somebody else uses it by now.
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
                // It stays; the next checkpoint tells why pages cannot be written.
                return;
            }
            frame.is_changed = false;
            self.evictions_dirty.fetch_add(1, Ordering::Relaxed);
        }
        let mut shard = self.shard(id).lock();
        let is_resident = |resident: &Resident| Arc::ptr_eq(&resident.latch, latch_of(&frame));
        if !shard.get(id).is_some_and(is_resident) {
            // It was discarded meanwhile.
            self.store.forget_evicted(id);
        } else if Arc::strong_count(latch_of(&frame)) == 2 {
            shard.remove(id);
            self.pages.fetch_sub(1, Ordering::Relaxed);
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }
}
