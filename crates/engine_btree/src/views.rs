//! Views in use: the past states that may still be read.
//!
//! A view is a CommitSeq. It is *in use* while a [`Pin`] of it exists. It starts at the last ordered
//! transaction, so no later view is older than that. The views of most statements are released after
//! milliseconds. A view that is still in use after many newer views were taken counts as *held open*: the
//! versions between such views are then swept instead of waiting for purge (`sweep.rs`).

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cohort_base::CommitSeq;
use cohort_engine::EngineSnapshot;

use crate::sync::{AtomicU64, Mutex, Ordering};

/// All views of an engine, including the horizon of a running checkpoint.
#[derive(Debug)]
pub struct Views {
    live: Mutex<Live>,
    /// The last ordered transaction. Written by the holder of the order stage.
    applied: AtomicU64,
    /// Number of newer views after which a view counts as held open.
    young_max: usize,
}

#[derive(Debug, Default)]
struct Live {
    /// Number of views with each CommitSeq.
    counts: BTreeMap<CommitSeq, usize>,
    /// CommitSeqs of the latest views taken, in use or not, oldest first.
    young: VecDeque<CommitSeq>,
}

/// A view in use, which blocks purge until it is dropped.
pub struct Pin {
    pub seq: CommitSeq,
    views: Arc<Views>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut live = self.views.live.lock();
        let count = live.counts.get_mut(&self.seq).expect("counted when made");
        debug_assert!(*count > 0, "a view ends twice: purge would pass what another view needs");
        *count -= 1;
        if *count == 0 {
            live.counts.remove(&self.seq);
        }
    }
}

/// The views in use at one moment. Views taken later see all transactions up to `until`.
#[derive(Debug)]
pub struct InUse {
    /// In ascending order.
    seqs: Vec<CommitSeq>,
    /// All views that are older than this are held open.
    pub until: CommitSeq,
}

impl InUse {
    /// Returns whether any of the views sees `from` but not `to`.
    pub fn is_any_in(&self, from: CommitSeq, to: CommitSeq) -> bool {
        self.seqs.get(self.seqs.partition_point(|seq| *seq < from)).is_some_and(|seq| *seq < to)
    }

    /// Returns whether a view is held open that does not see `until`.
    pub fn is_any_held(&self) -> bool {
        self.seqs.first().is_some_and(|seq| *seq < self.until)
    }
}

impl Views {
    /// Creates a state without views and without ordered transactions.
    pub fn new(young_max: usize) -> Views {
        Views { live: Mutex::default(), applied: AtomicU64::new(0), young_max }
    }

    /// Returns the last ordered transaction.
    pub fn applied(&self) -> CommitSeq {
        CommitSeq(self.applied.load(Ordering::Acquire))
    }

    /// Notes that all transactions up to `seq` are ordered. The caller holds the order stage.
    pub fn advance(&self, seq: CommitSeq) {
        self.applied.fetch_max(seq.0, Ordering::AcqRel);
    }

    /// Takes a view of all ordered transactions. The caller holds the order stage, so the view covers whole
    /// transactions.
    pub fn pin(self: &Arc<Views>) -> Pin {
        let mut live = self.live.lock();
        let seq = self.applied();
        debug_assert!(
            live.young.back().is_none_or(|newest| *newest <= seq),
            "a view is older than one taken before it: purge may have passed its versions"
        );
        *live.counts.entry(seq).or_default() += 1;
        live.young.push_back(seq);
        if live.young.len() > self.young_max {
            live.young.pop_front();
        }
        Pin { seq, views: Arc::clone(self) }
    }

    /// Returns the number of views in use, the oldest of them, and the newest transaction.
    pub fn count(&self) -> (usize, CommitSeq, CommitSeq) {
        let live = self.live.lock();
        let newest = self.applied();
        (live.counts.values().sum(), live.counts.keys().next().copied().unwrap_or(newest), newest)
    }

    /// Returns the oldest view in use. Every current and later view sees its transactions.
    pub fn oldest(&self) -> CommitSeq {
        let live = self.live.lock();
        live.counts.keys().next().copied().unwrap_or_else(|| self.applied())
    }

    /// Returns the views that are in use now.
    pub fn in_use(&self) -> InUse {
        let live = self.live.lock();
        let applied = self.applied();
        let first_young = live.young.front().copied().unwrap_or(applied);
        let until = live.counts.range(first_young..).next().map_or(applied, |(seq, _)| *seq);
        debug_assert!(until <= applied, "what no view sees yet would be swept");
        InUse { seqs: live.counts.keys().copied().collect(), until }
    }
}

/// The engine's snapshot in a read view.
pub struct View {
    pin: Pin,
}

impl View {
    /// Creates the snapshot of a pinned view.
    pub fn new(pin: Pin) -> View {
        View { pin }
    }

    /// Returns the newest transaction that the view sees.
    pub fn seq(&self) -> CommitSeq {
        self.pin.seq
    }
}

impl EngineSnapshot for View {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
