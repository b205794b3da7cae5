//! Circles of files: files of one crate that use each other, directly or through others.
//!
//! # Resolution
//! An edge leads from a file to the file that defines what it names by a path (`crate::a::B`, `super::c`),
//! with re-exports (`pub use`) followed to the definition. Re-exports themselves are no edges: `lib.rs` and
//! `mod.rs` list what is there. Unit tests are left out. The reading is textual, so macros are not expanded.
//!
//! A circle is a strongly connected component of more than one file. Both limits may only be lowered.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, code_of};

/// Maximum number of circles in all crates.
const CIRCLES_MAX: usize = 13;
/// Maximum number of files in one circle.
const FILES_MAX: usize = 8;

/// The components of a module's path inside its crate.
type Module = Vec<String>;

/// A file's module and the paths in it.
struct File<'s> {
    path: &'s str,
    module: Module,
    /// Paths of `use` declarations and expressions.
    uses: Vec<Vec<String>>,
    /// Re-exported names and their paths; the name of a glob is `*`.
    exports: Vec<(String, Vec<String>)>,
}

/// Reports circles beyond the limits.
pub fn check(sources: &[Source], findings: &mut Vec<String>) {
    let circles = circles(sources);
    let largest = circles.iter().map(Vec::len).max().unwrap_or_default();
    if circles.len() > CIRCLES_MAX {
        let all: Vec<String> = circles.iter().map(|circle| circle.join(" ")).collect();
        let text = format!(
            "circles: {} of files that use each other, at most {CIRCLES_MAX}: {}",
            circles.len(),
            all.join("; ")
        );
        findings.push(text);
    }
    if let Some(circle) = circles.iter().find(|circle| circle.len() == largest && largest > FILES_MAX) {
        findings.push(format!("circles: {largest} files in one, at most {FILES_MAX}: {}", circle.join(", ")));
    }
}

/// Returns the circles of all crates, each with its files.
fn circles(sources: &[Source]) -> Vec<Vec<String>> {
    let mut crates: BTreeMap<&str, Vec<File<'_>>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_product() && !source.path.contains("/bin/")) {
        let name = source.crate_name().unwrap_or_default();
        let Some((_, inside)) = source.path.split_once("/src/") else { continue };
        if !is_test(inside) {
            crates.entry(name).or_default().push(read(source, module_of(inside)));
        }
    }
    crates.values().flat_map(|files| circles_of(files)).collect()
}

fn is_test(inside: &str) -> bool {
    inside
        .split(['/', '.'])
        .any(|part| part == "tests" || part.ends_with("_tests") || part.starts_with("test_"))
}

/// Returns the module of a file: `a/b.rs` and `a/b/mod.rs` are `a::b`.
fn module_of(inside: &str) -> Module {
    let mut parts: Module = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

fn read(source: &Source, module: Module) -> File<'_> {
    let mut file = File { path: &source.path, module, uses: Vec::new(), exports: Vec::new() };
    let tokens = tokens(source.without_tests());
    let mut at = 0;
    let mut is_public = false;
    while at < tokens.len() {
        match tokens[at] {
            "pub" => is_public = true,
            // pub(crate)
            "(" | ")" => {}
            "use" => {
                let mut found = Vec::new();
                at = tree(&tokens, at + 1, &mut Vec::new(), &mut found);
                for (path, name) in found {
                    let Some(path) = file.absolute(&path) else { continue };
                    match is_public {
                        true => file.exports.push((name, path)),
                        false => file.uses.push(path),
                    }
                }
                is_public = false;
                continue;
            }
            "crate" | "super" if tokens.get(at + 1) == Some(&"::") => {
                let mut path = vec![tokens[at].to_owned()];
                while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|t| is_name(t)) {
                    path.push(tokens[at + 2].to_owned());
                    at += 2;
                }
                file.uses.extend(file.absolute(&path));
                is_public &= tokens.get(at + 1) == Some(&")");
            }
            _ => is_public &= ["crate", "super", "in", "self"].contains(&tokens[at]),
        }
        at += 1;
    }
    file
}

/// Reads a tree of `use` from a token on. Returns the index of the token after it.
fn tree(
    tokens: &[&str],
    mut at: usize,
    before: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let depth = before.len();
    while let Some(token) = tokens.get(at) {
        match *token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = tree(tokens, at, before, found);
                    at += usize::from(tokens.get(at) == Some(&","));
                }
                at += 1;
                break;
            }
            "::" => at += 1,
            name => {
                before.push(name.to_owned());
                at += 1;
                if tokens.get(at) == Some(&"::") {
                    continue;
                }
                let mut known_as = name;
                if tokens.get(at) == Some(&"as") {
                    known_as = tokens.get(at + 1).copied().unwrap_or_default();
                    at += 2;
                }
                let path = if name == "self" { before[..before.len() - 1].to_vec() } else { before.clone() };
                let known_as = if known_as == "self" {
                    path.last().cloned().unwrap_or_default()
                } else {
                    known_as.to_owned()
                };
                found.push((path, known_as));
                break;
            }
        }
    }
    before.truncate(depth);
    at
}

impl File<'_> {
    /// Returns a path from the root of the crate, or `None` if it leads to another crate.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let mut rest = path;
        let mut from = self.module.clone();
        match rest.first()?.as_str() {
            "crate" => from.clear(),
            "self" => {}
            "super" => {
                while rest.get(1).is_some_and(|next| next == "super") {
                    from.pop();
                    rest = &rest[1..];
                }
                from.pop();
            }
            // A submodule, as `pub use a::B` in its parent names it.
            _ => return Some([&self.module[..], rest].concat()),
        }
        from.extend_from_slice(&rest[1..]);
        Some(from)
    }
}

/// Returns the index of the file that defines what a path names.
fn definition(files: &[File<'_>], path: &[String], depth: usize) -> Option<usize> {
    let (n, file) = files
        .iter()
        .enumerate()
        .filter(|(_, file)| path.starts_with(&file.module))
        .max_by_key(|(_, file)| file.module.len())?;
    let Some(name) = path.get(file.module.len()) else { return Some(n) };
    // Re-exports that lead to themselves end the search.
    if depth < 8 {
        let rest = &path[file.module.len() + 1..];
        let named = file.exports.iter().filter(|(export, _)| export == name);
        let globs = file.exports.iter().filter(|(export, _)| export == "*");
        for (_, target) in named {
            let found = definition(files, &[&target[..], rest].concat(), depth + 1);
            if found.is_some_and(|found| found != n) {
                return found;
            }
        }
        for (_, target) in globs {
            let target = &target[..target.len() - 1];
            let path = [target, &path[file.module.len()..]].concat();
            let found = definition(files, &path, depth + 1);
            if found.is_some_and(|found| found != n && files[found].module != target) {
                return found;
            }
        }
    }
    Some(n)
}

/// Returns the strongly connected components of more than one file.
fn circles_of(files: &[File<'_>]) -> Vec<Vec<String>> {
    let edges: Vec<BTreeSet<usize>> = files
        .iter()
        .enumerate()
        .map(|(n, file)| {
            let ends = file.uses.iter().filter_map(|path| definition(files, path, 0));
            ends.filter(|end| *end != n).collect()
        })
        .collect();
    let reachable: Vec<BTreeSet<usize>> = (0..files.len())
        .map(|n| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![n]);
            while let Some(at) = open.pop() {
                open.extend(edges[at].iter().filter(|end| seen.insert(**end)));
            }
            seen
        })
        .collect();
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let mut circles = Vec::new();
    for n in 0..files.len() {
        if !reachable[n].contains(&n) || taken.contains(&n) {
            continue;
        }
        let circle: Vec<usize> =
            reachable[n].iter().copied().filter(|other| reachable[*other].contains(&n)).collect();
        taken.extend(&circle);
        if circle.len() > 1 {
            circles.push(circle.into_iter().map(|file| files[file].path.to_owned()).collect());
        }
    }
    circles
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Returns names and the signs of paths, without comments and strings.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for line in text.lines() {
        let mut rest = code_of(line);
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                ':' if rest.starts_with("::") => 2,
                _ if is_name(rest) => {
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
                }
                _ => first.len_utf8(),
            };
            if is_name(rest) || matches!(&rest[..length], "::" | "{" | "}" | "," | ";" | "*" | "(" | ")") {
                tokens.push(&rest[..length]);
            }
            rest = &rest[length..];
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: format!("crates/x/src/{path}"), text: text.to_owned() }
    }

    #[test]
    fn files_that_use_each_other_are_a_circle() {
        let sources = [
            source("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\npub use b::{B, Other as C};\nmod d;\n"),
            source("a.rs", "use crate::C;\npub struct A;\n"),
            source("b.rs", "use std::{fmt, io};\nfn f() -> super::A { todo!() }\n"),
            source("c.rs", "// use crate::d::D;\nuse crate::{A, d::{self, D}};\n"),
            source("d/mod.rs", "#[cfg(test)]\nuse crate::c::E;\npub struct D;\n"),
        ];
        assert_eq!(circles(&sources), [["crates/x/src/a.rs", "crates/x/src/b.rs"]]);
    }

    #[test]
    fn a_module_that_lists_its_files_makes_no_circle() {
        let sources = [
            source("lib.rs", "mod a;\npub use a::*;\n"),
            source("a/mod.rs", "mod one;\nmod two;\npub(crate) use one::*;\npub use self::two::Two;\n"),
            source("a/one.rs", "use super::Two;\npub struct One;\n"),
            source("a/two.rs", "pub struct Two;\n"),
        ];
        assert!(circles(&sources).is_empty());
    }
}
