//! Source files of the checkout.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file.
pub struct Source {
    /// Path relative to the checkout, with forward slashes.
    pub path: String,
    pub text: String,
}

impl Source {
    /// Returns the folder name of the crate: `log` for `crates/log/src/x.rs`.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Returns the part of a file before its unit tests.
    pub fn without_tests(&self) -> &str {
        self.text.split("#[cfg(test)]").next().unwrap_or(&self.text)
    }

    /// Returns whether it is Rust code of a product crate, not of its integration tests.
    pub fn is_product(&self) -> bool {
        self.path.ends_with(".rs") && self.path.contains("/src/")
    }
}

/// Returns the part of a line before its comment.
pub fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// Returns all text files except generated and ignored ones.
pub fn read_all(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    visit(root, root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn visit(root: &Path, dir: &Path, found: &mut Vec<Source>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir)
        .expect("a readable checkout")
        .map(|entry| entry.expect("readable").path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !["target", "cohort-data"].contains(&name) && !name.starts_with(".git") {
                visit(root, &path, found);
            }
        } else if !["Cargo.lock", ".git"].contains(&name)
            && let Ok(text) = fs::read_to_string(&path)
        {
            let path = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
            found.push(Source { path, text });
        }
    }
}
