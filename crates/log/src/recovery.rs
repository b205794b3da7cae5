//! Opening a log and reading it to its end.
//!
//! [`Recovery::open`] finds the control file and the segments, [`Recovery::next`] reads records from the last
//! checkpoint on, [`Recovery::finish`] decides where the log ends and turns into a [`Log`]. Until `finish`
//! nothing that recovery may need is changed, so that a refusal leaves everything as it was.
//!
//! `open` settles names and segments before anything is read: a process that was killed may have left bytes
//! and names that the disk does not have, and what is read counts as hardened from now on. `finish` writes
//! the new generation to the control file. Only then it may append: the torn tail needs no cutting, since its
//! records are of an older generation and never believed again.

use std::path::Path;
use std::sync::Arc;

use cohort_base::Lsn;
use cohort_vfs::World;

use crate::control::{self, Control};
use crate::log::Start;
use crate::record::GENERATION_END;
use crate::scan::{Generations, Scanner};
use crate::segment::{self, BLOCK_BYTES, Geometry};
use crate::segments::Segments;
use crate::{Log, LogError, LogOptions, Record};

/// In which state the log was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// There was none; it has been made.
    Created,
    /// It was closed by [`Log::close`].
    Clean,
    /// It was not closed.
    AfterCrash,
}

/// The log while it is read; becomes a [`Log`].
pub struct Recovery {
    world: World,
    options: LogOptions,
    opened: Opened,
    control: Control,
    segments: Arc<Segments>,
    /// Segments below the checkpoint, to be recycled.
    released: Vec<u64>,
    scanner: Scanner,
    /// Where the records that may be read end at the latest.
    limit: u64,
    /// The log is to end here although records follow.
    cut: Option<u64>,
    at_end: bool,
}

/// How a log begins that is made because there is none.
#[derive(Clone, Debug, Default)]
pub struct NewLog {
    /// The log begins at the first segment border at or behind this.
    pub from: Lsn,
    /// What [`Recovery::checkpoint`] answers until the first [`Log::checkpoint`].
    pub payload: Vec<u8>,
}

impl Recovery {
    /// Opens the log in a directory, or makes it.
    pub fn open(world: &World, dir: &Path, options: LogOptions) -> Result<Recovery, LogError> {
        Recovery::open_or_make(world, dir, options, NewLog::default())
    }

    /// Whether the directory holds a log.
    pub fn is_there(world: &World, dir: &Path) -> bool {
        world.fs.exists(&dir.join(control::NAME))
    }

    /// The same, and how the log is to begin if it has to be made.
    pub fn open_or_make(
        world: &World,
        dir: &Path,
        options: LogOptions,
        new: NewLog,
    ) -> Result<Recovery, LogError> {
        options.check();
        let fs = &world.fs;
        let exists = Recovery::is_there(world, dir);
        let control = match exists {
            true => {
                fs.sync_dir(dir).map_err(|e| LogError::io(dir, "syncing", e))?;
                Control::open(fs, dir)?
            }
            false => create(world, dir, &options, new)?,
        };
        let state = &control.state;
        let opened = match (exists, state.clean) {
            (false, _) => Opened::Created,
            (true, true) => Opened::Clean,
            (true, false) => Opened::AfterCrash,
        };
        let geometry = Geometry { segment_bytes: state.segment_bytes, salt: state.salt };
        let first = geometry.segment_of(state.from);
        let (segments, released) =
            Segments::open(fs.clone(), dir.to_path_buf(), geometry, options.buffered, first)?;
        let segments = Arc::new(segments);
        let generations = Generations { current: state.generation, start: state.generation_start };
        let scanner = Scanner::new(segments.clone(), generations, state.from);
        let ready_end = segments.end().unwrap_or(geometry.start_of(first));
        if ready_end < state.hardened {
            let (file, offset) = segments.place_of(ready_end);
            let what = "the segment is missing";
            return Err(LogError::Corrupt { file, offset, what, cure: segment::RESTORE });
        }
        if !state.clean {
            segments.settle_from(geometry.segment_of(state.hardened.max(state.from)))?;
        }
        // After a clean stop the end is known; what follows is none of the log's.
        let limit = if state.clean { state.hardened } else { ready_end };
        let world = world.clone();
        Ok(Recovery {
            world,
            options,
            opened,
            control,
            segments,
            released,
            scanner,
            limit,
            cut: None,
            at_end: false,
        })
    }

    /// In which state the log was found.
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// A copy of what the control file holds that was found damaged, or torn by a crash: the file and where
    /// the copy starts. The other copy is used, and [`Recovery::finish`] writes both.
    pub fn damaged_copy(&self) -> Option<(&Path, u64)> {
        Some((self.control.path(), self.control.damaged_at?))
    }

    /// The last checkpoint: where [`Recovery::next`] starts, and the payload given to [`Log::checkpoint`]
    /// (empty if there was none).
    pub fn checkpoint(&self) -> (Lsn, &[u8]) {
        (Lsn(self.control.state.from), &self.control.state.payload)
    }

    /// The next record in log order; none at the end of the log. A torn tail ends the log, damage is an
    /// error.
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
            self.scanner.judge(self.control.state.hardened, what)?;
            self.at_end = true;
            return Ok(None);
        }
        Ok(Some(self.scanner.last()))
    }

    /// Behind the last record that [`Recovery::next`] has shown.
    pub fn read_to(&self) -> Lsn {
        Lsn(self.scanner.position())
    }

    /// Reads again from the checkpoint, and ends the log at `end`, the start of a record that
    /// [`Recovery::next`] has shown: it and all that follows are given up by [`Recovery::finish`].
    pub fn cut_at(&mut self, end: Lsn) {
        self.rewind();
        self.limit = end.0;
        self.cut = Some(end.0);
    }

    /// Reads again from the checkpoint.
    pub fn rewind(&mut self) {
        let state = &self.control.state;
        let generations = Generations { current: state.generation, start: state.generation_start };
        self.scanner = Scanner::new(self.segments.clone(), generations, state.from);
        self.at_end = false;
    }

    /// Leaves the log closed, empty, and beginning at the first segment border at or behind `from`, with this
    /// payload; one update of the control file. The log was closed and holds nothing behind its checkpoint.
    ///
    /// # Panics
    /// When it holds records.
    pub fn begin_at(mut self, from: Lsn, payload: Vec<u8>) -> Result<Lsn, LogError> {
        assert_eq!(self.opened, Opened::Clean, "a log that is moved was closed");
        assert!(self.next()?.is_none(), "a log that is moved holds no records");
        let (first, geometry) = (from.0.max(self.scanner.position()), self.segments.geometry);
        let from = match first == self.scanner.position() {
            true => first,
            false => border_behind(geometry, first),
        };
        let updated = self.control.update(|state| {
            (state.from, state.hardened, state.generation_start) = (from, from, from);
            state.clean = true;
            state.payload = payload;
        });
        updated.map_err(|e| LogError::io(self.control.path(), "writing", e))?;
        Ok(Lsn(from))
    }

    /// Cuts the torn tail and opens the log for appending. Reads to the end first if `next` was not called
    /// until it said none.
    pub fn finish(mut self) -> Result<Log, LogError> {
        while self.next()?.is_some() {}
        let end = self.scanner.position();
        let generation = self.control.state.generation + 1;
        assert!(generation < GENERATION_END, "a log can be opened 16 million times");
        let updated = self.control.update(|state| {
            state.generation = generation;
            state.generation_start = end;
            state.hardened = end;
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

/// The first segment border at or behind an LSN.
fn border_behind(geometry: Geometry, lsn: u64) -> u64 {
    let segment = geometry.segment_of(lsn);
    match geometry.start_of(segment) {
        start if start == lsn => lsn,
        _ => geometry.start_of(segment + 1),
    }
}

/// Makes the control file of a new log; its segments come when room is reserved.
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
    let from = border_behind(Geometry { segment_bytes: options.segment_bytes, salt }, new.from.0);
    let state = control::State {
        sequence: 0,
        segment_bytes: options.segment_bytes,
        salt,
        generation: 0,
        generation_start: from,
        from,
        hardened: from,
        clean: false,
        payload: new.payload,
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
