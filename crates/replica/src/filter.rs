//! `replicate_*`: the replication filter.
//!
//! # Rules
//! Schema rules come first: with `replicate_do_db` only the listed schemas are applied, otherwise all except
//! those in `replicate_ignore_db`. Rows are checked by the schema of their table, statements by the current
//! schema, statements about a schema by that schema. Then come table rules, in this order: `do_table`,
//! `ignore_table`, `wild_do_table`, `wild_ignore_table`; the first matching rule decides. A table without a
//! match is skipped if there are `do` rules. For a statement that changes several tables, the first table
//! with a matching rule decides. `replicate_rewrite_db` is applied before all of these.

use std::sync::Arc;

use cohort_binlog::event::TableMap;
use cohort_config::{Globals, VarId};
use cohort_exec::names_in;
use cohort_types::{Collation, SqlMode};

/// The filter rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    do_db: Vec<String>,
    ignore_db: Vec<String>,
    do_table: Vec<String>,
    ignore_table: Vec<String>,
    wild_do: Vec<String>,
    wild_ignore: Vec<String>,
    rewrite: Vec<(String, String)>,
}

fn list(globals: &Globals, id: VarId) -> Vec<String> {
    let text = globals.text(id);
    let parts = text.as_deref().unwrap_or("").split(',').map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

fn is_like(name: &str, rules: &[String]) -> bool {
    rules.iter().any(|rule| Collation::UTF8MB4_BIN.like(name.as_bytes(), rule.as_bytes(), Some('\\')))
}

impl Filter {
    /// Reads the rules from the current variables.
    pub fn of(globals: &Globals) -> Filter {
        let rewrite = list(globals, VarId::ReplicateRewriteDb);
        let pair = |rule: String| {
            let (from, to) = rule.split_once("->")?;
            Some((from.trim().to_owned(), to.trim().to_owned()))
        };
        Filter {
            do_db: list(globals, VarId::ReplicateDoDb),
            ignore_db: list(globals, VarId::ReplicateIgnoreDb),
            do_table: list(globals, VarId::ReplicateDoTable),
            ignore_table: list(globals, VarId::ReplicateIgnoreTable),
            wild_do: list(globals, VarId::ReplicateWildDoTable),
            wild_ignore: list(globals, VarId::ReplicateWildIgnoreTable),
            rewrite: rewrite.into_iter().filter_map(pair).collect(),
        }
    }

    /// Returns whether nothing is filtered or rewritten.
    pub fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// Returns the local name of a source's schema.
    pub fn rewritten<'s>(&'s self, schema: &'s str) -> &'s str {
        self.rewrite.iter().find(|(from, _)| from == schema).map_or(schema, |(_, to)| to)
    }

    /// Returns a table map with the local schema name.
    pub fn rewritten_map(&self, map: &Arc<TableMap>) -> Arc<TableMap> {
        let mut map = Arc::clone(map);
        if !self.rewrite.is_empty() {
            let schema = String::from_utf8_lossy(&map.db).into_owned();
            let here = self.rewritten(&schema);
            if here != schema {
                Arc::make_mut(&mut map).db = here.as_bytes().to_vec();
            }
        }
        map
    }

    fn passes_schema(&self, schema: &str) -> bool {
        match self.do_db.is_empty() {
            true => !self.ignore_db.iter().any(|name| name == schema),
            false => self.do_db.iter().any(|name| name == schema),
        }
    }

    fn has_table_rules(&self) -> bool {
        [&self.do_table, &self.ignore_table, &self.wild_do, &self.wild_ignore]
            .iter()
            .any(|rules| !rules.is_empty())
    }

    /// Returns the decision of the first matching table rule, or `None` if no rule matches.
    fn table_rule(&self, schema: &str, table: &str) -> Option<bool> {
        let name = format!("{schema}.{table}");
        match () {
            () if self.do_table.contains(&name) => Some(true),
            () if self.ignore_table.contains(&name) => Some(false),
            () if is_like(&name, &self.wild_do) => Some(true),
            () if is_like(&name, &self.wild_ignore) => Some(false),
            () => None,
        }
    }

    /// Returns whether tables without a matching rule are applied.
    fn passes_unnamed_tables(&self) -> bool {
        self.do_table.is_empty() && self.wild_do.is_empty()
    }

    /// Returns whether rows of a table are applied. Both names are local.
    pub fn passes_rows(&self, schema: &str, table: &str) -> bool {
        self.passes_schema(schema)
            && self.table_rule(schema, table).unwrap_or_else(|| self.passes_unnamed_tables())
    }

    /// Returns whether a statement is applied. `current` is the local name of the current schema, `mode` the
    /// `sql_mode` to parse the statement with.
    pub fn passes_statement(&self, current: &str, sql: &[u8], mode: SqlMode) -> bool {
        if self.is_empty() {
            return true;
        }
        let named = names_in(sql, mode);
        if let Some(schema) = named.schema.as_deref() {
            // The statement's text names the source's schema; it runs unrewritten and so affects that schema
            // here.
            return self.passes_schema(self.rewritten(schema))
                && self.passes_schema(schema)
                && self.lets_schema_be_defined(schema);
        }
        // Without a current schema the schema rules do not apply.
        if !current.is_empty() && !self.passes_schema(current) {
            return false;
        }
        if named.tables.is_empty() || !self.has_table_rules() {
            return true;
        }
        let verdict = named.tables.iter().find_map(|(schema, table)| {
            let schema = schema.as_deref().map_or(current, |schema| self.rewritten(schema));
            self.table_rule(schema, table)
        });
        verdict.unwrap_or_else(|| self.passes_unnamed_tables())
    }

    /// Returns whether a statement about a whole schema is applied. Wildcard rules for its tables also count.
    fn lets_schema_be_defined(&self, schema: &str) -> bool {
        let all = format!("{schema}.");
        match () {
            () if is_like(&all, &self.wild_do) => true,
            () if is_like(&all, &self.wild_ignore) => false,
            () => self.wild_do.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn schemas_decide_before_tables_and_the_first_table_rule_counts() {
        let mut filter = Filter { do_db: names(&["a", "b"]), ..Filter::default() };
        assert!(filter.passes_rows("a", "t") && !filter.passes_rows("c", "t"));
        filter.ignore_table = names(&["a.t"]);
        filter.wild_ignore = names(&["b.x%", "b.y\\_1"]);
        assert!(!filter.passes_rows("a", "t") && filter.passes_rows("a", "u"));
        assert!(!filter.passes_rows("b", "xy") && filter.passes_rows("b", "yx"));
        assert!(!filter.passes_rows("b", "y_1") && filter.passes_rows("b", "yz1"));
        filter.do_table = names(&["b.xy"]);
        assert!(filter.passes_rows("b", "xy") && !filter.passes_rows("a", "u"));
    }

    #[test]
    fn statements_belong_to_the_current_schema_or_to_the_one_they_are_about() {
        let filter = Filter { ignore_db: names(&["no"]), ..Filter::default() };
        assert!(!filter.passes_statement("no", b"CREATE TABLE t (a INT)", SqlMode::NONE));
        assert!(filter.passes_statement("", b"CREATE TABLE no.t (a INT)", SqlMode::NONE));
        assert!(!filter.passes_statement("", b"DROP DATABASE no", SqlMode::NONE));
        let filter = Filter { wild_do: names(&["a.%"]), ..Filter::default() };
        assert!(filter.passes_statement("b", b"DROP TABLE a.t", SqlMode::NONE));
        assert!(!filter.passes_statement("b", b"TRUNCATE t", SqlMode::NONE));
        let filter = Filter {
            rewrite: vec![("a".to_owned(), "z".to_owned())],
            do_db: names(&["z"]),
            ..Filter::default()
        };
        assert_eq!((filter.rewritten("a"), filter.rewritten("b")), ("z", "b"));
        // As in MariaDB: the statement would create `a`, which is not a replicated schema.
        for sql in [&b"CREATE DATABASE a"[..], b"CREATE DATABASE b", b"DROP DATABASE a"] {
            assert!(!filter.passes_statement("", sql, SqlMode::NONE));
        }
        let filter = Filter { do_db: names(&["a", "z"]), ..filter };
        assert!(filter.passes_statement("", b"CREATE DATABASE a", SqlMode::NONE));
    }

    #[test]
    fn the_first_rule_about_any_table_of_a_statement_counts() {
        let passes = |filter: &Filter, sql: &str| filter.passes_statement("d", sql.as_bytes(), SqlMode::NONE);
        let filter = Filter { ignore_table: names(&["d.no"]), ..Filter::default() };
        for sql in
            ["UPDATE no SET a = 1", "DELETE FROM d.no", "DROP TABLE yes, no", "REPLACE INTO no VALUES (1)"]
        {
            assert!(!passes(&filter, sql), "{sql}");
        }
        assert!(
            passes(&filter, "UPDATE yes, no SET yes.a = no.a") && passes(&filter, "DELETE FROM other.no")
        );
        let filter = Filter { do_table: names(&["d.yes"]), ..Filter::default() };
        assert!(passes(&filter, "DROP TABLE yes, no") && !passes(&filter, "DROP TABLE no"));
        let filter = Filter { wild_ignore: names(&["no.%"]), ..Filter::default() };
        assert!(!passes(&filter, "CREATE DATABASE no") && passes(&filter, "CREATE DATABASE yes"));
        let filter = Filter { wild_do: names(&["yes.%"]), ..Filter::default() };
        assert!(!passes(&filter, "DROP DATABASE no") && passes(&filter, "CREATE DATABASE yes"));
    }
}
