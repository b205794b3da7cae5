//! A rollback segment: transaction records by their numbers.
//!
//! # Concepts
//! Numbers are given without a hole and looked up in place: records lie in blocks of [`BLOCK`] numbers, one
//! block behind the other. A record goes in one of two ways. Purge *passes* what everybody sees, oldest first
//! but for transactions that stay undecided; the base moves up to the first record that is left. Behind a
//! view that is held, sweeping *drops* single records that nobody refers to. A block without records takes a
//! word, but for the last one.
//!
//! # Invariants
//! - Every number below `base` was passed or dropped. Everybody sees what a transaction wrote that was
//!   passed, and no entry refers to one that was dropped.
//! - `len` is the number of records; the first block, if there is one, has the base's number.
//! - Every record below `ordered` is of an ordered transaction.
//! - Sweeping and spilling each have their [`Progress`]: what is undecided when they come by waits in a list
//!   and holds back nothing behind it.

use std::collections::VecDeque;
use std::sync::Arc;

use cohort_base::CommitSeq;

use crate::sync::BLOCK;
use crate::version::{TrxRecord, TrxState};

#[derive(Debug)]
struct Block {
    records: [Option<Arc<TrxRecord>>; BLOCK as usize],
    len: usize,
    /// A bit for each number that was passed.
    passed: u64,
}

impl Block {
    fn new() -> Box<Block> {
        Box::new(Block { records: [const { None }; BLOCK as usize], len: 0, passed: 0 })
    }
}

/// What is known of a number.
#[derive(Debug)]
pub enum Found<'s> {
    /// Everybody sees what the transaction wrote; or it was dropped a while ago.
    Passed,
    /// No chain leads to what the transaction wrote, or none will in a moment.
    Dropped,
    There(&'s Arc<TrxRecord>),
}

/// One segment.
#[derive(Debug, Default)]
pub struct Segment {
    /// The watermark.
    base: u64,
    /// The next number.
    end: u64,
    /// Those from the base's on.
    blocks: VecDeque<Option<Box<Block>>>,
    len: usize,
    /// The ordered mark.
    ordered: u64,
    /// Records that were swept.
    pub swept: Progress,
    /// Records whose undo was moved into the undo file.
    pub spilled: Progress,
}

/// How far purge has come with something that it does about each record once, when the transaction is over.
#[derive(Debug, Default)]
pub struct Progress {
    /// It has looked at the records before this number.
    next: u64,
    /// Those of them that are to be looked at again.
    waiting: Vec<u64>,
}

impl Segment {
    /// The watermark: everybody sees what transactions with smaller numbers wrote.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The next record's number.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Records that are there.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The next record, with the number [`Segment::end`].
    pub fn push(&mut self, record: Arc<TrxRecord>) {
        let (n, at) = self.place_of(self.end);
        if n == self.blocks.len() {
            self.blocks.push_back(None);
        }
        let block = self.blocks[n].get_or_insert_with(Block::new);
        block.records[at] = Some(record);
        block.len += 1;
        self.end += 1;
        self.len += 1;
    }

    /// The number's block, and its place in that.
    fn place_of(&self, number: u64) -> (usize, usize) {
        ((number / BLOCK - self.base / BLOCK) as usize, (number % BLOCK) as usize)
    }

    /// The record of a number that was given.
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

    /// The records from a number on, in order.
    pub fn iter_from(&self, number: u64) -> impl Iterator<Item = &Arc<TrxRecord>> {
        let (first, at) = self.place_of(number.max(self.base));
        let blocks = self.blocks.iter().skip(first).enumerate();
        blocks
            .filter_map(|(n, block)| Some((n, block.as_ref()?)))
            .flat_map(move |(n, block)| block.records[if n == 0 { at } else { 0 }..].iter().flatten())
    }

    /// Takes a record out, if it is there.
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
        Some(record)
    }

    /// Takes out records that everybody has passed, and moves the base to the first one that is left.
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
        let blocks = (self.base / BLOCK - before / BLOCK) as usize;
        self.blocks.drain(..blocks.min(self.blocks.len()));
    }

    /// The oldest records that `is_over` holds for, without those of undecided transactions between them.
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

    /// Records that were not looked at and that `is_over` holds for, oldest first but for those that were
    /// undecided when they were.
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

    /// Moves the ordered mark up to the first record of a transaction that was not ordered at `until` or
    /// before. Returns it.
    pub fn advance_ordered(&mut self, until: CommitSeq) -> u64 {
        let from = self.ordered.max(self.base);
        let is_over = |state| matches!(state, TrxState::Committed(seq) if seq <= until);
        let stop = self.iter_from(from).find(|record| !is_over(record.state()));
        self.ordered = stop.map_or(self.end, |record| record.place());
        self.ordered
    }

    /// The records up to this number were looked at; those that `waits` holds for are given again.
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
        *progress(self) = Progress { next: to, waiting };
    }
}
