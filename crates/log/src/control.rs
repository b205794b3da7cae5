//! The control file `log.control`, which says where recovery starts.
//!
//! It holds two copies of the same contents, at offset 0 and at [`COPY_BYTES`], written and synced one after
//! the other. If a crash or a flipped bit damages one copy, the other is whole. So the newest whole copy is
//! never older than the last completed update, and the next update repairs a damaged copy.
//!
//! ```text
//!  0  u32  CRC-32C of the bytes from 4 on
//!  4  [8]  "COHORTLC"
//! 12  u32  format version, 1 or 2
//! 16  u64  sequence number of this update
//! 24  u64  segment_bytes
//! 32  u32  salt of the log
//! 36  u32  generation: number of this start of the log
//! 40  u64  LSN where this generation started to write
//! 48  u64  from: LSN where recovery starts; everything below is released
//! 56  u64  durable: an LSN up to which the log is known to be durable
//! 64  u64  1 if the log was closed and `durable` is its end, else 0
//! 72  u64  n
//! 80  [n]  the coordinator's payload
//! version 2:
//! 80+n u32  1 if the log is that of a copy that was not opened yet, else 0
//! 84+n u64  LSN from which the archive needs the log, all bits set for none
//! 92+n u32  number of timelines, each: u32 number, u64 LSN where it begins
//! ```
//! The checksum covers all of it. Version 1 is written while nothing needs version 2, so that older servers
//! can open the log.

use std::io;
use std::path::{Path, PathBuf};

use cohort_base::{Lsn, Reader, Truncated, Write as _};
use cohort_vfs::{OpenMode, SharedFile, SharedFs};

use crate::LogError;
use crate::segment::{BLOCK_BYTES, RESTORE};

const MAGIC: &[u8; 8] = b"COHORTLC";
const VERSION: u32 = 1;
/// Version with timelines and the mark of the archive.
const ARCHIVE_VERSION: u32 = 2;
const COPY_BYTES: u64 = 512 << 10;
const HEADER_BYTES: u64 = 80;
/// Maximum number of timelines in the history; the oldest are forgotten.
const TIMELINES_MAX: usize = 64;
/// Maximum size of the part that only version 2 has.
const EXTENSION_BYTES_MAX: u64 = 16 + 12 * TIMELINES_MAX as u64;
/// Maximum size of a checkpoint's payload.
pub(crate) const PAYLOAD_BYTES_MAX: u64 = COPY_BYTES - HEADER_BYTES - EXTENSION_BYTES_MAX;
/// Name of the file, and its temporary name during creation.
pub(crate) const NAME: &str = "log.control";
pub(crate) const UNFINISHED: &str = "log.control.new";

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub sequence: u64,
    pub segment_bytes: u64,
    pub salt: u32,
    pub generation: u32,
    pub generation_start: u64,
    pub from: u64,
    pub durable: u64,
    pub clean: bool,
    pub payload: Vec<u8>,
    /// The log is that of a backup or restore that no server has opened.
    pub is_copy: bool,
    /// LSN from which the archive needs the log.
    pub archived: Option<u64>,
    /// The timeline of the log and its ancestors, oldest first, each with the LSN where it begins.
    pub timelines: Vec<Timeline>,
}

/// A timeline: the LSNs of a log that two servers continue in different ways belong to different timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    pub number: u32,
    /// LSN where it begins. Before it, the log is that of the parent.
    pub from: Lsn,
}

/// The timeline of a new log.
pub(crate) const FIRST_TIMELINE: Timeline = Timeline { number: 1, from: Lsn(0) };

impl State {
    /// Begins a timeline at an LSN. `now_s` becomes its number, unless the clock went back.
    pub fn begin_timeline(&mut self, from: u64, now_s: u32) {
        let last = self.timelines.last().map_or(0, |last| last.number);
        self.timelines.push(Timeline { number: now_s.max(last.saturating_add(1)), from: Lsn(from) });
        let forgotten = self.timelines.len().saturating_sub(TIMELINES_MAX);
        self.timelines.drain(..forgotten);
    }

    fn needs_archive_version(&self) -> bool {
        self.is_copy || self.archived.is_some() || self.timelines != [FIRST_TIMELINE]
    }

    fn encode(&self) -> Vec<u8> {
        let is_new = self.needs_archive_version();
        let mut out = Vec::with_capacity(HEADER_BYTES as usize + self.payload.len());
        out.put_u32(0);
        out.extend_from_slice(MAGIC);
        out.put_u32(if is_new { ARCHIVE_VERSION } else { VERSION });
        out.put_u64(self.sequence);
        out.put_u64(self.segment_bytes);
        out.put_u32(self.salt);
        out.put_u32(self.generation);
        out.put_u64(self.generation_start);
        out.put_u64(self.from);
        out.put_u64(self.durable);
        out.put_u64(u64::from(self.clean));
        out.put_u64(self.payload.len() as u64);
        out.extend_from_slice(&self.payload);
        if is_new {
            out.put_u32(u32::from(self.is_copy));
            out.put_u64(self.archived.unwrap_or(u64::MAX));
            out.put_u32(self.timelines.len() as u32);
            for timeline in &self.timelines {
                out.put_u32(timeline.number);
                out.put_u64(timeline.from.0);
            }
        }
        let crc = crc32c::crc32c(&out[4..]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
        out.resize(out.len().next_multiple_of(BLOCK_BYTES as usize), 0);
        out
    }

    /// Returns the whole file with these contents.
    pub fn file(&self) -> Vec<u8> {
        let mut bytes = self.encode();
        bytes.resize(COPY_BYTES as usize, 0);
        bytes.extend_from_within(..);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Copy, Truncated> {
        let mut r = Reader::new(bytes);
        let crc = r.u32()?;
        if r.array()? != *MAGIC {
            return Ok(Copy::Damaged);
        }
        let version = r.u32()?;
        if !(VERSION..=ARCHIVE_VERSION).contains(&version) {
            return Ok(Copy::Version(version));
        }
        let mut state = State {
            sequence: r.u64()?,
            segment_bytes: r.u64()?,
            salt: r.u32()?,
            generation: r.u32()?,
            generation_start: r.u64()?,
            from: r.u64()?,
            durable: r.u64()?,
            clean: r.u64()? != 0,
            payload: Vec::new(),
            is_copy: false,
            archived: None,
            timelines: vec![FIRST_TIMELINE],
        };
        let payload_bytes = r.u64()?;
        if payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(Truncated);
        }
        state.payload = r.bytes(payload_bytes as usize)?.to_vec();
        if version == ARCHIVE_VERSION {
            state.is_copy = r.u32()? != 0;
            state.archived = Some(r.u64()?).filter(|lsn| *lsn < u64::MAX);
            let count = r.u32()? as usize;
            if !(1..=TIMELINES_MAX).contains(&count) {
                return Err(Truncated);
            }
            state.timelines.clear();
            for _ in 0..count {
                state.timelines.push(Timeline { number: r.u32()?, from: Lsn(r.u64()?) });
            }
        }
        let end = bytes.len() - r.rest().len();
        Ok(if crc32c::crc32c(&bytes[4..end]) == crc { Copy::Whole(state) } else { Copy::Damaged })
    }
}

/// State of one of the two copies.
enum Copy {
    Whole(State),
    Version(u32),
    Damaged,
}

/// The open file.
pub(crate) struct Control {
    file: SharedFile,
    path: PathBuf,
    pub state: State,
    /// Offset of a copy that was found torn or damaged.
    pub damaged_at: Option<u64>,
}

impl Control {
    /// Creates the file. At return it is durable under its name.
    pub fn create(fs: &SharedFs, dir: &Path, state: State) -> Result<Control, LogError> {
        let unfinished = dir.join(UNFINISHED);
        let path = dir.join(NAME);
        let err = |op| {
            let path = path.clone();
            move |e: io::Error| LogError::io(&path, op, e)
        };
        let file = fs.open(&unfinished, OpenMode::CreateOrOpen).map_err(err("creation"))?;
        file.write_at(&vec![0; 2 * COPY_BYTES as usize], 0).map_err(err("writing"))?;
        let mut control = Control { file, path: path.clone(), state, damaged_at: None };
        control.write().map_err(err("writing"))?;
        fs.rename(&unfinished, &path).map_err(err("renaming"))?;
        fs.sync_dir(dir).map_err(err("syncing the directory"))?;
        control.lock()?;
        Ok(control)
    }

    /// Opens the file and reads the newest whole copy.
    pub fn open(fs: &SharedFs, dir: &Path) -> Result<Control, LogError> {
        let path = dir.join(NAME);
        let file = fs.open(&path, OpenMode::Write).map_err(|e| LogError::io(&path, "opening", e))?;
        let mut copies = Vec::new();
        for offset in [0, COPY_BYTES] {
            let mut bytes = vec![0; COPY_BYTES as usize];
            file.read_at(&mut bytes, offset).map_err(|e| LogError::io(&path, "reading", e))?;
            copies.push(State::decode(&bytes).unwrap_or(Copy::Damaged));
        }
        let whole = copies.iter().filter_map(|c| if let Copy::Whole(s) = c { Some(s) } else { None });
        let state = match (whole.max_by_key(|s| s.sequence), &copies[..]) {
            (Some(state), _) => state.clone(),
            (None, [Copy::Version(a), Copy::Version(b)]) if a == b => {
                return Err(LogError::Version { file: path, found: *a, known: ARCHIVE_VERSION });
            }
            (None, _) => {
                let what = "both copies of the control file are damaged";
                return Err(LogError::Corrupt { file: path, offset: 0, what, cure: RESTORE });
            }
        };
        let damaged_at = match copies[..] {
            [Copy::Whole(_), Copy::Whole(_)] => None,
            [Copy::Whole(_), _] => Some(COPY_BYTES),
            _ => Some(0),
        };
        let control = Control { file, path, state, damaged_at };
        control.lock()?;
        Ok(control)
    }

    fn lock(&self) -> Result<(), LogError> {
        match self.file.try_lock() {
            Ok(true) => Ok(()),
            Ok(false) => Err(LogError::InUse { file: self.path.clone() }),
            Err(e) => Err(LogError::io(&self.path, "locking", e)),
        }
    }

    /// Changes the contents durably.
    pub fn update(&mut self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        change(&mut self.state);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.state.sequence += 1;
        let bytes = self.state.encode();
        for offset in [0, COPY_BYTES] {
            self.file.write_at(&bytes, offset)?;
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Returns the path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohort_vfs::MemFs;

    use super::*;

    fn state() -> State {
        State {
            sequence: 0,
            segment_bytes: 16384,
            salt: 9,
            generation: 0,
            generation_start: 0,
            from: 0,
            durable: 0,
            clean: false,
            payload: b"payload".to_vec(),
            is_copy: false,
            archived: None,
            timelines: vec![FIRST_TIMELINE],
        }
    }

    #[test]
    fn every_bit_that_means_something_is_covered() {
        let mut archived = State { is_copy: true, archived: Some(40), ..state() };
        archived.begin_timeline(48, 1_800_000_000);
        archived.begin_timeline(56, 7);
        let numbers: Vec<u32> = archived.timelines.iter().map(|timeline| timeline.number).collect();
        assert_eq!(numbers, [1, 1_800_000_000, 1_800_000_001], "a clock that goes back");
        for (state, used) in [(state(), HEADER_BYTES + 7), (archived, HEADER_BYTES + 7 + 16 + 3 * 12)] {
            let mut bytes = state.encode();
            for bit in 0..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                let is_used = (bit as u64) < 8 * used;
                match State::decode(&bytes) {
                    Ok(Copy::Whole(found)) => assert!(!is_used && found == state, "bit {bit}"),
                    _ => assert!(is_used, "bit {bit}"),
                }
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn a_history_forgets_its_oldest_timelines() {
        let mut long = state();
        (0..100).for_each(|n| long.begin_timeline(n, n as u32 + 10));
        assert_eq!(long.timelines.len(), TIMELINES_MAX);
        assert_eq!(long.timelines.last().map(|last| last.number), Some(109));
        assert!(matches!(State::decode(&long.encode()), Ok(Copy::Whole(found)) if found == long));
    }

    #[test]
    fn any_flipped_bit_in_one_copy_is_mended_by_the_other() {
        let fs: SharedFs = Arc::new(MemFs::new());
        let dir = Path::new("/");
        drop(Control::create(&fs, dir, state()).expect("create"));
        let file = fs.open(&dir.join(NAME), OpenMode::Write).expect("open");
        for at in (0..HEADER_BYTES + 7).flat_map(|i| [i, COPY_BYTES + i]) {
            let mut byte = [0];
            file.read_at(&mut byte, at).expect("read");
            file.write_at(&[byte[0] ^ 4], at).expect("flip");
            let mut control = Control::open(&fs, dir).expect("the other copy is whole");
            assert_eq!(control.damaged_at, Some(at - at % COPY_BYTES));
            assert_eq!(control.state, State { sequence: control.state.sequence, ..state() });
            control.update(|_| {}).expect("written");
            drop(control);
            assert_eq!(Control::open(&fs, dir).expect("both are whole").damaged_at, None);
        }
        for at in [20, COPY_BYTES + 20] {
            file.write_at(&[0xff], at).expect("flip");
        }
        assert!(matches!(Control::open(&fs, dir), Err(LogError::Corrupt { .. })));
    }

    #[test]
    fn one_process_at_a_time() {
        let fs: SharedFs = Arc::new(MemFs::new());
        let control = Control::create(&fs, Path::new("/"), state()).expect("create");
        assert!(matches!(Control::open(&fs, Path::new("/")), Err(LogError::InUse { .. })));
        drop(control);
        assert!(Control::open(&fs, Path::new("/")).is_ok());
    }
}
