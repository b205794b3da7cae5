//! [`Shown`]: the progress of a connection for readers that must not see what a crash can undo (I5).
//!
//! Appliers continue from *ordered* positions. SHOW SLAVE STATUS and MASTER_POS_WAIT use positions before
//! which all commits are *published*: a client that sees such a position also sees the rows before it.

use std::collections::VecDeque;

use cohort_base::CommitSeq;

use crate::progress::Reached;

/// Maximum number of positions between ordered and published. Beyond it the two newest are merged: the
/// position shown then lags, but is never too far ahead.
const WAITING_MAX: usize = 1024;

/// The published position, and later ones that are ordered only.
#[derive(Default)]
pub struct Shown {
    reached: Reached,
    /// Later positions, each with the newest commit before it. Both ascend.
    waiting: VecDeque<(CommitSeq, Reached)>,
}

impl Shown {
    /// Starts at a position before which everything is published.
    pub fn begin(&mut self, reached: Reached) {
        *self = Shown { reached, waiting: VecDeque::new() };
    }

    /// Records that everything before a position is ordered, with `newest` as its newest commit.
    pub fn came_to(&mut self, newest: CommitSeq, reached: Reached) {
        let is_full = self.waiting.len() >= WAITING_MAX;
        match self.waiting.back_mut() {
            Some(last) if last.0 >= newest || is_full => *last = (last.0.max(newest), reached),
            _ => self.waiting.push_back((newest, reached)),
        }
    }

    /// Returns the position before which everything is published. `published` is the server's published
    /// position.
    pub fn at(&mut self, published: CommitSeq) -> &Reached {
        while self.waiting.front().is_some_and(|(seq, _)| *seq <= published) {
            if let Some((_, reached)) = self.waiting.pop_front() {
                self.reached = reached;
            }
        }
        &self.reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::RelayPlace;
    use crate::place::SourcePlace;

    fn at(position: u64) -> Reached {
        let source = SourcePlace { file: "b.1".to_owned(), position };
        Reached { relay: RelayPlace { file: 1, offset: position }, source }
    }

    #[test]
    fn a_place_is_shown_when_all_before_it_is_published() {
        let mut shown = Shown::default();
        shown.begin(at(4));
        shown.came_to(CommitSeq(7), at(10));
        shown.came_to(CommitSeq(9), at(20));
        // No commit lies between the two positions.
        shown.came_to(CommitSeq(9), at(30));
        assert_eq!(*shown.at(CommitSeq(6)), at(4));
        assert_eq!(*shown.at(CommitSeq(8)), at(10));
        assert_eq!(*shown.at(CommitSeq(8)), at(10));
        assert_eq!(*shown.at(CommitSeq(9)), at(30));
        shown.came_to(CommitSeq(9), at(40));
        assert_eq!(*shown.at(CommitSeq(9)), at(40));
    }

    #[test]
    fn many_places_take_bounded_memory_and_none_is_shown_early() {
        let mut shown = Shown::default();
        let last = 3 * WAITING_MAX as u64;
        (1..=last).for_each(|n| shown.came_to(CommitSeq(n), at(n)));
        assert_eq!(shown.waiting.len(), WAITING_MAX);
        for published in [5, WAITING_MAX as u64, last - 1] {
            assert!(shown.at(CommitSeq(published)).source.position <= published);
        }
        assert_eq!(*shown.at(CommitSeq(last)), at(last));
    }
}
