//! Runs statements on both servers, and collects the differences between their replies.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::support::{Bound, Cohort, Definition, Maria, Reply, Wire, Wishes};
use crate::templates::TABLE;

/// Error 1235: Cohort does not support the statement, which is no difference in metadata.
const NOT_SUPPORTED: u16 = 1235;
/// Status bits that describe the statement or the session.
const STATUS_BITS: u16 = 0x2 | 0x1 | 0x10 | 0x20 | 0x100 | 0x200 | 0x400 | 0x2000;

/// Marks a known class that only some columns show, so that a run may miss it.
const RARE: &str = "~ ";

/// Maximum examples kept per class.
const EXAMPLES_MAX: usize = 8;

/// Cohort and MariaDB with the same tables.
pub struct Pair {
    ours: Wire,
    theirs: Wire,
    _servers: (Cohort, Maria),
}

/// Differences by class.
#[derive(Default)]
pub struct Differences {
    /// Examples of each class: the statement, Cohort's reply, MariaDB's reply.
    classes: BTreeMap<String, Vec<(String, String, String)>>,
    count: usize,
    compared: usize,
}

impl Pair {
    pub fn new() -> Pair {
        let servers = (Cohort::new(&[]), Maria::new(&["--log-bin", "--sql-mode=STRICT_TRANS_TABLES"]));
        let wishes = Wishes { extended_metadata: true };
        let ours = Wire::over_tcp(servers.0.port, wishes);
        let theirs = Wire::over_socket(&servers.1.socket, wishes);
        let mut pair = Pair { ours, theirs, _servers: servers };
        for wire in [&mut pair.ours, &mut pair.theirs] {
            for sql in [
                "SET NAMES utf8mb4",
                "DROP DATABASE IF EXISTS test",
                "CREATE DATABASE test CHARACTER SET utf8mb4",
                "USE test",
            ] {
                wire.run(sql);
            }
            wire.run("SET sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO'");
            TABLE.iter().for_each(|sql| drop(wire.run(sql)));
            wire.run("SET @n = 5, @s = 'text', @d = DATE'2020-01-01', timestamp = 1600000000");
        }
        pair
    }

    /// Compares the replies to a statement in the text protocol. Returns false if one of the servers refuses
    /// it.
    pub fn compare(&mut self, sql: &str, class: &str, differences: &mut Differences) -> bool {
        let ours = self.ours.query(sql).remove(0);
        let theirs = self.theirs.query(sql).remove(0);
        if !differences.outcome(sql, class, &ours, &theirs) {
            return false;
        }
        differences.columns(sql, class, ours.columns(), theirs.columns());
        let status = |reply: &Reply| format!("{:#x}", reply.status() & STATUS_BITS);
        differences.field(sql, class, "status", &status(&ours), &status(&theirs));
        let counts = (ours.warnings().to_string(), theirs.warnings().to_string());
        differences.field(sql, class, "warnings", &counts.0, &counts.1);
        if ours.warnings() > 0 && ours.warnings() == theirs.warnings() && !sql.starts_with("SHOW") {
            let texts = |wire: &mut Wire| wire.run("SHOW WARNINGS").text_rows().join("; ");
            differences.field(sql, class, "warning texts", &texts(&mut self.ours), &texts(&mut self.theirs));
        }
        true
    }

    /// Runs a statement that must succeed on both servers.
    pub fn run_both(&mut self, sql: &str) {
        self.ours.run(sql);
        self.theirs.run(sql);
    }

    /// Compares a prepared statement: its parameters, and an execution for each value, bound to all
    /// parameters.
    pub fn compare_bound(&mut self, sql: &str, values: &[Bound<'_>], differences: &mut Differences) {
        let (ours, theirs) = (self.ours.prepare(sql), self.theirs.prepare(sql));
        let (ours, theirs) = (ours.expect("prepared"), theirs.expect("prepared"));
        differences.columns(sql, &format!("parameters of {sql}"), &ours.params, &theirs.params);
        differences.columns(sql, &format!("prepared {sql}"), &ours.columns, &theirs.columns);
        for (n, value) in values.iter().enumerate() {
            let bound = vec![*value; ours.params.len()];
            let (left, right) = (self.ours.execute(ours.id, &bound), self.theirs.execute(theirs.id, &bound));
            differences.executed(sql, &format!("value {n} in {sql}"), &left, &right);
        }
    }

    /// Compares a prepared statement that is executed after each of the changes.
    pub fn compare_over_changes(&mut self, sql: &str, changes: &[&str], differences: &mut Differences) {
        let (ours, theirs) = (self.ours.prepare(sql), self.theirs.prepare(sql));
        let (ours, theirs) = (ours.expect("prepared"), theirs.expect("prepared"));
        for change in changes {
            self.run_both(change);
            for round in ["first", "second"] {
                let (left, right) = (self.ours.execute(ours.id, &[]), self.theirs.execute(theirs.id, &[]));
                differences.executed(sql, &format!("{round} after {change}"), &left, &right);
            }
        }
    }

    /// Compares a statement when it is prepared and when it is executed.
    pub fn compare_prepared(&mut self, sql: &str, class: &str, differences: &mut Differences) {
        let ours = self.ours.prepare(sql);
        let theirs = self.theirs.prepare(sql);
        let (ours, theirs) = match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            (ours, theirs) => {
                let said = |prepared: &Result<_, Reply>| prepared.as_ref().err().map(error_of);
                let (ours, theirs) = (said(&ours).unwrap_or_default(), said(&theirs).unwrap_or_default());
                if !ours.starts_with("1235") {
                    differences.field(sql, class, "error", &ours, &theirs);
                }
                return;
            }
        };
        differences.columns(sql, class, &ours.columns, &theirs.columns);
        differences.columns(sql, &format!("{class} params"), &ours.params, &theirs.params);
        let (left, right) = (self.ours.execute(ours.id, &[]), self.theirs.execute(theirs.id, &[]));
        if differences.outcome(sql, class, &left, &right) {
            differences.columns(sql, class, left.columns(), right.columns());
        }
        self.ours.close(ours.id);
        self.theirs.close(theirs.id);
    }
}

fn error_of(reply: &Reply) -> String {
    match reply {
        Reply::Error { code, text } => format!("{code} {text}"),
        _ => String::new(),
    }
}

impl Differences {
    /// Returns the number of differences so far, known or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns whether both servers executed the statement. Compares the errors, unless Cohort's error is
    /// 1235.
    fn outcome(&mut self, sql: &str, class: &str, ours: &Reply, theirs: &Reply) -> bool {
        let (left, right) = (error_of(ours), error_of(theirs));
        if !matches!(ours, Reply::Error { code: NOT_SUPPORTED, .. }) {
            self.field(sql, class, "error", &left, &right);
        }
        left.is_empty() && right.is_empty()
    }

    /// Compares the columns and the status of two executions.
    fn executed(&mut self, sql: &str, class: &str, ours: &Reply, theirs: &Reply) {
        if self.outcome(sql, class, ours, theirs) {
            self.columns(sql, class, ours.columns(), theirs.columns());
            let status = |reply: &Reply| format!("{:#x}", reply.status() & STATUS_BITS);
            self.field(sql, class, "status", &status(ours), &status(theirs));
        }
    }

    fn columns(&mut self, sql: &str, class: &str, ours: &[Definition], theirs: &[Definition]) {
        self.field(sql, class, "columns", &ours.len().to_string(), &theirs.len().to_string());
        for (a, b) in ours.iter().zip(theirs) {
            self.column(sql, class, a, b);
        }
    }

    fn column(&mut self, sql: &str, class: &str, a: &Definition, b: &Definition) {
        self.field(sql, class, "name", &a.name, &b.name);
        self.field(sql, class, "org_name", &a.org_name, &b.org_name);
        self.field(sql, class, "table", &a.table, &b.table);
        self.field(sql, class, "org_table", &a.org_table, &b.org_table);
        self.field(sql, class, "schema", &a.schema, &b.schema);
        self.field(sql, class, "extended", &a.extended.join(","), &b.extended.join(","));
        // Include the column's name, to distinguish the columns of a long list.
        let named = |text: String| format!("{} {text}", b.name);
        let mut number = |field, x: u32, y: u32| {
            self.field(sql, class, field, &named(x.to_string()), &named(y.to_string()));
        };
        number("type", a.type_code.into(), b.type_code.into());
        number("charset", a.charset.into(), b.charset.into());
        number("length", a.length, b.length);
        number("decimals", a.decimals.into(), b.decimals.into());
        self.field(sql, class, "flags", &named(flag_names(a.flags)), &named(flag_names(b.flags)));
    }

    fn field(&mut self, sql: &str, class: &str, field: &str, ours: &str, theirs: &str) {
        self.compared += 1;
        if ours != theirs {
            self.count += 1;
            let example = (sql.to_owned(), ours.to_owned(), theirs.to_owned());
            let examples = self.classes.entry(format!("{field}: {class}")).or_default();
            if examples.len() < EXAMPLES_MAX {
                examples.push(example);
            }
        }
    }

    /// Checks that every class that differs is known. In a run that covers all classes, also checks that
    /// every known class still differs.
    pub fn check(&self, name: &str, known: &str, sees_all: bool) {
        println!("{name}: {} comparisons, {} classes differ", self.compared, self.classes.len());
        if let Ok(file) = std::env::var("COHORT_METADATA_CLASSES") {
            let examples_text = |(class, examples): (&String, &Vec<_>)| {
                examples.iter().map(|example| example_text(class, example)).collect::<String>()
            };
            let list: String = self.classes.iter().map(examples_text).collect();
            std::fs::write(format!("{file}.{name}"), list).expect("written");
        }
        let listed: Vec<&str> =
            known.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let known: Vec<&str> = listed.iter().map(|line| line.trim_start_matches(RARE)).collect();
        let mut report = String::new();
        for (class, examples) in &self.classes {
            if !known.contains(&class.as_str()) {
                report.push_str(&example_text(class, &examples[0]));
            }
        }
        if sees_all {
            let missing = listed.iter().filter(|line| !line.starts_with(RARE));
            for class in missing.filter(|class| !self.classes.contains_key(**class)) {
                let _ = writeln!(report, "no longer differs, take it out of known_{name}.txt: {class}");
            }
        }
        assert!(report.is_empty(), "{name}:\n{report}");
    }
}

fn example_text(class: &str, (sql, ours, theirs): &(String, String, String)) -> String {
    format!("{class}\n    {sql:.200}\n    Cohort  {ours:.200}\n    MariaDB {theirs:.200}\n")
}

fn flag_names(flags: u16) -> String {
    const NAMES: [&str; 16] = [
        "NOT_NULL",
        "PRI_KEY",
        "UNIQUE_KEY",
        "MULTIPLE_KEY",
        "BLOB",
        "UNSIGNED",
        "ZEROFILL",
        "BINARY",
        "ENUM",
        "AUTO_INCREMENT",
        "TIMESTAMP",
        "SET",
        "NO_DEFAULT",
        "ON_UPDATE_NOW",
        "PART_KEY",
        "NUM",
    ];
    let set = NAMES.iter().enumerate().filter(|(bit, _)| flags >> bit & 1 == 1).map(|(_, name)| *name);
    set.collect::<Vec<_>>().join("|")
}
