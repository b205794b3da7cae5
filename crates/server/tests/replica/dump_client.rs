//! A replica that only reads: it speaks the dump protocol in bytes and shows what comes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

const QUERY: u8 = 3;
const BINLOG_DUMP: u8 = 0x12;
const SEMI_SYNC: u8 = 0xef;
/// Payload of a packet that has a successor.
const FULL: usize = 0xff_ffff;

/// Where the type, the length, the end position and the flags of an event are.
const TYPE_AT: usize = 4;
const END_AT: usize = 13;
const FLAGS_AT: usize = 17;
const ROTATE: u8 = 4;
const FORMAT_DESCRIPTION: u8 = 15;
const HEARTBEAT: u8 = 27;
const ARTIFICIAL: u16 = 0x20;

/// What a dump sends.
#[derive(Debug)]
pub enum Sent {
    Event {
        event: Event,
        /// The source wants an answer.
        is_asked: bool,
    },
    /// The dump has ended, with an error's number and text perhaps.
    End(Option<(u16, String)>),
    /// The connection is gone.
    Gone,
}

/// An event as it came.
#[derive(Debug)]
pub struct Event(pub Vec<u8>);

impl Event {
    pub fn is_format_description(&self) -> bool {
        self.0[TYPE_AT] == FORMAT_DESCRIPTION
    }

    /// Whether it is of the dump, not of a file.
    pub fn is_made_up(&self) -> bool {
        self.0[TYPE_AT] == HEARTBEAT
            || u16::from_le_bytes([self.0[FLAGS_AT], self.0[FLAGS_AT + 1]]) & ARTIFICIAL != 0
    }

    /// The file that a made-up ROTATE names.
    pub fn names_file(&self) -> Option<String> {
        let is_it = self.0[TYPE_AT] == ROTATE && self.is_made_up();
        // Behind the header and the offset; a checksum closes it.
        is_it.then(|| String::from_utf8_lossy(&self.0[27..self.0.len() - 4]).into_owned())
    }

    /// Where it ends in its file.
    pub fn end(&self) -> u64 {
        u32::from_le_bytes(self.0[END_AT..END_AT + 4].try_into().expect("four bytes")).into()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Asynchronous,
    /// Packets carry the semi-synchronous header.
    Acknowledges,
}

pub struct DumpClient {
    stream: TcpStream,
    wish: Wish,
}

impl DumpClient {
    /// Logs in as root and asks for a dump from an offset of a file; it goes on for ever.
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

    /// Sends bytes as they are; the source may have gone away.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub fn cut(&self) {
        // It may be gone already.
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

    /// The next thing that comes.
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

/// The answer of a semi-synchronous replica that has everything up to here.
pub fn acknowledgement(file: &str, offset: u64) -> Vec<u8> {
    packet(0, &[&[SEMI_SYNC], offset.to_le_bytes().as_slice(), file.as_bytes()].concat())
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}
