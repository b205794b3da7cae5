//! Faults with Cohort as a replica: stopped receivers, sources that disconnect and return, bytes corrupted in
//! transit, positions set manually, and relay logs that are damaged or renamed.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql::prelude::Queryable;
use support::{Cohort, Ends, Maria, error_code, refused, wait_until};

const LOGS: &str = "--log-slave-updates";

/// Writes single-row transactions to a table without a key, so that a transaction applied twice adds a second
/// row.
fn fill(source: &Maria, from: usize, count: usize) {
    let rows: String = (from..from + count).map(|n| format!("INSERT INTO test.t VALUES ({n});\n")).collect();
    source.feed(rows.as_bytes());
}

const DIGEST: &str = "SELECT COUNT(*), COUNT(DISTINCT n), MIN(n), MAX(n) FROM test.t";

fn change_master(replica: &Cohort, port: u16, more: &str) {
    replica.sql(&format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='root', master_connect_retry=1, \
         master_heartbeat_period=1, {more}"
    ));
}

#[test]
fn a_receiver_that_is_stopped_in_a_backlog_loses_and_doubles_nothing() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    source.sql("CREATE TABLE test.t (n INT)");
    fill(&source, 0, 6000);
    for by in ["slave_pos", "no"] {
        let replica = Cohort::new(&[LOGS, "--server-id=7", "--max-relay-log-size=100000"]);
        change_master(&replica, source.port, &format!("master_use_gtid={by}"));
        replica.sql("START SLAVE");
        let end = source.sql("SELECT @@gtid_binlog_pos");
        let mut rounds = 0;
        while replica.sql(&format!("SELECT MASTER_GTID_WAIT('{end}', 0)")) != "0" {
            replica.sql("STOP SLAVE IO_THREAD; START SLAVE IO_THREAD");
            // Some rounds end before any event arrived, others in the middle of the events.
            std::thread::sleep(Duration::from_millis(rounds % 32));
            rounds += 1;
            assert!(rounds < 5000, "{}", replica.replica_status());
            assert_eq!(replica.replica_field("Last_SQL_Errno"), "0", "{}", replica.replica_status());
        }
        assert_eq!(replica.sql(DIGEST), "6000\t6000\t0\t5999", "{by}: {rounds} rounds");
    }
}

#[test]
fn a_connection_that_is_changed_while_it_stops_keeps_its_place() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    source.sql("CREATE TABLE test.t (n INT)");
    fill(&source, 0, 4000);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    change_master(&replica, source.port, "master_use_gtid=no");
    replica.sql("START SLAVE");
    let end = source.sql("SELECT @@gtid_binlog_pos");
    let is_over = AtomicBool::new(false);
    let mut rounds = 0;
    std::thread::scope(|scope| {
        let _ends = Ends(&is_over);
        scope.spawn(|| {
            let mut client = replica.client();
            while !is_over.load(Ordering::Relaxed) {
                // Refused while a thread runs, but not if it had to wait for the stop.
                let _ = client.query_drop("CHANGE MASTER TO master_connect_retry=1");
            }
        });
        while replica.sql(&format!("SELECT MASTER_GTID_WAIT('{end}', 0)")) != "0" && rounds < 1000 {
            rounds += 1;
            replica.sql("STOP SLAVE; START SLAVE");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // A fast host reaches the last round before the end.
    replica.wait_for(&end);
    assert_eq!(replica.sql(DIGEST), "4000\t4000\t0\t3999", "{rounds} rounds");
}

#[test]
fn a_place_to_stop_at_that_is_reached_already_lets_nothing_pass() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    source.sql("CREATE TABLE test.t (n INT)");
    change_master(&replica, source.port, "master_use_gtid=slave_pos");
    replica.sql("START SLAVE");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    let (file, position) =
        (replica.replica_field("Relay_Master_Log_File"), replica.replica_field("Exec_Master_Log_Pos"));
    let relay = (replica.replica_field("Relay_Log_File"), replica.replica_field("Relay_Log_Pos"));
    for until in [
        format!("master_log_file='{file}', master_log_pos={position}"),
        format!("relay_log_file='{}', relay_log_pos={}", relay.0, relay.1),
    ] {
        replica.sql(&format!("STOP SLAVE SQL_THREAD; START SLAVE SQL_THREAD UNTIL {until}"));
        fill(&source, 0, 3);
        wait_until("it does not stop", || replica.replica_field("Slave_SQL_Running") == "No");
        assert_eq!(replica.sql(DIGEST), "0\t0\tNULL\tNULL", "{until}");
        source.sql("DELETE FROM test.t");
    }
    replica.sql("START SLAVE SQL_THREAD");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
}

#[test]
fn a_source_that_ends_the_dump_is_asked_again() {
    let maria = Maria::source(&["--binlog-format=ROW"]);
    let mut cohort = Cohort::new(&[]);
    let of_maria = Cohort::new(&[LOGS, "--server-id=7"]);
    let of_cohort = Cohort::new(&[LOGS, "--server-id=7"]);
    of_maria.follow(maria.port);
    of_cohort.follow(cohort.port);
    let kill = |ask: &dyn Fn(&str) -> String| {
        wait_until("no dump", || {
            let dumps = ask("SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'");
            dumps.lines().for_each(|id| drop(ask(&format!("KILL {id}"))));
            !dumps.is_empty()
        });
    };
    maria.sql("CREATE TABLE test.t (n INT)");
    cohort.sql("CREATE TABLE test.t (n INT)");
    for n in 0..3 {
        kill(&|sql| maria.sql(sql));
        kill(&|sql| cohort.sql(sql));
        maria.sql(&format!("INSERT INTO test.t VALUES ({n})"));
        cohort.sql(&format!("INSERT INTO test.t VALUES ({n})"));
        of_maria.wait_for(&maria.sql("SELECT @@gtid_binlog_pos"));
        of_cohort.wait_for(&cohort.sql("SELECT @@gtid_binlog_pos"));
    }
    cohort.stop();
    cohort.restart();
    cohort.sql("INSERT INTO test.t VALUES (3)");
    of_cohort.wait_for(&cohort.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!(of_cohort.replica_field("Last_IO_Errno"), "0");
}

#[test]
fn a_position_that_is_set_takes_what_was_received_with_it() {
    let source = Cohort::new(&["--rpl-semi-sync-master-enabled=1"]);
    let replica =
        Cohort::new(&[LOGS, "--server-id=7", "--rpl-semi-sync-slave-enabled=1", "--max-relay-log-size=4096"]);
    source.sql("CREATE TABLE test.t (n INT)");
    replica.follow(source.port);
    let before = source.sql("SELECT @@gtid_binlog_pos");
    replica.wait_for(&before);
    let insert = |n| source.sql(&format!("INSERT INTO test.t VALUES ({n})"));
    (0..50).for_each(|n| drop(insert(n)));
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    wait_until("nothing is removed", || !replica.replica_field("Relay_Log_File").ends_with(".000001"));
    replica.sql("STOP SLAVE SQL_THREAD");
    (50..60).for_each(|n| drop(insert(n)));
    let received = source.sql("SELECT @@gtid_binlog_pos");
    wait_until("it is not received", || replica.replica_field("Gtid_IO_Pos") == received);
    replica.sql(&format!(
        "STOP SLAVE; SET sql_log_bin = 0; DELETE FROM test.t; SET GLOBAL gtid_slave_pos = '{before}'; START SLAVE"
    ));
    replica.wait_for(&received);
    assert_eq!(replica.sql(DIGEST), "60\t60\t0\t59");
}

/// A proxy to a source that inverts one bit, a little later in each connection.
struct Liar {
    port: u16,
}

impl Liar {
    fn new(source: u16, connections: usize) -> Liar {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        std::thread::spawn(move || {
            for (n, client) in listener.incoming().enumerate() {
                let (Ok(mut client), Ok(mut server)) = (client, TcpStream::connect(("127.0.0.1", source)))
                else {
                    return;
                };
                // Otherwise an idle host waits for TCP acknowledgements longer than a round lasts.
                for side in [&client, &server] {
                    side.set_nodelay(true).expect("a socket");
                }
                let (mut up_from, mut up_to) =
                    (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut up_from, &mut up_to);
                    let _ = up_to.shutdown(Shutdown::Both);
                });
                let mut at = if n < connections { Some(800 + n * 29) } else { None };
                std::thread::spawn(move || {
                    let mut bytes = [0; 1000];
                    while let Ok(got @ 1..) = server.read(&mut bytes) {
                        match at {
                            Some(lie) if lie < got => {
                                bytes[lie] ^= 1 << (lie % 8);
                                at = None;
                            }
                            Some(lie) => at = Some(lie - got),
                            None => {}
                        }
                        if client.write_all(&bytes[..got]).is_err() {
                            break;
                        }
                    }
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        Liar { port }
    }
}

#[test]
fn a_bit_that_is_another_on_the_way_stops_the_receiver_or_makes_it_ask_again() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    source.sql("CREATE TABLE test.t (n INT)");
    fill(&source, 0, 40);
    let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-net-timeout=2"]);
    let liar = Liar::new(source.port, 60);
    change_master(&replica, liar.port, "master_use_gtid=slave_pos, master_connect_retry=0");
    replica.sql("START SLAVE");
    let end = source.sql("SELECT @@gtid_binlog_pos");
    let mut stops = 0;
    let mut rounds = 0;
    while replica.sql(&format!("SELECT MASTER_GTID_WAIT('{end}', 0)")) != "0" {
        let status = replica.replica_status();
        assert!(status.contains("Slave_SQL_Running: Yes"), "{status}");
        if status.contains("Slave_IO_Running: No") {
            let number = replica.replica_field("Last_IO_Errno");
            assert!(["1236", "1593", "1595", "1743", "1153"].contains(&number.as_str()), "{status}");
            stops += 1;
        }
        // If no inverted bit is reached any more, a new connection gets the next one.
        replica.sql("STOP SLAVE IO_THREAD; START SLAVE IO_THREAD");
        std::thread::sleep(Duration::from_millis(100));
        rounds += 1;
        assert!(rounds < 600, "{status}");
    }
    assert_eq!(replica.sql(DIGEST), "40\t40\t0\t39");
    assert!(stops > 0, "no lie was met in {rounds} rounds");
}

#[test]
fn statements_of_tables_that_filters_name_are_passed_over() {
    let source = Maria::source(&["--binlog-format=STATEMENT"]);
    let replica = Cohort::new(&[
        LOGS,
        "--server-id=7",
        "--replicate-ignore-table=test.no",
        "--replicate-wild-ignore-table=hidden.%",
    ]);
    replica.follow(source.port);
    source.sql(
        "USE test; CREATE TABLE yes (a INT PRIMARY KEY, b INT); CREATE TABLE no LIKE yes; CREATE DATABASE hidden; \
         INSERT INTO yes VALUES (1, 1); INSERT INTO no VALUES (1, 1); UPDATE no SET b = 2; DELETE FROM no; \
         REPLACE INTO no VALUES (5, 5); UPDATE yes SET b = 3; UPDATE yes, no SET no.b = 7 WHERE yes.a = 1; \
         SET sql_mode = ANSI_QUOTES; UPDATE \"no\" SET b = 4; INSERT INTO \"yes\" VALUES (2, 2); \
         CREATE TABLE hidden.t (a INT); INSERT INTO hidden.t VALUES (1); DROP TABLE no",
    );
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!(replica.sql("SELECT * FROM test.yes ORDER BY a"), "1\t3\n2\t2");
    assert_eq!(replica.sql("SHOW TABLES IN test"), "yes");
    assert_eq!(replica.sql("SHOW DATABASES LIKE 'hidden'"), "");
}

/// A source and a replica, semi-synchronous by SET GLOBAL. The replica has acknowledged rows that it has not
/// applied.
struct Promise {
    source: Cohort,
    replica: Cohort,
}

const REPLICA: [&str; 3] = [LOGS, "--server-id=7", "--max-relay-log-size=4096"];
const ROWS: usize = 40;
const ALL_ROWS: &str = "40\t40\t0\t39";

impl Promise {
    fn new(by: &str) -> Promise {
        let source = Cohort::new(&["--rpl-semi-sync-master-timeout=60000"]);
        let replica = Cohort::new(&REPLICA);
        source.sql("CREATE TABLE test.t (n INT)");
        replica.sql("SET GLOBAL rpl_semi_sync_slave_enabled = 1");
        change_master(&replica, source.port, &format!("master_use_gtid={by}"));
        replica.sql("START SLAVE");
        replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
        source.sql("SET GLOBAL rpl_semi_sync_master_enabled = 1");
        wait_until("it is not semi-synchronous", || {
            source.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t1")
        });
        replica.sql("STOP SLAVE SQL_THREAD");
        (0..ROWS).for_each(|n| drop(source.sql(&format!("INSERT INTO test.t VALUES ({n})"))));
        let unacknowledged = source.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_no_tx'");
        assert!(unacknowledged.ends_with("\t0"), "{unacknowledged}");
        Promise { source, replica }
    }

    /// Kills both, and starts the replica with other options.
    fn replica_alone(&mut self, options: &[&str]) {
        self.replica.kill();
        self.source.kill();
        self.replica.restart_with(&[&REPLICA[..], options].concat());
    }

    fn is_whole(&self) -> bool {
        self.replica.sql(DIGEST) == ALL_ROWS
    }

    /// Returns the files of the relay log, oldest first.
    fn relay_files(&self) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(&self.replica.datadir).expect("the data directory");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.retain(|path| {
            let name = path.to_string_lossy();
            let number = name.rsplit('.').next().unwrap_or_default();
            name.contains("-relay-bin.") && number.parse::<u32>().is_ok()
        });
        paths.sort();
        paths
    }
}

#[test]
fn acknowledged_groups_are_applied_under_any_settings_of_the_next_start() {
    for by in ["slave_pos", "no"] {
        for options in [&[][..], &["--relay-log=other"]] {
            let mut promise = Promise::new(by);
            // First without a crash: only the threads restart.
            promise.replica.sql("STOP SLAVE; CHANGE MASTER TO master_delay=0");
            promise.replica.sql("START SLAVE IO_THREAD");
            promise.replica_alone(options);
            wait_until("it is not applied", || promise.is_whole());
            promise.replica.kill_and_restart();
            // The source returns.
            promise.source.restart();
            for n in 40..50 {
                promise.source.sql(&format!("INSERT INTO test.t VALUES ({n})"));
            }
            promise.replica.wait_for(&promise.source.sql("SELECT @@gtid_binlog_pos"));
            assert_eq!(promise.replica.sql(DIGEST), "50\t50\t0\t49", "{by} {options:?}");
            assert_eq!(promise.replica.replica_field("Last_SQL_Errno"), "0");
        }
    }
}

#[test]
fn a_relay_log_that_cannot_be_read_starts_nothing_and_is_kept() {
    let mut promise = Promise::new("slave_pos");
    promise.replica_alone(&["--skip-slave-start"]);
    let files = promise.relay_files();
    assert!(files.len() >= 3, "{files:?}");
    type Damage = fn(&std::path::Path, &[u8]);
    let damages: [(&str, Damage); 4] = [
        ("missing", |path, _| std::fs::remove_file(path).expect("removed")),
        ("empty", |path, _| std::fs::write(path, b"").expect("written")),
        ("cut", |path, bytes| std::fs::write(path, &bytes[..bytes.len() / 2]).expect("written")),
        ("flipped", |path, bytes| {
            let mut bytes = bytes.to_vec();
            let at = bytes.len() / 2;
            bytes[at] ^= 4;
            std::fs::write(path, bytes).expect("written");
        }),
    ];
    let mut client = promise.replica.client();
    for file in [&files[0], &files[1], &files[files.len() - 1]] {
        let bytes = std::fs::read(file).expect("there");
        for (what, damage) in damages {
            damage(file, &bytes);
            let left = std::fs::read(file).ok();
            let what = format!("{what} {}", file.display());
            assert_eq!(error_code(client.query_drop("START SLAVE")), 1594, "{what}");
            assert_eq!(promise.replica.replica_field("Last_SQL_Errno"), "1594", "{what}");
            assert!(promise.replica.replica_field("Last_SQL_Error").contains("relay log file"), "{what}");
            assert_eq!(promise.replica.replica_field("Slave_IO_Running"), "No", "{what}");
            assert_eq!(std::fs::read(file).ok(), left, "{what}");
            assert_eq!(promise.relay_files().len(), files.len() - usize::from(left.is_none()), "{what}");
            std::fs::write(file, &bytes).expect("put right");
        }
    }
    promise.replica.sql("START SLAVE");
    wait_until("it is not applied", || promise.is_whole());
}

#[test]
fn changes_that_throw_the_relay_log_away_say_what_goes_with_it() {
    let promise = Promise::new("slave_pos");
    let (source, replica) = (&promise.source, &promise.replica);
    let mut client = replica.client();
    client.query_drop("STOP SLAVE").expect("stopped");
    // File positions belong to another log than GTIDs do.
    for change in ["master_use_gtid=no", "master_log_file='b.000001', master_log_pos=4"] {
        let error = client.query_drop(format!("CHANGE MASTER TO {change}")).expect_err("refused");
        let text = error.to_string();
        assert!(text.contains("START SLAVE SQL_THREAD applies them") && text.contains("0-1-2"), "{text}");
    }
    // With GTIDs nothing is discarded, whatever the next server is.
    replica.sql("CHANGE MASTER TO master_host='127.0.0.2', master_delay=0");
    replica.sql("START SLAVE SQL_THREAD");
    wait_until("it is not applied", || promise.is_whole());
    replica.sql("STOP SLAVE; CHANGE MASTER TO master_host='127.0.0.1'; START SLAVE IO_THREAD");
    source.sql("INSERT INTO test.t VALUES (40)");
    let end = source.sql("SELECT @@gtid_binlog_pos");
    wait_until("it is not received", || replica.replica_field("Gtid_IO_Pos") == end);
    // The position is older than the discarded events, so they are sent again.
    let before = replica.sql("SELECT @@gtid_slave_pos");
    client.query_drop("STOP SLAVE").expect("stopped");
    client.query_drop(format!("SET GLOBAL gtid_slave_pos = '{before}'")).expect("set");
    let warnings: Vec<(String, u16, String)> = client.query("SHOW WARNINGS").expect("shown");
    assert!(warnings.iter().any(|(_, _, text)| text.contains(&end)), "{warnings:?}");
    replica.sql("START SLAVE IO_THREAD");
    wait_until("it is not received", || replica.replica_field("Gtid_IO_Pos") == end);
    // The source requests an acknowledgement of the new transaction, which covers all before it.
    source.sql("INSERT INTO test.t VALUES (41)");
    let newest = source.sql("SELECT @@gtid_binlog_pos");
    wait_until("it is not received", || replica.replica_field("Gtid_IO_Pos") == newest);
    replica.sql("STOP SLAVE; RESET SLAVE");
    let removed = format!("are not applied: {end}, {newest}");
    assert!(replica.log().contains(&removed), "{}", replica.log());
    replica.sql("START SLAVE");
    replica.wait_for(&newest);
    assert_eq!(replica.sql(DIGEST), "42\t42\t0\t41");
}

#[test]
fn names_of_relay_logs_leave_the_binary_log_alone() {
    let mut source = Cohort::new(&["--log-bin=own", "--relay-log=./rel"]);
    source.sql("CREATE TABLE test.t (n INT); INSERT INTO test.t VALUES (0)");
    let other = Cohort::new(&["--server-id=9"]);
    // A connection that never succeeds creates files, too.
    change_master(&source, other.port, "master_use_gtid=slave_pos");
    source.sql("START SLAVE");
    wait_until("no relay log", || source.datadir.join("rel.000001").exists());
    source.sql("STOP SLAVE; START SLAVE; STOP SLAVE; INSERT INTO test.t VALUES (1); RESET SLAVE ALL");
    source.kill_and_restart();
    assert_eq!(source.sql(DIGEST), "2\t2\t0\t1");
    source.stop();
    let datadir = format!("--datadir={}", source.datadir.display());
    for names in [["--log-bin=rel", "--relay-log=./rel.x"], ["--log-bin=./own", "--relay-log=own"]] {
        let (code, said) = refused(&[&datadir, names[0], names[1], "--skip-networking"]);
        assert!(code != 0 && said.contains("have the same files"), "{names:?}: {said}");
    }
    let (code, said) = refused(&[&datadir, "--relay-log=sub/", "--skip-networking"]);
    assert!(code != 0 && said.contains("is a directory name"), "{said}");
    source.restart();
    assert_eq!(source.sql(DIGEST), "2\t2\t0\t1");
}
