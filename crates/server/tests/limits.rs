//! One client must not harm all: what it nests, asks for and leaves running, against a server that is a
//! process.

mod support;

use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use support::Cohort;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("SELECT {}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// Asked for as deep as the stack carries, and far deeper.
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
            // An answer or an error; the connection lives.
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
        // The same on stacks that wait beside each other.
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

/// Each would take hours.
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
