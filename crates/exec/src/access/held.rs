//! What an account holds.

use std::sync::Arc;

use cohort_catalog::{Account, AccountName, Catalog, TableGrant, TableName};
use cohort_types::{Collation, Privileges};

/// What the account of a session holds, as of one version of the catalog.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) version: u64,
    /// None: the account was dropped while somebody was logged in. It may do nothing any more.
    account: Option<Arc<Account>>,
}

impl Access {
    pub(crate) fn of(catalog: &Catalog, name: &AccountName) -> Access {
        Access { version: catalog.version, account: catalog.accounts.get(name).cloned() }
    }

    /// What the server itself may do when it applies a source's changes: everything.
    pub(crate) fn of_server(catalog: &Catalog) -> Access {
        Access { version: catalog.version, account: Some(Arc::new(Account::local_root())) }
    }

    pub(crate) fn account(&self) -> Option<&Arc<Account>> {
        self.account.as_ref()
    }

    /// On everything.
    pub(crate) fn everywhere(&self) -> Privileges {
        self.account.as_ref().map_or(Privileges::NONE, |account| account.grants.everything)
    }

    /// On a schema.
    pub(crate) fn on_schema(&self, schema: &str) -> Privileges {
        self.everywhere().and(self.granted_on_schema(schema))
    }

    /// What was granted on the schema itself. Of several patterns that match the most specific one counts
    /// alone.
    pub(crate) fn granted_on_schema(&self, schema: &str) -> Privileges {
        let Some(account) = &self.account else { return Privileges::NONE };
        let fitting = account.grants.schemas.iter().filter(|(pattern, _)| matches(pattern, schema));
        let best = fitting.max_by_key(|(pattern, _)| specificity(pattern));
        best.map_or(Privileges::NONE, |(_, held)| *held)
    }

    /// On a table.
    pub(crate) fn on_table(&self, schema: &str, table: &str) -> Privileges {
        let grant = self.granted_on_table(schema, table);
        self.on_schema(schema).and(grant.map_or(Privileges::NONE, |grant| grant.table))
    }

    /// On a column, whose name is in any case.
    pub(crate) fn on_column(&self, table: &TableName, column: &str) -> Privileges {
        let grant = self.granted_on_table(&table.schema, &table.table);
        let named = |grant: &TableGrant| {
            let found = grant.columns.iter().find(|(known, _)| known.eq_ignore_ascii_case(column));
            found.map(|(_, held)| *held)
        };
        let on_column = grant.and_then(named).unwrap_or_default();
        self.on_table(&table.schema, &table.table).and(on_column)
    }

    /// What was granted on the table and its columns.
    pub(crate) fn granted_on_table(&self, schema: &str, table: &str) -> Option<&TableGrant> {
        let tables = &self.account.as_ref()?.grants.tables;
        if tables.is_empty() {
            return None;
        }
        tables.get(&TableName { schema: schema.to_owned(), table: table.to_owned() })
    }

    /// Whether something was granted on a table of the schema.
    pub(crate) fn has_table_in(&self, schema: &str) -> bool {
        let tables = self.account.as_ref().map(|account| &account.grants.tables);
        tables.is_some_and(|tables| tables.keys().any(|name| name.schema == schema))
    }
}

/// Whether a pattern of GRANT means the schema.
fn matches(pattern: &str, schema: &str) -> bool {
    pattern == schema || Collation::UTF8MB4_BIN.like(schema.as_bytes(), pattern.as_bytes(), Some('\\'))
}

/// Bytes before the first wildcard; a name without any beats every pattern.
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
        Access { version: 1, account: Some(Arc::new(account)) }
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
}
