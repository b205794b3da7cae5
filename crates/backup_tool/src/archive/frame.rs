//! Frames between server and archiver. docs/backup-format.md describes every byte.

use std::io::{self, Read, Write};

use crate::object::FRAME_BYTES_MAX;

/// Version of the frames.
pub const VERSION: u32 = 1;
const HEADER_BYTES: usize = 8;

const HELLO: u8 = 1;
const FILE: u8 = 2;
const RANGE: u8 = 3;
const START: u8 = 4;
const ACK: u8 = 5;
const ERROR: u8 = 6;

/// A timeline with the LSN where it begins.
pub type Branch = (u32, u64);

/// The server's first message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    pub version: u32,
    pub server_uuid: String,
    pub log_identity: u32,
    /// LSN from which the server can send.
    pub lsn: u64,
    pub newest_time: u64,
    /// Timelines, oldest first; the last is the server's own.
    pub history: Vec<Branch>,
}

/// A piece of a file that records name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePiece {
    pub timeline: u32,
    pub name: String,
    /// Length and checksum of the whole file.
    pub length: u64,
    pub crc: u32,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// The head of a range of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub timeline: u32,
    pub from: u64,
    pub to: u64,
    /// Times in microseconds; 0 is unknown.
    pub first_time: u64,
    pub last_time: u64,
    /// GTID position after the range.
    pub gtid: String,
    pub files: Vec<String>,
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Hello(Hello),
    File(FilePiece),
    Range(Range),
}

/// A message of the archiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Start { timeline: u32, lsn: u64 },
    Ack { timeline: u32, lsn: u64 },
    Error(String),
}

/// A frame whose checksum is right.
#[derive(Clone, Debug)]
pub struct Frame {
    /// All bytes, with length and checksum.
    pub raw: Vec<u8>,
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the frame {why}"))
}

/// Reads a frame; `None` at the end of the input.
pub fn read(input: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut raw = vec![0; HEADER_BYTES];
    let mut count = 0;
    while count < HEADER_BYTES {
        match input.read(&mut raw[count..]) {
            Ok(0) if count == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let word = |at: usize| u32::from_le_bytes(raw[at..at + 4].try_into().expect("4 bytes"));
    let (length, crc) = (word(0) as usize, word(4));
    if length == 0 || length > FRAME_BYTES_MAX {
        return Err(invalid("has an impossible length"));
    }
    // Memory grows with the bytes that arrive, not with the length that a damaged header states.
    let read = input.take(length as u64).read_to_end(&mut raw)?;
    if read < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match crc32c::crc32c(&raw[HEADER_BYTES..]) == crc {
        true => Ok(Some(Frame { raw })),
        false => Err(invalid("has a wrong checksum")),
    }
}

fn encode(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut raw = vec![0; HEADER_BYTES];
    raw.push(kind);
    raw.extend_from_slice(body);
    let length = (raw.len() - HEADER_BYTES) as u32;
    raw[..4].copy_from_slice(&length.to_le_bytes());
    let crc = crc32c::crc32c(&raw[HEADER_BYTES..]);
    raw[4..8].copy_from_slice(&crc.to_le_bytes());
    raw
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

/// The rest of a body.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()?;
        self.take(count as usize)
    }

    fn text(&mut self) -> Option<String> {
        Some(std::str::from_utf8(self.bytes()?).ok()?.to_owned())
    }

    fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

impl Frame {
    /// Decodes a message of the server.
    pub fn message(&self) -> io::Result<Message> {
        let kind = self.raw[HEADER_BYTES];
        let body = Body(&self.raw[HEADER_BYTES + 1..]);
        let message = match kind {
            HELLO => hello(body).map(Message::Hello),
            FILE => file(body).map(Message::File),
            RANGE => range(body).map(Message::Range),
            _ => return Err(invalid(&format!("has the unknown kind {kind}"))),
        };
        message.ok_or_else(|| invalid(&format!("of kind {kind} has a wrong body")))
    }

    /// Decodes a message of the archiver.
    pub fn answer(&self) -> io::Result<Answer> {
        let kind = self.raw[HEADER_BYTES];
        let mut body = Body(&self.raw[HEADER_BYTES + 1..]);
        let answer = match kind {
            START => body.u32().zip(body.u64()).map(|(timeline, lsn)| Answer::Start { timeline, lsn }),
            ACK => body.u32().zip(body.u64()).map(|(timeline, lsn)| Answer::Ack { timeline, lsn }),
            ERROR => body.text().map(Answer::Error),
            _ => None,
        };
        answer.ok_or_else(|| invalid(&format!("of kind {kind} is no answer")))
    }
}

fn hello(mut body: Body<'_>) -> Option<Hello> {
    let mut hello = Hello { version: body.u32()?, ..Hello::default() };
    // Only the version is known of a newer one.
    if hello.version != VERSION {
        return Some(hello);
    }
    (hello.server_uuid, hello.log_identity) = (body.text()?, body.u32()?);
    (hello.lsn, hello.newest_time) = (body.u64()?, body.u64()?);
    for _ in 0..body.u32()? {
        hello.history.push((body.u32()?, body.u64()?));
    }
    if hello.history.is_empty() { None } else { body.end(hello) }
}

fn file(mut body: Body<'_>) -> Option<FilePiece> {
    let piece = FilePiece {
        timeline: body.u32()?,
        name: body.text()?,
        length: body.u64()?,
        crc: body.u32()?,
        offset: body.u64()?,
        bytes: body.bytes()?.to_vec(),
    };
    body.end(piece)
}

fn range(mut body: Body<'_>) -> Option<Range> {
    let mut range = Range { timeline: body.u32()?, from: body.u64()?, to: body.u64()?, ..Range::default() };
    (range.first_time, range.last_time, range.gtid) = (body.u64()?, body.u64()?, body.text()?);
    for _ in 0..body.u32()? {
        range.files.push(body.text()?);
    }
    let bytes = body.bytes()?.len() as u64;
    let is_whole = range.from < range.to && range.to - range.from == bytes;
    if is_whole { body.end(range) } else { None }
}

impl Answer {
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut body = Vec::new();
        let kind = match self {
            Answer::Start { timeline, lsn } | Answer::Ack { timeline, lsn } => {
                body.extend_from_slice(&timeline.to_le_bytes());
                body.extend_from_slice(&lsn.to_le_bytes());
                if matches!(self, Answer::Start { .. }) { START } else { ACK }
            }
            Answer::Error(text) => {
                put_text(&mut body, text.as_bytes());
                ERROR
            }
        };
        out.write_all(&encode(kind, &body))?;
        out.flush()
    }
}

/// Encodes a HELLO, as the server does.
pub fn encode_hello(hello: &Hello) -> Vec<u8> {
    let mut body = hello.version.to_le_bytes().to_vec();
    put_text(&mut body, hello.server_uuid.as_bytes());
    body.extend_from_slice(&hello.log_identity.to_le_bytes());
    body.extend_from_slice(&hello.lsn.to_le_bytes());
    body.extend_from_slice(&hello.newest_time.to_le_bytes());
    body.extend_from_slice(&(hello.history.len() as u32).to_le_bytes());
    for (timeline, lsn) in &hello.history {
        body.extend_from_slice(&timeline.to_le_bytes());
        body.extend_from_slice(&lsn.to_le_bytes());
    }
    encode(HELLO, &body)
}

/// Encodes a FILE, as the server does.
pub fn encode_file(piece: &FilePiece) -> Vec<u8> {
    let mut body = piece.timeline.to_le_bytes().to_vec();
    put_text(&mut body, piece.name.as_bytes());
    body.extend_from_slice(&piece.length.to_le_bytes());
    body.extend_from_slice(&piece.crc.to_le_bytes());
    body.extend_from_slice(&piece.offset.to_le_bytes());
    put_text(&mut body, &piece.bytes);
    encode(FILE, &body)
}

/// Encodes a RANGE, as the server does.
pub fn encode_range(range: &Range, bytes: &[u8]) -> Vec<u8> {
    let mut body = range.timeline.to_le_bytes().to_vec();
    for number in [range.from, range.to, range.first_time, range.last_time] {
        body.extend_from_slice(&number.to_le_bytes());
    }
    put_text(&mut body, range.gtid.as_bytes());
    body.extend_from_slice(&(range.files.len() as u32).to_le_bytes());
    range.files.iter().for_each(|name| put_text(&mut body, name.as_bytes()));
    put_text(&mut body, bytes);
    encode(RANGE, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_round_and_each_damage_is_found() {
        let hello = Hello {
            version: VERSION,
            server_uuid: "u".to_owned(),
            log_identity: 7,
            lsn: 0x2000,
            newest_time: 5,
            history: vec![(1, 0), (1_764_000_000, 0x1000)],
        };
        let piece = FilePiece {
            timeline: 1,
            name: "f-1.x".to_owned(),
            length: 3,
            crc: 9,
            offset: 0,
            bytes: vec![1, 2, 3],
        };
        let range = Range {
            timeline: 1,
            from: 10,
            to: 14,
            first_time: 1,
            last_time: 2,
            gtid: "0-1-2".to_owned(),
            files: vec!["f-1.x".to_owned()],
        };
        let cases = [
            (encode_hello(&hello), Message::Hello(hello)),
            (encode_file(&piece), Message::File(piece)),
            (encode_range(&range, b"abcd"), Message::Range(range)),
        ];
        for (bytes, message) in cases {
            let whole = read(&mut &bytes[..]).expect("a frame").expect("no end");
            assert_eq!((whole.message().expect("decoded"), &whole.raw), (message, &bytes));
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(read(&mut &damaged[..]).is_err(), "bit {bit}");
            }
            for length in 1..bytes.len() {
                assert!(read(&mut &bytes[..length]).is_err(), "{length} bytes");
            }
        }
        assert!(read(&mut &[][..]).expect("the end").is_none());
        for answer in [
            Answer::Start { timeline: 1, lsn: 2 },
            Answer::Ack { timeline: 3, lsn: 4 },
            Answer::Error("why".to_owned()),
        ] {
            let mut bytes = Vec::new();
            answer.write(&mut bytes).expect("memory");
            let frame = read(&mut &bytes[..]).expect("a frame").expect("no end");
            assert_eq!(frame.answer().expect("decoded"), answer);
        }
    }
}
