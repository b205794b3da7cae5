//! information_schema.ROUTINE_LINES: executions and time of the lines of stored programs.
//!
//! The lines of a program are shown to the accounts that may see its body.

use cohort_ddl::create_text::ShowStyle;
use cohort_observe::ProgramName;
use cohort_session::access::sees_body;
use cohort_session::{StatementContext, WantedNames};
use cohort_types::{Privilege, RoutineKind, SqlResult, Value};

use super::cells::{number, text};
use super::schema_table::SchemaTable;

/// A program whose body the account may see.
struct Shown {
    name: ProgramName,
    body: String,
    /// The text of SHOW CREATE.
    text: String,
}

pub(super) fn rows(
    out: &SchemaTable,
    wanted: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for name in ctx.db.routine_lines.names() {
        ctx.check_interrupt()?;
        if !wanted.has_schema(&name.schema) {
            continue;
        }
        let Some(shown) = shown(ctx, name) else { continue };
        let Some(counted) = ctx.db.routine_lines.of(&shown.name) else { continue };
        // The program was defined again, and did not run since.
        if !counted.is_of(&shown.body) {
            continue;
        }
        let lines: Vec<&str> = shown.text.lines().collect();
        for (line, count) in counted.lines {
            let source = lines.get(line as usize - 1).map_or(Value::Null, |source| text(*source));
            rows.push(out.row([
                ("ROUTINE_SCHEMA", text(&*shown.name.schema)),
                ("ROUTINE_NAME", text(&*shown.name.name)),
                ("ROUTINE_TYPE", text(shown.name.kind)),
                ("LINE", number(line)),
                ("EXECUTIONS", number(count.executions)),
                ("TIME_NS", number(count.time_ns)),
                ("SOURCE", source),
            ]));
        }
    }
    Ok(rows)
}

/// Returns a program if it exists and the account may see its body.
fn shown(ctx: &StatementContext<'_>, name: ProgramName) -> Option<Shown> {
    let (catalog, style) = (ctx.db.catalog(), ShowStyle::of(ctx).style);
    let access = ctx.session.access();
    match name.kind {
        "TRIGGER" => {
            let (table, trigger) = catalog.schemas.get(&name.schema)?.trigger(&name.name)?;
            let held = access.on_table(&name.schema, &table.name.table);
            held.has(Privilege::Trigger).then(|| Shown {
                body: trigger.body_text().to_owned(),
                text: cohort_ddl::trigger_text(trigger, style),
                name,
            })
        }
        "EVENT" => {
            let event = catalog.event(&name.schema, &name.name)?;
            access.on_schema(&name.schema).has(Privilege::Event).then(|| Shown {
                body: event.body.clone(),
                // The body of an event begins on its own first line.
                text: event.body.clone(),
                name,
            })
        }
        kind => {
            let all = [RoutineKind::Procedure, RoutineKind::Function];
            let kind = all.into_iter().find(|known| known.name() == kind)?;
            let routine = catalog.routine(kind, &name.schema, &name.name)?;
            sees_body(ctx.session, routine).then(|| Shown {
                body: routine.body.clone(),
                text: cohort_ddl::routine_text(routine, style),
                name,
            })
        }
    }
}
