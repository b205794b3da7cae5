//! Files named by clients: which host files they may read, and that they cannot overwrite the server's files.

use std::ffi::CString;

use mysql::prelude::Queryable;
use mysql::{Conn, Error};

use crate::support::Cohort;

fn code(client: &mut Conn, sql: &str) -> u16 {
    match client.query_drop(sql) {
        Ok(()) => 0,
        Err(Error::MySqlError(error)) => error.code,
        Err(other) => panic!("{sql}: {other}"),
    }
}

#[test]
fn files_of_the_server_are_not_made_by_clients() {
    let server = Cohort::new(&["--relay-log=followed", "--general-log-file=all.txt"]);
    let mut client = server.client();
    client.query_drop("CREATE DATABASE log; CREATE DATABASE spill; CREATE DATABASE app").expect("made");
    let absolute = format!("{}/xa-prepared", server.datadir.display());
    for name in [
        "xa-prepared",
        "./xa-prepared.new",
        "./replication",
        "./replication.new",
        "./catalog.new",
        "./log/log.new",
        "./log/log.000099",
        "log/log.control.new",
        "./app/../log/log.new",
        "./innodb/btree.undo",
        "./spill/1",
        "./binlog.000099",
        "./binlog.index.new",
        "./other.index",
        "./followed.000001",
        "./followed-east.index",
        "./all.txt",
        "./x.pid",
        "./server.cnf",
        &absolute,
    ] {
        for into in ["OUTFILE", "DUMPFILE"] {
            assert_eq!(code(&mut client, &format!("SELECT 'x' INTO {into} '{name}'")), 1004, "{into} {name}");
        }
    }
    // Nor are they created in the directory of a database with the same name as one of the server's.
    for schema in ["log", "spill"] {
        client.query_drop(format!("USE {schema}")).expect("there");
        assert_eq!(code(&mut client, "SELECT 'x' INTO DUMPFILE 'log.new'"), 1004);
    }
    // Nor can a log be directed to one of them.
    let catalog = server.datadir.join("catalog");
    let before = std::fs::read(&catalog).expect("there");
    client
        .query_drop("SET GLOBAL general_log_file = 'catalog', GLOBAL general_log = ON; SELECT 'logged'")
        .expect("runs");
    client.query_drop("SET GLOBAL general_log = OFF, GLOBAL general_log_file = 'all.txt'").expect("runs");
    assert!(!before.is_empty() && std::fs::read(&catalog).expect("there") == before);
    // All other files are where MariaDB puts them.
    client.query_drop("USE app").expect("there");
    for (name, place) in [
        ("a.txt", "app/a.txt"),
        ("./b.txt", "b.txt"),
        ("app/c.txt", "app/c.txt"),
        ("xa-prepared", "app/xa-prepared"),
        ("catalogue", "app/catalogue"),
    ] {
        assert_eq!(code(&mut client, &format!("SELECT '{place}' INTO OUTFILE '{name}'")), 0, "{name}");
        let written = std::fs::read_to_string(server.datadir.join(place)).expect(place);
        assert_eq!(written, format!("{place}\n"));
    }
    client.query_drop("CREATE TABLE t (a TEXT)").expect("made");
    for name in ["a.txt", "./b.txt", "app/c.txt"] {
        assert_eq!(code(&mut client, &format!("LOAD DATA INFILE '{name}' INTO TABLE t")), 0, "{name}");
    }
    let loaded: Vec<String> = client.query("SELECT a FROM t ORDER BY a").expect("there");
    assert_eq!(loaded, ["app/a.txt", "app/c.txt", "b.txt"]);
}

#[test]
fn only_plain_files_are_read() {
    let server = Cohort::new(&[]);
    let mut client = server.client();
    client.query_drop("CREATE DATABASE app; USE app; CREATE TABLE t (a TEXT)").expect("made");
    let pipe = server.datadir.join("app-pipe");
    let path = CString::new(pipe.to_str().expect("ASCII")).expect("no zero");
    // SAFETY: the path is zero-terminated and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0);
    let pipe = pipe.display().to_string();
    for (name, expected) in [
        ("/proc/self/status", 1290),
        ("/proc/self/environ", 1290),
        ("/proc/../proc/meminfo", 1290),
        ("/dev/null", 1085),
        ("/dev/zero", 1085),
        ("/tmp", 1085),
        (&*pipe, 1085),
        ("/nowhere/x", 13),
    ] {
        assert_eq!(code(&mut client, &format!("LOAD DATA INFILE '{name}' INTO TABLE t")), expected, "{name}");
        let loaded: Option<Option<Vec<u8>>> =
            client.query_first(format!("SELECT LOAD_FILE('{name}')")).expect("answered");
        assert_eq!(loaded, Some(None), "{name}");
    }
    assert_eq!(code(&mut client, "SELECT 1 INTO OUTFILE '/proc/self/x'"), 1290);
}
