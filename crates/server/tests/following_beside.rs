//! Cohort and a real MariaDB as replicas of the same source: comparison of replication filters and of the
//! status output.

mod support;

use std::collections::BTreeMap;

use support::{Cohort, Maria, wait_until};

/// A source and both replicas.
struct Pair {
    source: Maria,
    cohort: Cohort,
    maria: Maria,
}

impl Pair {
    fn new(format: &str) -> Pair {
        Pair::with(format, &[])
    }

    fn with(format: &str, options: &[&str]) -> Pair {
        let format = format!("--binlog-format={format}");
        let source = Maria::source(&[&format]);
        let cohort = ["--log-slave-updates", "--server-id=7", "--slave-net-timeout=10"];
        let cohort = Cohort::new(&[&cohort, options].concat());
        // Cohort's replication tables do not require the performance schema to be on.
        let maria = ["--log-bin=binlog", "--log-slave-updates", "--server-id=9", "--performance-schema=ON"];
        let maria = Maria::new(&[&maria, options].concat());
        cohort.follow(source.port);
        maria.follow(source.port);
        Pair { source, cohort, maria }
    }

    fn on_both(&self, sql: &str) -> (String, String) {
        (self.cohort.sql(sql), self.maria.sql(sql))
    }

    /// Returns the error output of both servers.
    fn refusals(&self, sql: &str) -> (String, String) {
        let socket = format!("--socket={}", self.maria.socket.display());
        let maria = support::run("mariadb", &["--no-defaults", "--user=root", &socket, "-e", sql]);
        (self.cohort.tool("mariadb", &["-e", sql]).1, support::text(&maria))
    }

    fn wait(&self) {
        let end = self.source.gtid_end();
        self.cohort.wait_for(&end);
        self.maria.wait_for(&end);
    }

    /// Compares all schemas, tables and rows of both.
    fn assert_alike(&self, what: &str) {
        let own = "('mysql', 'information_schema', 'performance_schema', 'sys')";
        let (ours, theirs) = self.on_both(&format!(
            "SELECT schema_name, '' FROM information_schema.schemata WHERE schema_name NOT IN {own} UNION ALL \
             SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT IN {own} ORDER BY 1, 2"
        ));
        assert_eq!(ours, theirs, "{what}: tables");
        for line in ours.lines() {
            if let Some((schema, table)) = line.split_once('\t').filter(|(_, table)| !table.is_empty()) {
                let (ours, theirs) = self.on_both(&format!("SELECT * FROM `{schema}`.`{table}` ORDER BY 1"));
                assert_eq!(ours, theirs, "{what}: {schema}.{table}");
            }
        }
        let (ours, theirs) = self.on_both("SELECT @@gtid_slave_pos");
        assert_eq!(ours, theirs, "{what}: position");
    }
}

/// Filter rules by their settings.
const FILTERS: &[&[(&str, &str)]] = &[
    &[("replicate_do_db", "a")],
    &[("replicate_do_db", "a,b")],
    &[("replicate_ignore_db", "a")],
    &[("replicate_do_table", "a.one")],
    &[("replicate_do_table", "a.one,b.two")],
    &[("replicate_ignore_table", "a.one")],
    &[("replicate_wild_do_table", "a.%,b.t%")],
    &[("replicate_wild_do_table", "_.on_")],
    &[("replicate_wild_ignore_table", "a.t%,b.%")],
    &[("replicate_do_db", "a"), ("replicate_ignore_table", "a.two")],
    &[("replicate_ignore_db", "b"), ("replicate_wild_do_table", "%.one")],
    &[("replicate_do_table", "a.one"), ("replicate_wild_ignore_table", "b.%")],
    &[("replicate_rewrite_db", "a->z")],
    &[("replicate_rewrite_db", "a->z,b->y"), ("replicate_do_db", "z")],
    &[("replicate_rewrite_db", "a->z"), ("replicate_ignore_table", "z.two")],
];

const RULES: [&str; 7] = [
    "replicate_do_db",
    "replicate_ignore_db",
    "replicate_do_table",
    "replicate_ignore_table",
    "replicate_wild_do_table",
    "replicate_wild_ignore_table",
    "replicate_rewrite_db",
];

/// Changes without a current schema, and with one that is not the table's. For statements with both kinds of
/// tables, MariaDB applies other rules than for rows, so that an error may stop a replica. Such statements
/// are omitted here.
const CHANGES: &str = "USE a; INSERT INTO one VALUES (1, 'a'), (2, 'b'), (3, NULL); INSERT INTO two SELECT * FROM one; \
     UPDATE one SET t = CONCAT(t, '!') WHERE n < 3; DELETE FROM two WHERE n = 2; CREATE TABLE three (n INT); \
     INSERT INTO three VALUES (1); ALTER TABLE two ADD more INT DEFAULT 5; \
     BEGIN; INSERT INTO one VALUES (10, 'x'); INSERT INTO two VALUES (10, 'y', 6); COMMIT; \
     USE b; INSERT INTO one VALUES (1, 'a'), (2, 'b'); INSERT INTO two SELECT * FROM one; \
     REPLACE INTO two VALUES (2, 'other'); TRUNCATE one; INSERT INTO one VALUES (7, 'after'); \
     RENAME TABLE two TO third; INSERT INTO third VALUES (9, 'renamed'); DROP TABLE third; \
     USE a; DROP TABLE three";

fn filters(format: &str) {
    let pair = Pair::new(format);
    for rules in FILTERS {
        let what = format!("{format} {rules:?}");
        pair.wait();
        pair.source.sql("DROP DATABASE IF EXISTS a; DROP DATABASE IF EXISTS b");
        pair.wait();
        // All objects exist before the rules apply, so that no rule names a missing table.
        for server in [pair.cohort.sql("STOP SLAVE"), pair.maria.sql("STOP SLAVE")] {
            assert_eq!(server, "");
        }
        for rule in RULES {
            let value = rules.iter().find(|(name, _)| *name == rule).map_or("", |(_, value)| value);
            pair.on_both(&format!("SET GLOBAL {rule} = '{value}'"));
        }
        let make = "CREATE TABLE one (n INT PRIMARY KEY, t VARCHAR(20)); CREATE TABLE two (n INT PRIMARY KEY, t VARCHAR(20))";
        let mut here = String::from("SET sql_log_bin = 0;");
        for schema in ["a", "b", "y", "z"] {
            here += &format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4; USE {schema}; {make};");
        }
        pair.on_both(&here);
        pair.source.sql(&format!(
            "SET sql_log_bin = 0; CREATE DATABASE a CHARACTER SET utf8mb4; USE a; {make}; \
             CREATE DATABASE b CHARACTER SET utf8mb4; USE b; {make}; SET sql_log_bin = 1; {CHANGES}"
        ));
        pair.on_both("START SLAVE");
        pair.wait();
        pair.assert_alike(&what);
        let shown: Vec<String> = RULES
            .iter()
            .map(|rule| rule.replace("replicate_", "Replicate_"))
            .filter(|name| {
                // MariaDB lists tables in hash order.
                let value = |status: String| {
                    let prefix = format!("{}:", name.to_lowercase());
                    let lines: Vec<String> = status.lines().map(|line| line.trim().to_lowercase()).collect();
                    let value = lines.iter().find_map(|line| line.strip_prefix(&prefix)).map(str::trim);
                    let mut parts: Vec<String> =
                        value.unwrap_or("none").split(',').map(str::to_owned).collect();
                    parts.sort();
                    parts
                };
                value(pair.cohort.replica_status()) != value(pair.maria.status())
            })
            .collect();
        assert!(shown.is_empty(), "{what}: {shown:?} {}", pair.cohort.replica_status());
        // Restores the state in which all servers are equal.
        pair.on_both("STOP SLAVE");
        for rule in RULES {
            pair.on_both(&format!("SET GLOBAL {rule} = ''"));
        }
        pair.on_both("SET sql_log_bin = 0; DROP DATABASE a; DROP DATABASE b; DROP DATABASE y; DROP DATABASE z; START SLAVE");
        pair.source.sql("SET sql_log_bin = 0; DROP DATABASE a; DROP DATABASE b");
    }
}

#[test]
fn filters_let_pass_the_rows_that_mariadbs_do() {
    filters("ROW");
}

#[test]
fn filters_let_pass_the_statements_that_mariadbs_do() {
    filters("STATEMENT");
}

/// Returns the lines of a status, without those that differ between servers or change over time.
fn lines(status: &str) -> BTreeMap<String, String> {
    let pairs = status.lines().filter_map(|line| line.trim().split_once(':'));
    // MariaDB counts a group each time that it begins.
    let own = [
        "Slave_Transactional_Groups",
        "Relay_Log_File",
        "Relay_Log_Pos",
        "Relay_Log_Space",
        "Executed_log_entries",
        "Slave_received_heartbeats",
        "Max_relay_log_size",
    ];
    pairs
        .filter(|(name, _)| !own.contains(name))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

#[test]
fn replica_status_equals_mariadbs() {
    let pair = Pair::new("ROW");
    let names = |status: &str| -> Vec<String> {
        status
            .lines()
            .filter_map(|line| line.trim().split_once(':'))
            .map(|(name, _)| name.to_owned())
            .collect()
    };
    let status = || {
        let ours = pair.cohort.replica_status();
        let theirs = pair.maria.all_status();
        assert_eq!(names(&ours), names(&theirs));
        (lines(&ours), lines(&theirs))
    };
    let compare = |what: &str| {
        let mut last = (BTreeMap::new(), BTreeMap::new());
        let mut tries = 0;
        // The servers become idle at different times.
        while tries < 100 {
            last = status();
            if last.0 == last.1 {
                return;
            }
            tries += 1;
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let differing: Vec<_> =
            last.0.iter().filter(|(name, value)| last.1.get(*name) != Some(*value)).collect();
        let theirs: Vec<_> = differing.iter().map(|(name, _)| last.1.get(*name)).collect();
        panic!("{what}: {differing:?}, MariaDB {theirs:?}");
    };
    pair.source
        .sql("CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (1); DELETE FROM test.t");
    pair.wait();
    compare("idle");
    pair.on_both("STOP SLAVE SQL_THREAD");
    compare("without the SQL thread");
    pair.on_both("STOP SLAVE");
    compare("stopped");
    pair.on_both(
        "CHANGE MASTER TO master_connect_retry=3, master_delay=2, master_heartbeat_period=2.5, do_domain_ids=(0,1), \
         ignore_server_ids=(77,88)",
    );
    compare("changed");
    pair.on_both("START SLAVE");
    pair.source.sql("INSERT INTO test.t VALUES (2)");
    pair.wait();
    compare("delayed");
    pair.on_both(
        "STOP SLAVE; CHANGE MASTER TO master_delay=0, ignore_server_ids=(), do_domain_ids=(); START SLAVE",
    );
    pair.on_both("SET sql_log_bin = 0; INSERT INTO test.t VALUES (3)");
    pair.source.sql("INSERT INTO test.t VALUES (3)");
    wait_until("it goes on", || pair.cohort.replica_field("Last_SQL_Errno") == "1062");
    wait_until("MariaDB goes on", || pair.maria.status().contains("Last_SQL_Errno: 1062"));
    compare("in error");
    pair.on_both("SET sql_log_bin = 0; DELETE FROM test.t WHERE a = 3; START SLAVE SQL_THREAD");
    pair.wait();
    compare("cured");
    pair.on_both("STOP SLAVE; CHANGE MASTER TO master_port=1; START SLAVE IO_THREAD");
    compare("without a source");
    pair.on_both("STOP SLAVE; RESET SLAVE");
    compare("reset");
    // Counters over all connections.
    let counters =
        "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Slave%' OR Variable_name LIKE 'Rpl_semi_sync_slave%'";
    let (ours, theirs) = pair.on_both(counters);
    let named = |text: &str| -> Vec<(String, String)> {
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        pairs
            .filter(|(name, _)| *name != "Slave_received_heartbeats")
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    assert_eq!(named(&ours), named(&theirs));
}

/// Returns the errors that stopped the receivers of both, once they have stopped.
fn receivers_errors(pair: &Pair) -> ((String, String), (String, String)) {
    let field = |status: &str, name: &str| -> String {
        let prefix = format!("{name}:");
        let line = status.lines().find_map(|line| line.trim().strip_prefix(&prefix));
        line.unwrap_or_else(|| panic!("{name}: {status}")).trim().to_owned()
    };
    let of = |status: String| (field(&status, "Last_IO_Errno"), field(&status, "Last_IO_Error"));
    wait_until("Cohort goes on", || pair.cohort.replica_status().contains("Slave_IO_Running: No"));
    wait_until("MariaDB goes on", || pair.maria.status().contains("Slave_IO_Running: No"));
    (of(pair.cohort.replica_status()), of(pair.maria.status()))
}

#[test]
fn a_missing_position_stops_the_receiver_with_mariadbs_error() {
    let pair = Pair::new("ROW");
    pair.source.sql("CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (1)");
    pair.wait();
    let check = |what: &str, number: &str| {
        let (ours, theirs) = receivers_errors(&pair);
        assert_eq!(ours.0, number, "{what}: {ours:?} {theirs:?}");
        assert_eq!(ours, theirs, "{what}");
        pair.on_both("STOP SLAVE");
    };
    // Source and replica have the same server id.
    pair.on_both("STOP SLAVE");
    let ids = (pair.cohort.sql("SELECT @@server_id"), pair.maria.sql("SELECT @@server_id"));
    pair.on_both("SET GLOBAL server_id = 2; START SLAVE");
    check("equal numbers", "1593");
    pair.cohort.sql(&format!("SET GLOBAL server_id = {}", ids.0));
    pair.maria.sql(&format!("SET GLOBAL server_id = {}", ids.1));
    // Rotated and purged meanwhile. The source may still consider the file in use by a replica.
    pair.source.sql("INSERT INTO test.t VALUES (2); FLUSH BINARY LOGS; INSERT INTO test.t VALUES (3)");
    wait_until("it is not purged", || {
        pair.source.sql("PURGE BINARY LOGS TO 'binlog.000002'");
        !pair.source.sql("SHOW BINARY LOGS").contains("binlog.000001")
    });
    pair.on_both("START SLAVE");
    check("purged", "1236");
    // By file and position.
    let by_file = |file: &str, position: u64| {
        pair.on_both(&format!("CHANGE MASTER TO master_use_gtid=no, master_log_file='{file}', master_log_pos={position}; START SLAVE"));
    };
    by_file("binlog.000001", 4);
    check("a file that is gone", "1236");
    by_file("binlog.000002", 1 << 20);
    check("after the end", "1236");
    // A GTID that the source never had.
    pair.on_both(
        "CHANGE MASTER TO master_use_gtid=slave_pos; SET GLOBAL gtid_slave_pos = '0-2-1000'; START SLAVE",
    );
    check("ahead", "1236");
    pair.on_both("SET GLOBAL gtid_slave_pos = '0-99-3'; START SLAVE");
    check("diverged", "1236");
}

/// Tables of the performance schema, and the columns that are equal on both servers. Workers come in any
/// order.
const TABLES: [(&str, &str); 5] = [
    ("replication_applier_configuration", "*"),
    // MariaDB retries transactions that it tried too early. Here none is retried.
    (
        "replication_applier_status",
        "channel_name, service_state, remaining_delay, count_transactions_retries * (@@slave_parallel_threads = 0)",
    ),
    (
        "replication_applier_status_by_coordinator",
        "channel_name, thread_id IS NULL, service_state, last_error_number, last_error_message, \
         last_error_timestamp > NOW() - INTERVAL 1 HOUR, last_seen_transaction, last_trans_retry_count",
    ),
    (
        "replication_applier_status_by_worker",
        "channel_name, last_error_number, thread_id IS NULL, service_state, last_error_message, \
         last_error_timestamp > NOW() - INTERVAL 1 HOUR, worker_idle_time < 3600, \
         IF(last_error_number, last_seen_transaction, '') AS seen",
    ),
    ("replication_connection_configuration", "*"),
];

#[test]
fn tables_of_the_performance_schema_say_what_mariadbs_say() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=2"] {
        let pair = Pair::with("ROW", &[threads]);
        let compare = |what: &str| {
            // Here, workers belong to a source and disappear with it.
            let is_forgotten = what == "forgotten" || what == "refused";
            for (table, columns) in TABLES {
                if is_forgotten && table.ends_with("by_worker") {
                    continue;
                }
                let ask = format!("SELECT {columns} FROM performance_schema.{table} ORDER BY 1, 3, 2");
                let ask =
                    ask.replace("1, 3, 2", if table.ends_with("configuration") { "1" } else { "1, 3, 2" });
                let mut last = (String::new(), String::new());
                let mut is_equal = false;
                for _ in 0..100 {
                    last = pair.on_both(&ask);
                    is_equal = last.0 == last.1;
                    if is_equal {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
                assert!(is_equal, "{what}, {table}:\n{}\nMariaDB:\n{}", last.0, last.1);
            }
        };
        pair.source.sql("CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (1)");
        pair.wait();
        compare("idle");
        pair.on_both("STOP SLAVE");
        compare("stopped");
        pair.on_both(
            "CHANGE MASTER TO master_connect_retry=3, master_delay=1, master_heartbeat_period=2.5, \
             do_domain_ids=(0,1), ignore_server_ids=(77,88), master_use_gtid=current_pos; \
             CHANGE MASTER 'other' TO master_host='somewhere', master_user='someone', master_port=1, \
             master_password='secret', master_use_gtid=no, master_ssl=1, master_ssl_ca='/tmp/ca', \
             master_ssl_verify_server_cert=1, master_ssl_cert='/tmp/cert', master_ssl_key='/tmp/key', \
             master_ssl_crl='/tmp/crl', master_ssl_cipher='AES'",
        );
        compare("changed");
        pair.on_both("START SLAVE");
        pair.source.sql("INSERT INTO test.t VALUES (2)");
        pair.wait();
        compare("delayed");
        pair.on_both("SET sql_log_bin = 0; INSERT INTO test.t VALUES (3)");
        pair.source.sql("INSERT INTO test.t VALUES (3)");
        wait_until("it goes on", || pair.cohort.replica_field("Last_SQL_Errno") == "1062");
        wait_until("MariaDB goes on", || pair.maria.status().contains("Last_SQL_Errno: 1062"));
        compare("in error");
        pair.on_both("SET sql_log_bin = 0; DELETE FROM test.t WHERE a = 3; START SLAVE SQL_THREAD");
        pair.wait();
        compare("cured");
        pair.on_both("STOP SLAVE; RESET SLAVE ALL");
        compare("forgotten");
        for lists in ["master_use_gtid=no, ignore_domain_ids=(3)", "do_domain_ids=(1), ignore_domain_ids=(3)"]
        {
            let refused = format!("CHANGE MASTER 'other' TO master_host='somewhere', {lists}");
            let (ours, theirs) = pair.refusals(&refused);
            assert!(ours.contains("ERROR 1201 (HY000)"), "{ours}");
            assert_eq!(ours, theirs, "{lists}");
        }
        compare("refused");
    }
}

/// Returns the error line of the output, or an empty string.
fn error_of(output: &str) -> String {
    output.lines().find(|line| line.starts_with("ERROR")).unwrap_or_default().to_owned()
}

#[test]
fn refusals_equal_mariadbs() {
    let pair = Pair::new("ROW");
    pair.source.sql("CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (1)");
    pair.wait();
    let compare = |statements: &[&str]| {
        for sql in statements {
            let (ours, theirs) = pair.refusals(sql);
            assert_eq!(error_of(&ours), error_of(&theirs), "{sql}");
        }
    };
    compare(&[
        "START SLAVE UNTIL master_gtid_pos='0-2-5'",
        "START SLAVE UNTIL master_log_file='binlog.000001'",
        "SET GLOBAL replicate_do_db='a'",
        "SET GLOBAL replicate_do_table='a.b'",
        "SET GLOBAL replicate_rewrite_db='a->b'",
        "SET GLOBAL sql_slave_skip_counter=1",
        "SET GLOBAL gtid_slave_pos=''",
        "SET GLOBAL gtid_ignore_duplicates=1",
        "CHANGE MASTER TO master_delay=1",
        "RESET SLAVE",
        "RESET SLAVE ALL",
        "SHOW RELAYLOG 'missing' EVENTS",
        "SHOW RELAYLOG EVENTS IN 'nothing'",
        "START SLAVE 'missing'",
    ]);
    pair.on_both("STOP SLAVE");
    compare(&[
        "START SLAVE UNTIL master_gtid_pos='0-2-1,0-2-2'",
        "START SLAVE UNTIL master_gtid_pos='no'",
        "START SLAVE UNTIL relay_log_file='x'",
        "SET GLOBAL replicate_do_table='a'",
        "SET GLOBAL replicate_wild_do_table='a'",
        "SET GLOBAL replicate_ignore_table='a.b,c'",
        "SET GLOBAL replicate_rewrite_db='a'",
        "SET GLOBAL gtid_slave_pos='0-2-1,0-2-2'",
        "CHANGE MASTER TO master_delay=3000000000",
        "CHANGE MASTER TO master_heartbeat_period=5000000",
    ]);
    let warned = |sql: &str| {
        let (ours, theirs) = pair.on_both(&format!("{sql}; SHOW WARNINGS"));
        assert_eq!(ours, theirs, "{sql}");
        assert!(!ours.is_empty(), "{sql}: nothing is said");
    };
    warned("CHANGE MASTER TO master_heartbeat_period=0.0001");
    warned("CHANGE MASTER TO master_heartbeat_period=1000");
    // The servers' own transactions, which are newer than the position.
    pair.on_both("RESET SLAVE ALL; SET GLOBAL server_id = 9");
    pair.on_both("CREATE TABLE test.own (a INT); INSERT INTO test.own VALUES (1)");
    let position = pair.on_both("SELECT @@gtid_binlog_pos");
    assert_eq!(position.0, position.1);
    warned("SET GLOBAL gtid_slave_pos = '0-9-1'");
    warned("SET GLOBAL gtid_slave_pos = '5-9-1'");
    pair.on_both("SET GLOBAL gtid_strict_mode = 1");
    compare(&["SET GLOBAL gtid_slave_pos = '0-9-1'", "SET GLOBAL gtid_slave_pos = '5-9-1'"]);
}
