//! Metamorphic tests: relations between the results of related queries, whatever the results are.
//!
//! - Ternary logic partitioning: rows for which a condition is true, false and unknown are all rows. For
//!   WHERE, HAVING, ON, DISTINCT, groups, aggregates.
//! - NoREC: WHERE passes as many rows as the condition is true for in the select list, where neither indexes
//!   nor join order can use it.
//! - Twins: a query of tables with indexes has the same result without indexes.
//! - Joins: an outer join is the inner join plus the rows without a partner. EXISTS is true for rows with a
//!   partner, and IN is such a join.
//! - Levels: merged derived tables have the same result as materialized ones.
//!
//! Tables and queries are random. `COHORT_LONG_TESTS=1` runs many more; `COHORT_FUZZ_SEED=N` selects another
//! seed. A case is skipped if one of its queries fails, because the plan determines which rows raise an
//! error.

mod derived;
#[allow(dead_code)] // its statements are for other tests
#[path = "../grammar/mod.rs"]
mod grammar;
mod queries;
mod tables;
#[path = "../world/mod.rs"]
mod world;

use std::collections::BTreeMap;

use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_types::{SqlError, Value};
use grammar::Grammar;
use queries::{Queries, Source};
use tables::Class;
use world::{Client, Server};

/// Number of cases per seed and check.
const CASES: usize = 30;

type Rows = Vec<Vec<String>>;

/// A sink that collects rows as text.
#[derive(Default)]
struct Collected {
    rows: Rows,
    decimals: Vec<u8>,
    error: Option<SqlError>,
}

impl ResultSink for Collected {
    fn start(&mut self, columns: &[ColumnMeta], _: ResultHead) {
        self.decimals = columns.iter().map(|column| column.decimals).collect();
    }

    fn row(&mut self, values: &[Value]) {
        let shown = |(value, decimals): (&Value, &u8)| {
            let mut text = Vec::new();
            match value {
                Value::Null => text.extend_from_slice(b"NULL"),
                value => value.write_text(*decimals, &mut text),
            }
            String::from_utf8_lossy(&text).into_owned()
        };
        self.rows.push(values.iter().zip(&self.decimals).map(shown).collect());
    }

    fn finish(&mut self, _: StatusFlags, _: u16) {}

    fn ok(&mut self, _: &OkInfo<'_>) {}

    fn error(&mut self, error: &SqlError) {
        self.error = Some(error.clone());
    }

    fn is_dead(&self) -> bool {
        false
    }
}

/// Tables of a seed, and statistics of its cases.
struct Checker<'a> {
    seed: u64,
    script: &'a [String],
    client: Client,
    queries: Queries<'a>,
    compared: usize,
    refused: usize,
}

/// An error of a query, which skips the case.
struct Refused;

impl Checker<'_> {
    /// Returns the rows in sorted order.
    fn rows(&mut self, sql: &str) -> Result<Rows, Refused> {
        let mut sink = Collected::default();
        self.client.session.query(sql.as_bytes(), &mut sink);
        if sink.error.is_some() {
            return Err(Refused);
        }
        sink.rows.sort();
        Ok(sink.rows)
    }

    /// Returns the rows of several queries in sorted order.
    fn all_rows(&mut self, queries: &[String]) -> Result<Rows, Refused> {
        let mut all = Rows::new();
        for sql in queries {
            all.extend(self.rows(sql)?);
        }
        all.sort();
        Ok(all)
    }

    fn equal(&mut self, check: &str, one: (&[String], &Rows), other: (&[String], &Rows)) {
        self.compared += 1;
        if one.1 == other.1 {
            return;
        }
        let mut counts: BTreeMap<&Vec<String>, i64> = BTreeMap::new();
        one.1.iter().for_each(|row| *counts.entry(row).or_default() += 1);
        other.1.iter().for_each(|row| *counts.entry(row).or_default() -= 1);
        let differing: Vec<_> = counts.into_iter().filter(|(_, count)| *count != 0).take(10).collect();
        panic!(
            "seed {}: {check}\n{};\n\n{};\n-- and\n{};\n{} rows and {}; more of the first (+), of the second (-): {differing:?}",
            self.seed,
            self.script.join(";\n"),
            one.0.join(";\n"),
            other.0.join(";\n"),
            one.1.len(),
            other.1.len()
        );
    }

    /// Checks that two lists of queries have the same rows.
    fn same(&mut self, check: &str, one: &[String], other: &[String]) -> Result<(), Refused> {
        let (a, b) = (self.all_rows(one)?, self.all_rows(other)?);
        self.equal(check, (one, &a), (other, &b));
        Ok(())
    }

    fn partitions(&self, condition: &str) -> [String; 3] {
        [condition.to_owned(), format!("NOT ({condition})"), format!("({condition}) IS NULL")]
    }

    fn case(&mut self, n: usize) -> Result<(), Refused> {
        let source = self.queries.source();
        let condition = self.queries.condition_on(&source);
        let column = self.queries.column(&source.columns).clone();
        let from = &source.text;
        match n % 10 {
            0 => self.partitioned(
                &format!("SELECT {} FROM {from}", source.ids.join(", ")),
                "WHERE",
                &condition,
            ),
            1 => {
                let columns: Vec<&str> = source.columns.iter().map(|column| column.name.as_str()).collect();
                self.partitioned(&format!("SELECT {} FROM {from}", columns.join(", ")), "WHERE", &condition)
            }
            2 => self.not_optimised(&source, &condition),
            3 => self.distinct(&source, &column.name, &condition),
            4 => self.aggregates(&source, &condition),
            5 => {
                let of_group = [
                    ("COUNT(*)".to_owned(), Class::Exact),
                    (format!("COUNT({})", column.name), Class::Exact),
                    (format!("MAX({})", column.name), column.class),
                ];
                let of_group = of_group
                    .map(|(name, class)| queries::Named { name, class })
                    .into_iter()
                    .chain(source.columns.iter().filter(|other| other.name == column.name).cloned());
                let having = self.queries.condition(&of_group.collect::<Vec<_>>(), 2, 0);
                let groups = format!("SELECT COUNT(*), COUNT({0}) FROM {from} GROUP BY {0}", column.name);
                self.partitioned(&groups, "HAVING", &having)
            }
            6 => self.groups(&source, &column.name, &condition),
            7 => self.joined(),
            8 => self.partners(),
            _ => self.twins(&source, &condition),
        }
    }

    /// Checks that the rows for which a condition is true, false or unknown are all rows.
    fn partitioned(&mut self, all: &str, clause: &str, condition: &str) -> Result<(), Refused> {
        let parts = self.partitions(condition).map(|part| format!("{all} {clause} {part}"));
        self.same(&format!("partitions of {clause}"), &[all.to_owned()], &parts)
    }

    fn not_optimised(&mut self, source: &Source, condition: &str) -> Result<(), Refused> {
        let optimised = format!("SELECT COUNT(*) FROM {} WHERE {condition}", source.text);
        let values = format!("SELECT ({condition}) IS TRUE FROM {}", source.text);
        let counted = self.rows(&optimised)?;
        let count = self.rows(&values)?.iter().filter(|row| row[0] == "1").count();
        let count = vec![vec![count.to_string()]];
        self.equal("NoREC", (&[optimised], &counted), (&[values], &count));
        Ok(())
    }

    fn distinct(&mut self, source: &Source, column: &str, condition: &str) -> Result<(), Refused> {
        let count = |rows: String| format!("SELECT COUNT(*) FROM ({rows}) counted");
        let all = count(format!("SELECT DISTINCT {column} AS k FROM {}", source.text));
        let part = |part: String| format!("SELECT DISTINCT {column} AS k FROM {} WHERE {part}", source.text);
        let parts = count(self.partitions(condition).map(part).join(" UNION "));
        self.same("partitions of DISTINCT", &[all], &[parts])
    }

    fn aggregates(&mut self, source: &Source, condition: &str) -> Result<(), Refused> {
        let of_class = |classes: &[Class]| {
            let fit: Vec<_> =
                source.columns.iter().filter(|column| classes.contains(&column.class)).collect();
            fit[self.queries.grammar.below(fit.len())].name.clone()
        };
        let (summed, extreme) =
            (of_class(&[Class::Exact]), of_class(&[Class::Exact, Class::Real, Class::Temporal]));
        let all = format!(
            "SELECT COUNT(*), COUNT({summed}), SUM({summed}), MIN({extreme}), MAX({extreme}) FROM {}",
            source.text
        );
        let part = |part: String| {
            format!(
                "SELECT COUNT(*) AS n, COUNT({summed}) AS c, SUM({summed}) AS s, MIN({extreme}) AS least, MAX({extreme}) AS most \
                 FROM {} WHERE {part}",
                source.text
            )
        };
        let parts = self.partitions(condition).map(part).join(" UNION ALL ");
        let parts = format!("SELECT SUM(n), SUM(c), SUM(s), MIN(least), MAX(most) FROM ({parts}) parts");
        self.same("partitions of aggregates", &[all], &[parts])
    }

    fn groups(&mut self, source: &Source, column: &str, condition: &str) -> Result<(), Refused> {
        let all = format!("SELECT COUNT(*), SUM({}) FROM {} GROUP BY {column}", source.ids[0], source.text);
        let part = |part: String| {
            format!("SELECT {column} AS k, {} AS i FROM {} WHERE {part}", source.ids[0], source.text)
        };
        let parts = self.partitions(condition).map(part).join(" UNION ALL ");
        let parts = format!("SELECT COUNT(*), SUM(i) FROM ({parts}) parts GROUP BY k");
        self.same("partitions of groups", &[all], &[parts])
    }

    /// Checks inner joins by partitions of their condition, and that an outer join is the inner join plus the
    /// rest.
    fn joined(&mut self) -> Result<(), Refused> {
        let (left, right) = (self.queries.named_table("x"), self.queries.named_table("y"));
        let all = [left.columns.clone(), right.columns.clone()].concat();
        let condition = self.queries.join_condition(&left.columns, &all);
        let join = |kind: &str, on: &str| {
            format!("SELECT x.id, y.id FROM {} {kind} JOIN {} ON {on}", left.text, right.text)
        };
        let crossed = format!("SELECT x.id, y.id FROM {} CROSS JOIN {}", left.text, right.text);
        let parts = self.partitions(&condition).map(|part| join("", &part));
        self.same("partitions of ON", &[crossed], &parts)?;
        for (kind, outer, place) in [("LEFT", &left, 0), ("RIGHT", &right, 1)] {
            let mut expected = self.rows(&parts[0])?;
            let met: Vec<String> = expected.iter().map(|row| row[place].clone()).collect();
            for row in self.rows(&format!("SELECT {} FROM {}", outer.ids[0], outer.text))? {
                if !met.contains(&row[0]) {
                    let mut lone = vec!["NULL".to_owned(); 2];
                    lone[place].clone_from(&row[0]);
                    expected.push(lone);
                }
            }
            expected.sort();
            let outer_join = join(kind, &condition);
            let given = self.rows(&outer_join)?;
            self.equal("an outer join", (&[outer_join], &given), (&parts[..1], &expected));
        }
        Ok(())
    }

    /// Checks that EXISTS is true for rows with a partner, and NOT EXISTS for the others.
    fn partners(&mut self) -> Result<(), Refused> {
        let (left, right) = (self.queries.named_table("x"), self.queries.named_table("y"));
        let all = [left.columns.clone(), right.columns.clone()].concat();
        let condition = self.queries.join_condition(&left.columns, &all);
        let joined = format!("SELECT DISTINCT x.id FROM {} JOIN {} ON {condition}", left.text, right.text);
        let exists = |not: &str| {
            format!(
                "SELECT x.id FROM {} WHERE {not}EXISTS (SELECT 1 FROM {} WHERE {condition})",
                left.text, right.text
            )
        };
        self.same("partners", std::slice::from_ref(&joined), &[exists("")])?;
        let whole = format!("SELECT x.id FROM {}", left.text);
        self.same("partners and others", &[whole], &[exists(""), exists("NOT ")])?;
        let chosen = self.queries.column(&right.columns).name.clone();
        let value = self.queries.column(&left.columns).name.clone();
        let inside = format!(
            "SELECT x.id FROM {} WHERE {value} IN (SELECT {chosen} FROM {} WHERE {condition})",
            left.text, right.text
        );
        let outside = format!(
            "SELECT DISTINCT x.id FROM {} JOIN {} ON {value} = {chosen} AND ({condition})",
            left.text, right.text
        );
        self.same("IN", &[inside], &[outside])
    }

    /// Compares a query with the same query of tables without indexes.
    fn twins(&mut self, source: &Source, condition: &str) -> Result<(), Refused> {
        let sql = format!("SELECT {} FROM {} WHERE {condition}", source.ids.join(", "), source.text);
        let given = self.rows(&sql);
        self.client.ok("USE plain");
        let plain = self.rows(&sql);
        self.client.ok("USE test");
        let sql = [sql];
        self.equal("twins", (&sql, &given?), (&sql, &plain?));
        Ok(())
    }
}

fn seeds() -> std::ops::Range<u64> {
    let first = std::env::var("COHORT_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let is_long = std::env::var_os("COHORT_LONG_TESTS").is_some();
    first..first + if is_long { 6000 } else { 40 }
}

/// Runs a number of cases on the tables of each seed.
fn check(cases: usize, case: impl Fn(&mut Checker<'_>, usize) -> Result<(), Refused>) {
    let (mut compared, mut refused) = (0, 0);
    let seeds = seeds();
    for seed in seeds.clone() {
        let grammar = Grammar::new(seed);
        let (tables, script) = tables::made(&grammar);
        let mut server = Server::open(&world::disk()).expect("an empty disk opens");
        let mut client = server.connect();
        script.iter().for_each(|sql| client.ok(sql));
        let queries = Queries { grammar: &grammar, tables: &tables };
        let mut checker = Checker { seed, script: &script, client, queries, compared: 0, refused: 0 };
        for n in 0..cases {
            if case(&mut checker, n).is_err() {
                checker.refused += 1;
            }
        }
        compared += checker.compared;
        refused += checker.refused;
    }
    println!("seeds {seeds:?}: {compared} comparisons, {refused} cases refused");
    // The checks are meaningless if most queries fail.
    assert!(compared > 4 * refused, "{compared} comparisons, {refused} cases refused");
}

#[test]
fn related_queries_agree() {
    check(10 * CASES, |checker, n| checker.case(n));
}

#[test]
fn derived_tables_agree_with_kept_ones() {
    check(3 * CASES, |checker, _| checker.levels());
}
