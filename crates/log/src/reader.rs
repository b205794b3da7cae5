//! Reading what is hardened, while the log goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_base::Lsn;

use crate::log::Shared;
use crate::scan::Scanner;
use crate::{LogError, Record};

/// Reads hardened records in order; goes on where it stopped when there are more.
///
/// It does not hold the log back: its owner sees to it that checkpoints keep what it still needs (I7).
pub struct LogReader {
    shared: Arc<Shared>,
    scanner: Scanner,
}

impl LogReader {
    pub(crate) fn new(shared: Arc<Shared>, from: Lsn) -> Result<LogReader, LogError> {
        let retained = Lsn(shared.space.retained.load(Ordering::Acquire));
        if from < retained {
            return Err(LogError::Released { asked: from, retained });
        }
        let scanner = Scanner::new(shared.segments.clone(), shared.generations, from.0);
        Ok(LogReader { shared, scanner })
    }

    /// The next hardened record; none when all have been read (ask again later).
    #[allow(clippy::should_implement_trait)] // the record borrows from self
    pub fn next(&mut self) -> Result<Option<Record<'_>>, LogError> {
        let hardened = self.shared.hardened.load(Ordering::Acquire);
        match self.scanner.advance(hardened)? {
            Ok(()) => Ok(Some(self.scanner.last())),
            Err(None) => Ok(None),
            Err(what) => {
                let asked = self.position();
                let retained = Lsn(self.shared.space.retained.load(Ordering::Acquire));
                if asked < retained {
                    return Err(LogError::Released { asked, retained });
                }
                self.scanner.judge(hardened, what).map(|()| None)
            }
        }
    }

    /// Start of the record that `next` reads next.
    pub fn position(&self) -> Lsn {
        Lsn(self.scanner.position())
    }
}
