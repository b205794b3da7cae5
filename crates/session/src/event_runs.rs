//! [`EventRuns`]: the times of the last runs of events.

use std::collections::HashMap;

use cohort_catalog::{Event, ProgramKey};
use cohort_engine::{Engine, EngineError};
use cohort_trx::stored_event_runs;
use parking_lot::Mutex;

/// The times of the last runs, as stored by [`cohort_trx::SessionTrx::keep_event_run`] and changed since the
/// start.
#[derive(Default)]
pub struct EventRuns {
    runs: Mutex<HashMap<(String, ProgramKey), i64>>,
}

impl EventRuns {
    /// Reads the stored times. Called before the first session.
    pub fn load(&self, engine: &dyn Engine) -> Result<(), EngineError> {
        let mut runs = self.runs.lock();
        stored_event_runs(engine, |event, at| {
            let mut parts = event.splitn(2, |byte| *byte == 0);
            if let (Some(schema), Some(key)) = (parts.next(), parts.next()) {
                let schema = String::from_utf8_lossy(schema).into_owned();
                runs.insert((schema, ProgramKey::from_bytes(key)), at);
            }
        })
    }

    /// Returns the stored name of an event.
    pub fn stored_name(event: &Event) -> Vec<u8> {
        [event.schema.as_bytes(), &[0], event.key().as_bytes()].concat()
    }

    /// Records a run that begins now, in seconds since 1970 UTC.
    pub fn note(&self, event: &Event, now: i64) {
        self.runs.lock().insert((event.schema.clone(), event.key()), now);
    }

    /// Returns the time of an event's last run. An event that was created again has none.
    pub fn last(&self, event: &Event) -> Option<i64> {
        let last = self.runs.lock().get(&(event.schema.clone(), event.key())).copied();
        last.filter(|last| u64::try_from(*last).is_ok_and(|last| last >= event.created_at))
    }

    /// Returns whether there may be a stored time of an event of this name.
    pub fn has(&self, event: &Event) -> bool {
        self.runs.lock().contains_key(&(event.schema.clone(), event.key()))
    }

    /// Removes the run of an event that is dropped or replaced.
    pub fn forget(&self, event: &Event) {
        self.runs.lock().remove(&(event.schema.clone(), event.key()));
    }

    /// Removes the runs of events that do not exist any more.
    pub fn retain(&self, exists: impl Fn(&str, &ProgramKey) -> bool) {
        self.runs.lock().retain(|(schema, key), _| exists(schema, key));
    }
}
