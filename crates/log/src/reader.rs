//! Reading durable records while the log is appended to.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_base::Lsn;

use crate::scan::Scanner;
use crate::shared::Shared;
use crate::{LogError, Record};

/// A reader of durable records, in order. It can continue where it stopped once there are more.
///
/// It does not keep the log from being released: its owner must make sure that checkpoints retain what it
/// still needs (I7).
pub struct LogReader {
    shared: Arc<Shared>,
    scanner: Scanner,
}

impl LogReader {
    pub(crate) fn new(shared: Arc<Shared>, from: Lsn) -> Result<LogReader, LogError> {
        let kept = Lsn(shared.space.kept());
        if from < kept {
            return Err(LogError::Released { asked: from, retained: kept });
        }
        let scanner = Scanner::new(shared.segments.clone(), shared.generations, from.0);
        Ok(LogReader { shared, scanner })
    }

    /// Returns the next durable record. Returns `None` when all have been read; there may be more later.
    #[allow(clippy::should_implement_trait)] // the record borrows from self
    pub fn next(&mut self) -> Result<Option<Record<'_>>, LogError> {
        let durable = self.shared.durable.load(Ordering::Acquire);
        match self.scanner.advance(durable)? {
            Ok(()) => Ok(Some(self.scanner.last())),
            Err(None) => Ok(None),
            Err(what) => {
                let asked = self.position();
                let retained = Lsn(self.shared.space.kept());
                if asked < retained {
                    return Err(LogError::Released { asked, retained });
                }
                self.scanner.check_end(durable, what).map(|()| None)
            }
        }
    }

    /// Returns the bytes in the log of the record that `next` has returned last, with header and padding.
    pub fn last_bytes(&self) -> &[u8] {
        self.scanner.last_bytes()
    }

    /// Returns the start of the record that `next` reads next.
    pub fn position(&self) -> Lsn {
        Lsn(self.scanner.position())
    }
}
