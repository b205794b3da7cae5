//! Files and GTIDs that COMMIT records name, and names of files.

use cohort_base::{CommitSeq, DomainId, Gtid, Reader, Truncated};
use cohort_binlog::event::{EventHeader, EventType, HEADER_LEN, MAGIC};
use cohort_binlog::{Content, SpillDir, StreamOut};
use cohort_log::Log;

use crate::RecoveryError;
use crate::record::{self, Commit, RedoRef};
use crate::recovery_error::unreadable;

/// Bytes of a file that are copied at a time.
pub const PIECE_BYTES: usize = 1 << 20;

/// A spill file that a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    pub name: String,
    /// CRC-32C, if the record has it.
    pub crc: Option<u32>,
}

/// Returns the spill files that a record names.
pub fn named_files(commit: &Commit<'_>) -> Vec<NamedFile> {
    let redo = commit.redo.iter().filter_map(|(_, redo)| match redo {
        RedoRef::Spilled(file) => Some(NamedFile { name: file.name.clone(), crc: Some(file.crc) }),
        RedoRef::Inline(_) => None,
    });
    let events = commit.chunks.iter().filter_map(|chunk| match &chunk.content {
        Content::Spilled(file) => Some(NamedFile { name: file.name.clone(), crc: None }),
        Content::Inline => None,
    });
    redo.chain(events).collect()
}

/// Returns the GTID of the record, whose events begin with a GTID event if it has any.
pub fn gtid_of(commit: &Commit<'_>) -> Option<Gtid> {
    if commit.chunks.first()?.content != Content::Inline {
        return None;
    }
    let header = EventHeader::decode(commit.binlog).ok()?;
    if header.kind != EventType::GTID {
        return None;
    }
    // The body begins with the sequence number and the domain.
    let mut body = Reader::new(commit.binlog.get(HEADER_LEN..)?);
    let (seq_no, domain) = (body.u64().ok()?, DomainId(body.u32().ok()?));
    Some(Gtid { domain, server: header.server_id, seq_no })
}

/// Returns the base name of the binlog that a BINLOG record begins a file of; `None` if it begins none. The
/// head of a file has it in its BINLOG_CHECKPOINT event.
pub fn binlog_base_of(payload: &[u8]) -> Result<Option<String>, Truncated> {
    let mut reader = Reader::new(payload);
    let chunks = StreamOut::decode_chunks(&mut reader)?;
    let mut bytes = reader.rest();
    for chunk in chunks {
        if chunk.content != Content::Inline {
            continue;
        }
        let (own, rest) = bytes.split_at_checked(chunk.len as usize).ok_or(Truncated)?;
        if chunk.pos.offset == 0 {
            return checkpoint_base(own.get(MAGIC.len()..).ok_or(Truncated)?);
        }
        bytes = rest;
    }
    Ok(None)
}

/// Returns the base name in the BINLOG_CHECKPOINT event among these events.
fn checkpoint_base(mut events: &[u8]) -> Result<Option<String>, Truncated> {
    while !events.is_empty() {
        let header = EventHeader::decode(events).map_err(|_| Truncated)?;
        let (event, rest) = events.split_at_checked(header.event_len as usize).ok_or(Truncated)?;
        if header.kind == EventType::BINLOG_CHECKPOINT {
            let mut body = Reader::new(&event[HEADER_LEN..]);
            let len = body.u32()?;
            let name = String::from_utf8_lossy(body.bytes(len as usize)?).into_owned();
            return Ok(name.rsplit_once('.').map(|(base, _)| base.to_owned()));
        }
        events = rest;
    }
    Ok(None)
}

/// Prepares the spill directory of a server with an archive: names are not used again, and the files that are
/// only needed for the archive are added to `spilled`.
pub(crate) fn prepare_spill(log: &Log, spill: &SpillDir, spilled: &mut Vec<(CommitSeq, String)>) {
    spill.keep_for_archive(log.generation().0);
    let Some(from) = log.archived().filter(|from| *from < log.retained()) else { return };
    let mut read = || -> Result<(), RecoveryError> {
        let mut reader = log.read(from)?;
        while let Some(record) = reader.next()?.filter(|record| record.lsn < log.retained()) {
            if record.kind == record::COMMIT {
                let failed = |_| unreadable(record.lsn);
                let commit = record::decode_commit(record.payload).map_err(failed)?;
                spilled.extend(named_files(&commit).into_iter().map(|file| (commit.seq, file.name)));
            }
        }
        Ok(())
    };
    if let Err(error) = read() {
        log::error!("The part of the log that is not archived yet cannot be read: {error}");
    }
}
