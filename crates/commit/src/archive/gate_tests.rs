//! Tests of the gate of `archive_sync`. Model checks compile `gate.rs` without them.

use std::time::Duration;

use cohort_base::CommitSeq;

use super::gate::{ArchiveGate, ArchiveSyncOptions, Change};

const MS: u64 = 1_000_000;

fn gate(timeout_ms: u64) -> ArchiveGate {
    let gate = ArchiveGate::default();
    gate.configure(ArchiveSyncOptions { is_enabled: true, timeout: Duration::from_millis(timeout_ms) });
    gate
}

#[test]
fn an_acknowledgement_lets_everything_before_it_pass() {
    let gate = gate(1000);
    (1..=3).for_each(|n| gate.arrive(CommitSeq(n * 10), 2, n));
    assert!(gate.holds(CommitSeq(10)) && gate.holds(CommitSeq(30)) && gate.is_waiting(CommitSeq(25)));
    let change = gate.acknowledge(CommitSeq(25), None, 4);
    assert_eq!(change, Change { has_opened: true, is_on_again: false });
    assert!(!gate.holds(CommitSeq(20)) && gate.holds(CommitSeq(30)), "a part of a group is not enough");
    // The repository may be faster than the publishing thread.
    gate.acknowledge(CommitSeq(40), None, 5);
    gate.arrive(CommitSeq(40), 1, 6);
    assert!(!gate.holds(CommitSeq(30)) && !gate.holds(CommitSeq(40)));
    let counters = gate.counters();
    assert_eq!((counters.acknowledged, counters.unacknowledged, counters.waiting), (7, 0, 0));
}

#[test]
fn a_timeout_turns_it_off_and_a_quick_complete_acknowledgement_on() {
    let gate = gate(100);
    gate.arrive(CommitSeq(1), 1, 0);
    gate.arrive(CommitSeq(2), 1, 90 * MS);
    assert!(!gate.expire(99 * MS) && gate.holds(CommitSeq(1)));
    assert!(gate.expire(100 * MS) && !gate.holds(CommitSeq(1)) && !gate.holds(CommitSeq(2)));
    assert!(!gate.expire(900 * MS), "nothing waits");
    gate.arrive(CommitSeq(3), 1, 900 * MS);
    assert!(!gate.holds(CommitSeq(3)) && !gate.counters().is_on);
    for (complete_since_ns, is_on) in
        [(None, false), (Some(800 * MS), false), (Some(850 * MS), true), (Some(899 * MS), false)]
    {
        let change = gate.acknowledge(CommitSeq(2), complete_since_ns, 900 * MS);
        assert_eq!(change, Change { has_opened: false, is_on_again: is_on }, "{complete_since_ns:?}");
    }
    gate.arrive(CommitSeq(4), 1, 901 * MS);
    assert!(gate.holds(CommitSeq(4)) && gate.give_up() && !gate.give_up());
    let counters = gate.counters();
    assert_eq!((counters.timeouts, counters.unacknowledged, counters.acknowledged), (2, 4, 0));
}

#[test]
fn settings_change_while_groups_wait() {
    let gate = gate(60_000);
    gate.arrive(CommitSeq(1), 1, 0);
    assert!(!gate.expire(50 * MS));
    gate.configure(ArchiveSyncOptions { is_enabled: true, timeout: Duration::from_millis(10) });
    assert!(gate.expire(50 * MS), "a shorter timeout applies to groups that wait");
    gate.configure(ArchiveSyncOptions::default());
    assert!(!gate.acknowledge(CommitSeq(1), Some(0), 0).is_on_again, "it is disabled");
    gate.configure(ArchiveSyncOptions { is_enabled: true, timeout: Duration::from_secs(1) });
    gate.arrive(CommitSeq(2), 1, 0);
    assert!(gate.holds(CommitSeq(2)) && gate.is_enabled());
    gate.configure(ArchiveSyncOptions::default());
    assert!(!gate.holds(CommitSeq(2)) && !gate.is_shut());
}
