//! A source that gives wrong information about its version and its log's format, and one with gaps in its
//! sequence numbers: through the same proxy, Cohort's receiver and MariaDB's stop or continue in the same
//! way.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use support::{Cohort, Maria, wait_until};

const HEADER: usize = 19;
const FORMAT: u8 = 15;

/// The wrong information.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// The version in its greeting.
    Greeting(&'static str),
    /// The version in its format description.
    Version(&'static str),
    /// One byte of its format description.
    Byte(usize, u8),
    /// This many bytes are missing from the list of event lengths.
    Shorter(usize),
}

/// Offsets in the body of a format description.
const BINLOG_VERSION: usize = 0;
const SERVER_VERSION: usize = 2;
const VERSION_LEN: usize = 50;
const HEADER_LENGTH: usize = 56;
const LENGTHS: usize = 57;

impl Lie {
    /// Modifies a packet of the source, the first one or a later one.
    fn modified(self, payload: &[u8], is_first: bool) -> Vec<u8> {
        if is_first {
            let Lie::Greeting(version) = self else { return payload.to_vec() };
            let end = payload.iter().position(|byte| *byte == 0).expect("the version ends");
            return [&payload[..1], version.as_bytes(), &payload[end..]].concat();
        }
        let is_format = payload.len() > HEADER + 5
            && payload[0] == 0
            && payload[5] == FORMAT
            && payload[10..14] == ((payload.len() - 1) as u32).to_le_bytes();
        if !is_format {
            return payload.to_vec();
        }
        let mut event = payload[1..].to_vec();
        let body = &mut event[HEADER..];
        match self {
            Lie::Greeting(_) => {}
            Lie::Version(version) => {
                let field = &mut body[SERVER_VERSION..SERVER_VERSION + VERSION_LEN];
                field.fill(0);
                field[..version.len()].copy_from_slice(version.as_bytes());
            }
            Lie::Byte(at, value) => body[at] = value,
            Lie::Shorter(count) => drop(event.drain(HEADER + LENGTHS + 40..HEADER + LENGTHS + 40 + count)),
        }
        let length = (event.len() as u32).to_le_bytes();
        event[9..13].copy_from_slice(&length);
        let end = event.len() - 4;
        let crc = cohort_binlog::event::crc_of_event(&event[..end]);
        event[end..].copy_from_slice(&crc.to_le_bytes());
        [&[0], event.as_slice()].concat()
    }
}

fn packet(from: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    from.read_exact(&mut head).ok()?;
    let mut payload = vec![0; usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16];
    from.read_exact(&mut payload).ok()?;
    Some((head[3], payload))
}

fn forward(mut server: TcpStream, mut client: TcpStream, lie: Lie) -> Option<()> {
    let mut is_first = true;
    loop {
        let (number, payload) = packet(&mut server)?;
        let modified = lie.modified(&payload, std::mem::take(&mut is_first));
        let length = (modified.len() as u32).to_le_bytes();
        client.write_all(&[&length[..3], &[number], &modified].concat()).ok()?;
    }
}

/// Starts a proxy to a source that gives wrong information. Returns its port.
fn liar(source: u16, lie: Lie) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", source))) else {
                return;
            };
            let (mut from, mut to) =
                (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || {
                let end = client.try_clone().expect("a socket");
                let _ = forward(server, client, lie);
                let _ = end.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

/// The outcome of following: applied, or the reason why not.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Applied,
    Stopped { number: String, text: String },
}

fn outcome(status: impl Fn() -> String, position: impl Fn() -> String, end: &str) -> Outcome {
    let field = |name: &str| -> String {
        let status = status();
        let line = status.lines().find_map(|line| line.trim().strip_prefix(name).map(str::to_owned));
        line.unwrap_or_else(|| panic!("{name}: {status}")).trim().to_owned()
    };
    let mut found = None;
    wait_until("it goes on without an end", || {
        if position() == end {
            found = Some(Outcome::Applied);
        } else if field("Slave_IO_Running:") == "No" || field("Slave_SQL_Running:") == "No" {
            let numbers = (field("Last_IO_Errno:"), field("Last_SQL_Errno:"));
            found = Some(match numbers.0.as_str() {
                "0" => Outcome::Stopped { number: numbers.1, text: field("Last_SQL_Error:") },
                _ => Outcome::Stopped { number: numbers.0, text: field("Last_IO_Error:") },
            });
        }
        found.is_some()
    });
    found.expect("waited for")
}

#[test]
fn a_source_that_lies_about_its_version_is_taken_as_mariadb_takes_it() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (1)");
    let end = source.gtid_end();
    let cohort = Cohort::new(&["--log-slave-updates", "--server-id=7"]);
    let maria = Maria::new(&["--log-bin=binlog", "--log-slave-updates", "--server-id=9"]);
    for lie in [
        Lie::Greeting("5.5.5-10.3.1-MariaDB"),
        Lie::Greeting("99.1.1"),
        Lie::Greeting("4.1.22"),
        Lie::Greeting("3.23.58"),
        Lie::Greeting("2.0.1"),
        Lie::Greeting("0.9.9-unheard-of"),
        Lie::Greeting("unheard of"),
        Lie::Greeting(""),
        Lie::Version("10.3.1-MariaDB"),
        Lie::Version("99.1.1"),
        Lie::Version("unheard of"),
        Lie::Byte(BINLOG_VERSION, 1),
        Lie::Byte(BINLOG_VERSION, 3),
        Lie::Byte(BINLOG_VERSION, 5),
        Lie::Byte(HEADER_LENGTH, 18),
        Lie::Byte(HEADER_LENGTH, 27),
        // Of QUERY_EVENT, TABLE_MAP_EVENT, WRITE_ROWS_EVENT_V1 and GTID_EVENT.
        Lie::Byte(LENGTHS + 1, 11),
        Lie::Byte(LENGTHS + 18, 6),
        Lie::Byte(LENGTHS + 22, 6),
        Lie::Byte(LENGTHS + 161, 0),
        Lie::Shorter(60),
    ] {
        let port = liar(source.port, lie);
        let follow = format!(
            "STOP SLAVE; RESET SLAVE ALL; DROP TABLE IF EXISTS test.t; SET GLOBAL gtid_slave_pos = ''; RESET MASTER; \
             CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='root', master_connect_retry=1, \
             master_use_gtid=slave_pos; START SLAVE"
        );
        cohort.sql(&follow);
        maria.sql(&follow);
        let ours = outcome(|| cohort.replica_status(), || cohort.sql("SELECT @@gtid_slave_pos"), &end);
        let theirs = outcome(|| maria.status(), || maria.sql("SELECT @@gtid_slave_pos"), &end);
        println!("{lie:?}: {ours:?}, {theirs:?}");
        match (&ours, &theirs) {
            (Outcome::Applied, Outcome::Applied) => {
                assert_eq!(cohort.sql("SELECT * FROM test.t"), "1", "{lie:?}");
            }
            (Outcome::Stopped { .. }, Outcome::Stopped { .. }) if matches!(lie, Lie::Greeting(_)) => {
                assert_eq!(ours, theirs, "{lie:?}");
            }
            (Outcome::Stopped { number, text }, _) => {
                assert!(!text.is_empty() && number != "0", "{lie:?}: {ours:?}, MariaDB {theirs:?}");
                // No part of an incomplete transaction is applied.
                let rows =
                    cohort.sql("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'test'");
                assert!(rows == "0" || cohort.sql("SELECT COUNT(*) FROM test.t") == "0", "{lie:?}");
            }
            _ => panic!("{lie:?}: {ours:?}, MariaDB {theirs:?}"),
        }
    }
}

#[test]
fn gaps_in_the_numbers_of_a_source_are_what_they_are_to_mariadb() {
    for strict in ["0", "1"] {
        let source = Maria::source(&["--binlog-format=ROW"]);
        let option = format!("--gtid-strict-mode={strict}");
        let cohort = Cohort::new(&["--log-slave-updates", "--server-id=7", &option]);
        let maria = Maria::new(&["--log-bin=binlog", "--log-slave-updates", "--server-id=9", &option]);
        let on_both = |sql: &str| (cohort.sql(sql), maria.sql(sql));
        source.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
        // Three numbers are missing, and then very many.
        source.sql("SET gtid_seq_no = 5; INSERT INTO test.t VALUES (5)");
        source.sql(
            "SET gtid_seq_no = 5000000000; INSERT INTO test.t VALUES (6); INSERT INTO test.t VALUES (7)",
        );
        cohort.follow(source.port);
        maria.follow(source.port);
        cohort.wait_for("0-2-5000000001");
        maria.wait_for("0-2-5000000001");
        let state = "SELECT @@gtid_slave_pos, @@gtid_binlog_pos; SELECT * FROM test.t";
        let (ours, theirs) = on_both(state);
        assert_eq!(ours, theirs);
        // A position within the gap.
        on_both("STOP SLAVE");
        on_both("SET GLOBAL gtid_slave_pos = ''; RESET MASTER; DELETE FROM test.t; RESET MASTER");
        on_both("SET GLOBAL gtid_slave_pos = '0-2-3'; START SLAVE");
        let end = "0-2-5000000001";
        let ours = outcome(|| cohort.replica_status(), || cohort.sql("SELECT @@gtid_slave_pos"), end);
        let theirs = outcome(|| maria.status(), || maria.sql("SELECT @@gtid_slave_pos"), end);
        assert_eq!(ours, theirs, "strict {strict}");
        match ours {
            Outcome::Applied => assert_eq!(strict, "0"),
            Outcome::Stopped { number, text } => {
                assert_eq!((number.as_str(), strict), ("1236", "1"), "{text}");
                assert!(text.contains("is missing the GTID 0-2-3 requested by the slave"), "{text}");
            }
        }
        let (ours, theirs) = on_both(state);
        assert_eq!(ours, theirs, "strict {strict}");
    }
}
