//! Generated expressions here and in a real MariaDB: values, warnings and errors are the same.
//!
//! `COHORT_FUZZ_SEED=N` starts with another seed, `COHORT_LONG_TESTS=1` runs many more of them.
//! `COHORT_EXPRESSIONS=FILE` asks about the lines of a file instead.

mod support;

use std::collections::BTreeSet;

use support::mariadb::Maria;
use support::{answer, generate::Generator, world};

/// Expressions of one seed.
const ROUND: usize = 500;

/// An answer as value and set of warnings: how often MariaDB tells one depends on how often it looks at an
/// argument while it plans.
fn parts(answer: &str) -> (&str, BTreeSet<&str>) {
    let (value, warnings) = answer.split_once('\t').unwrap_or((answer, ""));
    // A syntax error's text shows the rest of the statement.
    let value = if value.starts_with("ERROR 1064") { "ERROR 1064" } else { value };
    (value, warnings.split(" | ").filter(|w| !w.is_empty()).collect())
}

/// Whether two answers are the same. One server may read an operand that the other does not need, and warn
/// of it: the warnings of one contain those of the other.
fn alike(ours: &str, theirs: &str) -> bool {
    let ((ours, our_warnings), (theirs, their_warnings)) = (parts(ours), parts(theirs));
    ours == theirs && (our_warnings.is_subset(&their_warnings) || their_warnings.is_subset(&our_warnings))
}

/// Functions that stop reading where their answer is known.
const JSON_OF_TWO: &[&str] = &["JSON_MERGE", "JSON_OVERLAPS", "JSON_LENGTH", "JSON_CONTAINS"];

/// What is known to be otherwise here.
fn is_known(expression: &str, theirs: &str) -> bool {
    // MariaDB refuses JSON columns where dates are wanted.
    theirs.starts_with("ERROR 4078") || theirs.starts_with("ERROR 4079")
        // It names a CAST by the text of the statement.
        || theirs.contains("1264 Out of range value for column 'CAST(")
        // It reads documents only as far as it must: text behind a number is not seen, nor is an error at
        // the end.
        || JSON_OF_TWO.iter().any(|name| expression.contains(name))
        // The week of no date is the largest number there is.
        || theirs.starts_with("613566757")
}

/// An expression with both answers.
struct Difference {
    text: String,
    /// Not only in its warnings.
    in_value: bool,
}

fn differences(maria: &Maria, expressions: &[String]) -> Vec<Difference> {
    let theirs = maria.answers(expressions);
    assert_eq!(theirs.len(), expressions.len(), "MariaDB answered all");
    let mut out = Vec::new();
    for (expression, wanted) in expressions.iter().zip(&theirs) {
        let got = answer(expression, &world::row());
        if !alike(&got, wanted) && !is_known(expression, wanted) {
            let text = format!("{expression}\n   MariaDB: {wanted}\n    Cohort: {got}");
            out.push(Difference { text, in_value: parts(&got).0 != parts(wanted).0 });
        }
    }
    out
}

/// Of a thousand answers, so many may have another value, and so many may warn of something else. What is
/// left are corners such as arguments of absurd types; the numbers only go down.
const VALUES_PER_THOUSAND: usize = 15;
const ANSWERS_PER_THOUSAND: usize = 40;

#[test]
fn generated_expressions_answer_alike() {
    let maria = Maria::new();
    if let Some(file) = std::env::var_os("COHORT_EXPRESSIONS") {
        let text = std::fs::read_to_string(file).expect("the file is there");
        let expressions: Vec<String> = text.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect();
        let wrong = differences(&maria, &expressions);
        assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), expressions.len(), shown(&wrong));
        return;
    }
    let is_long = std::env::var_os("COHORT_LONG_TESTS").is_some();
    let first = std::env::var("COHORT_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1u64);
    let rounds = if is_long { 40 } else { 4 };
    let mut wrong = Vec::new();
    for seed in first..first + rounds {
        println!("COHORT_FUZZ_SEED={seed}");
        let mut generator = Generator::new(seed);
        let expressions: Vec<String> = (0..ROUND).map(|n| generator.expression(1 + n % 4 / 3)).collect();
        wrong.extend(differences(&maria, &expressions));
    }
    let total = rounds as usize * ROUND;
    let values = wrong.iter().filter(|d| d.in_value).count();
    println!("{} of {total} differ:\n{}", wrong.len(), shown(&wrong));
    assert!(values * 1000 <= total * VALUES_PER_THOUSAND, "{values} of {total} values differ");
    assert!(wrong.len() * 1000 <= total * ANSWERS_PER_THOUSAND, "{} of {total} answers differ", wrong.len());
}

fn shown(differences: &[Difference]) -> String {
    differences.iter().map(|d| d.text.as_str()).collect::<Vec<_>>().join("\n")
}
