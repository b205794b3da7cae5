//! What a statement is about, by its first words: for those who must know of texts that cannot be read, too.

use crate::ParseMode;
use crate::lexer::{Kind, Lexer};

/// Words between a verb and what it is about: `CREATE OR REPLACE TABLE`.
const BETWEEN: &[&str] = &["OR", "REPLACE", "TEMPORARY", "UNIQUE"];

/// The first word and the one that says what it is about, in upper case; empty where there is none. Comments
/// and parentheses before them are passed over, and `SET STATEMENT .. FOR`.
pub fn first_words(sql: &[u8], mode: ParseMode) -> [String; 2] {
    let mut lexer = Lexer::new(sql, mode);
    let mut first = opening_word(&mut lexer, sql);
    let mut second = next_word(&mut lexer, sql);
    // One in the other is refused when it is parsed.
    if first == "SET" && second == "STATEMENT" && passes(&mut lexer, sql, b"FOR") {
        first = opening_word(&mut lexer, sql);
        second = next_word(&mut lexer, sql);
    }
    let is_about_something = ["CREATE", "DROP", "ALTER", "RENAME"].contains(&first.as_str());
    while is_about_something && BETWEEN.contains(&second.as_str()) {
        second = next_word(&mut lexer, sql);
    }
    [first, second]
}

/// Whether the statement changes rows, by the same words.
pub fn changes_rows(sql: &[u8], mode: ParseMode) -> bool {
    let [first, _] = first_words(sql, mode);
    ["INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"].contains(&first.as_str())
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

/// Goes behind the next such word; false when there is none.
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
