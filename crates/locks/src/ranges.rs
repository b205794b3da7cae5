//! Range locks: they prevent inserts into the part of an index that a locking scan has read.
//!
//! # Two kinds of claims
//! - A *range* belongs to a locking scan. Ranges do not conflict with each other: the rows inside are locked
//!   one by one.
//! - A *point* is an insert intention: a key that a transaction inserts. Points do not conflict with each
//!   other: two inserts of one key conflict at the row lock.
//!
//! A point waits for other owners' ranges that contain it. A scan waits for other owners' points in its way,
//! because an uncommitted row is in no page and only its point announces it.
//!
//! # Inserts stay cheap
//! Points are stored in their owner ([`crate::points`]). While no owner has a range in a shard of indexes,
//! the guard of that shard is zero, and the guard is all that an insert checks. A scan raises the guard
//! *before* it reads the owners' points, and an insert reads the guard *after* it has stored its point, so at
//! least one of the two sees the other. The mutex of each owner's points orders the two accesses.
//!
//! # Steps of a scan
//! 1. [`Ranges::watch`] announces the span that is read next. From then on the nearest point that other
//!    owners insert into that span is remembered.
//! 2. The caller reads a batch of entries, without locks.
//! 3. [`Ranges::advance`] extends the locked part to each entry, before the row of the entry is locked. If a
//!    point was passed, or could have been, it returns [`Step::Again`]: the batch may lack a row that has
//!    been inserted since, and the caller returns to step 1.
//!
//! A scan that stops early, or waits for a row, has locked what it has read and nothing more, like
//! InnoDB's next-key locks. If a point is in the way, the locked part ends with that point, and the owner of
//! the point can continue to insert after it.
//!
//! # Release
//! A release is one store in the owner ([`Owner::released`]). Indexes are visited only if another owner has
//! waited for this owner, and only those where it waited. A released range stays in the index until its
//! transaction is published, so that an owner that inserts a key into it meanwhile learns which transaction
//! it depends on (I8).
//!
//! # Lock order
//! A shard of indexes, then a shard of inserters, then an owner's claims, then an owner's `wait`.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ahash::RandomState;
use cohort_base::{CommitSeq, IndexId, TrxId};

use crate::intervals::Intervals;
use crate::owner::Owner;
use crate::points::{LockSpan, Towards, successor};
use crate::queue::Blockers;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::waits::RangeWish;

const SHARDS: usize = 64;
const INSERTER_SHARDS: usize = 16;

/// How a scan treats another transaction's uncommitted key in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncommitted {
    /// It waits, or fails if it must not wait.
    Block,
    /// It skips the key (SKIP LOCKED).
    Skip,
}

/// A scan that locks the ranges that it passes.
pub struct RangeScan {
    index: IndexId,
    towards: Towards,
    uncommitted: Uncommitted,
    /// The indexes refer to it weakly: a dropped scan watches nothing.
    watch: Arc<Mutex<Watch>>,
}

impl RangeScan {
    /// Returns a scan that watches nothing yet.
    pub fn new(index: IndexId, towards: Towards, uncommitted: Uncommitted) -> RangeScan {
        RangeScan { index, towards, uncommitted, watch: Arc::default() }
    }

    /// Returns the index that it scans.
    pub fn index(&self) -> IndexId {
        self.index
    }
}

/// The span that a scan has announced but not locked yet.
#[derive(Default)]
struct Watch {
    ahead: LockSpan,
    /// First point of other owners in the direction of the scan, if any.
    nearest: Option<Box<[u8]>>,
}

/// End of one step of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepTo<'k> {
    /// Up to and including this entry.
    Entry(&'k [u8]),
    /// To the end of the watched span.
    End,
}

/// Outcome of a step of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The part passed is locked, and contains exactly the entries that were read.
    Passed,
    /// Read again, starting after the entry that was passed last.
    Again,
}

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed<T> {
    Done(T),
    Blocked,
}

/// Ranges of one transaction in one index.
struct Holder {
    owner: Arc<Owner>,
    locked: Intervals,
    scans: Vec<(Towards, Weak<Mutex<Watch>>)>,
}

/// Request of a waiter.
enum Wish {
    /// Insert this key.
    Put(Box<[u8]>),
    /// Wait until this owner's transaction ends.
    Pass(Arc<Owner>),
}

struct Waiter {
    owner: Arc<Owner>,
    wish: Wish,
}

/// Claims in one index.
#[derive(Default)]
struct Space {
    holders: Vec<Holder>,
    waiters: Vec<Waiter>,
}

struct Shard {
    /// Number of owners with ranges in the shard, counted once per index.
    guard: AtomicUsize,
    spaces: Mutex<HashMap<IndexId, Space, RandomState>>,
}

/// All range locks.
pub(crate) struct Ranges {
    shards: Vec<Shard>,
    /// Transactions that have inserted keys.
    inserters: Vec<Mutex<HashMap<TrxId, Arc<Owner>, RandomState>>>,
    durable: AtomicU64,
}

/// [`Owner::released`] of a transaction that causes no dependencies: it was rolled back, or wrote nothing.
pub(crate) const ENDED: u64 = u64::MAX;

impl Owner {
    fn is_active(&self) -> bool {
        self.released.load(Ordering::SeqCst) == 0
    }

    fn note_awaited_in(&self, index: IndexId) {
        let mut claims = self.claims.lock();
        if !claims.awaited_in.contains(&index) {
            claims.awaited_in.push(index);
        }
        drop(claims);
        self.waited_for.store(true, Ordering::SeqCst);
    }
}

impl Space {
    fn holder(&mut self, owner: &Arc<Owner>) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| Arc::ptr_eq(&holder.owner, owner))
    }

    /// Returns the other owners whose ranges contain the key.
    fn ranges_at(&self, owner: &Arc<Owner>, key: &[u8]) -> impl Iterator<Item = &Arc<Owner>> {
        let others = self.holders.iter().filter(|holder| !Arc::ptr_eq(&holder.owner, owner));
        others.filter(|holder| holder.locked.contains(key)).map(|holder| &holder.owner)
    }

    fn is_free_for(&self, owner: &Arc<Owner>, key: &[u8]) -> bool {
        !self.ranges_at(owner, key).any(|holder| holder.is_active())
    }

    /// Notifies other owners' scans of a key that is inserted. Returns the newest release of a range that
    /// contains it, 0 if none.
    fn admit(&self, owner: &Arc<Owner>, key: &[u8], durable: u64) -> u64 {
        for holder in self.holders.iter().filter(|holder| !Arc::ptr_eq(&holder.owner, owner)) {
            for (towards, watch) in &holder.scans {
                let Some(watch) = watch.upgrade() else { continue };
                let mut watch = watch.lock();
                if watch.ahead.contains(key)
                    && watch.nearest.as_ref().is_none_or(|nearest| towards.is_before(key, nearest))
                {
                    watch.nearest = Some(key.into());
                }
            }
        }
        let seqs = self.ranges_at(owner, key).map(|holder| holder.released.load(Ordering::SeqCst));
        seqs.filter(|seq| *seq != ENDED && *seq > durable).max().unwrap_or(0)
    }

    fn blockers(&self, waiter: &Waiter) -> Vec<Arc<Owner>> {
        let owners: Vec<_> = match &waiter.wish {
            Wish::Put(key) => self.ranges_at(&waiter.owner, key).cloned().collect(),
            Wish::Pass(owner) => vec![owner.clone()],
        };
        owners.into_iter().filter(|owner| owner.is_active()).collect()
    }

    /// Returns whether a request is blocked. It first marks all blocking owners as waited for and then checks
    /// again. A releasing owner stores its release first and checks the mark afterwards, so that no release
    /// is missed.
    fn is_blocked(&self, index: IndexId, waiter: &Waiter) -> bool {
        let blockers = self.blockers(waiter);
        blockers.iter().for_each(|blocker| blocker.note_awaited_in(index));
        blockers.iter().any(|blocker| blocker.is_active())
    }

    /// Queues a request. Returns false, and grants it, if its blockers have been released meanwhile.
    fn enqueue(&mut self, index: IndexId, waiter: Waiter) -> bool {
        debug_assert!(
            !self.waiters.iter().any(|other| Arc::ptr_eq(&other.owner, &waiter.owner)),
            "an owner waits for one range at a time"
        );
        debug_assert!(
            !matches!(&waiter.wish, Wish::Pass(owner) if Arc::ptr_eq(owner, &waiter.owner)),
            "a scan waits for its own insert"
        );
        let is_blocked = self.is_blocked(index, &waiter);
        match is_blocked {
            true => self.waiters.push(waiter),
            false => waiter.owner.grant(0),
        }
        is_blocked
    }

    /// Grants the waiters that are no longer blocked, and returns them: the caller wakes them.
    fn grant(&mut self, index: IndexId, durable: u64) -> Vec<Arc<Owner>> {
        let waiters = std::mem::take(&mut self.waiters);
        let (blocked, free) = waiters.into_iter().partition(|waiter| !self.blockers(waiter).is_empty());
        self.waiters = blocked;
        free.into_iter().map(|waiter: Waiter| self.let_go_on(index, waiter, durable)).collect()
    }

    /// Adds a span to an owner's ranges. A waiter that wants to insert a key there waits for this owner too
    /// from now on.
    fn lock(&mut self, index: IndexId, owner: &Arc<Owner>, span: LockSpan, towards: Towards) {
        let waits_in = |waiter: &Waiter| match &waiter.wish {
            Wish::Put(key) => span.contains(key) && !Arc::ptr_eq(&waiter.owner, owner),
            Wish::Pass(_) => false,
        };
        if self.waiters.iter().any(waits_in) {
            owner.note_awaited_in(index);
        }
        self.change(owner, |locked| match towards {
            Towards::Up => locked.add_growing(span),
            Towards::Down => locked.add(span),
        });
    }

    /// Extends the locked part of an upward scan by one entry. Returns false if that is not sufficient: the
    /// caller takes the general path.
    fn grow(&mut self, owner: &Arc<Owner>, ahead: &mut LockSpan, key: &[u8]) -> bool {
        if !self.waiters.is_empty() || !self.change(owner, |locked| locked.grow(&ahead.start, key)) {
            return false;
        }
        ahead.start.clear();
        ahead.start.extend_from_slice(key);
        ahead.start.push(0);
        true
    }

    fn change<R>(&mut self, owner: &Arc<Owner>, change: impl FnOnce(&mut Intervals) -> R) -> R {
        let locked = &mut self.holder(owner).expect("it has ranges here").locked;
        let before = locked.bytes();
        let result = change(locked);
        let grown = locked.bytes() as i64 - before as i64;
        if grown != 0 {
            owner.range_bytes.fetch_add(grown as u64, Ordering::Relaxed);
        }
        result
    }

    fn let_go_on(&self, index: IndexId, waiter: Waiter, durable: u64) -> Arc<Owner> {
        let predecessor = match &waiter.wish {
            Wish::Put(key) => {
                waiter.owner.claims.lock().points.push(index, key);
                self.admit(&waiter.owner, key, durable)
            }
            // The scan learns its dependencies when it locks the rows.
            Wish::Pass(_) => 0,
        };
        waiter.owner.grant(predecessor);
        waiter.owner
    }

    fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.waiters.is_empty()
    }
}

impl Ranges {
    pub fn new(hasher: &RandomState) -> Ranges {
        let shard =
            || Shard { guard: AtomicUsize::new(0), spaces: Mutex::new(HashMap::with_hasher(hasher.clone())) };
        let inserters = || Mutex::new(HashMap::with_hasher(hasher.clone()));
        Ranges {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            inserters: (0..INSERTER_SHARDS).map(|_| inserters()).collect(),
            durable: AtomicU64::new(0),
        }
    }

    fn shard(&self, index: IndexId) -> &Shard {
        &self.shards[index.0 as usize % SHARDS]
    }

    fn concurrent_inserters(&self, trx: TrxId) -> &Mutex<HashMap<TrxId, Arc<Owner>, RandomState>> {
        &self.inserters[trx.0 as usize % INSERTER_SHARDS]
    }

    fn durable_seq(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Records that everything up to `seq` is durable.
    pub fn set_durable(&self, seq: CommitSeq) {
        self.durable.fetch_max(seq.0, Ordering::AcqRel);
    }

    /// Makes the owner's points visible to scans. Call before its first point.
    pub fn register(&self, owner: &Arc<Owner>) {
        self.concurrent_inserters(owner.trx).lock().insert(owner.trx, owner.clone());
    }

    /// Inserts a key. Returns the transaction that it depends on, 0 if none. If other owners' ranges block it
    /// and `wait` is given, runs `wait` and queues the request. Adds sleepers to wake to `misled`, but only
    /// if `wait` is `None`.
    pub fn put(
        &self,
        index: IndexId,
        owner: &Arc<Owner>,
        key: &[u8],
        wait: Option<impl FnOnce()>,
        misled: &mut Vec<Arc<Owner>>,
    ) -> Claimed<u64> {
        let shard = self.shard(index);
        let mut pushed = None;
        if wait.is_none() && shard.guard.load(Ordering::SeqCst) == 0 {
            let is_new = owner.claims.lock().points.push(index, key);
            if shard.guard.load(Ordering::SeqCst) == 0 {
                return Claimed::Done(0);
            }
            pushed = Some(is_new);
        }
        let mut spaces = shard.spaces.lock();
        let unused = &mut Space::default();
        let space = spaces.get_mut(&index).unwrap_or(unused);
        if space.is_free_for(owner, key) {
            if pushed.is_none() {
                owner.claims.lock().points.push(index, key);
            }
            return Claimed::Done(space.admit(owner, key, self.durable_seq()));
        }
        let mut claims = owner.claims.lock();
        if pushed == Some(true) {
            claims.points.pop(index, key);
        }
        if pushed == Some(false) || claims.points.contains(index, key) {
            // It was inserted before, and a scan there waits for that.
            return Claimed::Done(0);
        }
        drop(claims);
        if pushed.is_some() {
            // A waiting point blocks no scan, or two transactions that scan the same range would deadlock on
            // it. Scans that have seen the point read again.
            let is_misled =
                |waiter: &mut Waiter| matches!(&waiter.wish, Wish::Pass(on) if Arc::ptr_eq(on, owner));
            for waiter in space.waiters.extract_if(.., is_misled) {
                waiter.owner.grant(0);
                misled.push(waiter.owner);
            }
        }
        let Some(wait) = wait else { return Claimed::Blocked };
        wait();
        let waiter = Waiter { owner: owner.clone(), wish: Wish::Put(key.into()) };
        if space.enqueue(index, waiter) {
            return Claimed::Blocked;
        }
        owner.claims.lock().points.push(index, key);
        Claimed::Done(space.admit(owner, key, self.durable_seq()))
    }

    /// Announces the span that a scan reads next. Returns true if these are the owner's first ranges in the
    /// index.
    pub fn watch(&self, scan: &RangeScan, owner: &Arc<Owner>, ahead: LockSpan) -> bool {
        let shard = self.shard(scan.index);
        let mut spaces = shard.spaces.lock();
        let space = spaces.entry(scan.index).or_default();
        let is_new = space.holder(owner).is_none();
        if is_new {
            debug_assert!(owner.is_active(), "an owner locks a range after it has released its locks");
            shard.guard.fetch_add(1, Ordering::SeqCst);
            space.holders.push(Holder {
                owner: owner.clone(),
                locked: Intervals::default(),
                scans: Vec::new(),
            });
        }
        let scans = &mut space.holder(owner).expect("made above").scans;
        let this = Arc::downgrade(&scan.watch);
        if !scans.iter().any(|(_, watch)| watch.ptr_eq(&this)) {
            scans.retain(|(_, watch)| watch.strong_count() > 0);
            scans.push((scan.towards, this));
        }
        let nearest = match scan.uncommitted {
            Uncommitted::Block => self.nearest_point(scan, owner, &ahead).map(|(key, _)| key),
            Uncommitted::Skip => None,
        };
        *scan.watch.lock() = Watch { ahead, nearest };
        is_new
    }

    /// Returns the first uncommitted key of another owner in the direction of the scan, with its owner.
    fn nearest_point(
        &self,
        scan: &RangeScan,
        owner: &Arc<Owner>,
        span: &LockSpan,
    ) -> Option<(Box<[u8]>, Arc<Owner>)> {
        let mut found: Option<(Box<[u8]>, Arc<Owner>)> = None;
        for shard in &self.inserters {
            for other in shard.lock().values() {
                if Arc::ptr_eq(other, owner) || !other.is_active() {
                    continue;
                }
                let Some(key) = other.claims.lock().points.nearest(scan.index, span, scan.towards) else {
                    continue;
                };
                if found.as_ref().is_none_or(|(nearest, _)| scan.towards.is_before(&key, nearest)) {
                    found = Some((key, other.clone()));
                }
            }
        }
        found
    }

    /// Locks the part that a scan has read. If another owner's point blocks it and `wait` is given, runs
    /// `wait` and queues the request; the caller reads again after the wait.
    pub fn advance(
        &self,
        scan: &RangeScan,
        owner: &Arc<Owner>,
        to: StepTo<'_>,
        wait: Option<impl FnOnce()>,
    ) -> Claimed<Step> {
        let mut spaces = self.shard(scan.index).spaces.lock();
        let space = spaces.get_mut(&scan.index).expect("the scan watches, so its owner has ranges");
        debug_assert!(space.holder(owner).is_some(), "a scan of another owner");
        let mut watch = scan.watch.lock();
        let is_beyond = |nearest: &[u8]| match to {
            StepTo::Entry(key) => scan.towards.is_before(key, nearest),
            StepTo::End => false,
        };
        let is_clear = watch.nearest.as_ref().is_none_or(|nearest| is_beyond(nearest));
        if is_clear {
            if let (StepTo::Entry(key), Towards::Up) = (to, scan.towards)
                && space.grow(owner, &mut watch.ahead, key)
            {
                return Claimed::Done(Step::Passed);
            }
            let passed = watch.ahead.cut(to, scan.towards);
            space.lock(scan.index, owner, passed, scan.towards);
            return Claimed::Done(Step::Passed);
        }
        let mut passed = watch.ahead.clone().cut(to, scan.towards);
        let in_the_way = match scan.uncommitted {
            Uncommitted::Block => self.nearest_point(scan, owner, &passed),
            Uncommitted::Skip => None,
        };
        // The owner that inserted it has committed, rolled back or withdrawn the key.
        let Some((key, other)) = in_the_way else { return Claimed::Done(Step::Again) };
        let passed = passed.cut(StepTo::Entry(&key), scan.towards);
        space.lock(scan.index, owner, passed, scan.towards);
        let Some(wait) = wait else { return Claimed::Blocked };
        wait();
        match space.enqueue(scan.index, Waiter { owner: owner.clone(), wish: Wish::Pass(other) }) {
            true => Claimed::Blocked,
            false => Claimed::Done(Step::Again),
        }
    }

    /// Withdraws a waiting request. Returns false if it was granted meanwhile.
    pub fn abandon(&self, index: IndexId, owner: &Arc<Owner>) -> bool {
        let mut spaces = self.shard(index).spaces.lock();
        let Some(space) = spaces.get_mut(&index) else { return false };
        let before = space.waiters.len();
        space.waiters.retain(|waiter| !Arc::ptr_eq(&waiter.owner, owner));
        space.waiters.len() < before
    }

    /// Releases all claims of an owner; with a `seq`, owners that later claim the same keys depend on it.
    /// Returns the sleepers to wake.
    pub fn release(&self, owner: &Arc<Owner>, seq: Option<CommitSeq>) -> Vec<Arc<Owner>> {
        let before = owner.released.swap(seq.map_or(ENDED, |seq| seq.0), Ordering::SeqCst);
        debug_assert_eq!(
            before, 0,
            "ranges are released twice: the second release would hide a dependency (I8)"
        );
        debug_assert!(
            seq.is_none_or(|seq| seq.0 != 0),
            "a release without a CommitSeq leaves the ranges locked"
        );
        if !owner.waited_for.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let awaited_in = std::mem::take(&mut owner.claims.lock().awaited_in);
        let mut granted = Vec::new();
        for index in awaited_in {
            let mut spaces = self.shard(index).spaces.lock();
            if let Some(space) = spaces.get_mut(&index) {
                granted.append(&mut space.grant(index, self.durable_seq()));
                if space.is_unused() {
                    spaces.remove(&index);
                }
            }
        }
        granted
    }

    /// Removes an owner that has released its claims. `ranges_in` are the indexes in which it has ranges.
    pub fn forget(&self, owner: &Arc<Owner>, ranges_in: &[IndexId], has_points: bool) {
        debug_assert!(
            !owner.is_active(),
            "ranges are forgotten before they are released: waiters are not granted"
        );
        if has_points {
            self.concurrent_inserters(owner.trx).lock().remove(&owner.trx);
        }
        for index in ranges_in {
            let shard = self.shard(*index);
            let mut spaces = shard.spaces.lock();
            let Some(space) = spaces.get_mut(index) else { continue };
            let at = space.holders.iter().position(|holder| Arc::ptr_eq(&holder.owner, owner));
            // Dropped after the mutex is released: it may be large.
            let gone = at.map(|at| space.holders.swap_remove(at));
            if space.is_unused() {
                spaces.remove(index);
            }
            drop(spaces);
            debug_assert!(gone.is_some(), "an owner forgets ranges that it does not have");
            if gone.is_some() {
                let before = shard.guard.fetch_sub(1, Ordering::SeqCst);
                debug_assert!(before > 0, "the guard is too low: inserts pass over locked ranges");
            }
        }
        owner.claims.lock().points.clear();
    }

    /// Returns the owners that a waiter waits for.
    pub fn blockers(&self, index: IndexId, owner: &Arc<Owner>) -> Blockers {
        let spaces = self.shard(index).spaces.lock();
        let space = spaces.get(&index);
        let waiter = space.and_then(|space| space.waiters.iter().find(|w| Arc::ptr_eq(&w.owner, owner)));
        let holders = space.zip(waiter).map(|(space, waiter)| space.blockers(waiter)).unwrap_or_default();
        Blockers { holders, ..Blockers::default() }
    }

    /// Returns the kind of request with which an owner waits.
    pub fn wish_of(&self, index: IndexId, owner: &Arc<Owner>) -> Option<RangeWish> {
        let spaces = self.shard(index).spaces.lock();
        let waiter = spaces.get(&index)?.waiters.iter().find(|w| Arc::ptr_eq(&w.owner, owner))?;
        Some(match waiter.wish {
            Wish::Put(_) => RangeWish::Put,
            Wish::Pass(_) => RangeWish::Pass,
        })
    }

    /// Returns the number of owners with ranges, counted once per index.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.guard.load(Ordering::Relaxed)).sum()
    }
}

impl LockSpan {
    /// Removes and returns the part of the span that a step passes.
    fn cut(&mut self, to: StepTo<'_>, towards: Towards) -> LockSpan {
        let nothing = LockSpan { start: Vec::new(), end: Some(Vec::new()) };
        debug_assert!(
            match (to, towards) {
                (StepTo::End, _) => true,
                (StepTo::Entry(key), Towards::Up) => self.end.as_deref().is_none_or(|end| key < end),
                (StepTo::Entry(key), Towards::Down) => key >= &*self.start,
            },
            "a scan passes an entry outside of the span that it has announced"
        );
        match (to, towards) {
            (StepTo::End, _) => std::mem::replace(self, nothing),
            (StepTo::Entry(key), Towards::Up) => {
                let next = successor(key);
                let start = std::mem::replace(&mut self.start, next.clone());
                LockSpan { start, end: Some(next) }
            }
            (StepTo::Entry(key), Towards::Down) => {
                let end = self.end.replace(key.to_vec());
                LockSpan { start: key.to_vec(), end }
            }
        }
    }
}
