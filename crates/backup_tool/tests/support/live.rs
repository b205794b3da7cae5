//! Running servers, and runs of the program.

#![allow(dead_code, reason = "each test program uses a part")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cohort_backup_tool::client::{Account, Client};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Returns the server's program.
pub fn cohortd() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_cohort-backup")).with_file_name("cohortd");
    assert!(program.exists(), "{} is missing: cargo build -p cohort-server --bin cohortd", program.display());
    program
}

/// A running server; dropped, it is killed.
pub struct Server {
    pub process: Child,
    pub account: Account,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    pub fn start(datadir: &Path) -> Server {
        let options = ["--no-defaults", "--log-bin=binlog", "--server-id=7"].map(str::to_owned);
        Server::start_with(datadir, &options)
    }

    /// Starts a server with these options, of which the first names an option file or none.
    pub fn start_with(datadir: &Path, options: &[String]) -> Server {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|s| s.local_addr()).expect("a port").port();
        let process = Command::new(cohortd())
            .args(options)
            .arg(format!("--datadir={}", datadir.display()))
            .arg(format!("--port={port}"))
            .arg(format!("--socket={}.sock", datadir.display()))
            .arg("--bind-address=127.0.0.1")
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the server starts");
        let account = Account {
            host: Some("127.0.0.1".to_owned()),
            port,
            user: "root".to_owned(),
            ..Account::default()
        };
        let server = Server { process, account };
        let end = Instant::now() + Duration::from_secs(60);
        while Client::connect(&server.account).is_err() {
            assert!(Instant::now() < end, "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Creates a data directory and starts a server in it, with a table of 20,000 rows.
    pub fn with_orders(datadir: &Path) -> Server {
        Server::initialize(datadir);
        let server = Server::start(datadir);
        server.execute("CREATE DATABASE shop");
        server.execute("CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(400), KEY (note))");
        server.execute("INSERT INTO shop.orders SELECT seq, REPEAT(SHA1(seq), 8) FROM shop.seq_1_to_20000");
        server
    }

    /// Creates a data directory.
    pub fn initialize(datadir: &Path) {
        let created = Command::new(cohortd())
            .args(["--no-defaults", "--initialize"])
            .arg(format!("--datadir={}", datadir.display()))
            .stderr(Stdio::null())
            .status();
        assert!(created.expect("the server runs").success());
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.account).expect("connected")
    }

    pub fn execute(&self, sql: &str) {
        self.client().query(sql, |_| Ok(())).expect(sql);
    }

    /// Returns all values of a result, separated by blanks.
    pub fn values(&self, sql: &str) -> String {
        let mut values = Vec::new();
        let mut add = |row: Vec<Option<Vec<u8>>>| {
            values.extend(
                row.into_iter().map(|v| v.map_or("NULL".into(), |v| String::from_utf8(v).expect("text"))),
            );
            Ok(())
        };
        self.client().query(sql, &mut add).expect(sql);
        values.join(" ")
    }
}

/// Sends a signal to a process that may have ended.
pub fn signal(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid as i32).expect("a process"), signal);
}

/// Returns the children of a process: those of a server store the archive.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let all = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    all.flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// Runs the program with an option file, and returns its JSON.
pub fn run(folder: &Path, arguments: &str) -> Result<Value, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_cohort-backup"))
        .arg("--json")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("the program");
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).expect("one JSON object")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
