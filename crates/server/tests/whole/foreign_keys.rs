//! Foreign keys compared with a real MariaDB: random tables and changes, and dumps in both directions.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::scale::{Dice, long_or};
use crate::support::{Cohort, Maria, rows, run, text};

const TABLES: [&str; 4] = ["t0", "t1", "t2", "t3"];
const ACTIONS: [&str; 5] = ["RESTRICT", "NO ACTION", "CASCADE", "SET NULL", "CASCADE"];

/// Generates statements for the tables.
struct Script {
    dice: Dice,
}

impl Script {
    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.dice.below(of.len())]
    }

    fn key(&mut self) -> usize {
        self.dice.below(6) + 1
    }

    fn value(&mut self) -> String {
        match self.dice.below(7) {
            0 => "NULL".to_owned(),
            n => n.to_string(),
        }
    }

    fn row(&mut self) -> String {
        format!("({}, {}, {}, {}, 0)", self.key(), self.value(), self.value(), self.value())
    }

    /// Generates the tables, the foreign keys between them, and rows.
    fn definitions(&mut self) -> Vec<String> {
        let table = |t: &&str| {
            format!(
                "CREATE OR REPLACE TABLE {t} (id INT PRIMARY KEY, u INT, a INT, b INT, v INT, UNIQUE (u), KEY (a))"
            )
        };
        let mut all = vec!["SET foreign_key_checks = 0".to_owned()];
        all.extend(TABLES.iter().map(table));
        for n in 0..self.dice.below(5) + 2 {
            let (child, parent) = (self.pick(&TABLES), self.pick(&TABLES));
            let (on_delete, on_update) = (self.pick(&ACTIONS), self.pick(&ACTIONS));
            let (here, there) = match self.dice.below(7) {
                0 => ("a, b", "a, id"),
                _ => (self.pick(&["a", "b", "a", "b", "u", "id"]), self.pick(&["id", "id", "u", "a"])),
            };
            all.push(format!(
                "ALTER TABLE {child} ADD CONSTRAINT f{n} FOREIGN KEY ({here}) REFERENCES {parent} ({there}) \
                 ON DELETE {on_delete} ON UPDATE {on_update}"
            ));
        }
        all.push("SET foreign_key_checks = 1".to_owned());
        // Some of the rows have their parents.
        for table in TABLES.iter().chain(&TABLES) {
            all.extend((0..3).map(|_| format!("INSERT IGNORE INTO {table} VALUES {}", self.row())));
        }
        all
    }

    fn change(&mut self) -> String {
        let (table, ignore) = (self.pick(&TABLES), self.pick(&["", "", "IGNORE "]));
        let (key, value, row) = (self.key(), self.value(), self.row());
        match self.dice.below(20) {
            0..=5 => format!("INSERT {ignore}INTO {table} VALUES {row}"),
            6 => format!("INSERT {ignore}INTO {table} VALUES {row}, {}", self.row()),
            7 => format!("REPLACE INTO {table} VALUES {row}"),
            8 | 9 => {
                let column = self.pick(&["u", "a", "b", "id"]);
                format!("INSERT {ignore}INTO {table} VALUES {row} ON DUPLICATE KEY UPDATE {column} = {key}")
            }
            10..=12 => {
                let (column, to) = (self.pick(&["id", "u", "a", "b"]), self.key());
                format!("UPDATE {ignore}{table} SET {column} = {to}, v = v + 1 WHERE id = {key}")
            }
            13 => {
                let column = self.pick(&["u", "a", "b"]);
                format!("UPDATE {ignore}{table} SET {column} = {value} WHERE id <= {key} ORDER BY id")
            }
            14..=16 => format!("DELETE {ignore}FROM {table} WHERE id = {key}"),
            17 => format!("DELETE {ignore}FROM {table} WHERE id <= {key} ORDER BY id"),
            _ => self.pick(&["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s"]).to_owned(),
        }
    }
}

/// Returns the outcome of a statement. If several keys refuse a row, the servers may report different ones,
/// because MariaDB checks index by index.
fn outcome(client: &mut Conn, statement: &str) -> String {
    match client.query_drop(statement) {
        Ok(()) => format!("{} rows, {} warnings", client.affected_rows(), client.warnings()),
        Err(mysql::Error::MySqlError(error)) if [1062, 1451, 1452, 1761].contains(&error.code) => {
            "refused".to_owned()
        }
        Err(mysql::Error::MySqlError(error)) => format!("error {}", error.code),
        Err(other) => panic!("{statement}: {other}"),
    }
}

fn contents(client: &mut Conn) -> String {
    TABLES.iter().map(|table| rows(client, &format!("SELECT * FROM {table} ORDER BY id")) + "\n").collect()
}

#[test]
fn random_changes_end_as_in_mariadb() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mariadb = Maria::new(&[]);
    let (mut ours, mut theirs) = (server.client(), mariadb.client());
    for client in [&mut ours, &mut theirs] {
        client.query_drop("CREATE DATABASE d").expect("made");
        client.query_drop("USE d").expect("there");
    }
    let first = long_or(u64::from(std::process::id()) * 1000, 1);
    // The first has keys from NOT NULL columns to nullable columns, ON UPDATE CASCADE.
    for seed in std::iter::once(16_650_016).chain(first..first + long_or(200, 4)) {
        let mut script = Script { dice: Dice::new(seed) };
        let mut said = script.definitions();
        for statement in &said {
            let (here, there) = (outcome(&mut ours, statement), outcome(&mut theirs, statement));
            assert_eq!(here, there, "seed {seed}: {statement}");
        }
        for _ in 0..60 {
            let statement = script.change();
            let (here, there) = (outcome(&mut ours, &statement), outcome(&mut theirs, &statement));
            said.push(statement);
            let script_text = || format!("seed {seed}:\n{}", said.join(";\n"));
            assert_eq!(here, there, "{}", script_text());
            assert_eq!(contents(&mut ours), contents(&mut theirs), "{}", script_text());
        }
        for client in [&mut ours, &mut theirs] {
            client.query_drop("ROLLBACK").expect("ended");
        }
    }
}

#[test]
fn a_dump_with_foreign_keys_goes_there_and_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mariadb = Maria::new(&[]);
    let made = "CREATE DATABASE shop CHARACTER SET utf8mb4; USE shop;
        CREATE TABLE zone (id INT PRIMARY KEY, name VARCHAR(20), UNIQUE (name));
        CREATE TABLE account (id INT PRIMARY KEY, boss INT, zone VARCHAR(30),
            FOREIGN KEY (boss) REFERENCES account (id) ON DELETE SET NULL,
            CONSTRAINT `of zone` FOREIGN KEY (zone) REFERENCES zone (name) ON UPDATE CASCADE);
        CREATE TABLE bill (account INT, n INT, PRIMARY KEY (account, n),
            FOREIGN KEY (account) REFERENCES account (id) ON DELETE CASCADE ON UPDATE NO ACTION);
        CREATE TABLE a_line (bill INT, n INT, nth INT, KEY other (nth),
            FOREIGN KEY (bill, n) REFERENCES bill (account, n));
        INSERT INTO zone VALUES (1, 'north'), (2, 'söuth');
        INSERT INTO account VALUES (1, NULL, 'north'), (2, 1, 'söuth'), (3, 3, NULL);
        INSERT INTO bill VALUES (1, 1), (1, 2), (3, 1);
        INSERT INTO a_line VALUES (1, 2, 1), (1, 2, 2), (NULL, 7, 3);";
    mariadb.sql(made);
    let (there, here) =
        (format!("--socket={}", mariadb.socket.display()), format!("--socket={}", server.socket.display()));
    let dump = |socket: &str| {
        let arguments = ["--no-defaults", "--user=root", socket, "--compact", "--databases", "shop"];
        let output = run("mariadb-dump", &arguments);
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let theirs = dump(&there);
    let load = |socket: &str, dumped: &str| {
        let path = folder.path().join("dump.sql");
        let off = "SET NAMES utf8mb4; SET foreign_key_checks = 0; DROP DATABASE IF EXISTS shop;\n";
        std::fs::write(&path, format!("{off}{dumped}")).expect("written");
        let source = format!("source {}", path.display());
        let output = run("mariadb", &["--no-defaults", "--user=root", socket, "-e", &source]);
        assert!(output.status.success(), "{}", text(&output));
    };
    load(&here, &theirs);
    let ours = dump(&here);
    assert_eq!(ours, theirs, "dumped here");
    load(&there, &ours);
    assert_eq!(dump(&there), theirs, "loaded there");
    // The loaded constraints are enforced.
    let mut client = server.client();
    for refused in ["INSERT INTO shop.bill VALUES (9, 9)", "DELETE FROM shop.account WHERE id = 1"] {
        assert!(client.query_drop(refused).is_err(), "{refused}");
    }
    client.query_drop("DELETE FROM shop.account WHERE id = 3").expect("its bill follows");
    assert_eq!(rows(&mut client, "SELECT COUNT(*) FROM shop.bill"), "2\n");
}

/// A constraint is part of the child's description: after a crash it exists exactly if its statement
/// committed.
#[test]
fn foreign_keys_outlive_a_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.client();
    for statement in [
        "CREATE TABLE test.p (id INT PRIMARY KEY)",
        "CREATE TABLE test.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES test.p (id) ON DELETE CASCADE)",
        "INSERT INTO test.p VALUES (1), (2)",
        "INSERT INTO test.c VALUES (1, 1), (2, 2)",
        "DELETE FROM test.p WHERE id = 1",
        "RENAME TABLE test.p TO test.q",
    ] {
        client.query_drop(statement).expect(statement);
    }
    drop(client);
    server.kill_and_restart();
    let mut client = server.client();
    assert_eq!(rows(&mut client, "SELECT id FROM test.c"), "2\n");
    assert!(client.query_drop("INSERT INTO test.c VALUES (3, 3)").is_err());
    client.query_drop("DELETE FROM test.q").expect("the child follows");
    assert_eq!(rows(&mut client, "SELECT COUNT(*) FROM test.c"), "0\n");
}
