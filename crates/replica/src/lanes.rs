//! [`Lanes`]: a [`Ring`] for each domain, and how far all of them have come in the relay log.
//!
//! Domains are ordered independently of each other. Without GTIDs all groups are in one lane, because the
//! position in the source's log is then all that says what is applied.

use cohort_base::DomainId;

use crate::place::SourcePlace;
use crate::progress::{Progress, Reached, Ticket};
use crate::ring::{After, Next, Ring, Taken};

/// The rings. `G` is a group, `R` what is left of it when it is applied.
pub struct Lanes<G, R> {
    lanes: Vec<Lane<G, R>>,
    progress: Progress,
    /// The place in the source's log before the first group.
    base: SourcePlace,
    /// Where the next search for work begins: no lane is always asked first.
    turn: usize,
    /// Workers that one lane may have; `slave_domain_parallel_threads`.
    lane_workers_max: usize,
    bytes: usize,
    count: usize,
}

struct Lane<G, R> {
    domain: DomainId,
    ring: Ring<G, R>,
    /// Workers that run slots of it.
    busy: usize,
}

/// A lane by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneNo(usize);

impl<G, R> Lanes<G, R> {
    /// No lane yet. `lane_workers_max`: 0 is no limit.
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

    /// The lane of a domain.
    pub fn lane(&mut self, domain: DomainId) -> LaneNo {
        let known = self.lanes.iter().position(|lane| lane.domain == domain);
        LaneNo(known.unwrap_or_else(|| {
            self.lanes.push(Lane { domain, ring: Ring::new(), busy: 0 });
            self.lanes.len() - 1
        }))
    }

    /// The ring of a lane.
    pub fn ring(&self, lane: LaneNo) -> &Ring<G, R> {
        &self.lanes[lane.0].ring
    }

    /// All lanes and their rings.
    pub fn rings(&self) -> impl Iterator<Item = (LaneNo, &Ring<G, R>)> {
        self.lanes.iter().enumerate().map(|(n, lane)| (LaneNo(n), &lane.ring))
    }

    /// Whether all is ordered.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Groups that are not ordered.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What they weigh.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next group of the relay log.
    pub fn push(&mut self, lane: LaneNo, group: G, after: After, bytes: usize) {
        let ticket = self.progress.begin();
        self.lanes[lane.0].ring.push(group, ticket, after, bytes);
        self.bytes += bytes;
        self.count += 1;
    }

    /// A slot that may start.
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

    /// Whether a slot may start.
    pub fn has_startable(&self) -> bool {
        self.lanes.iter().any(|lane| lane.busy < self.lane_workers_max && lane.ring.has_startable())
    }

    /// A worker has applied a slot. Answers whether another one may start for that.
    pub fn park(&mut self, lane: LaneNo, number: u64, result: R) -> bool {
        let lane = &mut self.lanes[lane.0];
        lane.busy -= 1;
        lane.ring.park(number, result)
    }

    /// A worker has undone what it ran; the slot runs again as the head.
    pub fn give_back(&mut self, lane: LaneNo, number: u64) {
        let lane = &mut self.lanes[lane.0];
        lane.ring.give_back(number);
        lane.busy -= 1;
    }

    /// The head of a lane, if it is parked. See [`Ring::next_to_order`].
    pub fn next_to_order(&mut self, lane: LaneNo) -> Option<Next<G, R>> {
        self.lanes[lane.0].ring.next_to_order()
    }

    /// The head could not be ordered and is undone.
    pub fn refused(&mut self, lane: LaneNo, number: u64) {
        self.lanes[lane.0].ring.give_back(number);
    }

    /// The place in the source's log that a slot's commit is to carry.
    pub fn place_with(&self, ticket: Ticket, own: &SourcePlace) -> SourcePlace {
        self.progress.place_with(ticket, own, &self.base)
    }

    /// The head of a lane is ordered. Answers the place before which everything is, if that has changed.
    pub fn ordered(&mut self, lane: LaneNo, ticket: Ticket, reached: Reached) -> Option<Reached> {
        let ring = &mut self.lanes[lane.0].ring;
        let before = ring.load().1;
        ring.ordered();
        self.bytes -= before - ring.load().1;
        self.count -= 1;
        self.progress.done(ticket, reached)
    }

    /// The worker that runs the head of a lane has ordered it itself, or has nothing to order.
    pub fn ordered_by_worker(&mut self, lane: LaneNo, ticket: Ticket, reached: Reached) -> Option<Reached> {
        self.lanes[lane.0].busy -= 1;
        self.ordered(lane, ticket, reached)
    }

    /// See [`Ring::undo_others`].
    pub fn undo_others(&mut self, lane: LaneNo) -> (Vec<R>, Vec<usize>) {
        self.lanes[lane.0].ring.undo_others()
    }

    /// Forgets all slots; what is parked is undone when the caller drops it. No worker runs any.
    pub fn clear(&mut self) -> Vec<R> {
        (self.bytes, self.count) = (0, 0);
        self.progress.clear();
        self.lanes.iter_mut().for_each(|lane| lane.busy = 0);
        self.lanes.iter_mut().flat_map(|lane| lane.ring.clear()).collect()
    }
}
