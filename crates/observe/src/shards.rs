//! Sums of statements, spread over shards so that threads do not wait for each other.
//!
//! A shard is a mutex around a list of cells by slot. A statement that ends adds its numbers in its thread's
//! shard, or in the next free one. So a row of the statistics is the sum of a slot's cells over all shards.
//!
//! # Invariants
//! - A cell belongs to one generation of its slot. [`Shards::add`] checks it under the shard's lock.
//! - The generation is raised before the shards are emptied ([`Shards::take`]). So a statement that adds
//!   under the old generation does so before the cell is taken, and is part of what is taken.
//! - No shard's lock is held while another lock is requested, and a section never sleeps: a fiber keeps its
//!   thread.

use crate::latencies::Latencies;
use crate::measured::{Measure, Measured};
use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering, PIECE};

/// Sums of all statements of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub sums: Measured,
    /// Shortest and longest latency in nanoseconds.
    pub min_ns: u64,
    pub max_ns: u64,
    /// Wall-clock time of the end of the last statement, in microseconds.
    pub last_us: u64,
    pub latencies: Latencies,
}

impl Totals {
    /// Adds one statement that ended at `now_us`. Returns the number of bytes that the sums have grown by.
    #[inline]
    pub(crate) fn record(&mut self, measured: &Measured, now_us: u64) -> usize {
        let latency_ns = measured.get(Measure::Latency);
        self.min_ns = if self.is_empty() { latency_ns } else { self.min_ns.min(latency_ns) };
        self.max_ns = self.max_ns.max(latency_ns);
        self.last_us = self.last_us.max(now_us);
        self.sums.merge(measured);
        self.latencies.record(latency_ns / 1000)
    }

    /// Adds the statements of another. Returns the number of bytes that the sums have grown by.
    pub fn merge(&mut self, other: &Totals) -> usize {
        if other.is_empty() {
            self.sums.merge(&other.sums);
            return 0;
        }
        self.min_ns = if self.is_empty() { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.last_us = self.last_us.max(other.last_us);
        self.sums.merge(&other.sums);
        self.latencies.merge(&other.latencies)
    }

    fn is_empty(&self) -> bool {
        self.sums.get(Measure::Calls) == 0
    }
}

/// Bytes of the part of a row in one shard, without its histogram.
const CELL_BYTES: usize = size_of::<Totals>();

/// The parts of all rows in one shard, by slot.
type Cells = Vec<Option<Box<Totals>>>;

/// Latencies of the statements of a kind that did not run inside another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindTimes {
    pub sum_ns: u64,
    pub errors: u64,
    pub latencies: Latencies,
}

/// The contents of a shard.
#[derive(Default)]
struct Held {
    cells: Cells,
    /// By kind. They take at most some 1.5 KB for each kind that has run.
    kinds: Vec<KindTimes>,
}

/// A shard on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Held>);

/// All shards.
pub(crate) struct Shards {
    shards: Box<[Shard]>,
    /// The generations of all slots.
    generations: Box<[AtomicU32]>,
}

impl Shards {
    /// Creates `shards` shards for `slots` slots.
    pub fn new(shards: usize, slots: usize) -> Shards {
        Shards {
            shards: (0..shards.next_power_of_two()).map(|_| Shard::default()).collect(),
            generations: (0..slots).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.generations.len()
    }

    /// Returns the current generation of a slot.
    pub fn generation(&self, slot: usize) -> u32 {
        self.generations[slot].load(Ordering::Acquire)
    }

    /// Starts another generation of a slot. Called with the directory locked.
    pub fn renew(&self, slot: usize) {
        let generation = &self.generations[slot];
        generation.store(generation.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Locks the shard of a thread, or the next one that is free.
    #[inline]
    fn lock(&self, thread: usize) -> MutexGuard<'_, Held> {
        let own = &self.shards[thread & (self.shards.len() - 1)].0;
        own.try_lock().unwrap_or_else(|| self.lock_another(thread))
    }

    #[cold]
    fn lock_another(&self, thread: usize) -> MutexGuard<'_, Held> {
        let mask = self.shards.len() - 1;
        let free =
            (1..self.shards.len()).find_map(|n| self.shards[thread.wrapping_add(n) & mask].0.try_lock());
        free.unwrap_or_else(|| self.shards[thread & mask].0.lock())
    }

    /// Adds a statement. Returns the number of bytes that the shard has grown by, or `None` if the slot
    /// belongs to another statement by now.
    #[inline]
    pub fn add(
        &self,
        thread: usize,
        (slot, generation): (usize, u32),
        measured: &Measured,
        now_us: u64,
        kind: Option<usize>,
    ) -> Option<usize> {
        let mut held = self.lock(thread);
        if self.generation(slot) != generation {
            return None;
        }
        if let Some(kind) = kind {
            if held.kinds.len() <= kind {
                held.kinds.resize_with(kind + 1, KindTimes::default);
            }
            let latency_ns = measured.get(Measure::Latency);
            let times = &mut held.kinds[kind];
            times.sum_ns = times.sum_ns.wrapping_add(latency_ns);
            times.errors = times.errors.wrapping_add(measured.get(Measure::Errors));
            times.latencies.record(latency_ns / 1000);
        }
        let (cell, made) = cell_of(&mut held.cells, slot);
        Some(made + cell.record(measured, now_us))
    }

    /// Adds the sums of earlier statements to a slot. Returns the number of bytes that the shard has grown
    /// by, or `None` if the slot belongs to another statement by now.
    pub fn restore(&self, (slot, generation): (usize, u32), totals: &Totals) -> Option<usize> {
        let mut held = self.lock(0);
        if self.generation(slot) != generation {
            return None;
        }
        let (cell, made) = cell_of(&mut held.cells, slot);
        Some(made + cell.merge(totals))
    }

    /// Returns the latencies by kind.
    pub fn kinds(&self) -> Vec<KindTimes> {
        let mut all: Vec<KindTimes> = Vec::new();
        for shard in &self.shards {
            let held = shard.0.lock();
            if all.len() < held.kinds.len() {
                all.resize_with(held.kinds.len(), KindTimes::default);
            }
            for (sum, times) in all.iter_mut().zip(&held.kinds) {
                sum.sum_ns = sum.sum_ns.wrapping_add(times.sum_ns);
                sum.errors = sum.errors.wrapping_add(times.errors);
                sum.latencies.merge(&times.latencies);
            }
        }
        all
    }

    /// Returns the sums by slot without histograms. Each shard is read in short pieces.
    pub fn brief(&self) -> Vec<Measured> {
        let mut sums: Vec<Measured> = Vec::new();
        for shard in &self.shards {
            for from in (0..).step_by(PIECE) {
                let held = shard.0.lock();
                let end = held.cells.len().min(from + PIECE);
                if from >= end {
                    break;
                }
                if sums.len() < end {
                    sums.resize_with(end, Measured::default);
                }
                for (sum, cell) in sums[from..end].iter_mut().zip(&held.cells[from..end]) {
                    cell.iter().for_each(|cell| sum.merge(&cell.sums));
                }
            }
        }
        sums
    }

    /// Returns the number of statements of a slot.
    pub fn calls(&self, slot: usize) -> u64 {
        let of = |shard: &Shard| {
            let held = shard.0.lock();
            held.cells.get(slot).and_then(Option::as_ref).map_or(0, |cell| cell.sums.get(Measure::Calls))
        };
        self.shards.iter().map(of).sum()
    }

    /// Moves the sums of a slot, whose generation was raised, into another slot. Returns the number of bytes
    /// that became free, less those that the other slot has grown by.
    pub fn take(&self, slot: usize, into: usize) -> usize {
        let mut freed = 0;
        for shard in &self.shards {
            let mut held = shard.0.lock();
            let Some(cell) = held.cells.get_mut(slot).and_then(Option::take) else { continue };
            let (other, made) = cell_of(&mut held.cells, into);
            let grown = made + other.merge(&cell);
            freed += (CELL_BYTES + cell.latencies.bytes()).saturating_sub(grown);
        }
        freed
    }

    /// Removes all sums by slot. The generations were raised.
    pub fn clear(&self) {
        for shard in &self.shards {
            // Dropped after the lock is released.
            let _old = std::mem::take(&mut shard.0.lock().cells);
        }
    }

    /// Returns the sums by slot. Each shard is copied in short pieces.
    pub fn sums(&self) -> Vec<Option<Totals>> {
        let mut sums: Vec<Option<Totals>> = Vec::new();
        for shard in &self.shards {
            let mut from = 0;
            loop {
                let mut piece: Vec<(usize, Totals)> = Vec::with_capacity(PIECE);
                let end = {
                    let held = shard.0.lock();
                    let there = held.cells.iter().enumerate().skip(from).take(PIECE);
                    let copied = there.filter_map(|(slot, cell)| Some((slot, Totals::clone(cell.as_ref()?))));
                    piece.extend(copied);
                    from += PIECE;
                    from >= held.cells.len()
                };
                for (slot, totals) in piece {
                    if sums.len() <= slot {
                        sums.resize(slot + 1, None);
                    }
                    match &mut sums[slot] {
                        Some(sum) => _ = sum.merge(&totals),
                        none => *none = Some(totals),
                    }
                }
                if end {
                    break;
                }
            }
        }
        sums
    }
}

/// Returns the cell of a slot, and the number of bytes that it has taken if it is new.
#[inline]
fn cell_of(cells: &mut Cells, slot: usize) -> (&mut Totals, usize) {
    let mut made = 0;
    if cells.len() <= slot {
        let before = cells.capacity();
        cells.resize_with(slot + 1, || None);
        made += (cells.capacity() - before) * size_of::<Option<Box<Totals>>>();
    }
    let place = &mut cells[slot];
    if place.is_none() {
        made += CELL_BYTES;
    }
    (place.get_or_insert_default(), made)
}
