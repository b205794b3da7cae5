//! Generates the values of an AUTO_INCREMENT column that ALTER TABLE fills ([`Counting`]).
//!
//! The values depend on `auto_increment_increment` and `auto_increment_offset`, which are part of the
//! statement's event, so that a replica generates the same values. A copy counts as INSERT does. When MariaDB
//! rebuilds a table in place, it uses another rule, whose first value is one step further; its replicas do so
//! unless a copy is requested.

use cohort_table::Series;
use cohort_types::{SqlError, SqlResult};

/// The rule for the sequence of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Copy,
    InPlace,
}

/// Generates the values in order.
#[derive(Debug)]
pub(super) struct Counting {
    series: Series,
    rule: Rule,
    /// The largest value of the column's type.
    max: u64,
    next: u64,
    /// The largest value has been used.
    is_over: bool,
}

impl Counting {
    /// Starts at `start`, the table's AUTO_INCREMENT; 0 means none.
    pub(super) fn new(series: Series, rule: Rule, start: u64, max: u64) -> Counting {
        let series = Series { increment: series.increment.max(1), offset: series.offset.max(1) };
        let counting = Counting { series, rule, max, next: start, is_over: false };
        let next = match rule {
            Rule::Copy => start.max(1),
            Rule::InPlace if series.increment > 1 || series.offset > 1 => counting.in_place_after(start),
            Rule::InPlace => start.max(1),
        };
        Counting { next, ..counting }
    }

    /// Returns the next value, or error 1467 if there is none.
    pub(super) fn take(&mut self) -> SqlResult<u64> {
        let value = match self.rule {
            Rule::Copy => self.series.at_or_above(self.next),
            Rule::InPlace => Some(self.next),
        };
        let value = value.filter(|value| !self.is_over && *value <= self.max);
        let value = value.ok_or_else(SqlError::autoinc_read_failed)?;
        self.is_over = value == self.max;
        self.next = match self.rule {
            Rule::Copy => value.saturating_add(1),
            Rule::InPlace => self.in_place_after(value),
        };
        Ok(value)
    }

    /// Skips past the value that a row already has.
    pub(super) fn pass(&mut self, value: u64) {
        self.next = self.next.max(value.saturating_add(1));
        self.is_over |= value >= self.max;
    }

    /// Returns the value that follows another by InnoDB's rule, or the largest value if there is none.
    fn in_place_after(&self, current: u64) -> u64 {
        let (step, max) = (self.series.increment, self.max);
        let offset = if self.series.offset > step { 0 } else { self.series.offset };
        if step >= max || current >= max || max.saturating_sub(offset) <= offset || max - current <= step {
            return max;
        }
        let steps = current.abs_diff(offset) / step;
        let next =
            steps.checked_mul(step).and_then(|n| n.checked_add(step)).and_then(|n| n.checked_add(offset));
        next.map_or(max, |next| next.min(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_three(rule: Rule, increment: u64, offset: u64, start: u64) -> Vec<u64> {
        let mut counting = Counting::new(Series { increment, offset }, rule, start, i32::MAX as u64);
        (0..3).map(|_| counting.take().expect("room")).collect()
    }

    #[test]
    fn values_are_those_of_mariadb() {
        use Rule::{Copy, InPlace};
        for (rule, increment, offset, start, values) in [
            (InPlace, 1, 1, 0, [1, 2, 3]),
            (InPlace, 1, 1, 20, [20, 21, 22]),
            (InPlace, 5, 1, 0, [6, 11, 16]),
            (InPlace, 5, 1, 20, [21, 26, 31]),
            (InPlace, 5, 3, 0, [8, 13, 18]),
            (InPlace, 5, 3, 20, [23, 28, 33]),
            (InPlace, 2, 6, 0, [2, 4, 6]),
            (InPlace, 2, 6, 20, [22, 24, 26]),
            (InPlace, 10, 10, 0, [30, 40, 50]),
            (InPlace, 3, 7, 0, [3, 6, 9]),
            (InPlace, 1, 5, 20, [21, 22, 23]),
            (Copy, 1, 1, 0, [1, 2, 3]),
            (Copy, 5, 1, 0, [1, 6, 11]),
            (Copy, 5, 3, 0, [3, 8, 13]),
            (Copy, 5, 3, 20, [23, 28, 33]),
            (Copy, 2, 6, 0, [2, 4, 6]),
            (Copy, 10, 10, 20, [20, 30, 40]),
        ] {
            assert_eq!(
                first_three(rule, increment, offset, start),
                values,
                "{rule:?} {increment} {offset} {start}"
            );
        }
    }

    #[test]
    fn a_value_that_is_there_is_counted_on_from() {
        let mut counting = Counting::new(Series { increment: 5, offset: 1 }, Rule::Copy, 0, 127);
        counting.pass(7);
        assert_eq!(counting.take(), Ok(11));
        counting.pass(3);
        assert_eq!(counting.take(), Ok(16));
        counting.pass(127);
        assert!(counting.take().is_err());
    }

    #[test]
    fn the_type_s_largest_value_is_given_once() {
        for rule in [Rule::Copy, Rule::InPlace] {
            let mut counting = Counting::new(Series { increment: 1, offset: 1 }, rule, 126, 127);
            assert_eq!(counting.take(), Ok(126));
            assert_eq!(counting.take(), Ok(127));
            assert!(counting.take().is_err(), "{rule:?}");
        }
    }
}
