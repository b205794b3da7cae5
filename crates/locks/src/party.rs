//! [`Party`]: a node of the wait-for graph.
//!
//! # Concepts
//! A *party* is a session, with all the lock owners that it uses at a time. One thread of control runs a
//! session: while it waits for a lock of one owner, none of the others releases anything. So a request that
//! waits for any of them waits for what the party waits for.
//!
//! | owner | its part |
//! |---|---|
//! | the running transaction | [`Part::Transaction`] |
//! | LOCK TABLES, FLUSH TABLES WITH READ LOCK, BACKUP | [`Part::Lasting`] |
//! | GET_LOCK; one use of a sequence; an XA branch that the session has prepared, or ends | [`Part::Side`] |
//!
//! An owner without a party is a node by itself: a transaction that was prepared for its commit, whose locks
//! go without its session, or a prepared XA branch whose session is gone.
//!
//! # States of an owner
//! `alone -> in a party -> alone`: [`LockOwner::join`] and [`LockOwner::leave`], by the thread that has the
//! owner. A commit leaves before the transaction is ordered.
//!
//! # Invariants
//! 1. A party waits for one lock at a time, and `waiting` is the owner that does. It is set with the request,
//!    under the graph's mutex, so that the wait that closes a cycle finds it.
//! 2. While a party waits, none of its locks is anonymous: the transaction's are made known when a wait of
//!    any of its owners begins, the other owners take none anonymously.
//! 3. A party with owners besides its transaction searches for cycles whenever it waits: which of them is
//!    waited for is not known to the one that waits.
//! 4. `server` is what a lasting owner holds of the server's name. No other owner of the party asks for that
//!    name then: it would wait after those that wait for the party.
//!
//! # Lock order
//! `graph`, a queue, an owner's `wait`, the party's `waiting`. `transaction`, an owner's `party` and its
//! `names` are held for a moment; a name's queue may be locked under `names`.

use std::sync::Arc;

use crate::mode::{MetadataMode, NameKey};
use crate::names::Ticket;
use crate::owner::{LockOwner, Owner, WaitOn};
use crate::sync::{AtomicU8, AtomicU64, Mutex, Ordering};

/// A session, as the wait-for graph knows it.
#[derive(Default)]
pub struct Party {
    /// The owner that waits for a lock.
    waiting: Mutex<Option<Arc<Owner>>>,
    /// The running transaction's owner, whose locks may be anonymous.
    transaction: Mutex<Option<Arc<Owner>>>,
    /// How many owners there are besides that one.
    others: AtomicU64,
    /// 0, or 1 + the mode of the server's name that a lasting owner holds.
    server: AtomicU8,
}

/// The part of an owner in its party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The running transaction.
    Transaction,
    /// Locks of the session itself, which outlive transactions.
    Lasting,
    /// Any other.
    Side,
}

impl Party {
    /// A session without owners.
    pub fn new() -> Arc<Party> {
        Arc::default()
    }

    /// Whether a lasting owner holds the server's name, for writing or to keep writes out.
    pub fn holds_server(&self) -> bool {
        self.server.load(Ordering::Relaxed) > MetadataMode::SharedRead as u8 + 1
    }

    pub(crate) fn note_server(&self, mode: Option<MetadataMode>) {
        self.server.store(mode.map_or(0, |mode| mode as u8 + 1), Ordering::Relaxed);
    }

    /// Whether there are owners besides the transaction.
    pub fn has_others(&self) -> bool {
        self.others.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn set_waiting(&self, owner: Option<Arc<Owner>>) {
        *self.waiting.lock() = owner;
    }

    pub(crate) fn transaction(&self) -> Option<Arc<Owner>> {
        self.transaction.lock().clone()
    }

    fn admit(&self, owner: &Arc<Owner>, part: Part) {
        match part {
            Part::Transaction => *self.transaction.lock() = Some(Arc::clone(owner)),
            Part::Lasting | Part::Side => {
                self.others.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn dismiss(&self, owner: &Arc<Owner>, part: Part) {
        match part {
            Part::Transaction => {
                self.transaction.lock().take_if(|own| Arc::ptr_eq(own, owner));
            }
            Part::Lasting | Part::Side => {
                if part == Part::Lasting {
                    self.note_server(None);
                }
                self.others.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl Owner {
    /// Its party, if it is in one.
    pub fn party(&self) -> Option<Arc<Party>> {
        self.party.lock().as_ref().map(|(party, _)| Arc::clone(party))
    }

    /// Whether it holds locks of its session itself: a statement that asks for such gives back what it has
    /// got, and asks again, when it is a deadlock's victim.
    pub fn is_lasting(&self) -> bool {
        self.party.lock().as_ref().is_some_and(|(_, part)| *part == Part::Lasting)
    }

    /// Whether a cycle through it is possible: it, or another owner of its party, may be waited for.
    pub fn may_be_waited_for(&self) -> bool {
        self.waited_for.load(Ordering::SeqCst)
            || self.party.lock().as_ref().is_some_and(|(party, _)| party.has_others())
    }

    /// The wait of its party: the owner that waits, and for what.
    pub fn wait_of_party(self: &Arc<Owner>) -> Option<(Arc<Owner>, WaitOn)> {
        if let Some(on) = self.waits_on() {
            return Some((Arc::clone(self), on));
        }
        let waiting = self.party()?.waiting.lock().clone()?;
        let on = waiting.waits_on()?;
        Some((waiting, on))
    }

    /// Makes its anonymous locks known to their queues.
    pub fn make_names_known(self: &Arc<Owner>) {
        self.names.lock().iter_mut().for_each(|ticket| self.make_known(ticket));
    }

    pub fn make_known(self: &Arc<Owner>, ticket: &mut Ticket) {
        if std::mem::take(&mut ticket.anonymous) && ticket.name.make_known(self, ticket.mode) {
            self.waited_for.store(true, Ordering::SeqCst);
        }
    }
}

/// A node of the graph, compared by place; it keeps what it is alive.
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

impl LockOwner {
    /// Becomes an owner of a session, in place of a party that it is in.
    pub fn join(&mut self, party: &Arc<Party>, part: Part) {
        self.leave();
        if part != Part::Transaction {
            self.shared.make_names_known();
        }
        party.admit(&self.shared, part);
        *self.shared.party.lock() = Some((Arc::clone(party), part));
        self.part = Some(part);
    }

    /// Becomes a node by itself: its locks go without its session.
    pub fn leave(&mut self) {
        let Some(part) = self.part.take() else { return };
        if let Some((party, _)) = self.shared.party.lock().take() {
            party.dismiss(&self.shared, part);
        }
    }

    /// Notes what a lasting owner holds of the server's name.
    pub(crate) fn note_server(&self, name: &NameKey, mode: Option<MetadataMode>) {
        if self.part == Some(Part::Lasting)
            && *name == NameKey::Global
            && let Some((party, _)) = &*self.shared.party.lock()
        {
            party.note_server(mode);
        }
    }

    /// Whether its party holds the server's name by a lasting owner.
    pub(crate) fn has_server_of_party(&self) -> bool {
        self.part.is_some()
            && self.shared.party.lock().as_ref().is_some_and(|(party, _)| party.holds_server())
    }
}
