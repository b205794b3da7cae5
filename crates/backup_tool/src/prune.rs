//! Deletes old backups, the chunks that no backup needs, and the archive of the log before the oldest backup.
//!
//! It deletes catalogues first, then chunks and segments, and files of the archive last, each durably before
//! the next: a killed prune, or one whose disk loses power, leaves each backup whole or deleted, and the next
//! one deletes the rest. A segment stays if a kept backup
//! of its history was cut before its end, and so do all segments of the newest timeline if no backup is in
//! its history. The last segment of a timeline stays: the archiver proves with it whose log the timeline is.
//! A file stays while a segment names it, and until one has named it.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};

use crate::archive::{self, Segment};
use crate::catalogue::Catalogue;
use crate::failure::{Failure, Result};
use crate::key::ChunkId;
use crate::lock::{Lock, Use};
use crate::repository::{BACKUPS, Repository, catalogue_name, chunk_name};

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
    /// Objects of the archive.
    pub archived: usize,
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
        catalogues.push((catalogue.taken_at, name, catalogue));
    }
    catalogues.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let before = |days: u32| Timestamp::now().checked_sub(SignedDuration::from_hours(24 * i64::from(days)));
    let oldest = keep.days.map(|days| before(days).unwrap_or(Timestamp::MIN));
    let newest = catalogues.len();
    let is_kept = |number: usize, taken_at: Timestamp| {
        number + 1 == newest
            || keep.count.is_some_and(|count| number + count >= newest)
            || oldest.is_some_and(|oldest| taken_at >= oldest)
    };
    let mut pruned = Pruned::default();
    let mut needed: HashSet<ChunkId> = HashSet::new();
    let mut kept = Vec::new();
    for (number, (taken_at, name, catalogue)) in catalogues.into_iter().enumerate() {
        if is_kept(number, taken_at) {
            needed.extend(catalogue.chunks().into_keys());
            pruned.kept.push(name);
            kept.push(Catalogue { files: Vec::new(), ..catalogue });
        } else {
            pruned.deleted.push(name);
        }
    }
    let store = repository.store();
    let idle = repository.stored_chunks()?.into_iter().filter(|(id, _)| !needed.contains(id));
    let idle: Vec<(String, u64)> = idle.map(|(id, size)| (chunk_name(&id), size)).collect();
    pruned.chunks = idle.len();
    let archive = old_archive(repository, &kept)?;
    pruned.archived = archive.segments.len() + archive.files.len();
    let deleted = idle.iter().chain(&archive.segments).chain(&archive.files);
    pruned.bytes = deleted.map(|(_, size)| size).sum();
    if !is_dry {
        pruned.deleted.iter().try_for_each(|name| store.delete(&catalogue_name(name)))?;
        store.sync_names(BACKUPS)?;
        store.remove_unfinished()?;
        idle.iter().chain(&archive.segments).try_for_each(|(name, _)| store.delete(name))?;
        if !archive.files.is_empty() {
            store.sync_names(archive::FOLDER)?;
        }
        archive.files.iter().try_for_each(|(name, _)| store.delete(name))?;
    }
    Ok(pruned)
}

/// Objects of the archive with their sizes. The segments are deleted before the files that they name.
#[derive(Default)]
struct OldArchive {
    segments: Vec<(String, u64)>,
    files: Vec<(String, u64)>,
}

/// Returns the objects of the archive that no kept backup needs.
fn old_archive(repository: &Repository, kept: &[Catalogue]) -> Result<OldArchive> {
    let timelines = archive::stored(repository)?;
    let histories = archive::histories(repository, timelines.keys().copied())?;
    let newest = timelines.keys().next_back().copied();
    let OldArchive { mut segments, mut files } = OldArchive::default();
    for (number, stored) in &timelines {
        let is_known = kept.iter().any(|backup| archive::is_related(backup, *number, &histories));
        // Before the first backup of a new server nothing is deleted.
        if !is_known && (newest == Some(*number) || !histories.contains_key(number)) {
            continue;
        }
        let end = stored.end();
        let is_needed = |segment: &Segment| {
            Some(segment.to) == end || kept.iter().any(|backup| archive::needs(backup, segment, &histories))
        };
        let old = || stored.segments.iter().filter(|segment| !is_needed(segment));
        let gone: HashSet<(u64, u64)> = old().map(|segment| (segment.from, segment.to)).collect();
        segments.extend(old().map(|segment| (segment.name(), segment.stored)));
        let oldest = stored.segments.iter().filter(|segment| is_needed(segment)).map(|it| it.from).min();
        for (name, file) in &stored.files {
            // A segment that does not exist yet has its use already, or a prune was killed after its
            // deletion.
            let is_gone =
                |range: &(u64, u64)| gone.contains(range) || oldest.is_some_and(|from| range.1 <= from);
            let is_used = file.uses.is_empty() || !file.uses.iter().all(is_gone);
            if !is_used {
                files.extend(file.objects(*number, name));
            }
        }
    }
    Ok(OldArchive { segments, files })
}
