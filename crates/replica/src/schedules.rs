//! Randomized test of planner, domain queues and rings: random groups of several domains, workers of random
//! speed, rolled back and repeated groups, stops and crashes. The result must always equal a serial
//! application, each domain must be applied in the source's order, and nothing may be applied twice.

use std::collections::{BTreeMap, HashMap};

use cohort_base::{DomainId, Gtid, ServerId};
use cohort_binlog::event::{GtidEvent, gtid_flags2};
use cohort_config::{Globals, VarId, VarValue};
use cohort_exec::KeySet;

use crate::domain_queues::{DomainQueueNo, DomainQueues};
use crate::group::End;
use crate::place::{RelayPlace, SourcePlace};
use crate::planner::{Plan, Planner};
use crate::progress::{Reached, Ticket};
use crate::ring::Taken;

/// Pseudo-random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % end as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rows,
    /// DDL, a statement, or a large group.
    Exclusive,
    /// A group that the source does not continue and sends again.
    Void,
}

/// A group of the relay log. It adds its number to some keys in an order-dependent way.
#[derive(Clone, Debug)]
struct Group {
    domain: DomainId,
    /// Number within its domain, starting at 1.
    number: u64,
    commit_id: u64,
    keys: Vec<u64>,
    whole_table: bool,
    kind: Kind,
    /// Position after the group.
    end: Reached,
}

fn make_groups(dice: &mut Dice) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let domains = 1 + dice.below(3);
    let mut numbers = vec![0; domains];
    let mut again: Option<Group> = None;
    while groups.len() < 50 {
        let at = groups.len() as u64 + 1;
        let end = Reached {
            relay: RelayPlace { file: 1, offset: at },
            source: SourcePlace { file: "b.000001".to_owned(), position: at },
        };
        if let Some(group) = again.take() {
            groups.push(Group { kind: Kind::Exclusive, end, ..group });
            continue;
        }
        let domain = dice.below(domains);
        numbers[domain] += 1;
        let kind = match dice.below(20) {
            0 => Kind::Void,
            1 | 2 => Kind::Exclusive,
            _ => Kind::Rows,
        };
        let key = |dice: &mut Dice| 100 * domain as u64 + dice.below(12) as u64;
        let group = Group {
            domain: DomainId(domain as u32),
            number: numbers[domain],
            commit_id: at / 4,
            keys: (0..1 + dice.below(3)).map(|_| key(dice)).collect(),
            whole_table: dice.one_in(25),
            kind,
            end,
        };
        if kind == Kind::Void {
            again = Some(group.clone());
        }
        groups.push(group);
    }
    groups
}

fn apply(store: &mut HashMap<u64, u64>, group: &Group) {
    for key in &group.keys {
        let value = store.entry(*key).or_default();
        *value = value.wrapping_mul(31).wrapping_add(group.number);
    }
}

/// A worker in the middle of a group.
struct Busy {
    domain_queue: DomainQueueNo,
    taken: Taken<Group>,
    steps: usize,
    is_killed: bool,
}

/// State of one run.
struct Bench {
    seed: u64,
    dice: Dice,
    groups: Vec<Group>,
    mode: &'static str,
    /// Planners by domain, for the groups read so far.
    planners: BTreeMap<DomainId, Planner>,
    read: usize,
    domain_queues: DomainQueues<Group, Group>,
    workers: Vec<Option<Busy>>,
    ordering: Option<(DomainQueueNo, u64, Ticket, Group)>,
    /// Survives a crash, like `applied`.
    store: HashMap<u64, u64>,
    applied: BTreeMap<DomainId, u64>,
    /// All groups before this one are applied, according to the relay log position and to the source's.
    low: usize,
    low_at_source: u64,
}

const MODES: [&str; 4] = ["MINIMAL", "CONSERVATIVE", "OPTIMISTIC", "AGGRESSIVE"];

impl Bench {
    fn new(seed: u64) -> Bench {
        let mut dice = Dice(seed);
        let groups = make_groups(&mut dice);
        let workers = 1 + dice.below(5);
        let limit = dice.below(4);
        Bench {
            seed,
            groups,
            mode: MODES[dice.below(MODES.len())],
            planners: BTreeMap::new(),
            read: 0,
            domain_queues: DomainQueues::new(SourcePlace::default(), limit),
            workers: (0..workers).map(|_| None).collect(),
            ordering: None,
            store: HashMap::new(),
            applied: BTreeMap::new(),
            low: 0,
            low_at_source: 0,
            dice,
        }
    }

    /// Appends the next group of the relay log to its queue, unless the position covers it.
    fn read_one(&mut self) {
        let group = self.groups[self.read].clone();
        self.read += 1;
        if self.applied.get(&group.domain).is_some_and(|applied| group.number <= *applied) {
            if self.domain_queues.is_empty() {
                (self.low, self.low_at_source) = (self.read, group.end.source.position);
            }
            return;
        }
        let domain_queue = self.domain_queues.domain_queue(group.domain);
        let (number, first) = (
            self.domain_queues.ring(domain_queue).next_number(),
            self.domain_queues.ring(domain_queue).first(),
        );
        let mode = self.mode;
        let planner = self.planners.entry(group.domain).or_insert_with(|| planner(mode));
        let gtid = Gtid { domain: group.domain, server: ServerId(1), seq_no: group.number };
        let flags = gtid_flags2::TRANSACTIONAL | gtid_flags2::ALLOW_PARALLEL;
        planner.begin(Some(&GtidEvent::new(gtid, flags, Some(group.commit_id))), first);
        planner.set = KeySet::default();
        let tables = if group.whole_table { &mut planner.set.whole_tables } else { &mut planner.set.tables };
        tables.push(u64::from(group.domain.0));
        if !group.whole_table {
            planner.set.keys.clone_from(&group.keys);
        }
        let plan = match group.kind {
            Kind::Rows => planner.end(End::Commit, number, first),
            Kind::Exclusive | Kind::Void => planner.alone(number),
        };
        let (Plan::Start(after) | Plan::Exclusive(after)) = plan;
        self.domain_queues.push(domain_queue, group, after, 1);
    }

    /// Advances a random worker by one step.
    fn work(&mut self) {
        let worker = self.dice.below(self.workers.len());
        let Some(busy) = &mut self.workers[worker] else {
            let steps = self.dice.below(6);
            let taken = self.domain_queues.take(worker);
            self.workers[worker] =
                taken.map(|(domain_queue, taken)| Busy { domain_queue, taken, steps, is_killed: false });
            return;
        };
        if busy.steps > 0 {
            busy.steps -= 1;
            return;
        }
        let Some(busy) = self.workers[worker].take() else { return };
        let (domain_queue, number) = (busy.domain_queue, busy.taken.number);
        let group = (*busy.taken.group).clone();
        if busy.is_killed || self.dice.one_in(10) {
            self.domain_queues.give_back(domain_queue, number);
        } else if group.kind == Kind::Rows {
            self.domain_queues.park(domain_queue, number, group);
        } else {
            assert!(busy.taken.is_first, "seed {}: it runs alone", self.seed);
            if group.kind == Kind::Exclusive {
                self.commit(busy.taken.ticket, &group);
            }
            let moved =
                self.domain_queues.ordered_by_worker(domain_queue, busy.taken.ticket, group.end.clone());
            self.moved(moved);
        }
    }

    /// Applies rows and position together, like a commit record.
    fn commit(&mut self, ticket: Ticket, group: &Group) {
        let place = self.domain_queues.place_with(ticket, &group.end.source);
        apply(&mut self.store, group);
        let before = self.applied.insert(group.domain, group.number).unwrap_or(0);
        assert_eq!(before + 1, group.number, "seed {}: the source's order", self.seed);
        let before = &self.groups[..place.position as usize];
        for earlier in before.iter().filter(|group| group.kind != Kind::Void) {
            let applied = self.applied.get(&earlier.domain).copied().unwrap_or(0);
            assert!(earlier.number <= applied, "seed {}: {earlier:?} is before {place:?}", self.seed);
        }
        self.low_at_source = place.position;
    }

    fn moved(&mut self, moved: Option<Reached>) {
        if let Some(reached) = moved {
            self.low = reached.relay.offset as usize;
        }
    }

    /// Orders a parked head.
    fn order(&mut self) {
        match self.ordering.take() {
            // The commit is refused temporarily.
            Some((domain_queue, number, ..)) if self.dice.one_in(15) => {
                self.domain_queues.refused(domain_queue, number)
            }
            Some((domain_queue, _, ticket, group)) => {
                self.commit(ticket, &group);
                let moved = self.domain_queues.ordered(domain_queue, ticket, group.end.clone());
                self.moved(moved);
            }
            None => {
                let domain_queues: Vec<DomainQueueNo> =
                    self.domain_queues.rings().map(|(domain_queue, _)| domain_queue).collect();
                if !domain_queues.is_empty() {
                    let domain_queue = domain_queues[self.dice.below(domain_queues.len())];
                    let next = self.domain_queues.next_to_order(domain_queue);
                    self.ordering = next.map(|next| (domain_queue, next.number, next.ticket, next.result));
                }
            }
        }
    }

    /// Rolls back the groups after each head.
    fn undo_others(&mut self) {
        let domain_queues: Vec<DomainQueueNo> =
            self.domain_queues.rings().map(|(domain_queue, _)| domain_queue).collect();
        for domain_queue in domain_queues {
            let (_, killed) = self.domain_queues.undo_others(domain_queue);
            for worker in killed {
                if let Some(busy) = &mut self.workers[worker] {
                    busy.is_killed = true;
                }
            }
        }
    }

    /// Simulates STOP SLAVE and START SLAVE, or a crash: groups that are not ordered are dropped, and reading
    /// restarts at the known position.
    fn stop(&mut self) {
        self.workers.iter_mut().for_each(|worker| *worker = None);
        self.ordering = None;
        let is_crash = self.dice.one_in(2);
        self.domain_queues.clear();
        let base = SourcePlace { file: "b.000001".to_owned(), position: self.low_at_source };
        let limit = self.dice.below(4);
        self.domain_queues = DomainQueues::new(base, limit);
        self.planners.clear();
        // After a crash the relay log is fetched again from the position.
        self.read = if is_crash { self.low_at_source as usize } else { self.low };
    }

    /// Checks that groups running or parked at the same time have no key in common.
    fn check_apart(&self) {
        let mut active: Vec<(DomainId, u64, &Group)> = Vec::new();
        for (_, ring) in self.domain_queues.rings() {
            active.extend(ring.active().map(|(number, group)| (group.domain, number, group)));
        }
        for (n, (domain, number, one)) in active.iter().enumerate() {
            for (_, later, other) in active[n + 1..].iter().filter(|(other, ..)| other == domain) {
                let is_alone = |group: &Group| group.kind != Kind::Rows || group.whole_table;
                let meets =
                    is_alone(one) || is_alone(other) || one.keys.iter().any(|k| other.keys.contains(k));
                assert!(!meets, "seed {}: {number} and {later} run at the same time", self.seed);
            }
        }
    }

    fn run(mut self) {
        let mut expected = HashMap::new();
        self.groups.iter().filter(|group| group.kind != Kind::Void).for_each(|g| apply(&mut expected, g));
        for step in 0.. {
            assert!(step < 200_000, "seed {}: it hangs", self.seed);
            match self.dice.below(12) {
                0..=2 if self.read < self.groups.len() => self.read_one(),
                3..=8 => self.work(),
                9 if self.dice.one_in(12) => self.undo_others(),
                10 if self.dice.one_in(150) => self.stop(),
                _ => self.order(),
            }
            self.check_apart();
            if self.read == self.groups.len() && self.domain_queues.is_empty() {
                break;
            }
        }
        assert_eq!(self.store, expected, "seed {}: the end is that of serial apply", self.seed);
        assert_eq!((self.domain_queues.count(), self.domain_queues.bytes()), (0, 0));
    }
}

fn planner(mode: &str) -> Planner {
    let globals = Globals::new();
    let number =
        ["NONE", "MINIMAL", "CONSERVATIVE", "OPTIMISTIC", "AGGRESSIVE"].iter().position(|m| *m == mode);
    globals.put(VarId::SlaveParallelMode, &VarValue::UInt(number.expect("listed") as u64));
    Planner::new(&globals)
}

#[test]
fn every_schedule_ends_as_serial_apply_does() {
    (0..1500).for_each(|seed| Bench::new(seed).run());
}
