//! Functions as plans hold them ([`Callee`]), and the arguments of their OUT and INOUT parameters.
//!
//! Such an argument is a variable, which receives the value when the function has returned. A user variable
//! is assigned at once. The values of local variables are kept with the statement
//! ([`crate::StatementState::out`]) until the program takes them over; what follows in the same expression
//! reads them there ([`ChangedVariable`]).

use cohort_expr::CallBack;
use cohort_plan::ParamSource;
use cohort_sql::ast;
use cohort_types::{SqlError, SqlResult, Value};

use crate::functions::{Returned, StatementFunction};
use crate::statement::StatementContext;

/// A function as the plan that calls it holds it.
pub struct Callee {
    function: Box<dyn StatementFunction>,
    /// The arguments. Empty if the function has no OUT and INOUT parameters.
    arguments: Vec<Argument>,
}

/// An argument of a function.
#[derive(Debug)]
pub enum Argument {
    /// IN, or a placeholder.
    In,
    /// A user variable.
    User(String),
    /// A local variable: the place of its value.
    Local(u32),
    /// An OUT or INOUT argument that is no variable: error 1414.
    NoVariable,
    /// The statement takes no OUT and INOUT arguments: error 4187.
    Refused,
}

impl Argument {
    /// Returns the arguments of a call whose parameters are OUT or INOUT as `is_out` says.
    pub fn of_call(
        is_out: &[bool],
        args: &[ast::Expr],
        source: ParamSource<'_>,
        takes_out: bool,
    ) -> Vec<Argument> {
        let local = |index: u32| match source {
            ParamSource::Variables(variables) => match variables.places[index as usize] {
                place if variables.fixed.contains(&place) => Argument::NoVariable,
                place => Argument::Local(place),
            },
            // As in MariaDB, the variables of EXECUTE receive no values from functions.
            ParamSource::Literals | ParamSource::Placeholders => Argument::In,
        };
        let argument = |(is_out, arg): (&bool, &ast::Expr)| match arg {
            _ if !is_out => Argument::In,
            ast::Expr::UserVariable(_) | ast::Expr::Param(_) if !takes_out => Argument::Refused,
            ast::Expr::UserVariable(name) => Argument::User(name.clone()),
            ast::Expr::Param(index) => local(*index),
            _ => Argument::NoVariable,
        };
        is_out.iter().zip(args).map(argument).collect()
    }
}

impl Callee {
    pub fn new(function: Box<dyn StatementFunction>, arguments: Vec<Argument>) -> Callee {
        Callee { function, arguments }
    }

    /// Runs the function of a call, and assigns the values of OUT and INOUT parameters.
    pub fn call(&self, of: &CallBack, args: &[Value], ctx: &mut StatementContext<'_>) -> SqlResult<Value> {
        if self.arguments.is_empty() {
            return self.function.call(args, ctx).map(|returned| returned.value);
        }
        for (n, argument) in self.arguments.iter().enumerate() {
            match argument {
                Argument::NoVariable => {
                    let name = format!("{}.{}", of.schema, of.name);
                    return Err(SqlError::argument_is_no_variable(n + 1, &name));
                }
                Argument::Refused => return Err(SqlError::out_argument_not_allowed(n + 1, &of.name)),
                Argument::In | Argument::User(_) | Argument::Local(_) => {}
            }
        }
        let Returned { value, out } = self.function.call(args, ctx)?;
        for (argument, value) in self.arguments.iter().zip(out) {
            match (argument, value) {
                (Argument::User(name), Some(value)) => {
                    ctx.session.assign(&ast::Target::User(name.clone()), value)?;
                }
                (Argument::Local(place), Some(value)) => {
                    ctx.session.statement.out.borrow_mut().push((*place, value));
                }
                _ => {}
            }
        }
        Ok(value)
    }
}

/// Reads a local variable that a call in the same expression may have assigned.
pub(crate) struct ChangedVariable {
    /// The number of the parameter.
    pub index: usize,
    pub place: u32,
}

impl StatementFunction for ChangedVariable {
    fn call(&self, _: &[Value], ctx: &mut StatementContext<'_>) -> SqlResult<Returned> {
        let out = ctx.session.statement.out.borrow();
        let changed = out.iter().rev().find(|(place, _)| *place == self.place).map(|(_, value)| value);
        Ok(changed.unwrap_or(&ctx.params[self.index]).clone().into())
    }
}
