//! Checks the links of the documentation: the files and headings that they refer to exist.

use std::path::{Component, Path, PathBuf};

use crate::source::Source;

/// Reports links of Markdown files whose file or heading does not exist.
pub fn check(root: &Path, sources: &[Source], findings: &mut Vec<String>) {
    for source in sources.iter().filter(|source| source.path.ends_with(".md")) {
        // The links of the table of contents are relative to the book.
        if source.path == "docs/SUMMARY.md" {
            continue;
        }
        for target in targets(&source.text) {
            if let Some(fault) = fault(root, sources, source, target) {
                findings.push(format!("{}: the link '{target}' {fault}", source.path));
            }
        }
    }
}

/// Returns the targets of all links except those to other hosts.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("](").filter_map(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let target = &rest[..rest.find(')')?];
        let is_ours = !target.contains("://") && !target.contains(char::is_whitespace) && !target.is_empty();
        is_ours.then_some(target)
    })
}

fn fault(root: &Path, sources: &[Source], from: &Source, target: &str) -> Option<String> {
    let (file, heading) =
        target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    let path = match file {
        "" => PathBuf::from(&from.path),
        file => normal(&Path::new(&from.path).with_file_name("").join(file)),
    };
    if !file.is_empty() && !root.join(&path).exists() {
        return Some("names no file".to_owned());
    }
    let page = sources.iter().find(|source| Path::new(&source.path) == path)?;
    let heading = heading?;
    let is_there = page.text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading);
    (!is_there && page.path.ends_with(".md")).then(|| "names no heading".to_owned())
}

/// Removes `.` and `..` from a path.
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// Returns the anchor that a heading gets when a page is rendered.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{anchor, check};
    use crate::source::Source;

    #[test]
    fn broken_links_are_reported() {
        assert_eq!(anchor("## `XA` and TLS, in 2 parts"), "xa-and-tls-in-2-parts");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
        let page = |text: &str| Source { path: "docs/page.md".to_owned(), text: text.to_owned() };
        for (text, faults) in [
            ("# One\n[a](../README.md), [b](#one), [c](https://example.org/x)", 0),
            ("[a](../MISSING.md)", 1),
            ("# One\n[a](#two), [b](#one)", 1),
        ] {
            let mut findings = Vec::new();
            check(root, &[page(text)], &mut findings);
            assert_eq!(findings.len(), faults, "{text}: {findings:?}");
        }
    }
}
