//! The program `cohortd` from an operator's view.

mod support;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use support::{Cohort, refused, run, wait_until};

#[test]
fn what_cannot_start_says_why_and_touches_nothing() {
    let scratch = tempfile::tempdir().expect("made");
    let datadir = scratch.path().join("data");
    let datadir_option = format!("--datadir={}", datadir.display());
    let socket = format!("--socket={}", scratch.path().join("socket").display());
    let (code, said) = refused(&[&datadir_option, "--no-such-option"]);
    assert_eq!((code, said.trim()), (2, "cohortd: unknown option '--no-such-option'"));
    assert_eq!(refused(&[&datadir_option, "--max-connections=many"]).0, 9);

    // A data directory that may be an unmounted volume is refused.
    let (code, said) = refused(&[&datadir_option, &socket, "--skip-networking"]);
    assert!(code == 1 && said.contains("Can't change dir to") && said.contains("Aborting"), "{said}");
    assert!(!datadir.exists());
    std::fs::create_dir(&datadir).expect("made");
    let (code, said) = refused(&[&datadir_option, &socket, "--skip-networking"]);
    assert!(code == 1 && said.contains("is empty") && said.contains("Aborting"), "{said}");
    assert_eq!(std::fs::read_dir(&datadir).expect("readable").count(), 0);
    let (code, said) = refused(&[&datadir_option, "--initialize"]);
    assert!(code == 0 && said.contains("is made"), "{said}");
    let (code, said) = refused(&[&datadir_option, "--initialize"]);
    assert!(code == 1 && said.contains("is initialized already"), "{said}");

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let before = std::fs::read_dir(&datadir).expect("readable").count();
    let (code, said) =
        refused(&[&datadir_option, &socket, &format!("--port={port}"), "--bind-address=127.0.0.1"]);
    assert!(code == 1 && said.contains(&format!("TCP/IP port {port}")), "{said}");
    assert_eq!(std::fs::read_dir(&datadir).expect("readable").count(), before);

    // If the dictionary cannot be read, passwords could not be checked against it, so the start is refused.
    let words = "--cracklib-password-check-dictionary=/nonexistent/words";
    let (code, said) = refused(&[&datadir_option, &socket, "--skip-networking", words]);
    assert!(code == 1 && said.contains("'/nonexistent/words'") && said.contains("Aborting"), "{said}");

    let foreign = scratch.path().join("foreign");
    std::fs::create_dir(&foreign).expect("made");
    std::fs::write(foreign.join("ibdata1"), "").expect("written");
    let (code, said) = refused(&[&format!("--datadir={}", foreign.display()), "--skip-networking", &socket]);
    assert!(code == 1 && said.contains("is not Cohort's"), "{said}");
    assert_eq!(std::fs::read_dir(&foreign).expect("readable").count(), 1);

    let running = Cohort::start(scratch.path(), "data", &[]);
    drop(running.client());
    let other_socket = format!("--socket={}", scratch.path().join("other").display());
    let (code, said) = refused(&[&datadir_option, "--skip-networking", &other_socket]);
    assert!(
        code == 1 && said.contains(&format!("in use by another server (process {})", running.pid())),
        "{said}"
    );
}

#[test]
fn data_survive_a_clean_stop_and_a_kill() {
    let scratch = tempfile::tempdir().expect("made");
    let mut running = Cohort::start(scratch.path(), "data", &[]);
    let mut client = running.client();
    client.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY, v VARCHAR(20))").expect("made");
    client.query_drop("INSERT INTO test.t VALUES (1, 'one')").expect("written");
    running.signal("-TERM");
    assert_eq!(running.exit_code(), Some(0));

    let mut running = Cohort::start(scratch.path(), "data", &[]);
    let mut client = running.client();
    client.query_drop("INSERT INTO test.t VALUES (2, 'two')").expect("written");
    running.signal("-KILL");
    assert_eq!(running.exit_code(), None);

    let log_file = scratch.path().join("error.log");
    let log_option = format!("--log-error={}", log_file.display());
    let mut running = Cohort::start(scratch.path(), "data", &[&log_option]);
    let mut client = running.client();
    let rows: Vec<(i32, String)> = client.query("SELECT id, v FROM test.t ORDER BY id").expect("rows");
    assert_eq!(rows, [(1, "one".to_owned()), (2, "two".to_owned())]);
    let files = |client: &mut Conn| client.query_iter("SHOW BINARY LOGS").expect("rows").count();
    let before = files(&mut client);
    running.signal("-HUP");
    let end = Instant::now() + Duration::from_secs(10);
    while files(&mut client) == before {
        assert!(Instant::now() < end, "the binary log was not rotated");
        std::thread::sleep(Duration::from_millis(10));
    }
    client.query_drop("SHUTDOWN").expect("allowed");
    assert_eq!(running.exit_code(), Some(0));
    let log = std::fs::read_to_string(log_file).expect("a log");
    assert!(log.contains("Recovered ") && log.contains(" MiB of log in "), "{log}");
    assert!(log.contains("ready for connections") && log.contains("Shutdown complete"), "{log}");
    assert!(!running.socket.exists());
}

#[test]
fn pages_in_memory_outlive_a_clean_stop() {
    let scratch = tempfile::tempdir().expect("made");
    let status = |client: &mut Conn, name: &str| -> String {
        let row: Option<(String, String)> =
            client.query_first(format!("SHOW STATUS LIKE '{name}'")).expect("told");
        row.expect("there is such a counter").1
    };
    let mut running = Cohort::start(scratch.path(), "data", &[]);
    let mut client = running.client();
    assert_eq!(status(&mut client, "Innodb_buffer_pool_load_status"), "");
    client.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY, v VARCHAR(1000))").expect("made");
    client
        .query_drop("INSERT INTO test.t SELECT seq, REPEAT('x', 900) FROM test.seq_1_to_2000")
        .expect("written");
    client.query_drop("SET GLOBAL innodb_buffer_pool_dump_now = ON").expect("an order");
    let flag: Option<u32> = client.query_first("SELECT @@innodb_buffer_pool_dump_now").expect("told");
    assert_eq!(flag, Some(0));
    let dumped = status(&mut client, "Innodb_buffer_pool_dump_status");
    assert!(dumped.starts_with("Buffer pool(s) dump completed at "), "{dumped}");
    client.query_drop("SET GLOBAL innodb_buffer_pool_dump_pct = 100").expect("set");
    running.signal("-TERM");
    assert_eq!(running.exit_code(), Some(0));

    let mut running = Cohort::start(scratch.path(), "data", &[]);
    let mut client = running.client();
    let end = Instant::now() + Duration::from_secs(60);
    while !status(&mut client, "Innodb_buffer_pool_load_status")
        .starts_with("Buffer pool(s) load completed at ")
    {
        assert!(Instant::now() < end, "{}", status(&mut client, "Innodb_buffer_pool_load_status"));
        std::thread::sleep(Duration::from_millis(10));
    }
    let reads = status(&mut client, "Innodb_buffer_pool_reads");
    assert!(reads.parse::<u32>().expect("a number") > 100, "{reads}");
    let found: Option<u32> =
        client.query_first("SELECT COUNT(*) FROM test.t WHERE v LIKE 'x%'").expect("read");
    assert_eq!(found, Some(2000));
    assert_eq!(status(&mut client, "Innodb_buffer_pool_reads"), reads, "nothing had to be read");
    running.signal("-TERM");
    assert_eq!(running.exit_code(), Some(0));

    // A damaged dump file is ignored, and with loading disabled it is not read.
    std::fs::write(running.datadir.join("ib_buffer_pool"), "of another server\n1,2\n").expect("written");
    let mut running = Cohort::start(scratch.path(), "data", &[]);
    let mut client = running.client();
    let told = loop {
        let told = status(&mut client, "Innodb_buffer_pool_load_status");
        if !told.is_empty() && !told.starts_with("Loaded") {
            break told;
        }
        assert!(Instant::now() < end, "{told}");
    };
    assert!(told.contains("damaged"), "{told}");
    let found: Option<u32> = client.query_first("SELECT COUNT(*) FROM test.t").expect("read");
    assert_eq!(found, Some(2000));
    running.signal("-TERM");
    assert_eq!(running.exit_code(), Some(0));
    let mut running = Cohort::start(scratch.path(), "data", &["--innodb-buffer-pool-load-at-startup=OFF"]);
    assert_eq!(status(&mut running.client(), "Innodb_buffer_pool_load_status"), "");
    running.stop();
}

/// A device that is always full simulates a full disk.
#[test]
fn a_server_comes_up_without_room_for_its_pid_file() {
    let scratch = tempfile::tempdir().expect("made");
    let mut server = Cohort::start(scratch.path(), "data", &["--pid-file=/dev/full"]);
    assert_eq!(server.client().query_first::<u32, _>("SELECT 1").expect("answers"), Some(1));
    server.stop();
    assert!(Path::new("/dev/full").exists(), "what the server did not write it does not remove");
}

#[test]
fn kill_ends_statements_that_wait_and_connections_that_sleep() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &[]);
    let mut holder = running.client();
    holder.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY, v INT)").expect("made");
    holder.query_drop("INSERT INTO test.t VALUES (1, 1)").expect("written");
    holder.query_drop("BEGIN").expect("begun");
    holder.query_drop("UPDATE test.t SET v = 2 WHERE id = 1").expect("locked");
    for (kill, code) in [("KILL QUERY", 1317), ("KILL", 1927)] {
        let mut waiter = running.client();
        let id = waiter.connection_id();
        let waits = std::thread::spawn(move || waiter.query_drop("UPDATE test.t SET v = 3 WHERE id = 1"));
        std::thread::sleep(Duration::from_millis(200));
        holder.query_drop(format!("{kill} {id}")).expect("killed");
        let error = waits.join().expect("no panic").expect_err("killed").to_string();
        assert!(error.contains(&code.to_string()), "{kill}: {error}");
    }
    let mut sleeper = running.client();
    holder.query_drop(format!("KILL {}", sleeper.connection_id())).expect("killed");
    let begun = Instant::now();
    assert!(sleeper.query_drop("SELECT 1").is_err());
    assert!(begun.elapsed() < Duration::from_secs(5));
    let error = holder.query_drop("KILL 999999").expect_err("nobody").to_string();
    assert!(error.contains("1094"), "{error}");
    holder.query_drop("COMMIT").expect("committed");
}

#[test]
fn a_client_that_goes_rolls_back_and_gives_its_locks_back() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &[]);
    let mut client = running.client();
    client.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY, v INT)").expect("made");
    client.query_drop("INSERT INTO test.t VALUES (1, 1)").expect("written");
    let mut gone = running.client();
    gone.query_drop("BEGIN").expect("begun");
    gone.query_drop("UPDATE test.t SET v = 2 WHERE id = 1").expect("locked");
    drop(gone);
    client.query_drop("SET innodb_lock_wait_timeout = 10").expect("set");
    client.query_drop("UPDATE test.t SET v = v + 10 WHERE id = 1").expect("free");
    assert_eq!(client.query_first("SELECT v FROM test.t").expect("a row"), Some(11));
}

#[test]
fn statements_with_parameters_of_every_type_come_back() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &[]);
    let mut client = running.client();
    let columns = "id INT PRIMARY KEY, a TINYINT, b BIGINT UNSIGNED, c DOUBLE, d DECIMAL(10,2), e VARCHAR(20), \
                   f BLOB, g DATE, h DATETIME(6), i TIME, j YEAR, k BIT(9), l ENUM('x','y'), m FLOAT";
    client.query_drop(format!("CREATE TABLE test.t ({columns})")).expect("made");
    let insert = "INSERT INTO test.t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let values: Vec<mysql::Value> = vec![
        1.into(),
        (-5).into(),
        u64::MAX.into(),
        1.5.into(),
        "12.34".into(),
        "grün".into(),
        vec![0u8, 255].into(),
        mysql::Value::Date(2026, 1, 2, 0, 0, 0, 0),
        mysql::Value::Date(2026, 1, 2, 3, 4, 5, 600_000),
        mysql::Value::Time(true, 1, 2, 3, 4, 0),
        2026.into(),
        257.into(),
        "y".into(),
        2.5.into(),
    ];
    client.exec_drop(insert, values.clone()).expect("written");
    let row: mysql::Row =
        client.exec_first("SELECT * FROM test.t WHERE id = ?", (1,)).expect("a row").expect("one");
    let got = row.unwrap();
    assert_eq!(got[1], mysql::Value::Int(-5));
    assert_eq!(got[2], mysql::Value::UInt(u64::MAX));
    assert_eq!(got[3], mysql::Value::Double(1.5));
    assert_eq!(got[4], mysql::Value::Bytes(b"12.34".to_vec()));
    assert_eq!(got[5], mysql::Value::Bytes("grün".into()));
    assert_eq!(got[6..10], values[6..10]);
    assert_eq!(got[11], mysql::Value::Bytes(vec![1, 1]));
    assert_eq!(got[12], mysql::Value::Bytes(b"y".to_vec()));
    assert_eq!(got[13], mysql::Value::Float(2.5));
    client.query_drop("SET NAMES latin1").expect("set");
    let text: Vec<u8> = client.query_first("SELECT e FROM test.t").expect("a row").expect("one");
    assert_eq!(text, b"gr\xfcn");
}

/// Found by reading: SIGUSR1 and SIGUSR2 ended the server without a message.
#[test]
fn signals_without_a_meaning_are_told_and_end_nothing() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &[]);
    for signal in ["USR1", "USR2"] {
        running.signal(&format!("-{signal}"));
        wait_until("it is told", || running.log().contains(&format!("SIG{signal} was received")));
    }
    drop(running.client());
}

#[test]
fn the_service_manager_and_the_log_are_told_how_the_start_goes() {
    let scratch = tempfile::tempdir().expect("made");
    let path = scratch.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("bound");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let log = scratch.path().join("log");
    let in_scratch = |option: &str, name: &str| format!("--{option}={}", scratch.path().join(name).display());
    let made = run(
        env!("CARGO_BIN_EXE_cohortd"),
        &["--no-defaults", "--initialize", &in_scratch("datadir", "data")],
    );
    assert!(made.status.success());
    let mut server = Command::new(env!("CARGO_BIN_EXE_cohortd"))
        .args(["--no-defaults", "--skip-networking", &in_scratch("datadir", "data")])
        .args([in_scratch("socket", "socket"), in_scratch("log-error", "log")])
        .env("NOTIFY_SOCKET", &path)
        .spawn()
        .expect("started");
    let wait_for = |wanted: &str| {
        let mut buffer = [0; 200];
        loop {
            let n = manager.recv(&mut buffer).expect("a message");
            if buffer[..n].starts_with(wanted.as_bytes()) {
                return;
            }
        }
    };
    wait_for("EXTEND_TIMEOUT_USEC=");
    wait_for("READY=1");
    assert!(run("kill", &["-TERM", &server.id().to_string()]).status.success());
    wait_for("STOPPING=1");
    assert!(server.wait().expect("ended").success());
    let said = std::fs::read_to_string(log).expect("a log");
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    assert!(at("Opening and recovering '") < at("The start took "), "{said}");
    assert!(at(" s: storage ") < at("ready for connections"), "{said}");
}

/// Found by reading: all users of the host could read the data.
#[test]
fn files_are_for_the_servers_user_and_group_alone() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &["--log-bin=master"]);
    running.client().query_drop("CREATE TABLE test.t (id INT PRIMARY KEY)").expect("made");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&running.datadir), 0o700);
    let mut folders = vec![running.datadir.clone()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("readable") {
            let path = entry.expect("there").path();
            assert_eq!(mode(&path) & 0o007, 0, "{}", path.display());
            seen += 1;
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    assert!(seen > 3);
}

/// Found by reading: only SIGHUP reopened a moved error log.
#[test]
fn flush_logs_follows_an_error_log_that_was_moved() {
    let scratch = tempfile::tempdir().expect("made");
    let (log, moved) = (scratch.path().join("error.log"), scratch.path().join("error.log.1"));
    let running = Cohort::start(scratch.path(), "data", &[&format!("--log-error={}", log.display())]);
    let mut client = running.client();
    for (n, statement) in ["FLUSH LOGS", "FLUSH ERROR LOGS"].into_iter().enumerate() {
        std::fs::rename(&log, &moved).expect("moved");
        client.query_drop(statement).expect("flushed");
        let name = format!("nobody{n}");
        assert!(Conn::new(running.options().user(Some(name.clone()))).is_err());
        wait_until(statement, || std::fs::read_to_string(&log).is_ok_and(|said| said.contains(&name)));
    }
}

#[test]
fn statements_are_logged_to_files_that_are_made_anew_when_they_were_moved() {
    let scratch = tempfile::tempdir().expect("made");
    let options =
        ["--general-log=1", "--general-log-file=all.log", "--slow-query-log=1", "--long-query-time=0.1"];
    let running = Cohort::start(scratch.path(), "data", &options);
    let mut client = running.client();
    let data = scratch.path().join("data");
    let (general, moved) = (data.join("all.log"), data.join("all.log.1"));
    let text = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    client.query_drop("SELECT 'early'").expect("runs");
    client.query_drop("CREATE USER u@localhost IDENTIFIED BY 'hush'").expect("runs");
    std::fs::rename(&general, &moved).expect("moved");
    client.query_drop("SELECT 'still there'").expect("runs");
    client.query_drop("FLUSH GENERAL LOGS").expect("runs");
    client.query_drop("SELECT 'afterwards'").expect("runs");
    let (old, new) = (text(&moved), text(&general));
    assert!(old.contains("Query\tSELECT 'early'\n") && old.contains("'still there'"), "{old}");
    assert!(old.contains("IDENTIFIED BY '<secret>'") && !old.contains("hush"), "{old}");
    assert!(new.contains("SELECT 'afterwards'") && !new.contains("early"), "{new}");
    client.query_drop("SELECT SLEEP(0.3)").expect("runs");
    let found = std::fs::read_dir(&data).expect("readable").filter_map(Result::ok);
    let slow = found.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with("-slow.log"));
    let slow = text(&slow.expect("a slow log was made"));
    assert!(slow.contains("SELECT SLEEP(0.3);\n") && !slow.contains("early"), "{slow}");
}
