//! Sums of a session's statements by kind: [`SessionSums`].

use crate::measured::Measured;
use crate::shards::Totals;
use crate::sync::Mutex;

/// Sums of the statements of a session, or of several, by kind. Memory grows with the kinds that have run.
#[derive(Debug, Default)]
pub struct SessionSums(Mutex<Vec<(usize, Totals)>>);

impl SessionSums {
    /// Counts a statement of a kind that ended at `now_us`.
    pub fn record(&self, kind: usize, measured: &Measured, now_us: u64) {
        let mut kinds = self.0.lock();
        let place = kinds.binary_search_by_key(&kind, |(known, _)| *known).unwrap_or_else(|place| {
            kinds.insert(place, (kind, Totals::default()));
            place
        });
        kinds[place].1.record(measured, now_us);
    }

    /// Adds sums.
    pub fn add(&self, other: &[(usize, Totals)]) {
        let mut kinds = self.0.lock();
        for (kind, totals) in other {
            match kinds.binary_search_by_key(kind, |(known, _)| *known) {
                Ok(place) => _ = kinds[place].1.merge(totals),
                Err(place) => kinds.insert(place, (*kind, totals.clone())),
            }
        }
    }

    /// Returns the sums by kind.
    pub fn list(&self) -> Vec<(usize, Totals)> {
        self.0.lock().clone()
    }

    /// Removes and returns the sums.
    pub fn take(&self) -> Vec<(usize, Totals)> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Measure;

    #[test]
    fn sums_are_kept_by_kind() {
        let (session, account) = (SessionSums::default(), SessionSums::default());
        let mut measured = Measured::default();
        measured.add(Measure::Calls, 1);
        measured.add(Measure::RowsSent, 3);
        for kind in [7, 2, 7] {
            session.record(kind, &measured, 5);
        }
        account.add(&session.list());
        account.add(&session.take());
        let sent = |sums: &SessionSums| -> Vec<(usize, u64)> {
            sums.list().iter().map(|(kind, totals)| (*kind, totals.sums.get(Measure::RowsSent))).collect()
        };
        assert_eq!(sent(&account), [(2, 6), (7, 12)]);
        assert_eq!(sent(&session), []);
    }
}
