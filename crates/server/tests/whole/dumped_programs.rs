//! Dumps with stored programs, exchanged with a real MariaDB by the command-line programs.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Cohort, Maria, run, text};

/// Dumps the database with its programs, without the lines that name a server and its version.
fn dump(socket: &Path) -> String {
    let socket = format!("--socket={}", socket.display());
    let options = ["--no-defaults", "--user=root", &socket, "--skip-dump-date"];
    let programs = ["--routines", "--triggers", "--events", "--databases", "dumped"];
    let output = run("mariadb-dump", &[options.as_slice(), &programs].concat());
    assert!(output.status.success(), "{}", text(&output));
    let dumped = String::from_utf8(output.stdout).expect("UTF-8");
    dumped.lines().filter(|line| !line.starts_with("-- ")).map(|line| format!("{line}\n")).collect()
}

/// Creates the database from a dump or a script. Comments are sent to the server.
fn load(folder: &Path, socket: &Path, script: &str) {
    let path = folder.join("script.sql");
    std::fs::write(&path, format!("DROP DATABASE IF EXISTS dumped;\n{script}")).expect("written");
    let options =
        ["--no-defaults", "--user=root", "--comments", "--default-character-set=utf8mb4", "--socket"];
    let input = Stdio::from(std::fs::File::open(&path).expect("written"));
    let output = Command::new("mariadb").args(options).arg(socket).stdin(input).output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn programs_pass_through_dumps_in_both_directions() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mariadb = Maria::new(&[]);
    let (here, there) = (server.socket.as_path(), mariadb.socket.as_path());
    let script = include_str!("scripts/dumped_programs.sql");
    [here, there].iter().for_each(|socket| load(folder.path(), socket, script));
    let theirs = dump(there);
    for kind in ["PROCEDURE `p`", "AGGREGATE FUNCTION `ag`", "TRIGGER t1", "EVENT `e2`"] {
        assert!(theirs.contains(kind), "{kind} is missing in\n{theirs}");
    }
    assert_same(&dump(here), &theirs, "the same definitions, dumped here");
    load(folder.path(), here, &theirs);
    let ours = dump(here);
    assert_same(&ours, &theirs, "a dump of MariaDB, loaded and dumped here");
    load(folder.path(), there, &ours);
    assert_same(&dump(there), &theirs, "a dump of Cohort, loaded and dumped by MariaDB");
}

/// Requires equal dumps. Shows the lines that differ.
fn assert_same(left: &str, right: &str, what: &str) {
    let only = |left: &str, right: &str| -> Vec<String> {
        left.lines().filter(|line| !right.lines().any(|other| other == *line)).map(str::to_owned).collect()
    };
    assert!(left == right, "{what}:\nhere {:#?}\nthere {:#?}", only(left, right), only(right, left));
}
