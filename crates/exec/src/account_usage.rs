//! What accounts are bound to beyond their privileges: limits per hour, passwords that must be changed,
//! passwords tried in vain.
//!
//! A session of an account that is bound to nothing has no [`Restraint`], and its statements cost nothing
//! more. What was used counts for an account over all of its sessions, in an hour that begins with the first
//! use behind the last one.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use cohort_catalog::{Account, AccountName, Limits};
use cohort_config::VarId;
use cohort_sql::ast::Statement;
use cohort_types::{ErrorCode, SqlError, SqlResult};
use parking_lot::Mutex;

use crate::access::counts_as_write;
use crate::session_state::SessionState;

const HOUR_US: u64 = 3_600_000_000;

/// Of all accounts that are bound to something; as long as the server runs.
#[derive(Default)]
pub struct AccountUsages {
    used: Mutex<HashMap<AccountName, Arc<AccountUsage>>>,
    /// Passwords tried in vain since the last right one.
    wrong_passwords: Mutex<HashMap<AccountName, u64>>,
}

/// What one account has used in its hour.
pub(crate) struct AccountUsage {
    hour: Mutex<Hour>,
}

struct Hour {
    /// As they were at the last login.
    limits: Limits,
    began_us: u64,
    /// By [`Use`].
    counts: [u32; 3],
}

/// What counts against a limit per hour.
#[derive(Clone, Copy)]
enum Use {
    Query,
    Update,
    Connection,
}

impl Use {
    fn name(self) -> &'static str {
        match self {
            Use::Query => "max_queries_per_hour",
            Use::Update => "max_updates_per_hour",
            Use::Connection => "max_connections_per_hour",
        }
    }

    fn max(self, limits: &Limits) -> u32 {
        match self {
            Use::Query => limits.queries_per_hour,
            Use::Update => limits.updates_per_hour,
            Use::Connection => limits.connections_per_hour,
        }
    }
}

fn is_change_of_rows(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::LoadData(_)
    )
}

/// What one session is bound to.
pub(crate) struct Restraint {
    must_change_password: Cell<bool>,
    usage: Option<Arc<AccountUsage>>,
}

impl AccountUsages {
    fn of(&self, name: &AccountName, limits: &Limits) -> Option<Arc<AccountUsage>> {
        let is_bound =
            limits.queries_per_hour > 0 || limits.updates_per_hour > 0 || limits.connections_per_hour > 0;
        let mut used = self.used.lock();
        if !is_bound {
            used.remove(name);
            return None;
        }
        let usage = used.entry(name.clone()).or_insert_with(|| Arc::new(AccountUsage::new(*limits)));
        usage.hour.lock().limits = *limits;
        Some(Arc::clone(usage))
    }

    /// FLUSH USER_RESOURCES: all hours begin again.
    pub(crate) fn flush(&self) {
        self.used.lock().values().for_each(|usage| usage.hour.lock().began_us = 0);
    }

    /// FLUSH PRIVILEGES: nobody is blocked any more.
    pub(crate) fn unblock(&self) {
        self.wrong_passwords.lock().clear();
    }

    /// ALTER USER: the account is not blocked any more.
    pub(crate) fn unblock_one(&self, name: &AccountName) {
        self.wrong_passwords.lock().remove(name);
    }

    /// Somebody tried to log in; only names of accounts that are there come here.
    pub fn note_password(&self, name: &AccountName, is_right: bool) {
        let mut wrong = self.wrong_passwords.lock();
        match is_right {
            true => drop(wrong.remove(name)),
            false => *wrong.entry(name.clone()).or_default() += 1,
        }
    }

    /// Whether so many wrong passwords in a row were tried.
    pub fn is_blocked(&self, name: &AccountName, errors_max: u64) -> bool {
        self.wrong_passwords.lock().get(name).is_some_and(|wrong| *wrong >= errors_max)
    }
}

impl AccountUsage {
    fn new(limits: Limits) -> AccountUsage {
        let hour = Hour { limits, began_us: 0, counts: [0; 3] };
        AccountUsage { hour: Mutex::new(hour) }
    }

    /// Error 1226 when there was too much of it.
    fn count(&self, user: &str, now_us: u64, what: Use) -> SqlResult<()> {
        let mut hour = self.hour.lock();
        if now_us >= hour.began_us.saturating_add(HOUR_US) {
            (hour.began_us, hour.counts) = (now_us, [0; 3]);
        }
        let max = what.max(&hour.limits);
        let count = &mut hour.counts[what as usize];
        if max > 0 && *count >= max {
            let text =
                format!("User '{user}' has exceeded the '{}' resource (current value: {count})", what.name());
            return Err(SqlError::new(ErrorCode::UserLimitReached, text));
        }
        *count = count.saturating_add(1);
        Ok(())
    }
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
    pub(crate) fn password_changed(&self) {
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
    pub(crate) fn check_password(&self) -> SqlResult<()> {
        match self.must_change_password.get() {
            false => Ok(()),
            true => {
                let text = "You must SET PASSWORD before executing this statement";
                Err(SqlError::new(ErrorCode::MustChangePassword, text))
            }
        }
    }
}
