//! The types for errors and warnings. `error_table` has the errors themselves.

use std::fmt::{self, Display};
use std::io;

use cohort_base::whole_chars;

use crate::error_table::error_table;
use crate::error_text::{clip, clipped, printable_clipped};

/// Severity of a condition in SHOW WARNINGS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Note,
    Warning,
    Error,
}

impl Level {
    /// Returns the name in SHOW WARNINGS.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// A condition in the list of SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub level: Level,
    pub error: SqlError,
}

impl Warning {
    /// Creates a warning.
    pub fn new(error: SqlError) -> Warning {
        Warning { level: Level::Warning, error }
    }

    /// Creates a note.
    pub fn note(error: SqlError) -> Warning {
        Warning { level: Level::Note, error }
    }
}

macro_rules! errors {
    ($(
        $name:ident = $number:literal, $state:literal
        $({ $($(#[$doc:meta])* $constructor:ident($($arg:ident: $ty:ty),*) = $($text:expr),+;)* })?;
    )*) => {
        /// MariaDB's name for an error, without the ER_ prefix.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ErrorCode { $($name = $number,)* }

        impl ErrorCode {
            /// All errors, by number.
            #[cfg(test)]
            const ALL: &[ErrorCode] = &[$(ErrorCode::$name,)*];

            /// Returns the error number sent to clients.
            pub fn number(self) -> u16 {
                self as u16
            }

            /// Returns the SQLSTATE sent to clients.
            pub fn sqlstate(self) -> &'static str {
                match self { $(ErrorCode::$name => $state,)* }
            }
        }

        impl SqlError {
            $($($(
                $(#[$doc])*
                #[doc = concat!("Error `", stringify!($name), "`.")]
                pub fn $constructor($($arg: $ty),*) -> SqlError {
                    SqlError::new(ErrorCode::$name, format!($($text),+))
                }
            )*)?)*
        }
    };
}

error_table!(errors);

/// An error of a statement, for its client: number, SQLSTATE and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    pub code: ErrorCode,
    /// MariaDB's text of the error.
    pub message: String,
    row: Row,
    keeps_transaction: bool,
    signalled: Option<Box<Signalled>>,
}

/// The parts of a condition that SIGNAL or RESIGNAL has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signalled {
    /// MYSQL_ERRNO.
    pub number: u16,
    pub sqlstate: String,
    /// The other items that were set, such as `CLASS_ORIGIN`, with their values.
    pub items: Vec<(&'static str, String)>,
}

/// The row number of an error. It does not count when errors are compared.
#[derive(Clone, Copy, Debug)]
struct Row(u32);

impl PartialEq for Row {
    fn eq(&self, _: &Row) -> bool {
        true
    }
}

impl Eq for Row {}

impl Row {
    const UNKNOWN: Row = Row(u32::MAX);
}

/// A receiver of the warnings of conversions. The session's keeps at most `max_error_count` of them, and
/// counts the rest.
pub trait WarningSink {
    /// Adds a warning.
    fn warn(&mut self, warning: Warning);
}

impl WarningSink for Vec<Warning> {
    fn warn(&mut self, warning: Warning) {
        self.push(warning);
    }
}

/// A sink that drops all warnings.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWarnings;

impl WarningSink for NoWarnings {
    fn warn(&mut self, _: Warning) {}
}

/// Maximum length of a message in bytes: MariaDB's `MYSQL_ERRMSG_SIZE`, without the terminating zero.
const MESSAGE_BYTES_MAX: usize = 511;

/// The result of an operation of a statement.
pub type SqlResult<T> = Result<T, SqlError>;

impl SqlError {
    /// Creates an error with its final text. Text that exceeds MariaDB's message size is cut off, except in
    /// the note of EXPLAIN EXTENDED, which contains the whole statement.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> SqlError {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES_MAX && code != ErrorCode::Yes {
            message = whole_chars(&message, MESSAGE_BYTES_MAX).to_owned();
        }
        SqlError { code, message, row: Row::UNKNOWN, keeps_transaction: false, signalled: None }
    }

    /// Creates the condition of a SIGNAL. `code` says how it is treated where it is unhandled.
    pub fn signalled(code: ErrorCode, message: impl Into<String>, parts: Signalled) -> SqlError {
        SqlError { signalled: Some(Box::new(parts)), ..SqlError::new(code, message) }
    }

    /// Returns the parts that SIGNAL has set, `None` for an error of the server.
    pub fn signal(&self) -> Option<&Signalled> {
        self.signalled.as_deref()
    }

    /// Returns the error number sent to clients.
    pub fn number(&self) -> u16 {
        self.signalled.as_ref().map_or(self.code.number(), |parts| parts.number)
    }

    /// Returns the SQLSTATE sent to clients.
    pub fn sqlstate(&self) -> &str {
        self.signalled.as_ref().map_or(self.code.sqlstate(), |parts| &parts.sqlstate)
    }

    /// Adds the row number of its statement, unless the error already has one. Rows count from 1; 0 is no
    /// row.
    pub fn at_row(self, row: u64) -> SqlError {
        match self.row() {
            Some(_) => self,
            None => SqlError { row: Row(u32::try_from(row).unwrap_or(u32::MAX)), ..self },
        }
    }

    /// Makes the error roll back only its statement, where other errors of the same number roll back the
    /// transaction: a deadlock over locks that outlive transactions.
    pub fn keeping_transaction(self) -> SqlError {
        SqlError { keeps_transaction: true, ..self }
    }

    /// Returns whether the error rolls back only its statement, independent of its number.
    pub fn keeps_transaction(&self) -> bool {
        self.keeps_transaction
    }

    /// Returns the row number, if it is known.
    pub fn row(&self) -> Option<u64> {
        (self.row.0 != Row::UNKNOWN.0).then_some(self.row.0.into())
    }
}

impl SqlError {
    /// Returns the error for a table that does not exist. `information_schema` has its own one.
    pub fn no_such_table(db: &str, table: &str) -> SqlError {
        const INFORMATION_SCHEMA: &str = "information_schema";
        match db.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
            true => SqlError::unknown_table_in(table, INFORMATION_SCHEMA),
            false => SqlError::table_missing(db, table),
        }
    }

    /// Returns whether the error may be from [`SqlError::no_such_table`].
    pub fn is_no_such_table(&self) -> bool {
        matches!(self.code, ErrorCode::NoSuchTable | ErrorCode::UnknownTable)
    }
}

impl SqlError {
    /// Returns the error of a temporary file: 1021 if the disk is full, else 1030.
    pub fn temporary_file(error: &io::Error, doing: &str) -> SqlError {
        let errno = error.raw_os_error().unwrap_or(0);
        if error.kind() == io::ErrorKind::StorageFull {
            return SqlError::disk_full("temporary file", errno);
        }
        let text = format!("Error {doing} a temporary file (errno: {errno} \"{error}\")");
        SqlError::new(ErrorCode::GetErrno, text)
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.number(), self.sqlstate(), self.message)
    }
}

impl std::error::Error for SqlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_number() {
        let numbers: Vec<u16> = ErrorCode::ALL.iter().map(|code| code.number()).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    }

    #[test]
    fn messages_have_the_length_of_mariadbs() {
        let text = |code, message: &str| SqlError::new(code, message).message;
        let long = "é".repeat(300);
        assert_eq!(text(ErrorCode::DataOutOfRange, &long), "é".repeat(255));
        assert_eq!(text(ErrorCode::DataOutOfRange, &long[..510]), long[..510]);
        assert_eq!(text(ErrorCode::Yes, &long), long, "the statement that EXPLAIN EXTENDED returns");
    }
}
