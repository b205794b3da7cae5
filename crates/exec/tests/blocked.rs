//! Lock waits: the InnoDB tables of information_schema, the process list, SHOW ENGINE .. STATUS.

mod world;

use std::thread;
use std::time::{Duration, Instant};

use world::{Client, Server};

/// Repeats a query until its result satisfies `is_wanted`.
#[track_caller]
fn until(client: &mut Client, sql: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = client.run(sql);
        if is_wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < give_up, "{sql}: {answer}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `count` sessions wait for metadata locks.
#[track_caller]
fn until_names_are_waited_for(client: &mut Client, count: usize) {
    let asked =
        "SELECT id FROM information_schema.processlist WHERE state = 'Waiting for table metadata lock'";
    until(client, asked, |answer| answer.lines().count() == count + 1);
}

fn three_sessions() -> (Server, [Client; 3]) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut sessions = [(); 3].map(|()| server.connect());
    sessions[0].ok("CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY kv (v))");
    sessions[0].ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)");
    (server, sessions)
}

#[test]
fn a_row_lock_wait_names_both_sides() {
    let (_server, [mut a, mut b, mut c]) = three_sessions();
    a.ok("START TRANSACTION");
    a.ok("UPDATE t SET v = 10 WHERE id = 1");
    let waiter = thread::spawn(move || b.run("UPDATE t SET v = 20 WHERE id = 1"));
    let wait = "SELECT r.trx_mysql_thread_id, r.trx_state, r.trx_query, b.trx_mysql_thread_id, b.trx_state, \
        b.trx_rows_modified, b.trx_isolation_level FROM information_schema.innodb_lock_waits w \
        JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id \
        JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_trx_id";
    let answer = until(&mut c, wait, |answer| answer.lines().count() == 2);
    assert!(
        answer.ends_with(
            "2 | LOCK WAIT | UPDATE t SET v = 20 WHERE id = 1 | 1 | RUNNING | 1 | REPEATABLE READ\n"
        ),
        "{answer}"
    );
    let locks = c.run(
        "SELECT lock_mode, lock_type, lock_table, lock_index, COUNT(*) FROM information_schema.innodb_locks \
         GROUP BY 1, 2, 3, 4",
    );
    assert!(locks.ends_with("X | RECORD | `test`.`t` | PRIMARY | 2\n"), "{locks}");
    let listed = c.run("SELECT state FROM information_schema.processlist WHERE id = 2");
    assert_eq!(listed, "state\nWaiting for row lock\n");
    let status = c.run("SHOW ENGINE INNODB STATUS");
    assert!(status.contains("TRANSACTIONS") && status.contains("LOCK WAIT for"), "{status}");
    a.ok("COMMIT");
    assert!(waiter.join().expect("no panic").starts_with("OK"));
    let after = c.run("SELECT COUNT(*) FROM information_schema.innodb_lock_waits");
    assert_eq!(after, "COUNT(*)\n0\n");
    until(&mut c, "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = 1", |n| {
        n.ends_with("\n0\n")
    });
}

#[test]
fn statements_of_other_connections_are_explained() {
    let (mut server, [mut a, mut b, mut c]) = three_sessions();
    a.ok("CREATE USER other@localhost");
    let mut other = server.connect_as("other", "localhost");
    a.ok("START TRANSACTION");
    a.ok("UPDATE t SET v = 10 WHERE id = 1");
    b.ok("USE test");
    let waiter = thread::spawn(move || b.run("UPDATE t SET v = 20 WHERE id = 1"));
    let running = "SELECT state FROM information_schema.processlist WHERE id = 2";
    until(&mut c, running, |answer| answer.contains("Waiting for row lock"));
    c.ok("USE information_schema");
    let plan = c.run("SHOW EXPLAIN FOR 2");
    assert!(plan.contains(" | t | ") && plan.contains("PRIMARY"), "{plan}");
    assert!(c.run("SHOW WARNINGS").ends_with("Note | 1003 | UPDATE t SET v = 20 WHERE id = 1\n"));
    assert_eq!(c.run("EXPLAIN FOR CONNECTION 2"), plan);
    let document = c.run("SHOW EXPLAIN FORMAT=JSON FOR 2");
    assert!(document.starts_with("SHOW EXPLAIN\n{") && document.contains("\"update\": 1"), "{document}");
    assert_eq!(c.run("EXPLAIN FORMAT=JSON FOR CONNECTION 2"), document);
    let analyzed = c.run("SHOW ANALYZE FOR 2");
    assert!(analyzed.contains("| rows | r_rows | filtered | r_filtered | Extra"), "{analyzed}");
    let analyzed = c.run("SHOW ANALYZE FORMAT=JSON FOR 2");
    assert!(
        analyzed.starts_with("SHOW ANALYZE\n{") && analyzed.contains("\"r_query_time_in_progress_ms\": ")
    );
    assert!(analyzed.contains("\"update\": 1") && !analyzed.contains("r_total_time_ms"), "{analyzed}");
    assert_eq!(c.run("SELECT DATABASE()"), "DATABASE()\ninformation_schema\n");
    for (sql, number) in [
        ("SHOW EXPLAIN FOR 99", 1094),
        ("SHOW EXPLAIN FOR 1", 1933),
        ("SHOW EXPLAIN FOR 3", 1933),
        ("SHOW EXPLAIN FOR (SELECT 2)", 1204),
        ("SHOW EXPLAIN FOR CONNECTION_ID()", 1204),
        ("SHOW ANALYZE FOR 99", 1094),
        ("SHOW ANALYZE FOR 1", 1933),
        ("SHOW ANALYZE FORMAT=JSON FOR (SELECT 2)", 1204),
    ] {
        let answer = c.run(sql);
        assert!(answer.starts_with(&format!("ERROR {number} ")), "{sql}: {answer}");
    }
    for sql in ["SHOW EXPLAIN FOR 2", "SHOW ANALYZE FOR 2", "SHOW ANALYZE FORMAT=JSON FOR 2"] {
        let refused = other.run(sql);
        assert!(refused.starts_with("ERROR 1227 "), "{sql}: {refused}");
    }
    a.ok("COMMIT");
    assert!(waiter.join().expect("no panic").starts_with("OK"));
}

/// Each target waits for a lock within its plan, having read some rows. The counts are those of MariaDB's
/// `SHOW ANALYZE`: rows read so far by loop, and the percentage that passed.
#[test]
fn rows_of_a_running_statement_are_counted() {
    let (mut server, [mut a, _, mut c]) = three_sessions();
    a.ok("CREATE TABLE u (id INT PRIMARY KEY, v INT) ");
    a.ok("INSERT INTO u SELECT seq, seq % 2 FROM seq_1_to_1000");
    a.ok("CREATE PROCEDURE p() BEGIN UPDATE u SET v = 9 WHERE v = 0 AND id > 0; END");
    a.ok("CREATE VIEW w AS SELECT * FROM u");
    // Target, table, its columns r_rows, filtered and r_filtered.
    let cases = [
        ("UPDATE u SET v = v + 1", "u", "899.00 | 100.00 | 100.00"),
        ("DELETE FROM u WHERE v = 0", "u", "898.00 | 100.00 | 50.00"),
        ("CALL p()", "u", "898.00 | 100.00 | 50.00"),
        ("SELECT u.v FROM u JOIN t ON t.id = u.id % 3 + 1 FOR UPDATE", "u", "899.00 | 100.00 | 100.00"),
        ("SELECT w.v FROM w, t WHERE t.id = w.id % 3 + 1 FOR UPDATE", "u", "899.00 | 100.00 | 100.00"),
        ("UPDATE u, t SET u.v = 5 WHERE t.id = u.id % 3 + 1", "u", "899.00 | 100.00 | 100.00"),
        ("INSERT INTO t SELECT id + 10, v FROM u FOR UPDATE", "u", "899.00 | 100.00 | 100.00"),
        ("SELECT SUM(v) FROM u FOR UPDATE", "u", "899.00 | 100.00 | 100.00"),
    ];
    for (n, (sql, table, expected)) in cases.into_iter().enumerate() {
        a.ok("START TRANSACTION");
        a.ok("UPDATE u SET v = v WHERE id = 900");
        let mut b = server.connect();
        let id = n + 4;
        let waiter = thread::spawn(move || b.run(sql));
        let running = format!("SELECT state FROM information_schema.processlist WHERE id = {id}");
        until(&mut c, &running, |answer| answer.contains("Waiting for row lock"));
        let shown = c.run(&format!("SHOW ANALYZE FOR {id}"));
        let line = shown.lines().find(|line| line.contains(&format!(" | {table} | ")));
        assert!(line.is_some_and(|line| line.contains(expected)), "{sql}: {shown}");
        let document = c.run(&format!("SHOW ANALYZE FORMAT=JSON FOR {id}"));
        assert!(
            document.contains("\"r_loops\": 1") && document.contains("\"r_rows\": 89"),
            "{sql}: {document}"
        );
        c.ok(&format!("KILL QUERY {id}"));
        assert!(waiter.join().expect("no panic").contains("1317"), "{sql}");
        let after = c.run(&format!("SHOW EXPLAIN FOR {id}"));
        assert!(after.starts_with("ERROR 1933 ") || after.starts_with("ERROR 1094 "), "{sql}: {after}");
        a.ok("ROLLBACK");
    }
}

/// The owner of a connection does not see the plans of a definer's program, and no plan shows keys.
#[test]
fn plans_of_definers_need_process() {
    let (mut server, [mut a, mut b, _]) = three_sessions();
    for sql in [
        "CREATE TABLE s (a INT PRIMARY KEY, b VARBINARY(100))",
        "INSERT INTO s VALUES (1, 'x'), (2, 'y')",
        "CREATE USER u@localhost",
        "CREATE PROCEDURE by_definer() UPDATE s SET b = AES_ENCRYPT('x', 'the key') WHERE b <> AES_ENCRYPT('y', 'the key')",
        "CREATE PROCEDURE by_invoker() SQL SECURITY INVOKER UPDATE s SET b = 'z' WHERE b <> 'w'",
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE s SET b = 'z' WHERE b <> 'w'; RETURN 1; END",
        "GRANT EXECUTE ON test.* TO u@localhost",
    ] {
        a.ok(sql);
    }
    // Call of u, and whether u sees the plan that runs.
    for (n, (grant, call, is_seen)) in [
        ("DO 1", "CALL by_definer()", false),
        ("DO 1", "DO f()", false),
        ("GRANT SELECT, UPDATE ON test.s TO u@localhost", "CALL by_invoker()", true),
        ("GRANT PROCESS ON *.* TO u@localhost", "CALL by_definer()", true),
    ]
    .into_iter()
    .enumerate()
    {
        a.ok(grant);
        a.ok("START TRANSACTION");
        a.ok("UPDATE s SET b = b WHERE a = 2");
        let (mut runner, mut viewer) =
            (server.connect_as("u", "localhost"), server.connect_as("u", "localhost"));
        let id = 4 + 2 * n;
        runner.ok("USE test");
        let waiter = thread::spawn(move || runner.run(call));
        let running = format!("SELECT state FROM information_schema.processlist WHERE id = {id}");
        until(&mut b, &running, |answer| answer.contains("Waiting for row lock"));
        for sql in ["SHOW EXPLAIN", "SHOW EXPLAIN FORMAT=JSON", "SHOW ANALYZE", "SHOW ANALYZE FORMAT=JSON"] {
            let answer = viewer.run(&format!("{sql} FOR {id}"));
            assert_eq!(answer.starts_with("ERROR 1227 "), !is_seen, "{call} {sql}: {answer}");
            let of_root = b.run(&format!("{sql} FOR {id}"));
            assert!(!of_root.starts_with("ERROR") && !of_root.contains("the key"), "{call} {sql}: {of_root}");
        }
        a.ok("ROLLBACK");
        let ended = waiter.join().expect("no panic");
        assert!(ended.starts_with("OK"), "{call}: {ended}");
        a.ok("UPDATE s SET b = 'x'");
    }
}

/// A transaction that waits, and for which another one waits, is listed as waiting.
#[test]
fn requests_that_block_others_are_waiting() {
    let (mut server, [mut a, mut b, mut c]) = three_sessions();
    let mut d = server.connect();
    a.ok("START TRANSACTION");
    a.ok("UPDATE t SET v = 5 WHERE id = 1");
    let waiters = [&mut b, &mut d].map(|client| std::mem::replace(client, server.connect()));
    let waiters =
        waiters.map(|mut client| thread::spawn(move || client.run("UPDATE t SET v = 6 WHERE id = 1")));
    let waiting = "SELECT COUNT(*) FROM performance_schema.data_locks WHERE LOCK_STATUS = 'WAITING'";
    until(&mut c, waiting, |answer| answer.ends_with("\n2\n"));
    let granted = c.run("SELECT THREAD_ID FROM performance_schema.data_locks WHERE LOCK_STATUS = 'GRANTED'");
    assert_eq!(granted, "THREAD_ID\n1\n");
    let data = c.run("SELECT DISTINCT LOCK_DATA FROM performance_schema.data_locks");
    assert_eq!(data, "LOCK_DATA\n1\n");
    a.ok("COMMIT");
    waiters.into_iter().for_each(|waiter| assert!(waiter.join().expect("no panic").starts_with("OK")));
}

/// Readers see a plan or none while their target begins and ends statements.
#[test]
fn plans_are_shown_while_their_statements_end() {
    let (mut server, [mut a, mut b, _]) = three_sessions();
    let runner = thread::spawn(move || {
        (0..400).for_each(|n| {
            b.run(&format!("SELECT COUNT(*) FROM t x JOIN t y ON y.v = x.v + {}", n % 7));
            b.run("UPDATE t SET v = v WHERE id = 1");
            b.run("DO 1");
        });
    });
    let mut other = server.connect();
    let reader = |client: &mut Client| {
        let mut seen = 0;
        for n in 0..300 {
            let sql = ["SHOW EXPLAIN FOR 2", "SHOW ANALYZE FOR 2", "SHOW ANALYZE FORMAT=JSON FOR 2"][n % 3];
            let answer = client.run(sql);
            let is_none = answer.starts_with("ERROR 1933 ");
            assert!(is_none || answer.contains("t") && !answer.starts_with("ERROR"), "{answer}");
            seen += usize::from(!is_none);
        }
        seen
    };
    let second = thread::spawn(move || reader(&mut other));
    reader(&mut a);
    second.join().expect("no panic");
    runner.join().expect("no panic");
}

#[test]
fn a_statement_that_waits_for_a_name_says_so() {
    let (_server, [mut a, mut b, mut c]) = three_sessions();
    a.ok("START TRANSACTION");
    a.ok("SELECT * FROM t");
    let waiter = thread::spawn(move || b.run("ALTER TABLE t ADD c INT"));
    let state = "SELECT state FROM information_schema.processlist WHERE id = 2";
    until(&mut c, state, |answer| answer.contains("Waiting for table metadata lock"));
    a.ok("COMMIT");
    assert!(waiter.join().expect("no panic").starts_with("OK"));
}

#[test]
fn the_last_deadlock_is_shown() {
    let (_server, [mut a, mut b, mut c]) = three_sessions();
    assert!(!c.run("SHOW ENGINE INNODB STATUS").contains("LATEST DETECTED DEADLOCK"));
    for (client, id) in [(&mut a, 1), (&mut b, 2)] {
        client.ok("START TRANSACTION");
        client.ok(&format!("UPDATE t SET v = v + 1 WHERE id = {id}"));
    }
    b.ok("UPDATE t SET v = v + 1 WHERE id = 3");
    let other = thread::spawn(move || {
        let answer = b.run("UPDATE t SET v = 7 WHERE id = 1");
        (b, answer)
    });
    until(&mut c, "SELECT COUNT(*) FROM information_schema.innodb_lock_waits", |n| n.ends_with("\n1\n"));
    let refused = a.run("UPDATE t SET v = 8 WHERE id = 2");
    assert!(refused.starts_with("ERROR 1213"), "{refused}");
    assert!(other.join().expect("no panic").1.starts_with("OK"));
    let status = c.run("SHOW ENGINE INNODB STATUS");
    for part in [
        "LATEST DETECTED DEADLOCK",
        "thread 1, rolled back",
        "UPDATE t SET v = 8 WHERE id = 2",
        "UPDATE t SET v = 7 WHERE id = 1",
        "waits for lock X on row 2 of index PRIMARY of `test`.`t`",
        "waits for lock X on row 1 of index PRIMARY of `test`.`t`",
    ] {
        assert!(status.contains(part), "{part}: {status}");
    }
}

#[test]
fn names_in_the_condition_leave_no_row_out() {
    let (_server, [mut a, ..]) = three_sessions();
    a.ok("CREATE TABLE `Tä` (x INT)");
    a.ok("CREATE DATABASE other");
    a.ok("CREATE TABLE other.t (y INT)");
    for (condition, columns) in [
        ("table_schema = 'test' AND table_name = 't'", "id,v"),
        ("table_schema = 'TEST' AND table_name = 'T'", "NULL"),
        ("table_name = 't ' AND table_schema <> 'x'", "NULL"),
        ("'ta' = table_name", "NULL"),
        ("table_name = 't' OR table_name = 'Tä'", "id,v,x,y"),
        ("table_name = 't' AND table_schema = 'other'", "y"),
        ("table_name IN ('t')", "id,v,y"),
        ("table_name = 'nosuch'", "NULL"),
    ] {
        let sql = format!(
            "SELECT GROUP_CONCAT(column_name ORDER BY column_name) AS c FROM information_schema.columns \
             WHERE {condition}"
        );
        assert_eq!(a.run(&sql), format!("c\n{columns}\n"), "{condition}");
    }
    let joined = a.run(
        "SELECT COUNT(*) AS n FROM information_schema.tables t LEFT JOIN information_schema.columns c \
         ON c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.table_name = 't' \
         WHERE t.table_schema IN ('test', 'other')",
    );
    assert_eq!(joined, "n\n4\n");
    assert_eq!(a.run("SHOW COLUMNS FROM t LIKE 'v'").lines().count(), 2);
    assert_eq!(a.run("SHOW INDEX FROM t").lines().count(), 3);
}

/// A statement on the parent waits for the child's metadata lock while the child is renamed.
#[test]
fn a_child_that_is_renamed_meanwhile_is_still_one() {
    for (rename, action, code) in [
        ("RENAME TABLE c TO d", "RESTRICT", Some("ERROR 1451")),
        ("RENAME TABLE c TO d", "CASCADE", None),
        ("ALTER TABLE c RENAME TO d", "SET NULL", None),
    ] {
        let mut server = Server::open(&world::disk()).expect("an empty disk opens");
        let [mut holder, mut renamer, mut writer, mut watcher] = [(); 4].map(|()| server.connect());
        holder.ok("CREATE TABLE p (id INT PRIMARY KEY)");
        holder.ok(&format!(
            "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE {action})"
        ));
        holder.ok("INSERT INTO p VALUES (1)");
        holder.ok("INSERT INTO c VALUES (1, 1)");
        holder.ok("BEGIN");
        holder.run("SELECT * FROM c");
        let renaming = thread::spawn(move || renamer.run(rename));
        until_names_are_waited_for(&mut watcher, 1);
        let writing = thread::spawn(move || writer.run("DELETE FROM p WHERE id = 1"));
        until_names_are_waited_for(&mut watcher, 2);
        holder.ok("COMMIT");
        assert!(renaming.join().expect("no panic").starts_with("OK"), "{rename}");
        let answer = writing.join().expect("no panic");
        assert!(answer.starts_with(code.unwrap_or("OK")), "{rename} {action}: {answer}");
        let orphans =
            "SELECT COUNT(*) FROM d LEFT JOIN p ON d.p = p.id WHERE p.id IS NULL AND d.p IS NOT NULL";
        assert_eq!(watcher.run(orphans), "COUNT(*)\n0\n", "{rename} {action}");
    }
}

/// A change of a parent that waits for its child must see the concurrent change of the child. Writing the
/// child's old definition back would refer to dropped indexes.
#[test]
fn a_parent_that_waits_for_a_changed_child_keeps_the_change() {
    let columns = |table: &str| {
        format!(
            "SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM information_schema.columns \
             WHERE table_name = '{table}'"
        )
    };
    let parent_of = |table: &str| {
        format!(
            "SELECT CONCAT(referenced_table_name, '.', referenced_column_name) FROM \
             information_schema.key_column_usage WHERE table_name = '{table}' AND referenced_table_name <> ''"
        )
    };
    let rename_column = "ALTER TABLE p RENAME COLUMN id TO id2";
    let rename = "ALTER TABLE p RENAME TO p2";
    for (child, parent, found) in [
        ("ALTER TABLE c ADD COLUMN z INT DEFAULT 5", rename_column, Some(("c", "id,p,z", "p.id2"))),
        ("ALTER TABLE c FORCE, ADD KEY zz (id, p)", rename_column, Some(("c", "id,p", "p.id2"))),
        ("RENAME TABLE c TO d", rename_column, Some(("d", "id,p", "p.id2"))),
        ("DROP TABLE c", rename_column, None),
        ("RENAME TABLE c TO d", rename, Some(("d", "id,p", "p2.id"))),
        ("RENAME TABLE c TO d", "RENAME TABLE p TO p2", Some(("d", "id,p", "p2.id"))),
        ("ALTER TABLE c FORCE", rename, Some(("c", "id,p", "p2.id"))),
        ("DROP TABLE c", rename, None),
    ] {
        let mut server = Server::open(&world::disk()).expect("an empty disk opens");
        let [mut holder, mut first, mut second, mut watcher] = [(); 4].map(|()| server.connect());
        holder.ok("CREATE TABLE p (id INT PRIMARY KEY)");
        holder.ok(
            "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        );
        holder.ok("INSERT INTO p VALUES (1), (2)");
        holder.ok("INSERT INTO c VALUES (1, 1), (2, 2), (3, 2)");
        holder.ok("BEGIN");
        holder.run("SELECT * FROM c");
        let of_child = thread::spawn(move || first.run(child));
        until_names_are_waited_for(&mut watcher, 1);
        let of_parent = thread::spawn(move || second.run(parent));
        until_names_are_waited_for(&mut watcher, 2);
        holder.ok("COMMIT");
        let answer = of_child.join().expect("no panic");
        assert!(answer.starts_with("OK"), "{child}, {parent}: {answer}");
        let answer = of_parent.join().expect("no panic");
        assert!(answer.starts_with("OK"), "{child}, {parent}: {answer}");
        let Some((name, its_columns, its_parent)) = found else {
            assert!(watcher.run("SELECT * FROM c").starts_with("ERROR 1146"), "{child}, {parent}");
            watcher.ok("CREATE TABLE c (id INT PRIMARY KEY)");
            continue;
        };
        for (asked, expected) in [(columns(name), its_columns), (parent_of(name), its_parent)] {
            let answer = watcher.run(&asked);
            assert_eq!(answer.lines().nth(1), Some(expected), "{child}, {parent}: {answer}");
        }
        assert_eq!(
            watcher.run(&format!("SELECT COUNT(*) FROM {name}")),
            "COUNT(*)\n3\n",
            "{child}, {parent}"
        );
        // The foreign key is still enforced.
        let (table, column) = match parent {
            p if p == rename_column => ("p", "id2"),
            _ => ("p2", "id"),
        };
        watcher.ok(&format!("DELETE FROM {table} WHERE {column} = 2"));
        assert_eq!(
            watcher.run(&format!("SELECT COUNT(*) FROM {name}")),
            "COUNT(*)\n1\n",
            "{child}, {parent}"
        );
    }
}

/// Waits until a session waits for a row or range lock.
#[track_caller]
fn until_a_lock_is_waited_for(client: &mut Client) {
    until(client, "SELECT COUNT(*) FROM information_schema.innodb_lock_waits", |answer| {
        !answer.contains("\n0\n")
    });
}

/// Under READ COMMITTED, a scan waits for a row that concurrently moves forward in the scanned index, moves
/// to another primary key, or is deleted and inserted again.
#[test]
fn a_row_that_moves_while_a_scan_waits_for_it_is_met() {
    let moves = [
        "UPDATE q SET v = v + 1 WHERE id = 1",
        "UPDATE q SET id = 7 WHERE id = 1",
        "DELETE FROM q WHERE id = 1; INSERT INTO q VALUES (1, 1, 6, 0)",
    ];
    let reads = [
        "UPDATE q SET m = m + 1 WHERE s = 1",
        "UPDATE q SET m = m + 1 WHERE id >= 1",
        "DELETE FROM q WHERE s = 1",
        "SELECT s FROM q WHERE s = 1 ORDER BY v LIMIT 1 FOR UPDATE",
        "SELECT s FROM q WHERE s = 1 LOCK IN SHARE MODE",
    ];
    for (moved, read) in moves.iter().flat_map(|moved| reads.map(|read| (moved, read))) {
        let (_server, [mut a, mut b, mut c]) = three_sessions();
        a.ok("CREATE TABLE q (id INT PRIMARY KEY, s INT, v INT, m INT, KEY s (s, v))");
        a.ok("INSERT INTO q VALUES (1, 1, 5, 0)");
        a.ok("START TRANSACTION");
        moved.split("; ").for_each(|sql| drop(a.run(sql)));
        b.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
        let waiter = thread::spawn(move || b.run(read));
        until_a_lock_is_waited_for(&mut c);
        a.ok("COMMIT");
        let answer = waiter.join().expect("no panic");
        match read.starts_with("SELECT") {
            true => assert_eq!(answer.lines().last(), Some("1"), "{moved}, {read}: {answer}"),
            false => {
                let left = c.run("SELECT COUNT(*) FROM q WHERE m = 0");
                assert!(left.ends_with("\n0\n"), "{moved}, {read}: {answer}, {left}");
            }
        }
    }
}

/// A unique key moves to another row while a session waits for it; the key exists in every state.
#[test]
fn a_key_that_goes_to_another_row_while_it_is_waited_for_is_met() {
    let moves = [
        "REPLACE INTO acct (code, bal) VALUES (10, 0)",
        "DELETE FROM acct WHERE id = 5; INSERT INTO acct VALUES (1, 10, 0)",
        "UPDATE acct SET code = 12 WHERE id = 5; INSERT INTO acct VALUES (9, 10, 0)",
        "UPDATE acct SET code = NULL WHERE id = 5; UPDATE acct SET code = 10 WHERE id = 2; \
         UPDATE acct SET code = 11 WHERE id = 5",
    ];
    let reads = [
        "UPDATE acct SET bal = bal + 1 WHERE code = 10",
        "UPDATE acct SET bal = bal + 1 WHERE code BETWEEN 9 AND 10",
        "UPDATE acct SET bal = bal + 1 WHERE code BETWEEN 9 AND 10 ORDER BY code DESC",
        "UPDATE acct SET bal = bal + 1 WHERE code IN (9, 10)",
        "DELETE FROM acct WHERE code = 10",
        "INSERT INTO acct (code, bal) VALUES (10, 0) ON DUPLICATE KEY UPDATE bal = bal + 1",
        "SELECT code FROM acct WHERE code = 10 FOR UPDATE",
        "SELECT code FROM acct FORCE INDEX (code) WHERE code > 0 AND code < 11 FOR UPDATE",
        "SELECT code FROM acct FORCE INDEX (code) WHERE code < 11 ORDER BY code DESC LIMIT 1 LOCK IN SHARE MODE",
        "SELECT code FROM one JOIN acct ON code = n FOR UPDATE",
        "INSERT INTO kid VALUES (1, 10)",
    ];
    for (moved, read) in moves.iter().flat_map(|moved| reads.map(|read| (moved, read))) {
        for level in ["READ COMMITTED", "REPEATABLE READ"] {
            let (_server, [mut a, mut b, mut c]) = three_sessions();
            a.ok("CREATE TABLE acct (id INT PRIMARY KEY AUTO_INCREMENT, code INT, bal INT, UNIQUE (code))");
            a.ok("CREATE TABLE kid (k INT PRIMARY KEY, code INT, FOREIGN KEY (code) REFERENCES acct (code))");
            a.ok("CREATE TABLE one (n INT PRIMARY KEY)");
            a.ok("INSERT INTO acct VALUES (5, 10, 0), (2, NULL, 0)");
            a.ok("INSERT INTO one VALUES (10)");
            a.ok("START TRANSACTION");
            moved.split("; ").for_each(|sql| drop(a.run(sql)));
            b.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
            let waiter = thread::spawn(move || b.run(read));
            until_a_lock_is_waited_for(&mut c);
            a.ok("COMMIT");
            let answer = waiter.join().expect("no panic");
            let what = format!("{moved}, {read}, {level}: {answer}");
            if read.starts_with("SELECT") {
                assert_eq!(answer.lines().last(), Some("10"), "{what}");
                continue;
            }
            let done = c.run(
                "SELECT (SELECT COUNT(*) FROM acct WHERE code = 10 AND bal = 0) - (SELECT COUNT(*) FROM kid)",
            );
            assert!(done.ends_with("\n0\n"), "{what}, {done}");
        }
    }
}

/// At every isolation level, a child waits for a parent row that another transaction has inserted but not
/// committed.
#[test]
fn a_child_waits_for_a_parent_that_is_being_inserted() {
    for key in ["PRIMARY KEY", "UNIQUE"] {
        for level in ["READ COMMITTED", "REPEATABLE READ"] {
            for (end, expected) in [("COMMIT", "OK 1"), ("ROLLBACK", "ERROR 1452")] {
                let (_server, [mut a, mut b, mut c]) = three_sessions();
                a.ok(&format!("CREATE TABLE par (n INT, id INT NOT NULL, {key} (id))"));
                a.ok("CREATE TABLE kid (k INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES par (id))");
                a.ok("START TRANSACTION");
                a.ok("INSERT INTO par VALUES (0, 1)");
                b.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
                let waiter = thread::spawn(move || b.run("INSERT INTO kid VALUES (1, 1)"));
                until_a_lock_is_waited_for(&mut c);
                a.ok(end);
                let answer = waiter.join().expect("no panic");
                assert!(answer.starts_with(expected), "{key}, {level}, {end}: {answer}");
            }
        }
    }
}

/// A child row moves in its foreign key index, forward or backward, while the change of its parent waits for
/// it.
#[test]
fn a_child_that_moves_while_its_parent_is_changed_stays_no_orphan() {
    for action in ["RESTRICT", "CASCADE", "SET NULL"] {
        for to in ["9", "2"] {
            for change in ["DELETE FROM par WHERE id = 1", "UPDATE par SET id = 2 WHERE id = 1"] {
                let (_server, [mut a, mut b, mut c]) = three_sessions();
                a.ok("CREATE TABLE par (id INT PRIMARY KEY)");
                a.ok("INSERT INTO par VALUES (1)");
                a.ok(&format!(
                    "CREATE TABLE kid (k INT PRIMARY KEY, a INT, x INT, KEY ax (a, x), FOREIGN KEY (a) \
                     REFERENCES par (id) ON DELETE {action} ON UPDATE {action})"
                ));
                a.ok("INSERT INTO kid VALUES (1, 1, 5)");
                a.ok("START TRANSACTION");
                a.ok(&format!("UPDATE kid SET x = {to} WHERE k = 1"));
                b.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
                let waiter = thread::spawn(move || b.run(change));
                until_a_lock_is_waited_for(&mut c);
                a.ok("COMMIT");
                let answer = waiter.join().expect("no panic");
                let orphans = c.run(
                    "SELECT COUNT(*) FROM kid LEFT JOIN par ON par.id = a \
                     WHERE a IS NOT NULL AND par.id IS NULL",
                );
                assert!(orphans.ends_with("\n0\n"), "{action}, {to}, {change}: {answer}, {orphans}");
            }
        }
    }
}

/// Functions and triggers lock what they name when the calling statement begins, branches that never run
/// included, until the transaction ends.
#[test]
fn names_of_programs_are_locked_before_the_statement_runs() {
    let (_server, [mut a, mut b, mut c]) = three_sessions();
    for sql in [
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE TABLE read_never (a INT)",
        "CREATE TABLE written_never (a INT)",
        "CREATE TABLE of_view (a INT)",
        "CREATE VIEW v AS SELECT a FROM of_view",
        "CREATE TABLE fires (a INT)",
        "CREATE TABLE logged (a INT)",
        "CREATE PROCEDURE called() DELETE FROM written_never",
        "CREATE FUNCTION inner_f() RETURNS INT BEGIN IF 0 THEN CALL called(); END IF; RETURN 1; END",
        "CREATE FUNCTION f() RETURNS INT BEGIN DECLARE n INT; IF 0 THEN SELECT COUNT(*) INTO n FROM read_never, v; \
         END IF; RETURN inner_f(); END",
        "CREATE TRIGGER g AFTER INSERT ON fires FOR EACH ROW IF NEW.a > 5 THEN INSERT INTO logged VALUES (1); \
         END IF",
    ] {
        a.ok(sql);
    }
    b.ok("SET lock_wait_timeout = 0");
    for (statement, locked) in [
        (
            "SELECT f()",
            &["read_never", "written_never", "of_view", "FUNCTION f", "FUNCTION inner_f", "PROCEDURE called"]
                [..],
        ),
        ("INSERT INTO fires VALUES (1)", &["logged", "fires"]),
    ] {
        a.ok("START TRANSACTION");
        a.run(statement);
        for name in locked {
            let sql = match name.contains(' ') {
                true => format!("DROP {name}"),
                false => format!("ALTER TABLE {name} ADD b INT"),
            };
            let answer = b.run(&sql);
            assert!(answer.starts_with("ERROR 1205"), "{statement}; {sql}: {answer}");
        }
        a.ok("COMMIT");
        for name in locked.iter().filter(|name| !name.contains(' ')) {
            b.ok(&format!("ALTER TABLE {name} ADD b INT, ALGORITHM = COPY"));
            b.ok(&format!("ALTER TABLE {name} DROP b"));
        }
    }
    // A name that is missing is kept from being created.
    a.ok("CREATE FUNCTION misses() RETURNS INT BEGIN IF 0 THEN DELETE FROM missing; END IF; RETURN 1; END");
    a.ok("START TRANSACTION");
    a.run("SELECT misses()");
    assert!(b.run("CREATE TABLE missing (a INT)").starts_with("ERROR 1205"));
    a.ok("COMMIT");
    b.ok("CREATE TABLE missing (a INT)");
    // A view that is replaced while the statement waits: its new tables are locked.
    c.ok("LOCK TABLES of_view WRITE");
    let waiter = thread::spawn(move || {
        a.ok("START TRANSACTION");
        (a.run("SELECT f()"), a)
    });
    until_names_are_waited_for(&mut c, 1);
    b.ok("CREATE OR REPLACE VIEW v AS SELECT a FROM logged");
    assert!(b.run("DROP FUNCTION inner_f").starts_with("ERROR 1205"), "routines are locked first");
    c.ok("UNLOCK TABLES");
    let (answer, mut a) = waiter.join().expect("no panic");
    assert_eq!(answer, "f()\n1\n");
    assert!(b.run("ALTER TABLE logged ADD b INT").starts_with("ERROR 1205"));
    b.ok("ALTER TABLE of_view ADD b INT");
    a.ok("COMMIT");
}

/// Two programs name two tables in opposite orders, while a third session locks both tables again and again.
#[test]
fn programs_that_name_tables_in_opposite_orders_do_not_deadlock() {
    let (_server, [mut a, mut b, mut c]) = three_sessions();
    for sql in [
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE TABLE x (a INT)",
        "CREATE TABLE y (a INT)",
        "CREATE FUNCTION xy() RETURNS INT BEGIN INSERT INTO x VALUES (1); RETURN (SELECT COUNT(*) FROM y); END",
        "CREATE FUNCTION yx() RETURNS INT BEGIN INSERT INTO y VALUES (1); RETURN (SELECT COUNT(*) FROM x); END",
    ] {
        a.ok(sql);
    }
    let calls = |mut client: Client, call: &'static str| {
        thread::spawn(move || {
            for round in 0..200 {
                client.ok("START TRANSACTION");
                let answer = client.run(call);
                assert!(!answer.starts_with("ERROR"), "{call}, round {round}: {answer}");
                client.ok("ROLLBACK");
            }
        })
    };
    a.ok("SET innodb_lock_wait_timeout = 60");
    b.ok("SET innodb_lock_wait_timeout = 60");
    let (first, second) = (calls(a, "SELECT xy()"), calls(b, "SELECT yx()"));
    while !first.is_finished() || !second.is_finished() {
        c.ok("LOCK TABLES y WRITE, x WRITE");
        c.ok("UNLOCK TABLES");
    }
    first.join().expect("no error");
    second.join().expect("no error");
}
