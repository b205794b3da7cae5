//! Tests with failing servers: the program names the server, keeps its log, fails, and prints no figures.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a folder")
}

fn bench(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohort-bench"));
    command.arg("run").args(arguments).arg(format!("--dir={}", dir.display()));
    command.args(["--warm=0.2", "--repeats=1", "--tables=1", "--rows=100"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the message. Checks what must hold after any failure, and removes the kept log.
fn complaint(output: &Output, dir: &Path) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty(), "no figures: {}", text(&output.stdout));
    assert!(!said.contains("ratio"), "{said}");
    assert!(said.contains("cohort-bench: mariadb:"), "{said}");
    let log = said.trim().rsplit(' ').next().expect("a path comes last");
    let kept = std::fs::read_to_string(log).expect("the log is kept");
    assert!(kept.contains("ready for connections"), "{kept}");
    std::fs::remove_file(log).expect("removed");
    assert!(std::fs::read_dir(dir).expect("a folder").next().is_none(), "the servers' folders are removed");
    said
}

/// Returns the direct children of a process.
fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn is_server(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    ["mariadbd", "mysqld"].contains(&name.trim())
}

#[test]
fn a_server_that_answers_errors_ends_the_run() {
    let dir = folder();
    let output =
        bench(dir.path(), &["slap", "--servers=mariadb:max-connections=10", "--clients=40", "--seconds=1"])
            .output()
            .expect("the program runs");
    let said = complaint(&output, dir.path());
    assert!(said.contains("client ") && said.contains("1040"), "{said}");
}

#[test]
fn a_server_that_dies_in_the_middle_ends_the_run() {
    let dir = folder();
    let program = bench(dir.path(), &["slap", "--servers=mariadb", "--clients=2", "--seconds=120"])
        .spawn()
        .expect("the program starts");
    let end = Instant::now() + Duration::from_secs(60);
    // The server is being measured once its table exists and it has run for a while.
    let server = loop {
        if let Some(server) = children(program.id()).into_iter().find(|pid| is_server(*pid)) {
            break server;
        }
        assert!(Instant::now() < end, "no server was started");
        std::thread::sleep(Duration::from_millis(20));
    };
    let data = dir.path().read_dir().expect("a folder").next().expect("the run's").expect("readable").path();
    while !data.join("mariadb/data/bench/slap.ibd").exists() {
        assert!(Instant::now() < end, "no table was made");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(2));
    let killed = Command::new("kill").args(["-KILL", &server.to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let output = program.wait_with_output().expect("it ends");
    let said = complaint(&output, dir.path());
    assert!(said.contains("signal 9") && said.contains("slap, 2 clients"), "{said}");
}
