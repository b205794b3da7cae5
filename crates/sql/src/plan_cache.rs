//! Plans by digest.

use std::sync::Arc;

use crate::Digest;

/// What a plan depends on besides the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanKey {
    pub digest: Digest,
    /// Hash of current database, parse options and the session variables that the planner reads.
    pub session: u64,
}

/// A bounded, concurrent map from [`PlanKey`] to plans of one schema version.
pub struct PlanCache<P> {
    _plans: Vec<Arc<P>>,
}

impl<P> PlanCache<P> {
    /// Room for about `plans` plans.
    pub fn new(_plans: usize) -> PlanCache<P> {
        todo!()
    }

    /// The plan, if it was made under this schema version.
    pub fn get(&self, _key: &PlanKey, _schema_version: u64) -> Option<Arc<P>> {
        todo!()
    }

    /// Puts a plan made under `schema_version`.
    pub fn put(&self, _key: PlanKey, _schema_version: u64, _plan: Arc<P>) {
        todo!()
    }

    /// Forgets all plans.
    pub fn clear(&self) {
        todo!()
    }
}
