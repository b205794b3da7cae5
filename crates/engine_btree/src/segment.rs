//! A rollback segment: transaction records by their numbers.
//!
//! # Concepts
//! Numbers are given without a hole and looked up in place: records lie in blocks of [`BLOCK`] numbers, one
//! block behind the other. A record goes in one of two ways. Purge *passes* the oldest ones, which moves the
//! base forward. Behind a view that is held, sweeping *drops* single ones that nobody refers to, so a number
//! above the base may have no record. A block without records takes a word, but for the
//! last one.
//!
//! # Invariants
//! - Every number below `base` was passed or dropped, and everybody sees what its transaction wrote, as far
//!   as an entry refers to it.
//! - `len` is the number of records; the first block, if there is one, has the base's number.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::version::TrxRecord;

/// Numbers of a block.
const BLOCK: u64 = 64;

#[derive(Debug)]
struct Block {
    records: [Option<Arc<TrxRecord>>; BLOCK as usize],
    len: usize,
}

impl Block {
    fn new() -> Box<Block> {
        Box::new(Block { records: [const { None }; BLOCK as usize], len: 0 })
    }
}

/// What is known of a number.
#[derive(Debug)]
pub enum Found<'s> {
    /// Everybody sees what the transaction wrote.
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
    /// Number of the first record that may have undo in memory.
    pub unspilled: u64,
    /// Number of the first record that was not swept.
    pub unswept: u64,
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
        let block = self.blocks.get(block).and_then(Option::as_ref);
        block.and_then(|block| block.records[at].as_ref()).map_or(Found::Dropped, Found::There)
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

    /// Takes out the oldest record, which has this number, and moves the base to the next one.
    pub fn pass(&mut self, number: u64) {
        let (before, first) = (self.base, self.iter_from(self.base).next().map(|record| record.place()));
        assert_eq!(first, Some(number), "records are passed in the order of their numbers");
        self.drop_one(number);
        let next = self.iter_from(number).next().map(|record| record.place());
        self.base = next.unwrap_or(self.end);
        let blocks = (self.base / BLOCK - before / BLOCK) as usize;
        self.blocks.drain(..blocks.min(self.blocks.len()));
    }
}
