//! Backups of a running server: taken over connections, restored, served, compared.
//!
//! The server is `cohortd` in the target folder of this program:
//! `cargo build -p cohort-server --bin cohortd`.

#[path = "support/live.rs"]
mod live;

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cohort_backup_tool::client::Client;
use live::{Server, cohortd, run};
use serde_json::Value;

#[test]
fn a_running_server_is_backed_up_and_restored() {
    let folder = tempfile::tempdir().expect("a directory");
    let datadir = folder.path().join("data");
    let server = Server::with_orders(&datadir);
    server.execute("CREATE USER keeper@localhost IDENTIFIED BY 'a # secret'");
    server.execute("GRANT RELOAD, SELECT ON *.* TO keeper@localhost");
    let options = format!(
        "[client]\nhost=127.0.0.1\nport={}\nuser=keeper\npassword='a # secret'\n",
        server.account.port
    );
    std::fs::File::create(folder.path().join("cnf"))
        .and_then(|mut file| file.write_all(options.as_bytes()))
        .expect("written");
    let run = |arguments: &str| run(folder.path(), arguments);
    run("init r --key-file key").expect("created");
    let wrong = run("take r --key-file key --host 127.0.0.1 --port 1").expect_err("no server");
    assert!(wrong.contains("cannot connect to 127.0.0.1:1"), "{wrong}");

    // While rows are written.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn({
        let account = server.account.clone();
        move || {
            let mut client = Client::connect(&account).expect("connected");
            let mut id = 1_000_000;
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                id += 1;
                client
                    .query(&format!("INSERT INTO shop.orders VALUES ({id}, 'later')"), |_| Ok(()))
                    .expect("inserted");
            }
        }
    });
    let first = run("take r --key-file key --defaults-file cnf").expect("taken");
    let second = run("take r --key-file key --defaults-file cnf --ssl-verify-server-cert").expect("taken");
    drop(stop);
    writer.join().expect("no panic");
    server.execute("SET GLOBAL max_statement_time = 0.1");
    let last = run("take r --key-file key --defaults-file cnf --skip-ssl").expect("taken");
    server.execute("SET GLOBAL max_statement_time = 0");
    let expected = (server.values("CHECKSUM TABLE shop.orders"), server.values("SELECT @@gtid_current_pos"));
    assert_eq!(last["backup"]["manifest"]["gtid_current_pos"], Value::from(expected.1.clone()));
    assert!(second["reused_bytes"].as_u64() > Some(0), "{second}");
    run("verify r --key-file key").expect("whole");
    // Neither the files next to the directory nor the target of a link is anything but the directory itself.
    for name in ["proof.sql", "proof.sock"] {
        std::fs::write(folder.path().join(name), "a dump").expect("written");
    }
    std::fs::create_dir(folder.path().join("real")).expect("created");
    std::os::unix::fs::symlink("real", folder.path().join("proof")).expect("linked");
    let proof = format!(
        "verify r --key-file key --restore proof --cohortd {} --host 127.0.0.1 --user root --port {}",
        cohortd().display(),
        server.account.port
    );
    let proven = run(&proof).expect("proven");
    for name in ["proof.sql", "proof.sock"] {
        let text = std::fs::read_to_string(folder.path().join(name)).expect("it is still there");
        assert_eq!(text, "a dump", "{name}");
    }
    assert_eq!(proven["backup"], last["backup"]["name"]);
    assert_eq!(proven["is_reported"], Value::Bool(true));
    let shown = server.values("SELECT BACKUP_ID FROM information_schema.COHORT_BACKUPS WHERE PROVEN = 'YES'");
    assert_eq!(Value::from(shown), last["backup"]["manifest"]["id"]);
    assert_eq!((&proven["tables"], &proven["findings"]), (&Value::from(1), &Value::Array(vec![])));
    assert_eq!(proven["rows"].to_string(), server.values("SELECT COUNT(*) FROM shop.orders"));
    assert!(!folder.path().join("real").exists());
    // Another server with the same server_id.
    let other = folder.path().join("other");
    Server::initialize(&other);
    let other = Server::start(&other);
    let other_port =
        format!("take r --key-file key --host 127.0.0.1 --user root --port {}", other.account.port);
    let refused = run(&other_port).expect_err("another server");
    assert!(refused.contains("--another-server"), "{refused}");
    drop(other);
    let wrong =
        run(&format!("take r --key-file key --host 127.0.0.1 --user no --port {}", server.account.port));
    assert!(wrong.expect_err("no such account").contains("Access denied"));
    server.execute("DROP DATABASE shop");
    drop(server);

    // An interrupted restore leaves the mark of an unfinished backup, and no server starts.
    run("restore r --key-file key --to half").expect("restored");
    let half = folder.path().join("half");
    std::fs::rename(half.join("cohort-backup.json"), half.join("cohort-backup.unfinished")).expect("renamed");
    let mut refused = Command::new(cohortd());
    refused.args(["--no-defaults", "--skip-networking"]).arg(format!("--datadir={}", half.display()));
    let refused =
        refused.arg(format!("--socket={}/t", folder.path().display())).output().expect("the server runs");
    assert_eq!(refused.status.code(), Some(1), "{}", String::from_utf8_lossy(&refused.stderr));

    for (taken, is_last) in [(&first, false), (&second, false), (&last, true)] {
        let name = taken["backup"]["name"].as_str().expect("a name");
        run(&format!("restore r --key-file key --to {name} --backup {name}")).expect("restored");
        let restored = Server::start(&folder.path().join(name));
        let position = restored.values("SELECT @@gtid_current_pos");
        assert_eq!(taken["backup"]["manifest"]["gtid_current_pos"], Value::from(position.clone()));
        assert_eq!(restored.values("SELECT COUNT(*) FROM shop.orders WHERE id <= 20000"), "20000");
        assert_eq!(restored.values("CHECK TABLE shop.orders"), "shop.orders check status OK");
        if is_last {
            let found = (restored.values("CHECKSUM TABLE shop.orders"), position);
            assert_eq!(found, expected);
        }
        // It goes on from there.
        restored.execute("INSERT INTO shop.orders VALUES (0, 'restored')");
    }
}

/// Executes the statements of a file, as `mariadb` does.
fn execute_file(server: &Server, file: &Path) {
    let text = std::fs::read_to_string(file).expect("the statements");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
    let mut client = server.client();
    for statement in lines.join(" ").split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        client.query(statement, |_| Ok(())).expect(statement);
    }
}

#[test]
fn a_clone_is_a_server_or_a_replica_that_catches_up() {
    let folder = tempfile::tempdir().expect("a directory");
    let datadir = folder.path().join("data");
    let server = Server::with_orders(&datadir);
    server.execute("CREATE USER keeper@localhost IDENTIFIED BY 'secret'");
    server.execute("GRANT RELOAD, SELECT ON *.* TO keeper@localhost");
    server.execute("CREATE USER repl@localhost IDENTIFIED BY 'it''s \\\\ secret'");
    server.execute("GRANT REPLICATION SLAVE ON *.* TO repl@localhost");
    server.execute("CREATE USER poor@localhost");
    let port = server.account.port;
    let options = format!(
        "[client]\nhost=127.0.0.1\nport={port}\nuser=keeper\npassword=secret\n\
         [cohort-backup]\nreplica-user=repl\nreplica-password=\"it's \\ secret\"\n"
    );
    std::fs::write(folder.path().join("cnf"), options).expect("written");
    let run = |arguments: &str| run(folder.path(), arguments);

    let plain = run("clone --defaults-file cnf --to plain").expect("cloned");
    assert_eq!(plain["option_file"], Value::Null);
    assert!(!folder.path().join("plain/cohort-replica.sql").exists());
    let busy = run("clone --defaults-file cnf --to plain").expect_err("it is not empty");
    assert!(busy.contains("is not empty"), "{busy}");
    let wrong = run("clone --host 127.0.0.1 --port 1 --to other").expect_err("no server");
    assert!(wrong.contains("cannot connect") && !folder.path().join("other").exists(), "{wrong}");
    run("clone --to other").expect_err("no server is named");

    // An account without the privileges leaves the directory as it is.
    std::fs::create_dir_all(folder.path().join("new # 'one'/lost+found")).expect("created");
    std::os::unix::fs::symlink("new # 'one'", folder.path().join("replica")).expect("linked");
    let refused = format!("clone --host 127.0.0.1 --user poor --port {port} --to replica");
    assert!(run(&refused).expect_err("no privilege").contains("denied"));

    // While rows are written.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn({
        let account = server.account.clone();
        move || {
            let mut client = Client::connect(&account).expect("connected");
            let mut id = 1_000_000;
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                id += 1;
                let insert = format!("INSERT INTO shop.orders VALUES ({id}, 'later')");
                client.query(&insert, |_| Ok(())).expect("inserted");
            }
        }
    });
    let cloned = run("clone --defaults-file cnf --to replica --replica --ssl").expect("cloned");
    drop(stop);
    writer.join().expect("no panic");
    let of = |name: &str| folder.path().join(cloned[name].as_str().expect("a path"));
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(of("statements")).expect("the statements").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let options =
        [format!("--defaults-file={}", of("option_file").display()), "--skip-slave-start".to_owned()];
    let replica = Server::start_with(&folder.path().join("replica"), &options);
    assert_eq!(
        replica.values("SELECT @@server_id, @@event_scheduler"),
        format!("{} OFF", cloned["server_id"])
    );
    execute_file(&replica, &of("statements"));
    server.execute("INSERT INTO shop.orders VALUES (-1, 'after the clone')");
    let position = server.values("SELECT @@gtid_binlog_pos");
    assert_eq!(replica.values(&format!("SELECT MASTER_GTID_WAIT('{position}', 60)")), "0");
    let status = replica.values("SHOW SLAVE STATUS");
    let sum = "CHECKSUM TABLE shop.orders";
    assert_eq!(replica.values(sum), server.values(sum), "{status}");
    assert!(replica.values("SELECT COUNT(*) FROM shop.orders WHERE id > 1000000") != "0");

    let server_of_plain = Server::start(&folder.path().join("plain"));
    assert_eq!(server_of_plain.values("SELECT COUNT(*) FROM shop.orders"), "20000");
    assert_eq!(server_of_plain.values("CHECK TABLE shop.orders"), "shop.orders check status OK");
}

/// A table with the types whose values a copy could change.
const ODD_TABLE: &str = "CREATE TABLE shop.odd (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    parent INT, f FLOAT, d DOUBLE, n DECIMAL(30,10), u BIGINT UNSIGNED, flags BIT(9), y YEAR,
    t TIME(6), day DATE, at TIMESTAMP(6) NULL, moment DATETIME(3),
    c CHAR(9) CHARACTER SET latin1, v VARCHAR(99), w VARCHAR(99) CHARACTER SET utf16,
    b VARBINARY(99), large LONGBLOB, e ENUM('x','it''s'), s SET('a','b','c'), j JSON,
    twice INT AS (parent * 2) STORED, KEY (v), UNIQUE (u),
    CONSTRAINT to_parent FOREIGN KEY (parent) REFERENCES parents (id),
    CONSTRAINT positive CHECK (parent > -5)
) COMMENT 'odd; ''values'''";

const ODD_ROWS: &[&str] = &[
    "INSERT INTO shop.parents VALUES (1)",
    "INSERT INTO shop.odd (parent, f, d, n, u, flags, y, t, day, at, moment, c, v, w, b, large, e, s, j) VALUES
     (1, 1/3, 1/3, 12345678901234567890.0123456789, 18446744073709551615, b'100000001', 1999, '-838:59:59.999999',
      '0000-00-00', '2026-11-28 19:30:00.123456', '1000-01-01 00:00:00.001', 'caf\u{e9}', 'it''s \\\\ \"\\n\\0 \u{1f980}',
      '\u{20ac}', X'00FF27225C0A', REPEAT(X'00270A', 2000000), 'it''s', 'a,c', '{\"a\": [1, null]}')",
    "INSERT INTO shop.odd (v, b, large, s) VALUES ('', '', '', '')",
    "INSERT INTO shop.odd (id) VALUES (0)",
    "INSERT INTO shop.odd (v, f) SELECT SHA1(seq), seq / 7 FROM shop.seq_1_to_5000",
];

#[test]
fn a_table_of_a_backup_is_copied_into_the_running_server() {
    let folder = tempfile::tempdir().expect("a directory");
    let datadir = folder.path().join("data");
    Server::initialize(&datadir);
    let server = Server::start(&datadir);
    let run = |arguments: &str| run(folder.path(), arguments);
    server.execute("CREATE DATABASE shop");
    server.execute("CREATE TABLE shop.parents (id INT PRIMARY KEY)");
    server.execute(ODD_TABLE);
    let mut client = server.client();
    client.query("SET SESSION sql_mode = ''", |_| Ok(())).expect("set");
    client.query("SET NAMES utf8mb4", |_| Ok(())).expect("set");
    for sql in ODD_ROWS {
        client.query(sql, |_| Ok(())).expect(sql);
    }
    server.execute("CREATE VIEW shop.few AS SELECT 1");
    server.execute("CREATE TRIGGER shop.trig BEFORE INSERT ON shop.odd FOR EACH ROW SET NEW.y = 2000");
    server.execute("CREATE USER restorer@localhost IDENTIFIED BY 'secret'");
    server.execute("GRANT CREATE, INSERT, SELECT, ALTER, DROP, REFERENCES ON shop.* TO restorer@localhost");
    server.execute("CREATE USER reader@localhost IDENTIFIED BY 'secret'");
    server.execute("GRANT SELECT ON shop.* TO reader@localhost");
    let sum = "CHECKSUM TABLE shop.odd";
    let rows = "SELECT COUNT(*), SUM(f = CAST(1/3 AS FLOAT)) FROM shop.odd";
    let (expected, counted) = (server.values(sum), server.values(rows));
    let port = server.account.port;
    for (name, user) in [("cnf", "restorer"), ("reader", "reader"), ("root", "root")] {
        let password = if user == "root" { "" } else { "secret" };
        let text = format!("[client]\nhost=127.0.0.1\nport={port}\nuser={user}\npassword={password}\n");
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    run("init r --key-file key").expect("created");
    run("take r --key-file key --defaults-file root").expect("taken");

    let restore = "restore r --key-file key --to scratch";
    let exists = run(&format!("{restore} --table shop.odd --defaults-file cnf")).expect_err("it exists");
    assert!(exists.contains("the server has a table"), "{exists}");
    let wrong =
        run(&format!("{restore} --table shop.odd --as none.odd --defaults-file cnf")).expect_err("wrong");
    assert!(wrong.contains("has no database 'none'"), "{wrong}");
    let wrong = run(&format!("{restore} --user root")).expect_err("no table");
    assert!(wrong.contains("for --table only"), "{wrong}");
    assert!(!folder.path().join("scratch").exists());
    let other =
        run(&format!("{restore} --table shop.odd --as shop.odd_old --defaults-file cnf")).expect("copied");
    assert_eq!((&other["rows"], &other["table"]), (&Value::from(5003), &Value::from("`shop`.`odd_old`")));
    assert_eq!(other["triggers_not_copied"], serde_json::json!(["trig"]));
    assert!(!folder.path().join("scratch").exists() && !folder.path().join("scratch.sock").exists());
    let without_name = |text: String, name: &str| text.replace(name, "");
    assert_eq!(
        without_name(server.values("CHECKSUM TABLE shop.odd_old"), "shop.odd_old"),
        without_name(expected.clone(), "shop.odd")
    );
    server.execute("DROP TABLE shop.odd");
    run(&format!("{restore} --table shop.odd --defaults-file cnf")).expect("copied");
    assert_eq!((server.values(sum), server.values(rows)), (expected, counted));
    assert_eq!(server.values("CHECK TABLE shop.odd"), "shop.odd check status OK");
    let definition = server.values("SHOW CREATE TABLE shop.odd");
    for part in
        ["AUTO_INCREMENT=", "REFERENCES `parents` (`id`)", "CONSTRAINT `positive`", "GENERATED ALWAYS"]
    {
        assert!(definition.contains(part), "{part}: {definition}");
    }
    server.execute("INSERT INTO shop.odd (parent) VALUES (1)");

    // Values that strict mode and constraints refuse today.
    for sql in [
        "CREATE TABLE shop.lax (id INT PRIMARY KEY, e ENUM('a', 'b'), CHECK (id > 0))",
        "SET STATEMENT sql_mode = '', check_constraint_checks = 0 FOR INSERT INTO shop.lax VALUES (1, 'x'), (-1, 'a')",
    ] {
        server.execute(sql);
    }
    run("take r --key-file key --defaults-file root").expect("taken");
    run(&format!("{restore} --table shop.lax --as shop.lax_old --defaults-file cnf")).expect("copied");
    let lax = |name: &str| server.values(&format!("SELECT id, e + 0 FROM shop.{name} ORDER BY id"));
    assert_eq!((lax("lax_old"), lax("lax")), ("-1 1 1 0".to_owned(), "-1 1 1 0".to_owned()));
    server.execute("DROP TABLE shop.lax, shop.lax_old");

    for (table, user, text) in [
        ("shop.few --as shop.more", "cnf", "is not a table"),
        ("shop.none", "cnf", "doesn't exist"),
        ("shop.parents --as shop.copied", "reader", "denied"),
    ] {
        let target = format!("restore r --key-file key --to scratch-{user}-{} --table", text.len());
        let failed = run(&format!("{target} {table} --defaults-file {user}")).expect_err(text);
        assert!(failed.contains(text), "{table}: {failed}");
    }
    assert_eq!(server.values("SHOW TABLES FROM shop"), "few odd odd_old parents");
}

#[test]
fn every_moment_of_an_archived_server_can_be_restored() {
    let folder = tempfile::tempdir().expect("a directory");
    let datadir = folder.path().join("data");
    Server::initialize(&datadir);
    let run = |arguments: &str| run(folder.path(), arguments);
    run("init r --key-file key").expect("created");
    let options = |place: &str| {
        let mut options = ["--no-defaults", "--log-bin=binlog", "--server-id=7"].map(str::to_owned).to_vec();
        options.push(format!("--archive-to={}", folder.path().join(place).display()));
        options.push(format!("--archive-key-file={}", folder.path().join("key").display()));
        options
    };
    let server = Server::start_with(&datadir, &options("r"));
    server.execute("CREATE DATABASE shop");
    server.execute("CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(400), KEY (note))");
    let take = |server: &Server| {
        run(&format!("take r --key-file key --host 127.0.0.1 --user root --port {}", server.account.port))
    };
    take(&server).expect("taken");
    // The manifest has its time in seconds: a target within the same second is not known to be later.
    std::thread::sleep(Duration::from_millis(1100));
    server.execute("INSERT INTO shop.orders SELECT seq, SHA1(seq) FROM shop.seq_1_to_2000");
    // A large transaction, whose changes are in files.
    server.execute("INSERT INTO shop.orders SELECT seq, REPEAT(SHA1(seq), 9) FROM shop.seq_10001_to_60000");
    let gtid = server.values("SELECT @@gtid_binlog_pos");
    std::thread::sleep(Duration::from_millis(100));
    let time = server.values("SELECT UTC_TIMESTAMP(6)").replace(' ', "T");
    std::thread::sleep(Duration::from_millis(100));
    let expected = server.values("CHECKSUM TABLE shop.orders");
    server.execute("INSERT INTO shop.orders VALUES (-1, 'later')");
    server.execute("CREATE INDEX two ON shop.orders (id, note)");
    let newest = server.values("CHECKSUM TABLE shop.orders");
    server.execute("DROP TABLE shop.orders");
    server.execute("CREATE TABLE shop.other AS SELECT 1 AS one");
    let position = server.values("SELECT @@gtid_binlog_pos");
    let reaches = |position: &str| {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let listed = run("list r --key-file key").expect("listed");
            let runs = listed["archive"].as_array().expect("an array").clone();
            if runs.iter().any(|run| run["gtid_position"] == position) {
                return runs;
            }
            assert!(Instant::now() < end, "the archive does not reach {position}: {runs:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    assert_eq!(reaches(&position).len(), 1);
    run("verify r --key-file key").expect("whole");
    // One table of the state before the mistake, into the running server.
    let account = format!("--host 127.0.0.1 --user root --port {}", server.account.port);
    let table = format!("restore r --key-file key --to scratch --table shop.orders {account}");
    let copied = run(&format!("{table} --to-time {time}")).expect("copied");
    assert_eq!(copied["rows"], 52_000);
    assert_eq!(server.values("CHECKSUM TABLE shop.orders"), expected);
    let position = server.values("SELECT @@gtid_binlog_pos");
    reaches(&position);
    // The machine is lost.
    drop(server);
    std::fs::remove_dir_all(&datadir).expect("removed");
    let before = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop'";
    for (target, tables, sum) in [
        (format!("--to-time {time}"), "1", &expected),
        (format!("--to-gtid {gtid}"), "1", &expected),
        ("--to-latest".to_owned(), "2", &expected),
    ] {
        let name = target[5..9].replace([' ', '-'], "x");
        let restored = run(&format!("restore r --key-file key --to {name} {target}")).expect("restored");
        assert!(restored["applied"]["applied_bytes"].as_u64() > Some(0), "{restored}");
        let server = Server::start(&folder.path().join(&name));
        assert_eq!(server.values(before), tables, "{target}: {restored}");
        assert_eq!(server.values("CHECKSUM TABLE shop.orders"), *sum, "{target}");
        assert_eq!(server.values("CHECK TABLE shop.orders"), "shop.orders check status OK", "{target}");
    }
    // A time that the archive does not reach has an exit code of its own.
    let later = "2099-01-01T00:00:00Z".to_owned();
    let output = Command::new(env!("CARGO_BIN_EXE_cohort-backup"))
        .args(["--json", "restore", "r", "--key-file", "key", "--to", "early", "--to-time", &later])
        .current_dir(folder.path())
        .output()
        .expect("the program");
    let restored: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), &restored["is_target_reached"]), (Some(8), &Value::Bool(false)));
    assert_ne!(newest, expected);
    // The restored server archives on a timeline of its own, and begins with a backup.
    let server = Server::start_with(&folder.path().join("late"), &options("r"));
    let account = format!("--host 127.0.0.1 --user root --port {}", server.account.port);
    let refused = run(&format!("take r --key-file key {account}")).expect_err("a new identity");
    assert!(refused.contains("--another-server"), "{refused}");
    let taken = run(&format!("take r --key-file key {account} --another-server")).expect("taken");
    assert!(taken["backup"]["manifest"]["timeline"].as_u64() > Some(1), "{taken}");
    server.execute("INSERT INTO shop.orders VALUES (-2, 'on a new timeline')");
    let position = server.values("SELECT @@gtid_binlog_pos");
    assert_eq!(reaches(&position).len(), 2);
    let sum = server.values("CHECKSUM TABLE shop.orders");
    drop(server);
    run("restore r --key-file key --to again --to-latest").expect("restored");
    let server = Server::start(&folder.path().join("again"));
    assert_eq!(server.values("CHECKSUM TABLE shop.orders"), sum);
    // The old timeline can still be restored.
    run("restore r --key-file key --to old --to-latest --timeline 00000001").expect("restored");
    let server = Server::start(&folder.path().join("old"));
    assert_eq!(server.values("SELECT COUNT(*) FROM shop.orders WHERE id = -2"), "0");
}

#[test]
fn a_copy_of_a_data_directory_does_not_continue_the_archive_of_the_original() {
    let folder = tempfile::tempdir().expect("a directory");
    let at = |name: &str| folder.path().join(name);
    let run = |arguments: &str| run(folder.path(), arguments);
    run("init r --key-file key").expect("created");
    let start = |name: &str| {
        let mut options = ["--no-defaults", "--log-bin=binlog", "--server-id=7"].map(str::to_owned).to_vec();
        options.push(format!("--archive-to={}", at("r").display()));
        options.push(format!("--archive-key-file={}", at("key").display()));
        options.push(format!("--log-error={}", at(&format!("{name}.log")).display()));
        Server::start_with(&at(name), &options)
    };
    let wait = |what: &str, is_done: &dyn Fn() -> bool| {
        let end = Instant::now() + Duration::from_secs(60);
        while !is_done() {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let reaches = |server: &Server| {
        let position = server.values("SELECT @@gtid_binlog_pos");
        wait(&position, &|| {
            let listed = run("list r --key-file key").expect("listed");
            let runs = listed["archive"].as_array().expect("an array").clone();
            runs.iter().any(|run| run["gtid_position"] == position.as_str())
        });
    };
    let logged = |text: &str| std::fs::read_to_string(at("d.log")).unwrap_or_default().matches(text).count();
    Server::initialize(&at("d"));
    let original = start("d");
    original.execute("CREATE DATABASE shop");
    original.execute("CREATE TABLE shop.t (a INT PRIMARY KEY, b CHAR(9))");
    run(&format!("take r --key-file key --host 127.0.0.1 --user root --port {}", original.account.port))
        .expect("taken");
    reaches(&original);
    drop(original);
    let copied = Command::new("cp").arg("-a").arg(at("d")).arg(at("copy")).status();
    assert!(copied.expect("cp runs").success());
    // The copy is the first to archive.
    let copy = start("copy");
    (1..3).for_each(|n| copy.execute(&format!("INSERT INTO shop.t VALUES (3000{n}, 'of copy')")));
    reaches(&copy);
    drop(copy);
    // The log of the original grows to the same LSN, and further.
    let original = start("d");
    wait("a refusal", &|| logged("stands still, until archive_to is another place") == 1);
    (1..7).for_each(|n| original.execute(&format!("INSERT INTO shop.t VALUES (4000{n}, 'original')")));
    drop(original);
    // It stays refused: by its record of that, and without the record by the comparison of the logs.
    let original = start("d");
    wait("a second refusal", &|| logged("stands still, until") == 2);
    drop(original);
    std::fs::remove_file(at("d/archive.refused")).expect("removed");
    let original = start("d");
    wait("a third refusal", &|| logged("the repository has another log than this server") == 1);
    assert_eq!(logged("The log is archived from LSN"), 1);
    drop(original);
    run("restore r --key-file key --to restored --to-latest").expect("restored");
    let restored = Server::start(&at("restored"));
    assert_eq!(restored.values("SELECT GROUP_CONCAT(a) FROM shop.t"), "30001,30002");
}

#[test]
fn incremental_backups_are_restored_as_full_ones() {
    let folder = tempfile::tempdir().expect("a directory");
    let run = |arguments: &str| run(folder.path(), arguments);
    let datadir = folder.path().join("data");
    let server = Server::with_orders(&datadir);
    run("init r --key-file key").expect("created");
    let take = |server: &Server, more: &str| {
        let account = format!("--host 127.0.0.1 --user root --port {}", server.account.port);
        run(&format!("take r --key-file key {account} {more}"))
    };
    let refused = take(&server, "--incremental").expect_err("there is none");
    assert!(refused.contains("take a full one"), "{refused}");
    let full = take(&server, "").expect("taken");
    let mut sums = vec![(full["backup"]["name"].clone(), server.values("CHECKSUM TABLE shop.orders"))];
    let changes = [
        "UPDATE shop.orders SET note = 'changed' WHERE id BETWEEN 3000 AND 3100",
        "INSERT INTO shop.orders SELECT seq, REPEAT('x', 400) FROM shop.seq_30001_to_30200",
        "CREATE INDEX two ON shop.orders (id, note(20))",
        "DELETE FROM shop.orders WHERE id < 9000",
    ];
    let mut server = server;
    for (n, sql) in changes.into_iter().enumerate() {
        server.execute(sql);
        if n == 2 {
            drop(server);
            server = Server::start(&datadir);
        }
        let taken = take(&server, "--incremental").expect("taken");
        let (manifest, bytes) = (&taken["backup"]["manifest"], &taken["backup"]["added_bytes"]);
        assert_eq!(manifest["joined"], n + 1, "{manifest}");
        if n < 2 {
            assert!(bytes.as_u64() < full["backup"]["added_bytes"].as_u64().map(|full| full / 4), "{taken}");
        }
        sums.push((taken["backup"]["name"].clone(), server.values("CHECKSUM TABLE shop.orders")));
    }
    // The backups that the last two continue are deleted.
    run("prune r --key-file key --keep 2").expect("pruned");
    run("verify r --key-file key").expect("whole");
    let kept = sums.split_off(3);
    for (n, (name, sum)) in kept.iter().enumerate() {
        let name = name.as_str().expect("a name");
        run(&format!("restore r --key-file key --backup {name} --to copy{n}")).expect("restored");
        let copy = Server::start(&folder.path().join(format!("copy{n}")));
        assert_eq!(copy.values("CHECKSUM TABLE shop.orders"), *sum);
        assert_eq!(copy.values("CHECK TABLE shop.orders"), "shop.orders check status OK");
        let refused = take(&copy, "--incremental").expect_err("another timeline");
        assert!(refused.contains("cannot be continued"), "{refused}");
    }
    // Directories: the incremental one has few bytes, no server starts in it, and a repository joins both.
    let at = |name: &str| folder.path().join(name);
    let backup = |server: &Server, to: &str, from: &str| {
        let from = match from {
            "" => String::new(),
            from => format!(" INCREMENTAL FROM '{}'", at(from).display()),
        };
        let sql = format!("BACKUP SERVER TO '{}'{from}", at(to).display());
        server.client().query(&sql, |_| Ok(())).map_err(|failure| failure.to_string())
    };
    backup(&server, "d0", "").expect("taken");
    server.execute("UPDATE shop.orders SET note = 'again' WHERE id = 10000");
    backup(&server, "d1", "d0").expect("taken");
    server.execute("UPDATE shop.orders SET note = 'and again' WHERE id = 10001");
    backup(&server, "d2", "d1").expect("taken");
    // The unused part of the log's last segment takes no space.
    assert!(disk_bytes(&at("d1")) < 8 << 20, "{} bytes", disk_bytes(&at("d1")));
    let sum = server.values("CHECKSUM TABLE shop.orders");
    run("init s --key-file other").expect("created");
    let missing = run("take s --key-file other --from d1").expect_err("its parent is not there");
    assert!(missing.contains("store that one first"), "{missing}");
    ["d0", "d1", "d2"].iter().for_each(|from| {
        run(&format!("take s --key-file other --from {from}")).expect("stored");
    });
    run("restore s --key-file other --to joined").expect("restored");
    let joined = Server::start(&at("joined"));
    // The first start gives the log its space: a commit never lacks it.
    let log = at("joined/log");
    for entry in std::fs::read_dir(&log).expect("listed").map(|entry| entry.expect("an entry")) {
        let found = entry.metadata().expect("it is there");
        assert!(found.blocks() * 512 >= found.len(), "{:?} has holes", entry.path());
    }
    assert_eq!(joined.values("CHECKSUM TABLE shop.orders"), sum);
    assert_eq!(joined.values("CHECK TABLE shop.orders"), "shop.orders check status OK");
    let option = format!("--datadir={}", at("d2").display());
    let output = Command::new(cohortd()).args(["--no-defaults", &option]).output().expect("the server runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is an incremental backup"), "{output:?}");
    // Parents that are damaged, gone, or of another server.
    let refused = |server: &Server, from: &str, text: &str| {
        let failed = backup(server, "refused", from).expect_err(text);
        assert!(failed.contains(text), "{from}: {failed}");
        assert!(!at("refused").exists(), "{from}");
    };
    refused(&joined, "d2", "cannot be continued");
    refused(&server, "d9", "is no backup");
    std::fs::remove_file(at("d1/cohort.version")).expect("removed");
    refused(&server, "d1", "is missing or has another length");
    let manifest = std::fs::read_to_string(at("d2/cohort-backup.json")).expect("read");
    std::fs::write(at("d2/cohort-backup.json"), manifest.replacen("shared", "shaped", 1)).expect("written");
    refused(&server, "d2", "is damaged");
}

/// Returns the space that the files of a directory take on the disk.
fn disk_bytes(folder: &Path) -> u64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry")) {
        let found = entry.metadata().expect("it is there");
        bytes += if found.is_dir() { disk_bytes(&entry.path()) } else { found.blocks() * 512 };
    }
    bytes
}

#[test]
fn a_slow_backup_under_updates_takes_bounded_space_and_ends_with_its_client_or_by_kill() {
    let folder = tempfile::tempdir().expect("a directory");
    let datadir = folder.path().join("data");
    let server = Server::with_orders(&datadir);
    let to = folder.path().join("copy");
    server.execute("SET GLOBAL backup_mib_per_s = 1, GLOBAL checkpoint_bytes_max = 16777216");
    let update = || {
        for _ in 0..10 {
            server.execute("UPDATE shop.orders SET note = REVERSE(note)");
        }
        disk_bytes(&datadir.join("innodb")) + disk_bytes(&datadir.join("log"))
    };
    let without = update();
    let wait_until = |what: &str, is_so: &mut dyn FnMut() -> bool| {
        let end = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let find = "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE = 'Backing up'";
    let begin = || {
        let child = Command::new("mariadb")
            .args(["--no-defaults", "--host=127.0.0.1", "--user=root"])
            .arg(format!("--port={}", server.account.port))
            .arg(format!("--execute=BACKUP SERVER TO '{}'", to.display()))
            .stderr(Stdio::null())
            .spawn()
            .expect("the client");
        wait_until("it does not begin", &mut || to.exists() && !server.values(find).is_empty());
        child
    };
    // The client is gone: the backup ends, and nothing is left.
    let mut client = begin();
    let with = update();
    // At most the pinned state in addition.
    assert!(with <= 2 * without + (8 << 20), "{without} bytes without a backup, {with} with one");
    assert!(!server.values(find).is_empty(), "it is not over yet");
    client.kill().expect("killed");
    client.wait().expect("it ends");
    let status = |name: &str| server.values(&format!("SHOW STATUS LIKE 'Cohort_backup_{name}'"));
    wait_until("the directory stays", &mut || !to.exists() && server.values(find).is_empty());
    assert_eq!(status("failures"), "Cohort_backup_failures 1");
    assert_eq!(status("log_pinned_bytes"), "Cohort_backup_log_pinned_bytes 0");
    // So does KILL.
    let mut client = begin();
    server.execute(&format!("KILL QUERY {}", server.values(find)));
    assert!(!client.wait().expect("it ends").success());
    assert!(!to.exists());
    assert_eq!(status("failures"), "Cohort_backup_failures 2");
    assert_eq!(status("log_pinned_bytes"), "Cohort_backup_log_pinned_bytes 0");
    server.execute("SET GLOBAL backup_mib_per_s = 0");
    server.execute(&format!("BACKUP SERVER TO '{}'", to.display()));
    assert_eq!(status("log_pinned_bytes"), "Cohort_backup_log_pinned_bytes 0");
}

/// The commands of the how-to pages, with places of the test instead of those of the pages.
#[test]
fn the_commands_of_the_pages_run() {
    let folder = tempfile::tempdir().expect("a directory");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let datadir = folder.path().join("data");
    Server::initialize(&datadir);
    run(folder.path(), "init archived --key-file archive.key").expect("created");
    let mut options = ["--no-defaults", "--log-bin=binlog", "--server-id=7"].map(str::to_owned).to_vec();
    options.push(format!("--archive-to={}", place("archived")));
    options.push(format!("--archive-key-file={}", place("archive.key")));
    let server = Server::start_with(&datadir, &options);
    server.execute("CREATE DATABASE shop");
    server.execute("CREATE TABLE shop.orders (id INT PRIMARY KEY)");
    server.execute("INSERT INTO shop.orders SELECT seq FROM shop.seq_1_to_100");
    let account = format!("[client]\nhost=127.0.0.1\nport={}\nuser=root\n", server.account.port);
    for name in ["keeper.cnf", "restorer.cnf"] {
        std::fs::write(place(name), &account).expect("written");
    }
    let orders = |server: &Server| server.values("SELECT COUNT(*), SUM(id) FROM shop.orders");
    let expected = orders(&server);
    let (mut count, mut time) = (0, String::new());
    for (page, repository, key) in [
        ("repositories", "r", "backup.key"),
        ("move-machine", "r", "backup.key"),
        ("new-replica", "r", "backup.key"),
        ("dropped-table", "r", "backup.key"),
        ("lost-key", "r", "backup.key"),
        ("point-in-time", "archived", "archive.key"),
    ] {
        if page == "point-in-time" {
            run(folder.path(), "take archived --key-file archive.key --defaults-file keeper.cnf")
                .expect("taken");
            // A backup has its time in seconds, and the archive must go on after the target.
            std::thread::sleep(Duration::from_millis(1100));
            time = server.values("SELECT UTC_TIMESTAMP(6)").replace(' ', "T") + "Z";
            std::thread::sleep(Duration::from_millis(100));
            server.execute("INSERT INTO shop.orders VALUES (1000)");
            let position = Value::from(server.values("SELECT @@gtid_binlog_pos"));
            let end = Instant::now() + Duration::from_secs(60);
            loop {
                let listed = run(folder.path(), "list archived --key-file archive.key").expect("listed");
                let runs = listed["archive"].as_array().expect("an array");
                if runs.iter().any(|run| run["gtid_position"] == position) {
                    break;
                }
                assert!(Instant::now() < end, "the archive does not reach {position}: {runs:?}");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        let name = run(folder.path(), &format!("list {repository} --key-file {key}"))
            .map_or(String::new(), |listed| {
                listed["backups"][0]["name"].as_str().expect("a name").to_owned()
            });
        let gtid = server.values("SELECT @@gtid_binlog_pos");
        let text = std::fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto").join(page).with_extension("md"),
        );
        for line in text.expect(page).lines().filter_map(|line| line.trim().strip_prefix("$ cohort-backup "))
        {
            if line.contains("s3://") {
                continue;
            }
            count += 1;
            let target = format!("target-{count}");
            let command = line
                .replace("/mnt/backups/db1-new", "new")
                .replace("/mnt/backups/db1", repository)
                .replace("/etc/cohort/backup.key", key)
                .replace("/etc/cohort/", "")
                .replace("/var/lib/cohort", &target)
                .replace("/var/tmp/", &format!("scratch-{count}-"))
                .replace("2026-11-28T19:30:00Z", &time)
                .replace("0-1-4711", &gtid)
                .replace("NAME", &name)
                .replace("/backup/", "");
            if let Some((_, day)) = line.split_once("--from /backup/") {
                let parent = match day {
                    "sunday" => String::new(),
                    _ => format!(" INCREMENTAL FROM '{}'", place("sunday")),
                };
                server.execute(&format!("BACKUP SERVER TO '{}'{parent}", place(day)));
            }
            if line.contains("--table shop.orders --to") {
                server.execute("DROP TABLE shop.orders");
            }
            let done = run(folder.path(), &command);
            let done = done.unwrap_or_else(|error| panic!("{page}: {command}: {error}"));
            assert!(done.is_object(), "{page}: {command}: {done}");
            let is_whole = folder.path().join(&target).join("cohort.version").exists();
            if is_whole && !line.contains("--to-") {
                let restored = Server::start(&folder.path().join(&target));
                assert_eq!(orders(&restored), expected, "{page}: {command}");
            }
            if line.contains("--table") {
                assert_eq!(orders(&server), expected, "{page}: {command}");
            }
        }
    }
    assert!(count > 20, "{count}");
}

/// The contents of the kept backups.
const KEPT: &str = "SELECT COUNT(*), SUM(id), MIN(note), MAX(note) FROM kept.t";

/// Kept backups of a server: a repository whose second backup joins an incremental one, and a directory of
/// BACKUP SERVER. Each later version must restore both and serve the rows. `UPDATE_GOLDEN=1` writes them if
/// they do not exist.
#[test]
fn kept_backups_are_restored_and_served() {
    let folder = tempfile::tempdir().expect("a directory");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let (repository, packed) = (samples.join("server-1"), samples.join("directory-1.tar.gz"));
    let run = |arguments: &str| run(folder.path(), arguments);
    if !repository.exists() && std::env::var_os("UPDATE_GOLDEN").is_some() {
        let datadir = folder.path().join("data");
        Server::initialize(&datadir);
        let options = ["--no-defaults", "--log-bin=binlog", "--server-id=7", "--sys-schema=OFF"];
        let server = Server::start_with(&datadir, &options.map(str::to_owned));
        server.execute("CREATE DATABASE kept");
        server.execute("CREATE TABLE kept.t (id INT PRIMARY KEY, note VARCHAR(99), KEY (note))");
        server.execute("INSERT INTO kept.t SELECT seq, CONCAT('row ', seq) FROM kept.seq_1_to_1000");
        let place = repository.display();
        let account = format!("--host 127.0.0.1 --user root --port {}", server.account.port);
        run(&format!("init {place} --no-encryption")).expect("created");
        run(&format!("take {place} {account}")).expect("taken");
        server.execute("UPDATE kept.t SET note = 'changed' WHERE id < 100");
        server.execute("INSERT INTO kept.t VALUES (2000, 'after the full one')");
        run(&format!("take {place} {account} --incremental")).expect("taken");
        server.execute(&format!("BACKUP SERVER TO '{}'", folder.path().join("directory").display()));
        let made = Command::new("tar")
            .arg("-C")
            .arg(folder.path())
            .args(["--sparse", "--sort=name", "-czf"])
            .arg(&packed)
            .arg("directory")
            .status();
        assert!(made.expect("tar runs").success());
    }
    let listed = run(&format!("list {}", repository.display())).expect("listed");
    let backups = listed["backups"].as_array().expect("an array");
    assert_eq!(backups[1]["manifest"]["joined"], 1, "{listed}");
    run(&format!("verify {}", repository.display())).expect("whole");
    for (number, backup) in backups.iter().enumerate() {
        let name = backup["name"].as_str().expect("a name");
        run(&format!("restore {} --backup {name} --to restored{number}", repository.display()))
            .expect("restored");
    }
    let unpacked = Command::new("tar").arg("-C").arg(folder.path()).arg("-xzf").arg(&packed).status();
    assert!(unpacked.expect("tar runs").success());
    for (directory, rows) in [
        ("restored0", "1000 500500 row 1 row 999"),
        ("restored1", "1001 502500 after the full one row 999"),
        ("directory", "1001 502500 after the full one row 999"),
    ] {
        let server = Server::start(&folder.path().join(directory));
        assert_eq!(server.values(KEPT), rows, "{directory}");
        assert_eq!(server.values("CHECK TABLE kept.t"), "kept.t check status OK", "{directory}");
    }
}
