//! Restoring to a point in time: appends the ranges of an archive to the log of a restored backup, up to a
//! stop. The start of a server then recovers the data directory as after a crash.
//!
//! # Outline
//! ```text
//! the log of the backup ends at its cut, on one of the timelines of the history
//! what the ranges have before the end of that log must be the same bytes
//! while there is a range that contains the end of the log:
//!     its chain continues that of the range before it
//!     for each record from there on: is it the stop?   copy the files that it names, append it
//!     where the next timeline of the history begins: go on in its ranges
//! a range further on, but none here: a gap, refused
//! make the new end of the log durable, and what the start has to know about the added part
//! ```
//! With separate logs the archive's stream is that of the coordinator's log, and only that is extended: see
//! `separate_recovery.rs`. The name of the binlog is not in the log, but the heads of its files have it. If
//! the server changed it, or turned the binlog on, the state at the end has the binlog of that name alone.
//!
//! # On failure
//! Before the last step the log ends at the cut of the backup, but its segments and the spill directory have
//! been written to: the backup has to be restored again.

use std::fmt;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use cohort_backup_format::{
    Frame, HISTORY, LogRange, MANIFEST, Manifest, RESTORED, chained, is_archive_file_name, log_object_range,
    parse_history,
};
use cohort_base::{BinlogPos, Gtid, Lsn};
use cohort_log::{Extension, LogError, Record, Timeline};
use cohort_vfs::{OpenMode, SharedFile, SharedFs, World};

use super::names::{NamedFile, PIECE_BYTES, binlog_base_of, gtid_of, named_files};
use crate::logs::main_dir;
use crate::record::{self, Checkpoint, Restored};
use crate::utc::parse_time;

/// Where a restore ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyStop {
    /// At the end of the archive.
    End,
    /// Before the first group that was written later, in microseconds since 1970.
    Time(u64),
    /// After this transaction.
    Gtid(Gtid),
}

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// End of the log.
    pub lsn: Lsn,
    /// Newest time before it, in microseconds since 1970; 0 if there is none.
    pub time_us: u64,
    /// Bytes of log after the backup.
    pub bytes: u64,
    pub transactions: u64,
    /// The stop was reached; false if the archive ends before it.
    pub is_reached: bool,
    /// Base name of the binlog, if the server changed it after the backup.
    pub new_binlog: Option<String>,
}

/// Reason why an archive is not applied.
#[derive(Debug)]
pub enum ApplyError {
    NotACopy(PathBuf),
    /// The archive or the stop does not belong to this backup.
    Unsuitable(String),
    Gap {
        timeline: u32,
        from: Lsn,
        to: Lsn,
    },
    Damaged(PathBuf, String),
    /// The archive has the ranges of another log than that of the backup, or of two.
    Mixed(PathBuf, Lsn),
    Io(PathBuf, io::Error),
    Log(LogError),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::NotACopy(dir) => write!(
                f,
                "'{}' is not a restored backup, or a server was started in it: restore the backup again",
                dir.display()
            ),
            ApplyError::Unsuitable(what) => f.write_str(what),
            ApplyError::Gap { timeline, from, to } => write!(
                f,
                "the archive lacks the log from LSN {from} to LSN {to} of timeline {timeline}: fetch that part from the \
                 repository again. If it is lost, restore to a moment before it, or from a backup that was taken after it"
            ),
            ApplyError::Damaged(path, what) => write!(
                f,
                "'{}' is damaged ({what}): fetch it from the repository again, restore the backup again",
                path.display()
            ),
            ApplyError::Mixed(path, lsn) => write!(
                f,
                "'{}' has the log of another server from LSN {lsn} on: a copy of the data directory was archived to the same \
                 place. Restore to a moment before it, or from a backup that was taken after it",
                path.display()
            ),
            ApplyError::Io(path, error) => write!(f, "'{}': {error}", path.display()),
            ApplyError::Log(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ApplyError {}

impl From<LogError> for ApplyError {
    fn from(error: LogError) -> ApplyError {
        ApplyError::Log(error)
    }
}

/// An object with ranges.
#[derive(Clone, Debug)]
struct Object {
    from: Lsn,
    to: Lsn,
    path: PathBuf,
}

/// Appends the archive in `dir` to the log of the backup in `datadir`, along the history of a timeline,
/// without one that of the backup.
pub fn apply_archive(
    world: &World,
    datadir: &Path,
    dir: &Path,
    timeline: Option<u32>,
    stop: ApplyStop,
) -> Result<Applied, ApplyError> {
    let fs = &world.fs;
    let not_a_copy = || ApplyError::NotACopy(datadir.to_path_buf());
    if !cohort_log::Recovery::is_there(world, &main_dir(datadir)) {
        return Err(not_a_copy());
    }
    let log = Extension::open(world, &main_dir(datadir))?.ok_or_else(not_a_copy)?;
    check_stop(fs, datadir, stop)?;
    let checkpoint = Checkpoint::decode(log.payload());
    let unreadable = |_| ApplyError::Damaged(main_dir(datadir), "its checkpoint does not decode".to_owned());
    let checkpoint = checkpoint.map_err(unreadable)?;
    if checkpoint.restored.is_some() {
        return Err(not_a_copy());
    }
    let own = *log.timelines().last().expect("a log has a timeline");
    let target = timeline.unwrap_or(own.number);
    let history = match target == own.number {
        true => log.timelines().to_vec(),
        false => history(fs, dir, target)?,
    };
    let Some(at) = history.iter().position(|it| *it == own) else {
        return Err(ApplyError::Unsuitable(format!(
            "the backup is of timeline {} that begins at LSN {}, which is no ancestor of timeline {target} of the archive: \
             restore another backup, or name its timeline (--stop-timeline)",
            own.number, own.from
        )));
    };
    let objects: Vec<_> =
        history.iter().map(|it| objects(fs, dir, it.number)).collect::<Result<_, ApplyError>>()?;
    if objects.iter().all(Vec::is_empty) {
        return Err(ApplyError::Unsuitable(format!(
            "'{}' holds no range of timeline {target}",
            dir.display()
        )));
    }
    let end_of = |n: usize| history.get(n + 1).map_or(Lsn(u64::MAX), |next| next.from);
    if end_of(at) < log.end() {
        return Err(ApplyError::Unsuitable(format!(
            "the backup ends at LSN {}, and timeline {} branched off from its timeline before, at LSN {}: restore an older \
             backup",
            log.end(),
            history[at + 1].number,
            end_of(at)
        )));
    }
    let spill = datadir.join("spill");
    fs.create_dir_all(&spill).map_err(|e| ApplyError::Io(spill.clone(), e))?;
    let begin = log.end();
    let applied = Applied::at(begin);
    let mut pass = Pass {
        fs,
        dir,
        spill,
        binlogs: vec![(Lsn(0), checkpoint.binlog_base.clone())],
        checkpoint,
        log,
        stop,
        applied,
        timeline: own.number,
        chain: None,
        is_over: false,
    };
    pass.compare(&objects[at])?;
    for (n, timeline) in history.iter().enumerate().skip(at) {
        (pass.timeline, pass.chain) = (timeline.number, None);
        pass.run(&objects[n], end_of(n))?;
        if pass.is_over || pass.log.end() < end_of(n) {
            let later = objects[n + 1..].iter().filter_map(|of_timeline| of_timeline.first());
            if let (false, Some(later)) = (pass.is_over, later.map(|it| it.from).min()) {
                let (from, to) = (pass.log.end(), end_of(n).min(later));
                return Err(ApplyError::Gap { timeline: timeline.number, from, to });
            }
            break;
        }
    }
    pass.finish(begin)
}

impl Applied {
    fn at(lsn: Lsn) -> Applied {
        Applied { lsn, time_us: 0, bytes: 0, transactions: 0, is_reached: false, new_binlog: None }
    }
}

/// Refuses a time before the end of the backup.
fn check_stop(fs: &SharedFs, datadir: &Path, stop: ApplyStop) -> Result<(), ApplyError> {
    let ApplyStop::Time(stop_us) = stop else { return Ok(()) };
    // The server that applies the archive has renamed it.
    let path = Some(datadir.join(RESTORED)).filter(|path| fs.exists(path));
    let path = path.unwrap_or_else(|| datadir.join(MANIFEST));
    let text = match fs.open(&path, OpenMode::Read) {
        Ok(file) => read_text(file).map_err(|e| ApplyError::Io(path.clone(), e))?,
        // A simulation's backup may have been moved without it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ApplyError::Io(path, error)),
    };
    let manifest = Manifest::decode(text.as_bytes(), &path);
    let manifest = manifest.map_err(|error| ApplyError::Damaged(path, error.to_string()))?;
    match parse_time(&manifest.cut) {
        Some(cut_us) if stop_us < cut_us => Err(ApplyError::Unsuitable(format!(
            "the backup has the state of {}, which is later than the time to restore to: restore an older backup",
            manifest.cut
        ))),
        _ => Ok(()),
    }
}

/// Lists the ranges of a timeline, ordered by LSN.
fn objects(fs: &SharedFs, dir: &Path, timeline: u32) -> Result<Vec<Object>, ApplyError> {
    let dir = dir.join(format!("{timeline:08x}"));
    if !fs.exists(&dir) {
        return Ok(Vec::new());
    }
    let names = fs.list(&dir).map_err(|e| ApplyError::Io(dir.clone(), e))?;
    let object = |name: &PathBuf| {
        let (from, to) = log_object_range(name.to_str()?)?;
        Some(Object { from: Lsn(from), to: Lsn(to), path: dir.join(name) })
    };
    let mut objects: Vec<Object> = names.iter().filter_map(object).collect();
    objects.sort_by_key(|object| (object.from, object.to));
    Ok(objects)
}

/// Reads the history of a timeline, with its own last.
fn history(fs: &SharedFs, dir: &Path, timeline: u32) -> Result<Vec<Timeline>, ApplyError> {
    let path = dir.join(format!("{timeline:08x}/files/{HISTORY}"));
    let file = fs.open(&path, OpenMode::Read).map_err(|e| ApplyError::Io(path.clone(), e))?;
    let text = read_text(file).map_err(|e| ApplyError::Io(path.clone(), e))?;
    match parse_history(&text) {
        Some(history) if history.last().is_some_and(|last| last.timeline == timeline) => {
            Ok(history.iter().map(|it| Timeline { number: it.timeline, from: Lsn(it.lsn) }).collect())
        }
        _ => Err(ApplyError::Damaged(path, "it is no history of the timeline".to_owned())),
    }
}

/// A file as a stream.
struct Stream {
    file: SharedFile,
    at: u64,
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(buf, self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

fn read_text(file: SharedFile) -> io::Result<String> {
    let mut text = String::new();
    Stream { file, at: 0 }.read_to_string(&mut text)?;
    Ok(text)
}

struct Pass<'p> {
    fs: &'p SharedFs,
    dir: &'p Path,
    spill: PathBuf,
    log: Extension,
    /// That of the backup.
    checkpoint: Checkpoint,
    /// Base names of the binlog, each with the LSN from which on the log has bytes of its files.
    binlogs: Vec<(Lsn, String)>,
    stop: ApplyStop,
    applied: Applied,
    timeline: u32,
    /// End of the range before, and the chain up to there, if it is known.
    chain: Option<(u64, u32)>,
    /// The stop was reached.
    is_over: bool,
}

impl Pass<'_> {
    /// Appends what the ranges of a timeline have from the end of the log up to `limit`.
    fn run(&mut self, objects: &[Object], limit: Lsn) -> Result<(), ApplyError> {
        loop {
            let end = self.log.end();
            if self.is_over || end >= limit {
                return Ok(());
            }
            let here = objects.iter().filter(|it| it.from <= end && end < it.to).max_by_key(|it| it.to);
            match (here, objects.iter().find(|it| it.from > end)) {
                (Some(object), _) => self.object(object, limit)?,
                (None, Some(next)) => {
                    let (timeline, to) = (self.timeline, next.from.min(limit));
                    return Err(ApplyError::Gap { timeline, from: end, to });
                }
                (None, None) => return Ok(()),
            }
        }
    }

    fn open(&self, object: &Object) -> Result<BufReader<Stream>, ApplyError> {
        let file = self.fs.open(&object.path, OpenMode::Read);
        let file = file.map_err(|e| ApplyError::Io(object.path.clone(), e))?;
        Ok(BufReader::with_capacity(PIECE_BYTES, Stream { file, at: 0 }))
    }

    /// Compares the ranges of the backup's timeline with the end of its log, as far as one object has both.
    fn compare(&self, objects: &[Object]) -> Result<(), ApplyError> {
        let end = self.log.end();
        let before = objects.iter().filter(|it| it.from < end && end <= it.to).max_by_key(|it| it.to);
        let Some(object) = before else { return Ok(()) };
        let mut stream = self.open(object)?;
        let damaged = |error: io::Error| ApplyError::Damaged(object.path.clone(), error.to_string());
        while let Some(frame) = Frame::read(&mut stream).map_err(damaged)? {
            let Frame::Range(range) = frame else { return Ok(()) };
            let (from, to) = (Lsn(range.from), Lsn(range.to).min(end));
            if from >= to {
                continue;
            }
            let theirs = &range.bytes[..(to.0 - range.from) as usize];
            let mut own = vec![0; theirs.len()];
            let got = self.log.read_at(&mut own, from)?;
            let begin = own[..got].iter().position(|byte| *byte != 0).unwrap_or(got);
            if own[begin..got] != theirs[begin..got] {
                return Err(ApplyError::Mixed(object.path.clone(), from));
            }
        }
        Ok(())
    }

    fn object(&mut self, object: &Object, limit: Lsn) -> Result<(), ApplyError> {
        let damaged = |what: &str| ApplyError::Damaged(object.path.clone(), what.to_owned());
        let mut stream = self.open(object)?;
        let mut at = object.from;
        while let Some(frame) = Frame::read(&mut stream).map_err(|error| damaged(&error.to_string()))? {
            let Frame::Range(range) = frame else {
                return Err(damaged("it holds another frame than ranges"));
            };
            if range.timeline != self.timeline || Lsn(range.from) != at {
                return Err(damaged("a range does not follow the one before"));
            }
            if let (Some((end, known)), Some(chain)) = (self.chain, range.chain)
                && end == range.from
                && known != chain
            {
                return Err(ApplyError::Mixed(object.path.clone(), at));
            }
            self.chain = range.chain.map(|chain| (range.to, chained(chain, &range.bytes)));
            at = Lsn(range.to);
            if at <= self.log.end() {
                continue;
            }
            self.range(&range, limit, &damaged)?;
            if self.is_over || self.log.end() >= limit {
                return Ok(());
            }
        }
        if at != object.to {
            return Err(damaged("it ends before the LSN of its name"));
        }
        Ok(())
    }

    fn range(
        &mut self,
        range: &LogRange,
        limit: Lsn,
        damaged: &dyn Fn(&str) -> ApplyError,
    ) -> Result<(), ApplyError> {
        let begin = (self.log.end().0 - range.from) as usize;
        let mut taken = begin;
        let mut files = Vec::new();
        while taken < range.bytes.len() && Lsn(range.from + taken as u64) < limit {
            let lsn = Lsn(range.from + taken as u64);
            let record = self.log.record(lsn, &range.bytes[taken..]);
            let record =
                record.ok_or_else(|| damaged(&format!("no record of this log begins at LSN {lsn}")))?;
            let end = (record.end.0 - range.from) as usize;
            let (is_taken, named) = self.look_at(&record, damaged)?;
            if is_taken {
                taken = end;
                files.extend(named);
            }
            if self.is_over {
                break;
            }
        }
        files.iter().try_for_each(|file| self.copy(file))?;
        self.log.append(&range.bytes[begin..taken])?;
        Ok(())
    }

    /// Looks whether a record is the stop. Returns whether it belongs to the restored state, and the files
    /// that it names.
    fn look_at(
        &mut self,
        record: &Record<'_>,
        damaged: &dyn Fn(&str) -> ApplyError,
    ) -> Result<(bool, Vec<NamedFile>), ApplyError> {
        let unreadable = |_| damaged(&format!("the record at LSN {} does not decode", record.lsn));
        match record.kind {
            record::TIME => {
                let time_us = record::decode_time(record.payload).map_err(unreadable)?;
                // A clock that went back between two starts: times never go back.
                let time_us = self.applied.time_us.max(time_us);
                if matches!(self.stop, ApplyStop::Time(stop_us) if time_us > stop_us) {
                    self.is_over = true;
                    return Ok((false, Vec::new()));
                }
                self.applied.time_us = time_us;
                Ok((true, Vec::new()))
            }
            record::COMMIT => {
                let commit = record::decode_commit(record.payload).map_err(unreadable)?;
                self.applied.transactions += 1;
                let gtid = gtid_of(&commit);
                self.is_over = matches!(self.stop, ApplyStop::Gtid(stop) if gtid == Some(stop));
                Ok((true, named_files(&commit)))
            }
            record::BINLOG => {
                let base = binlog_base_of(record.payload).map_err(unreadable)?;
                let (_, known) = self.binlogs.last().expect("that of the backup is the first");
                if let Some(base) = base.filter(|base| base != known) {
                    self.binlogs.push((record.lsn, base));
                }
                Ok((true, Vec::new()))
            }
            _ => Ok((true, Vec::new())),
        }
    }

    /// Copies a file that a record names to the spill directory.
    fn copy(&self, named: &NamedFile) -> Result<(), ApplyError> {
        let from = self.dir.join(format!("{:08x}/files/{}", self.timeline, named.name));
        let to = self.spill.join(&named.name);
        if !is_archive_file_name(&named.name) {
            return Err(ApplyError::Damaged(from, "a record names a file of another directory".to_owned()));
        }
        let read = |e| ApplyError::Io(from.clone(), e);
        let write = |e| ApplyError::Io(to.clone(), e);
        let source = self.fs.open(&from, OpenMode::Read).map_err(read)?;
        let file = self.fs.open(&to, OpenMode::CreateOrOpen).map_err(write)?;
        let (mut at, mut crc, mut buf) = (0, 0, vec![0; PIECE_BYTES]);
        loop {
            let got = source.read_at(&mut buf, at).map_err(read)?;
            file.write_at(&buf[..got], at).map_err(write)?;
            crc = crc32c::crc32c_append(crc, &buf[..got]);
            at += got as u64;
            if got < buf.len() {
                break;
            }
        }
        if named.crc.is_some_and(|known| known != crc) {
            let what = "its checksum is not what the log says".to_owned();
            return Err(ApplyError::Damaged(from, what));
        }
        file.set_len(at).map_err(write)?;
        file.sync_data().map_err(write)
    }

    fn finish(mut self, begin: Lsn) -> Result<Applied, ApplyError> {
        self.applied.is_reached = self.is_over || self.stop == ApplyStop::End;
        if let (false, ApplyStop::Gtid(gtid)) = (self.is_over, self.stop) {
            return Err(ApplyError::Unsuitable(format!(
                "the archive ends at LSN {} without GTID {gtid}, or the backup has it already",
                self.log.end()
            )));
        }
        self.fs.sync_dir(&self.spill).map_err(|e| ApplyError::Io(self.spill.clone(), e))?;
        self.applied.lsn = self.log.end();
        self.applied.bytes = self.applied.lsn.0 - begin.0;
        let checkpoint = self.restored(begin);
        self.log.finish(checkpoint.encode())?;
        Ok(self.applied)
    }

    /// Returns the checkpoint for the control file.
    fn restored(&mut self, begin: Lsn) -> Checkpoint {
        let mut checkpoint = self.checkpoint.clone();
        let (_, newest) = self.binlogs.last().expect("that of the backup is the first").clone();
        let ends = self.binlogs.iter().skip(1).map(|(from, _)| *from);
        let parts = self.binlogs.iter().zip(ends);
        let others = parts.filter(|((_, base), _)| *base != newest).map(|((from, _), to)| (*from, to));
        let other_binlogs: Vec<_> = others.collect();
        if newest != checkpoint.binlog_base {
            (checkpoint.binlog_base, checkpoint.binlog_synced) = (newest.clone(), BinlogPos::default());
            self.applied.new_binlog = Some(newest);
        }
        if checkpoint.separate.is_some() && self.log.end() > begin || !other_binlogs.is_empty() {
            checkpoint.restored = Some(Restored { from: begin, other_binlogs });
        }
        checkpoint
    }
}
