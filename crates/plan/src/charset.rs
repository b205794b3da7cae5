//! Resolves the collation of a declaration that names a character set, a collation, both or neither.

use cohort_sql::ast::{CreateDatabase, CreateTable, DatabaseOptions, Statement, TableOption};
use cohort_types::{Charset, Collation, SqlError, SqlResult};

/// Returns the collation; `inherited` if neither was written.
pub fn resolve(charset: Option<&str>, collation: Option<&str>, inherited: Collation) -> SqlResult<Collation> {
    let charset = charset.map(by_name).transpose()?;
    let Some(name) = collation else {
        return Ok(charset.map_or(inherited, Charset::default_collation));
    };
    if name.eq_ignore_ascii_case("default") {
        return Ok(charset.unwrap_or(inherited.charset()).default_collation());
    }
    let within = charset.unwrap_or(inherited.charset());
    let found = Collation::by_name_in(within, name);
    let collation = found.ok_or_else(|| match Collation::by_name_in(Charset::Utf8mb4, name) {
        Some(_) => SqlError::collation_mismatch(name, within.name()),
        None => SqlError::unknown_collation(name),
    })?;
    match charset {
        Some(charset) if collation.charset() != charset => {
            Err(SqlError::collation_mismatch(collation.name(), charset.name()))
        }
        _ => Ok(collation),
    }
}

/// Returns the character set with this name. Error 1115 if it is unknown.
pub fn by_name(name: &str) -> SqlResult<Charset> {
    Charset::by_name(name).ok_or_else(|| SqlError::unknown_charset(name))
}

/// Returns the collation of a database with these options.
pub fn of_database(options: &DatabaseOptions, inherited: Collation) -> SqlResult<Collation> {
    resolve(options.charset.as_deref(), options.collation.as_deref(), inherited)
}

/// Checks the names of a statement with options of a database or a table, at PREPARE.
pub fn check_names(statement: &Statement) -> SqlResult<()> {
    match statement {
        Statement::CreateDatabase(create) => check_database_names(create),
        Statement::CreateTable(create) => check_table_names(create),
        _ => Ok(()),
    }
}

fn check_known(charset: Option<&str>, collation: Option<&str>) -> SqlResult<()> {
    resolve(charset, collation, Collation::UTF8MB4_GENERAL_CI).map(drop)
}

/// Checks the character set and collation names of CREATE DATABASE. Like in MariaDB's parser, unknown names
/// are errors even if the statement would do nothing.
pub fn check_database_names(create: &CreateDatabase) -> SqlResult<()> {
    check_known(create.options.charset.as_deref(), create.options.collation.as_deref())
}

/// Checks the character set and collation names of CREATE TABLE.
pub fn check_table_names(create: &CreateTable) -> SqlResult<()> {
    for option in &create.options {
        match option {
            TableOption::Charset(charset) => check_known(charset.as_deref(), None)?,
            TableOption::Collate(collation) => check_known(None, Some(collation))?,
            _ => {}
        }
    }
    create.columns.iter().try_for_each(|column| {
        check_known(column.data_type.charset.as_deref(), column.data_type.collation.as_deref())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collation_must_fit_its_character_set() {
        let general = Collation::UTF8MB4_GENERAL_CI;
        assert_eq!(resolve(None, None, Collation::LATIN1_BIN), Ok(Collation::LATIN1_BIN));
        assert_eq!(resolve(Some("utf8mb4"), None, Collation::LATIN1_BIN), Ok(general));
        assert_eq!(resolve(None, Some("utf8mb4_bin"), general), Ok(Collation::UTF8MB4_BIN));
        let numbers = |charset, collation| resolve(charset, collation, general).map_err(|e| e.number());
        assert_eq!(numbers(Some("utf8mb3"), Some("uca1400_ai_ci")), Ok(Collation(2048)));
        assert_eq!(numbers(None, Some("uca1400_as_cs")), Ok(Collation(2307)));
        assert_eq!(numbers(Some("latin1"), Some("utf8mb4_bin")), Err(1253));
        assert_eq!(numbers(Some("klingon"), None), Err(1115));
        assert_eq!(numbers(None, Some("klingon_ci")), Err(1273));
    }
}
