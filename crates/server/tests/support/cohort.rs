//! A `cohortd` on its own data directory.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mysql::{Conn, OptsBuilder};
use tempfile::TempDir;

use super::{PATIENCE, SmallDisk, run, run_sql, text};

/// A running server, killed when dropped.
pub struct Cohort {
    child: Child,
    place: Place,
    pub port: u16,
    /// The data directory's path as seen by this process.
    pub datadir: PathBuf,
    pub socket: PathBuf,
    /// The small file system with its data, if not on the disk that all tests share.
    disk: Option<SmallDisk>,
    /// The directory to delete with the server, if the test did not provide one.
    own_folder: Option<TempDir>,
}

/// Paths and options of a server, as needed for a restart.
#[derive(Clone)]
struct Place {
    datadir: PathBuf,
    socket: PathBuf,
    /// The error log.
    log: PathBuf,
    options: Vec<String>,
    /// The limit of open files, if it differs from that of this process.
    descriptors: Option<u32>,
}

/// The outcome of a refused start.
#[derive(Debug)]
pub struct Refusal {
    pub code: Option<i32>,
    pub said: String,
}

/// Returns a port that is not in use.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port()
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_cohortd");

fn with_options<T: AsRef<std::ffi::OsStr>>(mut command: Command, arguments: &[T]) -> Command {
    command.arg("--no-defaults").args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Returns a command that runs the program with a limit of open files.
fn limited(descriptors: u32) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {descriptors}; exec \"$0\" \"$@\""), PROGRAM]);
    command
}

/// Runs a server that must not start. Returns its exit code and output.
pub fn refused(arguments: &[&str]) -> (i32, String) {
    let output = with_options(Command::new(PROGRAM), arguments).output().expect("runs");
    (output.status.code().expect("ended by itself"), text(&output))
}

impl Place {
    fn new(folder: &Path, name: &str, options: &[&str]) -> Place {
        Place {
            datadir: folder.join(name),
            socket: folder.join(format!("{name}.sock")),
            log: folder.join(format!("{name}.err")),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            descriptors: None,
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Starts a server and waits until it accepts connections.
    fn start(&self, port: u16, disk: Option<&SmallDisk>, failpoint: Option<&str>) -> Result<Child, Refusal> {
        let before = self.said().len();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log);
        let command = || match (disk, self.descriptors) {
            (Some(disk), _) => disk.command(PROGRAM),
            (None, Some(descriptors)) => limited(descriptors),
            (None, None) => Command::new(PROGRAM),
        };
        let seen = disk.map_or_else(|| self.datadir.clone(), |disk| disk.path().join("data"));
        if !seen.exists() {
            initialize(command(), &self.datadir);
        }
        // Most tests have no use for the schema, which takes a while to create.
        let arguments: Vec<&str> =
            std::iter::once("--sys-schema=OFF").chain(self.options.iter().map(String::as_str)).collect();
        let mut child = with_options(command(), &arguments)
            .arg(format!("--datadir={}", self.datadir.display()))
            .arg(format!("--socket={}", self.socket.display()))
            .args(["--bind-address=127.0.0.1", &format!("--port={port}")])
            .envs(failpoint.map(|point| ("COHORT_FAILPOINT", point)))
            .stderr(log.expect("a log file"))
            .spawn()
            .expect("starts");
        let end = Instant::now() + PATIENCE;
        while let Err(error) = Conn::new(options(port)) {
            if let Some(status) = child.try_wait().expect("asked") {
                return Err(Refusal { code: status.code(), said: self.said().split_off(before) });
            }
            assert!(
                Instant::now() < end,
                "it does not answer ({error}): {}\n{}",
                self.said(),
                threads_of(child.id())
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(child)
    }
}

/// Creates a data directory.
fn initialize(mut command: Command, datadir: &Path) {
    let datadir = format!("--datadir={}", datadir.display());
    let output = command.args(["--no-defaults", "--initialize", &datadir]).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the kernel function that each thread of a process waits in, one per line, to report a hang.
fn threads_of(pid: u32) -> String {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let read =
        |at: &Path, what| std::fs::read_to_string(at.join(what)).unwrap_or_default().trim_end().to_owned();
    let line = |at: &Path| format!("{} {} {}\n", read(at, "comm"), read(at, "wchan"), read(at, "syscall"));
    threads.map(|thread| line(&thread.path())).collect()
}

fn options(port: u16) -> OptsBuilder {
    OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("root"))
        .prefer_socket(false)
        .tcp_connect_timeout(Some(Duration::from_secs(10)))
        .read_timeout(Some(Duration::from_secs(120)))
}

/// Returns whether another process took the port before the server could listen on it.
fn is_taken(refusal: &Refusal) -> bool {
    ["Bind on TCP/IP port", "cannot listen"].iter().any(|text| refusal.said.contains(text))
}

impl Cohort {
    /// Starts a server with its own directory.
    pub fn new(options: &[&str]) -> Cohort {
        let folder = tempfile::tempdir().expect("a folder");
        let mut server = Cohort::start(folder.path(), "data", options);
        server.own_folder = Some(folder);
        server
    }

    /// Starts a server with a limit of open files.
    pub fn with_descriptors(descriptors: u32, options: &[&str]) -> Cohort {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place { descriptors: Some(descriptors), ..Place::new(folder.path(), "data", options) };
        let mut server = Cohort::start_at(place, None).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        server.own_folder = Some(folder);
        server
    }

    /// Starts a server with its data on a file system of this size, or returns `None` where that is not
    /// possible.
    pub fn on_small_disk(mebibytes: u32, options: &[&str]) -> Option<Cohort> {
        let folder = tempfile::tempdir().expect("a folder");
        let mount = folder.path().join("disk");
        let disk = SmallDisk::new(&mount, mebibytes)?;
        let place = Place { datadir: mount.join("data"), ..Place::new(folder.path(), "data", options) };
        let port = free_port();
        let child = place.start(port, Some(&disk), None).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        let (datadir, socket) = (disk.path().join("data"), place.socket.clone());
        Some(Cohort { child, place, port, datadir, socket, disk: Some(disk), own_folder: Some(folder) })
    }

    /// Starts a server on `folder/name`, which is created if it does not exist.
    pub fn start(folder: &Path, name: &str, options: &[&str]) -> Cohort {
        Cohort::try_start(folder, name, options).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"))
    }

    /// Starts a server on `folder/name`, with a start that may be refused. Its output goes to
    /// `folder/name.err`.
    pub fn try_start(folder: &Path, name: &str, options: &[&str]) -> Result<Cohort, Refusal> {
        Cohort::start_anywhere(folder, name, options, None)
    }

    /// Starts a server that aborts at a failpoint.
    pub fn start_failing(folder: &Path, name: &str, options: &[&str], failpoint: &str) -> Cohort {
        let server = Cohort::start_anywhere(folder, name, options, Some(failpoint));
        server.unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"))
    }

    fn start_anywhere(
        folder: &Path,
        name: &str,
        options: &[&str],
        failpoint: Option<&str>,
    ) -> Result<Cohort, Refusal> {
        Cohort::start_at(Place::new(folder, name, options), failpoint)
    }

    fn start_at(place: Place, failpoint: Option<&str>) -> Result<Cohort, Refusal> {
        let mut attempts = 0..5;
        loop {
            let port = free_port();
            match place.start(port, None, failpoint) {
                // Another process got the port meanwhile.
                Err(refusal) if is_taken(&refusal) && attempts.next().is_some() => {}
                Err(refusal) => return Err(refusal),
                Ok(child) => {
                    let (datadir, socket) = (place.datadir.clone(), place.socket.clone());
                    return Ok(Cohort { child, place, port, datadir, socket, disk: None, own_folder: None });
                }
            }
        }
    }

    pub fn options(&self) -> OptsBuilder {
        options(self.port)
    }

    pub fn client(&self) -> Conn {
        Conn::new(self.options()).expect("a connection")
    }

    /// Connects with `test` as the database, as most tests need.
    pub fn in_test(&self) -> Conn {
        Conn::new(self.options().db_name(Some("test"))).expect("a connection")
    }

    fn address(&self) -> [String; 2] {
        ["--host=127.0.0.1".to_owned(), format!("--port={}", self.port)]
    }

    /// Runs statements with MariaDB's client, all of which must succeed. Returns the output.
    pub fn sql(&self, statements: &str) -> String {
        let (is_fine, text) = run_sql(&self.address(), statements);
        assert!(is_fine, "{statements:.300}: {text}\n{}", self.log());
        text.trim().to_owned()
    }

    /// Becomes a replica of the server on this port, from its first transaction on.
    pub fn follow(&self, port: u16) {
        self.sql(&format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='root', master_connect_retry=1, \
             master_heartbeat_period=1, master_use_gtid=slave_pos; START SLAVE"
        ));
    }

    /// Returns SHOW ALL SLAVES STATUS.
    pub fn replica_status(&self) -> String {
        run_sql(&[&self.address()[..], &["--column-names".to_owned()]].concat(), "SHOW ALL SLAVES STATUS\\G")
            .1
    }

    /// Returns the value of a line of SHOW ALL SLAVES STATUS.
    pub fn replica_field(&self, name: &str) -> String {
        let status = self.replica_status();
        let line =
            status.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}:")).map(str::to_owned));
        line.unwrap_or_else(|| panic!("{name}: {status}")).trim().to_owned()
    }

    /// Waits until a position has been applied. The timeout restarts whenever the position advances.
    pub fn wait_for(&self, position: &str) {
        let mut end = Instant::now() + PATIENCE;
        let mut applied = String::new();
        while self.sql(&format!("SELECT MASTER_GTID_WAIT('{position}', 2)")) != "0" {
            let status = self.replica_status();
            let goes_on = Instant::now() < end && !status.contains("Slave_SQL_Running: No");
            assert!(goes_on, "{position} is not reached: {status}\n{}", self.log());
            let now = self.sql("SELECT @@gtid_slave_pos");
            if now != applied {
                end = Instant::now() + PATIENCE;
                applied = now;
            }
        }
    }

    /// Runs a statement. Returns false if it was the victim of a deadlock and must be repeated.
    pub fn is_done(&self, statement: &str) -> bool {
        let (is_fine, text) = run_sql(&self.address(), statement);
        assert!(is_fine || text.contains("ERROR 1213"), "{statement:.300}: {text}");
        is_fine
    }

    /// Returns the small file system that the server is on.
    pub fn disk(&self) -> &SmallDisk {
        self.disk.as_ref().expect("Cohort::on_small_disk")
    }

    /// Runs one of MariaDB's clients. Returns whether it succeeded, and the output.
    pub fn tool(&self, program: &str, arguments: &[&str]) -> (bool, String) {
        let [host, port] = self.address();
        let own = ["--no-defaults", &host, "--user=root", &port];
        let output = run(program, &[&own[..], arguments].concat());
        (output.status.success(), text(&output))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the error log of all starts so far.
    pub fn log(&self) -> String {
        self.place.said()
    }

    pub fn signal(&self, name: &str) {
        let sent = run("kill", &[name, &self.pid().to_string()]);
        assert!(sent.status.success(), "{}", text(&sent));
    }

    /// Waits for the server to exit. Returns `None` if it was ended by a signal.
    pub fn exit_code(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("asked") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end");
    }

    /// Stops the server cleanly.
    pub fn stop(&mut self) {
        self.signal("-TERM");
        assert_eq!(self.exit_code(), Some(0));
    }

    /// Kills the server, which leaves everything to recovery.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("killed");
    }

    /// Starts the server again on the same port after it has ended.
    pub fn restart(&mut self) {
        let restarted = self.place.start(self.port, self.disk.as_ref(), None);
        self.child = restarted.unwrap_or_else(|refusal| panic!("{refusal:?}"));
    }

    /// Starts the server again with other options.
    pub fn restart_with(&mut self, options: &[&str]) {
        self.place.options = options.iter().map(|option| (*option).to_owned()).collect();
        self.restart();
    }

    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("there");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
    }
}

impl Drop for Cohort {
    fn drop(&mut self) {
        // Both calls fail only if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
