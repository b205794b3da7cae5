//! The kind of a statement by its first words. Works for statements that cannot be parsed, too.

use crate::ParseMode;
use crate::lexer::{Kind, Lexer};

/// Words between a verb and the kind of its object: `CREATE OR REPLACE TABLE`.
const BETWEEN: &[&str] = &["OR", "REPLACE", "TEMPORARY", "UNIQUE"];

/// Returns the first word and the kind of the object, in upper case; empty if missing. Skips comments and
/// parentheses before them, and `SET STATEMENT .. FOR`.
pub fn first_words(sql: &[u8], mode: ParseMode) -> [String; 2] {
    let mut lexer = Lexer::new(sql, mode);
    let [first, mut second] = verb_and_next(&mut lexer, sql);
    let is_about_something = ["CREATE", "DROP", "ALTER", "RENAME"].contains(&first.as_str());
    while is_about_something && BETWEEN.contains(&second.as_str()) {
        second = next_word(&mut lexer, sql);
    }
    [first, second]
}

/// Kinds of objects that are stored programs. ALTER and DROP use the same words.
const PROGRAMS: &[&str] = &["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];

/// Returns whether the statement creates, alters or drops a stored routine, a trigger or an event.
pub fn defines_program(sql: &[u8], mode: ParseMode) -> bool {
    let mut lexer = Lexer::new(sql, mode);
    let [verb, mut word] = verb_and_next(&mut lexer, sql);
    if !["CREATE", "ALTER", "DROP"].contains(&verb.as_str()) {
        return false;
    }
    loop {
        word = match word.as_str() {
            "OR" | "REPLACE" | "AGGREGATE" => next_word(&mut lexer, sql),
            "DEFINER" => word_after_definer(&mut lexer, sql),
            word => return PROGRAMS.contains(&word),
        };
    }
}

/// First words of compound statements. A statement that begins with one of them can contain `;`.
const COMPOUNDS: &[&str] = &["IF", "CASE", "LOOP", "WHILE", "REPEAT", "FOR"];

/// Returns whether the statement can contain other statements, each with its `;`.
pub fn has_compound_body(sql: &[u8], mode: ParseMode) -> bool {
    let [first, second] = verb_and_next(&mut Lexer::new(sql, mode), sql);
    match first.as_str() {
        "BEGIN" => second == "NOT",
        "CREATE" | "ALTER" => defines_program(sql, mode),
        word => COMPOUNDS.contains(&word),
    }
}

/// Skips `= user@host` and returns the next word.
fn word_after_definer(lexer: &mut Lexer<'_>, sql: &[u8]) -> String {
    lexer.next();
    lexer.next();
    let token = lexer.next();
    match token.kind {
        // CURRENT_USER()
        Kind::LeftParen => {
            lexer.next();
        }
        Kind::AtName if token.end - token.start > 1 => {}
        // The host is quoted.
        Kind::AtName | Kind::At => {
            lexer.next();
        }
        kind => return upper(kind, &sql[token.start..token.end]),
    }
    next_word(lexer, sql)
}

/// Returns whether the statement changes rows, by its first word.
pub fn changes_rows(sql: &[u8], mode: ParseMode) -> bool {
    let [first, _] = first_words(sql, mode);
    ["INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"].contains(&first.as_str())
}

/// Returns the first two words, or those of the inner statement of `SET STATEMENT .. FOR`.
fn verb_and_next(lexer: &mut Lexer<'_>, sql: &[u8]) -> [String; 2] {
    let words = [opening_word(lexer, sql), next_word(lexer, sql)];
    // A nested SET STATEMENT is rejected by the parser.
    if words == ["SET", "STATEMENT"] && passes(lexer, sql, b"FOR") {
        return [opening_word(lexer, sql), next_word(lexer, sql)];
    }
    words
}

fn opening_word(lexer: &mut Lexer<'_>, sql: &[u8]) -> String {
    loop {
        let token = lexer.next();
        match token.kind {
            Kind::LeftParen => {}
            kind => return upper(kind, &sql[token.start..token.end]),
        }
    }
}

fn next_word(lexer: &mut Lexer<'_>, sql: &[u8]) -> String {
    let token = lexer.next();
    upper(token.kind, &sql[token.start..token.end])
}

fn upper(kind: Kind, bytes: &[u8]) -> String {
    match kind {
        Kind::Word => String::from_utf8_lossy(bytes).to_ascii_uppercase(),
        _ => String::new(),
    }
}

/// Skips everything up to and including the next `word`. Returns false if there is none.
fn passes(lexer: &mut Lexer<'_>, sql: &[u8], word: &[u8]) -> bool {
    loop {
        let token = lexer.next();
        match token.kind {
            Kind::End | Kind::Invalid => return false,
            Kind::Word if sql[token.start..token.end].eq_ignore_ascii_case(word) => return true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ParseMode, defines_program};

    #[test]
    fn definitions_of_stored_programs_are_known_by_their_words() {
        for (sql, expected) in [
            ("CREATE PROCEDURE p() SELECT 1", true),
            ("create definer=`event`@`localhost` trigger t BEFORE INSERT ON a FOR EACH ROW SET @a = 1", true),
            ("CREATE DEFINER=root@localhost EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1", true),
            ("CREATE OR REPLACE DEFINER=CURRENT_USER() FUNCTION f() RETURNS INT RETURN 1", true),
            ("CREATE OR REPLACE DEFINER=CURRENT_USER AGGREGATE FUNCTION f() RETURNS INT RETURN 1", true),
            ("SET STATEMENT sql_mode='ORACLE' FOR CREATE PACKAGE p AS END", true),
            ("/* a */ DROP PROCEDURE IF EXISTS p", true),
            ("ALTER EVENT e DISABLE", true),
            ("CREATE DEFINER=`event`@`localhost` VIEW v AS SELECT 1", false),
            ("CREATE TABLE event (a INT)", false),
            ("DROP TABLE `procedure`", false),
            ("INSERT INTO t VALUES ('CREATE EVENT')", false),
            ("CREATE", false),
            ("", false),
        ] {
            assert_eq!(defines_program(sql.as_bytes(), ParseMode::default()), expected, "{sql}");
        }
    }
}
