//! A replica that crashes at every k-th write and sync, or finds its relay log torn at any byte. Its tables,
//! binary log and position must match the same transaction of the source, no published transaction may be
//! missing, and the replica must be able to continue to the end.

mod pair;

use std::sync::Arc;

use cohort_vfs::{Fault, FaultFs, MemFs, SharedFs};
use pair::{Replica, SCRIPT, dump, group_ends, groups, receive, received, source, source_of};

fn check(left: MemFs, threads: u64, published: usize, states: &[String], what: &str) {
    let disk: SharedFs = Arc::new(left);
    let mut replica =
        Replica::open(&disk, threads).unwrap_or_else(|e| panic!("{what}: does not recover: {e}"));
    let done = replica.applied();
    assert!(done >= published, "{what}: {published} published, {done} applied");
    assert_eq!(groups(&replica.server, &disk), done, "{what}: the binary log");
    assert_eq!(dump(&mut replica.server), states[done], "{what}: not as after group {done}");
    assert_eq!(replica.run(SCRIPT.len(), || false), SCRIPT.len(), "{what}");
    assert_eq!(dump(&mut replica.server), states[SCRIPT.len()], "{what}: another end");
    assert_eq!(groups(&replica.server, &disk), SCRIPT.len(), "{what}: the binary log in the end");
}

#[test]
fn a_crash_at_every_operation_leaves_whole_groups_with_their_position() {
    let (states, binlog) = source();
    let base = received(&binlog);
    for (threads, stride) in [(0, 1), (3, 2)] {
        let mut crashes = 0;
        for at in (0..).step_by(stride) {
            let memory = base.kill_clone();
            let faults = FaultFs::new(Arc::new(memory.clone()));
            faults.set(Fault::CrashAt(at));
            let disk: SharedFs = Arc::new(faults.clone());
            let published = Replica::open(&disk, threads)
                .map_or(0, |replica| replica.run(SCRIPT.len(), || faults.crashed()));
            if !faults.crashed() {
                assert_eq!(published, SCRIPT.len());
                break;
            }
            crashes += 1;
            let what = |end: &str| format!("{threads} threads, operation {at}, {end}");
            check(memory.crash_clone(at), threads, published, &states, &what("power failure"));
            check(memory.kill_clone(), threads, published, &states, &what("kill"));
        }
        assert!(crashes > 10, "{crashes} crashes with {threads} threads");
    }
}

#[test]
fn a_relay_log_that_is_torn_at_any_byte_is_applied_up_to_its_last_whole_group() {
    let script = &SCRIPT[..5];
    let (states, binlog) = source_of(script);
    // End offsets of the groups. The first two are applied before the tear.
    let ends = group_ends(&binlog);
    assert_eq!(ends.len(), script.len());
    for threads in [0, 2] {
        let base = received(&binlog[..ends[1]]);
        let disk: SharedFs = Arc::new(base.clone());
        assert_eq!(Replica::open(&disk, threads).expect("opens").run_all(), 2);
        for cut in ends[1]..=binlog.len() {
            let memory = base.kill_clone();
            let disk: SharedFs = Arc::new(memory.clone());
            receive(&disk, &binlog[..cut]);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let what = format!("{threads} threads, cut at {cut}");
            {
                let mut replica = Replica::open(&disk, threads).expect("opens");
                assert_eq!(replica.run_all(), whole, "{what}");
                assert_eq!(groups(&replica.server, &disk), whole, "{what}: the binary log");
                assert_eq!(dump(&mut replica.server), states[whole], "{what}");
            }
            // Receives the torn part again. Only for some cuts, because each takes as long as the first half.
            if cut % 16 == 0 {
                let disk: SharedFs = Arc::new(memory.kill_clone());
                receive(&disk, &binlog);
                let mut replica = Replica::open(&disk, threads).expect("opens");
                assert_eq!(replica.run(script.len(), || false), script.len(), "{what}");
                assert_eq!(dump(&mut replica.server), states[script.len()], "{what}: another end");
                assert_eq!(groups(&replica.server, &disk), script.len(), "{what}: the binary log in the end");
            }
        }
    }
}
