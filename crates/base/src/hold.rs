//! Until when a session's replies are held back.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::CommitSeq;

/// Replies of a session leave only when the newest transaction that they tell of is published: its own
/// commits (I4), and those whose rows it has seen (I5). The session raises it; whoever sends its bytes looks
/// at it right before, whatever the bytes say. Once KILL has ended a wait for replicas, replies up to there
/// leave.
#[derive(Debug, Default)]
pub struct Hold {
    until: AtomicU64,
    told_early: AtomicU64,
}

impl Hold {
    /// Replies from now on tell of this transaction. Only the session calls it.
    #[inline]
    pub fn raise(&self, seq: CommitSeq) {
        if seq.0 > self.until.load(Ordering::Relaxed) {
            self.until.store(seq.0, Ordering::Release);
        }
    }

    /// What replies wait for; 0: for nothing.
    #[inline]
    pub fn until(&self) -> CommitSeq {
        let until = self.until.load(Ordering::Acquire);
        if until <= self.told_early.load(Ordering::Acquire) { CommitSeq(0) } else { CommitSeq(until) }
    }

    /// Up to here nothing is held back any more. The killing session calls it, when that is published.
    pub fn tell_early(&self, seq: CommitSeq) {
        self.told_early.store(seq.0, Ordering::Release);
    }

    /// Up to here KILL has had the session told.
    pub fn told_early(&self) -> CommitSeq {
        CommitSeq(self.told_early.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_only_rises_until_somebody_is_told_early() {
        let hold = Hold::default();
        assert_eq!(hold.until(), CommitSeq(0));
        hold.raise(CommitSeq(7));
        hold.raise(CommitSeq(5));
        assert_eq!(hold.until(), CommitSeq(7));
        hold.tell_early(CommitSeq(7));
        assert_eq!((hold.until(), hold.told_early()), (CommitSeq(0), CommitSeq(7)));
        hold.raise(CommitSeq(8));
        assert_eq!(hold.until(), CommitSeq(8));
    }
}
