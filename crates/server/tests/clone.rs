//! CLONE on real servers: over TLS into a new directory and in place of the data, of a replica too; donors
//! that do not fit, accounts, KILL, SIGKILL at any moment; passwords that must be nowhere.

#[path = "support/certificates.rs"]
mod certificates;
mod support;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use certificates::Certificates;
use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use support::{Cohort, Ends, Maria, error_code, wait_until};

const SECRET: &str = "s3cret-of-the-donor";

fn is_long() -> bool {
    std::env::var_os("COHORT_LONG_TESTS").is_some()
}

/// Starts a donor with an account for clones and some rows.
fn donor(folder: &Path, name: &str, options: &[&str]) -> Cohort {
    let server = Cohort::start(folder, name, &[options, &["--log-bin=mb", "--server-id=11"]].concat());
    let mut client = server.in_test();
    for sql in [
        format!("CREATE USER donor IDENTIFIED BY '{SECRET}'"),
        "GRANT BACKUP_ADMIN ON *.* TO donor".to_owned(),
        "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)".to_owned(),
        "INSERT INTO t SELECT seq, REPEAT('x', 100000) FROM seq_1_to_50".to_owned(),
    ] {
        client.query_drop(&sql).expect(&sql);
    }
    server
}

fn list(recipient: &Cohort, donor: &Cohort) {
    let sql = format!("SET GLOBAL clone_valid_donor_list = 'other:1, 127.0.0.1:{}'", donor.port);
    recipient.client().query_drop(sql).expect("set");
}

fn clone_of(donor: &Cohort, rest: &str) -> String {
    format!("CLONE INSTANCE FROM 'donor'@'127.0.0.1':{} IDENTIFIED BY '{SECRET}' {rest}", donor.port)
}

fn value(client: &mut Conn, sql: &str) -> String {
    let row: Option<Row> = client.query_first(sql).expect(sql);
    let row = row.unwrap_or_else(|| panic!("{sql}: no row"));
    support::shown(row.as_ref(0).expect("a column"))
}

/// Waits until a server that restarts itself accepts clients again, with a condition on its rows.
fn wait_for_restart(server: &Cohort, sql: &str, wanted: &str) {
    wait_until("the server has started in the clone", || {
        let Ok(mut client) = Conn::new(server.options()) else { return false };
        let row: Option<String> = client.query_first(sql).unwrap_or(None);
        row.as_deref() == Some(wanted)
    });
}

#[test]
fn a_clone_over_tls_is_a_server_and_its_password_is_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let donor = donor(
        folder.path(),
        "donor",
        &["--general-log=1", "--log-output=FILE", "--general-log-file=general.log"],
    );
    let log = folder.path().join("recipient/general.log");
    let recipient = Cohort::start(
        folder.path(),
        "recipient",
        &[
            "--general-log=1",
            "--log-output=FILE",
            "--general-log-file=general.log",
            "--slow-query-log=1",
            "--long-query-time=0",
            "--slow-query-log-file=slow.log",
            "--server-audit-logging=ON",
            "--log-bin=mb",
            "--server-id=12",
        ],
    );
    let new = folder.path().join("new");
    let sql = clone_of(&donor, &format!("DATA DIRECTORY = '{}' REQUIRE SSL", new.display()));
    let mut client = recipient.client();
    assert_eq!(error_code(client.query_drop(&sql)), 3869, "the donor is not listed");
    list(&recipient, &donor);
    client.query_drop(&sql).expect("cloned");
    // A second clone of the same place is refused; the first stays.
    assert_eq!(error_code(client.query_drop(&sql)), 1007);
    let status = support::rows(
        &mut client,
        "SELECT STATE, SOURCE, DESTINATION, ERROR_NO, BINLOG_FILE, BINLOG_POSITION > 4, GTID_EXECUTED LIKE '0-11-%', \
         END_TIME >= BEGIN_TIME FROM performance_schema.clone_status",
    );
    assert!(status.contains("Completed") && status.contains("mb.000001"), "{status}");
    let copied: Option<(u64, u64, u64)> = client
        .query_first(
            "SELECT DATA, ESTIMATE, NETWORK FROM performance_schema.clone_progress WHERE STAGE = 'FILE COPY'",
        )
        .expect("a row");
    let (copied, expected, received) = copied.expect("one");
    assert!(copied > 5_000_000 && received == copied && expected > 0, "{copied} of {expected}");
    let stages = value(&mut client, "SELECT COUNT(*) FROM performance_schema.clone_progress");
    assert_eq!(stages, "7");
    let texts = support::rows(
        &mut client,
        "SELECT INFO FROM information_schema.PROCESSLIST UNION ALL \
         SELECT DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest UNION ALL \
         SELECT SQL_TEXT FROM performance_schema.events_statements_history",
    );
    assert!(!texts.contains(SECRET), "{texts}");
    drop((recipient, client));
    for entry in fs::read_dir(folder.path().join("recipient")).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let bytes = fs::read(&path).expect("read");
            let found = bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
            assert!(!found, "{} has the password", path.display());
        }
    }
    assert!(
        fs::read_to_string(&log).expect("a log").contains("CLONE INSTANCE FROM"),
        "the statement is logged"
    );
    assert!(
        !fs::read_dir(&new)
            .expect("listed")
            .any(|entry| { entry.expect("an entry").file_name().to_string_lossy().ends_with(".pem") })
    );
    let clone = Cohort::start(folder.path(), "new", &["--log-bin=mb", "--server-id=13"]);
    let mut client = clone.client();
    assert_eq!(value(&mut client, "SELECT COUNT(*) FROM test.t"), "50");
    assert_eq!(
        value(&mut client, "SELECT @@gtid_slave_pos = @@gtid_binlog_pos AND @@gtid_slave_pos <> ''"),
        "1"
    );
    // The position is that of a replica of the donor.
    donor.client().query_drop("CREATE USER repl; GRANT REPLICATION SLAVE ON *.* TO repl").expect("granted");
    donor.client().query_drop("INSERT INTO test.t VALUES (51, 'later')").expect("inserted");
    client
        .query_drop(format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='repl', master_use_gtid=slave_pos; \
             START SLAVE",
            donor.port
        ))
        .expect("starts");
    wait_until("the clone follows", || value(&mut clone.client(), "SELECT COUNT(*) FROM test.t") == "51");
}

#[test]
fn a_local_clone_is_a_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = donor(folder.path(), "donor", &[]);
    let new = folder.path().join("new");
    let mut client = server.client();
    let to = |dir: &Path| format!("CLONE LOCAL DATA DIRECTORY = '{}'", dir.display());
    for (dir, code) in [
        (Path::new("relative").to_owned(), 1525),
        (folder.path().join("donor/inside"), 1525),
        (folder.path().join("none/none"), 1004),
        (folder.path().to_owned(), 1007),
    ] {
        assert_eq!(error_code(client.query_drop(to(&dir))), code, "{}", dir.display());
    }
    client.query_drop(to(&new)).expect("cloned");
    let row =
        support::rows(&mut client, "SELECT STATE, SOURCE, BINLOG_FILE FROM performance_schema.clone_status");
    assert!(
        row.contains("Completed") && row.contains("LOCAL INSTANCE") && row.contains("mb.000001"),
        "{row}"
    );
    let clone = Cohort::start(folder.path(), "new", &["--log-bin=mb"]);
    assert_eq!(value(&mut clone.client(), "SELECT COUNT(*) FROM test.t"), "50");
}

#[test]
fn donors_and_accounts_that_do_not_fit_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let donor = donor(folder.path(), "donor", &[]);
    let recipient = Cohort::start(folder.path(), "recipient", &["--log-bin=other"]);
    let plain = Cohort::start(folder.path(), "plain", &["--skip-ssl"]);
    let mut root = recipient.client();
    root.query_drop("CREATE TABLE test.own (id INT)").expect("created");
    for sql in [
        "CREATE USER cloner",
        "CREATE USER other",
        "GRANT ALL ON test.* TO other",
        "GRANT CLONE_ADMIN ON *.* TO cloner",
    ] {
        root.query_drop(sql).expect(sql);
    }
    let as_user = |name: &str| Conn::new(recipient.options().user(Some(name.to_owned()))).expect("logs in");
    list(&recipient, &donor);
    let new = folder.path().join("new");
    let into = format!("DATA DIRECTORY '{}'", new.display());
    assert_eq!(error_code(as_user("other").query_drop(clone_of(&donor, &into))), 1227);
    assert_eq!(error_code(as_user("cloner").query_drop("CLONE LOCAL DATA DIRECTORY '/x/y'")), 1227);
    let denied = as_user("other").query_drop("SET GLOBAL clone_valid_donor_list = 'a:1'");
    assert_eq!(error_code(denied), 1227);
    let wrong = clone_of(&donor, &into).replace(SECRET, "wrong");
    let refused = as_user("cloner").query_drop(wrong).expect_err("a wrong password").to_string();
    assert!(refused.contains("3862") && refused.contains("Access denied"), "{refused}");
    // The name of the binary log would not fit.
    assert_eq!(error_code(as_user("cloner").query_drop(clone_of(&donor, ""))), 3868);
    // The donor's account has lost its privilege.
    donor.client().query_drop("REVOKE BACKUP_ADMIN ON *.* FROM donor").expect("revoked");
    let refused =
        as_user("cloner").query_drop(clone_of(&donor, &into)).expect_err("no privilege").to_string();
    assert!(refused.contains("3862") && refused.contains("privilege"), "{refused}");
    donor.client().query_drop("GRANT BACKUP_ADMIN ON *.* TO donor").expect("granted");
    // A server without TLS, and one of MariaDB.
    list(&recipient, &plain);
    let refused = as_user("cloner").query_drop(clone_of(&plain, &into)).expect_err("no TLS").to_string();
    assert!(refused.contains("TLS is required"), "{refused}");
    let maria = Maria::source(&[]);
    maria.sql(&format!("CREATE USER donor@localhost IDENTIFIED BY '{SECRET}'"));
    let port = maria.port;
    root.query_drop(format!("SET GLOBAL clone_valid_donor_list = '127.0.0.1:{port}'")).expect("set");
    let sql = format!(
        "CLONE INSTANCE FROM donor@'127.0.0.1':{port} IDENTIFIED BY '{SECRET}' {into} REQUIRE NO SSL"
    );
    let refused = as_user("cloner").query_drop(&sql).expect_err("another program").to_string();
    assert!(refused.contains("3864"), "{sql}: {refused}");
    let status = support::rows(&mut root, "SELECT STATE, ERROR_NO FROM performance_schema.clone_status");
    assert!(status.contains("Failed") && status.contains("3864"), "{status}");
    assert!(!new.exists() && !folder.path().join("recipient/cohort-clone.new").exists());
    list(&recipient, &donor);
    as_user("cloner").query_drop(clone_of(&donor, &into)).expect("a donor that fits");
    assert_eq!(value(&mut root, "SELECT COUNT(*) FROM test.own"), "0", "the recipient is as it was");
}

#[test]
fn a_clone_ends_by_kill_and_by_its_time_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let donor = donor(folder.path(), "donor", &["--backup-mib-per-s=1"]);
    let recipient = Cohort::start(folder.path(), "recipient", &["--log-bin=mb", "--server-id=12"]);
    list(&recipient, &donor);
    let new = folder.path().join("new");
    let sql = clone_of(&donor, &format!("DATA DIRECTORY '{}'", new.display()));
    let mut client = recipient.client();
    let id = value(&mut client, "SELECT CONNECTION_ID()");
    let mut watcher = recipient.client();
    std::thread::scope(|scope| {
        let cloning = scope.spawn(|| client.query_drop(&sql));
        let progress =
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Cloning' AND PROGRESS > 0";
        wait_until("the recipient shows its progress", || value(&mut watcher, progress) == "1");
        let of_donor =
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Backing up' AND PROGRESS > 0";
        wait_until("and the donor", || value(&mut donor.client(), of_donor) == "1");
        let running =
            support::rows(&mut watcher, "SELECT STATE, END_TIME FROM performance_schema.clone_status");
        assert!(running.contains("In Progress") && running.contains("NULL"), "{running}");
        let second =
            recipient.client().query_drop(clone_of(&donor, &format!("DATA DIRECTORY '{}2'", new.display())));
        assert_eq!(error_code(second), 3874);
        let killed = Instant::now();
        watcher.query_drop(format!("KILL QUERY {id}")).expect("killed");
        assert_eq!(error_code(cloning.join().expect("ends")), 1317);
        assert!(killed.elapsed() < Duration::from_secs(5));
    });
    let mut of_donor = donor.client();
    let mut wait_for_donor = || {
        let running = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Backing up'";
        wait_until("the donor's backup ends", || value(&mut of_donor, running) == "0");
    };
    wait_for_donor();
    assert!(!new.exists());
    let limited = format!("SET STATEMENT max_statement_time=1 FOR {sql}");
    assert_eq!(error_code(client.query_drop(limited)), 1969);
    assert!(!new.exists());
    wait_for_donor();
    // The second connection, which asks for the size, gets no answer.
    let (port, second) = first_connection_only(donor.port);
    let sql = format!("SET GLOBAL clone_valid_donor_list = '127.0.0.1:{port}'");
    watcher.query_drop(sql).expect("set");
    let sql = clone_of(&donor, &format!("DATA DIRECTORY '{}' REQUIRE NO SSL", new.display()));
    let sql = sql.replace(&donor.port.to_string(), &port.to_string());
    std::thread::scope(|scope| {
        let cloning = scope.spawn(|| client.query_drop(&sql));
        let held = second.recv_timeout(Duration::from_secs(30)).expect("it connects twice");
        let killed = Instant::now();
        watcher.query_drop(format!("KILL QUERY {id}")).expect("killed");
        assert_eq!(error_code(cloning.join().expect("ends")), 1317);
        assert!(killed.elapsed() < Duration::from_secs(5));
        drop(held);
    });
}

/// Starts a proxy that passes on the first connection. The receiver gets the second one, which has no answer.
fn first_connection_only(to: u16) -> (u16, Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let (give, second) = channel();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().expect("the first");
        let server = TcpStream::connect(("127.0.0.1", to)).expect("the server");
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (mut from, mut to) = (from.try_clone().expect("cloned"), to.try_clone().expect("cloned"));
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
        let (held, _) = listener.accept().expect("the second");
        let _ = give.send(held);
    });
    (port, second)
}

#[test]
fn a_replica_that_lost_its_position_repairs_itself_by_one_statement() {
    let folder = tempfile::tempdir().expect("a folder");
    let donor = donor(folder.path(), "donor", &[]);
    donor.client().query_drop("CREATE USER repl IDENTIFIED BY 'of repl''s'").expect("created");
    donor.client().query_drop("GRANT REPLICATION SLAVE ON *.* TO repl").expect("granted");
    let mut replica = Cohort::start(folder.path(), "replica", &["--log-bin=mb", "--server-id=12"]);
    let port = donor.port;
    let mut client = replica.client();
    // It lacks what the source has purged, and has rows of its own.
    client.query_drop("CREATE TABLE test.own (id INT)").expect("created");
    for sql in
        ["FLUSH BINARY LOGS", "INSERT INTO test.t VALUES (51, 'later')", "PURGE BINARY LOGS TO 'mb.000002'"]
    {
        donor.client().query_drop(sql).expect(sql);
    }
    client
        .query_drop(format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='repl', \
             master_password='of repl''s', master_connect_retry=1, master_ssl=1, master_use_gtid=slave_pos; START SLAVE"
        ))
        .expect("starts");
    wait_until("the replica has no position in the source's log", || {
        replica.replica_field("Last_IO_Errno") == "1236"
    });
    list(&replica, &donor);
    let identity = value(&mut client, "SELECT @@server_uid");
    // A connection that is made meanwhile is kept.
    donor.client().query_drop("SET GLOBAL backup_mib_per_s = 3").expect("set");
    let mut other = replica.client();
    std::thread::scope(|scope| {
        let cloning = scope.spawn(|| client.query_drop(clone_of(&donor, "REQUIRE SSL")));
        let progress =
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Cloning' AND PROGRESS > 0";
        wait_until("it copies", || value(&mut other, progress) == "1");
        other.query_drop("CHANGE MASTER 'extra' TO master_host='other-host'").expect("changed");
        cloning.join().expect("ends").expect("cloned");
    });
    wait_for_restart(&replica, "SELECT COUNT(*) FROM test.t", "51");
    let mut client = replica.client();
    let extra = support::rows(&mut client, "SHOW SLAVE 'extra' STATUS");
    assert!(extra.contains("other-host"), "{extra}");
    client.query_drop("STOP SLAVE 'extra'; RESET SLAVE 'extra' ALL").expect("reset");
    assert_eq!(value(&mut client, "SELECT @@server_uid"), identity);
    assert_eq!(value(&mut client, "SHOW TABLES FROM test LIKE 't'"), "t");
    assert_eq!(
        value(&mut client, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'own'"),
        "0"
    );
    client.query_drop("START SLAVE").expect("a note if it runs");
    donor.client().query_drop("INSERT INTO test.t VALUES (52, 'newest')").expect("inserted");
    wait_until("the replica follows", || value(&mut client, "SELECT COUNT(*) FROM test.t") == "52");
    assert_eq!(replica.replica_field("Slave_IO_Running"), "Yes");
    let status = support::rows(
        &mut client,
        "SELECT STATE, DESTINATION, ERROR_NO FROM performance_schema.clone_status UNION ALL \
         SELECT STAGE, STATE, 0 FROM performance_schema.clone_progress",
    );
    assert!(status.contains("LOCAL INSTANCE") && !status.contains("Not Started"), "{status}");
    let left: Vec<String> = fs::read_dir(folder.path().join("replica"))
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("cohort-clone.") && name != "cohort-clone.report")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // The next start is an ordinary one.
    replica.restart();
    donor.client().query_drop("INSERT INTO test.t VALUES (53, 'newest')").expect("inserted");
    wait_until("the replica follows again", || {
        value(&mut replica.client(), "SELECT COUNT(*) FROM test.t") == "53"
    });
}

#[test]
fn sigkill_at_any_moment_leaves_the_old_data_or_the_clone() {
    let folder = tempfile::tempdir().expect("a folder");
    let donor = donor(folder.path(), "donor", &[]);
    donor
        .client()
        .query_drop("CREATE TABLE test.which (who CHAR(9)); INSERT INTO test.which VALUES ('donor')")
        .expect("made");
    let rounds = if is_long() { 60 } else { 6 };
    let (mut old, mut new) = (0, 0);
    for round in 0..rounds {
        let name = format!("recipient{round}");
        let mut recipient = Cohort::start(folder.path(), &name, &["--log-bin=mb", "--server-id=12"]);
        let mut client = recipient.client();
        client
            .query_drop("CREATE TABLE test.which (who CHAR(9)); INSERT INTO test.which VALUES ('own')")
            .expect("made");
        list(&recipient, &donor);
        let sql = clone_of(&donor, "");
        std::thread::scope(|scope| {
            let cloning = scope.spawn(move || drop(client.query_drop(sql)));
            // From the begin of the copy to the start in the clone.
            std::thread::sleep(Duration::from_millis(if is_long() { 25 } else { 200 } * (round + 1)));
            recipient.signal("-KILL");
            cloning.join().expect("ends");
        });
        recipient.kill_and_restart();
        let mut client = recipient.client();
        match value(&mut client, "SELECT GROUP_CONCAT(who) FROM test.which").as_str() {
            "own" => {
                old += 1;
                assert_eq!(value(&mut client, "SHOW TABLES FROM test"), "which", "round {round}");
            }
            "donor" => {
                new += 1;
                assert_eq!(value(&mut client, "SELECT COUNT(*) FROM test.t"), "50", "round {round}");
            }
            other => panic!("round {round}: {other}"),
        }
        let check = support::rows(&mut client, "CHECK TABLE test.which");
        assert!(check.contains("OK"), "{check}");
        drop(recipient);
        fs::remove_dir_all(folder.path().join(&name)).expect("removed");
    }
    assert!(!is_long() || (old > 0 && new > 0), "{old} old, {new} new");
}

/// A donor that proves nothing: its certificate has expired, or comes without the proof by the password.
#[test]
fn a_donor_without_a_certificate_that_holds_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificates = Certificates::new();
    let recipient = Cohort::start(folder.path(), "recipient", &["--log-bin=mb", "--server-id=12"]);
    let mut client = recipient.client();
    let new = folder.path().join("new");
    let into = format!("DATA DIRECTORY = '{}'", new.display());
    for (name, why) in [("expired", "Expired"), ("stranger", "does not prove")] {
        let cert = certificates.option("ssl-cert", &format!("{name}.pem"));
        let key = certificates.option("ssl-key", &format!("{name}.key"));
        let donor = donor(folder.path(), &format!("donor-{name}"), &[&cert, &key]);
        list(&recipient, &donor);
        let sql = clone_of(&donor, &into);
        let refused = client.query_drop(&sql).expect_err(name).to_string();
        assert!(refused.contains("3862") && refused.contains(why), "{name}: {refused}");
        assert!(!new.exists(), "{name}");
        if name == "expired" {
            // The statement may do without TLS.
            client.query_drop(format!("{sql} REQUIRE NO SSL")).expect("cloned");
            fs::remove_dir_all(&new).expect("removed");
        }
    }
    // Regression test: any donor was accepted for an account without a password.
    let bare = donor(folder.path(), "donor-bare", &[]);
    bare.client().query_drop("CREATE USER bare; GRANT BACKUP_ADMIN ON *.* TO bare").expect("made");
    list(&recipient, &bare);
    let sql = clone_of(&bare, &into).replace("'donor'", "'bare'").replace(SECRET, "");
    let refused = client.query_drop(&sql).expect_err("no secret").to_string();
    assert!(refused.contains("3862") && refused.contains("does not prove"), "{refused}");
}

/// Clones while rows are written and definitions change, of both layouts, into a directory and in place of
/// the data; the donor of the last one is killed meanwhile.
#[test]
fn clones_under_load_of_both_layouts_have_whole_transactions() {
    for layout in ["shared", "separate"] {
        let folder = tempfile::tempdir().expect("a folder");
        let option = format!("--log-layout={layout}");
        let mut donor = donor(folder.path(), "donor", &[&option]);
        let mut client = donor.in_test();
        for sql in ["CREATE TABLE a (id INT PRIMARY KEY, k INT)", "CREATE TABLE b (id INT PRIMARY KEY)"] {
            client.query_drop(sql).expect(sql);
        }
        let recipient = Cohort::start(folder.path(), "own", &["--log-bin=mb", "--server-id=12", &option]);
        list(&recipient, &donor);
        let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
        let new = folder.path().join("new");
        let check = |clone: &Cohort, least: u64, what: &str| {
            let mut client = clone.in_test();
            let rows = value(&mut client, "SELECT COUNT(*) FROM a");
            assert!(rows.parse::<u64>().expect("a number") >= least, "{layout}: {what}: {rows} of {least}");
            for sql in ["SELECT MAX(id) FROM a", "SELECT COUNT(*) FROM b", "SELECT MAX(id) FROM b"] {
                assert_eq!(value(&mut client, sql), rows, "{layout}: {what}: {sql}");
            }
            let tables: Vec<String> = client.query("SHOW TABLES").expect("listed");
            for table in tables {
                let said = support::rows(&mut client, &format!("CHECK TABLE {table}"));
                assert!(said.contains("OK"), "{layout}: {what}: {said}");
            }
        };
        std::thread::scope(|scope| {
            let _ends = Ends(&is_over);
            scope.spawn(|| {
                let mut client = donor.in_test();
                for n in 1.. {
                    let done = ["BEGIN", &format!("INSERT INTO a VALUES ({n}, {n} % 7)")]
                        .into_iter()
                        .chain([format!("INSERT INTO b VALUES ({n})").as_str(), "COMMIT"])
                        .try_for_each(|sql| client.query_drop(sql));
                    if done.is_err() || is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    written.store(n, Ordering::SeqCst);
                }
            });
            scope.spawn(|| {
                let mut client = donor.in_test();
                for n in 0.. {
                    for sql in [
                        "CREATE INDEX by_k ON a (k)".to_owned(),
                        format!("CREATE TABLE copy{n} (id INT PRIMARY KEY, KEY (k)) SELECT * FROM a"),
                        "ALTER TABLE a ENGINE=InnoDB, FORCE".to_owned(),
                        format!("DROP TABLE IF EXISTS copy{}", n - 1),
                        "DROP INDEX by_k ON a".to_owned(),
                        "TRUNCATE TABLE t".to_owned(),
                    ] {
                        if is_over.load(Ordering::Relaxed) || client.query_drop(sql).is_err() {
                            return;
                        }
                    }
                }
            });
            wait_until("rows are written", || written.load(Ordering::SeqCst) > 50);
            let least = written.load(Ordering::SeqCst);
            let sql = clone_of(&donor, &format!("DATA DIRECTORY = '{}'", new.display()));
            recipient.client().query_drop(sql).expect("cloned");
            let clone = Cohort::start(folder.path(), "new", &["--log-bin=mb", "--server-id=13", &option]);
            check(&clone, least, "into a directory");
            drop(clone);
            let least = written.load(Ordering::SeqCst);
            recipient.client().query_drop(clone_of(&donor, "")).expect("cloned");
            wait_for_restart(&recipient, "SHOW TABLES FROM test LIKE 'b'", "b");
            check(&recipient, least, "in place of the data");
        });
        // The donor is killed in the middle of a clone: the recipient keeps what it has.
        let rows = value(&mut recipient.client(), "SELECT COUNT(*) FROM test.b");
        donor.client().query_drop("SET GLOBAL backup_mib_per_s = 1").expect("set");
        donor
            .in_test()
            .query_drop("INSERT INTO t SELECT 1000 + seq, REPEAT('y', 100000) FROM seq_1_to_50")
            .expect("inserted");
        list(&recipient, &donor);
        let sql = clone_of(&donor, "");
        let mut client = recipient.client();
        std::thread::scope(|scope| {
            let cloning = scope.spawn(move || client.query_drop(sql));
            let copies = "SELECT COUNT(*) FROM performance_schema.clone_progress WHERE STAGE = 'FILE COPY' AND DATA > 0";
            wait_until("it copies", || value(&mut recipient.client(), copies) == "1");
            donor.kill();
            let failed = cloning.join().expect("ends").expect_err("the donor is gone").to_string();
            assert!(failed.contains("3862"), "{layout}: {failed}");
        });
        assert_eq!(value(&mut recipient.client(), "SELECT COUNT(*) FROM test.b"), rows, "{layout}");
        assert!(!folder.path().join("own/cohort-clone.new").exists(), "{layout}");
        let status = support::rows(
            &mut recipient.client(),
            "SELECT STATE, ERROR_NO FROM performance_schema.clone_status",
        );
        assert!(status.contains("Failed") && status.contains("3862"), "{layout}: {status}");
    }
}

/// A clone of a replica continues at the replica's position, as a replica of the same source.
#[test]
fn a_replica_that_clones_a_replica_continues_from_the_same_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = donor(folder.path(), "source", &[]);
    source.client().query_drop("CREATE USER repl; GRANT REPLICATION SLAVE ON *.* TO repl").expect("granted");
    let follow = |replica: &Cohort| {
        let sql = format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='repl', master_connect_retry=1, \
             master_use_gtid=slave_pos; START SLAVE",
            source.port
        );
        replica.client().query_drop(sql).expect("starts");
    };
    let first =
        Cohort::start(folder.path(), "first", &["--log-bin=mb", "--server-id=12", "--log-slave-updates"]);
    follow(&first);
    let rows = |server: &Cohort, wanted: &str| {
        wait_until("it follows", || {
            let Ok(mut client) = Conn::new(server.options()) else { return false };
            let found: Option<String> = client.query_first("SELECT COUNT(*) FROM test.t").unwrap_or(None);
            found.as_deref() == Some(wanted)
        });
    };
    rows(&first, "50");
    // The second one has rows of its own, and knows the source.
    let second = Cohort::start(folder.path(), "second", &["--log-bin=mb", "--server-id=13"]);
    second.client().query_drop("CREATE TABLE test.own (id INT)").expect("created");
    follow(&second);
    list(&second, &first);
    // Replication stands still, and the source goes on: what the clone lacks it gets from the source.
    first.client().query_drop("STOP SLAVE").expect("stopped");
    source.client().query_drop("INSERT INTO test.t VALUES (51, 'later')").expect("inserted");
    let position = value(&mut first.client(), "SELECT @@gtid_slave_pos");
    second.client().query_drop("STOP SLAVE").expect("stopped");
    second.client().query_drop(clone_of(&first, "")).expect("cloned");
    wait_until("the server has started in the clone", || {
        let Ok(mut client) = Conn::new(second.options()) else { return false };
        client.query_first::<String, _>("SHOW TABLES FROM test LIKE 'own'").is_ok_and(|found| found.is_none())
    });
    second.client().query_drop("START SLAVE").expect("a note if it runs");
    rows(&second, "51");
    let status = second.replica_field("Master_Port");
    assert_eq!(status, source.port.to_string());
    assert!(position.starts_with("0-11-"), "{position}");
    // Into a directory: the position and the connection are those of the donor.
    let new = folder.path().join("new");
    list(&source, &first);
    let sql = clone_of(&first, &format!("DATA DIRECTORY = '{}'", new.display()));
    source.client().query_drop(sql).expect("cloned");
    let third = Cohort::start(
        folder.path(),
        "new",
        &["--log-bin=mb", "--server-id=14", "--log-slave-updates", "--skip-slave-start"],
    );
    assert_eq!(value(&mut third.client(), "SELECT @@gtid_slave_pos"), position);
    third.client().query_drop("START SLAVE").expect("it knows the source");
    rows(&third, "51");
}

#[test]
fn a_clone_that_cannot_be_started_gives_way_to_the_old_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut donor = donor(folder.path(), "donor", &[]);
    donor.stop();
    let (clone, datadir) = (folder.path().join("donor"), folder.path().join("recipient"));
    let options = ["--log-bin=mb", "--server-id=12"];
    let mut recipient = Cohort::start(folder.path(), "recipient", &options);
    let mut client = recipient.client();
    client
        .query_drop("CREATE TABLE test.which (who CHAR(9)); INSERT INTO test.which VALUES ('own')")
        .expect("made");
    client.query_drop("SET GLOBAL gtid_slave_pos = '3-3-3'").expect("set");
    // The second one is damaged; the third has statements for its first start that fail.
    for (statements, is_damaged) in [("SELECT 1", true), ("SELECT 'no end", false)] {
        recipient.stop();
        fs::create_dir(datadir.join("cohort-clone.ready")).expect("made");
        let copied = std::process::Command::new("cp")
            .args(["-a", "--", "catalog", "log", "innodb", "cohort.version", "mb.000001", "mb.index"])
            .arg(datadir.join("cohort-clone.ready"))
            .current_dir(&clone)
            .status();
        assert!(copied.expect("runs").success());
        let statements = format!("SET GLOBAL gtid_slave_pos = '4-4-4';\n{statements};\n");
        fs::write(datadir.join("cohort-clone.ready/cohort-clone.sql"), statements).expect("written");
        if is_damaged {
            fs::remove_dir_all(datadir.join("cohort-clone.ready/innodb")).expect("removed");
            fs::write(datadir.join("cohort-clone.ready/innodb"), "no directory").expect("written");
        }
        recipient.restart();
        let mut client = recipient.client();
        assert_eq!(value(&mut client, "SELECT who FROM test.which"), "own");
        assert_eq!(value(&mut client, "SELECT @@gtid_slave_pos"), "3-3-3", "nothing of the clone was run");
        for gone in ["cohort-clone.sql", "cohort-clone.old", "cohort-clone.failed"] {
            assert!(!datadir.join(gone).exists(), "{gone}");
        }
        assert!(recipient.log().contains("could not start with the clone"), "{}", recipient.log());
    }
    // A crash before the removal of the file repeats the statements of a first start.
    recipient.stop();
    let statements =
        "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1617 BEGIN END; RESET SLAVE 'x' ALL; END;";
    fs::write(datadir.join("cohort-clone.sql"), statements).expect("written");
    recipient.restart();
    assert!(!datadir.join("cohort-clone.sql").exists());
}
