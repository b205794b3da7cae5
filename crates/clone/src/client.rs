//! A connection to a server, as far as a backup needs it: login, statements, rows one by one.
//!
//! TLS is used if the server offers it, unless `--skip-ssl` forbids it; `--ssl` demands it. With authorities
//! the certificate must be issued by one of them for the host's name. With `--ssl-verify-server-cert` and no
//! authorities the server proves with the hash of the password that the certificate is its own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use cohort_base::whole_chars;
use cohort_protocol::{
    CLIENT_ED25519, Capabilities, Ed25519Key, InputBuffer, LoginRequest, NATIVE_PASSWORD, NativePassword,
    Nonce, Packet, PacketWriter, Reply, Scramble, ServerError, ServerGreeting, certificate_proof, text_row,
};
use cohort_tls::{Connector, TlsSettings, TlsStream};

use crate::failure::{Failure, Result};

/// Maximum size of a packet unless the caller reads rows of any size. A row of BACKUP SERVER TO STREAM has
/// 1 MiB of data.
const PACKET_BYTES_MAX: usize = 4 << 20;
const READ_BYTES: usize = 256 << 10;
/// Maximum number of packets in a login.
const LOGIN_PACKETS_MAX: usize = 16;
/// utf8mb3_general_ci.
const COLLATION: u8 = 33;
/// Time for a connection to an address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A checkpoint may take long before the first row.
const TIMEOUT: Duration = Duration::from_secs(600);
const COM_QUERY: u8 = 3;
const ACCESS_DENIED: u16 = 1045;
/// Maximum length of a statement in a failure.
const SHOWN_MAX: usize = 200;

/// Where and how to connect.
#[derive(Clone, Debug, Default)]
pub struct Account {
    pub host: Option<String>,
    pub port: u16,
    pub socket: Option<PathBuf>,
    pub user: String,
    pub password: String,
    pub tls: Tls,
    pub ca: Option<PathBuf>,
    pub proves_certificate: bool,
}

impl Account {
    /// Returns whether a connection without TLS is refused.
    pub fn demands_tls(&self) -> bool {
        self.tls == Tls::Required || self.ca.is_some() || self.proves_certificate
    }
}

/// Use of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// If the server offers it.
    #[default]
    Offered,
    Required,
    Never,
}

trait Socket: Read + Write + Send {}
impl<T: Read + Write + Send> Socket for T {}

/// Ends a connection from another thread.
pub struct Stopper(TcpStream);

impl Stopper {
    /// Ends the connection: what waits for the server fails.
    pub fn stop(&self) {
        // It may have ended by itself.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// A connection that is logged in.
pub struct Client {
    socket: Box<dyn Socket>,
    tls: Option<TlsStream>,
    input: InputBuffer,
    scratch: Vec<u8>,
    sequence: u8,
    packet_bytes_max: usize,
    place: String,
}

/// Columns of a row; `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

/// Returns a column as text; NULL is empty.
pub fn text_of(column: &Option<Vec<u8>>) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(column.as_deref().unwrap_or_default())
}

/// Quotes a name of SQL.
pub fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Quotes a string of SQL.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

impl Client {
    pub fn connect(account: &Account) -> Result<Client> {
        Client::connect_stoppable(account, |_| {})
    }

    /// Connects, and gives away what ends the connection before anything can take long. A connection to a
    /// socket file has nothing of the kind.
    pub fn connect_stoppable(account: &Account, give: impl FnOnce(Stopper)) -> Result<Client> {
        let place = match (&account.socket, &account.host) {
            (Some(path), _) => path.display().to_string(),
            (None, host) => format!("{}:{}", host.as_deref().unwrap_or("localhost"), account.port),
        };
        let failed = |error: io::Error| Failure::Failed(format!("cannot connect to {place}: {error}"));
        let socket: Box<dyn Socket> = match &account.socket {
            Some(path) => {
                let socket = UnixStream::connect(path).map_err(failed)?;
                socket.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
                Box::new(socket)
            }
            None => {
                let socket = connect_tcp(account.host.as_deref().unwrap_or("localhost"), account.port)
                    .map_err(failed)?;
                give(Stopper(socket.try_clone().map_err(failed)?));
                socket.set_nodelay(true).map_err(failed)?;
                socket.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
                Box::new(socket)
            }
        };
        let mut client = Client {
            socket,
            tls: None,
            input: InputBuffer::default(),
            scratch: vec![0; READ_BYTES],
            sequence: 1,
            packet_bytes_max: PACKET_BYTES_MAX,
            place,
        };
        // A reply begins with the number after that of its command.
        client.input.ignore_sequence();
        client.log_in(account)?;
        Ok(client)
    }

    /// Accepts rows as large as a server can send.
    pub fn accept_large_rows(&mut self) {
        self.packet_bytes_max = 1 << 30;
    }

    /// Runs a statement without a result.
    pub fn execute(&mut self, sql: &str) -> Result<()> {
        self.query(sql, |_| Ok(()))
    }

    fn failure(&self, what: impl std::fmt::Display) -> Failure {
        Failure::Failed(format!("server {}: {what}", self.place))
    }

    /// Returns the failure of a login. A wrong account or password stays wrong.
    fn rejected(&self, error: &ServerError) -> Failure {
        match error.code {
            ACCESS_DENIED => Failure::Refused(format!("server {}: {}", self.place, error.message)),
            _ => self.failure(&error.message),
        }
    }

    fn malformed(&self) -> Failure {
        self.failure("malformed packet")
    }

    fn log_in(&mut self, account: &Account) -> Result<()> {
        let payload = self.receive()?;
        if let Ok(Reply::Error(error)) = Reply::decode(&payload, true) {
            return Err(self.rejected(&error));
        }
        let greeting = ServerGreeting::decode(&payload).map_err(|_| self.malformed())?;
        let is_offered = greeting.capabilities.has(Capabilities::SSL);
        if account.demands_tls() && !is_offered {
            return Err(self.failure("TLS is required, but the server does not offer it"));
        }
        let is_encrypted = is_offered && account.tls != Tls::Never && account.socket.is_none();
        let password = account.password.as_bytes();
        let login = LoginRequest {
            user: &account.user,
            password: &account.password,
            is_encrypted,
            collation: COLLATION,
        };
        if is_encrypted {
            self.begin_tls(account, &greeting, &login)?;
        }
        self.send(|out| login.encode(&greeting, out))?;
        // The hash that the server stores, for its proof.
        let mut stored = NativePassword::of(password).bytes().to_vec();
        let mut scramble = greeting.scramble;
        for _ in 0..LOGIN_PACKETS_MAX {
            let payload = self.receive()?;
            match Reply::decode(&payload, true).map_err(|_| self.malformed())? {
                Reply::Ok => return self.check_proof(account, &stored, &scramble, &payload),
                Reply::Error(error) => return Err(self.rejected(&error)),
                Reply::Switch { plugin, data } if plugin == NATIVE_PASSWORD.as_bytes() => {
                    let random = data.get(..20).and_then(|data| data.try_into().ok());
                    scramble = Scramble(random.ok_or_else(|| self.malformed())?);
                    let answer = scramble.answer(password);
                    self.send(|out| out.extend_from_slice(&answer))?;
                }
                Reply::Switch { plugin, data } if plugin == CLIENT_ED25519.as_bytes() => {
                    let nonce = data.get(..32).and_then(|data| data.try_into().ok());
                    let nonce = Nonce(nonce.ok_or_else(|| self.malformed())?);
                    stored = Ed25519Key::of(password).bytes().to_vec();
                    let answer = nonce.answer(password);
                    self.send(|out| out.extend_from_slice(&answer))?;
                }
                Reply::Switch { plugin, .. } => {
                    let plugin = String::from_utf8_lossy(plugin);
                    return Err(self.failure(format!("authentication plugin '{plugin}' is not supported")));
                }
                Reply::Other(_) | Reply::End => return Err(self.malformed()),
            }
        }
        Err(self.malformed())
    }

    fn begin_tls(
        &mut self,
        account: &Account,
        greeting: &ServerGreeting,
        login: &LoginRequest<'_>,
    ) -> Result<()> {
        let ca = account.ca.as_ref().map_or(String::new(), |path| path.display().to_string());
        let settings = TlsSettings { ca, ..TlsSettings::default() };
        let connector = Connector::new(&settings, account.ca.is_some());
        let connector = connector.map_err(|error| Failure::Refused(format!("TLS: {error}")))?;
        self.send(|out| login.encode_tls_request(greeting, out))?;
        let early = self.input.take_rest();
        let host = account.host.as_deref().unwrap_or("localhost");
        self.tls = Some(connector.connect(host, early).map_err(|error| self.failure(error))?);
        Ok(())
    }

    /// Checks the server's proof that the certificate is its own.
    fn check_proof(&self, account: &Account, stored: &[u8], scramble: &Scramble, ok: &[u8]) -> Result<()> {
        if !account.proves_certificate || account.ca.is_some() {
            return Ok(());
        }
        let certificate = self.tls.as_ref().and_then(|tls| tls.peer_der());
        let wanted = certificate.map(|shown| certificate_proof(stored, scramble, shown));
        let is_proven = wanted.filter(|_| !account.password.is_empty()).is_some_and(|wanted| {
            let shown = &ok[ok.len().saturating_sub(wanted.len())..];
            // Compared in constant time.
            shown.len() == wanted.len()
                && shown.iter().zip(wanted.bytes()).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
        });
        match is_proven {
            true => Ok(()),
            false => Err(self.failure("it does not prove that its certificate is its own")),
        }
    }

    fn send(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let mut out = Vec::new();
        let mut packet = PacketWriter::begin(&mut out, &mut self.sequence);
        fill(packet.payload());
        packet.end();
        let written = match &mut self.tls {
            None => self.socket.write_all(&out),
            Some(tls) => write_records(tls, &mut self.socket, &out),
        };
        written.map_err(|error| self.failure(error))
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        let packet = self.receive_in_place()?;
        Ok(self.input.payload(&packet).to_vec())
    }

    fn receive_in_place(&mut self) -> Result<Packet> {
        loop {
            match self.input.next(self.packet_bytes_max) {
                Ok(Some(packet)) => {
                    self.sequence = packet.sequence.wrapping_add(1);
                    return Ok(packet);
                }
                Ok(None) => {}
                Err(_) => return Err(self.malformed()),
            }
            let count = match &mut self.tls {
                None => self.socket.read(&mut self.scratch),
                Some(tls) => tls.read(&mut self.socket, &mut self.scratch).map(|received| received.bytes),
            };
            match count {
                Ok(0) => return Err(self.failure("it closed the connection")),
                Ok(count) => self.input.extend(&self.scratch[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
    }

    /// Runs a statement and calls `each` for every row, while the server sends more.
    pub fn query(&mut self, sql: &str, mut each: impl FnMut(Row) -> Result<()>) -> Result<()> {
        self.sequence = 0;
        self.send(|out| {
            out.push(COM_QUERY);
            out.extend_from_slice(sql.as_bytes());
        })?;
        let head = self.receive()?;
        match Reply::decode(&head, false).map_err(|_| self.malformed())? {
            Reply::Error(error) => return Err(self.refusal(sql, &error.message)),
            Reply::Other([0, ..]) => return Ok(()),
            _ => {}
        }
        let mut is_row = false;
        loop {
            let packet = self.receive_in_place()?;
            let payload = self.input.payload(&packet);
            match Reply::decode(payload, false) {
                Ok(Reply::End) if is_row => return Ok(()),
                // The end of the columns' definitions.
                Ok(Reply::End) => is_row = true,
                Ok(Reply::Error(error)) => {
                    let text = error.message;
                    return Err(self.refusal(sql, &text));
                }
                Ok(_) if is_row => match text_row(payload) {
                    Ok(row) => each(row)?,
                    Err(_) => return Err(self.malformed()),
                },
                Ok(_) => {}
                Err(_) => return Err(self.malformed()),
            }
        }
    }

    /// Runs a statement whose result has one row, and returns it.
    pub fn row(&mut self, sql: &str) -> Result<Row> {
        let mut found = None;
        self.query(sql, |row| {
            found = Some(row);
            Ok(())
        })?;
        found.ok_or_else(|| self.failure(format!("{sql}: no row")))
    }

    fn refusal(&self, sql: &str, message: &str) -> Failure {
        let shown = whole_chars(sql, SHOWN_MAX);
        let more = if shown.len() < sql.len() { " .." } else { "" };
        self.failure(format!("{shown}{more}: {message}"))
    }
}

/// Connects to the first address of a host that answers.
fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut outcome = Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    for address in (host, port).to_socket_addrs()? {
        outcome = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn write_records(tls: &mut TlsStream, socket: &mut Box<dyn Socket>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match tls.write(socket, bytes)? {
            0 => return Err(io::ErrorKind::TimedOut.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}
