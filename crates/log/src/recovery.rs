//! Opening a log and reading it to its end.
//!
//! [`Recovery::open`] finds the control file and the segments, [`Recovery::next`] reads records from the last
//! checkpoint on, [`Recovery::finish`] determines where the log ends and returns a [`Log`]. Until `finish`
//! nothing that recovery may need is changed, so that a refusal leaves everything unchanged.
//!
//! `open` makes file names and segments durable before anything is read: a killed process may have left bytes
//! and names that are not on disk yet, and everything read counts as durable from now on. `finish` writes the
//! new generation to the control file. Only then may the log be appended to. The torn tail need not be cut:
//! its records have an older generation and are never accepted again.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use cohort_base::{Lsn, Pace};
use cohort_vfs::{SharedFs, World};

use crate::control::{self, Control};
use crate::log::Start;
use crate::record::GENERATION_END;
use crate::scan::{Generations, Scanner};
use crate::segment::{self, BLOCK_BYTES, Geometry};
use crate::segments::Segments;
use crate::{Log, LogError, LogOptions, Record};

/// Records between two looks at the clock.
const PROGRESS_RECORDS: u64 = 4096;

/// State in which the log was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// There was none; it was created.
    Created,
    /// It was closed by [`Log::close`].
    Clean,
    /// It was not closed.
    AfterCrash,
}

/// A log while it is read; becomes a [`Log`].
pub struct Recovery {
    world: World,
    options: LogOptions,
    opened: Opened,
    control: Control,
    segments: Arc<Segments>,
    /// Segments below the checkpoint, to be recycled.
    released: Vec<u64>,
    scanner: Scanner,
    /// Upper limit of the end of the records to read.
    limit: u64,
    /// LSN where the log has to end although records follow.
    cut: Option<u64>,
    /// Decided records are cut off: they may be in the archive, or be continued by another server.
    is_decided: bool,
    pace: Pace,
    records: u64,
    at_end: bool,
}

/// Start of a log that is created because there is none.
#[derive(Clone, Debug, Default)]
pub struct NewLog {
    /// The log begins at the first segment border at or after this LSN.
    pub from: Lsn,
    /// Returned by [`Recovery::checkpoint`] until the first [`Log::checkpoint`].
    pub payload: Vec<u8>,
}

impl Recovery {
    /// Opens the log in a directory, or creates it.
    pub fn open(world: &World, dir: &Path, options: LogOptions) -> Result<Recovery, LogError> {
        Recovery::open_or_make(world, dir, options, NewLog::default())
    }

    /// Returns whether the directory holds a log.
    pub fn is_there(world: &World, dir: &Path) -> bool {
        world.fs.exists(&dir.join(control::NAME))
    }

    /// Opens the log in a directory, or creates it as `new` describes.
    pub fn open_or_make(
        world: &World,
        dir: &Path,
        options: LogOptions,
        new: NewLog,
    ) -> Result<Recovery, LogError> {
        options.check();
        let fs = &world.fs;
        let exists = Recovery::is_there(world, dir);
        let mut control = match exists {
            true => {
                fs.sync_dir(dir).map_err(|e| LogError::io(dir, "syncing", e))?;
                Control::open(fs, dir)?
            }
            false => create(world, dir, &options, new)?,
        };
        let geometry = Geometry { segment_bytes: control.state.segment_bytes, salt: control.state.salt };
        let archived = control.state.archived.filter(|_| options.is_archived);
        control.state.archived = match archived {
            Some(mark) => kept_for_archive(fs, dir, geometry, mark, control.state.from)?,
            None => None,
        };
        let state = &control.state;
        let opened = match (exists, state.clean) {
            (false, _) => Opened::Created,
            (true, true) => Opened::Clean,
            (true, false) => Opened::AfterCrash,
        };
        let first = geometry.segment_of(state.archived.map_or(state.from, |mark| mark.min(state.from)));
        let (segments, released) =
            Segments::open(fs.clone(), dir.to_path_buf(), geometry, options.buffered, first)?;
        let segments = Arc::new(segments);
        let generations = Generations { current: state.generation, start: state.generation_start };
        let scanner = Scanner::new(segments.clone(), generations, state.from);
        let ready_end = segments.end().unwrap_or(geometry.start_of(first));
        if ready_end < state.durable {
            let (file, offset) = segments.place_of(ready_end);
            let what = "the segment is missing";
            return Err(LogError::Corrupt { file, offset, what, cure: segment::RESTORE });
        }
        if !state.clean {
            segments.settle_from(geometry.segment_of(state.durable.max(state.from)))?;
        }
        // After a clean stop the end is known; bytes after it do not belong to the log.
        let limit = if state.clean { state.durable } else { ready_end };
        let world = world.clone();
        Ok(Recovery {
            pace: Pace::begin(world.clock.monotonic_ns()),
            records: 0,
            world,
            options,
            opened,
            control,
            segments,
            released,
            scanner,
            limit,
            cut: None,
            is_decided: false,
            at_end: false,
        })
    }

    /// Returns the state in which the log was found.
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// Returns the file and offset of a copy of the control file's contents that was found damaged, or torn
    /// by a crash. The other copy is used, and [`Recovery::finish`] writes both.
    pub fn damaged_copy(&self) -> Option<(&Path, u64)> {
        Some((self.control.path(), self.control.damaged_at?))
    }

    /// Returns the last checkpoint: the LSN where [`Recovery::next`] starts, and the payload passed to
    /// [`Log::checkpoint`] (empty if there was none).
    pub fn checkpoint(&self) -> (Lsn, &[u8]) {
        (Lsn(self.control.state.from), &self.control.state.payload)
    }

    /// Returns the next record in log order. Returns `None` at the end of the log. A torn tail ends the log,
    /// damage is an error.
    #[allow(clippy::should_implement_trait)] // the record borrows from self
    pub fn next(&mut self) -> Result<Option<Record<'_>>, LogError> {
        if self.at_end {
            return Ok(None);
        }
        if let Err(what) = self.scanner.advance(self.limit)? {
            if self.cut == Some(self.scanner.position()) {
                self.at_end = true;
                return Ok(None);
            }
            self.scanner.check_end(self.control.state.durable, what)?;
            self.at_end = true;
            return Ok(None);
        }
        self.records += 1;
        if self.records.is_multiple_of(PROGRESS_RECORDS) {
            self.log_progress();
        }
        Ok(Some(self.scanner.last()))
    }

    /// Logs how much has been read, if that takes long. After a crash the end is only known not to lie after
    /// the limit, so the estimate is an upper bound.
    fn log_progress(&mut self) {
        let from = self.control.state.from;
        let (done, total) = (self.scanner.position() - from, self.limit.saturating_sub(from));
        if let Some(progress) = self.pace.due(self.world.clock.monotonic_ns(), done, total) {
            let mebibytes = |bytes: u64| bytes >> 20;
            log::info!(
                "Recovery: {} of at most {} MiB of log, {progress}",
                mebibytes(done),
                mebibytes(total)
            );
        }
    }

    /// Returns the LSN after the last record that [`Recovery::next`] has returned.
    pub fn read_to(&self) -> Lsn {
        Lsn(self.scanner.position())
    }

    /// Restarts reading from the checkpoint, and ends the log at `end`, the start of a record that
    /// [`Recovery::next`] has returned. [`Recovery::finish`] discards this record and all that follow, and
    /// begins a new timeline.
    pub fn cut_at(&mut self, end: Lsn) {
        self.cut_undecided_at(end);
        self.is_decided = true;
    }

    /// Ends the log like [`Recovery::cut_at`], before records that were never decided: no backup, archive or
    /// replica has them, and the timeline goes on.
    pub fn cut_undecided_at(&mut self, end: Lsn) {
        self.rewind();
        self.limit = end.0;
        self.cut = Some(end.0);
    }

    /// Restarts reading from the checkpoint.
    pub fn rewind(&mut self) {
        let state = &self.control.state;
        let generations = Generations { current: state.generation, start: state.generation_start };
        self.scanner = Scanner::new(self.segments.clone(), generations, state.from);
        self.at_end = false;
    }

    /// Moves a closed log without records, by one update of the control file. It stays closed and empty, gets
    /// this payload, and begins at the first segment border at or after `from` and after its present
    /// position. So an archive has a gap there. Returns the LSN where it begins.
    ///
    /// # Panics
    /// When it holds records, or was not closed.
    pub fn begin_at(mut self, from: Lsn, payload: Vec<u8>) -> Result<Lsn, LogError> {
        assert_eq!(self.opened, Opened::Clean, "a log that is moved was closed");
        assert!(self.next()?.is_none(), "a log that is moved holds no records");
        let from = border_after(self.segments.geometry, from.0.max(self.scanner.position() + 1));
        let updated = self.control.update(|state| {
            (state.from, state.durable, state.generation_start) = (from, from, from);
            state.clean = true;
            state.payload = payload;
            state.archived = None;
        });
        updated.map_err(|e| LogError::io(self.control.path(), "writing", e))?;
        Ok(Lsn(from))
    }

    /// Cuts the torn tail and opens the log for appending. Reads to the end first, if `next` has not returned
    /// `None` yet.
    pub fn finish(mut self) -> Result<Log, LogError> {
        while self.next()?.is_some() {}
        let end = self.scanner.position();
        if self.control.state.is_copy {
            self.segments.fill_holes(self.control.state.from, self.control.state.durable)?;
        }
        let generation = self.control.state.generation + 1;
        assert!(generation < GENERATION_END, "a log can be opened 16 million times");
        let now_s = (self.world.clock.wall_us() / 1_000_000) as u32;
        let (is_cut, is_archived) = (self.is_decided, self.options.is_archived);
        let updated = self.control.update(|state| {
            if state.is_copy || is_cut {
                // The part that is not in the archive yet belongs to both timelines.
                state.begin_timeline(state.archived.map_or(end, |mark| mark.min(end)), now_s);
                state.is_copy = false;
            }
            if is_archived {
                // Nothing from this opening on is missing in the archive. What was cut off may be in it.
                state.archived = Some(state.archived.map_or(end, |mark| mark.min(end)));
            }
            state.generation = generation;
            state.generation_start = end;
            state.durable = end;
            state.clean = false;
        });
        updated.map_err(|e| LogError::io(self.control.path(), "writing", e))?;
        remove_unfinished(&self.world, &self.segments.dir)?;
        let base = end - end % BLOCK_BYTES;
        let mut block = vec![0; (end - base) as usize];
        self.segments.read_at(&mut block, base)?;
        let Recovery { world, options, control, segments, released, .. } = self;
        Ok(Log::start(Start { world, options, control, segments, released, end, block }))
    }
}

/// Returns the first segment border at or after an LSN.
fn border_after(geometry: Geometry, lsn: u64) -> u64 {
    let segment = geometry.segment_of(lsn);
    match geometry.start_of(segment) {
        start if start == lsn => lsn,
        _ => geometry.start_of(segment + 1),
    }
}

/// Returns the mark of the archive if all segments from it to where recovery starts are there.
fn kept_for_archive(
    fs: &SharedFs,
    dir: &Path,
    geometry: Geometry,
    mark: u64,
    from: u64,
) -> Result<Option<u64>, LogError> {
    let names = fs.list(dir).map_err(|e| LogError::io(dir, "listing", e))?;
    let there: BTreeSet<u64> = names.iter().filter_map(|name| segment::parse_name(name)).collect();
    let missing = (geometry.segment_of(mark)..geometry.segment_of(from)).find(|n| !there.contains(n));
    if let Some(segment) = missing {
        let path = segment::path_of(dir, segment);
        log::error!("{} is missing: the archive of the log will have a gap", path.display());
        return Ok(None);
    }
    Ok(Some(mark))
}

/// Creates the control file of a new log; segments are created when space is reserved.
fn create(world: &World, dir: &Path, options: &LogOptions, new: NewLog) -> Result<Control, LogError> {
    let fs = &world.fs;
    fs.create_dir_all(dir).map_err(|e| LogError::io(dir, "creation", e))?;
    if let Some(parent) = dir.parent().filter(|p| fs.exists(p)) {
        fs.sync_dir(parent).map_err(|e| LogError::io(parent, "syncing", e))?;
    }
    let names = fs.list(dir).map_err(|e| LogError::io(dir, "listing", e))?;
    if names.iter().any(|name| segment::parse_name(name).is_some()) {
        return Err(LogError::Corrupt {
            file: dir.join(control::NAME),
            offset: 0,
            what: "the control file is missing, but there are segments",
            cure: "put the file back from where it went, or restore the data directory from a backup or a replica",
        });
    }
    let salt = world.rng.next_u64() as u32;
    let from = border_after(Geometry { segment_bytes: options.segment_bytes, salt }, new.from.0);
    let state = control::State {
        sequence: 0,
        segment_bytes: options.segment_bytes,
        salt,
        generation: 0,
        generation_start: from,
        from,
        durable: from,
        clean: false,
        payload: new.payload,
        is_copy: false,
        archived: None,
        timelines: vec![control::FIRST_TIMELINE],
    };
    Control::create(fs, dir, state)
}

fn remove_unfinished(world: &World, dir: &Path) -> Result<(), LogError> {
    for name in [segment::UNFINISHED, control::UNFINISHED] {
        let path = dir.join(name);
        if world.fs.exists(&path) {
            world.fs.remove(&path).map_err(|e| LogError::io(&path, "removing", e))?;
        }
    }
    Ok(())
}
