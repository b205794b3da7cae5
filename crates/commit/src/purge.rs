//! Removal of old binlog files, by statement, by age and by size.
//!
//! A purge never removes a file that is in use: the file that is being written, a file that a replica reads
//! ([`cohort_binlog::Pins`]), or a file that recovery would read (I7). So it runs a checkpoint before the
//! removal, unless the last checkpoint has released the files already.
//!
//! # Lack of disk space
//! A purge frees space, so it must not need any. It does not wait for bytes that cannot be written. If its
//! checkpoint fails, it still removes the files that the previous checkpoint has released.

use cohort_binlog::{BinlogError, BinlogFiles};

use crate::PurgeError;
use crate::coordinator::Coordinator;

/// A selection of files to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeRule {
    /// All files before this one.
    Before(u32),
    /// The files that were closed before this time, in seconds since 1970 UTC.
    ClosedBefore(u32),
    /// The oldest files, until at most this number of bytes is left.
    TotalBytes(u64),
}

/// Result of a purge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Numbers of the removed files.
    pub files: Vec<u32>,
    /// A reader that kept selected files from being removed.
    pub held_back: Option<HeldBack>,
}

/// A reader that keeps files from being purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// Name of the file that it reads.
    pub file: String,
    /// Name of the reader.
    pub by: String,
}

impl Coordinator {
    /// Removes the selected binlog files that are not in use. Does nothing with the binlog off.
    pub fn purge_binlog(&self, rule: PurgeRule) -> Result<Purged, PurgeError> {
        let Some((position, _)) = self.binlog_status() else { return Ok(Purged::default()) };
        let Some(wanted) = self.purge_end(rule)? else { return Ok(Purged::default()) };
        let mut purged = self.purge_released(wanted, position.file)?;
        // Where the files decide and wait for space, a checkpoint would wait too.
        let is_stuck = || self.env().logs.is_decided_by_binlog() && self.is_without_binlog_space();
        if self.checkpointer.binlog_from() < wanted && !is_stuck() {
            let done = self.checkpoint();
            let more = self.purge_released(wanted, position.file)?;
            purged.files.extend(more.files);
            purged.held_back = more.held_back;
            if let (Err(error), true) = (done, purged.files.is_empty()) {
                return Err(PurgeError::Checkpoint(error));
            }
        }
        Ok(purged)
    }

    /// Removes the files before `wanted`, except the one being written and those that recovery would read.
    fn purge_released(&self, wanted: u32, written: u32) -> Result<Purged, PurgeError> {
        let floor = self.checkpointer.binlog_from().min(written);
        let purge = |files: &mut BinlogFiles| {
            // A reader that starts after this check pins only files that stay.
            let reader = files.pins().oldest_reader().filter(|(file, _)| *file < wanted);
            let gone = files.purge_to(wanted, floor)?;
            let held_back = reader.map(|(file, by)| HeldBack { file: files.name().file(file), by });
            Ok(Purged { files: gone, held_back })
        };
        self.with_written_files(purge).unwrap_or(Ok(Purged::default()))
    }

    fn is_without_binlog_space(&self) -> bool {
        self.env().binlog.as_ref().is_some_and(|binlog| binlog.files.is_without_space())
    }

    /// Returns the name of the first file that the rule would remove. Returns `None` if it would remove none.
    pub fn first_to_purge(&self, rule: PurgeRule) -> Result<Option<String>, PurgeError> {
        if self.purge_end(rule)?.is_none() {
            return Ok(None);
        }
        let name = |files: &mut BinlogFiles| files.numbers().first().map(|&first| files.name().file(first));
        Ok(self.with_written_files(name).flatten())
    }

    /// Returns the first file that the rule keeps. Returns `None` if it keeps all files.
    fn purge_end(&self, rule: PurgeRule) -> Result<Option<u32>, PurgeError> {
        let Some((position, _)) = self.binlog_status() else { return Ok(None) };
        let end = |files: &mut BinlogFiles| {
            let wanted = keep_from(files, rule)?.min(position.file);
            Ok(files.numbers().first().is_some_and(|&first| first < wanted).then_some(wanted))
        };
        self.with_written_files(end).unwrap_or(Ok(None))
    }
}

/// Returns the first file that the rule keeps.
fn keep_from(files: &mut BinlogFiles, rule: PurgeRule) -> Result<u32, BinlogError> {
    match rule {
        PurgeRule::Before(file) => Ok(file),
        PurgeRule::ClosedBefore(time) => files.first_closed_at(time),
        PurgeRule::TotalBytes(bytes_max) => {
            let sizes = files.sizes()?;
            let mut bytes: u64 = sizes.iter().map(|size| size.bytes).sum();
            for size in &sizes {
                if bytes <= bytes_max {
                    return Ok(size.file);
                }
                bytes -= size.bytes;
            }
            Ok(files.next_number())
        }
    }
}
