//! The loop over instructions.
//!
//! # Errors
//! Each instruction returns a result. The loop has one exit for errors ([`Machine::raised`]): it looks for a
//! handler, enters it, or ends the program with the error. Conditions that a successful statement has left
//! take the same way: the last of them that has a handler is handled.
//!
//! # Conditions
//! The host's diagnostics area has the conditions of the last statement. An expression that raises none
//! leaves them. A handler marks the conditions when it begins, and removes the marked ones when it ends.
//!
//! # Bounds
//! The loop looks at KILL and the time limit at every statement and after every [`JUMPS_UNCHECKED`] jumps.

use cohort_catalog::TableName;
use cohort_expr::{EvalContext, Expr, SessionEnv};
use cohort_session::access;
use cohort_sql::ast::{ObjectName, ParameterMode, SignalItem, Target, Variable, VariableUse};
use cohort_types::{
    ColumnType, Level, Privilege, SqlError, SqlMode, SqlResult, StoreContext, Value, Warning, check_stack,
};

use crate::bind::{Bound, PlaceType, Scalar, Slot};
use crate::frame::Frame;
use crate::group::Group;
use crate::host::{Host, RowsFor};
use crate::lines::LineCounts;
use crate::program::{Instruction, Pc, ProgramKind, Raised, ScalarId};
use crate::signal;
use crate::typed_code::{self, JUMPS_UNCHECKED, Observer, Stop, TypedState};

/// The result of a program.
#[derive(Debug, Default)]
pub struct Finished {
    /// The values of OUT and INOUT parameters; `None` for the others.
    pub out: Vec<Option<Value>>,
    /// The value that a function returned.
    pub returned: Option<Value>,
}

/// Runs a routine with the values of its arguments, which [`Bound::converted`] has converted, a compound
/// statement, or the body of an event.
pub fn run(bound: &Bound, args: Vec<Value>, host: &mut dyn Host) -> SqlResult<Finished> {
    let mut machine = Machine::new(bound, host)?;
    let parameters = &bound.program.parameters;
    assert_eq!(parameters.len(), args.len(), "the caller has checked the number of arguments");
    for (slot, value) in bound.slots.iter().zip(args) {
        machine.frame.put(slot.first, value)?;
    }
    let returned = machine.run()?;
    Ok(Finished { out: machine.out(), returned })
}

/// Runs an aggregate function over the rows of a group, of which there is at least one.
pub fn run_aggregate(bound: &Bound, group: Group<'_>, host: &mut dyn Host) -> SqlResult<Finished> {
    let mut machine = Machine::new(bound, host)?;
    machine.group = Some(group);
    machine.fetch_group()?;
    let returned = machine.run()?;
    Ok(Finished { out: machine.out(), returned })
}

/// The new row of a trigger. A BEFORE trigger may change it.
pub enum NewRow<'r> {
    Read(&'r [Value]),
    Change(&'r mut [Value]),
}

impl NewRow<'_> {
    pub(crate) fn values(&self) -> &[Value] {
        match self {
            NewRow::Read(values) => values,
            NewRow::Change(values) => values,
        }
    }

    /// Returns the row for the next trigger.
    pub fn again(&mut self) -> NewRow<'_> {
        match self {
            NewRow::Read(values) => NewRow::Read(values),
            NewRow::Change(values) => NewRow::Change(values),
        }
    }
}

/// Runs a trigger for one row of its table. The definer needs SELECT on the columns of OLD and NEW that are
/// read, and UPDATE on those that are set. Returns whether it has these privileges on all columns that the
/// trigger names.
pub fn run_trigger(
    bound: &Bound,
    table: &TableName,
    (old, new): (Option<&[Value]>, Option<NewRow<'_>>),
    host: &mut dyn Host,
) -> SqlResult<bool> {
    let mut machine = Machine::new(bound, host)?;
    machine.find_denied(table);
    for column in &bound.columns {
        let row = if column.is_new { new.as_ref().map(NewRow::values) } else { old };
        if let Some(row) = row {
            machine.frame.put(column.place, row[column.ordinal].clone())?;
        }
    }
    machine.run()?;
    if let Some(NewRow::Change(new)) = new {
        for column in bound.columns.iter().filter(|column| column.is_new) {
            new[column.ordinal] = machine.frame.places[column.place as usize].clone();
        }
    }
    Ok(machine.denied.is_empty())
}

/// An activation that runs.
struct Machine<'b, 'h> {
    bound: &'b Bound,
    frame: Frame,
    host: &'h mut dyn Host,
    /// Jumps until the next check for KILL.
    jumps_left: u32,
    /// The row number in messages about assignments: 1 as soon as a query or a change has run, as in MariaDB.
    row: u64,
    /// The columns of OLD and NEW that the definer of a trigger may not read or set.
    denied: Vec<Denied>,
    /// The rows for an aggregate function.
    group: Option<Group<'b>>,
    /// The lines that were executed, if they are counted.
    lines: Option<Box<LineCounts<'b>>>,
}

/// A privilege that the definer of a trigger lacks on a column.
struct Denied {
    place: u32,
    privilege: Privilege,
    error: SqlError,
}

/// The effect of an instruction.
enum Flow {
    Next,
    Jump(Pc),
    Return(Value),
    End,
}

impl<'b, 'h> Machine<'b, 'h> {
    fn new(bound: &'b Bound, host: &'h mut dyn Host) -> SqlResult<Machine<'b, 'h>> {
        let lines = LineCounts::begin(&bound.program, host.session());
        Ok(Machine {
            bound,
            frame: Frame::new(bound, &host.session().memory)?,
            host,
            jumps_left: JUMPS_UNCHECKED,
            row: 0,
            denied: Vec::new(),
            group: None,
            lines,
        })
    }

    /// Finds the columns that a trigger may not use. An account that has the privileges on the whole table
    /// may use all.
    fn find_denied(&mut self, table: &TableName) {
        let session = self.host.session();
        let wanted = [Privilege::Select, Privilege::Update];
        let held = session.access().on_table(&table.schema, &table.table);
        for privilege in wanted.into_iter().filter(|privilege| !held.has(*privilege)) {
            for column in &self.bound.columns {
                let place = column.place;
                let name = &self.bound.places[place as usize].name;
                if let Err(error) = access::check_column(session, privilege, table, name) {
                    self.denied.push(Denied { place, privilege, error });
                }
            }
        }
    }

    /// Checks that the definer of a trigger may read the variables that an expression or a statement uses.
    #[inline]
    fn check_uses(&self, uses: &[VariableUse]) -> SqlResult<()> {
        match self.denied.is_empty() {
            true => Ok(()),
            false => uses.iter().try_for_each(|used| self.check_use(&used.of, Privilege::Select)),
        }
    }

    /// Checks that the definer of a trigger may use a variable.
    fn check_use(&self, variable: &Variable, privilege: Privilege) -> SqlResult<()> {
        if self.denied.is_empty() || !matches!(variable, Variable::Old(_) | Variable::New(_)) {
            return Ok(());
        }
        let place = self.bound.place_of(variable)?;
        let found = self.denied.iter().find(|it| it.place == place && it.privilege == privilege);
        found.map_or(Ok(()), |denied| Err(denied.error.clone()))
    }

    /// Runs from the first instruction. Returns the value of RETURN.
    fn run(&mut self) -> SqlResult<Option<Value>> {
        check_stack()?;
        let outcome = self.run_instructions();
        if let Some(lines) = self.lines.take() {
            lines.end(self.host.session());
        }
        outcome
    }

    fn run_instructions(&mut self) -> SqlResult<Option<Value>> {
        let code = &self.bound.program.code;
        let mut pc: Pc = 0;
        loop {
            if self.denied.is_empty() {
                pc = self.run_typed(pc)?;
            } else if let Some(lines) = &mut self.lines {
                lines.executes(pc);
            }
            pc = match self.step(pc, &code[pc as usize]) {
                Ok(Flow::Next) => pc + 1,
                Ok(Flow::Jump(to)) => to,
                Ok(Flow::Return(value)) => return Ok(Some(value)),
                Ok(Flow::End) => return self.ended().map(|()| None),
                Err(error) => self.raised(pc, error)?,
            };
        }
    }

    /// Runs typed instructions, up to the first one that needs the host.
    fn run_typed(&mut self, mut pc: Pc) -> SqlResult<Pc> {
        loop {
            let mut state = TypedState {
                places: &mut self.frame.places,
                cursors: &mut self.frame.cursors,
                jumps_left: self.jumps_left,
                has_evaluated: false,
            };
            let stop = match &mut self.lines {
                None => typed_code::run(&self.bound.ops, &mut state, pc, &mut ()),
                Some(lines) => typed_code::run(&self.bound.ops, &mut state, pc, &mut **lines),
            };
            self.jumps_left = state.jumps_left;
            if state.has_evaluated {
                self.host.diagnostics().begin();
            }
            match stop {
                Stop::At(at) => return Ok(at),
                Stop::Check { at, to } => {
                    pc = match self.host.check_interrupt() {
                        Ok(()) => to,
                        Err(error) => self.raised(at, error)?,
                    };
                }
            }
        }
    }

    /// Returns the values of OUT and INOUT parameters.
    fn out(&self) -> Vec<Option<Value>> {
        let out = self.bound.program.parameters.iter().enumerate().map(|(n, (mode, _))| {
            let place = self.bound.slots[n].first as usize;
            mode.is_out().then(|| self.frame.places[place].clone())
        });
        out.collect()
    }

    fn ended(&self) -> SqlResult<()> {
        match self.bound.program.kind {
            ProgramKind::Function | ProgramKind::AggregateFunction => {
                Err(SqlError::ended_without_return(&self.bound.program.name))
            }
            _ => Ok(()),
        }
    }

    fn step(&mut self, pc: Pc, instruction: &'b Instruction) -> SqlResult<Flow> {
        match instruction {
            Instruction::Set { to, value } => {
                self.set(to, *value)?;
                self.handled_conditions(pc)
            }
            Instruction::Operand { slot, value, .. } => {
                self.set(&Variable::Slot(*slot), *value)?;
                self.handled_conditions(pc)
            }
            Instruction::Declare { slot } => {
                let default = self.bound.program.slots[*slot as usize].default;
                let variable = Variable::Slot(*slot);
                match default {
                    Some(default) => self.set(&variable, default)?,
                    None => {
                        let places = self.bound.places_of(&variable)?;
                        for place in places {
                            self.frame.put(place, Value::Null)?;
                        }
                    }
                }
                self.handled_conditions(pc)
            }
            Instruction::Jump(to) => self.jump(*to),
            Instruction::JumpUnless { condition, to, .. } => {
                let holds = self.holds(*condition)?;
                match self.handled_conditions(pc)? {
                    Flow::Next if holds => Ok(Flow::Next),
                    Flow::Next => self.jump(*to),
                    handler => Ok(handler),
                }
            }
            Instruction::CaseNotFound => Err(SqlError::case_not_found()),
            Instruction::Statement(id) => {
                let statement = &self.bound.statements[*id as usize];
                self.check_uses(&self.bound.program.statements[*id as usize].uses)?;
                let params = statement.params(&self.frame.places);
                if statement.statement.plannable().is_some() {
                    self.row = 1;
                }
                let assigned = self.with_out(|host| host.run(statement, &params))?;
                self.assign_all(assigned)?;
                self.handled_conditions(pc)
            }
            Instruction::Call { procedure, args, targets } => {
                let values = self.arguments(procedure, args)?;
                let is_variable: Vec<bool> = targets.iter().map(Option::is_some).collect();
                let out = self.host.call(procedure, values, &is_variable)?;
                for (target, value) in targets.iter().zip(out) {
                    match (target, value) {
                        (Some(Target::Local(variable)), Some(value)) => self.assign(variable, value)?,
                        (Some(Target::User(name)), Some(value)) => {
                            self.host.session().assign(&Target::User(name.clone()), value)?;
                        }
                        _ => {}
                    }
                }
                self.handled_conditions(pc)
            }
            Instruction::EnterBlock(block) => {
                self.frame.blocks.push(*block);
                Ok(Flow::Next)
            }
            Instruction::LeaveBlocks(count) => {
                let left = self.frame.blocks.len() - *count as usize;
                self.frame.leave_to(&self.bound.program, left);
                Ok(Flow::Next)
            }
            Instruction::EndHandler => {
                let (to, ended) = self.frame.end_handler(&self.bound.program);
                for marked in ended {
                    self.host.diagnostics().remove_marked(marked);
                }
                Ok(Flow::Jump(to))
            }
            Instruction::Open { cursor, args } => {
                if self.frame.cursor(*cursor).is_some() {
                    return Err(SqlError::cursor_is_open());
                }
                let declared = &self.bound.program.cursors[*cursor as usize];
                for (slot, arg) in declared.parameters.iter().zip(args) {
                    let value = self.evaluate(*arg, true)?;
                    self.assign(&Variable::Slot(*slot), value)?;
                }
                let query = &self.bound.statements[declared.query as usize];
                self.check_uses(&self.bound.program.statements[declared.query as usize].uses)?;
                let params = query.params(&self.frame.places);
                self.row = 1;
                let rows = self.host.query(query, &params, RowsFor::Cursor)?;
                *self.frame.cursor(*cursor) = Some(rows);
                self.handled_conditions(pc)
            }
            Instruction::Fetch { cursor, into } => {
                let rows = self.frame.cursor(*cursor).as_mut().ok_or_else(SqlError::cursor_is_not_open)?;
                let mut places = Vec::with_capacity(into.len());
                for variable in into {
                    places.extend(self.bound.places_of(variable)?);
                }
                if rows.columns() != places.len() {
                    return Err(SqlError::wrong_fetch_count());
                }
                let row = rows.next_row()?.ok_or_else(SqlError::no_data)?;
                self.store_row(places, row)?;
                self.handled_conditions(pc)
            }
            Instruction::FetchOrJump { cursor, into, to } => {
                let rows = self.frame.cursor(*cursor).as_mut().ok_or_else(SqlError::cursor_is_not_open)?;
                let Some(row) = rows.next_row()? else { return self.jump(*to) };
                let places = self.bound.places_of(&Variable::Slot(*into))?;
                self.store_row(places, row)?;
                self.handled_conditions(pc)
            }
            Instruction::Close { cursor } => match self.frame.cursor(*cursor).take() {
                Some(_) => Ok(Flow::Next),
                None => Err(SqlError::cursor_is_not_open()),
            },
            Instruction::FetchGroup => {
                match self.group.as_mut().filter(|group| !group.is_fetched) {
                    // The parameters have the values of the first row.
                    Some(group) => group.is_fetched = true,
                    None => self.fetch_group()?,
                }
                self.handled_conditions(pc)
            }
            Instruction::Return(value) => {
                // The conditions of the function end here.
                let diagnostics = self.host.diagnostics();
                let has_own = diagnostics.has_cleared() || !diagnostics.raised().is_empty();
                if has_own || !self.frame.running.is_empty() {
                    self.host.diagnostics().clear();
                }
                let value = self.evaluate(*value, true)?;
                let program = &self.bound.program;
                match &self.bound.returns {
                    Some(ty) => self.stored(value, ty, &program.name).map(Flow::Return),
                    None => Ok(Flow::Return(value)),
                }
            }
            Instruction::Signal(raised) => self.signal(pc, raised),
            Instruction::Resignal { sqlstate, items } => {
                let Some(running) = self.frame.running.last() else {
                    self.host.diagnostics().keep();
                    return Err(SqlError::resignal_without_handler());
                };
                let active = running.condition.clone();
                let items = self.items(items)?;
                let condition = signal::resignalled(active, sqlstate.as_deref(), items);
                if sqlstate.is_some() {
                    // The handled condition stays.
                    self.host.diagnostics().unmark();
                }
                self.raise(pc, condition)
            }
            Instruction::End => Ok(Flow::End),
        }
    }

    /// Evaluates the arguments of CALL. A hexadecimal literal is a number for a numeric parameter. Error 4078
    /// for a row as the argument of a scalar one.
    fn arguments(&mut self, procedure: &ObjectName, args: &[ScalarId]) -> SqlResult<Vec<Value>> {
        let bound = self.bound;
        let depends_on_type = |arg: &ScalarId| match &bound.scalars[*arg as usize] {
            Scalar::Expr(expr) => expr.is_hex_literal(),
            Scalar::Row(_) | Scalar::List(_) => true,
            _ => false,
        };
        let parameters = match args.iter().any(depends_on_type) {
            true => self.host.parameters(procedure)?,
            false => Vec::new(),
        };
        let value = |(n, arg): (usize, &ScalarId)| match (&bound.scalars[*arg as usize], parameters.get(n)) {
            (Scalar::Expr(expr), Some(parameter)) if expr.is_hex_literal() => {
                let number = match parameter.numeric_kind() {
                    Some(kind) => Expr::clone(expr).for_column(kind),
                    None => Expr::clone(expr),
                };
                self.with_context(false, |ctx| number.eval(&[], ctx).map(|value| value.into_owned()))
            }
            (Scalar::Row(_) | Scalar::List(_), Some(parameter)) => {
                parameter.refuse_row()?;
                self.evaluate(*arg, true)
            }
            _ => self.evaluate(*arg, true),
        };
        args.iter().enumerate().map(value).collect()
    }

    /// Assigns the next row of the group to the parameters. NOT FOUND after the last one.
    fn fetch_group(&mut self) -> SqlResult<()> {
        let group = self.group.as_mut().ok_or_else(SqlError::no_data)?;
        let row = group.next_row()?.ok_or_else(SqlError::no_data)?;
        let (mode, mut found) = (group.mode, Vec::new());
        let values = self.bound.converted(row, (&self.host.session().settings.env, mode, 1), &mut found);
        found.into_iter().for_each(|warning| self.host.diagnostics().push(warning));
        for (slot, value) in self.bound.slots.iter().zip(values?) {
            self.frame.put(slot.first, value)?;
        }
        Ok(())
    }

    fn jump(&mut self, to: Pc) -> SqlResult<Flow> {
        self.jumps_left -= 1;
        if self.jumps_left == 0 {
            self.jumps_left = JUMPS_UNCHECKED;
            self.host.check_interrupt()?;
        }
        Ok(Flow::Jump(to))
    }

    // ---- conditions

    /// The exit for errors: returns the start of the handler, or the error if there is none.
    fn raised(&mut self, pc: Pc, error: SqlError) -> SqlResult<Pc> {
        let may_handle = self.host.may_handle(&error);
        let condition = Warning { level: Level::Error, error };
        let found = may_handle.then(|| self.frame.handler(&self.bound.program, pc, &condition)).flatten();
        match found {
            Some(found) => {
                self.host.diagnostics().set_error(&condition.error);
                let marked = self.host.diagnostics().mark();
                Ok(self.frame.begin_handler(found, self.after(pc), condition, marked))
            }
            None => {
                self.host.diagnostics().drop_old();
                self.note_place(pc);
                Err(condition.error)
            }
        }
    }

    /// Adds the note about the place of an error that leaves the program: the line of the word after the
    /// statement, as in MariaDB.
    fn note_place(&mut self, pc: Pc) {
        let program = &self.bound.program;
        let at = program.positions[pc as usize] as usize;
        let rest = &program.body[at..];
        let end = at + rest.len() - rest.trim_start().len();
        let line = program.line_at(end);
        let note = Warning::note(SqlError::raised_at(line, program.shown_name()));
        self.host.diagnostics().add_after_error(note);
    }

    /// Returns where a CONTINUE handler goes on after a condition of the instruction at `pc`. As in MariaDB,
    /// a condition in the test of IF or of a loop, or in the operand of CASE, skips the whole statement.
    fn after(&self, pc: Pc) -> Pc {
        match &self.bound.program.code[pc as usize] {
            Instruction::JumpUnless { after, .. } | Instruction::Operand { after, .. } => *after,
            _ => pc + 1,
        }
    }

    /// Enters the handler of the last condition that the instruction at `pc` has left and that has one.
    #[inline]
    fn handled_conditions(&mut self, pc: Pc) -> SqlResult<Flow> {
        if self.frame.blocks.is_empty() || self.host.diagnostics().raised().is_empty() {
            return Ok(Flow::Next);
        }
        let raised = self.host.diagnostics().raised().to_vec();
        let program = &self.bound.program;
        let found = raised.into_iter().rev().find_map(|condition| {
            self.frame.handler(program, pc, &condition).map(|handler| (handler, condition))
        });
        let Some((handler, condition)) = found else { return Ok(Flow::Next) };
        let marked = self.host.diagnostics().mark();
        Ok(Flow::Jump(self.frame.begin_handler(handler, self.after(pc), condition, marked)))
    }

    fn signal(&mut self, pc: Pc, raised: &Raised) -> SqlResult<Flow> {
        self.host.diagnostics().clear();
        let items = self.items(&raised.items)?;
        let condition = signal::signalled(&raised.sqlstate, items);
        self.raise(pc, condition)
    }

    /// Raises a condition: an error, or a warning that is added to the conditions.
    fn raise(&mut self, pc: Pc, condition: Warning) -> SqlResult<Flow> {
        if condition.level == Level::Error {
            return Err(condition.error);
        }
        self.host.diagnostics().push(condition);
        self.handled_conditions(pc)
    }

    /// Evaluates the items of a SIGNAL or RESIGNAL.
    fn items(&mut self, items: &[(SignalItem, ScalarId)]) -> SqlResult<signal::Items> {
        let values: SqlResult<Vec<(SignalItem, Value)>> =
            items.iter().map(|(item, value)| Ok((*item, self.evaluate(*value, false)?))).collect();
        let is_strict = self.host.session().settings.env.sql_mode.is_strict();
        let mut warnings = Vec::new();
        let items = signal::Items::new(values?, is_strict, &mut warnings);
        warnings.into_iter().for_each(|warning| self.host.diagnostics().push(warning));
        items
    }

    // ---- values

    /// Assigns the value of an expression to a variable. Rows have the same number of fields.
    fn set(&mut self, to: &Variable, id: ScalarId) -> SqlResult<()> {
        let bound = self.bound;
        let scalar = &bound.scalars[id as usize];
        let places = bound.places_of(to)?;
        self.check_use(to, Privilege::Update)?;
        self.check_uses(&bound.program.scalars[id as usize].uses)?;
        if !bound.is_row(to) {
            if let (Scalar::Row(_) | Scalar::List(_), PlaceType::Column(ty)) =
                (scalar, &bound.places[places.start as usize].ty)
            {
                let name = &bound.places[places.start as usize].name;
                return Err(SqlError::row_in_assignment(ty.type_name(), name));
            }
            let is_stored = matches!(bound.places[places.start as usize].ty, PlaceType::Column(_));
            return match self.evaluate(id, is_stored) {
                Ok(value) => self.store(places.start, value),
                Err(error) => {
                    // After an error the variable is NULL, also if the error is handled.
                    if matches!(to, Variable::Slot(_) | Variable::Field(..)) {
                        self.frame.put(places.start, Value::Null)?;
                    }
                    Err(error)
                }
            };
        }
        let values = match scalar {
            Scalar::Row(from) => self.frame.places[from.start as usize..from.end as usize].to_vec(),
            Scalar::List(items) => {
                items.iter().map(|item| self.value(item, true)).collect::<SqlResult<Vec<_>>>()?
            }
            _ => return Err(SqlError::operand_columns(places.len())),
        };
        if values.len() != places.len() {
            return Err(SqlError::operand_columns(places.len()));
        }
        self.store_row(places, values)
    }

    /// Evaluates an expression. In strict mode, a warning of a value that is stored in a variable with a type
    /// is an error.
    fn evaluate(&mut self, id: ScalarId, is_stored: bool) -> SqlResult<Value> {
        let bound = self.bound;
        self.check_uses(&bound.program.scalars[id as usize].uses)?;
        self.value(&bound.scalars[id as usize], is_stored)
    }

    fn value(&mut self, scalar: &'b Scalar, is_stored: bool) -> SqlResult<Value> {
        let is_strict = is_stored && self.host.session().settings.env.sql_mode.is_strict();
        match scalar {
            Scalar::Row(_) | Scalar::List(_) => Err(SqlError::operand_columns(1)),
            Scalar::Place(place) => {
                self.host.diagnostics().begin();
                Ok(self.frame.places[*place as usize].clone())
            }
            Scalar::Expr(expr) => {
                self.with_context(is_strict, |ctx| expr.eval(&[], ctx).map(|value| value.into_owned()))
            }
            Scalar::Each(code) => {
                let expr = self.bound.bind_now(code, self.host)?;
                self.with_context(is_strict, |ctx| expr.eval(&[], ctx).map(|value| value.into_owned()))
            }
            Scalar::Query(query) => {
                let params = query.params(&self.frame.places);
                let rows_for = RowsFor::Value { is_strict };
                let mut rows = self.with_out(|host| host.query(query, &params, rows_for))?;
                let row = rows.next_row()?.unwrap_or_default();
                Ok(row.into_iter().next().unwrap_or(Value::Null))
            }
            Scalar::Fails(error) => Err(error.clone()),
        }
    }

    /// Runs a statement, and assigns the values that functions have returned in their parameters.
    fn with_out<T>(&mut self, run: impl FnOnce(&mut dyn Host) -> SqlResult<T>) -> SqlResult<T> {
        // The calling statement may have values of its own.
        let outer = self.host.session().statement.out.take();
        let outcome = run(self.host);
        let out = self.host.session().statement.out.replace(outer);
        for (place, value) in out {
            let column = self.bound.columns.iter().find(|column| column.place == place);
            if let Some(column) = column.filter(|_| !self.denied.is_empty()) {
                debug_assert!(column.is_new, "OLD is never assigned");
                let name = self.bound.places[place as usize].name.clone();
                self.check_use(&Variable::New(name), Privilege::Update)?;
            }
            self.store(place, value)?;
        }
        outcome
    }

    /// Evaluates a condition. NULL is false.
    fn holds(&mut self, id: ScalarId) -> SqlResult<bool> {
        let bound = self.bound;
        self.check_uses(&bound.program.scalars[id as usize].uses)?;
        if let Scalar::Expr(expr) = &bound.scalars[id as usize] {
            return self.with_context(false, |ctx| expr.passes(&[], ctx));
        }
        let value = self.evaluate(id, false)?;
        let truth = Expr::constant(value);
        self.with_context(false, |ctx| truth.passes(&[], ctx))
    }

    /// Evaluates over the places of the frame, and adds the warnings to the conditions. With `is_strict`, the
    /// first warning is the error.
    fn with_context<T>(
        &mut self,
        is_strict: bool,
        work: impl FnOnce(&EvalContext<'_>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let session = self.host.session();
        let ctx = EvalContext::new(&session.settings.env, session, &self.frame.places);
        ctx.set_abort_on_warning(is_strict);
        let outcome = work(&ctx);
        let warnings = ctx.take_warnings();
        let diagnostics = self.host.diagnostics();
        diagnostics.begin();
        if warnings.total() > 0 {
            diagnostics.add_all(&warnings);
        }
        outcome
    }

    fn assign_all(&mut self, assigned: Vec<(Variable, Value)>) -> SqlResult<()> {
        // A row variable receives all columns.
        if let [(first, _), rest @ ..] = &*assigned
            && !rest.is_empty()
            && assigned.iter().all(|(variable, _)| variable == first)
        {
            let places = self.bound.places_of(first)?;
            if places.len() != assigned.len() {
                return Err(SqlError::select_column_counts_differ());
            }
            let row = assigned.into_iter().map(|(_, value)| value).collect();
            return self.store_row(places, row);
        }
        assigned.into_iter().try_for_each(|(variable, value)| self.assign(&variable, value))
    }

    /// Assigns a value to a variable, converted to its type.
    fn assign(&mut self, to: &Variable, value: Value) -> SqlResult<()> {
        let place = self.bound.place_of(to)?;
        self.check_use(to, Privilege::Update)?;
        self.store(place, value)
    }

    fn store_row(&mut self, places: impl IntoIterator<Item = u32>, values: Vec<Value>) -> SqlResult<()> {
        places.into_iter().zip(values).try_for_each(|(place, value)| self.store(place, value))
    }

    fn store(&mut self, place: u32, value: Value) -> SqlResult<()> {
        let bound = self.bound;
        let declared = &bound.places[place as usize];
        let value = match &declared.ty {
            PlaceType::Column(ty) => self.stored(value, ty, &declared.name),
            PlaceType::Any(_) => Ok(value),
        };
        // After an error the variable is NULL.
        let (value, outcome) = match value {
            Ok(value) => (value, Ok(())),
            Err(error) => (Value::Null, Err(error)),
        };
        self.frame.put(place, value)?;
        outcome
    }

    /// Converts a value to a type. A bad value is an error in strict mode.
    fn stored(&mut self, value: Value, ty: &ColumnType, name: &str) -> SqlResult<Value> {
        let mut found = Vec::new();
        let outcome = {
            let env = &self.host.session().settings.env;
            ty.store(value, &store_context(env, env.sql_mode, name, self.row), &mut found)
        };
        let diagnostics = self.host.diagnostics();
        found.into_iter().for_each(|warning| diagnostics.push(warning));
        outcome
    }
}

impl Bound {
    /// Converts the arguments of a call to the types of the parameters, under the sql_mode of the caller. OUT
    /// parameters are NULL. `row` is the row number in messages, and `found` receives the warnings.
    pub fn converted(
        &self,
        args: Vec<Value>,
        (env, mode, row): (&SessionEnv, SqlMode, u64),
        found: &mut Vec<Warning>,
    ) -> SqlResult<Vec<Value>> {
        let parameters = self.program.parameters.iter().zip(&self.slots);
        let convert = |(((mode_of, _), slot), value): ((&(ParameterMode, String), &Slot), Value)| {
            let place = &self.places[slot.first as usize];
            match &place.ty {
                _ if !mode_of.is_in() => Ok(Value::Null),
                _ if slot.fields.is_some() => Err(SqlError::operand_columns(1)),
                PlaceType::Column(ty) => ty.store(value, &store_context(env, mode, &place.name, row), found),
                PlaceType::Any(_) => Ok(value),
            }
        };
        parameters.zip(args).map(convert).collect()
    }
}

fn store_context<'c>(env: &'c SessionEnv, mode: SqlMode, name: &'c str, row: u64) -> StoreContext<'c> {
    StoreContext {
        sql_mode: mode,
        strict: mode.is_strict(),
        database: "",
        table: "",
        column: name,
        row,
        zone: &env.time_zone,
        now_micros: env.now_micros,
    }
}
