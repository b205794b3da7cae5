//! The wait-for graph, and deadlocks.
//!
//! The graph is not stored: its edges are read from the queues, starting at the owner that is about to wait.
//! New waits begin one at a time, under the graph's mutex; so the wait that closes a cycle finds it, and
//! while somebody searches no edge is added.
//!
//! Two things keep the search short. An owner for whom nobody has waited is in no cycle: the typical waiter
//! on a hot row holds nothing else and does not search at all. And in a queue of exclusive requests the one
//! behind waits for all ahead, so one look at a queue covers every waiter in it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::owner::{Owner, WaitOn};
use crate::queue::Blockers;
use crate::ranges::Ranges;
use crate::rows::Rows;
use crate::sync::Ordering;

/// Finds a cycle through `start`, which has queued its request: its members, `start` first.
pub(crate) fn find_cycle(rows: &Rows, ranges: &Ranges, start: &Arc<Owner>) -> Option<Vec<Arc<Owner>>> {
    if !start.waited_for.load(Ordering::SeqCst) {
        return None;
    }
    let mut search = Search { start, seen: HashMap::new(), open: vec![start.clone()] };
    let mut next = 0;
    while let Some(owner) = search.open.get(next).cloned() {
        next += 1;
        if search.seen.get(&Arc::as_ptr(&owner)).is_some_and(|seen| seen.covered) {
            continue;
        }
        let blockers = match owner.waits_on() {
            None => continue,
            Some(WaitOn::Row(key)) => rows.blockers(key, &owner),
            Some(WaitOn::Name(name)) => name.blockers(&owner),
            Some(WaitOn::Range(index)) => ranges.blockers(index, &owner),
        };
        if search.add(&owner, blockers) {
            return Some(search.path_to(&owner));
        }
    }
    None
}

struct Seen {
    /// The owner that waits for it, on the way from the start.
    waiter: Arc<Owner>,
    /// What it waits for has been seen from the one behind it in the same queue.
    covered: bool,
}

struct Search<'a> {
    start: &'a Arc<Owner>,
    seen: HashMap<*const Owner, Seen>,
    /// Owners to look at, in breadth-first order, so that the cycle found is a shortest one.
    open: Vec<Arc<Owner>>,
}

impl Search<'_> {
    /// Adds whom `owner` waits for. True if the start is among them.
    fn add(&mut self, owner: &Arc<Owner>, blockers: Blockers) -> bool {
        let Blockers { holders, waiters, all_ahead } = blockers;
        let known =
            holders.into_iter().map(|h| (h, false)).chain(waiters.into_iter().map(|w| (w, all_ahead)));
        for (blocker, covered) in known {
            if Arc::ptr_eq(&blocker, self.start) {
                return true;
            }
            match self.seen.entry(Arc::as_ptr(&blocker)) {
                Entry::Occupied(seen) => seen.into_mut().covered |= covered,
                Entry::Vacant(vacant) => {
                    vacant.insert(Seen { waiter: owner.clone(), covered });
                    self.open.push(blocker);
                }
            }
        }
        false
    }

    fn path_to(&self, last: &Arc<Owner>) -> Vec<Arc<Owner>> {
        let mut path = vec![last.clone()];
        while let Some(seen) = path.last().and_then(|o| self.seen.get(&Arc::as_ptr(o))) {
            path.push(seen.waiter.clone());
        }
        path.reverse();
        path
    }
}

/// The owner of a cycle that is rolled back: the one with the least to undo; of equals the one that came
/// last.
pub(crate) fn victim(cycle: &[Arc<Owner>]) -> &Arc<Owner> {
    let weight = |o: &&Arc<Owner>| o.weight.load(Ordering::Relaxed);
    cycle.iter().min_by_key(weight).expect("a cycle has members")
}
