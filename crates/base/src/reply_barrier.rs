//! Reply barrier (`ReplyBarrier`): how long a session's replies are held back.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::CommitSeq;

/// Reply barrier of a session. Its replies must not be sent before the newest transaction that they may
/// reveal is published: the session's own commits (I4), and transactions whose rows it has read (I5). The
/// session raises the barrier. The thread that sends the session's bytes checks the barrier right before each
/// send, regardless of the contents. When KILL has ended a wait for replicas, replies up to that transaction
/// may be sent.
#[derive(Debug, Default)]
pub struct ReplyBarrier {
    until: AtomicU64,
    acknowledged_early: AtomicU64,
}

impl ReplyBarrier {
    /// Raises the barrier: replies from now on may reveal this transaction. Called only by the session.
    #[inline]
    pub fn raise(&self, seq: CommitSeq) {
        if seq.0 > self.until.load(Ordering::Relaxed) {
            self.until.store(seq.0, Ordering::Release);
        }
    }

    /// Returns the transaction that replies wait for, 0 if they need not wait.
    #[inline]
    pub fn until(&self) -> CommitSeq {
        let until = self.until.load(Ordering::Acquire);
        if until <= self.acknowledged_early.load(Ordering::Acquire) { CommitSeq(0) } else { CommitSeq(until) }
    }

    /// Lifts the barrier up to `seq`. Called by the killing session, once `seq` is published.
    pub fn acknowledge_early(&self, seq: CommitSeq) {
        self.acknowledged_early.store(seq.0, Ordering::Release);
    }

    /// Returns the transaction up to which KILL has lifted the barrier.
    pub fn acknowledged_early(&self) -> CommitSeq {
        CommitSeq(self.acknowledged_early.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_only_rises_until_an_early_acknowledgement() {
        let hold = ReplyBarrier::default();
        assert_eq!(hold.until(), CommitSeq(0));
        hold.raise(CommitSeq(7));
        hold.raise(CommitSeq(5));
        assert_eq!(hold.until(), CommitSeq(7));
        hold.acknowledge_early(CommitSeq(7));
        assert_eq!((hold.until(), hold.acknowledged_early()), (CommitSeq(0), CommitSeq(7)));
        hold.raise(CommitSeq(8));
        assert_eq!(hold.until(), CommitSeq(8));
    }
}
