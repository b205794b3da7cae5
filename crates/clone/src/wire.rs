//! The client's side of a connection: packets, TLS, login. Replicas and clones use it.
//!
//! # On failure
//! The connection cannot be used any more, except after [`WireError::Refused`]. The callers have their own
//! texts for each of the errors.

use std::io::{self, ErrorKind, Read, Write};

use cohort_protocol::{
    CLIENT_ED25519, Capabilities, Ed25519Key, InputBuffer, LoginRequest, NATIVE_PASSWORD, NativePassword,
    Nonce, Packet, PacketError, PacketWriter, Reply, Scramble, ServerError, ServerGreeting,
    certificate_proof,
};
use cohort_tls::{Connector, TlsSettings, TlsStream};

/// Size of socket reads.
const READ_BYTES: usize = 256 << 10;
/// Maximum number of packets in a login.
const LOGIN_PACKETS_MAX: usize = 16;
/// utf8mb3_general_ci.
const COLLATION: u8 = 33;

/// Why the connection cannot be used.
#[derive(Debug)]
pub enum WireError {
    Io(io::Error),
    /// The server closed the connection.
    Closed,
    /// A packet is larger than [`Wire::packet_bytes_max`].
    TooLarge,
    Malformed,
    /// The server returned an error.
    Refused(ServerError),
    /// TLS is required, and the server does not offer it.
    NoTls,
    /// The client's own certificates cannot be used.
    TlsSettings(String),
    Tls(String),
    /// The server did not prove that its certificate is its own.
    Unproven,
    /// The account needs this authentication plugin.
    Plugin(String),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> WireError {
        WireError::Io(error)
    }
}

/// Use of TLS by a login.
#[derive(Clone, Debug, Default)]
pub struct TlsUse {
    /// A server without TLS is refused.
    pub is_required: bool,
    pub settings: TlsSettings,
    /// The certificate must be valid now, and with authorities be issued for the host by one of them.
    pub verifies_name: bool,
    /// The server must prove with the hash of the password that the certificate is its own.
    pub proves_certificate: bool,
}

/// Identity of a client, and its demands.
#[derive(Clone, Copy, Debug)]
pub struct Login<'l> {
    pub user: &'l str,
    pub password: &'l str,
    /// Name that the certificate must have.
    pub host: &'l str,
    /// `None`: without TLS.
    pub tls: Option<&'l TlsUse>,
}

/// A connection to a server.
pub struct Wire<S> {
    socket: S,
    /// The TLS stream that all data passes through, once TLS is established.
    tls: Option<TlsStream>,
    input: InputBuffer,
    scratch: Vec<u8>,
    /// Sequence number of the next packet to send.
    sequence: u8,
    /// Maximum size of a packet.
    pub packet_bytes_max: usize,
}

impl<S: Read + Write> Wire<S> {
    /// Returns a connection over a connected socket, on which the server has not been heard yet.
    pub fn new(socket: S, packet_bytes_max: usize) -> Wire<S> {
        let mut input = InputBuffer::default();
        // A reply begins with the number after that of its command, and an acknowledgement of a replica
        // restarts the numbers in the middle of a dump.
        input.ignore_sequence();
        Wire { socket, tls: None, input, scratch: vec![0; READ_BYTES], sequence: 1, packet_bytes_max }
    }

    /// Logs in. Returns the version from the server's greeting.
    pub fn log_in(&mut self, login: &Login<'_>) -> Result<String, WireError> {
        let payload = self.receive()?;
        if let Ok(Reply::Error(error)) = Reply::decode(&payload, true) {
            return Err(WireError::Refused(error));
        }
        let greeting = ServerGreeting::decode(&payload).map_err(|_| WireError::Malformed)?;
        // Servers from 10.0 on prepend this for clients that understand only one digit.
        let version = greeting.version.strip_prefix("5.5.5-").unwrap_or(&greeting.version).to_owned();
        let tls = match login.tls {
            Some(tls) if greeting.capabilities.has(Capabilities::SSL) => Some(tls),
            Some(tls) if tls.is_required => return Err(WireError::NoTls),
            _ => None,
        };
        let password = login.password.as_bytes();
        let request = LoginRequest {
            user: login.user,
            password: login.password,
            is_encrypted: tls.is_some(),
            collation: COLLATION,
        };
        if let Some(tls) = tls {
            self.begin_tls(tls, login.host, &greeting, &request)?;
        }
        // With TLS the login is sent after the server's certificate was checked.
        self.send(|out| request.encode(&greeting, out))?;
        let native = NativePassword::of(password);
        // The password hash that the server stores, and the scramble.
        let mut proof_of = (native.bytes().to_vec(), greeting.scramble);
        for _ in 0..LOGIN_PACKETS_MAX {
            let payload = self.receive()?;
            match Reply::decode(&payload, true).map_err(|_| WireError::Malformed)? {
                Reply::Ok => {
                    let is_asked = tls.is_some_and(|tls| tls.proves_certificate);
                    return match !is_asked || self.is_proven(password, &proof_of, &payload) {
                        true => Ok(version),
                        false => Err(WireError::Unproven),
                    };
                }
                Reply::Error(error) => return Err(WireError::Refused(error)),
                Reply::Switch { plugin, data } if plugin == NATIVE_PASSWORD.as_bytes() => {
                    let random = data.get(..20).and_then(|data| data.try_into().ok());
                    let scramble = Scramble(random.ok_or(WireError::Malformed)?);
                    proof_of = (native.bytes().to_vec(), scramble);
                    let answer = scramble.answer(password);
                    self.send(|out| out.extend_from_slice(&answer))?;
                }
                Reply::Switch { plugin, data } if plugin == CLIENT_ED25519.as_bytes() => {
                    let nonce = data.get(..32).and_then(|data| data.try_into().ok());
                    let nonce = Nonce(nonce.ok_or(WireError::Malformed)?);
                    // The proof uses the scramble of the greeting.
                    proof_of.0 = Ed25519Key::of(password).bytes().to_vec();
                    let answer = nonce.answer(password);
                    self.send(|out| out.extend_from_slice(&answer))?;
                }
                Reply::Switch { plugin, .. } => {
                    return Err(WireError::Plugin(String::from_utf8_lossy(plugin).into_owned()));
                }
                Reply::Other(_) | Reply::End => return Err(WireError::Malformed),
            }
        }
        Err(WireError::Malformed)
    }

    /// Switches to TLS. Bytes that arrived after the greeting belong to the TLS stream.
    fn begin_tls(
        &mut self,
        tls: &TlsUse,
        host: &str,
        greeting: &ServerGreeting,
        request: &LoginRequest<'_>,
    ) -> Result<(), WireError> {
        let connector = Connector::new(&tls.settings, tls.verifies_name);
        let connector = connector.map_err(|error| WireError::TlsSettings(error.to_string()))?;
        self.send(|out| request.encode_tls_request(greeting, out))?;
        let early = self.input.take_rest();
        let stream = connector.connect(host, early).map_err(|error| WireError::Tls(error.to_string()))?;
        self.tls = Some(stream);
        Ok(())
    }

    /// Returns whether the server has proved with the hash of the password that the certificate is its own.
    fn is_proven(&self, password: &[u8], (stored, scramble): &(Vec<u8>, Scramble), ok: &[u8]) -> bool {
        let certificate = self.tls.as_ref().and_then(TlsStream::peer_der);
        let wanted = certificate.map(|shown| certificate_proof(stored, scramble, shown));
        wanted.filter(|_| !password.is_empty()).is_some_and(|wanted| {
            let said = &ok[ok.len().saturating_sub(wanted.len())..];
            // Compared in constant time, so that timing reveals nothing.
            said.len() == wanted.len()
                && said.iter().zip(wanted.bytes()).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
        })
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return self.socket.write_all(bytes) };
        while !bytes.is_empty() {
            match tls.write(&mut self.socket, bytes)? {
                // The socket has no room even after the timeout.
                0 => return Err(ErrorKind::TimedOut.into()),
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    /// Sends the next packet of the current exchange.
    pub fn send(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        let mut out = Vec::new();
        let mut packet = PacketWriter::begin(&mut out, &mut self.sequence);
        fill(packet.payload());
        packet.end();
        Ok(self.write_all(&out)?)
    }

    /// Sends the first packet of a command.
    pub fn command(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        self.sequence = 0;
        self.send(fill)
    }

    /// Receives a packet.
    pub fn receive(&mut self) -> Result<Vec<u8>, WireError> {
        let packet = self.receive_in_place()?;
        Ok(self.payload(&packet).to_vec())
    }

    /// Receives a packet, whose payload stays in the buffer until the next one.
    pub fn receive_in_place(&mut self) -> Result<Packet, WireError> {
        loop {
            match self.input.next(self.packet_bytes_max) {
                Ok(Some(packet)) => {
                    self.sequence = packet.sequence.wrapping_add(1);
                    return Ok(packet);
                }
                Ok(None) => {}
                Err(PacketError::TooLarge) => return Err(WireError::TooLarge),
                Err(_) => return Err(WireError::Malformed),
            }
            let received = match &mut self.tls {
                None => self.socket.read(&mut self.scratch),
                Some(tls) => tls.read(&mut self.socket, &mut self.scratch).map(|received| received.bytes),
            };
            match received {
                Ok(0) => return Err(WireError::Closed),
                Ok(count) => self.input.extend(&self.scratch[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::InvalidData && self.tls.is_some() => {
                    return Err(WireError::Tls(error.to_string()));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the payload of the packet that was received last.
    pub fn payload(&self, packet: &Packet) -> &[u8] {
        self.input.payload(packet)
    }

    /// Returns whether bytes have arrived that no caller has received yet.
    pub fn has_waiting(&self) -> bool {
        !self.input.is_empty()
    }
}
