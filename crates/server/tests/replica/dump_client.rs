//! A replica that only reads: it uses the dump protocol directly and returns what it receives.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

const QUERY: u8 = 3;
const BINLOG_DUMP: u8 = 0x12;
const SEMI_SYNC: u8 = 0xef;
/// Payload length of a packet that is continued in the next one.
const FULL: usize = 0xff_ffff;

/// Offsets of the type, end position and flags within an event.
const TYPE_AT: usize = 4;
const END_AT: usize = 13;
const FLAGS_AT: usize = 17;
const ROTATE: u8 = 4;
const FORMAT_DESCRIPTION: u8 = 15;
const HEARTBEAT: u8 = 27;
const ARTIFICIAL: u16 = 0x20;

/// An item received from a dump.
#[derive(Debug)]
pub enum Sent {
    Event {
        event: Event,
        /// The source requests an acknowledgement.
        is_asked: bool,
    },
    /// The dump has ended, possibly with an error's number and text.
    End(Option<(u16, String)>),
    /// The connection is closed.
    Gone,
}

/// An event as received.
#[derive(Debug)]
pub struct Event(pub Vec<u8>);

impl Event {
    pub fn is_format_description(&self) -> bool {
        self.0[TYPE_AT] == FORMAT_DESCRIPTION
    }

    /// Returns whether the event is artificial, rather than read from a file.
    pub fn is_made_up(&self) -> bool {
        self.0[TYPE_AT] == HEARTBEAT
            || u16::from_le_bytes([self.0[FLAGS_AT], self.0[FLAGS_AT + 1]]) & ARTIFICIAL != 0
    }

    /// Returns the file named by an artificial ROTATE event.
    pub fn names_file(&self) -> Option<String> {
        let is_it = self.0[TYPE_AT] == ROTATE && self.is_made_up();
        // After the header and the offset; a checksum follows.
        is_it.then(|| String::from_utf8_lossy(&self.0[27..self.0.len() - 4]).into_owned())
    }

    /// Returns the event's end position in its file.
    pub fn end(&self) -> u64 {
        u32::from_le_bytes(self.0[END_AT..END_AT + 4].try_into().expect("four bytes")).into()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Asynchronous,
    /// Packets have the semi-synchronous header.
    Acknowledges,
}

pub struct DumpClient {
    stream: TcpStream,
    wish: Wish,
}

impl DumpClient {
    /// Logs in as root and requests a dump from an offset of a file. The dump does not end at the end of the
    /// log.
    pub fn start(port: u16, server_id: u32, wish: Wish, file: &str, offset: u32) -> DumpClient {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        let mut client = DumpClient { stream, wish };
        assert_eq!(client.payload().expect("a greeting")[0], 10);
        let capabilities: u32 = 1 << 9 | 1 << 15 | 1 << 19;
        let mut login = capabilities.to_le_bytes().to_vec();
        login.extend_from_slice(&[0, 0, 0, 1, 45]);
        login.extend_from_slice(&[0; 23]);
        login.extend_from_slice(b"root\0\0mysql_native_password\0");
        client.send(1, &login);
        assert_eq!(client.payload().expect("an answer")[0], 0, "let in");
        client.set("@master_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4");
        client.set("@master_heartbeat_period = 1000000000");
        if wish == Wish::Acknowledges {
            client.set("@rpl_semi_sync_slave = 1");
        }
        // With annotations.
        let mut dump = vec![BINLOG_DUMP];
        dump.extend_from_slice(&offset.to_le_bytes());
        dump.extend_from_slice(&2_u16.to_le_bytes());
        dump.extend_from_slice(&server_id.to_le_bytes());
        dump.extend_from_slice(file.as_bytes());
        client.send(0, &dump);
        client
    }

    fn set(&mut self, what: &str) {
        self.send(0, &[&[QUERY], b"SET ".as_slice(), what.as_bytes()].concat());
        assert_eq!(self.payload().expect("an answer")[0], 0, "{what}");
    }

    fn send(&mut self, sequence: u8, payload: &[u8]) {
        self.stream.write_all(&packet(sequence, payload)).expect("taken");
    }

    /// Sends raw bytes. The source may have closed the connection.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub fn cut(&self) {
        // It may already be closed.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn payload(&mut self) -> Option<Vec<u8>> {
        let mut whole = Vec::new();
        loop {
            let mut head = [0; 4];
            self.stream.read_exact(&mut head).ok()?;
            let len = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            let start = whole.len();
            whole.resize(start + len, 0);
            self.stream.read_exact(&mut whole[start..]).ok()?;
            if len < FULL {
                return Some(whole);
            }
        }
    }

    /// Returns the next item.
    pub fn next(&mut self) -> Sent {
        let Some(mut payload) = self.payload() else { return Sent::Gone };
        match payload[0] {
            0xff => {
                let text = String::from_utf8_lossy(&payload[9..]).into_owned();
                Sent::End(Some((u16::from_le_bytes([payload[1], payload[2]]), text)))
            }
            0xfe if payload.len() < 9 => Sent::End(None),
            _ => {
                let is_marked = self.wish == Wish::Acknowledges && payload[1] == SEMI_SYNC;
                let is_asked = is_marked && payload[2] == 1;
                payload.drain(..if is_marked { 3 } else { 1 });
                Sent::Event { event: Event(payload), is_asked }
            }
        }
    }
}

/// Returns a semi-synchronous replica's acknowledgement of everything up to this position.
pub fn acknowledgement(file: &str, offset: u64) -> Vec<u8> {
    packet(0, &[&[SEMI_SYNC], offset.to_le_bytes().as_slice(), file.as_bytes()].concat())
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}
