//! Output of a large result: sent while the statement runs, blocking the worker.

use std::time::Duration;

use cohort_base::CommitSeq;
use cohort_protocol::Drain;

use crate::connection::Connection;

/// The socket as a place for a result that does not fit into memory.
pub(crate) struct SocketDrain<'a> {
    pub connection: &'a Connection,
    /// net_write_timeout.
    pub timeout: Duration,
}

impl SocketDrain<'_> {
    fn send_all(&self, out: &[u8]) -> bool {
        let workers = &*self.connection.shared().workers;
        let out = self.connection.packed(out);
        let mut rest = &*out;
        while !rest.is_empty() {
            match self.connection.send(rest) {
                Ok(0) => {
                    // What earlier statements ordered does not wait for this client.
                    self.connection.shared().backend.lead();
                    workers.begin();
                    let writable = self.connection.wait_writable(self.timeout);
                    workers.end();
                    if !writable {
                        return false;
                    }
                }
                Ok(n) => rest = &rest[n..],
                Err(_) => return false,
            }
        }
        true
    }
}

impl Drain for SocketDrain<'_> {
    fn drain(&mut self, out: &mut Vec<u8>, hold: CommitSeq) {
        let shared = self.connection.shared();
        let acknowledged = hold <= shared.backend.acknowledged() || {
            shared.workers.begin();
            let acknowledged = shared.backend.wait_acknowledged(hold);
            shared.workers.end();
            acknowledged
        };
        if self.connection.is_dead() || !acknowledged || !self.send_all(out) {
            self.connection.disconnect();
        }
        out.clear();
    }

    fn is_dead(&self) -> bool {
        self.connection.is_dead()
    }
}
