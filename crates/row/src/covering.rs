//! Rows out of the entries of a secondary index alone: no clustered row is read.

use cohort_catalog::IndexKind;
use cohort_optimize::Columns;
use cohort_table::OpenTable;
use cohort_types::{KeyError, KeyPart, Lane, LaneType, SqlResult, Value};

/// What to do with a part of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Its value is that of this column.
    Take(usize, KeyPart),
    Skip(KeyPart),
}

/// How the columns wanted are read from an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Covering {
    /// Of the index's own columns.
    key: Vec<Step>,
    /// Of the clustered key behind them.
    clustered: Vec<Step>,
}

impl Covering {
    /// None if the index does not have all the columns, or the clustered index is read anyway.
    pub(super) fn of(table: &OpenTable, index: usize, columns: &Columns) -> Option<Covering> {
        let Columns::Some(wanted) = columns else { return None };
        if index == 0 {
            return None;
        }
        let mut missing: Vec<usize> = wanted.to_vec();
        let mut steps = |index: usize| -> Vec<Step> {
            let parts = table.indexes[index].parts.iter();
            parts
                .map(|(column, part)| {
                    let usable = part.prefix.is_none() && part.is_reversible();
                    match missing.iter().position(|m| m == column).filter(|_| usable) {
                        Some(at) => Step::Take(missing.swap_remove(at), part.clone()),
                        None => Step::Skip(part.clone()),
                    }
                })
                .collect()
        };
        let (key, mut clustered) = (steps(index), steps(0));
        // Nothing is behind the clustered key: its tail need not be passed over.
        let used = clustered.iter().rposition(|step| matches!(step, Step::Take(..))).map_or(0, |n| n + 1);
        clustered.truncate(used);
        missing.is_empty().then_some(Covering { key, clustered })
    }

    /// How a column is read into a lane; None when it is not among those wanted, or has no lane.
    pub(super) fn lane(&self, table: &OpenTable, index: usize, column: usize) -> Option<EntryReader> {
        let is_it = |step: &Step| matches!(step, Step::Take(taken, _) if *taken == column);
        let of = |steps: &[Step], at: usize, mut before: Vec<KeyPart>, in_value| {
            before.extend(steps[..at].iter().map(|step| step.part().clone()));
            let part = steps[at].part().clone();
            let ty = LaneType::of(&part.ty)?;
            Some(EntryReader { in_value, before, part, ty })
        };
        if let Some(at) = self.key.iter().position(is_it) {
            return of(&self.key, at, Vec::new(), false);
        }
        let at = self.clustered.iter().position(is_it)?;
        match table.indexes[index].kind == IndexKind::Unique {
            true => of(&self.clustered, at, Vec::new(), true),
            false => {
                let key = self.key.iter().map(|step| step.part().clone()).collect();
                of(&self.clustered, at, key, false)
            }
        }
    }

    /// The row of an entry; columns not wanted are NULL.
    pub(super) fn decode(
        &self,
        table: &OpenTable,
        index: usize,
        key: &[u8],
        value: &[u8],
        row: &mut Vec<Value>,
    ) -> SqlResult<()> {
        row.clear();
        row.resize(table.columns().len(), Value::Null);
        let mut rest = key;
        let result = take(&self.key, &mut rest, row).and_then(|()| {
            let mut clustered = if table.indexes[index].kind == IndexKind::Unique { value } else { rest };
            take(&self.clustered, &mut clustered, row)
        });
        result.map_err(|e| table.key_error(index, e))
    }
}

impl Step {
    fn part(&self) -> &KeyPart {
        match self {
            Step::Take(_, part) | Step::Skip(part) => part,
        }
    }
}

/// How a column is read from entries into a lane.
#[derive(Clone, Debug)]
pub(super) struct EntryReader {
    /// The clustered key is the entry's value.
    in_value: bool,
    /// Parts to pass over.
    before: Vec<KeyPart>,
    part: KeyPart,
    ty: LaneType,
}

impl EntryReader {
    pub(super) fn ty(&self) -> LaneType {
        self.ty
    }

    /// Appends the element of each entry.
    pub(super) fn read<'e>(
        &self,
        entries: impl Iterator<Item = (&'e [u8], &'e [u8])>,
        lane: &mut Lane,
    ) -> Result<(), KeyError> {
        for (key, value) in entries {
            let mut rest = if self.in_value { value } else { key };
            for part in &self.before {
                part.skip(&mut rest)?;
            }
            self.part.decode_into(&mut rest, lane, self.ty)?;
        }
        Ok(())
    }
}

fn take(steps: &[Step], rest: &mut &[u8], row: &mut [Value]) -> Result<(), KeyError> {
    for step in steps {
        match step {
            Step::Take(column, part) => row[*column] = part.decode(rest)?,
            Step::Skip(part) => part.skip(rest)?,
        }
    }
    Ok(())
}
