//! Servers for tests of replication: Cohort as the source, MariaDB as the replica.

#![allow(dead_code)] // each test file uses its part

pub mod dump_client;
pub mod small_disk;

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use small_disk::SmallDisk;

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
    /// Its data are there, if not on the disk that all tests share.
    pub disk: Option<SmallDisk>,
}

impl Cohort {
    pub fn new(options: &[&str]) -> Cohort {
        Cohort::start(tempfile::tempdir().expect("made"), None, options)
    }

    /// With its data on a file system of so many MiB; `None` where there can be none.
    pub fn on_small_disk(mebibytes: u32, options: &[&str]) -> Option<Cohort> {
        let folder = tempfile::tempdir().expect("made");
        let disk = SmallDisk::new(&folder.path().join("disk"), mebibytes)?;
        Some(Cohort::start(folder, Some(disk), options))
    }

    fn start(folder: TempDir, disk: Option<SmallDisk>, options: &[&str]) -> Cohort {
        let port = free_port();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let child = Cohort::spawn(&folder, disk.as_ref(), &options, port);
        let cohort = Cohort { folder, options, child, port, disk };
        cohort.wait();
        cohort
    }

    fn spawn(folder: &TempDir, disk: Option<&SmallDisk>, options: &[String], port: u16) -> Child {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.path().join("log"));
        let program = env!("CARGO_BIN_EXE_cohortd");
        let (mut command, data) = match disk {
            Some(disk) => (disk.command(program), folder.path().join("disk/data")),
            None => (Command::new(program), folder.path().join("data")),
        };
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
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

    /// False if a deadlock's victim was the statement: it is to be repeated.
    pub fn is_done(&self, statement: &str) -> bool {
        let (is_fine, text) = run_sql(&self.address(), statement);
        assert!(is_fine || text.contains("ERROR 1213"), "{statement:.300}: {text}");
        is_fine
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
        self.child = Cohort::spawn(&self.folder, self.disk.as_ref(), &self.options, self.port);
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

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
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

    /// Waits until it has applied a position; as long as it goes on applying.
    pub fn wait_for(&self, position: &str) {
        let mut end = Instant::now() + PATIENCE;
        let mut applied = String::new();
        while self.sql(&format!("SELECT MASTER_GTID_WAIT('{position}', 2)")) != "0" {
            let status = self.status();
            assert!(
                Instant::now() < end && !status.contains("Slave_SQL_Running: No"),
                "{status}\n{}",
                self.log()
            );
            let now = self.sql("SELECT @@gtid_slave_pos");
            if now != applied {
                end = Instant::now() + PATIENCE;
                applied = now;
            }
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

/// Waits for a condition; `what` is said if it never comes.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Everything both have, as CHECKSUM TABLE says it.
pub fn assert_equal(cohort: &Cohort, replica: &Maria) {
    replica.wait_for(&cohort.sql("SELECT @@gtid_binlog_pos"));
    let tables = cohort.sql(
        "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables \
         WHERE table_schema IN ('sb', 'shop') ORDER BY 1",
    );
    assert!(!tables.is_empty());
    let list = tables.lines().collect::<Vec<_>>().join(", ");
    assert_eq!(cohort.sql(&format!("CHECKSUM TABLE {list}")), replica.sql(&format!("CHECKSUM TABLE {list}")));
    for table in tables.lines() {
        let create = format!("SHOW CREATE TABLE {table}");
        let columns =
            |text: String| text.replace("ENGINE=ROCKSDB", "ENGINE=InnoDB").matches("\\n  `").count();
        assert_eq!(columns(cohort.sql(&create)), columns(replica.sql(&create)), "{table}");
    }
}
