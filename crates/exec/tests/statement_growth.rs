//! Growth test: short statements with tokens repeated or wrapped a thousand times. Each must end in bounded
//! time with a result or an error, keep to its memory limit, and release all memory.
//!
//! `COHORT_LONG_TESTS=1` runs many more; `COHORT_FUZZ_SEED=N` selects another seed.

mod grammar;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_base::ConnectionId;
use cohort_locks::KillLevel;
use grammar::{Grammar, TABLES};
use world::{Client, Server};

/// Words of statements that wait, or that end the session.
const NOT_RUN: &[&str] = &["sleep", "benchmark", "get_lock", "_wait", "shutdown", "kill"];
/// Time after which a statement is killed.
const RUN_MAX: Duration = Duration::from_millis(500);
/// Time within which a killed statement must end, even on a slow machine.
const END_MAX: Duration = Duration::from_secs(60);
/// Maximum bytes of a statement.
const TEXT_BYTES_MAX: usize = 400_000;
const MEMORY_BYTES_MAX: u64 = 64 << 20;
const WRAPPERS: &[(&str, &str)] = &[
    ("(", ")"),
    ("abs(", ")"),
    ("not ", ""),
    ("- ", ""),
    ("(select ", ")"),
    ("coalesce(", ", 1)"),
    ("case when ", " then 1 end"),
    ("cast(", " as char)"),
    ("json_array(", ")"),
    ("(select * from ", ") x"),
    ("1 in (", ")"),
    ("exists (select ", ")"),
    ("explain ", ""),
    ("with x as (", ") select 1"),
];

fn seed() -> u64 {
    std::env::var("COHORT_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn statements() -> u64 {
    if std::env::var_os("COHORT_LONG_TESTS").is_some() { 20_000 } else { 300 }
}

/// Returns the statement with some of its words repeated or wrapped a thousand times.
fn grown(grammar: &Grammar, sql: &str) -> String {
    let words: Vec<&str> = sql.split_inclusive([' ', '(', ')', ',']).collect();
    let from = grammar.below(words.len());
    let to = (from + 1 + grammar.below(6)).min(words.len());
    let (before, part, after) = (words[..from].concat(), words[from..to].concat(), words[to..].concat());
    let times = grammar.pick(&[2, 30, 63, 64, 65, 300, 1000, 20_000]);
    if grammar.below(2) == 0 {
        let separator =
            grammar.pick(&[" ", " ", ", ", " and ", " + ", " or ", " union all ", " union ", " join "]);
        let one = format!("{part}{separator}");
        let times = times.min(TEXT_BYTES_MAX / one.len());
        return format!("{before}{}{part}{after}", one.repeat(times));
    }
    let (open, close) = grammar.pick(WRAPPERS);
    let times = times.min(TEXT_BYTES_MAX / (open.len() + close.len()));
    format!("{before}{}{part}{}{after}", open.repeat(times), close.repeat(times))
}

/// Returns a long statement of short expressions and queries.
fn long(grammar: &Grammar) -> String {
    let times = grammar.pick(&[1, 30, 62, 300, 900, 3000]);
    let (e, f) = (grammar.expression(1), grammar.expression(0));
    let operator = grammar.pick(&["+", "AND", "OR", "XOR", "=", "*", "||", "&", "<=>"]);
    let select = grammar.select(0);
    let chain = |separator: &str, one: &str| format!("{one}{}", format!(" {separator} {one}").repeat(times));
    match grammar.below(9) {
        0 => format!("SELECT {} FROM t LIMIT 3", chain(operator, &format!("({e})"))),
        1 => format!("SELECT 1 FROM t WHERE {} LIMIT 3", chain(operator, &format!("({f})"))),
        2 => {
            let (open, close) = grammar.pick(&WRAPPERS[..4]);
            format!("SELECT {}{f}{} FROM u LIMIT 3", open.repeat(times), close.repeat(times))
        }
        3 => chain(grammar.pick(&["UNION ALL", "UNION", "EXCEPT", "INTERSECT"]), &format!("({select})")),
        4 => format!("SELECT {f} IN ({}) FROM v", chain(",", &f)),
        5 => format!("INSERT INTO v (b) VALUES {}", chain(",", &format!("({f})"))),
        6 => format!(
            "SELECT * FROM {}(SELECT {f} y) x{}",
            "(SELECT y FROM ".repeat(times),
            ") x".repeat(times)
        ),
        7 => {
            let next = |n| format!(", c{} AS (SELECT a.y FROM c{n} a, c{n} b)", n + 1);
            let tables: String = (0..times.min(300)).map(next).collect();
            format!("WITH c0 AS (SELECT {f} y){tables} SELECT COUNT(*) FROM c{}", times.min(300))
        }
        _ => format!("SELECT CASE {} END FROM t", format!("WHEN {f} THEN {f} ").repeat(times)),
    }
}

/// Kills the statement of connection 1 if `began` does not change for too long; 0 ends the thread.
fn watch(server: &Server, began: &Arc<AtomicU64>) -> std::thread::JoinHandle<()> {
    let (db, began) = (Arc::clone(&server.db), Arc::clone(began));
    std::thread::spawn(move || {
        let (mut last, mut since) = (u64::MAX, Instant::now());
        loop {
            match began.load(Ordering::SeqCst) {
                0 => return,
                same if same == last && since.elapsed() > RUN_MAX => {
                    if let Some(process) = db.processes.get(ConnectionId(1)) {
                        process.kill(KillLevel::Query);
                    }
                }
                same if same == last => {}
                other => (last, since) = (other, Instant::now()),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}

fn memory_used(client: &mut Client) -> u64 {
    let answer = client.run("SHOW STATUS LIKE 'Memory_used'");
    let value = answer.split_whitespace().last().and_then(|value| value.parse().ok());
    value.unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn grown_statements_end_and_give_their_memory_back() {
    let grammar = Grammar::new(seed());
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    TABLES.iter().for_each(|sql| client.ok(sql));
    client.ok(&format!("SET max_session_mem_used = {MEMORY_BYTES_MAX}"));
    let began = Arc::new(AtomicU64::new(1));
    let watcher = watch(&server, &began);
    let (mut answered, mut refused) = (0, 0);
    for n in 0..statements() {
        let sql = match grammar.below(2) {
            0 => grown(&grammar, &grammar.statement()),
            _ => long(&grammar),
        };
        let sql = sql.replace('?', "@v");
        let lower = sql.to_lowercase();
        if NOT_RUN.iter().any(|word| lower.contains(word)) {
            continue;
        }
        let shown = || lower.chars().take(500).collect::<String>();
        began.fetch_add(1, Ordering::SeqCst);
        let since = Instant::now();
        let answer = client.run(&sql);
        assert!(
            since.elapsed() < END_MAX,
            "seed {} statement {n}: {:?}: {}",
            seed(),
            since.elapsed(),
            shown()
        );
        match answer.starts_with("ERROR ") {
            true => refused += 1,
            false => answered += 1,
        }
        client.run("ROLLBACK");
        client.run("SET @v = 1");
        let held = memory_used(&mut client);
        assert!(held <= MEMORY_BYTES_MAX, "seed {} statement {n} holds {held}: {}", seed(), shown());
    }
    began.store(0, Ordering::SeqCst);
    watcher.join().expect("the watcher ends");
    println!("seed {}: {answered} answered, {refused} refused", seed());
    assert!(answered > statements() / 10, "{answered} of {}", statements());
    // Only user variables outlive a statement.
    let names: Vec<String> = ["v", "a", "b", "x"].iter().map(|name| format!("@{name} = NULL")).collect();
    client.ok(&format!("SET {}", names.join(", ")));
    assert!(memory_used(&mut client) < 1 << 20);
}
