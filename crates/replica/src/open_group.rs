//! [`OpenGroup`]: the group that the applier is reading.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cohort_base::{DomainId, Gtid};
use cohort_binlog::EventHeader;
use cohort_binlog::event::{Event, GtidEvent};

use crate::progress::Reached;

/// The group being applied.
pub struct OpenGroup {
    pub gtid: Option<Gtid>,
    /// Already applied, so it is skipped.
    pub is_known: bool,
    /// Skipped by `sql_slave_skip_counter`.
    pub is_skipped: bool,
    /// Set while its events are collected for the worker pool.
    pub gathered: Option<Gathered>,
    /// Set once the worker pool has the group although its end was not read.
    pub handed: Option<Handed>,
}

/// An open group that the worker pool has.
pub struct Handed {
    /// The previous entry of `newest` for the domain.
    pub newest_before: Option<u64>,
    /// Set when its worker has rolled it back because its source is disconnected.
    pub is_undone: Arc<AtomicBool>,
}

/// A group being collected for the worker pool.
pub struct Gathered {
    pub domain: DomainId,
    /// Start of the group.
    pub start: Reached,
    pub header: EventHeader,
    pub gtid: Option<(GtidEvent, Gtid)>,
    pub passes_over: bool,
    pub events: Vec<(EventHeader, Event)>,
    pub bytes: usize,
    pub has_transaction: bool,
}

/// A larger group is read from the relay log by the worker that applies it.
pub const GATHERED_BYTES_MAX: usize = 1 << 20;
