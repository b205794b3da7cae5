//! The environment of an evaluation: the session's settings, hooks into the session and the server, and
//! warnings.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashMap;
use std::time::Duration;

use std::sync::Arc;

use cohort_base::{Budget, Reservation, StackFloor};
use cohort_types::{
    Collation, Date, DateTime, ErrorCode, FixedOffset, Interrupt, Level, LocalToUtc, SqlError, SqlMode,
    SqlResult, Value, Warning, WarningSink, check_floor,
};

use crate::expr::{CallBack, Subquery};
use crate::expr_type::TypeClass;
use crate::locale::DateNames;
use crate::search::{KnownSearch, WordSource};

/// The session's time zone.
#[derive(Clone, Debug)]
pub enum TimeZone {
    /// The time zone of the host.
    System(jiff::tz::TimeZone),
    /// `+hh:mm`, in seconds east of UTC.
    Offset(i32),
    /// A zone of the time zone database.
    Named(jiff::tz::TimeZone),
}

impl TimeZone {
    /// Parses a value of `SET time_zone`: `SYSTEM`, `+02:00`, or a name of the time zone database.
    pub fn parse(name: &str) -> Option<TimeZone> {
        if name.eq_ignore_ascii_case("SYSTEM") {
            return Some(TimeZone::System(jiff::tz::TimeZone::system()));
        }
        if let Some(seconds) = parse_offset(name) {
            return Some(TimeZone::Offset(seconds));
        }
        jiff::tz::TimeZone::get(name).ok().map(TimeZone::Named)
    }

    /// Returns the offset at an instant, in seconds east of UTC.
    fn offset_seconds(&self, utc_micros: i64) -> i32 {
        match self {
            TimeZone::Offset(seconds) => *seconds,
            TimeZone::System(zone) | TimeZone::Named(zone) => {
                let instant =
                    jiff::Timestamp::from_microsecond(utc_micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
                zone.to_offset(instant).seconds()
            }
        }
    }
}

/// Parses `+hh:mm` to seconds. The range is -12:59 to +14:00.
fn parse_offset(name: &str) -> Option<i32> {
    let (sign, rest) = match name.as_bytes().first()? {
        b'+' => (1, &name[1..]),
        b'-' => (-1, &name[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let digits = |t: &str| !t.is_empty() && t.len() <= 2 && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(hours) || !digits(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = sign * (hours * 3600 + minutes * 60);
    (minutes < 60 && (-46_740..=50_400).contains(&seconds)).then_some(seconds)
}

impl cohort_types::TimeZone for TimeZone {
    fn to_utc(&self, local: &DateTime) -> LocalToUtc {
        if let TimeZone::Offset(seconds) = self {
            return FixedOffset { seconds: *seconds }.to_utc(local);
        }
        let as_utc = local.clock_micros();
        // Around a change of the offset, the old one is found a day earlier, and the new one a day later.
        let day = 86_400_000_000;
        let before = i64::from(self.offset_seconds(as_utc - day)) * 1_000_000;
        let after = i64::from(self.offset_seconds(as_utc + day)) * 1_000_000;
        for offset in [before, after] {
            if i64::from(self.offset_seconds(as_utc - offset)) * 1_000_000 == offset {
                return LocalToUtc::Exact(as_utc - offset).in_range();
            }
        }
        // As in MariaDB, a skipped time is the moment of the change.
        let is_later = |utc: i64| i64::from(self.offset_seconds(utc)) * 1_000_000 != before;
        let (mut earlier, mut later) = (as_utc - day, as_utc + day);
        while later - earlier > 1 {
            let middle = earlier + (later - earlier) / 2;
            *if is_later(middle) { &mut later } else { &mut earlier } = middle;
        }
        LocalToUtc::Gap(later + as_utc.rem_euclid(1_000_000)).in_range()
    }

    fn to_local(&self, utc_micros: i64) -> DateTime {
        if utc_micros == 0 {
            return Date::ZERO.at_midnight();
        }
        FixedOffset { seconds: self.offset_seconds(utc_micros) }.to_local(utc_micros)
    }
}

/// The settings and state of a session that expressions depend on. They do not change while a statement runs.
#[derive(Clone, Debug)]
pub struct SessionEnv {
    pub sql_mode: SqlMode,
    pub time_zone: TimeZone,
    /// NOW() of the statement, microseconds since the epoch.
    pub now_micros: i64,
    /// Collation of literals and of the results of session functions.
    pub collation_connection: Collation,
    pub div_precision_increment: u8,
    /// In bytes.
    pub group_concat_max_len: u64,
    /// In bytes. A longer result becomes NULL with warning 1301.
    pub max_allowed_packet: u64,
    pub default_week_format: u8,
    /// Maximum number of warnings that are kept for a statement.
    pub max_error_count: usize,
    /// Names of months and days; English if `None`.
    pub date_names: Option<&'static DateNames>,
    pub connection_id: u64,
    /// `name@host` of the client.
    pub user: String,
    /// `name@host` of the account.
    pub current_user: String,
    /// The role enabled by SET ROLE.
    pub current_role: Option<String>,
    pub database: Option<String>,
    pub version: String,
    /// LAST_INSERT_ID() of the previous statement.
    pub last_insert_id: u64,
    pub row_count: i64,
    pub found_rows: u64,
}

impl SessionEnv {
    /// Returns MariaDB's defaults with the given NOW(), in UTC.
    pub fn new(now_micros: i64) -> SessionEnv {
        SessionEnv {
            sql_mode: SqlMode::DEFAULT,
            time_zone: TimeZone::Offset(0),
            now_micros,
            collation_connection: Collation::UTF8MB4_GENERAL_CI,
            div_precision_increment: 4,
            group_concat_max_len: 1 << 20,
            max_allowed_packet: 16 << 20,
            default_week_format: 0,
            max_error_count: 64,
            date_names: None,
            connection_id: 0,
            user: String::new(),
            current_user: String::new(),
            current_role: None,
            database: None,
            version: String::new(),
            last_insert_id: 0,
            row_count: -1,
            found_rows: 0,
        }
    }
}

/// Scope of a system variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VariableScope {
    /// `@@x`: the session's value if there is one.
    Default,
    /// `@@global.x`.
    Global,
    /// `@@session.x`.
    Session,
}

/// Result of reading a file of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadedFile {
    /// The file does not exist, or the session may not read it.
    Missing,
    /// Size of a file that exceeds the limit.
    TooLong(u64),
    Bytes(Vec<u8>),
}

/// A sequence that an expression names.
#[derive(Clone, Copy, Debug)]
pub struct SequenceName<'n> {
    pub schema: &'n str,
    pub name: &'n str,
    /// The name is in a view, which does not see the session's temporary sequences.
    pub base_only: bool,
}

/// The callbacks of expressions into the session and the server. All calls are made on the evaluating thread.
/// Methods take `&self`, so state that changes needs interior mutability.
pub trait SessionHooks {
    /// Returns `@name` (in any case), or `None` if it was never set.
    fn user_variable(&self, name: &str) -> Option<Value>;
    /// Sets `@name`. Fails if the session exceeds its memory limit.
    fn set_user_variable(&self, name: &str, value: Value) -> SqlResult<()>;
    /// Returns the budget that the statement's memory is charged to; `None` if it is not charged.
    fn memory(&self) -> Option<&Arc<Budget>> {
        None
    }
    /// Returns `@@name`. Error 1193 if it is unknown.
    fn system_variable(&self, scope: VariableScope, name: &str) -> SqlResult<Value>;
    /// LAST_INSERT_ID(n): sets the session's LAST_INSERT_ID().
    fn set_last_insert_id(&self, id: u64);
    /// Returns the number that LAST_INSERT_ID(n) of this statement has set.
    fn last_insert_id_set(&self) -> Option<u64>;
    /// Returns the current time in microseconds since the epoch (SYSDATE, UUID).
    fn clock_micros(&self) -> i64;
    /// Returns random bits (RAND() without a seed, UUID).
    fn random(&self) -> u64;
    /// UUID_SHORT: returns a number that is unique in the server.
    fn next_short_uuid(&self) -> u64;
    /// Fails if the statement was killed or has timed out.
    fn check_interrupt(&self) -> SqlResult<()> {
        Ok(())
    }
    /// Sleeps. KILL interrupts the sleep, and the call fails.
    fn sleep(&self, duration: Duration) -> SqlResult<()>;
    /// LOAD_FILE: reads a file of the server, of at most `bytes_max` bytes.
    fn load_file(&self, name: &str, bytes_max: u64) -> SqlResult<LoadedFile> {
        let _ = (name, bytes_max);
        Ok(LoadedFile::Missing)
    }
    /// BINLOG_GTID_POS: returns the GTID position at an offset of a binlog file, or `None` if no event starts
    /// there.
    fn gtid_position_at(&self, file: &str, offset: u64) -> SqlResult<Option<String>> {
        let _ = (file, offset);
        Ok(None)
    }
    /// MASTER_GTID_WAIT: returns whether the position was reached before the timeout.
    fn wait_for_gtids(&self, position: &str, timeout: Option<Duration>) -> SqlResult<bool> {
        let _ = (position, timeout);
        Ok(false)
    }
    /// MASTER_POS_WAIT: returns the number of transactions that were waited for, -1 after the timeout, or
    /// `None` if there is no applier.
    fn wait_for_file_position(
        &self,
        file: &str,
        position: u64,
        timeout: Option<Duration>,
        connection: &str,
    ) -> SqlResult<Option<i64>> {
        let _ = (file, position, timeout, connection);
        Ok(None)
    }
    /// MATCH: returns the number of rows of the table that has the FULLTEXT index.
    fn row_count(&self, source: &WordSource) -> SqlResult<u64> {
        let _ = source;
        Ok(0)
    }
    /// MATCH: returns the number of index entries from key `start` up to, but not including, `end`.
    fn word_row_count(&self, source: &WordSource, start: &[u8], end: Option<&[u8]>) -> SqlResult<u64> {
        let _ = (source, start, end);
        Ok(0)
    }
    /// NEXTVAL: returns the next number of a sequence.
    fn next_value(&self, sequence: SequenceName<'_>) -> SqlResult<i64> {
        Err(SqlError::unknown_sequence(sequence.name))
    }
    /// LASTVAL: returns the last number that NEXTVAL returned to the session.
    fn last_value(&self, sequence: SequenceName<'_>) -> SqlResult<Option<i64>> {
        Err(SqlError::unknown_sequence(sequence.name))
    }
    /// SETVAL: returns false if the sequence is already past the value.
    fn set_sequence(
        &self,
        sequence: SequenceName<'_>,
        value: i64,
        is_used: bool,
        round: i64,
    ) -> SqlResult<bool> {
        let _ = (value, is_used, round);
        Err(SqlError::unknown_sequence(sequence.name))
    }
    /// GET_LOCK: returns whether the lock was acquired before the timeout.
    fn get_lock(&self, name: &str, timeout: Duration) -> SqlResult<bool>;
    /// RELEASE_LOCK: returns whether this session held the lock, or `None` if no session did.
    fn release_lock(&self, name: &str) -> Option<bool>;
    /// RELEASE_ALL_LOCKS: returns the number of released locks.
    fn release_all_locks(&self) -> u64;
    /// IS_USED_LOCK: returns the connection that holds the lock.
    fn lock_holder(&self, name: &str) -> Option<u64>;
}

/// Calls back into the session on behalf of a statement's expressions: runs its subqueries, and functions
/// that run statements. Expressions that call back ([`crate::Expr::calls_back`]) are evaluated while nothing
/// is borrowed from the transaction.
pub trait Subqueries {
    /// Returns a column of an outer query.
    fn outer(&self, slot: usize) -> SqlResult<Value>;
    /// Returns the value of a subquery's test.
    fn value(&self, subquery: &Subquery, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Value>;
    /// Runs a function with these arguments.
    fn call(&self, function: &CallBack, args: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Value>;
}

/// The warnings of a statement, limited by `max_error_count`.
#[derive(Debug)]
pub struct Warnings {
    list: Vec<Warning>,
    total: u64,
    limit: usize,
}

impl Warnings {
    /// Creates a list that keeps at most `limit` warnings, and counts all.
    pub fn new(limit: usize) -> Warnings {
        Warnings { list: Vec::new(), total: 0, limit }
    }

    /// Adds a warning.
    pub fn push(&mut self, warning: Warning) {
        self.total += 1;
        if self.list.len() < self.limit {
            self.list.push(warning);
        }
    }

    /// Returns the kept warnings.
    pub fn list(&self) -> &[Warning] {
        &self.list
    }

    /// Returns the number of all warnings.
    pub fn total(&self) -> u64 {
        self.total
    }
}

impl Default for Warnings {
    fn default() -> Warnings {
        Warnings::new(64)
    }
}

/// Steps of an evaluation between two checks for an interrupt: some hundred microseconds.
const STEPS_UNASKED: u32 = 1000;

/// The context of an evaluation, apart from the row. There is one per execution of a statement, on one
/// thread.
pub struct EvalContext<'s> {
    /// The session's settings.
    pub env: &'s SessionEnv,
    /// The session's variables and the server around it.
    pub hooks: &'s dyn SessionHooks,
    /// Values of `Expr::Param`.
    pub params: &'s [Value],
    subqueries: Option<&'s dyn Subqueries>,
    own: EvalState,
    /// The state of the context that this one is a view of.
    shared: Option<&'s EvalState>,
}

/// Mutable state of the evaluations of one statement.
struct EvalState {
    /// Set while a strict statement changes data: a warning becomes the statement's error.
    abort_on_warning: Cell<bool>,
    /// Set by IGNORE: a scalar subquery with several rows warns, and is NULL.
    forgives: Cell<bool>,
    warnings: RefCell<Warnings>,
    /// Memory charged to the statement.
    memory: RefCell<Option<Reservation>>,
    /// Limit of the stack that the statement runs on.
    floor: StackFloor,
    /// Steps until the next check for an interrupt.
    steps_left: Cell<u32>,
    /// The row number in warnings about a column. The first row is 1.
    row_number: Cell<u64>,
    /// State of RAND(n), by the address of its node.
    random: RefCell<HashMap<usize, (u32, u32)>>,
    searches: RefCell<Vec<KnownSearch>>,
    /// Constants converted for comparisons: each is converted, and warns, once.
    constants: RefCell<Vec<ReadConstant>>,
}

/// A constant text converted to a number or a date.
struct ReadConstant {
    /// The address of its node. The text is compared, too, because an address may be reused.
    node: usize,
    text: Value,
    class: TypeClass,
    read: Value,
}

/// Maximum number of constants that are converted only once. Further ones are converted for every row.
const CONSTANTS_MAX: usize = 64;

impl<'s> EvalContext<'s> {
    /// Creates the context of one statement.
    pub fn new(env: &'s SessionEnv, hooks: &'s dyn SessionHooks, params: &'s [Value]) -> EvalContext<'s> {
        let memory = hooks.memory().map(|budget| Reservation::new(Arc::clone(budget)));
        let own = EvalState::new(memory, StackFloor::current(), env.max_error_count);
        EvalContext { env, hooks, params, subqueries: None, own, shared: None }
    }

    /// Returns a context of its own for an evaluation whose warnings are dropped.
    pub fn quiet(&self) -> EvalContext<'s> {
        EvalContext::new(self.env, self.hooks, self.params)
    }

    /// Returns a view of this context that can run subqueries.
    pub fn with_subqueries<'v>(&'v self, subqueries: &'v dyn Subqueries) -> EvalContext<'v> {
        EvalContext { subqueries: Some(subqueries), ..self.view() }
    }

    /// Returns a view of this context, which shares its state.
    pub fn view(&self) -> EvalContext<'_> {
        EvalContext {
            env: self.env,
            hooks: self.hooks,
            params: self.params,
            subqueries: self.subqueries,
            own: EvalState::new(None, self.state().floor, 0),
            shared: Some(self.state()),
        }
    }

    #[inline]
    fn state(&self) -> &EvalState {
        self.shared.unwrap_or(&self.own)
    }

    /// Returns the runner of subqueries. Error 1235 if there is none.
    pub(crate) fn subqueries(&self) -> SqlResult<&dyn Subqueries> {
        self.subqueries.ok_or_else(|| SqlError::not_supported("subqueries here"))
    }

    /// Sets whether a warning becomes the statement's error: while a strict statement changes data.
    pub fn set_abort_on_warning(&self, abort: bool) {
        self.state().abort_on_warning.set(abort);
    }

    /// Like [`EvalContext::set_abort_on_warning`]. Returns the value before.
    pub(crate) fn replace_abort_on_warning(&self, abort: bool) -> bool {
        self.state().abort_on_warning.replace(abort)
    }

    /// Sets whether the statement has IGNORE.
    pub fn set_forgiving(&self, forgives: bool) {
        self.state().forgives.set(forgives);
    }

    /// Reports a scalar subquery with more than one row: error 1242, or a warning under IGNORE.
    pub fn too_many_rows(&self) -> SqlResult<()> {
        let error = SqlError::subquery_returned_rows();
        if !self.state().forgives.get() {
            return Err(error);
        }
        self.push_warning(Warning::new(error));
        Ok(())
    }

    /// Returns the states of RAND(n), by the address of its node.
    pub(crate) fn random(&self) -> RefMut<'_, HashMap<usize, (u32, u32)>> {
        self.state().random.borrow_mut()
    }

    /// Returns the searches of the statement's MATCHes.
    pub(crate) fn searches(&self) -> &RefCell<Vec<KnownSearch>> {
        &self.state().searches
    }

    /// Returns the result of `read` for a constant. It is called once per statement.
    pub(crate) fn read_once(
        &self,
        node: usize,
        text: &Value,
        class: TypeClass,
        read: impl FnOnce() -> SqlResult<Value>,
    ) -> SqlResult<Value> {
        let is_same = |c: &&ReadConstant| c.node == node && c.class == class && c.text == *text;
        if let Some(known) = self.state().constants.borrow().iter().find(is_same) {
            return Ok(known.read.clone());
        }
        let made = read()?;
        let mut constants = self.state().constants.borrow_mut();
        if constants.len() < CONSTANTS_MAX {
            constants.push(ReadConstant { node, text: text.clone(), class, read: made.clone() });
        }
        Ok(made)
    }

    /// Charges memory that the statement keeps until its end, or until [`EvalContext::let_go`]. Errors 1290
    /// and 1041 if a limit is exceeded.
    #[inline]
    pub fn keep(&self, bytes: usize) -> SqlResult<()> {
        match &mut *self.state().memory.borrow_mut() {
            Some(memory) => Ok(memory.grow(bytes as u64)?),
            None => Ok(()),
        }
    }

    /// Adjusts the charge for an object whose size changed from `before` to `now`.
    #[inline]
    pub fn keep_instead(&self, before: usize, now: usize) -> SqlResult<()> {
        match now.checked_sub(before) {
            Some(0) => Ok(()),
            Some(more) => self.keep(more),
            None => {
                self.let_go(before - now);
                Ok(())
            }
        }
    }

    /// Returns the bytes charged to the statement; 0 if memory is not charged.
    pub fn kept_bytes(&self) -> usize {
        self.state().memory.borrow().as_ref().map_or(0, |memory| memory.used() as usize)
    }

    /// Releases a charge for memory that the statement no longer keeps.
    pub fn let_go(&self, bytes: usize) {
        if let Some(memory) = &mut *self.state().memory.borrow_mut() {
            memory.shrink(bytes as u64);
        }
    }

    /// Returns error 1436 if the stack is too small for another level of recursion.
    #[inline]
    pub fn check_stack(&self) -> SqlResult<()> {
        check_floor(self.state().floor)
    }

    /// Adds a warning, or fails with it in a strict data change.
    pub fn warn(&self, code: ErrorCode, message: impl Into<String>) -> SqlResult<()> {
        let error = SqlError::new(code, message);
        if self.state().abort_on_warning.get() {
            return Err(error);
        }
        self.push_warning(Warning { level: Level::Warning, error });
        Ok(())
    }

    /// Adds a note, which never becomes an error.
    pub fn note(&self, code: ErrorCode, message: impl Into<String>) {
        self.push_warning(Warning { level: Level::Note, error: SqlError::new(code, message) });
    }

    /// Returns the row number in warnings.
    pub fn row_number(&self) -> u64 {
        self.state().row_number.get().max(1)
    }

    /// Sets the row number of the next warnings. The first row is 1.
    pub fn set_row_number(&self, row: u64) {
        self.state().row_number.set(row);
    }

    /// Adds the current row number to an error, if the statement has started with its rows.
    pub fn at_row(&self, error: SqlError) -> SqlError {
        match self.state().row_number.get() {
            0 => error,
            row => error.at_row(row),
        }
    }

    /// Adds a warning with the current row number.
    pub fn push_warning(&self, warning: Warning) {
        let Warning { level, error } = warning;
        self.state().warnings.borrow_mut().push(Warning { level, error: self.at_row(error) });
    }

    /// Runs a conversion that warns; its first warning is the error in a strict data change.
    pub(crate) fn converting<T>(&self, convert: impl FnOnce(&mut dyn WarningSink) -> T) -> SqlResult<T> {
        let mut sink = Sink { ctx: self, failed: None };
        let converted = convert(&mut sink);
        match sink.failed {
            None => Ok(converted),
            Some(error) => Err(error),
        }
    }

    /// Returns NOW() in the session's time zone.
    pub(crate) fn now(&self) -> DateTime {
        cohort_types::TimeZone::to_local(&self.env.time_zone, self.env.now_micros)
    }

    /// Takes all warnings so far.
    pub fn take_warnings(&self) -> Warnings {
        let none = Warnings::new(self.env.max_error_count);
        self.state().warnings.replace(none)
    }

    /// Returns the number of warnings so far.
    pub fn warning_count(&self) -> u64 {
        self.state().warnings.borrow().total()
    }
}

impl EvalState {
    fn new(memory: Option<Reservation>, floor: StackFloor, warnings_max: usize) -> EvalState {
        EvalState {
            abort_on_warning: Cell::new(false),
            forgives: Cell::new(false),
            warnings: RefCell::new(Warnings::new(warnings_max)),
            memory: RefCell::new(memory),
            floor,
            steps_left: Cell::new(STEPS_UNASKED),
            row_number: Cell::new(0),
            random: RefCell::new(HashMap::new()),
            searches: RefCell::default(),
            constants: RefCell::default(),
        }
    }
}

impl Interrupt for EvalContext<'_> {
    #[inline]
    fn steps(&self, rounds: u32) -> SqlResult<()> {
        match self.state().steps_left.get().checked_sub(rounds) {
            Some(left) => {
                self.state().steps_left.set(left);
                Ok(())
            }
            None => {
                self.state().steps_left.set(STEPS_UNASKED);
                self.hooks.check_interrupt()
            }
        }
    }
}

/// Adds the warnings of conversions to a context.
struct Sink<'c, 's> {
    ctx: &'c EvalContext<'s>,
    failed: Option<SqlError>,
}

impl WarningSink for Sink<'_, '_> {
    fn warn(&mut self, warning: Warning) {
        if warning.level == Level::Warning && self.ctx.state().abort_on_warning.get() {
            self.failed.get_or_insert(warning.error);
        } else {
            self.ctx.push_warning(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_names() {
        let zone = |name| TimeZone::parse(name);
        assert!(matches!(zone("Europe/Berlin"), Some(TimeZone::Named(_))));
        assert!(matches!(zone("europe/berlin"), Some(TimeZone::Named(_))));
        assert!(zone("Europe/Nowhere").is_none());
    }
}
