//! SET.

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use crate::ast::{Account, IsolationLevel, PasswordValue, SetItem, SetValue, Statement, VariableScope};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn set(&mut self) -> SqlResult<Statement> {
        self.advance();
        if self.is("STATEMENT") && self.peek(1).kind == Kind::Word {
            self.advance();
            let items = self.list(Self::statement_item)?;
            self.expect_word("FOR")?;
            let statement = Box::new(self.statement()?);
            return Ok(Statement::SetStatement { items, statement });
        }
        let scoped = usize::from(self.is_any(&["GLOBAL", "SESSION", "LOCAL"]));
        if self.is_word_at(scoped, "TRANSACTION") {
            return Ok(Statement::Set(vec![self.set_transaction()?]));
        }
        Ok(Statement::Set(self.list(Self::set_item)?))
    }

    /// Parses `name = value` of SET STATEMENT, which sets a session variable.
    fn statement_item(&mut self) -> SqlResult<SetItem> {
        if !self.is_name_at(0) {
            return Err(self.error());
        }
        let is_variable = matches!(self.peek(1).kind, Kind::Equal | Kind::Assign | Kind::Dot);
        if !is_variable {
            return Err(self.error_at(self.at + 1));
        }
        let start = self.at;
        match self.system_variable_name()? {
            (VariableScope::Global, _) => Err(self.error_at(start)),
            (_, name) => self.set_variable(VariableScope::Session, name),
        }
    }

    pub(super) fn set_item(&mut self) -> SqlResult<SetItem> {
        match self.kind() {
            Kind::AtName | Kind::At => {
                let name = self.user_variable()?;
                self.assign_sign()?;
                return Ok(SetItem::UserVariable { name, value: self.expr()? });
            }
            Kind::AtAt => {
                self.advance();
                let (scope, name) = self.system_variable_name()?;
                return self.set_variable(scope, name);
            }
            _ => {}
        }
        let assigned = matches!(self.peek(1).kind, Kind::Equal | Kind::Assign | Kind::Dot);
        if assigned && !self.is("PASSWORD") {
            let (scope, name) = self.system_variable_name()?;
            let is_session = scope == VariableScope::Unspecified;
            return self.set_variable(if is_session { VariableScope::Session } else { scope }, name);
        }
        match () {
            () if self.eat_word("NAMES") => self.set_names(),
            () if self.charset_words() => {
                let charset = if self.eat_word("DEFAULT") { None } else { Some(self.charset_word()?) };
                Ok(SetItem::CharacterSet(charset))
            }
            () if self.eat_word("PASSWORD") => self.set_password(),
            () if self.eat_word("ROLE") => self.set_role(),
            () if self.eat_words(&["DEFAULT", "ROLE"]) => self.set_default_role(),
            () if self.is_any(&["GLOBAL", "SESSION", "LOCAL"]) => {
                let global = self.is("GLOBAL");
                self.advance();
                let (_, name) = self.system_variable_name()?;
                self.set_variable(if global { VariableScope::Global } else { VariableScope::Session }, name)
            }
            () => {
                self.name()?;
                Err(self.error())
            }
        }
    }

    pub(super) fn assign_sign(&mut self) -> SqlResult<()> {
        if !self.eat(Kind::Equal) {
            self.expect(Kind::Assign)?;
        }
        Ok(())
    }

    fn set_variable(&mut self, scope: VariableScope, name: String) -> SqlResult<SetItem> {
        self.assign_sign()?;
        let value = self.set_value()?;
        Ok(SetItem::Variable { scope, name, value })
    }

    pub(super) fn set_value(&mut self) -> SqlResult<SetValue> {
        if self.kind() == Kind::Word {
            let next = self.peek(1).kind;
            let alone =
                matches!(next, Kind::End | Kind::Semicolon | Kind::Comma) || self.is_word_at(1, "FOR");
            if alone && self.eat_word("DEFAULT") {
                return Ok(SetValue::Default);
            }
            let words = self.is_any(&["ON", "ALL", "BINARY", "ROW"]);
            let constant = self.is_any(&["TRUE", "FALSE", "NULL"]) || self.call_words();
            if alone && !constant && !self.variable_follows() && (words || self.is_name_at(0)) {
                return Ok(SetValue::Word(self.any_name()));
            }
        }
        let follows = self.peek(1).kind;
        let alone = matches!(follows, Kind::End | Kind::Semicolon | Kind::Comma);
        if self.kind() == Kind::Quoted && alone && !self.variable_follows() {
            return Ok(SetValue::Word(self.any_name()));
        }
        // An empty string is kept as text, so that a session can leave EMPTY_STRING_IS_NULL by setting the
        // mode to ''.
        if self.kind() == Kind::Text && alone && self.bytes(self.token()).len() == "''".len() {
            self.advance();
            return Ok(SetValue::Word(String::new()));
        }
        Ok(SetValue::Expr(self.expr()?))
    }

    /// Returns whether the word is a function that can be called without parentheses.
    fn call_words(&self) -> bool {
        self.is_any(&[
            "CURRENT_TIMESTAMP",
            "LOCALTIME",
            "LOCALTIMESTAMP",
            "CURRENT_DATE",
            "CURRENT_TIME",
            "CURRENT_USER",
            "CURRENT_ROLE",
            "UTC_DATE",
            "UTC_TIME",
            "UTC_TIMESTAMP",
        ])
    }

    fn set_names(&mut self) -> SqlResult<SetItem> {
        let charset = if self.eat_word("DEFAULT") { None } else { Some(self.charset_word()?) };
        let collation = match self.eat_word("COLLATE") {
            true if self.eat_word("DEFAULT") => None,
            true => Some(self.charset_word()?),
            false => None,
        };
        Ok(SetItem::Names { charset, collation })
    }

    fn set_password(&mut self) -> SqlResult<SetItem> {
        let account = if self.eat_word("FOR") { Some(self.user()?) } else { None };
        self.assign_sign()?;
        if self.eat_any(&["PASSWORD", "OLD_PASSWORD"]) {
            self.expect(Kind::LeftParen)?;
            let password = PasswordValue::Plain(self.text()?);
            self.expect(Kind::RightParen)?;
            return Ok(SetItem::Password { account, password });
        }
        let password = PasswordValue::Hash(self.text()?);
        Ok(SetItem::Password { account, password })
    }

    fn set_role(&mut self) -> SqlResult<SetItem> {
        if self.eat_word("NONE") {
            return Ok(SetItem::Role(None));
        }
        Ok(SetItem::Role(Some(self.chosen_role()?)))
    }

    /// Parses a role that can be enabled. Error 1959 for PUBLIC, which is always enabled.
    fn chosen_role(&mut self) -> SqlResult<String> {
        if self.is("CURRENT_ROLE") {
            return Err(self.error());
        }
        let role = self.name_or_text()?;
        if role.eq_ignore_ascii_case("PUBLIC") { Err(SqlError::invalid_role("PUBLIC")) } else { Ok(role) }
    }

    fn set_default_role(&mut self) -> SqlResult<SetItem> {
        let role = match () {
            () if self.eat_word("NONE") => None,
            () if self.is("CURRENT_ROLE") => Some(self.account()?),
            () => Some(Account::NameAlone(self.chosen_role()?)),
        };
        let account = if self.eat_word("FOR") { Some(self.user()?) } else { None };
        Ok(SetItem::DefaultRole { role, account })
    }

    fn set_transaction(&mut self) -> SqlResult<SetItem> {
        let scope = match () {
            () if self.eat_word("GLOBAL") => VariableScope::Global,
            () if self.eat_any(&["SESSION", "LOCAL"]) => VariableScope::Session,
            () => VariableScope::Unspecified,
        };
        self.expect_word("TRANSACTION")?;
        let (mut isolation, mut access) = (None, None);
        self.list(|p| {
            if isolation.is_none() && p.eat_words(&["ISOLATION", "LEVEL"]) {
                isolation = Some(p.isolation_level()?);
            } else if access.is_none() {
                access = Some(p.access_mode()?);
            } else {
                return Err(p.error());
            }
            Ok(())
        })?;
        Ok(SetItem::Transaction { scope, isolation, access })
    }

    fn isolation_level(&mut self) -> SqlResult<IsolationLevel> {
        Ok(match () {
            () if self.eat_words(&["READ", "UNCOMMITTED"]) => IsolationLevel::ReadUncommitted,
            () if self.eat_words(&["READ", "COMMITTED"]) => IsolationLevel::ReadCommitted,
            () if self.eat_words(&["REPEATABLE", "READ"]) => IsolationLevel::RepeatableRead,
            () if self.eat_word("SERIALIZABLE") => IsolationLevel::Serializable,
            () => return Err(self.error()),
        })
    }
}
