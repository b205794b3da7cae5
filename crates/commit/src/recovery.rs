//! Crash recovery with one log: brings every participant and the binlog to the state that the log records.
//!
//! The log alone decides (I2): a transaction is committed if its record in the log is complete. If each
//! engine has a log of its own, the binlog decides instead (`separate_recovery.rs`).
//!
//! # Outline
//! ```text
//! check_durable():   is every participant durable up to the LSN that the log's checkpoint has for it?
//! cut_unreleased():  only with `init_rpl_role=SLAVE`, after a crash: read the log, find the first
//!                      transaction to cut, and treat its position as the end of the log
//! Pass::run():       read the log from its checkpoint to its end; for each record
//!                      its redo         -> Replay: one thread passes it to the participants
//!                      its binlog bytes -> Completion: another thread completes the binlog's files
//! check_ends():      refuse if a participant or the binlog is ahead of the log
//! finish():          wait for the replay; truncate the binlog's files to the position where the log ends
//! ```
//!
//! # The table
//! For each case: what the log says, what recovery finds in a participant or in the binlog's files, how the
//! case arises, and what recovery does.
//!
//! | label | contents of the log | contents of the participant or file | cause | action |
//! |---|---|---|---|---|
//! | [`Row::Replay`] | a complete record | an engine that is not durable up to it | crash after the flush, before the next checkpoint | replay |
//! | [`Row::Skip`] | a complete record | an engine durable beyond it | crash between an engine's checkpoint and the log's | nothing |
//! | [`Row::Complete`] | binlog bytes | the file ends before them or is torn in them | crash before the binlog writer wrote or synced | write them |
//! | [`Row::Restarted`] | the checkpoint has the reset mark of the binlog | some or all files from before the reset | crash in RESET MASTER | remove them |
//! | [`Row::Present`] | binlog bytes | the file holds bytes there | crash after the binlog writer wrote | compare; rewrite bytes that differ |
//! | [`Row::Cut`] | nothing, or a torn record | no trace of it anywhere (I3) | crash before the flush | the log cuts its tail; no client got an OK |
//! | [`Row::CutUnreleased`] | complete COMMIT records without a later RELEASED record | binlog files may hold them, no engine does (a checkpoint waits for the gate) | crash before a replica acknowledged them, or shortly after, then a start with `init_rpl_role=SLAVE` | cut from log and files, not replayed; those for which a client got an OK are on a replica |
//! | [`Row::Unknown`] | redo of a participant, or a record that does not decode | this server does not have the participant, or does not know the record | data directory of another build | refuse |
//! | [`Row::EngineBehind`] | the checkpoint has the LSN up to which a participant was durable | it is durable up to an earlier LSN, or not at all | its files were removed, cut or replaced (catalog, an engine's folder, RocksDB's MANIFEST) | refuse |
//! | [`Row::EngineAhead`] | no record at that position | an engine durable beyond the end | log files lost or replaced | refuse |
//! | [`Row::BinlogAhead`] | no record at that position, and recovery has cut nothing | the file holds whole events beyond the end of the log | log files lost or replaced | refuse |
//! | [`Row::BinlogOff`] | binlog bytes | the binlog is off, or has another base name | started with other options after a crash | refuse |
//! | [`Row::BinlogFileLost`] | the checkpoint has the position up to which the binlog is synced | the index names a file up to that position that is missing, or does not name the file of that position | removed by hand | refuse |
//! | [`Row::IndexLost`] | the checkpoint has the position up to which the binlog is synced | there is no index | removed by hand | refuse |
//! | [`Row::SpillLost`] | a reference to a spill file | no such file, or another one | file removed by hand | refuse |
//!
//! The other labels of [`Row`] belong to the opening of the logs (`open_logs.rs`) and to recovery with
//! separate logs.
//!
//! # On failure
//! A refusal gives the remedy, and the file if there is one. It leaves the log, the checkpoints of the
//! engines, and the spill files as they are, so that a later start can succeed. Replayed redo stays in memory
//! until the next checkpoint. The log is cut only when recovery has finished, also at a torn record. Only the
//! binlog's files may have changed: they may have received bytes that the log holds for them, and an
//! interrupted RESET MASTER may be completed. B-tree indexes that the catalog does not name are dropped only
//! after recovery.
//!
//! Bad checksums in the log, the engines and the binlog's files are detected and refused by the code that
//! reads them.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{BinlogPos, CommitSeq, Lsn, ParticipantId, Reader, Xid};
use cohort_binlog::{BinlogError, BinlogFiles, Chunk, Content, GtidState, SpillDir, StreamOut};
use cohort_engine::{Participant, Redo};
use cohort_log::{Opened, Record, Recovery};
use cohort_vfs::{OpenMode, SharedFs};

use crate::completion::{Completion, FilesFound};
use crate::options::Unreleased;
use crate::record::{self, Checkpoint, RedoRef};
use crate::recovery_error::{refused, unreadable};
use crate::replay::Replay;
use crate::request::SpilledRedo;
use crate::{RecoveryError, Row};

/// Results of recovery.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    pub last_seq: CommitSeq,
    pub next_xid: Xid,
    /// Base name of the binlog at the last checkpoint; empty with the binlog off, or in a new data directory.
    pub binlog_base: String,
    /// Position up to which the last checkpoint had synced the binlog's files.
    pub binlog_synced: BinlogPos,
    /// The GTID state after the last transaction of the binlog.
    pub gtids: GtidState,
    /// Number of the binlog file to start with.
    pub next_binlog_file: u32,
    /// A crash interrupted RESET MASTER, and recovery has removed the files.
    pub is_binlog_restarted: bool,
    /// Number of COMMIT records read, of redos replayed and skipped, and of binlog bytes processed.
    pub commits: u64,
    pub replayed: u64,
    pub skipped: u64,
    /// Number of transactions that were cut because no replica had them.
    pub cut: u64,
    /// Number of transactions that some logs hold and that are not decided.
    pub undecided: u64,
    pub binlog_bytes: u64,
    /// Spill files that records of the log refer to, each with the CommitSeq of its record. They are kept
    /// until a checkpoint covers the record (I7).
    pub spilled: Vec<(CommitSeq, String)>,
    /// Newest TIME record, in microseconds since 1970; 0 if there is none.
    pub time_us: u64,
    /// Bytes of log read.
    pub log_bytes: u64,
    /// Duration of recovery in nanoseconds, from opening the logs on.
    pub ns: u64,
    /// The log's control file and the offset of a copy in it that was torn or damaged, and was repaired from
    /// the other copy.
    pub mended_copy: Option<(PathBuf, u64)>,
}

impl Recovered {
    /// Keeps the files of spilled events that a record names.
    pub(crate) fn names_events(&mut self, spill: &SpillDir, commit: &record::Commit<'_>) {
        for chunk in &commit.chunks {
            if let Content::Spilled(spilled) = &chunk.content {
                self.names_file(spill, commit.seq, &spilled.name);
            }
        }
    }

    /// Notes the time of a TIME record.
    pub(crate) fn note_time(&mut self, record: &Record<'_>) -> Result<(), RecoveryError> {
        let time_us = record::decode_time(record.payload).map_err(|_| unreadable(record.lsn))?;
        self.time_us = self.time_us.max(time_us);
        Ok(())
    }

    fn names_file(&mut self, spill: &SpillDir, seq: CommitSeq, name: &str) {
        spill.skip_to(name);
        self.spilled.push((seq, name.to_owned()));
    }
}

/// The inputs of recovery.
pub struct Scene<'a> {
    pub fs: &'a SharedFs,
    pub spill_dir: &'a Path,
    pub spill: &'a SpillDir,
    pub participants: &'a [Arc<dyn Participant>],
}

/// Function that opens the binlog's files at the position of the checkpoint.
pub type OpenBinlog<'a> =
    &'a (dyn Fn(BinlogPos) -> Result<(BinlogFiles, cohort_binlog::Recovered), BinlogError> + Sync);

/// Operations on the binlog's files that recovery may use.
pub struct BinlogOnDisk<'a> {
    pub open: OpenBinlog<'a>,
    /// Removes all files.
    pub remove_all: &'a (dyn Fn() -> Result<(), BinlogError> + Sync),
}

struct Pass<'a, 'scope> {
    scene: &'a Scene<'a>,
    replay: Replay<'scope>,
    completion: Completion<'scope>,
    /// Binlog bytes in the log belong to the files of this server.
    is_binlog_here: bool,
    found: Recovered,
    checkpoint: &'a Checkpoint,
    /// End of the binlog according to the log.
    binlog_end: Option<BinlogPos>,
    /// Number of the first binlog file after a reset that was interrupted.
    restart: Option<NonZeroU32>,
}

/// Reads the log to its end and brings all participants and the binlog to the same state.
pub fn recover(
    log: &mut Recovery,
    scene: &Scene<'_>,
    on_disk: Option<BinlogOnDisk<'_>>,
    binlog_base: &str,
    unreleased: Unreleased,
) -> Result<(Recovered, Option<BinlogFiles>), RecoveryError> {
    let (start, payload) = log.checkpoint();
    let checkpoint = Checkpoint::decode(payload).map_err(|_| unreadable(start))?;
    check_durable(start, &checkpoint, scene.participants)?;
    let cut = match unreleased {
        Unreleased::Cut if log.opened() == Opened::AfterCrash => {
            cut_unreleased(log, scene, checkpoint.last_seq)?
        }
        _ => 0,
    };
    let synced = checkpoint.binlog_synced;
    let same_name = checkpoint.binlog_base.is_empty() || checkpoint.binlog_base == binlog_base;
    let is_binlog_here = on_disk.is_some() && same_name;
    let found = Recovered {
        last_seq: checkpoint.last_seq,
        next_xid: checkpoint.next_xid,
        binlog_base: checkpoint.binlog_base.clone(),
        binlog_synced: synced,
        cut,
        ..Recovered::default()
    };
    let open = || open_binlog(&checkpoint, on_disk, binlog_base, false);
    std::thread::scope(|scope| {
        let pass = Pass {
            scene,
            replay: Replay::start(scope, scene.participants),
            completion: Completion::start(scope, open, scene.spill),
            is_binlog_here,
            found,
            checkpoint: &checkpoint,
            binlog_end: (same_name && synced.file > 0).then_some(synced),
            restart: checkpoint.binlog_restart,
        };
        pass.run(log, start)
    })
}

/// Opens the binlog's files at the position of the checkpoint, and completes a RESET MASTER that a crash
/// interrupted. `is_first` means that the files decide and no start has completed yet; files without a whole
/// head are then left over from an interrupted start.
pub(crate) fn open_binlog(
    checkpoint: &Checkpoint,
    on_disk: Option<BinlogOnDisk<'_>>,
    base: &str,
    is_first: bool,
) -> Result<FilesFound, RecoveryError> {
    let is_restarted = checkpoint.binlog_restart.is_some();
    let is_here = on_disk.is_some() && checkpoint.binlog_base == base;
    if is_restarted && !is_here {
        let what = format!("RESET MASTER has to remove the files of binlog '{}'", checkpoint.binlog_base);
        return Err(refused(Row::BinlogOff, what));
    }
    let same_name = checkpoint.binlog_base.is_empty() || checkpoint.binlog_base == base;
    let Some(binlog) = on_disk else { return Ok(None) };
    if is_restarted {
        (binlog.remove_all)()?;
    }
    let synced = if same_name { checkpoint.binlog_synced } else { BinlogPos::default() };
    let opened = (binlog.open)(synced).map_err(lost_file)?;
    if is_first && opened.1.end.is_none() {
        (binlog.remove_all)()?;
        return Ok(Some((binlog.open)(synced).map_err(lost_file)?));
    }
    Ok(Some(opened))
}

/// Row `CutUnreleased`: ends the log before the first transaction that had not passed the publish gate, as
/// far as the log shows. Transactions of the last moments whose release the log does not show are cut too; a
/// replica has them. Returns the number of transactions cut.
fn cut_unreleased(log: &mut Recovery, scene: &Scene<'_>, from: CommitSeq) -> Result<u64, RecoveryError> {
    let mut released = from;
    // Everything that a checkpoint made durable had passed the gate.
    let durable = scene.participants.iter().map(|p| p.durable_lsn()).max().unwrap_or_default();
    let mut held: VecDeque<(CommitSeq, Lsn)> = VecDeque::new();
    while let Some(r) = log.next()? {
        match r.kind {
            record::COMMIT => {
                let commit = record::decode_commit(r.payload).map_err(|_| unreadable(r.lsn))?;
                held.push_back((commit.seq, r.lsn));
                released = released.max(commit.released);
            }
            record::RELEASED => {
                released = released.max(record::decode_seq(r.payload).map_err(|_| unreadable(r.lsn))?);
            }
            _ => {}
        }
        while held.front().is_some_and(|(seq, lsn)| *seq <= released || *lsn < durable) {
            held.pop_front();
        }
    }
    match held.front() {
        Some((_, lsn)) => log.cut_at(*lsn),
        None => log.rewind(),
    }
    Ok(held.len() as u64)
}

/// Highest participant for which checkpoints of version 1 were written: the catalog and RocksDB.
const LAST_OF_VERSION_1: ParticipantId = ParticipantId(1);

/// Row `EngineBehind`: checks that each participant is still durable up to the LSN of the checkpoint, because
/// the log below has been released.
pub(crate) fn check_durable(
    start: Lsn,
    checkpoint: &Checkpoint,
    participants: &[Arc<dyn Participant>],
) -> Result<(), RecoveryError> {
    for participant in participants {
        let known = checkpoint.durable.iter().find(|(id, _)| *id == participant.id());
        let expected = match known {
            Some((_, lsn)) => *lsn,
            // A checkpoint of version 1 only shows that the participants of that time were checkpointed.
            None if checkpoint.durable.is_empty() && participant.id() <= LAST_OF_VERSION_1 => {
                start.min(Lsn(1))
            }
            // An engine that this data directory did not have before.
            None => Lsn(0),
        };
        let durable = participant.durable_lsn();
        if durable < expected {
            let place = participant.place();
            let what = format!("{place} is durable up to LSN {durable}, but was up to LSN {expected} before");
            return Err(refused(Row::EngineBehind, what));
        }
    }
    Ok(())
}

/// Converts an error to the rows `BinlogFileLost` and `IndexLost`.
pub(crate) fn lost_file(error: BinlogError) -> RecoveryError {
    match &error {
        BinlogError::FileMissing { .. } => refused(Row::BinlogFileLost, error.to_string()),
        BinlogError::IndexMissing { .. } => refused(Row::IndexLost, error.to_string()),
        _ => error.into(),
    }
}

impl Pass<'_, '_> {
    /// Reads the log from `start` to its end.
    fn run(
        mut self,
        log: &mut Recovery,
        start: Lsn,
    ) -> Result<(Recovered, Option<BinlogFiles>), RecoveryError> {
        let mut end = start;
        while let Some(r) = log.next()? {
            end = r.end;
            match r.kind {
                record::COMMIT => {
                    let commit = record::decode_commit(r.payload).map_err(|_| unreadable(r.lsn))?;
                    self.commit(r.lsn, &commit)?;
                }
                record::BINLOG => {
                    let mut reader = Reader::new(r.payload);
                    let chunks = StreamOut::decode_chunks(&mut reader).map_err(|_| unreadable(r.lsn))?;
                    self.chunks((r.lsn, self.found.last_seq), &chunks, reader.rest())?;
                }
                record::RELEASED => {}
                record::TIME => self.found.note_time(&r)?,
                other => {
                    return Err(refused(
                        Row::Unknown,
                        format!("log record kind {} at LSN {}", other.0, r.lsn),
                    ));
                }
            }
        }
        self.found.log_bytes = end.0 - start.0;
        let is_new = log.opened() == Opened::Created;
        let files = self.completion.finish()?;
        let on_disk = files.as_ref().and_then(|(_, found)| found.end);
        self.check_ends(end, on_disk, is_new)?;
        self.finish(files)
    }

    fn commit(&mut self, lsn: Lsn, commit: &record::Commit<'_>) -> Result<(), RecoveryError> {
        assert!(
            commit.seq > self.found.last_seq,
            "CommitSeqs ascend in the log (I1): {} at LSN {lsn}",
            commit.seq
        );
        let place = (lsn, commit.seq);
        for (id, redo) in &commit.redo {
            replay_redo(self.scene, &mut self.found, &mut self.replay, place, *id, redo)?;
        }
        self.chunks(place, &commit.chunks, commit.binlog)?;
        self.found.last_seq = commit.seq;
        self.found.next_xid = self.found.next_xid.max(Xid(commit.xid.0 + 1));
        self.found.commits += 1;
        Ok(())
    }

    /// Passes on binlog bytes (rows `Complete` and `Present`).
    fn chunks(
        &mut self,
        (lsn, seq): (Lsn, CommitSeq),
        chunks: &[Chunk],
        bytes: &[u8],
    ) -> Result<(), RecoveryError> {
        let Some(last) = chunks.last() else { return Ok(()) };
        if self.checkpoint.is_of_other_binlog(lsn) {
            return Ok(());
        }
        if !self.is_binlog_here {
            let what = format!("the log record at LSN {lsn} holds events of binlog file {}", last.pos.file);
            return Err(refused(Row::BinlogOff, what));
        }
        for chunk in chunks {
            if let Content::Spilled(spilled) = &chunk.content {
                self.found.names_file(self.scene.spill, seq, &spilled.name);
            }
            self.found.binlog_bytes += chunk.len;
        }
        self.binlog_end = Some(last.end());
        self.completion.add(lsn, chunks, bytes)
    }

    fn check_ends(
        &self,
        log_end: Lsn,
        on_disk: Option<BinlogPos>,
        is_new: bool,
    ) -> Result<(), RecoveryError> {
        for participant in self.scene.participants {
            let durable = participant.durable_lsn();
            if durable > log_end {
                let place = participant.place();
                let what =
                    format!("the log ends at LSN {log_end}, but {place} is durable up to LSN {durable}");
                return Err(refused(Row::EngineAhead, what));
            }
        }
        // A log that was just created ends before the first binlog file.
        let end = self.binlog_end.or(is_new.then(BinlogPos::default));
        if let (Some(on_disk), Some(end)) = (on_disk, end)
            && on_disk > end
            && self.found.cut == 0
        {
            let what = format!(
                "binlog file {} holds whole events up to {}, the log ends with file {} position {}",
                on_disk.file, on_disk.offset, end.file, end.offset
            );
            return Err(refused(Row::BinlogAhead, what));
        }
        Ok(())
    }

    fn finish(mut self, files: FilesFound) -> Result<(Recovered, Option<BinlogFiles>), RecoveryError> {
        self.replay.finish()?;
        let Some((mut files, opened)) = files else { return Ok((self.found, None)) };
        let recovered = files.finish_recovery(self.binlog_end, &opened)?;
        self.found.gtids = recovered.gtid_state;
        let first = self.restart.map_or(1, NonZeroU32::get);
        self.found.next_binlog_file = files.next_number().max(first);
        self.found.is_binlog_restarted = self.restart.is_some();
        Ok((self.found, Some(files)))
    }
}

/// Replays or skips the redo of a record with this LSN and CommitSeq (rows `Replay` and `Skip`).
pub(crate) fn replay_redo(
    scene: &Scene<'_>,
    found: &mut Recovered,
    replay: &mut Replay<'_>,
    (lsn, seq): (Lsn, CommitSeq),
    id: ParticipantId,
    redo: &RedoRef<'_>,
) -> Result<(), RecoveryError> {
    let participant = scene.participants.iter().find(|p| p.id() == id).ok_or_else(|| {
        refused(Row::Unknown, format!("the log record at LSN {lsn} holds redo of participant {id}"))
    })?;
    if let RedoRef::Spilled(file) = redo {
        // Called even if the file was removed, so that its name is not used again.
        found.names_file(scene.spill, seq, &file.name);
    }
    if lsn < participant.durable_lsn() {
        found.skipped += 1; // Row::Skip
        return Ok(());
    }
    let bytes = match redo {
        RedoRef::Inline(bytes) => bytes.to_vec(),
        RedoRef::Spilled(file) => read_spilled_redo(scene.fs, scene.spill_dir, file)?,
    };
    replay.add(id, Redo::new(bytes))?; // Row::Replay
    found.replayed += 1;
    Ok(())
}

/// Reads spilled redo back and checks it.
fn read_spilled_redo(fs: &SharedFs, dir: &Path, spilled: &SpilledRedo) -> Result<Vec<u8>, RecoveryError> {
    let path = dir.join(&spilled.name);
    let lost = |what: String| refused(Row::SpillLost, format!("spill file {}: {what}", path.display()));
    let file = fs.open(&path, OpenMode::Read).map_err(|e| lost(e.to_string()))?;
    if file.len().map_err(|e| lost(e.to_string()))? != spilled.bytes {
        return Err(lost("its length is not what the log says".to_owned()));
    }
    let mut bytes = vec![0; spilled.bytes as usize];
    let read = file.read_at(&mut bytes, 0).map_err(|e| lost(e.to_string()))?;
    if read != bytes.len() || crc32c::crc32c(&bytes) != spilled.crc {
        return Err(lost("its checksum is not what the log says".to_owned()));
    }
    Ok(bytes)
}
