//! MariaDB's command-line clients in normal use.

use std::process::Stdio;

use mysql::prelude::Queryable;

use crate::support::{Cohort, Maria, rows, run, text};

#[test]
fn the_command_line_client_interactive_and_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    // A terminal: `script` gives the client a pseudo terminal and feeds it the input.
    let socket = server.socket.display();
    let input = "use test\ncreate table t (id int primary key,\n  v varchar(20));\ninsert into t values (1, 'one'), (2, 'two');\n\
                 select * from t;\nselect * from t\\G\nselect * from missing;\nshow tables;\nstatus\nbegin; delete from t; rollback;\n\
                 select count(*) from t;\n\\q\n";
    let command = format!("mariadb --no-defaults --user=root --socket={socket}");
    let mut terminal = std::process::Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .env("TERM", "dumb")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("script is part of util-linux");
    let mut stdin = terminal.stdin.take().expect("piped");
    for line in input.split_inclusive('\n') {
        std::io::Write::write_all(&mut stdin, line.as_bytes()).expect("it reads");
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    drop(stdin);
    let output = terminal.wait_with_output().expect("ends");
    let said = text(&output);
    for expected in [
        "Welcome to the MariaDB monitor",
        "Database changed",
        "Query OK, 2 rows affected",
        "|  1 | one  |",
        "*************************** 1. row ***************************",
        "ERROR 1146 (42S02): Table 'test.missing' doesn't exist",
        "| Tables_in_test |",
        "Server version:",
        "Bye",
    ] {
        assert!(said.contains(expected), "{expected:?} is missing in {said}");
    }
    assert_eq!(rows(&mut server.in_test(), "SELECT COUNT(*) FROM t"), "2\n");

    let batch = server.tool("mariadb", &["test", "-e", "SELECT * FROM t; SELECT NULL, 'a\tb'"]);
    assert_eq!(batch, (true, "id\tv\n1\tone\n2\ttwo\nNULL\ta\tb\nNULL\ta\\tb\n".to_owned()));
    let forced = server.tool("mariadb", &["test", "--force", "-N", "-e", "SELECT nonsense; SELECT 1"]);
    assert!(forced.1.contains("ERROR 1054 (42S22) at line 1: Unknown column 'nonsense'"), "{}", forced.1);
    let xml = server.tool("mariadb", &["test", "--xml", "-e", "SELECT v FROM t WHERE id = 1"]);
    assert!(xml.1.contains("<field name=\"v\">one</field>"), "{}", xml.1);
}

#[test]
fn mariadb_admin_asks_and_stops() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Cohort::start(folder.path(), "data", &[]);
    assert_eq!(server.tool("mariadb-admin", &["ping"]), (true, "mysqld is alive\n".to_owned()));
    let (is_fine, said) = server.tool("mariadb-admin", &["status"]);
    assert!(is_fine && said.starts_with("Uptime: ") && said.contains("Questions: "), "{said}");
    for command in ["version", "processlist", "variables", "extended-status", "flush-logs", "refresh"] {
        let (is_fine, said) = server.tool("mariadb-admin", &[command]);
        assert!(is_fine, "{command}: {said}");
    }
    let made = server.tool("mariadb-admin", &["create", "shop"]);
    assert!(made.0, "{}", made.1);
    let dropped = server.tool("mariadb-admin", &["--force", "drop", "shop"]);
    assert!(dropped.0, "{}", dropped.1);
    let (is_fine, said) = server.tool("mariadb-admin", &["shutdown"]);
    assert!(is_fine, "{said}");
    assert_eq!(server.exit_code(), Some(0));
    assert!(!server.tool("mariadb-admin", &["ping"]).0);
}

#[test]
fn mariadb_dump_loads_here_and_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.client();
    crate::script::run_all(&mut client, include_str!("scripts/types.sql"));
    let arguments = ["--single-transaction", "--hex-blob", "--skip-dump-date", "--databases", "sbs"];
    let dump = |port: u16| {
        let port = format!("--port={port}");
        let own = ["--no-defaults", "--host=127.0.0.1", "--user=root", &port];
        run("mariadb-dump", &[&own[..], &arguments].concat())
    };
    let ours = dump(server.port);
    assert!(ours.status.success() && ours.stderr.is_empty(), "{}", text(&ours));
    let copy = Cohort::start(folder.path(), "copy", &[]);
    let port = format!("--port={}", copy.port);
    crate::binlog_exchange::feed(&["--host=127.0.0.1", &port], &ours.stdout);
    assert!(dump(copy.port).stdout == ours.stdout, "a dump of the copy is another");
    assert_eq!(
        rows(&mut copy.client(), "CHECKSUM TABLE sbs.ints, sbs.strs, sbs.temps, sbs.bits, sbs.enums"),
        rows(&mut client, "CHECKSUM TABLE sbs.ints, sbs.strs, sbs.temps, sbs.bits, sbs.enums"),
    );

    let mariadb = Maria::new(&[]);
    let socket = format!("--socket={}", mariadb.socket.display());
    // The engine has another name on MariaDB.
    let text_of = String::from_utf8(ours.stdout).expect("hexadecimal digits where it is no text");
    let there = text_of.replace("ENGINE=ROCKSDB", "ENGINE=InnoDB");
    crate::binlog_exchange::feed(&[&socket], there.as_bytes());
    let theirs = run("mariadb-dump", &[&["--no-defaults", "--user=root", &socket], &arguments[..]].concat());
    assert!(theirs.status.success(), "{}", text(&theirs));
    let back = Cohort::start(folder.path(), "back", &[]);
    let port = format!("--port={}", back.port);
    crate::binlog_exchange::feed(&["--host=127.0.0.1", &port], &theirs.stdout);
    let again = String::from_utf8(dump(back.port).stdout).expect("text");
    let differing = again.lines().zip(text_of.lines()).find(|(back, first)| back != first);
    assert_eq!(differing, None);
    client.query_drop("DROP DATABASE sbs").expect("dropped");
}

#[test]
fn a_dump_with_views_goes_to_mariadb_and_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.client();
    for sql in [
        "SET NAMES utf8mb4",
        "CREATE DATABASE vd",
        "USE vd",
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20))",
        "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'thr''ee')",
        // It is dumped before the view that it reads.
        "CREATE VIEW z AS SELECT id, a + 1 AS a1, CONCAT(b, '\\'', 'ü') AS q FROM t WHERE a > 5 OR b LIKE 'x%'",
        "CREATE VIEW a AS SELECT z.id, COUNT(*) AS n FROM z LEFT JOIN t ON t.id = z.id GROUP BY z.id",
        "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW m AS SELECT id, a FROM t WHERE a < 50 WITH LOCAL CHECK OPTION",
        "CREATE ALGORITHM=TEMPTABLE VIEW `w``x` (`c d`, e) AS SELECT id, a FROM t UNION SELECT 7, 8",
        "CREATE VIEW j AS SELECT x.id, (SELECT MAX(y.a) FROM t y WHERE y.id <= x.id) AS m FROM t x JOIN t w USING (id)",
    ] {
        client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let arguments = ["--skip-dump-date", "--skip-comments", "--databases", "vd"];
    let here = |port: u16| {
        let port = format!("--port={port}");
        let own = ["--no-defaults", "--host=127.0.0.1", "--user=root", &port];
        let dumped = run("mariadb-dump", &[&own[..], &arguments].concat());
        assert!(dumped.status.success() && dumped.stderr.is_empty(), "{}", text(&dumped));
        String::from_utf8(dumped.stdout).expect("text")
    };
    let ours = here(server.port);
    assert_eq!(ours.matches("SQL SECURITY").count(), 5, "{ours}");
    let mariadb = Maria::new(&[]);
    let socket = format!("--socket={}", mariadb.socket.display());
    crate::binlog_exchange::feed(&[&socket], ours.replace("ENGINE=ROCKSDB", "ENGINE=InnoDB").as_bytes());
    let theirs = run("mariadb-dump", &[&["--no-defaults", "--user=root", &socket], &arguments[..]].concat());
    assert!(theirs.status.success(), "{}", text(&theirs));
    let back = Cohort::start(folder.path(), "back", &[]);
    let port = format!("--port={}", back.port);
    crate::binlog_exchange::feed(&["--host=127.0.0.1", &port], &theirs.stdout);
    let again = here(back.port);
    let differing = again.lines().zip(ours.lines()).find(|(back, first)| back != first);
    assert_eq!(differing, None);
    for view in ["z", "a", "m", "`w``x`", "j"] {
        let sql = format!("SELECT * FROM vd.{view} ORDER BY 1");
        assert_eq!(rows(&mut back.client(), &sql), rows(&mut client, &sql), "{view}");
    }
}

#[test]
fn tools_look_at_all_databases_and_backups_take_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    crate::script::run_all(&mut server.client(), include_str!("scripts/types.sql"));
    for (program, arguments, expected) in [
        (
            "mariadb-dump",
            "--all-databases --single-transaction --routines --events --triggers",
            "INSERT INTO `ints` VALUES",
        ),
        ("mariadb-dump", "--all-databases --master-data=2 --gtid --flush-logs", "-- CHANGE MASTER TO"),
        ("mariadb-check", "--all-databases", "sbs.ints"),
        ("mariadb-check", "--analyze sbs", "sbs.ints"),
        ("mariadb-show", "--count", "| sbs"),
        ("mariadb-show", "--keys sbs ints", "PRIMARY"),
        ("mariadb-show", "--status sbs", "InnoDB"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let (is_fine, said) = server.tool(program, &arguments);
        assert!(is_fine && said.contains(expected), "{program} {arguments:?}: {said:.2000}");
        assert!(!said.contains("rror:"), "{program} {arguments:?}: {said:.2000}");
    }
}

/// Runs the script of Debian's package with yes to all questions.
#[test]
fn mariadb_secure_installation_runs_from_beginning_to_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mut root = server.client();
    for statement in [
        "CREATE USER ''@localhost, root@'%', other",
        "GRANT SELECT ON test.* TO ''@localhost",
        "GRANT ALL ON `test\\_%`.* TO other",
        "CREATE DATABASE IF NOT EXISTS test",
    ] {
        root.query_drop(statement).expect("runs");
    }
    let options = folder.path().join("client.cnf");
    let socket = server.socket.display();
    std::fs::write(&options, format!("[client]\nsocket={socket}\n[mysql]\nsocket={socket}\n"))
        .expect("written");
    let mut script = std::process::Command::new("mariadb-secure-installation")
        .arg(format!("--defaults-file={}", options.display()))
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it is part of MariaDB's client package");
    let mut stdin = script.stdin.take().expect("piped");
    // No password yet; unix_socket; a new password, twice; anonymous users, remote root, test database,
    // reload.
    std::io::Write::write_all(&mut stdin, b"\ny\ny\nit's new\nit's new\ny\ny\ny\ny\n").expect("it reads");
    drop(stdin);
    let output = script.wait_with_output().expect("ends");
    let said = text(&output);
    assert!(output.status.success() && said.contains("All done!"), "{said}");
    assert_eq!(said.matches("Success!").count(), 7, "{said}");
    let accounts = rows(&mut root, "SELECT User, Host FROM mysql.user ORDER BY User");
    assert_eq!(accounts, "other\t%\nroot\tlocalhost\n");
    assert_eq!(rows(&mut root, "SELECT COUNT(*) FROM mysql.db"), "0\n");
    assert!(!rows(&mut root, "SHOW DATABASES").contains("test"));
    let socket = server.socket.to_str().expect("text");
    let address = ["--no-defaults", "--user=root", "--socket", socket, "-e", "SELECT 1"];
    let login = |password: &str| run("mariadb", &[&address[..], &[password]].concat()).status.success();
    assert!(login("--password=it's new"));
}
