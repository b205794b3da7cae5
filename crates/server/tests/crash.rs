//! The real server with transactions over InnoDB and RocksDB tables, aborted before and after every stage,
//! and killed at random under load.

use std::path::PathBuf;

use cohort_sim::kill::{Books, Target, bulk_end, end};

const SEED: u64 = 20;
/// Before and after every stage, and two kills.
const ROUNDS: u64 = 12;

// The ports lie below those that the system gives outgoing connections, which other tests make.

#[test]
fn crashes_of_the_server_keep_every_promise() {
    rounds("shared", 23_871, ROUNDS);
}

#[test]
fn crashes_of_a_server_with_separate_logs_keep_every_promise() {
    rounds("separate", 23_874, ROUNDS);
}

fn rounds(log_layout: &'static str, port: u16, rounds: u64) {
    let folder = tempfile::tempdir().expect("temporary directory");
    let target = Target {
        server: PathBuf::from(env!("CARGO_BIN_EXE_cohortd")),
        datadir: folder.path().join("data"),
        port,
        clients: 4,
        bulk_engine: "InnoDB",
        log_layout,
    };
    target.set_up().expect("sets up");
    let mut books = Books::default();
    for round in 0..rounds {
        target.round(&mut books, &end(round, SEED), SEED).expect("no violation");
    }
    println!("seed {SEED}: {} rounds, {} transfers acknowledged", books.rounds, books.acknowledged);
    assert!(books.acknowledged > 100, "the load ran: {}", books.acknowledged);
}

/// Before and after stages, and kills: a third of the rounds of the long run.
const BULK_ROUNDS: [u64; 6] = [1, 4, 5, 6, 10, 13];

#[test]
fn crashes_leave_all_of_a_bulk_statement_or_nothing() {
    bulk_rounds("InnoDB", 23_872);
}

#[test]
fn crashes_leave_all_of_a_bulk_statement_of_rocksdb_or_nothing() {
    bulk_rounds("ROCKSDB", 23_873);
}

fn bulk_rounds(bulk_engine: &'static str, port: u16) {
    let folder = tempfile::tempdir().expect("temporary directory");
    let target = Target {
        server: PathBuf::from(env!("CARGO_BIN_EXE_cohortd")),
        datadir: folder.path().join("data"),
        port,
        clients: 0,
        bulk_engine,
        log_layout: "shared",
    };
    target.set_up_bulk().expect("sets up");
    let (mut batches, mut index_changes) = (0, 0);
    for round in BULK_ROUNDS {
        let outcome = target.bulk_round(&bulk_end(round, SEED), SEED + round).expect("no violation");
        batches += outcome.batches;
        index_changes += outcome.index_changes;
    }
    println!("seed {SEED}: {batches} batches acknowledged, {index_changes} changes of an index");
    assert!(batches > 5, "the load ran: {batches}");
}
