//! Rollback segments: transaction records by number.
//!
//! # Concepts
//! Numbers are assigned without gaps and used as positions: records are stored in consecutive blocks of
//! [`BLOCK`] numbers. A record is removed in one of two ways. Purge *passes* records that all views see,
//! oldest first, but skips undecided transactions. The base then moves to the first remaining record. While
//! an old view is open, sweeping *drops* single records that are no longer reachable. An empty block uses one
//! word, except for the last block.
//!
//! # Invariants
//! - Every number below `base` was passed or dropped. All views see the writes of a passed transaction, and
//!   no entry refers to a dropped one.
//! - `len` is the number of records. The first block, if there is one, contains the base's number.
//! - Every record below `ordered` belongs to an ordered transaction.
//! - Sweeping and spilling each have a [`Progress`]. Undecided transactions that they meet are put on a
//!   waiting list and do not delay the records after them.

use std::collections::VecDeque;
use std::sync::Arc;

use cohort_base::CommitSeq;

use crate::sync::BLOCK;
use crate::trx_record::{TrxRecord, TrxState};

/// Number of blocks up to which all of them are checked.
const CHECKED_BLOCKS_MAX: usize = 2;

#[derive(Debug)]
struct Block {
    records: [Option<Arc<TrxRecord>>; BLOCK as usize],
    len: usize,
    /// One bit for each number that was passed.
    passed: u64,
}

impl Block {
    fn new() -> Box<Block> {
        Box::new(Block { records: [const { None }; BLOCK as usize], len: 0, passed: 0 })
    }
}

/// State of a number.
#[derive(Debug)]
pub enum Found<'s> {
    /// All views see the transaction's writes, or the record was dropped some time ago.
    Passed,
    /// The transaction's writes are no longer reachable, or are about to become so.
    Dropped,
    There(&'s Arc<TrxRecord>),
}

/// A rollback segment.
#[derive(Debug, Default)]
pub struct Segment {
    /// The purge low-water mark.
    base: u64,
    /// The next number.
    end: u64,
    /// Blocks from the base on.
    blocks: VecDeque<Option<Box<Block>>>,
    len: usize,
    /// The commit low-water mark.
    ordered: u64,
    /// Progress of sweeping.
    pub swept: Progress,
    /// Progress of spilling undo to the undo file.
    pub spilled: Progress,
}

/// Progress of a purge task that processes each record once, after its transaction was decided.
#[derive(Debug, Default)]
pub struct Progress {
    /// Records below this number were examined.
    next: u64,
    /// Examined records that must be processed later.
    waiting: Vec<u64>,
}

impl Segment {
    /// Returns the purge low-water mark: all views see the writes of transactions with smaller numbers.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the next record's number.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a record with the number [`Segment::end`].
    pub fn push(&mut self, record: Arc<TrxRecord>) {
        debug_assert_eq!(record.place(), self.end, "a record with another number than its place");
        let (n, at) = self.place_of(self.end);
        if n == self.blocks.len() {
            self.blocks.push_back(None);
        }
        let block = self.blocks[n].get_or_insert_with(Block::new);
        let other = block.records[at].replace(record);
        debug_assert!(other.is_none(), "a number is given twice");
        block.len += 1;
        self.end += 1;
        self.len += 1;
        self.check_invariants();
    }

    /// Checks the invariants in builds with debug assertions, as far as there are few blocks.
    fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        debug_assert!(self.base <= self.end, "purge has passed transactions that do not exist");
        debug_assert!(self.ordered <= self.end, "the commit low-water mark is above all transactions");
        debug_assert!(self.len as u64 <= self.end - self.base, "more records than numbers");
        debug_assert!(
            self.swept.next.max(self.spilled.next) <= self.end,
            "a task has examined a record of the future"
        );
        if self.blocks.len() > CHECKED_BLOCKS_MAX {
            return;
        }
        let blocks = || self.blocks.iter().flatten();
        debug_assert_eq!(
            blocks().map(|block| block.len).sum::<usize>(),
            self.len,
            "records are counted wrong"
        );
        debug_assert!(
            blocks().all(|block| block.records.iter().flatten().count() == block.len),
            "records of a block are counted wrong: it would be freed too early, or never"
        );
        debug_assert!(
            self.iter_from(self.base).next().is_none_or(|first| first.place() >= self.base),
            "purge has passed a record that exists"
        );
    }

    /// Returns the number's block and the position in it.
    fn place_of(&self, number: u64) -> (usize, usize) {
        ((number / BLOCK - self.base / BLOCK) as usize, (number % BLOCK) as usize)
    }

    /// Returns the record of a number that was assigned.
    pub fn find(&self, number: u64) -> Found<'_> {
        if number < self.base {
            return Found::Passed;
        }
        let (block, at) = self.place_of(number);
        let Some(Some(block)) = self.blocks.get(block) else { return Found::Passed };
        match &block.records[at] {
            Some(record) => Found::There(record),
            None if block.passed & (1 << at) != 0 => Found::Passed,
            None => Found::Dropped,
        }
    }

    /// Returns the records from a number on, in order.
    pub fn iter_from(&self, number: u64) -> impl Iterator<Item = &Arc<TrxRecord>> {
        let (first, at) = self.place_of(number.max(self.base));
        let blocks = self.blocks.iter().skip(first).enumerate();
        blocks
            .filter_map(|(n, block)| Some((n, block.as_ref()?)))
            .flat_map(move |(n, block)| block.records[if n == 0 { at } else { 0 }..].iter().flatten())
    }

    /// Removes a record, if it exists.
    pub fn drop_one(&mut self, number: u64) -> Option<Arc<TrxRecord>> {
        if number < self.base {
            return None;
        }
        let (n, at) = self.place_of(number);
        let is_last = n + 1 == self.blocks.len();
        let place = self.blocks.get_mut(n)?;
        let block = place.as_mut()?;
        let record = block.records[at].take()?;
        block.len -= 1;
        self.len -= 1;
        if block.len == 0 && !is_last {
            *place = None;
        }
        debug_assert_eq!(record.place(), number, "another record than the requested one is dropped");
        Some(record)
    }

    /// Removes records that all views have passed, and moves the base to the first remaining record.
    pub fn pass(&mut self, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            let (n, at) = self.place_of(number);
            if let Some(Some(block)) = self.blocks.get_mut(n) {
                block.passed |= 1 << at;
            }
            self.drop_one(number).expect("a record is passed once");
        }
        let (before, next) = (self.base, self.iter_from(self.base).next().map(|record| record.place()));
        self.base = next.unwrap_or(self.end);
        debug_assert!(
            self.base >= before,
            "the purge low-water mark falls: old references would be looked up"
        );
        let blocks = (self.base / BLOCK - before / BLOCK) as usize;
        debug_assert!(
            self.blocks.iter().take(blocks).flatten().all(|block| block.len == 0),
            "records are dropped with their blocks"
        );
        self.blocks.drain(..blocks.min(self.blocks.len()));
        self.check_invariants();
    }

    /// Returns the oldest records for which `is_over` holds, without undecided transactions among them.
    pub fn oldest(&self, is_over: impl Fn(TrxState) -> bool) -> impl Iterator<Item = &Arc<TrxRecord>> {
        self.decided_from(self.base, is_over)
    }

    fn decided_from(
        &self,
        number: u64,
        is_over: impl Fn(TrxState) -> bool,
    ) -> impl Iterator<Item = &Arc<TrxRecord>> {
        let records = self.iter_from(number).map(|record| (record.state(), record));
        let early = records.take_while(move |(state, _)| *state == TrxState::Installed || is_over(*state));
        early.filter(|(state, _)| *state != TrxState::Installed).map(|(_, record)| record)
    }

    /// Returns the records that a task has not processed and for which `is_over` holds: first those that were
    /// undecided when they were examined, then the others, oldest first.
    pub fn ahead(
        &self,
        progress: &Progress,
        is_over: impl Fn(TrxState) -> bool + Clone,
    ) -> impl Iterator<Item = &Arc<TrxRecord>> {
        let waiting = progress.waiting.iter().filter_map(|number| match self.find(*number) {
            Found::There(record) => Some(record),
            Found::Passed | Found::Dropped => None,
        });
        let may = is_over.clone();
        let waiting = waiting.filter(move |record| {
            let state = record.state();
            state != TrxState::Installed && may(state)
        });
        waiting.chain(self.decided_from(progress.next, is_over))
    }

    /// Moves the commit low-water mark to the first record that was not ordered at `until` or before. Returns
    /// the mark.
    pub fn advance_ordered(&mut self, until: CommitSeq) -> u64 {
        let from = self.ordered.max(self.base);
        let is_over = |state| matches!(state, TrxState::Committed(seq) if seq <= until);
        let stop = self.iter_from(from).find(|record| !is_over(record.state()));
        self.ordered = stop.map_or(self.end, |record| record.place());
        debug_assert!(self.ordered >= from, "the commit low-water mark falls");
        self.ordered
    }

    /// Advances a task beyond the number `last`. Records for which `waits` holds stay on its waiting list.
    pub fn advance(
        &mut self,
        progress: impl Fn(&mut Segment) -> &mut Progress,
        last: u64,
        waits: impl Fn(&TrxRecord) -> bool,
    ) {
        let Progress { next, mut waiting } = std::mem::take(progress(self));
        waiting.retain(|number| matches!(self.find(*number), Found::There(record) if waits(record)));
        let to = next.max(last + 1);
        let new = self.iter_from(next).take_while(|record| record.place() < to);
        waiting.extend(new.filter(|record| waits(record)).map(|record| record.place()));
        debug_assert!(
            waiting.is_sorted_by(|a, b| a < b),
            "a record waits twice, and would be processed twice"
        );
        *progress(self) = Progress { next: to, waiting };
        self.check_invariants();
    }
}
