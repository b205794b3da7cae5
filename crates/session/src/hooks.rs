//! [`SessionHooks`] of a session: the callbacks of expressions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cohort_base::Budget;
use cohort_config::{Scope, VarId};
use cohort_expr::{LoadedFile, SequenceName, SessionHooks, VariableScope, WordSource};
use cohort_locks::LockError;
use cohort_trx::lock_error;
use cohort_types::{SqlError, SqlResult, Value};

use crate::files;
use crate::full_text;
use crate::sequence;
use crate::session_state::SessionState;
use crate::settings::{set_error, to_value};

impl SessionHooks for SessionState {
    fn row_count(&self, source: &WordSource) -> SqlResult<u64> {
        full_text::row_count(self, source)
    }

    fn word_row_count(&self, source: &WordSource, start: &[u8], end: Option<&[u8]>) -> SqlResult<u64> {
        full_text::word_row_count(self, source, start, end)
    }

    fn user_variable(&self, name: &str) -> Option<Value> {
        self.user_variables.borrow().get(&name.to_lowercase()).cloned()
    }

    fn set_user_variable(&self, name: &str, value: Value) -> SqlResult<()> {
        let (name, mut variables) = (name.to_lowercase(), self.user_variables.borrow_mut());
        let value = value.of_no_column();
        let mut memory = self.user_variable_memory.borrow_mut();
        let taken = |name: &str, value: &Value| (name.len() + value.memory_bytes()) as u64;
        memory.grow(taken(&name, &value))?;
        let bytes_before = variables.get(&name).map(|before| taken(&name, before));
        memory.shrink(bytes_before.unwrap_or(0));
        variables.insert(name, value);
        Ok(())
    }

    fn memory(&self) -> Option<&Arc<Budget>> {
        Some(&self.memory)
    }

    fn system_variable(&self, scope: VariableScope, name: &str) -> SqlResult<Value> {
        let scope = match scope {
            VariableScope::Default => None,
            VariableScope::Global => Some(Scope::Global),
            VariableScope::Session => Some(Scope::Session),
        };
        let stored = self.settings.vars.get(name, scope).map_err(set_error)?;
        let computed = VarId::find(name).filter(|id| id.setting().computed).and_then(|id| self.computed(id));
        Ok(computed.unwrap_or_else(|| to_value(&stored)))
    }

    fn set_last_insert_id(&self, id: u64) {
        self.statement.next_insert_id.set(Some(id));
    }

    fn last_insert_id_set(&self) -> Option<u64> {
        self.statement.next_insert_id.get()
    }

    fn load_file(&self, name: &str, bytes_max: u64) -> SqlResult<LoadedFile> {
        files::load(self, name, bytes_max)
    }

    fn gtid_position_at(&self, file: &str, offset: u64) -> SqlResult<Option<String>> {
        crate::gtid_position::gtid_position_at(&self.db, file, offset)
    }

    fn wait_for_gtids(&self, position: &str, timeout: Option<Duration>) -> SqlResult<bool> {
        crate::gtid_position::wait_for_gtids(self, position, timeout)
    }

    fn wait_for_file_position(
        &self,
        file: &str,
        position: u64,
        timeout: Option<Duration>,
        connection: &str,
    ) -> SqlResult<Option<i64>> {
        crate::gtid_position::wait_for_file_position(self, file, position, timeout, connection)
    }

    fn clock_micros(&self) -> i64 {
        self.db.clock.wall_us() as i64
    }

    fn random(&self) -> u64 {
        self.next_random.take().unwrap_or_else(|| self.db.rng.next_u64())
    }

    fn next_short_uuid(&self) -> u64 {
        self.db.next_short_uuid.fetch_add(1, Ordering::Relaxed)
    }

    fn check_interrupt(&self) -> SqlResult<()> {
        if let Some(level) = self.kill.killed() {
            return Err(lock_error(LockError::Killed(level)));
        }
        match self.statement.deadline_ns.get() {
            Some(deadline_ns) if self.db.clock.monotonic_ns() > deadline_ns => {
                Err(SqlError::statement_timeout())
            }
            _ => Ok(()),
        }
    }

    fn next_value(&self, sequence: SequenceName<'_>) -> SqlResult<i64> {
        sequence::next_value(self, sequence)
    }

    fn last_value(&self, sequence: SequenceName<'_>) -> SqlResult<Option<i64>> {
        sequence::last_value(self, sequence)
    }

    fn set_sequence(
        &self,
        sequence: SequenceName<'_>,
        value: i64,
        is_used: bool,
        round: i64,
    ) -> SqlResult<bool> {
        sequence::set_value(self, sequence, value, is_used, round)
    }

    fn get_lock(&self, name: &str, timeout: Duration) -> SqlResult<bool> {
        let left =
            self.statement.deadline_ns.get().map(|end| end.saturating_sub(self.db.clock.monotonic_ns()));
        let left = left.map(Duration::from_nanos).filter(|left| *left < timeout);
        match self.user_locks.lock(name, left.unwrap_or(timeout), &self.kill)? {
            false if left.is_some() => Err(SqlError::statement_timeout()),
            given => Ok(given),
        }
    }

    fn release_lock(&self, name: &str) -> Option<bool> {
        self.user_locks.unlock(name)
    }

    fn release_all_locks(&self) -> u64 {
        self.user_locks.unlock_all()
    }

    fn lock_holder(&self, name: &str) -> Option<u64> {
        self.user_locks.holder(name)
    }

    fn sleep(&self, duration: Duration) -> SqlResult<()> {
        match self.db.processes.get(self.info.id) {
            Some(process) => {
                process.while_idling("User sleep", self.db.clock.wall_us(), || self.pause(duration))
            }
            None => self.pause(duration),
        }
    }
}

impl SessionState {
    /// Sleeps within a statement until the duration or the statement's time limit ends, or the session is
    /// killed.
    pub(crate) fn pause(&self, duration: Duration) -> SqlResult<()> {
        let left =
            self.statement.deadline_ns.get().map(|end| end.saturating_sub(self.db.clock.monotonic_ns()));
        let left = left.map(Duration::from_nanos).filter(|left| *left < duration);
        self.db.locks.sleep(left.unwrap_or(duration), &self.kill).map_err(lock_error)?;
        if left.is_some() { Err(SqlError::statement_timeout()) } else { Ok(()) }
    }
}
