//! Compilation of the catalog's routines and triggers.

use cohort_catalog::{Column, ProgramSettings, Routine, Table, Trigger};
use cohort_config::VarId;
use cohort_program::{Program, ProgramKind, ResultColumn, compile};
use cohort_sql::ParseOptions;
use cohort_sql::ast::{self, Statement};
use cohort_types::{DataAccess, RoutineKind, SqlError, SqlResult};

/// The settings of a routine's creation.
pub(super) const OF_ROUTINES: &[VarId] =
    &[VarId::SqlMode, VarId::CharacterSetClient, VarId::CharacterSetConnection, VarId::CollationConnection];

/// Parses the definition of a stored program with the settings of its creation. Returns an error that names
/// it if the text is damaged.
pub(super) fn parsed(text: &str, settings: &ProgramSettings, name: (&str, &str)) -> SqlResult<ast::Program> {
    let options = ParseOptions {
        mode: settings.sql_mode.into(),
        collation: settings.connection,
        ..ParseOptions::default()
    };
    match cohort_sql::parse(text.as_bytes(), &options) {
        Ok(cohort_sql::Parsed { statement: Statement::Program(program), .. }) => Ok(*program),
        _ => Err(damaged(name)),
    }
}

/// Returns the error for a stored program whose text is damaged.
pub(super) fn damaged((schema, name): (&str, &str)) -> SqlError {
    SqlError::damaged_routine(&format!("{schema}.{name}"))
}

/// Parses and compiles a routine.
pub(crate) fn compiled_routine(routine: &Routine) -> SqlResult<Program> {
    let word = match routine.kind {
        RoutineKind::Procedure => "PROCEDURE",
        RoutineKind::Function if routine.aggregate => "AGGREGATE FUNCTION",
        RoutineKind::Function => "FUNCTION",
    };
    let returns = match routine.returns.is_empty() {
        true => String::new(),
        false => format!("RETURNS {}", routine.returns),
    };
    let text = format!("CREATE {word} p({}) {returns} {}", routine.parameters, routine.body);
    let name = (&*routine.schema, &*routine.name);
    let ast::Program::CreateRoutine(create) = parsed(&text, &routine.settings, name)? else {
        return Err(damaged(name));
    };
    let kind = ProgramKind::of_routine(routine.kind, routine.aggregate);
    let body = text.get(create.body.range.clone()).ok_or_else(|| damaged(name))?;
    let returns = create.returns.as_ref().map(|(of, _)| of);
    let mut program = compile(kind, &routine.name, &create.parameters, returns, &create.body, body)?;
    program.schema = Some(routine.schema.clone());
    program.first_line = lines_before_body(routine) + 1;
    Ok(program)
}

/// Returns the number of lines before the body in the text of SHOW CREATE: MariaDB counts lines in it.
fn lines_before_body(routine: &Routine) -> usize {
    let written = [
        true,
        routine.access != DataAccess::ContainsSql,
        routine.deterministic,
        routine.by_invoker,
        !routine.comment.is_empty(),
    ];
    let breaks =
        [&routine.parameters, &routine.returns, &routine.comment].map(|text| text.matches('\n').count());
    written.into_iter().filter(|is_written| *is_written).count() + breaks.iter().sum::<usize>()
}

/// Parses and compiles a trigger.
pub(crate) fn compiled_trigger(table: &Table, trigger: &Trigger) -> SqlResult<Program> {
    let text = format!("CREATE {}", trigger.text);
    let name = (&*table.name.schema, &*trigger.name);
    let ast::Program::CreateTrigger(create) = parsed(&text, &trigger.settings, name)? else {
        return Err(damaged(name));
    };
    let body = text.get(create.body.range.clone()).ok_or_else(|| damaged(name))?;
    let kind = ProgramKind::Trigger(trigger.timing, trigger.event);
    let mut program = compile(kind, &trigger.name, &[], None, &create.body, body)?;
    program.schema = Some(table.name.schema.clone());
    program.first_line = text[..create.body.range.start].matches('\n').count() + 1;
    Ok(program)
}

/// Returns the columns of a table.
pub(super) fn columns_of_table(table: &Table) -> Vec<ResultColumn> {
    let of = |column: &Column| ResultColumn { name: column.name.clone(), ty: column.ty.clone() };
    table.columns.iter().map(of).collect()
}
