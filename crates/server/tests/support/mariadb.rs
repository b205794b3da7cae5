//! A real MariaDB with its own data directory: the reference for comparisons, and a replica.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mysql::{Conn, OptsBuilder};
use tempfile::TempDir;

use super::{PATIENCE, run, run_sql, text};

/// A running, small `mariadbd`, killed when dropped.
pub struct Maria {
    child: Child,
    /// 0 if it only listens on a Unix socket.
    pub port: u16,
    folder: TempDir,
    pub socket: PathBuf,
    pub datadir: PathBuf,
    pub server_id: u32,
    arguments: Vec<String>,
}

/// Options that both of its programs must share.
fn common(datadir: &Path) -> Vec<String> {
    let user = text(&run("id", &["-un"]));
    vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", datadir.display()),
        format!("--user={}", user.trim()),
        "--innodb-log-file-size=8M".to_owned(),
        "--innodb-use-native-aio=0".to_owned(),
    ]
}

/// Returns a command for a program of MariaDB's server package. A starting mariadbd removes the temporary
/// tables of all others in the same temporary directory, so each gets its own.
fn program(name: &str, folder: &Path) -> Command {
    let places = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(Path::new);
    let found = places.iter().map(|place| place.join(name)).find(|path| path.exists());
    let mut command = Command::new(found.expect("MariaDB is installed; ./x test installs it"));
    command.env("TMPDIR", folder).stdin(Stdio::null());
    command
}

impl Maria {
    pub fn new(options: &[&str]) -> Maria {
        Maria::start(0, options)
    }

    /// Starts a server that replicas can follow.
    pub fn source(options: &[&str]) -> Maria {
        // DDL concurrent with a load waits for rows in cycles that MariaDB does not detect.
        let always = ["--log-bin=binlog", "--innodb-lock-wait-timeout=2"];
        Maria::start(super::cohort::free_port(), &[&always, options].concat())
    }

    fn start(port: u16, options: &[&str]) -> Maria {
        let network = match port {
            0 => vec!["--skip-networking".to_owned()],
            port => vec!["--bind-address=127.0.0.1".to_owned(), format!("--port={port}")],
        };
        let folder = tempfile::tempdir().expect("a folder");
        let (datadir, socket) = (folder.path().join("data"), folder.path().join("sock"));
        let made = program("mariadb-install-db", folder.path())
            .args(common(&datadir))
            .arg("--auth-root-authentication-method=normal")
            .output()
            .expect("runs");
        assert!(made.status.success(), "{}", text(&made));
        let server_id = 2;
        let mut arguments = common(&datadir);
        arguments.push(format!("--socket={}", socket.display()));
        arguments.extend(network);
        arguments.push(format!("--server-id={server_id}"));
        let few = ["--character-set-server=utf8mb4", "--relay-log=relay", "--slave-net-timeout=10"];
        // Durability does not matter here.
        let quick =
            ["--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"];
        arguments.extend(few.iter().chain(&quick).chain(options).map(|option| (*option).to_owned()));
        let child = Maria::spawn(folder.path(), &arguments);
        let server = Maria { child, port, folder, socket, datadir, server_id, arguments };
        server.await_answer();
        server
    }

    fn spawn(folder: &Path, arguments: &[String]) -> Child {
        let log = std::fs::File::options().create(true).append(true).open(folder.join("log"));
        let mut command = program("mariadbd", folder);
        command.args(arguments).stdout(Stdio::null()).stderr(log.expect("a log file"));
        command.spawn().expect("runs")
    }

    fn await_answer(&self) {
        let end = Instant::now() + PATIENCE;
        while Conn::new(self.options()).is_err() {
            assert!(Instant::now() < end, "MariaDB does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills the server, which leaves everything to recovery.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("killed");
    }

    /// Kills the server and starts it again.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Starts the server again after it has ended.
    pub fn restart(&mut self) {
        self.child = Maria::spawn(self.folder.path(), &self.arguments);
        self.await_answer();
    }

    pub fn options(&self) -> OptsBuilder {
        let socket = self.socket.to_str().expect("a path of ASCII");
        OptsBuilder::new().socket(Some(socket)).user(Some("root")).prefer_socket(false)
    }

    pub fn client(&self) -> Conn {
        Conn::new(self.options()).expect("a connection")
    }

    fn address(&self) -> String {
        format!("--socket={}", self.socket.display())
    }

    pub fn signal(&self, name: &str) {
        let sent = run("kill", &[name, &self.child.id().to_string()]);
        assert!(sent.status.success(), "{}", text(&sent));
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Runs statements with MariaDB's client, all of which must succeed. Returns the output.
    pub fn sql(&self, statements: &str) -> String {
        let (is_fine, text) = run_sql(&[self.address()], statements);
        assert!(is_fine, "{statements:.300}: {text}\n{}", self.log());
        text.trim().to_owned()
    }

    /// Returns the GTID position at the end of its binary log.
    pub fn gtid_end(&self) -> String {
        self.sql("SELECT @@gtid_binlog_pos")
    }

    /// Runs a dump with MariaDB's client.
    pub fn feed(&self, sql: &[u8]) {
        let mut child = Command::new("mariadb")
            .args(["--no-defaults", "--user=root", &self.address()])
            .stdin(Stdio::piped())
            .spawn()
            .expect("the client is installed");
        child.stdin.take().expect("piped").write_all(sql).expect("taken");
        assert!(child.wait().expect("ended").success());
    }

    /// Becomes a replica of the server on this port, from its first transaction on.
    pub fn follow(&self, port: u16) {
        self.sql(&format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='root', master_connect_retry=1, \
             master_heartbeat_period=1, master_use_gtid=slave_pos; START SLAVE"
        ));
        self.wait_until_connected();
    }

    /// Waits until it is connected to its source, possibly after a reconnect.
    pub fn wait_until_connected(&self) {
        let end = Instant::now() + PATIENCE;
        while !self.status().contains("Slave_IO_Running: Yes") {
            assert!(Instant::now() < end, "{}", self.status());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn status(&self) -> String {
        run_sql(&[self.address(), "--column-names".to_owned()], "SHOW SLAVE STATUS\\G").1
    }

    /// Returns SHOW ALL SLAVES STATUS.
    pub fn all_status(&self) -> String {
        run_sql(&[self.address(), "--column-names".to_owned()], "SHOW ALL SLAVES STATUS\\G").1
    }

    /// Waits until a position has been applied. The timeout restarts whenever the position advances.
    pub fn wait_for(&self, position: &str) {
        let mut end = Instant::now() + PATIENCE;
        let mut applied = String::new();
        while self.sql(&format!("SELECT MASTER_GTID_WAIT('{position}', 2)")) != "0" {
            let status = self.status();
            let goes_on = Instant::now() < end && !status.contains("Slave_SQL_Running: No");
            assert!(goes_on, "{status}\n{}", self.log());
            let now = self.sql("SELECT @@gtid_slave_pos");
            if now != applied {
                end = Instant::now() + PATIENCE;
                applied = now;
            }
        }
    }

    /// Waits until everything received has been applied.
    pub fn wait_until_applied(&self) {
        let status = self.status();
        let received =
            status.lines().find_map(|line| line.trim().strip_prefix("Gtid_IO_Pos: ")).unwrap_or("");
        self.wait_for(received);
    }
}

impl Drop for Maria {
    fn drop(&mut self) {
        // Both calls fail only if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
