//! CREATE, ALTER, RENAME USER, GRANT, REVOKE.

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use crate::ast::{
    Account, AccountOptions, AlterUser, AuthPlugin, Authentication, CreateRole, CreateUser, DropRole, Grant,
    GrantLevel, ObjectName, PasswordExpiry, Privilege, Revoke, Statement, UserSpec,
};
use crate::lexer::Kind;

/// Privileges of MariaDB 10.11. A privilege that is a prefix of another follows it.
const PRIVILEGES: &[&[&str]] = &[
    &["ALL", "PRIVILEGES"],
    &["ALL"],
    &["ALTER", "ROUTINE"],
    &["ALTER"],
    &["BACKUP_ADMIN"],
    &["BINLOG", "ADMIN"],
    &["BINLOG", "MONITOR"],
    &["BINLOG", "REPLAY"],
    &["CLONE_ADMIN"],
    &["CONNECTION", "ADMIN"],
    &["CREATE", "ROUTINE"],
    &["CREATE", "TABLESPACE"],
    &["CREATE", "TEMPORARY", "TABLES"],
    &["CREATE", "USER"],
    &["CREATE", "VIEW"],
    &["CREATE"],
    &["DELETE", "HISTORY"],
    &["DELETE", "VERSIONING", "ROWS"],
    &["DELETE"],
    &["DROP"],
    &["EVENT"],
    &["EXECUTE"],
    &["FEDERATED", "ADMIN"],
    &["FILE"],
    &["GRANT", "OPTION"],
    &["INDEX"],
    &["INSERT"],
    &["LOCK", "TABLES"],
    &["PROCESS"],
    &["READ_ONLY", "ADMIN"],
    &["READ", "ONLY", "ADMIN"],
    &["REFERENCES"],
    &["RELOAD"],
    &["REPLICATION", "CLIENT"],
    &["REPLICATION", "MASTER", "ADMIN"],
    &["REPLICATION", "REPLICA", "ADMIN"],
    &["REPLICATION", "REPLICA"],
    &["REPLICATION", "SLAVE", "ADMIN"],
    &["REPLICATION", "SLAVE"],
    &["REPLICA", "MONITOR"],
    &["SLAVE", "MONITOR"],
    &["SELECT"],
    &["SET", "USER"],
    &["SHOW", "DATABASES"],
    &["SHOW", "VIEW"],
    &["SHUTDOWN"],
    &["SUPER"],
    &["TRIGGER"],
    &["UPDATE"],
    &["USAGE"],
];

/// MariaDB's limit. Events and packets store the length in one or two bytes.
const USER_CHARS_MAX: usize = 128;
/// One year, the maximum of the variable.
const STATEMENT_SECONDS_MAX: f64 = 31_536_000.0;
const HOST_CHARS_MAX: usize = 255;

/// Returns error 1470 if the text is too long.
fn check_length(text: &str, chars_max: usize, what: &str) -> SqlResult<()> {
    if text.chars().count() <= chars_max {
        return Ok(());
    }
    Err(SqlError::string_too_long(text, what, chars_max))
}

/// Privileges that can be granted on columns.
const ON_COLUMNS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "REFERENCES"];

impl Parser<'_> {
    /// Parses `user[@host]` or CURRENT_USER[()].
    pub(super) fn account(&mut self) -> SqlResult<Account> {
        if self.eat_word("CURRENT_USER") {
            if self.eat(Kind::LeftParen) {
                self.expect(Kind::RightParen)?;
            }
            return Ok(Account::CurrentUser);
        }
        if self.eat_word("CURRENT_ROLE") {
            if self.eat(Kind::LeftParen) {
                self.expect(Kind::RightParen)?;
            }
            return Ok(Account::CurrentRole);
        }
        let user = self.name_or_text()?;
        check_length(&user, USER_CHARS_MAX, "user name")?;
        let token = self.token();
        let host = match token.kind {
            Kind::AtName => {
                self.advance();
                let mut host = String::from_utf8_lossy(&self.bytes(token)[1..]).into_owned();
                if host.is_empty() {
                    host = self.name_or_text()?;
                }
                host
            }
            Kind::At => {
                self.advance();
                self.name_or_text()?
            }
            _ => return Ok(Account::NameAlone(user)),
        };
        check_length(&host, HOST_CHARS_MAX, "host name")?;
        Ok(Account::Named { user, host: host.to_ascii_lowercase() })
    }

    /// Parses an account where roles are not allowed.
    pub(super) fn user(&mut self) -> SqlResult<Account> {
        if self.is("CURRENT_ROLE") { Err(self.error()) } else { self.account() }
    }

    fn user_spec(&mut self) -> SqlResult<UserSpec> {
        let account = self.account()?;
        if !self.eat_word("IDENTIFIED") {
            return Ok(UserSpec { account, authentication: None });
        }
        let authentication = if self.eat_word("BY") {
            if self.eat_word("PASSWORD") {
                Authentication::PasswordHash(self.text()?)
            } else {
                Authentication::Password(self.text()?)
            }
        } else {
            self.expect_any(&["VIA", "WITH"])?;
            let mut plugins = vec![self.auth_plugin()?];
            while self.eat_word("OR") {
                plugins.push(self.auth_plugin()?);
            }
            Authentication::Plugins(plugins)
        };
        Ok(UserSpec { account, authentication: Some(authentication) })
    }

    fn auth_plugin(&mut self) -> SqlResult<AuthPlugin> {
        let mut plugin = AuthPlugin { plugin: self.name_or_text()?, using: None, password: None };
        if self.eat_any(&["USING", "AS"]) {
            if self.eat_word("PASSWORD") {
                self.expect(Kind::LeftParen)?;
                plugin.password = Some(self.text()?);
                self.expect(Kind::RightParen)?;
            } else {
                plugin.using = Some(self.text()?);
            }
        }
        Ok(plugin)
    }

    /// Parses the part after CREATE [OR REPLACE] USER.
    pub(super) fn create_user(&mut self, or_replace: bool) -> SqlResult<Statement> {
        let mode = self.create_mode(or_replace)?;
        let users = self.list(Self::user_spec)?;
        let options = self.account_options()?;
        Ok(Statement::CreateUser(CreateUser { mode, users, options }))
    }

    /// Parses the part after CREATE [OR REPLACE] ROLE.
    pub(super) fn create_role(&mut self, or_replace: bool) -> SqlResult<Statement> {
        let mode = self.create_mode(or_replace)?;
        if self.is("CURRENT_ROLE") {
            return Err(SqlError::user_operation_failed("CREATE ROLE", "CURRENT_ROLE"));
        }
        let roles = self.list(Self::role)?;
        let admin = match self.eat_words(&["WITH", "ADMIN"]) {
            true => Some(self.account()?),
            false => None,
        };
        Ok(Statement::CreateRole(CreateRole { mode, roles, admin }))
    }

    /// Parses the part after DROP ROLE.
    pub(super) fn drop_role(&mut self) -> SqlResult<Statement> {
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        Ok(Statement::DropRole(DropRole { if_exists, roles: self.list(Self::dropped_role)? }))
    }

    /// Parses a role to drop. PUBLIC is a role that cannot be dropped; NONE is not a role.
    fn dropped_role(&mut self) -> SqlResult<Account> {
        if self.is("CURRENT_ROLE") {
            return self.account();
        }
        let name = self.role().or_else(|error| {
            let is_meant = |word: &&&str| error == SqlError::invalid_role(word);
            let word = ["PUBLIC", "NONE"].iter().find(is_meant).ok_or_else(|| error.clone())?;
            Ok((*word).to_owned())
        });
        name.map(Account::NameAlone)
    }

    /// Parses the name of a role. Returns error 1959 for words with another meaning.
    pub(super) fn role(&mut self) -> SqlResult<String> {
        if self.is_any(&["CURRENT_USER", "CURRENT_ROLE"]) {
            return Err(self.error());
        }
        let mut name = self.name_or_text()?;
        name.truncate(name.trim_end_matches(' ').len());
        check_length(&name, USER_CHARS_MAX, "user name")?;
        let is_word = ["NONE", "PUBLIC"].iter().find(|word| name.eq_ignore_ascii_case(word));
        match (is_word, name.is_empty()) {
            (Some(word), _) => Err(SqlError::invalid_role(word)),
            (None, true) => Err(SqlError::invalid_role("")),
            (None, false) => Ok(name),
        }
    }

    /// Parses the part after ALTER USER.
    pub(super) fn alter_user(&mut self) -> SqlResult<Statement> {
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let users = self.list(Self::user_spec)?;
        let options = self.account_options()?;
        Ok(Statement::AlterUser(AlterUser { if_exists, users, options }))
    }

    pub(super) fn rename_user(&mut self) -> SqlResult<Statement> {
        let renames = self.list(|p| {
            let from = p.account()?;
            p.expect_word("TO")?;
            Ok((from, p.account()?))
        })?;
        Ok(Statement::RenameUser(renames))
    }

    fn account_options(&mut self) -> SqlResult<AccountOptions> {
        let mut options = AccountOptions::default();
        if self.eat_word("REQUIRE") {
            self.require(&mut options)?;
        }
        if self.eat_word("WITH") {
            self.limits(&mut options)?;
        }
        loop {
            match () {
                () if self.eat_words(&["ACCOUNT", "LOCK"]) => options.locked = Some(true),
                () if self.eat_words(&["ACCOUNT", "UNLOCK"]) => options.locked = Some(false),
                () if self.eat_words(&["PASSWORD", "EXPIRE"]) => options.expiry = Some(self.expiry()?),
                () => return Ok(options),
            }
        }
    }

    /// Parses the part after PASSWORD EXPIRE. Returns error 1525 for zero days.
    fn expiry(&mut self) -> SqlResult<PasswordExpiry> {
        Ok(match () {
            () if self.eat_word("NEVER") => PasswordExpiry::Never,
            () if self.eat_word("DEFAULT") => PasswordExpiry::Default,
            () if self.eat_word("INTERVAL") => {
                let days = self.number()?;
                self.expect_word("DAY")?;
                if days == 0 {
                    return Err(SqlError::wrong_literal("DAY", days));
                }
                PasswordExpiry::Days(u32::try_from(days).unwrap_or(u32::MAX))
            }
            () => PasswordExpiry::Now,
        })
    }

    fn require(&mut self, options: &mut AccountOptions) -> SqlResult<()> {
        if self.is_any(&["NONE", "SSL", "X509"]) {
            options.require.push((self.upper_word()?, None));
            return Ok(());
        }
        loop {
            if !self.is_any(&["CIPHER", "ISSUER", "SUBJECT"]) {
                return Err(self.error());
            }
            let word = self.upper_word()?;
            options.require.push((word, Some(self.text()?)));
            self.eat_word("AND");
            if !self.is_any(&["CIPHER", "ISSUER", "SUBJECT"]) {
                return Ok(());
            }
        }
    }

    fn limits(&mut self, options: &mut AccountOptions) -> SqlResult<()> {
        const LIMITS: &[&str] = &[
            "MAX_QUERIES_PER_HOUR",
            "MAX_UPDATES_PER_HOUR",
            "MAX_CONNECTIONS_PER_HOUR",
            "MAX_USER_CONNECTIONS",
            "MAX_STATEMENT_TIME",
        ];
        if !self.is_any(LIMITS) {
            return Err(self.error());
        }
        while self.is_any(LIMITS) {
            let word = self.upper_word()?;
            if word == "MAX_STATEMENT_TIME" {
                options.statement_time_us = Some(self.statement_time_us()?);
                continue;
            }
            let is_negative = word == "MAX_USER_CONNECTIONS" && self.eat(Kind::Minus);
            let number = i64::try_from(self.number()?).unwrap_or(i64::MAX);
            options.limits.push((word, if is_negative { -number } else { number }));
        }
        Ok(())
    }

    /// Parses a number of seconds with an optional fraction.
    fn statement_time_us(&mut self) -> SqlResult<u64> {
        let token = self.token();
        if !matches!(token.kind, Kind::Integer | Kind::Decimal | Kind::Float) {
            return Err(self.error());
        }
        let seconds = std::str::from_utf8(self.bytes(token)).ok().and_then(|text| text.parse::<f64>().ok());
        let seconds = seconds.ok_or_else(|| self.error())?;
        self.advance();
        Ok((seconds.clamp(0.0, STATEMENT_SECONDS_MAX) * 1e6).round() as u64)
    }

    // ---- GRANT, REVOKE

    pub(super) fn grant(&mut self) -> SqlResult<Statement> {
        self.advance();
        let (privileges, level) = self.privileges_and_level()?;
        self.expect_word("TO")?;
        let users = self.list(Self::user_spec)?;
        let mut grant =
            Grant { privileges, level, users, grant_option: false, options: AccountOptions::default() };
        if matches!(grant.level, GrantLevel::Proxy(_)) {
            if self.eat_word("WITH") {
                self.expect_words(&["GRANT", "OPTION"])?;
                grant.grant_option = true;
            }
            return Ok(Statement::Grant(grant));
        }
        if self.eat_word("REQUIRE") {
            self.require(&mut grant.options)?;
        }
        if self.eat_word("WITH") {
            let option = if grant.level == GrantLevel::Role { "ADMIN" } else { "GRANT" };
            loop {
                if self.eat_words(&[option, "OPTION"]) {
                    grant.grant_option = true;
                } else {
                    self.limits(&mut grant.options)?;
                }
                if self.at_end() {
                    break;
                }
            }
        }
        Ok(Statement::Grant(grant))
    }

    pub(super) fn revoke(&mut self) -> SqlResult<Statement> {
        self.advance();
        let (privileges, level) = match self.eat_words(&["ADMIN", "OPTION", "FOR"]) {
            true => (vec![Privilege { name: self.role()?, columns: Vec::new() }], GrantLevel::RoleAdmin),
            false => self.privileges_and_level()?,
        };
        self.expect_word("FROM")?;
        let accounts = self.list(Self::account)?;
        Ok(Statement::Revoke(Revoke { privileges, level, accounts }))
    }

    fn privileges_and_level(&mut self) -> SqlResult<(Vec<Privilege>, GrantLevel)> {
        if self.eat_words(&["PROXY", "ON"]) {
            return Ok((Vec::new(), GrantLevel::Proxy(self.account()?)));
        }
        let privileges = self.list(Self::privilege)?;
        let known = privileges.iter().all(|(_, known)| *known);
        let privileges: Vec<Privilege> = privileges.into_iter().map(|(privilege, _)| privilege).collect();
        if known && self.eat_word("ON") {
            return Ok((privileges, self.grant_level()?));
        }
        if !known {
            // Only one role per statement.
            return if privileges.len() == 1 {
                Ok((privileges, GrantLevel::Role))
            } else {
                Err(self.error())
            };
        }
        match privileges.as_slice() {
            [all, option] if all.name.starts_with("ALL") && option.name == "GRANT OPTION" => {
                Ok((privileges, GrantLevel::Everywhere))
            }
            _ => Err(self.error()),
        }
    }

    /// Parses a privilege (true) or the name of a role (false).
    fn privilege(&mut self) -> SqlResult<(Privilege, bool)> {
        let is_role = |words: &&[&str]| {
            // Names that MariaDB does not reserve for privileges: a role may have them.
            matches!(words, ["BACKUP_ADMIN" | "CLONE_ADMIN"])
                && !self.is_word_at(1, "ON")
                && self.peek(1).kind != Kind::Comma
        };
        let known: Vec<_> = PRIVILEGES.iter().filter(|words| !is_role(words)).collect();
        for words in known {
            if self.eat_words(words) {
                let name = words.join(" ");
                let has_columns = self.kind() == Kind::LeftParen && ON_COLUMNS.contains(&name.as_str());
                let columns = if has_columns { self.paren_list(Self::name)? } else { Vec::new() };
                return Ok((Privilege { name, columns }, true));
            }
        }
        Ok((Privilege { name: self.name_or_text()?, columns: Vec::new() }, false))
    }

    fn grant_level(&mut self) -> SqlResult<GrantLevel> {
        if self.is_any(&["PROCEDURE", "FUNCTION", "PACKAGE"]) {
            let mut kind = self.upper_word()?;
            if kind == "PACKAGE" && self.eat_word("BODY") {
                kind.push_str(" BODY");
            }
            return Ok(GrantLevel::Routine { kind, name: self.object_name()? });
        }
        self.eat_word("TABLE");
        if self.eat(Kind::Star) {
            if self.eat(Kind::Dot) {
                self.expect(Kind::Star)?;
                return Ok(GrantLevel::Global);
            }
            return Ok(GrantLevel::Database(None));
        }
        let first = self.name()?;
        if self.eat(Kind::Dot) {
            if self.eat(Kind::Star) {
                return Ok(GrantLevel::Database(Some(first)));
            }
            return Ok(GrantLevel::Table(ObjectName { db: Some(first), name: self.name_after_dot()? }));
        }
        Ok(GrantLevel::Table(ObjectName { db: None, name: first }))
    }
}
