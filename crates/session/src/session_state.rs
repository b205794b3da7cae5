//! The part of a session that expressions and planners can read. They change it only through
//! [`SessionHooks`](cohort_expr::SessionHooks).

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cohort_base::{Budget, Reservation, TableId};
use cohort_binlog::StatementDecoder;
use cohort_binlog::event::TableMap;
use cohort_catalog::PUBLIC;
use cohort_commit::ClientCommits;
use cohort_config::{SessionVars, VarId, VarValue};
use cohort_expr::locale::DateNames;
use cohort_expr::{Expr, ExprType, SessionEnv, SessionHooks, TimeZone};
use cohort_locks::{KillFlag, Party};
use cohort_protocol::{ResultSink, SessionChange};
use cohort_sql::ParseOptions;
use cohort_sql::ast::Target;
use cohort_types::{
    Charset, Collation, ErrorCode, Level, Privilege, SqlError, SqlMode, SqlResult, UnsafeText, Value, Warning,
};
use hashbrown::HashMap;

use cohort_row::SearchPositions;
use cohort_table::TemporaryTables;
use cohort_trx::{BinlogSettings, TrxSettings, Writer};

use crate::access::{Access, roles_of};
use crate::account_usage::AccountLimits;
use crate::called_programs::CalledPrograms;
use crate::connection::ConnectionInfo;
use crate::database::Database;
use crate::inner_session::KeptInner;
use crate::optimizer_trace::OptimizerTraces;
use crate::profiles::Profiles;
use crate::running_programs::RunningPrograms;
use crate::settings::to_value;
use crate::statement_state::StatementState;
use crate::statement_trace::StatementTrace;
use crate::transaction_track::{TransactionNews, TransactionTracker};
use crate::user_locks::UserLocks;
use crate::virtual_table::VirtualTable;

/// Character sets named by the session's variables.
#[derive(Clone, Copy, Debug)]
pub struct NamedCharsets {
    /// `None` if the variable names no character set.
    pub client: Option<Charset>,
    pub server: Collation,
}

/// Facts about the previous statement, which variables show.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastCounts {
    pub warnings: u64,
    pub errors: u64,
    pub in_transaction: bool,
    /// Sequence number for the next transaction's GTID; 0 once a transaction has used it.
    pub gtid_seq_no: u64,
    /// The AUTO_INCREMENT value set for the next INSERT; 0 once an INSERT has used it.
    pub insert_id: u64,
}

/// The part of a session that a running statement can read. It changes only the fields in cells.
pub struct SessionState {
    pub db: Arc<Database>,
    pub info: ConnectionInfo,
    pub settings: Settings,
    pub current_schema: Option<Arc<str>>,
    /// User variables by lower-case name.
    pub user_variables: RefCell<HashMap<String, Value>>,
    /// Memory of the user variables.
    pub user_variable_memory: RefCell<Reservation>,
    /// Memory budget of the session.
    pub memory: Arc<Budget>,
    /// The last statement that was traced.
    pub trace: RefCell<Option<StatementTrace>>,
    /// Traces of the optimizer.
    pub optimizer: OptimizerTraces,
    /// The state of the running statement.
    pub statement: StatementState,
    /// The account and role that the session acts for.
    pub identity: Identity,
    /// State for the logs.
    pub log: SessionLog,
    pub last: LastCounts,
    pub kill: KillFlag,
    /// The last NEXTVAL result in the session, by sequence.
    pub(crate) last_values: RefCell<HashMap<TableId, i64>>,
    /// Table maps and decoder state collected from BINLOG statements so far.
    pub binlog_applier: RefCell<Option<Box<BinlogStatements>>>,
    /// Cached search positions, near which row events look for their next rows.
    pub search_positions: RefCell<SearchPositions>,
    /// The session's temporary tables.
    pub temporary: Arc<TemporaryTables>,
    /// Changes to report to the client in the next OK packet.
    pub(crate) changes: RefCell<Vec<Changed>>,
    /// Transaction state changes to report to the client.
    pub transactions: TransactionTracker,
    /// Commit history of this connection, for the group-commit policy.
    pub group_commit: Arc<ClientCommits>,
    /// Locks taken with GET_LOCK.
    pub user_locks: UserLocks,
    /// The session's node in the wait-for graph.
    pub(crate) party: Arc<Party>,
    /// Seed for the next RAND() without one: the seed that a source logged.
    pub next_random: Cell<Option<u64>>,
    /// Contents for an applier's next LOAD DATA, used instead of the file that it names.
    pub received_file: Cell<Option<Box<Vec<Vec<u8>>>>>,
    /// The programs that run inside the running statement.
    pub programs: RefCell<RunningPrograms>,
    /// States of programs that the running statement has called.
    pub(crate) kept_inner: RefCell<Vec<KeptInner>>,
    /// Programs that the running statement has called, and may call again without the checks of a call.
    pub called: CalledPrograms,
}

/// The variables of a session, with what is derived from them ([`SessionState::refresh`]).
pub struct Settings {
    pub vars: SessionVars,
    /// Settings and facts that expressions depend on. They do not change while a statement runs.
    pub env: SessionEnv,
    /// Parser options.
    pub parse: ParseOptions,
    /// Hash of everything that plans depend on besides the catalog.
    pub plan_key: u64,
    /// SET timestamp, in microseconds.
    pub clock_override: Option<i64>,
    /// The collation with which the client's character set was last named. Query events carry it.
    pub client_collation: Collation,
    /// Cached character sets, with the version of the variables that they were computed from.
    pub(crate) named_charsets: Cell<(u64, Option<NamedCharsets>)>,
}

/// The account and role that a session acts for, with what follows from them.
#[derive(Default)]
pub struct Identity {
    /// Resource limits of the account; most accounts have none.
    pub account_limits: Option<AccountLimits>,
    /// The active role (SET ROLE).
    pub role: Option<String>,
    /// Cached privileges of the account and the role.
    pub access: RefCell<Option<Arc<Access>>>,
    /// Whether a program runs with the account of its definer, who is not the session's account.
    pub acts_as_definer: bool,
    /// Whether the session applies another server's changes. Privileges are not checked then.
    pub is_applier: bool,
    /// Whether the session runs statements of the server's own start: it has all privileges, whatever became
    /// of its account.
    pub acts_for_server: bool,
    /// The general log and the audit log leave the session out.
    pub is_setup: bool,
}

/// The state of a session for its logs.
pub struct SessionLog {
    /// The number of the running statement in the audit log.
    pub(crate) statement: Cell<u64>,
    /// The current database when that statement began.
    pub(crate) schema: RefCell<Option<Arc<str>>>,
    /// Whether the running statement is audited regardless of the user.
    pub always_audits: Cell<bool>,
    /// Profiles for SHOW PROFILES.
    pub profiles: RefCell<Profiles>,
    /// Binlog settings for what the session logs outside its transaction.
    pub binlog: RefCell<BinlogSettings>,
}

impl SessionLog {
    /// Exchanges the state with that of another one.
    pub(crate) fn exchange(&self, other: &SessionLog) {
        let SessionLog { statement, schema, always_audits, profiles, binlog } = self;
        statement.swap(&other.statement);
        schema.swap(&other.schema);
        always_audits.swap(&other.always_audits);
        profiles.swap(&other.profiles);
        binlog.swap(&other.binlog);
    }
}

impl Default for SessionLog {
    fn default() -> SessionLog {
        SessionLog {
            statement: Cell::new(0),
            schema: RefCell::default(),
            always_audits: Cell::new(false),
            profiles: RefCell::default(),
            binlog: RefCell::new(TrxSettings::default().binlog),
        }
    }
}

/// State that a session keeps between BINLOG statements.
#[derive(Debug, Default)]
pub struct BinlogStatements {
    pub decoder: StatementDecoder,
    /// Kept until the source's statement ends.
    pub maps: Vec<Arc<TableMap>>,
}

/// The origin of a session's statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client that has logged in.
    Client,
    /// `init_file`.
    Server,
    /// The server's own statements at its start: no log contains them.
    Setup,
    /// The binary log of a source.
    Source,
}

/// A change that a statement made to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The current database.
    Schema,
    /// The current database was dropped. Not a state change for `session_track_state_change`, as in MariaDB.
    SchemaDropped,
    Variable(VarId),
    /// A change reported to clients only as a state change: user variables, prepared statements by name,
    /// temporary tables, the role.
    Other,
}

/// Returns error 1231 if statements cannot be sent in the character set, because its characters have at least
/// two bytes.
pub fn check_client_charset(collation: Collation) -> SqlResult<()> {
    let charset = collation.charset();
    match charset.mbminlen() > 1 {
        true => Err(SqlError::wrong_variable_value("character_set_client", charset.name())),
        false => Ok(()),
    }
}

impl SessionState {
    /// Returns whether the role exists and was granted to the account.
    pub(crate) fn may_use_role(&self, role: &str) -> bool {
        let catalog = self.db.catalog();
        let is_there = catalog.accounts.contains_key(&(role.to_owned(), String::new()));
        let account = catalog.accounts.get(&self.info.account);
        is_there && account.is_some_and(|account| account.roles.contains_key(role))
    }

    /// Returns whether error messages may reveal that the role exists. They may to an account that can read
    /// the table of accounts, and to one that has the role through another role.
    pub fn knows_role(&self, role: &str) -> bool {
        let catalog = self.db.catalog();
        // Every account has what is granted to PUBLIC, but PUBLIC cannot be set as a role.
        if role.eq_ignore_ascii_case(PUBLIC)
            || !catalog.accounts.contains_key(&(role.to_owned(), String::new()))
        {
            return false;
        }
        let account = catalog.accounts.get(&self.info.account);
        let mut own = account.iter().flat_map(|account| account.roles.keys());
        self.access().on_schema("mysql").has(Privilege::Select)
            || own.any(|own| roles_of(&catalog, Some(own)).iter().any(|known| known.name.0 == role))
    }

    /// Returns the identity under which the session commits.
    pub fn writer(&self) -> Writer {
        match self.identity.is_applier || self.identity.acts_for_server {
            true => Writer::Server,
            false => Writer::Account(Arc::new((self.info.account.clone(), self.identity.role.clone()))),
        }
    }

    /// Returns error 1959 if the account may not use the role.
    pub fn check_role(&self, role: Option<&str>) -> SqlResult<()> {
        let Some(role) = role.filter(|role| !self.may_use_role(role)) else { return Ok(()) };
        let (user, host) = self.denied_logins();
        Err(match self.knows_role(role) {
            true => SqlError::role_not_granted(user, host, role),
            false => SqlError::invalid_role(role),
        })
    }

    /// Runs SET ROLE. Returns error 1959 if the account may not use the role.
    pub fn set_role(&mut self, role: Option<&str>) -> SqlResult<()> {
        self.check_role(role)?;
        self.identity.role = role.map(str::to_owned);
        self.settings.env.current_role.clone_from(&self.identity.role);
        *self.identity.access.borrow_mut() = None;
        Ok(())
    }

    /// Sets the session variables that the account's limits determine.
    pub fn apply_limits(&mut self) {
        let account = self.db.catalog().accounts.get(&self.info.account).cloned();
        let Some(account) = account.filter(|_| !self.identity.is_applier) else { return };
        let limits = &account.rules.limits;
        if limits.statement_time_us > 0 {
            let seconds = VarValue::Double(limits.statement_time_us as f64 / 1e6);
            self.settings.vars.put(VarId::MaxStatementTime, &seconds);
        }
        if limits.user_connections > 0 {
            let count = VarValue::UInt(limits.user_connections as u64);
            self.settings.vars.put(VarId::MaxUserConnections, &count);
        }
    }

    /// Records a change to report to the client.
    pub fn note_change(&self, change: Changed) {
        let mut changes = self.changes.borrow_mut();
        // A failed statement reports nothing, so entries must not accumulate.
        changes.retain(|known| *known != change);
        changes.push(change);
    }

    /// Returns whether there may be a change to report.
    #[inline]
    pub fn has_changes_to_send(&self) -> bool {
        self.transactions.is_on() || !self.changes.borrow().is_empty()
    }

    /// Reports the changes since the last OK packet, as selected by `session_track_*`.
    pub fn send_changes(&self, sink: &mut dyn ResultSink) {
        let changes = self.changes.take();
        let is_state = changes.iter().any(|change| *change != Changed::SchemaDropped);
        for change in changes {
            match change {
                Changed::Schema | Changed::SchemaDropped
                    if self.settings.vars.flag(VarId::SessionTrackSchema) =>
                {
                    sink.changed(SessionChange::Schema(self.current_schema.as_deref().unwrap_or_default()));
                }
                Changed::Variable(id) if self.is_tracked(id) => {
                    let value = match self.settings.vars.value(id) {
                        VarValue::Null => String::new(),
                        value => value.to_string(),
                    };
                    sink.changed(SessionChange::Variable(id.setting().name, &value));
                }
                Changed::Schema | Changed::SchemaDropped | Changed::Variable(_) | Changed::Other => {}
            }
        }
        if is_state && self.settings.vars.flag(VarId::SessionTrackStateChange) {
            sink.changed(SessionChange::State);
        }
        if self.transactions.is_on() {
            let TransactionNews { state, characteristics } = self.transactions.take_news();
            if let Some(state) = &state {
                sink.changed(SessionChange::TransactionState(state));
            }
            if let Some(text) = &characteristics {
                sink.changed(SessionChange::TransactionCharacteristics(text));
            }
        }
    }

    fn is_tracked(&self, id: VarId) -> bool {
        let tracked = self.settings.vars.text(VarId::SessionTrackSystemVariables);
        let name = id.setting().name;
        tracked.is_some_and(|list| {
            list.split(',').map(str::trim).any(|one| one == "*" || one.eq_ignore_ascii_case(name))
        })
    }

    /// Creates the state of a new session.
    pub fn new(
        db: Arc<Database>,
        info: ConnectionInfo,
        kill: KillFlag,
        group_commit: Arc<ClientCommits>,
        memory: Arc<Budget>,
        (temporary, party): (Arc<TemporaryTables>, Arc<Party>),
        origin: Origin,
    ) -> SessionState {
        let vars = db.globals.new_session();
        let user_locks = UserLocks::new(Arc::clone(&db), info.id.0, Arc::clone(&party), Arc::clone(&memory));
        let env = SessionEnv::new(0);
        let current_schema = info.schema.as_deref().map(Arc::from);
        let mut state = SessionState {
            db,
            info,
            settings: Settings {
                vars,
                env,
                parse: ParseOptions::default(),
                plan_key: 0,
                clock_override: None,
                client_collation: Collation::UTF8MB4_GENERAL_CI,
                named_charsets: Cell::default(),
            },
            current_schema,
            binlog_applier: RefCell::default(),
            search_positions: RefCell::default(),
            temporary,
            last_values: RefCell::default(),
            trace: RefCell::default(),
            optimizer: OptimizerTraces::default(),
            statement: StatementState::default(),
            identity: Identity {
                is_applier: origin == Origin::Source,
                acts_for_server: matches!(origin, Origin::Server | Origin::Setup),
                is_setup: origin == Origin::Setup,
                ..Identity::default()
            },
            log: SessionLog::default(),
            user_variables: RefCell::default(),
            user_variable_memory: RefCell::new(Reservation::new(Arc::clone(&memory))),
            memory,
            last: LastCounts::default(),
            kill,
            changes: RefCell::default(),
            transactions: TransactionTracker::default(),
            group_commit,
            user_locks,
            party,
            next_random: Cell::new(None),
            received_file: Cell::new(None),
            programs: RefCell::default(),
            kept_inner: RefCell::default(),
            called: CalledPrograms::default(),
        };
        state.adopt_client_charset();
        state.adopt_schema_collation();
        state.refresh();
        state
    }

    /// Changes the current database.
    pub fn set_schema(&mut self, schema: Option<Arc<str>>) {
        self.current_schema = schema;
        self.adopt_schema_collation();
    }

    /// Sets `character_set_database` and `collation_database` to those of the current database, or of the
    /// server if there is none.
    pub fn adopt_schema_collation(&mut self) {
        let of = |schema: &str| match self.db.catalog().schemas.get(schema) {
            Some(schema) => schema.collation,
            None => Collation::UTF8MB3_GENERAL_CI,
        };
        let vars = &self.settings.vars;
        let server = || Collation::by_name(&vars.value(VarId::CollationServer).to_string());
        let collation = match self.current_schema.as_deref() {
            Some(schema) => of(schema),
            None => server().unwrap_or(Collation::UTF8MB4_GENERAL_CI),
        };
        let names = [
            (VarId::CharacterSetDatabase, VarValue::text(collation.charset().name())),
            (VarId::CollationDatabase, VarValue::text(collation.name())),
        ];
        // A session shares the values of all others until one is set.
        for (id, name) in names {
            if self.settings.vars.value(id) != name {
                self.settings.vars.put(id, &name);
            }
        }
    }

    /// Returns `collation_database`. In a stored program, it is that of the database at the creation of the
    /// program.
    pub fn database_collation(&self) -> Collation {
        let name = self.settings.vars.value(VarId::CollationDatabase).to_string();
        Collation::by_name(&name).unwrap_or(Collation::UTF8MB4_GENERAL_CI)
    }

    /// Returns the character set of the client's statements, if it is not UTF-8.
    fn client_charset(&self) -> Charset {
        let VarValue::Text(name) = self.settings.vars.value(VarId::CharacterSetClient) else {
            return Charset::Utf8mb4;
        };
        let charset = Charset::by_name(&name);
        charset.filter(|charset| !charset.is_as_in_memory()).unwrap_or(Charset::Utf8mb4)
    }

    /// Returns a statement's text as UTF-8. Text that is not valid in the client's character set is returned
    /// unchanged, and the error is raised where the text is used. Returns error 1300 if the lexer would
    /// misread it.
    pub fn decoded<'t>(&self, text: &'t [u8]) -> SqlResult<Cow<'t, [u8]>> {
        let charset = self.settings.parse.client;
        if charset == Charset::Utf8mb4 || (charset == Charset::Latin1 && text.is_ascii()) {
            return Ok(Cow::Borrowed(text));
        }
        if charset.has_ascii_trails() {
            let decoded = charset.decode_statement(text, !self.settings.parse.mode.no_backslash_escapes);
            return decoded
                .map(Cow::Owned)
                .map_err(|UnsafeText| SqlError::invalid_character_string(charset.name(), text));
        }
        if charset.has_other_signs() {
            let decoded = cohort_sql::decode_literals(text, charset, self.settings.parse.mode);
            return Ok(decoded.map_or(Cow::Borrowed(text), Cow::Owned));
        }
        let mut out = Vec::with_capacity(text.len());
        Ok(match charset.decode(text, &mut out) {
            Ok(()) => Cow::Owned(out),
            Err(_) => Cow::Borrowed(text),
        })
    }

    /// Returns the character sets named by `character_set_client` and `collation_server`. The result is
    /// cached: every query event carries them, and looking up names is slow.
    pub fn named_charsets(&self) -> NamedCharsets {
        let version = self.settings.vars.version();
        match self.settings.named_charsets.get() {
            (of, Some(named)) if of == version => return named,
            _ => {}
        }
        let word = |id| match self.settings.vars.value(id) {
            VarValue::Text(name) => name,
            _ => "".into(),
        };
        let named = NamedCharsets {
            client: Charset::by_name(&word(VarId::CharacterSetClient)),
            server: Collation::by_name(&word(VarId::CollationServer))
                .unwrap_or(Collation::UTF8MB4_GENERAL_CI),
        };
        // Variables that were never changed have no version, so their result is not cached.
        self.settings.named_charsets.set((version, (version > 0).then_some(named)));
        named
    }

    /// Adopts the character set that the client named in the handshake.
    fn adopt_client_charset(&mut self) {
        let Some(collation) = Collation::from_id(self.info.collation.0) else { return };
        let charset = VarValue::text(collation.charset().name());
        for id in [VarId::CharacterSetClient, VarId::CharacterSetResults, VarId::CharacterSetConnection] {
            self.settings.vars.put(id, &charset);
        }
        self.settings.vars.put(VarId::CollationConnection, &VarValue::text(collation.name()));
        self.settings.client_collation = collation;
    }

    /// Returns the collation that strings are announced with: the one with which the client named its
    /// character set. Returns `None` if character_set_results is NULL; strings are then sent unconverted.
    pub fn results_collation(&self) -> Option<Collation> {
        let VarValue::Text(name) = self.settings.vars.value(VarId::CharacterSetResults) else { return None };
        let charset = Charset::by_name(&name)?;
        let named = self.settings.client_collation;
        Some(if named.charset() == charset { named } else { charset.default_collation() })
    }

    /// Recomputes derived state after variables or the current database changed.
    pub fn refresh(&mut self) {
        let vars = &self.settings.vars;
        let mode = SqlMode(vars.uint(VarId::SqlMode));
        let collation = match vars.value(VarId::CollationConnection) {
            VarValue::Text(name) => Collation::by_name(&name),
            _ => None,
        };
        let collation = collation.unwrap_or(Collation::UTF8MB4_GENERAL_CI);
        let zone = vars.text(VarId::TimeZone);
        self.memory.set_limit(vars.uint(VarId::MaxSessionMemUsed));
        let env = &mut self.settings.env;
        env.sql_mode = mode;
        env.time_zone = zone.as_deref().and_then(TimeZone::parse).unwrap_or(TimeZone::Offset(0));
        env.collation_connection = collation;
        env.div_precision_increment = vars.uint(VarId::DivPrecisionIncrement) as u8;
        env.group_concat_max_len = vars.uint(VarId::GroupConcatMaxLen);
        env.max_allowed_packet = vars.uint(VarId::MaxAllowedPacket);
        env.default_week_format = vars.uint(VarId::DefaultWeekFormat) as u8;
        env.max_error_count = vars.uint(VarId::MaxErrorCount) as usize;
        env.date_names = DateNames::of_session(&vars.value(VarId::LcTimeNames).to_string());
        env.connection_id = self.info.id.0;
        env.user = format!("{}@{}", self.info.user, self.info.host);
        let (user, host) = &self.info.account;
        // A program of a role runs as no user.
        let user = if host.is_empty() { "" } else { user };
        env.current_user = format!("{user}@{host}");
        env.current_role.clone_from(&self.identity.role);
        env.database = self.current_schema.as_deref().map(str::to_owned);
        env.version = cohort_config::VERSION.to_owned();
        self.settings.parse = ParseOptions { mode: mode.into(), collation, client: self.client_charset() };
        self.settings.plan_key = self.hash_for_plans();
    }

    /// Returns a hash of all that plans depend on, apart from the catalog: settings that act in plans, the
    /// current database, the client's character set and the temporary tables.
    fn hash_for_plans(&self) -> u64 {
        // Fixed seeds are fine: the hash never leaves memory.
        let mut hasher = ahash::RandomState::with_seeds(1, 2, 3, 4).build_hasher();
        self.settings.vars.hash_plan_settings(&mut hasher);
        (self.current_schema.as_deref(), self.settings.parse, self.temporary.epoch()).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns a virtual table, unless a temporary table hides it.
    pub fn virtual_table(&self, schema: &str, name: &str) -> Option<&Arc<dyn VirtualTable>> {
        match self.temporary.find(schema, name) {
            Some(_) => None,
            None => self.db.virtual_table(schema, name),
        }
    }

    /// Assigns a value to a user variable at once, and to a local variable of the enclosing program when the
    /// statement has ended.
    pub fn assign(&self, target: &Target, value: Value) -> SqlResult<()> {
        match target {
            Target::User(name) => self.set_user_variable(name, value),
            Target::Local(local) => {
                self.statement.assigned.borrow_mut().push((local.clone(), value));
                Ok(())
            }
        }
    }

    /// Returns the type of a user variable's value, or `None` if the variable was never set.
    pub fn user_variable_type(&self, name: &str) -> Option<ExprType> {
        let variables = self.user_variables.borrow();
        let value = variables.get(&name.to_lowercase())?;
        Some(Expr::constant(value.clone()).ty())
    }

    /// Adds a warning found during planning to the statement.
    pub fn warn_planning(&self, code: ErrorCode, text: String) {
        let warning = Warning { level: Level::Warning, error: SqlError::new(code, text) };
        self.statement.planning_warnings.borrow_mut().push(warning);
    }

    /// Returns the value of a variable that is computed when it is read.
    pub fn computed(&self, id: VarId) -> Option<Value> {
        Some(match id {
            VarId::LastInsertId | VarId::Identity => Value::UInt(self.settings.env.last_insert_id),
            VarId::Timestamp => Value::Double(self.settings.env.now_micros as f64 / 1e6),
            VarId::PseudoThreadId => Value::UInt(self.info.id.0),
            VarId::WarningCount => Value::UInt(self.last.warnings),
            VarId::ErrorCount => Value::UInt(self.last.errors),
            VarId::LastGtid => {
                Value::text(self.group_commit.last_gtid().map_or(String::new(), |gtid| gtid.to_string()))
            }
            VarId::GtidSeqNo => Value::UInt(self.last.gtid_seq_no),
            VarId::InsertId => Value::UInt(self.last.insert_id),
            VarId::InTransaction => Value::UInt(self.last.in_transaction.into()),
            _ => {
                let callbacks = self.db.callbacks.read().clone()?;
                to_value(&callbacks.variable(id)?)
            }
        })
    }
}

use std::hash::BuildHasher;
