//! Engine transactions and read view of the session's transaction.

use cohort_base::{BinlogPos, CommitSeq};
use cohort_catalog::Table;
use cohort_commit::CommitError;
use cohort_engine::{EngineTrx, ReadView};
use cohort_types::{SqlError, SqlResult};

use crate::active::Ends;
use crate::errors::commit_error;
use crate::session_trx::SessionTrx;
use crate::settings::{AccessMode, Isolation};
use cohort_table::EngineNo;

impl SessionTrx {
    /// Returns the transaction in one engine, which begins at its first use.
    #[inline]
    pub fn engine(&mut self, no: EngineNo) -> &mut dyn EngineTrx {
        if self.active.is_none() {
            self.parts();
        }
        let (env, temporary) = (&self.env, &self.temporary);
        let engines = &mut self.active.as_mut().expect("begun above").engines;
        if engines.len() <= no.0 {
            engines.resize_with(no.0 + 1, || None);
        }
        &mut **engines[no.0].get_or_insert_with(|| match env.engines.get(no.0) {
            Some(engine) => engine.begin(),
            None => temporary.rows().begin(),
        })
    }

    /// Returns the view for plain reads of the running statement (I5).
    pub fn read_view(&mut self) -> SqlResult<ReadView> {
        if let Some(view) = &self.active_mut().view {
            return Ok(view.clone());
        }
        // A client that pipelines its next statement before it has the reply to its commit must still see its
        // writes.
        self.await_own()?;
        // The transaction may have locked or found rows that are newer than what is published. The view must
        // not be older than these rows: it would show one row of a transaction and not another.
        let seen = self.active_mut().has_seen();
        self.await_published(seen, &self.kill)?;
        let (view, binlog_end) = self.env.commit.read_view_and_binlog_end();
        let active = self.active_mut();
        active.view = Some(view.clone());
        active.view_binlog_end = binlog_end;
        Ok(view)
    }

    /// Returns whether the transaction has a view that does not include `since`.
    #[inline]
    pub fn has_view_before(&self, since: CommitSeq) -> bool {
        let view = self.active().and_then(|active| active.view.as_ref());
        view.is_some_and(|view| view.seq() < since)
    }

    /// Returns whether the statement's view does not include `since` while the next statement's view would.
    #[inline]
    pub fn view_is_older(&self, since: CommitSeq) -> bool {
        let Some(active) = self.active() else { return false };
        let lasts = active.isolation.keeps_view() && active.ends == Ends::Explicitly;
        !lasts && self.has_view_before(since)
    }

    /// Returns the end of the binary log as seen by the running transaction; `None` without a view that
    /// lasts.
    pub fn snapshot_binlog_end(&self) -> Option<BinlogPos> {
        let active = self.active().filter(|active| active.isolation.keeps_view())?;
        active.view.as_ref().map(|_| active.view_binlog_end)
    }

    /// Returns whether a SELECT without FOR UPDATE or LOCK IN SHARE MODE locks the rows that it reads in
    /// share mode. That is the case within a SERIALIZABLE transaction, and where the rows decide what a
    /// statement writes (INSERT .. SELECT, subqueries of UPDATE and DELETE), except under READ COMMITTED.
    #[inline]
    pub fn plain_reads_lock(&self) -> bool {
        let isolation = match &self.active {
            Some(active) => active.isolation,
            None => self.settings.next_isolation.unwrap_or(self.settings.isolation),
        };
        match isolation {
            Isolation::Serializable => self.is_writing || self.lasts(),
            Isolation::RepeatableRead => self.is_writing,
            Isolation::ReadCommitted | Isolation::ReadUncommitted => false,
        }
    }

    /// Marks the running statement as one that changes rows.
    #[inline]
    pub fn begin_writing(&mut self) {
        self.is_writing = true;
    }

    /// Returns the view since which a row must not have changed when a statement locks it
    /// (`innodb_snapshot_isolation`).
    #[inline]
    pub fn view_to_keep(&self) -> Option<ReadView> {
        let active = self.active.as_ref().filter(|active| active.isolation.keeps_view())?;
        active.view.clone().filter(|_| self.settings.snapshot_isolation)
    }

    /// Returns whether the running transaction, or else the next one, is read-only. For a statement that
    /// commits first, returns whether the session's transactions are.
    #[inline]
    pub fn may_only_read(&self, commits_first: bool) -> bool {
        if commits_first {
            return self.settings.access_mode == AccessMode::ReadOnly;
        }
        let next = || self.settings.next_access_mode.unwrap_or(self.settings.access_mode);
        self.active.as_ref().map_or_else(next, |active| active.access_mode) == AccessMode::ReadOnly
    }

    /// Refuses writes in a read-only transaction, and writes that could not be committed because the disk is
    /// full. Every statement that changes rows of a table calls it first.
    pub fn check_writable(&mut self, table: &Table) -> SqlResult<()> {
        self.begin_writing();
        if table.is_temporary() {
            return Ok(());
        }
        if let Some(why) = self.env.commit.refusal() {
            return Err(commit_error(CommitError::DiskFull(why)));
        }
        match self.active_mut().access_mode {
            AccessMode::ReadWrite => Ok(()),
            AccessMode::ReadOnly => Err(SqlError::read_only_transaction()),
        }
    }
}
