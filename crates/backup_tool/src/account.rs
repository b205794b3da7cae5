//! Options of the connection, and the option files of MariaDB's client programs.
//!
//! A password is never an argument, because every user sees arguments in `ps`. Options of the command line
//! precede those of files; of several values in files the last one counts.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use cohort_config::DefaultsPlan;

use crate::client::{Account, Tls};
use crate::failure::{Failure, Result};

/// Groups of option files that are read.
pub const GROUPS: &[&str] = &["client", "client-server", "client-mariadb", "cohort-backup"];
/// The group of this program, which may have no other options than these. Those of other groups may be for
/// other programs.
const OWN_GROUP: &str = "cohort-backup";
const KNOWN: &[&str] = &[
    "host",
    "port",
    "socket",
    "user",
    "password",
    "ssl",
    "skip-ssl",
    "ssl-ca",
    "ssl-verify-server-cert",
    "skip-ssl-verify-server-cert",
    "key-file",
    "rate-limit",
    "server-binary",
    "replica-user",
    "replica-password",
];
/// Option whose values `--print-defaults` does not show.
const SECRET: &str = "password";
const SOCKET: &str = "/run/mysqld/mysqld.sock";
const PORT: u16 = 3306;

/// The option files to read.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Option files")]
pub struct Defaults {
    /// Read no option file
    #[arg(long, global = true, conflicts_with_all = ["defaults_file", "defaults_extra_file"])]
    no_defaults: bool,
    /// Read this option file only
    #[arg(long, global = true, value_name = "FILE")]
    defaults_file: Option<PathBuf>,
    /// Read this option file after the global ones
    #[arg(long, global = true, value_name = "FILE")]
    defaults_extra_file: Option<PathBuf>,
    /// Also read the groups with this suffix: [clientSUFFIX], [cohort-backupSUFFIX]
    #[arg(long, global = true, value_name = "SUFFIX")]
    defaults_group_suffix: Option<String>,
    /// Print the options of the files without passwords, and exit
    #[arg(long, global = true)]
    pub print_defaults: bool,
}

impl Defaults {
    /// Returns whether the command line names a file.
    pub fn names_a_file(&self) -> bool {
        self.defaults_file.is_some() || self.defaults_extra_file.is_some()
    }

    /// Reads the files.
    pub fn read(&self) -> Result<FileOptions> {
        let plan = DefaultsPlan {
            none: self.no_defaults,
            file: self.defaults_file.clone(),
            extra: self.defaults_extra_file.clone(),
            suffix: self.defaults_group_suffix.clone(),
            print: self.print_defaults,
        };
        let found = plan.read(GROUPS).map_err(|error| Failure::Refused(error.to_string()))?;
        found.warnings.iter().for_each(|warning| eprintln!("cohort-backup: {warning}"));
        let mut options = Vec::new();
        for option in found.arguments {
            let written = option.argument.trim_start_matches('-');
            let (name, value) = written.split_once('=').map_or((written, None), |(n, v)| (n, Some(v)));
            let name = name.trim().replace('_', "-");
            let (name, is_loose) =
                name.strip_prefix("loose-").map_or((name.as_str(), false), |name| (name, true));
            if KNOWN.contains(&name) {
                options.push((name.to_owned(), value.map(str::to_owned)));
            } else if option.group.starts_with(OWN_GROUP) && !is_loose {
                let (file, line) = (option.file.display(), option.line);
                return Err(Failure::Refused(format!("unknown option '--{name}' in {file} at line {line}")));
            }
        }
        Ok(FileOptions(options))
    }
}

/// Options of files, with dashes in their names.
#[derive(Debug, Default)]
pub struct FileOptions(Vec<(String, Option<String>)>);

impl FileOptions {
    /// Returns the value of an option.
    pub fn of(&self, name: &str) -> Option<String> {
        let found = self.0.iter().rev().find(|(known, _)| known == name)?;
        Some(found.1.clone().unwrap_or_default())
    }

    /// Returns whether an option is on, which `skip-` turns off; `None` if there is none.
    fn flag(&self, name: &str) -> Option<bool> {
        self.0.iter().rev().find_map(|(known, value)| {
            let is_on = !matches!(value.as_deref(), Some("0" | "OFF" | "off" | "FALSE" | "false"));
            match known.strip_prefix("skip-") {
                Some(known) if known == name => Some(!is_on),
                _ => (known == name).then_some(is_on),
            }
        })
    }

    /// Returns a number.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>> {
        let wrong = |text: &str| Failure::Refused(format!("option files: '{text}' is no value of {name}"));
        self.of(name).map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
    }

    /// Returns the options as arguments, without passwords.
    pub fn text(&self) -> String {
        let shown = |(name, value): &(String, Option<String>)| match value {
            Some(_) if name.ends_with(SECRET) => format!("--{name}=*****"),
            Some(value) => format!("--{name}={value}"),
            None => format!("--{name}"),
        };
        self.0.iter().map(shown).collect::<Vec<_>>().join(" ")
    }
}

/// The options.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// Name or address of the server. Without it, or if it is `localhost` and no port is given, the socket
    /// file is used
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Port of the server, 3306 unless the option files say otherwise
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Socket file of a server on this machine, /run/mysqld/mysqld.sock unless the option files say otherwise
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "port"])]
    socket: Option<PathBuf>,
    /// Account; this system's user unless the option files say otherwise
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Ask for the password. Otherwise it is that of the option files or of the variable MYSQL_PWD
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
    /// Returns the account, with values of the option files where an option is missing.
    pub fn account(&self, files: &FileOptions) -> Result<Account> {
        let user = self.user.clone().or_else(|| files.of("user")).or_else(|| std::env::var("USER").ok());
        let password = match self.password {
            true if !std::io::stdin().is_terminal() => {
                return Err(Failure::Refused("--password needs a terminal; use an option file".to_owned()));
            }
            true => rpassword::prompt_password("Password: ").map_err(|e| Failure::Refused(e.to_string()))?,
            false => files.of("password").or_else(|| std::env::var("MYSQL_PWD").ok()).unwrap_or_default(),
        };
        let host = self.host.clone().or_else(|| files.of("host").filter(|_| self.socket.is_none()));
        let is_local = host.as_deref().is_none_or(|host| host == "localhost") && self.port.is_none();
        let socket = || self.socket.clone().or_else(|| files.of("socket").map(PathBuf::from));
        let tls = match (self.ssl, self.skip_ssl, files.flag("ssl")) {
            (true, _, _) | (_, false, Some(true)) => Tls::Required,
            (_, true, _) | (_, _, Some(false)) => Tls::Never,
            _ => Tls::Offered,
        };
        let of_files = files.of("ssl-ca").filter(|ca| !ca.is_empty() && tls != Tls::Never);
        Ok(Account {
            socket: is_local.then(|| socket().unwrap_or_else(|| PathBuf::from(SOCKET))),
            host,
            port: self.port.or(files.number("port")?).unwrap_or(PORT),
            user: user.unwrap_or_else(|| "root".to_owned()),
            password,
            tls,
            ca: self.ssl_ca.clone().or_else(|| of_files.map(PathBuf::from)),
            proves_certificate: tls != Tls::Never
                && (self.ssl_verify_server_cert || files.flag("ssl-verify-server-cert") == Some(true)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, suffix: Option<&str>) -> Result<FileOptions> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let defaults_group_suffix = suffix.map(str::to_owned);
        let defaults_file = Some(file.path().to_owned());
        Defaults { defaults_file, defaults_group_suffix, ..Defaults::default() }.read()
    }

    #[test]
    fn option_files_are_read_as_by_the_client_programs_of_mariadb() {
        let text = "[cohort-backup]\nuser=keeper\nkey_file=k\n[mysqld]\nport=1\n[client]\n# no\nport = app\n\
                    password='a # b' \nport=3307 # comment\nssl_ca=ca.pem\ndefault-character-set=utf8mb4\n\
                    [client7]\nport=3308\nuser=seven\n[cohort-backup7]\nloose-what=1\n";
        let files = read(text, None).expect("read");
        let of = |name: &str| files.of(name);
        assert_eq!(of("user").as_deref(), Some("keeper"));
        assert_eq!(of("password").as_deref(), Some("a # b"));
        assert_eq!((of("port").as_deref(), of("key-file").as_deref()), (Some("3307"), Some("k")));
        assert_eq!(
            files.text(),
            "--user=keeper --key-file=k --port=app --password=***** --port=3307 --ssl-ca=ca.pem"
        );
        // In the order of the file, whatever the group.
        let files = read(text, Some("7")).expect("read");
        assert_eq!((files.of("port").as_deref(), files.of("user").as_deref()), (Some("3308"), Some("seven")));
        let unknown = read("[cohort-backup]\nkeyfile=k\n", None).expect_err("mistyped").to_string();
        assert!(unknown.contains("unknown option '--keyfile'") && unknown.contains("at line 2"), "{unknown}");
        assert!(read("[cohort-backup7]\nkeyfile=k\n", None).is_ok(), "a group that is not read");
        let missing = Defaults { defaults_file: Some("/no/such".into()), ..Defaults::default() }.read();
        assert!(missing.expect_err("required").to_string().contains("Could not open required defaults file"));
    }

    #[test]
    fn options_of_the_command_line_precede_those_of_files() {
        let account = |connection: Connection, text: &str| {
            connection.account(&read(text, None).expect("read")).expect("an account")
        };
        let file = "[client]\nhost=db1\nport=3307\nuser=u\nsocket=/s\nssl\n";
        let found = account(Connection::default(), file);
        assert_eq!((found.host.as_deref(), found.port, found.socket), (Some("db1"), 3307, None));
        assert_eq!((found.user.as_str(), found.tls), ("u", Tls::Required));
        let socket = Connection { socket: Some("/t".into()), skip_ssl: true, ..Connection::default() };
        let found = account(socket, file);
        assert_eq!((found.host, found.socket, found.tls), (None, Some("/t".into()), Tls::Never));
        let host = Connection { host: Some("db2".to_owned()), ..Connection::default() };
        let found = account(host, file);
        assert_eq!((found.host.as_deref(), found.port, found.socket), (Some("db2"), 3307, None));
        // As in MariaDB, `localhost` is the socket file unless the command line has a port.
        let local = "[client]\nhost=localhost\nport=3307\nskip-ssl\nssl-ca=x\n";
        let found = account(Connection::default(), local);
        assert_eq!((found.socket, found.tls, found.ca), (Some(SOCKET.into()), Tls::Never, None));
        let port = Connection { port: Some(3308), ..Connection::default() };
        let found = account(port, local);
        assert_eq!((found.host.as_deref(), found.port, found.socket), (Some("localhost"), 3308, None));
        assert_eq!(account(Connection::default(), "").socket, Some(SOCKET.into()));
    }
}
