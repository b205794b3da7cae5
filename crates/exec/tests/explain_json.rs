//! EXPLAIN FORMAT=JSON, with MariaDB's names where MariaDB has an equivalent.

mod world;

use world::{Client, Server};

fn explained(client: &mut Client, sql: &str) -> String {
    let answer = client.run(&format!("EXPLAIN FORMAT=JSON {sql}"));
    let (name, text) = answer.split_once('\n').expect("a name and a text");
    assert_eq!(name, "EXPLAIN", "{sql}: {answer}");
    // The server's own JSON functions must accept the text.
    client.ok(&format!("SET @plan = '{}'", text.trim_end().replace('\\', "\\\\").replace('\'', "''")));
    assert_eq!(client.run("SELECT JSON_VALID(@plan) AS ok"), "ok\n1\n", "{sql}: {text}");
    // The client indents continuation lines of a value.
    text.trim_end().replace("\n  ", "\n")
}

#[test]
fn plans_are_documents() {
    let mut server = Server::open(&world::disk()).expect("opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE a (id INT PRIMARY KEY, k INT, v VARCHAR(10), KEY (k))");
    client.ok("CREATE TABLE b (id INT PRIMARY KEY, t INT, w INT)");
    client.ok("INSERT INTO a VALUES (1,1,'a'),(2,2,'b'),(3,3,'c')");
    client.ok("INSERT INTO b VALUES (1,1,5),(2,2,6),(3,3,7),(4,1,5)");
    assert_eq!(
        explained(&mut client, "SELECT 1"),
        "{\n  \"query_block\": {\n    \"select_id\": 1,\n    \"table\": {\n      \"message\": \"No tables used\"\n    }\n  }\n}"
    );
    assert_eq!(
        explained(&mut client, "SELECT * FROM a WHERE id = 1"),
        "{\n  \"query_block\": {\n    \"select_id\": 1,\n    \"nested_loop\": [\n      {\n        \"table\": {\n          \
         \"table_name\": \"a\",\n          \"access_type\": \"const\",\n          \"possible_keys\": [\"PRIMARY\"],\n          \
         \"key\": \"PRIMARY\",\n          \"key_length\": \"4\",\n          \"used_key_parts\": [\"id\"],\n          \"ref\": [\"const\"],\n          \
         \"rows\": 1,\n          \"filtered\": 100,\n          \"attached_condition\": \"`a`.`id` = 1\"\n        }\n      }\n    ]\n  }\n}"
            .replace("`a`.`id`", "`test`.`a`.`id`")
    );
    let mut missing: Vec<String> = Vec::new();
    let of = |parts: &'static [&'static str]| parts;
    for (sql, parts) in [
        ("SELECT * FROM a WHERE id BETWEEN 1 AND 2", of(&["\"range\"", "\"used_key_parts\": [\"id\"]"])),
        ("SELECT * FROM a ORDER BY v", of(&["\"filesort\"", "\"ALL\""])),
        ("SELECT v, COUNT(*) FROM a GROUP BY v", of(&["\"temporary_table\""])),
        ("SELECT * FROM a JOIN b ON b.w = a.k", of(&["\"block-nl-join\"", "\"join_type\""])),
        ("SELECT * FROM b JOIN a ON a.id = b.t", of(&["\"table_name\": \"a\"", "\"table_name\": \"b\""])),
        ("SELECT (SELECT MAX(w) FROM b WHERE t = a.id) FROM a", of(&["\"subqueries\"", "\"select_id\": 2"])),
        (
            "SELECT id FROM a UNION SELECT id FROM b EXCEPT SELECT 1",
            of(&[
                "\"union_result\"",
                "\"<union1,2,3>\"",
                "\"operation\": \"UNION\"",
                "\"operation\": \"EXCEPT\"",
            ]),
        ),
        (
            "SELECT * FROM (SELECT v, COUNT(*) c FROM a GROUP BY v) d WHERE c > 1",
            of(&["\"temporary_table\"", "\"attached_condition\""]),
        ),
        (
            "WITH c AS (SELECT k FROM a LIMIT 2) SELECT * FROM c x JOIN c y",
            of(&["\"<derived2>\"", "\"materialized\""]),
        ),
        ("UPDATE a SET v = 'q\"' WHERE id = 1", of(&["\"update\": 1"])),
        ("DELETE FROM a WHERE k = 2", of(&["\"delete\": 1"])),
        ("INSERT INTO a VALUES (7, 7, 'x')", of(&["\"table_name\": \"a\""])),
    ] {
        let text = explained(&mut client, sql);
        let absent = parts.iter().filter(|part| !text.contains(**part));
        missing.extend(absent.map(|part| format!("{sql}: no {part} in {text}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    let many = "SELECT 1 UNION SELECT 2 EXCEPT SELECT 3 UNION ALL SELECT 4 "
        .repeat(400)
        .replace("4 SELECT", "4 UNION SELECT");
    assert!(explained(&mut client, &many).contains("union_result"));
}

/// Returns the document of ANALYZE FORMAT=JSON without its times, after checking that there are some.
fn analysed(client: &mut Client, sql: &str) -> String {
    let answer = client.run(&format!("ANALYZE FORMAT=JSON {sql}"));
    let (name, text) = answer.split_once('\n').expect("a name and a text");
    assert_eq!(name, "ANALYZE", "{sql}: {answer}");
    assert!(text.contains("r_total_time_ms"), "{answer}");
    text.lines().filter(|line| !line.contains("time_ms")).map(str::trim).collect::<Vec<_>>().join(" ")
}

#[test]
fn executed_nodes_are_measured() {
    let mut server = Server::open(&world::disk()).expect("opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE a (id INT PRIMARY KEY, k INT, v VARCHAR(10), KEY (k))");
    client.ok("CREATE TABLE b (id INT PRIMARY KEY, w INT)");
    client.ok("INSERT INTO a SELECT seq, seq % 10, seq FROM seq_1_to_100");
    client.ok("INSERT INTO b SELECT seq, seq FROM seq_1_to_20");
    let of = |parts: &'static [&'static str]| parts;
    let mut missing = Vec::new();
    for (sql, parts) in [
        // One table, by the single-table fast path and as part of an operator tree.
        (
            "SELECT * FROM a WHERE k < 3 AND id > 30",
            of(&[
                "\"r_loops\": 1, \"nested_loop\"",
                "\"r_rows\": 70",
                "\"r_filtered\": 30",
                "\"r_engine_stats\": {}",
            ]),
        ),
        ("SELECT COUNT(*) FROM a WHERE v = 'x'", of(&["\"r_rows\": 100", "\"r_filtered\": 0"])),
        (
            "SELECT x.id FROM a x JOIN b y ON y.id = x.k WHERE x.id <= 5 ORDER BY y.w, x.id",
            of(&["\"r_rows\": 5", "\"r_output_rows\": 5", "\"filesort\": { \"r_loops\": 1"]),
        ),
        (
            "SELECT (SELECT COUNT(*) FROM b WHERE b.id <= a.id) FROM a WHERE id <= 4",
            of(&["\"select_id\": 2, \"r_loops\": 4", "\"r_rows\": 2.5"]),
        ),
        // An empty left side: the right side is never read.
        (
            "SELECT * FROM b STRAIGHT_JOIN a ON a.id = b.w WHERE b.w > 1000",
            of(&["\"r_filtered\": 0", "\"r_loops\": 0", "\"r_rows\": null", "\"r_filtered\": null"]),
        ),
        ("SELECT 1", of(&["\"message\": \"No tables used\""])),
        ("INSERT INTO b VALUES (100, 0)", of(&["\"table_name\": \"b\""])),
        ("INSERT INTO b SELECT id + 1000, 0 FROM a WHERE k = 3", of(&["\"r_rows\": 10"])),
        (
            "UPDATE a SET v = 'u' WHERE k < 2 AND v > ''",
            of(&["\"update\": 1", "\"r_rows\": 20", "\"r_engine_stats\": {}"]),
        ),
        ("DELETE FROM b WHERE id > 1000 AND w = 0", of(&["\"delete\": 1", "\"r_rows\": 10"])),
        ("UPDATE a, b SET a.v = 'j' WHERE a.id = b.id", of(&["\"r_rows\": 21", "\"r_rows\": "])),
        (
            "SELECT * FROM information_schema.tables WHERE table_schema = 'test'",
            of(&["\"r_rows\": 2", "\"r_filtered\": 100"]),
        ),
    ] {
        let text = analysed(&mut client, sql);
        let absent = parts.iter().filter(|part| !text.contains(**part));
        missing.extend(absent.map(|part| format!("{sql}: no {part} in {text}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    // ANALYZE must have run the statements.
    assert_eq!(client.run("SELECT COUNT(*), SUM(id > 1000) FROM b"), "COUNT(*) | SUM(id > 1000)\n21 | 0\n");
    assert_eq!(
        client.run("SELECT v, COUNT(*) FROM a WHERE v IN ('u', 'j') GROUP BY v"),
        "v | COUNT(*)\nj | 21\nu | 15\n"
    );
    let table = client.run("ANALYZE SELECT * FROM a WHERE k < 3 AND id > 30");
    let head = "id | select_type | table | type | possible_keys | key | key_len | ref | rows | r_rows | filtered | r_filtered | Extra\n";
    assert!(table.starts_with(head), "{table}");
    assert!(table.contains(" | 70 | 70.00 | 100.00 | 30.00 | "), "{table}");
    client.ok("PREPARE p FROM 'ANALYZE SELECT * FROM a WHERE id <= ?'");
    client.ok("SET @n = 7");
    assert!(client.run("EXECUTE p USING @n").contains(" | 7.00 | "));
    // ANALYZE reports the same errors as the statement itself.
    assert!(client.run("ANALYZE SELECT * FROM missing").starts_with("ERROR 1146"));
    assert!(client.run("ANALYZE INSERT INTO b VALUES (1, 1)").starts_with("ERROR 1062"));
    client.ok("START TRANSACTION READ ONLY");
    assert!(client.run("ANALYZE UPDATE b SET w = 1").starts_with("ERROR 1792"));
}

/// Returns the trace of a statement, after checking that it is valid JSON.
fn traced(client: &mut Client, sql: &str) -> String {
    client.run(sql);
    let valid = client.run("SELECT JSON_VALID(TRACE) AS ok FROM information_schema.OPTIMIZER_TRACE");
    assert_eq!(valid, "ok\n1\n", "{sql}");
    let text = client.run("SELECT TRACE FROM information_schema.OPTIMIZER_TRACE");
    text.lines().skip(1).map(str::trim).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_optimizer_trace_contains_the_decisions_that_were_made() {
    let mut server = Server::open(&world::disk()).expect("opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE a (id INT PRIMARY KEY, k INT, v VARCHAR(10), KEY (k))");
    client.ok("CREATE TABLE b (id INT PRIMARY KEY, w INT)");
    client.ok("INSERT INTO a SELECT seq, seq % 50, seq FROM seq_1_to_2000");
    client.ok("INSERT INTO b SELECT seq, seq FROM seq_1_to_20");
    let rows =
        |client: &mut Client| client.run("SELECT COUNT(*) AS n FROM information_schema.OPTIMIZER_TRACE");
    client.ok("SELECT * FROM a WHERE k = 3");
    assert_eq!(rows(&mut client), "n\n0\n", "off by default");
    client.ok("SET optimizer_trace = 'enabled=on'");
    assert_eq!(client.run("SELECT @@optimizer_trace AS v"), "v\nenabled=on\n");
    let of = |parts: &'static [&'static str]| parts;
    let mut missing = Vec::new();
    for (sql, parts) in [
        (
            "SELECT COUNT(*) FROM a WHERE k = 3",
            of(&[
                "{ \"steps\": [ { \"join_optimization\": { \"select_id\": 1",
                "\"rows_estimation\": [ { \"table\": \"a\", \"range_analysis\": { \"table_scan\": { \"rows\": 2000",
                "{ \"index\": \"PRIMARY\", \"usable\": false, \"cause\": \"not applicable\" }",
                "\"ranges\": [\"(?) <= (k) <= (?)\"], \"rows\": ",
                "\"chosen_range_access_summary\": { \"access_type\": \"ref\", \"index\": \"k\"",
            ]),
        ),
        (
            "SELECT * FROM a WHERE id BETWEEN 5 AND 7 AND k > 2",
            of(&[
                "\"ranges\": [\"(?) <= (id) <= (?)\"]",
                "\"ranges\": [\"(?) < (k)\"]",
                "\"chosen\": false, \"cause\": \"cost\"",
            ]),
        ),
        (
            "SELECT * FROM a x JOIN b y ON y.id = x.k WHERE y.w < 4",
            of(&[
                "\"condition_processing\": { \"condition\": \"WHERE\"",
                "\"table_dependencies\": [ { \"table\": \"x\", \"row_may_be_null\": false",
                "\"considered_execution_plans\": [ { \"plan_prefix\": [], \"table\": \"x\"",
                "{ \"plan_prefix\": [\"x\"], \"table\": \"y\", \"considered_access_paths\": [",
                "{ \"plan_prefix\": [\"y\"], \"table\": \"x\"",
                "\"cost_for_plan\": ",
                "\"best_join_order\": [",
            ]),
        ),
        (
            "SELECT * FROM a LEFT JOIN b ON b.id = a.k WHERE a.id < 9",
            of(&["\"table\": \"b\", \"row_may_be_null\": true, \"depends_on\": [\"a\"]"]),
        ),
        (
            "SELECT * FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.k = b.w)",
            of(&["\"transformation\": { \"select_id\": ", "\"to\": \"semijoin\"", "\"strategy\": "]),
        ),
        (
            "UPDATE a SET v = 'u' WHERE id = 5",
            of(&["\"index\": \"PRIMARY\", \"ranges\": [\"(?) <= (id) <= (?)\"]"]),
        ),
        ("EXPLAIN DELETE FROM b WHERE id > 18", of(&["\"table\": \"b\"", "\"ranges\": [\"(18) < (id)\"]"])),
    ] {
        // The second run does not use a cached plan.
        for _ in 0..2 {
            let text = traced(&mut client, sql);
            let absent = parts.iter().filter(|part| !text.contains(**part));
            missing.extend(absent.map(|part| format!("{sql}: no {part} in {text}")));
        }
        let query = client.run("SELECT QUERY, MISSING_BYTES_BEYOND_MAX_MEM_SIZE, INSUFFICIENT_PRIVILEGES FROM information_schema.OPTIMIZER_TRACE");
        assert!(query.ends_with(&format!("{sql} | 0 | 0\n")), "{query}");
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    // Other statements leave the trace.
    client.ok("SHOW TABLES");
    assert_eq!(rows(&mut client), "n\n1\n");
    client.ok("SET optimizer_trace_max_mem_size = 40");
    client.ok("SELECT * FROM a WHERE id = 7");
    let cut = client.run("SELECT LENGTH(TRACE), MISSING_BYTES_BEYOND_MAX_MEM_SIZE > 100 FROM information_schema.OPTIMIZER_TRACE");
    assert!(cut.ends_with("40 | 1\n"), "{cut}");
    client.ok("SET optimizer_trace = DEFAULT");
    client.ok("SELECT * FROM b");
    assert!(client.run("SELECT QUERY FROM information_schema.OPTIMIZER_TRACE").contains("id = 7"));
    assert!(client.run("SET optimizer_trace = 'nosuch=on'").starts_with("ERROR 1231 "));
}

#[test]
fn the_optimizer_trace_hides_what_the_account_may_not_see() {
    let mut server = Server::open(&world::disk()).expect("opens");
    let mut root = server.connect();
    for sql in [
        "CREATE TABLE t (a INT PRIMARY KEY, secret INT)",
        "CREATE VIEW v AS SELECT a FROM t WHERE secret = 42",
        "CREATE FUNCTION f() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM t WHERE secret = 43)",
        "CREATE USER u@localhost",
        "GRANT SELECT ON test.v TO u@localhost",
        "GRANT EXECUTE ON FUNCTION test.f TO u@localhost",
        "GRANT UPDATE (a) ON test.t TO u@localhost",
    ] {
        root.ok(sql);
    }
    let mut u = server.connect_as("u", "localhost");
    u.ok("USE test");
    u.ok("SET optimizer_trace = 'enabled=on'");
    let hidden = "QUERY | TRACE | MISSING_BYTES_BEYOND_MAX_MEM_SIZE | INSUFFICIENT_PRIVILEGES\n |  | 0 | 1\n";
    for sql in ["SELECT * FROM v", "SELECT f()", "UPDATE t SET a = 1"] {
        u.ok(sql);
        assert_eq!(u.run("SELECT * FROM information_schema.OPTIMIZER_TRACE"), hidden, "{sql}");
    }
    root.ok("GRANT SHOW VIEW ON test.v TO u@localhost");
    root.ok("GRANT SELECT ON test.t TO u@localhost");
    u.ok("SELECT * FROM v");
    let shown = u.run("SELECT QUERY, TRACE FROM information_schema.OPTIMIZER_TRACE");
    assert!(shown.contains("SELECT * FROM v | {") && shown.contains("\"table\": \"t\""), "{shown}");
}
