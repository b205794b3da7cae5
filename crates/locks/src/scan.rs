//! Range lock requests and their waits, on top of `ranges.rs`.

use cohort_base::{CommitSeq, IndexId};

use crate::kill::KillFlag;
use crate::owner::WaitOn;
use crate::points::LockSpan;
use crate::ranges::{Claimed, RangeScan, Step, StepTo};
use crate::sync::Ordering;
use crate::table::{Granted, LockError, LockOwner, LockTable, WaitLimit, Wakeups};

/// Estimated bytes of a point in addition to its key.
const POINT_BYTES: usize = 24;

/// Requests without waiting.
const NO_WAIT: Option<fn()> = None;

impl LockTable {
    /// Announces that the transaction inserts a key into an index, and waits while other owners' locked
    /// ranges contain the key. Call before the key is looked up, and before anything of its row is written.
    pub fn put_key(
        &self,
        owner: &mut LockOwner,
        index: IndexId,
        key: &[u8],
        wait: WaitLimit,
        kill: &KillFlag,
    ) -> Result<Granted, LockError> {
        debug_assert_eq!(owner.shared.released.load(Ordering::Relaxed), 0, "an owner is used once");
        if !owner.has_points {
            self.ranges.register(&owner.shared);
            owner.has_points = true;
        }
        let mut misled = Wakeups::default();
        let predecessor = match self.ranges.put(index, &owner.shared, key, NO_WAIT, misled.owners()) {
            Claimed::Done(predecessor) => predecessor,
            Claimed::Blocked => {
                drop(misled);
                self.wait_to_put(owner, index, key, wait, kill)?
            }
        };
        debug_assert!(owner.has_points, "an inserted key is in no list that scans search");
        owner.point_bytes += key.len() + POINT_BYTES;
        owner.depends_on = owner.depends_on.max(CommitSeq(predecessor));
        Ok(Granted { predecessor: (predecessor != 0).then_some(CommitSeq(predecessor)) })
    }

    fn wait_to_put(
        &self,
        owner: &mut LockOwner,
        index: IndexId,
        key: &[u8],
        wait: WaitLimit,
        kill: &KillFlag,
    ) -> Result<u64, LockError> {
        let WaitLimit::For(limit) = wait else { return Err(LockError::NoWait) };
        let graph = self.begin_wait(owner);
        let (on, shared) = (WaitOn::Range(index), owner.shared.clone());
        let start = || shared.start_wait(on.clone(), self.sleeper());
        match self.ranges.put(index, &shared, key, Some(start), &mut Vec::new()) {
            Claimed::Done(predecessor) => {
                // The wait may have begun: the request was granted as it was queued.
                shared.end_wait();
                Ok(predecessor)
            }
            Claimed::Blocked => self.wait_counted(graph, owner, &on, limit, kill),
        }
    }

    /// Announces the span that a scan reads next. The part that it has passed stays locked.
    pub fn watch(&self, owner: &mut LockOwner, scan: &RangeScan, ahead: LockSpan) {
        debug_assert_eq!(owner.shared.released.load(Ordering::Relaxed), 0, "an owner is used once");
        if self.ranges.watch(scan, &owner.shared, ahead) {
            debug_assert!(
                !owner.ranges_in.contains(&scan.index()),
                "ranges of an index would be forgotten twice"
            );
            owner.ranges_in.push(scan.index());
        }
    }

    /// Locks the part that a scan has read, up to an entry or to the end of the watched span. Waits for a
    /// transaction that has inserted a key there. After [`Step::Again`] the entries read may be incomplete:
    /// call `watch` and read again, starting after the entry passed last.
    pub fn advance(
        &self,
        owner: &mut LockOwner,
        scan: &RangeScan,
        to: StepTo<'_>,
        wait: WaitLimit,
        kill: &KillFlag,
    ) -> Result<Step, LockError> {
        debug_assert!(owner.ranges_in.contains(&scan.index()), "a scan locks what it has not announced");
        if let Claimed::Done(step) = self.ranges.advance(scan, &owner.shared, to, NO_WAIT) {
            return Ok(step);
        }
        let WaitLimit::For(limit) = wait else { return Err(LockError::NoWait) };
        let graph = self.begin_wait(owner);
        let (on, shared) = (WaitOn::Range(scan.index()), owner.shared.clone());
        let start = || shared.start_wait(on.clone(), self.sleeper());
        match self.ranges.advance(scan, &shared, to, Some(start)) {
            Claimed::Done(step) => {
                shared.end_wait();
                Ok(step)
            }
            Claimed::Blocked => self.wait_counted(graph, owner, &on, limit, kill).map(|_| Step::Again),
        }
    }
}
