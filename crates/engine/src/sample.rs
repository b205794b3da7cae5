//! Statistics from a sample: how many rows share the beginning of a key.

use cohort_base::IndexId;

use crate::traits::{Engine, EngineError};

/// Places that are looked at, as InnoDB looks at 20 pages.
const PLACES: usize = 20;

/// Rows for one value of each prefix of an index's keys, estimated; none without a sample. `ends` says where
/// a key's parts end, the first part's end first; it gives as many for every key.
///
/// Of two neighbouring keys of the index, as many differ in a prefix as there are values of it among the
/// rows. So the share of neighbours that differ, at places chosen at random, tells the number of values,
/// also of those that fill many pages.
pub fn rows_per_prefix(
    engine: &dyn Engine,
    index: IndexId,
    seed: u64,
    ends: &dyn Fn(&[u8]) -> Vec<usize>,
) -> Result<Option<Vec<f64>>, EngineError> {
    let (mut neighbours, mut changes) = (0_u64, Vec::new());
    engine.sample(index, PLACES, seed, &mut |key, next| {
        let (of_key, of_next) = (ends(key), ends(next));
        neighbours += 1;
        changes.resize(changes.len().max(of_key.len()), 0_u64);
        for (n, (end, end_of_next)) in of_key.into_iter().zip(of_next).enumerate() {
            changes[n] += u64::from(key.get(..end) != next.get(..end_of_next));
        }
    })?;
    let entries = engine.stats(index).entries.max(1) as f64;
    let rows = |changes: &u64| entries / (*changes as f64 / neighbours as f64 * (entries - 1.0) + 1.0);
    Ok((neighbours > 0).then(|| changes.iter().map(rows).collect()))
}
