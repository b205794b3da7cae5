//! Commits that wait for the repository of the archive (`archive_sync`): what ends the wait, what goes on
//! meanwhile, and what the operator sees.

#[path = "support/live.rs"]
mod live;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use live::{Server, children, run, signal};
use rustix::process::Signal;

/// A server that archives, and its error log.
struct Source {
    server: Server,
    log: PathBuf,
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Source {
    fn begin(folder: &Path) -> Source {
        run(folder, "init r --key-file key").expect("created");
        Server::initialize(&folder.join("data"));
        let source = Source::start(folder);
        source.server.execute("CREATE DATABASE d");
        source.server.execute("CREATE TABLE d.t (n INT PRIMARY KEY)");
        source
    }

    fn start(folder: &Path) -> Source {
        let log = folder.join("error.log");
        let mut options = ["--no-defaults", "--log-bin=binlog", "--server-id=7"].map(str::to_owned).to_vec();
        options.push(format!("--log-error={}", log.display()));
        options.push(format!("--archive-to={}", folder.join("r").display()));
        options.push(format!("--archive-key-file={}", folder.join("key").display()));
        options.push("--archive-sync=ON".to_owned());
        Source { server: Server::start_with(&folder.join("data"), &options), log }
    }

    fn status(&self, name: &str) -> u64 {
        let row = self.server.values(&format!("SHOW STATUS LIKE 'Cohort_archive_{name}'"));
        row.rsplit(' ').next().expect("a value").parse().expect("a number")
    }

    fn logged(&self, text: &str) -> usize {
        std::fs::read_to_string(&self.log).expect("the error log").matches(text).count()
    }

    /// Sends a signal to the processes that store the archive.
    fn signal_archive(&self, kind: Signal) {
        let archive = children(self.server.process.id());
        assert!(!archive.is_empty(), "none runs");
        archive.into_iter().for_each(|pid| signal(pid, kind));
    }

    /// Inserts a row in a thread of its own, and waits until it waits for the archive.
    fn insert_and_wait(&self, n: u32) -> Inserting {
        let waiting = self.status("sync_waiting");
        let mut client = self.server.client();
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&has_ended);
        let thread = std::thread::spawn(move || {
            let done = client.query(&format!("INSERT INTO d.t VALUES ({n})"), |_| Ok(())).is_ok();
            ended.store(true, Ordering::SeqCst);
            done
        });
        wait_until("it does not wait", || self.status("sync_waiting") > waiting);
        Inserting { thread, has_ended }
    }

    fn rows(&self) -> String {
        self.server.values("SELECT COUNT(*) FROM d.t")
    }
}

/// An INSERT that waits.
struct Inserting {
    thread: JoinHandle<bool>,
    has_ended: Arc<AtomicBool>,
}

impl Inserting {
    fn still_waits(&self) -> bool {
        std::thread::sleep(Duration::from_millis(100));
        !self.has_ended.load(Ordering::SeqCst)
    }

    /// Returns whether the INSERT was acknowledged.
    fn into_outcome(self) -> bool {
        self.thread.join().expect("no panic")
    }
}

#[test]
fn commits_wait_for_the_repository_and_for_no_longer_than_the_timeout() {
    let folder = tempfile::tempdir().expect("a directory");
    let source = Source::begin(folder.path());
    let server = &source.server;
    assert_eq!((source.status("sync_on"), source.status("sync_unacknowledged")), (1, 0));
    assert!(source.status("sync_acknowledged") >= 2, "also of definitions");
    server.execute("SET GLOBAL archive_sync_timeout = 600000");

    // The process stands still. Nothing else waits: reads, checkpoints, the binary log, a backup.
    source.signal_archive(Signal::STOP);
    let first = source.insert_and_wait(1);
    assert_eq!(source.rows(), "0", "the row is not shown before the repository has it");
    let state = "SELECT STATE FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO d.t%'";
    assert_eq!(server.values(state), "Waiting for the archive");
    server.execute("FLUSH LOCAL LOGS");
    server.execute("FLUSH LOCAL TABLES");
    server.execute(&format!("BACKUP SERVER TO '{}'", folder.path().join("copy").display()));
    // A transaction whose redo is in files, and a statement that is killed: it is committed, so it waits.
    let second = source.insert_and_wait(2);
    let id = server.values("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%(2)'");
    server.execute(&format!("KILL {id}"));
    assert!(first.still_waits() && second.still_waits());
    source.signal_archive(Signal::CONT);
    assert!(first.into_outcome());
    second.into_outcome();
    assert_eq!((source.rows(), source.status("sync_timeouts")), ("2".to_owned(), 0));

    // The process is killed, and another one goes on.
    source.signal_archive(Signal::STOP);
    let third = source.insert_and_wait(3);
    source.signal_archive(Signal::KILL);
    assert!(third.into_outcome());

    // A shorter timeout applies to what waits. Commits go on, until the archive has caught up.
    source.signal_archive(Signal::STOP);
    let fourth = source.insert_and_wait(4);
    server.execute("SET GLOBAL archive_sync_timeout = 500");
    assert!(fourth.into_outcome());
    assert_eq!((source.status("sync_on"), source.status("sync_timeouts")), (0, 1));
    let began = Instant::now();
    server.execute("INSERT INTO d.t VALUES (5)");
    assert!(began.elapsed() < Duration::from_millis(450), "it is off: {:?}", began.elapsed());
    assert_eq!(source.status("sync_unacknowledged"), 2);
    source.signal_archive(Signal::CONT);
    wait_until("it is never on again", || source.status("sync_on") == 1);
    let (off, on) =
        ("[ERROR] cohortd: archive_sync: ", "[Warning] cohortd: archive_sync: the archive has caught up");
    assert_eq!((source.logged(off), source.logged(on)), (1, 1));
    let acknowledged = source.status("sync_acknowledged");
    server.execute("INSERT INTO d.t VALUES (6)");
    assert_eq!(source.status("sync_acknowledged"), acknowledged + 1);

    // The repository disappears and comes back.
    let (there, away) = (folder.path().join("r"), folder.path().join("away"));
    std::fs::rename(&there, &away).expect("renamed");
    server.execute("INSERT INTO d.t VALUES (7)");
    assert_eq!((source.status("sync_on"), source.status("sync_timeouts")), (0, 2));
    let _ = std::fs::remove_dir_all(&there);
    std::fs::rename(&away, &there).expect("renamed");
    wait_until("it is never on again", || {
        // An acknowledgement needs something to acknowledge.
        server.execute("REPLACE INTO d.t VALUES (8)");
        source.status("sync_on") == 1
    });

    // It is turned off by hand.
    server.execute("SET GLOBAL archive_sync_timeout = 600000");
    source.signal_archive(Signal::STOP);
    let ninth = source.insert_and_wait(9);
    server.execute("SET GLOBAL archive_sync = OFF");
    assert!(ninth.into_outcome());
    server.execute("SET GLOBAL archive_sync = ON");

    // The stop of the server does not wait for it, and the client gets no OK.
    let tenth = source.insert_and_wait(10);
    signal(server.process.id(), Signal::TERM);
    let began = Instant::now();
    assert!(!tenth.into_outcome());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let Source { mut server, .. } = source;
    server.process.wait().expect("it ends");
    let source = Source::start(folder.path());
    assert_eq!(source.rows(), "10", "it was durable");
}

#[test]
fn a_group_waits_for_the_replica_first_and_then_for_the_archive() {
    let folder = tempfile::tempdir().expect("a directory");
    let source = Source::begin(folder.path());
    let server = &source.server;
    server.execute("SET GLOBAL archive_sync_timeout = 600000, GLOBAL rpl_semi_sync_master_timeout = 600000");
    for point in ["AFTER_SYNC", "AFTER_COMMIT"] {
        server.execute("TRUNCATE d.t");
        server.execute(&format!("SET GLOBAL rpl_semi_sync_master_wait_point = {point}"));
        server.execute("SET GLOBAL rpl_semi_sync_master_enabled = 1");
        let insert = |n: u32| {
            let mut client = server.client();
            std::thread::spawn(move || {
                client.query(&format!("INSERT INTO d.t VALUES ({n})"), |_| Ok(())).is_ok()
            })
        };
        let semi_sync = || server.values("SHOW STATUS LIKE 'Rpl_semi_sync_master_wait_sessions'");
        let one = insert(1);
        wait_until("it does not wait", || semi_sync().ends_with(" 1"));
        std::thread::sleep(Duration::from_millis(200));
        // Before a replica lets it pass it may be cut off, and is not sent.
        let is_shown = if point == "AFTER_SYNC" { "0" } else { "1" };
        assert_eq!((source.status("sync_waiting"), source.rows().as_str()), (0, is_shown), "{point}");
        source.signal_archive(Signal::STOP);
        server.execute("SET GLOBAL rpl_semi_sync_master_enabled = 0");
        if point == "AFTER_SYNC" {
            wait_until("it does not wait for the archive", || source.status("sync_waiting") == 1);
            assert_eq!(source.rows(), "0", "{point}");
            // A KILL that ends the wait for a replica does not end that for the archive.
            server.execute("SET GLOBAL rpl_semi_sync_master_enabled = 1");
        }
        source.signal_archive(Signal::CONT);
        assert!(one.join().expect("no panic"), "{point}");
        server.execute("SET GLOBAL rpl_semi_sync_master_enabled = 1");
        // A client is killed while its transaction is published or not. It is archived in each case.
        source.signal_archive(Signal::STOP);
        let two = insert(2);
        wait_until("it does not wait", || semi_sync().ends_with(" 1"));
        let id = server.values("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%(2)'");
        server.execute(&format!("KILL {id}"));
        wait_until("it does not wait for the archive", || source.status("sync_waiting") == 1);
        std::thread::sleep(Duration::from_millis(100));
        assert!(!two.is_finished() && source.rows() == "1", "{point}");
        source.signal_archive(Signal::CONT);
        two.join().expect("no panic");
        server.execute("SET GLOBAL rpl_semi_sync_master_enabled = 0");
        assert_eq!(source.rows(), "2", "{point}");
    }
    assert_eq!((source.status("sync_timeouts"), source.status("sync_unacknowledged")), (0, 0));
}

#[test]
fn archive_sync_needs_an_archive() {
    let folder = tempfile::tempdir().expect("a directory");
    let datadir = folder.path().join("data");
    Server::initialize(&datadir);
    let refused = std::process::Command::new(live::cohortd())
        .args(["--no-defaults", "--archive-sync=ON"])
        .arg(format!("--datadir={}", datadir.display()))
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("archive_sync=ON needs archive_to"), "{said}");
    let server = Server::start(&datadir);
    let error = server.client().query("SET GLOBAL archive_sync = ON", |_| Ok(())).expect_err("refused");
    assert!(error.to_string().contains("archive_sync=ON needs archive_to"), "{error}");
    assert_eq!(server.values("SELECT @@GLOBAL.archive_sync"), "0");
    server.execute("SET GLOBAL archive_sync_timeout = 5");
}
