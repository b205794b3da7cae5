//! Deadlock detection on the wait-for graph.
//!
//! The graph is not stored: its edges are read from the queues, starting at the owner that is about to wait.
//! Waits begin one at a time, under the graph mutex. So the wait that closes a cycle finds it, and no edge is
//! added during a search.
//!
//! The nodes are parties (`party.rs`): the owners of one session are one node, which waits for whatever any
//! of them waits for.
//!
//! Two facts keep the search short. First, an owner that was never waited for and is its session's only owner
//! is in no cycle: the typical waiter for a hot row holds nothing else and does not search at all. Second, in
//! a queue of exclusive requests each waiter waits for all earlier ones, so one visit of a queue covers every
//! waiter in it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::owner::{Owner, WaitOn};
use crate::party::Node;
use crate::queue::Blockers;
use crate::ranges::Ranges;
use crate::rows::Rows;
use crate::sync::Ordering;

/// Finds a cycle through `start`, which has already queued its request. Returns the waiting owners, `start`
/// first.
pub(crate) fn find_cycle(rows: &Rows, ranges: &Ranges, start: &Arc<Owner>) -> Option<Vec<Arc<Owner>>> {
    if !start.may_be_waited_for() {
        return None;
    }
    let mut search = Search { start: Node::of(start), seen: HashMap::new(), open: vec![start.clone()] };
    let mut next = 0;
    while let Some(owner) = search.open.get(next).cloned() {
        next += 1;
        if search.seen.get(&Node::of(&owner).place()).is_some_and(|seen| seen.covered) {
            continue;
        }
        let Some((waiting, on)) = owner.wait_of_party() else { continue };
        let blockers = match on {
            WaitOn::Row(key) => rows.blockers(key, &waiting),
            WaitOn::Name(name) => name.blockers(&waiting),
            WaitOn::Range(index) => ranges.blockers(index, &waiting),
        };
        if search.add(&waiting, blockers) {
            let cycle = search.path_to(&waiting);
            debug_assert!(
                cycle.first().is_some_and(|first| Node::of(first).place() == search.start.place()),
                "a cycle that the wait did not close: another one is broken in its place"
            );
            return Some(cycle);
        }
    }
    None
}

struct Seen {
    /// The owner that waits for this node, on the path from the start.
    waiter: Arc<Owner>,
    /// Its blockers have been visited already, from a later waiter of the same queue.
    covered: bool,
    /// Keeps the node alive, because its address is the key of the map.
    _node: Node,
}

struct Search {
    start: Node,
    seen: HashMap<*const (), Seen>,
    /// Owners still to visit, in breadth-first order, so that the cycle found is a shortest one.
    open: Vec<Arc<Owner>>,
}

impl Search {
    /// Adds the nodes that `owner` waits for. Returns true if the start is among them.
    fn add(&mut self, owner: &Arc<Owner>, blockers: Blockers) -> bool {
        let Blockers { holders, waiters, all_ahead } = blockers;
        let known =
            holders.into_iter().map(|h| (h, false)).chain(waiters.into_iter().map(|w| (w, all_ahead)));
        for (blocker, covered) in known {
            let node = Node::of(&blocker);
            let place = node.place();
            if place == self.start.place() {
                return true;
            }
            match self.seen.entry(place) {
                Entry::Occupied(seen) => seen.into_mut().covered |= covered,
                Entry::Vacant(vacant) => {
                    debug_assert!(!Arc::ptr_eq(&blocker, owner), "an owner waits for itself");
                    vacant.insert(Seen { waiter: owner.clone(), covered, _node: node });
                    self.open.push(blocker);
                }
            }
        }
        false
    }

    fn path_to(&self, last: &Arc<Owner>) -> Vec<Arc<Owner>> {
        let mut path = vec![last.clone()];
        while let Some(seen) = path.last().and_then(|o| self.seen.get(&Node::of(o).place())) {
            path.push(seen.waiter.clone());
            debug_assert!(path.len() <= self.seen.len() + 1, "the way back to the start has a cycle");
        }
        path.reverse();
        path
    }
}

/// Chooses the victim of a cycle: an owner whose statement retries on its own ([`Owner::is_lasting`]) if
/// there is one, otherwise the owner with the lowest rollback cost. Among equals it is the first of `cycle`,
/// the owner that waited last.
pub(crate) fn victim(cycle: &[Arc<Owner>]) -> &Arc<Owner> {
    let loss = |owner: &&Arc<Owner>| (!owner.is_lasting(), owner.weight.load(Ordering::Relaxed));
    cycle.iter().min_by_key(loss).expect("a cycle has members")
}
