//! The audit log compared line by line with MariaDB's plugin `server_audit`; rotation, a full disk, settings,
//! and the effect on clients when the log cannot be written.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mysql::Conn;
use mysql::prelude::Queryable;
use support::{Cohort, Maria, error_code, rows, wait_until};

/// Runs statements, ignoring their outcome.
fn play(client: &mut Conn, script: &str) {
    for statement in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // Errors are logged, too.
        let _ = client.query_drop(statement);
    }
}

/// Returns the lines of a log without the parts that differ: time, host, connection and statement number.
/// Omits MariaDB's own tables.
fn events(log: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&fs::read(log).expect("a log")).into_owned();
    let event = |line: &str| {
        let fields: Vec<&str> = line.splitn(7, ',').collect();
        let [_, _, user, host, _, _, rest] = fields[..] else { panic!("{line}") };
        let of_server = ["READ,mysql,", "WRITE,mysql,"].iter().any(|own| rest.starts_with(own));
        (!of_server).then(|| format!("{user},{host},{rest}"))
    };
    text.lines().filter_map(event).collect()
}

fn same_events(script: &str) {
    let (cohort, maria) =
        (Cohort::new(&[]), Maria::new(&["--plugin-load-add=server_audit", "--query-cache-type=0"]));
    let logs = [cohort.datadir.join("audit.log"), maria.datadir.join("audit.log")];
    for mut client in [cohort.client(), maria.client()] {
        play(&mut client, "CREATE OR REPLACE DATABASE test\nUSE test");
        play(
            &mut client,
            "SET GLOBAL server_audit_file_path = 'audit.log'\nSET GLOBAL server_audit_logging = ON",
        );
        play(&mut client, script);
        play(&mut client, "SET GLOBAL server_audit_logging = OFF");
    }
    let [ours, theirs] = logs.map(|log| events(&log));
    let first = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    let around = first.unwrap_or(ours.len().min(theirs.len()));
    let shown = |lines: &[String]| lines[around.min(lines.len())..].join("\n");
    assert!(ours == theirs, "from line {around}\n{}\n---\n{}", shown(&ours), shown(&theirs));
    assert!(ours.len() > script.lines().count() / 2, "{ours:?}");
}

#[test]
fn statements_and_tables_are_audited_as_by_the_plugin() {
    same_events(
        r#"
        CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20))
        INSERT INTO t VALUES (1, 'x\'y\\z'), (2, "q")
        SELECT * FROM t, (SELECT 1) x
        SELECT b FROM t WHERE a = 1
        INSERT INTO t SELECT 5, 'n' FROM t LIMIT 1
        UPDATE t SET b = 'u' WHERE a = 1
        DELETE FROM t WHERE a = 7
        REPLACE INTO t VALUES (1, 'r')
        RENAME TABLE t TO t2
        CREATE TABLE t3 LIKE t2
        CREATE TABLE t4 SELECT * FROM t2
        CREATE VIEW v AS SELECT a FROM t2
        SELECT * FROM v
        INSERT INTO v VALUES (77)
        DROP VIEW v
        TRUNCATE TABLE t3
        DROP TABLE t3, t4
        SELECT * FROM nosuch
        selec 1
        SET @x = 1
        PREPARE p FROM 'SELECT a FROM t2 WHERE a = ?'
        EXECUTE p USING @x
        DEALLOCATE PREPARE p
        EXECUTE IMMEDIATE 'SELECT 4'
        /* hello */ SELECT 1
        SELECT /*!50000 2 */
        BEGIN
        UPDATE t2 SET b = 'z' WHERE a = 2
        COMMIT
        LOCK TABLES t2 WRITE
        UNLOCK TABLES
        SHOW TABLES
        SET STATEMENT max_statement_time = 10 FOR SELECT 3
        CREATE TEMPORARY TABLE tt (a INT)
        INSERT INTO tt VALUES (1)
        SELECT * FROM tt
        DROP TABLE tt
        SELECT t2.a FROM t2 JOIN t2 x USING (a) WHERE EXISTS (SELECT * FROM t2 y)
        DO 1
        CREATE SEQUENCE sq
        SELECT NEXTVAL(sq)
        DROP SEQUENCE sq
        USE nosuchdb
        CHECK TABLE t2
        ANALYZE TABLE t2
        SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'test'
        SELECT 1 INTO @x
        EXPLAIN SELECT * FROM t2
        DESCRIBE t2
        HANDLER t2 OPEN AS h
        HANDLER h READ FIRST
        HANDLER h CLOSE
        ALTER TABLE t2 RENAME TO t5
        CREATE TABLE IF NOT EXISTS t5 (a INT)
        DROP TABLE IF EXISTS nosuch
        CREATE TABLE bad (a INT, a INT)
        SET @a = (SELECT MAX(a) FROM t5)
        INSERT INTO t5 SELECT a + 100, b FROM t5
        DELETE q FROM t5 q JOIN t5 r ON q.a = r.a WHERE q.a = 5
        SELECT * FROM t5 FOR UPDATE
        CREATE OR REPLACE TABLE t5 (b INT)
        RENAME TABLE t5 TO t6, t6 TO t7
        KILL 99999999
        CREATE DATABASE another
        DROP DATABASE another
        CREATE TABLE parent (a INT PRIMARY KEY, b INT)
        CREATE TABLE goes (a INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (a) ON DELETE CASCADE)
        CREATE TABLE changes (a INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (a) ON UPDATE SET NULL)
        CREATE TABLE goes_too (a INT, FOREIGN KEY (a) REFERENCES goes (a) ON DELETE CASCADE)
        INSERT INTO parent VALUES (1, 1), (2, 2)
        DELETE FROM parent WHERE a = 1
        UPDATE parent SET a = 5 WHERE a = 2
        UPDATE parent SET b = 5 WHERE a = 2
        INSERT INTO parent VALUES (5, 9) ON DUPLICATE KEY UPDATE b = 11
        REPLACE INTO parent VALUES (5, 5)
        INSERT INTO goes VALUES (7, 5)
        DROP TABLE goes_too, goes, changes, parent
        "#,
    );
}

#[test]
fn passwords_are_masked_as_the_plugin_masks_them() {
    same_events(
        "
        CREATE USER u1@localhost IDENTIFIED BY 'secret'
        GRANT SELECT ON *.* TO u1@localhost IDENTIFIED BY 'secret2'
        ALTER USER u1@localhost IDENTIFIED BY 'secret3'
        SET PASSWORD FOR u1@localhost = PASSWORD('secret4')
        CREATE USER u2@localhost IDENTIFIED VIA mysql_native_password USING PASSWORD('secret5')
        CREATE OR REPLACE USER u2@localhost IDENTIFIED BY 'secret6'
        CREATE USER u3 IDENTIFIED BY PASSWORD '*AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        CHANGE MASTER TO master_host='x', master_user='y', master_password='secret7'
        DROP USER u1@localhost, u2@localhost, u3
        ",
    );
}

#[test]
fn long_statements_are_cut_as_the_plugin_cuts_them() {
    same_events(
        "
        SET GLOBAL server_audit_query_log_limit = 20
        SELECT 'abcdefghijklmnopqrstuvwxyz'
        SELECT '''''''''''''''''''''''''''''
        SELECT 'äöüäöüäöüäöü'
        SET GLOBAL server_audit_query_log_limit = 0
        SELECT 'abcdefghijklmnopqrstuvwxyz', 'x\ty'
        ",
    );
}

#[test]
fn kinds_and_users_are_chosen_as_with_the_plugin() {
    same_events(
        "
        CREATE TABLE t (a INT)
        SET GLOBAL server_audit_events = 'query_ddl'
        SELECT 2
        CREATE OR REPLACE TABLE t (a INT)
        CREATE ROLE r1
        DROP ROLE r1
        CREATE DATABASE other
        DROP DATABASE other
        CREATE USER u1
        ALTER TABLE t ADD b INT
        SET GLOBAL server_audit_events = 'QUERY_DML_NO_SELECT'
        INSERT INTO t VALUES (1, 1)
        SELECT 7
        DO 2
        REPLACE INTO t VALUES (1, 2)
        DELETE FROM t
        TRUNCATE t
        SET GLOBAL server_audit_events = 'QUERY_DML'
        (((SELECT 11)))
        WITH x AS (SELECT 1) SELECT * FROM x
        SET STATEMENT max_statement_time = 1 FOR SELECT 8
        SET STATEMENT max_statement_time = 1 FOR SET @y = 8
        SHOW TABLES
        BEGIN
        COMMIT
        SET GLOBAL server_audit_events = 'QUERY_DCL'
        GRANT SELECT ON *.* TO u1
        CREATE USER u2
        RENAME USER u2 TO u3
        DROP USER u3
        REVOKE SELECT ON *.* FROM nosuch
        SET ROLE NONE
        SET GLOBAL server_audit_events = 'TABLE'
        SELECT * FROM t
        SELECT 1
        SET GLOBAL server_audit_events = ''
        SET GLOBAL server_audit_excl_users = 'x, root'
        SELECT 12
        SET GLOBAL server_audit_incl_users = 'root'
        SHOW WARNINGS
        SELECT 13
        SET GLOBAL server_audit_incl_users = 'missing'
        SELECT 14
        SET GLOBAL server_audit_incl_users = ''
        SELECT 15
        SET GLOBAL server_audit_events = 'nonsense'
        SET GLOBAL server_audit_output_type = NULL
        SET server_audit_logging = ON
        ",
    );
}

/// The lines about connections, compared with what their clients did.
#[test]
fn connects_failures_and_disconnects_are_audited() {
    let server = Cohort::new(&[
        "--server-audit-logging=ON",
        "--server-audit-events=CONNECT",
        "--plugin-load-add=server_audit",
    ]);
    let log = server.datadir.join("server_audit.log");
    let mut root = server.client();
    root.query_drop("CREATE USER guest IDENTIFIED BY 'guest'").expect("made");
    let login = |user: &str, password: &str, schema: &str| {
        let options = server.options().user(Some(user)).pass(Some(password)).db_name(Some(schema));
        Conn::new(options)
    };
    drop(login("guest", "guest", "information_schema").expect("in"));
    assert_eq!(error_code(login("guest", "wrong", "information_schema")), 1045);
    assert_eq!(error_code(login("missing\nx", "x", "information_schema")), 1045);
    assert_eq!(error_code(login("root", "", "nosuch")), 1049);
    let mut other = login("guest", "guest", "information_schema").expect("in");
    other
        .change_user(
            mysql::ChangeUserOpts::default()
                .with_user(Some("root".into()))
                .with_pass(None)
                .with_db_name(Some("mysql".into())),
        )
        .expect("in");
    drop(other);
    let is_logged =
        |wanted: &str| fs::read_to_string(&log).expect("a log").lines().any(|line| line.ends_with(wanted));
    for wanted in [
        ",CONNECT,information_schema,,0",
        ",FAILED_CONNECT,,,1045",
        ",FAILED_CONNECT,,,1049",
        ",CHANGEUSER,mysql,,0",
        ",DISCONNECT,mysql,,0",
        ",DISCONNECT,information_schema,,0",
    ] {
        wait_until(wanted, || is_logged(wanted));
    }
    let text = fs::read_to_string(&log).expect("a log");
    assert!(text.contains(",missing?x,localhost,"), "{text}");
    assert!(!text.contains("QUERY") && text.lines().all(|line| line.split(',').count() == 10), "{text}");
    // Each connection that has ended has one line for its start and one for its end.
    let mut of: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        match fields[6] {
            "CONNECT" | "FAILED_CONNECT" => of.entry(fields[4]).or_default()[0] += 1,
            "DISCONNECT" => of.entry(fields[4]).or_default()[1] += 1,
            _ => {}
        }
    }
    assert!(of.values().all(|[begins, ends]| *begins == 1 && *ends <= 1), "{text}");
    assert!(of.values().filter(|[_, ends]| *ends == 1).count() >= 5, "{text}");
}

#[test]
fn files_rotate_and_move_and_settings_answer_as_the_plugins() {
    let (cohort, maria) =
        (Cohort::new(&[]), Maria::new(&["--plugin-load-add=server_audit", "--query-cache-type=0"]));
    let mut answers = [cohort.client(), maria.client()].map(|mut client| {
        let mut ask = |statement: &str| {
            let shown = match client.query_iter(statement) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            };
            // SHOW the state after each statement.
            shown
                + &rows(&mut client, "SHOW WARNINGS")
                + &rows(&mut client, "SHOW GLOBAL STATUS LIKE 'server_audit%'")
                + &rows(&mut client, "SHOW GLOBAL VARIABLES LIKE 'server_audit%'")
        };
        [
            "SELECT 1",
            "SET GLOBAL server_audit_logging = ON",
            "SET GLOBAL server_audit_file_path = 'a.log'",
            "SET GLOBAL server_audit_file_rotations = 12",
            "SET GLOBAL server_audit_file_rotate_now = ON",
            "SET GLOBAL server_audit_file_path = '/nonexistent/x'",
            "SET GLOBAL server_audit_file_rotate_size = 1",
            "SET GLOBAL server_audit_excl_users = 'a,b,c'",
            "SET GLOBAL server_audit_incl_users = 'b'",
            "SET GLOBAL server_audit_excl_users = 'b,d'",
            "SET GLOBAL server_audit_events = 'QUERY,CONNECT'",
            "SET GLOBAL server_audit_logging = OFF",
            "SET GLOBAL server_audit_file_path = '/nonexistent/x'",
            "SET GLOBAL server_audit_logging = ON",
            "SET GLOBAL server_audit_file_path = ''",
            "SET GLOBAL server_audit_logging = ON",
            "SET GLOBAL server_audit_file_path = NULL",
            "INSTALL SONAME 'server_audit'",
            "INSTALL PLUGIN server_audit SONAME 'server_audit'",
            "INSTALL PLUGIN IF NOT EXISTS server_audit SONAME 'server_audit'",
            "UNINSTALL PLUGIN nosuch",
            "UNINSTALL PLUGIN IF EXISTS nosuch",
            "UNINSTALL PLUGIN binlog",
            "UNINSTALL SONAME 'nosuch'",
        ]
        .map(|statement| (statement, ask(statement)))
    });
    let [ours, theirs] = &mut answers;
    for ((statement, ours), (_, theirs)) in ours.iter().zip(theirs.iter()) {
        assert_eq!(ours, theirs, "{statement}");
    }
    let names = |datadir: &Path| {
        let all = fs::read_dir(datadir).expect("a directory").map(|entry| entry.expect("one").file_name());
        let mut names: Vec<String> = all.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| name.starts_with("a.log") || name.starts_with("server_audit"));
        names.sort();
        names
    };
    assert!(names(&cohort.datadir).contains(&"a.log.01".to_owned()), "{:?}", names(&cohort.datadir));
    assert!(names(&maria.datadir).contains(&"a.log.01".to_owned()));
    let plugin = "SELECT plugin_status FROM information_schema.plugins WHERE plugin_name = 'SERVER_AUDIT'";
    assert_eq!(rows(&mut cohort.client(), plugin), "ACTIVE\n");
}

#[test]
fn a_killed_server_has_logged_all_that_it_acknowledged() {
    let mut server = Cohort::new(&["--server-audit-logging=ON"]);
    let mut client = server.client();
    for n in 0..50 {
        client.query_drop(format!("SELECT 'statement {n}'")).expect("runs");
    }
    server.kill();
    let text = fs::read_to_string(server.datadir.join("server_audit.log")).expect("a log");
    assert!((0..50).all(|n| text.contains(&format!("statement {n}"))), "{text}");
}

#[test]
fn on_a_full_disk_lines_are_lost_and_counted_and_no_client_waits() {
    let Some(server) = Cohort::on_small_disk(200, &["--server-audit-logging=ON"]) else { return };
    let mut client = server.client();
    let status = |client: &mut Conn, name: &str| {
        let row: (String, String) = client
            .query_first(format!("SHOW GLOBAL STATUS LIKE 'Server_audit_{name}'"))
            .expect("runs")
            .expect("one");
        row.1
    };
    assert_eq!(
        (status(&mut client, "active"), status(&mut client, "writes_failed")),
        ("ON".into(), "0".into())
    );
    server.disk().fill();
    // The rest of the file's last page is filled first.
    for _ in 0..200 {
        client.query_drop(format!("SELECT '{}'", "x".repeat(500))).expect("answered");
    }
    assert!(status(&mut client, "writes_failed").parse::<u64>().expect("a number") > 0);
    assert!(status(&mut client, "last_error").starts_with("Could not write to 'server_audit.log'"));
    server.disk().make_room();
    wait_until("lines are written again", || status(&mut client, "active") == "ON");
    client.query_drop("SELECT 'afterwards'").expect("answered");
    let text = fs::read(server.datadir.join("server_audit.log")).expect("a log");
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("'SELECT \\'afterwards\\'',0"), "{text}");
    assert!(text.lines().all(|line| line.starts_with("20") && line.ends_with(",0")), "no line is torn");
    let logged = server.log().matches("Events are lost").count();
    assert!((1..5).contains(&logged), "logged once, not once a line: {logged}");
}
