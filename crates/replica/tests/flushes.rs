//! Counts the syncs of a replica: one sync of the log for each flush group of applied transactions, however
//! many it contains, and no others.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use cohort_vfs::{HookFs, Operation, SharedFs, TraceFs};
use pair::{Replica, received, source_of};

/// Flushes are slow, so that transactions gather in groups meanwhile.
const FLUSH: Duration = Duration::from_millis(8);
const TRANSACTIONS: usize = 300;

#[test]
fn a_group_of_applied_transactions_takes_one_flush() {
    let mut script = vec!["CREATE TABLE test.t (id INT PRIMARY KEY, a INT)".to_owned()];
    script.extend((0..TRANSACTIONS).map(|n| format!("INSERT INTO test.t VALUES ({n}, {n})")));
    script.push("CREATE TABLE test.u (id INT PRIMARY KEY)".to_owned());
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let (_, binlog) = source_of(&script);
    for threads in [0, 3] {
        let memory = received(&binlog);
        let trace = TraceFs::new(Arc::new(memory));
        let slow_sync = |operation, _: &str| {
            if operation == Operation::Sync {
                std::thread::sleep(FLUSH);
            }
        };
        let disk: SharedFs = Arc::new(HookFs::new(Arc::new(trace.clone()), slow_sync));
        let replica = Replica::open(&disk, threads).expect("opens");
        let groups = || {
            let metrics = replica.server.db.commit.metrics();
            metrics.groups.load(std::sync::atomic::Ordering::Relaxed) as usize
        };
        let before = groups();
        trace.take();
        assert_eq!(replica.run(script.len(), || false), script.len());
        // The leader of the last group may not have counted it yet.
        replica.server.db.commit.flush_ordered().expect("a disk that works");
        let groups = groups() - before;
        let lines = trace.take();
        let synced = lines.lines().filter_map(|line| line.strip_prefix("sync "));
        // The relay log is checked and made durable once. The next log file is prepared while groups go to
        // the current one.
        let (of_relay, synced): (Vec<&str>, Vec<&str>) = synced.partition(|name| name.starts_with("relay."));
        let looked = ["relay.marks", "relay.000001", "relay.marks", "relay.marks", "relay.index.tmp"];
        assert_eq!(of_relay, looked, "{threads} threads");
        let synced: Vec<&str> = synced.into_iter().filter(|name| *name != "log.new").collect();
        let of_log = synced.iter().filter(|name| name.starts_with("log.")).count();
        // All other files are written after the log, and synced at checkpoints.
        assert_eq!(of_log, synced.len(), "{threads} threads: {synced:?}");
        assert_eq!(of_log, groups, "{threads} threads: one flush for a group\n{lines}");
        // No applier waits for the disk, so groups are large. DDL waits for its own flush.
        assert!(groups * 3 < TRANSACTIONS, "{threads} threads: {groups} groups");
    }
}
