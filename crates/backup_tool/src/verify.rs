//! Verifies a repository: reads every object that a backup needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::archive::{self, Segment};
use crate::catalogue::Catalogue;
use crate::failure::{Failure, Result};
use crate::key::ChunkId;
use crate::lock::{Lock, Use};
use crate::progress::Progress;
use crate::repository::{Repository, catalogue_name, chunk_name};
use crate::workers;

/// A damaged or missing object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub object: String,
    pub what: String,
    /// Backups that cannot be restored because of it.
    pub backups: Vec<String>,
    pub cure: &'static str,
    /// A later take stores its contents again, or it is of no use.
    pub can_be_removed: bool,
}

const CURE_OF_CHUNK: &str = "put the object back from a copy of the repository; or remove it with `verify \
    --remove-damaged`, and the next `take` stores its contents again if the server still has them";
const CURE_OF_LOG: &str = "put the object back from a copy of the repository. Backups that were taken after it need \
    nothing of it: take one now";
const CURE_OF_GAP: &str = "states after the gap need a backup that was taken after it: take one now";
const CURE_OF_CATALOGUE: &str = "put the object back from a copy of the repository, or remove the backup with `verify \
    --remove-damaged`";

/// The outcome of `verify`.
#[derive(Debug, Default)]
pub struct Verified {
    /// Names of the backups that are whole.
    pub whole: Vec<String>,
    pub findings: Vec<Finding>,
    pub chunks: usize,
    pub bytes: u64,
    /// Segments of the archive of the log that were read.
    pub segments: usize,
    /// Damaged objects that were removed.
    pub removed: usize,
}

/// Reads the catalogues and chunks of one backup or of all, and removes damaged objects if that is wanted.
pub fn verify(
    repository: &Repository,
    backup: Option<&str>,
    removes: bool,
    progress: &Progress,
) -> Result<Verified> {
    let _lock = match removes {
        true => Some(Lock::take(repository, "verify --remove-damaged", Use::Deletes)?),
        false => Lock::read(repository, "verify")?,
    };
    let names = match backup {
        Some("latest") => repository.backups()?.pop().into_iter().collect(),
        Some(name) => vec![name.to_owned()],
        None => repository.backups()?,
    };
    let mut verified = Verified::default();
    let mut catalogues: Vec<Catalogue> = Vec::new();
    for name in names {
        match repository.catalogue(&name) {
            Ok(catalogue) => catalogues.push(catalogue),
            Err(Failure::Damaged(what)) => verified.findings.push(Finding {
                object: catalogue_name(&name),
                what,
                backups: vec![name],
                cure: CURE_OF_CATALOGUE,
                can_be_removed: true,
            }),
            Err(failure) => return Err(failure),
        }
    }
    let mut users: BTreeMap<ChunkId, Vec<&str>> = BTreeMap::new();
    for catalogue in &catalogues {
        for id in catalogue.chunks().into_keys() {
            users.entry(id).or_default().push(&catalogue.name);
        }
    }
    progress.expect(Some(
        catalogues.iter().flat_map(Catalogue::chunks).collect::<BTreeMap<_, _>>().values().sum(),
    ));
    let found = Mutex::new((Vec::new(), 0));
    let read = |(id, size): (ChunkId, u64)| {
        let outcome = repository.read_chunk(&id);
        let mut found = found.lock().expect("no worker panics");
        match outcome {
            Ok(contents) => found.1 += contents.len() as u64,
            Err(Failure::Damaged(what)) => found.0.push(Finding {
                object: chunk_name(&id),
                what,
                backups: users[&id].iter().map(|name| (*name).to_owned()).collect(),
                cure: CURE_OF_CHUNK,
                can_be_removed: true,
            }),
            Err(failure) => return Err(failure),
        }
        progress.add(size);
        Ok(())
    };
    let sizes: BTreeMap<ChunkId, u64> = catalogues.iter().flat_map(Catalogue::chunks).collect();
    workers::run(read, |entrance| {
        Ok(sizes.iter().try_for_each(|(id, size)| entrance.send((*id, *size)))?)
    })?;
    if backup.is_none() {
        verify_archive(repository, &catalogues, &mut verified)?;
    }
    let (mut findings, bytes) = found.into_inner().expect("no worker panics");
    findings.sort_unstable_by(|a: &Finding, b| a.object.cmp(&b.object));
    verified.findings.extend(findings);
    (verified.chunks, verified.bytes) = (sizes.len(), bytes);
    let is_whole = |name: &&str| {
        !verified.findings.iter().any(|f| f.can_be_removed && f.backups.iter().any(|b| b == name))
    };
    verified.whole = catalogues.iter().map(|c| c.name.as_str()).filter(is_whole).map(str::to_owned).collect();
    if removes {
        for finding in verified.findings.iter().filter(|finding| finding.can_be_removed) {
            repository.store().delete(&finding.object)?;
            verified.removed += 1;
        }
    }
    Ok(verified)
}

/// Reads the archive of the log: every segment, the files that it names, and the gaps between segments. A
/// finding names the backups from which no later state can be reached because of it.
fn verify_archive(repository: &Repository, catalogues: &[Catalogue], verified: &mut Verified) -> Result<()> {
    let timelines = archive::stored(repository)?;
    let mut histories = BTreeMap::new();
    let mut findings = Vec::new();
    for number in timelines.keys() {
        match archive::timeline(repository, *number) {
            Ok(Some(found)) => drop(histories.insert(*number, found)),
            Ok(None) => findings.push((
                Segment { timeline: *number, from: 0, to: u64::MAX, stored: 0 },
                format!("the object '{}' is missing", archive::timeline_name(*number)),
                CURE_OF_LOG,
            )),
            Err(Failure::Damaged(what)) => findings.push((
                Segment { timeline: *number, from: 0, to: u64::MAX, stored: 0 },
                what,
                CURE_OF_LOG,
            )),
            Err(failure) => return Err(failure),
        }
    }
    for (number, stored) in &timelines {
        let mut files = BTreeSet::new();
        for segment in &stored.segments {
            verified.segments += 1;
            match archive::read_segment(repository, segment) {
                Ok(read) => {
                    for name in read.frames.into_iter().flat_map(|range| range.files) {
                        if !files.insert(name.clone()) {
                            continue;
                        }
                        match archive::read_file(repository, *number, &name, |_| Ok(())) {
                            Ok(_) => {}
                            Err(Failure::Damaged(what)) => findings.push((*segment, what, CURE_OF_LOG)),
                            Err(failure) => return Err(failure),
                        }
                    }
                }
                Err(Failure::Damaged(what)) => findings.push((*segment, what, CURE_OF_LOG)),
                Err(failure) => return Err(failure),
            }
        }
        for pair in stored.runs().windows(2) {
            let (from, to) = (pair[0].to(), pair[1].from());
            let what =
                format!("the archive has a gap in timeline {number:08x}: LSN {from} to {to} is missing");
            findings.push((Segment { timeline: *number, from, to, stored: 0 }, what, CURE_OF_GAP));
        }
    }
    for (segment, what, cure) in findings {
        let backups = catalogues.iter().filter(|backup| archive::needs(backup, &segment, &histories));
        let backups: Vec<String> = backups.map(|backup| backup.name.clone()).collect();
        // A gap that no backup comes before is none.
        if backups.is_empty() && cure == CURE_OF_GAP {
            continue;
        }
        let object = segment.name();
        verified.findings.push(Finding { object, what, backups, cure, can_be_removed: false });
    }
    Ok(())
}
