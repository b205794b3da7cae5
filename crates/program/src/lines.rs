//! Executions and time of the lines of programs, while `cohort_routine_lines` is ON.
//!
//! A line counts each statement, condition and default of a declaration that begins on it. The time of an
//! execution ends when the next one begins in the same activation, so it includes the programs that the
//! statement calls. An activation adds its counts to the server's statistics when it ends, however it ends.

use cohort_config::VarId;
use cohort_observe::{LineCount, ProgramName};
use cohort_session::SessionState;
use cohort_sql::ast::Variable;

use crate::program::{Instruction, Pc, Program, SlotType};
use crate::typed_code::Observer;

/// The offset of an instruction that begins on no known line.
pub(crate) const NO_OFFSET: u32 = u32::MAX;

/// An instruction that counts for no line.
const NO_LINE: u32 = u32::MAX;

/// The lines of a program on which statements begin.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Numbers in the text of SHOW CREATE, in order.
    numbers: Box<[u32]>,
    /// For each instruction, the position of its line, or [`NO_LINE`].
    of: Box<[u32]>,
}

impl Lines {
    pub fn of(program: &Program) -> Lines {
        let line = |pc: usize| {
            let offset = program.starts[pc];
            let counts = offset != NO_OFFSET && is_counted(program, &program.code[pc]);
            counts.then(|| program.line_at(offset as usize) as u32)
        };
        let of: Vec<Option<u32>> = (0..program.code.len()).map(line).collect();
        let mut numbers: Vec<u32> = of.iter().flatten().copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let place = |line: Option<u32>| {
            line.and_then(|line| numbers.binary_search(&line).ok()).map_or(NO_LINE, |place| place as u32)
        };
        Lines { of: of.into_iter().map(place).collect(), numbers: numbers.into() }
    }
}

/// Returns whether an instruction is a statement or a condition of the body.
fn is_counted(program: &Program, instruction: &Instruction) -> bool {
    match instruction {
        // The variable of FOR over numbers, and its limit.
        Instruction::Set { to: Variable::Slot(slot), .. } => {
            !matches!(program.slots[*slot as usize].of, SlotType::Integer)
        }
        Instruction::Jump(_)
        | Instruction::EnterBlock(_)
        | Instruction::LeaveBlocks(_)
        | Instruction::EndHandler
        | Instruction::End => false,
        _ => true,
    }
}

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
    pub fn end(mut self: Box<Self>, session: &SessionState) {
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
