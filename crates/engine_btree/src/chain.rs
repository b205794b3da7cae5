//! The versions of one entry, from the newest down.
//!
//! An entry holds the newest version. What it replaced lies in the undo of the transaction that wrote it,
//! with a [`Link`]: the transaction that wrote the older version, and where the next older one is, for a view
//! that does not see this one either.
//!
//! # Short chains
//! A view that is held open keeps one version of a row, and the row may be written a thousand times
//! meanwhile. So sweeping lets the chain of a swept transaction's version go past what no view in use needs
//! ([`Versions::shorten`]): a version that none sees in its place. A chain has about as many versions as
//! views that are held need, and those that were not swept yet.
//!
//! # Living versions
//! A version *lives* while a chain leads to it from its entry. It *ends* when the chain goes past it, or when
//! its entry is taken out ([`Versions::end_chain`]). A record none of whose versions lives is dropped after
//! it was swept.
//!
//! # Invariants
//! - A link leads to the version that its own replaced, until sweeping lets it go further: writers never let
//!   one go past anything. So one living version leads to a version at the most, and what a chain goes past
//!   is reached from nowhere. This is why versions that have ended are left alone ([`Versions::shorten`]):
//!   their links may lead to what was dropped.
//! - Only what was ordered and swept lets its chain go past anything. What it replaced cannot come back, so
//!   the reference in an entry, and in the undo of what is undecided or aborted above it, always names a
//!   record that is there.
//! - A chain is walked under the latch of its entry's page, but sweeping takes none. A reader that was on its
//!   way to a version that was gone past meanwhile may find its record dropped, and starts again at the
//!   entry: links change before the record goes.
//! - Let a link's version be written at `seq`. A view in use before `seq` finds its version from `below` on,
//!   and the transaction that `below` names is newer than that view, so purge has not passed it. No view from
//!   before `seq` comes later.

use std::sync::Arc;

use cohort_base::CommitSeq;
use cohort_engine::EngineError;

use crate::undo::{End, Link};
use crate::version::{Horizon, Shown, TrxRecord, TrxState, VersionRef, Versions};
use crate::views::InUse;

/// Versions that one look takes out of a chain.
const SHORTENED_MAX: usize = 64;
/// Versions that are looked at to learn whether a view needs one.
const LOOKED_AT_MAX: usize = 16;
/// Versions of a chain that end with its entry. More of them are left to purge.
const ENDED_MAX: usize = 1024;
/// A reader loses a race against sweeping so often at the most. Each time a link of its chain has changed, so
/// more of it means that one leads nowhere.
const WALKS_MAX: usize = 10_000;

impl Versions {
    /// What an entry that refers to `version` shows at the horizon. The caller holds the latch of the entry's
    /// page.
    pub fn resolve(&self, horizon: Horizon, version: Option<VersionRef>) -> Result<Shown, EngineError> {
        let Some(newest) = version else { return Ok(Shown::Entry) };
        for _ in 0..WALKS_MAX {
            let Some(writer) = self.unseen(horizon, newest.trx) else { return Ok(Shown::Entry) };
            let Some((record, at)) = self.walk(horizon, writer, newest) else { continue };
            let older = record.undo(at.undo)?;
            // At `Latest` the writer may have been ordered since the first look, and what it replaced freed.
            return Ok(if horizon.sees_record(&record) { Shown::Entry } else { Shown::Older(older) });
        }
        Err(EngineError::Corrupt("a chain of versions leads to a transaction that was dropped".to_owned()))
    }

    /// The oldest version that the horizon does not see. None: sweeping has changed the chain meanwhile.
    fn walk(
        &self,
        horizon: Horizon,
        writer: Arc<TrxRecord>,
        newest: VersionRef,
    ) -> Option<(Arc<TrxRecord>, VersionRef)> {
        let (mut record, mut at) = (writer, newest);
        while let Some(link) = record.link(at.undo).filter(|link| !horizon.sees(link.seq)) {
            at = link.below;
            record = self.find_below(at.trx)?;
        }
        Some((record, at))
    }

    /// The link of a version that is about to be written over `older`, the version of an ordered transaction
    /// with this record. The caller holds the page's latch alone.
    pub fn link_over(&self, older: VersionRef, record: &TrxRecord) -> Link {
        let TrxState::Committed(seq) = record.state() else {
            unreachable!("what is written over was ordered")
        };
        Link { seq, older, below: older, end: record.end_below(older.undo) }
    }

    /// Lets the chains below the living versions of a swept record go past what no view needs any more.
    /// Writes whose chains went past something before are left out: those chains were looked at from above.
    /// Records that nobody refers to then are added to `dropped`.
    pub fn shorten(&self, record: &Arc<TrxRecord>, in_use: &InUse, dropped: &mut Vec<Arc<TrxRecord>>) {
        for (place, link) in record.whole_links() {
            let (mut record, mut place, mut link) = (record.clone(), place, link);
            for _ in 0..LOOKED_AT_MAX {
                let shortened = self.shorten_one(&record, place, link, in_use, dropped);
                let Some((below, next)) = shortened else { break };
                let Some(found) = next.link(below.undo) else { break };
                (record, place, link) = (next, below.undo, found);
            }
        }
    }

    /// Where the link leads then.
    fn shorten_one(
        &self,
        record: &TrxRecord,
        place: u32,
        link: Link,
        in_use: &InUse,
        dropped: &mut Vec<Arc<TrxRecord>>,
    ) -> Option<(VersionRef, Arc<TrxRecord>)> {
        let (mut below, mut found) = (link.below, self.find(link.below.trx)?);
        let mut passed = Vec::new();
        for _ in 0..SHORTENED_MAX {
            let next = found.link(below.undo).filter(|next| !in_use.is_any_in(next.seq, link.seq));
            let Some((next, further)) = next.and_then(|next| Some((next, self.find(next.below.trx)?))) else {
                break;
            };
            passed.push((below, found));
            (below, found) = (next.below, further);
        }
        if below != link.below {
            record.shorten(place, below);
        }
        passed.into_iter().for_each(|(version, record)| end_version(version, record, dropped));
        Some((below, found))
    }

    /// The entry whose newest version this was is taken out: its chain ends. The caller holds the page's
    /// latch alone.
    pub fn end_chain(&self, newest: VersionRef, dropped: &mut Vec<Arc<TrxRecord>>) {
        let mut next = Some(newest);
        for _ in 0..ENDED_MAX {
            let Some((version, record)) = next.and_then(|at| Some((at, self.find(at.trx)?))) else { return };
            next = record.link(version.undo).map(|link| link.below);
            end_version(version, record, dropped);
        }
    }

    /// Whether a view in use that does not see `version`, written at `seq`, sees anything in its place.
    pub fn is_needed(&self, version: VersionRef, seq: CommitSeq, in_use: &InUse) -> bool {
        let (mut at, mut to) = (version, seq);
        for _ in 0..LOOKED_AT_MAX {
            let Some(record) = self.find(at.trx) else { return false };
            let link = record.link(at.undo);
            let from = link.map_or(CommitSeq(0), |link| link.seq);
            // What lies in the undo file is not read to learn it.
            if record.has_value(at.undo) != Some(false) && in_use.is_any_in(from, to) {
                return true;
            }
            let further =
                link.filter(|link| link.end != End::Nothing && in_use.is_any_in(CommitSeq(0), link.seq));
            let Some(link) = further else { return false };
            (at, to) = (link.below, link.seq);
        }
        true
    }
}

fn end_version(version: VersionRef, record: Arc<TrxRecord>, dropped: &mut Vec<Arc<TrxRecord>>) {
    record.end_version(version.undo);
    if record.is_droppable() {
        dropped.push(record);
    }
}
