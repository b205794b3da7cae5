//! Deletes old backups, and the chunks that no backup needs.
//!
//! It deletes catalogues first, then chunks: a killed prune leaves each backup whole or deleted, and the next
//! one deletes the rest.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};

use crate::failure::{Failure, Result};
use crate::key::ChunkId;
use crate::lock::{Lock, Use};
use crate::repository::{Repository, catalogue_name, chunk_name};

/// Rules of retention. A backup stays if either rule keeps it; the newest always stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    pub count: Option<usize>,
    pub days: Option<u32>,
}

/// The outcome of `prune`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub kept: Vec<String>,
    pub deleted: Vec<String>,
    pub chunks: usize,
    pub bytes: u64,
}

/// Deletes what the rules do not keep. With `is_dry` it only returns what would be deleted.
pub fn prune(repository: &Repository, keep: Keep, is_dry: bool) -> Result<Pruned> {
    let _lock = (!is_dry).then(|| Lock::take(repository, "prune", Use::Deletes)).transpose()?;
    let mut catalogues = Vec::new();
    for name in repository.backups()? {
        let catalogue = repository.catalogue(&name).map_err(|failure| match failure {
            Failure::Damaged(what) => Failure::Damaged(format!(
                "{what}. Nothing was deleted, because the chunks that this backup needs are unknown; see \
                 `cohort-backup verify`"
            )),
            failure => failure,
        })?;
        catalogues.push((catalogue.taken_at, name, catalogue.chunks()));
    }
    catalogues.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let oldest = keep.days.map(|days| Timestamp::now() - SignedDuration::from_hours(24 * i64::from(days)));
    let newest = catalogues.len();
    let is_kept = |number: usize, taken_at: Timestamp| {
        number + 1 == newest
            || keep.count.is_some_and(|count| number + count >= newest)
            || oldest.is_some_and(|oldest| taken_at >= oldest)
    };
    let mut pruned = Pruned::default();
    let mut needed: HashSet<ChunkId> = HashSet::new();
    for (number, (taken_at, name, chunks)) in catalogues.into_iter().enumerate() {
        if is_kept(number, taken_at) {
            needed.extend(chunks.into_keys());
            pruned.kept.push(name);
        } else {
            pruned.deleted.push(name);
        }
    }
    let store = repository.store();
    let idle: Vec<_> =
        repository.stored_chunks()?.into_iter().filter(|(id, _)| !needed.contains(id)).collect();
    pruned.chunks = idle.len();
    pruned.bytes = idle.iter().map(|(_, size)| size).sum();
    if !is_dry {
        pruned.deleted.iter().try_for_each(|name| store.delete(&catalogue_name(name)))?;
        idle.iter().try_for_each(|(id, _)| store.delete(&chunk_name(id)))?;
    }
    Ok(pruned)
}
