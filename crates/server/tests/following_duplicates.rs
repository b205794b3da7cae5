//! `gtid_ignore_duplicates`: a replica that receives the same transactions from two sources applies each of
//! them once, and continues with one source while the other is down.

mod support;

use std::io::Read as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql::prelude::Queryable;
use support::{Cohort, Ends, Maria, wait_until};

/// Returns the statements that configure and start a connection with this name.
fn follow(name: &str, port: u16) -> String {
    format!(
        "CHANGE MASTER '{name}' TO master_host='127.0.0.1', master_port={port}, master_user='root', \
         master_connect_retry=1, master_heartbeat_period=1, master_use_gtid=slave_pos; START SLAVE '{name}'; "
    )
}

const LOGS: [&str; 2] = ["--log-slave-updates", "--log-bin=binlog"];

/// The table has no key, so a row that is applied twice appears twice.
const DIGEST: &str = "SELECT COUNT(*), COUNT(DISTINCT n), SUM(n), SUM(LENGTH(b)) FROM test.t";

/// A source, a Cohort and a MariaDB that replicate from it (`left`, `right`), and a replica of both.
struct Diamond {
    top: Maria,
    left: Cohort,
    right: Maria,
    bottom: Cohort,
}

impl Diamond {
    fn new(threads: &str) -> Diamond {
        let top = Maria::source(&["--binlog-format=ROW"]);
        let left = Cohort::new(&["--log-slave-updates", "--server-id=7"]);
        let right = Maria::source(&[LOGS[0], "--server-id=9"]);
        let options = ["--log-slave-updates", "--server-id=11", "--gtid-ignore-duplicates=1", threads];
        let bottom = Cohort::new(&[&options[..], &["--max-relay-log-size=65536"]].concat());
        left.follow(top.port);
        right.follow(top.port);
        top.sql("CREATE TABLE test.t (n INT, b LONGTEXT)");
        bottom.sql(&(follow("left", left.port) + &follow("right", right.port)));
        Diamond { top, left, right, bottom }
    }

    fn assert_alike(&self, what: &str) {
        let end = self.top.gtid_end();
        self.bottom.wait_for(&end);
        assert_eq!(self.bottom.sql(DIGEST), self.top.sql(DIGEST), "{what}");
        assert_eq!(self.bottom.sql("SELECT @@gtid_slave_pos, @@gtid_binlog_pos"), format!("{end}\t{end}"));
        let status = self.bottom.replica_status();
        assert_eq!(status.matches("Last_SQL_Errno: 0").count(), 2, "{what}: {status}");
        assert_eq!(status.matches("Slave_SQL_Running: Yes").count(), 2, "{what}: {status}");
    }
}

/// Writes small rows, and occasionally a large transaction or a DDL statement.
fn write_until(client: &mut mysql::Conn, stops: &AtomicBool) -> u32 {
    let mut n = 0;
    while !stops.load(Ordering::Relaxed) {
        n += 1;
        let sql = match n % 40 {
            20 => format!("ALTER TABLE test.t ADD COLUMN IF NOT EXISTS c{} INT", n % 3),
            30 => format!("INSERT INTO test.t (n, b) VALUES ({n}, REPEAT('x', 1500000))"),
            _ => format!("INSERT INTO test.t (n, b) VALUES ({n}, 'a'), ({n}, NULL)"),
        };
        client.query_drop(sql).expect("written");
    }
    n
}

#[test]
fn groups_from_two_sources_are_applied_once() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=4"] {
        let mut diamond = Diamond::new(threads);
        let stops = AtomicBool::new(false);
        let mut client = diamond.top.client();
        let written = std::thread::scope(|scope| {
            let _ends = Ends(&stops);
            let writer = scope.spawn(|| write_until(&mut client, &stops));
            // Kill and restart each of the two sources.
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(700));
                diamond.left.kill();
                let before = diamond.bottom.sql("SELECT @@gtid_slave_pos");
                wait_until("one source is not enough", || {
                    diamond.bottom.sql("SELECT @@gtid_slave_pos") != before
                });
                diamond.left.restart();
                std::thread::sleep(Duration::from_millis(700));
                diamond.right.kill();
                let before = diamond.bottom.sql("SELECT @@gtid_slave_pos");
                wait_until("the other one is not enough", || {
                    diamond.bottom.sql("SELECT @@gtid_slave_pos") != before
                });
                diamond.right.restart();
                diamond.right.wait_until_connected();
            }
            stops.store(true, Ordering::Relaxed);
            writer.join().expect("no panic")
        });
        assert!(written > 100, "{written}");
        diamond.assert_alike(threads);
        // Kill and restart the replica, too.
        diamond.bottom.kill_and_restart();
        diamond.top.sql("INSERT INTO test.t (n) VALUES (-1)");
        diamond.assert_alike(threads);
        // A stopped connection does not block the other one.
        diamond.bottom.sql("STOP SLAVE 'left'");
        diamond.top.sql("INSERT INTO test.t (n) VALUES (-2)");
        diamond.bottom.wait_for(&diamond.top.gtid_end());
        diamond.bottom.sql("START SLAVE 'left'");
        diamond.assert_alike(threads);
    }
}

/// Starts a proxy to a source that disconnects for good after forwarding this many bytes.
fn cut_after(source: u16, bytes: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().expect("a client");
        drop(listener);
        let server = TcpStream::connect(("127.0.0.1", source)).expect("a source");
        let asked = (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
        std::thread::spawn(move || std::io::copy(&mut &asked.0, &mut &asked.1));
        // The client may disconnect first.
        let _ = std::io::copy(&mut (&server).take(bytes), &mut &client);
        for side in [&client, &server] {
            let _ = side.shutdown(Shutdown::Both);
        }
    });
    port
}

#[test]
fn a_source_that_dies_in_a_large_transaction_does_not_keep_another_one_waiting() {
    let top = Maria::source(&["--binlog-format=ROW"]);
    let right = Maria::source(&[LOGS[0], "--server-id=9"]);
    right.follow(top.port);
    top.sql("CREATE TABLE test.t (n INT PRIMARY KEY, b LONGTEXT)");
    let rows: Vec<String> =
        (0..6).map(|n| format!("INSERT INTO test.t VALUES ({n}, REPEAT('x', 1000000))")).collect();
    top.sql(&format!("BEGIN; {}; COMMIT", rows.join("; ")));
    right.wait_for(&top.gtid_end());
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=4"] {
        let options = ["--log-slave-updates", "--server-id=11", "--gtid-ignore-duplicates=1", threads];
        let bottom = Cohort::new(&options);
        bottom.sql(&follow("left", cut_after(top.port, 3_500_000)));
        wait_until("it is not cut off", || {
            let status = bottom.replica_status();
            status.contains("Slave_IO_Running: Connecting") && status.contains("Last_IO_Errno: 2003")
        });
        bottom.sql(&follow("right", right.port));
        bottom.wait_for(&top.gtid_end());
        assert_eq!(bottom.sql(DIGEST), top.sql(DIGEST), "{threads}");
        // The left source is available again, and has nothing new.
        bottom.sql(&format!("STOP SLAVE 'left'; {}", follow("left", top.port)));
        top.sql(&format!("INSERT INTO test.t (n) VALUES ({})", 100 + threads.len() + bottom.port as usize));
        bottom.sql("STOP SLAVE 'right'");
        bottom.wait_for(&top.gtid_end());
        assert_eq!(bottom.sql(DIGEST), top.sql(DIGEST), "{threads}");
    }
}

#[test]
fn of_a_domain_the_number_alone_says_what_is_a_duplicate() {
    // Two unrelated sources, and replicas of both.
    let (one, two) = (Maria::source(&["--server-id=21"]), Maria::source(&["--server-id=22"]));
    let cohort = Cohort::new(&["--log-slave-updates", "--server-id=7", "--gtid-ignore-duplicates=1"]);
    let maria = Maria::new(&[LOGS[0], LOGS[1], "--server-id=9", "--gtid-ignore-duplicates=1"]);
    let on_both = |sql: &str| (cohort.sql(sql), maria.sql(sql));
    let compare = |what: &str, position: &str| {
        let tables = "SELECT @@gtid_slave_pos, @@gtid_binlog_pos; SELECT * FROM test.t ORDER BY a";
        cohort.wait_for(position);
        maria.wait_for(position);
        let (ours, theirs) = on_both(tables);
        assert_eq!(ours, theirs, "{what}");
        assert!(ours.starts_with(position), "{what}: {ours}");
    };
    one.sql("CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (11)");
    one.sql("INSERT INTO test.t VALUES (12); INSERT INTO test.t VALUES (13)");
    two.sql("CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (21)");
    two.sql("INSERT INTO test.t VALUES (22); INSERT INTO test.t VALUES (23)");
    two.sql("INSERT INTO test.t VALUES (25); INSERT INTO test.t VALUES (26)");
    // Everything is requested from both sources; one of them is applied first.
    let two_alone = follow("two", two.port).replace("START SLAVE 'two'", "START SLAVE 'two' IO_THREAD");
    on_both(&two_alone);
    for server in [&cohort as &dyn Replica, &maria] {
        wait_until("it is not received", || server.status().contains("Gtid_IO_Pos: 0-22-6"));
    }
    on_both(&follow("one", one.port));
    compare("the first source", "0-21-4");
    // Sequence numbers up to 4 are skipped as duplicates, whatever the transactions contain.
    on_both("START SLAVE 'two' SQL_THREAD");
    compare("the second source", "0-22-6");
    // A sequence number that is already applied, and the next one.
    one.sql("INSERT INTO test.t VALUES (15); INSERT INTO test.t VALUES (16)");
    one.sql("INSERT INTO test.t VALUES (17)");
    compare("the first source again", "0-21-7");
    // The variable cannot change while threads run, because it is read when a thread starts.
    for server in [&cohort as &dyn Replica, &maria] {
        let text = server.refusal("SET GLOBAL gtid_ignore_duplicates = 0");
        assert!(text.contains("ERROR 1198") && text.contains("you have a running slave 'one'"), "{text}");
    }
    on_both("STOP ALL SLAVES; SET GLOBAL gtid_ignore_duplicates = 0");
}

/// Operations that the test needs on both servers.
trait Replica {
    fn refusal(&self, sql: &str) -> String;
    fn status(&self) -> String;
}

impl Replica for Cohort {
    fn refusal(&self, sql: &str) -> String {
        self.tool("mariadb", &["-e", sql]).1
    }

    fn status(&self) -> String {
        self.replica_status()
    }
}

impl Replica for Maria {
    fn refusal(&self, sql: &str) -> String {
        let socket = format!("--socket={}", self.socket.display());
        support::text(&support::run("mariadb", &["--no-defaults", "--user=root", &socket, "-e", sql]))
    }

    fn status(&self) -> String {
        self.all_status()
    }
}
