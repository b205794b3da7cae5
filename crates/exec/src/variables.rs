//! SET: system variables, user variables, SET NAMES, transaction characteristics.

use std::time::Duration;

use cohort_base::{DomainId, Gtid, ServerId};
use cohort_binlog::event::{flags, rows_flags};
use cohort_config::{Acts, Scope, SessionVars, SetError, SetNote, VarId, VarValue};
use cohort_expr::SessionHooks;
use cohort_protocol::ResultSink;
use cohort_sql::ast::{self, SetItem, SetValue, Statement};
use cohort_types::{Charset, Collation, Level, SqlError, SqlResult, Value, Warning};

use crate::session::Session;
use crate::statement::check_plain;
use cohort_plan::convert;
use cohort_query::guards::check_settable_now;
use cohort_session::access::check_global;
use cohort_session::{Changed, TrackTransaction, check_domains, commits_implicitly, parse_gtids};
use cohort_session::{Job, set_error};
use cohort_table::RowImage;
use cohort_trx::{AccessMode, Isolation};

use crate::variable_values::{charset_by_number, check_time_zone, from_value};

/// Variables that SET STATEMENT refuses.
const NOT_FOR_A_STATEMENT: [&str; 13] = [
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_filesystem",
    "collation_connection",
    "interactive_timeout",
    "profiling",
    "profiling_history_size",
    "query_cache_type",
    "skip_replication",
    "sql_log_off",
    "tx_isolation",
    "wait_timeout",
];

/// Values that SET STATEMENT restores: the variables, and other state that setting them has changed.
struct BeforeStatement {
    vars: SessionVars,
    clock_override: Option<i64>,
    last_insert_id: u64,
    insert_id: u64,
    gtid_seq_no: Option<u64>,
    next_isolation: Option<Isolation>,
    next_access_mode: Option<cohort_trx::AccessMode>,
}

/// One item of SET, evaluated and checked.
enum Step<'i> {
    UserVariable {
        name: &'i str,
        value: Value,
    },
    Variable {
        scope: Scope,
        name: &'i str,
        /// `None` for DEFAULT.
        value: Option<VarValue>,
    },
    /// `@@tx_isolation`, `@@tx_read_only` without a scope: apply to the next transaction only.
    NextTransaction {
        id: VarId,
        name: &'i str,
        /// `None` for DEFAULT.
        value: Option<VarValue>,
    },
    /// An item without a value to evaluate.
    Other(&'i SetItem),
}

/// Returns whether a replica has the value from the event's group instead: the text of an event is that of
/// the client, and these cannot be set within the group's transaction.
fn is_of_source(item: &SetItem) -> bool {
    const NAMES: [&str; 6] =
        ["binlog_format", "gtid_domain_id", "gtid_seq_no", "server_id", "skip_replication", "sql_log_bin"];
    matches!(item, SetItem::Variable { name, .. } if NAMES.iter().any(|own| name.eq_ignore_ascii_case(own)))
}

impl Session {
    /// Runs SET item by item, after a check of all. If an item still fails, those before it stay set, as in
    /// MariaDB.
    pub(crate) fn set_items(&mut self, items: &[SetItem], job: &Job<'_>) -> SqlResult<()> {
        let steps: Vec<Step<'_>> =
            items.iter().map(|item| self.check_item(item, job)).collect::<SqlResult<_>>()?;
        let outcome = steps.into_iter().try_for_each(|step| self.set_item(step, job));
        self.state.refresh();
        self.apply_settings();
        outcome
    }

    /// Runs SET STATEMENT var = value FOR statement. Error 1971 for a variable that it does not support.
    pub(crate) fn set_statement(
        &mut self,
        items: &[SetItem],
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let of_applier;
        let items = match self.state.identity.is_applier {
            true => {
                of_applier = items.iter().filter(|item| !is_of_source(item)).cloned().collect::<Vec<_>>();
                &of_applier[..]
            }
            false => items,
        };
        for item in items {
            if let SetItem::Variable { value: SetValue::Expr(expr), .. } = item {
                check_plain(expr, "SET STATEMENT")?;
            }
        }
        let (mut ids, mut refused) = (Vec::with_capacity(items.len()), None);
        for item in items {
            let SetItem::Variable { name, .. } = item else { continue };
            // MariaDB finds unknown names while it parses, and the other errors after the implicit commit.
            let id = cohort_config::settable(name, Scope::Session);
            if let Err(unknown @ SetError::Unknown(_)) = id {
                return Err(set_error(unknown));
            }
            ids.extend(id.ok());
            if NOT_FOR_A_STATEMENT.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                refused.get_or_insert_with(|| SqlError::not_in_set_statement(&name.to_ascii_lowercase()));
            }
        }
        self.run_with_settings(&ids, (statement, job, sink), |session, sink| {
            refused.map_or(Ok(()), Err)?;
            session.set_items(items, job)?;
            // The statement's time was already set.
            session.state.settings.env.now_micros =
                session.state.settings.clock_override.unwrap_or(session.clock_us as i64);
            sink.results(session.state.results_collation());
            Ok(())
        })
    }

    /// Runs a statement with the lock timeouts of its WAIT n or NOWAIT clause.
    pub(crate) fn with_lock_wait(
        &mut self,
        seconds: u64,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let ids = [VarId::LockWaitTimeout, VarId::InnodbLockWaitTimeout];
        self.run_with_settings(&ids, (statement, job, sink), |session, _| {
            for id in ids {
                session.state.settings.vars.put(id, &VarValue::UInt(seconds));
            }
            session.apply_settings();
            Ok(())
        })
    }

    /// Runs a statement with the variables that `set` sets, then restores variables `ids` and the state that
    /// they have changed. Other variables that the statement sets keep their values.
    ///
    /// A statement that commits implicitly does so after the variables are set. If they cannot be set, the
    /// transaction is committed nevertheless, as in MariaDB.
    fn run_with_settings(
        &mut self,
        ids: &[VarId],
        (statement, job, sink): (&Statement, &Job<'_>, &mut dyn ResultSink),
        set: impl FnOnce(&mut Session, &mut dyn ResultSink) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let before = self.before_statement();
        let outcome = set(self, sink);
        let given = self.state.settings.vars.clone();
        let outcome = match outcome {
            Ok(()) => self.run_statement(statement, job, None, sink),
            Err(error) if commits_implicitly(statement) => self.commit_before(statement).and(Err(error)),
            Err(error) => Err(error),
        };
        self.state.settings.vars.take_back(&before.vars, &given, ids);
        ids.iter().for_each(|id| self.take_back(*id, &before));
        self.state.refresh();
        self.apply_settings();
        sink.results(self.state.results_collation());
        outcome
    }

    fn before_statement(&self) -> BeforeStatement {
        let settings = &self.trx.settings;
        BeforeStatement {
            vars: self.state.settings.vars.clone(),
            clock_override: self.state.settings.clock_override,
            last_insert_id: self.state.settings.env.last_insert_id,
            insert_id: settings.insert_id,
            gtid_seq_no: settings.binlog.seq_no,
            next_isolation: settings.next_isolation,
            next_access_mode: settings.next_access_mode,
        }
    }

    /// Restores state that setting the variable has changed directly.
    fn take_back(&mut self, id: VarId, before: &BeforeStatement) {
        let settings = &mut self.trx.settings;
        match id {
            VarId::Timestamp => self.state.settings.clock_override = before.clock_override,
            VarId::LastInsertId | VarId::Identity => {
                self.state.settings.env.last_insert_id = before.last_insert_id
            }
            VarId::InsertId => settings.insert_id = before.insert_id,
            VarId::GtidSeqNo => settings.binlog.seq_no = before.gtid_seq_no,
            VarId::TransactionIsolation | VarId::TxIsolation => {
                settings.next_isolation = before.next_isolation;
            }
            VarId::TransactionReadOnly | VarId::TxReadOnly => {
                settings.next_access_mode = before.next_access_mode;
            }
            VarId::CohortTrace if self.state.settings.vars.flag(VarId::CohortTrace) => self.begin_trace(),
            VarId::CohortTrace => {}
            VarId::SessionTrackTransactionInfo => self.apply_transaction_tracking(),
            _ => {}
        }
    }

    fn apply_transaction_tracking(&mut self) {
        let wanted = match self.state.settings.vars.uint(VarId::SessionTrackTransactionInfo) {
            0 => TrackTransaction::Off,
            1 => TrackTransaction::State,
            _ => TrackTransaction::Characteristics,
        };
        self.state.transactions.set(wanted);
    }

    /// Evaluates and checks an item. No item is set before all items of the statement are checked.
    fn check_item<'i>(&mut self, item: &'i SetItem, job: &Job<'_>) -> SqlResult<Step<'i>> {
        match item {
            SetItem::UserVariable { name, value } => {
                Ok(Step::UserVariable { name, value: self.eval_alone(value, job)? })
            }
            SetItem::Variable { scope, name, value } => self.check_variable(*scope, name, value, job),
            SetItem::Names { charset, collation } => {
                names(charset.as_deref(), collation.as_deref()).map(|_| Step::Other(item))
            }
            SetItem::CharacterSet(charset) => names(charset.as_deref(), None).map(|_| Step::Other(item)),
            SetItem::Role(role) => self.state.check_role(role.as_deref()).map(|()| Step::Other(item)),
            other => Ok(Step::Other(other)),
        }
    }

    fn set_item(&mut self, step: Step<'_>, job: &Job<'_>) -> SqlResult<()> {
        let item = match step {
            Step::UserVariable { name, value } => {
                self.state.note_change(Changed::Other);
                return self.state.set_user_variable(name, value);
            }
            Step::Variable { scope, name, value } => {
                self.audit_before(name, job);
                return self.set_variable(scope, name, value);
            }
            Step::NextTransaction { id, name, value } => return self.set_next(id, name, value),
            Step::Other(item) => item,
        };
        match item {
            SetItem::UserVariable { .. } | SetItem::Variable { .. } => {
                unreachable!("steps of their own")
            }
            SetItem::Names { charset, collation } => self.set_names(charset.as_deref(), collation.as_deref()),
            SetItem::CharacterSet(charset) => self.set_names(charset.as_deref(), None),
            SetItem::Transaction { scope, isolation, access } => {
                self.set_transaction(*scope, *isolation, *access)
            }
            SetItem::Role(role) => {
                self.state.set_role(role.as_deref())?;
                self.bind_writer();
                self.state.note_change(Changed::Other);
                Ok(())
            }
            SetItem::DefaultRole { role, account } => self
                .with_context(job, |ctx| cohort_ddl::set_default_role(ctx, role.as_ref(), account.as_ref())),
            SetItem::Password { account, password } => {
                self.with_context(job, |ctx| cohort_ddl::set_password(ctx, account.as_ref(), password))
            }
        }
    }

    fn check_variable<'i>(
        &mut self,
        scope: ast::VariableScope,
        name: &'i str,
        value: &SetValue,
        job: &Job<'_>,
    ) -> SqlResult<Step<'i>> {
        let is_without_scope = scope == ast::VariableScope::Unspecified;
        let scope = match scope {
            ast::VariableScope::Global => Scope::Global,
            _ => Scope::Session,
        };
        let id = self.settable(name, scope)?;
        match scope {
            Scope::Session => check_settable_now(id, self.trx.in_transaction())?,
            Scope::Global => {
                // It resets the binary log.
                if id == VarId::GtidBinlogState && *value == SetValue::Default {
                    return Err(SqlError::no_default_of_variable(name));
                }
                if id == VarId::GtidBinlogState && self.trx.in_transaction() {
                    return Err(SqlError::not_in_transaction());
                }
                let callbacks = self.state.db.callbacks.read().clone();
                callbacks.map_or(Ok(()), |callbacks| callbacks.check_settable(id))?;
            }
        }
        if id == VarId::ReadOnly {
            // It would wait for the session's own locks.
            let trx = &self.trx;
            if trx.has_locked_tables() || trx.in_transaction() || trx.backup_stage().is_some() {
                return Err(cohort_trx::active_locks());
            }
        }
        let value = match value {
            SetValue::Default => None,
            SetValue::Word(word) => Some(VarValue::text(word)),
            SetValue::Expr(expr) => Some(from_value(&self.eval_alone(expr, job)?)),
        };
        let value = value.map(|value| charset_by_number(id, value));
        let value = match value {
            Some(VarValue::Text(word))
                if id == VarId::EventScheduler && word.eq_ignore_ascii_case("ORIGINAL") =>
            {
                self.state.db.event_scheduler_at_start.get().cloned()
            }
            value => value,
        };
        if let (VarId::TimeZone, Some(value)) = (id, &value) {
            check_time_zone(value)?;
        }
        if let Some(VarValue::Text(list)) = &value {
            check_rules(id, list)?;
        }
        self.state.settings.vars.check(name, scope, value.as_ref()).map_err(set_error)?;
        match (id, &value) {
            (VarId::GtidSeqNo, Some(VarValue::UInt(n))) => self.check_gtid(*n)?,
            (VarId::GtidSeqNo, Some(VarValue::Int(n))) => self.check_gtid(n.unsigned_abs())?,
            _ => {}
        }
        if id == VarId::EventScheduler {
            self.check_event_scheduler(value.as_ref())?;
        }
        let is_of_transaction = matches!(
            id,
            VarId::TransactionIsolation | VarId::TxIsolation | VarId::TransactionReadOnly | VarId::TxReadOnly
        );
        if is_of_transaction && is_without_scope {
            if self.trx.in_transaction() {
                return Err(unchangeable_now());
            }
            return Ok(Step::NextTransaction { id, name, value });
        }
        Ok(Step::Variable { scope, name, value })
    }

    /// Error 1290 if the server was started without an event scheduler, 1231 for switching to that state.
    fn check_event_scheduler(&self, value: Option<&VarValue>) -> SqlResult<()> {
        let is_disabled = |value: &VarValue| match value {
            VarValue::Text(text) => text.eq_ignore_ascii_case("DISABLED"),
            VarValue::Int(number) => *number == 2,
            VarValue::UInt(number) => *number == 2,
            VarValue::Null | VarValue::Bool(_) | VarValue::Double(_) => false,
        };
        if is_disabled(&self.state.db.globals.value(VarId::EventScheduler)) {
            return Err(SqlError::prevented_by_option("--event-scheduler=DISABLED or --skip-grant-tables"));
        }
        match value.filter(|value| is_disabled(value)) {
            Some(value) => Err(SqlError::wrong_variable_value("event_scheduler", &value.to_string())),
            None => Ok(()),
        }
    }

    /// Sets a property of the next transaction only, by the name of a variable.
    fn set_next(&mut self, id: VarId, name: &str, value: Option<VarValue>) -> SqlResult<()> {
        let mut with_it = self.state.settings.vars.clone();
        match value {
            Some(value) => drop(with_it.set(name, Scope::Session, &value).map_err(set_error)?),
            None => with_it.set_default(name, Scope::Session).map_err(set_error)?,
        }
        let settings = &mut self.trx.settings;
        match id {
            VarId::TransactionReadOnly | VarId::TxReadOnly => {
                settings.next_access_mode = Some(access_mode_of(&with_it));
            }
            _ => settings.next_isolation = Some(isolation_of(&with_it)),
        }
        Ok(())
    }

    /// Writes a SET that redirects or ends the audit log to that log before it takes effect. A SET of the
    /// audited users is logged for every user.
    fn audit_before(&self, name: &str, job: &Job<'_>) {
        const ENDS: [&str; 3] =
            ["server_audit_logging", "server_audit_file_path", "server_audit_output_type"];
        const USERS: [&str; 2] = ["server_audit_incl_users", "server_audit_excl_users"];
        let is_one_of = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        if !self.state.db.audit.is_on() {
            return;
        }
        if is_one_of(&ENDS) {
            self.state.audit_ended(job.text, 0);
        }
        self.state.log.always_audits.set(is_one_of(&USERS));
    }

    /// Sets a variable. A SET of `read_only` waits for commits in progress, like FLUSH TABLES WITH READ LOCK,
    /// and blocks other commits until the value is set: no commit may follow the reply that `read_only`
    /// should have prevented.
    fn set_variable(&mut self, scope: Scope, name: &str, value: Option<VarValue>) -> SqlResult<()> {
        let id = cohort_config::settable(name, scope).map_err(set_error)?;
        if id != VarId::ReadOnly {
            return self.set_variable_now(id, scope, name, value);
        }
        self.trx.keep_others_from_committing()?;
        let outcome = self.set_variable_now(id, scope, name, value);
        self.trx.let_others_commit();
        outcome
    }

    fn set_variable_now(
        &mut self,
        id: VarId,
        scope: Scope,
        name: &str,
        value: Option<VarValue>,
    ) -> SqlResult<()> {
        let Some(value) = value else {
            self.state.settings.vars.set_default(name, scope).map_err(set_error)?;
            return self.variable_changed(id, scope, None);
        };
        match self.state.settings.vars.set(name, scope, &value).map_err(set_error)? {
            SetNote::Exact => self.note_missing_effect(id, name, scope),
            SetNote::Adjusted(text) => {
                let error = SqlError::truncated_wrong_value(&text);
                self.diagnostics.push(Warning { level: Level::Warning, error });
            }
        }
        self.variable_changed(id, scope, Some(&value))
    }

    /// Returns the variable that a SET of this name changes. Error 1227 if the account may not set it.
    fn settable(&self, name: &str, scope: Scope) -> SqlResult<VarId> {
        let id = cohort_config::settable(name, scope).map_err(set_error)?;
        let admins = id.setting().admins(scope);
        if !admins.is_empty() {
            check_global(&self.state, admins)?;
        }
        Ok(id)
    }

    /// Adds a note if the value has no effect: like MariaDB, the server accepts it.
    fn note_missing_effect(&mut self, id: VarId, name: &str, scope: Scope) {
        let setting = id.setting();
        let Some(why) = setting.missing_effect() else { return };
        if self.state.settings.vars.get(name, Some(scope)) == Ok(setting.default_value()) {
            return;
        }
        let error = SqlError::setting_has_no_effect(&name.to_ascii_lowercase(), why);
        self.diagnostics.push(Warning { level: Level::Note, error });
    }

    /// Applies the immediate effects of a changed variable. `apply_settings` does the rest.
    fn variable_changed(&mut self, id: VarId, scope: Scope, value: Option<&VarValue>) -> SqlResult<()> {
        let acts = id.setting().acts_in();
        if scope == Scope::Global {
            if acts != Acts::Global {
                return Ok(());
            }
            let callbacks = self.state.db.callbacks.read().clone();
            for error in callbacks.map_or(Ok(Vec::new()), |callbacks| callbacks.global_changed(id))? {
                self.diagnostics.push(Warning { level: Level::Warning, error });
            }
            return Ok(());
        }
        self.state.note_change(Changed::Variable(id));
        if acts == Acts::Session { self.session_variable_changed(id.canonical(), value) } else { Ok(()) }
    }

    /// Applies a changed variable that acts in the session at once.
    fn session_variable_changed(&mut self, id: VarId, value: Option<&VarValue>) -> SqlResult<()> {
        match id {
            // SET SESSION applies to the next transaction, too.
            VarId::TransactionIsolation => self.trx.settings.next_isolation = None,
            VarId::TransactionReadOnly => self.trx.settings.next_access_mode = None,
            VarId::Autocommit => {
                let vars = &mut self.state.settings.vars;
                let on = vars.flag(VarId::Autocommit);
                // It stays off if the transaction cannot be committed.
                self.trx
                    .set_autocommit(on)
                    .inspect_err(|_| vars.put(VarId::Autocommit, &VarValue::Bool(false)))?;
            }
            VarId::Timestamp => {
                let seconds = match value {
                    Some(_) => self.state.settings.vars.double(VarId::Timestamp),
                    None => 0.0,
                };
                self.state.settings.clock_override = (seconds > 0.0).then_some((seconds * 1e6) as i64);
            }
            VarId::LastInsertId => {
                self.state.settings.env.last_insert_id = self.state.settings.vars.uint(VarId::LastInsertId);
            }
            VarId::CohortTrace if self.state.settings.vars.flag(VarId::CohortTrace) => self.begin_trace(),
            VarId::CohortTrace => {}
            VarId::SessionTrackTransactionInfo => self.apply_transaction_tracking(),
            VarId::InsertId => self.trx.settings.insert_id = self.state.settings.vars.uint(VarId::InsertId),
            VarId::GtidSeqNo => {
                let n = self.state.settings.vars.uint(VarId::GtidSeqNo);
                self.trx.settings.binlog.seq_no = (n > 0).then_some(n);
            }
            other => debug_assert!(false, "{other:?} acts in the session, and is not applied"),
        }
        Ok(())
    }

    /// Refuses a sequence number that does not increase, under `gtid_strict_mode`.
    fn check_gtid(&self, seq_no: u64) -> SqlResult<()> {
        if seq_no == 0 || !self.state.settings.vars.globals().flag(VarId::GtidStrictMode) {
            return Ok(());
        }
        let gtid = Gtid {
            domain: DomainId(self.state.settings.vars.uint(VarId::GtidDomainId) as u32),
            server: ServerId(self.state.settings.vars.uint(VarId::ServerId) as u32),
            seq_no,
        };
        self.state.db.commit.check_gtid_order(gtid).map_err(cohort_trx::commit_error)
    }

    fn set_names(&mut self, charset: Option<&str>, collation: Option<&str>) -> SqlResult<()> {
        let (charset, collation) = names(charset, collation)?;
        let name = VarValue::text(charset.name());
        for id in [VarId::CharacterSetClient, VarId::CharacterSetResults, VarId::CharacterSetConnection] {
            self.state.settings.vars.put(id, &name);
        }
        self.state.settings.vars.put(VarId::CollationConnection, &VarValue::text(collation.name()));
        self.state.settings.client_collation = collation;
        // Session trackers report them in MariaDB's order.
        use VarId::*;
        for id in [CharacterSetConnection, CharacterSetClient, CharacterSetResults, CollationConnection] {
            self.state.note_change(Changed::Variable(id));
        }
        Ok(())
    }

    fn set_transaction(
        &mut self,
        scope: ast::VariableScope,
        isolation: Option<ast::IsolationLevel>,
        access: Option<ast::AccessMode>,
    ) -> SqlResult<()> {
        if scope == ast::VariableScope::Unspecified {
            if self.trx.in_transaction() {
                return Err(unchangeable_now());
            }
            let settings = &mut self.trx.settings;
            settings.next_isolation = isolation.map(isolation_level).or(settings.next_isolation);
            let access = access.map(crate::statement::access_mode);
            settings.next_access_mode = access.or(settings.next_access_mode);
            if self.state.transactions.is_on() {
                self.state.transactions.next(isolation, access);
            }
            return Ok(());
        }
        let scope = if scope == ast::VariableScope::Global { Scope::Global } else { Scope::Session };
        if let Some(level) = isolation {
            self.settable("transaction_isolation", scope)?;
            let value = VarValue::UInt(level as u64);
            self.state.settings.vars.set("transaction_isolation", scope, &value).map_err(set_error)?;
            self.variable_changed(VarId::TransactionIsolation, scope, Some(&value))?;
        }
        if let Some(access) = access {
            self.settable("transaction_read_only", scope)?;
            let value = VarValue::Bool(access == ast::AccessMode::ReadOnly);
            self.state.settings.vars.set("transaction_read_only", scope, &value).map_err(set_error)?;
            self.variable_changed(VarId::TransactionReadOnly, scope, Some(&value))?;
        }
        Ok(())
    }

    /// Copies the variables that affect transactions to the transaction's settings.
    pub(crate) fn apply_settings(&mut self) {
        let vars = &self.state.settings.vars;
        let settings = &mut self.trx.settings;
        settings.isolation = isolation_of(vars);
        settings.access_mode = access_mode_of(vars);
        settings.row_lock_wait = Duration::from_secs(vars.uint(VarId::InnodbLockWaitTimeout));
        settings.metadata_lock_wait = Duration::from_secs(vars.uint(VarId::LockWaitTimeout));
        settings.rollback_on_timeout = vars.flag(VarId::InnodbRollbackOnTimeout);
        settings.snapshot_isolation = vars.flag(VarId::InnodbSnapshotIsolation);
        settings.time_zone = self.state.settings.env.time_zone.clone();
        settings.auto_increment_increment = vars.uint(VarId::AutoIncrementIncrement);
        settings.auto_increment_offset = vars.uint(VarId::AutoIncrementOffset);
        let binlog = &mut settings.binlog;
        binlog.on = vars.globals().flag(VarId::LogBin) && vars.flag(VarId::SqlLogBin);
        // STATEMENT is 1, MIXED is 0.
        binlog.as_text = vars.uint(VarId::BinlogFormat) == 1;
        binlog.annotate = vars.flag(VarId::BinlogAnnotateRowEvents);
        binlog.row_image = match vars.uint(VarId::BinlogRowImage) {
            0 => RowImage::Minimal,
            1 => RowImage::NoBlob,
            _ => RowImage::Full,
        };
        binlog.rows_flags = 0;
        for (id, flag) in [
            (VarId::ForeignKeyChecks, rows_flags::NO_FOREIGN_KEY_CHECKS),
            (VarId::UniqueChecks, rows_flags::RELAXED_UNIQUE_CHECKS),
        ] {
            binlog.rows_flags |= if vars.flag(id) { 0 } else { flag };
        }
        binlog.event_flags = if vars.flag(VarId::SkipReplication) { flags::SKIP_REPLICATION } else { 0 };
        binlog.allow_parallel = !vars.flag(VarId::SkipParallelReplication);
        binlog.domain = DomainId(vars.uint(VarId::GtidDomainId) as u32);
        binlog.server = ServerId(vars.uint(VarId::ServerId) as u32);
        self.state.log.binlog.borrow_mut().clone_from(binlog);
        // A session starts with the global value; only a change ends a transaction.
        let autocommit = vars.flag(VarId::Autocommit);
        if autocommit != self.trx.autocommit() && !self.trx.in_transaction() {
            // Without an open transaction there is no commit that could fail.
            let _ = self.trx.set_autocommit(autocommit);
        }
    }
}

/// Returns error 1568.
fn unchangeable_now() -> SqlError {
    SqlError::transaction_in_progress()
}

fn isolation_of(vars: &SessionVars) -> Isolation {
    match vars.uint(VarId::TransactionIsolation) {
        0 => Isolation::ReadUncommitted,
        1 => Isolation::ReadCommitted,
        2 => Isolation::RepeatableRead,
        _ => Isolation::Serializable,
    }
}

fn access_mode_of(vars: &SessionVars) -> AccessMode {
    match vars.flag(VarId::TransactionReadOnly) {
        true => AccessMode::ReadOnly,
        false => AccessMode::ReadWrite,
    }
}

fn isolation_level(level: ast::IsolationLevel) -> Isolation {
    match level {
        ast::IsolationLevel::ReadUncommitted => Isolation::ReadUncommitted,
        ast::IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
        ast::IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
        ast::IsolationLevel::Serializable => Isolation::Serializable,
    }
}

/// Checks replication rules and GTID lists. A rule for tables must contain `.`, a rewrite rule for schemas
/// `->`: error 1210.
pub(crate) fn check_rules(id: VarId, list: &str) -> SqlResult<()> {
    let needs = match id {
        VarId::GtidBinlogState => return parse_gtids(list).map(drop),
        VarId::GtidSlavePos => return check_domains(&parse_gtids(list)?),
        VarId::ReplicateDoTable
        | VarId::ReplicateIgnoreTable
        | VarId::ReplicateWildDoTable
        | VarId::ReplicateWildIgnoreTable => ".",
        VarId::ReplicateRewriteDb => "->",
        _ => return Ok(()),
    };
    match list.split(',').all(|rule| rule.trim().is_empty() || rule.contains(needs)) {
        true => Ok(()),
        false => Err(SqlError::wrong_arguments("SET")),
    }
}
/// Returns character set and collation of SET NAMES.
fn names(charset: Option<&str>, collation: Option<&str>) -> SqlResult<(Charset, Collation)> {
    let charset = match charset {
        Some(name) => convert::charset(name)?,
        None => Charset::Utf8mb4,
    };
    let collation = match collation {
        Some(name) => Collation::by_name_in(charset, name).ok_or_else(|| {
            match Collation::by_name_in(Charset::Utf8mb4, name) {
                Some(_) => SqlError::collation_mismatch(name, charset.name()),
                None => SqlError::unknown_collation(name),
            }
        })?,
        None => charset.default_collation(),
    };
    if charset.mbminlen() > 1 {
        let error = SetError::WrongValue("character_set_client", charset.name().to_owned());
        return Err(set_error(error));
    }
    if collation.charset() != charset {
        return Err(SqlError::collation_mismatch(collation.name(), charset.name()));
    }
    Ok((charset, collation))
}
