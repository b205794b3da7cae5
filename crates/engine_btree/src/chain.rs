//! The versions of one entry, from the newest down.
//!
//! An entry holds the newest version. What it replaced lies in the undo of the transaction that wrote it,
//! with a [`Link`]: the transaction that wrote the older version, and where the next older one is, for a view
//! that does not see this one either.
//!
//! # Settled links
//! A writer leaves a link that names the version below and nothing else: it looks at no record of another
//! transaction, which is seldom in the processor's caches. Sweeping, which looks at that record anyway,
//! *settles* the link: it keeps when the version was written and how its chain ends. A reader that comes to
//! an unsettled link asks the record.
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
//!   entry: links change before the record goes. An unsettled link whose record is gone leads to what
//!   everybody sees only if it is still the same afterwards.
//! - Let a link's version be written at `seq`. A view in use before `seq` finds its version from `below` on,
//!   and the transaction that `below` names is newer than that view, so purge has not passed it. No view from
//!   before `seq` comes later.

use std::sync::Arc;

use cohort_base::CommitSeq;
use cohort_engine::EngineError;

use crate::undo::{End, Link};
use crate::version::{Below, Horizon, Shown, TrxRecord, TrxState, VersionRef, Versions};
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

    /// Settles the links of the records' living versions. Purge calls it, and nobody else at the same time.
    pub fn settle<'r>(&self, records: impl Iterator<Item = &'r TrxRecord> + Clone) {
        let mut older = Vec::new();
        records.clone().for_each(|record| record.list_unsettled(&mut older));
        let below = self.find_all(&older);
        let mut found = older.iter().zip(&below).map(|(older, below)| {
            let Some(below) = below else { return (CommitSeq(0), End::Next) };
            let TrxState::Committed(seq) = below.state() else {
                unreachable!("what is written over was ordered")
            };
            (seq, below.end_below(older.undo))
        });
        records.for_each(|record| record.settle(&mut found));
    }

    /// A settled link of a living version, with when the version below was written.
    fn settled(&self, record: &TrxRecord, undo: u32) -> Option<(Link, CommitSeq)> {
        let mut link = record.link(undo)?;
        if link.seq.is_none() {
            self.settle(std::iter::once(record));
            link = record.link(undo)?;
        }
        Some((link, link.seq.expect("settled above")))
    }

    /// Lets the chains below the living versions of a swept record, which are settled, go past what no view
    /// needs any more. Writes whose chains went past something before are left out: those chains were looked
    /// at from above. Records that nobody refers to then are added to `dropped`.
    pub fn shorten(&self, record: &Arc<TrxRecord>, in_use: &InUse, dropped: &mut Vec<Arc<TrxRecord>>) {
        for (place, link) in record.whole_links() {
            let (mut record, mut place, mut link) = (record.clone(), place, link);
            for _ in 0..LOOKED_AT_MAX {
                let shortened = self.shorten_one(&record, place, link, in_use, dropped);
                let Some((below, next)) = shortened else { break };
                let Some((found, _)) = self.settled(&next, below.undo) else { break };
                if found.end != End::Far {
                    break;
                }
                (record, place, link) = (next, below.undo, found);
            }
        }
    }

    /// Where the link leads then, if the chain goes on there. A version that ends its chain is not looked at:
    /// it was written long ago.
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
            let next = self.settled(&over, below.undo).filter(|(_, from)| !in_use.is_any_in(*from, to));
            let further = next.and_then(|(next, _)| Some((next, self.below(next)?)));
            let Some((next, further)) = further else {
                found = Some(over);
                break;
            };
            passed.push((below.undo, over));
            (below, end, found) = (next.below, next.end, further);
        }
        if below != link.below {
            record.shorten(place, below, end);
        }
        passed.into_iter().for_each(|(undo, record)| end_version(undo, &record, dropped));
        Some((below, found?))
    }

    /// The record below a link, if the chain goes on there. None: everybody sees that version.
    fn below(&self, link: Link) -> Option<Option<Arc<TrxRecord>>> {
        match link.end {
            End::Far => self.find(link.below.trx).map(Some),
            End::Next | End::Nothing => (!self.is_seen_by_all(link.below.trx)).then_some(None),
        }
    }

    /// The entry whose newest version this was is taken out: its chain ends. The caller holds the page's
    /// latch alone.
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

    /// Whether a view in use that does not see the record's write at `undo`, written at `seq`, sees anything
    /// in its place.
    pub fn is_needed(&self, record: &Arc<TrxRecord>, undo: u32, seq: CommitSeq, in_use: &InUse) -> bool {
        let (mut record, mut undo, mut to) = (record.clone(), undo, seq);
        for _ in 0..LOOKED_AT_MAX {
            let link = self.settled(&record, undo);
            let from = link.map_or(CommitSeq(0), |(_, from)| from);
            // What lies in the undo file is not read to learn it.
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
