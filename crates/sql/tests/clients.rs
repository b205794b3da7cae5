//! Statements of real clients. All must parse, and the frequent ones must have digests.

use cohort_sql::{Digest, ParseMode, ParseOptions, next_statement, parse};

const CLIENTS: &str = include_str!("clients.sql");

#[test]
fn every_statement_parses() {
    let options = ParseOptions::default();
    let mut rest = CLIENTS.as_bytes();
    let mut count = 0;
    loop {
        rest = rest.trim_ascii_start();
        let Some((range, next)) = next_statement(rest, ParseMode::default(), &mut |_| Ok(())) else { break };
        // A client sends a version comment of another server alone, without the semicolon.
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let (range, next) = match line.strip_suffix(b"*/;") {
            Some(comment) if comment.starts_with(b"/*!8") => (0..line.len() - 1, line.len()),
            _ => (range, next),
        };
        let sql = &rest[range];
        match parse(sql, &options) {
            Ok(_) => {}
            // Only a version comment of another server.
            Err(error) if error.code.number() == 1065 => {}
            Err(error) => panic!("{error}\nin: {}", String::from_utf8_lossy(sql)),
        }
        count += 1;
        rest = &rest[next..];
    }
    assert!(count > 150, "only {count} statements");
}

/// The statements of sysbench and mariadb-slap have a digest and a cacheable tree, whose literals are
/// numbered as in the digest.
#[test]
fn hot_statements_have_digests() {
    let c = "08566691963-88624912351-16662227201-46648573979-64646226163-77505759394-75470094713-41097360717-\
             15161106334-50535565977";
    for sql in [
        "SELECT c FROM sbtest1 WHERE id=5013".to_string(),
        "SELECT c FROM sbtest1 WHERE id BETWEEN 5013 AND 5112".to_string(),
        "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 5013 AND 5112".to_string(),
        "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 5013 AND 5112 ORDER BY c".to_string(),
        "UPDATE sbtest1 SET k=k+1 WHERE id=5013".to_string(),
        format!("UPDATE sbtest1 SET c='{c}' WHERE id=5013"),
        "DELETE FROM sbtest1 WHERE id=5013".to_string(),
        format!("INSERT INTO sbtest1 (id, k, c, pad) VALUES (5013, 5043, '{c}', 'x')"),
        "INSERT INTO t1 (id,value) VALUES(NULL,1)".to_string(),
        "INSERT INTO t1 VALUES (1804289383,'mxvtvmC9127qJNm06sGB8R92q2j7vTiiITRDGXM9ZLzkdekbWtmXKwZ2qG1llkRw')".to_string(),
    ] {
        let mut literals = Vec::new();
        let options = ParseOptions::default();
        assert!(Digest::of(sql.as_bytes(), &options, &mut literals).is_some(), "{sql}");
        let parsed = parse(sql.as_bytes(), &options).expect("parses");
        assert!(parsed.cacheable, "{sql}");
        let debug = format!("{:?}", parsed.statement);
        for (ordinal, value) in literals.iter().enumerate() {
            let literal = format!("Literal {{ value: {value:?}, kind: Plain, ordinal: Some({ordinal}) }}");
            assert!(debug.contains(&literal), "{sql}: no {literal} in {debug}");
        }
    }
}
