//! The program `cohortd` from an operator's view.

mod support;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cohort_commit::Row;
use cohort_server::datadir::DatadirError;
use mysql::Conn;
use mysql::prelude::Queryable;
use support::{Cohort, refused, run, wait_until};

#[test]
fn a_refused_start_gives_its_reason_and_changes_no_file() {
    let scratch = tempfile::tempdir().expect("made");
    let datadir = scratch.path().join("data");
    let datadir_option = format!("--datadir={}", datadir.display());
    let socket = format!("--socket={}", scratch.path().join("socket").display());
    let (code, said) = refused(&[&datadir_option, "--no-such-option"]);
    // As every line of the error log: time, thread, level, program.
    let lines: Vec<&str> =
        said.lines().filter_map(|line| Some(line.split_once(" 0 [ERROR] cohortd: ")?.1)).collect();
    assert_eq!((code, lines.as_slice()), (2, ["unknown option '--no-such-option'", "Aborting"].as_slice()));
    assert!(said.starts_with("20") && said.lines().count() == 2, "{said}");
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
    assert!(code == 0 && said.contains("was created"), "{said}");
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

/// Regression test: the program panicked when `head` had read enough.
#[test]
fn a_reader_of_the_help_text_may_end_early() {
    let line = format!("'{}' --help --verbose | head -1", env!("CARGO_BIN_EXE_cohortd"));
    let output = run("sh", &["-c", &line]);
    assert!(output.stdout.starts_with(b"cohortd  Ver "));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Starts that must fail: options, exit code, and the parts of the message that explain the mistake and its
/// fix. `DIR` stands for a scratch directory with a data directory `data`; `PORT` for a port in use.
const MISTAKES: &[(&str, i32, &[&str])] = &[
    // The data directory.
    (
        "--datadir=DIR/missing",
        1,
        &["Can't change dir to 'DIR/missing'", "mounted", "cohortd --initialize --datadir='DIR/missing'"],
    ),
    (
        "--datadir=DIR/empty",
        1,
        &["'DIR/empty' is empty", "mounted", "cohortd --initialize --datadir='DIR/empty'"],
    ),
    ("--datadir=DIR/data --initialize", 1, &["is initialized already; nothing was changed", "--datadir"]),
    (
        "--datadir=DIR/other --initialize",
        1,
        &["is not Cohort's: it holds 'file'", "new directory with --datadir"],
    ),
    ("--datadir=DIR/other", 1, &["is not Cohort's: it holds 'file'", "new directory with --datadir"]),
    ("--datadir=DIR/mariadb", 1, &["one of MariaDB", "copy the tables", "moving.md"]),
    (
        "--datadir=DIR/lost",
        1,
        &["has lost its file 'cohort.version'", "echo 'cohort 1' > 'DIR/lost/cohort.version'"],
    ),
    ("--datadir=DIR/newer", 1, &["format 'cohort 9'", "'cohort 1'", "start the version that wrote it"]),
    ("--datadir=DIR/data --log-layout=separate", 1, &["OtherLayout", "--convert-log-layout"]),
    ("--datadir=DIR/used", 1, &["in use by another server (process ", "--datadir"]),
    ("--datadir=DIR/data --apply-archive=DIR/x", 1, &["'DIR/data' is not a restored backup"]),
    (
        "--datadir=DIR/data --apply-archive=DIR/x --stop-time=yesterday",
        1,
        &["--stop-time=yesterday is no time", "YYYY-MM-DD"],
    ),
    (
        "--datadir=DIR/data --apply-archive=DIR/x --stop-time=@1 --stop-gtid=0-1-1",
        1,
        &["--stop-time and --stop-gtid exclude each other"],
    ),
    // Addresses.
    ("--datadir=DIR/data --port=PORT", 1, &["TCP/IP port PORT", "already in use", "--port"]),
    ("--datadir=DIR/data --bind-address=192.0.2.1", 1, &["'192.0.2.1'", "No interface", "--bind-address"]),
    ("--datadir=DIR/data --bind-address=nowhere.invalid", 1, &["'nowhere.invalid'"]),
    (
        "--datadir=DIR/data --skip-networking --socket=DIR/no/socket",
        1,
        &["'DIR/no/socket'", "does not exist", "--socket"],
    ),
    ("--datadir=DIR/data --skip-networking --socket=DIR/used.sock", 1, &["'DIR/used.sock'", "--socket"]),
    ("--datadir=DIR/data --metrics-port=PORT", 1, &["metrics endpoint on port PORT", "--metrics-port"]),
    // Files.
    (
        "--datadir=DIR/data --log-error=DIR/no/log",
        1,
        &["Can't open the error log 'DIR/no/log.err'", "--log-error"],
    ),
    ("--datadir=DIR/data --pid-file=DIR/no/pid", 1, &["Can't write the pid file 'DIR/no/pid'", "--pid-file"]),
    (
        "--datadir=DIR/data --pid-file=DIR/used.pid",
        1,
        &["'DIR/used.pid'", "belongs to the running server with process ID", "--pid-file"],
    ),
    ("--datadir=DIR/data --tmpdir=DIR/no", 1, &["no directory 'DIR/no' for temporary files", "--tmpdir"]),
    ("--datadir=DIR/data --init-file=DIR/no.sql", 1, &["Can't read 'DIR/no.sql' of init_file"]),
    ("--datadir=DIR/data --log-bin=other", 1, &["binlog", "log-bin"]),
    (
        "--datadir=DIR/data --cracklib-password-check-dictionary=DIR/no",
        1,
        &["cracklib_password_check_dictionary, 'DIR/no'"],
    ),
    // The user.
    ("--datadir=DIR/data --user=no-such-user", 1, &["no user 'no-such-user'", "useradd", "--user"]),
    // TLS.
    ("--datadir=DIR/data --ssl-cert=DIR/no.pem --ssl-key=DIR/no.pem", 1, &["SSL error", "DIR/no.pem"]),
    ("--datadir=DIR/data --ssl-key=DIR/file.pem", 1, &["SSL error", "DIR/file.pem", "no certificate in it"]),
    ("--datadir=DIR/data --ssl-cert=DIR/file.pem --ssl-key=DIR/file.pem", 1, &["SSL error", "DIR/file.pem"]),
    (
        "--datadir=DIR/data --ssl-cert=DIR/version1.pem --ssl-key=DIR/other.pem",
        1,
        &["SSL error", "DIR/other.pem", "does not belong to the certificate of 'DIR/version1.pem'"],
    ),
    ("--datadir=DIR/data --ssl-cipher=none", 1, &["SSL error", "cipher"]),
    // Options.
    ("--prot=3307", 7, &["unknown variable 'prot=3307'", "did you mean --port?"]),
    ("--skip-networkin", 2, &["unknown option '--skip-networkin'"]),
    ("--max-connections=abc", 9, &["'max_connections'", "'abc'", "K, M, G, T, P, E"]),
    ("--max-connections=10Q", 9, &["'max_connections'", "Legal suffix characters"]),
    ("--binlog-format=rows", 13, &["'binlog_format'", "'rows'", "Values: MIXED, STATEMENT, ROW"]),
    ("--sql-mode=STRICT", 13, &["'sql_mode'", "'STRICT'", "STRICT_ALL_TABLES"]),
    ("--port", 5, &["option '--port' requires an argument"]),
    ("-h", 5, &["option '-h' requires an argument", "the data directory", "--help"]),
    ("--sock=DIR/socket", 7, &["unknown variable 'sock="]),
    ("--bootstrap", 2, &["use --initialize with --init-file"]),
    ("--daemonize", 2, &["run it as a service"]),
    ("--encrypt-binlog", 13, &["--encrypt-binlog=1 is refused", "not encrypted"]),
    ("--lower-case-table-names=1", 13, &["--lower-case-table-names=1 is refused"]),
    ("serve", 1, &["Too many arguments"]),
];

/// A version 1 certificate, as `openssl x509 -req` creates it, and the key of another certificate.
const VERSION_1: &str = "-----BEGIN CERTIFICATE-----
MIIBFTCBvQIUN5DRpYpZunVgFXKYogr49Ce9klMwCgYIKoZIzj0EAwIwDTELMAkG
A1UEAwwCdjEwIBcNMjYxMTI4MDkxNjI0WhgPMjEyNjExMDQwOTE2MjRaMA0xCzAJ
BgNVBAMMAnYxMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+yowxsKNUe3hg9c1
1WymdJ+JU8QhVz4FobkigoHpMgJfTR1/CR22OKnaOW8QFXLxfpyWtZVfxGkpEWFM
488ApDAKBggqhkjOPQQDAgNHADBEAiBvLAbDGsvpuu3ALqDrzYhBWCwFdP/BSt9f
6cv5PvL7pAIgCNlo6NT67VlojJhFKdl8z2SnzsT71PjOE8wLwhvjGkU=
-----END CERTIFICATE-----
";
const OTHER_KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgT6PNd+qrmTJyZD9C
xqORhlSazoz2DOVfkYBGLWkmIMShRANCAASQ3hbP9y/myMyxYp27K9ie9bBIM5mH
iuoHxSlhu7FrF8cFAoyRQvSgHZUglkmQIPfSa3vEiRNtLq599ju9M+cn
-----END PRIVATE KEY-----
";

/// Invalid option files, with the exit code and parts of the message.
const WRONG_FILES: &[(&str, i32, &[&str])] = &[
    ("port = 3307\n", 1, &["option without preceding group", "FILE at line: 1"]),
    ("[cohortd\nport = 3307\n", 1, &["Wrong group definition", "FILE at line 1"]),
    ("[cohortd]\n!include DIR/no.cnf\n", 1, &["Could not open", "DIR/no.cnf"]),
    ("[cohortd]\n!includes DIR\n", 1, &["Wrong '!' directive", "FILE at line 2"]),
    ("[cohortd]\nthis is not valid\n", 2, &["unknown option '--this is not valid'", "in FILE at line 2"]),
    ("[cohortd]\n\nmax_conections = 9\n", 7, &["did you mean --max-connections?", "in FILE at line 3"]),
    ("[mysqld]\nmax_connections = many\n", 9, &["'many'", "in FILE at line 2"]),
    ("[mysqld]\nbinlog_format = rows\n", 13, &["Values: ", "in FILE at line 2"]),
];

#[test]
fn a_mistake_is_answered_by_what_is_wrong_and_what_to_do() {
    let scratch = tempfile::tempdir().expect("made");
    let dir = scratch.path().display().to_string();
    let file = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    for (name, text) in [
        ("other/file", ""),
        ("mariadb/ibdata1", ""),
        ("lost/catalog", ""),
        ("lost/log", ""),
        ("newer/cohort.version", "cohort 9\n"),
        ("newer/catalog", ""),
        ("file.pem", "no certificate\n"),
        ("version1.pem", VERSION_1),
        ("other.pem", OTHER_KEY),
    ] {
        file(name, text);
    }
    std::fs::create_dir(scratch.path().join("empty")).expect("made");
    Cohort::start(scratch.path(), "data", &[]).stop();
    let pid_file = scratch.path().join("used.pid");
    let used = Cohort::start(scratch.path(), "used", &[&format!("--pid-file={}", pid_file.display())]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let mut wrong = Vec::new();
    let mut check = |what: &str, (code, said): (i32, String), expected: i32, parts: &[&str], file: &str| {
        let parts =
            parts.iter().map(|part| part.replace("DIR", &dir).replace("PORT", &port).replace("FILE", file));
        let missing: Vec<String> = parts.filter(|part| !said.contains(part)).collect();
        if code != expected || !missing.is_empty() {
            wrong.push(format!("{what}: exit code {code}, {missing:?} is not in: {said}"));
        }
    };
    for (options, code, parts) in MISTAKES {
        let options = options.replace("DIR", &dir).replace("PORT", &port);
        let mut arguments: Vec<String> = options.split(' ').map(str::to_owned).collect();
        if !options.contains("--socket") {
            arguments.push(format!("--socket={dir}/socket"));
        }
        if !options.contains("--port") && !options.contains("--bind-address") {
            arguments.push("--skip-networking".to_owned());
        }
        if !options.contains("--bind-address") {
            arguments.push("--bind-address=127.0.0.1".to_owned());
        }
        if options == "--port" || options == "-h" {
            // A missing value is an error only at the end of the arguments.
            arguments.rotate_left(1);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        check(&options, refused(&arguments), *code, parts, "");
    }
    let path = format!("{dir}/my.cnf");
    for (text, code, parts) in WRONG_FILES {
        file("my.cnf", &text.replace("DIR", &dir));
        let given = format!("--defaults-file={path}");
        let output = run(env!("CARGO_BIN_EXE_cohortd"), &[&given, "--validate-config"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        check(text, (output.status.code().expect("ended"), said), *code, parts, &path);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Regression test: another server with the same pid file overwrote and removed it.
    let kept = std::fs::read_to_string(&pid_file).expect("the file of the running server");
    assert_eq!(kept.trim(), used.pid().to_string());
    drop(used);
}

/// `init_file` runs at each start and at the end of `--initialize`.
#[test]
fn statements_of_a_file_run_before_clients_do() {
    let scratch = tempfile::tempdir().expect("made");
    let file = scratch.path().join("first.sql");
    let option = format!("--init-file={}", file.display());
    let datadir = format!("--datadir={}", scratch.path().join("data").display());
    std::fs::write(&file, "CREATE DATABASE shop;\n-- a comment; it ends here\nSELECT nonsense;\nSELECT 1;\n")
        .expect("written");
    let (code, said) = refused(&["--initialize", &option, &datadir]);
    assert!(code == 1 && said.contains("error 1054") && said.contains("Remove what is in"), "{said}");
    std::fs::remove_dir_all(scratch.path().join("data")).expect("removed");
    let text = "CREATE DATABASE shop;\nCREATE TABLE shop.t (a INT PRIMARY KEY);\n\
                CREATE USER app@localhost IDENTIFIED BY 'it''s';\nGRANT ALL ON shop.* TO app@localhost;\n# The end\n";
    std::fs::write(&file, text).expect("written");
    let (code, said) = refused(&["--initialize", &option, &datadir]);
    assert_eq!(code, 0, "{said}");
    // Each start runs the file up to its first error, and then serves clients.
    std::fs::write(
        &file,
        "INSERT INTO shop.t SELECT COUNT(*) FROM shop.t; INSERT INTO missing VALUES (1); DELETE FROM shop.t",
    )
    .expect("written");
    let mut server = Cohort::start(scratch.path(), "data", &[&option]);
    assert!(server.log().contains("of init_file ended early: error 1046"), "{}", server.log());
    server.kill_and_restart();
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.t"), "2");
    assert_eq!(server.sql("SHOW GRANTS FOR app@localhost").lines().count(), 2);
    server.stop();
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
            client.query_first(format!("SHOW STATUS LIKE '{name}'")).expect("answered");
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
    let flag: Option<u32> = client.query_first("SELECT @@innodb_buffer_pool_dump_now").expect("answered");
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
    let reported = loop {
        let reported = status(&mut client, "Innodb_buffer_pool_load_status");
        if !reported.is_empty() && !reported.starts_with("Loaded") {
            break reported;
        }
        assert!(Instant::now() < end, "{reported}");
    };
    assert!(reported.contains("damaged"), "{reported}");
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
    let error = holder.query_drop("KILL 999999").expect_err("there is no such session").to_string();
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

/// Regression test: SIGUSR1 and SIGUSR2 ended the server without a message.
#[test]
fn signals_without_a_meaning_are_logged_and_ignored() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &[]);
    for signal in ["USR1", "USR2"] {
        running.signal(&format!("-{signal}"));
        wait_until("it is logged", || running.log().contains(&format!("SIG{signal} was received")));
    }
    drop(running.client());
}

#[test]
fn the_service_manager_and_the_log_receive_the_progress_of_the_start() {
    let scratch = tempfile::tempdir().expect("made");
    let path = scratch.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("bound");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let log = scratch.path().join("log.err");
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

/// Regression test: all users of the host could read the data.
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

#[test]
fn the_error_log_has_the_name_that_mariadbd_gives_it() {
    let scratch = tempfile::tempdir().expect("made");
    let datadir = scratch.path().join("data");
    let name = |server: &Cohort| {
        let row: Option<(String, String)> =
            server.client().query_first("SELECT @@log_error, @@pid_file").expect("a row");
        row.expect("one")
    };
    // The last option counts, also where an option file has the first.
    let file = scratch.path().join("cnf");
    std::fs::write(&file, "[mysqld]\nlog-error\n").expect("written");
    let of_file = format!("--defaults-file={}", file.display());
    let mut server = Cohort::start(scratch.path(), "data", &["--log-error=foo"]);
    assert_eq!(name(&server).0, "./foo.err");
    assert!(std::fs::read_to_string(datadir.join("foo.err")).is_ok_and(|said| said.contains("ready for")));
    let written = server
        .client()
        .query_drop(format!("SELECT 1 INTO OUTFILE '{}'", datadir.join("foo.err.more").display()));
    assert!(written.is_err(), "a client writes into files of the server");
    server.stop();
    server.restart_with(&["--log-error"]);
    let (log, pid) = name(&server);
    assert_eq!(Path::new(&log), Path::new(&pid).with_extension("err"));
    assert!(std::fs::read_to_string(&log).is_ok_and(|said| said.contains("ready for")), "{log}");
    server.stop();
    server.restart_with(&["--log-error=", "--skip-log-error"]);
    assert_eq!(name(&server).0, "");
    server.stop();
    let printed = run(env!("CARGO_BIN_EXE_cohortd"), &[&of_file, "--print-defaults"]);
    assert!(support::text(&printed).contains("--log-error \n"), "{printed:?}");
}

/// Regression test: only SIGHUP reopened a moved error log.
#[test]
fn flush_logs_follows_an_error_log_that_was_moved() {
    let scratch = tempfile::tempdir().expect("made");
    let (log, moved) = (scratch.path().join("error.log"), scratch.path().join("error.log.1"));
    let running = Cohort::start(scratch.path(), "data", &[&format!("--log-error={}", log.display())]);
    let mut client = running.client();
    for (n, statement) in ["FLUSH LOGS", "FLUSH ERROR LOGS"].into_iter().enumerate() {
        std::fs::rename(&log, &moved).expect("moved");
        client.query_drop(statement).expect("flushed");
        let name = format!("missing{n}");
        assert!(Conn::new(running.options().user(Some(name.clone()))).is_err());
        wait_until(statement, || std::fs::read_to_string(&log).is_ok_and(|said| said.contains(&name)));
    }
}

#[test]
fn statement_logs_are_recreated_after_a_move() {
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
    client.query_drop("SET log_slow_verbosity = 'full'").expect("set");
    client.query_drop("SELECT SLEEP(0.3)").expect("runs");
    client.query_drop("CREATE TABLE test.t (a INT PRIMARY KEY)").expect("made");
    client.query_drop("SET long_query_time = 0").expect("set");
    client.query_drop("INSERT INTO test.t VALUES (1), (2)").expect("written");
    client.query_drop("SELECT * FROM test.t").expect("read");
    let found = std::fs::read_dir(&data).expect("readable").filter_map(Result::ok);
    let slow = found.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with("-slow.log"));
    let slow = text(&slow.expect("a slow log was made"));
    assert!(slow.contains("SELECT SLEEP(0.3);\n") && !slow.contains("early"), "{slow}");
    let entry = |end: &str| slow.split("# Time: ").find(|entry| entry.ends_with(end)).expect("an entry");
    let (insert, select) = (entry("VALUES (1), (2);\n"), entry("SELECT * FROM test.t;\n"));
    // An OK packet with the numbers of records; and a column, two rows and two packets that end them.
    for (entry, bytes) in [(insert, 48..=60), (select, 60..=120)] {
        let sent = entry.split("Bytes_sent: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        assert!(sent.is_some_and(|sent: u64| bytes.contains(&sent)), "{entry}");
        assert!(entry.contains("# Pages_accessed: "), "{entry}");
    }
    assert!(insert.contains("Commit_flush_time: 0.") && !select.contains("Commit_"), "{slow}");
    let plan: Option<String> = client.query_first("ANALYZE FORMAT=JSON SELECT * FROM test.t").expect("runs");
    assert!(plan.as_deref().is_some_and(|plan| plan.contains("\"pages_accessed\": ")), "{plan:?}");
}

/// Source files with the recovery table.
const RECOVERY: [&str; 2] =
    [include_str!("../../commit/src/recovery.rs"), include_str!("../../commit/src/separate_recovery.rs")];

/// Returns the rows of the recovery table that are refusals, with their names and causes.
fn refusals() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in RECOVERY.iter().flat_map(|source| source.lines()) {
        let Some(row) = line.strip_prefix("//! | [`Row::") else { continue };
        let cells: Vec<&str> = row.split(" | ").map(str::trim).collect();
        let (Some((name, _)), true) = (row.split_once('`'), row.ends_with("| refuse |")) else { continue };
        if !found.iter().any(|(known, _)| known == name) {
            found.push((name.to_owned(), cells[cells.len() - 2].to_owned()));
        }
    }
    found.sort();
    found
}

#[test]
fn the_page_of_errors_at_the_start_is_true() {
    let at = || Path::new("DIR").to_owned();
    let other = || "FILE".to_owned();
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let of_directories = [
        DatadirError::Missing(at()),
        DatadirError::Empty(at()),
        DatadirError::Initialized(at()),
        DatadirError::Foreign(at(), other()),
        DatadirError::OfMariaDb(at()),
        DatadirError::VersionLost(at()),
        DatadirError::Version(at(), "VERSION".to_owned()),
        DatadirError::InUse(at(), "PID".to_owned()),
        DatadirError::Io(at(), denied),
    ];
    let mut page = String::from(
        "# Errors at the start\n\nMade by `UPDATE_GOLDEN=1 cargo test -p cohort-server --test process the_page`.\n\nA start that is \
         rejected changes nothing. The message says what is wrong and what to do; [Operate](operating.md#start-and-stop) lists the exit \
         codes.\n\n## The data directory\n\n",
    );
    for error in of_directories {
        let uid = rustix::process::geteuid().as_raw();
        let text = error.to_string().replace(&format!("user {uid},"), "user UID,");
        page += &format!("- {}\n", text.replace(&format!("-R {uid} "), "-R UID "));
    }
    page += "\n## Recovery\n\nThe message is `recovery refuses (NAME): what was found; what to do`.\n";
    for (name, cause) in refusals() {
        let row = Row::ALL.iter().find(|row| format!("{row:?}") == name).expect("a row of the table");
        page += &format!("\n### {name}\n\nCause: {cause}.\n\nCure: {}.\n", row.cure().expect("a refusal"));
    }
    page += "\n## Damage\n\nA page, a log record or an event whose checksum is wrong is reported with file and offset, and the server does not \
             start, or rejects the statement that reads it. Restore the data directory from a [backup](backup.md) or a replica. One damaged copy of \
             the log's control file is mended from the other, with a warning.\n\n## Exit codes\n\n| code | meaning |\n|---:|---|\n";
    for (code, meaning) in cohort_config::EXIT_CODES {
        page += &format!("| {code} | {meaning} |\n");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/start-errors.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("the checkout can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "docs/start-errors.md is not what the server says: write it with UPDATE_GOLDEN=1");
}
