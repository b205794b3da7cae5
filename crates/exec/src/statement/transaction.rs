//! Transactions, savepoints, LOCK TABLES.

use std::collections::BTreeMap;

use cohort_catalog::{Catalog, TableName};
use cohort_config::VarId;
use cohort_locks::{KillLevel, MetadataKey};
use cohort_session::TableUse;
use cohort_session::access::Viewer;
use cohort_sql::ast;
use cohort_sql::print::quoted_name;
use cohort_table::definition_changed;
use cohort_trx::{AccessMode, AliasLock, BeginOptions, LockedTables, TableId, TableLock, active_locks};
use cohort_types::{Privilege, SqlError, SqlResult};

use crate::dispatch::PLAN_ATTEMPTS;
use crate::program::reach::locked_with;
use crate::session::Session;

/// The ending of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    Rollback,
}

impl Session {
    pub(crate) fn begin(&mut self, begin: &ast::Begin) -> SqlResult<()> {
        self.trx.unlock_tables()?;
        let access_mode = begin.access.map(access_mode);
        let tracked = &self.state.transactions;
        if tracked.is_on() && self.trx.in_transaction() {
            tracked.end(false);
        }
        self.trx.begin(BeginOptions { access_mode, consistent_snapshot: begin.consistent_snapshot })?;
        if self.state.transactions.is_on() {
            self.state.transactions.begin(access_mode, begin.consistent_snapshot);
        }
        Ok(())
    }

    pub(crate) fn complete(&mut self, completion: ast::Completion, end: End) -> SqlResult<()> {
        self.check_branch(false)?;
        let chain =
            completion.chain.unwrap_or_else(|| self.state.settings.vars.uint(VarId::CompletionType) == 1);
        let release =
            completion.release.unwrap_or_else(|| self.state.settings.vars.uint(VarId::CompletionType) == 2);
        let (isolation, access_mode) = self.trx.characteristics();
        match end {
            End::Commit => drop(self.trx.commit()?),
            End::Rollback => self.trx.rollback(),
        }
        // COMMIT and ROLLBACK end the effect of SET TRANSACTION, used or not.
        self.trx.forget_next_characteristics();
        if chain {
            self.trx.settings.next_isolation = isolation;
            self.trx.begin(BeginOptions { access_mode, consistent_snapshot: false })?;
            if self.state.transactions.is_on() {
                self.state.transactions.chain();
            }
        }
        if release {
            self.process.kill(KillLevel::Connection);
        }
        Ok(())
    }

    pub(crate) fn savepoint(&mut self, name: &str) -> SqlResult<()> {
        self.check_branch(true)?;
        let state = &self.state;
        self.trx
            .savepoint(name, || cohort_ddl::query_event(state, &format!("SAVEPOINT {}", quoted_name(name))))
    }

    pub(crate) fn rollback_to(&mut self, name: &str) -> SqlResult<()> {
        self.check_branch(true)?;
        self.trx.rollback_to(name)
    }

    pub(crate) fn release_savepoint(&mut self, name: &str) -> SqlResult<()> {
        self.check_branch(true)?;
        self.trx.release(name)
    }

    /// Runs UNLOCK TABLES, which commits the transaction if tables were locked.
    pub(crate) fn unlock_tables(&mut self) -> SqlResult<()> {
        if self.trx.has_locked_tables() {
            self.trx.commit_implicitly()?;
        }
        self.trx.unlock_all()
    }

    /// Runs LOCK TABLES, which commits an open transaction first.
    pub(crate) fn lock_tables(&mut self, tables: &[ast::LockTable]) -> SqlResult<()> {
        let mut wanted = LockedTables::new();
        for ast::LockTable { table, alias, mode } in tables {
            let current = self.state.current_schema.as_deref();
            let schema = table.db.as_deref().or(current).ok_or_else(SqlError::no_database_selected)?;
            let is_own = self.state.temporary.find(schema, &table.name).is_some();
            if is_own || self.state.db.virtual_tables.has_schema(schema) {
                continue;
            }
            let lock = match mode {
                ast::TableLockMode::Write => TableLock::Write,
                ast::TableLockMode::Read | ast::TableLockMode::ReadLocal => TableLock::Read,
            };
            if lock == TableLock::Write {
                cohort_query::guards::check_read_only(&self.state)?;
            }
            let aliases = wanted.entry((schema.to_owned(), table.name.clone())).or_default();
            let alias = alias.as_ref().unwrap_or(&table.name);
            if aliases
                .insert(alias.clone(), AliasLock { lock, against_others: Some(lock), is_of_view: false })
                .is_some()
            {
                return Err(SqlError::non_unique_table(alias));
            }
        }
        self.lock_tables_with_related(&wanted)?;
        // The tables are looked up under their locks, so no other session can drop them any more.
        let catalog = self.state.db.catalog();
        let missing = self.trx.locked_tables().find(|(schema, table)| {
            catalog.table(schema, table).is_none()
                && catalog.view(schema, table).is_none()
                && self.state.db.virtual_table(schema, table).is_none()
        });
        let error = missing.map(|(schema, table)| SqlError::no_such_table(schema, table));
        match error {
            None => {
                self.send_locked_state();
                Ok(())
            }
            Some(error) => {
                self.trx.unlock_tables()?;
                Err(error)
            }
        }
    }

    /// Locks the tables of FLUSH TABLES .. WITH READ LOCK.
    pub(crate) fn lock_flushed_tables(&mut self, names: &[ast::ObjectName]) -> SqlResult<()> {
        if self.trx.has_locked_tables() {
            return Err(active_locks());
        }
        for name in names {
            let schema = name.db.as_deref().or(self.state.current_schema.as_deref()).unwrap_or_default();
            if self.state.temporary.find(schema, &name.name).is_some() {
                return Err(SqlError::no_such_table(schema, &name.name));
            }
        }
        let lock = |name: &ast::ObjectName| ast::LockTable {
            table: name.clone(),
            alias: None,
            mode: ast::TableLockMode::Read,
        };
        self.lock_tables(&names.iter().map(lock).collect::<Vec<_>>())
    }

    /// Locks tables with all that views, triggers and functions use. Other sessions may change these before
    /// the locks are held.
    fn lock_tables_with_related(&mut self, wanted: &LockedTables) -> SqlResult<()> {
        for _ in 0..PLAN_ATTEMPTS {
            let version = self.state.db.catalog_version();
            let with_related = self.with_related(wanted)?;
            let (tables, routines) = with_related.clone();
            self.trx.lock_tables(tables, routines)?;
            if self.state.db.catalog_version() == version || self.with_related(wanted)? == with_related {
                return Ok(());
            }
            self.trx.unlock_tables()?;
        }
        Err(definition_changed())
    }

    /// Adds the tables of views, and what triggers and functions of views use. Other sessions may use the
    /// tables that only programs name.
    fn with_related(&self, wanted: &LockedTables) -> SqlResult<(LockedTables, Vec<MetadataKey>)> {
        let mut wanted = wanted.clone();
        self.add_tables_of_views(&mut wanted)?;
        let catalog = self.state.db.catalog();
        let is_written = |aliases: &BTreeMap<String, AliasLock>| {
            aliases.values().any(|alias| alias.lock == TableLock::Write)
        };
        let written = wanted.iter().filter(|(_, aliases)| is_written(aliases));
        let written: Vec<_> =
            written.filter_map(|((schema, name), _)| catalog.table(schema, name).cloned()).collect();
        let views = wanted.keys().filter(|(schema, name)| catalog.view(schema, name).is_some());
        let views: Vec<TableId> = views.cloned().collect();
        let reached = locked_with(&catalog, &self.state, (&written, &views));
        let routines = reached.routine_keys().collect();
        for (id, alias, is_written) in reached.uses {
            if catalog.table(&id.0, &id.1).is_none() && catalog.view(&id.0, &id.1).is_none() {
                continue;
            }
            // NEXTVAL writes.
            let is_written = is_written || is_sequence(&catalog, &id);
            let lock = if is_written { TableLock::Write } else { TableLock::Read };
            let held = wanted.entry(id).or_default().entry(alias);
            let held = held.or_insert(AliasLock { lock, against_others: None, is_of_view: true });
            (held.lock, held.is_of_view) = (lock.max(held.lock), true);
        }
        Ok((wanted, routines))
    }

    fn send_locked_state(&self) {
        let Some(tables) = self.state.audit_tables() else { return };
        let catalog = self.state.db.catalog();
        for ((schema, name), lock) in self.trx.locked_tables_with_locks() {
            let of = if lock == TableLock::Write { TableUse::Write } else { TableUse::Read };
            catalog.table(schema, name).into_iter().for_each(|table| tables.report_use(of, table));
        }
    }

    /// Adds the tables that a view reads to the tables to lock. Error 1356 if the view's definer, or its
    /// invoker, may not lock them.
    fn add_tables_of_views(&self, wanted: &mut LockedTables) -> SqlResult<()> {
        let catalog = self.state.db.catalog();
        let mut open: Vec<(TableName, Viewer)> = wanted
            .keys()
            .map(|(schema, table)| {
                (TableName { schema: schema.clone(), table: table.clone() }, Viewer::Session)
            })
            .collect();
        let mut seen = Vec::new();
        while let Some((name, outer)) = open.pop() {
            let Some(view) = catalog.view(&name.schema, &name.table) else { continue };
            let viewer = if view.by_invoker { outer } else { Viewer::of(Some(view.definer.clone())) };
            if seen.contains(&(name.clone(), viewer.clone())) {
                continue;
            }
            seen.push((name.clone(), viewer.clone()));
            let aliases =
                wanted.get(&(name.schema, name.table)).map(|all| all.values().map(|it| it.lock).max());
            let lock = aliases.flatten().unwrap_or(TableLock::Read);
            for (schema, table, alias) in cohort_plan::named_tables(view)? {
                // Common table expressions have no schema.
                if schema.is_empty() || self.state.db.virtual_tables.has_schema(&schema) {
                    continue;
                }
                let may_lock = viewer.access(&self.state).on_schema(&schema).has(Privilege::LockTables);
                let may_read = viewer.check_table(&self.state, Privilege::Select.into(), &schema, &table);
                if !may_lock || may_read.is_err() {
                    return Err(cohort_plan::invalid_view(view));
                }
                let locked = wanted.entry((schema.clone(), table.clone())).or_default();
                let (lock, against_others) = match is_sequence(&catalog, &(schema.clone(), table.clone())) {
                    // NEXTVAL writes; other sessions may use it, too.
                    true => (TableLock::Write, None),
                    false => (lock, Some(lock)),
                };
                let held =
                    locked.entry(alias).or_insert(AliasLock { lock, against_others, is_of_view: true });
                let against_others = held.against_others.max(against_others);
                *held = AliasLock { lock: lock.max(held.lock), against_others, is_of_view: true };
                open.push((TableName { schema, table }, viewer.clone()));
            }
        }
        Ok(())
    }
}

fn is_sequence(catalog: &Catalog, id: &TableId) -> bool {
    catalog.table(&id.0, &id.1).is_some_and(|table| table.is_sequence())
}

/// Converts READ ONLY or READ WRITE.
pub(crate) fn access_mode(mode: ast::AccessMode) -> AccessMode {
    match mode {
        ast::AccessMode::ReadOnly => AccessMode::ReadOnly,
        ast::AccessMode::ReadWrite => AccessMode::ReadWrite,
    }
}
