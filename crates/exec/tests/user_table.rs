//! `mysql.user` for tools that ask who there is.

mod world;

use world::Server;

/// In the form of MariaDB's table.
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
    assert!(root.run("DELETE FROM mysql.global_priv").starts_with("ERROR"));
    root.ok("CREATE USER eve");
    let refused = server.connect_as("eve", "%").run("SELECT * FROM mysql.global_priv");
    assert!(refused.starts_with("ERROR 1142"), "{refused}");
}

/// The binary log, which replicas and whoever reads files gets, has what is stored of passwords.
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
fn what_public_holds_everybody_has() {
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
    for refused in
        ["SET ROLE PUBLIC", "SET ROLE r", "CREATE ROLE public", "GRANT PUBLIC TO u", "DROP ROLE PUBLIC"]
    {
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
    assert_eq!(root.run("GRANT ALL ON FUNCTION p TO nobody"), missing);
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
fn accounts_are_shown_to_those_who_may_read_them_and_listed_nowhere() {
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
    assert!(!root.run("SHOW TABLES FROM mysql").contains("user"));
    assert!(root.run("DELETE FROM mysql.user").starts_with("ERROR"));
}
