//! The local variables of a body, and their uses.
//!
//! Each declared variable has a slot of its own. A use of a variable in an expression becomes
//! [`Expr::Param`], the number of the use within its [`Code`], so that a statement of a body is an ordinary
//! statement with parameters.

use cohort_types::{SqlError, SqlResult};

use super::super::Parser;
use crate::ast::{Code, ColumnRef, Expr, TriggerEvent, TriggerTiming, Variable, VariableType, VariableUse};
use crate::lexer::Kind;

/// The variables in scope at a token of a body.
pub(in super::super) struct Locals {
    /// Offset of the body in the text.
    pub start: usize,
    /// Those of inner blocks last.
    scope: Vec<Local>,
    /// Number of slots so far.
    slots: u32,
    /// The trigger whose body it is. It has the rows NEW and OLD.
    trigger: Option<(TriggerTiming, TriggerEvent)>,
    /// Uses of variables in the current [`Code`].
    uses: Vec<VariableUse>,
    /// Number of SELECTs around an expression that is none of a statement: its names, outside of further
    /// SELECTs, must be variables.
    scalar_at: Option<u32>,
}

struct Local {
    /// In lower case.
    name: String,
    slot: u32,
    is_row: bool,
}

impl Locals {
    pub fn new(start: usize, trigger: Option<(TriggerTiming, TriggerEvent)>) -> Locals {
        Locals { start, scope: Vec::new(), slots: 0, trigger, uses: Vec::new(), scalar_at: None }
    }

    /// Returns the number of slots declared so far.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Declares a variable and returns its slot.
    pub fn declare(&mut self, name: &str, of: &VariableType) -> u32 {
        let is_row = match of {
            VariableType::TypeOfVariable(slot) => {
                self.scope.iter().any(|local| local.slot == *slot && local.is_row)
            }
            _ => of.is_row(),
        };
        self.declare_as(name, is_row)
    }

    /// Declares the variable of a FOR loop.
    pub fn declare_as(&mut self, name: &str, is_row: bool) -> u32 {
        let slot = self.slots;
        self.slots += 1;
        self.scope.push(Local { name: name.to_lowercase(), slot, is_row });
        slot
    }

    /// Returns the number of variables in scope, for [`Locals::leave`].
    pub fn enter(&self) -> usize {
        self.scope.len()
    }

    /// Ends the scope of the variables declared since [`Locals::enter`].
    pub fn leave(&mut self, depth: usize) {
        self.scope.truncate(depth);
    }

    /// Returns whether a block has declared a variable of this name since [`Locals::enter`].
    pub fn is_declared_since(&self, depth: usize, name: &str) -> bool {
        let name = name.to_lowercase();
        self.scope[depth..].iter().any(|local| local.name == name)
    }

    fn find(&self, name: &str) -> Option<&Local> {
        let name = name.to_lowercase();
        self.scope.iter().rev().find(|local| local.name == name)
    }

    /// Returns the slot of a variable in scope.
    pub fn slot(&self, name: &str) -> Option<u32> {
        self.find(name).map(|local| local.slot)
    }

    /// Returns the variable that `name` or `first.name` means, `None` if it is no variable. Error 1363 for
    /// NEW or OLD in a trigger whose rows do not include it.
    fn variable(&self, first: Option<&str>, name: &str) -> SqlResult<Option<Variable>> {
        let Some(first) = first else { return Ok(self.find(name).map(|local| Variable::Slot(local.slot))) };
        if let Some(local) = self.find(first).filter(|local| local.is_row) {
            return Ok(Some(Variable::Field(local.slot, name.to_owned())));
        }
        let Some((_, event)) = self.trigger else { return Ok(None) };
        match () {
            () if first.eq_ignore_ascii_case("NEW") => match event {
                TriggerEvent::Delete => Err(SqlError::no_such_row_in_trigger("NEW", "DELETE")),
                _ => Ok(Some(Variable::New(name.to_owned()))),
            },
            () if first.eq_ignore_ascii_case("OLD") => match event {
                TriggerEvent::Insert => Err(SqlError::no_such_row_in_trigger("OLD", "INSERT")),
                _ => Ok(Some(Variable::Old(name.to_owned()))),
            },
            () => Ok(None),
        }
    }
}

impl Parser<'_> {
    /// Returns whether the parser is in a body.
    pub(in super::super) fn is_in_body(&self) -> bool {
        self.locals.is_some()
    }

    pub(super) fn locals(&mut self) -> &mut Locals {
        self.locals.as_mut().expect("the parser is in a body")
    }

    /// Parses a part of a body with its uses of variables.
    pub(super) fn code<T>(&mut self, rule: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<Code<T>> {
        let from = self.at;
        let outer = std::mem::take(&mut self.locals().uses);
        let of = rule(self);
        let uses = std::mem::replace(&mut self.locals().uses, outer);
        Ok(Code { of: of?, uses, range: self.body_range(from) })
    }

    /// Parses an expression of the body itself. A name in it that is no variable is error 1327.
    pub(super) fn scalar(&mut self) -> SqlResult<Code<Expr>> {
        self.code(|p| p.in_scalar(Self::expr))
    }

    /// Runs a rule whose names must be variables.
    pub(super) fn in_scalar<T>(&mut self, rule: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        let depth = self.select_depth;
        let outer = self.locals().scalar_at.replace(depth);
        let outcome = rule(self);
        self.locals().scalar_at = outer;
        outcome
    }

    /// Returns the use of a variable that a name means, if it means one. `from` is the index of its first
    /// token; the name has been consumed.
    pub(in super::super) fn variable_use(
        &mut self,
        column: &ColumnRef,
        from: usize,
    ) -> SqlResult<Option<Expr>> {
        let Some(locals) = self.locals.as_ref() else { return Ok(None) };
        let found = match column.db {
            None => locals.variable(column.table.as_deref(), &column.name)?,
            Some(_) => None,
        };
        let Some(of) = found else {
            if locals.scalar_at == Some(self.select_depth) {
                let first = column.db.as_ref().or(column.table.as_ref()).unwrap_or(&column.name);
                return Err(SqlError::undeclared_variable(first));
            }
            return Ok(None);
        };
        let range = self.body_range(from);
        let uses = &mut self.locals().uses;
        uses.push(VariableUse { of, range });
        Ok(Some(Expr::Param(uses.len() as u32 - 1)))
    }

    /// Returns whether the next word is a variable in scope.
    pub(in super::super) fn variable_follows(&self) -> bool {
        let Some(locals) = &self.locals else { return false };
        self.is_name_at(0) && locals.find(&self.name_of(self.token())).is_some()
    }

    /// Parses a variable that receives a value: `name` or `name.field`. Error 1327 if it is not declared.
    pub(in super::super) fn assigned_variable(&mut self) -> SqlResult<Variable> {
        let name = self.name()?;
        let field = if self.eat(Kind::Dot) { Some(self.name_after_dot()?) } else { None };
        let trigger = self.locals.as_ref().and_then(|locals| locals.trigger);
        if trigger.is_some() && field.is_some() && name.eq_ignore_ascii_case("OLD") {
            return Err(SqlError::trigger_cannot_change_row("OLD", ""));
        }
        let found = match (&self.locals, &field) {
            (None, _) => None,
            (Some(locals), None) => locals.variable(None, &name)?,
            (Some(locals), Some(field)) => locals.variable(Some(&name), field)?,
        };
        match (found, trigger) {
            (Some(Variable::New(_)), Some((TriggerTiming::After, _))) => {
                Err(SqlError::trigger_cannot_change_row("NEW", "after "))
            }
            (Some(variable), _) => Ok(variable),
            (None, _) => Err(SqlError::undeclared_variable(&name)),
        }
    }

    /// Returns whether an assignment to a variable follows: to a local variable, to a field of one, or to a
    /// column of NEW or OLD.
    pub(super) fn assigned_variable_follows(&self) -> bool {
        let Some(locals) = self.locals.as_ref().filter(|_| self.is_name_at(0)) else { return false };
        let name = self.name_of(self.token());
        match self.peek(1).kind {
            Kind::Equal | Kind::Assign => locals.find(&name).is_some(),
            Kind::Dot => {
                let is_row = locals.find(&name).is_some_and(|local| local.is_row);
                let is_trigger_row = locals.trigger.is_some()
                    && (name.eq_ignore_ascii_case("NEW") || name.eq_ignore_ascii_case("OLD"));
                is_row || is_trigger_row
            }
            _ => false,
        }
    }
}
