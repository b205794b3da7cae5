//! The durable binlog stream from a position on: runs of complete events, from memory while the reader keeps
//! up, otherwise from the files.
//!
//! # States
//!
//! A feed stands between two events. [`Feed::next`] moves it past one run, or to the start of the next file.
//! The bytes of the run stay readable until the next move.
//!
//! # Invariants
//!
//! - Runs follow each other without gap or repetition, whether from memory or from files: the position alone
//!   determines what comes next.
//! - From a file, the feed reads only what the binlog file writer has written there, so it never returns
//!   events before they are durable (I3).

use std::sync::Arc;
use std::time::Duration;

use cohort_base::BinlogPos;
use cohort_binlog::event::{EVENT_LEN_MAX, HEADER_LEN, MAGIC};
use cohort_binlog::{BinlogError, BinlogFileWriter, TailPiece, TailRead};
use cohort_vfs::{OpenMode, SharedFile};

/// Size of file reads; a larger event is read in one piece.
const READ_BYTES: usize = 256 << 10;
/// Pause if the files lag and writing them does not help (disk full).
const STUCK_PAUSE: Duration = Duration::from_millis(50);

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStep {
    /// [`Feed::run`] holds complete events, the first of which is at this position.
    Events(BinlogPos),
    /// The stream continues in this file; its first event comes next.
    NewFile(u32),
    /// No further event is available yet.
    Nothing,
}

/// Complete events taken out of a feed.
pub(crate) enum Run {
    None,
    Memory(TailPiece),
    /// A buffer, and the length of the events at its start.
    File(Vec<u8>, usize),
}

impl Run {
    /// Returns the events.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Run::None => &[],
            Run::Memory(piece) => piece.bytes(),
            Run::File(buf, len) => &buf[..*len],
        }
    }
}

/// A reader of the stream.
pub struct Feed {
    files: Arc<BinlogFileWriter>,
    pos: BinlogPos,
    run: Run,
    buf: Vec<u8>,
    open: Option<(u32, SharedFile)>,
}

impl Feed {
    /// Creates a feed whose next event is at `pos`. The caller must pin that file against purge.
    pub fn new(files: Arc<BinlogFileWriter>, pos: BinlogPos) -> Feed {
        let offset = pos.offset.max(MAGIC.len() as u64);
        Feed { files, pos: BinlogPos { file: pos.file, offset }, run: Run::None, buf: Vec::new(), open: None }
    }

    /// Returns the position of the next event.
    pub fn position(&self) -> BinlogPos {
        self.pos
    }

    /// Returns the events of the last step.
    pub fn run(&self) -> &[u8] {
        self.run.bytes()
    }

    /// Takes the run out of the feed, for a caller that uses the feed meanwhile. [`Feed::give_back`] returns
    /// the buffer.
    pub(crate) fn take_run(&mut self) -> Run {
        std::mem::replace(&mut self.run, Run::None)
    }

    /// Takes the buffer of a run back for reuse.
    pub(crate) fn give_back(&mut self, run: Run) {
        if let Run::File(mut buf, _) = run {
            // The memory of one large event must not be kept forever.
            buf.truncate(READ_BYTES);
            buf.shrink_to(READ_BYTES);
            self.buf = buf;
        }
    }

    /// Advances. Waits at most `timeout` if nothing is available yet.
    pub fn next(&mut self, timeout: Duration) -> Result<FeedStep, BinlogError> {
        let before = self.take_run();
        self.give_back(before);
        match self.files.tail().read(self.pos, timeout) {
            TailRead::Nothing => {
                // A reader that keeps up needs no open file and little memory.
                self.open = None;
                Ok(FeedStep::Nothing)
            }
            TailRead::Events(piece) if piece.pos.file != self.pos.file => {
                self.pos = piece.pos;
                Ok(FeedStep::NewFile(piece.pos.file))
            }
            TailRead::Events(piece) => {
                let at = self.pos;
                self.pos = piece.end();
                self.run = Run::Memory(piece);
                self.buf = Vec::new();
                Ok(FeedStep::Events(at))
            }
            TailRead::Files { .. } => self.next_of_files(),
        }
    }

    fn next_of_files(&mut self) -> Result<FeedStep, BinlogError> {
        for is_written_by_us in [false, true] {
            if is_written_by_us {
                // The writer is a few milliseconds late; this thread does its work.
                match self.files.step() {
                    Ok(()) => {}
                    // The bytes are written once there is disk space.
                    Err(BinlogError::NoSpace { .. }) => std::thread::sleep(STUCK_PAUSE),
                    Err(error) => return Err(error),
                }
            }
            let Some(written) = self.files.written() else { continue };
            if let Some(step) = self.read_file(written)? {
                return Ok(step);
            }
            if self.pos.file < written.file {
                return self.change_file();
            }
        }
        Ok(FeedStep::Nothing)
    }

    /// Moves to the next file of the index. The current file is complete.
    fn change_file(&mut self) -> Result<FeedStep, BinlogError> {
        let file = self.pos.file;
        let next = self.files.with_files(|files| {
            let next = files.numbers().iter().copied().find(|&number| number > file);
            next.ok_or_else(|| BinlogError::UnknownFile { name: files.name().file(file + 1) })
        })?;
        self.pos = BinlogPos { file: next, offset: MAGIC.len() as u64 };
        self.open = None;
        Ok(FeedStep::NewFile(next))
    }

    /// Reads a run of the current file. Returns `None` if the file has no further events yet.
    fn read_file(&mut self, written: BinlogPos) -> Result<Option<FeedStep>, BinlogError> {
        if self.pos.file > written.file {
            return Ok(None);
        }
        let file = self.open_file()?;
        let io = |source| BinlogError::Io { action: "read", path: Default::default(), source };
        let limit = match self.pos.file == written.file {
            true => written.offset,
            false => file.len().map_err(io)?,
        };
        if self.pos.offset >= limit {
            return Ok(None);
        }
        let mut wanted = READ_BYTES;
        loop {
            let len = (limit - self.pos.offset).min(wanted as u64) as usize;
            self.buf.resize(len, 0);
            let got = file.read_at(&mut self.buf, self.pos.offset).map_err(io)?;
            let whole = whole_events(&self.buf[..got]).map_err(|what| self.bogus(what))?;
            if whole.len > 0 {
                let at = self.pos;
                self.pos.offset += whole.len as u64;
                self.run = Run::File(std::mem::take(&mut self.buf), whole.len);
                return Ok(Some(FeedStep::Events(at)));
            }
            if got < len || whole.next as u64 > limit - self.pos.offset {
                return Err(self.bogus("the file ends inside an event"));
            }
            wanted = whole.next.max(HEADER_LEN);
        }
    }

    fn open_file(&mut self) -> Result<SharedFile, BinlogError> {
        let number = self.pos.file;
        if let Some((open, file)) = &self.open
            && *open == number
        {
            return Ok(file.clone());
        }
        let file = self.files.with_files(|files| {
            let path = files.name().path(number);
            let opened = files.fs().open_for_client(&path, OpenMode::Read);
            opened.map_err(|source| BinlogError::Io { action: "open", path, source })
        })?;
        self.open = Some((number, file.clone()));
        Ok(file)
    }

    fn bogus(&self, what: &str) -> BinlogError {
        let path = self.files.name().path(self.pos.file);
        BinlogError::Corrupt { path, offset: self.pos.offset, what: what.to_owned() }
    }
}

/// The part of a buffer that consists of complete events.
struct Whole {
    len: usize,
    /// Length of the event after them, as far as it is known.
    next: usize,
}

fn whole_events(bytes: &[u8]) -> Result<Whole, &'static str> {
    let mut at = 0;
    loop {
        let Some(next) = event_len(&bytes[at..]) else { return Ok(Whole { len: at, next: HEADER_LEN }) };
        if !(HEADER_LEN..=EVENT_LEN_MAX as usize).contains(&next) {
            return Err("the length of an event is impossible");
        }
        if next > bytes.len() - at {
            return Ok(Whole { len: at, next });
        }
        at += next;
    }
}

/// Returns the length of the event that starts here, if its header is complete.
pub(crate) fn event_len(bytes: &[u8]) -> Option<usize> {
    let field = bytes.get(..HEADER_LEN)?.get(9..13)?;
    Some(u32::from_le_bytes(field.try_into().expect("four bytes")) as usize)
}

/// Returns the events of a run.
pub(crate) fn split_run(run: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = run;
    std::iter::from_fn(move || {
        let (event, tail) = rest.split_at_checked(event_len(rest)?.max(HEADER_LEN))?;
        rest = tail;
        Some(event)
    })
}
