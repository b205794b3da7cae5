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
use cohort_protocol::{Reply, text_row};
use cohort_tls::TlsSettings;

use crate::failure::{Failure, Result};
use crate::wire::{Login, TlsUse, Wire, WireError};

/// Maximum size of a packet unless the caller reads rows of any size. A row of BACKUP SERVER TO STREAM has
/// 1 MiB of data.
const PACKET_BYTES_MAX: usize = 4 << 20;
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
    wire: Wire<Box<dyn Socket>>,
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
        let mut client = Client { wire: Wire::new(socket, PACKET_BYTES_MAX), place };
        client.log_in(account)?;
        Ok(client)
    }

    /// Accepts rows as large as a server can send.
    pub fn accept_large_rows(&mut self) {
        self.wire.packet_bytes_max = 1 << 30;
    }

    /// Runs a statement without a result.
    pub fn execute(&mut self, sql: &str) -> Result<()> {
        self.query(sql, |_| Ok(()))
    }

    fn failure(&self, what: impl std::fmt::Display) -> Failure {
        Failure::Failed(format!("server {}: {what}", self.place))
    }

    /// Returns the failure of an error. A wrong account or password stays wrong, as does a wrong certificate.
    fn failed(&self, error: WireError) -> Failure {
        match error {
            WireError::Io(error) => self.failure(error),
            WireError::Closed => self.failure("it closed the connection"),
            WireError::TooLarge | WireError::Malformed => self.failure("malformed packet"),
            WireError::Refused(error) if error.code == ACCESS_DENIED => {
                Failure::Refused(format!("server {}: {}", self.place, error.message))
            }
            WireError::Refused(error) => self.failure(error.message),
            WireError::NoTls => self.failure("TLS is required, but the server does not offer it"),
            WireError::TlsSettings(error) => Failure::Refused(format!("TLS: {error}")),
            WireError::Tls(error) => self.failure(error),
            WireError::Unproven => self.failure("it does not prove that its certificate is its own"),
            WireError::Plugin(plugin) => {
                self.failure(format!("authentication plugin '{plugin}' is not supported"))
            }
        }
    }

    fn malformed(&self) -> Failure {
        self.failed(WireError::Malformed)
    }

    fn log_in(&mut self, account: &Account) -> Result<()> {
        let ca = account.ca.as_ref().map_or(String::new(), |path| path.display().to_string());
        let tls = TlsUse {
            is_required: account.demands_tls(),
            settings: TlsSettings { ca, ..TlsSettings::default() },
            // Without authorities only the times of the certificate are verified.
            verifies_name: account.ca.is_some() || account.proves_certificate,
            proves_certificate: account.proves_certificate && account.ca.is_none(),
        };
        // Over a socket file only on demand.
        let is_wanted = account.tls != Tls::Never && (account.socket.is_none() || tls.is_required);
        let login = Login {
            user: &account.user,
            password: &account.password,
            host: account.host.as_deref().unwrap_or("localhost"),
            tls: is_wanted.then_some(&tls),
        };
        self.wire.log_in(&login).map(drop).map_err(|error| self.failed(error))
    }

    /// Runs a statement and calls `each` for every row, while the server sends more.
    pub fn query(&mut self, sql: &str, mut each: impl FnMut(Row) -> Result<()>) -> Result<()> {
        let sent = self.wire.command(|out| {
            out.push(COM_QUERY);
            out.extend_from_slice(sql.as_bytes());
        });
        let head = sent.and_then(|()| self.wire.receive()).map_err(|error| self.failed(error))?;
        match Reply::decode(&head, false).map_err(|_| self.malformed())? {
            Reply::Error(error) => return Err(self.refusal(sql, &error.message)),
            Reply::Other([0, ..]) => return Ok(()),
            _ => {}
        }
        let mut is_row = false;
        loop {
            let packet = self.wire.receive_in_place().map_err(|error| self.failed(error))?;
            let payload = self.wire.payload(&packet);
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
