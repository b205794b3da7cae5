//! `cargo xtask book DIR`: prepares the pages of the book for mdbook.
//!
//! Pages in docs are copied. Those in the checkout's root get a name within the book ([`RENAMED`]). Links
//! between pages are kept. A link to a source file is replaced by its text, because the book does not contain
//! the source.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::links::normal;
use crate::pages::track_record;
use crate::source::Source;

/// Pages with another name in the book: those outside of docs, and an index, which mdbook renames without its
/// links.
const RENAMED: &[(&str, &str)] = &[
    ("docs/decisions/README.md", "decisions/index.md"),
    ("README.md", "introduction.md"),
    ("ARCHITECTURE.md", "architecture.md"),
    ("CHANGELOG.md", "changelog.md"),
    ("CONTRIBUTING.md", "contributing.md"),
    ("SECURITY.md", "security.md"),
];

/// Notebooks, which are not part of the book.
const LAB: &str = "docs/lab/";
const SUMMARY: &str = "docs/SUMMARY.md";

const BOOK_TOML: &str = "[book]
title = \"Cohort\"
language = \"en\"
src = \"src\"

[output.html]
no-section-label = true
";

/// Writes the pages and mdbook's configuration into a directory.
pub fn stage(sources: &[Source], root: &Path, out: &Path) -> io::Result<()> {
    let pages = out.join("src");
    fs::create_dir_all(&pages)?;
    fs::write(out.join("book.toml"), BOOK_TOML)?;
    for source in sources {
        let Some(name) = name_in_book(&source.path) else { continue };
        let path = pages.join(&name);
        fs::create_dir_all(path.parent().unwrap_or(&pages))?;
        fs::write(path, with_links_of_book(&source.path, &name, &source.text))?;
    }
    fs::write(pages.join("track-record.md"), track_record(root)?)?;
    let figures = "figures.svg";
    fs::create_dir_all(pages.join("docs"))?;
    fs::copy(root.join("docs").join(figures), pages.join(figures))?;
    // The introduction refers to it by its path from the checkout's root.
    fs::copy(root.join("docs").join(figures), pages.join("docs").join(figures)).map(drop)
}

/// Reports pages that are missing from the table of contents.
pub fn check(sources: &[Source], findings: &mut Vec<String>) {
    let Some(summary) = sources.iter().find(|source| source.path == SUMMARY) else {
        findings.push(format!("{SUMMARY} is missing"));
        return;
    };
    for source in sources.iter().filter(|source| source.path != SUMMARY) {
        let Some(name) = name_in_book(&source.path) else { continue };
        if !summary.text.contains(&format!("]({name})")) {
            findings.push(format!("{SUMMARY}: lacks {}", source.path));
        }
    }
}

/// Returns the name of a page within the book, or `None` if it is not part of it.
fn name_in_book(path: &str) -> Option<String> {
    if let Some((_, name)) = RENAMED.iter().find(|(page, _)| *page == path) {
        return Some((*name).to_owned());
    }
    let is_page = path.starts_with("docs/") && path.ends_with(".md") && !path.starts_with(LAB);
    is_page.then(|| path["docs/".len()..].to_owned())
}

/// Rewrites the links of a page.
fn with_links_of_book(path: &str, name: &str, text: &str) -> String {
    if path == SUMMARY {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let Some(length) = rest[middle + 2..].find(')') else { break };
        let target = &rest[middle + 2..middle + 2 + length];
        let after = &rest[middle + 3 + length..];
        let (before, label) = match rest[..middle].rfind('[') {
            Some(open) => (&rest[..open], &rest[open + 1..middle]),
            None => ("", &rest[..middle]),
        };
        out.push_str(before);
        match target_in_book(path, name, target) {
            Some(target) => out.extend(["[", label, "](", &target, ")"]),
            None => out.push_str(label),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the target of a link within the book, or `None` if the target is not part of the book.
fn target_in_book(path: &str, name: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with('#') || target.ends_with(".svg") {
        return Some(target.to_owned());
    }
    let (file, heading) = target.split_once('#').map_or((target, ""), |(file, heading)| (file, heading));
    let file = normal(&Path::new(path).with_file_name("").join(file));
    let there = name_in_book(&file.to_string_lossy())?;
    let up: PathBuf = Path::new(name).parent().into_iter().flat_map(Path::components).map(|_| "..").collect();
    let mut link = up.join(there).to_string_lossy().into_owned();
    if !heading.is_empty() {
        link.push('#');
        link.push_str(heading);
    }
    Some(link)
}

#[cfg(test)]
mod tests {
    use super::{name_in_book, with_links_of_book};

    #[test]
    fn links_lead_to_pages_of_the_book() {
        for (path, text, expected) in [
            ("README.md", "a [b](docs/disk.md#one), [c](LICENSE)", "a [b](disk.md#one), c"),
            (
                "docs/queries.md",
                "[x.rs](../crates/x.rs) [A](../ARCHITECTURE.md)",
                "x.rs [A](architecture.md)",
            ),
            (
                "docs/decisions/0001-a.md",
                "[d](../disk.md) [2](0002-b.md)",
                "[d](../disk.md) [2](../decisions/0002-b.md)",
            ),
            ("README.md", "[g](docs/decisions/README.md)", "[g](decisions/index.md)"),
            ("docs/disk.md", "[e](https://example.org) [f](#two)", "[e](https://example.org) [f](#two)"),
        ] {
            let name = name_in_book(path).expect("a page");
            assert_eq!(with_links_of_book(path, &name, text), expected, "{path}");
        }
        assert_eq!(name_in_book("docs/lab/results.md"), None);
    }
}
