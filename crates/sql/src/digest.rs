//! Digests: hashes of statements without their literals.
//!
//! The text between the literals is hashed unchanged, including spaces and letter case: a repeated statement
//! comes from the same line of a program, and result columns are named after their text. Each literal is
//! replaced by its type (a plan for `k = 1` is not valid for `k = 'a'`). Lists of different lengths have
//! different digests.
//!
//! The hash has 128 bits, computed as two independent hashes by keyed folded multiplication (the step of
//! wyhash). The keys are random for each process, so that an attacker cannot construct two statements that
//! share a plan.

use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

use cohort_types::Value;

use crate::ParseOptions;
use crate::lexer::{Kind, Lexer, Token};
use crate::literal::{append_text, literal_value};

/// Maximum length of a digested statement. Longer ones are bulk loads; they are parsed.
const LENGTH_MAX: usize = 8 * 1024;

/// A digest. Two statements have equal digests if their texts differ only in the values of literals of the
/// same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub u128);

impl Digest {
    /// Returns the digest of a SELECT, INSERT, UPDATE, DELETE or REPLACE, and writes its literals to
    /// `literals` in order. Existing values of `literals` are overwritten; the buffers of its strings are
    /// reused. Returns `None` for other statements, texts over 8 KiB, texts with `?`, version comments and
    /// lexical errors: these must be parsed, and `literals` has no useful contents.
    pub fn of(sql: &[u8], options: &ParseOptions, literals: &mut Vec<Value>) -> Option<Digest> {
        if sql.len() > LENGTH_MAX || !matches!(sql.first()? | 0x20, b's' | b'i' | b'u' | b'd' | b'r') {
            return None;
        }
        let mut lexer = Lexer::new(sql, options.mode);
        let first = lexer.next();
        if !is_digestible(&sql[first.start..first.end]) {
            return None;
        }
        let mut hash = Lanes::new();
        let (mut hashed, mut count) = (0, 0);
        loop {
            let token = lexer.next();
            match token.kind {
                Kind::End => break,
                Kind::Invalid | Kind::Param => return None,
                kind if kind.is_literal() => {
                    let value = store(sql, token, options, literals, count)?;
                    hash.bytes(&sql[hashed..token.start]);
                    hash.word(type_tag(kind, value, sql[token.start]));
                    hashed = token.end;
                    count += 1;
                }
                _ => {}
            }
        }
        if lexer.saw_version_comment {
            return None;
        }
        literals.truncate(count);
        hash.bytes(&sql[hashed..]);
        Some(hash.finish())
    }
}

/// Stores the literal's value at `at`, which is the end of the list or the index of an earlier statement's
/// value.
#[inline]
fn store<'v>(
    sql: &[u8],
    token: Token,
    options: &ParseOptions,
    literals: &'v mut Vec<Value>,
    at: usize,
) -> Option<&'v Value> {
    match literals.get_mut(at) {
        Some(Value::Str(text)) if token.kind == Kind::Text => {
            text.bytes.clear();
            append_text(&sql[token.start..token.end], options.mode, &mut text.bytes);
            text.collation = options.collation;
        }
        Some(slot) => *slot = literal_value(sql, token, options)?,
        None => literals.push(literal_value(sql, token, options)?),
    }
    literals.get(at)
}

fn is_digestible(word: &[u8]) -> bool {
    let words: [&[u8]; 5] = [b"select", b"insert", b"update", b"delete", b"replace"];
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Returns the type of a literal, which is part of the digest.
fn type_tag(kind: Kind, value: &Value, first: u8) -> u64 {
    match (kind, value) {
        (Kind::Integer, Value::Int(_)) => 1,
        (Kind::Integer, Value::UInt(_)) => 2,
        (Kind::Integer | Kind::Decimal, Value::Decimal(number)) => 0x100 | u64::from(number.scale()),
        (Kind::Float, _) => 4,
        (Kind::Text, _) => 5,
        (Kind::NationalText, _) => 6,
        // 0x41 counts as a number, x'41' does not.
        (Kind::Hex, _) if first == b'0' => 7,
        _ => 8,
    }
}

/// Returns the keys of this process.
fn keys() -> &'static [u64; 4] {
    static KEYS: OnceLock<[u64; 4]> = OnceLock::new();
    KEYS.get_or_init(|| {
        let random = ahash::RandomState::new();
        [1u64, 2, 3, 4].map(|n| {
            let mut hasher = random.build_hasher();
            hasher.write_u64(n);
            hasher.finish() | 1
        })
    })
}

/// Two hashes, computed together.
struct Lanes {
    keys: &'static [u64; 4],
    a: u64,
    b: u64,
}

impl Lanes {
    fn new() -> Lanes {
        let keys = keys();
        Lanes { keys, a: keys[0], b: keys[1] }
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.mix(word, 0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn mix(&mut self, low: u64, high: u64) {
        self.a = fold(self.a ^ low, self.keys[2] ^ high);
        self.b = fold(self.b ^ high, self.keys[3] ^ low);
    }

    /// Hashes a piece of text and its length, so that adjacent pieces remain separate.
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((chunk, tail)) = rest.split_first_chunk::<16>() {
            self.mix(word_of(&chunk[..8]), word_of(&chunk[8..]));
            rest = tail;
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(word_of(&last[..8]), word_of(&last[8..]));
        self.mix(bytes.len() as u64, 0x2545_f491_4f6c_dd1d);
    }

    fn finish(self) -> Digest {
        let a = fold(self.a ^ self.keys[3], self.keys[2]);
        let b = fold(self.b ^ self.keys[2], self.keys[3]);
        Digest(u128::from(a) << 64 | u128::from(b))
    }
}

#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// Combines both halves of the product with a factor, so that a zero factor does not erase the state.
#[inline]
fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    (product as u64) ^ (product >> 64) as u64 ^ x.rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseMode;

    fn digest(sql: &str) -> (Option<Digest>, Vec<Value>) {
        let mut literals = Vec::new();
        let digest = Digest::of(sql.as_bytes(), &ParseOptions::default(), &mut literals);
        (digest, literals)
    }

    #[test]
    fn values_go_and_text_stays() {
        let (a, literals) = digest("SELECT c FROM t WHERE id=17 AND x='it''s' AND y=-2");
        assert_eq!(literals, [Value::Int(17), Value::text("it's"), Value::Int(2)]);
        assert!(a.is_some());
        assert_eq!(a, digest("SELECT c FROM t WHERE id=1 AND x='' AND y=-9999").0);
        for other in [
            "SELECT c FROM t WHERE id=17 AND x='it''s' AND y=2",
            "SELECT c FROM t WHERE id='17' AND x='it''s' AND y=-2",
            "SELECT c FROM t WHERE id=17 AND x='it''s' AND y=-9223372036854775808",
            "SELECT d FROM t WHERE id=17 AND x='it''s' AND y=-2",
            "SELECT c FROM t WHERE id =17 AND x='it''s' AND y=-2",
        ] {
            assert_ne!(a, digest(other).0, "{other}");
        }
        let mut reused = vec![Value::text("long old text"), Value::Int(5), Value::Null];
        Digest::of(b"SELECT 'a', 'b'", &ParseOptions::default(), &mut reused);
        assert_eq!(reused, [Value::text("a"), Value::text("b")]);
        assert_ne!(digest("SELECT 1,1 FROM t").0, digest("SELECT 1 FROM t").0);
        assert_ne!(digest("SELECT a FROM t1").0, digest("SELECT a FROM t2").0);
    }

    #[test]
    fn statements_that_need_the_full_parser() {
        for sql in ["BEGIN", "select 'x", "select /*!40000 1 */", "select ?", "", "SHOW TABLES", "set x=1"] {
            assert_eq!(digest(sql).0, None, "{sql}");
        }
        assert_eq!(digest(&format!("select '{}'", "x".repeat(9000))).0, None);
    }

    #[test]
    fn sql_mode_decides_what_a_literal_is() {
        let mut literals = Vec::new();
        let mode = ParseMode { ansi_quotes: true, ..ParseMode::default() };
        let options = ParseOptions { mode, ..ParseOptions::default() };
        assert!(Digest::of(b"select \"a\" from t where b = 'x'", &options, &mut literals).is_some());
        assert_eq!(literals, [Value::text("x")]);
    }
}
