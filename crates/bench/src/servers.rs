//! Servers that the benchmark starts on temporary data directories.
//!
//! All kinds get the same disk, the same preloaded library and full durability: the binary log is on, in row
//! format, and flushed with each commit group, like the engine's log. PostgreSQL, which has no binary log,
//! flushes its only log with each group. All other settings are the server's defaults, except the buffer pool
//! (1 GiB, so that nothing is read from the disk) and the limit of connections.
//!
//! Only the server that is being measured runs. The others are stopped by SIGSTOP, so that their background
//! work does not disturb, and continued by SIGCONT. A server ends with the benchmark.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::callgrind;
use crate::connection::{Address, Connection};
use crate::disk::Disk;
use crate::flushes::Flushes;
use crate::process;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Debian's directory of PostgreSQL servers, with a folder for each version; the newest is used.
const POSTGRES: &str = "/usr/lib/postgresql";
const PLACES: &[&str] = &["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/usr/libexec"];

/// A server program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Cohort,
    MariaDb,
    Postgres,
}

/// A server that takes part in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contestant {
    pub kind: Kind,
    /// Displayed name: `cohort`, or `cohort:early_lock_release=off`.
    pub label: String,
    /// Additional options on the command line.
    options: Vec<String>,
    /// Its tables are written to for a while before the first measurement.
    pub is_aged: bool,
}

impl Contestant {
    /// Parses `cohort`, `mariadb` or `postgres`, followed by options after colons.
    pub fn parse(text: &str) -> Option<Contestant> {
        let mut parts = text.split(':');
        let kind = match parts.next()? {
            "cohort" => Kind::Cohort,
            "mariadb" => Kind::MariaDb,
            "postgres" => Kind::Postgres,
            _ => return None,
        };
        let options = parts.map(|option| format!("--{option}")).collect();
        Some(Contestant { kind, label: text.to_owned(), options, is_aged: false })
    }
}

impl Contestant {
    /// Returns the contestants of the comparison of log layouts, which differ in the syncs per commit.
    pub fn layouts() -> Vec<Contestant> {
        let separate = |more: &str| format!("cohort:log_layout=separate{more}");
        [
            ("cohort", "cohort".to_owned()),
            ("separate", separate("")),
            ("separate, groups overlap", separate(":binlog_group_commit_overlap=on")),
            ("separate, engines synced by transaction", separate(":binlog_group_commit_sync_engine=0")),
            ("mariadb", "mariadb".to_owned()),
            (
                "mariadb rocksdb",
                "mariadb:plugin_load_add=ha_rocksdb:default_storage_engine=rocksdb".to_owned(),
            ),
        ]
        .into_iter()
        .filter_map(|(name, text)| Some(Contestant::parse(&text)?.named(name)))
        .collect()
    }

    /// Returns each contestant twice: with fresh tables and with aged ones.
    pub fn fresh_and_aged(fresh: &[Contestant]) -> Vec<Contestant> {
        let aged = |of: &Contestant| Contestant { is_aged: true, ..of.named(&format!("{} aged", of.label)) };
        fresh.iter().flat_map(|of| [of.clone(), aged(of)]).collect()
    }

    /// Returns the contestant under another name.
    pub fn named(&self, label: &str) -> Contestant {
        Contestant { label: label.to_owned(), ..self.clone() }
    }

    /// Returns the contestant with additional options.
    pub fn with(&self, options: &[&str]) -> Contestant {
        let more = options.iter().map(|option| (*option).to_owned());
        Contestant { options: self.options.iter().cloned().chain(more).collect(), ..self.clone() }
    }
}

/// Options for starting servers.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Parent of the servers' folders.
    pub dir: PathBuf,
    /// Path of `cohortd`; default: next to this program.
    pub cohortd: Option<PathBuf>,
    /// Use the default sizes, for measuring memory.
    pub defaults: bool,
    /// Clients use TCP on the loopback interface instead of a Unix socket.
    pub tcp: bool,
    /// Run Cohort under callgrind, which writes its counts into this folder.
    pub callgrind: Option<PathBuf>,
}

impl Setup {
    /// Returns the usual setup: Cohort from the folder of this program, Unix sockets.
    pub fn below(dir: PathBuf) -> Setup {
        Setup { dir, cohortd: None, defaults: false, tcp: false, callgrind: None }
    }
}

/// A running server.
pub struct Server {
    kind: Kind,
    pub label: String,
    pub address: Address,
    /// Port on the loopback interface, whatever `address` is.
    pub port: u16,
    pub version: String,
    pub flushes: Flushes,
    child: Child,
    command: Command,
    dir: PathBuf,
    log: PathBuf,
}

impl Server {
    /// Starts a server on a new data directory and waits until it replies.
    pub fn start(contestant: &Contestant, setup: &Setup) -> Result<Server, String> {
        let label = contestant.label.clone();
        let folder: String = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let dir = setup.dir.join(folder);
        fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let flushes = Flushes::new(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let log = dir.join("server.log");
        let port = free_port().map_err(|error| format!("no free port: {error}"))?;
        let socket = dir.join("s");
        let mut command = match contestant.kind {
            Kind::Cohort => cohort_command(setup, contestant, &label, &dir, &log)?,
            Kind::MariaDb => mariadb_command(setup, &dir, &log)?,
            Kind::Postgres => postgres_command(setup, &dir, &log)?,
        };
        command.args(&contestant.options);
        command.arg(format!("--port={port}"));
        let address = match (contestant.kind, setup.tcp) {
            (Kind::Postgres, true) => return Err(format!("{label} is measured over its Unix socket only")),
            (Kind::Postgres, false) => Address::Postgres(dir.join(format!(".s.PGSQL.{port}"))),
            (_, true) => Address::Tcp((Ipv4Addr::LOCALHOST, port).into()),
            (_, false) => Address::Unix(socket.clone()),
        };
        if contestant.kind != Kind::Postgres {
            command.arg(format!("--socket={}", socket.display())).arg("--bind-address=127.0.0.1");
        }
        let out = File::create(&log).and_then(|out| Ok((out.try_clone()?, out)));
        let (out, err) = out.map_err(|error| format!("{}: {error}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        flushes.preload_into(&mut command);
        // SAFETY: one system call, which is allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let child = command.spawn().map_err(|error| format!("{label} does not start: {error}"))?;
        let mut server = Server {
            kind: contestant.kind,
            label,
            address,
            port,
            version: String::new(),
            flushes,
            child,
            command,
            dir,
            log,
        };
        server.version = server.await_answer()?;
        Ok(server)
    }

    fn await_answer(&mut self) -> Result<String, String> {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            match Connection::open(&self.address, "") {
                Ok(connection) => return Ok(connection.version().to_owned()),
                Err(error) if Instant::now() > end => {
                    return Err(self.complaint(&format!("does not answer: {error}")));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
            if let Some(death) = self.death() {
                return Err(self.complaint(&death));
            }
        }
    }

    /// Kills the process, as in a crash, and restarts it on the same data. Returns when it replies.
    pub fn crash(&mut self) -> Result<(), String> {
        self.crash_and(|_| Ok(()))
    }

    /// Kills the process, changes its data directory, and restarts it. Returns when it replies.
    pub fn crash_and(&mut self, change: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
        process::signal(self.pid(), libc::SIGKILL);
        self.child.wait().map_err(|error| format!("{}: {error}", self.label))?;
        change(&self.data_dir())?;
        let again = self.command.spawn();
        self.child = again.map_err(|error| self.complaint(&format!("does not start again: {error}")))?;
        self.await_answer().map(drop)
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns how the server ended, if it has.
    pub fn death(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (_, Some(signal)) => format!("was killed by signal {signal}"),
            _ => "ended".to_owned(),
        })
    }

    /// Returns a message that names the server and the place of its log.
    pub fn complaint(&mut self, what: &str) -> String {
        // The connection ends shortly before the process does.
        std::thread::sleep(Duration::from_millis(200));
        let death = self.death().map(|death| format!(" (the server {death})")).unwrap_or_default();
        let name = &self.label;
        format!("{name}: {what}{death}; {}", keep(&self.dir, &self.log))
    }

    /// Stops the process by SIGSTOP.
    pub fn pause(&self) {
        self.processes().into_iter().for_each(|pid| process::signal(pid, libc::SIGSTOP));
    }

    pub fn resume(&self) {
        self.processes().into_iter().for_each(|pid| process::signal(pid, libc::SIGCONT));
    }

    /// Returns the processor time used so far, in seconds.
    pub fn processor_seconds(&self) -> f64 {
        self.processes().into_iter().filter_map(process::processor_seconds).sum()
    }

    /// Returns the server's processes: PostgreSQL has one for each connection.
    pub fn processes(&self) -> Vec<u32> {
        if self.kind == Kind::Postgres { process::family(self.pid()) } else { vec![self.pid()] }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.flushes.set_disk(Disk::REAL);
        self.resume();
        // After SIGTERM a PostgreSQL server waits for its clients.
        let stop = if self.kind == Kind::Postgres { libc::SIGINT } else { libc::SIGTERM };
        process::signal(self.pid(), stop);
        let end = Instant::now() + STOP_TIMEOUT;
        while self.death().is_none() {
            if Instant::now() > end {
                eprintln!("{}: does not end within {STOP_TIMEOUT:?}, killed", self.label);
                process::signal(self.pid(), libc::SIGKILL);
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Ignore errors: the guard of the parent folder reports them.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Copies a server's log out of its directory. Returns a text that names the copy.
fn keep(dir: &Path, log: &Path) -> String {
    let folder = dir.file_name().unwrap_or_default().to_string_lossy();
    let kept = std::env::temp_dir().join(format!("cohort-bench-{folder}-{}.log", std::process::id()));
    match fs::copy(log, &kept) {
        Ok(_) => format!("its log is kept in {}", kept.display()),
        Err(error) => format!("its log could not be kept: {error}"),
    }
}

fn cohort_command(
    setup: &Setup,
    contestant: &Contestant,
    label: &str,
    dir: &Path,
    log: &Path,
) -> Result<Command, String> {
    let program = match &setup.cohortd {
        Some(path) => path.clone(),
        None => beside_this_program("cohortd")?,
    };
    let datadir = format!("--datadir={}", dir.join("data").display());
    // The layout is chosen when the data directory is created.
    let layout =
        contestant.options.iter().filter(|option| option.replace('_', "-").starts_with("--log-layout="));
    let made = Command::new(&program).args(["--no-defaults", "--initialize", &datadir]).args(layout).output();
    let made = made.map_err(|error| format!("{}: {error}", program.display()))?;
    if !made.status.success() {
        fs::write(log, [made.stdout, made.stderr].concat())
            .map_err(|error| format!("{}: {error}", log.display()))?;
        let end = made.status.code().map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        return Err(format!("{label}: no data directory was made, it ended with {end}; {}", keep(dir, log)));
    }
    let mut command = Command::new(program);
    command.args(["--no-defaults", &datadir]);
    command.args(["--server-id=1", "--max-connections=6000"]);
    command.args(["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--log-bin=binlog"]);
    if !setup.defaults {
        command.arg("--innodb-buffer-pool-size=1G");
    }
    Ok(match &setup.callgrind {
        Some(counts) => callgrind::wrap(&command, counts),
        None => command,
    })
}

fn mariadb_command(setup: &Setup, dir: &Path, log: &Path) -> Result<Command, String> {
    let program = find_program(&["mariadbd", "mysqld"])?;
    let data = dir.join("data");
    let mut install = Command::new(find_program(&["mariadb-install-db", "mysql_install_db"])?);
    install.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    install.args(["--auth-root-authentication-method=normal", "--skip-name-resolve"]);
    // At its start, a mariadbd removes the temporary tables of all others in the same directory.
    install.env("TMPDIR", dir);
    let out = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let err = out.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    install.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut command = Command::new(program);
    command.env("TMPDIR", dir);
    command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    command.args(["--server-id=1", "--max-connections=6000", "--log-bin=binlog", "--binlog-format=ROW"]);
    command.args(["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--skip-name-resolve"]);
    if !setup.defaults {
        command.arg("--innodb-buffer-pool-size=1G");
    }
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } == 0 {
        install.arg("--user=root");
        command.arg("--user=root");
    }
    let status = install.status().map_err(|error| format!("mariadb-install-db: {error}"))?;
    if !status.success() {
        let said = fs::read_to_string(log).unwrap_or_default();
        return Err(format!("mariadb-install-db failed: {}", said.trim()));
    }
    Ok(command)
}

fn postgres_command(setup: &Setup, dir: &Path, log: &Path) -> Result<Command, String> {
    let mut versions: Vec<PathBuf> = fs::read_dir(POSTGRES)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    versions.sort();
    let bin = versions.pop().ok_or("no PostgreSQL on this system: install its server")?;
    let data = dir.join("data");
    // Neither program runs as root. In a user namespace of their own they own root's files, and run as an
    // unprivileged user.
    // SAFETY: no pointers.
    let is_root = unsafe { libc::geteuid() } == 0;
    let program = |name: &str| {
        let path = bin.join(name);
        if !is_root {
            return Command::new(path);
        }
        let mut command = Command::new("unshare");
        command.arg("--user").arg(path);
        command
    };
    let mut install = program("initdb");
    install.arg("-D").arg(&data);
    install.args(["--username=root", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    let out = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let err = out.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    install.stdin(Stdio::null()).stdout(out).stderr(err);
    let status = install.status().map_err(|error| format!("initdb: {error}"))?;
    if !status.success() {
        let said = fs::read_to_string(log).unwrap_or_default();
        return Err(format!("initdb failed: {}", said.trim()));
    }
    let mut command = program("postgres");
    command.arg("-D").arg(&data);
    command.arg(format!("--unix_socket_directories={}", dir.display()));
    command.args(["--listen_addresses=", "--max_connections=1100"]);
    if !setup.defaults {
        command.arg("--shared_buffers=1GB");
    }
    Ok(command)
}

/// Returns the path of a program of the same build.
pub fn beside_this_program(name: &str) -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| format!("{name}: {error}"))?;
    let path = here.with_file_name(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is not there; name it with --cohortd", path.display()))
    }
}

fn find_program(names: &[&str]) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).chain(PLACES.iter().map(PathBuf::from)).collect();
    let candidates = names.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    let found = candidates.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| format!("no {} on this system: install MariaDB's server", names[0]))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contestant_with_options() {
        let contestant = Contestant::parse("cohort:early_lock_release=off:log-bin=x").expect("a server");
        assert_eq!(contestant.kind, Kind::Cohort);
        assert_eq!(contestant.options, ["--early_lock_release=off", "--log-bin=x"]);
        assert_eq!(Contestant::parse("mariadb").expect("a server").options, Vec::<String>::new());
        assert_eq!(Contestant::parse("postgres").expect("a server").kind, Kind::Postgres);
        assert_eq!(Contestant::parse("oracle"), None);
    }
}
