//! An existing MariaDB, with every column type and with large values, seeds a Cohort by MariaDB's own dump
//! while applications write. Both must have the same rows, byte by byte.

mod support;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use mysql::prelude::Queryable;
use support::{Cohort, Ends, Maria};

const ROWS: u32 = 120;
/// Bytes of a large value, more than fit into a packet.
const LARGE: u32 = 18 << 20;

const TABLES: &str = "CREATE TABLE old.numbers (id INT PRIMARY KEY, a TINYINT, b TINYINT UNSIGNED, c SMALLINT, d MEDIUMINT UNSIGNED, \
     e BIGINT, f BIGINT UNSIGNED ZEROFILL, g FLOAT, h DOUBLE, i FLOAT(10,3), j DECIMAL(65,30), k DECIMAL(5,0) UNSIGNED, l BIT(1), m BIT(64), n BOOL, KEY (e), KEY (h)); \
     CREATE TABLE old.times (id INT AUTO_INCREMENT PRIMARY KEY, a DATE, b TIME, c TIME(6), d DATETIME, e DATETIME(4), f TIMESTAMP NULL, \
     g TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), h YEAR, KEY (e)); \
     CREATE TABLE old.texts (id INT PRIMARY KEY, a CHAR(30), b VARCHAR(500) CHARACTER SET latin1, c TINYTEXT, d TEXT, e MEDIUMTEXT, f LONGTEXT, \
     g CHAR(10) CHARACTER SET utf8mb3, h VARCHAR(50) COLLATE utf8mb4_bin, i VARCHAR(60) CHARACTER SET ucs2, j ENUM('one','zwölf','x y'), k SET('a','b','c d','é'), \
     l JSON, m VARCHAR(15000), UNIQUE (h), KEY (d(20))) DEFAULT CHARSET utf8mb4; \
     CREATE TABLE old.bytes (id INT PRIMARY KEY, a BINARY(16), b VARBINARY(300), c TINYBLOB, d BLOB, e MEDIUMBLOB, f LONGBLOB, KEY (d(10))); \
     CREATE TABLE old.computed (id INT PRIMARY KEY, a INT, b INT AS (a * 2) VIRTUAL, c VARCHAR(40) AS (CONCAT('<', a, '>')) STORED, d INT INVISIBLE DEFAULT 7, KEY (c)); \
     CREATE TABLE old.keyless (a INT, b VARCHAR(20)); CREATE TABLE old.pairs (a INT, b INT, c VARCHAR(10), PRIMARY KEY (b, a), UNIQUE (c)); \
     CREATE TABLE old.`quo``ted \"name` (`an id` INT PRIMARY KEY, `sel``ect` TEXT); \
     CREATE VIEW old.seen AS SELECT id, a FROM old.numbers WHERE id < 10";

fn fill(source: &Maria, large: u32) {
    let odd = "IF(seq % 17 = 0, NULL,";
    source.sql(&format!(
        "SET NAMES utf8mb4; SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'; USE old; \
         INSERT INTO numbers SELECT seq, {odd} seq % 256 - 128), seq % 256, seq * 77 % 65536 - 32768, seq * 40000 % 16777216, \
         {odd} (RAND(seq) - 0.5) * 1.8e19), RAND(seq) * 1.8e19, RAND(seq) * 1e30, {odd} (RAND(seq) - 0.5) * 1e300), seq / 7, \
         {odd} (RAND(seq) - 0.5) * 1e30), seq * 13 % 100000, seq % 2, seq * 1234567890123, seq % 2 FROM seq_1_to_{ROWS}; \
         INSERT INTO times SELECT seq, {odd} '1000-01-01' + INTERVAL seq * 7919 DAY), SEC_TO_TIME(seq * 4099 - 800000), \
         SEC_TO_TIME(seq * 2039.123457), '1000-01-01' + INTERVAL seq * 600000000 SECOND, NOW(6) + INTERVAL seq * 1.2345 SECOND, \
         {odd} FROM_UNIXTIME(seq * 5000000)), FROM_UNIXTIME(seq * 5000000.123456), 1901 + seq % 255 FROM seq_1_to_{ROWS}; \
         INSERT INTO times (a, d) VALUES ('0000-00-00', '0000-00-00 00:00:00'), ('2024-00-12', '2024-02-00 10:00:00'); \
         INSERT INTO texts SELECT seq, {odd} REPEAT('ä', seq % 30)), REPEAT('é', seq), LEFT(MD5(seq), seq % 33), \
         CONCAT(seq, REPEAT('\\\\ \\'\\n\\r\\t\\\"%_;-- ', seq)), REPEAT('m', seq * 300), REPEAT('lang 😀', seq * 50), 'π', CONCAT('U', seq), 'ünï', \
         1 + seq % 3, seq % 16, JSON_OBJECT('n', seq, 'list', JSON_ARRAY(NULL, 'ß', 1.5)), REPEAT('v', seq * 30) FROM seq_1_to_{ROWS}; \
         INSERT INTO bytes SELECT seq, UNHEX(MD5(seq)), REPEAT(CHAR(seq % 256), seq % 300), UNHEX(SHA1(seq)), REPEAT(UNHEX(MD5(seq)), 200), \
         {odd} REPEAT(CHAR(0, 255, 26, 10, 39, 92), seq * 20)), REPEAT(UNHEX(SHA2(seq, 512)), seq) FROM seq_1_to_{ROWS}; \
         INSERT INTO bytes (id, f) VALUES ({ROWS} + 1, REPEAT(UNHEX(SHA2('large', 512)), {large} DIV 64)), ({ROWS} + 2, ''); \
         INSERT INTO texts (id, h, f) VALUES ({ROWS} + 1, 'large', REPEAT('groß', 200000)); \
         INSERT INTO computed (id, a) SELECT seq, seq * 3 FROM seq_1_to_{ROWS}; \
         INSERT INTO keyless SELECT seq % 50, seq % 7 FROM seq_1_to_{ROWS}; \
         INSERT INTO pairs SELECT seq % 20, seq DIV 20, IF(seq % 3, seq, NULL) FROM seq_1_to_{ROWS}; \
         INSERT INTO `quo``ted \"name` SELECT seq, CONCAT('`', seq) FROM seq_1_to_5"
    ));
}

/// Returns one digest per row of each table, in order, over the raw bytes.
fn digests(ask: &dyn Fn(&str) -> String) -> Vec<String> {
    let columns = ask(
        "SELECT CONCAT('`', REPLACE(table_name, '`', '``'), '`'), CONCAT('`', REPLACE(column_name, '`', '``'), '`'), data_type \
         FROM information_schema.columns WHERE table_schema = 'old' ORDER BY table_name, ordinal_position",
    );
    let mut tables: Vec<(String, Vec<String>)> = Vec::new();
    for line in columns.lines() {
        let [table, column, kind] = line.split('\t').collect::<Vec<_>>().try_into().expect("three columns");
        let has_bytes = ["char", "text", "blob", "binary", "bit", "enum", "set"];
        let value = match has_bytes.iter().any(|word| kind.contains(word)) {
            true => format!("HEX({column})"),
            false => format!("QUOTE({column})"),
        };
        match tables.last_mut().filter(|(name, _)| name == table) {
            Some((_, values)) => values.push(value),
            None => tables.push((table.to_owned(), vec![value])),
        }
    }
    assert!(tables.len() > 8, "{tables:?}");
    let of_table = |(table, values): &(String, Vec<String>)| {
        let values: Vec<String> = values.iter().map(|value| format!("IFNULL({value}, 'NULL')")).collect();
        let list = values.join(", ");
        format!(
            "{table}\n{}",
            ask(&format!("SELECT MD5(CONCAT_WS('|', {list})) AS d FROM old.{table} ORDER BY d"))
        )
    };
    tables.iter().map(of_table).collect()
}

/// Makes small changes of all kinds until `stops` is set.
fn change(client: &mut mysql::Conn, stops: &AtomicBool) {
    let mut n = 0;
    while !stops.load(Ordering::Relaxed) {
        n += 1;
        for sql in [
            format!("INSERT INTO old.keyless VALUES ({n}, 'new')"),
            format!("UPDATE old.numbers SET h = h / 2, e = e + 1 WHERE id = {}", n % ROWS),
            format!("UPDATE old.bytes SET d = CONCAT(d, UNHEX('00ff27')) WHERE id = {}", n % ROWS),
            format!("DELETE FROM old.pairs WHERE a = {} LIMIT 1", n % 20),
        ] {
            client.query_drop(sql).expect("changed");
        }
    }
}

fn seed(more: &[&str], by: &str, large: u32) {
    let source = Maria::source(&["--binlog-format=ROW", "--max-allowed-packet=256M"]);
    source.sql("CREATE DATABASE old CHARACTER SET utf8mb4");
    source.sql(TABLES);
    fill(&source, large);
    let replica = Cohort::new(&["--log-slave-updates", "--server-id=7", "--max-allowed-packet=256M"]);
    replica.sql(&format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', master_connect_retry=1, \
         master_use_gtid={by}",
        source.port
    ));
    let stops = AtomicBool::new(false);
    let mut client = source.client();
    std::thread::scope(|scope| {
        let _ends = Ends(&stops);
        let writer = scope.spawn(|| change(&mut client, &stops));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seed.sql");
        let dump = Command::new("mariadb-dump")
            .args(["--no-defaults", "--user=root", &format!("--socket={}", source.socket.display())])
            .args(["--single-transaction", "--master-data=1", "--max-allowed-packet=256M"])
            .args(more)
            .args(["--databases", "old"])
            .stdout(std::fs::File::create(&path).expect("a file"))
            .output()
            .expect("installed");
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        let load = Command::new("mariadb")
            .args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--max-allowed-packet=256M"])
            .arg(format!("--port={}", replica.port))
            .stdin(Stdio::from(std::fs::File::open(&path).expect("there")))
            .output()
            .expect("installed");
        assert!(load.status.success(), "{}", String::from_utf8_lossy(&load.stderr));
        replica.sql("START SLAVE");
        stops.store(true, Ordering::Relaxed);
        writer.join().expect("no panic");
    });
    replica.wait_for(&source.gtid_end());
    let (ours, theirs) = (digests(&|sql| replica.sql(sql)), digests(&|sql| source.sql(sql)));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{by}");
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn a_filled_mariadb_seeds_a_cohort_by_its_own_dump() {
    seed(&["--gtid"], "slave_pos", LARGE);
    seed(&["--hex-blob"], "no", 1 << 20);
}
