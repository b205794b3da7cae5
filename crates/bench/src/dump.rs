//! Reader of the binary log: requests a dump like a replica and counts the events, but applies nothing.
//!
//! A packet is one byte followed by an event. A packet of 2^24-1 bytes is continued in the next one.

use std::fs::File;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use crate::connection::{self, Address, Connection, ConnectionError};
use crate::wire;

const COM_BINLOG_DUMP: u8 = 0x12;
/// The dump ends at the end of the log.
const NON_BLOCK: u16 = 1;
const SEND_ANNOTATIONS: u16 = 2;
const FULL: usize = 0xff_ffff;
const READ_BYTES: usize = 256 << 10;

/// Action at the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    Stop,
    Wait,
}

/// A position in the log.
#[derive(Clone, Debug)]
pub struct Place {
    pub file: String,
    pub offset: u32,
}

impl Place {
    /// Returns the end of the log.
    pub fn end(connection: &mut Connection) -> Result<Place, ConnectionError> {
        let rows = connection.query("SHOW MASTER STATUS")?;
        let place = rows
            .first()
            .and_then(|row| Some(Place { file: row[0].clone()?, offset: row[1].as_deref()?.parse().ok()? }));
        place.ok_or(ConnectionError::Protocol("no binary log"))
    }
}

/// Number of events and bytes received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub events: u64,
    pub bytes: u64,
}

/// Requests a dump. Returns its socket.
fn begin(address: &Address, number: u32, place: &Place, at_end: AtEnd) -> Result<File, ConnectionError> {
    let mut connection = Connection::open(address, "")?;
    connection.query("SET @master_binlog_checksum='CRC32', @mariadb_slave_capability=4")?;
    let flags = SEND_ANNOTATIONS | if at_end == AtEnd::Stop { NON_BLOCK } else { 0 };
    connection.command(COM_BINLOG_DUMP, |out| {
        out.extend_from_slice(&place.offset.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(place.file.as_bytes());
    })?;
    Ok(connection.into_socket().into_file())
}

/// Reads to the end of the log.
pub fn read_all(address: &Address, number: u32, place: &Place) -> Result<Tally, ConnectionError> {
    follow(begin(address, number, place, AtEnd::Stop)?)
}

/// Reads until the dump ends.
fn follow(mut socket: File) -> Result<Tally, ConnectionError> {
    let mut counter = Counter::default();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let bytes = connection::read(&mut socket, &mut buffer)?;
        if bytes == 0 {
            let closed = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "closed by the server");
            return Err(ConnectionError::Lost(closed));
        }
        if counter.take(&buffer[..bytes])? == Progress::Ended {
            return Ok(counter.tally);
        }
    }
}

/// A reader that follows the end of the log on its own thread until it is dropped.
pub struct Follower {
    socket: UnixStream,
    thread: Option<JoinHandle<u64>>,
}

impl Follower {
    pub fn start(address: &Address, number: u32, place: &Place) -> Result<Follower, ConnectionError> {
        let mut socket = begin(address, number, place, AtEnd::Wait)?;
        // `shutdown` works the same for all kinds of sockets.
        let handle = UnixStream::from(OwnedFd::from(socket.try_clone()?));
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut read) = (vec![0; READ_BYTES], 0);
            while let Ok(bytes @ 1..) = connection::read(&mut socket, &mut buffer) {
                read += bytes as u64;
            }
            read
        });
        Ok(Follower { socket: handle, thread: Some(thread) })
    }

    /// Returns whether the dump is still running.
    pub fn is_following(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the dump and returns the number of bytes received.
    pub fn end(mut self) -> u64 {
        self.stop()
    }

    fn stop(&mut self) -> u64 {
        // The dump may have ended before.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.thread.take().map_or(0, |thread| thread.join().expect("it only reads"))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    GoesOn,
    Ended,
}

/// Finds the events in a stream of packets, whatever the sizes of its reads.
#[derive(Default)]
struct Counter {
    tally: Tally,
    /// The part of a packet's header received so far.
    head: Vec<u8>,
    /// Remaining bytes of the current packet.
    left: usize,
    /// The current packet continues the event of the previous one.
    is_continuation: bool,
    /// The part received so far of a packet that is not an event.
    last: Option<Vec<u8>>,
}

impl Counter {
    fn take(&mut self, mut input: &[u8]) -> Result<Progress, ConnectionError> {
        while !input.is_empty() {
            if self.left == 0 && self.last.is_none() {
                input = self.begin(input);
                continue;
            }
            let (part, rest) = input.split_at(self.left.min(input.len()));
            self.left -= part.len();
            input = rest;
            let Some(last) = &mut self.last else {
                self.tally.bytes += part.len() as u64;
                continue;
            };
            last.extend_from_slice(part);
            if self.left == 0 {
                return match wire::is_error(last) {
                    true => Err(ConnectionError::Server(wire::parse_error(last))),
                    false => Ok(Progress::Ended),
                };
            }
        }
        Ok(Progress::GoesOn)
    }

    /// Parses a header and the first byte after it.
    fn begin<'i>(&mut self, input: &'i [u8]) -> &'i [u8] {
        let wanted = if self.is_continuation { 4 } else { 5 };
        let (part, rest) = input.split_at((wanted - self.head.len()).min(input.len()));
        self.head.extend_from_slice(part);
        if self.head.len() < wanted {
            return rest;
        }
        let len = u32::from_le_bytes([self.head[0], self.head[1], self.head[2], 0]) as usize;
        match self.head.get(4) {
            None => self.left = len,
            Some(0) => {
                self.left = len - 1;
                self.tally.events += 1;
            }
            Some(first) => {
                self.left = len - 1;
                self.last = Some(vec![*first]);
            }
        }
        self.is_continuation = len == FULL;
        self.head.clear();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stream of two events, the second one in two packets, and the end.
    fn stream() -> Vec<u8> {
        let mut stream = Vec::new();
        wire::packet(1, b"\0one", &mut stream);
        stream.extend_from_slice(&[0xff, 0xff, 0xff, 2]);
        stream.resize(stream.len() + FULL, 0);
        wire::packet(3, b"rest", &mut stream);
        wire::packet(4, &[0xfe, 0, 0, 2, 0], &mut stream);
        stream
    }

    #[test]
    fn events_are_counted_however_the_stream_is_cut() {
        let stream = stream();
        for piece in [3, 5, 1 << 20] {
            let mut counter = Counter::default();
            let mut progress = Progress::GoesOn;
            for part in stream.chunks(piece) {
                assert_eq!(progress, Progress::GoesOn);
                progress = counter.take(part).expect("no error");
            }
            assert_eq!(progress, Progress::Ended, "{piece}");
            assert_eq!(counter.tally, Tally { events: 2, bytes: 3 + FULL as u64 - 1 + 4 });
        }
    }

    #[test]
    fn an_error_ends_the_dump() {
        let mut packet = Vec::new();
        wire::packet(1, b"\xff\xd4\x04#HY000no", &mut packet);
        let refused = Counter::default().take(&packet);
        assert!(matches!(refused, Err(ConnectionError::Server(error)) if error.code == "1236"));
    }
}
