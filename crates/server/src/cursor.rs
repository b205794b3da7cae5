//! Cursors of the binary protocol: the rows of a prepared query, stored for COM_STMT_FETCH.
//!
//! # Concepts
//! As in MariaDB, a query that is executed with CURSOR_TYPE_READ_ONLY runs to its end, so no read view or
//! lock waits for the client. A [`CursorSink`] between the query and the connection's [`ResultWriter`] stores
//! the rows, encoded for the wire, and sends only the columns. It passes through the results of statements
//! without a cursor: the executor does not call `keep_rows` for them.
//!
//! # States
//! A statement has no [`Cursor`] or an open one. A cursor closes when a fetch reaches its end or fails, when
//! the statement is executed again, reset or closed, and with the connection. It outlives transactions and
//! its tables.
//!
//! # Memory
//! Rows are charged to the session. They are kept in memory up to `tmp_memory_table_size`, and then spilled
//! to an anonymous file in `tmpdir`. A connection has at most [`FILES_MAX`] such files.
//!
//! # Order (I4, I5)
//! The reply that opens a cursor waits until everything that its rows show is acknowledged. A pipelined
//! fetch, sent before that reply arrived, waits in the same way.

use std::sync::Arc;

use cohort_base::{Budget, Reservation};
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, ResultWriter, SessionChange, StatusFlags};
use cohort_types::{Collation, SqlError, SqlResult, StoredColumns, Value};
use cohort_vfs::SharedFile;

/// Maximum number of cursor files of one connection.
const FILES_MAX: usize = 64;

/// Size of one read from a file, unless a row is longer.
const BLOCK_BYTES: usize = 64 << 10;

/// Size of the length that precedes each row.
const HEADER_BYTES: usize = size_of::<u64>();

/// Reference count of a connection's cursor files: the strong count is the number of files plus one.
pub(crate) type Files = Arc<()>;

/// Memory budget and files for the rows of a cursor.
pub(crate) struct CursorSpace<'s> {
    /// The budget that the rows are charged to, if any.
    pub memory: Option<Arc<Budget>>,
    pub memory_bytes_max: usize,
    pub files: &'s Files,
    pub create: &'s dyn Fn() -> SqlResult<SharedFile>,
}

/// Rows, each preceded by its length: first those in the file, then those in memory.
#[derive(Default)]
struct KeptRows {
    file: Option<(SharedFile, Files)>,
    file_bytes: u64,
    bytes: Vec<u8>,
    charged: Option<Reservation>,
}

impl KeptRows {
    fn new(space: &CursorSpace<'_>) -> KeptRows {
        let charged = space.memory.as_ref().map(|budget| Reservation::new(Arc::clone(budget)));
        KeptRows { charged, ..KeptRows::default() }
    }

    fn push(&mut self, row: &[u8], space: &CursorSpace<'_>) -> SqlResult<()> {
        let more = HEADER_BYTES + row.len();
        if self.bytes.len() + more > space.memory_bytes_max.max(BLOCK_BYTES) {
            self.write(space)?;
        }
        self.reserve(more)?;
        self.bytes.extend_from_slice(&(row.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(row);
        Ok(())
    }

    fn reserve(&mut self, more: usize) -> SqlResult<()> {
        let wanted = self.bytes.len() + more;
        if wanted > self.bytes.capacity() {
            let capacity = wanted.max(2 * self.bytes.capacity());
            self.charge(capacity)?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> SqlResult<()> {
        self.charged.as_mut().map_or(Ok(()), |charged| Ok(charged.resize(bytes as u64)?))
    }

    /// Moves the rows in memory to the file.
    fn write(&mut self, space: &CursorSpace<'_>) -> SqlResult<()> {
        if self.file.is_none() {
            if Arc::strong_count(space.files) > FILES_MAX {
                return Err(SqlError::too_many_cursor_files(FILES_MAX));
            }
            self.file = Some(((space.create)()?, Arc::clone(space.files)));
        }
        if let Some((file, _)) = &self.file {
            file.write_at(&self.bytes, self.file_bytes)
                .map_err(|error| SqlError::temporary_file(&error, "writing"))?;
        }
        self.file_bytes += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    /// Completes the rows: all are in one place, and no unused memory is kept.
    fn finish(&mut self, space: &CursorSpace<'_>) -> SqlResult<()> {
        if self.file.is_some() {
            self.write(space)?;
        }
        self.bytes.shrink_to_fit();
        self.charge(self.bytes.capacity())
    }
}

/// An open cursor.
pub(crate) struct Cursor {
    rows: KeptRows,
    /// Number of bytes that were fetched, counted over all rows.
    passed: u64,
    /// Block read from the file, beginning at `passed`.
    block: Vec<u8>,
    block_passed: usize,
}

impl Cursor {
    /// Sends up to `count` rows. Stops with an error if `check` fails. Returns whether there may be more.
    pub fn fetch(
        &mut self,
        count: u32,
        writer: &mut ResultWriter<'_>,
        check: &dyn Fn() -> SqlResult<()>,
    ) -> SqlResult<bool> {
        for _ in 0..count {
            check()?;
            if writer.is_dead() {
                break;
            }
            match self.next()? {
                Some(row) => writer.encoded_row(row),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn next(&mut self) -> SqlResult<Option<&[u8]>> {
        let (rows, at) = match &self.rows.file {
            None => (&self.rows.bytes, self.passed as usize),
            Some((file, _)) => {
                let left = self.rows.file_bytes - self.passed;
                let mut wanted = HEADER_BYTES;
                loop {
                    let there = self.block.len() - self.block_passed;
                    if there >= HEADER_BYTES {
                        wanted = HEADER_BYTES + length_at(&self.block, self.block_passed);
                    }
                    if there >= wanted || left == 0 {
                        break;
                    }
                    let bytes = left.min(wanted.max(BLOCK_BYTES) as u64) as usize;
                    if let Some(charged) = &mut self.rows.charged {
                        charged.resize(bytes.max(self.block.capacity()) as u64)?;
                    }
                    read(file, &mut self.block, self.passed, bytes)?;
                    self.block_passed = 0;
                }
                (&self.block, self.block_passed)
            }
        };
        if at == rows.len() {
            return Ok(None);
        }
        let row = at + HEADER_BYTES;
        let end = row + length_at(rows, at);
        self.passed += (end - at) as u64;
        self.block_passed += end - at;
        Ok(Some(&rows[row..end]))
    }
}

fn length_at(rows: &[u8], at: usize) -> usize {
    let length: [u8; HEADER_BYTES] = rows[at..at + HEADER_BYTES].try_into().expect("as long as its type");
    u64::from_le_bytes(length) as usize
}

fn read(file: &SharedFile, block: &mut Vec<u8>, offset: u64, bytes: usize) -> SqlResult<()> {
    block.resize(bytes, 0);
    let there = file.read_at(block, offset).map_err(|error| SqlError::temporary_file(&error, "reading"))?;
    if there < bytes {
        return Err(SqlError::temporary_file_damaged());
    }
    Ok(())
}

/// A sink that stores the rows of a query, and passes through the results of all other statements.
pub(crate) struct CursorSink<'a, 'w> {
    writer: &'a mut ResultWriter<'w>,
    space: CursorSpace<'a>,
    /// The columns and rows so far; `None` if the statement has no cursor.
    open: Option<(Vec<ColumnMeta>, KeptRows)>,
    row: Vec<u8>,
    cursor: Option<Cursor>,
}

impl<'a, 'w> CursorSink<'a, 'w> {
    pub fn new(writer: &'a mut ResultWriter<'w>, space: CursorSpace<'a>) -> CursorSink<'a, 'w> {
        CursorSink { writer, space, open: None, row: Vec::new(), cursor: None }
    }

    /// Returns the cursor, if one was opened.
    pub fn into_cursor(self) -> Option<Cursor> {
        self.cursor
    }
}

impl ResultSink for CursorSink<'_, '_> {
    fn results(&mut self, collation: Option<Collation>) {
        self.writer.results(collation);
    }

    fn keep_rows(&mut self) -> bool {
        self.open = Some((Vec::new(), KeptRows::new(&self.space)));
        true
    }

    fn start(&mut self, columns: &[ColumnMeta], head: ResultHead) {
        match &mut self.open {
            None => self.writer.start(columns, head),
            // The columns are sent at the end, because an error may replace them.
            Some((kept, _)) => {
                columns.clone_into(kept);
                self.writer.expect(columns);
            }
        }
    }

    fn row(&mut self, values: &[Value]) {
        assert!(self.open.is_none(), "rows that are kept may fail");
        self.writer.row(values);
    }

    fn try_row(&mut self, values: &[Value]) -> SqlResult<()> {
        let Some((_, rows)) = &mut self.open else { return self.writer.try_row(values) };
        self.row.clear();
        self.writer.encode_row(values, &mut self.row);
        rows.push(&self.row, &self.space)
    }

    fn stored_rows(&mut self, columns: &StoredColumns<'_>, rows: &[&[u8]]) -> SqlResult<()> {
        if self.open.is_none() {
            return self.writer.stored_rows(columns, rows);
        }
        let mut values = Vec::with_capacity(columns.len());
        for row in rows {
            columns.values(row, &mut values)?;
            self.try_row(&values)?;
        }
        Ok(())
    }

    fn finish(&mut self, status: StatusFlags, warnings: u16) {
        let Some((columns, mut rows)) = self.open.take() else { return self.writer.finish(status, warnings) };
        if let Err(error) = rows.finish(&self.space) {
            return self.writer.error(&error);
        }
        self.cursor = Some(Cursor { rows, passed: 0, block: Vec::new(), block_passed: 0 });
        self.writer.cursor(&columns, status, warnings);
    }

    fn ok(&mut self, ok: &OkInfo<'_>) {
        self.writer.ok(ok);
    }

    fn sends_changes_at_end(&self) -> bool {
        self.writer.sends_changes_at_end()
    }

    fn changed(&mut self, change: SessionChange<'_>) {
        self.writer.changed(change);
    }

    fn takes_more_results(&self) -> bool {
        self.writer.takes_more_results()
    }

    fn may_send_files(&self) -> bool {
        self.writer.may_send_files()
    }

    fn request_file(&mut self, name: &[u8]) -> SqlResult<()> {
        self.writer.request_file(name)
    }

    fn file_bytes(&mut self, out: &mut Vec<u8>) -> SqlResult<()> {
        self.writer.file_bytes(out)
    }

    fn error(&mut self, error: &SqlError) {
        self.open = None;
        self.writer.error(error);
    }

    fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    fn is_dead(&self) -> bool {
        self.writer.is_dead()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cohort_protocol::{Capabilities, Drain, InputBuffer, ResultEncoding, RowFormat};
    use cohort_vfs::{MemFs, SharedFs, anonymous_temp_file};

    use cohort_types::ErrorCode;

    use super::*;

    struct Nowhere;

    impl Drain for Nowhere {
        fn drain(&mut self, _: &mut Vec<u8>) {
            panic!("answers of these tests are short");
        }
        fn receive(&mut self, _: u8, _: &mut Vec<u8>) -> Option<u8> {
            None
        }
        fn is_dead(&self) -> bool {
            false
        }
    }

    /// Returns the payloads of the packets that `answer` writes.
    fn packets(answer: impl FnOnce(&mut ResultWriter<'_>)) -> Vec<Vec<u8>> {
        let (mut out, mut drain) = (Vec::new(), Nowhere);
        let encoding = ResultEncoding { capabilities: Capabilities::default(), results: None };
        answer(&mut ResultWriter::new(&mut out, 1, encoding, RowFormat::Binary, &mut drain));
        let mut input = InputBuffer::default();
        input.extend(&out);
        input.expect_sequence(1);
        let mut packets = Vec::new();
        while let Some(packet) = input.next(usize::MAX).expect("packets in their order") {
            packets.push(input.payload(&packet).to_vec());
        }
        packets
    }

    struct Place {
        memory: Arc<Budget>,
        files: Files,
        fs: SharedFs,
    }

    impl Place {
        fn new() -> Place {
            let memory = Budget::of_session(&Budget::of_server());
            let fs: SharedFs = Arc::new(MemFs::new());
            fs.create_dir_all(Path::new("/tmp")).expect("made");
            Place { memory, files: Files::default(), fs }
        }

        fn files(&self) -> usize {
            Arc::strong_count(&self.files) - 1
        }

        /// Opens a cursor on these rows. Checks the reply, too.
        fn open(&self, rows: &[Vec<Value>], memory_bytes_max: usize) -> SqlResult<Cursor> {
            let mut outcome = None;
            let answer = packets(|writer| {
                let create = || {
                    anonymous_temp_file(&self.fs, Path::new("/tmp"))
                        .map_err(|error| SqlError::temporary_file(&error, "creating"))
                };
                let space = CursorSpace {
                    memory: Some(Arc::clone(&self.memory)),
                    memory_bytes_max,
                    files: &self.files,
                    create: &create,
                };
                let mut sink = CursorSink::new(writer, space);
                assert!(sink.keep_rows());
                sink.start(&[ColumnMeta::text("t", 1000)], ResultHead::default());
                match rows.iter().try_for_each(|row| sink.try_row(row)) {
                    Ok(()) => sink.finish(StatusFlags::AUTOCOMMIT, 0),
                    Err(error) => {
                        sink.error(&error);
                        outcome = Some(Err(error));
                    }
                }
                outcome = sink.into_cursor().map(Ok).or(outcome.take());
            });
            match &outcome {
                Some(Ok(_)) => assert_eq!((answer.len(), &*answer[2]), (3, &b"\xfe\0\0\x42\0"[..])),
                _ => assert_eq!((answer.len(), answer[0][0]), (1, 0xff), "an error stands alone"),
            }
            outcome.expect("a cursor or an error")
        }
    }

    /// Returns rows of all lengths, and the same rows encoded for the wire.
    fn rows() -> (Vec<Vec<Value>>, Vec<Vec<u8>>) {
        let lengths = (0..3000).map(|n| n % 250).chain([200_000, 1, BLOCK_BYTES, 0]);
        let rows: Vec<Vec<Value>> = lengths.map(|n| vec![Value::text("x".repeat(n))]).collect();
        let sent = packets(|writer| {
            writer.expect(&[ColumnMeta::text("t", 1000)]);
            rows.iter().for_each(|row| writer.row(row));
        });
        (rows, sent)
    }

    #[test]
    fn rows_come_in_their_order_from_memory_and_from_a_file() {
        let (place, (rows, sent)) = (Place::new(), rows());
        for (memory_bytes_max, files) in [(0, 1), (100_000, 1), (10 << 20, 0)] {
            let mut cursor = place.open(&rows, memory_bytes_max).expect("opens");
            assert_eq!(place.files(), files);
            assert!(place.memory.used() > 0);
            let (mut fetched, mut goes_on) = (Vec::new(), true);
            while goes_on {
                fetched.extend(packets(|writer| {
                    goes_on = cursor.fetch(7, writer, &|| Ok(())).expect("fetches");
                }));
            }
            assert!(fetched == sent, "{memory_bytes_max}");
            drop(cursor);
            assert_eq!((place.memory.used(), place.files()), (0, 0));
        }
        let mut none = place.open(&[], 1000).expect("opens");
        assert!(packets(|writer| assert!(!none.fetch(1, writer, &|| Ok(())).expect("fetches"))).is_empty());
    }

    #[test]
    fn a_fetch_that_is_killed_ends_between_two_rows() {
        let (place, (rows, _)) = (Place::new(), rows());
        let mut cursor = place.open(&rows, 10 << 20).expect("opens");
        let asked = std::cell::Cell::new(0);
        let check = || match asked.replace(asked.get() + 1) {
            3 => Err(SqlError::interrupted()),
            _ => Ok(()),
        };
        let mut outcome = Ok(true);
        let sent = packets(|writer| outcome = cursor.fetch(100, writer, &check));
        assert_eq!((sent.len(), outcome), (3, Err(SqlError::interrupted())));
    }

    #[test]
    fn rows_that_find_no_room_end_their_statement() {
        let (place, (rows, _)) = (Place::new(), rows());
        place.memory.set_limit(100_000);
        let code = |outcome: SqlResult<Cursor>| outcome.map(|_| ()).map_err(|error| error.code);
        assert_eq!(code(place.open(&rows, 10 << 20)), Err(ErrorCode::OptionPreventsStatement));
        assert_eq!(place.memory.used(), 0);
        place.memory.set_limit(u64::MAX);
        let open: Vec<Cursor> = (0..FILES_MAX).map(|_| place.open(&rows, 0).expect("opens")).collect();
        assert_eq!(code(place.open(&rows, 0)), Err(ErrorCode::CantCreateFile));
        assert!(place.open(&rows[..10], 0).is_ok(), "it needs no file");
        drop(open);
        assert!(place.open(&rows, 0).is_ok());
    }

    #[test]
    fn a_statement_without_a_cursor_answers_as_ever() {
        let place = Place::new();
        let answer = |with_sink: bool| {
            packets(|writer| {
                let say = |sink: &mut dyn ResultSink| {
                    sink.start(&[ColumnMeta::text("t", 10)], ResultHead::default());
                    sink.row(&[Value::text("a")]);
                    sink.finish(StatusFlags::default(), 0);
                };
                if !with_sink {
                    return say(writer);
                }
                let create = || Err(SqlError::unknown_command());
                let space =
                    CursorSpace { memory: None, memory_bytes_max: 0, files: &place.files, create: &create };
                let mut sink = CursorSink::new(writer, space);
                say(&mut sink);
                assert!(sink.into_cursor().is_none());
            })
        };
        assert_eq!(answer(true), answer(false));
    }
}
