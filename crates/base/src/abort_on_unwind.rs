//! Protection of code that a panic must not leave half done.

/// Aborts the process if a panic unwinds past it. Guards code after the point of no return (I6), and threads
/// whose death would go unnoticed: continuing without them does more harm than a restart.
#[derive(Debug)]
#[must_use = "it guards the code between its creation and `disarm`"]
pub struct AbortOnUnwind {
    what: &'static str,
}

impl AbortOnUnwind {
    /// Guards the code that follows; `what` names it in the error log.
    pub fn during(what: &'static str) -> AbortOnUnwind {
        AbortOnUnwind { what }
    }

    /// Disarms the guard: the guarded code is complete.
    pub fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        if std::thread::panicking() {
            log::error!("a panic during {}, stopping: recovery decides by the log", self.what);
            std::process::abort();
        }
    }
}
