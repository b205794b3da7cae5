//! Sequences.

use super::{Expr, ObjectName};

/// Operation on a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceOperation {
    /// NEXT VALUE FOR, NEXTVAL().
    Next,
    /// PREVIOUS VALUE FOR, LASTVAL().
    Last,
    /// SETVAL().
    Set,
}

impl SequenceOperation {
    /// Returns the name of the function.
    pub fn name(self) -> &'static str {
        match self {
            SequenceOperation::Next => "nextval",
            SequenceOperation::Last => "lastval",
            SequenceOperation::Set => "setval",
        }
    }
}

/// A sequence operation in an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceCall {
    pub operation: SequenceOperation,
    pub name: ObjectName,
    /// Arguments of SETVAL: the value, whether it is used, the round.
    pub args: Vec<Expr>,
}

/// Options of CREATE and ALTER SEQUENCE. NO MINVALUE and NO MAXVALUE are `Some(None)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceOptions {
    pub start: Option<i64>,
    pub increment: Option<i64>,
    pub min: Option<Option<i64>>,
    pub max: Option<Option<i64>>,
    /// 0 for NOCACHE.
    pub cache: Option<i64>,
    pub cycle: Option<bool>,
    /// RESTART [WITH n].
    pub restart: Option<Option<i64>>,
}

/// ALTER SEQUENCE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterSequence {
    pub if_exists: bool,
    pub name: ObjectName,
    pub options: SequenceOptions,
}
