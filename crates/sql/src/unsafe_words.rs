//! Detection of statements that are unsafe for statement-based replication, by their words.

use crate::ParseMode;
use crate::lexer::{Kind, Lexer};
use crate::parser::function_without_parens;

/// Returns whether a statement has a LIMIT, or calls a function whose name (in lower case) is unsafe.
pub fn has_unsafe_words(sql: &[u8], mode: ParseMode, is_unsafe: impl Fn(&str) -> bool) -> bool {
    let mut lexer = Lexer::new(sql, mode);
    let mut word: &[u8] = b"";
    loop {
        let token = lexer.next();
        match token.kind {
            Kind::End | Kind::Invalid => return false,
            Kind::LeftParen if is_unsafe(&String::from_utf8_lossy(word).to_ascii_lowercase()) => return true,
            Kind::Word => {
                word = &sql[token.start..token.end];
                let is_unsafe_call = function_without_parens(word).is_some_and(&is_unsafe);
                if is_unsafe_call || word.eq_ignore_ascii_case(b"LIMIT") {
                    return true;
                }
            }
            _ => word = b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_limits_are_found_where_they_are_words() {
        let is_unsafe = |name: &str| ["uuid", "rand", "sleep", "current_user"].contains(&name);
        let found = |sql: &str| has_unsafe_words(sql.as_bytes(), ParseMode::default(), is_unsafe);
        for sql in [
            "select uuid()",
            "select 1 + RAND (3)",
            "delete from t limit 1",
            "do sleep(1)",
            "select CURRENT_USER",
        ] {
            assert!(found(sql), "{sql}");
        }
        for sql in
            ["select 'uuid()'", "select `limit` from t", "select now()", "select uuid from t where (1)"]
        {
            assert!(!found(sql), "{sql}");
        }
    }
}
