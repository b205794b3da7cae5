//! TLS of one connection: converts plaintext to records and back, over a non-blocking socket.
//!
//! # Concepts
//! Reading and writing follow the rules of a non-blocking socket, so that an event loop need not know about
//! records:
//! - `read` returns plaintext, or WouldBlock if the socket has no input and no decrypted data is left.
//!   Decrypted data that was not read yet causes no event: [`Received::is_all`] says whether any may be left.
//! - `write` returns the number of bytes that were *sent*. Bytes that are encrypted but whose records are not
//!   sent yet are *owed*: they count as not sent, the caller must pass the same bytes again, and they are
//!   reported when their records have been sent.
//!
//! Neither call blocks, so a handshake progresses with the events of its connection like any request.
//!
//! # On failure
//! An invalid record is an error of kind InvalidData, and an alert is sent if the socket has space.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::{Connection, HandshakeKind, ProtocolVersion, ServerConnection};

use crate::settings::cipher_name;
use crate::{Acceptor, TlsError, unusable, x509};

/// Maximum plaintext that is encrypted before the socket is known to have space.
const WRITE_BYTES: usize = 48 << 10;

/// Maximum bytes received together with the request for TLS. A peer without a reply sends only its
/// ClientHello, which fits into one record.
pub const EARLY_BYTES_MAX: usize = 32 << 10;

/// The TLS stream of one connection.
pub struct TlsStream {
    session: Connection,
    /// The context that accepted the connection; `None` on the client's side.
    acceptor: Option<Arc<Acceptor>>,
    /// Received ciphertext that is not decrypted yet: bytes that came with the request for TLS (at most
    /// [`EARLY_BYTES_MAX`]), or records for which a reader's buffer had no space (less than half of that
    /// buffer). The memory is freed with the last byte.
    waiting: Vec<u8>,
    /// Plaintext bytes whose records are not completely sent.
    owed: usize,
    /// True if the last read took everything that the socket had.
    is_drained: bool,
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// 0 at the end of the stream.
    pub bytes: usize,
    /// No more data has arrived: an event will announce the next bytes.
    pub is_all: bool,
}

/// The verified certificate of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    /// Names in OpenSSL's one-line format: `/C=DE/CN=one`.
    pub subject: String,
    pub issuer: String,
}

impl Acceptor {
    /// Accepts a connection whose client requested TLS. `early` are the bytes received after the request.
    pub fn accept(self: &Arc<Self>, early: Vec<u8>) -> Result<TlsStream, TlsError> {
        if early.len() > EARLY_BYTES_MAX {
            return Err(TlsError::Unusable(format!("{} bytes came with the request for TLS", early.len())));
        }
        let session = ServerConnection::new(Arc::clone(&self.config)).map_err(unusable)?;
        Ok(TlsStream::new(session.into(), Some(Arc::clone(self)), early))
    }
}

impl TlsStream {
    /// `early` are the TLS bytes that the peer has already sent.
    pub(crate) fn new(session: Connection, acceptor: Option<Arc<Acceptor>>, early: Vec<u8>) -> TlsStream {
        TlsStream { session, acceptor, waiting: early, owed: 0, is_drained: false }
    }

    /// Returns the context that accepted the connection.
    pub fn acceptor(&self) -> Option<&Acceptor> {
        self.acceptor.as_deref()
    }

    /// Reads plaintext; returns 0 bytes at the end. WouldBlock means that no plaintext is available and the
    /// socket has no input.
    ///
    /// Records are received into the second half of `out` and decrypted into the first half: the plaintext is
    /// no longer than its records.
    pub fn read(&mut self, socket: &mut (impl Read + Write), out: &mut [u8]) -> io::Result<Received> {
        loop {
            let mut filled = 0;
            let is_end = self.take_plaintext(out, &mut filled)?;
            if is_end || filled > 0 {
                return Ok(self.received(filled, out.len(), is_end));
            }
            let (plain, records) = out.split_at_mut(out.len() / 2);
            let count = self.take_records(socket, records)?;
            let decrypted = self.decrypt(&records[..count], plain, &mut filled);
            // Send the handshake's response, or an alert. If the socket has no space, it leaves with the next
            // write.
            let flushed = self.flush(socket);
            let is_end = decrypted?;
            flushed?;
            if is_end || filled > 0 {
                return Ok(self.received(filled, plain.len(), is_end));
            }
        }
    }

    fn received(&self, bytes: usize, room: usize, is_end: bool) -> Received {
        let has_more = bytes == room || !self.waiting.is_empty();
        // No event announces an end that was seen already.
        let is_end_left = is_end && bytes > 0;
        Received { bytes, is_all: self.is_drained && !has_more && !is_end_left }
    }

    /// Appends plaintext to the `filled` bytes of `out` while there is space. Returns true at the end of the
    /// stream.
    fn take_plaintext(&mut self, out: &mut [u8], filled: &mut usize) -> io::Result<bool> {
        while *filled < out.len() {
            match self.session.reader().read(&mut out[*filled..]) {
                Ok(0) => return Ok(true),
                Ok(bytes) => *filled += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                // The peer closed without close_notify. Packets start with their length, so truncated data is
                // never taken for a complete packet.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Reads ciphertext into `out`; returns 0 bytes at the end.
    fn take_records(&mut self, socket: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
        if !self.waiting.is_empty() {
            let count = self.waiting.len().min(out.len());
            out[..count].copy_from_slice(&self.waiting[..count]);
            self.waiting.drain(..count);
            if self.waiting.is_empty() {
                self.waiting = Vec::new();
            }
            return Ok(count);
        }
        loop {
            match socket.read(out) {
                Ok(count) => {
                    self.is_drained = count < out.len();
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_drained = true;
                    return Err(error);
                }
            }
        }
    }

    /// Decrypts into `out` after its `filled` bytes. Records without space are kept in `waiting`. Returns
    /// true at the end of the stream.
    fn decrypt(&mut self, mut records: &[u8], out: &mut [u8], filled: &mut usize) -> io::Result<bool> {
        loop {
            // At the end of the stream this must be called with no bytes too.
            let count = self.session.read_tls(&mut records)?;
            self.session.process_new_packets().map_err(invalid)?;
            if self.take_plaintext(out, filled)? {
                return Ok(true);
            }
            if records.is_empty() || count == 0 {
                return Ok(false);
            }
            if *filled == out.len() {
                self.waiting.splice(..0, records.iter().copied());
                return Ok(false);
            }
        }
    }

    /// Sends bytes. Returns 0 if the socket has no space; then the same bytes must be passed again.
    pub fn write(&mut self, socket: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
        if !self.flush(socket)? {
            return Ok(0);
        }
        if self.owed > 0 {
            return Ok(std::mem::take(&mut self.owed).min(bytes.len()));
        }
        let count = self.session.writer().write(&bytes[..bytes.len().min(WRITE_BYTES)])?;
        match self.flush(socket)? {
            true => Ok(count),
            false => {
                self.owed = count;
                Ok(0)
            }
        }
    }

    /// Sends pending records. Returns false if the socket has no space.
    pub fn flush(&mut self, socket: &mut impl Write) -> io::Result<bool> {
        while self.session.wants_write() {
            match self.session.write_tls(socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Returns whether records are not sent yet.
    pub fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Sends close_notify if the socket has space.
    pub fn close(&mut self, socket: &mut impl Write) {
        self.session.send_close_notify();
        // The peer may already be gone.
        let _ = self.flush(socket);
    }

    /// Returns whether the handshake is not complete.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Returns whether the session was resumed from an earlier connection.
    pub fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Returns the version, such as `TLSv1.3`; empty before the handshake is complete.
    pub fn version(&self) -> &'static str {
        match self.session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "",
        }
    }

    /// Returns OpenSSL's name of the cipher suite; empty before the handshake is complete.
    pub fn cipher(&self) -> &'static str {
        self.session.negotiated_cipher_suite().map_or("", |suite| cipher_name(suite.suite()))
    }

    /// Returns the names in the peer's certificate.
    pub fn peer_certificate(&self) -> Option<PeerCertificate> {
        let shown = self.session.peer_certificates()?.first()?;
        let fields = x509::fields(shown)?;
        Some(PeerCertificate { subject: fields.subject, issuer: fields.issuer })
    }

    /// Returns the peer's certificate in DER.
    pub fn peer_der(&self) -> Option<&[u8]> {
        self.session.peer_certificates()?.first().map(AsRef::as_ref)
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
