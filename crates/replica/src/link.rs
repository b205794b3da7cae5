//! The network connection to a source, as its client.
//!
//! # On failure
//! [`LinkError::Gone`]: the network failed or the source closed the connection; a retry may help.
//! [`LinkError::Refused`]: the source returned an error, whose text is for SHOW SLAVE STATUS.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use cohort_protocol::{
    CLIENT_ED25519, Capabilities, Ed25519Key, InputBuffer, LoginRequest, NATIVE_PASSWORD, NativePassword,
    Nonce, PacketError, PacketWriter, Reply, Scramble, ServerError, ServerGreeting, certificate_proof,
    register_replica, request_dump, text_row,
};

use cohort_tls::{Connector, TlsSettings, TlsStream};

use crate::settings::{SourceSettings, Tls};

/// Size of socket reads.
const READ_BYTES: usize = 256 << 10;
/// Maximum time that a connection attempt delays a stop request.
const CONNECT_SLICE: Duration = Duration::from_secs(2);
/// Maximum size of the reply to a query; replies are small.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Memory of a reply row in addition to its bytes.
const ROW_BYTES: usize = 64;
/// Maximum number of packets in a login.
const LOGIN_PACKETS_MAX: usize = 16;
/// utf8mb3_general_ci.
const COLLATION: u8 = 33;

/// Why the connection cannot be used.
#[derive(Debug)]
pub enum LinkError {
    Gone(String),
    Refused(ServerError),
    /// An event is larger than slave_max_allowed_packet.
    TooLarge,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Gone(what) => f.write_str(what),
            LinkError::Refused(error) => f.write_str(&error.message),
            LinkError::TooLarge => f.write_str("Got a packet bigger than 'slave_max_allowed_packet' bytes"),
        }
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> LinkError {
        LinkError::Gone(error.to_string())
    }
}

/// Formats number and text of an I/O error like MariaDB's client.
fn distinct_by_system(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), error.kind()) {
        (Some(number), _) => {
            let text = text.trim_end_matches(&format!(" (os error {number})"));
            format!("{number} \"{text}\"")
        }
        (None, ErrorKind::TimedOut) => "110 \"Connection timed out\"".to_owned(),
        (None, _) => text,
    }
}

fn malformed() -> LinkError {
    LinkError::Gone("Malformed communication packet".to_owned())
}

/// Error 2026: TLS was requested and cannot be used.
fn no_tls(why: impl fmt::Display) -> LinkError {
    LinkError::Refused(ServerError { code: 2026, message: format!("SSL connection error: {why}") })
}

/// A connection to a source.
pub struct Link {
    socket: TcpStream,
    /// The TLS stream that all data passes through, once TLS is established.
    tls: Option<TlsStream>,
    input: InputBuffer,
    scratch: Vec<u8>,
    /// Sequence number of the next packet to send.
    sequence: u8,
    packet_bytes_max: usize,
    /// Version from the source's greeting.
    version: String,
}

/// Tries all addresses, in slices of time between which it checks for a stop request.
fn connect(
    settings: &SourceSettings,
    timeout: Duration,
    stops: impl Fn() -> bool,
) -> Result<TcpStream, io::Error> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (settings.host.as_str(), settings.port).to_socket_addrs()? {
        let end = Instant::now() + timeout;
        while !stops() {
            let left = end.saturating_duration_since(Instant::now()).min(CONNECT_SLICE);
            if left.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
            if last.kind() != io::ErrorKind::TimedOut {
                break;
            }
        }
    }
    Err(last)
}

fn tls_settings(tls: &Tls) -> TlsSettings {
    TlsSettings {
        ca: tls.ca.clone(),
        capath: tls.capath.clone(),
        cert: tls.cert.clone(),
        key: tls.key.clone(),
        crl: tls.crl.clone(),
        crlpath: tls.crlpath.clone(),
        cipher: tls.cipher.clone(),
        versions: String::new(),
    }
}

/// Columns of a row; `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

impl Link {
    /// Connects and logs in. `connected` receives the socket, so that another thread can interrupt waits on
    /// it.
    pub fn open(
        settings: &SourceSettings,
        timeout: Duration,
        connected: impl FnOnce(TcpStream),
        stops: impl Fn() -> bool,
    ) -> Result<Link, LinkError> {
        let socket =
            connect(settings, timeout, stops).map_err(|error| LinkError::Gone(distinct_by_system(&error)))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        connected(socket.try_clone()?);
        let mut link = Link {
            socket,
            tls: None,
            input: InputBuffer::default(),
            scratch: vec![0; READ_BYTES],
            sequence: 1,
            packet_bytes_max: ANSWER_BYTES_MAX,
            version: String::new(),
        };
        // An acknowledgement restarts the sequence numbers in the middle of a dump.
        link.input.ignore_sequence();
        link.log_in(settings)?;
        Ok(link)
    }

    fn log_in(&mut self, settings: &SourceSettings) -> Result<(), LinkError> {
        let payload = self.receive()?;
        if let Ok(Reply::Error(error)) = Reply::decode(&payload, true) {
            return Err(LinkError::Refused(error));
        }
        let greeting = ServerGreeting::decode(&payload).map_err(|_| malformed())?;
        // Servers from 10.0 on prepend this for clients that understand only one digit.
        greeting.version.strip_prefix("5.5.5-").unwrap_or(&greeting.version).clone_into(&mut self.version);
        let login = LoginRequest {
            user: &settings.user,
            password: &settings.password.0,
            is_encrypted: settings.tls.is_wanted,
            collation: COLLATION,
        };
        if settings.tls.is_wanted {
            self.begin_tls(settings, &greeting, &login)?;
        }
        // With TLS the login is sent after the source's certificate was checked.
        self.send_next(|out| login.encode(&greeting, out))?;
        let native = NativePassword::of(settings.password.0.as_bytes());
        // The password hash that the source stores, and the scramble.
        let mut proof_of = (native.bytes().to_vec(), greeting.scramble);
        for _ in 0..LOGIN_PACKETS_MAX {
            let payload = self.receive()?;
            match Reply::decode(&payload, true).map_err(|_| malformed())? {
                Reply::Ok => return self.check_proof(settings, &proof_of, &payload),
                Reply::Error(error) => return Err(LinkError::Refused(error)),
                Reply::Switch { plugin, data } if plugin == NATIVE_PASSWORD.as_bytes() => {
                    let random =
                        data.get(..20).and_then(|data| data.try_into().ok()).ok_or_else(malformed)?;
                    let scramble = Scramble(random);
                    proof_of = (native.bytes().to_vec(), scramble);
                    let answer = scramble.answer(settings.password.0.as_bytes());
                    self.send_next(|out| out.extend_from_slice(&answer))?;
                }
                Reply::Switch { plugin, data } if plugin == CLIENT_ED25519.as_bytes() => {
                    let nonce = data.get(..32).and_then(|data| data.try_into().ok()).ok_or_else(malformed)?;
                    // The proof uses the scramble of the greeting.
                    proof_of.0 = Ed25519Key::of(settings.password.0.as_bytes()).bytes().to_vec();
                    let answer = Nonce(nonce).answer(settings.password.0.as_bytes());
                    self.send_next(|out| out.extend_from_slice(&answer))?;
                }
                Reply::Switch { plugin, .. } => {
                    let plugin = String::from_utf8_lossy(plugin);
                    return Err(LinkError::Refused(ServerError {
                        code: 2059,
                        message: format!("Authentication plugin '{plugin}' cannot be loaded"),
                    }));
                }
                Reply::Other(_) | Reply::End => return Err(malformed()),
            }
        }
        Err(malformed())
    }

    /// Switches to TLS. Bytes that arrived after the greeting belong to the TLS stream.
    fn begin_tls(
        &mut self,
        settings: &SourceSettings,
        greeting: &ServerGreeting,
        login: &LoginRequest<'_>,
    ) -> Result<(), LinkError> {
        if !greeting.capabilities.has(Capabilities::SSL) {
            return Err(no_tls("SSL is required, but the server does not support it"));
        }
        let connector = Connector::new(&tls_settings(&settings.tls), settings.tls.verifies_name);
        let connector = connector.map_err(no_tls)?;
        self.send_next(|out| login.encode_tls_request(greeting, out))?;
        let early = self.input.take_rest();
        self.tls = Some(connector.connect(&settings.host, early).map_err(no_tls)?);
        Ok(())
    }

    /// Checks the source's proof of its certificate, if the certificate must be verified and no CA is
    /// configured. The source proves with the password hash that the certificate is its own.
    fn check_proof(
        &self,
        settings: &SourceSettings,
        (stored, scramble): &(Vec<u8>, Scramble),
        ok: &[u8],
    ) -> Result<(), LinkError> {
        let has_authority = !settings.tls.ca.is_empty() || !settings.tls.capath.is_empty();
        let Some(tls) = self.tls.as_ref().filter(|_| settings.tls.verifies_name && !has_authority) else {
            return Ok(());
        };
        let wanted = tls.peer_der().map(|shown| certificate_proof(stored, scramble, shown));
        let is_proven = wanted.filter(|_| !settings.password.0.is_empty()).is_some_and(|wanted| {
            let said = &ok[ok.len().saturating_sub(wanted.len())..];
            // Compared in constant time, so that timing reveals nothing.
            said.len() == wanted.len()
                && said.iter().zip(wanted.bytes()).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
        });
        match is_proven {
            true => Ok(()),
            false => Err(no_tls("Certificate verification failure: The certificate is NOT trusted.")),
        }
    }

    /// Returns the version from the source's greeting.
    pub fn version(&self) -> &str {
        &self.version
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

    fn read(&mut self) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(&mut self.scratch),
            Some(tls) => tls.read(&mut self.socket, &mut self.scratch).map(|received| received.bytes),
        }
    }

    /// Sends the next packet of the current exchange.
    fn send_next(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), LinkError> {
        let mut out = Vec::new();
        let mut packet = PacketWriter::begin(&mut out, &mut self.sequence);
        fill(packet.payload());
        packet.end();
        Ok(self.write_all(&out)?)
    }

    /// Sends the first packet of a command.
    fn command(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), LinkError> {
        self.sequence = 0;
        self.send_next(fill)
    }

    fn receive(&mut self) -> Result<Vec<u8>, LinkError> {
        let range = self.receive_in_place()?;
        Ok(self.input.payload(&range).to_vec())
    }

    fn receive_in_place(&mut self) -> Result<cohort_protocol::Packet, LinkError> {
        loop {
            match self.input.next(self.packet_bytes_max) {
                Ok(Some(packet)) => {
                    self.sequence = packet.sequence.wrapping_add(1);
                    return Ok(packet);
                }
                Ok(None) => {}
                Err(PacketError::TooLarge) => return Err(LinkError::TooLarge),
                Err(_) => return Err(malformed()),
            }
            match self.read() {
                Ok(0) => return Err(LinkError::Gone("Lost connection to server during query".to_owned())),
                Ok(n) => self.input.extend(&self.scratch[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(LinkError::Gone("Lost connection to server during query".to_owned()));
                }
                Err(error) if error.kind() == ErrorKind::InvalidData && self.tls.is_some() => {
                    return Err(no_tls(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Runs a query and returns its rows, or no rows for a statement without a result.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, LinkError> {
        self.command(|out| {
            out.push(3);
            out.extend_from_slice(sql.as_bytes());
        })?;
        let head = self.receive()?;
        match Reply::decode(&head, false).map_err(|_| malformed())? {
            Reply::Error(error) => return Err(LinkError::Refused(error)),
            Reply::Other([0, ..]) => return Ok(Vec::new()),
            _ => {}
        }
        let mut bytes = head.len();
        self.skip_to_end(&mut bytes)?;
        let mut rows = Vec::new();
        loop {
            let payload = self.receive_answer(&mut bytes)?;
            match Reply::decode(&payload, false).map_err(|_| malformed())? {
                Reply::End => return Ok(rows),
                Reply::Error(error) => return Err(LinkError::Refused(error)),
                _ => rows.push(text_row(&payload).map_err(|_| malformed())?),
            }
        }
    }

    /// Receives a packet of a reply. `bytes` counts the size of the reply so far.
    fn receive_answer(&mut self, bytes: &mut usize) -> Result<Vec<u8>, LinkError> {
        let payload = self.receive()?;
        // Counts the memory of the row, too.
        *bytes += payload.len() + ROW_BYTES;
        match *bytes <= ANSWER_BYTES_MAX {
            true => Ok(payload),
            false => Err(malformed()),
        }
    }

    fn skip_to_end(&mut self, bytes: &mut usize) -> Result<(), LinkError> {
        loop {
            let payload = self.receive_answer(bytes)?;
            match Reply::decode(&payload, false).map_err(|_| malformed())? {
                Reply::End => return Ok(()),
                Reply::Error(error) => return Err(LinkError::Refused(error)),
                _ => {}
            }
        }
    }

    /// COM_REGISTER_SLAVE.
    pub fn register(&mut self, server_id: u32, host: &str, port: u16) -> Result<(), LinkError> {
        self.command(|out| register_replica(server_id, host, port, out))?;
        let payload = self.receive()?;
        match Reply::decode(&payload, true).map_err(|_| malformed())? {
            Reply::Ok => Ok(()),
            Reply::Error(error) => Err(LinkError::Refused(error)),
            _ => Err(malformed()),
        }
    }

    /// COM_BINLOG_DUMP: events of at most `event_bytes_max` bytes follow.
    pub fn begin_dump(
        &mut self,
        server_id: u32,
        place: (&str, u64),
        annotate: bool,
        event_bytes_max: usize,
    ) -> Result<(), LinkError> {
        self.packet_bytes_max = event_bytes_max;
        // The request has 32 bits for the position. Sources that need it have no larger files.
        let position = u32::try_from(place.1).unwrap_or(u32::MAX);
        self.command(|out| request_dump(server_id, place.0, position, annotate, out))
    }

    /// Returns the next packet of a dump: an event, without the leading zero byte but with the two bytes of a
    /// semi-synchronous header. Returns `None` if the source ends the dump, which it does only on request.
    pub fn next_event(&mut self) -> Result<Option<&[u8]>, LinkError> {
        let packet = self.receive_in_place()?;
        let payload = self.input.payload(&packet);
        match payload.split_first() {
            Some((0, event)) => Ok(Some(event)),
            _ => match Reply::decode(payload, false).map_err(|_| malformed())? {
                Reply::Error(error) => Err(LinkError::Refused(error)),
                Reply::End => Ok(None),
                _ => Err(malformed()),
            },
        }
    }

    /// Returns whether unprocessed bytes have arrived.
    pub fn has_waiting(&self) -> bool {
        !self.input.is_empty()
    }

    /// Acknowledges to a semi-synchronous source that everything before this position is durable.
    pub fn acknowledge(&mut self, file: &str, position: u64) -> Result<(), LinkError> {
        self.command(|out| {
            out.push(0xef);
            out.extend_from_slice(&position.to_le_bytes());
            out.extend_from_slice(file.as_bytes());
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const END: &[u8] = b"\xfe\0\0\0\0";

    /// Starts a fake source that replies to a query with one packet, and then repeats another packet without
    /// end.
    fn endless(first: &'static [u8], packet: &'static [u8]) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        std::thread::spawn(move || {
            let (mut source, _) = listener.accept().expect("connected");
            let mut question = [0; 64];
            let _ = source.read(&mut question);
            let framed = |packet: &[u8]| [&[packet.len() as u8, 0, 0, 1], packet].concat();
            let head = [framed(&[1]), framed(first)].concat();
            let _ = source.write_all(&head);
            let bytes = framed(packet).repeat(1000);
            while source.write_all(&bytes).is_ok() {}
        });
        let mut link = Link {
            socket,
            tls: None,
            input: InputBuffer::default(),
            scratch: vec![0; READ_BYTES],
            sequence: 0,
            packet_bytes_max: ANSWER_BYTES_MAX,
            version: String::new(),
        };
        link.input.ignore_sequence();
        link
    }

    #[test]
    fn an_answer_without_end_is_none() {
        let column = b"\x03def definition of a column";
        // Endless column definitions, and endless rows.
        for (first, packet) in [(column.as_slice(), column.as_slice()), (END, b"\x011")] {
            let outcome = endless(first, packet).query("SELECT 1");
            assert!(matches!(outcome, Err(LinkError::Gone(_))), "{:?}", outcome.map(|rows| rows.len()));
        }
        assert_eq!(endless(END, END).query("SELECT 1").expect("no rows").len(), 0);
    }
}
