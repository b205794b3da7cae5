//! CHECK TABLE: verifies that the secondary indexes agree with the rows.
//!
//! Each index is read once, in one view. The entries that the rows should have are counted and their
//! checksums summed; the entries that exist likewise. A difference in one entry changes the sum.

use std::sync::Arc;

use cohort_catalog::{ROWS, Table};
use cohort_engine::{Batch, Direction, IndexId, KeyRange, ReadAt, ReadView, ScanRequest};
use cohort_table::{OpenTable, definition_changed};
use cohort_trx::{SessionTrx, engine_error};
use cohort_types::{Columns, SqlResult};

use crate::build::Progress;

const BATCH_ENTRIES: usize = 1024;

/// Number of entries of an index, and sum of their checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entries {
    count: u64,
    sum: u64,
}

impl Entries {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&(key.len() as u32).to_le_bytes());
        hasher.update(key);
        hasher.update(value);
        self.count += 1;
        self.sum += u64::from(hasher.finalize());
    }
}

/// Reads the whole table and returns a description of each inconsistency. Calls `progress` with the number of
/// entries read.
pub fn check_entries(
    trx: &mut SessionTrx,
    table: &Arc<Table>,
    progress: &mut Progress<'_>,
) -> SqlResult<Vec<String>> {
    let open = trx.open_table(table)?;
    let view = trx.read_view()?;
    if open.indexes.iter().any(|index| trx.has_view_before(index.since)) {
        return Err(definition_changed());
    }
    let mut expected = vec![Entries::default(); open.indexes.len()];
    let mut row = Vec::new();
    let (mut rows, mut read) = (0_u64, 0_u64);
    let mut progress = |entries: usize| {
        read += entries as u64;
        progress(read);
    };
    each_entry(trx, (&open, open.rows.id), &view, &mut progress, &mut |key, value| {
        open.decode(value, &Columns::All, &mut row)?;
        rows += 1;
        for (index, expected) in expected.iter_mut().enumerate().skip(ROWS + 1) {
            for entry in open.entry_keys(index, &row, key, &mut |_| Ok(()))? {
                expected.add(&entry, open.index_value(index, key));
            }
        }
        Ok(())
    })?;
    let mut problems = Vec::new();
    for (n, expected) in expected.iter().enumerate().skip(ROWS + 1) {
        let mut found = Entries::default();
        each_entry(trx, (&open, open.indexes[n].id), &view, &mut progress, &mut |key, value| {
            found.add(key, value);
            Ok(())
        })?;
        let name = &table.indexes[n].name;
        if found.count != expected.count {
            let wanted = if table.indexes[n].kind.has_words() {
                format!("{} words", expected.count)
            } else {
                format!("{rows} rows")
            };
            problems.push(format!("Key {name} has {} entries, the table {wanted}", found.count));
        } else if found.sum != expected.sum {
            problems.push(format!("Key {name} has entries that differ from the table's rows"));
        }
    }
    Ok(problems)
}

fn each_entry(
    trx: &mut SessionTrx,
    (table, index): (&OpenTable, IndexId),
    view: &ReadView,
    progress: &mut dyn FnMut(usize),
    look: &mut dyn FnMut(&[u8], &[u8]) -> SqlResult<()>,
) -> SqlResult<()> {
    let (mut range, mut batch) = (KeyRange::default(), Batch::default());
    loop {
        trx.check_interrupt()?;
        batch.clear();
        let engine = trx.engine(table.engine);
        let more = engine
            .scan(&ScanRequest::forward(ReadAt::View(view), index, &range, BATCH_ENTRIES), &mut batch)
            .map_err(engine_error)?;
        batch.iter().try_for_each(|(key, value)| look(key, value))?;
        progress(batch.len());
        if !more {
            return Ok(());
        }
        batch.cut(&mut range, Direction::Forward);
    }
}
