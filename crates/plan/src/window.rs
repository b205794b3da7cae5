//! Bound window functions.

use cohort_expr::{Aggregate, Expr, ExprType, SortKey};
use cohort_types::Collation;

/// A window function used by a SELECT, with its column number.
#[derive(Clone)]
pub struct WindowUse {
    pub column: usize,
    pub partition: Vec<(Expr, Collation)>,
    pub order: Vec<(Expr, SortKey)>,
    pub call: WindowCall,
}

/// A call of a window function.
#[derive(Clone, Debug)]
pub struct WindowCall {
    pub function: WindowFunction,
    pub frame: Frame,
    pub ty: ExprType,
}

/// A function over a frame or partition. Arguments read the input row.
#[derive(Clone, Debug)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile(Expr),
    /// LAG and LEAD: the row `offset` rows before or after the current one.
    Lag {
        value: Expr,
        offset: Option<Expr>,
        is_lead: bool,
    },
    FirstValue(Expr),
    LastValue(Expr),
    NthValue {
        value: Expr,
        n: Expr,
    },
    /// An aggregate over the frame.
    Aggregate(Aggregate),
    /// MEDIAN(x) is PERCENTILE_CONT(0.5) over the partition, in the window's order.
    PercentileCont {
        fraction: Expr,
    },
    PercentileDisc {
        fraction: Expr,
    },
}

/// The frame of a row.
#[derive(Clone, Debug)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    pub end: FrameBound,
}

/// The unit of frame bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    Rows,
    /// Distances in the values of the single order key. `CURRENT ROW` includes all rows with an equal key.
    Range,
}

/// A bound of a frame.
#[derive(Clone, Debug)]
pub enum FrameBound {
    UnboundedPreceding,
    /// The distance does not depend on the row.
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// Generates the walk that reads expressions, and with `mut` the one that changes them.
macro_rules! walks {
    ($name:ident $(, $mutable:tt)?) => {
        impl WindowUse {
            /// Calls `see` for each expression of the window and its function.
            pub fn $name(& $($mutable)? self, see: &mut dyn FnMut(& $($mutable)? Expr)) {
                for (expr, _) in & $($mutable)? self.partition {
                    see(expr);
                }
                for (expr, _) in & $($mutable)? self.order {
                    see(expr);
                }
                self.call.$name(see);
            }
        }

        impl WindowCall {
            /// Calls `see` for each expression of the function and its frame.
            pub fn $name(& $($mutable)? self, see: &mut dyn FnMut(& $($mutable)? Expr)) {
                for bound in [& $($mutable)? self.frame.start, & $($mutable)? self.frame.end] {
                    if let FrameBound::Preceding(expr) | FrameBound::Following(expr) = bound {
                        see(expr);
                    }
                }
                match & $($mutable)? self.function {
                    WindowFunction::Ntile(expr)
                    | WindowFunction::FirstValue(expr)
                    | WindowFunction::LastValue(expr)
                    | WindowFunction::PercentileCont { fraction: expr }
                    | WindowFunction::PercentileDisc { fraction: expr } => see(expr),
                    WindowFunction::Lag { value, offset, .. } => {
                        see(value);
                        if let Some(expr) = offset {
                            see(expr);
                        }
                    }
                    WindowFunction::NthValue { value, n } => {
                        see(value);
                        see(n);
                    }
                    WindowFunction::Aggregate(aggregate) => {
                        for expr in & $($mutable)? aggregate.args {
                            see(expr);
                        }
                        for key in & $($mutable)? aggregate.options.order {
                            see(& $($mutable)? key.expr);
                        }
                    }
                    WindowFunction::RowNumber
                    | WindowFunction::Rank
                    | WindowFunction::DenseRank
                    | WindowFunction::PercentRank
                    | WindowFunction::CumeDist => {}
                }
            }
        }
    };
}

walks!(each);
walks!(each_mut, mut);
