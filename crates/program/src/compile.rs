//! Compilation of a body to a [`Program`].
//!
//! # Blocks
//! A block with handlers or cursors is *entered* ([`Instruction::EnterBlock`]) after its declarations. A jump
//! out of blocks leaves them first. The statements of a handler precede the block's own ones, and are jumped
//! over:
//!
//! ```text
//! declare variables; jump A; handler 1; end handler; handler 2; end handler; A: enter; statements; leave
//! ```
//!
//! # Invariants
//! - The number of entered blocks at an instruction is the same on every path to it.
//! - Every jump that was emitted without a target has one when its statement ends.

use std::ops::Range;
use std::sync::OnceLock;

use cohort_session::{ProgramRule, innermost, traits_of};
use cohort_sql::ast::{
    self, BinaryOp, BodyAssignment, Code, ConditionValue, CursorAction, Declaration, Expr, HandledCondition,
    Literal, LoopKind, SetItem, SignalItem, SignalledCondition, Statement, Step, Target, Variable,
    VariableType, VariableUse,
};
use cohort_types::{SqlError, SqlResult, TypeKind, Value, check_stack};

use crate::program::NO_OFFSET;
use crate::program::{
    Block, Cursor, CursorId, HandledBy, Handler, Instruction, Pc, Program, ProgramKind, Raised, ScalarId,
    Slot, SlotType, StatementId,
};
use crate::scope::{Label, Scope};

/// A target that is not known yet.
const UNKNOWN: Pc = Pc::MAX;

/// Compiles a body. `text` is the text of the body, which its ranges refer to. Fails with the errors that
/// CREATE reports.
pub fn compile(
    kind: ProgramKind,
    name: &str,
    parameters: &[ast::Parameter],
    returns: Option<&VariableType>,
    body: &ast::Body,
    text: &str,
) -> SqlResult<Program> {
    let unset = Slot { name: String::new(), of: SlotType::Integer, default: None };
    let mut compiler = Compiler {
        program: Program {
            kind,
            name: name.to_owned(),
            schema: None,
            first_line: 1,
            parameters: parameters.iter().map(|p| (p.mode, p.name.clone())).collect(),
            returns: returns.cloned(),
            slots: vec![unset; body.slots as usize],
            code: Vec::new(),
            positions: Vec::new(),
            starts: Vec::new(),
            scalars: Vec::new(),
            statements: Vec::new(),
            cursors: Vec::new(),
            blocks: Vec::new(),
            body: text.into(),
            named: OnceLock::new(),
            lines: OnceLock::new(),
        },
        scope: Scope::default(),
        depth: 0,
        returns: false,
        start: 0,
        position: 0,
    };
    for (n, parameter) in parameters.iter().enumerate() {
        compiler.declare(n as u32, &parameter.name, SlotType::Declared(parameter.of.clone()), None);
    }
    compiler.scope.enter();
    compiler.step(&body.step)?;
    compiler.scope.leave();
    compiler.emit(Instruction::End);
    if matches!(kind, ProgramKind::Function | ProgramKind::AggregateFunction) && !compiler.returns {
        return Err(SqlError::no_return(name));
    }
    let fetches = |instruction: &Instruction| matches!(instruction, Instruction::FetchGroup);
    if kind == ProgramKind::AggregateFunction && !compiler.program.code.iter().any(fetches) {
        return Err(SqlError::no_fetch_group());
    }
    debug_assert!(compiler.program.targets_are_known(), "every jump has a target");
    Ok(compiler.program)
}

struct Compiler {
    program: Program,
    scope: Scope,
    /// Number of entered blocks around the current statement.
    depth: u32,
    /// Whether the body has a RETURN.
    returns: bool,
    /// Offset of the start of the current statement, condition or expression in the body.
    start: u32,
    /// Offset of the end of the current statement or condition in the body.
    position: u32,
}

impl Compiler {
    // ---- emission

    fn emit(&mut self, instruction: Instruction) -> Pc {
        self.program.code.push(instruction);
        self.program.positions.push(self.position);
        self.program.starts.push(self.start);
        self.program.code.len() as Pc - 1
    }

    /// Begins a statement, a condition or an expression with this range in the body.
    fn begin(&mut self, range: &Range<usize>) {
        (self.start, self.position) = (range.start as u32, range.end as u32);
    }

    /// Returns the number of the next instruction.
    fn here(&self) -> Pc {
        self.program.code.len() as Pc
    }

    /// Sets the unknown targets of the jump at `at`.
    fn target(&mut self, at: Pc, target: Pc) {
        match &mut self.program.code[at as usize] {
            Instruction::Jump(to)
            | Instruction::FetchOrJump { to, .. }
            | Instruction::Operand { after: to, .. } => *to = target,
            Instruction::JumpUnless { to, after, .. } => {
                for jump in [to, after] {
                    if *jump == UNKNOWN {
                        *jump = target;
                    }
                }
            }
            other => unreachable!("{other:?} does not jump"),
        }
    }

    /// Sets the target of a false condition. The instruction after its statement stays unknown.
    fn target_if_false(&mut self, at: Pc, target: Pc) {
        match &mut self.program.code[at as usize] {
            Instruction::JumpUnless { to, .. } => *to = target,
            other => unreachable!("{other:?} has no condition"),
        }
    }

    fn scalar(&mut self, code: &Code<Expr>) -> ScalarId {
        self.program.scalars.push(code.clone());
        self.program.scalars.len() as ScalarId - 1
    }

    fn statement(&mut self, code: Code<Statement>) -> StatementId {
        self.program.statements.push(code);
        self.program.statements.len() as StatementId - 1
    }

    fn slot(&mut self, of: SlotType) -> u32 {
        self.program.slots.push(Slot { name: String::new(), of, default: None });
        self.program.slots.len() as u32 - 1
    }

    fn declare(&mut self, slot: u32, name: &str, of: SlotType, default: Option<ScalarId>) {
        self.program.slots[slot as usize] = Slot { name: name.to_owned(), of, default };
    }

    /// Adds an operation over variables and constants.
    fn operation(&mut self, op: BinaryOp, slot: u32, right: Operand) -> ScalarId {
        let used = |slot| VariableUse { of: Variable::Slot(slot), range: 0..0 };
        let (right, uses) = match right {
            Operand::Slot(other) => (Expr::Param(1), vec![used(slot), used(other)]),
            Operand::One => (Expr::Literal(Literal::fixed(Value::Int(1))), vec![used(slot)]),
        };
        let of = Expr::Binary { op, left: Box::new(Expr::Param(0)), right: Box::new(right) };
        self.scalar(&Code { of, uses, range: 0..0 })
    }

    // ---- statements

    fn steps(&mut self, steps: &[Step]) -> SqlResult<()> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> SqlResult<()> {
        check_stack()?;
        match step {
            Step::Sql(code) => {
                self.begin(&code.range);
                self.sql(code)
            }
            Step::Block(block) => self.block(block),
            Step::If { arms, otherwise } => self.branches(arms, otherwise.as_deref(), None, None),
            Step::Case { operand: None, arms, otherwise, end } => {
                self.branches(arms, otherwise.as_deref(), None, Some(*end))
            }
            Step::Case { operand: Some(operand), arms, otherwise, end } => {
                self.begin(&operand.range);
                let value = self.scalar(operand);
                let slot = self.slot(SlotType::OfScalar(value));
                let kept = self.emit(Instruction::Operand { slot, value, after: UNKNOWN });
                self.branches(arms, otherwise.as_deref(), Some((slot, kept)), Some(*end))
            }
            Step::Loop { label, kind, steps } => self.repeat(label.as_deref(), kind, steps),
            Step::Leave(label) => {
                let depth = self.depth;
                let at = self.here();
                let Some(found) = self.scope.label(label) else {
                    return Err(SqlError::label_unknown("LEAVE", label));
                };
                let left = depth - found.depth;
                found.leaves.push(at + u32::from(left > 0));
                self.leave_blocks(left);
                self.emit(Instruction::Jump(UNKNOWN));
                Ok(())
            }
            Step::Iterate(label) => {
                let depth = self.depth;
                let at = self.here();
                let found = self.scope.label(label).filter(|label| label.again.is_some());
                let Some(found) = found else {
                    return Err(SqlError::label_unknown("ITERATE", label));
                };
                // The blocks between the loop and here end; that of a FOR loop itself goes on.
                let (left, again) = (depth - found.depth_of_rounds, found.again.unwrap_or(UNKNOWN));
                found.iterates.push(at + u32::from(left > 0));
                self.leave_blocks(left);
                self.emit(Instruction::Jump(again));
                Ok(())
            }
            Step::Return(value) => {
                self.begin(&value.range);
                if !matches!(self.program.kind, ProgramKind::Function | ProgramKind::AggregateFunction) {
                    return Err(SqlError::return_outside_function());
                }
                self.returns = true;
                let value = self.scalar(value);
                self.emit(Instruction::Return(value));
                Ok(())
            }
            Step::Cursor { name, action, end } => {
                let cursor = self.cursor(name)?;
                self.begin(&(*end..*end));
                let instruction = match action {
                    CursorAction::Open(arguments) => {
                        Instruction::Open { cursor, args: self.cursor_arguments(cursor, arguments)? }
                    }
                    CursorAction::Fetch(into) => Instruction::Fetch { cursor, into: into.clone() },
                    CursorAction::Close => Instruction::Close { cursor },
                };
                self.emit(instruction);
                Ok(())
            }
            Step::FetchGroup => match self.program.kind {
                ProgramKind::AggregateFunction => {
                    self.emit(Instruction::FetchGroup);
                    Ok(())
                }
                _ => Err(SqlError::not_an_aggregate_function()),
            },
            Step::Set(items) => items.iter().try_for_each(|item| self.assignment(item)),
        }
    }

    fn leave_blocks(&mut self, count: u32) {
        if count > 0 {
            self.emit(Instruction::LeaveBlocks(count));
        }
    }

    fn assignment(&mut self, item: &BodyAssignment) -> SqlResult<()> {
        match item {
            BodyAssignment::Variable { to, value: Some(value) } => {
                self.begin(&value.range);
                let value = self.scalar(value);
                self.emit(Instruction::Set { to: to.clone(), value });
            }
            BodyAssignment::Variable { to: Variable::Slot(slot), value: None } => {
                self.emit(Instruction::Declare { slot: *slot });
            }
            BodyAssignment::Variable { to, value: None } => {
                let null = Expr::Literal(Literal::fixed(Value::Null));
                let value = self.scalar(&Code { of: null, uses: Vec::new(), range: 0..0 });
                self.emit(Instruction::Set { to: to.clone(), value });
            }
            BodyAssignment::Other(code) => {
                self.begin(&code.range);
                let Code { of, uses, range }: &Code<SetItem> = code;
                // The text of a single assignment is a whole statement with SET.
                let statement = Statement::Set(vec![of.clone()]);
                let code = Code { of: statement, uses: uses.clone(), range: range.clone() };
                self.check_allowed(&code)?;
                let id = self.statement(code);
                self.emit(Instruction::Statement(id));
            }
        }
        Ok(())
    }

    fn block(&mut self, block: &ast::Block) -> SqlResult<()> {
        match &block.label {
            Some(label) => self.enter_label(label, None)?,
            None => self.scope.enter(),
        }
        let mut entered = Block { declared: self.here()..self.here(), ..Block::default() };
        let mut over_handlers = None;
        for declaration in &block.declarations {
            match declaration {
                Declaration::Variables { names, of, default, end } => {
                    self.begin(&(*end..*end));
                    let default = default.as_ref().map(|default| self.scalar(default));
                    let of = self.declared(of);
                    for (name, slot) in names {
                        self.declare(*slot, name, of.clone(), default);
                        self.emit(Instruction::Declare { slot: *slot });
                    }
                }
                Declaration::Condition { name, value } => {
                    if !self.scope.add_condition(name, value.clone()) {
                        return Err(SqlError::duplicate_condition(name));
                    }
                }
                Declaration::Cursor { name, parameters, query } => {
                    let id = self.add_cursor(name, parameters, query)?;
                    if !self.scope.add_cursor(name, id) {
                        return Err(SqlError::duplicate_cursor(name));
                    }
                    entered.cursors.push(id);
                }
                Declaration::Handler { action, conditions, step } => {
                    let conditions = self.handled(conditions)?;
                    let is_known = |by: &HandledBy| {
                        entered.handlers.iter().any(|known: &Handler| known.conditions.contains(by))
                    };
                    if conditions.iter().any(is_known) {
                        return Err(SqlError::duplicate_handler());
                    }
                    if over_handlers.is_none() {
                        over_handlers = Some(self.emit(Instruction::Jump(UNKNOWN)));
                        entered.declared.end = self.here();
                    }
                    let start = self.here();
                    entered.handlers.push(Handler { conditions, action: *action, start });
                    self.scope.enter_handler();
                    let depth = std::mem::take(&mut self.depth);
                    self.step(step)?;
                    self.depth = depth;
                    self.scope.leave();
                    self.emit(Instruction::EndHandler);
                }
            }
        }
        if let Some(jump) = over_handlers {
            let here = self.here();
            self.target(jump, here);
        }
        let is_entered = !entered.handlers.is_empty() || !entered.cursors.is_empty();
        let id = self.program.blocks.len();
        if is_entered {
            self.program.blocks.push(entered);
            self.emit(Instruction::EnterBlock(id as u32));
            self.depth += 1;
        }
        self.steps(&block.steps)?;
        if is_entered {
            self.depth -= 1;
            self.emit(Instruction::LeaveBlocks(1));
            self.program.blocks[id].end = self.here();
        }
        self.leave_scope(UNKNOWN);
        Ok(())
    }

    /// Compiles IF or CASE. `operand` is the slot of CASE's operand, with its instruction. `case_end` is the
    /// offset of END.
    fn branches(
        &mut self,
        arms: &[ast::Arm],
        otherwise: Option<&[Step]>,
        operand: Option<(u32, Pc)>,
        case_end: Option<usize>,
    ) -> SqlResult<()> {
        let (mut ends, mut conditions) = (Vec::new(), Vec::new());
        for arm in arms {
            self.begin(&arm.when.range);
            let condition = match operand {
                Some((slot, _)) => self.equals(slot, &arm.when),
                None => self.scalar(&arm.when),
            };
            let test = self.emit(Instruction::JumpUnless { condition, to: UNKNOWN, after: UNKNOWN });
            conditions.push(test);
            self.steps(&arm.steps)?;
            ends.push(self.emit(Instruction::Jump(UNKNOWN)));
            let next = self.here();
            self.target_if_false(test, next);
        }
        match (otherwise, case_end) {
            (Some(steps), _) => self.steps(steps)?,
            (None, Some(end)) => {
                self.begin(&(end..end));
                self.emit(Instruction::CaseNotFound);
            }
            (None, None) => {}
        }
        let here = self.here();
        for at in ends.into_iter().chain(conditions).chain(operand.map(|(_, kept)| kept)) {
            self.target(at, here);
        }
        Ok(())
    }

    /// Adds the comparison of CASE's operand with a value.
    fn equals(&mut self, slot: u32, when: &Code<Expr>) -> ScalarId {
        let mut uses = when.uses.clone();
        uses.push(VariableUse { of: Variable::Slot(slot), range: 0..0 });
        let left = Box::new(Expr::Param(uses.len() as u32 - 1));
        let of = Expr::Binary { op: BinaryOp::Equal, left, right: Box::new(when.of.clone()) };
        self.scalar(&Code { of, uses, range: when.range.clone() })
    }

    fn repeat(&mut self, label: Option<&str>, kind: &LoopKind, steps: &[Step]) -> SqlResult<()> {
        match kind {
            LoopKind::Endless => {
                let start = self.here();
                self.enter_loop(label, Some(start))?;
                self.steps(steps)?;
                self.emit(Instruction::Jump(start));
                self.leave_scope(start);
            }
            LoopKind::While(condition) => {
                let start = self.here();
                self.enter_loop(label, Some(start))?;
                self.begin(&condition.range);
                let condition = self.scalar(condition);
                let test = self.emit(Instruction::JumpUnless { condition, to: UNKNOWN, after: UNKNOWN });
                self.steps(steps)?;
                self.emit(Instruction::Jump(start));
                let end = self.here();
                self.target(test, end);
                self.leave_scope(start);
            }
            LoopKind::Until(condition) => {
                let start = self.here();
                self.enter_loop(label, Some(start))?;
                self.steps(steps)?;
                self.begin(&condition.range);
                let condition = self.scalar(condition);
                let test = self.emit(Instruction::JumpUnless { condition, to: start, after: UNKNOWN });
                let end = self.here();
                self.target(test, end);
                self.leave_scope(start);
            }
            LoopKind::Numbers { variable, reverse, from, to } => {
                self.begin(&from.range);
                self.program.slots[*variable as usize].of = SlotType::Integer;
                let limit = self.slot(SlotType::Integer);
                let (low, high) = (self.scalar(from), self.scalar(to));
                let (first, last) = if *reverse { (high, low) } else { (low, high) };
                self.emit(Instruction::Set { to: Variable::Slot(*variable), value: first });
                self.emit(Instruction::Set { to: Variable::Slot(limit), value: last });
                let (test, step) = match reverse {
                    false => (BinaryOp::LessEqual, BinaryOp::Add),
                    true => (BinaryOp::GreaterEqual, BinaryOp::Subtract),
                };
                let start = self.here();
                self.enter_loop(label, Some(UNKNOWN))?;
                let condition = self.operation(test, *variable, Operand::Slot(limit));
                let test = self.emit(Instruction::JumpUnless { condition, to: UNKNOWN, after: UNKNOWN });
                self.steps(steps)?;
                let next = self.here();
                let value = self.operation(step, *variable, Operand::One);
                self.emit(Instruction::Set { to: Variable::Slot(*variable), value });
                self.emit(Instruction::Jump(start));
                let end = self.here();
                self.target(test, end);
                self.leave_scope(next);
            }
            LoopKind::Cursor { variable, cursor, arguments } => {
                let id = self.cursor(cursor)?;
                self.start = arguments.first().map_or(NO_OFFSET, |first| first.range.start as u32);
                let args = self.cursor_arguments(id, arguments)?;
                self.rows(label, *variable, id, args, steps)?;
            }
            LoopKind::Query { variable, query } => {
                let id = self.add_cursor("", &[], query)?;
                self.start = query.range.start as u32;
                self.rows(label, *variable, id, Vec::new(), steps)?;
            }
        }
        Ok(())
    }

    /// Compiles FOR over the rows of a cursor. The cursor is closed with an entered block, so that it is
    /// closed however the loop ends.
    fn rows(
        &mut self,
        label: Option<&str>,
        variable: u32,
        cursor: CursorId,
        args: Vec<ScalarId>,
        steps: &[Step],
    ) -> SqlResult<()> {
        self.program.slots[variable as usize].of = SlotType::RowOfCursor(cursor);
        self.emit(Instruction::Open { cursor, args });
        let id = self.program.blocks.len();
        self.program.blocks.push(Block { cursors: vec![cursor], ..Block::default() });
        self.enter_loop(label, Some(UNKNOWN))?;
        self.emit(Instruction::EnterBlock(id as u32));
        self.depth += 1;
        self.scope.begin_rounds(self.depth);
        let start = self.emit(Instruction::FetchOrJump { cursor, into: variable, to: UNKNOWN });
        self.steps(steps)?;
        self.emit(Instruction::Jump(start));
        let end = self.here();
        self.target(start, end);
        self.depth -= 1;
        self.emit(Instruction::LeaveBlocks(1));
        self.program.blocks[id].end = self.here();
        self.leave_scope(start);
        Ok(())
    }

    // ---- names

    fn enter_loop(&mut self, label: Option<&str>, again: Option<Pc>) -> SqlResult<()> {
        match label {
            Some(label) => self.enter_label(label, again),
            None => {
                self.scope.enter();
                Ok(())
            }
        }
    }

    fn enter_label(&mut self, label: &str, again: Option<Pc>) -> SqlResult<()> {
        if self.scope.label(label).is_some() {
            return Err(SqlError::label_redefined(label));
        }
        self.scope.enter_labelled(Label::new(label, self.depth, again));
        Ok(())
    }

    /// Ends the scope of a block or loop here. `again` is the start of a loop's next round.
    fn leave_scope(&mut self, again: Pc) {
        let here = self.here();
        let Some(label) = self.scope.leave() else { return };
        for at in label.leaves {
            self.target(at, here);
        }
        for at in label.iterates {
            self.target(at, again);
        }
    }

    fn add_cursor(
        &mut self,
        name: &str,
        parameters: &[(String, u32, VariableType)],
        query: &Code<ast::Query>,
    ) -> SqlResult<CursorId> {
        for (name, slot, of) in parameters {
            self.declare(*slot, name, SlotType::Declared(of.clone()), None);
        }
        let statement = Statement::Query(Box::new(query.of.clone()));
        let code = Code { of: statement, uses: query.uses.clone(), range: query.range.clone() };
        self.check_limits(&code)?;
        let query = self.statement(code);
        let parameters = parameters.iter().map(|(_, slot, _)| *slot).collect();
        self.program.cursors.push(Cursor { name: name.to_owned(), parameters, query });
        Ok(self.program.cursors.len() as CursorId - 1)
    }

    /// Returns the type of a declaration. ROW TYPE OF may name a cursor.
    fn declared(&self, of: &VariableType) -> SlotType {
        match of {
            VariableType::RowTypeOf(ast::ObjectName { db: None, name }) => match self.scope.cursor(name) {
                Some(cursor) => SlotType::RowOfCursor(cursor),
                None => SlotType::Declared(of.clone()),
            },
            _ => SlotType::Declared(of.clone()),
        }
    }

    fn cursor(&self, name: &str) -> SqlResult<CursorId> {
        self.scope.cursor(name).ok_or_else(|| SqlError::undefined_cursor(name))
    }

    fn cursor_arguments(&mut self, id: CursorId, arguments: &[Code<Expr>]) -> SqlResult<Vec<ScalarId>> {
        let cursor = &self.program.cursors[id as usize];
        if cursor.parameters.len() != arguments.len() {
            return Err(SqlError::wrong_cursor_arguments(&cursor.name));
        }
        Ok(arguments.iter().map(|argument| self.scalar(argument)).collect())
    }

    fn handled(&self, conditions: &[HandledCondition]) -> SqlResult<Vec<HandledBy>> {
        let mut found = Vec::new();
        for condition in conditions {
            let by = match condition {
                HandledCondition::Value(value) => HandledBy::of(value),
                HandledCondition::Named(name) => match self.scope.condition(name) {
                    Some(value) => HandledBy::of(value),
                    None => return Err(SqlError::undefined_condition(name)),
                },
                HandledCondition::Sqlwarning => HandledBy::Warning,
                HandledCondition::NotFound => HandledBy::NotFound,
                HandledCondition::Sqlexception => HandledBy::Exception,
            };
            if found.contains(&by) {
                return Err(SqlError::duplicate_handler());
            }
            found.push(by);
        }
        Ok(found)
    }

    // ---- statements of SQL

    fn sql(&mut self, code: &Code<Statement>) -> SqlResult<()> {
        let program = match &code.of {
            Statement::Program(program) => &**program,
            _ => {
                self.check_allowed(code)?;
                let id = self.statement(code.clone());
                self.emit(Instruction::Statement(id));
                return Ok(());
            }
        };
        match program {
            ast::Program::Signal(signal) => {
                let raised = self.raised(&signal.condition, &signal.items, code)?;
                self.emit(Instruction::Signal(raised));
            }
            ast::Program::Resignal(resignal) => {
                let condition = match &resignal.condition {
                    Some(condition) => Some(self.sqlstate(condition)?),
                    None => None,
                };
                let items = self.items(&resignal.items, code);
                self.emit(Instruction::Resignal { sqlstate: condition, items });
            }
            ast::Program::Call { name, arguments } => {
                let target = |argument: &Expr| match argument {
                    Expr::Param(n) => Some(Target::Local(code.uses[*n as usize].of.clone())),
                    Expr::UserVariable(name) => Some(Target::User(name.clone())),
                    _ => None,
                };
                let targets = arguments.iter().map(target).collect();
                let args = arguments.iter().map(|argument| self.part(argument, code)).collect();
                self.emit(Instruction::Call { procedure: name.clone(), args, targets });
            }
            ast::Program::CreateRoutine(create) => {
                return Err(SqlError::create_within_routine(routine_word(create.kind)));
            }
            ast::Program::CreateTrigger(_) => return Err(SqlError::create_within_routine("TRIGGER")),
            ast::Program::AlterRoutine { kind, .. } | ast::Program::DropRoutine { kind, .. } => {
                return Err(SqlError::drop_within_routine(routine_word(*kind)));
            }
            ast::Program::CreateEvent(_)
            | ast::Program::AlterEvent(ast::AlterEvent { body: Some(_), .. }) => {
                return Err(SqlError::event_within_event());
            }
            _ => {
                self.check_allowed(code)?;
                let id = self.statement(code.clone());
                self.emit(Instruction::Statement(id));
            }
        }
        Ok(())
    }

    /// Adds an expression that is a part of a statement.
    fn part(&mut self, expr: &Expr, of: &Code<Statement>) -> ScalarId {
        self.scalar(&Code { of: expr.clone(), uses: of.uses.clone(), range: of.range.clone() })
    }

    fn items(&mut self, items: &[(SignalItem, Expr)], of: &Code<Statement>) -> Vec<(SignalItem, ScalarId)> {
        items.iter().map(|(item, value)| (*item, self.part(value, of))).collect()
    }

    fn raised(
        &mut self,
        condition: &SignalledCondition,
        items: &[(SignalItem, Expr)],
        of: &Code<Statement>,
    ) -> SqlResult<Raised> {
        Ok(Raised { sqlstate: self.sqlstate(condition)?, items: self.items(items, of) })
    }

    /// Returns the SQLSTATE of a condition. Error 1646 if it stands for a number.
    fn sqlstate(&self, condition: &SignalledCondition) -> SqlResult<String> {
        match condition {
            SignalledCondition::Sqlstate(state) => Ok(state.clone()),
            SignalledCondition::Named(name) => match self.scope.condition(name) {
                Some(ConditionValue::Sqlstate(state)) => Ok(state.clone()),
                Some(ConditionValue::Error(_)) => Err(SqlError::signal_of_number()),
                None => Err(SqlError::undefined_condition(name)),
            },
        }
    }

    /// Checks that the program may contain a statement.
    fn check_allowed(&self, code: &Code<Statement>) -> SqlResult<()> {
        check_allowed(self.program.kind, code, &self.program.body)?;
        self.check_limits(code)
    }

    /// Returns error 1691 if LIMIT has a variable that is no integer by its declaration.
    fn check_limits(&self, code: &Code<Statement>) -> SqlResult<()> {
        if code.uses.is_empty() {
            return Ok(());
        }
        let mut limits = Limits::default();
        code.of.clone().rename(&mut limits);
        let own = match &code.of {
            Statement::Update(update) => update.limit.as_ref(),
            Statement::Delete(delete) => delete.limit.as_ref(),
            _ => None,
        };
        own.into_iter().for_each(|limit| limits.add(limit));
        let is_integer = |n: &u32| match &code.uses[*n as usize].of {
            Variable::Slot(slot) => match &self.program.slots[*slot as usize].of {
                SlotType::Declared(of) => may_be_integer(of),
                _ => true,
            },
            Variable::Field(slot, name) => match &self.program.slots[*slot as usize].of {
                SlotType::Declared(VariableType::Row(fields)) => {
                    let field = fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
                    field.is_none_or(|(_, of)| may_be_integer(of))
                }
                _ => false,
            },
            Variable::Old(_) | Variable::New(_) => true,
        };
        match limits.params.iter().all(is_integer) {
            true => Ok(()),
            false => Err(SqlError::no_integer_in_limit()),
        }
    }
}

impl Program {
    /// Checks that a function or a trigger may call this procedure: errors 1415, 1422, 1336.
    pub fn check_called_by(&self, caller: ProgramKind) -> SqlResult<()> {
        self.run_statements().try_for_each(|code| check_allowed(caller, code, &self.body))
    }
}

/// The variables in LIMIT clauses.
#[derive(Default)]
struct Limits {
    params: Vec<u32>,
}

impl Limits {
    fn add(&mut self, limit: &ast::Limit) {
        for expr in [Some(&limit.count), limit.offset.as_ref()].into_iter().flatten() {
            if let Expr::Param(n) = expr {
                self.params.push(*n);
            }
        }
    }
}

impl ast::Rename for Limits {
    fn query(&mut self, query: &mut ast::Query) {
        if let Some(limit) = &query.limit {
            self.add(limit);
        }
    }
}

/// Returns whether a variable of the type is an integer, as far as the declaration says.
fn may_be_integer(of: &VariableType) -> bool {
    use TypeKind as K;
    match of {
        VariableType::Declared(declared) => match declared.kind {
            ast::DeclaredKind::Column(kind) => matches!(
                kind,
                K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Year | K::Bit
            ),
            ast::DeclaredKind::Signed | ast::DeclaredKind::Unsigned => true,
        },
        _ => true,
    }
}

/// Checks that a program of this kind may contain a statement.
fn check_allowed(kind: ProgramKind, code: &Code<Statement>, body: &str) -> SqlResult<()> {
    let inside = kind.runs_inside();
    if matches!(code.of, Statement::CreateView(_)) && !code.uses.is_empty() {
        return Err(SqlError::view_with_variable());
    }
    let words = || statement_words(&body[code.range.clone()]);
    match traits_of(innermost(&code.of)).programs {
        ProgramRule::Never => Err(SqlError::not_in_programs(&words())),
        ProgramRule::NoResultSet if inside => Err(SqlError::no_result_set(kind.place())),
        ProgramRule::NoCommit if inside => Err(SqlError::commit_in_function_or_trigger()),
        ProgramRule::NoFunction if inside => {
            let is_dynamic = matches!(
                code.of,
                Statement::Prepare { .. }
                    | Statement::Execute { .. }
                    | Statement::ExecuteImmediate { .. }
                    | Statement::Deallocate(_)
            );
            let words = if is_dynamic { "Dynamic SQL".to_owned() } else { words() };
            Err(SqlError::not_in_function_or_trigger(&words))
        }
        ProgramRule::NoPassword if inside => Err(SqlError::autocommit_in_function()),
        _ => Ok(()),
    }
}

/// An operand of a loop's own expressions.
enum Operand {
    Slot(u32),
    One,
}

fn routine_word(kind: ast::RoutineKind) -> &'static str {
    match kind {
        ast::RoutineKind::Procedure => "PROCEDURE",
        ast::RoutineKind::Function => "FUNCTION",
    }
}

/// Returns the first words of a statement, as messages name it.
fn statement_words(text: &str) -> String {
    let mut words = text.split_ascii_whitespace().map(str::to_ascii_uppercase);
    let first = words.next().unwrap_or_default();
    let named = |second: &str| matches!((&*first, second), ("LOAD", "DATA") | ("ALTER", "VIEW"));
    match words.next().filter(|second| named(second)) {
        Some(second) => format!("{first} {second}"),
        None => first,
    }
}

impl HandledBy {
    fn of(value: &ConditionValue) -> HandledBy {
        match value {
            ConditionValue::Error(number) => HandledBy::Number(u16::try_from(*number).unwrap_or(u16::MAX)),
            ConditionValue::Sqlstate(state) => HandledBy::Sqlstate(state.clone()),
        }
    }
}

impl Program {
    fn targets_are_known(&self) -> bool {
        self.code.iter().all(|instruction| match instruction {
            Instruction::Jump(to)
            | Instruction::FetchOrJump { to, .. }
            | Instruction::Operand { after: to, .. } => *to != UNKNOWN,
            Instruction::JumpUnless { to, after, .. } => *to != UNKNOWN && *after != UNKNOWN,
            _ => true,
        })
    }
}
