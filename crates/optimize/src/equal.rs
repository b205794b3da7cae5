//! Equivalence classes of columns.
//!
//! # Concepts
//! `a = b` and `b = c` form a *class* of three columns and imply `a = c`. With the implied condition, a table
//! can be joined to a table that no written condition connects it to. A class consists of equalities between
//! two columns that compare alike: one type and one collation, so that equality is transitive.
//!
//! # Invariant
//! The columns of a class belong to different tables, and each pair of them has a condition, written or
//! implied. So a single condition connects a table to those placed before: their columns are already equal,
//! and the other conditions of the class add nothing.

use std::collections::BTreeMap;

use cohort_expr::{CompareHow, CompareOp, Expr, TypeClass, compare_exprs};
use cohort_plan::FromTable;
use cohort_types::{Collation, SqlResult, TypeKind};

use crate::visit::brings;

/// Maximum size of a class. Larger ones get no implied conditions, because there would be too many pairs.
const COLUMNS_MAX: usize = 8;

/// An equivalence class.
struct Class {
    /// The columns by number, as written somewhere in the statement.
    columns: BTreeMap<usize, Expr>,
    collation: Collation,
    /// Written conditions that belong to the class.
    written: Vec<usize>,
}

/// The equivalence classes of a set of conditions.
#[derive(Default)]
pub(crate) struct Classes {
    /// The class of each condition.
    pub of_condition: Vec<Option<usize>>,
}

impl Classes {
    /// Finds the classes of conditions over tables, and appends the implied conditions.
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
        debug_assert_eq!(of_condition.len(), conditions.len(), "a condition has no class, not even none");
        debug_assert!(
            of_condition.iter().flatten().all(|class| *class < classes.len()),
            "an equality belongs to a class that was given up"
        );
        Ok(Classes { of_condition })
    }
}

impl Class {
    /// Returns the equalities that are implied but not written.
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

/// Returns the two columns that a condition makes equal, and their collation.
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

/// Returns true if all pairs compare alike and no table has two of the columns.
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

/// Returns the collation under which two expressions can be compared as encoded group keys. Both must have
/// the same type.
pub(crate) fn hashable(inner: &Expr, outer: &Expr, how: &CompareHow) -> Option<Collation> {
    let CompareHow::Scalar { collation, class } = how else { return None };
    let (a, b) = (inner.ty(), outer.ty());
    let plain = |k: TypeKind| !matches!(k, TypeKind::Enum | TypeKind::Set | TypeKind::Bit | TypeKind::Year);
    let same =
        a.class() == b.class() && plain(a.kind) && plain(b.kind) && class.is_none_or(|c| c == a.class());
    // Signed and unsigned numbers, or decimals with different scales, may encode one number differently.
    let same_form = match a.class() {
        TypeClass::Int => a.unsigned == b.unsigned,
        TypeClass::Decimal => a.decimals == b.decimals,
        TypeClass::Real => a.kind == b.kind,
        _ => true,
    };
    (same && same_form).then_some(*collation)
}
