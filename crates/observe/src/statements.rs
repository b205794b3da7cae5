//! Statistics of statements by digest: [`Statements`].
//!
//! # Concepts
//! - A *slot* is the number of a row. The first slots are fixed, two for each kind of statement: one for
//!   statements without a digest, and one for evicted statements ("others"). Each other slot belongs to one
//!   statement at a time, and each new owner starts a *generation*.
//! - A [`StatementRef`] is a slot and a generation. Plans keep it, so that their statements need no lookup.
//! - *Shards* (`shards.rs`) hold the sums, the *directory* (`directory.rs`) the texts.
//!
//! # Life cycle of a row
//! ```text
//! intern --> on probation --> lasting --> evicted: its sums move to "others" of its kind
//!                  \----------------------^
//! ```
//!
//! # Invariants
//! - The sum over all rows falls only at [`Statements::reset`].
//! - Charged bytes are at most `bytes_max` and one row, and an eighth more while a reader copies the rows.
//!
//! # Lock order
//! `moves`, directory, shard, sample. A statement that ends locks only a shard, unless its row is unknown.
//! `moves` is held while sums move between slots and while a reader copies them, so that the reader sees
//! each statement once. A statement only tries to lock `moves`.
//!
//! # Failure
//! Without a free slot or memory a statement is counted in "others" of its kind.

use std::sync::Arc;

use cohort_base::whole_chars;

use crate::directory::{Directory, ENTRY_BYTES, Entry, PLAN_SHARE, Sample, StatementKey};
use crate::measured::Measured;
use crate::shards::{KindTimes, Shards, Totals};
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock};

/// Share of the memory for statements on probation.
const PROBATION_SHARE: u64 = 10;
/// Share of the memory that may be exceeded while a reader copies the rows.
const EXCESS_SHARE: u64 = 8;
/// Bytes of the shortest row. They bound the number of slots.
const ROW_BYTES_MIN: u64 = 512;
/// Attempts to find a statement's row while others evict rows.
const ATTEMPTS: usize = 4;
/// Minimum time between two sample plans of a statement.
const PLAN_INTERVAL_US: u64 = 60_000_000;
/// Evictions for one new statement.
const EVICTIONS: usize = 64;

/// Reference to a row: its slot and its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementRef {
    slot: u32,
    generation: u32,
}

impl StatementRef {
    /// Returns the reference as a number, which is not 0.
    pub fn packed(self) -> u64 {
        (u64::from(self.generation) << 32 | u64::from(self.slot)).wrapping_add(1)
    }

    /// Returns the reference of a number that [`StatementRef::packed`] has returned; `None` for 0.
    pub fn unpacked(number: u64) -> Option<StatementRef> {
        let number = number.checked_sub(1)?;
        Some(StatementRef { slot: number as u32, generation: (number >> 32) as u32 })
    }
}

/// A row of the statistics.
#[derive(Clone, Debug)]
pub struct StatementRow {
    /// `None` for statements without a digest, and for evicted ones.
    pub key: Option<StatementKey>,
    /// True for the sum of evicted statements.
    pub is_others: bool,
    /// Normalised text; empty without a digest.
    pub text: Arc<str>,
    pub kind: usize,
    pub first_us: u64,
    pub sample: Sample,
    pub totals: Totals,
}

/// Statistics of statements.
pub struct Statements {
    directory: RwLock<Directory>,
    shards: Shards,
    moves: Mutex<()>,
    kinds: usize,
    /// Samples of statements without a digest, by kind.
    samples: Mutex<Vec<Option<(u64, Sample)>>>,
    bytes: AtomicU64,
    bytes_max: u64,
    sample_bytes: usize,
    /// Number of evicted rows, and of statements for which there was no row.
    lost: AtomicU64,
}

impl Statements {
    /// Creates empty statistics with at most `bytes_max` bytes, for statements of `kinds` kinds. With 0 bytes
    /// all statements are counted by kind only. A sample has at most `sample_bytes` bytes.
    pub fn new(kinds: usize, bytes_max: u64, threads: usize, sample_bytes: usize) -> Statements {
        let slots = 2 * kinds + (bytes_max / ROW_BYTES_MIN) as usize;
        Statements {
            directory: RwLock::new(Directory::new(2 * kinds)),
            shards: Shards::new(threads, slots),
            moves: Mutex::default(),
            kinds,
            samples: Mutex::new(vec![None; kinds]),
            bytes: AtomicU64::new(0),
            bytes_max,
            sample_bytes,
            lost: AtomicU64::new(0),
        }
    }

    /// Returns the row of statements of a kind without a digest.
    pub fn without_digest(&self, kind: usize) -> StatementRef {
        StatementRef { slot: kind as u32, generation: 0 }
    }

    /// Returns the row of evicted statements of a kind.
    fn others(&self, kind: usize) -> StatementRef {
        StatementRef { slot: (self.kinds + kind) as u32, generation: 0 }
    }

    /// Returns whether the row still belongs to the statement that the reference was made for.
    #[inline]
    pub fn is_current(&self, of: StatementRef) -> bool {
        self.shards.generation(of.slot as usize) == of.generation
    }

    /// Returns the number of rows that were evicted, or for which there was no memory.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns the number of statements with a digest that have a row.
    pub fn len(&self) -> usize {
        self.directory.read().entries().len()
    }

    /// Returns whether no statement with a digest has a row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes charged for all rows.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the row of a statement, which is created if it does not exist.
    pub fn intern(&self, key: &StatementKey, text: &Arc<str>, kind: usize, now_us: u64) -> StatementRef {
        if let Some(entry) = self.directory.read().find(key) {
            return reference(entry);
        }
        if !self
            .make_room((ENTRY_BYTES + text.len() + self.sample_bytes + self.sample_bytes / PLAN_SHARE) as u64)
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return self.others(kind);
        }
        let mut directory = self.directory.write();
        if let Some(entry) = directory.find(key) {
            return reference(entry);
        }
        let Some(slot) = directory.free_slot(self.shards.slots()) else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return self.others(kind);
        };
        let entry = Arc::new(Entry {
            slot,
            generation: self.shards.generation(slot),
            key: key.clone(),
            text: Arc::clone(text),
            kind,
            first_us: now_us,
            sample: Mutex::default(),
        });
        let bytes = entry.bytes(self.sample_bytes);
        directory.add(&entry, bytes);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        reference(&entry)
    }

    /// Evicts rows until `bytes` more are available. Returns false if they are not.
    fn make_room(&self, bytes: u64) -> bool {
        let is_over = |max: u64| self.bytes().saturating_add(bytes) > max;
        if !is_over(self.bytes_max) {
            return true;
        }
        let Some(_moves) = self.moves.try_lock() else {
            return !is_over(self.bytes_max + self.bytes_max / EXCESS_SHARE);
        };
        let mut directory = self.directory.write();
        for _ in 0..EVICTIONS {
            if !is_over(self.bytes_max) {
                return true;
            }
            let victim = directory.victim(
                (self.bytes_max / PROBATION_SHARE) as usize,
                |entry| entry.bytes(self.sample_bytes),
                |slot| self.shards.calls(slot),
            );
            let Some(victim) = victim else { break };
            directory.remove(&victim);
            self.shards.renew(victim.slot);
            let of_cells = self.shards.take(victim.slot, self.others(victim.kind).slot as usize);
            directory.release(victim.slot);
            let freed = (victim.bytes(self.sample_bytes) + of_cells) as u64;
            self.bytes.fetch_sub(freed.min(self.bytes()), Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        !is_over(self.bytes_max)
    }

    /// Counts a statement that ended at `now_us`. Returns false, and counts nothing, if the row was evicted
    /// or reset. `thread` numbers the calling thread. `kind` is `None` for a statement that ran inside
    /// another one, whose time is part of the other's.
    #[inline]
    pub fn record(
        &self,
        thread: usize,
        of: StatementRef,
        measured: &Measured,
        now_us: u64,
        kind: Option<usize>,
    ) -> bool {
        let added = self.shards.add(thread, (of.slot as usize, of.generation), measured, now_us, kind);
        let Some(grown) = added else { return false };
        if grown > 0 {
            self.charge(grown);
        }
        true
    }

    #[cold]
    fn charge(&self, grown: usize) {
        let before = self.bytes.fetch_add(grown as u64, Ordering::Relaxed);
        if before + grown as u64 > self.bytes_max {
            self.make_room(0);
        }
    }

    /// Counts a statement of a kind in the row `known`. If that was evicted meanwhile, `row` returns its row;
    /// it is called again if that is evicted, too. `is_nested`: the statement ran inside another one. Returns
    /// the row.
    #[inline]
    pub fn count(
        &self,
        thread: usize,
        (kind, is_nested): (usize, bool),
        measured: &Measured,
        now_us: u64,
        known: Option<StatementRef>,
        row: impl FnMut() -> StatementRef,
    ) -> StatementRef {
        match known {
            Some(known) if self.record(thread, known, measured, now_us, (!is_nested).then_some(kind)) => {
                known
            }
            _ => self.count_unknown(thread, (kind, is_nested), measured, now_us, row),
        }
    }

    #[cold]
    fn count_unknown(
        &self,
        thread: usize,
        (kind, is_nested): (usize, bool),
        measured: &Measured,
        now_us: u64,
        mut row: impl FnMut() -> StatementRef,
    ) -> StatementRef {
        let top = (!is_nested).then_some(kind);
        for _ in 0..ATTEMPTS {
            let of = row();
            if self.record(thread, of, measured, now_us, top) {
                return of;
            }
        }
        let others = self.others(kind);
        self.record(thread, others, measured, now_us, top);
        others
    }

    /// Keeps an example of a statement, unless a slower one is kept. `text` is cut.
    pub fn keep_sample(&self, of: StatementRef, text: &str, latency_ns: u64, seen_us: u64) {
        if self.sample_bytes == 0 {
            return;
        }
        let put = |sample: &mut Sample| {
            if latency_ns >= sample.latency_ns {
                let text = whole_chars(text, self.sample_bytes).to_owned();
                (sample.text, sample.seen_us, sample.latency_ns) = (text, seen_us, latency_ns);
            }
        };
        let slot = of.slot as usize;
        if slot < self.kinds {
            let mut samples = self.samples.lock();
            return put(&mut samples[slot].get_or_insert((seen_us, Sample::default())).1);
        }
        let directory = self.directory.read();
        if let Some(entry) = directory.of_slot(slot).filter(|entry| entry.generation == of.generation) {
            put(&mut entry.sample.lock());
        }
    }

    /// Keeps the plan of a statement that was planned at `now_us`, unless a recent one is kept. `plan`
    /// returns its text, which is cut.
    pub fn keep_plan(&self, of: StatementRef, now_us: u64, plan: impl FnOnce() -> Option<String>) {
        let bytes_max = self.sample_bytes / PLAN_SHARE;
        let entry = self.directory.read().of_slot(of.slot as usize).cloned();
        let Some(entry) = entry.filter(|entry| entry.generation == of.generation && bytes_max > 0) else {
            return;
        };
        let is_old = |sample: &Sample| now_us.saturating_sub(sample.planned_us) >= PLAN_INTERVAL_US;
        if is_old(&entry.sample.lock())
            && let Some(plan) = plan()
        {
            let mut sample = entry.sample.lock();
            (sample.plan, sample.planned_us) = (whole_chars(&plan, bytes_max).to_owned(), now_us);
        }
    }

    /// Returns all rows that have counted a statement.
    pub fn rows(&self) -> Vec<StatementRow> {
        let _moves = self.moves.lock();
        let entries = self.directory.read().entries();
        let mut sums = self.shards.sums();
        let mut take = |slot: usize| sums.get_mut(slot).and_then(Option::take);
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(totals) = take(entry.slot) else { continue };
            let sample = entry.sample.lock().clone();
            rows.push(StatementRow {
                key: Some(entry.key.clone()),
                is_others: false,
                text: Arc::clone(&entry.text),
                kind: entry.kind,
                first_us: entry.first_us,
                sample,
                totals,
            });
        }
        let samples = self.samples.lock().clone();
        for slot in 0..2 * self.kinds {
            let Some(totals) = take(slot) else { continue };
            let (kind, is_others) = (slot % self.kinds, slot >= self.kinds);
            let kept = if is_others { None } else { samples[kind].clone() };
            let (first_us, sample) = kept.unwrap_or_default();
            let text = Arc::from("");
            rows.push(StatementRow { key: None, is_others, text, kind, first_us, sample, totals });
        }
        rows
    }

    /// Returns the latencies by kind since the start of the server, of statements that did not run inside
    /// others.
    pub fn kinds(&self) -> Vec<KindTimes> {
        self.shards.kinds()
    }

    /// Returns the sums of the statements with a digest that did not run inside others.
    pub fn brief(&self) -> Vec<(u128, Measured)> {
        let _moves = self.moves.lock();
        let entries = self.directory.read().entries();
        let sums = self.shards.brief();
        let top = entries.iter().filter(|entry| !entry.key.is_nested);
        top.filter_map(|entry| Some((entry.key.digest, *sums.get(entry.slot)?))).collect()
    }

    /// Adds a row that an earlier start has counted. Without memory it is added to "others" of its kind.
    pub(crate) fn restore(&self, row: &StatementRow) {
        let of = match &row.key {
            Some(key) => self.intern(key, &row.text, row.kind, row.first_us),
            None if row.is_others => self.others(row.kind),
            None => self.without_digest(row.kind),
        };
        let put = |of: StatementRef| self.shards.restore((of.slot as usize, of.generation), &row.totals);
        if let Some(grown) = put(of).or_else(|| put(self.others(row.kind)))
            && grown > 0
        {
            self.charge(grown);
        }
    }

    /// Removes all rows.
    pub fn reset(&self) {
        let _moves = self.moves.lock();
        let mut directory = self.directory.write();
        for entry in directory.entries() {
            self.shards.renew(entry.slot);
        }
        self.shards.clear();
        directory.clear();
        self.samples.lock().fill(None);
        self.bytes.store(0, Ordering::Relaxed);
    }
}

fn reference(entry: &Entry) -> StatementRef {
    StatementRef { slot: entry.slot as u32, generation: entry.generation }
}
