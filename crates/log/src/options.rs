//! Settings and counters of a log.

/// Method of preallocating segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preallocation {
    /// By a background thread that the log starts.
    Thread,
    /// By the caller that finds too little space; deterministic, for tests and simulations.
    Inline,
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Size of a segment file, a multiple of 4 KiB. Fixed when the log is created: an existing log keeps its
    /// own.
    pub segment_bytes: u64,
    /// Number of segments kept ready beyond the current one.
    pub segments_ahead: usize,
    /// Number of released segments kept for reuse; more are removed. If a checkpoint releases more, as many
    /// as it released are kept instead, because the log grew by that much since the previous checkpoint.
    pub segments_spare_max: usize,
    /// Write segments through the page cache; otherwise bypass it where the file system supports that.
    pub buffered: bool,
    /// Keep the part that is not in the archive yet ([`crate::Log::set_archived`]).
    pub is_archived: bool,
    /// Cap of the part of the log that recovery needs; beyond it [`crate::Log::reserve`] returns `Full(Cap)`.
    pub bytes_max: u64,
    /// Maximum payload of one record.
    pub record_bytes_max: u64,
    /// How segments are preallocated.
    pub preallocation: Preallocation,
}

impl LogOptions {
    pub(crate) fn check(&self) {
        assert!(
            self.segment_bytes.is_multiple_of(4096) && self.segment_bytes >= 8192,
            "segment_bytes is a multiple of 4 KiB, and room for more than the header"
        );
        assert!(self.record_bytes_max <= 1 << 30, "a record's length has 32 bits");
    }
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: 64 << 20,
            segments_ahead: 1,
            segments_spare_max: 8,
            buffered: false,
            is_archived: false,
            bytes_max: 4 << 30,
            record_bytes_max: 64 << 20,
            preallocation: Preallocation::Thread,
        }
    }
}

/// Counters since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Flushes that wrote something.
    pub flushes: u64,
    /// `sync_data` calls on the commit path (two for a flush across a segment border).
    pub syncs: u64,
    /// Records appended.
    pub records: u64,
    /// Bytes of records appended, including headers and padding.
    pub record_bytes: u64,
    /// Bytes written by flushes, each rounded up to whole 4 KiB blocks.
    pub written_bytes: u64,
    /// Total time of `sync_data` in all flushes.
    pub sync_ns_total: u64,
    /// Time of the slowest flush's `sync_data`.
    pub sync_ns_max: u64,
    /// Time of the last flush's `sync_data`.
    pub sync_ns_last: u64,
    /// Segments created.
    pub segments_created: u64,
    /// Segments reused.
    pub segments_recycled: u64,
    /// Number of times that `reserve` had to wait for a segment.
    pub reserve_waits: u64,
    /// Bytes that are kept only for backups.
    pub pinned_bytes: u64,
}
