//! `information_schema.ROUTINE_LINES`, and CHECK PROCEDURE, FUNCTION, TRIGGER.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::seen;
use crate::support::{Cohort, error_code, rows};

const MADE: &[&str] = &[
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "CREATE TABLE log (a INT)",
    "CREATE PROCEDURE rounds(n INT)\nBEGIN\n  DECLARE i INT DEFAULT 0;\n  WHILE i < n DO\n    SET i = i + 1;\n    \
     IF i = 2 THEN\n      INSERT INTO t VALUES (i, twice(i));\n    END IF;\n  END WHILE;\n  FOR k IN 1..3 DO\n    \
     SELECT k INTO @k;\n  END FOR;\nEND",
    "CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC\nBEGIN\n  SET x = x * 2;\n  RETURN x;\nEND",
    "CREATE TRIGGER t_insert AFTER INSERT ON t FOR EACH ROW\nBEGIN\n  INSERT INTO log VALUES (NEW.a);\nEND",
    "CREATE PROCEDURE fails()\nBEGIN\n  SET @a = 1;\n  SIGNAL SQLSTATE '45000';\nEND",
    "CREATE USER reader@localhost",
    "GRANT SELECT, EXECUTE ON test.* TO reader@localhost",
];

fn run(client: &mut Conn, sql: &str) {
    client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[test]
fn lines_are_counted() {
    let server = Cohort::new(&["--log-bin-trust-function-creators=1"]);
    let mut client = server.in_test();
    MADE.iter().for_each(|sql| run(&mut client, sql));
    let counted = "SELECT ROUTINE_NAME, ROUTINE_TYPE, LINE, EXECUTIONS, TRIM(SOURCE) FROM \
                   information_schema.ROUTINE_LINES ORDER BY 1, 3";
    run(&mut client, "CALL rounds(1)");
    assert_eq!(rows(&mut client, counted), "", "nothing is counted while the variable is OFF");
    run(&mut client, "SET GLOBAL cohort_routine_lines = ON");
    run(&mut client, "CALL rounds(4)");
    assert_eq!(error_code(client.query_drop("CALL fails()")), 1644);
    let expected = "fails\tPROCEDURE\t3\t1\tSET @a = 1;\n\
                    fails\tPROCEDURE\t4\t1\tSIGNAL SQLSTATE '45000';\n\
                    rounds\tPROCEDURE\t3\t1\tDECLARE i INT DEFAULT 0;\n\
                    rounds\tPROCEDURE\t4\t5\tWHILE i < n DO\n\
                    rounds\tPROCEDURE\t5\t4\tSET i = i + 1;\n\
                    rounds\tPROCEDURE\t6\t4\tIF i = 2 THEN\n\
                    rounds\tPROCEDURE\t7\t1\tINSERT INTO t VALUES (i, twice(i));\n\
                    rounds\tPROCEDURE\t10\t4\tFOR k IN 1..3 DO\n\
                    rounds\tPROCEDURE\t11\t3\tSELECT k INTO @k;\n\
                    twice\tFUNCTION\t4\t1\tSET x = x * 2;\n\
                    twice\tFUNCTION\t5\t1\tRETURN x;\n\
                    t_insert\tTRIGGER\t3\t1\tINSERT INTO log VALUES (NEW.a);\n";
    assert_eq!(rows(&mut client, counted), expected);
    // A statement that sleeps, and the program that calls it, have the time of the sleep.
    run(&mut client, "CREATE PROCEDURE sleeps()\nBEGIN\n  DO SLEEP(0.2);\n  SET @a = 1;\nEND");
    run(&mut client, "CREATE PROCEDURE around()\nCALL sleeps()");
    run(&mut client, "CALL around()");
    let slow = "SELECT GROUP_CONCAT(ROUTINE_NAME, ' ', LINE ORDER BY ROUTINE_NAME) FROM \
                information_schema.ROUTINE_LINES WHERE TIME_NS >= 200000000";
    assert_eq!(rows(&mut client, slow), "around 2,sleeps 3\n");
    // Functions and triggers that need no statements are counted for each row.
    run(&mut client, "SELECT SUM(twice(seq)) FROM seq_1_to_1000");
    let of = |name: &str| {
        format!("SELECT EXECUTIONS FROM information_schema.ROUTINE_LINES WHERE ROUTINE_NAME = '{name}'")
    };
    assert_eq!(rows(&mut client, &of("twice")), "1001\n1001\n");
    // Those who may not see the body do not see its lines.
    let mut reader =
        Conn::new(server.options().user(Some("reader")).db_name(Some("test"))).expect("connects");
    assert_eq!(rows(&mut reader, "SELECT COUNT(*) FROM information_schema.ROUTINE_LINES"), "0\n");
    run(&mut client, "GRANT TRIGGER ON test.t TO reader@localhost");
    assert_eq!(rows(&mut reader, "SELECT ROUTINE_NAME FROM information_schema.ROUTINE_LINES"), "t_insert\n");
    // Another body begins at zero, a dropped program has none.
    run(&mut client, "CREATE OR REPLACE FUNCTION twice(x INT) RETURNS INT RETURN x + x");
    assert_eq!(rows(&mut client, &of("twice")), "");
    run(&mut client, "DO twice(1)");
    assert_eq!(rows(&mut client, &of("twice")), "1\n");
    run(&mut client, "DROP PROCEDURE rounds");
    assert_eq!(rows(&mut client, &of("rounds")), "");
    run(&mut client, "SET GLOBAL cohort_routine_lines = OFF");
    assert_eq!(rows(&mut client, counted), "");
}

#[test]
fn check_reports_what_is_gone() {
    let server = Cohort::new(&["--log-bin-trust-function-creators=1"]);
    let mut client = server.in_test();
    MADE.iter().for_each(|sql| run(&mut client, sql));
    let ok =
        |name: &str| format!("(Program, Line, Level, Code, Message)\ntest.{name}\tNULL\tstatus\tNULL\tOK\n");
    for (kind, name) in [("PROCEDURE", "rounds"), ("FUNCTION", "twice"), ("TRIGGER", "t_insert")] {
        assert_eq!(seen(&mut client, &format!("CHECK {kind} {name}")), ok(name));
    }
    for sql in [
        "CREATE PROCEDURE names_much()\nBEGIN\n  DECLARE x INT;\n  DECLARE c CURSOR FOR SELECT b FROM t;\n  \
         SELECT a INTO x FROM log WHERE a = x;\n  SET x = (SELECT MAX(b) FROM t);\n  SET @x = (SELECT b FROM t LIMIT 1);\n  \
         IF EXISTS (SELECT 1 FROM gone) THEN\n    CALL rounds(1);\n  END IF;\n  OPEN c;\n  CALL fails();\n  \
         UPDATE t SET b = twice(1);\n  CREATE TEMPORARY TABLE own (a INT);\n  INSERT INTO own VALUES (1);\n  \
         RETURN_LABEL: LOOP LEAVE RETURN_LABEL; END LOOP;\nEND",
        "ALTER TABLE t DROP COLUMN b",
        "DROP TABLE log",
        "DROP FUNCTION twice",
        "CREATE OR REPLACE PROCEDURE fails(x INT) SELECT x",
    ] {
        run(&mut client, sql);
    }
    let expected = "(Program, Line, Level, Code, Message)\n\
        test.names_much\t5\tError\t1146\tTable 'test.log' doesn't exist\n\
        test.names_much\t6\tError\t1054\tUnknown column 'b' in 'SELECT'\n\
        test.names_much\t7\tError\t1054\tUnknown column 'b' in 'SELECT'\n\
        test.names_much\t8\tError\t1146\tTable 'test.gone' doesn't exist\n\
        test.names_much\t11\tError\t1054\tUnknown column 'b' in 'SELECT'\n\
        test.names_much\t12\tError\t1318\tIncorrect number of arguments for PROCEDURE test.fails; expected 1, got 0\n\
        test.names_much\t13\tError\t1054\tUnknown column 'b' in 'SET'\n\
        test.names_much\t15\tNote\t1146\tTable 'test.own' doesn't exist\n";
    assert_eq!(seen(&mut client, "CHECK PROCEDURE test.names_much"), expected);
    let gone = "(Program, Line, Level, Code, Message)\ntest.t_insert\t3\tError\t1146\tTable 'test.log' doesn't exist\n";
    assert_eq!(seen(&mut client, "CHECK TRIGGER t_insert"), gone);
    for sql in [
        "CREATE DEFINER = reader@localhost PROCEDURE of_reader()\nINSERT INTO t VALUES (1)",
        "CREATE DEFINER = gone@localhost PROCEDURE of_gone() SELECT 1",
        "CREATE PROCEDURE of_type() BEGIN DECLARE x TYPE OF t.b; SELECT x; END",
    ] {
        run(&mut client, sql);
    }
    // As its definer, and without doing anything.
    let denied = "(Program, Line, Level, Code, Message)\n\
        test.of_reader\t2\tError\t1142\tINSERT command denied to user 'reader'@'localhost' for table `test`.`t`\n";
    assert_eq!(seen(&mut client, "CHECK PROCEDURE of_reader"), denied);
    let whole = |name: &str, rest: &str| {
        format!("(Program, Line, Level, Code, Message)\ntest.{name}\tNULL\tError\t{rest}\n")
    };
    let no_definer =
        whole("of_gone", "1449\tThe user specified as a definer ('gone'@'localhost') does not exist");
    assert_eq!(seen(&mut client, "CHECK PROCEDURE of_gone"), no_definer);
    assert_eq!(
        seen(&mut client, "CHECK PROCEDURE of_type"),
        whole("of_type", "1054\tUnknown column 'b' in 't'")
    );
    assert_eq!(rows(&mut client, "SELECT CURRENT_USER(), COUNT(*) FROM t"), "root@localhost\t0\n");
    let mut reader =
        Conn::new(server.options().user(Some("reader")).db_name(Some("test"))).expect("connects");
    for (sql, code) in [("CHECK PROCEDURE nothing", 1305), ("CHECK TRIGGER nothing", 1360)] {
        assert_eq!(error_code(client.query_drop(sql)), code, "{sql}");
    }
    for (sql, code) in [("CHECK PROCEDURE fails", 1370), ("CHECK TRIGGER t_insert", 1142)] {
        assert_eq!(error_code(reader.query_drop(sql)), code, "{sql}");
    }
    run(&mut client, "GRANT ALTER ROUTINE ON test.* TO reader@localhost");
    assert_eq!(error_code(reader.query_drop("CHECK PROCEDURE fails")), 1370);
}
