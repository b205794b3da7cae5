//! A server process for tests.

#![allow(dead_code)] // each test file uses its part

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mysql::Conn;

pub struct Running {
    child: Child,
    port: u16,
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohortd"));
    command.arg("--no-defaults").args(arguments).stdout(Stdio::null());
    command
}

/// Exit code and what it said.
pub fn refused(arguments: &[&str]) -> (i32, String) {
    let output = command(arguments).output().expect("runs");
    (output.status.code().expect("ended by itself"), String::from_utf8_lossy(&output.stderr).into_owned())
}

impl Running {
    /// Starts a server with its data in `scratch`.
    pub fn start(scratch: &Path, more: &[&str]) -> Running {
        Running::start_failing(scratch, more, None)
    }

    /// Starts a server that aborts at a failpoint.
    pub fn start_failing(scratch: &Path, more: &[&str], failpoint: Option<&str>) -> Running {
        let port = free_port();
        let own = [
            format!("--datadir={}", scratch.join("data").display()),
            format!("--port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--socket={}", scratch.join("socket").display()),
            format!("--log-error={}", scratch.join("error.log").display()),
        ];
        let failpoint = failpoint.map(|point| ("COHORT_FAILPOINT", point));
        let child = command(more).args(own).envs(failpoint).spawn().expect("starts");
        Running { child, port }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn options(&self) -> mysql::OptsBuilder {
        let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(self.port);
        options.user(Some("root")).prefer_socket(false).read_timeout(Some(Duration::from_secs(30)))
    }

    /// A connection as root, as soon as there is one.
    pub fn client(&self) -> Conn {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            match Conn::new(self.options()) {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([name, &self.child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// How it ended: `None` by a signal.
    pub fn exit_code(&mut self) -> Option<i32> {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("asked") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
