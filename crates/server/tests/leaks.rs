//! Memory after many connections. Alone in its process, because other tests would disturb the measurement.

mod stub;

use std::sync::atomic::Ordering;
use std::time::Duration;

use cohort_config::Counter;
use stub::{RawClient, TestServer, wait_until};

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("readable");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("there");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

#[test]
fn connections_leak_no_memory_and_idle_ones_take_little() {
    let server = TestServer::start(Duration::ZERO);
    let gone = || wait_until("they are gone", || server.status.get(Counter::ThreadsConnected) == 0);
    let run = |n: usize| (0..n).for_each(|_| drop(RawClient::login(&server)));
    run(2000);
    gone();
    let before = resident_kib();
    run(8000);
    gone();
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB were not given back");
    assert_eq!(server.stub.open.load(Ordering::Relaxed), 0);

    server.globals.set("max_connections", &cohort_config::VarValue::UInt(2000)).expect("dynamic");
    let before = resident_kib();
    // Three descriptors per client would exceed a small limit; both ends are in this process.
    let idle: Vec<RawClient> = (0..300).map(|_| RawClient::login(&server)).collect();
    let grown = resident_kib().saturating_sub(before);
    println!("{} idle connections took {grown} KiB", idle.len());
    assert!(grown < 15 << 10, "{grown} KiB");
}
