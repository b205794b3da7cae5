//! Per-domain queues: one [`Ring`] per domain, and the progress of all of them in the relay log.
//!
//! Domains are ordered independently of each other. Without GTIDs all groups are in one queue, because then
//! the position in the source's log is the only record of what is applied.

use cohort_base::DomainId;

use crate::place::SourcePlace;
use crate::progress::{Progress, Reached, Ticket};
use crate::ring::{After, Next, Ring, Taken};

/// The queues of all domains. `G` is a group, `R` the result of applying it.
pub struct DomainQueues<G, R> {
    domain_queues: Vec<DomainQueue<G, R>>,
    progress: Progress,
    /// Position in the source's log before the first group.
    base: SourcePlace,
    /// The queue where the next search for work begins, so that no queue is always first.
    turn: usize,
    /// Maximum number of workers per queue; `slave_domain_parallel_threads`.
    domain_queue_workers_max: usize,
    bytes: usize,
    count: usize,
}

struct DomainQueue<G, R> {
    domain: DomainId,
    ring: Ring<G, R>,
    /// Number of workers that run its slots.
    busy: usize,
}

/// Index of a domain queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DomainQueueNo(usize);

impl<G, R> DomainQueues<G, R> {
    /// Creates an empty set of queues. `domain_queue_workers_max` 0 means no limit.
    pub fn new(base: SourcePlace, domain_queue_workers_max: usize) -> DomainQueues<G, R> {
        let domain_queue_workers_max =
            if domain_queue_workers_max == 0 { usize::MAX } else { domain_queue_workers_max };
        DomainQueues {
            domain_queues: Vec::new(),
            progress: Progress::default(),
            base,
            turn: 0,
            domain_queue_workers_max,
            bytes: 0,
            count: 0,
        }
    }

    /// Returns the queue of a domain, and creates it if needed.
    pub fn domain_queue(&mut self, domain: DomainId) -> DomainQueueNo {
        let known = self.domain_queues.iter().position(|domain_queue| domain_queue.domain == domain);
        DomainQueueNo(known.unwrap_or_else(|| {
            self.domain_queues.push(DomainQueue { domain, ring: Ring::new(), busy: 0 });
            self.domain_queues.len() - 1
        }))
    }

    /// Returns the ring of a queue.
    pub fn ring(&self, domain_queue: DomainQueueNo) -> &Ring<G, R> {
        &self.domain_queues[domain_queue.0].ring
    }

    /// Returns all queues and their rings.
    pub fn rings(&self) -> impl Iterator<Item = (DomainQueueNo, &Ring<G, R>)> {
        self.domain_queues.iter().enumerate().map(|(n, domain_queue)| (DomainQueueNo(n), &domain_queue.ring))
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
    pub fn push(&mut self, domain_queue: DomainQueueNo, group: G, after: After, bytes: usize) {
        let ticket = self.progress.begin();
        self.domain_queues[domain_queue.0].ring.push(group, ticket, after, bytes);
        self.bytes += bytes;
        self.count += 1;
    }

    /// Takes a slot that may start.
    pub fn take(&mut self, worker: usize) -> Option<(DomainQueueNo, Taken<G>)> {
        let count = self.domain_queues.len();
        for step in 0..count {
            let at = (self.turn + step) % count;
            let domain_queue = &mut self.domain_queues[at];
            if domain_queue.busy >= self.domain_queue_workers_max {
                continue;
            }
            if let Some(taken) = domain_queue.ring.take(worker) {
                domain_queue.busy += 1;
                self.turn = at + 1;
                return Some((DomainQueueNo(at), taken));
            }
        }
        None
    }

    /// Returns whether a slot may start.
    pub fn has_startable(&self) -> bool {
        self.domain_queues.iter().any(|domain_queue| {
            domain_queue.busy < self.domain_queue_workers_max && domain_queue.ring.has_startable()
        })
    }

    /// Parks a slot that a worker has applied. Returns whether this allows another slot to start.
    pub fn park(&mut self, domain_queue: DomainQueueNo, number: u64, result: R) -> bool {
        let domain_queue = &mut self.domain_queues[domain_queue.0];
        domain_queue.busy -= 1;
        domain_queue.ring.park(number, result)
    }

    /// Returns a slot that its worker has rolled back. It runs again as the head.
    pub fn give_back(&mut self, domain_queue: DomainQueueNo, number: u64) {
        let domain_queue = &mut self.domain_queues[domain_queue.0];
        domain_queue.ring.give_back(number);
        domain_queue.busy -= 1;
    }

    /// Returns the head of a queue, if it is parked. See [`Ring::next_to_order`].
    pub fn next_to_order(&mut self, domain_queue: DomainQueueNo) -> Option<Next<G, R>> {
        self.domain_queues[domain_queue.0].ring.next_to_order()
    }

    /// Returns a parked head that could not be ordered and is rolled back.
    pub fn refused(&mut self, domain_queue: DomainQueueNo, number: u64) {
        self.domain_queues[domain_queue.0].ring.give_back(number);
    }

    /// Returns the source log position to store in a slot's commit.
    pub fn place_with(&self, ticket: Ticket, own: &SourcePlace) -> SourcePlace {
        self.progress.place_with(ticket, own, &self.base)
    }

    /// Removes the head of a queue, which is ordered. Returns the position before which everything is
    /// ordered, if it has changed.
    pub fn ordered(
        &mut self,
        domain_queue: DomainQueueNo,
        ticket: Ticket,
        reached: Reached,
    ) -> Option<Reached> {
        let ring = &mut self.domain_queues[domain_queue.0].ring;
        let before = ring.load().1;
        ring.ordered();
        self.bytes -= before - ring.load().1;
        self.count -= 1;
        self.progress.done(ticket, reached)
    }

    /// Like [`DomainQueues::ordered`], for a head that its worker ordered itself or that had nothing to
    /// order.
    pub fn ordered_by_worker(
        &mut self,
        domain_queue: DomainQueueNo,
        ticket: Ticket,
        reached: Reached,
    ) -> Option<Reached> {
        self.domain_queues[domain_queue.0].busy -= 1;
        self.ordered(domain_queue, ticket, reached)
    }

    /// See [`Ring::undo_others`].
    pub fn undo_others(&mut self, domain_queue: DomainQueueNo) -> (Vec<R>, Vec<usize>) {
        self.domain_queues[domain_queue.0].ring.undo_others()
    }

    /// Drops all slots; no worker may be running any. Dropping the returned results rolls back the parked
    /// ones.
    pub fn clear(&mut self) -> Vec<R> {
        (self.bytes, self.count) = (0, 0);
        self.progress.clear();
        self.domain_queues.iter_mut().for_each(|domain_queue| domain_queue.busy = 0);
        self.domain_queues.iter_mut().flat_map(|domain_queue| domain_queue.ring.clear()).collect()
    }
}
