//! Frames of the archive of the log: between the server and the program that stores it, and in the objects of
//! the repository (docs/backup-format.md).

use std::fmt;
use std::io::{self, Read};

use cohort_base::{Reader, Truncated, Write as _};

/// Version of the format that HELLO names.
pub const ARCHIVE_FORMAT: u32 = 2;
/// Maximum length of kind and body.
pub const FRAME_BYTES_MAX: u32 = 96 << 20;
/// Bytes before kind and body: their length and checksum.
const HEAD_BYTES: usize = 8;

/// A timeline and the LSN where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineStart {
    pub timeline: u32,
    pub lsn: u64,
}

/// First frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub format: u32,
    pub server_uuid: String,
    /// Random number that a log has in common with its copies.
    pub log_identity: u32,
    /// LSN from which the server can send.
    pub lsn: u64,
    /// LSN, at most `lsn`, from which the server can compare its log with that of the repository.
    pub proof_lsn: u64,
    /// Newest time, in microseconds since 1970; 0 if it is not known.
    pub time_us: u64,
    /// The server's timeline and its ancestors, oldest first.
    pub timelines: Vec<TimelineStart>,
}

/// A piece of a file that a later range names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePiece {
    pub timeline: u32,
    pub name: String,
    /// Length and CRC-32C of the whole file.
    pub file_bytes: u64,
    pub file_crc: u32,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// Whole records of the log, with what restores look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRange {
    pub timeline: u32,
    pub from: u64,
    pub to: u64,
    /// [`chained`] over the ranges before it, back to the last gap; absent in ranges of format 1.
    pub chain: Option<u32>,
    /// Time of the first and the last record, in microseconds since 1970; 0 if it is not known.
    pub first_us: u64,
    pub last_us: u64,
    /// GTID position after the range; empty if it is not known.
    pub gtid_position: String,
    /// Files that the records name.
    pub files: Vec<String>,
    /// Bytes of the stream, `to - from` of them.
    pub bytes: Vec<u8>,
}

/// First frame of the program: where the server begins to send, and what proves that the repository has
/// the log of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub timeline: u32,
    /// End of what the repository has.
    pub lsn: u64,
    /// [`chained`] up to there.
    pub chain: u32,
    /// The begin of the first range, at or after the `proof_lsn` of HELLO, from which the repository has
    /// everything, or `lsn`.
    pub proof_lsn: u64,
    /// [`chained`] up to there.
    pub proof_chain: u32,
}

/// Returns the checksum of the log up to the end of these bytes; `chain` covers what is before them. Two logs
/// with one identity have the same one only if they have the same records. It is a CRC-32, because the
/// records contain their CRC-32C.
pub fn chained(chain: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(chain);
    hasher.update(bytes);
    hasher.finalize()
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Hello(Hello),
    File(FilePiece),
    Range(LogRange),
    /// The server waits for the acknowledgement of the ranges before it.
    Flush,
    Start(Start),
    /// The repository has the log of this timeline up to this LSN.
    Ack(TimelineStart),
    Error(String),
}

/// A frame is damaged or of an unknown kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError(pub &'static str);

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a frame of the archive is damaged: {}", self.0)
    }
}

impl std::error::Error for FrameError {}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Frame::Hello(_) => 1,
            Frame::File(_) => 2,
            Frame::Range(range) if range.chain.is_none() => 3,
            Frame::Range(_) => 7,
            Frame::Start(_) => 4,
            Frame::Ack(_) => 5,
            Frame::Error(_) => 6,
            Frame::Flush => 8,
        }
    }

    /// Appends the frame with its length and checksum.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.put_u64(0);
        out.put_u8(self.kind());
        match self {
            Frame::Hello(hello) => {
                out.put_u32(hello.format);
                put(out, hello.server_uuid.as_bytes());
                out.put_u32(hello.log_identity);
                out.put_u64(hello.lsn);
                out.put_u64(hello.proof_lsn);
                out.put_u64(hello.time_us);
                out.put_u32(hello.timelines.len() as u32);
                hello.timelines.iter().for_each(|it| it.encode(out));
            }
            Frame::File(piece) => {
                out.put_u32(piece.timeline);
                put(out, piece.name.as_bytes());
                out.put_u64(piece.file_bytes);
                out.put_u32(piece.file_crc);
                out.put_u64(piece.offset);
                put(out, &piece.bytes);
            }
            Frame::Range(range) => {
                out.put_u32(range.timeline);
                for number in [range.from, range.to, range.first_us, range.last_us] {
                    out.put_u64(number);
                }
                range.chain.into_iter().for_each(|chain| out.put_u32(chain));
                put(out, range.gtid_position.as_bytes());
                out.put_u32(range.files.len() as u32);
                range.files.iter().for_each(|name| put(out, name.as_bytes()));
                put(out, &range.bytes);
            }
            Frame::Start(start) => {
                TimelineStart { timeline: start.timeline, lsn: start.lsn }.encode(out);
                out.put_u32(start.chain);
                out.put_u64(start.proof_lsn);
                out.put_u32(start.proof_chain);
            }
            Frame::Ack(at) => at.encode(out),
            Frame::Flush => {}
            Frame::Error(text) => put(out, text.as_bytes()),
        }
        let body = begin + HEAD_BYTES;
        let (bytes, crc) = ((out.len() - body) as u32, crc32c::crc32c(&out[body..]));
        out[begin..begin + 4].copy_from_slice(&bytes.to_le_bytes());
        out[begin + 4..body].copy_from_slice(&crc.to_le_bytes());
    }

    /// Decodes the frame at the beginning of these bytes. Returns it and its length, or `None` if more bytes
    /// are needed.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Frame, usize)>, FrameError> {
        let Some((body_bytes, crc)) = head(bytes)? else { return Ok(None) };
        let Some(body) = bytes.get(HEAD_BYTES..HEAD_BYTES + body_bytes) else { return Ok(None) };
        Ok(Some((decode_body(body, crc)?, HEAD_BYTES + body_bytes)))
    }

    /// Reads a frame. Returns `None` at the end of the input, between two frames.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Frame>> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut start = [0; HEAD_BYTES];
        if from.read(&mut start[..1])? == 0 {
            return Ok(None);
        }
        from.read_exact(&mut start[1..])?;
        let (body_bytes, crc) = head(&start).map_err(invalid)?.expect("the head is whole");
        let mut body = vec![0; body_bytes];
        from.read_exact(&mut body)?;
        decode_body(&body, crc).map(Some).map_err(invalid)
    }
}

impl TimelineStart {
    fn encode(self, out: &mut Vec<u8>) {
        out.put_u32(self.timeline);
        out.put_u64(self.lsn);
    }

    fn decode(r: &mut Reader<'_>) -> Result<TimelineStart, Truncated> {
        Ok(TimelineStart { timeline: r.u32()?, lsn: r.u64()? })
    }
}

/// Returns the length of kind and body, and their checksum. Returns `None` if the head is cut off.
fn head(bytes: &[u8]) -> Result<Option<(usize, u32)>, FrameError> {
    let mut r = Reader::new(bytes);
    let (Ok(body_bytes), Ok(crc)) = (r.u32(), r.u32()) else { return Ok(None) };
    if !(1..=FRAME_BYTES_MAX).contains(&body_bytes) {
        return Err(FrameError("its length"));
    }
    Ok(Some((body_bytes as usize, crc)))
}

fn decode_body(body: &[u8], crc: u32) -> Result<Frame, FrameError> {
    if crc32c::crc32c(body) != crc {
        return Err(FrameError("its checksum"));
    }
    let mut r = Reader::new(body);
    let frame = decode_kind(&mut r).map_err(|_| FrameError("its contents"))?;
    match frame {
        Some(frame) if r.is_empty() => Ok(frame),
        Some(_) => Err(FrameError("its contents")),
        None => Err(FrameError("its kind")),
    }
}

fn decode_kind(r: &mut Reader<'_>) -> Result<Option<Frame>, Truncated> {
    Ok(Some(match r.u8()? {
        1 => {
            let (format, server_uuid, log_identity) = (r.u32()?, text(r)?, r.u32()?);
            let (lsn, proof_lsn, time_us) = (r.u64()?, r.u64()?, r.u64()?);
            let timelines = (0..r.u32()?).map(|_| TimelineStart::decode(r)).collect::<Result<_, _>>()?;
            Frame::Hello(Hello { format, server_uuid, log_identity, lsn, proof_lsn, time_us, timelines })
        }
        2 => Frame::File(FilePiece {
            timeline: r.u32()?,
            name: text(r)?,
            file_bytes: r.u64()?,
            file_crc: r.u32()?,
            offset: r.u64()?,
            bytes: bytes(r)?.to_vec(),
        }),
        kind @ (3 | 7) => {
            let range = LogRange {
                timeline: r.u32()?,
                from: r.u64()?,
                to: r.u64()?,
                first_us: r.u64()?,
                last_us: r.u64()?,
                chain: if kind == 7 { Some(r.u32()?) } else { None },
                gtid_position: text(r)?,
                files: (0..r.u32()?).map(|_| text(r)).collect::<Result<_, _>>()?,
                bytes: bytes(r)?.to_vec(),
            };
            if range.to.checked_sub(range.from) != Some(range.bytes.len() as u64) {
                return Err(Truncated);
            }
            Frame::Range(range)
        }
        4 => {
            let TimelineStart { timeline, lsn } = TimelineStart::decode(r)?;
            let (chain, proof_lsn, proof_chain) = (r.u32()?, r.u64()?, r.u32()?);
            Frame::Start(Start { timeline, lsn, chain, proof_lsn, proof_chain })
        }
        5 => Frame::Ack(TimelineStart::decode(r)?),
        6 => Frame::Error(text(r)?),
        8 => Frame::Flush,
        _ => return Ok(None),
    }))
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn bytes<'b>(r: &mut Reader<'b>) -> Result<&'b [u8], Truncated> {
    let len = r.u32()? as usize;
    r.bytes(len)
}

fn text(r: &mut Reader<'_>) -> Result<String, Truncated> {
    String::from_utf8(bytes(r)?.to_vec()).map_err(|_| Truncated)
}

/// Returns whether a name of a file in the archive is one: it names no other directory.
pub fn is_archive_file_name(name: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || c == b'.' || c == b'-';
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(chain: Option<u32>) -> LogRange {
        LogRange {
            timeline: 7,
            from: 4096,
            to: 4100,
            chain,
            first_us: 1,
            last_us: 2,
            gtid_position: "0-1-5".to_owned(),
            files: vec!["a.redo".to_owned(), "b.spill".to_owned()],
            bytes: vec![9; 4],
        }
    }

    fn frames() -> Vec<Frame> {
        let at = TimelineStart { timeline: 7, lsn: 4096 };
        vec![
            Frame::Hello(Hello {
                format: ARCHIVE_FORMAT,
                server_uuid: "5f1c".to_owned(),
                log_identity: 9,
                lsn: 48,
                proof_lsn: 40,
                time_us: 11,
                timelines: vec![TimelineStart { timeline: 1, lsn: 0 }, at],
            }),
            Frame::File(FilePiece {
                timeline: 7,
                name: "000000000012.redo".to_owned(),
                file_bytes: 3,
                file_crc: 5,
                offset: 0,
                bytes: vec![1, 2, 3],
            }),
            Frame::Range(range(None)),
            Frame::Range(range(Some(0))),
            Frame::Start(Start { timeline: 7, lsn: 4096, chain: 3, proof_lsn: 2048, proof_chain: 4 }),
            Frame::Ack(at),
            Frame::Flush,
            Frame::Error("another server archives to this place".to_owned()),
        ]
    }

    #[test]
    fn frames_round_trip_one_after_the_other() {
        let mut bytes = Vec::new();
        frames().iter().for_each(|frame| frame.encode(&mut bytes));
        let (mut from, mut at) = (&bytes[..], 0);
        for frame in frames() {
            assert_eq!(Frame::read(&mut from).expect("whole"), Some(frame.clone()));
            let (decoded, len) = Frame::decode(&bytes[at..]).expect("whole").expect("there");
            assert_eq!(decoded, frame);
            at += len;
        }
        assert_eq!(Frame::read(&mut from).expect("the end"), None);
        assert_eq!((Frame::decode(&bytes[at..]), at), (Ok(None), bytes.len()));
    }

    #[test]
    fn cut_and_damaged_frames_are_not_believed() {
        for frame in frames() {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            for len in 0..bytes.len() {
                assert_eq!(Frame::decode(&bytes[..len]), Ok(None), "{len} bytes of {frame:?}");
                assert_eq!(Frame::read(&mut &bytes[..len]).is_ok(), len == 0, "{len} bytes of {frame:?}");
            }
            for bit in 32..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(Frame::decode(&bytes).is_err(), "bit {bit} of {frame:?}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn a_chain_does_not_depend_on_the_borders_of_ranges() {
        let bytes: Vec<u8> = (0..200).collect();
        (0..200).for_each(|at| {
            let (first, second) = bytes.split_at(at);
            assert_eq!(chained(chained(9, first), second), chained(9, &bytes), "{at}");
        });
        assert_ne!(chained(9, &bytes), chained(8, &bytes));
    }

    #[test]
    fn names_of_files_stay_in_their_directory() {
        for (name, is_one) in [("000000000012.redo", true), ("a-1.spill", true), ("", false), ("..", false)] {
            assert_eq!(is_archive_file_name(name), is_one, "{name}");
        }
        ["a/b", "a\\b", ".hidden", "a b", "ä"].iter().for_each(|name| assert!(!is_archive_file_name(name)));
    }
}
