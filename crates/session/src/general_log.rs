//! Entries of the general log.

use cohort_base::ConnectionId;
use cohort_config::VarId;
use cohort_expr::TimeZone;
use cohort_sql::{ParseMode, without_secrets};
use cohort_types::{DateTime, SqlError, Value};

use crate::database::Database;
use crate::statement_log::StatementLog;

/// Maximum bytes of a statement's text in a log entry.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Bits of `log_output`.
pub const LOG_TO_FILE: u64 = 2;
pub const LOG_TO_TABLE: u64 = 4;
pub const LOG_NOWHERE: u64 = 1;

impl Database {
    /// Logs a refused login in the general log.
    pub fn log_refused(&self, id: ConnectionId, (user, host): (&str, &str), error: &SqlError) {
        if self.globals.flag(VarId::GeneralLog) {
            let user_host = format!("{user}[{user}] @ {host} []");
            let text: String = error.message.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            self.log_general((id, &user_host), "Connect", &text);
        }
    }

    /// Logs an entry in the general log. The text must already be in the form to show.
    pub fn log_general(&self, (id, user_host): (ConnectionId, &str), command: &str, text: &str) {
        let output = self.globals.uint(VarId::LogOutput);
        if output & LOG_NOWHERE != 0 {
            return;
        }
        let now_us = self.clock.wall_us();
        if output & LOG_TO_FILE != 0
            && let Some(files) = self.log_files.read().as_ref()
        {
            let second = now_us / 1_000_000;
            let is_new = self.log_rows.is_new_second(second);
            let time = if is_new { short_time(now_us) } else { "\t".to_owned() };
            let line = format!("{time}\t{:6} {command}\t{text}\n", id.0);
            files.append(StatementLog::General, line.as_bytes());
        }
        if output & LOG_TO_TABLE != 0 {
            let bytes = text.len();
            let row = vec![
                Value::Timestamp(now_us as i64),
                Value::text(user_host),
                Value::UInt(id.0),
                Value::UInt(self.globals.uint(VarId::ServerId)),
                Value::text(command),
                Value::text(text),
            ];
            self.log_rows.push(StatementLog::General, row, bytes);
        }
    }
}

/// Formats a time as `261122 13:09:31`, in the host's time zone.
pub fn short_time(us: u64) -> String {
    let zone = TimeZone::parse("SYSTEM").unwrap_or(TimeZone::Offset(0));
    let DateTime { date, hour, minute, second, .. } = cohort_types::TimeZone::to_local(&zone, us as i64);
    format!("{:02}{:02}{:02} {hour:2}:{minute:02}:{second:02}", date.year % 100, date.month, date.day)
}

/// Returns a statement's text as logs show it: with passwords masked, and at most `TEXT_BYTES_MAX` bytes.
pub fn shown(text: &[u8], mode: ParseMode) -> String {
    let text = without_secrets(text, Some(mode));
    let cut = &text[..text.len().min(TEXT_BYTES_MAX)];
    String::from_utf8_lossy(cut).into_owned()
}
