//! Binary log events of sessions, compared with those that MariaDB 10.11 writes.

mod world;

use std::path::Path;

use cohort_binlog::event::{Event, QueryEvent, RowsEvent, RowsKind, gtid_flags2};
use cohort_binlog::{CacheOptions, EventHeader, EventType};
use cohort_exec::BinlogCache;
use cohort_types::{Date, DateTime, Decimal, SqlMode, Time, Value};
use cohort_vfs::SharedFs;
use world::{Client, Server};

/// Creates a server with a table; returns its disk, too.
fn server(table: &str) -> (SharedFs, Server, Client) {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok(table);
    (disk, server, client)
}

/// Returns all events, oldest first.
fn events(server: &Server, disk: &SharedFs) -> Vec<(EventHeader, Event)> {
    let mut found = Vec::new();
    for path in server.binlog() {
        let mut reader =
            cohort_binlog::EventReader::open(disk, Path::new(&path)).expect("a binlog file opens");
        while let Some(raw) = reader.next_event().expect("it is sound") {
            found.push((raw.header, reader.decode(&raw).expect("it decodes")));
        }
    }
    found
}

/// Returns the texts of SHOW BINLOG EVENTS for one type of event, oldest first.
fn infos(server: &Server, disk: &SharedFs, kind: EventType) -> Vec<String> {
    let print = |(header, event): (EventHeader, Event)| event.info(&header).expect("it prints");
    let of_kind = events(server, disk).into_iter().filter(|(header, _)| header.kind == kind);
    of_kind.map(print).map(|info| String::from_utf8_lossy(&info).into_owned()).collect()
}

fn row_events(server: &Server, disk: &SharedFs) -> Vec<RowsEvent> {
    let rows = |(_, event)| if let Event::Rows(rows) = event { Some(rows) } else { None };
    events(server, disk).into_iter().filter_map(rows).collect()
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
fn old_files_are_purged_unless_a_reader_uses_them() {
    use cohort_commit::{HeldBack, PurgeRule, Purged};
    let (_disk, server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    for _ in 0..5 {
        client.ok("FLUSH BINARY LOGS");
    }
    let commit = &server.db.commit;
    assert_eq!(server.binlog().len(), 6);
    assert_eq!(commit.purge_binlog(PurgeRule::TotalBytes(1 << 30)).expect("purges"), Purged::default());
    assert_eq!(commit.purge_binlog(PurgeRule::ClosedBefore(1)).expect("purges"), Purged::default());
    let reader = commit
        .with_binlog_files(|files| files.pins().pin(3, "replica 7"))
        .expect("the binlog is on")
        .expect("it is there")
        .expect("open to readers");
    let held = Some(HeldBack { file: "binlog.000003".to_owned(), by: "replica 7".to_owned() });
    let all = commit.purge_binlog(PurgeRule::TotalBytes(1)).expect("purges");
    assert_eq!(all, Purged { files: vec![1, 2], held_back: held });
    reader.advance(5);
    client.ok("PURGE BINARY LOGS TO 'binlog.000006'");
    assert_eq!(server.binlog(), ["/data/binlog.000005", "/data/binlog.000006"]);
    drop(reader);
    let rest = commit.purge_binlog(PurgeRule::ClosedBefore(u32::MAX)).expect("purges");
    assert_eq!(rest, Purged { files: vec![5], held_back: None });
    assert!(client.run("PURGE BINARY LOGS TO 'binlog.000001'").contains("1373"));
}

#[test]
fn reset_master_restarts_the_binary_log() {
    let (_disk, server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    client.ok("INSERT INTO t VALUES (1)");
    client.ok("FLUSH BINARY LOGS");
    client.ok("BEGIN");
    client.ok("INSERT INTO t VALUES (2)");
    // The transaction is committed, then removed from the binary log.
    client.ok("RESET MASTER");
    client.ok("ROLLBACK");
    assert!(client.run("SELECT COUNT(*) FROM t").ends_with("\n2\n"));
    assert_eq!(server.binlog(), ["/data/binlog.000001"]);
    assert_eq!(gtid_state(&server), "");
    let end = client.run("SHOW MASTER STATUS");
    assert!(end.contains("binlog.000001"), "{end}");
    client.ok("INSERT INTO t VALUES (3)");
    assert_eq!(gtid_state(&server), "0-1-1");
    client.ok("RESET MASTER TO 7");
    client.ok("INSERT INTO t VALUES (4)");
    client.ok("FLUSH BINARY LOGS");
    assert_eq!(server.binlog(), ["/data/binlog.000007", "/data/binlog.000008"]);
    assert_eq!(gtid_state(&server), "0-1-1");
    assert!(client.run("RESET MASTER TO 2147483648").starts_with("ERROR 1098 "));
    let commit = &server.db.commit;
    let pin = |files: &mut cohort_binlog::BinlogFiles| files.pins().pin(7, "replica 7");
    let reader = commit.with_written_files(pin).expect("the binlog is on").expect("open to readers");
    let refused = client.run("RESET MASTER");
    assert!(refused.starts_with("ERROR 1378 ") && refused.contains("replica 7"), "{refused}");
    drop(reader);
    client.ok("RESET MASTER");
    assert_eq!(server.binlog(), ["/data/binlog.000001"]);
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

/// Formats `flags error db | status variables | text`.
fn show_query(header: &EventHeader, query: &QueryEvent) -> String {
    let vars = query.status_vars().expect("they decode");
    let mut shown = Vec::new();
    let mut add = |text: Option<String>| shown.extend(text);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    add(vars.flags2.map(|v| format!("flags2={v:x}")));
    add(vars.sql_mode.map(|v| format!("mode={v:x}")));
    add(vars.catalog.map(|v| format!("cat={}", text(v))));
    add(vars.auto_increment.map(|(increment, offset)| format!("ai={increment},{offset}")));
    add(vars.charset.map(|[a, b, c]| format!("cs={a},{b},{c}")));
    add(vars.time_zone.map(|v| format!("tz={}", text(v))));
    add(vars.invoker.map(|(user, host)| format!("inv=b'{}'@b'{}'", text(user), text(host))));
    add(vars.hrnow.map(|v| format!("hr={v}")));
    add(vars.xid.map(|_| "xid".to_owned()));
    let (db, sql) = (text(query.db.clone()), text(query.sql.clone()));
    format!("{:<4x} {} {db:<5}| {} | {sql}", header.flags, query.error, shown.join(" "))
}

/// The expected events are in a file next to the statements, recorded from MariaDB 10.11
/// (`--character-set-server=utf8mb4`). Only passwords differ: the events contain the stored hash.
#[test]
fn query_events_carry_what_mariadb_writes() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("SET timestamp = DEFAULT");
    for statement in include_str!("binlog_events/statements.sql").lines() {
        client.ok(statement);
    }
    let mut shown = String::new();
    for (header, event) in events(&server, &disk) {
        if let Event::Query(query) = event {
            shown += &show_query(&header, &query);
            shown.push('\n');
        }
    }
    // MariaDB logs passwords as plain text.
    let mut expected = include_str!("binlog_events/statements.mariadb").to_owned();
    for (password, hash) in [
        ("secret", "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"),
        ("y", "*7446F64EFCFB1294A6DE20CAE7E49C2377A9AA25"),
    ] {
        let (written, stored) =
            (format!("IDENTIFIED BY '{password}'"), format!("IDENTIFIED BY PASSWORD '{hash}'"));
        expected = expected.replace(&written, &stored);
    }
    for (ours, wanted) in shown.lines().zip(expected.lines()) {
        assert_eq!(ours, wanted);
    }
    assert_eq!(shown, expected);
}

/// Returns the type of each row event and its column bitmaps: `W 01`, `U 01>16`, `D 01`.
fn images(server: &Server, disk: &SharedFs) -> Vec<String> {
    let bits = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let show = |rows: RowsEvent| match rows.kind {
        RowsKind::Write => format!("W {}", bits(&rows.present)),
        RowsKind::Delete => format!("D {}", bits(&rows.present)),
        RowsKind::Update => format!("U {}>{}", bits(&rows.present), bits(&rows.present_after)),
    };
    row_events(server, disk).into_iter().map(show).collect()
}

const WIDE: &str = "CREATE TABLE im (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b BLOB, c VARCHAR(10) DEFAULT 'x', \
     ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, e TEXT)";

/// The expected values are mariadb-binlog's output for MariaDB's events.
#[test]
fn minimal_row_images_hold_the_key_and_what_was_written() {
    let (disk, server, mut client) = server(WIDE);
    client.ok("CREATE TABLE nopk (a INT, b BLOB)");
    client.ok("CREATE TABLE uq (a INT NOT NULL, b INT, c TEXT, UNIQUE (a), KEY (b))");
    client.ok("SET binlog_row_image = MINIMAL");
    let statements = [
        ("INSERT INTO im (a) VALUES (1)", "W 13"),
        ("INSERT INTO im VALUES (7, 1, 'b', 'c', NOW(), 'e')", "W 3f"),
        ("INSERT INTO im SET a = 5, b = 'zz'", "W 17"),
        ("UPDATE im SET a = 2 WHERE id = 7", "U 01>12"),
        ("UPDATE im SET a = a, b = 'q' WHERE id = 7", "U 01>16"),
        ("INSERT INTO im (id, a) VALUES (7, 9) ON DUPLICATE KEY UPDATE e = 'dup'", "U 01>33"),
        ("DELETE FROM im WHERE id = 7", "D 01"),
        ("INSERT INTO nopk (a) VALUES (1)", "W 03"),
        ("UPDATE nopk SET a = 2", "U 03>03"),
        ("DELETE FROM nopk", "D 03"),
        ("INSERT INTO uq (a, b) VALUES (1, 1)", "W 03"),
        ("UPDATE uq SET c = 'x'", "U 01>04"),
        ("INSERT INTO uq (a, b) VALUES (1, 5) ON DUPLICATE KEY UPDATE b = b + 1", "U 01>03"),
        ("DELETE FROM uq", "D 01"),
    ];
    statements.iter().for_each(|(statement, _)| client.ok(statement));
    assert_eq!(images(&server, &disk), statements.map(|(_, image)| image));
}

#[test]
fn noblob_row_images_leave_out_blobs_that_are_not_written() {
    let (disk, server, mut client) = server(WIDE);
    client.ok("SET binlog_row_image = NOBLOB");
    let statements = [
        ("INSERT INTO im (a) VALUES (1)", "W 1b"),
        ("INSERT INTO im (a, b) VALUES (1, 'x')", "W 1f"),
        ("UPDATE im SET a = 2 WHERE id = 1", "U 1b>1b"),
        ("UPDATE im SET b = 'new' WHERE id = 1", "U 1b>1f"),
        ("INSERT INTO im (id, a) VALUES (1, 9) ON DUPLICATE KEY UPDATE e = 'dup'", "U 1b>3b"),
        ("DELETE FROM im WHERE id = 1", "D 1b"),
        ("INSERT INTO im (a) SELECT 5", "W 1b"),
    ];
    statements.iter().for_each(|(statement, _)| client.ok(statement));
    assert_eq!(images(&server, &disk), statements.map(|(_, image)| image));
    let last = row_events(&server, &disk).pop().expect("they were logged");
    assert_eq!(last.rows[0], 0b1111_0000, "of four columns none is NULL; unused bits are set");
}

/// The expected bytes are MariaDB's.
#[test]
fn table_maps_carry_the_metadata_that_is_asked_for() {
    let (disk, server, mut client) = server(
        "CREATE TABLE m1 (id INT UNSIGNED PRIMARY KEY, a TINYINT, b BIGINT UNSIGNED, c DECIMAL(10,2), d FLOAT UNSIGNED, \
         y YEAR, v VARCHAR(10) CHARACTER SET latin1, t TEXT, e ENUM('a','bé') CHARACTER SET utf8mb4, \
         s SET('x','y') CHARACTER SET latin1, bin VARBINARY(10), bl BLOB, dt DATETIME(3), bt BIT(9), \
         u CHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, j JSON, ts TIMESTAMP(2) NOT NULL DEFAULT NOW(2))",
    );
    for table in [
        "m2 (v VARCHAR(300), t TEXT, id INT, PRIMARY KEY (t(10), v(20)))",
        "m3 (a VARCHAR(3) CHARSET latin1, b VARCHAR(3), c CHAR(3) CHARSET ascii, d VARBINARY(3), \
         e ENUM('q') CHARSET latin1, f ENUM('q'), UNIQUE (a))",
        "m4 (d DATE, tm TIME(6), k INT, k2 INT, PRIMARY KEY (k2, k))",
        "m5 (d DATE)",
        "m6 (a INT NOT NULL, b VARCHAR(10) NOT NULL, UNIQUE KEY (b, a), e1 SET('1','2'))",
        "m7 (a INT, e ENUM('a','b') CHARACTER SET latin1, e2 ENUM('c') CHARACTER SET latin1, \
         c CHAR(2) CHARACTER SET latin1, v VARCHAR(4) CHARACTER SET latin1, v2 VARCHAR(4), PRIMARY KEY (v2, a))",
        "m8 (a INT, b BIGINT UNSIGNED ZEROFILL, c VARCHAR(20), PRIMARY KEY (a, c(3)))",
    ] {
        client.ok(&format!("CREATE TABLE {table}"));
    }
    let mut fill = |n: u32| {
        for row in [
            format!("m1 (id) VALUES ({n})"),
            format!("m2 VALUES ('a', {n}, 1)"),
            format!("m3 VALUES ({n}, 1, 1, 1, 1, 1)"),
            format!("m4 (k, k2) VALUES ({n}, 1)"),
            "m5 VALUES (NULL)".to_owned(),
            format!("m6 VALUES ({n}, 1, 1)"),
            format!("m7 VALUES ({n}, 1, 1, 1, 1, 1)"),
            format!("m8 VALUES ({n}, 1, 1)"),
        ] {
            client.ok(&format!("INSERT INTO {row}"));
        }
        if n < 3 {
            client
                .ok(&format!("SET GLOBAL binlog_row_metadata = {}", if n == 1 { "MINIMAL" } else { "FULL" }));
        }
    };
    (1..=3).for_each(&mut fill);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let map = |(_, event)| if let Event::TableMap(map) = event { Some(hex(&map.optional)) } else { None };
    let maps: Vec<String> = events(&server, &disk).into_iter().filter_map(map).collect();
    let (none, rest) = maps.split_at(8);
    let (minimal, full) = rest.split_at(8);
    assert!(none.iter().all(String::is_empty));
    assert_eq!(
        minimal[..6],
        ["0101ac0306082d3f3f2e2e", "01010002012d", "0304082d0b3f", "010100", "", "01010002012d"]
    );
    assert_eq!(
        full,
        [
            "0101ac0306082d3f3f2e2e04290269640161016201630164017901760174016501730362696e02626c0264740262740175016a027473\
             0b022d080505020178017906070201610362c3a9080100",
            "01010002012d0407017601740269640904010a0014",
            "0304082d0b3f040c0161016201630164016501660b02082d0606010171010171",
            "010100040a016402746d016b026b3208020302",
            "04020164",
            "01010002012d0407016101620265310a012d0505020131013208020100",
            "010100020308022d040e01610165026532016301760276320a01080608020161016201016308020500",
            "01014002012d0406016101620163090400000203",
        ]
    );
}

#[test]
fn long_statements_and_rows_are_compressed() {
    let (disk, server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000))");
    client.ok("SET GLOBAL log_bin_compress = 1");
    let long = "x".repeat(300);
    client.ok(&format!("INSERT INTO t VALUES (1, '{long}'), (2, 'y'), (3, '{long}'), (4, '{long}')"));
    client.ok("UPDATE t SET v = 'z' WHERE id = 1");
    client.ok("CREATE TABLE short (a INT)");
    client.ok(&format!("CREATE TABLE `long` (a INT) COMMENT '{long}'"));
    let kinds: Vec<EventType> = events(&server, &disk)
        .iter()
        .map(|(header, _)| header.kind)
        .filter(|kind| ![EventType::GTID, EventType::XID, EventType::TABLE_MAP].contains(kind))
        .skip(3 + 1)
        .collect();
    let expected = [
        EventType::ANNOTATE_ROWS,
        EventType::WRITE_ROWS_COMPRESSED_V1,
        EventType::WRITE_ROWS_V1,
        EventType::WRITE_ROWS_COMPRESSED_V1,
        EventType::ANNOTATE_ROWS,
        EventType::UPDATE_ROWS_COMPRESSED_V1,
        EventType::QUERY,
        EventType::QUERY_COMPRESSED,
    ];
    assert_eq!(kinds, expected);
    let rows = row_events(&server, &disk);
    let texts: usize = rows.iter().map(|r| r.plain_rows().expect("unpacks").len()).sum();
    assert_eq!(texts, 3 * (1 + 4 + 2 + 300) + (1 + 4 + 2 + 1) + (1 + 4 + 2 + 300) + (1 + 4 + 2 + 1));
    assert!(rows[2].rows.len() < 60 && rows[2].ends_statement() && !rows[1].ends_statement());
}

#[test]
fn sessions_say_how_their_transactions_are_marked() {
    let (disk, server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    client.ok("SET gtid_domain_id = 7, server_id = 9, gtid_seq_no = 50");
    client.ok("INSERT INTO t VALUES (1)");
    client.ok(
        "SET skip_parallel_replication = 1, skip_replication = 1, foreign_key_checks = 0, unique_checks = 0",
    );
    client.ok("INSERT INTO t VALUES (2)");
    client.ok("SET sql_log_bin = 0");
    client.ok("INSERT INTO t VALUES (3)");
    client.ok("CREATE TABLE u (id INT)");
    let gtid = |(header, event)| if let Event::Gtid(gtid) = event { Some((header, gtid)) } else { None };
    let gtids: Vec<_> = events(&server, &disk).into_iter().filter_map(gtid).skip(1).collect();
    let [(header, first), (skipped, second)] = &gtids[..] else { panic!("{gtids:?}") };
    assert_eq!((first.domain.0, header.server_id.0, first.seq_no), (7, 9, 50));
    assert_eq!((second.domain.0, second.seq_no), (7, 51));
    assert_eq!(first.flags2, gtid_flags2::TRANSACTIONAL | gtid_flags2::ALLOW_PARALLEL);
    assert_eq!(second.flags2, gtid_flags2::TRANSACTIONAL);
    assert_eq!((header.flags, skipped.flags), (0x8, 0x8008));
    let rows = row_events(&server, &disk);
    assert_eq!(rows.iter().map(|r| r.flags).collect::<Vec<_>>(), [1, 1 | 2 | 4]);
    assert!(client.run("SELECT COUNT(*) FROM t").ends_with("3\n"));
}

#[test]
fn statements_of_their_own_are_flagged_as_ddl_but_flush_privileges() {
    let (disk, server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    let statements = [
        ("FLUSH TABLES", true),
        ("FLUSH PRIVILEGES", false),
        ("FLUSH STATUS, PRIVILEGES", false),
        ("FLUSH STATUS, HOSTS", true),
        ("ANALYZE TABLE t", true),
        ("OPTIMIZE TABLE t", true),
        ("CREATE USER u", true),
    ];
    statements.iter().for_each(|(statement, _)| drop(client.run(statement)));
    let flags = |(_, event)| if let Event::Gtid(gtid) = event { Some(gtid.flags2) } else { None };
    let flags: Vec<_> = events(&server, &disk).into_iter().filter_map(flags).skip(1).collect();
    let always = gtid_flags2::STANDALONE | gtid_flags2::ALLOW_PARALLEL;
    let wanted = statements.map(|(_, is_ddl)| if is_ddl { always | gtid_flags2::DDL } else { always });
    assert_eq!(flags, wanted);
}

#[test]
fn a_transaction_keeps_the_settings_of_its_begin() {
    let (_disk, _server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    client.ok("BEGIN");
    for (set, error) in [
        ("gtid_domain_id = 5", "1953"),
        ("gtid_seq_no = 5", "1953"),
        ("sql_log_bin = 0", "1694"),
        ("skip_replication = 1", "1929"),
        ("binlog_format = ROW", "1679"),
    ] {
        let answer = client.run(&format!("SET {set}"));
        assert!(answer.contains(error), "{set}: {answer}");
    }
    client.ok("SET server_id = 9, skip_parallel_replication = 1, binlog_row_image = MINIMAL");
    client.ok("ROLLBACK");
    assert!(
        client.run("SET GLOBAL sql_log_bin = 0").contains("Variable 'sql_log_bin' is a SESSION variable")
    );
}

#[test]
fn strict_mode_refuses_numbers_that_do_not_grow() {
    let (_disk, mut server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    client.ok("SET gtid_seq_no = 100");
    client.ok("INSERT INTO t VALUES (1)");
    client.ok("SET GLOBAL gtid_strict_mode = 1");
    let answer = client.run("SET gtid_seq_no = 100");
    let text = "An attempt was made to binlog GTID 0-1-100 which would create an out-of-order sequence number with \
                existing GTID 0-1-100, and gtid strict mode is enabled";
    assert!(answer.contains("1950") && answer.contains(text), "{answer}");
    client.ok("SET gtid_seq_no = 101");
    client.ok("INSERT INTO t VALUES (2)");
    // Other sessions can commit between SET and COMMIT.
    client.ok("SET gtid_seq_no = 110");
    assert!(client.run("SELECT @@gtid_seq_no").contains("110"));
    let mut other = server.connect();
    other.ok("SET gtid_seq_no = 120");
    other.ok("INSERT INTO t VALUES (3)");
    let answer = client.run("INSERT INTO t VALUES (4)");
    assert!(answer.contains("1950") && answer.contains("GTID 0-1-110 which would"), "{answer}");
    let none = client.run("SELECT @@gtid_seq_no");
    assert!(none.contains('0') && !none.contains('1'), "{none}");
    client.ok("INSERT INTO t VALUES (5)");
    assert!(client.run("SELECT @@last_gtid").contains("0-1-121"));
    assert!(client.run("SELECT GROUP_CONCAT(id ORDER BY id) FROM t").contains("1,2,3,5"));
}

#[test]
fn strict_mode_compares_simultaneous_commits() {
    let (_disk, mut server, mut client) =
        server("CREATE TABLE t (id INT, thread INT, PRIMARY KEY (id, thread))");
    client.ok("SET GLOBAL gtid_strict_mode = 1");
    const NUMBERS: std::ops::Range<u32> = 1000..1200;
    let writers: Vec<_> = (0..4)
        .map(|thread| {
            let mut client = server.connect();
            // All threads request the same numbers except the last one, which takes the next free number.
            std::thread::spawn(move || {
                let commits = |number: &u32| {
                    let set = format!("SET gtid_seq_no = {}", if thread < 3 { *number } else { 0 });
                    let insert = format!("INSERT INTO t VALUES ({number}, {thread})");
                    [set, insert].iter().all(|sql| !client.run(sql).contains("1950"))
                };
                NUMBERS.filter(commits).count()
            })
        })
        .collect();
    let done: usize = writers.into_iter().map(|writer| writer.join().expect("no panic")).sum();
    assert!(client.run("SELECT COUNT(*) FROM t").contains(&done.to_string()), "{done}");
    let events = client.run("SHOW BINLOG EVENTS");
    let numbers: Vec<u32> = events
        .split("0-1-")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .collect();
    assert!(numbers.len() > done, "each transaction, and the DDL");
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[test]
fn offsets_have_their_gtids_and_a_source_waits_for_none() {
    let (_disk, _server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    let value =
        |client: &mut Client, sql: &str| client.run(sql).lines().nth(1).unwrap_or_default().to_owned();
    let mut seen = Vec::new();
    for n in 0..6 {
        client.ok(&format!("SET gtid_domain_id = {}", n % 2));
        client.ok(&format!("INSERT INTO t VALUES ({n})"));
        if n == 3 {
            client.ok("FLUSH BINARY LOGS");
        }
        let status = value(&mut client, "SHOW MASTER STATUS");
        let (file, offset) = status.split_once(" | ").expect("several columns");
        let offset = offset.split(' ').next().expect("a number").to_owned();
        seen.push((file.to_owned(), offset));
    }
    // The first event is that of CREATE TABLE.
    let wanted = ["0-1-2", "0-1-2,1-1-1", "0-1-3,1-1-1", "0-1-3,1-1-2", "0-1-4,1-1-2", "0-1-4,1-1-3"];
    for ((file, offset), gtids) in seen.iter().zip(wanted) {
        let at = |client: &mut Client, offset: &str| {
            value(client, &format!("SELECT BINLOG_GTID_POS('{file}', {offset})"))
        };
        assert_eq!(at(&mut client, offset), gtids);
        assert_eq!(at(&mut client, &format!("{offset} - 1")), "NULL", "inside of an event");
    }
    assert_eq!(value(&mut client, "SELECT BINLOG_GTID_POS('missing', 4)"), "NULL");
    let waits = "SELECT MASTER_GTID_WAIT(''), MASTER_GTID_WAIT('0-1-1', 0)";
    assert_eq!(value(&mut client, waits), "0 | -1");
    assert!(client.run("SELECT MASTER_GTID_WAIT('0-1', 1)").contains("ERROR"));
}

#[test]
fn maintenance_is_logged_unless_it_says_otherwise() {
    let (_disk, _server, mut client) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    let newest = |client: &mut Client| client.run("SELECT @@last_gtid");
    for (statement, is_logged) in [
        ("FLUSH TABLES", true),
        ("FLUSH TABLES t", true),
        ("FLUSH LOCAL TABLES", false),
        ("FLUSH NO_WRITE_TO_BINLOG STATUS", false),
        ("FLUSH PRIVILEGES", true),
        ("FLUSH LOCAL PRIVILEGES", false),
        (
            "CREATE TABLE mysql.columns_priv (Host CHAR(60), Db CHAR(64), User CHAR(80), Table_name CHAR(64), \
             Column_name CHAR(64), Timestamp TIMESTAMP, Column_priv SET('Select', 'Insert'))",
            true,
        ),
        // It drops this table, which replicas have, too.
        ("FLUSH LOCAL PRIVILEGES", true),
        ("FLUSH STATUS, HOSTS", true),
        ("FLUSH SLOW LOGS", true),
        ("FLUSH LOGS", false),
        ("FLUSH BINARY LOGS", false),
        ("FLUSH TABLES t WITH READ LOCK", false),
        ("UNLOCK TABLES", false),
        ("FLUSH TABLES WITH READ LOCK", false),
        // The session's own lock does not block it.
        ("FLUSH TABLES", true),
        ("UNLOCK TABLES", false),
        ("ANALYZE TABLE t", true),
        ("ANALYZE LOCAL TABLE t", false),
        ("OPTIMIZE TABLE t", true),
        ("OPTIMIZE NO_WRITE_TO_BINLOG TABLE t", false),
        ("REPAIR TABLE t", true),
        // Not logged, because nothing was done: a replica would wait for a table that the source has not
        // locked.
        ("ANALYZE TABLE missing", false),
        ("CHECK TABLE t", false),
        ("CHECKSUM TABLE t", false),
    ] {
        let before = newest(&mut client);
        client.run(statement);
        assert_eq!(newest(&mut client) != before, is_logged, "{statement}");
    }
    let events = client.run("SHOW BINLOG EVENTS");
    assert!(events.contains("use `test`; FLUSH TABLES t"), "{events}");
    client.ok("SET sql_log_bin = 0");
    let before = newest(&mut client);
    client.run("ANALYZE TABLE t");
    assert_eq!(newest(&mut client), before);
}

#[test]
fn read_only_refuses_changes_of_others_than_administrators() {
    let (_disk, mut server, mut root) = server("CREATE TABLE t (id INT PRIMARY KEY)");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT ALL ON test.* TO u@localhost");
    let mut user = server.connect_as("u", "localhost");
    user.ok("USE test");
    user.ok("INSERT INTO t VALUES (1)");
    root.ok("SET GLOBAL read_only = 1");
    let text =
        "The MariaDB server is running with the --read-only option so it cannot execute this statement";
    for statement in [
        "INSERT INTO t VALUES (2)",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET id = 5 WHERE 0",
        "DELETE FROM t",
        "CREATE TABLE x (a INT)",
        "DROP TABLE IF EXISTS x",
        "TRUNCATE t",
        "ANALYZE TABLE t",
        "START TRANSACTION READ WRITE",
        "SELECT * FROM t FOR UPDATE",
    ] {
        let answer = user.run(statement);
        assert!(answer.contains("1290") && answer.contains(text), "{statement}: {answer}");
    }
    for statement in ["SELECT * FROM t", "BEGIN", "COMMIT", "SET @a = 1"] {
        user.ok(statement);
    }
    root.ok("INSERT INTO t VALUES (2)");
    root.ok("SET GLOBAL read_only = 0");
    user.ok("INSERT INTO t VALUES (3)");
}

#[test]
fn safe_updates_want_a_key_or_a_limit() {
    let (_disk, _server, mut client) = server("CREATE TABLE su (id INT PRIMARY KEY, a INT, b INT, KEY (b))");
    client.ok("INSERT INTO su VALUES (1, 1, 1), (2, 2, 2)");
    client.ok("SET sql_safe_updates = 1");
    for refused in [
        "UPDATE su SET a = 1",
        "UPDATE su SET a = 1 WHERE a = 1",
        "UPDATE su SET a = 1 WHERE id = 1 OR a = 1",
        "DELETE FROM su",
        "DELETE FROM su WHERE a = 1",
        "DELETE FROM su LIMIT 1",
        "DELETE FROM su WHERE 1 = 0",
    ] {
        assert!(client.run(refused).contains("1175"), "{refused}");
    }
    for done in [
        "UPDATE su SET a = 1 WHERE id = 1",
        "UPDATE su SET a = 1 WHERE b = 1",
        "UPDATE su SET a = 1 WHERE b > 0",
        "UPDATE su SET a = 1 WHERE a = 5 LIMIT 1",
        "UPDATE su SET a = 1 LIMIT 1",
        "DELETE FROM su WHERE b = 7",
        "DELETE FROM su WHERE id = 1",
    ] {
        client.ok(done);
    }
}

#[test]
fn a_row_that_no_event_holds_is_refused_and_nothing_of_the_statement_stays() {
    let disk = world::disk();
    let options = CacheOptions { event_bytes_max: 2000, ..CacheOptions::default() };
    let mut server = Server::open_with(&disk, BinlogCache { options, spill: None }).expect("opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(3000), u VARCHAR(3000))");
    client.ok("INSERT INTO t VALUES (1, REPEAT('a', 900), ''), (2, REPEAT('b', 900), ''), (3, REPEAT('c', 900), '')");
    assert_eq!(row_events(&server, &disk).len(), 2, "rows are spread over events");
    for statement in [
        "INSERT INTO t VALUES (4, '', ''), (5, REPEAT('x', 1990), '')",
        // Before and after images count together.
        "UPDATE t SET u = REPEAT('y', 200)",
        "REPLACE INTO t VALUES (1, REPEAT('z', 1500), REPEAT('z', 1500))",
    ] {
        let answer = client.run(statement);
        assert!(
            answer.starts_with("ERROR 1534 (HY000): Writing one row to the row-based binary log failed"),
            "{answer}"
        );
    }
    assert!(client.run("SELECT COUNT(*), SUM(LENGTH(u)) FROM t").contains("3 | 0"));
    assert_eq!(row_events(&server, &disk).len(), 2);
    client.ok("UPDATE t SET u = 'y', s = ''");
    drop((client, server));
    Server::open(&disk).expect("the log is sound");
}

fn gtid_state(server: &Server) -> String {
    server.db.commit.binlog_status().expect("the binlog is on").1.to_string()
}

/// Texts and order of the warnings are MariaDB's.
#[test]
fn domains_that_no_file_speaks_of_can_be_deleted() {
    let (disk, mut server, mut client) = server("CREATE TABLE t (i INT)");
    for domain in [5, 6, 0] {
        client.ok(&format!("SET gtid_domain_id = {domain}"));
        client.ok("INSERT INTO t VALUES (1)");
    }
    let refused = "ERROR 1076 (HY000): Could not delete gtid domain. Reason: binlog files may contain gtids from the \
                   domain ('5') being deleted. Make sure to first purge those files.";
    assert!(client.run("FLUSH BINARY LOGS DELETE_DOMAIN_ID=(5)").starts_with(refused));
    let files = server.binlog().len();
    let answer = client.run("FLUSH LOCAL BINARY LOGS DELETE_DOMAIN_ID = (77)");
    assert!(
        answer.contains("1076 | The gtid domain being deleted ('77') is not in the current binlog state"),
        "{answer}"
    );
    assert_eq!(server.binlog().len(), files, "nothing to delete: the file goes on");
    client.ok("FLUSH BINARY LOGS DELETE_DOMAIN_ID=()");
    assert_eq!(server.binlog().len(), files + 1);
    client.ok("PURGE BINARY LOGS TO 'binlog.000002'");
    assert_eq!(client.run("FLUSH BINARY LOGS DELETE_DOMAIN_ID=(5,5)").lines().count(), 1, "no warning");
    assert_eq!(gtid_state(&server), "0-1-2,6-1-1");
    let answer = client.run("FLUSH BINARY LOGS DELETE_DOMAIN_ID=(5)");
    let missing = "The current gtid binlog state is incompatible with a former one missing gtids from the '5-1' domain-server \
                   pair which is referred to in the gtid list describing an earlier state. Ignore if the domain ('5') was \
                   already explicitly deleted.";
    assert!(answer.contains(missing), "{answer}");
    for (list, error) in [
        (
            "(4294967296)",
            "ERROR 1076 (HY000): The value of gtid domain being deleted ('4294967296') exceeds its maximum",
        ),
        (
            "(99999999999999999999)",
            "ERROR 1076 (HY000): The value of gtid domain being deleted ('18446744073709551615')",
        ),
        ("(-1)", "ERROR 1064 (42000)"),
        ("5", "ERROR 1064 (42000)"),
        ("(0x5)", "ERROR 1064 (42000)"),
        ("(1,)", "ERROR 1064 (42000)"),
    ] {
        let answer = client.run(&format!("FLUSH BINARY LOGS DELETE_DOMAIN_ID={list}"));
        assert!(answer.starts_with(error), "{list}: {answer}");
    }
    client.ok("INSERT INTO t VALUES (2)");
    drop((client, server));
    server = Server::open(&disk).expect("recovers");
    assert_eq!(gtid_state(&server), "0-1-3,6-1-1");
}

#[test]
fn ten_thousand_domains_take_part_in_file_changes_and_starts() {
    let (disk, mut server, mut client) = server("CREATE TABLE t (i INT)");
    for domain in 1..=10_000 {
        client.ok(&format!("SET gtid_domain_id = {domain}"));
        client.ok("INSERT INTO t VALUES (1)");
        if domain % 2500 == 0 {
            client.ok("FLUSH BINARY LOGS");
        }
    }
    server.db.commit.set_binlog_file_bytes_max(4096);
    for _ in 0..10 {
        client.ok("DELETE FROM t WHERE i = 2");
        client.ok("INSERT INTO t VALUES (2)");
    }
    let files = server.binlog();
    assert!(files.len() > 14, "a file change after each");
    let newest = files.last().expect("there is one").clone();
    drop((client, server));
    drop(Server::open(&disk).expect("starts"));
    server = Server::open(&disk).expect("starts again");
    assert_eq!(gtid_state(&server).matches(',').count(), 10_000, "with domain 0");
    let mut client = server.connect();
    let name = newest.rsplit_once('/').expect("a path").1;
    client.ok(&format!("PURGE BINARY LOGS TO '{name}'"));
    client.ok("FLUSH BINARY LOGS");
    let last = server.binlog().last().expect("there is one").clone();
    client.ok(&format!("PURGE BINARY LOGS TO '{}'", last.rsplit_once('/').expect("a path").1));
    let list: Vec<String> = (2..=10_000).map(|domain| domain.to_string()).collect();
    client.ok(&format!("FLUSH BINARY LOGS DELETE_DOMAIN_ID=({})", list.join(",")));
    assert_eq!(gtid_state(&server), "0-1-1,1-1-1");
}

#[test]
fn a_domain_ends_at_its_last_number() {
    let (disk, mut server, mut client) = server("CREATE TABLE t (i INT)");
    let over = "ERROR 1598 (HY000): Binary logging not possible. Message: no sequence number above 18446744069414584319";
    for number in [u64::MAX, u64::MAX - 1, u64::MAX - (1 << 32) + 1] {
        client.ok(&format!("SET gtid_seq_no = {number}"));
        assert!(client.run("INSERT INTO t VALUES (1)").starts_with(over));
    }
    client.ok("SET gtid_seq_no = 18446744069414584318");
    client.ok("INSERT INTO t VALUES (2)");
    client.ok("INSERT INTO t VALUES (3)");
    for _ in 0..2 {
        assert!(
            client.run("INSERT INTO t VALUES (4)").starts_with(over),
            "the next number would be the last but none"
        );
        assert!(client.run("CREATE TABLE u (i INT)").starts_with(over));
        client.ok("SET gtid_domain_id = 7");
        client.ok("DELETE FROM t WHERE i > 3");
        drop((client, server));
        server = Server::open(&disk).expect("recovers");
        client = server.connect();
    }
    assert!(client.run("SELECT COUNT(*), MAX(i) FROM t").contains("2 | 3"));
}

#[test]
fn a_table_made_of_a_query_is_one_transaction_with_its_rows() {
    let (disk, server, mut client) = server("CREATE TABLE b (n INT NOT NULL DEFAULT 7, s VARCHAR(9))");
    client.ok("INSERT INTO b VALUES (1, 'x'), (2, 'y')");
    client.ok("CREATE TABLE e1 (k INT) SELECT n, 'a''b' q FROM b WHERE n < 3");
    client.ok("CREATE OR REPLACE TABLE e1 (PRIMARY KEY (n)) ENGINE=REFERENCE CHARSET=latin1 SELECT 5 AS n");
    client.ok("CREATE TABLE IF NOT EXISTS e1 SELECT 1 AS a");
    let refused = client.run("CREATE TABLE e2 (a INT PRIMARY KEY) SELECT 1 AS a UNION ALL SELECT 1");
    assert!(refused.contains("1062"), "{refused}");
    let texts = infos(&server, &disk, EventType::QUERY);
    let made: Vec<&str> = texts.iter().filter(|text| text.contains("`e")).map(String::as_str).collect();
    assert_eq!(
        made,
        [
            "use `test`; CREATE TABLE `e1` (\n  `k` int(11) DEFAULT NULL,\n  `n` int(11) NOT NULL DEFAULT 7,\n  \
             `q` varchar(3) NOT NULL\n)",
            "use `test`; CREATE OR REPLACE TABLE `e1` (\n  `n` int(1) NOT NULL,\n  PRIMARY KEY (`n`)\n) \
             ENGINE=REFERENCE DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci",
        ]
    );
    assert_eq!(
        infos(&server, &disk, EventType::ANNOTATE_ROWS).last().map(String::as_str),
        Some("CREATE OR REPLACE TABLE e1 (PRIMARY KEY (n)) ENGINE=REFERENCE CHARSET=latin1 SELECT 5 AS n")
    );
    let kinds: Vec<EventType> = events(&server, &disk).iter().map(|(header, _)| header.kind).collect();
    let at = kinds.iter().rposition(|kind| *kind == EventType::QUERY).expect("the last CREATE");
    assert_eq!(
        kinds[at - 1..at + 5],
        [
            EventType::GTID,
            EventType::QUERY,
            EventType::ANNOTATE_ROWS,
            EventType::TABLE_MAP,
            EventType::WRITE_ROWS_V1,
            EventType::XID,
        ]
    );
    // The server generated the text, so the session's SQL mode must not apply to it.
    client.ok("SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'");
    client.ok("CREATE TABLE e3 (k VARCHAR(9) DEFAULT 'a\\b' COMMENT 'c\\') SELECT 1 AS n");
    let read = |event: &Event| match event {
        Event::Query(query) => {
            let text = String::from_utf8_lossy(&query.sql).into_owned();
            text.contains("`e3`").then(|| (text, query.status_vars().expect("decodes").sql_mode))
        }
        _ => None,
    };
    let (text, mode) = events(&server, &disk).iter().find_map(|(_, event)| read(event)).expect("logged");
    assert!(text.contains("DEFAULT 'a\\\\b' COMMENT 'c\\\\'"), "{text}");
    assert_eq!(mode, Some(SqlMode::STRICT_ALL_TABLES.0));
    // The rows survive a restart.
    drop((client, server));
    let mut server = Server::open(&disk).expect("it opens again");
    let mut client = server.connect();
    let rows = client.run("SELECT n + 70 FROM e1");
    assert!(rows.contains("75"), "{rows}");
    let refused = client.run("SELECT 1 FROM e2");
    assert!(refused.contains("1146"), "{refused}");
}
