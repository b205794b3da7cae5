//! Finds public functions without a caller in the product. A function that states an invariant but is never
//! called hides that the invariant is not enforced.
//!
//! The check is textual: a function counts as called if its name occurs anywhere in product code other than
//! its definition. A function with a common name may thus pass without a caller, but a function that is
//! called never fails.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, code_of};

/// Crates that are checked. The others are to follow.
const CHECKED: &[&str] = &["log", "binlog", "engine", "commit"];

/// Exceptions: functions for tests and measurements only, or required by lints. The list may only shrink.
const ALLOWED: &[(&str, &str)] = &[];

/// Reports public functions of the checked crates that are never called.
pub fn uncalled(sources: &[Source], findings: &mut Vec<String>) {
    let mut mentions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut defined = Vec::new();
    for source in sources.iter().filter(|source| source.is_product()) {
        let name = source.crate_name().unwrap_or_default();
        for line in source.without_tests().lines().map(code_of) {
            let own = defined_in(line);
            for word in words(line).filter(|word| Some(*word) != own) {
                *mentions.entry(word).or_default() += 1;
            }
            if let Some(function) =
                own.filter(|_| line.trim_start().starts_with("pub ") && CHECKED.contains(&name))
            {
                defined.push((name, function, &source.path));
            }
        }
    }
    let mut idle = BTreeSet::new();
    for (name, function, path) in
        defined.into_iter().filter(|(_, function, _)| !mentions.contains_key(function))
    {
        idle.insert((name, function));
        if !ALLOWED.contains(&(name, function)) {
            findings.push(format!("{path}: {function} has no caller in the product: remove it or use it"));
        }
    }
    for allowed in ALLOWED.iter().filter(|allowed| !idle.contains(*allowed)) {
        findings.push(format!("xtask/src/calls.rs: {allowed:?} need not be allowed any more"));
    }
}

/// Returns the name of the function whose definition begins on a line.
fn defined_in(line: &str) -> Option<&str> {
    let (before, behind) = line.split_once("fn ")?;
    let is_definition = before.split_whitespace().all(|word| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "extern")
            || word.starts_with("pub(")
            || word.starts_with('"')
    });
    words(behind).next().filter(|_| is_definition)
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_without_a_user_are_found() {
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources = [
            source(
                "crates/log/src/a.rs",
                "pub fn idle() {}\n    pub const fn used() {}\npub(crate) fn inner() {}\n// idle\n",
            ),
            source("crates/log/tests/a.rs", "idle()"),
            source("crates/sim/src/b.rs", "x.map(Y::used)\n#[cfg(test)]\nmod tests { idle() }"),
            source("crates/exec/src/c.rs", "pub fn nobodys() {}"),
        ];
        let mut findings = Vec::new();
        uncalled(&sources, &mut findings);
        assert_eq!(findings, ["crates/log/src/a.rs: idle has no caller in the product: remove it or use it"]);
    }
}
