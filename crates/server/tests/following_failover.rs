//! Failover: a source dies, its Cohort replica is promoted, the other replicas follow the new source, and the
//! old source returns as its replica. Then everything is switched back.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql::prelude::Queryable;
use support::{Cohort, Ends, Maria, wait_until};

const SEMI_SYNC: [&str; 4] = [
    "--log-slave-updates",
    "--rpl-semi-sync-master-timeout=60000",
    "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
    "--init-rpl-role=SLAVE",
];

/// A server of either kind.
trait Server {
    fn ask(&self, sql: &str) -> String;
    fn port(&self) -> u16;
    fn connect(&self) -> mysql::Conn;
    fn kill_it(&mut self);
    fn start_it(&mut self);
}

macro_rules! server {
    ($kind:ty) => {
        impl Server for $kind {
            fn ask(&self, sql: &str) -> String {
                self.sql(sql)
            }
            fn port(&self) -> u16 {
                self.port
            }
            fn connect(&self) -> mysql::Conn {
                self.client()
            }
            fn kill_it(&mut self) {
                self.kill();
            }
            fn start_it(&mut self) {
                self.restart();
            }
        }
    };
}

server!(Cohort);
server!(Maria);

fn end_of(server: &dyn Server) -> String {
    server.ask("SELECT @@gtid_binlog_pos")
}

fn wait_for(server: &dyn Server, position: &str) {
    wait_until(&format!("{position} is not reached"), || {
        server.ask(&format!("SELECT MASTER_GTID_WAIT('{position}', 1)")) == "0"
    });
}

fn point_to(server: &dyn Server, source: &dyn Server, more: &str) {
    server.ask(&format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', master_connect_retry=1, \
         master_use_gtid=slave_pos{more}; START SLAVE",
        source.port()
    ));
}

const DIGEST: &str =
    "SELECT COUNT(*), MAX(n), SUM(CRC32(b)) FROM shop.orders; SELECT COUNT(*) FROM shop.later";

/// Promotes the most advanced replica, which has all acknowledged transactions.
fn promote(server: &Cohort) {
    server.sql("STOP SLAVE IO_THREAD");
    wait_until("it does not apply what it has", || {
        server.replica_field("Slave_SQL_Running_State").starts_with("Slave has read all relay log")
    });
    server.sql("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
}

fn fail_over(source: &mut dyn Server, dies_under_load: bool) {
    let heir = Cohort::new(
        &[&SEMI_SYNC[..], &["--server-id=11", "--rpl-semi-sync-slave-enabled=1", "--read-only=1"]].concat(),
    );
    let threads = "--slave-parallel-threads=3";
    let cohort = Cohort::new(&["--log-slave-updates", "--server-id=12", "--gtid-strict-mode=1", threads]);
    let maria = Maria::source(&["--log-slave-updates", "--server-id=13", "--gtid-strict-mode=1", threads]);
    let others: [&dyn Server; 2] = [&cohort, &maria];
    point_to(&heir, source, "");
    others.iter().for_each(|other| point_to(*other, source, ""));
    source.ask("CREATE DATABASE shop CHARACTER SET utf8mb4; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, n INT, b TEXT)");
    wait_until("it is not semi-synchronous", || {
        source.ask("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t1")
    });
    source.ask("SET GLOBAL rpl_semi_sync_master_enabled = 1");
    for other in others.iter().copied().chain([&heir as &dyn Server]) {
        wait_for(other, &end_of(source));
    }
    let stops = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let (mut client, stops) = (source.connect(), &stops);
        let _ends = Ends(stops);
        let writer = scope.spawn(move || write_rows(&mut client, stops));
        std::thread::sleep(Duration::from_millis(500));
        // The other replicas lag.
        others.iter().for_each(|other| drop(other.ask("STOP SLAVE")));
        std::thread::sleep(Duration::from_millis(500));
        if !dies_under_load {
            stops.store(true, Ordering::Relaxed);
            let acknowledged = writer.join().expect("no panic");
            source.kill_it();
            return acknowledged;
        }
        source.kill_it();
        writer.join().expect("no panic")
    });
    promote(&heir);
    let here: u64 = heir.sql("SELECT MAX(n) FROM shop.orders").parse().expect("rows");
    assert!(here >= acknowledged && acknowledged > 0, "{acknowledged} were acknowledged, {here} are there");
    others.iter().for_each(|other| point_to(*other, &heir, ""));
    heir.sql("CREATE TABLE shop.later (a INT PRIMARY KEY); INSERT INTO shop.later VALUES (1), (2), (3)");
    // The old source returns: its unacknowledged transactions are gone, and what it wrote counts as applied.
    source.start_it();
    point_to(source, &heir, ", master_demote_to_slave=1");
    heir.sql("INSERT INTO shop.later VALUES (4); INSERT INTO shop.orders (n) VALUES (0)");
    for server in others.iter().copied().chain([&*source]) {
        wait_for(server, &end_of(&heir));
        let position = server.ask("SELECT @@server_id, @@gtid_slave_pos, @@gtid_binlog_state");
        assert_eq!(
            server.ask(DIGEST),
            heir.sql(DIGEST),
            "{position}, {}",
            heir.sql("SELECT @@gtid_binlog_state")
        );
    }
    // Switches back without a crash.
    heir.sql("SET GLOBAL read_only = 1");
    wait_for(source, &end_of(&heir));
    source.ask("STOP SLAVE; RESET SLAVE ALL");
    point_to(&heir, source, ", master_demote_to_slave=1");
    others.iter().for_each(|other| {
        other.ask("STOP SLAVE");
        point_to(*other, source, "");
    });
    source.ask("SET GLOBAL rpl_semi_sync_master_enabled = 0; INSERT INTO shop.later VALUES (5)");
    for server in others.iter().copied().chain([&heir as &dyn Server]) {
        wait_for(server, &end_of(source));
        assert_eq!(server.ask(DIGEST), source.ask(DIGEST));
    }
}

/// Writes until the source dies or `stops` is set. Returns the number of acknowledged rows.
fn write_rows(client: &mut mysql::Conn, stops: &AtomicBool) -> u64 {
    let mut acknowledged = 0;
    while !stops.load(Ordering::Relaxed) {
        let n = acknowledged + 1;
        let row = format!("INSERT INTO shop.orders (n, b) VALUES ({n}, REPEAT('x', {}))", n % 500);
        if client.query_drop(row).is_err() {
            break;
        }
        acknowledged = n;
    }
    acknowledged
}

#[test]
fn a_replica_takes_the_place_of_a_cohort_that_dies() {
    let options = ["--server-id=10", "--rpl-semi-sync-master-enabled=0"];
    let mut source = Cohort::new(&[&SEMI_SYNC[..], &options].concat());
    fail_over(&mut source, true);
}

#[test]
fn a_replica_takes_the_place_of_a_mariadb_that_dies() {
    let mut source = Maria::source(&[&SEMI_SYNC[..], &["--server-id=10"]].concat());
    fail_over(&mut source, false);
}

/// Runs two servers that replicate each other, each writing in its own domain. One dies, its replica takes
/// its place in the ring, and the old server returns as a replica of the new one.
fn ring_fails_over(heir: &dyn Server) {
    let options = |id, domain| {
        ["--log-slave-updates", "--gtid-strict-mode=1", "--slave-parallel-threads=2", id, domain]
    };
    let one = Cohort::new(&options("--server-id=21", "--gtid-domain-id=1"));
    let mut two = Cohort::new(&options("--server-id=22", "--gtid-domain-id=2"));
    one.sql("CREATE TABLE test.one (n INT)");
    point_to(&two, &one, "");
    wait_for(&two, &end_of(&one));
    two.sql("CREATE TABLE test.two (n INT)");
    one.sql(&format!("SET GLOBAL gtid_slave_pos = '{}'", end_of(&one)));
    point_to(&one, &two, "");
    point_to(heir, &two, "");
    let write = |server: &dyn Server, table: &str, from: u32| {
        for n in from..from + 20 {
            server.ask(&format!("INSERT INTO test.{table} VALUES ({n})"));
        }
    };
    let domain = |server: &dyn Server, domain: &str| -> String {
        let position = end_of(server);
        position.split(',').find(|gtid| gtid.starts_with(domain)).unwrap_or_default().to_owned()
    };
    let compare = |servers: &[&dyn Server], rows: u32| {
        for server in servers {
            for table in ["one", "two"] {
                let count = server.ask(&format!("SELECT COUNT(*), COUNT(DISTINCT n) FROM test.{table}"));
                assert_eq!(
                    count,
                    format!("{rows}\t{rows}"),
                    "{table} of {}",
                    server.ask("SELECT @@server_id")
                );
            }
        }
    };
    write(&one, "one", 0);
    write(&two, "two", 0);
    for server in [&one as &dyn Server, &two, heir] {
        wait_for(server, &domain(&two, "2-"));
        wait_for(server, &domain(&one, "1-"));
    }
    compare(&[&one, &two, heir], 20);
    two.kill();
    // From now on, the dead server's domain is written here.
    heir.ask("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL gtid_domain_id = 2");
    heir.ask(&format!("SET GLOBAL gtid_slave_pos = '{}'", end_of(heir)));
    point_to(heir, &one, "");
    one.sql("STOP SLAVE");
    point_to(&one, heir, "");
    write(&one, "one", 20);
    write(heir, "two", 20);
    two.restart();
    // It would continue in the old ring.
    two.sql("STOP SLAVE; RESET SLAVE ALL");
    point_to(&two, heir, ", master_demote_to_slave=1");
    write(heir, "two", 40);
    write(&one, "one", 40);
    for server in [&one as &dyn Server, &two, heir] {
        wait_for(server, &domain(heir, "2-"));
        wait_for(server, &domain(&one, "1-"));
    }
    compare(&[&one, &two, heir], 60);
    assert_eq!(end_of(&one), end_of(heir));
    assert_eq!(end_of(&two), end_of(heir));
    for server in [&one, &two] {
        assert_eq!(server.replica_field("Last_SQL_Errno"), "0");
        assert_eq!(server.replica_field("Last_IO_Errno"), "0");
    }
}

#[test]
fn a_replica_takes_a_place_in_a_ring_of_two_domains() {
    let options = ["--log-slave-updates", "--gtid-strict-mode=1", "--server-id=23"];
    ring_fails_over(&Cohort::new(&options));
    ring_fails_over(&Maria::source(&options));
}

/// Writes rows until `stops` is set, across crashes of the server. Returns the rows that the server
/// acknowledged.
fn write_own_rows(server: &std::sync::Mutex<Cohort>, table: &str, stops: &AtomicBool) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    let connect = || mysql::Conn::new(server.lock().expect("no panic").options()).ok();
    let mut client = None;
    for n in 0.. {
        if stops.load(Ordering::Relaxed) {
            break;
        }
        client = client.or_else(connect);
        let row = format!("INSERT INTO test.{table} VALUES ({n})");
        if client.as_mut().is_some_and(|open: &mut mysql::Conn| open.query_drop(row).is_ok()) {
            acknowledged.push(n);
        } else {
            client = None;
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    acknowledged
}

/// Runs two servers that replicate each other, each writing in its own domain. Both are killed in turn while
/// the other continues.
fn ring_survives_deaths(threads: &str) {
    let options = |id, domain| ["--log-slave-updates", "--gtid-strict-mode=1", threads, id, domain];
    let one = Cohort::new(&options("--server-id=31", "--gtid-domain-id=1"));
    let two = Cohort::new(&options("--server-id=32", "--gtid-domain-id=2"));
    one.sql("CREATE TABLE test.one (n BIGINT)");
    point_to(&two, &one, "");
    wait_for(&two, &end_of(&one));
    two.sql("CREATE TABLE test.two (n BIGINT)");
    one.sql(&format!("SET GLOBAL gtid_slave_pos = '{}'", end_of(&one)));
    point_to(&one, &two, "");
    wait_for(&one, &end_of(&two));
    let stops = AtomicBool::new(false);
    let (one, two) = (std::sync::Mutex::new(one), std::sync::Mutex::new(two));
    let acknowledged = std::thread::scope(|scope| {
        let _ends = Ends(&stops);
        let first = scope.spawn(|| write_own_rows(&one, "one", &stops));
        let second = scope.spawn(|| write_own_rows(&two, "two", &stops));
        for _ in 0..2 {
            for (dies, lives, domain) in [(&one, &two, "2-"), (&two, &one, "1-")] {
                std::thread::sleep(Duration::from_millis(300));
                let mut dies = dies.lock().expect("no panic");
                dies.kill();
                let last = || {
                    let position = end_of(&*lives.lock().expect("no panic"));
                    position.split(',').find(|gtid| gtid.starts_with(domain)).map(str::to_owned)
                };
                let before = last();
                wait_until("the other one does not go on", || last() != before);
                dies.restart();
            }
        }
        std::thread::sleep(Duration::from_millis(300));
        stops.store(true, Ordering::Relaxed);
        [first.join().expect("no panic"), second.join().expect("no panic")]
    });
    let (one, two) = (one.into_inner().expect("no panic"), two.into_inner().expect("no panic"));
    wait_for(&one, &end_of(&two));
    wait_for(&two, &end_of(&one));
    for (table, acknowledged) in ["one", "two"].into_iter().zip(acknowledged) {
        let list = format!("SELECT n FROM test.{table} ORDER BY n");
        let there = one.sql(&list);
        assert_eq!(there, two.sql(&list), "{table}, {threads}");
        let there: Vec<u64> = there.lines().map(|n| n.parse().expect("a number")).collect();
        assert!(there.windows(2).all(|pair| pair[0] < pair[1]), "{table}, {threads}: a row is there twice");
        let is_there = |n: &u64| there.binary_search(n).is_ok();
        assert!(
            acknowledged.iter().all(is_there) && acknowledged.len() > 20,
            "{table}, {threads}: {} rows",
            acknowledged.len()
        );
    }
    assert_eq!(end_of(&one), end_of(&two));
    for server in [&one, &two] {
        assert_eq!(server.replica_field("Last_SQL_Errno"), "0");
    }
}

#[test]
fn two_that_follow_each_other_go_on_alone_and_meet_again() {
    ring_survives_deaths("--slave-parallel-threads=0");
    ring_survives_deaths("--slave-parallel-threads=3");
}

/// Runs a chain of three servers. The first one dies under load, the middle one is promoted, the last one
/// needs no change, and the first one returns at the end of the chain.
fn middle_takes_over(last: &dyn Server) {
    let first_options = ["--server-id=41", "--rpl-semi-sync-master-enabled=0"];
    let mut first = Cohort::new(&[&SEMI_SYNC[..], &first_options].concat());
    let heir = ["--server-id=42", "--rpl-semi-sync-slave-enabled=1", "--read-only=1"];
    let middle = Cohort::new(&[&SEMI_SYNC[..], &heir, &["--slave-parallel-threads=2"]].concat());
    point_to(&middle, &first, "");
    point_to(last, &middle, "");
    first.sql("CREATE DATABASE shop CHARACTER SET utf8mb4; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, n INT, b TEXT)");
    wait_until("it is not semi-synchronous", || {
        first.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t1")
    });
    first.sql("SET GLOBAL rpl_semi_sync_master_enabled = 1");
    wait_for(last, &end_of(&first));
    let stops = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let (mut client, stops) = (first.client(), &stops);
        let _ends = Ends(stops);
        let writer = scope.spawn(move || write_rows(&mut client, stops));
        std::thread::sleep(Duration::from_millis(700));
        first.kill();
        writer.join().expect("no panic")
    });
    promote(&middle);
    let here: u64 = middle.sql("SELECT MAX(n) FROM shop.orders").parse().expect("rows");
    assert!(here >= acknowledged && acknowledged > 0, "{acknowledged} were acknowledged, {here} are there");
    middle.sql("CREATE TABLE shop.later (a INT PRIMARY KEY); INSERT INTO shop.later VALUES (1), (2), (3)");
    first.restart();
    point_to(&first, last, ", master_demote_to_slave=1");
    middle.sql("INSERT INTO shop.later VALUES (4); INSERT INTO shop.orders (n) VALUES (0)");
    for server in [last, &first] {
        wait_for(server, &end_of(&middle));
        assert_eq!(server.ask(DIGEST), middle.sql(DIGEST));
        assert_eq!(end_of(server), end_of(&middle));
    }
}

#[test]
fn the_middle_of_a_chain_takes_the_place_of_its_source() {
    let options = ["--log-slave-updates", "--gtid-strict-mode=1", "--server-id=43"];
    middle_takes_over(&Cohort::new(&options));
    middle_takes_over(&Maria::source(&options));
}
