//! A session's prepared statements.

use std::sync::Arc;

use cohort_config::HeldGauge;
use cohort_sql::ast::Statement;
use cohort_types::{SqlError, SqlResult};
use hashbrown::HashMap;

use crate::known_statement::KnownStatement;
use crate::prepared_texts::{KeptPlan, PreparedText};
use crate::unfilled::Unfilled;

/// A session's prepared statements.
#[derive(Default)]
pub struct PreparedStatements {
    pub by_id: HashMap<u32, Prepared>,
    pub by_name: HashMap<String, Prepared>,
    last_id: u32,
    /// Bytes of all statements, including parts shared with other sessions.
    pub bytes: u64,
}

/// A prepared statement of a session.
pub struct Prepared {
    pub of: Arc<PreparedText>,
    /// Statement to run instead: the original with DEFAULT in place of some parameters.
    pub variant: Option<Arc<Statement>>,
    /// Number of result columns last sent to the client.
    pub columns_sent: usize,
    pub plan: Option<KeptPlan>,
    /// Current database at PREPARE; the statement always runs in it.
    pub schema: Option<Arc<str>>,
    /// The statement, for statistics.
    pub statement: Arc<KnownStatement>,
    /// It runs: a procedure that it calls can neither execute, replace nor deallocate it.
    pub is_running: bool,
    /// Its share of max_prepared_stmt_count.
    pub _counted: Option<HeldGauge>,
}

impl Prepared {
    /// Returns the statement with DEFAULT in place of some parameters. Error 4032 if it does not allow that.
    pub fn variant(&self, unfilled: &Unfilled) -> SqlResult<Prepared> {
        Ok(Prepared {
            of: Arc::clone(&self.of),
            variant: Some(Arc::new(unfilled.fill(&self.of.parsed.statement)?)),
            columns_sent: self.columns_sent,
            plan: None,
            schema: self.schema.clone(),
            statement: Arc::clone(&self.statement),
            is_running: false,
            _counted: None,
        })
    }
}

impl PreparedStatements {
    pub fn insert(&mut self, handle: Handle, prepared: Prepared) {
        self.bytes += prepared.of.bytes();
        let old = match handle {
            Handle::Id(id) => self.by_id.insert(id, prepared),
            Handle::Name(name) => self.by_name.insert(name, prepared),
        };
        self.bytes -= old.map_or(0, |old| old.of.bytes());
    }

    /// Removes a statement. Returns `None` if there is no such statement.
    pub fn remove(&mut self, handle: &Handle) -> Option<()> {
        let old = match handle {
            Handle::Id(id) => self.by_id.remove(id),
            Handle::Name(name) => self.by_name.remove(name),
        }?;
        self.bytes -= old.of.bytes();
        Some(())
    }

    /// Adds a statement and returns its number.
    pub fn add(&mut self, prepared: Prepared) -> u32 {
        let id = loop {
            self.last_id = self.last_id.wrapping_add(1);
            let id = self.last_id;
            if id != 0 && id != u32::MAX && !self.by_id.contains_key(&id) {
                break id;
            }
        };
        self.insert(Handle::Id(id), prepared);
        id
    }

    /// Returns error 1444 if the statement runs.
    pub fn check_idle(&self, name: &str) -> SqlResult<()> {
        match self.by_name.get(name) {
            Some(Prepared { is_running: true, .. }) => Err(SqlError::prepared_calls_itself()),
            _ => Ok(()),
        }
    }

    pub fn get(&self, handle: &Handle) -> &Prepared {
        match handle {
            Handle::Id(id) => &self.by_id[id],
            Handle::Name(name) => &self.by_name[name],
        }
    }

    pub fn get_mut(&mut self, handle: &Handle) -> &mut Prepared {
        let found = match handle {
            Handle::Id(id) => self.by_id.get_mut(id),
            Handle::Name(name) => self.by_name.get_mut(name),
        };
        found.expect("a statement is not deallocated while it runs")
    }
}

/// Identifier of a prepared statement.
#[derive(Clone)]
pub enum Handle {
    Id(u32),
    Name(String),
}
