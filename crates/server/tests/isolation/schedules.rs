//! Runs schedules of two or three sessions on Cohort and on MariaDB: the same statements must wait, and all
//! replies must be equal.
//!
//! `schedules.txt` lists the schedules: `== name`, followed by lines `session: statement` in order. A
//! statement waits for a lock if `information_schema.innodb_trx` says so for its session. A line `-- only
//! here: waits`, or `passes`, before a statement says that Cohort does this and MariaDB does the opposite.
//! The reason is given next to it, and the schedule ends there.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::support::{Cohort, Maria, shown};

const SCRIPT: &str = include_str!("schedules.txt");
/// MariaDB refreshes innodb_trx only after this time.
const STALE: Duration = Duration::from_millis(110);

struct Step {
    session: char,
    statement: &'static str,
    /// "waits" or "passes", if MariaDB does the opposite.
    only_here: Option<&'static str>,
}

struct Schedule {
    name: &'static str,
    steps: Vec<Step>,
}

fn parse(script: &'static str) -> Vec<Schedule> {
    let mut schedules: Vec<Schedule> = Vec::new();
    let mut only_here = None;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            schedules.push(Schedule { name, steps: Vec::new() });
        } else if let Some(text) = line.strip_prefix("-- only here: ") {
            only_here = Some(if text.starts_with("waits") { "waits" } else { "passes" });
        } else {
            let (session, statement) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
            let session = session.chars().next().expect("a name");
            let schedule = schedules.last_mut().expect("a schedule has begun");
            schedule.steps.push(Step { session, statement, only_here: only_here.take() });
        }
    }
    schedules
}

/// A connection with its own thread, so that a statement may wait.
struct Session {
    id: u32,
    statements: Sender<String>,
    answers: Receiver<String>,
    waits: bool,
}

impl Session {
    fn new(options: OptsBuilder) -> Session {
        let mut client = Conn::new(options.db_name(Some("test"))).expect("a connection");
        let id = client.connection_id();
        let (statements, wanted) = channel::<String>();
        let (say, answers) = channel();
        thread::spawn(move || {
            for statement in wanted {
                if say.send(answer(&mut client, &statement)).is_err() {
                    return;
                }
            }
        });
        Session { id, statements, answers, waits: false }
    }
}

fn answer(client: &mut Conn, statement: &str) -> String {
    let mut rows = Vec::new();
    let mut result = match client.query_iter(statement) {
        Ok(result) => result,
        Err(mysql::Error::MySqlError(error)) => return format!("error {}: {}", error.code, error.message),
        Err(other) => return format!("the connection failed: {other}"),
    };
    let mut affected = 0;
    while let Some(set) = result.iter() {
        affected += set.affected_rows();
        for row in set {
            match row {
                Ok(row) => {
                    rows.push(row.unwrap().iter().map(shown).collect::<Vec<_>>().join(","));
                }
                Err(mysql::Error::MySqlError(error)) => {
                    return format!("error {}: {}", error.code, error.message);
                }
                Err(other) => return format!("the connection failed: {other}"),
            }
        }
    }
    format!("{affected} affected [{}]", rows.join(" "))
}

struct Player {
    options: OptsBuilder,
    monitor: Conn,
    sessions: BTreeMap<char, Session>,
    recorded: Vec<String>,
}

impl Player {
    fn new(options: OptsBuilder) -> Player {
        let monitor = Conn::new(options.clone()).expect("a connection");
        Player { options, monitor, sessions: BTreeMap::new(), recorded: Vec::new() }
    }

    fn is_in_lock_wait(&mut self, id: u32) -> bool {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = {id} AND trx_state = 'LOCK WAIT'"
        );
        self.monitor.query_first::<u64, _>(sql).expect("answers").expect("a row") > 0
    }

    /// Returns the session's reply, or `None` if it waits for a lock.
    fn answer_of(&mut self, name: char) -> Option<String> {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let session = &self.sessions[&name];
            if let Ok(answer) = session.answers.recv_timeout(STALE) {
                return Some(answer);
            }
            let id = session.id;
            if self.is_in_lock_wait(id) {
                return None;
            }
            assert!(Instant::now() < end, "{name} neither answers nor waits: {:?}", self.recorded);
        }
    }

    /// Records the replies of sessions whose wait has ended.
    fn look_at_waiting(&mut self) {
        let waiting: Vec<char> = self.sessions.iter().filter(|(_, s)| s.waits).map(|(n, _)| *n).collect();
        for name in waiting {
            if let Some(answer) = self.answer_of(name) {
                self.sessions.get_mut(&name).expect("it waits").waits = false;
                self.recorded.push(format!("{name} goes on: {answer}"));
            }
        }
    }

    fn play(&mut self, step: &Step) -> bool {
        let options = &self.options;
        let session = self.sessions.entry(step.session).or_insert_with(|| Session::new(options.clone()));
        if session.waits {
            self.recorded.push(format!("{} still waits at {}", step.session, step.statement));
            return true;
        }
        session.statements.send(step.statement.to_owned()).expect("it lives");
        let answer = self.answer_of(step.session);
        let waits = answer.is_none();
        self.sessions.get_mut(&step.session).expect("made above").waits = waits;
        let what = answer.unwrap_or_else(|| "waits".to_owned());
        self.recorded.push(format!("{}: {} => {what}", step.session, step.statement));
        self.look_at_waiting();
        waits
    }
}

/// Runs a schedule. Returns the replies, and whether the last statement waited.
fn play(options: OptsBuilder, schedule: &Schedule) -> (Vec<String>, bool) {
    let mut player = Player::new(options);
    let prepared = [
        "DROP TABLE IF EXISTS test.t, test.u, test.h, test.w",
        "CREATE TABLE test.t (id INT PRIMARY KEY, k INT, v INT DEFAULT 0, KEY(k)) ENGINE=InnoDB",
        "INSERT INTO test.t (id, k) VALUES (10, 10), (20, 20), (30, 30), (40, 40), (50, 50)",
        "CREATE TABLE test.u (id INT PRIMARY KEY, u INT UNIQUE, v INT DEFAULT 0) ENGINE=InnoDB",
        "INSERT INTO test.u (id, u) VALUES (1, 10), (2, 20), (3, 30)",
        "CREATE TABLE test.h (a INT, b INT) ENGINE=InnoDB",
        "INSERT INTO test.h VALUES (1, 1), (2, 2)",
        "CREATE TABLE test.w (id INT PRIMARY KEY, body TEXT, UNIQUE (body)) ENGINE=InnoDB",
        "INSERT INTO test.w VALUES (7, 'seven')",
    ];
    for statement in prepared {
        player.monitor.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    let mut waits = false;
    for step in &schedule.steps {
        waits = player.play(step);
        let is_stuck = player.recorded.last().is_some_and(|recorded| recorded.contains(" still waits at "));
        if step.only_here.is_some() {
            player.recorded.pop();
        }
        if is_stuck || step.only_here.is_some() {
            break;
        }
    }
    (player.recorded, waits)
}

#[test]
fn sessions_wait_for_each_other_as_on_mariadb() {
    let cohort = Cohort::new(&["--innodb-lock-wait-timeout=60"]);
    let maria = Maria::new(&["--innodb-lock-wait-timeout=60"]);
    let only = std::env::var("COHORT_SCHEDULE").unwrap_or_default();
    let mut wrong = Vec::new();
    for schedule in parse(SCRIPT).iter().filter(|schedule| schedule.name.contains(&only)) {
        let (here, there) = thread::scope(|scope| {
            let here = scope.spawn(|| play(cohort.options(), schedule));
            let there = scope.spawn(|| play(maria.options(), schedule));
            (here.join().expect("plays"), there.join().expect("plays"))
        });
        let last = schedule.steps.last().and_then(|step| step.only_here);
        let is_known = last.is_none_or(|only_here| here.1 == (only_here == "waits") && there.1 != here.1);
        if here.0 != there.0 || !is_known {
            let differ = here.0.iter().zip(&there.0).position(|(a, b)| a != b);
            wrong.push(format!(
                "== {}\nfirst difference: {differ:?}\nhere:\n  {}\nMariaDB:\n  {}\nlast waits: {} {}",
                schedule.name,
                here.0.join("\n  "),
                there.0.join("\n  "),
                here.1,
                there.1
            ));
        }
    }
    assert!(wrong.is_empty(), "{} schedules differ:\n{}", wrong.len(), wrong.join("\n"));
}
