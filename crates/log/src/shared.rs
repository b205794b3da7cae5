//! The state that all handles of a log share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cohort_vfs::World;
use parking_lot::Mutex;

use crate::control::Control;
use crate::record::Header;
use crate::scan::Generations;
use crate::segments::Segments;
use crate::space::Space;
use crate::tail::{Batch, Tail};
use crate::{LogError, LogOptions, RecordKind};

/// State shared by all handles of a log.
pub(crate) struct Shared {
    pub world: World,
    pub options: LogOptions,
    pub segments: Arc<Segments>,
    pub generations: Generations,
    pub space: Space,
    /// End of the durable part. Written by the holder of `flusher`.
    pub hardened: AtomicU64,
    /// Copy of the tail's end; written under the tail lock.
    pub appended: AtomicU64,
    pub tail: Mutex<Tail>,
    pub flusher: Mutex<Flusher>,
    pub control: Mutex<Control>,
    pub poison: OnceLock<Arc<str>>,
}

/// State of the flush stage; the thread that holds its lock flushes.
#[derive(Default)]
pub struct Flusher {
    pub spare: Vec<u8>,
    pub flushes: u64,
    pub syncs: u64,
    pub written_bytes: u64,
    pub sync_ns_total: u64,
    pub sync_ns_max: u64,
    pub sync_ns_last: u64,
}

impl Shared {
    pub(crate) fn check_poison(&self) -> Result<(), LogError> {
        match self.poison.get() {
            None => Ok(()),
            Some(cause) => Err(LogError::Poisoned { cause: cause.clone() }),
        }
    }

    /// Stops the log. Only the first cause is kept.
    pub(crate) fn poison(&self, cause: &dyn std::fmt::Display) -> LogError {
        let cause = self.poison.get_or_init(|| cause.to_string().into()).clone();
        LogError::Poisoned { cause }
    }

    pub fn header(&self, lsn: u64, kind: RecordKind, payload_bytes: u64, payload_crc: u32) -> Header {
        let generation = self.generations.current;
        let mark = self.hardened.load(Ordering::Acquire);
        Header { payload_bytes: payload_bytes as u32, lsn, payload_crc, generation, kind, mark }
    }

    pub fn salt(&self) -> u32 {
        self.segments.geometry.salt
    }
}

impl Flusher {
    pub fn write(&mut self, shared: &Shared, batch: &Batch) -> Result<(), LogError> {
        let clock = &shared.world.clock;
        let mut syncs = 0;
        let mut sync_ns = 0;
        shared.segments.write_and_sync(&batch.bytes, batch.base, |file| {
            let before = clock.monotonic_ns();
            file.sync_data()?;
            sync_ns += clock.monotonic_ns() - before;
            syncs += 1;
            Ok(())
        })?;
        self.flushes += 1;
        self.syncs += syncs;
        self.written_bytes += batch.bytes.len() as u64;
        self.sync_ns_total += sync_ns;
        self.sync_ns_max = self.sync_ns_max.max(sync_ns);
        self.sync_ns_last = sync_ns;
        Ok(())
    }
}
