//! Stored programs compared with a real MariaDB: random programs, whose results, errors and conditions are
//! compared on both servers.
//!
//! `COHORT_LONG_TESTS=1` runs many more. `COHORT_SEED=N` runs one, and prints it.

#[path = "../support/mod.rs"]
mod support;

mod generator;
#[allow(dead_code)] // only a part of it is used
#[path = "../../../bench/src/random.rs"]
mod random;

use std::fmt::Write;

use generator::Generator;
use mysql::Conn;
use mysql::prelude::Queryable;
use support::{Cohort, Maria, shown};

/// Runs a text and returns all that a client sees: rows, errors, and the conditions that are left.
fn seen(client: &mut Conn, sql: &str) -> String {
    let mut out = String::new();
    let failed = |out: &mut String, error: mysql::Error| match error {
        mysql::Error::MySqlError(error) => {
            let _ = writeln!(out, "ERROR {} ({}): {}", error.code, error.state, error.message);
        }
        other => panic!("{sql}: {other}"),
    };
    match client.query_iter(sql) {
        Err(error) => failed(&mut out, error),
        Ok(mut results) => {
            while let Some(set) = results.iter() {
                let names: Vec<String> =
                    set.columns().as_ref().iter().map(|column| column.name_str().into_owned()).collect();
                let _ = writeln!(out, "({})", names.join(", "));
                for row in set {
                    match row {
                        Ok(row) => {
                            let cells: Vec<String> = row.unwrap().iter().map(shown).collect();
                            let _ = writeln!(out, "{}", cells.join("\t"));
                        }
                        Err(error) => {
                            failed(&mut out, error);
                            break;
                        }
                    }
                }
            }
        }
    }
    out
}

const TABLES: &str = "CREATE OR REPLACE TABLE t (a INT PRIMARY KEY, b VARCHAR(6)) ENGINE=InnoDB; \
                      INSERT INTO t VALUES (1, 'one'), (2, 'two'), (5, NULL)";

fn outcome(client: &mut Conn, seed: u64) -> String {
    client.query_drop(TABLES).expect("the table is made");
    let modes = ["STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO", ""];
    client.query_drop(format!("SET sql_mode = '{}'", modes[seed as usize % 2])).expect("set");
    let body = Generator::body(seed);
    let mut out = match seed % 3 {
        0 => seen(client, &body.replacen("BEGIN", "BEGIN NOT ATOMIC", 1)),
        _ => {
            let made = seen(client, &format!("CREATE OR REPLACE PROCEDURE p() {body}"));
            format!("{made}{}", seen(client, "CALL p()"))
        }
    };
    for sql in ["SHOW WARNINGS", "SELECT * FROM t ORDER BY a", "SELECT CONCAT(@u), @e"] {
        out += &seen(client, sql);
    }
    out
}

/// Maximum number of programs, of a thousand, that may differ: mostly in which conditions are left, in row
/// numbers of messages, and in the order of warnings. It may only be lowered.
const DIFFER_MAX: usize = 260;

#[test]
fn random_programs_answer_as_on_mariadb() {
    let (cohort, mariadb) = (Cohort::new(&[]), Maria::new(&[]));
    let (mut ours, mut theirs) = (cohort.client(), mariadb.client());
    for client in [&mut ours, &mut theirs] {
        client.query_drop("CREATE DATABASE IF NOT EXISTS programs; USE programs").expect("made");
    }
    let seeds = match (std::env::var("COHORT_SEED"), std::env::var_os("COHORT_LONG_TESTS")) {
        (Ok(seed), _) => {
            let seed: u64 = seed.parse().expect("a number");
            println!("{}", Generator::body(seed));
            seed..seed + 1
        }
        (_, Some(_)) => 0..100_000,
        _ => 0..2_000,
    };
    let mut wrong = Vec::new();
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let (own, expected) = (outcome(&mut ours, seed), outcome(&mut theirs, seed));
        if own != expected {
            wrong.push(format!("seed {seed}\n--- MariaDB\n{expected}\n--- here\n{own}"));
        }
    }
    let allowed = count as usize * DIFFER_MAX / 1000;
    println!("{} of {count} differ, {allowed} may", wrong.len());
    assert!(
        wrong.len() <= allowed,
        "{} of {count} differ, more than {allowed}:\n{}",
        wrong.len(),
        wrong.iter().take(10).cloned().collect::<Vec<_>>().join("\n")
    );
}
