//! Options of the connection. A password is never an argument, because every user sees arguments in `ps`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::client::{Account, Tls};
use crate::failure::{Failure, Result};

/// Groups of an option file that are read, the later ones with precedence.
const GROUPS: &[&str] = &["client", "client-server", "client-mariadb", "cohort-backup"];

/// The options.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// Name or address of the server
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Port of the server, 3306 unless the option file says otherwise
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Socket file of a server on this machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "port"])]
    socket: Option<PathBuf>,
    /// Account; this system's user unless the option file says otherwise
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Read host, port, socket, user, password and ssl-ca from the groups [client] and [cohort-backup]
    #[arg(long, value_name = "FILE")]
    defaults_file: Option<PathBuf>,
    /// Ask for the password. Otherwise it is that of the option file or of the variable MYSQL_PWD
    #[arg(long)]
    password: bool,
    /// Require TLS. Without this option it is used if the server offers it
    #[arg(long, conflicts_with = "skip_ssl")]
    ssl: bool,
    /// Do not use TLS
    #[arg(long, conflicts_with_all = ["ssl_ca", "ssl_verify_server_cert"])]
    skip_ssl: bool,
    /// Certificates of authorities: one of them must have issued the server's certificate for HOST
    #[arg(long, value_name = "FILE")]
    ssl_ca: Option<PathBuf>,
    /// The server must prove by the password that its certificate is its own, unless --ssl-ca is given
    #[arg(long)]
    ssl_verify_server_cert: bool,
}

impl Connection {
    /// Returns the value that an option has in the option file.
    pub fn of_file(&self, name: &str) -> Result<Option<String>> {
        let options = self.defaults_file.as_deref().map(read_file).transpose()?.unwrap_or_default();
        Ok(options.into_iter().rev().find(|(n, _)| n == name).map(|(_, value)| value))
    }

    /// Returns the account, with values of the option file where an option is missing.
    pub fn account(&self) -> Result<Account> {
        let options = self.defaults_file.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let of_file = |name: &str| options.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let port = match (self.port, of_file("port")) {
            (Some(port), _) => port,
            (None, None) => 3306,
            (None, Some(text)) => {
                text.parse().map_err(|_| Failure::Refused(format!("'{text}' is not a port")))?
            }
        };
        let user = self.user.clone().or_else(|| of_file("user")).or_else(|| std::env::var("USER").ok());
        let password = match self.password {
            true if !std::io::stdin().is_terminal() => {
                return Err(Failure::Refused("--password needs a terminal; use an option file".to_owned()));
            }
            true => rpassword::prompt_password("Password: ").map_err(|e| Failure::Refused(e.to_string()))?,
            false => of_file("password").or_else(|| std::env::var("MYSQL_PWD").ok()).unwrap_or_default(),
        };
        let host = self.host.clone().or_else(|| of_file("host").filter(|_| self.socket.is_none()));
        let socket = self.socket.clone().or_else(|| of_file("socket").map(PathBuf::from));
        Ok(Account {
            socket: socket.filter(|_| host.is_none() && self.port.is_none()),
            host,
            port,
            user: user.unwrap_or_else(|| "root".to_owned()),
            password,
            tls: match (self.ssl, self.skip_ssl) {
                (true, _) => Tls::Required,
                (_, true) => Tls::Never,
                _ => Tls::Offered,
            },
            ca: self.ssl_ca.clone().or_else(|| of_file("ssl-ca").map(PathBuf::from)),
            proves_certificate: self.ssl_verify_server_cert,
        })
    }
}

/// Reads the options of an option file: `name = value` and `name` below a group. Names are returned with
/// dashes.
fn read_file(path: &Path) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Refused(format!("option file {}: {error}", path.display())))?;
    let mut options = Vec::new();
    let mut group = None;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '!'])) {
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_end_matches(']').trim();
            group = GROUPS.iter().position(|known| *known == name);
        } else if let (Some(rank), false) = (group, line.is_empty()) {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            let value = value.trim();
            let quoted = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
            let plain = value.split(" #").next().unwrap_or_default().trim_end();
            options.push((rank, name.trim().replace('_', "-"), quoted.unwrap_or(plain).to_owned()));
        }
    }
    options.sort_by_key(|(rank, _, _)| *rank);
    Ok(options.into_iter().map(|(_, name, value)| (name, value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_files_are_read_by_group() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = "[cohort-backup]\nuser=keeper\n[mysqld]\nport=1\n[client]\n# no\nuser = app\n\
                    password='a # b' \nport=3307 # comment\nssl_ca=ca.pem\n";
        std::fs::write(file.path(), text).expect("written");
        let read = read_file(file.path()).expect("read");
        let of = |name: &str| read.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        assert_eq!(of("user"), Some("keeper"));
        assert_eq!(of("password"), Some("a # b"));
        assert_eq!((of("port"), of("ssl-ca")), (Some("3307"), Some("ca.pem")));
    }
}
