//! The versions of one entry, from the newest down.
//!
//! An entry holds the newest version. What it replaced lies in the undo of the transaction that wrote it,
//! with a [`Link`]: the transaction that wrote the older version, and where the next older one is, for a view
//! that does not see this one either.
//!
//! # Short chains
//! A view that is held open keeps one version of a row, and the row may be written a thousand times
//! meanwhile. So a writer that replaces a version links past it if no view in use sees that version's
//! predecessor and not itself ([`Versions::link_over`]). If one does that is gone later, sweeping lets the
//! chain go on further down ([`Versions::shorten`]). A chain has about as many versions as views that are
//! held need, and those of the moment.
//!
//! # Invariants
//! - A chain is walked under the latch of its entry's page.
//! - Let a link's version be written at `seq`. A view in use before `seq` finds its version from `below` on,
//!   and the transaction that `below` names is newer than that view, so purge has not passed it. No view from
//!   before `seq` comes later.
//! - A chain goes past what no view in use needs, which no later one can need. So it does not matter whether
//!   the writer is ordered or dropped in the end, and a reader may have gone either way.

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

impl Versions {
    /// What an entry that refers to `version` shows at the horizon. The caller holds the latch of the entry's
    /// page.
    pub fn resolve(&self, horizon: Horizon, version: Option<VersionRef>) -> Result<Shown, EngineError> {
        let Some(mut at) = version else { return Ok(Shown::Entry) };
        let Some(mut record) = self.unseen(horizon, at.trx) else { return Ok(Shown::Entry) };
        while let Some(link) = record.link(at.undo).filter(|link| !horizon.sees(link.seq)) {
            at = link.below;
            record = self.find(at.trx).expect("purge does not pass what a view needs");
        }
        let older = record.undo(at.undo)?;
        // At `Latest` the writer may have been ordered since the first look, and what it replaced freed.
        Ok(if horizon.sees_record(&record) { Shown::Entry } else { Shown::Older(older) })
    }

    /// The link of a version that is about to be written over `older`, the version of an ordered transaction
    /// with this record. The caller holds the page's latch alone.
    pub fn link_over(&self, older: VersionRef, record: &TrxRecord) -> Link {
        let TrxState::Committed(seq) = record.state() else {
            unreachable!("what is written over was ordered")
        };
        match record.link(older.undo) {
            None if record.has_value(older.undo) == Some(false) => {
                Link { seq, older, below: older, end: End::Nothing }
            }
            None => Link { seq, older, below: older, end: End::Next },
            // If everybody sees what `link` is about, nobody goes further down.
            Some(link) if link.seq > self.views.oldest_at_least() && !self.views.is_any_in(link.seq, seq) => {
                Link { seq, older, below: link.below, end: link.end }
            }
            Some(_) => Link { seq, older, below: older, end: End::Far },
        }
    }

    /// Lets the chains below a record's writes go past what no view needs any more. Writes whose chains went
    /// past something at once are left out: those chains were looked at from above.
    pub fn shorten(&self, record: &Arc<TrxRecord>, in_use: &InUse) {
        for (place, link) in record.whole_links() {
            let (mut record, mut place, mut link) = (record.clone(), place, link);
            for _ in 0..LOOKED_AT_MAX {
                let Some((below, next)) = self.shorten_one(&record, place, link, in_use) else { break };
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
    ) -> Option<(VersionRef, Arc<TrxRecord>)> {
        let (mut below, mut found) = (link.below, self.find(link.below.trx)?);
        for _ in 0..SHORTENED_MAX {
            let next = found.link(below.undo).filter(|next| !in_use.is_any_in(next.seq, link.seq));
            let Some((next, further)) = next.and_then(|next| Some((next, self.find(next.below.trx)?))) else {
                break;
            };
            (below, found) = (next.below, further);
        }
        if below != link.below {
            record.shorten(place, below);
        }
        Some((below, found))
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
