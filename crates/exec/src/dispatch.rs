//! Dispatch of a statement to the code that runs it.
//!
//! # Path of a statement
//! ```text
//! text -> digest -> plan cache --hit--> run_cached -----------------------> run
//!             \       \ miss              \ stale, or a privilege is missing
//!              \-------+-------------------+--> parse -> run_statement
//! run_statement: checks and implicit commit, then
//!     query or data change --> run_plannable: make_plan, run, add the plan to the cache
//!     account table        --> change_account_table
//!     anything else        --> dispatch: its own code (`statement/`)
//! ```
//! [`Digest::of`] replaces the literals of the text by parameters, so that texts that differ only in literals
//! share a plan. A text without a digest is always parsed. So is every text of an account with resource
//! limits, because the limits are checked for the parsed statement.
//!
//! # Plans and definitions
//! A statement does the following in this order: plan, or take a cached plan; check privileges; lock
//! everything that the plan names; run. A plan is made without metadata locks. Locking therefore compares the
//! plan with the catalog. If a DDL statement came in between, the result is [`Executed::Stale`], and the
//! statement is planned again, at most [`PLAN_ATTEMPTS`] times.
//!
//! A statement that cannot be planned, for example because a column is missing, has nothing to lock. It waits
//! for DDL statements on the tables that it mentions (`named_tables.rs`), except under LOCK TABLES, and is
//! planned again if one of them has changed a table.
//!
//! # Replies
//! The header of a result is sent with its first row, or at the end if there is none, so that an error before
//! it is the only reply. The reply of a result set waits until everything that the transaction has seen is
//! durable ([`SessionTrx::mark_observed`]), because its rows may show changes that are not durable yet (I5).
//! The OK of a data change waits only if it carries an insert id that may depend on such rows.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use cohort_base::{CommitSeq, Reservation};
use cohort_config::VarId;
use cohort_dml::DmlOutcome;
use cohort_expr::{EvalContext, Replication, replication_of};
use cohort_plan::ParamSource;
use cohort_protocol::{ColumnMeta, NullSink, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_query::{Collect, Flow, Freshness, QueryPlan, RowCounts, RowSink, guards, run_query};
use cohort_row::chain_too_long;
use cohort_run::PlanProfile;
use cohort_session::{
    Changed, Conditions, EventKind, ImplicitCommit, Job, SessionState, StatementContext, StatementTraits,
    TransactionState, access, traits_of,
};
use cohort_sql::ast::{self, Statement, Target};
use cohort_sql::{Digest, ParseOptions, PlanKey};
use cohort_table::definition_changed;
use cohort_trx::{Counted, SessionTrx};
use cohort_types::{ErrorCode, Level, SqlError, SqlResult, StoredColumns, Value, Warning, check_stack};

use crate::account_tables;
use crate::cached_plan::{CachedPlan, Planned, counter_of_plan, make_plan};
use crate::frame::kind_of_counters;
use crate::named_tables::{await_definitions, is_of_definitions};
use crate::plan_locks::{check_needs, lock_and_check, tables_used, with_tables_in_use};
use crate::running_plan::MeasuredPlan;
use crate::session::{Session, status_of};
use crate::setup_tables;
use crate::text_logging::run_logged;

/// The outcome of a planned statement.
pub(crate) enum Executed {
    Rows(RowCounts),
    /// SELECT .. INTO variables, with the number of rows.
    Into(u64),
    Changed(DmlOutcome),
    /// The plan is stale: the statement must be planned again.
    Stale,
}

/// Maximum size of a text whose memory is not charged.
const SHORT_TEXT_BYTES: usize = 16 << 10;

/// Parses a text. Its memory is charged to `syntax`.
pub(crate) fn parse_charged(
    text: &[u8],
    options: &ParseOptions,
    syntax: &mut Reservation,
) -> SqlResult<cohort_sql::Parsed> {
    match text.len() <= SHORT_TEXT_BYTES {
        true => cohort_sql::parse(text, options),
        false => cohort_sql::parse_charged(text, options, &mut |bytes| Ok(syntax.resize(bytes as u64)?)),
    }
}

impl Session {
    /// Finds the first statement of a text ([`cohort_sql::next_statement`]). The memory for finding the end
    /// of a stored program is charged while it is needed.
    pub(crate) fn next_statement(&self, sql: &[u8]) -> Option<(Range<usize>, usize)> {
        let mut syntax = None;
        cohort_sql::next_statement(sql, self.state.settings.parse.mode, &mut |bytes| {
            let memory = || Reservation::new(Arc::clone(self.process.memory()));
            Ok(syntax.get_or_insert_with(memory).resize(bytes as u64)?)
        })
    }
}

/// Maximum number of attempts to plan a statement, as DDL statements may come between planning and locking.
pub(crate) const PLAN_ATTEMPTS: usize = 20;

impl Session {
    /// Runs one statement. Returns false if it failed.
    pub(crate) fn run_text(&mut self, text: &[u8], more: bool, sink: &mut dyn ResultSink) -> bool {
        let mut literals = std::mem::take(&mut self.literals);
        let outcome = self.run_one(text, more, &mut literals, sink);
        literals.clear();
        self.literals = literals;
        match outcome {
            Ok(()) => true,
            Err(error) => {
                self.fail(&error, sink);
                false
            }
        }
    }

    fn run_one(
        &mut self,
        text: &[u8],
        more: bool,
        literals: &mut Vec<Value>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        self.begin_command();
        let digest = Digest::of(text, &self.state.settings.parse, literals);
        // Statements of accounts with resource limits bypass the plan cache, because the limits are checked
        // first.
        let digest = digest.filter(|_| self.state.identity.account_limits.is_none());
        let key = digest.map(|digest| PlanKey { digest, session: self.state.settings.plan_key });
        if let Some(key) = key {
            let version = self.state.db.catalog_version();
            if let Some(cached) = self.caches.plans.get(&key, version)
                && cached.fits(literals)
            {
                self.diagnostics.begin();
                if let Some(statement) = cached.statement.get() {
                    self.identify(Arc::clone(statement));
                }
                let job = Job { text, param_at: &[], params: literals, source: ParamSource::Literals, more };
                if self.run_cached(&cached, &job, sink)? {
                    return Ok(());
                }
            }
        } else {
            literals.clear();
        }
        let mut syntax = Reservation::new(Arc::clone(self.process.memory()));
        let parsed = parse_charged(text, &self.state.settings.parse, &mut syntax)
            .inspect_err(|_| self.diagnostics.clear())?;
        if parsed.params > 0 {
            return Err(cohort_session::syntax_error("?"));
        }
        self.identify_text(text, key.is_none());
        let key = key.filter(|_| parsed.cacheable);
        let job = Job { text, param_at: &[], params: literals, source: ParamSource::Literals, more };
        self.limit_examined(parsed.rows_examined.as_ref(), &[]);
        let outcome = self.run_statement(&parsed.statement, &job, key, sink);
        self.state.statement.examined.begin(None);
        outcome
    }

    /// Starts the count of examined rows for a statement with or without LIMIT ROWS EXAMINED.
    pub(crate) fn limit_examined(&self, limit: Option<&ast::Expr>, params: &[Value]) {
        let value = match limit {
            None => return self.state.statement.examined.begin(None),
            Some(ast::Expr::Literal(literal)) => Some(&literal.value),
            Some(ast::Expr::Param(n)) => params.get(*n as usize),
            Some(_) => None,
        };
        let rows = value.and_then(|value| value.to_int(&mut cohort_types::NoWarnings));
        let rows = rows.map_or(0, |rows| u64::try_from(rows.wide()).unwrap_or(0));
        self.state.statement.examined.begin(Some(rows));
    }

    /// Starts a statement: sets its clock, which the caller has read, and the state of the previous statement
    /// that it may refer to.
    pub(crate) fn begin_command(&mut self) {
        self.state.statement.reads_whole_table.set(false);
        // The error of a text that cannot be parsed is also kept here.
        self.diagnostics.set_limit(self.state.settings.env.max_error_count);
        self.set_time();
        self.state.last.warnings = self.diagnostics.total();
        self.state.last.errors = self.diagnostics.errors();
        self.state.last.in_transaction = self.trx.in_transaction();
        self.state.last.insert_id = self.trx.settings.insert_id;
        self.state.last.gtid_seq_no = self.trx.settings.binlog.seq_no.unwrap_or(0);
    }

    /// Sets the time of NOW() to the last clock reading.
    pub(crate) fn set_time(&mut self) {
        self.state.settings.env.now_micros =
            self.state.settings.clock_override.unwrap_or(self.clock_us as i64);
    }

    fn begin_diagnostics(&mut self, statement: &Statement, traits: &StatementTraits) {
        self.diagnostics.set_limit(self.state.settings.env.max_error_count);
        match traits.conditions {
            Conditions::Kept => self.diagnostics.keep(),
            Conditions::Old => self.diagnostics.begin(),
            Conditions::Cleared => self.diagnostics.clear(),
        }
        self.diagnostics.set_row(traits.row_of_rest(statement));
    }

    /// Runs a parsed statement.
    pub(crate) fn run_statement(
        &mut self,
        statement: &Statement,
        job: &Job<'_>,
        key: Option<PlanKey>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        check_stack()?;
        let traits = traits_of(statement);
        self.set_kind(kind_of_counters(counted_traits(statement, traits).counters));
        self.begin_diagnostics(statement, traits);
        cohort_ddl::check_as_parser(&self.state, statement)?;
        self.state.check_account_limits(traits)?;
        self.count(statement, traits);
        cohort_info::check_log_tables(&self.state, statement, traits)?;
        if traits.counts_as_write() && !access::is_about_temporary(&self.state, statement, traits) {
            guards::check_read_only(&self.state)?;
        }
        let commits = traits.commit == ImplicitCommit::Commits;
        if access::refused_in_read_only_transaction(&self.state, statement, traits)
            && self.trx.may_only_read(commits)
        {
            return Err(SqlError::read_only_transaction());
        }
        if commits {
            self.commit_before(statement)?;
        }
        if self.state.transactions.is_on() {
            self.track(statement, job);
        }
        if let Some(table) = account_tables::changed_by(&self.state, statement) {
            return self.change_account_table(table, statement, job, sink);
        }
        if let Some(update) = setup_tables::updated_by(&self.state, statement) {
            return self.update_setup(update, job, sink);
        }
        self.dispatch(statement, traits, job, key, sink)
    }

    /// Commits the open transaction before a statement that commits implicitly.
    pub(crate) fn commit_before(&mut self, statement: &Statement) -> SqlResult<()> {
        self.trx.commit_implicitly()?;
        // SET TRANSACTION applies to the transaction of BEGIN. For any other statement, that transaction is
        // over.
        if !matches!(statement, Statement::Begin(_)) {
            self.trx.forget_next_characteristics();
        }
        Ok(())
    }

    /// Records the effects of the statement on the transaction state, as far as its text shows them.
    fn track(&self, statement: &Statement, job: &Job<'_>) {
        let transactions = &self.state.transactions;
        if !self.trx.in_transaction() {
            transactions.end(self.trx.has_next_characteristics());
        }
        let is_unsafe = |name: &str| replication_of(name) == Replication::Unsafe;
        let mut found = TransactionState::default();
        if cohort_sql::has_unsafe_words(job.text, self.state.settings.parse.mode, is_unsafe) {
            found = found.with(TransactionState::UNSAFE);
        }
        if matches!(statement, Statement::LoadData(_)) {
            found = found.with(TransactionState::WRITE);
        }
        transactions.add(found, self.trx.autocommit());
    }

    /// Counts a statement under its names in SHOW STATUS.
    fn count(&self, statement: &Statement, traits: &StatementTraits) {
        counted_traits(statement, traits)
            .counters
            .iter()
            .for_each(|counter| self.state.db.status.count(*counter));
    }

    /// Plans and runs a query or data change. A reusable plan is added to the cache.
    pub(crate) fn run_plannable(
        &mut self,
        statement: &Statement,
        job: &Job<'_>,
        key: Option<PlanKey>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        for _ in 0..PLAN_ATTEMPTS {
            let Some((plan, version, executed)) = self.plan_and_execute(statement, job, sink)? else {
                continue;
            };
            // Plans that may refer to this session's temporary tables are not cached.
            if let (Some(key), true) = (key, plan.reusable && self.state.temporary.is_empty()) {
                if let Some(statement) = self.known_statement() {
                    // A new plan has no statement yet.
                    let _ = plan.statement.set(Arc::clone(statement));
                }
                let syntax = cohort_sql::syntax_bytes(job.text, self.state.settings.parse.mode);
                self.caches.plans.put(key, version, plan.clone(), plan.memory_bytes(syntax));
            }
            self.report(executed, &plan, job, sink);
            self.frame.planned = Some(plan);
            return Ok(());
        }
        Err(definition_changed())
    }

    /// Like `run_plannable`, but for prepared statements: returns the plan, if it is reusable, and the
    /// catalog's version.
    pub(crate) fn run_and_keep(
        &mut self,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<Option<(Arc<CachedPlan>, u64)>> {
        check_stack()?;
        let traits = traits_of(statement);
        self.set_kind(kind_of_counters(traits.counters));
        self.begin_diagnostics(statement, traits);
        self.count(statement, traits);
        for _ in 0..PLAN_ATTEMPTS {
            let planned = self.plan_and_execute(statement, job, sink)?;
            let Some((plan, version, executed)) = planned else { continue };
            self.report(executed, &plan, job, sink);
            self.frame.planned = Some(Arc::clone(&plan));
            return Ok(plan.reusable.then_some((plan, version)));
        }
        Err(definition_changed())
    }

    /// Plans and runs a statement once. Returns the plan, the version of the catalog that it was made with,
    /// and the outcome. Returns `None` if a DDL statement came between planning and locking.
    fn plan_and_execute(
        &mut self,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<Option<(Arc<CachedPlan>, u64, Executed)>> {
        let catalog = self.state.db.catalog();
        self.in_statement(job, sink, |ctx, sink| {
            ctx.session.set_traced_text(ctx.text);
            let plan = match make_plan(&catalog, ctx.session, job.params, job.source, statement) {
                Ok(plan) => Arc::new(plan),
                Err(error) if is_of_definitions(&error) => {
                    return match await_definitions(ctx, statement, &catalog, error.code)? {
                        Freshness::Stale => {
                            ctx.session.statement.planning_warnings.borrow_mut().clear();
                            Ok(None)
                        }
                        Freshness::Fresh => Err(error),
                    };
                }
                Err(error) => return Err(error),
            };
            ctx.eval.set_row_number(1);
            let executed = execute(ctx, &plan, sink)?;
            let is_stale = matches!(executed, Executed::Stale);
            Ok((!is_stale).then_some((plan, catalog.version, executed)))
        })
    }

    /// Runs a cached plan. Returns false if it is stale.
    pub(crate) fn run_cached(
        &mut self,
        plan: &Arc<CachedPlan>,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<bool> {
        let counter = counter_of_plan(&plan.plan);
        self.set_kind(EventKind::of(counter));
        self.state.db.status.count(counter);
        let executed = self.in_statement(job, sink, |ctx, sink| match check_needs(ctx, plan) {
            Ok(()) => run_plan(ctx, plan, sink),
            // The error depends on the statement's text, so the statement is planned again.
            Err(_) => Ok(Executed::Stale),
        })?;
        let is_current = self.report(executed, plan, job, sink);
        if is_current {
            self.note_cached();
        }
        Ok(is_current)
    }

    /// Calls `run` as one statement of the transaction.
    pub(crate) fn in_statement<T>(
        &mut self,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
        run: impl FnOnce(&mut StatementContext<'_>, &mut dyn ResultSink) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let timestamp = (self.state.settings.env.now_micros / 1_000_000) as u32;
        self.trx.statement_begin(timestamp);
        // The time limit of a program counts for all its statements.
        let is_outermost = !self.programs.is_inside();
        if is_outermost {
            self.begin_deadline();
        }
        let mut ctx = StatementContext {
            db: &self.state.db,
            session: &self.state,
            eval: EvalContext::new(&self.state.settings.env, &self.state, job.params),
            trx: &mut self.trx,
            process: &self.process,
            text: job.text,
            param_at: job.param_at,
            params: job.params,
            source: job.source,
            more: job.more,
            uses_zone: Cell::new(false),
            uses_micros: Cell::new(false),
        };
        let temporary = ctx.session.temporary.epoch();
        let outcome = run(&mut ctx, sink);
        if let Err(error) = &outcome
            && error.code == ErrorCode::GetErrmsg
        {
            ctx.eval.push_warning(Warning::new(chain_too_long()));
        }
        let outcome = outcome.map_err(|error| match error.code {
            ErrorCode::NoSuchTable => error.at_row(0),
            _ => ctx.eval.at_row(error),
        });
        if let Some(warning) = ctx.session.statement.examined.warning() {
            ctx.eval.push_warning(warning);
        }
        let warnings = ctx.eval.take_warnings();
        drop(ctx);
        if is_outermost {
            self.end_deadline();
        }
        self.state.forget_programs();
        if self.state.temporary.epoch() != temporary {
            // Existing plans do not know the session's temporary tables.
            self.state.refresh();
        }
        let has_results_of_programs = self.state.programs.get_mut().has_results();
        if has_results_of_programs && self.state.programs.get_mut().take_cleared() {
            self.diagnostics.drop_old();
        }
        if !self.state.statement.planning_warnings.borrow().is_empty() {
            for warning in self.state.statement.planning_warnings.take() {
                self.diagnostics.push(warning);
            }
        }
        if warnings.total() > 0 {
            self.diagnostics.add_all(&warnings);
        }
        if has_results_of_programs && outcome.is_err() {
            for place in self.state.programs.get_mut().take_places() {
                self.diagnostics.add_after_error(place);
            }
        }
        if let Some(id) = self.state.statement.next_insert_id.take() {
            self.state.settings.env.last_insert_id = id;
        }
        let outcome = self.trx.statement_end(outcome);
        if has_results_of_programs {
            self.keep_variables_of_programs();
        }
        outcome
    }

    /// Sets the variables of the session that functions and triggers of the statement have set.
    fn keep_variables_of_programs(&mut self) {
        let variables = self.state.programs.get_mut().take_variables();
        if variables.is_empty() {
            return;
        }
        for (id, value) in variables {
            self.state.settings.vars.put(id, &value);
            self.state.note_change(Changed::Variable(id));
        }
        self.state.refresh();
        self.apply_settings();
    }

    /// Starts the time limit of a statement.
    pub(crate) fn begin_deadline(&mut self) {
        let seconds_max = self.state.settings.vars.double(VarId::MaxStatementTime);
        let deadline_ns = (seconds_max > 0.0)
            .then(|| self.state.db.clock.monotonic_ns().saturating_add((seconds_max * 1e9) as u64));
        self.trx.set_deadline(deadline_ns);
        self.state.statement.deadline_ns.set(deadline_ns);
    }

    /// Ends the time limit of a statement.
    pub(crate) fn end_deadline(&mut self) {
        self.trx.set_deadline(None);
        self.state.statement.deadline_ns.set(None);
    }

    /// Calls `run` as one statement of the transaction, without a sink for rows.
    pub(crate) fn with_context<T>(
        &mut self,
        job: &Job<'_>,
        run: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        self.in_statement(job, &mut NullSink, |ctx, _| run(ctx))
    }

    /// Reports the outcome of a statement to the client. Returns false if it must be planned again.
    fn report(
        &mut self,
        executed: Executed,
        plan: &CachedPlan,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> bool {
        if plan.reads_tables() {
            self.diagnostics.drop_old();
        }
        self.diagnostics.put_first(&plan.warnings);
        if let Some(profile) = self.state.statement.profile() {
            self.note_plan(&plan.plan, &profile);
        }
        let env = &mut self.state.settings.env;
        match executed {
            Executed::Stale => return false,
            Executed::Rows(counts) => {
                (env.found_rows, env.row_count) = (counts.found, -1);
                self.work.rows_sent = counts.sent;
                if counts.sent == 0 {
                    self.process.counts().count(Counted::EmptyQueries);
                }
                let columns = plan.columns().len();
                let is_news = self.state.statement.columns_sent.get().is_some_and(|sent| sent != columns);
                let mut status = self.status_for(job.more);
                if is_news {
                    status = status.with(StatusFlags::METADATA_CHANGED);
                    self.state.statement.columns_sent.set(Some(columns));
                }
                self.finish_rows(status, self.diagnostics.count_for_client(), sink);
            }
            Executed::Into(rows) => {
                (env.found_rows, env.row_count) =
                    (self.state.statement.rows_found.take().unwrap_or(rows), rows as i64);
                self.send_ok(job.more, rows, 0, "", sink);
            }
            Executed::Changed(outcome) => {
                if let Some(found) = self.state.statement.rows_found.take() {
                    env.found_rows = found;
                }
                if let Some(id) = outcome.generated_id {
                    env.last_insert_id = id;
                    self.work.generated_id.get_or_insert(id);
                }
                if let Some(rows) = outcome.returned {
                    self.work.rows_affected = outcome.affected;
                    self.send_rows(job.more, plan.columns(), &rows, sink);
                    return true;
                }
                let is_generated = outcome.generated_id == Some(outcome.insert_id);
                if outcome.insert_id != 0 && (!is_generated || self.trx.has_passed_counters()) {
                    // The value of LAST_INSERT_ID(expression) may depend on rows that are not durable, and so
                    // may an id generated after one that was computed from them (I5).
                    self.trx.mark_observed();
                }
                let affected = if self.state.info.found_rows { outcome.found } else { outcome.affected };
                env.row_count = affected as i64;
                self.send_ok(job.more, affected, outcome.insert_id, &outcome.info, sink);
            }
        }
        true
    }

    /// Returns the status flags for a result.
    pub(crate) fn status_for(&self, more: bool) -> StatusFlags {
        statement_status(&self.trx, &self.state, more)
    }

    /// Sends an OK packet.
    pub(crate) fn send_ok(
        &mut self,
        more: bool,
        affected: u64,
        insert_id: u64,
        info: &str,
        sink: &mut dyn ResultSink,
    ) {
        if self.state.transactions.is_on() {
            self.settle_transaction();
        }
        self.work.rows_affected = affected;
        self.state.send_changes(sink);
        sink.ok(&OkInfo {
            affected_rows: affected,
            last_insert_id: insert_id,
            status: self.status_for(more),
            warnings: self.diagnostics.count_for_client(),
            info,
        });
    }

    /// Sends the end of a result set.
    pub(crate) fn finish_rows(&self, status: StatusFlags, warnings: u16, sink: &mut dyn ResultSink) {
        // The end of the rows may depend on changes that are not durable (I5).
        self.trx.mark_observed();
        if self.state.transactions.is_on() {
            self.state.transactions.add(TransactionState::ROWS, self.trx.autocommit());
            self.settle_transaction();
        }
        if self.state.has_changes_to_send() && sink.sends_changes_at_end() {
            self.state.send_changes(sink);
        }
        sink.finish(status, warnings);
    }

    fn settle_transaction(&self) {
        let (trx, transactions) = (&self.trx, &self.state.transactions);
        let has_next = trx.has_next_characteristics();
        transactions.update_at_end(trx.in_transaction(), has_next, trx.has_locked_tables());
    }

    /// Sends a complete result set.
    pub(crate) fn send_rows(
        &mut self,
        more: bool,
        columns: &[ColumnMeta],
        rows: &[Vec<Value>],
        sink: &mut dyn ResultSink,
    ) {
        self.send_rows_and(self.diagnostics.count_for_client(), more, columns, rows, sink);
    }

    /// Sends a complete result set with the given number of warnings.
    pub(crate) fn send_rows_and(
        &mut self,
        warnings: u16,
        more: bool,
        columns: &[ColumnMeta],
        rows: &[Vec<Value>],
        sink: &mut dyn ResultSink,
    ) {
        // The rows may depend on changes that are not durable (I5).
        self.trx.mark_observed();
        if rows.is_empty() {
            self.process.counts().count(Counted::EmptyQueries);
        }
        let head = ResultHead { status: self.status_for(more), warnings };
        sink.start(columns, head);
        for row in rows {
            sink.row(row);
        }
        self.work.rows_sent += rows.len() as u64;
        (self.state.settings.env.found_rows, self.state.settings.env.row_count) = (rows.len() as u64, -1);
        self.finish_rows(head.status, warnings, sink);
    }

    /// Plans a statement without running it, for PREPARE and EXPLAIN.
    pub(crate) fn describe(
        &self,
        statement: &Statement,
        params: &[Value],
        source: ParamSource<'_>,
    ) -> SqlResult<CachedPlan> {
        let catalog = self.state.db.catalog();
        let outcome = make_plan(&catalog, &self.state, params, source, statement);
        self.state.statement.planning_warnings.borrow_mut().clear();
        outcome
    }
}

/// Returns the traits of the statement that counts: EXPLAIN counts as the explained statement.
fn counted_traits<'t>(statement: &'t Statement, traits: &'t StatementTraits) -> &'t StatementTraits {
    match statement {
        Statement::Explain { statement, .. } => traits_of(statement),
        _ => traits,
    }
}

/// Returns the status flags for a result: the state of the session, and of the result's statement.
fn statement_status(trx: &SessionTrx, session: &SessionState, more: bool) -> StatusFlags {
    let mut flags = status_of(trx, session);
    if session.statement.reads_whole_table.get() {
        flags = flags.with(StatusFlags::NO_INDEX_USED);
    }
    if more { flags.with(StatusFlags::MORE_RESULTS) } else { flags }
}

/// Runs a new plan.
pub(crate) fn execute(
    ctx: &mut StatementContext<'_>,
    cached: &Arc<CachedPlan>,
    sink: &mut dyn ResultSink,
) -> SqlResult<Executed> {
    check_needs(ctx, cached)?;
    run_plan(ctx, cached, sink)
}

/// Locks the tables and runs the plan. Meanwhile it is shown to SHOW EXPLAIN and SHOW ANALYZE.
fn run_plan(
    ctx: &mut StatementContext<'_>,
    cached: &Arc<CachedPlan>,
    sink: &mut dyn ResultSink,
) -> SqlResult<Executed> {
    let process = ctx.process;
    let is_timed = ctx.session.statement.times_plans.get();
    if is_timed || cached.is_counted || ctx.session.identity.acts_as_definer {
        return run_measured(ctx, cached, is_timed, sink);
    }
    process.plan().during(cached, || run_alone(ctx, cached, sink))
}

/// Variant that measures the work of the plan's parts. Times stay with the statement for its logs.
#[cold]
fn run_measured(
    ctx: &mut StatementContext<'_>,
    cached: &Arc<CachedPlan>,
    is_timed: bool,
    sink: &mut dyn ResultSink,
) -> SqlResult<Executed> {
    let profile = Arc::new(match is_timed {
        true => PlanProfile::timing(cached.parts, ctx.session.statement.planning_ns.take()),
        false => PlanProfile::counting(cached.parts),
    });
    let around = ctx.session.statement.measure(Some(Arc::clone(&profile)));
    let session = ctx.session;
    let definer = session.identity.acts_as_definer.then(|| session.info.account.clone());
    let measured = MeasuredPlan { plan: Arc::clone(cached), profile, definer };
    let outcome = ctx.process.plan().during(&measured, || run_alone(ctx, cached, sink));
    if !is_timed {
        ctx.session.statement.measure(around);
    }
    outcome
}

fn run_alone(
    ctx: &mut StatementContext<'_>,
    cached: &CachedPlan,
    sink: &mut dyn ResultSink,
) -> SqlResult<Executed> {
    let process = ctx.process;
    match cached.only_reads() {
        true => process.while_reading(|| lock_and_run(ctx, cached, sink)),
        false => lock_and_run(ctx, cached, sink),
    }
}

fn lock_and_run(
    ctx: &mut StatementContext<'_>,
    cached: &CachedPlan,
    sink: &mut dyn ResultSink,
) -> SqlResult<Executed> {
    if ctx.session.transactions.is_on() {
        ctx.session.transactions.add(tables_used(&cached.plan), ctx.trx.autocommit());
    }
    if lock_and_check(ctx, cached)? == Freshness::Stale {
        return Ok(Executed::Stale);
    }
    ctx.session.statement.rows_found.set(None);
    with_tables_in_use(ctx, cached, |ctx| run_locked(ctx, cached, sink))
}

#[inline]
fn run_locked(
    ctx: &mut StatementContext<'_>,
    cached: &CachedPlan,
    sink: &mut dyn ResultSink,
) -> SqlResult<Executed> {
    match &cached.plan {
        Planned::Query(plan) => {
            let limit = ctx.session.settings.vars.uint(VarId::SqlSelectLimit);
            if !plan.into.is_empty() {
                return run_into(plan, ctx, limit);
            }
            let status = statement_status(ctx.trx, ctx.session, ctx.more);
            let columns = &plan.columns;
            let mut out = ClientSink { sink, columns, status, started: false };
            let counts = run_query(plan, ctx, limit, &mut out)?;
            out.start(&ctx.eval);
            Ok(Executed::Rows(counts))
        }
        Planned::Insert(plan) => run_logged(ctx, plan.table(), |ctx| plan.run(ctx)).map(Executed::Changed),
        Planned::Update(plan) => run_logged(ctx, plan.table(), |ctx| plan.run(ctx)).map(Executed::Changed),
        Planned::Delete(plan) => run_logged(ctx, plan.table(), |ctx| plan.run(ctx)).map(Executed::Changed),
        Planned::Joined(plan) => plan.run(ctx).map(Executed::Changed),
    }
}

/// Runs SELECT .. INTO @a, @b.
fn run_into(plan: &QueryPlan, ctx: &mut StatementContext<'_>, limit: u64) -> SqlResult<Executed> {
    let mut found = Collect { rows_max: Some(2), ..Collect::default() };
    // The values of local variables are computed like those of SET, as far as no table has a part in them.
    let is_local = plan.into.iter().any(|target| matches!(target, Target::Local(_)));
    if is_local && !plan.reads_tables() {
        ctx.eval.set_abort_on_warning(ctx.session.settings.env.sql_mode.is_strict());
    }
    let outcome = run_query(plan, ctx, limit, &mut found);
    ctx.eval.set_abort_on_warning(false);
    outcome?;
    let mut rows = found.rows.into_iter();
    let first = rows.next();
    if rows.next().is_some() {
        return Err(SqlError::more_than_one_row());
    }
    let Some(values) = first else {
        let error = SqlError::no_data();
        ctx.eval.push_warning(Warning { level: Level::Warning, error });
        return Ok(Executed::Into(0));
    };
    // One target for several values is a row variable.
    for (target, value) in plan.into.iter().cycle().zip(values) {
        ctx.session.assign(target, value)?;
    }
    Ok(Executed::Into(1))
}

/// A sink that sends rows to the client. The header is sent with the first row, so that an error before it is
/// the only response.
struct ClientSink<'c> {
    sink: &'c mut dyn ResultSink,
    columns: &'c [ColumnMeta],
    status: StatusFlags,
    started: bool,
}

impl ClientSink<'_> {
    fn start(&mut self, eval: &EvalContext<'_>) {
        if !self.started {
            self.started = true;
            let warnings = u16::try_from(eval.warning_count()).unwrap_or(u16::MAX);
            self.sink.start(self.columns, ResultHead { status: self.status, warnings });
        }
    }
}

/// Minimum size of a text whose copies are charged.
const LARGE_TEXT_BYTES: usize = 1 << 20;

fn large_bytes(value: &Value) -> usize {
    match value {
        Value::Str(text) if text.bytes.len() > LARGE_TEXT_BYTES => text.bytes.len(),
        _ => 0,
    }
}

impl RowSink for ClientSink<'_> {
    fn row(&mut self, eval: &EvalContext<'_>, _: CommitSeq, values: &mut Vec<Value>) -> SqlResult<Flow> {
        self.start(eval);
        // The packet is a copy of the row.
        let bytes: usize = values.iter().map(large_bytes).sum();
        if bytes > 0 {
            eval.keep(bytes)?;
        }
        self.sink.try_row(values)?;
        if bytes > 0 {
            eval.let_go(bytes);
        }
        Ok(if self.sink.is_dead() { Flow::Stop } else { Flow::Continue })
    }

    fn stored_rows(
        &mut self,
        eval: &EvalContext<'_>,
        _: CommitSeq,
        columns: &StoredColumns<'_>,
        rows: &[&[u8]],
    ) -> SqlResult<Flow> {
        self.start(eval);
        self.sink.stored_rows(columns, rows)?;
        Ok(if self.sink.is_dead() { Flow::Stop } else { Flow::Continue })
    }
}
