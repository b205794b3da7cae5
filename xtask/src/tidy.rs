//! The checks. Each reports findings; without findings the code base is tidy.

use std::path::Path;

use crate::book;
use crate::calls;
use crate::circles;
use crate::licenses;
use crate::links;
use crate::pages;
use crate::source::{Source, code_of, read_all};
use crate::wording;

const LINES_MAX: usize = 900;
/// Width of code in rustfmt.toml. Comments have the same width.
const WIDTH_MAX: usize = 110;

/// Crates by layer of the architecture, lowest first. A crate may use the crates of earlier layers, and those
/// that precede it in its own layer.
const LINES: &[&[&str]] = &[
    &["base", "interleave"],
    &["vfs", "types", "config", "backup_format"],
    &["log", "locks", "protocol", "tls", "observe", "clone"],
    &["binlog", "engine"],
    &["engine_rocks", "engine_btree", "commit"],
    &["sql", "catalog", "expr"],
    &["table", "trx"],
    &["plan", "optimize", "run"],
    &["row", "session", "query"],
    &["dml", "program", "ddl", "info"],
    &["replication", "exec", "replica"],
    &["replica"],
    &["console", "server", "sim", "bench", "backup_tool"],
];

/// Dependencies that are forbidden although the layers would allow them.
const WALLS: &[(&str, &[&str])] = &[
    ("binlog", &["engine", "types", "commit", "sql"]),
    ("engine_rocks", &["binlog", "commit", "locks", "log"]),
    ("engine_btree", &["binlog", "commit", "locks", "log", "engine_rocks"]),
    ("commit", &["sql", "exec", "catalog", "protocol", "engine_rocks", "engine_btree", "types", "config"]),
    ("exec", &["engine_rocks", "engine_btree", "log", "replication", "server"]),
    ("table", &["commit", "expr", "protocol"]),
    ("trx", &["engine_rocks", "engine_btree", "log", "protocol"]),
    ("row", &["engine_rocks", "engine_btree", "log", "protocol", "config", "vfs"]),
    ("session", &["engine_rocks", "engine_btree", "log"]),
    ("query", &["engine", "commit", "binlog"]),
    ("dml", &["engine_rocks", "engine_btree", "log"]),
    ("program", &["engine_rocks", "engine_btree", "log", "commit", "trx", "table"]),
    ("ddl", &["engine_rocks", "engine_btree", "log"]),
    ("info", &["engine_rocks", "engine_btree", "log"]),
    ("plan", &["table", "trx", "engine", "commit", "binlog", "locks", "config"]),
    ("optimize", &["table", "trx", "commit", "binlog", "config"]),
    ("run", &["table", "trx", "catalog", "commit", "binlog", "engine", "sql", "config"]),
    ("replication", &["sql", "catalog", "expr", "engine"]),
    ("replica", &["sql", "catalog", "expr", "log", "engine_rocks", "engine_btree"]),
    ("locks", &["log", "types", "vfs"]),
    ("expr", &["sql", "catalog"]),
];

/// External crates that only one of our crates may import.
const SOLE_IMPORTERS: &[(&str, &str)] = &[
    ("rocksdb", "engine_rocks"),
    ("rustls", "tls"),
    ("httparse", "console"),
    ("object_store", "backup_tool"),
    ("reqwest", "backup_tool"),
    ("tokio", "backup_tool"),
];

/// Crates that may access files and clocks directly: the file system interface itself, option files,
/// certificates, backups, RocksDB's files, and programs.
const MACHINE_USERS: &[&str] = &[
    "vfs",
    "config",
    "backup_format",
    "tls",
    "clone",
    "engine_rocks",
    "server",
    "sim",
    "bench",
    "backup_tool",
];

/// Runs all checks.
pub fn run(root: &Path) -> Vec<String> {
    let sources = read_all(root);
    let mut findings = Vec::new();
    sizes(&sources, &mut findings);
    widths(&sources, &mut findings);
    walls(&sources, &mut findings);
    machine(&sources, &mut findings);
    sole_users(&sources, &mut findings);
    invariants(&sources, &mut findings);
    recovery_rows(&sources, &mut findings);
    error_texts(&sources, &mut findings);
    failpoints(&sources, &mut findings);
    prose(&sources, &mut findings);
    calls::uncalled(&sources, &mut findings);
    circles::check(&sources, &mut findings);
    wording::check(&sources, &mut findings);
    book::check(&sources, &mut findings);
    pages::check(root, &sources, &mut findings);
    links::check(root, &sources, &mut findings);
    licenses::check(root, &mut findings);
    findings
}

fn sizes(sources: &[Source], findings: &mut Vec<String>) {
    for source in sources.iter().filter(|s| s.path.ends_with(".rs")) {
        let lines = source.text.lines().count();
        // The table of errors is one table on purpose (decision 3).
        let is_exempt = source.text.starts_with("// Generated") || source.path.ends_with("/error_table.rs");
        if lines > LINES_MAX && !is_exempt {
            findings.push(format!("{}: {lines} lines, at most {LINES_MAX}: split by noun", source.path));
        }
    }
}

/// Reports comments on lines of their own that are wider than code. Rows of tables and drawings are exempt,
/// because they cannot be wrapped.
fn widths(sources: &[Source], findings: &mut Vec<String>) {
    for source in sources.iter().filter(|s| s.path.ends_with(".rs")) {
        for (number, line) in source.text.lines().enumerate() {
            let code = line.trim_start();
            let Some(text) = ["///", "//!", "//"].iter().find_map(|mark| code.strip_prefix(mark)) else {
                continue;
            };
            let is_drawn = text.contains(" | ") || text.contains("  ");
            let has_blanks = text.trim().contains(' ');
            if line.chars().count() > WIDTH_MAX && has_blanks && !is_drawn {
                findings.push(format!("{}:{}: wrap the comment at {WIDTH_MAX}", source.path, number + 1));
            }
        }
    }
}

fn line_of(name: &str) -> Option<usize> {
    LINES.iter().position(|line| line.contains(&name))
}

/// Returns the names of the packages in `[dependencies]` of a manifest. Dependencies of tests are not
/// included.
fn dependencies(manifest: &str) -> Vec<String> {
    let body = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let body = body.split("\n[").next().unwrap_or_default();
    let names = body.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn walls(sources: &[Source], findings: &mut Vec<String>) {
    for source in sources.iter().filter(|s| s.path.starts_with("crates/") && s.path.ends_with("/Cargo.toml"))
    {
        let name = source.crate_name().expect("below crates/");
        let Some(line) = line_of(name) else {
            findings.push(format!("{}: crate {name} has no line in the architecture", source.path));
            continue;
        };
        for dependency in dependencies(&source.text) {
            if let Some((_, owner)) = SOLE_IMPORTERS.iter().find(|(foreign, _)| *foreign == dependency)
                && *owner != name
            {
                findings.push(format!("{}: only {owner} imports {dependency}", source.path));
            }
            let Some(ours) = dependency.strip_prefix("cohort-").map(|d| d.replace('-', "_")) else {
                continue;
            };
            let Some(other) = line_of(&ours) else { continue };
            let place = |crate_name: &str| LINES[line].iter().position(|c| *c == crate_name);
            let is_below = other < line || (other == line && place(&ours) < place(name));
            let is_walled = WALLS.iter().any(|(from, to)| *from == name && to.contains(&ours.as_str()));
            if !is_below || is_walled {
                findings.push(format!("{}: {name} must not know {ours}", source.path));
            }
        }
    }
}

fn machine(sources: &[Source], findings: &mut Vec<String>) {
    for source in sources.iter().filter(|s| s.is_product()) {
        let Some(name) = source.crate_name() else { continue };
        if MACHINE_USERS.contains(&name) || source.path.contains("/bin/") {
            continue;
        }
        for (number, line) in source.without_tests().lines().enumerate() {
            let code = code_of(line);
            if ["std::fs", "fs::File", "SystemTime::now"].iter().any(|word| code.contains(word)) {
                findings.push(format!("{}:{}: files and clocks come from vfs", source.path, number + 1));
            }
        }
    }
}

/// Words that only some files of product code may contain, and what other files use.
const SOLE_USERS: &[(&[&str], &[&str], &str)] = &[
    (
        &["indexes[0]", "indexes.first()", ".clustered()"],
        &["crates/catalog/src/row_tree.rs"],
        "the tree of a table's rows is a `RowTree`",
    ),
    (
        &["IndexKind::"],
        &[
            "crates/catalog/src/codec.rs",
            "crates/catalog/src/index_method.rs",
            "crates/catalog/src/model.rs",
            "crates/ddl/src/key.rs",
            "crates/row/src/test_world.rs",
            "crates/table/src/keys.rs",
        ],
        "request a property of the kind (`IndexMethod`)",
    ),
];

fn sole_users(sources: &[Source], findings: &mut Vec<String>) {
    for source in sources.iter().filter(|s| s.is_product() && s.path.starts_with("crates/")) {
        for (words, files, why) in SOLE_USERS {
            if files.contains(&source.path.as_str()) {
                continue;
            }
            for (number, line) in source.text.lines().enumerate() {
                let code = code_of(line);
                if let Some(word) = words.iter().find(|word| code.contains(*word)) {
                    findings.push(format!("{}:{}: {word}: {why}", source.path, number + 1));
                }
            }
        }
    }
}

fn invariants(sources: &[Source], findings: &mut Vec<String>) {
    let architecture = sources.iter().find(|s| s.path == "ARCHITECTURE.md").map_or("", |s| s.text.as_str());
    for n in 1..=8 {
        let (name, bold) = (format!("I{n}"), format!("**I{n} "));
        if !architecture.contains(&bold) {
            findings.push(format!("ARCHITECTURE.md: {name} is not explained"));
        }
        let cites = |s: &Source| {
            s.is_product()
                && s.text
                    .match_indices(&name)
                    .any(|(at, _)| !s.text[at + 2..].starts_with(|c: char| c.is_ascii_digit()))
        };
        if !sources.iter().any(cites) {
            findings.push(format!("{name} is cited nowhere in the code"));
        }
    }
}

/// Checks that the tests name all rows of the recovery table.
fn recovery_rows(sources: &[Source], findings: &mut Vec<String>) {
    let Some(recovery) = sources.iter().find(|s| s.path == "crates/commit/src/recovery_error.rs") else {
        findings.push("crates/commit/src/recovery_error.rs is gone: where is the recovery table?".to_owned());
        return;
    };
    let body = recovery
        .text
        .split("pub enum Row {")
        .nth(1)
        .unwrap_or_default()
        .split('}')
        .next()
        .unwrap_or_default();
    for row in body.split([',', '\n']).map(str::trim).filter(|row| !row.is_empty() && !row.starts_with("//"))
    {
        let label = format!("Row::{row}");
        let is_tested = |s: &Source| s.path.contains("/tests/") && s.text.contains(&label);
        if !sources.iter().any(is_tested) {
            findings.push(format!("{label} of the recovery table is named by no test"));
        }
    }
}

/// Counts the errors of MariaDB whose text is not in the table of errors. The limit may only be lowered.
fn error_texts(sources: &[Source], findings: &mut Vec<String>) {
    const OUTSIDE_MAX: usize = 0;
    const TABLE: &str = "crates/types/src/error_table.rs";
    let elsewhere = |source: &&Source| source.is_product() && source.crate_name() != Some("types");
    // The texts of `UnknownError` are this server's own.
    let is_of_mariadb = |call: &&str| {
        let code = call.trim_start().strip_prefix("ErrorCode::");
        code.is_some_and(|code| !code.starts_with("UnknownError"))
    };
    let count_of = |source: &Source| {
        source.without_tests().split("SqlError::new(").skip(1).filter(is_of_mariadb).count()
    };
    let count: usize = sources.iter().filter(elsewhere).map(count_of).sum();
    if count > OUTSIDE_MAX {
        findings.push(format!("{count} errors with a text of their own, at most {OUTSIDE_MAX}: use {TABLE}"));
    }
}

fn failpoints(sources: &[Source], findings: &mut Vec<String>) {
    let pipeline: String = sources
        .iter()
        .filter(|s| s.path.starts_with("crates/commit/src/"))
        .map(|s| s.text.as_str())
        .collect();
    for stage in ["Prepare", "Order", "Flush", "Publish", "Acknowledge"] {
        for when in ["Before", "After"] {
            let call = format!("reached(Point::{when}(Stage::{stage}))");
            if !pipeline.contains(&call) {
                findings.push(format!("no failpoint {when} {stage}"));
            }
        }
    }
}

/// Reports paths and hosts of a machine. The words are split so that this file does not match.
fn prose(sources: &[Source], findings: &mut Vec<String>) {
    let words = [
        ["/wo", "rk/"].concat(),
        ["/ro", "ot/"].concat(),
        ["crates", ".io"].concat(),
        ["deb.deb", "ian.org"].concat(),
    ];
    for source in sources {
        for (number, line) in source.text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(*word)) {
                findings.push(format!("{}:{}: says {word}", source.path, number + 1));
            }
        }
    }
}
