//! The archiver: the process that a server with `archive_to` starts.
//!
//! # States
//! 1. HELLO arrives. The timeline must be free, or that of the same server and log ([`claim`]). The server
//!    must be that of the newest backup.
//! 2. START is sent, with the end of what the repository has, and a checksum of its log ([`start`]): a server
//!    with another log ends here.
//! 3. Ranges are gathered into a segment until it has [`SEGMENT_BYTES`], is [`HOLD`] old, or FLUSH arrives
//!    ([`Pending`]). The
//!    segment is written, the store confirms it, ACK is sent. While it is written, a thread reads the next
//!    frames, [`QUEUE_FRAMES`] at most.
//!    Before each ACK the timeline and the segment are looked up again under their names: a mount point below
//!    which nothing is mounted, or a store that loses objects, would take the log and lose it.
//! 4. Pieces of a file become parts, which are written at once. A segment that names a file is written after
//!    all parts of the file were seen in the store.
//! 5. At the end of the input the rest is written and acknowledged.
//!
//! # On failure
//! The store repeats what may pass. Any other failure is sent as ERROR, and the process ends; the server
//! starts it again after a pause. What was written stays and is accepted again, because it has the same
//! contents. An object that this process has not written means that another process archives the same
//! timeline: a copy of the data directory, or an earlier process that has not ended. Both are refused, and
//! nothing after that is acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use cohort_backup_format::{
    ARCHIVE_FORMAT, FilePiece, Frame, Hello, LogRange, Start, TimelineStart, is_archive_file_name,
    log_object_range,
};

use super::{
    FOLDER, Segment, Stored, Timeline, has_file, log_name, part_name, read_segment, stored, stored_timeline,
    timeline, timeline_name, use_name,
};
use crate::failure::{Failure, Result};
use crate::object::{CHUNK_BYTES, Kind};
use crate::repository::Repository;

/// Size of a segment, unless a single range is larger.
const SEGMENT_BYTES: usize = 8 << 20;
/// Maximum time that a range waits for further ones.
const HOLD: Duration = Duration::from_millis(800);
/// Maximum number of frames that wait while a segment is written.
const QUEUE_FRAMES: usize = 2;
/// Pauses before a timeline is listed again whose list ends before what the repository has acknowledged.
const LIST_AGAIN: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(400), Duration::from_millis(800)];
/// Time between two looks for objects of other processes.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Archives what a server sends, until its end. A failure is reported to the server and returned.
pub fn run(
    open: impl FnOnce() -> Result<Repository>,
    input: impl Read + Send + 'static,
    mut output: impl Write,
) -> Result<()> {
    let outcome = open().and_then(|repository| Archiver::serve(&repository, input, &mut output));
    if let Err(failure) = &outcome {
        // The server may be gone.
        let _ = write(&mut output, &Frame::Error(failure.to_string()));
    }
    outcome
}

/// Ranges of the segment that is being gathered.
#[derive(Default)]
struct Pending {
    contents: Vec<u8>,
    from: u64,
    to: u64,
    files: BTreeSet<String>,
    begun: Option<Instant>,
}

/// The file whose pieces arrive.
struct OpenFile {
    name: String,
    length: u64,
    crc: u32,
    /// Offset of the part that is being gathered.
    offset: u64,
    part: Vec<u8>,
    sum: u32,
}

struct Archiver<'a> {
    repository: &'a Repository,
    output: &'a mut dyn Write,
    timeline: u32,
    /// The LSN where the next range begins; `None` before the first one.
    next: Option<u64>,
    pending: Pending,
    file: Option<OpenFile>,
    /// The newest segment of this process, or the newest one before it.
    last: Option<Segment>,
    written: BTreeSet<(u64, u64)>,
    looked: Instant,
}

fn write(output: &mut impl Write, frame: &Frame) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    output.write_all(&bytes)?;
    output.flush()
}

fn protocol(what: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("archive: the server sent what it must not: {what}"))
}

impl<'a> Archiver<'a> {
    fn serve(
        repository: &'a Repository,
        mut input: impl Read + Send + 'static,
        output: &'a mut dyn Write,
    ) -> Result<()> {
        let first = Frame::read(&mut input).map_err(protocol)?;
        let Some(first) = first else { return Ok(()) };
        let Frame::Hello(hello) = first else {
            return Err(protocol("the first message is no HELLO"));
        };
        let own = claim(repository, &hello)?;
        let found = listed(repository, own, hello.lsn)?;
        let last = found.segments.iter().max_by_key(|segment| segment.to).copied();
        let start = start(repository, own, &hello, &found)?;
        let mut archiver = Archiver {
            repository,
            output,
            timeline: own,
            next: None,
            pending: Pending::default(),
            file: None,
            last,
            written: BTreeSet::new(),
            looked: Instant::now(),
        };
        archiver.answer(&Frame::Start(start))?;
        let (frames, queue) = sync_channel(QUEUE_FRAMES);
        // Not joined: after a failure it may wait for a server that sends nothing.
        std::thread::spawn(move || {
            loop {
                let read = Frame::read(&mut input).transpose();
                let is_end = !matches!(read, Some(Ok(_)));
                if read.is_none_or(|read| frames.send(read).is_err()) || is_end {
                    return;
                }
            }
        });
        archiver.receive(&queue)
    }

    fn answer(&mut self, answer: &Frame) -> Result<()> {
        let written = write(&mut self.output, answer);
        written.map_err(|error| Failure::Failed(format!("archive: the server is gone: {error}")))
    }

    fn receive(&mut self, queue: &Receiver<std::io::Result<Frame>>) -> Result<()> {
        loop {
            let wait = self.pending.begun.map(|begun| HOLD.saturating_sub(begun.elapsed()));
            let received = match wait {
                Some(wait) => queue.recv_timeout(wait),
                None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(Ok(frame)) => match frame {
                    Frame::File(piece) => self.add_piece(piece)?,
                    Frame::Range(range) => self.add_range(range)?,
                    Frame::Flush => self.flush()?,
                    Frame::Hello(_) => return Err(protocol("a second HELLO")),
                    _ => return Err(protocol("a frame of the program")),
                },
                // The rest of a frame was lost: what came before it is whole.
                Ok(Err(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => return self.flush(),
                Ok(Err(error)) => return Err(protocol(error)),
                Err(RecvTimeoutError::Timeout) => self.flush()?,
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
        }
    }

    fn add_range(&mut self, range: LogRange) -> Result<()> {
        let is_next = self.next.is_none_or(|next| next == range.from) && range.from < range.to;
        if range.timeline != self.timeline || !is_next {
            return Err(protocol(format!("a range from LSN {} of timeline {}", range.from, range.timeline)));
        }
        if self.file.is_some() {
            return Err(protocol("a range before the end of a file"));
        }
        if !self.pending.contents.is_empty()
            && self.pending.contents.len() + range.bytes.len() > SEGMENT_BYTES
        {
            self.flush()?;
        }
        let pending = &mut self.pending;
        if pending.contents.is_empty() {
            (pending.from, pending.begun) = (range.from, Some(Instant::now()));
        }
        pending.to = range.to;
        pending.files.extend(range.files.iter().cloned());
        self.next = Some(range.to);
        Frame::Range(range).encode(&mut pending.contents);
        match self.pending.contents.len() >= SEGMENT_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes the segment that was gathered, and acknowledges it.
    fn flush(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        if pending.contents.is_empty() {
            return Ok(());
        }
        for file in &pending.files {
            if !has_file(self.repository, self.timeline, file)? {
                return Err(protocol(format!(
                    "a range names the file '{file}', which was not sent, or which the repository has lost"
                )));
            }
            self.write(Kind::Part, &use_name(self.timeline, file, pending.from, pending.to), &[])?;
        }
        self.look_for_others()?;
        let name = log_name(self.timeline, pending.from, pending.to);
        let stored = self.write(Kind::Log, &name, &pending.contents)?;
        self.written.insert((pending.from, pending.to));
        let segment = Segment { timeline: self.timeline, from: pending.from, to: pending.to, stored };
        self.last = Some(segment);
        self.confirm(&name, stored)?;
        self.answer(&Frame::Ack(TimelineStart { timeline: self.timeline, lsn: pending.to }))
    }

    /// Looks whether the repository is that of the begin, and has a segment.
    fn confirm(&self, name: &str, stored: u64) -> Result<()> {
        let is_there = timeline(self.repository, self.timeline)?.is_some()
            && self.repository.store().size(name)? == Some(stored);
        is_there.then_some(()).ok_or_else(|| {
            Failure::Failed(format!(
                "repository {}: it has not kept '{name}': is its file system mounted?",
                self.repository.store().place()
            ))
        })
    }

    fn write(&self, kind: Kind, name: &str, contents: &[u8]) -> Result<u64> {
        self.repository.write_same(kind, name, contents)?.ok_or_else(|| self.conflict(name))
    }

    fn conflict(&self, name: &str) -> Failure {
        Failure::Refused(format!(
            "repository {}: another process has written '{name}': a second server, or a copy of this data directory, \
             archives to this place. Give each server a repository of its own",
            self.repository.store().place()
        ))
    }

    /// Looks for segments near the end that this process has not written.
    fn look_for_others(&mut self) -> Result<()> {
        let Some(last) = self.last.filter(|_| self.looked.elapsed() >= LOOK_AGAIN) else { return Ok(()) };
        self.looked = Instant::now();
        let folder = format!("{FOLDER}/{:08x}", self.timeline);
        for object in self.repository.store().list_after(&folder, &last.name())? {
            let log = object.name.strip_prefix(&folder).and_then(|name| name.strip_prefix('/'));
            let range = log.and_then(log_object_range);
            if range.is_some_and(|range| !self.written.contains(&range)) {
                return Err(self.conflict(&object.name));
            }
        }
        // Older ones are before the next look's first name.
        self.written.retain(|(from, _)| *from >= last.from);
        Ok(())
    }

    fn add_piece(&mut self, piece: FilePiece) -> Result<()> {
        if piece.timeline != self.timeline || !is_archive_file_name(&piece.name) {
            return Err(protocol(format!("the file '{}' of timeline {}", piece.name, piece.timeline)));
        }
        let mut file = match self.file.take() {
            None if piece.offset == 0 => OpenFile {
                name: piece.name.clone(),
                length: piece.file_bytes,
                crc: piece.file_crc,
                offset: 0,
                part: Vec::new(),
                sum: 0,
            },
            Some(file) => file,
            None => return Err(protocol(format!("'{}' does not begin at 0", piece.name))),
        };
        let end = file.offset + file.part.len() as u64;
        let is_next = (&file.name, file.length, file.crc) == (&piece.name, piece.file_bytes, piece.file_crc);
        if !is_next || piece.offset != end || piece.bytes.len() as u64 > file.length - end {
            return Err(protocol(format!("a piece of '{}' at {}", piece.name, piece.offset)));
        }
        file.sum = crc32c::crc32c_append(file.sum, &piece.bytes);
        let mut bytes = &piece.bytes[..];
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(CHUNK_BYTES - file.part.len()));
            file.part.extend_from_slice(part);
            bytes = rest;
            if file.part.len() == CHUNK_BYTES {
                self.write_part(&mut file)?;
            }
        }
        if file.offset + (file.part.len() as u64) < file.length {
            self.file = Some(file);
            return Ok(());
        }
        if file.sum != file.crc {
            return Err(protocol(format!("'{}' has another checksum than it states", file.name)));
        }
        if !file.part.is_empty() || file.length == 0 {
            self.write_part(&mut file)?;
        }
        Ok(())
    }

    fn write_part(&self, file: &mut OpenFile) -> Result<()> {
        let head = [&file.length.to_le_bytes()[..], &file.crc.to_le_bytes()].concat();
        let name = part_name(self.timeline, &file.name, file.offset);
        self.write(Kind::Part, &name, &[head, std::mem::take(&mut file.part)].concat())?;
        file.offset += CHUNK_BYTES as u64;
        Ok(())
    }
}

/// Lists a timeline. A list that ends before `lsn`, from which the server sends, may lag:
/// what it lacks would become a gap. So it is listed again a few times.
fn listed(repository: &Repository, timeline: u32, lsn: u64) -> Result<Stored> {
    for pause in LIST_AGAIN {
        let found = stored_timeline(repository, timeline)?;
        if found.end().is_none_or(|end| end >= lsn) {
            return Ok(found);
        }
        std::thread::sleep(pause);
    }
    stored_timeline(repository, timeline)
}

/// Determines where the server begins to send, and what it compares with its own log: the contents between
/// two LSNs, as much of them as follow each other and the server may still have.
fn start(repository: &Repository, timeline: u32, hello: &Hello, found: &Stored) -> Result<Start> {
    let Some(last) = found.segments.iter().max_by_key(|segment| segment.to) else {
        let lsn = hello.lsn;
        return Ok(Start { timeline, lsn, chain: 0, proof_lsn: lsn, proof_chain: 0 });
    };
    let read = read_segment(repository, last)?;
    let end =
        Start { timeline, lsn: last.to, chain: read.chain.1, proof_lsn: last.to, proof_chain: read.chain.1 };
    if last.from < hello.proof_lsn {
        // Within the segment.
        let first = read.frames.iter().find(|range| range.from >= hello.proof_lsn);
        let proof = first.and_then(|range| Some((range.from, range.chain?)));
        return Ok(proof.map_or(end, |(proof_lsn, proof_chain)| Start { proof_lsn, proof_chain, ..end }));
    }
    let by_end: BTreeMap<u64, &Segment> =
        found.segments.iter().map(|segment| (segment.to, segment)).collect();
    let before = |at: &&Segment| by_end.get(&at.from).copied().filter(|it| it.from >= hello.proof_lsn);
    let first = std::iter::successors(Some(last), before).last().expect("it begins with one");
    if first != last
        && let read = read_segment(repository, first)?
        && read.frames[0].chain.is_some()
    {
        return Ok(Start { proof_lsn: first.from, proof_chain: read.chain.0, ..end });
    }
    Ok(Start { proof_lsn: last.from, proof_chain: read.chain.0, ..end })
}

/// Refuses a server that is not that of the newest backup: a clone, or a restored copy that was started for a
/// trial, would continue the history of the server that it comes from.
fn check_server(repository: &Repository, hello: &Hello) -> Result<()> {
    let Some(newest) = repository.backups()?.pop() else { return Ok(()) };
    let of_backup = repository.catalogue(&newest)?.manifest.server_uuid;
    if of_backup.is_empty() || of_backup == hello.server_uuid {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "repository {} has backups of the server {of_backup}, and this is the server {}. Give each server a repository of \
         its own. If this server replaces that one, store a backup of it with 'cohort-backup take --another-server'; \
         the archive continues then",
        repository.store().place(),
        hello.server_uuid
    )))
}

/// Takes a timeline for a server. Refuses one of another server, and a server that has nothing in common with
/// the timelines that are there.
fn claim(repository: &Repository, hello: &Hello) -> Result<u32> {
    let place = repository.store().place();
    if hello.format != ARCHIVE_FORMAT {
        return Err(Failure::Newer(format!(
            "the server's archive has format {}, this cohort-backup has {}; install the same version of both",
            hello.format, ARCHIVE_FORMAT
        )));
    }
    let own = hello.timelines.last().ok_or_else(|| protocol("a HELLO without timelines"))?;
    let number = own.timeline;
    let own = Timeline::of(hello);
    let refused = |found: &Timeline, number: u32| {
        Failure::Refused(format!(
            "repository {place}: timeline {number:08x} is that of the server '{}' (log {:08x}), and this is the server \
             '{}' (log {:08x}). Give each server a repository of its own",
            found.server_uuid, found.log_identity, own.server_uuid, own.log_identity
        ))
    };
    check_server(repository, hello)?;
    if let Some(found) = timeline(repository, number)? {
        return if found == own { Ok(number) } else { Err(refused(&found, number)) };
    }
    let mut strange = None;
    let mut is_known = false;
    for other in stored(repository)?.into_keys() {
        let Some(found) = timeline(repository, other)? else { continue };
        let is_ancestor = own.history.iter().any(|(timeline, _)| *timeline == other);
        match is_ancestor && own.history.starts_with(&found.history) {
            true => is_known = true,
            false if is_ancestor => return Err(refused(&found, other)),
            false => strange = strange.or(Some((found, other))),
        }
    }
    match strange {
        Some((found, other)) if !is_known => Err(refused(&found, other)),
        _ => {
            let contents = serde_json::to_vec(&own).expect("all keys are strings");
            match repository.write_same(Kind::Timeline, &timeline_name(number), &contents)? {
                Some(_) => Ok(number),
                None => match timeline(repository, number)? {
                    Some(found) => Err(refused(&found, number)),
                    None => {
                        Err(Failure::Failed(format!("repository {place}: timeline {number:08x} vanished")))
                    }
                },
            }
        }
    }
}
