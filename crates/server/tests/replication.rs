//! A real MariaDB as a replica of Cohort, and MariaDB's tools that read the binary log like a replica.

mod replica;
#[path = "whole/scale.rs"]
#[allow(dead_code)] // only a part of it is used
mod scale;
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use replica::assert_equal;
use scale::{Dice, long_or};
use support::{Cohort, Maria, wait_until};

const TABLES: &str = "--tables=2";
/// Rows per table. With fewer rows, the clients of the long run would mostly wait for each other.
fn size() -> &'static str {
    long_or("--table-size=20000", "--table-size=500")
}

fn sysbench(port: u16, workload: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sysbench");
    command.arg(workload).args([
        "--mysql-host=127.0.0.1",
        "--mysql-user=root",
        "--mysql-db=sb",
        TABLES,
        size(),
    ]);
    command.arg(format!("--mysql-port={port}")).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Random DDL on tables other than those of the load.
struct Ddl {
    dice: Dice,
    /// The numbers of the existing tables.
    tables: Vec<u64>,
    made: u64,
    has_index: bool,
    has_column: bool,
    count: u64,
}

impl Ddl {
    fn new(seed: u64) -> Ddl {
        println!("seed of the DDL: {seed}");
        let dice = Dice::new(seed);
        Ddl { dice, tables: Vec::new(), made: 0, has_index: false, has_column: false, count: 0 }
    }

    fn run_one(&mut self, cohort: &Cohort) {
        let kind = if self.tables.is_empty() { 0 } else { self.dice.below(7) };
        let some = self.tables.get(self.dice.below(self.tables.len().max(1))).copied().unwrap_or(0);
        let toggle = |flag: &mut bool| !std::mem::replace(flag, !*flag);
        let sql = match kind {
            0 => {
                self.made += 1;
                let n = self.made;
                self.tables.push(n);
                format!(
                    "CREATE TABLE sb.x{n} (a INT PRIMARY KEY, b TEXT); \
                     INSERT INTO sb.x{n} VALUES (1, 'ä'), (2, NULL), (3, REPEAT('z', 60000))"
                )
            }
            1 => {
                self.made += 1;
                let column = self.made;
                format!(
                    "ALTER TABLE sb.x{some} ADD COLUMN c{column} DECIMAL(9,3) DEFAULT 1.5; \
                     UPDATE sb.x{some} SET a = a + 10 WHERE b IS NOT NULL ORDER BY a DESC"
                )
            }
            2 => {
                self.tables.retain(|table| *table != some);
                format!("DROP TABLE sb.x{some}")
            }
            3 => format!("TRUNCATE TABLE sb.x{some}"),
            4 => {
                self.made += 1;
                let n = self.made;
                self.tables.retain(|table| *table != some);
                self.tables.push(n);
                format!("RENAME TABLE sb.x{some} TO sb.x{n}")
            }
            5 if toggle(&mut self.has_index) => "CREATE INDEX by_c ON sb.sbtest1 (c)".to_owned(),
            5 => "DROP INDEX by_c ON sb.sbtest1".to_owned(),
            _ if toggle(&mut self.has_column) => {
                "ALTER TABLE sb.sbtest2 ADD COLUMN more VARCHAR(20) DEFAULT 'x'".to_owned()
            }
            _ => "ALTER TABLE sb.sbtest2 DROP COLUMN more".to_owned(),
        };
        wait_until("it is always the victim", || cohort.is_done(&sql));
        self.count += 1;
    }
}

/// Returns the sequence number of the newest transaction.
fn newest(cohort: &Cohort) -> u64 {
    let position = cohort.sql("SELECT @@gtid_binlog_pos");
    position.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Runs sysbench's writes with interleaved DDL in one parallel mode of the replica, and checks that both
/// servers are equal at the end.
fn follow_load(cohort: &Cohort, replica: &Maria, mode: &str, ddl: &mut Ddl) {
    replica.sql(&format!(
        "STOP SLAVE; SET GLOBAL slave_parallel_threads = 4; SET GLOBAL slave_parallel_mode = '{mode}'; START SLAVE"
    ));
    let (before, ddl_before) = (newest(cohort), ddl.count);
    let threads = format!("--threads={}", long_or(64, 8));
    let time = format!("--time={}", long_or(60, 1));
    for workload in ["oltp_write_only", "oltp_read_write"] {
        let run = [&threads, &time, "--mysql-ignore-errors=all", "run"];
        let mut load = sysbench(cohort.port, workload, &run).spawn().expect("installed");
        while load.try_wait().expect("asked").is_none() {
            ddl.run_one(cohort);
            std::thread::sleep(Duration::from_millis(long_or(200, 10)));
        }
    }
    let over = Instant::now();
    assert_equal(cohort, replica);
    println!(
        "{mode}: {} transactions, {} of them DDL, in {} s; equal {:.1} s later",
        newest(cohort) - before,
        ddl.count - ddl_before,
        long_or(120, 2),
        over.elapsed().as_secs_f64()
    );
}

#[test]
fn a_replica_follows_through_load_ddl_and_kills_in_every_parallel_mode() {
    let mut cohort = Cohort::new(&[long_or("--max-binlog-size=100M", "--max-binlog-size=1M")]);
    // Adding and dropping a column instantly a hundred times would make InnoDB's rows too large (error 1118).
    let replica = Maria::new(&["--innodb-instant-alter-column-allowed=never"]);
    replica.follow(cohort.port);
    cohort.sql("CREATE DATABASE sb");
    assert!(sysbench(cohort.port, "oltp_write_only", &["prepare"]).status().expect("installed").success());
    let mut ddl = Ddl::new(long_or(u64::from(std::process::id()), 7));
    for mode in ["conservative", "optimistic", "aggressive"] {
        follow_load(&cohort, &replica, mode, &mut ddl);
    }
    for _ in 0..long_or(10, 2) {
        let threads = format!("--threads={}", long_or(64, 8));
        let run = [&threads, "--time=30", "--mysql-ignore-errors=all", "run"];
        let before = newest(&cohort);
        let mut load = sysbench(cohort.port, "oltp_write_only", &run).spawn().expect("installed");
        wait_until("nothing is written", || newest(&cohort) > before + 100);
        cohort.kill_and_restart();
        // It may have ended already, because its server was killed.
        let _ = load.kill();
        let _ = load.wait();
        assert_equal(&cohort, &replica);
    }
    replica.wait_until_connected();
    let status = replica.status();
    assert!(
        status.contains("Slave_IO_Running: Yes")
            && status.contains("Slave_SQL_Running: Yes")
            && status.contains("Seconds_Behind_Master: 0"),
        "{status}"
    );
    assert!(cohort.sql("SHOW SLAVE HOSTS").starts_with(&format!("{}\t", replica.server_id)));
    assert!(cohort.sql("SHOW PROCESSLIST").contains("Binlog Dump"));
}

#[test]
fn a_filled_server_seeds_a_replica_by_a_dump_under_load() {
    let cohort = Cohort::new(&[]);
    cohort.sql("CREATE DATABASE sb");
    assert!(sysbench(cohort.port, "oltp_write_only", &["prepare"]).status().expect("installed").success());
    let mut load = sysbench(cohort.port, "oltp_write_only", &["--threads=8", "--time=4", "run"])
        .spawn()
        .expect("installed");
    std::thread::sleep(Duration::from_secs(1));
    let dump = Command::new("mariadb-dump")
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root", &format!("--port={}", cohort.port)])
        .args(["--single-transaction", "--master-data", "--gtid", "--databases", "sb"])
        .output()
        .expect("installed");
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let replica = Maria::new(&[]);
    replica.feed(&dump.stdout);
    replica.sql(&format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', master_connect_retry=1, \
         master_use_gtid=slave_pos; START SLAVE",
        cohort.port
    ));
    assert!(load.wait().expect("ended").success());
    assert_equal(&cohort, &replica);
}

#[test]
fn every_acknowledged_commit_is_on_a_semi_synchronous_replica_when_the_source_dies() {
    let options = [
        "--rpl-semi-sync-master-enabled=1",
        "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
        "--rpl-semi-sync-master-timeout=60000",
    ];
    let mut cohort = Cohort::new(&options);
    let replica = Maria::new(&["--rpl-semi-sync-slave-enabled=1"]);
    replica.follow(cohort.port);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    for round in 0..long_or(20, 3) {
        let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let base = round * 1_000_000 + writer * 100_000;
                let mut client = cohort.client();
                let count = count.clone();
                std::thread::spawn(move || {
                    // Returns the numbers whose commit was acknowledged.
                    let insert = |n: &i32| {
                        mysql::prelude::Queryable::query_drop(
                            &mut client,
                            format!("INSERT INTO shop.t VALUES ({n})"),
                        )
                        .inspect(|()| {
                            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        })
                    };
                    let mut insert = insert;
                    (base..base + 100_000).take_while(|n| insert(n).is_ok()).collect::<Vec<i32>>()
                })
            })
            .collect();
        // A replica that lost its source reconnects after a second.
        let end = Instant::now() + Duration::from_secs(30);
        while count.load(std::sync::atomic::Ordering::Relaxed) < 50 {
            assert!(Instant::now() < end, "nothing is acknowledged: {}", replica.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(50 * (round % 7) as u64));
        cohort.kill();
        let acknowledged: Vec<i32> = writers.into_iter().flat_map(|w| w.join().expect("no panic")).collect();
        // The replica applies all it has received before it reports that nothing is left.
        replica.wait_until_applied();
        let on_replica: std::collections::HashSet<i32> =
            replica.sql("SELECT id FROM shop.t").lines().map(|id| id.parse().expect("a number")).collect();
        let lost: Vec<&i32> = acknowledged.iter().filter(|id| !on_replica.contains(id)).collect();
        assert!(lost.is_empty(), "acknowledged and not on the replica: {lost:?}");
        cohort.restart();
        assert_equal(&cohort, &replica);
    }
}

#[test]
fn a_replica_stops_at_the_requested_gtid() {
    let cohort = Cohort::new(&["--max-binlog-size=4096"]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    let position = |n: u32| {
        cohort.sql(&format!("INSERT INTO shop.t VALUES ({n})"));
        cohort.sql("SELECT @@gtid_binlog_pos")
    };
    let positions: Vec<String> = (0..100).map(position).collect();
    let replica = Maria::new(&["--gtid-strict-mode=1", "--gtid-ignore-duplicates=1"]);
    replica.sql(&format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', master_use_gtid=slave_pos",
        cohort.port
    ));
    for until in [&positions[10], &positions[11], &positions[70]] {
        replica.sql(&format!("START SLAVE UNTIL master_gtid_pos = '{until}'"));
        let stopped = || replica.status().contains("Slave_SQL_Running: No");
        wait_until("it does not stop", stopped);
        assert_eq!(&replica.sql("SELECT @@gtid_slave_pos"), until, "{}", replica.status());
        replica.sql("STOP SLAVE");
    }
    replica.sql("START SLAVE");
    assert_equal(&cohort, &replica);
    // The source itself has applied nothing.
    assert_eq!(cohort.sql("SELECT MASTER_GTID_WAIT('0-1-1', 0.05)"), "-1");
}

#[test]
fn a_replica_may_have_the_stream_compressed() {
    let cohort = Cohort::new(&["--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-timeout=60000"]);
    let replica = Maria::new(&["--slave-compressed-protocol=1", "--rpl-semi-sync-slave-enabled=1"]);
    replica.follow(cohort.port);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v LONGTEXT)");
    let status = |name: &str| {
        let row = cohort.sql(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        row.split('\t').nth(1).and_then(|n| n.trim().parse::<u64>().ok()).expect("a number")
    };
    wait_until("the replica is not semi-synchronous", || status("Rpl_semi_sync_master_clients") == 1);
    let before = status("Bytes_sent");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let mut client = cohort.client();
            scope.spawn(move || {
                for n in 0..100 {
                    let sql =
                        format!("INSERT INTO shop.t VALUES ({writer}{n:03}, REPEAT('row {n} ', 10000))");
                    mysql::prelude::Queryable::query_drop(&mut client, sql).expect("inserted");
                }
            });
        }
    });
    // A large event, too.
    cohort.sql("INSERT INTO shop.t SELECT 9000 + id, REPEAT(v, 200) FROM shop.t WHERE id = 1");
    assert_equal(&cohort, &replica);
    let sent = status("Bytes_sent") - before;
    assert!(sent < 4_000_000, "{sent} bytes for 40 MB");
    assert_eq!(status("Rpl_semi_sync_master_no_times"), 0);
    assert!(status("Rpl_semi_sync_master_yes_tx") > 400);
}

#[test]
fn a_replica_that_stops_costs_one_timeout_and_semi_sync_comes_back_with_it() {
    let options = ["--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-timeout=700"];
    let cohort = Cohort::new(&options);
    let replica = Maria::new(&["--rpl-semi-sync-slave-enabled=1"]);
    replica.follow(cohort.port);
    let timed = |sql: &str| {
        let start = Instant::now();
        cohort.sql(sql);
        start.elapsed()
    };
    let status = |name: &str| {
        let row = cohort.sql(&format!("SHOW STATUS LIKE 'Rpl_semi_sync_master_{name}'"));
        row.split('\t').nth(1).unwrap_or_default().trim().to_owned()
    };
    let replica_wait_us = || -> u64 {
        let sql = "SELECT SUM_US FROM information_schema.COHORT_COMMIT_STAGES WHERE STAGE = 'replica_wait'";
        cohort.sql(sql).trim().parse().expect("a number")
    };
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    for point in ["AFTER_SYNC", "AFTER_COMMIT"] {
        cohort.sql(&format!("SET GLOBAL rpl_semi_sync_master_wait_point = '{point}'; DELETE FROM shop.t"));
        assert_eq!((status("status"), status("clients")), ("ON".into(), "1".into()));
        replica.sql("STOP SLAVE IO_THREAD");
        let before = replica_wait_us();
        assert!(timed("INSERT INTO shop.t VALUES (1)") >= Duration::from_millis(650));
        assert!(replica_wait_us() >= before + 650_000, "the wait is timed as a step of the commit");
        assert_eq!(status("status"), "OFF");
        assert!(timed("INSERT INTO shop.t VALUES (2)") < Duration::from_millis(600));
        replica.sql("START SLAVE IO_THREAD");
        let end = Instant::now() + Duration::from_secs(20);
        while status("status") != "ON" {
            assert!(Instant::now() < end, "it stays off");
            std::thread::sleep(Duration::from_millis(50));
        }
        let before: u64 = status("yes_tx").parse().expect("a number");
        cohort.sql("INSERT INTO shop.t VALUES (3)");
        assert_eq!(status("yes_tx"), (before + 1).to_string());
    }
    // Semi-sync is switched off while a commit waits: the commit must be released.
    replica.sql("STOP SLAVE IO_THREAD");
    cohort.sql("SET GLOBAL rpl_semi_sync_master_timeout = 60000");
    let mut waiter = cohort.client();
    let waits = std::thread::spawn(move || {
        mysql::prelude::Queryable::query_drop(&mut waiter, "INSERT INTO shop.t VALUES (4)").is_ok()
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(!waits.is_finished());
    cohort.sql("SET GLOBAL rpl_semi_sync_master_enabled = 0");
    assert!(waits.join().expect("no panic"));
}

#[test]
fn mariadb_binlog_archives_files_byte_by_byte_and_bad_requests_get_mariadbs_errors() {
    let cohort = Cohort::new(&[]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v LONGBLOB)");
    for n in 0..4 {
        cohort.sql(&format!("INSERT INTO shop.t VALUES ({n}, REPEAT('x', 100)); FLUSH BINARY LOGS"));
    }
    // An event that needs several packets and exceeds the tail kept in memory.
    cohort.sql("SET GLOBAL max_allowed_packet = 1073741824");
    cohort.sql("INSERT INTO shop.t VALUES (9, REPEAT('y', 17 * 1024 * 1024)); FLUSH BINARY LOGS");
    let archive = tempfile::tempdir().expect("made");
    let remote = |arguments: &[&str]| {
        let mut command = Command::new("mariadb-binlog");
        command.args(["--no-defaults", "--read-from-remote-server", "--host=127.0.0.1", "--user=root"]);
        command.arg(format!("--port={}", cohort.port)).args(arguments).current_dir(archive.path());
        command
    };
    let mut follower = remote(&["--raw", "--stop-never", "--stop-never-slave-server-id=77", "binlog.000001"])
        .spawn()
        .expect("installed");
    cohort.sql("INSERT INTO shop.t VALUES (10, 'late'); FLUSH BINARY LOGS");
    let closed: Vec<String> = (1..=6).map(|n| format!("binlog.{n:06}")).collect();
    let last = closed.last().expect("some");
    let same = |name: &str| {
        let read = |folder: &std::path::Path| std::fs::read(folder.join(name)).unwrap_or_default();
        let original = read(&cohort.datadir);
        !original.is_empty() && original == read(archive.path())
    };
    let end = Instant::now() + Duration::from_secs(20);
    while !same(last) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    follower.kill().expect("runs");
    let _ = follower.wait();
    for name in &closed {
        assert!(same(name), "{name} differs");
    }

    let refused = |arguments: &[&str]| {
        let output = remote(arguments).output().expect("installed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = refused(&["binlog.000099"]);
    assert!(text.contains("Could not find first log file name in binary log index file"), "{text}");
    let text = refused(&["--start-position=300", "binlog.000001"]);
    assert!(text.contains("bogus data in log event; the first event 'binlog.000001' at 300"), "{text}");
    let text = refused(&["--start-position=4000000000", "binlog.000001"]);
    assert!(text.contains("Client requested master to start replication from impossible position"), "{text}");
    cohort.sql("PURGE BINARY LOGS TO 'binlog.000003'");
    let text = refused(&["--start-position=0-1-1", "binlog.000003"]);
    assert!(text.contains("Could not find GTID state requested by slave in any binlog files"), "{text}");
    let text = refused(&["--start-position=0-1-999999", "binlog.000003"]);
    assert!(
        text.contains("requested to start from GTID 0-1-999999, which is not in the master's binlog"),
        "{text}"
    );
}

#[test]
fn a_second_replica_of_the_same_number_ends_the_first_and_kill_ends_a_dump() {
    let cohort = Cohort::new(&[]);
    cohort.sql("CREATE DATABASE shop");
    let follow = || {
        Command::new("mariadb-binlog")
            .args(["--no-defaults", "--read-from-remote-server", "--host=127.0.0.1", "--user=root"])
            .args([&format!("--port={}", cohort.port), "--stop-never", "--stop-never-slave-server-id=77"])
            .args(["--result-file=/dev/null", "binlog.000001"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("installed")
    };
    let dumps = || {
        let list = cohort.sql("SHOW PROCESSLIST");
        list.lines()
            .filter(|l| l.contains("Binlog Dump"))
            .filter_map(|l| l.split('\t').next()?.parse().ok())
            .collect()
    };
    let wait_for = |count: usize| -> Vec<u64> {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let found: Vec<u64> = dumps();
            if found.len() == count {
                return found;
            }
            assert!(Instant::now() < end, "{found:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let first = follow();
    let first_id = wait_for(1)[0];
    let second = follow();
    let ended = first.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(
        text.contains("A slave with the same server_uuid/server_id as this slave has connected"),
        "{text}"
    );
    let second_id = wait_for(1)[0];
    assert_ne!(first_id, second_id);
    cohort.sql(&format!("KILL {second_id}"));
    wait_for(0);
    // It was killed, or it ended after the error.
    let _ = second.wait_with_output();
}

#[test]
fn a_replica_that_stops_reading_is_disconnected_and_its_files_stay() {
    let cohort = Cohort::new(&["--net-write-timeout=2"]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v LONGBLOB)");
    let mut follower = Command::new("mariadb-binlog")
        .args(["--no-defaults", "--read-from-remote-server", "--host=127.0.0.1", "--user=root"])
        .args([&format!("--port={}", cohort.port), "--stop-never", "--stop-never-slave-server-id=77"])
        .args(["--result-file=/dev/null", "binlog.000001"])
        .stderr(Stdio::null())
        .spawn()
        .expect("installed");
    let is_dumping = || cohort.sql("SHOW PROCESSLIST").contains("Binlog Dump");
    let end = Instant::now() + Duration::from_secs(10);
    while !is_dumping() {
        assert!(Instant::now() < end, "it never connects");
        std::thread::sleep(Duration::from_millis(20));
    }
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &follower.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    };
    signal("-STOP");
    let start = Instant::now();
    for n in 0..12 {
        cohort.sql(&format!("INSERT INTO shop.t VALUES ({n}, REPEAT('x', 4000000)); FLUSH BINARY LOGS"));
    }
    let took = start.elapsed();
    cohort.sql("PURGE BINARY LOGS TO 'binlog.000010'");
    let held = cohort.sql("SHOW BINARY LOGS").contains("binlog.000009");
    assert!(held || !is_dumping(), "a file was purged under its reader");
    let end = Instant::now() + Duration::from_secs(20);
    while is_dumping() {
        assert!(Instant::now() < end, "it is not cut; the inserts took {took:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    signal("-CONT");
    cohort.sql("PURGE BINARY LOGS TO 'binlog.000010'");
    assert!(!cohort.sql("SHOW BINARY LOGS").contains("binlog.000009"));
    // It was disconnected, or is killed now.
    let _ = follower.kill();
    let _ = follower.wait();
}

/// Found by reading: the acknowledgement was requested with an event that the replica had asked to skip.
#[test]
fn a_semi_synchronous_commit_waits_for_no_replica_that_does_not_want_it() {
    let options = ["--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-timeout=120000"];
    let cohort = Cohort::new(&options);
    let replica = Maria::new(&[
        "--rpl-semi-sync-slave-enabled=1",
        "--replicate-events-marked-for-skip=FILTER_ON_MASTER",
    ]);
    replica.follow(cohort.port);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    let start = Instant::now();
    for n in 0..10 {
        let marked = n % 2;
        cohort.sql(&format!("SET skip_replication = {marked}; INSERT INTO shop.t VALUES ({n})"));
    }
    // Within one batch of events, too.
    cohort.sql("INSERT INTO shop.t VALUES (100); SET skip_replication = 1; INSERT INTO shop.t VALUES (101)");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(cohort.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_status'").ends_with("ON"));
    cohort.sql("INSERT INTO shop.t VALUES (200)");
    replica.wait_for(&cohort.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!(replica.sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM shop.t"), "0,2,4,6,8,100,200");
}
