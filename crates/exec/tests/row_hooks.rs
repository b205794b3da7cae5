//! Hooks of row changes: when they run, what they see, and what they may change. The expected results are
//! those of triggers in MariaDB 10.11 that do the same. (There, a generated column computed from NULL in a
//! NOT NULL column reads as 0.)

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cohort_catalog::Table;
use cohort_locks::MetadataMode;
use cohort_row::TableWriter;
use cohort_session::{RowHook, RowHooks, StatementContext};
use cohort_types::{Collation, SqlResult, Str, Value};
use world::{Server, disk};

/// A hook that writes a row into the table `log` for each call, and changes some values of `v`.
struct Logging(AtomicI64);

/// The hooks of the table `t`.
struct Hooks(Arc<Logging>);

impl RowHooks for Hooks {
    fn of(&self, table: &Arc<Table>) -> Vec<Arc<dyn RowHook>> {
        if table.name.table == "t" { vec![Arc::clone(&self.0) as Arc<dyn RowHook>] } else { Vec::new() }
    }
}

impl Logging {
    fn log(
        &self,
        ctx: &mut StatementContext<'_>,
        time: &str,
        old: Option<&[Value]>,
        new: Option<&[Value]>,
    ) -> SqlResult<()> {
        let shown = |value: &Value| if value.is_null() { "NULL".to_owned() } else { value.to_text() };
        let row = |row: Option<&[Value]>| match row {
            None => "-".to_owned(),
            // The year of the timestamp shows whether it was touched.
            Some(row) => {
                let is_now = matches!(row[5], Value::Timestamp(at) if at == ctx.eval.env.now_micros);
                let mut texts: Vec<String> = row[..4].iter().map(shown).collect();
                texts.push(if is_now { "now" } else { "then" }.to_owned());
                texts.join(" ")
            }
        };
        let text = format!("{time} {} | {}", row(old), row(new));
        let table = ctx.db.catalog().table("test", "log").cloned().expect("the table is there");
        ctx.trx.lock_table(&table, MetadataMode::SharedWrite)?;
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let text = Value::Str(Str { bytes: text.into_bytes(), collation: Collation::UTF8MB4_GENERAL_CI });
        let written = TableWriter::open(ctx.trx, &table)?.insert(ctx.trx, &[Value::Int(number), text])?;
        assert!(written.is_ok(), "the number is new");
        Ok(())
    }
}

impl RowHook for Logging {
    fn before(
        &self,
        ctx: &mut StatementContext<'_>,
        old: Option<&[Value]>,
        new: Option<&mut [Value]>,
    ) -> SqlResult<()> {
        self.log(ctx, "before", old, new.as_deref())?;
        let Some(new) = new else { return Ok(()) };
        new[1] = match new[1] {
            Value::Null => Value::Int(7),
            Value::Int(40) => Value::Int(60),
            Value::Int(50) => Value::Int(500),
            ref other => other.clone(),
        };
        Ok(())
    }

    fn after(
        &self,
        ctx: &mut StatementContext<'_>,
        old: Option<&[Value]>,
        new: Option<&[Value]>,
    ) -> SqlResult<()> {
        self.log(ctx, "after", old, new)
    }
}

/// A statement, and the rows that it leaves in `log`; `ERROR` if it fails.
const SCRIPT: &str = "
INSERT INTO t (v, u) VALUES (1, 1) -> before - | 0 1 2 1 then; after - | 1 1 2 1 then
INSERT INTO t (v, u) VALUES (NULL, 2) -> before - | 0 NULL NULL 2 then; after - | 2 7 14 2 then
INSERT INTO t (v, u) VALUES (2, 3), (NULL, 4) -> before - | 0 2 4 3 then; after - | 3 2 4 3 then; before - | 0 NULL NULL 4 then; after - | 4 7 14 4 then
INSERT INTO t (v) VALUES (50) -> ERROR 4025
INSERT INTO vt (v) VALUES (40) -> ERROR 1369
INSERT IGNORE INTO vt (v) VALUES (40), (3) -> before - | 0 40 80 NULL then; before - | 0 3 6 NULL then; after - | 5 3 6 NULL then
INSERT IGNORE INTO t (id, v) VALUES (1, 9), (20, 50) -> before - | 1 9 18 NULL then; before - | 20 50 100 NULL then
INSERT INTO t (id, v) VALUES (1, 9) ON DUPLICATE KEY UPDATE v = 4 -> before - | 1 9 18 NULL then; before 1 1 2 1 then | 1 4 8 1 now; after 1 1 2 1 then | 1 4 8 1 now
INSERT INTO t (id, v) VALUES (1, 9) ON DUPLICATE KEY UPDATE v = 4 -> before - | 1 9 18 NULL then; before 1 4 8 1 now | 1 4 8 1 now; after 1 4 8 1 now | 1 4 8 1 now
INSERT INTO t (id, v) VALUES (1, 9) ON DUPLICATE KEY UPDATE v = NULL -> before - | 1 9 18 NULL then; before 1 4 8 1 now | 1 NULL NULL 1 now; after 1 4 8 1 now | 1 7 14 1 now
INSERT INTO t (id, v) VALUES (1, 9) ON DUPLICATE KEY UPDATE v = 50 -> ERROR 4025
INSERT INTO t (id, v) SELECT 30, 5 UNION SELECT 31, NULL -> before - | 30 5 10 NULL then; after - | 30 5 10 NULL then; before - | 31 NULL NULL NULL then; after - | 31 7 14 NULL then
REPLACE INTO t (id, v, u) VALUES (1, 8, 3) -> before - | 1 8 16 3 then; before 1 7 14 1 now | -; after 1 7 14 1 now | -; before 3 2 4 3 then | -; after 3 2 4 3 then | -; after - | 1 8 16 3 then
UPDATE t SET v = v WHERE id = 1 -> before 1 8 16 3 then | 1 8 16 3 now; after 1 8 16 3 then | 1 8 16 3 now
SELECT YEAR(ts) FROM t WHERE id = 1 -> 
UPDATE t SET v = 40 WHERE id = 1 -> before 1 8 16 3 then | 1 40 80 3 now; after 1 8 16 3 then | 1 60 120 3 now
UPDATE t SET v = NULL WHERE id = 1 -> before 1 60 120 3 now | 1 NULL NULL 3 now; after 1 60 120 3 now | 1 7 14 3 now
UPDATE t SET v = 50 WHERE id = 1 -> ERROR 4025
UPDATE IGNORE t SET v = 50 WHERE id = 1 -> before 1 7 14 3 now | 1 50 100 3 now
UPDATE vt SET v = 40 WHERE id = 1 -> ERROR 1369
UPDATE vt SET id = id + 100 WHERE id < 5 -> before 1 7 14 3 now | 101 7 14 3 now; after 1 7 14 3 now | 101 7 14 3 now; before 2 7 14 2 then | 102 7 14 2 now; after 2 7 14 2 then | 102 7 14 2 now; before 4 7 14 4 then | 104 7 14 4 now; after 4 7 14 4 then | 104 7 14 4 now
UPDATE t JOIN p ON p.id = 1 SET t.p = 1, t.v = 6 WHERE t.id = 30 -> before 30 5 10 NULL then | 30 6 12 NULL now; after 30 5 10 NULL then | 30 6 12 NULL now
UPDATE t SET u = 90 WHERE id = 30 -> before 30 6 12 NULL now | 30 6 12 90 now; after 30 6 12 NULL now | 30 6 12 90 now
DELETE FROM t WHERE id = 31 -> before 31 7 14 NULL then | -; after 31 7 14 NULL then | -
DELETE t FROM t JOIN p ON p.id = 2 WHERE t.v = 3 -> before 5 3 6 NULL then | -; after 5 3 6 NULL then | -
DELETE FROM p WHERE id = 1 -> 
";

const SETUP: [&str; 5] = [
    "CREATE TABLE log (n INT PRIMARY KEY, txt VARCHAR(200))",
    "CREATE TABLE p (id INT PRIMARY KEY)",
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL CHECK (v < 100), g INT AS (v * 2),
     u INT UNIQUE, p INT,
     ts TIMESTAMP NOT NULL DEFAULT '2001-01-01 00:00:00' ON UPDATE CURRENT_TIMESTAMP,
     FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
    "CREATE VIEW vt AS SELECT id, v, g, u FROM t WHERE g < 100 WITH CHECK OPTION",
    "INSERT INTO p VALUES (1), (2)",
];

#[test]
fn hooks_run_around_each_change_of_a_row() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    assert!(server.db.row_hooks.set(Arc::new(Hooks(Arc::new(Logging(AtomicI64::new(1)))))).is_ok());
    let mut client = server.connect();
    SETUP.iter().for_each(|sql| client.ok(sql));
    for line in SCRIPT.lines().filter(|line| !line.is_empty()) {
        let (sql, expected) = line.split_once(" ->").expect("an arrow");
        let answer = client.run(sql);
        // What hooks of a failed statement have written is undone with the statement.
        let log = client.run("SELECT txt FROM log ORDER BY n");
        let log = log.lines().skip(1).collect::<Vec<_>>().join("; ");
        let failed =
            answer.starts_with("ERROR").then(|| answer.split(' ').take(2).collect::<Vec<_>>().join(" "));
        let found = match failed {
            Some(error) if log.is_empty() => error,
            Some(error) => format!("{error} {log}"),
            None => log,
        };
        assert_eq!(found, expected.trim(), "{sql}: {answer}");
        client.ok("DELETE FROM log");
    }
    // A generated column is computed before the hooks, which see it, and after them.
    client.ok("ALTER TABLE t MODIFY g TINYINT AS (v * 2), ADD KEY (g)");
    client.ok("SET sql_mode = ''");
    let answer = client.run("UPDATE t SET v = 90 WHERE id = 104");
    assert_eq!(answer.matches("Out of range value for column 'g'").count(), 2, "{answer}");
    client.ok("UPDATE t SET v = 7 WHERE id = 104");
    // An unchanged row that ON DUPLICATE KEY UPDATE finds is returned as it is stored.
    client.ok("UPDATE t SET ts = '2001-01-01 00:00:00' WHERE id = 104");
    let returned =
        client.run("INSERT INTO t (id, v) VALUES (104, 7) ON DUPLICATE KEY UPDATE v = 7 RETURNING YEAR(ts)");
    assert_eq!(returned, "YEAR(ts)\n2001\n");
    client.ok("DELETE FROM log");
    let rows = client.run("SELECT id, v, g, u, p FROM t ORDER BY id");
    assert_eq!(
        rows,
        "id | v | g | u | p\n101 | 7 | 14 | 3 | NULL\n102 | 7 | 14 | 2 | NULL\n104 | 7 | 14 | 4 | NULL\n"
    );
}
