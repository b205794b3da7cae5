//! XA transactions across sessions and restarts, with a crash at every operation: a prepared branch keeps its
//! locks until it is ended, and it is ended completely or not at all (I2).

mod world;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cohort_binlog::event::Event;
use cohort_config::{VarId, VarValue};
use cohort_locks::KillLevel;
use cohort_vfs::{Fault, FaultFs, MemFs, SharedFs};
use world::shut::Shut;
use world::{Client, Server};

const NOTA: &str = "ERROR 1397 (XAE04): XAER_NOTA: Unknown XID\n";
const BUSY: &str = "ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction\n";

fn prepared(client: &mut Client, name: &str, statements: &[&str]) {
    client.ok(&format!("XA START '{name}'"));
    statements.iter().for_each(|statement| client.ok(statement));
    client.ok(&format!("XA END '{name}'"));
    client.ok(&format!("XA PREPARE '{name}'"));
}

fn server_with_table(disk: &SharedFs) -> Server {
    let mut server = Server::open(disk).expect("opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, k INT, UNIQUE (k))");
    client.ok("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
    server
}

const ROWS: &str = "SELECT id, k FROM t ORDER BY id";

#[test]
fn a_prepared_branch_is_its_sessions_until_that_ends() {
    let mut server = server_with_table(&world::disk());
    let (mut a, mut b) = (server.connect(), server.connect());
    prepared(&mut a, "x", &["UPDATE t SET k = 11 WHERE id = 1", "INSERT INTO t VALUES (4, 40)"]);
    let before = "id | k\n1 | 10\n2 | 20\n3 | 30\n";
    assert_eq!(b.run(ROWS), before, "nothing of it is visible");
    assert_eq!(b.run("XA COMMIT 'x'"), NOTA);
    assert_eq!(b.run("XA ROLLBACK 'x'"), NOTA);
    assert_eq!(b.run("XA START 'x'"), "ERROR 1440 (XAE08): XAER_DUPID: The XID already exists\n");
    assert!(b.run("XA RECOVER").contains("1 | 1 | 0 | x"), "others see it");
    assert_eq!(b.run("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT"), BUSY);
    drop(a);
    assert_eq!(b.run("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT"), BUSY, "it keeps its locks");
    assert_eq!(b.run("XA COMMIT 'x'"), "OK\n");
    assert_eq!(b.run(ROWS), "id | k\n1 | 11\n2 | 20\n3 | 30\n4 | 40\n");
    assert_eq!(b.run("SELECT k FROM t WHERE id = 1 FOR UPDATE NOWAIT"), "k\n11\n");
    assert_eq!(b.run("XA COMMIT 'x'"), NOTA);
}

#[test]
fn unprepared_branches_end_with_their_session() {
    let mut server = server_with_table(&world::disk());
    for rest in [&[][..], &["XA END 'x'"][..]] {
        let (mut a, mut b) = (server.connect(), server.connect());
        a.ok("XA START 'x'");
        a.ok("UPDATE t SET k = 11 WHERE id = 1");
        rest.iter().for_each(|statement| a.ok(statement));
        assert_eq!(b.run("XA START 'x'"), "ERROR 1440 (XAE08): XAER_DUPID: The XID already exists\n");
        a.session.reset();
        assert_eq!(b.run("XA RECOVER"), "formatID | gtrid_length | bqual_length | data\n");
        assert_eq!(b.run("SELECT k FROM t WHERE id = 1 FOR UPDATE NOWAIT"), "k\n10\n");
        b.ok("XA START 'x'");
        b.ok("XA END 'x'");
        b.ok("XA ROLLBACK 'x'");
        // A reset session behaves like a new one.
        a.ok("XA START 'y'");
        a.ok("XA END 'y'");
        a.ok("XA COMMIT 'y' ONE PHASE");
    }
    let (mut a, mut b) = (server.connect(), server.connect());
    prepared(&mut a, "x", &["DELETE FROM t WHERE id = 2"]);
    a.session.reset();
    assert_eq!(a.run(ROWS), "id | k\n1 | 10\n2 | 20\n3 | 30\n");
    assert_eq!(b.run("XA ROLLBACK 'x'"), "OK\n", "reset leaves it to others");
}

/// The structures that XA END creates to refuse tables are reused for the session's next branch.
#[test]
fn each_branch_of_a_session_refuses_tables_from_its_end_on() {
    let mut server = server_with_table(&world::disk());
    let (mut a, mut b) = (server.connect(), server.connect());
    let refused =
        "ERROR 1399 (XAE07): XAER_RMFAIL: The command cannot be executed when global transaction is in the  ";
    for k in [11, 12, 13] {
        a.ok("XA START 'x'");
        a.ok(&format!("UPDATE t SET k = {k} WHERE id = 1"));
        a.ok("XA END 'x'");
        assert_eq!(a.run(ROWS), format!("{refused}IDLE state\n"));
        a.ok("XA PREPARE 'x'");
        assert_eq!(a.run(ROWS), format!("{refused}PREPARED state\n"));
        a.ok("XA COMMIT 'x'");
        assert_eq!(a.run("SELECT k FROM t WHERE id = 1"), format!("k\n{k}\n"));
        // Tables that the session locks between two branches must be unlocked again.
        a.ok("LOCK TABLES t WRITE");
        a.ok("UNLOCK TABLES");
        b.ok("UPDATE t SET k = 10 WHERE id = 1");
    }
}

/// I5: a crash can undo the end of a branch before it is published, so no reply may reveal it, not even an
/// error.
#[test]
fn no_client_learns_of_an_end_before_it_is_published() {
    for (end, question, answer) in [
        ("XA COMMIT 'x'", "XA COMMIT 'x'", NOTA),
        ("XA ROLLBACK 'x'", "XA ROLLBACK 'x'", NOTA),
        ("XA COMMIT 'x'", "SELECT COUNT(*) FROM information_schema.innodb_trx", "COUNT(*)\n0\n"),
    ] {
        let mut server = server_with_table(&world::disk());
        let gate = Arc::new(Shut::default());
        server.db.commit.set_replica_gate(gate.clone());
        let mut a = server.connect();
        prepared(&mut a, "x", &["UPDATE t SET k = 11 WHERE id = 1"]);
        drop(a);
        let (mut b, mut c) = (server.connect(), server.connect());
        gate.shut();
        let ending = std::thread::spawn(move || b.run(end));
        gate.wait_durable(end);
        let asking = std::thread::spawn(move || c.run(question));
        std::thread::sleep(Duration::from_millis(200));
        assert!(!asking.is_finished(), "{question} is answered too early");
        gate.open(&server.db.commit);
        assert_eq!(ending.join().expect("it ends"), "OK\n");
        assert_eq!(asking.join().expect("it is answered"), answer);
    }
}

/// As in MariaDB, only its name remains.
#[test]
fn a_branch_that_has_only_read_goes_with_its_session() {
    let disk = world::disk();
    let mut server = server_with_table(&disk);
    let mut b = server.connect();
    for end in ["XA COMMIT 'x'", "XA ROLLBACK 'x'"] {
        let (mut a, mut c) = (server.connect(), server.connect());
        prepared(&mut a, "x", &["SELECT * FROM t WHERE id = 1 FOR UPDATE"]);
        prepared(&mut c, "y", &["SELECT * FROM t WHERE id = 2 FOR UPDATE"]);
        assert_eq!(b.run("SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT"), BUSY);
        assert_eq!(b.run(end), NOTA);
        drop(a);
        assert_eq!(b.run("SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT"), "id\n1\n");
        assert!(b.run("XA RECOVER").contains("| x"));
        assert!(b.run(end).starts_with("ERROR 1402 (XA100): XA_RBROLLBACK"));
        assert_eq!(b.run(end), NOTA);
        assert_eq!(b.run("SELECT id FROM t WHERE id = 2 FOR UPDATE NOWAIT"), BUSY);
        c.ok(&end.replace('x', "y"));
        assert_eq!(b.run("SELECT id FROM t WHERE id = 2 FOR UPDATE NOWAIT"), "id\n2\n");
        assert_eq!(b.run("XA RECOVER").lines().count(), 1);
    }
}

#[test]
fn a_deadlock_leaves_a_branch_that_can_only_be_rolled_back() {
    let mut server = server_with_table(&world::disk());
    for end in ["XA COMMIT 'x'", "XA COMMIT 'x' ONE PHASE", "XA ROLLBACK 'x'"] {
        let (mut a, mut b) = (server.connect(), server.connect());
        a.ok("XA START 'x'");
        a.ok("UPDATE t SET k = k + 1 WHERE id = 1");
        b.ok("BEGIN");
        b.ok("UPDATE t SET k = k + 1 WHERE id = 2");
        b.ok("UPDATE t SET k = k + 1 WHERE id = 3");
        let deadlock = std::thread::scope(|scope| {
            let of_b = scope.spawn(|| b.run("UPDATE t SET k = k + 1 WHERE id = 1"));
            while a.session.database().locks.stats().row_waits_current == 0 {
                std::thread::yield_now();
            }
            let of_a = a.run("UPDATE t SET k = k + 1 WHERE id = 2");
            assert!(of_b.join().expect("ran").starts_with("OK"));
            of_a
        });
        assert!(deadlock.starts_with("ERROR 1213"), "{deadlock}");
        b.ok("ROLLBACK");
        let only = "ERROR 1399 (XAE07): XAER_RMFAIL: The command cannot be executed when global transaction is in the  ROLLBACK \
                    ONLY state\n";
        for refused in ["XA END 'x'", "XA PREPARE 'x'", "SELECT * FROM t", "COMMIT", "BEGIN", "SAVEPOINT s"] {
            assert_eq!(a.run(refused), only, "{refused}");
        }
        assert_eq!(a.run("SELECT 1"), "1\n1\n");
        let answer = a.run(end);
        match end.contains("COMMIT") {
            true => assert!(answer.starts_with("ERROR 1614 (XA102): XA_RBDEADLOCK"), "{answer}"),
            false => assert_eq!(answer, "OK\n"),
        }
        assert_eq!(a.run(ROWS), "id | k\n1 | 10\n2 | 20\n3 | 30\n");
        a.ok("XA START 'x'");
        a.ok("XA END 'x'");
        a.ok("XA ROLLBACK 'x'");
    }
}

#[test]
fn a_wait_that_rolls_back_the_branch_is_distinct_by_its_commit() {
    let mut server = server_with_table(&world::disk());
    server.db.globals.put(VarId::InnodbRollbackOnTimeout, &VarValue::Bool(true));
    for end in ["XA COMMIT 'x'", "XA COMMIT 'x' ONE PHASE", "XA ROLLBACK 'x'"] {
        let (mut a, mut b) = (server.connect(), server.connect());
        b.ok("BEGIN");
        b.ok("UPDATE t SET k = 12 WHERE id = 2");
        a.ok("SET innodb_lock_wait_timeout = 0");
        a.ok("XA START 'x'");
        a.ok("UPDATE t SET k = 11 WHERE id = 1");
        assert_eq!(a.run("UPDATE t SET k = 13 WHERE id = 2"), BUSY);
        let refused = a.run("XA END 'x'");
        assert!(refused.starts_with("ERROR 1399") && refused.contains("ROLLBACK ONLY"), "{refused}");
        b.ok("ROLLBACK");
        let answer = a.run(end);
        match end.contains("COMMIT") {
            true => assert_eq!(
                answer,
                "ERROR 1613 (XA106): XA_RBTIMEOUT: Transaction branch was rolled back: took too long\n"
            ),
            false => assert_eq!(answer, "OK\n"),
        }
        assert_eq!(a.run(ROWS), "id | k\n1 | 10\n2 | 20\n3 | 30\n");
    }
}

/// As in MariaDB, a branch can be prepared but not ended, unless it has only read.
#[test]
fn read_only_lets_branches_be_prepared_and_not_ended() {
    const READ_ONLY: &str = "ERROR 1290 (HY000): The MariaDB server is running with the --read-only option so it cannot execute this statement\n";
    let disk = world::disk();
    let mut server = server_with_table(&disk);
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT ALL ON test.* TO u@localhost");
    let set = |root: &mut Client, on: u8| root.ok(&format!("SET GLOBAL read_only = {on}"));
    let (mut a, mut b) = (server.connect_as("u", "localhost"), server.connect_as("u", "localhost"));
    a.ok("USE test");
    a.ok("XA START 'x'");
    a.ok("UPDATE t SET k = 11 WHERE id = 1");
    a.ok("XA END 'x'");
    set(&mut root, 1);
    for refused in ["XA COMMIT 'x' ONE PHASE", "XA ROLLBACK 'x'"] {
        assert_eq!(a.run(refused), READ_ONLY, "{refused}");
    }
    a.ok("XA PREPARE 'x'");
    for refused in ["XA COMMIT 'x'", "XA ROLLBACK 'x'"] {
        assert_eq!(a.run(refused), READ_ONLY, "{refused}");
    }
    drop(a);
    for refused in ["XA COMMIT 'x'", "XA ROLLBACK 'x'"] {
        assert_eq!(b.run(refused), READ_ONLY, "{refused}");
    }
    b.ok("USE test");
    prepared(&mut b, "r", &["SELECT * FROM t WHERE id = 2"]);
    b.ok("XA COMMIT 'r'");
    root.ok("XA COMMIT 'x'");
    set(&mut root, 0);
    b.ok("BEGIN");
    b.ok("UPDATE t SET k = 21 WHERE id = 2");
    set(&mut root, 1);
    assert_eq!(b.run("COMMIT"), READ_ONLY);
    set(&mut root, 0);
    b.ok("COMMIT");
    assert_eq!(b.run(ROWS), "id | k\n1 | 11\n2 | 20\n3 | 30\n", "it was rolled back");
}

/// Temporary tables belong to the session that ends the branch; if the session disconnects, they are dropped.
#[test]
fn changes_of_temporary_tables_share_the_end_of_their_branch() {
    let mut server = server_with_table(&world::disk());
    let mut a = server.connect();
    a.ok("CREATE TEMPORARY TABLE own (id INT)");
    for (more, end, rows) in [
        (&[][..], "XA ROLLBACK 'x'", "COUNT(*)\n0\n"),
        (&[][..], "XA COMMIT 'x'", "COUNT(*)\n1\n"),
        (&["UPDATE t SET k = k + 1"][..], "XA ROLLBACK 'x'", "COUNT(*)\n1\n"),
        (&["UPDATE t SET k = k + 1"][..], "XA COMMIT 'x'", "COUNT(*)\n2\n"),
    ] {
        prepared(&mut a, "x", &[&["INSERT INTO own VALUES (1)"], more].concat());
        a.ok(end);
        assert_eq!(a.run("SELECT COUNT(*) FROM own"), rows, "{more:?} {end}");
    }
}

/// The error must name the cause, not only report that the branch is gone.
#[test]
fn a_prepare_that_is_refused_says_why() {
    let mut server = server_with_table(&world::disk());
    let (mut a, mut b) = (server.connect(), server.connect());
    a.ok("SET lock_wait_timeout = 0");
    b.ok("FLUSH TABLES WITH READ LOCK");
    for end in ["XA PREPARE 'x'", "XA COMMIT 'x' ONE PHASE"] {
        b.ok("UNLOCK TABLES");
        a.ok("XA START 'x'");
        a.ok("UPDATE t SET k = 11 WHERE id = 1");
        a.ok("XA END 'x'");
        b.ok("FLUSH TABLES WITH READ LOCK");
        assert_eq!(a.run(end), BUSY, "{end}");
        assert_eq!(a.run("XA ROLLBACK 'x'"), NOTA, "{end}: it was rolled back");
        assert_eq!(a.run("XA RECOVER").lines().count(), 1);
    }
}

/// Every step of a branch checks the memory limits.
#[test]
fn memory_of_a_branch_is_charged_until_its_end() {
    let mut server = server_with_table(&world::disk());
    let mut a = server.connect();
    a.ok("CREATE TABLE big (id INT PRIMARY KEY, s VARCHAR(2000))");
    let rows: Vec<String> = (0..1000).map(|id| format!("({id}, REPEAT('x', 2000))")).collect();
    let fill = format!("INSERT INTO big VALUES {}", rows.join(","));
    let refused = "ERROR 1290 (HY000): The MariaDB server is running with the --max-session-mem-used=";
    let mib = |client: &Client| client.session.process().memory().used() >> 20;
    let of_server = |client: &Client| client.session.database().processes.memory().used() >> 20;
    // The limit admits the writes, but not their commit record.
    a.ok("XA START 'x'");
    a.ok(&fill);
    assert!(mib(&a) >= 2, "{}", mib(&a));
    a.ok("XA END 'x'");
    a.ok("SET max_session_mem_used = 3000000");
    let answer = a.run("XA PREPARE 'x'");
    assert!(answer.starts_with(refused), "{answer}");
    a.ok("SET max_session_mem_used = DEFAULT");
    assert_eq!((mib(&a), of_server(&a)), (0, 0), "it was rolled back");
    prepared(&mut a, "x", &[&fill]);
    assert_eq!(mib(&a), 0, "the session may go");
    assert!(of_server(&a) >= 2, "{}", of_server(&a));
    a.ok("SET max_session_mem_used = 1000000");
    let answer = a.run("XA COMMIT 'x'");
    assert!(answer.starts_with(refused), "{answer}");
    a.ok("SET max_session_mem_used = DEFAULT");
    a.ok("XA COMMIT 'x'");
    assert_eq!(a.run("SELECT COUNT(*) FROM big"), "COUNT(*)\n1000\n");
    // Locks of rows that were only read.
    a.ok("SET max_session_mem_used = 100000");
    a.ok("XA START 'y'");
    let answer = a.run("SELECT * FROM big FOR UPDATE");
    assert!(answer.contains(refused), "{}", answer.chars().take(200).collect::<String>());
    a.ok("SET max_session_mem_used = DEFAULT");
    a.ok("XA END 'y'");
    a.ok("XA ROLLBACK 'y'");
    assert_eq!((mib(&a), of_server(&a)), (0, 0));
}

#[test]
fn kill_ends_both_halves_of_a_large_branch() {
    const KILLED: &str = "ERROR 1317 (70100): Query execution was interrupted\n";
    let mut server = server_with_table(&world::disk());
    let (mut a, mut b) = (server.connect(), server.connect());
    a.ok("CREATE TABLE many (id INT PRIMARY KEY)");
    let rows: Vec<String> = (0..30_000).map(|id| format!("({id})")).collect();
    let fill = format!("INSERT INTO many VALUES {}", rows.join(","));
    let process = Arc::clone(a.session.process());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let text = process.snapshot(&|_| None).info.unwrap_or_default();
                if text.starts_with("XA PREPARE") || text.starts_with("XA COMMIT") {
                    process.kill(KillLevel::Query);
                }
                std::thread::yield_now();
            }
        });
        // The kill may arrive too late.
        let (mut prepares, mut commits) = (0, 0);
        for _ in 0..100 {
            a.ok("XA START 'x'");
            a.ok(&fill);
            a.ok("XA END 'x'");
            match a.run("XA PREPARE 'x'").as_str() {
                KILLED => prepares += 1,
                _ => {
                    let is_killed = a.run("XA COMMIT 'x'") == KILLED;
                    commits += u32::from(is_killed);
                    let is_left = b.run("XA RECOVER").lines().count() == 2;
                    assert_eq!(is_left, is_killed);
                    a.ok(if is_killed { "XA ROLLBACK 'x'" } else { "DELETE FROM many" });
                }
            }
            assert_eq!(b.run("SELECT COUNT(*) FROM many"), "COUNT(*)\n0\n");
            if prepares > 0 {
                break;
            }
        }
        assert!(prepares > 0, "no PREPARE was killed, {commits} COMMITs were");
        commits = 0;
        let mut d = server.connect();
        for _ in 0..100 {
            prepared(&mut d, "y", &[&fill]);
            d.session.reset();
            let is_killed = a.run("XA COMMIT 'y'") == KILLED;
            commits += u32::from(is_killed);
            d.ok("USE test");
            d.ok(if is_killed { "XA ROLLBACK 'y'" } else { "DELETE FROM many" });
            if is_killed {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(commits > 0, "no COMMIT was killed");
    });
}

/// After a restart or a crash, the rows, tables, keys and parents of prepared branches are locked again.
#[test]
fn a_restart_gives_prepared_branches_their_locks_back() {
    let disk = world::disk();
    let mut server = server_with_table(&disk);
    let mut client = server.connect();
    client.ok("CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))");
    client.ok("CREATE TABLE other (id INT PRIMARY KEY)");
    client.ok("CREATE TABLE keyless (n INT)");
    client.ok("INSERT INTO other VALUES (1)");
    let branch = [
        "UPDATE t SET k = 11 WHERE id = 1",
        "INSERT INTO t (k) VALUES (40)",
        "DELETE FROM t WHERE id = 3",
        "INSERT INTO keyless VALUES (1)",
    ];
    prepared(&mut client, "x", &branch);
    let mut second = server.connect();
    prepared(
        &mut second,
        "y",
        &["INSERT INTO child VALUES (1, 2)", "SELECT * FROM other WHERE id = 1 FOR UPDATE"],
    );
    drop((client, second));
    for round in 0..3 {
        match round {
            0 => {}
            1 => server.db.commit.checkpoint().expect("in memory"),
            _ => server.db.commit.close().expect("in memory"),
        }
        drop(server);
        server = Server::open(&disk).expect("recovers");
        let mut client = server.connect();
        client.ok("SET innodb_lock_wait_timeout = 0, lock_wait_timeout = 0");
        assert_eq!(client.run(ROWS), "id | k\n1 | 10\n2 | 20\n3 | 30\n");
        client.ok("INSERT INTO t (k) VALUES (50)");
        for refused in [
            "SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT",
            "SELECT * FROM t WHERE id = 3 LOCK IN SHARE MODE NOWAIT",
            "SELECT * FROM other WHERE id = 1 FOR UPDATE NOWAIT",
            "INSERT INTO t VALUES (9, 40)",
            "INSERT INTO t VALUES (9, 11)",
            "INSERT INTO t VALUES (9, 10)",
            "DELETE FROM t WHERE id = 2",
            "SELECT * FROM t WHERE id > 3 FOR UPDATE",
            "DROP TABLE t",
            "ALTER TABLE child ADD c INT",
        ] {
            let answer = client.run(refused);
            assert!(answer.starts_with("ERROR 1205"), "round {round}: {refused}: {answer}");
        }
        let own = client.run("SELECT id FROM t WHERE k = 50");
        assert!(own.lines().last().is_some_and(|id| id.parse::<u32>().is_ok_and(|id| id > 4)), "{own}");
        client.ok("DELETE FROM t WHERE k = 50");
        client.ok("INSERT INTO keyless VALUES (2)");
        assert_eq!(
            client.run("SELECT trx_mysql_thread_id FROM information_schema.innodb_trx").lines().count(),
            3
        );
    }
    let mut client = server.connect();
    client.ok("XA COMMIT 'x'");
    client.ok("XA ROLLBACK 'y'");
    assert_eq!(client.run(ROWS), "id | k\n1 | 11\n2 | 20\n4 | 40\n");
    client.ok("DELETE FROM t WHERE id = 2");
    assert_eq!(client.run("SELECT COUNT(*), SUM(n) FROM keyless"), "COUNT(*) | SUM(n)\n4 | 7\n");
    client.ok("DROP TABLE child, t, other, keyless");
    drop(client);
    drop(server);
    let mut server = Server::open(&disk).expect("recovers");
    assert_eq!(server.connect().run("XA RECOVER"), "formatID | gtrid_length | bqual_length | data\n");
}

/// Returns the texts of the XA events in the binary log.
fn logged(server: &Server, disk: &SharedFs) -> Vec<String> {
    let mut found = Vec::new();
    for path in server.binlog() {
        let mut reader = cohort_binlog::EventReader::open(disk, Path::new(&path)).expect("opens");
        while let Some(raw) = reader.next_event().expect("sound") {
            match reader.decode(&raw).expect("decodes") {
                Event::Gtid(gtid) => {
                    let xid = gtid.xid.map_or(String::new(), |xid| xid.to_sql());
                    found.push(format!("GTID {} {xid}", gtid.flags2));
                }
                Event::Query(query) => found.push(String::from_utf8_lossy(&query.sql).into_owned()),
                Event::Rows(_) => found.push("rows".to_owned()),
                Event::Xid(_) => found.push("XID".to_owned()),
                Event::XaPrepare(event) => found.push(format!("XA_PREPARE {}", event.xid.to_sql())),
                _ => {}
            }
        }
    }
    found
}

#[test]
fn the_binary_log_holds_both_halves_as_mariadb_writes_them() {
    let disk = world::disk();
    let mut server = server_with_table(&disk);
    let mut client = server.connect();
    let from = logged(&server, &disk).len();
    prepared(&mut client, "a", &["INSERT INTO t VALUES (4, 40)"]);
    client.ok("XA COMMIT 'a'");
    prepared(&mut client, "b", &["INSERT INTO t VALUES (5, 50)"]);
    client.ok("XA ROLLBACK 'b'");
    prepared(&mut client, "ro", &["SELECT * FROM t"]);
    client.ok("XA COMMIT 'ro'");
    client.ok("XA START 'c'");
    client.ok("INSERT INTO t VALUES (6, 60)");
    client.ok("XA END 'c'");
    client.ok("XA COMMIT 'c' ONE PHASE");
    client.ok("XA START 'd'");
    client.ok("INSERT INTO t VALUES (7, 70)");
    client.ok("XA END 'd'");
    client.ok("XA ROLLBACK 'd'");
    client.ok("SET sql_log_bin = 0");
    prepared(&mut client, "e", &["INSERT INTO t VALUES (8, 80)"]);
    drop(client);
    server.connect().ok("XA COMMIT 'e'");
    assert_eq!(
        logged(&server, &disk)[from..],
        [
            "GTID 76 X'61',X'',1",
            "rows",
            "XA END X'61',X'',1",
            "XA_PREPARE X'61',X'',1",
            "GTID 141 X'61',X'',1",
            "XA COMMIT X'61',X'',1",
            "GTID 76 X'62',X'',1",
            "rows",
            "XA END X'62',X'',1",
            "XA_PREPARE X'62',X'',1",
            "GTID 141 X'62',X'',1",
            "XA ROLLBACK X'62',X'',1",
            "GTID 12 ",
            "rows",
            "XID",
        ]
    );
}

/// Steps of one connection each. A step writes one group to the binary log, then disconnects.
const STEPS: [&[&str]; 14] = [
    &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, k INT, UNIQUE (k))"],
    &["INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40)"],
    &[
        "XA START 'a'",
        "UPDATE t SET k = 11 WHERE id = 1",
        "INSERT INTO t (k) VALUES (50)",
        "XA END 'a'",
        "XA PREPARE 'a'",
    ],
    &["INSERT INTO t (k) VALUES (60)"],
    &["XA START 'b','q',9", "DELETE FROM t WHERE id = 2", "XA END 'b','q',9", "XA PREPARE 'b','q',9"],
    &["UPDATE t SET k = 41 WHERE id = 4"],
    &["XA COMMIT 'a'"],
    &[
        "XA START 'c'",
        "UPDATE t SET k = 12 WHERE id = 1",
        "UPDATE t SET k = 42 WHERE id = 4",
        "XA END 'c'",
        "XA PREPARE 'c'",
    ],
    &["INSERT INTO t (k) VALUES (70)"],
    &["XA ROLLBACK 'b','q',9"],
    &["DELETE FROM t WHERE id = 2"],
    &["XA START 'd'", "INSERT INTO t (k) VALUES (80)", "XA END 'd'", "XA COMMIT 'd' ONE PHASE"],
    &["XA COMMIT 'c'"],
    &["UPDATE t SET k = k + 1000"],
];

/// Returns rows, prepared branches, and the locked rows.
fn dump(server: &mut Server) -> String {
    let mut client = server.connect();
    let rows = client.run(ROWS);
    let mut text = rows.clone() + &client.run("XA RECOVER FORMAT='SQL'");
    for line in rows.lines().skip(1) {
        let id = line.split(' ').next().unwrap_or_default();
        let answer = client.run(&format!("SELECT id FROM t WHERE id = {id} FOR UPDATE NOWAIT"));
        if answer == BUSY {
            text += &format!("locked {id}\n");
        }
    }
    text
}

/// Runs steps up to the first failure. Returns the number of acknowledged steps.
fn run_from(server: &mut Server, from: usize) -> usize {
    for (n, step) in STEPS.iter().enumerate().skip(from) {
        let mut client = server.connect();
        if step.iter().any(|statement| client.run(statement).contains("ERROR")) {
            return n;
        }
        drop(client);
        if n % 3 == 2 && server.db.commit.checkpoint().is_err() {
            return n + 1;
        }
    }
    STEPS.len()
}

fn groups(server: &Server, disk: &SharedFs) -> usize {
    logged(server, disk).iter().filter(|text| text.starts_with("GTID")).count()
}

fn check_recovery(left: MemFs, acknowledged: usize, states: &[String], what: &str) {
    let disk: SharedFs = Arc::new(left);
    let mut server = Server::open(&disk).unwrap_or_else(|e| panic!("{what}: does not recover: {e}"));
    let done = groups(&server, &disk);
    assert!(done >= acknowledged, "{what}: {acknowledged} acknowledged, {done} in the binary log");
    assert_eq!(dump(&mut server), states[done], "{what}: not as after step {done}");
    assert_eq!(run_from(&mut server, done), STEPS.len(), "{what}: the rest of the steps fails");
    assert_eq!(dump(&mut server), states[STEPS.len()], "{what}: the steps do not end as they should");
}

#[test]
fn a_crash_at_every_operation_leaves_each_half_or_not() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("opens");
    let mut states = vec![dump(&mut server)];
    for step in STEPS {
        let mut client = server.connect();
        step.iter().for_each(|statement| client.ok(statement));
        drop(client);
        states.push(dump(&mut server));
    }
    assert_eq!(groups(&server, &disk), STEPS.len());
    assert!(states[5].contains("'a'") && states[5].contains("'b','q',9") && states[5].contains("locked 2"));
    let mut crashes = 0;
    for at in 0.. {
        let memory = MemFs::new();
        let faults = FaultFs::new(Arc::new(memory.clone()));
        faults.set(Fault::CrashAt(at));
        let disk: SharedFs = Arc::new(faults.clone());
        let acknowledged = Server::open(&disk).map_or(0, |mut server| run_from(&mut server, 0));
        if !faults.crashed() {
            break;
        }
        crashes += 1;
        let what = |how| format!("operation {at}, {how}");
        check_recovery(memory.crash_clone(at), acknowledged, &states, &what("power failure"));
        check_recovery(memory.kill_clone(), acknowledged, &states, &what("kill"));
    }
    assert!(crashes > 50, "only {crashes} operations");
}
