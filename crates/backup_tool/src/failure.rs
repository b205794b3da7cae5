//! Exit codes of failures.

pub use cohort_clone::failure::{Failure, Result};

/// Exit code of a damaged repository.
pub const DAMAGED: u8 = 3;
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

/// Returns the exit code of the program.
pub fn exit_code(failure: &Failure) -> u8 {
    match failure {
        Failure::Failed(_) => 1,
        Failure::Damaged(_) => DAMAGED,
        Failure::Refused(_) => 4,
        Failure::Key(_) => 5,
        Failure::Busy(_) => 6,
        Failure::Newer(_) => 7,
    }
}
