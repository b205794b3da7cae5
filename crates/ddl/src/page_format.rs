//! Table options for the page format on disk: ROW_FORMAT, KEY_BLOCK_SIZE, PAGE_COMPRESSED,
//! PAGE_COMPRESSION_LEVEL, ENCRYPTED. Checks their combinations as MariaDB does, and passes the format to the
//! engines.

use cohort_catalog::{is_block_size, is_on, level_of, option_of};
use cohort_config::VarId;
use cohort_session::StatementContext;
use cohort_sql::ast::TableOption;
use cohort_types::{ErrorCode, SqlError, SqlResult, Warning};

use super::draft::TableDraft;

const COMPRESSED: &str = "PAGE_COMPRESSED";
const LEVEL: &str = "PAGE_COMPRESSION_LEVEL";
const ENCRYPTED: &str = "ENCRYPTED";
const KEY_ID: &str = "ENCRYPTION_KEY_ID";

/// The statement that defines a table, which decides the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    CreateTemporary,
    Alter,
}

/// Returns whether an option concerns the page format.
pub(super) fn is_about_pages(option: &TableOption) -> bool {
    match option {
        TableOption::RowFormat(_) | TableOption::OfEngine { .. } => true,
        TableOption::Other { name, .. } => name == "KEY_BLOCK_SIZE" || name == ENCRYPTED,
        _ => false,
    }
}

/// Returns whether an engine has an option with this name.
pub(super) fn is_known(name: &str) -> bool {
    [COMPRESSED, LEVEL].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Sets an engine option. DEFAULT of PAGE_COMPRESSED is `innodb_compression_default`.
pub(super) fn put(ctx: &StatementContext<'_>, draft: &mut TableDraft, name: &str, value: Option<&str>) {
    draft.options.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    let is_default = || name.eq_ignore_ascii_case(COMPRESSED) && is_default(ctx);
    if let Some(value) = value.or_else(|| is_default().then_some("ON")) {
        draft.options.push((name.to_owned(), value.to_owned()));
    }
}

/// Applies `innodb_compression_default` to a new table without a PAGE_COMPRESSED option, and checks the
/// options. The table must be stored in the engine that was asked for.
pub(super) fn complete_options(
    ctx: &StatementContext<'_>,
    draft: &mut TableDraft,
    is_temporary: bool,
) -> SqlResult<()> {
    if is_default(ctx) && option_of(&draft.options, COMPRESSED).is_none() {
        draft.options.push((COMPRESSED.to_owned(), "ON".to_owned()));
    }
    check(ctx, draft, if is_temporary { Verb::CreateTemporary } else { Verb::Create })
}

fn is_default(ctx: &StatementContext<'_>) -> bool {
    ctx.session.settings.vars.flag(VarId::InnodbCompressionDefault)
}

/// Rejects conflicting options. The table must be stored in the engine that was asked for.
pub(super) fn check(ctx: &StatementContext<'_>, draft: &TableDraft, verb: Verb) -> SqlResult<()> {
    let option = |name: &str| option_of(&draft.options, name);
    let refused_value = |name: &str, value: &str| Err(SqlError::bad_option_value(value, name));
    let is_compressed = match option(COMPRESSED) {
        None => false,
        Some(value) => match is_on(value) {
            Some(is_compressed) => is_compressed,
            None => return refused_value(COMPRESSED, value),
        },
    };
    if let Some(level) = option(LEVEL).filter(|level| level_of(level).is_none()) {
        return refused_value(LEVEL, level);
    }
    let (row_format, block_size) = (option("ROW_FORMAT"), option("KEY_BLOCK_SIZE"));
    check_row_format(ctx, draft, verb, (row_format, block_size))?;
    let says = |what: String, option: &str| {
        warn(ctx, ErrorCode::WrongCreateOptions, what);
        Err(refused(ctx, draft, verb, option))
    };
    if option(ENCRYPTED).is_some_and(asks_for_encryption) {
        // There are no keys: files are not encrypted.
        return says(format!("{KEY_ID} {} not available", option(KEY_ID).unwrap_or("1")), KEY_ID);
    }
    match row_format {
        Some(format @ ("REDUNDANT" | "COMPRESSED")) if is_compressed => {
            return says(format!("{COMPRESSED} table can't have ROW_TYPE={format}"), COMPRESSED);
        }
        _ if is_compressed && block_size.is_some() => {
            return says(format!("{COMPRESSED} table can't have key_block_size"), COMPRESSED);
        }
        _ if !is_compressed && option(LEVEL).is_some() => {
            return says(format!("{LEVEL} requires {COMPRESSED}"), LEVEL);
        }
        _ => {}
    }
    Ok(())
}

/// Checks ROW_FORMAT and KEY_BLOCK_SIZE. An invalid combination is an error with `innodb_strict_mode`;
/// otherwise it is ignored with a warning.
fn check_row_format(
    ctx: &StatementContext<'_>,
    draft: &TableDraft,
    verb: Verb,
    (row_format, block_size): (Option<&str>, Option<&str>),
) -> SqlResult<()> {
    let is_strict = ctx.session.settings.vars.flag(VarId::InnodbStrictMode);
    let odd = |strict: String, lenient: String, option: &str| {
        warn(ctx, ErrorCode::IllegalHaCreateOption, if is_strict { strict } else { lenient });
        if is_strict { Err(refused(ctx, draft, verb, option)) } else { Ok(()) }
    };
    let is_compressed = row_format == Some("COMPRESSED") || row_format.is_none() && block_size.is_some();
    if verb == Verb::CreateTemporary && is_compressed {
        if is_strict {
            return Err(SqlError::compressed_table_refused());
        }
        let option = if row_format.is_some() { "ROW_FORMAT=COMPRESSED" } else { "KEY_BLOCK_SIZE" };
        let code = ErrorCode::IllegalHaCreateOption;
        warn(ctx, code, format!("{option} is ignored for TEMPORARY TABLE."));
        warn(ctx, code, "assuming ROW_FORMAT=DYNAMIC.".to_owned());
        return Ok(());
    }
    if let Some(size) = block_size {
        if let Some(format) = row_format.filter(|format| *format != "COMPRESSED") {
            let strict = format!("cannot specify ROW_FORMAT = {format} with KEY_BLOCK_SIZE.");
            let lenient = format!("ignoring KEY_BLOCK_SIZE={size} unless ROW_FORMAT=COMPRESSED.");
            odd(strict, lenient, "KEY_BLOCK_SIZE")?;
        } else if !is_block_size(size) {
            let strict = format!("invalid KEY_BLOCK_SIZE = {size}. Valid values are [1, 2, 4, 8, 16]");
            odd(strict, format!("ignoring KEY_BLOCK_SIZE={size}."), "KEY_BLOCK_SIZE")?;
        }
    }
    if matches!(row_format, Some("FIXED" | "PAGE")) {
        odd(
            "invalid ROW_FORMAT specifier.".to_owned(),
            "assuming ROW_FORMAT=DYNAMIC.".to_owned(),
            "ROW_TYPE",
        )?;
    }
    Ok(())
}

fn warn(ctx: &StatementContext<'_>, code: ErrorCode, what: String) {
    ctx.eval.push_warning(Warning::new(SqlError::new(code, format!("InnoDB: {what}"))));
}

fn refused(ctx: &StatementContext<'_>, draft: &TableDraft, verb: Verb, option: &str) -> SqlError {
    if verb == Verb::Alter {
        return SqlError::illegal_create_option(&draft.engine, option);
    }
    let cause = SqlError::storage_error(140, "Wrong create options", &draft.engine);
    ctx.eval.push_warning(Warning::new(cause));
    SqlError::wrong_create_options(&draft.name.schema, &draft.name.table)
}

/// Rejects InnoDB options on a table whose ENGINE is not available here: error 1911.
pub(super) fn check_of_other_engine(draft: &TableDraft) -> SqlResult<()> {
    let of_innodb = |(name, value): &&(String, String)| {
        let is_known = [COMPRESSED, LEVEL].iter().any(|known| known.eq_ignore_ascii_case(name));
        is_known || (name == ENCRYPTED && asks_for_encryption(value))
    };
    draft.options.iter().find(of_innodb).map_or(Ok(()), |(name, _)| Err(SqlError::unknown_option(name)))
}

/// Returns whether the value asks for encryption. ENCRYPTED=NO is stored as an option; DEFAULT never becomes
/// one.
fn asks_for_encryption(value: &str) -> bool {
    !value.eq_ignore_ascii_case("NO")
}
