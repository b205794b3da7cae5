//! Blocking connection: logs in, runs the benchmark's own statements, and prepares those of a load. A load
//! then takes over its socket.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::dialect::Dialect;
use crate::postgres;
use crate::socket::Socket;
use crate::wire::{self, COM_STMT_PREPARE, Reply, ServerError};

/// Time without a reply after which a server counts as dead.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Address of a server.
#[derive(Clone, Debug)]
pub enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
    /// TCP with TLS.
    Tls(SocketAddr),
    /// Unix socket of a PostgreSQL server.
    Postgres(PathBuf),
}

impl Address {
    /// Returns the dialect of the server at this address.
    pub fn dialect(&self) -> Dialect {
        if matches!(self, Address::Postgres(_)) { Dialect::Postgres } else { Dialect::MySql }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Address::Unix(path) | Address::Postgres(path) => write!(f, "{}", path.display()),
            Address::Tcp(address) | Address::Tls(address) => write!(f, "{address}"),
        }
    }
}

/// The reason why a request failed.
#[derive(Debug)]
pub enum ConnectionError {
    /// The socket failed or the server closed it.
    Lost(io::Error),
    /// The server returned an error; the connection stays usable.
    Server(ServerError),
    /// The server violated the protocol.
    Protocol(&'static str),
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ConnectionError::Lost(error) => write!(f, "connection lost: {error}"),
            ConnectionError::Server(error) => write!(f, "{error}"),
            ConnectionError::Protocol(what) => write!(f, "unexpected answer: {what}"),
        }
    }
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> ConnectionError {
        ConnectionError::Lost(error)
    }
}

/// Rows of a text result. NULL is `None`.
pub type Rows = Vec<Vec<Option<String>>>;

/// A logged-in connection.
pub struct Connection {
    socket: Socket,
    input: Vec<u8>,
    version: String,
    dialect: Dialect,
    /// Number of statements prepared so far, for dialects in which the client numbers them.
    prepared: u32,
}

impl Connection {
    /// Connects as `root` without a password.
    pub fn open(address: &Address, schema: &str) -> Result<Connection, ConnectionError> {
        let mut connection = Connection {
            socket: Socket::new(open_socket(address)?),
            input: Vec::new(),
            version: String::new(),
            dialect: address.dialect(),
            prepared: 0,
        };
        match connection.dialect {
            Dialect::MySql => connection.log_in(address, schema)?,
            Dialect::Postgres => connection.log_in_to_postgres(schema)?,
        }
        Ok(connection)
    }

    fn log_in(&mut self, address: &Address, schema: &str) -> Result<(), ConnectionError> {
        let connection = self;
        let greeting = connection.read_packet()?;
        if wire::is_error(&greeting) {
            return Err(ConnectionError::Server(wire::parse_error(&greeting)));
        }
        connection.version =
            wire::greeting_version(&greeting).ok_or(ConnectionError::Protocol("not a greeting"))?;
        let mut sequence = 1;
        if let Address::Tls(_) = address {
            connection.write_packet(sequence, &wire::ask_for_tls(schema))?;
            connection.socket.encrypt()?;
            sequence += 1;
        }
        let login = match address {
            Address::Tls(_) => wire::encrypted_login("root", schema),
            _ => wire::login("root", schema),
        };
        connection.write_packet(sequence, &login)?;
        let mut answer = connection.read_packet()?;
        if answer.first() == Some(&0xfe) {
            // The account uses another method. Without a password an empty response is enough.
            connection.write_packet(sequence + 2, &[])?;
            answer = connection.read_packet()?;
        }
        if wire::is_error(&answer) {
            return Err(ConnectionError::Server(wire::parse_error(&answer)));
        }
        Ok(())
    }

    fn log_in_to_postgres(&mut self, database: &str) -> Result<(), ConnectionError> {
        let mut out = Vec::new();
        postgres::startup("root", if database.is_empty() { "postgres" } else { database }, &mut out);
        self.socket.write_all(&out)?;
        let (mut version, mut asks) = (None, false);
        self.read_messages(|tag, body| {
            version = version.take().or_else(|| postgres::version(tag, body));
            asks |= postgres::asks_for_proof(tag, body);
            // The rest of the reply would never arrive.
            !asks
        })?;
        if asks {
            return Err(ConnectionError::Protocol("a password is asked for"));
        }
        self.version = version.ok_or(ConnectionError::Protocol("no version"))?;
        Ok(())
    }

    /// Returns the server's version string.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the server's dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Runs a statement of the text protocol.
    pub fn query(&mut self, sql: &str) -> Result<Rows, ConnectionError> {
        let mut out = Vec::new();
        self.dialect.query(&mut out, |out| out.extend_from_slice(sql.as_bytes()));
        self.socket.write_all(&out)?;
        if self.dialect == Dialect::Postgres {
            let mut rows = Rows::new();
            self.read_messages(|tag, body| {
                rows.extend(postgres::text_row(tag, body));
                true
            })?;
            return Ok(rows);
        }
        let columns = match self.read_checked()? {
            ok if ok.first() == Some(&0) => return Ok(Rows::new()),
            head => wire::length_encoded(&head).ok_or(ConnectionError::Protocol("column count"))?.0,
        };
        for _ in 0..=columns {
            self.read_packet()?;
        }
        let mut rows = Rows::new();
        loop {
            let packet = self.read_checked()?;
            if wire::is_eof(&packet) {
                return Ok(rows);
            }
            rows.push(text_row(&packet, columns).ok_or(ConnectionError::Protocol("row"))?);
        }
    }

    /// Prepares a statement and returns its id.
    pub fn prepare(&mut self, sql: &str) -> Result<u32, ConnectionError> {
        if self.dialect == Dialect::Postgres {
            self.prepared += 1;
            let mut out = Vec::new();
            postgres::prepare(self.prepared, &postgres::numbered(sql), &mut out);
            self.socket.write_all(&out)?;
            self.read_messages(|_, _| true)?;
            return Ok(self.prepared);
        }
        self.command(COM_STMT_PREPARE, |out| out.extend_from_slice(sql.as_bytes()))?;
        let head = self.read_checked()?;
        let number = |at: usize| head.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        let (Some(columns), Some(parameters)) = (number(5), number(7)) else {
            return Err(ConnectionError::Protocol("answer to a prepare"));
        };
        for definitions in [parameters, columns] {
            // Definitions, if there are any, are followed by an EOF.
            let packets = if definitions > 0 { definitions + 1 } else { 0 };
            for _ in 0..packets {
                self.read_packet()?;
            }
        }
        Ok(u32::from_le_bytes([head[1], head[2], head[3], head[4]]))
    }

    /// Sends a command. The thread that takes over the socket reads the reply.
    pub fn command(&mut self, code: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), ConnectionError> {
        let mut out = Vec::new();
        wire::command(code, &mut out, write);
        Ok(self.socket.write_all(&out)?)
    }

    /// Returns the socket. All replies must have been read.
    pub fn into_socket(self) -> Socket {
        assert!(self.input.is_empty(), "an answer was left unread");
        self.socket
    }

    fn write_packet(&mut self, sequence: u8, payload: &[u8]) -> Result<(), ConnectionError> {
        let mut out = Vec::new();
        wire::packet(sequence, payload, &mut out);
        Ok(self.socket.write_all(&out)?)
    }

    fn read_checked(&mut self) -> Result<Vec<u8>, ConnectionError> {
        let packet = self.read_packet()?;
        if wire::is_error(&packet) {
            return Err(ConnectionError::Server(wire::parse_error(&packet)));
        }
        Ok(packet)
    }

    fn read_packet(&mut self) -> Result<Vec<u8>, ConnectionError> {
        loop {
            if let Some((payload, bytes)) = wire::next_packet(&self.input) {
                let payload = payload.to_vec();
                self.input.drain(..bytes);
                return Ok(payload);
            }
            self.read_more()?;
        }
    }

    /// Passes the messages of a PostgreSQL reply to `look` until the reply ends or `look` returns false.
    fn read_messages(&mut self, mut look: impl FnMut(u8, &[u8]) -> bool) -> Result<(), ConnectionError> {
        let mut reader = postgres::ReplyReader::default();
        loop {
            while let Some((tag, body, bytes)) = postgres::next_message(&self.input) {
                let goes_on = look(tag, body);
                let reply = reader.take(tag, body);
                self.input.drain(..bytes);
                match reply {
                    Some(Reply::Error(error)) => return Err(ConnectionError::Server(error)),
                    Some(Reply::Done { .. }) => return Ok(()),
                    None if goes_on => {}
                    None => return Ok(()),
                }
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<(), ConnectionError> {
        let mut chunk = [0; 16384];
        let bytes = read(&mut self.socket, &mut chunk)?;
        if bytes == 0 {
            let closed = io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the server");
            return Err(ConnectionError::Lost(closed));
        }
        self.input.extend_from_slice(&chunk[..bytes]);
        Ok(())
    }
}

/// Reads once, and retries if the call is interrupted: with a timeout on the socket, stopping and continuing
/// this process interrupts it.
pub fn read(socket: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn open_socket(address: &Address) -> io::Result<File> {
    let socket = match address {
        Address::Unix(path) | Address::Postgres(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            OwnedFd::from(stream)
        }
        Address::Tcp(address) | Address::Tls(address) => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            OwnedFd::from(stream)
        }
    };
    // Both kinds of sockets are used in the same way from here on.
    Ok(File::from(socket))
}

/// Parses a row of a text result.
pub fn text_row(packet: &[u8], columns: u64) -> Option<Vec<Option<String>>> {
    let mut rest = packet;
    let mut row = Vec::new();
    for _ in 0..columns {
        if rest.first() == Some(&0xfb) {
            row.push(None);
            rest = &rest[1..];
            continue;
        }
        let (bytes, head) = wire::length_encoded(rest)?;
        let end = head + bytes as usize;
        row.push(Some(String::from_utf8_lossy(rest.get(head..end)?).into_owned()));
        rest = &rest[end..];
    }
    Some(row)
}
