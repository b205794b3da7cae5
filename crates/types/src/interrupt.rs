//! Whether a long piece of work is still wanted.
//!
//! A client decides how long many loops run: over rows, over the bytes of a value, over the plans of a
//! statement. Each of them reports its rounds to an [`Interrupt`], so that KILL, `max_statement_time` and the
//! end of the server stop it. Counting is cheap; the flag and the clock are read once in many rounds.

use crate::SqlResult;

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

/// For work that is short whatever it gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uninterrupted;

impl Interrupt for Uninterrupted {
    fn steps(&self, _: u32) -> SqlResult<()> {
        Ok(())
    }
}
