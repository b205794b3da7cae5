//! What of a session expressions and planners read, and what they change through [`SessionHooks`].

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
use cohort_expr::{Expr, ExprType, SessionEnv, TimeZone};
use cohort_locks::{KillFlag, Party};
use cohort_protocol::{ResultSink, SessionChange};
use cohort_run::Measures;
use cohort_sql::ParseOptions;
use cohort_types::{
    Charset, Collation, ErrorCode, Level, Privilege, SqlError, SqlMode, SqlResult, UnsafeText, Value, Warning,
};
use hashbrown::HashMap;

use cohort_row::SearchPositions;
use cohort_table::TemporaryTables;
use cohort_trx::{BinlogSettings, TrxSettings, Writer};

use crate::access::{Access, roles_of};
use crate::account_usage::AccountLimits;
use crate::connection::ConnectionInfo;
use crate::database::Database;
use crate::examined::RowsExamined;
use crate::profiles::Profiles;
use crate::settings::to_value;
use crate::transaction_track::{TransactionNews, TransactionTracker};
use crate::user_locks::UserLocks;

/// Character sets that the session's variables name.
#[derive(Clone, Copy, Debug)]
pub struct NamedCharsets {
    /// None: a name that is none.
    pub client: Option<Charset>,
    pub server: Collation,
}

/// Facts that variables tell about the statement before.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastCounts {
    pub warnings: u64,
    pub errors: u64,
    pub in_transaction: bool,
    /// For the next transaction; 0 once one has taken it.
    pub gtid_seq_no: u64,
    /// The AUTO_INCREMENT value that the next INSERT was given, and 0 once it is used.
    pub insert_id: u64,
}

/// The part of a session that a running statement sees and does not change, but through the cells.
pub struct SessionState {
    pub db: Arc<Database>,
    pub info: ConnectionInfo,
    pub vars: SessionVars,
    /// What the account is bound to; most are bound to nothing.
    pub restraint: Option<AccountLimits>,
    /// SET ROLE.
    pub role: Option<String>,
    /// Settings and facts that expressions depend on; fixed while a statement runs.
    pub env: SessionEnv,
    /// How statements are read.
    pub parse: ParseOptions,
    pub current_schema: Option<Arc<str>>,
    /// By name in lower case.
    pub user_variables: RefCell<HashMap<String, Value>>,
    /// What they take.
    pub user_variable_memory: RefCell<Reservation>,
    /// What the session keeps is charged to it.
    pub memory: Arc<Budget>,
    /// The collation that the client's character set was last named with; query events carry it.
    pub client_collation: Collation,
    /// Character sets by their names, as of this version of the variables.
    named_charsets: Cell<(u64, Option<NamedCharsets>)>,
    /// LAST_INSERT_ID(n) of the running statement.
    pub next_insert_id: Cell<Option<u64>>,
    /// Rows that earlier parts of a bulk execution have inserted: those of this one are numbered behind them.
    pub rows_before: Cell<u64>,
    /// LIMIT ROWS EXAMINED.
    pub examined: RowsExamined,
    /// While a prepared statement of the protocol runs: how many result columns its client knows of.
    pub columns_sent: Cell<Option<usize>>,
    /// FOUND_ROWS() of the query of the running statement, if that reads one without sending its rows.
    pub rows_found: Cell<Option<u64>>,
    /// A table of the running statement is read as a whole: the client is told.
    pub reads_whole_table: Cell<bool>,
    /// What the running statement does is measured.
    measures: RefCell<Option<Arc<Measures>>>,
    /// Warnings that planning found.
    pub planning_warnings: RefCell<Vec<Warning>>,
    /// Hash of all that plans depend on besides the catalog.
    pub plan_key: u64,
    /// SET timestamp, in microseconds.
    pub clock_override: Option<i64>,
    pub last: LastCounts,
    /// What the account held when it was last asked.
    pub access: RefCell<Option<Arc<Access>>>,
    pub kill: KillFlag,
    /// What NEXTVAL has given to the session, by sequence.
    pub(crate) last_values: RefCell<HashMap<TableId, i64>>,
    /// How the session logs what it does outside of its transaction.
    pub binlog: RefCell<BinlogSettings>,
    /// What BINLOG statements have told so far.
    pub binlog_applier: RefCell<BinlogStatements>,
    /// Where row events found their rows last.
    pub trail: RefCell<SearchPositions>,
    /// The session's own tables.
    pub temporary: Arc<TemporaryTables>,
    /// What the client is told with the next OK packet.
    pub(crate) changes: RefCell<Vec<Changed>>,
    /// What it is told of transactions.
    pub transactions: TransactionTracker,
    /// When the running statement's time is up, by `Clock::monotonic_ns`.
    pub deadline_ns: Cell<Option<u64>>,
    /// What the commit path remembers of this connection.
    pub group_commit: Arc<ClientCommits>,
    /// The number of the running statement in the audit log.
    pub(crate) audit_statement: Cell<u64>,
    /// The current database when it began.
    pub(crate) audit_schema: RefCell<Option<Arc<str>>>,
    /// It is told there whoever the user is.
    pub audit_always: Cell<bool>,
    /// Of SHOW PROFILES.
    pub profiles: RefCell<Profiles>,
    /// Of GET_LOCK.
    pub user_locks: UserLocks,
    /// The session in the wait-for graph.
    pub(crate) party: Arc<Party>,
    /// The session applies what another server has done: nobody's privileges count.
    pub is_applier: bool,
    /// What the next RAND() without a seed begins with: a source's seeds.
    pub next_random: Cell<Option<u64>>,
    /// What the next LOAD DATA of an applier loads, whatever file it names.
    pub received_file: Cell<Option<Vec<Vec<u8>>>>,
}

/// What a session keeps from one BINLOG statement to the next.
#[derive(Debug, Default)]
pub struct BinlogStatements {
    pub decoder: StatementDecoder,
    /// Until the statement of the source ends.
    pub maps: Vec<Arc<TableMap>>,
}

/// What a statement changed of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The current database.
    Schema,
    /// The current database is gone: no change of state for `session_track_state_change`, as in MariaDB.
    SchemaDropped,
    Variable(VarId),
    /// What no client is told in detail: user variables, statements with names, temporary tables, the role.
    Other,
}

/// Error 1231 for a client's character set in which statements cannot come: in units of several bytes.
pub fn check_client_charset(collation: Collation) -> SqlResult<()> {
    let charset = collation.charset();
    match charset.mbminlen() > 1 {
        true => Err(SqlError::wrong_variable_value("character_set_client", charset.name())),
        false => Ok(()),
    }
}

impl SessionState {
    /// Where what the running statement does is measured, if it is.
    #[inline]
    pub fn measures(&self) -> Option<Arc<Measures>> {
        self.measures.borrow().clone()
    }

    /// Has the statements that follow measured, or not; yields what was there.
    #[inline]
    pub fn measure(&self, measures: Option<Arc<Measures>>) -> Option<Arc<Measures>> {
        self.measures.replace(measures)
    }

    /// Whether a role is there and was granted to the account.
    pub(crate) fn may_use_role(&self, role: &str) -> bool {
        let catalog = self.db.catalog();
        let is_there = catalog.accounts.contains_key(&(role.to_owned(), String::new()));
        let account = catalog.accounts.get(&self.info.account);
        is_there && account.is_some_and(|account| account.roles.contains_key(role))
    }

    /// Whether errors may tell that a role is there: to an account that may read the table of accounts, and
    /// to one that has it by another role.
    pub fn knows_role(&self, role: &str) -> bool {
        let catalog = self.db.catalog();
        // Everybody has what is granted to PUBLIC; nobody sets it.
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

    /// The account in whose name the session commits.
    pub fn writer(&self) -> Writer {
        match self.is_applier {
            true => Writer::Server,
            false => Writer::Account(Arc::new((self.info.account.clone(), self.role.clone()))),
        }
    }

    /// SET ROLE; error 1959.
    pub fn set_role(&mut self, role: Option<&str>) -> SqlResult<()> {
        if let Some(role) = role.filter(|role| !self.may_use_role(role)) {
            let (user, host) = self.who_is_denied();
            return Err(match self.knows_role(role) {
                true => SqlError::role_not_granted(user, host, role),
                false => SqlError::invalid_role(role),
            });
        }
        self.role = role.map(str::to_owned);
        self.env.current_role.clone_from(&self.role);
        *self.access.borrow_mut() = None;
        Ok(())
    }

    /// What the limits of the account make of the session's variables.
    pub fn apply_limits(&mut self) {
        let account = self.db.catalog().accounts.get(&self.info.account).cloned();
        let Some(account) = account.filter(|_| !self.is_applier) else { return };
        let limits = &account.rules.limits;
        if limits.statement_time_us > 0 {
            let seconds = VarValue::Double(limits.statement_time_us as f64 / 1e6);
            self.vars.put(VarId::MaxStatementTime, &seconds);
        }
        if limits.user_connections > 0 {
            let count = VarValue::UInt(limits.user_connections as u64);
            self.vars.put(VarId::MaxUserConnections, &count);
        }
    }

    /// Notes what the client may want to be told.
    pub fn note_change(&self, change: Changed) {
        let mut changes = self.changes.borrow_mut();
        // Statements that fail tell nothing, and must not pile up.
        changes.retain(|known| *known != change);
        changes.push(change);
    }

    /// Whether there may be something to tell.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.transactions.is_on() || !self.changes.borrow().is_empty()
    }

    /// Tells what has changed since the last OK packet, as far as `session_track_*` want it.
    pub fn tell_changes(&self, sink: &mut dyn ResultSink) {
        let changes = self.changes.take();
        let is_state = changes.iter().any(|change| *change != Changed::SchemaDropped);
        for change in changes {
            match change {
                Changed::Schema | Changed::SchemaDropped if self.vars.flag(VarId::SessionTrackSchema) => {
                    sink.changed(SessionChange::Schema(self.current_schema.as_deref().unwrap_or_default()));
                }
                Changed::Variable(id) if self.is_tracked(id) => {
                    let value = match self.vars.value(id) {
                        VarValue::Null => String::new(),
                        value => value.to_string(),
                    };
                    sink.changed(SessionChange::Variable(id.setting().name, &value));
                }
                Changed::Schema | Changed::SchemaDropped | Changed::Variable(_) | Changed::Other => {}
            }
        }
        if is_state && self.vars.flag(VarId::SessionTrackStateChange) {
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
        let tracked = self.vars.text(VarId::SessionTrackSystemVariables);
        let name = id.setting().name;
        tracked.is_some_and(|list| {
            list.split(',').map(str::trim).any(|one| one == "*" || one.eq_ignore_ascii_case(name))
        })
    }

    /// The state of a new session.
    pub fn new(
        db: Arc<Database>,
        info: ConnectionInfo,
        kill: KillFlag,
        group_commit: Arc<ClientCommits>,
        memory: Arc<Budget>,
        (temporary, party): (Arc<TemporaryTables>, Arc<Party>),
    ) -> SessionState {
        let vars = db.globals.new_session();
        let user_locks = UserLocks::new(Arc::clone(&db), info.id.0, Arc::clone(&party), Arc::clone(&memory));
        let env = SessionEnv::new(0);
        let current_schema = info.schema.as_deref().map(Arc::from);
        let mut state = SessionState {
            db,
            info,
            vars,
            restraint: None,
            role: None,
            env,
            parse: ParseOptions::default(),
            current_schema,
            binlog_applier: RefCell::default(),
            trail: RefCell::default(),
            temporary,
            last_values: RefCell::default(),
            audit_statement: Cell::new(0),
            audit_always: Cell::new(false),
            audit_schema: RefCell::default(),
            profiles: RefCell::default(),
            binlog: RefCell::new(TrxSettings::default().binlog),
            user_variables: RefCell::default(),
            user_variable_memory: RefCell::new(Reservation::new(Arc::clone(&memory))),
            memory,
            client_collation: Collation::UTF8MB4_GENERAL_CI,
            named_charsets: Cell::default(),
            next_insert_id: Cell::new(None),
            rows_before: Cell::new(0),
            examined: RowsExamined::default(),
            columns_sent: Cell::new(None),
            rows_found: Cell::new(None),
            reads_whole_table: Cell::new(false),
            measures: RefCell::default(),
            planning_warnings: RefCell::default(),
            plan_key: 0,
            clock_override: None,
            last: LastCounts::default(),
            access: RefCell::default(),
            kill,
            changes: RefCell::default(),
            transactions: TransactionTracker::default(),
            deadline_ns: Cell::new(None),
            group_commit,
            user_locks,
            party,
            is_applier: false,
            next_random: Cell::new(None),
            received_file: Cell::new(None),
        };
        state.adopt_client_charset();
        state.refresh();
        state
    }

    /// What the client's statements are in, when that is not UTF-8.
    fn client_charset(&self) -> Charset {
        let VarValue::Text(name) = self.vars.value(VarId::CharacterSetClient) else {
            return Charset::Utf8mb4;
        };
        let charset = Charset::by_name(&name);
        charset.filter(|charset| !charset.is_as_in_memory()).unwrap_or(Charset::Utf8mb4)
    }

    /// A statement's text as UTF-8. One that is no text of the client's character set stays as it is: what is
    /// wrong with it is found where it is used. Error 1300 if a lexer would misread it.
    pub fn decoded<'t>(&self, text: &'t [u8]) -> SqlResult<Cow<'t, [u8]>> {
        let charset = self.parse.client;
        if charset == Charset::Utf8mb4 || (charset == Charset::Latin1 && text.is_ascii()) {
            return Ok(Cow::Borrowed(text));
        }
        if charset.has_ascii_trails() {
            let decoded = charset.decode_statement(text, !self.parse.mode.no_backslash_escapes);
            return decoded
                .map(Cow::Owned)
                .map_err(|UnsafeText| SqlError::invalid_character_string(charset.name(), text));
        }
        if charset.has_other_signs() {
            let decoded = cohort_sql::decode_literals(text, charset, self.parse.mode);
            return Ok(decoded.map_or(Cow::Borrowed(text), Cow::Owned));
        }
        let mut out = Vec::with_capacity(text.len());
        Ok(match charset.decode(text, &mut out) {
            Ok(()) => Cow::Owned(out),
            Err(_) => Cow::Borrowed(text),
        })
    }

    /// What is named by `character_set_client` and `collation_server`. Every query event tells of them, and
    /// names are long to look for.
    pub fn named_charsets(&self) -> NamedCharsets {
        let version = self.vars.version();
        match self.named_charsets.get() {
            (of, Some(named)) if of == version => return named,
            _ => {}
        }
        let word = |id| match self.vars.value(id) {
            VarValue::Text(name) => name,
            _ => "".into(),
        };
        let named = NamedCharsets {
            client: Charset::by_name(&word(VarId::CharacterSetClient)),
            server: Collation::by_name(&word(VarId::CollationServer))
                .unwrap_or(Collation::UTF8MB4_GENERAL_CI),
        };
        // Variables that nobody has changed yet are of no version.
        self.named_charsets.set((version, (version > 0).then_some(named)));
        named
    }

    /// The character set that the client named in the handshake.
    fn adopt_client_charset(&mut self) {
        let Some(collation) = Collation::from_id(self.info.collation.0) else { return };
        let charset = VarValue::text(collation.charset().name());
        for id in [VarId::CharacterSetClient, VarId::CharacterSetResults, VarId::CharacterSetConnection] {
            self.vars.put(id, &charset);
        }
        self.vars.put(VarId::CollationConnection, &VarValue::text(collation.name()));
        self.client_collation = collation;
    }

    /// The collation that strings are announced with: the one the client named its character set with.
    /// `None`: character_set_results is NULL, strings are sent as they are.
    pub fn results_collation(&self) -> Option<Collation> {
        let VarValue::Text(name) = self.vars.value(VarId::CharacterSetResults) else { return None };
        let charset = Charset::by_name(&name)?;
        let named = self.client_collation;
        Some(if named.charset() == charset { named } else { charset.default_collation() })
    }

    /// After variables or the current database changed: what is derived from them.
    pub fn refresh(&mut self) {
        let vars = &self.vars;
        let mode = SqlMode(vars.uint(VarId::SqlMode));
        let collation = match vars.value(VarId::CollationConnection) {
            VarValue::Text(name) => Collation::by_name(&name),
            _ => None,
        };
        let collation = collation.unwrap_or(Collation::UTF8MB4_GENERAL_CI);
        let zone = vars.text(VarId::TimeZone);
        self.memory.set_limit(vars.uint(VarId::MaxSessionMemUsed));
        let env = &mut self.env;
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
        env.current_user = format!("{}@{}", self.info.account.0, self.info.account.1);
        env.current_role.clone_from(&self.role);
        env.database = self.current_schema.as_deref().map(str::to_owned);
        env.version = cohort_config::VERSION.to_owned();
        self.parse = ParseOptions { mode: mode.into(), collation, client: self.client_charset() };
        self.plan_key = self.hash_for_plans(zone.as_deref());
    }

    fn hash_for_plans(&self, zone: Option<&str>) -> u64 {
        // One process, one seed: the hash never leaves memory.
        let mut hasher = ahash::RandomState::with_seeds(1, 2, 3, 4).build_hasher();
        let env = &self.env;
        (self.current_schema.as_deref(), self.parse, env.sql_mode.0, env.collation_connection)
            .hash(&mut hasher);
        (env.div_precision_increment, env.default_week_format, env.group_concat_max_len, zone)
            .hash(&mut hasher);
        self.vars.value(VarId::LcTimeNames).to_string().hash(&mut hasher);
        self.vars.flag(VarId::SqlSafeUpdates).hash(&mut hasher);
        self.temporary.epoch().hash(&mut hasher);
        hasher.finish()
    }

    /// The type of a user variable's value; None when it was never set.
    pub fn user_variable_type(&self, name: &str) -> Option<ExprType> {
        let variables = self.user_variables.borrow();
        let value = variables.get(&name.to_lowercase())?;
        Some(Expr::constant(value.clone()).ty())
    }

    /// A warning found while planning; it is the statement's.
    pub fn warn_planning(&self, code: ErrorCode, text: String) {
        let warning = Warning { level: Level::Warning, error: SqlError::new(code, text) };
        self.planning_warnings.borrow_mut().push(warning);
    }

    /// Values that are computed when they are read.
    pub fn computed(&self, id: VarId) -> Option<Value> {
        Some(match id {
            VarId::LastInsertId | VarId::Identity => Value::UInt(self.env.last_insert_id),
            VarId::Timestamp => Value::Double(self.env.now_micros as f64 / 1e6),
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
                let facts = self.db.facts.read().clone()?;
                to_value(&facts.variable(id)?)
            }
        })
    }
}

use std::hash::BuildHasher;
