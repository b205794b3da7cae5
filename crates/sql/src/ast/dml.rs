//! INSERT, REPLACE, UPDATE, DELETE.

use super::{ColumnRef, Expr, Limit, ObjectName, OrderItem, Query, SelectItem, TableRef};

/// INSERT or REPLACE. DELAYED, LOW_PRIORITY, HIGH_PRIORITY are accepted without effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// REPLACE.
    pub replace: bool,
    pub ignore: bool,
    pub table: ObjectName,
    /// PARTITION (p, ...).
    pub partitions: Vec<String>,
    /// As written; empty: all columns in the table's order. The SET form fills it.
    pub columns: Vec<String>,
    pub source: InsertSource,
    /// ON DUPLICATE KEY UPDATE.
    pub on_duplicate: Vec<Assignment>,
    /// RETURNING; empty without.
    pub returning: Vec<SelectItem>,
}

/// Where the rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// VALUES (..), (..), or SET a = 1. An empty row `()` is all defaults; a value may be
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
    /// One table, or a join (then without ORDER BY and LIMIT mostly).
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
    /// Multi-table form: the tables (or aliases) whose rows go. Empty: the one table of `from`.
    pub targets: Vec<ObjectName>,
    pub from: TableRef,
    pub filter: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    /// RETURNING; empty without.
    pub returning: Vec<SelectItem>,
}

impl Update {
    /// Whether it changes one table and asks no subquery.
    pub fn is_simple(&self) -> bool {
        let values = self.assignments.iter().map(|assignment| &assignment.value);
        let order = self.order_by.iter().map(|item| &item.expr);
        matches!(self.tables, TableRef::Table(_))
            && !values.chain(order).chain(&self.filter).any(Expr::has_subquery)
    }
}

impl Delete {
    /// Whether it changes one table, which FROM names, and asks no subquery.
    pub fn is_simple(&self) -> bool {
        let order = self.order_by.iter().map(|item| &item.expr);
        matches!(self.from, TableRef::Table(_))
            && self.targets.is_empty()
            && !order.chain(&self.filter).any(Expr::has_subquery)
    }
}
