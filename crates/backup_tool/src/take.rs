//! Takes a backup: cuts files into chunks, stores those that the repository does not have, and writes the
//! catalogue last.
//!
//! # Steps
//! 1. A lock, and the lists of chunks: those that catalogues name (*proven*) and those that only exist.
//! 2. The source sends pieces. `Cutter` gathers the pieces of a window of a file, 4 MiB, into a chunk.
//!    Workers name it by its hash. A proven chunk of the right size is used as it is. One that merely exists,
//!    left by an interrupted take, is read and compared first. All others are written.
//!    An incremental backup consists of the bytes that have changed. Its catalogue is that of a full one: it
//!    names the chunks of the backup before, without the bytes that were replaced (`catalogue::join`). So a
//!    restore, `verify` and `prune` know no chains.
//! 3. The manifest arrives. Each file must have the length and the checksum that the manifest has for it.
//! 4. The chunks of the backup are listed: a store that lost a write, or cut it off, is found here.
//! 5. The catalogue is written and read back.
//!
//! A killed take leaves chunks without a catalogue. The next take uses them (so it resumes), `prune` removes
//! them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use cohort_backup_format::{FileSum, MANIFEST, Manifest};
use cohort_clone::MANIFEST_BYTES_MAX;
use jiff::{SignedDuration, Timestamp};

use crate::catalogue::{Catalogue, FileEntry, Piece, check_name, join};
use crate::failure::{Failure, Result};
use crate::key::ChunkId;
use crate::lock::{Lock, Use};
use crate::object::{self, CHUNK_BYTES, Kind};
use crate::progress::{Pace, Progress};
use crate::repository::{CHUNKS, Repository, catalogue_name, chunk_name};
use crate::source::Source;
use crate::store::Put;
use crate::workers::{self, Entrance};

/// Resolution of the times in names.
const RESOLUTION: SignedDuration = SignedDuration::from_millis(1);

/// Options of `take`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Maximum bytes of the source per second.
    pub rate: Option<u64>,
    /// The repository may have backups of another server.
    pub of_another_server: bool,
}

/// The outcome of `take`.
#[derive(Debug)]
pub struct Taken {
    pub catalogue: Catalogue,
    /// Bytes of contents that the repository had already.
    pub reused_bytes: u64,
    pub seconds: f64,
}

/// Chunks that the repository has.
struct Known {
    /// Chunks that a catalogue names and whose objects have the right size.
    proven: HashMap<ChunkId, u64>,
    /// Names of the backups by the identifiers of their manifests.
    names: HashMap<String, String>,
}

impl Known {
    fn read(repository: &Repository) -> Result<(Known, Option<Catalogue>)> {
        let stored = repository.stored_chunks()?;
        let mut proven = HashMap::new();
        let (mut newest, mut names) = (None, HashMap::new());
        for name in repository.backups()? {
            let catalogue = match repository.catalogue(&name) {
                Ok(catalogue) => catalogue,
                // Its chunks are not proven then. `verify` reports it.
                Err(Failure::Damaged(_)) => continue,
                Err(failure) => return Err(failure),
            };
            proven.extend(catalogue.chunks().into_iter().filter(|(id, size)| stored.get(id) == Some(size)));
            names.insert(catalogue.manifest.id.clone(), name);
            newest = Some(catalogue);
        }
        Ok((Known { proven, names }, newest))
    }
}

/// A chunk on its way to the repository: its places, and its contents.
struct Job {
    file: usize,
    runs: Vec<(u64, u32)>,
    contents: Vec<u8>,
}

/// Takes a backup from a source.
pub fn take(
    repository: &Repository,
    source: &mut dyn Source,
    request: Request,
    progress: &Progress,
) -> Result<Taken> {
    let begun = Instant::now();
    let _lock = Lock::take(repository, "take", Use::Adds)?;
    let (known, newest) = Known::read(repository)?;
    source.continue_from(newest.as_ref().map(|newest| &newest.manifest))?;
    progress.expect(source.bytes());
    let stored: Mutex<Stored> = Mutex::default();
    let store = |job: Job| {
        let bytes = job.contents.len() as u64;
        let (chunk, size, is_new) = store_chunk(repository, &known, &job.contents)?;
        let mut stored = stored.lock().expect("no worker panics");
        let is_new = is_new && stored.added.insert(chunk);
        stored.added_bytes += if is_new { size } else { 0 };
        stored.reused_bytes += if is_new { 0 } else { bytes };
        stored.pieces.push((job.file, Piece { chunk, stored: size, runs: job.runs }));
        Ok(())
    };
    let mut pace = Pace::new(request.rate);
    let (mut files, manifest) = workers::run(store, |entrance| {
        let mut cutter = Cutter::new(entrance);
        source.send(&mut |name, offset, bytes| {
            pace.spend(bytes.len());
            progress.add(bytes.len() as u64);
            cutter.add(name, offset, bytes)
        })?;
        cutter.finish()
    })?;
    check_server(repository, newest.as_ref(), &manifest, request)?;
    if source.may_be_old() {
        check_age(newest.as_ref(), &manifest)?;
    }
    let mut stored = stored.into_inner().expect("no worker panics");
    let mut added_bytes = stored.added_bytes;
    stored.pieces.sort_unstable_by_key(|(file, piece)| (*file, piece.runs.first().copied()));
    for (file, piece) in stored.pieces {
        files[file].pieces.push(piece);
    }
    let manifest = match &manifest.parent {
        None => manifest,
        Some(parent) => {
            let name = known.names.get(&parent.id).ok_or_else(|| {
                Failure::Refused(format!(
                    "this is an incremental backup, and repository {} does not have the one that it continues, {}: store \
                     that one first",
                    repository.store().place(),
                    parent.id
                ))
            })?;
            let whole = join(&manifest, &mut files, &repository.catalogue(name)?)?;
            let text = whole.encode().into_bytes();
            let file = files.iter_mut().find(|file| file.name == MANIFEST).expect("it was sent");
            (file.bytes, file.pieces) = (text.len() as u64, Vec::new());
            for (number, part) in text.chunks(CHUNK_BYTES).enumerate() {
                let (chunk, size, is_new) = store_chunk(repository, &known, part)?;
                added_bytes += if is_new { size } else { 0 };
                let runs = vec![((number * CHUNK_BYTES) as u64, part.len() as u32)];
                file.pieces.push(Piece { chunk, stored: size, runs });
            }
            whole
        }
    };
    // Names sort by the order of the backups, also if the clock went back.
    let after_newest = newest.map_or(Timestamp::MIN, |newest| newest.taken_at + RESOLUTION);
    let taken_at = Timestamp::now().max(after_newest);
    let catalogue = Catalogue {
        name: Catalogue::new_name(taken_at),
        taken_at,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        manifest: Manifest { files: Vec::new(), ..manifest },
        files,
        added_bytes,
    };
    confirm(repository, &catalogue)?;
    write_catalogue(repository, &catalogue)?;
    Ok(Taken { catalogue, reused_bytes: stored.reused_bytes, seconds: begun.elapsed().as_secs_f64() })
}

#[derive(Default)]
struct Stored {
    pieces: Vec<(usize, Piece)>,
    added: HashSet<ChunkId>,
    added_bytes: u64,
    reused_bytes: u64,
}

/// Stores a chunk unless the repository has it. Returns its name, the size of its object, and whether it was
/// written.
fn store_chunk(repository: &Repository, known: &Known, contents: &[u8]) -> Result<(ChunkId, u64, bool)> {
    let id = repository.keys().name(contents);
    if let Some(size) = known.proven.get(&id) {
        return Ok((id, *size, false));
    }
    let name = chunk_name(&id);
    let object = object::encode(Kind::Chunk, &name, contents, repository.keys());
    let store = repository.store();
    // The second round replaces an object that a store had cut off.
    for _ in 0..2 {
        if store.put(&name, &object)? == Put::Created {
            return Ok((id, object.len() as u64, true));
        }
        let found = repository.stored(Kind::Chunk, &name)?;
        let size = found.len() as u64;
        if object::decode(Kind::Chunk, &name, found, repository.keys()).is_ok_and(|it| it == contents) {
            return Ok((id, size, false));
        }
        store.delete(&name)?;
    }
    Err(Failure::Failed(format!(
        "repository {}: '{name}' was written and cannot be read back",
        store.place()
    )))
}

/// Refuses to mix servers: `prune` counts the backups of a repository as those of one server.
fn check_server(
    repository: &Repository,
    newest: Option<&Catalogue>,
    manifest: &Manifest,
    request: Request,
) -> Result<()> {
    let Some(newest) = newest.filter(|_| !request.of_another_server) else { return Ok(()) };
    let (before, now) = (server_of(&newest.manifest), server_of(manifest));
    // Servers often have the same server_id.
    if before == now && !manifest.server_uuid.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "repository {} has backups of the server {before}, and this is a backup of {now}. Give each server a repository \
         of its own; if this server replaces that one, repeat the command with --another-server",
        repository.store().place()
    )))
}

/// Returns the identity of a server, for comparison and messages.
fn server_of(manifest: &Manifest) -> String {
    match manifest.server_uuid.as_str() {
        "" => format!("without server_uid, with server_id {}", manifest.server_id),
        uuid => uuid.to_owned(),
    }
}

/// Refuses a state that is older than that of the newest backup: `prune` would keep it as the newest one.
fn check_age(newest: Option<&Catalogue>, manifest: &Manifest) -> Result<()> {
    let time = |manifest: &Manifest| manifest.cut.parse::<Timestamp>().ok();
    match newest {
        Some(newest) if time(manifest) < time(&newest.manifest) => Err(Failure::Refused(format!(
            "the directory has the state of {}, which is older than that of the newest backup, {} of {}: `prune` would \
             keep the older one. Store it in a repository of its own",
            manifest.cut, newest.name, newest.manifest.cut
        ))),
        _ => Ok(()),
    }
}

/// Looks whether the repository has every chunk of a backup, in the right size.
fn confirm(repository: &Repository, catalogue: &Catalogue) -> Result<()> {
    // Those of a take that was killed may not be durable.
    repository.store().sync_names(CHUNKS)?;
    let listed = repository.stored_chunks()?;
    for (id, size) in catalogue.chunks() {
        if listed.get(&id) == Some(&size) {
            continue;
        }
        let name = chunk_name(&id);
        // A list may lag.
        if repository.store().size(&name)? != Some(size) {
            return Err(Failure::Failed(format!(
                "repository {}: it has not kept '{name}' as it was written. Repeat the command; what is stored already is \
                 not sent again",
                repository.store().place()
            )));
        }
    }
    Ok(())
}

fn write_catalogue(repository: &Repository, catalogue: &Catalogue) -> Result<()> {
    let contents = catalogue.encode();
    if contents.len() > Kind::Catalogue.bytes_max() {
        return Err(Failure::Refused("the backup has too many chunks for one catalogue".to_owned()));
    }
    let name = catalogue_name(&catalogue.name);
    repository.write(Kind::Catalogue, &name, &contents)?;
    match repository.read(Kind::Catalogue, &name)? {
        Some(read) if read == contents => Ok(()),
        _ => Err(Failure::Failed(format!(
            "repository {}: '{name}' was written and cannot be read back",
            repository.store().place()
        ))),
    }
}

/// Cuts files into chunks.
struct Cutter<'a> {
    entrance: &'a Entrance<Job>,
    files: Vec<FileEntry>,
    numbers: HashMap<String, usize>,
    sums: Vec<FileSum>,
    manifest: Vec<u8>,
    /// The chunk that is being gathered.
    open: Option<Job>,
}

impl<'a> Cutter<'a> {
    fn new(entrance: &'a Entrance<Job>) -> Cutter<'a> {
        Cutter {
            entrance,
            files: Vec::new(),
            numbers: HashMap::new(),
            sums: Vec::new(),
            manifest: Vec::new(),
            open: None,
        }
    }

    fn number(&mut self, name: &str) -> Result<usize> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        check_name(name).map_err(Failure::Refused)?;
        let number = self.files.len();
        self.files.push(FileEntry { name: name.to_owned(), ..FileEntry::default() });
        self.sums.push(FileSum::default());
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    fn add(&mut self, name: &str, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        let file = self.number(name)?;
        if name == MANIFEST {
            if offset != self.manifest.len() as u64 || bytes.len() + self.manifest.len() > MANIFEST_BYTES_MAX
            {
                return Err(Failure::Failed(
                    "the source sent a manifest with gaps or without end".to_owned(),
                ));
            }
            self.manifest.extend_from_slice(bytes);
        }
        self.sums[file].add(offset, bytes).map_err(|_| {
            Failure::Failed(format!("the source sent bytes of '{name}' at {offset} twice; nothing was kept"))
        })?;
        while !bytes.is_empty() {
            let room = CHUNK_BYTES as u64 - offset % CHUNK_BYTES as u64;
            let (part, rest) = bytes.split_at(bytes.len().min(room as usize));
            self.add_to_window(file, offset, part)?;
            offset += part.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Adds bytes that lie in one window. A chunk's runs ascend, so it has at most the bytes of its window.
    fn add_to_window(&mut self, file: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let window = |offset: u64| offset / CHUNK_BYTES as u64;
        let continues = self.open.as_ref().is_some_and(|open| {
            let (last, length) = *open.runs.last().expect("a chunk has a run");
            open.file == file && window(last) == window(offset) && offset >= last + u64::from(length)
        });
        if !continues {
            self.close()?;
        }
        let job = self.open.get_or_insert_with(|| Job {
            file,
            runs: Vec::new(),
            contents: Vec::with_capacity(CHUNK_BYTES),
        });
        match job.runs.last_mut().filter(|(last, length)| last + u64::from(*length) == offset) {
            Some((_, length)) => *length += bytes.len() as u32,
            None => job.runs.push((offset, bytes.len() as u32)),
        }
        job.contents.extend_from_slice(bytes);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        match self.open.take() {
            Some(job) => Ok(self.entrance.send(job)?),
            None => Ok(()),
        }
    }

    /// Compares all files with the manifest, and gives them their lengths.
    fn finish(mut self) -> Result<(Vec<FileEntry>, Manifest)> {
        self.close()?;
        if self.manifest.is_empty() {
            return Err(Failure::Failed("the source ended before the manifest: it is no backup".to_owned()));
        }
        let manifest = Manifest::decode(&self.manifest, Path::new(MANIFEST)).map_err(Failure::of_manifest)?;
        let mut left: BTreeMap<&str, usize> =
            self.numbers.iter().map(|(name, number)| (name.as_str(), *number)).collect();
        let number = left.remove(MANIFEST).expect("it has bytes");
        self.files[number].bytes = self.manifest.len() as u64;
        for entry in &manifest.files {
            let wrong = |what: &str| {
                Failure::Damaged(format!("'{}' {what}. Nothing was kept; take another backup", entry.path))
            };
            let number = match left.remove(entry.path.as_str()) {
                Some(number) => number,
                // A file without bytes, or of zeros only, is in the manifest alone.
                None => {
                    self.files.push(FileEntry { name: entry.path.clone(), ..FileEntry::default() });
                    self.sums.push(FileSum::default());
                    self.files.len() - 1
                }
            };
            let sum = &self.sums[number];
            if sum.end() > entry.size {
                return Err(wrong("is longer than the manifest says"));
            }
            let is_same = match entry.crc32c {
                Some(crc) => crc == sum.of_file(entry.size),
                // A part of it, or a file of a restored incremental backup.
                None if manifest.parent.is_none() => true,
                None => {
                    let stated = entry.ranges.iter().map(|range| (range.offset, range.size, range.crc32c));
                    sum.pieces().eq(stated)
                }
            };
            if !is_same {
                return Err(wrong("does not have the checksum that the manifest has for it"));
            }
            self.files[number].bytes = entry.size;
        }
        match left.keys().next() {
            Some(name) => Err(Failure::Damaged(format!("the manifest does not list '{name}'"))),
            None => Ok((self.files, manifest)),
        }
    }
}
