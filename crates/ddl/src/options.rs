//! Table options.

use cohort_config::VarId;
use cohort_session::StatementContext;
use cohort_sql::ast::TableOption;
use cohort_types::{Collation, ErrorCode, SqlError, SqlMode, SqlResult};

use super::draft::TableDraft;
use super::page_format;
use cohort_plan::charset;

/// MariaDB's engines whose tables are stored in the default engine here.
const ACCEPTED: [&str; 6] = ["INNODB", "MYISAM", "ARIA", "MEMORY", "HEAP", "ROCKSDB"];

/// Returns an available engine's name as the catalog spells it.
fn offered<'e>(ctx: &'e StatementContext<'_>, name: &str) -> Option<&'e str> {
    let found = ctx.db.engine_named(name);
    found.map(|engine| engine.name())
}

/// Returns `default_storage_engine`, or the first engine if the setting names none that is available.
fn default_engine<'e>(ctx: &'e StatementContext<'_>) -> &'e str {
    let wanted = ctx.session.settings.vars.text(VarId::DefaultStorageEngine);
    wanted.and_then(|name| offered(ctx, &name)).unwrap_or_else(|| ctx.db.engines[0].name())
}

/// Returns the engine for a table with this ENGINE option. Note 1266 if it is another engine; error 1286.
pub(super) fn engine(ctx: &StatementContext<'_>, wanted: Option<&str>, table: &str) -> SqlResult<String> {
    let default = default_engine(ctx);
    let Some(wanted) = wanted else { return Ok(default.to_owned()) };
    if let Some(engine) = offered(ctx, wanted) {
        return Ok(engine.to_owned());
    }
    let note = SqlError::using_other_engine(default, table);
    if ACCEPTED.iter().any(|name| name.eq_ignore_ascii_case(wanted)) {
        ctx.eval.note(note.code, note.message);
        return Ok(default.to_owned());
    }
    let unknown = SqlError::unknown_engine(wanted);
    if ctx.session.settings.env.sql_mode.has(SqlMode::NO_ENGINE_SUBSTITUTION) {
        return Err(unknown);
    }
    ctx.eval.warn(unknown.code, unknown.message)?;
    ctx.eval.warn(note.code, note.message)?;
    Ok(default.to_owned())
}

/// Returns the collation that the options name.
pub(super) fn collation(options: &[TableOption], inherited: Collation) -> SqlResult<Collation> {
    let (mut set, mut collation): (_, Option<&str>) = (None, None);
    for option in options {
        match option {
            TableOption::Charset(name) => {
                let name = name.as_deref();
                if let (Some(before), Some(name)) = (set, name)
                    && charset::by_name(before)? != charset::by_name(name)?
                {
                    return Err(SqlError::conflicting_declarations("CHARACTER SET", before, name));
                }
                set = name.or(set);
            }
            TableOption::Collate(name) => {
                if let Some(before) = collation
                    && !before.eq_ignore_ascii_case(name)
                {
                    return Err(SqlError::conflicting_declarations("COLLATE", before, name));
                }
                collation = Some(name.as_str());
            }
            _ => {}
        }
    }
    charset::resolve(set, collation, inherited)
}

/// Checks the length of a comment. A comment that is too long is an error in strict mode; otherwise it is
/// truncated with a warning.
pub(super) fn fit_comment(
    ctx: &StatementContext<'_>,
    comment: &mut String,
    chars_max: usize,
    code: ErrorCode,
    what: impl FnOnce() -> String,
) -> SqlResult<()> {
    let Some((end, _)) = comment.char_indices().nth(chars_max) else { return Ok(()) };
    let text = format!("Comment for {} is too long (max = {chars_max})", what());
    if ctx.session.settings.env.sql_mode.is_strict() {
        return Err(SqlError::new(code, text));
    }
    ctx.eval.warn(code, text)?;
    comment.truncate(end);
    Ok(())
}

/// Applies an option. Character set and engine are handled elsewhere.
pub(super) fn apply(
    ctx: &StatementContext<'_>,
    draft: &mut TableDraft,
    option: &TableOption,
) -> SqlResult<()> {
    match option {
        TableOption::Engine(_) | TableOption::Charset(_) | TableOption::Collate(_) => {}
        TableOption::AutoIncrement(next) => draft.auto_increment_start = *next,
        TableOption::Comment(comment) => {
            draft.comment.clone_from(comment);
            let name = draft.name.table.clone();
            let what = || format!("table '{name}'");
            fit_comment(ctx, &mut draft.comment, 2048, ErrorCode::TooLongTableComment, what)?;
        }
        TableOption::RowFormat(format) => put(draft, "ROW_FORMAT", format),
        TableOption::OfEngine { name, .. } if !page_format::is_known(name) => {
            let error = SqlError::unknown_option(name);
            if !ctx.session.settings.env.sql_mode.has(SqlMode::IGNORE_BAD_TABLE_OPTIONS) {
                return Err(error);
            }
            ctx.eval.push_warning(cohort_types::Warning::new(error));
        }
        TableOption::OfEngine { name, value } => page_format::put(ctx, draft, name, value.as_deref()),
        TableOption::Other { name, value } => {
            if name.contains("PARTITION") {
                return Err(SqlError::not_supported("partitions"));
            }
            put(draft, name, value);
        }
    }
    Ok(())
}

fn put(draft: &mut TableDraft, name: &str, value: &str) {
    draft.options.retain(|(known, _)| known != name);
    let is_none = name == "KEY_BLOCK_SIZE" && value == "0";
    if !value.eq_ignore_ascii_case("DEFAULT") && !is_none {
        draft.options.push((name.to_owned(), value.to_owned()));
    }
}
