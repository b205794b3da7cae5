//! [`EventRuns`]: the times of the last runs of events. They are also stored (`cohort_trx`, `event_runs.rs`),
//! from where they are read at the start of the server.

use std::collections::HashMap;

use cohort_catalog::{Event, ProgramKey};
use parking_lot::Mutex;

/// The times of the last runs.
#[derive(Default)]
pub struct EventRuns {
    runs: Mutex<HashMap<(String, ProgramKey), i64>>,
}

impl EventRuns {
    /// Records a run that begins now, in seconds since 1970 UTC.
    pub fn note(&self, event: &Event, now: i64) {
        self.runs.lock().insert((event.schema.clone(), event.key()), now);
    }

    /// Returns the time of an event's last run. An event that was created again has none.
    pub fn last(&self, event: &Event) -> Option<i64> {
        let last = self.runs.lock().get(&(event.schema.clone(), event.key())).copied();
        last.filter(|last| u64::try_from(*last).is_ok_and(|last| last >= event.created_at))
    }

    /// Removes the runs of events that do not exist any more.
    pub fn retain(&self, exists: impl Fn(&str, &ProgramKey) -> bool) {
        self.runs.lock().retain(|(schema, key), _| exists(schema, key));
    }
}

/// Returns the key under which the time of an event's last run is stored.
pub fn event_run_key(event: &Event) -> Vec<u8> {
    [event.schema.as_bytes(), b"\0", event.key().as_bytes()].concat()
}
