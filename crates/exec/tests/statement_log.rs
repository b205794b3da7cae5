//! The slow query log, the general log and their tables.

mod world;

use std::sync::Arc;

use cohort_exec::{LogFiles, StatementLog};
use cohort_types::Value;
use parking_lot::Mutex;
use world::Server;

/// Log files in memory.
#[derive(Default)]
struct Lines {
    general: Mutex<String>,
    slow: Mutex<String>,
    reopened: Mutex<Vec<StatementLog>>,
    errors: Mutex<usize>,
}

impl LogFiles for Lines {
    fn append(&self, log: StatementLog, lines: &[u8]) {
        let to = if log == StatementLog::General { &self.general } else { &self.slow };
        to.lock().push_str(std::str::from_utf8(lines).expect("text"));
    }

    fn reopen(&self, log: StatementLog) {
        self.reopened.lock().push(log);
    }

    fn reopen_errors(&self) -> std::io::Result<()> {
        *self.errors.lock() += 1;
        Ok(())
    }
}

fn logging_server() -> (Server, Arc<Lines>) {
    let server = Server::open(&world::disk()).expect("an empty disk opens");
    let lines = Arc::new(Lines::default());
    *server.db.log_files.write() = Some(lines.clone());
    (server, lines)
}

#[test]
fn the_general_log_contains_statements_without_secrets() {
    let (mut server, lines) = logging_server();
    let mut a = server.connect();
    a.ok("SELECT 'before'");
    a.ok("SET GLOBAL general_log = ON, GLOBAL log_output = 'FILE,TABLE'");
    a.ok("CREATE USER u@localhost IDENTIFIED BY 'secret1'");
    a.ok("ALTER USER u@localhost IDENTIFIED BY 'secret2'");
    a.ok("SET PASSWORD FOR u@localhost = PASSWORD('secret3')");
    a.ok("GRANT SELECT ON *.* TO u@localhost IDENTIFIED BY 'secret4'");
    a.run("CHANGE MASTER TO MASTER_PASSWORD = 'secret5'");
    a.ok("EXECUTE IMMEDIATE 'SET PASSWORD FOR u@localhost = PASSWORD(''secret6'')'");
    let id = a.session.prepare(b"SELECT ? + 1").expect("prepares").id;
    a.execute(id, &[Value::Int(41)]);
    a.run("SELECT nosuch");
    a.ok("SET sql_log_off = ON");
    a.ok("SELECT 'hidden'");
    a.ok("SET sql_log_off = OFF");
    drop(server.connect());
    let text = lines.general.lock().clone();
    for part in [
        "\t     1 Query\tCREATE USER u@localhost IDENTIFIED BY '<secret>'\n",
        "MASTER_PASSWORD = '<secret>'",
        "Prepare\tSELECT ? + 1\n",
        "Execute\tSELECT 41 + 1\n",
        "Query\tSELECT nosuch\n",
        "\t     2 Connect\troot@localhost on test using Socket\n",
        "\t     2 Quit\t\n",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    for part in ["secret1", "secret2", "secret3", "secret4", "secret5", "secret6", "before", "hidden"] {
        assert!(!text.contains(part), "{part}:\n{text}");
    }
    let rows = a.run("SELECT command_type, argument FROM mysql.general_log WHERE command_type = 'Execute'");
    let expected = "Execute | SET PASSWORD FOR u@localhost = PASSWORD('<secret>')\nExecute | SELECT 41 + 1\n";
    assert_eq!(rows, format!("command_type | argument\n{expected}"));
    a.ok("SET GLOBAL log_output = 'NONE'");
    let before = lines.general.lock().len();
    a.ok("SELECT 'nowhere'");
    assert_eq!(lines.general.lock().len(), before);
    a.ok("TRUNCATE TABLE mysql.general_log");
    assert_eq!(a.run("SELECT COUNT(*) FROM mysql.general_log"), "COUNT(*)\n0\n");
}

#[test]
fn the_general_log_contains_commands_and_refused_logins() {
    let (mut server, lines) = logging_server();
    let mut a = server.connect();
    a.ok("CREATE TABLE t (a INT)");
    a.ok("SET GLOBAL general_log = ON");
    a.session.init_db("test", &mut Nowhere);
    a.ok("PREPARE p FROM 'SELECT ? + 2'");
    a.ok("SET @x = 5");
    a.ok("EXECUTE p USING @x");
    let id = a.session.prepare(b"SELECT 1").expect("prepares").id;
    a.session.close_statement(id);
    let id = a.session.prepare(b"INSERT INTO test.t VALUES (?)").expect("prepares").id;
    let rows = [1, 2].map(|n| Ok(vec![cohort_protocol::Parameter::Value(Value::Int(n))]));
    a.session.execute_bulk(id, &mut rows.into_iter(), &mut Nowhere);
    a.session.field_list("t", "%").expect("it is there");
    let refusal = cohort_types::SqlError::access_denied("eve", "elsewhere", "YES");
    server.db.log_refused(cohort_base::ConnectionId(77), ("eve", "elsewhere"), &refusal);
    let text = lines.general.lock().clone();
    for part in [
        "Init DB\ttest\n",
        "Prepare\tSELECT ? + 2\n",
        "Query\tEXECUTE p USING @x\n",
        "Execute\tSELECT 5 + 2\n",
        "Close stmt\t\n",
        "Bulk_execute\tINSERT INTO test.t VALUES (?)\n",
        "Field List\tt %\n",
        "    77 Connect\tAccess denied for user 'eve'@'elsewhere' (using password: YES)\n",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

/// As in MariaDB while logging is enabled.
#[test]
fn tables_of_logs_can_be_emptied_and_nothing_else() {
    let (mut server, _) = logging_server();
    let mut a = server.connect();
    a.ok("ALTER TABLE mysql.slow_log ENGINE = Aria");
    a.ok("SET GLOBAL log_output = 'TABLE', GLOBAL slow_query_log = ON");
    for (statement, code) in [
        ("INSERT INTO mysql.general_log VALUES ()", "1556"),
        ("DELETE FROM mysql.general_log", "1556"),
        ("UPDATE mysql.slow_log SET db = 'x'", "1556"),
        ("LOCK TABLES mysql.general_log READ", "1556"),
        ("DROP TABLE mysql.general_log", "1580"),
        ("ALTER TABLE mysql.slow_log ENGINE = Aria", "1580"),
    ] {
        let answer = a.run(statement);
        assert!(answer.starts_with(&format!("ERROR {code}")), "{statement}: {answer}");
    }
    a.ok("TRUNCATE TABLE mysql.slow_log");
}

struct Nowhere;

impl cohort_protocol::ResultSink for Nowhere {
    fn start(&mut self, _: &[cohort_protocol::ColumnMeta], _: cohort_protocol::ResultHead) {}
    fn row(&mut self, _: &[Value]) {}
    fn finish(&mut self, _: cohort_protocol::StatusFlags, _: u16) {}
    fn ok(&mut self, _: &cohort_protocol::OkInfo<'_>) {}
    fn error(&mut self, error: &cohort_types::SqlError) {
        panic!("{error}");
    }
    fn is_dead(&self) -> bool {
        false
    }
}

#[test]
fn the_slow_log_contains_slow_statements_and_full_scans() {
    let (mut server, lines) = logging_server();
    let mut a = server.connect();
    a.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)");
    a.ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)");
    a.ok("SET GLOBAL slow_query_log = ON, GLOBAL log_output = 'FILE,TABLE'");
    a.ok("SET slow_query_log = ON");
    a.ok("SELECT * FROM t");
    assert_eq!(*lines.slow.lock(), "");
    a.ok("SET log_queries_not_using_indexes = ON");
    a.ok("SELECT * FROM t WHERE a = 2");
    assert_eq!(*lines.slow.lock(), "");
    a.ok("SELECT * FROM t WHERE b > 1");
    a.ok("UPDATE t SET b = b + 1");
    let text = lines.slow.lock().clone();
    for part in [
        "# User@Host: root[root] @ localhost []\n# Thread_id: 1  Schema: test  QC_hit: No\n",
        "Rows_sent: 2  Rows_examined: 3\n",
        "use `test`;\nSET timestamp=",
        ";\nSELECT * FROM t WHERE b > 1;\n",
        "# Rows_affected: 3  Bytes_sent: 0\n",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let rows = a.run("SELECT rows_sent, db, sql_text FROM mysql.slow_log LIMIT 1");
    assert_eq!(rows, "rows_sent | db | sql_text\n2 | test | SELECT * FROM t WHERE b > 1\n");
    let count = a.run("SHOW GLOBAL STATUS LIKE 'Slow_queries'");
    assert!(count.ends_with("Slow_queries | 3\n"), "the two, and the table of the log: {count}");
}

#[test]
fn flush_reopens_the_files() {
    let (mut server, lines) = logging_server();
    let mut a = server.connect();
    a.ok("FLUSH SLOW LOGS");
    a.ok("FLUSH GENERAL LOGS");
    a.ok("FLUSH LOGS");
    use StatementLog::{General, Slow};
    assert_eq!(*lines.reopened.lock(), [Slow, General, General, Slow]);
    a.ok("FLUSH ERROR LOGS");
    assert_eq!(*lines.errors.lock(), 2);
}

#[test]
fn the_event_scheduler_is_disabled_at_the_start_only() {
    let (mut server, _) = logging_server();
    let mut a = server.connect();
    assert_eq!(a.run("SELECT @@event_scheduler"), "@@event_scheduler\nOFF\n");
    a.ok("SET GLOBAL event_scheduler = ON");
    assert_eq!(a.run("SELECT @@event_scheduler"), "@@event_scheduler\nON\n");
    for disabled in ["DISABLED", "2"] {
        assert!(a.run(&format!("SET GLOBAL event_scheduler = {disabled}")).starts_with("ERROR 1231"));
    }
    a.ok("SET GLOBAL event_scheduler = 0");
}

#[test]
fn the_slow_log_contains_plans_and_warnings() {
    let (mut server, lines) = logging_server();
    let mut a = server.connect();
    a.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)");
    a.ok("INSERT INTO t SELECT seq, seq % 7 FROM seq_1_to_100");
    a.ok("SET GLOBAL slow_query_log = ON, slow_query_log = ON, log_queries_not_using_indexes = ON");
    a.ok("SELECT COUNT(*) FROM t WHERE b = 1");
    assert!(!lines.slow.lock().contains("# explain"));
    a.ok("SET log_slow_verbosity = 'query_plan,explain,warnings'");
    a.ok("SELECT b, COUNT(*) FROM t GROUP BY b ORDER BY 2");
    a.ok("SELECT * FROM t x, t y WHERE x.b < y.b");
    a.ok("SELECT * FROM t WHERE a = 5");
    a.ok("UPDATE t SET b = b + 1 WHERE b = 3 LIMIT 3");
    a.ok("SELECT CAST('abc' AS INT) FROM t LIMIT 1");
    let id = a.session.prepare(b"SELECT a FROM t WHERE b <= ?").expect("prepares").id;
    a.execute(id, &[Value::Int(4)]);
    let text = std::mem::take(&mut *lines.slow.lock());
    for part in [
        "# Tmp_tables: 1  Tmp_disk_tables: 0\n\
         # Full_scan: Yes  Full_join: No  Tmp_table: Yes  Tmp_table_on_disk: No\n\
         # Filesort: Yes  Filesort_on_disk: No  Merge_passes: 0  Priority_queue: No\n#\n# explain: id\t",
        "# explain: 1\tSIMPLE\tt\tALL\tNULL\tNULL\tNULL\tNULL\t100\t100.00\t100.00\t100.00\t",
        "# Warnings\n# Warning 1292 Truncated incorrect INTEGER value: 'abc'\n",
        "SELECT a FROM t WHERE b <= 4;",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains("a = 5;"), "{text}");
    a.ok("SET log_slow_verbosity = DEFAULT");
    a.ok("SELECT COUNT(*) FROM t");
    let text = std::mem::take(&mut *lines.slow.lock());
    assert!(!text.contains("# explain"), "{text}");
}

/// Statements that contain `gehe1m` as a password or key in some SQL mode. Not all of them can be run.
const SECRETS: &[(&str, &str)] = &[
    ("", r"CREATE USER s@localhost IDENTIFIED BY 'gehe1m'"),
    ("", r"ALTER USER u@localhost /* it's */ IDENTIFIED BY 'gehe1m'"),
    ("", r"ALTER USER u@localhost \ IDENTIFIED BY 'gehe1m'"),
    ("", r"ALTER USER u@localhost /*!50000 IDENTIFIED BY 'gehe1m' */"),
    ("", r"ALTER USER u@localhost /*! IDENTIFIED */ BY 'gehe1m'"),
    ("", r"ALTER USER u@localhost IDENTIFIED VIA ed25519 USING PASSWORD('gehe1m') OR unix_socket"),
    ("", r"ALTER USER u@localhost IDENTIFIED WITH mysql_native_password AS 'gehe1m'"),
    ("", r"ALTER USER o'brien@localhost IDENTIFIED BY 'gehe1m'"),
    ("", r"SET PASSWORD FOR u@localhost := 'gehe1m'"),
    ("", r"SET PASSWORD FOR u@localhost = PASSWORD(CONCAT('gehe1m', ''))"),
    ("", r"SET STATEMENT max_statement_time = 0 FOR SET PASSWORD FOR u@localhost = PASSWORD('gehe1m')"),
    ("", r"SET PASSWORD FOR u@localhost = 'cut gehe1m"),
    ("", r#"GRANT SELECT ON *.* TO u@localhost IDENTIFIED BY "gehe1m""#),
    ("ANSI_QUOTES", r#"GRANT SELECT ON *.* TO u@localhost IDENTIFIED BY "gehe1m""#),
    ("ANSI_QUOTES", r#"GRANT SELECT ON *.* TO "it's"@localhost IDENTIFIED BY 'gehe1m'"#),
    ("NO_BACKSLASH_ESCAPES", r"CREATE USER 'u\'@localhost IDENTIFIED BY 'gehe1m'"),
    ("NO_BACKSLASH_ESCAPES", r"CREATE USER v IDENTIFIED BY 'gehe1m\', w IDENTIFIED BY 'gehe1m'"),
    ("", r"CREATE USER 'a\'b'@localhost IDENTIFIED BY 'gehe1m'"),
    ("", r"CHANGE MASTER TO MASTER_HOST = 'h\'', MASTER_PASSWORD = /* ' */ 'gehe1m'"),
    ("", r"SELECT PASSWORD('gehe1m'), OLD_PASSWORD('gehe1m')"),
    // The slow log contains statements that read a whole table.
    ("", r"SELECT PASSWORD('gehe1m') FROM all_rows /* ALTER USER it's */"),
    ("", r"SELECT AES_ENCRYPT(a, 'gehe1m') FROM all_rows"),
    ("", r"SELECT AES_ENCRYPT('text', CONCAT('gehe', '1m', 'gehe1m'))"),
    ("", r"PREPARE p FROM 'SET PASSWORD FOR u@localhost = PASSWORD(''gehe1m'')'"),
    ("", r"PREPARE p FROM 'SELECT AES_ENCRYPT(''gehe1m'', ''gehe1m'')'"),
    ("", r"EXECUTE IMMEDIATE CONCAT('SET PASS', 'WORD FOR u@localhost = PASSWORD(''gehe1m'')')"),
    ("", r"SET @s = 'ALTER USER u@localhost IDENTIFIED BY ''gehe1m'''"),
    ("", r"SELECT 1 /* ALTER USER u@localhost IDENTIFIED BY 'gehe1m' */"),
    ("", r"SELECT 1; SET PASSWORD FOR u@localhost = PASSWORD('gehe1m'); SELECT 2"),
    (
        "",
        r"SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT '\'; SET PASSWORD FOR u@localhost = PASSWORD('gehe1m') -- '",
    ),
    ("", r"CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h', PASSWORD 'gehe1m')"),
];

#[test]
fn no_log_and_no_list_shows_a_secret() {
    let (mut server, lines) = logging_server();
    let mut a = server.connect();
    let mut root = server.connect();
    let process = Arc::clone(a.session.process());
    a.ok("CREATE USER u@localhost");
    a.ok("CREATE TABLE all_rows (a INT)");
    a.ok("INSERT INTO all_rows VALUES (1), (2)");
    a.ok("SET GLOBAL general_log = ON, GLOBAL slow_query_log = ON, GLOBAL log_output = 'FILE,TABLE'");
    a.ok("SET slow_query_log = ON, log_queries_not_using_indexes = ON, log_slow_verbosity = 'warnings'");
    for (mode, sql) in SECRETS {
        a.ok(&format!("SET sql_mode = '{mode}'"));
        let before = lines.general.lock().len();
        a.run(sql);
        assert!(lines.general.lock().len() > before, "{sql}");
        // As shown by a replica's thread, whose source may have had any SQL mode.
        process.show_text(sql.as_bytes());
        let info = process.snapshot(&|_| None).info.expect("it runs");
        assert!(!info.contains("gehe1m"), "{sql}: the list shows {info}");
        process.show_text(b"");
        if let Ok(prepared) = a.session.prepare(sql.as_bytes()) {
            a.execute(prepared.id, &[]);
        }
        for (name, log) in [("general", &lines.general), ("slow", &lines.slow)] {
            let text = log.lock().clone();
            assert!(!text.contains("gehe1m"), "{sql}: the {name} log has\n{text}");
        }
    }
    a.ok("SET sql_mode = ''");
    for table in ["general_log", "slow_log"] {
        let rows = root.run(&format!("SELECT * FROM mysql.{table}"));
        assert!(rows.contains("ALTER USER") && !rows.contains("gehe1m"), "{rows}");
    }
    // Other literals are logged.
    let plain = r#"SELECT 'it''s', "plain" /* it's */, 'gehe1m-not'"#;
    a.ok(plain);
    let text = lines.general.lock().clone();
    assert!(text.contains(plain), "{text}");
}
