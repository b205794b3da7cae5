//! Tests of the group-commit policy: when a group is left open, and until when.

use cohort_commit::{ClientCommits, GroupCommitOptions, GroupCommitPolicy};

fn group_commit(flush_ns: u64, return_ns: u64, members: usize) -> GroupCommitPolicy {
    let group_commit =
        GroupCommitPolicy::new(GroupCommitOptions { is_adaptive: true, ..GroupCommitOptions::default() });
    for _ in 0..64 {
        group_commit.flushed(flush_ns);
    }
    let clients: Vec<ClientCommits> = (0..members).map(|_| ClientCommits::default()).collect();
    for round in 0..8 {
        let acked = 1_000_000_000 * (round + 1);
        group_commit.acknowledging(clients.iter(), &|| acked);
        for client in &clients {
            group_commit.arrived(client, &|| acked + return_ns);
        }
    }
    group_commit.acknowledging(clients.iter(), &|| 100_000_000_000);
    group_commit
}

#[test]
fn fast_disks_never_wait() {
    let fast = group_commit(120_000, 50_000, 16);
    assert!(!fast.opens(&|| 100_000_010_000, &|| 1, &|| false));
}

#[test]
fn an_open_group_is_due_when_all_have_arrived_or_time_is_up() {
    let group_commit = group_commit(1_400_000, 50_000, 16);
    let opened = 100_000_010_000;
    assert!(group_commit.opens(&|| opened, &|| 8, &|| false));
    assert!(group_commit.is_open(&|| opened + 10_000));
    group_commit.queued(23);
    assert!(group_commit.is_open(&|| opened + 10_000), "16 are out, 8 are queued");
    group_commit.queued(24);
    assert!(!group_commit.is_open(&|| opened + 10_000));
    assert!(!group_commit.opens(&|| opened + 10_000, &|| 24, &|| false), "it is taken");
    group_commit.closed();
    assert!(group_commit.opens(&|| opened + 10_000, &|| 1, &|| false), "the next one");
    assert!(!group_commit.is_open(&|| opened + 1_400_000), "its time is up");
    assert!(!group_commit.opens(&|| opened + 1_400_000, &|| 1, &|| false), "no client came");
}

#[test]
fn workers_leave_a_queue_for_a_while_where_flushes_are_fast() {
    let fast = group_commit(120_000, 50_000, 16);
    let now = 100_000_010_000;
    assert!(fast.leaves(&|| now));
    assert!(fast.leaves(&|| now + 200_000), "the time that was set stands");
    assert!(!fast.leaves(&|| now + 300_000), "it is up");
    fast.closed();
    assert!(fast.leaves(&|| now + 300_000), "the next queue");
    fast.closed();
    let slow = group_commit(1_400_000, 50_000, 16);
    assert!(!slow.leaves(&|| now), "groups are left open for clients");
    let counted = GroupCommitOptions { wait_count: 3, wait_us: 200, is_adaptive: true };
    fast.set_options(counted);
    assert!(!fast.leaves(&|| now), "the operator says for what a group waits");
    fast.set_options(GroupCommitOptions::default());
    assert!(!fast.leaves(&|| now), "adaptive_flush_groups is off");
}
