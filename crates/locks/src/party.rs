//! [`Party`]: a session as a node of the wait-for graph.
//!
//! # Concepts
//! A *party* is a session with all the lock owners that it uses at the same time. A session runs in one
//! thread of control: while it waits for a lock of one owner, it releases no lock of its other owners. So a
//! request blocked by any of these owners waits for whatever the party waits for.
//!
//! | owner | its part |
//! |---|---|
//! | the running transaction | [`Part::Transaction`] |
//! | LOCK TABLES, FLUSH TABLES WITH READ LOCK, BACKUP | [`Part::Lasting`] |
//! | GET_LOCK; one use of a sequence; an XA branch that the session has prepared, or ends | [`Part::Side`] |
//!
//! An owner without a party is a node of its own: a transaction prepared for its commit, whose locks are
//! released independently of its session, or a prepared XA branch whose session has ended.
//!
//! # States of an owner
//! `alone -> in a party -> alone`, by `LockOwner::join` and `LockOwner::leave`, called by the thread that has
//! the owner. A commit leaves the party before the transaction is ordered.
//!
//! # Invariants
//! 1. A party waits for one lock at a time, and `waiting` is the owner that waits. It is set together with
//!    the request, under the graph mutex, so that the wait that closes a cycle sees it.
//! 2. While a party waits, none of its locks is anonymous (`names.rs`). The transaction's anonymous locks are
//!    registered when any owner of the party begins to wait; the other owners never take anonymous locks.
//! 3. A party with owners besides its transaction searches for cycles whenever it waits, because the waiting
//!    owner does not know whether another owner of the party is waited for.
//! 4. `server` is the mode in which a lasting owner holds the global lock. No other owner of the party
//!    requests the global lock meanwhile: it would queue after requests that wait for this party.
//!
//! # Lock order
//! `graph`, a queue, an owner's `wait`, the party's `waiting`. `transaction`, `others`, an owner's `party`
//! and its `names` are held briefly; a name's queue may be locked under `names`.
//!
//! # Reports
//! [`Party::names`] lists the metadata locks of a session, also those that are anonymous. It may be called by
//! any thread.

use std::sync::Arc;

use crate::mode::{MetadataKey, MetadataMode};
use crate::names::Ticket;
use crate::owner::{Owner, WaitOn};
use crate::sync::{AtomicU8, AtomicU64, Mutex, Ordering};

/// A session in the wait-for graph.
#[derive(Default)]
pub struct Party {
    /// The owner that waits for a lock.
    pub(crate) waiting: Mutex<Option<Arc<Owner>>>,
    /// The running transaction's owner, whose locks may be anonymous.
    transaction: Mutex<Option<Arc<Owner>>>,
    /// Number of owners besides the transaction, and these owners.
    other_count: AtomicU64,
    others: Mutex<Vec<(Part, Arc<Owner>)>>,
    /// 0, or 1 + the mode in which a lasting owner holds the global lock.
    server: AtomicU8,
}

/// A metadata lock that a session holds or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    pub key: MetadataKey,
    pub mode: MetadataMode,
    pub part: Part,
    pub is_granted: bool,
}

/// Role of an owner in its party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The running transaction.
    Transaction,
    /// Locks of the session itself, which outlive its transactions.
    Lasting,
    /// Any other owner.
    Side,
}

impl Party {
    /// Returns a party without owners.
    pub fn new() -> Arc<Party> {
        Arc::default()
    }

    /// Returns whether a lasting owner holds the global lock, to write or to block writes.
    pub fn holds_server(&self) -> bool {
        self.server.load(Ordering::Relaxed) > MetadataMode::SharedRead as u8 + 1
    }

    pub(crate) fn note_server(&self, mode: Option<MetadataMode>) {
        self.server.store(mode.map_or(0, |mode| mode as u8 + 1), Ordering::Relaxed);
    }

    /// Returns whether the party has owners besides the transaction.
    pub fn has_others(&self) -> bool {
        self.other_count.load(Ordering::SeqCst) > 0
    }

    /// Returns the metadata locks that the session holds or waits for.
    pub fn names(&self) -> Vec<SessionName> {
        let transaction = self.transaction().map(|owner| (Part::Transaction, owner));
        let others = self.others.lock().clone();
        let mut names = Vec::new();
        for (part, owner) in transaction.into_iter().chain(others) {
            let waiting = match owner.waits_on() {
                Some(WaitOn::Name(name)) => name.mode_wanted(&owner).map(|wanted| (name, wanted)),
                _ => None,
            };
            for ticket in owner.names.lock().iter() {
                let wanted = waiting.as_ref().filter(|(name, _)| Arc::ptr_eq(name, &ticket.name));
                let key = ticket.name.key();
                let mut add = |mode, is_granted| {
                    names.push(SessionName { key: key.clone(), mode, part, is_granted });
                };
                match wanted {
                    None => add(ticket.mode, true),
                    Some((_, (mode, holds))) => {
                        if *holds {
                            add(ticket.mode, true);
                        }
                        add(*mode, false);
                    }
                }
            }
        }
        names
    }

    pub(crate) fn set_waiting(&self, owner: Option<Arc<Owner>>) {
        let mut waiting = self.waiting.lock();
        debug_assert!(owner.is_none() || waiting.is_none(), "a session waits for two locks at a time");
        *waiting = owner;
    }

    pub(crate) fn transaction(&self) -> Option<Arc<Owner>> {
        self.transaction.lock().clone()
    }

    pub(crate) fn admit(&self, owner: &Arc<Owner>, part: Part) {
        match part {
            Part::Transaction => *self.transaction.lock() = Some(Arc::clone(owner)),
            Part::Lasting | Part::Side => {
                self.other_count.fetch_add(1, Ordering::SeqCst);
                self.others.lock().push((part, Arc::clone(owner)));
            }
        }
    }

    pub(crate) fn dismiss(&self, owner: &Arc<Owner>, part: Part) {
        match part {
            Part::Transaction => {
                self.transaction.lock().take_if(|own| Arc::ptr_eq(own, owner));
            }
            Part::Lasting | Part::Side => {
                if part == Part::Lasting {
                    self.note_server(None);
                }
                self.others.lock().retain(|(_, other)| !Arc::ptr_eq(other, owner));
                let before = self.other_count.fetch_sub(1, Ordering::SeqCst);
                debug_assert!(before > 0, "an owner leaves a session twice");
            }
        }
    }
}

impl Owner {
    /// Returns its party, if it belongs to one.
    pub fn party(&self) -> Option<Arc<Party>> {
        self.party.lock().as_ref().map(|(party, _)| Arc::clone(party))
    }

    /// Returns whether it holds locks of the session itself. A statement that requests such locks and becomes
    /// a deadlock victim releases what it acquired and retries.
    pub fn is_lasting(&self) -> bool {
        self.party.lock().as_ref().is_some_and(|(_, part)| *part == Part::Lasting)
    }

    /// Returns whether a cycle through it is possible: it, or another owner of its party, may be waited for.
    pub fn may_be_waited_for(&self) -> bool {
        self.waited_for.load(Ordering::SeqCst)
            || self.party.lock().as_ref().is_some_and(|(party, _)| party.has_others())
    }

    /// Returns the current wait of its party: the owner that waits, and the lock.
    pub fn wait_of_party(self: &Arc<Owner>) -> Option<(Arc<Owner>, WaitOn)> {
        if let Some(on) = self.waits_on() {
            return Some((Arc::clone(self), on));
        }
        let waiting = self.party()?.waiting.lock().clone()?;
        let on = waiting.waits_on()?;
        Some((waiting, on))
    }

    /// Registers its anonymous locks in their queues.
    pub fn make_names_known(self: &Arc<Owner>) {
        let mut names = self.names.lock();
        names.iter_mut().for_each(|ticket| self.make_known(ticket));
        debug_assert!(
            names.iter().all(|ticket| !ticket.anonymous),
            "a deadlock over this name would not be found"
        );
    }

    pub fn make_known(self: &Arc<Owner>, ticket: &mut Ticket) {
        if std::mem::take(&mut ticket.anonymous) && ticket.name.make_known(self, ticket.mode) {
            self.waited_for.store(true, Ordering::SeqCst);
        }
    }
}

/// A node of the graph, compared by address. It keeps its party or owner alive.
pub(crate) enum Node {
    Party(Arc<Party>),
    Owner(Arc<Owner>),
}

impl Node {
    pub fn of(owner: &Arc<Owner>) -> Node {
        owner.party().map_or_else(|| Node::Owner(Arc::clone(owner)), Node::Party)
    }

    pub fn place(&self) -> *const () {
        match self {
            Node::Party(party) => Arc::as_ptr(party).cast(),
            Node::Owner(owner) => Arc::as_ptr(owner).cast(),
        }
    }
}
