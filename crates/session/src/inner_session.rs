//! The session as a stored function or a trigger sees it ([`InnerSession`]).
//!
//! A statement reads its session, whose settings are fixed while it runs. So a program that runs inside of a
//! statement has a state of its own, with the identity of the definer, the settings of the program, and its
//! database. What belongs to the connection is in cells. These are exchanged with those of the calling state
//! while the program runs, and exchanged again at its end, also after a panic.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use cohort_base::Reservation;
use cohort_catalog::{AccountName, ProgramSettings};
use cohort_config::{VarId, VarValue};
use cohort_types::{SqlError, SqlResult};

use crate::called_programs::CalledPrograms;
use crate::optimizer_trace::OptimizerTraces;
use crate::session_state::{Identity, SessionLog, SessionState, Settings};
use crate::statement_state::StatementState;
use crate::transaction_track::TransactionTracker;
use crate::user_locks::UserLocks;

/// Maximum number of states that a statement keeps for programs that it calls again.
const KEPT_MAX: usize = 8;

/// The account, settings and database of a program.
#[derive(Clone, Copy)]
pub struct ProgramContext<'p> {
    /// `None` for SQL SECURITY INVOKER.
    pub definer: Option<&'p AccountName>,
    pub settings: &'p ProgramSettings,
    pub schema: &'p str,
}

/// A state that the next call of the same program uses again.
pub struct KeptInner {
    definer: Option<AccountName>,
    settings: ProgramSettings,
    schema: Arc<str>,
    /// Hashes of the settings that the state was made from, and of its own.
    from_key: u64,
    own_key: u64,
    state: Box<SessionState>,
}

impl KeptInner {
    fn is_for(&self, outer: &SessionState, of: ProgramContext<'_>) -> bool {
        self.from_key == outer.settings.plan_key
            && self.settings == *of.settings
            && *self.schema == *of.schema
            && self.definer.as_ref() == of.definer
    }
}

/// The state of a session inside a statement, while a function or a trigger runs.
pub struct InnerSession<'o> {
    outer: &'o SessionState,
    /// `None` once it is dropped.
    inner: Option<KeptInner>,
}

impl<'o> InnerSession<'o> {
    /// Begins a program. Error 1449 if its definer does not exist.
    pub fn begin(outer: &'o SessionState, of: ProgramContext<'_>) -> SqlResult<InnerSession<'o>> {
        let kept = {
            let mut kept = outer.kept_inner.borrow_mut();
            if !outer.programs.borrow().variables().is_empty() {
                // Programs have set variables since it was made.
                kept.clear();
            }
            let found = kept.iter().position(|kept| kept.is_for(outer, of));
            found.map(|at| kept.swap_remove(at))
        };
        let inner = match kept {
            Some(mut kept) => {
                let (env, from) = (&mut kept.state.settings.env, &outer.settings.env);
                (env.last_insert_id, env.row_count, env.found_rows) =
                    (from.last_insert_id, from.row_count, from.found_rows);
                kept.state.last = outer.last;
                kept
            }
            None => {
                let state = Box::new(outer.for_program(of)?);
                KeptInner {
                    definer: of.definer.cloned(),
                    settings: *of.settings,
                    schema: of.schema.into(),
                    from_key: outer.settings.plan_key,
                    own_key: state.settings.plan_key,
                    state,
                }
            }
        };
        outer.exchange(&inner.state);
        Ok(InnerSession { outer, inner: Some(inner) })
    }

    fn kept(&self) -> &KeptInner {
        self.inner.as_ref().expect("the program runs")
    }
}

impl Drop for InnerSession<'_> {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        self.outer.exchange(&inner.state);
        let mut kept = self.outer.kept_inner.borrow_mut();
        if inner.state.settings.plan_key == inner.own_key && kept.len() < KEPT_MAX {
            kept.push(inner);
        }
    }
}

impl Deref for InnerSession<'_> {
    type Target = SessionState;

    fn deref(&self) -> &SessionState {
        &self.kept().state
    }
}

impl DerefMut for InnerSession<'_> {
    fn deref_mut(&mut self) -> &mut SessionState {
        &mut self.inner.as_mut().expect("the program runs").state
    }
}

impl SessionState {
    /// Returns a state for a program that runs inside the running statement.
    fn for_program(&self, of: ProgramContext<'_>) -> SqlResult<SessionState> {
        let mut info = self.info.clone();
        let acts_for_others = self.identity.is_applier || self.identity.acts_for_server;
        let other = of.definer.filter(|definer| !acts_for_others && **definer != self.info.account);
        if let Some(definer) = other.filter(|definer| !self.db.catalog().accounts.contains_key(*definer)) {
            return Err(SqlError::unknown_definer(&definer.0, &definer.1));
        }
        let identity = match other {
            None => Identity {
                acts_as_definer: self.identity.acts_as_definer,
                account_limits: None,
                role: self.identity.role.clone(),
                access: RefCell::new(self.identity.access.borrow().clone()),
                is_applier: self.identity.is_applier,
                acts_for_server: self.identity.acts_for_server,
                is_setup: self.identity.is_setup,
            },
            Some(definer) => {
                info.account.clone_from(definer);
                // A role runs as an account without a host that has its own privileges.
                let role = definer.1.is_empty().then(|| definer.0.clone());
                Identity { role, acts_as_definer: true, ..Identity::default() }
            }
        };
        let current = &self.settings;
        let mut vars = current.vars.clone();
        let mut is_changed = other.is_some() || self.current_schema.as_deref() != Some(of.schema);
        let mut put = |id: VarId, value: VarValue| {
            if vars.value(id) != value {
                vars.put(id, &value);
                is_changed = true;
            }
        };
        for (id, value) in self.programs.borrow().variables() {
            put(*id, value.clone());
        }
        let settings = of.settings;
        if current.env.sql_mode != settings.sql_mode {
            put(VarId::SqlMode, VarValue::UInt(settings.sql_mode.0));
        }
        let (client, connection) = (settings.client, settings.connection);
        put(VarId::CharacterSetClient, VarValue::text(client.charset().name()));
        put(VarId::CharacterSetConnection, VarValue::text(connection.charset().name()));
        put(VarId::CollationConnection, VarValue::text(connection.name()));
        put(VarId::CharacterSetDatabase, VarValue::text(settings.database.charset().name()));
        put(VarId::CollationDatabase, VarValue::text(settings.database.name()));
        let party = Arc::clone(&self.party);
        let user_locks =
            UserLocks::new(Arc::clone(&self.db), info.id.0, Arc::clone(&party), Arc::clone(&self.memory));
        let mut inner = SessionState {
            db: Arc::clone(&self.db),
            info,
            settings: Settings {
                vars,
                env: current.env.clone(),
                parse: current.parse,
                plan_key: current.plan_key,
                clock_override: current.clock_override,
                client_collation: current.client_collation,
                named_charsets: Cell::default(),
            },
            current_schema: Some(of.schema.into()),
            user_variables: RefCell::default(),
            user_variable_memory: RefCell::new(Reservation::new(Arc::clone(&self.memory))),
            memory: Arc::clone(&self.memory),
            trace: RefCell::default(),
            optimizer: OptimizerTraces::default(),
            statement: StatementState::default(),
            identity,
            log: SessionLog::default(),
            last: self.last,
            kill: self.kill.clone(),
            last_values: RefCell::default(),
            binlog_applier: RefCell::default(),
            search_positions: RefCell::default(),
            temporary: Arc::clone(&self.temporary),
            changes: RefCell::default(),
            transactions: TransactionTracker::default(),
            group_commit: Arc::clone(&self.group_commit),
            user_locks,
            party,
            next_random: Cell::new(None),
            received_file: Cell::new(None),
            programs: RefCell::default(),
            kept_inner: RefCell::default(),
            called: CalledPrograms::default(),
        };
        if is_changed {
            inner.refresh();
        }
        Ok(inner)
    }

    /// Drops the states of the programs that a statement has called.
    #[inline]
    pub fn forget_programs(&self) {
        self.called.forget();
        if !self.kept_inner.borrow().is_empty() {
            self.kept_inner.borrow_mut().clear();
        }
    }

    /// Exchanges what belongs to the connection.
    fn exchange(&self, other: &SessionState) {
        self.user_variables.swap(&other.user_variables);
        self.user_variable_memory.swap(&other.user_variable_memory);
        self.statement.swap(&other.statement);
        self.optimizer.swap(&other.optimizer);
        self.log.exchange(&other.log);
        self.last_values.swap(&other.last_values);
        self.changes.swap(&other.changes);
        self.transactions.exchange(&other.transactions);
        self.user_locks.exchange(&other.user_locks);
        self.next_random.swap(&other.next_random);
        self.programs.swap(&other.programs);
    }
}
