//! Vectorized joins and sorts, and index joins over batches of rows, have the same results as row-at-a-time
//! execution, which RAND() in a plan enforces.

mod world;

use world::{Client, Server};

/// More rows than a batch of matches.
const ROWS: i64 = 4000;

fn filled() -> (Server, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE a (id INT PRIMARY KEY, grp INT, x DECIMAL(8, 2), name VARCHAR(20), KEY (grp))");
    client.ok("CREATE TABLE b (id INT, part INT, aid INT, y INT, d DATE, long_text VARCHAR(100), \
         PRIMARY KEY (id, part), KEY (aid), KEY (d))");
    let null_or = |n: i64, value: String| if n % 17 == 5 { "NULL".to_owned() } else { value };
    for first in (0..ROWS).step_by(500) {
        let of_a = |n: i64| {
            let (grp, x) = (null_or(n, (n * 31 % 97).to_string()), null_or(n + 3, format!("{}.5", n % 40)));
            let name = null_or(n + 7, format!("'name {}'", n % 23));
            format!("({n}, {grp}, {x}, {name})")
        };
        let of_b = |n: i64| {
            let aid = null_or(n + 1, (n * 7919 % 97).to_string());
            let (month, day) = (n * 13 % 12 + 1, n * 29 % 28 + 1);
            let d = null_or(n + 2, format!("'20{:02}-{month:02}-{day:02}'", n % 5 + 20));
            format!("({}, {}, {aid}, {}, {d}, REPEAT('t', 80))", n / 3, n % 3, n * 17 % 50)
        };
        let rows = |of: &dyn Fn(i64) -> String| (first..first + 500).map(of).collect::<Vec<_>>().join(", ");
        client.ok(&format!("INSERT INTO a VALUES {}", rows(&of_a)));
        client.ok(&format!("INSERT INTO b VALUES {}", rows(&of_b)));
    }
    (server, client)
}

const ASKED: [&str; 22] = [
    // By a secondary index, with some forty rows per key.
    "SELECT COUNT(*), SUM(y), SUM(x), MIN(d), MAX(a.id) FROM a JOIN b FORCE INDEX (aid) ON b.aid = a.grp \
     WHERE a.id < 500 AND y > 3",
    "SELECT name, COUNT(*), SUM(x * y) FROM a STRAIGHT_JOIN b FORCE INDEX (aid) ON b.aid = a.id AND y <> x \
     WHERE name <> 'name 3' GROUP BY name ORDER BY name",
    // By a prefix of the primary key, and by all of it.
    "SELECT YEAR(d), COUNT(*), SUM(y), AVG(x) FROM a STRAIGHT_JOIN b ON b.id = a.id WHERE grp > 9 \
     GROUP BY YEAR(d) ORDER BY 1",
    "SELECT EXTRACT(YEAR FROM d), name, COUNT(*) FROM b STRAIGHT_JOIN a ON a.id = b.aid WHERE y < 40 \
     GROUP BY 1, 2 ORDER BY 1, 2",
    // By hash tables.
    "SELECT COUNT(*), SUM(y), COUNT(DISTINCT b.aid) FROM a JOIN b ON b.y = a.grp WHERE a.id < 300 AND part > 0",
    "SELECT COUNT(*), SUM(b.id) FROM a STRAIGHT_JOIN b ON b.y = a.grp AND b.part = a.id WHERE b.id <> a.id",
    "SELECT grp, COUNT(DISTINCT y), MAX(y) FROM a JOIN b ON b.y = a.grp WHERE a.id < 400 GROUP BY grp ORDER BY grp",
    "SELECT COUNT(*), COUNT(b.id), SUM(y) FROM a LEFT JOIN b ON b.aid = a.id AND y > 5 WHERE name > 'name 2'",
    "SELECT COUNT(*), COUNT(b.id), SUM(y) FROM a LEFT JOIN b ON b.y = a.grp AND b.part < a.x WHERE a.id < 300",
    // Semi-joins and anti-joins.
    "SELECT COUNT(*), SUM(x) FROM a WHERE EXISTS (SELECT * FROM b WHERE b.aid = a.grp) AND name < 'name 5'",
    "SELECT COUNT(*), SUM(x) FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.id = a.id AND b.y > a.grp) \
     AND grp < 60",
    "SELECT COUNT(*), SUM(x) FROM a WHERE EXISTS (SELECT * FROM b WHERE b.y = a.grp AND b.part <> a.id) \
     AND NOT EXISTS (SELECT * FROM b WHERE b.id = a.id AND b.d > '2022-06-01') AND name <> ''",
    // Rows that a secondary index leads to.
    "SELECT aid, COUNT(*), SUM(y) FROM b FORCE INDEX (d) WHERE d BETWEEN '2021-02-01' AND '2023-03-01' \
     GROUP BY aid ORDER BY aid",
    // Texts of which only the lengths are read, and others.
    "SELECT COUNT(name), SUM(LENGTH(name)), COUNT(*) FROM a WHERE a.id <> 77",
    "SELECT grp, SUM(LENGTH(name)), COUNT(name), MAX(x) FROM a WHERE x > 3 GROUP BY grp ORDER BY grp",
    "SELECT name, SUM(LENGTH(name)), SUM(LENGTH(name) * grp), SUM(CHAR_LENGTH(name)) FROM a WHERE a.id > 5 \
     GROUP BY name ORDER BY name",
    // Vectorized sorts: all columns or some of them, with NULLs, by texts, dates and decimals.
    "SELECT y, id, part FROM b WHERE part < 2 ORDER BY y, id, part",
    "SELECT d, id, part, long_text FROM b WHERE id < 900 ORDER BY d DESC, part, id DESC",
    "SELECT name, x, a.id FROM a WHERE grp <> 7 ORDER BY name DESC, x, a.id",
    "SELECT x, name, a.id FROM a WHERE a.id > 2 ORDER BY x, name, a.id DESC LIMIT 1234, 17",
    "SELECT name, a.id FROM a WHERE a.id <> 77 ORDER BY name, a.id LIMIT 5",
    "SELECT b.id, part, name FROM a JOIN b ON b.y = a.grp WHERE a.id < 300 ORDER BY name, b.id DESC, part LIMIT 3000",
];

/// Returns the query in a form that is executed row by row.
fn one_by_one(asked: &str) -> String {
    let at = asked.find(" GROUP BY").or(asked.find(" ORDER BY")).unwrap_or(asked.len());
    format!("{} AND RAND() < 2{}", &asked[..at], &asked[at..])
}

fn check(client: &mut Client, when: &str) {
    for asked in ASKED {
        let (vectors, rows) = (client.run(asked), client.run(&one_by_one(asked)));
        assert_eq!(vectors, rows, "{when}: {asked}");
        assert!(!rows.contains("ERROR") && rows.contains(|c| ('1'..='9').contains(&c)), "{asked}: {rows}");
    }
}

#[test]
fn joins_by_vectors_answer_as_joins_row_by_row() {
    let (_server, mut client) = filled();
    check(&mut client, "in memory");
    for setting in ["tmp_table_size", "max_heap_table_size", "join_buffer_size", "sort_buffer_size"] {
        client.ok(&format!("SET {setting} = 16384"));
    }
    check(&mut client, "with little memory");
}

#[test]
fn joins_by_vectors_see_what_the_transaction_wrote() {
    let (_server, mut client) = filled();
    client.ok("BEGIN");
    client.ok("UPDATE b SET y = y + 1, aid = aid + 1 WHERE id % 5 = 1");
    client.ok("DELETE FROM a WHERE id % 7 = 2");
    client.ok("INSERT INTO b SELECT id + 100000, part, aid, y, d, 'new' FROM b WHERE id < 200");
    check(&mut client, "in a transaction");
}
