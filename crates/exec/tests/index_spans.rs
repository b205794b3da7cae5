//! Index spans must return the same rows as evaluating the condition on every row.

mod world;

use world::{Client, Server};

const COLUMNS: [&str; 4] = ["id", "u", "n", "v"];
const VALUES: [&str; 16] = [
    "NULL",
    "-1",
    "0",
    "3",
    "7",
    "200",
    "255",
    "256",
    "99999999999",
    "2.5",
    "3.0",
    "3e0",
    "'3'",
    "'3x'",
    "TRUE",
    "-0.5",
];

fn filled() -> (Server, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, u TINYINT UNSIGNED, n BIGINT, v VARCHAR(10), c INT, \
         KEY (u), KEY (n, u), KEY v (v(2)))");
    for id in -2..12 {
        let number = |n: i64| if n % 5 == 4 { "NULL".to_owned() } else { n.to_string() };
        let (u, n) = (number((id + 2) * 19), number(id * 2 - 7));
        client.ok(&format!("INSERT INTO t VALUES ({id}, {u}, {n}, '{}x', {id})", (id + 2) / 2));
    }
    (server, client)
}

fn conditions() -> Vec<String> {
    let mut found = Vec::new();
    for column in COLUMNS {
        for a in VALUES {
            for op in ["=", "<", "<=", ">", ">="] {
                found.push(format!("{column} {op} {a}"));
            }
            for b in ["NULL", "3", "7.5", "'9'", "255"] {
                found.push(format!("{column} BETWEEN {a} AND {b}"));
                found.push(format!("{column} > {a} AND {column} <= {b}"));
                found.push(format!("{column} >= {a} AND {column} < {b} AND c % 2 = 0"));
                found.push(format!("n = {b} AND u >= {a}"));
                found.push(format!("{column} > 1 AND {column} > {a} AND {column} BETWEEN 0 AND {b}"));
            }
        }
    }
    found
}

/// Returns the result of a query without warnings, whose number depends on the rows that are read.
fn rows(client: &mut Client, query: &str) -> String {
    let answer = client.run(query);
    answer.lines().filter(|line| !line.starts_with("- ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn rows_found_by_spans_are_those_that_pass_the_condition() {
    let (_server, mut client) = filled();
    for condition in conditions() {
        let asked = rows(
            &mut client,
            &format!("SELECT id FROM t IGNORE INDEX (PRIMARY, u, n, v) WHERE {condition} ORDER BY id + 0"),
        );
        for hint in ["", "FORCE INDEX (u)", "FORCE INDEX (n)"] {
            let statement = format!("SELECT id FROM t {hint} WHERE {condition} ORDER BY id + 0");
            assert_eq!(rows(&mut client, &statement), asked, "{statement}");
        }
        let summed = rows(
            &mut client,
            &format!("SELECT COUNT(*), SUM(c) FROM t IGNORE INDEX (PRIMARY, u, n, v) WHERE {condition}"),
        );
        assert_eq!(
            rows(&mut client, &format!("SELECT COUNT(*), SUM(c) FROM t WHERE {condition}")),
            summed,
            "{condition}"
        );
    }
}
