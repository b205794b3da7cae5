//! Views and sessions: privileges, changes of a view, binary log events.

mod world;

use cohort_binlog::event::Event;
use world::{Client, Server};

fn server() -> (Server, Client) {
    let mut server = Server::open(&world::disk()).expect("opens");
    let mut root = server.connect();
    for sql in [
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT PRIMARY KEY, a INT)",
        "INSERT INTO app.t VALUES (1, 10), (2, 20)",
        "CREATE USER reader@localhost",
        "CREATE USER writer@localhost",
    ] {
        root.ok(sql);
    }
    (server, root)
}

fn refused(client: &mut Client, sql: &str, number: u32) {
    let answer = client.run(sql);
    assert!(answer.starts_with(&format!("ERROR {number} ")), "{sql}: {answer}");
}

#[test]
fn the_definer_reads_or_the_invoker() {
    let (mut server, mut root) = server();
    root.ok("CREATE VIEW app.v AS SELECT id, a FROM app.t");
    root.ok("CREATE SQL SECURITY INVOKER VIEW app.vi AS SELECT id FROM app.t");
    root.ok("CREATE VIEW app.over AS SELECT id FROM app.vi");
    for view in ["v", "vi", "over"] {
        root.ok(&format!("GRANT SELECT ON app.{view} TO reader@localhost"));
    }
    let mut reader = server.connect_as("reader", "localhost");
    refused(&mut reader, "SELECT * FROM app.t", 1142);
    assert_eq!(reader.run("SELECT a FROM app.v WHERE id = 1"), "a\n10\n");
    refused(&mut reader, "SELECT * FROM app.vi", 1356);
    // In a view with SQL SECURITY DEFINER, the invoker of inner views is that definer.
    assert_eq!(reader.run("SELECT MAX(id) FROM app.over"), "MAX(id)\n2\n");
    refused(&mut reader, "UPDATE app.v SET a = 1", 1142);
    refused(&mut reader, "INSERT INTO app.v VALUES (3, 30)", 1142);
    refused(&mut reader, "DELETE FROM app.v", 1142);
    refused(&mut reader, "CREATE VIEW app.w AS SELECT 1", 1142);
    refused(&mut reader, "SHOW CREATE VIEW app.v", 1142);
    root.ok("GRANT SELECT ON app.t TO reader@localhost");
    assert_eq!(reader.run("SELECT MAX(id) FROM app.vi"), "MAX(id)\n2\n");
    root.ok("REVOKE SELECT ON app.t FROM reader@localhost");
    refused(&mut reader, "SELECT MAX(id) FROM app.vi", 1356);
}

#[test]
fn a_definer_without_rights_makes_the_view_invalid() {
    let (mut server, mut root) = server();
    root.ok("CREATE DEFINER=writer@localhost VIEW app.v AS SELECT id, a FROM app.t");
    refused(&mut root, "SELECT * FROM app.v", 1356);
    root.ok("GRANT SELECT ON app.t TO writer@localhost");
    assert_eq!(root.run("SELECT a FROM app.v WHERE id = 2"), "a\n20\n");
    refused(&mut root, "UPDATE app.v SET a = 5 WHERE id = 2", 1356);
    refused(&mut root, "DELETE FROM app.v", 1356);
    refused(&mut root, "INSERT INTO app.v VALUES (9, 9)", 1356);
    root.ok("GRANT INSERT, UPDATE, DELETE ON app.t TO writer@localhost");
    root.ok("INSERT INTO app.v VALUES (9, 9)");
    root.ok("UPDATE app.v SET a = 5 WHERE id = 2");
    root.ok("DELETE FROM app.v WHERE id = 1");
    assert_eq!(root.run("SELECT * FROM app.t ORDER BY id"), "id | a\n2 | 5\n9 | 9\n");
    let mut writer = server.connect_as("writer", "localhost");
    refused(&mut writer, "CREATE DEFINER=root@localhost VIEW app.w AS SELECT 1", 1142);
    root.ok("GRANT CREATE VIEW ON app.* TO writer@localhost");
    refused(&mut writer, "CREATE DEFINER=root@localhost VIEW app.w AS SELECT 1", 1227);
    writer.ok("CREATE VIEW app.w AS SELECT id FROM app.t");
    root.ok("DROP USER writer@localhost");
    refused(&mut root, "SELECT * FROM app.w", 1449);
}

#[test]
fn kept_plans_see_that_a_view_changed() {
    let (mut server, mut root) = server();
    root.ok("CREATE VIEW app.v AS SELECT a FROM app.t WHERE id = 1");
    let mut other = server.connect();
    other.ok("PREPARE s FROM 'SELECT a FROM app.v WHERE a > ?'");
    other.ok("SET @n = 1");
    for _ in 0..2 {
        assert_eq!(other.run("SELECT a FROM app.v WHERE a > 1"), "a\n10\n");
        assert_eq!(other.run("EXECUTE s USING @n"), "a\n10\n");
    }
    root.ok("CREATE OR REPLACE VIEW app.v AS SELECT a + 1 AS a FROM app.t WHERE id = 2");
    assert_eq!(other.run("SELECT a FROM app.v WHERE a > 1"), "a\n21\n");
    assert_eq!(other.run("EXECUTE s USING @n"), "a\n21\n");
    root.ok("DROP VIEW app.v");
    refused(&mut other, "SELECT a FROM app.v WHERE a > 1", 1146);
    refused(&mut other, "EXECUTE s USING @n", 1146);
    root.ok("CREATE TABLE app.v (a INT)");
    root.ok("INSERT INTO app.v VALUES (7)");
    assert_eq!(other.run("SELECT a FROM app.v WHERE a > 1"), "a\n7\n");
}

#[test]
fn the_binary_log_names_definer_and_algorithm() {
    let disk = world::disk();
    let mut server = Server::open(&disk).expect("opens");
    let mut root = server.connect();
    root.ok("CREATE TABLE t (a INT)");
    root.ok("create or replace view v (x, y) as  select a, 1 from t where a > 2 with check option");
    root.ok("alter view v as select 2");
    root.ok("drop view v");
    let mut texts = Vec::new();
    for path in server.binlog() {
        let path = std::path::Path::new(&path);
        let mut reader = cohort_binlog::EventReader::open(&disk, path).expect("opens");
        while let Some(raw) = reader.next_event().expect("sound") {
            if let Ok(Event::Query(query)) = reader.decode(&raw) {
                texts.push(String::from_utf8_lossy(&query.sql).into_owned());
            }
        }
    }
    let clauses = "ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW";
    assert_eq!(
        texts[1..],
        [
            format!(
                "CREATE OR REPLACE {clauses} `v`(`x`, `y`) AS select a, 1 from t where a > 2 with check option"
            ),
            format!("ALTER {clauses} `v` AS select 2"),
            "drop view v".to_owned(),
        ]
    );
}

#[test]
fn derived_tables_are_merged_or_get_the_conditions() {
    let (_server, mut root) = server();
    root.ok("CREATE VIEW app.v AS SELECT id AS k, a + 1 AS b FROM app.t WHERE a < 100");
    root.ok("CREATE ALGORITHM=TEMPTABLE VIEW app.apart AS SELECT id AS k FROM app.t");
    // Returns the keys in the plan.
    let mut keys = |sql: &str| -> Vec<String> {
        let plan = root.run(&format!("EXPLAIN {sql}"));
        let at = plan.lines().next().and_then(|names| names.split(" | ").position(|name| name == "key"));
        let at = at.unwrap_or_else(|| panic!("{sql}: {plan}"));
        plan.lines().skip(1).map(|line| line.split(" | ").nth(at).unwrap_or("").to_owned()).collect()
    };
    assert_eq!(keys("SELECT b FROM app.v WHERE k = 1"), ["PRIMARY"]);
    let twice = "SELECT d.x FROM (SELECT k AS x FROM (SELECT id AS k FROM app.t) e) d WHERE d.x = 2";
    assert_eq!(keys(twice), ["PRIMARY"]);
    for sql in [
        "SELECT * FROM (SELECT id, COUNT(*) AS n FROM app.t GROUP BY id) d WHERE d.id = 1",
        "SELECT * FROM (SELECT DISTINCT id FROM app.t) d WHERE d.id = 1",
        "SELECT * FROM (SELECT id FROM app.t WHERE a = 1 UNION SELECT id FROM app.t) d WHERE d.id = 1",
        "SELECT * FROM app.apart WHERE k = 1",
    ] {
        let found = keys(sql);
        assert!(found.iter().any(|key| key == "PRIMARY"), "{sql}: {found:?}");
    }
    for sql in [
        "SELECT * FROM (SELECT a, COUNT(*) AS n FROM app.t GROUP BY a) d WHERE d.n = 1",
        "SELECT * FROM (SELECT a, id FROM app.t LIMIT 5) d WHERE d.id = 1",
        "SELECT * FROM (SELECT a, MAX(id) AS id FROM app.t) d WHERE d.id = 1",
    ] {
        let found = keys(sql);
        assert!(found.iter().all(|key| key != "PRIMARY"), "{sql}: {found:?}");
    }
}

#[test]
fn values_named_by_windows_are_kept_in_full() {
    let (mut server, mut root) = server();
    let _ = &mut server;
    root.ok("CREATE DATABASE other");
    root.ok("USE app");
    root.ok(
        "CREATE VIEW v AS SELECT id, SUM(a) OVER (PARTITION BY id) p, SUM((SELECT MAX(a) FROM t)) OVER () s, \
         COUNT(*) OVER (w ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) c FROM t \
         WINDOW w AS (ORDER BY a DESC), v AS (w) ORDER BY RANK() OVER v",
    );
    let text = "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_NAME = 'v'";
    assert_eq!(
        root.run(text),
        "VIEW_DEFINITION\nselect `app`.`t`.`id` AS `id`,sum(`app`.`t`.`a`) over ( partition by `app`.`t`.`id`) AS \
         `p`,sum((select max(`app`.`t`.`a`) from `app`.`t`)) over () AS `s`,count(0) over ( order by \
         `app`.`t`.`a` desc rows between 1 preceding  and 2 following ) AS `c` from `app`.`t` order by rank() \
         over ( order by `app`.`t`.`a` desc)\n"
    );
    root.ok("USE other");
    let rows = "id | p | s | c\n2 | 20 | 40 | 2\n1 | 10 | 40 | 2\n";
    assert_eq!(root.run("SELECT * FROM app.v"), rows);
    refused(&mut root, "CREATE VIEW app.w AS SELECT SUM(@x) OVER () FROM app.t", 1351);
    refused(&mut root, "CREATE VIEW app.w AS SELECT 1 FROM app.t WINDOW w AS (ORDER BY @x)", 1351);
    for clause in ["CHECK (ROW_NUMBER() OVER () > 0)", "DEFAULT (MAX(1))", "CHECK (SUM(a) OVER () > 0)"] {
        refused(&mut root, &format!("CREATE TABLE app.x (a INT {clause})"), 1901);
    }
}

#[test]
fn a_condition_does_not_change_what_is_counted_below_it() {
    let (_server, mut root) = server();
    root.ok("SET @r := 0");
    let sql = "SELECT * FROM (SELECT id, @r := @r + 1 rn FROM app.t ORDER BY id) q WHERE id > 1";
    assert_eq!(root.run(sql), "id | rn\n2 | 2\n");
}

#[test]
fn an_assignment_reads_what_those_before_it_have_stored() {
    let (_server, mut root) = server();
    root.ok("CREATE TABLE app.j (id INT PRIMARY KEY, a INT DEFAULT 7, b DECIMAL(6,2), c VARCHAR(40), d VARCHAR(40))");
    root.ok("CREATE VIEW app.w AS SELECT id, a AS x, a AS y, a + 1 AS z, b FROM app.j");
    let mut row = |sql: &str| {
        root.ok("REPLACE INTO app.j VALUES (1, 1, 0, '', '')");
        root.ok(sql);
        root.run("SELECT a, b, c = d AND c <> '' AS e FROM app.j")
            .lines()
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    };
    let by_query = "WHERE id IN (SELECT 1)";
    for (set, expected) in [
        ("a = 1.6, b = a", "2 | 2.00 | 0"),
        ("c = UUID(), d = c", "1 | 0.00 | 1"),
        ("a = DEFAULT, b = a", "7 | 7.00 | 0"),
        ("a = a + 1, b = a", "2 | 2.00 | 0"),
        ("a = 5, a = a + 1, b = a + a", "6 | 12.00 | 0"),
        ("a = 5, b = (SELECT MAX(t.a) + j.a FROM app.t)", "5 | 25.00 | 0"),
        ("b = 1/3, a = b * 100", "33 | 0.33 | 0"),
    ] {
        for filter in [by_query, "WHERE id = 1", "WHERE id IN (SELECT 1) ORDER BY a LIMIT 1"] {
            assert_eq!(row(&format!("UPDATE app.j SET {set} {filter}")), expected, "{set} {filter}");
        }
    }
    for (set, expected) in
        [("x = 5, b = y", "5 | 5.00 | 0"), ("x = 5, b = z", "5 | 6.00 | 0"), ("b = x, x = 9", "9 | 1.00 | 0")]
    {
        assert_eq!(row(&format!("UPDATE app.w SET {set}")), expected, "{set}");
    }
}
