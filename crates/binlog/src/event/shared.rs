//! [`SharedBytes`]: a reference-counted part of an event's bytes.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A slice that keeps the underlying bytes alive.
#[derive(Clone)]
pub struct SharedBytes {
    whole: Arc<[u8]>,
    range: Range<usize>,
}

impl SharedBytes {
    /// Returns a part of the slice. Panics if the range is out of bounds.
    pub fn part(&self, range: Range<usize>) -> SharedBytes {
        assert!(range.start <= range.end && range.end <= self.len(), "a part of the bytes");
        let start = self.range.start;
        SharedBytes { whole: Arc::clone(&self.whole), range: start + range.start..start + range.end }
    }
}

impl From<Arc<[u8]>> for SharedBytes {
    fn from(whole: Arc<[u8]>) -> SharedBytes {
        let range = 0..whole.len();
        SharedBytes { whole, range }
    }
}

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> SharedBytes {
        SharedBytes::from(Arc::<[u8]>::from(bytes))
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.whole[self.range.clone()]
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &SharedBytes) -> bool {
        **self == **other
    }
}

impl Eq for SharedBytes {}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_parts_share_the_bytes() {
        let whole: Arc<[u8]> = Arc::from(&b"abcdef"[..]);
        let part = SharedBytes::from(Arc::clone(&whole)).part(1..5);
        assert_eq!((&*part, &*part.part(1..3), part.part(4..4).len()), (&b"bcde"[..], &b"cd"[..], 0));
        assert!(Arc::ptr_eq(&part.part(2..4).whole, &whole));
        assert_eq!(part, SharedBytes::from(&b"bcde"[..]));
    }

    #[test]
    #[should_panic(expected = "a part of the bytes")]
    fn a_part_does_not_reach_beyond_its_own_end() {
        SharedBytes::from(&b"abcdef"[..]).part(1..3).part(0..3);
    }
}
