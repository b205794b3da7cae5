//! Common change-data-capture clients, connected to a server that rotates its binary log and is killed under
//! load: python `mysql-replication`, Go `go-mysql` canal, and Debezium's embedded engine with its MariaDB
//! connector.
//!
//! These tests need packages from the network, so `./x test` omits them. `./x cdc` downloads the packages and
//! runs the tests.
//!
//! A client is a process that reads from a position on and prints what it receives, one item per line, with
//! tab-separated fields:
//!
//! | line | meaning |
//! |---|---|
//! | `begin GTID` | a transaction's first event |
//! | `insert TABLE ROW`, `update TABLE ROW ROW`, `delete TABLE ROW` | a row, preceded by its old values |
//! | `commit FILE OFFSET GTID` | the transaction is complete, and ends there |
//!
//! A row consists of the text of its values in hexadecimal digits, NULL as `-`, the empty text as `=`. A
//! client that loses its connection exits. The test records the position of the client's last complete
//! transaction, and restarts the client from there.

mod follower;
mod load;
#[path = "../whole/scale.rs"]
#[allow(dead_code)] // only a part of it is used
mod scale;
#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use follower::{Client, Follower, Position};
use load::Load;
use support::Cohort;

/// Returns the directory into which `./x cdc` has put the packages.
fn packages() -> PathBuf {
    std::env::var_os("COHORT_CDC").expect("./x cdc says where the clients' packages are").into()
}

fn source(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cdc").join(name)
}

fn python() -> Command {
    let mut command = Command::new(packages().join("python/bin/python"));
    command.arg(source("client.py"));
    command
}

fn canal() -> Command {
    Command::new(packages().join("canal"))
}

fn by_file(mut command: Command, port: u16, position: &Position) -> Command {
    command.args([&port.to_string(), "file", &position.file, &position.offset.to_string()]);
    command
}

fn by_gtid(mut command: Command, port: u16, position: &Position) -> Command {
    command.args([&port.to_string(), "gtid", &position.gtid]);
    command
}

/// Runs a client from the first event on, through rotations, two SIGKILLs of the server and one of the
/// client.
fn follow(client: Client) {
    let mut cohort = Cohort::new(&["--binlog-row-metadata=FULL", "--default-time-zone=+00:00"]);
    let load = Load::start(&cohort);
    let mut follower = Follower::new(client, &cohort);
    for round in 1..=6 {
        follower.watch(Duration::from_secs(1));
        cohort.sql("FLUSH BINARY LOGS");
        match round {
            2 | 5 => {
                follower.wait_for_progress();
                cohort.kill();
                load.pause(|| {
                    cohort.restart();
                    follower.assert_nothing_ahead_of(&cohort);
                });
            }
            3 => follower.kill_client(),
            _ => {}
        }
    }
    load.stop();
    follower.wait_for(&load::write_last_row(&cohort));
    follower.assert_equal(&cohort);
    follower.assert_positions_exist(&cohort);
}

#[test]
#[ignore = "needs packages: ./x cdc"]
fn python_mysql_replication_by_file_and_offset() {
    follow(Client::exact(|port, position| by_file(python(), port, position)));
}

#[test]
#[ignore = "needs packages: ./x cdc"]
fn python_mysql_replication_by_gtid() {
    follow(Client::exact(|port, position| by_gtid(python(), port, position)));
}

#[test]
#[ignore = "needs packages: ./x cdc"]
fn go_mysql_canal_by_file_and_offset() {
    follow(Client::exact(|port, position| by_file(canal(), port, position)));
}

#[test]
#[ignore = "needs packages: ./x cdc"]
fn go_mysql_canal_by_gtid() {
    follow(Client::exact(|port, position| by_gtid(canal(), port, position)));
}

/// Debezium copies the tables first, and stores its offsets itself.
#[test]
#[ignore = "needs packages: ./x cdc"]
fn debezium_embedded_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let offsets = folder.path().to_owned();
    follow(Client::at_least_once(move |port, _| {
        let mut command = Command::new("java");
        command.args(["-Xmx256m", "-cp", &format!("{}/*", packages().join("debezium").display())]);
        command.arg(source("debezium/Client.java")).args([&port.to_string()]).arg(&offsets);
        command
    }));
}
