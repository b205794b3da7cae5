//! CHECK PROCEDURE, FUNCTION and TRIGGER: reports what a body refers to and what no longer exists or is no
//! longer allowed.
//!
//! The program is compiled, bound and planned with its settings and the privileges of its definer, as a run
//! does it, and nothing runs. Not checked: statements in texts (PREPARE, EXECUTE IMMEDIATE), and DDL and
//! administration, whose tables may have to be missing.

use std::sync::Arc;

use cohort_catalog::{Routine, Table, Trigger};
use cohort_expr::SessionHooks;
use cohort_plan::meta::expression_meta;
use cohort_program::{BodyStatement, Bound, Part, RowsFor};
use cohort_protocol::{ColumnMeta, NullSink, ResultSink};
use cohort_session::{Job, access};
use cohort_sql::ast::{CheckedKind, ObjectName, Statement};
use cohort_types::{Collation, ColumnType, ErrorCode, RoutineKind, SqlError, SqlResult, TypeKind, Value};

use super::cache::Compiled;
use super::call::check_arguments;
use super::procedures::find_procedure;
use super::routines::{compiled_routine, compiled_trigger};
use super::session_host::SessionHost;
use crate::cached_plan::make_inner_plan;
use crate::session::Session;

/// A finding of CHECK.
struct Finding {
    line: Option<usize>,
    /// Whether the program itself creates the table that is missing.
    is_created: bool,
    error: SqlError,
}

/// A program to check.
struct Checked {
    /// The program as a routine: its definer and its settings.
    routine: Routine,
    /// That of a trigger.
    table: Option<Arc<Table>>,
    compiled: SqlResult<Arc<Compiled>>,
}

impl Session {
    /// Runs CHECK PROCEDURE, FUNCTION or TRIGGER. Errors: 1305, 1360 without such a program, 1370 if the
    /// account may not see the body of a routine.
    pub(crate) fn check_program(
        &mut self,
        kind: CheckedKind,
        name: &ObjectName,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let checked = self.checked(kind, name)?;
        let shown = format!("{}.{}", checked.routine.schema, checked.routine.name);
        let findings = match checked.compiled {
            Err(error) => vec![Finding { line: None, is_created: false, error }],
            Ok(compiled) => self.findings(&checked.routine, checked.table.as_deref(), &compiled)?,
        };
        let row = |line: Option<usize>, level: &str, code: Option<u16>, message: String| {
            let number = |n: Option<u64>| n.map_or(Value::Null, Value::UInt);
            vec![
                Value::text(&*shown),
                number(line.map(|line| line as u64)),
                Value::text(level),
                number(code.map(u64::from)),
                Value::text(message),
            ]
        };
        let mut rows: Vec<Vec<Value>> = findings
            .into_iter()
            .map(|found| {
                let level = if found.is_created { "Note" } else { "Error" };
                row(found.line, level, Some(found.error.number()), found.error.message.to_string())
            })
            .collect();
        if rows.is_empty() {
            rows.push(row(None, "status", None, "OK".to_owned()));
        }
        self.send_rows(job.more, &columns(), &rows, sink);
        Ok(())
    }

    fn checked(&self, kind: CheckedKind, name: &ObjectName) -> SqlResult<Checked> {
        let current = self.state.current_schema.as_deref();
        let schema = name.db.as_deref().or(current).ok_or_else(SqlError::no_database_selected)?;
        let catalog = self.state.db.catalog();
        match kind {
            CheckedKind::Routine(kind) => {
                let full_name = || format!("{schema}.{}", name.name);
                let found = catalog.routine(kind, schema, &name.name);
                let routine = found.ok_or_else(|| SqlError::does_not_exist(kind.name(), &full_name()))?;
                if !access::sees_body(&self.state, routine) {
                    let (user, host) = self.state.denied_logins();
                    return Err(SqlError::routine_access_denied("check", user, host, schema, &name.name));
                }
                let compiled = compiled_routine(routine).map(Compiled::new);
                Ok(Checked { routine: Routine::clone(routine), table: None, compiled })
            }
            CheckedKind::Trigger => {
                let found = catalog.schemas.get(schema).and_then(|schema| schema.trigger(&name.name));
                let (table, trigger) = found.ok_or_else(SqlError::unknown_trigger)?;
                let compiled = compiled_trigger(table, trigger).map(Compiled::new);
                Ok(Checked { routine: routine_of(table, trigger), table: Some(Arc::clone(table)), compiled })
            }
        }
    }

    /// Checks a program as its definer and with its settings.
    fn findings(
        &mut self,
        routine: &Routine,
        table: Option<&Table>,
        compiled: &Compiled,
    ) -> SqlResult<Vec<Finding>> {
        let whole = |error| vec![Finding { line: None, is_created: false, error }];
        let before = match self.settings_of_definer(routine) {
            Ok(before) => before,
            Err(error) => return Ok(whole(error)),
        };
        let bound = compiled.bound(table, &mut SessionHost { session: self, sink: &mut NullSink });
        let outcome = match bound {
            Ok(bound) => self.findings_in(&bound),
            Err(error) => Ok(whole(error)),
        };
        self.state.statement.planning_warnings.borrow_mut().clear();
        self.restore_settings(before);
        outcome
    }

    fn findings_in(&mut self, bound: &Bound) -> SqlResult<Vec<Finding>> {
        let created: Vec<String> =
            bound.program.run_statements().filter_map(|code| created(&code.of)).collect();
        let mut findings = Vec::new();
        for (line, part) in bound.parts(&mut SessionHost { session: self, sink: &mut NullSink }) {
            self.state.check_interrupt()?;
            let Err(error) = self.check_part(&part) else { continue };
            let names = |table: &String| error.message.to_lowercase().contains(&format!(".{table}'"));
            let is_created = error.code == ErrorCode::NoSuchTable && created.iter().any(names);
            findings.push(Finding { line: Some(line), is_created, error });
        }
        Ok(findings)
    }

    fn check_part(&self, part: &Part<'_>) -> SqlResult<()> {
        match part {
            Part::Statement(of) => self.check_plan(of),
            Part::Expression(of) => self.check_plan(of),
            Part::Fails(error) => Err(error.clone()),
            Part::Call { procedure, is_variable } => {
                let routine = find_procedure(&self.state, procedure)?;
                let compiled = self.caches.routines.compiled(&routine, &self.state)?;
                check_arguments(&routine, &compiled.program, is_variable)
            }
        }
    }

    /// Plans a statement with NULL for its variables.
    fn check_plan(&self, of: &BodyStatement) -> SqlResult<()> {
        let (catalog, nulls) = (self.state.db.catalog(), vec![Value::Null; of.types.len()]);
        let value = RowsFor::Value { is_strict: false };
        make_inner_plan((&catalog, &self.state), &nulls, of.source(), &of.statement, value).map(drop)
    }
}

/// Returns the name of the table that a statement creates, in lower case.
fn created(statement: &Statement) -> Option<String> {
    match statement {
        Statement::CreateTable(create) => Some(create.name.name.to_lowercase()),
        _ => None,
    }
}

/// Returns a trigger as a routine of its definer.
fn routine_of(table: &Table, trigger: &Trigger) -> Routine {
    Routine {
        schema: table.name.schema.clone(),
        name: trigger.name.clone(),
        kind: RoutineKind::Procedure,
        aggregate: false,
        parameters: String::new(),
        returns: String::new(),
        body: String::new(),
        deterministic: false,
        access: cohort_types::DataAccess::ContainsSql,
        by_invoker: false,
        comment: String::new(),
        definer: trigger.definer.clone(),
        settings: trigger.settings,
        created_at: 0,
        modified_at: 0,
    }
}

fn columns() -> Vec<ColumnMeta> {
    let text = |name: &str, chars: u32, nullable: bool| {
        let ty = ColumnType::string(TypeKind::VarChar, chars, Collation::UTF8MB3_GENERAL_CI);
        expression_meta(name.to_owned(), &cohort_expr::ExprType::of_column(&ty, nullable))
    };
    let number = |name: &str| {
        let ty = ColumnType::int(TypeKind::BigInt, Some(21), true);
        expression_meta(name.to_owned(), &cohort_expr::ExprType::of_column(&ty, true))
    };
    vec![
        text("Program", 129, false),
        number("Line"),
        text("Level", 10, false),
        number("Code"),
        text("Message", 512, false),
    ]
}
