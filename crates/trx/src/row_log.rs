//! Row events of the transaction.

use cohort_binlog::RowImage;
use cohort_binlog::event::RowsKind;
use cohort_config::VarId;
use cohort_table::{Change, MapMetadata, OpenTable, Presence};
use cohort_types::SqlResult;

use crate::binlog::{LoggedRow, image};
use crate::session_trx::SessionTrx;

impl SessionTrx {
    /// Adds the change to the transaction's binlog events, if it is logged. `buffer` is scratch memory;
    /// without `presence` the images are full.
    pub fn log_change(
        &mut self,
        table: &OpenTable,
        change: Change<'_>,
        buffer: &mut Vec<u8>,
        mut presence: Option<&mut Presence>,
    ) -> SqlResult<()> {
        if table.is_temporary() || !self.logs_rows(&table.table().name.schema) {
            return Ok(());
        }
        buffer.clear();
        let kind = table.append_change(change, presence.as_deref_mut(), buffer)?;
        let flags = self.settings.binlog.rows_flags;
        let image = match &presence {
            None => image(kind, flags, &table.all_columns, buffer),
            Some(presence) => {
                let (present, present_after) = match kind {
                    RowsKind::Write => (&presence.after, &[][..]),
                    RowsKind::Delete => (&presence.before, &[][..]),
                    RowsKind::Update => (&presence.before, &presence.after[..]),
                };
                RowImage { kind, flags, present, present_after, image: buffer }
            }
        };
        let metadata = MapMetadata::of(self.env.globals.uint(VarId::BinlogRowMetadata));
        self.log_row(LoggedRow { map: table.map(metadata), image })
    }

    /// Returns whether statements with this current schema are logged as text.
    #[inline]
    pub fn logs_statements(&self, schema: &str) -> bool {
        self.logs_rows(schema)
    }

    /// Returns whether row changes of tables in this schema are logged. If not, their images need not be
    /// built.
    #[inline]
    pub(crate) fn logs_rows(&self, schema: &str) -> bool {
        self.settings.binlog.on && self.env.binlog_filter.lets_pass(schema)
    }

    /// Returns the empty buffer for the text with which the running statement's row events are annotated;
    /// `None` if they are not annotated, or have the text of an outer statement.
    pub fn annotation(&mut self) -> Option<&mut Vec<u8>> {
        if self.is_inside() {
            return None;
        }
        self.annotation.clear();
        (self.settings.binlog.on && self.settings.binlog.annotate).then_some(&mut self.annotation)
    }

    /// Adds a changed row.
    pub fn log_row(&mut self, row: LoggedRow<'_>) -> SqlResult<()> {
        let annotation = std::mem::take(&mut self.annotation);
        self.active_mut();
        let log = &mut self.active.as_mut().expect("begun above").log;
        let result = log.row(&self.settings.binlog, &annotation, || self.env.compression(), &row);
        self.annotation = annotation;
        result
    }
}
