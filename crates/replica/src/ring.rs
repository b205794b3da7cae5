//! The order ring of parallel appliers: groups of one domain between their place in the source's order and
//! their place in this server's.
//!
//! # Concepts
//! A *slot* is a group with its number, counted in the source's order. Slots are ordered strictly by number.
//! So what a slot must follow is one number: when the slot of that number is ordered, all before it are, too.
//! It may also have to begin behind others that it does not depend on: a second number, up to which all slots
//! must be applied, ordered or not ([`After`]). The *head* is the oldest slot that is not ordered.
//!
//! # States of a slot
//! ```text
//! waiting --take()--> running --park()--> parked --next_to_order()--> ordering --ordered()--> gone
//!    ^                   |  |               |                            |                     ^
//!    |                   |  +---------------|------ ordered() -----------|---------------------+
//!    +--- give_back() ---+-- undo_others() -+----- give_back() ----------+
//! ```
//! A slot that was given back runs again when it is the head, where nobody of the ring is in its way. A slot
//! that follows all before it runs as the head, and its worker may order it without parking it.
//!
//! # Why it does not hang
//! Slots start in the order of their numbers, and only when what they come after is ordered or applied. So
//! the head is never waiting for another slot to start. What the dependencies do not show (locks of sessions
//! beside the appliers) is broken by the applier that watches the head: [`Ring::undo_others`] has all others
//! give up their locks.
//!
//! # On failure
//! A failure counts when its slot ran as the head. Then all before it are ordered, and nothing behind it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cohort_exec::KeySet;

use crate::progress::Ticket;

/// What a slot holds.
struct Slot<G, R> {
    group: Arc<G>,
    ticket: Ticket,
    bytes: usize,
    after: After,
    state: State<R>,
}

/// When a slot may start: numbers of earlier ones, 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct After {
    /// This one is ordered, and so all before it.
    pub ordered: u64,
    /// All up to this one are applied.
    pub applied: u64,
}

impl After {
    /// When a slot is ordered.
    pub fn ordered(number: u64) -> After {
        After { ordered: number, applied: 0 }
    }
}

enum State<R> {
    Waiting,
    /// By this worker.
    Running(usize),
    Parked(R),
    Ordering,
}

/// The slots: `G` is a group, `R` what is left of it when it is applied.
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
    /// It is the head: what happens to it counts.
    pub is_first: bool,
}

/// A slot to order.
pub struct Next<G, R> {
    pub number: u64,
    pub ticket: Ticket,
    pub group: Arc<G>,
    pub result: R,
}

/// Slots that a worker looks at for one that may start.
const LOOK_AHEAD: usize = 64;

impl<G, R> Ring<G, R> {
    /// An empty ring.
    pub fn new() -> Ring<G, R> {
        Ring { first: 1, slots: VecDeque::new(), applied: 0, bytes: 0 }
    }

    /// The number of the next slot.
    pub fn next_number(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// The number of the head.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Slots that are not ordered, and what they weigh.
    pub fn load(&self) -> (usize, usize) {
        (self.slots.len(), self.bytes)
    }

    /// The next group of the source.
    pub fn push(&mut self, group: G, ticket: Ticket, after: After, bytes: usize) -> u64 {
        let number = self.next_number();
        debug_assert!(after.ordered < number && after.applied < number);
        self.bytes += bytes;
        self.slots.push_back(Slot { group: Arc::new(group), ticket, bytes, after, state: State::Waiting });
        number
    }

    /// The oldest slot that may start.
    pub fn take(&mut self, worker: usize) -> Option<Taken<G>> {
        let first = self.first;
        let at = self.slots.iter().take(LOOK_AHEAD).position(|slot| self.may_start(slot))?;
        let slot = &mut self.slots[at];
        slot.state = State::Running(worker);
        let (ticket, group) = (slot.ticket, Arc::clone(&slot.group));
        Some(Taken { number: first + at as u64, ticket, group, is_first: at == 0 })
    }

    /// Whether a slot may start.
    pub fn has_startable(&self) -> bool {
        self.slots.iter().take(LOOK_AHEAD).any(|slot| self.may_start(slot))
    }

    fn may_start(&self, slot: &Slot<G, R>) -> bool {
        let after = slot.after;
        matches!(slot.state, State::Waiting) && after.ordered < self.first && after.applied <= self.applied
    }

    /// Counts the applied slots on.
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

    /// A slot is applied. Answers whether another one may start for that.
    pub fn park(&mut self, number: u64, result: R) -> bool {
        self.slot(number).state = State::Parked(result);
        let before = self.applied;
        self.count_applied();
        if self.applied == before {
            return false;
        }
        let behind = self.slots.iter().skip((self.applied + 1 - self.first) as usize).take(LOOK_AHEAD);
        let mut waiting = behind.filter(|slot| matches!(slot.state, State::Waiting));
        waiting.next().is_some_and(|slot| self.may_start(slot))
    }

    /// What a slot did is undone; it runs again as the head.
    pub fn give_back(&mut self, number: u64) {
        let slot = self.slot(number);
        slot.state = State::Waiting;
        slot.after = After::ordered(number - 1);
        self.applied = self.applied.min(number - 1);
    }

    /// The head, if it is parked: the caller orders it, and tells so by [`Ring::ordered`] or
    /// [`Ring::give_back`]. Meanwhile nobody else is given one.
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

    /// The head is ordered, or is to leave no trace.
    pub fn ordered(&mut self) {
        if let Some(slot) = self.slots.pop_front() {
            debug_assert!(matches!(slot.state, State::Ordering | State::Running(_)));
            self.bytes -= slot.bytes;
            self.applied = self.applied.max(self.first);
            self.first += 1;
            self.count_applied();
        }
    }

    /// Whether a group behind the head holds anything that could be in the head's way.
    pub fn has_others(&self) -> bool {
        self.slots.iter().skip(1).any(|slot| matches!(slot.state, State::Running(_) | State::Parked(_)))
    }

    /// Has all but the head begin anew when they are the head. The caller drops the results, which undoes
    /// them, and has the workers give back what they run.
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

    /// Numbers and groups that run, or are parked.
    #[cfg(test)]
    pub fn active(&self) -> impl Iterator<Item = (u64, &G)> {
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| !matches!(slot.state, State::Waiting));
        slots.map(|(at, slot)| (self.first + at as u64, &*slot.group))
    }

    /// Forgets all slots; what is parked is undone when the caller drops it.
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

/// Which slot changed a key last.
#[derive(Default)]
pub struct Dependencies {
    keys: HashMap<u64, u64>,
    tables: HashMap<u64, TableUse>,
    /// With so many keys those of ordered slots are forgotten.
    keys_max: usize,
}

#[derive(Default)]
struct TableUse {
    /// Changed anything of it last.
    any: u64,
    /// Changed it as a whole last.
    whole: u64,
}

/// Fewer keys are never looked through.
const KEYS_MIN: usize = 100_000;

impl Dependencies {
    /// The newest slot that slot `number` has to follow because of what it changes; 0 for none. `first` is
    /// the ring's head.
    pub fn follow(&mut self, set: &KeySet, number: u64, first: u64) -> u64 {
        let mut follows = 0;
        for table in &set.whole_tables {
            let used = self.tables.entry(*table).or_default();
            follows = follows.max(used.any);
            (used.any, used.whole) = (number, number);
        }
        for table in &set.tables {
            let used = self.tables.entry(*table).or_default();
            // Its own change of the whole table is no predecessor.
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

    /// Forgets all: a barrier.
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
        let behind = |applied| After { ordered: 0, applied };
        for (number, after) in [(1, behind(0)), (2, behind(0)), (3, behind(2)), (4, behind(2))] {
            ring.push(number, number, after, 1);
        }
        let taken = |ring: &mut Ring<u64, ()>| ring.take(0).map(|taken| taken.number);
        assert_eq!((taken(&mut ring), taken(&mut ring), taken(&mut ring)), (Some(1), Some(2), None));
        assert!(!ring.park(2, ()), "the first one is not applied");
        assert!(ring.park(1, ()) && ring.has_startable());
        assert_eq!((taken(&mut ring), ring.first()), (Some(3), 1));
        // What is undone is not applied any more.
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
