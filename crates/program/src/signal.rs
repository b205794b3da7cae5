//! The conditions of SIGNAL and RESIGNAL.

use std::ops::RangeInclusive;

use cohort_sql::ast::SignalItem;
use cohort_types::{ErrorCode, Level, NoWarnings, Signalled, SqlError, SqlResult, Value, Warning};

/// Maximum length of an item in characters.
const TEXT_CHARS_MAX: usize = 64;
const MESSAGE_CHARS_MAX: usize = 128;
/// Values of MYSQL_ERRNO. In the protocol, 65535 stands for a progress report, after which a client waits.
const ERRNOS: RangeInclusive<u16> = 1..=u16::MAX - 1;

/// Returns the level, and the number and text of a condition without MYSQL_ERRNO and MESSAGE_TEXT.
fn defaults(sqlstate: &str) -> (Level, SqlError) {
    match &sqlstate[..2] {
        "01" => (Level::Warning, SqlError::unhandled_warning()),
        "02" => (Level::Error, SqlError::unhandled_not_found()),
        _ => (Level::Error, SqlError::unhandled_exception()),
    }
}

/// Returns the condition of SIGNAL.
pub(crate) fn signalled(
    sqlstate: &str,
    items: Vec<(SignalItem, Value)>,
    shortened: &mut Shortened,
) -> SqlResult<Warning> {
    let (level, default) = defaults(sqlstate);
    let parts = Signalled { number: default.code.number(), sqlstate: sqlstate.to_owned(), items: Vec::new() };
    let error = with_items(default.code, default.message, parts, items, shortened)?;
    Ok(Warning { level, error })
}

/// Returns the condition of RESIGNAL: the active one with the items changed, or another one.
pub(crate) fn resignalled(
    active: Warning,
    sqlstate: Option<&str>,
    items: Vec<(SignalItem, Value)>,
    shortened: &mut Shortened,
) -> SqlResult<Warning> {
    if let Some(sqlstate) = sqlstate {
        // Items of the active condition stay unless they are set.
        let (level, default) = defaults(sqlstate);
        let kept = active.error.signal().map_or_else(Vec::new, |parts| parts.items.clone());
        let parts = Signalled { number: default.code.number(), sqlstate: sqlstate.to_owned(), items: kept };
        let error = with_items(default.code, default.message, parts, items, shortened)?;
        return Ok(Warning { level, error });
    }
    if items.is_empty() {
        return Ok(active);
    }
    let error = active.error;
    let parts = match error.signal() {
        Some(parts) => parts.clone(),
        None => {
            Signalled { number: error.number(), sqlstate: error.sqlstate().to_owned(), items: Vec::new() }
        }
    };
    let error = with_items(error.code, error.message, parts, items, shortened)?;
    Ok(Warning { level: active.level, error })
}

/// The treatment of texts that are too long.
pub(crate) enum Shortened {
    /// Error 1648: strict mode.
    Fails,
    /// They are cut, with these warnings.
    Warns(Vec<SqlError>),
}

/// Sets items. Errors: 1231 for NULL or a number out of range, 1648 for a text that is too long.
fn with_items(
    code: ErrorCode,
    mut message: String,
    mut parts: Signalled,
    items: Vec<(SignalItem, Value)>,
    shortened: &mut Shortened,
) -> SqlResult<SqlError> {
    for (item, value) in items {
        let word = word_of(item);
        if matches!(value, Value::Null) {
            return Err(SqlError::wrong_variable_value(word, "NULL"));
        }
        if item == SignalItem::MysqlErrno {
            let number = value.to_int(&mut NoWarnings).map(|number| number.wide());
            let number =
                number.and_then(|number| u16::try_from(number).ok()).filter(|number| ERRNOS.contains(number));
            parts.number = number.ok_or_else(|| SqlError::wrong_variable_value(word, &value.to_text()))?;
            continue;
        }
        let mut text = value.to_text();
        let is_message = item == SignalItem::MessageText;
        let chars_max = if is_message { MESSAGE_CHARS_MAX } else { TEXT_CHARS_MAX };
        if let Some((end, _)) = text.char_indices().nth(chars_max) {
            let Shortened::Warns(warnings) = shortened else {
                return Err(SqlError::condition_item_too_long(word));
            };
            warnings.push(SqlError::condition_item_truncated(word));
            text.truncate(end);
        }
        if is_message {
            message = text;
        } else {
            parts.items.retain(|(known, _)| *known != word);
            parts.items.push((word, text));
        }
    }
    Ok(SqlError::signalled(code, message, parts))
}

fn word_of(item: SignalItem) -> &'static str {
    SignalItem::ALL.into_iter().find(|(_, known)| *known == item).map_or("", |(word, _)| word)
}
