//! `sql_mode`: the flags that change the SQL dialect. The bits are MariaDB's: binlog query events contain
//! them in their status variables.

/// A set of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SqlMode(pub u64);

macro_rules! modes {
    ($($name:ident = $bit:literal;)*) => {
        impl SqlMode {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub const $name: SqlMode = SqlMode(1 << $bit);
            )*

            /// All modes by name, in the order in which `@@sql_mode` lists them.
            pub const NAMES: &'static [(&'static str, SqlMode)] = &[$((stringify!($name), SqlMode::$name),)*];
        }
    };
}

modes! {
    REAL_AS_FLOAT = 0;
    PIPES_AS_CONCAT = 1;
    ANSI_QUOTES = 2;
    IGNORE_SPACE = 3;
    IGNORE_BAD_TABLE_OPTIONS = 4;
    ONLY_FULL_GROUP_BY = 5;
    NO_UNSIGNED_SUBTRACTION = 6;
    NO_DIR_IN_CREATE = 7;
    POSTGRESQL = 8;
    ORACLE = 9;
    MSSQL = 10;
    DB2 = 11;
    MAXDB = 12;
    NO_KEY_OPTIONS = 13;
    NO_TABLE_OPTIONS = 14;
    NO_FIELD_OPTIONS = 15;
    MYSQL323 = 16;
    MYSQL40 = 17;
    ANSI = 18;
    NO_AUTO_VALUE_ON_ZERO = 19;
    NO_BACKSLASH_ESCAPES = 20;
    STRICT_TRANS_TABLES = 21;
    STRICT_ALL_TABLES = 22;
    NO_ZERO_IN_DATE = 23;
    NO_ZERO_DATE = 24;
    ALLOW_INVALID_DATES = 25;
    ERROR_FOR_DIVISION_BY_ZERO = 26;
    TRADITIONAL = 27;
    NO_AUTO_CREATE_USER = 28;
    HIGH_NOT_PRECEDENCE = 29;
    NO_ENGINE_SUBSTITUTION = 30;
    PAD_CHAR_TO_FULL_LENGTH = 31;
    EMPTY_STRING_IS_NULL = 32;
    SIMULTANEOUS_ASSIGNMENT = 33;
    TIME_ROUND_FRACTIONAL = 34;
}

impl SqlMode {
    /// The empty set.
    pub const NONE: SqlMode = SqlMode(0);

    /// MariaDB 10.11's default.
    pub const DEFAULT: SqlMode = SqlMode(
        SqlMode::STRICT_TRANS_TABLES.0
            | SqlMode::ERROR_FOR_DIVISION_BY_ZERO.0
            | SqlMode::NO_AUTO_CREATE_USER.0
            | SqlMode::NO_ENGINE_SUBSTITUTION.0,
    );

    /// Returns whether all modes of `other` are on.
    pub fn has(self, other: SqlMode) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether bad values are errors in transactional tables.
    pub fn is_strict(self) -> bool {
        self.0 & (SqlMode::STRICT_TRANS_TABLES.0 | SqlMode::STRICT_ALL_TABLES.0) != 0
    }

    /// Parses a comma-separated list, as `SET sql_mode` takes it, and expands composite modes. Returns the
    /// first unknown name as the error.
    pub fn parse(list: &str) -> Result<SqlMode, String> {
        let mut bits = 0;
        for name in list.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            let found = SqlMode::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            bits |= found.ok_or_else(|| name.to_string())?.1.0;
        }
        Ok(SqlMode(bits).expanded())
    }

    /// Adds the modes that composite modes imply.
    pub fn expanded(self) -> SqlMode {
        let traditional = SqlMode::STRICT_TRANS_TABLES.0
            | SqlMode::STRICT_ALL_TABLES.0
            | SqlMode::NO_ZERO_IN_DATE.0
            | SqlMode::NO_ZERO_DATE.0
            | SqlMode::ERROR_FOR_DIVISION_BY_ZERO.0
            | SqlMode::NO_AUTO_CREATE_USER.0
            | SqlMode::NO_ENGINE_SUBSTITUTION.0;
        let ansi = SqlMode::REAL_AS_FLOAT.0
            | SqlMode::PIPES_AS_CONCAT.0
            | SqlMode::ANSI_QUOTES.0
            | SqlMode::IGNORE_SPACE.0;
        let quiet = SqlMode::PIPES_AS_CONCAT.0
            | SqlMode::ANSI_QUOTES.0
            | SqlMode::IGNORE_SPACE.0
            | SqlMode::NO_KEY_OPTIONS.0
            | SqlMode::NO_TABLE_OPTIONS.0
            | SqlMode::NO_FIELD_OPTIONS.0;
        let mut bits = self.0;
        for (mode, adds) in [
            (SqlMode::TRADITIONAL, traditional),
            (SqlMode::ANSI, ansi),
            (SqlMode::ORACLE, quiet | SqlMode::NO_AUTO_CREATE_USER.0 | SqlMode::SIMULTANEOUS_ASSIGNMENT.0),
            (SqlMode::MSSQL, quiet),
            (SqlMode::POSTGRESQL, quiet),
            (SqlMode::DB2, quiet),
            (SqlMode::MAXDB, quiet | SqlMode::NO_AUTO_CREATE_USER.0),
            (SqlMode::MYSQL323, SqlMode::HIGH_NOT_PRECEDENCE.0),
            (SqlMode::MYSQL40, SqlMode::HIGH_NOT_PRECEDENCE.0),
        ] {
            if self.has(mode) {
                bits |= adds;
            }
        }
        SqlMode(bits)
    }

    /// Formats the set as `SELECT @@sql_mode` prints it.
    pub fn text(self) -> String {
        let on = SqlMode::NAMES.iter().filter(|(_, mode)| self.has(*mode)).map(|(name, _)| *name);
        on.collect::<Vec<_>>().join(",")
    }
}

impl std::ops::BitOr for SqlMode {
    type Output = SqlMode;

    fn bitor(self, other: SqlMode) -> SqlMode {
        SqlMode(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_prints_as_mariadb_prints_it() {
        let text =
            "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION";
        assert_eq!(SqlMode::DEFAULT.text(), text);
        assert_eq!(SqlMode::parse(&text.to_lowercase()), Ok(SqlMode::DEFAULT));
        assert_eq!(SqlMode::parse("ansi_quotes, nonsense"), Err("nonsense".to_string()));
        assert!(SqlMode::parse("TRADITIONAL").is_ok_and(|m| m.has(SqlMode::NO_ZERO_DATE)));
    }
}
