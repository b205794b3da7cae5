//! CALL: the routine, its arguments, the final OK.

use std::borrow::Cow;
use std::sync::Arc;

use cohort_catalog::Routine;
use cohort_config::VarId;
use cohort_plan::Parameter;
use cohort_program::{Bound, Finished, Program};
use cohort_protocol::{ColumnMeta, NullSink, ResultHead, ResultSink, StatusFlags};
use cohort_session::{Job, ProgramRule, StatementKind, kind_of, traits_of};
use cohort_sql::ast::{BinaryOp, Expr, Literal, LiteralKind, ObjectName, ParameterMode, Target};
use cohort_types::{SqlError, SqlResult, Value};

use super::cache::Compiled;
use super::procedures::find_procedure;
use super::running::OutParameters;
use super::session_host::SessionHost;
use crate::session::Session;

impl Session {
    /// Runs CALL. A user variable receives the value of its OUT or INOUT parameter.
    pub(crate) fn call_statement(
        &mut self,
        name: &ObjectName,
        arguments: &[Expr],
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let routine = self.procedure(name)?;
        // A placeholder is a variable of the client.
        let takes_value = |arg: &Expr| matches!(arg, Expr::UserVariable(_) | Expr::Param(_));
        let is_variable: Vec<bool> = arguments.iter().map(takes_value).collect();
        let compiled = self.caches.routines.compiled(&routine, &self.state)?;
        let program = &compiled.program;
        check_arguments(&routine, program, &is_variable)?;
        self.check_more_results(program, &format!("{}.{}", routine.schema, routine.name), sink)?;
        let mut args = Vec::with_capacity(arguments.len());
        let parameters = program.declared_parameters();
        for ((arg, parameter), (mode, _)) in arguments.iter().zip(&parameters).zip(&program.parameters) {
            args.push(match mode {
                ParameterMode::Out => Value::Null,
                ParameterMode::In | ParameterMode::InOut => {
                    self.eval_argument(&*for_parameter(arg, parameter)?, job)?
                }
            });
        }
        let ((finished, bound), changed) =
            self.run_program(sink, |session, sink| session.run_routine((&routine, &compiled), args, sink))?;
        self.end_partial_result(sink);
        let (mut columns, mut row) = (Vec::new(), Vec::new());
        for (n, (arg, value)) in arguments.iter().zip(finished.out).enumerate() {
            match (arg, value, &mut self.programs.out) {
                (_, None, _) => {}
                (Expr::UserVariable(name), Some(value), _) => {
                    self.state.assign(&Target::User(name.clone()), value)?;
                }
                (Expr::Param(param), Some(value), OutParameters::Kept(kept)) => kept.push((*param, value)),
                (_, Some(value), _) => {
                    let place = bound.parameter(n);
                    columns
                        .push(cohort_plan::meta::expression_meta(place.name.clone(), &place.ty.expr_type()));
                    row.push(value);
                }
            }
        }
        if !row.is_empty() {
            self.send_out_parameters(&columns, &row, sink);
        }
        self.send_ok(job.more, changed, 0, "", sink);
        Ok(())
    }

    /// Calls a procedure from a body. Returns the values of OUT and INOUT parameters.
    pub(super) fn call(
        &mut self,
        routine: &Arc<Routine>,
        args: Vec<Value>,
        is_variable: &[bool],
        sink: &mut dyn ResultSink,
    ) -> SqlResult<Vec<Option<Value>>> {
        let compiled = self.caches.routines.compiled(routine, &self.state)?;
        check_arguments(routine, &compiled.program, is_variable)?;
        self.diagnostics.begin();
        let ((finished, _), changed) =
            self.run_program(sink, |session, sink| session.run_routine((routine, &compiled), args, sink))?;
        self.programs.affected += changed;
        Ok(finished.out)
    }

    /// Returns the procedure of a name, if the session may execute it. Errors 1370 and 1305.
    pub(super) fn procedure(&self, name: &ObjectName) -> SqlResult<Arc<Routine>> {
        find_procedure(&self.state, name)
    }

    /// Runs a routine with its definer and its settings.
    pub(super) fn run_routine(
        &mut self,
        (routine, compiled): (&Arc<Routine>, &Compiled),
        args: Vec<Value>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<(Finished, Arc<Bound>)> {
        let recursion = self.programs.calls.iter().filter(|running| running.is_same(routine)).count() as u64;
        let limit = self.state.settings.vars.uint(VarId::MaxSpRecursionDepth);
        if recursion > limit {
            return Err(SqlError::recursion_limit(limit, &routine.name));
        }
        self.programs.calls.push(Arc::clone(routine));
        let outcome = self.run_as(routine, compiled, args, sink);
        self.programs.calls.pop();
        outcome
    }

    /// Runs a compiled program with the definer and the settings of `routine`.
    pub(super) fn run_as(
        &mut self,
        routine: &Routine,
        compiled: &Compiled,
        args: Vec<Value>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<(Finished, Arc<Bound>)> {
        let mode = self.state.settings.env.sql_mode;
        let before = self.settings_of_program(Some(routine))?;
        let bound = compiled.bound(None, &mut SessionHost { session: self, sink: &mut NullSink });
        let outcome = bound.and_then(|bound| Ok((self.run_bound(&bound, (args, mode), sink)?, bound)));
        self.restore_settings(before);
        outcome
    }

    /// Sends the values of OUT parameters as a row, for a client of the binary protocol.
    fn send_out_parameters(&mut self, columns: &[ColumnMeta], row: &[Value], sink: &mut dyn ResultSink) {
        let status = self.status_for(true).with(StatusFlags::PS_OUT_PARAMS);
        sink.start(columns, ResultHead { status, warnings: 0 });
        sink.row(row);
        sink.finish(status, 0);
    }

    /// Error 1312 if the program may return rows and the client takes only one result.
    pub(super) fn check_more_results(
        &self,
        program: &Program,
        name: &str,
        sink: &dyn ResultSink,
    ) -> SqlResult<()> {
        let returns_rows = |statement: &cohort_sql::ast::Statement| {
            let is_dynamic =
                matches!(kind_of(statement), StatementKind::Execute | StatementKind::ExecuteImmediate);
            is_dynamic || traits_of(statement).programs == ProgramRule::NoResultSet
        };
        match sink.takes_more_results() || !program.run_statements().any(|code| returns_rows(&code.of)) {
            true => Ok(()),
            false => Err(SqlError::no_result_set_here(name)),
        }
    }
}

/// Returns the argument for a parameter: a hexadecimal literal is a number for a numeric one. Error 4078 for
/// a row.
fn for_parameter<'a>(arg: &'a Expr, parameter: &Parameter) -> SqlResult<Cow<'a, Expr>> {
    let is_hex = |kind| matches!(kind, LiteralKind::Hex | LiteralKind::Bit);
    match arg {
        Expr::Row(_) => parameter.refuse_row().map(|()| Cow::Borrowed(arg)),
        Expr::Literal(literal) if is_hex(literal.kind) && parameter.numeric_kind().is_some() => {
            let zero = Expr::Literal(Literal::fixed(Value::Int(0)));
            Ok(Cow::Owned(Expr::Binary {
                op: BinaryOp::Add,
                left: Box::new(arg.clone()),
                right: Box::new(zero),
            }))
        }
        _ => Ok(Cow::Borrowed(arg)),
    }
}

/// Checks the arguments: error 1318 for their number, 1414 for an OUT or INOUT argument that is no variable.
pub(super) fn check_arguments(routine: &Routine, program: &Program, is_variable: &[bool]) -> SqlResult<()> {
    let (name, wanted) = (format!("{}.{}", routine.schema, routine.name), program.parameters.len());
    if is_variable.len() != wanted {
        return Err(SqlError::wrong_argument_count("PROCEDURE", &name, wanted, is_variable.len()));
    }
    let modes = program.parameters.iter().map(|(mode, _)| mode.is_out());
    match modes.zip(is_variable).position(|(is_out, is_variable)| is_out && !is_variable) {
        Some(n) => Err(SqlError::argument_is_no_variable(n + 1, &name)),
        None => Ok(()),
    }
}
