//! Per-domain queues ([`Lanes`]): one [`Ring`] per domain, and the progress of all of them in the relay log.
//!
//! Domains are ordered independently of each other. Without GTIDs all groups are in one lane, because then
//! the position in the source's log is the only record of what is applied.

use cohort_base::DomainId;

use crate::place::SourcePlace;
use crate::progress::{Progress, Reached, Ticket};
use crate::ring::{After, Next, Ring, Taken};

/// The queues. `G` is a group, `R` the result of applying it.
pub struct Lanes<G, R> {
    lanes: Vec<Lane<G, R>>,
    progress: Progress,
    /// Position in the source's log before the first group.
    base: SourcePlace,
    /// Lane where the next search for work begins, so that no lane is always first.
    turn: usize,
    /// Maximum number of workers per lane; `slave_domain_parallel_threads`.
    lane_workers_max: usize,
    bytes: usize,
    count: usize,
}

struct Lane<G, R> {
    domain: DomainId,
    ring: Ring<G, R>,
    /// Number of workers that run its slots.
    busy: usize,
}

/// Index of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneNo(usize);

impl<G, R> Lanes<G, R> {
    /// Creates an empty set of lanes. `lane_workers_max` 0 means no limit.
    pub fn new(base: SourcePlace, lane_workers_max: usize) -> Lanes<G, R> {
        let lane_workers_max = if lane_workers_max == 0 { usize::MAX } else { lane_workers_max };
        Lanes {
            lanes: Vec::new(),
            progress: Progress::default(),
            base,
            turn: 0,
            lane_workers_max,
            bytes: 0,
            count: 0,
        }
    }

    /// Returns the lane of a domain, and creates it if needed.
    pub fn lane(&mut self, domain: DomainId) -> LaneNo {
        let known = self.lanes.iter().position(|lane| lane.domain == domain);
        LaneNo(known.unwrap_or_else(|| {
            self.lanes.push(Lane { domain, ring: Ring::new(), busy: 0 });
            self.lanes.len() - 1
        }))
    }

    /// Returns the ring of a lane.
    pub fn ring(&self, lane: LaneNo) -> &Ring<G, R> {
        &self.lanes[lane.0].ring
    }

    /// Returns all lanes and their rings.
    pub fn rings(&self) -> impl Iterator<Item = (LaneNo, &Ring<G, R>)> {
        self.lanes.iter().enumerate().map(|(n, lane)| (LaneNo(n), &lane.ring))
    }

    /// Returns whether all groups are ordered.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of groups that are not ordered.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the bytes of those groups.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the next group of the relay log.
    pub fn push(&mut self, lane: LaneNo, group: G, after: After, bytes: usize) {
        let ticket = self.progress.begin();
        self.lanes[lane.0].ring.push(group, ticket, after, bytes);
        self.bytes += bytes;
        self.count += 1;
    }

    /// Takes a slot that may start.
    pub fn take(&mut self, worker: usize) -> Option<(LaneNo, Taken<G>)> {
        let count = self.lanes.len();
        for step in 0..count {
            let at = (self.turn + step) % count;
            let lane = &mut self.lanes[at];
            if lane.busy >= self.lane_workers_max {
                continue;
            }
            if let Some(taken) = lane.ring.take(worker) {
                lane.busy += 1;
                self.turn = at + 1;
                return Some((LaneNo(at), taken));
            }
        }
        None
    }

    /// Returns whether a slot may start.
    pub fn has_startable(&self) -> bool {
        self.lanes.iter().any(|lane| lane.busy < self.lane_workers_max && lane.ring.has_startable())
    }

    /// Parks a slot that a worker has applied. Returns whether this allows another slot to start.
    pub fn park(&mut self, lane: LaneNo, number: u64, result: R) -> bool {
        let lane = &mut self.lanes[lane.0];
        lane.busy -= 1;
        lane.ring.park(number, result)
    }

    /// Returns a slot that its worker has rolled back. It runs again as the head.
    pub fn give_back(&mut self, lane: LaneNo, number: u64) {
        let lane = &mut self.lanes[lane.0];
        lane.ring.give_back(number);
        lane.busy -= 1;
    }

    /// Returns the head of a lane, if it is parked. See [`Ring::next_to_order`].
    pub fn next_to_order(&mut self, lane: LaneNo) -> Option<Next<G, R>> {
        self.lanes[lane.0].ring.next_to_order()
    }

    /// Returns a parked head that could not be ordered and is rolled back.
    pub fn refused(&mut self, lane: LaneNo, number: u64) {
        self.lanes[lane.0].ring.give_back(number);
    }

    /// Returns the source log position to store in a slot's commit.
    pub fn place_with(&self, ticket: Ticket, own: &SourcePlace) -> SourcePlace {
        self.progress.place_with(ticket, own, &self.base)
    }

    /// Removes the head of a lane, which is ordered. Returns the position before which everything is ordered,
    /// if it has changed.
    pub fn ordered(&mut self, lane: LaneNo, ticket: Ticket, reached: Reached) -> Option<Reached> {
        let ring = &mut self.lanes[lane.0].ring;
        let before = ring.load().1;
        ring.ordered();
        self.bytes -= before - ring.load().1;
        self.count -= 1;
        self.progress.done(ticket, reached)
    }

    /// Like [`Lanes::ordered`], for a head that its worker ordered itself or that had nothing to order.
    pub fn ordered_by_worker(&mut self, lane: LaneNo, ticket: Ticket, reached: Reached) -> Option<Reached> {
        self.lanes[lane.0].busy -= 1;
        self.ordered(lane, ticket, reached)
    }

    /// See [`Ring::undo_others`].
    pub fn undo_others(&mut self, lane: LaneNo) -> (Vec<R>, Vec<usize>) {
        self.lanes[lane.0].ring.undo_others()
    }

    /// Drops all slots; no worker may be running any. Dropping the returned results rolls back the parked
    /// ones.
    pub fn clear(&mut self) -> Vec<R> {
        (self.bytes, self.count) = (0, 0);
        self.progress.clear();
        self.lanes.iter_mut().for_each(|lane| lane.busy = 0);
        self.lanes.iter_mut().flat_map(|lane| lane.ring.clear()).collect()
    }
}
