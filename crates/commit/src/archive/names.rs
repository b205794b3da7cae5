//! What a COMMIT record says about files and GTIDs.

use cohort_base::{DomainId, Gtid, Reader};
use cohort_binlog::Content;
use cohort_binlog::event::{EventHeader, EventType, HEADER_LEN};

use crate::record::{Commit, RedoRef};

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
