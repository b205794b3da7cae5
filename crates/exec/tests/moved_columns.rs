//! Instant changes of columns: after columns are added, dropped and moved without a copy of the rows, a table
//! must have the same contents as one whose rows are copied each time. Tested across crashes, with cached
//! plans and with older read views.

mod world;

use cohort_types::Value;
use world::random::Random;
use world::{Client, Server};

/// Types with sample values.
const TYPES: [(&str, &[&str]); 16] = [
    ("INT", &["0", "-7", "2147483647"]),
    ("BIGINT UNSIGNED", &["0", "18446744073709551615", "5"]),
    ("TINYINT", &["1", "-128"]),
    ("DECIMAL(12,3)", &["1.500", "-999999999.999", "0"]),
    ("DOUBLE", &["1.5e10", "-2.25"]),
    ("BIT(9)", &["b'101010101'", "b'1'"]),
    ("YEAR", &["1999", "2024"]),
    ("DATE", &["'2024-02-29'", "'1000-01-01'"]),
    ("TIME(2)", &["'-12:30:00.25'", "'800:00:00'"]),
    ("DATETIME(6)", &["'2024-02-29 23:59:59.999999'", "'1970-01-01 00:00:01'"]),
    ("ENUM('x','yy','zzz')", &["'x'", "'zzz'"]),
    ("UUID", &["'123e4567-e89b-12d3-a456-426655440000'"]),
    ("CHAR(5)", &["'a'", "''", "'größe'"]),
    ("VARCHAR(60)", &["'text'", "''", "'a longer text than others'"]),
    ("VARBINARY(9)", &["x'00ff00'", "''"]),
    ("MEDIUMTEXT", &["'t'", "REPEAT('long ', 300)", "REPEAT('longer than the short form ', 3000)"]),
];

#[derive(Clone)]
struct Column {
    name: String,
    /// Position in [`TYPES`].
    ty: usize,
    /// The declaration after the type.
    rest: String,
}

impl Column {
    fn declared(&self) -> String {
        format!("{} {}{}", self.name, TYPES[self.ty].0, self.rest)
    }
}

/// The tables `t`, whose rows are never copied, and `m`, whose rows are copied by each ALTER TABLE. In
/// addition to `id`, `a` and `g AS (a + 1)` in any position, they have random columns.
struct Tables {
    random: Random,
    columns: Vec<Column>,
    /// Names of the keys with their first columns.
    keys: Vec<(String, String)>,
    /// Number of generated names.
    names: usize,
    ids: usize,
}

/// Returns the definition and the contents of a table.
fn everything(client: &mut Client, table: &str) -> String {
    let columns = client.run(&format!(
        "SELECT ordinal_position, column_name, column_type, column_default, column_key \
         FROM information_schema.columns WHERE table_name = '{table}' ORDER BY 1"
    ));
    let defined = client.run(&format!("SHOW CREATE TABLE {table}"));
    let defined = defined.replace(&format!("{table} | CREATE TABLE `{table}`"), "CREATE TABLE");
    columns + &defined + &client.run(&format!("SELECT * FROM {table} ORDER BY id"))
}

impl Tables {
    fn make(client: &mut Client, seed: u64) -> Tables {
        let mut random = Random(seed);
        let key = random.of(&["PRIMARY KEY (id)", "UNIQUE KEY (id)"]);
        for table in ["t", "m"] {
            let columns = "id INT NOT NULL, a INT, g BIGINT AS (a + 1) STORED";
            client.ok(&format!("CREATE OR REPLACE TABLE {table} ({columns}, {key}, KEY g (g, a))"));
        }
        Tables { random, columns: Vec::new(), keys: Vec::new(), names: 0, ids: 0 }
    }

    /// Runs a statement on both tables; `#` stands for the table name.
    fn both(&self, client: &mut Client, sql: &str) {
        let [t, m] = ["t", "m"].map(|table| client.run(&sql.replace('#', table)));
        assert_eq!(t, m, "{sql}");
        assert!(!t.starts_with("ERROR"), "{sql}: {t}");
    }

    /// Alters both tables; only `m` copies its rows.
    fn alter(&self, client: &mut Client, actions: &str, algorithm: &str) {
        let copied = client.run(&format!("ALTER TABLE m {actions}, ALGORITHM=COPY"));
        assert!(copied.starts_with("OK"), "{actions}: {copied}");
        // The clause is refused where MariaDB would have to copy, although this server does not copy.
        let clause = match actions.contains("STORED") {
            true => String::new(),
            false => format!(", ALGORITHM={algorithm}"),
        };
        let instant = client.run(&format!("ALTER TABLE t {actions}{clause}"));
        assert_eq!(instant, "OK (Records: 0  Duplicates: 0  Warnings: 0)\n", "{actions}");
    }

    fn value(&mut self, column: &Column) -> String {
        match self.random.one_in(5) && !column.rest.contains("NOT NULL") {
            true => "NULL".to_owned(),
            false => self.random.of(TYPES[column.ty].1).to_owned(),
        }
    }

    /// Returns a random position for a column.
    fn place(&mut self, column: &str) -> String {
        let mut others = vec!["id", "a", "g"];
        others.extend(self.columns.iter().map(|column| &*column.name));
        others.retain(|other| *other != column);
        match self.random.one_in(3) {
            true => " FIRST".to_owned(),
            false => format!(" AFTER {}", self.random.of(&others)),
        }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("c{}", self.names)
    }

    fn added(&mut self) -> String {
        let ty = self.random.below(TYPES.len());
        let default = self.random.of(TYPES[ty].1);
        let default = if default.starts_with("REPEAT") { "'constant'" } else { default };
        let rest = match self.random.below(3) {
            0 => format!(" DEFAULT {default}"),
            1 => format!(" NOT NULL DEFAULT {default}"),
            _ => String::new(),
        };
        let column = Column { name: self.name(), ty, rest };
        let place = if self.random.one_in(3) { String::new() } else { self.place("") };
        self.columns.push(column.clone());
        format!("ADD {}{place}", column.declared())
    }

    fn action(&mut self) -> String {
        let free = |tables: &Tables, at: usize| {
            let column = &tables.columns[at].name;
            tables.keys.iter().all(|(_, keyed)| keyed != column)
        };
        let at = (!self.columns.is_empty()).then(|| self.random.below(self.columns.len()));
        match (self.random.below(9), at) {
            (0..=2, _) | (_, None) => self.added(),
            (3 | 4, Some(at)) if free(self, at) => format!("DROP {}", self.columns.remove(at).name),
            (5, Some(at)) => {
                let column = self.columns[at].clone();
                format!("MODIFY {}{}", column.declared(), self.place(&column.name))
            }
            (6, Some(at)) => {
                let name = self.name();
                let old = std::mem::replace(&mut self.columns[at].name, name.clone());
                self.keys.iter_mut().filter(|key| key.1 == old).for_each(|key| key.1.clone_from(&name));
                let place = if self.random.one_in(2) { String::new() } else { self.place(&name) };
                format!("CHANGE {old} {}{place}", self.columns[at].declared())
            }
            _ => {
                let fixed = [("id", "INT NOT NULL"), ("a", "INT"), ("g", "BIGINT AS (a + 1) STORED")];
                let (name, ty) = self.random.of(&fixed);
                format!("MODIFY {name} {ty}{}", self.place(name))
            }
        }
    }

    fn change_keys(&mut self, client: &mut Client) {
        if self.keys.len() > 2 {
            let (key, _) = self.keys.remove(0);
            return self.alter(client, &format!("DROP KEY {key}"), "NOCOPY");
        }
        let free = |column: &&Column| {
            !TYPES[column.ty].0.ends_with("TEXT") && self.keys.iter().all(|(_, keyed)| *keyed != column.name)
        };
        let free: Vec<String> = self.columns.iter().filter(free).map(|column| column.name.clone()).collect();
        if free.is_empty() {
            return;
        }
        let column = free[self.random.below(free.len())].clone();
        let key = self.name();
        // Index entries are built from existing rows while a column is added.
        let added = self.added();
        self.alter(client, &format!("{added}, ADD KEY {key} ({column}, a)"), "INPLACE");
        self.keys.push((key, column));
    }

    fn write(&mut self, client: &mut Client) {
        let columns = self.columns.clone();
        match self.random.below(7) {
            0..=2 => {
                let names: String = columns.iter().map(|column| format!(", {}", column.name)).collect();
                let verb = self.random.of(&["INSERT", "REPLACE"]);
                let mut rows = Vec::new();
                for _ in 0..self.random.below(3) + 1 {
                    self.ids += 1;
                    let id = if verb == "REPLACE" { self.random.below(self.ids) } else { self.ids };
                    let values: String =
                        columns.iter().map(|column| format!(", {}", self.value(column))).collect();
                    rows.push(format!("({id}, {}{values})", self.random.below(50)));
                }
                self.both(client, &format!("{verb} INTO # (id, a{names}) VALUES {}", rows.join(", ")));
            }
            3 => {
                // Columns that are not named get their defaults.
                self.ids += 1;
                let id = self.ids;
                self.both(client, &format!("INSERT INTO # (id, a) VALUES ({id}, NULL)"));
            }
            4 => {
                let below = self.random.below(self.ids + 1);
                self.both(client, &format!("DELETE FROM # WHERE id BETWEEN {below} AND {below} + 1"));
            }
            _ => {
                let (from, a) = (self.random.below(self.ids + 1), self.random.below(50));
                let set = columns.iter().filter(|_| self.random.one_in(2)).cloned().collect::<Vec<_>>();
                let set: String =
                    set.iter().map(|column| format!(", {} = {}", column.name, self.value(column))).collect();
                let end = self.random.of(&["COMMIT", "COMMIT", "ROLLBACK"]);
                client.ok("BEGIN");
                self.both(
                    client,
                    &format!("UPDATE # SET a = {a}{set} WHERE id BETWEEN {from} AND {from} + 4"),
                );
                client.ok(end);
            }
        }
    }

    /// Checks that both tables have equal contents, whatever the access path.
    fn check(&mut self, client: &mut Client) {
        assert_eq!(everything(client, "t"), everything(client, "m"));
        for table in ["t", "m"] {
            let checked = client.run(&format!("CHECK TABLE {table} EXTENDED"));
            assert!(checked.ends_with("| check | status | OK\n"), "{checked}");
        }
        self.both(client, "SELECT COUNT(*), SUM(g), MAX(a) FROM #");
        self.both(client, "SELECT g, a FROM # FORCE INDEX (g) WHERE g > 3 ORDER BY g, a");
        self.both(client, "SELECT a % 7, COUNT(*), SUM(g * 2) FROM # WHERE a < 40 GROUP BY 1 ORDER BY 1");
        for (key, column) in self.keys.clone() {
            self.both(
                client,
                &format!("SELECT {column}, a, id FROM # FORCE INDEX ({key}) ORDER BY {column}, a, id"),
            );
        }
        for column in self.columns.clone() {
            let name = column.name;
            self.both(client, &format!("SELECT COUNT({name}), MIN({name}), MAX({name}) FROM #"));
            self.both(client, &format!("SELECT {name}, id FROM # ORDER BY {name} DESC, id LIMIT 4"));
            self.both(
                client,
                &format!("SELECT x.id FROM # x JOIN # y ON x.{name} = y.{name} ORDER BY 1 LIMIT 9"),
            );
        }
    }
}

fn is_as_shown(server: &Server, table: &str) -> bool {
    server.db.catalog().table("test", table).expect("there").storage.is_empty()
}

#[test]
fn rows_that_stay_are_rows_that_are_copied() {
    let mut moved = 0;
    for seed in 0..4 {
        let disk = world::disk();
        let mut server = Server::open(&disk).expect("an empty disk opens");
        let mut client = server.connect();
        let mut tables = Tables::make(&mut client, seed);
        for step in 0..60 {
            for _ in 0..tables.random.below(4) {
                tables.write(&mut client);
            }
            let mut actions = Vec::new();
            match tables.random.below(8) {
                0 => tables.change_keys(&mut client),
                1 => {
                    // Each change builds on those before it.
                    let (first, second) = (tables.added(), tables.added());
                    actions.extend([first, second]);
                }
                _ => actions.push(tables.action()),
            }
            if !actions.is_empty() {
                tables.alter(&mut client, &actions.join(", "), "INSTANT");
            }
            moved += usize::from(!is_as_shown(&server, "t"));
            assert!(is_as_shown(&server, "m"), "its rows were copied");
            tables.check(&mut client);
            match step % 20 {
                9 => {
                    drop((client, server));
                    server = Server::open(&disk).expect("recovers");
                    client = server.connect();
                    tables.check(&mut client);
                }
                14 => server.db.commit.checkpoint().expect("written"),
                19 => {
                    client.ok("ALTER TABLE t FORCE");
                    assert!(is_as_shown(&server, "t"));
                    tables.check(&mut client);
                }
                _ => {}
            }
        }
    }
    assert!(moved > 150, "{moved}");
}

#[test]
fn a_view_from_before_shows_its_rows_as_the_table_is_now() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let (mut client, mut reader) = (server.connect(), server.connect());
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY (a))");
    client.ok("INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three')");
    for change in
        ["ADD c INT DEFAULT 5 FIRST", "DROP b", "MODIFY a INT FIRST", "DROP c, ADD c CHAR(3) AFTER a"]
    {
        reader.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
        client.ok(&format!("ALTER TABLE t {change}, ALGORITHM=INSTANT"));
        let rows = client.run("SELECT * FROM t ORDER BY id");
        client.ok("UPDATE t SET a = a + 1");
        client.ok("DELETE FROM t WHERE id = 2");
        assert_eq!(reader.run("SELECT * FROM t ORDER BY id"), rows, "{change}");
        assert_eq!(reader.run("SELECT COUNT(*) FROM t WHERE a % 10 = 0"), "COUNT(*)\n3\n", "{change}");
        reader.ok("COMMIT");
        client.ok("REPLACE INTO t (id, a) VALUES (1, 10), (2, 20), (3, 30)");
    }
}

#[test]
fn prepared_statements_are_planned_again() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)");
    let prepare =
        |client: &mut Client, sql: &str| client.session.prepare(sql.as_bytes()).expect("prepares").id;
    let insert = prepare(&mut client, "INSERT INTO t (id, b) VALUES (?, ?)");
    let all = prepare(&mut client, "SELECT * FROM t WHERE id = ?");
    let update = prepare(&mut client, "UPDATE t SET b = b + 1 WHERE id = ?");
    client.execute(insert, &[Value::Int(1), Value::Int(7)]);
    assert_eq!(client.execute(all, &[Value::Int(1)]), "id | a | b\n1 | NULL | 7\n");
    let changes = [
        ("MODIFY b INT FIRST", "b | id | a\n8 | 1 | NULL\n"),
        ("DROP a", "b | id\n9 | 1\n"),
        ("ADD a INT DEFAULT 3 AFTER b", "b | a | id\n10 | 3 | 1\n"),
    ];
    for (n, (change, answer)) in changes.into_iter().enumerate() {
        client.ok(&format!("ALTER TABLE t {change}, ALGORITHM=INSTANT"));
        assert!(client.execute(update, &[Value::Int(1)]).starts_with("OK 1"), "{change}");
        assert_eq!(client.execute(all, &[Value::Int(1)]), answer, "{change}");
        assert!(client.execute(insert, &[Value::Int(10 + n as i64), Value::Int(0)]).starts_with("OK 1"));
    }
    assert_eq!(
        client.run("SELECT SUM(b), SUM(a), COUNT(*) FROM t"),
        "SUM(b) | SUM(a) | COUNT(*)\n10 | 12 | 4\n"
    );
}

#[test]
fn a_name_that_comes_again_is_another_column() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY CHECK (a > 0), a INT, g INT AS (a + 1) STORED, KEY (a))");
    client.ok("INSERT INTO t (id, a) VALUES (1, 10)");
    // Generated columns and constraints must use the new column.
    client.ok("ALTER TABLE t DROP a, ADD a INT DEFAULT 4 FIRST");
    assert_eq!(client.run("SELECT * FROM t"), "a | id | g\n4 | 1 | 5\n");
    assert!(client.run("INSERT INTO t (id, a) VALUES (2, -4)").starts_with("ERROR 4025"));
    // As in MariaDB, a rebuild does not check the rows that are there.
    client.ok("ALTER TABLE t DROP a, ADD a INT DEFAULT -4");
    assert_eq!(client.run("SELECT * FROM t"), "id | g | a\n1 | -3 | -4\n");
    assert!(client.run("INSERT INTO t (id) VALUES (2)").starts_with("ERROR 4025"));
    client.ok("ALTER TABLE t DROP g, ADD g INT DEFAULT 9 FIRST, ALGORITHM=INSTANT");
    assert_eq!(client.run("SELECT * FROM t"), "g | id | a\n9 | 1 | -4\n");
}

#[test]
fn places_of_dropped_columns_do_not_become_too_many() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    client.ok("INSERT INTO t VALUES (1)");
    let mut changes = 0;
    while client.run("ALTER TABLE t ADD a INT DEFAULT 7 FIRST, ALGORITHM=INSTANT").starts_with("OK") {
        client.ok("ALTER TABLE t DROP a, ALGORITHM=INSTANT");
        changes += 1;
    }
    assert_eq!(changes, 1016, "as many columns as a table may have, those that were dropped among them");
    client.ok("REPLACE INTO t VALUES (1), (2)");
    client.ok("ALTER TABLE t ADD a INT DEFAULT 7 FIRST");
    assert!(is_as_shown(&server, "t"), "the rows were copied");
    assert_eq!(client.run("SELECT * FROM t"), "a | id\n7 | 1\n7 | 2\n");
}

#[test]
fn tables_without_rows_have_no_places_of_dropped_columns() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)");
    client.ok("INSERT INTO t VALUES (1, 2, 3)");
    client.ok("ALTER TABLE t DROP a, ADD c INT DEFAULT 4 FIRST");
    client.ok("CREATE TABLE u LIKE t");
    client.ok("INSERT INTO u VALUES (7, 8, 9)");
    client.ok("RENAME TABLE t TO v");
    assert_eq!(client.run("SELECT * FROM v UNION ALL SELECT * FROM u"), "c | id | b\n4 | 1 | 3\n7 | 8 | 9\n");
    assert!(is_as_shown(&server, "u") && !is_as_shown(&server, "v"));
    client.ok("TRUNCATE TABLE v");
    client.ok("INSERT INTO v VALUES (1, 2, 3)");
    assert!(is_as_shown(&server, "v"));
    assert_eq!(client.run("SELECT * FROM v"), "c | id | b\n1 | 2 | 3\n");
}

#[test]
fn changes_not_allowed_inplace_copy_the_table() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    for (allowed, instant) in [("never", 0), ("add_last", 1), ("add_drop_reorder", 4)] {
        client.ok(&format!("SET GLOBAL innodb_instant_alter_column_allowed = {allowed}"));
        client.ok("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a INT)");
        client.ok("INSERT INTO t VALUES (1, 2)");
        for (n, change) in
            ["ADD b INT", "ADD c INT FIRST", "MODIFY a INT FIRST", "DROP b"].into_iter().enumerate()
        {
            for algorithm in ["INSTANT", "NOCOPY"] {
                let refused = format!(
                    "ERROR 1846 (0A000): ALGORITHM={algorithm} is not supported. Reason: \
                     innodb_instant_alter_column_allowed={allowed}. Try ALGORITHM=INPLACE\n"
                );
                if n >= instant {
                    let answer = client.run(&format!("ALTER TABLE t {change}, ALGORITHM={algorithm}"));
                    assert_eq!(answer, refused, "{change}");
                }
            }
            let rows = u32::from(n >= instant);
            let answer = client.run(&format!("ALTER TABLE t {change}"));
            let affected = if rows > 0 { " 1" } else { "" };
            assert_eq!(
                answer,
                format!("OK{affected} (Records: {rows}  Duplicates: 0  Warnings: 0)\n"),
                "{change}"
            );
        }
        assert_eq!(client.run("SELECT * FROM t"), "a | c | id\n2 | NULL | 1\n");
    }
}
