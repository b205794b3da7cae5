//! HANDLER.

use super::{Expr, Limit, ObjectName};

/// HANDLER name OPEN, READ or CLOSE.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// A table for OPEN, else what it was opened as.
    pub name: ObjectName,
    pub action: HandlerAction,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerAction {
    Open { alias: Option<String> },
    Read(Box<HandlerRead>),
    Close,
}

/// READ.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerRead {
    /// None: the rows as they lie.
    pub index: Option<String>,
    pub to: HandlerTo,
    pub filter: Option<Expr>,
    pub limit: Option<Limit>,
}

/// Which rows.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerTo {
    First,
    Next,
    Prev,
    Last,
    /// Those whose first key columns compare with these values.
    Key(KeyComparison, Vec<Expr>),
}

/// How keys are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyComparison {
    Equal,
    AtLeast,
    Above,
    AtMost,
    Below,
}
