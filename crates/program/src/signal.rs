//! The conditions of SIGNAL and RESIGNAL.

use std::ops::RangeInclusive;

use cohort_sql::ast::SignalItem;
use cohort_types::{ErrorCode, Level, NoWarnings, Signalled, SqlError, SqlResult, Value, Warning};

/// Maximum length of an item in characters.
const TEXT_CHARS_MAX: usize = 64;
const MESSAGE_CHARS_MAX: usize = 512;
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

/// The values of the items of a SIGNAL or RESIGNAL, checked.
#[derive(Default)]
pub(crate) struct Items {
    number: Option<u16>,
    message: Option<String>,
    others: Vec<(&'static str, String)>,
}

impl Items {
    /// Checks the values. Errors: 1231 for NULL or a number out of range, 1648 for a text that is too long.
    /// Outside of strict mode the text is cut, with a warning in `warnings`.
    pub fn new(
        values: Vec<(SignalItem, Value)>,
        is_strict: bool,
        warnings: &mut Vec<Warning>,
    ) -> SqlResult<Items> {
        let mut items = Items::default();
        // Items are checked in one order, however they are written.
        for (word, item) in SignalItem::ALL {
            let Some((_, value)) = values.iter().find(|(set, _)| *set == item) else { continue };
            if matches!(value, Value::Null) {
                return Err(SqlError::wrong_variable_value(word, "NULL"));
            }
            if item == SignalItem::MysqlErrno {
                let number = value.to_int(&mut NoWarnings).map(|number| number.wide());
                let number = number.and_then(|number| u16::try_from(number).ok());
                let number = number.filter(|number| ERRNOS.contains(number));
                let refused = || SqlError::wrong_variable_value(word, &value.to_text());
                items.number = Some(number.ok_or_else(refused)?);
                continue;
            }
            let mut text = value.to_text();
            let is_message = item == SignalItem::MessageText;
            let chars_max = if is_message { MESSAGE_CHARS_MAX } else { TEXT_CHARS_MAX };
            if let Some((end, _)) = text.char_indices().nth(chars_max) {
                if is_strict {
                    return Err(SqlError::condition_item_too_long(word));
                }
                text.truncate(end);
                let error = SqlError::condition_item_truncated(word);
                warnings.push(Warning { level: Level::Warning, error });
            }
            if is_message {
                items.message = Some(text);
            } else {
                items.others.push((word, text));
            }
        }
        Ok(items)
    }

    fn is_empty(&self) -> bool {
        self.number.is_none() && self.message.is_none() && self.others.is_empty()
    }

    /// Sets the items of a condition.
    fn set(self, code: ErrorCode, message: String, mut parts: Signalled) -> SqlError {
        parts.number = self.number.unwrap_or(parts.number);
        for (word, text) in self.others {
            parts.items.retain(|(known, _)| *known != word);
            parts.items.push((word, text));
        }
        SqlError::signalled(code, self.message.unwrap_or(message), parts)
    }
}

/// Returns the condition of SIGNAL.
pub(crate) fn signalled(sqlstate: &str, items: Items) -> Warning {
    let (level, default) = defaults(sqlstate);
    let parts = Signalled { number: default.code.number(), sqlstate: sqlstate.to_owned(), items: Vec::new() };
    Warning { level, error: items.set(default.code, default.message, parts) }
}

/// Returns the condition of RESIGNAL: the active one with the items changed, or another one, which keeps the
/// message and the items of the active one unless they are set.
pub(crate) fn resignalled(active: Warning, sqlstate: Option<&str>, items: Items) -> Warning {
    if let Some(sqlstate) = sqlstate {
        let (level, default) = defaults(sqlstate);
        let kept = active.error.signal().map_or_else(Vec::new, |parts| parts.items.clone());
        let parts = Signalled { number: default.code.number(), sqlstate: sqlstate.to_owned(), items: kept };
        return Warning { level, error: items.set(default.code, active.error.message, parts) };
    }
    if items.is_empty() {
        return active;
    }
    let error = active.error;
    let parts = match error.signal() {
        Some(parts) => parts.clone(),
        None => {
            Signalled { number: error.number(), sqlstate: error.sqlstate().to_owned(), items: Vec::new() }
        }
    };
    Warning { level: active.level, error: items.set(error.code, error.message, parts) }
}
