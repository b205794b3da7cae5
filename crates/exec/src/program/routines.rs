//! Compiled and bound routines of the catalog.

use std::sync::Arc;

use cohort_catalog::{ProgramSettings, Routine};
use cohort_config::VarId;
use cohort_program::{Bound, Host, Program, ProgramKind, bind, compile};
use cohort_protocol::NullSink;
use cohort_session::SessionState;
use cohort_sql::ParseOptions;
use cohort_sql::ast::{self, Statement};
use cohort_types::{DataAccess, RoutineKind, SqlError, SqlResult};

use super::cache::Routines;
use super::session_host::SessionHost;
use crate::session::Session;

impl Routines {
    /// Returns the compiled form of a routine.
    pub(super) fn program_of(
        &self,
        routine: &Arc<Routine>,
        session: &SessionState,
    ) -> SqlResult<Arc<Program>> {
        if let Some(program) = self.with_entry(routine, |compiled| Arc::clone(&compiled.program)) {
            return Ok(program);
        }
        let program = Arc::new(compiled(routine)?);
        let entries_max = session.db.globals.uint(VarId::StoredProgramCache);
        self.add(routine, &program, usize::try_from(entries_max).unwrap_or(usize::MAX));
        Ok(program)
    }

    /// Returns a routine bound for the host's current settings, which are those of the routine.
    pub(super) fn bound_of(&self, routine: &Arc<Routine>, host: &mut dyn Host) -> SqlResult<Arc<Bound>> {
        let state = host.session();
        let (settings, version) = (state.settings.plan_key, state.db.catalog_version());
        let found = self.with_entry(routine, |compiled| compiled.bound(settings, version));
        if let Some(Some(bound)) = found {
            return Ok(bound);
        }
        let program = self.program_of(routine, state)?;
        let bound = Arc::new(bind(&program, None, host)?);
        self.with_entry(routine, |compiled| compiled.add(settings, version, &bound));
        Ok(bound)
    }
}

impl Session {
    /// Returns the compiled form of a routine.
    pub(super) fn program_of(&self, routine: &Arc<Routine>) -> SqlResult<Arc<Program>> {
        self.caches.routines.program_of(routine, &self.state)
    }

    /// Returns a routine bound for the session's current settings, which are those of the routine.
    pub(super) fn bound_of(&mut self, routine: &Arc<Routine>) -> SqlResult<Arc<Bound>> {
        let kept = Arc::clone(&self.caches);
        kept.routines.bound_of(routine, &mut SessionHost { session: self, sink: &mut NullSink })
    }
}

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
pub(crate) fn compiled(routine: &Routine) -> SqlResult<Program> {
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
