//! Pages made from other files of the checkout. `cargo xtask pages` writes those that are kept, and `tidy`
//! reports those that differ from their sources. The track record changes with every defect, so it is made
//! for the book only.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use crate::source::Source;

/// Kept pages with their generators.
const PAGES: &[(&str, fn(&Path) -> io::Result<String>)] = &[("docs/support.md", support)];

/// Writes the pages.
pub fn write(root: &Path) -> io::Result<()> {
    PAGES.iter().try_for_each(|(path, generate)| fs::write(root.join(path), generate(root)?))
}

/// Reports pages that differ from their sources.
pub fn check(root: &Path, sources: &[Source], findings: &mut Vec<String>) {
    for (path, generate) in PAGES {
        let kept = sources.iter().find(|source| source.path == *path).map(|source| source.text.as_str());
        match generate(root) {
            Ok(text) if kept == Some(&text) => {}
            Ok(_) => findings.push(format!("{path} is out of date: write it with cargo xtask pages")),
            Err(error) => findings.push(format!("{path}: {error}")),
        }
    }
}

/// Format of a file that pins versions of packages.
#[derive(Clone, Copy)]
enum Pins {
    /// `name==version`
    Python,
    /// `"name": "version"` of package.json
    Node,
    /// `require name version` of go.mod
    Go,
    /// Dependencies of a pom.xml
    Java,
}

/// Files that pin the versions of clients, with the command that tests them.
const CLIENTS: &[(&str, Pins, &str)] = &[
    ("crates/server/tests/drivers/requirements.txt", Pins::Python, "./x drivers"),
    ("crates/server/tests/drivers/package.json", Pins::Node, "./x drivers"),
    ("crates/server/tests/drivers/go/go.mod", Pins::Go, "./x drivers"),
    ("crates/server/tests/drivers/java/pom.xml", Pins::Java, "./x drivers"),
    ("crates/server/tests/cdc/requirements.txt", Pins::Python, "./x cdc"),
    ("crates/server/tests/cdc/canal/go.mod", Pins::Go, "./x cdc"),
    ("crates/server/tests/cdc/debezium/pom.xml", Pins::Java, "./x cdc"),
    ("crates/server/tests/jta/pom.xml", Pins::Java, "./x jta"),
];

/// Helpers of the tests, which are no clients.
const NO_CLIENTS: &[&str] = &["slf4j-simple", "jboss-logging", "jakarta.transaction-api"];

impl Pins {
    fn language(self) -> &'static str {
        match self {
            Pins::Python => "Python",
            Pins::Node => "Node",
            Pins::Go => "Go",
            Pins::Java => "Java",
        }
    }

    /// Returns names and versions.
    fn read(self, text: &str) -> Vec<(String, String)> {
        let pair = |name: &str, version: &str| (name.trim().to_owned(), version.trim().to_owned());
        match self {
            Pins::Python => {
                text.lines().filter_map(|line| line.split_once("==")).map(|(n, v)| pair(n, v)).collect()
            }
            Pins::Node => {
                let parsed: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
                let listed = parsed["dependencies"].as_object().into_iter().flatten();
                listed.map(|(name, version)| pair(name, version.as_str().unwrap_or_default())).collect()
            }
            Pins::Go => {
                let required = text.lines().filter_map(|line| line.strip_prefix("require "));
                let direct = required.filter(|line| !line.contains("// indirect"));
                direct.filter_map(|line| line.split_once(" v")).map(|(n, v)| pair(n, v)).collect()
            }
            Pins::Java => {
                let dependencies = text.split("<dependency>").skip(1);
                let known = dependencies.filter_map(|part| {
                    let (name, version) = (element(part, "artifactId")?, element(part, "version")?);
                    let property = version.strip_prefix("${").and_then(|name| name.strip_suffix('}'));
                    Some(pair(name, property.and_then(|name| element(text, name)).unwrap_or(version)))
                });
                known.collect()
            }
        }
    }
}

/// Returns the contents of the first XML element of a name.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.split_once(&format!("<{name}>"))?.1;
    Some(rest.split_once("</")?.0)
}

/// Returns the value of a `name = "value"` line, or of a shell variable.
fn value_of<'t>(text: &'t str, name: &str) -> &'t str {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split('"').nth(1)).unwrap_or("?")
}

fn support(root: &Path) -> io::Result<String> {
    let read = |path: &str| fs::read_to_string(root.join(path));
    let rust = read("Cargo.toml")?;
    let mut page = format!(
        "# Tested platforms, servers and clients\n\nMade by `cargo xtask pages` from the files that pin the versions. Other \
         versions probably work; these are the ones that tests run with. The server reports MariaDB 10.11 to its clients.\n\n\
         ## Platforms\n\n| what | tested | by |\n|---|---|---|\n\
         | operating system | Debian 12 on x86-64, Linux 6 | `./x test` |\n\
         | package and image | Debian 12 next to mariadb-server; `debian:bookworm-slim` | `./x package --test` |\n\
         | compiler | Rust {} or later | `./x test` |\n\
         | file systems | ext4; tmpfs for full disks | `./x test` |\n\n\
         Not tested: other processors, other distributions (the archive needs glibc 2.36), network file systems.\n\n\
         ## Servers\n\n| server | version | as |\n|---|---|---|\n\
         | MariaDB | 10.11 of Debian 12 | source, replica, and judge of results (`./x test`) |\n\n\
         ## Clients\n\n| client | language | version | by |\n|---|---|---|---|\n\
         | `mariadb`, `mariadb-dump`, `mariadb-binlog`, `mariadb-admin`, `mariadb-check`, Connector/C | C | 10.11 of Debian 12 | `./x test` |\n\
         | sysbench, mariadb-slap | C | of Debian 12 | `./x test` |\n",
        value_of(&rust, "rust-version = ")
    );
    for (path, pins, command) in CLIENTS {
        for (name, version) in pins.read(&read(path)?) {
            if !NO_CLIENTS.contains(&name.as_str()) {
                writeln!(page, "| {name} | {} | {version} | `{command}` |", pins.language())
                    .expect("a string");
            }
        }
    }
    page += "\n[Compatibility](compatibility.md#applications) lists the frameworks and administration tools whose own tests were \
             run by hand.\n";
    Ok(page)
}

/// How a defect was found, by the first entry with a word of its description.
const FINDERS: &[(&str, &[&str])] = &[
    ("reading the code", &["reading"]),
    ("comparison with MariaDB", &["compar", "mariadb", "side by side", "differential"]),
    (
        "test suites, drivers and tools of other projects",
        &["foreign", "percona", "sysbench", "client", "installer"],
    ),
    ("scripts written to break a feature", &["adversary"]),
    (
        "crashes, kills and damaged files",
        &["crash", "kill", "power", "damage", "disk", "torn", "cut", "recovery"],
    ),
    ("models and random statements", &["model", "fuzz", "generated", "random", "histor", "mutation"]),
    ("operating and measuring the server", &["operator", "pages", "by hand", "measure", "profile"]),
    ("other tests", &[""]),
];

/// Returns the page that counts the known defects.
pub fn track_record(root: &Path) -> io::Result<String> {
    let text = fs::read_to_string(root.join("docs/lab/defects.csv"))?;
    let defects: Vec<Vec<String>> = records(&text).skip(1).collect();
    let mut by_finder = vec![0; FINDERS.len()];
    let mut by_crate: BTreeMap<String, usize> = BTreeMap::new();
    for defect in &defects {
        let [_, finder, test] = defect.as_slice() else {
            return Err(io::Error::other(format!("docs/lab/defects.csv: not three fields: {defect:?}")));
        };
        let finder = finder.to_lowercase();
        let is_of = |words: &[&str]| words.iter().any(|word| finder.contains(word));
        by_finder[FINDERS.iter().position(|(_, words)| is_of(words)).expect("the last one fits")] += 1;
        let tested = test.split("-p cohort-").nth(1).or_else(|| test.split("crates/").nth(1));
        let name = tested.and_then(|rest| rest.split([' ', '/', '`']).next()).unwrap_or("other");
        *by_crate.entry(name.replace('_', "-")).or_default() += 1;
    }
    let mut page = format!(
        "# Track record\n\nMade from docs/lab/defects.csv, which has one line per defect in durability, \
         order, privileges, memory and compatibility: the defect, how it was found, and the regression test.\n\n\
         {} defects so far. By the way they were found:\n\n| found by | defects |\n|---|---:|\n",
        defects.len()
    );
    for ((finder, _), count) in FINDERS.iter().zip(&by_finder) {
        writeln!(page, "| {finder} | {count} |").expect("a string");
    }
    page += "\nBy the crate of the regression test:\n\n| crate | defects |\n|---|---:|\n";
    let mut crates: Vec<(&String, &usize)> = by_crate.iter().collect();
    crates.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
    for (name, count) in crates {
        writeln!(page, "| {name} | {count} |").expect("a string");
    }
    Ok(page)
}

/// Returns the records of a CSV file without line breaks in fields.
fn records(text: &str) -> impl Iterator<Item = Vec<String>> + '_ {
    text.lines().map(|line| {
        let (mut fields, mut is_quoted) = (vec![String::new()], false);
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if is_quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    fields.last_mut().expect("one at least").push('"');
                }
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => fields.push(String::new()),
                c => fields.last_mut().expect("one at least").push(c),
            }
        }
        fields
    })
}

#[cfg(test)]
mod tests {
    use super::{Pins, records};

    #[test]
    fn pinned_versions_are_read() {
        for (pins, text, expected) in [
            (Pins::Python, "PyMySQL==1.2.4\n# x\n", "PyMySQL 1.2.4"),
            (Pins::Node, "{\"dependencies\": {\"mysql2\": \"3.24.6\"}}", "mysql2 3.24.6"),
            (
                Pins::Go,
                "module m\n\ngo 1.24\n\nrequire a.b/c v1.9.3\n\nrequire d v1 // indirect\n",
                "a.b/c 1.9.3",
            ),
            (
                Pins::Java,
                "<version>1</version><p>2.0</p><dependency><artifactId>a</artifactId><version>${p}</version></dependency>",
                "a 2.0",
            ),
        ] {
            let read: Vec<String> =
                pins.read(text).iter().map(|(name, version)| format!("{name} {version}")).collect();
            assert_eq!(read, [expected], "{text}");
        }
    }

    #[test]
    fn fields_may_contain_commas_and_quotes() {
        let read: Vec<Vec<String>> = records("a,\"b, \"\"c\"\"\",\n").collect();
        assert_eq!(read, [["a", "b, \"c\"", ""]]);
    }
}
