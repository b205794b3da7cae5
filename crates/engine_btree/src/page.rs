//! Slotted pages: the sorted entries of one node of a tree.
//!
//! `page_layout.rs` describes the bytes.
//!
//! A page holds keys with `low fence <= key < high fence`. A page without a high fence is the last of its
//! level. Keys are stored without the prefix that the fences share. In an inner node the value is the page id
//! of a child, which holds the keys from its entry's key up to the next entry's. The first entry's key is the
//! node's low fence.
//!
//! # Length
//! A page in memory is [`PAGE_BYTES`] or a multiple of it long. A page with fewer than [`SPLIT_ENTRIES_MIN`]
//! entries grows instead of being split, so the longest keys always fit. A page with more entries is longer
//! than `PAGE_BYTES` if it has grown before, or if it was read from such an image: reconciling (`changes.rs`)
//! restores older values, which may be longer. The next change that lacks space splits it. An image on disk
//! has no free space between slots and heap, so it is as long as its content.

use std::cmp::Ordering;
use std::io;
use std::ops::Range;

use cohort_base::{IndexId, prefetch};
use cohort_engine::EngineError;

use crate::page_layout::{
    DELETED, ENTRY_HEADER, HAS_HIGH, HEADER, KEY_BYTES_MAX, NAME_BYTES, OVERFLOW, REFERENCE, REFERRED, SLOT,
    shared_prefix,
};
use crate::sound::{ImageOf, Unsound};
use crate::version_ref::{TrxNo, VersionRef};

/// Size of a page, unless it has few long entries.
pub const PAGE_BYTES: usize = 16 << 10;
/// A page with fewer entries grows when it is full.
pub const SPLIT_ENTRIES_MIN: usize = 4;
/// Maximum length of a value in a page. Longer values are overflow values.
pub const INLINE_BYTES_MAX: usize = 4 << 10;

/// Cache lines of an entry that are prefetched. The processor prefetches the rest of a longer entry.
const PREFETCHED_LINES: usize = 2;
/// Maximum number of entries with the same head that are compared sequentially before a binary search.
const LOOKED_AT_MAX: usize = 4;
/// Size of a cache line.
const CACHE_LINE: usize = 64;

/// Error of an image that differs from the one that was written.
pub const BAD_CHECKSUM: Unsound = "the page fails its checksum";

/// A page number. It is not reused for another page of the same run while any thread may hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

/// An entry without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'p> {
    /// The newest version is a deletion.
    pub is_deleted: bool,
    /// The value refers to an extent ([`crate::store::Extent`]).
    pub is_overflow: bool,
    /// `None` if all views see this version.
    pub version: Option<VersionRef>,
    pub value: &'p [u8],
}

/// An entry that is neither deleted nor has an overflow value.
pub struct Straight<'p> {
    /// The writer. `None` if all views see the entry.
    pub trx: Option<TrxNo>,
    /// The key's suffix followed by the value.
    pub entry: &'p [u8],
    pub suffix_len: usize,
}

/// A page in memory. Access requires the latch of its frame.
#[derive(Clone, Debug)]
pub struct Page {
    bytes: Vec<u8>,
}

/// Identity and fences of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageSpec<'k> {
    pub index: IndexId,
    pub id: PageId,
    pub level: u8,
    pub low: &'k [u8],
    pub high: Option<&'k [u8]>,
}

/// Returns an error for a key that is too long for a page.
pub fn check_key(key: &[u8]) -> Result<(), EngineError> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    let text = format!("a key of {} bytes is longer than {KEY_BYTES_MAX}", key.len());
    Err(EngineError::Io(io::Error::new(io::ErrorKind::InvalidInput, text)))
}

fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            let mut head = [0; 4];
            head[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(head)
        }
    }
}

impl Page {
    /// Checks all invariants of the page in builds with debug assertions. Called after changes of structure.
    pub fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let heap = self.u32(24) as usize;
        debug_assert!(heap <= self.bytes.len(), "the heap begins beyond the page");
        debug_assert!(HEADER + self.len() * SLOT <= heap, "slots and heap overlap");
        let fences = self.low().len() + self.high().map_or(0, <[u8]>::len);
        debug_assert!(self.u32(32) as usize >= heap, "the fences lie outside of the heap");
        debug_assert!(self.high().is_none_or(|high| self.low() < high), "a page that covers no key");
        let shared = self.high().map_or(0, |high| shared_prefix(self.low(), high));
        debug_assert_eq!(self.prefix_len(), shared, "the prefix is not that of the fences");
        let entries: usize = (0..self.len()).map(|n| self.entry_len(n)).sum();
        debug_assert_eq!(
            entries + fences + self.u32(28) as usize,
            self.bytes.len() - heap,
            "bytes of the heap are counted wrong: a split would find no room, or too much"
        );
        (0..self.len()).for_each(|n| self.check_entry(n));
        if self.level() > 0 {
            debug_assert!(!self.is_empty(), "an inner node without children");
            debug_assert!(self.key(0) == self.low(), "the first child does not begin at the low fence");
        }
    }

    /// Checks an entry and its place among its neighbours.
    fn check_entry(&self, n: usize) {
        if !cfg!(debug_assertions) {
            return;
        }
        let (at, head) = self.slot(n);
        debug_assert!(at >= self.u32(24) as usize, "an entry lies outside of the heap");
        debug_assert!(at + self.entry_len(n) <= self.bytes.len(), "an entry ends beyond the page");
        let suffix = self.suffix(n);
        debug_assert_eq!(
            head,
            head_of(suffix),
            "a search passes over the entry: its head is that of another key"
        );
        debug_assert!(n == 0 || self.suffix(n - 1) < suffix, "keys do not ascend");
        debug_assert!(n + 1 >= self.len() || suffix < self.suffix(n + 1), "keys do not ascend");
        debug_assert!(
            *suffix >= self.low()[self.prefix_len()..],
            "a key below the low fence: no descent finds it"
        );
        debug_assert!(
            self.high().is_none_or(|high| *suffix < high[self.prefix_len()..]),
            "a key beyond the high fence: no descent finds it"
        );
        let entry = self.entry(n);
        debug_assert!(!entry.is_overflow || entry.value.len() == NAME_BYTES, "a reference of a wrong length");
        debug_assert!(
            self.level() == 0 || entry.value.len() == size_of::<PageId>(),
            "an entry of an inner node refers to no page"
        );
        debug_assert!(self.level() == 0 || entry.version.is_none(), "a child has versions");
        debug_assert!(self.level() == 0 || !entry.is_deleted, "a child is deleted, and stays in the tree");
    }

    /// Creates an empty page.
    pub fn new(spec: PageSpec<'_>) -> Page {
        debug_assert!(spec.high.is_none_or(|high| spec.low < high), "a page that covers no key");
        debug_assert!(spec.low.len() <= usize::from(u16::MAX), "the length of a fence does not fit");
        let fences = spec.low.len() + spec.high.map_or(0, <[u8]>::len);
        let mut page =
            Page { bytes: vec![0; PAGE_BYTES.max((HEADER + fences).next_multiple_of(PAGE_BYTES))] };
        let prefix = spec.high.map_or(0, |high| shared_prefix(spec.low, high));
        page.bytes[4] = spec.level;
        page.bytes[5] = if spec.high.is_some() { HAS_HIGH } else { 0 };
        page.set_u32(8, spec.index.0);
        page.bytes[16..24].copy_from_slice(&spec.id.0.to_le_bytes());
        page.set_u32(24, page.bytes.len() as u32);
        let at = page.allot(fences);
        page.set_u32(32, at as u32);
        page.bytes[at..at + spec.low.len()].copy_from_slice(spec.low);
        if let Some(high) = spec.high {
            page.bytes[at + spec.low.len()..at + fences].copy_from_slice(high);
        }
        page.set_u16(36, spec.low.len() as u16);
        page.set_u16(38, spec.high.map_or(0, <[u8]>::len) as u16);
        page.set_u16(40, prefix as u16);
        page
    }

    #[inline]
    fn u16(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    #[inline]
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    #[inline]
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    fn set_u16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn set_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Returns the page's number.
    pub fn id(&self) -> PageId {
        PageId(self.u64(16))
    }

    /// Returns the index that the page belongs to.
    pub fn index(&self) -> IndexId {
        IndexId(self.u32(8))
    }

    /// Returns the level, 0 for leaves.
    pub fn level(&self) -> u8 {
        self.bytes[4]
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.u32(12) as usize
    }

    /// Returns whether the page has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the low fence: the least key that the page may hold.
    #[inline]
    pub fn low(&self) -> &[u8] {
        let at = self.u32(32) as usize;
        &self.bytes[at..at + self.u16(36)]
    }

    /// Returns the high fence, the least key beyond the page, or `None` if the page is the last of its level.
    pub fn high(&self) -> Option<&[u8]> {
        let at = self.u32(32) as usize + self.u16(36);
        (self.bytes[5] & HAS_HIGH != 0).then(|| &self.bytes[at..at + self.u16(38)])
    }

    /// Returns whether the page covers the key.
    pub fn covers(&self, key: &[u8]) -> bool {
        self.low() <= key && self.high().is_none_or(|high| key < high)
    }

    /// Returns the common prefix of all keys of the page.
    #[inline]
    pub fn prefix(&self) -> &[u8] {
        &self.low()[..self.u16(40)]
    }

    fn prefix_len(&self) -> usize {
        self.u16(40)
    }

    #[inline]
    fn slot(&self, n: usize) -> (usize, u32) {
        let at = HEADER + n * SLOT;
        (self.u32(at) as usize, self.u32(at + 4))
    }

    /// Returns the n-th key without the prefix.
    #[inline]
    pub fn suffix(&self, n: usize) -> &[u8] {
        let (at, _) = self.slot(n);
        let start = at + ENTRY_HEADER + self.reference_len(at);
        &self.bytes[start..start + self.u16(at + 1)]
    }

    /// Returns the n-th entry if it is a [`Straight`] one, whose stored value a reader may use directly.
    #[inline]
    pub fn straight(&self, n: usize) -> Option<Straight<'_>> {
        let (at, _) = self.slot(n);
        self.straight_at(at)
    }

    #[inline]
    fn straight_at(&self, at: usize) -> Option<Straight<'_>> {
        let (header, rest) = self.bytes.get(at..)?.split_first_chunk::<ENTRY_HEADER>()?;
        let [flags, suffix @ .., a, b, c, d] = *header;
        let (trx, rest) = match flags {
            0 => (None, rest),
            REFERRED => {
                let (reference, rest) = rest.split_first_chunk::<REFERENCE>()?;
                let trx = reference.first_chunk().map(|bytes| TrxNo(u64::from_le_bytes(*bytes)));
                (trx, rest)
            }
            _ => return None,
        };
        let suffix_len = usize::from(u16::from_le_bytes(suffix));
        let value_len = u32::from_le_bytes([a, b, c, d]) as usize;
        Some(Straight { trx, entry: &rest[..suffix_len + value_len], suffix_len })
    }

    /// Like [`Page::straight`], for a range of entries. Prefetches the entry that is `ahead` entries further
    /// on.
    #[inline]
    pub fn straights(
        &self,
        entries: Range<usize>,
        ahead: usize,
    ) -> impl Iterator<Item = Option<Straight<'_>>> {
        let (slots, _) = self.bytes[HEADER..HEADER + self.len() * SLOT].as_chunks::<SLOT>();
        let offset = |slot: &[u8; SLOT]| u64::from_le_bytes(*slot) as u32 as usize;
        let coming = slots.get(entries.start + ahead..).unwrap_or_default().iter();
        let mut coming = coming.map(offset);
        slots[entries].iter().map(offset).map(move |at| {
            if let Some(soon) = coming.next() {
                (0..PREFETCHED_LINES).for_each(|line| prefetch(&self.bytes, soon + line * CACHE_LINE));
            }
            self.straight_at(at)
        })
    }

    /// Prefetches the n-th entry, if it exists.
    #[inline]
    pub fn prefetch(&self, n: usize) {
        if n < self.len() {
            let (at, _) = self.slot(n);
            (0..PREFETCHED_LINES).for_each(|line| prefetch(&self.bytes, at + line * CACHE_LINE));
        }
    }

    #[inline]
    fn reference_len(&self, at: usize) -> usize {
        if self.bytes[at] & REFERRED != 0 { REFERENCE } else { 0 }
    }

    /// Appends the n-th key to `out`.
    pub fn push_key(&self, n: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix());
        out.extend_from_slice(self.suffix(n));
    }

    /// Returns the n-th key.
    pub fn key(&self, n: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix_len() + self.suffix(n).len());
        self.push_key(n, &mut key);
        key
    }

    /// Returns the n-th entry.
    #[inline]
    pub fn entry(&self, n: usize) -> Entry<'_> {
        let (at, _) = self.slot(n);
        let flags = self.bytes[at];
        let suffix_len = self.u16(at + 1);
        let value_len = self.u32(at + 3) as usize;
        let reference = at + ENTRY_HEADER;
        let version = (flags & REFERRED != 0)
            .then(|| VersionRef { trx: TrxNo(self.u64(reference)), undo: self.u32(reference + 8) });
        let value = reference + self.reference_len(at) + suffix_len;
        Entry {
            is_deleted: flags & DELETED != 0,
            is_overflow: flags & OVERFLOW != 0,
            version,
            value: &self.bytes[value..value + value_len],
        }
    }

    /// Returns the child that the n-th entry of an inner node refers to.
    pub fn child(&self, n: usize) -> PageId {
        let value = self.entry(n).value;
        PageId(u64::from_le_bytes(value.try_into().expect("an inner entry holds a page id")))
    }

    /// Reads one byte of each cache line of the slots, so that the cache misses of a following search
    /// overlap.
    pub fn touch_slots(&self) {
        let slots = &self.bytes[HEADER..HEADER + self.len() * SLOT];
        let seen = slots.iter().step_by(CACHE_LINE).fold(0, |seen, byte| seen ^ byte);
        std::hint::black_box(seen);
    }

    /// Returns the position of a key that the page covers: `Ok` with its position, or `Err` with the position
    /// at which it would be inserted.
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        debug_assert!(key.starts_with(self.prefix()), "a key that the page does not cover");
        let suffix = &key[self.prefix_len()..];
        let head = head_of(suffix);
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            let (_, other) = self.slot(middle);
            let order = other.cmp(&head).then_with(|| self.suffix(middle).cmp(suffix));
            match order {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(from)
    }

    /// Returns the first position whose head is not less than the head of the key. The page covers the key.
    pub fn front_place(&self, key: &[u8]) -> usize {
        debug_assert!(key.starts_with(self.prefix()), "a key that the page does not cover");
        let head = head_of(&key[self.prefix_len()..]);
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            if self.slot(middle).1 < head {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// Returns the position of a key, if it exists. `from` is the result of [`Page::front_place`].
    pub fn find_from(&self, from: usize, key: &[u8]) -> Option<usize> {
        debug_assert_eq!(from, self.front_place(key), "the search begins after the key");
        let suffix = &key[self.prefix_len()..];
        let head = head_of(suffix);
        let alike = (from..self.len()).take(LOOKED_AT_MAX).take_while(|n| self.slot(*n).1 == head);
        for n in alike {
            match self.suffix(n).cmp(suffix) {
                Ordering::Less => {}
                Ordering::Equal => return Some(n),
                Ordering::Greater => return None,
            }
        }
        match self.len() - from > LOOKED_AT_MAX && self.slot(from + LOOKED_AT_MAX).1 == head {
            true => self.find(key).ok(),
            false => None,
        }
    }

    /// Returns the position of the child of an inner node that covers the key.
    pub fn child_place(&self, key: &[u8]) -> usize {
        match self.find(key) {
            Ok(n) => n,
            // The first entry's key is the page's low fence, so no key sorts before it.
            Err(n) => n.saturating_sub(1),
        }
    }

    /// Returns the bytes that a new entry uses.
    pub fn entry_bytes(&self, key: &[u8], entry: &Entry<'_>) -> usize {
        let reference = if entry.version.is_some() { REFERENCE } else { 0 };
        SLOT + ENTRY_HEADER + reference + key.len() - self.prefix_len() + entry.value.len()
    }

    /// Returns the bytes that the n-th entry uses.
    pub fn entry_bytes_at(&self, n: usize) -> usize {
        SLOT + self.entry_len(n)
    }

    fn gap(&self) -> usize {
        self.u32(24) as usize - HEADER - self.len() * SLOT
    }

    /// Returns the free bytes, including those that compaction would reclaim.
    pub fn free_bytes(&self) -> usize {
        self.gap() + self.u32(28) as usize
    }

    /// Returns the bytes of the entries, the fences and the header.
    pub fn used_bytes(&self) -> usize {
        self.bytes.len() - self.free_bytes()
    }

    fn allot(&mut self, bytes: usize) -> usize {
        let start = self.u32(24) as usize - bytes;
        self.set_u32(24, start as u32);
        start
    }

    /// Inserts an entry before the n-th. Returns false, without a change, if the page is full.
    pub fn insert(&mut self, n: usize, key: &[u8], entry: Entry<'_>) -> bool {
        debug_assert!(self.covers(key), "a key outside of the fences: no descent finds it");
        debug_assert!(n <= self.len(), "a gap between the slots");
        debug_assert!(self.level() == 0 || n > 0, "the first child of an inner node stays the first");
        let needed = self.entry_bytes(key, &entry);
        if !self.make_room(needed) {
            return false;
        }
        let suffix = &key[self.prefix_len()..];
        let at = self.write_entry(suffix, &entry);
        let len = self.len();
        let (start, end) = (HEADER + n * SLOT, HEADER + len * SLOT);
        self.bytes.copy_within(start..end, start + SLOT);
        self.set_u32(start, at as u32);
        self.set_u32(start + 4, head_of(suffix));
        self.set_u32(12, len as u32 + 1);
        self.check_entry(n);
        true
    }

    /// Replaces the n-th entry by another version. Returns false, without a change, if the page is full.
    pub fn replace(&mut self, n: usize, entry: Entry<'_>) -> bool {
        debug_assert!(n < self.len(), "an entry that does not exist is replaced");
        let (at, _) = self.slot(n);
        let old = self.entry(n);
        let same_size =
            old.value.len() == entry.value.len() && old.version.is_some() == entry.version.is_some();
        if same_size {
            let mut header = self.bytes[at];
            header = (header & REFERRED)
                | if entry.is_deleted { DELETED } else { 0 }
                | if entry.is_overflow { OVERFLOW } else { 0 };
            self.bytes[at] = header;
            let suffix_len = self.u16(at + 1);
            let mut place = at + ENTRY_HEADER;
            if let Some(version) = entry.version {
                self.bytes[place..place + 8].copy_from_slice(&version.trx.0.to_le_bytes());
                self.set_u32(place + 8, version.undo);
                place += REFERENCE;
            }
            place += suffix_len;
            self.bytes[place..place + entry.value.len()].copy_from_slice(entry.value);
            debug_assert!(self.entry(n) == entry, "another version than the given one is written");
            return true;
        }
        let key = self.key(n);
        let needed = self.entry_bytes(&key, &entry) - SLOT;
        let freed = self.entry_len(n);
        if self.free_bytes() + freed < needed && self.len() >= SPLIT_ENTRIES_MIN {
            return false;
        }
        self.remove(n);
        let is_put = self.insert(n, &key, entry);
        assert!(is_put, "room was counted");
        true
    }

    fn entry_len(&self, n: usize) -> usize {
        let (at, _) = self.slot(n);
        ENTRY_HEADER + self.reference_len(at) + self.u16(at + 1) + self.u32(at + 3) as usize
    }

    /// Removes the n-th entry.
    pub fn remove(&mut self, n: usize) {
        debug_assert!(n < self.len(), "an entry that does not exist is removed");
        let garbage = self.u32(28) + self.entry_len(n) as u32;
        self.set_u32(28, garbage);
        let len = self.len();
        let (start, end) = (HEADER + n * SLOT, HEADER + len * SLOT);
        self.bytes.copy_within(start + SLOT..end, start);
        self.set_u32(12, len as u32 - 1);
    }

    fn make_room(&mut self, needed: usize) -> bool {
        if self.gap() >= needed {
            return true;
        }
        if self.free_bytes() >= needed {
            self.rebuild(self.bytes.len());
            return true;
        }
        if self.len() >= SPLIT_ENTRIES_MIN {
            return false;
        }
        let used = self.used_bytes();
        self.rebuild((used + needed).next_multiple_of(PAGE_BYTES));
        true
    }

    fn write_entry(&mut self, suffix: &[u8], entry: &Entry<'_>) -> usize {
        let reference = if entry.version.is_some() { REFERENCE } else { 0 };
        let at = self.allot(ENTRY_HEADER + reference + suffix.len() + entry.value.len());
        self.bytes[at] = if entry.is_deleted { DELETED } else { 0 }
            | if entry.is_overflow { OVERFLOW } else { 0 }
            | if entry.version.is_some() { REFERRED } else { 0 };
        self.set_u16(at + 1, suffix.len() as u16);
        self.set_u32(at + 3, entry.value.len() as u32);
        let mut place = at + ENTRY_HEADER;
        if let Some(version) = entry.version {
            self.bytes[place..place + 8].copy_from_slice(&version.trx.0.to_le_bytes());
            self.set_u32(place + 8, version.undo);
            place += REFERENCE;
        }
        self.bytes[place..place + suffix.len()].copy_from_slice(suffix);
        place += suffix.len();
        self.bytes[place..place + entry.value.len()].copy_from_slice(entry.value);
        at
    }

    /// Rebuilds the page with a size of `size_bytes`, without holes in the heap.
    fn rebuild(&mut self, size_bytes: usize) {
        let spec = PageSpec {
            index: self.index(),
            id: self.id(),
            level: self.level(),
            low: self.low(),
            high: self.high(),
        };
        let mut fresh = Page::new(spec);
        if fresh.bytes.len() < size_bytes {
            fresh.grow(size_bytes);
        }
        debug_assert!(fresh.bytes.len() >= self.used_bytes(), "a rebuilt page is too short for its entries");
        for n in 0..self.len() {
            fresh.append_suffix(self.suffix(n), &self.entry(n));
        }
        debug_assert_eq!(fresh.u32(28), 0, "a rebuilt page has holes");
        *self = fresh;
    }

    /// Enlarges a page that has no entries. Its fences move to the new end.
    fn grow(&mut self, size_bytes: usize) {
        assert!(self.is_empty(), "only fences are moved");
        let start = self.u32(24) as usize;
        let tail = self.bytes.split_off(start);
        let moved = size_bytes - tail.len();
        self.bytes.resize(moved, 0);
        self.bytes.extend_from_slice(&tail);
        self.set_u32(24, moved as u32);
        self.set_u32(32, moved as u32);
    }

    fn append_suffix(&mut self, suffix: &[u8], entry: &Entry<'_>) {
        let at = self.write_entry(suffix, entry);
        let n = self.len();
        let slot = HEADER + n * SLOT;
        assert!(slot + SLOT <= at, "a rebuilt page has room for what it held");
        self.set_u32(slot, at as u32);
        self.set_u32(slot + 4, head_of(suffix));
        self.set_u32(12, n as u32 + 1);
    }

    /// Appends an entry with the largest key and grows the page if necessary. For images and bulk loads,
    /// whose callers limit the size.
    pub fn append(&mut self, key: &[u8], entry: Entry<'_>) {
        debug_assert!(self.covers(key), "a key outside of the fences: no descent finds it");
        let needed = self.entry_bytes(key, &entry);
        if self.gap() < needed {
            let used = self.used_bytes();
            self.rebuild((used + needed).next_multiple_of(PAGE_BYTES));
        }
        let suffix = key[self.prefix_len()..].to_vec();
        self.append_suffix(&suffix, &entry);
        self.check_entry(self.len() - 1);
    }

    /// Returns the on-disk image: without holes, with a checksum, and as short as possible.
    pub fn image(&self) -> Vec<u8> {
        self.check_invariants();
        let used = self.used_bytes();
        let mut packed = self.clone();
        packed.rebuild(self.bytes.len());
        let slots_end = HEADER + packed.len() * SLOT;
        let heap = packed.u32(24) as usize;
        // The heap moves next to the slots, and all offsets are adjusted.
        let shift = heap - slots_end;
        for n in 0..packed.len() {
            let at = HEADER + n * SLOT;
            packed.set_u32(at, packed.u32(at) - shift as u32);
        }
        packed.set_u32(32, packed.u32(32) - shift as u32);
        packed.set_u32(24, slots_end as u32);
        packed.bytes.drain(slots_end..heap);
        assert!(packed.bytes.len() <= used, "an image holds what the page holds");
        debug_assert_eq!(
            crate::sound::check(&packed.bytes, ImageOf::Eviction),
            Ok(()),
            "an image that no reader accepts"
        );
        let crc = crc32c::crc32c(&packed.bytes[4..]);
        packed.set_u32(0, crc);
        packed.bytes
    }

    /// Creates a page from its image.
    pub fn from_image(bytes: Vec<u8>, of: ImageOf) -> Result<Page, Unsound> {
        if bytes.len() < HEADER {
            return Err(BAD_CHECKSUM);
        }
        let mut page = Page { bytes };
        if crc32c::crc32c(&page.bytes[4..]) != page.u32(0) {
            return Err(BAD_CHECKSUM);
        }
        crate::sound::check(&page.bytes, of)?;
        page.set_u32(0, 0);
        let size = page.bytes.len().next_multiple_of(PAGE_BYTES);
        page.rebuild(size);
        page.check_invariants();
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(low: &[u8], high: Option<&[u8]>) -> Page {
        Page::new(PageSpec { index: IndexId(16), id: PageId(7), level: 0, low, high })
    }

    fn plain(value: &[u8]) -> Entry<'_> {
        Entry { is_deleted: false, is_overflow: false, version: None, value }
    }

    #[test]
    fn entries_are_found_replaced_and_removed_in_any_order() {
        let mut page = page(b"key-0000", Some(b"key-9999"));
        assert_eq!(page.prefix(), b"key-");
        let key = |n: u32| format!("key-{n:04}").into_bytes();
        for n in 0..200 {
            let key = key(n * 37 % 200);
            let at = page.find(&key).expect_err("new");
            assert!(page.insert(at, &key, plain(b"one")));
        }
        let version = Some(VersionRef { trx: TrxNo(9), undo: 3 });
        for n in 0..200 {
            let at = page.find(&key(n)).expect("there");
            assert_eq!(at, n as usize);
            assert!(page.replace(at, Entry { version, ..plain(b"another value") }));
        }
        for n in (0..200).step_by(2) {
            let at = page.find(&key(n)).expect("there");
            page.remove(at);
        }
        let image = Page::from_image(page.image(), ImageOf::Eviction).expect("undamaged");
        assert_eq!(image.len(), 100);
        for n in 0..100 {
            assert_eq!(image.key(n), key(n as u32 * 2 + 1));
            assert_eq!(image.entry(n), Entry { version, ..plain(b"another value") });
        }
        let mut damaged = page.image();
        damaged[100] ^= 1;
        assert!(Page::from_image(damaged, ImageOf::Eviction).is_err());
    }

    #[test]
    fn a_full_page_refuses_and_a_page_of_few_long_entries_grows() {
        let mut short = page(b"", None);
        let mut n = 0_u32;
        while short.insert(short.len(), &n.to_be_bytes(), plain(&[1; 100])) {
            n += 1;
        }
        assert!((120..PAGE_BYTES as u32 / 100).contains(&n), "{n} entries");
        let mut long = page(b"", None);
        for n in 0..SPLIT_ENTRIES_MIN as u8 {
            assert!(long.insert(long.len(), &[n; KEY_BYTES_MAX], plain(&[n; INLINE_BYTES_MAX])));
        }
        assert!(!long.insert(long.len(), &[9; KEY_BYTES_MAX], plain(&[9; INLINE_BYTES_MAX])));
        let image = Page::from_image(long.image(), ImageOf::Eviction).expect("undamaged");
        assert_eq!(image.key(3), [3; KEY_BYTES_MAX]);
    }
}
