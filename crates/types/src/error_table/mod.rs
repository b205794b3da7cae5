//! MariaDB's errors by number: name (without ER_), number, SQLSTATE, and the constructors of [`SqlError`]
//! with their texts. Two files share the rows, as a file would be too long.
//!
//! [`SqlError`]: crate::SqlError

mod from_1300;
mod to_1299;

/// Passes all rows to the macro `then`.
macro_rules! error_table {
    ($then:ident) => {
        $crate::error_table::to_1299! { $then }
    };
}
pub(crate) use error_table;
pub(crate) use from_1300::from_1300;
pub(crate) use to_1299::to_1299;
