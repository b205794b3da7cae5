//! The text of the statement that is traced.

use crate::general_log::shown;
use crate::optimizer_trace::is_on;
use crate::session_state::SessionState;

impl SessionState {
    /// Sets the text of the statement that is about to be planned, for its trace.
    pub fn set_traced_text(&self, text: &[u8]) {
        if is_on(&self.settings.vars) {
            self.optimizer.set_text(shown(text, self.settings.parse.mode));
        }
    }
}
