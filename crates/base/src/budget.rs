//! Memory budgets of sessions and of the server.
//!
//! # Concepts
//! A [`Budget`] is a number of used bytes with a limit. The parent of a session's budget is the server's: a
//! charge to a session is also charged to the server. A [`Reservation`] is the share that one owner (a
//! statement, a transaction) has charged; dropping it returns everything. Reservations are charged in chunks,
//! so that a row costs an addition and no access to a shared cache line.
//!
//! # Invariants
//! - A budget's `used` is the sum of its reservations and of its children's `used`.
//! - A charge that any limit refuses changes nothing.
//!
//! # Missing
//! Only memory that grows with the data or with a statement is charged. Idle connections and the catalog are
//! not charged, nor are the engines' caches and the plan cache, which have limits of their own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reservations are charged in multiples of this.
const CHUNK_BYTES: u64 = 64 << 10;

/// Owner of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetOf {
    Session,
    Server,
}

/// A charge was refused: the caller releases its memory and fails.
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

/// Used bytes and their limit. Any thread may read and charge it.
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
    /// Returns the server's budget, without a limit.
    pub fn of_server() -> Arc<Budget> {
        Arc::default()
    }

    /// Returns a session's budget, without a limit of its own.
    pub fn of_session(server: &Arc<Budget>) -> Arc<Budget> {
        Arc::new(Budget::new(BudgetOf::Session, Some(Arc::clone(server))))
    }

    fn new(of: BudgetOf, parent: Option<Arc<Budget>>) -> Budget {
        let (used, peak, limit) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Budget { of, used, peak, limit, parent }
    }

    /// Returns the used bytes.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the maximum of the used bytes so far.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Sets the limit; memory in use is not affected.
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

/// The share of a budget that one owner has reserved.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    charged: u64,
    used: u64,
}

impl Reservation {
    /// Returns an empty reservation.
    pub fn new(budget: Arc<Budget>) -> Reservation {
        Reservation { budget, charged: 0, used: 0 }
    }

    /// Returns the reserved bytes.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Reserves more bytes.
    #[inline]
    pub fn grow(&mut self, bytes: u64) -> Result<(), OverBudget> {
        self.resize(self.used.saturating_add(bytes))
    }

    /// Returns bytes to the budget.
    pub fn shrink(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        self.release_excess();
    }

    /// Changes the reservation to exactly this number of bytes.
    #[inline]
    pub fn resize(&mut self, bytes: u64) -> Result<(), OverBudget> {
        if bytes > self.charged {
            let charged = bytes.next_multiple_of(CHUNK_BYTES);
            self.budget.charge(charged - self.charged)?;
            self.charged = charged;
        }
        self.used = bytes;
        if self.charged - bytes > 16 * CHUNK_BYTES {
            self.release_excess();
        }
        Ok(())
    }

    /// Returns the charge beyond the last chunk in use.
    fn release_excess(&mut self) {
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
    fn reservations_are_charged_to_session_and_server_and_released() {
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
