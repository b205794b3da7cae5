//! Passwords in account statements, and their replacement by hashes.
//!
//! ```text
//! IDENTIFIED BY 'password'                          -> IDENTIFIED BY PASSWORD 'hash'
//! {VIA | WITH | OR} plugin {USING | AS} PASSWORD('password') -> .. {USING | AS} 'hash'
//! ```

use crate::ParseMode;
use crate::lexer::{Kind, Lexer, Token};
use crate::literal;

/// Returns the stored form of a password for a plugin, or for IDENTIFIED BY if the plugin is `None`.
pub type StoredForm<'a> = dyn FnMut(Option<&str>, &[u8]) -> String + 'a;

/// Returns an equivalent account statement with stored forms in place of passwords, and the name of the
/// active role in place of CURRENT_ROLE, which a replica does not have. Returns `None` if nothing is
/// replaced.
pub fn for_replicas(
    sql: &[u8],
    mode: ParseMode,
    role: Option<&str>,
    stored: &mut StoredForm<'_>,
) -> Option<Vec<u8>> {
    let tokens = tokens(sql, mode);
    let (mut out, mut copied, mut at) = (Vec::new(), 0, 0);
    while at < tokens.len() {
        let finder = Finder { sql, mode, tokens: &tokens };
        if let Some(role) = role.filter(|_| finder.is(at, &["CURRENT_ROLE"])) {
            out.extend_from_slice(&sql[copied..tokens[at].start]);
            out.extend_from_slice(crate::print::quoted_text_in(role, mode).as_bytes());
            let has_parentheses = finder.bytes(at + 1) == b"(" && finder.bytes(at + 2) == b")";
            at += if has_parentheses { 2 } else { 0 };
            (copied, at) = (tokens[at].end, at + 1);
            continue;
        }
        let Some(Found { plugin, password, replaced, next }) = finder.password_at(at) else {
            at += 1;
            continue;
        };
        out.extend_from_slice(&sql[copied..replaced.0]);
        if plugin.is_none() {
            out.extend_from_slice(b"PASSWORD ");
        }
        out.extend_from_slice(
            crate::print::quoted_text_in(&stored(plugin.as_deref(), &password), mode).as_bytes(),
        );
        (copied, at) = (replaced.1, next);
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&sql[copied..]);
    Some(out)
}

fn tokens(sql: &[u8], mode: ParseMode) -> Vec<Token> {
    let mut lexer = Lexer::new(sql, mode);
    let next = || Some(lexer.next()).filter(|token| !matches!(token.kind, Kind::End | Kind::Invalid));
    std::iter::from_fn(next).collect()
}

/// A password, and the range of bytes to replace.
struct Found {
    plugin: Option<String>,
    password: Vec<u8>,
    replaced: (usize, usize),
    /// Index of the next token.
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

    /// Joins adjacent string literals. Returns the index of the token after them and their contents.
    fn text(&self, from: usize) -> (usize, Vec<u8>) {
        let (mut at, mut text) = (from, Vec::new());
        while self.kind(at) == Kind::Text {
            text.extend(literal::text(self.bytes(at), self.mode));
            at += 1;
        }
        (at, text)
    }

    /// Returns the password of the clause that starts at this token.
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
        let text = for_replicas(sql.as_bytes(), ParseMode::default(), Some("r'1"), &mut stored)?;
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
            (
                "DROP ROLE IF EXISTS current_role, `current_role`",
                "DROP ROLE IF EXISTS 'r''1', `current_role`",
            ),
            (
                "GRANT q TO CURRENT_ROLE ( ), a IDENTIFIED BY 'x'",
                "GRANT q TO 'r''1', a IDENTIFIED BY PASSWORD '-:x'",
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
}
