//! The real server with RocksDB, aborted before and after every stage and killed at random under load.

#![cfg(feature = "rocksdb")]

use std::path::PathBuf;

use cohort_sim::kill::{Books, Target, end};

const SEED: u64 = 20;
/// Every stage before and after, and two kills.
const ROUNDS: u64 = 12;

#[test]
fn crashes_of_the_server_keep_every_promise() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let target = Target {
        server: PathBuf::from(env!("CARGO_BIN_EXE_cohortd")),
        datadir: folder.path().join("data"),
        port: 33_871,
        clients: 4,
    };
    target.set_up().expect("sets up");
    let mut books = Books::default();
    for round in 0..ROUNDS {
        target.round(&mut books, &end(round, SEED), SEED).expect("no violation");
    }
    println!("seed {SEED}: {} rounds, {} transfers acknowledged", books.rounds, books.acknowledged);
    assert!(books.acknowledged > 100, "the load ran: {}", books.acknowledged);
}
