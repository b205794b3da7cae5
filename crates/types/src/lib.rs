//! SQL values and types, and every binary encoding of a value.
//!
//! | module | concept |
//! |---|---|
//! | `value` | [`Value`]: the result of an expression, or a column value of a row |
//! | `column` | [`ColumnType`]: a column's declared type; assignment of values, strict or with warnings |
//! | `decimal` | [`Decimal`]: exact numbers of up to 65 digits, 38 after the point |
//! | `temporal` | [`Date`], [`Time`], [`DateTime`]: packed forms, parsing, printing, arithmetic |
//! | `collation` | [`Collation`]: character sets and orders |
//! | `error` | [`SqlError`], [`ErrorCode`], warnings |
//! | `error_table` | the only table of error numbers, SQLSTATEs and texts, by number |
//! | `sql_mode` | [`SqlMode`]: the flags that change the SQL dialect |
//! | `interrupt` | [`Interrupt`]: stops a long loop on KILL or at a time limit |
//! | `error_text` | values in the texts of errors |
//! | `privilege` | [`Privilege`], [`Privileges`]: the privileges that GRANT can name |
//! | `row` | the row format of the engines: a record's columns in one byte string |
//! | `vector` | [`Vector`]: column vectors, the values of one column for many rows as numbers or texts |
//! | `stored` | [`StoredColumns`]: reads columns of encoded rows, one row at a time |
//! | `scalar` | fixed-length values, as rows and row events encode them |
//! | `fixed` | UUID, INET6 and INET4 values |
//! | `memory` | memory use of values |
//! | `nesting` | [`check_stack`]: limits how deep statements may nest |
//! | `json` | [`is_valid_json`] |
//! | `full_text` | tokens of texts, as FULLTEXT indexes store them |
//! | `key` | memcomparable index keys |
//! | `binlog_image` | values as row events encode them, with their table map metadata |
//! | `binlog_convert` | lossy conversion of row event values to another column type |

mod binlog_convert;
mod binlog_image;
mod collation;
mod column;
mod decimal;
mod error;
mod error_table;
mod error_text;
mod fixed;
pub mod full_text;
mod interrupt;
mod json;
mod key;
mod memory;
mod nesting;
mod privilege;
mod program;
mod row;
mod scalar;
mod sql_mode;
mod stored;
mod temporal;
mod value;
mod value_bytes;
mod vector;

pub use binlog_image::{BinlogColumn, ImageError, WireFit, write_value};
pub use collation::{Charset, Collation, Fronts, LikePattern, UnsafeText, is_text, like_prefix};
pub use column::DECIMALS_NOT_FIXED;
pub use column::{ColumnMeta, ColumnType, StoreContext, TypeKind};
pub use decimal::{Decimal, Lost, Overflow};
pub use error::{ErrorCode, Level, NoWarnings, Signalled, SqlError, SqlResult, Warning, WarningSink};
pub use error_text::{clip, printable};
pub use fixed::{Fixed, FixedKind, parse_inet4, parse_inet6, write_inet4, write_inet6};
pub use interrupt::{CountBytes, Interrupt, Uninterrupted};
pub use json::is_valid_json;
pub use key::{KeyError, KeyPart, prefix_end, successor};
pub use memory::row_memory_bytes;
pub use nesting::{check_floor, check_stack};
pub use privilege::{Privilege, Privileges};
pub use program::{DataAccess, EventStatus, RoutineKind, TriggerEvent, TriggerTiming};
pub use row::{Columns, RowError, RowLayout, StoredPlace};
pub use sql_mode::SqlMode;
pub use stored::{Field, StoredColumns};
pub use temporal::{
    Date, DateTime, FixedOffset, Interval, IntervalUnit, Issues, LocalToUtc, Parsed, Span,
    TIMESTAMP_MICROS_MAX, Time, TimeZone,
};
pub use value::{Class, IntValue, Str, Value};
pub use value_bytes::{append_row, append_value, take_row};
pub use vector::{NO_ELEMENT, Vector, VectorReader, VectorType, datetime_key, is_whole_date, year_of};
