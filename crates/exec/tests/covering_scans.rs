//! Scans of a covering index return the same results as scans of the rows, for all types.

mod world;

use world::{Client, Server};

/// A column of every type that an index can return, each the first column of an index.
const COLUMNS: [(&str, &str); 12] = [
    ("i", "INT"),
    ("im", "INT NOT NULL"),
    ("t", "TINYINT"),
    ("bu", "BIGINT UNSIGNED"),
    ("mu", "MEDIUMINT UNSIGNED"),
    ("d", "DECIMAL(12, 3)"),
    ("f", "DOUBLE"),
    ("day", "DATE"),
    ("at", "DATETIME(3)"),
    ("e", "ENUM('x', 'y', 'z')"),
    ("y", "YEAR"),
    ("raw", "VARBINARY(8)"),
];
/// More rows than a batch of the engine.
const ROWS: i64 = 6000;

fn value(column: &str, n: i64) -> String {
    // Values repeat and are not in row order.
    let n = (n * 7919) % 1009;
    if n % 11 == 3 && column != "im" {
        return "NULL".to_owned();
    }
    match column {
        "i" | "im" => (n * 4_000_037 - 2_000_000_000).to_string(),
        "t" => (n % 256 - 128).to_string(),
        "bu" => format!("{}", u64::MAX - n as u64),
        "mu" => (n * 16_000).to_string(),
        "d" => format!("{}.{:03}", n * 1_000 - 500_000, n % 1000),
        "f" => format!("{}.5", n - 500),
        "day" => format!("'20{:02}-{:02}-{:02}'", n % 100, n % 12 + 1, n % 28 + 1),
        "at" => format!("'20{:02}-01-{:02} 12:00:{:02}.{:03}'", n % 100, n % 28 + 1, n % 60, n % 1000),
        "e" => format!("'{}'", ["x", "y", "z"][n as usize % 3]),
        "y" => (1950 + n % 150).to_string(),
        "raw" => format!("x'{:02x}00{:02x}'", n % 256, n % 7),
        _ => unreachable!("{column}"),
    }
}

fn filled(unique: &str) -> (Server, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    let columns: String = COLUMNS.iter().map(|(name, ty)| format!("{name} {ty}, ")).collect();
    let keys: String = COLUMNS.iter().map(|(name, _)| format!(", KEY k_{name} ({name})")).collect();
    client.ok(&format!(
        "CREATE TABLE t (a INT, id INT, {columns} long_text VARCHAR(200), PRIMARY KEY (a, id), \
         {unique} KEY both_of (at, i, id) {keys})"
    ));
    for first in (0..ROWS).step_by(500) {
        let row = |n: i64| {
            let values: String = COLUMNS.iter().map(|(name, _)| format!("{}, ", value(name, n))).collect();
            format!("({}, {n}, {values} REPEAT('l', 150))", n % 13 - 6)
        };
        let rows: Vec<String> = (first..first + 500).map(row).collect();
        client.ok(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
    (server, client)
}

#[test]
fn entries_hold_what_rows_hold() {
    for unique in ["", "UNIQUE"] {
        let (_server, mut client) = filled(unique);
        let of = |index: &str, items: &str, rest: &str| (index.to_owned(), items.to_owned(), rest.to_owned());
        let mut asked = vec![
            of("both_of", "COUNT(*), SUM(i), MIN(at), SUM(id)", ""),
            of("both_of", "COUNT(i), SUM(a)", "WHERE i > 5 AND id < 3000 AND a <> 2"),
            of("k_im", "COUNT(*)", ""),
        ];
        for (name, _) in COLUMNS {
            let index = format!("k_{name}");
            let some = format!("WHERE {name} > {} OR {name} IS NULL", value(name, 1));
            let sums = format!("COUNT(*), COUNT({name}), MIN({name}), MAX({name}), SUM(a), SUM(id)");
            for condition in ["", &some] {
                asked.push(of(&index, &sums, condition));
                asked.push(of(&index, &format!("{name}, a, id"), &format!("{condition} ORDER BY id, a")));
                let groups = format!("{condition} GROUP BY {name} ORDER BY 1");
                asked.push(of(&index, &format!("{name}, COUNT(*)"), &groups));
            }
        }
        for (index, items, condition) in asked {
            let by = |hint: &str| format!("SELECT {items} FROM t {hint} {condition}");
            let (covered, rows) = (by(&format!("FORCE INDEX ({index})")), by("FORCE INDEX (PRIMARY)"));
            let plan = client.run(&format!("EXPLAIN {covered}"));
            assert!(plan.contains("Using index"), "{covered}\n{plan}");
            // The primary key has all columns that a mere COUNT reads.
            let plan = client.run(&format!("EXPLAIN {rows}"));
            assert!(!plan.contains("Using index") || plan.contains(" | PRIMARY | "), "{rows}\n{plan}");
            assert_eq!(client.run(&covered), client.run(&rows), "{unique} {covered}");
        }
    }
}
