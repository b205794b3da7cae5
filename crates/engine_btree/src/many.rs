//! Multi-get: looks up many keys that are preferably near each other, such as the rows that the entries of a
//! secondary index refer to.
//!
//! # Concepts
//! Several keys of one leaf are looked up together. First, each key gets its position among the slots by its
//! head alone, and its entry is prefetched. Then the entries are compared and copied. The cache misses of
//! several entries overlap, and the leaf is latched only once for all of them.

use cohort_engine::{EngineError, MultiGet};

use crate::inner::Inner;
use crate::leaf_hint::LeafHint;
use crate::pool::Touch;
use crate::version::Horizon;

/// Maximum number of keys of a leaf that are looked up together.
const AT_ONCE: usize = 16;

impl Inner {
    /// Looks up keys at the horizon ([`cohort_engine::EngineTrx::get_many`]).
    pub fn get_many(
        &self,
        horizon: Horizon,
        looks: &mut MultiGet<'_>,
        hint: &mut LeafHint,
    ) -> Result<usize, EngineError> {
        let Some(tree) = self.tree(looks.index) else { return Ok(looks.keys.len()) };
        let mut value = Vec::new();
        let mut at = 0;
        while at < looks.keys.len() && (at == 0 || looks.batch.size_bytes() < looks.bytes_max) {
            let frame = hint.leaf(&tree, &self.context, looks.keys[at], Touch::Usual)?;
            let page = frame.page();
            let mut places = [0; AT_ONCE];
            let mut count = 0;
            for (key, place) in looks.keys[at..].iter().zip(&mut places) {
                if count > 0 && !page.covers(key) {
                    break;
                }
                *place = page.front_place(key);
                page.prefetch(*place);
                count += 1;
            }
            let end = at + count;
            for place in &places[..count] {
                let key = looks.keys[at];
                let Some(n) = page.find_from(*place, key) else {
                    at += 1;
                    continue;
                };
                let Some(straight) = page.straight(n) else { break };
                if straight.trx.is_some_and(|trx| !self.versions.is_seen(horizon, trx)) {
                    break;
                }
                looks.batch.push(key, &straight.entry[straight.suffix_len..]);
                looks.found.push(at as u32);
                at += 1;
                if looks.batch.size_bytes() >= looks.bytes_max {
                    return Ok(at);
                }
            }
            drop(frame);
            if at < end {
                // The entry has older versions or an overflow value.
                let key = looks.keys[at];
                value.clear();
                if self.get(looks.index, horizon, key, &mut value, Some(&mut *hint))? {
                    looks.batch.push(key, &value);
                    looks.found.push(at as u32);
                }
                at += 1;
            }
        }
        Ok(at)
    }
}
