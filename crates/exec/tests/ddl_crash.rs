//! DDL is atomic (I2): a crash at every k-th operation of a script leaves catalog, binary log and data in a
//! state after one of its statements, and no acknowledged statement is lost.

mod world;

use std::path::Path;
use std::sync::Arc;

use cohort_binlog::event::Event;
use cohort_vfs::{Fault, FaultFs, MemFs, SharedFs};
use world::Server;

/// Statements, each of which is one group of the binary log.
const SCRIPT: [&str; 48] = [
    "CREATE TABLE test.t (id INT PRIMARY KEY, k INT, c VARCHAR(20), KEY (k))",
    "INSERT INTO test.t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three')",
    "CREATE DATABASE d",
    "CREATE VIEW d.w AS SELECT id, k FROM test.t WHERE id < 3 WITH CHECK OPTION",
    "CREATE TABLE d.u LIKE test.t",
    "ALTER TABLE test.t ADD COLUMN e INT NOT NULL DEFAULT 7",
    "CREATE TABLE test.w (PRIMARY KEY (id)) SELECT id, c FROM test.t",
    "CREATE OR REPLACE TABLE test.w (n INT AUTO_INCREMENT PRIMARY KEY) SELECT id, e FROM test.t",
    "CREATE INDEX kc ON test.t (c, k)",
    "ALTER TABLE test.t MODIFY k BIGINT NOT NULL, ADD UNIQUE (e, id)",
    "INSERT INTO test.t VALUES (4, 40, 'four', 8)",
    "ALTER TABLE test.t DROP PRIMARY KEY, DROP INDEX kc",
    "RENAME TABLE test.t TO d.v, d.u TO test.t",
    "INSERT INTO test.t VALUES (9, 9, 'nine')",
    "ALTER TABLE test.t ADD COLUMN f INT DEFAULT 6 FIRST, DROP COLUMN c, ALGORITHM=INSTANT",
    "ALTER VIEW d.w AS SELECT id FROM test.t",
    "RENAME TABLE d.w TO d.ww",
    "CREATE USER u1@localhost",
    "GRANT SELECT ON d.* TO u1@localhost",
    "CREATE PROCEDURE d.p(a INT) COMMENT 'one' SELECT a",
    "CREATE FUNCTION d.f(a INT) RETURNS INT DETERMINISTIC RETURN a",
    "GRANT EXECUTE ON PROCEDURE d.p TO u1@localhost",
    "CREATE OR REPLACE PROCEDURE d.p(b INT) SELECT b",
    "ALTER FUNCTION d.f COMMENT 'c'",
    "CREATE TRIGGER d.first AFTER DELETE ON d.v FOR EACH ROW SET @a = 1",
    "CREATE TRIGGER d.before AFTER DELETE ON d.v FOR EACH ROW PRECEDES first SET @a = 1",
    // The rows of a trigger or function and of its statement are one group.
    "CREATE TABLE test.log (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(30))",
    "CREATE TRIGGER test.logged AFTER INSERT ON test.t FOR EACH ROW INSERT INTO test.log (what) VALUES (NEW.k)",
    "CREATE TRIGGER test.counted BEFORE UPDATE ON test.t FOR EACH ROW SET NEW.k = OLD.k + 1",
    "INSERT INTO test.t (id, k) VALUES (20, 1), (21, 2), (22, 3)",
    "CREATE FUNCTION d.g(n INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO test.log (what) \
     VALUES ('first'); INSERT INTO test.log (what) VALUES (n); RETURN n; END",
    "UPDATE test.t SET f = d.g(id) WHERE id > 20",
    "DO d.g(7)",
    "REPLACE INTO test.t (id, k) VALUES (21, 5)",
    "CREATE AGGREGATE FUNCTION d.a(x INT) RETURNS INT DETERMINISTIC BEGIN FETCH GROUP NEXT ROW; RETURN x; END",
    "CREATE OR REPLACE TRIGGER test.logged AFTER INSERT ON test.t FOR EACH ROW INSERT INTO test.log (what) VALUES \
     ('other')",
    "DROP FUNCTION d.g",
    "RENAME TABLE test.log TO d.log",
    "CREATE EVENT d.e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' DO SELECT 1",
    "ALTER EVENT d.e RENAME TO test.e2 DISABLE",
    "RENAME TABLE d.v TO d.v2",
    "DROP TRIGGER d.first",
    "DROP PROCEDURE d.p",
    "TRUNCATE TABLE test.t",
    "DROP TABLE d.v2",
    "DROP VIEW d.ww",
    "DROP DATABASE d",
    "ALTER TABLE test.t COMMENT 'last'",
];

/// Returns all state that the statements can change, as text.
fn dump(server: &mut Server) -> String {
    let mut client = server.connect();
    let catalog = server.db.catalog();
    let mut text = String::new();
    for schema in catalog.schemas.values() {
        text += &client.run(&format!("SHOW CREATE DATABASE `{}`", schema.name));
        for table in schema.tables.keys() {
            let name = format!("`{}`.`{table}`", schema.name);
            for statement in [
                format!("SHOW CREATE TABLE {name}"),
                format!("SELECT * FROM {name} ORDER BY id"),
                format!("CHECK TABLE {name}"),
            ] {
                text += &client.run(&statement);
            }
        }
        for view in schema.views.keys() {
            text += &client.run(&format!("SHOW CREATE VIEW `{}`.`{view}`", schema.name));
            text += &client.run(&format!("SELECT * FROM `{}`.`{view}` ORDER BY id", schema.name));
        }
        for routine in schema.procedures.values().chain(schema.functions.values()) {
            let (kind, name) = (routine.kind.name(), &routine.name);
            text += &client.run(&format!("SHOW CREATE {kind} `{}`.`{name}`", schema.name));
        }
        for trigger in schema.tables.values().flat_map(|table| &table.triggers) {
            text += &client.run(&format!("SHOW CREATE TRIGGER `{}`.`{}`", schema.name, trigger.name));
        }
        for event in schema.events.values() {
            text += &client.run(&format!("SHOW CREATE EVENT `{}`.`{}`", schema.name, event.name));
        }
    }
    for (user, host) in catalog.accounts.keys() {
        text += &client.run(&format!("SHOW GRANTS FOR {user}@{host}"));
    }
    text
}

fn groups(server: &Server, disk: &SharedFs) -> usize {
    let mut groups = 0;
    for path in server.binlog() {
        let mut reader = cohort_binlog::EventReader::open(disk, Path::new(&path)).expect("opens");
        while let Some(raw) = reader.next_event().expect("sound") {
            groups += usize::from(matches!(reader.decode(&raw), Ok(Event::Gtid(_))));
        }
    }
    groups
}

/// Runs the script from a statement on. Returns the number of acknowledged statements.
fn run_from(server: &mut Server, from: usize) -> usize {
    let mut client = server.connect();
    for (n, statement) in SCRIPT.iter().enumerate().skip(from) {
        if client.run(statement).contains("ERROR") {
            return n;
        }
        // An occasional checkpoint, so that recovery also starts from a catalog file, not only from the log.
        if n % 5 == 4 && server.db.commit.checkpoint().is_err() {
            return n + 1;
        }
    }
    SCRIPT.len()
}

fn check_recovery(left: MemFs, acknowledged: usize, states: &[String], what: &str) {
    let disk: SharedFs = Arc::new(left);
    let mut server = Server::open(&disk).unwrap_or_else(|e| panic!("{what}: does not recover: {e}"));
    let done = groups(&server, &disk);
    assert!(done >= acknowledged, "{what}: {acknowledged} acknowledged, {done} in the binary log");
    assert_eq!(dump(&mut server), states[done], "{what}: not as after statement {done}");
    let catalog = server.db.catalog();
    let tables = catalog.schemas.values().flat_map(|s| s.tables.values());
    let known: Vec<_> = tables.flat_map(|t| t.indexes.iter().map(|i| i.id)).collect();
    for engine in &server.db.engines {
        let spaces = engine.indexes().expect("in memory");
        assert!(spaces.iter().all(|id| id.0 < 16 || known.contains(id)), "{what}: orphans in {spaces:?}");
    }
    assert_eq!(run_from(&mut server, done), SCRIPT.len(), "{what}: the rest of the script fails");
    assert_eq!(dump(&mut server), states[SCRIPT.len()], "{what}: the script does not end as it should");
}

#[test]
fn a_crash_at_every_operation_leaves_whole_statements() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("opens");
    let mut states = vec![dump(&mut server)];
    let mut client = server.connect();
    for statement in SCRIPT {
        client.ok(statement);
        states.push(dump(&mut server));
    }
    assert_eq!(groups(&server, &disk), SCRIPT.len());
    let mut crashes = 0;
    for at in 0.. {
        let memory = MemFs::new();
        let faults = FaultFs::new(Arc::new(memory.clone()));
        faults.set(Fault::CrashAt(at));
        let disk: SharedFs = Arc::new(faults.clone());
        let acknowledged = Server::open(&disk).map_or(0, |mut server| run_from(&mut server, 0));
        if !faults.crashed() {
            break;
        }
        crashes += 1;
        check_recovery(
            memory.crash_clone(at),
            acknowledged,
            &states,
            &format!("operation {at}, power failure"),
        );
        check_recovery(memory.kill_clone(), acknowledged, &states, &format!("operation {at}, kill"));
    }
    assert!(crashes > 50, "only {crashes} operations");
}
