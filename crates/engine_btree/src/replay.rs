//! Replay: applies the log's redo to the leaves before the first session starts.
//!
//! A batch of redo is sorted by key. Redo is absolute, so only the last write of each key counts. Each leaf
//! is therefore visited once per batch, and several threads apply ranges of the keys in parallel without an
//! order between them. The written entries have no version: all views see them.
//!
//! # On failure
//! A page that cannot be read or a value that cannot be written ends the replay and the start of the server.

use std::thread;

use cohort_engine::{EngineError, Redo};

use crate::inner::Inner;
use crate::install::{Place, has_room, split_key, write_entry};
use crate::page::{Entry, INLINE_BYTES_MAX};
use crate::redo::{self, RedoWrite};
use crate::value;

/// Minimum number of writes for each thread.
const SHARE_MIN: usize = 512;

impl Inner {
    /// Applies redo again, in the given order, with up to `threads` threads.
    pub fn replay(&self, redo: &[Redo], threads: usize) -> Result<(), EngineError> {
        let mut writes: Vec<RedoWrite<'_>> = Vec::new();
        for redo in redo {
            writes.extend(redo::decode(&redo.bytes)?);
        }
        // After this, the newest write of each key comes first and is kept.
        writes.reverse();
        writes.sort_by(|a, b| a.0.cmp(b.0));
        writes.dedup_by(|later, first| later.0 == first.0);
        let share = writes.len().div_ceil(threads.max(1)).max(SHARE_MIN);
        if writes.len() <= share {
            return self.replay_share(&writes);
        }
        thread::scope(|scope| {
            let shares: Vec<_> =
                writes.chunks(share).map(|share| scope.spawn(|| self.replay_share(share))).collect();
            let done = shares
                .into_iter()
                .map(|share| share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            done.collect()
        })
    }

    fn replay_share(&self, writes: &[RedoWrite<'_>]) -> Result<(), EngineError> {
        let mut place = Place::default();
        writes.iter().try_for_each(|(key, value)| self.replay_one(&mut place, key, *value))
    }

    fn replay_one(
        &self,
        place: &mut Place,
        full_key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        let (index, key) = split_key(full_key)?;
        if value.is_some_and(|value| value.len() > INLINE_BYTES_MAX) {
            // Release the leaf, so that the write of the value does not block other threads.
            place.leaf = None;
        }
        // If the entry cannot be written afterwards, the value stays with the tree until the next start.
        let kept = match value.filter(|value| value.len() > INLINE_BYTES_MAX) {
            Some(value) => {
                let (name, extent) = value::write(&self.store, index, value)?;
                self.tree_or_new(index).values.lock().insert(extent);
                Some(name)
            }
            None => None,
        };
        let is_overflow = kept.is_some();
        let value = kept.as_ref().map(|name| name.as_slice()).or(value);
        loop {
            place.go_to(self, index, key)?;
            let tree = place.tree.clone().expect("gone to");
            let frame = place.leaf.as_mut().expect("gone to");
            let found = frame.page().find(key);
            let old = found.ok().map(|n| frame.page().entry(n)).filter(|old| old.is_overflow);
            let old = old.map(|old| value::extent_of(old.value));
            match (value, found) {
                (None, Err(_)) => return Ok(()),
                (None, Ok(n)) => {
                    frame.page_mut().remove(n);
                    tree.count_entries(-1);
                }
                (Some(value), found) => {
                    let entry = Entry { is_deleted: false, is_overflow, version: None, value };
                    let needed = frame.page().entry_bytes(key, &entry);
                    if !has_room(frame.page(), found, needed) {
                        place.split(self, key, needed)?;
                        continue;
                    }
                    write_entry(frame, found, key, entry);
                    tree.count_entries(i64::from(found.is_err()));
                }
            }
            self.context.changes.list(frame);
            if old.is_some() {
                self.defer_free(&tree, old);
            }
            return Ok(());
        }
    }
}
