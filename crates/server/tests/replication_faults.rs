//! Replication faults: full disks; replicas that stop, lie, disconnect in the middle of a reply, or share a
//! server id; and fifty replicas at once.

mod replica;
mod support;

use std::collections::HashMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use replica::assert_equal;
use replica::dump_client::{DumpClient, Event, Sent, Wish, acknowledgement};
use support::{Cohort, Ends, Maria, is_refused, wait_until};

#[test]
fn on_a_full_disk_reads_and_dumps_go_on_and_later_everything() {
    let options = ["--rocksdb-block-cache-size=8M"];
    let Some(mut cohort) = Cohort::on_small_disk(400, &options) else { return };
    let replica = Maria::new(&[]);
    replica.follow(cohort.port);
    let mut client = cohort.client();
    client.query_drop("CREATE DATABASE shop").expect("made");
    client.query_drop("CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)").expect("made");
    let insert = "INSERT INTO shop.t (v) VALUES (REPEAT('x', 1000))";
    let mut rows = 0;
    for round in 0..2 {
        for _ in 0..50 {
            client.query_drop(insert).expect("there is space");
            rows += 1;
        }
        cohort.disk().fill();
        // Rows accepted before the full disk is noticed count.
        wait_until("a full disk is not noticed", || {
            let is_refused = is_refused(&mut client, insert);
            rows += i32::from(!is_refused);
            is_refused
        });
        assert!(is_refused(&mut client, "CREATE TABLE shop.other (id INT PRIMARY KEY)"));
        let count = client.query_first::<i32, _>("SELECT COUNT(*) FROM shop.t").expect("reads go on");
        assert_eq!(count, Some(rows));
        let logs: Vec<(String, u64)> = client.query("SHOW BINARY LOGS").expect("answered");
        assert!(logs.iter().any(|(name, bytes)| name == "binlog.000001" && *bytes > 50_000), "{logs:?}");
        // Acknowledged rows arrive, also at a replica that connects now, and at one that reads from the
        // start.
        assert_equal(&cohort, &replica);
        replica.sql("STOP SLAVE IO_THREAD; START SLAVE IO_THREAD");
        replica.wait_until_connected();
        let archive = Command::new("mariadb-binlog")
            .args(["--no-defaults", "--read-from-remote-server", "--host=127.0.0.1", "--user=root"])
            .args([&format!("--port={}", cohort.port), "--to-last-log", "binlog.000001"])
            .output()
            .expect("installed");
        let text = String::from_utf8_lossy(&archive.stdout).into_owned();
        let inserted = text.matches("#Q> INSERT INTO shop.t").count();
        assert_eq!(inserted, rows as usize, "{}", String::from_utf8_lossy(&archive.stderr));
        if round == 1 {
            // The disk is still full.
            assert!(is_refused(&mut client, insert));
        }
        cohort.disk().make_room();
        wait_until("service does not resume", || !is_refused(&mut client, insert));
        rows += 1;
        assert_equal(&cohort, &replica);
    }
    drop(client);
    cohort.kill_and_restart();
    assert_eq!(cohort.sql("SELECT COUNT(*) FROM shop.t"), rows.to_string());
    cohort.sql(insert);
    assert_equal(&cohort, &replica);
}

/// Compares a dump with the binlog files, each after it has been closed.
struct Comparison<'a> {
    cohort: &'a Cohort,
    file: String,
    /// The events after the format description.
    events: Vec<u8>,
    start: u64,
}

impl Comparison<'_> {
    /// Processes an event. Returns false after the end of the last file.
    fn take(&mut self, event: &Event, last: &str) -> bool {
        if let Some(name) = event.names_file() {
            if name != self.file && !self.file.is_empty() {
                self.check();
                if self.file == last {
                    return false;
                }
            }
            if name != self.file {
                (self.file, self.start) = (name, 0);
                self.events.clear();
            }
        } else if event.is_format_description() {
            // Its flag marks the file as in use, which is cleared before the file is read.
            self.start = event.end();
        } else if !event.is_made_up() {
            self.events.extend_from_slice(&event.0);
            assert_eq!(event.end(), self.start + self.events.len() as u64, "a hole in {}", self.file);
        }
        true
    }

    fn check(&self) {
        let path = self.cohort.datadir.join(&self.file);
        let size = self.start as usize + self.events.len();
        wait_until("the file is written after the stream", || {
            std::fs::metadata(&path).is_ok_and(|file| file.len() >= size as u64)
        });
        let file = std::fs::read(&path).expect("it is there");
        assert_eq!(file.len(), size, "{}", self.file);
        assert!(file[self.start as usize..] == self.events, "{} differs", self.file);
    }
}

#[test]
fn fifty_dumps_under_load_get_the_bytes_of_the_files() {
    const LAST: &str = "binlog.000004";
    let cohort = Cohort::new(&["--max-binlog-size=1M"]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)");
    let is_over = AtomicBool::new(false);
    let read_all = |number: u32| {
        let mut client = DumpClient::start(cohort.port, 100 + number, Wish::Asynchronous, "binlog.000001", 4);
        let (file, events) = (String::new(), Vec::new());
        let mut comparison = Comparison { cohort: &cohort, file, events, start: 0 };
        loop {
            match client.next() {
                Sent::Event { event, .. } if comparison.take(&event, LAST) => {}
                Sent::Event { .. } => return,
                other => panic!("dump {number}: {other:?}"),
            }
        }
    };
    let write = |writer: usize| {
        let mut client = cohort.client();
        let mut n = writer;
        while !is_over.load(Ordering::Relaxed) {
            // Events of all sizes.
            let size = [10, 300, 2_000, 20_000][n % 4];
            client
                .query_drop(format!("INSERT INTO shop.t (v) VALUES (REPEAT('{n:04}', {size} / 4))"))
                .expect("written");
            n += 1;
        }
    };
    std::thread::scope(|scope| {
        let spawn = |numbers: std::ops::Range<u32>| -> Vec<_> {
            let one = |number| scope.spawn(move || read_all(number));
            numbers.map(one).collect()
        };
        let _ends = Ends(&is_over);
        // Half of the dumps start at once and follow the end of the log. The others start from the beginning
        // when there is something to read.
        let mut dumps = spawn(0..25);
        let writers: Vec<_> = (0..4).map(|writer| scope.spawn(move || write(writer))).collect();
        wait_until("the third file is not reached", || cohort.datadir.join("binlog.000003").exists());
        dumps.extend(spawn(25..50));
        wait_until("the last file is not over", || cohort.datadir.join("binlog.000005").exists());
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        dumps.into_iter().for_each(|dump| dump.join().expect("the same bytes"));
    });
}

/// Returns `Rpl_semi_sync_master_*`.
fn semi_sync_status(client: &mut mysql::Conn) -> HashMap<String, String> {
    let rows: Vec<(String, String)> =
        client.query("SHOW STATUS LIKE 'Rpl\\_semi\\_sync\\_master\\_%'").expect("rows");
    rows.into_iter().map(|(name, value)| (name.replace("Rpl_semi_sync_master_", ""), value)).collect()
}

/// Reads until the source requests an acknowledgement. Returns the file and offset to acknowledge.
fn read_until_asked(client: &mut DumpClient) -> (String, u64) {
    let mut file = String::new();
    loop {
        match client.next() {
            Sent::Event { event, is_asked: true } => return (file, event.end()),
            Sent::Event { event, .. } => file = event.names_file().unwrap_or(file),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_connection_may_be_cut_at_every_byte_of_a_semi_synchronous_answer() {
    let cohort = Cohort::new(&[
        "--rpl-semi-sync-master-enabled=1",
        "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
        "--rpl-semi-sync-master-timeout=600000",
        "--rpl-semi-sync-master-wait-no-slave=0",
    ]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    let mut watcher = cohort.client();
    let mut answer = acknowledgement("binlog.000001", 0);
    for cut in 0..=answer.len() {
        let (file, offset): (String, u32) = {
            let row: Option<(String, u32, String, String)> =
                watcher.query_first("SHOW MASTER STATUS").expect("one row");
            row.map(|row| (row.0, row.1)).expect("the binary log is on")
        };
        let before = semi_sync_status(&mut watcher);
        let mut replica = DumpClient::start(cohort.port, 77, Wish::Acknowledges, &file, offset);
        wait_until("it is not counted", || semi_sync_status(&mut watcher)["clients"] == "1");
        let mut writer = cohort.client();
        let commit = std::thread::spawn(move || {
            writer.query_drop(format!("INSERT INTO shop.t VALUES ({cut})")).expect("committed");
        });
        let (file, end) = read_until_asked(&mut replica);
        assert!(!commit.is_finished(), "no replica has answered");
        answer = acknowledgement(&file, end);
        replica.send_bytes(&answer[..cut]);
        let is_whole = cut == answer.len();
        if is_whole {
            commit.join().expect("let out by the answer");
            replica.cut();
        } else {
            // Without its only replica, the source continues.
            replica.cut();
            commit.join().expect("let out without an answer");
        }
        wait_until("it is still counted", || semi_sync_status(&mut watcher)["clients"] == "0");
        let after = semi_sync_status(&mut watcher);
        let grown = |name: &str| {
            let number = |of: &HashMap<String, String>| of[name].parse::<u64>().expect("a number");
            number(&after) - number(&before)
        };
        let expected = if is_whole { (1, 1, 0) } else { (0, 0, 1) };
        assert_eq!((grown("get_ack"), grown("yes_tx"), grown("no_tx")), expected, "cut at {cut}");
    }
    let count: Option<usize> = watcher.query_first("SELECT COUNT(*) FROM shop.t").expect("one row");
    assert_eq!(count, Some(answer.len() + 1));
}

#[test]
fn kill_ends_the_wait_for_a_replica() {
    // There is no replica, so every write waits.
    let cohort = Cohort::new(&[
        "--rpl-semi-sync-master-enabled=0",
        "--rpl-semi-sync-master-timeout=36000000",
        "--rpl-semi-sync-master-wait-no-slave=1",
    ]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    let mut watcher = cohort.client();
    for (round, point) in ["AFTER_SYNC", "AFTER_COMMIT"].into_iter().enumerate() {
        watcher.query_drop(format!("SET GLOBAL rpl_semi_sync_master_wait_point = '{point}'")).expect("set");
        watcher.query_drop("SET GLOBAL rpl_semi_sync_master_enabled = 1").expect("set");
        let before = semi_sync_status(&mut watcher);
        let mut start = |sql: String, waiting: usize| {
            let mut client = cohort.client();
            let id = client.connection_id();
            let run = std::thread::spawn(move || (client.query_drop(sql), client));
            wait_until("it does not wait", || {
                semi_sync_status(&mut watcher)["wait_sessions"] == waiting.to_string()
            });
            let shown: Option<(String, String)> = watcher
                .query_first(format!(
                    "SELECT COMMAND, STATE FROM information_schema.PROCESSLIST WHERE ID = {id}"
                ))
                .expect("a row");
            assert_eq!(shown, Some(("Query".into(), "Waiting for semi-sync ACK from slave".into())));
            (id, run)
        };
        let (first, first_run) = start(format!("INSERT INTO shop.t VALUES ({})", 10 * round), 1);
        let (second, second_run) = start(format!("INSERT INTO shop.t VALUES ({})", 10 * round + 1), 2);
        cohort.sql(&format!("KILL QUERY {first}"));
        let (answer, mut client) = first_run.join().expect("no panic");
        answer.expect("it is committed");
        let seen: Option<usize> = client.query_first("SELECT COUNT(*) FROM shop.t").expect("it goes on");
        assert_eq!(seen, Some(2 * round + if point == "AFTER_SYNC" { 1 } else { 2 }));
        assert!(!second_run.is_finished(), "the other was not killed");
        cohort.sql(&format!("KILL {second}"));
        let (_, mut client) = second_run.join().expect("no panic");
        wait_until("its connection goes on", || client.ping().is_err());
        let (third, third_run) = start(format!("CREATE TABLE shop.t{round} (id INT)"), 1);
        cohort.sql(&format!("KILL QUERY {third}"));
        // Its outcome is open: a DDL statement that is done may still report the KILL.
        let _ = third_run.join().expect("no panic");
        let count = cohort.sql("SELECT COUNT(*) FROM shop.t");
        assert_eq!(count, (2 * round + 2).to_string());
        assert_eq!(cohort.sql(&format!("SELECT COUNT(*) FROM shop.t{round}")), "0");
        let after = semi_sync_status(&mut watcher);
        let unanswered = |of: &HashMap<String, String>| of["no_tx"].parse::<u64>().expect("a number");
        assert_eq!(unanswered(&after) - unanswered(&before), 3, "{point}");
        watcher.query_drop("SET GLOBAL rpl_semi_sync_master_enabled = 0").expect("set");
    }
}

/// A locking read that returns a row that is not durable yet waits with the transaction that wrote the row.
#[test]
fn kill_counts_for_the_killed_client_alone() {
    let cohort = Cohort::new(&[
        "--rpl-semi-sync-master-enabled=0",
        "--rpl-semi-sync-master-timeout=36000000",
        "--rpl-semi-sync-master-wait-no-slave=1",
        "--rpl-semi-sync-master-wait-point=AFTER_COMMIT",
    ]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    let mut watcher = cohort.client();
    watcher.query_drop("SET GLOBAL rpl_semi_sync_master_enabled = 1").expect("set");
    let before = semi_sync_status(&mut watcher);
    let start = |sql: &'static str| {
        let mut client = cohort.client();
        let id = client.connection_id();
        let run = std::thread::spawn(move || {
            let mut rows = Ok(Vec::new());
            let is_read = sql.starts_with("SELECT");
            while rows.as_ref().is_ok_and(|rows: &Vec<usize>| rows.is_empty()) {
                rows = client.query(sql);
                if !is_read {
                    break;
                }
            }
            (rows, client)
        });
        (id, run)
    };
    let await_waiting = |id: u32| {
        let mut look = cohort.client();
        wait_until("it does not wait", || {
            let shown: Option<String> = look
                .query_first(format!("SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {id}"))
                .expect("a row");
            shown.as_deref() == Some("Waiting for semi-sync ACK from slave")
        });
    };
    // The writer's group stays open until the reader has found its row.
    cohort.sql("SET GLOBAL binlog_commit_wait_count = 100; SET GLOBAL binlog_commit_wait_usec = 3000000");
    let (writer, writer_run) = start("INSERT INTO shop.t VALUES (1)");
    let (reader, reader_run) = start("SELECT * FROM shop.t WHERE id = 1 FOR UPDATE");
    [writer, reader].into_iter().for_each(await_waiting);
    cohort.sql("SET GLOBAL binlog_commit_wait_usec = 0");
    let (other, other_run) = start("INSERT INTO shop.t VALUES (2)");
    await_waiting(other);
    let mut unanswered = || {
        let now = semi_sync_status(&mut watcher);
        let number = |of: &HashMap<String, String>| of["no_tx"].parse::<u64>().expect("a number");
        (number(&now) - number(&before), now["wait_sessions"].clone())
    };
    cohort.sql(&format!("KILL QUERY {reader}"));
    let (answer, _reader) = reader_run.join().expect("no panic");
    answer.expect("it has read");
    assert_eq!(unanswered(), (0, "2".into()), "both transactions wait on");
    cohort.sql(&format!("KILL QUERY {reader}"));
    assert_eq!(unanswered(), (0, "2".into()), "an idle client waits for nothing");
    for _ in 0..2 {
        cohort.sql(&format!("KILL QUERY {writer}"));
        assert_eq!(unanswered(), (1, "1".into()), "one reply is sent");
    }
    writer_run.join().expect("no panic").0.expect("it is committed");
    assert!(!other_run.is_finished(), "it was not killed");
    cohort.sql("SET GLOBAL rpl_semi_sync_master_enabled = 0");
    other_run.join().expect("no panic").0.expect("it is committed");
    assert_eq!(unanswered(), (2, "0".into()));
}

/// As in MariaDB, which checks for a KILL when the wait begins.
#[test]
fn kill_counts_when_it_comes_before_the_flush() {
    for point in ["AFTER_SYNC", "AFTER_COMMIT"] {
        let cohort = Cohort::new(&[
            "--rpl-semi-sync-master-enabled=0",
            "--rpl-semi-sync-master-timeout=36000000",
            "--rpl-semi-sync-master-wait-no-slave=1",
            &format!("--rpl-semi-sync-master-wait-point={point}"),
        ]);
        cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
        cohort.sql("SET GLOBAL rpl_semi_sync_master_enabled = 1");
        // The group stays open.
        cohort.sql("SET GLOBAL binlog_commit_wait_count = 100; SET GLOBAL binlog_commit_wait_usec = 2000000");
        let mut watcher = cohort.client();
        let commits = || cohort.sql("SHOW GLOBAL STATUS LIKE 'Handler_commit'");
        let before = commits();
        let mut client = cohort.client();
        let id = client.connection_id();
        let run = std::thread::spawn(move || {
            let answer = client.query_drop("INSERT INTO shop.t VALUES (1)");
            answer.map(|()| client)
        });
        wait_until("it is not ordered", || commits() != before);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(semi_sync_status(&mut watcher)["wait_sessions"], "0", "it is flushed already");
        cohort.sql(&format!("KILL QUERY {id}"));
        let mut client = run.join().expect("no panic").expect("it is committed");
        assert_eq!(client.query_first::<u64, _>("SELECT COUNT(*) FROM shop.t").expect("it goes on"), Some(1));
        assert_eq!(semi_sync_status(&mut watcher)["no_tx"], "1");
        cohort.sql("SET GLOBAL rpl_semi_sync_master_enabled = 0");
    }
}

#[test]
fn a_source_whose_clients_wait_for_a_replica_stops_on_request() {
    let mut cohort = Cohort::new(&[
        "--rpl-semi-sync-master-enabled=0",
        "--rpl-semi-sync-master-timeout=36000000",
        "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
    ]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    let mut watcher = cohort.client();
    watcher.query_drop("SET GLOBAL rpl_semi_sync_master_enabled = 1").expect("set");
    let clients: Vec<_> = ["INSERT INTO shop.t VALUES (1)", "CREATE TABLE shop.u (id INT)"]
        .into_iter()
        .enumerate()
        .map(|(n, sql)| {
            let mut client = cohort.client();
            let run = std::thread::spawn(move || client.query_drop(sql));
            wait_until("it does not wait", || {
                semi_sync_status(&mut watcher)["wait_sessions"] == (n + 1).to_string()
            });
            run
        })
        .collect();
    cohort.stop();
    for client in clients {
        assert!(client.join().expect("no panic").is_err(), "no client gets OK without a replica");
    }
    cohort.restart();
    assert_eq!(cohort.sql("SELECT COUNT(*) FROM shop.t; SELECT COUNT(*) FROM shop.u"), "1\n0");
    cohort.sql("INSERT INTO shop.t VALUES (2)");
}

#[test]
fn a_number_used_twice_moves_the_dump_and_no_event_is_lost() {
    let cohort = Cohort::new(&[]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    let replica = Maria::new(&[]);
    replica.follow(cohort.port);
    let mut twin = DumpClient::start(cohort.port, replica.server_id, Wish::Asynchronous, "binlog.000001", 4);
    // The replica is notified that it has been replaced, reconnects, and replaces the other one.
    let error_packet = loop {
        match twin.next() {
            Sent::Event { .. } => {}
            Sent::End(error) => break error,
            Sent::Gone => panic!("the connection ended without an error"),
        }
    };
    let (code, text) = error_packet.expect("an error");
    assert!(code == 4052 && text.contains("A slave with the same server_uuid/server_id"), "{code} {text}");
    cohort.sql("INSERT INTO shop.t VALUES (1)");
    assert_equal(&cohort, &replica);
    // With the source's own server id, the replica refuses by itself.
    replica.sql("STOP SLAVE; SET GLOBAL server_id = 1; START SLAVE");
    wait_until("it does not refuse", || replica.status().contains("Last_IO_Errno: 1593"));
    assert!(replica.status().contains("because master and slave have equal"));
    replica.sql("STOP SLAVE; SET GLOBAL server_id = 9; START SLAVE");
    cohort.sql("INSERT INTO shop.t VALUES (2)");
    assert_equal(&cohort, &replica);
}

#[test]
fn a_replica_that_stands_still_is_cut_after_net_write_timeout_and_comes_back() {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let cohort = Cohort::new(&["--net-write-timeout=2"]);
    cohort.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)");
    let replica = Maria::new(&[]);
    replica.follow(cohort.port);
    replica.signal("-STOP");
    let started = Instant::now();
    // More than the socket buffers hold.
    for _ in 0..12 {
        cohort.sql("INSERT INTO shop.t (v) VALUES (REPEAT('x', 4000000))");
    }
    let is_dumping = || cohort.sql("SHOW PROCESSLIST").contains("Binlog Dump");
    wait_until("it is not cut", || !is_dumping());
    assert!(started.elapsed() >= TIMEOUT, "cut after {:?}", started.elapsed());
    cohort.sql("INSERT INTO shop.t (v) VALUES ('later')");
    replica.signal("-CONT");
    assert_equal(&cohort, &replica);
}
