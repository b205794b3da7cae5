//! Scripts about stored programs (`cases/*.sql`), run on both servers and compared.
//!
//! A script has parts that begin with `==== title`. Each begins in an empty database with new sessions. A
//! statement ends with `//` at the end of a line. Before it may stand:
//!
//! | prefix | meaning |
//! |---|---|
//! | `B: ` | another session than `A`; it is connected when it is used first |
//! | `B as poor: ` | a session of the account `poor`@`localhost` |
//! | `B&: ` | runs in the background until `B?//`, whose outcome is that of the statement |
//! | `-- differs: why` | a line before the statement: the outcomes are known to differ, and must |
//!
//! The outcome of a statement has its rows, its error, and the conditions that are left.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::seen;

/// The scripts.
const SCRIPTS: [(&str, &str); 10] = [
    ("aggregates", include_str!("cases/aggregates.sql")),
    ("expressions", include_str!("cases/expressions.sql")),
    ("inside", include_str!("cases/inside.sql")),
    ("locks", include_str!("cases/locks.sql")),
    ("numbers", include_str!("cases/numbers.sql")),
    ("out_arguments", include_str!("cases/out_arguments.sql")),
    ("rights", include_str!("cases/rights.sql")),
    ("temporary", include_str!("cases/temporary.sql")),
    ("traps", include_str!("cases/traps.sql")),
    ("variables", include_str!("cases/variables.sql")),
];

struct Step {
    session: char,
    account: Option<String>,
    is_background: bool,
    sql: String,
    /// Why the outcomes differ.
    differs: Option<String>,
}

fn steps(part: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut sql, mut differs) = (String::new(), None);
    for line in part.lines() {
        if let Some(why) = line.strip_prefix("-- differs: ") {
            differs = Some(why.to_owned());
            continue;
        }
        let Some(last) = line.trim_end().strip_suffix("//") else {
            if !line.trim().is_empty() {
                sql += line;
                sql.push('\n');
            }
            continue;
        };
        sql += last;
        steps.push(step(std::mem::take(&mut sql), differs.take()));
    }
    assert!(sql.trim().is_empty(), "a statement without an end: {sql}");
    steps
}

fn step(sql: String, differs: Option<String>) -> Step {
    let mut step = Step { session: 'A', account: None, is_background: false, sql, differs };
    let first = step.sql.chars().next().filter(char::is_ascii_uppercase);
    if let (Some(session), Some((prefix, rest))) = (first, step.sql.split_once(": ")) {
        let of = &prefix[1..];
        let account = of.strip_prefix(" as ");
        if of.is_empty() || of == "&" || account.is_some_and(|name| !name.contains(' ')) {
            (step.session, step.is_background) = (session, of == "&");
            step.account = account.map(str::to_owned);
            step.sql = rest.to_owned();
        }
    }
    if let (Some(session), "?") = (first, &step.sql[1..]) {
        step.session = session;
    }
    step
}

/// The sessions of a part on one server.
struct Sessions {
    options: OptsBuilder,
    idle: BTreeMap<char, Conn>,
    busy: BTreeMap<char, JoinHandle<(Conn, String)>>,
}

impl Sessions {
    fn begin(options: OptsBuilder) -> Sessions {
        let mut first = Conn::new(options.clone()).expect("connects");
        first.query_drop("DROP DATABASE IF EXISTS d; CREATE DATABASE d").expect("made");
        let mut sessions = Sessions { options, idle: BTreeMap::new(), busy: BTreeMap::new() };
        sessions.connect('A', None);
        sessions
    }

    fn connect(&mut self, session: char, account: Option<&str>) {
        let options = match account {
            Some(account) => self.options.clone().user(Some(account)),
            None => self.options.clone(),
        };
        let mut client = Conn::new(options.db_name(Some("d"))).expect("connects");
        // Lock waits that the scripts show are short.
        client.query_drop("SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1").expect("set");
        self.idle.insert(session, client);
    }

    fn run(&mut self, step: &Step) -> String {
        if step.sql == format!("{}?", step.session) {
            let busy = self.busy.remove(&step.session).expect("a statement runs in the background");
            let (client, outcome) = busy.join().expect("it ends");
            self.idle.insert(step.session, client);
            return outcome;
        }
        if !self.idle.contains_key(&step.session) {
            self.connect(step.session, step.account.as_deref());
        }
        if !step.is_background {
            let client = self.idle.get_mut(&step.session).expect("connected");
            return outcome(client, &step.sql);
        }
        let mut client = self.idle.remove(&step.session).expect("connected");
        let sql = step.sql.clone();
        let busy = std::thread::spawn(move || {
            let outcome = outcome(&mut client, &sql);
            (client, outcome)
        });
        self.busy.insert(step.session, busy);
        // It is waiting, or has begun at least.
        std::thread::sleep(Duration::from_millis(300));
        String::new()
    }
}

fn outcome(client: &mut Conn, sql: &str) -> String {
    let mut out = without_columns_of_errors(&seen(client, sql));
    if out.contains("ERROR") || client.warnings() > 0 {
        out += &seen(client, "SHOW WARNINGS");
    }
    out
}

/// Removes the columns of a result that ends with an error before its first row: MariaDB sends them earlier.
fn without_columns_of_errors(outcome: &str) -> String {
    let lines: Vec<&str> = outcome.lines().collect();
    let is_kept = |n: &usize| {
        let is_head = lines[*n].starts_with('(');
        !(is_head && lines.get(n + 1).is_some_and(|next| next.starts_with("ERROR ")))
    };
    (0..lines.len()).filter(is_kept).map(|n| format!("{}\n", lines[n])).collect()
}

/// Ends statements of MariaDB that run for long, until the sender is dropped: a time limit that is reached
/// between two statements of a body may be lost there, and the body loops for ever. So may KILL be.
fn end_lost_loops(theirs: OptsBuilder, scripts: &Receiver<()>) {
    let mut client = Conn::new(theirs).expect("connects");
    while scripts.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        let long = "SELECT id FROM information_schema.PROCESSLIST WHERE command = 'Query' AND time > 10";
        let ids: Vec<u64> = client.query(long).expect("listed");
        for id in ids {
            // Ignore errors: it has ended meanwhile.
            let _ = client.query_drop(format!("KILL QUERY {id}"));
        }
    }
}

/// Runs all scripts. Returns what differs otherwise than they say.
pub fn compared(ours: &OptsBuilder, theirs: &OptsBuilder) -> Vec<String> {
    let (scripts, are_running) = channel::<()>();
    let of_watch = theirs.clone();
    let watch = std::thread::spawn(move || end_lost_loops(of_watch, &are_running));
    let wrong = all_compared(ours, theirs);
    drop(scripts);
    watch.join().expect("no panic");
    wrong
}

fn all_compared(ours: &OptsBuilder, theirs: &OptsBuilder) -> Vec<String> {
    let only = std::env::var("COHORT_CASE").ok();
    let mut wrong = Vec::new();
    for (name, script) in SCRIPTS {
        for part in script.split("==== ").skip(1) {
            let (title, text) = part.split_once('\n').expect("a title");
            if only.as_ref().is_some_and(|only| !title.contains(only.as_str())) {
                continue;
            }
            let mut own = Sessions::begin(ours.clone());
            let mut other = Sessions::begin(theirs.clone());
            for step in steps(text) {
                let (here, there) = (own.run(&step), other.run(&step));
                let sql = &step.sql;
                match (&step.differs, here == there) {
                    (None, true) | (Some(_), false) => {}
                    (None, false) => {
                        wrong.push(format!("{name}: {title}\n{sql}\n--- MariaDB\n{there}--- here\n{here}"))
                    }
                    (Some(why), true) => {
                        wrong.push(format!("{name}: {title}\n{sql}\nno longer differs ({why}):\n{here}"))
                    }
                }
            }
        }
    }
    wrong
}
