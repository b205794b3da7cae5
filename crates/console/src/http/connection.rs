//! One connection: its records, its states, its limits.
//!
//! # States
//! ```text
//! Reading --request--> Waiting --answer--> Writing --all sent--> Reading (keep-alive) or Draining --> closed
//!    \--answered at once, or rejected---------^
//! ```
//! The first byte decides whether the connection is encrypted: 0x16 begins a TLS handshake, and no request.
//! Draining reads what the client still sends: if the socket were closed with unread input, the kernel would
//! reset the connection, and the client could lose the response.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use cohort_tls::TlsStream;

use super::request::{Method, Parsed, Request, parse};
use super::response::{Body, Response};
use super::{ANSWER_MAX, BODY_BYTES_MAX, DRAIN_MAX, HEAD_BYTES_MAX, IDLE_MAX, READ_MAX, WRITE_MAX};

/// Bytes read at a time. TLS needs half of them for records.
const BUFFER_BYTES: usize = 32 << 10;
/// First byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// The other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub address: SocketAddr,
    /// Version and cipher, if the connection is encrypted.
    pub encryption: Option<(&'static str, &'static str)>,
}

impl Peer {
    /// Returns whether the other side is a process of this machine.
    pub fn is_loopback(&self) -> bool {
        self.ip().is_loopback()
    }

    /// Returns the address; that of an IPv4 client on a socket for both versions is its own.
    pub fn ip(&self) -> IpAddr {
        self.address.ip().to_canonical()
    }

    /// Returns whether a password may pass over the connection.
    pub fn is_private(&self) -> bool {
        self.encryption.is_some() || self.is_loopback()
    }
}

enum State {
    Reading,
    /// The worker thread has the request.
    Waiting,
    Writing(Output),
    Draining,
}

/// A response that is being sent.
struct Output {
    head: Vec<u8>,
    body: Option<Body>,
    sent: usize,
    keep_alive: bool,
}

enum Layer {
    /// Nothing was received.
    Unknown,
    Plain,
    Tls(Box<TlsStream>),
}

/// Progress of a connection.
pub(super) enum Progress {
    Goes,
    /// A request is complete; the state is Waiting until it is answered.
    Request(Box<Request>),
    /// The connection must be closed.
    Over,
}

pub(super) struct Connection {
    socket: TcpStream,
    /// Identity, for answers of the worker thread.
    pub id: u64,
    address: SocketAddr,
    layer: Layer,
    state: State,
    pub deadline: Instant,
    /// Begin of the state.
    since: Instant,
    /// Bytes that belong to no complete request yet.
    input: Vec<u8>,
    is_head: bool,
    keeps: bool,
}

impl Connection {
    pub fn new(socket: TcpStream, address: SocketAddr, id: u64) -> Connection {
        let now = Instant::now();
        Connection {
            socket,
            id,
            address,
            layer: Layer::Unknown,
            state: State::Reading,
            deadline: now + READ_MAX,
            since: now,
            input: Vec::new(),
            is_head: false,
            keeps: false,
        }
    }

    /// Creates a connection that is rejected because there are too many. Nothing of it is parsed.
    pub fn rejected(socket: TcpStream, address: SocketAddr) -> Connection {
        let mut own = Connection::new(socket, address, 0);
        own.layer = Layer::Plain;
        own.answer(&Response::status(503));
        own
    }

    pub fn peer(&self) -> Peer {
        let encryption = match &self.layer {
            Layer::Tls(stream) => Some((stream.version(), stream.cipher())),
            _ => None,
        };
        Peer { address: self.address, encryption }
    }

    pub fn stream(&self) -> Option<&TlsStream> {
        match &self.layer {
            Layer::Tls(stream) => Some(stream),
            _ => None,
        }
    }

    pub fn polled(&self) -> (BorrowedFd<'_>, bool, bool) {
        let owes = matches!(&self.layer, Layer::Tls(stream) if stream.has_unsent());
        let (input, output) = match self.state {
            State::Reading | State::Draining => (true, owes),
            // No event but the end of the connection matters.
            State::Waiting => (false, owes),
            State::Writing(_) => (false, true),
        };
        (self.socket.as_fd(), input, output)
    }

    /// Returns whether the connection may be closed for another one: it has sent no complete request for a
    /// second, or waits for the other side to close.
    pub fn is_dispensable(&self, now: Instant) -> bool {
        match self.state {
            State::Reading => now.duration_since(self.since) >= Duration::from_secs(1),
            State::Draining => true,
            State::Waiting | State::Writing(_) => false,
        }
    }

    fn enter(&mut self, state: State, time: Duration) {
        self.since = Instant::now();
        self.deadline = self.since + time;
        self.state = state;
    }

    /// Prepares a response. [`Connection::go_on`] sends it.
    pub fn answer(&mut self, response: &Response) {
        let head = response.head(self.keeps);
        let body = (!self.is_head).then(|| response.body.clone());
        let output = Output { head, body, sent: 0, keep_alive: self.keeps };
        self.enter(State::Writing(output), WRITE_MAX);
    }

    /// Reads or writes as much as the socket allows without blocking. `accept_tls` begins TLS with the bytes
    /// that have arrived; it returns `None` if the server has no certificate.
    pub fn go_on(&mut self, accept_tls: &dyn Fn(Vec<u8>) -> Option<TlsStream>) -> io::Result<Progress> {
        loop {
            match self.state {
                State::Reading => {
                    let taken = self.take_request();
                    if let Some(progress) = taken {
                        return Ok(progress);
                    }
                    if matches!(self.state, State::Writing(_)) {
                        continue;
                    }
                    match self.read(accept_tls)? {
                        Some(0) => return Ok(Progress::Over),
                        Some(_) => {}
                        None => return Ok(Progress::Goes),
                    }
                }
                State::Waiting => {
                    // Without records to send, the only event is the end of the connection.
                    let owes = self.stream().is_some_and(TlsStream::has_unsent);
                    if owes {
                        self.flush()?;
                    }
                    return Ok(if owes { Progress::Goes } else { Progress::Over });
                }
                State::Writing(_) => match self.write()? {
                    false => return Ok(Progress::Goes),
                    true => self.sent()?,
                },
                State::Draining => match self.read(accept_tls)? {
                    Some(0) => return Ok(Progress::Over),
                    Some(_) => self.input.clear(),
                    None => return Ok(Progress::Goes),
                },
            }
        }
    }

    /// Takes a complete request out of the input, or begins its rejection.
    fn take_request(&mut self) -> Option<Progress> {
        if self.input.is_empty() {
            return None;
        }
        match parse(&self.input) {
            Parsed::Incomplete => None,
            Parsed::Rejected(status) => {
                (self.is_head, self.keeps) = (false, false);
                self.answer(&Response::status(status));
                None
            }
            Parsed::Whole(request, length) => {
                self.input.drain(..length);
                self.is_head = request.method == Method::Head;
                self.keeps = request.keep_alive;
                self.enter(State::Waiting, ANSWER_MAX);
                Some(Progress::Request(request))
            }
        }
    }

    /// The response is sent.
    fn sent(&mut self) -> io::Result<()> {
        let State::Writing(output) = &self.state else { return Ok(()) };
        if output.keep_alive {
            self.enter(State::Reading, IDLE_MAX);
            return Ok(());
        }
        if let Layer::Tls(stream) = &mut self.layer {
            stream.close(&mut &self.socket);
        }
        self.socket.shutdown(Shutdown::Write)?;
        self.input = Vec::new();
        self.enter(State::Draining, DRAIN_MAX);
        Ok(())
    }

    /// Reads into `input`. Returns the number of bytes, 0 at the end; `None` if nothing has arrived.
    fn read(&mut self, accept_tls: &dyn Fn(Vec<u8>) -> Option<TlsStream>) -> io::Result<Option<usize>> {
        if self.input.len() > HEAD_BYTES_MAX + BODY_BYTES_MAX + BUFFER_BYTES {
            return Ok(Some(0));
        }
        let mut buffer = [0; BUFFER_BYTES];
        if let Layer::Unknown = self.layer {
            let Some(count) = unless_blocked((&self.socket).read(&mut buffer))? else { return Ok(None) };
            match (count, buffer[0]) {
                (0, _) => return Ok(Some(0)),
                (_, HANDSHAKE) => match accept_tls(buffer[..count].to_vec()) {
                    Some(stream) => self.layer = Layer::Tls(Box::new(stream)),
                    None => return Ok(Some(0)),
                },
                _ => {
                    self.layer = Layer::Plain;
                    self.input.extend_from_slice(&buffer[..count]);
                    return Ok(Some(count));
                }
            }
        }
        let count = match &mut self.layer {
            Layer::Tls(stream) => {
                unless_blocked(stream.read(&mut &self.socket, &mut buffer))?.map(|received| received.bytes)
            }
            _ => unless_blocked((&self.socket).read(&mut buffer))?,
        };
        self.input.extend_from_slice(&buffer[..count.unwrap_or(0)]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<bool> {
        match &mut self.layer {
            Layer::Tls(stream) => stream.flush(&mut &self.socket),
            _ => Ok(true),
        }
    }

    /// Sends as much as the socket takes. Returns whether all is sent.
    fn write(&mut self) -> io::Result<bool> {
        let State::Writing(output) = &mut self.state else { return Ok(true) };
        loop {
            let body = output.body.as_ref().map_or(&[][..], Body::bytes);
            let rest = match output.sent.checked_sub(output.head.len()) {
                None => &output.head[output.sent..],
                Some(place) => &body[place..],
            };
            if rest.is_empty() {
                return self.flush();
            }
            let count = match &mut self.layer {
                Layer::Tls(stream) => stream.write(&mut &self.socket, rest)?,
                _ => unless_blocked((&self.socket).write(rest))?.unwrap_or(0),
            };
            if count == 0 {
                return Ok(false);
            }
            output.sent += count;
        }
    }
}

/// Returns `None` instead of WouldBlock.
fn unless_blocked<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => Ok(None),
        Err(error) => Err(error),
    }
}
