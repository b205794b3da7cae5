//! Helpers shared by the tests of the log.
#![allow(dead_code)] // each test uses a part

use std::path::Path;

use cohort_base::Lsn;
use cohort_log::{Log, LogError, LogOptions, Preallocation, RecordKind, Recovery, Span};
use cohort_vfs::{SharedFs, World};

/// Directory of the log.
pub const DIR: &str = "/log";
/// Small segments, so that records often cross borders.
pub const SEGMENT_BYTES: u64 = 16 << 10;

pub fn options() -> LogOptions {
    LogOptions {
        segment_bytes: SEGMENT_BYTES,
        segments_ahead: 1,
        segments_spare_max: 2,
        bytes_max: 1 << 20,
        record_bytes_max: 64 << 10,
        buffered: false,
        is_archived: false,
        preallocation: Preallocation::Inline,
    }
}

pub fn recovery(fs: &SharedFs) -> Result<Recovery, LogError> {
    Recovery::open(&World::sim(fs.clone(), 1), Path::new(DIR), options())
}

/// Opens the log, reads all payloads, and opens it for appending.
pub fn open(fs: &SharedFs) -> Result<(Log, Vec<Vec<u8>>), LogError> {
    let mut recovery = recovery(fs)?;
    let mut payloads = Vec::new();
    let mut end = recovery.checkpoint().0;
    while let Some(record) = recovery.next()? {
        assert_eq!(record.lsn, end, "records follow each other");
        end = record.end;
        payloads.push(record.payload.to_vec());
    }
    let log = recovery.finish()?;
    assert_eq!((log.appended(), log.durable_end()), (end, end));
    Ok((log, payloads))
}

/// Reserves space for a record and appends it.
pub fn append(log: &Log, payload: &[u8]) -> Result<Span, LogError> {
    let reservation = log.reserve(payload.len() as u64)?;
    let (a, b) = payload.split_at(payload.len() / 3);
    Ok(log.append(reservation, RecordKind(1), &[a, b]))
}

/// Returns a payload of this size that contains its number.
pub fn payload(number: u64, bytes: usize) -> Vec<u8> {
    let mut payload = vec![number as u8; bytes.max(8)];
    payload[..8].copy_from_slice(&number.to_le_bytes());
    payload
}

pub fn read_durable(log: &Log, from: Lsn) -> Result<Vec<Vec<u8>>, LogError> {
    let mut reader = log.read(from)?;
    let mut payloads = Vec::new();
    while let Some(record) = reader.next()? {
        payloads.push(record.payload.to_vec());
    }
    Ok(payloads)
}
