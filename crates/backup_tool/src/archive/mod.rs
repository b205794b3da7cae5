//! The archive of the log in a repository.
//!
//! # Objects
//! | name | contents |
//! |---|---|
//! | `archive/T/timeline` | JSON of [`Timeline`]: which server's log it is, and its history |
//! | `archive/T/FROM-TO.log` | RANGE frames that follow each other |
//! | `archive/T/files/NAME/OFFSET` | a part of a file: length and CRC-32C of the file, bytes |
//! | `archive/T/files/NAME/FROM-TO` | empty: the object `FROM-TO.log` names the file; written before it |
//!
//! | module | concept |
//! |---|---|
//! | `archiver` | the process that the server starts |
//! | `recovery` | restore to a point in time: which objects, and the server that applies them |
//!
//! # Invariants
//! - A `.log` object exists only if all files that it names are whole.
//! - The archiver acknowledges an LSN only after the store has confirmed the objects up to there.
//! - Only `prune` deletes, and never what a kept backup needs. The archiver needs no lock: it relies on no
//!   object that `prune` deletes.

pub mod archiver;
pub mod recovery;

use std::collections::{BTreeMap, BTreeSet};

use cohort_backup_format::{
    Frame, Hello, LogRange, chained, hex_digits, is_archive_file_name, log_object_name, log_object_range,
    range_name, range_of,
};
use serde::{Deserialize, Serialize};

use crate::catalogue::Catalogue;
use crate::failure::{Failure, Result};
use crate::object::{CHUNK_BYTES, Kind, PART_HEADER_BYTES};
use crate::repository::Repository;

/// A timeline with the LSN where it begins.
pub type Branch = (u32, u64);

/// Folder of all timelines.
pub const FOLDER: &str = "archive";

/// Whose log a timeline is, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    pub server_uuid: String,
    pub log_identity: u32,
    /// Timelines with the LSNs where they begin, oldest first; the last is this one.
    pub history: Vec<Branch>,
}

impl Timeline {
    fn of(hello: &Hello) -> Timeline {
        let (server_uuid, log_identity) = (hello.server_uuid.clone(), hello.log_identity);
        let history = hello.timelines.iter().map(|start| (start.timeline, start.lsn)).collect();
        Timeline { server_uuid, log_identity, history }
    }
}

/// The object of ranges that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    pub timeline: u32,
    pub from: u64,
    pub to: u64,
    /// Size of the object.
    pub stored: u64,
}

impl Segment {
    pub fn name(&self) -> String {
        log_name(self.timeline, self.from, self.to)
    }
}

pub fn timeline_name(timeline: u32) -> String {
    format!("{FOLDER}/{timeline:08x}/timeline")
}

pub fn log_name(timeline: u32, from: u64, to: u64) -> String {
    format!("{FOLDER}/{timeline:08x}/{}", log_object_name(from, to))
}

/// Returns the folder of a file's parts.
fn file_folder(timeline: u32, file: &str) -> String {
    format!("{FOLDER}/{timeline:08x}/files/{file}")
}

fn part_name(timeline: u32, file: &str, offset: u64) -> String {
    format!("{}/{offset:016x}", file_folder(timeline, file))
}

fn use_name(timeline: u32, file: &str, from: u64, to: u64) -> String {
    format!("{}/{}", file_folder(timeline, file), range_name(from, to))
}

/// A file that ranges name: its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedFile {
    /// Offsets of the parts with the sizes of their objects.
    pub parts: BTreeMap<u64, u64>,
    /// Objects of ranges that name it.
    pub uses: BTreeSet<(u64, u64)>,
}

impl NamedFile {
    /// Returns the objects with their sizes: the parts, and then the uses, so that a later prune finds the
    /// rest of a file.
    pub fn objects(&self, timeline: u32, name: &str) -> Vec<(String, u64)> {
        let parts = self.parts.iter().map(|(offset, size)| (part_name(timeline, name, *offset), *size));
        let uses = self.uses.iter().map(|(from, to)| (use_name(timeline, name, *from, *to), 0));
        parts.chain(uses).collect()
    }
}

/// The objects of a timeline.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Sorted by LSN.
    pub segments: Vec<Segment>,
    pub files: BTreeMap<String, NamedFile>,
}

/// Segments that follow each other without a gap.
#[derive(Clone, Debug)]
pub struct Run {
    pub segments: Vec<Segment>,
}

impl Run {
    pub fn from(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.from)
    }

    pub fn to(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.to)
    }
}

impl Stored {
    /// Returns the end of the newest range.
    pub fn end(&self) -> Option<u64> {
        self.segments.iter().map(|segment| segment.to).max()
    }

    /// Returns the segments that begin at an LSN.
    pub fn beginning_at(&self, lsn: u64) -> &[Segment] {
        let from = self.segments.partition_point(|segment| segment.from < lsn);
        let to = self.segments.partition_point(|segment| segment.from <= lsn);
        &self.segments[from..to]
    }

    /// Returns the runs, oldest first.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for segment in &self.segments {
            let end = runs.last().map(Run::to);
            match runs.last_mut() {
                Some(run) if end == Some(segment.from) => run.segments.push(*segment),
                // An earlier process stored a part of it, too.
                Some(_) if end.is_some_and(|end| segment.to <= end) => {}
                _ => runs.push(Run { segments: vec![*segment] }),
            }
        }
        runs
    }
}

/// Lists the archive by timeline.
pub fn stored(repository: &Repository) -> Result<BTreeMap<u32, Stored>> {
    stored_below(repository, FOLDER)
}

/// Lists one timeline.
pub fn stored_timeline(repository: &Repository, timeline: u32) -> Result<Stored> {
    let found = stored_below(repository, &format!("{FOLDER}/{timeline:08x}"))?;
    Ok(found.into_values().next().unwrap_or_default())
}

fn stored_below(repository: &Repository, folder: &str) -> Result<BTreeMap<u32, Stored>> {
    let mut timelines: BTreeMap<u32, Stored> = BTreeMap::new();
    repository.store().list(folder, |object| {
        let parts: Vec<&str> = object.name.split('/').skip(1).collect();
        let Some(timeline) = parts.first().and_then(|text| hex_digits::<8>(text)) else { return };
        let timeline = timeline as u32;
        let stored = timelines.entry(timeline).or_default();
        match parts[1..] {
            [log] => {
                if let Some((from, to)) = log_object_range(log) {
                    stored.segments.push(Segment { timeline, from, to, stored: object.bytes });
                }
            }
            ["files", file, part] => {
                let file = stored.files.entry(file.to_owned()).or_default();
                match (hex_digits::<16>(part), range_of(part)) {
                    (Some(offset), _) => drop(file.parts.insert(offset, object.bytes)),
                    (_, Some(range)) => drop(file.uses.insert(range)),
                    _ => {}
                }
            }
            _ => {}
        }
    })?;
    // Of two that begin at one LSN the longer comes first.
    let order = |segment: &Segment| (segment.from, std::cmp::Reverse(segment.to));
    timelines.values_mut().for_each(|stored| stored.segments.sort_unstable_by_key(order));
    Ok(timelines)
}

/// Reads whose log a timeline is.
pub fn timeline(repository: &Repository, number: u32) -> Result<Option<Timeline>> {
    let name = timeline_name(number);
    let Some(contents) = repository.read(Kind::Timeline, &name)? else { return Ok(None) };
    let read: Timeline = serde_json::from_slice(&contents)
        .map_err(|error| Failure::Damaged(format!("the object '{name}' is unusable: {error}")))?;
    match read.history.last() {
        Some((last, _)) if *last == number => Ok(Some(read)),
        _ => Err(Failure::Damaged(format!("the object '{name}' is that of another timeline"))),
    }
}

/// A segment's contents: its frames, checked.
pub struct Ranges {
    /// Without their bytes.
    pub frames: Vec<LogRange>,
    /// Checksum of the log up to the begin and up to the end, back to the last gap. In ranges of format 1 it
    /// begins with the segment.
    pub chain: (u32, u32),
    /// The bytes of the object, as the server sent them.
    pub contents: Vec<u8>,
}

/// Reads a segment and checks that its ranges follow each other from its begin to its end.
pub fn read_segment(repository: &Repository, segment: &Segment) -> Result<Ranges> {
    let name = segment.name();
    let damaged = |why: &str| Failure::Damaged(format!("the object '{name}' is unusable: {why}"));
    let contents = repository.read(Kind::Log, &name)?;
    let contents = contents.ok_or_else(|| Failure::Damaged(format!("the object '{name}' is missing")))?;
    let mut frames = Vec::new();
    let (mut rest, mut end) = (&contents[..], segment.from);
    let mut chain: Option<(u32, u32)> = None;
    while !rest.is_empty() {
        let decoded = Frame::decode(rest).map_err(|error| damaged(&error.to_string()))?;
        let Some((Frame::Range(mut range), length)) = decoded else {
            return Err(damaged("it has a frame that is no range"));
        };
        rest = &rest[length..];
        let before = chain.map(|(_, end)| end).or(range.chain).unwrap_or(0);
        if range.chain.is_some_and(|chain| chain != before) {
            return Err(damaged("its ranges are those of two logs"));
        }
        chain = Some((chain.map_or(before, |(begin, _)| begin), chained(before, &range.bytes)));
        range.bytes = Vec::new();
        if range.timeline != segment.timeline || range.from != end {
            return Err(damaged("its ranges do not follow each other"));
        }
        end = range.to;
        frames.push(range);
    }
    match chain {
        Some(chain) if end == segment.to => Ok(Ranges { frames, chain, contents }),
        _ => Err(damaged("it does not end where its name says")),
    }
}

/// Reads the first and the last range of a run.
pub fn ends_of(repository: &Repository, run: &Run) -> Result<(LogRange, LogRange)> {
    let end = |segment: Option<&Segment>| {
        read_segment(repository, segment.expect("a run has a segment")).map(|read| read.frames)
    };
    let first = end(run.segments.first())?.into_iter().next();
    let last = end(run.segments.last())?.pop();
    Ok(first.zip(last).expect("a segment has a range"))
}

/// Reads a file part by part, and checks length and checksum of the whole.
pub fn read_file(
    repository: &Repository,
    timeline: u32,
    file: &str,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let damaged = |why: &str| {
        let folder = file_folder(timeline, file);
        Failure::Damaged(format!("the file '{folder}' of the archive is unusable: {why}"))
    };
    if !is_archive_file_name(file) {
        return Err(damaged("its name is not allowed"));
    }
    let (mut offset, mut crc, mut stated) = (0, 0, None);
    while stated.is_none_or(|(length, _)| offset < length) {
        let name = part_name(timeline, file, offset);
        let part = repository.read(Kind::Part, &name)?;
        let part = part.ok_or_else(|| Failure::Damaged(format!("the object '{name}' is missing")))?;
        let (length, sum, bytes) = split_part(&part).ok_or_else(|| damaged("a part is cut off"))?;
        if *stated.get_or_insert((length, sum)) != (length, sum)
            || bytes.len() as u64 > length - offset
            || (bytes.is_empty() && length > 0)
        {
            return Err(damaged("its parts contradict each other"));
        }
        crc = crc32c::crc32c_append(crc, bytes);
        offset += bytes.len() as u64;
        each(bytes)?;
    }
    match stated {
        Some((length, sum)) if sum == crc => Ok(length),
        _ => Err(damaged("its checksum is wrong")),
    }
}

fn split_part(part: &[u8]) -> Option<(u64, u32, &[u8])> {
    let (head, bytes) = part.split_at_checked(PART_HEADER_BYTES)?;
    let length = u64::from_le_bytes(head[..8].try_into().ok()?);
    Some((length, u32::from_le_bytes(head[8..].try_into().ok()?), bytes))
}

/// Returns whether the repository has every part of a file.
fn has_file(repository: &Repository, timeline: u32, file: &str) -> Result<bool> {
    if !is_archive_file_name(file) {
        return Ok(false);
    }
    let name = part_name(timeline, file, 0);
    let Some(first) = repository.read(Kind::Part, &name)? else { return Ok(false) };
    let Some((length, ..)) = split_part(&first) else { return Ok(false) };
    let mut sizes = BTreeSet::new();
    let folder = file_folder(timeline, file);
    let offset_of = |name: &str| hex_digits::<16>(name.strip_prefix(&folder)?.strip_prefix('/')?);
    repository.store().list(&folder, |part| sizes.extend(offset_of(&part.name)))?;
    Ok((0..length.max(1)).step_by(CHUNK_BYTES).all(|offset| sizes.contains(&offset)))
}

/// Returns whether one of a backup's timeline and another timeline descends from the other, or both are one.
pub fn is_related(backup: &Catalogue, other: u32, histories: &BTreeMap<u32, Timeline>) -> bool {
    let own = backup.manifest.timeline;
    let descends = |younger: u32, older: u32| {
        histories.get(&younger).is_some_and(|it| it.history.iter().any(|(timeline, _)| *timeline == older))
    };
    own == other || descends(own, other) || descends(other, own)
}

/// Returns whether a restore that begins with a backup may need a segment.
pub fn needs(backup: &Catalogue, segment: &Segment, histories: &BTreeMap<u32, Timeline>) -> bool {
    segment.to > backup.manifest.cut_lsn && is_related(backup, segment.timeline, histories)
}

/// Reads the histories of all timelines that have one.
pub fn histories(
    repository: &Repository,
    timelines: impl Iterator<Item = u32>,
) -> Result<BTreeMap<u32, Timeline>> {
    let mut histories = BTreeMap::new();
    for number in timelines {
        if let Some(found) = timeline(repository, number)? {
            histories.insert(number, found);
        }
    }
    Ok(histories)
}
