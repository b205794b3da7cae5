//! Programs that a statement has called ([`CalledPrograms`]).
//!
//! The first call of a function or a trigger in a statement makes all checks: the definer exists and has the
//! privileges. The programs of a statement are locked before it runs, so that later calls of the same
//! statement need no checks. A program that uses neither tables nor the session is then run without a state
//! of its own ([`crate::InnerSession`]).

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

/// Maximum number of programs of a statement.
const CALLED_MAX: usize = 32;

/// A program, with the definition that it belongs to, which the entry keeps alive.
struct Called {
    definition: Arc<dyn Any + Send + Sync>,
    program: Arc<dyn Any + Send + Sync>,
}

/// The programs that a statement has called, by their definitions.
#[derive(Default)]
pub struct CalledPrograms {
    entries: RefCell<Vec<Called>>,
}

impl CalledPrograms {
    /// Returns the program of a definition, if the statement has called it.
    #[inline]
    pub fn find<P: Send + Sync + 'static>(&self, definition: *const ()) -> Option<Arc<P>> {
        let entries = self.entries.borrow();
        let found = entries.iter().find(|it| Arc::as_ptr(&it.definition).cast::<()>() == definition)?;
        Arc::clone(&found.program).downcast().ok()
    }

    /// Keeps a program until the statement ends.
    pub fn add(&self, definition: Arc<dyn Any + Send + Sync>, program: Arc<dyn Any + Send + Sync>) {
        let mut entries = self.entries.borrow_mut();
        let address = |definition: &Arc<dyn Any + Send + Sync>| Arc::as_ptr(definition).cast::<()>();
        let is_known = entries.iter().any(|it| address(&it.definition) == address(&definition));
        if !is_known && entries.len() < CALLED_MAX {
            entries.push(Called { definition, program });
        }
    }

    /// Forgets all programs at the end of the statement.
    #[inline]
    pub(crate) fn forget(&self) {
        if !self.entries.borrow().is_empty() {
            self.entries.borrow_mut().clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_until_the_statement_ends() {
        let called = CalledPrograms::default();
        let definitions: Vec<Arc<u64>> = (0..100).map(Arc::new).collect();
        for definition in &definitions {
            called.add(Arc::clone(definition) as _, Arc::new(**definition * 2));
        }
        let find = |n: usize| called.find::<u64>(Arc::as_ptr(&definitions[n]).cast());
        assert_eq!(find(3).as_deref(), Some(&6));
        assert_eq!(find(99), None, "no more than {CALLED_MAX} are kept");
        called.forget();
        assert_eq!(find(3), None);
    }
}
