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
//! Spilled events are in the binlog when they are decided, so no record names their file.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use cohort_base::{BinlogPos, CommitSeq, Lsn, ParticipantId, Xid};
use cohort_binlog::{BinlogError, BinlogFiles};
use cohort_log::{Opened, Recovery};

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
}

impl Survey {
    fn note(&mut self, head: &record::PrepareHead<'_>) {
        self.decided = self.decided.max(head.decided);
        self.next_xid = self.next_xid.max(Xid(head.xid.0 + 1));
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
            if r.lsn < self.own.from {
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
                    let seq = record::decode_released(r.payload).map_err(|_| unreadable(r.lsn))?;
                    survey.decided = survey.decided.max(seq);
                }
                record::RELEASED | record::NOTE => {}
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
    if let Some(found) = trx_end.filter(|end| is_its_binlog && *end > survey.known_end) {
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
    let files = finish_binlog(opened, &checkpoint, &mut found)?;
    replay(logs, &ends, scene, &mut found)?;
    Ok((found, files))
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
    checkpoint: &Checkpoint,
    found: &mut Recovered,
) -> Result<Option<BinlogFiles>, RecoveryError> {
    let Some((mut files, opened)) = opened else { return Ok(None) };
    let recovered = files.finish_recovery(None, &opened)?;
    found.gtids = recovered.gtid_state;
    let first = checkpoint.binlog_restart.map_or(1, std::num::NonZeroU32::get);
    found.next_binlog_file = files.next_number().max(first);
    found.is_binlog_restarted = checkpoint.binlog_restart.is_some();
    Ok(Some(files))
}

/// Runs pass 2.
fn replay(
    logs: &mut [OwnRecovery],
    ends: &[End],
    scene: &Scene<'_>,
    found: &mut Recovered,
) -> Result<(), RecoveryError> {
    let undecided: BTreeSet<CommitSeq> = ends.iter().flat_map(|end| &end.undecided).copied().collect();
    found.undecided = undecided.len() as u64;
    std::thread::scope(|scope| {
        let mut replay = Replay::start(scope, scene.participants);
        for (own, end) in logs.iter_mut().zip(ends) {
            own.log.cut_undecided_at(end.lsn);
            found.log_bytes += end.lsn.0 - own.from.0;
            while let Some(r) = own.log.next()? {
                if r.lsn < own.from || r.kind != record::PREPARE {
                    continue;
                }
                let (head, redo) = record::decode_prepare(r.payload).map_err(|_| unreadable(r.lsn))?;
                for (id, redo) in &redo {
                    replay_redo(scene, found, &mut replay, (r.lsn, head.seq), *id, redo)?;
                }
            }
        }
        replay.finish()
    })
}
