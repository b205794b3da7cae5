//! Insert-intention points: the uncommitted keys that one transaction has inserted into indexes.
//!
//! A transaction's writes are private, so a scan that locks a range finds them in no page: it checks these
//! points instead. Every insert adds keys, but scans rarely read them. So keys are only appended until a scan
//! finds a long list; the scan sorts it, and later keys are inserted in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use cohort_base::IndexId;

/// Maximum length of a list that is searched linearly before its keys are sorted.
const LISTED_MAX: usize = 32;

/// Direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// To larger keys.
    Up,
    /// To smaller keys.
    Down,
}

impl Towards {
    /// Returns whether a scan reaches `a` before `b`.
    pub(crate) fn is_before(self, a: &[u8], b: &[u8]) -> bool {
        match self {
            Towards::Up => a < b,
            Towards::Down => a > b,
        }
    }
}

/// A span of keys from `start` (inclusive) to `end` (exclusive). An empty `start` is below all keys; `None`
/// as `end` is above all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockSpan {
    pub start: Vec<u8>,
    pub end: Option<Vec<u8>>,
}

impl LockSpan {
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

/// Returns the next key in byte order.
pub(crate) fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

/// Uncommitted keys of one transaction.
#[derive(Default)]
pub(crate) struct Points {
    /// Keys that are not sorted yet, concatenated; their indexes and ends are in `listed`.
    bytes: Vec<u8>,
    listed: Vec<(IndexId, usize)>,
    ordered: BTreeMap<IndexId, BTreeSet<Box<[u8]>>>,
    /// Keys that were in the list more than once when it was sorted.
    repeated: BTreeSet<(IndexId, Box<[u8]>)>,
}

impl Points {
    /// Adds a key. Returns false if it was present. The unsorted list is not searched and may contain a key
    /// twice.
    pub fn push(&mut self, index: IndexId, key: &[u8]) -> bool {
        if !self.ordered.is_empty() {
            return self.ordered.entry(index).or_default().insert(key.into());
        }
        if self.listed.capacity() == 0 {
            self.listed.reserve(8);
            self.bytes.reserve(128);
        }
        debug_assert_eq!(
            self.listed.last().map_or(0, |(_, end)| *end),
            self.bytes.len(),
            "ends of keys are wrong"
        );
        self.bytes.extend_from_slice(key);
        self.listed.push((index, self.bytes.len()));
        true
    }

    pub fn contains(&mut self, index: IndexId, key: &[u8]) -> bool {
        if self.listed.len() > LISTED_MAX {
            self.put_in_order();
        }
        self.listed().any(|listed| listed == (index, key))
            || self.ordered.get(&index).is_some_and(|keys| keys.contains(key))
    }

    /// Removes the key that was pushed last and was new. A scan may have sorted the keys since.
    pub fn pop(&mut self, index: IndexId, key: &[u8]) {
        if let Some((at, end)) = self.listed.pop() {
            debug_assert!(
                at == index && self.bytes[..end].ends_with(key),
                "another key than the last is taken back"
            );
            self.bytes.truncate(end - key.len());
        } else if self.repeated.contains(&(index, key.into())) {
            // An earlier insertion of the key remains.
        } else if let Some(keys) = self.ordered.get_mut(&index) {
            keys.remove(key);
        }
    }

    /// Returns the key of the span that a scan reaches first.
    pub fn nearest(&mut self, index: IndexId, span: &LockSpan, towards: Towards) -> Option<Box<[u8]>> {
        if span.is_empty() {
            return None;
        }
        if self.listed.len() > LISTED_MAX {
            self.put_in_order();
        }
        let listed = self.listed().filter(|(at, key)| *at == index && span.contains(key)).map(|(_, key)| key);
        let near = |a: &&[u8], b: &&[u8]| match towards {
            Towards::Up => a.cmp(b),
            Towards::Down => b.cmp(a),
        };
        let listed = listed.min_by(near);
        let bounds =
            (Bound::Included(&*span.start), span.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
        let ordered = self.ordered.get(&index).and_then(|keys| {
            let mut keys = keys.range::<[u8], _>(bounds).map(|key| &**key);
            match towards {
                Towards::Up => keys.next(),
                Towards::Down => keys.next_back(),
            }
        });
        let found = listed.into_iter().chain(ordered).min_by(near);
        debug_assert!(
            found.is_none_or(|key| span.contains(key)),
            "a scan waits for a key outside of its way"
        );
        found.map(Box::from)
    }

    pub fn clear(&mut self) {
        *self = Points::default();
    }

    fn listed(&self) -> impl Iterator<Item = (IndexId, &[u8])> {
        let mut start = 0;
        self.listed
            .iter()
            .map(move |&(index, end)| (index, &self.bytes[std::mem::replace(&mut start, end)..end]))
    }

    fn put_in_order(&mut self) {
        let mut ordered = std::mem::take(&mut self.ordered);
        let mut repeated = std::mem::take(&mut self.repeated);
        for (index, key) in self.listed() {
            if !ordered.entry(index).or_default().insert(key.into()) {
                repeated.insert((index, key.into()));
            }
        }
        debug_assert!(
            repeated.iter().all(|(index, key)| ordered.get(index).is_some_and(|keys| keys.contains(key))),
            "a key that was inserted twice is missing"
        );
        *self = Points { ordered, repeated, ..Points::default() };
    }
}

/// An owner's points, and where others wait for the owner.
#[derive(Default)]
pub(crate) struct Claims {
    pub points: Points,
    /// Indexes in which another owner has waited for this owner.
    pub awaited_in: Vec<IndexId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: IndexId = IndexId(7);

    fn span(start: &[u8], end: Option<&[u8]>) -> LockSpan {
        LockSpan { start: start.to_vec(), end: end.map(<[u8]>::to_vec) }
    }

    #[test]
    fn a_key_that_was_put_before_stays_when_its_second_is_taken_back() {
        for count in [3_u8, 100] {
            let mut points = Points::default();
            for n in 0..count {
                points.push(INDEX, &[n]);
            }
            assert!(points.push(INDEX, &[1]), "the list is not searched");
            // Another owner's scan reads the points in between.
            assert!(points.nearest(INDEX, &span(&[], None), Towards::Up).is_some());
            points.pop(INDEX, &[1]);
            assert!(points.contains(INDEX, &[1]), "of {count}");
        }
    }

    #[test]
    fn the_nearest_key_is_found_listed_or_in_order() {
        for count in [3_u8, 100] {
            let mut points = Points::default();
            for n in (0..count).rev() {
                points.push(INDEX, &[n * 2]);
                points.push(IndexId(8), &[n * 2 + 1]);
            }
            let mut nearest = |start: &[u8], end: Option<&[u8]>, towards| {
                points.nearest(INDEX, &span(start, end), towards).map(|key| key.to_vec())
            };
            assert_eq!(nearest(b"", None, Towards::Up), Some(vec![0]));
            assert_eq!(nearest(&[1], None, Towards::Up), Some(vec![2]));
            assert_eq!(nearest(b"", Some(&[4]), Towards::Down), Some(vec![2]), "the end is not in it");
            assert_eq!(nearest(&[3], Some(&[4]), Towards::Up), None);
            assert_eq!(nearest(&[4], Some(&[4]), Towards::Up), None);
            assert_eq!(nearest(&[9], Some(&[4]), Towards::Down), None, "an empty span");
            points.push(INDEX, &[1]);
            points.push(INDEX, &[0, 5]);
            points.pop(INDEX, &[0, 5]);
            assert_eq!(points.nearest(INDEX, &span(&[0, 0], None), Towards::Up).as_deref(), Some(&[1][..]));
        }
    }
}
