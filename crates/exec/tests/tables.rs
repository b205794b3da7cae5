//! DDL concurrent with other sessions, prepared statements that run statements, and generated values, with
//! the errors of MariaDB 10.11.

mod world;

use world::Server;

/// Errors are MariaDB's. A table whose rows were not copied remains readable.
#[test]
fn a_snapshot_does_not_read_key_spaces_that_are_younger() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let (mut a, mut b) = (server.connect(), server.connect());
    for table in ["forced", "emptied", "indexed", "renamed", "wider"] {
        b.ok(&format!("CREATE TABLE {table} (a INT PRIMARY KEY, b INT)"));
        b.ok(&format!("INSERT INTO {table} VALUES (1, 1), (2, 2)"));
    }
    a.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    for statement in [
        "ALTER TABLE forced FORCE",
        "TRUNCATE emptied",
        "CREATE INDEX k ON indexed (b)",
        "RENAME TABLE renamed TO other",
        "ALTER TABLE wider ADD c INT DEFAULT 7",
        "CREATE TABLE made SELECT 1 AS one",
    ] {
        b.run(statement);
    }
    b.run("CREATE TABLE made (one INT)");
    let changed = "ERROR 1412 (HY000): Table definition has changed, please retry transaction";
    for refused in [
        "SELECT * FROM forced",
        "SELECT COUNT(*) FROM forced",
        "SELECT * FROM emptied",
        "SELECT * FROM made",
        "SELECT * FROM emptied FOR UPDATE",
        "UPDATE forced SET b = 5",
        "DELETE FROM forced WHERE a = 1",
        "SELECT b FROM indexed FORCE INDEX (k) WHERE b = 2",
        "SELECT * FROM other WHERE a IN (SELECT a FROM forced)",
        "SELECT * FROM other JOIN forced USING (a)",
        "INSERT INTO other SELECT * FROM emptied",
    ] {
        let answer = a.run(refused);
        assert!(answer.starts_with(changed), "{refused}: {answer}");
    }
    assert_eq!(a.run("SELECT a FROM indexed WHERE a > 0"), "a\n1\n2\n");
    assert_eq!(a.run("SELECT * FROM other"), "a | b\n1 | 1\n2 | 2\n");
    assert_eq!(a.run("SELECT * FROM wider"), "a | b | c\n1 | 1 | 7\n2 | 2 | 7\n");
    a.ok("COMMIT");
    assert_eq!(a.run("SELECT COUNT(*) FROM forced"), "COUNT(*)\n2\n");
    assert_eq!(a.run("SELECT b FROM indexed FORCE INDEX (k) WHERE b = 2"), "b\n2\n");
}

/// MariaDB's error. Each of these would run itself until the stack overflows.
#[test]
fn a_prepared_statement_runs_no_prepared_statement() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut a = server.connect();
    a.ok("SET @a = 'EXECUTE IMMEDIATE @a'");
    for statement in [
        "EXECUTE IMMEDIATE @a",
        "PREPARE s FROM 'SET STATEMENT max_statement_time = 1 FOR EXECUTE s'",
        "PREPARE s FROM 'SET STATEMENT max_statement_time = 1 FOR EXECUTE IMMEDIATE @a'",
        "PREPARE s FROM 'EXECUTE IMMEDIATE @a'",
        "EXECUTE IMMEDIATE 'PREPARE s FROM @a'",
        "SET STATEMENT max_statement_time = 1 FOR EXECUTE IMMEDIATE @a",
    ] {
        let answer = a.run(statement);
        let text = "ERROR 1295 (HY000): This command is not supported in the prepared statement protocol yet";
        assert!(answer.starts_with(text), "{statement}: {answer}");
    }
    assert_eq!(a.run("SET STATEMENT max_statement_time = 1 FOR EXECUTE IMMEDIATE 'SELECT 2'"), "2\n2\n");
    a.ok("PREPARE s FROM 'SELECT 1'");
    assert_eq!(a.run("SET STATEMENT max_statement_time = 1 FOR EXECUTE s"), "1\n1\n");
}

#[test]
fn a_counter_ends_at_the_largest_value() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut a = server.connect();
    let range = "ERROR 167 (22003): Out of range value for column 'id' at row ";
    let read = "ERROR 1467 (HY000): Failed to read auto-increment value from storage engine";
    for (ty, last, refused) in [
        ("TINYINT", "127", format!("{range}1\n")),
        ("INT", "2147483647", format!("{range}1\n")),
        ("BIGINT", "9223372036854775807", format!("{range}1\n")),
        ("BIGINT UNSIGNED", "18446744073709551615", format!("{read}\n")),
        ("BIGINT UNSIGNED", "18446744073709551614", format!("{read}\n")),
    ] {
        a.ok("DROP TABLE IF EXISTS t");
        a.ok(&format!("CREATE TABLE t (id {ty} AUTO_INCREMENT PRIMARY KEY)"));
        a.ok(&format!("INSERT INTO t VALUES ({last})"));
        for _ in 0..2 {
            assert!(a.run("INSERT INTO t VALUES (NULL)").starts_with(refused.trim_end()), "{ty} {last}");
        }
    }
    a.ok("CREATE TABLE f (id FLOAT AUTO_INCREMENT PRIMARY KEY)");
    a.ok("INSERT INTO f VALUES (3e38), (NULL)");
    assert_eq!(a.run("SELECT id = 1 FROM f WHERE id < 10"), "id = 1\n1\n");
}

#[test]
fn a_counter_goes_on_where_alter_table_says() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut a = server.connect();
    a.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)");
    a.ok("INSERT INTO t VALUES (NULL), (NULL), (10)");
    a.ok("DELETE FROM t WHERE id = 10");
    a.ok("ALTER TABLE t AUTO_INCREMENT = 5");
    a.ok("INSERT INTO t VALUES (NULL)");
    a.ok("ALTER TABLE t AUTO_INCREMENT = 100");
    a.ok("INSERT INTO t VALUES (NULL)");
    a.ok("ALTER TABLE t COMMENT = 'x', AUTO_INCREMENT = 2");
    a.ok("INSERT INTO t VALUES (NULL)");
    assert_eq!(a.run("SELECT id FROM t"), "id\n1\n2\n5\n100\n101\n");
}

#[test]
fn an_alter_that_is_refused_leaves_no_copy() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut a = server.connect();
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, b INT)");
    a.ok("CREATE TABLE other (id INT)");
    a.ok("INSERT INTO t VALUES (1, 1), (2, 2)");
    a.ok("INSERT INTO other VALUES (1)");
    let spaces = |server: &Server| server.db.engines[0].indexes().expect("reads").len();
    let before = spaces(&server);
    assert!(a.run("ALTER TABLE t FORCE, RENAME TO other").starts_with("ERROR 1050"));
    assert!(a.run("ALTER TABLE t FORCE, RENAME TO nosuch.t").starts_with("ERROR 1049"));
    assert_eq!(spaces(&server), before);
    a.ok("ALTER TABLE t FORCE, ADD KEY (b)");
    assert_eq!(spaces(&server), before + 1);
}

#[test]
fn a_new_column_computes_its_default_for_each_row() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut a = server.connect();
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    a.ok("INSERT INTO t VALUES (1), (2), (3)");
    a.ok("ALTER TABLE t ADD u VARCHAR(36) DEFAULT (UUID()), ADD c INT DEFAULT 5");
    assert_eq!(a.run("SELECT COUNT(DISTINCT u) AS n FROM t WHERE LENGTH(u) = 36"), "n\n3\n");
    assert_eq!(a.run("SELECT id, c FROM t"), "id | c\n1 | 5\n2 | 5\n3 | 5\n");
}

#[test]
fn keys_say_descending_and_ignored_keys_are_not_read() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut a = server.connect();
    a.ok(
        "CREATE TABLE t (a INT, b INT, KEY k1 (a DESC), UNIQUE k2 (a, b DESC) IGNORED, PRIMARY KEY (b DESC))",
    );
    let created = a.run("SHOW CREATE TABLE t");
    for part in ["PRIMARY KEY (`b` DESC)", "KEY `k1` (`a` DESC)", "KEY `k2` (`a`,`b` DESC) IGNORED"] {
        assert!(created.contains(part), "{part}: {created}");
    }
    a.ok("INSERT INTO t VALUES (1, 1), (1, 2), (2, 3)");
    assert_eq!(a.run("SELECT b FROM t ORDER BY b DESC LIMIT 1"), "b\n3\n");
    assert_eq!(a.run("SELECT b FROM t WHERE a = 1 ORDER BY a DESC, b"), "b\n1\n2\n");
    let listed = a.run(
        "SELECT INDEX_NAME, COLUMN_NAME, COLLATION, IGNORED FROM information_schema.STATISTICS \
         WHERE TABLE_NAME = 't' AND INDEX_NAME = 'k2'",
    );
    assert!(listed.ends_with("k2 | a | A | YES\nk2 | b | D | YES\n"), "{listed}");
    let refused = a.run("SELECT * FROM t FORCE INDEX (k2) WHERE a = 1");
    assert!(refused.starts_with("ERROR 1176 (42000): Key 'k2' doesn't exist in table 't'"), "{refused}");
    assert!(a.run("INSERT INTO t VALUES (1, 1)").starts_with("ERROR 1062"));
    a.ok("ALTER TABLE t ALTER INDEX k2 NOT IGNORED, ALTER KEY k1 IGNORED");
    a.ok("SELECT * FROM t FORCE INDEX (k2) WHERE a = 1");
    assert!(a.run("SELECT * FROM t FORCE INDEX (k1) WHERE a = 1").starts_with("ERROR 1176"));
    assert!(a.run("ALTER TABLE t ALTER INDEX `PRIMARY` IGNORED").starts_with("ERROR 4174"));
    assert!(a.run("ALTER TABLE t ALTER INDEX nosuch IGNORED").starts_with("ERROR 1176"));
}

/// Expected texts are MariaDB 10.11's.
#[test]
fn a_duplicate_is_named_as_mariadb_does() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut a = server.connect();
    a.ok("SET time_zone = '+03:00'");
    for (ty, value, shown) in [
        ("TIMESTAMP(2)", "'2024-01-02 03:04:05.67'", "2024-01-02 03:04:05.67"),
        ("DATETIME(3)", "'2024-01-01 00:00:00'", "2024-01-01 00:00:00.000"),
        ("TIME(1)", "'-10:11:12.3'", "-10:11:12.3"),
        ("BIT(12)", "b'101'", "\\x00\\x05"),
        ("BIT(12)", "b'000110001'", "\\x001"),
        ("BIT(16)", "'AB'", "AB"),
        ("CHAR(5)", "'ab '", "ab"),
        ("BINARY(5)", "'ab'", "ab"),
        ("VARBINARY(70)", "x'00ff41'", "\\x00\\xFFA"),
        ("VARBINARY(70)", "'a\\0\\0'", "a\\x00\\x00"),
        ("VARCHAR(9)", "'a\\0'", "a\\0000"),
        ("INT(5) ZEROFILL", "7", "00007"),
        ("DECIMAL(5,2)", "1.5", "1.50"),
        ("DOUBLE", "1e30", "1e30"),
        ("YEAR", "2024", "2024"),
        ("SET('x','y')", "'x,y'", "x,y"),
        ("CHAR(5) CHARACTER SET latin1", "'é'", "é"),
        (
            "VARCHAR(200)",
            "REPEAT('abcde', 30)",
            "abcdeabcdeabcdeabcdeabcdeabcdeabcdeabcdeabcdeabcdeabcdeabcdea...",
        ),
        ("VARCHAR(100)", "REPEAT('é', 60)", "éééééééééééééééééééééééééééééé..."),
    ] {
        a.ok("DROP TABLE IF EXISTS d");
        a.ok(&format!("CREATE TABLE d (v {ty}, n INT, UNIQUE u (v))"));
        a.ok(&format!("INSERT INTO d VALUES ({value}, 1)"));
        let text = format!("ERROR 1062 (23000): Duplicate entry '{shown}' for key 'u'");
        for statement in [
            format!("INSERT INTO d VALUES ({value}, 1)"),
            "ALTER TABLE d ADD UNIQUE u2 (n, v), ADD m INT FIRST".to_owned(),
        ] {
            let answer = a.run(&statement);
            let is_first = statement.starts_with("INSERT");
            assert!(!is_first || answer.starts_with(&text), "{ty}: {answer}");
        }
    }
    a.ok("CREATE TABLE e (v BIT(12), n INT, t VARCHAR(9), UNIQUE (v, n), UNIQUE (t(3)))");
    a.ok("INSERT INTO e VALUES (b'101', 1, 'abcdef')");
    assert!(a.run("INSERT INTO e VALUES (b'101', 1, 'x')").contains("'\\x00\\x05-1' for key 'v'"));
    assert!(a.run("INSERT INTO e VALUES (1, 1, 'abcxyz')").contains("'abc' for key 't'"));
    // ALTER TABLE reports it in the same way.
    a.ok("CREATE TABLE f (v TIMESTAMP)");
    a.ok("INSERT INTO f VALUES ('2024-01-02 03:04:05'), ('2024-01-02 03:04:05')");
    assert!(a.run("ALTER TABLE f ADD UNIQUE (v)").contains("'2024-01-02 03:04:05' for key 'v'"));
}

#[test]
fn optimize_rebuilds_the_table() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut a = server.connect();
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, b INT, KEY (b))");
    a.ok("INSERT INTO t VALUES (1, 1), (2, 2)");
    let spaces = |server: &Server| server.db.engines[0].indexes().expect("reads");
    let before = spaces(&server);
    let answer = a.run("OPTIMIZE TABLE t, nosuch");
    let listed = [
        "test.t | optimize | note | Table does not support optimize, doing recreate + analyze instead",
        "test.t | optimize | status | OK",
        "test.nosuch | optimize | Error | Table 'test.nosuch' doesn't exist",
        "test.nosuch | optimize | status | Operation failed",
    ];
    assert!(answer.ends_with(&format!("{}\n", listed.join("\n"))), "{answer}");
    let after = spaces(&server);
    assert_eq!(after.len(), before.len());
    assert!(before.iter().all(|space| *space < cohort_base::IndexId(16) || !after.contains(space)));
    assert_eq!(a.run("SELECT * FROM t"), "id | b\n1 | 1\n2 | 2\n");
    let logged = world::logged_queries(&server, &disk);
    assert_eq!(logged.last().map(String::as_str), Some("OPTIMIZE TABLE t, nosuch"));
    assert!(!logged.iter().any(|text| text.contains("ALTER")));
}

/// A window over volatile expressions must not be merged with any other, not even with an equal one.
#[test]
fn windows_over_what_changes_are_computed() {
    let mut server = Server::open(&world::disk()).expect("opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE w (id INT PRIMARY KEY, v INT)");
    client.ok("INSERT INTO w VALUES (1,1),(2,2),(3,3)");
    for by in ["RAND()", "@v", "1 NOT IN (1.5, @v)", "(1, @v) = (1, 2)", "1e308 ^ id"] {
        for over in ["ORDER BY", "PARTITION BY"] {
            let sql =
                format!("SELECT COUNT(*) OVER ({over} {by}) > 0 k, SUM(v) OVER ({over} {by}) > 0 s FROM w");
            let answer = client.run(&sql);
            assert!(answer.starts_with("k | s\n1 | 1\n1 | 1\n1 | 1\n"), "{sql}: {answer}");
        }
    }
}
