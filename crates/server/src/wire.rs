//! A connection's bytes: a socket that does not block, and TLS over it once the client has asked for it.
//!
//! A sender or receiver need not know of TLS: the rules are those of the socket (see
//! [`cohort_tls::TlsStream`] for how records keep them). A dump sends from one thread and receives in
//! another, so the stream has a lock; it is held for system calls that do not wait. Without TLS it costs one
//! look at an empty cell.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use cohort_tls::{Received, TlsStream};
use parking_lot::Mutex;
use socket2::Socket;

pub(crate) struct Wire {
    socket: Socket,
    /// Set once, by the owner of the connection, when the client asks for TLS.
    tls: OnceLock<Mutex<TlsStream>>,
}

impl Wire {
    pub fn new(socket: Socket) -> Wire {
        Wire { socket, tls: OnceLock::new() }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Everything goes through TLS from now on.
    pub fn encrypt(&self, stream: TlsStream) {
        assert!(self.tls.set(Mutex::new(stream)).is_ok(), "the login asks once");
    }

    pub fn is_encrypted(&self) -> bool {
        self.tls.get().is_some()
    }

    /// What is known of TLS, if there is any.
    pub fn with_tls<R>(&self, look: impl FnOnce(&TlsStream) -> R) -> Option<R> {
        self.tls.get().map(|stream| look(&stream.lock()))
    }

    /// Sends some bytes; 0 if there is no room: the same bytes are to come again.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(stream) = self.tls.get() {
            return stream.lock().write(&mut &self.socket, bytes);
        }
        loop {
            match (&self.socket).write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Reads once; WouldBlock: there is nothing.
    pub fn receive(&self, out: &mut [u8]) -> io::Result<Received> {
        if let Some(stream) = self.tls.get() {
            return stream.lock().read(&mut &self.socket, out);
        }
        loop {
            match (&self.socket).read(out) {
                // A short read took all there was; what comes later is a new event.
                Ok(bytes) => return Ok(Received { bytes, is_all: bytes < out.len() }),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether something has come that nobody has read.
    pub fn has_unread(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::uninit()];
        self.socket.peek(&mut byte).is_ok_and(|bytes| bytes > 0)
    }

    /// Whether the peer sends no more, and everything that it has sent was read.
    pub fn peer_has_gone(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::uninit()];
        match self.socket.peek(&mut byte) {
            Ok(bytes) => bytes == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Whether records of TLS wait for room although nothing is to be sent: an answer of the handshake.
    pub fn has_unsent(&self) -> bool {
        self.with_tls(TlsStream::has_unsent).unwrap_or(false)
    }

    /// Sends them; false if there is no room.
    pub fn flush(&self) -> io::Result<bool> {
        self.tls.get().map_or(Ok(true), |stream| stream.lock().flush(&mut &self.socket))
    }

    /// Says goodbye to a client that does not go by itself.
    pub fn say_goodbye(&self) {
        if let Some(stream) = self.tls.get() {
            stream.lock().close(&mut &self.socket);
        }
    }

    /// The end, for both directions.
    pub fn shut_down(&self) {
        // The peer may have gone before.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
