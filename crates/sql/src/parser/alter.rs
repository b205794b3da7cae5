//! ALTER TABLE.

use cohort_types::SqlResult;

use super::Parser;
use super::table::Elements;
use crate::ast::{AlterAction, AlterOptions, AlterTable, ColumnDef, ColumnPosition, Statement};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn alter(&mut self) -> SqlResult<Statement> {
        self.advance();
        if self.eat_any(&["DATABASE", "SCHEMA"]) {
            return self.alter_database();
        }
        if self.eat_word("USER") {
            return self.alter_user();
        }
        if self.view_follows() {
            return self.view(false, true);
        }
        self.eat_word("ONLINE");
        let ignore = self.eat_word("IGNORE");
        if !self.eat_word("TABLE") {
            if self.eat_word("SEQUENCE") {
                return self.alter_sequence();
            }
            if self.program_follows() {
                return self.alter_program(None);
            }
            if self.eat_word("SERVER") {
                return Err(self.unsupported("ALTER SERVER"));
            }
            return Err(self.error());
        }
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let table = self.object_name()?;
        self.ddl_wait()?;
        let mut alter =
            AlterTable { ignore, if_exists, table, actions: Vec::new(), alter: AlterOptions::default() };
        if !self.at_end() {
            self.list(|p| p.alter_action(&mut alter))?;
        }
        Ok(Statement::AlterTable(Box::new(alter)))
    }

    /// Parses WAIT n or NOWAIT. The statement becomes a [`Statement::WithLockWait`].
    pub(super) fn ddl_wait(&mut self) -> SqlResult<()> {
        if self.eat_word("WAIT") {
            self.lock_wait = Some(self.number()?);
        } else if self.eat_word("NOWAIT") {
            self.lock_wait = Some(0);
        }
        Ok(())
    }

    fn alter_action(&mut self, alter: &mut AlterTable) -> SqlResult<()> {
        if self.alter_option(&mut alter.alter)? {
            return Ok(());
        }
        let actions = &mut alter.actions;
        let action = match () {
            () if self.eat_word("ADD") => return self.alter_add(actions),
            () if self.eat_word("DROP") => self.alter_drop()?,
            () if self.eat_word("MODIFY") => {
                self.eat_word("COLUMN");
                let if_exists = self.eat_words(&["IF", "EXISTS"]);
                let (column, position, elements) = self.positioned_column(Elements::of_changed_column())?;
                actions.push(AlterAction::ModifyColumn { if_exists, column, position });
                return push_elements(actions, elements);
            }
            () if self.eat_word("CHANGE") => {
                self.eat_word("COLUMN");
                let if_exists = self.eat_words(&["IF", "EXISTS"]);
                let old_name = self.name()?;
                let (column, position, elements) = self.positioned_column(Elements::of_changed_column())?;
                actions.push(AlterAction::ChangeColumn { if_exists, old_name, column, position });
                return push_elements(actions, elements);
            }
            () if self.eat_word("ALTER") => self.alter_column()?,
            () if self.eat_word("RENAME") => self.alter_rename()?,
            () if self.eat_word("CONVERT") => self.alter_convert()?,
            () if self.eat_words(&["ENABLE", "KEYS"]) => AlterAction::EnableKeys,
            () if self.eat_words(&["DISABLE", "KEYS"]) => AlterAction::DisableKeys,
            () if self.eat_word("FORCE") => AlterAction::Force,
            () if self.eat_words(&["ORDER", "BY"]) => AlterAction::OrderBy(
                self.order_items()?.into_iter().map(|i| crate::print::expr(&i.expr)).collect(),
            ),
            () if self.is_any(&[
                "PARTITION",
                "REORGANIZE",
                "COALESCE",
                "TRUNCATE",
                "EXCHANGE",
                "REMOVE",
                "REBUILD",
                "DISCARD",
                "IMPORT",
                "OPTIMIZE",
                "ANALYZE",
                "CHECK",
                "REPAIR",
            ]) =>
            {
                let what = format!("ALTER TABLE {}", self.upper_word()?);
                return Err(self.unsupported(&what));
            }
            () => {
                let Some(option) = self.table_option()? else { return Err(self.error()) };
                actions.push(AlterAction::Option(option));
                // Options need no comma between them.
                while !self.at_end() && self.kind() != Kind::Comma {
                    let Some(option) = self.table_option()? else { return Err(self.error()) };
                    actions.push(AlterAction::Option(option));
                }
                return Ok(());
            }
        };
        actions.push(action);
        Ok(())
    }

    /// Parses ALGORITHM= or LOCK=. Returns false if neither follows.
    pub(super) fn alter_option(&mut self, options: &mut AlterOptions) -> SqlResult<bool> {
        let slot = match () {
            () if self.eat_word("ALGORITHM") => &mut options.algorithm,
            () if self.eat_word("LOCK") => &mut options.lock,
            () => return Ok(false),
        };
        self.eat(Kind::Equal);
        *slot = Some(self.upper_word()?);
        Ok(true)
    }

    fn alter_add(&mut self, actions: &mut Vec<AlterAction>) -> SqlResult<()> {
        let mut elements = Elements::default();
        if self.at_key_or_constraint() {
            self.key_or_constraint(&mut elements)?;
            return push_elements(actions, elements);
        }
        if self.is("PARTITION") || self.is_all(&["SYSTEM", "VERSIONING"]) || self.is_all(&["PERIOD", "FOR"]) {
            let what = format!("ALTER TABLE ADD {}", self.upper_word()?);
            return Err(self.unsupported(&what));
        }
        self.eat_word("COLUMN");
        let if_not_exists = self.eat_words(&["IF", "NOT", "EXISTS"]);
        if self.eat(Kind::LeftParen) {
            let columns = self.list(|p| {
                if p.at_key_or_constraint() {
                    p.key_or_constraint(&mut elements)?;
                    return Ok(None);
                }
                p.column_def(&mut elements).map(Some)
            })?;
            self.expect(Kind::RightParen)?;
            let position = ColumnPosition::Unspecified;
            actions.extend(columns.into_iter().flatten().map(|column| AlterAction::AddColumn {
                if_not_exists,
                column,
                position: position.clone(),
            }));
            return push_elements(actions, elements);
        }
        let (column, position, elements) = self.positioned_column(elements)?;
        actions.push(AlterAction::AddColumn { if_not_exists, column, position });
        push_elements(actions, elements)
    }

    fn positioned_column(
        &mut self,
        mut elements: Elements,
    ) -> SqlResult<(ColumnDef, ColumnPosition, Elements)> {
        let column = self.column_def(&mut elements)?;
        let position = match () {
            () if self.eat_word("FIRST") => ColumnPosition::First,
            () if self.eat_word("AFTER") => ColumnPosition::After(self.name()?),
            () => ColumnPosition::Unspecified,
        };
        Ok((column, position, elements))
    }

    fn alter_drop(&mut self) -> SqlResult<AlterAction> {
        if self.eat_words(&["PRIMARY", "KEY"]) {
            return Ok(AlterAction::DropPrimaryKey { if_exists: false });
        }
        if self.eat_any(&["INDEX", "KEY"]) {
            let if_exists = self.eat_words(&["IF", "EXISTS"]);
            let name = self.index_name()?;
            return Ok(AlterAction::DropKey { if_exists, name });
        }
        if self.eat_words(&["FOREIGN", "KEY"]) {
            let if_exists = self.eat_words(&["IF", "EXISTS"]);
            return Ok(AlterAction::DropForeignKey { if_exists, name: self.name()? });
        }
        if self.eat_word("CONSTRAINT") {
            let if_exists = self.eat_words(&["IF", "EXISTS"]);
            return Ok(AlterAction::DropConstraint { if_exists, name: self.index_name()? });
        }
        if self.is("PARTITION") || self.is_all(&["SYSTEM", "VERSIONING"]) {
            return Err(self.unsupported("ALTER TABLE DROP PARTITION"));
        }
        self.eat_word("COLUMN");
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let name = self.name()?;
        self.eat_any(&["RESTRICT", "CASCADE"]);
        Ok(AlterAction::DropColumn { if_exists, name })
    }

    /// Parses `ALTER [COLUMN] c SET DEFAULT x | DROP DEFAULT` or `ALTER INDEX name [NOT] IGNORED`.
    fn alter_column(&mut self) -> SqlResult<AlterAction> {
        if self.eat_any(&["INDEX", "KEY"]) {
            let if_exists = self.eat_words(&["IF", "EXISTS"]);
            let name = self.name()?;
            let ignored = !self.eat_word("NOT");
            self.expect_word("IGNORED")?;
            return Ok(AlterAction::SetKeyIgnored { if_exists, name, ignored });
        }
        self.eat_word("COLUMN");
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let column = self.name()?;
        let default = if self.eat_words(&["SET", "DEFAULT"]) {
            Some(self.column_default()?)
        } else {
            self.expect_words(&["DROP", "DEFAULT"])?;
            None
        };
        Ok(AlterAction::SetDefault { if_exists, column, default })
    }

    fn alter_rename(&mut self) -> SqlResult<AlterAction> {
        if self.eat_word("COLUMN") {
            let if_exists = self.eat_words(&["IF", "EXISTS"]);
            let old_name = self.name()?;
            self.expect_word("TO")?;
            return Ok(AlterAction::RenameColumn { if_exists, old_name, new_name: self.name()? });
        }
        if self.eat_any(&["INDEX", "KEY"]) {
            let if_exists = self.eat_words(&["IF", "EXISTS"]);
            let old_name = self.name()?;
            self.expect_word("TO")?;
            return Ok(AlterAction::RenameKey { if_exists, old_name, new_name: self.name()? });
        }
        if !self.eat_any(&["TO", "AS"]) {
            self.eat(Kind::Equal);
        }
        Ok(AlterAction::RenameTable(self.object_name()?))
    }

    fn alter_convert(&mut self) -> SqlResult<AlterAction> {
        self.expect_word("TO")?;
        if !self.charset_words() {
            return Err(self.error());
        }
        let charset = if self.eat_word("DEFAULT") { None } else { Some(self.charset_word()?) };
        let collation = if self.eat_word("COLLATE") {
            self.eat(Kind::Equal);
            Some(self.charset_word()?)
        } else {
            None
        };
        Ok(AlterAction::ConvertCharset { charset, collation })
    }
}

fn push_elements(actions: &mut Vec<AlterAction>, elements: Elements) -> SqlResult<()> {
    actions.extend(elements.keys.into_iter().map(AlterAction::AddKey));
    actions.extend(elements.foreign_keys.into_iter().map(AlterAction::AddForeignKey));
    actions.extend(elements.checks.into_iter().map(AlterAction::AddCheck));
    Ok(())
}
