//! What accounts are bound to beyond their privileges: limits per hour, passwords that must be changed,
//! passwords tried in vain.
//!
//! A session of an account that is bound to nothing has no [`Restraint`], and its
//! statements cost nothing more. What was used counts for an account over all of its sessions, in an hour
//! that begins with the first use behind the last one.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use cohort_catalog::{AccountName, Limits};
use cohort_types::{ErrorCode, SqlError, SqlResult};
use parking_lot::Mutex;

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
pub(crate) enum Use {
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

/// What one session is bound to.
pub struct Restraint {
    pub(crate) must_change_password: Cell<bool>,
    pub(crate) usage: Option<Arc<AccountUsage>>,
}

impl AccountUsages {
    pub(crate) fn of(&self, name: &AccountName, limits: &Limits) -> Option<Arc<AccountUsage>> {
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
    pub fn flush(&self) {
        self.used.lock().values().for_each(|usage| usage.hour.lock().began_us = 0);
    }

    /// FLUSH PRIVILEGES: nobody is blocked any more.
    pub fn unblock(&self) {
        self.wrong_passwords.lock().clear();
    }

    /// ALTER USER: the account is not blocked any more.
    pub fn unblock_one(&self, name: &AccountName) {
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
    pub(crate) fn count(&self, user: &str, now_us: u64, what: Use) -> SqlResult<()> {
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
