//! A server process on a data directory of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// A running `cohortd`; killed when dropped.
pub struct Cohort {
    child: Child,
    pub port: u16,
    pub datadir: PathBuf,
    pub socket: PathBuf,
}

/// How a start that was refused ended.
#[derive(Debug)]
pub struct Refusal {
    pub code: Option<i32>,
    pub said: String,
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port()
}

/// `cohortd` with these options and no option files.
pub fn cohortd(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohortd"));
    command.arg("--no-defaults").args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Runs a program to its end.
pub fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap_or_else(|error| {
        panic!("{program} does not start ({error}); ./x test installs what is needed")
    })
}

/// Everything a program said.
pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

impl Cohort {
    /// Starts a server on `folder/name`, which is made if it is not there.
    pub fn start(folder: &Path, name: &str, options: &[&str]) -> Cohort {
        Cohort::try_start(folder, name, options).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"))
    }

    /// The same, for a start that may be refused. What it says goes to `folder/name.err`.
    pub fn try_start(folder: &Path, name: &str, options: &[&str]) -> Result<Cohort, Refusal> {
        let (datadir, socket) = (folder.join(name), folder.join(format!("{name}.sock")));
        let said = folder.join(format!("{name}.err"));
        let port = free_port();
        let child = cohortd(options)
            .arg(format!("--datadir={}", datadir.display()))
            .arg(format!("--socket={}", socket.display()))
            .args(["--bind-address=127.0.0.1", &format!("--port={port}")])
            .stderr(std::fs::File::create(&said).expect("a log file"))
            .spawn()
            .expect("starts");
        let mut server = Cohort { child, port, datadir, socket };
        let end = Instant::now() + START_LIMIT;
        loop {
            if server.connect().is_ok() {
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait().expect("asked") {
                let said = std::fs::read_to_string(&said).unwrap_or_default();
                return Err(Refusal { code: status.code(), said });
            }
            let log = || std::fs::read_to_string(&said).unwrap_or_default();
            assert!(Instant::now() < end, "{name} does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn options(&self) -> OptsBuilder {
        OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.port)
            .user(Some("root"))
            .prefer_socket(false)
            .tcp_connect_timeout(Some(Duration::from_secs(10)))
            .read_timeout(Some(Duration::from_secs(120)))
    }

    fn connect(&self) -> mysql::Result<Conn> {
        Conn::new(self.options())
    }

    pub fn client(&self) -> Conn {
        self.connect().expect("a connection")
    }

    /// A client with `test` as its database, which is what most tests want.
    pub fn in_test(&self) -> Conn {
        Conn::new(self.options().db_name(Some("test"))).expect("a connection")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs one of MariaDB's clients; whether it succeeded, and what it said.
    pub fn tool(&self, program: &str, arguments: &[&str]) -> (bool, String) {
        let port = format!("--port={}", self.port);
        let own = ["--no-defaults", "--host=127.0.0.1", "--user=root", &port];
        let output = run(program, &[&own[..], arguments].concat());
        (output.status.success(), text(&output))
    }

    pub fn signal(&self, name: &str) {
        let sent = run("kill", &[name, &self.pid().to_string()]);
        assert!(sent.status.success(), "{}", text(&sent));
    }

    /// Waits for its end.
    pub fn exit_code(&mut self) -> Option<i32> {
        let end = Instant::now() + STOP_LIMIT;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("asked") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end");
    }

    /// A clean stop.
    pub fn stop(mut self) {
        self.signal("-TERM");
        assert_eq!(self.exit_code(), Some(0));
    }

    /// The end that leaves everything to recovery.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("killed");
    }

    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("there");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
    }
}

impl Drop for Cohort {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Rows as text: columns apart by tabs, rows by line ends. NULL as `NULL`.
pub fn rows(client: &mut Conn, sql: &str) -> String {
    let mut out = String::new();
    let mut results = client.query_iter(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    while let Some(set) = results.iter() {
        for row in set {
            let row = row.unwrap_or_else(|error| panic!("{sql}: {error}"));
            let cells: Vec<String> = row.unwrap().iter().map(shown).collect();
            out += &(cells.join("\t") + "\n");
        }
    }
    out
}

/// A value of a row as text; bytes that are no text as hexadecimal digits.
pub fn shown(value: &mysql::Value) -> String {
    match value {
        mysql::Value::NULL => "NULL".to_owned(),
        mysql::Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(|c: char| c.is_control() && c != '\n') => text.to_owned(),
            _ => bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
        },
        other => format!("{other:?}"),
    }
}

/// The code of a server's error; panics on any other outcome.
pub fn error_code<T>(result: mysql::Result<T>) -> u16 {
    match result {
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(other) => panic!("not an error of the server: {other}"),
        Ok(_) => panic!("it succeeded"),
    }
}
