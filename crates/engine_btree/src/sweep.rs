//! Sweeping: old versions are sorted out while a view is held open.
//!
//! Purge stops at the oldest view. If that one is held, transactions behind it are swept: each is looked at
//! once, when every view that does not see it is held. What it replaced is freed if no view needs it, in
//! memory but for the links, and long values on disk; chains go on behind what no view needs any more
//! (`chain.rs`); entries that it deleted, and that no view saw come, are taken out. A record that no chain
//! leads to any more is dropped. So a view that is held open for an hour keeps one version of each row that
//! changed meanwhile, and the records of two transactions, not all of them.
//!
//! # Invariants
//! - What is freed or taken out is seen by no view in use, and by none that comes: those see the transaction
//!   ([`InUse`]).
//! - The keys of a transaction's deletions are kept while the usual purge may need them: an entry is there
//!   whose deletion a view needs, or that an undecided transaction has written over and may bring back.
//! - Aborted transactions are left to purge; of those that have undo in the undo file, the deletions.
//! - A round goes from the oldest transaction to the newest, so most chains have one version to go past.
//!
//! # On failure
//! A page that cannot be read ends the round, and a later one tries again: what was done stays done.
//!
//! # What is missing
//! Entries of a dropped or emptied table end no chain: the records of who wrote them wait for purge. A record
//! is swept once: if a view goes that was not the oldest, what it alone needed of rows that nobody writes any
//! more waits for the oldest one. A record keeps all its links as long as one of its versions lives.

use std::sync::Arc;

use cohort_base::CommitSeq;
use cohort_engine::EngineError;

use crate::inner::{Inner, PurgeError};
use crate::tree::Tree;
use crate::undo::Cursor;
use crate::version::{Cleanup, TrxRecord, TrxState};
use crate::views::InUse;

/// Records of each segment that one round takes.
const SWEEP_RECORDS_MAX: usize = 1024;
/// Records whose links are settled together: what is looked at for it stays in the caches until they are
/// swept.
const SETTLED_AT_ONCE: usize = 256;

/// What became of a deleted entry.
enum Deleted {
    /// It was taken out, and its leaf has become small.
    Small,
    /// It is not there any more, or another transaction's.
    Gone,
    /// The usual purge has to look at it.
    Kept,
}

/// What one round goes by, and what it finds.
struct Round {
    in_use: InUse,
    /// Records to be dropped at its end, some of them twice.
    dropped: Vec<Arc<TrxRecord>>,
}

impl Inner {
    /// One round; returns how many transactions it swept. Purge calls it, and nobody else at the same time.
    pub fn sweep(&self) -> Result<usize, PurgeError> {
        let in_use = self.views.in_use();
        if !in_use.is_any_held() {
            return Ok(0);
        }
        let until = in_use.until;
        let records = self.versions.to_sweep(until, SWEEP_RECORDS_MAX);
        let committed = records.iter().filter_map(|record| match record.state() {
            TrxState::Committed(seq) => Some((seq, record)),
            TrxState::Installed | TrxState::Aborted => None,
        });
        let mut by_age: Vec<(CommitSeq, &Arc<TrxRecord>)> = committed.collect();
        by_age.sort_by_key(|(seq, _)| *seq);
        let mut round = Round { in_use, dropped: Vec::new() };
        let done = by_age.chunks(SETTLED_AT_ONCE).try_for_each(|few| {
            self.versions.settle(few.iter().map(|(_, record)| &***record));
            few.iter().try_for_each(|(seq, record)| self.sweep_record(record, *seq, &mut round))
        });
        self.drop_records(round.dropped);
        done?;
        self.versions.swept(&records, until);
        Ok(records.len())
    }

    /// They were swept, and nobody refers to them.
    fn drop_records(&self, mut records: Vec<Arc<TrxRecord>>) {
        for record in &records {
            self.versions.free_values(record);
            self.doom_all(record.take_old_values());
        }
        self.versions.drop_swept(&mut records);
    }

    fn sweep_record(
        &self,
        record: &Arc<TrxRecord>,
        seq: CommitSeq,
        round: &mut Round,
    ) -> Result<(), PurgeError> {
        self.versions.shorten(record, &round.in_use, &mut round.dropped);
        if !record.has_spilled() {
            self.sweep_writes(record, seq, round)?;
        }
        record.set_swept();
        if record.is_droppable() {
            round.dropped.push(record.clone());
        }
        Ok(())
    }

    fn sweep_writes(
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
                let swept = self.sweep_deleted(record, seq, &tree, &key, round);
                is_needed |= self.unless_replaced(&tree, swept).map_err(PurgeError::Later)?;
            }
        }
        if !is_needed {
            self.versions.free_values(record);
            self.doom_all(record.take_old_values());
        }
        Ok(())
    }

    /// True: the usual purge needs the key.
    fn sweep_deleted(
        &self,
        record: &Arc<TrxRecord>,
        seq: CommitSeq,
        tree: &Tree,
        key: &[u8],
        round: &mut Round,
    ) -> Result<bool, EngineError> {
        let deleted = self.take_out_unseen(record, seq, tree, key, round)?;
        if matches!(deleted, Deleted::Small) {
            tree.merge(&self.ground, key)?;
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
        let mut frame = tree.leaf_exclusive(&self.ground, key)?;
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
