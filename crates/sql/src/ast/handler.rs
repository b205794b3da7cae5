//! HANDLER.

use super::{Expr, Limit, ObjectName};

/// HANDLER name OPEN, READ or CLOSE.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// Name of the table for OPEN, else the name under which it was opened.
    pub name: ObjectName,
    pub action: HandlerAction,
}

/// Action of a HANDLER statement.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerAction {
    Open { alias: Option<String> },
    Read(Box<HandlerRead>),
    Close,
}

/// HANDLER READ.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerRead {
    /// Name of the index; `None` reads the rows in storage order.
    pub index: Option<String>,
    pub to: HandlerTo,
    pub filter: Option<Expr>,
    pub limit: Option<Limit>,
}

/// Rows of a HANDLER READ.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerTo {
    First,
    Next,
    Prev,
    Last,
    /// Rows whose first key columns compare with these values.
    Key(KeyComparison, Vec<Expr>),
}

/// Comparison of a HANDLER READ by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyComparison {
    Equal,
    AtLeast,
    Above,
    AtMost,
    Below,
}
