//! The frames of a session's statements: begin, identity, end, and the settlement of held replies.

use std::sync::Arc;

use cohort_base::{CommitSeq, whole_chars};
use cohort_config::{Counter, VarId};
use cohort_observe::{Measure, Measured, StatementEvent};
use cohort_session::{EventKind, StatementTrace, shown};
use cohort_sql::StatementDigest;
use cohort_trx::{Counted, PlanCounts};

use crate::explain_tree::tree_text;
use crate::frame::{Ended, Frame, Pending};
use crate::known_statement::KnownStatement;
use crate::session::Session;
use crate::work::{SlowEntry, Work};

/// Maximum bytes of a text among the last statements.
const EVENT_TEXT_BYTES_MAX: usize = 1024;
/// Number of statements of a session that may be pending. Only multi-statements can have more than one.
const PENDING_MAX: usize = 64;

/// The frame and the results of a statement while one of its program runs.
pub(crate) struct OuterFrame {
    frame: Frame,
    work: Work,
    plan_counts: PlanCounts,
}

impl Session {
    /// Begins the frame of a statement at the last clock reading.
    #[inline]
    pub(crate) fn begin_frame(&mut self) {
        self.work = Work::default();
        self.plan_counts.update(self.process.counts());
        self.frame = Frame::begin(&self.state.db, &self.process, self.clock_us, self.trx.hold_until());
        if self.state.db.events.is_on() {
            self.frame.begin_event(&self.process);
        }
        if self.log_settings().traces {
            self.begin_trace();
        }
    }

    /// Sets the kind of the running statement.
    #[inline]
    pub(crate) fn set_kind(&mut self, kind: EventKind) {
        self.frame.kind = Some(kind);
    }

    /// Records the statement that is running.
    #[inline]
    pub(crate) fn identify(&mut self, statement: Arc<KnownStatement>) {
        self.frame.statement = Some(statement);
    }

    /// Records that the running statement uses a cached plan.
    #[inline]
    pub(crate) fn note_cached(&mut self) {
        self.frame.is_from_cache = true;
    }

    /// Returns the statement that is running, if its digest is known.
    pub(crate) fn known_statement(&self) -> Option<&Arc<KnownStatement>> {
        self.frame.statement.as_ref()
    }

    /// Records the digest of a text that was parsed. `may_recur`: the session remembers it, because no plan
    /// will.
    pub(crate) fn identify_text(&mut self, text: &[u8], may_recur: bool) {
        let (mode, schema) = (self.state.settings.parse.mode, &self.state.current_schema);
        let statement = match self.remembered.find(text, mode, schema) {
            Some(known) => Arc::clone(known),
            None => {
                let statement = KnownStatement::new(schema.clone(), &self.digest_of(text), false);
                if may_recur {
                    self.remembered.add(text, mode, &statement);
                }
                statement
            }
        };
        self.identify(statement);
    }

    /// Returns the digest of a text that was parsed.
    pub(crate) fn digest_of(&self, text: &[u8]) -> StatementDigest {
        let bytes_max = self.state.db.globals.uint(VarId::MaxDigestLength) as usize;
        StatementDigest::of(text, self.state.settings.parse.mode, bytes_max)
    }

    /// Ends the frame of the running statement and derives the wall clock's time from its duration.
    pub(crate) fn end_frame(&mut self, text: &[u8]) -> Ended {
        let db = &self.state.db;
        let ended_ns = db.clock.monotonic_ns();
        let took_ns = ended_ns.saturating_sub(self.frame.began_ns);
        self.clock_us = self.frame.began_us + took_ns / 1000;
        self.frame.is_open = false;
        let warnings = match self.work.error {
            0 => u64::from(self.diagnostics.count_for_client()),
            _ => 0,
        };
        if self.work.rows_sent > 0 {
            self.process.counts().count_many(Counted::RowsSent, self.work.rows_sent);
        }
        let mut measured = self.frame.measured(&self.process, &self.work, warnings, &mut self.plan_counts);
        measured.add(Measure::NoIndexUsed, u64::from(self.state.statement.reads_whole_table.get()));
        let wants_sample = match &self.frame.statement {
            Some(statement) => statement.wants_sample(took_ns, self.clock_us),
            None => self.frame.kind.is_none(),
        };
        let sample = (wants_sample && db.globals.flag(VarId::StatementSamples))
            .then(|| shown(text, self.state.settings.parse.mode));
        if let Some(plan) = self.frame.planned.take()
            && db.globals.flag(VarId::StatementSamples)
        {
            let mode = self.state.settings.parse.mode;
            // A plan shows what its text shows, so that of a text with secrets is not kept.
            let text = || (shown(text, mode).as_bytes() == text).then(|| tree_text(&plan.plan));
            self.frame.keep_plan(db, self.clock_us, text);
        }
        if self.frame.is_traced {
            self.end_trace(text, took_ns, measured.get(Measure::LockWait));
        }
        let event = db.events.is_on().then(|| self.event_of(text));
        let hold = self.trx.hold_until();
        let is_held = hold > db.commit.acknowledged();
        let ended = Ended {
            took_us: took_ns / 1000,
            is_held,
            lock_wait_us: measured.get(Measure::LockWait) / 1000,
            rows_read: measured.get(Measure::RowsExamined),
        };
        if is_held {
            self.hold_frame(measured, ended_ns, hold, sample, event);
        } else {
            measured.add(Measure::Latency, took_ns);
            self.frame.count(db, &measured, self.clock_us, sample.as_deref());
            self.frame.count_for(db, &self.process, &measured, self.clock_us);
            if let Some(event) = event {
                self.process.end_event(&db.events, event, measured);
            }
        }
        ended
    }

    /// Begins to trace the running statement.
    #[cold]
    pub(crate) fn begin_trace(&mut self) {
        self.begin_stages();
        self.frame.is_traced = true;
    }

    /// Begins to trace the steps of commits. Those of the statement that was traced before are kept.
    pub(crate) fn begin_stages(&mut self) {
        let trace = &self.trx.client().trace;
        if let Some(former) = self.state.trace.get_mut() {
            former.steps.get_or_insert_with(|| trace.steps());
        }
        trace.begin();
    }

    /// Keeps the durations of the running statement. The steps of its commit may follow.
    #[cold]
    fn end_trace(&self, text: &[u8], execute_ns: u64, lock_wait_ns: u64) {
        let text = shown(text, self.state.settings.parse.mode);
        let trace = StatementTrace { text, execute_ns, lock_wait_ns, total_ns: execute_ns, steps: None };
        self.state.trace.replace(Some(trace));
    }

    /// Returns the entry of the running statement among those that are kept, without its numbers.
    #[cold]
    fn event_of(&self, text: &[u8]) -> Box<StatementEvent> {
        let statement = self.frame.statement.as_ref();
        let errors = self.diagnostics.list().iter().rev().map(|condition| &condition.error);
        let error = errors.into_iter().find(|error| error.number() == self.work.error);
        let text = shown(text, self.state.settings.parse.mode);
        Box::new(StatementEvent {
            thread: self.process.id().0,
            kind: self.frame.kind().index(),
            began_ns: self.frame.began_ns,
            text: whole_chars(&text, EVENT_TEXT_BYTES_MAX).to_owned(),
            digest: statement.map(|statement| statement.digest()),
            schema: self.state.current_schema.clone(),
            error: error
                .map(|error| (error.number(), error.sqlstate().to_owned(), error.message.to_string())),
            ..StatementEvent::default()
        })
    }

    /// Keeps the frame of a statement whose reply is held until `hold` is acknowledged.
    fn hold_frame(
        &mut self,
        measured: Measured,
        ended_ns: u64,
        hold: CommitSeq,
        sample: Option<String>,
        event: Option<Box<StatementEvent>>,
    ) {
        if self.pending.len() == PENDING_MAX {
            self.settle();
        }
        let is_own = hold != self.frame.hold;
        let frame = std::mem::take(&mut self.frame);
        let (is_slow, slow) = (false, None);
        self.pending.push(Pending { frame, measured, ended_ns, is_own, sample, is_slow, slow, event });
    }

    /// Leaves the decision about the slow log to the moment when the reply of the last statement may leave.
    pub(crate) fn hold_slow(&mut self, is_slow: bool, entry: Option<SlowEntry>) {
        if let Some(pending) = self.pending.last_mut() {
            (pending.is_slow, pending.slow) = (is_slow, entry);
        }
    }

    /// Counts a command that fails before its statement is known.
    pub(crate) fn count_failed(&mut self, kind: EventKind, fail: impl FnOnce(&mut Session)) {
        self.look_at_clock();
        self.begin_frame();
        self.set_kind(kind);
        fail(self);
        self.end_frame(b"");
    }

    /// Counts the statements whose replies were held. Called before the replies leave, by any thread. Returns
    /// true if there are entries for the slow log: a thread that may wait for files must write them.
    #[inline]
    pub fn settle(&mut self) -> bool {
        !self.pending.is_empty() && self.settle_all()
    }

    fn settle_all(&mut self) -> bool {
        let long_ns = self.state.settings.vars.double(VarId::LongQueryTime) * 1e9;
        let db = &self.state.db;
        let now_ns = db.clock.monotonic_ns();
        let last = self.pending.len() - 1;
        for (n, mut pending) in self.pending.drain(..).enumerate() {
            let latency_ns = now_ns.saturating_sub(pending.frame.began_ns);
            pending.measured.add(Measure::Latency, latency_ns);
            if pending.is_own {
                pending.measured.add(Measure::CommitWait, now_ns.saturating_sub(pending.ended_ns));
            }
            if pending.frame.is_traced
                && let Some(trace) = self.state.trace.get_mut()
            {
                trace.total_ns = latency_ns;
            }
            let now_us = pending.frame.began_us + latency_ns / 1000;
            pending.frame.count(db, &pending.measured, now_us, pending.sample.as_deref());
            pending.frame.count_for(db, &self.process, &pending.measured, now_us);
            if let Some(event) = pending.event {
                self.process.end_event(&db.events, event, pending.measured);
            }
            if pending.is_slow || latency_ns as f64 > long_ns {
                db.status.count(Counter::SlowQueries);
                // A later statement of the same command has reset the steps.
                if let Some(entry) = &mut pending.slow
                    && entry.has_steps
                    && n == last
                {
                    entry.add_steps(&self.trx.client().trace.steps());
                }
                self.slow_entries.extend(pending.slow.map(|entry| (entry, latency_ns / 1000)));
            }
        }
        !self.slow_entries.is_empty()
    }

    /// Begins the frame of a statement that runs inside the running one. Returns the frame and the results of
    /// the running one, for [`Session::end_nested`].
    pub(crate) fn begin_nested(&mut self) -> OuterFrame {
        let inner = Frame::begin(&self.state.db, &self.process, self.clock_us, self.trx.hold_until());
        let plan_counts = self.plan_counts;
        self.plan_counts.update(self.process.counts());
        OuterFrame {
            frame: std::mem::replace(&mut self.frame, inner),
            work: std::mem::take(&mut self.work),
            plan_counts,
        }
    }

    /// Ends the frame of an inner statement. Rows that it has sent count for the outer one, too.
    pub(crate) fn end_nested(
        &mut self,
        outer: OuterFrame,
        statement: Arc<KnownStatement>,
        error: Option<u16>,
    ) {
        let OuterFrame { frame, work, mut plan_counts } = outer;
        std::mem::swap(&mut self.plan_counts, &mut plan_counts);
        let inner = std::mem::replace(&mut self.frame, frame);
        let kind = inner.kind();
        let inner_work = std::mem::replace(&mut self.work, work);
        let counted = Work { error: error.unwrap_or(0), ..inner_work };
        inner.end_inside(&self.state.db, &self.process, statement, kind, &counted, &mut plan_counts);
        self.work.rows_sent += inner_work.rows_sent;
        self.work.generated_id = self.work.generated_id.or(inner_work.generated_id);
    }

    /// Counts the statements that are left when the session ends.
    pub(crate) fn end_frames(&mut self) {
        self.settle();
        if self.frame.is_open {
            self.work.error = u16::MAX;
            self.end_frame(b"");
            self.settle();
        }
    }
}
