//! Enforcement of an account's resource limits and password expiry in a session
//! ([`AccountUsages`](crate::AccountUsages)).

use std::cell::Cell;

use cohort_catalog::Account;
use cohort_config::VarId;
use cohort_types::{SqlError, SqlResult};

use crate::account_usage::{AccountLimits, Use};
use crate::session_state::SessionState;
use crate::statements::{Exception, StatementTraits, Writes};

impl SessionState {
    /// Applies the account's limits and default role after a login or a change of user, if the session is a
    /// client's.
    pub fn adopt_account(&mut self) -> SqlResult<()> {
        if self.identity.is_applier || self.identity.acts_for_server {
            return Ok(());
        }
        let account = self.db.catalog().accounts.get(&self.info.account).cloned();
        let Some(account) = account else { return Ok(()) };
        self.identity.restraint = AccountLimits::of_login(self, &account)?;
        let role = &account.default_role;
        self.identity.role = (!role.is_empty() && self.may_use_role(role)).then(|| role.clone());
        *self.identity.access.borrow_mut() = None;
        self.settings.env.current_role.clone_from(&self.identity.role);
        self.apply_limits();
        Ok(())
    }

    /// Checks that the account's limits allow a statement of this kind to run.
    #[inline]
    pub fn check_restraint(&self, statement: &StatementTraits) -> SqlResult<()> {
        self.identity.restraint.as_ref().map_or(Ok(()), |restraint| restraint.check(self, statement))
    }
}

impl AccountLimits {
    /// Returns the limits of a new session of this account, if it has any. Counts the login; error 1226 if
    /// the hour's limit is exceeded.
    pub(crate) fn of_login(session: &SessionState, account: &Account) -> SqlResult<Option<AccountLimits>> {
        let (db, rules) = (&session.db, &account.rules);
        let now_us = db.clock.wall_us();
        let usage = db.account_usages.of(&account.name, &rules.limits);
        if let Some(usage) = &usage {
            usage.count(&session.info.user, now_us, Use::Connection)?;
        }
        let default_days = db.globals.uint(VarId::DefaultPasswordLifetime);
        let must_change_password = rules.has_expired(now_us / 1_000_000, default_days);
        if usage.is_none() && !must_change_password {
            return Ok(None);
        }
        Ok(Some(AccountLimits { must_change_password: Cell::new(must_change_password), usage }))
    }

    /// Lifts the password restriction: the session has changed its own password.
    pub fn password_changed(&self) {
        self.must_change_password.set(false);
    }

    /// Checks that a statement of this kind may run now: errors 1820, 1226.
    pub(crate) fn check(&self, session: &SessionState, statement: &StatementTraits) -> SqlResult<()> {
        self.check_preparable(statement)?;
        let Some(usage) = &self.usage else { return Ok(()) };
        let (user, now_us) = (&session.info.user, session.db.clock.wall_us());
        usage.count(user, now_us, Use::Query)?;
        if statement.writes != Writes::Nothing {
            usage.count(user, now_us, Use::Update)?;
        }
        Ok(())
    }

    /// Returns error 1820 for a statement that cannot be part of changing the password.
    pub fn check_preparable(&self, statement: &StatementTraits) -> SqlResult<()> {
        match statement.has(Exception::ExpiredPassword) {
            true => Ok(()),
            false => self.check_password(),
        }
    }

    /// Returns error 1820 if the password must be changed first.
    pub fn check_password(&self) -> SqlResult<()> {
        match self.must_change_password.get() {
            false => Ok(()),
            true => Err(SqlError::must_set_password()),
        }
    }
}
