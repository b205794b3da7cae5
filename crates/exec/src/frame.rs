//! Frames: each running statement has one, which measures it for the statistics of statements
//! ([`cohort_observe::Statements`]).
//!
//! # Life cycle
//! ```text
//! Session::begin_frame --> identify (digest and kind, once known) --> end_frame
//!     --> counted, or pending while its reply is held --> settle, when the reply may leave
//! ```
//! `statement_frames.rs` has these functions. A statement of a program has a frame of its own
//! (`begin_nested`, [`Frame::end_inside`]), and a digest of its own. It is not pending: its reply belongs to
//! the outer statement.
//!
//! # Invariants
//! - Each frame is counted exactly once. A frame that is still open when the session is dropped (panic, KILL,
//!   closed connection) is counted as an error, and pending ones are settled.
//! - A reply leaves after its statement is counted, so that the client finds it in the statistics.
//!
//! # Latency
//! Durations are read from the monotonic clock. The latency of a held statement ends when its hold opens. The
//! part after its own end is its commit wait, if the statement itself has raised the hold.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cohort_base::CommitSeq;
use cohort_config::{Counter, VarId};
use cohort_observe::{Measure, Measured, Running, StatementEvent, StatementRef};
use cohort_session::{Database, EventKind, Process};
use cohort_sql::ParseMode;
use cohort_trx::{Counted, PlanCounts};

use crate::cached_plan::CachedPlan;
use crate::known_statement::KnownStatement;
use crate::work::{SlowEntry, Work};

/// Number of texts whose digests a session remembers, and their maximum length.
const REMEMBERED: usize = 16;
const REMEMBERED_BYTES_MAX: usize = 256;

/// Measurements of a running statement.
#[derive(Default)]
pub(crate) struct Frame {
    pub is_open: bool,
    pub began_us: u64,
    pub began_ns: u64,
    rows_read: u64,
    lock_wait_ns: u64,
    pub hold: CommitSeq,
    pub kind: Option<EventKind>,
    pub statement: Option<Arc<KnownStatement>>,
    pub is_from_cache: bool,
    pub is_traced: bool,
    /// Its plan, if it was made for this run.
    pub planned: Option<Arc<CachedPlan>>,
}

impl Frame {
    /// Begins a frame at the last reading of the wall clock.
    #[inline]
    pub fn begin(db: &Database, process: &Process, now_us: u64, hold: CommitSeq) -> Frame {
        let counts = process.counts();
        Frame {
            is_open: true,
            began_us: now_us,
            began_ns: db.clock.monotonic_ns(),
            rows_read: counts.reads(),
            lock_wait_ns: process.kill_flag().waited_ns(),
            hold,
            kind: None,
            statement: None,
            is_from_cache: false,
            is_traced: false,
            planned: None,
        }
    }

    /// Shows the statement among those that are kept one by one.
    #[cold]
    pub fn begin_event(&self, process: &Process) {
        let Frame { began_ns, rows_read, lock_wait_ns, .. } = *self;
        process.events().begin(Running { number: 0, began_ns, rows_read, lock_wait_ns });
    }

    pub fn kind(&self) -> EventKind {
        self.kind.unwrap_or(EventKind::UNPARSED)
    }

    /// Returns the numbers of the statement, without its latency. `plans` are the counters of plans at its
    /// begin.
    #[inline]
    pub fn measured(
        &self,
        process: &Process,
        work: &Work,
        warnings: u64,
        plans: &mut PlanCounts,
    ) -> Measured {
        let mut measured = Measured::default();
        measured.add(Measure::Calls, 1);
        measured.add(Measure::Errors, u64::from(work.error != 0));
        measured.add(Measure::Warnings, warnings);
        let waited_ns = process.kill_flag().waited_ns().saturating_sub(self.lock_wait_ns);
        measured.add(Measure::LockWait, waited_ns);
        measured.add(Measure::RowsSent, work.rows_sent);
        let rows_read = process.counts().reads().saturating_sub(self.rows_read);
        measured.add(Measure::RowsExamined, rows_read);
        measured.add(Measure::RowsAffected, work.rows_affected);
        measured.add(Measure::PlanCacheHits, u64::from(self.is_from_cache));
        if let Some(before) = plans.update(process.counts()) {
            plans.since(&before).for_each(|(counter, n)| measured.add(measure_of(counter), n));
        }
        measured
    }

    /// Ends the frame of a statement that a function or a trigger has run.
    pub fn end_inside(
        mut self,
        db: &Database,
        process: &Process,
        statement: Arc<KnownStatement>,
        kind: EventKind,
        work: &Work,
        plans: &mut PlanCounts,
    ) {
        let took_ns = db.clock.monotonic_ns().saturating_sub(self.began_ns);
        (self.statement, self.kind) = (Some(statement), Some(kind));
        let mut measured = self.measured(process, work, 0, plans);
        measured.add(Measure::Latency, took_ns);
        self.count(db, &measured, self.began_us + took_ns / 1000, None);
    }

    /// Counts the statement. `sample` is its text, if it is to be kept.
    #[inline]
    pub fn count(&self, db: &Database, measured: &Measured, now_us: u64, sample: Option<&str>) {
        let kind = self.kind();
        let known = self.statement.as_ref().and_then(|statement| statement.known_row());
        let row = || match &self.statement {
            Some(statement) => statement.row(db, kind, now_us),
            None => db.statements.without_digest(kind.index()),
        };
        let is_nested = self.statement.as_ref().is_some_and(|statement| statement.key.is_nested);
        let of = (kind.index(), is_nested);
        let row = db.statements.count(thread_number(), of, measured, now_us, known, row);
        if let Some(sample) = sample {
            self.keep_sample(db, row, measured.get(Measure::Latency), now_us, sample);
        }
    }

    #[cold]
    fn keep_sample(&self, db: &Database, row: StatementRef, latency_ns: u64, now_us: u64, sample: &str) {
        db.statements.keep_sample(row, sample, latency_ns, now_us);
        if let Some(statement) = &self.statement {
            statement.slowest_ns.store(latency_ns, Ordering::Relaxed);
            statement.sampled_us.store(now_us, Ordering::Relaxed);
        }
    }

    /// Keeps the plan that was made for the statement, if `text` gives it.
    #[cold]
    pub fn keep_plan(&self, db: &Database, now_us: u64, text: impl FnOnce() -> Option<String>) {
        let Some(statement) = &self.statement else { return };
        let known = statement.known_row().filter(|row| db.statements.is_current(*row));
        let row = known.unwrap_or_else(|| statement.row(db, self.kind(), now_us));
        db.statements.keep_plan(row, now_us, text);
    }

    /// Counts the statement for its connection and account, if that is on.
    pub fn count_for(&self, db: &Database, process: &Process, measured: &Measured, now_us: u64) {
        if db.globals.flag(VarId::Userstat) {
            process.count_statement(self.kind().index(), measured, now_us);
        }
    }
}

fn measure_of(counter: Counted) -> Measure {
    match counter {
        Counted::CreatedTmpDiskTables => Measure::TmpDiskTables,
        Counted::CreatedTmpTables => Measure::TmpTables,
        Counted::SelectFullJoin => Measure::FullJoin,
        Counted::SelectFullRangeJoin => Measure::FullRangeJoin,
        Counted::SelectRange => Measure::Range,
        Counted::SelectScan => Measure::Scan,
        Counted::SortMergePasses => Measure::SortMergePasses,
        Counted::SortRange => Measure::SortRange,
        Counted::SortRows => Measure::SortRows,
        _ => Measure::SortScan,
    }
}

/// Returns the number of the calling thread, which selects its shard of the statistics.
fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
    }
    NUMBER.with(|known| {
        let number = known.get().unwrap_or_else(|| THREADS.fetch_add(1, Ordering::Relaxed));
        known.set(Some(number));
        number
    })
}

/// The end of a frame, for the logs.
pub(crate) struct Ended {
    /// The duration so far.
    pub took_us: u64,
    /// Whether the reply is held.
    pub is_held: bool,
    pub lock_wait_us: u64,
    pub rows_read: u64,
}

/// A statement that has ended, and whose reply is held.
pub(crate) struct Pending {
    pub frame: Frame,
    pub measured: Measured,
    pub ended_ns: u64,
    /// True if the statement itself has raised the hold.
    pub is_own: bool,
    pub sample: Option<String>,
    /// True if the statement belongs in the slow log whatever its duration.
    pub is_slow: bool,
    /// Its entry of the slow log, if that is written.
    pub slow: Option<SlowEntry>,
    /// Its entry among the last statements, if they are kept.
    pub event: Option<Box<StatementEvent>>,
}

/// Digests of the last texts that a session has parsed.
#[derive(Default)]
pub(crate) struct RememberedTexts {
    texts: Vec<(Box<[u8]>, ParseMode, Arc<KnownStatement>)>,
    next: usize,
}

impl RememberedTexts {
    pub fn find(
        &self,
        text: &[u8],
        mode: ParseMode,
        schema: &Option<Arc<str>>,
    ) -> Option<&Arc<KnownStatement>> {
        let is_it = |known: &&(Box<[u8]>, ParseMode, Arc<KnownStatement>)| {
            *known.0 == *text && known.1 == mode && known.2.key.schema == *schema
        };
        self.texts.iter().find(is_it).map(|known| &known.2)
    }

    pub fn add(&mut self, text: &[u8], mode: ParseMode, statement: &Arc<KnownStatement>) {
        if text.len() > REMEMBERED_BYTES_MAX {
            return;
        }
        let known = (text.into(), mode, Arc::clone(statement));
        match self.texts.len() < REMEMBERED {
            true => self.texts.push(known),
            false => self.texts[self.next] = known,
        }
        self.next = (self.next + 1) % REMEMBERED;
    }
}

/// Returns the kind of a statement that counts under these counters.
pub(crate) fn kind_of_counters(counters: &[Counter]) -> EventKind {
    EventKind::of(*counters.first().unwrap_or(&Counter::ComAdminCommands))
}
