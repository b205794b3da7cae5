//! DDL on filled tables, killed at random times: after the restart the statement must have taken effect
//! together with its binary log event, or neither.

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use crate::scale::{Dice, long_or};
use crate::support::{Cohort, rows, run, text};

const ROWS: usize = 40_000;
const SEED: u64 = 21;

/// Statements, each with a query that shows whether it has taken effect.
const CHANGES: [(&str, &str); 6] = [
    (
        "CREATE INDEX by_v ON t (v)",
        "SELECT COUNT(*) FROM information_schema.statistics WHERE index_name = 'by_v'",
    ),
    (
        "DROP INDEX by_v ON t",
        "SELECT 1 - COUNT(*) FROM information_schema.statistics WHERE index_name = 'by_v'",
    ),
    (
        "ALTER TABLE t ADD COLUMN extra INT DEFAULT 7",
        "SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 't' AND column_name = 'extra'",
    ),
    (
        "ALTER TABLE t DROP COLUMN extra",
        "SELECT 1 - COUNT(*) FROM information_schema.columns WHERE table_name = 't' AND column_name = 'extra'",
    ),
    (
        "ALTER TABLE t ADD UNIQUE KEY by_u (u)",
        "SELECT COUNT(*) FROM information_schema.statistics WHERE index_name = 'by_u'",
    ),
    (
        "ALTER TABLE t DROP KEY by_u",
        "SELECT 1 - COUNT(*) FROM information_schema.statistics WHERE index_name = 'by_u'",
    ),
];

fn filled(server: &Cohort) {
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v INT, u BIGINT, c CHAR(60))").expect("made");
    for part in 0..ROWS / 1000 {
        let values: Vec<String> = (part * 1000..(part + 1) * 1000)
            .map(|n| format!("({n}, {}, {}, 'filler {n}')", n % 97, n * 3))
            .collect();
        client.query_drop(format!("INSERT INTO t VALUES {}", values.join(","))).expect("filled");
    }
}

/// Returns how often the text occurs in the binary log.
fn logged(server: &Cohort, sql: &str) -> usize {
    server.client().query_drop("SHOW BINARY LOGS").expect("the files catch up");
    let index = std::fs::read_to_string(server.datadir.join("binlog.index")).expect("an index");
    let files: Vec<String> =
        index.lines().map(|line| server.datadir.join(line).display().to_string()).collect();
    let arguments: Vec<&str> =
        ["--no-defaults"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let output = run("mariadb-binlog", &arguments);
    assert!(output.status.success(), "{}", text(&output));
    text(&output).lines().filter(|line| *line == sql).count()
}

fn check_rows(server: &Cohort) {
    let mut client = server.in_test();
    let sums = format!("{ROWS}\t{}\n", (0..ROWS).map(|n| n * 3).sum::<usize>());
    assert_eq!(rows(&mut client, "SELECT COUNT(*), SUM(u) FROM t"), sums);
    // Through any available index.
    let expected = (0..ROWS).filter(|n| n % 97 == 5).count();
    assert_eq!(rows(&mut client, "SELECT COUNT(*) FROM t WHERE v = 5"), format!("{expected}\n"));
    assert_eq!(rows(&mut client, "SELECT id FROM t WHERE u = 3000"), "1000\n");
}

#[test]
fn ddl_that_is_killed_has_happened_with_its_event_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Cohort::start(folder.path(), "data", &[]);
    filled(&server);
    let mut dice = Dice::new(SEED);
    let (mut happened, mut events) = (0, [0; CHANGES.len()]);
    let rounds = long_or(60, 8);
    let mut next = 0;
    // The duration of such a statement, measured with the first one that is not killed.
    let mut took = Duration::from_millis(300);
    for round in 0..rounds {
        let (sql, question) = CHANGES[next];
        let mut client = server.in_test();
        let begun = Instant::now();
        let running = std::thread::spawn(move || client.query_drop(sql).is_ok());
        if round == 0 {
            assert!(running.join().expect("no panic"));
            took = begun.elapsed();
            server.kill();
        } else {
            std::thread::sleep(took.mul_f64(dice.below(110) as f64 / 100.0));
            server.kill();
            let acknowledged = running.join().expect("no panic");
            server.restart();
            let is_there = rows(&mut server.in_test(), question) == "1\n";
            assert!(
                is_there || !acknowledged,
                "I4: {sql} was acknowledged and is undone, seed {SEED} round {round}"
            );
            server.kill();
        }
        server.restart();
        let is_there = rows(&mut server.in_test(), question) == "1\n";
        events[next] += usize::from(is_there);
        assert_eq!(logged(&server, sql), events[next], "{sql}, seed {SEED} round {round}");
        check_rows(&server);
        if is_there {
            happened += 1;
            next = (next + 1) % CHANGES.len();
        }
    }
    println!("seed {SEED}: {rounds} rounds, {happened} happened");
}

/// Statements whose progress SHOW PROCESSLIST shows, with the state.
const LONG: &[(&str, &str)] = &[
    ("ALTER TABLE t DROP INDEX IF EXISTS by_c, ADD INDEX by_c (c)", "copy to tmp table"),
    ("ALTER TABLE t FORCE", "copy to tmp table"),
    ("CHECK TABLE t", "Checking table"),
    ("LOAD DATA INFILE 'rows' REPLACE INTO TABLE t", "Reading file"),
];

#[test]
fn progress_of_long_statements_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    filled(&server);
    server.in_test().query_drop("SELECT * FROM t INTO OUTFILE 'rows'").expect("written");
    let mut watcher = server.in_test();
    for (statement, state) in LONG {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10 {
            let mut client = server.in_test();
            let running = std::thread::spawn(move || client.query_drop(statement).expect("runs"));
            while !running.is_finished() {
                let shown =
                    "SELECT state, progress FROM information_schema.processlist WHERE id <> CONNECTION_ID()";
                let list: Vec<(String, f64)> = watcher.query(shown).expect("rows");
                let of_state = list.into_iter().filter(|(shown, progress)| shown == state && *progress > 0.0);
                seen.extend(of_state.map(|(_, progress)| (progress * 10.0) as i64));
            }
            running.join().expect("no panic");
            if seen.len() >= 2 {
                break;
            }
        }
        assert!(seen.len() >= 2, "{statement}: only these were seen: {seen:?}");
    }
}
