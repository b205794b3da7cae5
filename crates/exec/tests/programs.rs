//! Programs that run in a session: accounts, clients of the binary protocol, the binary log. What MariaDB
//! answers to the statements alone is in `golden/programs.sql`.

mod world;

use std::path::Path;
use std::sync::Arc;

use cohort_base::ConnectionId;
use cohort_binlog::event::Event;
use cohort_exec::EventRun;
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_types::{SqlError, Value};
use world::{Client, Server};

fn server() -> (Server, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)");
    (server, client)
}

#[test]
fn placeholders_of_a_prepared_call_receive_out_parameters_as_a_row() {
    let (_server, mut client) = server();
    client.ok(
        "CREATE PROCEDURE p(IN a INT, OUT b INT, INOUT c VARCHAR(9)) BEGIN SELECT a, c; SET b = a + 1; SET c = \
         CONCAT(c, 'x'); END",
    );
    let id = client.session.prepare(b"CALL p(?, ?, ?)").expect("prepares").id;
    for n in [1, 7] {
        let answer = client.execute(id, &[Value::Int(n), Value::Int(99), Value::text("q")]);
        assert_eq!(answer, format!("a | c\n{n} | q\nb | c\n{} | qx\nOK\n", n + 1));
    }
    let id = client.session.prepare(b"CALL p(?, @b, @c)").expect("prepares").id;
    assert_eq!(client.execute(id, &[Value::Int(1)]), "a | c\n1 | NULL\nOK\n");
    assert_eq!(client.run("SELECT @b"), "@b\n2\n");
}

/// A sink of a client without CLIENT_MULTI_RESULTS.
#[derive(Default)]
struct OneResult {
    oks: u32,
    error: Option<SqlError>,
}

impl ResultSink for OneResult {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {
        panic!("a second result could not follow");
    }
    fn row(&mut self, _: &[Value]) {}
    fn finish(&mut self, _: StatusFlags, _: u16) {}
    fn ok(&mut self, _: &OkInfo<'_>) {
        self.oks += 1;
    }
    fn takes_more_results(&self) -> bool {
        false
    }
    fn error(&mut self, error: &SqlError) {
        self.error = Some(error.clone());
    }
    fn is_dead(&self) -> bool {
        false
    }
}

#[test]
fn a_client_of_one_result_calls_procedures_without_rows() {
    let (_server, mut client) = server();
    client.ok("CREATE PROCEDURE changes() INSERT INTO t VALUES (1, 1)");
    client.ok("CREATE PROCEDURE shows() BEGIN INSERT INTO t VALUES (2, 1); SELECT 1; END");
    client.ok("CREATE PROCEDURE fetches() BEGIN DECLARE n INT; DECLARE c CURSOR FOR SELECT 1; OPEN c; \
         FETCH c INTO n; CLOSE c; END");
    client.ok("CREATE PROCEDURE prepares() EXECUTE IMMEDIATE 'SELECT 1'");
    for (call, error) in [
        ("CALL changes()", None),
        ("CALL fetches()", None),
        ("CALL shows()", Some("PROCEDURE test.shows can't return a result set in the given context")),
        ("CALL prepares()", Some("PROCEDURE test.prepares can't return a result set in the given context")),
    ] {
        let mut sink = OneResult::default();
        client.session.query(call.as_bytes(), &mut sink);
        let found = sink.error.as_ref().map(|error| (error.number(), &*error.message));
        assert_eq!(found, error.map(|text| (1312, text)), "{call}");
        assert_eq!(sink.oks, u32::from(error.is_none()), "{call}");
    }
    assert_eq!(client.run("SELECT a FROM t"), "a\n1\n", "a refused CALL has not begun");
}

#[test]
fn the_frames_of_recursive_calls_are_charged() {
    let (_server, mut client) = server();
    let names: Vec<String> = (0..10_000).map(|n| format!("v{n}")).collect();
    client.ok(&format!(
        "CREATE PROCEDURE deep(n INT) BEGIN DECLARE {} INT; IF n > 0 THEN CALL deep(n - 1); END IF; END",
        names.join(", ")
    ));
    client.ok("SET max_sp_recursion_depth = 255, max_session_mem_used = 8192000");
    client.ok("CALL deep(10)");
    let answer = client.run("CALL deep(40)");
    assert!(answer.contains("max-session-mem-used"), "{answer}");
    client.ok("CALL deep(10)");
}

#[test]
fn plans_of_a_body_are_stale_only_when_their_names_have_changed() {
    let (_server, mut client) = server();
    let round = |name: &str, change: &str, insert: &str| {
        format!(
            "CREATE PROCEDURE {name}() BEGIN DECLARE i INT DEFAULT 0; WHILE i < 5 DO SET i = i + 1; {insert}; \
             EXECUTE IMMEDIATE CONCAT({change}); END WHILE; END"
        )
    };
    client.ok(&round("others", "'CREATE TABLE n', i, ' (a INT)'", "INSERT INTO t (a, b) VALUES (i, 0)"));
    client.ok(&round("own", "'ALTER TABLE t ADD c', i, ' INT'", "INSERT INTO t (b, a) VALUES (0, i + 10)"));
    client.ok("CALL others()");
    client.ok("CALL own()");
    let hits = "SELECT CALLS, PLAN_CACHE_HITS FROM information_schema.COHORT_STATEMENTS \
                WHERE LEVEL = 'NESTED' AND DIGEST_TEXT LIKE 'INSERT%' ORDER BY 2";
    assert_eq!(client.run(hits), "CALLS | PLAN_CACHE_HITS\n5 | 0\n5 | 4\n");
    // A table that the plan does not read is a name of the statement, too.
    client.ok("CREATE PROCEDURE counts() BEGIN SELECT COUNT(*) FROM t WHERE 1 = 0; END");
    assert_eq!(client.run("CALL counts()"), "COUNT(*)\n0\nOK\n");
    client.ok("RENAME TABLE t TO elsewhere");
    assert!(client.run("CALL counts()").contains("1146"), "the table is gone");
    client.ok("CREATE VIEW t AS SELECT 1 AS a");
    assert_eq!(client.run("CALL counts()"), "COUNT(*)\n0\nOK\n");
}

#[test]
fn a_routine_runs_with_the_account_of_its_definer() {
    let (mut server, mut root) = server();
    root.ok("CREATE USER owner@localhost, guest@localhost");
    root.ok("GRANT SELECT, EXECUTE ON test.* TO owner@localhost");
    root.ok("GRANT EXECUTE ON test.* TO guest@localhost");
    let body = "BEGIN SELECT CURRENT_USER(), USER(); SELECT COUNT(*) FROM t; END";
    root.ok(&format!("CREATE DEFINER = owner@localhost PROCEDURE definer() {body}"));
    root.ok(&format!("CREATE PROCEDURE invoker() SQL SECURITY INVOKER {body}"));
    root.ok("CREATE DEFINER = owner@localhost PROCEDURE writes() INSERT INTO t VALUES (1, 1)");
    root.ok("CREATE PROCEDURE calls() BEGIN CALL definer(); SELECT CURRENT_USER(); END");
    root.ok("CREATE DEFINER = gone@localhost PROCEDURE gone() SELECT 1");
    let mut guest = server.connect_as("guest", "localhost");
    guest.ok("USE test");
    let of_owner = "CURRENT_USER() | USER()\nowner@localhost | guest@localhost\nCOUNT(*)\n0\n";
    for (call, expected) in [
        ("CALL definer()", format!("{of_owner}OK\n")),
        ("CALL calls()", format!("{of_owner}CURRENT_USER()\nroot@localhost\nOK\n")),
        (
            "CALL invoker()",
            "CURRENT_USER() | USER()\nguest@localhost | guest@localhost\nERROR 1142 (42000): SELECT command \
             denied to user 'guest'@'localhost' for table `test`.`t`\n"
                .to_owned(),
        ),
        (
            "CALL writes()",
            "ERROR 1142 (42000): INSERT command denied to user 'owner'@'localhost' for table `test`.`t`\n"
                .to_owned(),
        ),
        (
            "CALL gone()",
            "ERROR 1449 (HY000): The user specified as a definer ('gone'@'localhost') does not exist\n"
                .to_owned(),
        ),
    ] {
        assert_eq!(guest.run(call), expected, "{call}");
        // Whatever the outcome, the caller has its account, database and rights back.
        assert_eq!(
            guest.run("SELECT CURRENT_USER(), DATABASE()"),
            "CURRENT_USER() | DATABASE()\nguest@localhost | test\n"
        );
        assert!(guest.run("SELECT * FROM t").starts_with("ERROR 1142"), "{call}");
    }
    // The definer needs EXECUTE, too.
    root.ok("REVOKE EXECUTE ON test.* FROM owner@localhost");
    let denied =
        "ERROR 1370 (42000): execute command denied to user 'owner'@'localhost' for routine 'test.definer'\n";
    assert_eq!(guest.run("CALL definer()"), denied);
    root.ok("REVOKE EXECUTE ON test.* FROM guest@localhost");
    let denied =
        "ERROR 1370 (42000): execute command denied to user 'guest'@'localhost' for routine 'test.nosuch'\n";
    assert_eq!(guest.run("CALL test.nosuch()"), denied, "does not reveal whether the routine exists");
}

#[test]
fn a_temporary_table_gives_no_types_to_other_sessions() {
    let (mut server, mut first) = server();
    let mut second = server.connect();
    second.ok("USE test");
    first.ok("CREATE PROCEDURE typed() BEGIN DECLARE x TYPE OF t.a; DECLARE y ROW TYPE OF t; SET x = 'abc'; SET y.z = 1; END");
    first.ok("CREATE TEMPORARY TABLE t (a VARCHAR(9), z INT)");
    first.ok("CALL typed()");
    let wrong = "ERROR 1366 (22007): Incorrect integer value: 'abc' for column ``.``.`x` at row 0\n";
    assert_eq!(second.run("CALL typed()"), wrong);
    first.ok("CALL typed()");
    first.ok("DROP TEMPORARY TABLE t");
    assert_eq!(first.run("CALL typed()"), wrong);
}

#[test]
fn an_event_calls_a_procedure_of_its_name() {
    let (server, mut client) = server();
    client.ok("CREATE PROCEDURE e() INSERT INTO t VALUES (1, 1)");
    client.ok("CREATE EVENT e ON SCHEDULE EVERY 1 YEAR DO CALL e()");
    let catalog = server.db.catalog();
    let event = catalog.schemas["test"].events.values().next().expect("made").clone();
    run_event(&server, &event, 1_000_000_000, false);
    assert_eq!(client.run("SELECT * FROM t"), "a | b\n1 | 1\n");
}

/// Runs an event, which must begin and leave no conditions.
fn run_event(server: &Server, event: &Arc<cohort_catalog::Event>, at: i64, is_last: bool) {
    let run = EventRun { event: Arc::clone(event), id: ConnectionId(99), at, is_last };
    let outcome = cohort_exec::run_event(&server.db, &run);
    assert!(outcome.has_begun && outcome.conditions.is_empty(), "{:?}", outcome.conditions);
}

fn event_of(server: &Server, name: &str) -> Arc<cohort_catalog::Event> {
    server.db.catalog().event("test", name).expect("it is there").clone()
}

#[test]
fn runs_of_events() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (a INT, b VARCHAR(64))");
    // In the time zone of the event.
    client.ok("SET time_zone = '+05:00'");
    client.ok("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO INSERT INTO t VALUES (1, @@time_zone)");
    let event = event_of(&server, "e");
    let at = i64::try_from(event.created_at).expect("a time") + 7;
    run_event(&server, &event, at, false);
    assert_eq!(client.run("SELECT * FROM t"), "a | b\n1 | +05:00\n");
    // The drop after the last run commits the rest of the body.
    client.ok("CREATE EVENT once ON SCHEDULE EVERY 1 DAY DO BEGIN SET autocommit = 0; INSERT INTO t VALUES (2, ''); END");
    run_event(&server, &event_of(&server, "once"), at, true);
    assert_eq!(client.run("SELECT a FROM t"), "a\n1\n2\n");
    assert!(server.db.catalog().event("test", "once").is_none());
    // A last run whose event cannot be disabled has not begun, and is due as before.
    client.ok("CREATE EVENT late ON SCHEDULE EVERY 1 DAY DO INSERT INTO t VALUES (3, '')");
    client.ok("SET GLOBAL lock_wait_timeout = 0");
    client.ok("FLUSH TABLES WITH READ LOCK");
    let run = EventRun { event: event_of(&server, "late"), id: ConnectionId(99), at, is_last: true };
    let outcome = cohort_exec::run_event(&server.db, &run);
    assert!(!outcome.has_begun && outcome.conditions.len() == 1, "{:?}", outcome.conditions);
    client.ok("UNLOCK TABLES");
    assert_eq!(server.db.event_runs.last(&run.event), None);
    run_event(&server, &run.event, at, true);
    assert_eq!(client.run("SELECT COUNT(*) FROM t"), "COUNT(*)\n3\n");
    // One that replaces it in the second of its run has not run.
    client.ok("CREATE OR REPLACE EVENT e ON SCHEDULE EVERY 1 DAY DO INSERT INTO t VALUES (4, '')");
    assert_eq!(server.db.event_runs.last(&event_of(&server, "e")), None);
    run_event(&server, &event_of(&server, "e"), at, false);
    // The time of the last run outlives the server, but not the event.
    client.ok("SET GLOBAL lock_wait_timeout = 100");
    client.ok("CREATE EVENT gone ON SCHEDULE EVERY 1 DAY DO SELECT 1");
    run_event(&server, &event_of(&server, "gone"), at, false);
    client.ok("DROP EVENT gone");
    drop(client);
    drop(server);
    let mut server = Server::open(&disk).expect("it opens again");
    server.db.event_runs.load(&*server.db.engines[0]).expect("read");
    assert_eq!(server.db.event_runs.last(&event_of(&server, "e")), Some(at));
    let mut client = server.connect();
    client.ok("CREATE EVENT gone ON SCHEDULE EVERY 1 DAY DO SELECT 1");
    assert!(!server.db.event_runs.has(&event_of(&server, "gone")));
}

#[test]
fn a_call_is_logged_as_the_statements_that_it_ran() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9))");
    client.ok(
        "CREATE PROCEDURE p(n INT) BEGIN DECLARE s VARCHAR(9) DEFAULT 'it''s'; INSERT INTO t VALUES (n, s); UPDATE \
         t SET b = s WHERE a = n AND b <> s; START TRANSACTION; DELETE FROM t WHERE a = n; INSERT INTO t SELECT n + \
         1, s; COMMIT; CREATE TABLE made (a INT); END",
    );
    client.ok("CALL p(5)");
    let mut found = Vec::new();
    for path in server.binlog() {
        let mut reader =
            cohort_binlog::EventReader::open(&disk, Path::new(&path)).expect("a binlog file opens");
        while let Some(raw) = reader.next_event().expect("it is sound") {
            match reader.decode(&raw) {
                Ok(Event::Annotate(rows)) => found.push(String::from_utf8_lossy(&rows.sql).into_owned()),
                Ok(Event::Query(query)) => found.push(String::from_utf8_lossy(&query.sql).into_owned()),
                Ok(Event::Xid(_)) => found.push("COMMIT".to_owned()),
                _ => {}
            }
        }
    }
    let from = found.iter().position(|text| text.starts_with("INSERT")).expect("rows were logged");
    let expected = [
        "INSERT INTO t VALUES (5, 'it\\'s')",
        "COMMIT",
        "DELETE FROM t WHERE a = 5",
        "INSERT INTO t SELECT 5 + 1, 'it\\'s'",
        "COMMIT",
        "CREATE TABLE made (a INT)",
    ];
    assert_eq!(found[from..], expected);
}

/// A sink that keeps the flags, types, lengths and decimals of result columns.
#[derive(Default)]
struct Described(Vec<(u16, u8, u32, u8)>);

impl ResultSink for Described {
    fn start(&mut self, columns: &[ColumnMeta], _: ResultHead) {
        let of = |c: &ColumnMeta| (c.flags.0, c.type_code as u8, c.length, c.decimals);
        self.0 = columns.iter().map(of).collect();
    }
    fn row(&mut self, _: &[Value]) {}
    fn finish(&mut self, _: StatusFlags, _: u16) {}
    fn ok(&mut self, _: &OkInfo<'_>) {}
    fn takes_more_results(&self) -> bool {
        true
    }
    fn error(&mut self, error: &SqlError) {
        panic!("{error:?}");
    }
    fn is_dead(&self) -> bool {
        false
    }
}

/// The expected values are those of MariaDB, for a variable and for an expression with it.
#[test]
fn a_variable_is_described_as_a_column_of_its_type() {
    let (_server, mut client) = server();
    for (of, variable, coalesced) in [
        ("INT", (0, 3, 11, 0), (128, 3, 11, 0)),
        ("BIGINT UNSIGNED", (32, 8, 20, 0), (160, 8, 20, 0)),
        ("TINYINT", (0, 1, 4, 0), (128, 1, 4, 0)),
        ("DECIMAL(10,2)", (0, 246, 12, 2), (128, 246, 12, 2)),
        ("DOUBLE", (0, 5, 22, 31), (128, 5, 22, 31)),
        ("FLOAT", (0, 4, 12, 31), (128, 4, 12, 31)),
        ("VARCHAR(10)", (0, 253, 40, 0), (0, 253, 40, 39)),
        ("VARBINARY(10)", (128, 253, 10, 0), (128, 253, 10, 39)),
        ("BLOB", (144, 252, 65535, 0), (128, 252, 65535, 39)),
        ("DATE", (128, 10, 10, 0), (128, 10, 10, 0)),
        ("CHAR(3)", (0, 254, 12, 0), (0, 254, 12, 39)),
    ] {
        let sql = format!("BEGIN NOT ATOMIC DECLARE x {of}; SELECT x, COALESCE(x); END");
        let mut sink = Described::default();
        client.session.query(sql.as_bytes(), &mut sink);
        assert_eq!(sink.0, [variable, coalesced], "{of}");
    }
}

/// A function sets global variables, except those that would wait for its own statement or end the audit log.
#[test]
fn a_function_cannot_set_some_global_variables() {
    let (_server, mut client) = server();
    client.ok("SET GLOBAL log_bin_trust_function_creators = 1");
    for (set, error) in [
        ("max_connect_errors = 5", None),
        ("read_only = 1", Some("ERROR 1192")),
        ("event_scheduler = 0", Some("ERROR 1235")),
        ("server_audit_logging = 0", Some("ERROR 1235")),
        ("SERVER_AUDIT_EXCL_USERS = 'x'", Some("ERROR 1235")),
        ("gtid_slave_pos = ''", Some("ERROR 1235")),
    ] {
        client
            .ok(&format!("CREATE OR REPLACE FUNCTION f() RETURNS INT BEGIN SET GLOBAL {set}; RETURN 1; END"));
        let answer = client.run("SELECT f()");
        assert!(answer.starts_with(error.unwrap_or("f()\n1")), "{set}: {answer}");
    }
}

/// ROLLBACK TO in a function does not move the start of the calling statement. (MariaDB keeps the first row.)
#[test]
fn a_statement_is_undone_as_a_whole_after_a_rollback_to_a_savepoint_inside() {
    let (_server, mut client) = server();
    client.ok("SET GLOBAL log_bin_trust_function_creators = 1");
    client.ok(
        "CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO t VALUES (1, 1); SAVEPOINT s; INSERT INTO t VALUES (2, 1); \
         ROLLBACK TO SAVEPOINT s; INSERT INTO t VALUES (3, 1); SIGNAL SQLSTATE '45000'; RETURN 1; END",
    );
    client.ok("START TRANSACTION");
    client.ok("INSERT INTO t VALUES (5, 5)");
    assert!(client.run("SELECT f()").starts_with("ERROR 1644"));
    assert_eq!(client.run("SELECT a FROM t"), "a\n5\n");
    client.ok("COMMIT");
    assert_eq!(client.run("SELECT a FROM t"), "a\n5\n");
}

/// Under `read_only`, a function that could write is refused, even if it would not.
#[test]
fn read_only_refuses_functions_that_could_write() {
    let (mut server, mut client) = server();
    for sql in [
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE FUNCTION writes() RETURNS INT BEGIN IF 0 THEN INSERT INTO t VALUES (1, 1); END IF; RETURN 1; END",
        "CREATE FUNCTION calls() RETURNS INT RETURN writes()",
        "CREATE FUNCTION reads_t() RETURNS INT RETURN (SELECT COUNT(*) FROM t)",
        "CREATE USER other@localhost",
        "GRANT ALL ON test.* TO other@localhost",
        "SET GLOBAL read_only = 1",
    ] {
        client.ok(sql);
    }
    let mut other = server.connect_as("other", "localhost");
    other.ok("USE test");
    for (sql, is_refused) in
        [("SELECT writes()", true), ("SELECT calls()", true), ("SELECT reads_t()", false)]
    {
        assert_eq!(other.run(sql).starts_with("ERROR 1290"), is_refused, "{sql}");
        assert!(!client.run(sql).starts_with("ERROR"), "{sql}");
    }
}

#[test]
fn a_function_does_not_handle_a_lock_wait_timeout() {
    let (mut server, mut a) = server();
    for definition in [
        "CREATE TABLE locked (pk INT PRIMARY KEY, n INT)",
        "CREATE TABLE written (n INT)",
        "INSERT INTO locked VALUES (1, 0)",
        "CREATE FUNCTION waits() RETURNS INT DETERMINISTIC BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @h = 1; \
         INSERT INTO written VALUES (1); UPDATE locked SET n = 1 WHERE pk = 1; RETURN 5; END",
        "CREATE PROCEDURE handles() BEGIN DECLARE CONTINUE HANDLER FOR 1205 SET @h = 2; \
         INSERT INTO written VALUES (2); UPDATE locked SET n = 1 WHERE pk = 1; END",
        "BEGIN",
        "UPDATE locked SET n = 9 WHERE pk = 1",
    ] {
        a.ok(definition);
    }
    let mut b = server.connect();
    b.ok("SET innodb_lock_wait_timeout = 1, @h = 0");
    assert!(b.run("SELECT waits()").contains("1205"));
    assert_eq!(b.run("SELECT @h, COUNT(*) FROM written"), "@h | COUNT(*)\n0 | 0\n");
    b.ok("CALL handles()");
    assert_eq!(b.run("SELECT @h, COUNT(*) FROM written"), "@h | COUNT(*)\n2 | 1\n");
}
