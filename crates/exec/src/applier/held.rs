//! Row events of one statement that are buffered and applied together. This serves tables without a key that
//! finds a row.
//!
//! A source splits a statement into events of some kilobytes. Applied one by one, each event would scan the
//! table for its rows, so the work would grow with the square of the statement's row count. Buffered rows are
//! applied with the statement's last event, or when they reach [`HELD_BYTES_MAX`].

use cohort_binlog::event::{Packing, RowsEvent, RowsKind, SharedBytes, TableMap};
use cohort_catalog::Table;
use cohort_dml::ApplyRules;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use super::Applier;

const HELD_BYTES_MAX: usize = 4 << 20;

/// Buffered row events of a statement that has more to come.
pub(super) struct Held {
    map: TableMap,
    /// The first event; its row images are in `rows`, too.
    event: RowsEvent,
    rows: Vec<u8>,
    annotation: Vec<u8>,
    timestamp: u32,
    rules: ApplyRules,
}

impl Held {
    fn goes_on_with(&self, map: &TableMap, event: &RowsEvent) -> bool {
        let own = &self.event;
        (own.table_id, own.kind, own.width) == (event.table_id, event.kind, event.width)
            && own.present == event.present
            && own.present_after == event.present_after
            && self.map == *map
    }
}

/// Returns true if rows of the table may have to be found by a scan.
fn is_searched(table: &Table) -> bool {
    table.identifying_key().is_none()
}

impl Applier {
    /// Allows buffering of row events in the group that has just begun. Only valid if errors are not ignored:
    /// an ignored error skips one event, but buffered events are applied as one.
    pub fn allow_holding(&mut self) {
        self.holds = true;
    }

    /// Buffers an event if it is better applied together with others; returns false if the caller must apply
    /// it. Applies the buffered events first if this event does not continue them, and afterwards if it is
    /// their last.
    pub(super) fn hold(
        &mut self,
        map: &TableMap,
        event: &RowsEvent,
        annotation: &[u8],
        timestamp: u32,
        rules: &ApplyRules,
    ) -> SqlResult<bool> {
        if self.held.as_ref().is_some_and(|held| !held.goes_on_with(map, event)) {
            self.apply_held()?;
        }
        if self.held.is_none() {
            if !self.holds || event.kind == RowsKind::Write || event.ends_statement() {
                return Ok(false);
            }
            let (schema, name) = (String::from_utf8_lossy(&map.db), String::from_utf8_lossy(&map.table));
            if !self.session.state.db.catalog().table(&schema, &name).is_some_and(|table| is_searched(table))
            {
                return Ok(false);
            }
            let (map, event) = (map.clone(), event.clone());
            let annotation = annotation.to_vec();
            self.held = Some(Held { map, event, rows: Vec::new(), annotation, timestamp, rules: *rules });
        }
        let _room = self.reserve_to_unpack(event.inflated_bytes())?;
        let rows = event.plain_rows();
        let rows = rows.map_err(|e| SqlError::new(ErrorCode::UnknownError, e.to_string()))?;
        self.held_memory.grow(rows.len() as u64)?;
        let Some(held) = &mut self.held else { return Ok(false) };
        held.rows.extend_from_slice(&rows);
        held.event.flags = event.flags;
        if event.ends_statement() || held.rows.len() >= HELD_BYTES_MAX {
            self.apply_held()?;
        }
        Ok(true)
    }

    /// Applies the buffered events.
    pub(super) fn apply_held(&mut self) -> SqlResult<()> {
        let Some(mut held) = self.held.take() else { return Ok(()) };
        held.event.packing = Packing::Plain;
        held.event.rows = SharedBytes::from(held.rows.as_slice());
        held.rows = Vec::new();
        let applied = self.apply_rows(&held.map, &held.event, &held.annotation, held.timestamp, &held.rules);
        self.held_memory.shrink(self.held_memory.used());
        applied
    }

    pub(super) fn forget_held(&mut self) {
        self.held = None;
        self.held_memory.shrink(self.held_memory.used());
    }
}
