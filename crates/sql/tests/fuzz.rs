//! For every text, the lexer, the parser, the digest and the splitter terminate without a panic.

use cohort_sql::{Digest, ParseMode, ParseOptions, next_statement, parse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const CLIENTS: &str = include_str!("clients.sql");

/// Words and symbols of random statement-like texts.
const PIECES: &[&str] = &[
    "SELECT",
    "INSERT",
    "INTO",
    "VALUES",
    "UPDATE",
    "DELETE",
    "FROM",
    "WHERE",
    "SET",
    "GROUP",
    "BY",
    "ORDER",
    "LIMIT",
    "CREATE",
    "TABLE",
    "ALTER",
    "DROP",
    "INDEX",
    "KEY",
    "PRIMARY",
    "SHOW",
    "GRANT",
    "ON",
    "TO",
    "USING",
    "JOIN",
    "LEFT",
    "NOT",
    "NULL",
    "IN",
    "IS",
    "LIKE",
    "BETWEEN",
    "AND",
    "OR",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "EXISTS",
    "UNION",
    "ALL",
    "INTERVAL",
    "DAY",
    "CAST",
    "AS",
    "CHAR",
    "INT",
    "DEFAULT",
    "IF",
    "COUNT",
    "TRIM",
    "BINARY",
    "COLLATE",
    "WITH",
    "FOR",
    "LOCK",
    "SHARE",
    "MODE",
    "XA",
    "START",
    "TRANSACTION",
    "DATE",
    "BEGIN",
    "COMMIT",
    "USER",
    "FLUSH",
    "TABLES",
    "a",
    "t",
    "`q`",
    "db",
    "x1",
    "(",
    ")",
    "(",
    ")",
    ",",
    ".",
    ";",
    "*",
    "=",
    "<",
    "<=>",
    "+",
    "-",
    "/",
    "%",
    "||",
    "&&",
    "!",
    "~",
    "^",
    ":=",
    "@",
    "@@",
    "@v",
    "?",
    "'s'",
    "\"d\"",
    "1",
    "1.5",
    "1e3",
    "0x41",
    "x'41'",
    "b'1'",
    "N'n'",
    "_utf8mb4",
    "{",
    "}",
    "/*",
    "*/",
    "/*!",
    "/*!40000",
    "-- ",
    "#",
    "\\N",
    "'",
    "\"",
    "`",
    "\n",
];

fn try_all(sql: &[u8]) {
    let modes = [
        ParseMode::default(),
        ParseMode {
            ansi_quotes: true,
            pipes_as_concat: true,
            no_backslash_escapes: true,
            high_not_precedence: true,
            ignore_space: true,
            oracle: true,
            empty_string_is_null: true,
            real_as_float: true,
        },
    ];
    for mode in modes {
        let options = ParseOptions { mode, ..ParseOptions::default() };
        let parsed = parse(sql, &options);
        let mut literals = Vec::new();
        let digest = Digest::of(sql, &options, &mut literals);
        if let (Ok(parsed), Some(_)) = (&parsed, digest)
            && parsed.cacheable
        {
            let debug = format!("{:?}", parsed.statement);
            assert_eq!(debug.matches("ordinal: Some(").count(), literals.len(), "{debug}");
        }
        let mut rest = sql;
        let mut statements = 0;
        while let Some((range, next)) = next_statement(rest, mode, &mut |_| Ok(())) {
            assert!(range.end <= next && next <= rest.len() && next > 0);
            rest = &rest[next..];
            statements += 1;
            assert!(statements <= sql.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(sql in vec(any::<u8>(), 0..200)) {
        try_all(&sql);
    }

    #[test]
    fn word_soup(pieces in vec(select(PIECES), 1..40)) {
        try_all(pieces.join(" ").as_bytes());
    }

    #[test]
    fn mutated_statements(at in 0..CLIENTS.len(), cut in 0..200usize, piece in select(PIECES), byte in any::<u8>()) {
        let bytes = CLIENTS.as_bytes();
        let (range, _) = next_statement(&bytes[at..], ParseMode::default(), &mut |_| Ok(())).unwrap_or((0..0, 0));
        let mut sql = bytes[at..][range].to_vec();
        let middle = cut.min(sql.len());
        sql.splice(middle..middle, piece.bytes());
        try_all(&sql);
        sql.truncate(cut.max(1));
        try_all(&sql);
        if let Some(last) = sql.last_mut() {
            *last = byte;
        }
        try_all(&sql);
    }
}

/// Deep nesting returns an error and does not overflow the stack.
#[test]
fn deep_nesting() {
    let deep = |open: &str, close: &str| format!("SELECT {}1{}", open.repeat(20_000), close.repeat(20_000));
    for sql in [
        deep("- ", ""),
        deep("(SELECT ", ")"),
        deep("abs(", ")"),
        deep("CASE WHEN ", " THEN 1 END"),
        deep("@a := ", ""),
        deep("1 + (2 * ", ")"),
        deep("a IN (", ")"),
        deep("! ", ""),
        deep("k = (NOT ", ")"),
        deep("1 BETWEEN 0 AND ", ""),
        format!("SELECT * FROM {}t{}", "(".repeat(20_000), ")".repeat(20_000)),
        format!("{}SELECT 1{}", "(".repeat(20_000), ")".repeat(20_000)),
        format!("SELECT 1{}", " + 1".repeat(20_000)),
        format!("SELECT * FROM t{}", " JOIN t".repeat(20_000)),
        format!("SELECT * FROM t{}", " NATURAL JOIN t".repeat(20_000)),
        format!("SELECT * FROM t{}", ", t".repeat(20_000)),
        format!("SELECT a LIKE 1{}", " NOT LIKE 1".repeat(20_000)),
        format!("{}SELECT 1", "EXPLAIN ".repeat(20_000)),
        format!("{}SELECT 1", "SET STATEMENT x=1 FOR ".repeat(20_000)),
    ] {
        let error = parse(sql.as_bytes(), &ParseOptions::default()).expect_err("too deep");
        let known = matches!(error.code.number(), 1436 | 1473 | 1116 | 1064);
        assert!(known, "{error}: {}", &sql[..60]);
    }
}

/// Wide statements, which real programs send, are accepted.
#[test]
fn wide_statements() {
    let long_or = format!("SELECT * FROM t WHERE a = 1{}", " OR a = 2".repeat(50_000));
    let long_in = format!("SELECT * FROM t WHERE a IN (1{})", ", 2".repeat(50_000));
    let many_rows = format!("INSERT INTO t VALUES (1, 'x'){}", ", (2, 'y')".repeat(50_000));
    let nested = format!("SELECT {}1{}", "(".repeat(50_000), ")".repeat(50_000));
    let operators =
        format!("SELECT {}1{}", "(".repeat(50_000), " + 1) * 2 AND (0)".repeat(20)) + &")".repeat(49_980);
    let negated = format!("SELECT {}1", "NOT ".repeat(50_000));
    let united = format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(50_000));
    let mixed = format!("SELECT 1{}", " UNION SELECT 1 EXCEPT SELECT 2".repeat(20_000));
    let sum = format!("SELECT a{}", " + 1".repeat(500));
    for sql in [long_or, long_in, many_rows, nested, operators, negated, united, mixed, sum] {
        let parsed = parse(sql.as_bytes(), &ParseOptions::default());
        assert!(parsed.is_ok(), "{:?}: {}", parsed.err(), &sql[..60]);
    }
}

#[test]
fn splitting() {
    let split = |text: &str| {
        let (mut rest, mut out) = (text, Vec::new());
        while let Some((range, next)) = next_statement(rest.as_bytes(), ParseMode::default(), &mut |_| Ok(()))
        {
            out.push(rest[range].to_string());
            rest = &rest[next..];
        }
        out
    };
    assert_eq!(split(" select 1 ; select ';' ;; -- x\n"), ["select 1", "select ';'", "; -- x"]);
    assert_eq!(
        split("select `a;b`, \"c;d\" /* ; */ # ;\n + 1;x"),
        ["select `a;b`, \"c;d\" /* ; */ # ;\n + 1", "x"]
    );
    assert_eq!(split("begin"), ["begin"]);
    assert_eq!(split(" ;; "), Vec::<String>::new());
    assert_eq!(split("/*!40101 SET x=1 */;select 1"), ["/*!40101 SET x=1 */", "select 1"]);
    assert_eq!(split("select 'open; select 1"), ["select 'open; select 1"]);
}
