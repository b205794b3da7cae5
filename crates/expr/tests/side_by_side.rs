//! Differential test: generated expressions must have the same values, warnings and errors as in a real
//! MariaDB.
//!
//! `COHORT_FUZZ_SEED=N` selects another seed, `COHORT_LONG_TESTS=1` runs many more. `COHORT_EXPRESSIONS=FILE`
//! tests the lines of a file instead.

mod support;

use std::collections::BTreeSet;

use support::mariadb::Maria;
use support::{answer, generate::Generator, world};

/// Number of expressions per seed.
const ROUND: usize = 500;

/// Splits a result into its value and the set of its warnings. MariaDB may repeat a warning, depending on how
/// often it evaluates an argument during planning.
fn parts(answer: &str) -> (&str, BTreeSet<&str>) {
    let (value, warnings) = answer.split_once('\t').unwrap_or((answer, ""));
    // The text of a syntax error shows the rest of the statement.
    let value = if value.starts_with("ERROR 1064") { "ERROR 1064" } else { value };
    (value, warnings.split(" | ").filter(|w| !w.is_empty()).collect())
}

/// Returns true if two results match. A server may evaluate an operand that the other one does not need, so
/// the warnings of one may be a subset of the other's.
fn alike(ours: &str, theirs: &str) -> bool {
    let ((ours, our_warnings), (theirs, their_warnings)) = (parts(ours), parts(theirs));
    ours == theirs && (our_warnings.is_subset(&their_warnings) || their_warnings.is_subset(&our_warnings))
}

/// Functions that stop reading once the result is known.
const JSON_OF_TWO: &[&str] = &["JSON_MERGE", "JSON_OVERLAPS", "JSON_LENGTH", "JSON_CONTAINS"];

/// Returns true for known differences.
fn is_known(expression: &str, theirs: &str) -> bool {
    // MariaDB refuses JSON columns as dates.
    theirs.starts_with("ERROR 4078") || theirs.starts_with("ERROR 4079")
        // MariaDB names a CAST by the text of the statement.
        || theirs.contains("1264 Out of range value for column 'CAST(")
        // MariaDB reads documents only as far as necessary: it ignores text after a number and errors at the
        // end.
        || JSON_OF_TWO.iter().any(|name| expression.contains(name))
        // MariaDB returns the largest number as the week of an invalid date.
        || theirs.starts_with("613566757")
}

/// An expression with different results.
struct Difference {
    text: String,
    /// True if the values differ, false if only the warnings do.
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

/// Maximum numbers of differing values and of differing results, per thousand. The remaining differences are
/// corner cases such as arguments of absurd types. The limits may only be lowered.
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
