//! BACKUP SERVER on a real server: under a writing load with DDL, into a directory and as a stream; the copy
//! is started as a data directory. Privileges, wrong targets, KILL, SIGKILL, copies that are not whole.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cohort_backup_format::{MANIFEST, Manifest, UNFINISHED, verify};
use mysql::prelude::Queryable;
use mysql::{Conn, Error, Value};
use support::{Cohort, Ends, Maria, error_code, wait_until};

fn is_long() -> bool {
    std::env::var_os("COHORT_LONG_TESTS").is_some()
}

/// Fills a table with about this many bytes.
fn fill(client: &mut Conn, mib: u64) {
    client.query_drop("CREATE TABLE test.filled (id INT PRIMARY KEY, v LONGTEXT)").expect("created");
    for n in 0..mib {
        let row = format!("INSERT INTO test.filled VALUES ({n}, REPEAT(CHAR({}), 1 << 20))", 65 + n % 26);
        client.query_drop(row).expect("inserted");
    }
}

/// Writes rows until the end: number, and a row of the same transaction in a second table. Returns how many
/// were acknowledged.
fn write_rows(server: &Cohort, is_over: &AtomicBool, written: &AtomicU64) {
    let mut client = server.in_test();
    for n in 1.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let value = "x".repeat(if n % 50 == 0 { 30_000 } else { 20 });
        let done = client
            .query_drop("BEGIN")
            .and_then(|()| client.query_drop(format!("INSERT INTO a VALUES ({n}, {}, '{value}')", n % 7)))
            .and_then(|()| client.query_drop(format!("INSERT INTO b VALUES ({n})")))
            .and_then(|()| client.query_drop("COMMIT"));
        match done {
            Ok(()) => written.store(n, Ordering::SeqCst),
            Err(_) => return,
        }
    }
}

/// Changes definitions until the end. Each statement builds trees that are not in the log.
fn define(server: &Cohort, is_over: &AtomicBool) {
    let mut client = server.in_test();
    for n in 0.. {
        for sql in [
            "CREATE INDEX by_k ON a (k)".to_owned(),
            format!("CREATE TABLE copy{n} (id INT PRIMARY KEY, KEY (k)) SELECT id, k FROM a"),
            "ALTER TABLE a ENGINE=InnoDB, FORCE".to_owned(),
            format!("DROP TABLE IF EXISTS copy{}", n - 1),
            "DROP INDEX by_k ON a".to_owned(),
            "TRUNCATE TABLE emptied".to_owned(),
            "INSERT INTO emptied SELECT id FROM b".to_owned(),
        ] {
            if is_over.load(Ordering::Relaxed) || client.query_drop(sql).is_err() {
                return;
            }
        }
    }
}

/// Checks a server that was started from a backup taken while rows were written. `from` is the number that
/// was acknowledged before the backup.
fn check(copy: &Cohort, from: u64, what: &str) {
    let mut client = copy.in_test();
    let (rows, newest): (u64, u64) =
        client.query_first("SELECT COUNT(*), COALESCE(MAX(id), 0) FROM a").expect("a row").expect("one");
    assert_eq!(rows, newest, "{what}: no row is missing");
    assert!(newest >= from, "{what}: {newest} rows, {from} were acknowledged before the backup began");
    let others: Option<(u64, u64)> =
        client.query_first("SELECT COUNT(*), COALESCE(MAX(id), 0) FROM b").expect("a row");
    assert_eq!(others, Some((rows, newest)), "{what}: both tables have the same transactions");
    let tables: Vec<String> = client.query("SHOW TABLES").expect("listed");
    for table in tables {
        let rows: Vec<(String, String, String, String)> =
            client.query(format!("CHECK TABLE {table}")).expect("checked");
        assert!(rows.iter().all(|row| row.3 == "OK"), "{what}: {rows:?}");
    }
    client.query_drop("INSERT INTO b VALUES (4000000000)").expect("the copy works as a server");
}

const TABLES: &[&str] = &[
    "CREATE TABLE a (id BIGINT PRIMARY KEY, k INT, v LONGTEXT)",
    "CREATE TABLE b (id BIGINT PRIMARY KEY)",
    "CREATE TABLE emptied (id BIGINT PRIMARY KEY)",
    "CREATE USER reader IDENTIFIED BY 'secret'",
    "GRANT SELECT ON test.* TO reader",
];

/// Takes backups of both kinds while rows are written and definitions change, and starts from each.
fn under_load(options: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", options);
    let mut client = server.in_test();
    TABLES.iter().for_each(|sql| client.query_drop(sql).expect(sql));
    fill(&mut client, if is_long() { 200 } else { 12 });
    client.query_drop("SET GLOBAL backup_mib_per_s = 100").expect("set");
    for sql in ["XA START 'kept'", "INSERT INTO b VALUES (5000000000)", "XA END 'kept'", "XA PREPARE 'kept'"]
    {
        client.query_drop(sql).expect(sql);
    }
    let mut client = server.in_test();
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let copies = std::thread::scope(|scope| {
        let _ends = Ends(&is_over);
        scope.spawn(|| write_rows(&server, &is_over, &written));
        scope.spawn(|| define(&server, &is_over));
        wait_until("rows are written", || written.load(Ordering::SeqCst) > 50);
        let mut copies = Vec::new();
        for n in 0..if is_long() { 6 } else { 2 } {
            let (dir, from) = (folder.path().join(format!("copy{n}")), written.load(Ordering::SeqCst));
            match n % 2 {
                0 => client.query_drop(format!("BACKUP SERVER TO '{}'", dir.display())).expect("taken"),
                _ => store_stream(&mut client, &dir),
            }
            copies.push((dir, from));
        }
        copies
    });
    let mut none = Vec::new();
    for (dir, from) in copies {
        let what = dir.display().to_string();
        let verified = verify(&dir).expect("a manifest");
        assert!(verified.findings.is_empty(), "{what}: {:?}", verified.findings);
        let name = dir.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let copy = Cohort::start(folder.path(), &name, options);
        check(&copy, from, &what);
        let branches: Vec<(u64, u64, u64, String)> = copy.client().query("XA RECOVER").expect("listed");
        assert_eq!(branches.len(), 1, "{what}: the branch is prepared");
        copy.client().query_drop("XA COMMIT 'kept'").expect("the branch is whole");
        let gtid: Option<String> = copy.client().query_first("SELECT @@gtid_binlog_pos").expect("read");
        assert!(gtid.is_some_and(|gtid| gtid.starts_with("0-")), "{what}");
        none.extend(dir.join(MANIFEST).exists().then_some(what));
    }
    assert!(none.is_empty(), "a start leaves the manifest: {none:?}");
    let failures: Option<(String, u64)> =
        client.query_first("SHOW GLOBAL STATUS LIKE 'Cohort_backup_failures'").expect("a row");
    assert_eq!(failures.expect("one").1, 0);
}

/// Stores a stream as a client does: each piece at its offset, and each file with the length of the manifest.
fn store_stream(client: &mut Conn, dir: &Path) {
    fs::create_dir(dir).expect("created");
    let mut files: BTreeMap<String, fs::File> = BTreeMap::new();
    let mut last = String::new();
    for row in client.query_iter("BACKUP SERVER TO STREAM").expect("begins") {
        let (name, offset, data): (String, u64, Vec<u8>) = mysql::from_row(row.expect("a row"));
        assert!(data.len() <= 1 << 20, "{name}: {} bytes", data.len());
        let path = dir.join(&name);
        let file = files.entry(name.clone()).or_insert_with(|| {
            fs::create_dir_all(path.parent().expect("in the directory")).expect("created");
            fs::File::create(&path).expect("created")
        });
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.write_all(&data)).expect("written");
        last = name;
    }
    assert_eq!(last, MANIFEST, "the manifest is the last file");
    for entry in Manifest::read(dir).expect("whole").files {
        files[&entry.path].set_len(entry.size).expect("its length");
    }
}

#[test]
fn a_copy_taken_under_load_is_a_server() {
    under_load(&[]);
}

#[test]
fn a_copy_of_separate_logs_is_a_server() {
    under_load(&["--log-layout=separate"]);
}

#[test]
fn targets_and_accounts_that_are_not_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let allowed = folder.path().join("allowed");
    fs::create_dir(&allowed).expect("created");
    let option = format!("--secure-file-priv={}", allowed.display());
    let server = Cohort::start(folder.path(), "data", &[&option]);
    let mut root = server.client();
    for sql in [
        "CREATE USER some",
        "GRANT RELOAD, SELECT ON *.* TO some",
        "CREATE USER other",
        "GRANT RELOAD, FILE ON *.* TO other",
        "CREATE USER third",
        "GRANT FILE, SELECT ON *.* TO third",
    ] {
        root.query_drop(sql).expect(sql);
    }
    let as_user = |name: &str| {
        let options = server.options().user(Some(name.to_owned()));
        Conn::new(options).expect("logs in")
    };
    let to = |name: &str| format!("BACKUP SERVER TO '{}'", allowed.join(name).display());
    let stream = "BACKUP SERVER TO STREAM".to_owned();
    for (account, sql, is_allowed) in [
        ("some", to("of_some"), false),
        ("some", stream.clone(), true),
        ("other", to("of_other"), true),
        ("other", stream.clone(), false),
        ("third", to("of_third"), false),
        ("third", stream.clone(), false),
    ] {
        let done =
            as_user(account).query_iter(&sql).map(|rows| rows.for_each(|row| drop(row.expect("a row"))));
        match is_allowed {
            true => done.unwrap_or_else(|error| panic!("{account}, {sql}: {error}")),
            false => assert_eq!(error_code(done), 1227, "{account}, {sql}"),
        }
    }
    let outside = folder.path().join("outside");
    fs::create_dir(allowed.join("full")).expect("created");
    fs::create_dir(allowed.join("full/inside")).expect("created");
    fs::create_dir(allowed.join("empty")).expect("created");
    fs::write(allowed.join("file"), "x").expect("written");
    std::os::unix::fs::symlink(folder.path(), allowed.join("link")).expect("created");
    fs::create_dir(allowed.join("linked")).expect("created");
    std::os::unix::fs::symlink(allowed.join("linked"), allowed.join("inner")).expect("created");
    for (target, code) in [
        (outside.clone(), 1290),
        (allowed.join("link/outside"), 1290),
        (allowed.join("../outside"), 1290),
        (allowed.join("full"), 1004),
        (allowed.join("of_other"), 1004),
        (allowed.join("none/none"), 1004),
        (allowed.join("file"), 1004),
    ] {
        let done = root.query_drop(format!("BACKUP SERVER TO '{}'", target.display()));
        assert_eq!(error_code(done), code, "{}", target.display());
    }
    assert!(!outside.exists());
    let done = root.query_drop(to("file")).expect_err("a file").to_string();
    assert!(!done.contains("not empty"), "{done}");
    root.query_drop(to("empty")).expect("an empty directory is allowed");
    root.query_drop(to("inner/new")).expect("a directory after a symbolic link is allowed");
    for sql in ["BACKUP SERVER TO 'x' 2 CONCURRENT", "BACKUP SERVER TO", "BACKUP SERVER"] {
        root.query_drop(sql).expect_err(sql);
    }
    drop(server);
    let server = Cohort::start(folder.path(), "data", &[]);
    for target in [folder.path().join("data/inside"), folder.path().join("data"), folder.path().to_path_buf()]
    {
        let done = server.client().query_drop(format!("BACKUP SERVER TO '{}'", target.display()));
        let code = error_code(done);
        assert!([1210, 1004].contains(&code), "{}: {code}", target.display());
    }
}

#[test]
fn an_interrupted_backup_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.client();
    fill(&mut client, 12);
    client.query_drop("SET GLOBAL backup_mib_per_s = 1").expect("set");
    let backup = |server: &Cohort, dir: &Path, end: &dyn Fn(u64)| {
        let mut taker = server.client();
        let id: u64 = taker.query_first("SELECT CONNECTION_ID()").expect("a row").expect("one");
        let sql = format!("BACKUP SERVER TO '{}'", dir.display());
        std::thread::scope(|scope| {
            let taken = scope.spawn(move || taker.query_drop(sql));
            wait_until("it copies", || dir.join("innodb/btree.data").exists());
            end(id);
            taken.join().expect("ends")
        })
    };
    // KILL QUERY: nothing is left, and another one may use the directory.
    let dir = folder.path().join("killed");
    let mut killer = server.client();
    let killer = std::cell::RefCell::new(&mut killer);
    let killed = backup(&server, &dir, &|id| {
        let state: Option<(String, f64)> = killer
            .borrow_mut()
            .query_first(format!(
                "SELECT STATE, PROGRESS FROM information_schema.PROCESSLIST WHERE ID = {id}"
            ))
            .expect("a row");
        assert_eq!(state.expect("one").0, "Backing up");
        killer.borrow_mut().query_drop(format!("KILL QUERY {id}")).expect("killed");
    });
    assert_eq!(error_code(killed), 1317);
    assert!(!dir.exists(), "the statement created it");
    let sql = format!("SET STATEMENT max_statement_time=1 FOR BACKUP SERVER TO '{}'", dir.display());
    assert_eq!(error_code(server.client().query_drop(sql)), 1969);
    assert!(!dir.exists(), "the statement created it");
    assert_eq!(fs::read_dir(&dir).map_or(0, Iterator::count), 0, "nothing is left");
    // SIGKILL of the server: what is left is no backup, and no server starts in it.
    let left = folder.path().join("left");
    let pid = server.pid().to_string();
    let ended = backup(&server, &left, &|_| drop(support::run("kill", &["-9", &pid])));
    assert!(matches!(ended, Err(Error::IoError(_) | Error::DriverError(_) | Error::MySqlError(_))));
    server.kill();
    assert!(left.join(UNFINISHED).exists() && !left.join(MANIFEST).exists());
    let refusal = Cohort::try_start(folder.path(), "left", &[]).err().expect("refused");
    assert!(refusal.said.contains("the backup was not finished"), "{}", refusal.said);
    server.restart();
    client = server.client();
    client.query_drop("SET GLOBAL backup_mib_per_s = 0").expect("set");
    client.query_drop(format!("BACKUP SERVER TO '{}'", dir.display())).expect("the next one");
    // A copy that lost the end of a file, or a file, is refused with its name.
    let data = dir.join("innodb/btree.data");
    let whole = fs::read(&data).expect("readable");
    fs::write(&data, &whole[..whole.len() - 4096]).expect("cut");
    let refusal = Cohort::try_start(folder.path(), "killed", &[]).err().expect("refused");
    assert!(
        refusal.said.contains("btree.data has") && refusal.said.contains("copy the backup again"),
        "{}",
        refusal.said
    );
    fs::write(&data, &whole).expect("restored");
    let copy = Cohort::start(folder.path(), "killed", &[]);
    let rows: Option<Value> = copy.client().query_first("SELECT COUNT(*) FROM test.filled").expect("a row");
    assert_eq!(rows, Some(Value::Bytes(b"12".to_vec())));
}

#[test]
fn the_ages_of_backup_and_proof_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Cohort::start(folder.path(), "data", &[]);
    let times = |server: &Cohort| -> Vec<(String, u64)> {
        let sql = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Cohort_backup_newest_unixtime', \
                   'Cohort_backup_proven_unixtime')";
        server.client().query(sql).expect("rows")
    };
    assert!(times(&server).iter().all(|(_, time)| *time == 0));
    let taken = |server: &Cohort, name: &str| {
        let dir = folder.path().join(name);
        server.client().query_drop(format!("BACKUP SERVER TO '{}'", dir.display())).expect("taken");
        Manifest::read(&dir).expect("whole").id
    };
    let first = taken(&server, "first");
    let mut client = server.client();
    assert_eq!(error_code(client.query_drop("BACKUP SERVER PROVEN '0f'")), 1105, "no backup of this server");
    client.query_drop("CREATE USER some").expect("created");
    let mut some = Conn::new(server.options().user(Some("some"))).expect("logs in");
    let prove = format!("BACKUP SERVER PROVEN '{first}'");
    for sql in [&prove, "SELECT COUNT(*) FROM information_schema.COHORT_BACKUPS"] {
        assert_eq!(error_code(some.query_drop(sql)), 1227, "{sql}");
    }
    client.query_drop("GRANT BACKUP_ADMIN ON *.* TO some").expect("granted");
    some.query_drop(&prove).expect("proven");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let second = taken(&server, "second");
    let before = times(&server);
    assert!(before[0].1 > before[1].1 && before[1].1 > 0, "{before:?}");
    for restart in [Cohort::restart, Cohort::kill_and_restart] {
        restart(&mut server);
        assert_eq!(times(&server), before);
    }
    let list: Vec<(String, String)> = server
        .client()
        .query("SELECT BACKUP_ID, PROVEN FROM information_schema.COHORT_BACKUPS WHERE CUT_UNIXTIME > 0")
        .expect("rows");
    assert_eq!(list, [(first, "YES".to_owned()), (second, "NO".to_owned())]);
    // The copy is another data directory: it has no backup.
    let copy = Cohort::start(folder.path(), "second", &[]);
    assert!(times(&copy).iter().all(|(_, time)| *time == 0), "{:?}", times(&copy));
}

/// A source of replicas of MariaDB is lost and restored from its backup. A replica continues from the
/// restored one by GTID, also past the statements that MariaDB reads as comments; one that has more than the
/// backup is refused.
#[test]
fn replicas_of_mariadb_continue_from_a_restored_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--log-bin=mb", "--server-id=7"];
    let mut source = Cohort::start(folder.path(), "data", &options);
    let replica = Maria::new(&["--server-id=8", "--log-bin", "--log-slave-updates"]);
    replica.follow(source.port);
    for sql in [
        "CREATE TABLE test.t (id INT PRIMARY KEY, v VARCHAR(99)) CHARACTER SET utf8mb4",
        "INSERT INTO test.t VALUES (1, 'one'), (2, 'two')",
        "CREATE USER cloner IDENTIFIED BY 'secret'",
        // A statement within a comment in the binary log: MariaDB applies nothing.
        "GRANT BACKUP_ADMIN, CLONE_ADMIN ON *.* TO cloner",
        "GRANT SELECT ON test.* TO cloner",
        "REVOKE CLONE_ADMIN ON *.* FROM cloner",
        "UPDATE test.t SET v = 'three' WHERE id = 2",
    ] {
        source.client().query_drop(sql).expect(sql);
    }
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    let grants = replica.sql("SHOW GRANTS FOR cloner");
    assert!(grants.contains("SELECT ON `test`.*") && !grants.contains("_ADMIN"), "{grants}");
    let taken = folder.path().join("restored");
    source.client().query_drop(format!("BACKUP SERVER TO '{}'", taken.display())).expect("taken");
    let position = replica.sql("SELECT @@gtid_slave_pos");
    assert_eq!(Manifest::read(&taken).expect("whole").gtid_binlog_pos, position);
    source.kill();

    let restored = Cohort::start(folder.path(), "restored", &options);
    let move_to = |port: u16| {
        replica.sql(&format!("STOP SLAVE; CHANGE MASTER TO master_port={port}; START SLAVE"));
    };
    move_to(restored.port);
    restored
        .client()
        .query_drop("INSERT INTO test.t VALUES (3, 'of the restored source')")
        .expect("inserted");
    restored.client().query_drop("GRANT CLONE_ADMIN ON *.* TO cloner").expect("granted");
    let newest = restored.sql("SELECT @@gtid_binlog_pos");
    replica.wait_for(&newest);
    let number = |gtid: &str| gtid.rsplit('-').next().and_then(|n| n.parse::<u64>().ok()).expect("a GTID");
    assert_eq!(number(&newest), number(&position) + 2, "the numbers continue");
    let sum = "CHECKSUM TABLE test.t";
    assert_eq!(replica.sql(sum), restored.sql(sum));
    drop(restored);

    // The same backup, restored again: the replica has transactions that it lacks.
    let again = folder.path().join("again");
    source.restart();
    source.client().query_drop(format!("BACKUP SERVER TO '{}'", again.display())).expect("taken");
    source.kill();
    // Under another number its transactions cannot be taken for those that the replica has.
    let again = Cohort::start(folder.path(), "again", &["--log-bin=mb", "--server-id=9"]);
    for id in 10..14 {
        again.client().query_drop(format!("INSERT INTO test.t VALUES ({id}, 'again')")).expect("inserted");
    }
    move_to(again.port);
    wait_until("it is refused", || replica.status().contains("1236"));
    let status = replica.status();
    assert!(status.contains(&newest), "{status}");
}
