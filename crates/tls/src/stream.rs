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
use std::sync::Arc;

use rustls::{Connection, HandshakeKind, ProtocolVersion};

use crate::settings::cipher_name;
use crate::{Acceptor, x509};

/// Plaintext that is encrypted before it is looked whether there is room for it.
const WRITE_BYTES: usize = 48 << 10;

/// The longest that may come with the request for TLS. A peer that has had no answer yet sends its
/// ClientHello and nothing else, which a record holds.
pub const EARLY_BYTES_MAX: usize = 32 << 10;

/// One connection's records.
pub struct TlsStream {
    session: Connection,
    /// The context that the connection was accepted with; none on a client's side.
    acceptor: Option<Arc<Acceptor>>,
    /// Ciphertext that has come and is not decrypted: what came with the request for TLS, at most
    /// [`EARLY_BYTES_MAX`], and what a reader had no room for, less than half of the reader's buffer. Its
    /// memory goes with its last byte.
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
    pub(crate) fn new(session: Connection, acceptor: Option<Arc<Acceptor>>, early: Vec<u8>) -> TlsStream {
        TlsStream { session, acceptor, waiting: early, owed: 0, is_drained: false }
    }

    /// The context that the connection was accepted with.
    pub fn acceptor(&self) -> Option<&Acceptor> {
        self.acceptor.as_deref()
    }

    /// Reads plaintext; 0 bytes at the end. WouldBlock: there is none, nor anything in the socket.
    ///
    /// Records are received into the second half of `out` and decrypted into the first: plaintext is no
    /// longer than they are.
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
            // What the handshake answers, or an alert. What finds no room leaves with the next write.
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
        // No event tells of an end that was seen already.
        let is_end_left = is_end && bytes > 0;
        Received { bytes, is_all: self.is_drained && !has_more && !is_end_left }
    }

    /// Adds plaintext to the `filled` bytes of `out`, as far as there is room. True at the end of the stream.
    fn take_plaintext(&mut self, out: &mut [u8], filled: &mut usize) -> io::Result<bool> {
        while *filled < out.len() {
            match self.session.reader().read(&mut out[*filled..]) {
                Ok(0) => return Ok(true),
                Ok(bytes) => *filled += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                // The peer left without a farewell. A whole packet has its length in front of it, so nothing
                // that was cut off is taken for one.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Ciphertext into `out`; 0 bytes at the end.
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

    /// Decrypts into `out` behind its `filled` bytes. Records that find no room wait. True at the end of the
    /// stream.
    fn decrypt(&mut self, mut records: &[u8], out: &mut [u8], filled: &mut usize) -> io::Result<bool> {
        loop {
            // The end of the stream is told by reading nothing, too.
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

    /// The same as it came, in DER.
    pub fn peer_der(&self) -> Option<&[u8]> {
        self.session.peer_certificates()?.first().map(AsRef::as_ref)
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
