//! `mariadb-binlog FILE | mariadb` in every direction: both sides must have the same rows.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::script::run_all;
use crate::support::{Cohort, Maria, rows, run, text};

/// Options of a MariaDB with a binary log.
const LOGGED: [&str; 3] = ["--log-bin=binlog", "--server-id=7", "--binlog-format=ROW"];
const SCRIPTS: [&str; 2] = [include_str!("scripts/types.sql"), include_str!("scripts/changes.sql")];

/// Returns the definition and rows of every table that the scripts created, without differences that only
/// concern the engine.
fn content(client: &mut Conn) -> String {
    client.query_drop("SET NAMES utf8mb4, time_zone = '+00:00'").expect("known");
    let tables: Vec<(String, String)> = client
        .query(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT IN \
             ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY 1, 2",
        )
        .expect("rows");
    assert!(tables.len() > 15, "{tables:?}");
    let mut out = String::new();
    for (schema, table) in tables {
        let name = format!("`{}`.`{}`", schema, table.replace('`', "``"));
        out += &format!("== {name}\n");
        let definition = rows(client, &format!("SHOW CREATE TABLE {name}"));
        out += &definition.replace("ENGINE=ROCKSDB", "ENGINE=InnoDB");
        let text = rows(client, &format!("SELECT * FROM {name}"));
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        out += &(lines.join("\n") + "\n");
    }
    out
}

/// Returns the files of a binary log in order, and checks the sizes that the server reports. Ours are written
/// slightly after the commits; listing them makes the server complete them.
pub fn binlog_files(client: &mut Conn, datadir: &Path) -> Vec<PathBuf> {
    let listed: Vec<(String, u64)> = client.query("SHOW BINARY LOGS").expect("rows");
    for (name, bytes) in &listed {
        let file = std::fs::metadata(datadir.join(name)).expect("the file is there");
        assert_eq!(file.len(), *bytes, "{name}");
    }
    let index = std::fs::read_to_string(datadir.join("binlog.index")).expect("an index");
    assert_eq!(index.lines().count(), listed.len());
    index.lines().map(|line| datadir.join(line)).collect()
}

/// Returns the output of mariadb-binlog for the files.
pub fn played(files: &[PathBuf]) -> Vec<u8> {
    let names = files.iter().map(|file| file.to_str().expect("a path of ASCII"));
    let arguments: Vec<&str> =
        ["--no-defaults", "--verify-binlog-checksum"].into_iter().chain(names).collect();
    let output = run("mariadb-binlog", &arguments);
    assert!(output.status.success(), "{}", text(&output));
    output.stdout
}

/// Feeds a script to the command-line client.
pub fn feed(arguments: &[&str], script: &[u8]) {
    let mut client = Command::new("mariadb")
        .args(["--no-defaults", "--user=root"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the client is installed");
    let mut input = client.stdin.take().expect("piped");
    let written = input.write_all(script);
    drop(input);
    let output = client.wait_with_output().expect("ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output));
    written.expect("it reads to the end");
}

fn assert_same(left: &str, right: &str, what: &str) {
    if left == right {
        return;
    }
    let differing = left.lines().zip(right.lines()).find(|(left, right)| left != right);
    let (left, right) = differing.unwrap_or(("one is longer", ""));
    panic!("{what}: the first line that differs is\n{left:.600}\n{right:.600}");
}

#[test]
fn a_binary_log_of_ours_gives_the_same_rows_in_mariadb_and_in_a_fresh_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Cohort::start(folder.path(), "source", &[]);
    let mut client = source.client();
    SCRIPTS.iter().for_each(|script| assert!(run_all(&mut client, script) > 50));
    let expected = content(&mut client);

    let files = binlog_files(&mut client, &source.datadir);
    assert!(files.len() > 1);
    // The last file is still being written.
    let script = played(&files);
    let copy = Cohort::start(folder.path(), "copy", &[]);
    feed(&["--host=127.0.0.1", &format!("--port={}", copy.port)], &script);
    assert_same(&expected, &content(&mut copy.client()), "a fresh server");
    let checksum = "CHECKSUM TABLE sbs.ints, sbs.decs, sbs.floats, sbs.bits, sbs.strs, sbs.bins, sbs.temps, sbs.enums, \
                    sbs.js, sbs.defs, changes.no_key, changes.wide, changes.accounts, changes.zoned, changes.timed";
    assert_eq!(rows(&mut client, checksum), rows(&mut copy.client(), checksum));

    let mariadb = Maria::new(&LOGGED);
    feed(&["--socket", mariadb.socket.to_str().expect("ASCII")], &script);
    assert_same(&expected, &content(&mut mariadb.client()), "MariaDB");
    // Back again: the events that MariaDB logged for it.
    let back = Cohort::start(folder.path(), "back", &[]);
    let script = played(&binlog_files(&mut mariadb.client(), &mariadb.datadir));
    feed(&["--host=127.0.0.1", &format!("--port={}", back.port)], &script);
    assert_same(&expected, &content(&mut back.client()), "there and back");
}

#[test]
fn a_binary_log_of_mariadb_gives_the_same_rows_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let mariadb = Maria::new(&LOGGED);
    let mut client = mariadb.client();
    for image in ["FULL", "MINIMAL", "NOBLOB"] {
        client.query_drop(format!("SET binlog_row_image = '{image}'")).expect("known");
        SCRIPTS.iter().for_each(|script| assert!(run_all(&mut client, script) > 50));
        client.query_drop("DROP DATABASE `other-db`").expect("there");
    }
    let expected = content(&mut client);
    let copy = Cohort::start(folder.path(), "copy", &[]);
    let script = played(&binlog_files(&mut mariadb.client(), &mariadb.datadir));
    feed(&["--host=127.0.0.1", &format!("--port={}", copy.port)], &script);
    assert_same(&expected, &content(&mut copy.client()), "the copy");
}
