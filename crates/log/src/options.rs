//! Sizes and limits, and what the log counts.

/// How segments are made ready ahead of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preallocation {
    /// By a background thread that the log starts.
    Thread,
    /// By the caller that finds too little room; deterministic, for tests and simulations.
    Inline,
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Size of a segment file, a multiple of 4 KiB. Fixed when the log is made: an existing log keeps its
    /// own.
    pub segment_bytes: u64,
    /// Segments kept ready beyond the one being written.
    pub segments_ahead: usize,
    /// Released segments kept for reuse, if the checkpoint that released them did not release more: then as
    /// many as it released, which is what the log grew by since the one before. More are removed.
    pub segments_spare_max: usize,
    /// Whether segments are written through the page cache; else past it, where the file system does that.
    pub buffered: bool,
    /// Cap of the unreleased part of the log; [`crate::Log::reserve`] answers `Full(Cap)` beyond.
    pub bytes_max: u64,
    /// Largest payload of one record.
    pub record_bytes_max: u64,
    /// Who makes segments ready.
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
    /// Bytes of records appended, headers and padding included.
    pub record_bytes: u64,
    /// Bytes written by flushes; each rounded up to whole 4 KiB blocks.
    pub written_bytes: u64,
    /// Time spent in `sync_data`, all flushes together.
    pub sync_ns_total: u64,
    /// The slowest `sync_data`.
    pub sync_ns_max: u64,
    /// The last `sync_data`.
    pub sync_ns_last: u64,
    /// Segments made from nothing.
    pub segments_created: u64,
    /// Segments reused.
    pub segments_recycled: u64,
    /// Times that `reserve` had to wait for a segment.
    pub reserve_waits: u64,
}
