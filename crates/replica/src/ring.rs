//! The order ring of parallel appliers: groups between their place in the source's order and their place in
//! this server's.
//!
//! # Concepts
//! A *slot* is a group with its number, counted in the source's order. Slots are ordered strictly by number.
//! So what a slot must follow is one number: when the slot of that number is ordered, all before it are, too.
//! The *head* is the oldest slot that is not ordered.
//!
//! # States of a slot
//! ```text
//! waiting --take()--> running --park()--> parked --next_to_order()--> ordering --ordered()--> gone
//!    ^                   |                  |                            |
//!    +--- give_back() ---+-- undo_others() -+----- give_back() ----------+
//! ```
//! A slot that was given back runs again when it is the head, where nobody of the ring is in its way.
//!
//! # Why it does not hang
//! Slots start in the order of their numbers, and only when what they follow is ordered. So the head is never
//! waiting for another slot to start. What the dependencies do not show (locks of sessions beside the
//! appliers) is broken by whoever watches the head: [`Ring::undo_others`] has all others give up their locks.
//!
//! # On failure
//! A failure counts when its slot ran as the head. Then all before it are ordered, and nothing behind it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cohort_exec::KeySet;

/// What a slot holds.
struct Slot<G, R> {
    group: Arc<G>,
    bytes: usize,
    /// Starts when the slot of this number is ordered.
    follows: u64,
    state: State<R>,
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
    bytes: usize,
}

/// A slot to run.
pub struct Taken<G> {
    pub number: u64,
    pub group: Arc<G>,
    /// It is the head: what happens to it counts.
    pub is_first: bool,
}

/// Slots that a worker looks at for one that may start.
const LOOK_AHEAD: usize = 64;

impl<G, R> Ring<G, R> {
    /// An empty ring.
    pub fn new() -> Ring<G, R> {
        Ring { first: 1, slots: VecDeque::new(), bytes: 0 }
    }

    /// The number of the next slot.
    pub fn next_number(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// The number of the head.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Whether all is ordered.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Slots that are not ordered, and what they weigh.
    pub fn load(&self) -> (usize, usize) {
        (self.slots.len(), self.bytes)
    }

    /// The next group of the source.
    pub fn push(&mut self, group: G, follows: u64, bytes: usize) -> u64 {
        let number = self.next_number();
        debug_assert!(follows < number);
        self.bytes += bytes;
        self.slots.push_back(Slot { group: Arc::new(group), bytes, follows, state: State::Waiting });
        number
    }

    /// The oldest slot that may start.
    pub fn take(&mut self, worker: usize) -> Option<Taken<G>> {
        let first = self.first;
        let startable = |slot: &Slot<G, R>| matches!(slot.state, State::Waiting) && slot.follows < first;
        let at = self.slots.iter().take(LOOK_AHEAD).position(startable)?;
        let slot = &mut self.slots[at];
        slot.state = State::Running(worker);
        Some(Taken { number: first + at as u64, group: Arc::clone(&slot.group), is_first: at == 0 })
    }

    /// Whether a slot may start.
    pub fn has_startable(&self) -> bool {
        let mut slots = self.slots.iter().take(LOOK_AHEAD);
        slots.any(|slot| matches!(slot.state, State::Waiting) && slot.follows < self.first)
    }

    fn slot(&mut self, number: u64) -> &mut Slot<G, R> {
        let at = number.checked_sub(self.first).expect("not ordered yet") as usize;
        &mut self.slots[at]
    }

    /// A slot is applied.
    pub fn park(&mut self, number: u64, result: R) {
        self.slot(number).state = State::Parked(result);
    }

    /// What a slot did is undone; it runs again as the head.
    pub fn give_back(&mut self, number: u64) {
        let slot = self.slot(number);
        slot.state = State::Waiting;
        slot.follows = number - 1;
    }

    /// The head, if it is parked: the caller orders it, and tells so by [`Ring::ordered`] or
    /// [`Ring::give_back`]. Meanwhile nobody else is given one.
    pub fn next_to_order(&mut self) -> Option<(u64, Arc<G>, R)> {
        let slot = self.slots.front_mut()?;
        if !matches!(slot.state, State::Parked(_)) {
            return None;
        }
        match std::mem::replace(&mut slot.state, State::Ordering) {
            State::Parked(result) => Some((self.first, Arc::clone(&slot.group), result)),
            _ => None,
        }
    }

    /// The head is ordered.
    pub fn ordered(&mut self) {
        if let Some(slot) = self.slots.pop_front() {
            debug_assert!(matches!(slot.state, State::Ordering));
            self.bytes -= slot.bytes;
            self.first += 1;
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
            slot.follows = first + at as u64 - 1;
        }
        (results, workers)
    }

    /// Forgets all slots; what is parked is undone when the caller drops it.
    pub fn clear(&mut self) -> Vec<R> {
        self.first += self.slots.len() as u64;
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
}

#[derive(Default)]
struct TableUse {
    /// Changed anything of it last.
    any: u64,
    /// Changed it as a whole last.
    whole: u64,
}

/// Keys that are remembered before the ordered ones are forgotten.
const KEYS_MAX: usize = 100_000;

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
        if self.keys.len() > KEYS_MAX {
            self.keys.retain(|_, last| *last >= first);
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

    /// Random numbers from a seed.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % end as u64) as usize
        }
    }

    /// A transaction of the bench: adds its number to some keys, in a way whose order shows.
    #[derive(Clone, Debug)]
    struct Trx {
        keys: Vec<u64>,
        whole_table: bool,
    }

    /// A worker in the middle of a transaction.
    struct Busy {
        taken: Taken<Trx>,
        steps: usize,
        is_killed: bool,
    }

    fn set_of(trx: &Trx) -> KeySet {
        let mut set = KeySet { keys: trx.keys.clone(), ..KeySet::default() };
        let list = if trx.whole_table { &mut set.whole_tables } else { &mut set.tables };
        list.push(0);
        if trx.whole_table {
            set.keys.clear();
        }
        set
    }

    fn apply(store: &mut HashMap<u64, u64>, number: u64, trx: &Trx) {
        for key in &trx.keys {
            let value = store.entry(*key).or_default();
            *value = value.wrapping_mul(31).wrapping_add(number);
        }
    }

    /// Runs one random schedule; answers how many were ordered before the fatal one.
    fn run(seed: u64) {
        let mut dice = Dice(seed);
        let count = 60 + dice.below(60);
        let trxs: Vec<Trx> = (0..count)
            .map(|_| Trx {
                keys: (0..1 + dice.below(3)).map(|_| dice.below(12) as u64).collect(),
                whole_table: dice.below(25) == 0,
            })
            .collect();
        // Every third schedule has a transaction that can never be applied.
        let fatal = seed.is_multiple_of(3).then(|| 1 + dice.below(count) as u64);
        let mut expected = HashMap::new();
        for (n, trx) in trxs.iter().enumerate().take(fatal.map_or(count, |fatal| fatal as usize - 1)) {
            apply(&mut expected, n as u64 + 1, trx);
        }
        let mut ring: Ring<Trx, Trx> = Ring::new();
        let mut dependencies = Dependencies::default();
        let mut workers: Vec<Option<Busy>> = (0..1 + dice.below(5)).map(|_| None).collect();
        let (mut store, mut ordered, mut pushed) = (HashMap::new(), Vec::new(), 0);
        let mut ordering: Option<(u64, Arc<Trx>)> = None;
        let mut steps = 0;
        let is_over = 'run: loop {
            steps += 1;
            assert!(steps < 200_000, "seed {seed}: it hangs");
            match dice.below(12) {
                0..=3 if pushed < count => {
                    let trx = trxs[pushed].clone();
                    let number = ring.next_number();
                    let follows = dependencies.follow(&set_of(&trx), number, ring.first());
                    ring.push(trx, follows, 1);
                    pushed += 1;
                }
                4..=8 => {
                    let worker = dice.below(workers.len());
                    match &mut workers[worker] {
                        slot @ None => {
                            let steps = dice.below(6);
                            *slot = ring.take(worker).map(|taken| Busy { taken, steps, is_killed: false });
                        }
                        Some(busy) if busy.steps > 0 => busy.steps -= 1,
                        slot => {
                            let Some(busy) = slot.take() else { continue };
                            let number = busy.taken.number;
                            let fails = fatal == Some(number) || busy.is_killed || dice.below(10) == 0;
                            if fails && fatal == Some(number) && busy.taken.is_first {
                                break 'run true;
                            } else if fails {
                                ring.give_back(number);
                            } else {
                                ring.park(number, (*busy.taken.group).clone());
                            }
                        }
                    }
                }
                9 if dice.below(8) == 0 => {
                    let (_, killed) = ring.undo_others();
                    for worker in killed {
                        if let Some(busy) = &mut workers[worker] {
                            busy.is_killed = true;
                        }
                    }
                }
                _ => match ordering.take() {
                    // Refused for the moment.
                    Some((number, _)) if dice.below(15) == 0 => ring.give_back(number),
                    Some((number, trx)) => {
                        apply(&mut store, number, &trx);
                        ordered.push(number);
                        ring.ordered();
                    }
                    None => ordering = ring.next_to_order().map(|(number, trx, _)| (number, trx)),
                },
            }
            // What is not ordered and may run at the same time has no key in common.
            let mut active: Vec<(u64, &Trx)> = Vec::new();
            for (at, slot) in ring.slots.iter().enumerate() {
                if matches!(slot.state, State::Running(_) | State::Parked(_) | State::Ordering) {
                    active.push((ring.first + at as u64, &slot.group));
                }
            }
            for (n, (number, one)) in active.iter().enumerate() {
                for (later, other) in &active[n + 1..] {
                    let meets = one.whole_table
                        || other.whole_table
                        || one.keys.iter().any(|k| other.keys.contains(k));
                    assert!(!meets, "seed {seed}: {number} and {later} run at the same time");
                }
            }
            if pushed == count && ring.is_empty() {
                break false;
            }
        };
        assert_eq!(is_over, fatal.is_some(), "seed {seed}");
        assert_eq!(store, expected, "seed {seed}: the end is that of serial apply");
        let in_order: Vec<u64> = (1..=ordered.len() as u64).collect();
        assert_eq!(ordered, in_order, "seed {seed}: the source's order");
        ring.clear();
        assert!(ring.is_empty() && ring.load() == (0, 0));
    }

    #[test]
    fn every_schedule_ends_as_serial_apply_does_and_stops_where_it_would() {
        (0..3000).for_each(run);
    }

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
}
