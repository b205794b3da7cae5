//! Databases, indexes, and the statements CREATE, DROP, RENAME and TRUNCATE for all kinds of objects.

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use crate::ast::{
    AlterDatabase, AlterOptions, CreateDatabase, CreateIndex, CreateMode, DatabaseOptions, DropDatabase,
    DropIndex, DropTable, KeyDef, KeyKind, KeyOptions, ObjectName, RenameTable, Statement,
};
use crate::lexer::Kind;

/// Kind of object that DROP names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dropped {
    Table,
    View,
    Sequence,
}

impl Parser<'_> {
    pub(super) fn create(&mut self) -> SqlResult<Statement> {
        self.advance();
        let or_replace = self.eat_words(&["OR", "REPLACE"]);
        match () {
            () if self.eat_any(&["DATABASE", "SCHEMA"]) => self.create_database(or_replace),
            () if self.eat_word("TABLE") => self.create_table(or_replace, false),
            () if self.eat_words(&["TEMPORARY", "TABLE"]) => self.create_table(or_replace, true),
            () if self.eat_word("SEQUENCE") => self.create_sequence(or_replace, false),
            () if self.eat_words(&["TEMPORARY", "SEQUENCE"]) => self.create_sequence(or_replace, true),
            () if self.is_any(&["INDEX", "ONLINE"]) || self.key_word_follows() => {
                self.create_index(or_replace)
            }
            () if self.eat_word("USER") => self.create_user(or_replace),
            () if self.eat_word("ROLE") => self.create_role(or_replace),
            () if self.program_follows() => self.create_program(or_replace, None),
            () if self.view_follows() => self.view(or_replace, false),
            () if self.is_any(&["SERVER", "PACKAGE", "TEMPORARY", "LOGFILE", "TABLESPACE"]) => {
                let what = format!("CREATE {}", self.upper_word()?);
                Err(self.unsupported(&what))
            }
            () => Err(self.error()),
        }
    }

    // ---- databases

    fn create_database(&mut self, or_replace: bool) -> SqlResult<Statement> {
        let mode = self.create_mode(or_replace)?;
        let name = self.name()?;
        let options = self.database_options()?;
        Ok(Statement::CreateDatabase(CreateDatabase { mode, name, options }))
    }

    fn database_options(&mut self) -> SqlResult<DatabaseOptions> {
        let mut options = DatabaseOptions::default();
        loop {
            self.eat_word("DEFAULT");
            if self.charset_words() {
                self.eat(Kind::Equal);
                let default = self.eat_word("DEFAULT");
                let named = if default { None } else { Some(self.charset_word()?) };
                options.charset = agreed("CHARACTER SET", options.charset.take(), named)?;
            } else if self.eat_word("COLLATE") {
                self.eat(Kind::Equal);
                let default = self.eat_word("DEFAULT");
                let named = if default { None } else { Some(self.charset_word()?) };
                options.collation = agreed("COLLATE", options.collation.take(), named)?;
            } else if self.eat_word("COMMENT") {
                self.eat(Kind::Equal);
                options.comment = Some(self.text()?);
            } else {
                return Ok(options);
            }
        }
    }

    /// Parses the part after ALTER DATABASE.
    pub(super) fn alter_database(&mut self) -> SqlResult<Statement> {
        if self.is("UPGRADE") {
            return Err(self.unsupported("UPGRADE DATA DIRECTORY NAME"));
        }
        let starts_options = self.is_any(&["DEFAULT", "CHARACTER", "CHAR", "COLLATE"])
            || (self.is_any(&["CHARSET", "COMMENT"]) && self.peek(1).kind != Kind::Word);
        let name = if starts_options { None } else { Some(self.name()?) };
        if let Some(name) = &name
            && self.eat_words(&["UPGRADE", "DATA", "DIRECTORY", "NAME"])
        {
            return Err(of_an_old_name(name));
        }
        let options = self.database_options()?;
        if options == DatabaseOptions::default() {
            return Err(self.error());
        }
        Ok(Statement::AlterDatabase(AlterDatabase { name, options }))
    }

    // ---- indexes

    /// Parses CREATE INDEX after CREATE [OR REPLACE].
    fn create_index(&mut self, or_replace: bool) -> SqlResult<Statement> {
        self.eat_word("ONLINE");
        let declared = KeyKind::WORDS.iter().find(|(word, _)| self.eat_word(word));
        let kind = declared.map_or(KeyKind::Plain, |(_, kind)| *kind);
        self.expect_word("INDEX")?;
        let mode = self.create_mode(or_replace)?;
        let name = Some(self.name()?);
        let mut options = KeyOptions::default();
        self.key_using(kind, &mut options)?;
        self.expect_word("ON")?;
        let table = self.object_name()?;
        let parts = self.key_parts()?;
        self.ddl_wait()?;
        self.key_options(kind, &mut options)?;
        let alter = self.alter_options()?;
        let if_not_exists = mode == CreateMode::IfNotExists;
        let key = KeyDef { kind, name, if_not_exists, parts, options, generated: false };
        Ok(Statement::CreateIndex(Box::new(CreateIndex { mode, table, key, alter })))
    }

    fn alter_options(&mut self) -> SqlResult<AlterOptions> {
        let mut alter = AlterOptions::default();
        while self.alter_option(&mut alter)? {
            self.eat(Kind::Comma);
        }
        Ok(alter)
    }

    // ---- DROP, RENAME, TRUNCATE

    pub(super) fn drop(&mut self) -> SqlResult<Statement> {
        self.advance();
        match () {
            () if self.eat_any(&["DATABASE", "SCHEMA"]) => {
                let if_exists = self.eat_words(&["IF", "EXISTS"]);
                Ok(Statement::DropDatabase(DropDatabase { if_exists, name: self.name()? }))
            }
            () if self.eat_any(&["TABLE", "TABLES"]) => self.drop_tables(false, Dropped::Table),
            () if self.eat_words(&["TEMPORARY", "SEQUENCE"]) => self.drop_tables(true, Dropped::Sequence),
            () if self.eat_word("TEMPORARY") => {
                self.expect_any(&["TABLE", "TABLES"])?;
                self.drop_tables(true, Dropped::Table)
            }
            () if self.eat_word("SEQUENCE") => self.drop_tables(false, Dropped::Sequence),
            () if self.eat_word("VIEW") => self.drop_tables(false, Dropped::View),
            () if self.eat_word("INDEX") => {
                let if_exists = self.eat_words(&["IF", "EXISTS"]);
                let name = self.index_name()?;
                self.expect_word("ON")?;
                let table = self.object_name()?;
                self.ddl_wait()?;
                let alter = self.alter_options()?;
                Ok(Statement::DropIndex(DropIndex { if_exists, name, table, alter }))
            }
            () if self.eat_word("USER") => {
                let if_exists = self.eat_words(&["IF", "EXISTS"]);
                Ok(Statement::DropUser { if_exists, accounts: self.list(Self::user)? })
            }
            () if self.eat_word("ROLE") => self.drop_role(),
            () if self.eat_word("PREPARE") => Ok(Statement::Deallocate(self.name()?)),
            () if self.program_follows() => self.drop_program(),
            () if self.is_any(&["SERVER", "PACKAGE"]) => {
                let what = format!("DROP {}", self.upper_word()?);
                Err(self.unsupported(&what))
            }
            () => Err(self.error()),
        }
    }

    fn drop_tables(&mut self, temporary: bool, what: Dropped) -> SqlResult<Statement> {
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let names = self.object_names()?;
        self.ddl_wait()?;
        self.eat_any(&["RESTRICT", "CASCADE"]);
        Ok(Statement::DropTable(DropTable {
            temporary,
            if_exists,
            names,
            view: what == Dropped::View,
            sequence: what == Dropped::Sequence,
        }))
    }

    pub(super) fn rename(&mut self) -> SqlResult<Statement> {
        self.advance();
        if self.eat_word("USER") {
            return self.rename_user();
        }
        self.expect_any(&["TABLE", "TABLES"])?;
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let renames = self.list(|p| {
            let from = p.object_name()?;
            p.ddl_wait()?;
            p.expect_word("TO")?;
            Ok::<(ObjectName, ObjectName), _>((from, p.object_name()?))
        })?;
        Ok(Statement::RenameTable(RenameTable { if_exists, renames }))
    }

    pub(super) fn truncate(&mut self) -> SqlResult<Statement> {
        self.advance();
        self.eat_word("TABLE");
        let name = self.object_name()?;
        self.ddl_wait()?;
        Ok(Statement::Truncate(name))
    }
}

/// Returns the error of ALTER DATABASE .. UPGRADE DATA DIRECTORY NAME: no directory has a name of a version
/// before 5.1.
fn of_an_old_name(name: &str) -> SqlError {
    match name.strip_prefix("#mysql50#") {
        Some("") => SqlError::wrong_database_name(name),
        Some(_) => SqlError::unknown_database(name),
        None => SqlError::wrong_usage("ALTER DATABASE UPGRADE DATA DIRECTORY NAME", "name"),
    }
}

/// Returns the value of an option that may be repeated, or error 1302 if a repetition has another value.
fn agreed(what: &str, before: Option<String>, named: Option<String>) -> SqlResult<Option<String>> {
    match (before, named) {
        (Some(before), Some(named)) if !before.eq_ignore_ascii_case(&named) => {
            Err(SqlError::conflicting_declarations(what, &before, &named))
        }
        (before, named) => Ok(named.or(before)),
    }
}
