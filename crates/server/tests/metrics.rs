//! The commit path's histograms as seen by clients, scrapers and browsers.

mod support;

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use support::{Cohort, free_port, refused};

fn connect(port: u16) -> TcpStream {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => {
                stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
                return stream;
            }
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the status line with the headers, and the body.
fn exchange(port: u16, request: &[u8]) -> (String, String) {
    let mut stream = connect(port);
    stream.write_all(request).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered and closed");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

fn get(port: u16, path: &str) -> (String, String) {
    exchange(port, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

/// Returns the samples by name with labels. Checks every line against the format.
fn samples(text: &str) -> HashMap<String, f64> {
    let mut found = HashMap::new();
    let mut family = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (kind, name) = (words.next().expect("a word"), words.next().expect("a name"));
            assert!(["HELP", "TYPE"].contains(&kind) && words.next().is_some(), "{line}");
            family = name.to_owned();
            continue;
        }
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(name.starts_with(&family), "{line} belongs to {family}");
        let labels_are_closed = name.contains('{') == name.ends_with('}');
        assert!(labels_are_closed && name.matches('"').count() % 2 == 0, "{line}");
        let value = value.parse().expect("a number");
        assert!(found.insert(name.to_owned(), value).is_none(), "{line} twice");
    }
    found
}

#[test]
fn every_commit_is_in_the_histograms_of_status_table_and_endpoint() {
    let scratch = tempfile::tempdir().expect("made");
    let port = free_port();
    // The first start creates tables of `mysql`, in commits without the binary log.
    drop(Cohort::start(scratch.path(), "data", &[]));
    let running = Cohort::start(scratch.path(), "data", &[&format!("--metrics-port={port}")]);
    let mut client = running.client();
    client.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)").expect("made");
    for n in 0..20 {
        client.exec_drop("INSERT INTO test.t (v) VALUES (?)", (n,)).expect("written");
    }

    let (head, body) = get(port, "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    let samples = samples(&body);
    let commits = samples["cohort_commits_total"];
    assert!(commits >= 21.0, "{commits}");
    for stage in ["prepare", "order_wait", "order_work", "queue", "write", "flush", "publish", "acknowledge"]
    {
        let of = |end: &str| samples[&format!("cohort_commit_stage_seconds_{end}{{stage=\"{stage}\"}}")];
        // The reply to the last commit is sent before the acknowledgement is timed.
        assert!(of("count") >= 20.0 && of("sum") > 0.0, "{stage}");
        let last = samples[&format!("cohort_commit_stage_seconds_bucket{{stage=\"{stage}\",le=\"+Inf\"}}")];
        assert_eq!(last, of("count"), "{stage}");
        let spent = samples[&format!("cohort_commit_stage_transaction_seconds_total{{stage=\"{stage}\"}}")];
        assert!(spent >= of("sum") * 0.999, "{stage}: a group has a member at least");
    }
    assert_eq!(samples["cohort_group_size_sum"], commits);
    assert!(!body.contains("cohort_digest_"), "off by default");
    client.query_drop("SET GLOBAL metrics_digests = 5").expect("set");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let with_digests = get(port, "/metrics").1;
    let is_of_digest = |line: &&str| line.starts_with("cohort_digest_calls_total{digest=\"");
    let most = with_digests.lines().filter(is_of_digest).count();
    assert!((1..=5).contains(&most), "{with_digests}");
    assert_eq!(samples["cohort_connections_open"], 1.0);
    assert_eq!(samples["cohort_global_status{variable=\"Binlog_commits\"}"], commits);

    let rows: Vec<(String, u64, u64, u64, u64, u64)> = client
        .query("SELECT STAGE, COUNT, SUM_US, P50_US, P999_US, MAX_US FROM information_schema.COHORT_COMMIT_STAGES")
        .expect("rows");
    let flush = rows.iter().find(|row| row.0 == "flush").expect("a stage");
    assert!(flush.1 >= 21 && flush.2 > 0 && flush.3 <= flush.4 && flush.4 <= flush.5, "{flush:?}");
    assert_eq!(rows.iter().find(|row| row.0 == "replica_wait").expect("a stage").1, 0);

    let status: Vec<(String, u64)> =
        client.query("SHOW GLOBAL STATUS LIKE 'Cohort\\_flush\\_%'").expect("rows");
    let value = |name: &str| status.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name}")).1;
    assert_eq!(value("Cohort_flush_count"), flush.1);
    assert!(
        value("Cohort_flush_us_total") > 0 && value("Cohort_flush_us_p99") >= value("Cohort_flush_us_p50")
    );

    let (_, _, text): (String, String, String) =
        client.query_first("SHOW ENGINE COHORT STATUS").expect("a row").expect("one");
    let line = text.lines().find(|line| line.starts_with("flush ")).expect("a line of the stage");
    assert!(line.contains('%') && text.contains("GROUP SIZE") || text.contains("group size"), "{text}");
}

#[test]
fn the_page_is_complete_and_loads_nothing_from_elsewhere() {
    let scratch = tempfile::tempdir().expect("made");
    let port = free_port();
    let running = Cohort::start(scratch.path(), "data", &[&format!("--metrics-port={port}")]);
    drop(running.client());
    let (head, page) = get(port, "/");
    assert!(head.contains("Content-Type: text/html; charset=utf-8\r\n"), "{head}");
    assert!(head.contains("Content-Security-Policy: default-src 'none'"), "{head}");
    assert!(!head.contains("unsafe"), "{head}");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    // All files that the page and its modules name.
    let (mut files, mut all) = (vec!["/".to_owned()], String::new());
    let mut at = 0;
    while let Some(path) = files.get(at).cloned() {
        let (head, body) = get(port, &path);
        assert!(
            head.starts_with("HTTP/1.1 200 ") && head.contains("Cache-Control: no-store"),
            "{path}: {head}"
        );
        for word in body.split(['"', '\'']) {
            let name = word.strip_prefix("./").map(|name| format!("/{name}")).unwrap_or(word.to_owned());
            let is_file =
                [".js", ".css", ".svg"].iter().any(|end| name.ends_with(end)) && name.starts_with('/');
            if is_file && !files.contains(&name) {
                files.push(name);
            }
        }
        all.push_str(&body);
        at += 1;
    }
    assert!(files.len() > 10, "{files:?}");
    for outside in ["http://", "https://", "//cdn", "@import", "url(", " style=\""] {
        let inside = all.replace("http://www.w3.org/2000/svg", "");
        assert!(!inside.contains(outside), "{outside}");
    }
    // Every series that the page draws is recorded.
    let names = |text: &str| -> Vec<String> {
        let lists = text.split("const SERIES = [").skip(1).chain(text.split("new History(1, [").skip(1));
        let words =
            lists.flat_map(|rest| rest.split(']').next().unwrap_or_default().split('"').skip(1).step_by(2));
        words.filter(|word| !word.ends_with('_')).map(str::to_owned).collect()
    };
    let names = names(&all);
    assert!(names.len() > 30, "{names:?}");
    let (_, history) = get(port, &format!("/api/history?tier=0&series={}", names.join(",")));
    for name in names.iter().take(64) {
        let is_there = ["", ":p50"].iter().any(|end| history.contains(&format!("\"{name}{end}\":")));
        assert!(is_there, "{name} is not recorded: {history}");
    }
}

#[test]
fn bad_requests_are_refused_and_slow_ones_do_not_block_others() {
    let scratch = tempfile::tempdir().expect("made");
    let port = free_port();
    let running = Cohort::start(scratch.path(), "data", &[&format!("--metrics-port={port}")]);
    drop(running.client());
    let slow: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = connect(port);
            stream.write_all(b"GET /metr").expect("sent");
            stream
        })
        .collect();
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000));
    for (request, status) in [
        ("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "405"),
        ("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        ("\x17\x03\x01\x02\x00\x01", "400"),
        ("GET ../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
        ("GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        (&long, "431"),
    ] {
        let (head, _) = exchange(port, request.as_bytes());
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.40}: {head}");
    }
    let (head, body) = exchange(port, b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.contains(" 200 ") && body.is_empty());
    // The slow connections are closed in the end.
    for mut stream in slow {
        let mut rest = [0; 64];
        match stream.read(&mut rest) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(get(port, "/metrics").0.contains(" 200 "));
}

/// Found by reading: as many slow clients as can be served at a time blocked all others for five seconds,
/// repeatedly.
#[test]
fn slow_clients_make_way() {
    let port = free_port();
    let running = Cohort::new(&[&format!("--metrics-port={port}")]);
    let mut slow = Vec::new();
    for _ in 0..5 {
        for _ in 0..40 {
            let mut stream = connect(port);
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n").expect("sent");
            slow.push(stream);
        }
        let begun = Instant::now();
        assert!(get(port, "/metrics").1.contains("cohort_"));
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
    drop(running);
}

#[test]
fn the_endpoint_is_off_by_default_and_a_taken_port_stops_the_start() {
    let scratch = tempfile::tempdir().expect("made");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let datadir = scratch.path().join("data");
    let datadir_option = format!("--datadir={}", datadir.display());
    assert_eq!(refused(&[&datadir_option, "--initialize"]).0, 0);
    let files = || std::fs::read_dir(&datadir).expect("readable").count();
    let before = files();
    let (code, said) = refused(&[
        &datadir_option,
        &format!("--socket={}", scratch.path().join("socket").display()),
        &format!("--port={}", free_port()),
        "--bind-address=127.0.0.1",
        &format!("--metrics-port={port}"),
    ]);
    assert!(code == 1 && said.contains(&format!("metrics endpoint on port {port} of '127.0.0.1'")), "{said}");
    assert_eq!(files(), before);
    let running = Cohort::start(scratch.path(), "data", &[]);
    let mut client = running.client();
    let (_, value): (String, u64) =
        client.query_first("SHOW VARIABLES LIKE 'metrics_port'").expect("a row").expect("one");
    assert_eq!(value, 0);
}

#[test]
fn slow_flushes_are_logged() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &[]);
    let mut client = running.client();
    client.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY)").expect("made");
    // No disk is a hundred times slower than usual here, so the threshold is set below any flush time.
    client.query_drop("SET GLOBAL slow_flush_warning_ms = 1").expect("set");
    let end = Instant::now() + Duration::from_secs(20);
    let mut n = 0;
    let slow = |client: &mut mysql::Conn| -> u64 {
        let row: Option<(String, u64)> =
            client.query_first("SHOW GLOBAL STATUS LIKE 'Cohort_slow_flushes'").expect("a row");
        row.expect("one").1
    };
    while slow(&mut client) == 0 {
        // Many rows at once: flushing this many bytes takes a millisecond on any disk.
        let rows: Vec<String> = (n..n + 2000).map(|id| format!("({id})")).collect();
        client.query_drop(format!("INSERT INTO test.t VALUES {}", rows.join(","))).expect("written");
        n += 2000;
        assert!(Instant::now() < end, "no flush took a millisecond");
    }
    while !running.log().contains("slow_flush_warning_ms is 1)") {
        assert!(Instant::now() < end, "{}", running.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Meaning and unit of status variables of Cohort; `*` stands for the name of a step.
const STATUS: &[(&str, &str, &str)] = &[
    ("Cohort_commits", "transactions", "published since the start"),
    ("Cohort_slow_flushes", "flushes", "that took at least slow_flush_warning_ms"),
    ("Cohort_checkpoints", "checkpoints", "completed"),
    ("Cohort_checkpoint_failures", "checkpoints", "failed; the error log says why"),
    ("Cohort_recovery_commits", "transactions", "read from the log by the recovery of this start"),
    ("Cohort_recovery_log_bytes", "bytes", "of log read by it"),
    ("Cohort_recovery_us", "microseconds", "that it took"),
    (
        "Cohort_binlog_backlog_bytes",
        "bytes",
        "of binary log that are durable in the log and not in their file yet",
    ),
    ("Cohort_backups", "backups", "completed since the start"),
    ("Cohort_backup_failures", "backups", "failed or interrupted; the error log says why"),
    (
        "Cohort_backup_expected_bytes",
        "bytes",
        "that the running backup will have, as far as known; 0 without one",
    ),
    ("Cohort_backup_log_pinned_bytes", "bytes", "of log that are kept only for the running backup"),
    (
        "Cohort_backup_newest_unixtime",
        "seconds",
        "since 1970 UTC of the state that the newest backup of this data directory has; 0 without one",
    ),
    (
        "Cohort_backup_proven_unixtime",
        "seconds",
        "since 1970 UTC of the state of the newest backup that was restored and checked; 0 without one",
    ),
    ("Cohort_archive_running", "1 or 0", "whether cohort-backup stores the log now"),
    (
        "Cohort_archive_lag_bytes",
        "bytes",
        "of log that the repository does not have, and that are kept for it",
    ),
    ("Cohort_archive_lag_seconds", "seconds", "since the oldest of them waits"),
    ("Cohort_archive_bytes", "bytes", "of log that the repository has acknowledged since the start"),
    ("Cohort_archive_failures", "times", "that the archive stood still; the error log says why"),
    ("Cohort_archive_gaps", "gaps", "in the archive: restores to later moments need a later full backup"),
    (
        "Cohort_archive_sync_on",
        "1 or 0",
        "whether commits wait for the archive; with `archive_sync=ON` 0 after a timeout, until it has caught up",
    ),
    ("Cohort_archive_sync_waiting", "commits", "that wait for the archive now"),
    (
        "Cohort_archive_sync_acknowledged",
        "commits",
        "with `archive_sync=ON` that the repository had before their clients got a reply",
    ),
    (
        "Cohort_archive_sync_unacknowledged",
        "commits",
        "with `archive_sync=ON` that went on without the repository",
    ),
    ("Cohort_archive_sync_timeouts", "times", "that commits began to go on without it"),
    ("Cohort_group_size_p50", "transactions", "in a flush group, median"),
    ("Cohort_group_size_p99", "transactions", "in a flush group, 99th percentile"),
    ("Cohort_group_size_max", "transactions", "in the largest flush group"),
    ("Cohort_log_flushes", "requests", "to make the log durable"),
    ("Cohort_log_syncs", "syncs", "of the log, each for all requests before it"),
    ("Cohort_log_bytes_written", "bytes", "written to the log"),
    ("Cohort_replica_sources", "connections", "to sources"),
    ("Cohort_replica_applied_ddl", "statements", "of DDL applied"),
    ("Cohort_replica_applied_transactions", "transactions", "applied"),
    ("Cohort_replica_queued_transactions", "transactions", "that wait for a worker"),
    ("Cohort_replica_queued_bytes", "bytes", "of events that wait for a worker"),
    ("Cohort_replica_busy_workers", "workers", "that apply a transaction now"),
    ("Cohort_replica_received_bytes", "bytes", "received from sources"),
    ("Cohort_replica_relay_log_bytes", "bytes", "of relay log on the disk"),
    ("Cohort_replica_behind_seconds", "seconds", "by which the slowest connection lags its source"),
    ("Cohort_replica_behind_transactions", "transactions", "that were received and are not applied"),
    ("Cohort_*_count", "entries", "of the step"),
    ("Cohort_*_us_total", "microseconds", "of all entries"),
    (
        "Cohort_*_us_trx_total",
        "microseconds",
        "of all entries, a group's time counted for each of its transactions",
    ),
    ("Cohort_*_us_p50", "microseconds", "median of an entry"),
    ("Cohort_*_us_p99", "microseconds", "99th percentile of an entry"),
    ("Cohort_*_us_max", "microseconds", "longest entry"),
];

/// Steps of a commit, in their order.
const STEPS: [&str; 10] = [
    "prepare",
    "order_wait",
    "order_work",
    "queue",
    "write",
    "flush",
    "replica_wait",
    "archive_wait",
    "publish",
    "acknowledge",
];

/// A page of docs that is made by a test. `UPDATE_GOLDEN=1` writes it.
fn is_page(name: &str, page: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, page).expect("the checkout can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "docs/{name} is not what the server has: write it with UPDATE_GOLDEN=1");
}

#[test]
fn the_page_of_status_variables_and_metrics_is_true() {
    let metrics_port = free_port();
    let server = Cohort::new(&[&format!("--metrics-port={metrics_port}"), "--log-bin"]);
    let shown = server.sql("SHOW GLOBAL STATUS");
    let names: Vec<&str> = shown.lines().filter_map(|line| line.split('\t').next()).collect();
    let mut page = String::from(
        "# Status variables and metrics\n\nMade by `UPDATE_GOLDEN=1 cargo test -p cohort-server --test metrics the_page`.\n\n\
         ## Metrics\n\nOf the [metrics endpoint](howto/monitor.md). Times are in seconds, sizes in bytes; counters end with `_total` and \
         begin at 0 with each start.\n\n| metric | kind | unit | meaning |\n|---|---|---|---|\n",
    );
    let text = get(metrics_port, "/metrics").1;
    for lines in text.lines().collect::<Vec<_>>().windows(2) {
        let (Some(help), Some(kind)) = (lines[0].strip_prefix("# HELP "), lines[1].strip_prefix("# TYPE "))
        else {
            continue;
        };
        let (name, help) = help.split_once(' ').expect("a text");
        let kind = kind.split_once(' ').expect("a kind").1;
        let unit = ["seconds", "bytes"].into_iter().find(|unit| name.contains(unit)).unwrap_or("");
        page += &format!("| `{name}` | {kind} | {unit} | {help} |\n");
    }
    page += "\n## Status variables of Cohort\n\nOf `SHOW GLOBAL STATUS LIKE 'Cohort%'`. `*` is one of the steps of a commit: ";
    page += &format!(
        "{}. [Operate](operating.md#steps-of-a-commit) explains them.\n\n",
        STEPS.map(|step| format!("`{step}`")).join(", ")
    );
    page += "| variable | unit | meaning |\n|---|---|---|\n";
    for (name, unit, meaning) in STATUS {
        page += &format!("| `{name}` | {unit} | {meaning} |\n");
        let exists = |name: &str| assert!(names.contains(&name), "there is no {name}");
        match name.contains('*') {
            true => STEPS.iter().for_each(|step| exists(&name.replace('*', step))),
            false => exists(name),
        }
    }
    let is_described = |name: &str| {
        let patterns = STATUS.iter().map(|(pattern, ..)| pattern.split_once('*'));
        let of_step = |(before, after): (&str, &str)| {
            let step = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            step.is_some_and(|step| STEPS.contains(&step))
        };
        STATUS.iter().any(|(known, ..)| *known == name) || patterns.flatten().any(of_step)
    };
    let unknown: Vec<&&str> =
        names.iter().filter(|name| name.starts_with("Cohort") && !is_described(name)).collect();
    assert!(unknown.is_empty(), "without a description: {unknown:?}");
    page += "\n## Status variables of MariaDB\n\nWith MariaDB's meaning and unit.\n\n";
    // Those of an engine that not every build has, or of a library's version, are left out.
    let of_mariadb = names.iter().filter(|name| !name.starts_with("Cohort") && !name.starts_with("Rocksdb"));
    page += &of_mariadb.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    page.push('\n');
    is_page("status.md", &page);
}
