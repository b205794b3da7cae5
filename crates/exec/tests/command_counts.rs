//! `Com_%` of SHOW STATUS: the counters that each statement increments.

mod world;

use std::collections::BTreeMap;

use world::{Client, Server};

fn counts(client: &mut Client) -> BTreeMap<String, u64> {
    let answer = client.run("SHOW GLOBAL STATUS LIKE 'Com\\_%'");
    let counts = answer.lines().skip(1).filter_map(|line| line.strip_prefix("Com_")?.split_once(" | "));
    counts.map(|(name, count)| (name.to_owned(), count.parse().expect("a number"))).collect()
}

/// Statements and their counters, recorded from MariaDB 10.11.
#[test]
fn statements_are_counted_under_mariadbs_names() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let (mut client, mut watcher) = (server.connect(), server.connect());
    for line in include_str!("command_counts.tsv").lines() {
        let (statements, expected) = line.split_once('\t').expect("two columns");
        let before = counts(&mut watcher);
        for statement in statements.split("; ") {
            client.run(statement);
        }
        let mut after = counts(&mut watcher);
        // The watcher's own statement.
        *after.get_mut("show_status").expect("listed") -= 1;
        // The recording client requested the warnings of statements that had some.
        if !statements.contains("show warnings") {
            after.insert("show_warnings".to_owned(), before["show_warnings"]);
        }
        let raised = after.into_iter().filter(|(name, count)| before[name] != *count);
        let raised: Vec<String> = raised.map(|(name, _)| name).collect();
        assert_eq!(raised.join(" "), expected, "{statements}");
    }
}
