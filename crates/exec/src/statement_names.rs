//! Finds the objects that a statement changes from its text, for the replica's filters.

use cohort_session::changed_names;
use cohort_sql::ParseOptions;
use cohort_types::SqlMode;

/// Objects named in a statement's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementNames {
    /// Schema that the statement creates, changes or drops.
    pub schema: Option<String>,
    /// Tables that the statement changes, with their schemas if the text names them.
    pub tables: Vec<(Option<String>, String)>,
}

/// Returns the objects that a statement changes according to its text, or none if the text cannot be parsed.
pub fn names_in(sql: &[u8], mode: SqlMode) -> StatementNames {
    let mut names = StatementNames::default();
    let options = ParseOptions { mode: mode.into(), ..ParseOptions::default() };
    let Ok(parsed) = cohort_sql::parse(sql, &options) else { return names };
    let changed = changed_names(&parsed.statement);
    names.schema = changed.schema.map(str::to_owned);
    names.tables = changed.tables.into_iter().map(|name| (name.db.clone(), name.name.clone())).collect();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_that_change_are_named_by_every_kind_of_statement() {
        let tables = |sql: &str| {
            let names = names_in(sql.as_bytes(), SqlMode::NONE).tables.into_iter();
            let text = |(schema, table): (Option<String>, String)| match schema {
                None => table,
                Some(schema) => format!("{schema}.{table}"),
            };
            names.map(text).collect::<Vec<_>>().join(" ")
        };
        for (sql, expected) in [
            ("UPDATE t SET a = 1", "t"),
            ("UPDATE d.t x, u SET x.a = u.a", "d.t"),
            ("UPDATE t JOIN u USING (id) SET a = 1", "t u"),
            ("DELETE FROM t WHERE a = 1", "t"),
            ("DELETE x FROM d.t x JOIN u", "d.t"),
            ("DELETE FROM t, u USING t JOIN u JOIN v", "t u"),
            ("REPLACE INTO t VALUES (1)", "t"),
            ("LOAD DATA INFILE 'f' INTO TABLE d.t", "d.t"),
            ("OPTIMIZE TABLE t, u", "t u"),
            ("ALTER SEQUENCE d.s RESTART", "d.s"),
            ("RENAME TABLE t TO u", "t u"),
            ("SELECT 1", ""),
            ("UPDATE \"t\" SET a = 1", ""),
        ] {
            assert_eq!(tables(sql), expected, "{sql}");
        }
        assert_eq!(names_in(b"UPDATE \"t\" SET a = 1", SqlMode::ANSI_QUOTES).tables.len(), 1);
    }
}
