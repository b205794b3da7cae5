//! Verifies a repository: reads every object that a backup needs.

use std::collections::BTreeMap;
use std::sync::Mutex;

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
}

const CURE_OF_CHUNK: &str = "put the object back from a copy of the repository; or remove it with `verify \
    --remove-damaged`, and the next `take` stores its contents again if the server still has them";
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
    let _lock =
        removes.then(|| Lock::take(repository, "verify --remove-damaged", Use::Deletes)).transpose()?;
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
    let (mut findings, bytes) = found.into_inner().expect("no worker panics");
    findings.sort_unstable_by(|a: &Finding, b| a.object.cmp(&b.object));
    verified.findings.extend(findings);
    (verified.chunks, verified.bytes) = (sizes.len(), bytes);
    let is_whole = |name: &&str| !verified.findings.iter().any(|f| f.backups.iter().any(|b| b == name));
    verified.whole = catalogues.iter().map(|c| c.name.as_str()).filter(is_whole).map(str::to_owned).collect();
    if removes {
        for finding in &verified.findings {
            repository.store().delete(&finding.object)?;
            verified.removed += 1;
        }
    }
    Ok(verified)
}
