//! `Select_%`, `Sort_%` and `Created_tmp_%` of SHOW STATUS: counters of plan operations.

mod world;

use world::{Client, Server};

/// Returns the plan counters that are not 0, as `Select_scan=1`.
fn counts(client: &mut Client, scope: &str) -> String {
    let mut all = Vec::new();
    for names in ["Created_tmp%", "Select%", "Sort%"] {
        let answer = client.run(&format!("SHOW {scope} STATUS LIKE '{names}'"));
        let counts = answer.lines().skip(1).filter_map(|line| line.split_once(" | "));
        let counts = counts.filter(|(_, count)| *count != "0");
        all.extend(counts.map(|(name, count)| format!("{name}={count}")));
    }
    all.join(" ")
}

fn client(server: &mut Server) -> Client {
    let mut c = server.connect();
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(20), KEY (a))");
    c.ok("INSERT INTO t SELECT seq, seq % 10, seq % 7, CONCAT('x', seq) FROM seq_1_to_100");
    c.ok("CREATE TABLE u (id INT PRIMARY KEY, b INT, KEY (b))");
    c.ok("INSERT INTO u SELECT seq, seq % 20 FROM seq_1_to_50");
    c
}

/// Expected values are recorded from MariaDB 10.11.
#[test]
fn counters_of_plans_are_mariadbs() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut c = client(&mut server);
    for (statement, expected) in [
        ("SELECT 1", ""),
        ("SELECT * FROM t", "Select_scan=1"),
        ("SELECT * FROM t LIMIT 0", ""),
        ("SELECT * FROM t WHERE 1 = 0", ""),
        ("EXPLAIN SELECT * FROM t ORDER BY b", ""),
        ("SELECT * FROM t WHERE id = 3", ""),
        ("SELECT * FROM t WHERE a = 3", ""),
        ("SELECT * FROM t WHERE id BETWEEN 3 AND 9", "Select_range=1"),
        ("SELECT * FROM t WHERE id IN (3, 5, 7)", "Select_range=1"),
        ("SELECT a FROM t FORCE INDEX (a) ORDER BY a", "Select_scan=1"),
        ("SELECT * FROM t ORDER BY b", "Select_scan=1 Sort_rows=100 Sort_scan=1"),
        (
            "SELECT * FROM t ORDER BY b LIMIT 5",
            "Select_scan=1 Sort_priority_queue_sorts=1 Sort_rows=5 Sort_scan=1",
        ),
        ("SELECT * FROM t WHERE id < 20 ORDER BY b", "Select_range=1 Sort_range=1 Sort_rows=19"),
        ("SELECT * FROM t WHERE a = 3 ORDER BY b", "Sort_range=1 Sort_rows=10"),
        ("SELECT * FROM t ORDER BY id", "Select_scan=1"),
        (
            "SELECT b, COUNT(*) FROM t GROUP BY b",
            "Created_tmp_tables=1 Select_scan=1 Sort_rows=7 Sort_scan=1",
        ),
        ("SELECT b, COUNT(*) FROM t GROUP BY b ORDER BY NULL", "Created_tmp_tables=1 Select_scan=1"),
        ("SELECT COUNT(*) FROM t", "Select_scan=1"),
        ("SELECT DISTINCT b FROM t", "Created_tmp_tables=1 Select_scan=1"),
        ("SELECT t.id FROM t, u", "Select_full_join=1 Select_scan=1"),
        ("SELECT t.id FROM t LEFT JOIN u ON u.b = t.b WHERE t.id < 5", "Select_range=1"),
        ("SELECT 1 UNION ALL SELECT 2", ""),
        ("SELECT id FROM t UNION ALL SELECT id FROM u", "Select_scan=2"),
        (
            "SELECT id, RANK() OVER (ORDER BY b) FROM t",
            "Created_tmp_tables=1 Select_scan=1 Sort_rows=100 Sort_scan=1",
        ),
        ("SELECT b, COUNT(*) FROM t GROUP BY b WITH ROLLUP", "Select_scan=1 Sort_rows=100 Sort_scan=1"),
        ("SELECT TABLE_NAME FROM information_schema.TABLES LIMIT 1", "Created_tmp_tables=1 Select_scan=1"),
        ("SHOW TABLES", "Created_tmp_tables=1 Select_scan=1"),
        ("UPDATE t SET b = b + 1 WHERE c = 'x'", ""),
        ("UPDATE t SET b = b ORDER BY b LIMIT 1", "Sort_priority_queue_sorts=1 Sort_rows=1 Sort_scan=1"),
        ("CREATE TABLE f AS SELECT * FROM t", "Select_scan=1"),
    ] {
        c.ok("FLUSH STATUS");
        c.run(statement);
        assert_eq!(counts(&mut c, ""), expected, "{statement}");
    }
    let all = counts(&mut server.connect(), "GLOBAL");
    assert!(all.contains("Select_full_join=1") && all.contains("Sort_priority_queue_sorts=2"), "{all}");
}

/// Removes the values that depend on the memory of rows: numbers of files and merges.
fn without_sizes(counts: &str) -> String {
    let shown = counts.split(' ').map(|count| match count.split_once('=') {
        Some((name @ ("Created_tmp_files" | "Sort_merge_passes"), _)) => name,
        _ => count,
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn disk_writes_are_counted() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut c = client(&mut server);
    c.ok("SET sort_buffer_size = 1024, tmp_table_size = 1024, max_heap_table_size = 16384");
    for (statement, expected) in [
        (
            "SELECT seq, REPEAT('x', 200) FROM seq_1_to_10000 ORDER BY seq % 100",
            "Created_tmp_files Select_scan=1 Sort_merge_passes Sort_rows=10000 Sort_scan=1",
        ),
        (
            "SELECT seq, COUNT(*) FROM seq_1_to_5000 GROUP BY seq ORDER BY NULL",
            "Created_tmp_disk_tables=1 Created_tmp_files Created_tmp_tables=1 Select_scan=1",
        ),
        (
            "SELECT seq FROM seq_1_to_5000 UNION SELECT seq FROM seq_1_to_10",
            "Created_tmp_disk_tables=1 Created_tmp_files Created_tmp_tables=1 Select_scan=2",
        ),
    ] {
        c.ok("FLUSH STATUS");
        c.run(statement);
        assert_eq!(without_sizes(&counts(&mut c, "")), expected, "{statement}");
    }
}

/// OR of single values is estimated like an IN list.
#[test]
fn alternatives_of_one_column_are_estimated_as_a_list() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut c = client(&mut server);
    for (alternatives, list) in [
        ("id = 1 OR id = 2 OR id = 30", "id IN (1, 2, 30)"),
        ("(id = 1 AND b = 3) OR (id = 2 AND b > 4)", "id IN (1, 2)"),
        ("id = 1 OR id IN (2, 3)", "id IN (1, 2, 3)"),
        ("a = 1 OR a = 2", "a IN (1, 2)"),
    ] {
        let mut explain = |condition: &str| c.run(&format!("EXPLAIN SELECT b FROM t WHERE {condition}"));
        assert_eq!(explain(alternatives), explain(list), "{alternatives}");
    }
    assert_eq!(
        c.run("SELECT COUNT(*) FROM t WHERE id = 1 OR id = NULL OR id = 101 OR id = 2.5"),
        "COUNT(*)\n1\n"
    );
}

#[test]
fn a_list_of_rows_is_looked_up_by_an_index() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut c = client(&mut server);
    for (rows, list) in [
        ("(id, b) IN ((1, 1), (2, 2), (3, 5))", "id IN (1, 2, 3) AND b > 0"),
        ("(b, a) IN ((1, 1), (2, 2))", "a IN (1, 2) AND b > 0"),
    ] {
        let mut explain = |condition: &str| c.run(&format!("EXPLAIN SELECT b FROM t WHERE {condition}"));
        assert_eq!(explain(rows), explain(list), "{rows}");
    }
    for (condition, count) in [
        ("(id, b) IN ((1, 1), (1, 1), (2, 2), (3, 5))", 2),
        ("(id, b) NOT IN ((1, 1), (2, 2), (3, 5))", 98),
        ("(id, b) IN ((NULL, 1), (2, NULL), (3, 3.0))", 1),
        ("(id, c) IN (('1', 'X1'), (2, 'x1'))", 1),
        // Long lists become hash sets. Counts are recorded from MariaDB 10.11.
        ("(id, b) IN ((1, 1), (2, 2), (3, 5), (4, 4), (4, 4), (NULL, 1), (5, NULL), (6, '6'))", 4),
        ("(id, b) NOT IN ((1, 1), (2, 2), (3, 5), (4, 4), (200, 200), (NULL, 1))", 83),
        ("(b, c) IN ((1, 'X1'), (2, 'x2'), (3, 'x3 '), (4, 'x'), (5, 'y'), (6, 'x20'))", 4),
        ("(b, 7) IN ((1, 7.0), (2, 7), (3, 8), (4, 7), (5, 7), (6, 6))", 58),
        ("(a, b + 0.0) IN ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6))", 12),
    ] {
        let found = c.run(&format!("SELECT COUNT(*) FROM t WHERE {condition}"));
        assert_eq!(found, format!("COUNT(*)\n{count}\n"), "{condition}");
    }
}
