//! The last few megabytes of the durable stream in memory, for readers that follow it.
//!
//! # Concepts
//!
//! - A *piece* is a run of complete events at one place of one file. It shares the bytes of the batch that
//!   the [`crate::BinlogFileWriter`] writes to the files; they are never copied, regardless of the number of
//!   readers.
//! - The body of a spilled transaction is a piece without bytes: readers read it from the file.
//! - A reader passes the position that it has reached. It gets the piece that continues there, or a position
//!   up to which it must read the files before it continues here. So it never misses a byte or sees one
//!   twice.
//!
//! # Invariants
//!
//! - Pieces are contiguous, also across file changes; all of them are durable (I3).
//! - At most `bytes_max` bytes are kept, but always the newest piece.
//!
//! # Locks
//!
//! One leaf lock, held for a search among the pieces.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use cohort_base::BinlogPos;
use parking_lot::{Condvar, Mutex};

use crate::Chunk;
use crate::chunk::Content;
use crate::event::MAGIC;

/// Durable chunks of one flush group. `bytes` are those of the inline chunks.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Places of the chunks.
    pub chunks: Vec<Chunk>,
    /// Bytes of the inline chunks.
    pub bytes: Vec<u8>,
}

/// Continuation of the stream at a position.
#[derive(Clone, Debug)]
pub enum TailRead {
    /// Complete events that start at the requested position, or at the start of the next file if the
    /// requested one ends there.
    Events(TailPiece),
    /// The next bytes are in the files, or will be soon; the tail continues after `until`.
    Files {
        /// End of the bytes to read from the files.
        until: BinlogPos,
    },
    /// No bytes arrived before the timeout, or [`StreamTail::interrupt`] was called.
    Nothing,
}

/// A run of complete events.
#[derive(Clone, Debug)]
pub struct TailPiece {
    /// Position of the first byte.
    pub pos: BinlogPos,
    batch: Arc<Batch>,
    range: Range<usize>,
}

impl TailPiece {
    /// Returns the bytes of the events.
    pub fn bytes(&self) -> &[u8] {
        &self.batch.bytes[self.range.clone()]
    }

    /// Returns the position after the last byte.
    pub fn end(&self) -> BinlogPos {
        BinlogPos { file: self.pos.file, offset: self.pos.offset + self.range.len() as u64 }
    }

    /// Drops the first bytes.
    fn skip(mut self, bytes: u64) -> TailPiece {
        self.pos.offset += bytes;
        self.range.start += bytes as usize;
        self
    }
}

/// A place in the stream, with its bytes unless they are spilled.
#[derive(Debug)]
struct Piece {
    pos: BinlogPos,
    len: u64,
    bytes: Option<(Arc<Batch>, Range<usize>)>,
}

impl Piece {
    fn end(&self) -> BinlogPos {
        BinlogPos { file: self.pos.file, offset: self.pos.offset + self.len }
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.as_ref().map_or(0, |(_, range)| range.len())
    }
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Piece>,
    bytes: usize,
    interrupts: u64,
}

/// The stream tail. Written by the thread that hands bytes to the [`crate::BinlogFileWriter`], read by any
/// number of threads.
#[derive(Debug)]
pub struct StreamTail {
    state: Mutex<State>,
    arrived: Condvar,
    bytes_max: usize,
}

impl StreamTail {
    /// Returns an empty tail that keeps about `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> StreamTail {
        StreamTail { state: Mutex::default(), arrived: Condvar::new(), bytes_max }
    }

    /// Adds a durable batch and wakes the waiting readers.
    pub(crate) fn push(&self, batch: &Arc<Batch>) {
        let mut state = self.state.lock();
        let mut at = 0;
        for chunk in &batch.chunks {
            let bytes = match &chunk.content {
                Content::Inline => {
                    let range = at..at + chunk.len as usize;
                    at = range.end;
                    state.bytes += range.len();
                    Some((batch.clone(), range))
                }
                Content::Spilled(_) => None,
            };
            debug_assert!(
                state.pieces.back().is_none_or(|last| last.end() == chunk.pos
                    || (chunk.pos.file > last.pos.file && chunk.pos.offset == 0)),
                "a piece follows the last one"
            );
            state.pieces.push_back(Piece { pos: chunk.pos, len: chunk.len, bytes });
        }
        while state.bytes > self.bytes_max && state.pieces.len() > 1 {
            let gone = state.pieces.pop_front().map_or(0, |piece| piece.memory_bytes());
            state.bytes -= gone;
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// Returns the position after the last durable byte; `None` before the first one of this run.
    pub fn end(&self) -> Option<BinlogPos> {
        self.state.lock().pieces.back().map(Piece::end)
    }

    /// Returns the continuation at `at`, which must be between two events. Waits up to `timeout` if there is
    /// none yet.
    pub fn read(&self, at: BinlogPos, timeout: Duration) -> TailRead {
        let mut state = self.state.lock();
        let interrupts = state.interrupts;
        loop {
            if let Some(found) = state.find(at) {
                return found;
            }
            let timed_out = self.arrived.wait_for(&mut state, timeout).timed_out();
            if timed_out || state.interrupts != interrupts {
                return state.find(at).unwrap_or(TailRead::Nothing);
            }
        }
    }

    /// Removes everything, for a binlog reset. There are no readers at that time.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        state.pieces.clear();
        state.bytes = 0;
    }

    /// Makes all waiting readers return, because one of them should end.
    pub fn interrupt(&self) {
        self.state.lock().interrupts += 1;
        self.arrived.notify_all();
    }
}

impl State {
    fn find(&self, at: BinlogPos) -> Option<TailRead> {
        let first = self.pieces.front()?;
        if at < first.pos {
            return Some(TailRead::Files { until: first.pos });
        }
        let mut index = self.pieces.partition_point(|piece| piece.pos <= at) - 1;
        let mut from = at.offset - self.pieces[index].pos.offset;
        if at >= self.pieces[index].end() {
            // The start of the next file follows the end of a file.
            index += 1;
            from = 0;
        }
        let piece = self.pieces.get(index)?;
        let Some((batch, range)) = &piece.bytes else { return Some(TailRead::Files { until: piece.end() }) };
        let found = TailPiece { pos: piece.pos, batch: batch.clone(), range: range.clone() };
        let is_head = piece.pos.offset == 0 && from < MAGIC.len() as u64;
        // The magic number is no event.
        Some(TailRead::Events(found.skip(if is_head { MAGIC.len() as u64 } else { from })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Checksum;
    use crate::{Chunk, SpilledChunk};

    fn pos(file: u32, offset: u64) -> BinlogPos {
        BinlogPos { file, offset }
    }

    fn inline(at: BinlogPos, len: u64) -> Chunk {
        Chunk { pos: at, len, content: Content::Inline }
    }

    fn batch(chunks: Vec<Chunk>, bytes: &[u8]) -> Arc<Batch> {
        Arc::new(Batch { chunks, bytes: bytes.to_vec() })
    }

    fn events(tail: &StreamTail, at: BinlogPos) -> (BinlogPos, Vec<u8>) {
        match tail.read(at, Duration::ZERO) {
            TailRead::Events(piece) => (piece.pos, piece.bytes().to_vec()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn readers_go_on_where_they_are_over_files_and_spilled_bodies() {
        let tail = StreamTail::new(1 << 20);
        assert!(matches!(tail.read(pos(1, 4), Duration::ZERO), TailRead::Nothing));
        tail.push(&batch(vec![inline(pos(2, 0), 10)], b"\xfebinabcdef"));
        assert!(
            matches!(tail.read(pos(1, 500), Duration::ZERO), TailRead::Files { until } if until == pos(2, 0))
        );
        assert_eq!(events(&tail, pos(2, 0)), (pos(2, 4), b"abcdef".to_vec()));
        assert_eq!(events(&tail, pos(2, 4)), (pos(2, 4), b"abcdef".to_vec()));
        assert_eq!(events(&tail, pos(2, 7)), (pos(2, 7), b"def".to_vec()));
        assert!(matches!(tail.read(pos(2, 10), Duration::ZERO), TailRead::Nothing));

        let spilled =
            SpilledChunk { name: "s".into(), events: 1, event_bytes: 90, checksum: Checksum::Crc32 };
        let chunks = vec![
            inline(pos(2, 10), 3),
            Chunk { pos: pos(2, 13), len: 100, content: Content::Spilled(spilled) },
            inline(pos(2, 113), 2),
            inline(pos(3, 0), 6),
        ];
        tail.push(&batch(chunks, b"ghiXY\xfebin!!"));
        assert_eq!(events(&tail, pos(2, 10)), (pos(2, 10), b"ghi".to_vec()));
        for inside in [13, 50] {
            let read = tail.read(pos(2, inside), Duration::ZERO);
            assert!(matches!(read, TailRead::Files { until } if until == pos(2, 113)));
        }
        assert_eq!(events(&tail, pos(2, 113)), (pos(2, 113), b"XY".to_vec()));
        assert_eq!(events(&tail, pos(2, 115)), (pos(3, 4), b"!!".to_vec()));
        assert_eq!(tail.end(), Some(pos(3, 6)));
    }

    #[test]
    fn old_bytes_come_from_files_and_waits_end_with_bytes_or_an_interrupt() {
        let tail = Arc::new(StreamTail::new(8));
        for n in 0..10 {
            tail.push(&batch(vec![inline(pos(1, 4 + n * 4), 4)], &[n as u8; 4]));
        }
        assert!(
            matches!(tail.read(pos(1, 4), Duration::ZERO), TailRead::Files { until } if until == pos(1, 36))
        );
        assert_eq!(events(&tail, pos(1, 40)).1, [9; 4]);
        for kind in ["bytes", "interrupt"] {
            let reader = {
                let tail = tail.clone();
                let at = tail.end().expect("pushed");
                std::thread::spawn(move || tail.read(at, Duration::from_secs(60)))
            };
            std::thread::sleep(Duration::from_millis(20));
            if kind == "bytes" {
                let at = tail.end().expect("pushed");
                tail.push(&batch(vec![inline(at, 1)], b"z"));
                assert!(matches!(reader.join().expect("no panic"), TailRead::Events(_)));
            } else {
                tail.interrupt();
                assert!(matches!(reader.join().expect("no panic"), TailRead::Nothing));
            }
        }
    }
}
