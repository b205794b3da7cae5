//! Rejects weak new passwords: by `simple_password_check_*`, with the rules of MariaDB's plugin of that name,
//! and by a dictionary ([`cohort_session::WordList`]).
//!
//! A stored form (hash) cannot be checked, so `strict_password_validation` rejects it. Replicas accept stored
//! forms, because their source has checked the password.

use cohort_config::VarId;
use cohort_session::SessionState;
use cohort_types::{Level, SqlError, SqlResult, Warning};

/// The minimum contents of a password.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Policy {
    bytes: u64,
    digits: u64,
    /// Lower-case and upper-case letters, each.
    letters: u64,
    others: u64,
}

impl Policy {
    /// Returns `None` if there are no requirements.
    fn of(session: &SessionState) -> Option<Policy> {
        let number = |id| session.db.globals.uint(id);
        let policy = Policy {
            bytes: number(VarId::SimplePasswordCheckMinimalLength),
            digits: number(VarId::SimplePasswordCheckDigits),
            letters: number(VarId::SimplePasswordCheckLettersSameCase),
            others: number(VarId::SimplePasswordCheckOtherCharacters),
        };
        (policy != Policy { bytes: 0, digits: 0, letters: 0, others: 0 }).then_some(policy)
    }

    fn takes(&self, user: &str, password: &str) -> bool {
        let count = |is: fn(&u8) -> bool| password.bytes().filter(is).count() as u64;
        let (digits, small) = (count(u8::is_ascii_digit), count(u8::is_ascii_lowercase));
        let (large, all) = (count(u8::is_ascii_uppercase), password.len() as u64);
        let others = all - digits - small - large;
        // The user's own name is never accepted.
        password != user
            && all >= self.bytes
            && digits >= self.digits
            && small.min(large) >= self.letters
            && others >= self.others
    }
}

/// Returns error 1819 for a password that is too simple.
pub(super) fn check_password(session: &SessionState, user: &str, password: &str) -> SqlResult<()> {
    if session.identity.is_applier {
        return Ok(());
    }
    if let Some(words) = session.db.words.get()
        && let Some(objection) = words.objection(user, password)
    {
        let error = SqlError::password_objection(objection);
        session.statement.planning_warnings.borrow_mut().push(Warning { level: Level::Warning, error });
        return Err(refused("cracklib_password_check"));
    }
    match Policy::of(session).is_none_or(|policy| policy.takes(user, password)) {
        true => Ok(()),
        false => Err(refused("simple_password_check")),
    }
}

fn refused(by: &str) -> SqlError {
    SqlError::password_violates_policy(by)
}

/// Returns error 1290 for the stored form of a password, which cannot be checked.
pub(super) fn check_stored_form(session: &SessionState) -> SqlResult<()> {
    let is_strict = session.db.globals.flag(VarId::StrictPasswordValidation);
    let is_judged = session.db.words.get().is_some() || Policy::of(session).is_some();
    match is_strict && !session.identity.is_applier && is_judged {
        true => Err(SqlError::prevented_by_option("--strict-password-validation")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_holds_what_the_policy_asks_for() {
        let policy = Policy { bytes: 8, digits: 1, letters: 1, others: 1 };
        for (password, is_taken) in [
            ("Longer1!x", true),
            ("Short1!", false),
            ("longer1!x", false),
            ("LONGER1!X", false),
            ("Longer!!x", false),
            ("Longer11x", false),
            ("Ünger1Xy", true),
            ("User1234!", false),
            ("", false),
        ] {
            assert_eq!(policy.takes("User1234!", password), is_taken, "{password}");
        }
        let any = Policy { bytes: 0, digits: 0, letters: 0, others: 1 };
        assert!(any.takes("u", "!") && !any.takes("u", "abc"));
    }
}
