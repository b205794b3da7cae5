//! The network connection to a source, as its client.
//!
//! # On failure
//! [`LinkError::Gone`]: the network failed or the source closed the connection; a retry may help.
//! [`LinkError::Refused`]: the source returned an error, whose text is for SHOW SLAVE STATUS.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use cohort_clone::wire::{Login, TlsUse, Wire, WireError};
use cohort_protocol::{Reply, ServerError, register_replica, request_dump, text_row};
use cohort_tls::TlsSettings;

use crate::settings::{SourceSettings, Tls};

/// Maximum time that a connection attempt delays a stop request.
const CONNECT_SLICE: Duration = Duration::from_secs(2);
/// Maximum size of the reply to a query; replies are small.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Memory of a reply row in addition to its bytes.
const ROW_BYTES: usize = 64;

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

impl From<WireError> for LinkError {
    fn from(error: WireError) -> LinkError {
        let lost = || LinkError::Gone("Lost connection to server during query".to_owned());
        match error {
            WireError::Io(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                lost()
            }
            WireError::Io(error) => error.into(),
            WireError::Closed => lost(),
            WireError::TooLarge => LinkError::TooLarge,
            WireError::Malformed => malformed(),
            WireError::Refused(error) => LinkError::Refused(error),
            WireError::NoTls => no_tls("SSL is required, but the server does not support it"),
            WireError::TlsSettings(why) | WireError::Tls(why) => no_tls(why),
            WireError::Unproven => {
                no_tls("Certificate verification failure: The certificate is NOT trusted.")
            }
            WireError::Plugin(plugin) => LinkError::Refused(ServerError {
                code: 2059,
                message: format!("Authentication plugin '{plugin}' cannot be loaded"),
            }),
        }
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
    wire: Wire<TcpStream>,
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
        let mut wire = Wire::new(socket, ANSWER_BYTES_MAX);
        let has_authority = !settings.tls.ca.is_empty() || !settings.tls.capath.is_empty();
        let tls = TlsUse {
            is_required: true,
            settings: tls_settings(&settings.tls),
            verifies_name: settings.tls.verifies_name,
            proves_certificate: settings.tls.verifies_name && !has_authority,
        };
        let version = wire.log_in(&Login {
            user: &settings.user,
            password: &settings.password.0,
            host: &settings.host,
            tls: settings.tls.is_wanted.then_some(&tls),
        })?;
        Ok(Link { wire, version })
    }

    /// Returns the version from the source's greeting.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Runs a query and returns its rows, or no rows for a statement without a result.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, LinkError> {
        self.wire.command(|out| {
            out.push(3);
            out.extend_from_slice(sql.as_bytes());
        })?;
        let head = self.wire.receive()?;
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
        let payload = self.wire.receive()?;
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
        self.wire.command(|out| register_replica(server_id, host, port, out))?;
        let payload = self.wire.receive()?;
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
        self.wire.packet_bytes_max = event_bytes_max;
        // The request has 32 bits for the position. Sources that need it have no larger files.
        let position = u32::try_from(place.1).unwrap_or(u32::MAX);
        Ok(self.wire.command(|out| request_dump(server_id, place.0, position, annotate, out))?)
    }

    /// Returns the next packet of a dump: an event, without the leading zero byte but with the two bytes of a
    /// semi-synchronous header. Returns `None` if the source ends the dump, which it does only on request.
    pub fn next_event(&mut self) -> Result<Option<&[u8]>, LinkError> {
        let packet = self.wire.receive_in_place()?;
        let payload = self.wire.payload(&packet);
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
        self.wire.has_waiting()
    }

    /// Acknowledges to a semi-synchronous source that everything before this position is durable.
    pub fn acknowledge(&mut self, file: &str, position: u64) -> Result<(), LinkError> {
        Ok(self.wire.command(|out| {
            out.push(0xef);
            out.extend_from_slice(&position.to_le_bytes());
            out.extend_from_slice(file.as_bytes());
        })?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
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
        Link { wire: Wire::new(socket, ANSWER_BYTES_MAX), version: String::new() }
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
