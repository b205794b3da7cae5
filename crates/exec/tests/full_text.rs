//! FULLTEXT indexes under changes: searches by index and searches of all rows have equal results in every
//! read view.

mod world;

use world::{Client, Server};

const WORDS: [&str; 12] =
    ["apple", "banana", "cherry", "Dattel", "elder", "FIG", "grape", "Käse", "lemon", "mango", "nut", "the"];

/// A deterministic pseudo-random number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn text(&mut self) -> String {
        let words = (0..self.below(6)).map(|_| WORDS[self.below(12) as usize]).collect::<Vec<_>>();
        words.join(if self.below(2) == 0 { " " } else { ", " })
    }

    fn search(&mut self) -> String {
        let (one, other) = (WORDS[self.below(12) as usize], WORDS[self.below(12) as usize]);
        let searches = [
            format!("'{one} {other}'"),
            format!("'+{one} +{other}' IN BOOLEAN MODE"),
            format!("'+{one} -{other}' IN BOOLEAN MODE"),
            format!("'{one} >{other} cher*' IN BOOLEAN MODE"),
            format!("'\"{one} {other}\"' IN BOOLEAN MODE"),
            format!("'+({one} {other}) fig' IN BOOLEAN MODE"),
        ];
        searches[self.below(6) as usize].clone()
    }
}

/// Compares the rows found with and without the index.
fn compare(client: &mut Client, search: &str, lock: &str) {
    let found = |client: &mut Client, hint: &str| {
        client.run(&format!(
            "SELECT id, MATCH (a, b) AGAINST ({search}) r FROM t {hint} WHERE MATCH (a, b) AGAINST ({search}) \
             ORDER BY id {lock}"
        ))
    };
    let by_index = found(client, "");
    assert_eq!(by_index, found(client, "IGNORE INDEX (ab)"), "{search} {lock}");
}

fn change(client: &mut Client, numbers: &mut Numbers) {
    let (id, a, b) = (numbers.below(60), numbers.text(), numbers.text());
    client.run(&match numbers.below(6) {
        0 | 1 => format!("INSERT IGNORE INTO t VALUES ({id}, '{a}', '{b}')"),
        2 => format!("UPDATE t SET a = '{a}' WHERE id = {id}"),
        3 => format!("UPDATE IGNORE t SET id = {}, b = '{b}' WHERE id = {id}", numbers.below(60)),
        4 => format!("DELETE FROM t WHERE id = {id}"),
        _ => format!("REPLACE INTO t VALUES ({id}, '{a}', NULL)"),
    });
}

#[test]
fn searches_by_the_index_find_what_searches_of_all_rows_find() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let (mut writer, mut reader) = (server.connect(), server.connect());
    writer
        .ok("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(100), b TEXT, FULLTEXT ab (a, b), FULLTEXT (b))");
    let mut numbers = Numbers(7);
    for round in 0..40 {
        writer.ok("BEGIN");
        for n in 0..12 {
            change(&mut writer, &mut numbers);
            if n == 6 {
                writer.ok("SAVEPOINT s");
            }
        }
        // Includes uncommitted rows of the own transaction.
        compare(&mut writer, &numbers.search(), "");
        if round % 4 == 0 {
            writer.ok("ROLLBACK TO s");
        }
        // Uses an older read view.
        compare(&mut reader, &numbers.search(), "");
        writer.ok(if round % 5 == 0 { "ROLLBACK" } else { "COMMIT" });
        for _ in 0..3 {
            compare(&mut reader, &numbers.search(), "");
        }
        compare(&mut writer, &numbers.search(), "FOR UPDATE");
        if round % 8 == 0 {
            reader.ok("COMMIT");
            reader.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
        }
    }
    reader.ok("COMMIT");
    let checked = writer.run("CHECK TABLE t");
    assert!(checked.contains("status | OK"), "{checked}");
    // A newly built index must have the same contents as one that was maintained.
    writer.ok("ALTER TABLE t DROP INDEX ab, ADD FULLTEXT ab (b, a)");
    for _ in 0..20 {
        compare(&mut reader, &numbers.search(), "");
    }
    let checked = writer.run("CHECK TABLE t");
    assert!(checked.contains("status | OK"), "{checked}");
}

#[test]
fn a_long_text_has_each_of_its_words_once() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, b MEDIUMTEXT, FULLTEXT (b))");
    client.ok("INSERT INTO t SELECT 1, GROUP_CONCAT('word', seq % 40000 SEPARATOR ' ') FROM seq_1_to_100000");
    client.ok("INSERT INTO t VALUES (2, 'word7'), (3, 'another')");
    for word in ["word7", "word39999"] {
        let found = client.run(&format!("SELECT id FROM t WHERE MATCH (b) AGAINST ('{word}') ORDER BY id"));
        assert!(found.contains('1'), "{word}: {found}");
    }
    let checked = client.run("CHECK TABLE t");
    assert!(checked.contains("status | OK"), "{checked}");
    client.ok("UPDATE t SET b = 'short' WHERE id = 1");
    let found = client.run("SELECT COUNT(*) FROM t WHERE MATCH (b) AGAINST ('word7 word39999')");
    assert!(found.ends_with("1\n") || found.ends_with('1'), "{found}");
}
