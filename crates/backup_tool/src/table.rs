//! Copies a table of a backup into a running server.
//!
//! # Steps
//! 1. The server must have the database and must not have the table.
//! 2. The backup, or the state at a moment, is restored into a scratch directory, in which a server starts.
//! 3. The definition is that of SHOW CREATE TABLE, with another name of the table. The table is created under
//!    a temporary name, `cohort-restore-..`.
//! 4. Rows are copied one by one, in statements of [`STATEMENT_BYTES`]: strings as hexadecimal literals in
//!    the bytes of their column's character set, other types as text that every server reads back to the same
//!    value. Strict mode fails on a value that the server would change, unless the backup has such values.
//! 5. The numbers of rows are compared, and CHECKSUM TABLE if both servers have one version. The table gets
//!    its name.
//!
//! # On failure
//! The temporary table is dropped, and the scratch directory stays. A killed command leaves both; no client
//! uses the temporary table's name.
//!
//! # Missing
//! Triggers are reported, not copied: their definers may no longer exist. Views and sequences are refused.

use std::path::Path;

use crate::catalogue::Catalogue;
use crate::client::{Account, Client, Row, quoted, quoted_name, text_of};
use crate::failure::{Failure, Result};
use crate::hex;
use crate::key::random;
use crate::progress::Progress;
use crate::scratch::Scratch;

/// Size from which on a statement gets no more rows.
const STATEMENT_BYTES: usize = 512 << 10;
/// Settings of both sessions.
const SETTINGS: &[&str] = &["SET NAMES utf8mb4", "SET SESSION time_zone = '+00:00'"];
/// Rows are read in the bytes of their columns, for as long as the other server needs to write them.
const SOURCE_SETTINGS: &[&str] = &[
    "SET SESSION sql_mode = ''",
    "SET SESSION sql_quote_show_create = 1",
    "SET SESSION net_write_timeout = 31536000",
];
const TARGET_SETTINGS: &[&str] = &[
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "SET SESSION foreign_key_checks = 0",
    "SET SESSION unique_checks = 0",
    "SET SESSION max_statement_time = 0",
    "SET SESSION wait_timeout = 31536000",
    // A row may be older than a constraint that it violates.
    "SET SESSION check_constraint_checks = 0",
];
/// Mode for rows with an ENUM value that is none of the list: strict mode refuses it.
const WITH_ENUM_ERRORS: &str = "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'";

/// Name of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    pub database: String,
    pub table: String,
}

impl TableName {
    /// Parses `database.table`.
    pub fn parse(text: &str) -> std::result::Result<TableName, String> {
        match text.split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => {
                Ok(TableName { database: database.to_owned(), table: table.to_owned() })
            }
            _ => Err("a table is named as database.table".to_owned()),
        }
    }

    fn quoted(&self) -> String {
        format!("{}.{}", quoted_name(&self.database), quoted_name(&self.table))
    }
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.quoted())
    }
}

/// The outcome.
#[derive(Debug)]
pub struct Copied {
    pub rows: u64,
    /// Triggers of the table, which were not copied.
    pub triggers: Vec<String>,
}

/// Connects to the server that gets a table, and checks that it can. Called before the restore and again
/// before the copy.
pub fn connect(account: &Account, to: &TableName) -> Result<Client> {
    let mut client = Client::connect(account)?;
    let (database, table) = (quoted(&to.database), quoted(&to.table));
    let count = |client: &mut Client, sql: &str| client.row(sql).map(|row| text_of(&row[0]).into_owned());
    let found = count(
        &mut client,
        &format!("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = {database}"),
    )?;
    if found == "0" {
        return Err(Failure::Refused(format!(
            "the server has no database '{}', or the account may not use it",
            to.database
        )));
    }
    let found = count(
        &mut client,
        &format!(
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = {database} AND table_name = {table}"
        ),
    )?;
    if found != "0" {
        return Err(Failure::Refused(format!(
            "the server has a table {}; name another one with --as, or rename it",
            to.quoted()
        )));
    }
    SETTINGS.iter().chain(TARGET_SETTINGS).try_for_each(|sql| client.execute(sql))?;
    Ok(client)
}

/// Copies a table from a restored directory into a server.
pub fn copy(
    catalogue: &Catalogue,
    directory: &Path,
    server: &Path,
    table: &TableName,
    target: &Account,
    to: &TableName,
    progress: &Progress,
) -> Result<Copied> {
    let (scratch, mut source) = Scratch::start(catalogue, directory, server)?;
    source.accept_large_rows();
    SETTINGS.iter().chain(SOURCE_SETTINGS).try_for_each(|sql| source.execute(sql))?;
    let definition = source.row(&format!("SHOW CREATE TABLE {}", table.quoted()))?;
    let definition = text_of(definition.get(1).unwrap_or(&None)).into_owned();
    let temporary = TableName {
        database: to.database.clone(),
        table: format!("cohort-restore-{}", hex::encode(&random::<8>())),
    };
    let definition = redefined(&definition, table, &temporary)?;
    let columns = columns(&mut source, table)?;
    let triggers = triggers(&mut source, table)?;
    let has_enum_errors = has_enum_errors(&mut source, table, &columns)?;
    let target = &mut connect(target, to)?;
    target.execute(&definition)?;
    if has_enum_errors {
        target.execute(WITH_ENUM_ERRORS)?;
    }
    let copied = fill(&mut source, table, target, &temporary, &columns, progress)
        .and_then(|rows| compare(&mut source, table, target, &temporary, has_enum_errors).map(|()| rows))
        .and_then(|rows| {
            let rename = format!("RENAME TABLE {} TO {}", temporary.quoted(), to.quoted());
            target.execute(&rename).map(|()| rows)
        });
    drop(scratch);
    match copied {
        Ok(rows) => Ok(Copied { rows, triggers }),
        Err(failure) => {
            // The connection may be lost; then the failure names the reason.
            let _ = target.execute(&format!("DROP TABLE IF EXISTS {}", temporary.quoted()));
            Err(failure)
        }
    }
}

/// Rewrites a definition for another name. Foreign keys get new names, because those of a database are
/// unique, and refer to the tables of the old database.
fn redefined(definition: &str, from: &TableName, to: &TableName) -> Result<String> {
    let head = format!("CREATE TABLE {}", quoted_name(&from.table));
    let options = definition.rsplit("\n) ENGINE=").next().unwrap_or_default();
    let is_sequence = options.split(' ').nth(1).is_some_and(|option| option.starts_with("SEQUENCE="));
    let Some(rest) = definition.strip_prefix(&head).filter(|_| !is_sequence) else {
        return Err(Failure::Refused(format!("{} is not a table with rows of its own", from.quoted())));
    };
    let line = |line: &str| {
        let key = line.trim_start().strip_prefix("CONSTRAINT ").and_then(|rest| {
            let name = quoted_length(rest)?;
            rest[name..].strip_prefix(" ").filter(|rest| rest.starts_with("FOREIGN KEY "))
        });
        let Some(key) = key else { return line.to_owned() };
        // The names of the columns come first.
        let Some((own, parent)) = key.split_once(") REFERENCES ") else { return line.to_owned() };
        let is_qualified = quoted_length(parent).is_some_and(|end| parent[end..].starts_with('.'));
        let database = if is_qualified { String::new() } else { format!("{}.", quoted_name(&from.database)) };
        format!("  {own}) REFERENCES {database}{parent}")
    };
    let lines: Vec<String> = rest.split('\n').map(line).collect();
    Ok(format!("CREATE TABLE {}{}", to.quoted(), lines.join("\n")))
}

/// Returns the length of the quoted name at the beginning of a text.
fn quoted_length(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('`')?;
    loop {
        let (_, after) = rest.split_once('`')?;
        match after.strip_prefix('`') {
            Some(after) => rest = after,
            None => return Some(text.len() - after.len()),
        }
    }
}

/// A column with rows' values: its name, the expression that reads it, and whether its value is a string.
struct Column {
    name: String,
    read: String,
    is_string: bool,
    is_enum: bool,
}

fn columns(source: &mut Client, table: &TableName) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    let sql = format!(
        "SELECT column_name, data_type, character_set_name FROM information_schema.columns WHERE table_schema = {} \
         AND table_name = {} AND COALESCE(generation_expression, '') = '' ORDER BY ordinal_position",
        quoted(&table.database),
        quoted(&table.table)
    );
    source.query(&sql, |row| {
        let [name, data_type, character_set] = &row[..] else { return Err(malformed()) };
        let (name, data_type) = (text_of(name).into_owned(), text_of(data_type));
        let quoted = quoted_name(&name);
        let is_binary = data_type.ends_with("blob") || data_type.ends_with("binary") || data_type == "bit";
        columns.push(Column {
            is_string: character_set.is_some() || is_binary,
            is_enum: data_type == "enum",
            read: match &*data_type {
                // The text of a FLOAT has fewer digits than its value.
                "float" => format!("CAST({quoted} AS DOUBLE)"),
                _ if character_set.is_some() => format!("CAST({quoted} AS BINARY)"),
                _ => quoted,
            },
            name,
        });
        Ok(())
    })?;
    Ok(columns)
}

/// Returns whether rows have an ENUM value that is none of the list, as a server without strict mode stores.
fn has_enum_errors(source: &mut Client, table: &TableName, columns: &[Column]) -> Result<bool> {
    let enums = columns.iter().filter(|column| column.is_enum);
    let tests: Vec<String> = enums.map(|column| format!("{} + 0 = 0", quoted_name(&column.name))).collect();
    if tests.is_empty() {
        return Ok(false);
    }
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {} WHERE {})", table.quoted(), tests.join(" OR "));
    Ok(source.row(&sql)?.first().is_some_and(|found| text_of(found) == "1"))
}

fn triggers(source: &mut Client, table: &TableName) -> Result<Vec<String>> {
    let mut triggers = Vec::new();
    let sql = format!(
        "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = {} AND event_object_table = {}",
        quoted(&table.database),
        quoted(&table.table)
    );
    source.query(&sql, |row| {
        triggers.extend(row.first().map(|name| text_of(name).into_owned()));
        Ok(())
    })?;
    Ok(triggers)
}

fn malformed() -> Failure {
    Failure::Failed("the scratch server sent a row of another form".to_owned())
}

/// Copies the rows, and returns their number.
fn fill(
    source: &mut Client,
    table: &TableName,
    target: &mut Client,
    to: &TableName,
    columns: &[Column],
    progress: &Progress,
) -> Result<u64> {
    let list = |part: &dyn Fn(&Column) -> String| columns.iter().map(part).collect::<Vec<_>>().join(", ");
    let read = list(&|column| column.read.clone());
    let names = list(&|column| quoted_name(&column.name));
    let head = format!("INSERT INTO {} ({names}) VALUES ", to.quoted());
    let mut statement = head.clone();
    let mut rows = 0;
    source.query(&format!("SELECT {read} FROM {}", table.quoted()), |row| {
        if row.len() != columns.len() {
            return Err(malformed());
        }
        statement.push_str(if statement.len() == head.len() { "(" } else { ", (" });
        add_values(&mut statement, columns, &row)?;
        statement.push(')');
        rows += 1;
        progress.add(row.iter().flatten().map(|value| value.len() as u64).sum());
        if statement.len() >= STATEMENT_BYTES {
            target.execute(&statement)?;
            statement.truncate(head.len());
            statement.shrink_to(2 * STATEMENT_BYTES);
        }
        Ok(())
    })?;
    if statement.len() > head.len() {
        target.execute(&statement)?;
    }
    Ok(rows)
}

fn add_values(statement: &mut String, columns: &[Column], row: &Row) -> Result<()> {
    for (number, (column, value)) in columns.iter().zip(row).enumerate() {
        if number > 0 {
            statement.push(',');
        }
        match value {
            None => statement.push_str("NULL"),
            Some(value) if value.is_empty() => statement.push_str("''"),
            Some(value) if column.is_string => {
                statement.push_str("X'");
                statement.push_str(&hex::encode(value));
                statement.push('\'');
            }
            Some(value) => {
                let text = std::str::from_utf8(value).map_err(|_| malformed())?;
                statement.push_str(&quoted(text));
            }
        }
    }
    Ok(())
}

/// Compares the copy with its original.
fn compare(
    source: &mut Client,
    table: &TableName,
    target: &mut Client,
    to: &TableName,
    has_enum_errors: bool,
) -> Result<()> {
    let both = |sql: &str, source: &mut Client, target: &mut Client| -> Result<(String, String)> {
        let last = |row: Row| row.last().map_or(String::new(), |value| text_of(value).into_owned());
        let mine = source.row(&sql.replace("{}", &table.quoted()))?;
        Ok((last(mine), last(target.row(&sql.replace("{}", &to.quoted()))?)))
    };
    let versions = both("SELECT @@version", source, target)?;
    let mut checks = vec!["SELECT COUNT(*) FROM {}"];
    if versions.0 == versions.1 {
        checks.push("CHECKSUM TABLE {}");
    } else if has_enum_errors {
        return Err(Failure::Refused(format!(
            "{} has ENUM values that are none of the list, which only a server of the backup's version takes",
            table.quoted()
        )));
    }
    for sql in checks {
        let (original, copy) = both(sql, source, target)?;
        if original != copy {
            return Err(Failure::Failed(format!(
                "the copy differs from the backup's table: {sql} is {original} in the backup and {copy} in the copy"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_get_another_name_and_their_foreign_keys_new_ones() {
        let name = |text: &str| TableName::parse(text).expect("a name");
        let definition = "CREATE TABLE `a``b` (\n  `id` int,\n  `note` varchar(9) DEFAULT 'CONSTRAINT `x` FOREIGN KEY (',\n  \
            CONSTRAINT `c` FOREIGN KEY (`id`) REFERENCES `p` (`id`),\n  \
            CONSTRAINT `d``e` FOREIGN KEY (`id`) REFERENCES `o`.`p` (`id`) ON DELETE CASCADE,\n  \
            CONSTRAINT `f` CHECK (`id` > 0)\n) ENGINE=InnoDB";
        let expected = "CREATE TABLE `db`.`new` (\n  `id` int,\n  `note` varchar(9) DEFAULT 'CONSTRAINT `x` FOREIGN KEY (',\n  \
            FOREIGN KEY (`id`) REFERENCES `shop`.`p` (`id`),\n  \
            FOREIGN KEY (`id`) REFERENCES `o`.`p` (`id`) ON DELETE CASCADE,\n  \
            CONSTRAINT `f` CHECK (`id` > 0)\n) ENGINE=InnoDB";
        let found = redefined(definition, &name("shop.a`b"), &name("db.new"));
        assert_eq!(found.as_deref(), Ok(expected));
        assert!(redefined("CREATE VIEW `v` AS SELECT 1", &name("shop.v"), &name("db.new")).is_err());
        let sequence = "CREATE TABLE `s` (\n  `next_not_cached_value` bigint(21)\n) ENGINE=InnoDB SEQUENCE=1";
        assert!(redefined(sequence, &name("shop.s"), &name("db.new")).is_err());
        let table = "CREATE TABLE `s` (\n  `a` int\n) ENGINE=InnoDB COMMENT=' SEQUENCE=1'";
        assert!(redefined(table, &name("shop.s"), &name("db.new")).is_ok());
        for wrong in ["t", ".t", "db.", ""] {
            assert!(TableName::parse(wrong).is_err(), "{wrong}");
        }
    }
}
