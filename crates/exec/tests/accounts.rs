//! Accounts: privileges per command, visibility of account changes, and what other accounts can see.

mod world;

use std::sync::Arc;

use cohort_exec::ConnectionInfo;
use world::shut::Shut;
use world::{Client, Server};

fn server() -> Server {
    Server::open(&world::disk()).expect("an empty disk opens")
}

#[track_caller]
fn refused(client: &mut Client, statement: &str, code: &str) {
    let answer = client.run(statement);
    assert!(answer.starts_with(&format!("ERROR {code}")), "{statement}: {answer}");
}

#[test]
fn a_session_that_changes_its_user_keeps_no_right_of_the_former_one() {
    let mut server = server();
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    client.ok("CREATE USER u@localhost");
    client.ok("SELECT * FROM t");
    client.ok("INSERT INTO t VALUES (1)");
    let known = client.session.process().id();
    let info = ConnectionInfo {
        id: known,
        user: "u".to_owned(),
        host: "localhost".to_owned(),
        account: ("u".to_owned(), "localhost".to_owned()),
        schema: None,
        collation: cohort_types::Collation::UTF8MB4_GENERAL_CI,
        multi_statements: false,
        found_rows: false,
        encryption: None,
        is_local: true,
    };
    client.session.change_user(info.clone()).expect("no database is asked for");
    refused(&mut client, "SELECT * FROM test.t", "1142");
    refused(&mut client, "INSERT INTO test.t VALUES (2)", "1142");
    refused(&mut client, "USE test", "1044");
    let refusal = client.session.field_list("t", "").expect_err("no database is the current one");
    assert_eq!(refusal.code.number(), 1046);
    let into_test = ConnectionInfo { schema: Some("test".to_owned()), ..info };
    let refusal = client.session.change_user(into_test.clone()).expect_err("nor is the database");
    assert_eq!(refusal.code.number(), 1044);
    let mut root = server.connect();
    root.ok("CREATE TABLE other (id INT PRIMARY KEY)");
    root.ok("GRANT SELECT ON test.other TO u@localhost");
    client.session.change_user(into_test).expect("something of the database may be seen");
    let refusal =
        client.session.field_list("t", "").expect_err("a user without a privilege does not see the columns");
    assert_eq!(refusal.code.number(), 1142);
}

#[test]
fn a_plan_that_is_run_again_obeys_a_revoke() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE TABLE t (id INT PRIMARY KEY, b INT)");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT SELECT (id), UPDATE (b) ON test.t TO u@localhost");
    let mut user = server.connect_as("u", "localhost");
    for _ in 0..2 {
        user.ok("SELECT id FROM test.t");
        user.ok("UPDATE test.t SET b = 1 WHERE id = 1");
    }
    let id = user.session.prepare(b"SELECT id FROM test.t").expect("it may").id;
    refused(&mut user, "SELECT * FROM test.t", "1142");
    refused(&mut user, "SELECT id, b FROM test.t", "1143");
    refused(&mut user, "SELECT COUNT(b) FROM test.t", "1143");
    refused(&mut user, "UPDATE test.t SET id = 1", "1143");
    refused(&mut user, "UPDATE test.t SET b = b", "1143");
    refused(&mut user, "DELETE FROM test.t", "1142");
    let columns = "SELECT column_name, privileges FROM information_schema.columns WHERE table_name = 't'";
    assert_eq!(user.run(columns), "column_name | privileges\nid | select\nb | update\n");
    assert_eq!(user.run("SHOW TABLES FROM test"), "Tables_in_test\nt\n");
    root.ok("REVOKE SELECT (id) ON test.t FROM u@localhost");
    refused(&mut user, "SELECT id FROM test.t", "1142");
    refused(&mut user, "UPDATE test.t SET b = 1 WHERE id = 1", "1143");
    assert!(user.execute(id, &[]).starts_with("ERROR 1142"));
    user.ok("UPDATE test.t SET b = 1");
    root.ok("DROP USER u@localhost");
    refused(&mut user, "UPDATE test.t SET b = 1", "1142");
}

/// A privilege on one column of a virtual table gives no access to other columns.
#[test]
fn a_grant_on_a_column_of_an_account_table_opens_that_column_alone() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost IDENTIFIED BY 'x'");
    root.ok("GRANT SELECT (User) ON mysql.user TO u@localhost");
    root.ok("GRANT SELECT (Host) ON mysql.global_priv TO u@localhost");
    let mut user = server.connect_as("u", "localhost");
    user.ok("SELECT User FROM mysql.user");
    user.ok("SELECT Host FROM mysql.global_priv");
    for text in ["SELECT User, authentication_string FROM mysql.user", "SELECT Priv FROM mysql.global_priv"] {
        root.ok(text);
        refused(&mut user, text, "1143");
    }
    refused(&mut user, "SELECT * FROM mysql.user", "1142");
    refused(&mut user, "SELECT (SELECT Priv FROM mysql.global_priv LIMIT 1)", "1143");
    refused(&mut user, "SELECT User FROM mysql.user WHERE authentication_string LIKE '*%'", "1143");
    root.ok("GRANT SELECT ON mysql.user TO u@localhost");
    user.ok("SELECT User, authentication_string FROM mysql.user");
}

/// A statement with a cached plan of root, as text and prepared, run by an account after each change of its
/// privileges.
#[test]
fn a_plan_that_is_kept_obeys_every_change_of_rights() {
    let mut server = server();
    let mut root = server.connect();
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, b INT)",
        "INSERT INTO t VALUES (1, 2)",
        "CREATE VIEW v AS SELECT id FROM t",
        "CREATE SEQUENCE s",
        "CREATE ROLE reading, inner_role",
        "GRANT SELECT ON test.* TO inner_role",
        "GRANT SELECT ON mysql.* TO inner_role",
        "GRANT SELECT, INSERT ON test.s TO inner_role",
        "GRANT SELECT ON performance_schema.* TO inner_role",
        "GRANT inner_role TO reading",
    ] {
        root.ok(sql);
    }
    let queries = [
        "SELECT b FROM test.t",
        "SELECT * FROM test.v",
        "SELECT (SELECT MAX(b) FROM test.t)",
        "SELECT PREVIOUS VALUE FOR test.s",
        "SELECT user, authentication_string FROM mysql.user",
        "SELECT COUNT(*) FROM mysql.global_priv",
        "SELECT COUNT(*) FROM performance_schema.threads",
    ];
    // Statements run by root, or with `!` by the account itself, each with true if the account may read
    // afterwards.
    let steps: [(&str, bool); 15] = [
        ("GRANT reading TO u@localhost", false),
        ("!SET ROLE reading", true),
        ("!SET ROLE NONE", false),
        ("!SET ROLE reading", true),
        ("REVOKE inner_role FROM reading", false),
        ("GRANT inner_role TO reading", true),
        ("REVOKE reading FROM u@localhost", true),
        ("GRANT reading TO u@localhost", true),
        ("DROP ROLE inner_role", false),
        ("GRANT SELECT, INSERT ON *.* TO reading", true),
        ("DROP ROLE reading", false),
        ("GRANT ALL ON *.* TO u@localhost", true),
        ("RENAME USER u@localhost TO w@localhost", false),
        ("RENAME USER w@localhost TO u@localhost", true),
        ("DROP USER u@localhost", false),
    ];
    root.ok("CREATE USER u@localhost");
    let mut user = server.connect_as("u", "localhost");
    root.ok("GRANT ALL ON *.* TO u@localhost");
    let prepared: Vec<u32> =
        queries.iter().map(|sql| user.session.prepare(sql.as_bytes()).expect("it may").id).collect();
    root.ok("REVOKE ALL, GRANT OPTION FROM u@localhost");
    for (step, may_read) in steps {
        match step.strip_prefix('!') {
            Some(own) => user.ok(own),
            None => root.ok(step),
        }
        for (sql, id) in queries.iter().zip(&prepared) {
            root.ok(sql);
            for answer in [user.run(sql), user.execute(*id, &[])] {
                let is_refused = ["ERROR 1142", "ERROR 1143"].iter().any(|code| answer.starts_with(code));
                assert_eq!(is_refused, !may_read, "{step}: {sql}: {answer}");
            }
        }
    }
}

/// A definer's privileges apply to every reader of its view, including readers that use a cached plan.
#[test]
fn a_plan_of_a_view_obeys_what_its_definer_loses() {
    let mut server = server();
    let mut root = server.connect();
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "CREATE USER d@localhost, u@localhost",
        "CREATE ROLE r",
        "GRANT SELECT ON test.* TO d@localhost, r, u@localhost",
        "GRANT SELECT ON mysql.* TO d@localhost, r",
        "CREATE DEFINER=d@localhost VIEW of_user AS SELECT t.id, g.user FROM t, mysql.global_priv g",
        "CREATE DEFINER=r VIEW of_role AS SELECT t.id, g.user FROM t, mysql.global_priv g",
    ] {
        root.ok(sql);
    }
    let mut user = server.connect_as("u", "localhost");
    for (view, definer) in [("of_user", "d@localhost"), ("of_role", "r")] {
        let sql = format!("SELECT * FROM test.{view}");
        user.ok(&sql);
        root.ok(&format!("REVOKE SELECT ON mysql.* FROM {definer}"));
        refused(&mut user, &sql, "1356");
        refused(&mut root, &sql, "1356");
    }
}

#[test]
fn a_view_names_its_definer_as_the_current_user() {
    let mut server = server();
    let mut root = server.connect();
    for sql in [
        "CREATE USER d@localhost, u@localhost",
        "CREATE ROLE r",
        "GRANT r TO u@localhost",
        "GRANT SELECT, CREATE VIEW, DROP ON test.* TO d@localhost, r, u@localhost",
        "CREATE DEFINER=d@localhost VIEW of_user AS SELECT CURRENT_USER() u, CURRENT_ROLE() r, USER() c",
        "CREATE DEFINER=r VIEW of_role AS SELECT CURRENT_USER() u, CURRENT_ROLE() r, USER() c",
        "CREATE SQL SECURITY INVOKER VIEW of_reader AS SELECT CURRENT_USER() u, CURRENT_ROLE() r, USER() c",
        "CREATE DEFINER=d@localhost VIEW around AS SELECT x.u, y.u w FROM of_reader x, of_role y",
        "CREATE DEFINER=d@localhost SQL SECURITY INVOKER VIEW of_invoker AS SELECT x.u, CURRENT_USER() w FROM of_user x",
    ] {
        root.ok(sql);
    }
    let mut user = server.connect_as("u", "localhost");
    refused(&mut user, "CREATE OR REPLACE DEFINER=r VIEW test.mine AS SELECT 1", "1227");
    refused(&mut user, "CREATE OR REPLACE DEFINER=CURRENT_ROLE VIEW test.mine AS SELECT 1", "1446");
    user.ok("SET ROLE r");
    user.ok("CREATE OR REPLACE DEFINER=r VIEW test.mine AS SELECT 1");
    user.ok("CREATE OR REPLACE DEFINER=CURRENT_ROLE VIEW test.mine AS SELECT 1");
    let shown = root.run("SHOW CREATE VIEW test.mine");
    assert!(shown.contains("DEFINER=`r` SQL SECURITY DEFINER"), "{shown}");
    // Root's cached plan must give the same result to another reader.
    for (client, name, role) in [(&mut root, "root@localhost", "NULL"), (&mut user, "u@localhost", "r")] {
        for (view, expected) in [
            ("of_user", format!("u | r | c\nd@localhost | NULL | {name}\n")),
            ("of_role", format!("u | r | c\n@ | r | {name}\n")),
            ("of_reader", format!("u | r | c\n{name} | {role} | {name}\n")),
            ("around", "u | w\nd@localhost | @\n".to_owned()),
            ("of_invoker", format!("u | w\nd@localhost | {name}\n")),
        ] {
            assert_eq!(client.run(&format!("SELECT * FROM test.{view}")), expected, "{view}");
        }
    }
}

#[test]
fn the_new_account_s_role_counts_when_the_user_changes() {
    let mut server = server();
    let mut root = server.connect();
    for sql in [
        "CREATE DATABASE other",
        "CREATE ROLE r",
        "GRANT SELECT ON test.* TO r",
        "CREATE USER with_role@localhost, without@localhost",
        "GRANT r TO with_role@localhost",
        "SET DEFAULT ROLE r FOR with_role@localhost",
    ] {
        root.ok(sql);
    }
    let info = |user: &str, id| ConnectionInfo {
        id,
        user: user.to_owned(),
        host: "localhost".to_owned(),
        account: (user.to_owned(), "localhost".to_owned()),
        schema: Some("test".to_owned()),
        collation: cohort_types::Collation::UTF8MB4_GENERAL_CI,
        multi_statements: false,
        found_rows: false,
        encryption: None,
        is_local: true,
    };
    let mut client = server.connect_as("with_role", "localhost");
    let id = client.session.process().id();
    let refusal = client.session.change_user(info("without", id)).expect_err("it has no role");
    assert_eq!(refusal.code.number(), 1044);
    let mut client = server.connect_as("without", "localhost");
    let id = client.session.process().id();
    client.session.change_user(info("with_role", id)).expect("by its role it may");
    assert_eq!(client.run("SELECT CURRENT_ROLE()"), "CURRENT_ROLE()\nr\n");
}

#[test]
fn handlers_show_no_more_than_select_does() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE TABLE t (id INT PRIMARY KEY, b INT)");
    root.ok("INSERT INTO t VALUES (1, 2)");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT SELECT (id) ON test.t TO u@localhost");
    let mut user = server.connect_as("u", "localhost");
    user.ok("HANDLER test.t OPEN");
    refused(&mut user, "HANDLER t READ FIRST", "1143");
    root.ok("GRANT SELECT ON test.t TO u@localhost");
    assert_eq!(user.run("HANDLER t READ FIRST"), "id | b\n1 | 2\n");
    root.ok("REVOKE SELECT, SELECT (id) ON test.t FROM u@localhost");
    refused(&mut user, "HANDLER t READ FIRST", "1142");
}

#[test]
fn a_view_gives_no_lock_without_the_privilege() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE DATABASE other");
    root.ok("CREATE TABLE other.t (id INT PRIMARY KEY)");
    root.ok("CREATE SQL SECURITY INVOKER VIEW test.by_invoker AS SELECT id FROM other.t");
    root.ok("CREATE VIEW test.by_definer AS SELECT id FROM other.t");
    root.ok("CREATE SQL SECURITY INVOKER VIEW test.nested AS SELECT id FROM test.by_invoker");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT SELECT, LOCK TABLES ON test.* TO u@localhost");
    let mut user = server.connect_as("u", "localhost");
    for view in ["by_invoker", "nested"] {
        refused(&mut user, &format!("LOCK TABLES test.{view} WRITE"), "1356");
        refused(&mut user, &format!("LOCK TABLES test.{view} READ"), "1356");
    }
    user.ok("LOCK TABLES test.by_definer READ");
    user.ok("UNLOCK TABLES");
    root.ok("GRANT SELECT, LOCK TABLES ON other.* TO u@localhost");
    user.ok("LOCK TABLES test.nested READ");
    user.ok("UNLOCK TABLES");
}

#[test]
fn connections_of_a_user_are_killed_by_name() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost");
    root.ok("CREATE USER v@localhost");
    let [one, mut two, other] = ["u", "u", "v"].map(|user| server.connect_as(user, "localhost"));
    refused(&mut two, "KILL USER v", "1095");
    refused(&mut two, "KILL QUERY USER root@localhost", "1095");
    root.ok("KILL USER u@elsewhere");
    root.ok("KILL USER missing");
    assert!(!one.session.is_killed() && !two.session.is_killed());
    refused(&mut two, "KILL USER u@localhost", "1927");
    assert!(one.session.is_killed() && two.session.is_killed() && !other.session.is_killed());
}

#[test]
fn a_pattern_grant_gives_no_other_schemas() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost");
    root.ok("CREATE USER friend@localhost");
    root.ok("GRANT SELECT ON `a_`.* TO u@localhost WITH GRANT OPTION");
    let mut user = server.connect_as("u", "localhost");
    for wider in ["a%", "%", "a__", "_b"] {
        refused(&mut user, &format!("GRANT SELECT ON `{wider}`.* TO friend@localhost"), "1044");
        refused(&mut user, &format!("REVOKE SELECT ON `{wider}`.* FROM friend@localhost"), "1044");
    }
    for within in ["a_", "ab", "a\\_"] {
        user.ok(&format!("GRANT SELECT ON `{within}`.* TO friend@localhost"));
    }
}

#[test]
fn grants_on_tables_and_columns_are_shown_as_they_were_given() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE TABLE t (a INT, b INT, c INT)");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT SELECT (a, b), INSERT (b), UPDATE (a) ON t TO u@localhost");
    root.ok("GRANT DELETE, INDEX ON test.t TO u@localhost");
    let shown = |root: &mut Client| root.run("SHOW GRANTS FOR u@localhost");
    let usage = "Grants for u@localhost\nGRANT USAGE ON *.* TO `u`@`localhost`\n";
    let on_table = "GRANT SELECT (`a`, `b`), INSERT (`b`), UPDATE (`a`), DELETE, INDEX ON `test`.`t` TO `u`@`localhost`\n";
    assert_eq!(shown(&mut root), format!("{usage}{on_table}"));
    root.ok("GRANT ALL ON t TO u@localhost WITH GRANT OPTION");
    let all = "GRANT ALL PRIVILEGES ON `test`.`t` TO `u`@`localhost` WITH GRANT OPTION\n";
    assert_eq!(shown(&mut root), format!("{usage}{all}"));
    let listed = "SELECT column_name, privilege_type FROM information_schema.column_privileges ORDER BY 1, 2";
    assert_eq!(
        root.run(listed),
        "column_name | privilege_type\na | SELECT\na | UPDATE\nb | INSERT\nb | SELECT\n"
    );
    root.ok("REVOKE ALL ON t FROM u@localhost");
    root.ok("REVOKE GRANT OPTION ON t FROM u@localhost");
    assert_eq!(shown(&mut root), usage);
    refused(&mut root, "REVOKE SELECT ON t FROM u@localhost", "1147");
    refused(&mut root, "GRANT SELECT ON missing TO u@localhost", "1146");
    refused(&mut root, "GRANT SELECT (z) ON t TO u@localhost", "1054");
    refused(&mut root, "GRANT SUPER ON t TO u@localhost", "1144");
    refused(&mut root, "GRANT SELECT (a) ON test.* TO u@localhost", "1144");
    refused(&mut root, "GRANT DELETE (a) ON t TO u@localhost", "1064");
    root.ok("GRANT CREATE ON missing TO u@localhost");
}

#[test]
fn a_grantor_sets_no_password_and_creates_no_account() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT ALL ON d.* TO u@localhost WITH GRANT OPTION");
    let mut user = server.connect_as("u", "localhost");
    refused(&mut user, "GRANT SELECT ON d.* TO root@localhost IDENTIFIED BY 'x'", "1044");
    refused(&mut user, "GRANT SELECT ON d.* TO new@localhost IDENTIFIED BY 'x'", "1410");
    user.ok("GRANT SELECT ON d.* TO root@localhost");
    let line = "CREATE USER for root@localhost\nCREATE USER `root`@`localhost`\n";
    assert_eq!(root.run("SHOW CREATE USER"), line);
}

#[test]
fn a_grantor_limits_only_its_own_account() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok("CREATE TABLE d.t (a INT)");
    root.ok("CREATE USER u@localhost");
    root.ok("CREATE USER other@localhost REQUIRE SSL");
    root.ok("GRANT ALL ON d.* TO u@localhost WITH GRANT OPTION");
    let mut user = server.connect_as("u", "localhost");
    for rule in
        ["REQUIRE CIPHER 'x'", "REQUIRE NONE", "WITH MAX_QUERIES_PER_HOUR 1", "WITH MAX_STATEMENT_TIME 1"]
    {
        for what in ["USAGE ON d.*", "SELECT ON d.t", "SELECT (a) ON d.t"] {
            refused(&mut user, &format!("GRANT {what} TO other@localhost {rule}"), "1044");
            refused(&mut user, &format!("GRANT {what} TO root@localhost {rule}"), "1044");
        }
        user.ok(&format!("GRANT USAGE ON d.* TO CURRENT_USER {rule}"));
    }
    let line = "CREATE USER for other@localhost\nCREATE USER `other`@`localhost` REQUIRE SSL\n";
    assert_eq!(root.run("SHOW CREATE USER other@localhost"), line);
    root.ok("GRANT UPDATE ON mysql.* TO u@localhost");
    user.ok("GRANT USAGE ON d.* TO other@localhost REQUIRE NONE");
}

#[test]
fn column_privileges_do_not_allow_references_to_the_table() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok("CREATE TABLE d.parent (id INT PRIMARY KEY)");
    root.ok("CREATE TABLE t (a INT)");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT ALL ON test.* TO u@localhost");
    let mut user = server.connect_as("u", "localhost");
    user.ok("USE test");
    for privilege in ["SELECT", "INSERT", "UPDATE", "REFERENCES"] {
        root.ok(&format!("GRANT {privilege} (id) ON d.parent TO u@localhost"));
        refused(&mut user, "CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES d.parent (id))", "1142");
        refused(&mut user, "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES d.parent (id)", "1142");
    }
    for privilege in ["SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES"] {
        root.ok(&format!("GRANT {privilege} ON d.parent TO u@localhost"));
        user.ok("CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES d.parent (id))");
        user.ok("DROP TABLE child");
        root.ok("REVOKE ALL ON d.parent FROM u@localhost");
    }
}

#[test]
fn a_writer_does_not_read_the_computed_table_it_writes() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT AS (a * 2) STORED, d INT DEFAULT (a + 5), CHECK (a < 100))");
    root.ok("CREATE TABLE one (x INT)");
    root.ok("INSERT INTO one VALUES (1)");
    root.ok("CREATE USER u@localhost");
    root.ok("CREATE USER columns@localhost");
    root.ok("GRANT INSERT, UPDATE, DELETE ON t TO u@localhost");
    root.ok("GRANT SELECT ON one TO u@localhost");
    root.ok("GRANT INSERT (id, d), UPDATE (d) ON t TO columns@localhost");
    let mut user = server.connect_as("u", "localhost");
    user.ok("USE test");
    for statement in [
        "INSERT INTO t (id, a) VALUES (1, 1)",
        "INSERT INTO t (id, a) SELECT x + 1, x FROM one",
        "REPLACE INTO t (id, a) VALUES (1, 2)",
        "INSERT INTO t (id, a, d) VALUES (3, 3, a)",
        "INSERT INTO t SET id = 4, a = id",
        "REPLACE INTO t SET id = 4, a = a + 1",
        "INSERT INTO t (id, a) VALUES (5, DEFAULT(a))",
        "UPDATE t SET a = 9",
        "UPDATE t SET d = DEFAULT",
    ] {
        user.ok(statement);
    }
    refused(&mut user, "INSERT INTO t (id, a) VALUES (6, 100)", "4025");
    for statement in [
        "INSERT INTO t (id, a) VALUES (6, 6) RETURNING a",
        "INSERT INTO t (id, a) VALUES (6, 6) RETURNING g",
        "INSERT INTO t (id, a) VALUES (1, 6) ON DUPLICATE KEY UPDATE a = 7",
        "INSERT INTO t (id, a) VALUES (1, 6) ON DUPLICATE KEY UPDATE a = d",
        "UPDATE t SET a = d",
        "UPDATE t SET a = DEFAULT(d)",
        "UPDATE t SET a = 1 WHERE d = 1",
        "UPDATE t SET a = 1 ORDER BY g LIMIT 1",
        "DELETE FROM t WHERE a = 1",
    ] {
        refused(&mut user, statement, "1143");
    }
    refused(&mut user, "INSERT INTO t (id, a) SELECT id + 10, a FROM t", "1142");
    refused(&mut user, "INSERT INTO t (id, a) VALUES (6, (SELECT MAX(a) FROM t))", "1142");
    refused(&mut user, "SELECT DEFAULT(d) FROM t", "1142");
    // Reading a column of the new row needs the INSERT privilege on that column, not SELECT.
    let mut user = server.connect_as("columns", "localhost");
    user.ok("USE test");
    user.ok("INSERT INTO t (id, d) VALUES (7, id)");
    user.ok("UPDATE t SET d = DEFAULT");
    refused(&mut user, "INSERT INTO t (id, d) VALUES (8, a)", "1143");
    refused(&mut user, "INSERT INTO t SET id = 8, d = a", "1143");
    refused(&mut user, "INSERT INTO t (id, d) VALUES (8, DEFAULT(a))", "1143");
}

#[test]
fn an_index_is_shown_with_privileges_on_all_its_columns() {
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, secret INT, KEY a (a), KEY both_of (a, secret), KEY (secret))");
    root.ok("CREATE USER u@localhost");
    root.ok("CREATE USER v@localhost");
    root.ok("GRANT SELECT (id, a) ON t TO u@localhost");
    root.ok("GRANT DELETE ON t TO v@localhost");
    let listed = "SELECT index_name, column_name FROM information_schema.statistics WHERE table_name = 't'";
    let mut user = server.connect_as("u", "localhost");
    assert_eq!(user.run(listed), "index_name | column_name\nPRIMARY | id\na | a\n");
    let shown = user.run("SHOW INDEX FROM test.t");
    assert!(shown.contains("PRIMARY") && !shown.contains("secret") && !shown.contains("both_of"), "{shown}");
    let all =
        "index_name | column_name\nPRIMARY | id\na | a\nboth_of | a\nboth_of | secret\nsecret | secret\n";
    assert_eq!(server.connect_as("v", "localhost").run(listed), all);
}

#[test]
fn names_of_accounts_have_bounds() {
    let mut server = server();
    let mut root = server.connect();
    let long = "u".repeat(128);
    root.ok(&format!("CREATE USER {long}@localhost"));
    refused(&mut root, &format!("CREATE USER {long}u@localhost"), "1470");
    refused(&mut root, &format!("GRANT SELECT ON test.* TO {long}u@localhost IDENTIFIED BY 'x'"), "1470");
    refused(&mut root, &format!("RENAME USER {long}@localhost TO {long}u@localhost"), "1470");
    refused(&mut root, &format!("CREATE USER a@{}", "h".repeat(256)), "1470");
    // The binary log event with the invoker stores its length in one byte.
    refused(&mut root, &format!("CREATE USER '{}'@localhost", "\u{1f600}".repeat(64)), "1470");
    for statement in [
        "CREATE TABLE `\u{1f600}` (a INT)",
        "CREATE TABLE t (`\u{1f600}` INT)",
        "CREATE DATABASE `\u{1f600}`",
        "SELECT 1 FROM test.`\u{1f600}`",
    ] {
        refused(&mut root, statement, "1300");
    }
}

/// Concurrent changes of one account by several sessions must all be kept.
#[test]
fn account_statements_do_not_lose_each_others_changes() {
    const ROUNDS: usize = 40;
    let mut server = server();
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost");
    let mut clients: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    std::thread::scope(|scope| {
        for (n, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    client.ok(&format!("GRANT SELECT ON `d{n}x{round}`.* TO u@localhost"));
                }
            });
        }
    });
    let shown = root.run("SHOW GRANTS FOR u@localhost");
    let granted = shown.lines().filter(|line| line.starts_with("GRANT SELECT ON")).count();
    assert_eq!(granted, 4 * ROUNDS, "{shown}");
}

/// I5: a crash can undo a DDL statement until it is published, so no session may observe it before.
#[test]
fn no_session_reads_a_definition_before_it_is_published() {
    let mut server = server();
    let gate = Arc::new(Shut::default());
    server.db.commit.set_replica_gate(gate.clone());
    let mut setup = server.connect();
    setup.ok("CREATE DATABASE old");
    setup.ok("CREATE USER gone@localhost");
    let statements = [
        "CREATE DATABASE new",
        "DROP DATABASE old",
        "CREATE USER made@localhost",
        "DROP USER gone@localhost",
        "GRANT SUPER ON *.* TO root@localhost IDENTIFIED BY 'x'",
    ];
    for statement in statements {
        let mut reader = server.connect();
        let mut writer = server.connect();
        let questions = [
            "SHOW DATABASES",
            "SELECT user FROM mysql.user ORDER BY 1",
            "SHOW GRANTS",
            "SHOW CREATE DATABASE new",
            "SHOW CREATE DATABASE old",
        ];
        let ask = |reader: &mut Client| questions.map(|question| reader.run(question));
        let before = ask(&mut reader);
        gate.shut();
        let running = std::thread::spawn(move || writer.ok(statement));
        gate.wait_durable(statement);
        assert_eq!(ask(&mut reader), before, "{statement} is seen too early");
        gate.open(&server.db.commit);
        running.join().expect("it succeeds");
        assert_ne!(ask(&mut reader), before, "{statement} is never seen");
    }
}

#[test]
fn rights_that_were_missed_are_asked_for() {
    let mut server = server();
    let mut root = server.connect();
    for sql in [
        "CREATE TABLE t (a INT, b INT)",
        "CREATE USER u@localhost, other@localhost",
        "GRANT FILE ON *.* TO u@localhost",
        "GRANT INSERT (a) ON test.t TO u@localhost",
        "CREATE TABLE secret (hidden INT)",
        "CREATE SEQUENCE both_kinds",
    ] {
        root.ok(sql);
    }
    let mut user = server.connect_as("u", "localhost");
    // A load without a column list needs privileges on all columns.
    for load in ["LOAD DATA INFILE", "LOAD DATA CONCURRENT INFILE"] {
        refused(&mut user, &format!("{load} '/nowhere' INTO TABLE test.t"), "1143");
        refused(&mut user, &format!("{load} '/nowhere' INTO TABLE test.t (a, b)"), "1143");
        refused(&mut user, &format!("{load} '/nowhere' INTO TABLE test.t (a, @b) SET b = @b"), "1143");
        refused(&mut user, &format!("{load} '/nowhere' REPLACE INTO TABLE test.t (a)"), "1142");
    }
    // Preparing a statement must reveal no more than running it.
    for sql in ["SHOW CREATE TABLE test.secret", "SHOW CREATE TABLE test.missing"] {
        let error = user.session.prepare(sql.as_bytes()).expect_err(sql);
        assert_eq!(error.code.number(), 1142, "{sql}");
    }
    for sql in [
        "SHOW COLUMNS FROM test.secret",
        "SHOW INDEX FROM test.secret",
        "SHOW GRANTS FOR other@localhost",
        "SHOW GRANTS FOR missing@localhost",
        "SHOW MASTER STATUS",
    ] {
        let info = user.session.prepare(sql.as_bytes()).expect("it is refused when it runs");
        assert!(info.columns.is_empty(), "{sql}");
        assert!(user.execute(info.id, &[]).starts_with("ERROR 1"), "{sql}");
    }
    // DROP SEQUENCE affects sequences only, even if a temporary table has the name.
    root.ok("CREATE TEMPORARY TABLE both_kinds (a INT)");
    root.ok("CREATE TEMPORARY TABLE alone (a INT)");
    refused(&mut root, "DROP SEQUENCE alone", "4091");
    refused(&mut root, "DROP TEMPORARY SEQUENCE alone", "4091");
    assert!(root.run("DROP SEQUENCE IF EXISTS alone").contains("4091"));
    root.ok("SELECT * FROM alone");
    root.ok("GRANT CREATE TEMPORARY TABLES ON test.* TO u@localhost");
    user.ok("CREATE TEMPORARY TABLE test.both_kinds (a INT)");
    refused(&mut user, "DROP SEQUENCE test.both_kinds", "1142");
    root.ok("DROP SEQUENCE both_kinds");
    root.ok("SELECT * FROM both_kinds");
    user.ok("CREATE TEMPORARY SEQUENCE test.own");
    user.ok("DROP SEQUENCE test.own");
    // An account is not created if a part of its description is invalid.
    for auth in [
        r#""plugin":"mysql_native_password","authentication_string":"no hash""#,
        r#""plugin":"nosuch","authentication_string":"x""#,
    ] {
        let insert = format!("INSERT INTO mysql.global_priv VALUES ('localhost', 'half', '{{{auth}}}')");
        assert!(root.run(&insert).starts_with("ERROR"), "{insert}");
        assert_eq!(root.run("SELECT COUNT(*) FROM mysql.user WHERE user = 'half'"), "COUNT(*)\n0\n");
    }
    // Names must be taken literally in every SQL mode.
    root.ok(r"CREATE USER 'a\\b'@localhost, 'a\\\\b'@localhost");
    root.ok("SET sql_mode = 'NO_BACKSLASH_ESCAPES'");
    root.ok(r"DELETE FROM mysql.global_priv WHERE user = 'a\b'");
    let left = r"SELECT user FROM mysql.user WHERE user LIKE 'a%b' ESCAPE '|'";
    assert_eq!(root.run(left), "User\na\\\\b\n");
    root.ok("SET sql_mode = DEFAULT");
    // Privileges on virtual tables can be granted.
    root.ok("GRANT SELECT ON mysql.global_priv TO other@localhost");
    root.ok("GRANT SELECT (user, host) ON mysql.user TO other@localhost");
    root.ok("GRANT SELECT ON performance_schema.threads TO other@localhost");
    refused(&mut root, "GRANT INSERT ON performance_schema.threads TO other@localhost", "1142");
    refused(&mut root, "GRANT SELECT ON performance_schema.missing TO other@localhost", "1146");
    refused(&mut root, "GRANT SELECT (missing) ON mysql.user TO other@localhost", "1054");
    refused(&mut root, "GRANT SELECT ON information_schema.tables TO other@localhost", "1044");
    let mut other = server.connect_as("other", "localhost");
    other.ok("SELECT COUNT(*) FROM mysql.global_priv");
    other.ok("SELECT COUNT(*) FROM performance_schema.threads");
    root.ok("REVOKE SELECT ON mysql.global_priv FROM other@localhost");
    refused(&mut other, "SELECT COUNT(*) FROM mysql.global_priv", "1142");
}

#[test]
fn constraints_are_shown_with_privileges_on_their_tables() {
    let mut server = server();
    let mut root = server.connect();
    for sql in [
        "CREATE TABLE p (a INT PRIMARY KEY, b INT, c INT, UNIQUE both_of (b, c), CHECK (a > b))",
        "CREATE TABLE q (x INT PRIMARY KEY, z INT, CONSTRAINT f FOREIGN KEY (z) REFERENCES p (a))",
    ] {
        root.ok(sql);
    }
    let keys = "SELECT GROUP_CONCAT(constraint_name, '.', column_name ORDER BY constraint_name, column_name) l \
                FROM information_schema.key_column_usage WHERE table_schema = 'test'";
    let checks =
        "SELECT COUNT(*) l FROM information_schema.check_constraints WHERE constraint_schema = 'test'";
    let parents = "SELECT GROUP_CONCAT(constraint_name, '.', IFNULL(referenced_table_name, '?')) l \
                   FROM information_schema.referential_constraints WHERE constraint_schema = 'test'";
    let all = "both_of.b,both_of.c,f.z,PRIMARY.a,PRIMARY.x";
    for (n, (grants, expected)) in [
        (&["SELECT ON test.*"][..], [all, "1", "NULL"]),
        (&["INSERT ON test.*"], [all, "1", "f.p"]),
        (&["SELECT (a) ON test.p", "SELECT (b) ON test.p"], ["PRIMARY.a", "0", "NULL"]),
        (&["INSERT (z) ON test.q", "SELECT (z) ON test.q"], ["NULL", "0", "f.?"]),
        (&["REFERENCES (z) ON test.q", "INSERT (a) ON test.p"], ["PRIMARY.a", "0", "f.p"]),
        (&["SELECT ON test.q"], ["f.z,PRIMARY.x", "0", "NULL"]),
        (&["DROP ON test.p"], ["both_of.b,both_of.c,PRIMARY.a", "1", "NULL"]),
        (&[], ["NULL", "0", "NULL"]),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("k{n}");
        root.ok(&format!("CREATE USER {name}@localhost"));
        grants.iter().for_each(|grant| root.ok(&format!("GRANT {grant} TO {name}@localhost")));
        let mut user = server.connect_as(&name, "localhost");
        for (sql, expected) in [keys, checks, parents].into_iter().zip(expected) {
            // Caches root's plan.
            root.ok(sql);
            assert_eq!(user.run(sql), format!("l\n{expected}\n"), "{grants:?}: {sql}");
        }
    }
}

#[test]
fn every_account_reads_the_status_and_its_own_attributes() {
    let mut server = server();
    server.connect().ok("CREATE USER u@localhost");
    let mut user = server.connect_as("u", "localhost");
    for table in ["global_status", "session_status", "session_account_connect_attrs"] {
        user.ok(&format!("SELECT COUNT(*) FROM performance_schema.{table}"));
    }
    let listed = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'performance_schema'";
    assert_eq!(user.run(listed), "COUNT(*)\n3\n");
    for table in ["session_connect_attrs", "threads", "events_statements_summary_by_digest"] {
        refused(&mut user, &format!("SELECT COUNT(*) FROM performance_schema.{table}"), "1142");
    }
    refused(&mut user, "DELETE FROM performance_schema.global_status", "1142");
}
