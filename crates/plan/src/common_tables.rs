//! Common table expressions as names that FROM may use. `with.rs` binds them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use cohort_expr::ExprType;
use cohort_sql::ast;

use crate::bind::MergedColumn;

/// The visible common table expressions, innermost last.
#[derive(Clone, Default)]
pub struct CommonTables<'q> {
    pub tables: Vec<Rc<Common<'q>>>,
}

/// A common table expression.
pub struct Common<'q> {
    pub table: &'q ast::CommonTable,
    /// Number of visible ones that its own query can name: those before it, and all of a WITH RECURSIVE.
    pub sees: usize,
    pub recursive: bool,
    /// Its number among the statement's common table expressions, and its columns, once it or its seed is
    /// bound.
    pub known: RefCell<Option<Known>>,
    /// Its seed is being bound.
    pub begun: Cell<bool>,
    /// Its recursive part is being bound.
    pub inside: Cell<bool>,
}

/// A common table expression that can be read.
#[derive(Clone)]
pub struct Known {
    pub number: usize,
    pub names: Vec<String>,
    pub types: Vec<ExprType>,
    /// Origins of its columns, if it is merged into the outer query.
    pub merged: Option<Arc<[MergedColumn]>>,
}
