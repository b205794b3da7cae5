//! Programs at their limits: large bodies, recursion on the smallest stack, many events at once.

use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::support::{Cohort, rows, wait_until};

/// The errors of programs that are nested too deeply.
const TOO_DEEP: [u16; 3] = [1436, 1456, 1064];

/// Runs a statement, which succeeds or fails because it is nested too deeply. Returns whether it succeeded.
fn runs_or_is_too_deep(client: &mut Conn, sql: &str) -> bool {
    match client.query_drop(sql) {
        Ok(()) => true,
        Err(mysql::Error::MySqlError(error)) if TOO_DEEP.contains(&error.code) => false,
        Err(error) => panic!("{}: {error}", &sql[..sql.len().min(200)]),
    }
}

#[test]
fn recursion_on_the_smallest_stack_ends_with_an_error() {
    let options =
        ["--thread-stack=131072", "--max-sp-recursion-depth=255", "--log-bin-trust-function-creators=1"];
    let server = Cohort::new(&options);
    let mut client = server.in_test();
    let run = |client: &mut Conn, sql: &str| client.query_drop(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    run(&mut client, "CREATE PROCEDURE deep(n INT) IF n > 0 THEN CALL deep(n - 1); END IF");
    run(
        &mut client,
        "CREATE PROCEDURE handled(n INT) BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; IF n > 0 THEN \
         CALL handled(n - 1); END IF; END",
    );
    run(&mut client, "CREATE TABLE t0 (a INT)");
    run(&mut client, "CREATE FUNCTION f0() RETURNS INT RETURN 1");
    for n in 1..60 {
        let before = n - 1;
        run(&mut client, &format!("CREATE TABLE t{n} (a INT)"));
        run(&mut client, &format!("CREATE FUNCTION f{n}() RETURNS INT RETURN f{before}() + 1"));
        run(
            &mut client,
            &format!(
                "CREATE TRIGGER tr{n} BEFORE INSERT ON t{n} FOR EACH ROW INSERT INTO t{before} VALUES (1)"
            ),
        );
    }
    // What is shallow runs, at every depth the statement ends, and nothing of a failed one stays.
    for (shallow, of_depth) in [
        (2, Box::new(|n| format!("CALL deep({n})")) as Box<dyn Fn(usize) -> String>),
        (2, Box::new(|n| format!("CALL handled({n})"))),
        (2, Box::new(|n| format!("SELECT f{}()", n.min(59)))),
        (2, Box::new(|n| format!("INSERT INTO t{} VALUES (1)", n.min(59)))),
    ] {
        assert!(runs_or_is_too_deep(&mut client, &of_depth(shallow)), "{}", of_depth(shallow));
        for depth in [5, 10, 20, 40, 59, 100, 200, 255] {
            runs_or_is_too_deep(&mut client, &of_depth(depth));
        }
    }
    run(&mut client, "DELETE FROM t0");
    let inserted = runs_or_is_too_deep(&mut client, "INSERT INTO t59 VALUES (1)");
    assert_eq!(rows(&mut client, "SELECT COUNT(*) FROM t0"), if inserted { "1\n" } else { "0\n" });
    for depth in [10, 100, 1_000, 20_000] {
        let blocks = format!("{}{}", "BEGIN ".repeat(depth), "END; ".repeat(depth));
        let ifs = format!("BEGIN {}{} END", "IF 1 THEN ".repeat(depth), "END IF; ".repeat(depth));
        let ifs = ifs.replacen("END IF", "SELECT 1; END IF", 1);
        for body in [blocks.trim_end_matches("; "), &ifs] {
            if runs_or_is_too_deep(&mut client, &format!("CREATE OR REPLACE PROCEDURE nested() {body}")) {
                runs_or_is_too_deep(&mut client, "CALL nested()");
            }
        }
    }
    assert_eq!(rows(&mut client, "SELECT 1"), "1\n");
}

#[test]
fn a_body_of_a_million_statements_runs() {
    const STATEMENTS: usize = 1_000_000;
    let server = Cohort::new(&["--max-allowed-packet=64M"]);
    let mut client = server.in_test();
    let mut text = "CREATE PROCEDURE large(OUT x INT) BEGIN SET x = 0;".to_owned();
    for _ in 0..STATEMENTS {
        text += "SET x = x + 1;\n ";
    }
    text += "END";
    assert!(text.len() > 15 << 20);
    client.query_drop(&text).expect("made");
    for _ in 0..2 {
        client.query_drop("CALL large(@x)").expect("called");
        assert_eq!(rows(&mut client, "SELECT @x"), format!("{STATEMENTS}\n"));
    }
    // Literals and one long statement, too.
    let literal = "x".repeat(16 << 20);
    client.query_drop(format!("CREATE PROCEDURE long_one() SELECT LENGTH('{literal}')")).expect("made");
    assert_eq!(rows(&mut client, "CALL long_one()"), format!("{}\n", 16 << 20));
    let body = rows(&mut client, "SELECT LENGTH(body) > 16 << 20 FROM mysql.proc WHERE name = 'long_one'");
    assert_eq!(body, "1\n");
    client.query_drop("DROP PROCEDURE large").expect("dropped");
}

#[test]
fn a_thousand_events_that_are_due_at_once_all_run() {
    const EVENTS: usize = 1_000;
    let server = Cohort::new(&["--event-scheduler=OFF", "--max-allowed-packet=64M"]);
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE ran (n INT PRIMARY KEY)").expect("made");
    for n in 0..EVENTS {
        let event = format!(
            "CREATE EVENT e{n} ON SCHEDULE AT NOW() + INTERVAL 2 SECOND DO INSERT INTO ran VALUES ({n})"
        );
        client.query_drop(event).expect("made");
    }
    // Events at one time that were missed run when the scheduler is switched on.
    client.query_drop("DO SLEEP(2)").expect("slept");
    client.query_drop("SET GLOBAL event_scheduler = ON").expect("set");
    wait_until("all events ran", || rows(&mut client, "SELECT COUNT(*) FROM ran") == format!("{EVENTS}\n"));
    wait_until("they are dropped", || {
        rows(&mut client, "SELECT COUNT(*) FROM information_schema.EVENTS") == "0\n"
    });
    assert!(!server.log().contains("[ERROR]"), "{}", server.log());
}

/// KILL QUERY ends a program wherever it is, whatever it handles. In MariaDB a loop of assignments goes on.
#[test]
fn kill_ends_programs_everywhere() {
    let server = Cohort::new(&["--log-bin-trust-function-creators=1", "--event-scheduler=ON"]);
    let mut client = server.in_test();
    let handler = "DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END";
    for sql in [
        "CREATE TABLE t (a INT)".to_owned(),
        "INSERT INTO t VALUES (1), (2), (3)".to_owned(),
        "CREATE TABLE after (a INT)".to_owned(),
        format!("CREATE PROCEDURE p0() BEGIN {handler}; WHILE TRUE DO SET @r = 1; END WHILE; END"),
        format!("CREATE PROCEDURE p1() BEGIN {handler}; l: LOOP ITERATE l; END LOOP; END"),
        format!("CREATE PROCEDURE p2() BEGIN {handler}; DO SLEEP(100); INSERT INTO after VALUES (1); END"),
        format!(
            "CREATE PROCEDURE p3() BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT a.a FROM t a, t b, t c WHERE \
             SLEEP(10) = 0; {handler}; OPEN c; INSERT INTO after VALUES (1); END"
        ),
        format!("CREATE PROCEDURE p4() BEGIN {handler}; SELECT COUNT(*) FROM seq_1_to_1000000000 a; END"),
        format!(
            "CREATE FUNCTION f() RETURNS INT BEGIN {handler}; WHILE TRUE DO SET @r = 1; END WHILE; RETURN 1; END"
        ),
        "CREATE PROCEDURE p5() SELECT f() FROM t".to_owned(),
        "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.a = f()".to_owned(),
        "CREATE PROCEDURE p6() INSERT INTO t VALUES (4)".to_owned(),
        "CREATE EVENT e ON SCHEDULE AT NOW() DO CALL p0()".to_owned(),
    ] {
        client.query_drop(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for n in 0..7 {
        let mut other = server.in_test();
        let id = other.connection_id();
        let called =
            std::thread::spawn(move || crate::support::error_code(other.query_drop(format!("CALL p{n}()"))));
        let running = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id} AND COMMAND = 'Query'"
        );
        wait_until("it runs", || rows(&mut client, &running) == "1\n");
        client.query_drop(format!("KILL QUERY {id}")).expect("killed");
        assert_eq!(called.join().expect("it ends"), 1317, "p{n}");
    }
    for sql in ["CALL p0()", "CALL p1()", "SELECT f()"] {
        let limited = format!("SET STATEMENT max_statement_time = 0.2 FOR {sql}");
        assert_eq!(crate::support::error_code(client.query_drop(limited)), 1969, "{sql}");
    }
    assert_eq!(rows(&mut client, "SELECT COUNT(*) FROM after"), "0\n");
    assert_eq!(rows(&mut client, "SELECT COUNT(*) FROM t"), "3\n");
    // The event, whose session is that of its definer.
    let events = "SELECT GROUP_CONCAT(ID) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Connect'";
    wait_until("the event runs", || rows(&mut client, events) != "NULL\n");
    let id = rows(&mut client, events);
    client.query_drop(format!("KILL {id}")).expect("killed");
    wait_until("the event ends", || rows(&mut client, events) == "NULL\n");
}

/// A routine whose text is damaged is the only object that is unusable, also after a start.
#[test]
fn a_damaged_definition_disables_one_object() {
    let mut server = Cohort::new(&["--log-bin-trust-function-creators=1"]);
    server.sql(
        "CREATE DATABASE d; CREATE PROCEDURE d.good() SELECT 'good'; CREATE PROCEDURE d.bad() SELECT 'bad'; CREATE \
         FUNCTION d.f() RETURNS INT RETURN 4711",
    );
    let (is_dumped, dump) = server.tool("mariadb-dump", &["mysql", "proc"]);
    assert!(is_dumped && dump.contains("RETURN 4711"), "{dump}");
    server.sql("DROP PROCEDURE d.bad; DROP FUNCTION d.f");
    let damaged = dump.replace("SELECT \\'bad\\'", "SELECT FROM (").replace("RETURN 4711", "RETRUN 1");
    server.sql(&format!("USE mysql;\n{damaged}\nFLUSH PRIVILEGES;"));
    for _ in 0..2 {
        let mut client = server.client();
        client.query_drop("USE d").expect("there");
        for sql in ["CALL bad()", "SELECT f()", "INSERT INTO t VALUES (1)"] {
            if sql.starts_with("INSERT") {
                client.query_drop("CREATE OR REPLACE TABLE t (a INT)").expect("made");
                let trigger = "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.a = f()";
                client.query_drop(trigger).expect("made");
            }
            let error = client.query_drop(sql).expect_err("it is damaged").to_string();
            assert!(
                error.contains("1457") && error.contains(if sql == "CALL bad()" { "d.bad" } else { "d.f" })
            );
        }
        assert_eq!(rows(&mut client, "CALL good()"), "good\n");
        assert!(rows(&mut client, "SHOW CREATE PROCEDURE bad").contains("SELECT FROM ("));
        server.kill_and_restart();
    }
    let mut client = server.client();
    client.query_drop("USE d").expect("there");
    client.query_drop("DROP PROCEDURE bad").expect("dropped");
    client.query_drop("CREATE OR REPLACE FUNCTION f() RETURNS INT RETURN 2").expect("replaced");
    client.query_drop("INSERT INTO t VALUES (1)").expect("usable again");
    assert_eq!(rows(&mut client, "SELECT * FROM t"), "2\n");
}

/// Passwords in bodies are in no log but the binary one.
#[test]
fn secrets_of_bodies_are_in_no_log() {
    let server = Cohort::new(&["--general-log=1", "--slow-query-log=1", "--long-query-time=0"]);
    let mut client = server.in_test();
    for sql in [
        "CREATE PROCEDURE p() BEGIN CREATE OR REPLACE USER u@localhost IDENTIFIED BY 'sekrit1'; SET PASSWORD FOR \
         u@localhost = PASSWORD('sekrit2'); END",
        "CALL p()",
        "BEGIN NOT ATOMIC CREATE OR REPLACE USER u@localhost IDENTIFIED BY 'sekrit3'; END",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO ALTER USER u@localhost IDENTIFIED BY 'sekrit4'",
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN LENGTH(PASSWORD('sekrit5'))",
        "SELECT f()",
    ] {
        client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let mut logs = 0;
    for entry in std::fs::read_dir(&server.datadir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned();
            assert!(!text.contains("sekrit"), "{}: {text}", path.display());
            logs += usize::from(text.contains("CALL p()"));
        }
    }
    assert_eq!(logs, 2, "the general log and the slow log");
    assert!(!server.log().contains("sekrit"));
}

/// Returns the shortest of several clean restarts.
fn start_of(server: &mut Cohort) -> Duration {
    let one = |server: &mut Cohort| {
        server.stop();
        let begin = Instant::now();
        server.restart();
        begin.elapsed()
    };
    (0..3).map(|_| one(server)).min().expect("three starts")
}

/// Ten thousand routines that were each called once take at most 64 MiB, and little time at a start. Sessions
/// that have called programs are not larger than others afterwards.
#[test]
fn ten_thousand_routines_cost_little() {
    const ROUTINES: usize = 10_000;
    const SESSIONS: u64 = 300;
    let mut server = Cohort::new(&["--max-connections=400"]);
    let empty = start_of(&mut server);
    let mut client = server.in_test();
    let make = |client: &mut Conn, numbers: std::ops::Range<usize>| {
        for n in numbers {
            let body = "BEGIN DECLARE i INT DEFAULT 0; WHILE i < a DO SET i = i + 1; END WHILE; END";
            client.query_drop(format!("CREATE PROCEDURE p{n}(a INT) {body}")).expect("made");
            client.query_drop(format!("CALL p{n}({})", n % 10)).expect("called");
        }
    };
    // What every server has once, such as the buffers of the log.
    make(&mut client, 0..100);
    let before = server.resident_kib();
    make(&mut client, 100..ROUTINES + 100);
    let grown = server.resident_kib().saturating_sub(before);
    println!("{ROUTINES} routines took {grown} KiB");
    assert!(grown <= 64 << 10, "{ROUTINES} routines took {grown} KiB");
    drop(client);
    let more = start_of(&mut server).saturating_sub(empty);
    println!("a start took {more:?} more than the {empty:?} without routines");
    // A build without optimization, on a busy machine, has ten times the time.
    let most = if cfg!(debug_assertions) { Duration::from_millis(500) } else { Duration::from_millis(50) };
    assert!(more <= most, "{more:?} more");
    let mut sessions: Vec<Conn> = (0..SESSIONS).map(|_| server.in_test()).collect();
    sessions.iter_mut().for_each(|session| session.query_drop("SELECT 1").expect("answered"));
    let before = server.resident_kib();
    for session in &mut sessions {
        session.query_drop("CALL p7(3)").expect("called");
    }
    let grown = server.resident_kib().saturating_sub(before);
    println!("{SESSIONS} idle sessions took {grown} KiB more after a call");
    // The goal is 1 KiB a session; a release build took 1,892 KiB for all of them, the compiled routine, its
    // pages of the catalog and the allocator's own steps included.
    let once = 1 << 10;
    assert!(grown <= 8 * SESSIONS + once, "{grown} KiB");
}
