//! Common parts of the definitions of routines, triggers and events: locks, texts, checks.

use std::ops::Range;

use cohort_catalog::{AccountName, CatalogChange, Schema};
use cohort_config::VarId;
use cohort_locks::{MetadataKey, MetadataMode, ProgramKind};
use cohort_session::StatementContext;
use cohort_sql::ast::{self, Account, CreateMode};
use cohort_sql::print::Style;
use cohort_types::{Privilege, RoutineKind, SqlError, SqlResult};

use super::work::{Changes, LogText};

/// Takes the metadata lock of a program's name.
pub(super) fn lock_program(
    ctx: &mut StatementContext<'_>,
    kind: ProgramKind,
    schema: &str,
    name: &str,
    mode: MetadataMode,
) -> SqlResult<()> {
    let name = if kind == ProgramKind::Trigger { name.to_owned() } else { name.to_lowercase() };
    ctx.trx.lock_metadata(&MetadataKey::Program(kind, schema.into(), name.as_str().into()), mode)
}

/// Returns the name space of a routine's locks.
pub(super) fn lock_kind(kind: RoutineKind) -> ProgramKind {
    match kind {
        RoutineKind::Procedure => ProgramKind::Procedure,
        RoutineKind::Function => ProgramKind::Function,
    }
}

/// Requires SUPER for a statement whose program may make the binary log wrong: error 1419.
pub(super) fn check_trusted(ctx: &StatementContext<'_>) -> SqlResult<()> {
    let is_super = ctx.session.access().everywhere().has(Privilege::Super);
    if is_super || !is_suspicious(ctx) { Ok(()) } else { Err(SqlError::routine_needs_super()) }
}

/// Returns whether functions and triggers are checked for what they may do to the binary log. Those of a
/// source were checked there.
pub(super) fn is_suspicious(ctx: &StatementContext<'_>) -> bool {
    let globals = ctx.session.settings.vars.globals();
    !ctx.session.identity.is_applier
        && !globals.flag(VarId::LogBinTrustFunctionCreators)
        && globals.flag(VarId::LogBin)
}

/// Returns a part of the statement's text, without version comments that are not executed.
pub(super) fn text_of(ctx: &StatementContext<'_>, range: Range<usize>) -> String {
    let text = cohort_sql::executed_text(ctx.text, range, ctx.session.settings.parse.mode);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the range of a body in the statement's text, with the comments that follow it.
pub(super) fn body_range(ctx: &StatementContext<'_>, body: &ast::Body) -> Range<usize> {
    let mut end = body.range.end.min(ctx.text.len());
    loop {
        let rest = &ctx.text[end..];
        let space = rest.len() - rest.trim_ascii_start().len();
        let comment = &rest[space..];
        let len = match comment {
            [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => None,
            [b'/', b'*', ..] => comment.windows(2).skip(2).position(|two| two == b"*/").map(|at| at + 4),
            [b'-', b'-', ..] | [b'#', ..] => {
                Some(comment.iter().position(|byte| *byte == b'\n').unwrap_or(comment.len()))
            }
            _ => None,
        };
        let Some(len) = len else { return body.range.start..end };
        end += space + comment[..len].trim_ascii_end().len();
    }
}

/// Formats `CREATE [OR REPLACE] DEFINER=.. `.
pub(super) fn create_words(mode: CreateMode, definer: &AccountName, style: Style) -> String {
    let or_replace = if mode == CreateMode::OrReplace { "OR REPLACE " } else { "" };
    format!("CREATE {or_replace}{} ", definer_text(definer, style))
}

/// Returns how a definition with this definer clause is logged.
pub(super) fn log_of(named: Option<&Account>, text: Option<String>) -> LogText {
    match (named, text) {
        (None | Some(Account::CurrentUser), text) => LogText::ByInvoker(text),
        (Some(_), Some(text)) => LogText::Instead(text),
        (Some(_), None) => LogText::AsWritten,
    }
}

/// Formats `DEFINER=..`.
pub(super) fn definer_text((user, host): &AccountName, style: Style) -> String {
    let host = if host.is_empty() { String::new() } else { format!("@{}", style.name(host)) };
    format!("DEFINER={}{host}", style.name(user))
}

/// Drops the routines and events of a schema. Triggers are dropped with their tables.
pub(super) fn drop_all(
    ctx: &mut StatementContext<'_>,
    schema: &Schema,
    changes: &mut Changes,
) -> SqlResult<()> {
    for routine in schema.procedures.values().chain(schema.functions.values()) {
        let (kind, name) = (routine.kind, routine.name.clone());
        lock_program(ctx, lock_kind(kind), &schema.name, &name, MetadataMode::Exclusive)?;
        changes.catalog.push(CatalogChange::DropRoutine { kind, schema: schema.name.clone(), name });
    }
    for event in schema.events.values() {
        lock_program(ctx, ProgramKind::Event, &schema.name, &event.name, MetadataMode::Exclusive)?;
        let (schema, name) = (schema.name.clone(), event.name.clone());
        changes.catalog.push(CatalogChange::DropEvent { schema, name });
    }
    Ok(())
}
