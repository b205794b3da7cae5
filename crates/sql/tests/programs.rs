//! Stored programs and compound statements: texts that MariaDB 10.11 accepts, texts that it rejects with its
//! errors, and where a definition ends in a text of several statements.

use cohort_sql::ast::{BodyAssignment, Declaration, LoopKind, Program, Statement, Step, Target, Variable};
use cohort_sql::{ParseMode, ParseOptions, has_statement, next_statement, parse};
use cohort_types::ErrorCode;

fn program(sql: &str) -> Program {
    match parse(sql.as_bytes(), &ParseOptions::default()) {
        Ok(parsed) => match parsed.statement {
            Statement::Program(program) => *program,
            other => panic!("{sql}: {other:?}"),
        },
        Err(error) => panic!("{sql}: {error:?}"),
    }
}

const ACCEPTED: &[&str] = &[
    "BEGIN NOT ATOMIC SELECT 1; END",
    "IF 1 THEN SELECT 3; ELSEIF 2 THEN SELECT 4; ELSE SELECT 5; END IF",
    "WHILE 0 DO SELECT 1; END WHILE",
    "FOR i IN 1..3 DO SELECT i; END FOR",
    "FOR i IN REVERSE 1 .. 3 DO SELECT i; END FOR",
    "BEGIN NOT ATOMIC DECLARE a, b INT; FOR i IN a..b DO SELECT i; END FOR; END",
    "CASE 1 WHEN 1 THEN SELECT 5; END CASE",
    "CASE WHEN 1 THEN SELECT 5; ELSE SELECT 6; END CASE",
    "REPEAT SELECT 6; UNTIL 1 END REPEAT",
    "LOOP SELECT 1; END LOOP",
    "BEGIN NOT ATOMIC DECLARE x, y INT DEFAULT 3; SELECT x, y; END",
    "BEGIN NOT ATOMIC DECLARE x INT; SET x = 3, @b = 4, autocommit = 1; SELECT x, @b; END",
    "BEGIN NOT ATOMIC DECLARE x INT; SELECT 1 INTO x; SELECT x LIMIT x; END",
    "BEGIN NOT ATOMIC DECLARE r ROW(a INT, b VARCHAR(3)); SELECT 1 INTO r.a; SET r.a = 1; END",
    "BEGIN NOT ATOMIC DECLARE r ROW TYPE OF t1; DECLARE q TYPE OF t1.a; DECLARE s TYPE OF d.t1.a; DECLARE u TYPE OF s; END",
    "BEGIN NOT ATOMIC DECLARE x INT; GET CURRENT DIAGNOSTICS CONDITION x @b = MESSAGE_TEXT, x = ROW_NUMBER; END",
    "CREATE PROCEDURE p() BEGIN END",
    "CREATE PROCEDURE p() x: BEGIN y: LOOP LEAVE y; END LOOP; END x",
    "CREATE PROCEDURE p() BEGIN BEGIN NOT ATOMIC END; END",
    "CREATE PROCEDURE IF NOT EXISTS d.p() SELECT 1",
    "CREATE OR REPLACE DEFINER = root@localhost PROCEDURE p(IN a INT, OUT b VARCHAR(10) CHARSET utf8mb4 COLLATE \
     utf8mb4_bin, INOUT c DECIMAL(5,2) UNSIGNED, d INT) COMMENT 'x' LANGUAGE SQL NOT DETERMINISTIC READS SQL DATA \
     SQL SECURITY INVOKER COMMENT 'y' BEGIN END",
    "CREATE DEFINER=CURRENT_USER FUNCTION f() RETURNS INT RETURN 1",
    "CREATE FUNCTION f(IN a INT) RETURNS VARCHAR(3) CHARSET latin1 DETERMINISTIC BEGIN IF a THEN RETURN 1; ELSEIF \
     a + 1 THEN RETURN 2; ELSE RETURN 3; END IF; END",
    "CREATE AGGREGATE FUNCTION f(x INT) RETURNS INT BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN 3; LOOP \
     FETCH GROUP NEXT ROW; END LOOP; END",
    "CREATE PROCEDURE p() BEGIN DECLARE x INT; DECLARE r ROW(y INT); DECLARE e CONDITION FOR 1051; DECLARE f CONDITION FOR SQLSTATE VALUE '42000'; \
     DECLARE c CURSOR (a INT, IN b INT) FOR SELECT a, b; DECLARE d CURSOR FOR (SELECT 1); DECLARE CONTINUE HANDLER \
     FOR NOT FOUND, SQLWARNING, 1051, SQLSTATE '42S02', e BEGIN END; DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; \
     OPEN c(1, 2); FETCH c INTO x; FETCH FROM c INTO x, r.y; FETCH NEXT FROM c INTO x; CLOSE c; END",
    "CREATE PROCEDURE p() BEGIN FOR x IN c DO SELECT x.a; END FOR; FOR x IN c(1, (2)) DO SELECT x.a; END FOR; FOR y \
     IN (SELECT 1 AS z) DO SELECT y.z; END FOR; END",
    "CREATE PROCEDURE p() SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'x', MYSQL_ERRNO = 3",
    "CREATE PROCEDURE p() BEGIN SIGNAL f; RESIGNAL; RESIGNAL e SET MESSAGE_TEXT = @q; RESIGNAL SET CLASS_ORIGIN = 'x'; \
     END",
    "CREATE PROCEDURE p() BEGIN PREPARE s FROM 'SELECT ?'; EXECUTE s USING @a; DEALLOCATE PREPARE s; CALL q(1, @a); \
     START TRANSACTION; COMMIT; END",
    "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET NEW.a = 1",
    "CREATE TRIGGER IF NOT EXISTS d.t AFTER DELETE ON d.a FOR EACH ROW FOLLOWS b BEGIN SET @x = OLD.a; END",
    "CREATE OR REPLACE TRIGGER t BEFORE UPDATE ON a FOR EACH ROW PRECEDES b SET NEW.a = OLD.a, @b = 2, NEW.c := NOW()",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS NOW() + INTERVAL 1 HOUR ENDS '2030-01-01' ON COMPLETION PRESERVE \
     DISABLE ON SLAVE COMMENT 'c' DO SELECT 1",
    "CREATE EVENT e ON SCHEDULE AT CURRENT_TIMESTAMP + INTERVAL 1 MINUTE ON COMPLETION NOT PRESERVE ENABLE DO BEGIN END",
    "CREATE EVENT e ON SCHEDULE EVERY '1:2' DAY_HOUR DO SET @a = 1",
    "ALTER EVENT e RENAME TO d.e9 ENABLE",
    "ALTER DEFINER = a@b EVENT e ON SCHEDULE EVERY 2 HOUR DISABLE COMMENT 'x' DO SELECT 2",
    "ALTER PROCEDURE p COMMENT 'z' NO SQL",
    "ALTER FUNCTION d.f SQL SECURITY DEFINER",
    "DROP PROCEDURE p",
    "DROP FUNCTION IF EXISTS d.f",
    "DROP TRIGGER IF EXISTS t.x",
    "DROP EVENT e",
    "CREATE FUNCTION f() RETURNS INT RETURN (SELECT a FROM t)",
    "CALL p",
    "CALL t.p(1, @a, 'b')",
    "SIGNAL SQLSTATE VALUE '45000'",
    "SIGNAL abc",
    "RESIGNAL",
];

/// Texts, and the number and the end of MariaDB's error.
const REJECTED: &[(&str, u16, &str)] = &[
    ("l: BEGIN NOT ATOMIC SELECT 1; END l", 1064, "near 'l: BEGIN NOT ATOMIC SELECT 1; END l' at line 1"),
    ("l: LOOP LEAVE l; END LOOP", 1064, "near 'l: LOOP LEAVE l; END LOOP' at line 1"),
    ("CREATE PROCEDURE p() BEGIN ; END", 1064, "near '; END' at line 1"),
    ("CREATE PROCEDURE p() l: BEGIN END m", 1310, "End-label m without match"),
    ("CREATE PROCEDURE p() SELECT ?", 1064, "near '?' at line 1"),
    (
        "CREATE PROCEDURE p() BEGIN DECLARE c CURSOR FOR SELECT 1; DECLARE x INT; END",
        1337,
        "Variable or condition declaration after cursor or handler declaration",
    ),
    (
        "CREATE PROCEDURE p() BEGIN DECLARE EXIT HANDLER FOR 1051 BEGIN END; DECLARE c CURSOR FOR SELECT 1; END",
        1338,
        "Cursor declaration after handler declaration",
    ),
    ("ALTER EVENT e9", 1064, "near '' at line 1"),
    ("ALTER PROCEDURE p DETERMINISTIC", 1064, "near 'DETERMINISTIC' at line 1"),
    ("SIGNAL SQLSTATE 'x'", 1407, "Bad SQLSTATE: 'x'"),
    ("SIGNAL SQLSTATE '00000'", 1407, "Bad SQLSTATE: '00000'"),
    ("CREATE FUNCTION f() RETURNS INT SELECT 1", 1064, "near 'SELECT 1' at line 1"),
    ("CREATE FUNCTION f() RETURNS ROW(a INT) RETURN 1", 1064, "near 'ROW(a INT) RETURN 1' at line 1"),
    (
        "CREATE OR REPLACE PROCEDURE IF NOT EXISTS p() BEGIN END",
        1221,
        "Incorrect usage of OR REPLACE and IF NOT EXISTS",
    ),
    (
        "BEGIN NOT ATOMIC GET STACKED DIAGNOSTICS @a = NUMBER; END",
        1064,
        "near 'STACKED DIAGNOSTICS @a = NUMBER; END' at line 1",
    ),
    (
        "CREATE PROCEDURE p() BEGIN DECLARE CONTINUE HANDLER FOR 0 BEGIN END; END",
        1525,
        "Incorrect CONDITION value: '0'",
    ),
    (
        "CREATE PROCEDURE p() BEGIN DECLARE UNDO HANDLER FOR 1051 BEGIN END; END",
        1064,
        "near 'UNDO HANDLER FOR 1051 BEGIN END; END' at line 1",
    ),
    (
        "CREATE PROCEDURE p() BEGIN DECLARE c CURSOR FOR SELECT 1 INTO @a; END",
        1323,
        "Cursor SELECT must not have INTO",
    ),
    (
        "CREATE PROCEDURE p() BEGIN DECLARE c CURSOR FOR SHOW TABLES; END",
        1064,
        "near 'SHOW TABLES; END' at line 1",
    ),
    ("CREATE PROCEDURE p() BEGIN FOR i IN 1..3 DO SELECT i; END FOR x; END", 1064, "near 'x; END' at line 1"),
    ("CREATE PROCEDURE p() BEGIN IF 1 THEN END IF; END", 1064, "near 'END IF; END' at line 1"),
    (
        "CREATE PROCEDURE p() BEGIN CASE 1 WHEN 1 THEN ELSE END CASE; END",
        1064,
        "near 'ELSE END CASE; END' at line 1",
    ),
    ("CREATE PROCEDURE p() BEGIN WHILE 1 DO END WHILE; END", 1064, "near 'END WHILE; END' at line 1"),
    ("CREATE PROCEDURE p() BEGIN DECLARE x INT = 3; END", 1064, "near '= 3; END' at line 1"),
    (
        "CREATE PROCEDURE p() BEGIN DECLARE x INT NOT NULL DEFAULT 3; END",
        1064,
        "near 'NOT NULL DEFAULT 3; END' at line 1",
    ),
    ("CREATE PROCEDURE p(a INT NOT NULL) BEGIN END", 1064, "near 'NOT NULL) BEGIN END' at line 1"),
    ("CREATE PROCEDURE p(a.b INT) BEGIN END", 1064, "near '.b INT) BEGIN END' at line 1"),
    ("CREATE PROCEDURE `a `() BEGIN END", 1458, "Incorrect routine name 'a '"),
    ("CREATE PROCEDURE p() BEGIN REPEAT UNTIL 1 END REPEAT; END", 1064, "near '1 END REPEAT; END' at line 1"),
    (
        "CREATE TRIGGER t BEFORE INSERT OR UPDATE ON a FOR EACH ROW BEGIN END",
        1064,
        "near 'OR UPDATE ON a FOR EACH ROW BEGIN END' at line 1",
    ),
    (
        "CREATE TRIGGER t BEFORE UPDATE OF a ON t FOR EACH ROW BEGIN END",
        1064,
        "near 'OF a ON t FOR EACH ROW BEGIN END' at line 1",
    ),
    ("CREATE EVENT e ON SCHEDULE EVERY 1 DO SELECT 1", 1064, "near 'DO SELECT 1' at line 1"),
    (
        "CREATE EVENT e ON SCHEDULE AT NOW() STARTS NOW() DO SELECT 1",
        1064,
        "near 'STARTS NOW() DO SELECT 1' at line 1",
    ),
    (
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY COMMENT 'a' ENABLE DO SELECT 1",
        1064,
        "near 'ENABLE DO SELECT 1' at line 1",
    ),
    ("CREATE EVENT e DO SELECT 1", 1064, "near 'DO SELECT 1' at line 1"),
    ("ALTER EVENT e ENABLE RENAME TO e3", 1064, "near 'RENAME TO e3' at line 1"),
    (
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a', MESSAGE_TEXT = 'b'",
        1641,
        "Duplicate condition information item 'MESSAGE_TEXT'",
    ),
    ("SIGNAL SQLSTATE '45000' SET foo = 'a'", 1064, "near 'foo = 'a'' at line 1"),
    (
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = concat('a', 'b')",
        1054,
        "Unknown column 'concat' in 'SELECT'",
    ),
    (
        "SIGNAL SQLSTATE '01000' SET MYSQL_ERRNO = (1 IN (SELECT 1))",
        1064,
        "near '(1 IN (SELECT 1))' at line 1",
    ),
    ("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = -1", 1064, "near '-1' at line 1"),
    (
        "BEGIN NOT ATOMIC DECLARE c CURSOR (OUT a INT) FOR SELECT a; END",
        1235,
        "doesn't yet support 'OUT/INOUT cursor parameter'",
    ),
    ("BEGIN NOT ATOMIC DECLARE a INT; SET a = zz; END", 1327, "Undeclared variable: zz"),
    ("BEGIN NOT ATOMIC IF t.x THEN SELECT 1; END IF; END", 1327, "Undeclared variable: t"),
    ("BEGIN NOT ATOMIC CALL p(zz); END", 1327, "Undeclared variable: zz"),
    ("CREATE FUNCTION f() RETURNS INT RETURN zz", 1327, "Undeclared variable: zz"),
    ("CREATE PROCEDURE p() SELECT 1 INTO x", 1327, "Undeclared variable: x"),
    (
        "CREATE PROCEDURE p() BEGIN BEGIN DECLARE x INT; END; FETCH c INTO x; END",
        1327,
        "Undeclared variable: x",
    ),
    ("CREATE PROCEDURE p(a INT, A INT) BEGIN END", 1330, "Duplicate parameter: A"),
    ("CREATE PROCEDURE p(a INT) BEGIN DECLARE x, X INT; END", 1331, "Duplicate variable: X"),
    (
        "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET @x = OLD.a",
        1363,
        "There is no OLD row in on INSERT trigger",
    ),
    (
        "CREATE TRIGGER t AFTER DELETE ON a FOR EACH ROW SET @x = NEW.a",
        1363,
        "There is no NEW row in on DELETE trigger",
    ),
    (
        "CREATE TRIGGER t AFTER UPDATE ON a FOR EACH ROW SET NEW.a = 1",
        1362,
        "Updating of NEW row is not allowed in after trigger",
    ),
    (
        "CREATE TRIGGER t BEFORE UPDATE ON a FOR EACH ROW SET OLD.a = 1",
        1362,
        "Updating of OLD row is not allowed in trigger",
    ),
    ("SELECT 1 INTO x", 1327, "Undeclared variable: x"),
    ("SELECT 1 LIMIT x", 1327, "Undeclared variable: x"),
];

#[test]
fn programs_are_accepted_as_by_mariadb() {
    for sql in ACCEPTED {
        program(sql);
        // Alone or with a `;` at the end, it is one statement of a text.
        let text = format!("{sql}; SELECT 'next'");
        let end = next_statement(text.as_bytes(), ParseMode::default(), &mut |_| Ok(()));
        assert_eq!(end, Some((0..sql.len(), sql.len() + 1)), "{sql}");
        assert!(has_statement(&text.as_bytes()[sql.len() + 1..], ParseMode::default()));
    }
}

#[test]
fn programs_are_rejected_as_by_mariadb() {
    for (sql, number, end) in REJECTED {
        match parse(sql.as_bytes(), &ParseOptions::default()) {
            Ok(parsed) => panic!("{sql}: {:?}", parsed.statement),
            Err(error) => {
                assert_eq!(error.code.number(), *number, "{sql}: {}", error.message);
                assert!(error.message.ends_with(end), "{sql}: {}", error.message);
            }
        }
    }
}

#[test]
fn a_definition_with_an_error_is_the_rest_of_the_text() {
    let sql = b"CREATE PROCEDURE p() BEGIN SELECT 1; oops; END; SELECT 2";
    let found = next_statement(sql, ParseMode::default(), &mut |_| Ok(()));
    assert_eq!(found, Some((0..sql.len(), sql.len())));
}

#[test]
fn a_body_for_which_there_is_no_memory_is_the_rest_of_the_text() {
    let sql = b"CREATE PROCEDURE p() BEGIN SELECT 1; END; SELECT 2";
    let mut asked = 0;
    let found = next_statement(sql, ParseMode::default(), &mut |bytes| {
        asked = asked.max(bytes);
        Err(cohort_types::SqlError::undeclared_variable("x"))
    });
    assert_eq!(found, Some((0..sql.len(), sql.len())));
    assert!(asked >= sql.len(), "{asked}");
}

#[test]
fn ranges_of_statements_are_relative_to_the_body() {
    let sql = "CREATE PROCEDURE p() /* c */ l: BEGIN DECLARE c CURSOR FOR SELECT 1 FROM t; FOR i IN 1..2 DO INSERT \
               INTO t VALUES (i); END FOR; END l";
    let Program::CreateRoutine(routine) = program(sql) else { panic!() };
    let body = &sql[routine.body.range];
    assert!(body.starts_with("l: BEGIN") && body.ends_with("END l"), "{body}");
    let Step::Block(block) = routine.body.step else { panic!() };
    assert_eq!(block.label.as_deref(), Some("l"));
    let [Declaration::Cursor { query, .. }] = &block.declarations[..] else { panic!() };
    assert_eq!(&body[query.range.clone()], "SELECT 1 FROM t");
    let [Step::Loop { kind: LoopKind::Numbers { .. }, steps, .. }] = &block.steps[..] else { panic!() };
    let [Step::Sql(insert)] = &steps[..] else { panic!() };
    assert_eq!(&body[insert.range.clone()], "INSERT INTO t VALUES (i)");
    let [used] = &insert.uses[..] else { panic!() };
    assert_eq!((&used.of, &body[used.range.clone()]), (&Variable::Slot(0), "i"));
}

/// Returns the variables that the statements of a block use, with their texts.
fn uses_in(sql: &str) -> Vec<String> {
    let (step, range) = match program(sql) {
        Program::CreateRoutine(routine) => (routine.body.step, routine.body.range),
        Program::CreateTrigger(trigger) => (trigger.body.step, trigger.body.range),
        Program::Compound(body) => (body.step, body.range),
        other => panic!("{other:?}"),
    };
    let Step::Block(block) = step else { panic!("{sql}") };
    let mut found = Vec::new();
    for step in &block.steps {
        let mut add = |uses: &[cohort_sql::ast::VariableUse]| {
            for used in uses {
                found.push(format!("{}={:?}", &sql[range.clone()][used.range.clone()], used.of));
            }
        };
        match step {
            Step::Sql(code) => add(&code.uses),
            Step::Set(items) => items.iter().for_each(|item| match item {
                BodyAssignment::Variable { value: Some(value), .. } => add(&value.uses),
                BodyAssignment::Variable { value: None, .. } => {}
                BodyAssignment::Other(code) => add(&code.uses),
            }),
            Step::Block(block) => match &block.steps[..] {
                [Step::Sql(code)] => add(&code.uses),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
    found
}

#[test]
fn variables_hide_columns() {
    let cases: &[(&str, &[&str])] = &[
        (
            "CREATE PROCEDURE p(a INT, b INT) BEGIN SELECT a, t.b, `B`, c FROM t WHERE a = b LIMIT a; END",
            &["a=Slot(0)", "`B`=Slot(1)", "a=Slot(0)", "b=Slot(1)", "a=Slot(0)"],
        ),
        (
            "CREATE PROCEDURE p(a INT) BEGIN DECLARE a INT DEFAULT a; BEGIN DECLARE a INT; SELECT a; END; SELECT a; END",
            &["a=Slot(2)", "a=Slot(1)"],
        ),
        (
            "CREATE PROCEDURE p(a INT) BEGIN INSERT INTO t (a) VALUES (a) ON DUPLICATE KEY UPDATE a = VALUES(a) + a; END",
            &["a=Slot(0)", "a=Slot(0)"],
        ),
        (
            "CREATE PROCEDURE p(r ROW(a INT), s INT) BEGIN SELECT r.a, s.a, t.r.a FROM t; END",
            &["r.a=Field(0, \"a\")"],
        ),
        (
            "CREATE PROCEDURE p(a INT) BEGIN SET sql_mode = a, @b = a, a = a + 1, a = DEFAULT, a = ON; END",
            &["a=Slot(0)", "a=Slot(0)", "a=Slot(0)"],
        ),
        (
            "CREATE TRIGGER t BEFORE UPDATE ON t FOR EACH ROW BEGIN SET NEW.a = OLD.a + new.b; SELECT NEW.c INTO @x; END",
            &["OLD.a=Old(\"a\")", "new.b=New(\"b\")", "NEW.c=New(\"c\")"],
        ),
        (
            "BEGIN NOT ATOMIC DECLARE a INT; CALL p(a, a + 1, @b); GET DIAGNOSTICS CONDITION a a = MYSQL_ERRNO; END",
            &["a=Slot(0)", "a=Slot(0)", "a=Slot(0)"],
        ),
        (
            "BEGIN NOT ATOMIC DECLARE a INT; SELECT (SELECT a FROM (SELECT a) AS d WHERE d.a = a); END",
            &["a=Slot(0)", "a=Slot(0)", "a=Slot(0)"],
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(uses_in(sql), *expected, "{sql}");
    }
}

#[test]
fn into_before_from_belongs_to_its_own_query() {
    for sql in [
        "SELECT a INTO @x FROM t WHERE EXISTS (SELECT 1 FROM u)",
        "SELECT a INTO @x FROM t WHERE a IN ((SELECT 1) UNION SELECT 2)",
        "SELECT a INTO @x FROM (SELECT 1 AS a) AS d",
    ] {
        let parsed = parse(sql.as_bytes(), &ParseOptions::default()).expect(sql);
        let Statement::Query(query) = parsed.statement else { panic!("{sql}") };
        assert_eq!(query.into, [Target::User("x".to_owned())], "{sql}");
    }
}

#[test]
fn deep_nesting_is_an_error_of_its_own() {
    let sql = format!("CREATE PROCEDURE p() {}{}", "BEGIN ".repeat(100_000), "END; ".repeat(100_000));
    let error = parse(sql.as_bytes(), &ParseOptions::default()).unwrap_err();
    assert_eq!(error.code.number(), 1436, "{}", error.message);
}

/// As in MariaDB, `;` may follow a text, but no statement is empty.
#[test]
fn a_semicolon_without_a_statement_is_an_error() {
    for (sql, first, is_last) in [
        ("select 1;; select 2", Some("select 1"), false),
        ("; select 2", Some("; select 2"), true),
        (" ;select 1; select 2", Some(";select 1; select 2"), true),
        ("select 1;; ;", Some("select 1"), true),
        ("select 1; /* x */ ;", Some("select 1"), true),
        (";; ", None, true),
        ("/* x */ ;", None, true),
    ] {
        let found = next_statement(sql.as_bytes(), ParseMode::default(), &mut |_| Ok(()));
        assert_eq!(found.clone().map(|(range, _)| &sql[range]), first, "{sql}");
        let Some((range, next)) = found else { continue };
        let rest = &sql.as_bytes()[next.min(sql.len())..];
        assert_eq!(has_statement(rest, ParseMode::default()), !is_last, "{sql}");
        let error = parse(sql[range].as_bytes(), &ParseOptions::default()).err().map(|error| error.code);
        assert_eq!(error, sql.trim().starts_with(';').then_some(ErrorCode::Parse), "{sql}");
    }
}
