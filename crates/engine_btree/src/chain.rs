//! Version chains: the versions of one entry, from the newest to the oldest.
//!
//! The entry holds the newest version. Its predecessor is in the undo of the transaction that wrote the
//! newest version, together with a [`Link`]. The link names the transaction that wrote the predecessor, and
//! the position where a view that cannot see the predecessor continues. A transaction's state and undo are
//! its *record* ([`TrxRecord`]). *Purge* removes records that no view needs; *pruning* does so while an old
//! view stops purge (`version.rs`).
//!
//! # Resolved links
//! A writer creates a link that contains only the name of the version below. It does not read the record of
//! another transaction, because that record is rarely in the processor's caches. Pruning reads that record
//! anyway and then *resolves* the link: it stores the CommitSeq at which the version was written
//! and how its chain ends. A reader that meets an unresolved link reads the record.
//!
//! # Short chains
//! An open view keeps one version of a row, although the row may be written a thousand times meanwhile.
//! Pruning therefore shortens the chain of a pruned transaction's version ([`Versions::shorten`]): the chain
//! skips the versions that no view in use needs. One call examines and removes a bounded number of versions.
//! A chain has about as many versions as the open views need, plus those that were not pruned yet.
//!
//! # Live versions
//! A version is *live* while a chain leads to it from its entry. It *ends* (becomes unreachable) when the
//! chain skips it, or when its entry is removed ([`Versions::end_chain`]). A record is dropped once it was
//! pruned and none of its versions is live.
//!
//! # Invariants
//! - A link leads to the version that its own version replaced. Only pruning redirects links; writers never
//!   do. A version is therefore reachable from at most one live version, and a skipped version is not
//!   reachable at all. For this reason ended versions are not processed further ([`Versions::shorten`]):
//!   their links may lead to dropped records.
//! - Only the chains of ordered and pruned transactions skip versions. What these transactions replaced can
//!   no longer be restored. The references in an entry, and in the undo of undecided or aborted transactions
//!   above it, therefore always name an existing record.
//! - A reader follows a chain under the latch of its entry's page, but pruning takes no latch. If pruning
//!   skips a version that a reader is about to read, the reader may find its record dropped. It then restarts
//!   at the entry: links change before the record is dropped. If the record of an unresolved link is gone
//!   and the link is unchanged, purge has passed the version: all views see it.
//! - If a link's version was written at `seq`, then a view that is older than `seq` finds its version at
//!   `below` or further down. `below` names the transaction whose undo holds that version. It is newer than
//!   the view, so purge has not passed it. No view older than `seq` is created later.

use std::sync::Arc;

use cohort_base::{CommitSeq, EngineWork};
use cohort_engine::EngineError;

use crate::trx_record::{TrxRecord, TrxState};
use crate::undo::{End, Link};
use crate::version::{Below, Horizon, Shown, Versions};
use crate::version_ref::VersionRef;
use crate::views::InUse;

/// Maximum number of versions that one call removes from a chain.
const SHORTENED_MAX: usize = 64;
/// Maximum number of versions that are examined to find out whether a view needs one.
const LOOKED_AT_MAX: usize = 16;
/// Maximum number of versions that end together with their entry. The rest is left to purge.
const ENDED_MAX: usize = 1024;
/// Maximum number of restarts of a reader that races with pruning. A link of the chain changes before each
/// restart, so more of them mean that a link is corrupt.
const WALKS_MAX: usize = 10_000;

impl Versions {
    /// Returns what the horizon sees of an entry that refers to `version`. The caller holds the latch of the
    /// entry's page.
    pub fn resolve(&self, horizon: Horizon, version: Option<VersionRef>) -> Result<Shown, EngineError> {
        let Some(newest) = version else { return Ok(Shown::Entry) };
        for _ in 0..WALKS_MAX {
            let Some(writer) = self.unseen(horizon, newest.trx) else { return Ok(Shown::Entry) };
            let Some((record, at)) = self.walk(horizon, writer, newest) else { continue };
            let older = record.undo(at.undo)?;
            // At `Latest`, the writer may have been ordered since the first check, and the version that it
            // replaced freed.
            if horizon.sees_record(&record) {
                return Ok(Shown::Entry);
            }
            EngineWork::old_row();
            return Ok(Shown::Older(older));
        }
        Err(EngineError::Corrupt("a chain of versions leads to a transaction that was dropped".to_owned()))
    }

    /// Returns the oldest version that the horizon does not see. Returns `None` if pruning changed the chain
    /// meanwhile.
    fn walk(
        &self,
        horizon: Horizon,
        writer: Arc<TrxRecord>,
        newest: VersionRef,
    ) -> Option<(Arc<TrxRecord>, VersionRef)> {
        let (mut record, mut at) = (writer, newest);
        while let Some(link) = record.link(at.undo) {
            if horizon.is_latest() || link.seq.is_some_and(|seq| horizon.sees(seq)) {
                break;
            }
            match self.find_below(link.below.trx) {
                Below::There(below) if link.seq.is_none() && horizon.sees_record(&below) => break,
                Below::There(below) => (record, at) = (below, link.below),
                Below::Gone if link.seq.is_none() && record.link(at.undo) == Some(link) => break,
                Below::Gone | Below::Dropped => return None,
            }
        }
        Some((record, at))
    }

    /// Resolves the links of the records' live versions. Only the purge thread calls it, for purge and for
    /// pruning.
    pub fn resolve_links<'r>(&self, records: impl Iterator<Item = &'r TrxRecord> + Clone) {
        let mut older = Vec::new();
        records.clone().for_each(|record| record.list_unresolved(&mut older));
        let below = self.find_all(&older);
        let mut found = older.iter().zip(&below).map(|(older, below)| {
            let Some(below) = below else { return (CommitSeq(0), End::Next) };
            let TrxState::Committed(seq) = below.state() else {
                unreachable!("what is written over was ordered")
            };
            (seq, below.end_below(older.undo))
        });
        records.for_each(|record| record.resolve(&mut found));
    }

    /// Returns the link of a live version, resolved if necessary, and the CommitSeq of the version below.
    fn resolved(&self, record: &TrxRecord, undo: u32) -> Option<(Link, CommitSeq)> {
        let mut link = record.link(undo)?;
        if link.seq.is_none() {
            self.resolve_links(std::iter::once(record));
            link = record.link(undo)?;
        }
        Some((link, link.seq.expect("resolved above")))
    }

    /// Shortens the chains below the live versions of a pruned record, whose links are resolved: they skip
    /// what no view needs any more. Links that already skip versions are left out, because their chains were
    /// processed from above. Adds records that have no live version left to `dropped`.
    pub fn shorten(&self, record: &Arc<TrxRecord>, in_use: &InUse, dropped: &mut Vec<Arc<TrxRecord>>) {
        for (place, link) in record.whole_links() {
            let (mut record, mut place, mut link) = (record.clone(), place, link);
            for _ in 0..LOOKED_AT_MAX {
                let shortened = self.shorten_one(&record, place, link, in_use, dropped);
                let Some((below, next)) = shortened else { break };
                let Some((found, _)) = self.resolved(&next, below.undo) else { break };
                if found.end != End::Far {
                    break;
                }
                (record, place, link) = (next, below.undo, found);
            }
        }
    }

    /// Shortens the chain below one link. Returns the link's new target and its record if the chain continues
    /// there. The last version of a chain is not read: it was written long ago.
    fn shorten_one(
        &self,
        record: &TrxRecord,
        place: u32,
        link: Link,
        in_use: &InUse,
        dropped: &mut Vec<Arc<TrxRecord>>,
    ) -> Option<(VersionRef, Arc<TrxRecord>)> {
        let (mut below, mut end, to) = (link.below, link.end, link.seq?);
        let mut found = Some(self.find(below.trx)?);
        let mut passed = Vec::new();
        while let Some(over) = found.take_if(|_| passed.len() < SHORTENED_MAX) {
            debug_assert!(
                self.resolved(&over, below.undo).is_none_or(|(_, from)| from <= to),
                "versions of an entry were committed in another order than that of their chain"
            );
            let next = self.resolved(&over, below.undo).filter(|(_, from)| !in_use.is_any_in(*from, to));
            let further = next.and_then(|(next, _)| Some((next, self.below(next)?)));
            let Some((next, further)) = further else {
                found = Some(over);
                break;
            };
            passed.push((below.undo, over));
            (below, end, found) = (next.below, next.end, further);
        }
        debug_assert_eq!(
            below != link.below,
            !passed.is_empty(),
            "versions end to which the chain still leads"
        );
        if below != link.below {
            record.shorten(place, below, end);
        }
        passed.into_iter().for_each(|(undo, record)| end_version(undo, &record, dropped));
        Some((below, found?))
    }

    /// Returns the record below a link if the chain continues there, `Some(None)` if it does not, and `None`
    /// if all views see that version.
    fn below(&self, link: Link) -> Option<Option<Arc<TrxRecord>>> {
        match link.end {
            End::Far => self.find(link.below.trx).map(Some),
            End::Next | End::Nothing => (!self.is_seen_by_all(link.below.trx)).then_some(None),
        }
    }

    /// Ends all versions of a chain because its entry, whose newest version is at `undo` of `record`, is
    /// removed. The caller holds the page's latch exclusively.
    pub fn end_chain(&self, record: &Arc<TrxRecord>, undo: u32, dropped: &mut Vec<Arc<TrxRecord>>) {
        let (mut record, mut undo) = (record.clone(), undo);
        for _ in 0..ENDED_MAX {
            let link = record.link(undo);
            end_version(undo, &record, dropped);
            let next = link.and_then(|link| Some((self.find(link.below.trx)?, link.below.undo)));
            let Some(next) = next else { return };
            (record, undo) = next;
        }
    }

    /// Returns whether a view in use that does not see the record's write at `undo`, made at `seq`, sees an
    /// older version of the entry instead.
    pub fn is_needed(&self, record: &Arc<TrxRecord>, undo: u32, seq: CommitSeq, in_use: &InUse) -> bool {
        let (mut record, mut undo, mut to) = (record.clone(), undo, seq);
        for _ in 0..LOOKED_AT_MAX {
            let link = self.resolved(&record, undo);
            let from = link.map_or(CommitSeq(0), |(_, from)| from);
            debug_assert!(from <= to, "a version is newer than the one that replaced it");
            // Spilled undo counts as a value: the undo file is not read for this.
            if record.has_value(undo) != Some(false) && in_use.is_any_in(from, to) {
                return true;
            }
            let further =
                link.filter(|(link, from)| link.end != End::Nothing && in_use.is_any_in(CommitSeq(0), *from));
            let Some((link, from)) = further else { return false };
            let Some(below) = self.find(link.below.trx) else { return false };
            (record, undo, to) = (below, link.below.undo, from);
        }
        true
    }
}

fn end_version(undo: u32, record: &Arc<TrxRecord>, dropped: &mut Vec<Arc<TrxRecord>>) {
    record.end_version(undo);
    if record.is_droppable() {
        dropped.push(record.clone());
    }
}
