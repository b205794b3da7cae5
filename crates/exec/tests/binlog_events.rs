//! What sessions write to the binlog, event by event. The texts are what MariaDB 10.11 writes.

mod world;

use std::path::Path;

use cohort_binlog::EventType;
use cohort_types::{Date, DateTime, Decimal, Time, Value};
use cohort_vfs::SharedFs;
use world::{Client, Server};

/// A server with a table, and its disk.
fn server(table: &str) -> (SharedFs, Server, Client) {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok(table);
    (disk, server, client)
}

/// Info texts of the events of one kind, as SHOW BINLOG EVENTS prints them, oldest first.
fn infos(server: &Server, disk: &SharedFs, kind: EventType) -> Vec<String> {
    let mut found = Vec::new();
    for path in server.binlog() {
        let mut reader =
            cohort_binlog::EventReader::open(disk, Path::new(&path)).expect("a binlog file opens");
        while let Some(raw) = reader.next_event().expect("it is sound") {
            if raw.header.kind == kind {
                let event = reader.decode(&raw).expect("it decodes");
                let info = event.info(&raw.header).expect("it prints");
                found.push(String::from_utf8_lossy(&info).into_owned());
            }
        }
    }
    found
}

#[test]
fn row_events_of_prepared_statements_are_annotated_with_the_values() {
    let (disk, server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(99), n DOUBLE)");
    client.ok("PREPARE st FROM 'INSERT INTO t VALUES (?, ?, ?) /* ? */'");
    client.ok("SET @a = 1, @s = 'it''s \"q\" \\\\ \\n \\Z é', @n = 1.5e10, @none = NULL");
    client.ok("EXECUTE st USING @a, @s, @n");
    client.ok("EXECUTE st USING 2, @none, 12.340");
    client.ok("PREPARE st FROM 'UPDATE t SET s = CONCAT(?, \"s\") WHERE id = ? OR id = ?'");
    client.ok("EXECUTE st USING 'x', 1, 1.0");
    client.ok("EXECUTE IMMEDIATE 'DELETE FROM t WHERE s <> ? LIMIT ?' USING 'zäß', 1");
    client.ok("EXECUTE IMMEDIATE 'DELETE FROM t WHERE id = ?' USING 77");
    client.ok("SET binlog_annotate_row_events = 0");
    client.ok("DELETE FROM t");
    assert_eq!(
        infos(&server, &disk, EventType::ANNOTATE_ROWS),
        [
            "INSERT INTO t VALUES (1, 'it\\'s \\\"q\\\" \\\\ \\n \\Z é', 15000000000) /* ? */",
            "INSERT INTO t VALUES (2, NULL, 12.340) /* ? */",
            "UPDATE t SET s = CONCAT('x', \"s\") WHERE id = 1 OR id = 1.0",
            "DELETE FROM t WHERE s <> 'zäß' LIMIT 1",
        ]
    );
}

#[test]
fn so_are_those_of_the_binary_protocol() {
    let (disk, server, mut client) =
        server("CREATE TABLE t (id INT, d DATE, t TIME(1), dt DATETIME(6), n DECIMAL(9,3))");
    let prepared = client.session.prepare(b"INSERT INTO t VALUES (?,?,?,?,?)").expect("it prepares");
    let date = Date { year: 2024, month: 1, day: 2 };
    let datetime = DateTime { date, hour: 3, minute: 4, second: 5, micros: 123_456 };
    for id in 1..3 {
        let params = [
            Value::Int(id),
            Value::Date(date),
            Value::Time(Time { micros: 36_672_500_000 }),
            Value::DateTime(datetime),
            Value::Decimal(Decimal::parse(b"1.50").0),
        ];
        client.execute(prepared.id, &params);
    }
    assert_eq!(
        infos(&server, &disk, EventType::ANNOTATE_ROWS),
        [1, 2].map(|id| format!(
            "INSERT INTO t VALUES ({id},DATE'2024-01-02',TIME'10:11:12.500000',TIMESTAMP'2024-01-02 03:04:05.123456',1.50)"
        ))
    );
}

#[test]
fn old_files_go_but_not_those_that_somebody_reads() {
    use cohort_commit::{HeldBack, PurgeRule, Purged};
    let (_disk, server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    for _ in 0..5 {
        client.ok("FLUSH BINARY LOGS");
    }
    let commit = &server.db.commit;
    assert_eq!(server.binlog().len(), 6);
    assert_eq!(commit.purge_binlog(PurgeRule::TotalBytes(1 << 30)).expect("purges"), Purged::default());
    assert_eq!(commit.purge_binlog(PurgeRule::ClosedBefore(1)).expect("purges"), Purged::default());
    let reader = commit.binlog_readers().enter("replica 7".to_owned(), 3);
    let held = Some(HeldBack { file: "binlog.000003".to_owned(), by: "replica 7".to_owned() });
    let all = commit.purge_binlog(PurgeRule::TotalBytes(1)).expect("purges");
    assert_eq!(all, Purged { files: vec![1, 2], held_back: held });
    reader.move_to(5);
    client.ok("PURGE BINARY LOGS TO 'binlog.000006'");
    assert_eq!(server.binlog(), ["/data/binlog.000005", "/data/binlog.000006"]);
    drop(reader);
    let rest = commit.purge_binlog(PurgeRule::ClosedBefore(u32::MAX)).expect("purges");
    assert_eq!(rest, Purged { files: vec![5], held_back: None });
    assert!(client.run("PURGE BINARY LOGS TO 'binlog.000001'").contains("1373"));
}

#[test]
fn the_two_names_of_the_expiry_set_each_other() {
    let (_disk, _server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    let mut both = || client.run("SELECT @@expire_logs_days, @@binlog_expire_logs_seconds");
    assert!(both().ends_with("10.000000 | 864000\n") || both().ends_with("10 | 864000\n"), "{}", both());
    client.ok("SET GLOBAL expire_logs_days = 2");
    assert!(client.run("SELECT @@binlog_expire_logs_seconds").ends_with("172800\n"));
    client.ok("SET GLOBAL binlog_expire_logs_seconds = 129600");
    assert!(client.run("SELECT @@expire_logs_days * 10").contains("15"));
    client.ok("SET GLOBAL expire_logs_days = DEFAULT");
    assert!(client.run("SELECT @@binlog_expire_logs_seconds").ends_with("864000\n"));
}
