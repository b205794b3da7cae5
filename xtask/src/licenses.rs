//! Checks the licences of the libraries that the product is built with.
//!
//! `cargo metadata` lists each package of the lock file with an SPDX expression. A package is accepted if the
//! licences in [`ACCEPTED`] satisfy its expression.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, ParseMode};

/// Licences that may be distributed with a program under Apache-2.0.
const ACCEPTED: &[&str] =
    &["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Reports packages whose licence is missing, unreadable, or not accepted.
pub fn check(root: &Path, findings: &mut Vec<String>) {
    match metadata(root) {
        Ok(packages) => findings.extend(packages.iter().filter_map(fault)),
        Err(why) => findings.push(format!("cargo metadata: {why}")),
    }
}

/// Returns the packages of the lock file, as cargo reports them.
fn metadata(root: &Path) -> Result<Vec<Value>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform=x86_64-unknown-linux-gnu"])
        .current_dir(root)
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut tree: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    match tree["packages"].take() {
        Value::Array(packages) if !packages.is_empty() => Ok(packages),
        _ => Err("it lists no packages".to_owned()),
    }
}

/// Returns why a package is not accepted.
fn fault(package: &Value) -> Option<String> {
    let name = package["name"].as_str().unwrap_or("a package without a name");
    let Some(text) = package["license"].as_str() else {
        return Some(format!("{name}: names no licence"));
    };
    match Expression::parse_mode(text, ParseMode::LAX) {
        Ok(expression) if is_accepted(&expression) => None,
        Ok(_) => Some(format!("{name}: the licence '{text}' is not in the list of xtask/src/licenses.rs")),
        Err(_) => Some(format!("{name}: the licence '{text}' is no SPDX expression")),
    }
}

fn is_accepted(expression: &Expression) -> bool {
    expression.evaluate(|requirement| {
        requirement.license.id().is_some_and(|id| ACCEPTED.contains(&id.name))
            && requirement.addition.is_none()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fault;

    #[test]
    fn packages_are_accepted_by_their_expression() {
        let cases = [
            (json!("MIT"), true),
            (json!("MIT/Apache-2.0"), true),
            (json!("GPL-3.0-only OR MIT"), true),
            (json!("(MIT OR Apache-2.0) AND Unicode-3.0"), true),
            (json!("GPL-3.0-only"), false),
            (json!("MIT AND GPL-2.0-only"), false),
            (json!("no licence at all"), false),
            (json!(null), false),
        ];
        for (license, accepted) in cases {
            let package = json!({ "name": "a", "license": license });
            assert_eq!(fault(&package).is_none(), accepted, "{license}");
        }
    }
}
