//! Packets in a byte stream.
//!
//! ```text
//! u24 length | u8 sequence | payload
//! ```
//!
//! A payload of 0xffffff bytes or more continues in the next packet; the last one is shorter (perhaps empty).
//! The sequence starts at 0 with each command and counts the packets of both sides.

use std::ops::Range;

/// Payload of a packet that is continued in the next one.
const FULL: usize = 0xff_ffff;
const HEADER: usize = 4;

/// Why the stream cannot continue. The client gets the error, then the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError {
    /// The payload is larger than max_allowed_packet: error 1153.
    TooLarge,
    /// The sequence number is not the expected one: error 1156.
    OutOfOrder,
    /// The contents of a compressed frame do not match its header: error 1157.
    Damaged,
}

/// A complete payload in an [`InputBuffer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its bytes in the buffer; valid until bytes are added or the buffer is compacted.
    pub range: Range<usize>,
    /// Sequence number of its last packet; the reply continues with the next.
    pub sequence: u8,
}

/// Received bytes that are not consumed yet. Memory grows with received bytes, never with a claimed length.
#[derive(Debug, Default)]
pub struct InputBuffer {
    bytes: Vec<u8>,
    /// Offset of the next packet's header.
    start: usize,
    /// Payload bytes of a long packet already joined after the header at `start`; 0 if none.
    joined: usize,
    /// Expected sequence number of the next packet.
    expected: u8,
    /// Sequence numbers are not checked, as for packets in compressed frames.
    is_unnumbered: bool,
}

impl InputBuffer {
    /// Appends bytes from the peer.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.compact();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Sets the expected number of the next packet, when a command begins.
    pub fn expect_sequence(&mut self, sequence: u8) {
        self.expected = sequence;
    }

    /// Returns whether nothing is buffered.
    pub fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Disables the check of sequence numbers: packets arrive in compressed frames, or both sides send at any
    /// time.
    pub fn ignore_sequence(&mut self) {
        self.is_unnumbered = true;
    }

    /// Returns the number of buffered bytes.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Returns the payload of a packet.
    pub fn payload(&self, packet: &Packet) -> &[u8] {
        &self.bytes[packet.range.clone()]
    }

    /// Returns the offset of the next packet header, after the joined payload.
    fn header_at(&self) -> usize {
        self.start + if self.joined == 0 { 0 } else { HEADER + self.joined }
    }

    /// Returns the sequence number for an error reply to an incomplete packet: one more than that of the last
    /// header.
    pub fn refusal_sequence(&self) -> u8 {
        let header = self.bytes.get(self.header_at()..).and_then(|rest| rest.first_chunk::<HEADER>());
        header.map_or(self.expected, |header| header[3].wrapping_add(1))
    }

    /// Returns the next complete payload of at most `payload_max` bytes, or `None` if more bytes are needed.
    pub fn next(&mut self, payload_max: usize) -> Result<Option<Packet>, PacketError> {
        loop {
            let at = self.header_at();
            let Some(&[a, b, c, sequence]) =
                self.bytes.get(at..).and_then(|rest| rest.first_chunk::<HEADER>())
            else {
                return Ok(None);
            };
            if sequence != self.expected && !self.is_unnumbered {
                return Err(PacketError::OutOfOrder);
            }
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            if self.joined + length > payload_max {
                return Err(PacketError::TooLarge);
            }
            if self.bytes.len() < at + HEADER + length {
                return Ok(None);
            }
            self.expected = self.expected.wrapping_add(1);
            if self.joined > 0 {
                self.bytes.drain(at..at + HEADER);
            }
            if length == FULL {
                self.joined += length;
                continue;
            }
            let payload = self.start + HEADER;
            let end = payload + self.joined + length;
            self.start = end;
            self.joined = 0;
            return Ok(Some(Packet { range: payload..end, sequence }));
        }
    }

    /// Takes the bytes that are not part of any packet yet.
    pub fn take_rest(&mut self) -> Vec<u8> {
        self.compact();
        self.joined = 0;
        std::mem::take(&mut self.bytes)
    }

    /// Frees consumed bytes, and the memory of a large packet.
    pub fn compact(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
    }

    /// Frees memory beyond `keep` bytes when the connection becomes idle.
    pub fn shrink(&mut self, keep: usize) {
        self.compact();
        if self.bytes.capacity() > keep.max(self.bytes.len()) {
            self.bytes.shrink_to(keep);
        }
    }

    /// Returns the size of the buffer's memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Writes a packet to the end of a buffer. The header is filled in after the payload.
pub struct PacketWriter<'a> {
    out: &'a mut Vec<u8>,
    header: usize,
    sequence: &'a mut u8,
}

impl<'a> PacketWriter<'a> {
    /// Begins a packet.
    #[inline]
    pub fn begin(out: &'a mut Vec<u8>, sequence: &'a mut u8) -> PacketWriter<'a> {
        let header = out.len();
        out.extend_from_slice(&[0; HEADER]);
        PacketWriter { out, header, sequence }
    }

    /// Returns the buffer to append the payload to.
    pub fn payload(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Ends the packet. Splits a long payload into several packets.
    #[inline]
    pub fn end(self) {
        let length = self.out.len() - self.header - HEADER;
        if length >= FULL {
            return self.cut();
        }
        let [a, b, c, _] = (length as u32).to_le_bytes();
        self.out[self.header..self.header + HEADER].copy_from_slice(&[a, b, c, *self.sequence]);
        *self.sequence = self.sequence.wrapping_add(1);
    }

    #[cold]
    fn cut(self) {
        let mut header = self.header;
        loop {
            let length = (self.out.len() - header - HEADER).min(FULL);
            let [a, b, c, _] = (length as u32).to_le_bytes();
            self.out[header..header + HEADER].copy_from_slice(&[a, b, c, *self.sequence]);
            *self.sequence = self.sequence.wrapping_add(1);
            if length < FULL {
                return;
            }
            header += HEADER + FULL;
            self.out.splice(header..header, [0; HEADER]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(payload: &[u8]) -> Vec<u8> {
        let (mut out, mut sequence) = (Vec::new(), 0);
        let mut packet = PacketWriter::begin(&mut out, &mut sequence);
        packet.payload().extend_from_slice(payload);
        packet.end();
        out
    }

    #[test]
    fn packets_of_all_sizes_round_trip_however_they_are_cut() {
        for size in [0, 1, 250, FULL - 1, FULL, FULL + 1, 2 * FULL, 2 * FULL + 7] {
            let payload: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            let bytes = framed(&payload);
            assert_eq!(bytes.len(), size + HEADER * (size / FULL + 1));
            let mut input = InputBuffer::default();
            let mut got = None;
            for part in bytes.chunks(bytes.len().div_ceil(7).max(3)) {
                assert_eq!(got, None);
                input.extend(part);
                got = input.next(usize::MAX).expect("in order");
            }
            let packet = got.expect("whole");
            assert_eq!(usize::from(packet.sequence), size / FULL);
            assert!(input.payload(&packet) == payload, "{size}");
            assert!(input.is_empty());
        }
    }

    #[test]
    fn pipelined_packets_come_one_by_one() {
        let mut input = InputBuffer::default();
        input.extend(&[framed(b"one"), framed(b"two")].concat());
        let first = input.next(100).expect("in order").expect("whole");
        assert_eq!(input.payload(&first), b"one");
        input.expect_sequence(0);
        let second = input.next(100).expect("in order").expect("whole");
        assert_eq!(input.payload(&second), b"two");
        assert_eq!(input.next(100), Ok(None));
        input.shrink(0);
        assert_eq!(input.capacity(), 0);
    }

    #[test]
    fn a_long_payload_is_refused_with_the_number_after_its_last_packet() {
        let bytes = framed(&vec![7; 2 * FULL + 7]);
        let mut input = InputBuffer::default();
        for (n, part) in bytes.chunks(FULL + HEADER).enumerate() {
            input.extend(&part[..HEADER]);
            let is_last = n == 2;
            let expected = if is_last { Err(PacketError::TooLarge) } else { Ok(None) };
            assert_eq!(input.next(2 * FULL + 6), expected);
            assert_eq!(usize::from(input.refusal_sequence()), n + 1);
            input.extend(&part[HEADER..]);
            if !is_last {
                assert_eq!(input.next(2 * FULL + 6), Ok(None));
                assert_eq!(usize::from(input.refusal_sequence()), n + 1, "between packets");
            }
        }
    }

    #[test]
    fn a_claimed_length_is_refused_before_it_is_believed() {
        let mut input = InputBuffer::default();
        input.extend(&[0xff, 0xff, 0xff, 0]);
        assert_eq!(input.next(1 << 20), Err(PacketError::TooLarge));
        assert_eq!(input.next(1 << 30), Ok(None));
        assert!(input.capacity() < 100);
        assert_eq!(input.refusal_sequence(), 1);
        input.expect_sequence(3);
        assert_eq!(input.next(1 << 30), Err(PacketError::OutOfOrder));
    }
}
