//! Send buffer for packets to one replica.
//!
//! ```text
//! u24 length | u8 sequence | 00 | [ef flag] | event      flag 1: acknowledge this one
//! ```
//!
//! A payload of 2^24-1 bytes or more continues in further packets without the leading bytes. After a packet
//! that requests an acknowledgement both sides restart at 1, because the replica's acknowledgement has
//! sequence 0.

/// The connection is broken, or the replica did not read for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionClosed;

/// A connection to a replica.
pub trait ReplicaLink {
    /// Sends all bytes. Blocks at most `net_write_timeout` without progress.
    fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectionClosed>;

    /// Returns whether the connection compresses its frames.
    fn is_compressed(&self) -> bool {
        false
    }

    /// Restarts the numbering of compressed frames: the next one has number 1.
    fn recount(&mut self) {}
}

/// Payload of a packet that is continued in another one.
const FULL: usize = 0xff_ffff;
/// Size of the buffer at which it is sent.
const GATHER_BYTES: usize = 64 << 10;
const SEMI_SYNC_MAGIC: u8 = 0xef;

/// The bytes before an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// Only the OK byte.
    Plain,
    /// Semi-synchronous header, without a request for an acknowledgement.
    SemiSync,
    /// Semi-synchronous header that requests an acknowledgement.
    SemiSyncAcknowledge,
}

/// Buffers and sends packets.
pub(crate) struct SendBuffer<L> {
    link: L,
    buf: Vec<u8>,
    sequence: u8,
}

impl<L: ReplicaLink> SendBuffer<L> {
    /// Creates an empty buffer. The reply to a command starts with sequence 1.
    pub fn new(link: L) -> SendBuffer<L> {
        SendBuffer { link, buf: Vec::new(), sequence: 1 }
    }

    /// Appends an event.
    pub fn event(&mut self, header: Header, event: &[u8]) -> Result<(), ConnectionClosed> {
        let prefix: &[u8] = match header {
            Header::Plain => &[0],
            Header::SemiSync => &[0, SEMI_SYNC_MAGIC, 0],
            Header::SemiSyncAcknowledge => &[0, SEMI_SYNC_MAGIC, 1],
        };
        if event.len() <= GATHER_BYTES {
            self.packet_head(prefix.len() + event.len());
            self.buf.extend_from_slice(prefix);
            self.buf.extend_from_slice(event);
            if self.buf.len() >= GATHER_BYTES {
                self.flush()?;
            }
        } else {
            self.large(prefix, event)?;
        }
        if header == Header::SemiSyncAcknowledge {
            self.sequence = 1;
            if self.link.is_compressed() {
                // The acknowledgement replaces what the replica has not read of the frame.
                self.flush()?;
                self.link.recount();
            }
        }
        Ok(())
    }

    /// Sends an event that is too large to be copied.
    fn large(&mut self, prefix: &[u8], event: &[u8]) -> Result<(), ConnectionClosed> {
        let (mut prefix, mut rest) = (prefix, event);
        loop {
            let len = (prefix.len() + rest.len()).min(FULL);
            self.packet_head(len);
            self.buf.extend_from_slice(prefix);
            let (part, tail) = rest.split_at(len - prefix.len());
            self.flush()?;
            self.link.send(part)?;
            (prefix, rest) = (&[], tail);
            if len < FULL {
                return Ok(());
            }
        }
    }

    fn packet_head(&mut self, len: usize) {
        let [a, b, c, _] = (len as u32).to_le_bytes();
        self.buf.extend_from_slice(&[a, b, c, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Sends the buffer.
    pub fn flush(&mut self) -> Result<(), ConnectionClosed> {
        if !self.buf.is_empty() {
            self.link.send(&self.buf)?;
            self.buf.clear();
        }
        Ok(())
    }

    /// Returns the sequence number for the packet that ends the dump.
    pub fn into_sequence(self) -> u8 {
        self.sequence
    }
}

#[cfg(test)]
mod tests {
    use cohort_protocol::InputBuffer;

    use super::*;

    impl ReplicaLink for &mut Vec<u8> {
        fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectionClosed> {
            self.extend_from_slice(bytes);
            Ok(())
        }
    }

    #[test]
    fn events_of_all_sizes_arrive_whole_and_sequences_go_on() {
        for size in [19, GATHER_BYTES, GATHER_BYTES + 1, FULL - 2, FULL - 1, FULL, 2 * FULL - 1, 2 * FULL + 5]
        {
            let mut sent = Vec::new();
            let mut send_buffer = SendBuffer::new(&mut sent);
            let event: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            send_buffer.event(Header::Plain, &event).expect("a vector");
            send_buffer.event(Header::SemiSyncAcknowledge, b"second").expect("a vector");
            send_buffer.event(Header::SemiSync, b"third").expect("a vector");
            send_buffer.flush().expect("a vector");
            let mut input = InputBuffer::default();
            input.extend(&sent);
            input.expect_sequence(1);
            let first = input.next(usize::MAX).expect("in order").expect("whole");
            assert!(input.payload(&first)[1..] == event, "{size}");
            let second = input.next(usize::MAX).expect("in order").expect("whole");
            assert_eq!(input.payload(&second), b"\0\xef\x01second");
            input.expect_sequence(1);
            let third = input.next(usize::MAX).expect("in order").expect("whole");
            assert_eq!(input.payload(&third), b"\0\xef\0third");
            assert!(input.is_empty());
        }
    }
}
