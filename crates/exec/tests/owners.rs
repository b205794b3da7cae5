//! Deadlocks through every pair of lock owners of a session. The session holds a lock through one owner,
//! another session waits for that lock, and the session waits through another owner for a lock of the other
//! session, or of a third one in the cycle. Each deadlock must be resolved immediately, with error 1213 for
//! one session.

mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use world::{Client, Server};

/// A lock that a session takes through one of its owners.
struct Held {
    name: &'static str,
    takes: &'static [&'static str],
    /// Statements of intermediate sessions, each of which waits for the one before and blocks the next one.
    between: &'static [&'static str],
    /// The statement that waits for the lock, or for the last intermediate session.
    waits: &'static str,
}

/// Locks that the examined session holds.
const HOLDS: &[Held] = &[
    Held {
        name: "names of the transaction",
        takes: &["BEGIN", "SELECT * FROM h"],
        between: &["ALTER TABLE h ADD x INT"],
        waits: "SELECT * FROM h",
    },
    Held {
        name: "rows of the transaction",
        takes: &["BEGIN", "UPDATE h SET v = 5"],
        between: &[],
        waits: "UPDATE h SET v = 6",
    },
    Held { name: "LOCK TABLES", takes: &["LOCK TABLES h READ"], between: &[], waits: "UPDATE h SET v = 6" },
    Held {
        name: "BACKUP LOCK",
        takes: &["BACKUP LOCK h"],
        between: &["ALTER TABLE h ADD x INT"],
        waits: "SELECT * FROM h",
    },
    Held {
        name: "FLUSH TABLES WITH READ LOCK",
        takes: &["FLUSH TABLES WITH READ LOCK"],
        between: &[],
        waits: "UPDATE h SET v = 6",
    },
    Held {
        name: "GET_LOCK",
        takes: &["SELECT GET_LOCK('h', 0)"],
        between: &[],
        waits: "SELECT GET_LOCK('h', 40)",
    },
    Held {
        name: "an XA branch that has ended",
        takes: &["XA START 'x'", "UPDATE h SET v = 5", "XA END 'x'"],
        between: &[],
        waits: "UPDATE h SET v = 6",
    },
    Held {
        name: "a prepared XA branch",
        takes: &["XA START 'x'", "UPDATE h SET v = 5", "XA END 'x'", "XA PREPARE 'x'"],
        between: &[],
        waits: "UPDATE h SET v = 6",
    },
];

/// Locks that the session waits for, and the other session holds.
const WAITS: &[Held] = &[
    Held {
        name: "a name",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &["ALTER TABLE w ADD x INT"],
        waits: "SELECT * FROM w",
    },
    Held {
        name: "the name of a parent",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &["ALTER TABLE w ADD x INT"],
        waits: "INSERT INTO child VALUES (1, 1)",
    },
    Held {
        name: "a row",
        takes: &["BEGIN", "UPDATE w SET v = 5"],
        between: &[],
        waits: "UPDATE w SET v = 6",
    },
    Held {
        name: "a definition",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &[],
        waits: "ALTER TABLE w ADD y INT",
    },
    Held {
        name: "LOCK TABLES",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &[],
        waits: "LOCK TABLES w WRITE",
    },
    Held {
        name: "BACKUP LOCK",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &["ALTER TABLE w ADD x INT"],
        waits: "BACKUP LOCK w",
    },
    Held {
        name: "GET_LOCK",
        takes: &["SELECT GET_LOCK('w', 0)"],
        between: &[],
        waits: "SELECT GET_LOCK('w', 40)",
    },
    Held {
        name: "the row of a sequence",
        takes: &["BEGIN", "SELECT * FROM s FOR UPDATE"],
        between: &[],
        waits: "SELECT NEXTVAL(s)",
    },
    Held {
        name: "the server, to keep writes out",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &["ALTER TABLE w ADD x INT"],
        waits: "FLUSH TABLES WITH READ LOCK",
    },
    Held {
        name: "the server, for read_only",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &["ALTER TABLE w ADD x INT"],
        waits: "SET GLOBAL read_only = 0",
    },
    Held {
        name: "the server, for a logged statement",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &["ALTER TABLE w ADD x INT", "FLUSH TABLES WITH READ LOCK"],
        waits: "ANALYZE TABLE h",
    },
    Held {
        name: "the server, for XA PREPARE",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &["ALTER TABLE w ADD x INT", "FLUSH TABLES WITH READ LOCK"],
        waits: "XA PREPARE 'x'",
    },
    Held {
        name: "the server, for a sequence",
        takes: &["BEGIN", "SELECT * FROM w"],
        between: &["ALTER TABLE w ADD x INT", "FLUSH TABLES WITH READ LOCK"],
        waits: "SELECT NEXTVAL(s)",
    },
];

/// Long enough that no lock wait times out during the test.
const TIMEOUTS: &str = "SET lock_wait_timeout = 40, innodb_lock_wait_timeout = 40";
/// Time after which a started statement is assumed to wait.
const SETTLES: Duration = Duration::from_millis(60);

fn give_all_back(client: &mut Client) {
    for statement in [
        "ROLLBACK",
        "XA END 'x'",
        "XA ROLLBACK 'x'",
        "UNLOCK TABLES",
        "BACKUP UNLOCK",
        "DO RELEASE_ALL_LOCKS()",
    ] {
        client.run(statement);
    }
}

/// Runs a statement in a thread, then releases all locks of its session.
fn apart(mut client: Client, statement: &'static str) -> thread::JoinHandle<String> {
    let waiting = thread::spawn(move || {
        let answer = client.run(statement);
        give_all_back(&mut client);
        answer
    });
    thread::sleep(SETTLES);
    waiting
}

fn server() -> (Server, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut root = server.connect();
    for statement in [
        "CREATE TABLE h (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE w (id INT PRIMARY KEY, v INT)",
        "INSERT INTO h VALUES (1, 1)",
        "INSERT INTO w VALUES (1, 1)",
        "CREATE TABLE child (id INT PRIMARY KEY, w INT, FOREIGN KEY (w) REFERENCES w (id))",
        "CREATE SEQUENCE s NOCACHE",
    ] {
        root.ok(statement);
    }
    (server, root)
}

/// Returns the results of all sessions, starting with the examined one.
fn answers(hold: &Held, wait: &Held) -> Vec<String> {
    let (mut server, _root) = server();
    let mut connect = || {
        let mut client = server.connect();
        client.ok(TIMEOUTS);
        client
    };
    let (mut session, mut other) = (connect(), connect());
    let between: Vec<Client> = (0..hold.between.len() + wait.between.len()).map(|_| connect()).collect();
    for statement in wait.takes {
        other.ok(statement);
    }
    for statement in hold.takes {
        session.ok(statement);
    }
    let queued = wait.between.iter().chain(hold.between);
    let mut waiting: Vec<_> =
        between.into_iter().zip(queued).map(|(client, statement)| apart(client, statement)).collect();
    waiting.push(apart(other, hold.waits));
    let own = session.run(wait.waits);
    give_all_back(&mut session);
    drop(session);
    [own].into_iter().chain(waiting.into_iter().map(|it| it.join().expect("no panic"))).collect()
}

#[test]
fn a_cycle_through_two_owners_of_a_session_is_found() {
    let pairs: Vec<(&Held, &Held)> =
        HOLDS.iter().flat_map(|hold| WAITS.iter().map(move |wait| (hold, wait))).collect();
    let (next, deadlocks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some((hold, wait)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let answers = answers(hold, wait);
                    let is = |code: &str| answers.iter().any(|answer| answer.contains(code));
                    deadlocks.fetch_add(usize::from(is("ERROR 1213")), Ordering::Relaxed);
                    if is("ERROR 1205") || began.elapsed() > Duration::from_secs(20) {
                        let (hold, wait, took) = (hold.name, wait.name, began.elapsed());
                        wrong.lock().expect("no panic").push(format!("{hold}, {wait}: {took:?} {answers:?}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The remaining pairs are no cycles: the other session commits before it waits, or is refused
    // immediately.
    let deadlocks = deadlocks.into_inner();
    assert!(deadlocks >= 20, "{deadlocks} of {} pairs were cycles", pairs.len());
}

/// As in MariaDB, the transaction keeps its changes and continues.
#[test]
fn a_get_lock_that_is_a_victim_undoes_its_statement_alone() {
    let (mut server, _root) = server();
    let (mut a, mut b) = (server.connect(), server.connect());
    a.ok("BEGIN");
    a.ok("UPDATE h SET v = 7");
    a.ok("SELECT GET_LOCK('k', 0)");
    b.ok("SELECT GET_LOCK('l', 0)");
    let waiting = apart(b, "SELECT GET_LOCK('k', 40) AS x");
    let answer = a.run("SELECT GET_LOCK('l', 40)");
    assert!(answer.starts_with("ERROR 1213"), "{answer}");
    assert_eq!(a.run("SELECT @@in_transaction, v FROM h"), "@@in_transaction | v\n1 | 7\n");
    a.ok("DO RELEASE_ALL_LOCKS()");
    assert_eq!(waiting.join().expect("no panic"), "x\n1\n");
    a.ok("ROLLBACK");
}
