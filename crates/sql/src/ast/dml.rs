//! INSERT, REPLACE, UPDATE, DELETE.

use super::{ColumnRef, Expr, Limit, ObjectName, OrderItem, Query, SelectItem, TableRef};

/// INSERT or REPLACE. LOW_PRIORITY, DELAYED and HIGH_PRIORITY are accepted without effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// REPLACE.
    pub replace: bool,
    pub ignore: bool,
    pub table: ObjectName,
    /// PARTITION (p, ...).
    pub partitions: Vec<String>,
    /// Columns as written, also from the SET form. Empty means all columns in table order.
    pub columns: Vec<String>,
    pub source: InsertSource,
    /// ON DUPLICATE KEY UPDATE.
    pub on_duplicate: Vec<Assignment>,
    /// RETURNING; empty if absent.
    pub returning: Vec<SelectItem>,
}

/// Source of the rows.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// VALUES (..), (..), or SET a = 1. An empty row `()` has all defaults. A value may be
    /// `Expr::Default(None)`.
    Values(Vec<Vec<Expr>>),
    Query(Box<Query>),
}

/// `column = value`; the value may be `Expr::Default(None)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub column: ColumnRef,
    pub value: Expr,
}

/// UPDATE.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub ignore: bool,
    /// One table, or a join (which usually has no ORDER BY and LIMIT).
    pub tables: TableRef,
    pub assignments: Vec<Assignment>,
    pub filter: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
}

/// DELETE.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub ignore: bool,
    /// DELETE QUICK: accepted, without effect.
    pub quick: bool,
    /// Multi-table form: the tables (or aliases) to delete from. Empty for the only table of `from`.
    pub targets: Vec<ObjectName>,
    pub from: TableRef,
    pub filter: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    /// RETURNING; empty if absent.
    pub returning: Vec<SelectItem>,
}

impl Update {
    /// Returns whether it changes one table, and no expression calls back.
    pub fn is_simple(&self, calls_back: impl Fn(&Expr) -> bool) -> bool {
        let values = self.assignments.iter().map(|assignment| &assignment.value);
        let order = self.order_by.iter().map(|item| &item.expr);
        matches!(self.tables, TableRef::Table(_)) && !values.chain(order).chain(&self.filter).any(calls_back)
    }
}

impl Delete {
    /// Returns whether it changes one table, named in FROM, and no expression calls back.
    pub fn is_simple(&self, calls_back: impl Fn(&Expr) -> bool) -> bool {
        let order = self.order_by.iter().map(|item| &item.expr);
        matches!(self.from, TableRef::Table(_))
            && self.targets.is_empty()
            && !order.chain(&self.filter).any(calls_back)
    }
}
