//! Asynchronous connection of a terminal, and the thread that drives all terminals.
//!
//! The load shares the processors with the server that it measures. One thread per terminal would cost as
//! much as the server: it is woken for each reply, and on a Unix socket again when its request is read.
//! Terminals are therefore futures, and [`drive`] polls the one whose reply has arrived.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{Errno, ioctl_fionbio};

use crate::connection::{ANSWER_TIMEOUT, Address, Connection, ConnectionError, Rows, text_row};
use crate::interrupt;
use crate::socket::Socket;
use crate::wire::{self, COM_QUERY};

const EVENTS_MAX: usize = 64;
/// Time between two checks whether the run is interrupted.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const CHUNK_BYTES: usize = 16 << 10;

/// A logged-in connection.
pub struct Line {
    socket: Socket,
    /// A request, then its reply.
    bytes: Vec<u8>,
}

impl Line {
    pub fn open(address: &Address, schema: &str) -> Result<Line, ConnectionError> {
        let socket = Connection::open(address, schema)?.into_socket();
        ioctl_fionbio(&socket, true).map_err(io::Error::from)?;
        Ok(Line { socket, bytes: Vec::new() })
    }

    /// Runs a statement of the text protocol.
    pub async fn query(&mut self, sql: &str) -> Result<Rows, ConnectionError> {
        self.bytes.clear();
        wire::command(COM_QUERY, &mut self.bytes, |out| out.extend_from_slice(sql.as_bytes()));
        // A request is far smaller than an empty socket buffer, so it is always written completely.
        self.socket.write_all(&self.bytes)?;
        self.bytes.clear();
        loop {
            self.receive().await?;
            if let Some(rows) = answer(&self.bytes)? {
                return Ok(rows);
            }
        }
    }

    /// Waits for an event and reads.
    async fn receive(&mut self) -> io::Result<()> {
        let mut is_reported = false;
        let bytes = poll_fn(|_| {
            if !std::mem::replace(&mut is_reported, true) {
                return Poll::Pending;
            }
            let old = self.bytes.len();
            self.bytes.resize(old + CHUNK_BYTES, 0);
            let read = self.socket.read(&mut self.bytes[old..]);
            self.bytes.truncate(old + read.as_ref().copied().unwrap_or(0));
            match read {
                Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
                other => Poll::Ready(other),
            }
        });
        match bytes.await? {
            0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "closed by the server")),
            _ => Ok(()),
        }
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the rows of a reply once it is complete.
fn answer(bytes: &[u8]) -> Result<Option<Rows>, ConnectionError> {
    let mut rest = bytes;
    let mut next = || {
        let (payload, size) = wire::next_packet(rest)?;
        rest = &rest[size..];
        Some(payload)
    };
    let Some(head) = next() else { return Ok(None) };
    if wire::is_error(head) {
        return Err(ConnectionError::Server(wire::parse_error(head)));
    }
    if head.first() == Some(&0) {
        return Ok(Some(Rows::new()));
    }
    let (columns, _) = wire::length_encoded(head).ok_or(ConnectionError::Protocol("column count"))?;
    for _ in 0..=columns {
        if next().is_none() {
            return Ok(None);
        }
    }
    let mut rows = Rows::new();
    while let Some(packet) = next() {
        if wire::is_error(packet) {
            return Err(ConnectionError::Server(wire::parse_error(packet)));
        }
        if wire::is_eof(packet) {
            return Ok(Some(rows));
        }
        rows.push(text_row(packet, columns).ok_or(ConnectionError::Protocol("row"))?);
    }
    Ok(None)
}

/// Starts a future for each terminal, and polls it when the terminal's socket has input, until all futures
/// have ended. Calls `look` between two events.
pub fn drive<S: AsFd, F: Future<Output = Result<T, ConnectionError>>, T>(
    terminals: Vec<S>,
    start: impl Fn(S) -> F,
    mut look: impl FnMut(),
) -> Result<Vec<T>, ConnectionError> {
    let gone = |error: Errno| ConnectionError::from(io::Error::from(error));
    let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(gone)?;
    let mut context = Context::from_waker(Waker::noop());
    let (mut futures, mut done) = (Vec::new(), Vec::new());
    for (n, terminal) in terminals.into_iter().enumerate() {
        epoll::add(&epoll, &terminal, EventData::new_u64(n as u64), EventFlags::IN).map_err(gone)?;
        futures.push(Some(Box::pin(start(terminal))));
    }
    let mut poll = |future: &mut Option<Pin<Box<F>>>| -> Result<(), ConnectionError> {
        let Some(running) = future else { return Ok(()) };
        if let Poll::Ready(result) = Future::poll(Pin::as_mut(running), &mut context) {
            *future = None;
            done.push(result?);
        }
        Ok(())
    };
    futures.iter_mut().try_for_each(&mut poll)?;
    let mut ready = Vec::with_capacity(EVENTS_MAX);
    let mut heard = Instant::now();
    while futures.iter().any(Option::is_some) {
        ready.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut ready), Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(gone(error)),
        }
        look();
        if ready.is_empty() && (heard.elapsed() > ANSWER_TIMEOUT || interrupt::is_requested()) {
            return Err(ConnectionError::Protocol("no answer"));
        }
        for event in &ready {
            heard = Instant::now();
            poll(&mut futures[event.data.u64() as usize])?;
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for (sequence, payload) in (1..).zip(payloads) {
            wire::packet(sequence, payload, &mut out);
        }
        out
    }

    #[test]
    fn an_answer_is_read_once_all_of_it_is_there() {
        let eof: &[u8] = &[0xfe, 0, 0, 2, 0];
        let bytes = packets(&[&[1], b"definition", eof, b"\x02ab", &[0xfb], eof]);
        for end in 0..bytes.len() {
            assert_eq!(answer(&bytes[..end]).expect("no error"), None);
        }
        let rows = answer(&bytes).expect("no error");
        assert_eq!(rows, Some(vec![vec![Some("ab".to_owned())], vec![None]]));
    }

    #[test]
    fn an_answer_without_rows_and_an_error() {
        assert_eq!(answer(&packets(&[&[0, 1, 0, 2, 0, 0, 0]])).expect("no error"), Some(Rows::new()));
        let error = answer(&packets(&[b"\xff\xb5\x04#40001Deadlock"]));
        assert!(matches!(error, Err(ConnectionError::Server(error)) if error.code == "1205"));
    }
}
