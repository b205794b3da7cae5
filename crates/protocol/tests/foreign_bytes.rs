//! Decoders accept any bytes: they return a value or an error, never panic, and use memory in proportion to
//! the input.

use cohort_protocol::{
    Capabilities, ChangeUser, Command, Compressor, Decompressor, HandshakeResponse, InputBuffer, ParamText,
    StatementParams,
};
use cohort_types::{Charset, Collation};
use proptest::collection::vec;
use proptest::prelude::*;

const TEXT: ParamText = ParamText { charset: Charset::Utf8mb4, collation: Collation::UTF8MB4_GENERAL_CI };

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..300), capabilities: u64) {
        let _ = Command::decode(&bytes);
        let _ = HandshakeResponse::decode(&bytes, Capabilities::SERVER);
        let _ = ChangeUser::decode(&bytes, Capabilities(capabilities));
    }

    #[test]
    fn any_response_after_a_valid_head_is_answered(tail in vec(any::<u8>(), 0..200), flags: u32) {
        let mut bytes = (flags | 1 << 9).to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 28]);
        bytes.extend_from_slice(&tail);
        let _ = HandshakeResponse::decode(&bytes, Capabilities::SERVER);
    }

    #[test]
    fn any_parameters_are_answered(count in 0u16..9, types in vec(any::<(u8, bool)>(), 0..9), tail in vec(any::<u8>(), 0..120)) {
        // Excludes decimals: their parser belongs to another crate.
        let known = |t: u8| [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 252, 253, 254][usize::from(t % 16)];
        let mut bytes = vec![0; usize::from(count).div_ceil(8)];
        bytes.push(1);
        types.iter().for_each(|(code, unsigned)| bytes.extend_from_slice(&[known(*code), u8::from(*unsigned) << 7]));
        bytes.extend_from_slice(&tail);
        let _ = StatementParams::new(count).decode(&bytes, TEXT);
    }

    #[test]
    fn any_frames_are_answered(mut bytes in vec(any::<u8>(), 0..300), payload in vec(any::<u8>(), 0..200), at: usize, to: u8) {
        let _ = Decompressor::default().unpack(&bytes, 1 << 20, &mut InputBuffer::default());
        bytes.clear();
        Compressor::default().pack(&payload, &mut bytes);
        if let Some(byte) = bytes.len().checked_sub(1).and_then(|last| bytes.get_mut(at % (last + 1))) {
            *byte = to;
        }
        let mut input = InputBuffer::default();
        let _ = Decompressor::default().unpack(&bytes, 1 << 20, &mut input);
        prop_assert!(input.waiting() <= 200);
    }

    #[test]
    fn a_stream_never_yields_more_than_came(parts in vec(vec(any::<u8>(), 0..40), 0..20), max in 0usize..1 << 25) {
        let mut input = InputBuffer::default();
        let mut came = 0;
        for part in parts {
            came += part.len();
            input.extend(&part);
            while let Ok(Some(packet)) = input.next(max) {
                prop_assert!(packet.range.len() <= came.min(max));
                input.expect_sequence(packet.sequence.wrapping_add(1));
            }
        }
        prop_assert!(input.capacity() <= 4096);
    }
}
