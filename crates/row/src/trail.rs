//! [`Trail`]: where searches of an index ended, so that the next one goes on there.

use std::collections::HashMap;

use cohort_base::IndexId;

/// Where searches ended: by index and the beginning of the part that was searched, the entry of the row that
/// was found last.
#[derive(Debug, Default)]
pub struct Trail(HashMap<(IndexId, Vec<u8>), Vec<u8>>);

/// Places that are remembered; more of them begin anew.
const PLACES_MAX: usize = 1024;

impl Trail {
    /// The entry at which the last search of a part ended that begins there.
    pub fn end_of(&self, index: IndexId, start: &[u8]) -> Option<&Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&(index, start.to_vec()))
    }

    /// A search has ended.
    pub fn note(&mut self, index: IndexId, start: Vec<u8>, entry: Vec<u8>) {
        if self.0.len() >= PLACES_MAX {
            self.0.clear();
        }
        self.0.insert((index, start), entry);
    }
}
