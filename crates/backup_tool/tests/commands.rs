//! The program: commands, results as JSON, exit codes.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::{Fake, assert_restored, files};

/// A folder with a program that works in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_cohort-backup"))
            .args(arguments.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("COHORT_BACKUP_KEY_FILE")
            .env_remove("COHORT_BACKUP_REPOSITORY")
            .env("HOME", self.0.path())
            .output()
            .expect("the program")
    }

    /// Runs a command that must succeed, and returns its JSON.
    fn json(&self, arguments: &str) -> Value {
        let output = self.run(&format!("--json {arguments}"));
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// Runs a command that must fail with this exit code and text.
    fn fails(&self, arguments: &str, code: i32, text: &str) {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        assert!(said.contains(text), "{arguments}: {said}");
        // A second attempt finds other circumstances after those failures.
        if !matches!(code, 2 | 3) {
            let output = self.run(&format!("--json {arguments}"));
            let value: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
            assert_eq!(value["exit_code"], code, "{value}");
        }
    }
}

fn source(folder: &Folder, name: &str, fake: Fake) {
    fake.write(&folder.path(name));
}

#[test]
fn a_backup_goes_round() {
    let folder = Folder::new();
    source(&folder, "first", Fake::new(files(1)));
    let mut changed = files(1);
    changed.get_mut("innodb/data").expect("a file")[..100].fill(7);
    source(&folder, "second", Fake::new(changed.clone()));

    let made = folder.json("init repository --key-file key");
    assert_eq!(made["encrypted"], true);
    assert_eq!(fs::metadata(folder.path("key")).expect("the key").permissions().mode() & 0o777, 0o600);
    let first = folder.json("take repository --key-file key --from first");
    let second = folder.json("take repository --key-file key --from second");
    let added = |taken: &Value| taken["backup"]["added_bytes"].as_u64().expect("a number");
    assert!(added(&second) < added(&first) * 6 / 10, "{} {}", added(&first), added(&second));
    let listed = folder.json("list repository --key-file key");
    assert_eq!(listed["backups"][1]["name"], second["backup"]["name"]);
    assert_eq!(listed["backups"][0]["manifest"]["binlog"]["offset"], 9000);
    let verified = folder.json("verify repository --key-file key");
    assert_eq!(verified["whole"].as_array().map(Vec::len), Some(2));

    fs::create_dir(folder.path("empty")).expect("created");
    let restored = folder.json("restore repository --key-file key --to empty");
    assert_eq!(restored["manifest"]["gtid_current_pos"], "0-1-77");
    assert_restored(&folder.path("empty"), &changed);
    let name = first["backup"]["name"].as_str().expect("a name");
    folder.json(&format!("restore repository --key-file key --to a/new/one --backup {name}"));
    assert_restored(&folder.path("a/new/one"), &files(1));

    let dry = folder.json("prune repository --key-file key --keep 1 --dry-run");
    assert_eq!((&dry["deleted"][0], &dry["dry_run"]), (&first["backup"]["name"], &Value::Bool(true)));
    assert_eq!(folder.json("prune repository --key-file key --keep-days 1")["deleted"], Value::Array(vec![]));
    let pruned = folder.json("prune repository --key-file key --keep 1");
    assert_eq!(pruned["deleted_chunks"], dry["deleted_chunks"]);
    assert_eq!(folder.json("verify repository --key-file key")["whole"].as_array().map(Vec::len), Some(1));
    assert!(folder.json("prune repository --key-file key --keep 0")["deleted"] == Value::Array(vec![]));
}

#[test]
fn each_refusal_has_its_exit_code_and_changes_nothing() {
    let folder = Folder::new();
    source(&folder, "data", Fake::new(files(1)));
    source(&folder, "other", Fake { server: "server-2", ..Fake::new(files(2)) });
    folder.json("init r --key-file key");
    folder.json("init open --no-encryption");
    folder.json("init r2 --key-file key2");
    folder.json("take r --key-file key --from data");
    fs::write(folder.path("torn"), &fs::read(folder.path("key")).expect("the key")[..150]).expect("written");
    fs::write(
        folder.path("changed"),
        fs::read_to_string(folder.path("key")).expect("the key").replace("key-1 ", "key-1 0"),
    )
    .expect("written");
    fs::create_dir(folder.path("busy")).expect("created");
    fs::write(folder.path("busy/file"), "x").expect("written");
    fs::create_dir(folder.path("plain")).expect("created");

    folder.fails("init r --key-file key3", 4, "is a repository already");
    folder.fails("init r3", 5, "--key-file");
    folder.fails("init r3 --key-file key", 4, "cannot create the key file");
    folder.fails("init r3 --key-file r3/key", 4, "lies in the repository");
    folder.fails("take r --from data", 5, "is encrypted");
    folder.fails("take r --key-file key2 --from data", 5, "another repository");
    folder.fails("take r --key-file torn --from data", 5, "not a key file");
    folder.fails("take r --key-file changed --from data", 5, "damaged");
    folder.fails("take r --key-file none --from data", 5, "No such file");
    folder.fails("take open --key-file key --from data", 5, "not encrypted");
    folder.fails("take r --key-file key --from plain", 4, "does not exist: the directory is no backup");
    folder.fails("take r --key-file key --from other", 4, "--another-server");
    folder.json("take r --key-file key --from other --another-server");
    source(&folder, "unnamed", Fake { server: "", ..Fake::new(files(1)) });
    folder.json("init unnamed-r --no-encryption");
    folder.json("take unnamed-r --from unnamed");
    folder.fails("take unnamed-r --from unnamed", 4, "without server_uid");
    source(&folder, "old", Fake { cut: "2026-11-28T19:30:59Z", server: "server-2", ..Fake::new(files(1)) });
    folder.fails("take r --key-file key --from old", 4, "older than that of the newest backup");
    folder.fails("take r --key-file key --host h --rate-limit 17592186044416", 2, "--rate-limit");
    folder.fails("take nothing --from data", 4, "no such directory");
    folder.fails("list plain", 4, "is not a repository");
    folder.fails("restore r --key-file key --to busy", 4, "is not empty: it has 'file'");
    folder.fails("restore r --key-file key --to new --backup no", 4, "has no backup no");
    folder.fails("restore open --to new", 4, "has no backups");
    folder.fails("restore open --to new --to-latest", 4, "has no archive of the log");
    folder.fails("restore open --to new --to-time yesterday", 4, "is no time");
    folder.fails("restore open --to new --to-latest --to-gtid 0-1-2", 2, "cannot be used with");
    folder.fails("clone --to busy --host 127.0.0.1 --port 1", 1, "cannot connect");
    folder.fails("clone --to new --socket none", 1, "cannot connect to none");
    folder.fails("clone --to new --host h --server-id 7", 2, "--replica");
    folder.fails("take r --from data --host h", 2, "cannot be used with");
    folder.fails("restore r --key-file key --to new --backup ../locks/x", 4, "not the name of a backup");
    assert!(!folder.path("new").exists());
    folder.fails("prune r --key-file key", 2, "--keep");
    folder.fails("frobnicate r", 2, "unrecognized");

    let description = folder.path("open/cohort-repository");
    let text = fs::read_to_string(&description).expect("the description");
    let line = text.lines().next().expect("a line").replace("\"version\":1", "\"version\":2,\"more\":[1]");
    fs::write(folder.path("line"), &line).expect("written");
    let hash = Command::new("sha256sum").arg(folder.path("line")).output().expect("sha256sum").stdout;
    let hash = String::from_utf8(hash).expect("digits");
    fs::write(&description, format!("{line}\n{}\n", &hash[..64])).expect("written");
    folder.fails("list open", 7, "format version 2");
    fs::write(&description, text.replace("none", "nine")).expect("written");
    folder.fails("list open", 3, "is damaged");

    let chunks = folder.path("r/chunks");
    let chunk = walk(&chunks).into_iter().max_by_key(|path| fs::metadata(path).expect("a file").len());
    fs::write(chunk.expect("a chunk"), "short").expect("written");
    let output = folder.run("--json verify r --key-file key");
    assert_eq!(output.status.code(), Some(3));
    let verified: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let damaged = verified["findings"][0]["backups"][0].as_str().expect("a name");
    let restore = format!("restore r --key-file key --to new --backup {damaged}");
    folder.fails(&restore, 3, "is unusable");
    assert!(!folder.path("new/cohort-backup.json").exists());
    folder.fails(&restore, 4, "is not empty");
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn option_files_are_read_as_by_mariadbs_programs() {
    let folder = Folder::new();
    folder.json("init r --key-file key");
    folder.fails("--no-defaults list r", 5, "is encrypted");
    let write = |name: &str, text: &str| fs::write(folder.path(name), text).expect("written");
    write(".my.cnf", "[cohort-backup]\nkey-file = key\nrate-limit=7\n");
    folder.json("list r");
    folder.fails("list r --no-defaults", 5, "is encrypted");
    folder.fails("list r --defaults-file none", 4, "Could not open required defaults file: none");
    write("other", "[cohort-backup]\nkey-file = wrong\n[cohort-backup2]\nkey-file=key\n");
    folder.fails("list r --defaults-file other", 5, "wrong");
    folder.json("list r --defaults-file other --defaults-group-suffix 2");
    folder.json("list r --defaults-file other --key-file key");
    // The user's file is read after this one.
    folder.json("list r --defaults-extra-file other");
    write("bad", "[cohort-backup]\nkey-flie = key\n");
    folder.fails("list r --defaults-file bad", 4, "unknown option '--key-flie' in bad at line 2");
    write("bad", "[cohort-backup]\nkey-file = key\nrate-limit=many\n");
    folder.fails("take r --from data --defaults-file bad", 4, "'many' is no value of rate-limit");
    write("client", "[client]\nhost=127.0.0.1\nport=1\npassword=hidden\n[cohort-backup]\nkey-file=key\n");
    folder.fails("take r --defaults-file client", 1, "cannot connect to 127.0.0.1:1");
    folder.fails("clone --to new --defaults-file client", 1, "cannot connect to 127.0.0.1:1");

    // Files with every notation, read by both programs.
    let texts = [
        "[client]\nuser = a b # c\nport=1\n[mysqld]\nport=2\n[cohort-backup]\nport = 3\n",
        "[cohort-backup]\nhost='x # y'\nuser=\"it's\"\n\n; no\n[client]\nhost = z\\sz\\\\z\nsocket=\n",
        "[client-mariadb]\nuser=1\n[client]\nuser=2\n[client-server]\nuser=3\n[client7]\nuser=4\n[other]\nuser=5\n",
        "!include included\n[client]\nport=9\n!include included\n",
    ];
    write("included", "[client]\nuser=included\n");
    for text in texts {
        write("file", text);
        let options = "--defaults-file=file --defaults-group-suffix=7";
        let ours = folder.run(&format!("{options} --print-defaults list r"));
        let theirs = Command::new("my_print_defaults")
            .args(options.split_whitespace())
            .args(["client", "client-server", "client-mariadb", "cohort-backup"])
            .current_dir(folder.path(""))
            .output()
            .expect("MariaDB's client programs");
        let theirs = String::from_utf8(theirs.stdout).expect("UTF-8");
        let ours = String::from_utf8(ours.stdout).expect("UTF-8");
        let ours = ours.lines().nth(1).unwrap_or_default();
        assert_eq!(ours, theirs.lines().collect::<Vec<_>>().join(" "), "{text}");
    }
    let shown = String::from_utf8(folder.run("list r --defaults-file client --print-defaults").stdout);
    let shown = shown.expect("UTF-8");
    assert!(shown.contains("--password=*****") && !shown.contains("hidden"), "{shown}");
}

#[test]
fn a_killed_take_is_resumed() {
    let folder = Folder::new();
    source(&folder, "data", Fake::new(files(1)));
    folder.json("init r --no-encryption");
    let mut child = Command::new(env!("CARGO_BIN_EXE_cohort-backup"))
        .args(["take", "r", "--from", "data", "--rate-limit", "4"])
        .current_dir(folder.path(""))
        .spawn()
        .expect("the program");
    // The first chunk of the large file is stored, and more than a second of work is left.
    let chunks = folder.path("r/chunks");
    while !chunks.exists() || walk(&chunks).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert_eq!(folder.json("list r")["backups"], Value::Array(vec![]));
    // Its lock is that of a process which has ended.
    let dry = folder.json("prune r --keep 1 --dry-run");
    let left = dry["deleted_chunks"].as_u64().expect("a number");
    assert!(left > 0);
    let taken = folder.json("take r --from data");
    assert!(taken["reused_bytes"].as_u64().expect("a number") > 0, "{taken}");
    folder.json("restore r --to new");
    assert_restored(&folder.path("new"), &files(1));
    // What a killed write has left goes away, once it is old; a file of another name stays.
    for (name, is_old) in [("r/chunks/ab#1", true), ("r/chunks/ab#2", false), ("r/chunks/ab#x", true)] {
        let file = fs::File::create(folder.path(name)).expect("created");
        let age = std::time::Duration::from_secs(if is_old { 7200 } else { 60 });
        file.set_modified(std::time::SystemTime::now() - age).expect("set");
    }
    assert_eq!(folder.json("prune r --keep 1")["deleted_chunks"], 0);
    let left = ["ab#1", "ab#2", "ab#x"].map(|name| folder.path("r/chunks").join(name).exists());
    assert_eq!(left, [false, true, true]);
}

#[test]
fn the_man_page_and_the_completions_name_every_command() {
    let folder = Folder::new();
    let text = |arguments: &str| String::from_utf8(folder.run(arguments).stdout).expect("UTF-8");
    for command in ["init", "take", "clone", "list", "verify", "restore", "prune", "archive"] {
        for page in ["man-page", "completions bash", "completions fish", "completions zsh", "--help"] {
            assert!(text(page).to_lowercase().contains(command), "{page}: {command}");
        }
    }
    assert!(text("man-page").contains("EXIT"), "{}", text("man-page"));
    assert!(text("--help").contains("exit codes") || text("--help").contains("Exit codes"));
}

#[test]
fn the_program_accepts_the_commands_of_the_documentation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto");
    let pages = ["repositories", "point-in-time", "new-replica", "move-machine", "dropped-table", "lost-key"];
    let mut count = 0;
    for page in pages {
        let text = fs::read_to_string(folder.join(page).with_extension("md")).expect(page);
        let commands = text.lines().filter_map(|line| line.trim_start().strip_prefix("$ "));
        for command in commands.filter(|line| line.starts_with("cohort-backup")) {
            let words: Vec<&str> = command.split_whitespace().collect();
            assert_eq!(cohort_backup_tool::cli::check(&words), Ok(()), "{page}: {command}");
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
    assert!(cohort_backup_tool::cli::check(&["cohort-backup", "take", "r", "--password=x"]).is_err());
}
