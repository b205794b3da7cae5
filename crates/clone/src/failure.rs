//! Failures by the caller's next step.

use std::fmt;

use cohort_backup_format::ManifestError;

pub type Result<T> = std::result::Result<T, Failure>;

/// Why a copy of a server, or a command about backups, ended without its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Network, disk or server failed; the same command may succeed later.
    Failed(String),
    /// An object or file is missing or damaged.
    Damaged(String),
    /// A precondition does not hold. Nothing was changed.
    Refused(String),
    /// The key is missing or is that of another repository.
    Key(String),
    /// Another command uses the repository.
    Busy(String),
    /// A newer version wrote the repository or the backup.
    Newer(String),
}

impl Failure {
    /// Returns the failure of an operation on a file of this machine.
    pub fn of_file(path: &std::path::Path, error: impl fmt::Display) -> Failure {
        Failure::Failed(format!("{}: {error}", path.display()))
    }

    /// Returns the failure of a manifest.
    pub fn of_manifest(error: ManifestError) -> Failure {
        match error {
            ManifestError::Newer { .. } => Failure::Newer(error.to_string()),
            ManifestError::Damaged(..) => Failure::Damaged(error.to_string()),
            ManifestError::Io(..) => Failure::Failed(error.to_string()),
            ManifestError::Missing(..) | ManifestError::Unfinished(..) => Failure::Refused(error.to_string()),
        }
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
