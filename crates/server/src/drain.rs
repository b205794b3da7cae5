//! Output of a large result: sent while the statement runs, which blocks the worker.

use std::io::ErrorKind;
use std::time::Duration;

use cohort_base::ReplyBarrier;
use cohort_config::VarId;
use cohort_protocol::{Decompressor, Drain, InputBuffer};
use cohort_tls::Received;

use crate::connection::{Connection, FRAME_BYTES_MAX};

/// The socket as the destination of a result that does not fit into memory.
pub(crate) struct SocketDrain<'a> {
    pub connection: &'a Connection,
    /// The session's reply barrier.
    pub hold: &'a ReplyBarrier,
    /// net_write_timeout.
    pub timeout: Duration,
    /// Input for LOAD DATA LOCAL: the file that the client sends.
    pub incoming: Incoming<'a>,
}

/// Packets that a client sends while its statement runs.
pub(crate) struct Incoming<'a> {
    /// Received bytes that were not taken. The connection gets them back after the statement.
    pub bytes: InputBuffer,
    /// Decompressor, with the compressed protocol.
    pub unpack: &'a mut Option<Decompressor>,
    /// No other unread input precedes the file's packets.
    pub is_next: bool,
    pub packet_bytes_max: usize,
}

const RECEIVE_BYTES: usize = 64 << 10;

impl SocketDrain<'_> {
    fn send_all(&self, out: &[u8]) -> bool {
        let workers = &*self.connection.shared().workers;
        let out = self.connection.packed(out);
        let mut rest = &*out;
        while !rest.is_empty() {
            match self.connection.send(rest) {
                Ok(0) => {
                    // Transactions that earlier statements ordered do not wait for this client.
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

impl SocketDrain<'_> {
    fn take(&mut self, bytes: &[u8]) -> bool {
        let Incoming { bytes: input, unpack, packet_bytes_max, .. } = &mut self.incoming;
        let Some(unpack) = &mut **unpack else {
            input.extend(bytes);
            return true;
        };
        match unpack.unpack(bytes, *packet_bytes_max + FRAME_BYTES_MAX, input) {
            Ok(Some(sequence)) => {
                self.connection.count_frames_from(sequence.wrapping_add(1));
                true
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }

    fn wait_for_input(&self) -> bool {
        let shared = self.connection.shared();
        let timeout = Duration::from_secs(shared.globals.uint(VarId::NetReadTimeout));
        // Transactions that earlier statements ordered do not wait for this client.
        shared.backend.lead();
        shared.workers.begin();
        let readable = self.connection.wait_readable(timeout);
        shared.workers.end();
        readable && !self.connection.is_dead()
    }
}

impl Drain for SocketDrain<'_> {
    fn drain(&mut self, out: &mut Vec<u8>) {
        let hold = self.hold.until();
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

    fn receive(&mut self, sequence: u8, out: &mut Vec<u8>) -> Option<u8> {
        if !self.incoming.is_next {
            self.connection.disconnect();
            return None;
        }
        self.incoming.bytes.expect_sequence(sequence);
        let packet_bytes_max = self.incoming.packet_bytes_max;
        let mut scratch = Vec::new();
        loop {
            match self.incoming.bytes.next(packet_bytes_max) {
                Ok(Some(packet)) => {
                    out.extend_from_slice(self.incoming.bytes.payload(&packet));
                    return Some(packet.sequence);
                }
                Ok(None) => {}
                Err(_) => {
                    self.connection.disconnect();
                    return None;
                }
            }
            scratch.resize(RECEIVE_BYTES, 0);
            let taken = match self.connection.receive(&mut scratch) {
                Ok(Received { bytes: 0, .. }) => false,
                Ok(Received { bytes, .. }) => self.take(&scratch[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_for_input(),
                Err(_) => false,
            };
            if !taken {
                self.connection.disconnect();
                return None;
            }
        }
    }

    fn is_dead(&self) -> bool {
        self.connection.is_dead()
    }

    fn has_hung_up(&self) -> bool {
        self.is_dead() || self.connection.peer_has_gone()
    }
}
