//! EXPLAIN FORMAT=JSON, with MariaDB's names for what both servers have.

mod world;

use world::{Client, Server};

fn explained(client: &mut Client, sql: &str) -> String {
    let answer = client.run(&format!("EXPLAIN FORMAT=JSON {sql}"));
    let (name, text) = answer.split_once('\n').expect("a name and a text");
    assert_eq!(name, "EXPLAIN", "{sql}: {answer}");
    // The same text is a document to the server itself.
    client.ok(&format!("SET @plan = '{}'", text.trim_end().replace('\\', "\\\\").replace('\'', "''")));
    assert_eq!(client.run("SELECT JSON_VALID(@plan) AS ok"), "ok\n1\n", "{sql}: {text}");
    // The answer shows further lines of a value indented.
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
    let answer = client.run("ANALYZE FORMAT=JSON SELECT 1");
    assert!(answer.starts_with("ERROR 1235"), "{answer}");
}
