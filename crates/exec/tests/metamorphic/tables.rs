//! Random tables with different types, NULLs, collations and indexes, and copies of them without indexes.

use crate::grammar::Grammar;

/// Classes of types whose values are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Class {
    /// Integers and decimals, whose sums do not depend on the order.
    Exact,
    Real,
    Text,
    Temporal,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: &'static str,
    pub class: Class,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
}

/// Names that the grammar's expressions use.
const TABLES: [&str; 3] = ["t", "u", "v"];
const COLUMNS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

const TYPES: [(&str, Class); 20] = [
    ("INT", Class::Exact),
    ("INT", Class::Exact),
    ("TINYINT", Class::Exact),
    ("BIGINT UNSIGNED", Class::Exact),
    ("DECIMAL(8,2)", Class::Exact),
    ("BIT(4)", Class::Exact),
    ("YEAR", Class::Exact),
    ("DOUBLE", Class::Real),
    ("FLOAT", Class::Real),
    ("VARCHAR(12)", Class::Text),
    ("VARCHAR(12) COLLATE utf8mb4_bin", Class::Text),
    ("VARCHAR(12) CHARACTER SET latin1", Class::Text),
    ("CHAR(5)", Class::Text),
    ("VARBINARY(8)", Class::Text),
    ("TEXT", Class::Text),
    ("ENUM('x', 'y', 'a')", Class::Text),
    ("SET('a', 'b', 'x')", Class::Text),
    ("DATE", Class::Temporal),
    ("DATETIME(2)", Class::Temporal),
    ("TIME", Class::Temporal),
];

const EXACT: [&str; 14] = [
    "0",
    "1",
    "2",
    "3",
    "5",
    "7",
    "-1",
    "1.5",
    "2.00",
    "-0.01",
    "100",
    "127",
    "2000",
    "18446744073709551615",
];
const REAL: [&str; 7] = ["0", "1.5", "2", "-1e10", "0.1", "1e0", "3.25"];
const TEXT: [&str; 14] = [
    "''", "'a'", "'A'", "'a '", "'b'", "'ab'", "'aB'", "'x'", "'1'", "'2x'", "'1.5'", "'ä'", "'a,b'", "'z%'",
];
const DATETIMES: [&str; 9] = [
    "'2024-02-29'",
    "'2024-01-31 10:00:00'",
    "'2024-01-31 10:00:00.25'",
    "'10:00:00'",
    "'-10:00:01'",
    "DATE'2024-01-31'",
    "TIMESTAMP'2024-02-29 00:00:00'",
    "TIME'100:00:00'",
    "20240131",
];

/// Returns a literal for a comparison with a class.
pub fn literal(grammar: &Grammar, class: Class) -> &'static str {
    match class {
        Class::Exact => grammar.pick(&EXACT),
        Class::Real => grammar.pick(&REAL),
        Class::Text => grammar.pick(&TEXT),
        Class::Temporal => grammar.pick(&DATETIMES),
    }
}

fn chance(grammar: &Grammar, percent: usize) -> bool {
    grammar.below(100) < percent
}

/// Returns the tables, and the statements that create and fill them: in `test` with indexes, in `plain`
/// without.
pub fn made(grammar: &Grammar) -> (Vec<Table>, Vec<String>) {
    let mut script = vec!["CREATE DATABASE plain".to_owned()];
    let mut tables = Vec::new();
    for name in TABLES {
        let count = 2 + grammar.below(COLUMNS.len() - 1);
        let mut definitions = vec!["id INT NOT NULL".to_owned()];
        let mut columns = vec![Column { name: "id", class: Class::Exact }];
        let mut types = Vec::new();
        for column in &COLUMNS[..count] {
            let (ty, class) = grammar.pick(&TYPES);
            // For a NOT NULL column, `IS NULL` is true for the zero date.
            let null = if class == Class::Temporal || chance(grammar, 80) { "" } else { " NOT NULL" };
            definitions.push(format!("{column} {ty}{null}"));
            types.push(ty);
            columns.push(Column { name: column, class });
        }
        let plain = format!("CREATE TABLE plain.{name} ({})", definitions.join(", "));
        definitions.push(
            grammar.pick(&["PRIMARY KEY (id)", "PRIMARY KEY (id)", "UNIQUE KEY (id)", "KEY (id)"]).to_owned(),
        );
        for n in 0..grammar.below(4) {
            definitions.push(index(grammar, n, &types));
        }
        script.push(format!("CREATE TABLE test.{name} ({})", definitions.join(", ")));
        script.push(plain);
        let rows = grammar.pick(&[0, 1, 6, 20, 20, 60]);
        if rows > 0 {
            let value = |column: &Column| match chance(grammar, 20) {
                true => "NULL",
                false => literal(grammar, column.class),
            };
            let row = |id: usize| {
                let values: Vec<&str> = columns[1..].iter().map(value).collect();
                format!("({id}, {})", values.join(", "))
            };
            let rows: Vec<String> = (0..rows).map(row).collect();
            // IGNORE adjusts values that do not fit their type.
            script.push(format!("INSERT IGNORE INTO test.{name} VALUES {}", rows.join(", ")));
        }
        script.push(format!("INSERT IGNORE INTO plain.{name} SELECT * FROM test.{name}"));
        tables.push(Table { name, columns });
    }
    (tables, script)
}

fn index(grammar: &Grammar, n: usize, types: &[&str]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for _ in 0..=grammar.below(3) {
        let at = grammar.below(types.len());
        let (name, ty) = (COLUMNS[at], types[at]);
        if parts.iter().any(|part| part.starts_with(name)) {
            continue;
        }
        let is_cut = ty == "TEXT" || (ty.starts_with("VARCHAR") && chance(grammar, 20));
        let cut = if is_cut { "(1)" } else { "" };
        parts.push(format!("{name}{cut}{}", grammar.pick(&["", "", " DESC"])));
    }
    let unique = if chance(grammar, 15) { "UNIQUE " } else { "" };
    format!("{unique}KEY k{n} ({})", parts.join(", "))
}
