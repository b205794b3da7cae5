//! Covering index scans: rows decoded from entries of a secondary index, without reading the clustered row.

use cohort_catalog::{EntryValue, ROWS};
use cohort_optimize::Columns;
use cohort_table::OpenTable;
use cohort_types::{KeyError, KeyPart, SqlResult, Value, Vector, VectorType};

/// Handling of one part of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Decode the part into this column.
    Take(usize, KeyPart),
    Skip(KeyPart),
}

/// Decoding steps that extract the wanted columns from an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Covering {
    /// Steps over the index's own columns.
    key: Vec<Step>,
    /// Steps over the clustered key that follows them.
    clustered: Vec<Step>,
}

impl Covering {
    /// Returns `None` if the index lacks a wanted column, if it is the clustered index, or if its entries
    /// hold no values.
    pub(super) fn of(table: &OpenTable, index: usize, columns: &Columns) -> Option<Covering> {
        let Columns::Some(wanted) = columns else { return None };
        if index == ROWS || !table.indexes[index].kind.is_sorted() {
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
        let (key, mut clustered) = (steps(index), steps(ROWS));
        // The clustered key is the last part of the entry, so its unused tail needs no skipping.
        let used = clustered.iter().rposition(|step| matches!(step, Step::Take(..))).map_or(0, |n| n + 1);
        clustered.truncate(used);
        missing.is_empty().then_some(Covering { key, clustered })
    }

    /// Returns the reader of a column into a vector. Returns `None` if the column is not wanted or has no
    /// vector type.
    pub(super) fn vector(&self, table: &OpenTable, index: usize, column: usize) -> Option<EntryReader> {
        let is_it = |step: &Step| matches!(step, Step::Take(taken, _) if *taken == column);
        let of = |steps: &[Step], at: usize, mut before: Vec<KeyPart>, in_value| {
            before.extend(steps[..at].iter().map(|step| step.part().clone()));
            let part = steps[at].part().clone();
            let ty = VectorType::of(&part.ty)?;
            Some(EntryReader { in_value, before, part, ty })
        };
        if let Some(at) = self.key.iter().position(is_it) {
            return of(&self.key, at, Vec::new(), false);
        }
        let at = self.clustered.iter().position(is_it)?;
        match table.indexes[index].kind.value() == EntryValue::RowKey {
            true => of(&self.clustered, at, Vec::new(), true),
            false => {
                let key = self.key.iter().map(|step| step.part().clone()).collect();
                of(&self.clustered, at, key, false)
            }
        }
    }

    /// Decodes an entry into a row. Columns that are not wanted are NULL.
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
            let in_value = table.indexes[index].kind.value() == EntryValue::RowKey;
            let mut clustered = if in_value { value } else { rest };
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

/// A reader of one column of index entries into a vector (`Vector`).
#[derive(Clone, Debug)]
pub(super) struct EntryReader {
    /// The clustered key is the value of the entry.
    in_value: bool,
    /// Parts to skip.
    before: Vec<KeyPart>,
    part: KeyPart,
    ty: VectorType,
}

impl EntryReader {
    pub(super) fn ty(&self) -> VectorType {
        self.ty
    }

    /// Appends the column's value of each entry.
    pub(super) fn read<'e>(
        &self,
        entries: impl Iterator<Item = (&'e [u8], &'e [u8])>,
        vector: &mut Vector,
    ) -> Result<(), KeyError> {
        for (key, value) in entries {
            let mut rest = if self.in_value { value } else { key };
            for part in &self.before {
                part.skip(&mut rest)?;
            }
            self.part.decode_into(&mut rest, vector, self.ty)?;
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
