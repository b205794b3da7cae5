//! Tests of the group-commit policy: when a group is left open, and until when.

use cohort_commit::{ClientPace, Pace, PaceOptions};

fn pace(flush_ns: u64, return_ns: u64, members: usize) -> Pace {
    let pace = Pace::new(PaceOptions { is_adaptive: true, ..PaceOptions::default() });
    for _ in 0..64 {
        pace.flushed(flush_ns);
    }
    let clients: Vec<ClientPace> = (0..members).map(|_| ClientPace::default()).collect();
    for round in 0..8 {
        let acked = 1_000_000_000 * (round + 1);
        pace.acknowledging(clients.iter(), &|| acked);
        for client in &clients {
            pace.arrived(client, &|| acked + return_ns);
        }
    }
    pace.acknowledging(clients.iter(), &|| 100_000_000_000);
    pace
}

#[test]
fn fast_disks_never_wait() {
    let fast = pace(120_000, 50_000, 16);
    assert!(!fast.opens(&|| 100_000_010_000, &|| 1, &|| false));
}

#[test]
fn an_open_group_is_due_when_all_are_there_or_nobody_came_in_time() {
    let pace = pace(1_400_000, 50_000, 16);
    let opened = 100_000_010_000;
    assert!(pace.opens(&|| opened, &|| 8, &|| false));
    assert!(pace.is_open(&|| opened + 10_000));
    pace.queued(23);
    assert!(pace.is_open(&|| opened + 10_000), "16 are out, 8 are queued");
    pace.queued(24);
    assert!(!pace.is_open(&|| opened + 10_000));
    assert!(!pace.opens(&|| opened + 10_000, &|| 24, &|| false), "it is taken");
    pace.closed();
    assert!(pace.opens(&|| opened + 10_000, &|| 1, &|| false), "the next one");
    assert!(!pace.is_open(&|| opened + 1_400_000), "its time is up");
    assert!(!pace.opens(&|| opened + 1_400_000, &|| 1, &|| false), "nobody came");
}

#[test]
fn workers_leave_a_queue_for_a_while_where_flushes_are_fast() {
    let fast = pace(120_000, 50_000, 16);
    let now = 100_000_010_000;
    assert!(fast.leaves(&|| now));
    assert!(fast.leaves(&|| now + 200_000), "the time that was set stands");
    assert!(!fast.leaves(&|| now + 300_000), "it is up");
    fast.closed();
    assert!(fast.leaves(&|| now + 300_000), "the next queue");
    fast.closed();
    let slow = pace(1_400_000, 50_000, 16);
    assert!(!slow.leaves(&|| now), "groups are left open for clients");
    let counted = PaceOptions { wait_count: 3, wait_us: 200, is_adaptive: true };
    fast.set_options(counted);
    assert!(!fast.leaves(&|| now), "the operator says for what a group waits");
    fast.set_options(PaceOptions::default());
    assert!(!fast.leaves(&|| now), "adaptive_flush_groups is off");
}
