//! Byte stream of a connection: a non-blocking socket, and TLS over it once the client has asked for it.
//!
//! Senders and receivers need not know about TLS: the contract is that of the socket (see
//! [`cohort_tls::TlsStream`] for how TLS records keep it). A dump sends from one thread and receives in
//! another, so the stream has a lock. It is held only for system calls that do not block. Without TLS it
//! costs one check of an empty cell.

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

    /// Sends and receives everything through TLS from now on.
    pub fn encrypt(&self, stream: TlsStream) {
        assert!(self.tls.set(Mutex::new(stream)).is_ok(), "the login asks once");
    }

    pub fn is_encrypted(&self) -> bool {
        self.tls.get().is_some()
    }

    /// Calls `look` with the TLS stream. Returns `None` without TLS.
    pub fn with_tls<R>(&self, look: impl FnOnce(&TlsStream) -> R) -> Option<R> {
        self.tls.get().map(|stream| look(&stream.lock()))
    }

    /// Sends some of the bytes. Returns 0 if the socket is full: the caller must then pass the same bytes
    /// again.
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

    /// Reads once. Fails with `WouldBlock` if there is no input.
    pub fn receive(&self, out: &mut [u8]) -> io::Result<Received> {
        if let Some(stream) = self.tls.get() {
            return stream.lock().read(&mut &self.socket, out);
        }
        loop {
            match (&self.socket).read(out) {
                // A short read took all input; later input raises a new event.
                Ok(bytes) => return Ok(Received { bytes, is_all: bytes < out.len() }),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether there is unread input.
    pub fn has_unread(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::uninit()];
        self.socket.peek(&mut byte).is_ok_and(|bytes| bytes > 0)
    }

    /// Returns whether the peer has closed its side and all of its input was read.
    pub fn peer_has_gone(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::uninit()];
        match self.socket.peek(&mut byte) {
            Ok(bytes) => bytes == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Returns whether TLS records, such as a handshake reply, wait to be sent.
    pub fn has_unsent(&self) -> bool {
        self.with_tls(TlsStream::has_unsent).unwrap_or(false)
    }

    /// Sends them. Returns false if the socket is full.
    pub fn flush(&self) -> io::Result<bool> {
        self.tls.get().map_or(Ok(true), |stream| stream.lock().flush(&mut &self.socket))
    }

    /// Sends the TLS close notification.
    pub fn say_goodbye(&self) {
        if let Some(stream) = self.tls.get() {
            stream.lock().close(&mut &self.socket);
        }
    }

    /// Shuts the socket down in both directions.
    pub fn shut_down(&self) {
        // The peer may have closed it before.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
