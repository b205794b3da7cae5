//! Failures by the caller's next step; each has an exit code.

use std::fmt;

pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command ended without its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Network, disk or server failed; the same command may succeed later.
    Failed(String),
    /// An object of the repository is missing or damaged.
    Damaged(String),
    /// A precondition does not hold. Nothing was changed.
    Refused(String),
    /// The key is missing or is that of another repository.
    Key(String),
    /// Another command uses the repository.
    Busy(String),
    /// A newer version of this program wrote the repository.
    Newer(String),
}

/// Exit code of a restore to a time that the archive does not reach.
pub const ENDS_EARLY: u8 = 8;
/// Exit codes with their meanings, for --help and the man page.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "success"),
    (1, "network, disk, repository or server failed; the same command may succeed later"),
    (2, "the command line is wrong"),
    (3, "an object of the repository is missing or damaged; `verify` lists all of them"),
    (4, "a precondition does not hold, such as an empty target directory; nothing was changed"),
    (5, "the key file is missing, unreadable, or of another repository"),
    (6, "another command uses the repository"),
    (7, "a newer version of cohort-backup wrote the repository"),
    (ENDS_EARLY, "restored, but the archive ends before the target: later transactions may be missing"),
];

impl Failure {
    /// Returns the exit code of the program.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::Damaged(_) => 3,
            Failure::Refused(_) => 4,
            Failure::Key(_) => 5,
            Failure::Busy(_) => 6,
            Failure::Newer(_) => 7,
        }
    }

    /// Returns the failure of an operation on a file of this machine.
    pub fn of_file(path: &std::path::Path, error: impl fmt::Display) -> Failure {
        Failure::Failed(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(text)
            | Failure::Damaged(text)
            | Failure::Refused(text)
            | Failure::Key(text)
            | Failure::Busy(text)
            | Failure::Newer(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}
