//! The locked parts of one index: one transaction's disjoint spans, in order.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::points::LockSpan;

/// Disjoint spans that do not touch each other: end by start. The span that a scan extends key by key is kept
/// separately.
#[derive(Default)]
pub(crate) struct Intervals {
    ends: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    growing: Option<Growing>,
    bytes: usize,
}

/// A span that grows upwards.
struct Growing {
    start: Vec<u8>,
    end: Vec<u8>,
    /// Start of the next span.
    next: Option<Vec<u8>>,
}

/// Returns the estimated bytes of a span.
fn bytes_of(start: &[u8], end: Option<&Vec<u8>>) -> usize {
    const FIXED: usize = 96;
    FIXED + start.len() + end.map_or(0, Vec::len)
}

/// Returns whether a span that ends at `end` contains `key` or ends where it begins.
fn reaches(end: Option<&Vec<u8>>, key: &[u8]) -> bool {
    end.is_none_or(|end| **end >= *key)
}

/// Returns whether `key` followed by a zero byte is below `next`.
fn is_well_before(key: &[u8], next: &[u8]) -> bool {
    *key < *next && next.strip_prefix(key).is_none_or(|rest| rest != [0])
}

impl Intervals {
    /// Extends the span that ends at `from`, so that it ends right after `key`. Returns false if that span is
    /// not the one extended last, or would touch another.
    pub fn grow(&mut self, from: &[u8], key: &[u8]) -> bool {
        let Some(growing) = &mut self.growing else { return false };
        let is_free = growing.next.as_ref().is_none_or(|next| is_well_before(key, next));
        if growing.end != from || *key < *from || !is_free {
            return false;
        }
        self.bytes += key.len() + 1;
        self.bytes -= growing.end.len();
        growing.end.clear();
        growing.end.extend_from_slice(key);
        growing.end.push(0);
        debug_assert!(growing.start < growing.end, "a span that a scan extends ends before its start");
        debug_assert!(
            growing.next.as_ref().is_none_or(|next| growing.end < *next),
            "a span that a scan extends touches the next one: they would be two spans of the same keys"
        );
        true
    }

    /// Adds a span that a scan will probably extend.
    pub fn add_growing(&mut self, span: LockSpan) {
        let start = span.start.clone();
        self.add(span);
        let at_most = (Bound::Unbounded, Bound::Included(&*start));
        let Some((start, Some(_))) = self.ends.range::<[u8], _>(at_most).next_back() else { return };
        let start = start.clone();
        let end = self.ends.remove(&start).flatten().expect("it has just been found");
        let after = (Bound::Excluded(&*start), Bound::Unbounded);
        let next = self.ends.range::<[u8], _>(after).next().map(|(start, _)| start.clone());
        debug_assert!(next.as_ref().is_none_or(|next| end < *next), "two spans touch");
        self.growing = Some(Growing { start, end, next });
    }

    /// Checks the span that starts at `start` and its neighbours.
    fn check_around(&self, start: &[u8]) {
        if !cfg!(debug_assertions) {
            return;
        }
        debug_assert!(self.growing.is_none(), "a span that a scan extends is in no order with the others");
        let at_most = (Bound::Unbounded, Bound::Included(start));
        let mut before = self.ends.range::<[u8], _>(at_most).rev();
        let Some((own, end)) = before.next() else { return };
        debug_assert!(**own == *start, "an added span is missing");
        debug_assert!(end.as_ref().is_none_or(|end| **end > *start), "a span without keys is kept");
        let previous = before.next().map(|(_, end)| end);
        debug_assert!(
            previous.is_none_or(|end| !reaches(end.as_ref(), start)),
            "a span touches the one before it: they would be two spans of the same keys"
        );
        let next = self.ends.range::<[u8], _>((Bound::Excluded(start), Bound::Unbounded)).next();
        debug_assert!(
            next.is_none_or(|(next, _)| !reaches(end.as_ref(), next)),
            "a span touches the one after it"
        );
        debug_assert!(self.bytes >= bytes_of(start, end.as_ref()), "bytes of spans were counted too low");
    }

    fn merge_growing(&mut self) {
        if let Some(Growing { start, end, .. }) = self.growing.take() {
            let other = self.ends.insert(start, Some(end));
            debug_assert!(other.is_none(), "two spans have one start");
        }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        let is_in = |growing: &Growing| *growing.start <= *key && *key < *growing.end;
        if self.growing.as_ref().is_some_and(is_in) {
            return true;
        }
        let at_most = (Bound::Unbounded, Bound::Included(key));
        let before = self.ends.range::<[u8], _>(at_most).next_back();
        before.is_some_and(|(_, end)| end.as_ref().is_none_or(|end| **end > *key))
    }

    /// Adds a span and merges it with the spans that it touches.
    pub fn add(&mut self, mut span: LockSpan) {
        self.merge_growing();
        if span.is_empty() {
            return;
        }
        let at_most = (Bound::Unbounded, Bound::Included(&*span.start));
        let before = self.ends.range_mut::<[u8], _>(at_most).next_back();
        if let Some((start, end)) = before.filter(|(_, end)| reaches(end.as_ref(), &span.start)) {
            if end.is_none() || span.end.is_some() && *end >= span.end {
                return;
            }
            span.start.clone_from(start);
        }
        let from = (Bound::Excluded(&*span.start), Bound::Unbounded);
        while let Some((start, _)) = self.ends.range::<[u8], _>(from).next()
            && reaches(span.end.as_ref(), start)
        {
            let start = start.clone();
            let end = self.ends.remove(&start).expect("it has just been found");
            self.bytes -= bytes_of(&start, end.as_ref());
            if end.is_none() || span.end.is_some() && end > span.end {
                span.end = end;
            }
        }
        self.bytes += bytes_of(&span.start, span.end.as_ref());
        let start = span.start.len();
        let added = cfg!(debug_assertions).then(|| span.start.clone());
        if let Some(before) = self.ends.insert(span.start, span.end) {
            self.bytes -= bytes_of(&[], before.as_ref()) + start;
        }
        added.iter().for_each(|start| self.check_around(start));
    }

    /// Returns the estimated bytes of the spans.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(intervals: &mut Intervals, start: u8, end: u8) {
        let start = if start == 0 { Vec::new() } else { vec![start] };
        let span = LockSpan { start: start.clone(), end: (end != 0).then(|| vec![end]) };
        match start.len() + usize::from(end) % 2 {
            0 => intervals.add(span),
            _ => intervals.add_growing(span),
        }
    }

    #[test]
    fn they_are_what_a_set_of_numbers_is() {
        // All triples of spans with ends in 0..8, where 0 means unbounded.
        let spans: Vec<(u8, u8)> = (0..8).flat_map(|s| (0..8).map(move |e| (s, e))).collect();
        let is_in = |&(s, e): &(u8, u8), n: u8| s <= n && (e == 0 || n < e);
        for a in &spans {
            for b in &spans {
                for c in &spans {
                    let mut intervals = Intervals::default();
                    [a, b, c].iter().for_each(|(s, e)| add(&mut intervals, *s, *e));
                    let check = |intervals: &Intervals| {
                        for n in 0..9 {
                            let expected = [a, b, c].iter().any(|span| is_in(span, n));
                            assert_eq!(intervals.contains(&[n]), expected, "{a:?} {b:?} {c:?} at {n}");
                        }
                    };
                    check(&intervals);
                    intervals.merge_growing();
                    check(&intervals);
                    let parts: Vec<_> = intervals.ends.iter().collect();
                    let bytes: usize = parts.iter().map(|(start, end)| bytes_of(start, end.as_ref())).sum();
                    assert_eq!(intervals.bytes(), bytes);
                    for pair in parts.windows(2) {
                        assert!(!reaches(pair[0].1.as_ref(), pair[1].0), "{a:?} {b:?} {c:?}: {parts:?}");
                    }
                }
            }
        }
    }

    /// Compares a scan in steps, which may reach spans locked before, with a scan that locks its whole way at
    /// once.
    #[test]
    fn a_span_that_grows_is_what_it_would_be_as_a_whole() {
        let keys: Vec<Vec<u8>> =
            vec![vec![], vec![1], vec![1, 0], vec![1, 0, 0], vec![1, 1], vec![2], vec![3]];
        let after = |key: &[u8]| [key, &[0]].concat();
        let mut grown = 0;
        for first in &keys {
            for other in 0..keys.len() * keys.len() {
                let other = LockSpan {
                    start: keys[other % keys.len()].clone(),
                    end: keys.get(other / keys.len() + 1).cloned(),
                };
                let (mut stepped, mut whole) = (Intervals::default(), Intervals::default());
                stepped.add(other.clone());
                whole.add(other.clone());
                let mut from = first.clone();
                for key in keys.iter().filter(|key| *key >= first) {
                    match stepped.grow(&from, key) {
                        true => grown += 1,
                        false => stepped.add_growing(LockSpan { start: from, end: Some(after(key)) }),
                    }
                    from = after(key);
                    whole.add(LockSpan { start: first.clone(), end: Some(from.clone()) });
                    for key in keys.iter().flat_map(|key| [key.clone(), after(key)]) {
                        assert_eq!(
                            stepped.contains(&key),
                            whole.contains(&key),
                            "{first:?} {other:?} {key:?}"
                        );
                    }
                }
                stepped.merge_growing();
                whole.merge_growing();
                assert_eq!((&stepped.ends, stepped.bytes), (&whole.ends, whole.bytes), "{first:?} {other:?}");
            }
        }
        assert!(grown > 300, "{grown}");
    }
}
