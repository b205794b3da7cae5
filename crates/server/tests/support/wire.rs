//! A protocol client that keeps all metadata of a server's results, which drivers only show in part.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A connection as root without a password.
pub struct Wire {
    stream: Box<dyn Stream>,
    sequence: u8,
    wishes: Wishes,
}

trait Stream: Read + Write {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

/// Capabilities that a client requests in the handshake, in addition to protocol 4.1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// MARIADB_CLIENT_EXTENDED_METADATA.
    pub extended_metadata: bool,
}

/// A column's definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    pub schema: String,
    pub table: String,
    pub org_table: String,
    pub name: String,
    pub org_name: String,
    /// MariaDB's names of type and format: `type=uuid`, `format=json`.
    pub extended: Vec<String>,
    pub charset: u16,
    pub length: u32,
    pub type_code: u8,
    pub flags: u16,
    pub decimals: u8,
}

/// A reply to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Ok { affected: u64, insert_id: u64, status: u16, warnings: u16 },
    Error { code: u16, text: String },
    Rows { columns: Vec<Definition>, rows: Vec<Vec<u8>>, status: u16, warnings: u16 },
}

/// The reply to COM_STMT_PREPARE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    pub id: u32,
    pub params: Vec<Definition>,
    pub columns: Vec<Definition>,
    pub warnings: u16,
}

/// A value bound to a parameter: type code, unsigned flag, and the value's bytes; `None` for NULL.
pub type Bound<'a> = (u8, u8, Option<&'a [u8]>);

const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
const COM_STMT_CLOSE: u8 = 0x19;

/// Long flag, protocol 4.1, transactions, secure connection, several results, plugins.
const CAPABILITIES: u32 = 1 << 2 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 17 | 1 << 18 | 1 << 19;

/// One of MariaDB's own capabilities.
const EXTENDED_METADATA: u64 = 1 << 3;

impl Wire {
    /// Connects over TCP to this host.
    pub fn over_tcp(port: u16, wishes: Wishes) -> Wire {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        stream.set_nodelay(true).expect("set");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        Wire::login(Box::new(stream), wishes)
    }

    /// Connects over a Unix socket.
    pub fn over_socket(path: &Path, wishes: Wishes) -> Wire {
        let stream = UnixStream::connect(path).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        Wire::login(Box::new(stream), wishes)
    }

    fn login(stream: Box<dyn Stream>, wishes: Wishes) -> Wire {
        let mut wire = Wire { stream, sequence: 0, wishes };
        let greeting = wire.packet();
        assert_eq!(greeting[0], 10, "a greeting");
        let version = greeting.iter().position(|byte| *byte == 0).expect("the end of the version");
        // After the version: connection id, random bytes, capabilities, collation, status, capabilities,
        // length and filler.
        let offered = Reader(&greeting[version + 28..]).number(4);
        wire.wishes.extended_metadata &= offered & EXTENDED_METADATA != 0;
        let mut response = CAPABILITIES.to_le_bytes().to_vec();
        response.extend_from_slice(&[0, 0, 0, 1, 45]);
        response.extend_from_slice(&[0; 19]);
        let asked = if wire.wishes.extended_metadata { EXTENDED_METADATA as u32 } else { 0 };
        response.extend_from_slice(&asked.to_le_bytes());
        response.extend_from_slice(b"root\0\0mysql_native_password\0");
        wire.write(&response);
        let answer = wire.packet();
        assert_eq!(answer[0], 0, "{:?}", String::from_utf8_lossy(&answer));
        wire
    }

    /// Runs statements. Returns a reply for each, up to the first error.
    pub fn query(&mut self, sql: &str) -> Vec<Reply> {
        self.command(COM_QUERY, sql.as_bytes());
        let mut replies = Vec::new();
        loop {
            let reply = self.reply();
            let more = reply.status() & 8 != 0;
            replies.push(reply);
            if !more {
                return replies;
            }
        }
    }

    /// Runs one statement that must succeed.
    pub fn run(&mut self, sql: &str) -> Reply {
        let reply = self.query(sql).remove(0);
        assert!(!matches!(reply, Reply::Error { .. }), "{sql}: {reply:?}");
        reply
    }

    pub fn prepare(&mut self, sql: &str) -> Result<Prepared, Reply> {
        self.command(COM_STMT_PREPARE, sql.as_bytes());
        let first = self.packet();
        if first[0] == 0xff {
            return Err(error_of(&first));
        }
        let mut read = Reader(&first[1..]);
        let id = read.number(4) as u32;
        let (columns, params) = (read.number(2) as usize, read.number(2) as usize);
        read.number(1);
        let warnings = read.number(2) as u16;
        let params = self.definitions(params);
        let columns = self.definitions(columns);
        Ok(Prepared { id, params, columns, warnings })
    }

    /// Runs a prepared statement without parameters, or with values.
    pub fn execute(&mut self, id: u32, values: &[Bound<'_>]) -> Reply {
        let mut payload = id.to_le_bytes().to_vec();
        payload.extend_from_slice(&[0, 1, 0, 0, 0]);
        if !values.is_empty() {
            let mut nulls = vec![0u8; values.len().div_ceil(8)];
            for (n, _) in values.iter().enumerate().filter(|(_, (_, _, bytes))| bytes.is_none()) {
                nulls[n / 8] |= 1 << (n % 8);
            }
            payload.extend_from_slice(&nulls);
            payload.push(1);
            values.iter().for_each(|(code, unsigned, _)| payload.extend_from_slice(&[*code, *unsigned]));
            values.iter().for_each(|(_, _, bytes)| payload.extend_from_slice(bytes.unwrap_or_default()));
        }
        self.command(COM_STMT_EXECUTE, &payload);
        self.reply()
    }

    /// Sends a chunk of a parameter. There is no reply.
    pub fn send_long_data(&mut self, id: u32, param: u16, piece: &[u8]) {
        let payload = [&id.to_le_bytes()[..], &param.to_le_bytes(), piece].concat();
        self.command(COM_STMT_SEND_LONG_DATA, &payload);
    }

    pub fn close(&mut self, id: u32) {
        self.command(COM_STMT_CLOSE, &id.to_le_bytes());
    }

    /// Sends statements without waiting for the replies.
    pub fn send_query(&mut self, sql: &str) {
        self.command(COM_QUERY, sql.as_bytes());
    }

    fn command(&mut self, command: u8, payload: &[u8]) {
        self.sequence = 0;
        self.write(&[&[command], payload].concat());
    }

    fn reply(&mut self) -> Reply {
        let first = self.packet();
        match first[0] {
            0xff => error_of(&first),
            0 => {
                let mut read = Reader(&first[1..]);
                let (affected, insert_id) = (read.lenenc(), read.lenenc());
                let (status, warnings) = (read.number(2) as u16, read.number(2) as u16);
                Reply::Ok { affected, insert_id, status, warnings }
            }
            _ => {
                let count = Reader(&first).lenenc() as usize;
                let columns = self.definitions(count);
                self.rows(columns)
            }
        }
    }

    fn rows(&mut self, columns: Vec<Definition>) -> Reply {
        let mut rows = Vec::new();
        loop {
            let packet = self.packet();
            match packet[0] {
                0xff => return error_of(&packet),
                0xfe if packet.len() < 9 => {
                    let mut read = Reader(&packet[1..]);
                    let (warnings, status) = (read.number(2) as u16, read.number(2) as u16);
                    return Reply::Rows { columns, rows, status, warnings };
                }
                _ => rows.push(packet),
            }
        }
    }

    /// Reads definitions and the packet that ends them.
    fn definitions(&mut self, count: usize) -> Vec<Definition> {
        let list = (0..count).map(|_| self.definition()).collect();
        if count > 0 {
            assert_eq!(self.packet()[0], 0xfe, "the end of the definitions");
        }
        list
    }

    fn definition(&mut self) -> Definition {
        let packet = self.packet();
        let mut read = Reader(&packet);
        read.text();
        let mut column = Definition {
            schema: read.text(),
            table: read.text(),
            org_table: read.text(),
            name: read.text(),
            org_name: read.text(),
            ..Definition::default()
        };
        if self.wishes.extended_metadata {
            let length = read.lenenc() as usize;
            let mut pairs = Reader(read.bytes(length));
            while !pairs.0.is_empty() {
                let kind = if pairs.number(1) == 0 { "type" } else { "format" };
                column.extended.push(format!("{kind}={}", pairs.text()));
            }
        }
        assert_eq!(read.lenenc(), 12, "the fixed part");
        column.charset = read.number(2) as u16;
        column.length = read.number(4) as u32;
        column.type_code = read.number(1) as u8;
        column.flags = read.number(2) as u16;
        column.decimals = read.number(1) as u8;
        column
    }

    fn write(&mut self, payload: &[u8]) {
        let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
        self.stream.write_all(&[&[a, b, c, self.sequence], payload].concat()).expect("taken");
    }

    /// Returns the next packet's payload; continued packets are joined.
    fn packet(&mut self) -> Vec<u8> {
        let mut payload = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header).expect("a packet");
            self.sequence = header[3].wrapping_add(1);
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            let start = payload.len();
            payload.resize(start + length, 0);
            self.stream.read_exact(&mut payload[start..]).expect("a packet's payload");
            if length < 0xff_ffff {
                return payload;
            }
        }
    }
}

impl Reply {
    pub fn status(&self) -> u16 {
        match self {
            Reply::Ok { status, .. } | Reply::Rows { status, .. } => *status,
            Reply::Error { .. } => 0,
        }
    }

    pub fn warnings(&self) -> u16 {
        match self {
            Reply::Ok { warnings, .. } | Reply::Rows { warnings, .. } => *warnings,
            Reply::Error { .. } => 0,
        }
    }

    pub fn columns(&self) -> &[Definition] {
        match self {
            Reply::Rows { columns, .. } => columns,
            _ => &[],
        }
    }

    /// Returns the rows of the text protocol with columns separated by tabs, NULL as `NULL`.
    pub fn text_rows(&self) -> Vec<String> {
        let Reply::Rows { rows, .. } = self else { return Vec::new() };
        let line = |row: &Vec<u8>| {
            let mut read = Reader(row);
            let mut cells = Vec::new();
            while let Some(first) = read.0.first() {
                if *first == 0xfb {
                    read.number(1);
                    cells.push("NULL".to_owned());
                } else {
                    cells.push(read.text());
                }
            }
            cells.join("\t")
        };
        rows.iter().map(line).collect()
    }
}

fn error_of(packet: &[u8]) -> Reply {
    let code = u16::from_le_bytes([packet[1], packet[2]]);
    Reply::Error { code, text: String::from_utf8_lossy(packet.get(9..).unwrap_or_default()).into_owned() }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.bytes(bytes).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn lenenc(&mut self) -> u64 {
        match self.number(1) {
            0xfc => self.number(2),
            0xfd => self.number(3),
            0xfe => self.number(8),
            small => small,
        }
    }

    fn text(&mut self) -> String {
        let length = self.lenenc() as usize;
        String::from_utf8_lossy(self.bytes(length)).into_owned()
    }
}
