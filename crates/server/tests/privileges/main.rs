//! Privileges: the same accounts send the same statements to Cohort and to a real MariaDB. Both must allow or
//! refuse alike, with the same error number.
//!
//! `accounts.txt` has an account per line: its name and its grants, including roles. A bounded run uses the
//! accounts with a star. `statements.txt` has a statement per line: `!` marks a statement that changes
//! something, after which the objects are created again, and `=` one whose rows are compared, too. `{other}`
//! is the id of another session's connection.
//!
//! Known differences are listed in [`DIFFERENCES`] and [`VARIABLE_DIFFERENCES`], and must differ. Neither
//! list may contain a statement that one server allows because of a missing check.

mod cached;
mod programs_rights;
mod programs_seen;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use cohort_config::{Scope, VarId};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use support::{Cohort, Maria};

/// The beginning of a statement, and the reason for its difference.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "BEGIN NOT ATOMIC DECLARE x TYPE OF d.t.b",
        "a user without any privilege on columns is refused with the number for tables",
    ),
    ("FLUSH TABLES d.t FOR EXPORT", "there are no files of a table"),
    ("GRANT SUPER ON d.", "who has SUPER and may not grant it is refused with MariaDB's number for *.*"),
    ("HELP", "there is no help"),
    ("HANDLER t READ", "columns that may not be read are not read by HANDLER either"),
    ("SELECT * FROM d.t WHERE d.fd", "functions are checked before tables"),
    (
        "SELECT NEXTVAL(d.missing)",
        "a user without a privilege on a sequence does not learn whether it exists",
    ),
    ("SELECT table_name, constraint_name", "what is granted on a table alone counts, too"),
    ("SELECT x.a FROM d.t x JOIN d.t y USING (b)", "columns that a join compares count as read"),
    ("SELECT x.a FROM d.t x NATURAL JOIN", "columns that a join compares count as read"),
    ("UPDATE d.t x JOIN d.u y", "the error for a table that may only be read names the column"),
    ("UPDATE d.v SET b = b + 1", "columns of a view that a change reads count as read"),
];

/// `GLOBAL name` or `SESSION name`, and the reason for the difference.
const VARIABLE_DIFFERENCES: &[(&str, &str)] = &[
    ("GLOBAL innodb_log_file_size", "MariaDB does not set it to what it is"),
    ("GLOBAL innodb_monitor", "there are no counters of that name, and none is refused"),
    ("GLOBAL innodb_tmpdir", "kept for option files alone; MariaDB asks for FILE"),
    ("GLOBAL max_user_connections", "MariaDB keeps a 0 that it started with"),
    ("GLOBAL sql_slave_skip_counter", "there is no connection whose events could be skipped"),
    ("GLOBAL system_versioning_asof", "there are no versioned tables: any text is taken"),
    ("GLOBAL tcp_nodelay", "MariaDB's is a session's"),
    ("GLOBAL thread_pool_size", "fixed at the start"),
    ("GLOBAL wsrep_", "there are no Galera clusters; MariaDB refuses what needs its library"),
    ("SESSION innodb_tmpdir", "kept for option files alone; MariaDB asks for FILE"),
    ("SESSION myisam_sort_buffer_size", "kept for option files alone"),
    ("SESSION system_versioning_asof", "there are no versioned tables: any text is taken"),
    ("SESSION thread_pool_size", "fixed at the start"),
    ("SESSION wsrep_gtid_seq_no", "there are no Galera clusters: any number is taken"),
];

/// Creates the objects in their initial state.
const WORLD: &[&str] = &[
    "UNLOCK TABLES",
    "DROP ROLE IF EXISTS made",
    "CREATE OR REPLACE ROLE known",
    "DROP DATABASE IF EXISTS d",
    "DROP DATABASE IF EXISTS e",
    "DROP DATABASE IF EXISTS n",
    "CREATE DATABASE d",
    "CREATE DATABASE e",
    "CREATE TABLE d.t (a INT PRIMARY KEY, b INT DEFAULT 0, KEY k (b))",
    "CREATE TABLE d.u (a INT PRIMARY KEY)",
    "CREATE TABLE e.t (a INT PRIMARY KEY, b INT)",
    "CREATE TABLE d.p (a INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE e.p (a INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE SEQUENCE d.s",
    "CREATE SEQUENCE e.s",
    "CREATE VIEW d.v AS SELECT a, b FROM d.t",
    "CREATE SQL SECURITY INVOKER VIEW d.vi AS SELECT a FROM e.t",
    "CREATE TABLE d.g (a INT PRIMARY KEY)",
    "CREATE PROCEDURE d.pd(x INT) SELECT COUNT(*) FROM d.t",
    "CREATE PROCEDURE d.pi() SQL SECURITY INVOKER SELECT COUNT(*) FROM d.t",
    "CREATE FUNCTION d.fd(x INT) RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM d.t)",
    "CREATE FUNCTION d.fi() RETURNS INT READS SQL DATA SQL SECURITY INVOKER RETURN (SELECT COUNT(*) FROM d.t)",
    "CREATE PROCEDURE e.pd() SELECT COUNT(*) FROM d.t",
    "CREATE TRIGGER d.tr BEFORE INSERT ON d.g FOR EACH ROW SET @x = (SELECT COUNT(*) FROM d.t)",
    "CREATE EVENT d.ev ON SCHEDULE EVERY 1 YEAR DO SELECT 1",
    "INSERT INTO d.t VALUES (1, 1), (2, 2)",
    "INSERT INTO e.t VALUES (1, 1), (2, 2)",
    "DROP USER IF EXISTS n@localhost",
    "CREATE OR REPLACE USER victim@localhost",
    "CREATE OR REPLACE USER granted@localhost",
    "GRANT SELECT, INSERT ON d.* TO granted@localhost",
    "SET PASSWORD FOR root@localhost = ''",
];

/// Created once: accounts keep the roles granted to them.
const ROLES: &[&str] = &[
    "CREATE ROLE reading",
    "CREATE ROLE writing",
    "CREATE ROLE columnist",
    "CREATE ROLE clerk",
    "GRANT SELECT ON d.* TO reading",
    "GRANT INSERT, UPDATE, DELETE ON d.* TO writing",
    "GRANT reading TO writing",
    "GRANT SELECT (a), UPDATE (b) ON d.t TO columnist",
    "GRANT CREATE USER, RELOAD, PROCESS ON *.* TO clerk",
    "GRANT SELECT ON d.* TO clerk WITH GRANT OPTION",
];

/// An account and its grants.
struct Account {
    name: &'static str,
    grants: Vec<String>,
}

fn accounts() -> Vec<Account> {
    let is_long = std::env::var("COHORT_LONG_TESTS").is_ok_and(|value| value == "1");
    let lines = include_str!("accounts.txt").lines().filter(|line| is_long || line.starts_with('*'));
    let account = |line: &'static str| {
        let (name, grants) = line[2..].split_once(':').unwrap_or((&line[2..], ""));
        let name = name.trim();
        let grant = |grant: &str| {
            if let Some(role) = grant.strip_prefix("DEFAULT ROLE ") {
                return format!("SET DEFAULT ROLE {role} FOR `{name}`@localhost");
            }
            let options = ["WITH GRANT OPTION", "WITH ADMIN OPTION"];
            let option = options.into_iter().find(|option| grant.ends_with(option)).unwrap_or_default();
            format!("GRANT {} TO `{name}`@localhost {option}", grant.trim_end_matches(option))
        };
        let grants = grants.split(';').map(str::trim).filter(|grant| !grant.is_empty()).map(grant).collect();
        Account { name, grants }
    };
    lines.map(account).collect()
}

/// How a statement is tested, in addition to running it.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Changes,
    Rows,
}

fn statements() -> Vec<(Kind, &'static str)> {
    let lines =
        include_str!("statements.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let statement = |line: &'static str| match line.split_at_checked(2) {
        Some(("! ", sql)) => (Kind::Changes, sql),
        Some(("= ", sql)) => (Kind::Rows, sql),
        _ => (Kind::Plain, line),
    };
    lines.map(statement).collect()
}

/// One of the two servers.
struct Side {
    options: OptsBuilder,
    root: Conn,
}

impl Side {
    fn new(options: OptsBuilder) -> Side {
        let root = Conn::new(options.clone()).expect("root may enter");
        let mut side = Side { options, root };
        side.root.query_drop("CREATE DATABASE d").expect("made");
        side.root.query_drop("CREATE TABLE d.t (a INT, b INT)").expect("made");
        ROLES
            .iter()
            .for_each(|sql| side.root.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}")));
        side.make_world();
        side
    }

    /// Revokes the privileges that a new MariaDB grants to all accounts on its schema `test`.
    fn forget_public(&mut self) {
        for sql in ["DELETE FROM mysql.db WHERE db LIKE 'test%'", "FLUSH PRIVILEGES"] {
            self.root.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    fn make_world(&mut self) {
        for sql in WORLD {
            self.root.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    fn make(&mut self, account: &Account) {
        let made = format!("CREATE OR REPLACE USER `{}`@localhost", account.name);
        for sql in std::iter::once(&made).chain(&account.grants) {
            self.root.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    fn enter(&self, account: &Account) -> Conn {
        Conn::new(self.options.clone().user(Some(account.name))).expect("the account may enter")
    }

    /// Runs a statement as an account, and restores the objects afterwards.
    fn ask(&mut self, account: &Account, client: &mut Conn, kind: Kind, sql: &str) -> Answer {
        let answer = if sql.contains("{other}") {
            let other = Conn::new(self.options.clone()).expect("root may enter");
            answer(client, kind, &sql.replace("{other}", &other.connection_id().to_string()))
        } else {
            answer(client, kind, sql)
        };
        if kind == Kind::Changes && answer.code == 0 {
            for end in ["UNLOCK TABLES", "BACKUP UNLOCK", "BACKUP STAGE END", "COMMIT"] {
                // It may be refused; then there is nothing to end.
                let _ = client.query_drop(end);
            }
            self.make_world();
            if sql.contains("PASSWORD") || sql.contains("CURRENT_USER") {
                self.make(account);
            }
        }
        answer
    }
}

/// An error number, or 0; the rows if they are compared.
#[derive(Debug, PartialEq)]
struct Answer {
    code: u16,
    rows: Vec<String>,
}

fn answer(client: &mut Conn, kind: Kind, sql: &str) -> Answer {
    let outcome: mysql::Result<Vec<mysql::Row>> = client.query(sql);
    match outcome {
        Ok(rows) if kind == Kind::Rows => {
            let text =
                |row: mysql::Row| row.unwrap().iter().map(support::shown).collect::<Vec<_>>().join(" ");
            Answer { code: 0, rows: rows.into_iter().map(text).collect() }
        }
        Ok(_) => Answer { code: 0, rows: Vec::new() },
        Err(mysql::Error::MySqlError(error)) => Answer { code: error.code, rows: Vec::new() },
        Err(other) => panic!("{sql}: {other}"),
    }
}

/// Returns the entry of the list that explains a difference.
fn reason<'r>(list: &'r [(&str, &str)], what: &str) -> Option<&'r str> {
    list.iter().find(|(known, _)| what.starts_with(known)).map(|(known, _)| *known)
}

fn servers() -> (Cohort, Maria) {
    // Tables are created hundreds of times, and durability does not matter here.
    let mariadb = Maria::new(&[
        "--log-bin=b",
        "--log-bin-trust-function-creators=1",
        "--default-storage-engine=MyISAM",
        "--sync-frm=0",
        "--plugin-load-add=server_audit",
    ]);
    // As on MariaDB, the server's files are outside of this directory.
    let options = ["--secure-file-priv=/usr", "--log-bin-trust-function-creators=1"];
    (Cohort::new(&options), mariadb)
}

fn cohort_options(server: &Cohort) -> OptsBuilder {
    let socket = server.socket.to_str().expect("a path of ASCII");
    OptsBuilder::new().socket(Some(socket)).user(Some("root")).prefer_socket(false)
}

#[test]
fn statements_are_allowed_and_refused_as_mariadb_does() {
    let (server, mariadb) = servers();
    let mut ours = Side::new(cohort_options(&server));
    let mut theirs = Side::new(mariadb.options());
    theirs.forget_public();
    let (mut differing, mut seen) = (Vec::new(), BTreeSet::new());
    for account in accounts() {
        ours.make(&account);
        theirs.make(&account);
        let (mut here, mut there) = (ours.enter(&account), theirs.enter(&account));
        for (kind, sql) in statements() {
            let left = ours.ask(&account, &mut here, kind, sql);
            let right = theirs.ask(&account, &mut there, kind, sql);
            if left == right {
                continue;
            }
            match reason(DIFFERENCES, sql) {
                Some(known) => drop(seen.insert(known)),
                None => differing.push(format!("{}: {sql}\n  {left:?}\n  MariaDB: {right:?}", account.name)),
            }
        }
    }
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
    let gone: Vec<&str> = DIFFERENCES.iter().map(|(known, _)| *known).filter(|k| !seen.contains(k)).collect();
    assert!(gone.is_empty(), "these do not differ any more: {gone:?}");
}

#[test]
fn every_setting_is_set_by_whom_mariadb_lets() {
    let (server, mariadb) = servers();
    let mut ours = Side::new(cohort_options(&server));
    let mut theirs = Side::new(mariadb.options());
    theirs.forget_public();
    let (mut differing, mut seen) = (Vec::new(), BTreeSet::new());
    for account in accounts() {
        ours.make(&account);
        theirs.make(&account);
        let (mut here, mut there) = (ours.enter(&account), theirs.enter(&account));
        for (scope, word) in [(Scope::Global, "GLOBAL"), (Scope::Session, "SESSION")] {
            for name in VarId::shown().map(|id| id.setting().name) {
                let sql = format!("SET {word} {name} = @@{}.{name}", word.to_lowercase());
                let right = answer(&mut there, Kind::Plain, &sql);
                let left = answer(&mut here, Kind::Plain, &sql);
                let is_ours_alone = right.code == 1193;
                if left == right || is_ours_alone {
                    continue;
                }
                match reason(VARIABLE_DIFFERENCES, &format!("{word} {name}")) {
                    Some(known) => drop(seen.insert(known)),
                    None => {
                        let (left, right) = (left.code, right.code);
                        differing.push(format!(
                            "{}: {word} {name} ({scope:?}): {left}, MariaDB {right}",
                            account.name
                        ));
                    }
                }
            }
        }
    }
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
    let all = VARIABLE_DIFFERENCES.iter().map(|(known, _)| *known);
    let gone: Vec<&str> = all.filter(|known| !seen.contains(known)).collect();
    assert!(gone.is_empty(), "these do not differ any more: {gone:?}");
}
