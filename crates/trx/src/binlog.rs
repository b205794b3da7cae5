//! Binlog events of the running transaction: a thin layer over [`TrxCache`] that starts a statement's events
//! at its first changed row, and truncates them when the statement is undone.

use std::sync::Arc;

use cohort_binlog::event::{Event, QueryEvent, RowsKind, TableMap, XaPrepare, XaXid, flags};
use cohort_binlog::{CachePos, RowImage, Sealed, Stamp, TrxCache};
use cohort_types::SqlResult;

use crate::errors::cache_error;
use crate::settings::BinlogSettings;

/// A position in the events, for truncation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogMark {
    at: CachePos,
    /// The running statement has events before it.
    is_inside: bool,
}

/// State of the running statement in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statement {
    /// Nothing written yet.
    Silent,
    /// Its events so far have ended; more may follow, without another annotation.
    Paused,
    /// A row was written: the cache knows the statement.
    Logged,
}

/// Binlog events of the transaction.
pub(crate) struct StatementLog {
    cache: TrxCache,
    statement: Statement,
    timestamp: u32,
    /// Tables announced in this statement.
    tables: Vec<u64>,
}

/// A changed row with its table map.
pub struct LoggedRow<'r> {
    pub map: &'r Arc<TableMap>,
    pub image: RowImage<'r>,
}

impl StatementLog {
    pub(crate) fn new(cache: TrxCache) -> StatementLog {
        StatementLog { cache, statement: Statement::Silent, timestamp: 0, tables: Vec::new() }
    }

    pub(crate) fn mark(&self) -> LogMark {
        LogMark { at: self.cache.position(), is_inside: self.statement != Statement::Silent }
    }

    /// Ends the events of the running statement so far, so that they can be kept while later ones are
    /// removed.
    pub(crate) fn pause(&mut self) -> SqlResult<()> {
        if self.statement == Statement::Logged {
            self.statement = Statement::Paused;
            self.tables.clear();
            self.cache.end_statement().map_err(cache_error)?;
        }
        Ok(())
    }

    pub(crate) fn statement_begin(&mut self, timestamp: u32) {
        self.statement = Statement::Silent;
        self.timestamp = timestamp;
        self.tables.clear();
    }

    #[inline]
    pub(crate) fn statement_end(&mut self) -> SqlResult<()> {
        match std::mem::replace(&mut self.statement, Statement::Silent) {
            Statement::Silent | Statement::Paused => Ok(()),
            Statement::Logged => self.cache.end_statement().map_err(cache_error),
        }
    }

    /// Removes the events after the mark.
    pub(crate) fn truncate(&mut self, mark: LogMark) -> SqlResult<()> {
        self.statement = if mark.is_inside { Statement::Paused } else { Statement::Silent };
        self.tables.clear();
        self.cache.truncate(mark.at).map_err(cache_error)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cache.is_empty()
    }

    /// Returns the bytes in memory; the other events are in a file.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.cache.memory_bytes()
    }

    pub(crate) fn seal(&mut self) -> SqlResult<Sealed> {
        self.cache.seal().map_err(cache_error)
    }

    pub(crate) fn clear(&mut self) {
        if !self.cache.is_empty() {
            self.cache.reset();
        }
        self.tables.clear();
        self.statement = Statement::Silent;
    }

    /// Adds a statement as text (DDL).
    pub(crate) fn query(
        &mut self,
        settings: &BinlogSettings,
        flags: u16,
        event: &QueryEvent,
    ) -> SqlResult<()> {
        self.begin(settings, None);
        self.cache.query(flags, event).map_err(cache_error)
    }

    /// Ends the events of an XA transaction's first phase: XA END and XA_PREPARE.
    pub(super) fn xa_prepare(
        &mut self,
        settings: &BinlogSettings,
        end: &QueryEvent,
        xid: &XaXid,
    ) -> SqlResult<()> {
        self.query(settings, flags::SUPPRESS_USE, end)?;
        let event = Event::XaPrepare(XaPrepare { one_phase: 0, xid: xid.clone() });
        self.cache.event(0, &event).map_err(cache_error)?;
        self.statement_end()
    }

    /// Adds a changed row. `compression` returns the minimum size for compression.
    pub(crate) fn row(
        &mut self,
        settings: &BinlogSettings,
        annotation: &[u8],
        compression: impl FnOnce() -> Option<usize>,
        row: &LoggedRow<'_>,
    ) -> SqlResult<()> {
        if self.statement != Statement::Logged {
            let is_first = self.statement == Statement::Silent;
            self.begin(settings, (is_first && !annotation.is_empty()).then_some(annotation));
            self.cache.set_compression(compression());
        }
        let id = row.map.table_id;
        if !self.tables.contains(&id) {
            self.tables.push(id);
            self.cache.table_map(row.map);
        }
        self.cache.row(id, &row.image).map_err(cache_error)
    }

    fn begin(&mut self, settings: &BinlogSettings, annotation: Option<&[u8]>) {
        let stamp =
            Stamp { timestamp: self.timestamp, server_id: settings.server, flags: settings.event_flags };
        self.cache.begin_statement(stamp, annotation);
        self.statement = Statement::Logged;
    }
}

/// Builds a row image in which an update has the same columns before and after.
pub fn image<'r>(kind: RowsKind, flags: u16, present: &'r [u8], bytes: &'r [u8]) -> RowImage<'r> {
    let present_after = if kind == RowsKind::Update { present } else { &[] };
    RowImage { kind, flags, present, present_after, image: bytes }
}
