//! One client must not harm others: limits of nesting, memory and run time, tested on a server process.

mod support;

use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use support::{Cohort, Reply, Wire, Wishes};

/// Timeout of a single step on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("SELECT {}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// Sends statements nested as deep as the stack permits, and far deeper.
fn deep(client: &mut Conn) {
    for depth in [10, 60, 300, 900, 20_000] {
        for sql in [
            nested("(", "1", ")", depth),
            nested("NOT (1 = ", "1", ")", depth),
            nested("(SELECT ", "1", ")", depth),
            nested("abs(", "1", ")", depth),
            nested("CASE WHEN ", "1", " THEN 1 END", depth),
            nested("json_array(", "1", ")", depth),
            nested("- ", "1", "", depth),
            format!("SELECT 1{}", " + 1".repeat(depth)),
            format!("SELECT * FROM {}(SELECT 1) x{}", "(SELECT * FROM ".repeat(depth), ") x".repeat(depth)),
            format!("SELECT 1{}", " UNION SELECT 2 EXCEPT SELECT 3".repeat(depth)),
            format!("{}SELECT 1", "SET STATEMENT max_statement_time = 100 FOR ".repeat(depth)),
        ] {
            // A result or an error; the connection survives.
            let _ = client.query_drop(&sql);
            let alive: Option<u8> =
                client.query_first("SELECT 1").unwrap_or_else(|e| panic!("{e}: {}", &sql[..60]));
            assert_eq!(alive, Some(1));
        }
    }
    let long = format!("SELECT COUNT(*) FROM (SELECT 1{}) x", " UNION ALL SELECT 1".repeat(9_999));
    assert_eq!(client.query_first(long).expect("answered"), Some(10_000));
    client.query_drop("SET @a = 'EXECUTE IMMEDIATE @a'").expect("set");
    client.query_drop("EXECUTE IMMEDIATE @a").expect_err("it never ends");
}

#[test]
fn nesting_ends_before_the_stack_does() {
    let scratch = tempfile::tempdir().expect("made");
    for (datadir, options) in [("small", &["--thread-stack=128K"][..]), ("default", &[])] {
        let mut running = Cohort::start(scratch.path(), datadir, options);
        let mut first = running.client();
        deep(&mut first);
        // The same with several stacks that wait at the same time.
        first.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY, v INT)").expect("made");
        first.query_drop("INSERT INTO test.t VALUES (1, 1)").expect("written");
        first.query_drop("BEGIN").expect("begun");
        first.query_drop("UPDATE test.t SET v = 2").expect("locked");
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let mut client = running.client();
                std::thread::spawn(move || {
                    client.query_drop("UPDATE test.t SET v = 3").expect("after the first one");
                    deep(&mut client);
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(200));
        first.query_drop("COMMIT").expect("committed");
        waiters.into_iter().for_each(|waiter| waiter.join().expect("no panic"));
        running.signal("-TERM");
        assert_eq!(running.exit_code(), Some(0));
    }
}

/// Statements that would take hours.
const ENDLESS: &[&str] = &[
    "SELECT BENCHMARK(9000000000000000000, SHA2('a', 512))",
    "SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c, \
     information_schema.columns d",
    "SELECT CONCAT(REPEAT('a', 8000000)) LIKE CONCAT('%', REPEAT('a', 4000000), 'b')",
    "SELECT LOCATE(CONCAT(REPEAT('a', 4000000), 'b'), REPEAT('a', 8000000))",
];

#[test]
fn a_stop_does_not_wait_for_statements_that_never_end() {
    let scratch = tempfile::tempdir().expect("made");
    let mut running = Cohort::start(scratch.path(), "data", &[]);
    let clients: Vec<_> = ENDLESS
        .iter()
        .map(|sql| {
            let mut client = running.client();
            std::thread::spawn(move || client.query_drop(sql).expect_err("it was ended"))
        })
        .collect();
    let mut observer = running.client();
    let begun = Instant::now();
    let busy = "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Query' AND id <> CONNECTION_ID()";
    while observer.query_first::<usize, _>(busy).expect("answered") != Some(ENDLESS.len()) {
        assert!(begun.elapsed() < PATIENCE, "they did not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let begun = Instant::now();
    running.signal("-TERM");
    assert_eq!(running.exit_code(), Some(0));
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    clients.into_iter().for_each(|client| drop(client.join().expect("no panic")));
}

#[test]
fn all_sessions_together_keep_within_the_servers_memory() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &["--sessions-memory-max=50M"]);
    let (mut a, mut b) = (running.client(), running.client());
    a.query_drop("SET @a = REPEAT('a', 16000000), @b = REPEAT('a', 16000000)").expect("within the limit");
    let error =
        b.query_drop("SET @a = REPEAT('a', 16000000), @b = REPEAT('a', 16000000)").expect_err("beyond it");
    assert!(error.to_string().contains("1041"), "{error}");
    drop(a);
    let begun = Instant::now();
    while b.query_drop("SET @a = REPEAT('a', 16000000), @b = REPEAT('a', 16000000)").is_err() {
        assert!(begun.elapsed() < PATIENCE, "what a connection kept is not given back");
        std::thread::sleep(Duration::from_millis(20));
    }
    b.query_drop("SET GLOBAL sessions_memory_max = 10000000").expect("set");
    let error = b.query_drop("SET @c = REPEAT('a', 1000)").expect_err("less than is used").to_string();
    assert!(error.contains("1041"), "{error}");
}

/// Statements that may be ended when their clients disconnect: they compute, or wait repeatedly, or wait for
/// other sessions.
const DISPENSABLE: &[&str] = &[
    "SELECT BENCHMARK(9000000000000000000, SHA2('a', 512))",
    "EXECUTE IMMEDIATE 'SELECT COUNT(*) FROM seq_1_to_1000000 a, seq_1_to_1000000 b'",
    "SELECT SUM(SLEEP(0.001)) FROM seq_1_to_1000000",
    "SELECT * FROM locked FOR UPDATE",
    "UPDATE locked SET v = 2",
    "INSERT INTO t SELECT 1000 + id, v FROM locked WHERE id = 1 FOR UPDATE",
    "ALTER TABLE locked ADD COLUMN w INT",
    "DO SLEEP(1000)",
];

#[test]
fn a_statement_ends_when_its_client_has_gone_unless_it_is_at_work_on_a_change() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &["--innodb-lock-wait-timeout=1000"]);
    let (mut observer, mut holder) = (running.in_test(), running.in_test());
    observer.query_drop("CREATE TABLE locked (id INT PRIMARY KEY, v INT)").expect("made");
    observer.query_drop("INSERT INTO locked VALUES (1, 1)").expect("written");
    observer.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v INT)").expect("made");
    observer.query_drop("INSERT INTO t SELECT seq, 0 FROM seq_1_to_100").expect("written");
    holder.query_drop("BEGIN").expect("begun");
    holder.query_drop("SELECT * FROM locked FOR UPDATE").expect("locked");
    let begin = |sql: &str| {
        let mut client = Wire::over_tcp(running.port, Wishes::default());
        client.run("USE test");
        client.send_query(sql);
        client
    };
    let mut clients: Vec<Wire> = DISPENSABLE.iter().map(|sql| begin(sql)).collect();
    clients.push(begin("UPDATE t SET v = v + 1 WHERE SLEEP(0.15) = 0"));
    let mut wait_for = |others_than: &str, count: usize| {
        let busy = format!(
            "SELECT info FROM information_schema.processlist WHERE command = 'Query' AND id <> CONNECTION_ID() \
             AND info NOT LIKE '{others_than}'"
        );
        let begun = Instant::now();
        loop {
            let found: Vec<String> = observer.query(&busy).expect("answered");
            if found.len() == count {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{found:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for("", DISPENSABLE.len() + 1);
    // While their clients are connected, they outlast the limit for abandoned statements.
    std::thread::sleep(Duration::from_secs(7));
    wait_for("", DISPENSABLE.len() + 1);
    drop(clients);
    wait_for("UPDATE t %", 0);
    // The UPDATE sleeps for at least 15 seconds; its client disconnected halfway.
    wait_for("", 0);
    assert_eq!(observer.query_first("SELECT SUM(v) FROM t").expect("answered"), Some(100));
    // None of them changed anything after its wait.
    holder.query_drop("COMMIT").expect("committed");
    let untouched = "SELECT COUNT(*) FROM locked WHERE v = 1";
    assert_eq!(observer.query_first(untouched).expect("answered"), Some(1));
}

/// Returns the resident memory of a process in MiB.
fn resident_mib(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a process has memory");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") / 1024
}

#[test]
fn a_result_that_no_client_reads_is_not_kept() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &[]);
    let (mut slow, mut observer) = (running.client(), running.client());
    let rows = "SELECT 1 x".to_owned() + &" UNION ALL SELECT 1".repeat(199);
    let result = format!("SELECT REPEAT('x', 1000000) FROM ({rows}) r");
    slow.query_drop("DO REPEAT('x', 10000000)").expect("warm");
    let before = resident_mib(running.pid());
    // Two hundred megabytes. The client reads the first row, and then pauses.
    let mut unread = slow.query_iter(result).expect("answered");
    assert!(unread.next().is_some());
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        let now = resident_mib(running.pid());
        assert!(now < before + 60, "{now} MiB, {before} before");
    }
    let used = "SELECT SUM(memory_used) FROM information_schema.processlist";
    let used = observer.query_first::<u64, _>(used).expect("answered").expect("a number");
    assert!(used < 60_000_000, "{used}");
    assert_eq!(unread.count(), 199, "the rest comes when it is read");
}

#[test]
fn a_long_packet_counts_before_it_is_whole() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &["--max-allowed-packet=64M"]);
    let (mut greedy, mut observer) = (running.client(), running.client());
    let long = format!("DO LENGTH('{}')", "x".repeat(30_000_000));
    let begun = resident_mib(running.pid());
    greedy.query_drop("SET max_session_mem_used = 4000000").expect("set");
    let error = greedy.query_drop(&long).expect_err("more than it may use").to_string();
    // The server sends the error and closes. A client that is still sending may only notice the close.
    assert!(error.contains("1290") || error.contains("reset") || error.contains("pipe"), "{error}");
    assert!(resident_mib(running.pid()) < begun + 25, "it was kept");
    let begun = Instant::now();
    let used = "SELECT SUM(memory_used) FROM information_schema.processlist";
    while observer.query_first::<u64, _>(used).expect("answered") > Some(1_000_000) {
        assert!(begun.elapsed() < PATIENCE, "it is not given back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn long_data_counts_before_it_is_used() {
    let scratch = tempfile::tempdir().expect("made");
    let running =
        Cohort::start(scratch.path(), "data", &["--sessions-memory-max=50M", "--max-allowed-packet=64M"]);
    let mut client = Wire::over_tcp(running.port, Wishes::default());
    let lengths = ["LENGTH(?)"; 8].join(", ");
    let id = client.prepare(&format!("SELECT {lengths}")).expect("prepared").id;
    let piece = vec![b'x'; 4_000_000];
    let begun = resident_mib(running.pid());
    let mut lengths = |pieces: u16| {
        (0..pieces).for_each(|n| client.send_long_data(id, n % 8, &piece));
        match client.execute(id, &[(0xfc, 0, Some(&b""[..])); 8]) {
            Reply::Error { code, .. } => Err(code),
            reply => Ok(reply.warnings()),
        }
    };
    assert_eq!(lengths(8), Ok(0));
    assert_eq!(lengths(120), Err(1041));
    // 480 MB were sent, and the allocator keeps freed memory for a while.
    assert!(resident_mib(running.pid()) < begun + 240, "what is refused is not kept");
    for _ in 0..8 {
        assert_eq!(lengths(8), Ok(0), "it is given back");
    }
}

/// Statements that copy all rows of a table.
const COPIES: &[&str] = &[
    "ALTER TABLE test.large FORCE",
    "ALTER TABLE test.large ADD COLUMN added VARCHAR(40) DEFAULT (UUID()) FIRST",
    "CREATE INDEX by_pad ON test.large (pad)",
    "CREATE TABLE test.copied SELECT * FROM test.large",
];
/// Reports its outcome as rows.
const OPTIMIZE: &str = "OPTIMIZE TABLE test.large";

/// Creates a table that takes far longer to copy than the tests below permit.
fn fill_large(client: &mut Conn) {
    let tens = "SELECT 1 x".to_owned() + &" UNION ALL SELECT 1".repeat(9);
    client.query_drop("CREATE TABLE test.large (id INT PRIMARY KEY, pad CHAR(100))").expect("made");
    let rows = format!("({tens}) a, ({tens}) b, ({tens}) c, ({tens}) d, (SELECT 1 UNION SELECT 2) e");
    let numbers = format!("SELECT ROW_NUMBER() OVER (), SHA2(RAND(), 224) FROM {rows}");
    client.query_drop(format!("INSERT INTO test.large {numbers}")).expect("filled");
}

/// Checks that the table is unchanged, and that nothing of the new one is left.
fn assert_untouched(client: &mut Conn) {
    let columns = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'test'";
    assert_eq!(client.query_first(columns).expect("answered"), Some(2));
    let indexes = "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = 'test'";
    assert_eq!(client.query_first(indexes).expect("answered"), Some(1));
    assert_eq!(client.query_first("SELECT COUNT(*) FROM test.large").expect("answered"), Some(20_000));
}

fn assert_all_copies_end(client: &mut Conn, code: &str, text: &str) {
    for copy in COPIES {
        let error = client.query_drop(copy).expect_err(copy).to_string();
        assert!(error.contains(code) && error.contains(text), "{copy}: {error}");
    }
    match client.query::<(String, String, String, String), _>(OPTIMIZE) {
        Ok(rows) => {
            assert!(rows.iter().any(|row| row.2 == "error" && row.3.starts_with(text)), "{rows:?}");
            assert_eq!(rows.last().map(|row| row.3.as_str()), Some("Operation failed"));
        }
        // It came after the rows had been sent.
        Err(error) => assert!(error.to_string().contains(code), "{error}"),
    }
}

#[test]
fn copies_of_tables_end_at_the_time_limit_and_at_kill() {
    let scratch = tempfile::tempdir().expect("made");
    let running = Cohort::start(scratch.path(), "data", &[]);
    let (mut client, mut killer) = (running.client(), running.client());
    fill_large(&mut client);
    client.query_drop("SET max_statement_time = 0.001").expect("set");
    assert_all_copies_end(&mut client, "1969", "Query execution was interrupted");
    client.query_drop("SET max_statement_time = 0").expect("set");
    assert_untouched(&mut client);
    let (done, until) = std::sync::mpsc::channel::<()>();
    let id = client.connection_id();
    let killing = std::thread::spawn(move || {
        while until.recv_timeout(Duration::from_millis(2)).is_err() {
            killer.query_drop(format!("KILL QUERY {id}")).expect("it is there");
        }
    });
    assert_all_copies_end(&mut client, "1317", "Query execution was interrupted");
    done.send(()).expect("it still kills");
    killing.join().expect("no panic");
    assert_untouched(&mut client);
}

#[test]
fn a_stop_does_not_wait_for_copies_of_tables() {
    let scratch = tempfile::tempdir().expect("made");
    let mut running = Cohort::start(scratch.path(), "data", &[]);
    fill_large(&mut running.client());
    for copy in COPIES {
        let (mut client, mut observer) = (running.client(), running.client());
        let copying = std::thread::spawn(move || client.query_drop(copy));
        let busy = "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Query' AND id <> CONNECTION_ID()";
        while observer.query_first::<usize, _>(busy).expect("answered") == Some(0) && !copying.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(observer);
        let begun = Instant::now();
        running.signal("-TERM");
        assert_eq!(running.exit_code(), Some(0), "{copy}");
        assert!(begun.elapsed() < PATIENCE, "{copy}: {:?}", begun.elapsed());
        // It may already have been done.
        let _ = copying.join().expect("no panic");
        running = Cohort::start(scratch.path(), "data", &[]);
    }
    let rows = running.client().query_first("SELECT COUNT(*) FROM test.large").expect("answered");
    assert_eq!(rows, Some(20_000));
}

/// Statements that spill to disk. The outcome is a result, or an error because no file could be opened.
const SPILLING: &[&str] = &[
    "SELECT COUNT(*) FROM (SELECT DISTINCT a.seq + 1000 * b.seq FROM seq_1_to_300 a, seq_1_to_300 b) d",
    "SELECT MAX(n) FROM (SELECT a.seq n, COUNT(*) FROM seq_1_to_3000 a, seq_1_to_5 b GROUP BY a.seq * b.seq) d",
    "SELECT COUNT(*) FROM (SELECT seq, ROW_NUMBER() OVER (ORDER BY -seq) FROM seq_1_to_20000) d",
];

#[test]
fn descriptors_that_run_out_are_an_error_for_their_client_alone() {
    let mut running = Cohort::with_descriptors(180, &["--log-bin", "--tmp-memory-table-size=16384"]);
    let said = running.log();
    assert!(said.contains("Could not increase number of max_open_files to more than 180"), "{said}");
    assert!(said.contains("Changed limits: max_open_files: 180  max_connections: 116 (was 151)"), "{said}");
    let mut first = running.in_test();
    assert_eq!(first.query_first("SELECT @@max_connections").expect("answered"), Some(116));
    first.query_drop("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)").expect("made");
    // The maximum number of connections and more; half of them never log in.
    let mut clients: Vec<Conn> = Vec::new();
    let mut strangers = Vec::new();
    let mut refused = 0;
    for _ in 0..160 {
        strangers.extend(std::net::TcpStream::connect(("127.0.0.1", running.port)));
        match Conn::new(running.options().db_name(Some("test"))) {
            Ok(client) => clients.push(client),
            Err(_) => refused += 1,
        }
    }
    assert!(clients.len() > 20 && refused > 0, "{} clients, {refused} refused", clients.len());
    let mut written = 0;
    for (n, client) in clients.iter_mut().enumerate().take(30) {
        client.query_drop("INSERT INTO t (v) VALUES (REPEAT('x', 1000))").expect("the log has its file");
        written += 1;
        client.query_drop("FLUSH BINARY LOGS").expect("the binary log has its file");
        let spilled = client.query_first::<u64, _>(SPILLING[n % SPILLING.len()]);
        if let Err(error) = spilled {
            assert!(error.to_string().contains("Can't create/write to file"), "{error}");
        }
        // A transaction that exceeds its cache.
        client.query_drop("BEGIN").expect("begun");
        let large =
            (0..4).try_for_each(|_| client.query_drop("INSERT INTO t (v) VALUES (REPEAT('y', 100000))"));
        match large.and_then(|()| client.query_drop("COMMIT")) {
            Ok(()) => written += 4,
            Err(error) => {
                assert!(error.to_string().contains("Too many open files"), "{error}");
                client.query_drop("ROLLBACK").expect("rolled back");
            }
        }
    }
    drop((clients, strangers));
    let begun = Instant::now();
    while first.query_first::<u64, _>(SPILLING[0]).ok().flatten() != Some(90_000) {
        assert!(begun.elapsed() < PATIENCE, "descriptors come back");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(first.query_first("SELECT COUNT(*) FROM t").expect("answered"), Some(written));
    assert!(first.query::<mysql::Row, _>("SHOW BINARY LOGS").expect("answered").len() > 30);
    running.kill_and_restart();
    assert_eq!(running.in_test().query_first("SELECT COUNT(*) FROM t").expect("answered"), Some(written));
}
