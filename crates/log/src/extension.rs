//! Appending ranges of an archive to the log of a copy, before its first opening.
//!
//! A range has the bytes of the stream as the archived server wrote them, so its records have their LSNs and
//! checksums. They may be of several generations. [`Extension::finish`] makes the copy's generation one that
//! is newer than all of them, so that the whole log is accepted as written by earlier ones.
//!
//! # On failure
//! Until `finish` the control file names the former end. The segments after it have been written, so after an
//! error the copy has to be restored again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::Lsn;
use cohort_vfs::{OpenMode, SharedFile, World};

use crate::control::{Control, Timeline};
use crate::record::{HEADER_BYTES, Header};
use crate::segment::{self, Geometry, Way};
use crate::{LogError, Record};

/// The closed log of a copy, to be extended.
pub struct Extension {
    world: World,
    dir: PathBuf,
    geometry: Geometry,
    control: Control,
    end: u64,
    /// Newest generation of the records.
    generation: u32,
    /// The segment that was written last.
    open: Option<(u64, SharedFile)>,
}

impl Extension {
    /// Opens the log. Returns `None` if it is not that of a copy, or a server has opened it.
    pub fn open(world: &World, dir: &Path) -> Result<Option<Extension>, LogError> {
        let control = Control::open(&world.fs, dir)?;
        let state = &control.state;
        if !state.is_copy || !state.clean {
            return Ok(None);
        }
        let geometry = Geometry { segment_bytes: state.segment_bytes, salt: state.salt };
        let (end, generation) = (state.durable, state.generation);
        let (world, dir) = (world.clone(), dir.to_path_buf());
        Ok(Some(Extension { world, dir, geometry, control, end, generation, open: None }))
    }

    /// Returns the end of the log.
    pub fn end(&self) -> Lsn {
        Lsn(self.end)
    }

    /// Returns the number that the archived server's log has, too.
    pub fn identity(&self) -> u32 {
        self.geometry.salt
    }

    /// Returns the timeline of the copy and its ancestors, oldest first.
    pub fn timelines(&self) -> &[Timeline] {
        &self.control.state.timelines
    }

    /// Decodes the record that begins with the first of these bytes, at this LSN. Returns `None` if there is
    /// no whole record of this log.
    pub fn record<'b>(&self, lsn: Lsn, bytes: &'b [u8]) -> Option<Record<'b>> {
        let header = Header::decode(bytes, self.geometry.salt, lsn.0)?;
        let body = bytes.get(HEADER_BYTES as usize..header.record_bytes() as usize)?;
        header.matches(self.geometry.salt, body).then(|| Record {
            lsn,
            end: Lsn(lsn.0 + header.record_bytes()),
            kind: header.kind,
            payload: &body[..header.payload_bytes as usize],
        })
    }

    /// Reads bytes of the copy's own log at an LSN, where its segments have them. Bytes before its begin may
    /// be zeros. Returns how many were read.
    pub fn read_at(&self, buf: &mut [u8], lsn: Lsn) -> Result<usize, LogError> {
        let mut done = 0;
        while done < buf.len() {
            let at = lsn.0 + done as u64;
            let number = self.geometry.segment_of(at);
            let path = segment::path_of(&self.dir, number);
            let failed = |e| LogError::io(&path, "reading", e);
            if !self.world.fs.exists(&path) {
                break;
            }
            let left = (self.geometry.start_of(number + 1) - at).min((buf.len() - done) as u64) as usize;
            let file = self.world.fs.open(&path, OpenMode::Read).map_err(failed)?;
            let part = &mut buf[done..done + left];
            let got = file.read_at(part, self.geometry.offset_of(at)).map_err(failed)?;
            done += got;
            if got < left {
                break;
            }
        }
        Ok(done)
    }

    /// Appends whole records, each of which [`Extension::record`] has returned.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let mut at = 0;
        while at < bytes.len() {
            let header = Header::decode(&bytes[at..], self.geometry.salt, self.end + at as u64);
            let header = header.expect("decoded before");
            self.generation = self.generation.max(header.generation);
            at += header.record_bytes() as usize;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let number = self.geometry.segment_of(self.end);
            let here = (self.geometry.start_of(number + 1) - self.end).min(rest.len() as u64) as usize;
            let (now, later) = rest.split_at(here);
            let path = segment::path_of(&self.dir, number);
            let failed = |e| LogError::io(&path, "writing", e);
            let file = self.file(number).map_err(failed)?;
            file.write_at(now, self.geometry.offset_of(self.end)).map_err(failed)?;
            (self.end, rest) = (self.end + here as u64, later);
        }
        Ok(())
    }

    /// Returns the file of a segment, which is created if there is none. The one before is synced.
    fn file(&mut self, number: u64) -> std::io::Result<SharedFile> {
        if let Some((open, file)) = &self.open {
            if *open == number {
                return Ok(Arc::clone(file));
            }
            file.sync_data()?;
        }
        let (fs, path) = (&self.world.fs, segment::path_of(&self.dir, number));
        let file = match fs.exists(&path) {
            true => fs.open(&path, OpenMode::Write)?,
            false => segment::create(fs, Way::Buffered, &self.dir, self.geometry, number)?,
        };
        self.open = Some((number, Arc::clone(&file)));
        Ok(file)
    }

    /// Returns the last checkpoint's payload.
    pub fn payload(&self) -> &[u8] {
        &self.control.state.payload
    }

    /// Makes everything durable that was appended, and then the new end, with this payload.
    pub fn finish(mut self, payload: Vec<u8>) -> Result<(), LogError> {
        if let Some((number, file)) = self.open.take() {
            let synced = file.sync_data();
            synced.map_err(|e| LogError::io(&segment::path_of(&self.dir, number), "syncing", e))?;
        }
        let (end, generation) = (self.end, self.generation + 1);
        let updated = self.control.update(|state| {
            state.durable = end;
            state.payload = payload;
            (state.generation, state.generation_start) = (generation, end);
        });
        updated.map_err(|e| LogError::io(self.control.path(), "writing", e))
    }
}
