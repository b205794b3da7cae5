//! Interruption of long loops.
//!
//! Clients determine how long many loops run: over rows, over the bytes of a value, over the plans of a
//! statement. Each such loop reports its rounds to an [`Interrupt`], so that KILL, `max_statement_time` and
//! the shutdown of the server can stop it. Counting is cheap; the flag and the clock are checked once in many
//! rounds.

use crate::{SqlResult, Value};

/// Bytes of a text that count as one step.
const BYTES_OF_A_STEP: usize = 256;

/// A counter of work done, which decides whether the work may continue.
pub trait Interrupt {
    /// Counts rounds of a loop. One round is a few hundred nanoseconds of work at most. Fails with the
    /// client's error if the statement was killed or has reached its time limit.
    fn steps(&self, rounds: u32) -> SqlResult<()>;

    /// Counts one round.
    fn step(&self) -> SqlResult<()> {
        self.steps(1)
    }
}

/// Counts values by the bytes read or produced. A short text costs one comparison of its length and no call.
pub trait CountBytes: Interrupt {
    /// Counts the bytes of a text that is read or produced. A text shorter than one step counts as nothing.
    #[inline]
    fn count_bytes(&self, bytes: usize) -> SqlResult<()> {
        match bytes / BYTES_OF_A_STEP {
            0 => Ok(()),
            steps => self.steps(u32::try_from(steps).unwrap_or(u32::MAX)),
        }
    }

    /// Counts the bytes of a value that is read or produced. Only texts count.
    #[inline]
    fn count_value(&self, value: &Value) -> SqlResult<()> {
        match value {
            Value::Str(text) => self.count_bytes(text.bytes.len()),
            _ => Ok(()),
        }
    }

    /// Counts a row and the bytes of its values.
    #[inline]
    fn count_row(&self, row: &[Value]) -> SqlResult<()> {
        self.step()?;
        row.iter().try_for_each(|value| self.count_value(value))
    }
}

impl<I: Interrupt + ?Sized> CountBytes for I {}

/// An [`Interrupt`] that never stops, for work that is short for every input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uninterrupted;

impl Interrupt for Uninterrupted {
    fn steps(&self, _: u32) -> SqlResult<()> {
        Ok(())
    }
}
