//! The compressed protocol: frames around the packet stream, used after login if both sides support it.
//!
//! ```text
//! u24 length of the payload | u8 sequence | u24 length before compression; 0: not compressed | payload
//! ```
//!
//! A frame may contain several packets or a part of one. Frames have their own sequence numbers, which also
//! start at 0 with each command. Sequence numbers of packets inside frames are arbitrary.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::packet::{InputBuffer, PacketError};

const HEADER: usize = 7;
/// Minimum size worth compressing.
const BYTES_MIN: usize = 50;
/// Maximum payload of a frame that this side sends.
const FRAME_BYTES: usize = 256 << 10;

/// Encodes outgoing bytes as frames.
#[derive(Debug, Default)]
pub struct Compressor {
    sequence: u8,
}

impl Compressor {
    /// Sets the number of the next frame, which follows that of the last received frame.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Appends `bytes` to `out` as frames.
    pub fn pack(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for part in bytes.chunks(FRAME_BYTES) {
            let header = out.len();
            out.extend_from_slice(&[0; HEADER]);
            let mut plain = 0;
            if part.len() >= BYTES_MIN {
                let mut encoder = ZlibEncoder::new(&mut *out, Compression::default());
                encoder.write_all(part).and_then(|()| encoder.try_finish()).expect("memory takes everything");
                plain = part.len();
            }
            if plain == 0 || out.len() - header - HEADER >= part.len() {
                out.truncate(header + HEADER);
                out.extend_from_slice(part);
                plain = 0;
            }
            let [a, b, c, _] = ((out.len() - header - HEADER) as u32).to_le_bytes();
            let [d, e, f, _] = (plain as u32).to_le_bytes();
            out[header..header + HEADER].copy_from_slice(&[a, b, c, self.sequence, d, e, f]);
            self.sequence = self.sequence.wrapping_add(1);
        }
    }
}

/// Decodes incoming frames. Memory grows with received bytes, never with a claimed length.
#[derive(Debug, Default)]
pub struct Decompressor {
    /// Bytes of an incomplete frame.
    bytes: Vec<u8>,
    /// Number of the last frame whose header was received.
    sequence: u8,
}

impl Decompressor {
    /// Returns the frame number for an error reply to the bytes received.
    pub fn refusal_sequence(&self) -> u8 {
        self.sequence.wrapping_add(1)
    }

    /// Processes bytes from the peer. Appends the contents of complete frames to `input`, which may hold at
    /// most `bytes_max` bytes. Returns the number of the last frame.
    pub fn unpack(
        &mut self,
        bytes: &[u8],
        bytes_max: usize,
        input: &mut InputBuffer,
    ) -> Result<Option<u8>, PacketError> {
        input.ignore_sequence();
        self.bytes.extend_from_slice(bytes);
        let (mut rest, mut last) = (&self.bytes[..], None);
        while let Some((&[a, b, c, sequence, d, e, f], more)) = rest.split_first_chunk::<HEADER>() {
            self.sequence = sequence;
            let [length, plain] = [[a, b, c, 0], [d, e, f, 0]].map(|n| u32::from_le_bytes(n) as usize);
            if input.waiting() + length.max(plain) > bytes_max {
                return Err(PacketError::TooLarge);
            }
            let Some((payload, after)) = more.split_at_checked(length) else { break };
            match plain {
                0 => input.extend(payload),
                _ => input.extend(&inflate(payload, plain)?),
            }
            (rest, last) = (after, Some(sequence));
        }
        let taken = self.bytes.len() - rest.len();
        self.bytes.drain(..taken);
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
        Ok(last)
    }
}

fn inflate(payload: &[u8], plain: usize) -> Result<Vec<u8>, PacketError> {
    let mut bytes = Vec::new();
    let read = ZlibDecoder::new(payload).take(plain as u64 + 1).read_to_end(&mut bytes);
    match read {
        Ok(n) if n == plain => Ok(bytes),
        _ => Err(PacketError::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(input: &mut InputBuffer) -> Vec<u8> {
        let packet = input.next(usize::MAX).expect("in order").expect("whole");
        input.payload(&packet).to_vec()
    }

    #[test]
    fn compressed_packets_decode_at_any_split() {
        for size in [1, BYTES_MIN, 5000, FRAME_BYTES - 4, FRAME_BYTES, 3 * FRAME_BYTES] {
            for is_random in [false, true] {
                let mut n = 1_u32;
                let mut next = || {
                    n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if is_random { (n >> 24) as u8 } else { 7 }
                };
                let payload: Vec<u8> = (0..size).map(|_| next()).collect();
                let [a, b, c, _] = (size as u32).to_le_bytes();
                let mut framed = Vec::new();
                let mut compressor = Compressor::default();
                compressor.set_sequence(5);
                compressor.pack(&[&[a, b, c, 0], &payload[..]].concat(), &mut framed);
                let frames = (size + 4).div_ceil(FRAME_BYTES);
                assert!(framed.len() <= size + 4 + frames * HEADER, "never larger than plain");
                assert!(is_random || size < BYTES_MIN || framed.len() < size);
                let (mut unpack, mut input, mut last) =
                    (Decompressor::default(), InputBuffer::default(), None);
                for part in framed.chunks(framed.len().div_ceil(5)) {
                    last = unpack.unpack(part, usize::MAX, &mut input).expect("fine").or(last);
                }
                assert_eq!(last, Some(5 + frames as u8 - 1));
                assert!(waiting(&mut input) == payload && input.is_empty(), "{size}");
            }
        }
    }

    #[test]
    fn damaged_frames_and_false_lengths_are_refused() {
        let mut framed = Vec::new();
        Compressor::default().pack(&[7; 1000], &mut framed);
        let unpack =
            |bytes: &[u8], max| Decompressor::default().unpack(bytes, max, &mut InputBuffer::default());
        assert_eq!(unpack(&framed, 1000), Ok(Some(0)));
        assert_eq!(unpack(&framed, 999), Err(PacketError::TooLarge));
        assert_eq!(unpack(&[0xff, 0xff, 0xff, 0, 0, 0, 0], 1 << 20), Err(PacketError::TooLarge));
        for (at, to) in [(4, 0xe7), (4, 0xe9), (7, 0), (12, 0xff)] {
            let mut bad = framed.clone();
            bad[at] = to;
            assert_eq!(unpack(&bad, 1 << 20), Err(PacketError::Damaged), "{at}");
        }
    }
}
