//! CREATE VIEW, ALTER VIEW.

use cohort_types::SqlResult;

use super::Parser;
use crate::ast::{CreateMode, CreateView, Statement, ViewAlgorithm, ViewCheck, ViewSecurity};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Returns whether the next word can start the part of CREATE or ALTER VIEW after the verb.
    pub(super) fn view_follows(&self) -> bool {
        self.is_any(&["VIEW", "ALGORITHM", "DEFINER", "SQL"])
    }

    /// Parses the part after CREATE [OR REPLACE] or ALTER: a view, or another object with a definer.
    pub(super) fn view(&mut self, or_replace: bool, alter: bool) -> SqlResult<Statement> {
        let verb = if alter { "ALTER" } else { "CREATE" };
        let mut algorithm = None;
        if self.eat_word("ALGORITHM") {
            self.expect(Kind::Equal)?;
            algorithm = Some(match () {
                () if self.eat_word("UNDEFINED") => ViewAlgorithm::Undefined,
                () if self.eat_word("MERGE") => ViewAlgorithm::Merge,
                () if self.eat_word("TEMPTABLE") => ViewAlgorithm::TempTable,
                () => return Err(self.error()),
            });
        }
        let mut definer = None;
        if self.eat_word("DEFINER") {
            self.expect(Kind::Equal)?;
            definer = Some(self.account()?);
        }
        if definer.is_some() && algorithm.is_none() && self.program_follows() {
            return if alter {
                self.alter_program(definer)
            } else {
                self.create_program(or_replace, definer)
            };
        }
        let security = self.sql_security()?;
        if self.is("PACKAGE") {
            let what = format!("{verb} {}", self.upper_word()?);
            return Err(self.unsupported(&what));
        }
        self.expect_word("VIEW")?;
        let mode = if alter { CreateMode::Create } else { self.create_mode(or_replace)? };
        let name = self.object_name()?;
        let columns = match self.kind() {
            Kind::LeftParen => self.paren_list(Self::name)?,
            _ => Vec::new(),
        };
        self.expect_word("AS")?;
        let from = self.at;
        let query = Box::new(self.query()?);
        if self.rows_examined.is_some() {
            return Err(self.unsupported("LIMIT ROWS EXAMINED inside views"));
        }
        let check = match () {
            () if self.eat_words(&["WITH", "LOCAL", "CHECK", "OPTION"]) => ViewCheck::Local,
            () if self.eat_words(&["WITH", "CASCADED", "CHECK", "OPTION"])
                || self.eat_words(&["WITH", "CHECK", "OPTION"]) =>
            {
                ViewCheck::Cascaded
            }
            () => ViewCheck::None,
        };
        let text = self.source_text(from);
        Ok(Statement::CreateView(Box::new(CreateView {
            mode,
            alter,
            algorithm,
            definer,
            security,
            name,
            columns,
            query,
            text,
            check,
        })))
    }

    /// Parses SQL SECURITY, if it follows.
    pub(super) fn sql_security(&mut self) -> SqlResult<Option<ViewSecurity>> {
        match () {
            () if !self.eat_words(&["SQL", "SECURITY"]) => Ok(None),
            () if self.eat_word("DEFINER") => Ok(Some(ViewSecurity::Definer)),
            () if self.eat_word("INVOKER") => Ok(Some(ViewSecurity::Invoker)),
            () => Err(self.error()),
        }
    }
}
