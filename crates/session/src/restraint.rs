//! [`Restraint`]: what one session is bound to, as its account is ([`AccountUsages`](crate::AccountUsages)).

use std::cell::Cell;
use std::sync::Arc;

use cohort_catalog::Account;
use cohort_config::VarId;
use cohort_sql::ast::Statement;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::access::counts_as_write;
use crate::account_usage::{AccountUsage, Use};
use crate::session_state::SessionState;

/// What one session is bound to.
pub struct Restraint {
    must_change_password: Cell<bool>,
    usage: Option<Arc<AccountUsage>>,
}

impl Restraint {
    /// What a session of this account is bound to. A login counts; error 1226 when there were too many.
    pub(crate) fn of_login(session: &SessionState, account: &Account) -> SqlResult<Option<Restraint>> {
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
        Ok(Some(Restraint { must_change_password: Cell::new(must_change_password), usage }))
    }

    /// The session has changed its own password.
    pub fn password_changed(&self) {
        self.must_change_password.set(false);
    }

    /// Whether a statement may run now: errors 1820, 1226.
    pub(crate) fn check(&self, session: &SessionState, statement: &Statement) -> SqlResult<()> {
        let is_allowed = matches!(
            statement,
            Statement::Set(_)
                | Statement::Prepare { .. }
                | Statement::Execute { .. }
                | Statement::Deallocate { .. }
        );
        if !is_allowed {
            self.check_password()?;
        }
        let Some(usage) = &self.usage else { return Ok(()) };
        let (user, now_us) = (&session.info.user, session.db.clock.wall_us());
        usage.count(user, now_us, Use::Query)?;
        if counts_as_write(statement) || is_change_of_rows(statement) {
            usage.count(user, now_us, Use::Update)?;
        }
        Ok(())
    }

    /// Error 1820.
    pub fn check_password(&self) -> SqlResult<()> {
        match self.must_change_password.get() {
            false => Ok(()),
            true => {
                let text = "You must SET PASSWORD before executing this statement";
                Err(SqlError::new(ErrorCode::MustChangePassword, text))
            }
        }
    }
}

fn is_change_of_rows(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::LoadData(_)
    )
}
