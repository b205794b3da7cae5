//! Columns that conditions make equal.
//!
//! # Concepts
//! `a = b` and `b = c` make a *class* of three columns, and say `a = c` as well: with that condition a table
//! can be joined to another that no written condition connects it to. A class is made of equalities of two
//! columns that compare alike: one type, one collation, so that equality is passed on.
//!
//! # Invariant
//! The columns of a class are of different tables, and each two of them have a condition, written or implied.
//! So one condition connects a table to those placed before: the columns of these are equal already, and the
//! other conditions of the class say nothing new.

use std::collections::BTreeMap;

use cohort_expr::{CompareOp, Expr, compare_exprs};
use cohort_plan::FromTable;
use cohort_types::{Collation, SqlResult};

use crate::join::hashable;
use crate::visit::brings;

/// Columns of a larger class are left as they are written: pairs are many.
const COLUMNS_MAX: usize = 8;

/// A class.
struct Class {
    /// By number: columns as they are written somewhere.
    columns: BTreeMap<usize, Expr>,
    collation: Collation,
    /// Its conditions among those written.
    written: Vec<usize>,
}

/// The classes of conditions.
#[derive(Default)]
pub(crate) struct Classes {
    /// Of each condition, its class.
    pub of_condition: Vec<Option<usize>>,
}

impl Classes {
    /// Finds the classes of conditions over tables, and adds what they imply to the conditions.
    pub fn complete(conditions: &mut Vec<Expr>, tables: &[&FromTable]) -> SqlResult<Classes> {
        let mut classes = Vec::new();
        for (n, condition) in conditions.iter().enumerate() {
            if let Some((left, right, collation)) = equality(condition, tables) {
                add(&mut classes, n, [left, right], collation);
            }
        }
        let mut of_condition = vec![None; conditions.len()];
        classes.retain(|class: &Class| class.columns.len() > 2 && is_sound(class, tables));
        for (number, class) in classes.iter().enumerate() {
            class.written.iter().for_each(|n| of_condition[*n] = Some(number));
            for implied in class.implied(conditions)? {
                conditions.push(implied);
                of_condition.push(Some(number));
            }
        }
        Ok(Classes { of_condition })
    }
}

impl Class {
    /// The equalities that nobody has written.
    fn implied(&self, conditions: &[Expr]) -> SqlResult<Vec<Expr>> {
        let pair = |condition: &Expr| match condition {
            Expr::Compare(node) => match (&node.left, &node.right) {
                (Expr::Column(a), Expr::Column(b)) => Some([a.ordinal, b.ordinal]),
                _ => None,
            },
            _ => None,
        };
        let written: Vec<[usize; 2]> = self.written.iter().filter_map(|n| pair(&conditions[*n])).collect();
        let mut implied = Vec::new();
        for (n, (a, left)) in self.columns.iter().enumerate() {
            for (b, right) in self.columns.iter().skip(n + 1) {
                if !written.contains(&[*a, *b]) && !written.contains(&[*b, *a]) {
                    implied.push(compare_exprs(CompareOp::Eq, left.clone(), right.clone())?);
                }
            }
        }
        Ok(implied)
    }
}

/// Two columns of tables that a condition makes equal, and how they compare.
fn equality<'e>(condition: &'e Expr, tables: &[&FromTable]) -> Option<(&'e Expr, &'e Expr, Collation)> {
    let Expr::Compare(node) = condition else { return None };
    let is_column = |expr: &Expr| match expr {
        Expr::Column(column) => tables.iter().any(|table| brings(table, column.ordinal)),
        _ => false,
    };
    if node.op != CompareOp::Eq || !is_column(&node.left) || !is_column(&node.right) {
        return None;
    }
    let collation = hashable(&node.left, &node.right, &node.how)?;
    Some((&node.left, &node.right, collation))
}

fn add(classes: &mut Vec<Class>, condition: usize, sides: [&Expr; 2], collation: Collation) {
    let mut joined = Class { columns: BTreeMap::new(), collation, written: vec![condition] };
    for side in sides {
        joined.columns.extend(side.columns().into_iter().map(|number| (number, side.clone())));
    }
    let meets = |class: &Class| {
        class.collation == collation && class.columns.keys().any(|number| joined.columns.contains_key(number))
    };
    let (met, others): (Vec<Class>, Vec<Class>) = std::mem::take(classes).into_iter().partition(meets);
    *classes = others;
    for class in met {
        joined.columns.extend(class.columns);
        joined.written.extend(class.written);
    }
    classes.push(joined);
}

/// Whether all pairs compare alike, and no table has two of the columns.
fn is_sound(class: &Class, tables: &[&FromTable]) -> bool {
    let of_table = |table: &&FromTable| class.columns.keys().filter(|number| brings(table, **number)).count();
    let columns: Vec<&Expr> = class.columns.values().collect();
    let alike = |a: &Expr, b: &Expr| match compare_exprs(CompareOp::Eq, a.clone(), b.clone()) {
        Ok(Expr::Compare(node)) => hashable(&node.left, &node.right, &node.how) == Some(class.collation),
        _ => false,
    };
    columns.len() <= COLUMNS_MAX
        && tables.iter().all(|table| of_table(table) <= 1)
        && columns.iter().enumerate().all(|(n, a)| columns[n + 1..].iter().all(|b| alike(a, b)))
}
