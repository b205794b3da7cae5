//! In every collation, the index keys of all texts that match a LIKE pattern begin with the key of the
//! pattern's literal prefix, which index searches use.

use cohort_types::{Collation, ColumnType, KeyPart, Str, TypeKind, Value, like_prefix};

const PIECES: &[&str] = &[
    "a", "A", "b", "c", "ch", "Ch", "h", "ll", "dz", "e", "é", "e\u{301}", "ä", "ß", "s", "ss", "z", "æ",
    "0", " ", "  ", "\t", "-", "ŉ", "'", "\u{200d}", "한", "ｱ", "😀", "ij", "İ", "i",
];

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn text(&mut self, pieces: usize) -> String {
        let pieces = 1 + self.below(pieces);
        (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }
}

#[test]
fn matches_of_a_pattern_share_its_key_prefix() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut matched = 0;
    for collation in Collation::all() {
        for _ in 0..400 {
            let start = random.text(3);
            let pattern = format!("{start}%");
            // Another spelling of the prefix also matches.
            let text = match random.below(3) {
                0 => start.to_uppercase() + &random.text(2),
                1 => start.clone() + &random.text(2),
                _ => random.text(4),
            };
            if !collation.like(text.as_bytes(), pattern.as_bytes(), Some('\\')) {
                continue;
            }
            matched += 1;
            let chars = random.below(4) as u32;
            let part = KeyPart {
                ty: ColumnType::string(TypeKind::VarChar, 40, collation),
                prefix: (chars > 0).then_some(chars),
                nullable: random.below(2) == 0,
            };
            let (mut key, mut open) = (Vec::new(), Vec::new());
            let value = Value::Str(Str { bytes: text.clone().into_bytes(), collation });
            part.encode(&value, &mut key).expect("a text");
            let (literal, _) = like_prefix(pattern.as_bytes(), Some('\\'), collation);
            part.encode_start(&literal, &mut open);
            assert!(key.starts_with(&open), "{}: {text:?} LIKE {pattern:?}, {chars}", collation.name());
        }
    }
    assert!(matched > 10_000, "only {matched} matches");
}
