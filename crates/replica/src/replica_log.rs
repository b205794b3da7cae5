//! Messages of replication threads in the error log, with the name of the connection.

use std::fmt;
use std::sync::Arc;

use cohort_types::Level;

/// Writes messages of the threads to the server's error log.
#[derive(Clone)]
pub struct ReplicaLog(pub Arc<dyn Fn(Level, &fmt::Arguments<'_>) + Send + Sync>);

impl ReplicaLog {
    fn log(&self, level: Level, name: &str, text: fmt::Arguments<'_>) {
        match name {
            "" => (self.0)(level, &text),
            name => (self.0)(level, &format_args!("Master '{name}': {text}")),
        }
    }

    /// Logs an error that needs attention.
    pub fn error(&self, name: &str, text: fmt::Arguments<'_>) {
        self.log(Level::Error, name, text);
    }

    /// Logs a problem that may resolve itself.
    pub fn warning(&self, name: &str, text: fmt::Arguments<'_>) {
        self.log(Level::Warning, name, text);
    }

    /// Logs an event.
    pub fn note(&self, name: &str, text: fmt::Arguments<'_>) {
        self.log(Level::Note, name, text);
    }
}
