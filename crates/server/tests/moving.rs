//! Follows README.md and the tutorial and how-to pages line by line, docs/moving.md with concurrent writes
//! from applications.

mod support;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use support::{Cohort, Maria, free_port, wait_until};

const PAGE: &str = include_str!("../../../docs/moving.md");
const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");
const REPLICA_TUTORIAL: &str = include_str!("../../../docs/first-replica.md");
const BACKUP: &str = include_str!("../../../docs/backup.md");

/// Writes numbers until `stop` is set or a write is refused. Returns the acknowledged numbers.
fn write(
    mut client: mysql::Conn,
    next: &Arc<AtomicU32>,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    let (next, stop) = (Arc::clone(next), Arc::clone(stop));
    std::thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            let n = next.load(Ordering::SeqCst);
            if client
                .query_drop(format!("INSERT INTO shop.t VALUES ({n}, REPEAT('x', {}))", n % 300))
                .is_err()
            {
                return;
            }
            next.store(n + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
    })
}

#[test]
fn a_server_moves_to_cohort_and_back_by_the_page() {
    let old = Maria::source(&["--log-slave-updates"]);
    let new = Cohort::new(&["--server-id=7", "--log-slave-updates"]);
    // Applications use a separate account, which read_only blocks.
    let account = "CREATE USER app@'%' IDENTIFIED BY 'x'; GRANT SELECT, INSERT ON shop.* TO app@'%'";
    old.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, b TEXT); INSERT INTO shop.t VALUES (0, '')");
    // A new data directory has anonymous accounts for this host, which take precedence over named accounts
    // for any host.
    old.sql("SET sql_log_bin = 0; DELETE FROM mysql.global_priv WHERE User = ''; FLUSH PRIVILEGES");
    old.sql(account);
    new.sql(account);
    let app = |port: u16| {
        let options = mysql::OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .user(Some("app"))
            .pass(Some("x"))
            .prefer_socket(false);
        mysql::Conn::new(options).expect("an account")
    };
    let (next, stop) = (Arc::new(AtomicU32::new(1)), Arc::new(AtomicBool::new(false)));
    let mut writer = write(app(old.port), &next, &stop);
    let folder = tempfile::tempdir().expect("a folder");
    let (mut position, mut commands) = (String::new(), 0);
    for line in PAGE.lines().filter_map(|line| line.strip_prefix("    ")) {
        let line = line.replace("OLDPORT", &old.port.to_string()).replace("NEWPORT", &new.port.to_string());
        let line = line.replace("'POSITION'", &format!("'{position}'"));
        let Some((who, command)) = line.split_once(' ') else { panic!("{line}") };
        commands += 1;
        match who {
            "$" => {
                let address = |port: u16| format!("--no-defaults --host=127.0.0.1 --user=root --port={port}");
                let shell = command.replace("OLD", &address(old.port)).replace("NEW", &address(new.port));
                let output = Command::new("sh").args(["-c", &shell]).current_dir(folder.path()).output();
                let output = output.expect("a shell");
                assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
            }
            "old>" | "new>" => {
                let ask = |sql: &str| if who == "old>" { old.sql(sql) } else { new.sql(sql) };
                if command.contains("read_only = 1") {
                    std::thread::sleep(Duration::from_millis(500));
                    ask(command);
                    // The write is refused. The applications switch to the other server once it has received
                    // everything.
                    writer.join().expect("no panic");
                    writer = std::thread::spawn(|| ());
                } else if let Some(question) = command.strip_prefix("ZERO = ") {
                    assert_eq!(ask(question), "0", "{question}");
                } else if let Some(question) = command.strip_prefix("POSITION = ") {
                    position = ask(question);
                } else if command.starts_with("SELECT MASTER_GTID_WAIT") {
                    assert_eq!(ask(command), "0", "{command}: {}\n{}", old.status(), new.replica_status());
                } else {
                    ask(command);
                }
                if command == "RESET SLAVE ALL" {
                    let count = next.load(Ordering::SeqCst).to_string();
                    assert_eq!(ask("SELECT COUNT(*) FROM shop.t"), count, "every acknowledged row is there");
                    if who == "old>" {
                        old.sql("SET GLOBAL read_only = 0");
                    }
                    writer = write(app(if who == "old>" { old.port } else { new.port }), &next, &stop);
                }
            }
            other => panic!("{other}"),
        }
    }
    assert!(commands > 20, "the page has its lines");
    std::thread::sleep(Duration::from_millis(500));
    stop.store(true, Ordering::SeqCst);
    writer.join().expect("no panic");
    new.wait_for(&old.sql("SELECT @@gtid_binlog_pos"));
    let rows = "SELECT COUNT(*), SUM(id), SUM(LENGTH(b)) FROM shop.t";
    assert_eq!(old.sql(rows), new.sql(rows));
    assert_eq!(old.sql("SELECT COUNT(*) FROM shop.t"), next.load(Ordering::SeqCst).to_string());
}

/// Runs a shell command line.
fn shell(line: &str, folder: &std::path::Path) -> String {
    let output = Command::new("sh").args(["-c", line]).current_dir(folder).output().expect("a shell");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_server_is_backed_up_and_restored_by_the_page() {
    let server = Cohort::new(&["--server-id=1"]);
    let new = Cohort::new(&["--server-id=2"]);
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, b VARBINARY(9), d DECIMAL(9,2))",
    );
    server.sql("INSERT INTO shop.orders VALUES (1, x'FF00', 1.5), (2, 'two', NULL)");
    server.sql(
        "CREATE ROLE clerk; GRANT SELECT, INSERT ON shop.* TO clerk; CREATE USER app@'%' IDENTIFIED BY 'x'",
    );
    server.sql("GRANT clerk TO app@'%'; SET DEFAULT ROLE clerk FOR app@'%'");
    let folder = tempfile::tempdir().expect("a folder");
    let address = |port: u16| format!("--no-defaults --host=127.0.0.1 --user=root --port={port}");
    let (mut file, mut start, mut stop) = (String::new(), String::new(), String::new());
    let (mut checksums, mut commands) = (Vec::new(), 0);
    for line in BACKUP.lines().filter_map(|line| line.strip_prefix("    ")) {
        let (place, command) = line.split_once(' ').expect("a place and a command");
        let command = command.replace("FILE", &file).replace("START", &start).replace("STOP", &stop);
        commands += 1;
        match place {
            "$" if command.starts_with("grep") => {
                // -- CHANGE MASTER TO MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=2196;
                let found = shell("grep -m1 'MASTER_LOG_FILE' full.sql", folder.path());
                let mut parts = found.split(['\'', '=', ';']).map(str::trim).filter(|part| !part.is_empty());
                file = parts.nth(1).expect("a file").to_owned();
                start = parts.nth(1).expect("a position").to_owned();
                server.sql("INSERT INTO shop.orders VALUES (3, 'three', 3)");
                server.sql("UPDATE shop.orders SET d = 2.25 WHERE id = 2");
                server.sql("DROP TABLE shop.orders");
            }
            "$" => {
                let line =
                    command.replace("SERVER", &address(server.port)).replace("NEW", &address(new.port));
                shell(&line, folder.path());
            }
            "server>" | "new>" => {
                let asked = if place == "server>" { &server } else { &new };
                if let Some(question) = command.strip_prefix("CHECKSUM = ") {
                    checksums.push(asked.sql(question));
                } else {
                    let events = asked.sql(&command);
                    let events: Vec<Vec<&str>> =
                        events.lines().map(|event| event.split('\t').collect()).collect();
                    let drop =
                        events.iter().position(|event| event[5].contains("DROP TABLE")).expect("there");
                    stop = events[drop - 1][1].to_owned();
                }
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(commands, 7, "the page has its lines");
    assert!(checksums.len() == 2 && checksums[0] == checksums[1], "{checksums:?}");
    let rows = new.sql("SELECT id, HEX(b), d FROM shop.orders ORDER BY id");
    assert_eq!(rows, "1\tFF00\t1.50\n2\t74776F\t2.25\n3\t7468726565\t3.00");
    let grants =
        |server: &Cohort| server.sql("SHOW GRANTS FOR app@'%'") + &server.sql("SHOW GRANTS FOR clerk");
    assert_eq!(grants(&new), grants(&server));
}

/// A directory in which tutorials start servers.
struct Lesson {
    folder: tempfile::TempDir,
    /// The ports of Cohort and of MariaDB.
    ports: (u16, u16),
    /// Passwords of accounts that the page sets.
    passwords: HashMap<&'static str, String>,
    /// The text that `POSITION` stands for.
    position: String,
}

impl Drop for Lesson {
    fn drop(&mut self) {
        // If the page is correct, the servers have already ended.
        for file in ["data/cohort.lock", "replica/replica.pid"] {
            let line = format!("test ! -e {file} || kill -9 $(cat {file})");
            let _ = Command::new("sh").args(["-c", &line]).current_dir(self.folder.path()).output();
        }
    }
}

impl Lesson {
    fn new() -> Lesson {
        let folder = tempfile::tempdir().expect("a folder");
        Lesson {
            folder,
            ports: (free_port(), free_port()),
            passwords: HashMap::new(),
            position: String::new(),
        }
    }

    /// Runs the lines of a page. Returns their number, and the answers of the statements.
    fn follow(&mut self, page: &'static str) -> (usize, Vec<String>) {
        let (mut answers, mut commands) = (Vec::new(), 0);
        for line in page.lines().filter_map(|line| line.strip_prefix("    ")) {
            let (who, command) = line.split_once(' ').expect("a place and a command");
            commands += 1;
            match who {
                "$" => self.shell(command),
                _ => answers.extend(self.statement(who.trim_end_matches('>'), command)),
            }
        }
        (commands, answers)
    }

    fn shell(&self, command: &str) {
        let (cohort, other) = self.ports;
        let command = command.replace("PORT", &cohort.to_string()).replace("OTHER", &other.to_string());
        let programs = std::path::Path::new(env!("CARGO_BIN_EXE_cohortd")).parent().expect("a folder");
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        // The server would keep the shell's output open.
        let ended = Command::new("timeout")
            .args(["60", "sh", "-c", &command])
            .current_dir(self.folder.path())
            .env("PATH", &path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(ended.expect("a shell").success(), "{command}");
    }

    /// Runs `ERROR code = statement`, `POSITION = statement`, `statement  -- answer` or a plain statement.
    fn statement(&mut self, who: &'static str, command: &str) -> Vec<String> {
        let (code, statement) = match command.strip_prefix("ERROR ").and_then(|rest| rest.split_once(" = ")) {
            Some((code, statement)) => (code.parse().expect("a number"), statement),
            None => (0, command),
        };
        let (keep, statement) =
            statement.strip_prefix("POSITION = ").map_or((false, statement), |rest| (true, rest));
        let (statement, expected) = match statement.split_once("  -- ") {
            Some((statement, expected)) => (statement, Some(expected)),
            None => (statement, None),
        };
        let (cohort, other) = self.ports;
        let statement = statement.replace("PORT", &cohort.to_string()).replace("POSITION", &self.position);
        let (user, port) = if who == "replica" { ("root", other) } else { (who, cohort) };
        let options = mysql::OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .user(Some(user))
            .pass(self.passwords.get(who).cloned())
            .prefer_socket(false);
        let mut client = mysql::Conn::new(options).expect("an account of the page");
        let mut answers = Vec::new();
        match client.query_iter(&statement) {
            Ok(rows) => {
                assert_eq!(code, 0, "{statement}");
                let rows = rows.map(|row| row.expect("a row").unwrap());
                let shown = |value: &mysql::Value| value.as_sql(true).trim_matches('\'').to_owned();
                answers.extend(rows.map(|row| row.iter().map(shown).collect::<Vec<_>>().join(" ")));
            }
            Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, code, "{statement}: {error}"),
            Err(error) => panic!("{statement}: {error}"),
        }
        if let Some(expected) = expected {
            assert_eq!(answers, [expected], "{statement}");
        }
        if keep {
            self.position = answers[0].clone();
        }
        let password = statement.split_once("IDENTIFIED BY '").and_then(|(_, rest)| rest.strip_suffix('\''));
        if let Some(password) = password {
            let whose = if statement.contains(" app@") { "app" } else { "root" };
            if !statement.contains(" repl@") {
                self.passwords.insert(whose, password.to_owned());
            }
        }
        answers
    }
}

#[test]
fn a_first_server_is_run_by_the_page() {
    let (commands, answers) = Lesson::new().follow(TUTORIAL);
    assert_eq!(commands, 18, "the page has its lines");
    assert!(answers.contains(&"a lamp 39.00".to_owned()), "{answers:?}");
    assert_eq!(answers.last().map(String::as_str), Some("2"), "rows survive the crash");
}

#[test]
fn a_first_replica_is_broken_and_repaired_by_the_page() {
    let (commands, answers) = Lesson::new().follow(REPLICA_TUTORIAL);
    assert_eq!(commands, 30, "the page has its lines");
    assert_eq!(answers.last().map(String::as_str), Some("a chair"), "the replica has the source's row");
}

/// Pages that a new user follows from the top, each in a directory of its own. Other tests of this file
/// follow docs/moving.md, docs/backup.md and the tutorials.
const HOW_TO: &[(&str, &str)] = &[
    ("README.md", include_str!("../../../README.md")),
    ("docs/howto/install.md", include_str!("../../../docs/howto/install.md")),
    ("docs/howto/configure.md", include_str!("../../../docs/howto/configure.md")),
    ("docs/operating.md", include_str!("../../../docs/operating.md")),
    ("docs/upgrade.md", include_str!("../../../docs/upgrade.md")),
    ("docs/replication.md", include_str!("../../../docs/replication.md")),
    ("docs/howto/monitor.md", include_str!("../../../docs/howto/monitor.md")),
    ("docs/howto/console.md", include_str!("../../../docs/howto/console.md")),
    ("docs/howto/secure.md", include_str!("../../../docs/howto/secure.md")),
    ("docs/encryption.md", include_str!("../../../docs/encryption.md")),
    ("docs/howto/change-tables.md", include_str!("../../../docs/howto/change-tables.md")),
    ("docs/howto/disk-full.md", include_str!("../../../docs/howto/disk-full.md")),
];

/// Names in the pages that stand for others in the test.
const STAND_INS: &[(&str, &str)] = &[
    ("/etc/cohort", "@DIR@/etc/cohort"),
    ("/var/lib/cohort", "@DIR@/var/lib/cohort"),
    ("/srv/cohort", "@DIR@/srv/cohort"),
    ("=@DIR@/srv/cohort/socket", "=@DIR@/srv/cohort/socket --port=@PORT@ --bind-address=127.0.0.1"),
    ("--user=cohort", "--user=@USER@"),
    ("--host=cohort", "--host=127.0.0.1 --user=root"),
    ("./x run", "./x run --port=@PORT@ --socket=@DIR@/socket"),
    ("--metrics-port=9104", "--metrics-port=@METRICS@"),
    ("'0-1-4711'", "''"),
];

/// The value of `max_connections` in the option file that `./x run` must not read.
const FOREIGN: u32 = 77;

/// A code block of a page.
struct Block {
    kind: &'static str,
    lines: Vec<&'static str>,
}

fn blocks(page: &'static str) -> Vec<Block> {
    let (mut found, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some(Block { kind, lines: Vec::new() }),
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => block.lines.push(line),
            (None, None) => assert!(!line.starts_with("    "), "a block without its kind: {line}"),
        }
    }
    found
}

/// A new user in a fresh directory, who follows one page.
struct Newcomer {
    folder: tempfile::TempDir,
    port: u16,
    metrics: u16,
    path: String,
    user: String,
    /// The server that the page last started.
    server: Option<Child>,
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Newcomer {
    /// Has the programs of a package in the path, and the checkout's `x`, for which everything is built.
    fn new() -> Newcomer {
        let folder = tempfile::tempdir().expect("a folder");
        let built = std::path::Path::new(env!("CARGO_BIN_EXE_cohortd"));
        let (port, metrics) = (free_port(), free_port());
        let at = |name: &str| folder.path().join(name);
        let archive = "cohort-VERSION-linux-x86_64";
        for name in
            ["bin", "etc/cohort", "var/lib", "srv", "target/release", &format!("packed/{archive}/bin")]
        {
            std::fs::create_dir_all(at(name)).expect("made");
        }
        for link in ["bin/cohortd", "target/release/cohortd", &format!("packed/{archive}/bin/cohortd")] {
            std::os::unix::fs::symlink(built, at(link)).expect("linked");
        }
        // A profile of tests has the load generator only when the whole workspace was built.
        let _ = std::os::unix::fs::symlink(
            built.with_file_name("cohort-bench"),
            at("target/release/cohort-bench"),
        );
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../x");
        std::fs::copy(source, at("x")).expect("copied");
        for program in ["cargo", "dpkg-query"] {
            let text = "#!/bin/sh\necho 'install ok installed'\n";
            std::fs::write(at("bin").join(program), text).expect("written");
            shell(&format!("chmod +x bin/{program}"), folder.path());
        }
        shell(&format!("tar -C packed -cf {archive}.tar.zst {archive}"), folder.path());
        let options = format!(
            "[cohortd]\ndatadir={dir}/var/lib/cohort\nport={port}\nsocket={dir}/socket\nbind-address=127.0.0.1\n",
            dir = folder.path().display()
        );
        std::fs::write(at("etc/cohort/cohort.cnf"), options).expect("written");
        let path = format!("{}:{}", at("bin").display(), std::env::var("PATH").unwrap_or_default());
        // Stands for the option files of an installed MariaDB.
        std::fs::write(at(".my.cnf"), format!("[mysqld]\nmax_connections={FOREIGN}\n")).expect("written");
        // Root gives the data directory to a user who owns nothing above it.
        shell("chmod 755 .", folder.path());
        let user = shell("if [ $(id -u) = 0 ]; then echo nobody; else id -un; fi", folder.path());
        let user = user.trim().to_owned();
        Newcomer { folder, port, metrics, path, user, server: None }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.folder.path());
        command.env("PATH", &self.path).env("MYSQL_TCP_PORT", self.port.to_string());
        command.env("CARGO_TARGET_DIR", self.folder.path().join("target")).env("HOME", self.folder.path());
        command.stdin(Stdio::null()).stdout(self.output()).stderr(self.output());
        command
    }

    /// Returns the file with the output of all commands.
    fn output(&self) -> std::fs::File {
        let path = self.folder.path().join("output");
        std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file")
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("output")).unwrap_or_default()
    }

    fn replaced(&self, text: &str) -> String {
        let text = STAND_INS.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        let text =
            text.replace("@DIR@", &self.folder.path().display().to_string()).replace("@USER@", &self.user);
        text.replace("@PORT@", &self.port.to_string()).replace("@METRICS@", &self.metrics.to_string())
    }

    fn client(&self) -> mysql::Result<mysql::Conn> {
        let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(self.port);
        mysql::Conn::new(options.user(Some("root")).prefer_socket(false))
    }

    /// Runs a line of a page. Returns whether it ran.
    fn run(&mut self, line: &str) {
        let line = self.replaced(line.split("   #").next().unwrap_or(line).trim_end());
        if line.contains("--demo") && !self.folder.path().join("target/release/cohort-bench").exists() {
            eprintln!("without cohort-bench there is no demo");
            return;
        }
        let is_task =
            ["--initialize", "--validate-config", "--convert"].iter().any(|task| line.contains(task));
        if line.contains("x run") || (line.contains("cohortd --") && !is_task) {
            self.stop();
            self.serve(&line);
            return;
        }
        if is_task {
            self.stop();
        } else if line.starts_with("mariadb") && self.server.is_none() {
            self.serve("cohortd --defaults-file=etc/cohort/cohort.cnf");
        }
        // A command that follows the server's binary log does not end by itself.
        let (wanted, seconds) = if line.contains("--stop-never") { (124, 2) } else { (0, 60) };
        let ended = self.command(&format!("timeout {seconds} {line}")).status().expect("a shell");
        assert_eq!(ended.code(), Some(wanted), "{line}:\n{}", self.said());
    }

    /// Starts a server and waits until it accepts connections.
    fn serve(&mut self, line: &str) {
        let datadir = self.folder.path().join("var/lib/cohort");
        if line.contains("defaults-file") && !datadir.exists() {
            self.run("cohortd --no-defaults --initialize --datadir=/var/lib/cohort");
        }
        let mut server = self.command(&format!("exec {line}")).spawn().expect("a shell");
        let end = Instant::now() + Duration::from_secs(60);
        while self.client().is_err() {
            let ended = server.try_wait().expect("asked");
            assert!(ended.is_none() && Instant::now() < end, "{line}:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.server = Some(server);
        // Regression test: the demo read the option files of MariaDB, and took its pid file.
        if line.contains("x run") {
            let limit: Option<u32> =
                self.client().expect("a client").query_first("SELECT @@max_connections").expect("runs");
            assert_ne!(limit, Some(FOREIGN), "{line}");
        }
        if line.contains("--demo") {
            wait_until("the demo ends", || self.said().contains("The server keeps running"));
        }
    }

    /// Stops the server as Ctrl-C does.
    fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        shell(&format!("kill -INT {}", server.id()), self.folder.path());
        let ended = server.wait().expect("ended");
        assert!(ended.success() || std::thread::panicking(), "{ended}:\n{}", self.said());
    }

    fn statements(&mut self, lines: &[&str]) {
        if self.server.is_none() {
            self.serve("cohortd --defaults-file=etc/cohort/cohort.cnf");
        }
        let mut client = self.client().expect("a client");
        for line in lines {
            let statements = self.replaced(line.split("  --").next().unwrap_or(line));
            for statement in statements.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
                client.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
            }
        }
    }

    /// Checks that the endpoint has the metrics of an alert.
    fn metrics_of(&self, lines: &[&str]) {
        let address = format!("127.0.0.1:{}", self.metrics);
        let mut endpoint = std::net::TcpStream::connect(address).expect("the page has turned it on");
        endpoint
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut metrics = String::new();
        endpoint.read_to_string(&mut metrics).expect("an answer");
        for expression in lines.iter().filter_map(|line| line.split_once("expr: ")) {
            let name =
                expression.1.split(['(', '[']).find(|part| part.starts_with("cohort_")).expect("a metric");
            assert!(metrics.contains(&format!("\n{name} ")), "{name}");
        }
    }
}

#[test]
fn a_new_user_follows_the_pages() {
    let (mut followed, mut by_the_system) = (0, 0);
    for (name, page) in HOW_TO {
        let mut user = Newcomer::new();
        for block in blocks(page) {
            followed += block.lines.len();
            match block.kind {
                "sh" => block.lines.iter().for_each(|line| user.run(line)),
                // Packages, containers and disks: `./x package --test` runs the first two.
                "sh system" => by_the_system += block.lines.len(),
                "sql" => user.statements(&block.lines),
                "ini" => {
                    let file = user.folder.path().join("page.cnf");
                    std::fs::write(file, user.replaced(&block.lines.join("\n"))).expect("written");
                    user.run("cohortd --defaults-file=page.cnf --validate-config");
                }
                "yaml" => user.metrics_of(&block.lines),
                "text" => {}
                other => panic!("{name}: blocks of kind '{other}' are not known"),
            }
        }
        user.stop();
    }
    assert!(followed > 50 && by_the_system <= 8, "{followed} lines, {by_the_system} not run");
}

/// Calls of `x` with missing packages: arguments, whether on a terminal, the reply, and whether it installs.
const INSTALLS: &[(&str, bool, &str, bool)] = &[
    ("build", false, "", true),
    ("build", true, "", true),
    ("build", true, "y", true),
    ("build", true, "n", false),
    ("--yes build", true, "n", true),
    ("build --help", true, "", false),
    ("run --help", false, "", false),
    ("bench --help", false, "", false),
    ("crash --help", false, "", false),
    ("test --help", false, "", false),
    ("docs --help", false, "", false),
    ("package --help", false, "", false),
];

#[test]
fn packages_are_installed_after_a_question() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../x");
    std::fs::copy(source, folder.path().join("x")).expect("copied");
    for (program, text) in
        [("cargo", "exit 1"), ("dpkg-query", ""), ("id", "echo 0"), ("apt-get", "touch ran")]
    {
        std::fs::write(folder.path().join(program), format!("#!/bin/sh\n{text}\n")).expect("written");
        shell(&format!("chmod +x {program}"), folder.path());
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    for (arguments, is_terminal, reply, installs) in INSTALLS {
        let call = format!("CARGO_TARGET_DIR=$PWD/target ./x {arguments}");
        let line = match is_terminal {
            true => format!("printf '{reply}\\n' | script -qec '{call}' /dev/null"),
            false => format!("{call} </dev/null"),
        };
        let mut command = Command::new("sh");
        let command = command.args(["-c", &line]).current_dir(folder.path()).env("PATH", &path);
        let output = command.output().expect("a shell");
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let ran = std::fs::remove_file(folder.path().join("ran")).is_ok();
        assert_eq!(ran, *installs, "{arguments}, terminal: {is_terminal}, reply '{reply}': {said}");
        assert_eq!(said.contains("build-essential"), !arguments.contains("--help"), "{arguments}: {said}");
        assert_eq!(said.contains("[Y/n]"), *is_terminal && *arguments == "build", "{arguments}: {said}");
    }
}
