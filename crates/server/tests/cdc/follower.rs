//! A client's copy of the rows, and its invariants.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::load::{COLUMNS, TABLES, rows};
use crate::support::Cohort;

/// Longer than a client needs to start on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);

/// A position between two transactions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub file: String,
    pub offset: u64,
    /// Empty at the beginning, and if the client does not know it.
    pub gtid: String,
}

/// Starts a client at a position.
pub struct Client {
    command: Box<dyn Fn(u16, &Position) -> Command>,
    /// The client receives each change once and in order. Other clients may receive changes after their
    /// stored position again.
    is_exact: bool,
}

impl Client {
    pub fn exact(command: impl Fn(u16, &Position) -> Command + 'static) -> Client {
        Client { command: Box::new(command), is_exact: true }
    }

    pub fn at_least_once(command: impl Fn(u16, &Position) -> Command + 'static) -> Client {
        Client { command: Box::new(command), is_exact: false }
    }
}

struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls fail only if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Follower {
    client: Client,
    port: u16,
    process: Process,
    kept: Position,
    /// All positions that it ever recorded.
    positions: BTreeSet<Position>,
    /// The newest transaction of which it has received an event.
    begun: String,
    /// Lines of the incomplete transaction.
    pending: Vec<String>,
    /// Table and key -> row.
    rows: BTreeMap<(String, String), String>,
    progress: Instant,
    starts: usize,
    /// Other output of its processes.
    log: NamedTempFile,
}

/// Formats a row for error messages.
fn readable(row: &str) -> String {
    let byte =
        |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).unwrap_or(""), 16).unwrap_or(b'?');
    let text = |word: &str| {
        String::from_utf8_lossy(&word.as_bytes().chunks(2).map(byte).collect::<Vec<_>>()).into_owned()
    };
    let shown = COLUMNS.iter().zip(row.split(' ')).map(|((name, ..), word)| {
        format!("{name}={}", if matches!(word, "-" | "=") { word.to_owned() } else { text(word) })
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn seq_no(gtid: &str) -> u64 {
    gtid.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn start(client: &Client, port: u16, position: &Position, log: &NamedTempFile) -> Process {
    let mut command = (client.command)(port, position);
    let errors = OpenOptions::new().append(true).open(log).expect("it is there");
    command.env("TZ", "UTC").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
    let mut child = command.spawn().expect("./x cdc installs it");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // A line without a line end was cut when its process was killed.
        while out.read_line(&mut line).is_ok() && line.ends_with('\n') {
            // Fails if the receiver is gone.
            let _ = sender.send(line.trim_end_matches('\n').to_owned());
            line.clear();
        }
    });
    Process { child, lines }
}

impl Follower {
    pub fn new(client: Client, cohort: &Cohort) -> Follower {
        let first = cohort.sql("SHOW BINARY LOGS");
        let file = first.split('\t').next().expect("a name").to_owned();
        let kept = Position { file, offset: 4, gtid: String::new() };
        let log = NamedTempFile::new().expect("a file");
        let process = start(&client, cohort.port, &kept, &log);
        Follower {
            client,
            port: cohort.port,
            process,
            kept,
            positions: BTreeSet::new(),
            begun: String::new(),
            pending: Vec::new(),
            rows: BTreeMap::new(),
            progress: Instant::now(),
            starts: 1,
            log,
        }
    }

    fn apply(&mut self, line: &str) {
        let words: Vec<&str> = line.split('\t').collect();
        let key = |row: &str| row.split(' ').next().expect("a key").to_owned();
        let is_exact = self.client.is_exact;
        let same = |was: Option<String>, should: Option<&str>| {
            let (was, should) = (was.as_deref().map(readable), should.map(readable));
            assert!(!is_exact || was == should, "{}\nfollows on {was:?}", readable(words[2]));
        };
        let (table, row) = (words[1].to_owned(), words[2]);
        match words[0] {
            "insert" => same(self.rows.insert((table, key(row)), row.to_owned()), None),
            "delete" => same(self.rows.remove(&(table, key(row))), Some(row)),
            "update" => {
                let was = self.rows.insert((table, key(row)), words[3].to_owned());
                same(was, Some(row));
            }
            other => panic!("{other}"),
        }
    }

    fn take(&mut self, line: String) {
        self.progress = Instant::now();
        let words: Vec<&str> = line.split('\t').collect();
        match words[..] {
            ["begin", gtid] => self.begun = gtid.to_owned(),
            ["commit", file, offset, gtid] => {
                let offset = offset.parse().expect("a number");
                self.kept = Position { file: file.to_owned(), offset, gtid: gtid.to_owned() };
                self.positions.insert(self.kept.clone());
                for line in std::mem::take(&mut self.pending) {
                    self.apply(&line);
                }
            }
            _ => self.pending.push(line),
        }
    }

    /// Processes lines until a condition holds. Restarts a client that has ended.
    fn take_until(&mut self, what: &str, mut is_done: impl FnMut(&Follower) -> bool) {
        self.progress = Instant::now();
        while !is_done(self) {
            assert!(
                self.progress.elapsed() < PATIENCE,
                "{what}: nothing comes after {:?}\n{}",
                self.kept,
                self.said()
            );
            match self.process.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => self.take(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.start_again(),
            }
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn start_again(&mut self) {
        self.pending.clear();
        std::thread::sleep(Duration::from_millis(100));
        self.process = start(&self.client, self.port, &self.kept, &self.log);
        self.starts += 1;
    }

    pub fn watch(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.take_until("watch", |_| Instant::now() >= end);
    }

    /// Waits until the client reads the newest events, so that a kill of the server interrupts its reading.
    pub fn wait_for_progress(&mut self) {
        let before = self.positions.len();
        self.take_until("progress", |follower| follower.positions.len() > before + 20);
    }

    /// Kills the client with SIGKILL. It continues from the recorded position.
    pub fn kill_client(&mut self) {
        self.process.child.kill().expect("it runs");
        while let Ok(line) = self.process.lines.recv_timeout(PATIENCE) {
            self.take(line);
        }
        self.start_again();
    }

    /// Processes what the client still received from the killed server. It must not contain a transaction
    /// that the server lacks now.
    pub fn assert_nothing_ahead_of(&mut self, cohort: &Cohort) {
        let has = cohort.sql("SELECT @@gtid_binlog_pos");
        while let Ok(line) = self.process.lines.recv_timeout(PATIENCE) {
            self.take(line);
        }
        println!("killed at {has}; the client had begun {} and kept {:?}", self.begun, self.kept);
        assert!(seq_no(&self.begun) <= seq_no(&has), "it has seen {}, the source has {has}", self.begun);
        self.start_again();
    }

    /// Waits for a row of the first table, which is the last change.
    pub fn wait_for(&mut self, key: &str) {
        let last = (TABLES[0].to_owned(), key.to_owned());
        self.take_until("the last row", |follower| follower.rows.contains_key(&last));
    }

    pub fn assert_equal(&self, cohort: &Cohort) {
        for table in TABLES {
            let want: BTreeSet<_> = rows(cohort, table).into_iter().collect();
            let all = self.rows.iter().filter(|((of, _), _)| of == table);
            let got: BTreeSet<_> = all.map(|(_, row)| row.clone()).collect();
            let readable = |row: Option<&String>| row.map(|row| readable(row));
            let (lacks, has_more) = (want.difference(&got).next(), got.difference(&want).next());
            assert!(
                lacks.is_none() && has_more.is_none(),
                "{table} has {:?}\nclient {:?}",
                readable(lacks),
                readable(has_more)
            );
            assert!(want.len() > 20, "{table} is nearly empty");
        }
        println!(
            "equal: {} rows, {} positions, {} starts",
            self.rows.len(),
            self.positions.len(),
            self.starts
        );
    }

    /// Checks that every recorded position is the end of an event in an existing file, and that its GTID
    /// belongs to that place.
    pub fn assert_positions_exist(&self, cohort: &Cohort) {
        let mut ends: HashMap<&str, BTreeSet<u64>> = HashMap::new();
        for Position { file, offset, .. } in &self.positions {
            let ends = ends.entry(file).or_insert_with(|| {
                let events = cohort.sql(&format!("SHOW BINLOG EVENTS IN '{file}'"));
                let end = |line: &str| line.split('\t').nth(4).and_then(|end| end.parse().ok());
                events.lines().filter_map(end).collect()
            });
            assert!(ends.contains(offset), "{file}:{offset} is inside of an event");
        }
        assert!(ends.len() > 6, "it was not there when the files changed");
        for Position { file, offset, gtid } in
            self.positions.iter().filter(|at| !at.gtid.is_empty()).step_by(100)
        {
            assert_eq!(&cohort.sql(&format!("SELECT BINLOG_GTID_POS('{file}', {offset})")), gtid);
        }
    }
}
