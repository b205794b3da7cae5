//! [`Program`]: a compiled body.

use std::ops::Range;
use std::sync::OnceLock;

use cohort_plan::Parameter;
use cohort_sql::ast::{
    AfterHandler, Code, Expr, ObjectName, ParameterMode, SignalItem, Statement, Target, TriggerEvent,
    TriggerTiming, Variable, VariableType,
};
use cohort_types::{RoutineKind, SqlError, SqlResult};

use crate::named::Named;

/// The kind of a program, which decides what its body may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    Procedure,
    Function,
    AggregateFunction,
    Trigger(TriggerTiming, TriggerEvent),
    Event,
    /// A compound statement outside of programs.
    Compound,
}

impl ProgramKind {
    /// Returns the kind of a routine.
    pub fn of_routine(kind: RoutineKind, aggregate: bool) -> ProgramKind {
        match kind {
            RoutineKind::Procedure => ProgramKind::Procedure,
            RoutineKind::Function if aggregate => ProgramKind::AggregateFunction,
            RoutineKind::Function => ProgramKind::Function,
        }
    }

    /// Returns whether the program runs inside a statement, so that it can neither commit nor return rows.
    pub fn runs_inside(self) -> bool {
        matches!(self, ProgramKind::Function | ProgramKind::AggregateFunction | ProgramKind::Trigger(..))
    }

    /// Returns the word for the message that rows cannot be returned.
    pub fn place(self) -> &'static str {
        match self {
            ProgramKind::Trigger(..) => "trigger",
            _ => "function",
        }
    }

    /// Returns the word for error messages.
    pub fn word(self) -> &'static str {
        match self {
            ProgramKind::Procedure | ProgramKind::Compound => "PROCEDURE",
            ProgramKind::Function | ProgramKind::AggregateFunction => "FUNCTION",
            ProgramKind::Trigger(..) => "TRIGGER",
            ProgramKind::Event => "EVENT",
        }
    }
}

/// Index of an instruction.
pub type Pc = u32;
/// Index into [`Program::scalars`].
pub type ScalarId = u32;
/// Index into [`Program::statements`].
pub type StatementId = u32;
/// Index into [`Program::cursors`].
pub type CursorId = u32;

/// A compiled body. It depends on neither catalog nor settings.
#[derive(Debug)]
pub struct Program {
    pub kind: ProgramKind,
    /// Name for messages about values, without the schema.
    pub name: String,
    /// The schema of a routine, trigger or event.
    pub schema: Option<String>,
    /// The line of the definition at which the body begins.
    pub first_line: usize,
    /// The parameters have the first slots.
    pub parameters: Vec<(ParameterMode, String)>,
    pub returns: Option<VariableType>,
    /// The declarations of the variables, by slot.
    pub slots: Vec<Slot>,
    pub code: Vec<Instruction>,
    /// For each instruction, the offset of the end of its statement in the body.
    pub positions: Vec<u32>,
    /// For each instruction, the offset at which its statement, condition or expression begins in the body.
    pub(crate) starts: Vec<u32>,
    pub scalars: Vec<Code<Expr>>,
    pub statements: Vec<Code<Statement>>,
    pub cursors: Vec<Cursor>,
    pub blocks: Vec<Block>,
    /// The text that the ranges refer to.
    pub body: Box<str>,
    pub(crate) named: OnceLock<Named>,
    pub(crate) lines: OnceLock<Lines>,
}

/// The offset of an instruction that begins on no known line.
pub(crate) const NO_OFFSET: u32 = u32::MAX;

/// An instruction that counts for no line.
pub(crate) const NO_LINE: u32 = u32::MAX;

/// The lines of a program on which statements begin.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Numbers in the text of SHOW CREATE, in order.
    pub numbers: Box<[u32]>,
    /// For each instruction, the position of its line, or [`NO_LINE`].
    pub of: Box<[u32]>,
}

impl Lines {
    fn of(program: &Program) -> Lines {
        let line_at = program.line_finder();
        let line = |pc: usize| {
            let offset = program.starts[pc];
            let counts = offset != NO_OFFSET && is_counted(program, &program.code[pc]);
            counts.then(|| line_at(offset as usize) as u32)
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

impl Program {
    /// Returns whether the program has OUT or INOUT parameters.
    pub fn has_out(&self) -> bool {
        self.parameters.iter().any(|(mode, _)| mode.is_out())
    }

    /// Returns the parameters with their declared types.
    pub fn declared_parameters(&self) -> Vec<Parameter> {
        let declared = |slot: &Slot| match &slot.of {
            SlotType::Declared(VariableType::Declared(declared)) => Some(declared.clone()),
            _ => None,
        };
        let slots = self.slots.iter().take(self.parameters.len());
        slots.map(|slot| Parameter { name: slot.name.clone(), declared: declared(slot) }).collect()
    }

    /// Returns the tables and routines that the body names.
    pub fn named(&self) -> &Named {
        self.named.get_or_init(|| {
            let called = self.code.iter().filter_map(|instruction| match instruction {
                Instruction::Call { procedure, .. } => Some(procedure),
                _ => None,
            });
            Named::in_body((&self.statements, &self.scalars), called)
        })
    }

    /// Returns the lines on which its statements begin.
    pub(crate) fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Lines::of(self))
    }

    /// Returns the line of the definition, as SHOW CREATE shows it, on which an offset of the body is.
    pub fn line_at(&self, offset: usize) -> usize {
        self.first_line + self.body[..offset].matches('\n').count()
    }

    /// Returns [`Program::line_at`] for many offsets.
    pub fn line_finder(&self) -> impl Fn(usize) -> usize {
        let ends: Vec<usize> = self.body.match_indices('\n').map(|(end, _)| end).collect();
        let first = self.first_line;
        move |offset| first + ends.partition_point(|end| *end < offset)
    }

    /// Returns the statements that the program runs. The queries of its cursors are not among them: it reads
    /// their rows by itself.
    pub fn run_statements(&self) -> impl Iterator<Item = &Code<Statement>> {
        let is_cursor = |id: usize| self.cursors.iter().any(|cursor| cursor.query as usize == id);
        let run = self.statements.iter().enumerate().filter(move |(id, _)| !is_cursor(*id));
        run.map(|(_, code)| code)
    }

    /// Returns the variables that the program assigns to by name.
    pub fn assigned(&self) -> impl Iterator<Item = &Variable> {
        let targets = self.code.iter().flat_map(|instruction| match instruction {
            Instruction::Set { to, .. } => vec![to],
            Instruction::Fetch { into, .. } => into.iter().collect(),
            Instruction::Call { targets, .. } => targets.iter().flatten().filter_map(local).collect(),
            _ => Vec::new(),
        });
        let queries = self.statements.iter().filter_map(|code| match &code.of {
            Statement::Query(query) => Some(query.into.iter().filter_map(local)),
            _ => None,
        });
        targets.chain(queries.flatten())
    }

    /// Checks the names of OLD and NEW in a trigger: error 1054.
    pub fn check_columns(&self, is_column: impl Fn(&str) -> bool) -> SqlResult<()> {
        let used = self.scalars.iter().flat_map(|code| &code.uses);
        let used = used.chain(self.statements.iter().flat_map(|code| &code.uses)).map(|used| &used.of);
        for variable in used.chain(self.assigned()) {
            match variable {
                Variable::Old(name) if !is_column(name) => return Err(SqlError::unknown_column(name, "OLD")),
                Variable::New(name) if !is_column(name) => return Err(SqlError::unknown_column(name, "NEW")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns whether the types of variables refer to tables or queries.
    pub fn depends_on_catalog(&self) -> bool {
        fn refers(of: &VariableType) -> bool {
            match of {
                VariableType::Declared(_) | VariableType::TypeOfVariable(_) => false,
                VariableType::TypeOf(_) | VariableType::RowTypeOf(_) => true,
                VariableType::Row(fields) => fields.iter().any(|(_, of)| refers(of)),
            }
        }
        let refers_to = |slot: &Slot| match &slot.of {
            SlotType::Declared(of) => refers(of),
            SlotType::Integer => false,
            SlotType::OfScalar(_) | SlotType::RowOfCursor(_) => true,
        };
        self.slots.iter().any(refers_to) || self.returns.as_ref().is_some_and(refers)
    }

    /// Returns the name for the note about the place of an error.
    pub fn shown_name(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => "anonymous block".to_owned(),
        }
    }
}

fn local(target: &Target) -> Option<&Variable> {
    match target {
        Target::Local(variable) => Some(variable),
        Target::User(_) => None,
    }
}

/// The declaration of a variable.
#[derive(Clone, Debug)]
pub struct Slot {
    pub name: String,
    pub of: SlotType,
    pub default: Option<ScalarId>,
}

/// The type of a variable.
#[derive(Clone, Debug)]
pub enum SlotType {
    Declared(VariableType),
    /// As the value of an expression: the operand of CASE.
    OfScalar(ScalarId),
    /// An integer: the variable of FOR over numbers, and its limit.
    Integer,
    /// A row of a cursor.
    RowOfCursor(CursorId),
}

/// A declared cursor, or the query of a FOR loop.
#[derive(Debug)]
pub struct Cursor {
    pub name: String,
    /// The slots of its parameters.
    pub parameters: Vec<u32>,
    pub query: StatementId,
}

/// The handlers of a block.
#[derive(Debug, Default)]
pub struct Block {
    /// The instructions of the declarations before the handlers. Empty without handlers.
    pub declared: Range<Pc>,
    pub handlers: Vec<Handler>,
    /// Cursors that the block declares. They are closed when it ends.
    pub cursors: Vec<CursorId>,
    /// The instruction after the block.
    pub end: Pc,
}

/// A handler.
#[derive(Debug)]
pub struct Handler {
    pub conditions: Vec<HandledBy>,
    pub action: AfterHandler,
    pub start: Pc,
}

/// A condition of a handler, by decreasing precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandledBy {
    Number(u16),
    Sqlstate(String),
    Warning,
    NotFound,
    Exception,
}

/// An instruction.
#[derive(Debug)]
pub enum Instruction {
    Set {
        to: Variable,
        value: ScalarId,
    },
    /// Keeps CASE's operand. `after` is the instruction after END CASE.
    Operand {
        slot: u32,
        value: ScalarId,
        after: Pc,
    },
    /// Sets a variable to its default.
    Declare {
        slot: u32,
    },
    Jump(Pc),
    /// Jumps if the condition is false or NULL. After a CONTINUE handler for an error in the condition, the
    /// program goes on at `after`.
    JumpUnless {
        condition: ScalarId,
        to: Pc,
        after: Pc,
    },
    CaseNotFound,
    Statement(StatementId),
    /// CALL. The targets receive the values of OUT and INOUT parameters.
    Call {
        procedure: ObjectName,
        args: Vec<ScalarId>,
        targets: Vec<Option<Target>>,
    },
    EnterBlock(u32),
    /// Leaves the innermost blocks.
    LeaveBlocks(u32),
    /// Ends the running handler.
    EndHandler,
    Open {
        cursor: CursorId,
        args: Vec<ScalarId>,
    },
    /// Reads a row into a row variable, and jumps after the last one: FOR over a cursor.
    FetchOrJump {
        cursor: CursorId,
        into: u32,
        to: Pc,
    },
    Fetch {
        cursor: CursorId,
        into: Vec<Variable>,
    },
    Close {
        cursor: CursorId,
    },
    FetchGroup,
    Return(ScalarId),
    Signal(Raised),
    Resignal {
        sqlstate: Option<String>,
        items: Vec<(SignalItem, ScalarId)>,
    },
    End,
}

/// The condition of SIGNAL.
#[derive(Debug)]
pub struct Raised {
    pub sqlstate: String,
    pub items: Vec<(SignalItem, ScalarId)>,
}
