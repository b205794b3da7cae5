//! Servers for tests of replication: Cohort as the source, MariaDB as the replica.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

/// A port that nobody listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port()
}

/// Runs a client with statements; what it printed.
fn run_sql(arguments: &[String], statements: &str) -> (bool, String) {
    let output = Command::new("mariadb")
        .args(["--no-defaults", "-N", "--user=root"])
        .args(arguments)
        .args(["-e", statements])
        .output()
        .expect("the client is installed");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

/// Cohort on a data directory of its own.
pub struct Cohort {
    folder: TempDir,
    options: Vec<String>,
    child: Child,
    pub port: u16,
}

impl Cohort {
    pub fn new(options: &[&str]) -> Cohort {
        let folder = tempfile::tempdir().expect("made");
        let port = free_port();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let child = Cohort::spawn(&folder, &options, port);
        let cohort = Cohort { folder, options, child, port };
        cohort.wait();
        cohort
    }

    fn spawn(folder: &TempDir, options: &[String], port: u16) -> Child {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.path().join("log"));
        Command::new(env!("CARGO_BIN_EXE_cohortd"))
            .arg("--no-defaults")
            .arg(format!("--datadir={}", folder.path().join("data").display()))
            .args(["--bind-address=127.0.0.1", &format!("--port={port}"), "--server-id=1"])
            .arg(format!("--socket={}", folder.path().join("sock").display()))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("made"))
            .spawn()
            .expect("starts")
    }

    fn wait(&self) {
        let end = Instant::now() + PATIENCE;
        while !run_sql(&self.address(), "SELECT 1").0 {
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < end, "it does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn address(&self) -> Vec<String> {
        vec!["--host=127.0.0.1".to_owned(), format!("--port={}", self.port)]
    }

    pub fn datadir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn sql(&self, statements: &str) -> String {
        let (is_fine, text) = run_sql(&self.address(), statements);
        let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        assert!(is_fine, "{statements:.300}: {text}\n{}", log());
        text.trim().to_owned()
    }

    pub fn client(&self) -> mysql::Conn {
        let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(self.port);
        mysql::Conn::new(options.user(Some("root")).prefer_socket(false)).expect("let in")
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("runs");
        self.child.wait().expect("ended");
    }

    pub fn restart(&mut self) {
        self.child = Cohort::spawn(&self.folder, &self.options, self.port);
        self.wait();
    }

    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }
}

impl Drop for Cohort {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A data directory for MariaDB.
fn make_datadir(folder: &Path, data: &Path) {
    let made = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .arg(format!("--datadir={}", data.display()))
        .args(["--user=root", "--innodb-log-file-size=8M", "--innodb-use-native-aio=0"])
        // A mariadbd that starts removes the temporary tables of every other one in the same directory.
        .env("TMPDIR", folder)
        .output()
        .expect("mariadb-install-db is installed");
    let said = format!("{}{}", String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
    assert!(made.status.success(), "mariadb-install-db: {said}");
}

/// A MariaDB of Debian's, small.
pub struct Maria {
    folder: TempDir,
    child: Child,
    pub server_id: u32,
}

impl Maria {
    pub fn new(options: &[&str]) -> Maria {
        let folder = tempfile::tempdir().expect("made");
        let data = folder.path().join("data");
        make_datadir(folder.path(), &data);
        let server_id = 2;
        let child = Command::new("mariadbd")
            .env("TMPDIR", folder.path())
            .args(["--no-defaults", "--user=root", "--skip-networking", "--innodb-use-native-aio=0"])
            .args([
                "--innodb-log-file-size=8M",
                "--innodb-buffer-pool-size=32M",
                "--innodb-flush-log-at-trx-commit=2",
                "--slave-net-timeout=10",
            ])
            .args([
                "--character-set-server=utf8mb4",
                "--relay-log=relay",
                &format!("--server-id={server_id}"),
            ])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", folder.path().join("sock").display()))
            .arg(format!("--log-error={}", folder.path().join("log").display()))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mariadbd is installed");
        let maria = Maria { folder, child, server_id };
        let end = Instant::now() + PATIENCE;
        while !run_sql(&maria.address(), "SELECT 1").0 {
            assert!(Instant::now() < end, "it does not answer: {}", maria.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        maria
    }

    fn address(&self) -> Vec<String> {
        vec![format!("--socket={}", self.folder.path().join("sock").display())]
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub fn sql(&self, statements: &str) -> String {
        let (is_fine, text) = run_sql(&self.address(), statements);
        assert!(is_fine, "{statements:.300}: {text}\n{}", self.log());
        text.trim().to_owned()
    }

    /// Runs a dump.
    pub fn feed(&self, sql: &[u8]) {
        let mut child = Command::new("mariadb")
            .args(["--no-defaults", "--user=root"])
            .args(self.address())
            .stdin(Stdio::piped())
            .spawn()
            .expect("the client is installed");
        child.stdin.take().expect("piped").write_all(sql).expect("taken");
        assert!(child.wait().expect("ended").success());
    }

    /// Becomes the replica of whoever listens there, from the very first transaction on.
    pub fn follow(&self, port: u16) {
        self.sql(&format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='root', master_connect_retry=1, \
             master_heartbeat_period=1, master_use_gtid=slave_pos; START SLAVE"
        ));
        self.wait_until_connected();
    }

    /// Waits until it is connected to its source, again perhaps.
    pub fn wait_until_connected(&self) {
        let end = Instant::now() + PATIENCE;
        while !self.status().contains("Slave_IO_Running: Yes") {
            assert!(Instant::now() < end, "{}", self.status());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn status(&self) -> String {
        let arguments = [self.address(), vec!["--column-names".to_owned()]].concat();
        run_sql(&arguments, "SHOW SLAVE STATUS\\G").1
    }

    /// Waits until it has applied a position.
    pub fn wait_for(&self, position: &str) {
        let end = Instant::now() + PATIENCE;
        while self.sql(&format!("SELECT MASTER_GTID_WAIT('{position}', 2)")) != "0" {
            let status = self.status();
            assert!(
                Instant::now() < end && !status.contains("Slave_SQL_Running: No"),
                "{status}\n{}",
                self.log()
            );
        }
    }

    /// Waits until everything received is applied.
    pub fn wait_until_applied(&self) {
        let status = self.status();
        let received =
            status.lines().find_map(|line| line.trim().strip_prefix("Gtid_IO_Pos: ")).unwrap_or("");
        self.wait_for(received);
    }
}

impl Drop for Maria {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
