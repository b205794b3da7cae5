//! The order ring of the parallel applier: the groups of one domain that are read but not ordered on this
//! server.
//!
//! # Concepts
//! A *slot* is a group and its number in the source's order. Slots are ordered strictly by number, so a
//! slot's dependencies are a single number: when the slot of that number is ordered, so are all earlier ones.
//! A second number can delay the start without a dependency: all slots up to it must be applied, whether
//! ordered or not ([`After`]). The *head* is the oldest slot that is not ordered. A slot is *parked* when it
//! is applied and waits to be ordered.
//!
//! # States of a slot
//! ```text
//! waiting --take()--> running --park()--> parked --next_to_order()--> ordering --ordered()--> gone
//!    ^                   |  |               |                            |                     ^
//!    |                   |  +---------------|------ ordered() -----------|---------------------+
//!    +--- give_back() ---+-- undo_others() -+----- give_back() ----------+
//! ```
//! A slot that was given back runs again when it is the head, where no other slot of the ring can block it. A
//! slot that depends on all earlier ones runs as the head, and its worker may order it without parking it.
//!
//! # Why it does not deadlock
//! Slots start in number order, and only when the slots they come after are ordered or applied. So the head
//! never waits for another slot to start. Conflicts that the dependencies do not show (locks of local
//! sessions) are resolved by the thread that watches the head: [`Ring::undo_others`] makes all other slots
//! release their locks.
//!
//! # On failure
//! A failure counts only if its slot ran as the head. All earlier slots are ordered then, and no later one
//! is.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cohort_exec::KeySet;

use crate::progress::Ticket;

/// A group in the ring.
struct Slot<G, R> {
    group: Arc<G>,
    ticket: Ticket,
    bytes: usize,
    after: After,
    state: State<R>,
}

/// When a slot may start: numbers of earlier slots, or 0 for no condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct After {
    /// This slot, and so all earlier ones, must be ordered.
    pub ordered: u64,
    /// All slots up to this one must be applied.
    pub applied: u64,
}

impl After {
    /// Start condition: slot `number` is ordered.
    pub fn ordered(number: u64) -> After {
        After { ordered: number, applied: 0 }
    }
}

enum State<R> {
    Waiting,
    /// The worker that runs it.
    Running(usize),
    Parked(R),
    Ordering,
}

/// The slots. `G` is a group, `R` the result of applying it.
pub struct Ring<G, R> {
    /// Number of the head.
    first: u64,
    slots: VecDeque<Slot<G, R>>,
    /// All slots up to this number are applied.
    applied: u64,
    bytes: usize,
}

/// A slot to run.
pub struct Taken<G> {
    pub number: u64,
    pub ticket: Ticket,
    pub group: Arc<G>,
    /// The slot is the head, so a failure counts.
    pub is_first: bool,
}

/// A slot to order.
pub struct Next<G, R> {
    pub number: u64,
    pub ticket: Ticket,
    pub group: Arc<G>,
    pub result: R,
}

/// Number of slots that a worker examines for one that may start.
const LOOK_AHEAD: usize = 64;

impl<G, R> Ring<G, R> {
    /// Creates an empty ring.
    pub fn new() -> Ring<G, R> {
        Ring { first: 1, slots: VecDeque::new(), applied: 0, bytes: 0 }
    }

    /// Returns the number that the next slot will get.
    pub fn next_number(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Returns the number of the head.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of slots that are not ordered, and their bytes.
    pub fn load(&self) -> (usize, usize) {
        (self.slots.len(), self.bytes)
    }

    /// Appends the next group of the source.
    pub fn push(&mut self, group: G, ticket: Ticket, after: After, bytes: usize) -> u64 {
        let number = self.next_number();
        debug_assert!(after.ordered < number && after.applied < number);
        self.bytes += bytes;
        self.slots.push_back(Slot { group: Arc::new(group), ticket, bytes, after, state: State::Waiting });
        number
    }

    /// Takes the oldest slot that may start.
    pub fn take(&mut self, worker: usize) -> Option<Taken<G>> {
        let first = self.first;
        let at = self.slots.iter().take(LOOK_AHEAD).position(|slot| self.may_start(slot))?;
        let slot = &mut self.slots[at];
        slot.state = State::Running(worker);
        let (ticket, group) = (slot.ticket, Arc::clone(&slot.group));
        Some(Taken { number: first + at as u64, ticket, group, is_first: at == 0 })
    }

    /// Returns whether a slot may start.
    pub fn has_startable(&self) -> bool {
        self.slots.iter().take(LOOK_AHEAD).any(|slot| self.may_start(slot))
    }

    fn may_start(&self, slot: &Slot<G, R>) -> bool {
        let after = slot.after;
        matches!(slot.state, State::Waiting) && after.ordered < self.first && after.applied <= self.applied
    }

    /// Advances `applied`.
    fn count_applied(&mut self) {
        while let Some(slot) = self.slots.get((self.applied + 1 - self.first) as usize)
            && matches!(slot.state, State::Parked(_) | State::Ordering)
        {
            self.applied += 1;
        }
    }

    fn slot(&mut self, number: u64) -> &mut Slot<G, R> {
        let at = number.checked_sub(self.first).expect("not ordered yet") as usize;
        &mut self.slots[at]
    }

    /// Parks an applied slot. Returns whether this allows another slot to start.
    pub fn park(&mut self, number: u64, result: R) -> bool {
        self.slot(number).state = State::Parked(result);
        let before = self.applied;
        self.count_applied();
        if self.applied == before {
            return false;
        }
        let upcoming = self.slots.iter().skip((self.applied + 1 - self.first) as usize).take(LOOK_AHEAD);
        let mut waiting = upcoming.filter(|slot| matches!(slot.state, State::Waiting));
        waiting.next().is_some_and(|slot| self.may_start(slot))
    }

    /// Returns a slot whose changes are rolled back. It runs again as the head.
    pub fn give_back(&mut self, number: u64) {
        let slot = self.slot(number);
        slot.state = State::Waiting;
        slot.after = After::ordered(number - 1);
        self.applied = self.applied.min(number - 1);
    }

    /// Returns the head, if it is parked. The caller orders it and reports the outcome with [`Ring::ordered`]
    /// or [`Ring::give_back`]; until then this call returns `None` to other threads.
    pub fn next_to_order(&mut self) -> Option<Next<G, R>> {
        let slot = self.slots.front_mut()?;
        if !matches!(slot.state, State::Parked(_)) {
            return None;
        }
        let (number, ticket) = (self.first, slot.ticket);
        match std::mem::replace(&mut slot.state, State::Ordering) {
            State::Parked(result) => Some(Next { number, ticket, group: Arc::clone(&slot.group), result }),
            _ => None,
        }
    }

    /// Removes the head, which was ordered or must leave no trace.
    pub fn ordered(&mut self) {
        if let Some(slot) = self.slots.pop_front() {
            debug_assert!(matches!(slot.state, State::Ordering | State::Running(_)));
            self.bytes -= slot.bytes;
            self.applied = self.applied.max(self.first);
            self.first += 1;
            self.count_applied();
        }
    }

    /// Returns whether a slot after the head holds locks that could block the head.
    pub fn has_others(&self) -> bool {
        self.slots.iter().skip(1).any(|slot| matches!(slot.state, State::Running(_) | State::Parked(_)))
    }

    /// Makes all slots but the head start over once each is the head. The caller drops the returned results,
    /// which rolls them back, and makes the returned workers give back their slots.
    pub fn undo_others(&mut self) -> (Vec<R>, Vec<usize>) {
        let (mut results, mut workers) = (Vec::new(), Vec::new());
        let first = self.first;
        for (at, slot) in self.slots.iter_mut().enumerate().skip(1) {
            match std::mem::replace(&mut slot.state, State::Waiting) {
                State::Waiting => continue,
                State::Running(worker) => {
                    slot.state = State::Running(worker);
                    workers.push(worker);
                }
                State::Parked(result) => results.push(result),
                State::Ordering => unreachable!("only the head is ordered"),
            }
            slot.after = After::ordered(first + at as u64 - 1);
        }
        self.applied = self.applied.min(first);
        (results, workers)
    }

    /// Returns the numbers and groups that are running or parked.
    #[cfg(test)]
    pub fn active(&self) -> impl Iterator<Item = (u64, &G)> {
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| !matches!(slot.state, State::Waiting));
        slots.map(|(at, slot)| (self.first + at as u64, &*slot.group))
    }

    /// Drops all slots. Dropping the returned results rolls back the parked ones.
    pub fn clear(&mut self) -> Vec<R> {
        self.first += self.slots.len() as u64;
        self.applied = self.first - 1;
        self.bytes = 0;
        let parked = |slot: Slot<G, R>| match slot.state {
            State::Parked(result) => Some(result),
            _ => None,
        };
        self.slots.drain(..).filter_map(parked).collect()
    }
}

/// The last slot that changed each key and table.
#[derive(Default)]
pub struct Dependencies {
    keys: HashMap<u64, u64>,
    tables: HashMap<u64, TableUse>,
    /// If there are more keys than this, those of ordered slots are dropped.
    keys_max: usize,
}

#[derive(Default)]
struct TableUse {
    /// Last slot that changed any part of the table.
    any: u64,
    /// Last slot that changed the table as a whole.
    whole: u64,
}

/// Below this number of keys, none are dropped.
const KEYS_MIN: usize = 100_000;

impl Dependencies {
    /// Returns the newest slot that slot `number` depends on because of its keys and tables, or 0 for none.
    /// `first` is the number of the head.
    pub fn follow(&mut self, set: &KeySet, number: u64, first: u64) -> u64 {
        let mut follows = 0;
        for table in &set.whole_tables {
            let used = self.tables.entry(*table).or_default();
            follows = follows.max(used.any);
            (used.any, used.whole) = (number, number);
        }
        for table in &set.tables {
            let used = self.tables.entry(*table).or_default();
            // Its own change of the whole table is not a predecessor.
            if used.whole != number {
                follows = follows.max(used.whole);
            }
            used.any = number;
        }
        for key in &set.keys {
            if let Some(before) = self.keys.insert(*key, number)
                && before != number
            {
                follows = follows.max(before);
            }
        }
        if self.keys.len() > self.keys_max.max(KEYS_MIN) {
            self.keys.retain(|_, last| *last >= first);
            self.keys_max = 2 * self.keys.len();
        }
        follows
    }

    /// Forgets all keys and tables, after a barrier.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.tables.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_tables_say_what_a_slot_follows() {
        let mut dependencies = Dependencies::default();
        let mut follow = |keys: &[u64], tables: &[u64], whole: &[u64], number| {
            let set = KeySet { keys: keys.to_vec(), tables: tables.to_vec(), whole_tables: whole.to_vec() };
            dependencies.follow(&set, number, 1)
        };
        assert_eq!(follow(&[1, 1], &[9], &[], 1), 0);
        assert_eq!(follow(&[2], &[9], &[], 2), 0);
        assert_eq!(follow(&[2, 3], &[9], &[], 3), 2);
        assert_eq!(follow(&[], &[], &[9], 4), 3);
        assert_eq!(follow(&[1], &[9], &[], 5), 4);
        assert_eq!(follow(&[7], &[8], &[], 6), 0);
        assert_eq!(follow(&[], &[9], &[9], 7), 5);
    }

    #[test]
    fn a_slot_begins_when_those_before_it_are_applied_and_not_when_they_are_ordered() {
        let mut ring: Ring<u64, ()> = Ring::new();
        let after_applied = |applied| After { ordered: 0, applied };
        for (number, after) in
            [(1, after_applied(0)), (2, after_applied(0)), (3, after_applied(2)), (4, after_applied(2))]
        {
            ring.push(number, number, after, 1);
        }
        let taken = |ring: &mut Ring<u64, ()>| ring.take(0).map(|taken| taken.number);
        assert_eq!((taken(&mut ring), taken(&mut ring), taken(&mut ring)), (Some(1), Some(2), None));
        assert!(!ring.park(2, ()), "the first one is not applied");
        assert!(ring.park(1, ()) && ring.has_startable());
        assert_eq!((taken(&mut ring), ring.first()), (Some(3), 1));
        // A slot that is rolled back no longer counts as applied.
        ring.give_back(2);
        assert_eq!(taken(&mut ring), None);
        assert_eq!(ring.next_to_order().map(|next| next.number), Some(1));
        ring.ordered();
        assert_eq!((taken(&mut ring), taken(&mut ring)), (Some(2), None));
        assert!(ring.park(2, ()));
        assert_eq!(taken(&mut ring), Some(4));
        assert_eq!(ring.undo_others(), (vec![], vec![0, 0]));
    }
}
