//! `mysql.user` for tools that ask who there is.

mod world;

use world::Server;

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
