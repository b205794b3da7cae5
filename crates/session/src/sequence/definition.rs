//! A sequence's definition as stored in its row ([`Definition`]), and its next numbers.
//!
//! # Numbers
//! The row's first column is the first number that is *not reserved*. Numbers below it may have been handed
//! out; numbers from it on have not. A session therefore raises the column, by `cache` numbers at a time,
//! before it hands out numbers. After a crash, numbers that were reserved but not handed out are lost.

use cohort_sql::ast::SequenceOptions;
use cohort_types::Value;

/// Numbers reserved at a time if there is no CACHE clause.
const CACHE: i64 = 1000;

/// The columns of a sequence's row, which determine its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// `next_not_cached_value`
    pub reserved_until: i64,
    pub min: i64,
    pub max: i64,
    pub start: i64,
    /// As written; 0 means `auto_increment_increment`.
    pub increment: i64,
    pub cache: i64,
    pub cycle: bool,
    /// `cycle_count`
    pub round: i64,
}

/// The outcome of taking a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A number that was already reserved.
    Reserved(i64),
    /// A number that is reserved once the row stores the changed definition.
    ToReserve(i64),
    /// The sequence is exhausted: error 4084.
    RunOut,
}

/// The outcome of SETVAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// The sequence is already past the number: NULL.
    Passed,
    /// Done, in memory only.
    Done,
    /// Done once the row stores the changed definition.
    ToReserve,
    /// The sequence has no CYCLE, so there is no next round: error 4084.
    RunOut,
}

/// A definition and the next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub(crate) definition: Definition,
    next: i64,
    step: i64,
}

impl Definition {
    /// Returns the definition for CREATE SEQUENCE, or `None` if it is invalid (error 4085).
    pub fn new(options: &SequenceOptions, default_step: i64) -> Option<Definition> {
        let increment = options.increment.unwrap_or(1);
        let step = if increment == 0 { default_step } else { increment };
        let (min, max) = bounds(options, step);
        let start = options.start.unwrap_or(if step < 0 { max } else { min });
        let cache = options.cache.unwrap_or(CACHE);
        let cycle = options.cycle.unwrap_or(false);
        let made = Definition { reserved_until: start, min, max, start, increment, cache, cycle, round: 0 };
        made.is_valid(step).then_some(made)
    }

    /// Returns the definition after ALTER SEQUENCE, which continues with the first number that is not
    /// reserved. Returns `None` if it is invalid (error 4085).
    pub fn altered(&self, options: &SequenceOptions, default_step: i64) -> Option<Definition> {
        let increment = options.increment.unwrap_or(self.increment);
        let step = if increment == 0 { default_step } else { increment };
        let (default_min, default_max) = bounds(&SequenceOptions::default(), step);
        let start = options.start.unwrap_or(self.start);
        let reserved_until = match options.restart {
            None => self.reserved_until,
            Some(None) => start,
            Some(Some(number)) => number,
        };
        let made = Definition {
            reserved_until,
            min: options.min.map_or(self.min, |min| min.unwrap_or(default_min)),
            max: options.max.map_or(self.max, |max| max.unwrap_or(default_max)),
            start,
            increment,
            cache: options.cache.unwrap_or(self.cache),
            cycle: options.cycle.unwrap_or(self.cycle),
            round: 0,
        };
        made.is_valid(step).then_some(made)
    }

    fn is_valid(&self, step: i64) -> bool {
        let width = step.saturating_abs().max(1);
        let in_bounds = match step > 0 {
            true => self.reserved_until >= self.min,
            false => self.reserved_until <= self.max,
        };
        self.max >= self.start
            && self.start >= self.min
            && self.max > self.min
            && self.max != i64::MAX
            && self.min != i64::MIN
            && self.cache >= 0
            && self.cache < (i64::MAX - width) / width
            && in_bounds
    }

    /// Returns the columns of the row.
    pub fn to_row(self) -> Vec<Value> {
        vec![
            Value::Int(self.reserved_until),
            Value::Int(self.min),
            Value::Int(self.max),
            Value::Int(self.start),
            Value::Int(self.increment),
            Value::UInt(self.cache as u64),
            Value::UInt(self.cycle.into()),
            Value::Int(self.round),
        ]
    }

    /// Reads the definition from a row. Returns `None` if the row is not valid.
    pub(crate) fn of_row(row: &[Value]) -> Option<Definition> {
        let number = |n: usize| match row.get(n)? {
            Value::Int(v) => Some(*v),
            Value::UInt(v) => i64::try_from(*v).ok(),
            _ => None,
        };
        Some(Definition {
            reserved_until: number(0)?,
            min: number(1)?,
            max: number(2)?,
            start: number(3)?,
            increment: number(4)?,
            cache: number(5)?,
            cycle: number(6)? != 0,
            round: number(7)?,
        })
    }
}

/// Returns MINVALUE and MAXVALUE, or their defaults.
fn bounds(options: &SequenceOptions, step: i64) -> (i64, i64) {
    let (min, max) = if step < 0 { (i64::MIN + 1, -1) } else { (1, i64::MAX - 1) };
    (options.min.flatten().unwrap_or(min), options.max.flatten().unwrap_or(max))
}

impl Numbers {
    /// Creates the state after reading the row: no number is left of those reserved earlier.
    pub(crate) fn new(definition: Definition, default_step: i64) -> Numbers {
        let step = if definition.increment == 0 { default_step.max(1) } else { definition.increment };
        Numbers { definition, next: definition.reserved_until, step }
    }

    /// Returns the next number.
    #[cfg(test)]
    pub(crate) fn upcoming(&self) -> i64 {
        self.next
    }

    fn following(&self, number: i64) -> i64 {
        let Definition { min, max, .. } = self.definition;
        let following = i128::from(number) + i128::from(self.step);
        match self.step > 0 {
            true if following > i128::from(max) => max + 1,
            false if following < i128::from(min) => min - 1,
            _ => following as i64,
        }
    }

    /// Returns whether a number comes before `end`, in the direction of the sequence.
    fn is_before(&self, number: i64, end: i64) -> bool {
        if self.step > 0 { number < end } else { number > end }
    }

    /// Takes the next number.
    pub(crate) fn take(&mut self) -> Next {
        for _ in 0..2 {
            let number = self.next;
            self.next = self.following(number);
            if self.is_before(number, self.definition.reserved_until) {
                return Next::Reserved(number);
            }
            let definition = &mut self.definition;
            let room = i128::from(self.step) * i128::from(definition.cache.max(1));
            let until = i128::from(definition.reserved_until) + room;
            let (end, is_out) = match self.step > 0 {
                true => (until.min(i128::from(definition.max) + 1), number > definition.max),
                false => (until.max(i128::from(definition.min) - 1), number < definition.min),
            };
            if !is_out {
                definition.reserved_until = end as i64;
                return Next::ToReserve(number);
            }
            if !definition.cycle {
                self.next = number;
                return Next::RunOut;
            }
            definition.round = definition.round.wrapping_add(1);
            definition.reserved_until = if self.step > 0 { definition.min } else { definition.max };
            self.next = definition.reserved_until;
        }
        Next::RunOut
    }

    /// Sets the next number, for SETVAL.
    pub(crate) fn set(&mut self, number: i64, is_used: bool, round: i64) -> Set {
        let number = if is_used { self.following(number) } else { number };
        let is_later = self.definition.round < round;
        if self.definition.round > round {
            return Set::Passed;
        }
        if self.definition.round == round {
            if self.is_before(number, self.next) {
                return Set::Passed;
            }
            if number == self.next {
                return Set::Done;
            }
        } else if !self.definition.cycle {
            return Set::RunOut;
        } else {
            self.definition.round = round;
        }
        self.next = number;
        if !is_later && !self.is_before(self.definition.reserved_until, number) {
            return Set::Done;
        }
        self.definition.reserved_until = number;
        Set::ToReserve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(options: SequenceOptions) -> Numbers {
        Numbers::new(Definition::new(&options, 1).expect("valid"), 1)
    }

    fn take(numbers: &mut Numbers, count: usize) -> Vec<i64> {
        let one = |_| match numbers.take() {
            Next::Reserved(number) | Next::ToReserve(number) => Some(number),
            Next::RunOut => None,
        };
        (0..count).map_while(one).collect()
    }

    #[test]
    fn numbers_are_reserved_before_they_are_given() {
        let mut given = numbers(SequenceOptions { cache: Some(3), ..Default::default() });
        for round in 0..20 {
            for place in 0..3 {
                let until = given.definition.reserved_until;
                let number = 3 * round + place + 1;
                let expected = if place == 0 { Next::ToReserve(number) } else { Next::Reserved(number) };
                assert_eq!(given.take(), expected);
                assert_eq!(given.definition.reserved_until, if place == 0 { until + 3 } else { until });
                // The state that a server reads after a crash at this point.
                assert!(Numbers::new(given.definition, 1).upcoming() > number);
            }
        }
    }

    #[test]
    fn both_ways_end_at_their_bounds_or_begin_again() {
        let up = SequenceOptions { max: Some(Some(3)), cache: Some(2), ..Default::default() };
        assert_eq!(take(&mut numbers(up), 9), [1, 2, 3]);
        let cycle = SequenceOptions { cycle: Some(true), ..up };
        assert_eq!(take(&mut numbers(cycle), 8), [1, 2, 3, 1, 2, 3, 1, 2]);
        let down = SequenceOptions { increment: Some(-2), min: Some(Some(-5)), ..Default::default() };
        assert_eq!(take(&mut numbers(down), 9), [-1, -3, -5]);
        let wide = SequenceOptions {
            min: Some(Some(i64::MIN + 1)),
            start: Some(i64::MAX - 3),
            increment: Some(2),
            cache: Some(0),
            ..Default::default()
        };
        assert_eq!(take(&mut numbers(wide), 9), [i64::MAX - 3, i64::MAX - 1]);
    }

    #[test]
    fn setval_goes_forward_only() {
        let mut given = numbers(SequenceOptions::default());
        assert_eq!(take(&mut given, 2), [1, 2]);
        assert_eq!(given.set(2, true, 0), Set::Done);
        assert_eq!(given.set(1, true, 0), Set::Passed);
        assert_eq!(given.set(500, false, 0), Set::Done);
        assert_eq!(given.set(5000, true, 0), Set::ToReserve);
        assert_eq!((given.upcoming(), given.definition.reserved_until), (5001, 5001));
        assert_eq!(given.set(1, true, 1), Set::RunOut);
    }

    #[test]
    fn a_row_says_all() {
        let given = numbers(SequenceOptions { cycle: Some(true), ..Default::default() }).definition;
        assert_eq!(Definition::of_row(&given.to_row()), Some(given));
    }
}
