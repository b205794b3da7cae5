//! `mysql.user` and related tables, for tools that read and change accounts.

mod world;

use world::Server;

/// The format is that of MariaDB's table.
#[test]
fn the_stored_form_of_accounts_can_be_read() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut root = server.connect();
    for statement in [
        "CREATE USER many IDENTIFIED VIA unix_socket OR mysql_native_password USING PASSWORD('secret') OR ed25519 USING \
         PASSWORD('secret')",
        "CREATE USER rules REQUIRE SUBJECT '/CN=\"x\"' WITH MAX_QUERIES_PER_HOUR 5 MAX_STATEMENT_TIME 1.5 ACCOUNT LOCK \
         PASSWORD EXPIRE INTERVAL 3 DAY",
        "CREATE ROLE r",
        "GRANT r TO many",
        "SET DEFAULT ROLE r FOR many",
        "GRANT SELECT, SUPER ON *.* TO many",
    ] {
        root.ok(statement);
    }
    let answer = root.run(
        "SELECT Host, User, JSON_REMOVE(Priv, '$.password_last_changed', '$.version_id') FROM mysql.global_priv WHERE User \
         <> 'root' ORDER BY User",
    );
    let rows: Vec<&str> = answer.lines().skip(1).collect();
    assert_eq!(
        rows,
        [
            "% | many | {\"access\": 32769, \"plugin\": \"mysql_native_password\", \"authentication_string\": \
             \"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7\", \"auth_or\": [{\"plugin\": \"unix_socket\"}, {}, \
             {\"plugin\": \"ed25519\", \"authentication_string\": \"ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY\"}], \
             \"default_role\": \"r\"}",
            " | r | {\"access\": 0, \"is_role\": true}",
            "% | rules | {\"access\": 0, \"plugin\": \"mysql_native_password\", \"authentication_string\": \"\", \
             \"ssl_type\": 3, \"ssl_cipher\": \"\", \"x509_issuer\": \"\", \"x509_subject\": \"/CN=\\\"x\\\"\", \
             \"max_questions\": 5, \"max_statement_time\": 1.500000, \"account_locked\": true, \"password_lifetime\": \
             3}",
        ]
    );
    root.ok("CREATE USER eve");
    let refused = server.connect_as("eve", "%").run("SELECT * FROM mysql.global_priv");
    assert!(refused.starts_with("ERROR 1142"), "{refused}");
}

/// The binary log, which replicas and readers of its files see, must contain password hashes only.
#[test]
fn no_password_is_logged() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut root = server.connect();
    for statement in [
        "CREATE USER a IDENTIFIED BY 'pssst', b@localhost IDENTIFIED VIA ed25519 USING PASSWORD('pssst')",
        "ALTER USER a IDENTIFIED BY 'pssst' ACCOUNT LOCK",
        "GRANT SELECT ON *.* TO c IDENTIFIED BY 'pssst' WITH GRANT OPTION",
        "SET PASSWORD FOR a = PASSWORD('pssst')",
        "CREATE OR REPLACE USER a IDENTIFIED WITH mysql_native_password AS PASSWORD('pssst')",
    ] {
        root.ok(statement);
    }
    let logged = world::logged_queries(&server, &disk);
    let about: Vec<&String> = logged.iter().filter(|text| !text.starts_with("BEGIN")).collect();
    assert!(about.len() >= 5 && !about.iter().any(|text| text.contains("pssst")), "{about:?}");
    assert!(about.iter().filter(|text| text.contains("'*")).count() >= 5, "{about:?}");
    assert!(about.iter().any(|text| text.ends_with("WITH GRANT OPTION")), "{about:?}");
}

#[test]
fn passwords_that_are_too_simple_are_refused() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut root = server.connect();
    let simple = "ERROR 1819 (HY000): Your password does not satisfy the current policy requirements (simple_password_check)\n";
    let strict = "ERROR 1290 (HY000): The MariaDB server is running with the --strict-password-validation option so it cannot execute \
                  this statement\n";
    root.ok("CREATE USER free IDENTIFIED BY 'x'");
    for setting in ["minimal_length = 8", "digits = 1", "letters_same_case = 1", "other_characters = 1"] {
        root.ok(&format!("SET GLOBAL simple_password_check_{setting}"));
    }
    let hash = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";
    for (statement, answer) in [
        ("CREATE USER w IDENTIFIED BY 'short'", simple),
        ("CREATE USER w", simple),
        ("CREATE USER w IDENTIFIED VIA ed25519 USING PASSWORD('abc')", simple),
        ("CREATE USER `Longer1!x` IDENTIFIED BY 'Longer1!x'", simple),
        ("GRANT SELECT ON *.* TO w IDENTIFIED BY 'abc'", simple),
        ("ALTER USER free IDENTIFIED BY 'abcdefgh'", simple),
        ("SET PASSWORD FOR free = PASSWORD('abc')", simple),
        (&format!("SET PASSWORD FOR free = '{hash}'"), strict),
        (&format!("CREATE USER w IDENTIFIED BY PASSWORD '{hash}'"), strict),
        ("CREATE USER w IDENTIFIED BY 'Longer1!x'", "OK\n"),
        ("CREATE USER s IDENTIFIED VIA unix_socket", "OK\n"),
        ("ALTER USER w ACCOUNT LOCK", "OK\n"),
        ("SET GLOBAL strict_password_validation = OFF", "OK\n"),
        (&format!("SET PASSWORD FOR free = '{hash}'"), "OK\n"),
    ] {
        assert_eq!(root.run(statement), answer, "{statement}");
    }
}

#[test]
fn privileges_of_public_apply_to_all_accounts() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE TABLE test.t (a INT)");
    root.ok("CREATE USER u");
    let mut u = server.connect_as("u", "%");
    assert!(u.run("SELECT * FROM test.t").starts_with("ERROR 1142"));
    assert_eq!(u.run("SHOW GRANTS FOR public"), "Grants for PUBLIC\n");
    root.ok("CREATE ROLE r");
    root.ok("GRANT INSERT ON test.t TO r");
    root.ok("GRANT SELECT ON test.* TO public");
    root.ok("GRANT r TO PUBLIC");
    u.ok("INSERT INTO test.t VALUES (1)");
    assert_eq!(u.run("SELECT * FROM test.t"), "a\n1\n");
    let of_all = "GRANT `r` TO PUBLIC\nGRANT SELECT ON `test`.* TO PUBLIC\nGRANT USAGE ON *.* TO `r`\nGRANT INSERT ON `test`.`t` TO \
                  `r`\n";
    assert_eq!(u.run("SHOW GRANTS FOR PUBLIC"), format!("Grants for PUBLIC\n{of_all}"));
    assert_eq!(u.run("SHOW GRANTS"), format!("Grants for u@%\nGRANT USAGE ON *.* TO `u`@`%`\n{of_all}"));
    assert_eq!(u.run("SHOW GRANTS FOR u"), "Grants for u@%\nGRANT USAGE ON *.* TO `u`@`%`\n");
    for refused in ["SET ROLE PUBLIC", "SET ROLE r", "CREATE ROLE public", "GRANT PUBLIC TO u"] {
        let answer = root.run(refused);
        let expected = if refused == "SET ROLE r" { "OK" } else { "ERROR 1959" };
        assert!(answer.starts_with(expected), "{refused}: {answer}");
    }
    assert!(u.run("SET ROLE r").starts_with("ERROR 1959"));
    assert_eq!(
        root.run("REVOKE SELECT ON mysql.* FROM PUBLIC"),
        "ERROR 1141 (42000): There is no such grant defined for user 'PUBLIC' on host ''\n"
    );
    drop((root, u));
    drop(server);
    let mut server = Server::open(&disk).expect("recovers");
    let (mut root, mut u) = (server.connect(), server.connect_as("u", "%"));
    assert_eq!(u.run("SELECT * FROM test.t"), "a\n1\n");
    root.ok("REVOKE ALL PRIVILEGES, GRANT OPTION FROM PUBLIC");
    assert!(u.run("SELECT * FROM test.t").starts_with("ERROR 1142"));
    assert_eq!(u.run("SHOW GRANTS FOR PUBLIC"), "Grants for PUBLIC\n");
}

#[test]
fn routines_that_are_not_there_cannot_be_granted() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT ALL ON test.* TO u@localhost");
    let missing = "ERROR 1305 (42000): FUNCTION or PROCEDURE p does not exist\n";
    assert_eq!(root.run("GRANT EXECUTE ON PROCEDURE test.p TO u@localhost"), missing);
    assert_eq!(root.run("GRANT ALL ON FUNCTION p TO missing"), missing);
    assert!(root.run("GRANT SELECT ON PROCEDURE test.p TO u@localhost").starts_with("ERROR 1144"));
    assert_eq!(
        root.run("REVOKE EXECUTE ON PROCEDURE test.p FROM u@localhost"),
        "ERROR 1403 (42000): There is no such grant defined for user 'u' on host 'localhost' on routine 'p'\n"
    );
    let mut u = server.connect_as("u", "localhost");
    assert_eq!(
        u.run("GRANT EXECUTE ON PROCEDURE test.p TO u@localhost"),
        "ERROR 1370 (42000): grant command denied to user 'u'@'localhost' for routine 'test.p'\n"
    );
    assert_eq!(
        u.run("REVOKE EXECUTE ON PROCEDURE mysql.p FROM u@localhost"),
        "ERROR 1370 (42000): execute command denied to user 'u'@'localhost' for routine 'mysql.p'\n"
    );
}

#[test]
fn accounts_are_shown_to_those_who_may_read_them() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE USER bob@'%' IDENTIFIED BY 'secret'");
    root.ok("GRANT SELECT, REPLICATION CLIENT ON *.* TO bob@'%'");
    root.ok("CREATE USER eve");
    let answer = root.run(
        "SELECT User, Host, Select_priv, Insert_priv, Grant_priv, Repl_client_priv, plugin, authentication_string, is_role \
         FROM mysql.user WHERE User <> 'eve' ORDER BY User",
    );
    let rows: Vec<&str> = answer.lines().skip(1).collect();
    let hash = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";
    assert_eq!(
        rows,
        [
            &format!("bob | % | Y | N | N | Y | mysql_native_password | {hash} | N"),
            "root | localhost | Y | Y | Y | Y | mysql_native_password |  | N",
        ]
    );
    let mut eve = server.connect_as("eve", "%");
    let refused = eve.run("SELECT User FROM mysql.user");
    assert!(refused.starts_with("ERROR 1142"), "{refused}");
    assert!(root.run("SHOW TABLES FROM mysql").contains("user"));
    assert!(eve.run("SHOW TABLES FROM mysql").starts_with("ERROR 1044"));
    assert!(eve.run("DELETE FROM mysql.user").starts_with("ERROR 1142"));
}

/// With a list of words, and with the words of plugin cracklib_password_check.
#[test]
fn passwords_that_are_easy_to_guess_are_refused() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let words = cohort_exec::WordList::new(b"horse\nbattery\n").expect("it is small");
    assert!(server.db.words.set(words).is_ok());
    let mut root = server.connect();
    let refused = "ERROR 1819 (HY000): Your password does not satisfy the current policy requirements \
                   (cracklib_password_check)\n";
    for statement in [
        "CREATE USER fabiola IDENTIFIED BY 'battery1'",
        "CREATE USER fabiola IDENTIFIED BY 'aloibaf'",
        "CREATE USER fabiola",
        "CREATE USER fabiola IDENTIFIED VIA ed25519 USING PASSWORD('h0rse!!')",
        "SET PASSWORD = PASSWORD('abc')",
    ] {
        assert_eq!(root.run(statement), refused, "{statement}");
    }
    root.run("CREATE USER fabiola IDENTIFIED BY 'battery1'");
    let warnings = root.run("SHOW WARNINGS");
    assert!(warnings.contains("Warning | 1819 | cracklib: it is based on a dictionary word\n"), "{warnings}");
    root.ok("CREATE USER fabiola IDENTIFIED BY 'kq8Zr!mPw2'");
    let hash = "'*14E65567ABDB5135D0CFD9A70B3032C179A49EE7'";
    let strict = root.run(&format!("CREATE USER other IDENTIFIED BY PASSWORD {hash}"));
    assert!(strict.starts_with("ERROR 1290"), "{strict}");
    root.ok("SET GLOBAL strict_password_validation = OFF");
    root.ok(&format!("CREATE USER other IDENTIFIED BY PASSWORD {hash}"));
}

/// Changes of a row must change the account.
#[test]
fn rows_of_accounts_can_be_changed() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE USER a, b@localhost, ''@localhost, c");
    root.ok("CREATE ROLE r");
    root.ok("GRANT SELECT, INSERT ON test.* TO a");
    root.ok("GRANT ALL ON `test\\_%`.* TO b@localhost");
    // The statement that mariadb-secure-installation runs.
    root.ok(
        "UPDATE mysql.global_priv SET priv=json_set(priv, '$.password_last_changed', UNIX_TIMESTAMP(), '$.plugin', \
         'mysql_native_password', '$.authentication_string', 'invalid', '$.auth_or', json_array(json_object(), \
         json_object('plugin', 'unix_socket'))) WHERE User='a'",
    );
    assert_eq!(
        root.run("SHOW CREATE USER a").lines().nth(1),
        Some("CREATE USER `a`@`%` IDENTIFIED VIA mysql_native_password USING 'invalid' OR unix_socket")
    );
    root.ok("UPDATE mysql.global_priv SET priv=json_set(priv, '$.plugin', 'mysql_native_password', \
         '$.authentication_string', PASSWORD('secret')) WHERE User='a'");
    assert_eq!(
        root.run("SHOW CREATE USER a").lines().nth(1),
        Some(
            "CREATE USER `a`@`%` IDENTIFIED VIA mysql_native_password USING \
             '*14E65567ABDB5135D0CFD9A70B3032C179A49EE7' OR unix_socket"
        )
    );
    assert_eq!(root.run("DELETE FROM mysql.global_priv WHERE User=''"), "OK 1\n");
    assert_eq!(root.run("DELETE FROM mysql.db WHERE Db='test' OR Db='test\\\\_%'"), "OK 2\n");
    root.ok("FLUSH PRIVILEGES");
    assert_eq!(root.run("SELECT COUNT(*) FROM mysql.db"), "COUNT(*)\n0\n");
    let accounts = "SELECT User, Host FROM mysql.global_priv ORDER BY User, Host";
    assert_eq!(root.run(accounts), "User | Host\na | %\nb | localhost\nc | %\nr | \nroot | localhost\n");
    // Rules, limits, names and privileges.
    root.ok(
        "UPDATE mysql.global_priv SET Host='10.%', Priv=JSON_SET(Priv, '$.ssl_type', 2, '$.max_questions', 7, \
         '$.account_locked', 1, '$.password_lifetime', 9, '$.access', 1) WHERE User='c'",
    );
    assert_eq!(
        root.run("SHOW CREATE USER c@'10.%'").lines().nth(1),
        Some(
            "CREATE USER `c`@`10.%` REQUIRE X509 WITH MAX_QUERIES_PER_HOUR 7 ACCOUNT LOCK PASSWORD EXPIRE \
             INTERVAL 9 DAY"
        )
    );
    assert!(root.run("SHOW GRANTS FOR c@'10.%'").contains("GRANT SELECT ON *.*"));
    root.ok("INSERT INTO mysql.db (Host, Db, User, Select_priv, Grant_priv) VALUES ('localhost', 'x', 'b', 'Y', 'Y')");
    assert!(
        root.run("SHOW GRANTS FOR b@localhost")
            .contains("GRANT SELECT ON `x`.* TO `b`@`localhost` WITH GRANT OPTION")
    );
    root.ok("UPDATE mysql.db SET Update_priv='Y', Select_priv='N', Grant_priv='N' WHERE User='b'");
    assert!(root.run("SHOW GRANTS FOR b@localhost").contains("GRANT UPDATE ON `x`.* TO `b`@`localhost`\n"));
    root.ok(
        "INSERT INTO mysql.global_priv VALUES ('%', 'made', '{\"access\": 2, \"plugin\": \"mysql_native_password\", \
         \"authentication_string\": \"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7\"}')",
    );
    assert!(
        root.run("SHOW GRANTS FOR made")
            .contains("GRANT INSERT ON *.* TO `made`@`%` IDENTIFIED BY PASSWORD '*14E6")
    );
    assert!(root.run("INSERT INTO mysql.global_priv VALUES ('%', 'made', '{}')").starts_with("ERROR 1062"));
    assert!(root.run("UPDATE mysql.global_priv SET Priv='x' WHERE User='made'").starts_with("ERROR 4025"));
    root.ok("GRANT r TO a");
    root.ok("GRANT PROXY ON c TO a");
    for (statement, changed) in [
        ("DELETE FROM mysql.roles_mapping WHERE Role='r' AND User='a'", "OK 1\n"),
        ("DELETE FROM mysql.proxies_priv WHERE User='a'", "OK 1\n"),
        ("DELETE FROM mysql.user WHERE User='made'", "OK 1\n"),
        ("DELETE FROM mysql.user WHERE User='r'", "OK 1\n"),
        ("DELETE FROM mysql.global_priv WHERE User='missing'", "OK\n"),
    ] {
        assert_eq!(root.run(statement), changed, "{statement}");
    }
    assert!(!root.run("SHOW GRANTS FOR a").contains("PROXY"));
    assert!(root.run("UPDATE mysql.user SET Select_priv='Y'").starts_with("ERROR 1348"));
    root.ok("UPDATE mysql.user SET User='was_c' WHERE User='c'");
    root.ok("UPDATE mysql.global_priv SET User='c' WHERE User='was_c'");
    rows_of_privileges_can_be_changed(&mut root);
    // As a prepared statement, and under LOCK TABLES.
    root.ok("PREPARE p FROM 'DELETE FROM mysql.global_priv WHERE User = ?'");
    root.ok("SET @user = 'c'");
    root.ok("EXECUTE p USING @user");
    root.ok("LOCK TABLES mysql.user READ, mysql.db WRITE");
    root.ok("UNLOCK TABLES");
    assert!(root.run("LOCK TABLES mysql.nosuch READ").starts_with("ERROR 1146"));
    assert_eq!(root.run(accounts), "User | Host\na | %\nb | localhost\nroot | localhost\n");
}

/// Rows of each privilege table are inserted, replaced, changed and deleted; the privileges follow at once.
fn rows_of_privileges_can_be_changed(root: &mut world::Client) {
    root.ok("CREATE TABLE test.held (x INT, y INT)");
    root.ok("CREATE PROCEDURE test.p() SELECT 1");
    root.ok("CREATE ROLE clerks");
    root.ok("CREATE USER p");
    let grants = |root: &mut world::Client| {
        root.run("SHOW GRANTS FOR p").lines().skip(2).map(str::to_owned).collect::<Vec<_>>().join("; ")
    };
    for (statement, held) in [
        (
            "INSERT INTO mysql.tables_priv (Host, Db, User, Table_name, Table_priv) VALUES ('%', 'test', 'p', 'held', \
          'Select,Grant')",
            "GRANT SELECT ON `test`.`held` TO `p`@`%` WITH GRANT OPTION",
        ),
        (
            "REPLACE INTO mysql.tables_priv VALUES ('%', 'test', 'p', 'held', '', DEFAULT, 'Insert', '')",
            "GRANT INSERT ON `test`.`held` TO `p`@`%`",
        ),
        (
            "INSERT INTO mysql.columns_priv (Host, Db, User, Table_name, Column_name, Column_priv) VALUES ('%', 'test', \
          'p', 'held', 'x', 'Select,Update')",
            "GRANT SELECT (`x`), INSERT, UPDATE (`x`) ON `test`.`held` TO `p`@`%`",
        ),
        (
            "UPDATE mysql.columns_priv SET Column_name = 'y' WHERE User = 'p'",
            "GRANT SELECT (`y`), INSERT, UPDATE (`y`) ON `test`.`held` TO `p`@`%`",
        ),
        (
            "DELETE FROM mysql.tables_priv WHERE User = 'p'",
            "GRANT SELECT (`y`), UPDATE (`y`) ON `test`.`held` TO `p`@`%`",
        ),
        ("DELETE FROM mysql.columns_priv WHERE User = 'p'", ""),
        (
            "INSERT INTO mysql.procs_priv (Host, Db, User, Routine_name, Routine_type, Proc_priv) SELECT '%', 'test', \
          'p', 'p', 'PROCEDURE', 'Execute'",
            "GRANT EXECUTE ON PROCEDURE `test`.`p` TO `p`@`%`",
        ),
        (
            "INSERT IGNORE INTO mysql.procs_priv (Host, Db, User, Routine_name, Routine_type, Proc_priv) VALUES ('%', \
          'test', 'p', 'p', 'PROCEDURE', 'Grant')",
            "GRANT EXECUTE ON PROCEDURE `test`.`p` TO `p`@`%`",
        ),
        ("DELETE FROM mysql.procs_priv WHERE User = 'p'", ""),
        (
            "INSERT INTO mysql.proxies_priv (Host, User, Proxied_host, Proxied_user, With_grant) VALUES ('%', 'p', '%', \
          'a', 1)",
            "GRANT PROXY ON 'a'@'%' TO 'p'@'%' WITH GRANT OPTION",
        ),
        (
            "UPDATE mysql.proxies_priv SET With_grant = 0 WHERE User = 'p'",
            "GRANT PROXY ON 'a'@'%' TO 'p'@'%'",
        ),
        ("DELETE FROM mysql.proxies_priv WHERE User = 'p'", ""),
    ] {
        root.ok(statement);
        let found = grants(root).replace('`', "'");
        assert_eq!(found, held.replace('`', "'"), "{statement}");
    }
    root.ok("INSERT INTO mysql.roles_mapping VALUES ('%', 'p', 'clerks', 'Y')");
    assert!(root.run("SHOW GRANTS FOR p").contains("clerks` TO `p`@`%` WITH ADMIN OPTION"));
    root.ok("UPDATE mysql.roles_mapping SET Admin_option = 'N' WHERE User = 'p'");
    assert!(!root.run("SHOW GRANTS FOR p").contains("ADMIN"));
    for (statement, error) in [
        ("INSERT INTO mysql.roles_mapping VALUES ('%', 'p', 'clerks', 'Y')", 1062),
        ("INSERT INTO mysql.roles_mapping VALUES ('%', 'p', 'clerks')", 1136),
        ("INSERT INTO mysql.tables_priv (Nothing) VALUES (1)", 1054),
        ("INSERT INTO mysql.user (User) VALUES ('x')", 1235),
    ] {
        let answer = root.run(statement);
        assert!(answer.starts_with(&format!("ERROR {error} ")), "{statement}: {answer}");
    }
    root.ok("DROP USER p");
    root.ok("DROP ROLE clerks");
    // Upgrade programs change these tables, and make copies of them.
    root.ok("UPDATE mysql.proc AS p SET db_collation = (SELECT 'x') WHERE p.db_collation IS NULL");
    assert!(root.run("UPDATE mysql.proc SET comment = 'x'").starts_with("ERROR 1288"));
    assert_eq!(root.run("DELETE FROM mysql.proc WHERE db = 'test'"), "OK 1\n");
    assert!(root.run("CALL test.p()").starts_with("ERROR 1305"));
    root.ok("ALTER TABLE mysql.db MODIFY User CHAR(7)");
    assert!(root.run("SHOW WARNINGS").contains("ALTER TABLE has no effect"));
    root.ok("ALTER TABLE mysql.general_log MODIFY argument TEXT");
    assert!(
        root.run("REPAIR NO_WRITE_TO_BINLOG VIEW mysql.user FOR UPGRADE").contains("repair | status | OK")
    );
    assert!(root.run("CHECK VIEW mysql.user FROM MYSQL").contains("check | status | OK"));
    root.ok("CREATE TEMPORARY TABLE test.copied LIKE mysql.proxies_priv");
    root.ok("INSERT INTO test.copied SELECT * FROM mysql.proxies_priv");
    root.ok("CREATE OR REPLACE VIEW mysql.user AS SELECT 1 AS User");
    assert!(root.run("SELECT User FROM mysql.user").contains("root"));
    let joined = "UPDATE mysql.user LEFT JOIN mysql.db USING (Host, User) SET Create_user_priv = 'Y'";
    assert!(root.run(joined).starts_with("ERROR 1348"));
}

/// A dump drops, creates and fills the tables. The accounts in effect change with FLUSH PRIVILEGES, all at
/// once, and for accounts with all privileges only.
#[test]
fn stored_tables_replace_the_accounts_with_flush_privileges() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE USER old IDENTIFIED BY 'x', clerk");
    root.ok("GRANT ALL ON *.* TO clerk");
    root.ok("CREATE PROCEDURE test.mine() SELECT 1");
    let mut clerk = server.connect_as("clerk", "%");
    for statement in [
        "DROP TABLE IF EXISTS mysql.global_priv",
        "CREATE TABLE mysql.global_priv (a INT)",
        "CREATE TABLE mysql.proc (db CHAR(64), definer VARCHAR(384))",
        "RENAME TABLE test.t TO mysql.db",
    ] {
        let answer = clerk.run(statement);
        assert!(answer.starts_with("ERROR 1142"), "{statement}: {answer}");
    }
    for statement in [
        "DROP TABLE IF EXISTS mysql.db",
        "CREATE TABLE mysql.db (Host CHAR(255), Db CHAR(64), User CHAR(128), Select_priv ENUM('N','Y') DEFAULT 'N', \
         Insert_priv CHAR(1) DEFAULT 'N', Update_priv CHAR(1) DEFAULT 'N', Delete_priv CHAR(1) DEFAULT 'N', Create_priv \
         CHAR(1), Drop_priv CHAR(1), Grant_priv CHAR(1), References_priv CHAR(1), Index_priv CHAR(1), Alter_priv CHAR(1), \
         Create_tmp_table_priv CHAR(1), Lock_tables_priv CHAR(1), Create_view_priv CHAR(1), Show_view_priv CHAR(1), \
         Create_routine_priv CHAR(1), Alter_routine_priv CHAR(1), Execute_priv CHAR(1), Event_priv CHAR(1), Trigger_priv \
         CHAR(1), Delete_history_priv CHAR(1), PRIMARY KEY (Host, Db, User))",
        "INSERT INTO mysql.db (Host, Db, User, Select_priv) VALUES ('%', 'test', 'new', 'Y'), ('%', 'x', 'unknown', 'Y')",
        "DROP TABLE IF EXISTS mysql.global_priv",
        "CREATE TABLE mysql.global_priv (Host CHAR(255), User CHAR(128), Priv LONGTEXT, PRIMARY KEY (Host, User)) ENGINE=Aria",
    ] {
        root.ok(statement);
    }
    // Nothing is in effect, and a plan of the virtual table is not used for the stored one.
    assert_eq!(root.run("SELECT COUNT(*) FROM mysql.global_priv"), "COUNT(*)\n0\n");
    assert!(root.run("SHOW GRANTS FOR old").contains("old"));
    for (statement, error) in [
        ("CREATE USER early", 1105),
        ("GRANT SELECT ON test.* TO old", 1105),
        ("SET PASSWORD FOR old = ''", 1105),
        // Without an account that could log in.
        ("FLUSH PRIVILEGES", 1728),
    ] {
        let answer = root.run(statement);
        assert!(answer.starts_with(&format!("ERROR {error} ")), "{statement}: {answer}");
    }
    root.ok("INSERT INTO mysql.global_priv VALUES ('', 'only_a_role', '{\"is_role\": true}')");
    assert!(root.run("FLUSH PRIVILEGES").starts_with("ERROR 1728"));
    root.ok("INSERT INTO mysql.global_priv VALUES ('%', 'new', 'no object')");
    assert!(root.run("FLUSH PRIVILEGES").starts_with("ERROR 4025"));
    root.ok("UPDATE mysql.global_priv SET Priv = '{\"access\": 18446744073709551615}' WHERE User = 'new'");
    let answer = clerk
        .run("INSERT INTO mysql.global_priv VALUES ('%', 'clerk', '{\"access\": 18446744073709551615}')");
    assert!(answer.starts_with("ERROR 1142"), "{answer}");
    assert!(clerk.run("FLUSH PRIVILEGES").starts_with("ERROR 1142"));
    root.ok("FLUSH TABLES");
    // A crash keeps the stored tables and the old accounts.
    drop((root, clerk, server));
    let mut server = Server::open(&disk).expect("the disk opens again");
    let mut root = server.connect();
    assert!(root.run("SHOW GRANTS FOR old").contains("old"));
    root.ok("FLUSH PRIVILEGES, HOSTS");
    let mut new = server.connect_as("new", "%");
    assert_eq!(new.run("SELECT User FROM mysql.user ORDER BY User"), "User\nnew\nonly_a_role\n");
    assert!(new.run("SHOW GRANTS").contains("GRANT SELECT ON `test`.* TO `new`@`%`"));
    new.ok("CREATE USER late");
    assert!(new.run("CALL test.mine()").starts_with("ERROR 1449"), "its definer is gone");
    // A dump removes each view in this way, which keeps it.
    new.ok("CREATE VIEW test.seen AS SELECT 1 AS x");
    assert!(new.run("DROP TABLE IF EXISTS test.seen, test.missing").starts_with("OK"));
    assert_eq!(new.run("SELECT COUNT(*) FROM mysql.db"), "COUNT(*)\n1\n");
    let logged = world::logged_queries(&server, &disk);
    let place = |text: &str| logged.iter().position(|query| query.starts_with(text));
    let dropped = logged.iter().find(|query| query.contains("missing")).expect("logged");
    assert!(dropped.starts_with("DROP TABLE IF EXISTS ") && dropped.contains("seen`,"), "{dropped}");
    assert!(place("CREATE TABLE mysql.global_priv") < place("FLUSH PRIVILEGES, HOSTS"), "{logged:?}");
    assert!(logged.iter().filter(|query| query.starts_with("FLUSH PRIVILEGES")).count() == 1, "{logged:?}");
}

/// The server generates the account statements for a changed row, so the session's SQL mode must not affect
/// them.
#[test]
fn no_mode_of_a_session_changes_which_account_is_meant() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    for mode in ["NO_BACKSLASH_ESCAPES", "ANSI", "EMPTY_STRING_IS_NULL", "ORACLE", "HIGH_NOT_PRECEDENCE"] {
        let mut root = server.connect();
        root.ok("CREATE USER `x\\`, `x\\\\`, `x'`, `x''`, `y\\` IDENTIFIED BY 'secret'");
        root.ok(&format!("SET sql_mode = '{mode}'"));
        let backslash = "CHAR(92 USING utf8mb4)";
        for (change, of) in [
            ("DELETE FROM mysql.global_priv", format!("CONCAT('x', {backslash})")),
            ("DELETE FROM mysql.user", "CONCAT('x', CHAR(39 USING utf8mb4))".to_owned()),
            (
                "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.ssl_type', 3, '$.x509_subject', \
                 CONCAT('/CN=', CHAR(34 USING utf8mb4), 'q', CHAR(34 USING utf8mb4)))",
                format!("CONCAT('y', {backslash})"),
            ),
        ] {
            assert_eq!(root.run(&format!("{change} WHERE User = {of}")), "OK 1\n", "{mode}: {change}");
        }
        let left = root.run("SELECT User FROM mysql.global_priv WHERE User <> 'root' ORDER BY User");
        assert_eq!(left, "User\nx''\nx\\\\\ny\\\n", "{mode}");
        let shown = root.run("SHOW CREATE USER `y\\`");
        assert!(shown.contains("REQUIRE SUBJECT '/CN=\"q\"'"), "{mode}: {shown}");
        root.ok("SET sql_mode = DEFAULT");
        root.ok("DROP USER `x\\\\`, `x''`, `y\\`");
    }
}

/// A change needs the privileges of the account statements in addition to those on the table.
#[test]
fn writes_to_account_tables_raise_no_own_privileges() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE USER low, clerk");
    root.ok("GRANT SELECT, INSERT, UPDATE, DELETE ON mysql.* TO clerk");
    let mut low = server.connect_as("low", "%");
    for statement in [
        "UPDATE mysql.global_priv SET Priv='{}'",
        "DELETE FROM mysql.global_priv",
        "INSERT INTO mysql.db (Host, Db, User) VALUES ('%', 'x', 'low')",
    ] {
        let answer = low.run(statement);
        assert!(answer.starts_with("ERROR 1142"), "{statement}: {answer}");
    }
    let mut clerk = server.connect_as("clerk", "%");
    let more = clerk
        .run("UPDATE mysql.global_priv SET Priv=JSON_SET(Priv, '$.access', 1073741823) WHERE User='clerk'");
    assert!(more.starts_with("ERROR 1045"), "{more}");
    let more =
        clerk.run("INSERT INTO mysql.db (Host, Db, User, Execute_priv) VALUES ('%', 'x', 'clerk', 'Y')");
    assert!(more.starts_with("ERROR 1044"), "{more}");
    assert!(!root.run("SHOW GRANTS FOR clerk").contains("EXECUTE"));
    clerk.ok("DELETE FROM mysql.global_priv WHERE User='low'");
    root.ok("SET GLOBAL read_only = ON");
    assert!(clerk.run("DELETE FROM mysql.global_priv WHERE User='root'").starts_with("ERROR 1290"));
}

/// Proxy privileges are stored, shown and granted as in MariaDB. No supported authentication method uses
/// them.
#[test]
fn proxies_are_granted() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE USER a, b, c@localhost, adm, low");
    root.ok("CREATE ROLE r");
    root.ok("GRANT ALL ON *.* TO adm WITH GRANT OPTION");
    root.ok("GRANT PROXY ON a TO b, c@localhost");
    root.ok("GRANT PROXY ON nosuch TO b WITH GRANT OPTION");
    root.ok("GRANT PROXY ON ''@'%' TO c@localhost");
    root.ok("GRANT PROXY ON a TO low WITH GRANT OPTION");
    for statement in ["GRANT PROXY ON a TO missing", "GRANT PROXY ON a TO r", "GRANT PROXY ON a TO PUBLIC"] {
        assert!(root.run(statement).starts_with("ERROR 1133"), "{statement}");
    }
    for statement in ["GRANT PROXY ON a TO b REQUIRE SSL", "GRANT PROXY ON a, b TO c@localhost"] {
        assert!(root.run(statement).starts_with("ERROR 1064"), "{statement}");
    }
    let shown = "Grants for b@%\nGRANT USAGE ON *.* TO `b`@`%`\nGRANT PROXY ON `a`@`%` TO `b`@`%`\nGRANT PROXY ON \
                 `nosuch`@`%` TO `b`@`%` WITH GRANT OPTION\n";
    assert_eq!(root.run("SHOW GRANTS FOR b"), shown);
    assert_eq!(
        root.run(
            "SELECT Host, User, Proxied_host, Proxied_user, With_grant FROM mysql.proxies_priv ORDER BY 2, 4"
        ),
        "Host | User | Proxied_host | Proxied_user | With_grant\n% | b | % | a | 0\n% | b | % | nosuch | 1\n\
         localhost | c | % |  | 0\nlocalhost | c | % | a | 0\n% | low | % | a | 1\nlocalhost | root | % |  | 1\n"
    );
    let mut adm = server.connect_as("adm", "%");
    assert!(adm.run("GRANT PROXY ON a TO b").starts_with("ERROR 1698"));
    assert!(adm.run("REVOKE PROXY ON a FROM b").starts_with("ERROR 1698"));
    adm.ok("GRANT PROXY ON adm TO b");
    let mut low = server.connect_as("low", "%");
    low.ok("GRANT PROXY ON a TO b");
    assert!(low.run("GRANT PROXY ON adm TO b").starts_with("ERROR 1698"));
    root.ok("REVOKE PROXY ON adm FROM b");
    assert!(root.run("REVOKE PROXY ON adm FROM b").starts_with("ERROR 1141"));
    // An account's proxy privileges survive a rename, and the loss of its other privileges.
    root.ok("RENAME USER b TO b2");
    root.ok("REVOKE ALL PRIVILEGES, GRANT OPTION FROM b2");
    drop((root, adm, low, server));
    let mut server = Server::open(&disk).expect("starts");
    let mut root = server.connect();
    assert_eq!(root.run("SHOW GRANTS FOR b2"), shown.replace("b@%", "b2@%").replace("`b`", "`b2`"));
    assert_eq!(
        root.run("SELECT @@proxy_user, @@external_user"),
        "@@proxy_user | @@external_user\nNULL | NULL\n"
    );
}

/// PUBLIC in quotes and in any case is not a valid name; with a host it is a user name.
#[test]
fn public_is_nobodys_name() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut root = server.connect();
    for (statement, code) in [
        ("CREATE ROLE 'PUBLIC'", "1959"),
        ("CREATE ROLE `public`", "1959"),
        ("DROP ROLE PUBLIC", "1396"),
        ("DROP ROLE 'PUBLIC'", "1396"),
        ("SET ROLE PUBLIC", "1959"),
        ("GRANT 'PUBLIC' TO root@localhost", "1959"),
        ("SET DEFAULT ROLE PUBLIC", "1959"),
        ("RENAME USER PUBLIC TO x", "1396"),
    ] {
        let answer = root.run(statement);
        assert!(answer.starts_with(&format!("ERROR {code}")), "{statement}: {answer}");
    }
    root.ok("GRANT SELECT ON test.* TO 'PUBLIC'");
    let answer = root.run("SET ROLE 'PUBLIC'");
    assert!(answer.contains("Invalid role specification `PUBLIC`"), "{answer}");
    let shown = "Grants for PUBLIC\nGRANT SELECT ON `test`.* TO PUBLIC\n";
    for name in ["PUBLIC", "'PUBLIC'", "`public`"] {
        assert_eq!(root.run(&format!("SHOW GRANTS FOR {name}")), shown);
    }
    root.ok("REVOKE SELECT ON test.* FROM `public`");
    root.ok("CREATE USER PUBLIC@localhost");
    root.ok("GRANT SELECT ON test.* TO 'PUBLIC'@localhost");
    assert_eq!(root.run("SHOW GRANTS FOR PUBLIC"), "Grants for PUBLIC\n");
}
