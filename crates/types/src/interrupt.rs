//! Whether a long piece of work is still wanted.
//!
//! A client decides how long many loops run: over rows, over the bytes of a value, over the plans of a
//! statement. Each of them reports its rounds to an [`Interrupt`], so that KILL, `max_statement_time` and the
//! end of the server stop it. Counting is cheap; the flag and the clock are read once in many rounds.

use crate::{SqlResult, Value};

/// Bytes of a text that are read or made in one step.
const BYTES_OF_A_STEP: usize = 256;

/// Told how far a piece of work has come; decides whether it goes on.
pub trait Interrupt {
    /// Counts rounds of a loop, each some hundred nanoseconds of work at most. Fails with the client's error
    /// when the statement was killed or its time is up.
    fn steps(&self, rounds: u32) -> SqlResult<()>;

    /// Counts one round.
    fn step(&self) -> SqlResult<()> {
        self.steps(1)
    }
}

/// Counts what is read or made by its length. A short text costs a look at its length and no call, whoever is
/// told.
pub trait CountBytes: Interrupt {
    /// Counts the bytes of a text that is read or made: of a short one none.
    #[inline]
    fn count_bytes(&self, bytes: usize) -> SqlResult<()> {
        match bytes / BYTES_OF_A_STEP {
            0 => Ok(()),
            steps => self.steps(u32::try_from(steps).unwrap_or(u32::MAX)),
        }
    }

    /// Counts the bytes of a value that is read or made: only texts are long.
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

/// For work that is short whatever it gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uninterrupted;

impl Interrupt for Uninterrupted {
    fn steps(&self, _: u32) -> SqlResult<()> {
        Ok(())
    }
}
