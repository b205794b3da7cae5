//! A set of blocks, one bit for each: the blocks that a backup has pinned.

use std::ops::Range;
use std::sync::Arc;

/// A set of blocks of the data file: one bit for each.
#[derive(Debug, Default)]
pub struct BlockSet {
    words: Vec<u64>,
}

const WORD_BLOCKS: u64 = u64::BITS as u64;

impl BlockSet {
    /// Adds blocks.
    pub fn add(&mut self, blocks: Range<u64>) {
        let end = blocks.end;
        let words = end.div_ceil(WORD_BLOCKS) as usize;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        for block in blocks {
            self.words[(block / WORD_BLOCKS) as usize] |= 1 << (block % WORD_BLOCKS);
        }
    }

    /// Returns whether the set has a block.
    pub fn has(&self, block: u64) -> bool {
        let word = self.words.get((block / WORD_BLOCKS) as usize);
        word.is_some_and(|word| word >> (block % WORD_BLOCKS) & 1 == 1)
    }

    /// Returns the number of blocks.
    pub fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the block after the last one that may be in the set.
    pub fn end(&self) -> u64 {
        self.words.len() as u64 * WORD_BLOCKS
    }

    /// Returns the first run of blocks at or after a block.
    fn run_from(&self, mut block: u64) -> Option<Range<u64>> {
        loop {
            let word = self.words.get((block / WORD_BLOCKS) as usize)? >> (block % WORD_BLOCKS);
            if word != 0 {
                block += u64::from(word.trailing_zeros());
                break;
            }
            block = (block / WORD_BLOCKS + 1) * WORD_BLOCKS;
        }
        let mut end = block;
        while self.has(end) {
            end += 1;
        }
        Some(block..end)
    }

    /// Returns the byte ranges of all runs, ascending.
    pub fn byte_ranges(self: Arc<Self>, block_bytes: u64) -> impl Iterator<Item = Range<u64>> + Send {
        let mut from = 0;
        std::iter::from_fn(move || {
            let run = self.run_from(from)?;
            from = run.end;
            Some(run.start * block_bytes..run.end * block_bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_those_of_the_blocks() {
        let mut set = BlockSet::default();
        let added = [2..3, 3..4, 5..7, 60..70, 128..129, 190..191, 191..192, 193..196];
        added.into_iter().for_each(|run| set.add(run));
        assert_eq!((set.len(), set.has(69), set.has(70)), (20, true, false));
        let runs: Vec<_> = Arc::new(set).byte_ranges(2).map(|r| r.start / 2..r.end / 2).collect();
        assert_eq!(runs, [2..4, 5..7, 60..70, 128..129, 190..192, 193..196]);
        assert_eq!(Arc::new(BlockSet::default()).byte_ranges(2).count(), 0);
    }
}
