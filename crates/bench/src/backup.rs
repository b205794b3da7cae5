//! `cohort-bench backup`: backups and the archive of the log, next to `cp` and `mariadb-backup`.
//!
//! Four tables:
//! - copies of servers at rest: every file is out of the page cache before each copy, every copy is synced;
//! - a load on servers without and with backups that follow each other, at the default rate limit;
//! - a load on a server without an archive, with one, and with commits that wait for it;
//! - the log of a load, replayed after a crash and after a restore from the archive.
//!
//! A rate is that of the bytes that `cp` copies of the same data directory, so that methods that copy fewer
//! bytes are compared by their time.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::connection::{Address, Connection};
use crate::interrupt;
use crate::process;
use crate::recovery::{self, NO_CHECKPOINT};
use crate::servers::{Kind, Server, Setup, beside_this_program};
use crate::tables::SCHEMA;
use crate::turns::{Loaded, Rate, fill, median, median_rate, start_as, text, turns};
use crate::workload::{Keys, Scale};

/// The measurements to run.
#[derive(Debug, PartialEq)]
pub struct BackupRun {
    /// Size of the tables.
    pub mib: u32,
    pub measure: Duration,
    pub repeats: usize,
    pub dir: PathBuf,
    pub cohortd: Option<PathBuf>,
}

/// Tables of the servers under load.
const SMALL: Scale = Scale { tables: 4, rows: 25_000, keys: Keys::Even };
const TABLES: u32 = 8;
/// Bytes of a row of sysbench's tables with its index entry.
const ROW_BYTES: u64 = 250;
const LOAD: &str = "update_index";
const CLIENTS: usize = 64;
/// Maximum time until the repository has the log.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(120);

/// Measures, and prints each table as soon as it is complete.
pub fn run(asked: &BackupRun) -> Result<(), String> {
    let dir = asked.dir.join(format!("cohort-bench-{}", std::process::id()));
    let setup = Setup { cohortd: asked.cohortd.clone(), ..Setup::below(dir.clone()) };
    let parts: [fn(&BackupRun, &Setup) -> Result<String, String>; 4] = [copies, under_load, archive, replay];
    let done = parts.iter().try_for_each(|part| {
        println!("{}", part(asked, &setup)?);
        if interrupt::is_requested() { Err("interrupted".to_owned()) } else { Ok(()) }
    });
    // Ignore errors: they only leave a folder on the disk.
    let _ = fs::remove_dir_all(&dir);
    done
}

/// The programs, and the folder for what they write.
struct Tools {
    cohort_backup: PathBuf,
    scratch: PathBuf,
}

impl Tools {
    fn new(setup: &Setup) -> Result<Tools, String> {
        let cohort_backup = match &setup.cohortd {
            Some(program) => program.with_file_name("cohort-backup"),
            None => beside_this_program("cohort-backup")?,
        };
        let scratch = setup.dir.join("copies");
        fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        Ok(Tools { cohort_backup, scratch })
    }

    /// Returns a path for a copy, with nothing there.
    fn place(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.scratch.join(name);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", path.display()))
            }
            _ => Ok(path),
        }
    }

    fn cohort_backup(&self) -> Command {
        let mut command = Command::new(&self.cohort_backup);
        command.arg("--quiet");
        command
    }

    /// Creates a repository, and returns it with its key file if it has one.
    fn repository(&self, name: &str, is_encrypted: bool) -> Result<(PathBuf, Option<PathBuf>), String> {
        let place = self.place(name)?;
        let key = self.scratch.join(format!("{name}.key"));
        let _ = fs::remove_file(&key);
        let mut init = self.cohort_backup();
        init.arg("init").arg(&place);
        if is_encrypted {
            init.arg("--key-file").arg(&key)
        } else {
            init.arg("--no-encryption")
        };
        finished(&mut init)?;
        Ok((place, is_encrypted.then_some(key)))
    }
}

/// Use of resources by one program.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    peak_mib: f64,
}

/// Runs a program to its end, which must be a success.
fn finished(command: &mut Command) -> Result<Cost, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("{name}: {error}"))?;
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
    }
    let (status, peak) = process::wait_for(&mut child).map_err(|error| format!("{name}: {error}"))?;
    if !status.success() {
        return Err(format!("{name}: {status}: {}", said.trim()));
    }
    Ok(Cost { seconds: began.elapsed().as_secs_f64(), peak_mib: peak as f64 / f64::from(1 << 20) })
}

/// Calls `each` with every file below `dir`.
fn for_each_file(dir: &Path, each: &mut dyn FnMut(&File) -> std::io::Result<()>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", dir.display());
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            for_each_file(&entry.path(), each)?;
        } else if kind.is_file() {
            File::open(entry.path()).and_then(|file| each(&file)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Writes all files to the disk, and takes them out of the page cache.
fn cool(dir: &Path) -> Result<(), String> {
    for_each_file(dir, &mut |file| {
        file.sync_all()?;
        // SAFETY: no pointers.
        let done = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if done == 0 { Ok(()) } else { Err(std::io::Error::from_raw_os_error(done)) }
    })
}

fn sync_all(dir: &Path) -> Result<(), String> {
    for_each_file(dir, &mut File::sync_all)
}

/// Returns the bytes of all files in allocated blocks.
fn bytes_of(dir: &Path) -> Result<u64, String> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for_each_file(dir, &mut |file| {
        bytes += file.metadata()?.blocks() * 512;
        Ok(())
    })?;
    Ok(bytes)
}

/// Copies a directory by `cp`, and syncs every file.
fn cp(from: &Path, to: &Path) -> Result<Cost, String> {
    let began = Instant::now();
    let cost =
        finished(Command::new("cp").args(["-r", "--reflink=never", "--sparse=auto"]).arg(from).arg(to))?;
    sync_all(to)?;
    Ok(Cost { seconds: began.elapsed().as_secs_f64(), ..cost })
}

fn socket_of(address: &Address) -> Result<&Path, String> {
    match address {
        Address::Unix(path) => Ok(path),
        _ => Err("the server has no Unix socket".to_owned()),
    }
}

/// Runs a statement, and returns the seconds that it took.
fn timed(address: &Address, sql: &str) -> Result<f64, String> {
    let mut connection = Connection::open(address, "").map_err(text)?;
    let began = Instant::now();
    connection.query(sql).map_err(text)?;
    Ok(began.elapsed().as_secs_f64())
}

fn status(address: &Address, name: &str) -> Result<f64, String> {
    let mut connection = Connection::open(address, "").map_err(text)?;
    let rows = connection.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).map_err(text)?;
    let value = rows.into_iter().flatten().nth(1).flatten();
    value.and_then(|value| value.parse().ok()).ok_or_else(|| format!("no status variable {name}"))
}

/// A backup after a hundredth of the rows of each table was changed, next to each other.
const INCREMENTAL: &str = "INCREMENTAL, 1 % changed";
/// The ways of copying that are compared. Names that begin with `mariadb` are of a MariaDB server.
const METHODS: [&str; 12] = [
    "cp",
    "BACKUP SERVER",
    INCREMENTAL,
    "take, zstd",
    "take, zstd, encrypted",
    "cp back",
    "restore, zstd",
    "restore, zstd, encrypted",
    "mariadb cp",
    "mariadb-backup",
    "mariadb-backup --prepare",
    "mariadb-backup --copy-back",
];

/// Compares copies of servers at rest, and restores.
fn copies(asked: &BackupRun, setup: &Setup) -> Result<String, String> {
    let rows = (u64::from(asked.mib) << 20) / ROW_BYTES / u64::from(TABLES);
    let scale =
        Scale { tables: TABLES, rows: u32::try_from(rows).map_err(|_| "too large")?, keys: Keys::Even };
    let tools = Tools::new(setup)?;
    let mut servers = Vec::new();
    for name in ["cohort", "mariadb"] {
        let options: &[&str] = if name == "cohort" { &["--backup-mib-per-s=0"] } else { &[] };
        let server = fill(start_as(name, name, options, setup)?, scale)?;
        server.resume();
        if server.kind() == Kind::Cohort {
            timed(&server.address, "FLUSH TABLES")?;
        }
        server.pause();
        servers.push(server);
    }
    let mut found: Vec<Vec<Cost>> = METHODS.iter().map(|_| Vec::new()).collect();
    let mut note = |name: &str, cost: Cost| {
        let at = METHODS.iter().position(|known| *known == name).expect("a name of the table");
        found[at].push(cost);
    };
    let (mut bytes, mut share) = ([0, 0], 0.0);
    for _ in 0..asked.repeats {
        for (server, bytes) in servers.iter().zip(&mut bytes) {
            server.resume();
            let data = server.data_dir();
            let is_cohort = server.kind() == Kind::Cohort;
            cool(&data)?;
            *bytes = bytes_of(&data)?;
            let copy = tools.place("cp")?;
            note(if is_cohort { "cp" } else { "mariadb cp" }, cp(&data, &copy)?);
            tools.place("cp")?;
            if is_cohort {
                copies_of_cohort(server, &tools, scale, &mut share, &mut note)?;
            } else {
                copies_of_mariadb(server, &tools, &mut note)?;
            }
            server.pause();
            if interrupt::is_requested() {
                return Err("interrupted".to_owned());
            }
        }
    }
    let mut out = format!(
        "### Backups of {} and {} MiB (cohort, mariadb) at rest, files not in the page cache\n\n\
         | way | s | MiB/s of the directory | by cp | memory of the program, MiB |\n|---|---:|---:|---:|---:|\n",
        bytes[0] >> 20,
        bytes[1] >> 20
    );
    let seconds = |at: usize| median(found[at].iter().map(|cost| cost.seconds).collect());
    for (at, name) in METHODS.iter().enumerate() {
        let is_cohort = !name.starts_with("mariadb");
        let of_mariadb = METHODS.iter().position(|name| *name == "mariadb cp").expect("listed");
        let cp = if is_cohort { seconds(0) } else { seconds(of_mariadb) };
        let mib = (bytes[usize::from(!is_cohort)] >> 20) as f64;
        let peak = found[at].iter().map(|cost| cost.peak_mib).fold(0.0, f64::max);
        out.push_str(&format!(
            "| {name} | {:.2} ({}) | {:.0} | {:.2} | {peak:.0} |\n",
            seconds(at),
            spread(found[at].iter().map(|cost| cost.seconds)),
            mib / seconds(at),
            cp / seconds(at),
        ));
    }
    out.push_str(&format!(
        "\nThe incremental backup has {:.1} % of the bytes of the full one.\n",
        share * 100.0
    ));
    Ok(out)
}

fn spread(values: impl Iterator<Item = f64> + Clone) -> String {
    let lowest = values.clone().fold(f64::INFINITY, f64::min);
    format!("{lowest:.2} to {:.2}", values.fold(0.0, f64::max))
}

fn copies_of_cohort(
    server: &Server,
    tools: &Tools,
    scale: Scale,
    share: &mut f64,
    note: &mut dyn FnMut(&str, Cost),
) -> Result<(), String> {
    let data = server.data_dir();
    let directory = tools.place("directory")?;
    cool(&data)?;
    let seconds = timed(&server.address, &format!("BACKUP SERVER TO '{}'", directory.display()))?;
    note("BACKUP SERVER", Cost { seconds, peak_mib: 0.0 });
    let full = bytes_of(&directory)?;
    for table in 1..=TABLES {
        let last = scale.rows / 100;
        timed(&server.address, &format!("UPDATE {SCHEMA}.sbtest{table} SET k = k + 1 WHERE id <= {last}"))?;
    }
    let changed = tools.place("changed")?;
    cool(&data)?;
    let incremental =
        format!("BACKUP SERVER TO '{}' INCREMENTAL FROM '{}'", changed.display(), directory.display());
    let seconds = timed(&server.address, &incremental)?;
    note(INCREMENTAL, Cost { seconds, peak_mib: 0.0 });
    *share = share.max(bytes_of(&changed)? as f64 / full as f64);
    tools.place("changed")?;
    cool(&directory)?;
    note("cp back", cp(&directory, &tools.place("back")?)?);
    tools.place("directory")?;
    for (is_encrypted, taken, restored) in
        [(false, "take, zstd", "restore, zstd"), (true, "take, zstd, encrypted", "restore, zstd, encrypted")]
    {
        let (repository, key) = tools.repository("repository", is_encrypted)?;
        let with_key = |command: &mut Command| {
            if let Some(key) = &key {
                command.arg("--key-file").arg(key);
            }
        };
        cool(&data)?;
        let mut take = tools.cohort_backup();
        take.arg("take").arg(&repository).arg("--user=root").arg("--socket").arg(socket_of(&server.address)?);
        with_key(&mut take);
        note(taken, finished(&mut take)?);
        cool(&repository)?;
        let mut restore = tools.cohort_backup();
        restore.arg("restore").arg(&repository).arg("--to").arg(tools.place("back")?);
        with_key(&mut restore);
        note(restored, finished(&mut restore)?);
        tools.place("repository")?;
        tools.place("back")?;
    }
    Ok(())
}

fn copies_of_mariadb(server: &Server, tools: &Tools, note: &mut dyn FnMut(&str, Cost)) -> Result<(), String> {
    let directory = tools.place("directory")?;
    cool(&server.data_dir())?;
    let began = Instant::now();
    let cost = finished(&mut mariadb_backup(&server.address, &server.data_dir(), &directory)?)?;
    sync_all(&directory)?;
    note("mariadb-backup", Cost { seconds: began.elapsed().as_secs_f64(), ..cost });
    let target = format!("--target-dir={}", directory.display());
    let began = Instant::now();
    let cost = finished(Command::new("mariadb-backup").arg("--no-defaults").arg("--prepare").arg(&target))?;
    sync_all(&directory)?;
    note("mariadb-backup --prepare", Cost { seconds: began.elapsed().as_secs_f64(), ..cost });
    cool(&directory)?;
    let back = tools.place("back")?;
    let began = Instant::now();
    let mut copy = Command::new("mariadb-backup");
    copy.args(["--no-defaults", "--copy-back"]).arg(&target).arg(format!("--datadir={}", back.display()));
    let cost = finished(&mut copy)?;
    sync_all(&back)?;
    note("mariadb-backup --copy-back", Cost { seconds: began.elapsed().as_secs_f64(), ..cost });
    tools.place("directory")?;
    tools.place("back").map(drop)
}

fn mariadb_backup(address: &Address, data: &Path, target: &Path) -> Result<Command, String> {
    let mut command = Command::new("mariadb-backup");
    command.args(["--no-defaults", "--backup", "--user=root"]);
    command.arg(format!("--socket={}", socket_of(address)?.display()));
    command.arg(format!("--datadir={}", data.display()));
    command.arg(format!("--target-dir={}", target.display()));
    Ok(command)
}

/// Runs a load, and `work` again and again until its measurement ends.
fn together(
    load: &Loaded,
    server: &Server,
    work: &(dyn Fn() -> Result<(), String> + Sync),
) -> Result<(Rate, u64), String> {
    let (ends, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (ends, done) = (&ends, &done);
        let mut worker = None;
        let rate = load.measure_with(server, load.measure, || {
            worker = Some(scope.spawn(move || -> Result<(), String> {
                while !ends.load(Ordering::Relaxed) {
                    work()?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }));
        });
        ends.store(true, Ordering::Relaxed);
        worker.map_or(Ok(()), |worker| worker.join().expect("it does not panic"))?;
        Ok((rate?, done.load(Ordering::Relaxed)))
    })
}

/// Compares a load without and with backups.
fn under_load(asked: &BackupRun, setup: &Setup) -> Result<String, String> {
    let tools = Tools::new(setup)?;
    let load = Loaded { workload: LOAD, clients: CLIENTS, scale: SMALL, measure: asked.measure };
    let mut servers = Vec::new();
    for name in ["cohort", "mariadb"] {
        servers.push(fill(start_as(name, name, &[], setup)?, SMALL)?);
    }
    let found = turns(&mut servers, asked.repeats, |server| {
        let alone = load.on(server)?;
        let before = process::resident_bytes(server.pid()).unwrap_or(0);
        let peak = AtomicU64::new(before);
        let (address, data, pid, kind) = (&server.address, &server.data_dir(), server.pid(), server.kind());
        let (with, backups) = together(&load, server, &|| {
            let target = tools.place("directory")?;
            match kind {
                Kind::Cohort => {
                    timed(address, &format!("BACKUP SERVER TO '{}'", target.display())).map(drop)?
                }
                _ => finished(&mut mariadb_backup(address, data, &target)?).map(drop)?,
            }
            peak.fetch_max(process::resident_bytes(pid).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        })?;
        tools.place("directory")?;
        Ok((alone, with, backups, peak.into_inner() - before))
    })?;
    let mut out = format!(
        "### {LOAD}, {CLIENTS} clients, while backups follow each other\n\n\
         | server | /s alone | with backups | ratio | p99 ms alone | with backups | ratio | backups | server's memory, MiB more |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    for (server, found) in servers.iter().zip(&found) {
        let alone = median_rate(&found.iter().map(|one| one.0).collect::<Vec<_>>());
        let with = median_rate(&found.iter().map(|one| one.1).collect::<Vec<_>>());
        out.push_str(&format!(
            "| {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {} |\n",
            server.label,
            alone.per_second,
            with.per_second,
            with.per_second / alone.per_second,
            alone.p99_ms,
            with.p99_ms,
            with.p99_ms / alone.p99_ms,
            found.iter().map(|one| one.2).sum::<u64>(),
            found.iter().map(|one| one.3).max().unwrap_or(0) >> 20,
        ));
    }
    Ok(out)
}

/// Options of a server that archives to a new repository.
fn archive_options(tools: &Tools, name: &str) -> Result<(PathBuf, PathBuf, [String; 2]), String> {
    let (repository, key) = tools.repository(name, true)?;
    let key = key.expect("it is encrypted");
    let options =
        [format!("--archive-to={}", repository.display()), format!("--archive-key-file={}", key.display())];
    Ok((repository, key, options))
}

/// Measurements of a server and its archive during a load.
#[derive(Clone, Copy, Default)]
struct Seen {
    lag_seconds: u64,
    server_bytes: u64,
    /// Resident memory of the process that stores the archive.
    archiver_bytes: u64,
}

impl Seen {
    fn of(address: &Address, server: u32, has_archive: bool) -> Result<Seen, String> {
        let others = process::family(server).into_iter().filter(|pid| *pid != server);
        let lag = match has_archive {
            true => status(address, "Cohort_archive_lag_seconds")?,
            false => 0.0,
        };
        Ok(Seen {
            lag_seconds: lag as u64,
            server_bytes: process::resident_bytes(server).unwrap_or(0),
            archiver_bytes: others.filter_map(process::resident_bytes).max().unwrap_or(0),
        })
    }

    fn most(self, other: Seen) -> Seen {
        Seen {
            lag_seconds: self.lag_seconds.max(other.lag_seconds),
            server_bytes: self.server_bytes.max(other.server_bytes),
            archiver_bytes: self.archiver_bytes.max(other.archiver_bytes),
        }
    }
}

/// Compares a load without an archive of the log, with one, and with commits that wait for it.
fn archive(asked: &BackupRun, setup: &Setup) -> Result<String, String> {
    let tools = Tools::new(setup)?;
    let load = Loaded { workload: LOAD, clients: CLIENTS, scale: SMALL, measure: asked.measure };
    let (_, _, archives) = archive_options(&tools, "archive")?;
    let (_, _, waits) = archive_options(&tools, "archive_sync")?;
    let mut servers = Vec::new();
    for (label, options) in [
        ("cohort", &[][..]),
        ("cohort again", &[]),
        ("cohort, archive", &[archives[0].as_str(), archives[1].as_str()]),
        ("cohort, archive_sync", &[waits[0].as_str(), waits[1].as_str(), "--archive-sync=ON"]),
    ] {
        servers.push(fill(start_as(label, "cohort", options, setup)?, SMALL)?);
    }
    let found = turns(&mut servers, asked.repeats, |server| {
        let has_archive = server.label.contains("archive");
        let (address, pid) = (&server.address, server.pid());
        let seen = Mutex::new(Seen::default());
        let (rate, _) = together(&load, server, &|| {
            let now = Seen::of(address, pid, has_archive)?;
            let mut seen = seen.lock().expect("no panic");
            *seen = seen.most(now);
            drop(seen);
            std::thread::sleep(Duration::from_millis(200));
            Ok(())
        })?;
        Ok((rate, seen.into_inner().expect("no panic")))
    })?;
    let mut out = format!(
        "### {LOAD}, {CLIENTS} clients, without and with an archive in a folder\n\n\
         | server | /s | of the first | p99 ms | server us | server MiB | archive MiB | late by, s |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    let rates = |found: &[(Rate, Seen)]| found.iter().map(|one| one.0).collect::<Vec<_>>();
    let first = median_rate(&rates(&found[0])).per_second;
    for (server, found) in servers.iter().zip(&found) {
        let rate = median_rate(&rates(found));
        let seen = found.iter().fold(Seen::default(), |seen, one| seen.most(one.1));
        out.push_str(&format!(
            "| {} | {:.0} ({}) | {:.3} | {:.2} | {:.1} | {} | {} | {} |\n",
            server.label,
            rate.per_second,
            spread(found.iter().map(|one| one.0.per_second)),
            rate.per_second / first,
            rate.p99_ms,
            rate.processor_us,
            seen.server_bytes >> 20,
            seen.archiver_bytes >> 20,
            seen.lag_seconds,
        ));
    }
    Ok(out)
}

/// Waits until the repository has the whole log.
fn wait_for_archive(address: &Address) -> Result<(), String> {
    let end = Instant::now() + ARCHIVE_TIMEOUT;
    while status(address, "Cohort_archive_lag_bytes")? > 0.0 {
        if Instant::now() > end || interrupt::is_requested() {
            return Err("the archive does not get the whole log".to_owned());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Compares the replay of a log after a crash with that after a restore from the archive.
fn replay(asked: &BackupRun, setup: &Setup) -> Result<String, String> {
    let tools = Tools::new(setup)?;
    let load = Loaded { workload: LOAD, clients: CLIENTS, scale: SMALL, measure: asked.measure };
    let mut rows: [Vec<(f64, f64, f64)>; 3] = Default::default();
    for _ in 0..asked.repeats {
        let (repository, key, options) = archive_options(&tools, "replayed")?;
        let options: Vec<&str> = options.iter().map(String::as_str).chain(NO_CHECKPOINT).collect();
        let mut server = fill(start_as("cohort, replayed", "cohort", &options, setup)?, SMALL)?;
        server.resume();
        let with_key = |command: &str| {
            let mut made = tools.cohort_backup();
            made.arg(command).arg(&repository).arg("--key-file").arg(&key);
            made
        };
        let mut take = with_key("take");
        take.arg("--user=root").arg("--socket").arg(socket_of(&server.address)?);
        finished(&mut take)?;
        load.on(&server)?;
        wait_for_archive(&server.address)?;
        server.crash()?;
        let crashed = recovery::found(&server).map_err(text)?;
        let back = tools.place("back")?;
        let restore = |more: &[&str]| {
            finished(with_key("restore").arg("--to").arg(&back).args(more)).map(|cost| cost.seconds)
        };
        let plain = restore(&[])?;
        tools.place("back")?;
        let server_binary = match &setup.cohortd {
            Some(program) => program.clone(),
            None => beside_this_program("cohortd")?,
        };
        let binary = format!("--server-binary={}", server_binary.display());
        let fetched = (restore(&["--to-latest", &binary])? - plain).max(0.0);
        server.crash_and(|data| {
            let failed = |error| format!("{}: {error}", data.display());
            fs::remove_dir_all(data).map_err(failed)?;
            fs::rename(&back, data).map_err(failed)
        })?;
        let restored = recovery::found(&server).map_err(text)?;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        rows[0].push((crashed.seconds, mib(crashed.log_bytes), crashed.transactions as f64));
        rows[1].push((fetched, mib(restored.log_bytes), restored.transactions as f64));
        rows[2].push((restored.seconds, mib(restored.log_bytes), restored.transactions as f64));
        drop(server);
        tools.place("replayed")?;
        if interrupt::is_requested() {
            return Err("interrupted".to_owned());
        }
    }
    let mut out = format!(
        "### The log of {LOAD}, {CLIENTS} clients, replayed\n\n\
         | way | s | log, MiB | MiB/s | transactions/s | of the recovery after a crash |\n|---|---:|---:|---:|---:|---:|\n"
    );
    let of =
        |row: &[(f64, f64, f64)], field: fn(&(f64, f64, f64)) -> f64| median(row.iter().map(field).collect());
    let crash_rate = of(&rows[0], |one| one.1 / one.0.max(1e-6));
    for (name, row) in [
        "recovery after a crash",
        "restore --to-latest: the log fetched and appended",
        "first start of the restored",
    ]
    .iter()
    .zip(&rows)
    {
        let rate = of(row, |one| one.1 / one.0.max(1e-6));
        out.push_str(&format!(
            "| {name} | {:.2} ({}) | {:.0} | {rate:.0} | {:.0} | {:.2} |\n",
            of(row, |one| one.0),
            spread(row.iter().map(|one| one.0)),
            of(row, |one| one.1),
            of(row, |one| one.2 / one.0.max(1e-6)),
            rate / crash_rate,
        ));
    }
    Ok(out)
}
