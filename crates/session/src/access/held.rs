//! The privileges that an account has.

use std::borrow::Cow;
use std::sync::Arc;

use cohort_catalog::{Account, AccountName, Catalog, PUBLIC, RoutineName, TableGrant, TableName, roles_of};
use cohort_types::{Collation, Privilege, Privileges, RoutineKind};

/// The privileges of a session's account, as of one version of the catalog: its own, those of the active role
/// and of all roles granted to that role, and those of PUBLIC.
#[derive(Clone, Debug)]
pub struct Access {
    pub(crate) version: u64,
    /// The account, followed by the roles. Empty if the account was dropped while the session was logged in;
    /// then it may do nothing.
    holders: Vec<Arc<Account>>,
}

/// Tables of performance_schema that every account may read, as in MariaDB.
const READ_BY_ALL: [&str; 3] = ["global_status", "session_status", "session_account_connect_attrs"];

impl Access {
    pub(crate) fn of(catalog: &Catalog, name: &AccountName, role: Option<&str>) -> Access {
        let mut holders: Vec<Arc<Account>> = catalog.accounts.get(name).cloned().into_iter().collect();
        if !holders.is_empty() {
            holders.extend(roles_of(catalog, role));
            holders.extend(roles_of(catalog, Some(PUBLIC)));
        }
        Access { version: catalog.version, holders }
    }

    /// Returns the privileges of a view's definer: an account without an active role, or a role, whose host
    /// is empty.
    pub(crate) fn of_definer(catalog: &Catalog, name: &AccountName) -> Access {
        match name.1.is_empty() {
            true => {
                let mut holders = roles_of(catalog, Some(&name.0));
                if !holders.is_empty() {
                    holders.extend(roles_of(catalog, Some(PUBLIC)));
                }
                Access { version: catalog.version, holders }
            }
            false => Access::of(catalog, name, None),
        }
    }

    /// Returns the privileges of the server itself when it applies a source's changes: all of them.
    pub(crate) fn of_server(catalog: &Catalog) -> Access {
        Access { version: catalog.version, holders: vec![Arc::new(Account::local_root())] }
    }

    pub fn account(&self) -> Option<&Arc<Account>> {
        self.holders.first()
    }

    /// Combines a privilege set over all holders.
    fn together(&self, held: impl Fn(&Account) -> Privileges) -> Privileges {
        self.holders.iter().fold(Privileges::NONE, |all, holder| all.and(held(holder)))
    }

    /// Returns the global privileges.
    pub fn everywhere(&self) -> Privileges {
        self.together(|holder| holder.grants.everything)
    }

    /// Returns the privileges on a schema.
    pub fn on_schema(&self, schema: &str) -> Privileges {
        self.everywhere().and(self.granted_on_schema(schema))
    }

    /// Returns the privileges on every schema that a name in GRANT covers, with its wildcards.
    pub(crate) fn on_schemas(&self, named: &str) -> Privileges {
        self.everywhere().and(self.granted_where(|pattern| pattern == named || covers(pattern, named)))
    }

    /// Returns the privileges granted on the schema itself. If several of a holder's patterns match, only the
    /// most specific one counts.
    pub(crate) fn granted_on_schema(&self, schema: &str) -> Privileges {
        self.granted_where(|pattern| matches(pattern, schema))
    }

    fn granted_where(&self, fits: impl Fn(&str) -> bool) -> Privileges {
        self.together(|holder| {
            let fitting = holder.grants.schemas.iter().filter(|(pattern, _)| fits(pattern));
            let best = fitting.max_by_key(|(pattern, _)| specificity(pattern));
            best.map_or(Privileges::NONE, |(_, held)| *held)
        })
    }

    /// Returns the privileges on a table.
    pub fn on_table(&self, schema: &str, table: &str) -> Privileges {
        let grant = self.granted_on_table(schema, table);
        let granted = self.on_schema(schema).and(grant.map_or(Privileges::NONE, |grant| grant.table));
        let is_of_all = schema.eq_ignore_ascii_case("performance_schema")
            && READ_BY_ALL.iter().any(|name| table.eq_ignore_ascii_case(name));
        if is_of_all { granted.and(Privilege::Select.into()) } else { granted }
    }

    /// Returns the privileges on a column. The name's case does not matter.
    pub fn on_column(&self, table: &TableName, column: &str) -> Privileges {
        let grant = self.granted_on_table(&table.schema, &table.table);
        let named = |grant: &TableGrant| {
            let found = grant.columns.iter().find(|(known, _)| known.eq_ignore_ascii_case(column));
            found.map(|(_, held)| *held)
        };
        let on_column = grant.as_deref().and_then(named).unwrap_or_default();
        self.on_table(&table.schema, &table.table).and(on_column)
    }

    /// Returns the privileges granted on the table itself and on its columns.
    pub fn granted_on_table(&self, schema: &str, table: &str) -> Option<Cow<'_, TableGrant>> {
        if self.holders.iter().all(|holder| holder.grants.tables.is_empty()) {
            return None;
        }
        let name = TableName { schema: schema.to_owned(), table: table.to_owned() };
        let mut all: Option<Cow<'_, TableGrant>> = None;
        for grant in self.holders.iter().filter_map(|holder| holder.grants.tables.get(&name)) {
            let Some(all) = &mut all else {
                all = Some(Cow::Borrowed(grant));
                continue;
            };
            let all = all.to_mut();
            all.table = all.table.and(grant.table);
            for (column, held) in &grant.columns {
                let of_column = all.columns.entry(column.clone()).or_default();
                *of_column = of_column.and(*held);
            }
        }
        all
    }

    /// Returns the privileges on a routine.
    pub fn on_routine(&self, kind: RoutineKind, schema: &str, name: &str) -> Privileges {
        let on_schema = self.on_schema(schema);
        if self.holders.iter().all(|holder| holder.grants.routines.is_empty()) {
            return on_schema;
        }
        let name = RoutineName::new(kind, schema, name);
        let granted = |holder: &Account| holder.grants.routines.get(&name).copied().unwrap_or_default();
        on_schema.and(self.together(granted))
    }

    /// Returns whether a privilege was granted on some routine of the schema.
    pub(crate) fn has_routine_in(&self, schema: &str) -> bool {
        let has = |holder: &Arc<Account>| holder.grants.routines.keys().any(|name| name.schema == schema);
        self.holders.iter().any(has)
    }

    /// Returns whether a privilege was granted on some table of the schema.
    pub(crate) fn has_table_in(&self, schema: &str) -> bool {
        let has = |holder: &Arc<Account>| holder.grants.tables.keys().any(|name| name.schema == schema);
        self.holders.iter().any(has)
    }
}

/// Returns whether a pattern in GRANT matches the schema.
fn matches(pattern: &str, schema: &str) -> bool {
    pattern == schema || Collation::UTF8MB4_BIN.like(schema.as_bytes(), pattern.as_bytes(), Some('\\'))
}

/// An element of a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Piece {
    Is(char),
    AnyOne,
    Any,
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut chars = pattern.chars().peekable();
    let mut pieces = Vec::new();
    while let Some(c) = chars.next() {
        pieces.push(match c {
            '%' => Piece::Any,
            '_' => Piece::AnyOne,
            '\\' => Piece::Is(chars.next().unwrap_or(c)),
            c => Piece::Is(c),
        });
    }
    pieces
}

/// Returns whether one pattern in GRANT matches every schema that another pattern matches. `a_` does not
/// cover `a%`, although it matches that text.
fn covers(pattern: &str, other: &str) -> bool {
    let (pattern, other) = (pieces(pattern), pieces(other));
    let (mut p, mut o) = (0, 0);
    // The position after the last `%`, and how far that `%` reaches. Only the last one needs to be extended.
    let mut last: Option<(usize, usize)> = None;
    while o < other.len() {
        match (pattern.get(p), other[o]) {
            (Some(Piece::Any), _) => {
                p += 1;
                last = Some((p, o));
            }
            (Some(Piece::AnyOne), Piece::Is(_) | Piece::AnyOne) => (p, o) = (p + 1, o + 1),
            (Some(Piece::Is(c)), Piece::Is(d)) if *c == d => (p, o) = (p + 1, o + 1),
            _ => {
                let Some((after_any, reach)) = last else { return false };
                (p, o) = (after_any, reach + 1);
                last = Some((after_any, reach + 1));
            }
        }
    }
    pattern[p..].iter().all(|piece| *piece == Piece::Any)
}

/// Returns the number of bytes before the first wildcard. A name without wildcards beats every pattern.
fn specificity(pattern: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in pattern.bytes().enumerate() {
        match byte {
            b'%' | b'_' if !is_escaped => return at,
            _ => is_escaped = byte == b'\\' && !is_escaped,
        }
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use cohort_types::Privilege;

    use super::*;

    fn access(schemas: &[(&str, Privilege)]) -> Access {
        let mut account = Account::new(("u".to_owned(), "%".to_owned()));
        for (pattern, privilege) in schemas {
            account.grants.schemas.insert((*pattern).to_owned(), (*privilege).into());
        }
        Access { version: 1, holders: vec![Arc::new(account)] }
    }

    #[test]
    fn the_most_specific_pattern_counts() {
        let held = access(&[
            ("%", Privilege::Drop),
            ("app\\_%", Privilege::Select),
            ("app%", Privilege::Update),
            ("t_", Privilege::Insert),
            ("app\\_two", Privilege::Delete),
        ]);
        let on = |schema: &str| held.on_schema(schema).to_string();
        assert_eq!(on("t1"), "INSERT", "an unescaped underscore is a wildcard");
        assert_eq!(on("app_one"), "SELECT");
        assert_eq!(on("app_two"), "DELETE");
        assert_eq!(on("app_three"), "SELECT");
        assert_eq!(on("applied"), "UPDATE");
        assert_eq!(on("x"), "DROP");
    }

    #[test]
    fn a_pattern_grant_covers_matching_schemas_only() {
        for (pattern, other) in [
            ("a_", "a_"),
            ("a%", "a%"),
            ("a%", "a_c%"),
            ("a%", "ab"),
            ("%", "%x_"),
            ("a\\_b%", "a\\_b\\_c"),
            ("a%c%", "abc_c"),
        ] {
            assert!(covers(pattern, other), "{pattern} {other}");
        }
        for (pattern, other) in [
            ("a_", "a%"),
            ("a__", "a_%"),
            ("a\\_b", "a_b"),
            ("a\\_b", "a%b"),
            ("ab", "a_"),
            ("a%c", "a%"),
            ("a_%", "a%"),
            ("_", "a\\_"),
        ] {
            assert!(!covers(pattern, other), "{pattern} {other}");
        }
        let held = access(&[("a_", Privilege::Drop)]);
        assert_eq!(held.on_schemas("a%"), Privileges::NONE);
        assert_eq!(held.on_schemas("ab"), Privilege::Drop.into());
    }
}
