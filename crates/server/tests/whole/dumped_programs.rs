//! Dumps with stored programs and accounts, exchanged with a real MariaDB by the command-line programs.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Cohort, Maria, run, text};

/// Dumps the database with its programs, without the lines that name a server and its version.
fn dump(socket: &Path) -> String {
    let socket = format!("--socket={}", socket.display());
    let options = ["--no-defaults", "--user=root", &socket, "--skip-dump-date"];
    let programs = ["--routines", "--triggers", "--events", "--databases", "dumped"];
    let output = run("mariadb-dump", &[options.as_slice(), &programs].concat());
    assert!(output.status.success(), "{}", text(&output));
    let dumped = String::from_utf8(output.stdout).expect("UTF-8");
    dumped.lines().filter(|line| !line.starts_with("-- ")).map(|line| format!("{line}\n")).collect()
}

/// Creates the database from a dump or a script. Comments are sent to the server.
fn load(folder: &Path, socket: &Path, script: &str) {
    let path = folder.join("script.sql");
    std::fs::write(&path, format!("DROP DATABASE IF EXISTS dumped;\n{script}")).expect("written");
    let options =
        ["--no-defaults", "--user=root", "--comments", "--default-character-set=utf8mb4", "--socket"];
    let input = Stdio::from(std::fs::File::open(&path).expect("written"));
    let output = Command::new("mariadb").args(options).arg(socket).stdin(input).output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn programs_pass_through_dumps_in_both_directions() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mariadb = Maria::new(&[]);
    let (here, there) = (server.socket.as_path(), mariadb.socket.as_path());
    let script = include_str!("scripts/dumped_programs.sql");
    [here, there].iter().for_each(|socket| load(folder.path(), socket, script));
    let theirs = dump(there);
    for kind in ["PROCEDURE `p`", "AGGREGATE FUNCTION `ag`", "TRIGGER t1", "EVENT `e2`"] {
        assert!(theirs.contains(kind), "{kind} is missing in\n{theirs}");
    }
    assert_same(&dump(here), &theirs, "the same definitions, dumped here");
    load(folder.path(), here, &theirs);
    let ours = dump(here);
    assert_same(&ours, &theirs, "a dump of MariaDB, loaded and dumped here");
    load(folder.path(), there, &ours);
    assert_same(&dump(there), &theirs, "a dump of Cohort, loaded and dumped by MariaDB");
}

/// Requires equal dumps. Shows the lines that differ.
fn assert_same(left: &str, right: &str, what: &str) {
    let only = |left: &str, right: &str| -> Vec<String> {
        left.lines().filter(|line| !right.lines().any(|other| other == *line)).map(str::to_owned).collect()
    };
    assert!(left == right, "{what}:\nhere {:#?}\nthere {:#?}", only(left, right), only(right, left));
}

/// Runs statements with the command-line client. Returns the rows.
fn sql(socket: &Path, statements: &str) -> String {
    let socket = format!("--socket={}", socket.display());
    let options = ["--no-defaults", "--user=root", "--raw", "--skip-column-names", &socket, "--execute"];
    let output = run("mariadb", &[options.as_slice(), &[statements]].concat());
    assert!(output.status.success(), "{statements}: {}", text(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns how each account logs in and what it may do.
fn accounts(socket: &Path) -> String {
    let names =
        "CONCAT(IF(User = 'PUBLIC', User, QUOTE(User)), IF(Host = '', '', CONCAT('@', QUOTE(Host))), ';')";
    let shown = sql(
        socket,
        &format!(
            "SELECT CONCAT(IF(Host = '', '', 'SHOW CREATE USER '), IF(Host = '', '', {names}), 'SHOW GRANTS FOR ', \
             {names}) FROM mysql.global_priv ORDER BY User, Host"
        ),
    );
    let mut lines: Vec<String> = sql(socket, &shown).lines().map(str::to_owned).collect();
    lines.sort();
    lines.join("\n")
}

/// Dumps all databases with the tables of accounts.
fn dump_all(socket: &Path, options: &[&str]) -> String {
    let socket = format!("--socket={}", socket.display());
    let all =
        ["--no-defaults", "--user=root", &socket, "--all-databases", "--routines", "--triggers", "--events"];
    let output = run("mariadb-dump", &[all.as_slice(), options].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn accounts_pass_through_dumps_in_both_directions() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mariadb = Maria::new(&[]);
    let (here, there) = (server.socket.as_path(), mariadb.socket.as_path());
    let script = include_str!("scripts/dumped_accounts.sql");
    load(folder.path(), there, script);
    // The anonymous accounts of this host take precedence over named accounts of any host.
    sql(there, "DELETE FROM mysql.global_priv WHERE User = ''; FLUSH PRIVILEGES");
    let theirs = accounts(there);
    for part in
        ["FROM `gone` ", "`al`@`%` ", "PROXY ON", "WITH ADMIN OPTION", "EXECUTE ON PROCEDURE `dumped`.`p`"]
    {
        assert!(part.starts_with("FROM") != theirs.contains(part), "{part}:\n{theirs}");
    }

    // Loaded, the accounts take effect with FLUSH PRIVILEGES.
    load(folder.path(), here, &dump_all(there, &[]));
    assert!(sql(here, "SELECT User FROM mysql.global_priv").contains("al\n"));
    assert_eq!(sql(here, "SELECT User FROM mysql.user"), "root\n");
    let refused = mysql::Conn::new(server.options().user(Some("al")).pass(Some("secret")));
    assert!(refused.is_err(), "the account is not in effect");
    let (is_done, denied) = server.tool("mariadb", &["--execute=CREATE USER early"]);
    assert!(!is_done && denied.contains("ERROR 1105"), "{denied}");
    sql(here, "FLUSH PRIVILEGES");
    assert!(sql(here, "SHOW GRANTS").contains("GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost`"));
    assert_same(&accounts(here), &theirs, "accounts of a dump of MariaDB");
    mysql::Conn::new(server.options().user(Some("al")).pass(Some("secret"))).expect("an account of the dump");
    sql(here, "CREATE USER late; DROP USER late");

    // Back, into a server that lacks some of them.
    sql(there, "DROP USER al@'%'; DROP ROLE r1");
    load(folder.path(), there, &dump_all(here, &["--flush-privileges"]));
    assert_same(&accounts(there), &theirs, "accounts of a dump of Cohort, in MariaDB");

    // As statements.
    for (from, to) in [(there, here), (here, there)] {
        sql(to, "DROP USER al@'%', bo@localhost; DROP ROLE r1");
        let system = dump_all(from, &["--system=all", "--insert-ignore"]);
        load(folder.path(), to, &system);
        assert_same(&accounts(to), &theirs, "accounts of --system=all");
    }
}
