//! Detection of statements that are unsafe for statement-based replication, by their words.

use crate::ParseMode;
use crate::lexer::{Kind, Lexer};

/// Functions that may return another value on a replica.
const FUNCTIONS: [&str; 20] = [
    "CURRENT_USER",
    "FOUND_ROWS",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LOAD_FILE",
    "MASTER_POS_WAIT",
    "MASTER_GTID_WAIT",
    "RAND",
    "RANDOM_BYTES",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "ROW_COUNT",
    "SESSION_USER",
    "SLEEP",
    "SYSDATE",
    "SYSTEM_USER",
    "USER",
    "UUID",
    "UUID_SHORT",
];

/// Returns whether a statement calls such a function or has a LIMIT.
pub fn has_unsafe_words(sql: &[u8], mode: ParseMode) -> bool {
    let mut lexer = Lexer::new(sql, mode);
    let mut may_be_call = false;
    loop {
        let token = lexer.next();
        match token.kind {
            Kind::End | Kind::Invalid => return false,
            Kind::LeftParen if may_be_call => return true,
            Kind::Word => {
                let word = &sql[token.start..token.end];
                if word.eq_ignore_ascii_case(b"LIMIT") {
                    return true;
                }
                may_be_call = FUNCTIONS.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
            }
            _ => may_be_call = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_limits_are_found_where_they_are_words() {
        let found = |sql: &str| has_unsafe_words(sql.as_bytes(), ParseMode::default());
        for sql in ["select uuid()", "select 1 + RAND (3)", "delete from t limit 1", "do sleep(1)"] {
            assert!(found(sql), "{sql}");
        }
        for sql in
            ["select 'uuid()'", "select `limit` from t", "select now()", "select uuid from t where (1)"]
        {
            assert!(!found(sql), "{sql}");
        }
    }
}
