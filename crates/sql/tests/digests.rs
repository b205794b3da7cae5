//! DIGEST_TEXT of statements, as MariaDB 10.11 returned it.

use std::collections::HashMap;

use cohort_sql::{ParseMode, StatementDigest};

/// Lines of text, tab, DIGEST_TEXT, with `\n`, `\r`, `\t` and `\\` escaped. Recorded with
/// `max_digest_length=4096`.
const RECORDED: &str = include_str!("digests.tsv");

fn unescaped(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                _ => '\\',
            },
            c => c,
        });
    }
    out
}

#[test]
fn texts_and_groups_are_those_of_mariadb() {
    let (mut lines, mut wrong) = (0, Vec::new());
    let mut groups: HashMap<u128, String> = HashMap::new();
    for line in RECORDED.lines() {
        let (sql, expected) = line.split_once('\t').expect("two fields");
        let (sql, expected) = (unescaped(sql), unescaped(expected));
        let digest = StatementDigest::of(sql.as_bytes(), ParseMode::default(), 4096);
        lines += 1;
        if *digest.text != *expected {
            wrong.push(format!("{sql}\n  expected {expected}\n  got      {}\n", digest.text));
        }
        let other = groups.entry(digest.hash).or_insert_with(|| expected.clone());
        assert_eq!(*other, expected, "statements of different texts share a digest");
    }

    assert!(wrong.is_empty(), "{} of {lines} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(lines >= 2000, "{lines} texts");
}
