//! Memory that may be used, and by whom it is.
//!
//! # Concepts
//! A [`Budget`] is a number of bytes with a limit. A session's has the server's as its parent: what is
//! charged to the one is charged to both. A [`Reservation`] is what one owner (a statement, a transaction)
//! has charged; its drop gives all of it back. Reservations are charged in chunks, so that a row costs an
//! addition and no shared cache line.
//!
//! # Invariants
//! - A budget's `used` is the sum of its reservations and of its children's `used`.
//! - A charge that any limit refuses changes nothing.
//!
//! # Missing
//! Only what grows with the data or with a statement is charged. What an idle connection or the catalog takes
//! is not, nor what lies in the engine's caches and among the cached plans, which have limits of their own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reservations are charged in multiples of this.
const CHUNK_BYTES: u64 = 64 << 10;

/// Whose memory a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetOf {
    Session,
    Server,
}

/// A charge was refused: the caller gives up what it holds and fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget {
    pub of: BudgetOf,
    pub limit_bytes: u64,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than the {} bytes of memory that the {:?} may use", self.limit_bytes, self.of)
    }
}

impl std::error::Error for OverBudget {}

/// Bytes in use, and how many there may be. Any thread reads and charges.
#[derive(Debug)]
pub struct Budget {
    of: BudgetOf,
    used: AtomicU64,
    peak: AtomicU64,
    limit: AtomicU64,
    parent: Option<Arc<Budget>>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(BudgetOf::Server, None)
    }
}

impl Budget {
    /// The server's, without a limit.
    pub fn of_server() -> Arc<Budget> {
        Arc::default()
    }

    /// A session's, without a limit of its own.
    pub fn of_session(server: &Arc<Budget>) -> Arc<Budget> {
        Arc::new(Budget::new(BudgetOf::Session, Some(Arc::clone(server))))
    }

    fn new(of: BudgetOf, parent: Option<Arc<Budget>>) -> Budget {
        let (used, peak, limit) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Budget { of, used, peak, limit, parent }
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The most there were at once.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// From now on so many bytes; what is in use stays.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    fn charge(&self, bytes: u64) -> Result<(), OverBudget> {
        let limit_bytes = self.limit.load(Ordering::Relaxed);
        let used = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let outcome = if used > limit_bytes {
            Err(OverBudget { of: self.of, limit_bytes })
        } else {
            self.parent.as_ref().map_or(Ok(()), |parent| parent.charge(bytes))
        };
        match outcome {
            Ok(()) => self.peak.fetch_max(used, Ordering::Relaxed),
            Err(_) => self.used.fetch_sub(bytes, Ordering::Relaxed),
        };
        outcome
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.give_back(bytes);
        }
    }
}

/// What one owner holds of a budget.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    charged: u64,
    used: u64,
}

impl Reservation {
    /// Nothing yet.
    pub fn new(budget: Arc<Budget>) -> Reservation {
        Reservation { budget, charged: 0, used: 0 }
    }

    /// Bytes held.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Holds more bytes.
    #[inline]
    pub fn grow(&mut self, bytes: u64) -> Result<(), OverBudget> {
        self.resize(self.used.saturating_add(bytes))
    }

    /// Holds fewer bytes.
    pub fn shrink(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        self.settle();
    }

    /// Holds just so many bytes.
    #[inline]
    pub fn resize(&mut self, bytes: u64) -> Result<(), OverBudget> {
        if bytes > self.charged {
            let charged = bytes.next_multiple_of(CHUNK_BYTES);
            self.budget.charge(charged - self.charged)?;
            self.charged = charged;
        }
        self.used = bytes;
        if self.charged - bytes > 16 * CHUNK_BYTES {
            self.settle();
        }
        Ok(())
    }

    /// Gives back what is charged beyond the chunk in use.
    fn settle(&mut self) {
        let charged = self.used.next_multiple_of(CHUNK_BYTES);
        if let Some(rest) = self.charged.checked_sub(charged) {
            self.budget.give_back(rest);
            self.charged = charged;
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give_back(self.charged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_charged_to_session_and_server_and_given_back() {
        let server = Budget::of_server();
        let (a, b) = (Budget::of_session(&server), Budget::of_session(&server));
        let mut first = Reservation::new(Arc::clone(&a));
        let mut second = Reservation::new(Arc::clone(&b));
        first.grow(1).expect("no limit");
        second.grow(1 << 20).expect("no limit");
        assert_eq!((a.used(), b.used(), server.used()), (CHUNK_BYTES, 1 << 20, CHUNK_BYTES + (1 << 20)));
        second.shrink((1 << 20) - 1);
        assert_eq!((b.used(), b.peak()), (CHUNK_BYTES, 1 << 20));
        drop((first, second));
        assert_eq!((a.used(), b.used(), server.used()), (0, 0, 0));
    }

    #[test]
    fn a_refused_charge_changes_nothing() {
        let server = Budget::of_server();
        let session = Budget::of_session(&server);
        server.set_limit(4 * CHUNK_BYTES);
        session.set_limit(3 * CHUNK_BYTES);
        let mut held = Reservation::new(Arc::clone(&session));
        held.grow(3 * CHUNK_BYTES).expect("within both");
        assert_eq!(held.grow(1).map_err(|e| e.of), Err(BudgetOf::Session));
        session.set_limit(u64::MAX);
        held.grow(CHUNK_BYTES).expect("the session's limit was raised");
        assert_eq!(held.grow(1).map_err(|e| e.of), Err(BudgetOf::Server));
        assert_eq!(
            (held.used(), session.used(), server.used()),
            (4 * CHUNK_BYTES, 4 * CHUNK_BYTES, 4 * CHUNK_BYTES)
        );
        drop(held);
        assert_eq!((session.used(), server.used(), session.peak()), (0, 0, 4 * CHUNK_BYTES));
    }
}
