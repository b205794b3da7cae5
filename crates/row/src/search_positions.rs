//! [`SearchPositions`]: search-position cache of an index: the next search resumes where the last one ended.

use std::collections::HashMap;

use cohort_base::IndexId;

/// A map from an index and the start of the searched range to the entry of the row found last.
#[derive(Debug, Default)]
pub struct SearchPositions(HashMap<(IndexId, Vec<u8>), Vec<u8>>);

/// Maximum number of cached positions. Reaching it clears the cache.
const PLACES_MAX: usize = 1024;

impl SearchPositions {
    /// Returns the entry at which the last search of the range that starts there ended.
    pub fn end_of(&self, index: IndexId, start: &[u8]) -> Option<&Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&(index, start.to_vec()))
    }

    /// Records the end of a search.
    pub fn note(&mut self, index: IndexId, start: Vec<u8>, entry: Vec<u8>) {
        if self.0.len() >= PLACES_MAX {
            self.0.clear();
        }
        self.0.insert((index, start), entry);
    }
}
