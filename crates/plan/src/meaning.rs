//! [`Meanings`]: the resolved names of a query, for the text in which a view is stored.
//!
//! Binding records each name under its address. The tree does not move between binding and the walk that
//! writes the meanings into it.

use std::collections::HashMap;

use cohort_sql::ast::{
    BinaryOp, ColumnRef, DataType, DeclaredKind, Expr, Join, JoinCondition, JoinKind, ObjectName, Query,
    QueryBody, Rename, Select, SelectItem, SequenceCall, TableFactor,
};

use cohort_types::{Charset, TypeKind};

use crate::bind::{Relation, Scope, same_name};

/// Resolved names of one statement, by the address of the name.
#[derive(Debug)]
pub struct Meanings {
    /// The character set that CAST AS CHAR returns.
    connection: Charset,
    columns: HashMap<usize, ColumnRef>,
    stars: HashMap<usize, Vec<ColumnRef>>,
    tables: HashMap<usize, ObjectName>,
    pairs: HashMap<usize, Vec<(ColumnRef, ColumnRef)>>,
}

fn place<T>(node: &T) -> usize {
    std::ptr::from_ref(node).addr()
}

/// Returns the full name of the column in a slot. A table with an alias is named by the alias without a
/// database.
fn full_name(scope: &Scope, slot: usize) -> ColumnRef {
    let table = &scope.tables[scope.table_of(slot)];
    let real = match &table.relation {
        Relation::Base(base) => Some(&base.name.table[..]),
        Relation::View(view) => Some(&view.name.table[..]),
        Relation::Virtual(found) => Some(found.name()),
        Relation::Derived => None,
    };
    let has_alias = real.is_none_or(|real| !real.eq_ignore_ascii_case(&table.name));
    ColumnRef {
        db: table.schema.as_deref().filter(|_| !has_alias).map(str::to_owned),
        table: Some(table.name.to_string()),
        name: scope.slot(slot).name.to_string(),
    }
}

impl Meanings {
    /// Creates an empty set. `connection` is the character set of texts that name none.
    pub fn new(connection: Charset) -> Meanings {
        Meanings {
            connection,
            columns: HashMap::new(),
            stars: HashMap::new(),
            tables: HashMap::new(),
            pairs: HashMap::new(),
        }
    }

    pub(crate) fn note_column(&mut self, name: &ColumnRef, scope: &Scope, slot: usize) {
        self.columns.insert(place(name), full_name(scope, slot));
    }

    pub(crate) fn note_star(&mut self, item: &SelectItem, scope: &Scope, slots: &[usize]) {
        self.stars.insert(place(item), slots.iter().map(|slot| full_name(scope, *slot)).collect());
    }

    pub(crate) fn note_table(&mut self, factor: &TableFactor, schema: &str) {
        let name = ObjectName { db: Some(schema.to_owned()), name: factor.name.name.clone() };
        self.tables.insert(place(factor), name);
    }

    pub(crate) fn note_sequence(&mut self, call: &SequenceCall, schema: &str) {
        let name = ObjectName { db: Some(schema.to_owned()), name: call.name.name.clone() };
        self.tables.insert(place(call), name);
    }

    /// Records an equality of USING or NATURAL.
    pub(crate) fn note_pair(&mut self, join: &Join, left: (&Scope, usize), right: (&Scope, usize)) {
        let pair = (full_name(left.0, left.1), full_name(right.0, right.1));
        self.pairs.entry(place(join)).or_default().push(pair);
    }

    /// Writes the meanings into the query that was bound.
    pub fn write_into(mut self, query: &mut Query) {
        query.rename(&mut self);
    }
}

impl Rename for Meanings {
    fn column(&mut self, column: &mut ColumnRef) {
        if let Some(full) = self.columns.remove(&place(column)) {
            *column = full;
        }
    }

    fn table(&mut self, table: &mut TableFactor) {
        if let Some(full) = self.tables.remove(&place(table)) {
            table.name = full;
        }
    }

    fn sequence(&mut self, call: &mut SequenceCall) {
        if let Some(full) = self.tables.remove(&place(call)) {
            call.name = full;
        }
    }

    fn cast(&mut self, to: &mut DataType) {
        if matches!(to.kind, DeclaredKind::Column(TypeKind::Char | TypeKind::VarChar)) && to.charset.is_none()
        {
            to.charset = Some(self.connection.name().to_owned());
        }
    }

    fn join(&mut self, join: &mut Join) {
        let Some(pairs) = self.pairs.remove(&place(join)) else { return };
        let equal = |(left, right): (ColumnRef, ColumnRef)| Expr::Binary {
            op: BinaryOp::Equal,
            left: Box::new(Expr::Column(left)),
            right: Box::new(Expr::Column(right)),
        };
        let all = pairs.into_iter().map(equal).reduce(|left, right| Expr::Binary {
            op: BinaryOp::And,
            left: Box::new(left),
            right: Box::new(right),
        });
        join.condition = all.map_or(JoinCondition::None, JoinCondition::On);
        if join.kind == JoinKind::Cross {
            join.kind = JoinKind::Inner;
        }
    }

    fn select(&mut self, select: &mut Select, is_operand: bool) {
        let mut items = Vec::with_capacity(select.items.len());
        let stars: Vec<Option<Vec<ColumnRef>>> =
            select.items.iter().map(|item| self.stars.remove(&place(item))).collect();
        for (item, star) in std::mem::take(&mut select.items).into_iter().zip(stars) {
            let columns = star.into_iter().flatten();
            match item {
                SelectItem::Expr { expr, alias, text } => {
                    let alias = alias.or_else(|| match (&expr, is_operand) {
                        (_, true) => None,
                        (Expr::Column(column), false) => Some(column.name.clone()),
                        (_, false) => Some(text.clone()),
                    });
                    items.push(SelectItem::Expr { expr, alias, text });
                }
                _ => items.extend(columns.map(|column| {
                    let text = column.name.clone();
                    let alias = (!is_operand).then(|| text.clone());
                    SelectItem::Expr { expr: Expr::Column(column), alias, text }
                })),
            }
        }
        select.items = items;
        select.group_by.iter_mut().for_each(|item| spell_out(&mut item.expr, &select.items));
    }

    fn query(&mut self, query: &mut Query) {
        if let QueryBody::Select(select) = &query.body {
            query.order_by.iter_mut().for_each(|item| spell_out(&mut item.expr, &select.items));
        }
    }
}

/// Replaces names of select items by the items. Names of columns are already full.
fn spell_out(expr: &mut Expr, items: &[SelectItem]) {
    expr.each_part(&mut |part| {
        let Expr::Column(ColumnRef { table: None, name, .. }) = part else { return };
        let named = items.iter().find_map(|item| match item {
            SelectItem::Expr { expr, alias: Some(alias), .. } if same_name(alias, name) => Some(expr),
            _ => None,
        });
        if let Some(named) = named {
            *part = named.clone();
        }
    });
}
