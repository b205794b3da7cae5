//! Which accounts see which stored programs, and the bodies of which. Every account runs every query on
//! Cohort and on MariaDB.

use mysql::prelude::Queryable;

use crate::{Account, Kind, Side, answer, cohort_options, servers};

/// The programs, in two schemas. Their times are fixed.
const PROGRAMS: &[&str] = &[
    "DROP DATABASE d",
    "CREATE DATABASE d CHARACTER SET utf8mb4",
    "CREATE DATABASE e CHARACTER SET utf8mb4",
    "CREATE TABLE d.t (a INT, b INT)",
    "CREATE TABLE d.u (a INT)",
    "CREATE TABLE e.t (a INT)",
    "SET GLOBAL server_id = 7",
    "SET NAMES utf8mb4",
    "SET timestamp = 1600000000",
    "CREATE USER owner@localhost",
    "CREATE PROCEDURE d.pr() SELECT 1",
    "CREATE PROCEDURE d.pr2(x INT) SELECT 2",
    "CREATE FUNCTION d.fu(a INT) RETURNS INT DETERMINISTIC NO SQL RETURN 1",
    "CREATE PROCEDURE e.pr() SELECT 3",
    "CREATE DEFINER = owner@localhost PROCEDURE d.owned() SELECT 4",
    "CREATE TRIGGER d.tr BEFORE INSERT ON d.t FOR EACH ROW SET NEW.a = 1",
    "CREATE TRIGGER d.tu BEFORE INSERT ON d.u FOR EACH ROW SET NEW.a = 1",
    "CREATE TRIGGER e.tr BEFORE INSERT ON e.t FOR EACH ROW SET NEW.a = 1",
    "CREATE EVENT d.ev ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 00:00:00' DO SELECT 1",
    "CREATE EVENT e.ev ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 00:00:00' DO SELECT 1",
];

/// Accounts and what they are granted.
const ACCOUNTS: &[(&str, &str)] = &[
    ("none", ""),
    ("owner", "USAGE ON *.*"),
    ("select_d", "SELECT ON d.*"),
    ("execute_d", "EXECUTE ON d.*"),
    ("execute", "EXECUTE ON *.*"),
    ("create_routine_d", "CREATE ROUTINE ON d.*"),
    ("create_routine", "CREATE ROUTINE ON *.*"),
    ("alter_routine_d", "ALTER ROUTINE ON d.*"),
    ("alter_routine", "ALTER ROUTINE ON *.*"),
    ("trigger_d", "TRIGGER ON d.*"),
    ("trigger", "TRIGGER ON *.*"),
    ("trigger_t", "TRIGGER ON d.t"),
    ("insert_t", "INSERT ON d.t"),
    ("insert_column", "INSERT (a) ON d.t"),
    ("update_d", "UPDATE ON d.*"),
    ("delete", "DELETE ON *.*"),
    ("trigger_select_t", "TRIGGER, SELECT ON d.t"),
    ("select_t", "SELECT ON d.t"),
    ("event_d", "EVENT ON d.*"),
    ("event", "EVENT ON *.*"),
    ("select_mysql", "SELECT ON mysql.*"),
    ("select_proc", "SELECT ON mysql.proc"),
    ("select_event", "SELECT ON mysql.event"),
    ("select", "SELECT ON *.*"),
    ("super", "SUPER ON *.*"),
    ("all_d", "ALL ON d.*"),
    ("create_view_d", "CREATE VIEW ON d.*"),
    ("process", "PROCESS ON *.*"),
    ("show_databases", "SHOW DATABASES ON *.*"),
];

const QUERIES: &[&str] = &[
    "SHOW CREATE PROCEDURE d.pr",
    "SHOW CREATE FUNCTION d.fu",
    "SHOW CREATE PROCEDURE e.pr",
    "SHOW CREATE PROCEDURE d.owned",
    "SHOW CREATE PROCEDURE d.missing",
    "SHOW CREATE PROCEDURE missing.missing",
    "SHOW PROCEDURE STATUS WHERE Db IN ('d', 'e')",
    "SHOW FUNCTION STATUS WHERE Db IN ('d', 'e')",
    "SHOW PROCEDURE CODE d.pr",
    "SHOW TRIGGERS FROM d",
    "SHOW TRIGGERS FROM e",
    "SHOW TRIGGERS FROM missing",
    "SHOW CREATE TRIGGER d.tr",
    "SHOW CREATE TRIGGER d.tu",
    "SHOW CREATE TRIGGER e.tr",
    "SHOW CREATE TRIGGER d.missing",
    "SHOW CREATE TRIGGER missing.missing",
    "SHOW EVENTS",
    "SHOW EVENTS FROM d",
    "SHOW EVENTS FROM e",
    "SHOW EVENTS FROM missing",
    "SHOW EVENTS FROM information_schema",
    "SHOW CREATE EVENT d.ev",
    "SHOW CREATE EVENT e.ev",
    "SHOW CREATE EVENT d.missing",
    "SHOW CREATE EVENT missing.missing",
    "SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES \
     WHERE ROUTINE_SCHEMA IN ('d', 'e') ORDER BY 1, 2",
    "SELECT SPECIFIC_SCHEMA, SPECIFIC_NAME, PARAMETER_NAME FROM information_schema.PARAMETERS \
     WHERE SPECIFIC_SCHEMA IN ('d', 'e') ORDER BY 1, 2, 3",
    "SELECT TRIGGER_SCHEMA, TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS \
     WHERE TRIGGER_SCHEMA IN ('d', 'e') ORDER BY 1, 2",
    "SELECT EVENT_SCHEMA, EVENT_NAME, EVENT_DEFINITION FROM information_schema.EVENTS \
     WHERE EVENT_SCHEMA IN ('d', 'e') ORDER BY 1, 2",
    "SELECT db, name FROM mysql.proc WHERE db IN ('d', 'e')",
    "SELECT db, name, body FROM mysql.proc WHERE db IN ('d', 'e')",
    "SELECT db, name FROM mysql.event WHERE db IN ('d', 'e')",
    "SELECT COUNT(*) FROM mysql.procs_priv WHERE db = 'missing'",
];

#[test]
fn accounts_see_the_programs_that_mariadb_shows_them() {
    let (server, mariadb) = servers();
    let mut sides = [Side::new(cohort_options(&server)), Side::new(mariadb.options())];
    sides[1].forget_public();
    for side in &mut sides {
        side.root.query_drop("DROP DATABASE e").expect("it is there");
        for sql in PROGRAMS {
            side.root.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
    let mut differing = Vec::new();
    for (name, grants) in ACCOUNTS {
        let grants = (!grants.is_empty()).then(|| format!("GRANT {grants} TO `{name}`@localhost"));
        let account = Account { name, grants: grants.into_iter().collect() };
        let mut clients = sides.each_mut().map(|side| {
            side.make(&account);
            side.enter(&account)
        });
        for sql in QUERIES {
            let [ours, theirs] = clients.each_mut().map(|client| answer(client, Kind::Rows, sql));
            if ours != theirs {
                differing.push(format!("{name}: {sql}\n  {ours:?}\n  MariaDB: {theirs:?}"));
            }
        }
    }
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
}
