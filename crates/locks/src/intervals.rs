//! The parts of one key space that one transaction has locked: disjoint, in order.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::points::LockSpan;

/// Disjoint spans that do not touch each other: end by start.
#[derive(Default)]
pub(crate) struct Intervals {
    ends: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

/// What a span takes in memory, roughly.
fn bytes_of(start: &[u8], end: Option<&Vec<u8>>) -> usize {
    const FIXED: usize = 96;
    FIXED + start.len() + end.map_or(0, Vec::len)
}

/// Whether a span that ends at `end` reaches `key`, or ends where it begins.
fn reaches(end: Option<&Vec<u8>>, key: &[u8]) -> bool {
    end.is_none_or(|end| **end >= *key)
}

impl Intervals {
    pub fn contains(&self, key: &[u8]) -> bool {
        let at_most = (Bound::Unbounded, Bound::Included(key));
        let before = self.ends.range::<[u8], _>(at_most).next_back();
        before.is_some_and(|(_, end)| end.as_ref().is_none_or(|end| **end > *key))
    }

    /// Adds a span; what it touches becomes one with it.
    pub fn add(&mut self, mut span: LockSpan) {
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
        if let Some(before) = self.ends.insert(span.start, span.end) {
            self.bytes -= bytes_of(&[], before.as_ref()) + start;
        }
    }

    /// What they take in memory, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(intervals: &mut Intervals, start: u8, end: u8) {
        let end = (end != 0).then(|| vec![end]);
        intervals.add(LockSpan { start: if start == 0 { Vec::new() } else { vec![start] }, end });
    }

    #[test]
    fn they_are_what_a_set_of_numbers_is() {
        // All triples of spans with ends in 0..8, where 0 is open.
        let spans: Vec<(u8, u8)> = (0..8).flat_map(|s| (0..8).map(move |e| (s, e))).collect();
        let is_in = |&(s, e): &(u8, u8), n: u8| s <= n && (e == 0 || n < e);
        for a in &spans {
            for b in &spans {
                for c in &spans {
                    let mut intervals = Intervals::default();
                    [a, b, c].iter().for_each(|(s, e)| add(&mut intervals, *s, *e));
                    for n in 0..9 {
                        let expected = [a, b, c].iter().any(|span| is_in(span, n));
                        assert_eq!(intervals.contains(&[n]), expected, "{a:?} {b:?} {c:?} at {n}");
                    }
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
}
