//! Rules for which events are logged.

use cohort_config::{Globals, VarId};
use cohort_sql::{ParseMode, first_words};

/// The subject of an event, as a bit.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EventKind {
    Connection = 1,
    Statement = 2,
    Table = 4,
}

impl EventKind {
    /// The kinds of events that include a statement number.
    pub(super) const OF_STATEMENTS: u8 = EventKind::Statement as u8 | EventKind::Table as u8;
}

/// Bits of `server_audit_events`, in MariaDB's order.
const CONNECT: u64 = 1;
const QUERY: u64 = 2;
const TABLE: u64 = 4;
const QUERY_DDL: u64 = 8;
const QUERY_DML: u64 = 16;
const QUERY_DCL: u64 = 32;
const QUERY_DML_NO_SELECT: u64 = 64;
const CLASSES: u64 = QUERY_DDL | QUERY_DML | QUERY_DCL | QUERY_DML_NO_SELECT;

/// The settings, parsed.
#[derive(Default)]
pub(super) struct Rules {
    /// 0 selects all events.
    events: u64,
    /// If not empty, only these users are logged.
    only: Vec<String>,
    except: Vec<String>,
    /// Maximum bytes of a statement's text in a line; `usize::MAX` if unlimited.
    pub(super) text_bytes_max: usize,
}

impl Rules {
    pub(super) fn of(globals: &Globals) -> Rules {
        let users = |id| names(globals.text(id).as_deref().unwrap_or_default());
        Rules {
            events: globals.uint(VarId::ServerAuditEvents),
            only: users(VarId::ServerAuditInclUsers),
            except: users(VarId::ServerAuditExclUsers),
            text_bytes_max: match globals.uint(VarId::ServerAuditQueryLogLimit) {
                0 => usize::MAX,
                bytes => bytes as usize,
            },
        }
    }

    /// Returns the bits of [`EventKind`] for which events may be logged.
    pub(super) fn kinds(&self) -> u8 {
        let wanted = |bits| self.events == 0 || self.events & bits != 0;
        let kind = |bits, kind| if wanted(bits) { kind as u8 } else { 0 };
        kind(CONNECT, EventKind::Connection)
            | kind(QUERY | CLASSES, EventKind::Statement)
            | kind(TABLE, EventKind::Table)
    }

    /// Returns whether the user's statements are logged. Connections are logged for all users.
    pub(super) fn wants_user(&self, user: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|name| name == user);
        if self.only.is_empty() { !is_in(&self.except) } else { is_in(&self.only) }
    }

    /// Returns whether a statement is logged, by its first words.
    pub(super) fn wants_statement(&self, text: &[u8], mode: ParseMode) -> bool {
        if self.events == 0 || self.events & QUERY != 0 {
            return true;
        }
        if self.events & CLASSES == 0 {
            return false;
        }
        let [first, second] = first_words(text, mode);
        self.events & class(&first, &second) != 0
    }
}

/// Returns the bits of `server_audit_events` that select a statement with these first words, in upper case.
fn class(first: &str, second: &str) -> u64 {
    let is_about = |words: &[&str]| words.contains(&second);
    match first {
        "GRANT" | "REVOKE" => QUERY_DCL,
        "SET" if is_about(&["PASSWORD"]) => QUERY_DCL,
        "CREATE" | "DROP" | "ALTER" | "RENAME" if is_about(&["USER"]) => QUERY_DCL,
        "CREATE" | "DROP" if is_about(&["ROLE"]) => QUERY_DCL,
        "CREATE" | "DROP" if is_about(&["FUNCTION", "PROCEDURE"]) => 0,
        "CREATE" | "DROP" | "ALTER" | "RENAME" | "TRUNCATE" => QUERY_DDL,
        "LOAD" if !is_about(&["DATA", "XML"]) => 0,
        "DO" | "CALL" | "LOAD" | "DELETE" | "INSERT" | "UPDATE" | "REPLACE" | "HANDLER" => {
            QUERY_DML | QUERY_DML_NO_SELECT
        }
        "SELECT" | "WITH" | "VALUES" | "EXPLAIN" => QUERY_DML,
        _ => 0,
    }
}

/// Splits a list of names at its commas.
fn names(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Removes from `server_audit_excl_users` the names that are in `server_audit_incl_users`, too, after one of
/// the two was set. Returns the setting to change, its new value and the warnings for the client.
pub fn adjusted_users(globals: &Globals, set: VarId) -> Option<(VarId, String, Vec<String>)> {
    let list = |id| globals.text(id).unwrap_or_default();
    let (only, except) = (list(VarId::ServerAuditInclUsers), list(VarId::ServerAuditExclUsers));
    let only = names(&only);
    let (gone, kept): (Vec<String>, Vec<String>) =
        names(&except).into_iter().partition(|name| only.contains(name));
    if gone.is_empty() {
        return None;
    }
    let warning = |name: &String| match set {
        VarId::ServerAuditInclUsers => format!("User '{name}' was removed from the server_audit_excl_users."),
        _ => format!("User '{name}' is in the server_audit_incl_users, so wasn't added."),
    };
    Some((VarId::ServerAuditExclUsers, kept.join(","), gone.iter().map(warning).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(events: u64, text: &str) -> bool {
        Rules { events, ..Rules::default() }.wants_statement(text.as_bytes(), ParseMode::default())
    }

    #[test]
    fn statements_are_classed_by_their_first_words() {
        for (text, expected) in [
            ("SELECT 1", QUERY_DML),
            (" /* a */ ((select 1))", QUERY_DML),
            ("/*!50000 select */ 1", QUERY_DML),
            ("SET STATEMENT max_statement_time=1 FOR SELECT 1", QUERY_DML),
            ("SET STATEMENT max_statement_time=1 FOR SET @a = 1", 0),
            ("WITH x AS (SELECT 1) SELECT * FROM x", QUERY_DML),
            ("insert into t values (1)", QUERY_DML | QUERY_DML_NO_SELECT),
            ("LOAD DATA INFILE 'x' INTO TABLE t", QUERY_DML | QUERY_DML_NO_SELECT),
            ("DO 1", QUERY_DML | QUERY_DML_NO_SELECT),
            ("CREATE TABLE t (a INT)", QUERY_DDL),
            ("CREATE OR REPLACE TABLE t (a INT)", QUERY_DDL),
            ("TRUNCATE t", QUERY_DDL),
            ("CREATE OR REPLACE USER u", QUERY_DCL),
            ("create/**/user u", QUERY_DCL),
            ("DROP ROLE r", QUERY_DCL),
            ("ALTER USER u ACCOUNT LOCK", QUERY_DCL),
            ("SET PASSWORD = PASSWORD('x')", QUERY_DCL),
            ("REVOKE SELECT ON *.* FROM u", QUERY_DCL),
            ("SET @a = 1", 0),
            ("SHOW TABLES", 0),
            ("selec 1", 0),
            ("", 0),
        ] {
            for bit in [QUERY_DDL, QUERY_DML, QUERY_DCL, QUERY_DML_NO_SELECT] {
                assert_eq!(wants(bit, text), expected & bit != 0, "{text} {bit}");
            }
            assert!(wants(0, text) && wants(QUERY, text) && !wants(CONNECT, text), "{text}");
        }
    }

    #[test]
    fn users_are_distinct_by_either_list() {
        let rules =
            |only: &str, except: &str| Rules { only: names(only), except: names(except), ..Rules::default() };
        assert!(rules("", "").wants_user("a"));
        assert!(rules("a, b", "").wants_user("b") && !rules("a, b", "").wants_user("c"));
        assert!(!rules("", " a,,b ").wants_user("b") && rules("", "a,b").wants_user("c"));
    }
}
