//! Derived tables in derived tables on the inner side of an outer join: merged and materialized derived
//! tables must have the same results. Items that are not NULL for NULL columns (a constant, COALESCE, IS
//! NULL, CASE) must be NULL in a row without a match.

use crate::queries::{Named, Queries};
use crate::tables::Class;
use crate::{Checker, Refused};

/// A derived table with several levels.
struct Layered {
    /// Variant whose levels are merged into the outer query.
    merged: String,
    /// Variant in which LIMIT prevents the merge of each level.
    kept: String,
    columns: Vec<Named>,
}

/// Returns an item that may be not NULL although its columns are NULL.
fn loose_item(queries: &Queries<'_>, of: &[Named]) -> (String, Class) {
    let column = || queries.column(of).name.clone();
    match queries.grammar.below(9) {
        0 => ("'Y'".to_owned(), Class::Text),
        1 => ("7".to_owned(), Class::Exact),
        2 => (format!("({} IS NULL)", column()), Class::Exact),
        3 => (format!("COALESCE({}, 5)", of[0].name), Class::Exact),
        4 => (format!("CASE WHEN {} = 1 THEN 'one' ELSE 'other' END", of[0].name), Class::Text),
        5 => (format!("IFNULL({}, -1)", of[0].name), Class::Exact),
        6 => ("CONCAT('a', 'b')".to_owned(), Class::Text),
        7 => (format!("({} <=> NULL)", column()), Class::Exact),
        _ => ("(SELECT 3)".to_owned(), Class::Exact),
    }
}

fn layered(queries: &Queries<'_>, alias: &str) -> Layered {
    let grammar = queries.grammar;
    let (table, other) = (queries.table().name, queries.table().name);
    let mut from = format!("{table} i");
    let mut of = vec![Named { name: "i.id".to_owned(), class: Class::Exact }];
    if grammar.below(4) == 0 {
        let kind = grammar.pick(&["JOIN", "LEFT JOIN"]);
        from = format!("{from} {kind} {other} j ON i.id = j.id + 1");
        of.push(Named { name: "j.id".to_owned(), class: Class::Exact });
    }
    let mut items = vec!["i.id AS id".to_owned()];
    let mut columns = vec![Named { name: format!("{alias}.id"), class: Class::Exact }];
    for n in 0..1 + grammar.below(3) {
        let (item, class) = loose_item(queries, &of);
        items.push(format!("{item} AS w{n}"));
        columns.push(Named { name: format!("{alias}.w{n}"), class });
    }
    let filter = match grammar.below(3) {
        0 => format!(" WHERE {}", queries.condition(&of, 1, 0)),
        _ => String::new(),
    };
    let mut merged = format!("SELECT {} FROM {from}{filter}", items.join(", "));
    let mut kept = format!("{merged} LIMIT 100000");
    for level in 0..grammar.below(3) {
        let own = format!("l{level}");
        let filter = if grammar.below(4) == 0 { format!(" WHERE {own}.id < 9") } else { String::new() };
        let more = match grammar.below(4) {
            0 => {
                columns.push(Named { name: format!("{alias}.m{level}"), class: Class::Text });
                format!("{own}.*, 'more' AS m{level}")
            }
            _ => format!("{own}.*"),
        };
        merged = format!("SELECT {more} FROM ({merged}) {own}{filter}");
        kept = format!("SELECT {more} FROM ({kept}) {own}{filter} LIMIT 100000");
    }
    Layered { merged: format!("({merged}) {alias}"), kept: format!("({kept}) {alias}"), columns }
}

impl Checker<'_> {
    /// Compares a query over merged derived tables with one over materialized ones.
    pub(crate) fn levels(&mut self) -> Result<(), Refused> {
        let left = self.queries.named_table("x");
        let first = layered(&self.queries, "y");
        let second = layered(&self.queries, "z");
        let two = self.queries.grammar.below(3) == 0;
        let mut columns = [left.columns.clone(), first.columns.clone()].concat();
        let on = self.queries.join_condition(&left.columns, &columns);
        let mut shown: Vec<String> = left.ids.clone();
        shown.extend(first.columns.iter().map(|column| column.name.clone()));
        if two {
            columns.extend(second.columns.iter().cloned());
            shown.extend(second.columns.iter().map(|column| column.name.clone()));
        }
        let shape = self.queries.grammar.below(4);
        let from = |first: &str, second: &str| match (two, shape) {
            (false, 0) => format!("{first} RIGHT JOIN {} ON {on}", left.text),
            (false, _) => format!("{} LEFT JOIN {first} ON {on}", left.text),
            (true, 0) => format!("{} LEFT JOIN ({first} JOIN {second} ON y.id = z.id) ON {on}", left.text),
            (true, 1) => {
                format!("{} LEFT JOIN ({first} LEFT JOIN {second} ON y.id = z.id) ON {on}", left.text)
            }
            (true, 2) => {
                format!("({first} LEFT JOIN {second} ON y.id = z.id) RIGHT JOIN {} ON {on}", left.text)
            }
            (true, _) => format!("{} LEFT JOIN {first} ON {on} LEFT JOIN {second} ON y.id = z.id", left.text),
        };
        let condition = match self.queries.grammar.below(3) {
            0 => "1".to_owned(),
            _ => self.queries.condition(&columns, 2, 0),
        };
        let value = self.queries.column(&first.columns).name.clone();
        let query = |from: String| match shape {
            0 | 1 => format!("SELECT {}, (SELECT {value}) FROM {from} WHERE {condition}", shown.join(", ")),
            2 => format!(
                "SELECT {value}, COUNT(*), COUNT({value}) FROM {from} WHERE {condition} GROUP BY {value}"
            ),
            _ => format!(
                "SELECT x.id, {value} AS v, ({condition}) IS TRUE AS c FROM {from} \
                 HAVING v IS NULL OR c ORDER BY {value}"
            ),
        };
        let merged = query(from(&first.merged, &second.merged));
        let kept = query(from(&first.kept, &second.kept));
        self.same("derived tables that are merged, and kept", &[merged], &[kept])
    }
}
