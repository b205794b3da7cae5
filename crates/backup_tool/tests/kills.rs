//! SIGKILL of the server, of the archive's process, of `take`, and of several at once, at random times under
//! a load with definitions and large transactions. The repository is restored again and again.
//!
//! Invariants:
//! - an acknowledged transaction is in the server after its next start;
//! - a transaction that was acknowledged before the archive reached a later GTID is in every restore to the
//!   newest state;
//! - with `archive_sync=ON`, every acknowledged transaction is in a restore to the newest state, also if
//!   server, archive and data directory are lost at once;
//! - a restored state has whole transactions, and of each writer a first part of them.
//!
//! `COHORT_LONG_TESTS=1` kills 300 times, and loses 40 machines. `COHORT_SEED=N` selects another order.

#[path = "support/live.rs"]
mod live;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_backup_tool::client::{Account, Client};
use live::{Server, children, run, signal};
use rustix::process::Signal;

const WRITERS: usize = 3;
const LARGE_ROWS: u64 = 3000;

/// Transactions of one writer, which numbers them from 1.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    acknowledged: AtomicU64,
}

/// State that the writers and the test share.
struct Load {
    account: Mutex<Account>,
    is_over: AtomicBool,
    writers: [Counts; WRITERS],
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }

    /// Connects to the server that runs at that time. Returns `None` at the end.
    fn connect(&self) -> Option<Client> {
        while self.goes_on() {
            let account = self.account.lock().expect("no panic").clone();
            if let Ok(client) = Client::connect(&account) {
                return Some(client);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    fn acknowledged(&self) -> [u64; WRITERS] {
        std::array::from_fn(|w| self.writers[w].acknowledged.load(Ordering::SeqCst))
    }

    /// Writes transactions of two rows in two tables, one after the other, over all starts of the server.
    fn write(&self, w: usize) {
        let counts = &self.writers[w];
        while let Some(mut client) = self.connect() {
            let Ok(newest) =
                number(&mut client, &format!("SELECT COALESCE(MAX(n), 0) FROM shop.a WHERE w = {w}"))
            else {
                continue;
            };
            let acknowledged = counts.acknowledged.fetch_max(newest, Ordering::SeqCst);
            assert!(newest >= acknowledged, "writer {w}: {newest} after {acknowledged} was acknowledged");
            for n in newest + 1.. {
                counts.sent.store(n, Ordering::SeqCst);
                let pad = if n % 40 == 0 { 20_000 } else { 30 };
                let done = ["BEGIN", &format!("INSERT INTO shop.a VALUES ({w}, {n}, REPEAT('x', {pad}))")]
                    .into_iter()
                    .chain([format!("INSERT INTO shop.b VALUES ({w}, {n})").as_str(), "COMMIT"])
                    .try_for_each(|sql| client.query(sql, |_| Ok(())));
                if done.is_err() {
                    break;
                }
                counts.acknowledged.store(n, Ordering::SeqCst);
                if !self.goes_on() {
                    return;
                }
            }
        }
    }

    /// Changes definitions, and runs large transactions.
    fn define(&self) {
        let mut n = 0;
        while let Some(mut client) = self.connect() {
            while self.goes_on() {
                n += 1;
                // After a kill some of them find what the former round has left.
                let failed = [
                    "CREATE INDEX by_n ON shop.a (n)".to_owned(),
                    format!("INSERT INTO shop.large SELECT {n}, seq, REPEAT(SHA1(seq), 9) FROM shop.seq_1_to_{LARGE_ROWS}"),
                    format!("CREATE TABLE shop.copy{n} (n INT, KEY (n)) SELECT n FROM shop.b"),
                    "ALTER TABLE shop.a ENGINE=InnoDB, FORCE".to_owned(),
                    format!("DROP TABLE shop.copy{n}"),
                    "DROP INDEX by_n ON shop.a".to_owned(),
                ]
                .iter()
                .filter(|sql| client.query(sql, |_| Ok(())).is_err())
                .count();
                if failed > 0 {
                    break;
                }
            }
        }
    }
}

fn number(client: &mut Client, sql: &str) -> Result<u64, cohort_backup_tool::failure::Failure> {
    let mut found = 0;
    client.query(sql, |row| {
        let text = row[0].as_deref().map_or("0", |value| std::str::from_utf8(value).expect("a number"));
        found = text.parse().expect("a number");
        Ok(())
    })?;
    Ok(found)
}

/// A generator of the order of events (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn pause(&mut self, most_ms: u64) {
        std::thread::sleep(Duration::from_millis(self.below(most_ms)));
    }
}

fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

struct Scene {
    folder: PathBuf,
    options: Vec<String>,
    server: Option<Server>,
}

impl Scene {
    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn pid(&self) -> u32 {
        self.server().process.id()
    }

    fn run(&self, arguments: &str) -> Result<serde_json::Value, String> {
        run(&self.folder, arguments)
    }

    /// Starts `take`, which goes on.
    fn take(&self) -> Child {
        let port = self.server().account.port;
        Command::new(env!("CARGO_BIN_EXE_cohort-backup"))
            .args(["--quiet", "take", "r", "--key-file", "key", "--host", "127.0.0.1", "--user", "root"])
            .args(["--port", &port.to_string()])
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts")
    }

    fn start_again(&mut self, load: &Load) {
        // Dropped, it is killed.
        self.server = None;
        let server = Server::start_with(&self.folder.join("data"), &self.options);
        *load.account.lock().expect("no panic") = server.account.clone();
        self.server = Some(server);
    }

    /// Waits until the archive has a GTID position.
    fn wait_for_archive(&self, sequence: u64) {
        let end = Instant::now() + Duration::from_secs(90);
        loop {
            let listed = self.run("list r --key-file key").expect("listed");
            let runs = listed["archive"].as_array().expect("an array");
            let reached =
                runs.iter().filter_map(|run| run["gtid_position"].as_str()?.rsplit('-').next()?.parse().ok());
            if reached.max().unwrap_or(0) >= sequence {
                return;
            }
            assert!(Instant::now() < end, "the archive does not reach {sequence}: {runs:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Restores, starts a server, and checks its rows.
    fn check(&self, arguments: &str, load: &Load, at_least: [u64; WRITERS]) {
        let scratch = self.folder.join("scratch");
        self.run(&format!("restore r --key-file key --to scratch {arguments}")).expect("restored");
        let restored = Server::start(&scratch);
        let mut client = restored.client();
        for (w, least) in at_least.into_iter().enumerate() {
            let of = |table: &str, what: &str| format!("SELECT {what} FROM shop.{table} WHERE w = {w}");
            let newest = number(&mut client, &of("a", "COALESCE(MAX(n), 0)")).expect("counted");
            let most = load.writers[w].sent.load(Ordering::SeqCst);
            assert!(
                (least..=most).contains(&newest),
                "{arguments}: writer {w}: {newest} of {least} to {most}"
            );
            for (table, what) in [("a", "COUNT(*)"), ("b", "COUNT(*)"), ("b", "COALESCE(MAX(n), 0)")] {
                let found = number(&mut client, &of(table, what)).expect("counted");
                assert_eq!(found, newest, "{arguments}: writer {w}: {what} of {table}");
            }
        }
        let parts =
            "SELECT COUNT(*) FROM (SELECT COUNT(*) AS found FROM shop.large GROUP BY n) AS t WHERE found <> ";
        assert_eq!(number(&mut client, &format!("{parts}{LARGE_ROWS}")).expect("counted"), 0, "{arguments}");
        if at_least[0] > 0 {
            assert!(
                number(&mut client, "SELECT COUNT(*) FROM shop.large").expect("counted") > 0,
                "{arguments}"
            );
        }
        for table in restored.values("SHOW TABLES FROM shop").split(' ') {
            let said = restored.values(&format!("CHECK TABLE shop.{table}"));
            assert_eq!(said, format!("shop.{table} check status OK"), "{arguments}");
        }
        drop(restored);
        std::fs::remove_dir_all(&scratch).expect("removed");
    }
}

fn random() -> Random {
    let seed = std::env::var("COHORT_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    Random(0x9e37_79b9_7f4a_7c15 ^ seed)
}

fn rounds(long: u32, short: u32) -> u32 {
    if std::env::var_os("COHORT_LONG_TESTS").is_some() { long } else { short }
}

/// Starts a server that archives, with a backup of its tables.
fn begin(folder: &Path, more: &[&str]) -> (Scene, Load) {
    let path = |name: &str| folder.join(name);
    run(folder, "init r --key-file key").expect("created");
    let mut options = ["--no-defaults", "--log-bin=binlog", "--server-id=7"].map(str::to_owned).to_vec();
    options.push("--archive-timeout=100".to_owned());
    options.push(format!("--archive-to={}", path("r").display()));
    options.push(format!("--archive-key-file={}", path("key").display()));
    options.extend(more.iter().map(|option| (*option).to_owned()));
    Server::initialize(&path("data"));
    let server = Server::start_with(&path("data"), &options);
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.a (w INT, n INT, pad TEXT, PRIMARY KEY (w, n))",
        "CREATE TABLE shop.b (w INT, n INT, PRIMARY KEY (w, n))",
        "CREATE TABLE shop.large (n INT, row INT, pad TEXT, PRIMARY KEY (n, row))",
    ] {
        server.execute(sql);
    }
    let load = Load {
        account: Mutex::new(server.account.clone()),
        is_over: AtomicBool::new(false),
        writers: Default::default(),
    };
    let scene = Scene { folder: folder.to_path_buf(), options, server: Some(server) };
    assert!(scene.take().wait().expect("it ends").success());
    (scene, load)
}

#[test]
fn with_archive_sync_no_acknowledged_commit_is_lost_with_the_machine() {
    let folder = tempfile::tempdir().expect("a directory");
    let options = ["--archive-sync=ON", "--archive-sync-timeout=600000"];
    let (mut scene, load) = begin(folder.path(), &options);
    let (mut random, data) = (random(), folder.path().join("data"));
    std::thread::scope(|scope| {
        let _ends = Ends(&load.is_over);
        for w in 0..WRITERS {
            let load = &load;
            scope.spawn(move || load.write(w));
        }
        scope.spawn(|| load.define());
        for round in 1..=rounds(40, 3) {
            let end = Instant::now() + Duration::from_secs(60);
            // The archive takes a restored server when it has a backup of it. Commits wait until then.
            let runs = || scene.server().values("SHOW STATUS LIKE 'Cohort_archive_running'").ends_with(" 1");
            while scene.server().values("SELECT COUNT(*) FROM shop.large") == "0" || !runs() {
                assert!(Instant::now() < end, "the load does not run");
                std::thread::sleep(Duration::from_millis(50));
            }
            random.pause(1500);
            assert_eq!(
                scene.server().values("SHOW STATUS LIKE '%archive_sync_on'"),
                "Cohort_archive_sync_on 1"
            );
            // The machine is lost.
            let archive = children(scene.pid());
            assert!(!archive.is_empty(), "round {round}");
            match random.below(2) {
                0 => std::iter::once(scene.pid()).chain(archive).for_each(kill),
                _ => archive.into_iter().chain([scene.pid()]).for_each(kill),
            }
            scene.server = None;
            let acknowledged = load.acknowledged();
            std::fs::remove_dir_all(&data).expect("removed");
            scene.check("--to-latest", &load, acknowledged);
            // It goes on as a new server.
            scene.run("restore r --key-file key --to data --to-latest").expect("restored");
            scene.start_again(&load);
            let port = scene.server().account.port;
            let take =
                format!("take r --key-file key --host 127.0.0.1 --user root --port {port} --another-server");
            scene.run(&take).expect("taken");
        }
    });
    let sent: u64 = load.writers.iter().map(|writer| writer.sent.load(Ordering::SeqCst)).sum();
    assert!(load.acknowledged().iter().all(|n| *n > 10), "{:?} of {sent}", load.acknowledged());
}

#[test]
fn a_repository_survives_kills_of_server_archive_and_take() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut scene, load) = begin(folder.path(), &[]);
    let (mut random, rounds) = (random(), rounds(300, 20));
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    std::thread::scope(|scope| {
        let _ends = Ends(&load.is_over);
        (0..WRITERS).for_each(|w| {
            drop(scope.spawn({
                let load = &load;
                move || load.write(w)
            }))
        });
        scope.spawn(|| load.define());
        for round in 1..=rounds {
            random.pause(400);
            let event = random.below(8);
            println!("round {round}: event {event}");
            match event {
                0 => scene.start_again(&load),
                1 => children(scene.pid()).into_iter().for_each(kill),
                2 => {
                    let mut take = scene.take();
                    random.pause(200);
                    kill(take.id());
                    take.wait().expect("it ends");
                }
                3 => drop(scene.take().wait().expect("it ends")),
                4 => {
                    let mut take = scene.take();
                    random.pause(200);
                    scene.start_again(&load);
                    take.wait().expect("it ends");
                }
                5 => {
                    signal(scene.pid(), Signal::TERM);
                    scene.server.as_mut().expect("it runs").process.wait().expect("it ends");
                    scene.start_again(&load);
                }
                6 => {
                    let archive = children(scene.pid());
                    kill(scene.pid());
                    archive.into_iter().for_each(kill);
                    scene.start_again(&load);
                }
                _ => drop(scene.run("prune r --key-file key --keep 2").expect("pruned")),
            }
            if round % 5 == 0 {
                let acknowledged = load.acknowledged();
                let position = scene.server().values("SELECT @@gtid_binlog_pos");
                scene.wait_for_archive(
                    position.rsplit('-').next().expect("a GTID").parse().expect("a number"),
                );
                scene.check("--to-latest", &load, acknowledged);
                scene.check("", &load, [0; WRITERS]);
            }
        }
    });
    scene.run("verify r --key-file key").expect("whole");
    // The machine is lost.
    let position = scene.server().values("SELECT @@gtid_binlog_pos");
    scene.wait_for_archive(position.rsplit('-').next().expect("a GTID").parse().expect("a number"));
    scene.server = None;
    std::fs::remove_dir_all(path("data")).expect("removed");
    scene.check("--to-latest", &load, load.acknowledged());
}

/// Ends the load, also after a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
