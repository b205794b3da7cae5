//! Statements generated from templates: each expression alone, and the same expression selected from a
//! derived table, in a UNION, in a scalar subquery, grouped, and prepared.

use cohort_vfs::{Rng, SeededRng};

use crate::compare::{Differences, Pair};
use crate::templates::{AGGREGATES, SCALARS, columns_of};

/// Replaces a template's placeholders by columns.
fn fill(template: &str, rng: &dyn Rng) -> String {
    let mut out = String::new();
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(place) if c == '$' && place.is_ascii_lowercase() => {
                let columns = columns_of(*place);
                out.push_str(columns[(rng.next_u64() % columns.len() as u64) as usize]);
                chars.next();
            }
            _ => out.push(c),
        }
    }
    out
}

/// Statements that embed an expression, each with the name of its class.
const AROUND: &[(&str, &str)] = &[
    ("derived", "SELECT d.x FROM (SELECT $e AS x FROM ty) AS d"),
    ("union", "SELECT $e AS x FROM ty UNION ALL SELECT $e FROM ty"),
    ("subquery", "SELECT (SELECT $e FROM ty LIMIT 1) AS x"),
    ("distinct", "SELECT DISTINCT $e AS x FROM ty"),
    ("ordered", "SELECT $e AS x FROM ty ORDER BY x"),
];

fn one(pair: &mut Pair, template: &str, expression: &str, differences: &mut Differences) {
    let plain = format!("SELECT {expression} AS x FROM ty");
    let before = differences.count();
    if !pair.compare(&plain, template, differences) || differences.count() > before {
        // If the expression alone differs, every other statement with it would differ, too.
        return;
    }
    pair.compare_prepared(&plain, &format!("prepared {template}"), differences);
}

fn around(pair: &mut Pair, expression: &str, rng: &dyn Rng, differences: &mut Differences) {
    let (name, statement) = AROUND[(rng.next_u64() % AROUND.len() as u64) as usize];
    let mut discarded = Differences::default();
    let plain = format!("SELECT {expression} AS x FROM ty");
    if pair.compare(&plain, "", &mut discarded) && discarded.count() == 0 {
        pair.compare(&statement.replace("$e", expression), name, differences);
    }
}

/// Compares the common types of branches and of both sides of a UNION.
fn joined(pair: &mut Pair, rng: &dyn Rng, differences: &mut Differences) {
    let (left, right) = (fill("$a", rng), fill("$a", rng));
    let of = |c: &str| c.trim_start_matches("c_").to_owned();
    let sql = format!("SELECT {left} AS x FROM ty UNION ALL SELECT {right} FROM ty");
    pair.compare(&sql, "union of two", differences);
    let _ = of;
}

#[test]
fn generated_statements() {
    let seed = std::env::var("COHORT_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(1);
    println!("seed {seed}: COHORT_FUZZ_SEED={seed} repeats it");
    let is_long = std::env::var_os("COHORT_LONG_TESTS").is_some();
    let rounds = if is_long { 60 } else { 3 };
    let rng = SeededRng::new(seed);
    let mut pair = Pair::new();
    let mut differences = Differences::default();
    for template in SCALARS.iter().chain(AGGREGATES) {
        let places = template.matches('$').count();
        for _ in 0..if places == 0 { 1 } else { rounds } {
            let expression = fill(template, &rng);
            one(&mut pair, template, &expression, &mut differences);
            if !AGGREGATES.contains(template) {
                around(&mut pair, &expression, &rng, &mut differences);
            }
        }
    }
    for _ in 0..rounds * 40 {
        joined(&mut pair, &rng, &mut differences);
    }
    differences.check("generated", include_str!("known_generated.txt"), is_long);
}
