//! Whose privileges count while stored programs run. A script that several accounts run in turn has the same
//! rows and errors on Cohort and on MariaDB.

use std::collections::BTreeMap;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::support::shown;
use crate::{Account, Side, cohort_options, servers};

/// Runs the script. Returns each statement with its account and its answer.
fn answers(side: &mut Side) -> Vec<(String, String)> {
    let mut clients: BTreeMap<&str, Conn> = BTreeMap::new();
    let mut account = "root";
    let mut found = Vec::new();
    for line in include_str!("programs_rights.txt").lines() {
        match line.split_once(' ') {
            None if line.is_empty() => continue,
            Some(("#", _)) => continue,
            Some(("@", name)) => account = name,
            _ => {
                let client = match account {
                    "root" => &mut side.root,
                    name => clients
                        .entry(name)
                        .or_insert_with(|| side.enter(&Account { name, grants: Vec::new() })),
                };
                found.push((format!("{account}: {line}"), answer(client, line)));
            }
        }
    }
    found
}

/// Returns the rows of all results, or the error.
fn answer(client: &mut Conn, sql: &str) -> String {
    let mut text = String::new();
    let outcome = client.query_iter(sql).and_then(|mut results| {
        while let Some(rows) = results.iter() {
            for row in rows {
                let values = row?.unwrap();
                text.push_str(&values.iter().map(shown).collect::<Vec<_>>().join(" "));
                text.push('\n');
            }
        }
        Ok(())
    });
    match outcome {
        Ok(()) => text,
        Err(mysql::Error::MySqlError(error)) => format!("{text}ERROR {}: {}", error.code, error.message),
        Err(other) => panic!("{sql}: {other}"),
    }
}

#[test]
fn programs_have_the_privileges_of_their_definers_or_invokers() {
    let (server, mariadb) = servers();
    let mut sides = [Side::new(cohort_options(&server)), Side::new(mariadb.options())];
    sides[1].forget_public();
    let [ours, theirs] = sides.each_mut().map(answers);
    let is_different = |(ours, theirs): &(&(String, String), &(String, String))| ours.1 != theirs.1;
    let differing: Vec<String> = ours
        .iter()
        .zip(&theirs)
        .filter(is_different)
        .map(|((sql, ours), (_, theirs))| format!("{sql}\n  {ours:?}\n  MariaDB: {theirs:?}"))
        .collect();
    assert!(ours.iter().any(|(_, answer)| answer.contains("ERROR 1143")), "the script ran");
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
}
