//! `cargo xtask tidy`: checks of the code base that the compiler does not make. They also run as a test.
//! `cargo xtask book DIR` prepares the documentation for mdbook, `cargo xtask pages` writes generated pages.
//!
//! | check | rule |
//! |---|---|
//! | size | a source file has at most 900 lines |
//! | width | comments are wrapped at the width of code |
//! | walls | dependencies between crates; the only importer of RocksDB; access to files and clocks |
//! | invariants | I1 to I8 are explained in ARCHITECTURE.md and cited in code |
//! | records | a test names each row of the recovery table; the code has a failpoint for each stage |
//! | calls | public functions have a caller in the product |
//! | wording | lines with words that the house style replaces: fewer, never more |
//! | book | docs/SUMMARY.md lists every page |
//! | pages | generated pages are up to date |
//! | links | files and headings that pages link to exist |
//! | licences | the licences of libraries are in the list of licenses.rs |
//! | prose | no file mentions the machine that it was written on |

mod book;
mod calls;
mod circles;
mod licenses;
mod links;
mod pages;
mod source;
mod tidy;
mod wording;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            let findings = tidy::run(root);
            findings.iter().for_each(|finding| eprintln!("tidy: {finding}"));
            if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Some("book") => {
            let Some(out) = std::env::args().nth(2) else {
                eprintln!("usage: cargo xtask book DIR");
                return ExitCode::from(2);
            };
            match book::stage(&source::read_all(root), root, Path::new(&out)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("book: {error}");
                    ExitCode::FAILURE
                }
            }
        }
        Some("pages") => match pages::write(root) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("pages: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: cargo xtask tidy | book DIR | pages");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_code_base_is_tidy() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("in the workspace");
        let findings = super::tidy::run(root);
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
