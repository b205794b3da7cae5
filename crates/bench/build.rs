//! Compiles the preloaded library (`preload/preload.rs`). The program embeds it and writes it to a file at
//! run time.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=preload/preload.rs");
    let variable = |name: &str| std::env::var(name).expect("cargo sets it");
    let library = PathBuf::from(variable("OUT_DIR")).join("libcohort_preload.so");
    let status = Command::new(variable("RUSTC"))
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "--crate-name=cohort_preload",
            "-O",
            "-C",
            "panic=abort",
        ])
        .arg("--target")
        .arg(variable("TARGET"))
        .arg("-o")
        .arg(&library)
        .arg("preload/preload.rs")
        .status()
        .expect("the compiler that cargo names runs");
    assert!(status.success(), "preload/preload.rs does not compile");
}
