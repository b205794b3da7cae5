//! A sample of an index for statistics: the entries of leaves that are chosen at random.

use cohort_base::IndexId;
use cohort_engine::EngineError;

use crate::inner::Inner;
use crate::pool::Touch;
use crate::tree::Side;

impl Inner {
    /// Shows the neighbouring keys of so many leaves.
    pub fn sample(
        &self,
        index: IndexId,
        leaves: usize,
        seed: u64,
        look: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), EngineError> {
        let Some(tree) = self.tree(index) else { return Ok(()) };
        for n in 0..leaves as u64 {
            let side = Side::Random(seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            // Copied, because `look` is the caller's and the leaf is latched.
            let keys: Vec<Vec<u8>> = {
                let leaf = tree.leaf_touched(&self.ground, &side, Touch::Once)?;
                let page = leaf.page();
                (0..page.len()).filter(|n| !page.entry(*n).is_deleted).map(|n| page.key(n)).collect()
            };
            keys.windows(2).for_each(|pair| look(&pair[0], &pair[1]));
        }
        Ok(())
    }
}
