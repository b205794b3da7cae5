//! Views in use: which states of the past somebody may still read.
//!
//! A view is a CommitSeq. It is *in use* while somebody holds its [`Pin`], and it begins at the last ordered
//! transaction, so no view ever comes that is older than that. The views of most statements go after
//! milliseconds. One that was still in use after many later ones were taken counts as *held*: old versions
//! are then sorted out between the views instead of waiting for it (`sweep.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cohort_base::CommitSeq;

use crate::sync::{AtomicU64, Mutex, Ordering};

/// All views of an engine, with the horizon of a checkpoint that runs.
#[derive(Debug)]
pub struct Views {
    live: Mutex<Live>,
    /// The last ordered transaction. Written with the order stage held.
    applied: AtomicU64,
    /// Views that are taken until one counts as held.
    young_max: usize,
}

#[derive(Debug, Default)]
struct Live {
    /// How many have this CommitSeq.
    counts: BTreeMap<CommitSeq, usize>,
    /// Of the latest views taken, in use or not, the first one first.
    young: VecDeque<CommitSeq>,
}

/// A view that purge does not pass while it lives.
pub struct Pin {
    pub seq: CommitSeq,
    views: Arc<Views>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut live = self.views.live.lock();
        let count = live.counts.get_mut(&self.seq).expect("counted when made");
        *count -= 1;
        if *count == 0 {
            live.counts.remove(&self.seq);
        }
    }
}

/// The views that were in use at a moment. Those that come later see all transactions up to `until`.
#[derive(Debug)]
pub struct InUse {
    /// In order.
    seqs: Vec<CommitSeq>,
    /// Of the views that see less than this one, all are held.
    pub until: CommitSeq,
}

impl InUse {
    /// Whether one of them sees `from` and not `to`.
    pub fn is_any_in(&self, from: CommitSeq, to: CommitSeq) -> bool {
        self.seqs.get(self.seqs.partition_point(|seq| *seq < from)).is_some_and(|seq| *seq < to)
    }

    /// Whether a view is held that does not see `until`.
    pub fn is_any_held(&self) -> bool {
        self.seqs.first().is_some_and(|seq| *seq < self.until)
    }
}

impl Views {
    /// None is in use, nothing is ordered.
    pub fn new(young_max: usize) -> Views {
        Views { live: Mutex::default(), applied: AtomicU64::new(0), young_max }
    }

    /// The last ordered transaction.
    pub fn applied(&self) -> CommitSeq {
        CommitSeq(self.applied.load(Ordering::Acquire))
    }

    /// Everything up to `seq` is ordered. The order stage is held.
    pub fn advance(&self, seq: CommitSeq) {
        self.applied.fetch_max(seq.0, Ordering::AcqRel);
    }

    /// A view of what is ordered. The order stage is held, so it covers whole transactions.
    pub fn pin(self: &Arc<Views>) -> Pin {
        let mut live = self.live.lock();
        let seq = self.applied();
        *live.counts.entry(seq).or_default() += 1;
        live.young.push_back(seq);
        if live.young.len() > self.young_max {
            live.young.pop_front();
        }
        Pin { seq, views: Arc::clone(self) }
    }

    /// Views in use, what the oldest of them sees, and the newest transaction.
    pub fn count(&self) -> (usize, CommitSeq, CommitSeq) {
        let live = self.live.lock();
        let newest = self.applied();
        (live.counts.values().sum(), live.counts.keys().next().copied().unwrap_or(newest), newest)
    }

    /// What every present and later view sees.
    pub fn oldest(&self) -> CommitSeq {
        let live = self.live.lock();
        live.counts.keys().next().copied().unwrap_or_else(|| self.applied())
    }

    /// Those in use now.
    pub fn in_use(&self) -> InUse {
        let live = self.live.lock();
        let applied = self.applied();
        let first_young = live.young.front().copied().unwrap_or(applied);
        let until = live.counts.range(first_young..).next().map_or(applied, |(seq, _)| *seq);
        InUse { seqs: live.counts.keys().copied().collect(), until }
    }
}
