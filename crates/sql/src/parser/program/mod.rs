//! CREATE, ALTER and DROP of stored programs, CALL, SIGNAL and RESIGNAL.
//!
//! | file | rules |
//! |---|---|
//! | `mod` | definitions of routines, triggers and events; CALL; SIGNAL and RESIGNAL |
//! | `body` | the statements of a body: blocks, declarations, control flow, cursors, diagnostics |
//! | `locals` | the local variables in scope, and their uses |
//!
//! A body ends where its last statement ends, so the parser determines where a definition ends in a text of
//! several statements ([`super::next_statement`]). Names of conditions, cursors and labels are not resolved
//! here, except that a label at the end must be the one at the start (error 1310).

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use crate::ast::{
    Account, AlterEvent, Characteristics, ColumnRef, CreateEvent, CreateRoutine, CreateTrigger, DataAccess,
    EventOptions, EventStatus, Expr, ObjectName, Parameter, ParameterMode, Program, Resignal, RoutineKind,
    Schedule, Signal, SignalItem, SignalledCondition, Statement, TriggerEvent, TriggerOrder, TriggerTiming,
    VariableType,
};
use crate::lexer::Kind;

mod body;
mod locals;

use body::BodyOf;
pub(super) use locals::Locals;

/// Words that name the kind of a stored program.
const PROGRAM_WORDS: [&str; 5] = ["PROCEDURE", "FUNCTION", "AGGREGATE", "TRIGGER", "EVENT"];

fn statement(program: Program) -> Statement {
    Statement::Program(Box::new(program))
}

impl Parser<'_> {
    /// Returns whether the next word names the kind of a stored program.
    pub(super) fn program_follows(&self) -> bool {
        self.is_any(&PROGRAM_WORDS)
    }

    /// Parses the rest of CREATE [OR REPLACE] [DEFINER = account], from the kind of the program on.
    pub(super) fn create_program(
        &mut self,
        or_replace: bool,
        definer: Option<Account>,
    ) -> SqlResult<Statement> {
        let aggregate = self.eat_word("AGGREGATE");
        let program = match () {
            () if self.eat_word("FUNCTION") => {
                Program::CreateRoutine(self.routine(RoutineKind::Function, aggregate, or_replace, definer)?)
            }
            () if aggregate => return Err(self.error()),
            () if self.eat_word("PROCEDURE") => {
                Program::CreateRoutine(self.routine(RoutineKind::Procedure, false, or_replace, definer)?)
            }
            () if self.eat_word("TRIGGER") => Program::CreateTrigger(self.trigger(or_replace, definer)?),
            () if self.eat_word("EVENT") => Program::CreateEvent(self.event(or_replace, definer)?),
            () => return Err(self.error()),
        };
        Ok(statement(program))
    }

    /// Parses the rest of ALTER, from the kind of the program on.
    pub(super) fn alter_program(&mut self, definer: Option<Account>) -> SqlResult<Statement> {
        if self.eat_word("EVENT") {
            return Ok(statement(Program::AlterEvent(self.alter_event(definer)?)));
        }
        let kind = match () {
            () if definer.is_some() => return Err(self.error()),
            () if self.eat_word("PROCEDURE") => RoutineKind::Procedure,
            () if self.eat_word("FUNCTION") => RoutineKind::Function,
            () => return Err(self.error()),
        };
        let name = self.routine_name()?;
        let mut characteristics = Characteristics::default();
        while self.alterable_characteristic(&mut characteristics)? {}
        Ok(statement(Program::AlterRoutine { kind, name, characteristics }))
    }

    /// Parses the rest of DROP, from the kind of the program on.
    pub(super) fn drop_program(&mut self) -> SqlResult<Statement> {
        let start = self.at;
        let word = self.upper_word()?;
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let program = match word.as_str() {
            "PROCEDURE" => {
                Program::DropRoutine { kind: RoutineKind::Procedure, if_exists, name: self.routine_name()? }
            }
            "FUNCTION" => {
                Program::DropRoutine { kind: RoutineKind::Function, if_exists, name: self.routine_name()? }
            }
            "TRIGGER" => Program::DropTrigger { if_exists, name: self.routine_name()? },
            "EVENT" => Program::DropEvent { if_exists, name: self.routine_name()? },
            _ => return Err(self.error_at(start)),
        };
        Ok(statement(program))
    }

    /// Parses CALL name[(arguments)].
    pub(super) fn call_statement(&mut self) -> SqlResult<Statement> {
        self.advance();
        let name = self.routine_name()?;
        let mut arguments = Vec::new();
        if self.eat(Kind::LeftParen) && !self.eat(Kind::RightParen) {
            arguments = match self.is_in_body() {
                true => self.in_scalar(|p| p.list(Self::expr))?,
                false => self.list(Self::expr)?,
            };
            self.expect(Kind::RightParen)?;
        }
        Ok(statement(Program::Call { name, arguments }))
    }

    // ---- routines

    fn routine(
        &mut self,
        kind: RoutineKind,
        aggregate: bool,
        or_replace: bool,
        definer: Option<Account>,
    ) -> SqlResult<CreateRoutine> {
        let mode = self.create_mode(or_replace)?;
        let name = self.routine_name()?;
        if kind == RoutineKind::Function && self.is("RETURNS") {
            return Err(self.unsupported("CREATE FUNCTION .. SONAME"));
        }
        let after = self.token().end;
        self.expect(Kind::LeftParen)?;
        // MariaDB keeps the space before the parameters of a procedure.
        let from = match kind {
            RoutineKind::Procedure => after,
            RoutineKind::Function => self.token().start,
        };
        let mut parameters = Vec::new();
        if self.kind() != Kind::RightParen {
            parameters = self.list(Self::parameter)?;
        }
        let part = from..self.token().start.max(from);
        let text = crate::lexer::executed_text(self.sql, part, self.options.mode);
        let parameter_text = String::from_utf8_lossy(&text).into_owned();
        self.expect(Kind::RightParen)?;
        for (n, parameter) in parameters.iter().enumerate() {
            if parameters[..n].iter().any(|other| other.name.to_lowercase() == parameter.name.to_lowercase())
            {
                return Err(SqlError::duplicate_parameter(&parameter.name));
            }
        }
        let mut returns = None;
        if kind == RoutineKind::Function {
            self.expect_word("RETURNS")?;
            let from = self.at;
            let of = match self.is("ROW") {
                true => return Err(self.error()),
                // A function returns no type of a column.
                false => VariableType::Declared(self.collated_type()?),
            };
            returns = Some((of, self.source_text(from)));
        }
        let mut characteristics = Characteristics::default();
        while self.characteristic(&mut characteristics)? {}
        let body = match kind {
            RoutineKind::Procedure => self.body(BodyOf::Routine(&parameters))?,
            RoutineKind::Function => self.function_body(&parameters)?,
        };
        Ok(CreateRoutine {
            mode,
            definer,
            kind,
            aggregate,
            name,
            parameters,
            parameter_text,
            returns,
            characteristics,
            body,
        })
    }

    fn parameter(&mut self) -> SqlResult<Parameter> {
        let mode = match () {
            () if self.eat_word("IN") => ParameterMode::In,
            () if self.eat_word("OUT") => ParameterMode::Out,
            () if self.eat_word("INOUT") => ParameterMode::InOut,
            () => ParameterMode::In,
        };
        let name = self.name()?;
        Ok(Parameter { mode, name, of: self.variable_type()? })
    }

    /// Parses a characteristic. Returns false if none follows.
    fn characteristic(&mut self, into: &mut Characteristics) -> SqlResult<bool> {
        match () {
            () if self.eat_word("DETERMINISTIC") => into.deterministic = Some(true),
            () if self.eat_words(&["NOT", "DETERMINISTIC"]) => into.deterministic = Some(false),
            () => return self.alterable_characteristic(into),
        }
        Ok(true)
    }

    /// Parses a characteristic that ALTER can change. Returns false if none follows.
    fn alterable_characteristic(&mut self, into: &mut Characteristics) -> SqlResult<bool> {
        match () {
            () if self.eat_word("COMMENT") => into.comment = Some(self.text()?),
            () if self.eat_words(&["LANGUAGE", "SQL"]) => {}
            () if self.eat_words(&["CONTAINS", "SQL"]) => into.access = Some(DataAccess::ContainsSql),
            () if self.eat_words(&["NO", "SQL"]) => into.access = Some(DataAccess::NoSql),
            () if self.eat_words(&["READS", "SQL", "DATA"]) => into.access = Some(DataAccess::ReadsSqlData),
            () if self.eat_words(&["MODIFIES", "SQL", "DATA"]) => {
                into.access = Some(DataAccess::ModifiesSqlData);
            }
            () => match self.sql_security()? {
                None => return Ok(false),
                security => into.security = security,
            },
        }
        Ok(true)
    }

    /// Parses the type of a variable, a parameter or a result.
    fn variable_type(&mut self) -> SqlResult<VariableType> {
        if self.is_all(&["TYPE", "OF"]) {
            self.advance();
            self.advance();
            return self.type_of();
        }
        if self.is("ROW") {
            self.advance();
            if self.eat_words(&["TYPE", "OF"]) {
                return Ok(VariableType::RowTypeOf(self.object_name()?));
            }
            let fields = self.paren_list(|p| {
                let name = p.name()?;
                Ok((name, VariableType::Declared(p.collated_type()?)))
            })?;
            return Ok(VariableType::Row(fields));
        }
        Ok(VariableType::Declared(self.collated_type()?))
    }

    /// Parses what follows TYPE OF: the name of a variable, `table.column` or `db.table.column`.
    fn type_of(&mut self) -> SqlResult<VariableType> {
        if self.peek(1).kind != Kind::Dot {
            let name = self.name()?;
            let slot = self.locals.as_ref().and_then(|locals| locals.slot(&name));
            return slot
                .map(VariableType::TypeOfVariable)
                .ok_or_else(|| SqlError::undeclared_variable(&name));
        }
        let first = self.name()?;
        self.expect(Kind::Dot)?;
        let second = self.name_after_dot()?;
        let column = match self.eat(Kind::Dot) {
            true => ColumnRef { db: Some(first), table: Some(second), name: self.name_after_dot()? },
            false => ColumnRef { db: None, table: Some(first), name: second },
        };
        Ok(VariableType::TypeOf(column))
    }

    /// Parses a declared type, which may have a collation.
    fn collated_type(&mut self) -> SqlResult<crate::ast::DataType> {
        let mut data_type = self.data_type()?;
        if self.eat_word("COLLATE") {
            data_type.collation = Some(self.collation_word()?);
        }
        Ok(data_type)
    }

    // ---- triggers

    fn trigger(&mut self, or_replace: bool, definer: Option<Account>) -> SqlResult<CreateTrigger> {
        let start = self.token_at(self.at - 1).start;
        let mode = self.create_mode(or_replace)?;
        let name = self.routine_name()?;
        let timing = match () {
            () if self.eat_word("BEFORE") => TriggerTiming::Before,
            () if self.eat_word("AFTER") => TriggerTiming::After,
            () => return Err(self.error()),
        };
        let event = match () {
            () if self.eat_word("INSERT") => TriggerEvent::Insert,
            () if self.eat_word("UPDATE") => TriggerEvent::Update,
            () if self.eat_word("DELETE") => TriggerEvent::Delete,
            () => return Err(self.error()),
        };
        let from = self.token().start;
        self.expect_word("ON")?;
        let table = self.object_name()?;
        let on = from..self.token_at(self.at - 1).end;
        self.expect_words(&["FOR", "EACH", "ROW"])?;
        let from = self.token().start;
        let order = match () {
            () if self.eat_word("FOLLOWS") => Some((TriggerOrder::Follows, self.name()?)),
            () if self.eat_word("PRECEDES") => Some((TriggerOrder::Precedes, self.name()?)),
            () => None,
        };
        let order_text = from..self.token_at(self.at - 1).end.max(from);
        let body = self.body(BodyOf::Trigger(timing, event))?;
        Ok(CreateTrigger { mode, definer, name, timing, event, table, start, on, order_text, order, body })
    }

    // ---- events

    fn event(&mut self, or_replace: bool, definer: Option<Account>) -> SqlResult<CreateEvent> {
        let start = self.token_at(self.at - 1).start;
        let mode = self.create_mode(or_replace)?;
        let name = self.routine_name()?;
        let Some(schedule) = self.schedule()? else { return Err(self.error()) };
        let mut options = EventOptions::default();
        self.on_completion(&mut options)?;
        self.event_status_and_comment(&mut options)?;
        self.expect_word("DO")?;
        let body = self.body(BodyOf::Plain)?;
        Ok(CreateEvent { mode, definer, start, name, schedule, options, body })
    }

    fn alter_event(&mut self, definer: Option<Account>) -> SqlResult<AlterEvent> {
        let name = self.routine_name()?;
        let from = self.at;
        let schedule = self.schedule()?;
        let mut options = EventOptions::default();
        self.on_completion(&mut options)?;
        let rename_to = match self.eat_words(&["RENAME", "TO"]) {
            true => Some(self.routine_name()?),
            false => None,
        };
        self.event_status_and_comment(&mut options)?;
        let body = if self.eat_word("DO") { Some(self.body(BodyOf::Plain)?) } else { None };
        if self.at == from {
            return Err(self.error());
        }
        Ok(AlterEvent { definer, name, schedule, rename_to, options, body })
    }

    /// Parses ON SCHEDULE.
    fn schedule(&mut self) -> SqlResult<Option<Schedule>> {
        if !self.eat_words(&["ON", "SCHEDULE"]) {
            return Ok(None);
        }
        if self.eat_word("AT") {
            return Ok(Some(Schedule::At(self.expr()?)));
        }
        self.expect_word("EVERY")?;
        let interval = self.expr()?;
        let unit = self.interval_unit()?;
        let starts = if self.eat_word("STARTS") { Some(self.expr()?) } else { None };
        let ends = if self.eat_word("ENDS") { Some(self.expr()?) } else { None };
        Ok(Some(Schedule::Every { interval, unit, starts, ends }))
    }

    fn on_completion(&mut self, options: &mut EventOptions) -> SqlResult<()> {
        if self.eat_words(&["ON", "COMPLETION"]) {
            options.preserve = Some(!self.eat_word("NOT"));
            self.expect_word("PRESERVE")?;
        }
        Ok(())
    }

    fn event_status_and_comment(&mut self, options: &mut EventOptions) -> SqlResult<()> {
        options.status = match () {
            () if self.eat_word("ENABLE") => Some(EventStatus::Enabled),
            () if self.eat_words(&["DISABLE", "ON", "SLAVE"]) => Some(EventStatus::SlavesideDisabled),
            () if self.eat_word("DISABLE") => Some(EventStatus::Disabled),
            () => None,
        };
        if self.eat_word("COMMENT") {
            options.comment = Some(self.text()?);
        }
        Ok(())
    }

    // ---- names

    /// Parses the name of a routine. Error 1458 if it is invalid.
    fn routine_name(&mut self) -> SqlResult<ObjectName> {
        let name = self.program_name()?;
        match name.name.ends_with(' ') || name.name.is_empty() {
            true => Err(SqlError::wrong_routine_name(&name.name)),
            false => Ok(name),
        }
    }

    /// Parses `name` or `db.name`. Error 1059 if it is too long.
    fn program_name(&mut self) -> SqlResult<ObjectName> {
        let first = self.name()?;
        let name = match self.eat(Kind::Dot) {
            true => ObjectName { db: Some(first), name: self.name_after_dot()? },
            false => ObjectName { db: None, name: first },
        };
        match super::is_too_long(&name.name) {
            true => Err(SqlError::too_long_identifier(&name.name)),
            false => Ok(name),
        }
    }

    // ---- SIGNAL

    pub(super) fn signal(&mut self) -> SqlResult<Statement> {
        self.advance();
        let Some(condition) = self.signalled_condition()? else { return Err(self.error()) };
        let items = self.signal_items()?;
        Ok(statement(Program::Signal(Signal { condition, items })))
    }

    pub(super) fn resignal(&mut self) -> SqlResult<Statement> {
        self.advance();
        let condition = self.signalled_condition()?;
        let items = self.signal_items()?;
        Ok(statement(Program::Resignal(Resignal { condition, items })))
    }

    fn signalled_condition(&mut self) -> SqlResult<Option<SignalledCondition>> {
        if self.is("SQLSTATE") {
            return Ok(Some(SignalledCondition::Sqlstate(self.sqlstate()?)));
        }
        Ok(match self.is_name_at(0) {
            true => Some(SignalledCondition::Named(self.name()?)),
            false => None,
        })
    }

    /// Parses SQLSTATE [VALUE] '.....'. Error 1407 if it is none, or that of success.
    fn sqlstate(&mut self) -> SqlResult<String> {
        self.expect_word("SQLSTATE")?;
        self.eat_word("VALUE");
        let state = self.text()?;
        let is_valid = state.len() == 5
            && state.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
            && !state.starts_with("00");
        if is_valid { Ok(state) } else { Err(SqlError::bad_sqlstate(&state)) }
    }

    /// Parses SET item = value, .. of SIGNAL. Values are simple: literals, variables and parameters.
    fn signal_items(&mut self) -> SqlResult<Vec<(SignalItem, Expr)>> {
        let mut items: Vec<(SignalItem, Expr)> = Vec::new();
        if !self.eat_word("SET") {
            return Ok(items);
        }
        loop {
            let Some((word, item)) = SignalItem::ALL.into_iter().find(|(word, _)| self.is(word)) else {
                return Err(self.error());
            };
            if items.iter().any(|(known, _)| *known == item) {
                return Err(SqlError::duplicate_condition_item(word));
            }
            self.advance();
            self.expect(Kind::Equal)?;
            items.push((item, self.signal_value()?));
            if !self.eat(Kind::Comma) {
                return Ok(items);
            }
        }
    }

    fn signal_value(&mut self) -> SqlResult<Expr> {
        let (from, is_name) = (self.at, self.is_name_at(0));
        let value = self.primary_expr()?;
        match value {
            Expr::Literal(_) | Expr::Param(_) | Expr::UserVariable(_) | Expr::SystemVariable { .. } => {
                Ok(value)
            }
            Expr::Column(_) if self.locals.is_some() => {
                Err(SqlError::undeclared_variable(&self.name_of(self.token_at(from))))
            }
            Expr::Column(_) => Ok(value),
            Expr::Assign { .. } => Err(self.error()),
            // MariaDB takes a function's name for a column.
            _ if is_name => Err(SqlError::unknown_column(&self.name_of(self.token_at(from)), "SELECT")),
            _ => Err(self.error_at(from)),
        }
    }
}
