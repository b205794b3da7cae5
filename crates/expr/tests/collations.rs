//! Character sets and collations compared with a real MariaDB, for all code points: encoding, upper and lower
//! case, and sort order in every collation.
//!
//! `COHORT_LONG_TESTS=1` also tests the collations of ucs2, utf16 and utf32, whose weights are those of
//! utf8mb4.

mod support;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use cohort_types::{Charset, Collation};
use support::mariadb::Maria;

/// SQL for the character with a number from table `seq`.
const CHARACTER: &str = "CONVERT(CHAR(seq USING utf32) USING utf8mb4)";

fn text(c: u32) -> Option<String> {
    char::from_u32(c).map(String::from)
}

/// Returns MariaDB's results for the characters from 0 to `last`, without surrogates.
fn ask(maria: &Maria, what: &str, last: u32) -> BTreeMap<u32, Vec<String>> {
    let sql = format!(
        "USE test; SET sql_mode=''; SELECT seq, {what} FROM seq_0_to_{last} \
         WHERE seq NOT BETWEEN 0xd800 AND 0xdfff;"
    );
    let printed = maria.run(&sql);
    let line = |line: &str| {
        let mut fields = line.split('\t');
        let c = fields.next()?.parse().ok()?;
        Some((c, fields.map(str::to_owned).collect()))
    };
    let answers: BTreeMap<u32, Vec<String>> = printed.lines().filter_map(line).collect();
    let asked = last as usize + 1 - if last > 0xdfff { 0x800 } else { 0 };
    assert_eq!(answers.len(), asked, "{what}: {}", &printed[..printed.len().min(500)]);
    answers
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

#[test]
fn characters_have_mariadbs_bytes_and_cases() {
    let maria = Maria::new();
    let mut wrong = Vec::new();
    for charset in Charset::ALL.into_iter().filter(|c| *c != Charset::Binary) {
        let name = charset.name();
        let there = format!("CONVERT({CHARACTER} USING {name})");
        let back = |x: &str| format!("HEX(CONVERT({x}({there}) USING utf32))");
        let what = format!("HEX({there}), {}, {}", back("UPPER"), back("LOWER"));
        let last = if charset.is_unicode() && charset.mbmaxlen() == 4 { 0x1_04ff } else { 0xffff };
        for (c, theirs) in ask(&maria, &what, last) {
            let Some(text) = text(c) else { continue };
            let mut bytes = Vec::new();
            let lacking = charset.encode(text.as_bytes(), &mut bytes);
            if hex(&bytes) != theirs[0] {
                wrong.push(format!("{name} {c:#x}: {} not {}", theirs[0], hex(&bytes)));
            }
            // MariaDB encodes U+6661 in cp932 with the code of another character, which shows only when that
            // code is converted back.
            if lacking > 0 || (charset == Charset::Cp932 && c == 0x6661) {
                continue;
            }
            let (mut upper, mut lower) = (Vec::new(), Vec::new());
            charset.default_collation().upper(text.as_bytes(), &mut upper);
            charset.default_collation().lower(text.as_bytes(), &mut lower);
            for (ours, theirs) in [(upper, &theirs[1]), (lower, &theirs[2])] {
                let mut wide = Vec::new();
                Charset::Utf32.encode(&ours, &mut wide);
                if hex(&wide) != *theirs {
                    wrong.push(format!("{name} {c:#x}: case {theirs} not {}", hex(&wide)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

/// Converts a weight string to numbers: of four digits each if a character may have several weights,
/// otherwise a single number.
fn weights(hexadecimal: &str, collation: Collation) -> Vec<u64> {
    let number = |digits: &str| u64::from_str_radix(digits, 16).expect("hexadecimal");
    match collation.sort_len() > 1 {
        true => {
            hexadecimal.as_bytes().chunks(4).map(|w| number(std::str::from_utf8(w).expect("ASCII"))).collect()
        }
        false => vec![number(hexadecimal)],
    }
}

/// Returns the expressions for the weight levels that a collation uses.
fn levels(collation: Collation, text: &str) -> Vec<String> {
    let name = collation.name();
    if collation.common_name().is_none() {
        return vec![format!("HEX(WEIGHT_STRING({text} COLLATE {name}))")];
    }
    let counted = match name.rsplit_once("_a") {
        Some((_, "i_ci")) => &[1][..],
        Some((_, "i_cs")) => &[1, 3],
        Some((_, "s_ci")) => &[1, 2],
        _ => &[1, 2, 3],
    };
    let all = format!("{}_uca1400_as_cs", collation.charset().name());
    counted.iter().map(|level| format!("HEX(WEIGHT_STRING({text} COLLATE {all} LEVEL {level}))")).collect()
}

/// Compares weights level by level.
fn by_levels(a: &[Vec<u64>], b: &[Vec<u64>], space: &[Vec<u64>]) -> Ordering {
    let each = (0..space.len()).map(|n| padded(&a[n], &b[n], &space[n]));
    each.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn padded(a: &[u64], b: &[u64], space: &[u64]) -> Ordering {
    let at = |w: &[u64], n: usize| w.get(n).copied().unwrap_or(space[0]);
    (0..a.len().max(b.len())).map(|n| at(a, n).cmp(&at(b, n))).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

#[test]
fn characters_stand_in_mariadbs_order() {
    let maria = Maria::new();
    let is_long = std::env::var_os("COHORT_LONG_TESTS").is_some();
    let mut wrong = Vec::new();
    for collation in Collation::all().filter(|c| *c != Collation::BINARY) {
        let (name, charset) = (collation.name(), collation.charset());
        let is_copy = charset.is_unicode() && charset != Charset::Utf8mb4;
        // NOPAD collations have the same weights; `nopad_collations_do_not_pad` tests them.
        if name.contains("nopad") || (is_copy && !is_long) {
            continue;
        }
        let last = if charset.is_unicode() && charset.mbmaxlen() == 4 { 0x2_ffff } else { 0xffff };
        let there = format!("CONVERT({CHARACTER} USING {})", charset.name());
        let what = levels(collation, &there).join(", ");
        let mut characters: Vec<(String, Vec<Vec<u64>>)> = Vec::new();
        let mut space = Vec::new();
        for (c, theirs) in ask(&maria, &what, last) {
            let Some(text) = text(c).filter(|text| charset.check(text.as_bytes()).is_ok()) else { continue };
            if charset == Charset::Cp932 && c == 0x6661 {
                continue;
            }
            let of_level = |hexadecimal: &String| match hexadecimal.is_empty() {
                true => Vec::new(),
                false => weights(hexadecimal, collation),
            };
            let weights: Vec<Vec<u64>> = theirs.iter().map(of_level).collect();
            if c == 0x20 {
                space = weights.clone();
            }
            characters.push((text, weights));
        }
        characters.sort_by_cached_key(|(text, _)| {
            let mut key = Vec::new();
            collation.sort_key(text.as_bytes(), &mut key);
            key
        });
        for pair in characters.windows(2) {
            let ours = collation.compare(pair[0].0.as_bytes(), pair[1].0.as_bytes());
            let theirs = by_levels(&pair[0].1, &pair[1].1, &space);
            if ours != theirs {
                wrong.push(format!("{name} {:?} {:?}: {theirs:?} not {ours:?}", pair[0], pair[1]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

#[test]
fn cases_follow_the_collation() {
    let maria = Maria::new();
    let mut wrong = Vec::new();
    let names = ["bin", "general_ci", "unicode_ci", "turkish_ci", "unicode_520_ci", "uca1400_as_cs"];
    for name in names.map(|name| format!("utf8mb4_{name}")) {
        let collation = Collation::by_name(&name).expect("known");
        let back = |x: &str| format!("HEX(CONVERT({x}({CHARACTER} COLLATE {name}) USING utf32))");
        for (c, theirs) in ask(&maria, &format!("{}, {}", back("UPPER"), back("LOWER")), 0x1_ffff) {
            let Some(text) = text(c) else { continue };
            let (mut upper, mut lower) = (Vec::new(), Vec::new());
            collation.upper(text.as_bytes(), &mut upper);
            collation.lower(text.as_bytes(), &mut lower);
            for (ours, theirs) in [(upper, &theirs[0]), (lower, &theirs[1])] {
                let mut wide = Vec::new();
                Charset::Utf32.encode(&ours, &mut wide);
                if hex(&wide) != *theirs {
                    wrong.push(format!("{name} {c:#x}: {theirs} not {}", hex(&wide)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

#[test]
fn letters_that_weigh_as_one_do_so_in_mariadb() {
    let maria = Maria::new();
    let recorded = include_str!("../../types/src/collation/uca1400_sequences.txt");
    let of_line = |line: &str| {
        let code_points = line.split('\t').next().unwrap_or_default().split(' ');
        code_points.filter_map(|c| char::from_u32(u32::from_str_radix(c, 16).ok()?)).collect::<String>()
    };
    let texts: Vec<String> =
        recorded.lines().map(of_line).flat_map(|s| [format!("a{s}"), format!("{s}{s}b")]).collect();
    let collation = Collation::by_name("utf8mb4_uca1400_as_cs").expect("known");
    let mut sql = "USE test;\n".to_owned();
    for text in &texts {
        let literal = format!("CONVERT(X'{}' USING utf8mb4)", hex(text.as_bytes()));
        sql.push_str(&format!("SELECT HEX(WEIGHT_STRING({literal} COLLATE {}));\n", collation.name()));
    }
    let printed = maria.run(&sql);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), texts.len(), "{}", &printed[..printed.len().min(500)]);
    for (text, theirs) in texts.iter().zip(lines) {
        let mut ours = Vec::new();
        collation.weight_string(text.as_bytes(), usize::MAX, 0, &mut ours);
        assert_eq!(hex(&ours), theirs, "{text:?}");
    }
}

#[test]
fn nopad_collations_do_not_pad() {
    let maria = Maria::new();
    let texts = ["", " ", "a", "A", "a ", "a  ", "a\t", "b", "a b", "ch", "cz", "d", "h", "aa", "az", "z"];
    let collations: Vec<Collation> = Collation::all().filter(|c| *c != Collation::BINARY).collect();
    let mut sql = "USE test;\n".to_owned();
    let literal =
        |text: &str, charset: Charset| format!("CONVERT(_utf8mb4'{text}' USING {})", charset.name());
    for collation in &collations {
        let signs = texts.iter().flat_map(|a| {
            texts.map(|b| {
                let (a, b) = (literal(a, collation.charset()), literal(b, collation.charset()));
                format!("STRCMP({a} COLLATE {0}, {b} COLLATE {0})", collation.name())
            })
        });
        sql.push_str(&format!("SELECT CONCAT_WS(',', {});\n", signs.collect::<Vec<_>>().join(", ")));
    }
    let printed = maria.run(&sql);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), collations.len(), "{}", &printed[..printed.len().min(500)]);
    let mut wrong = Vec::new();
    for (collation, line) in collations.iter().zip(lines) {
        let pairs = texts.iter().flat_map(|a| texts.map(|b| (*a, b)));
        for ((a, b), sign) in pairs.zip(line.split(',')) {
            let ours = collation.compare(a.as_bytes(), b.as_bytes()) as i32;
            if ours.to_string() != sign {
                wrong.push(format!("{} {a:?} {b:?}: {sign} not {ours}", collation.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
