//! Statistics of statements: known loads give exact counts.

mod world;

use cohort_types::Value;
use world::{Client, Server};

fn server() -> Server {
    Server::open(&world::disk()).expect("an empty disk opens")
}

/// Returns rows of COHORT_STATEMENTS: digest text, level, and the counts of calls, errors, warnings, rows
/// sent, examined and affected.
fn counted(client: &mut Client, condition: &str) -> String {
    let counts = "CONCAT_WS(' ', CALLS, ERRORS, WARNINGS, ROWS_SENT, ROWS_EXAMINED, ROWS_AFFECTED)";
    let query = format!(
        "SELECT TRIM(DIGEST_TEXT), LEVEL, {counts} FROM information_schema.COHORT_STATEMENTS WHERE {condition} \
         ORDER BY 1, 2"
    );
    let rows = client.run(&query);
    rows.split_once('\n').map_or(String::new(), |(_, rows)| rows.to_owned())
}

const RESET: &str = "TRUNCATE performance_schema.events_statements_summary_by_digest";

#[test]
fn known_loads_give_exact_counts() {
    let mut server = server();
    let mut a = server.connect();
    for definition in [
        "CREATE TABLE t (pk INT PRIMARY KEY, a INT)",
        "CREATE TABLE log (a INT)",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        "CREATE PROCEDURE p() BEGIN INSERT INTO t VALUES (100, 1); SELECT a FROM t WHERE pk < 3; \
         DELETE FROM t WHERE pk = 100; END",
        "CREATE PROCEDURE handled() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @h = 1; \
         INSERT INTO t VALUES (1, 1); SELECT 5; END",
        "CREATE FUNCTION f(x INT) RETURNS INT READS SQL DATA BEGIN DECLARE n INT; SELECT COUNT(*) INTO n FROM log; \
         RETURN n + x; END",
        "CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (new.a)",
    ] {
        a.ok(definition);
    }
    // Statements, and the rows that they have: text, level, calls, errors, warnings, rows sent, examined and
    // affected. The client itself runs SHOW WARNINGS after a statement with warnings.
    let loads: [(&[&str], &str); 13] = [
        (
            &["SELECT a FROM t WHERE pk = 1", "select a from t where pk=2", "SELECT a FROM t WHERE pk = 9"],
            "SELECT `a` FROM `t` WHERE `pk` = ? | TOP | 3 0 0 2 2 0\n",
        ),
        (
            &["SELECT pk FROM t WHERE pk IN (1, 2)", "SELECT pk FROM t WHERE pk IN (1, 2, 3)"],
            "SELECT `pk` FROM `t` WHERE `pk` IN (...) | TOP | 2 0 0 5 5 0\n",
        ),
        (&["SELECT nosuch FROM t", "SELECT nosuch FROM t"], "SELECT `nosuch` FROM `t` | TOP | 2 2 0 0 0 0\n"),
        (
            &["SELEC 1", "SELECT (", "SELECT 1; SELEC 2"],
            "NULL | TOP | 3 3 0 0 0 0\nSELECT ? | TOP | 1 0 0 1 0 0\n",
        ),
        (
            &["SELECT CAST('x' AS INT), 1 / 0", "SHOW WARNINGS"],
            "SELECT CAST ( ? AS INTEGER ) , ? / ? | TOP | 1 0 2 1 0 0\nSHOW WARNINGS | TOP | 2 0 0 4 0 0\n",
        ),
        (
            &["INSERT INTO t VALUES (7, 7), (8, 8)", "DELETE FROM t WHERE pk > 6 RETURNING pk"],
            "DELETE FROM `t` WHERE `pk` > ? RETURNING `pk` | TOP | 1 0 0 2 4 2\n\
             INSERT INTO `t` VALUES (...) /* , ... */ | TOP | 1 0 0 0 0 2\n",
        ),
        (
            &["BEGIN; SELECT 1; COMMIT", "BEGIN", "COMMIT"],
            "BEGIN | TOP | 2 0 0 0 0 0\nCOMMIT | TOP | 2 0 0 0 0 0\nSELECT ? | TOP | 1 0 0 1 0 0\n",
        ),
        (
            &["CALL p()", "CALL p()"],
            "CALL `p` ( ) | TOP | 2 0 0 4 6 4\nDELETE FROM `t` WHERE `pk` = ? | NESTED | 2 0 0 0 2 2\n\
             INSERT INTO `t` VALUES (...) | NESTED | 2 0 0 0 0 2\n\
             SELECT `a` FROM `t` WHERE `pk` < ? | NESTED | 2 0 0 4 4 0\n",
        ),
        (
            &["CALL handled()"],
            "CALL `handled` ( ) | TOP | 1 0 0 1 0 0\n\
             INSERT INTO `t` VALUES (...) | NESTED | 1 1 0 0 0 0\nSELECT ? | NESTED | 1 0 0 1 0 0\n\
             SET @? = ? | NESTED | 1 0 0 0 0 0\n",
        ),
        (
            &["UPDATE t SET a = a + 1 WHERE pk <= 2"],
            "INSERT INTO `log` VALUES (?) | NESTED | 2 0 0 0 0 2\n\
             UPDATE `t` SET `a` = `a` + ? WHERE `pk` <= ? | TOP | 1 0 0 0 4 2\n",
        ),
        (
            &["SELECT f(1)"],
            "SELECT COUNT ( * ) INTO `n` FROM `log` | NESTED | 1 0 0 0 2 1\nSELECT `f` (?) | TOP | 1 0 0 1 2 0\n",
        ),
        (
            &[
                "PREPARE s FROM 'SELECT a FROM t WHERE pk = ?'",
                "SET @x = 1",
                "EXECUTE s USING @x",
                "EXECUTE s USING @x",
            ],
            "EXECUTE `s` USING @? | TOP | 2 0 0 2 2 0\nPREPARE `s` FROM ? | TOP | 1 0 0 0 0 0\n\
             SELECT `a` FROM `t` WHERE `pk` = ? | NESTED | 2 0 0 2 2 0\nSET @? = ? | TOP | 1 0 0 0 0 0\n",
        ),
        (
            &["EXECUTE IMMEDIATE 'SELECT 3'"],
            "EXECUTE IMMEDIATE ? | TOP | 1 0 0 1 0 0\nSELECT ? | NESTED | 1 0 0 1 0 0\n",
        ),
    ];
    let mut wrong = Vec::new();
    for (statements, expected) in loads {
        a.ok(RESET);
        for statement in statements {
            a.run(statement);
        }
        let found = counted(&mut a, "DIGEST_TEXT IS NULL OR DIGEST_TEXT NOT LIKE 'TRUNCATE%'");
        if found != expected {
            wrong.push(format!("{statements:?}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn prepared_statements_count_with_their_texts() {
    let mut server = server();
    let mut a = server.connect();
    a.ok("CREATE TABLE t (pk INT PRIMARY KEY, a INT)");
    a.ok("INSERT INTO t VALUES (1, 10), (2, 20)");
    a.ok(RESET);
    let id = a.session.prepare(b"SELECT a FROM t WHERE pk = ?").expect("prepares").id;
    for pk in [1, 2, 3] {
        a.execute(id, &[Value::Int(pk)]);
    }
    a.execute(id, &[]);
    a.execute(id + 7, &[]);
    assert!(a.session.prepare(b"SELECT a FROM nosuch WHERE pk = ?").is_err());
    a.ok("SELECT a FROM t WHERE pk = 1");
    let found = counted(&mut a, "DIGEST_TEXT LIKE 'SELECT%'");
    assert_eq!(found, "SELECT `a` FROM `t` WHERE `pk` = ? | TOP | 5 1 0 3 3 0\n");
    let commands = a.run(
        "SELECT EVENT_NAME, CALLS, ERRORS FROM information_schema.COHORT_STATEMENTS \
         WHERE EVENT_NAME LIKE 'statement/com/%' AND DIGEST IS NULL ORDER BY 1",
    );
    assert_eq!(
        commands.split_once('\n').map(|(_, rows)| rows),
        Some("statement/com/Execute | 1 | 1\nstatement/com/Prepare | 2 | 1\n")
    );
}

#[test]
fn sums_survive_sessions_and_schemas_have_rows_of_their_own() {
    let mut server = server();
    let mut a = server.connect();
    a.ok("CREATE DATABASE other");
    a.ok(RESET);
    for n in 0..3 {
        let mut b = server.connect();
        b.ok(&format!("SELECT {n}"));
        b.ok("USE other");
        b.ok(&format!("SELECT {n}"));
    }
    let rows = a.run(
        "SELECT SCHEMA_NAME, COUNT_STAR, DIGEST = MD5(DIGEST_TEXT), SUM_TIMER_WAIT >= MAX_TIMER_WAIT, \
         FIRST_SEEN <= LAST_SEEN FROM performance_schema.events_statements_summary_by_digest \
         WHERE DIGEST_TEXT = 'SELECT ? ' ORDER BY 1",
    );
    assert_eq!(
        rows.split_once('\n').map(|(_, rows)| rows),
        Some("other | 3 | 1 | 1 | 1\ntest | 3 | 1 | 1 | 1\n")
    );
    let kinds = a.run(
        "SELECT COUNT_STAR, SUM_ROWS_SENT FROM performance_schema.events_statements_summary_global_by_event_name \
         WHERE EVENT_NAME IN ('statement/sql/change_db', 'statement/sql/drop_db') ORDER BY 1",
    );
    assert_eq!(kinds.split_once('\n').map(|(_, rows)| rows), Some("0 | 0\n3 | 0\n"));
    // A plan whose row was reset gets another one.
    a.ok("SELECT 3");
    a.ok(RESET);
    a.ok("SELECT 4");
    assert_eq!(counted(&mut a, "DIGEST_TEXT = 'SELECT ? '"), "SELECT ? | TOP | 1 0 0 1 0 0\n");
}

#[test]
fn samples_hide_secrets_and_may_be_off() {
    let mut server = server();
    let mut a = server.connect();
    a.ok(RESET);
    a.ok("CREATE USER u@localhost IDENTIFIED BY 'hidden'");
    a.ok("SET GLOBAL statement_samples = OFF");
    a.ok("SELECT 'not sampled'");
    let samples = a.run(
        "SELECT SAMPLE_TEXT, SAMPLE_SEEN IS NULL, SAMPLE_US IS NULL FROM information_schema.COHORT_STATEMENTS \
         WHERE DIGEST_TEXT LIKE 'CREATE%' OR DIGEST_TEXT LIKE 'SELECT%' ORDER BY DIGEST_TEXT",
    );
    assert!(samples.contains("CREATE USER u@localhost IDENTIFIED BY '<secret>' | 0 | 0\n"), "{samples}");
    assert!(samples.ends_with("NULL | 1 | 1\n") && !samples.contains("hidden"), "{samples}");
}

#[test]
fn other_accounts_need_privileges() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost");
    let mut u = server.connect_as("u", "localhost");
    let table = "information_schema.COHORT_STATEMENTS";
    assert!(u.run(&format!("SELECT COUNT(*) FROM {table}")).contains("1227"));
    let by_digest = "performance_schema.events_statements_summary_by_digest";
    assert!(u.run(&format!("SELECT COUNT(*) FROM {by_digest}")).contains("1142"));
    assert!(u.run(RESET).contains("1142"));
    root.ok("GRANT PROCESS ON *.* TO u@localhost");
    root.ok("GRANT SELECT ON performance_schema.* TO u@localhost");
    let mut u = server.connect_as("u", "localhost");
    assert!(u.run(&format!("SELECT COUNT(*) > 0 FROM {table}")).ends_with("1\n"));
    assert!(u.run(&format!("SELECT COUNT(*) > 0 FROM {by_digest}")).ends_with("1\n"));
    assert!(u.run(RESET).contains("1142"));
}

#[test]
fn threads_count_exactly() {
    const THREADS: usize = 4;
    const STATEMENTS: usize = 500;
    let mut server = server();
    let mut a = server.connect();
    a.ok(RESET);
    let clients: Vec<Client> = (0..THREADS).map(|_| server.connect()).collect();
    std::thread::scope(|scope| {
        for (n, mut client) in clients.into_iter().enumerate() {
            scope.spawn(move || {
                for k in 0..STATEMENTS {
                    client.ok(&format!("SELECT {n}, {k} AS c{}", k % 5));
                    if k % 100 == 0 {
                        client.run("SELEC");
                    }
                }
            });
        }
        for _ in 0..20 {
            a.ok("SELECT COUNT(*) FROM information_schema.COHORT_STATEMENTS");
        }
    });
    let calls = a.run(
        "SELECT COUNT(*), SUM(CALLS), MIN(CALLS), SUM(ROWS_SENT) FROM information_schema.COHORT_STATEMENTS \
         WHERE DIGEST_TEXT LIKE 'SELECT ?, ... AS `c_` '",
    );
    let all = THREADS * STATEMENTS;
    assert!(calls.ends_with(&format!("5 | {all} | {} | {all}\n", all / 5)), "{calls}");
    assert_eq!(
        counted(&mut a, "DIGEST_TEXT IS NULL"),
        format!("NULL | TOP | {0} {0} 0 0 0 0\n", THREADS * 5)
    );
}

/// Returns the rows of a query without the head.
fn rows(client: &mut Client, query: &str) -> String {
    let rows = client.run(query);
    rows.split_once('\n').map_or(rows.clone(), |(_, rows)| rows.to_owned())
}

#[test]
fn userstat_counts_by_account_table_and_index() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE TABLE t (pk INT PRIMARY KEY, a INT, KEY a (a))");
    root.ok("CREATE TABLE heap (a INT)");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT ALL ON test.* TO u@localhost");
    root.ok("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
    root.ok("SELECT * FROM t");
    let of_tables = "SELECT TABLE_NAME, ROWS_READ, ROWS_CHANGED, ROWS_CHANGED_X_INDEXES \
                     FROM information_schema.TABLE_STATISTICS WHERE TABLE_SCHEMA = 'test' ORDER BY 1";
    let of_indexes =
        "SELECT TABLE_NAME, INDEX_NAME, ROWS_READ FROM information_schema.INDEX_STATISTICS ORDER BY 1, 2";
    assert_eq!(rows(&mut root, of_tables), "", "nothing is counted while userstat is off");
    root.ok("SET GLOBAL userstat = ON");
    let mut u = server.connect_as("u", "localhost");
    u.ok("USE test");
    // Statements, and the sums after them: of the table t, and of its indexes.
    for (statement, table, indexes) in [
        ("SELECT * FROM t WHERE pk = 1", "t | 1 | 0 | 0\n", "t | PRIMARY | 1\n"),
        ("SELECT * FROM t WHERE pk = 9", "t | 1 | 0 | 0\n", "t | PRIMARY | 1\n"),
        ("SELECT pk FROM t FORCE INDEX (a) WHERE a >= 20", "t | 3 | 0 | 0\n", "t | a | 2\nt | PRIMARY | 1\n"),
        ("SELECT * FROM t IGNORE INDEX (a)", "t | 6 | 0 | 0\n", "t | a | 2\nt | PRIMARY | 1\n"),
        ("INSERT INTO t VALUES (4, 40), (5, 50)", "t | 6 | 2 | 4\n", "t | a | 2\nt | PRIMARY | 1\n"),
        ("UPDATE t SET a = 41 WHERE pk = 4", "t | 7 | 3 | 6\n", "t | a | 2\nt | PRIMARY | 2\n"),
        ("DELETE FROM t WHERE pk = 5", "t | 8 | 4 | 8\n", "t | a | 2\nt | PRIMARY | 3\n"),
    ] {
        u.ok(statement);
        assert_eq!(rows(&mut root, of_tables), table, "{statement}");
        assert_eq!(rows(&mut root, of_indexes), indexes, "{statement}");
    }
    u.ok("INSERT INTO heap VALUES (1)");
    u.ok("SELECT * FROM heap");
    assert_eq!(rows(&mut u, of_tables), "heap | 1 | 1 | 1\nt | 8 | 4 | 8\n");
    assert_eq!(
        rows(&mut root, "SHOW TABLE_STATISTICS WHERE Table_name = 'heap'"),
        "test | heap | 1 | 1 | 1\n"
    );
    assert!(root.run("SHOW TABLE_STATISTICS LIKE 'heap'").contains("1064"));
    let io = "SELECT OBJECT_NAME, INDEX_NAME, COUNT_STAR, COUNT_FETCH, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE \
              FROM performance_schema.table_io_waits_summary_by_index_usage WHERE OBJECT_SCHEMA = 'test' ORDER BY 1, 2";
    assert_eq!(
        rows(&mut root, io),
        "heap | NULL | 2 | 1 | 1 | 0 | 0\nt | NULL | 7 | 3 | 2 | 1 | 1\nt | a | 2 | 2 | 0 | 0 | 0\n\
         t | PRIMARY | 3 | 3 | 0 | 0 | 0\n"
    );
    // The statements above, and of the account u also SET, USE and the SELECT from TABLE_STATISTICS.
    let of_user = "SELECT SELECT_COMMANDS, UPDATE_COMMANDS, OTHER_COMMANDS, ROWS_READ > 8, ROWS_INSERTED, ROWS_UPDATED, \
                   ROWS_DELETED, CONCURRENT_CONNECTIONS FROM information_schema.USER_STATISTICS WHERE USER = 'u'";
    assert_eq!(rows(&mut root, of_user), "6 | 4 | 2 | 1 | 3 | 1 | 1 | 1\n");
    let by_account = "SELECT EVENT_NAME, COUNT_STAR, SUM_ROWS_AFFECTED \
                      FROM performance_schema.events_statements_summary_by_account_by_event_name \
                      WHERE USER = 'u' AND HOST = 'localhost' AND EVENT_NAME IN ('statement/sql/delete', 'statement/sql/update') ORDER BY 1";
    let expected = "statement/sql/delete | 1 | 1\nstatement/sql/update | 1 | 1\n";
    assert_eq!(rows(&mut root, by_account), expected);
    // An account without PROCESS sees no accounts, and only tables that it may use.
    assert_eq!(rows(&mut u, "SELECT * FROM information_schema.USER_STATISTICS"), "");
    root.ok("CREATE USER other@localhost");
    let mut other = server.connect_as("other", "localhost");
    assert_eq!(rows(&mut other, of_tables), "");
    for (flush, query) in [
        ("FLUSH TABLE_STATISTICS", of_tables),
        ("FLUSH INDEX_STATISTICS", of_indexes),
        ("FLUSH USER_STATISTICS", by_account),
    ] {
        assert_ne!(rows(&mut root, query), "");
        root.ok(flush);
        assert_eq!(rows(&mut root, query), "", "{flush}");
    }
}

#[test]
fn metadata_locks_name_holders_that_never_waited() {
    let mut server = server();
    let (mut a, mut b) = (server.connect(), server.connect());
    a.ok("CREATE TABLE t (a INT)");
    let held = "SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE, LOCK_DURATION, LOCK_STATUS, \
                OWNER_THREAD_ID = CONNECTION_ID() FROM performance_schema.metadata_locks \
                WHERE OBJECT_TYPE <> 'SCHEMA' ORDER BY 1, 3, 4";
    // Statements of the first session, and the locks that the second one sees.
    for (statements, expected) in [
        (&["BEGIN", "SELECT * FROM t"][..], "TABLE | test | t | SHARED_READ | TRANSACTION | GRANTED | 0\n"),
        (&["INSERT INTO t VALUES (1)"], "TABLE | test | t | SHARED_WRITE | TRANSACTION | GRANTED | 0\n"),
        (&["COMMIT"], ""),
        (&["LOCK TABLES t READ"], "TABLE | test | t | SHARED_NO_WRITE | EXPLICIT | GRANTED | 0\n"),
        (
            &["UNLOCK TABLES", "FLUSH TABLES WITH READ LOCK"],
            "BACKUP | NULL | NULL | BACKUP_FTWRL2 | EXPLICIT | GRANTED | 0\n",
        ),
        (&["UNLOCK TABLES"], ""),
        (&["SELECT GET_LOCK('k', 0)"], "USER LEVEL LOCK | NULL | k | EXCLUSIVE | EXPLICIT | GRANTED | 0\n"),
        (&["SELECT RELEASE_LOCK('k')"], ""),
    ] {
        statements.iter().for_each(|statement| a.ok(statement));
        assert_eq!(rows(&mut b, held), expected, "{statements:?}");
    }
}

#[test]
fn words_functions_and_user_variables_are_listed() {
    let mut server = server();
    let mut a = server.connect();
    a.ok("SET @Number = 5, @text = _utf8mb4'x', @part = 1.5, @none = NULL");
    for (query, expected) in [
        (
            "SELECT GROUP_CONCAT(WORD ORDER BY WORD) FROM information_schema.KEYWORDS \
             WHERE WORD IN ('select', 'zerofill', 'nosuch', '<=>')",
            "<=>,SELECT,ZEROFILL\n",
        ),
        (
            "SELECT GROUP_CONCAT(`FUNCTION`) FROM information_schema.SQL_FUNCTIONS \
             WHERE `FUNCTION` IN ('sum', 'concat_ws', 'nosuch')",
            "CONCAT_WS,SUM\n",
        ),
        (
            "SELECT * FROM information_schema.USER_VARIABLES",
            "none | NULL | VARCHAR | binary\nnumber | 5 | INT | latin1\npart | 1.5 | DECIMAL | latin1\n\
             text | x | VARCHAR | utf8mb4\n",
        ),
        (
            "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.user_variables_by_thread \
             WHERE THREAD_ID = CONNECTION_ID() AND VARIABLE_NAME LIKE 'n%'",
            "none | NULL\nnumber | 5\n",
        ),
        (
            "SELECT COUNT(*) FROM performance_schema.global_variables g JOIN performance_schema.session_variables s \
             USING (VARIABLE_NAME) WHERE VARIABLE_NAME IN ('sql_mode', 'max_connections')",
            "2\n",
        ),
        (
            "SELECT VARIABLE_VALUE > 0 FROM performance_schema.status_by_thread \
             WHERE THREAD_ID = CONNECTION_ID() AND VARIABLE_NAME = 'Select_scan'",
            "1\n",
        ),
        (
            "SELECT CURRENT_NUMBER_OF_BYTES_USED > 0 FROM performance_schema.memory_summary_by_thread_by_event_name \
             WHERE THREAD_ID = CONNECTION_ID()",
            "1\n",
        ),
    ] {
        assert_eq!(rows(&mut a, query), expected, "{query}");
    }
    a.ok("FLUSH USER_VARIABLES");
    assert_eq!(rows(&mut a, "SELECT * FROM information_schema.USER_VARIABLES"), "");
}

/// Monitoring tools compute with these.
#[test]
fn status_variables_of_tools_exist() {
    let mut server = server();
    let mut a = server.connect();
    a.ok("CREATE TABLE t (a INT)");
    a.ok("INSERT INTO t VALUES (1), (2)");
    a.ok("SELECT * FROM t");
    for (name, expected) in [
        ("Key_read_requests", "0"),
        ("Key_blocks_unused", "0"),
        ("Qcache_lowmem_prunes", "0"),
        ("Table_locks_immediate", "0"),
        ("Table_open_cache_active_instances", "1"),
        ("Threads_cached", "0"),
        ("Handler_read_rnd", "0"),
        ("Innodb_ibuf_merges", "0"),
        ("Performance_schema_thread_instances_lost", "0"),
        ("Rpl_status", "AUTH_MASTER"),
        ("wsrep_ready", "OFF"),
        ("wsrep_cluster_status", "Disconnected"),
    ] {
        for scope in ["GLOBAL", "SESSION"] {
            let found = rows(&mut a, &format!("SHOW {scope} STATUS LIKE '{name}'"));
            assert_eq!(found, format!("{name} | {expected}\n"));
        }
    }
    let counted = |client: &mut Client, scope: &str, name: &str| -> u64 {
        let shown = rows(client, &format!("SHOW {scope} STATUS LIKE '{name}'"));
        shown.trim().rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
    };
    for name in ["Open_tables", "Opened_tables", "Rows_read", "Max_memory_used", "Binlog_cache_use"] {
        assert!(counted(&mut a, "GLOBAL", name) > 0, "{name}");
    }
    let mut b = server.connect();
    assert!(counted(&mut b, "SESSION", "Rows_read") < counted(&mut b, "GLOBAL", "Rows_read"));
    let memory = rows(&mut a, "SHOW ENGINE PERFORMANCE_SCHEMA STATUS");
    assert!(memory.contains("performance_schema | performance_schema.memory | "), "{memory}");
}

#[test]
fn waits_for_row_and_metadata_locks_are_counted() {
    let mut server = server();
    let [mut a, mut b] = [server.connect(), server.connect()];
    a.ok("CREATE TABLE t (pk INT PRIMARY KEY, a INT)");
    a.ok("INSERT INTO t VALUES (1, 10)");
    b.ok("SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1");
    a.ok("BEGIN");
    a.ok("UPDATE t SET a = 11 WHERE pk = 1");
    for waits in ["UPDATE t SET a = 12 WHERE pk = 1", "ALTER TABLE t ADD b INT"] {
        b.ok(RESET);
        let answer = b.run(waits);
        assert!(answer.contains("1205"), "{waits}: {answer}");
        let verb = waits.split(' ').next().expect("a verb");
        let counted = format!(
            "SELECT CALLS, ERRORS, LOCK_WAIT_US >= 900000 FROM \
             information_schema.COHORT_STATEMENTS WHERE DIGEST_TEXT LIKE '{verb}%'"
        );
        assert!(b.run(&counted).ends_with("1 | 1 | 1\n"), "{waits}: {}", b.run(&counted));
    }
    a.ok("ROLLBACK");
}

#[test]
fn last_statements_are_kept_while_their_consumers_are_on() {
    let mut server = server();
    let (mut root, mut a) = (server.connect(), server.connect());
    root.ok("CREATE TABLE t (a INT PRIMARY KEY)");
    root.ok("INSERT INTO t VALUES (1), (2)");
    let consumers = |is_on: &str| {
        format!(
            "UPDATE performance_schema.setup_consumers SET ENABLED = '{is_on}' WHERE NAME LIKE 'events_statements%'"
        )
    };
    let kept = |client: &mut Client, table: &str| {
        rows(
            client,
            &format!(
                "SELECT EVENT_ID, EVENT_NAME, SQL_TEXT, TRIM(DIGEST_TEXT), MYSQL_ERRNO, RETURNED_SQLSTATE, ROWS_SENT, \
                 ROWS_EXAMINED, ROWS_AFFECTED, TIMER_END = TIMER_START + TIMER_WAIT FROM performance_schema.{table} WHERE THREAD_ID = 2 \
                 ORDER BY EVENT_ID"
            ),
        )
    };
    a.ok("SELECT 1");
    for table in ["events_statements_current", "events_statements_history", "events_statements_history_long"]
    {
        assert_eq!(kept(&mut root, table), "", "{table}");
    }
    assert_eq!(root.run(&consumers("YES")), "OK 3\n");
    assert_eq!(root.run(&consumers("yes")), "OK\n");
    a.ok("SELECT a FROM t WHERE a = 2");
    a.run("SELECT nosuch FROM t");
    a.run("SELEC 1");
    a.ok("DELETE FROM t WHERE a = 1");
    let all = "1 | statement/sql/select | SELECT a FROM t WHERE a = 2 | SELECT `a` FROM `t` WHERE `a` = ? | 0 | NULL | 1 | 1 | 0 | 1\n\
        2 | statement/sql/select | SELECT nosuch FROM t | SELECT `nosuch` FROM `t` | 1054 | 42S22 | 0 | 0 | 0 | 1\n\
        3 | statement/sql/error | SELEC 1 | NULL | 1064 | 42000 | 0 | 0 | 0 | 1\n\
        4 | statement/sql/delete | DELETE FROM t WHERE a = 1 | DELETE FROM `t` WHERE `a` = ? | 0 | NULL | 0 | 1 | 1 | 1\n";
    assert_eq!(kept(&mut root, "events_statements_history"), all);
    assert_eq!(kept(&mut root, "events_statements_history_long"), all);
    let last = all.lines().last().expect("four");
    assert_eq!(kept(&mut root, "events_statements_current"), format!("{last}\n"));
    // The statement that reads is running.
    let running = root.run(
        "SELECT END_EVENT_ID, SQL_TEXT LIKE '%mine%', DIGEST FROM performance_schema.events_statements_current \
         WHERE THREAD_ID = 1 /* mine */",
    );
    assert!(running.ends_with("NULL | 1 | NULL\n"), "{running}");
    // Passwords are masked.
    a.ok("CREATE USER u@localhost IDENTIFIED BY 'hidden'");
    assert!(!kept(&mut root, "events_statements_history").contains("hidden"));
    // A session keeps ten statements, the server more.
    (0..30).for_each(|n| a.ok(&format!("DO {n}")));
    let count = |client: &mut Client, table: &str| kept(client, table).lines().count();
    assert_eq!(count(&mut root, "events_statements_history"), 10);
    assert_eq!(count(&mut root, "events_statements_history_long"), 35);
    root.ok("TRUNCATE performance_schema.events_statements_history");
    root.ok("TRUNCATE performance_schema.events_statements_history_long");
    assert_eq!(count(&mut root, "events_statements_history"), 0);
    assert_eq!(count(&mut root, "events_statements_history_long"), 0);
    assert_eq!(root.run(&consumers("NO")), "OK 3\n");
    a.ok("DO 1");
    assert_eq!(count(&mut root, "events_statements_history_long"), 0);
}

#[test]
fn what_is_always_measured_cannot_be_switched() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT SELECT ON performance_schema.* TO u@localhost");
    let mut u = server.connect_as("u", "localhost");
    for (sql, expected) in [
        ("UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES'", "OK"),
        ("UPDATE performance_schema.setup_actors SET ENABLED = 'YES' WHERE USER = '%'", "OK"),
        (
            "UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' WHERE NAME LIKE 'statement/%'",
            "ERROR 1235 ",
        ),
        (
            "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = 'statements_digest'",
            "ERROR 1235 ",
        ),
        (
            "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_waits_current'",
            "ERROR 1235 ",
        ),
        ("UPDATE performance_schema.setup_consumers SET ENABLED = 'maybe'", "ERROR 1265 "),
        ("UPDATE performance_schema.setup_consumers SET NAME = 'x'", "ERROR 1348 "),
        ("UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'nosuch'", "OK"),
        ("TRUNCATE performance_schema.threads", "ERROR 1683 "),
        ("TRUNCATE performance_schema.file_instances", "ERROR 1683 "),
        ("TRUNCATE performance_schema.replication_applier_status", "ERROR 1683 "),
        ("TRUNCATE performance_schema.setup_actors", "ERROR 1235 "),
        ("TRUNCATE performance_schema.accounts", "OK"),
        ("TRUNCATE performance_schema.file_summary_by_instance", "OK"),
        ("TRUNCATE performance_schema.nosuch", "ERROR 1146 "),
        ("TRUNCATE performance_schema.events_waits_summary_global_by_event_name", "OK"),
        ("TRUNCATE performance_schema.table_io_waits_summary_by_table", "OK"),
        ("TRUNCATE performance_schema.events_statements_summary_by_user_by_event_name", "OK"),
    ] {
        let answer = root.run(sql);
        assert!(answer.starts_with(expected), "{sql}: {answer}");
    }
    let refused = u.run("UPDATE performance_schema.setup_consumers SET ENABLED = 'YES'");
    assert!(refused.starts_with("ERROR 1142 "), "{refused}");
}

#[test]
fn histograms_add_up() {
    let mut server = server();
    let mut a = server.connect();
    a.ok(RESET);
    (0..20).for_each(|n| a.ok(&format!("SELECT {n}")));
    let sums = rows(
        &mut a,
        "SELECT SUM(COUNT_BUCKET), MAX(COUNT_BUCKET_AND_LOWER), MAX(BUCKET_QUANTILE), \
         SUM(BUCKET_TIMER_LOW > BUCKET_TIMER_HIGH) FROM performance_schema.events_statements_histogram_by_digest h \
         JOIN information_schema.COHORT_STATEMENTS USING (DIGEST) WHERE DIGEST_TEXT = 'SELECT ? '",
    );
    assert_eq!(sums, "20 | 20 | 1.000000 | 0\n");
    let all = rows(
        &mut a,
        "SELECT SUM(COUNT_BUCKET) >= 20 FROM performance_schema.events_statements_histogram_global",
    );
    assert_eq!(all, "1\n");
}

#[test]
fn a_sample_plan_is_kept() {
    let mut server = server();
    let mut a = server.connect();
    a.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY kb (b))");
    a.ok(RESET);
    a.ok("SELECT a FROM t WHERE b = 7");
    a.ok("UPDATE t SET b = 1 WHERE a = 3");
    a.ok("SELECT AES_ENCRYPT(b, 'key of it') FROM t");
    let plans = rows(
        &mut a,
        "SELECT DIGEST_TEXT, SAMPLE_PLAN FROM information_schema.COHORT_STATEMENTS \
         WHERE DIGEST_TEXT LIKE 'SELECT `a`%' OR DIGEST_TEXT LIKE 'UPDATE%' OR DIGEST_TEXT LIKE '%AES%' ORDER BY 1",
    );
    assert!(plans.contains("`.`b` = ?)") && plans.contains("-> Table scan on t"), "{plans}");
    assert!(plans.contains("-> Update t\n") && plans.contains("lookup on t using PRIMARY (a=?)"), "{plans}");
    assert!(!plans.contains("key of it"), "{plans}");
}

#[test]
fn a_traced_statement_shows_its_stages() {
    let mut server = server();
    let (mut a, mut other) = (server.connect(), server.connect());
    a.ok("CREATE TABLE t (a INT PRIMARY KEY)");
    let stages = "SELECT STAGE, STATEMENT FROM information_schema.COHORT_TRACE";
    assert_eq!(rows(&mut a, stages), "");
    a.ok("SET STATEMENT cohort_trace = 1 FOR INSERT INTO t VALUES (1)");
    let expected: Vec<&str> =
        "execute lock_wait prepare order_wait order_work queue write flush replica_wait archive_wait publish total"
            .split(' ')
            .collect();
    for _ in 0..2 {
        let seen = rows(&mut a, stages);
        let names: Vec<&str> = seen.lines().filter_map(|line| line.split(" | ").next()).collect();
        assert_eq!(names, expected);
        assert!(seen.contains("cohort_trace = 1 FOR INSERT INTO t"), "{seen}");
    }
    let sums = rows(
        &mut a,
        "SELECT SUM(IF(STAGE = 'total', DURATION_US, 0)) >= SUM(IF(STAGE = 'execute', DURATION_US, 0)), \
         SUM(IF(STAGE IN ('prepare', 'order_work', 'write', 'publish'), DURATION_US, 0)) <= \
         SUM(IF(STAGE = 'total', DURATION_US, 0)) FROM information_schema.COHORT_TRACE",
    );
    assert_eq!(sums, "1 | 1\n");
    assert_eq!(rows(&mut other, stages), "", "another session's trace");
    a.ok("SET cohort_trace = ON");
    a.ok("DELETE FROM t");
    let seen = rows(&mut a, stages);
    assert!(seen.contains("total | DELETE FROM t\n"), "{seen}");
}

#[test]
fn tables_of_innodb_need_process() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost");
    let mut u = server.connect_as("u", "localhost");
    let tables = rows(
        &mut root,
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'information_schema' \
         AND TABLE_NAME LIKE 'INNODB%'",
    );
    assert!(tables.lines().count() > 20, "{tables}");
    for table in tables.lines() {
        let answer = u.run(&format!("SELECT COUNT(*) FROM information_schema.{table}"));
        let is_refused = answer.starts_with("ERROR 1227 ");
        assert_eq!(is_refused, table != "INNODB_FT_DEFAULT_STOPWORD", "{table}: {answer}");
    }
}
