//! What a replica flushes, counted at its files: one sync of the log for each group of applied transactions,
//! however many these are, and nothing else.

mod pair;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cohort_vfs::{File, Fs, OpenMode, SharedFile, SharedFs, TraceFs};
use pair::{Replica, received, source_of};

/// A disk whose flushes take a while: what is applied meanwhile gathers.
struct SlowSync(SharedFs);

struct SlowFile(SharedFile);

const FLUSH: Duration = Duration::from_millis(8);

impl Fs for SlowSync {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        Ok(Arc::new(SlowFile(self.0.open(path, mode)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(dir)
    }

    fn exists(&self, path: &Path) -> bool {
        self.0.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.0.free_bytes(dir)
    }
}

impl File for SlowFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        std::thread::sleep(FLUSH);
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}

const TRANSACTIONS: usize = 300;

#[test]
fn a_group_of_applied_transactions_takes_one_flush() {
    let mut script = vec!["CREATE TABLE test.t (id INT PRIMARY KEY, a INT)".to_owned()];
    script.extend((0..TRANSACTIONS).map(|n| format!("INSERT INTO test.t VALUES ({n}, {n})")));
    script.push("CREATE TABLE test.u (id INT PRIMARY KEY)".to_owned());
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let (_, binlog) = source_of(&script);
    for threads in [0, 3] {
        let memory = received(&binlog);
        let trace = TraceFs::new(Arc::new(memory));
        let disk: SharedFs = Arc::new(SlowSync(Arc::new(trace.clone())));
        let replica = Replica::open(&disk, threads).expect("opens");
        let groups = || {
            let metrics = replica.server.db.commit.metrics();
            metrics.groups.load(std::sync::atomic::Ordering::Relaxed) as usize
        };
        let before = groups();
        trace.take();
        assert_eq!(replica.run(script.len(), || false), script.len());
        // Whoever leads the last group may not have counted it yet.
        replica.server.db.commit.flush_ordered().expect("a disk that works");
        let groups = groups() - before;
        let lines = trace.take();
        let synced = lines.lines().filter_map(|line| line.strip_prefix("sync "));
        // The list of relay logs is made durable once, when they are looked through; the next file of the log
        // is made ready while groups go to this one.
        let is_aside = |name: &&str| matches!(*name, "relay.index.tmp" | "log.new");
        let synced: Vec<&str> = synced.filter(|name| !is_aside(name)).collect();
        assert_eq!(lines.matches("sync relay").count(), 1, "{threads} threads");
        let of_log = synced.iter().filter(|name| name.starts_with("log.")).count();
        // Whatever else is written is written behind the log, and synced at checkpoints.
        assert_eq!(of_log, synced.len(), "{threads} threads: {synced:?}");
        assert_eq!(of_log, groups, "{threads} threads: one flush for a group\n{lines}");
        // Nobody waits for the disk, so many are in one group; definitions wait for theirs.
        assert!(groups * 3 < TRANSACTIONS, "{threads} threads: {groups} groups");
    }
}
