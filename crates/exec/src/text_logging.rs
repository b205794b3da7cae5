//! Statement-based logging: `binlog_format=STATEMENT`.
//!
//! INSERT, REPLACE, UPDATE and DELETE are logged as text if the text alone determines the change. A replica
//! with equal rows then makes the same changes, and a replica with different rows reveals the difference,
//! which tools that compare replicas rely on. A change that finds no row is therefore logged, too.
//!
//! All other changes are logged as row events even under STATEMENT, where MariaDB logs text and warns. They
//! are changes that
//! - use variables, views, temporary tables, or functions not known to be repeatable,
//! - store computed defaults or generated numbers,
//! - depend on rows that IGNORE skips or that LIMIT selects,
//! - run in a session with settings that the event does not transmit.
//!
//! Rows that a statement logged as text reads are locked, so that the binary log contains it after all
//! transactions whose changes it has read. READ COMMITTED takes no such locks, so changes are logged as rows.

use cohort_catalog::{Column, DefaultValue, Table};
use cohort_config::VarId;
use cohort_ddl::change_event;
use cohort_dml::DmlOutcome;
use cohort_expr::{Replication, replication_of};
use cohort_session::StatementContext;
use cohort_sql::function_without_parens;
use cohort_types::{SqlMode, SqlResult};

/// Words that may precede a parenthesis without being functions.
const NO_FUNCTIONS: [&str; 25] = [
    "AND", "AS", "BETWEEN", "BY", "DECIMAL", "DISTINCT", "ELSE", "EXISTS", "FROM", "IN", "INDEX", "INTERVAL",
    "JOIN", "KEY", "LIKE", "NOT", "ON", "OR", "SELECT", "SET", "THEN", "USING", "VALUES", "WHEN", "WHERE",
];

/// Clauses and schemas that make a statement depend on more than its text.
const TELLING: [&str; 10] = [
    "IGNORE",
    "INFORMATION_SCHEMA",
    "MYSQL",
    "NEXT",
    "NEXTVAL",
    "OFFSET",
    "PERFORMANCE_SCHEMA",
    "PREVIOUS",
    "RETURNING",
    "SYS",
];

/// How far a text determines its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    All,
    /// With LIMIT: the text determines the change only if there are no rows.
    Which,
    TooLittle,
}

/// Runs a change. Logs it as text if the session requests that and the text determines the change.
pub(crate) fn run_logged(
    ctx: &mut StatementContext<'_>,
    table: &Table,
    run: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<DmlOutcome>,
) -> SqlResult<DmlOutcome> {
    let binlog = &ctx.trx.settings.binlog;
    // The text of an inner statement is not in the log.
    if !binlog.as_text || !binlog.on || ctx.trx.is_inside() {
        return run(ctx);
    }
    let says = messages_of_the_start(ctx, table);
    ctx.trx.begin_writing();
    if says == Says::TooLittle || !ctx.trx.plain_reads_lock() {
        return run(ctx);
    }
    let mark = ctx.trx.log_mark();
    let outcome = run(ctx)?;
    let is_exact = says == Says::All || outcome.found == 0 && outcome.affected == 0;
    if is_exact && outcome.generated_id.is_none() {
        ctx.trx.unlog(mark)?;
        let mut text = Vec::new();
        let (params, mode) = (ctx.params, ctx.session.settings.env.sql_mode);
        cohort_session::append_statement(&mut text, ctx.text.trim_ascii(), ctx.param_at, params, mode);
        let event = change_event(ctx, &text);
        ctx.trx.log_text(event)?;
    }
    Ok(outcome)
}

fn messages_of_the_start(ctx: &StatementContext<'_>, table: &Table) -> Says {
    let mode = ctx.session.settings.env.sql_mode;
    let is_plain = !mode.has(SqlMode::NO_BACKSLASH_ESCAPES) || !ctx.text.contains(&b'\\');
    let vars = &ctx.session.settings.vars;
    // Settings that the event does not transmit must have their default values.
    let is_usual = vars.uint(VarId::DivPrecisionIncrement) == 4
        && [VarId::DefaultWeekFormat, VarId::LcTimeNames].iter().all(|id| vars.uint(*id) == 0)
        && vars.flag(VarId::CheckConstraintChecks);
    let is_computed = |column: &Column| matches!(column.default, DefaultValue::Expression(_));
    let current = ctx.session.current_schema.as_deref().unwrap_or("").to_ascii_uppercase();
    let is_sure = is_plain
        && is_usual
        && ctx.trx.temporary().is_empty()
        && !table.columns.iter().any(is_computed)
        && !TELLING.contains(&current.as_str());
    let catalog = ctx.db.catalog();
    let is_view = |name: &str| {
        let mut schemas = catalog.schemas.values();
        schemas.any(|schema| schema.views.keys().any(|view| view.eq_ignore_ascii_case(name)))
    };
    if is_sure { said_by(ctx.text, &is_view) } else { Says::TooLittle }
}

/// Checks that a text uses nothing that may differ between servers. The check looks at single words and
/// refuses a text in case of doubt.
fn said_by(text: &[u8], is_view: &dyn Fn(&str) -> bool) -> Says {
    let mut rest = text;
    let mut says = if text.is_empty() { Says::TooLittle } else { Says::All };
    while let Some((&first, tail)) = rest.split_first() {
        let after = match first {
            b'\'' => after_quoted(tail, first),
            b'"' | b'`' => after_quoted(tail, first).filter(|after| {
                // A quoted text may be a name, depending on the SQL mode.
                let name = &tail[..tail.len() - after.len() - 1];
                let name = String::from_utf8_lossy(name).to_ascii_uppercase();
                !TELLING.contains(&name.as_str()) && !is_view(&name)
            }),
            b'@' | b'#' => None,
            b'-' if tail.first() == Some(&b'-') => None,
            b'/' if tail.first() == Some(&b'*') => after_comment(&tail[1..]),
            _ if is_letter(first) => {
                let end = rest.iter().position(|byte| !is_letter(*byte)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                if word.eq_ignore_ascii_case(b"LIMIT") {
                    says = Says::Which;
                }
                is_allowed(word, after, is_view).then_some(after)
            }
            _ => Some(tail),
        };
        let Some(after) = after else { return Says::TooLittle };
        rest = after;
    }
    says
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn is_allowed(word: &[u8], after: &[u8], is_view: &dyn Fn(&str) -> bool) -> bool {
    let word = String::from_utf8_lossy(word).to_ascii_uppercase();
    if TELLING.contains(&word.as_str()) || is_view(&word) {
        return false;
    }
    let Some(after) = next_token(after) else { return false };
    let function = match after.first() {
        Some(b'(') if NO_FUNCTIONS.contains(&word.as_str()) => None,
        Some(b'(') => Some(word.to_ascii_lowercase()),
        _ => function_without_parens(word.as_bytes()).map(str::to_owned),
    };
    function.is_none_or(|name| replication_of(&name) == Replication::Text)
}

/// Returns the text after spaces and `/* */` comments, `None` if a comment may be executable or is not
/// closed. Other comments end the check of the text anyway.
fn next_token(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        let spaces = text.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count();
        text = &text[spaces..];
        let Some(comment) = text.strip_prefix(b"/*") else { return Some(text) };
        text = after_comment(comment)?;
    }
}

/// Returns the text after the closing quote.
fn after_quoted(text: &[u8], quote: u8) -> Option<&[u8]> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' if quote != b'`' => at += 2,
            _ if byte == quote => return text.get(at + 1..),
            _ => at += 1,
        }
    }
    None
}

/// Returns the text after a comment, `None` if the comment may be executable.
fn after_comment(text: &[u8]) -> Option<&[u8]> {
    if text.starts_with(b"!") || text.starts_with(b"M!") {
        return None;
    }
    let end = text.windows(2).position(|pair| pair == b"*/")?;
    text.get(end + 2..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_all_when_nothing_in_it_depends_on_the_server() {
        for text in [
            "REPLACE INTO `percona`.`checksums` (db, tbl) SELECT 'shop', 't', COUNT(*) AS cnt, \
             COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', `id`, `rand`)) AS UNSIGNED)), 10, 16)), 0) AS crc \
             FROM `shop`.`t` FORCE INDEX(`PRIMARY`) WHERE ((`id` >= '1')) AND ((`id` <= '10')) /*checksum chunk*/",
            "UPDATE t SET a = '@x', b = \"it's \\\" LIMIT\", c = NOW() WHERE d IN (1, 2)",
            "DELETE FROM t WHERE a = 1",
            "UPDATE t SET a = CEILING(b), c = utc_date, d = LOCALTIMESTAMP, uuid = 1",
        ] {
            assert_eq!(said_by(text.as_bytes(), &|name| name == "V"), Says::All, "{text}");
        }
        for text in [
            "",
            "UPDATE t SET a = @x",
            "UPDATE t SET a = RAND()",
            "UPDATE t SET a = my_function (1)",
            "UPDATE t SET a = RAND/**/()",
            "UPDATE t SET a = UUID /* x */ -- y\n ()",
            "UPDATE t SET a = uuid\x0b()",
            "UPDATE t SET a = USER #\n()",
            "UPDATE t SET a = CURRENT_USER",
            "UPDATE t SET a = Current_Role WHERE b = 1",
            "UPDATE t SET a = SYSDATE()",
            "UPDATE t SET a = EXP(2)",
            "DELETE FROM t WHERE a = RAND() LIMIT 1",
            "DELETE FROM t /*! LIMIT 1 */",
            "DELETE FROM t WHERE a = 'open",
            "INSERT INTO t SELECT NEXT VALUE FOR s",
            "INSERT INTO t SELECT table_name FROM information_schema.tables",
            "DELETE FROM t -- LIMIT",
            "INSERT INTO t SELECT * FROM v",
            "INSERT INTO t SELECT * FROM `d`.`v`",
            "INSERT INTO t SELECT COUNT(*) FROM `information_schema`.`tables`",
            "UPDATE IGNORE t SET a = 1",
        ] {
            assert_eq!(said_by(text.as_bytes(), &|name| name == "V"), Says::TooLittle, "{text}");
        }
        assert_eq!(said_by(b"DELETE FROM t WHERE a = 5 LIMIT 1", &|_| false), Says::Which);
    }
}
