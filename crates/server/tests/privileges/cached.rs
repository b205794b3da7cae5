//! All statements again, from the plan cache: a plan cached by another account must not change an account's
//! result.
//!
//! Each statement whose plan can be cached is run by the account, then by root, whose plan is cached, and
//! then by the account again. So is a query of every virtual table.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::support::Cohort;
use crate::{Answer, Kind, Side, accounts, answer, cohort_options, statements};

/// First words of statements whose plans are cached.
const PLANNED: [&str; 8] = ["SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE", "(SELECT", "VALUES"];

fn planned() -> Vec<String> {
    let is_planned = |sql: &&str| {
        PLANNED.contains(&sql.split(' ').next().unwrap_or_default())
            && !sql.contains("OUTFILE")
            && !sql.contains("DUMPFILE")
            && !sql.contains("{other}")
    };
    statements().into_iter().map(|(_, sql)| sql).filter(is_planned).map(str::to_owned).collect()
}

/// Returns a SELECT of each virtual table.
fn computed(root: &mut Conn) -> Vec<String> {
    let list = "SELECT table_schema, table_name FROM information_schema.tables \
                WHERE table_schema IN ('mysql', 'performance_schema', 'information_schema')";
    let tables: Vec<(String, String)> = root.query(list).expect("root sees all");
    assert!(tables.len() > 100, "{}", tables.len());
    tables.into_iter().map(|(schema, table)| format!("SELECT * FROM {schema}.{table} LIMIT 1")).collect()
}

/// Runs a statement, undoes its changes, and returns the result.
fn ask(client: &mut Conn, sql: &str) -> Answer {
    client.query_drop("BEGIN").expect("begins");
    let found = answer(client, Kind::Plain, sql);
    client.query_drop("ROLLBACK").expect("ends");
    found
}

/// Invalidates all cached plans.
fn forget_plans(side: &mut Side) {
    side.root.query_drop("CREATE OR REPLACE ROLE known").expect("made");
}

#[test]
fn a_plan_of_another_account_gives_no_right() {
    let server = Cohort::new(&["--secure-file-priv=/usr"]);
    let mut side = Side::new(cohort_options(&server));
    let mut list = planned();
    list.extend(computed(&mut side.root));
    let mut differing = Vec::new();
    for account in accounts() {
        side.make(&account);
        let mut client = side.enter(&account);
        forget_plans(&mut side);
        let alone: Vec<Answer> = list.iter().map(|sql| ask(&mut client, sql)).collect();
        forget_plans(&mut side);
        for sql in &list {
            ask(&mut side.root, sql);
        }
        for (sql, alone) in list.iter().zip(alone) {
            let kept = ask(&mut client, sql);
            if kept != alone {
                differing.push(format!("{}: {sql}: alone {alone:?}, from the cache {kept:?}", account.name));
            }
        }
    }
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
}
