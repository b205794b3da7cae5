//! A [`ResultSink`] that appends packets to a session's output buffer.

use cohort_base::Write;
use cohort_types::{Charset, Collation, SqlError, SqlResult, StoredColumns, Value};

use crate::binary_row::write_binary_row;
use crate::capability::Capabilities;
use crate::column_meta::ColumnMeta;
use crate::packet::PacketWriter;
use crate::sink::{OkInfo, ResultHead, ResultSink, SessionChange, StatusFlags};
use crate::stored_row::{write_stored_binary, write_stored_text};
use crate::text_row::{ColumnEncoding, write_text_row};

/// Row format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// COM_QUERY.
    Text,
    /// COM_STMT_EXECUTE.
    Binary,
}

/// Encoding of the results for one connection.
#[derive(Clone, Copy, Debug)]
pub struct ResultEncoding {
    /// Negotiated capabilities.
    pub capabilities: Capabilities,
    /// The character set of `character_set_results`, with its collation. `None` if it is NULL: text is sent
    /// in the character set of its column.
    pub results: Option<Collation>,
}

/// Sends a full output buffer while a statement is running.
pub trait Drain {
    /// Sends all of `out` and clears it, once everything that the session's replies depend on is published.
    /// Blocks. If the client is gone, the bytes are dropped.
    fn drain(&mut self, out: &mut Vec<u8>);

    /// Waits for the client's next packet and appends its payload. The packet must have the number
    /// `sequence`, except with compression. Returns the packet's number, or `None` if the client is gone.
    fn receive(&mut self, sequence: u8, out: &mut Vec<u8>) -> Option<u8>;

    /// Returns whether the client is gone or killed.
    fn is_dead(&self) -> bool;

    /// Returns whether the client has closed its side, too.
    fn has_hung_up(&self) -> bool {
        self.is_dead()
    }
}

/// Output buffer size at which it is sent while the statement runs.
const DRAIN_BYTES: usize = 1 << 20;

/// Writes the results of one command.
pub struct ResultWriter<'a> {
    out: &'a mut Vec<u8>,
    sequence: u8,
    encoding: ResultEncoding,
    format: RowFormat,
    drain: &'a mut dyn Drain,
    columns: Vec<ColumnEncoding>,
    sent: bool,
    /// Session changes for the next OK packet.
    changes: Changes,
    /// The client is sending a file.
    has_file: bool,
    /// Length of the buffer before the reply.
    began_at: usize,
    /// Bytes of the reply that were sent from the buffer.
    drained: u64,
}

impl<'a> ResultWriter<'a> {
    /// Creates a writer. `sequence` is the number of the first packet of the reply.
    pub fn new(
        out: &'a mut Vec<u8>,
        sequence: u8,
        encoding: ResultEncoding,
        format: RowFormat,
        drain: &'a mut dyn Drain,
    ) -> ResultWriter<'a> {
        ResultWriter {
            began_at: out.len(),
            drained: 0,
            out,
            sequence,
            encoding,
            format,
            drain,
            columns: Vec::new(),
            sent: false,
            changes: Changes::new(encoding.capabilities),
            has_file: false,
        }
    }

    /// Sets the row format.
    pub fn set_format(&mut self, format: RowFormat) {
        self.format = format;
    }

    /// Returns whether part of the reply was already sent.
    pub fn is_sent(&self) -> bool {
        self.sent
    }

    /// Writes the reply to COM_STMT_PREPARE.
    pub fn prepared(&mut self, reply: &PreparedReply<'_>) {
        self.packet(|out| {
            out.put_u8(0);
            out.put_u32(reply.statement);
            out.put_u16(reply.columns.len() as u16);
            out.put_u16(reply.params.len() as u16);
            out.put_u8(0);
            out.put_u16(reply.warnings);
        });
        for list in [reply.params, reply.columns] {
            list.iter().for_each(|column| self.definition(column, None));
            if !list.is_empty() {
                self.eof_after_columns(reply.status, reply.warnings);
            }
        }
    }

    /// Writes the reply to COM_FIELD_LIST.
    pub fn field_list(&mut self, columns: &[ListedColumn], status: StatusFlags) {
        for column in columns {
            self.definition(&column.meta, Some(column.default.as_deref()));
        }
        self.eof(status, 0);
    }

    /// Writes the reply to COM_STATISTICS: bare text.
    pub fn text(&mut self, text: &str) {
        self.packet(|out| out.extend_from_slice(text.as_bytes()));
    }

    /// Sets the columns of the following rows, for [`ResultWriter::encode_row`].
    pub fn expect(&mut self, columns: &[ColumnMeta]) {
        let results = self.encoding.results.map(Collation::charset);
        self.columns.clear();
        self.columns.extend(columns.iter().map(|column| ColumnEncoding::new(column, results)));
    }

    /// Appends the payload of a row, to be sent to the same client with [`ResultWriter::encoded_row`].
    pub fn encode_row(&self, values: &[Value], out: &mut Vec<u8>) {
        write_row(self.format, values, &self.columns, out);
    }

    /// Writes a row of a cursor.
    pub fn encoded_row(&mut self, payload: &[u8]) {
        self.packet(|out| out.extend_from_slice(payload));
        self.drain_if_full();
    }

    /// Writes the reply to COM_STMT_EXECUTE when a cursor was opened: columns without rows. The final status
    /// makes the client fetch the rows.
    pub fn cursor(&mut self, columns: &[ColumnMeta], status: StatusFlags, warnings: u16) {
        self.definitions(columns);
        self.finish(status.with(StatusFlags::CURSOR_EXISTS), warnings);
    }

    /// Writes the reply to COM_SET_OPTION, or the end of a reply to COM_STMT_FETCH.
    pub fn eof(&mut self, status: StatusFlags, warnings: u16) {
        self.end(status, warnings, &Changes::Unwanted);
    }

    fn end(&mut self, status: StatusFlags, warnings: u16, changes: &Changes) {
        let new = self.encoding.capabilities.has(Capabilities::DEPRECATE_EOF);
        self.packet(|out| match new {
            true => {
                let end = OkInfo { status, warnings, ..OkInfo::default() };
                ok_payload(0xfe, &end, changes, out);
            }
            false => eof_payload(status, warnings, out),
        });
    }

    fn packet(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut packet = PacketWriter::begin(self.out, &mut self.sequence);
        write(packet.payload());
        packet.end();
    }

    fn eof_after_columns(&mut self, status: StatusFlags, warnings: u16) {
        if !self.encoding.capabilities.has(Capabilities::DEPRECATE_EOF) {
            self.packet(|out| eof_payload(status, warnings, out));
        }
    }

    /// Returns the character set to convert text to, if any.
    fn convert(&self) -> Option<Charset> {
        let charset = self.encoding.results.map(Collation::charset);
        charset.filter(|charset| !matches!(charset, Charset::Utf8mb4 | Charset::Binary))
    }

    fn definitions(&mut self, columns: &[ColumnMeta]) {
        self.packet(|out| out.put_lenenc(columns.len() as u64));
        columns.iter().for_each(|column| self.definition(column, None));
    }

    fn definition(&mut self, column: &ColumnMeta, default: Option<Option<&[u8]>>) {
        let convert = self.convert();
        let (collation, length) = announced(column, self.encoding.results);
        let extended = self.encoding.capabilities.has(Capabilities::EXTENDED_METADATA);
        self.packet(|out| {
            out.extend_from_slice(b"\x03def");
            for name in [&column.schema, &column.table, &column.org_table, &column.name, &column.org_name] {
                put_name(name, convert, out);
            }
            if extended {
                put_extended(column.format, out);
            }
            let ([c0, c1], [l0, l1, l2, l3]) = (collation.0.to_le_bytes(), length.to_le_bytes());
            let [f0, f1] = column.flags.0.to_le_bytes();
            let code = column.type_code as u8;
            out.extend_from_slice(&[12, c0, c1, l0, l1, l2, l3, code, f0, f1, column.decimals, 0, 0]);
            match default {
                None => {}
                Some(None) => out.put_u8(0xfb),
                Some(Some(text)) => {
                    let mut bytes = Vec::new();
                    match convert.filter(|_| column.collation != Collation::BINARY) {
                        Some(charset) => drop(charset.encode(text, &mut bytes)),
                        None => bytes.extend_from_slice(text),
                    }
                    out.put_lenenc_bytes(&bytes);
                }
            }
        });
    }

    fn drain_if_full(&mut self) {
        if self.out.len() >= DRAIN_BYTES {
            self.drain();
            self.sent = true;
        }
    }

    /// Sends the buffer, once everything that the session's replies depend on is published.
    pub fn drain(&mut self) {
        self.drained += (self.out.len() - self.began_at) as u64;
        self.drain.drain(self.out);
        self.began_at = 0;
    }
}

fn write_row(format: RowFormat, values: &[Value], columns: &[ColumnEncoding], out: &mut Vec<u8>) {
    match format {
        RowFormat::Text => write_text_row(values, columns, out),
        RowFormat::Binary => write_binary_row(values, columns, out),
    }
}

/// A column of COM_FIELD_LIST.
#[derive(Clone, Debug)]
pub struct ListedColumn {
    pub meta: ColumnMeta,
    /// Default value as text; `None` is NULL.
    pub default: Option<Vec<u8>>,
}

/// Reply for a prepared statement.
#[derive(Clone, Copy, Debug)]
pub struct PreparedReply<'a> {
    pub statement: u32,
    pub params: &'a [ColumnMeta],
    pub columns: &'a [ColumnMeta],
    pub status: StatusFlags,
    pub warnings: u16,
}

impl ResultSink for ResultWriter<'_> {
    fn results(&mut self, collation: Option<Collation>) {
        self.encoding.results = collation;
    }

    fn start(&mut self, columns: &[ColumnMeta], head: ResultHead) {
        self.expect(columns);
        self.definitions(columns);
        self.eof_after_columns(head.status, head.warnings);
    }

    fn row(&mut self, values: &[Value]) {
        let mut packet = PacketWriter::begin(self.out, &mut self.sequence);
        write_row(self.format, values, &self.columns, packet.payload());
        packet.end();
        self.drain_if_full();
    }

    fn stored_rows(&mut self, columns: &StoredColumns<'_>, rows: &[&[u8]]) -> SqlResult<()> {
        assert_eq!(columns.len(), self.columns.len(), "each column of the result is stored");
        for row in rows {
            let start = self.out.len();
            let mut packet = PacketWriter::begin(self.out, &mut self.sequence);
            let written = match self.format {
                RowFormat::Text => write_stored_text(row, columns, &self.columns, packet.payload()),
                RowFormat::Binary => write_stored_binary(row, columns, &self.columns, packet.payload()),
            };
            if let Err(error) = written {
                self.out.truncate(start);
                return Err(error);
            }
            packet.end();
            self.drain_if_full();
        }
        Ok(())
    }

    fn finish(&mut self, status: StatusFlags, warnings: u16) {
        let changes = if self.sends_changes_at_end() { self.changes.take() } else { Changes::Unwanted };
        self.end(status, warnings, &changes);
        self.drain_if_full();
    }

    fn sends_changes_at_end(&self) -> bool {
        let Changes::Encoded(_) = &self.changes else { return false };
        self.encoding.capabilities.has(Capabilities::DEPRECATE_EOF)
    }

    fn ok(&mut self, ok: &OkInfo<'_>) {
        let changes = self.changes.take();
        self.packet(|out| ok_payload(0, ok, &changes, out));
        self.drain_if_full();
    }

    fn changed(&mut self, change: SessionChange<'_>) {
        self.changes.add(change);
    }

    fn error(&mut self, error: &SqlError) {
        self.packet(|out| error_payload(error, out));
    }

    fn takes_more_results(&self) -> bool {
        self.encoding.capabilities.has(Capabilities::MULTI_RESULTS)
    }

    fn may_send_files(&self) -> bool {
        self.encoding.capabilities.has(Capabilities::LOCAL_FILES)
    }

    fn request_file(&mut self, name: &[u8]) -> SqlResult<()> {
        self.packet(|out| {
            out.put_u8(0xfb);
            out.extend_from_slice(name);
        });
        self.sent = true;
        self.has_file = true;
        self.drain();
        Ok(())
    }

    fn file_bytes(&mut self, out: &mut Vec<u8>) -> SqlResult<()> {
        if !self.has_file {
            return Ok(());
        }
        let before = out.len();
        let Some(sequence) = self.drain.receive(self.sequence, out) else {
            self.has_file = false;
            return Err(SqlError::network_read_failed());
        };
        self.sequence = sequence.wrapping_add(1);
        // An empty packet ends the file.
        self.has_file = out.len() > before;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.drained + (self.out.len() - self.began_at) as u64
    }

    fn is_dead(&self) -> bool {
        self.drain.is_dead()
    }

    fn has_hung_up(&self) -> bool {
        self.drain.has_hung_up()
    }
}

/// Appends an OK packet outside of a command, such as the end of a handshake.
pub fn write_ok(
    out: &mut Vec<u8>,
    sequence: &mut u8,
    ok: &OkInfo<'_>,
    capabilities: Capabilities,
    change: Option<SessionChange<'_>>,
) {
    let mut changes = Changes::new(capabilities);
    change.into_iter().for_each(|change| changes.add(change));
    let mut packet = PacketWriter::begin(out, sequence);
    ok_payload(0, ok, &changes, packet.payload());
    packet.end();
}

/// Appends an error packet outside of a command.
pub fn write_error(out: &mut Vec<u8>, sequence: &mut u8, error: &SqlError) {
    let mut packet = PacketWriter::begin(out, sequence);
    error_payload(error, packet.payload());
    packet.end();
}

/// Session changes in the format of an OK packet: `u8 kind, lenenc bytes` each.
enum Changes {
    /// The client does not support them.
    Unwanted,
    Encoded(Vec<u8>),
}

impl Changes {
    const VARIABLE: u8 = 0;
    const SCHEMA: u8 = 1;
    const STATE: u8 = 2;
    const TRANSACTION_CHARACTERISTICS: u8 = 4;
    const TRANSACTION_STATE: u8 = 5;

    fn new(capabilities: Capabilities) -> Changes {
        match capabilities.has(Capabilities::SESSION_TRACK) {
            true => Changes::Encoded(Vec::new()),
            false => Changes::Unwanted,
        }
    }

    fn add(&mut self, change: SessionChange<'_>) {
        let Changes::Encoded(out) = self else { return };
        let mut data = Vec::new();
        let kind = match change {
            SessionChange::Schema(name) => {
                data.put_lenenc_bytes(name.as_bytes());
                Changes::SCHEMA
            }
            SessionChange::Variable(name, value) => {
                data.put_lenenc_bytes(name.as_bytes());
                data.put_lenenc_bytes(value.as_bytes());
                Changes::VARIABLE
            }
            SessionChange::State => {
                data.put_u8(b'1');
                Changes::STATE
            }
            SessionChange::TransactionState(state) => {
                data.put_lenenc_bytes(state.as_bytes());
                Changes::TRANSACTION_STATE
            }
            SessionChange::TransactionCharacteristics(text) => {
                data.put_lenenc_bytes(text.as_bytes());
                Changes::TRANSACTION_CHARACTERISTICS
            }
        };
        out.put_u8(kind);
        out.put_lenenc_bytes(&data);
    }

    fn take(&mut self) -> Changes {
        match self {
            Changes::Unwanted => Changes::Unwanted,
            Changes::Encoded(changes) => Changes::Encoded(std::mem::take(changes)),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Changes::Unwanted => &[],
            Changes::Encoded(changes) => changes,
        }
    }
}

fn ok_payload(header: u8, ok: &OkInfo<'_>, changes: &Changes, out: &mut Vec<u8>) {
    let changes = changes.bytes();
    let status = match changes {
        [] => ok.status,
        _ => ok.status.with(StatusFlags::SESSION_STATE_CHANGED),
    };
    out.put_u8(header);
    out.put_lenenc(ok.affected_rows);
    out.put_lenenc(ok.last_insert_id);
    out.put_u16(status.0);
    out.put_u16(ok.warnings);
    if !ok.info.is_empty() || !changes.is_empty() {
        out.put_lenenc_bytes(ok.info.as_bytes());
    }
    if !changes.is_empty() {
        out.put_lenenc_bytes(changes);
    }
}

fn eof_payload(status: StatusFlags, warnings: u16, out: &mut Vec<u8>) {
    out.put_u8(0xfe);
    out.put_u16(warnings);
    out.put_u16(status.0);
}

fn error_payload(error: &SqlError, out: &mut Vec<u8>) {
    out.put_u8(0xff);
    out.put_u16(error.number());
    out.put_u8(b'#');
    out.extend_from_slice(error.sqlstate().as_bytes());
    // Messages have at most 511 bytes, as in MariaDB, and are cut between characters.
    let fits = |end: &usize| error.message.is_char_boundary(*end);
    let end = (0..=error.message.len().min(511)).rev().find(fits).unwrap_or(0);
    out.extend_from_slice(&error.message.as_bytes()[..end]);
}

/// Returns collation and length to announce to the client: for text, its character set and the length after
/// conversion. A TEXT value may consist of one-byte characters up to its full length.
fn announced(column: &ColumnMeta, results: Option<Collation>) -> (Collation, u32) {
    match results {
        Some(results) if column.collation != Collation::BINARY && results != Collation::BINARY => {
            let bytes = if column.type_code.is_blob() { 1 } else { column.collation.charset().mbmaxlen() };
            (results, (column.length / bytes).saturating_mul(results.charset().mbmaxlen()))
        }
        _ => (column.collation, column.length),
    }
}

/// Appends MariaDB's extended metadata: pairs of a kind (0 type, 1 format) and a name.
fn put_extended(format: Option<&str>, out: &mut Vec<u8>) {
    let mut pairs = Vec::new();
    if let Some(format) = format {
        pairs.put_u8(u8::from(format == "json"));
        pairs.put_lenenc_bytes(format.as_bytes());
    }
    out.put_lenenc_bytes(&pairs);
}

fn put_name(name: &str, convert: Option<Charset>, out: &mut Vec<u8>) {
    match convert {
        None => out.put_lenenc_bytes(name.as_bytes()),
        Some(charset) => {
            let mut bytes = Vec::with_capacity(name.len());
            charset.encode(name.as_bytes(), &mut bytes);
            out.put_lenenc_bytes(&bytes);
        }
    }
}
