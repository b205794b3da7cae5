//! Limits of accounts beyond their privileges: uses per hour, passwords that must be changed, and failed
//! logins.
//!
//! A session whose account has no limits has no [`AccountLimits`], and its statements have no extra cost. Use
//! is counted per account over all of its sessions. An hour begins with the first use after the previous hour
//! ended.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use cohort_catalog::{AccountName, Limits};
use cohort_types::{SqlError, SqlResult};
use parking_lot::Mutex;

const HOUR_US: u64 = 3_600_000_000;

/// The use of all accounts that have limits. Lives as long as the server.
#[derive(Default)]
pub struct AccountUsages {
    used: Mutex<HashMap<AccountName, Arc<AccountUsage>>>,
    /// Consecutive failed logins with a wrong password.
    wrong_passwords: Mutex<HashMap<AccountName, u64>>,
}

/// The use of one account in its current hour.
pub(crate) struct AccountUsage {
    hour: Mutex<Hour>,
}

struct Hour {
    /// The limits as of the last login.
    limits: Limits,
    began_us: u64,
    /// Indexed by [`Use`].
    counts: [u32; 3],
}

/// A kind of use that has a limit per hour.
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

/// The restrictions of one session.
pub struct AccountLimits {
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

    /// Restarts all hours, for FLUSH USER_RESOURCES.
    pub fn flush(&self) {
        self.used.lock().values().for_each(|usage| usage.hour.lock().began_us = 0);
    }

    /// Unblocks all accounts, for FLUSH PRIVILEGES.
    pub fn unblock(&self) {
        self.wrong_passwords.lock().clear();
    }

    /// Unblocks an account, for ALTER USER.
    pub fn unblock_one(&self, name: &AccountName) {
        self.wrong_passwords.lock().remove(name);
    }

    /// Records the outcome of a password check. Call it only for existing accounts.
    pub fn note_password(&self, name: &AccountName, is_right: bool) {
        let mut wrong = self.wrong_passwords.lock();
        match is_right {
            true => drop(wrong.remove(name)),
            false => *wrong.entry(name.clone()).or_default() += 1,
        }
    }

    /// Returns whether at least `errors_max` wrong passwords were tried in a row.
    pub fn is_blocked(&self, name: &AccountName, errors_max: u64) -> bool {
        self.wrong_passwords.lock().get(name).is_some_and(|wrong| *wrong >= errors_max)
    }
}

impl AccountUsage {
    fn new(limits: Limits) -> AccountUsage {
        let hour = Hour { limits, began_us: 0, counts: [0; 3] };
        AccountUsage { hour: Mutex::new(hour) }
    }

    /// Counts a use. Error 1226 if the limit is exceeded.
    pub(crate) fn count(&self, user: &str, now_us: u64, what: Use) -> SqlResult<()> {
        let mut hour = self.hour.lock();
        if now_us >= hour.began_us.saturating_add(HOUR_US) {
            (hour.began_us, hour.counts) = (now_us, [0; 3]);
        }
        let max = what.max(&hour.limits);
        let count = &mut hour.counts[what as usize];
        if max > 0 && *count >= max {
            return Err(SqlError::resource_exceeded(user, what.name(), count));
        }
        *count = count.saturating_add(1);
        Ok(())
    }
}
