//! Holders and waiters of one lock, independent of the kind of lock.
//!
//! # Rules
//! - A request is granted if it conflicts with no other holder and no earlier waiter. Requests are served in
//!   order of arrival, except that a request without conflicts is granted at once.
//! - An owner that upgrades its lock waits before all owners that hold nothing: they cannot be granted before
//!   it anyway.
//! - When a holder or a waiter leaves, the waiters are checked from the front and granted by the same rule.
//!   No other waiter is woken.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::mode::{Mode, ModeSet};
use crate::owner::Owner;
use crate::sync::Ordering;

/// An owner with the mode that it holds or waits for.
pub(crate) struct Claim<M> {
    pub owner: Arc<Owner>,
    pub mode: M,
}

/// State of a lock.
pub(crate) struct Queue<M> {
    pub holders: Vec<Claim<M>>,
    /// Upgrades first, then the other requests; each in order of arrival.
    pub waiters: VecDeque<Claim<M>>,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The owner already held this mode or a stronger one.
    Held,
    /// The owner holds the mode now; it held a weaker one before.
    Upgraded,
    /// The owner holds the mode now; it held nothing before.
    Granted,
    /// The owner would have to wait.
    Blocked,
}

impl<M: Mode> Queue<M> {
    pub fn new() -> Queue<M> {
        Queue { holders: Vec::new(), waiters: VecDeque::new() }
    }

    fn held(&self, owner: &Arc<Owner>) -> Option<usize> {
        self.holders.iter().position(|h| Arc::ptr_eq(&h.owner, owner))
    }

    /// Returns whether the owner holds the lock in any mode.
    pub fn holds(&self, owner: &Arc<Owner>) -> bool {
        self.held(owner).is_some()
    }

    /// Returns the modes held by owners other than `owner`.
    pub fn held_by_others(&self, owner: &Arc<Owner>) -> ModeSet {
        let others = self.holders.iter().filter(|h| !Arc::ptr_eq(&h.owner, owner));
        others.fold(0, |set, h| set | h.mode.bit())
    }

    /// Checks the invariants in builds with debug assertions. `unnamed` are the modes of holders that are not
    /// in `holders`.
    pub fn check_invariants(&self, unnamed: ModeSet) {
        if !cfg!(debug_assertions) {
            return;
        }
        let (mut once, mut twice): (ModeSet, ModeSet) = (0, 0);
        for holder in &self.holders {
            twice |= once & holder.mode.bit();
            once |= holder.mode.bit();
        }
        for holder in &self.holders {
            let others = (once & !holder.mode.bit()) | (twice & holder.mode.bit()) | unnamed;
            debug_assert!(holder.mode.conflicts() & others == 0, "two owners hold conflicting modes");
        }
        let place = |claim: &Claim<M>| Arc::as_ptr(&claim.owner).cast::<()>();
        let holders: HashSet<*const ()> = self.holders.iter().map(place).collect();
        debug_assert_eq!(
            holders.len(),
            self.holders.len(),
            "an owner holds a lock twice: one release is not enough"
        );
        let waiters: HashSet<*const ()> = self.waiters.iter().map(place).collect();
        debug_assert_eq!(
            waiters.len(),
            self.waiters.len(),
            "an owner waits for a lock twice: one grant is lost"
        );
        debug_assert!(
            self.waiters.iter().is_sorted_by_key(|waiter| !holders.contains(&place(waiter))),
            "an upgrade waits after a request that cannot be granted before it"
        );
    }

    /// Returns whether a release will grant the first waiter, if there is one: a holder blocks it.
    pub fn has_blocked_first(&self) -> bool {
        let is_blocked = |first: &Claim<M>| first.mode.conflicts() & self.held_by_others(&first.owner) != 0;
        self.waiters.front().is_none_or(is_blocked)
    }

    fn wanted(&self) -> ModeSet {
        self.waiters.iter().fold(0, |set, w| set | w.mode.bit())
    }

    /// Grants the mode if neither holders nor earlier waiters conflict. `unnamed` are the modes of holders
    /// that are not in `holders`.
    pub fn request(&mut self, owner: &Arc<Owner>, mode: M, unnamed: ModeSet) -> Request {
        let held = self.held(owner);
        if held.is_some_and(|at| self.holders[at].mode >= mode) {
            return Request::Held;
        }
        let others = self.held_by_others(owner) | unnamed;
        let ahead = if held.is_some() { 0 } else { self.wanted() };
        if mode.conflicts() & (others | ahead) != 0 {
            return Request::Blocked;
        }
        match held {
            Some(at) => {
                self.holders[at].mode = mode;
                Request::Upgraded
            }
            None => {
                self.holders.push(Claim { owner: owner.clone(), mode });
                Request::Granted
            }
        }
    }

    /// Appends a blocked request to the waiters.
    pub fn enqueue(&mut self, owner: &Arc<Owner>, mode: M) {
        debug_assert!(
            !self.waiters.iter().any(|waiter| Arc::ptr_eq(&waiter.owner, owner)),
            "an owner waits for one lock at a time"
        );
        debug_assert!(
            self.held(owner).is_none_or(|at| self.holders[at].mode < mode),
            "an owner waits for what it holds"
        );
        let claim = Claim { owner: owner.clone(), mode };
        if self.held(owner).is_none() {
            return self.waiters.push_back(claim);
        }
        let upgrades = self.waiters.iter().take_while(|w| self.held(&w.owner).is_some()).count();
        self.waiters.insert(upgrades, claim);
    }

    /// Removes a waiter. Returns false if it does not wait here any more: it was granted.
    pub fn dequeue(&mut self, owner: &Arc<Owner>) -> bool {
        let at = self.waiters.iter().position(|w| Arc::ptr_eq(&w.owner, owner));
        at.is_some_and(|at| self.waiters.remove(at).is_some())
    }

    /// Removes a holder and returns its mode.
    pub fn release(&mut self, owner: &Arc<Owner>) -> Option<M> {
        self.held(owner).map(|at| self.holders.swap_remove(at).mode)
    }

    /// Downgrades a holder's mode.
    pub fn downgrade(&mut self, owner: &Arc<Owner>, mode: M) {
        if let Some(at) = self.held(owner) {
            self.holders[at].mode = self.holders[at].mode.min(mode);
        }
    }

    /// Moves the waiters that can be granted to the holders and returns them.
    pub fn grant(&mut self, unnamed: ModeSet) -> Vec<Claim<M>> {
        let mut granted = Vec::new();
        let mut blocked: ModeSet = 0;
        let mut at = 0;
        while let Some(waiter) = self.waiters.get(at) {
            let (owner, mode) = (waiter.owner.clone(), waiter.mode);
            if mode.conflicts() & (self.held_by_others(&owner) | unnamed | blocked) != 0 {
                blocked |= mode.bit();
                // No waiter after one that conflicts with everything can be granted.
                if mode.conflicts() == M::ALL {
                    break;
                }
                at += 1;
                continue;
            }
            self.waiters.remove(at);
            match self.held(&owner) {
                Some(held) => {
                    debug_assert!(self.holders[held].mode < mode, "a granted upgrade is none");
                    self.holders[held].mode = mode;
                }
                None => self.holders.push(Claim { owner: owner.clone(), mode }),
            }
            granted.push(Claim { owner, mode });
        }
        granted
    }

    /// Marks the owners that a new waiter waits for. The walk stops at a waiter that conflicts with
    /// everything: that waiter has already marked all owners before it.
    pub fn mark_waited_for(&self, owner: &Arc<Owner>) {
        let Some(at) = self.waiters.iter().rposition(|w| Arc::ptr_eq(&w.owner, owner)) else { return };
        let mode = self.waiters[at].mode;
        let mark = |c: &Claim<M>| {
            if c.mode.bit() & mode.conflicts() != 0 {
                c.owner.waited_for.store(true, Ordering::SeqCst);
            }
        };
        for waiter in self.waiters.iter().take(at).rev() {
            mark(waiter);
            if waiter.mode.conflicts() == M::ALL {
                return;
            }
        }
        self.holders.iter().filter(|h| !Arc::ptr_eq(&h.owner, owner)).for_each(mark);
    }

    /// Returns the owners that a waiter directly waits for: conflicting holders and earlier waiters. Empty if
    /// the owner does not wait here.
    pub fn blockers(&self, owner: &Arc<Owner>) -> Blockers {
        let Some(at) = self.waiters.iter().position(|w| Arc::ptr_eq(&w.owner, owner)) else {
            return Blockers::default();
        };
        let mode = self.waiters[at].mode;
        let conflicting =
            |c: &&Claim<M>| c.mode.bit() & mode.conflicts() != 0 && !Arc::ptr_eq(&c.owner, owner);
        let owners = |c: &Claim<M>| c.owner.clone();
        let waiters: Vec<_> = self.waiters.iter().take(at).filter(conflicting).map(owners).collect();
        let all_ahead = mode.conflicts() == M::ALL && self.held(owner).is_none();
        Blockers {
            holders: self.holders.iter().filter(conflicting).map(owners).collect(),
            waiters,
            all_ahead,
        }
    }
}

/// Owners that a waiter waits for.
#[derive(Default)]
pub(crate) struct Blockers {
    pub holders: Vec<Arc<Owner>>,
    pub waiters: Vec<Arc<Owner>>,
    /// The waiter conflicts with everything: every owner that one of `waiters` waits for here is also among
    /// these blockers.
    pub all_ahead: bool,
}
