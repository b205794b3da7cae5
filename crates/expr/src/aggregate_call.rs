//! An aggregate in a query: its kind, its arguments and its options.

use crate::expr::Expr;
use crate::expr_type::ExprType;

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// `COUNT(*)`.
    CountStar,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    StdPop,
    StdSamp,
    VarPop,
    VarSamp,
    GroupConcat,
    JsonArrayagg,
    JsonObjectagg,
    /// All rows of the group as bytes, for an aggregate function that is a program.
    Rows,
}

impl AggregateKind {
    /// Returns the name for messages.
    pub fn name(self) -> &'static str {
        match self {
            AggregateKind::CountStar | AggregateKind::Count => "count",
            AggregateKind::Sum => "sum",
            AggregateKind::Avg => "avg",
            AggregateKind::Min => "min",
            AggregateKind::Max => "max",
            AggregateKind::BitAnd => "bit_and",
            AggregateKind::BitOr => "bit_or",
            AggregateKind::BitXor => "bit_xor",
            AggregateKind::StdPop => "std",
            AggregateKind::StdSamp => "stddev_samp",
            AggregateKind::VarPop => "variance",
            AggregateKind::VarSamp => "var_samp",
            AggregateKind::GroupConcat => "group_concat",
            AggregateKind::JsonArrayagg => "json_arrayagg",
            AggregateKind::JsonObjectagg => "json_objectagg",
            AggregateKind::Rows => "rows",
        }
    }
}

/// ALL or DISTINCT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quantifier {
    #[default]
    All,
    Distinct,
}

/// A key of the ORDER BY inside GROUP_CONCAT.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    pub expr: Expr,
    pub descending: bool,
}

/// Options inside the parentheses in addition to the arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AggregateOptions {
    pub quantifier: Quantifier,
    pub order: Vec<OrderKey>,
    /// SEPARATOR of GROUP_CONCAT; a comma if `None`.
    pub separator: Option<String>,
    /// LIMIT offset, count of GROUP_CONCAT.
    pub limit: Option<(u64, u64)>,
}

/// An aggregate function with its arguments, which are expressions over the rows of the group.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub kind: AggregateKind,
    pub args: Vec<Expr>,
    pub options: AggregateOptions,
    pub ty: ExprType,
}
