//! Prepared statements with parameters: the metadata when they are prepared, and when they are executed with
//! values of one type after another, and with the table's columns changed in between.

use crate::compare::{Differences, Pair};
use crate::support::Bound;

/// A BIGINT, a string, a DOUBLE, and NULL.
const VALUES: &[Bound<'static>] = &[
    (8, 0, Some(&[5, 0, 0, 0, 0, 0, 0, 0])),
    (253, 0, Some(b"\x03abc")),
    (5, 0, Some(&[0, 0, 0, 0, 0, 0, 0xf8, 0x3f])),
    (6, 0, None),
];

/// Decimals of different precision, and times with and without fractions: a plan made for one value must not
/// truncate the next.
const OF_SOME_WIDTH: &[Bound<'static>] = &[
    (246, 0, Some(b"\x031.5")),
    (246, 0, Some(b"\x0510.25")),
    (246, 0, Some(b"\x0a123456.789")),
    (246, 0, Some(b"\x0812345.00")),
    (12, 0, Some(b"\x07\xea\x07\x0b\x18\x0a\x0b\x0c")),
    (12, 0, Some(b"\x0b\xea\x07\x0b\x18\x0a\x0b\x0c\x20\xa1\x07\x00")),
    (11, 0, Some(b"\x08\x00\x00\x00\x00\x00\x01\x02\x03")),
    (11, 0, Some(b"\x0c\x00\x00\x00\x00\x00\x01\x02\x03\x20\xa1\x07\x00")),
];

const STATEMENTS_OF_WIDTH: &[&str] = &[
    "SELECT CAST(? AS CHAR(40))",
    "SELECT c_int FROM ty WHERE CAST(c_dec AS CHAR(40)) < ?",
    "SELECT CAST(? AS CHAR(40)) = '123456.789', CAST(? AS CHAR(40)) = '12345.00' FROM ty",
];

const STATEMENTS: &[&str] = &[
    "SELECT ?",
    "SELECT ?, c_int FROM ty",
    "SELECT c_int + ? FROM ty",
    "SELECT CONCAT(?, 'a')",
    "SELECT COALESCE(?, c_vc) FROM ty",
    "SELECT IF(?, 1, 'x')",
    "SELECT c_int FROM ty WHERE c_vc = ? AND c_dec > ?",
    "SELECT COUNT(*), MAX(c_vc) FROM ty WHERE c_int = ?",
    "SELECT ? UNION ALL SELECT 1",
    "SELECT x.p FROM (SELECT ? AS p) AS x",
    "INSERT INTO changing (b) VALUES (?)",
    "UPDATE changing SET b = ? WHERE a = ?",
    "DELETE FROM changing WHERE b = ?",
];

#[test]
fn parameters() {
    let mut pair = Pair::new();
    pair.run_both("CREATE TABLE changing (a INT, b VARCHAR(20))");
    let mut differences = Differences::default();
    for sql in STATEMENTS {
        pair.compare_bound(sql, VALUES, &mut differences);
    }
    for sql in STATEMENTS_OF_WIDTH {
        pair.compare_bound(sql, OF_SOME_WIDTH, &mut differences);
    }
    differences.check("parameters", include_str!("known_parameters.txt"), true);
}

#[test]
fn a_client_receives_new_metadata_when_columns_change() {
    let mut pair = Pair::new();
    pair.run_both("CREATE TABLE changing (a INT, b VARCHAR(20))");
    let mut differences = Differences::default();
    let changes: &[&str] = &[
        "DO 1",
        "ALTER TABLE changing ADD COLUMN c INT",
        "DO 2",
        "ALTER TABLE changing MODIFY b INT",
        "ALTER TABLE changing DROP COLUMN c",
    ];
    pair.compare_over_changes("SELECT * FROM changing", changes, &mut differences);
    differences.check("changes", "", true);
}
