//! The statements of a body.
//!
//! Every statement ends with `;`, except the one that is a body of its own (after FOR EACH ROW, DO, or a
//! routine's characteristics), which ends where its grammar ends.
//!
//! | construct | rule |
//! |---|---|
//! | a label | stands before a block or a loop; may be repeated after its END |
//! | declarations | at the start of a block: variables and conditions, then cursors, then handlers |
//! | names in INTO, SET, FETCH and GET DIAGNOSTICS | may be local variables or fields of row variables |
//! | `?` | is an error in a body |

use cohort_types::{SqlError, SqlResult};

use super::super::Parser;
use super::locals::Locals;
use crate::ast::{
    AfterHandler, Arm, Block, Body, BodyAssignment, Code, ConditionValue, CursorAction, Declaration, Expr,
    HandledCondition, Literal, LoopKind, Parameter, Program, Statement, Step, Target, TriggerEvent,
    TriggerTiming,
};
use crate::lexer::Kind;
use crate::literal;

/// Place of a declaration in the order that a block prescribes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    VariableOrCondition,
    Cursor,
    Handler,
}

/// The words that end a list of statements.
const ENDS: [&str; 5] = ["END", "ELSE", "ELSEIF", "WHEN", "UNTIL"];

/// Words that name variables but no labels.
#[rustfmt::skip]
const NO_LABELS: [&str; 74] = [
    "ASCII", "BACKUP", "BEGIN", "BINLOG", "BYTE", "CACHE", "CHARSET", "CHECKPOINT",
    "CHECKSUM", "CLOSE", "COLUMN_ADD", "COLUMN_CHECK", "COLUMN_CREATE", "COLUMN_DELETE", "COLUMN_GET", "COMMENT",
    "COMMIT", "COMPRESSED", "CONTAINS", "DEALLOCATE", "DO", "EXAMINED", "EXCLUDE", "EXECUTE",
    "FLUSH", "FOLLOWING", "FOLLOWS", "FORMAT", "GET", "HANDLER", "HELP", "HOST",
    "INSTALL", "LANGUAGE", "NO", "OPEN", "OPTION", "OPTIONS", "OTHERS", "OWNER",
    "PARSER", "PERIOD", "PORT", "PRECEDES", "PRECEDING", "PREPARE", "REMOVE", "REPAIR",
    "REPLICA", "REPLICAS", "RESET", "RESTORE", "ROLLBACK", "SAVEPOINT", "SECURITY", "SERVER",
    "SIGNED", "SLAVE", "SLAVES", "SOCKET", "SONAME", "START", "STOP", "STORED",
    "TIES", "TRUNCATE", "UNBOUNDED", "UNICODE", "UNINSTALL", "UPGRADE", "WINDOW", "WITHIN",
    "WRAPPER", "XA",
];

impl Parser<'_> {
    /// Parses the body of a procedure, a trigger or an event.
    pub(super) fn body(&mut self, of: BodyOf<'_>) -> SqlResult<Body> {
        self.body_of(of, Self::step)
    }

    /// Parses the body of a function: a block, a control statement or RETURN.
    pub(super) fn function_body(&mut self, parameters: &[Parameter]) -> SqlResult<Body> {
        let is_allowed = self.label_follows()
            || self.is_any(&["BEGIN", "RETURN", "IF", "CASE", "LOOP", "WHILE", "REPEAT", "FOR"]);
        if is_allowed { self.body(BodyOf::Routine(parameters)) } else { Err(self.error()) }
    }

    /// Returns whether a compound statement outside of a program follows.
    pub(in super::super) fn compound_follows(&self) -> bool {
        self.is_all(&["BEGIN", "NOT", "ATOMIC"])
            || self.is_any(&["IF", "CASE", "LOOP", "WHILE", "REPEAT", "FOR"])
    }

    /// Parses a compound statement outside of a program.
    pub(in super::super) fn compound(&mut self) -> SqlResult<Statement> {
        let body = self.body_of(BodyOf::Plain, |p| match p.eat_words(&["BEGIN", "NOT", "ATOMIC"]) {
            true => Ok(Step::Block(p.block_rest(None)?)),
            false => p.step(),
        })?;
        Ok(Statement::Program(Box::new(Program::Compound(body))))
    }

    fn body_of(
        &mut self,
        of: BodyOf<'_>,
        rule: impl FnOnce(&mut Self) -> SqlResult<Step>,
    ) -> SqlResult<Body> {
        let start = self.token().start;
        let mut locals = Locals::new(start, of.trigger());
        for parameter in of.parameters() {
            locals.declare(&parameter.name, &parameter.of);
        }
        let outer = self.locals.replace(Box::new(locals));
        // The values of literals are part of the program.
        self.fixed = true;
        let step = rule(self);
        let slots = self.locals().slots();
        self.locals = outer;
        let end = self.token_at(self.at.max(1) - 1).end;
        Ok(Body { step: step?, range: start..end.max(start), slots })
    }

    /// Returns the range from the token at index `from` to the last consumed one, relative to the body.
    pub(super) fn body_range(&self, from: usize) -> std::ops::Range<usize> {
        let base = self.locals.as_ref().map_or(0, |locals| locals.start);
        let start = self.token_at(from).start;
        start - base..self.token_at(self.at.max(1) - 1).end.max(start) - base
    }

    /// Returns the end of the last consumed token, relative to the body.
    fn end_in_body(&self) -> usize {
        self.body_range(self.at.max(1) - 1).end
    }

    /// Parses statements, each with its `;`, up to a word that ends the list. There is at least one, unless
    /// `may_be_empty`.
    fn steps(&mut self, may_be_empty: bool) -> SqlResult<Vec<Step>> {
        let mut steps = Vec::new();
        // MariaDB takes the word for a label.
        if self.is("UNTIL") && !may_be_empty {
            return Err(self.error_at(self.at + 1));
        }
        while !(self.is_any(&ENDS) && (may_be_empty || !steps.is_empty())) {
            steps.push(self.enter(Self::step)?);
            self.expect(Kind::Semicolon)?;
        }
        Ok(steps)
    }

    fn label_follows(&self) -> bool {
        self.is_name_at(0) && self.peek(1).kind == Kind::Colon && !self.is_any(&NO_LABELS)
    }

    /// Parses one statement without its `;`.
    fn step(&mut self) -> SqlResult<Step> {
        let mut label = None;
        if self.label_follows() {
            label = Some(self.name()?);
            self.expect(Kind::Colon)?;
            if !self.is_any(&["BEGIN", "LOOP", "WHILE", "REPEAT", "FOR"]) {
                return Err(self.error());
            }
        }
        match () {
            () if self.eat_word("BEGIN") => {
                if label.is_none() {
                    self.eat_words(&["NOT", "ATOMIC"]);
                }
                self.block_rest(label).map(Step::Block)
            }
            () if self.is_any(&["LOOP", "WHILE", "REPEAT", "FOR"]) => self.loop_step(label),
            () if self.eat_word("IF") => self.if_step(),
            () if self.eat_word("CASE") => self.case_step(),
            () if self.eat_word("LEAVE") => Ok(Step::Leave(self.name()?)),
            () if self.eat_word("ITERATE") => Ok(Step::Iterate(self.name()?)),
            () if self.eat_word("RETURN") => Ok(Step::Return(self.scalar()?)),
            () if self.is("OPEN") && self.is_name_at(1) => {
                self.advance();
                let name = self.name()?;
                let action = CursorAction::Open(self.optional_arguments()?);
                Ok(Step::Cursor { name, action, end: self.end_in_body() })
            }
            () if self.eat_word("FETCH") => self.fetch_step(),
            () if self.is("CLOSE") && self.is_name_at(1) => {
                self.advance();
                let name = self.name()?;
                Ok(Step::Cursor { name, action: CursorAction::Close, end: self.end_in_body() })
            }
            () if self.is("SET") && !self.is_word_at(1, "STATEMENT") => self.set_step(),
            () => Ok(Step::Sql(Box::new(self.code(Self::statement)?))),
        }
    }

    // ---- blocks

    /// Parses a block after BEGIN.
    fn block_rest(&mut self, label: Option<String>) -> SqlResult<Block> {
        let mut declarations = Vec::new();
        let mut last = Order::VariableOrCondition;
        let depth = self.locals().enter();
        while self.eat_word("DECLARE") {
            let (order, declaration) = self.declaration(depth)?;
            if order < last {
                return Err(match order {
                    Order::Cursor => SqlError::cursor_after_handler(),
                    _ => SqlError::variable_after_cursor_or_handler(),
                });
            }
            last = order;
            declarations.push(declaration);
            self.expect(Kind::Semicolon)?;
        }
        let steps = self.steps(true)?;
        self.locals().leave(depth);
        self.expect_word("END")?;
        self.end_label(label.as_deref())?;
        Ok(Block { label, declarations, steps })
    }

    /// Parses the label after END. Error 1310 if it is another one.
    fn end_label(&mut self, label: Option<&str>) -> SqlResult<()> {
        let Some(label) = label.filter(|_| self.is_name_at(0)) else { return Ok(()) };
        let end = self.name()?;
        match end.eq_ignore_ascii_case(label) || end.to_lowercase() == label.to_lowercase() {
            true => Ok(()),
            false => Err(SqlError::label_without_match(&end)),
        }
    }

    /// Parses a declaration after DECLARE. `depth` is the number of variables in scope around the block.
    fn declaration(&mut self, depth: usize) -> SqlResult<(Order, Declaration)> {
        let handler = match () {
            () if self.is_all(&["CONTINUE", "HANDLER"]) => Some(AfterHandler::Continue),
            () if self.is_all(&["EXIT", "HANDLER"]) => Some(AfterHandler::Exit),
            () => None,
        };
        if let Some(action) = handler {
            self.advance();
            self.advance();
            self.expect_word("FOR")?;
            let conditions = self.list(Self::handled_condition)?;
            let step = Box::new(self.enter(Self::step)?);
            return Ok((Order::Handler, Declaration::Handler { action, conditions, step }));
        }
        if self.is_word_at(1, "CONDITION") {
            let name = self.name()?;
            self.advance();
            self.expect_word("FOR")?;
            let value = self.condition_value()?;
            return Ok((Order::VariableOrCondition, Declaration::Condition { name, value }));
        }
        if self.is_word_at(1, "CURSOR") {
            let name = self.name()?;
            self.advance();
            let around = self.locals().enter();
            let parameters = match self.kind() == Kind::LeftParen {
                true => self.paren_list(|p| {
                    if p.is_any(&["OUT", "INOUT"]) {
                        return Err(p.unsupported("OUT/INOUT cursor parameter"));
                    }
                    p.eat_word("IN");
                    let (name, of) = (p.name()?, p.variable_type()?);
                    if p.locals().is_declared_since(around, &name) {
                        return Err(SqlError::duplicate_parameter(&name));
                    }
                    let slot = p.locals().declare(&name, &of);
                    Ok((name, slot, of))
                })?,
                false => Vec::new(),
            };
            self.expect_word("FOR")?;
            if !self.query_follows(0) {
                return Err(self.error());
            }
            let query = Box::new(self.code(Self::query)?);
            if !query.of.into.is_empty() || self.into_file.is_some() {
                return Err(SqlError::cursor_with_into());
            }
            self.locals().leave(around);
            return Ok((Order::Cursor, Declaration::Cursor { name, parameters, query }));
        }
        let names = self.list(Self::name)?;
        let of = self.variable_type()?;
        let default = if self.eat_word("DEFAULT") { Some(Box::new(self.scalar()?)) } else { None };
        let mut declared = Vec::with_capacity(names.len());
        for name in names {
            if self.locals().is_declared_since(depth, &name) {
                return Err(SqlError::duplicate_variable(&name));
            }
            let slot = self.locals().declare(&name, &of);
            declared.push((name, slot));
        }
        let end = self.end_in_body();
        Ok((Order::VariableOrCondition, Declaration::Variables { names: declared, of, default, end }))
    }

    /// Parses the number of an error or a SQLSTATE.
    fn condition_value(&mut self) -> SqlResult<ConditionValue> {
        if self.is("SQLSTATE") {
            return Ok(ConditionValue::Sqlstate(self.sqlstate()?));
        }
        match u32::try_from(self.number()?).ok().filter(|number| *number != 0) {
            Some(number) => Ok(ConditionValue::Error(number)),
            None => Err(SqlError::wrong_condition_value("0")),
        }
    }

    fn handled_condition(&mut self) -> SqlResult<HandledCondition> {
        match () {
            () if self.eat_word("SQLWARNING") => Ok(HandledCondition::Sqlwarning),
            () if self.eat_word("SQLEXCEPTION") => Ok(HandledCondition::Sqlexception),
            () if self.eat_words(&["NOT", "FOUND"]) => Ok(HandledCondition::NotFound),
            () if self.is("SQLSTATE") || self.kind() == Kind::Integer => {
                self.condition_value().map(HandledCondition::Value)
            }
            () => Ok(HandledCondition::Named(self.name()?)),
        }
    }

    // ---- control flow

    /// Parses IF after the word. Every branch has statements.
    fn if_step(&mut self) -> SqlResult<Step> {
        let mut arms = Vec::new();
        loop {
            let when = self.scalar()?;
            self.expect_word("THEN")?;
            arms.push(Arm { when, steps: self.steps(false)? });
            if !self.eat_word("ELSEIF") {
                break;
            }
        }
        let otherwise = if self.eat_word("ELSE") { Some(self.steps(false)?) } else { None };
        self.expect_words(&["END", "IF"])?;
        Ok(Step::If { arms, otherwise })
    }

    /// Parses CASE after the word.
    fn case_step(&mut self) -> SqlResult<Step> {
        let operand = if self.is("WHEN") { None } else { Some(self.scalar()?) };
        let mut arms = Vec::new();
        self.expect_word("WHEN")?;
        loop {
            let when = self.scalar()?;
            self.expect_word("THEN")?;
            arms.push(Arm { when, steps: self.steps(false)? });
            if !self.eat_word("WHEN") {
                break;
            }
        }
        let otherwise = if self.eat_word("ELSE") { Some(self.steps(false)?) } else { None };
        let end = self.body_range(self.at).start;
        self.expect_words(&["END", "CASE"])?;
        Ok(Step::Case { operand, arms, otherwise, end })
    }

    fn loop_step(&mut self, label: Option<String>) -> SqlResult<Step> {
        let word = self.upper_word()?;
        let depth = self.locals().enter();
        let (kind, steps) = match word.as_str() {
            "LOOP" => (LoopKind::Endless, self.steps(false)?),
            "WHILE" => {
                let condition = self.scalar()?;
                self.expect_word("DO")?;
                (LoopKind::While(condition), self.steps(false)?)
            }
            "REPEAT" => {
                let steps = self.steps(false)?;
                self.expect_word("UNTIL")?;
                (LoopKind::Until(self.scalar()?), steps)
            }
            _ => {
                let kind = self.for_range()?;
                self.expect_word("DO")?;
                (kind, self.steps(false)?)
            }
        };
        self.locals().leave(depth);
        self.expect_words(&["END", &word])?;
        self.end_label(label.as_deref())?;
        Ok(Step::Loop { label, kind, steps })
    }

    /// Parses `variable IN ..` of FOR. The variable is in scope afterwards.
    fn for_range(&mut self) -> SqlResult<LoopKind> {
        let name = self.name()?;
        self.expect_word("IN")?;
        let reverse = self.eat_word("REVERSE");
        if !reverse && self.kind() == Kind::LeftParen && self.query_follows(1) {
            self.advance();
            let query = Box::new(self.code(Self::query)?);
            self.expect(Kind::RightParen)?;
            return Ok(LoopKind::Query { variable: self.locals().declare_as(&name, true), query });
        }
        let names_cursor = !reverse && self.is_name_at(0) && self.cursor_use_ends_with("DO");
        if names_cursor {
            let cursor = self.name()?;
            let arguments = self.optional_arguments()?;
            return Ok(LoopKind::Cursor {
                variable: self.locals().declare_as(&name, true),
                cursor,
                arguments,
            });
        }
        let from = self.scalar()?;
        self.expect(Kind::DotDot)?;
        let to = self.scalar()?;
        Ok(LoopKind::Numbers { variable: self.locals().declare_as(&name, false), reverse, from, to })
    }

    /// Returns whether `name` or `name(..)` follows, and then the word.
    fn cursor_use_ends_with(&self, word: &str) -> bool {
        let mut ahead = 1;
        if self.peek(ahead).kind == Kind::LeftParen {
            let mut depth = 0;
            loop {
                match self.peek(ahead).kind {
                    Kind::LeftParen => depth += 1,
                    Kind::RightParen => depth -= 1,
                    Kind::End => return false,
                    _ => {}
                }
                ahead += 1;
                if depth == 0 {
                    break;
                }
            }
        }
        self.is_word_at(ahead, word)
    }

    fn optional_arguments(&mut self) -> SqlResult<Vec<Code<Expr>>> {
        match self.kind() == Kind::LeftParen {
            true => self.paren_list(|p| p.scalar()),
            false => Ok(Vec::new()),
        }
    }

    /// Parses FETCH after the word.
    fn fetch_step(&mut self) -> SqlResult<Step> {
        if self.eat_words(&["GROUP", "NEXT", "ROW"]) {
            return Ok(Step::FetchGroup);
        }
        if self.eat_word("NEXT") {
            self.expect_word("FROM")?;
        } else {
            self.eat_word("FROM");
        }
        let name = self.name()?;
        self.expect_word("INTO")?;
        let action = CursorAction::Fetch(self.list(Self::assigned_variable)?);
        Ok(Step::Cursor { name, action, end: self.end_in_body() })
    }

    // ---- SET and GET DIAGNOSTICS

    /// Parses SET. A name without a scope may be a local variable, a field of one, or a column of NEW.
    fn set_step(&mut self) -> SqlResult<Step> {
        let scoped =
            usize::from(["GLOBAL", "SESSION", "LOCAL"].into_iter().any(|word| self.is_word_at(1, word)));
        let is_assignment = !self.is_word_at(1 + scoped, "TRANSACTION");
        if is_assignment {
            let before = self.at;
            self.advance();
            let assignments = self.list(Self::body_assignment)?;
            if assignments.iter().any(|item| matches!(item, BodyAssignment::Variable { .. })) {
                return Ok(Step::Set(assignments));
            }
            // No item is a variable of the body: it is an ordinary statement.
            self.at = before;
        }
        Ok(Step::Sql(Box::new(self.code(Self::statement)?)))
    }

    fn body_assignment(&mut self) -> SqlResult<BodyAssignment> {
        if !self.assigned_variable_follows() {
            return Ok(BodyAssignment::Other(Box::new(self.code(Self::set_item)?)));
        }
        let to = self.assigned_variable()?;
        self.assign_sign()?;
        let alone = matches!(self.peek(1).kind, Kind::End | Kind::Semicolon | Kind::Comma);
        if alone && self.eat_word("DEFAULT") {
            return Ok(BodyAssignment::Variable { to, value: None });
        }
        let value = self.code(|p| {
            let is_word = alone && p.is_any(&["ON", "ALL", "BINARY", "ROW", "SYSTEM"]);
            match is_word {
                true => Ok(p.text_of_word()),
                false => p.in_scalar(Self::expr),
            }
        })?;
        Ok(BodyAssignment::Variable { to, value: Some(value) })
    }

    /// Consumes a word that is a value of settings, and returns its text as a literal.
    fn text_of_word(&mut self) -> Expr {
        let text = self.any_name();
        Expr::Literal(Literal::fixed(literal::string(
            text.into_bytes(),
            self.options.collation,
            self.options.mode,
        )))
    }

    /// Parses a variable that receives a value. A local variable that is not declared is error 1327.
    pub(in super::super) fn target(&mut self) -> SqlResult<Target> {
        match self.is_name_at(0) {
            true => self.assigned_variable().map(Target::Local),
            false => self.user_variable().map(Target::User),
        }
    }
}

/// The program that a body belongs to.
#[derive(Clone, Copy)]
pub(super) enum BodyOf<'b> {
    /// An event, or a compound statement outside of programs.
    Plain,
    Routine(&'b [Parameter]),
    Trigger(TriggerTiming, TriggerEvent),
}

impl BodyOf<'_> {
    fn parameters(&self) -> &[Parameter] {
        match self {
            BodyOf::Routine(parameters) => parameters,
            BodyOf::Plain | BodyOf::Trigger(..) => &[],
        }
    }

    fn trigger(&self) -> Option<(TriggerTiming, TriggerEvent)> {
        match self {
            BodyOf::Trigger(timing, event) => Some((*timing, *event)),
            BodyOf::Plain | BodyOf::Routine(_) => None,
        }
    }
}
