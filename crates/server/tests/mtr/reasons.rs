//! Reasons why tests fail, with the number of tests for each.

use std::collections::BTreeMap;
use std::fmt;

/// Reasons with the names of the failed tests.
pub struct Reasons(BTreeMap<String, Vec<String>>);

impl Reasons {
    /// Groups failed tests, given by name and message.
    pub fn of(failed: &[(String, String)]) -> Reasons {
        let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, why) in failed {
            reasons.entry(reason(why)).or_default().push(name.clone());
        }
        Reasons(reasons)
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<_> = self.0.iter().collect();
        rows.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
        writeln!(f, "tests  reason")?;
        for (reason, tests) in rows {
            let some: Vec<&str> = tests.iter().take(3).map(String::as_str).collect();
            writeln!(f, "{:5}  {reason}  ({}, ..)", tests.len(), some.join(", "))?;
        }
        Ok(())
    }
}

/// Extracts the reason from the client's message: the number and text of an error, both errors if two differ,
/// or that results differ.
fn reason(why: &str) -> String {
    let cut = |text: &str| text.chars().take(110).collect::<String>();
    if let Some(at) = why.find("failed with wrong errno ") {
        let rest = why[at + "failed with wrong errno ".len()..].lines().next().unwrap_or_default();
        let instead = rest.rsplit("instead of ").next().unwrap_or_default();
        return cut(&format!("{}, instead of {instead}", rest.split(", instead of").next().unwrap_or(rest)));
    }
    if let Some(at) = why.find("' failed: ") {
        return cut(why[at + "' failed: ".len()..].lines().next().unwrap_or_default());
    }
    if why.contains("succeeded - should have failed") {
        return "no error where MariaDB has one".to_owned();
    }
    if why.starts_with("line ") {
        return answers(why);
    }
    cut(why.lines().last().unwrap_or_default().trim())
}

/// Extracts the reason from two results: an error that only one of them has, or that they differ.
fn answers(why: &str) -> String {
    let mut halves = why.split("    MariaDB\n");
    let error = |half: Option<&str>| {
        let first =
            half?.lines().map(str::trim).find(|line| !line.starts_with("line ") && *line != "here")?;
        first.starts_with("ERROR ").then(|| first.chars().take(100).collect::<String>())
    };
    match (error(halves.next()), error(halves.next())) {
        (Some(error), _) => error,
        (None, Some(error)) => format!("not {error}"),
        (None, None) => "answers differ".to_owned(),
    }
}
