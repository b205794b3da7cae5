//! The tables of the schema `mysql` as MariaDB 10.11 defines them.
//!
//! Those of [`STORED`] are ordinary tables, which the server creates at its start if they are missing. The
//! others are virtual, and their texts serve SHOW CREATE TABLE, so that a dump of all databases creates them
//! on a MariaDB server.

/// The statements, each followed by a semicolon and an empty line.
const TEXTS: &str = include_str!("mysql_tables.sql");

/// The stored tables.
pub const STORED: [&str; 14] = [
    "column_stats",
    "func",
    "index_stats",
    "innodb_index_stats",
    "innodb_table_stats",
    "plugin",
    "servers",
    "table_stats",
    "time_zone",
    "time_zone_leap_second",
    "time_zone_name",
    "time_zone_transition",
    "time_zone_transition_type",
    "transaction_registry",
];

/// Returns the statement that creates a table of the schema `mysql`, or the view `user`.
pub fn create_text(name: &str) -> &'static str {
    let quoted = cohort_sql::print::quoted_name(name);
    let defines = |text: &&str| text.lines().next().is_some_and(|line| line.contains(&quoted));
    TEXTS.split(";\n").map(str::trim).find(defines).unwrap_or_default()
}

/// Returns engine and comment from the text of a table.
pub(super) fn engine_and_comment(text: &str) -> (&str, &str) {
    let after = |word: &str, end: char| {
        let (_, rest) = text.rsplit_once(word)?;
        rest.split(end).next()
    };
    (after("ENGINE=", ' ').unwrap_or_default(), after("COMMENT='", '\'').unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_its_text() {
        for name in STORED {
            assert!(create_text(name).starts_with(&format!("CREATE TABLE `{name}` (")), "{name}");
        }
        for table in crate::information_schema().all().iter().filter(|table| table.schema() == "mysql") {
            let text = table.create_text();
            assert!(text.contains(&format!(" `{}` ", table.name())), "{}", table.name());
            for column in table.columns() {
                assert!(text.contains(&format!("`{}`", column.name)), "{}.{}", table.name(), column.name);
            }
        }
        assert_eq!(engine_and_comment(create_text("db")), ("Aria", "Database privileges"));
    }
}
