//! Transactions that sources log as statements, or as more than rows: temporary tables, sequences, XA
//! transactions in two parts.

mod support;

use mysql::prelude::Queryable;
use support::{Cohort, Maria, wait_until};

fn open_tables(replica: &Cohort) -> String {
    let row = replica.sql("SHOW GLOBAL STATUS LIKE 'Slave_open_temp_tables'");
    row.split('\t').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn temporary_tables_of_a_sources_connections_last_over_transactions_and_stops() {
    for (format, threads) in [("STATEMENT", 0), ("MIXED", 3)] {
        let mut source = Maria::source(&[&format!("--binlog-format={format}")]);
        let replica = Cohort::new(&[
            "--log-slave-updates",
            "--server-id=7",
            &format!("--slave-parallel-threads={threads}"),
        ]);
        replica.follow(source.port);
        source.sql("CREATE TABLE test.t (a INT PRIMARY KEY, b INT); CREATE TABLE test.own (a INT); CREATE TABLE test.kept (a INT)");
        let (mut one, mut other) = (source.client(), source.client());
        for (n, client) in [&mut one, &mut other].into_iter().enumerate() {
            client.query_drop("USE test").expect("there");
            client.query_drop("CREATE TEMPORARY TABLE own (a INT PRIMARY KEY, b INT)").expect("made");
            client.query_drop(format!("INSERT INTO own VALUES ({n}, {n}), ({n} + 10, 7)")).expect("filled");
        }
        replica.wait_for(&source.gtid_end());
        assert_eq!(open_tables(&replica), "2", "{format}");
        replica.sql("STOP SLAVE; START SLAVE");
        one.query_drop("INSERT INTO t SELECT a, b FROM own").expect("copied");
        other.query_drop("BEGIN").expect("begins");
        other.query_drop("INSERT INTO own VALUES (20, 20)").expect("filled");
        other.query_drop("UPDATE own SET b = b + 1").expect("changed");
        other.query_drop("INSERT INTO t SELECT a, b FROM own").expect("copied");
        other.query_drop("COMMIT").expect("committed");
        other.query_drop("ALTER TABLE own ADD c INT").expect("changed");
        replica.wait_for(&source.gtid_end());
        let rows = "SELECT * FROM test.t ORDER BY a";
        assert_eq!(replica.sql(rows), source.sql(rows), "{format}");
        // The public table of the same name has none of the rows.
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.own"), "0");
        // When a connection ends, its temporary tables are dropped.
        drop(one);
        wait_until("it is dropped", || open_tables(&replica) == "1");
        other.query_drop("DROP TEMPORARY TABLE own").expect("dropped");
        other.query_drop("CREATE TEMPORARY TABLE own SELECT 5 AS a").expect("made");
        other.query_drop("INSERT INTO test.kept SELECT a FROM own").expect("copied");
        replica.wait_for(&source.gtid_end());
        assert_eq!((open_tables(&replica), replica.sql("SELECT a FROM test.kept")), ("1".into(), "5".into()));
        // The values of these come with the event's group, and cannot be set within it.
        source.sql(
            "SET STATEMENT binlog_format = STATEMENT, gtid_domain_id = 0 FOR \
             INSERT INTO test.t VALUES (90, 90)",
        );
        if format == "MIXED" {
            source.sql("SET binlog_format = ROW; UPDATE mysql.proc SET comment = 'x' LIMIT 1");
        }
        // When the source stops, all of its connections end.
        source.kill_and_restart();
        source.sql("INSERT INTO test.t VALUES (100, 100)");
        replica.wait_for(&source.gtid_end());
        assert_eq!(open_tables(&replica), "0", "{format}");
        assert_eq!(replica.sql(rows), source.sql(rows), "{format}");
    }
}

/// Uses of sequences on a source, and the number that follows.
const SEQUENCES: &str = "CREATE SEQUENCE test.s START WITH 5 INCREMENT BY 3 CACHE 4; \
     CREATE TABLE test.t (a BIGINT PRIMARY KEY DEFAULT (NEXT VALUE FOR test.s), b INT); \
     INSERT INTO test.t (b) VALUES (1), (2), (3), (4), (5), (6); SELECT SETVAL(test.s, 200); \
     INSERT INTO test.t (b) VALUES (7); BEGIN; SELECT NEXTVAL(test.s); INSERT INTO test.t (b) VALUES (8); ROLLBACK; \
     CREATE SEQUENCE test.few MAXVALUE 3 CYCLE; SELECT NEXTVAL(test.few), NEXTVAL(test.few); \
     ALTER SEQUENCE test.s RESTART 1000; SELECT NEXTVAL(test.s)";

#[test]
fn sequences_continue_after_the_numbers_of_their_source() {
    let row = "SELECT next_not_cached_value, minimum_value, maximum_value, start_value, increment, cache_size, \
         cycle_option, cycle_count FROM test.";
    for threads in [0, 3] {
        let threads = format!("--slave-parallel-threads={threads}");
        let options = ["--log-slave-updates", "--server-id=7", &threads];
        let maria = Maria::source(&["--binlog-format=ROW"]);
        let replica = Cohort::new(&options);
        replica.follow(maria.port);
        maria.sql(SEQUENCES);
        replica.wait_for(&maria.gtid_end());
        // The same between two Cohort servers.
        let source = Cohort::new(&["--log-bin=binlog", "--server-id=8"]);
        let chained = Cohort::new(&options);
        chained.follow(source.port);
        source.sql(SEQUENCES);
        chained.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
        for name in ["s", "few"] {
            let row = format!("{row}{name}");
            assert_eq!(replica.sql(&row), maria.sql(&row), "{name}");
            assert_eq!(chained.sql(&row), source.sql(&row), "{name}");
        }
        let rows = "SELECT * FROM test.t ORDER BY a";
        assert_eq!(replica.sql(rows), maria.sql(rows));
        assert_eq!(chained.sql(rows), source.sql(rows));
        // After a promotion it must not return a number that the source may have returned.
        for promoted in [&replica, &chained] {
            promoted.sql("STOP SLAVE");
            let next: i64 = promoted.sql("SELECT NEXTVAL(test.s)").parse().expect("a number");
            assert!(next > 1000, "{next}");
            promoted.sql("INSERT INTO test.t (b) VALUES (9)");
        }
    }
}

#[test]
fn the_second_half_of_an_xa_transaction_that_is_not_here_stops_the_applier() {
    for threads in [0, 2] {
        let source = Maria::source(&["--binlog-format=ROW"]);
        let threads = format!("--slave-parallel-threads={threads}");
        let replica = Cohort::new(&["--log-slave-updates", "--server-id=7", &threads]);
        replica.follow(source.port);
        source.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
        replica.wait_for(&source.gtid_end());
        let mut client = source.client();
        for sql in ["XA START 'x'", "INSERT INTO test.t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'"] {
            client.query_drop(sql).expect("runs");
        }
        replica.wait_for(&source.gtid_end());
        // The prepared transaction is rolled back on the replica.
        replica.sql("SET sql_log_bin = 0; XA ROLLBACK 'x'");
        client.query_drop("XA COMMIT 'x'").expect("committed");
        source.sql("INSERT INTO test.t VALUES (2)");
        wait_until("it stops", || replica.replica_status().contains("Last_SQL_Errno: 1397"));
        replica.sql("STOP SLAVE; SET GLOBAL sql_slave_skip_counter = 1; START SLAVE");
        replica.wait_for(&source.gtid_end());
        assert_eq!(replica.sql("SELECT GROUP_CONCAT(a) FROM test.t"), "2");
    }
}

#[test]
fn rows_that_a_prepared_transaction_keeps_hold_up_no_later_one() {
    for threads in [0, 2] {
        let source = Maria::source(&["--binlog-format=ROW", "--transaction-isolation=READ-COMMITTED"]);
        let threads = format!("--slave-parallel-threads={threads}");
        let replica = Cohort::new(&["--server-id=7", "--innodb-lock-wait-timeout=1", &threads]);
        replica.follow(source.port);
        source.sql(
            "CREATE TABLE test.bare (a INT, b INT); INSERT INTO test.bare VALUES (1, 0), (2, 0), (3, 0); \
             CREATE TABLE test.keyed (a INT, b INT, KEY (b)); INSERT INTO test.keyed SELECT * FROM test.bare",
        );
        let mut client = source.client();
        for sql in [
            "XA START 'x'",
            "UPDATE test.bare SET b = 1 WHERE a = 1",
            "UPDATE test.keyed SET a = 4 WHERE a = 1",
            "XA END 'x'",
            "XA PREPARE 'x'",
        ] {
            client.query_drop(sql).expect("runs");
        }
        source.sql("UPDATE test.bare SET b = 2 WHERE a = 2; UPDATE test.bare SET b = 3 WHERE a = 3");
        source.sql("UPDATE test.keyed SET a = 5 WHERE a = 2");
        replica.wait_for(&source.gtid_end());
        client.query_drop("XA COMMIT 'x'").expect("committed");
        replica.wait_for(&source.gtid_end());
        for rows in ["SELECT * FROM test.bare ORDER BY a", "SELECT * FROM test.keyed ORDER BY a"] {
            assert_eq!(replica.sql(rows), source.sql(rows));
        }
    }
}

#[test]
fn a_source_that_does_not_encrypt_is_not_followed_where_that_was_asked_for() {
    let source = Maria::source(&[]);
    let replica = Cohort::new(&["--server-id=7"]);
    let change = "CHANGE MASTER TO master_host='127.0.0.1', master_user='root', master_use_gtid=slave_pos";
    replica.sql(&format!(
        "{change}, master_port={}, master_ssl=1, master_ssl_ca='/ca.pem', master_ssl_verify_server_cert=1; START SLAVE",
        source.port
    ));
    wait_until("it is reported", || replica.replica_status().contains("Last_IO_Errno: 2026"));
    let status = replica.replica_status();
    let lines = ["Master_SSL_Allowed: Yes", "Master_SSL_CA_File: /ca.pem", "Slave_IO_Running: Connecting"];
    for line in lines {
        assert!(status.contains(line), "{line}: {status}");
    }
    replica.sql("STOP SLAVE; CHANGE MASTER TO master_ssl=0; START SLAVE");
    source.sql("CREATE TABLE test.t (a INT)");
    replica.wait_for(&source.gtid_end());
}

/// Like `pt-table-checksum`: the replica computes the checksum of its own rows.
#[test]
fn a_change_that_is_logged_as_text_shows_a_replica_whose_rows_differ() {
    let source = Cohort::new(&["--server-id=5"]);
    let cohort = Cohort::new(&["--log-slave-updates", "--server-id=7", "--slave-parallel-threads=2"]);
    let maria = Maria::new(&["--log-bin=binlog"]);
    cohort.follow(source.port);
    maria.follow(source.port);
    source.sql(
        "CREATE DATABASE shop CHARACTER SET utf8mb4; USE shop; CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(30), d TIMESTAMP); \
         SET TIMESTAMP = 1000000000; INSERT INTO t (a) SELECT CONCAT('row ', seq) FROM seq_1_to_100; \
         CREATE TABLE sums (chunk INT PRIMARY KEY, rows_here INT, crc_here CHAR(40), crc_there CHAR(40), ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP)",
    );
    let end = || source.sql("SELECT @@gtid_binlog_pos");
    let wait = || {
        cohort.wait_for(&end());
        maria.wait_for(&end());
    };
    wait();
    let spoil = "SET sql_log_bin = 0; UPDATE shop.t SET a = 'other' WHERE id = 77";
    cohort.sql(spoil);
    maria.sql(spoil);
    let crc = "LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', `id`, `a`, UNIX_TIMESTAMP(`d`))) AS UNSIGNED)), 10, 16))";
    source.sql(&format!(
        "USE shop; SET time_zone = '+05:00', binlog_format = 'STATEMENT'; \
         REPLACE INTO `sums` (chunk, rows_here, crc_here) SELECT 1, COUNT(*), COALESCE({crc}, 0) FROM t WHERE ((`id` <= 50)); \
         REPLACE INTO `sums` (chunk, rows_here, crc_here) SELECT 2, COUNT(*), COALESCE({crc}, 0) FROM t WHERE ((`id` > 50)); \
         SET @one = (SELECT crc_here FROM sums WHERE chunk = 1), @two = (SELECT crc_here FROM sums WHERE chunk = 2); \
         EXECUTE IMMEDIATE CONCAT('UPDATE sums SET crc_there = ', QUOTE(@one), ' WHERE chunk = 1'); \
         EXECUTE IMMEDIATE CONCAT('UPDATE sums SET crc_there = ', QUOTE(@two), ' WHERE chunk = 2')"
    ));
    wait();
    let verdict = "SELECT chunk, rows_here, crc_here = crc_there FROM shop.sums ORDER BY chunk";
    assert_eq!(source.sql(verdict), "1\t50\t1\n2\t50\t1");
    for server in [cohort.sql(verdict), maria.sql(verdict)] {
        assert_eq!(server, "1\t50\t1\n2\t50\t0");
    }
    // A statement that changes nothing on the source may still change rows on a replica.
    let spoil = "SET sql_log_bin = 0; INSERT INTO shop.t VALUES (500, 'more', NOW())";
    cohort.sql(spoil);
    maria.sql(spoil);
    source.sql(
        "SET binlog_format = 'STATEMENT'; USE shop; DELETE FROM `t` WHERE `id` = '500' LIMIT 1; \
         REPLACE INTO `shop`.`t`(`id`, `a`, `d`) VALUES ('77', 'row 77', '2001-09-09 01:46:40') /*mended*/",
    );
    wait();
    let rows = "SELECT id, a FROM shop.t ORDER BY id";
    assert_eq!((cohort.sql(rows), maria.sql(rows)), (source.sql(rows), source.sql(rows)));
    let times = "SELECT DISTINCT UNIX_TIMESTAMP(ts) FROM shop.sums";
    assert_eq!((cohort.sql(times), maria.sql(times)), (source.sql(times), source.sql(times)));
    // Changes that the statement's text does not determine are logged as rows.
    source.sql(
        "USE shop; SET binlog_format = 'STATEMENT', @v = 'x'; UPDATE t SET a = @v WHERE id = 77; UPDATE t SET a = RAND() WHERE id = 1; \
         DELETE FROM t ORDER BY id DESC LIMIT 1; INSERT INTO t (a) SELECT a FROM t WHERE id < 5; \
         SET tx_isolation = 'READ-COMMITTED'; UPDATE t SET a = 'committed' WHERE id = 2; \
         SET tx_isolation = 'REPEATABLE-READ'; BEGIN; DELETE FROM t WHERE id = 3; INSERT INTO t (id, a) VALUES (3, 'again'); \
         UPDATE t SET a = CONCAT(a, '!') WHERE id BETWEEN 3 AND 6; ROLLBACK; BEGIN; UPDATE t SET a = 'kept' WHERE id = 4; \
         SAVEPOINT s; DELETE FROM t WHERE id = 5; ROLLBACK TO s; DELETE FROM t WHERE id = 6; COMMIT",
    );
    wait();
    let rows = "SELECT id, a, UNIX_TIMESTAMP(d) FROM shop.t ORDER BY id";
    assert_eq!((cohort.sql(rows), maria.sql(rows)), (source.sql(rows), source.sql(rows)));
}

#[test]
fn the_current_user_and_role_of_a_statement_are_those_of_the_source() {
    let source = Maria::source(&["--binlog-format=STATEMENT"]);
    let replica = Cohort::new(&["--log-slave-updates", "--server-id=7"]);
    let last = Maria::new(&["--server-id=9"]);
    replica.follow(source.port);
    last.follow(replica.port);
    source.sql(
        "CREATE DATABASE IF NOT EXISTS test; CREATE TABLE test.t (a INT); \
         CREATE USER boss@'127.0.0.1', boss@localhost, other@localhost; CREATE ROLE head, tail; \
         GRANT ALL ON *.* TO boss@'127.0.0.1' WITH GRANT OPTION; GRANT ALL ON *.* TO boss@localhost WITH GRANT OPTION; \
         GRANT head TO boss@localhost WITH ADMIN OPTION; GRANT tail TO boss@localhost WITH ADMIN OPTION; \
         GRANT ALL ON *.* TO head WITH GRANT OPTION",
    );
    let mut client =
        mysql::Conn::new(source.options().user(Some("boss")).pass(None::<String>)).expect("logged in");
    let own: String = client.query_first("SELECT CURRENT_USER()").expect("answers").expect("a row");
    if own == "boss@127.0.0.1" {
        source.sql("GRANT head TO boss@'127.0.0.1' WITH ADMIN OPTION; GRANT tail TO boss@'127.0.0.1' WITH ADMIN OPTION");
    }
    // MariaDB logs no invoker for GRANT role TO CURRENT_ROLE, so its own replicas stop there.
    for sql in [
        "SET ROLE head",
        "GRANT SELECT ON test.t TO CURRENT_ROLE",
        "CREATE DEFINER=CURRENT_ROLE VIEW test.of_role AS SELECT a FROM test.t",
        "GRANT INSERT ON test.t TO CURRENT_USER",
        "ALTER USER CURRENT_USER IDENTIFIED BY 'new'",
        "CREATE ROLE made WITH ADMIN CURRENT_USER",
        "CREATE ROLE of_head WITH ADMIN CURRENT_ROLE",
        "CREATE VIEW test.own AS SELECT a FROM test.t",
        "SET PASSWORD = PASSWORD('newer')",
        "DROP ROLE tail",
    ] {
        client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let end = source.gtid_end();
    replica.wait_for(&end);
    last.wait_for(&end);
    let (user, host) = own.split_once('@').expect("a host");
    let looks = format!(
        "SHOW GRANTS FOR '{user}'@'{host}'; SHOW GRANTS FOR head; SHOW GRANTS FOR made; SHOW GRANTS FOR of_head; \
         SELECT table_name, definer FROM information_schema.views WHERE table_schema = 'test' ORDER BY 1; \
         SELECT * FROM mysql.roles_mapping ORDER BY 1, 2, 3"
    );
    let expected = source.sql(&looks);
    assert_eq!(replica.sql(&looks), expected);
    assert_eq!(last.sql(&looks), expected);
}

/// Uses of stored programs on a source: functions that write, triggers of every change, procedures with
/// variables, handlers, transactions, dynamic SQL and DDL. `FILE` is a file with rows.
const PROGRAMS: &[&str] = &[
    "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(40), n DECIMAL(8,2), d \
     DATETIME(3)) CHARACTER SET utf8mb4",
    "CREATE TABLE test.log (what VARCHAR(80)) CHARACTER SET utf8mb4",
    "CREATE FUNCTION test.f(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log (what) VALUES \
     (CONCAT('f', x)); RETURN x * 2; END",
    "CREATE TRIGGER test.before_t BEFORE INSERT ON test.t FOR EACH ROW SET NEW.a = CONCAT(NEW.a, '+')",
    "CREATE TRIGGER test.after_t AFTER INSERT ON test.t FOR EACH ROW INSERT INTO log (what) VALUES \
     (CONCAT('in ', NEW.id, NEW.a))",
    "CREATE TRIGGER test.changed_t AFTER UPDATE ON test.t FOR EACH ROW INSERT INTO log (what) VALUES \
     (CONCAT(OLD.n, '>', NEW.n))",
    "CREATE TRIGGER test.gone_t AFTER DELETE ON test.t FOR EACH ROW INSERT INTO log (what) VALUES \
     (CONCAT('out ', OLD.a))",
    "CREATE PROCEDURE test.p(x INT, OUT y INT) MODIFIES SQL DATA BEGIN DECLARE v VARCHAR(20) \
     CHARACTER SET utf8mb4 DEFAULT CONCAT('pé''', x); DECLARE d DECIMAL(8,2) DEFAULT x / 3; DECLARE w \
     DATETIME(3) DEFAULT NOW(3); DECLARE b INT; INSERT INTO t (a, n, d) VALUES (v, d, w), (b, f(x), \
     '2024-02-29 01:02:03.456'); UPDATE t SET n = n + x, d = w WHERE a LIKE CONCAT(v, '%'); SET y = \
     LAST_INSERT_ID(); END",
    "CREATE PROCEDURE test.handled() BEGIN DECLARE CONTINUE HANDLER FOR 1062 INSERT INTO log (what) \
     VALUES ('twice'); INSERT INTO t (id, a) VALUES (900, 'first'); INSERT INTO t (id, a) VALUES \
     (900, 'second'); END",
    "CREATE PROCEDURE test.undone() BEGIN START TRANSACTION; INSERT INTO t (a) VALUES ('undone'); \
     SAVEPOINT s; INSERT INTO t (a) VALUES ('undone too'); ROLLBACK TO s; UPDATE t SET a = 'kept' \
     WHERE a = 'undone+'; COMMIT; START TRANSACTION; DELETE FROM t; ROLLBACK; END",
    "CREATE PROCEDURE test.dynamic(name VARCHAR(20)) BEGIN EXECUTE IMMEDIATE CONCAT('CREATE TABLE \
     test.', name, ' (a INT PRIMARY KEY)'); EXECUTE IMMEDIATE CONCAT('INSERT INTO test.', name, ' \
     VALUES (?), (?)') USING 1, 2; CREATE TEMPORARY TABLE own AS SELECT id FROM t; INSERT INTO t (a) \
     SELECT CONCAT('own', COUNT(*)) FROM own; DROP TEMPORARY TABLE own; END",
    "USE test",
    "CALL p(1, @y)",
    "CALL p(7, @y)",
    "INSERT INTO t (id, a) VALUES (@y + 100, 'y')",
    "CALL handled()",
    "CALL undone()",
    "CALL dynamic('made')",
    "SELECT f(5)",
    "DO f(6)",
    "SET @x = f(7)",
    "SELECT COUNT(*) FROM t WHERE f(id) > 0",
    "INSERT INTO t (a, n) SELECT a, f(id) FROM t ORDER BY id",
    "UPDATE t SET n = f(8) ORDER BY id LIMIT 2",
    "DELETE FROM t ORDER BY id LIMIT 1",
    "REPLACE INTO t (id, a) VALUES (900, 'again')",
    "INSERT INTO t (id, a) VALUES (900, 'x') ON DUPLICATE KEY UPDATE n = 5",
    "LOAD DATA INFILE 'FILE' INTO TABLE t (a, n)",
    "BEGIN NOT ATOMIC DECLARE i INT DEFAULT 0; WHILE i < 3 DO SET i = i + 1; INSERT INTO t (a, n) \
     VALUES (CONCAT('while', i), i); END WHILE; END",
    "SET sql_mode = 'ANSI_QUOTES'",
    "CREATE DEFINER = x@y PROCEDURE \"quoted\"() COMMENT 'c' SQL SECURITY INVOKER SELECT \"a\" FROM \
     \"t\"",
    "SET sql_mode = DEFAULT",
    "ALTER PROCEDURE quoted COMMENT 'changed'",
    "CREATE OR REPLACE FUNCTION f(x INT) RETURNS VARCHAR(9) CHARACTER SET latin1 DETERMINISTIC RETURN \
     'é'",
    "CREATE TRIGGER second_t BEFORE INSERT ON t FOR EACH ROW PRECEDES before_t SET NEW.n = 1",
    "DROP TRIGGER gone_t",
    "DROP TRIGGER IF EXISTS nothing",
    "CREATE EVENT e ON SCHEDULE EVERY 1 HOUR STARTS '2030-01-01' COMMENT 'e' DO DELETE FROM t",
    "ALTER EVENT e RENAME TO e2",
    "CREATE EVENT gone ON SCHEDULE EVERY 1 DAY DO SELECT 1",
    "DROP EVENT gone",
    "INSERT INTO t (a, n) VALUES ('last', 3)",
];

/// Queries whose results are those of the source.
const OF_PROGRAMS: [&str; 6] = [
    "SELECT * FROM test.t ORDER BY id",
    "SELECT * FROM test.log ORDER BY what",
    "SELECT * FROM test.made ORDER BY a",
    "SELECT name, type, param_list, returns, body, definer, security_type, sql_mode, comment, \
     character_set_client FROM mysql.proc WHERE db = 'test' ORDER BY name",
    "SELECT TRIGGER_NAME, ACTION_ORDER, ACTION_STATEMENT, SQL_MODE, DEFINER FROM information_schema.TRIGGERS \
     WHERE TRIGGER_SCHEMA = 'test' ORDER BY 1",
    "SELECT EVENT_NAME, EVENT_DEFINITION, STARTS, EVENT_COMMENT, DEFINER FROM information_schema.EVENTS",
];

/// A source's changes by stored programs are the same on its replicas, whichever way it logs them. Events
/// stay with the source.
#[test]
fn changes_by_stored_programs_arrive_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rows");
    std::fs::write(&file, "loaded\t4\nmore\t5.5\n").expect("written");
    let run = |mut client: mysql::Conn| {
        for sql in PROGRAMS {
            let sql = sql.replace("'FILE'", &format!("'{}'", file.display()));
            client.query_drop(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    };
    let logs = ["--log-bin=binlog", "--log-slave-updates", "--log-bin-trust-function-creators=1"];
    let own = |number: &'static str, threads: &'static str| {
        Cohort::new(&[&logs[..], &[number, threads, "--secure-file-priv="]].concat())
    };
    for format in ["STATEMENT", "MIXED", "ROW"] {
        let binlog_format = format!("--binlog-format={format}");
        let source = Maria::source(&["--log-bin-trust-function-creators=1", &binlog_format]);
        let replica = own(
            "--server-id=7",
            if format == "MIXED" { "--slave-parallel-threads=3" } else { "--slave-parallel-threads=0" },
        );
        let last = Maria::new(&["--server-id=9"]);
        replica.follow(source.port);
        last.follow(replica.port);
        run(source.client());
        replica.wait_for(&source.gtid_end());
        last.wait_for(&source.gtid_end());
        for query in OF_PROGRAMS {
            let expected = source.sql(query);
            assert!(!expected.is_empty(), "{query}");
            assert_eq!(replica.sql(query), expected, "{format}");
            assert_eq!(last.sql(query), expected, "{format}, and on");
        }
        assert_eq!(replica.sql("SELECT STATUS FROM information_schema.EVENTS"), "SLAVESIDE_DISABLED");
    }
    // From this server, to both kinds of replicas.
    let source = own("--server-id=8", "--slave-parallel-threads=0");
    let (replica, maria) =
        (own("--server-id=7", "--slave-parallel-threads=3"), Maria::new(&["--server-id=9"]));
    replica.follow(source.port);
    maria.follow(source.port);
    run(source.client());
    let end = source.sql("SELECT @@gtid_binlog_pos");
    replica.wait_for(&end);
    maria.wait_for(&end);
    for query in OF_PROGRAMS {
        let expected = source.sql(query);
        assert_eq!(replica.sql(query), expected);
        assert_eq!(maria.sql(query), expected);
    }
    for statuses in [
        replica.sql("SELECT STATUS FROM information_schema.EVENTS"),
        maria.sql("SELECT STATUS FROM information_schema.EVENTS"),
    ] {
        assert_eq!(statuses, "SLAVESIDE_DISABLED");
    }
}

/// The triggers that only the replicas have.
const OF_REPLICAS: [&str; 7] = [
    "SET sql_log_bin = 0",
    "DROP TRIGGER test.hi",
    // Not into a table that the same statement of the source writes: MariaDB loses such rows of triggers.
    "CREATE TRIGGER test.hi AFTER INSERT ON test.h FOR EACH ROW INSERT INTO test.more VALUES (NEW.id)",
    "CREATE TRIGGER test.tb BEFORE INSERT ON test.t FOR EACH ROW SET NEW.a = NEW.a * 10",
    "CREATE TRIGGER test.ta AFTER INSERT ON test.t FOR EACH ROW INSERT INTO test.log VALUES (CONCAT('in ', \
     NEW.id, ' ', NEW.a))",
    "CREATE TRIGGER test.tu AFTER UPDATE ON test.t FOR EACH ROW INSERT INTO test.log VALUES (CONCAT('changed ', \
     OLD.a, ' ', NEW.a))",
    "CREATE TRIGGER test.td BEFORE DELETE ON test.t FOR EACH ROW INSERT INTO test.log VALUES (CONCAT('out ', \
     OLD.id, ' ', OLD.a))",
];

/// `slave_run_triggers_for_rbr`: row events run triggers that the source does not have, or all of them, and
/// their changes go on to the next replica or not.
#[test]
fn row_events_run_triggers_as_the_setting_says() {
    let logs = ["--log-bin=binlog", "--log-slave-updates"];
    let source = Maria::source(&["--binlog-format=ROW"]);
    let own = Cohort::new(&[&logs[..], &["--server-id=7"]].concat());
    let theirs = Maria::source(&["--log-slave-updates", "--server-id=9"]);
    let (last, after_theirs) = (Cohort::new(&["--server-id=8"]), Cohort::new(&["--server-id=10"]));
    own.follow(source.port);
    theirs.follow(source.port);
    last.follow(own.port);
    after_theirs.follow(theirs.port);
    source.sql(
        "CREATE TABLE test.t (id INT PRIMARY KEY, a INT); CREATE TABLE test.h (id INT PRIMARY KEY); CREATE TABLE \
         test.log (what VARCHAR(40) CHARACTER SET latin1); CREATE TABLE test.more (id INT); CREATE TRIGGER test.hi AFTER INSERT ON test.h FOR EACH ROW INSERT INTO \
         test.log VALUES (CONCAT('h ', NEW.id))",
    );
    own.wait_for(&source.gtid_end());
    theirs.wait_for(&source.gtid_end());
    own.sql(&OF_REPLICAS.join("; "));
    theirs.sql(&OF_REPLICAS.join("; "));
    let mut passed_on = Vec::new();
    for (n, mode) in ["NO", "YES", "LOGGING", "ENFORCE"].into_iter().enumerate() {
        let set = format!("STOP SLAVE; SET GLOBAL slave_run_triggers_for_rbr = '{mode}'; START SLAVE");
        own.sql(&set);
        theirs.sql(&set);
        let (one, two) = (n * 10 + 1, n * 10 + 2);
        source.sql(&format!(
            "INSERT INTO test.t (id, a) VALUES ({one}, 1), ({two}, 2); UPDATE test.t SET a = a + 1 WHERE id = \
             {one}; DELETE FROM test.t WHERE id = {two}; INSERT INTO test.h VALUES ({n})"
        ));
        own.wait_for(&source.gtid_end());
        theirs.wait_for(&source.gtid_end());
        last.wait_for(&source.gtid_end());
        after_theirs.wait_for(&source.gtid_end());
        for query in [
            "SELECT * FROM test.t ORDER BY id",
            "SELECT * FROM test.log ORDER BY what",
            "SELECT * FROM test.more",
        ] {
            assert_eq!(own.sql(query), theirs.sql(query), "{mode}");
            assert_eq!(last.sql(query), after_theirs.sql(query), "{mode}, passed on");
        }
        passed_on.push(last.sql("SELECT COUNT(*) FROM test.log"));
    }
    // The source's own row for each mode, and those of the replicas' triggers in all modes but NO.
    assert_eq!(passed_on, ["1", "6", "11", "16"]);
    assert_eq!(last.sql("SELECT * FROM test.more"), "3");
}
