//! Follows docs/moving.md, docs/backup.md and docs/tutorial.md line by line, the first with concurrent writes
//! from applications.

mod support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use mysql::prelude::Queryable;
use support::{Cohort, Maria, free_port};

const PAGE: &str = include_str!("../../../docs/moving.md");
const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");
const BACKUP: &str = include_str!("../../../docs/backup.md");

/// Writes numbers until `stop` is set or a write is refused. Returns the acknowledged numbers.
fn write(
    mut client: mysql::Conn,
    next: &Arc<AtomicU32>,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    let (next, stop) = (Arc::clone(next), Arc::clone(stop));
    std::thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            let n = next.load(Ordering::SeqCst);
            if client
                .query_drop(format!("INSERT INTO shop.t VALUES ({n}, REPEAT('x', {}))", n % 300))
                .is_err()
            {
                return;
            }
            next.store(n + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
    })
}

#[test]
fn a_server_moves_to_cohort_and_back_by_the_page() {
    let old = Maria::source(&["--log-slave-updates"]);
    let new = Cohort::new(&["--server-id=7", "--log-slave-updates"]);
    // Applications use a separate account, which read_only blocks.
    let account = "CREATE USER app@'%' IDENTIFIED BY 'x'; GRANT SELECT, INSERT ON shop.* TO app@'%'";
    old.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, b TEXT); INSERT INTO shop.t VALUES (0, '')");
    // A new data directory has anonymous accounts for this host, which take precedence over named accounts
    // for any host.
    old.sql("SET sql_log_bin = 0; DELETE FROM mysql.global_priv WHERE User = ''; FLUSH PRIVILEGES");
    old.sql(account);
    new.sql(account);
    let app = |port: u16| {
        let options = mysql::OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .user(Some("app"))
            .pass(Some("x"))
            .prefer_socket(false);
        mysql::Conn::new(options).expect("an account")
    };
    let (next, stop) = (Arc::new(AtomicU32::new(1)), Arc::new(AtomicBool::new(false)));
    let mut writer = write(app(old.port), &next, &stop);
    let folder = tempfile::tempdir().expect("a folder");
    let (mut position, mut commands) = (String::new(), 0);
    for line in PAGE.lines().filter_map(|line| line.strip_prefix("    ")) {
        let line = line.replace("OLDPORT", &old.port.to_string()).replace("NEWPORT", &new.port.to_string());
        let line = line.replace("'POSITION'", &format!("'{position}'"));
        let Some((who, command)) = line.split_once(' ') else { panic!("{line}") };
        commands += 1;
        match who {
            "$" => {
                let address = |port: u16| format!("--no-defaults --host=127.0.0.1 --user=root --port={port}");
                let shell = command.replace("OLD", &address(old.port)).replace("NEW", &address(new.port));
                let output = Command::new("sh").args(["-c", &shell]).current_dir(folder.path()).output();
                let output = output.expect("a shell");
                assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
            }
            "old>" | "new>" => {
                let ask = |sql: &str| if who == "old>" { old.sql(sql) } else { new.sql(sql) };
                if command.contains("read_only = 1") {
                    std::thread::sleep(Duration::from_millis(500));
                    ask(command);
                    // The write is refused. The applications switch to the other server once it has received
                    // everything.
                    writer.join().expect("no panic");
                    writer = std::thread::spawn(|| ());
                } else if let Some(question) = command.strip_prefix("ZERO = ") {
                    assert_eq!(ask(question), "0", "{question}");
                } else if let Some(question) = command.strip_prefix("POSITION = ") {
                    position = ask(question);
                } else if command.starts_with("SELECT MASTER_GTID_WAIT") {
                    assert_eq!(ask(command), "0", "{command}: {}\n{}", old.status(), new.replica_status());
                } else {
                    ask(command);
                }
                if command == "RESET SLAVE ALL" {
                    let count = next.load(Ordering::SeqCst).to_string();
                    assert_eq!(ask("SELECT COUNT(*) FROM shop.t"), count, "every acknowledged row is there");
                    if who == "old>" {
                        old.sql("SET GLOBAL read_only = 0");
                    }
                    writer = write(app(if who == "old>" { old.port } else { new.port }), &next, &stop);
                }
            }
            other => panic!("{other}"),
        }
    }
    assert!(commands > 20, "the page has its lines");
    std::thread::sleep(Duration::from_millis(500));
    stop.store(true, Ordering::SeqCst);
    writer.join().expect("no panic");
    new.wait_for(&old.sql("SELECT @@gtid_binlog_pos"));
    let rows = "SELECT COUNT(*), SUM(id), SUM(LENGTH(b)) FROM shop.t";
    assert_eq!(old.sql(rows), new.sql(rows));
    assert_eq!(old.sql("SELECT COUNT(*) FROM shop.t"), next.load(Ordering::SeqCst).to_string());
}

/// Runs a shell command line.
fn shell(line: &str, folder: &std::path::Path) -> String {
    let output = Command::new("sh").args(["-c", line]).current_dir(folder).output().expect("a shell");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_server_is_backed_up_and_restored_by_the_page() {
    let server = Cohort::new(&["--server-id=1"]);
    let new = Cohort::new(&["--server-id=2"]);
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, b VARBINARY(9), d DECIMAL(9,2))",
    );
    server.sql("INSERT INTO shop.orders VALUES (1, x'FF00', 1.5), (2, 'two', NULL)");
    server.sql(
        "CREATE ROLE clerk; GRANT SELECT, INSERT ON shop.* TO clerk; CREATE USER app@'%' IDENTIFIED BY 'x'",
    );
    server.sql("GRANT clerk TO app@'%'; SET DEFAULT ROLE clerk FOR app@'%'");
    let folder = tempfile::tempdir().expect("a folder");
    let address = |port: u16| format!("--no-defaults --host=127.0.0.1 --user=root --port={port}");
    let (mut file, mut start, mut stop) = (String::new(), String::new(), String::new());
    let (mut checksums, mut commands) = (Vec::new(), 0);
    for line in BACKUP.lines().filter_map(|line| line.strip_prefix("    ")) {
        let (place, command) = line.split_once(' ').expect("a place and a command");
        let command = command.replace("FILE", &file).replace("START", &start).replace("STOP", &stop);
        commands += 1;
        match place {
            "$" if command.starts_with("grep") => {
                // -- CHANGE MASTER TO MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=2196;
                let found = shell("grep -m1 'MASTER_LOG_FILE' full.sql", folder.path());
                let mut parts = found.split(['\'', '=', ';']).map(str::trim).filter(|part| !part.is_empty());
                file = parts.nth(1).expect("a file").to_owned();
                start = parts.nth(1).expect("a position").to_owned();
                server.sql("INSERT INTO shop.orders VALUES (3, 'three', 3)");
                server.sql("UPDATE shop.orders SET d = 2.25 WHERE id = 2");
                server.sql("DROP TABLE shop.orders");
            }
            "$" => {
                let line =
                    command.replace("SERVER", &address(server.port)).replace("NEW", &address(new.port));
                shell(&line, folder.path());
            }
            "server>" | "new>" => {
                let asked = if place == "server>" { &server } else { &new };
                if let Some(question) = command.strip_prefix("CHECKSUM = ") {
                    checksums.push(asked.sql(question));
                } else {
                    let events = asked.sql(&command);
                    let events: Vec<Vec<&str>> =
                        events.lines().map(|event| event.split('\t').collect()).collect();
                    let drop =
                        events.iter().position(|event| event[5].contains("DROP TABLE")).expect("there");
                    stop = events[drop - 1][1].to_owned();
                }
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(commands, 9, "the page has its lines");
    assert!(checksums.len() == 2 && checksums[0] == checksums[1], "{checksums:?}");
    let rows = new.sql("SELECT id, HEX(b), d FROM shop.orders ORDER BY id");
    assert_eq!(rows, "1\tFF00\t1.50\n2\t74776F\t2.25\n3\t7468726565\t3.00");
    let grants =
        |server: &Cohort| server.sql("SHOW GRANTS FOR app@'%'") + &server.sql("SHOW GRANTS FOR clerk");
    assert_eq!(grants(&new), grants(&server));
}

/// Kills the server of the tutorial, whose process id is in its data directory.
struct Stopped<'f>(&'f std::path::Path);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let line = "test ! -e data/cohort.lock || kill -9 $(cat data/cohort.lock)";
        // If the page is correct, the server has already ended.
        let _ = Command::new("sh").args(["-c", line]).current_dir(self.0).output();
    }
}

#[test]
fn a_first_server_is_run_by_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = free_port();
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_cohortd")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let _stopped = Stopped(folder.path());
    let (mut root_password, mut app_password) = (None, None);
    let (mut answers, mut commands) = (Vec::new(), 0);
    for line in TUTORIAL.lines().filter_map(|line| line.strip_prefix("    ")) {
        let (who, command) = line.split_once(' ').expect("a place and a command");
        commands += 1;
        if who == "$" {
            let command = command.replace("PORT", &port.to_string());
            // The server would keep the shell's output open.
            let none = std::process::Stdio::null;
            let ended = Command::new("timeout")
                .args(["60", "sh", "-c", &command])
                .current_dir(folder.path())
                .env("PATH", &path)
                .stdin(none())
                .stdout(none())
                .stderr(none())
                .status();
            assert!(ended.expect("a shell").success(), "{command}");
            continue;
        }
        let password: &Option<String> = if who == "root>" { &root_password } else { &app_password };
        let options = mysql::OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .user(Some(who.trim_end_matches('>')))
            .pass(password.clone())
            .prefer_socket(false);
        let mut client = mysql::Conn::new(options).expect("an account of the page");
        let (code, statement) = match command.strip_prefix("ERROR ").and_then(|rest| rest.split_once(" = ")) {
            Some((code, statement)) => (code.parse().expect("a number"), statement),
            None => (0, command),
        };
        match client.query_iter(statement) {
            Ok(rows) => {
                assert_eq!(code, 0, "{statement}");
                let rows = rows.map(|row| row.expect("a row").unwrap());
                let shown = |value: &mysql::Value| value.as_sql(true).trim_matches('\'').to_owned();
                answers.extend(rows.map(|row| row.iter().map(shown).collect::<Vec<_>>().join(" ")));
            }
            Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, code, "{statement}: {error}"),
            Err(error) => panic!("{statement}: {error}"),
        }
        let password = statement.split_once("IDENTIFIED BY '").and_then(|(_, rest)| rest.strip_suffix('\''));
        match (password, statement.contains(" app@")) {
            (Some(password), true) => app_password = Some(password.to_owned()),
            (Some(password), false) => root_password = Some(password.to_owned()),
            (None, _) => {}
        }
    }
    assert_eq!(commands, 18, "the page has its lines");
    assert!(answers.contains(&"a lamp 39.00".to_owned()), "{answers:?}");
    assert_eq!(answers.last().map(String::as_str), Some("2"), "rows survive the crash");
}
