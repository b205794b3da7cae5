//! One connection's TLS: plaintext to records and back, over a socket that may have no room and no input.
//!
//! # Concepts
//! Reading and writing keep the rules of a socket that does not block, so that whoever waits for events need
//! not know of records:
//! - `read` gives plaintext, or WouldBlock when the socket has nothing and nothing decrypted is left. What is
//!   decrypted and not taken tells no event: [`Received::is_all`] says whether anything may be left.
//! - `write` answers how many bytes have *left*. Bytes that are encrypted but whose records wait for room are
//!   *owed*: they count as not sent, the caller comes back with the same bytes, and they are reported when
//!   their records have left.
//!
//! Neither waits, so a handshake advances with the events of its connection like any request.
//!
//! # On failure
//! A record that is not what it should be is an error of the kind InvalidData, and an alert is sent if there
//! is room for it.

use std::io::{self, ErrorKind, Read, Write};

use rustls::{Connection, HandshakeKind, ProtocolVersion};

use crate::settings::cipher_name;
use crate::x509;

/// Plaintext that is encrypted before it is looked whether there is room for it.
const WRITE_BYTES: usize = 48 << 10;
/// With so much plaintext waiting no more records are decrypted.
const PLAINTEXT_BYTES: usize = 8 << 10;

/// One connection's records.
pub struct TlsStream {
    session: Connection,
    /// Ciphertext that has come and is not decrypted: what came with the request for TLS, and what came
    /// behind more plaintext than is kept.
    waiting: Vec<u8>,
    /// Plaintext bytes whose records have not left entirely.
    owed: usize,
    /// The last read took all that the socket had.
    is_drained: bool,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// 0: the end.
    pub bytes: usize,
    /// Nothing more has come: an event will tell of the next bytes.
    pub is_all: bool,
}

/// The certificate that a peer has shown and that was found good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    /// As OpenSSL prints them in one line: `/C=DE/CN=one`.
    pub subject: String,
    pub issuer: String,
}

impl TlsStream {
    /// `early`: what the peer has sent already of TLS.
    pub(crate) fn new(session: Connection, early: Vec<u8>) -> TlsStream {
        TlsStream { session, waiting: early, owed: 0, is_drained: false }
    }

    /// Reads plaintext; 0 bytes at the end. WouldBlock: there is none, nor anything in the socket.
    pub fn read(&mut self, socket: &mut (impl Read + Write), out: &mut [u8]) -> io::Result<Received> {
        loop {
            match self.session.reader().read(out) {
                Ok(bytes) => {
                    let is_all = self.is_drained && self.waiting.is_empty() && bytes < out.len();
                    return Ok(Received { bytes, is_all });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The peer left without a farewell. A whole packet has its length in front of it, so nothing
                // that was cut off is taken for one.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(Received { bytes: 0, is_all: true });
                }
                Err(error) => return Err(error),
            }
            let count = self.take_records(socket, out)?;
            let decrypted = self.decrypt(&out[..count]);
            // What the handshake answers, or an alert. What finds no room leaves with the next write.
            let flushed = self.flush(socket);
            decrypted?;
            flushed?;
        }
    }

    /// Ciphertext into `out`; 0 bytes at the end.
    fn take_records(&mut self, socket: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
        if !self.waiting.is_empty() {
            let count = self.waiting.len().min(out.len());
            out[..count].copy_from_slice(&self.waiting[..count]);
            self.waiting.drain(..count);
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

    fn decrypt(&mut self, mut records: &[u8]) -> io::Result<()> {
        loop {
            // The end of the stream is told by reading nothing, too.
            let count = self.session.read_tls(&mut records)?;
            let state = self.session.process_new_packets().map_err(invalid)?;
            if records.is_empty() || count == 0 {
                return Ok(());
            }
            if state.plaintext_bytes_to_read() >= PLAINTEXT_BYTES {
                self.waiting.splice(..0, records.iter().copied());
                return Ok(());
            }
        }
    }

    /// Sends some bytes; 0 if there is no room: the same bytes are to come again.
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

    /// Sends records that wait; false if there is no room.
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

    /// Whether records wait for room.
    pub fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Says goodbye, if there is room for it.
    pub fn close(&mut self, socket: &mut impl Write) {
        self.session.send_close_notify();
        // The peer may have gone.
        let _ = self.flush(socket);
    }

    /// Whether the peers have not agreed yet.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Whether the keys come from an earlier connection.
    pub fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// `TLSv1.3`; empty before the peers have agreed.
    pub fn version(&self) -> &'static str {
        match self.session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "",
        }
    }

    /// OpenSSL's name of the cipher suite; empty before the peers have agreed.
    pub fn cipher(&self) -> &'static str {
        self.session.negotiated_cipher_suite().map_or("", |suite| cipher_name(suite.suite()))
    }

    /// What the peer has shown.
    pub fn peer_certificate(&self) -> Option<PeerCertificate> {
        let shown = self.session.peer_certificates()?.first()?;
        let fields = x509::fields(shown)?;
        Some(PeerCertificate { subject: fields.subject, issuer: fields.issuer })
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

impl From<(rustls::ServerConnection, Vec<u8>)> for TlsStream {
    fn from((session, early): (rustls::ServerConnection, Vec<u8>)) -> TlsStream {
        TlsStream::new(Connection::Server(session), early)
    }
}

impl From<(rustls::ClientConnection, Vec<u8>)> for TlsStream {
    fn from((session, early): (rustls::ClientConnection, Vec<u8>)) -> TlsStream {
        TlsStream::new(Connection::Client(session), early)
    }
}
