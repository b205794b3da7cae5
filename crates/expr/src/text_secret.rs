//! AES_ENCRYPT, ENCODE and their inverses.

use aes::Aes128;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt as _, BlockEncrypt as _, KeyInit as _};
use cohort_types::{Interrupt as _, SqlResult, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::function::{Anywhere, Function, Rows};
use crate::hash::old_hash;
use crate::text_size::stored_bytes;
use crate::typing::{byte_width, long_binary_string};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("aes_encrypt", 2, 2, type_encrypted, aes_encrypt, Rows, Anywhere),
    Function::new("aes_decrypt", 2, 2, type_as_long, aes_decrypt, Rows, Anywhere),
    Function::new("encode", 2, 2, type_as_long, encode, Rows, Anywhere),
    Function::new("decode", 2, 2, type_as_long, decode, Rows, Anywhere),
];

const BLOCK: usize = 16;

/// Bytes encrypted per interruption step.
const BYTES_OF_A_STEP: usize = 256;

fn type_encrypted(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    // MariaDB computes the length with 32 bits.
    let padded = (byte_width(&args[0]) / BLOCK as u64 + 1) * BLOCK as u64;
    Ok(long_binary_string(u64::from(padded as u32)))
}

fn type_as_long(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(long_binary_string(byte_width(&args[0])))
}

/// Returns an AES-128 block cipher (ECB mode). A longer key is folded by XOR.
fn cipher(key: &[u8]) -> Aes128 {
    let mut folded = [0; BLOCK];
    for (n, byte) in key.iter().enumerate() {
        folded[n % BLOCK] ^= byte;
    }
    Aes128::new(&GenericArray::from(folded))
}

fn aes_encrypt(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(stored_bytes(&a, 0));
    let key = or_null!(stored_bytes(&a, 1));
    a.ctx.steps((text.len() / BYTES_OF_A_STEP) as u32 + 1)?;
    let cipher = cipher(&key);
    let padding = BLOCK - text.len() % BLOCK;
    let mut out = text.into_owned();
    out.resize(out.len() + padding, padding as u8);
    for block in out.chunks_exact_mut(BLOCK) {
        cipher.encrypt_block(GenericArray::from_mut_slice(block));
    }
    a.string(out)
}

/// Returns NULL for bytes that AES_ENCRYPT did not make with this key.
fn aes_decrypt(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(stored_bytes(&a, 0));
    let key = or_null!(stored_bytes(&a, 1));
    if text.is_empty() || text.len() % BLOCK != 0 {
        return Ok(Value::Null);
    }
    a.ctx.steps((text.len() / BYTES_OF_A_STEP) as u32 + 1)?;
    let cipher = cipher(&key);
    let mut out = text.into_owned();
    for block in out.chunks_exact_mut(BLOCK) {
        cipher.decrypt_block(GenericArray::from_mut_slice(block));
    }
    let padding = usize::from(*out.last().expect("not empty"));
    let end = out.len().saturating_sub(padding);
    if !(1..=BLOCK).contains(&padding) || out[end..].iter().any(|b| usize::from(*b) != padding) {
        return Ok(Value::Null);
    }
    out.truncate(end);
    a.string(out)
}

/// The random number generator of MySQL's first password hashes.
struct Generator {
    seeds: (u64, u64),
}

const GENERATOR_MAX: u64 = 0x3fff_ffff;

impl Generator {
    fn next(&mut self) -> u32 {
        let (one, two) = self.seeds;
        let one = (one * 3 + two) % GENERATOR_MAX;
        self.seeds = (one, (one + two + 33) % GENERATOR_MAX);
        (one as f64 / GENERATOR_MAX as f64 * 255.0) as u32
    }
}

/// A permutation of bytes and a running key, both derived from a password.
struct Scrambler {
    generator: Generator,
    image: [u8; 256],
    shift: u32,
}

impl Scrambler {
    fn new(password: &[u8]) -> Scrambler {
        let (one, two) = old_hash(password);
        let seeds = (u64::from(one) % GENERATOR_MAX, u64::from(two) % GENERATOR_MAX);
        let mut generator = Generator { seeds };
        let mut image: [u8; 256] = std::array::from_fn(|n| n as u8);
        for n in 0..image.len() {
            image.swap(n, generator.next() as usize);
        }
        Scrambler { generator, image, shift: 0 }
    }

    fn encode(&mut self, text: &mut [u8]) {
        let mut place = [0; 256];
        for (n, byte) in self.image.iter().enumerate() {
            place[usize::from(*byte)] = n as u8;
        }
        for byte in text {
            self.shift ^= self.generator.next();
            let plain = *byte;
            *byte = place[usize::from(plain)] ^ self.shift as u8;
            self.shift ^= u32::from(plain);
        }
    }

    fn decode(&mut self, text: &mut [u8]) {
        for byte in text {
            self.shift ^= self.generator.next();
            *byte = self.image[usize::from(*byte ^ self.shift as u8)];
            self.shift ^= u32::from(*byte);
        }
    }
}

fn encode(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(stored_bytes(&a, 0));
    let password = or_null!(stored_bytes(&a, 1));
    let mut out = text.into_owned();
    Scrambler::new(&password).encode(&mut out);
    a.string(out)
}

fn decode(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(stored_bytes(&a, 0));
    let password = or_null!(stored_bytes(&a, 1));
    let mut out = text.into_owned();
    Scrambler::new(&password).decode(&mut out);
    a.string(out)
}
