//! Settings of the archive of the log.

use std::time::Duration;

/// Settings of the archive.
#[derive(Clone, Debug)]
pub struct ArchiveSettings {
    /// `archive_to`: the repository.
    pub to: String,
    pub server_uuid: String,
    /// `archive_backlog_max`: bytes of log that are kept for a repository that does not take them.
    pub backlog_bytes_max: u64,
    /// `archive_timeout`: age at which a small range is sent.
    pub timeout: Duration,
}
