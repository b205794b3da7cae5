//! Binlog files in a directory.
use cohort_base::BinlogPos;
use cohort_vfs::SharedFs;

use crate::{BinlogError, BinlogName, Chunk, GtidState};

/// How much is verified when the files are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyScope {
    /// The files from `synced_to` on.
    Tail,
    /// Every file of the index.
    All,
}

/// How to open.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// What to verify.
    pub verify: VerifyScope,
    /// Up to where the last checkpoint synced the files; damage before it is an error, behind it a torn tail.
    pub synced_to: BinlogPos,
}

/// How the last file ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// With ROTATE or STOP, and not marked as in use: the server stopped in order.
    Closed,
    /// With a whole event: the server did not stop in order, but nothing is torn.
    Open,
    /// With bytes that are no event; recovery rewrites or cuts them.
    Torn,
}

/// What the files held when they were opened.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Behind the last whole event; `None` without files.
    pub end: Option<BinlogPos>,
    /// After the last whole transaction before `end`.
    pub gtid_state: GtidState,
    /// How the last file ends.
    pub tail: Tail,
}

/// A line of SHOW BINARY LOGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// File number.
    pub file: u32,
    /// Name without directory.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

/// The files and their index.
pub struct BinlogFiles {}

impl BinlogFiles {
    /// Opens the files of this name; changes nothing.
    pub fn open(
        _fs: SharedFs,
        _name: BinlogName,
        _options: OpenOptions,
    ) -> Result<(BinlogFiles, Recovered), BinlogError> {
        todo!()
    }

    /// Puts a piece of the stream into its place, in stream order; idempotent. A chunk at offset 0 starts a file
    /// and closes the one before. Bytes may still be buffered afterwards.
    pub fn apply_chunk(&mut self, _pos: BinlogPos, _bytes: &[u8]) -> Result<(), BinlogError> {
        todo!()
    }

    /// End of recovery: cuts everything behind `end` (where the log ends), syncs, and reads what is there again.
    pub fn finish_recovery(&mut self, _end: Option<BinlogPos>) -> Result<Recovered, BinlogError> {
        todo!()
    }

    /// Behind the last byte written.
    pub fn end(&self) -> Option<BinlogPos> {
        todo!()
    }

    /// SHOW BINARY LOGS.
    pub fn sizes(&self) -> Result<Vec<FileSize>, BinlogError> {
        todo!()
    }

    /// PURGE BINARY LOGS TO: removes the files before `file`, but none at or behind `floor`.
    pub fn purge_to(&mut self, _file: u32, _floor: u32) -> Result<Vec<u32>, BinlogError> {
        todo!()
    }

    /// PURGE BINARY LOGS BEFORE: removes the leading files that were last written before `time` (seconds).
    pub fn purge_before(&mut self, _time: u32, _floor: u32) -> Result<Vec<u32>, BinlogError> {
        todo!()
    }

    /// Names of the files.
    pub fn name(&self) -> &BinlogName {
        todo!()
    }
}

#[allow(dead_code)]
fn unused(_: &Chunk) {}
