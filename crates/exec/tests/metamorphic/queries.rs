//! Random row sources and conditions on them.

use crate::grammar::Grammar;
use crate::tables::{Class, Column, Table, literal};

/// A column with its name in the query.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub class: Class,
}

/// Contents of a FROM clause.
#[derive(Clone, Debug)]
pub struct Source {
    pub text: String,
    pub columns: Vec<Named>,
    /// The id columns of its tables, which together identify a row.
    pub ids: Vec<String>,
    /// True for a single table without an alias, whose columns the grammar's expressions name.
    pub is_single: bool,
}

pub struct Queries<'a> {
    pub grammar: &'a Grammar,
    pub tables: &'a [Table],
}

/// Words in expressions that are not repeatable, or that wait.
const NOT_REPEATED: [&str; 21] = [
    "rand",
    "uuid",
    "guid",
    "@",
    "found_rows",
    "row_count",
    "sysdate",
    "last_insert",
    "nextval",
    "lock",
    "sleep",
    "benchmark",
    "_wait",
    "connection_id",
    "information_schema",
    "for update",
    "lastval",
    "gtid",
    "seq_",
    "into",
    "rownum",
];

fn named(alias: &str, columns: &[Column]) -> Vec<Named> {
    columns
        .iter()
        .map(|column| Named { name: format!("{alias}.{}", column.name), class: column.class })
        .collect()
}

impl Queries<'_> {
    fn chance(&self, percent: usize) -> bool {
        self.grammar.below(100) < percent
    }

    pub fn table(&self) -> &Table {
        &self.tables[self.grammar.below(self.tables.len())]
    }

    /// Returns a table with an alias.
    pub fn named_table(&self, alias: &str) -> Source {
        let table = self.table();
        let text = match self.chance(12) {
            true => {
                let inner = Source {
                    text: String::new(),
                    columns: named(table.name, &table.columns),
                    ids: Vec::new(),
                    is_single: false,
                };
                let order = if self.chance(20) { " ORDER BY id LIMIT 1000" } else { "" };
                format!(
                    "(SELECT * FROM {} WHERE {}{order}) {alias}",
                    table.name,
                    self.condition(&inner.columns, 1, 0)
                )
            }
            false => format!("{} {alias}", table.name),
        };
        let ids = vec![format!("{alias}.id")];
        Source { text, columns: named(alias, &table.columns), ids, is_single: false }
    }

    /// Returns one to three tables.
    pub fn source(&self) -> Source {
        if self.chance(35) {
            let table = self.table();
            let columns = named(table.name, &table.columns);
            let ids = vec![format!("{}.id", table.name)];
            return Source { text: table.name.to_owned(), columns, ids, is_single: true };
        }
        let mut source = self.named_table("x");
        for alias in &["y", "z"][..1 + usize::from(self.chance(30))] {
            let other = self.named_table(alias);
            let all = [source.columns.clone(), other.columns].concat();
            let kind =
                self.grammar.pick(&[",", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "STRAIGHT_JOIN"]);
            let on = match kind {
                "," => String::new(),
                _ => format!(" ON {}", self.join_condition(&source.columns, &all)),
            };
            // A comma has a lower precedence than JOIN.
            let left = if kind != "," && source.text.contains(", ") {
                format!("({})", source.text)
            } else {
                source.text
            };
            source = Source {
                text: format!(
                    "{left}{} {}{on}",
                    if kind == "," { ",".to_owned() } else { format!(" {kind}") },
                    other.text
                ),
                columns: all,
                ids: [source.ids, other.ids].concat(),
                is_single: false,
            };
        }
        source
    }

    /// Returns a join condition: mostly an equality between both sides, with further conditions in some
    /// cases.
    pub fn join_condition(&self, left: &[Named], all: &[Named]) -> String {
        let (a, b) = (self.column(left), self.column(&all[left.len()..]));
        let equal =
            format!("{} {} {}", a.name, self.grammar.pick(&["=", "=", "=", "<=>", "<", ">="]), b.name);
        match self.grammar.below(4) {
            0 => self.condition(all, 2, 0),
            1 => format!("{equal} AND {}", self.condition(all, 1, 0)),
            _ => equal,
        }
    }

    pub fn column<'c>(&self, of: &'c [Named]) -> &'c Named {
        &of[self.grammar.below(of.len())]
    }

    /// Returns a condition on the rows of a source.
    pub fn condition_on(&self, source: &Source) -> String {
        if source.is_single && self.chance(25) {
            let text = self.grammar.expression(3).replace('?', "7");
            let lower = text.to_lowercase();
            if !NOT_REPEATED.iter().any(|word| lower.contains(word)) {
                return text;
            }
        }
        self.condition(&source.columns, 3, 1)
    }

    /// Returns a value: a column, a literal, or an expression of them.
    fn value(&self, of: &[Named], depth: usize) -> (String, Class) {
        let column = self.column(of);
        let Some(depth) = depth.checked_sub(1) else { return (column.name.clone(), column.class) };
        let operand = || self.value(of, depth).0;
        match self.grammar.below(16) {
            0 => (
                format!("({} {} {})", operand(), self.grammar.pick(&["+", "-", "*"]), operand()),
                Class::Real,
            ),
            1 => (format!("COALESCE({}, {})", operand(), operand()), column.class),
            2 => (format!("NULLIF({}, {})", operand(), operand()), column.class),
            3 => (
                format!("IF({}, {}, {})", self.condition(of, depth.min(1), 0), operand(), operand()),
                column.class,
            ),
            4 => (
                format!("CASE {} WHEN {} THEN {} ELSE {} END", operand(), operand(), operand(), operand()),
                column.class,
            ),
            5 => (format!("LENGTH({})", operand()), Class::Exact),
            6 => (format!("UPPER({})", operand()), Class::Text),
            7 => (format!("CONCAT({}, {})", operand(), operand()), Class::Text),
            8 => (format!("ABS({})", operand()), Class::Real),
            9 => (
                format!(
                    "CAST({} AS {})",
                    operand(),
                    self.grammar.pick(&["SIGNED", "CHAR", "DATE", "DECIMAL(9,1)"])
                ),
                Class::Real,
            ),
            _ => (column.name.clone(), column.class),
        }
    }

    /// Returns an operand for a comparison with a value of a class.
    fn other(&self, of: &[Named], class: Class, depth: usize) -> String {
        match self.grammar.below(20) {
            0 => "NULL".to_owned(),
            1..=4 => self.value(of, depth.min(1)).0,
            5 => literal(
                self.grammar,
                self.grammar.pick(&[Class::Exact, Class::Real, Class::Text, Class::Temporal]),
            )
            .to_owned(),
            _ => literal(self.grammar, class).to_owned(),
        }
    }

    /// Returns a condition with a maximum depth, and with a maximum nesting of subqueries.
    pub fn condition(&self, of: &[Named], depth: usize, subqueries: usize) -> String {
        let inner = |depth: usize| self.condition(of, depth, subqueries);
        if depth > 0 {
            let below = depth - 1;
            match self.grammar.below(12) {
                0..=2 => return format!("({} AND {})", inner(below), inner(below)),
                3..=5 => return format!("({} OR {})", inner(below), inner(below)),
                6 => return format!("(NOT {})", inner(below)),
                7 if self.chance(30) => return format!("({} XOR {})", inner(below), inner(below)),
                8 if self.chance(50) => {
                    let test = self.grammar.pick(&["TRUE", "FALSE", "NULL", "NOT TRUE", "NOT NULL"]);
                    return format!("({} IS {test})", inner(below));
                }
                9 | 10 if subqueries > 0 => return self.subquery(of, subqueries - 1),
                _ => {}
            }
        }
        let (value, class) = self.value(of, usize::from(self.chance(25)) * depth.min(2));
        let other = || self.other(of, class, depth);
        let not = self.grammar.pick(&["", "", "NOT "]);
        match self.grammar.below(14) {
            0..=5 => format!(
                "({value} {} {})",
                self.grammar.pick(&["=", "<", ">", "<=", ">=", "<>", "<=>"]),
                other()
            ),
            6 | 7 => {
                let list: Vec<String> = (0..1 + self.grammar.below(4)).map(|_| other()).collect();
                format!("({value} {not}IN ({}))", list.join(", "))
            }
            8 | 9 => format!("({value} {not}BETWEEN {} AND {})", other(), other()),
            10 => format!("({value} IS {not}NULL)"),
            11 => format!(
                "({value} {not}LIKE {})",
                self.grammar.pick(&["'a%'", "'%b'", "'_'", "'A'", "'2024%'", "'1%'", "''"])
            ),
            12 if of.len() > 1 => {
                let second = self.column(of);
                let (a, b) = (other(), self.other(of, second.class, 0));
                format!(
                    "(({value}, {}) {} ({a}, {b}))",
                    second.name,
                    self.grammar.pick(&["=", "<>", "<", "<=>"])
                )
            }
            _ => format!("({value} {} {})", self.grammar.pick(&["=", "<", ">="]), self.column(of).name),
        }
    }

    fn subquery(&self, of: &[Named], subqueries: usize) -> String {
        let table = self.table();
        let alias = ["s", "q"][subqueries.min(1)];
        let own = named(alias, &table.columns);
        let mut seen = own.clone();
        if self.chance(50) {
            seen.extend(of.iter().cloned());
        }
        let mut filter = self.condition(&seen, 1, subqueries);
        if self.chance(40) {
            filter = format!("{} = {} AND {filter}", self.column(&own).name, self.column(of).name);
        }
        let rows = format!("FROM {} {alias} WHERE {filter}", table.name);
        let chosen = &self.column(&own).name;
        let value = self.column(of);
        let not = self.grammar.pick(&["", "NOT "]);
        match self.grammar.below(6) {
            0 | 1 => format!("({not}EXISTS (SELECT 1 {rows}))"),
            2 | 3 => format!("({} {not}IN (SELECT {chosen} {rows}))", value.name),
            4 => {
                let op = self.grammar.pick(&["=", "<>", "<", ">=", ">"]);
                format!(
                    "({} {op} {} (SELECT {chosen} {rows}))",
                    value.name,
                    self.grammar.pick(&["ANY", "ALL"])
                )
            }
            _ => {
                let aggregate = self
                    .grammar
                    .pick(&["MAX(s)", "MIN(s)", "COUNT(s)"])
                    .replace("(s)", &format!("({chosen})"));
                format!(
                    "({} {} (SELECT {aggregate} {rows}))",
                    value.name,
                    self.grammar.pick(&["=", "<", ">="])
                )
            }
        }
    }
}
