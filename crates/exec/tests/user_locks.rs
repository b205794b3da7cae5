//! GET_LOCK and related functions, with the results of MariaDB 10.11.

mod world;

use std::thread;
use std::time::{Duration, Instant};

use cohort_locks::KillLevel;
use world::{Client, Server};

#[track_caller]
fn answers(client: &mut Client, expression: &str, wanted: &str) {
    let answer = client.run(&format!("SELECT {expression} AS x"));
    assert_eq!(answer, format!("x\n{wanted}\n"), "{expression}");
}

fn two_sessions() -> (Server, Client, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let (a, b) = (server.connect(), server.connect());
    (server, a, b)
}

#[test]
fn a_lock_is_one_sessions_until_it_was_released_as_often_as_taken() {
    let (_server, mut a, mut b) = two_sessions();
    answers(&mut a, "IS_FREE_LOCK('x')", "1");
    answers(&mut a, "GET_LOCK('x', 0)", "1");
    answers(&mut a, "GET_LOCK('X', 0)", "1");
    answers(&mut b, "GET_LOCK('x', 0)", "0");
    answers(&mut b, "GET_LOCK('x', 0.05)", "0");
    answers(&mut b, "GET_LOCK('y', 1)", "1");
    answers(&mut b, "IS_USED_LOCK('x')", "1");
    answers(&mut b, "IS_FREE_LOCK('x')", "0");
    answers(&mut b, "RELEASE_LOCK('x')", "0");
    answers(&mut b, "RELEASE_LOCK('nobodys')", "NULL");
    answers(&mut a, "RELEASE_LOCK('x')", "1");
    answers(&mut b, "GET_LOCK('x', 0)", "0");
    answers(&mut a, "RELEASE_LOCK('x')", "1");
    answers(&mut b, "GET_LOCK('x', 0)", "1");
    answers(&mut b, "RELEASE_ALL_LOCKS()", "2");
    answers(&mut b, "RELEASE_ALL_LOCKS()", "0");
}

#[test]
fn bad_names_and_times_are_null() {
    let (_server, mut a, _b) = two_sessions();
    for expression in ["GET_LOCK('', 1)", "GET_LOCK(NULL, 1)", "IS_FREE_LOCK('')", "RELEASE_LOCK(NULL)"] {
        answers(&mut a, expression, "NULL");
    }
    let expected = "NULL\n- Warning | 1411 | Incorrect timeout value: '-1' for function get_lock";
    answers(&mut a, "GET_LOCK('x', -1)", expected);
}

#[test]
fn locks_outlive_transactions_and_end_with_the_session() {
    let (mut server, mut a, mut b) = two_sessions();
    a.ok("START TRANSACTION");
    answers(&mut a, "GET_LOCK('x', 0)", "1");
    a.ok("ROLLBACK");
    answers(&mut b, "GET_LOCK('x', 0)", "0");
    let waiter = thread::spawn(move || {
        answers(&mut b, "GET_LOCK('x', 60)", "1");
        b
    });
    thread::sleep(Duration::from_millis(50));
    drop(a);
    let mut b = waiter.join().expect("no panic");
    answers(&mut server.connect(), "IS_USED_LOCK('x')", "2");
    b.session.reset();
    answers(&mut server.connect(), "IS_FREE_LOCK('x')", "1");
}

#[test]
fn sessions_that_wait_for_each_other_are_a_deadlock() {
    let (_server, mut a, mut b) = two_sessions();
    answers(&mut a, "GET_LOCK('x', 0)", "1");
    answers(&mut b, "GET_LOCK('y', 0)", "1");
    let waiter = thread::spawn(move || {
        let answer = a.run("SELECT GET_LOCK('y', 60) AS x");
        (a, answer)
    });
    thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    let ours = b.run("SELECT GET_LOCK('x', 60) AS x");
    b.run("SELECT RELEASE_ALL_LOCKS()");
    let (_a, theirs) = waiter.join().expect("no panic");
    let refused = [&ours, &theirs].into_iter().filter(|answer| answer.starts_with("ERROR 1213")).count();
    assert_eq!(refused, 1, "{ours} {theirs}");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn kill_ends_the_wait() {
    let (_server, mut a, mut b) = two_sessions();
    answers(&mut a, "GET_LOCK('x', 0)", "1");
    let process = std::sync::Arc::clone(b.session.process());
    let waiter = thread::spawn(move || b.run("SELECT GET_LOCK('x', 600)"));
    while !waiter.is_finished() {
        thread::sleep(Duration::from_millis(20));
        process.kill(KillLevel::Query);
    }
    let answer = waiter.join().expect("no panic");
    assert!(answer.starts_with("ERROR 1317"), "{answer}");
}
