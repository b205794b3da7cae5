//! Crash recovery of the separate layout: the binlog decides (I2), and the coordinator's log decides about
//! transactions that are not in it.
//!
//! # Passes
//! ```text
//! open the binlog's files: where does the last whole transaction end?
//! pass 1: merge all logs in CommitSeq order:
//!           which prefix is whole in all logs?  up to which CommitSeq is it decided?
//! refuse contradictions; nothing was changed so far
//! cut the binlog after its last whole transaction, sync it
//! pass 2: log by log: replay the decided records, cut the rest
//!         only in a restored backup: replay what the archive has added to the coordinator's log
//! ```
//! Opening a log begins a new generation of it, which cuts its end; all logs are cut before the first commit.
//! Therefore no undecided PREPARE record is left when its CommitSeq, its XID or its position in the binlog is
//! assigned again. A crash in between is harmless: nothing is written to the binlog meanwhile, so the next
//! recovery decides in the same way.
//!
//! # The table
//! | label | contents of the logs | contents of the binlog | cause | action |
//! |---|---|---|---|---|
//! | [`Row::Replay`], [`Row::Skip`] | all parts of a transaction | its events, or those of a later one; or there is a DECIDED record for it or a later one | crash after its decision | as with one log |
//! | [`Row::Undecided`] | some or all parts | neither its end nor anything later | crash before the decision | cut from the logs and the binlog; no client got an OK, no plain read saw it |
//! | [`Row::PartLost`] | a part is missing, or all of it | its events, or a mark or a DECIDED record proves its decision | a log was lost, replaced, or restored from another time | refuse |
//! | [`Row::BinlogBehind`] | parts, and a mark that it was decided | ends before its events | the binlog was cut, or files of it removed, by hand | refuse |
//! | [`Row::BinlogAhead`] | nothing of it | whole transactions | logs were lost or replaced | refuse |
//! | [`Row::BinlogOff`] | parts of transactions whose events went into the binlog | it is off, or has another name | started with other options after a crash | refuse |
//! | [`Row::LogLost`] | a log is missing, of another data directory, or older or newer than the coordinator's | | removed, or restored separately | refuse |
//! | [`Row::OtherLayout`] | the directory was created with the other layout | | started with other options | refuse |
//! | [`Row::Restarted`], [`Row::EngineBehind`], [`Row::EngineAhead`], [`Row::BinlogFileLost`], [`Row::IndexLost`], [`Row::SpillLost`], [`Row::Unknown`] | | | as with one log (`recovery.rs`) | as with one log |
//!
//! Spilled events are in the binlog when they are decided, so no PREPARE record names their file.
//!
//! # With an archive
//! The coordinator's log then has copies of whole transactions (`separate.rs`), and binlog bytes that belong
//! to no transaction, in BINLOG records. These are durable before the binlog gets them, so they decide about
//! themselves: a BINLOG record that follows no undecided transaction is completed in the binlog. One that
//! follows an undecided transaction is cut off with it, and the binlog is cut where the bytes begin. So the
//! binlog and the stream that the archive sends never differ.
//!
//! # A restored backup
//! `archive/apply.rs` appends the archive to the coordinator's log, and to no other. From the LSN in
//! [`Restored`](record::Restored) on, the COMMIT and BINLOG records are the truth: everything in them is
//! decided, the redo for all participants is replayed from them, and the binlog is completed from them. All
//! other records there are ignored. Before that LSN everything is decided, because a backup ends with the
//! order stage held. The engines' logs end there. A checkpoint follows before the server writes anything
//! else, and ends this state. After a crash before that checkpoint the same is done again: redo is absolute.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use cohort_base::{BinlogPos, CommitSeq, Lsn, ParticipantId, Reader, Xid};
use cohort_binlog::{BinlogError, BinlogFiles, Chunk, SpillDir, StreamOut};
use cohort_log::{Opened, Record, Recovery};

use crate::completion::complete;
use crate::options::Unreleased;
use crate::record::{self, Checkpoint};
use crate::recovery::{BinlogOnDisk, Recovered, Scene, check_durable, open_binlog, replay_redo};
use crate::recovery_error::{RecoveryError, Row, refused, unreadable};
use crate::replay::Replay;
use crate::separate::COORDINATOR;

/// A log during recovery.
pub struct OwnRecovery {
    /// `None` for the coordinator's log.
    pub engine: Option<ParticipantId>,
    pub dir: PathBuf,
    /// LSN where recovery starts, according to the coordinator's log.
    pub from: Lsn,
    pub log: Recovery,
}

impl OwnRecovery {
    fn number(&self) -> u8 {
        self.engine.map_or(COORDINATOR, |engine| engine.0)
    }
}

/// The inputs of the recovery of this layout.
pub struct SeparateScene<'a> {
    pub scene: &'a Scene<'a>,
    pub checkpoint: Checkpoint,
    pub unreleased: Unreleased,
}

/// A PREPARE record without its redo.
struct Head {
    seq: CommitSeq,
    logs: Vec<u8>,
}

/// Position in a log during pass 1.
struct Cursor<'l> {
    own: &'l mut OwnRecovery,
    head: Option<Head>,
    /// PREPARE records not decided so far, in order.
    held: VecDeque<(CommitSeq, Lsn)>,
}

/// Results of pass 1.
struct Survey {
    /// End of the binlog.
    binlog_end: Option<BinlogPos>,
    /// CommitSeq up to which everything is decided.
    decided: CommitSeq,
    next_xid: Xid,
    /// End of the last transaction that is both in the binlog and in the logs.
    known_end: BinlogPos,
    /// The first transaction whose events are not in the binlog.
    beyond: Option<(CommitSeq, BinlogPos)>,
    /// LSN where the archive's part of the coordinator's log begins.
    restored_from: Option<Lsn>,
    /// BINLOG records, with the position where their bytes begin.
    binlog_records: Vec<(Lsn, BinlogPos)>,
}

impl Survey {
    fn note(&mut self, head: &record::PrepareHead<'_>) {
        self.decided = self.decided.max(head.decided);
        self.next_xid = self.next_xid.max(Xid(head.xid.0 + 1));
        if self.restored_from.is_some() {
            self.decided = self.decided.max(head.seq);
            return;
        }
        let Some(end) = head.end else { return };
        if self.binlog_end.is_some_and(|binlog| end <= binlog) {
            self.decided = self.decided.max(head.seq);
            self.known_end = self.known_end.max(end);
        } else if self.beyond.is_none_or(|(seq, _)| head.seq < seq) {
            self.beyond = Some((head.seq, end));
        }
    }
}

impl Cursor<'_> {
    /// Reads up to the next PREPARE record.
    fn advance(&mut self, survey: &mut Survey) -> Result<(), RecoveryError> {
        self.head = None;
        while let Some(r) = self.own.log.next()? {
            let is_main = self.own.engine.is_none();
            let is_restored = is_main && survey.restored_from.is_some_and(|from| r.lsn >= from);
            if r.lsn < self.own.from || is_restored {
                continue;
            }
            match r.kind {
                record::PREPARE => {
                    let (head, _) = record::decode_prepare(r.payload).map_err(|_| unreadable(r.lsn))?;
                    let last = self.held.back().map_or(CommitSeq(0), |(seq, _)| *seq);
                    assert!(head.seq > last, "CommitSeqs ascend in each log (I1): {} at {}", head.seq, r.lsn);
                    survey.note(&head);
                    self.held.push_back((head.seq, r.lsn));
                    self.head = Some(Head { seq: head.seq, logs: head.logs.to_vec() });
                    self.let_go(survey.decided);
                    return Ok(());
                }
                record::DECIDED => {
                    let seq = record::decode_seq(r.payload).map_err(|_| unreadable(r.lsn))?;
                    survey.decided = survey.decided.max(seq);
                }
                record::COMMIT if is_main => {
                    let seq = record::decode_seq(r.payload).map_err(|_| unreadable(r.lsn))?;
                    let last = self.held.back().map_or(survey.decided, |(seq, _)| *seq);
                    if seq > last {
                        self.held.push_back((seq, r.lsn));
                    }
                }
                record::BINLOG if is_main => {
                    let (chunks, _) = binlog_bytes(&r)?;
                    survey.binlog_records.extend(chunks.first().map(|first| (r.lsn, first.pos)));
                }
                record::RELEASED | record::NOTE | record::TIME => {}
                other => {
                    let what =
                        format!("log record kind {} at LSN {} of {}", other.0, r.lsn, self.own.dir.display());
                    return Err(refused(Row::Unknown, what));
                }
            }
        }
        Ok(())
    }

    fn let_go(&mut self, decided: CommitSeq) {
        while self.held.front().is_some_and(|(seq, _)| *seq <= decided) {
            self.held.pop_front();
        }
    }
}

/// Brings binlog, logs and participants to the same state. Sets where each log ends.
pub fn recover(
    logs: &mut [OwnRecovery],
    of: SeparateScene<'_>,
    on_disk: Option<BinlogOnDisk<'_>>,
    base: &str,
) -> Result<(Recovered, Option<BinlogFiles>), RecoveryError> {
    let SeparateScene { scene, checkpoint, unreleased } = of;
    let is_after_crash = logs[0].log.opened() == Opened::AfterCrash;
    check_durable(logs[0].from, &checkpoint, scene.participants)?;
    // No start has reached its first checkpoint.
    let is_first = checkpoint.separate.as_ref().is_none_or(|named| named.from.is_empty());
    // Files under a name that no checkpoint knows, and without a whole head, are left over from a start, too.
    let opened = open_binlog(&checkpoint, on_disk, base, is_first || checkpoint.binlog_base != base)?;
    if let Some((files, found)) = &opened
        && let Some(end) = found.end
        && let Some(path) = files.hole_after(end)?
    {
        let what = "the file ends here, but a later one was begun".to_owned();
        return Err(BinlogError::Corrupt { path, offset: end.offset, what }.into());
    }
    let binlog_end = opened.as_ref().and_then(|(_, found)| found.end);
    let trx_end = opened.as_ref().and_then(|(_, found)| found.trx_end);
    let same_name = checkpoint.binlog_base.is_empty() || checkpoint.binlog_base == base;
    let mut survey = Survey {
        binlog_end: binlog_end.filter(|_| same_name),
        decided: checkpoint.last_seq,
        next_xid: checkpoint.next_xid,
        known_end: checkpoint.binlog_synced,
        beyond: None,
        restored_from: checkpoint.restored.as_ref().map(|restored| restored.from),
        binlog_records: Vec::new(),
    };
    let ends = survey_logs(logs, &checkpoint, &mut survey)?;
    let last = survey.decided;
    match survey.beyond {
        Some((seq, end)) if opened.is_none() || !same_name => {
            let what =
                format!("the logs hold transaction {seq}, whose events are in binlog file {}", end.file);
            return Err(refused(Row::BinlogOff, what));
        }
        Some((seq, end)) if seq <= last => {
            let found = binlog_end.unwrap_or_default();
            let what = format!(
                "transaction {seq} was committed and ends at {} of binlog file {}, but the binlog ends at {} of file {}",
                end.offset, end.file, found.offset, found.file
            );
            return Err(refused(Row::BinlogBehind, what));
        }
        _ => {}
    }
    let synced = checkpoint.binlog_synced;
    if same_name && opened.is_some() && binlog_end.unwrap_or_default() < synced {
        let what =
            format!("the binlog was synced up to {} of file {}, and ends before", synced.offset, synced.file);
        return Err(refused(Row::BinlogBehind, what));
    }
    let is_its_binlog = is_first || (!base.is_empty() && checkpoint.binlog_base == base);
    let may_be_ahead = is_its_binlog && survey.restored_from.is_none();
    if let Some(found) = trx_end.filter(|end| may_be_ahead && *end > survey.known_end) {
        let what = format!(
            "binlog file {} holds a whole transaction up to {}, and the logs hold none that ends there",
            found.file, found.offset
        );
        return Err(refused(Row::BinlogAhead, what));
    }
    if unreleased == Unreleased::Cut && is_after_crash && last > checkpoint.last_seq {
        let what = "init_rpl_role=SLAVE would cut transactions that no replica has; log_layout=separate does not support that"
            .to_owned();
        return Err(refused(Row::CutUnreleased, what));
    }
    for own in logs.iter() {
        check_engine(own, &ends, scene)?;
    }
    let mut found = Recovered {
        last_seq: last,
        next_xid: survey.next_xid,
        binlog_base: checkpoint.binlog_base.clone(),
        binlog_synced: checkpoint.binlog_synced,
        commits: last.0 - checkpoint.last_seq.0,
        ..Recovered::default()
    };
    let is_here = opened.is_some() && same_name;
    let mut opened = opened;
    let mut binlog = Completing {
        files: opened.as_mut().map(|(files, _)| files).filter(|_| is_here),
        spill: scene.spill,
        whole_to: survey.binlog_end.unwrap_or_default(),
        end: survey.cut_binlog(ends[0].lsn),
    };
    replay(logs, &ends, &Replayed { scene, checkpoint: &checkpoint }, &mut binlog, &mut found)?;
    let end = binlog.end;
    let files = finish_binlog(opened, end, &checkpoint, &mut found)?;
    Ok((found, files))
}

impl Survey {
    /// Returns where the binlog has to be cut although it is whole there: at the bytes of the first BINLOG
    /// record that is cut off with an undecided transaction.
    fn cut_binlog(&self, main_end: Lsn) -> Option<BinlogPos> {
        let (_, begin) = self.binlog_records.iter().find(|(lsn, _)| *lsn >= main_end)?;
        self.binlog_end.is_some_and(|end| end > *begin).then_some(*begin)
    }
}

/// Returns the chunks of a BINLOG record, and their bytes.
fn binlog_bytes<'r>(record: &Record<'r>) -> Result<(Vec<Chunk>, &'r [u8]), RecoveryError> {
    let mut reader = Reader::new(record.payload);
    let chunks = StreamOut::decode_chunks(&mut reader).map_err(|_| unreadable(record.lsn))?;
    Ok((chunks, reader.rest()))
}

/// The binlog while it is completed from the coordinator's log.
struct Completing<'a> {
    /// `None` if it is off, or has another name.
    files: Option<&'a mut BinlogFiles>,
    spill: &'a SpillDir,
    /// Its end before.
    whole_to: BinlogPos,
    /// Its end now, if that is elsewhere.
    end: Option<BinlogPos>,
}

impl Completing<'_> {
    fn add(&mut self, lsn: Lsn, chunks: &[Chunk], bytes: &[u8]) -> Result<(), RecoveryError> {
        let Some(last) = chunks.last().filter(|last| last.end() > self.whole_to) else { return Ok(()) };
        let Some(files) = &mut self.files else {
            let what = format!("the log record at LSN {lsn} holds events of binlog file {}", last.pos.file);
            return Err(refused(Row::BinlogOff, what));
        };
        complete(files, chunks, bytes, self.spill)?;
        self.end = Some(last.end());
        Ok(())
    }
}

/// The end of a log that is kept.
struct End {
    number: u8,
    lsn: Lsn,
    undecided: Vec<CommitSeq>,
}

/// Runs pass 1.
fn survey_logs(
    logs: &mut [OwnRecovery],
    checkpoint: &Checkpoint,
    survey: &mut Survey,
) -> Result<Vec<End>, RecoveryError> {
    let mut cursors: Vec<Cursor<'_>> =
        logs.iter_mut().map(|own| Cursor { own, head: None, held: VecDeque::new() }).collect();
    cursors.iter_mut().try_for_each(|cursor| cursor.advance(survey))?;
    let (mut whole, mut gap) = (checkpoint.last_seq, None);
    while let Some(seq) = cursors.iter().filter_map(|it| Some(it.head.as_ref()?.seq)).min() {
        if gap.is_none() {
            gap = missing(&cursors, whole, seq);
            if gap.is_none() {
                whole = seq;
            }
        }
        for cursor in cursors.iter_mut().filter(|it| it.head.as_ref().is_some_and(|head| head.seq == seq)) {
            cursor.advance(survey)?;
        }
    }
    let mut ends = Vec::new();
    for cursor in &mut cursors {
        cursor.let_go(survey.decided);
        let read_to = cursor.own.log.read_to();
        if read_to < cursor.own.from {
            let what = format!(
                "{} ends at LSN {read_to}, but was written up to LSN {} before",
                cursor.own.dir.display(),
                cursor.own.from
            );
            return Err(refused(Row::LogLost, what));
        }
        let lsn = cursor.held.front().map_or(read_to, |(_, lsn)| *lsn);
        let undecided = cursor.held.iter().map(|(seq, _)| *seq).collect();
        ends.push(End { number: cursor.own.number(), lsn, undecided });
    }
    if survey.decided > whole {
        let gap = gap.unwrap_or_else(|| format!("no log holds transaction {}", whole.0 + 1));
        return Err(refused(Row::PartLost, format!("{gap}, which was committed")));
    }
    Ok(ends)
}

/// Returns the reason why transaction `seq` does not extend the whole prefix. Returns `None` if it does.
fn missing(cursors: &[Cursor<'_>], whole: CommitSeq, seq: CommitSeq) -> Option<String> {
    if seq.0 != whole.0 + 1 {
        return Some(format!("no log holds transaction {}", whole.0 + 1));
    }
    let has = |it: &&Cursor<'_>| it.head.as_ref().is_some_and(|head| head.seq == seq);
    let named = cursors.iter().find(has)?.head.as_ref()?;
    let lacks = |number: &&u8| !cursors.iter().filter(has).any(|it| it.own.number() == **number);
    let number = named.logs.iter().find(lacks)?;
    let dir = cursors.iter().find(|it| it.own.number() == *number).map(|it| it.own.dir.display().to_string());
    let dir = dir.unwrap_or_else(|| format!("the log of participant {number}"));
    Some(format!("{dir} does not hold its part of transaction {seq}"))
}

/// Checks for the row `EngineAhead`.
fn check_engine(own: &OwnRecovery, ends: &[End], scene: &Scene<'_>) -> Result<(), RecoveryError> {
    let Some(engine) = own.engine else { return Ok(()) };
    let end = ends.iter().find(|end| end.number == own.number()).expect("each log has an end").lsn;
    let participant = scene.participants.iter().find(|p| p.id() == engine);
    match participant.filter(|participant| participant.durable_lsn() > end) {
        None => Ok(()),
        Some(participant) => {
            let (place, durable) = (participant.place(), participant.durable_lsn());
            let dir = own.dir.display();
            let what = format!("{dir} ends at LSN {end}, but {place} is durable up to LSN {durable}");
            Err(refused(Row::EngineAhead, what))
        }
    }
}

fn finish_binlog(
    opened: Option<(BinlogFiles, cohort_binlog::Recovered)>,
    end: Option<BinlogPos>,
    checkpoint: &Checkpoint,
    found: &mut Recovered,
) -> Result<Option<BinlogFiles>, RecoveryError> {
    let Some((mut files, opened)) = opened else { return Ok(None) };
    let recovered = files.finish_recovery(end, &opened)?;
    found.gtids = recovered.gtid_state;
    let first = checkpoint.binlog_restart.map_or(1, std::num::NonZeroU32::get);
    found.next_binlog_file = files.next_number().max(first);
    found.is_binlog_restarted = checkpoint.binlog_restart.is_some();
    Ok(Some(files))
}

/// The inputs of pass 2.
struct Replayed<'a> {
    scene: &'a Scene<'a>,
    checkpoint: &'a Checkpoint,
}

/// Runs pass 2.
fn replay(
    logs: &mut [OwnRecovery],
    ends: &[End],
    of: &Replayed<'_>,
    binlog: &mut Completing<'_>,
    found: &mut Recovered,
) -> Result<(), RecoveryError> {
    let scene = of.scene;
    let undecided: BTreeSet<CommitSeq> = ends.iter().flat_map(|end| &end.undecided).copied().collect();
    found.undecided = undecided.len() as u64;
    let restored_from = of.checkpoint.restored.as_ref().map(|restored| restored.from);
    std::thread::scope(|scope| {
        let mut replay = Replay::start(scope, scene.participants);
        for (own, end) in logs.iter_mut().zip(ends) {
            own.log.cut_undecided_at(end.lsn);
            found.log_bytes += end.lsn.0 - own.from.0;
            while let Some(r) = own.log.next()? {
                if r.lsn < own.from {
                    continue;
                }
                if own.engine.is_none() && restored_from.is_some_and(|from| r.lsn >= from) {
                    break;
                }
                match r.kind {
                    record::PREPARE => {
                        let (head, redo) =
                            record::decode_prepare(r.payload).map_err(|_| unreadable(r.lsn))?;
                        for (id, redo) in &redo {
                            replay_redo(scene, found, &mut replay, (r.lsn, head.seq), *id, redo)?;
                        }
                    }
                    record::COMMIT => {
                        let commit = record::decode_commit(r.payload).map_err(|_| unreadable(r.lsn))?;
                        found.names_events(scene.spill, &commit);
                    }
                    record::BINLOG => {
                        let (chunks, bytes) = binlog_bytes(&r)?;
                        binlog.add(r.lsn, &chunks, bytes)?;
                    }
                    record::TIME => found.note_time(&r)?,
                    _ => {}
                }
            }
        }
        if let Some(from) = restored_from {
            replay_archive(logs, from, of, binlog, (&mut replay, found))?;
        }
        replay.finish()
    })
}

/// Replays what an archive has added to the coordinator's log.
fn replay_archive(
    logs: &mut [OwnRecovery],
    from: Lsn,
    of: &Replayed<'_>,
    binlog: &mut Completing<'_>,
    (replay, found): (&mut Replay<'_>, &mut Recovered),
) -> Result<(), RecoveryError> {
    let own_logs: Vec<ParticipantId> = logs.iter().filter_map(|own| own.engine).collect();
    let main = &mut logs[0].log;
    main.rewind();
    while let Some(r) = main.next()? {
        if r.lsn < from {
            continue;
        }
        let is_other = of.checkpoint.is_of_other_binlog(r.lsn);
        match r.kind {
            record::COMMIT => {
                let commit = record::decode_commit(r.payload).map_err(|_| unreadable(r.lsn))?;
                for (id, redo) in &commit.redo {
                    // An LSN of this log says nothing about an engine with its own log.
                    let lsn = if own_logs.contains(id) { Lsn(u64::MAX) } else { r.lsn };
                    replay_redo(of.scene, found, replay, (lsn, commit.seq), *id, redo)?;
                }
                found.names_events(of.scene.spill, &commit);
                if !is_other {
                    binlog.add(r.lsn, &commit.chunks, commit.binlog)?;
                }
                found.last_seq = commit.seq;
                found.next_xid = found.next_xid.max(Xid(commit.xid.0 + 1));
                found.commits += 1;
            }
            record::BINLOG if !is_other => {
                let (chunks, bytes) = binlog_bytes(&r)?;
                binlog.add(r.lsn, &chunks, bytes)?;
            }
            record::TIME => found.note_time(&r)?,
            _ => {}
        }
    }
    Ok(())
}
