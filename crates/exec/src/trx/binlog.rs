//! What the running transaction will write to the binlog: a thin layer over [`TrxCache`] that starts a
//! statement's events with its first changed row, and goes back when the statement is undone.

use std::sync::Arc;

use cohort_binlog::event::{Event, QueryEvent, RowsKind, TableMap, XaPrepare, XaXid, flags};
use cohort_binlog::{CacheError, CachePos, RowImage, Sealed, Stamp, TrxCache};
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::trx::SessionTrx;
use crate::trx::settings::BinlogSettings;

/// A place to go back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogMark(CachePos);

/// Whether the running statement has written to the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statement {
    /// Nothing yet.
    Silent,
    /// A row: the cache knows the statement.
    Logged,
}

/// The transaction's events.
pub(crate) struct StatementLog {
    cache: TrxCache,
    statement: Statement,
    timestamp: u32,
    /// Tables announced in this statement.
    tables: Vec<u64>,
}

/// A changed row as the log wants it.
pub(crate) struct LoggedRow<'r> {
    pub(crate) map: &'r Arc<TableMap>,
    pub(crate) image: RowImage<'r>,
}

impl StatementLog {
    pub(crate) fn new(cache: TrxCache) -> StatementLog {
        StatementLog { cache, statement: Statement::Silent, timestamp: 0, tables: Vec::new() }
    }

    pub(crate) fn mark(&self) -> LogMark {
        LogMark(self.cache.position())
    }

    pub(crate) fn statement_begin(&mut self, timestamp: u32) {
        self.statement = Statement::Silent;
        self.timestamp = timestamp;
        self.tables.clear();
    }

    pub(crate) fn statement_end(&mut self) -> SqlResult<()> {
        match std::mem::replace(&mut self.statement, Statement::Silent) {
            Statement::Silent => Ok(()),
            Statement::Logged => self.cache.end_statement().map_err(cache_error),
        }
    }

    /// Forgets what came behind the mark.
    pub(crate) fn truncate(&mut self, mark: LogMark) -> SqlResult<()> {
        self.statement = Statement::Silent;
        self.tables.clear();
        self.cache.truncate(mark.0).map_err(cache_error)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cache.is_empty()
    }

    /// Bytes of memory that it takes; the rest is in a file.
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

    /// Ends the events of an XA transaction's first half: XA END and XA_PREPARE.
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

    fn begin(&mut self, settings: &BinlogSettings, annotation: Option<&[u8]>) {
        let stamp =
            Stamp { timestamp: self.timestamp, server_id: settings.server, flags: settings.event_flags };
        self.cache.begin_statement(stamp, annotation);
        self.statement = Statement::Logged;
    }
}

impl SessionTrx {
    /// Whether statements with this current schema go to the binlog as text.
    pub(crate) fn logs_statements(&self, schema: &str) -> bool {
        self.logs_rows(schema)
    }

    /// Whether changed rows of tables in this schema go to the binlog: otherwise their images need not be
    /// built.
    pub(crate) fn logs_rows(&self, schema: &str) -> bool {
        self.settings.binlog.on && self.db.binlog_filter.lets_pass(schema)
    }

    /// Where the text goes that the running statement's row events are annotated with, empty; None if they
    /// are not.
    pub fn annotation(&mut self) -> Option<&mut Vec<u8>> {
        self.annotation.clear();
        (self.settings.binlog.on && self.settings.binlog.annotate).then_some(&mut self.annotation)
    }

    /// Adds a changed row.
    pub(crate) fn log_row(&mut self, row: LoggedRow<'_>) -> SqlResult<()> {
        let annotation = std::mem::take(&mut self.annotation);
        self.active_mut();
        let log = &mut self.active.as_mut().expect("begun above").log;
        if log.statement == Statement::Silent {
            log.begin(&self.settings.binlog, (!annotation.is_empty()).then_some(&*annotation));
            log.cache.set_compression(self.db.compression());
        }
        let id = row.map.table_id;
        if !log.tables.contains(&id) {
            log.tables.push(id);
            log.cache.table_map(row.map);
        }
        let result = log.cache.row(id, &row.image).map_err(cache_error);
        self.annotation = annotation;
        result
    }
}

/// All columns of a table, as a bitmap of row events.
pub(crate) fn all_columns(width: usize) -> Vec<u8> {
    let mut bits = vec![0xff; width.div_ceil(8)];
    if let (Some(last), rest @ 1..) = (bits.last_mut(), width % 8) {
        *last = (1 << rest) - 1;
    }
    bits
}

/// What an update's row event is, for readability at the call.
pub(crate) fn image<'r>(kind: RowsKind, flags: u16, present: &'r [u8], bytes: &'r [u8]) -> RowImage<'r> {
    let present_after = if kind == RowsKind::Update { present } else { &[] };
    RowImage { kind, flags, present, present_after, image: bytes }
}

fn cache_error(error: CacheError) -> SqlError {
    match error {
        CacheError::TooLarge { .. } => SqlError::new(
            ErrorCode::TransactionTooLarge,
            "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; \
             increase this mysqld variable and try again",
        ),
        CacheError::EventTooLarge { .. } => SqlError::new(
            ErrorCode::BinlogRowLoggingFailed,
            "Writing one row to the row-based binary log failed",
        ),
        CacheError::Spill(e) if e.kind() == std::io::ErrorKind::StorageFull => SqlError::new(
            ErrorCode::DiskFull,
            format!("Disk full ({e}); waiting for someone to free some space"),
        ),
        CacheError::Spill(e) => SqlError::new(
            ErrorCode::UnknownError,
            format!("Error writing the transaction's binlog cache: {e}"),
        ),
    }
}
