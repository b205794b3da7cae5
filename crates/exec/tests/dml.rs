//! Statements of a session, with expected results recorded from MariaDB 10.11.

mod world;

use cohort_binlog::EventReader;
use cohort_binlog::event::Event;
use cohort_exec::{Database, Session};
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_types::{SqlError, Value};
use cohort_vfs::SharedFs;
use world::{Client, Server, disk};

/// A sink that formats results: one line per row, OK or error.
#[derive(Default)]
struct Text(Vec<String>);

impl ResultSink for Text {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {}

    fn row(&mut self, values: &[Value]) {
        let text = |value: &Value| if value.is_null() { "NULL".to_owned() } else { value.to_text() };
        self.0.push(values.iter().map(text).collect::<Vec<_>>().join(" "));
    }

    fn finish(&mut self, _: StatusFlags, _: u16) {}

    fn ok(&mut self, ok: &OkInfo<'_>) {
        let id = if ok.last_insert_id == 0 { String::new() } else { format!(" id {}", ok.last_insert_id) };
        self.0.push(format!("OK {}{id} {}", ok.affected_rows, ok.info).trim_end().to_owned());
    }

    fn error(&mut self, error: &SqlError) {
        self.0.push(format!("{} {}", error.code.number(), error.message));
    }

    fn is_dead(&self) -> bool {
        false
    }
}

/// Creates a server with tables in database `d`, and a session that uses it.
fn server(disk: &SharedFs) -> (Server, Client) {
    let mut server = Server::open(disk).expect("an empty disk opens");
    let mut client = server.connect();
    for sql in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT, u INT, KEY k (k), UNIQUE KEY u (u))",
        "CREATE TABLE people (name VARCHAR(10) PRIMARY KEY, age TINYINT NOT NULL, note VARCHAR(5) DEFAULT 'x',
         seen TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, kind ENUM('a', 'b') NOT NULL)",
        "CREATE TABLE bare (a INT)",
    ] {
        client.ok(sql);
    }
    (server, client)
}

/// Runs lines of `statement -> result; result` and checks the results.
fn check(script: &str) {
    let (_server, mut client) = server(&disk());
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (sql, expected) = line.split_once(" -> ").unwrap_or((line, "OK 0"));
        assert_eq!(answer(&mut client.session, sql), expected, "{sql}");
    }
}

fn answer(session: &mut Session, sql: &str) -> String {
    let mut sink = Text::default();
    session.query(sql.as_bytes(), &mut sink);
    sink.0.join("; ")
}

#[test]
fn inserts() {
    check(
        "
        INSERT INTO t (k) VALUES (1), (2) -> OK 2 id 1 Records: 2  Duplicates: 0  Warnings: 0
        SELECT LAST_INSERT_ID(), ROW_COUNT() -> 1 2
        INSERT INTO t VALUES (100, 5, 1) -> OK 1 id 100
        INSERT INTO t SET k = 3 -> OK 1 id 101
        INSERT INTO t VALUES (NULL, 1, 1) -> 1062 Duplicate entry '1' for key 'u'
        INSERT INTO t (k) VALUES (0 + k) -> OK 1 id 103
        INSERT INTO t (nope) VALUES (1) -> 1054 Unknown column 'nope' in 'INSERT INTO'
        INSERT INTO t (k) VALUES (nope) -> 1054 Unknown column 'nope' in 'VALUES'
        INSERT INTO t VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE k = nope -> 1054 Unknown column 'nope' in 'UPDATE'
        INSERT INTO t (k, k) VALUES (1, 2) -> 1110 Column 'k' specified twice
        INSERT INTO t (k) VALUES (1, 2) -> 1136 Column count doesn't match value count at row 1
        INSERT INTO bare VALUES (1), (2, 3) -> 1136 Column count doesn't match value count at row 2
        INSERT INTO people (name) VALUES ('a') -> 1364 Field 'age' doesn't have a default value
        INSERT INTO people (name, age) VALUES ('a', NULL) -> 1048 Column 'age' cannot be null
        INSERT INTO people (name, age) VALUES ('Ann', 30) -> OK 1
        INSERT INTO people (name, age) VALUES ('ANN ', 31) -> 1062 Duplicate entry 'ANN ' for key 'PRIMARY'
        INSERT INTO people (name, age) VALUES ('Bob', 200) -> 1264 Out of range value for column 'age' at row 1
        INSERT INTO people (name, age, note) VALUES ('Bob', 20, '123456') -> 1406 Data too long for column 'note' at row 1
        INSERT IGNORE INTO people (name, age) VALUES ('Bob', NULL), ('ann', 1) -> OK 1 Records: 2  Duplicates: 1  Warnings: 2
        SHOW WARNINGS -> Warning 1048 Column 'age' cannot be null; Warning 1062 Duplicate entry 'ann' for key 'PRIMARY'
        INSERT INTO people () VALUES () -> 1364 Field 'name' doesn't have a default value
        INSERT INTO people (name, age, note) VALUES ('Cid', 1, DEFAULT) -> OK 1
        SELECT name, age, note, kind FROM people -> Ann 30 x a; Bob 0 x a; Cid 1 x a
        INSERT INTO bare VALUES (1), (2) -> OK 2 Records: 2  Duplicates: 0  Warnings: 0
        INSERT INTO bare SELECT a + 2 FROM bare -> OK 2 Records: 2  Duplicates: 0  Warnings: 0
        SELECT a FROM bare -> 1; 2; 3; 4
        ",
    );
}

#[test]
fn duplicates_are_replaced_or_updated() {
    check(
        "
        INSERT INTO t VALUES (1, 1, 1), (2, 2, 2) -> OK 2 id 2 Records: 2  Duplicates: 0  Warnings: 0
        INSERT INTO t VALUES (1, 9, 9) ON DUPLICATE KEY UPDATE k = k + VALUES(k) -> OK 2 id 1
        INSERT INTO t VALUES (1, 9, 9) ON DUPLICATE KEY UPDATE k = k -> OK 0
        INSERT INTO t VALUES (3, 9, 2) ON DUPLICATE KEY UPDATE k = 7, u = 1 -> 1062 Duplicate entry '1' for key 'u'
        SELECT id, k, u FROM t -> 1 10 1; 2 2 2
        REPLACE INTO t VALUES (1, 5, 2) -> OK 3 id 1
        REPLACE INTO t VALUES (1, 5, 2) -> OK 2 id 1
        REPLACE INTO t VALUES (4, 4, 4) -> OK 1 id 4
        REPLACE INTO bare VALUES (1), (1) -> OK 2 Records: 2  Duplicates: 0  Warnings: 0
        SELECT id, k, u FROM t -> 1 5 2; 4 4 4
        ",
    );
}

#[test]
fn updates_and_deletes() {
    check(
        "
        INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3) -> OK 3 id 3 Records: 3  Duplicates: 0  Warnings: 0
        UPDATE t SET k = k + 1 WHERE id = 1 -> OK 1 Rows matched: 1  Changed: 1  Warnings: 0
        UPDATE t SET k = 11 WHERE id = 1 -> OK 0 Rows matched: 1  Changed: 0  Warnings: 0
        UPDATE t SET k = k + 100 WHERE k > 0 -> OK 3 Rows matched: 3  Changed: 3  Warnings: 0
        UPDATE t SET id = id + 1 ORDER BY id DESC -> OK 3 Rows matched: 3  Changed: 3  Warnings: 0
        SELECT id, k, u FROM t -> 2 111 1; 3 120 2; 4 130 3
        UPDATE t SET u = 3 WHERE id = 2 -> 1062 Duplicate entry '3' for key 'u'
        UPDATE IGNORE t SET u = 3 -> OK 0 Rows matched: 3  Changed: 0  Warnings: 0
        UPDATE t SET u = NULL, k = u WHERE id = 2 -> OK 1 Rows matched: 1  Changed: 1  Warnings: 0
        SELECT k, u FROM t WHERE id = 2 -> NULL NULL
        UPDATE t SET nope = 1 -> 1054 Unknown column 'nope' in 'SET'
        UPDATE t SET k = 'abc' WHERE id = 3 -> 1366 Incorrect integer value: 'abc' for column `d`.`t`.`k` at row 1
        UPDATE t SET k = DEFAULT ORDER BY k DESC LIMIT 1 -> OK 1 Rows matched: 1  Changed: 1  Warnings: 0
        DELETE FROM t WHERE k IS NULL ORDER BY id LIMIT 1 -> OK 1
        SELECT id FROM t -> 3; 4
        DELETE FROM t WHERE id IN (4, 3, 4) -> OK 2
        INSERT INTO people (name, age) VALUES ('Ann', 30) -> OK 1
        UPDATE people SET name = 'ANN' WHERE name = 'ann' -> OK 1 Rows matched: 1  Changed: 1  Warnings: 0
        SELECT name, seen IS NULL FROM people -> ANN 0
        UPDATE people SET age = NULL -> 1048 Column 'age' cannot be null
        DELETE FROM people -> OK 1
        ",
    );
}

#[test]
fn transactions() {
    check(
        "
        BEGIN
        INSERT INTO bare VALUES (1) -> OK 1
        SAVEPOINT a
        INSERT INTO bare VALUES (2) -> OK 1
        ROLLBACK TO a
        COMMIT
        SELECT a FROM bare -> 1
        SET autocommit = 0
        DELETE FROM bare -> OK 1
        ROLLBACK
        SELECT a FROM bare -> 1
        SET autocommit = 1
        START TRANSACTION READ ONLY
        DELETE FROM bare -> 1792 Cannot execute statement in a READ ONLY transaction
        COMMIT
        ",
    );
}

/// Returns the BINLOG statements that `mariadb-binlog` would print: the format description, then the events
/// of each statement.
fn binlog_statements(db: &Database, disk: &SharedFs) -> Vec<String> {
    binlog_statements_with(db, disk, &|_| ())
}

/// Variant that changes the row events.
fn binlog_statements_with(db: &Database, disk: &SharedFs, change: &dyn Fn(&mut [u8])) -> Vec<String> {
    let read = db.commit.with_binlog_files(|files| {
        let (mut statements, mut text) = (Vec::new(), String::new());
        for &number in files.numbers() {
            let mut reader = EventReader::open(disk, &files.name().path(number)).expect("opens");
            reader.seek(4);
            while let Some(raw) = reader.next_event().expect("reads") {
                let ends = match reader.decode(&raw).expect("decodes") {
                    Event::FormatDescription(_) => true,
                    Event::TableMap(_) => false,
                    Event::Rows(rows) => rows.ends_statement(),
                    _ => continue,
                };
                let mut bytes = raw.bytes.to_vec();
                if let Ok(Event::Rows(_)) = reader.decode(&raw) {
                    change(&mut bytes);
                }
                text.push_str(&base64(&bytes));
                text.push('\n');
                if ends {
                    statements.push(format!("BINLOG '{}'", std::mem::take(&mut text)));
                }
            }
        }
        statements
    });
    read.expect("the binlog is on").expect("written")
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = [chunk[0], *chunk.get(1).unwrap_or(&0), *chunk.get(2).unwrap_or(&0)];
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n) & 63) as usize] as char;
            text.push(if n > chunk.len() { '=' } else { digit });
        }
    }
    text
}

#[test]
fn a_binlog_played_back_gives_the_same_rows() {
    let disk_a = disk();
    let ((a, mut source), (_b, mut copy)) = (server(&disk_a), server(&disk()));
    let (a, source, copy) = (&a.db, &mut source.session, &mut copy.session);
    for sql in [
        "INSERT INTO t VALUES (1, 10, 1), (2, 20, NULL), (3, 30, 3)",
        "UPDATE t SET id = id + 10, u = NULL WHERE k > 10",
        "DELETE FROM t WHERE id = 12",
        "REPLACE INTO t VALUES (1, 11, 5)",
        "INSERT INTO people VALUES ('Ann', -3, NULL, '2024-02-29 12:00:00', 'b'), ('Bob', 4, 'q', NULL, 'a')",
        "UPDATE people SET age = age * 2",
        "INSERT INTO bare VALUES (7), (7), (NULL), (8)",
        "UPDATE bare SET a = 9 WHERE a IS NULL",
        "DELETE FROM bare WHERE a = 7 LIMIT 1",
    ] {
        let answer = answer(source, sql);
        assert!(answer.starts_with("OK"), "{sql}: {answer}");
    }
    a.commit.wait_acknowledged(source.hold_until()).expect("runs");
    let statements = binlog_statements(a, &disk_a);
    assert_eq!(statements.len(), 10, "a format description and a statement each");
    let early = answer(copy, &statements[1]);
    assert!(early.starts_with("1609 The BINLOG statement of type `Table_map` was not preceded"), "{early}");
    for statement in &statements {
        assert_eq!(answer(copy, statement), "OK 0");
    }
    for table in ["t", "people", "bare"] {
        let sql = format!("SELECT * FROM {table} ORDER BY 1");
        assert_eq!(answer(copy, &sql), answer(source, &sql), "{table}");
    }
    let again = answer(copy, &statements[3]);
    assert_eq!(again, "1032 Can't find record in 't'");
}

#[test]
fn covered_columns_come_from_the_index() {
    check(
        "
        INSERT INTO t VALUES (1, 30, 7), (2, 20, NULL), (3, 10, 9) -> OK 3 id 3 Records: 3  Duplicates: 0  Warnings: 0
        SELECT k FROM t FORCE INDEX (k) WHERE k BETWEEN 10 AND 20 -> 10; 20
        SELECT k, id FROM t FORCE INDEX (k) WHERE k > 10 -> 20 2; 30 1
        SELECT id, u FROM t FORCE INDEX (u) WHERE u > 0 -> 1 7; 3 9
        SELECT COUNT(*) FROM t WHERE u IS NULL -> 1
        SELECT k, u FROM t FORCE INDEX (k) WHERE k > 10 -> 20 NULL; 30 7
        UPDATE t SET k = 5 WHERE id = 1 -> OK 1 Rows matched: 1  Changed: 1  Warnings: 0
        SELECT k, id FROM t FORCE INDEX (k) WHERE k < 10 -> 5 1
        ",
    );
}

/// MariaDB never writes such an event, but a client may send one. Row images without columns take no bytes.
#[test]
fn a_row_event_without_columns_is_refused() {
    let disk_a = disk();
    let ((a, mut source), (_b, mut copy)) = (server(&disk_a), server(&disk()));
    let (a, source, copy) = (&a.db, &mut source.session, &mut copy.session);
    assert!(answer(source, "INSERT INTO bare VALUES (7)").starts_with("OK"));
    a.commit.wait_acknowledged(source.hold_until()).expect("runs");
    let statements = binlog_statements_with(a, &disk_a, &|event| {
        // The event consists of header, table id, flags and number of columns; then bitmap, image and
        // checksum.
        event[19 + 6 + 2 + 1] = 0;
        let end = event.len() - 4;
        let checksum = crc32fast::hash(&event[..end]);
        event[end..].copy_from_slice(&checksum.to_le_bytes());
    });
    assert_eq!(answer(copy, &statements[0]), "OK 0");
    let refused = answer(copy, &statements[1]);
    assert!(refused.contains("row images without columns"), "{refused}");
}
