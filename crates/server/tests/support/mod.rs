//! Servers for tests, Cohort and a real MariaDB, and helpers to query them.

#![allow(dead_code, unused_imports)] // each test file uses only a part

mod answers;
mod cohort;
mod mariadb;
mod small_disk;
mod wire;

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use answers::{DISK_FULL, error_code, is_refused, rows, shown};
pub use cohort::{Cohort, Refusal, free_port, refused};
pub use mariadb::Maria;
pub use small_disk::SmallDisk;
pub use wire::{Bound, Definition, Prepared, Reply, Wire, Wishes};

/// Timeout of anything that is normally quick; generous, because hosts may be slow or busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the threads of a scope, even if a check fails. Otherwise the scope would wait for them forever.
pub struct Ends<'e>(pub &'e AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a program to its end.
pub fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap_or_else(|error| {
        panic!("{program} does not start ({error}); ./x test installs what is needed")
    })
}

/// Returns a program's complete output.
pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Polls until a condition holds. Panics with its description after the timeout.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "it never comes: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs statements with MariaDB's client. Returns whether all succeeded, and the output.
fn run_sql(address: &[String], statements: &str) -> (bool, String) {
    let address = address.iter().map(String::as_str);
    let arguments: Vec<&str> =
        ["--no-defaults", "-N", "--user=root"].into_iter().chain(address).chain(["-e", statements]).collect();
    let output = run("mariadb", &arguments);
    (output.status.success(), text(&output))
}
