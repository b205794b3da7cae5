//! Destinations of backups.

use std::io;

use cohort_backup_format::Manifest;

/// Destination of a backup. An error of kind `WouldBlock` means that it has no room yet: nothing was stored,
/// and the caller calls again, after it has looked at KILL and at the space that the backup pins.
pub trait BackupSink {
    /// Stores bytes of a file. No byte is stored twice. Without bytes, the file exists nevertheless.
    fn write(&mut self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Completes the backup: gives each file its length, makes all files durable, and then the manifest.
    fn finish(&mut self, manifest: &Manifest) -> io::Result<()>;
}
