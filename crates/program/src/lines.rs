//! Executions and time of the lines of programs, while `cohort_routine_lines` is ON.
//!
//! A line counts each statement, condition and default of a declaration that begins on it. The time of an
//! execution ends when the next one begins in the same activation, so it includes the programs that the
//! statement calls. An activation adds its counts to the server's statistics when it ends, however it ends.

use cohort_config::VarId;
use cohort_observe::{LineCount, ProgramName};
use cohort_session::SessionState;

use crate::program::{Lines, NO_LINE, Pc, Program};
use crate::typed_code::Observer;

/// Returns whether the lines of programs are counted.
pub fn counts_lines(session: &SessionState) -> bool {
    session.db.globals.flag(VarId::CohortRoutineLines)
}

/// The counts of an activation.
pub(crate) struct LineCounts<'b> {
    program: &'b Program,
    lines: &'b Lines,
    counts: Box<[LineCount]>,
    clock: cohort_vfs::SharedClock,
    /// The line that is executed, and the time at which it began.
    current: Option<(u32, u64)>,
}

impl<'b> LineCounts<'b> {
    /// Begins an activation. `None` if lines are not counted, or for a compound statement.
    pub fn begin(program: &'b Program, session: &SessionState) -> Option<Box<LineCounts<'b>>> {
        if !counts_lines(session) || program.schema.is_none() {
            return None;
        }
        let lines = program.lines();
        let counts = vec![LineCount::default(); lines.numbers.len()].into();
        let clock = session.db.clock.clone();
        Some(Box::new(LineCounts { program, lines, counts, clock, current: None }))
    }

    fn ends_line(&mut self, now_ns: u64) {
        if let Some((line, began_ns)) = self.current.take() {
            self.counts[line as usize].time_ns += now_ns.saturating_sub(began_ns);
        }
    }

    /// Adds the counts to the server's statistics.
    pub fn end(mut self, session: &SessionState) {
        self.ends_line(self.clock.monotonic_ns());
        let Some(schema) = &self.program.schema else { return };
        let name = ProgramName {
            kind: self.program.kind.word(),
            schema: schema.clone(),
            name: self.program.name.clone(),
        };
        session.db.routine_lines.add(name, &self.program.body, &self.lines.numbers, &self.counts);
    }
}

impl Observer for LineCounts<'_> {
    fn executes(&mut self, pc: Pc) {
        let line = self.lines.of[pc as usize];
        if line == NO_LINE {
            return;
        }
        let now_ns = self.clock.monotonic_ns();
        self.ends_line(now_ns);
        self.counts[line as usize].executions += 1;
        self.current = Some((line, now_ns));
    }
}
