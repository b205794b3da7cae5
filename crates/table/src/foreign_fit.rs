//! Checks that a foreign key fits its two tables, and prints it.

use cohort_catalog::{ForeignAction, ForeignKey, IndexColumn, Table};
use cohort_sql::print::{Style, quoted_name};
use cohort_types::{ColumnType, TypeKind, Value};

/// The reason why a foreign key cannot refer to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    NoColumn(String),
    /// The child's column and the parent's column.
    Types(String, String),
    NoIndex,
    PrefixOnly,
}

/// Returns the first index that begins with these columns, whole and in this order.
pub fn leading_index(table: &Table, columns: &[usize]) -> Option<usize> {
    (0..table.indexes.len()).find(|index| begins_with(table, *index, columns, Parts::Whole))
}

/// Index parts that count: whole columns only, or also column prefixes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    Whole,
    Any,
}

/// Returns true if an index's entries begin with these columns. Entries of a plain key end with the primary
/// key.
fn begins_with(table: &Table, index: usize, columns: &[usize], parts: Parts) -> bool {
    let index = &table.indexes[index];
    if !index.kind.is_scannable() {
        return false;
    }
    let suffix: &[IndexColumn] = if index.kind.ends_with_row_key() { table.row_key() } else { &[] };
    let held = || index.columns.iter().chain(suffix);
    held().count() >= columns.len()
        && held()
            .zip(columns)
            .all(|(part, c)| part.column == *c && (parts == Parts::Any || part.prefix.is_none()))
}

/// Returns true if an index begins with these columns.
pub fn is_led(table: &Table, index: usize, columns: &[usize]) -> bool {
    begins_with(table, index, columns, Parts::Whole)
}

/// Returns the ordinals of the parent's columns, and the index that begins with them.
pub fn fit(child: &Table, key: &ForeignKey, parent: &Table) -> Result<(Vec<usize>, usize), Misfit> {
    let mut columns = Vec::with_capacity(key.columns.len());
    for name in &key.parent_columns {
        columns.push(parent.column(name).ok_or_else(|| Misfit::NoColumn(name.clone()))?);
    }
    let index = leading_index(parent, &columns).ok_or_else(|| {
        let leads = |index| begins_with(parent, index, &columns, Parts::Any);
        if (0..parent.indexes.len()).any(leads) { Misfit::PrefixOnly } else { Misfit::NoIndex }
    })?;
    for (here, there) in key.columns.iter().zip(&columns) {
        let (here, there) = (&child.columns[*here], &parent.columns[*there]);
        if !compares_with(&here.ty, &there.ty) {
            return Err(Misfit::Types(here.name.clone(), there.name.clone()));
        }
    }
    Ok((columns, index))
}

/// Returns true if keys of one type can be looked up among keys of the other.
fn compares_with(a: &ColumnType, b: &ColumnType) -> bool {
    if a.kind.is_text() || b.kind.is_text() {
        return a.kind.is_text() && b.kind.is_text() && a.collation == b.collation;
    }
    if a.kind.is_binary_string() || b.kind.is_binary_string() {
        return a.kind.is_binary_string() && b.kind.is_binary_string();
    }
    let members = |ty: &ColumnType| match ty.kind {
        TypeKind::Enum => usize::from(ty.members.len() > 255),
        TypeKind::Set => ty.members.len().div_ceil(8),
        _ => 0,
    };
    a.kind == b.kind && (a.unsigned == b.unsigned || !a.kind.is_integer()) && members(a) == members(b)
}

/// Returns a value of one column of a foreign key as a column of the other table holds it, or `None` if no
/// equal value has that column's type: types of one kind may differ in digits.
pub fn counterpart(value: &Value, ty: &ColumnType) -> Option<Value> {
    let has_digits = |micros: i64| micros % 10_i64.pow(6 - u32::from(ty.decimals.min(6))) == 0;
    let is_held = match value {
        Value::Decimal(number) => {
            let held = number.round(i32::from(ty.decimals)).ok().filter(|held| held == number)?;
            let fits = u32::from(held.int_digits()) + u32::from(ty.decimals) <= ty.length;
            return (fits && !(ty.unsigned && held.is_negative())).then_some(Value::Decimal(held));
        }
        Value::Bit { bits, .. } => {
            let width = ty.length as u8;
            return (bits.checked_shr(ty.length).unwrap_or(0) == 0)
                .then_some(Value::Bit { bits: *bits, width });
        }
        Value::Time(time) => has_digits(time.micros),
        Value::DateTime(time) => has_digits(i64::from(time.micros)),
        Value::Timestamp(micros) => has_digits(*micros),
        _ => true,
    };
    is_held.then(|| value.clone())
}

/// Returns `CONSTRAINT ... ON UPDATE ...` as in SHOW CREATE TABLE.
pub fn constraint_text(child: &Table, key: &ForeignKey) -> String {
    constraint_text_in(child, key, Style::default())
}

/// Returns the constraint's text in the given quoting style.
pub fn constraint_text_in(child: &Table, key: &ForeignKey, style: Style) -> String {
    let mut text = without_actions(child, key, key.parent.schema != child.name.schema, style);
    for (on, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        if action != ForeignAction::Restrict {
            text += &format!(" ON {on} {}", action.text());
        }
    }
    text
}

/// Returns the constraint's text without the actions.
pub fn bare_constraint_text(child: &Table, key: &ForeignKey, with_schema: bool) -> String {
    without_actions(child, key, with_schema, Style::default())
}

fn without_actions(child: &Table, key: &ForeignKey, with_schema: bool, style: Style) -> String {
    let here: Vec<String> = key.columns.iter().map(|c| style.name(&child.columns[*c].name)).collect();
    let there: Vec<String> = key.parent_columns.iter().map(|name| style.name(name)).collect();
    let schema = if with_schema { style.name(&key.parent.schema) + "." } else { String::new() };
    format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {schema}{} ({})",
        style.name(&key.name),
        here.join(", "),
        style.name(&key.parent.table),
        there.join(", ")
    )
}

/// Returns `` `schema`.`child`, CONSTRAINT ... `` for error messages.
pub fn named_constraint(child: &Table, key: &ForeignKey) -> String {
    let name = &child.name;
    format!("{}.{}, {}", quoted_name(&name.schema), quoted_name(&name.table), constraint_text(child, key))
}
