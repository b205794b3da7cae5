//! Counters of wording that the house style replaces.
//!
//! A counter is the number of lines of code and documentation that contain one of its words, or of doc
//! comments that begin with one. Each has a limit. The limits may only be lowered: a change that adds such a
//! line has to reword another.

use crate::source::Source;

/// A kind of wording, with the lines that it may have.
struct Counter {
    name: &'static str,
    lines_max: usize,
    matches: fn(&str) -> bool,
}

const COUNTERS: &[Counter] = &[
    Counter { name: "people as subjects", lines_max: 3, matches: |line| has_word(line, PEOPLE) },
    Counter { name: "literal translations", lines_max: 3, matches: |line| has_word(line, TRANSLATIONS) },
    Counter { name: "'tell' for log, report, return", lines_max: 0, matches: |line| has_word(line, TELL) },
    Counter { name: "doc comments without a subject", lines_max: 0, matches: lacks_subject },
];

const PEOPLE: &[&str] = &["nobody", "somebody", "whoever", "everybody"];
const TRANSLATIONS: &[&str] =
    &["anew", "as ever", "beside", "behind", "aside", "so many", "be it", "is had", "are had", "vouch"];
const TELL: &[&str] = &["tell", "tells", "told"];
const HEADLESS: &[&str] = &["What", "Who", "Of", "The same", "So"];

/// Reports each counter that is over its limit.
pub fn check(sources: &[Source], findings: &mut Vec<String>) {
    for counter in COUNTERS {
        let lines = sources.iter().filter(|source| is_counted(source)).flat_map(|source| source.text.lines());
        let count = lines.filter(|line| (counter.matches)(line)).count();
        if count > counter.lines_max {
            findings.push(format!(
                "wording: {count} lines with {}, at most {}: reword what was added",
                counter.name, counter.lines_max
            ));
        }
    }
}

/// Returns whether a file is counted. The programs of xtask name the words and are not.
fn is_counted(source: &Source) -> bool {
    (source.path.ends_with(".rs") || source.path.ends_with(".md")) && !source.path.starts_with("xtask/")
}

/// Returns whether a line contains one of some words, in any case.
fn has_word(line: &str, words: &[&str]) -> bool {
    let line = line.to_ascii_lowercase();
    words.iter().any(|word| {
        line.match_indices(word).any(|(at, _)| {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part)
        })
    })
}

/// Returns whether a line is a doc comment that begins with a word that leaves the noun to the reader.
fn lacks_subject(line: &str) -> bool {
    let code = line.trim_start();
    let text = code.strip_prefix("/// ").or_else(|| code.strip_prefix("//! "));
    text.is_some_and(|text| {
        HEADLESS.iter().any(|word| {
            let rest = text.strip_prefix(word);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{PEOPLE, TRANSLATIONS, has_word, lacks_subject};

    #[test]
    fn whole_words_are_counted() {
        assert!(has_word("/// Nobody waits.", PEOPLE));
        assert!(!has_word("let nobody_waits = true;", PEOPLE));
        assert!(has_word("Be it so", TRANSLATIONS));
        assert!(!has_word("besides", TRANSLATIONS));
        assert!(lacks_subject("    /// What is read."));
        assert!(lacks_subject("//! Of a table."));
        assert!(!lacks_subject("/// Often read."));
        assert!(!lacks_subject("// What is read."));
    }
}
