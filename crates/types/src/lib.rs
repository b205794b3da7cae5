//! Values and types of the SQL language, and every byte form a value takes.
//!
//! | module | concept |
//! |---|---|
//! | `value` | [`Value`]: what an expression yields and a row holds |
//! | `column` | [`ColumnType`]: a column's declared type; conversion of a value to it (strict or with warnings) |
//! | `decimal` | [`Decimal`]: exact numbers of up to 65 digits, 38 after the point |
//! | `temporal` | [`Date`], [`Time`], [`DateTime`]: packed forms, parsing, printing, arithmetic |
//! | `collation` | [`Collation`]: character sets and orders |
//! | `error` | [`SqlError`], [`ErrorCode`]: the one table of error numbers, SQLSTATEs and texts |
//! | `row` | the row format of the engines: a record's columns in one byte string |
//! | `key` | memcomparable index keys |
//! | `binlog_image` | the same values as row events carry them, with their table map metadata |

mod collation;
mod column;
mod decimal;
mod error;
mod temporal;
mod value;

pub use collation::{Charset, Collation};
pub use column::{ColumnType, TypeKind};
pub use decimal::Decimal;
pub use error::{ErrorCode, Level, SqlError, SqlResult, Warning};
pub use temporal::{Date, DateTime, Time};
pub use value::{Str, Value};
