//! Passwords in statements about accounts.
//!
//! ```text
//! IDENTIFIED BY 'password'                          -> IDENTIFIED BY PASSWORD 'hash'
//! {VIA | WITH | OR} plugin {USING | AS} PASSWORD('password') -> .. {USING | AS} 'hash'
//! ```
//!
//! Logs show neither passwords nor what is stored of them: [`secret_literals`] finds both.

use crate::ParseMode;
use crate::lexer::{Kind, Lexer, Token};
use crate::literal;

/// Tells the stored form of a password for a plugin; None: that of IDENTIFIED BY.
pub type StoredForm<'a> = dyn FnMut(Option<&str>, &[u8]) -> String + 'a;

/// A statement about accounts with what is stored of its passwords in their places, which means the same.
/// None: there is no password in it.
pub fn with_hashed_passwords(sql: &[u8], mode: ParseMode, stored: &mut StoredForm<'_>) -> Option<Vec<u8>> {
    let tokens = tokens(sql, mode);
    let (mut out, mut copied, mut at) = (Vec::new(), 0, 0);
    while at < tokens.len() {
        let found = Finder { sql, mode, tokens: &tokens }.password_at(at);
        let Some(Found { plugin, password, replaced, next }) = found else {
            at += 1;
            continue;
        };
        out.extend_from_slice(&sql[copied..replaced.0]);
        if plugin.is_none() {
            out.extend_from_slice(b"PASSWORD ");
        }
        out.extend_from_slice(crate::print::quoted_text(&stored(plugin.as_deref(), &password)).as_bytes());
        (copied, at) = (replaced.1, next);
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&sql[copied..]);
    Some(out)
}

/// Where the literals stand that no log may show, quotes included: passwords, their stored forms, and texts
/// that speak of either. One that the text leaves without its end goes to the text's end.
pub fn secret_literals(sql: &[u8], mode: ParseMode) -> Vec<(usize, usize)> {
    if !speaks_of_passwords(sql) {
        return Vec::new();
    }
    let (mut found, mut lexer, mut look) = (Vec::new(), Lexer::new(sql, mode), Look::default());
    loop {
        let token = lexer.next();
        let is_quoted = matches!(sql.get(token.start), Some(b'\'' | b'"'));
        match token.kind {
            Kind::End => return found,
            Kind::Invalid if is_quoted => {
                found.push((token.start, sql.len()));
                return found;
            }
            Kind::Invalid => return found,
            Kind::Text | Kind::NationalText => {}
            Kind::Quoted if is_quoted => {}
            _ => {
                look.passes(&sql[token.start..token.end]);
                continue;
            }
        }
        if look.is_secret(&sql[token.start..token.end]) {
            found.push((token.start, token.end));
        }
    }
}

/// What stands before a literal.
#[derive(Default)]
struct Look<'t> {
    /// The last word or sign, and the one before it.
    last: &'t [u8],
    before: &'t [u8],
    /// The literal before this one was a secret, and nothing stands between.
    continues: bool,
    /// The statement has said so.
    is_identified: bool,
    sets_password: bool,
}

impl<'t> Look<'t> {
    fn passes(&mut self, token: &'t [u8]) {
        self.is_identified |= token.eq_ignore_ascii_case(b"IDENTIFIED");
        self.sets_password |= is_one_of(self.last, &["SET"]) && is_one_of(token, &["PASSWORD"]);
        (self.before, self.last, self.continues) = (self.last, token, false);
    }

    fn is_secret(&mut self, literal: &[u8]) -> bool {
        let words = ["PASSWORD", "OLD_PASSWORD", "MASTER_PASSWORD"];
        let is_value = matches!(self.last, b"(" | b"=");
        let follows = is_one_of(self.last, &words)
            || (is_value && (self.sets_password || is_one_of(self.before, &words)))
            || (self.is_identified && is_one_of(self.last, &["BY", "USING", "AS"]));
        // Literals one after the other are one.
        self.continues = follows || self.continues || speaks_of_passwords(literal);
        (self.before, self.last) = (self.last, b"");
        self.continues
    }
}

fn is_one_of(token: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| token.eq_ignore_ascii_case(word.as_bytes()))
}

fn speaks_of_passwords(text: &[u8]) -> bool {
    let has = |word: &[u8]| {
        let mut starts = text.iter().enumerate().filter(|(_, byte)| **byte | 0x20 == word[0]);
        starts.any(|(at, _)| text[at..].get(..word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word)))
    };
    has(b"password") || has(b"identified")
}

fn tokens(sql: &[u8], mode: ParseMode) -> Vec<Token> {
    let mut lexer = Lexer::new(sql, mode);
    let next = || Some(lexer.next()).filter(|token| !matches!(token.kind, Kind::End | Kind::Invalid));
    std::iter::from_fn(next).collect()
}

/// A password, and the bytes that it takes with what belongs to it.
struct Found {
    plugin: Option<String>,
    password: Vec<u8>,
    replaced: (usize, usize),
    /// The token behind.
    next: usize,
}

struct Finder<'t> {
    sql: &'t [u8],
    mode: ParseMode,
    tokens: &'t [Token],
}

impl Finder<'_> {
    fn kind(&self, at: usize) -> Kind {
        self.tokens.get(at).map_or(Kind::End, |token| token.kind)
    }

    fn bytes(&self, at: usize) -> &[u8] {
        self.tokens.get(at).map_or(&[], |token| &self.sql[token.start..token.end])
    }

    fn is(&self, at: usize, words: &[&str]) -> bool {
        self.kind(at) == Kind::Word
            && words.iter().any(|word| self.bytes(at).eq_ignore_ascii_case(word.as_bytes()))
    }

    /// String literals one after the other are one; where they end, and what they say.
    fn text(&self, from: usize) -> (usize, Vec<u8>) {
        let (mut at, mut text) = (from, Vec::new());
        while self.kind(at) == Kind::Text {
            text.extend(literal::text(self.bytes(at), self.mode));
            at += 1;
        }
        (at, text)
    }

    /// The password of the clause that begins with this token.
    fn password_at(&self, at: usize) -> Option<Found> {
        if self.is(at, &["IDENTIFIED"]) && self.is(at + 1, &["BY"]) {
            let (next, password) = self.text(at + 2);
            let replaced = (self.tokens.get(at + 2)?.start, self.tokens[next - 1].end);
            return (next > at + 2).then_some(Found { plugin: None, password, replaced, next });
        }
        let is_clause = self.is(at, &["VIA", "WITH", "OR"])
            && self.is(at + 2, &["USING", "AS"])
            && self.is(at + 3, &["PASSWORD"])
            && self.kind(at + 4) == Kind::LeftParen;
        if !is_clause {
            return None;
        }
        let name = self.bytes(at + 1);
        let plugin = match self.kind(at + 1) {
            Kind::Text => literal::text(name, self.mode),
            Kind::Quoted => literal::unquote_name(name).into_bytes(),
            _ => name.to_vec(),
        };
        let plugin = Some(String::from_utf8_lossy(&plugin).into_owned());
        let (next, password) = self.text(at + 5);
        let is_whole = next > at + 5 && self.kind(next) == Kind::RightParen;
        let replaced = (self.tokens[at + 3].start, self.tokens.get(next)?.end);
        is_whole.then_some(Found { plugin, password, replaced, next: next + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashed(sql: &str) -> Option<String> {
        let mut stored = |plugin: Option<&str>, password: &[u8]| {
            format!("{}:{}", plugin.unwrap_or("-"), String::from_utf8_lossy(password))
        };
        let text = with_hashed_passwords(sql.as_bytes(), ParseMode::default(), &mut stored)?;
        Some(String::from_utf8(text).expect("text"))
    }

    #[test]
    fn each_password_becomes_what_is_stored_of_it() {
        for (sql, expected) in [
            (
                "CREATE USER a@b IDENTIFIED BY 'it''s' REQUIRE SSL",
                "CREATE USER a@b IDENTIFIED BY PASSWORD '-:it''s' REQUIRE SSL",
            ),
            (
                "create user a identified /* by 'x' */ by \"1\" '2', b identified by 'y'",
                "create user a identified /* by 'x' */ by PASSWORD '-:12', b identified by PASSWORD '-:y'",
            ),
            (
                "ALTER USER a IDENTIFIED VIA unix_socket OR `ed25519` USING PASSWORD ('x') OR p AS 'hash'",
                "ALTER USER a IDENTIFIED VIA unix_socket OR `ed25519` USING 'ed25519:x' OR p AS 'hash'",
            ),
            (
                "GRANT ALL ON *.* TO a IDENTIFIED WITH 'p' AS PASSWORD('x') WITH GRANT OPTION",
                "GRANT ALL ON *.* TO a IDENTIFIED WITH 'p' AS 'p:x' WITH GRANT OPTION",
            ),
        ] {
            assert_eq!(hashed(sql).as_deref(), Some(expected));
        }
        for sql in [
            "CREATE USER a IDENTIFIED BY PASSWORD '*00'",
            "CREATE USER a",
            "GRANT SELECT ON t TO a",
            "CREATE USER a IDENTIFIED VIA p USING 'hash'",
            "CREATE USER a IDENTIFIED BY",
            "CREATE USER a IDENTIFIED VIA p USING PASSWORD('x'",
        ] {
            assert_eq!(hashed(sql), None, "{sql}");
        }
    }

    #[test]
    fn no_log_shows_a_password() {
        let masked = |sql: &str| {
            let (mut out, mut at) = (String::new(), 0);
            for (start, end) in secret_literals(sql.as_bytes(), ParseMode::default()) {
                out.push_str(&sql[at..start]);
                out.push('#');
                at = end;
            }
            out + &sql[at..]
        };
        for (sql, expected) in [
            (
                "create user a@'h' identified by 's' 't' require issuer 'i', b identified by password '*0'",
                "create user a@'h' identified by # # require issuer 'i', b identified by password #",
            ),
            (
                "alter user a identified via x or y using password('s')",
                "alter user a identified via x or y using password(#)",
            ),
            (
                "alter user a identified via x using 'h' or y as 'g'",
                "alter user a identified via x using # or y as #",
            ),
            ("set password for 'a'@'b' = password(\"s\")", "set password for 'a'@'b' = password(#)"),
            ("SET  PASSWORD  FOR z = 's'", "SET  PASSWORD  FOR z = #"),
            (
                "change master to master_host='h', master_password = 's'",
                "change master to master_host='h', master_password = #",
            ),
            (
                "create server s options (host 'h', password 's')",
                "create server s options (host 'h', password #)",
            ),
            ("prepare p from 'create user u identified by ''s'''", "prepare p from #"),
            ("select password('s'), old_password('t'), 'u'", "select password(#), old_password(#), 'u'"),
            ("grant usage on *.* to u identified by 'cut", "grant usage on *.* to u identified by #"),
            ("select 'a', \"b\" from t where c = 'd'", "select 'a', \"b\" from t where c = 'd'"),
            (
                "select 'pass', password from t where id = 'x'",
                "select 'pass', password from t where id = 'x'",
            ),
        ] {
            assert_eq!(masked(sql), expected);
        }
    }
}
