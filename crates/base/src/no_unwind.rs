//! Code that a panic must not leave half done.

/// Ends the process if a panic unwinds past it. It guards code after the point of no return (I6) and threads
/// that nobody would miss: there a process that lives on without them does more harm than a restart.
#[derive(Debug)]
#[must_use = "it guards the code between its creation and `passed`"]
pub struct NoUnwind {
    what: &'static str,
}

impl NoUnwind {
    /// Guards what follows; `what` stands in the error log.
    pub fn during(what: &'static str) -> NoUnwind {
        NoUnwind { what }
    }

    /// The guarded code is done.
    pub fn passed(self) {
        std::mem::forget(self);
    }
}

impl Drop for NoUnwind {
    fn drop(&mut self) {
        if std::thread::panicking() {
            log::error!("a panic during {}, stopping: recovery decides by the log", self.what);
            std::process::abort();
        }
    }
}
