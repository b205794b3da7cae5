//! The program on stores of the machine that fail: an object store over HTTP that hangs and lies, a disk
//! that is full, a file system that does not answer, a disk that loses power.

mod support;

#[path = "support/object_server.rs"]
mod object_server;
#[path = "../../server/tests/support/small_disk.rs"]
#[allow(dead_code, reason = "the server's tests use the rest")]
mod small_disk;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use object_server::{Fault, ObjectServer};
use serde_json::Value;
use small_disk::SmallDisk;
use support::{Fake, Files, assert_restored, noise};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cohort-backup");

/// Returns files of about this many KiB.
fn small(seed: u64, kib: usize) -> Files {
    Files::from([
        ("cohort.version".to_owned(), b"cohort 1\n".to_vec()),
        ("innodb/data".to_owned(), noise(seed, kib << 10)),
        ("log/1".to_owned(), noise(1, 500)),
    ])
}

/// Runs a command. Returns its exit code and its JSON.
fn finish(command: &mut Command, folder: &Path, arguments: &str) -> (i32, Value) {
    let output: Output = command
        .args(["--json", "--no-defaults"])
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("the program");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_slice(&output.stdout);
    (output.status.code().expect("it ended"), value.unwrap_or_else(|_| panic!("{arguments}: {said}")))
}

/// Takes, verifies, restores and prunes while the requests fail by turns. A command that succeeds has done
/// what it says, and one that fails says so.
#[test]
fn faults_of_an_object_store_are_survived_or_reported() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = ObjectServer::start();
    let run =
        |arguments: &str| finish(Command::new(PROGRAM).envs(server.environment()), folder.path(), arguments);
    let place = "s3://backups/db1 --key-file key";
    assert_eq!(run(&format!("init {place}")).0, 0);
    for seed in 1..=3 {
        Fake::new(small(seed, 300)).write(&folder.path().join(format!("data{seed}")));
    }
    let mut done = 0;
    for (number, fault) in [
        Fault::Internal,
        Fault::SlowDown,
        Fault::CutReply,
        Fault::LostReply,
        Fault::Partial,
        Fault::StaleList,
        Fault::Full,
        Fault::Hang,
    ]
    .into_iter()
    .enumerate()
    {
        let seed = 1 + number % 3;
        server.plan(&[None, None, Some(fault), None, None]);
        let began = Instant::now();
        let (code, taken) = run(&format!("take {place} --from data{seed} --store-timeout 20"));
        assert!(code == 0 || code == 1, "{fault:?}: {taken}");
        assert!(server.faults() > 0, "{fault:?} never happened");
        assert!(began.elapsed() < Duration::from_secs(60), "{fault:?}: {:?}", began.elapsed());
        server.plan(&[]);
        let (whole, verified) = run(&format!("verify {place}"));
        assert_eq!(whole, 0, "{fault:?}: {verified}");
        if code == 0 {
            done += 1;
            server.plan(&[None, Some(fault), None, None]);
            let name = taken["backup"]["name"].as_str().expect("a name");
            let target = format!("target{number}");
            let (code, restored) =
                run(&format!("restore {place} --backup {name} --to {target} --store-timeout 20"));
            // A restore may fail, and then no server starts in its directory.
            let is_backup = folder.path().join(&target).join("cohort-backup.json").exists();
            assert_eq!(code == 0, is_backup, "{fault:?}: {restored}");
            if code == 0 {
                assert_restored(&folder.path().join(&target), &small(seed as u64, 300));
            }
        }
        // A prune that fails half way leaves whole backups.
        server.plan(&[None, None, Some(fault)]);
        let (code, pruned) = run(&format!("prune {place} --keep 1 --store-timeout 20"));
        assert!(code == 0 || code == 1, "{fault:?}: {pruned}");
        server.plan(&[]);
        assert_eq!(run(&format!("prune {place} --keep 1")).0, 0, "{fault:?}: locks of ended commands stay");
        let (whole, verified) = run(&format!("verify {place}"));
        assert_eq!(whole, 0, "{fault:?}: {verified}");
    }
    assert!(done >= 6, "only {done} takes survived");
}

#[test]
fn a_store_without_an_answer_ends_the_command_in_time() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = ObjectServer::start();
    let run = |arguments: &str| {
        let began = Instant::now();
        let done = finish(Command::new(PROGRAM).envs(server.environment()), folder.path(), arguments);
        (done.0, done.1, began.elapsed())
    };
    assert_eq!(run("init s3://backups/db1 --no-encryption").0, 0);
    server.plan(&[Some(Fault::Hang)]);
    let (code, said, took) = run("list s3://backups/db1 --store-timeout 3");
    assert_eq!(code, 1, "{said}");
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(20), "{took:?}");
    server.plan(&[Some(Fault::Internal)]);
    let (code, said, took) = run("list s3://backups/db1 --store-timeout 3");
    assert!(code == 1 && took < Duration::from_secs(20), "{took:?}: {said}");

    // A file system that does not answer, as that of a server that is away: no reader of this pipe gets one.
    assert_eq!(run("init r --no-encryption").0, 0);
    let pipe = folder.path().join("r/cohort-repository");
    fs::remove_file(&pipe).expect("removed");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let (code, said, took) = run("list r --store-timeout 2");
    assert!(code == 1 && took < Duration::from_secs(20), "{code} after {took:?}: {said}");
    assert!(said.to_string().contains("no answer for 2 s"), "{said}");
}

#[test]
fn a_full_disk_keeps_the_backups_that_it_has_and_is_freed_by_prune() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(disk) = SmallDisk::new(&folder.path().join("disk"), 8) else { return };
    // The working directory of the namespace is another one.
    let within = |arguments: &str| arguments.replace("DIR", &folder.path().display().to_string());
    let run = |arguments: &str| finish(&mut disk.command(PROGRAM), folder.path(), &within(arguments));
    let write = |seed: u64, kib: usize| {
        let name = format!("data{seed}");
        Fake::new(small(seed, kib)).write(&folder.path().join(&name));
    };
    write(1, 2500);
    write(2, 2500);
    write(3, 6000);
    assert_eq!(run("init DIR/disk/r --no-encryption").0, 0);
    let (code, first) = run("take DIR/disk/r --from DIR/data1");
    assert_eq!(code, 0, "{first}");
    assert_eq!(run("take DIR/disk/r --from DIR/data2").0, 0);
    let (code, said) = run("take DIR/disk/r --from DIR/data3");
    assert_eq!(code, 1, "{said}");
    assert!(said.to_string().contains("No space left"), "{said}");
    // Not a block is free any more, and restores and checks go on.
    disk.fill();
    assert_eq!(run("verify DIR/disk/r").0, 0);
    assert_eq!(run("take DIR/disk/r --from DIR/data2").0, 1);
    assert_eq!(run("restore DIR/disk/r --to DIR/restored").0, 0);
    assert_restored(&folder.path().join("restored"), &small(2, 2500));
    let (code, pruned) = run("prune DIR/disk/r --keep 1");
    assert_eq!(code, 0, "{pruned}");
    assert_eq!(pruned["deleted"][0], first["backup"]["name"]);
    // The other file takes no more room than before.
    assert_eq!(run("take DIR/disk/r --from DIR/data1").0, 0);
    assert_eq!(run("verify DIR/disk/r").0, 0);
}

/// A change of a directory or file, as `strace` shows it.
#[derive(Clone, Debug)]
enum Change {
    /// A name for a file whose contents are known by the number of its first name.
    Link(PathBuf, usize),
    Unlink(PathBuf),
    MakeDir(PathBuf),
}

impl Change {
    fn dir(&self) -> &Path {
        let (Change::Link(path, _) | Change::Unlink(path) | Change::MakeDir(path)) = self;
        path.parent().expect("below the repository")
    }
}

/// The contents of a disk with a repository.
#[derive(Clone, Default)]
struct Disk {
    /// Files by name, with the numbers of their contents.
    files: BTreeMap<PathBuf, usize>,
    dirs: BTreeSet<PathBuf>,
    /// Changes that no sync of their directory has made durable.
    pending: Vec<Change>,
    /// Contents that were synced.
    synced: BTreeSet<usize>,
}

impl Disk {
    fn apply(files: &mut BTreeMap<PathBuf, usize>, dirs: &mut BTreeSet<PathBuf>, change: &Change) {
        match change {
            Change::Link(path, contents) => drop(files.insert(path.clone(), *contents)),
            Change::Unlink(path) => drop(files.remove(path)),
            Change::MakeDir(path) => drop(dirs.insert(path.clone())),
        }
    }

    fn sync_dir(&mut self, dir: &Path) {
        let Disk { files, dirs, pending, .. } = self;
        pending.retain(|change| {
            let is_synced = change.dir() == dir;
            if is_synced {
                Disk::apply(files, dirs, change);
            }
            !is_synced
        });
    }

    /// Returns the names after a power failure: of the pending changes of each directory some of the first.
    fn after_power_failure(&self, mut seed: u64) -> (BTreeMap<PathBuf, usize>, BTreeSet<PathBuf>) {
        let (mut files, mut dirs) = (self.files.clone(), self.dirs.clone());
        let mut lost: BTreeSet<&Path> = BTreeSet::new();
        for change in &self.pending {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if !lost.contains(change.dir()) && !(seed >> 40).is_multiple_of(3) {
                Disk::apply(&mut files, &mut dirs, change);
            } else {
                lost.insert(change.dir());
            }
        }
        // A file in a directory whose name was lost is lost.
        let has_dirs =
            |path: &Path| path.ancestors().skip(1).all(|dir| dir == Path::new("") || dirs.contains(dir));
        files.retain(|path, _| has_dirs(path));
        (files, dirs)
    }
}

/// A traced command: what the disk has at each moment, and the contents of all files.
struct Traced {
    moments: Vec<Disk>,
    contents: BTreeMap<usize, Vec<u8>>,
}

fn tree(root: &Path) -> (BTreeMap<PathBuf, Vec<u8>>, BTreeSet<PathBuf>) {
    let (mut files, mut dirs) = (BTreeMap::new(), BTreeSet::new());
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).expect("a directory").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            let name = path.strip_prefix(root).expect("below").to_owned();
            if path.is_dir() {
                dirs.insert(name);
                open.push(path);
            } else {
                files.insert(name, fs::read(&path).expect("read"));
            }
        }
    }
    (files, dirs)
}

/// Runs a command under `strace`, and follows what it makes durable below the directory `r`.
fn traced(folder: &Path, arguments: &str) -> Traced {
    let root = folder.join("r");
    let (before, dirs) = tree(&root);
    let log = folder.join("trace");
    let status = Command::new("strace")
        .args(["-f", "-y", "-s", "0", "-o"])
        .arg(&log)
        .args(["-e", "trace=openat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,fsync,fdatasync"])
        .arg(PROGRAM)
        .args(["--quiet", "--no-defaults"])
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.expect("strace runs; ./x test installs it").success(), "{arguments}");
    let (after, _) = tree(&root);
    let mut numbers: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let mut contents = BTreeMap::new();
    let mut disk = Disk { dirs, ..Disk::default() };
    for (name, bytes) in before {
        let number = contents.len();
        contents.insert(number, bytes);
        disk.synced.insert(number);
        disk.files.insert(name.clone(), number);
        numbers.insert(name, number);
    }
    let real = root.canonicalize().expect("it exists");
    let name_of = |text: &str| {
        Path::new(text).strip_prefix(&real).or(Path::new(text).strip_prefix("r")).ok().map(Path::to_owned)
    };
    let mut moments = vec![disk.clone()];
    // Calls of other threads may stand between the two halves of a call.
    let mut halves: BTreeMap<String, String> = BTreeMap::new();
    for line in fs::read_to_string(&log).expect("a trace").lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(first) = call.strip_suffix("<unfinished ...>") {
            halves.insert(thread.to_owned(), first.to_owned());
            continue;
        }
        let call = match call.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            Some((_, rest)) => halves.remove(thread).unwrap_or_default() + rest,
            None => call.to_owned(),
        };
        // What did not end did not happen.
        let Some((call, result)) = call.rsplit_once(" = ") else { continue };
        if result.starts_with('-') {
            continue;
        }
        let quoted: Vec<&str> = call.split('"').skip(1).step_by(2).collect();
        let Some((verb, rest)) = call.split_once('(') else { continue };
        match verb {
            "openat" if rest.contains("O_CREAT") => {
                let Some(name) = quoted.first().and_then(|name| name_of(name)) else { continue };
                if !numbers.contains_key(&name) {
                    let number = contents.len();
                    contents.insert(number, Vec::new());
                    numbers.insert(name.clone(), number);
                    disk.pending.push(Change::Link(name, number));
                }
            }
            "link" | "linkat" | "rename" | "renameat" | "renameat2" => {
                let names: Vec<_> = quoted.iter().filter_map(|name| name_of(name)).collect();
                let [from, to] = &names[..] else { continue };
                let number = numbers[from];
                if let Some(bytes) = after.get(to) {
                    contents.insert(number, bytes.clone());
                }
                numbers.insert(to.clone(), number);
                disk.pending.push(Change::Link(to.clone(), number));
                if verb.starts_with("rename") {
                    numbers.remove(from);
                    disk.pending.push(Change::Unlink(from.clone()));
                }
            }
            "unlink" | "unlinkat" => {
                let Some(name) = quoted.first().and_then(|name| name_of(name)) else { continue };
                numbers.remove(&name);
                disk.pending.push(Change::Unlink(name));
            }
            "mkdir" | "mkdirat" => {
                let Some(name) = quoted.first().and_then(|name| name_of(name)) else { continue };
                disk.pending.push(Change::MakeDir(name));
            }
            "fsync" | "fdatasync" => {
                let path = rest.split_once('<').and_then(|(_, path)| path.split_once('>'));
                let Some(name) = path.and_then(|(path, _)| name_of(path)) else { continue };
                match numbers.get(&name) {
                    Some(number) => drop(disk.synced.insert(*number)),
                    None => disk.sync_dir(&name),
                }
            }
            _ => continue,
        }
        moments.push(disk.clone());
    }
    Traced { moments, contents }
}

/// Writes what a disk has after a power failure.
fn write_after(traced: &Traced, disk: &Disk, seed: u64, root: &Path) {
    let (files, dirs) = disk.after_power_failure(seed);
    fs::create_dir_all(root).expect("created");
    dirs.iter().for_each(|dir| fs::create_dir_all(root.join(dir)).expect("created"));
    for (name, number) in files {
        let whole = &traced.contents[&number];
        // Without a sync of the file its end may be missing.
        let length = if disk.synced.contains(&number) { whole.len() } else { whole.len() / 2 };
        fs::write(root.join(name), &whole[..length]).expect("written");
    }
}

#[test]
fn a_power_failure_of_the_repositorys_disk_leaves_each_backup_whole_or_absent() {
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    for seed in 1..=3 {
        Fake::new(small(seed, 40)).write(&folder.join(format!("data{seed}")));
    }
    let run = |arguments: &str| finish(&mut Command::new(PROGRAM), folder, arguments);
    assert_eq!(run("init r --no-encryption").0, 0);
    assert_eq!(run("take r --from data1").0, 0);
    let expected = [vec![1], vec![1, 2], vec![1, 2, 3], vec![3]];
    for (number, command) in
        ["take r --from data2", "take r --from data3", "prune r --keep 1"].iter().enumerate()
    {
        let traced = traced(folder, command);
        let last = traced.moments.len() - 1;
        assert!(last > 10, "{command}: {last} steps");
        for (moment, disk) in traced.moments.iter().enumerate() {
            // The end is that of an acknowledged command.
            for seed in 0..if moment == last { 8 } else { 2 } {
                let (root, target) = (folder.join("cut"), folder.join("target"));
                write_after(&traced, disk, seed, &root);
                let (code, listed) = run("list cut");
                assert_eq!(code, 0, "{command}: step {moment} seed {seed}: {listed}");
                let count = listed["backups"].as_array().map_or(0, Vec::len);
                let (code, verified) = run("verify cut");
                assert_eq!(code, 0, "{command}: step {moment} seed {seed}: {verified}");
                if moment == last {
                    assert_eq!(count, expected[number + 1].len(), "{command} was acknowledged, seed {seed}");
                }
                assert!(
                    count >= expected[number].len().min(expected[number + 1].len()),
                    "{command}: {count}"
                );
                if seed == 0 {
                    assert_eq!(run("restore cut --to target").0, 0, "{command}: step {moment}");
                    fs::remove_dir_all(&target).expect("removed");
                }
                fs::remove_dir_all(&root).expect("removed");
            }
        }
    }
}
