//! Interior version pruning: frees versions that no view needs while an old view blocks purge.
//!
//! Purge stops at the oldest view. While that view stays open, the transactions after it are pruned. Each
//! transaction is examined once, as soon as every view that does not see it counts as *held*: a given number
//! of newer views has been created since (`views.rs`). Pruning does the following, for all writes of a
//! transaction or for none:
//! - It frees undo, but not its links, and overflow values on disk, if no view needs them.
//! - It makes chains skip the versions that no view needs (`chain.rs`).
//! - It removes entries that the transaction deleted and of which no view sees a version.
//! - It drops transaction records that are no longer reachable.
//!
//! A view that stays open for an hour therefore keeps one version of each row that changed meanwhile. For it,
//! the transaction records of the newest writer and of the transaction that overwrote the version are kept,
//! instead of all of them.
//!
//! # Invariants
//! - No view in use sees what is freed or removed, and no later view does: later views see the pruned
//!   transaction ([`InUse`]).
//! - The keys of a transaction's deletions are kept while normal purge may need them. That is the case if a
//!   view needs a version of the deleted entry, or if an undecided or aborted transaction has written the
//!   entry since and may restore it.
//! - Aborted transactions are left to purge, and so are transactions with spilled undo.
//! - A round proceeds from the oldest transaction to the newest, so that most chains have only one version to
//!   skip.
//!
//! # On failure
//! A page that cannot be read ends the round. The finished work is kept, and a later round retries the rest.
//!
//! # What is missing
//! - Chains of dropped or truncated tables are not ended here: the records of their writers wait for purge.
//! - A record is pruned once. When a view other than the oldest closes, versions that only this view needed
//!   wait for the oldest view to close, unless their rows are written again.
//! - A record keeps all its links as long as one of its versions is live.

use std::sync::Arc;

use cohort_base::CommitSeq;
use cohort_engine::EngineError;

use crate::inner::{Inner, PurgeError};
use crate::tree::Tree;
use crate::trx_record::{Cleanup, TrxRecord, TrxState};
use crate::undo::Cursor;
use crate::views::InUse;

/// Maximum number of records of each segment per round.
const PRUNE_RECORDS_MAX: usize = 1024;
/// Number of records whose links are resolved together. Small enough that the data read for it stays in the
/// caches until these records are pruned.
const SETTLED_AT_ONCE: usize = 256;

/// Outcome for a deleted entry.
enum Deleted {
    /// It was removed, and its leaf has become small.
    Small,
    /// It does not exist any more, or another transaction has written it.
    Gone,
    /// Normal purge must process it.
    Kept,
}

/// Input and results of one round.
struct Round {
    in_use: InUse,
    /// Records to drop at the end of the round. A record may occur twice.
    dropped: Vec<Arc<TrxRecord>>,
}

impl Inner {
    /// Runs one round and returns the number of pruned transactions. Only purge calls it, from one thread.
    pub fn prune(&self) -> Result<usize, PurgeError> {
        let in_use = self.views.in_use();
        if !in_use.is_any_held() {
            return Ok(0);
        }
        let until = in_use.until;
        let records = self.versions.to_prune(until, PRUNE_RECORDS_MAX);
        let committed = records.iter().filter_map(|record| match record.state() {
            TrxState::Committed(seq) => Some((seq, record)),
            TrxState::Installed | TrxState::Aborted => None,
        });
        let mut by_age: Vec<(CommitSeq, &Arc<TrxRecord>)> = committed.collect();
        by_age.sort_by_key(|(seq, _)| *seq);
        let mut round = Round { in_use, dropped: Vec::new() };
        let done = by_age.chunks(SETTLED_AT_ONCE).try_for_each(|few| {
            self.versions.resolve_links(few.iter().map(|(_, record)| &***record));
            few.iter().try_for_each(|(seq, record)| self.prune_record(record, *seq, &mut round))
        });
        self.drop_records(round.dropped);
        done?;
        self.versions.pruned(&records, until);
        Ok(records.len())
    }

    /// Drops records that were pruned and are no longer reachable.
    fn drop_records(&self, mut records: Vec<Arc<TrxRecord>>) {
        for record in &records {
            self.versions.free_values(record);
            self.defer_free_all(record.take_old_values());
        }
        self.versions.drop_pruned(&mut records);
    }

    fn prune_record(
        &self,
        record: &Arc<TrxRecord>,
        seq: CommitSeq,
        round: &mut Round,
    ) -> Result<(), PurgeError> {
        self.versions.shorten(record, &round.in_use, &mut round.dropped);
        if !record.has_spilled() {
            self.prune_writes(record, seq, round)?;
        }
        record.set_pruned();
        if record.is_droppable() {
            round.dropped.push(record.clone());
        }
        Ok(())
    }

    fn prune_writes(
        &self,
        record: &Arc<TrxRecord>,
        seq: CommitSeq,
        round: &mut Round,
    ) -> Result<(), PurgeError> {
        let mut is_needed = record.is_value_needed(&|from| round.in_use.is_any_in(from, seq));
        if record.has_deletions() {
            let (mut cursor, mut key) = (Cursor::default(), Vec::new());
            while let Some((index, cleanup)) =
                record.next_write(&mut cursor, &mut key).map_err(PurgeError::of_undo)?
            {
                if self.is_closed() {
                    return Err(PurgeError::Closed);
                }
                let Some(tree) = self.tree(index).filter(|_| matches!(cleanup, Cleanup::Remove)) else {
                    continue;
                };
                let pruned = self.prune_deleted(record, seq, &tree, &key, round);
                is_needed |= self.unless_replaced(&tree, pruned).map_err(PurgeError::Later)?;
            }
        }
        if !is_needed {
            self.versions.free_values(record);
            self.defer_free_all(record.take_old_values());
        }
        Ok(())
    }

    /// Removes a deleted entry if no view needs it. Returns true if normal purge still needs the key.
    fn prune_deleted(
        &self,
        record: &Arc<TrxRecord>,
        seq: CommitSeq,
        tree: &Tree,
        key: &[u8],
        round: &mut Round,
    ) -> Result<bool, EngineError> {
        let deleted = self.take_out_unseen(record, seq, tree, key, round)?;
        if matches!(deleted, Deleted::Small) {
            tree.merge(&self.context, key)?;
        }
        Ok(matches!(deleted, Deleted::Kept))
    }

    fn take_out_unseen(
        &self,
        record: &Arc<TrxRecord>,
        seq: CommitSeq,
        tree: &Tree,
        key: &[u8],
        round: &mut Round,
    ) -> Result<Deleted, EngineError> {
        let mut frame = tree.leaf_exclusive(&self.context, key)?;
        let Ok(n) = frame.page().find(key) else { return Ok(Deleted::Gone) };
        let entry = frame.page().entry(n);
        let Some(version) = entry.version else { return Ok(Deleted::Gone) };
        if version.trx != record.number() {
            let writer = self.versions.find(version.trx);
            let is_decided = writer.is_none_or(|writer| matches!(writer.state(), TrxState::Committed(_)));
            return Ok(if is_decided { Deleted::Gone } else { Deleted::Kept });
        }
        // A later part of the transaction has written the key again.
        if !entry.is_deleted {
            return Ok(Deleted::Gone);
        }
        if self.versions.is_needed(record, version.undo, seq, &round.in_use) {
            return Ok(Deleted::Kept);
        }
        self.versions.end_chain(record, version.undo, &mut round.dropped);
        Ok(if self.remove(&mut frame, tree, n) { Deleted::Small } else { Deleted::Gone })
    }
}
