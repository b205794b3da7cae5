//! Cohort as a replica of a real MariaDB, as a replica of another Cohort, and between both.

#[path = "support/load.rs"]
mod load;
mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use load::{Ask, Dice, assert_same_rows, change_definitions, load, long_or, prepare};
use support::{Cohort, Maria, wait_until};

/// Option of replicas that have replicas themselves.
const LOGS: &str = "--log-slave-updates";

#[test]
fn a_replica_of_mariadb_follows_through_load_ddl_and_kills_in_every_mode() {
    let runs = [
        ("ROW", "none"),
        ("ROW", "minimal"),
        ("ROW", "conservative"),
        ("MIXED", "optimistic"),
        ("ROW", "aggressive"),
    ];
    for (n, (format, mode)) in runs.into_iter().enumerate() {
        let format = format!("--binlog-format={format}");
        // Adding and dropping a column instantly a hundred times would make InnoDB's rows too large.
        let never = "--innodb-instant-alter-column-allowed=never";
        let source = Maria::source(&[&format, "--max-binlog-size=1M", never]);
        let mode = format!("--slave-parallel-mode={mode}");
        let options =
            [LOGS, "--server-id=7", "--max-relay-log-size=65536", "--slave-parallel-threads=4", &mode];
        let mut replica = Cohort::new(&options);
        replica.follow(source.port);
        prepare(&source, source.port);
        let mut dice = Dice::new(long_or(u64::from(std::process::id()), 11) + n as u64);
        for round in 0..long_or(20, 1) {
            // In the long run, two minutes in each mode.
            let (seconds, steps) = long_or((6, 24), (2, 6));
            let workload = ["oltp_write_only", "oltp_read_write"][(n + round) % 2];
            let mut writes = load(source.port, workload, seconds);
            for step in 0..steps {
                std::thread::sleep(Duration::from_millis(200));
                change_definitions(&source, round * steps + step);
                if dice.below(3) == 0 {
                    replica.kill_and_restart();
                }
            }
            assert!(writes.wait().expect("asked").success());
            replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
            assert_same_rows(&source, &replica);
            assert_eq!(replica.sql("SELECT @@gtid_binlog_pos"), source.sql("SELECT @@gtid_binlog_pos"));
        }
        wait_until("it is not idle", || replica.replica_status().contains("Seconds_Behind_Master: 0"));
        let list = replica.sql("SHOW PROCESSLIST");
        assert!(list.contains("Waiting for master to send event"), "{list}");
        assert!(list.contains("Slave has read all relay log; waiting for more updates"), "{list}");
    }
}

#[test]
fn chains_of_mariadb_and_cohort_have_the_same_rows_and_gtids_when_the_middle_is_killed() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let mut middle = Cohort::new(&[LOGS, "--server-id=7"]);
    let last_cohort = Cohort::new(&[LOGS, "--server-id=8"]);
    let last_maria = Maria::new(&["--log-bin=binlog", LOGS, "--server-id=9"]);
    middle.follow(source.port);
    last_cohort.follow(middle.port);
    last_maria.follow(middle.port);
    prepare(&source, source.port);
    for round in 0..long_or(10, 2) {
        let mut writes = load(source.port, "oltp_write_only", 2);
        for n in 0..3 {
            std::thread::sleep(Duration::from_millis(400));
            change_definitions(&source, round * 3 + n);
            middle.kill_and_restart();
        }
        assert!(writes.wait().expect("asked").success());
        let end = source.sql("SELECT @@gtid_binlog_pos");
        middle.wait_for(&end);
        last_cohort.wait_for(&end);
        last_maria.wait_for(&end);
        assert_same_rows(&source, &middle);
        assert_same_rows(&source, &last_cohort);
        assert_same_rows(&source, &last_maria);
        assert_eq!(last_cohort.sql("SELECT @@gtid_binlog_pos"), end);
        assert_eq!(
            middle.sql("SELECT @@gtid_binlog_pos, @@gtid_slave_pos, @@gtid_current_pos"),
            format!("{end}\t{end}\t{end}")
        );
    }
    // DDL and rows in one group.
    source.sql("CREATE TABLE sb.copied (PRIMARY KEY (id)) SELECT * FROM sb.sbtest1");
    let end = source.sql("SELECT @@gtid_binlog_pos");
    for server in [&middle, &last_cohort] {
        server.wait_for(&end);
        assert_same_rows(&source, server);
        assert_eq!(server.sql("SELECT @@gtid_binlog_pos"), end);
    }
    last_maria.wait_for(&end);
    assert_same_rows(&source, &last_maria);
    // Local writes of the last servers follow the writes that they applied.
    last_cohort.sql("CREATE TABLE sb.own (a INT)");
    let next = last_cohort.sql("SELECT @@gtid_binlog_pos");
    let number =
        |position: &str| position.rsplit('-').next().and_then(|n| n.parse::<u64>().ok()).expect("a GTID");
    assert_eq!(number(&next), number(&source.sql("SELECT @@gtid_binlog_pos")) + 1);
    assert!(next.starts_with("0-8-"), "{next}");
    let shown = middle.sql("SELECT domain_id, server_id, seq_no FROM mysql.gtid_slave_pos");
    assert_eq!(shown.replace('\t', "-"), middle.sql("SELECT @@gtid_slave_pos"));
}

const ALL_TYPES: &str = "CREATE TABLE kinds.every (id INT PRIMARY KEY, a TINYINT UNSIGNED, b SMALLINT, c MEDIUMINT, \
     d BIGINT UNSIGNED, e FLOAT, f DOUBLE, g DECIMAL(30,10), h BIT(13), i DATE, j TIME(3), k DATETIME(6), \
     l TIMESTAMP(2) NULL, m YEAR, n CHAR(20), o VARCHAR(300), p BINARY(5), q VARBINARY(300), r TINYBLOB, s BLOB, \
     t MEDIUMTEXT, u LONGTEXT, v ENUM('x','y','ä'), w SET('a','b','c'), x VARCHAR(20) CHARACTER SET latin1, \
     y JSON, z TEXT CHARACTER SET utf8mb4, id1 UUID, id7 UUID, i6 INET6, i4 INET4)";

fn fill_all_types(source: &dyn Ask, table: &str) {
    source.ask(&format!(
        "SET NAMES utf8mb4; INSERT INTO {table} VALUES (1, 255, -32768, -8388608, 18446744073709551615, 1.5, -2.25e300, \
         -12345678901234567890.0123456789, b'1010101010101', '2024-02-29', '-838:59:58.999', '9999-12-31 23:59:59.999999', \
         '2038-01-19 03:14:07.99', 2155, 'char', REPEAT('ö', 300), 'ab', REPEAT('q', 300), 'tiny', REPEAT('b', 60000), \
         REPEAT('m', 70000), REPEAT('long', 50000), 'ä', 'a,c', 'é', '{{\"k\": [1, null]}}', '😀', \
         '123e4567-e89b-12d3-a456-426655440000', '018f0203-0405-7607-8809-0a0b0c0d0000', '2001:db8::', '1.2.3.0'), \
         (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
         NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
         (3, 0, 0, 0, 0, 0, 0, 0, 0, '0001-01-01', '00:00:00', '1000-01-01', '1970-01-01 12:00:01', 1901, '', '', '', '', '', \
         '', '', '', 'x', '', '', '0', '', '00000000000000000000000000000000', \
         'ffffffffffffffffffffffffffffffff', '::', '0.0.0.0')"
    ));
    source
        .ask(&format!("UPDATE {table} SET o = CONCAT(o, ''), a = 7, n = 'other', s = 'short' WHERE id < 3"));
    source.ask(&format!("UPDATE {table} SET id = id + 10, k = '2020-02-02 02:02:02.020202' WHERE id = 1"));
    source.ask(&format!("DELETE FROM {table} WHERE id = 3"));
}

#[test]
fn values_of_every_type_arrive_in_every_form_of_row_events() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    replica.follow(source.port);
    source.sql("CREATE DATABASE kinds CHARACTER SET utf8mb4");
    source.sql(ALL_TYPES);
    source.sql("CREATE TABLE kinds.keyless LIKE kinds.every; ALTER TABLE kinds.keyless DROP PRIMARY KEY");
    source.sql(
        "CREATE TABLE kinds.other LIKE kinds.keyless; ALTER TABLE kinds.other ADD UNIQUE (id), ADD KEY (a)",
    );
    for settings in [
        "binlog_row_image = FULL",
        "binlog_row_image = MINIMAL",
        "binlog_row_image = NOBLOB",
        "binlog_row_metadata = FULL",
        "log_bin_compress = 1",
        "binlog_checksum = NONE",
        "binlog_annotate_row_events = 0",
    ] {
        source.sql(&format!("SET GLOBAL {settings}"));
        for table in ["kinds.every", "kinds.keyless", "kinds.other"] {
            fill_all_types(&source, table);
        }
        replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
        assert_same_rows(&source, &replica);
        source.sql("DELETE FROM kinds.every; DELETE FROM kinds.keyless; DELETE FROM kinds.other");
    }
    // A value larger than a packet.
    source.sql("SET GLOBAL max_allowed_packet = 64 << 20");
    source.sql("INSERT INTO kinds.every (id, u) VALUES (99, REPEAT('0123456789abcdef', 2 << 20))");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    let digest = "SELECT id, LENGTH(u), MD5(u) FROM kinds.every WHERE id = 99";
    assert_eq!(source.sql(digest), replica.sql(digest));
}

#[test]
fn statements_run_in_the_context_that_they_had() {
    let source = Maria::source(&["--binlog-format=STATEMENT"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    replica.follow(source.port);
    source.sql(
        "USE test; CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(100), b DOUBLE, c DATETIME(6), d BIGINT); \
         SET TIMESTAMP = 1000000000.123456; INSERT INTO s (a, b, c, d) VALUES ('x', RAND(), NOW(6), LAST_INSERT_ID()); \
         SET time_zone = '+05:00'; INSERT INTO s (a, c) VALUES (FROM_UNIXTIME(0), NOW(6)); \
         SET @v = 'ü', @n = -5, @u = 18446744073709551615, @r = 0.5e0, @d = 1.25, @null = NULL; \
         INSERT INTO s (a, b, d) VALUES (@v, @r + @d, @n), (@null, NULL, NULL), ('u', NULL, @u - 9223372036854775808); \
         SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'; INSERT INTO \"s\" (a) VALUES ('a' || 'b'); \
         SET sql_mode = ''; INSERT INTO s (a, d) VALUES (REPEAT('y', 200), '12abc'); \
         SET NAMES latin1; INSERT INTO s (a) VALUES (_latin1 x'E9'), ('é'); \
         SET auto_increment_increment = 10, auto_increment_offset = 3; INSERT INTO s (a) VALUES ('i'), ('j'); \
         SET insert_id = 500; INSERT INTO s (a) VALUES ('k'); \
         BEGIN; INSERT INTO s (a) VALUES ('one'); SAVEPOINT p; INSERT INTO s (a) VALUES ('two'); ROLLBACK TO p; \
         INSERT INTO s (a) VALUES ('three'); COMMIT; \
         UPDATE s SET a = CONCAT(a, '!') WHERE id % 2 = 0; DELETE FROM s WHERE a = 'i'",
    );
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_same_rows(&source, &replica);
}

fn wait_for_error(replica: &Cohort, number: &str) -> String {
    wait_until("it goes on", || replica.replica_field("Last_SQL_Errno") == number);
    assert_eq!(replica.replica_field("Slave_SQL_Running"), "No");
    replica.replica_field("Last_SQL_Error")
}

#[test]
fn a_replica_stops_where_rows_differ_and_goes_on_when_it_is_cured() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=4"] {
        let source = Maria::source(&["--binlog-format=ROW"]);
        let replica = Cohort::new(&[LOGS, "--server-id=7", threads]);
        replica.follow(source.port);
        source.sql("CREATE TABLE test.t (id INT PRIMARY KEY, a INT UNIQUE); INSERT INTO test.t VALUES (1, 1), (2, 2), (3, 3)");
        let end = || source.sql("SELECT @@gtid_binlog_pos");
        replica.wait_for(&end());
        replica.sql("SET sql_log_bin = 0; DELETE FROM test.t WHERE id = 2");
        let before = end();
        source.sql("UPDATE test.t SET a = 20 WHERE id = 2; INSERT INTO test.t VALUES (4, 4)");
        let text = wait_for_error(&replica, "1032");
        assert!(text.starts_with("Could not execute Update_rows_v1 event on table test.t; Can't find record in 't', Error_code: 1032; handler error HA_ERR_KEY_NOT_FOUND; the event's master log binlog.000001, end_log_pos "), "{text}");
        assert_eq!(replica.sql("SELECT @@gtid_slave_pos"), before, "nothing after it is applied");
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t WHERE id = 4"), "0");
        replica.sql("SET sql_log_bin = 0; INSERT INTO test.t VALUES (2, 2); START SLAVE");
        replica.wait_for(&end());
        // A row that already exists; the event is skipped.
        replica.sql("SET sql_log_bin = 0; INSERT INTO test.t VALUES (5, 50)");
        source.sql("INSERT INTO test.t VALUES (5, 5); INSERT INTO test.t VALUES (6, 6)");
        let text = wait_for_error(&replica, "1062");
        assert!(
            text.contains(
                "Duplicate entry '5' for key 'PRIMARY', Error_code: 1062; handler error HA_ERR_FOUND_DUPP_KEY"
            ),
            "{text}"
        );
        replica.sql("SET GLOBAL sql_slave_skip_counter = 1; START SLAVE");
        replica.wait_for(&end());
        assert_eq!(replica.sql("SELECT a FROM test.t WHERE id IN (5, 6) ORDER BY id"), "50\n6");
        // In IDEMPOTENT mode an existing row is overwritten, and a missing one is skipped.
        replica.sql(
            "STOP SLAVE; SET GLOBAL slave_exec_mode = 'IDEMPOTENT'; SET sql_log_bin = 0; \
             INSERT INTO test.t VALUES (7, 70), (8, 71); DELETE FROM test.t WHERE id = 1; START SLAVE",
        );
        source.sql("INSERT INTO test.t VALUES (7, 71); UPDATE test.t SET a = 10 WHERE id = 1; DELETE FROM test.t WHERE id = 1; UPDATE test.t SET a = 5 WHERE id = 5");
        replica.wait_for(&end());
        replica.sql("SET sql_log_bin = 0; UPDATE test.t SET a = 5 WHERE id = 5");
        assert_same_rows(&source, &replica);
        // A statement with a password, which cannot run here.
        replica.sql("SET sql_log_bin = 0; CREATE USER there IDENTIFIED BY 'other'; SET sql_log_bin = 1");
        source.sql("CREATE USER there IDENTIFIED BY 'gehe1m'");
        let text = wait_for_error(&replica, "1396");
        assert!(text.contains("CREATE USER there IDENTIFIED BY '<secret>'"), "{text}");
        assert!(!replica.log().contains("gehe1m"), "the error log has it");
        replica.sql("SET GLOBAL sql_slave_skip_counter = 1; START SLAVE");
        replica.wait_for(&end());
        // A statement that cannot run here.
        replica.sql(
            "STOP SLAVE; SET GLOBAL slave_ddl_exec_mode = 'STRICT'; SET sql_log_bin = 0; \
             CREATE TABLE test.there (a INT); START SLAVE",
        );
        source.sql("CREATE TABLE test.there (b INT)");
        let text = wait_for_error(&replica, "1050");
        assert_eq!(
            text,
            "Error 'Table 'there' already exists' on query. Default database: ''. Query: 'CREATE TABLE test.there (b INT)'"
        );
        replica.sql("SET GLOBAL slave_ddl_exec_mode = 'IDEMPOTENT'; START SLAVE");
        replica.wait_for(&end());
        assert_same_rows(&source, &replica);
    }
}

#[test]
fn appliers_stop_at_once_whatever_they_wait_for_and_local_sessions_do_not_hang_them() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[
        LOGS,
        "--server-id=7",
        "--slave-parallel-threads=4",
        "--slave-parallel-mode=aggressive",
    ]);
    replica.follow(source.port);
    prepare(&source, source.port);
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    let mut holder = replica.client();
    use mysql::prelude::Queryable;
    for round in 0..long_or(20, 3) {
        // The first group waits for this session, which waits for a row of a later group.
        holder.query_drop("BEGIN").expect("begun");
        holder.query_drop("UPDATE sb.sbtest1 SET k = k WHERE id = 1").expect("locked");
        source.sql("UPDATE sb.sbtest1 SET k = k + 1 WHERE id = 1");
        source.sql("UPDATE sb.sbtest1 SET k = k + 1 WHERE id = 2");
        std::thread::sleep(Duration::from_millis(100));
        holder.query_drop("UPDATE sb.sbtest1 SET k = k WHERE id = 2").expect("the next group gives way");
        if round % 2 == 0 {
            let began = std::time::Instant::now();
            replica.sql("STOP SLAVE");
            assert!(began.elapsed() < Duration::from_secs(10), "STOP SLAVE waits for a local session");
        }
        holder.query_drop("ROLLBACK").expect("ended");
        if round % 2 == 0 {
            replica.sql("START SLAVE");
        }
        replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
        assert_same_rows(&source, &replica);
    }
    let mut writes = load(source.port, "oltp_write_only", 3);
    for _ in 0..10 {
        replica.sql(
            "STOP SLAVE; START SLAVE; STOP SLAVE SQL_THREAD; START SLAVE; STOP SLAVE IO_THREAD; START SLAVE",
        );
        holder.query_drop("FLUSH TABLES WITH READ LOCK").expect("locked");
        std::thread::sleep(Duration::from_millis(100));
        holder.query_drop("UNLOCK TABLES").expect("unlocked");
    }
    assert!(writes.wait().expect("asked").success());
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_same_rows(&source, &replica);
}

#[test]
fn semi_sync_acknowledged_groups_are_applied_after_both_crash() {
    let options = [
        "--rpl-semi-sync-master-enabled=1",
        "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
        "--rpl-semi-sync-master-timeout=60000",
    ];
    let mut source = Cohort::new(&options);
    let mut replica =
        Cohort::new(&[LOGS, "--server-id=7", "--rpl-semi-sync-slave-enabled=1", "--max-relay-log-size=8192"]);
    replica.follow(source.port);
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    replica.sql("STOP SLAVE SQL_THREAD");
    for n in 0..300 {
        source.sql(&format!("INSERT INTO shop.t VALUES ({n})"));
    }
    assert_eq!(source.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_no_tx'"), "Rpl_semi_sync_master_no_tx\t0");
    replica.kill();
    source.kill();
    replica.restart();
    wait_until("it is not applied", || replica.sql("SELECT COUNT(*), MAX(id) FROM shop.t") == "300\t299");
    // After another crash, nothing is applied twice.
    replica.kill_and_restart();
    wait_until("it is not idle", || {
        replica.replica_field("Slave_SQL_State").starts_with("Slave has read all relay log")
    });
    assert_eq!(replica.sql("SELECT COUNT(*) FROM shop.t"), "300");
    assert_eq!(replica.replica_field("Last_SQL_Errno"), "0");
}

/// A proxy to a source. It cuts the reply to a dump request after N bytes, one more each time, until the
/// whole reply got through.
struct Cutter {
    port: u16,
    /// The number of replies cut since the test requested cuts.
    cuts: Arc<AtomicUsize>,
    /// The whole reply got through. The test sets it to false to request cuts again.
    is_through: Arc<AtomicBool>,
}

impl Cutter {
    fn new(source: u16) -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (cuts, is_through) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
        let cutter = Cutter { port, cuts: Arc::clone(&cuts), is_through: Arc::clone(&is_through) };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", source))) else {
                    return;
                };
                // A connection that never requests a dump ends here.
                let _ = pass(&client, &server, &cuts, &is_through);
                for side in [&client, &server] {
                    let _ = side.shutdown(Shutdown::Both);
                }
            }
        });
        cutter
    }

    /// Cuts at every byte that the source has and the replica lacks. Returns the number of cuts.
    fn cut(&self) -> usize {
        self.cuts.store(0, Ordering::Relaxed);
        self.is_through.store(false, Ordering::Relaxed);
        while !self.is_through.load(Ordering::Relaxed) {
            let before = self.cuts.load(Ordering::Relaxed);
            wait_until("the cuts do not come on", || {
                self.cuts.load(Ordering::Relaxed) > before || self.is_through.load(Ordering::Relaxed)
            });
        }
        self.cuts.load(Ordering::Relaxed)
    }
}

/// COM_BINLOG_DUMP.
const DUMP: u8 = 18;

/// Forwards bytes from one side to the other. Returns `None` if one of them has closed the connection.
fn pass_on<'b>(mut from: &TcpStream, mut to: &TcpStream, bytes: &'b mut [u8]) -> Option<&'b [u8]> {
    match from.read(bytes) {
        Ok(0) => None,
        Ok(got) => {
            to.write_all(&bytes[..got]).ok()?;
            Some(&bytes[..got])
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(&[]),
        Err(_) => None,
    }
}

/// Forwards one connection: everything until the client requests the dump, then one more byte of the reply
/// than the last time.
fn pass(client: &TcpStream, server: &TcpStream, cuts: &AtomicUsize, is_through: &AtomicBool) -> Option<()> {
    let mut bytes = vec![0; 1 << 16];
    for side in [client, server] {
        side.set_nonblocking(true).ok()?;
    }
    loop {
        let asked = pass_on(client, server, &mut bytes)?;
        if asked.get(4) == Some(&DUMP) {
            break;
        }
        if asked.is_empty() && pass_on(server, client, &mut bytes)?.is_empty() {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    client.set_nonblocking(false).ok()?;
    server.set_nonblocking(false).ok()?;
    server.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    if !is_through.load(Ordering::Relaxed) {
        let mut left = cuts.fetch_add(1, Ordering::Relaxed);
        while left > 0 {
            let most = left.min(bytes.len());
            match pass_on(server, client, &mut bytes[..most])?.len() {
                // The source has nothing more to send.
                0 => {
                    is_through.store(true, Ordering::Relaxed);
                    break;
                }
                got => left -= got,
            }
        }
    }
    // The next cuts that the test requests start with a new connection.
    server.set_read_timeout(Some(Duration::from_millis(20))).ok()?;
    while is_through.load(Ordering::Relaxed) {
        pass_on(server, client, &mut bytes)?;
    }
    Some(())
}

#[test]
fn a_connection_that_is_cut_at_every_byte_loses_and_doubles_nothing() {
    for (by, format, threads, change) in [
        (
            "slave_pos",
            "ROW",
            0,
            "BEGIN; INSERT INTO test.t (n, b) VALUES (1, 'x'), (2, NULL); UPDATE test.t SET n = n + 1; COMMIT",
        ),
        ("no", "MIXED", 2, "ALTER TABLE test.t ADD COLUMN more INT DEFAULT 5"),
    ] {
        let source = Maria::source(&[&format!("--binlog-format={format}")]);
        let replica = Cohort::new(&[LOGS, "--server-id=7", &format!("--slave-parallel-threads={threads}")]);
        source.sql("CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, b LONGTEXT)");
        let cutter = Cutter::new(source.port);
        // A heartbeat would make the reply longer.
        replica.sql(&format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', master_connect_retry=0, \
             master_heartbeat_period=30, master_use_gtid={by}; START SLAVE",
            cutter.port
        ));
        replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
        let place = || -> (String, u64) {
            let status = source.sql("SHOW MASTER STATUS");
            let mut words = status.split_whitespace().map(str::to_owned);
            let file = words.next().expect("a file");
            (file, words.next().and_then(|position| position.parse().ok()).expect("a position"))
        };
        let before = place().1;
        source.sql(change);
        let cuts = cutter.cut();
        assert!(cuts as u64 > place().1 - before, "{change}: {cuts} cuts");
        replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
        assert_same_rows(&source, &replica);
        let (file, position) = place();
        assert_ne!(replica.sql(&format!("SELECT MASTER_POS_WAIT('{file}', {position}, 10)")), "-1");
        // The position is in terms of the source's files.
        assert_eq!(replica.replica_field("Relay_Master_Log_File"), file);
        assert_eq!(replica.replica_field("Exec_Master_Log_Pos"), position.to_string());
    }
}

#[test]
fn connections_are_configured_kept_and_forgotten_as_in_mariadb() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    source.sql("SET sql_log_bin = 0; CREATE USER repl@'127.0.0.1' IDENTIFIED BY 'g3heim'; GRANT REPLICATION SLAVE ON *.* TO repl@'127.0.0.1'");
    let mut replica = Cohort::new(&[LOGS, "--server-id=7", "--general-log=1", "--skip-slave-start"]);
    let refused = |sql: &str| replica.tool("mariadb", &["-e", sql]).1;
    assert!(
        refused("START SLAVE")
            .contains("ERROR 1200 (HY000) at line 1: Misconfigured slave: MASTER_HOST was not set")
    );
    assert!(
        refused("START SLAVE 'x'")
            .contains("ERROR 1617 (HY000) at line 1: There is no master connection 'x'")
    );
    replica.sql(&format!(
        "CHANGE MASTER 'Two' TO master_host='127.0.0.1', master_port={}, master_user='repl', master_password='g3heim', \
         do_domain_ids=(0,3), master_delay=0, master_connect_retry=1",
        source.port
    ));
    assert!(refused("CHANGE MASTER 'two' TO master_nonsense=1").contains("ERROR"));
    replica.sql("START REPLICA 'two'");
    source.sql("CREATE TABLE test.a (id INT); SET gtid_domain_id = 5; CREATE TABLE test.b (id INT); SET gtid_domain_id = 3; CREATE TABLE test.c (id INT)");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!(replica.sql("SHOW TABLES IN test"), "a\nc");
    assert!(refused("CHANGE MASTER 'two' TO master_port=1").contains("ERROR 1198 (HY000)"));
    assert!(refused("RESET SLAVE 'two' ALL").contains("ERROR 1198 (HY000)"));
    assert!(refused("SET GLOBAL gtid_slave_pos = ''").contains("ERROR 1198 (HY000)"));
    replica.kill_and_restart();
    assert_eq!(replica.replica_field("Connection_name"), "two");
    assert_eq!(
        (replica.replica_field("Slave_IO_Running"), replica.replica_field("Master_User")),
        ("No".to_owned(), "repl".to_owned())
    );
    replica.sql("START ALL SLAVES");
    source.sql("INSERT INTO test.a VALUES (1)");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    replica.sql("STOP ALL REPLICAS");
    let here = replica.sql("SELECT @@gtid_slave_pos");
    replica.sql("START SLAVE 'two' UNTIL master_gtid_pos = '0-2-5,3-2-2,5-2-1'");
    for n in 0..6 {
        source.sql(&format!(
            "INSERT INTO test.a VALUES ({n}); SET gtid_domain_id = 3; INSERT INTO test.c VALUES ({n})"
        ));
    }
    wait_until("it does not stop", || replica.replica_field("Slave_SQL_Running") == "No");
    assert_eq!(replica.sql("SELECT @@gtid_slave_pos"), "0-2-5,3-2-2,5-2-1", "{here}");
    replica.sql("START SLAVE 'two'");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!(replica.sql("SELECT COUNT(*) FROM test.a"), "7");
    assert_eq!(replica.sql("SELECT COUNT(*) FROM test.c"), "6");
    replica.sql("STOP SLAVE 'two'; RESET SLAVE 'two' ALL");
    assert_eq!(replica.sql("SHOW ALL SLAVES STATUS"), "");
    replica.stop();
    // The password is stored in one file, which only the server may read.
    let said = replica.log();
    let mut found = Vec::new();
    for entry in
        std::fs::read_dir(&replica.datadir).expect("a directory").flatten().filter(|e| e.path().is_file())
    {
        let bytes = std::fs::read(entry.path()).expect("readable");
        if bytes.windows(6).any(|part| part == b"g3heim") {
            found.push(entry.file_name().into_string().expect("ASCII"));
        }
    }
    found.retain(|name| !name.starts_with("log") && !name.starts_with("redo"));
    assert!(!said.contains("g3heim") && found.is_empty(), "{found:?}");
}

/// Creates tables with foreign keys.
fn make_related(source: &dyn Ask) {
    source.ask(
        "CREATE DATABASE related; USE related;
         CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE);
         CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
         CREATE TABLE d (id INT PRIMARY KEY, c INT, u INT, FOREIGN KEY (c) REFERENCES c (id) ON DELETE SET NULL,
             FOREIGN KEY (u) REFERENCES p (u) ON DELETE SET NULL ON UPDATE CASCADE)",
    );
}

/// Inserts rows immediately after their parents, and makes changes that cascade.
fn change_related(source: &dyn Ask, from: usize, count: usize) {
    let mut statements = String::from("USE related;");
    for n in from..from + count {
        statements += &format!("INSERT INTO p VALUES ({n}, {n}); INSERT INTO c VALUES ({n}, {n});");
        statements += &format!(
            "BEGIN; INSERT INTO d VALUES ({n}, {n}, {n}); UPDATE d SET u = NULL WHERE id = {n} - 1; COMMIT;"
        );
        statements += &match n % 4 {
            0 => format!("UPDATE p SET id = id + 100000 WHERE id = {n};"),
            1 => format!("UPDATE p SET u = -u WHERE id = {n};"),
            2 => format!("DELETE FROM p WHERE id = {n};"),
            _ => format!("DELETE FROM c WHERE id = {n}; REPLACE INTO p VALUES ({n}, {n});"),
        };
        if n % 10 == 0 {
            statements += &format!(
                "SET foreign_key_checks = 0; INSERT INTO c VALUES (-{n}, -5); SET foreign_key_checks = 1;"
            );
        }
    }
    source.ask(&statements);
}

#[test]
fn foreign_keys_act_on_a_replica_of_mariadb_in_every_mode() {
    for (n, mode) in ["none", "conservative", "optimistic", "aggressive"].into_iter().enumerate() {
        let source = Maria::source(&[["--binlog-format=ROW", "--binlog-format=MIXED"][n % 2]]);
        let mode = format!("--slave-parallel-mode={mode}");
        let mut replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=4", &mode]);
        replica.follow(source.port);
        make_related(&source);
        change_related(&source, 1, long_or(1000, 40));
        replica.kill_and_restart();
        change_related(&source, 5001, long_or(1000, 40));
        replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
        assert_same_rows(&source, &replica);
    }
}

#[test]
fn foreign_keys_act_on_replicas_of_cohort() {
    let source = Cohort::new(&[]);
    let replica =
        Maria::new(&["--server-id=8", "--slave-parallel-threads=4", "--slave-parallel-mode=optimistic"]);
    replica.follow(source.port);
    let own =
        Cohort::new(&["--server-id=9", "--slave-parallel-threads=4", "--slave-parallel-mode=optimistic"]);
    own.follow(source.port);
    make_related(&source);
    change_related(&source, 1, long_or(1000, 40));
    let position = source.sql("SELECT @@gtid_binlog_pos");
    replica.wait_for(&position);
    own.wait_for(&position);
    assert_same_rows(&source, &replica);
    assert_same_rows(&source, &own);
    // Cascading changes are not in row events.
    let id = source.sql("SELECT MAX(id) FROM related.p");
    let events = |source: &Cohort| {
        source.sql("SHOW BINLOG EVENTS").lines().filter(|line| line.contains("Delete_rows")).count()
    };
    let before = events(&source);
    source.sql(&format!("DELETE FROM related.p WHERE id = {}", id.trim()));
    assert_eq!(events(&source), before + 1);
}

const ACCOUNTS: &[&str] = &[
    "CREATE USER plain IDENTIFIED BY 'secret', signer@localhost IDENTIFIED VIA ed25519 USING PASSWORD('secret')",
    "CREATE USER ruled REQUIRE SSL WITH MAX_USER_CONNECTIONS 3 ACCOUNT LOCK PASSWORD EXPIRE INTERVAL 9 DAY",
    "CREATE USER passing IDENTIFIED BY 'x'",
    "CREATE ROLE reading",
    "CREATE ROLE writing",
    "GRANT SELECT ON test.* TO reading",
    "GRANT reading TO writing",
    "GRANT writing TO plain WITH ADMIN OPTION",
    "SET DEFAULT ROLE writing FOR plain",
    "CREATE TABLE test.granted (a INT, b INT)",
    "GRANT SELECT (a), UPDATE (b) ON test.granted TO signer@localhost WITH GRANT OPTION",
    "GRANT RELOAD, PROCESS ON *.* TO given IDENTIFIED BY 'made by grant'",
    "ALTER USER signer@localhost IDENTIFIED VIA unix_socket OR ed25519 USING PASSWORD('other')",
    "ALTER USER ruled ACCOUNT UNLOCK PASSWORD EXPIRE NEVER",
    "SET PASSWORD FOR plain = PASSWORD('changed')",
    "REVOKE UPDATE (b) ON test.granted FROM signer@localhost",
    "RENAME USER ruled TO renamed@localhost",
    "REVOKE reading FROM writing",
    "DROP USER passing",
    "GRANT SELECT ON hr.* TO PUBLIC",
    "GRANT reading TO PUBLIC",
    "GRANT PROXY ON plain TO given",
    "GRANT PROXY ON nosuch@localhost TO plain",
    "REVOKE PROXY ON plain FROM given",
    "GRANT PROXY ON signer@localhost TO given",
    // Tools change accounts in this way.
    "CREATE USER going, passing IDENTIFIED BY 'x'",
    "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.account_locked', true, '$.max_questions', 4) WHERE User = 'given'",
    "DELETE FROM mysql.global_priv WHERE User = 'going' OR User = 'passing'",
    "DELETE FROM mysql.db WHERE User = 'PUBLIC' AND Db LIKE 'test%'",
    "FLUSH PRIVILEGES",
];

/// Returns what both kinds of servers show of these accounts.
fn shown_accounts(server: &dyn Ask) -> Vec<String> {
    let mut lines = Vec::new();
    for name in ["plain", "signer@localhost", "renamed@localhost", "given"] {
        lines.push(server.ask(&format!("SHOW CREATE USER {name}")));
        let mut grants: Vec<String> =
            server.ask(&format!("SHOW GRANTS FOR {name}")).lines().map(str::to_owned).collect();
        grants.sort();
        lines.extend(grants);
    }
    for role in ["reading", "writing"] {
        lines.push(server.ask(&format!("SHOW GRANTS FOR {role}")));
    }
    // MariaDB's installation grants additional privileges to PUBLIC.
    let of_all = server.ask("SHOW GRANTS FOR PUBLIC");
    lines.extend(of_all.lines().filter(|line| !line.contains("`test")).map(str::to_owned));
    lines.push(server.ask("SELECT COUNT(*) FROM mysql.user WHERE User IN ('passing', 'ruled')"));
    lines
}

#[test]
fn accounts_and_roles_arrive_both_ways() {
    const KEYS: &str = "--plugin-load-add=auth_ed25519";
    let maria = Maria::source(&[KEYS]);
    let ours = Cohort::new(&[LOGS, "--server-id=7"]);
    ours.follow(maria.port);
    ACCOUNTS.iter().for_each(|statement| drop(maria.ask(statement)));
    ours.wait_for(&maria.sql("SELECT @@gtid_binlog_pos"));
    let expected = shown_accounts(&maria);
    assert_eq!(shown_accounts(&ours), expected);

    let source = Cohort::new(&[]);
    let theirs = Maria::new(&["--server-id=8", KEYS]);
    theirs.follow(source.port);
    let own = Cohort::new(&["--server-id=9"]);
    own.follow(source.port);
    ACCOUNTS.iter().for_each(|statement| drop(source.ask(statement)));
    let position = source.sql("SELECT @@gtid_binlog_pos");
    theirs.wait_for(&position);
    own.wait_for(&position);
    assert_eq!(shown_accounts(&source), expected);
    assert_eq!(shown_accounts(&theirs), expected);
    assert_eq!(shown_accounts(&own), expected);
    let logged = source.sql("SHOW BINLOG EVENTS");
    for secret in ["'secret'", "'made by grant'", "'other'", "'changed'", "BY 'x'"] {
        assert!(logged.contains("CREATE USER") && !logged.contains(secret), "{secret}: {logged}");
    }
}
