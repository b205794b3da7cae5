//! Tables beside DDL statements, prepared statements that run statements, and generated values, with the
//! errors of MariaDB 10.11.

mod world;

use world::Server;

/// Refusals are MariaDB's; a table whose rows stayed where they were is read on.
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

/// MariaDB's error; each of these ran itself until the stack was at its end.
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
