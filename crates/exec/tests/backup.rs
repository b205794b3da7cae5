//! BACKUP STAGE and BACKUP LOCK: the locks that they hold, the statements that these block, and error
//! messages as in MariaDB 10.11.

mod world;

use world::{Client, Server};

/// Creates a table and two connections with a metadata lock timeout of one second.
fn two_sessions() -> (Server, Client, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let (mut a, mut b) = (server.connect(), server.connect());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    a.ok("INSERT INTO t VALUES (1, 0), (2, 0)");
    for session in [&mut a, &mut b] {
        session.ok("SET lock_wait_timeout = 1");
    }
    (server, a, b)
}

#[track_caller]
fn refused(client: &mut Client, statement: &str, error: &str) {
    let answer = client.run(statement);
    assert!(answer.starts_with("ERROR ") && answer.contains(error), "{statement}: {answer}");
}

#[test]
fn stages_come_in_their_order() {
    let (_server, mut a, _b) = two_sessions();
    for stage in ["FLUSH", "BLOCK_DDL", "BLOCK_COMMIT", "END"] {
        refused(
            &mut a,
            &format!("BACKUP STAGE {stage}"),
            "You must start backup with \"BACKUP STAGE START\"",
        );
    }
    refused(
        &mut a,
        "BACKUP STAGE nix",
        "4149 (HY000): Unknown backup stage: 'nix'. Stage should be one of START",
    );
    refused(&mut a, "BACKUP STAGE LOCK", "1064");
    let stages = ["START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"];
    for (n, stage) in stages.iter().enumerate() {
        a.ok(&format!("BACKUP STAGE {stage}"));
        for before in &stages[..=n] {
            let error = format!(
                "4147 (HY000): Backup stage '{before}' is same or before current backup stage '{stage}'"
            );
            refused(&mut a, &format!("BACKUP STAGE {before}"), &error);
        }
    }
    a.ok("BACKUP STAGE END");
    for left_out in [&stages[..1], &stages[..2], &["START", "BLOCK_COMMIT"]] {
        left_out.iter().for_each(|stage| a.ok(&format!("BACKUP STAGE {stage}")));
        a.ok("BACKUP STAGE END");
    }
    a.ok("INSERT INTO t VALUES (3, 0)");
    a.ok("ALTER TABLE t ADD w INT");
}

#[test]
fn the_session_itself_changes_nothing() {
    let (_server, mut a, _b) = two_sessions();
    a.ok("BEGIN");
    a.ok("UPDATE t SET v = 1 WHERE id = 1");
    a.ok("BACKUP STAGE START");
    a.ok("ROLLBACK");
    assert_eq!(a.run("SELECT v FROM t WHERE id = 1"), "v\n1\n", "what was before is committed");
    for statement in [
        "INSERT INTO t VALUES (4, 4)",
        "UPDATE t SET v = 2",
        "DELETE FROM t",
        "TRUNCATE TABLE t",
        "DROP TABLE t",
        "CREATE TABLE u (a INT)",
        "CREATE USER u",
        "LOCK TABLES t READ",
        "LOCK TABLES t WRITE",
        "FLUSH TABLES WITH READ LOCK",
        "FLUSH TABLES t WITH READ LOCK",
    ] {
        refused(
            &mut a,
            statement,
            "4145 (HY000): Can't execute the command as you have a BACKUP STAGE active",
        );
    }
    refused(&mut a, "SET GLOBAL read_only = 1", "1192");
    a.ok("CREATE TEMPORARY TABLE own (a INT)");
    a.ok("INSERT INTO own VALUES (1)");
    a.ok("FLUSH TABLES");
    a.ok("UNLOCK TABLES");
    refused(&mut a, "BACKUP STAGE START", "4147");
    a.ok("BACKUP STAGE END");
    a.ok("LOCK TABLES t READ");
    refused(&mut a, "BACKUP STAGE START", "1192");
    a.ok("UNLOCK TABLES");
    a.ok("FLUSH TABLES WITH READ LOCK");
    refused(&mut a, "BACKUP STAGE START", "1223");
    a.ok("UNLOCK TABLES");
    a.ok("INSERT INTO t VALUES (4, 4)");
}

#[test]
fn others_wait_as_far_as_the_stage_says() {
    let (_server, mut a, mut b) = two_sessions();
    for stage in ["START", "FLUSH"] {
        a.ok(&format!("BACKUP STAGE {stage}"));
        refused(&mut b, "BACKUP STAGE START", "1205");
        refused(&mut b, "BACKUP STAGE FLUSH", "4146");
        b.ok("UPDATE t SET v = v + 1");
        b.ok(&format!("CREATE TABLE u_{stage} (a INT)"));
    }
    a.ok("BACKUP STAGE BLOCK_DDL");
    let definitions = [
        "CREATE TABLE w (a INT)",
        "DROP TABLE u_START",
        "ALTER TABLE t ADD w INT",
        "CREATE VIEW seen AS SELECT 1",
        "CREATE USER u",
        "LOCK TABLES t WRITE",
    ];
    for statement in definitions {
        refused(&mut b, statement, "1205");
    }
    b.ok("LOCK TABLES t READ");
    b.ok("UNLOCK TABLES");
    b.ok("UPDATE t SET v = v + 1");
    a.ok("BACKUP STAGE BLOCK_COMMIT");
    refused(&mut b, "CREATE TABLE w (a INT)", "1205");
    b.ok("BEGIN");
    b.ok("UPDATE t SET v = 100 WHERE id = 1");
    refused(&mut b, "COMMIT", "1205");
    assert_eq!(a.run("SELECT MAX(v) FROM t"), "MAX(v)\n3\n");
    refused(&mut b, "INSERT INTO t VALUES (9, 9)", "1205");
    a.ok("BACKUP STAGE END");
    definitions.iter().for_each(|statement| b.ok(statement));
}

#[test]
fn a_definition_that_waits_does_not_hold_up_the_backup() {
    let (mut server, mut a, mut b) = two_sessions();
    b.ok("SET lock_wait_timeout = 60");
    a.ok("BACKUP STAGE START");
    a.ok("BACKUP STAGE BLOCK_DDL");
    let waiting = std::thread::spawn(move || b.ok("ALTER TABLE t ADD w INT"));
    let mut watcher = server.connect();
    let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'Waiting for backup lock'";
    while !watcher.run(sql).ends_with("\n1\n") {
        std::thread::yield_now();
    }
    a.ok("BACKUP STAGE BLOCK_COMMIT");
    assert!(!waiting.is_finished());
    a.ok("BACKUP STAGE END");
    waiting.join().expect("it goes on");
}

#[test]
fn a_backup_ends_with_its_session() {
    let (mut server, a, mut b) = two_sessions();
    let mut holder = a;
    for end in ["the connection", "a reset"] {
        holder.ok("BACKUP STAGE START");
        holder.ok("BACKUP STAGE BLOCK_COMMIT");
        refused(&mut b, "CREATE TABLE w (a INT)", "1205");
        match end {
            "a reset" => holder.session.reset(),
            _ => {
                drop(holder);
                holder = server.connect();
                holder.ok("SET lock_wait_timeout = 1");
            }
        }
        b.ok("CREATE OR REPLACE TABLE w (a INT)");
        b.ok("BACKUP STAGE START");
        b.ok("BACKUP STAGE END");
    }
}

#[test]
fn a_table_may_be_kept_as_it_is() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("BACKUP LOCK t");
    b.ok("UPDATE t SET v = 7");
    refused(&mut b, "ALTER TABLE t ADD w INT", "1205");
    refused(&mut a, "BACKUP STAGE START", "1223");
    refused(&mut a, "CREATE TABLE w (a INT)", "1223");
    refused(&mut a, "LOCK TABLES t READ", "1192");
    refused(&mut a, "FLUSH TABLES t WITH READ LOCK", "1192");
    // Replaces the lock; the new table need not exist.
    a.ok("BACKUP LOCK nodb.nix");
    b.ok("ALTER TABLE t ADD w INT");
    a.ok("BACKUP UNLOCK");
    a.ok("BACKUP UNLOCK");
    a.ok("LOCK TABLES t READ");
    refused(&mut a, "BACKUP LOCK t", "1192");
}
