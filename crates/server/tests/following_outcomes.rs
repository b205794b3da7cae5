//! Statements that fail on the source, or would have a different outcome on the replica; the positions shown;
//! and the waits of a replica that is itself a source.

mod support;

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use support::{Cohort, Maria, error_code, wait_until};

const LOGS: &str = "--log-slave-updates";
const STRICT: &str = "--gtid-strict-mode=1";
const ALL_READ: &str = "Slave has read all relay log; waiting for more updates";

fn end_of(server: &Cohort) -> String {
    server.sql("SELECT @@gtid_binlog_pos")
}

fn wait_for_error(replica: &Cohort, number: &str) -> String {
    wait_until("it goes on", || replica.replica_field("Slave_SQL_Running") == "No");
    let text = replica.replica_field("Last_SQL_Error");
    assert_eq!(replica.replica_field("Last_SQL_Errno"), number, "{text}");
    text
}

/// Lists that fail in part, with the error that reports the failure.
const PARTS: [(&str, u16); 11] = [
    ("DROP VIEW test.v, test.nov", 4092),
    ("CREATE USER u1, u2", 1396),
    ("CREATE USER u5, u6 IDENTIFIED VIA no_such_plugin, u7", 1524),
    ("ALTER USER u2, nox ACCOUNT LOCK", 1396),
    ("RENAME USER u2 TO u3, nox TO noy", 1396),
    ("DROP USER u4, nox", 1396),
    ("CREATE ROLE r1, r2", 1396),
    ("DROP ROLE r1, nor", 1396),
    ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM u1, nox", 1269),
    ("DROP TABLE test.a, test.nox", 1051),
    ("DROP TABLE test.b, test.p", 1451),
];

const BEFORE_PARTS: &str = "CREATE VIEW test.v AS SELECT 1; CREATE USER u1, u4; CREATE ROLE r1; \
     GRANT SELECT ON test.* TO u1; CREATE TABLE test.a (i INT); CREATE TABLE test.b (i INT); \
     CREATE TABLE test.p (i INT PRIMARY KEY); \
     CREATE TABLE test.c (i INT, FOREIGN KEY (i) REFERENCES test.p (i)); CREATE SEQUENCE test.s";

const LEFT: [&str; 4] = [
    "SHOW TABLES FROM test",
    "SELECT user, host FROM mysql.user WHERE user RLIKE '^[ur][0-9]' ORDER BY user",
    "SHOW CREATE USER u3",
    "SELECT grantee, privilege_type FROM information_schema.schema_privileges WHERE table_schema = 'test' \
     AND grantee RLIKE 'u[0-9]' ORDER BY 1, 2",
];

fn do_parts(run: &mut dyn FnMut(&str) -> mysql::Result<()>) {
    let others = [("DROP SEQUENCE test.s, test.nos", 4091)];
    for (sql, number) in PARTS.into_iter().chain(others) {
        assert_eq!(error_code(run(sql)), number, "{sql}");
    }
}

#[test]
fn partially_executed_lists_are_repeated_on_replicas() {
    let source = Cohort::new(&[STRICT]);
    let replica = Cohort::new(&[LOGS, STRICT, "--server-id=7"]);
    let parallel = Cohort::new(&[LOGS, STRICT, "--server-id=8", "--slave-parallel-threads=3"]);
    let maria = Maria::new(&["--log-bin=binlog", LOGS, STRICT, "--server-id=9"]);
    // A replica of a replica, which logs the error again.
    let chained = Cohort::new(&[STRICT, "--server-id=10"]);
    replica.follow(source.port);
    parallel.follow(source.port);
    maria.follow(source.port);
    chained.follow(replica.port);
    source.sql(BEFORE_PARTS);
    let mut client = source.client();
    do_parts(&mut |sql| client.query_drop(sql));
    source.sql("CREATE TABLE test.last (a INT)");
    let end = end_of(&source);
    for other in [&replica, &parallel, &chained] {
        other.wait_for(&end);
    }
    maria.wait_for(&end);
    for question in LEFT {
        let expected = source.sql(question);
        for other in [&replica, &parallel, &chained] {
            assert_eq!(other.sql(question), expected, "{question}");
        }
        assert_eq!(maria.sql(question), expected, "{question}");
    }
    assert_eq!(source.sql(LEFT[0]), "c\nlast\np");
    assert_eq!(end_of(&replica), end);
}

#[test]
fn a_mariadb_s_lists_that_fail_in_part_are_done_as_there() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, STRICT, "--server-id=7"]);
    replica.follow(source.port);
    source.sql(BEFORE_PARTS);
    let mut client = source.client();
    do_parts(&mut |sql| client.query_drop(sql));
    source.sql("CREATE TABLE test.last (a INT)");
    replica.wait_for(&source.gtid_end());
    for question in LEFT {
        assert_eq!(replica.sql(question), source.sql(question), "{question}");
    }
}

#[test]
fn a_statement_with_another_outcome_changes_nothing_and_can_be_skipped() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=3"] {
        let source = Cohort::new(&[STRICT]);
        let replica = Cohort::new(&[LOGS, STRICT, "--server-id=7", threads]);
        replica.follow(source.port);
        source.sql("CREATE VIEW test.v AS SELECT 1; CREATE VIEW test.w AS SELECT 1; CREATE TABLE test.t (a INT PRIMARY KEY)");
        replica.wait_for(&end_of(&source));
        // On this server, one part of the list fails.
        replica.sql("SET sql_log_bin = 0; DROP VIEW test.w");
        let before = replica.sql("SELECT @@gtid_slave_pos, @@gtid_binlog_pos");
        source.sql("DROP VIEW test.v, test.w; INSERT INTO test.t VALUES (1)");
        let text = wait_for_error(&replica, "4092");
        assert!(text.contains("test.w"), "{text}");
        let executed = replica.replica_field("Exec_Master_Log_Pos");
        assert_eq!(replica.sql("SELECT @@gtid_slave_pos, @@gtid_binlog_pos"), before);
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.v"), "1", "nothing of it is done");
        replica.sql("START SLAVE");
        wait_for_error(&replica, "4092");
        assert_eq!(replica.replica_field("Exec_Master_Log_Pos"), executed);
        replica.sql("SET GLOBAL sql_slave_skip_counter = 1; START SLAVE");
        replica.wait_for(&end_of(&source));
        assert_eq!(replica.sql("SELECT a FROM test.t"), "1", "what follows is not passed over");
        // On this server, the whole list would succeed.
        replica.sql("SET sql_log_bin = 0; CREATE VIEW test.nov AS SELECT 1");
        source.sql("CREATE VIEW test.x AS SELECT 1");
        let mut client = source.client();
        assert_eq!(error_code(client.query_drop("DROP VIEW test.x, test.nov")), 4092);
        source.sql("INSERT INTO test.t VALUES (2)");
        let text = wait_for_error(&replica, "0");
        assert!(text.starts_with("Query caused different errors on master and slave"), "{text}");
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.x, test.nov"), "1", "nothing of it is done");
        replica.sql("SET sql_log_bin = 0; DROP VIEW test.nov; START SLAVE");
        replica.wait_for(&end_of(&source));
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t"), "2");
        assert_eq!(end_of(&replica), end_of(&source));
    }
}

/// Makes commits wait before publication for a replica that does not exist.
const SHUT: &str = "SET GLOBAL rpl_semi_sync_master_timeout = 3600000, GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC, \
     GLOBAL rpl_semi_sync_master_wait_no_slave = 1, GLOBAL rpl_semi_sync_master_enabled = 1";
const OPEN: &str = "SET GLOBAL rpl_semi_sync_master_enabled = 0";

#[test]
fn states_and_positions_go_by_what_is_published() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=3"] {
        let source = Cohort::new(&[]);
        let replica = Cohort::new(&[LOGS, "--server-id=7", threads]);
        replica.follow(source.port);
        source.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
        replica.wait_for(&end_of(&source));
        wait_until("it is not idle", || replica.replica_field("Slave_SQL_State") == ALL_READ);
        replica.sql(SHUT);
        let before = replica.replica_field("Exec_Master_Log_Pos");
        let place = |server: &Cohort| {
            let status = server.sql("SHOW MASTER STATUS");
            let mut fields = status.split('\t');
            (fields.next().expect("a file").to_owned(), fields.next().expect("a position").to_owned())
        };
        source.sql("INSERT INTO test.t VALUES (1)");
        let (file, position) = place(&source);
        // The transaction is ordered, and waits.
        let end = end_of(&source);
        wait_until("it is not received", || replica.replica_field("Gtid_IO_Pos") == end);
        let wait = |seconds: u32| format!("SELECT MASTER_POS_WAIT('{file}', {position}, {seconds})");
        assert_eq!(replica.sql(&wait(1)), "-1");
        assert_eq!(replica.sql(&format!("SELECT MASTER_GTID_WAIT('{end}', 0.1)")), "-1");
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t"), "0");
        assert_eq!(replica.replica_field("Exec_Master_Log_Pos"), before);
        for field in ["Slave_SQL_State", "Slave_SQL_Running_State"] {
            assert_ne!(replica.replica_field(field), ALL_READ, "{field}");
        }
        assert!(!replica.sql("SHOW PROCESSLIST").contains(ALL_READ));
        let states = "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Slave has read%'";
        assert_eq!(replica.sql(states), "0");
        replica.sql(OPEN);
        assert_eq!(replica.sql(&format!("{} >= 0; SELECT COUNT(*) FROM test.t", wait(30))), "1\n1");
        assert_eq!(replica.replica_field("Exec_Master_Log_Pos"), position);
        wait_until("it is not idle", || replica.replica_field("Slave_SQL_State") == ALL_READ);
    }
}

#[test]
fn the_row_is_there_when_its_position_has_come() {
    let source = Cohort::new(&[]);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    replica.follow(source.port);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
    let (mut writer, mut reader) = (source.client(), replica.client());
    for n in 0..200 {
        writer.query_drop(format!("INSERT INTO test.t VALUES ({n})")).expect("written");
        let status: mysql::Row = writer.query_first("SHOW MASTER STATUS").expect("answers").expect("a row");
        let (file, position): (String, u64) = (status.get(0).expect("a file"), status.get(1).expect("one"));
        let waited: Option<i64> =
            reader.query_first(format!("SELECT MASTER_POS_WAIT('{file}', {position}, 30)")).expect("answers");
        assert!(waited.is_some_and(|events| events >= 0), "{waited:?}");
        let rows: Option<u32> =
            reader.query_first(format!("SELECT COUNT(*) FROM test.t WHERE a = {n}")).expect("answers");
        assert_eq!(rows, Some(1), "{n}");
    }
    let domain = "SELECT MASTER_GTID_WAIT('0-1-0'), MASTER_GTID_WAIT('77-1-0')";
    let began = Instant::now();
    assert_eq!(replica.sql(domain), "0\t0");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn definitions_that_wait_for_another_replica_end_with_stop_slave_and_kill() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=3"] {
        let source = Cohort::new(&[]);
        let replica = Cohort::new(&[LOGS, "--server-id=7", threads]);
        replica.follow(source.port);
        source.sql("CREATE TABLE test.t (a INT PRIMARY KEY); CREATE SEQUENCE test.s");
        replica.wait_for(&end_of(&source));
        let pages = || -> u64 {
            let status = replica.sql("SHOW STATUS LIKE 'Innodb_buffer_pool_pages_data'");
            status.split_whitespace().nth(1).and_then(|count| count.parse().ok()).expect("a number")
        };
        let before = pages();
        source.sql(
            "CREATE TABLE test.large (a INT PRIMARY KEY, b VARCHAR(1000)); \
             INSERT INTO test.large SELECT seq, REPEAT('x', 1000) FROM test.seq_1_to_5000",
        );
        replica.wait_for(&end_of(&source));
        assert!(pages() > before + 200, "{before}");
        replica.sql(SHUT);
        source.sql("DROP TABLE test.large; CREATE TABLE test.new (a INT); INSERT INTO test.new VALUES (1); ALTER TABLE test.t ADD b INT; INSERT INTO test.t VALUES (1, 1)");
        let waits = "SELECT COUNT(*) FROM information_schema.processlist \
             WHERE state = 'Waiting for semi-sync ACK from slave' AND user = 'system user'";
        wait_until("it does not wait", || replica.sql(waits) == "1");
        for _ in 0..2 {
            let began = Instant::now();
            replica.sql("STOP SLAVE");
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
            replica.sql("START SLAVE");
        }
        // A sequence number waits in the same way.
        let mut client = replica.client();
        let id = client.connection_id();
        client.query_drop("SET gtid_domain_id = 5").expect("set");
        let next = std::thread::spawn(move || client.query_first::<u64, _>("SELECT NEXTVAL(test.s)"));
        let state = format!("SELECT state FROM information_schema.processlist WHERE id = {id}");
        wait_until("it does not wait", || replica.sql(&state) == "Waiting for semi-sync ACK from slave");
        replica.sql(&format!("KILL QUERY {id}"));
        // It gets its number or is interrupted; in both cases it no longer waits.
        let _ = next.join().expect("no panic");
        replica.sql(OPEN);
        replica.wait_for(&end_of(&source));
        assert_eq!(replica.sql("SELECT * FROM test.t; SELECT * FROM test.new"), "1\t1\n1");
        // STOP SLAVE ended the wait of DROP TABLE.
        wait_until("the dropped table keeps its pages", || pages() < before + 100);
    }
}

#[test]
fn columns_that_alter_table_fills_are_the_same_on_replicas() {
    let source = Cohort::new(&[]);
    let replica = Cohort::new(&[LOGS, STRICT, "--server-id=7"]);
    let maria = Maria::new(&["--server-id=9"]);
    replica.follow(source.port);
    maria.follow(source.port);
    let mut tables = Vec::new();
    for (n, (increment, offset)) in [(5, 1), (5, 3), (10, 10), (2, 6), (1, 1)].into_iter().enumerate() {
        for (m, more) in ["", ", AUTO_INCREMENT = 20", ", ALGORITHM = COPY"].into_iter().enumerate() {
            let table = format!("test.t{n}{m}");
            source.sql(&format!(
                "CREATE TABLE {table} (a INT); INSERT INTO {table} VALUES (1), (2), (3); \
                 SET auto_increment_increment = {increment}, auto_increment_offset = {offset}; \
                 ALTER TABLE {table} ADD id INT AUTO_INCREMENT PRIMARY KEY{more}; UPDATE {table} SET a = a + 1"
            ));
            tables.push(table);
        }
    }
    // The locale affects the column's values, the setting about TIMESTAMP does not.
    source.sql(
        "SET lc_time_names = 'de_DE', explicit_defaults_for_timestamp = 0; CREATE TABLE test.days (a DATE, ts TIMESTAMP); \
         INSERT INTO test.days (a) VALUES ('2020-03-01'); \
         ALTER TABLE test.days ADD b VARCHAR(20) DEFAULT (DATE_FORMAT('2020-03-01', '%W %M'))",
    );
    let end = end_of(&source);
    replica.wait_for(&end);
    maria.wait_for(&end);
    for table in tables.iter().map(String::as_str).chain(["test.days"]) {
        let rows = format!("SELECT * FROM {table} ORDER BY 1");
        assert_eq!(replica.sql(&rows), source.sql(&rows), "{table}");
        assert_eq!(maria.sql(&rows), source.sql(&rows), "{table}");
    }
    assert!(source.sql("SELECT b FROM test.days").contains("Sonntag"));
    let column = "SELECT is_nullable, column_default FROM information_schema.columns WHERE table_name = 'days' AND column_name = 'ts'";
    assert_eq!(maria.sql(column), source.sql(column));
}

#[test]
fn a_default_of_a_sequence_commits_nothing_of_a_replica_s_own() {
    let source = Cohort::new(&[]);
    let replica = Cohort::new(&[LOGS, STRICT, "--server-id=7"]);
    replica.follow(source.port);
    source.sql("CREATE SEQUENCE test.s CACHE 2; CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (1), (2), (3)");
    let note = "ALTER TABLE test.t ADD b BIGINT DEFAULT (NEXTVAL(test.s)); SHOW WARNINGS";
    assert!(source.sql(note).contains("1592"), "the source says that the values differ");
    for quiet in ["ADD c INT DEFAULT (a + 1)", "ADD d INT DEFAULT 5"] {
        assert_eq!(source.sql(&format!("ALTER TABLE test.t {quiet}; SHOW WARNINGS")), "");
    }
    source.sql("UPDATE test.t SET b = 1000 WHERE a = 1");
    let end = end_of(&source);
    replica.wait_for(&end);
    assert_eq!(end_of(&replica), end, "all in the source's order, under its numbers");
    assert_eq!(replica.sql("SELECT COUNT(b), COUNT(DISTINCT b) FROM test.t"), "3\t3");
}

#[test]
fn a_prepared_branch_that_has_the_table_holds_a_statement_up_for_a_bounded_time() {
    let source = Maria::source(&["--binlog-format=ROW", "--innodb-lock-wait-timeout=1"]);
    let options = ["--innodb-lock-wait-timeout=1", "--slave-transaction-retries=1", "--server-id=7", LOGS];
    let replica = Cohort::new(&options);
    replica.follow(source.port);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
    let mut client = source.client();
    for sql in ["XA START 'x'", "INSERT INTO test.t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'"] {
        client.query_drop(sql).expect("runs");
    }
    // The statement fails for all of its tables on the source, and is logged.
    let optimize = "SET lock_wait_timeout = 1; OPTIMIZE TABLE test.t";
    assert!(source.sql(optimize).contains("Operation failed"));
    replica.wait_for(&source.gtid_end());
    client.query_drop("XA COMMIT 'x'").expect("runs");
    replica.wait_for(&source.gtid_end());
    // A prepared branch on the replica itself.
    let mut local = replica.client();
    for sql in ["XA START 'y'", "INSERT INTO test.t VALUES (2)", "XA END 'y'", "XA PREPARE 'y'"] {
        local.query_drop(sql).expect("runs");
    }
    source.sql("ALTER TABLE test.t ADD b INT");
    wait_for_error(&replica, "1205");
    local.query_drop("XA ROLLBACK 'y'").expect("runs");
    replica.sql("START SLAVE");
    replica.wait_for(&source.gtid_end());
    // On this server, a statement that failed for all of its tables is not logged.
    replica.sql("STOP SLAVE; RESET SLAVE ALL");
    let before = end_of(&replica);
    for sql in ["OPTIMIZE TABLE test.nox", "REPAIR TABLE test.nox, test.noy", "ANALYZE TABLE test.nox"] {
        assert!(replica.sql(sql).contains("Operation failed"), "{sql}");
    }
    assert_eq!(end_of(&replica), before);
    replica.sql("ANALYZE TABLE test.nox, test.t");
    assert_ne!(end_of(&replica), before);
}

#[test]
fn rows_that_the_replica_s_table_refuses_become_what_mariadb_makes_of_them() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let cohort = Cohort::new(&[LOGS, "--server-id=7", "--slave-exec-mode=IDEMPOTENT"]);
    let maria = Maria::new(&["--server-id=9", "--slave-exec-mode=IDEMPOTENT"]);
    cohort.follow(source.port);
    maria.follow(source.port);
    source.sql(
        "CREATE TABLE test.n (a INT PRIMARY KEY, b INT, c VARCHAR(9), d DATETIME, e INT) CHARACTER SET utf8mb4; \
         CREATE TABLE test.p (a INT PRIMARY KEY, b INT); INSERT INTO test.p VALUES (1, 1), (2, 2), (3, 3); \
         CREATE TABLE test.k (a INT PRIMARY KEY, b INT)",
    );
    let end = source.gtid_end();
    cohort.wait_for(&end);
    maria.wait_for(&end);
    let other = "SET sql_log_bin = 0; ALTER TABLE test.n MODIFY b INT NOT NULL, MODIFY c VARCHAR(9) NOT NULL, \
         MODIFY d DATETIME NOT NULL, MODIFY e INT NOT NULL DEFAULT 5; \
         CREATE TABLE test.c (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES test.p (a)); INSERT INTO test.c VALUES (2); \
         ALTER TABLE test.k ADD FOREIGN KEY (b) REFERENCES test.p (a)";
    cohort.sql(other);
    maria.sql(other);
    source.sql(
        "INSERT INTO test.n (a) VALUES (1), (2), (3); UPDATE test.n SET b = 7 WHERE a = 2; DELETE FROM test.n WHERE a = 3; \
         DELETE FROM test.p WHERE a < 3; UPDATE test.p SET a = 9 WHERE a = 3; INSERT INTO test.k VALUES (1, 77), (2, 9); \
         UPDATE test.k SET b = 78 WHERE a = 2; INSERT INTO test.k VALUES (3, 9)",
    );
    let end = source.gtid_end();
    cohort.wait_for(&end);
    maria.wait_for(&end);
    for table in ["n", "p", "k", "c"] {
        let rows = format!("SELECT * FROM test.{table} ORDER BY 1");
        assert_eq!(cohort.sql(&rows), maria.sql(&rows), "{table}");
    }
}

#[test]
fn a_state_of_gtids_is_set_on_an_empty_log_only_and_lasts() {
    let mut server = Cohort::new(&["--server-id=4"]);
    let state = "SELECT @@gtid_binlog_state, @@gtid_binlog_pos";
    let set = "SET GLOBAL gtid_binlog_state = '0-1-10,0-3-12,7-1-3'";
    server.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
    let error = |server: &Cohort, sql: &str| {
        let mut client = server.client();
        let failed = sql.split("; ").map(|sql| client.query_drop(sql)).find(Result::is_err);
        failed.map_or(0, error_code)
    };
    assert_eq!(error(&server, set), 1956);
    server.sql(&format!("RESET MASTER; {set}"));
    assert_eq!(server.sql(state), "0-1-10,0-3-12,7-1-3\t0-3-12,7-1-3");
    assert!(server.sql("SHOW BINLOG EVENTS LIMIT 3").contains("[0-1-10,0-3-12,7-1-3]"));
    server.kill_and_restart();
    assert_eq!(server.sql(state), "0-1-10,0-3-12,7-1-3\t0-3-12,7-1-3");
    server.sql("INSERT INTO test.t VALUES (1)");
    assert_eq!(server.sql("SELECT @@gtid_binlog_pos"), "0-4-13,7-1-3");
    assert_eq!(error(&server, set), 1956);
    server.sql("RESET MASTER");
    for (sql, number) in [
        ("SET GLOBAL gtid_binlog_state = 'x'", 1941),
        ("SET GLOBAL gtid_binlog_state = DEFAULT", 1230),
        ("BEGIN; SET GLOBAL gtid_binlog_state = '0-1-1'", 1179),
        ("SET SESSION gtid_binlog_state = '0-1-1'", 1229),
    ] {
        assert_eq!(error(&server, sql), number, "{sql}");
    }
    assert_eq!(server.sql("SELECT @@gtid_binlog_state"), "");
    // A new replica starts after that state.
    server.sql("SET GLOBAL gtid_binlog_state = '0-4-100'; INSERT INTO test.t VALUES (5)");
    server.restart();
    let replica = Cohort::new(&["--server-id=5"]);
    replica.sql("CREATE TABLE test.t (a INT PRIMARY KEY); SET GLOBAL gtid_slave_pos = '0-4-100'");
    replica.follow(server.port);
    replica.wait_for("0-4-101");
    assert_eq!(replica.sql("SELECT a FROM test.t"), "5");
}
