//! KILL and `max_statement_time` end statements that would run for hours, in all kinds of work.

mod support;

use std::sync::mpsc;
use std::time::Duration;

use cohort_base::ConnectionId;
use cohort_exec::{Command, Session};
use cohort_locks::KillLevel;
use support::run;

/// Timeout that suffices for a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Statements that would take hours, or exhaust the memory.
const ENDLESS: &[&str] = &[
    "select benchmark(9000000000000000000, 1 + 1)",
    "select benchmark(9000000000000000000, benchmark(9000000000000000000, sha2(k, 512))) from t",
    "do benchmark(9000000000000000000, 1)",
    "set @a = benchmark(9000000000000000000, 1)",
    "select id from t where benchmark(9000000000000000000, id)",
    "select id from t order by benchmark(9000000000000000000, id)",
    "select 1 from t a, t b, t c, t d, t e, t f where a.k + b.k + c.k + d.k + e.k + f.k < 0",
    "select count(*) from t a, t b, t c, t d, t e, t f",
    "select distinct a.k + b.k < 0 from t a, t b, t c, t d, t e, t f",
    "select a.k + b.k + c.k + d.k + e.k + f.k x from t a, t b, t c, t d, t e, t f order by x desc limit 1",
    "select group_concat(a.k) from t a, t b, t c, t d, t e, t f group by b.k",
    "select 1 from t where id in (select a.k from t a, t b, t c, t d, t e, t f where a.k + b.k + c.k + d.k + e.k + f.k < 0)",
    "select 1 union select a.k - a.k from t a, t b, t c, t d, t e, t f",
    "select a.k - a.k from t a, t b, t c, t d, t e, t f intersect select 1",
    "select 1 from (select a.k from t a, t b, t c, t d, t e, t f where a.k + b.k + c.k + d.k + e.k + f.k < 0) x",
    "with x as (select a.k from t a, t b, t c, t d, t e, t f where a.k + b.k + c.k + d.k + e.k + f.k < 0) select 1 from x",
    "insert into t select a.k, 1 from t a, t b, t c, t d, t e, t f where a.k + b.k + c.k + d.k + e.k + f.k < 0",
    "update t set k = benchmark(9000000000000000000, 1)",
    "delete from t where benchmark(9000000000000000000, id)",
    "insert into t values (100000, benchmark(9000000000000000000, 1))",
    "select 1 from information_schema.columns a, information_schema.columns b, information_schema.columns c, \
     information_schema.columns d where a.ordinal_position + b.ordinal_position + c.ordinal_position + d.ordinal_position < 0",
    "select @big like concat('%', @half, 'b')",
    "select @big like concat(repeat('%a', 100000), 'b')",
    "select locate(concat(@half, 'b'), @big)",
    "select locate(cast(concat(@half, 'b') as binary), cast(@big as binary))",
    "select replace(@big, concat(@half, 'b'), '')",
    "select json_contains(@ones, @twos)",
    "select json_overlaps(@ones, @threes)",
    "select benchmark(9000000000000000000, md5(@big))",
    "select json_merge_patch(@members, @others)",
    "select json_merge_preserve(@members, @others)",
    "select extractvalue(@xml, '//*[count(//*[count(//*[count(//*) = 0]) = 0]) = 0]')",
    "select benchmark(9000000000000000000, extractvalue(@xml, '//b/ancestor::*'))",
    "select benchmark(9000000000000000000, column_json(@columns))",
    "select count(*) from l, t a, t b where s + a.id + b.id = 5 or cast(s as signed) = 5 or cast(s as double) = 5",
    "select count(*) from l, t a, t b where conv(s, 10, 16) = a.id + b.id",
    "select count(*) from l, l m, t a, t b where l.s collate utf8mb4_unicode_ci < m.s collate utf8mb4_unicode_ci",
    "select max(s collate utf8mb4_unicode_ci), max(s collate utf8mb4_german2_ci) from l, t a, t b",
    "select distinct s collate utf8mb4_unicode_ci, s collate utf8mb4_german2_ci from l, t a, t b",
    "select count(distinct s collate utf8mb4_unicode_ci, s collate utf8mb4_german2_ci) from l, t a, t b",
    "select count(*) from l, t a, t b group by s collate utf8mb4_unicode_ci, s collate utf8mb4_german2_ci",
    "select length(s) from l, t a, t b order by s collate utf8mb4_unicode_ci, s collate utf8mb4_german2_ci",
    "select row_number() over (order by s collate utf8mb4_unicode_ci) from l, t a, t b",
    "select s collate utf8mb4_unicode_ci from l, t a, t b union select s from l",
    "create or replace table c select a.k from t a, t b, t c, t d, t e, t f where a.k + b.k + c.k + d.k + e.k + f.k < 0",
];

/// Creates a session with a table of 300 rows, a table with few rows of long texts, and large variables.
fn session() -> Session {
    let db = support::database_in_real_time();
    let mut session = support::session(&db, 1);
    run(&mut session, "create table t (id int not null primary key, k int)");
    let rows: Vec<String> = (1..=300).map(|n| format!("({n},{n})")).collect();
    run(&mut session, &format!("insert into t values {}", rows.join(",")));
    for set in [
        "set @big = repeat('a', 8000000), @half = repeat('a', 4000000)",
        "set @ones = concat('[', repeat('1,', 100000), '2]'), @twos = concat('[', repeat('2,', 100000), '1]')",
        "set @threes = concat('[', repeat('3,', 100000), '4]')",
        "set @xml = concat(repeat('<b>', 3000), 'x', repeat('</b>', 3000))",
        "set @columns = column_create('a', repeat('x', 1000000))",
    ] {
        assert_eq!(run(&mut session, set), "");
    }
    assert_eq!(run(&mut session, "create table l (s longtext) character set utf8mb4"), "");
    for digit in 1..=3 {
        assert_eq!(run(&mut session, &format!("insert into l values (concat(@big, {digit}))")), "");
    }
    for (name, prefix) in [("@members", 'a'), ("@others", 'b')] {
        let members: Vec<String> = (0..150_000).map(|n| format!("\"{prefix}{n}\":1")).collect();
        assert_eq!(run(&mut session, &format!("set {name} = '{{{}}}'", members.join(","))), "");
    }
    session
}

/// Runs the statements and calls `before` ahead of each. Returns their results.
fn answers(prepare: &str, mut before: impl FnMut(&Session)) -> Vec<String> {
    let (sender, receiver) = mpsc::channel();
    let mut session = session();
    assert_eq!(run(&mut session, prepare), "");
    before(&session);
    std::thread::Builder::new()
        .stack_size(8 << 20)
        .spawn(move || {
            for statement in ENDLESS {
                let answer = run(&mut session, statement);
                assert_eq!(run(&mut session, "select 'alive'"), "alive\nalive\n");
                if sender.send(answer).is_err() {
                    return;
                }
            }
        })
        .expect("a thread");
    let mut answers = Vec::new();
    for statement in ENDLESS {
        answers.push(
            receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("goes on for ever: {statement}")),
        );
    }
    answers
}

#[test]
fn the_time_limit_ends_everything() {
    let limit = "ERROR 1969 (70100): Query execution was interrupted (max_statement_time exceeded)\n";
    for (statement, answer) in ENDLESS.iter().zip(answers("set max_statement_time = 0.05", |_| ())) {
        assert!(answer.ends_with(limit), "{statement}: {answer}");
    }
}

#[test]
fn kill_ends_everything() {
    let killed = "ERROR 1317 (70100): Query execution was interrupted\n";
    let answers = answers("set max_statement_time = 0", |session| {
        let db = session.database().clone();
        std::thread::spawn(move || {
            while let Some(process) = db.processes.get(ConnectionId(1)) {
                std::thread::sleep(Duration::from_millis(60));
                let text = process.snapshot(&|_| None).info.unwrap_or_default();
                if process.command() == Command::Query && ENDLESS.contains(&text.as_str()) {
                    process.kill(KillLevel::Query);
                }
            }
        });
    });
    for (statement, answer) in ENDLESS.iter().zip(answers) {
        assert!(answer.ends_with(killed), "{statement}: {answer}");
    }
}

/// Searches and texts that take at least seconds.
const LONG: [&str; 5] = [
    "SELECT id FROM t WHERE MATCH (b) AGAINST (REPEAT('abc \" def ', 1600000) IN BOOLEAN MODE)",
    "SELECT id FROM t WHERE MATCH (b) AGAINST (REPEAT('abc def ', 2000000))",
    "SELECT id FROM t WHERE MATCH (b) AGAINST (CONCAT('\"', REPEAT('foo ', 50000), 'bar\"') IN BOOLEAN MODE)",
    "INSERT INTO t SELECT 3, GROUP_CONCAT('w', seq SEPARATOR ' ') FROM seq_1_to_400000",
    "UPDATE t SET b = REPEAT('another word ', 1000000)",
];

#[test]
fn searches_and_texts_of_any_length_are_interrupted() {
    let db = support::database_in_real_time();
    let mut session = support::session(&db, 1);
    let made = run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, b LONGTEXT, FULLTEXT (b))");
    assert_eq!(made, "");
    run(&mut session, "INSERT INTO t VALUES (1, CONCAT(REPEAT('foo ', 100000), 'bar')), (2, 'word')");
    run(&mut session, "SET group_concat_max_len = 16777216, max_statement_time = 0.1");
    for statement in LONG {
        let answer = run(&mut session, statement);
        assert!(answer.contains("max_statement_time exceeded"), "{statement}: {answer}");
    }
    // A search with too many words for the index evaluates all rows.
    run(&mut session, "SET max_statement_time = 0");
    run(&mut session, "SET @words = (SELECT GROUP_CONCAT('w', seq SEPARATOR ' ') FROM seq_1_to_1000)");
    let found = run(&mut session, "SELECT COUNT(*) FROM t WHERE MATCH (b) AGAINST (CONCAT(@words, ' bar'))");
    assert!(found.trim_end().ends_with('1'), "{found}");
    let checked = run(&mut session, "CHECK TABLE t");
    assert!(checked.contains("status\tOK"), "{checked}");
}

#[test]
fn an_interrupted_check_reports_no_damage() {
    let db = support::database_in_real_time();
    let mut session = support::session(&db, 1);
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, k INT, KEY (k))");
    run(&mut session, "INSERT INTO t SELECT seq, seq FROM seq_1_to_60000");
    run(&mut session, "SET max_statement_time = 0.000001");
    let checked = run(&mut session, "CHECK TABLE t");
    assert!(checked.contains("max_statement_time exceeded"), "{checked}");
}

/// KILL QUERY ID ends the statement with a number from the process list, and no later statement.
#[test]
fn kill_query_id_ends_one_statement() {
    let db = support::database_in_real_time();
    let mut session = support::session(&db, 1);
    let mut other = support::session(&db, 2);
    const SLEEPER: &str = "SELECT SLEEP(100), 'here'";
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| run(&mut session, SLEEPER));
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let asked =
                "SET @id = (SELECT QUERY_ID FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep')";
            run(&mut other, asked);
            if run(&mut other, "SELECT @id IS NULL").ends_with("0\n") {
                break;
            }
            assert!(std::time::Instant::now() < end, "it sleeps");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(run(&mut other, "KILL QUERY ID @id"), "");
        let answer = sleeper.join().expect("no panic");
        assert!(answer.contains("ERROR 1317 (70100)"), "{answer}");
    });
    // The connection now runs another statement.
    run(&mut session, "SELECT 1");
    let gone = run(&mut other, "KILL QUERY ID @id");
    assert!(gone.starts_with("ERROR 1957 (HY000): Unknown query id: "), "{gone}");
    let own = run(&mut other, "KILL QUERY CONNECTION_ID()");
    assert!(own.starts_with("ERROR 1317 (70100)"), "{own}");
}
